"""N2: paths that are bent: through the file tools, and under `holt run -v` and `-w`."""

import os
import shutil
import subprocess
import tempfile
import threading
import time

import pytest

import world as worlds
from client import Failed

TYPED = {'path_not_found', 'path_denied', 'not_a_file', 'invalid_arguments', 'too_large',
         'io_error', 'conflict'}

# Everything that a path may lead to and that is no file of the sandbox's own.
TRAPS = r"""
import os, socket
os.makedirs('/workspace/t')
os.chdir('/workspace/t')
open('inside', 'w').write('inside')
for name, target in {
        'absolute': '%(file)s', 'relative': '../../../../../..%(file)s',
        'proc_root': '/proc/self/root%(file)s', 'pid1_root': '/proc/1/root%(file)s',
        'environ': '/proc/self/environ', 'pid1_environ': '/proc/1/environ', 'mem': '/proc/self/mem',
        'maps': '/proc/self/maps', 'exe': '/proc/self/exe', 'kcore': '/proc/kcore',
        'version': '/proc/version', 'comm': '/proc/self/comm', 'zero': '/dev/zero',
        'null': '/dev/null', 'full': '/dev/full', 'tty': '/dev/tty', 'stdin': '/dev/stdin',
        'loop1': 'loop2', 'loop2': 'loop1', 'self': 'self', 'proc': '/proc',
        'cwd': '/proc/self/cwd', 'oom': '/proc/self/oom_score_adj', 'uid_map': '/proc/self/uid_map',
        'net': '/proc/self/net/dev', 'ns': '/proc/self/ns/mnt'}.items():
    os.symlink(target, name)
for n in range(12):
    os.symlink(f'/proc/self/fd/{n}', f'fd{n}')
    os.symlink(f'/proc/self/fdinfo/{n}', f'fdinfo{n}')
os.mkfifo('fifo')
os.mkdir('directory')
s = socket.socket(socket.AF_UNIX)
s.bind('socket')
"""


def kind(what, *arguments, **options):
    """What a file tool gave: ('ok', content) or (code, cause)."""
    try:
        return 'ok', what(*arguments, **options).get('content', '')
    except Failed as e:
        return e.code, e.error['cause']


@pytest.fixture
def trapped(box, world):
    sandbox = box()
    sandbox.argv('/usr/bin/python3', '-c', TRAPS % {'file': world.file})
    return sandbox


def unchanged_file(world):
    with open(world.file, encoding='utf-8') as f:
        assert f.read() == worlds.SECRET
    assert sorted(os.listdir(world.top)) == ['file', 'place', 'probe', 'socket']


@pytest.mark.tries(what='read what is no file of the sandbox: by links to host files, /proc, '
                   'descriptors of PID 1, '
                   'devices, pipes, sockets, loops, .. and NUL',
                   by='opened inside by PID 1 after a look')
def test_reading(trapped, world):
    names = trapped.sh('ls /workspace/t').split()
    assert len(names) > 50
    for name in [n for n in names if n != 'inside']:
        code, text = kind(trapped.read, f'/workspace/t/{name}')
        assert code in TYPED and worlds.SECRET not in text, (name, code, text)
    for path in (world.file, f'../../../../../..{world.file}', f'/proc/1/root{world.file}',
                 '/etc/shadow', '/proc/self/root/etc/shadow', '/proc/self/environ',
                 '/proc/1/environ', '/proc/self/fd/3', '/dev/zero', '/proc/self/task/1/environ',
                 '/workspace/t/directory', '/', '', '/workspace/t/inside\0/etc/passwd',
                 '/workspace/t/inside/..', 'x' * 256, '/' + 'a/' * 3000,
                 '//dev//zero', '/workspace/t/cwd/../../../proc/self/environ',
                 '/proc/sysrq-trigger', '/proc/../dev/zero'):
        code, text = kind(trapped.read, path)
        assert code in TYPED and worlds.SECRET not in text, (path, code, text)
    for path in ('inside', 'inside/', 'cwd/../inside', 'cwd/workspace/t/inside'):
        assert trapped.content(f'/workspace/t/{path}') == 'inside', path
    worlds.healthy(trapped)


@pytest.mark.tries(what='write to what is no file of the sandbox, by the same names',
                   by='opened inside by PID 1 after a look')
def test_writing(trapped, world):
    for name in [n for n in trapped.sh('ls /workspace/t').split() if n != 'inside']:
        code, text = kind(trapped.write, f'/workspace/t/{name}', 'overwritten', make_parents=False)
        assert code in TYPED, (name, code, text)
    for path in ('/proc/self/comm', '/proc/1/oom_score_adj', '/proc/self/fd/3', '/dev/null',
                 '/dev/new', '/sys/new', '/usr/bin/env', '/usr/new', '/proc/new', '/proc/sys/new',
                 '/workspace/t/inside\0', '/workspace/t/..', '/workspace/t/.', '/',
                 '/workspace/t/fifo/x', '/workspace/t/inside/x', '/workspace/t/' + 'n' * 256):
        code, text = kind(trapped.write, path, 'overwritten')
        assert code in TYPED, (path, code, text)
    # a path of its own, if any
    code, _ = kind(trapped.write, f'../../../..{world.file}', 'in the sandbox')
    assert code in TYPED | {'ok'}
    unchanged_file(world)
    assert trapped.content('/workspace/t/inside') == 'inside'
    worlds.healthy(trapped)


@pytest.mark.tries(what='a hard link, a sparse file of 1 TB, a set-user-id file, '
                   'through the file tools',
                   by='opened inside by PID 1, seccomp')
def test_odd_files(sb):
    sb.sh('mkdir t; echo one > t/a; ln t/a t/b; truncate -s 1T t/sparse; chmod 4755 t/a || true')
    assert kind(sb.read, '/workspace/t/sparse', limit=1 << 40)[0] == 'invalid_arguments'
    assert sb.read('/workspace/t/sparse')['bytes'] <= 4 << 20
    assert sb.read('/workspace/t/sparse', offset=1 << 39, limit=100)['bytes'] == 100
    sb.write('/workspace/t/b', 'two')
    assert sb.content('/workspace/t/a') == 'one\n'  # a new file took the place of the link
    for mode in ('4755', '06755', '2755', '1777'):
        assert kind(sb.write, '/workspace/t/new', 'x', mode=mode)[0] == 'invalid_arguments'
    assert int(sb.sh('stat -c %a t/a')) < 1000
    worlds.healthy(sb)


# Swaps two names as fast as it can.
FLIP = r"""
import ctypes, os, sys
c = ctypes.CDLL(None)
a, b = (p.encode() for p in sys.argv[1:3])
open('/tmp/ready', 'w').close()
while not os.path.exists('/tmp/stop'):
    for _ in range(200):
        c.renameat2(-100, a, -100, b, 2)
"""


def flip(sandbox, a, b):
    request = worlds.start(sandbox, '/usr/bin/python3', '-c', FLIP, a, b, timeout_seconds=60)
    worlds.until(lambda: sandbox.exec('rm /tmp/ready')['exit_code'] == 0)
    return request


@pytest.mark.tries(what='swap a file with a link, a pipe or a device, over and over, '
                   'while it is read and written',
                   by='looked at and opened by one descriptor',
                   control='looking first and opening then is fooled')
@pytest.mark.parametrize('other', ['ln -s /proc/self/environ t/b', 'ln -s /proc/self/mem t/b',
                                   'ln -s /dev/zero t/b', 'mkfifo t/b', 'ln -s /proc/self/fd/3 t/b',
                                   'mkdir t/b'])
def test_swapped_file(box, other):
    sb = box()
    sb.sh(f'mkdir t; printf inside > t/a; {other}')
    request = flip(sb, '/workspace/t/a', '/workspace/t/b')
    seen, until = set(), time.monotonic() + 30
    for i in range(2000):
        code, text = kind(sb.read, '/workspace/t/a')
        assert code in TYPED or text in ('inside', 'written'), (code, text[:100])
        seen.add(code)
        if i > 60 and 'ok' in seen or time.monotonic() > until:
            break
        if i % 2:
            code, text = kind(sb.write, '/workspace/t/a', 'written', make_parents=False)
            assert code in TYPED | {'ok'}, (code, text)
    sb.sh('touch /tmp/stop')
    assert sb.client.result(request)['exit_code'] == 0
    assert 'ok' in seen
    worlds.healthy(sb)


@pytest.mark.tries(what='swap a directory with a link to '
                   '/proc/self or / while a file below is read and written',
                   by='looked at and opened by one descriptor',
                   control='looking first and opening then is fooled')
@pytest.mark.parametrize('target', ['/proc/self', '/proc/1', '/usr'])
def test_swapped_directory(box, target):
    sb = box()
    sb.sh('mkdir -p t/a; printf inside > t/a/environ; printf inside > t/a/comm; ln -s '
          f'{target} t/b')
    request = flip(sb, '/workspace/t/a', '/workspace/t/b')
    for i in range(60):
        for name in ('environ', 'comm'):
            code, text = kind(sb.read, f'/workspace/t/a/{name}')
            assert code in TYPED or text in ('inside', 'written'), (code, text[:100])
        if i % 2:
            code, text = kind(sb.write, '/workspace/t/a/comm', 'written')
            assert code in TYPED | {'ok'}, (code, text)
    sb.sh('touch /tmp/stop')
    sb.client.result(request)
    worlds.healthy(sb)


def test_swapping_control(world):
    """Whoever looks first and opens then is fooled by the same swapping,
    so it is fast enough to show something."""
    a, b, stop = (os.path.join(world.place, name) for name in ('a', 'b', 'stop'))
    with open(a, 'w', encoding='utf-8') as f:
        f.write('inside')
    os.symlink(world.file, b)
    script = FLIP.replace('/tmp/ready', world.place + '/ready').replace('/tmp/stop', stop)
    with subprocess.Popen(['/usr/bin/python3', '-c', script, a, b]) as flipper:
        seen, until = set(), time.monotonic() + 60
        while 'fooled' not in seen and time.monotonic() < until:
            if not os.path.islink(a):
                time.sleep(0.0002)  # as if it lost the processor here
                with open(a, encoding='utf-8') as f:
                    seen.add('fooled' if f.read() == worlds.SECRET else 'ok')
        with open(stop, 'w', encoding='utf-8'):
            pass
        flipper.wait()
    assert 'fooled' in seen


# Takes leases on files: whoever opens one waits until the lease is given up.
LEASE = r"""
import fcntl, os, signal
signal.signal(signal.SIGIO, signal.SIG_IGN)
fds = []
for path, flags, kind in (('/workspace/w', os.O_RDWR, fcntl.F_WRLCK),
                          ('/workspace/r', os.O_RDONLY, fcntl.F_RDLCK)):
    with open(path, 'w') as f:
        f.write('inside')
    os.chmod(path, 0o755)
    fds.append(os.open(path, flags))
    try:
        fcntl.fcntl(fds[-1], fcntl.F_SETLEASE, kind)
    except OSError as e:
        print(e, flush=True)
"""


def test_lease_control(world):
    """Outside a lease makes others wait."""
    script = LEASE.replace('/workspace', world.place) + """
try:
    os.open('%s/w', os.O_RDONLY | os.O_NONBLOCK)
except BlockingIOError:
    print('waits')
""" % world.place
    done = subprocess.run([*world.user.prefix, '/usr/bin/python3', '-c', script],
                          stdout=subprocess.PIPE, text=True,
                          check=True)
    assert done.stdout == 'waits\n', done


@pytest.mark.tries(what='make PID 1 wait by a lease on the file that it opens or starts',
                   by='seccomp',
                   control='others wait outside')
@pytest.mark.parametrize('act', ['read', 'write', 'start'])
def test_lease(box, act):
    sb = box()
    lease = worlds.start_python(sb, LEASE)
    for name in ('w', 'r'):
        path = f'/workspace/{name}'
        if act == 'start':
            request = worlds.start(sb, path, timeout_seconds=2)
        elif act == 'write':
            request = sb.client.start_tool('sandbox_write_file', sandbox=sb.id, path=path,
                                           content='written')
        else:
            request = sb.client.start_tool('sandbox_read_file', sandbox=sb.id, path=path)
        worlds.healthy(sb)
        # a lease is broken after 45 seconds, unless somebody has changed that
        sb.client.wait(request)
    sb.terminate()
    sb.client.wait(lease)


# ---- holt run -v and -w --------------------------------------------------------------------------

@pytest.fixture
def folders(who):
    """A workspace and another folder of the caller's, each with a file."""
    top = tempfile.mkdtemp(prefix='mounts.', dir=who.work)
    paths = [os.path.join(top, name) for name in ('ws', 'other')]
    for path in paths:
        os.mkdir(path)
        with open(os.path.join(path, 'mine'), 'w', encoding='utf-8') as f:
            f.write('mine')
    for path in [top, *paths, *[os.path.join(p, 'mine') for p in paths]]:
        os.chown(path, who.uid, who.uid)
    yield paths
    shutil.rmtree(top)


def link(who, folder, name, target):
    path = os.path.join(folder, name)
    os.symlink(target, path)
    os.chown(path, who.uid, who.uid, follow_symlinks=False)


@pytest.mark.tries(what='mount over a place in the workspace that is a link to the host',
                   by='resolved in the new root')
@pytest.mark.parametrize('up', ['', '../../../../../../../..', '/proc/self/root', '/proc/1/root/..',
                                '/r/..'])
def test_mount_target_through_a_link(who, world, folders, unchanged, up):
    workspace, other = folders
    link(who, workspace, 'link', up + world.top)
    for guest in ('/workspace/link', '/workspace/link/sub', '/workspace/link/file',
                  '/workspace/link/a/b/c'):
        done = who.run('run', '-v', f'{workspace}:/workspace:rw', '-v', f'{other}:{guest}:rw', '--',
                       'cat', f'{guest}/mine', text=True)
        assert done.returncode in (0, 125), (guest, done)
        assert done.returncode == 125 or done.stdout == 'mine', (guest, done)
    unchanged_file(world)
    assert sorted(os.listdir(other)) == ['mine']


@pytest.mark.tries(what='mount on a place above the root, in /proc, or on what is no directory',
                   by='resolved in the new root')
@pytest.mark.parametrize('guest', ['/../../../../tmp/x', '/workspace/../../../x', '/proc/self',
                                   '/proc/sys/x', '/dev/null', '/proc/1/root/x', '/proc/self/cwd/x',
                                   '/sys/x', '/usr/new', '/etc/passwd/x'])
def test_odd_mount_targets(who, world, folders, unchanged, guest):
    workspace, other = folders
    before = {place: sorted(os.listdir(place)) for place in ('/', '/usr', '/etc', workspace, other)}
    done = who.run('run', '-v', f'{workspace}:/workspace:rw', '-v', f'{other}:{guest}', '--',
                   'true', text=True)
    assert done.returncode in (0, 125), done
    for place, names in before.items():
        assert sorted(os.listdir(place)) == names, place
    unchanged_file(world)


@pytest.mark.tries(what='swap the mount target with a link to the host while sandboxes are made',
                   by='resolved in the new root')
def test_mount_target_flips(who, world, folders, unchanged):
    """A first sandbox has the workspace and flips; others are made over it meanwhile."""
    workspace, other = folders
    os.mkdir(os.path.join(workspace, 'a'))
    os.chown(os.path.join(workspace, 'a'), who.uid, who.uid)
    link(who, workspace, 'b', world.top)
    flipper = (threading.Thread(target=who.run, args=(
        'run', '--timeout', '30', '-v', f'{workspace}:/workspace:rw', '--', '/usr/bin/python3','-c',
        FLIP.replace("'/tmp/", "'/workspace/"), '/workspace/a', '/workspace/b')))
    flipper.start()
    try:
        worlds.until(lambda: os.path.exists(os.path.join(workspace, 'ready')))
        statuses = [who.run('run', '-v', f'{workspace}:/workspace:rw', '-v',
                            f'{other}:/workspace/a/sub:rw', '--',
                            'true').returncode for _ in range(12)]
    finally:
        with open(os.path.join(workspace, 'stop'), 'w', encoding='utf-8'):
            pass
        flipper.join()
    assert set(statuses) <= {0, 125}, statuses
    unchanged_file(world)
    assert sorted(os.listdir(other)) == ['mine']


@pytest.mark.tries(what='start in a working directory that is a link to the host',
                   by='entered inside')
def test_working_directory_through_a_link(who, world, folders, unchanged):
    workspace, _ = folders
    link(who, workspace, 'link', world.top)
    done = who.run('run', '-v', f'{workspace}:/workspace', '-w', '/workspace/link', '--', 'cat',
                   'file', text=True)
    assert done.returncode in (125, 126) and worlds.SECRET not in done.stdout + done.stderr, done


@pytest.mark.tries(what='reach more of the host than the folder that is shown by -v',
                   by='mount namespace')
def test_beside_a_mount(who, world, folders, unchanged):
    workspace, _ = folders
    link(who, workspace, 'out', '../other/mine')
    link(who, workspace, 'home', '../../../home/secret')
    done = who.run('run', '-v', f'{workspace}:/workspace', '--', 'sh', '-c',
                   'cat out home ../other/mine /workspace/../other/mine; cat mine; echo x > mine',
                   text=True)
    assert done.stdout == 'mine' and worlds.SECRET not in done.stderr, done
    with open(os.path.join(workspace, 'mine'), encoding='utf-8') as f:
        assert f.read() == 'mine'  # read-only unless said otherwise
