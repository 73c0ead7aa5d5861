"""`holt mcp WORD` against servers that mean harm, or are careless: what they say must not hang it,
hide why it failed, or say something else than it seems. The servers are plans for
peers/planned.py."""

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import termios
import time

import pytest

from client import until
from mcp_cli import Cli, Terminal, to_program
from who import BUILD, HERE

SANITIZED = 'asan' in BUILD  # it keeps what is freed for a while
PLANNED = os.path.join(HERE, 'peers/planned.py')


@pytest.fixture
def planned(me, tmp_path):
    """The words of `holt mcp` to a server with this plan."""
    def start(**plan):
        path = tmp_path / 'plan.json'
        path.write_text(json.dumps(plan))
        return Cli(me, to_program([sys.executable, PLANNED, str(path)], '--era', 'legacy'))
    return start


def tool(schema, **more):
    return {'tools/list': {'result': {
        'tools': [{'name': 't', 'inputSchema': {'type': 'object', **schema}, **more}]}}}


# ---- what it costs to read them -----------------------------------------------------------------


def test_a_schema_that_branches_for_ever(planned):
    """Forty to the sixth: what it allows is not found out,
    and the tool can be called nevertheless."""
    defs = ({f'd{i}': {'anyOf': [{'$ref': f'#/$defs/d{i + 1}'}] * 40} for i in range(6)}
            | {'d6': {'type': 'string'}})
    cli = planned(answers=tool({'properties': {'x': {'$ref': '#/$defs/d0'}}, '$defs': defs}))
    assert 'x (any)' in cli.text('tools')
    assert cli.text('call', 't', 'x=1') == '[]\n'


def test_a_tool_of_very_many_arguments(planned):
    names = [f'p{i}' for i in range(60000)]
    cli = planned(answers=tool({'properties': {n: {'type': 'string'} for n in names},
                                'required': names}))
    text = cli.text('tools')
    assert 'p0 (string, required)' in text and '… 59800 more' in text and 'p59999' not in text


def test_a_result_of_very_many_texts(planned):
    result = {'structuredContent': {'x': ['y' * 100] * 60000},
              'content': [{'type': 'text', 'text': '1'}] * 20000}
    cli = planned(answers={**tool({}), 'tools/call': {'result': result}})
    assert cli.text('call', 't').startswith('1\n1\n')


# ---- servers that never come to an end ----------------------------------------------------------

ENDLESS = """
import json, sys, time
def put(**m):
    sys.stdout.write(json.dumps({'jsonrpc': '2.0', **m}) + chr(10)); sys.stdout.flush()
for line in sys.stdin:
    m = json.loads(line)
    if m.get('method') == 'initialize':
        put(id=m['id'], result={'protocolVersion': m['params']['protocolVersion'],
                                'capabilities': {'tools': {}},
                                'serverInfo': {'name': 'endless', 'version': '1'}})
    elif m.get('method') == 'tools/list':
        put(id=m['id'], result={'tools': [{'name': 't', 'inputSchema': {'type': 'object'}}]})
    elif m.get('method') == 'tools/call':
        n = 0
        while True:
            n += 1
            if sys.argv[1] == 'progress':
                put(method='notifications/progress',
                    params={'progressToken': m['params']['_meta']['progressToken'], 'progress': n})
                time.sleep(0.05)
            elif sys.argv[1] == 'ping':
                put(id=n, method='ping')
            else:
                put(id=n, method='elicitation/create', params={
                    'message': 'x', 'requestedSchema': {'type': 'object', 'properties': {}}})
"""


# What a process takes at most counts from before it was executed: its parent is a small one.
SMALL = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""


def ended_by(me, kind, *options):
    """Status, what was said, seconds, and MiB of memory at most."""
    argv = me.argv('mcp', 'call', 't', '--json', '--progress', *options,
                   *to_program([sys.executable, '-c', ENDLESS, kind], '--era', 'legacy'))
    begun = time.monotonic()
    done = subprocess.run([sys.executable, '-c', SMALL, *argv], env=me.env, cwd='/',
                          stdin=subprocess.DEVNULL,
                          capture_output=True, check=False)
    error = json.loads(done.stderr.splitlines()[-1])['error']
    return done.returncode, error, time.monotonic() - begun, int(done.stdout) >> 10


def test_the_timeout_is_for_all_of_it(me):
    status, error, seconds, _ = ended_by(me, 'progress', '--timeout', '6')
    assert (status, error['kind']) == (124, 'timeout') and seconds >= 6, (error, seconds)


@pytest.mark.parametrize('kind', ['ping', 'elicit'])
def test_a_server_that_asks_and_does_not_read(me, kind):
    """What waits for it does not grow until it is out of time."""
    status, error, _, mib = ended_by(me, kind, '--timeout', '60')
    assert ((status, error['kind']) == (4, 'unreachable')
            and 'reads no answers' in error['message']), error
    assert mib < 80 or SANITIZED, mib


def test_what_a_server_has_started_in_a_session_of_its_own(planned, me, tmp_path):
    """Nothing is left behind: not what has left its process group,
    and not what has no parent any more."""
    script = (f'setsid sh -c "echo \\$\\$ >>{tmp_path}/pids; setsid sleep 600 & echo \\$! '
              f'>>{tmp_path}/pids; wait" >/dev/null 2>&1 &\n')
    plan = tmp_path / 'plan.json'
    plan.write_text(json.dumps({'answers': tool({})}))
    cli = Cli(me, to_program(['sh', '-c', f'{script}while [ "$(wc -l <{tmp_path}/pids)" != 2 ]; '
                              'do sleep 0.01; done; exec "$@"', 'sh',
                              sys.executable, PLANNED, str(plan)], '--era', 'legacy'))
    assert cli.text('tools').startswith('t')
    pids = (tmp_path / 'pids').read_text().split()
    assert len(pids) == 2 and not [p for p in pids if os.path.exists(f'/proc/{p}')]


# ---- what is told of failures -------------------------------------------------------------------


def test_a_failure_of_any_size_is_json(planned):
    error = {'code': -32000, 'message': 'no', 'data': ['y' * 1000] * 3000}
    got = planned(answers={'tools/list': {'error': error}}).failure(6, 'tools')
    assert got['data'] == error['data'] and got['code'] == -32000


def test_what_is_left_out_of_lists(planned):
    cli = planned(answers={'tools/list': {'result': {'tools': [
        {'x': 1}, {'name': 'p', 'inputSchema': {'type': 'object'}}]}}})
    done = cli.run('tools')
    assert ((done.returncode, done.stdout) == (0, b'p\n') and b'1 of the list is left out'
            in done.stderr)


# ---- before anything is started -----------------------------------------------------------------


def started(tmp_path):
    """A server that tells when it was started, and nothing else."""
    return ['--', 'sh', '-c', f'echo up >>{tmp_path}/started']


@pytest.mark.parametrize('given', [
    ['call', 't', 's=@/no/such/file'], ['call', 't', 'loose'], ['call', 't', 'i:=x'],
    ['call', 't', '{"i":'], ['call', 't', '[1]'], ['call', 't', b'\xff=1'], ['call', b'\xff'],
    ['read', b'\xff'],
    ['tools', '--answer', 'loose'], ['tools', '--answer', '{"x":'],
    ['tools', '--answer', 'a=1', '--answer', 'a=2'], ['tools', '--answer', 'a=1', '--answer', '{}'],
    ['tools', '--answer', 'a=@/no/such/file'], ['tools', '--root', '/no/such/folder'],
], ids=str)
def test_a_command_line_that_can_not_be(me, tmp_path, given):
    got = Cli(me, started(tmp_path)).failure(2, *given)
    assert got['kind'] == 'usage' and not os.path.exists(f'{tmp_path}/started')


@pytest.mark.parametrize('server, says', [
    ({'command': 'sh', 'args': '-c'}, 'args takes an array'),
    ({'command': 'sh', 'args': {'a': 'b'}}, 'args takes an array'),
    ({'command': 'sh', 'env': ['A=b']}, 'env takes an object'),
    ({'url': 'http://127.0.0.1:1/', 'headers': 'A: b'}, 'headers takes an object'),
])
def test_a_configuration_that_can_not_be(me, tmp_path, server, says):
    (tmp_path / 'config').write_text(json.dumps({'mcpServers': {'s': server}}))
    assert says in Cli(me, ['--config', str(tmp_path / 'config'), '--server',
                            's']).failure(2, 'tools')['message']


def test_a_token_that_is_none(me, tmp_path):
    (tmp_path / 'token').write_text('a\nb\n')
    got = Cli(me, ['--url', 'http://127.0.0.1:1/', '--token-file',
                   str(tmp_path / 'token')]).failure(2, 'tools')
    assert 'token' in got['message'] and 'control character' in got['message']


def test_an_interrupt_while_arguments_are_read(me, tmp_path):
    argv = me.argv('mcp', 'call', 't', '-', *started(tmp_path))
    with subprocess.Popen(argv, env=me.env, cwd='/', stdin=subprocess.PIPE,
                          stderr=subprocess.PIPE) as proc:
        proc.stdin.write(b'{')
        proc.stdin.flush()
        until(lambda: fcntl.ioctl(proc.stdin, termios.FIONREAD, bytes(4)) == bytes(4),
              what='its reading')
        proc.send_signal(signal.SIGINT)
        assert proc.wait(60) in (-signal.SIGINT, 130)
    assert not os.path.exists(f'{tmp_path}/started')


@pytest.mark.parametrize('given, status, says', [
    (['discover', '--all'], 2, 'which server'),
    (['discover', '--all', '--', '/no/such/program'], 4, '/no/such/program'),
    (['discover', '--all', '--', 'false'], 4, 'status 1'), (['logout'], 2, '--url'),
    (['logout', '--url', 'unix:/x'], 2, 'no log-in'),
], ids=str)
def test_why_nothing_works(me, given, status, says):
    done = me.run('mcp', *given)
    assert done.returncode == status and says in done.stderr.decode() and not done.stdout, done
    if given[0] == 'discover':
        assert says in Cli(me, given[2:]).failure(status, 'discover', '--all')['message']


# ---- output that is not taken -------------------------------------------------------------------


@pytest.mark.parametrize('size', [1, 1 << 20])
def test_output_that_can_not_be_written(planned, size):
    cli = planned(answers=tool({'description': 'x' * size}))
    with open('/dev/full', 'wb') as full:
        for word in ['tools'], ['tools', 't']:
            done = cli.run(*word, '--json', stdout=full)
            error = json.loads(done.stderr)['error']
            assert (done.returncode == 125 and error['kind'] == 'failed'
                    and error['message'].startswith('standard output: ')), done
            assert size > 1 or 'No space' in error['message']
            done = cli.run(*word, stdout=full)
            assert done.returncode == 125 and done.stderr.count(b'standard output: ') == 1, done


def test_output_that_nobody_reads(planned):
    """As in `holt mcp tools | head -1`: it ends in silence,
    as what the signal would have killed."""
    for size in 1, 1 << 20:
        read, write = os.pipe()
        os.close(read)
        with open(write, 'wb') as pipe:
            done = planned(answers=tool({'description': 'x' * size})).run('tools', 't', stdout=pipe)
        assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b''), done


def test_a_file_that_can_not_be_written_whole(planned, tmp_path):
    def limits():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
    image = {'type': 'image', 'mimeType': 'image/png', 'data': 'AAAA' * 10000}
    cli = planned(answers={**tool({}), 'tools/call': {'result': {'content': [image]}}})
    done = cli.run('call', 't', '--out', str(tmp_path / 'out'), preexec_fn=limits)
    assert (done.returncode == 125 and b'image-1.png' in done.stderr
            and os.listdir(tmp_path / 'out') == []), done
    assert 'saved as' in cli.text('call', 't', '--out', str(tmp_path / 'out'))


# ---- what it says while it works ----------------------------------------------------------------


def test_progress_of_large_numbers(planned):
    progress = {'method': 'notifications/progress',
                'params': {'progressToken': '', 'progress': 12345678, 'total': 23456789}}
    done = planned(answers=tool({}),
                   before={'tools/call': [progress]}).run('call', 't', '--progress')
    assert done.returncode == 0 and done.stderr == b'12345678 of 23456789\n', done


def form(number, properties):
    return {'id': number, 'method': 'elicitation/create',
            'params': {'message': f'question {number}',
                       'requestedSchema': {'type': 'object', 'properties': properties}}}


@pytest.fixture
def terminal(me, planned):
    """A call at a terminal, of a tool that asks this first."""
    def start(*forms):
        return Terminal(me, 'mcp', 'call', 't',
                        *planned(answers=tool({}), before={'tools/call': forms}).to)
    return start


def test_choices_are_what_they_are_numbered(terminal):
    """Also where the server calls the first of them "2"."""
    t = terminal(form(1, {'x': {'type': 'string', 'oneOf': [{'const': 'destroy', 'title': '2'},
                                                            {'const': 'keep', 'title': '1'}]},
                          'y': {'type': 'array', 'items': {'type': 'string', 'enum': ['a', 'b']}}}))
    t.expect('2) 1')
    t.type('2\n')
    t.expect('2) "b"')
    t.type('2,\n')
    t.expect('not one of the choices')
    t.type('b, 1\n')
    t.expect('Send it')
    t.type('\n')
    said, status = t.end()
    assert status == 0 and '"content": {"x": "keep", "y": ["b", "a"]}' in said, said


def test_the_end_of_input_is_the_answer_to_one_question(terminal):
    t = terminal(form(1, {'x': {'type': 'string'}}), form(2, {'x': {'type': 'string'}}))
    t.expect('question 1')
    t.expect('> ')
    t.type('\x04')
    t.expect('question 2')
    t.expect('> ')
    t.type('yes\n')
    t.expect('Send it')
    t.type('\n')
    said, status = t.end()
    assert status == 0 and '"action": "cancel"' in said and '{"x": "yes"}' in said, said
