"""What the escape tests stand on: identities to run Holt with, things of the host that a sandbox
must not reach, the probe inside and outside, and what must be the same afterwards.

The raw MCP client and the search for leftovers are those of the black-box tests.
"""

import base64
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                'blackbox'))

import host  # noqa: E402
from client import Failed, until  # noqa: E402
from who import BUILD, Who  # noqa: E402

PROBE = os.path.join(BUILD, 'tests/escape/probe')
# in the environment of every Holt here, and in files of the host
SECRET = 'CANARY-' + os.urandom(8).hex()
INSIDE = '/workspace/probe'


def identity(name):
    """A Who with secrets in its environment and its home."""
    who = Who(name)
    who.env.update(HOLT_TEST_SECRET=SECRET, API_TOKEN=SECRET)
    with open(os.path.join(who.env['HOME'], 'secret'), 'w', encoding='utf-8') as f:
        f.write(SECRET)
    return who


# ---- things of the host --------------------------------------------------------------------------

def own_address(family, beyond):
    """The address of this host on the way to another one; None where there is no way."""
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        try:
            s.connect((beyond, 9))
            return s.getsockname()[0]
        except OSError:
            return None


class Host:
    """A file, three sockets and a process, each of which an unprivileged user outside can reach."""

    def __init__(self):
        self.user = identity('user')
        self.top = tempfile.mkdtemp(prefix='escape.')
        os.chmod(self.top, 0o755)
        self.probe = os.path.join(self.top, 'probe')
        shutil.copy(PROBE, self.probe)
        self.file = os.path.join(self.top, 'file')
        with open(self.file, 'w', encoding='utf-8') as f:
            f.write(SECRET)
        self.place = os.path.join(self.top, 'place')
        os.mkdir(self.place)
        os.chmod(self.place, 0o777)
        self.hits = []  # which socket somebody came to
        self.sockets = []
        self.unix = os.path.join(self.top, 'socket')
        self.abstract = 'escape-' + os.urandom(6).hex()
        self.listen(socket.AF_UNIX, self.unix)
        os.chmod(self.unix, 0o777)
        self.listen(socket.AF_UNIX, '\0' + self.abstract)
        self.port = self.listen(socket.AF_INET, ('0.0.0.0', 0)).getsockname()[1]
        self.address = own_address(socket.AF_INET, '203.0.113.1')
        self.address6 = own_address(socket.AF_INET6, '2001:db8::1')
        self.sleeper = subprocess.Popen([*self.user.prefix, 'sleep', '3600'])
        self.namespaces = ' '.join(os.readlink(f'/proc/self/ns/{kind}') for kind in ('user', 'pid'))

    def listen(self, family, address):
        s = socket.socket(family, socket.SOCK_STREAM)
        s.bind(address)
        s.listen(16)
        self.sockets.append(s)
        threading.Thread(target=self.serve, args=(s,), daemon=True).start()
        return s

    def serve(self, s):
        with contextlib.suppress(OSError):
            while True:
                s.accept()[0].close()
                self.hits.append(s)

    def close(self):
        self.sleeper.kill()
        self.sleeper.wait()
        for s in self.sockets:
            s.shutdown(socket.SHUT_RDWR)
            s.close()
        shutil.rmtree(self.top)
        shutil.rmtree(self.user.top)

    def told(self):
        """What the probe is told of it."""
        return {
            'HOLT_PROBE_CONFINED': self.namespaces, 'HOLT_PROBE_HOSTNAME': os.uname().nodename,
            'HOLT_PROBE_FILE': self.file, 'HOLT_PROBE_SOCKET': self.unix,
            'HOLT_PROBE_ABSTRACT': self.abstract, 'HOLT_PROBE_PORT': str(self.port),
            'HOLT_PROBE_ADDRESS': self.address or '127.0.0.1',
            'HOLT_PROBE_IPV6': '2001:db8::1', 'HOLT_PROBE_PID': str(self.sleeper.pid)}


# ---- the probe -----------------------------------------------------------------------------------

def rows():
    """The table of attempts, by name in the order of the program."""
    done = subprocess.run([PROBE, '--list'], stdout=subprocess.PIPE, check=True)
    return {row['name']: row for row in map(json.loads, done.stdout.splitlines())}


JAIL = ['unshare', '--user', '--map-root-user', '--mount', '--pid', '--ipc', '--net', '--uts',
        '--cgroup', '--fork',
        '--kill-child', '--mount-proc']


def has_capability(number):
    with open('/proc/self/status', encoding='utf-8') as f:
        return int(re.search(r'CapEff:\s*(\w+)', f.read()).group(1), 16) >> number & 1


CAP_SYS_RESOURCE = 24
# A session with more rights than usual, which a sandbox must not inherit.
SESSION = ['prlimit', '--core=unlimited', *(['--rtprio=10', '--nice=30', '--memlock=unlimited']
                                            if has_capability(CAP_SYS_RESOURCE) else [])]


NOT_HERE = ('ENOSYS', 'ENOENT', 'ENODEV', 'ENXIO', 'EAFNOSUPPORT', 'EPROTONOSUPPORT', 'EOPNOTSUPP')


def outside(row, world):
    """The row's control: its outcome in the weaker setting, or None and why there is none here."""
    name, control = row['name'], row['control']
    argv, env = [world.probe, name], {**os.environ, **world.told(), 'HOLT_PROBE_PLACE': world.place}
    if control in ('root', 'look') and os.getuid() != 0:
        return None, 'the control wants root'
    if row['capability'] >= 0 and not has_capability(row['capability']):
        return None, f'root has not the capability {row["capability"]} here'
    if control == 'jail':
        argv = [*JAIL, world.probe, '--stand-in', name]
    else:
        del env['HOLT_PROBE_CONFINED']
    if control == 'look':
        argv = [world.probe, '--look', name]
    if control in ('plain', 'jail'):
        argv = [*world.user.prefix, *argv]
    argv = [*SESSION, *argv]
    leak = os.open(world.top, os.O_RDONLY)
    try:
        done = subprocess.run(argv, env=env, cwd=world.place, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60, check=False, pass_fds=[leak])
    finally:
        os.close(leak)
    assert done.stdout, f'{argv}: {done.returncode} {done.stderr.decode()}'
    found = json.loads(done.stdout.splitlines()[-1])
    if found['result'] != 'open' and found['errno'] in NOT_HERE:
        return None, 'not in this kernel'
    return found, ''


def put_probe(sandbox):
    """Copies the probe into a sandbox, as an agent could."""
    with open(PROBE, 'rb') as f:
        content = base64.b64encode(f.read()).decode()
    sandbox.write(INSIDE, content, encoding='base64', mode='0755')


def attempt(sandbox, name, world, **arguments):
    """Tries one row in a sandbox that has the probe."""
    got = sandbox.argv(INSIDE, name, env=world.told(), **arguments)
    assert got['stdout'], got
    return json.loads(got['stdout'].splitlines()[-1])


def start(sandbox, program, *argv, **arguments):
    """Starts a program without a shell; the id of the request."""
    return sandbox.client.start_tool('sandbox_exec', sandbox=sandbox.id, command=program,
                                     args=[*map(str, argv)],
                                     **arguments)


def bomb(sandbox, world, *argv, **arguments):
    return sandbox.argv(INSIDE, '--bomb', *map(str, argv), env=world.told(), **arguments)


def python(sandbox, script, *argv, **arguments):
    """Runs a script inside; what it prints as JSON, decoded."""
    got = sandbox.argv('/usr/bin/python3', '-c', script, *map(str, argv), **arguments)
    assert got['exit_code'] == 0 and got['stdout'], got
    return json.loads(got['stdout'])


def start_python(sandbox, script, *argv, **arguments):
    """Starts it, waits until it has come to its end, where it stays, and returns the id of the
    request. One that leaves its sandbox unable to run anything is given two seconds."""
    request = start(sandbox, '/usr/bin/python3', '-c', script + STAY, *argv,
                    **{'timeout_seconds': 300, **arguments})
    refused = []

    def ready():
        try:
            return sandbox.exec('rm /tmp/ready')['exit_code'] == 0
        except Failed:
            refused.append(time.sleep(0.1))
            return len(refused) > 20
    until(ready, what='the script in the sandbox')
    return request


STAY = """
open('/tmp/ready', 'w').close()
import time
time.sleep(3600)
"""


def healthy(sandbox):
    """It runs programs, keeps files and answers soon."""
    got = sandbox.sh('echo ok > /tmp/health && cat /tmp/health && rm /tmp/health',
                     timeout_seconds=30)
    assert got == 'ok\n'


# ---- what must be the same afterwards ------------------------------------------------------------

def settings(moving=frozenset()):
    """What can be read below /proc/sys, by path."""
    found = {}
    for path, _, names in os.walk('/proc/sys'):
        for name in names:
            file = os.path.join(path, name)
            if file in moving:
                continue
            with contextlib.suppress(OSError, ValueError):
                with open(file, 'rb') as f:
                    found[file] = f.read(4096)
    return found


MOVING = re.compile(
    r'/proc/sys/(fs/(dentry-state|file-nr|inode-nr|inode-state|aio-nr|quota)|kernel/(random|pty|'
    r'ns_last_pid|perf|sched_|spl|osrelease)|vm/stat_refresh|net/.*(route/flush|nf_conntrack_count|'
    r'tcp_fastopen_key|stable_secret|base_reachable))')


class Unchanged:
    """The host before; check() compares. Programs of Holt that outlive the test are in
    except_for."""

    def __init__(self, except_for=()):
        self.except_for = tuple(except_for)
        self.before = self.look()

    def look(self):
        everything = host.processes()
        host.reap(everything)
        mine = host.below(except_for=self.except_for, everything=everything)
        with open('/proc/sysvipc/shm', encoding='utf-8') as f:
            shared = f.read().count('\n')
        return {
            'processes': {p.key(): repr(p) for p in mine.values()},
            'mounts': {m: m for m in host.mounts()},
            'groups': {g: g for g in host.cgroups(self.except_for, everything)},
            'settings': {f'{k}={v!r}': k for k, v in settings().items() if not MOVING.match(k)},
            'names': {n: n for n in os.uname()},
            'memory': {f'{shared} segments': 'segments'},
        }

    def differences(self):
        now = self.look()
        return {kind: sorted(str(now[kind][k]) for k in set(now[kind]) - set(was))
                for kind, was in self.before.items() if set(now[kind]) - set(was)}

    def check(self, timeout=60):
        deadline = time.monotonic() + timeout
        while True:
            found = self.differences()
            if not found:
                return
            assert time.monotonic() < deadline, f'the host is not as it was: {found}'
            time.sleep(0.05)
