"""Which hub has a data folder: `holt hub`, hubs that start by themselves, `holt serve` that takes
over, sockets of systemd."""

import fcntl
import itertools
import json
import os
import signal
import socket
import subprocess
import threading
import time

import pytest

import host
from client import until
from soak import FULL

HUB = 'holt-hub'


@pytest.fixture
def home(who, residue):
    """A data folder where hubs start by themselves; `run` runs a verb there."""
    path = who.log() + '.home'
    os.mkdir(path, 0o700)
    os.chown(path, who.uid, who.uid)
    return Home(who, path)


class Home:
    def __init__(self, who, path):
        self.who, self.path, self.env = who, path, {'HOLT_HOME': path}
        self.socket = os.path.join(path, 'holt.sock')

    def run(self, *arguments, status=0, **options):
        done = self.who.run(*arguments, env=self.env, text=True, **options)
        assert done.returncode == status, done
        return done.stdout

    def status(self):
        done = self.who.run('hub', 'status', '-o', 'json', env=self.env)
        told = json.loads(done.stdout)
        assert done.returncode == (0 if told['running'] else 1)
        return told

    def pid(self):
        return self.status().get('pid')

    def serve(self, *arguments):
        """holt serve, when it serves or has ended."""
        p = subprocess.Popen(self.who.argv('serve', '--listen', 'none', '--pool', '0', *arguments),
                             text=True, cwd='/',
                             env={**self.who.env, **self.env}, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        while (line := p.stdout.readline()) and 'auth token' not in line:
            pass
        return p


@pytest.fixture
def home_of(home):
    yield home
    home.run('ls')  # a hub has what is left of killed ones
    home.run('hub', 'stop')


def test_a_start_with_older_files_is_told(home):
    home.run('up', '-n', 'box')
    home.run('stop', 'box')
    start = home.who.argv('start', 'box')

    def said():
        return subprocess.run(start, env={**home.who.env, **home.env}, text=True, check=True,
                              timeout=60, capture_output=True).stderr
    assert said() == ''
    for one in host.below(host.warden_of(home.path)).values():
        if one.comm == 'holt-init':
            os.kill(one.pid, signal.SIGKILL)
    until(lambda: 'stopped' in home.run('ls'), what='its end')
    told = said()
    assert told.startswith('holt: box was lost: ') and 'those of its last stop' in told
    home.run('hub', 'stop')


def test_its_life(home):
    assert home.status() == {'running': False}
    assert home.run('hub', status=1) == 'no hub runs\n'
    assert 'hub.log' not in os.listdir(home.path)  # none was started
    before = int(time.time())
    box = home.run('up').strip()
    told = home.status()
    assert told['running'] and told['yields'] and told['socket'] == home.socket
    assert (before - 1 <= time.mktime(time.strptime(told['since'], '%Y-%m-%dT%H:%M:%SZ'))
            - time.timezone <= time.time() + 1)
    process = host.processes()[told['pid']]
    assert process.comm == HUB and os.getsid(told['pid']) == told['pid']
    text = home.run('hub', 'status')
    assert (f'pid {told["pid"]}, socket {home.socket}, since {told["since"]}\n' in text
            and 'by itself' in text)
    assert home.run('exec', box, '--', 'echo', 'well') == 'well\n'
    home.run('hub', 'logs')
    home.run('hub', 'stop')
    assert home.status() == {'running': False}
    until(lambda: told['pid'] not in host.below(), what='its end')
    assert home.run('hub', 'stop') == ''


def test_it_holds_nothing_of_who_started_it(home_of, tmp_path):
    """$(holt up) ends, and a lock of a shell is free."""
    lock = os.open(tmp_path / 'lock', os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    reader, writer = os.pipe()
    done = home_of.who.run('up', env=home_of.env, pass_fds=(lock, writer))
    assert done.returncode == 0, done
    os.close(lock)
    os.close(writer)
    assert os.read(reader, 1) == b''  # its end
    os.close(reader)
    again = os.open(tmp_path / 'lock', os.O_RDWR)
    fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(again)


def test_serve_takes_over(home_of):
    """From a hub that started by itself, and loses no sandbox;
    not from one that somebody started."""
    box = home_of.run('up').strip()
    home_of.run('fs', 'write', box, 'f', input='kept')
    first = home_of.pid()
    served = home_of.serve()
    told = home_of.status()
    assert told['pid'] == served.pid != first and not told['yields']
    until(lambda: first not in host.below(), what='the end of the first')
    assert home_of.run('fs', 'read', box, 'f') == 'kept'
    second = home_of.serve()
    why = second.stderr.read()
    assert second.wait() == 125 and 'another hub' in why and 'holt hub stop' in why
    assert f'pid {served.pid}, socket {home_of.socket}, since {told["since"]}' in why
    served.kill()  # a crash: what a verb starts meanwhile has the sandboxes, and gives them back
    served.wait()
    assert home_of.run('fs', 'read', box, 'f') == 'kept'
    assert home_of.status()['yields']
    served = home_of.serve()
    assert home_of.pid() == served.pid
    assert home_of.run('fs', 'read', box, 'f') == 'kept'
    home_of.run('hub', 'stop')
    assert served.wait() == 0


def test_where_another_serves_no_socket(home):
    served = home.serve('--socket', 'none', '--listen', '127.0.0.1:0')
    done = home.who.run('ls', env=home.env, text=True)
    assert (done.returncode == 125 and f'pid {served.pid}, socket none' in done.stderr
            and 'holt hub stop' in done.stderr), done
    home.run('hub', 'stop')
    assert served.wait() == 0


def test_take_over_again_and_again(home_of):
    """While sandboxes are made and written to: nothing that was acknowledged is lost."""
    wrote, ends = {}, threading.Event()

    def work(number):
        for turn in itertools.count():
            name = f'w{number}-{turn}'
            if ends.is_set():
                return
            if (home_of.who.run('up', '--name', name, env=home_of.env).returncode == 0 and
                home_of.who.run('fs', 'write', name, 'f', env=home_of.env,
                                input=name.encode()).returncode == 0):
                wrote[name] = name
    threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(100 if FULL else 5):
            until(lambda: home_of.status().get('yields'), what='a hub that started by itself')
            served = home_of.serve()
            assert served.poll() is None, served.stderr.read()
            n = len(wrote)
            until(lambda: len(wrote) > n, what='work with that one')  # noqa: B023
            served.kill()
            served.wait()
    finally:
        ends.set()
        for thread in threads:
            thread.join()
    assert wrote
    for name in wrote:
        assert home_of.run('fs', 'read', name, 'f') == name


# What systemd does: descriptors from 3 on, and who they are for.
ACTIVATE = """
import os, sys
os.environ.update(LISTEN_PID=str(os.getpid()) if sys.argv[1] == 'me' else sys.argv[1],
                  LISTEN_FDS=sys.argv[2])
os.execv(sys.argv[3], sys.argv[3:])
"""


def activate(home, sockets, *arguments, pid='me', count=None):
    """holt serve with these sockets as 3, 4, ..."""
    def move():
        for number, s in enumerate([os.dup(s.fileno()) for s in sockets]):
            os.dup2(s, 3 + number)
    argv = home.who.argv('serve', '--pool', '0', *arguments)
    n = len(home.who.prefix)
    return subprocess.Popen([*argv[:n], 'python3', '-c', ACTIVATE, pid,
                             str(len(sockets) if count is None else count), *argv[n:]],
                            env={**home.who.env, **home.env}, preexec_fn=move, close_fds=False,
                            cwd='/', text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_sockets_of_a_service_manager(home_of):
    """Their hub listens at these alone, takes over, and leaves them as they are."""
    box = home_of.run('up').strip()
    home_of.run('fs', 'write', box, 'f', input='kept')
    path = home_of.path + '/systemd.sock'
    unix, tcp = socket.socket(socket.AF_UNIX), socket.socket()
    unix.bind(path)
    os.chown(path, home_of.who.uid, home_of.who.uid)
    tcp.bind(('127.0.0.1', 0))
    for s in (unix, tcp):
        s.listen(8)
    there = {**home_of.env, 'HOLT_SOCKET': path}
    for end in (signal.SIGUSR1, signal.SIGKILL, signal.SIGUSR1):
        served = activate(home_of, [unix, tcp])
        # the socket is there before the hub is
        done = home_of.who.run('fs', 'read', box, 'f', env=there)
        assert done.stdout == b'kept', (done, served.poll())
        told = home_of.status()
        assert told['pid'] == served.pid and told['socket'] == path
        with open(f'/proc/{served.pid}/environ', 'rb') as f:
            assert b'LISTEN_FDS=2' in f.read()
        with socket.create_connection(tcp.getsockname(), 10) as c:
            c.sendall(b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
            assert c.recv(100).startswith(b'HTTP/1.1 200')
        assert not os.path.exists(home_of.socket)
        served.send_signal(end)
        served.wait()
        assert os.path.exists(path)
    for s in (unix, tcp):
        s.close()


@pytest.mark.parametrize('pid, count, why', [
    ('me', 'x', 'LISTEN_FDS'), ('me', '-1', 'LISTEN_FDS'), ('me', '17', 'LISTEN_FDS'),
    ('me', '1', 'no stream socket')])
def test_what_is_no_socket(home, pid, count, why):
    with open('/dev/null', encoding='utf-8') as null:
        served = activate(home, [null], pid=pid, count=count)
        assert served.wait(60) == 125 and why in served.stderr.read()


def test_sockets_for_somebody_else(home_of):
    with open('/dev/null', encoding='utf-8') as null:
        served = activate(home_of, [null], '--listen', 'none', pid='1')
        until(lambda: home_of.pid() == served.pid, what='the hub')


def test_none_of_another_pid_namespace_is_ended(home_of):
    if os.getuid():
        pytest.skip('needs another PID namespace over the same data folder')
    served = home_of.serve()
    apart = ['unshare', '-pf', '--mount-proc']
    env = {**home_of.who.env, **home_of.env}
    done = subprocess.run([*apart, *home_of.who.argv('hub', 'stop')], env=env, capture_output=True,
                          check=False, timeout=60)
    assert done.returncode == 125 and b'PID namespace' in done.stderr, done
    done = subprocess.run([*apart, *home_of.who.argv('hub', 'status')], env=env,
                          capture_output=True, check=False, timeout=60)
    assert done.returncode == 0 and b'of another PID namespace' in done.stdout, done
    assert served.poll() is None
