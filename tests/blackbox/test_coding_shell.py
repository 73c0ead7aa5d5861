"""Coding tools that run programs: shells, tests, linters, watches (docs/coding.md). D1 to D12 are
defects that servers of this kind have had; each is a test here."""

import json
import os
import shutil
import tempfile
import time

import pytest

import host
from client import until

def texts(result):
    return [part['text'] for part in result['content']]


class Work:
    """A client, and the folder of the host that it works in."""

    def __init__(self, me, *flags, env=None):
        self.me = me
        self.path = tempfile.mkdtemp(dir=me.work)
        os.chown(self.path, me.uid, me.uid)
        self.mcp = me.mcp('--pool', '0', '--workspace', self.path, '--tools', 'coding', *flags,
                          env=env)
        self.mcp.initialize()

    def put(self, name, content, mode=0o644):
        """In a folder, which is made."""
        at = self.path
        for part in os.path.dirname(name).split('/'):
            at = os.path.join(at, part)
            os.makedirs(at, exist_ok=True)
            os.chown(at, self.me.uid, self.me.uid)
        at = os.path.join(self.path, name)
        with open(at, 'w') as f:
            f.write(content)
        os.chmod(at, mode)
        os.chown(at, self.me.uid, self.me.uid)

    def clear(self):
        for name in os.listdir(self.path):
            at = os.path.join(self.path, name)
            if os.path.isdir(at):
                shutil.rmtree(at, ignore_errors=True)
            else:
                os.unlink(at)

    def answer(self, tool, **arguments):
        return self.mcp.request('tools/call', {'name': tool, 'arguments': arguments},
                                timeout=280)['result']

    def call(self, tool, **arguments):
        said = self.answer(tool, **arguments)
        assert not said.get('isError'), said
        return said

    def text(self, tool, **arguments):
        return '\n'.join(texts(self.call(tool, **arguments)))

    def facts(self, tool, **arguments):
        return self.call(tool, **arguments)['_meta']['holt/facts']

    def start(self, tool, **arguments):
        """A call that others may overlap; ended() has its answer."""
        return self.mcp.start('tools/call', {'name': tool, 'arguments': arguments})

    def ended(self, call):
        said = self.mcp.wait(call, timeout=100)['result']
        assert not said.get('isError'), said
        return said

    def fails(self, code, tool, **arguments):
        said = self.answer(tool, **arguments)
        assert said['isError'], said
        failure = json.loads(texts(said)[0])
        assert failure['code'] == code, failure
        return failure

    def until(self, ready, tool, **arguments):
        """Asks again until what is said is what is waited for."""
        deadline = time.monotonic() + 60
        while True:
            said = self.text(tool, **arguments)
            if ready(said):
                return said
            assert time.monotonic() < deadline, said
            time.sleep(0.05)


@pytest.fixture(scope='module')
def work(me):
    before = host.Residue(me.trees)
    w = Work(me)
    yield w
    assert w.mcp.close() == 0
    shutil.rmtree(w.path)
    before.check()


@pytest.fixture(autouse=True)
def empty(work):
    work.clear()


# ---- shells ------------------------------------------------------------------------------------


def test_bash_shows_output_and_exit(work):
    assert work.text('Bash', command='pwd; echo oops >&2; exit 3', description='try') == \
        '/workspace\n--- stderr ---\noops\nexit: 3'
    assert work.text('Bash', command='cat') == 'exit: 0'  # its input is empty
    assert 'killed by signal 9' in work.text('Bash', command='kill -9 $$')


def test_a_timeout_kills_all_of_it(work):
    said = work.call('Bash', timeout=3,
                     command='setsid sleep 4321 & sleep 4321 & echo begun; wait')
    assert said['_meta']['holt/facts']['timed_out']
    assert texts(said)[0].startswith('begun\n') and 'timed out' in texts(said)[0]
    left = 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " " | grep -c "sleep 432[1]"'
    work.until(lambda said: said == '0\nexit: 1', 'Bash', command=left)


def test_what_is_left_out_can_be_read(work):
    """Head and tail are shown; the rest is there by its offset."""
    said = work.call('Bash', command='seq 200000; echo oops >&2')
    facts, shown = said['_meta']['holt/facts'], texts(said)
    assert shown[0].startswith('1\n2\n') and '\n200000\n--- stderr ---\noops\nexit: 0' in shown[0]
    assert len(shown[0]) < 64000 and 'BashOutput' in shown[1]
    offset, whole = facts['next_offset'], ''
    while True:
        part = work.call('BashOutput', shell_id=facts['shell_id'], offset=offset,
                         max_bytes=1 << 20)
        whole += texts(part)[0].rsplit('\nstatus: ', 1)[0] + '\n'
        offset = part['_meta']['holt/facts']['next_offset']
        if part['_meta']['holt/facts']['eof']:
            break
    rest = ''.join(f'{i}\n' for i in range(1, 200001))[facts['next_offset']:]
    assert rest[:5000] in whole and '199999\n200000\n' in whole


def test_d2_the_last_line_of_a_shell_is_there(work):
    begun = [work.facts('Bash', command='seq 1000; echo last', run_in_background=True)['shell_id']
             for _ in range(20)]
    for shell in begun:
        said = work.text('BashOutput', shell_id=shell, wait=30)
        assert '\n1000\nlast\nstatus: exited (exit 0)' in said


def test_a_shell_is_read_on_and_killed(work):
    shell = work.facts('Bash', command='echo one; read x; sleep 4321',
                       run_in_background=True)['shell_id']
    said = work.until(lambda said: said.startswith('one\n'), 'BashOutput', shell_id=shell)
    assert said == 'one\nstatus: running; next offset: 4' or 'exit' in said
    assert work.text('BashOutput', shell_id=shell, offset=4).startswith('status: ')
    assert 'status: ' in work.text('KillShell', shell_id=shell)
    assert work.facts('BashOutput', shell_id=shell)['state'] != 'running'
    work.fails('process_not_found', 'BashOutput', shell_id='none')
    work.fails('process_not_found', 'KillShell', shell_id='none')


def memory(pid):
    with open(f'/proc/{pid}/status') as f:
        return next(int(line.split()[1]) for line in f if line.startswith('VmRSS:'))


def hub_of(work):
    """The process of Holt itself, below what started it."""
    return work.mcp.pid


def test_d12_output_and_shells_are_bounded(work):
    work.text('Bash', command='true')
    before = memory(hub_of(work))
    said = work.call('Bash', command='head -c 150000000 /dev/zero | tr "\\0" x')
    assert len(texts(said)[0]) < 64000
    work.put('script/test', '#!/bin/sh\nhead -c 150000000 /dev/zero | tr "\\0" x\n', 0o755)
    assert work.facts('run_tests')['verdict'] == 'unparsed'
    assert memory(hub_of(work)) - before < 40 << 10
    shells = []
    while True:
        said = work.answer('Bash', command='exec sleep 4321', run_in_background=True)
        if said.get('isError'):
            break
        shells.append(said['_meta']['holt/facts']['shell_id'])
    assert json.loads(texts(said)[0])['code'] == 'limit_exceeded' and len(shells) <= 64
    # The last shells may not be sleeps yet: ask again until none came.
    work.until(lambda said: said.startswith('0\n'), 'Bash',
               command='pkill -x sleep; pgrep -cx sleep')
    assert 'exit 0' in work.text('BashOutput', wait=30, shell_id=work.facts(
        'Bash', command='true', run_in_background=True)['shell_id'])


# ---- watches -----------------------------------------------------------------------------------


def test_d3_a_long_line_does_not_block_a_watched_process(work):
    shell = work.call('watch_process', command='head -c 3000000 /dev/zero | tr "\\0" x >&2; '
                      'echo >&2; echo "Error: after it" >&2')
    shell = texts(shell)[0].split()[-1].strip('.')
    said = work.until(lambda said: ' exited ' in said, 'watch_process_events', shell_id=shell)
    assert '[1] ' in said and ' started ' in said
    assert 'error (matched "^Error:") Error: after it\n' in said
    assert ' exited exit=0\n' in said and 'status: exited' in said
    last = int(said.rsplit(' ', 1)[1])
    assert work.text('watch_process_events', shell_id=shell,
                     since_event_id=last).startswith('status: exited; ')


def test_a_watch_tells_of_silence(work):
    shell = texts(work.call('watch_process', command='echo begun; exec sleep 4321',
                            error_patterns=[], idle_timeout_seconds=1))[0].split()[-1].strip('.')
    work.until(lambda said: ' idle_timeout no output for 1 s' in said, 'watch_process_events',
               shell_id=shell)
    work.call('KillShell', shell_id=shell)
    work.until(lambda said: ' exited exit=137' in said, 'watch_process_events', shell_id=shell)
    work.fails('invalid_arguments', 'watch_process', command='true', error_patterns=['('])
    work.fails('process_not_found', 'watch_process_events', shell_id='none')


def test_a_slow_pattern_is_dropped(work):
    shell = texts(work.call('watch_process', command='echo ' + 'a' * 3000 + '!; echo Error: x',
                            error_patterns=['^(a+)+$', '^Error:']))[0].split()[-1].strip('.')
    said = work.until(lambda said: ' exited ' in said, 'watch_process_events', shell_id=shell)
    assert 'note pattern 1 takes too long' in said and 'error (matched "^Error:") Error: x' in said


# ---- tests and linters -------------------------------------------------------------------------


def test_what_is_no_project_is_told(work):
    assert 'no project found' in work.fails('invalid_arguments', 'run_tests')['cause']
    work.put('a/package.json', '{}')
    work.put('b/go.mod', 'module b\n')
    assert 'go in b, node in a' in work.fails('invalid_arguments', 'run_tests')['cause']
    assert 'language "rust"' in work.fails('invalid_arguments', 'run_tests',
                                           language='rust')['cause']
    work.put('a/package.json', '{"scripts": ')
    assert 'package.json' in work.fails('invalid_arguments', 'run_tests', path='a')['cause']
    work.fails('invalid_arguments', 'run_failing_tests')


def test_d1_tests_that_are_gone_do_not_count_as_passed(work):
    work.put('test_a.py', 'def test_one():\n    assert 1 == 2\n\n\ndef test_two():\n    pass\n')
    facts = work.facts('run_tests')
    assert (facts['verdict'], facts['passed'], facts['failed']) == ('failed', 1, 1)
    facts = work.facts('run_failing_tests')
    assert (facts['verdict'], facts['passed'], facts['failed']) == ('failed', 0, 1)
    work.put('test_a.py', 'def test_other():\n    pass\n')
    assert work.facts('run_failing_tests')['verdict'] in ('no_tests', 'unparsed')
    assert 'test_a.py::test_one' in work.text('last_test_failures')  # it stays
    work.put('test_a.py', 'def test_one():\n    pass\n')
    facts = work.facts('run_failing_tests')
    assert (facts['verdict'], facts['passed'], facts['failed']) == ('passed', 1, 0)
    work.fails('invalid_arguments', 'run_failing_tests')  # nothing is left


def test_d1_what_a_rerun_passes_over_stays(work):
    """A runner that finds no test of a name says nothing about it: it was renamed, is skipped, or
    is nested in one that is passed over."""
    text = """const test = require('node:test'), assert = require('node:assert')
test('adds', () => assert.equal(1, %d))
%s
"""
    nested = "test('nested', async t => { await t.test('inner', () => assert.equal(1, %d)) })"
    work.put('package.json', '{"scripts": {"test": "node --test"}}')
    for other in (nested % 2, "test('other', { skip: true }, () => {})", "test('new', () => {})"):
        work.put('a.test.js', text % (2, nested % 2))
        facts = work.facts('run_tests')
        assert facts['verdict'] == 'failed' and facts['failed'] > 1, facts
        work.put('a.test.js', text % (1, other))
        facts = work.facts('run_failing_tests')
        assert facts['verdict'] == 'failed' and facts['not_run'] > 0, (other, facts)
        assert 'inner' in work.text('last_test_failures'), other
        assert 'did not run again' in work.text('run_failing_tests'), other
    work.put('a.test.js', text % (1, nested % 1))
    assert work.facts('run_tests')['verdict'] == 'passed'
    work.fails('invalid_arguments', 'run_failing_tests')


# Tests that begin, and end when the test says so.
WAITING = '''
import os, time, pytest

@pytest.fixture(scope='module', autouse=True)
def waits():
    open(f'begun.{os.getpid()}', 'w').close()
    while not os.path.exists('go'):
        time.sleep(0.01)

@pytest.mark.parametrize('i', range(%d))
def test_one(i):
    assert os.path.exists('mended')
'''


def begun(work, n):
    """The waiting runs are that many."""
    until(lambda: sum(name.startswith('begun.') for name in os.listdir(work.path)) == n)


def failing(work, n):
    """The last run has so many failures, and a rerun that begins now will wait and pass."""
    work.put('test_a.py', WAITING % n)
    work.put('go', '')
    facts = work.facts('run_tests')
    assert (facts['verdict'], facts['failed']) == ('failed', n)
    for name in os.listdir(work.path):
        if name == 'go' or name.startswith('begun.'):
            os.unlink(os.path.join(work.path, name))
    work.put('mended', '')


def test_reruns_that_overlap_count_once(work):
    """Both run the first five failures: the others have not passed by that."""
    failing(work, 10)
    again = [work.start('run_failing_tests', limit=5) for _ in range(2)]
    begun(work, 2)
    work.put('go', '')
    for i in again:
        facts = work.ended(i)['_meta']['holt/facts']
        assert (facts['verdict'], facts['passed']) == ('passed', 5)
    facts = work.facts('last_test_failures')
    assert (facts['verdict'], facts['failed']) == ('failed', 5)
    left = work.text('last_test_failures')
    assert [i for i in range(10) if f'test_a.py::test_one[{i}]' in left] == [5, 6, 7, 8, 9]
    facts = work.facts('run_failing_tests')
    assert (facts['verdict'], facts['passed']) == ('passed', 5)
    assert work.facts('last_test_failures')['verdict'] == 'passed'


def test_failures_that_are_not_kept_have_not_passed(work):
    work.put('test_a.py', 'import os\nimport pytest\n\n\n'
             '@pytest.mark.parametrize("i", range(510))\ndef test_one(i):\n'
             '    assert os.path.exists("mended")\n')
    assert work.facts('run_tests')['failed'] == 510
    work.put('mended', '')
    for n in (200, 200, 100):
        assert work.facts('run_failing_tests', limit=200)['passed'] == n
    facts = work.facts('last_test_failures')
    assert (facts['verdict'], facts['failed']) == ('failed', 10)
    assert 'that can be named' in str(work.answer('run_failing_tests'))
    assert work.facts('run_tests')['verdict'] == 'passed'


@pytest.mark.parametrize('n', [3, 201])  # all of them run again, or all but one
def test_a_rerun_changes_nothing_of_a_later_run(work, n):
    failing(work, n)
    again = work.start('run_failing_tests', limit=200)
    begun(work, 1)
    work.put('test_a.py', 'def test_other():\n    assert 1 == 2\n')
    facts = work.facts('run_tests')
    assert (facts['verdict'], facts['failed']) == ('failed', 1)
    work.put('go', '')
    facts = work.ended(again)['_meta']['holt/facts']
    assert (facts['verdict'], facts['passed']) == ('passed', min(n, 200))  # its own answer
    facts = work.facts('last_test_failures')
    assert (facts['verdict'], facts['failed']) == ('failed', 1)
    assert 'test_a.py::test_other' in work.text('last_test_failures')
    facts = work.facts('run_failing_tests')
    assert (facts['verdict'], facts['failed']) == ('failed', 1)


def test_d5_failures_behind_much_output_are_found(work):
    work.put('script/test', '#!/bin/sh\necho TAP version 13\necho not ok 1 - early\n'
             'seq 1000000\necho not ok 2 - late\necho 1..2\nexit 1\n', 0o755)
    said = work.text('run_tests')
    assert 'script in .: FAILED; 0 passed, 2 failed' in said
    assert '1. early\n' in said and '2. late\n' in said


def test_d6_output_that_is_not_understood_is_not_0_findings(work):
    if not shutil.which('npm'):
        pytest.skip('npm is not here')
    work.put('package.json', json.dumps({'scripts': {'lint': 'echo Bad style in a.js; exit 1'}}))
    said = work.text('run_lint')
    assert 'unparsed, exit 1' in said and 'Bad style in a.js' in said
    assert '0 findings' not in said


def test_d7_a_linter_that_fails_for_its_findings_is_complete(work):
    """As clippy -D warnings, which ends with 101."""
    work.put('script/lint', '#!/bin/sh\necho "src/a.rs:1:2: error: needless return [clippy::x]"\n'
             'exit 101\n', 0o755)
    work.put('script/test', '', 0o755)
    facts = work.facts('run_lint')
    assert (facts['verdict'], facts['errors'], facts['lost']) == ('findings', 1, 0)


def test_a_program_that_is_missing_is_named(work):
    work.put('Cargo.toml', '[package]\nname = "x"\n')
    if 'exit: 0' in work.text('Bash', command='command -v cargo'):
        pytest.skip('cargo is in the sandbox')
    said = work.text('run_tests')
    assert 'cargo is not installed' in said and 'apt-get install cargo' in said


def test_a_timeout_of_tests_is_no_report(work):
    work.put('script/test', '#!/bin/sh\necho ok 1 - one\nsleep 4321\n', 0o755)
    facts = work.facts('run_tests', timeout=3)
    assert (facts['verdict'], facts['passed']) == ('timed_out', 1)


def test_a_folder_is_no_target_of_make(work):
    """make has nothing to do for one, and ends with 0."""
    work.put('Makefile', 'all:\ntest:\n\t@echo ok 1 - one; echo 1..1\n')
    work.put('a.c', 'int f(void)\n{\n\tint a[2];\n\n\ta[2] = 1;\n\treturn a[2];\n}\n')
    work.put('lint/notes', '')
    work.put('check/notes', '')
    facts = work.facts('run_lint')
    assert facts['verdict'] in ('program_missing', 'findings')  # as cppcheck is there or not
    facts = work.facts('run_tests')
    assert (facts['verdict'], facts['passed']) == ('passed', 1)
    work.put('Makefile', '.PHONY: lint check\nlint:\n\t@echo "a.c:1:2: error: bad"; exit 1\n'
             'check:\n\t@echo not ok 1 - one; echo 1..1; exit 1\n')
    assert 'a.c:1:2: error: bad' in work.text('run_lint')
    facts = work.facts('run_tests')
    assert (facts['verdict'], facts['failed']) == ('failed', 1)


def test_scripts_run_by_their_name(work):
    work.put('Makefile', 'all:\n\techo made\nhello:\n\t@echo hello\nfails:\n\tfalse\n')
    assert 'make in .: passed; exit: 0\n\nhello\n' in work.text('run_script', name='hello')
    assert work.facts('run_script', name='fails')['verdict'] == 'failed'
    failed = work.answer('run_script', name='none')
    assert failed['isError'] and texts(failed)[1] == 'all fails hello'
    work.fails('invalid_arguments', 'run_script', name='-f')


def test_compilers_are_read(work):
    work.put('Makefile', 'a.o: a.c\n\tcc -Wall -c a.c\ntest: a.o\n')
    work.put('a.c', 'int f(void)\n{\n\tint unused;\n\treturn g();\n}\n')
    said = work.text('run_typecheck')
    assert 'a.c:3:13: warning: unused variable' in said and '[-Wunused-variable]' in said
    work.put('a.c', 'int f(void)\n{\n\treturn 0;\n}\n')
    assert work.text('run_typecheck').startswith('make in .: 0 findings; exit: 0')
