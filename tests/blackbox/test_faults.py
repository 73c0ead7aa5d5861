"""What a hub has acknowledged survives a power cut, and what it answered as failed has no effect:
with system calls on its data folder that fail (tests/faults/fault.c). A round is one act and one
fault, the Nth call of a kind, N = 1, 2, ... until no call of the act is hit any more. `make test`
does a part of the rounds, `make soak` all."""

import concurrent.futures
import contextlib
import errno
import fcntl
import io
import json
import os
import random
import shutil
import sys
import tarfile

import pytest

import host
from client import until
from door import Closed
from rest import Failed, Rest, b64
from soak import FULL
from test_serve import Session

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'faults'))
from fault import LAST, Fault, build  # noqa: E402

SEED = int(os.environ.get('HOLT_SEED', random.randrange(1 << 30)))
CONFIG = {'workspaces': {'site': {'dir': '/tmp', 'agent': 'mock'}}}


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
                         env=fault.env if fault else None))
        assert hubs[-1].address, hubs[-1].said()
        return hubs[-1]
    yield start
    for hub in hubs:
        hub.kill()


def tar_of(**files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


# ---- acts ----------------------------------------------------------------------------------------
# prepare() is done before, without a fault; is_done() tells whether do() has had its effect.


class Act:
    def prepare(self, hub, n):
        pass


class KeyCreate(Act):
    def do(self, hub, n):
        hub.post('/v1/keys', name=f'k{n}', scopes=['read'])

    def is_done(self, hub, n):
        return f'k{n}' in {k['name'] for k in hub.call('GET', '/v1/keys')}


class KeyDelete(KeyCreate):
    prepare = KeyCreate.do

    def do(self, hub, n):
        hub.call('DELETE', f'/v1/keys/k{n}')

    def is_done(self, hub, n):
        return not super().is_done(hub, n)


class SecretSet(Act):
    def do(self, hub, n):
        hub.post('/v1/secrets', name=f'S{n}', value='value of a secret')

    def is_done(self, hub, n):
        return f'S{n}' in {s['name'] for s in hub.call('GET', '/v1/secrets')['secrets']}


class SecretDelete(SecretSet):
    prepare = SecretSet.do

    def do(self, hub, n):
        hub.call('DELETE', f'/v1/secrets/S{n}')

    def is_done(self, hub, n):
        return not super().is_done(hub, n)


class WorkspaceCreate(Act):
    def do(self, hub, n):
        hub.post('/v1/workspaces', name=f'w{n}')

    def is_done(self, hub, n):
        return f'w{n}' in {w['workspace'] for w in hub.call('GET', '/v1/workspaces')['workspaces']}


class WorkspaceDelete(WorkspaceCreate):
    prepare = WorkspaceCreate.do

    def do(self, hub, n):
        hub.call('DELETE', f'/v1/workspaces/w{n}')

    def is_done(self, hub, n):
        return not super().is_done(hub, n)


class WorkspaceImport(WorkspaceCreate):
    """Its objects, too: they are read again, after another revision was made."""
    prepare = WorkspaceCreate.do

    def put(self, hub, n, data):
        head = hub.request('POST', f'/v1/workspaces/w{n}/import', fields=[
            'Content-Type: application/x-tar', f'Content-Length: {len(data)}'])
        with hub.wire() as wire:
            wire.send(head.encode() + data)
            reply = wire.reply()
        if reply.status != 200:
            raise Failed(reply.status, json.loads(reply.body)['error'])

    def do(self, hub, n):
        self.put(hub, n, tar_of(**{f'f{i}': f'{n} {i}'.encode() * 9 for i in range(4)}))

    def is_done(self, hub, n):
        told = hub.call('GET', f'/v1/workspaces/w{n}')
        assert hub.call('GET', f'/v1/workspaces/w{n}/verify')['damaged'] == 0
        return told['files'] == 4


class TalkCreate(Act):
    def talks(self, hub):
        return {c['title']: c['session_id'] for c in hub.call('GET', '/api/sessions')[
            'conversations']}

    def do(self, hub, n):
        hub.post('/api/sessions', title=f't{n}', workspace='site')

    def is_done(self, hub, n):
        return f't{n}' in self.talks(hub)


class TalkDelete(TalkCreate):
    prepare = TalkCreate.do

    def do(self, hub, n):
        hub.call('DELETE', f'/api/sessions/{self.talks(hub)[f"t{n}"]}')

    def is_done(self, hub, n):
        return not super().is_done(hub, n)


class TalkQueue(TalkCreate):
    prepare = TalkCreate.do

    def queue(self, hub, n):
        return f'/api/sessions/{self.talks(hub)[f"t{n}"]}/queue'

    def do(self, hub, n):
        hub.post(self.queue(hub, n), prompt=f'p{n}', delay_seconds=3000)

    def is_done(self, hub, n):
        return f'p{n}' in json.dumps(hub.call('GET', self.queue(hub, n)))


class TalkRestore(TalkCreate):
    ids = {}

    def prepare(self, hub, n):
        super().do(hub, n)
        self.ids[n] = self.talks(hub)[f't{n}']
        hub.call('DELETE', f'/api/sessions/{self.ids[n]}')

    def do(self, hub, n):
        hub.post(f'/api/sessions/{self.ids[n]}/restore')


class Attach(TalkCreate):
    prepare = TalkCreate.do

    def files(self, hub, n):
        return f'/api/sessions/{self.talks(hub)[f"t{n}"]}/files'

    def do(self, hub, n):
        hub.post(self.files(hub, n), name=f'f{n}', content=b64(b'attached'))

    def is_done(self, hub, n):
        return f'f{n}' in json.dumps(hub.call('GET', self.files(hub, n)))


class Snapshot(Act):
    def prepare(self, hub, n):
        if not [s for s in hub.call('GET', '/v1/sandboxes') if s['id'] == 'box'
                and s['state'] == 'running']:
            hub.create(id='box')

    def do(self, hub, n):
        hub.post('/v1/sandboxes/box/snapshots', name=f'n{n}')

    def is_done(self, hub, n):
        return f'n{n}' in {s['name'] for s in hub.call('GET', '/v1/snapshots')['snapshots']}


class Stop(Act):
    def prepare(self, hub, n):
        hub.create(id=f'b{n}')
        hub.exec(f'b{n}', 'echo kept > f')

    def do(self, hub, n):
        hub.post(f'/v1/sandboxes/b{n}/stop')

    def is_done(self, hub, n):
        return hub.call('GET', f'/v1/sandboxes/b{n}')['state'] == 'stopped'


ACTS = [KeyCreate, KeyDelete, SecretSet, SecretDelete, WorkspaceCreate, WorkspaceDelete,
        WorkspaceImport, TalkCreate, TalkDelete, TalkQueue, TalkRestore, Attach, Snapshot, Stop]


def check_audit(hub):
    done = hub.who.run('audit', 'verify', env=hub.env, text=True)
    assert done.stdout.startswith(('verified', 'unsealed')), done


# ---- power ---------------------------------------------------------------------------------------


def test_a_power_cut_takes_nothing_that_was_acknowledged(begin, library, home, tmp_path):
    """Each act alone is followed by a cut, so that no other one syncs for it."""
    place = os.path.join(tmp_path, 'place')
    os.mkdir(place)
    fault = Fault(library, home, place, power=True)
    hub = begin(home, fault)
    acts = [act() for act in ACTS]
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
        if isinstance(act, Stop):
            again.post('/v1/resume', sandbox=f'b{i}')
            assert again.exec(f'b{i}', 'cat f')['stdout'] == 'kept\n'
        check_audit(again)
        assert again.end() == 0


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


@pytest.mark.parametrize('act', ACTS, ids=lambda a: a.__name__)
def test_what_failed_has_no_effect(begin, fault, home, act):
    act, hub, rounds, said = act(), begin(home, fault), 0, {}
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
                act.do(hub, rounds)
                assert act.is_done(hub, rounds), ('again', *about)
            said[rounds] = about
            rounds += 1
            if fault.count < nth or number == (200 if FULL else 6):
                break
            number += 1
            nth += 1 if FULL or fault.count < 8 else chosen.randint(1, fault.count // 4)
    assert hub.end() == 0, hub.said()
    hub = begin(home)
    for n, about in said.items():
        assert act.is_done(hub, n), ('after a restart', *about)
    check_audit(hub)


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
    hub.post('/v1/resume', sandbox='b0')
    assert hub.exec('b0', 'cat f')['stdout'] == 'kept\n'


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
