"""What a hub has acknowledged survives a power cut, and what it answered as failed has no effect:
with system calls on its data folder that fail (tests/faults/fault.c). A round is one act and one
fault, the Nth call of a kind, N = 1, 2, ... until no call of the act is hit any more. `make test`
does a part of the rounds, `make soak` all."""

import concurrent.futures
import contextlib
import errno
import fcntl
import fnmatch
import json
import os
import random
import shutil
import sys

import pytest

import host
from acts import (ACTS, CONFIG, NO_ACTS, SERVE, Attach, KeyCreate, Snapshot, Stop,
                  SecretSet, WorkspaceImport)
from client import until
from door import trusting
from rest import Failed, Rest
from soak import FULL
from test_agents import mock
from test_door import certificate  # noqa: F401 (a fixture)
from test_login import Restless, Secure, secured
from test_serve import Session

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'faults'))
from fault import LAST, Fault, build  # noqa: E402

SEED = int(os.environ.get('HOLT_SEED', random.randrange(1 << 30)))


@pytest.fixture(scope='session')
def library(tmp_path_factory):
    if not shutil.which(os.environ.get('CC', 'cc')):
        pytest.skip('there is no C compiler, which builds tests/faults/fault.c')
    return build(str(tmp_path_factory.mktemp('fault')))


@pytest.fixture
def home(tmp_path):
    path = os.path.join(tmp_path, 'home')
    os.mkdir(path, 0o700)
    with open(os.path.join(path, 'config.json'), 'w', encoding='utf-8') as f:
        json.dump(CONFIG, f)
    return path


@pytest.fixture
def fault(library, home, tmp_path):
    place = os.path.join(tmp_path, 'place')
    os.mkdir(place)
    return Fault(library, home, place)


def opened_by_a_hub(path):
    for pid in host.below():
        with contextlib.suppress(OSError):
            if path in (os.readlink(f'/proc/{pid}/fd/{n}') for n in os.listdir(f'/proc/{pid}/fd')):
                return True
    return False


@pytest.mark.parametrize('name', ['registry.db-lock', 'conversations/.lock'])
def test_a_hub_that_was_killed_may_still_be_ending(begin, home, name):
    """It holds its locks a moment longer, while which the next one is started."""
    assert begin(home).end() == 0
    path = os.path.realpath(os.path.join(home, name))
    with concurrent.futures.ThreadPoolExecutor(1) as pool, open(path, 'rb') as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        starts = pool.submit(begin, home)
        until(lambda: opened_by_a_hub(path) or starts.done(), what='a hub that looks at the lock')
        fcntl.flock(held, fcntl.LOCK_UN)
        hub = starts.result(60)
    hub.works()
    assert hub.end() == 0


@pytest.fixture
def begin(me):
    """Starts hubs with a fault's library in them."""
    hubs = []

    def start(home, fault=None):
        hubs.append(Rest(me, home, '--listen', '127.0.0.1:0', '--socket', 'none', '--pool', '0',
                         *SERVE, env=fault.env if fault else None))
        assert hubs[-1].address, hubs[-1].said()
        return hubs[-1]
    yield start
    for hub in hubs:
        hub.kill()


def check_audit(hub):
    done = hub.who.run('audit', 'verify', env=hub.env, text=True)
    assert done.stdout.startswith(('verified', 'unsealed')), done


# ---- power ---------------------------------------------------------------------------------------


def test_a_power_cut_takes_nothing_that_was_acknowledged(me, begin, library, home, tmp_path):
    """Each act alone is followed by a cut, so that no other one syncs for it. Of one that
    administers the record is there, too."""
    done = me.run('policy', 'actions', '-o', 'json')
    records = {a['action'] for a in json.loads(done.stdout) if a['effect'] == 'administer'}
    names = [name.split(',')[0] for name, act in ACTS.items() if act.lasts]
    place = os.path.join(tmp_path, 'place')
    os.mkdir(place)
    fault = Fault(library, home, place, power=True)
    hub = begin(home, fault)
    acts = [act() for act in ACTS.values() if act.lasts]
    for i, act in enumerate(acts):
        act.prepare(hub, i)
    for i, act in enumerate(acts):
        act.do(hub, i)
        copy = os.path.join(tmp_path, f'cut{i}')
        fault.cut(copy)
        shutil.copy(os.path.join(home, 'config.json'), copy)
        again = begin(copy)
        lost = [type(a).__name__ for k, a in enumerate(acts[:i + 1]) if not a.is_done(again, k)]
        assert not lost, (type(act).__name__, lost)
        act.whole(again, i)
        if names[i] in records:
            assert again.call('GET', f'/v1/audit?action={names[i]}')['records'], names[i]
        check_audit(again)
        assert again.end() == 0


def test_a_power_cut_takes_no_prompt(begin, library, home, tmp_path):
    """Once it has left the queue it is in the history."""
    config, place, copy = (os.path.join(tmp_path, name) for name in ('config', 'place', 'cut'))
    with open(config, 'w', encoding='utf-8') as f:
        json.dump({**CONFIG, 'agents': {'mock': mock()}}, f)
    os.chmod(config, 0o600)
    shutil.copy(config, os.path.join(home, 'config.json'))
    os.mkdir(place)
    fault = Fault(library, home, place, power=True)
    hub = begin(home, fault)
    at = f'/api/sessions/{hub.post("/api/sessions", workspace="site")["session_id"]}'
    hub.post(f'{at}/queue', prompt='kept over a cut')
    until(lambda: '"stop"' in json.dumps(hub.call('GET', f'{at}/events')), what='its turn')
    assert not hub.call('GET', f'{at}/queue')['messages']
    fault.cut(copy)
    shutil.copy(config, os.path.join(copy, 'config.json'))
    again = begin(copy)
    assert 'kept over a cut' in json.dumps(again.call('GET', f'{at}/events'))
    assert hub.end() == 0 and again.end() == 0


# ---- calls that fail -----------------------------------------------------------------------------

KINDS = [('open', 'fail', errno.EMFILE), ('read', 'fail', errno.EIO),
         ('write', 'fail', errno.ENOSPC), ('sync', 'fail', errno.EIO),
         ('rename', 'fail', errno.EIO), ('unlink', 'fail', errno.EIO),
         ('mkdir', 'fail', errno.EIO), ('readdir', 'fail', errno.EIO)]
UNSURE = 'it may have been done'


def ask(act, hub, n, cause):
    """True: acknowledged; False: failed; None: it may have been done."""
    try:
        act.do(hub, n)
    except Failed as e:
        cause.append(e.error['cause'])
        return None if UNSURE in e.error['cause'] else False
    return True


def settled(ask_, *arguments):
    """The audit log refuses calls for a moment after a failure of its own: that is no answer."""
    got = []

    def once():
        try:
            got.append(ask_(*arguments))
        except Failed as e:
            assert 'record can\'t be kept' in e.error['cause'], e
        return got
    until(once, what='calls are run again')
    return got[0]


def test_each_action_that_changes_something_is_an_act(me):
    done = me.run('policy', 'actions', '-o', 'json')
    changes = {a['action'] for a in json.loads(done.stdout) if a['effect'] != 'read'}
    acts = {name.split(',')[0] for name in ACTS}
    reasons = {a for a in changes for name in NO_ACTS if fnmatch.fnmatch(a, name)}
    assert acts <= changes and acts | reasons == changes and not acts & reasons
    assert [name for name in NO_ACTS if not fnmatch.filter(changes, name)] == []


@pytest.mark.parametrize('act', ACTS)
def test_what_failed_has_no_effect(begin, fault, home, act):
    act, hub, rounds, said = ACTS[act](), begin(home, fault), 0, {}
    chosen = random.Random(f'{SEED} {type(act).__name__}')
    hub.token  # read before anything fails
    for kind, mode, why in KINDS:
        nth, number = 1, 0
        while True:
            cause = []
            settled(act.prepare, hub, rounds)
            with fault.armed(kind, mode, nth, why=why):
                answer = ask(act, hub, rounds, cause)
            done = settled(act.is_done, hub, rounds)
            about = (SEED, kind, nth, rounds, answer, done, ''.join(cause))
            assert answer is None or answer == done, about
            if not done:
                act.again(hub, rounds)
                assert act.is_done(hub, rounds), ('again', *about)
            said[rounds] = about
            rounds += 1
            if fault.count < nth or number == (200 if FULL else 6):
                break
            number += 1
            nth += 1 if FULL or fault.count < 8 else chosen.randint(1, fault.count // 4)
    assert hub.end() == 0, hub.said()
    hub = begin(home)
    for n, about in said.items() if act.lasts else ():
        assert act.is_done(hub, n), ('after a restart', *about)
    check_audit(hub)


@pytest.mark.parametrize('path', ['/session', '/sessions/{id}'])
def test_a_log_out_that_was_answered_holds_for_the_next_hub(
        me, fault, home, tmp_path, certificate, path):  # noqa: F811
    trust, tls = trusting(certificate[0]), secured(me, tmp_path, certificate)
    hub = Rest(me, home, '--listen', '127.0.0.1:0', '--pool', '0', *tls, env=fault.env)
    try:
        own = Secure(hub, trust)
        one, = json.loads(own.raw('GET', '/sessions').body)['sessions']
        with fault.armed('write', 'fail', 1, LAST, why=errno.ENOSPC, match='logins'):
            assert own.asks('DELETE', path.format(**one)) >= 500
        assert own.asks() == 200
        assert own.asks('DELETE', path.format(**one)) == 200
    finally:
        hub.kill()
    with Restless(me, home, '--listen', f'127.0.0.1:{hub.address[1]}', '--pool', '0', *tls):
        assert own.asks() == 401


# ---- the start -----------------------------------------------------------------------------------


def start(me, home, fault):
    """A hub that listens and can be written to, or what it said instead."""
    hub = Rest(me, home, '--listen', '127.0.0.1:0', '--socket', 'none', '--pool', '0',
               env=fault.env)
    if not hub.address:
        hub.proc.wait(60)
        return None, hub.said()
    return hub, ''


def test_what_the_host_lacks_is_no_sandboxs(begin, fault, home):
    """Its remedy is about the host, not about the limits of a sandbox."""
    hub = begin(home, fault)
    hub.token
    for why, remedy in ((errno.ENOSPC, "host's disk"), (errno.EDQUOT, "host's disk"),
                        (errno.EMFILE, 'until something ends')):
        act = WorkspaceImport()
        act.prepare(hub, why)
        with fault.armed('write' if why != errno.EMFILE else 'open', 'fail', 1, LAST, why=why,
                         match='workspaces'):
            with pytest.raises(Failed) as failed:
                act.do(hub, why)
        error = failed.value.error
        assert remedy in error['remediation'] and 'sandbox' not in error['remediation'].replace(
            'running sandboxes are not affected', ''), error


def test_a_key_of_log_ins_that_can_not_be_read_now_is_not_damaged(me, fault, home):
    def run():
        return me.run('mcp', 'logout', '--url', 'http://127.0.0.1:9/mcp', text=True,
                      env={**fault.env, 'HOLT_HOME': home})
    run()
    with fault.armed('read', 'fail', 1, LAST, match='oauth/key'):
        done = run()
    assert fault.count and done.returncode, (fault.count, done)
    assert 'Input/output error' in done.stderr and 'remove its folder' not in done.stderr, done


@pytest.mark.parametrize('kind', ['open', 'read'])
def test_a_start_that_fails_loses_nothing_and_calls_nothing_damaged(me, begin, fault, home, kind):
    """A call on the registry that fails while the hub starts: it ends by an error that passes, or
    it can be written to. It never runs and can't."""
    hub = begin(home)
    for act in (KeyCreate(), WorkspaceImport(), Snapshot(), Stop()):
        act.prepare(hub, 0)
        act.do(hub, 0)
    assert hub.end() == 0
    nth, refused = 1, 0
    step = 1 if FULL or kind == 'open' else 5  # it reads often, and opens little
    while True:
        fault.arm(kind, 'fail', nth, match='registry.db')
        hub, said = start(me, home, fault)
        count = fault.disarm()
        if hub:
            until(lambda hub=hub: hub.ask(path='/readyz').status == 200, what='a hub that is ready')
            hub.post('/v1/keys', name=f'made{nth}', scopes=['read'])
            assert hub.end() == 0
        else:
            refused += 1
            assert 'damaged' not in said and 'registry' in said, (nth, said)
        if count < nth:
            break
        nth += step
    assert refused
    hub = begin(home)
    assert KeyCreate().is_done(hub, 0) and WorkspaceImport().is_done(hub, 0)
    assert Snapshot().is_done(hub, 0) and Stop().is_done(hub, 0)


def rounds(fault, kind, why, match, once):
    """once(nth), where the nth call fails, until none does. It may disarm, and returns the count
    then."""
    nth, count = 0, 1
    while count >= nth:
        nth += 1
        fault.arm(kind, 'fail', nth, why=why, match=match)
        count = once(nth)
        count = fault.disarm() if count is None else count
    return nth


UNREAD = [('open', errno.EMFILE), ('read', errno.EIO), ('readdir', errno.EIO)]


@pytest.mark.parametrize('kind, why', UNREAD)
def test_what_can_not_be_read_now_is_not_left_out(me, begin, fault, home, kind, why):
    """Of a conversation, its files or one that a start finds: it is there, or a failure is told."""
    hub = begin(home, fault)
    act = Attach()
    act.prepare(hub, 0)
    act.do(hub, 0)
    at, failed = act.files(hub, 0), 0

    def listed(nth):
        nonlocal failed
        status, told = hub.asked('GET', at)
        failed += status >= 400
        assert status >= 400 or 'f0' in json.dumps(told), (nth, status, told)
    assert rounds(fault, kind, why, 'conversations/', listed) > 1
    assert failed or kind == 'read'  # what kind of file it is may be left out
    assert hub.end() == 0

    def started(nth):
        hub, said = start(me, home, fault)
        count = fault.disarm()
        assert hub or 'conversation' in said, (nth, said)
        if hub:
            assert act.is_done(hub, 0), (nth, hub.said())
            assert hub.end() == 0
        return count
    assert rounds(fault, kind, why, 'conversations', started) > 1


def parts(home):
    """What a data folder has, from its folders down: all that a hub can miss at its start."""
    for folder, folders, files in os.walk(home):
        at = os.path.relpath(folder, home)
        for name in sorted(folders) + sorted(files):
            if not name.startswith(('registry.db', 'config.json')):
                yield os.path.normpath(os.path.join(at, name))


def test_what_is_missing_at_a_start_is_not_given_up(begin, home):
    """Each folder and file is missing at one start, at whose end it is back: a disk that was
    mounted late, a backup. Then all is there and works."""
    acts = [WorkspaceImport(), Snapshot(), Stop(), Attach(), SecretSet(), KeyCreate()]
    hub = begin(home)
    for act in acts:
        act.prepare(hub, 0)
        act.do(hub, 0)
    assert hub.end() == 0
    aside = os.path.join(os.path.dirname(home), 'aside')
    tried = [path for path in parts(home) if FULL or path.split('/')[0] == 'snapshots'
             or path.count('/') < 2]
    for path in tried:
        was = os.path.join(home, path)
        if not os.path.lexists(was):
            continue  # of the run of a hub
        os.rename(was, aside)
        hub = begin(home)
        if path.startswith('snapshots/') and path.endswith('.zst'):
            told = hub.said()
            assert path in told and 'mount its disk' in told, (path, told)
            with pytest.raises(Failed) as failed:
                whole(hub)
            assert failed.value.error['code'] == 'internal' and path in str(failed.value.error)
        hub.kill()
        if os.path.isdir(was):
            shutil.rmtree(was)
        os.rename(aside, was)
        hub = begin(home)
        assert all(act.is_done(hub, 0) for act in acts), path
        assert hub.end() == 0
    hub = begin(home)
    whole(hub)


def whole(hub):
    """Uses what archives keep."""
    for snapshot in hub.call('GET', '/v1/snapshots')['snapshots']:
        hub.post(f'/v1/snapshots/{snapshot["id"]}/restore')
    for sandbox in hub.call('GET', '/v1/sandboxes'):
        if sandbox['state'] == 'stopped':
            hub.post('/v1/resume', sandbox=sandbox['id'])


def test_a_new_registry_deletes_nothing(begin, home):
    """Whoever puts another registry into a full data folder can put the old one back."""
    hub = begin(home)
    for act in (WorkspaceImport(), Snapshot(), Stop()):
        act.prepare(hub, 0)
        act.do(hub, 0)
    assert hub.end() == 0
    kept = os.path.join(home, 'old')
    os.mkdir(kept)
    for name in ('registry.db', 'registry.db-wal', 'registry.db-shm'):
        if os.path.exists(os.path.join(home, name)):
            os.rename(os.path.join(home, name), os.path.join(kept, name))
    hub = begin(home)
    assert 'were moved to snapshots/lost' in hub.said() and 'workspaces/lost' in hub.said()
    hub.post('/v1/workspaces', name='other')
    hub.call('DELETE', '/v1/workspaces/other')
    hub.call('DELETE', '/v1/workspaces-garbage')
    assert hub.end() == 0
    for name in ('registry.db', 'registry.db-wal', 'registry.db-shm'):
        if os.path.exists(os.path.join(home, name)):
            os.unlink(os.path.join(home, name))
        if os.path.exists(os.path.join(kept, name)):
            os.rename(os.path.join(kept, name), os.path.join(home, name))
    for name in os.listdir(os.path.join(home, 'snapshots', 'lost')):
        os.rename(os.path.join(home, 'snapshots', 'lost', name),
                  os.path.join(home, 'snapshots', name))
    shutil.rmtree(os.path.join(home, 'workspaces', 'objects'))
    os.rename(os.path.join(home, 'workspaces', 'lost', 'objects'),
              os.path.join(home, 'workspaces', 'objects'))
    hub = begin(home)
    assert WorkspaceImport().is_done(hub, 0) and Snapshot().is_done(hub, 0)
    Stop().whole(hub, 0)


def test_a_registry_that_can_not_be_written_is_not_ready(begin, fault, home):
    hub = begin(home, fault)
    with fault.armed('write', 'fail', 1, LAST, why=errno.EIO, match='registry.db-wal'):
        with pytest.raises(Failed):
            hub.post('/v1/keys', name='k', scopes=['read'])
        assert hub.ask(path='/readyz').status == 503
    until(lambda: hub.ask(path='/readyz').status == 200, what='it is ready again')
    hub.post('/v1/keys', name='k', scopes=['read'])


def test_a_configuration_that_can_not_be_read_now_is_read_again(begin, fault, home):
    hub = begin(home, fault)
    hub.create(id='before')
    with fault.armed('open', 'fail', 1, LAST, why=errno.EMFILE, match='config.json'):
        with open(os.path.join(home, 'next'), 'w', encoding='utf-8') as f:
            json.dump({**CONFIG, 'policy': {'default': 'deny'}}, f)
        os.rename(os.path.join(home, 'next'), os.path.join(home, 'config.json'))
        until(lambda: 'config' in json.loads(hub.ask(path='/readyz').body), what='it is told')
    until(lambda: 'config' not in json.loads(hub.ask(path='/readyz').body), what='it is read')
    assert hub.ask('POST', '/v1/sandboxes', body='{}').status in (401, 403)


@pytest.mark.parametrize('kind, why', [('open', errno.EMFILE), ('read', errno.EIO)])
def test_a_snapshot_that_can_not_be_read_now_keeps_its_files(begin, fault, home, kind, why):
    """Past 50 the oldest go, with what no other one needs: one that can't be looked at may need
    all."""
    hub = begin(home, fault)
    session = Session(hub, '/mcp?tools=coding')

    def call(tool, **arguments):
        with hub.wire() as wire:
            session.call(wire, tool, **arguments)
            return session.result(wire)

    def take(n):
        assert not call('Bash', command=f'seq {n}000 {n}999 > f').get('isError')
        return not call('snapshot_create', name=f's{n}').get('isError')

    assert all(take(n) for n in range(50))
    with fault.armed(kind, 'fail', 1, LAST, why=why, match='/s40'):
        more = [n for n in (50, 51) if take(n)]
    assert fault.count
    for n in (2, 40, 49, *more):
        done = call('snapshot_restore', name=f's{n}')
        assert not done.get('isError'), (n, more, done)
        assert f'{n}999' in json.dumps(call('Bash', command='tail -n 1 f')), n
    assert take(60)
    assert hub.end() == 0
