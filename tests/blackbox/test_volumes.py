"""Folders of the host in sandboxes that stay: who may have which, and what becomes of them."""

import contextlib
import ctypes
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile
import tempfile
import threading

import pytest

import host
import image_files as files
from client import until
from rest import Failed
from soak import soak
from test_hub_cli import Hub
from test_serve import Session

pytestmark = pytest.mark.rights

RENAME_EXCHANGE = 2
PLACEHOLDERS = 0o1555, 0o1755, 0o1444  # src/box/warden/project.c
libc = ctypes.CDLL(None, use_errno=True)


class Home:
    """A home for hubs one after another, and beside it folders of the same user: `read` and `write`
    are for roots, `other` for nothing."""

    def __init__(self, who):
        self.who = who
        self.top = tempfile.mkdtemp(dir=who.work)
        os.chown(self.top, who.uid, who.uid)
        self.home = self.folder('home', mode=0o700)
        self.read, self.write, self.other = map(self.folder, ('read', 'write', 'other'))
        for path in (self.read, self.write, self.other):
            self.put(f'{path}/f', f'of {os.path.basename(path)}\n')
        self.started = []

    def own(self, path):
        os.chown(path, self.who.uid, self.who.uid, follow_symlinks=False)
        return path

    def folder(self, name, mode=0o755):
        path = os.path.join(self.top, name)
        os.mkdir(path)
        os.chmod(path, mode)
        return self.own(path)

    def put(self, path, text):
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        return self.own(path)

    def link(self, path, target):
        os.symlink(target, path)
        return self.own(path)

    def start(self, *arguments):
        self.started.append(Hub(self.who, self.home, '--listen', '127.0.0.1:0', '--pool', '1',
                                *arguments))
        return self.started[-1]

    def start_granted(self, *arguments):
        return self.start('--allow-volumes', self.read, '--allow-volumes', f'{self.write}:rw',
                          *arguments)

    def close(self):
        try:
            for hub in self.started:
                if hub.proc.poll() is None:
                    assert hub.end() == 0, hub.said()
                assert 'ERROR' not in hub.said() and 'Sanitizer' not in hub.said(), hub.said()
        finally:
            for hub in self.started:
                hub.kill()


@pytest.fixture
def home(who, residue):
    made = Home(who)
    yield made
    made.close()
    shutil.rmtree(made.top)


def volume(path, inside='/mnt/in', mode=None):
    return {'host': path, 'inside': inside, **({'mode': mode} if mode else {})}


def written(path):
    """What is in a folder, without the places that are held for files of the host's programs while
    a sandbox may write there (test_project.py)."""
    return sorted(name for name in os.listdir(path)
                  if os.stat(os.path.join(path, name)).st_mode & 0o7777 not in PLACEHOLDERS)


def sh(hub, sandbox, line):
    done = hub.exec(sandbox, line)
    return done['stdout'] + done['stderr']


def refused(hub, *volumes):
    """The failure of what an agent asks for over REST and over MCP, which is the same."""
    before = hub.names()
    with pytest.raises(Failed) as failed:
        hub.create(volumes=list(volumes))
    error = failed.value.error
    session = Session(hub)
    with hub.wire() as wire:
        session.call(wire, 'sandbox_create', pool='host', volumes=list(volumes))
        result = session.result(wire)
    text = result['content'][0]['text']
    assert result['isError'] and error['cause'] == json.loads(text)['cause'], (error, text)
    assert hub.names() == before
    return error


# ---- who may have which

def test_none_until_granted(home):
    hub = home.start()
    error = refused(hub, volume(home.read))
    assert error['code'] == 'forbidden', error
    assert '--allow-volumes' in error['cause'] and error['remediation'], error
    assert home.top not in json.dumps(error)
    # the control: the operator, who has the same by holt run -v
    box = hub.ok('up', '-v', f'{home.read}:/mnt/in').decode().strip()
    assert hub.ok('exec', box, '--', 'cat', '/mnt/in/f') == b'of read\n'
    home.who.run('run', '-v', f'{home.read}:/mnt/in', '--', 'cat', '/mnt/in/f', env=hub.env)


def test_granted(home):
    hub = home.start_granted()
    box = hub.create(volumes=[volume(home.read), volume(f'{home.write}', '/workspace/out', 'rw'),
                              volume(f'{home.write}/f', '/workspace/one')])
    assert sh(hub, box, 'cat /mnt/in/f out/f one') == 'of read\nof write\nof write\n'
    for line in ('echo x > /mnt/in/f', 'touch /mnt/in/g', 'rm /mnt/in/f', 'echo x > one'):
        assert 'Read-only' in sh(hub, box, line), line
    assert sh(hub, box, 'echo new > out/n; mkdir out/d; stat -c %U out/n') == 'agent\n'
    made = os.stat(f'{home.write}/n')
    assert (made.st_uid, made.st_gid) == (home.who.uid, home.who.uid)
    assert hub.post('/v1/files/read', sandbox=box, path='out/n')['content'] == 'new\n'
    hub.delete(box)
    assert sorted(os.listdir(home.write)) == ['d', 'f', 'n']  # what is written stays


def test_read_only_unless_said_and_granted(home):
    hub = home.start_granted()
    error = refused(hub, volume(home.read, mode='rw'))
    assert error['code'] == 'forbidden' and '--allow-volumes DIR:rw' in error['cause'], error
    box = hub.create(volumes=[volume(home.write)])
    assert 'Read-only' in sh(hub, box, 'touch /mnt/in/x')
    hub.delete(box)
    box = hub.ok('up', '-v', f'{home.other}:/mnt/in').decode().strip()
    assert 'Read-only' in sh(hub, box, 'touch /mnt/in/x')
    box = hub.ok('up', '-v', f'{home.other}:/mnt/in:rw').decode().strip()
    assert sh(hub, box, 'touch /mnt/in/x') == '' and os.path.exists(f'{home.other}/x')


def test_over_mcp(home):
    hub = home.start_granted()
    session = Session(hub)
    with hub.wire() as wire:
        session.call(wire, 'sandbox_create', pool='host', volumes=[volume(home.write, mode='rw')])
        box = session.result(wire)['structuredContent']['sandbox']
        session.call(wire, 'sandbox_get', sandbox=box)
        seen = json.loads(session.result(wire)['content'][0]['text'])
        assert seen['volumes'] == [volume(home.write, mode='rw')]
    assert session.run(box, 'cat /mnt/in/f; echo by mcp > /mnt/in/m') == 'of write\n'
    with open(f'{home.write}/m', encoding='utf-8') as f:
        assert f.read() == 'by mcp\n'


def test_an_mcp_server_by_itself(home):
    """`holt mcp` over stdio is an agent's, too."""
    client = home.who.mcp('--allow-volumes', home.read)
    client.initialize()
    made = client.call('sandbox_create', pool='host', volumes=[volume(home.read)])
    done = client.call('sandbox_exec', sandbox=made['sandbox'], command='cat /mnt/in/f')
    assert done['stdout'] == 'of read\n'
    for path in (home.other, home.top):
        assert client.fails('sandbox_create', pool='host',
                            volumes=[volume(path)])['code'] == 'denied'
    client.close()
    client = home.who.mcp()
    client.initialize()
    assert client.fails('sandbox_create', pool='host',
                        volumes=[volume(home.read)])['code'] == 'denied'
    client.close()


AT_THE_SOCKET = r"""
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
body = json.dumps({'volumes': [{'host': sys.argv[3], 'inside': '/mnt/in'}]})
s.sendall(f'POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\n'
          f'Authorization: Bearer {sys.argv[2]}\r\nContent-Type: application/json\r\n'
          f'Content-Length: {len(body)}\r\n\r\n{body}'.encode())
print(s.recv(12).decode())
"""


@pytest.mark.skipif(os.getuid() != 0, reason='needs a second user')
def test_another_user_at_the_socket(home):
    """With the token, where the socket's mode lets him connect: he is not the operator."""
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        os.chown(top, home.who.uid, home.who.uid)
        hub = home.start('--socket', f'{top}/s')
        os.chmod(f'{top}/s', 0o666)
        answers = []
        for uid in (12345, home.who.uid, 0):
            done = subprocess.run(['setpriv', f'--reuid={uid}', f'--regid={uid}', '--clear-groups',
                                   '/usr/bin/python3', '-c', AT_THE_SOCKET, f'{top}/s', hub.token,
                                   home.other], capture_output=True, text=True, check=True, cwd='/')
            answers.append(done.stdout.split()[1])
        assert answers == ['403', '200', '200'], answers
        assert hub.end() == 0, hub.said()


def test_a_root_by_another_name_and_in_another(home):
    os.mkdir(f'{home.read}/deep')
    home.put(f'{home.read}/deep/g', 'deep\n')
    home.own(f'{home.read}/deep')
    alias = home.link(f'{home.top}/alias', home.read)
    hub = home.start('--allow-volumes', f'{alias}/', '--allow-volumes', f'{home.read}/deep:rw')
    for path in (alias, home.read, f'{alias}//'):
        box = hub.create(volumes=[volume(path)])
        assert sh(hub, box, 'cat /mnt/in/f') == 'of read\n'
        hub.delete(box)
    refused(hub, volume(f'{home.read}/f', mode='rw'))
    for path in (f'{alias}/deep', f'{home.read}/deep/g'):  # of both roots the one that gives more
        hub.delete(hub.create(volumes=[volume(path, mode='rw')]))
    # what the link to the root leads to was decided when the hub began
    os.unlink(alias)
    home.link(alias, home.other)
    box = hub.create(volumes=[volume(alias)])
    assert sh(hub, box, 'cat /mnt/in/f') == 'of read\n'


def test_what_is_no_root(home):
    for text in (f'{home.top}/nothing', f'{home.top}/nothing:rw', ''):
        done = home.who.run('serve', '--listen', 'none', '--socket', f'{home.home}/s',
                            '--allow-volumes', text,
                            env={**home.who.env, 'HOLT_HOME': home.home})
        assert done.returncode and b'--allow-volumes' in done.stderr, done


def test_outside(home):
    beside = home.folder('read2')
    home.put(f'{beside}/f', 'beside\n')
    os.mkfifo(home.own(home.put(f'{home.read}/x', '')) + '.fifo')
    home.link(f'{home.read}/out', home.other)
    home.link(f'{home.read}/up', '../other')
    home.link(f'{home.read}/gone', '/nowhere/at/all')
    home.link(f'{home.read}/here', 'f')
    hub = home.start_granted()
    for path in (home.other, beside, home.top, '/', '/etc', f'{home.read}/../other',
                 f'{home.read}/out', f'{home.read}/up', f'{home.read}/out/f', f'{home.read}/gone',
                 hub.home, f'{hub.home}/token'):
        error = refused(hub, volume(path))
        assert error['code'] == 'forbidden' and home.top not in json.dumps(error), (path, error)
    # whether there is something is not told of what is outside
    texts = {refused(hub, volume(p))['cause'] for p in (home.other, f'{home.top}/nothing',
                                                        '/root/.ssh', '/nowhere')}
    assert len(texts) == 1, texts
    texts = {refused(hub, volume(f'{home.read}/{p}'))['cause'] for p in ('out', 'gone', 'out/none')}
    assert len(texts) == 1, texts
    for path in (f'{home.read}/nothing', f'{home.read}/f/below', 'relative', f'{home.read}/x.fifo',
                 f'{home.read}/' + 'x' * 300):
        assert refused(hub, volume(path))['code'] != 'forbidden', path
    for inside in ('relative', '/', '/proc/x', '/mnt/../..'):
        assert refused(hub, volume(home.read, inside))['code'] == 'invalid_input', inside
    status, _ = hub.asked('POST', '/v1/sandboxes', {'volumes': [volume(home.read)] * 33})
    assert status == 400
    box = hub.create(volumes=[volume(f'{home.read}/here')])  # the control: a link that stays within
    assert sh(hub, box, 'cat /mnt/in') == 'of read\n'


def test_holts_own_folders(home):
    """No root gives them, nor does the operator."""
    hub = home.start('--allow-volumes', f'{home.top}:rw')
    for path in (home.home, home.top, f'{home.home}/token'):
        assert refused(hub, volume(path))['code'] == 'forbidden', path
        hub.fails(125, 'Holt itself', 'up', '-v', f'{path}:/x')
    hub.delete(hub.create(volumes=[volume(home.other, mode='rw')]))  # the control


@contextlib.contextmanager
def bound(what, at):
    """A second name of a folder."""
    os.makedirs(at)
    subprocess.run(['mount', '--bind', what, at], check=True)
    try:
        yield at
    finally:
        subprocess.run(['umount', at], check=True)


def test_what_agents_keep(home):
    """Log-ins of agents: a root that holds Holt's own folder gives no client what is in its
    `state`, by whatever name. The operator's own volumes may be there, and forks have them again;
    but no name there leads to the rest of that folder."""
    state = f'{home.home}/state/a'
    rest = f'{home.home}/rest'
    os.makedirs(state)
    os.mkdir(rest)
    for path in (os.path.dirname(state), state, rest):
        home.own(path)
    home.put(f'{state}/login', 'of a\n')
    home.link(f'{home.other}/state', os.path.dirname(state))
    with bound(home.home, f'{home.other}/twin') as twin, bound(home.home, f'{state}/all') as around:
        hub = home.start('--allow-volumes', f'{home.top}:rw-all')
        for path in (state, f'{state}/login', f'{home.read}/../home/state/a', f'{twin}/state/a',
                     f'{home.other}/state/a', f'{home.other}/state/a/login'):
            for mode in ('ro', 'rw-all'):
                assert refused(hub, volume(path, mode=mode))['code'] == 'forbidden', (path, mode)
        for path in (around, f'{around}/state', f'{around}/rest', f'{around}/token'):
            hub.fails(125, 'Holt itself', 'up', '-v', f'{path}:/x')
        hub.ok('up', '-n', 'own', '-v', f'{state}:/x:rw-all')
        assert sh(hub, 'own', 'cat /x/login') == 'of a\n'
        hub.ok('fork', '-n', 'again', 'own')
        assert sh(hub, 'again', 'cat /x/login') == 'of a\n'
        for name in ('own', 'again'):
            hub.delete(name)


def test_the_view(home):
    hub = home.start_granted()
    mine = hub.ok('up', '-n', 'mine', '-v', f'{home.other}:/a', '-v', f'{home.read}:/b:ro')
    theirs = hub.create(volumes=[volume(home.write, '/c', 'rw')])
    assert mine == b'mine\n'
    here = json.loads(hub.ok('inspect', 'mine'))['volumes']
    assert here == [volume(home.other, '/a', 'ro'), volume(home.read, '/b', 'ro')]
    there = hub.call('GET', '/v1/sandboxes/mine')
    assert there['volumes'] == [{'inside': '/a', 'mode': 'ro'}, {'inside': '/b', 'mode': 'ro'}]
    assert home.other not in json.dumps(hub.call('GET', '/v1/sandboxes'))
    wanted = [volume(home.write, '/c', 'rw')]
    assert hub.call('GET', f'/v1/sandboxes/{theirs}')['volumes'] == wanted
    assert json.loads(hub.ok('inspect', theirs))['volumes'] == wanted
    assert 'volumes' not in hub.call('GET', f'/v1/sandboxes/{hub.create()}')


def test_wrong_words(home):
    hub = home.start()
    for words, why in ((('nothing:/x',), 'No such file'), ((f'{home.read}',), '-v takes'),
                       ((f'{home.read}:x',), '-v takes'), ((f'{home.read}:/x:rx',), '-v takes'),
                       ((f'{home.read}:/x:rw,size=1',), 'size='),
                       ((f'{home.read}:/x',) * 33, 'at most')):
        options = [option for word in words for option in ('-v', word)]
        hub.fails(125, why, 'up', *options)
    assert hub.names() == set()


# ---- links that a sandbox plants

def test_a_planted_link(home):
    """A sandbox that may write puts a link into its folder, and the folder is given again later."""
    hub = home.start_granted()
    first = hub.create(volumes=[volume(home.write, mode='rw')])
    sh(hub, first, f'cd /mnt/in; ln -s {home.other} abs; ln -s ../other rel; mkdir d; ln -s '
                   f'{home.other} d/deep')
    hub.delete(first)
    for name in ('abs', 'rel', 'd/deep', 'abs/f'):
        assert refused(hub, volume(f'{home.write}/{name}'))['code'] == 'forbidden', name
        for verb in (('up',), ('run',)):
            done = hub.run(*verb, '-v', f'{home.write}/{name}:/x',
                           *(['--', 'cat', '/x/f', '/x'] if verb == ('run',) else []))
            assert done.returncode == 125 and b'is a link' in done.stderr, done
            assert b'of other' not in done.stdout and home.other.encode() in done.stderr, done
    # the controls: other programs follow it, and a folder without links is given
    with open(f'{home.write}/abs/f', encoding='utf-8') as f:
        assert f.read() == 'of other\n'
    assert home.who.run('run', '-v', f'{home.write}/d:/x', '--', 'ls', '/x').stdout == b'deep\n'


@pytest.mark.skipif(os.getuid() != 0, reason='needs a folder of somebody else')
def test_a_link_that_no_sandbox_could_plant(home):
    """In a folder that the caller may not write. To root there is none."""
    top = tempfile.mkdtemp()
    os.chmod(top, 0o755)
    os.symlink(home.read, f'{top}/link')
    try:
        done = home.who.run('run', '-v', f'{top}/link:/x', '--', 'cat', '/x/f')
        assert done.stdout == b'of read\n' if home.who.uid else b'is a link' in done.stderr, done
    finally:
        shutil.rmtree(top)


def exchange(one, other):
    return libc.renameat2(-100, one.encode(), -100, other.encode(), RENAME_EXCHANGE)


def test_swapped_while_mounted(home):
    """A sandbox that may write a granted folder swaps a name in it with a link to another one,
    while sandboxes are given that name: they get the folder, or nothing."""
    os.mkdir(f'{home.write}/race')
    home.put(f'{home.write}/race/f', 'plain\n')
    home.own(f'{home.write}/race')
    hub = home.start_granted('--max-sandboxes', '40')
    hub.post('/v1/sandboxes', id='swapper', volumes=[volume(home.write, mode='rw')])
    path, fooled, stop = f'{home.write}/race', [], threading.Event()
    line = f"""
import ctypes, os, time
libc = ctypes.CDLL(None)
os.symlink({home.other!r}, '/mnt/in/link')
i = 0
while not os.path.exists('/mnt/in/stop'):
    libc.renameat2(-100, b'/mnt/in/race', -100, b'/mnt/in/link', {RENAME_EXCHANGE})
    i += 1
    time.sleep(i * 37 % 400 / 1e6)
"""
    hub.exec('swapper', 'python3', args=['-c', line], background=True)
    until(lambda: os.path.lexists(f'{home.write}/link'))

    def look_then_open():  # the control: by a path that is looked at first
        while not stop.is_set() and not fooled:
            try:
                if os.path.islink(path):
                    continue
                with open(f'{path}/f', encoding='utf-8') as f:
                    fooled.extend([1] * (f.read() != 'plain\n'))
            except OSError:
                pass
    control = threading.Thread(target=look_then_open)
    control.start()
    given = denied = rounds = 0
    try:
        while rounds < soak(4000) or (rounds < 4000 and not (given and denied and fooled)):
            rounds += 1
            try:
                box = hub.create(volumes=[volume(path)])
            except Failed as failed:
                denied += 1
                assert home.top not in json.dumps(failed.error)
                continue
            given += 1
            assert sh(hub, box, 'cat /mnt/in/f') == 'plain\n'
            hub.delete(box)
    finally:
        stop.set()
        control.join()
        home.put(f'{home.write}/stop', '')
    assert given and denied and fooled, (given, denied, len(fooled))


# ---- what becomes of them

def test_pause_and_fork(home):
    hub = home.start_granted()
    box = hub.create(volumes=[volume(home.write, '/workspace/x/sys', 'rw')])
    hub.ok('pause', box)
    hub.ok('resume', box)
    # what it stands in may be renamed, and a link be put there: the kernel's files stay hidden
    assert sh(hub, box, 'mv x y; ln -s /proc x; cat y/sys/f; ls -A /proc/sys') == 'of write\n'
    child = hub.post(f'/v1/sandboxes/{box}/fork')['id']
    for one in (box, child):
        assert sh(hub, one, 'ls -A /proc/sys; ls -d /proc/self /usr/bin') == ('/proc/self\n'
                                                                              '/usr/bin\n')
        assert hub.call('GET', f'/v1/sandboxes/{one}')['volumes'] == [
            volume(home.write, '/workspace/x/sys', 'rw')]
    assert sh(hub, box, 'cat y/sys/f') == 'of write\n'
    assert written(home.write) == ['f']


def test_fork_of_what_is_gone(home):
    hub = home.start_granted()
    box = hub.create(volumes=[volume(home.write, mode='rw')])
    os.rename(home.write, f'{home.top}/away')
    with pytest.raises(Failed) as failed:
        hub.post(f'/v1/sandboxes/{box}/fork')
    assert failed.value.code == 'invalid_input' and '/mnt/in' in failed.value.error['cause']
    assert home.top not in json.dumps(failed.value.error)
    assert sh(hub, box, 'cat /mnt/in/f') == 'of write\n'  # it still has what it was given
    home.link(home.write, home.other)  # nor is a link that takes its name
    with pytest.raises(Failed):
        hub.post(f'/v1/sandboxes/{box}/fork')
    os.unlink(home.write)
    os.rename(f'{home.top}/away', home.write)
    child = hub.post(f'/v1/sandboxes/{box}/fork')['id']
    assert sh(hub, child, 'cat /mnt/in/f') == 'of write\n'


def test_snapshots_leave_them_out(home):
    hub = home.start_granted()
    box = hub.create(volumes=[volume(home.write, '/workspace/in', 'rw'),
                              volume(f'{home.write}/f', '/workspace/one')])
    sh(hub, box, 'echo own > own')
    kept = hub.post(f'/v1/sandboxes/{box}/snapshots')['id']
    back = hub.post(f'/v1/snapshots/{kept}/restore')['id']
    assert sh(hub, back, 'cat own; cat one 2>/dev/null; ls -A in 2>/dev/null') == 'own\n'
    assert 'volumes' not in hub.call('GET', f'/v1/sandboxes/{back}')
    assert written(home.write) == ['f']
    hub.delete(back)
    # and no later hub thinks otherwise
    back = hub.post(f'/v1/snapshots/{kept}/restore')['id']
    hub.ok('stop', back)
    hub.ok('resume', back)
    assert 'volumes' not in hub.call('GET', f'/v1/sandboxes/{back}')


def test_snapshots_with_volumes_where_nobody_may_write(home):
    """Nobody in a sandbox could make their places, if a hub as root has made it."""
    hub = home.start_granted()
    box = hub.create(volumes=[volume(home.write, '/data', 'rw'), volume(home.read, '/srv/a/b/c'),
                              volume(f'{home.read}/f', '/etc/deep/one')])
    assert sh(hub, box, 'echo own > own; cat /data/f /srv/a/b/c/f /etc/deep/one') == (
        'of write\nof read\nof read\n')
    kept = hub.post(f'/v1/sandboxes/{box}/snapshots')['id']
    back = hub.post(f'/v1/snapshots/{kept}/restore')['id']
    assert sh(hub, back, 'cat own; cat /data/f /srv/a/b/c/f /etc/deep/one 2>/dev/null') == 'own\n'
    hub.ok('stop', box)
    hub.ok('resume', box)
    assert sh(hub, box, 'cat own /data/f /srv/a/b/c/f /etc/deep/one') == (
        'own\nof write\nof read\nof read\n')


def test_stopped_and_started(home):
    hub = home.start_granted()
    box = hub.create(volumes=[volume(home.write, '/workspace/in', 'rw'),
                              volume(f'{home.read}/f', '/workspace/one')])
    mine = hub.ok('up', '-n', 'mine', '-v', f'{home.other}:/o:rw').decode().strip()
    sh(hub, box, 'echo own > own; echo x > in/x')
    for one in (box, mine):
        hub.ok('stop', one)
    views = [hub.call('GET', f'/v1/sandboxes/{one}')['volumes'] for one in (box, mine)]
    for one in (box, mine):
        assert 'volumes_gone' not in hub.post('/v1/resume', sandbox=one)
    assert sh(hub, box, 'cat own in/x in/f one') == 'own\nx\nof write\nof read\n'
    assert sh(hub, mine, 'cat /o/f') == 'of other\n'
    assert views == [hub.call('GET', f'/v1/sandboxes/{one}')['volumes'] for one in (box, mine)]

    # another operator's rules hold for what starts again, but for what the operator gave
    for one in (box, mine):
        hub.ok('stop', one)
    assert hub.end() == 0
    hub = home.start('--allow-volumes', home.read)
    with pytest.raises(Failed) as failed:
        hub.post('/v1/resume', sandbox=box)
    assert failed.value.code == 'forbidden' and '--allow-volumes' in failed.value.error['cause']
    assert hub.call('GET', f'/v1/sandboxes/{box}')['state'] == 'stopped'
    hub.post('/v1/resume', sandbox=mine)
    assert sh(hub, mine, 'cat /o/f') == 'of other\n'
    assert hub.end() == 0
    hub = home.start_granted()
    hub.post('/v1/resume', sandbox=box)
    assert sh(hub, box, 'cat own in/x') == 'own\nx\n'


def gone(hub, box):
    answer = hub.post('/v1/resume', sandbox=box)
    told = [e['detail'] for e in hub.call('GET', f'/v1/events?sandbox={box}')['events']
            if e['kind'] == 'volume_gone']
    return answer.get('volumes_gone', []), told


def another_kind(kind, path, repository):
    os.rename(path, path + '.old')
    if kind == 'file':
        open(path, 'w').close()
    elif kind == 'fifo':
        os.mkfifo(path)
    elif kind == 'link':
        os.symlink(path + '.old', path)
    elif kind == 'loop':
        os.symlink(path, path)
    elif kind == 'socket':
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path)
    elif kind == 'bare repository':
        subprocess.run(['git', 'init', '-q', '--bare', path], check=True)
    elif kind == 'repository that runs a program':
        subprocess.run(['git', 'init', '-q', path], check=True)
        subprocess.run(['git', '-C', path, 'config', 'core.hooksPath', '.'], check=True)


@pytest.mark.parametrize('kind', ('file', 'fifo', 'link', 'loop', 'socket', 'bare repository',
                                  'repository that runs a program', 'worktree removed'))
def test_started_whatever_has_the_name_now(home, kind):
    """Its own files are reached whatever the host has in place of a volume, and it is told."""
    hub = home.start_granted()
    given = home.folder('write/p')
    repository = f'{home.write}/repository'
    if kind == 'worktree removed':
        git = ['git', '-c', 'safe.directory=*', '-c', 'user.name=a', '-c', 'user.email=a@b',
               '-C', repository]
        subprocess.run(['git', 'init', '-q', repository], check=True)
        subprocess.run([*git, 'commit', '-q', '--allow-empty', '-m', 'a'], check=True)
        os.rmdir(given)
        subprocess.run([*git, 'worktree', 'add', '-q', given], check=True)
    subprocess.run(['chown', '-R', f'{home.who.uid}:{home.who.uid}', home.write], check=True)
    box = hub.ok('up', '-n', 'kind', '-v', f'{given}:/data:rw').decode().strip()
    sh(hub, box, 'echo own > own')
    hub.ok('stop', box)
    if kind == 'worktree removed':
        subprocess.run([*git, 'worktree', 'remove', '--force', given], check=True)
    else:
        another_kind(kind, given, repository)
    hub.ok('resume', box)
    assert sh(hub, box, 'cat own') == 'own\n'
    hub.delete(box)


@pytest.mark.parametrize('act', ('renamed', 'removed', 'parent renamed'))
def test_started_without_what_is_gone(home, act):
    """Nothing can be written where it was, and it is there again once the host has it."""
    hub = home.start_granted()
    given = home.folder('write/p')
    home.folder('write/p/in')
    home.put(f'{given}/in/f', 'given\n')
    box = hub.create(volumes=[volume(f'{given}/in', '/workspace/in', 'rw'),
                              volume(f'{given}/in', '/ro'),
                              volume(f'{given}/in/f', '/workspace/one'),
                              volume(f'{given}/in/f', '/etc/hostname'),
                              volume(home.read, '/still')])
    paths = ['/workspace/in', '/ro', '/workspace/one', '/etc/hostname']
    sh(hub, box, 'echo own > own; echo x > in/x')
    hub.ok('stop', box)
    moved = given if act == 'parent renamed' else f'{given}/in'
    if act == 'removed':
        shutil.copytree(moved, f'{home.top}/away')
        shutil.rmtree(moved)
    else:
        os.rename(moved, f'{home.top}/away')
    assert gone(hub, box) == (paths, paths)
    line = ('cat own /still/f; stat -c %a in /ro one; ls -A in /ro one | grep -v -e : -e ^$;'
            'chmod 777 in; touch in/new /ro/new one/new; mkdir in/d; rmdir in; mv in away;'
            'ls -A in')
    assert hub.exec(box, line)['stdout'] == 'own\nof read\n555\n555\n555\n'
    # a fork is without it, too, and what a snapshot makes has no volumes
    child = hub.post(f'/v1/sandboxes/{box}/fork')['id']
    assert hub.exec(child, 'cat own; touch in/new; ls -A in')['stdout'] == 'own\n'
    kept = hub.post(f'/v1/sandboxes/{box}/snapshots')['id']
    new = hub.post(f'/v1/snapshots/{kept}/restore')['id']
    assert sh(hub, new, 'cat own; ls -A in') == 'own\n'
    for one in (box, child):
        hub.ok('stop', one)
    shutil.copytree(f'{home.top}/away', moved)
    subprocess.run(['chown', '-R', f'{home.who.uid}:{home.who.uid}', moved], check=True)
    for one in (box, child):
        assert gone(hub, one)[0] == []
        assert sh(hub, one, 'cat own in/x /ro/f one') == 'own\nx\ngiven\ngiven\n'


def test_started_without_is_told(home):
    """On standard error of `holt start`. A link, which may lead anywhere, is not followed."""
    hub = home.start_granted()
    hub.ok('up', '-n', 'mine', '-v', f'{home.other}:/o:rw')
    hub.ok('stop', 'mine')
    os.rename(home.other, f'{home.top}/away')
    for target in home.read, '/nowhere':
        os.symlink(target, home.other)
        assert hub.post('/v1/resume', sandbox='mine')['volumes_gone'] == ['/o']
        assert sh(hub, 'mine', 'ls -A /o') == ''
        hub.ok('stop', 'mine')
        os.unlink(home.other)
    done = hub.run('start', 'mine')
    assert done.returncode == 0, done
    assert b'without its volume, which is gone or can not be given: /o' in done.stderr, done
    hub.ok('stop', 'mine')
    os.rename(f'{home.top}/away', home.other)
    assert not hub.run('start', 'mine').stderr


# Where its volume stood it has other files, of which the archive says that they replace all.
RENAMED = ('cd /workspace; mkdir -p a/b; mv deep moved; mkdir -p deep/in/d; echo own > deep/in/f;'
           'echo own > deep/in/new; echo own > deep/beside; mv x y; echo file > x')


def test_started_over_what_has_its_place(home):
    hub = home.start_granted()
    box = hub.create(volumes=[volume(home.write, '/workspace/deep/in', 'rw'),
                              volume(home.read, '/workspace/x/in')])
    sh(hub, box, RENAMED)
    before = sorted(os.listdir(home.write)), sorted(os.listdir(home.read))
    hub.ok('stop', box)
    hub.ok('resume', box)
    assert (sorted(os.listdir(home.write)), sorted(os.listdir(home.read))) == before
    assert sh(hub, box, 'cat deep/in/f x/in/f; cat deep/beside; ls deep') == (
        'of write\nof read\nown\nbeside\nin\n')


def test_started_over_a_replaced_folder_of_an_image(home):
    """The archive says of the folder in which the volume stands that nothing of the image's is left
    in it: what the volume holds is no part of that."""
    root = home.folder('root')
    packed = files.busybox_layer(files.folder('w'), files.folder('w/data'),
                                 files.entry('w/data/of-image', b'x'), files.folder('w/data/gone'),
                                 files.entry('w/data/gone/x', b'x'))
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        tar.extractall(root)
    subprocess.run(['chown', '-R', f'{home.who.uid}:{home.who.uid}', root], check=True)
    hub = home.start_granted()
    hub.ok('images', 'import', root, 'small')
    if home.who.uid:
        pytest.skip('without privileges no directory of an image can be renamed')
    box = hub.create(template='small', volumes=[volume(home.write, '/w/data/in', 'rw')])
    line = 'cd /w; mv data old; mkdir -p data/in; echo own > data/in/own; rm -r old/gone'
    assert sh(hub, box, line) == ''
    hub.ok('stop', box)
    hub.ok('resume', box)
    assert written(home.write) == ['f']
    assert sh(hub, box, 'ls /w/data; cat /w/data/in/f') == 'in\nof write\n'


def test_adopted_by_the_next_hub(home):
    hub = home.start_granted()
    box = hub.create(volumes=[volume(home.write, mode='rw')])
    mine = hub.ok('up', '-v', f'{home.other}:/o').decode().strip()
    child = hub.post(f'/v1/sandboxes/{box}/fork')['id']
    views = {one: hub.call('GET', f'/v1/sandboxes/{one}')['volumes'] for one in (box, mine, child)}
    hub.proc.kill()
    hub.proc.wait()
    hub = home.start()  # whose operator allows less: what runs goes on with what it has
    for one, view in views.items():
        assert hub.call('GET', f'/v1/sandboxes/{one}')['volumes'] == view
    assert sh(hub, box, 'echo after > /mnt/in/after; cat /mnt/in/f') == 'of write\n'
    assert sh(hub, child, 'cat /mnt/in/after') == 'after\n'
    assert sh(hub, mine, 'cat /o/f') == 'of other\n'
    again = hub.post(f'/v1/sandboxes/{box}/fork')['id']
    assert sh(hub, again, 'cat /mnt/in/after') == 'after\n'
    refused_now = hub.asked('POST', '/v1/sandboxes', {'volumes': [volume(home.write)]})
    assert refused_now[0] == 403


def test_one_with_volumes_stays_awake(home):
    """So that what is in its folder is never another one's by the time that it wakes."""
    hub = home.start_granted('--sleep-after', '0.2')
    plain = hub.create()
    box = hub.create(volumes=[volume(home.write)])
    until(lambda: hub.metrics()['holt_sandboxes_asleep'] == 1, what='the plain one sleeps')
    os.rename(home.write, f'{home.top}/away')
    assert sh(hub, box, 'cat /mnt/in/f') == 'of write\n'
    assert sh(hub, plain, 'echo awake') == 'awake\n'
    os.rename(f'{home.top}/away', home.write)
    assert host.program(hub.proc.pid, 'holt-warden')
