"""`holt shell`: lines as words, each run as holt would run it, and no system shell behind it."""

import contextlib
import copy
import json
import os
import termios

import pytest

import host
from client import until
from mcp_cli import Terminal
from modules import approve, home, server
from test_hub_cli import Hub


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    folder = home(me, tmp_path_factory.mktemp('shell'), one=server())
    with Hub(me, folder, '--listen', '127.0.0.1:0', '--pool', '1') as shared:
        yield shared
    before.check()


def shell(hub, *lines, **options):
    return hub.run('shell', input='\n'.join(lines).encode() + b'\n', **options)


def test_lines_are_verbs(hub):
    done = shell(hub, '/mcp list -o json', '  mcp approve --yes one  ', '# no line', '',
                 '/mcp list', 'mcp info "one"', '/exit', 'mcp revoke one')
    assert done.returncode == 0 and done.stderr == b'5 tools can be called.\n', done
    listed, rest = done.stdout.decode().split(']', 1)
    assert json.loads(listed + ']')[0]['state'] == 'closed'
    assert rest.split()[0] == 'connected' and 'Command' in rest and 'python3' in rest
    assert hub.call('GET', '/v1/modules/one')['approved']  # what follows exit was not read


def test_the_status_is_that_of_the_last_line(hub):
    assert shell(hub, 'mcp info none').returncode == 125
    assert shell(hub, 'mcp info none', 'version').returncode == 0
    done = shell(hub, 'mcp nothing')
    assert done.returncode == hub.run('mcp', 'nothing').returncode != 0
    for line, says in (('"open', 'quote'), ('nope', 'nope'), ('shell', 'this is holt shell')):
        done = shell(hub, line)
        assert done.returncode == 125 and says.encode() in done.stderr, done


@pytest.mark.parametrize('line', [
    'version; touch MARK', 'version | tee MARK', 'version > MARK', 'version && touch MARK',
    'version $(touch MARK)', 'version `touch MARK`', '!touch MARK', 'version\ttouch MARK',
    '$SHELL -c "touch MARK"', 'sh -c "touch MARK"', '/bin/sh -c "touch MARK"', '~/x', 'version *',
    'version $HOME', r'version \; touch MARK', 'version\0; touch MARK'])
def test_no_system_shell_reads_it(hub, tmp_path, line):
    """Nothing but words: what means something there is an operand here."""
    os.chmod(tmp_path, 0o777)
    mark = tmp_path / 'mark'
    done = shell(hub, line.replace('MARK', str(mark)))
    assert not mark.exists() and os.environ.get('HOME', '/root').encode() not in done.stdout
    if '\0' not in line:
        assert done.returncode != 0 and done.stderr, done
    assert shell(hub, 'version').returncode == 0  # the control


def test_words_are_kept_together(hub):
    hub.ok('secret', 'ls')
    done = shell(hub, r'''js --register quoted --description "two  words; \"x\"" -''')
    assert done.returncode == 125  # of no more input: the rest of the lines is the shell's
    source = hub.who.work + '/quoted.js'
    with open(source, 'w', encoding='utf-8') as file:
        file.write('export const a = 1')
    os.chmod(source, 0o644)
    done = shell(hub, rf'''js --register quoted --description "two  \"words\"; \$x" '{source}' ''',
                 'mcp info ha:quoted -o json', 'js --unregister quoted')
    os.unlink(source)
    assert json.loads(done.stdout.split(b'\n', 1)[1].rsplit(b'\nha:', 1)[0])['description'] == (
        'two  "words"; \\$x'), done


def interruptible(pid):
    """A child of it that does not ignore ^C."""
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as f:
        children = f.read().split()
    for child in children:
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):  # that of an earlier line
            with open(f'/proc/{child}/status', encoding='utf-8') as f:
                ignored = next(line.split()[1] for line in f if line.startswith('SigIgn'))
            return not int(ignored, 16) & 2
    return False


def test_at_a_terminal(hub):
    """Editing, completion, history, and ^C for what a line runs."""
    who = copy.copy(hub.who)
    who.env = {**who.env, **hub.env, 'TERM': 'xterm'}
    approve(hub, 'one')
    talk = Terminal(who, 'shell')
    talk.expect('holt> ')
    talk.type('/mc\tli\t\n')  # /mcp list
    talk.expect('RUNS IN')
    talk.expect('one')
    talk.type('mcp inx\bfo one\n')
    talk.expect('Command')
    talk.type('\x1b[A\n')  # the line before
    talk.expect('Command')
    talk.type('mcp dis\t')  # of several it shows what there is
    for word in 'discover', 'disable', 'disconnect':
        talk.expect(word)
    talk.type('able one\n')
    talk.expect('closed')
    talk.type('js -\n')  # which reads the terminal
    until(lambda: interruptible(talk.pid), what='what the line runs')
    talk.type('\x03')
    talk.expect('^C')
    talk.expect('holt> ')
    talk.type('version\n')
    talk.expect('holt 0')
    talk.expect('holt> ')
    # The prompt is there before the terminal is the editor's, and ^D would get lost.
    until(lambda: not termios.tcgetattr(talk.fd)[3] & termios.ICANON, what='an editor')
    talk.type('\x04')
    said, status = talk.end()
    assert status == 0, (said, status)
