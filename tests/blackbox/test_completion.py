"""`holt completion`: bash, zsh and fish complete verbs, words, options, choices and sandboxes."""

import os
import pty
import select
import subprocess
import time

import pytest

from test_hub_cli import Hub

LOAD = {'bash': 'source <(holt completion bash)',
        'zsh': 'autoload -U compinit; compinit -D; source <(holt completion zsh)',
        'fish': 'holt completion fish | source'}
TYPED = {'holt vers': 'holt version ', 'holt snapshot exp': 'holt snapshot export ',
         'holt up --rete': 'holt up --retention ', 'holt ls -o js': 'holt ls -o json ',
         'holt help doc': 'holt help doctor ', 'holt run --image ho': 'holt run --image host ',
         'holt up ho': 'holt up host ', 'holt mcp --tools sand': 'holt mcp --tools sandbox ',
         'holt mcp config claude-d': 'holt mcp config claude-desktop ',
         'holt exec agent-t': 'holt exec agent-tool-call '}


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    shared = Hub(me, tmp_path_factory.mktemp('completion'), '--listen', '127.0.0.1:0', '--pool',
                 '1')
    folder = tmp_path_factory.mktemp('bin')
    os.symlink(me.argv()[-1], folder / 'holt')
    shared.shell_env = {**shared.env, 'PATH': f'{folder}:{os.environ["PATH"]}', 'HOME': str(folder),
                        'TERM': 'dumb'}
    shared.ok('up', '-n', 'agent-tool-call')
    yield shared
    assert shared.end() == 0, shared.said()
    shared.kill()


class Person:
    """At a shell, on a terminal."""

    def __init__(self, argv, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, env)
        self.seen = ''

    def type(self, text):
        os.write(self.fd, text.encode())

    def sees(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert select.select([self.fd], [], [],
                                 max(0, end - time.monotonic()))[0], (text, self.seen)
            self.seen += os.read(self.fd, 4096).decode(errors='replace')

    def leave(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


@pytest.mark.parametrize('shell, argv',
                         [('bash', ['bash', '--norc', '-i']), ('zsh', ['zsh', '-f', '-i'])])
def test_tab(hub, shell, argv):
    person = Person(argv, hub.shell_env)
    try:
        person.type(LOAD[shell] + '; echo load""ed\n')
        person.sees('loaded')
        for typed, whole in TYPED.items():
            person.seen = ''
            person.type(typed + '\t')
            person.sees(whole)
            person.type('\x15')  # away with the line
    finally:
        person.leave()


def test_fish(hub):
    for typed, whole in TYPED.items():
        done = subprocess.run(['fish', '--no-config', '-c', f'{LOAD["fish"]}; '
                               f'complete -C "{typed}"'], env=hub.shell_env, timeout=60,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
        assert whole.split()[-1] in done.stdout.decode().split(), (typed, done)


def test_no_hub_is_started(hub, tmp_path):
    done = hub.run('completion', '--', 'exec', '',
                   env={'HOLT_HOME': str(tmp_path), 'HOLT_SOCKET': ''})
    assert done.returncode == 0 and done.stdout == b'' and not (tmp_path / 'hub.log').exists()


def test_wrong(hub):
    for words in ([], ['tcsh'], ['bash', 'zsh'], ['bash', '--', 'x']):
        if words[-1:] == ['x']:
            assert hub.ok('completion', *words).startswith(b'#')
        else:
            hub.fails(2, '', 'completion', *words)
    assert hub.ok('completion', '--', 'nosuch', 'x') == b''
    assert hub.ok('completion', '--', 'x' * 5000) == b''
