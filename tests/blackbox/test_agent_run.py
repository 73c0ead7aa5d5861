"""`holt agent run`: an agent's own terminal interface in a lasting sandbox of a folder. The screen
is that of tmux, as a person has it."""

import contextlib
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess

import pytest

from client import until
from test_hub_cli import Hub

pytestmark = pytest.mark.skipif(not shutil.which('tmux'), reason='tmux is not installed')

TUI = r'''#!/usr/bin/python3
import os, signal, socket, sys, tty
home = os.path.expanduser('~/.tui')
if '-p' in sys.argv:
    who = os.environ.get('GIT_AUTHOR_NAME')
    read = sys.stdin.read()
    print(sys.argv[1:], os.environ['TUI_HOME'] == home, who, os.getcwd(), repr(read))
    open(home + '/kept', 'a').write('one\n')
    open('made', 'w').write('by it')
    sys.exit(3)
tty.setraw(0)
keys = 0
def draw(*_):
    size = os.get_terminal_size(0)
    out = '\x1b[2J\x1b[Htui %dx%d keys %d %s\x1b[%d;1Hbottom' % (
        size.columns, size.lines, keys, os.environ.get('COLORTERM'), size.lines)
    os.write(1, out.encode())
signal.signal(signal.SIGWINCH, draw)
os.write(1, b'\x1b[?1049h\x1b[?25l')
draw()
while True:
    key = os.read(0, 1)
    keys += 1
    if key == b'd':
        try:
            socket.create_connection(('denied.example', 443), 5)
        except OSError:
            pass
    if key == b'h':
        try:
            socket.getaddrinfo('a;rm.example', 443)
        except OSError:
            pass
    if key == b'q':
        os.write(1, b'\x1b[?25h\x1b[?1049l')
        sys.exit(7)
    draw()
'''
PRESET = {'title': 'A test', 'run': ['tui'], 'print': ['-p'], 'resume': ['--again'],
          'autonomous': ['--alone'], 'env': {'TUI_HOME': '~/.tui'}, 'state': ['~/.tui'],
          'hosts': ['granted.example:443'], 'optionalHosts': ['optional.example:443']}


NUMBERS = itertools.count()


class Agents(Hub):
    """A hub with a preset of the operator's own, and a folder of a project."""

    def __init__(self, me, top):
        self.top = top
        home = top / 'home'
        self.project = top / 'project'
        for path in (home, home / 'agents', top / 'bin', self.project):
            path.mkdir()
        (top / 'bin' / 'tui').write_text(TUI)
        (top / 'bin' / 'tui').chmod(0o755)
        preset = {**PRESET, 'find': [str(top / 'bin')]}
        (home / 'agents' / 'tui.json').write_text(json.dumps(preset))
        (home / 'config.json').write_text('{}')
        home.chmod(0o700)
        for at, _, names in os.walk(top):
            for path in (at, *(os.path.join(at, n) for n in names)):
                os.chown(path, me.uid, me.uid)
        super().__init__(me, home, '--listen', '127.0.0.1:0', '--pool', '1',
                         '--config', f'{home}/config.json')
        self.env.update(HOLT_CONFIG=f'{home}/config.json', HOME=str(top),
                        GIT_AUTHOR_NAME='A B', COLORTERM='truecolor')

    def argv(self, *arguments):
        return self.who.argv(*arguments)

    def agent(self, *arguments, **options):
        return self.run('agent', 'run', '-w', str(self.project), *arguments, **options)


@pytest.fixture(scope='module')
def shared(me, tmp_path_factory):
    top = tmp_path_factory.mktemp('agents')
    top.chmod(0o755)
    with Agents(me, top) as hub:
        yield hub


@pytest.fixture
def hub(shared):
    yield shared
    for name in shared.names():
        shared.ok('down', name)
    shutil.rmtree(shared.project)
    shared.project.mkdir()
    os.chown(shared.project, shared.who.uid, shared.who.uid)


class Screen:
    """A person at tmux, who runs `holt agent run ARGUMENT...` in the folder."""

    def __init__(self, hub, *arguments, size=(100, 20)):
        self.env = hub.env  # in that of the client is the PATH of what runs in it
        self.socket = f'{hub.top}/tmux{next(NUMBERS)}'
        command = shlex.join(hub.argv('agent', 'run', '-w', str(hub.project), *arguments))
        self.tmux('-f', '/dev/null', 'new-session', '-d', '-x', str(size[0]), '-y', str(size[1]),
                  f'{command}; echo "ended $?"; sleep 3333')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(subprocess.CalledProcessError):
            self.tmux('kill-server')

    def tmux(self, *words):
        return subprocess.run(['tmux', '-S', self.socket, *words], check=True, env=self.env,
                              stdout=subprocess.PIPE, timeout=60).stdout.decode()

    def lines(self):
        return [line.rstrip() for line in self.tmux('capture-pane', '-p').split('\n')]

    def type(self, *keys):
        self.tmux('send-keys', *keys)

    def until(self, *wanted):
        """These lines, from the top; a pattern each."""
        def there():
            lines = self.lines()
            return all(re.fullmatch(w, line) for w, line in zip(wanted, lines, strict=False))
        until(there, what=f'{wanted} in {self.lines}')
        return self.lines()

    def shows(self, text):
        until(lambda: any(text in line for line in self.lines()), what=text)
        return '\n'.join(self.lines())

    def resize(self, columns, rows):
        self.tmux('resize-window', '-x', str(columns), '-y', str(rows))


def test_a_prompt_of_a_script(hub):
    """Its answer and status; the folder and nothing else; who commits; what it keeps."""
    for more, args in (((), ['-p', 'say it']), (('--autonomous',), ['--alone', '-p', 'say it']),
                       (('-c',), ['--again', '-p', 'say it'])):
        done = hub.agent('tui', '-p', 'say it', *more, input=b'unread')
        assert done.returncode == 3, done
        assert done.stdout.decode() == f"{args} True A B {hub.project} ''\n"
    done = hub.agent('tui', '-p', 'x', '-i', '--', '--more', input=b'read')
    assert done.stdout.startswith(b"['-p', 'x', '--more']") and done.stdout.endswith(b"'read'\n")
    assert (hub.project / 'made').read_text() == 'by it'
    assert (hub.top / 'home/state/tui/.tui/kept').read_text() == 'one\n' * 4
    box, = hub.names()  # the same each time
    assert box.startswith('tui-project-')
    seen = hub.call('GET', f'/v1/sandboxes/{box}')
    assert [(a['host'], a['port']) for a in seen['network']['allow']] == [('granted.example', 443)]
    assert {v['inside']: v['mode'] for v in seen['volumes']} == {
        str(hub.project): 'rw', str(hub.top / 'bin/tui'): 'ro', '/home/agent/.tui': 'rw-all'}


def test_toolchains_of_the_home(hub):
    """Read-only, and in PATH; a workspace of the operator's file may say no."""
    for name, text in (('bin/cargo', '#!/bin/sh\n'), ('credentials.toml', 'hidden')):
        at = hub.top / '.cargo' / name
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(text)
    conf = hub.top / 'home/config.json'
    inside = str(hub.top / '.cargo/bin')

    def made():
        box = hub.agent('tui', '-d', '--new').stdout.decode().strip()
        volumes = hub.call('GET', f'/v1/sandboxes/{box}')['volumes']
        modes = {v['inside']: v['mode'] for v in volumes}
        said = hub.ok('exec', box, '--', 'sh', '-c', f'echo "$PATH"; cat {inside}/../*; true')
        return modes.get(inside), said.decode()
    try:
        mode, said = made()
        assert mode == 'ro' and said.startswith(f'{inside}:/usr/local/sbin:'), (mode, said)
        assert 'hidden' not in said
        conf.write_text(json.dumps({'workspaces': {
            'a': {'dir': str(hub.project), 'toolchains': False}}}))
        mode, said = made()
        assert mode is None and said.startswith('/usr/local/sbin:'), (mode, said)
    finally:
        conf.write_text('{}')
        shutil.rmtree(hub.top / '.cargo')


def test_the_same_sandbox_again(hub):
    """It keeps what was installed, also over a stop; --new, --name, --rm; others are left alone."""
    first = hub.agent('tui', '-d').stdout.decode().strip()
    hub.ok('exec', first, '--', 'sh', '-c', 'echo kept > /home/agent/kept')
    hub.ok('stop', first)
    assert hub.agent('tui', '-d').stdout.decode().strip() == first
    assert hub.ok('exec', first, '--', 'cat', '/home/agent/kept') == b'kept\n'
    assert hub.agent('tui', '-d', '--allow', 'more.example:8443').returncode == 0
    assert 'more.example' in hub.ok('net', 'show', first).decode()
    assert hub.agent('tui', '-d', '--new').stdout.decode().strip() == f'{first}-2'
    assert hub.agent('tui', '-d', '--name', 'mine').stdout == b'mine\n'
    assert hub.agent('tui', '-p', 'x', '--name', 'brief', '--rm').returncode == 3
    assert hub.names() == {first, f'{first}-2', 'mine'}
    hub.ok('up', '-n', 'other')
    for more, why in ((('--name', 'other'), b'none of tui'), (('--name', 'mine', '--new'), b'mine'),
                      (('--name', 'a/b'), b'letters')):
        done = hub.agent('tui', '-d', *more)
        assert done.returncode == 125 and why in done.stderr, done


def test_first_starts_at_once(hub):
    """One makes the sandbox and starts its program; the others come to both."""
    folder = f'{hub.top}/first'
    os.mkdir(folder)
    os.chown(folder, hub.who.uid, hub.who.uid)
    with contextlib.ExitStack() as all_:
        runs = [all_.enter_context(hub.popen('agent', 'run', '-d', '-w', folder, 'tui'))
                for _ in range(4)]
        said = [run.communicate() for run in runs]
    assert [run.returncode for run in runs] == [0] * 4, said
    assert len({out for out, _ in said}) == 1, said
    name = said[0][0].decode().strip()
    execs = hub.call('GET', f'/v1/sandboxes/{name}/execs')
    assert len(execs) == 1, execs
    hub.ok('down', name)


def test_run_of_a_program_of_the_host(hub):
    """`holt run` of one that no sandbox has by itself answers with the words that run it."""
    path = f'{hub.top}/.local/bin/mine'
    os.makedirs(os.path.dirname(path))
    with open(path, 'w', encoding='utf-8') as f:
        f.write('#!/bin/sh\necho "mine $1"\n')
    os.chmod(path, 0o755)
    hub.fails(127, 'which is an agent: holt agent run tui\n', 'run', '--', 'tui', '-p', 'x')
    hub.fails(127, 'which is an agent: holt agent add qwen\n', 'run', 'qwen')
    done = hub.run('run', '--', 'mine')
    assert done.returncode == 127, done
    words = shlex.split(done.stderr.decode().split('\n')[0].split(': holt ')[1])
    assert hub.ok(*words, 'too') == b'mine too\n'
    hub.fails(127, 'No such file', 'run', '--', 'nothing-at-all')


def test_what_is_refused(hub):
    for words, why in ((('tuy', '-d'), b'tui'), (('tui',), b'no terminal'),
                       (('tui', '-p', 'x', '-d'), b'-p'), (('tui', '-i', '-d'), b'-i'),
                       (('tui', '-d', '--detach-keys', ''), b'key'),
                       (('tui', '-d', '--publish', 'x'), b'port')):
        done = hub.agent(*words)
        assert done.returncode == 125 and why in done.stderr, done
    for folder, why in ((str(hub.top), b'home'), ('/', b'home'), ('/nowhere', b'No such'),
                        (str(hub.top / 'bin/tui'), b'no folder')):
        done = hub.run('agent', 'run', 'tui', '-d', *(('-w', folder) if folder != str(hub.top)
                                                      else ()), cwd=str(hub.top))
        assert done.returncode == 125 and why in done.stderr, done
    assert not hub.names()


def test_a_screen(hub):
    """It is drawn, left, come back to from a terminal of another size, and ends with its status."""
    with Screen(hub, 'tui') as s:
        s.until('tui 100x20 keys 0 truecolor', *[''] * 18, 'bottom')
        s.type('a', 'b')
        s.until('tui 100x20 keys 2 truecolor')
        s.resize(90, 18)
        s.until('tui 90x18 keys 2 truecolor')
        s.type('C-p', 'C-q')
        assert 'to come back: holt agent run tui' in s.shows('ended 0')
    for _ in range(2):
        with Screen(hub, 'tui', size=(90, 18)) as s:  # the same size: it draws anew all the same
            s.until('tui 90x18 keys 2 truecolor', *[''] * 16, 'bottom')
    with Screen(hub, 'tui', '--rm') as s:
        s.until('tui 100x20 keys 2 truecolor')
        s.type('q')
        s.shows('ended 7')
    assert not hub.names()


def test_a_name_that_is_not_granted(hub):
    """It is told at once below the program's screen, which it does not touch, with the command that
    grants it; by events, too; and with -q by these alone."""
    with Screen(hub, 'tui', size=(110, 20)) as s:
        s.until('tui 110x20 keys 0 truecolor')
        s.type('h')
        s.until('tui 110x20 keys 1 truecolor')  # a name for a shell is told to nobody
        s.type('d')
        lines = s.until('tui 110x19 keys 2 truecolor', *[''] * 17, 'bottom', '.*denied.example.*')
        said = re.fullmatch(r'denied\.example is not allowed; allow it: holt (net allow .*)',
                            lines[19])
        box, = hub.names()
        assert b'denied.example' in hub.ok('events', box)
        hub.ok(*said[1].split())
        assert b'denied.example' in hub.ok('net', 'show', box)
        s.type('x')
        s.until('tui 110x19 keys 3 truecolor', *[''] * 17, 'bottom', '.*denied.example.*')
        s.type('q')
        assert 'holt: denied.example is not allowed' in s.shows('ended 7')
        assert 'rm.example' not in '\n'.join(s.lines())
    hub.ok('down', box)
    with Screen(hub, 'tui', '-q') as s:
        s.until('tui 100x20 keys 0 truecolor')
        s.type('d')
        s.until('tui 100x20 keys 1 truecolor')
        until(lambda: b'denied.example' in hub.ok('events', box), what='the event')
        s.type('q')
        assert 'denied' not in s.shows('ended 7')
