"""`holt exec` with standard input and on terminals: a person at a real one,
and programs that speak through it."""

import fcntl
import hashlib
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import threading
import time

import pytest

from client import until
from mcp_cli import script
from test_hub_cli import Hub
from who import NEW_NODE


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    with Hub(me, tmp_path_factory.mktemp('exec'), '--listen', '127.0.0.1:0',
             '--pool', '1') as shared:
        yield shared


@pytest.fixture(scope='module')
def box(hub):
    name = hub.ok('up').decode().strip()
    yield name
    hub.run('down', name)


def runs(hub, box, what):
    found = hub.call('GET', f'/v1/sandboxes/{box}/processes')['processes']
    return bool([p for p in found if what in p['command']])


class Keyboard:
    """A person at a terminal who runs `holt ARGUMENT...`."""

    def __init__(self, hub, *arguments, size=(30, 100), stdin=True, more=None):
        self.master, self.slave = pty.openpty()
        self.resize(*size)
        self.before = termios.tcgetattr(self.slave)
        self.proc = subprocess.Popen(
            hub.who.argv(*arguments), env={**hub.env, 'TERM': 'vt220', **(more or {})}, cwd='/',
            stdin=self.slave if stdin else subprocess.DEVNULL, stdout=self.slave,
            stderr=self.slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 0))  # noqa: PLW1509
        self.seen = b''

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait()
        os.close(self.master)
        os.close(self.slave)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.master, keys)

    def read(self, timeout):
        if select.select([self.master], [], [], timeout)[0]:
            self.seen += os.read(self.master, 65536)

    def until(self, text):
        deadline = time.monotonic() + 60
        while text not in self.seen:
            assert time.monotonic() < deadline, (text, self.seen)
            self.read(1)
        self.seen = self.seen.partition(text)[2]

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & (termios.ICANON | termios.ISIG | termios.ECHO)

    def end(self):
        """Its status; the terminal is as it was."""
        status = self.proc.wait(60)
        assert termios.tcgetattr(self.slave) == self.before
        while select.select([self.master], [], [], 0)[0]:
            self.read(0)
        return status


# ---- a person at a terminal -------------------------------------------------------------------

def test_a_shell(hub, box):
    with Keyboard(hub, 'exec', '-it', box, '-e', 'PS1=$ ') as k:
        k.until(b'$ ')
        assert k.is_raw()
        k.type(b'tty; stty size; echo $TERM $((6*7))\r')
        k.until(b'/dev/pts/0\r\n30 100\r\nvt220 42\r\n')
        k.type(b'sleep 1111\r')
        until(lambda: runs(hub, box, 'sleep 1111'))
        k.type(b'\x03')
        k.until(b'$ ')
        k.resize(20, 90)
        k.type(b'stty size\r')
        deadline = time.monotonic() + 60
        while b'20 90' not in k.seen:  # its SIGWINCH is on its way
            assert time.monotonic() < deadline, k.seen
            k.type(b'stty size\r')
            k.read(0.2)
        k.type(b'exit 9\r')
        assert k.end() == 9


def test_it_hears_of_a_new_size(hub, box):
    script_ = 'trap "stty size" WINCH; echo on; while :; do sleep 0.02; done'
    with Keyboard(hub, 'exec', '-it', box, '--', 'sh', '-c', script_) as k:
        k.until(b'on\r\n')
        k.resize(41, 99)
        k.until(b'41 99\r\n')


def test_keys_of_an_editor(hub, box):
    with Keyboard(hub, 'exec', '-it', box, '--', 'sh', '-c', 'stty raw -echo; echo on; head -c 7 | '
                  'od -An -tx1') as k:
        k.until(b'on')
        k.type(b'\x03\x04\x1a\x1c\x1b[A')
        k.until(b' 03 04 1a 1c 1b 5b 41')
        assert k.end() == 0


def test_interrupt(hub, box):
    with Keyboard(hub, 'exec', '-it', box, '--', 'sh', '-c', 'echo on; exec sleep 2222') as k:
        k.until(b'on')
        k.type(b'\x03')
        assert k.end() == 128 + signal.SIGINT
    assert not runs(hub, box, 'sleep 2222')


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1])
def test_whatever_ends_it_restores_the_terminal(hub, box, number):
    with Keyboard(hub, 'exec', '-it', box, '--', 'sh', '-c', 'echo on; exec sleep 3333') as k:
        k.until(b'on')
        assert k.is_raw()
        k.proc.send_signal(number)
        assert k.end() == -number
    until(lambda: not runs(hub, box, 'sleep 3333'), what='the end of the command')


def test_sigkill_ends_the_command(hub, box):
    with Keyboard(hub, 'exec', '-it', box, '--', 'sh', '-c', 'echo on; exec sleep 4444') as k:
        k.until(b'on')
        k.proc.kill()
    until(lambda: not runs(hub, box, 'sleep 4444'), what='the end of the command')


def test_stopped_and_continued(hub, box):
    with Keyboard(hub, 'exec', '-it', box, '--', 'sh', '-c', 'stty -echo; echo on; read -r line; '
                  'echo "<$line>"') as k:
        k.until(b'on')
        k.proc.send_signal(signal.SIGSTOP)
        until(lambda: open(f'/proc/{k.proc.pid}/stat').read().split(') ')[1][0] == 'T')
        termios.tcsetattr(k.slave, termios.TCSANOW, k.before)  # as a shell does
        k.proc.send_signal(signal.SIGCONT)
        until(k.is_raw)
        k.type(b'line\r')
        k.until(b'<line>')
        assert k.end() == 0


def test_refusals_leave_the_terminal_alone(hub, box):
    for arguments in (('nobody', '--', 'true'), (box, '--', 'no-such-program'),
                      (box, '-w', '/nowhere', '--', 'true')):
        with Keyboard(hub, 'exec', '-it', *arguments) as k:
            assert k.end() in (125, 126, 127)


def test_no_input_is_taken_from_a_terminal_unasked(hub, box):
    for verb in (('exec',), ('run',)):
        name = (box,) if verb == ('exec',) else ()
        with Keyboard(hub, *verb, *name, '--', 'cat') as k:
            k.type(b'for the shell\n')
            assert k.end() == 0
        with Keyboard(hub, *verb, '-i', *name, '--', 'cat') as k:  # the control
            k.type(b'for the command\n\x04')
            assert k.end() == 0
            assert k.seen.count(b'for the command') == 2


@pytest.mark.parametrize('verb', ['exec', 'run'])
def test_a_terminal_without_input(hub, box, verb):
    """As with Docker's -t alone: ours keeps its mode and its keys, and nobody types on the
    program's."""
    script_ = ('trap "stty size" WINCH; test -t 0 && test -t 2 && stty size; echo on >&2;'
               'while :; do sleep 0.02; done')
    name = [box] if verb == 'exec' else []
    with Keyboard(hub, verb, '-t', *name, '--', 'sh', '-c', script_) as k:
        k.until(b'30 100\r')
        k.until(b'on\r')
        assert not k.is_raw()
        k.resize(41, 99)
        k.until(b'41 99\r')
        k.type(b'for the shell\n')
        k.until(b'for the shell\r\n')  # our own terminal's echo
        k.type(b'\x03')
        assert k.end() in (-signal.SIGINT, 128 + signal.SIGINT)
        assert b'for the shell' not in k.seen


# ---- a terminal under `holt run` ---------------------------------------------------------------

def test_run_a_shell(hub):
    with Keyboard(hub, 'run', '-it', '-e', 'PS1=$ ', '--', 'sh') as k:
        k.until(b'$ ')
        assert k.is_raw()
        k.type(b'tty; stty size; echo $TERM $((6*7))\r')
        k.until(b'/dev/pts/0\r\n30 100\r\nvt220 42\r\n$ ')
        k.type(b'echo on; exec 3>&1; sleep 1111 3>&-\r')
        k.until(b'\r\non\r\n')
        until(lambda: subprocess.run(['pgrep', '-fx', 'sleep 1111'], check=False,
                                     stdout=subprocess.DEVNULL).returncode == 0)
        k.type(b'\x03')
        k.until(b'$ ')
        k.type(b'trap "stty size" WINCH; echo re""ady\r')
        k.until(b'ready\r\n')
        k.resize(20, 90)
        k.type(b'until [ "$(stty size)" = "20 90" ]; do sleep 0.02; done; echo res""ized\r')
        k.until(b'resized\r\n')
        k.proc.send_signal(signal.SIGSTOP)
        until(lambda: open(f'/proc/{k.proc.pid}/stat').read().split(') ')[1][0] == 'T')
        termios.tcsetattr(k.slave, termios.TCSANOW, k.before)  # as a shell does
        k.proc.send_signal(signal.SIGCONT)
        until(k.is_raw)
        k.type(b'exit 9\r')
        assert k.end() == 9


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_run_passes_signals_on(hub, number):
    with Keyboard(hub, 'run', '-it', '--', 'sh', '-c', 'echo on; exec sleep 3333') as k:
        k.until(b'on')
        assert k.is_raw()
        k.proc.send_signal(number)
        assert k.end() == 128 + number


def test_run_that_is_refused_leaves_the_terminal_alone(hub):
    for arguments, status in ((('--', 'no-such-program'), 127),
                              (('--template', 'no-such', '--', 'true'), 125),
                              (('--json', '--', 'true'), 125),
                              (('-v', '/nowhere:/x', '--', 'true'), 125)):
        with Keyboard(hub, 'run', '-it', *arguments) as k:
            assert k.end() == status and b'holt: ' in k.seen, k.seen


def test_run_a_terminal_in_a_pipe(hub):
    done = hub.run('run', '-it', '--', 'sh', '-c', 'cat; tty; exit 3', input=b'line\n')
    assert done.returncode == 3 and done.stdout.endswith(b'line\r\n/dev/pts/0\r\n'), done


# ---- a terminal that is left ------------------------------------------------------------------

@pytest.fixture
def left(hub, box):
    """A shell on a terminal at which nobody is."""
    job = hub.ok('exec', '-d', '-t', box, '-e', 'PS1=$ ').decode().strip()
    yield job
    hub.run('kill', '-s', '9', box, job)


def test_attach_to_a_terminal(hub, box, left):
    with Keyboard(hub, 'attach', '--since-offset', '0', box, left, size=(33, 111)) as k:
        k.until(b'$ ')
        assert k.is_raw()
        k.type(b'tty; stty size; A=here\r')
        k.until(b'\r\n33 111\r\n')
        k.resize(22, 88)
        k.type(b'until [ "$(stty size)" = "22 88" ]; do sleep 0.02; done; echo res""ized\r')
        k.until(b'resized\r\n')
        k.until(b'$ ')
        k.type(b'sleep 6661\r')
        until(lambda: runs(hub, box, 'sleep 6661'))
        k.type(b'\x03')
        k.until(b'$ ')
        k.type(b'\x10')
        k.type(b'\x11')
        assert k.end() == 0
        assert b'it runs on' in k.seen
    with Keyboard(hub, 'attach', '--since-offset', '0', '--detach-keys', 'X,Y', box, left) as k:
        k.until(b'33 111')  # again
        k.type(b'echo $A XZ X""XZ\r')  # the keys' beginning, and then not
        k.until(b'here XZ XXZ\r\n')
        k.type(b'XY')
        assert k.end() == 0
    with Keyboard(hub, 'attach', box, left) as k, Keyboard(hub, 'attach', box, left) as other:
        until(lambda: k.is_raw() and other.is_raw())
        k.type(b'echo bo""th\r')
        k.until(b'both\r\n')
        other.until(b'both\r\n')
        other.type(b'exit 9\r')
        assert k.end() == 9 and other.end() == 9


SCREEN = r"""
import os, re, signal, sys, termios, tty
tty.setraw(0)
def draw(*_):
    size = os.get_terminal_size(0)
    os.write(1, b'\x1b[2J\x1b[Hdrawn %d %d\n' % (size.lines, size.columns))  # a signal may nest it
signal.signal(signal.SIGWINCH, draw)
print('\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[>1u', end='', flush=True)
draw()
while True:
    key = os.read(0, 1)
    if key == b'k':
        os.kill(os.getpid(), 9)
    if key == b'q':
        print('\x1b[<u\x1b[?2004l\x1b[?25h\x1b[?1049l', end='', flush=True)
        break
"""
SET, UNSET = (b'\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[>1u',
              b'\x1b[<1u\x1b[?2004l\x1b[?25h\x1b[?1049l')


def test_a_screen_that_is_left_and_come_back_to(hub, box):
    """Who leaves has the terminal as it was; who comes back has what the program set, and all of it
    is drawn anew, though the size is the same; a program that is killed leaves nothing set."""
    job = hub.ok('exec', '-d', '-t', box, '--', 'python3', '-c', SCREEN).decode().strip()
    with Keyboard(hub, 'attach', '--since-offset', '0', box, job) as k:
        k.until(b'drawn 30 100')
        k.type(b'\x10\x11')
        assert k.end() == 0 and UNSET in k.seen
    with Keyboard(hub, 'attach', box, job) as k:
        k.until(SET)
        k.until(b'drawn 30 100')
        k.proc.kill()  # as where a connection breaks
        k.proc.wait()
    with Keyboard(hub, 'attach', box, job) as k:
        k.until(b'drawn 30 100')
        k.type(b'k')
        assert k.end() == 137 and UNSET in k.seen
    with Keyboard(hub, 'attach', box, job) as k:
        assert k.end() == 137 and b'\x1b' not in k.seen  # nothing to come back to


def test_what_programs_expect_of_a_terminal(hub, box):
    """Its colours; a folder for passing files that is theirs; who commits; the clipboard."""
    asks = ('sh', '-c', 'echo "<$COLORTERM>"; stat -c %u:%a /tmp /var/tmp; '
            'printf "\\033]52;c;aG9sdA==\\a"')
    for verb in (('run', '-it', '--'), ('exec', '-it', box, '--')):
        with Keyboard(hub, *verb, *asks, more={'COLORTERM': 'truecolor'}) as k:
            assert k.end() == 0
            assert b'<truecolor>\r\n1000:1777\r\n1000:1777\r\n' in k.seen
            assert b'\x1b]52;c;aG9sdA==\a' in k.seen
    with Keyboard(hub, 'run', '-it', '-e', 'COLORTERM=no', '--', *asks,
                  more={'COLORTERM': 'truecolor'}) as k:
        assert k.end() == 0 and b'<no>' in k.seen
    assert hub.run('run', '-u', 'root', '--', 'stat', '-c', '%u', '/tmp').stdout == b'0\n'


def test_who_commits(hub, box, tmp_path):
    """As git of the host says, only where that is asked for."""
    who = 'git var GIT_AUTHOR_IDENT | cut -d">" -f1; git var GIT_COMMITTER_IDENT | cut -d">" -f1'
    (tmp_path / '.gitconfig').write_text('[user]\n name = A B\n email = a@b.example\n')
    for verb in (('run',), ('exec', box)):
        env = {'HOME': str(tmp_path)}
        if verb == ('run',):
            env['GIT_COMMITTER_NAME'] = 'C'
        plain, told = (hub.run(verb[0], *more, *verb[1:], '--', 'sh', '-c', who, env=env)
                       for more in ((), ('--git-identity',)))
        assert b'a@b.example' not in plain.stdout
        assert told.stdout.splitlines() == [
            b'A B <a@b.example', (b'C' if verb == ('run',) else b'A B') + b' <a@b.example'], told


def test_what_was_typed_goes_before_we_leave(hub, box, left):
    with Keyboard(hub, 'attach', '--since-offset', '0', box, left) as k:
        k.until(b'$ ')
        until(k.is_raw)
        k.type(b'echo $((6*7)); A=\x10\x11\r')  # all in one piece
        assert k.end() == 0 and k.seen.endswith(b'it runs on\r\n')
    with Keyboard(hub, 'attach', box, left) as k:
        until(k.is_raw)
        k.type(b'there\recho $A\r')
        k.until(b'42')
        k.until(b'there\r\n')
        k.type(b'\x10\x11')
        assert k.end() == 0


def test_keys_are_for_people(hub, box):
    """What leaves a terminal means nothing in a pipe."""
    job = hub.ok('exec', '-d', '-t', box, '--', 'sh', '-c',
                 'stty raw -echo; echo on; head -c 4 | od -An -c').decode().strip()
    hub.call('POST', f'/v1/sandboxes/{box}/execs/{job}/wait', {'text': 'on'})
    done = hub.run('attach', '--since-offset', '0', box, job, input=b'a\x10\x11b')
    assert done.returncode == 0 and done.stdout.split() == [b'on', b'a', b'020', b'021', b'b'], done


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_whatever_ends_attach_leaves_it_running(hub, box, left, number):
    with Keyboard(hub, 'attach', '--since-offset', '0', box, left) as k:
        k.until(b'$ ')
        until(k.is_raw)
        k.proc.send_signal(number)
        if number == signal.SIGKILL:
            assert k.proc.wait(60) == -number
        else:
            assert k.end() == -number
    assert hub.call('GET', f'/v1/sandboxes/{box}/execs/{left}')['state'] == 'running'


def test_attach_to_what_changes_streams_often(hub, box):
    """Each change is a message of its own, of which only so many may wait: many small ones hold who
    reads as large ones do."""
    line = 'i=0; while [ $((i += 1)) -le 10000 ]; do echo o; echo e >&2; done'
    job = hub.ok('exec', '-d', box, '--', 'sh', '-c', line).decode().strip()
    assert hub.run('wait', box, job).returncode == 0
    done = hub.run('attach', '--since-offset', '0', box, job)
    assert (done.returncode, done.stdout, done.stderr) == (0, b'o\n' * 10000, b'e\n' * 10000)


def test_attach_says_what_is_wrong(hub, box, left):
    for keys in ('', 'ctrl-', 'ctrl-1', 'ab', 'a,', 'a,b,c,d,e,f,g,h,i'):
        assert hub.run('attach', '--detach-keys', keys, box, left).returncode in (2, 125), keys
    with Keyboard(hub, 'attach', box, 'nothing') as k:
        assert k.end() == 125
    # no key could leave it
    with Keyboard(hub, 'attach', '--no-stdin', '--since-offset', '0', box, left) as k:
        k.until(b'$ ')
        assert not k.is_raw()
        k.type(b'\x1c')
        assert k.end() == 0
    # without one of our own
    done = hub.run('attach', '--since-offset', '0', box, left, input=b'echo $((6*7)); exit 4\n')
    assert done.returncode == 4 and b'42\r\n' in done.stdout, done


# ---- programs ---------------------------------------------------------------------------------

def test_a_pipe(hub, box):
    assert hub.ok('exec', '-i', box, '--', 'cat', input=b'through\0\xff\n') == b'through\0\xff\n'
    assert hub.ok('exec', '-i', box, '--', 'cat', input=b'') == b''
    assert (hub.ok('exec', '-i', box, '--', 'sh', '-c', 'cat; echo after', input=b'x' * 3000000)
            == b'x' * 3000000 + b'after\n')
    assert hub.ok('exec', '-i', box, '--', 'true', input=b'x' * 3000000) == b''  # nobody reads it
    done = hub.run('exec', '-it', box, '--', 'sh', '-c', 'cat; tty', input=b'line\n')
    assert done.returncode == 0 and done.stdout.endswith(b'line\r\n/dev/pts/0\r\n'), done


@pytest.mark.parametrize('flags', [(), ('-t',)])
def test_a_loop_keeps_its_input(hub, box, flags):
    """As with `docker exec`: without -i it reads none."""
    loop = 'while read -r line; do "$@"; echo "$line"; done'
    for given, want in ((flags, 'ran\na\nran\nb\n'), (('-i',), 'b\nran\na\n')):  # then the control
        command = 'echo ran' if '-t' in given else 'cat; echo ran'
        argv = hub.who.argv('exec', *given, box, '--', 'sh', '-c', command)
        done = subprocess.run(['sh', '-c', loop, 'sh', *argv], env=hub.env, cwd='/',
                              input=b'a\nb\n', capture_output=True, timeout=60, check=True)
        assert done.stdout.decode().replace('\r', '') == want, (given, done)


def test_a_file(hub, box, tmp_path):
    data = os.urandom(1 << 20)
    (tmp_path / 'file').write_bytes(data)
    with open(tmp_path / 'file', 'rb') as f:
        assert hub.ok('exec', '-i', box, '--', 'cat', stdin=f) == data


SIZE = 100 << 20


def test_a_hundred_megabytes_through_both_directions(hub, box):
    piece = os.urandom(1 << 20)
    sent, got, n = hashlib.sha256(), hashlib.sha256(), 0
    with subprocess.Popen(hub.who.argv('exec', '-i', box, '--', 'cat'), env=hub.env, cwd='/',
                          stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as proc:
        def send():
            for i in range(SIZE >> 20):
                part = piece[i:] + piece[:i]
                sent.update(part)
                proc.stdin.write(part)
            proc.stdin.close()
        sender = threading.Thread(target=send)
        sender.start()
        while part := proc.stdout.read(1 << 20):
            got.update(part)
            n += len(part)
        sender.join()
        assert proc.wait(60) == 0 and n == SIZE and got.digest() == sent.digest()


def test_a_slow_reader_holds_it(hub, box):
    with hub.popen('exec', box, '--', 'sh', '-c', 'head -c 100000000 /dev/zero; '
                   'echo end >&2') as proc:
        assert proc.stdout.read(1) == b'\0'
        for _ in range(10):
            assert runs(hub, box, 'head -c 100000000')
        assert len(proc.stdout.read()) == 100000000 - 1
        assert proc.wait(60) == 0 and proc.stderr.read() == b'end\n'


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_killed_while_it_is_held(hub, box, number):
    """Its input waits for a command that reads nothing."""
    with subprocess.Popen(hub.who.argv('exec', '-i', box, '--', 'sh', '-c',
                                       'echo on; exec sleep 5555'), env=hub.env, cwd='/',
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as proc:
        assert proc.stdout.readline() == b'on\n'
        os.set_blocking(proc.stdin.fileno(), False)
        deadline, full = time.monotonic() + 60, 0
        while full < 20:  # a while after which nothing more goes in
            assert time.monotonic() < deadline
            try:
                os.write(proc.stdin.fileno(), b'x' * 65536)
                full = 0
            except BlockingIOError:
                full += 1
                time.sleep(0.01)
        proc.send_signal(number)
        assert proc.wait(60) == -number
        proc.stdin = None
    until(lambda: not runs(hub, box, 'sleep 5555'), what='the end of the command')


# ---- MCP over stdio through it ------------------------------------------------------------------

SERVER = r'''
import json, sys
def say(**message):
    sys.stdout.write(json.dumps({'jsonrpc': '2.0', **message}, ensure_ascii=False) + '\n')
    sys.stdout.flush()
for line in sys.stdin:
    m = json.loads(line)
    if m.get('method') == 'initialize':
        say(id=m['id'], result={'protocolVersion': m['params']['protocolVersion'],
                                'capabilities': {'tools': {}},
                                'serverInfo': {'name': 'inside', 'version': '1'}})
    elif m.get('method') == 'tools/list':
        say(id=m['id'], result={'tools': [{'name': 'echo', 'inputSchema': {
            'type': 'object', 'properties': {'text': {'type': 'string'}}, 'required': ['text']}}]})
    elif m.get('method') == 'tools/call':
        print('called', file=sys.stderr)
        say(id=m['id'],
            result={'content': [{'type': 'text', 'text': m['params']['arguments']['text']}]})
    elif 'id' in m and 'method' in m:
        say(id=m['id'], error={'code': -32601, 'message': 'no such method'})
'''

@pytest.fixture(scope='module')
def server(hub, box):
    hub.ok('fs', 'write', box, '/workspace/server.py', input=SERVER.encode())
    return ['env', f'HOLT_HOME={hub.home}',
            *hub.who.argv('exec', '-i', box, '--', 'python3', '/workspace/server.py')]


def test_mcp_by_our_client(hub, server):
    assert b'echo' in hub.ok('mcp', 'tools', '--', *server)
    assert hub.ok('mcp', 'call', 'echo', 'text=hello there', '--',
                  *server).strip() == b'hello there'


def test_mcp_by_the_sdk(hub, server):
    """The TypeScript SDK, which knows nothing of sandboxes."""
    sdk = script('@modelcontextprotocol', 'sdk', 'dist', 'esm', 'client', 'index.js')[1]
    program = f'''
import {{ Client }} from {json.dumps(sdk)};
import {{ StdioClientTransport }} from {json.dumps(sdk.replace('index.js', 'stdio.js'))};
const text = "ä€😀 \u2028 " + "x".repeat(300000);
const client = new Client({{ name: 'outside', version: '1' }});
await client.connect(new StdioClientTransport({{
    command: {json.dumps(server[0])}, args: {json.dumps(server[1:])},
    env: {json.dumps(hub.env)}, stderr: 'ignore' }}));
for (let i = 0; i < 20; i++) {{
    const answer = await client.callTool({{ name: 'echo', arguments: {{ text: text + i }} }});
    if (answer.content[0].text !== text + i) throw new Error('it came back otherwise');
}}
console.log((await client.listTools()).tools[0].name);
await client.close();
'''
    done = subprocess.run([NEW_NODE, '--input-type=module', '-e', program], capture_output=True,
                          check=False, timeout=60,
                          env=hub.env)
    assert done.returncode == 0 and done.stdout == b'echo\n', done
