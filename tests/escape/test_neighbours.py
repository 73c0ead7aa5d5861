"""Sandbox A against sandbox B of the same hub: it can't see, signal, reach or read B, and what A
uses up is not missing in B or on the host. Fork siblings, which share a user id, are neighbours
too."""

import os
import subprocess

import pytest

import host
import world as worlds

# What B has to be found: each with its own way to look for it.
# The first argument is a name for this run.
HAVE = r"""
import ctypes, os, socket, sys, threading
name = sys.argv[1]
c = ctypes.CDLL(None, use_errno=True)
keep = []
def serve(s):
    s.listen(8)
    keep.append(s)
    def loop():
        while True:
            s.accept()[0].sendall(name.encode())
    threading.Thread(target=loop, daemon=True).start()
for address in ('\0' + name, '/tmp/' + name):
    s = socket.socket(socket.AF_UNIX)
    s.bind(address)
    serve(s)
s = socket.socket(socket.AF_INET)
s.bind(('127.0.0.1', 45454))
serve(s)
key = 0x484f4c54
shm = c.shmget(key, 4096, 0o1666)
assert shm >= 0
c.shmat.restype = ctypes.c_void_p
ctypes.memmove(c.shmat(shm, None, 0), name.encode(), len(name))
assert c.msgget(key, 0o1666) >= 0 and c.semget(key, 1, 0o1666) >= 0
c.mq_open(b'/queue', os.O_CREAT | os.O_RDWR, 0o666, None)
for path in ('/tmp/file', '/workspace/file', '/dev/shm/file', '/home/agent/file', '/var/tmp/file',
             '/run/lock/file'):
    open(path, 'w').write(name)
try:
    open('/etc/passwd', 'a').write(name)
except OSError:
    pass
"""

# Looks for all that; prints what it found, a word each.
FIND = r"""
import ctypes, json, os, socket, sys
name, pid = sys.argv[1], int(sys.argv[2])
c = ctypes.CDLL(None, use_errno=True)
found = []
for family, address in ((socket.AF_UNIX, '\0' + name), (socket.AF_UNIX, '/tmp/' + name),
                        (socket.AF_INET, ('127.0.0.1', 45454)),
                        (socket.AF_INET, ('127.0.0.2', 45454))):
    s = socket.socket(family)
    s.settimeout(2)
    try:
        s.connect(address)
        if s.recv(100).decode() == name:
            found.append(f'{family.name} {address!r}')
    except OSError:
        pass
key = 0x484f4c54
for what, got in (('shm', c.shmget(key, 4096, 0)), ('msg', c.msgget(key, 0)),
                  ('sem', c.semget(key, 1, 0)),
                  ('mq', c.mq_open(b'/queue', os.O_RDWR))):
    if got >= 0:
        found.append(what)
for number in range(32):
    if c.shmctl(number, 13, (ctypes.c_char * 256)()) >= 0:        # SHM_STAT
        found.append(f'shm {number}')
for path in ('/tmp/file', '/workspace/file', '/dev/shm/file', '/home/agent/file', '/var/tmp/file',
             '/run/lock/file', '/etc/passwd', '/proc/sysvipc/shm', '/proc/net/unix',
             '/proc/net/tcp', '/proc/locks'):
    try:
        if name in open(path).read():
            found.append(path)
    except OSError:
        pass
for entry in os.listdir('/proc'):
    if entry.isdigit() and int(entry) != os.getpid():
        for file in ('cmdline', 'environ', 'comm', 'cgroup', 'mountinfo'):
            try:
                if name in open(f'/proc/{entry}/{file}').read():
                    found.append(f'{file} of {entry}')
            except OSError:
                pass
try:
    os.kill(pid, 0)
    found.append('signal')
except ProcessLookupError:
    pass
except PermissionError:
    found.append('signal denied, but there')
print(json.dumps(found))
"""


def pair(box, related):
    a = box()
    return (a, a.fork(1)[0]) if related else (a, box())


@pytest.mark.tries(what='find another sandbox: processes, sockets, shared memory, queues, '
                   'semaphores, files',
                   by='namespaces of its own',
                   control='the other one itself finds it all')
@pytest.mark.parametrize('related', [False, True], ids=['strangers', 'fork'])
def test_finding(box, related):
    a, b = pair(box, related)
    name = 'neighbour-' + os.urandom(6).hex()
    worlds.start_python(b, HAVE, name, env={'NAME': name})
    pid = host.with_argument(name)[0].pid
    try:
        assert worlds.python(a, FIND, name, pid) == [], 'what B has is seen in A'
        assert worlds.python(box(), FIND, name, pid) == [], 'what B has is seen in a new sandbox'
        control = worlds.python(b, FIND, name, 1)
        assert len(control) > 12, f'B itself does not find what it has: {control}'
    finally:
        b.terminate()
    worlds.healthy(a)


@pytest.mark.tries(what='kill or stop everything, also in another sandbox', by='pid namespace',
                   control='what it may reach is killed')
@pytest.mark.parametrize('related', [False, True], ids=['strangers', 'fork'])
def test_signals(box, related):
    a, b = pair(box, related)
    request = b.start('sleep 30')
    worlds.until(lambda: b.running('sleep') == 1)
    pids = [p.pid for p in host.with_argument('30')]
    a.exec(f'kill -9 {" ".join(map(str, pids))}; kill -9 -1; kill -STOP -1')
    assert b.running('sleep') == 1
    worlds.healthy(a)
    worlds.healthy(b)
    b.terminate()
    b.client.wait(request)


@pytest.mark.tries(what='change what other and later sandboxes are made of: /etc, /usr, /dev',
                   by='overlay, read-only mounts')
def test_template(box):
    a, b = box(), box()
    a.exec('for f in /etc/passwd /etc/hosts /etc/ld.so.cache /etc/resolv.conf /usr/bin/env '
           '/dev/null /etc/profile; do '
           'echo poison >> $f; chmod 777 $f; rm -f $f; echo poison > $f; mv $f $f.old; done; '
           'echo poison > /etc/ld.so.preload; mkdir -p /usr/local/poison; ln -sf /tmp/poison '
           '/etc/poison', cwd='/tmp')
    for sandbox in (b, box(), box(memory_mb=88)):
        assert sandbox.sh('cat /etc/passwd /etc/hosts /etc/profile /etc/resolv.conf | '
                          'grep -c poison || true') == '0\n'
        assert sandbox.sh('ls /etc/ld.so.preload /etc/poison /usr/local/poison 2>/dev/null | '
                          'wc -l') == '0\n'
        assert (sandbox.sh('stat -c %a /dev/null; echo x > /dev/null; cat /dev/null | wc -c')
                == '666\n0\n')
        worlds.healthy(sandbox)


# Watches the programs of the host and locks one, until the file `stop` is there; then tells what it
# has seen.
WATCH = r"""
import ctypes, fcntl, json, os, signal, sys, time
c = ctypes.CDLL(None, use_errno=True)
ready, stop = sys.argv[1:]
seen = []
signal.signal(signal.SIGIO, lambda *_: seen.append('dnotify'))
events = c.inotify_init1(os.O_NONBLOCK)
for path in ('/usr/bin', '/usr/bin/env'):
    assert c.inotify_add_watch(events, path.encode(), 0xfff) >= 0
folder = os.open('/usr/bin', os.O_RDONLY)
fcntl.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_ACCESS | fcntl.DN_MULTISHOT)
locked = open('/usr/bin/env', 'rb')
while True:  # what else is opened here before it is ready is its own doing
    try:
        os.read(events, 65536)
    except BlockingIOError:
        break
seen.clear()
fcntl.flock(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
os.close(os.open(ready, os.O_CREAT | os.O_WRONLY))
while not os.path.exists(stop):
    time.sleep(0.01)
try:
    seen.append(os.read(events, 65536).decode('latin-1'))
except BlockingIOError:
    pass
print(json.dumps([what for what in seen if what]))
"""

LOCK = r"""
import fcntl, json
with open('/usr/bin/env', 'rb') as f:
    f.read(1)
    try:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        print(json.dumps('free'))
    except BlockingIOError:
        print(json.dumps('locked'))
"""


def has(sandbox, path):
    """Asks PID 1, so that no program of the sandbox opens anything."""
    try:
        sandbox.read(path)
        return True
    except worlds.Failed:
        return False


@pytest.mark.tries(what='see which programs the host and others start, and lock their files',
                   by='an overlay of its own over /usr', control='outside both work')
def test_watching_programs(box, world, tmp_path):
    a, b = box(), box()
    files = '/workspace/ready', '/workspace/stop'
    request = worlds.start(a, '/usr/bin/python3', '-c', WATCH, *files)
    worlds.until(lambda: has(a, '/workspace/ready'))
    outside = [*world.user.prefix, '/usr/bin/python3', '-c']
    assert worlds.python(b, LOCK) == 'free'
    assert subprocess.run([*outside, LOCK], capture_output=True, check=True).stdout == b'"free"\n'
    b.sh('/usr/bin/env true; ls /usr/bin >/dev/null')
    subprocess.run(['/usr/bin/env', 'ls', '/usr/bin'], stdout=subprocess.DEVNULL, check=True)
    a.write('/workspace/stop', '')
    assert a.client.result(request)['stdout'] == '[]\n'

    os.chmod(tmp_path, 0o777)
    os.chmod(tmp_path.parent, 0o755)
    os.chmod(tmp_path.parent.parent, 0o755)
    ready, stop = tmp_path / 'ready', tmp_path / 'stop'
    with subprocess.Popen([*outside, WATCH, ready, stop], stdout=subprocess.PIPE) as control:
        worlds.until(ready.exists)
        locked = subprocess.run([*outside, LOCK], capture_output=True, check=True).stdout
        stop.touch()
        assert locked == b'"locked"\n' and len(control.stdout.read()) > 3


# Marks in its own layer that an overlay without privileges might take for its own,
# then a fork stacks that layer.
MARKS = r"""
import ctypes, os, stat
c = ctypes.CDLL(None)
os.chdir('/workspace')
os.mkdir('d')
open('f', 'w').write('inside')
for path in ('d', 'f'):
    for name, value in (('redirect', b'/../../../../etc'), ('redirect', b'/etc'), ('opaque', b'y'),
                        ('metacopy', b''),
                        ('origin', b'x' * 40), ('whiteout', b'y')):
        for space in ('user.overlay.', 'trusted.overlay.', 'user.overlay.overlay.'):
            try:
                os.setxattr(path, space + name, value)
            except OSError:
                pass
for name in ('w', 'passwd'):
    try:
        os.mknod(name, stat.S_IFCHR | 0o600, 0)
    except OSError:
        pass
"""


@pytest.mark.tries(what='bend a fork by marks of the overlay in its own files',
                   by='escaped by the overlay, no capability')
def test_overlay_marks(box, world):
    a = box()
    a.argv('/usr/bin/python3', '-c', MARKS)
    b = a.fork(1)[0]
    got = b.exec('ls -R /workspace; cat /workspace/d/shadow /workspace/d/hostname '
                 f'/workspace{world.file}')
    assert worlds.SECRET not in got['stdout'] and 'shadow' not in got['stdout'], got
    worlds.healthy(a)
    worlds.healthy(b)
    b.terminate()


# ---- what is counted for each user of the machine ------------------------------------------------

# Takes as much as it gets of one thing, says how much, and keeps it.
TAKE = r"""
import array, ctypes, os, signal as signals, socket, sys
c = ctypes.CDLL(None, use_errno=True)
signals.pthread_sigmask(signals.SIG_BLOCK, [35])
keep, fds = [], array.array('i', [0] * 250)

def inotify():
    return c.inotify_init1(0) >= 0

def signal():
    return c.sigqueue(os.getpid(), 35, None) == 0

def timer():
    return c.timer_create(0, None, ctypes.byref(ctypes.c_long())) == 0

def flight():
    if not keep or keep[-1] is None:
        keep.append(socket.socketpair())
    try:
        keep[-1][0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)],
                            socket.MSG_DONTWAIT)
    except BlockingIOError:
        keep.append(None)
    return True

def process():
    if os.fork() == 0:
        signals.pause()
    return True

take, n = globals()[sys.argv[1]], 0
try:
    while n < 200000 and take():
        n += 1
except OSError:
    pass
print(n, flush=True)
"""

# Does it work here once?
ONE = {
    'inotify': "c.inotify_init1(0) >= 0",
    'signal': "not s.pthread_sigmask(s.SIG_BLOCK, [35]) and c.sigqueue(os.getpid(), 35, None) == 0",
    'timer': "c.timer_create(0, None, ctypes.byref(ctypes.c_long())) == 0",
    'flight': "a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', "
    "[0]))]) == 1",
    'process': "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)[1] == 0",
}
ONCE = r"""
import array, ctypes, json, os, signal as s, socket
c = ctypes.CDLL(None, use_errno=True)
a, b = socket.socketpair()
try:
    print(json.dumps(%s))
except OSError as e:
    print(json.dumps(str(e)))
"""


@pytest.mark.tries(what='use up what the kernel counts for each user, so that others have none: '
                   'inotify, pending signals, '
                   'timers, descriptors in flight, processes',
                   by='a user id of its own, for a user without privileges smaller limits')
@pytest.mark.parametrize('what', ONE)
def test_shared_counts(box, who, what):
    a, b = box(), box()
    sibling = a.fork(1)[0]
    request = worlds.start_python(a, TAKE, what)
    script = ONCE % ONE[what]
    # Descriptors in flight are counted for a user of the machine with no limit of their own: those
    # who share that user share them, but never with the hub.
    strangers = ([(b, 'B'), (box(memory_mb=90), 'a new sandbox')] if what != 'flight'
                 or who.name == 'root' else [])
    try:
        for sandbox, name in [*strangers, *([(sibling, 'its fork')] if what != 'flight' else [])]:
            assert worlds.python(sandbox, script) is True, f'A took all, and {name} gets none'
        for sandbox in (b, sibling, box(memory_mb=90)):
            worlds.healthy(sandbox)
            sandbox.write('/workspace/x', 'x')
            assert sandbox.content('/workspace/x') == 'x'
        outside = subprocess.run([*who.prefix, '/usr/bin/python3', '-c', script],
                                 stdout=subprocess.PIPE, check=True)
        assert outside.stdout == b'true\n', 'A took all, and the user that runs Holt gets none'
    finally:
        a.terminate()
        a.client.wait(request)
        sibling.terminate()
