"""A hub of the benchmark's own, and ways to ask it. What is timed to the microsecond asks by
load.c; what takes long, from here."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path += [os.path.join(TOP, 'tests'), os.path.join(TOP, 'tests/blackbox')]
# Ends the hub and all that is below it when this process ends, by SIGKILL too.
import guardian  # noqa: E402, F401

HOLT = os.path.join(TOP, 'build/src/bin/holt')
LOAD = os.path.join(TOP, 'build/bench/rest/load')
POOL = 32
SLEEP = 30  # seconds: long enough to measure those that were just made


class Hub:
    """A `holt serve` with a home of its own. What else has to be written goes to its folder `work`,
    or, to `memory`, a tmpfs."""

    options = ()  # of `holt serve`, more than those that all have
    under = ()  # the program, and its options, that runs it

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix='holt-bench-')
        self.proc = self.memory = None
        try:
            self.memory = tempfile.mkdtemp(prefix='holt-bench-', dir='/dev/shm')
            self.work = os.path.join(self.home, 'work')
            os.mkdir(self.work)
            self.begin()
        except BaseException:
            self.close()
            raise

    def begin(self):
        env = {**os.environ, 'HOLT_HOME': os.path.join(self.home, 'hub'), 'HOLT_LOG': 'error'}
        # A session of its own: a key pressed in the terminal ends this process, which ends the hub.
        argv = [*self.under, HOLT, 'serve', '--listen', '127.0.0.1:0', '--pool', str(POOL),
                '--sleep-after', str(SLEEP), *self.options]
        self.proc = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, text=True, start_new_session=True)
        for line in self.proc.stdout:
            if line.startswith('Listening on http://'):
                self.port = int(line.rpartition(':')[2])
            if 'auth token' in line:
                break
        self.token = subprocess.run([HOLT, 'auth', 'token'], env=env, check=True,
                                    capture_output=True, text=True).stdout.strip()
        self.wire = Wire(self)

    def close(self):
        if self.proc:
            self.proc.terminate()
            self.proc.wait()
        for folder in (self.home, self.memory):
            if folder:
                shutil.rmtree(folder, ignore_errors=True)

    # ---- load.c

    def load(self, mode, *args):
        """{name: numbers} of a mode of load.c."""
        rows = {}
        with self.loading(mode, *args) as load:
            for line in load.stdout:
                name, _, number = line.partition('\t')
                rows.setdefault(name, []).append(float(number))
        return rows

    @contextlib.contextmanager
    def loading(self, mode, *args):
        """load.c at work, which must come to a good end."""
        env = {**os.environ, 'HOLT_BENCH_PORT': str(self.port), 'HOLT_BENCH_TOKEN': self.token}
        argv = [LOAD, mode, *map(str, args)]
        with group(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as load:
            yield load
            load.stdin.close()
            if load.wait():
                sys.exit(f'bench: failed: {" ".join(argv)}')

    # ---- by one connection

    def ask(self, method, path, body=None):
        return json.loads(self.wire.ask(method, path, body))

    def create(self, **more):
        return self.ask('POST', '/v1/sandboxes', {'template': 'host', **more})['id']

    def exec(self, sandbox, command):
        done = self.ask('POST', '/v1/exec',
                        {'sandbox': sandbox, 'command': command, 'timeout': 300})
        if done['exit_code']:
            sys.exit(f'bench: {command}: {done}')
        return done['stdout']

    def delete(self, *sandboxes):
        for sandbox in sandboxes:
            self.ask('DELETE', f'/v1/sandboxes/{sandbox}')

    def metric(self, name):
        return float(re.search(rf'^{name} (\S+)', self.wire.ask('GET', '/metrics').decode(),
                               re.M)[1])

    def fill_pool(self):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if self.metric('holt_pool_ready') >= POOL:
                return
            time.sleep(0.02)
        sys.exit('bench: the pool does not fill')


class Wire:
    """A connection that is kept."""

    def __init__(self, hub):
        self.hub, self.left, self.sock = hub, b'', None

    def send(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else b''
        head = (f'{method} {path} HTTP/1.1\r\nHost: '
                f'localhost\r\nAuthorization: Bearer {self.hub.token}\r\n')
        if body is not None:
            head += f'Content-Type: application/json\r\nContent-Length: {len(data)}\r\n'
        self.sock.sendall(head.encode() + b'\r\n' + data)

    def more(self):
        data = self.sock.recv(1 << 20)
        if not data:
            sys.exit('bench: the hub closed a connection')
        self.left += data

    def reply(self):
        while b'\r\n\r\n' not in self.left:
            self.more()
        head, _, self.left = self.left.partition(b'\r\n\r\n')
        n = int(re.search(rb'\r\ncontent-length: *(\d+)', head, re.I)[1])
        while len(self.left) < n:
            self.more()
        body, self.left = self.left[:n], self.left[n:]
        if not head.startswith(b'HTTP/1.1 200'):
            sys.exit(f'bench: {head.decode()}\n{body.decode()}')
        return body

    def ask(self, method, path, body=None):
        """The body of the answer. The hub closes a connection that was idle for 75 seconds,
        so an old one is not used."""
        if self.sock is None or time.monotonic() - self.used > 30:
            self.sock, self.left = socket.create_connection(('127.0.0.1', self.hub.port)), b''
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send(method, path, body)
        body, self.used = self.reply(), time.monotonic()
        return body


def seconds_of(function, *args, **more):
    begun = time.perf_counter()
    function(*args, **more)
    return time.perf_counter() - begun


@contextlib.contextmanager
def group(argv, **more):
    """A process with a group of its own, of which nobody is left at the end: bwrap and unshare can
    outlive who started them."""
    proc = subprocess.Popen(argv, start_new_session=True, **more)
    try:
        yield proc
    finally:
        try:
            os.killpg(proc.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        proc.wait()


def shell(line, **more):
    """Runs a line of the peers'."""
    with group(['/bin/sh', '-c', 'set -e; ' + line], stdin=subprocess.DEVNULL, **more) as proc:
        if proc.wait():
            sys.exit(f'bench: failed: {line}')
