"""Modules: MCP servers that the hub runs for its clients, each in a sandbox, behind approvals."""

import concurrent.futures
import json
import os
import signal
import time

import pytest

import host
from client import until
from modules import approve, call, home, server, text
from rest import Failed, fails
from test_hub_cli import FAILED, Hub

EVERYTHING = os.path.join(os.path.dirname(__file__), '../client/node_modules')
# Ends neither with its input nor by SIGTERM.
STUBBORN = r'''
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    while True:
        time.sleep(1000)
main()
while True:
    time.sleep(1000)
'''


SECRETS = ['0f5c2a9e71b84d6fa3c0', 'Tr0ub4dor-and-3']


def state(hub, name):
    return hub.call('GET', f'/v1/modules/{name}')['state']


def programs(mark):
    """Processes of the host that have this word among their arguments."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as f:
                if mark.encode() in f.read().split(b'\0'):
                    found.append(int(pid))
        except OSError:
            pass
    return found


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    mark = f'mark-{os.getpid()}'
    servers = {
        'plain': server('main()', mark, env={'GIVEN': 'this', 'KEY': '${secret:of-modules}'}),
        'other': server(),
        'asks': server(approval='ask', readOnlyTools=['echo']),
        'some': server(allowTools=['echo', 'crash'], denyTools=['crash']),
        'outside': server('main()', sandbox=False, env={'GIVEN': 'this'}),
        'unset': server(env={'A': '${NO_SUCH_VARIABLE}'}),
        'stubborn': server(STUBBORN, mark + '-s'),
        'silent': server('time.sleep(1000)', connectSeconds=2),
        'fails': {'command': 'false', 'approval': 'allow'},
        'secretive': {'command': 'false', 'args': [
            '--token', '${secret:of-modules}', '--api-key', SECRETS[0],
            f'--password={SECRETS[1]}', 'plain']},
        'elsewhere': {
            'url': f'https://user:{SECRETS[1]}@a.example/mcp?api_key={SECRETS[0]}&page=2'},
    }
    folder = home(me, tmp_path_factory.mktemp('modules'), {'modules': {'connected': 3}}, **servers)
    with Hub(me, folder, '--listen', '127.0.0.1:0', '--pool', '2',
             env={'HOLT_LOG': 'info', 'NOT_GIVEN': 'a secret of the hub'}) as shared:
        shared.mark, shared.servers = mark, servers
        shared.post('/v1/secrets', name='of-modules', value='value-of-the-secret')
        yield shared
    before.check()
    assert not programs(mark) and not programs(mark + '-s')


# Tells whether it could write what programs of the host act on.
WRITES = '''
try:
    open(sys.argv[1] + '/.mcp.json', 'w').close()
    said = 'written'
except OSError:
    said = 'kept'
def call(id, name, arguments):
    say({'id': id, 'result': {'content': [{'type': 'text', 'text': said}]}})
main()
'''


def test_a_home_is_the_programs_own(me, tmp_path):
    """In a folder that is its HOME or its state nothing is kept as it is, in any other that it may
    write all."""
    servers = {}
    for name in ('own', 'other', 'users', 'state'):
        folder = tmp_path / name
        folder.mkdir()
        os.chown(folder, me.uid, me.uid)
        kind = 'state' if name == 'state' else 'write'
        servers[name] = server(WRITES, str(folder), sandbox={kind: [str(folder)]},
                               env={} if name in ('other', 'state') else {'HOME': str(folder)})
    data = tmp_path / 'data'
    data.mkdir()
    with Hub(me, home(me, data, **servers), '--listen', '127.0.0.1:0', '--pool', '0',
             env={'HOME': str(tmp_path / 'users')}) as hub:
        for name, said in (('own', 'written'), ('other', 'kept'), ('users', 'kept'),
                           ('state', 'written')):
            approve(hub, name)
            assert text(hub, name, 'echo') == said, name
        assert os.listdir(tmp_path / 'state') == ['.mcp.json'] == os.listdir(tmp_path / 'own')


def test_nothing_runs_before_it_is_approved(hub):
    assert state(hub, 'plain') == 'closed' and not programs(hub.mark)
    error = fails(403, 'forbidden', call, hub, 'plain', 'echo', text='x')
    assert 'approved' in error['cause']
    assert b'not approved' in hub.ok('mcp', 'list')
    shown = hub.ok('mcp', 'info', 'plain').decode()
    assert 'GIVEN=***' in shown and 'KEY=***' in shown
    assert 'this' not in shown.split('Environment')[1]
    assert 'sandbox' in shown and 'NOT SANDBOXED' not in shown
    assert 'NOT SANDBOXED' in hub.ok('mcp', 'list').decode()
    hub.fails(FAILED, 'no terminal', 'mcp', 'approve', 'plain')
    assert not programs(hub.mark)
    assert hub.ok('mcp', 'approve', '--yes', 'plain') == b'connected\n'
    assert programs(hub.mark)


def test_only_what_was_looked_at_is_approved(hub):
    fails(409, 'conflict', hub.post, '/v1/modules/other/approve', digest='0' * 64)
    fails(400, 'invalid_input', hub.post, '/v1/modules/other/approve')
    assert state(hub, 'other') == 'closed'


def test_a_call_connects_it(hub):
    approve(hub, 'plain')
    assert text(hub, 'plain', 'echo', text='hello') == 'hello'
    assert state(hub, 'plain') == 'connected' and len(programs(hub.mark)) == 1
    assert 'ready' in hub.ok('mcp', 'logs', 'plain').decode()
    shown = hub.json('mcp', 'info', 'plain')
    assert shown['server'] == 'ours' and shown['revision'] == '2025-06-18'
    assert [t['name'] for t in shown['tools']] == ['echo', 'environment', 'crash', 'sleep', 'large']
    fails(404, 'not_found', call, hub, 'plain', 'none')


def test_it_has_its_declared_environment_alone(hub):
    approve(hub, 'plain')
    has = json.loads(text(hub, 'plain', 'environment'))
    assert has['GIVEN'] == 'this' and 'value-of-the-secret' not in json.dumps(has)  # redacted
    assert 'of-modules' in has['KEY'] and 'NOT_GIVEN' not in has
    approve(hub, 'outside')
    has = json.loads(text(hub, 'outside', 'environment'))
    assert has['GIVEN'] == 'this' and 'NOT_GIVEN' not in has
    hub.post('/v1/modules/outside/disable')


def test_no_operation_reaches_its_sandbox(hub):
    approve(hub, 'plain')
    text(hub, 'plain', 'echo', text='x')
    assert hub.call('GET', '/v1/sandboxes') == []
    assert hub.call('GET', '/v1/health')['sandboxes'] == 0


def test_a_crash_is_told_at_once_and_others_go_on(hub):
    approve(hub, 'plain')
    approve(hub, 'other')
    text(hub, 'plain', 'echo', text='x')
    text(hub, 'other', 'echo', text='x')
    error = fails(500, 'outcome_unknown', call, hub, 'plain', 'crash')
    assert 'status 3' in error['cause'] and not error['retryable'], error
    assert text(hub, 'other', 'echo', text='on') == 'on'
    assert text(hub, 'plain', 'echo', text='again') == 'again'  # after a while


def test_an_answer_that_is_none_is_the_modules_fault(hub):
    """Whatever it says instead: the caller's request was right."""
    approve(hub, 'plain')
    for said in (b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"\xff"}]}}',
                 b'{"jsonrpc":"2.0","id":ID,"result":7}', b'{"jsonrpc":"2.0","id":ID}',
                 b'{"jsonrpc":"1.0","id":ID,"result":{}}',
                 b'{"jsonrpc":"2.0","id":ID,"result":{"content":[],"isError":7}}',
                 b'{"jsonrpc":"2.0","id":ID,"result":{"content":{}}}'):
        error = fails(502, 'module_failed', call, hub, 'plain', 'crash', text=said.hex())
        assert not error['retryable'], (said, error)
    assert text(hub, 'plain', 'echo', text='on') == 'on'


@pytest.mark.timing
def test_one_that_never_starts_is_given_up(hub):
    approve(hub, 'fails')
    for _ in range(4):
        fails(502, 'module_not_started', call, hub, 'fails', 'echo')
    began = time.monotonic()
    error = fails(502, 'module_not_started', call, hub, 'fails', 'echo')
    assert '4 times' in error['cause'] and time.monotonic() - began < 15
    assert state(hub, 'fails') == 'error'
    hub.fails(FAILED, 'status 1', 'mcp', 'test', 'fails')  # tries again
    approve(hub, 'silent')
    error = fails(502, 'module_not_started', call, hub, 'silent', 'echo')
    assert '2 s' in error['cause']


def test_limits_of_a_call(hub):
    approve(hub, 'plain')
    assert len(text(hub, 'plain', 'large', text='1000000')) == 1000000
    assert 'kept' in text(hub, 'plain', 'large', text='1100000')  # test_gateway.py reads such
    fails(500, 'outcome_unknown', call, hub, 'plain', 'large', text='20000000')
    assert text(hub, 'plain', 'echo', text='still') == 'still'


def test_tools_that_the_file_hides(hub):
    approve(hub, 'some')
    assert text(hub, 'some', 'echo', text='x') == 'x'
    assert [t['name'] for t in hub.json('mcp', 'info', 'some')['tools']] == ['echo']
    for tool in ('crash', 'sleep'):
        fails(403, 'forbidden', call, hub, 'some', tool)
    digest = hub.call('GET', '/v1/modules/some')['digest']
    fails(404, 'not_found', hub.post, '/v1/modules/some/approve', digest=digest, tools=['crash'])
    hub.post('/v1/modules/some/disable')


def test_disabled_and_revoked(hub):
    approve(hub, 'plain')
    text(hub, 'plain', 'echo', text='x')
    assert hub.ok('mcp', 'disable', 'plain') == b'closed\n'
    until(lambda: not programs(hub.mark), what='its end')
    fails(403, 'forbidden', call, hub, 'plain', 'echo')
    assert hub.ok('mcp', 'enable', 'plain') == b'idle\n'
    assert text(hub, 'plain', 'echo', text='x') == 'x'
    assert hub.ok('mcp', 'revoke', 'plain') == b'closed\n'
    until(lambda: not programs(hub.mark), what='its end')
    fails(403, 'forbidden', call, hub, 'plain', 'echo')


def test_a_value_that_is_not_there(hub):
    error = fails(502, 'module_not_started', call, hub, 'unset', 'echo')
    assert 'NO_SUCH_VARIABLE' in error['cause']


def test_the_one_used_least_recently_makes_room(hub):
    for name in ('plain', 'other', 'some', 'asks'):
        approve(hub, name)
    for name in ('plain', 'other', 'some', 'asks'):
        assert text(hub, name, 'echo', text=name) == name
    assert state(hub, 'plain') == 'idle' and state(hub, 'asks') == 'connected'
    assert text(hub, 'plain', 'echo', text='x') == 'x'
    assert state(hub, 'other') == 'idle'


def test_stubborn_ones_end_too(hub):
    approve(hub, 'stubborn')
    assert text(hub, 'stubborn', 'echo', text='x') == 'x'
    assert programs(hub.mark + '-s')
    hub.post('/v1/modules/stubborn/disable')
    until(lambda: not programs(hub.mark + '-s'), what='its end')


@pytest.mark.parametrize('where', [{}, {'sandbox': False}])
def test_all_ends_with_a_hub_that_is_killed(me, tmp_path, where):
    mark = f'killed-{os.getpid()}'
    folder = home(me, tmp_path, stubborn=server(STUBBORN, mark, **where))
    hub = Hub(me, folder, '--listen', '127.0.0.1:0')
    try:
        approve(hub, 'stubborn')
        assert text(hub, 'stubborn', 'echo', text='x') == 'x' and len(programs(mark)) == 2
        os.kill(hub.proc.pid, signal.SIGKILL)
        until(lambda: not programs(mark), what='its end')
    finally:
        hub.kill()


def test_another_command_wants_another_approval(me, tmp_path):
    servers = {'one': server('main()', 'a'), 'two': server()}
    with Hub(me, home(me, tmp_path, **servers), '--listen', '127.0.0.1:0') as hub:
        first = approve(hub, 'one')
        approve(hub, 'two')
        assert text(hub, 'one', 'echo', text='x') == text(hub, 'two', 'echo', text='x') == 'x'
        servers['one'] = server('main()', 'b')
        home(me, tmp_path, **servers)
        until(lambda: state(hub, 'one') == 'closed', what='the file')
        error = fails(403, 'forbidden', call, hub, 'one', 'echo', text='x')
        assert 'another than was approved' in error['cause']
        assert state(hub, 'two') == 'connected' and text(hub, 'two', 'echo', text='x') == 'x'
        assert hub.call('GET', '/v1/modules/one')['digest'] != first
        servers['one'] = server('main()', 'a')
        home(me, tmp_path, **servers)
        until(lambda: state(hub, 'one') == 'idle', what='the file')
        assert text(hub, 'one', 'echo', text='x') == 'x'
        del servers['one']
        home(me, tmp_path, **servers)
        until(lambda: len(hub.call('GET', '/v1/modules')['modules']) == 1, what='the file')
        fails(404, 'not_found', call, hub, 'one', 'echo', text='x')
        home(me, tmp_path, {'modules': {'enabled': False}}, **servers)

        until(lambda: 'cause' in hub.call('GET', '/v1/modules'), what='the file')
        fails(403, 'forbidden', call, hub, 'two', 'echo', text='x')


def test_what_a_preset_stands_for_is_approved(me, tmp_path):
    """Who changes the preset changes what the module may reach. Control: another preset."""
    servers = {'one': server(sandbox={'network': ['web', 'b.example:80']})}

    def presets(**given):
        home(me, tmp_path, {'network': {'presets': given}}, **servers)

    presets(web=['a.example:443'], other=['c.example:443'])
    with Hub(me, tmp_path, '--listen', '127.0.0.1:0') as hub:
        digest = approve(hub, 'one')
        assert hub.call('GET', '/v1/modules/one')['network'] == [
            'web: a.example:443', 'b.example:80']
        assert text(hub, 'one', 'echo', text='x') == 'x'
        connected = hub.call('GET', '/v1/modules/one')['digest']
        presets(web=['a.example:443', 'evil.example:80 GET /x, deny * /y'])
        until(lambda: state(hub, 'one') == 'closed', what='the file')
        error = fails(403, 'forbidden', call, hub, 'one', 'echo', text='x')
        assert 'another than was approved' in error['cause']
        assert hub.call('GET', '/v1/modules/one')['network'][0] == (
            'web: a.example:443; evil.example:80 allow GET /x, deny * /y')
        fails(409, 'conflict', hub.post, '/v1/modules/one/approve', digest=connected)
        assert 'evil.example:80' in hub.ok('mcp', 'info', 'one').decode()
        presets(web=['a.example:443'], other=['d.example:443'], more=['e.example:443'])
        until(lambda: state(hub, 'one') == 'idle', what='the file')
        assert text(hub, 'one', 'echo', text='x') == 'x'
        assert hub.call('GET', '/v1/modules/one')['digest'].startswith(digest.split('.')[0])


@pytest.mark.parametrize('approved, later', [('$${secret:of-one}', '${secret:of-one}'),
                                             ('${secret:of-one}', '$${secret:of-one}')])
def test_what_looks_like_a_secret_is_none(me, tmp_path, approved, later):
    """Control: a new value of the secret needs no approval."""
    servers = {'one': server(env={'KEY': approved})}
    with Hub(me, home(me, tmp_path, **servers), '--listen', '127.0.0.1:0') as hub:
        hub.post('/v1/secrets', name='of-one', value='first-value')
        approve(hub, 'one')
        hub.post('/v1/secrets', name='of-one', value='second-value')
        assert text(hub, 'one', 'echo', text='x') == 'x'
        servers['one']['env']['KEY'] = later
        home(me, tmp_path, **servers)
        until(lambda: state(hub, 'one') == 'closed', what='the file')
        error = fails(403, 'forbidden', call, hub, 'one', 'echo', text='x')
        assert 'another than was approved' in error['cause']


# Says that its tools have changed, and lists others, until it may answer its call.
RESTLESS = r"""
import threading
def call(id, name, arguments):
    def change():
        n = 0
        while not os.path.exists(sys.argv[1] + '/end'):
            n += 1
            TOOLS[0]['description'] = f'Another: {n}.'
            say({'method': 'notifications/tools/list_changed'})
            with open(sys.argv[1] + '/n', 'w') as f:
                f.write(str(n))
            time.sleep(0.05)
        say({'id': id, 'result': {'content': [{'type': 'text', 'text': 'done'}]}})
    threading.Thread(target=change).start()
main()
"""


def test_one_that_was_replaced_says_nothing_more_of_its_tools(me, tmp_path):
    """Its call goes on; what it lists is not taken for the tools of its successor."""
    shared = tmp_path / 'shared'
    shared.mkdir()
    os.chown(shared, me.uid, me.uid)

    def changes():
        return int((shared / 'n').read_text() or 0) if (shared / 'n').exists() else 0
    folder = home(me, tmp_path, one=server(RESTLESS, str(shared), sandbox=False))
    with Hub(me, folder, '--listen', '127.0.0.1:0') as hub:
        approve(hub, 'one')
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(text, hub, 'one', 'sleep')
            try:
                until(changes, what='its call')
                home(me, tmp_path, one=server('main()', 'another'))
                until(lambda: state(hub, 'one') == 'closed', what='the file')
                seen = changes()
                until(lambda: changes() > seen + 60, what='its changes')
                assert state(hub, 'one') == 'closed'
                assert hub.call('GET', '/v1/modules/one')['tools'] == []
            finally:
                (shared / 'end').touch()
            assert answer.result(30) == 'done'
        approve(hub, 'one')
        assert text(hub, 'one', 'echo', text='x') == 'x'


@pytest.mark.parametrize('word', ['revoke', 'disable'])
def test_a_connection_of_before_ends_by_the_operators_word(me, tmp_path, word):
    """Its file changed in a call, which went on."""
    mark = f'retired-{os.getpid()}'
    with Hub(me, home(me, tmp_path, one=server('main()', mark)), '--listen', '127.0.0.1:0') as hub:
        approve(hub, 'one')
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(text, hub, 'one', 'sleep', text='600')
            until(lambda: hub.call('GET', '/v1/modules/one')['calls'] == 1, what='its call')
            home(me, tmp_path, one=server('main()', 'another'))
            until(lambda: state(hub, 'one') == 'closed', what='the file')
            assert programs(mark) and not answer.done()
            assert hub.ok('mcp', word, 'one') == b'closed\n'
            with pytest.raises(Failed) as failed:
                answer.result(10)
        assert failed.value.status == 403, failed.value.error
        until(lambda: not programs(mark), what='its end')


def test_secrets_in_the_file_are_not_shown(hub):
    """Variables are, as they stand there."""
    shown = hub.json('mcp', 'info', 'secretive')
    assert shown['args'][:2] == ['--token', '${secret:of-modules}']
    assert shown['args'][-1] == 'plain' and len(shown['args']) == 6
    assert hub.json('mcp', 'info', 'elsewhere')['url'].endswith('&page=2')
    for name in 'secretive', 'elsewhere':
        for said in json.dumps(hub.json('mcp', 'info', name)), hub.ok('mcp', 'info', name).decode():
            assert 'REDACTED' in said and not [s for s in SECRETS if s in said], said


def test_tools_are_found_and_connections_ended(hub):
    """As models do it with search_modules and manage_mcp."""
    approve(hub, 'plain')
    assert text(hub, 'plain', 'echo', text='x') == 'x'
    found = hub.call('GET', '/v1/tools?query=echo&limit=1')
    assert [t['name'] for t in found['tools']] == ['echo'] and found['total'] >= 1
    table = hub.ok('mcp', 'search', '-n', '50', 'gives', 'echo').decode()
    assert table.split()[:4] == ['MODULE', 'TOOL', 'CALLS', 'DESCRIPTION']
    assert any(line.split()[:3] == ['plain', 'echo', 'allow'] for line in table.splitlines())
    assert hub.json('mcp', 'search', 'no-such-word')['tools'] == []
    fails(400, 'invalid_input', hub.call, 'GET', '/v1/tools')
    assert hub.ok('mcp', 'disconnect', 'plain') == b'idle\n'
    until(lambda: not programs(hub.mark), what='its end')
    assert text(hub, 'plain', 'echo', text='x') == 'x'
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(text, hub, 'plain', 'sleep', text='5')
        until(lambda: hub.call('GET', '/v1/modules/plain')['calls'] == 1, what='its call')
        fails(409, 'conflict', hub.post, '/v1/modules/plain/disconnect')
        assert answer.result(30) == '5'


def test_an_approval_outlives_the_hub(me, tmp_path):
    folder = home(me, tmp_path, one=server())
    with Hub(me, folder, '--listen', '127.0.0.1:0') as hub:
        approve(hub, 'one')
    with Hub(me, folder, '--listen', '127.0.0.1:0') as hub:
        assert text(hub, 'one', 'echo', text='x') == 'x'
        assert hub.call('GET', '/v1/modules/one')['approved_by'] == 'token'


def test_more_folders_than_a_sandbox_has(me, tmp_path):
    """None of them is left out without a word."""
    folder = home(me, tmp_path)
    folders = [os.path.join(folder, f'f{i}') for i in range(34)]
    for one in folders:
        os.mkdir(one)
        os.chown(one, me.uid, me.uid)
    home(me, tmp_path, many={**server(), 'sandbox': {'read': folders[:17], 'write': folders[17:]}})
    with Hub(me, folder, '--listen', '127.0.0.1:0') as hub:
        approve(hub, 'many')
        with pytest.raises(Failed) as caught:
            text(hub, 'many', 'echo', text='x')
        assert 'at most 32 folders' in caught.value.error['cause'], caught.value


def test_the_everything_server_in_a_sandbox(me, tmp_path):
    """One of npm, whose folder is mounted read-only."""
    modules = os.path.realpath(EVERYTHING)
    main = os.path.join(modules, '@modelcontextprotocol/server-everything/dist/index.js')
    if not os.path.exists(main):
        pytest.skip('tests/client has no node_modules (make deps)')
    entry = {'command': 'node', 'args': [main, 'stdio'], 'approval': 'allow', 'connectSeconds': 60,
             'sandbox': {'read': [modules]}}
    with Hub(me, home(me, tmp_path, everything=entry), '--listen', '127.0.0.1:0') as hub:
        approve(hub, 'everything')
        assert text(hub, 'everything', 'echo', message='hi') == 'Echo: hi'
        assert len(hub.json('mcp', 'info', 'everything')['tools']) > 10
        kinds = [c['type'] for c in call(hub, 'everything', 'get-tiny-image')['content']]
        assert 'image' in kinds
        assert call(hub, 'everything', 'echo')['isError'] is True
