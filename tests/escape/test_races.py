"""N2: every call that takes a path, over REST, while what the path leads through is swapped with a
link out as fast as the kernel can; and the same calls with paths that are no files of the
sandbox's. The control does what the hub does by hand, outside: it looks whether there is a link,
and then goes that way, and each of these acts is fooled."""

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time

import pytest

import image_files as files
import world as worlds
from client import until
from door import Closed
from image_files import entry, folder, symlink
from rest import Failed, Rest
from test_symlinks import FLIP

ROUNDS, SECONDS = 8, 60
TYPED = {'not_found', 'forbidden', 'file_failed', 'conflict', 'invalid_input', 'exec_failed',
         'body_too_large'}
WHERE = '/workspace/t'


def tar(**contents):
    """An archive of files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as made:
        for name, text in contents.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text), 0o644
            made.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


class Hub(Rest):
    """The calls that take a path: each gives what came, as text; a failure is a Failed."""

    def file(self, what, sandbox, path, **more):
        return json.dumps(self.post(f'/v1/files/{what}', sandbox=sandbox, path=path, **more))

    def read(self, sandbox, path):
        return self.file('read', sandbox, path + '/file')

    def write(self, sandbox, path):
        return self.file('write', sandbox, path + '/written', content='written')

    def list(self, sandbox, path):
        return self.file('list', sandbox, path)

    def stat(self, sandbox, path):
        return self.file('stat', sandbox, path + '/file')

    def mkdir(self, sandbox, path):
        return self.file('mkdir', sandbox, path + '/made')

    def move(self, sandbox, path):
        self.file('write', sandbox, WHERE + '/moved', content='moved')
        return self.file('move', sandbox, WHERE + '/moved', to=path + '/moved')

    def away(self, sandbox, path):
        return self.file('move', sandbox, path + '/prey', to=WHERE + '/caught')

    def remove(self, sandbox, path):
        return self.file('remove', sandbox, path + '/prey', recursive=True)

    def archive(self, sandbox, path):
        reply = self.raw('GET', f'/v1/sandboxes/{sandbox}/archive?path={path}')
        if reply.status != 200:
            raise Failed(reply.status, json.loads(reply.body)['error'])
        return reply.body.decode('latin-1')

    def upload(self, sandbox, path):
        data = tar(uploaded='uploaded')
        head = self.request('PUT', f'/v1/sandboxes/{sandbox}/archive?path={path}',
                            fields=[f'Content-Length: {len(data)}'])
        with self.wire() as wire:
            reply = wire.ask(head.encode() + data, 'PUT')
        if reply.status != 200:
            raise Failed(reply.status, json.loads(reply.body)['error'])
        return reply.body.decode()

    def watch(self, sandbox, path):
        """What it says first."""
        with self.wire() as wire:
            wire.send(self.request('GET', f'/v1/sandboxes/{sandbox}/watch?path={path}'))
            status, _ = wire.head()
            if status == 200:
                return wire.chunk().decode()
            raise Failed(status, {'code': 'not_found', 'cause': ''})

    def run(self, sandbox, path):
        """A command that starts there."""
        return json.dumps(self.exec(sandbox, 'cat file; echo x > started', working_dir=path))


CALLS = ('read', 'write', 'list', 'stat', 'mkdir', 'move', 'away', 'remove', 'archive', 'upload',
         'watch', 'run')


@pytest.fixture(scope='module')
def rest(who, world):
    home = tempfile.mkdtemp(prefix='races.', dir=who.top)
    os.chown(home, who.uid, who.uid)
    hub = Hub(who, home, '--listen', '127.0.0.1:0', '--socket', 'none', '--pool', '1')
    yield hub
    hub.works()
    assert hub.end() == 0, hub.said()
    hub.kill()


@pytest.fixture
def prey(world):
    """What must be as it was: a folder of the host that everybody may write,
    and a file with a secret in it."""
    inside = os.path.join(world.place, 'prey')
    with open(inside, 'w', encoding='utf-8') as f:
        f.write(worlds.SECRET)
    link = os.path.join(world.place, 'file')
    os.symlink(world.file, link)
    before = sorted(os.listdir(world.place))
    yield world.place
    assert (sorted(os.listdir(world.place)) == before
            and os.path.getsize(inside) == len(worlds.SECRET))
    os.unlink(inside)
    os.unlink(link)


# ---- swapped -------------------------------------------------------------------------------------

# The real folder and its parent, each swapped with a link.
SWAPPED = '''mkdir -p t/p/d && cd t/p && echo inside > d/file && echo prey > d/prey &&
ln -s {target} e && cd .. && mkdir q && ln -s {target} q/d && cd .. &&
(python3 -c "$FLIP" /workspace/t/p/d /workspace/t/p/e {stop} &
 python3 -c "$FLIP" /workspace/t/p /workspace/t/q {stop} &) > /dev/null 2>&1
while ! test -e /tmp/ready; do :; done'''


@pytest.mark.tries(what='swap a folder, and its parent, with a link to the host while each file '
                   'call and each start of a program goes through',
                   by='walked and opened inside by PID 1',
                   control='each act is fooled outside, by the same swapping')
@pytest.mark.parametrize('up', ['', '/proc/self/root'])
def test_calls_while_swapped(rest, world, prey, up):
    sandbox = rest.create()
    try:
        done = rest.exec(sandbox, SWAPPED.format(target=up + prey, stop=''), env={'FLIP': FLIP})
        assert done['exit_code'] == 0, done
        codes = {call: set() for call in CALLS}
        # how long it takes until one comes through is the scheduler's choice
        n, late = 0, time.monotonic() + SECONDS
        while n < ROUNDS or ('ok' not in set().union(*codes.values()) and time.monotonic() < late):
            n += 1
            for call in CALLS:
                try:
                    text = getattr(rest, call)(sandbox, WHERE + '/p/d')
                    codes[call].add('ok')
                except Failed as failed:
                    assert failed.code in TYPED, (call, failed)
                    codes[call].add(failed.code)
                    text = failed.error['cause']
                except Closed as closed:  # an archive that was swapped in the middle has no end
                    assert call == 'archive'
                    text = closed.args[0].decode('latin-1')
                assert worlds.SECRET not in text, (call, text)
            if n > 5 and all('ok' in seen for call, seen in codes.items()
                             if call not in ('away', 'remove', 'mkdir')):
                break
        assert {'ok'} < set().union(*codes.values()), codes  # some went the one way, some the other
        child = rest.post(f'/v1/sandboxes/{sandbox}/fork')['id']  # which copies in the middle of it
        assert rest.exec(child, 'ls t')['exit_code'] == 0
        rest.delete(child)
        assert rest.exec(sandbox, 'touch /tmp/stop; echo well')['stdout'] == 'well\n'
    finally:
        rest.delete(sandbox)


def naive(act, d, target):
    """What a program does that looks and then goes; true when it was led to the target."""
    name = f'{act}-{os.urandom(4).hex()}'
    there = os.path.join(target, name)
    if act in ('remove', 'away'):
        with open(there, 'w', encoding='utf-8'):
            pass
    if os.path.islink(d):
        return False
    time.sleep(0.0002)  # it may lose the processor here: on a busy machine it rarely does by itself
    path = os.path.join(d, name)
    if act == 'read':
        with open(d + '/file', encoding='utf-8') as f:
            return f.read() == worlds.SECRET
    if act == 'list':
        return 'prey' in os.listdir(d)
    if act == 'stat':
        return os.stat(d + '/file').st_size == len(worlds.SECRET)
    if act in ('write', 'upload'):
        if act == 'upload':
            with tarfile.open(fileobj=io.BytesIO(tar(**{name: 'x'}))) as made:
                made.extractall(d, filter='data') if sys.version_info >= (
                    3, 12) else made.extractall(d)
        else:
            with open(path, 'w', encoding='utf-8'):
                pass
        return os.path.exists(there)
    if act == 'mkdir':
        os.mkdir(path)
        return os.path.exists(there)
    if act == 'move':
        os.rename(tempfile.mkstemp(dir=os.path.dirname(d))[1], path)
        return os.path.exists(there)
    if act in ('away', 'remove'):
        os.unlink(path) if act == 'remove' else os.rename(path, d + '.caught')
        return not os.path.exists(there)
    if act == 'archive':
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode='w', dereference=True) as made:
            made.add(d, '.')
        return worlds.SECRET.encode() in out.getvalue()
    if act == 'watch':
        fd = os.open(d, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return os.path.samestat(os.fstat(fd), os.stat(target))
        finally:
            os.close(fd)
    os.chdir(d)
    try:
        return os.getcwd() == os.path.realpath(target)
    finally:
        os.chdir('/')


def test_swapping_fools_who_looks_first():
    """The control, in a folder that goes away with it:
    each of the acts goes where the link leads, sooner or later."""
    with tempfile.TemporaryDirectory() as top:
        target, d, e = (os.path.join(top, name) for name in ('target', 'd', 'e'))
        for path in (target, d):
            os.mkdir(path)
            with open(path + '/file', 'w', encoding='utf-8') as f:
                f.write(worlds.SECRET if path == target else 'inside')
        with open(target + '/prey', 'w', encoding='utf-8'):
            pass
        os.symlink(target, e)
        script = FLIP.replace('/tmp/', top + '/')
        with subprocess.Popen(['/usr/bin/python3', '-c', script, d, e]) as flipper:
            try:
                until(lambda: os.path.exists(top + '/ready'))
                for act in CALLS:
                    def fooled(act=act):
                        try:
                            return naive(act, d, target)
                        except OSError:
                            return False
                    until(fooled, timeout=100, what=f'{act} that is fooled')
            finally:
                with open(top + '/stop', 'w', encoding='utf-8'):
                    pass


# ---- standing still ------------------------------------------------------------------------------

# Each is made as d in a folder of its own, or is a path.
TRAPS = {
    'absolute link': 'ln -s {prey} d', 'relative link': 'ln -s ../../../../../..{prey} d',
    'link by /proc/self/root': 'ln -s /proc/self/root{prey} d',
    'link by /proc/1/root': 'ln -s /proc/1/root{prey} d',
    'link by /proc/1/cwd': 'ln -s /proc/1/cwd{prey} d',
    'link by a descriptor': 'ln -s /proc/1/fd/3 d', 'link to the processes': 'ln -s /proc/self d',
    'link to itself': 'ln -s d d', 'pipe': 'mkfifo d', 'socket': 'python3 -c "import socket; '
    'socket.socket(socket.AF_UNIX).bind(\\"d\\")"', 'device': 'ln -s /dev/zero d',
    'hard link': 'echo x > o; ln o d', 'file': 'echo x > d',
    'hard link to a link': 'ln -s {prey} o; ln -P o d',
}
PATHS = {
    'dots': '../../../../../../..{prey}', 'absolute': '{prey}',
    '/proc/self/root': '/proc/self/root{prey}', '/proc/1/root': '/proc/1/root{prey}',
    'NUL': WHERE + '/p\0{prey}', 'descriptors': '/proc/self/fd/3', 'device': '/dev/zero',
    'control': '/proc/sys/kernel', 'newline': '{prey}\n',
}


def asked(rest, call, sandbox, path):
    """What a call gave: a code and a text. Paths in a query are escaped."""
    if call in ('archive', 'upload', 'watch'):
        path = ''.join(c if c.isalnum() or c in '/._-' else f'%{ord(c):02x}' for c in path)
    try:
        return 'ok', getattr(rest, call)(sandbox, path)
    except Failed as failed:
        return failed.code, failed.error['cause']


@pytest.mark.tries(what='give each file call a path through links to the host, /proc/self/root, '
                   'descriptors of PID 1, hard links, pipes, sockets, '
                   'devices, .. and NUL', by='walked and opened inside by PID 1')
@pytest.mark.parametrize('call', CALLS)
def test_calls_by_traps(rest, world, prey, call):
    sandbox = rest.create()
    try:
        for n, make in enumerate(TRAPS.values()):
            assert rest.exec(sandbox, f'mkdir -p t/{n}; cd t/{n}; '
                             f'{make.format(prey=prey)}')['exit_code'] == 0, make
        for n, name in enumerate(TRAPS):
            code, text = asked(rest, call, sandbox, f'{WHERE}/{n}/d')
            assert code in TYPED | {'ok'} and worlds.SECRET not in text, (name, code, text)
            assert code != 'ok' or call not in ('read', 'stat', 'away', 'remove',
                                                'upload'), (name, text)
        for name, path in PATHS.items():
            code, text = asked(rest, call, sandbox, path.format(prey=prey))
            assert code in TYPED | {'ok'} and worlds.SECRET not in text, (name, code, text)
        assert rest.exec(sandbox, 'echo well')['stdout'] == 'well\n'
    finally:
        rest.delete(sandbox)


# ---- images --------------------------------------------------------------------------------------

PLACES = ('tmp', 'workspace', 'dev', 'proc', 'sys', 'run', 'etc', 'home', 'var')


def bent(place, how):
    """A root whose places are links to a folder of the host's, directly or by a parent."""
    names = ('sh', 'cat', 'ls', 'echo', 'touch', 'stat', 'pwd')
    with open('/bin/busybox', 'rb') as f:
        program = f.read()
    entries = [folder('bin'), entry('bin/busybox', program, 0o755),
               *[symlink('bin/' + n, 'busybox') for n in names], folder('srv'),
               symlink('srv/work', how + place), symlink('mnt', how + place)]
    return files.layer(*entries, *[symlink(name, how + place) for name in PLACES])


@pytest.mark.tries(what='an image whose /tmp, /workspace, /dev, /proc, /etc, '
                   'working directory and mount targets are links to the host',
                   by='resolved in the new root',
                   control='whoever opens such a place by its path in the store is led out')
@pytest.mark.parametrize('how', ['', '/proc/self/root', '../../../../../../../../../../..'])
def test_image_of_links(who, world, prey, tmp_path, how):
    os.chmod(tmp_path, 0o755)
    layout = files.layout(os.path.join(who.work, 'bent'), bent(prey, how),
                          run={'WorkingDir': '/srv/work'})
    other = os.path.join(who.work, 'other')
    os.mkdir(other)
    with open(other + '/mine', 'w', encoding='utf-8') as f:
        f.write('mine')
    for path in (layout, other):
        subprocess.run(['chown', '-R', f'{who.uid}:{who.uid}', path], check=True)
    env = {'HOLT_HOME': os.path.join(who.work, 'home')}
    os.mkdir(env['HOLT_HOME'], 0o700)
    os.chown(env['HOLT_HOME'], who.uid, who.uid)
    try:
        done = who.run('images', 'import', layout, 'bent', env=env, text=True)
        assert done.returncode == 0, done
        root = next(at for at, names, _ in os.walk(env['HOLT_HOME'])
                    if os.path.basename(at) == 'root' and 'bin' in names)
        if not how.startswith('..'):
            assert os.path.exists(os.path.join(root, 'mnt/prey')), (
                'whoever opens it by its path would not be led out')
        for guest in ('/mnt', '/mnt/sub', '/tmp/sub', '/srv/work/sub'):
            done = who.run('run', '--template', 'bent', '-v', f'{other}:{guest}:rw', '--', 'sh',
                           '-c',
                           f'cat {guest}/mine; ls -a /mnt /srv/work; cat /mnt/prey /srv/work/prey '
                           '/tmp/prey; echo x > /mnt/x; echo x > /tmp/x; echo x > x',
                           env=env, text=True)
            assert done.returncode in (0, 1, 2, 125, 126), (guest, done)
            assert worlds.SECRET not in done.stdout + done.stderr, (guest, done)
        assert sorted(os.listdir(other)) == ['mine'] or set(os.listdir(other)) <= {'mine', 'x'}
    finally:
        for path in (layout, other, env['HOLT_HOME']):
            subprocess.run(['rm', '-rf', path], check=True)
