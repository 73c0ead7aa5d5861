"""Disks that are full to the last byte: the one with Holt's data folder, and a sandbox's own. What
can't be kept is refused by name, what was kept is there, nothing half made stays, and with room
again all works again.

The data folder is on a small file system that only the hub and this test see. Also of this: the
images' in test_images.py, the spill files' in test_jobs.py, what the registry does at its limit in
test_lives.py.
"""

import base64
import contextlib
import json
import os
import shutil
import subprocess

import pytest

import host
import modules
from approval import question
from client import until
from rest import Failed
from test_agents import mock
from test_snapshots import Hub, code_of
from who import Who

MIB = 1 << 20
ROOM = 48 * MIB  # of the data folder
NEEDED = 8 * MIB  # what a snapshot here takes, whatever compresses it


class Disk:
    """A file system of its own in a mount namespace of its own, at the path `home`."""

    def __init__(self, who, home):
        self.who, self.home = who, home
        script = f'mount -t tmpfs -o size={ROOM},mode=700 small "$1" && echo mounted && read gone'
        self.holder = subprocess.Popen(['unshare', '-m', '--propagation', 'private', 'sh', '-c',
                                        script, 'sh', home],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.holder.stdout.readline() == b'mounted\n'
        self.path = f'/proc/{self.holder.pid}/root{home}'
        self.filler = os.path.join(self.path, 'filler')

    def __getattr__(self, name):
        return getattr(self.who, name)

    def argv(self, *arguments):
        return ['nsenter', f'--mount=/proc/{self.holder.pid}/ns/mnt', *self.who.argv(*arguments)]

    def run(self, *arguments, **options):
        return Who.run(self, *arguments, **options)

    def free(self):
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def fill(self, leave=0):
        """Leaves no more room than that, to the page; again and again,
        as others may give some back meanwhile."""
        with open(self.filler, 'ab', buffering=0) as f, contextlib.suppress(OSError):
            while self.free() > leave:
                f.write(bytes(min(MIB, self.free() - leave)))

    def empty(self):
        os.unlink(self.filler)

    def files(self):
        """All below the data folder but the registry's log and the filler."""
        found = host.files(self.path)
        return {os.path.relpath(f, self.path)
                for f in found if not f.endswith(('-wal', '-shm', 'filler'))}

    def close(self):
        self.holder.stdin.close()
        self.holder.stdout.close()
        self.holder.wait()


@pytest.fixture
def disk(me):
    if os.getuid():
        pytest.skip('only root mounts')
    residue = host.Residue(me.trees)
    home = me.log() + '.home'
    os.mkdir(home, 0o700)
    made = Disk(me, home)
    yield made
    made.close()
    residue.check()


@pytest.fixture
def begin(disk):
    started = []

    def start():
        started.append(Hub(disk, disk.home, '--pool', '0'))
        started[-1].folder = os.path.join(disk.path, 'snapshots')
        return started[-1]
    yield start
    assert started[-1].end() == 0, started[-1].said()
    for one in started:
        one.kill()


def refused(call, *arguments, **body):
    """It fails for want of room, and says so."""
    with pytest.raises(Failed) as failed:
        call(*arguments, **body)
    error = failed.value.error
    assert failed.value.code == 'internal' and failed.value.status == 500, error
    assert any(word in error['cause'] for word in ('no room', 'No space', 'full')), error
    return error


def test_audit_log(begin, disk):
    """Without room for a record nothing is run; /readyz tells why, and it ends with room."""
    hub = begin()
    disk.fill()
    assert 'audit' in refused(hub.create)['cause']
    reply = hub.raw('GET', '/readyz')
    assert reply.status == 503 and b'"refusing"' in reply.body and b'audit' in reply.body, reply
    disk.empty()
    until(lambda: hub.raw('GET', '/readyz').status == 200, what='room')
    hub.delete(hub.create())
    done = disk.run('audit', 'tail', '-n', '100', '-o', 'json', env=hub.env, text=True)
    assert '"event":"gap"' in done.stdout and '"count":1' in done.stdout, done


# What verbs write below HOLT_HOME, and to a target on the same disk. In this order: each would do
# something with room.
WRITES = (
    'run --secret known -- true', 'up -n c', 'exec -d b true', 'fork b', 'stop b',
    'snapshot create b', 'snapshot restore {snapshot}', 'snapshot export {snapshot} {home}/out',
    'ws create c', 'ws import w {tree}', 'ws export w {home}/out', 'ws fork w v',
    'secret set one', 'auth keys create --name k --scopes read', 'images import {tree} x',
    'build -t x {tree}', 'cp b:/workspace/f {home}/out', 'conversations new', 'net allow b a.test',
    'config show', 'inspect b', 'down b',
)


def test_each_verb_says_which_disk_is_full(disk):
    """And what helps, whatever part of Holt has met it; so does one whose output goes there."""
    with open(os.path.join(disk.path, 'config.json'), 'w', encoding='ascii') as f:
        f.write('{"audit": {"off": true}}')
    os.chown(f.name, disk.who.uid, disk.who.uid)
    tree = f'{disk.home}-tree'
    os.mkdir(tree, 0o755)
    with open(f'{tree}/f', 'wb') as f:
        f.write(os.urandom(MIB))
    with open(f'{tree}/holt.json', 'w', encoding='ascii') as f:
        f.write('{"run": ["head -c 3000000 /dev/urandom > /workspace/g"]}')

    def holt(*words, given=b'', **more):
        return disk.run(*words, env={'HOLT_HOME': disk.home}, input=given, **more)

    def made(*words, **more):
        done = holt(*words, **more)
        assert done.returncode == 0, done
        return done.stdout.decode().strip()
    made('up', '-n', 'b')
    made('exec', 'b', 'sh', '-c', 'head -c 3000000 /dev/urandom > f')
    made('secret', 'set', 'known', given=b'a known value')
    made('ws', 'create', 'w')
    made('ws', 'import', 'w', tree)
    snapshot = made('snapshot', 'create', 'b')
    failed = {}
    for line in WRITES:
        disk.fill()
        done = holt(*line.format(home=disk.home, tree=tree, snapshot=snapshot).split(),
                    given=b'a secret value')
        if done.returncode:
            failed[line] = done.stderr.decode()
    disk.fill()
    with open(os.path.join(disk.path, 'filler'), 'ab') as out:
        failed['to a file'] = holt('help', 'serve', stdout=out).stderr.decode()
    helps = f"Free space on the host's disk that holds Holt's data folder, {disk.home}, "
    silent = {line: text for line, text in failed.items() if helps not in text}
    assert not silent, "\n".join(map(str, silent.items()))
    assert len(failed) > len(WRITES) / 2, failed  # the others had some room yet
    disk.empty()
    made('hub', 'stop')
    shutil.rmtree(tree)


def test_keys_and_secrets(begin, disk):
    """What can't be kept is refused, and what was kept stays as it was."""
    with open(os.path.join(disk.path, 'config.json'), 'w', encoding='ascii') as f:
        f.write('{"audit": {"off": true}}')  # its reserve would stop all of this before
    os.chown(f.name, disk.who.uid, disk.who.uid)
    hub = begin()
    first = hub.post('/v1/keys', name='first', scopes=['read'])['token']
    hub.post('/v1/secrets', name='first', value='the first value')

    def has():
        done = disk.run('run', '--secret', 'first', '--', 'sh', '-c', 'echo ${#FIRST}', env=hub.env)
        return done.stdout
    before = disk.files()
    disk.fill()
    for i in range(40):  # the registry may have some room of its own
        try:
            hub.post('/v1/keys', name=f'more-{i}', scopes=['read'])
        except Failed:
            break
    refused(hub.post, '/v1/keys', name='other', scopes=['read'])
    refused(hub.post, '/v1/secrets', name='other', value='another value')
    refused(hub.post, '/v1/secrets', name='first', value='the first value, which is longer')
    assert 'other' not in {k['name'] for k in hub.call('GET', '/v1/keys')}
    assert [s['name'] for s in hub.call('GET', '/v1/secrets')['secrets']] == ['first']
    assert hub.raw('GET', '/v1/sandboxes', token=first).status == 200 and has() == b'15\n'
    assert disk.files() == before
    disk.empty()
    hub.post('/v1/secrets', name='first', value='the first value, which is longer')
    assert has() == b'32\n' and hub.post('/v1/keys', name='other', scopes=['read'])['token']
    hub.call('DELETE', '/v1/keys/first')
    assert hub.raw('GET', '/v1/sandboxes', token=first).status == 401


def test_conversations_and_questions(begin, disk):
    """What was acknowledged is there; what was refused is not, and leaves nothing."""
    with open(os.path.join(disk.path, 'config.json'), 'w', encoding='ascii') as f:
        f.write('{"audit": {"off": true}}')
    os.chown(f.name, disk.who.uid, disk.who.uid)
    hub = begin()
    talk = hub.post('/api/sessions', title='kept')['session_id']
    queue, log = f'/api/sessions/{talk}/queue', f'/api/sessions/{talk}/events'
    hub.post(queue, prompt='first')
    files, large = f'/api/sessions/{talk}/files', base64.b64encode(bytes(MIB)).decode()
    given = hub.post(files, name='kept', content=base64.b64encode(b'kept').decode())
    first = question(hub)

    def texts():
        return [m['message'] for m in hub.call('GET', queue)['messages']]

    def pending():
        return [q['request_id'] for q in hub.call('GET', '/api/prompts')['prompts']]
    before = disk.files()
    disk.fill()
    refused(hub.post, queue, prompt='second')
    refused(hub.call, 'PATCH', f'/api/sessions/{talk}', {'title': 'x' * 100})
    refused(hub.post, '/api/sessions', title='other')
    refused(hub.post, files, name='large', content=large)
    assert hub.call('GET', files)['files'] == [given]
    asked = []
    for i in range(40):  # the registry may have some room of its own
        try:
            asked.append(question(hub, kind='textbox', text='x' * 9000))
        except Failed as failed:
            assert failed.code == 'internal', failed
            break
    refused(question, hub, kind='textbox', text='x' * 9000)
    refused(hub.post, f'/api/prompts/{first}/answer', option_id='yes')
    assert texts() == ['first'] and pending() == [first, *asked]
    assert disk.files() - {'conversations/.new'} == before  # an empty folder, for the next one
    seen = hub.call('GET', log)['events']
    disk.empty()
    disk.fill(leave=64 << 10)  # a record, and no prompt of this size
    refused(hub.post, '/api/sessions', title='other', initial_prompt='x' * 60000)
    assert [c['session_id'] for c in hub.call('GET', '/api/sessions')['conversations']] == [talk]
    disk.empty()
    large = hub.post(files, name='large', content=large)
    assert hub.post(queue, prompt='third')['queue_position'] == 1
    assert hub.post(f'/api/prompts/{first}/answer', option_id='no')['state'] == 'answered'
    hub.crash()
    hub = begin()
    assert texts() == ['first', 'third'] and pending() == asked
    assert hub.call('GET', files)['files'] == [given, large]
    assert hub.call('GET', log)['events'] == seen
    assert hub.call('GET', f'/api/prompts/{first}')['option_id'] == 'no'


def test_what_an_agent_says(begin, disk):
    """What could not be written is missing and told, and the next turn is as any."""
    site = f'{disk.home}-site'
    os.mkdir(site, 0o700)
    with open(os.path.join(disk.path, 'config.json'), 'w', encoding='ascii') as f:
        json.dump({'audit': {'off': True}, 'agents': {'mock': mock(sandbox=False)},
                   'workspaces': {'site': {'dir': site}}}, f)
    for one in (f.name, site):
        os.chown(one, disk.who.uid, disk.who.uid)
    hub = begin()
    talk = hub.post('/api/sessions', acp_server='mock', workspace='site')['session_id']

    def events(after=0):
        page = hub.call('GET', f'/api/sessions/{talk}/events?after_seq={after}')['events']
        return [e['type'] for e in page]

    def prompt(*steps):
        hub.post(f'/api/sessions/{talk}/queue', prompt=json.dumps(steps))

    def at_rest():
        return not hub.call('GET', f'/api/sessions/{talk}')['is_prompting']
    prompt(['shell', f'until [ -e {site}/go ]; do sleep 0.05; done'], ['say', 'lost' * 5000])
    until(lambda: events()[-1] == 'user_prompt', what='a turn')
    disk.fill()
    with open(f'{site}/go', 'w', encoding='ascii'):
        until(at_rest, what='its end')
    assert 'agent_message' not in events()
    disk.empty()
    prompt(['say', 'kept'])
    until(lambda: 'agent_message' in events() and at_rest(), what='the next turn')
    first, missing, last = (all_of := events())[:2], all_of[2:-3], all_of[-3:]
    assert (first, last) == (['session_start', 'user_prompt'],
                             ['user_prompt', 'agent_message', 'stop']), all_of
    assert missing in (['error'], ['error', 'stop'])  # the end of a page may have room for these
    shutil.rmtree(site)


# By a call: its tool says otherwise of itself, at such length that the registry has to grow.
CHANGES = r'''
plain = call
def call(id, name, arguments):
    for i in range(40):
        TOOLS[i]['description'] = 'Another. ' * 6000
    say({'method': 'notifications/tools/list_changed'})
    plain(id, name, arguments)
TOOLS = [tool(f'tool-{i}') for i in range(40)]
main()
'''


def test_an_approval_that_cannot_be_kept(begin, disk):
    """What was quarantined, disabled or revoked stays so."""
    modules.home(disk.who, disk.path, {'audit': {'off': True}},
                 one=modules.server(CHANGES, sandbox=False))
    hub = begin()

    def pins():
        return {t['state'] for t in hub.call('GET', '/v1/modules/one')['tools']}

    def closed():
        return hub.call('GET', '/v1/modules/one')['state'] == 'closed'
    modules.approve(hub, 'one')
    modules.text(hub, 'one', 'tool-0', text='x')
    until(lambda: pins() == {'changed'}, what='the change')
    digest = hub.call('GET', '/v1/modules/one')['digest']
    disk.fill()
    refused(hub.post, '/v1/modules/one/approve', digest=digest)
    assert pins() == {'changed'}
    with pytest.raises(Failed) as failed:
        modules.call(hub, 'one', 'tool-0')
    assert failed.value.status == 403
    disk.empty()
    hub.post('/v1/modules/one/approve', digest=digest)
    assert pins() == {'approved'}
    hub.post('/v1/modules/one/disable')
    disk.fill()
    for word, body in ('enable', {}), ('revoke', {}), ('enable', {}):
        with pytest.raises(Failed):
            hub.post(f'/v1/modules/one/{word}', **body)
        assert closed()
    disk.empty()


def put(hub, data):
    head = hub.request('POST', '/v1/snapshots',
                       fields=['Content-Type: application/zstd', f'Content-Length: {len(data)}'])
    with hub.wire() as wire:
        return wire.ask(head.encode() + data, 'POST')


def test_snapshots(begin, disk):
    """Taking one, keeping a sandbox that is stopped, and taking one over from elsewhere."""
    hub = begin()
    hub.create(id='s', retention='stop')
    hub.sh('s', f'head -c {NEEDED} /dev/urandom > f')
    digest = hub.sh('s', 'sha256sum f')
    first = hub.take('s')
    with hub.wire() as wire:
        packed = wire.ask(hub.request('GET', f'/v1/snapshots/{first}/export'), 'GET').body
    assert len(packed) > NEEDED
    before = disk.files()
    for leave in (NEEDED // 2, MIB, 0):
        disk.fill(leave)
        refused(hub.take, 's')
        refused(hub.post, '/v1/sandboxes/s/stop')
        assert hub.state('s') == 'running' and hub.sh('s', 'sha256sum f') == digest
        reply = put(hub, packed)
        assert reply.status == 500 and b'room' in reply.body, reply
        assert hub.snapshots() == {first} and disk.files() == before, leave
        assert disk.free() <= leave + MIB
    disk.empty()
    disk.fill(MIB)
    # past its time it stands still, as it can't be kept
    hub.post('/v1/set_timeout', sandbox='s', timeout_seconds=1)
    until(lambda: 'reap_failed' in {v['kind'] for v in hub.call('GET', '/v1/events')['events']},
          what='word of what could not be kept')
    assert hub.state('s') == 'paused'
    disk.empty()
    until(lambda: hub.state('s') == 'stopped', what='it is kept')
    hub.post('/v1/resume', sandbox='s')
    assert hub.sh('s', 'sha256sum f') == digest
    assert put(hub, packed).status == 200
    assert hub.sh(hub.restore(first), 'sha256sum f') == digest and len(hub.snapshots()) == 2


def test_registry(begin, disk):
    """What would have to be remembered is refused and undone; what ends something works, and is
    remembered when there is room."""
    hub = begin()
    kept = [hub.create() for _ in range(3)]
    snapshot = hub.take(kept[0])
    made = []

    def full():
        """Until nothing more can be written: what the log has room for is still taken."""
        disk.fill()
        try:
            made.append(hub.create())
        except Failed as failed:
            return failed.error
        return None
    error = until(full, what='a registry that is full')
    assert error['code'] == 'internal' and 'registry' in error['cause'], error
    assert hub.sandboxes() == {*kept, *made}
    until(lambda: len(os.listdir(os.path.join(disk.path, 'warden')))
          and hub.metrics()['holt_sandboxes'] == len(kept + made),
          what='the end of what was undone')
    refused_fork = code_of(hub.post, f'/v1/sandboxes/{kept[0]}/fork')
    assert refused_fork[0] == 500 and hub.sandboxes() == {*kept, *made}
    assert hub.sh(kept[0], 'echo well') == 'well\n'
    hub.delete(kept[1])
    assert code_of(hub.exec, kept[1], 'true')[0] == 404
    disk.empty()
    until(lambda: hub.metrics()['holt_registry_unsaved'] == 0, what='the registry')
    new = hub.create()
    hub.sh(new, 'echo new > f')
    hub.crash()
    hub = begin()
    assert hub.sandboxes() == {kept[0], kept[2], new, *made} and hub.snapshots() == {snapshot}
    assert hub.sh(new, 'cat f') == 'new\n'


def test_a_hub_that_starts_on_a_full_disk(begin, disk):
    """It has what there was, and neither loses nor invents anything."""
    hub = begin()
    kept = hub.create()
    hub.sh(kept, 'echo mine > f')
    snapshot = hub.take(kept)
    hub.crash()
    disk.fill()
    hub = begin()
    if hub.address:
        assert (hub.sandboxes() == {kept} and hub.snapshots() == {snapshot}
                and hub.sh(kept, 'cat f') == 'mine\n')
        hub.crash()
    else:
        assert hub.proc.wait(60) == 125 and "host's disk" in hub.said(), hub.said()
    new = os.path.join(disk.home, 'new')
    done = disk.run('serve', '--listen', '127.0.0.1:0', '--pool', '0', env={'HOLT_HOME': new},
                    text=True)
    assert done.returncode == 125 and "host's disk" in done.stderr, done
    disk.empty()
    shutil.rmtree(os.path.join(disk.path, 'new'), ignore_errors=True)
    hub = begin()
    assert (hub.sandboxes() == {kept} and hub.snapshots() == {snapshot}
            and hub.sh(kept, 'cat f') == 'mine\n')


# ---- a sandbox's own -----------------------------------------------------------------------------

def test_a_hub_that_ends_on_a_full_disk(disk, begin):
    """It says which sandboxes it could not stop, and the next one has them with their files."""
    hub = begin()
    boxes = [hub.create() for _ in range(2)]
    for box in boxes:
        hub.sh(box, f'head -c {NEEDED} /dev/urandom > f')
    disk.fill()
    done = disk.run('hub', 'stop', env=hub.env, text=True)
    assert done.returncode == 125 and 'run on for the next hub' in done.stderr, done
    assert all(f'not stopped is sandbox {box}: ' in done.stderr for box in boxes), done
    assert hub.proc.wait() == 125
    disk.empty()
    again = begin()
    assert all(again.sh(box, 'wc -c < f') == f'{NEEDED}\n' for box in boxes)
    done = disk.run('hub', 'stop', env=hub.env, text=True)
    assert done.returncode == 0 and 'not stopped' not in done.stderr, done


def test_of_a_sandbox(me, tmp_path):
    """Full of one file, or of many without content."""
    hub = Hub(me, tmp_path, '--pool', '0')
    for fill, calls in (('head -c 1G /dev/zero > fill', ['write']),
                        ('i=0; while : > many$i; do i=$((i+1)); done', ['write', 'mkdir'])):
        sandbox = hub.create(limits={'memory_mb': 64, 'disk_mb': 8})
        hub.sh(sandbox, 'mkdir d; echo kept > d/kept')
        done = hub.exec(sandbox, fill, timeout=60)
        assert done['hit_disk'], done
        for call in calls:
            with pytest.raises(Failed) as failed:
                hub.post(f'/v1/files/{call}', sandbox=sandbox, path='n',
                         **({'content': 'x' * 5000} if call == 'write' else {}))
            assert (failed.value.code == 'quota_exceeded'
                    and failed.value.error['context']['dimension'] == 'disk'), failed.value
        assert hub.post('/v1/files/read', sandbox=sandbox, path='d/kept')['content'] == 'kept\n'
        snapshot = hub.take(sandbox)  # its disk is not used for that
        restored = hub.restore(snapshot)
        assert (hub.sh(restored, 'cat d/kept; ls | wc -l')
                == hub.sh(sandbox, 'cat d/kept; ls | wc -l'))
        for one in (sandbox, restored):
            hub.sh(one, 'rm -f fill; find . -name "many*" -delete; echo well > n; cat n')
            assert (hub.post('/v1/files/write', sandbox=one, path='n', content='x' * 5000)
                    == {'status': 'ok'})
            hub.delete(one)
        hub.call('DELETE', f'/v1/snapshots/{snapshot}')
    assert hub.end() == 0, hub.said()
    hub.kill()
