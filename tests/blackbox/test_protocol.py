"""JSON-RPC and MCP on the wire: what is broken gets its error, and the server lives."""

import json
import os
import time

import pytest

from client import LATEST, TOOLS, Failed, until
from stage import walk

PARSE, REQUEST, METHOD, PARAMS = -32700, -32600, -32601, -32602


@pytest.fixture
def mcp(start):
    return start('--pool', '0')


def error_of(message, code, request_id=None):
    assert message.get('id') == request_id and 'error' in message, message
    assert message['error']['code'] == code, message
    return message['error']['message']


def refused(mcp, line, code, request_id=None):
    """Sends one line, expects its error, and that the server goes on."""
    mcp.send_raw(line + b'\n')
    said = error_of(mcp.next(), code, request_id)
    mcp.ping()
    return said


# ---- broken messages -------------------------------------------------------------------------

NO_JSON = (
    b'{', b'}', b'nonsense', b'{"jsonrpc":"2.0","id":1,"method":"ping"', b'{"a":1,}', b"{'a':1}",
    b'[1,', b'"open', b'{"jsonrpc":"2.0","id":1,"method":"ping"} trailing', b'\xff\xfe\x00',
    b'{"id":"\xc3\x28"}', b'{"a":NaN}', b'{"a":01}', b'{"a":"\\ud800"}', b'{"a":"\\x"}',
    b'{"a":"tab\there"}', b'{"a":1e999}', b'\xef\xbb\xbf{"a":1}', b'\x00', b'{"a"\x00:1}',
)
NEARLY_JSON = (
    b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"\\ud800"}}',
    b'{"jsonrpc":"2.0","id":7,"method":"\xc3\x28"}',
    b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":01}}',
    b'{"method":"x","params":[nonsense],"id":7}',
)
NO_REQUEST = (
    b'1', b'"ping"', b'null', b'true', b'{}', b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"1.0","id":7,"method":"ping"}', b'{"id":7,"method":"ping"}',
    b'{"jsonrpc":2.0,"id":7,"method":"ping"}', b'{"jsonrpc":"2.0","id":7,"method":1}',
    b'{"jsonrpc":"2.0","id":7,"method":"ping","params":1}',
    b'{"jsonrpc":"2.0","id":7}',
)


def test_what_is_no_json_is_a_parse_error(mcp):
    walk(NO_JSON, lambda line: refused(mcp, line, PARSE))


def test_the_id_of_what_is_nearly_json(mcp):
    """A caller that is refused without its id would wait until its timeout."""
    walk(NEARLY_JSON, lambda line: refused(mcp, line, PARSE, 7))


def test_what_is_no_request_is_an_invalid_request(mcp):
    walk(NO_REQUEST, lambda line: refused(mcp, line, REQUEST, 7 if b'"id":7' in line else None))


def test_a_byte_order_mark_before_the_first_message(start):
    mcp = start('--pool', '0', version='none')
    mcp.send_raw(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping","params":null}\n')
    assert mcp.next()['result'] == {}
    refused(mcp, b'\xef\xbb\xbf{}', PARSE)


def test_ids_that_are_none(mcp):
    for request_id in ('null', '1.5', '{}', '[]', 'true', '1e400', '"' + 'x' * 300 + '"'):
        mcp.send_raw(b'{"jsonrpc":"2.0","id":%s,"method":"ping"}\n' % request_id.encode())
        answer = mcp.next()
        assert 'id' not in answer and answer['error']['code'] in (REQUEST, PARSE), answer
        mcp.ping()


def test_ids_come_back_as_they_were(mcp):
    for request_id in (0, -1, 1, 2**31, 2**53 + 1, 2**63 - 1, -2**63, '', 'a', '1',
                       'ünï "q" \\ \n', 'x' * 200):
        mcp.send({'jsonrpc': '2.0', 'id': request_id, 'method': 'ping'})
        answer = mcp.next()
        assert answer['id'] == request_id and type(answer['id']) is type(request_id)
        assert answer['result'] == {}


def test_an_id_in_flight_is_not_taken_twice(mcp):
    sb = mcp.create()
    call = {'name': 'sandbox_exec',
            'arguments': {'sandbox': sb.id, 'command': 'sleep 1; echo first'}}
    line = json.dumps({'jsonrpc': '2.0', 'id': 'twin', 'method': 'tools/call', 'params': call})
    mcp.send_raw(f'{line}\n{line}\n'.encode())
    error_of(mcp.next(), REQUEST, 'twin')
    assert mcp.result('twin')['stdout'] == 'first\n'
    mcp.send({'jsonrpc': '2.0', 'id': 'twin', 'method': 'ping'})  # free again
    assert mcp.next()['result'] == {}


def test_keys_that_are_there_twice(mcp):
    refused(mcp, b'{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/list"}', REQUEST, 7)
    refused(mcp, b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"sandbox_create",'
                 b'"arguments":{"pool":"host","pool":"x"}}}', REQUEST, 7)
    mcp.send_raw(b'{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}\n')
    assert mcp.next()['error']['code'] == REQUEST
    mcp.ping()


def test_unknown_members_are_ignored(mcp):
    mcp.send({'jsonrpc': '2.0', 'id': 9, 'method': 'ping', 'extra': {'a': [1]},
              'params': {'_meta': {'x': 1}, 'y': 2}})
    assert mcp.next() == {'jsonrpc': '2.0', 'id': 9, 'result': {}}


def test_a_bomb_of_nesting(mcp):
    for depth in (100, 10_000, 1_000_000):
        mcp.send_raw(b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":' + b'[' * depth
                     + b']' * depth + b'}}\n')
        answer = mcp.next()
        assert answer['id'] in (7, None) and answer['error']['code'] in (REQUEST, PARSE), answer
        mcp.ping()


def test_very_many_values(mcp):
    mcp.send_raw(b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":[' + b'1,' * 1_000_000
                 + b'1]}}\n')
    answer = mcp.next()
    assert answer['error']['code'] == REQUEST, answer
    mcp.ping()


def test_a_line_of_17_mib_then_a_good_one(mcp):
    mcp.send_raw(b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"' + b'x' * (17 << 20)
                 + b'"}}\n')
    mcp.send({'jsonrpc': '2.0', 'id': 8, 'method': 'ping'})
    error_of(mcp.next(), REQUEST, 7)  # the id stood before the line was too long
    assert mcp.next() == {'jsonrpc': '2.0', 'id': 8, 'result': {}}


def test_100_mib_without_a_line_end_cost_no_memory(mcp):
    before = rss(mcp.pid)
    for _ in range(100):
        mcp.send_raw(b'y' * (1 << 20))
    assert rss(mcp.pid) < before + (40 << 20)
    mcp.send_raw(b'\n')
    error_of(mcp.next(), REQUEST)
    mcp.ping()


def rss(pid):
    with open(f'/proc/{pid}/statm', encoding='utf-8') as f:
        return int(f.read().split()[1]) * os.sysconf('SC_PAGESIZE')


def test_a_legal_line_of_nearly_16_mib(mcp):
    sb = mcp.create()
    content = 'a' * ((16 << 20) - 1000)
    sb.write('big', content)
    assert sb.sh('stat -c %s big').strip() == str(len(content))


def test_empty_lines_and_carriage_returns(mcp):
    mcp.send_raw(b'\n\r\n  \n{"jsonrpc":"2.0","id":7,"method":"ping"}\r\n')
    answers = [mcp.next()]
    while answers[-1].get('id') != 7:
        answers.append(mcp.next())
    assert answers[-1]['result'] == {}


def test_bytes_one_by_one(mcp):
    for b in b'{"jsonrpc":"2.0","id":"slow","method":"ping"}\n':
        mcp.send_raw(bytes([b]))
    assert mcp.next() == {'jsonrpc': '2.0', 'id': 'slow', 'result': {}}


def test_a_thousand_in_one_write(mcp):
    mcp.send_raw(b''.join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % i
                          for i in range(1000, 2000)))
    assert [mcp.next()['id'] for _ in range(1000)] == list(range(1000, 2000))


# ---- methods and parameters --------------------------------------------------------------------

def test_unknown_methods(mcp):
    for method in ('nope', '', 'tools', 'tools/list/x', 'rpc.discover', 'server/discover', 'PING',
                   'sandbox_create', 'tools/\u0000list'):
        mcp.send({'jsonrpc': '2.0', 'id': 7, 'method': method, 'params': {}})
        error_of(mcp.next(), METHOD, 7)


def test_notifications_get_no_answer(mcp):
    for method in ('nope', 'notifications/cancelled', 'notifications/progress', 'tools/list',
                   'ping', 'initialize'):
        mcp.notify(method)
        mcp.notify(method, {'requestId': 99, 'x': [1]})
    mcp.send_raw(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}\n')
    mcp.ping()
    assert not mcp.inbox


def test_responses_that_nobody_asked_for(mcp):
    mcp.send({'jsonrpc': '2.0', 'id': 99, 'result': {}})
    mcp.send({'jsonrpc': '2.0', 'id': None, 'error': {'code': -32600, 'message': 'you'}})
    mcp.send({'jsonrpc': '2.0', 'id': 99, 'error': {'code': 'x'}})
    mcp.ping()
    assert not mcp.inbox


def test_calls_that_name_no_tool(mcp):
    for params in (None, {}, {'name': 7}, {'name': 'nope'}, {'name': ''},
                   {'name': 'sandbox_create', 'arguments': 'x'},
                   {'name': 'sandbox_create', 'arguments': []},
                   {'name': 'Sandbox_create', 'arguments': {}},
                   {'name': 'sandbox_create', 'arguments': None}):
        error_of(mcp.request('tools/call', params), PARAMS, mcp.last_id)


def test_arguments_may_be_absent(mcp):
    answer = mcp.request('tools/call', {'name': 'sandbox_create'})
    assert answer['result']['isError'] and 'pool' in answer['result']['content'][0]['text']


WRONG = (  # what no schema says; what it does is in test_tools.py
    ({'command': 'true', 'timeout': 9}, 'timeout'),
    ({'command': 'true', 'argv': ['true']}, 'argv'),
    ({'args': ['true']}, 'command'),
    ({'command': '', 'args': []}, 'command'),
    ({'command': 'a', 'args': ['a', 1]}, 'args'),
    ({'command': 'true', 'env': ['A=1']}, 'env'),
    ({'command': 'true', 'env': {'A': 1}}, 'env'),
    ({'command': 'a\x00b'}, 'command'),
    ({'command': 'x' * 98305}, 'command'),
    ({'command': 'true', 'timeout_seconds': 10**30}, 'timeout_seconds'),
)


def test_wrong_arguments_are_a_failed_call_that_names_them(hub):
    cases = [*(('sandbox_exec', {'sandbox': 'sbx-x', **arguments}, named)
               for arguments, named in WRONG),
             ('sandbox_create', {'pool': 'host', 'memory': 1}, 'memory_mb'),
             ('sandbox_create', {'pool': 'host', 'network': 'all'}, 'network'),
             ('sandbox_read_file', {'sandbox': 'sbx-x', 'path': 'a\x00b'}, 'path'),
             ('sandbox_read_file', {'sandbox': 'sbx-x', 'path': 'x' * 4096}, 'path')]
    for tool, arguments, named in cases:
        error = hub.fails(tool, **arguments)
        assert error['code'] == 'invalid_arguments' and named in error['cause'], error
        assert not error['retryable']


def test_a_misspelt_argument_gets_the_nearest_name(hub):
    assert 'timeout_seconds' in hub.fails('sandbox_exec', sandbox='x', command='true',
                                          timeout_second=1)['cause']
    assert 'replicas' in hub.fails('sandbox_fork', sandbox='x', replica=1)['cause']


def test_cursors_that_are_not_ours(mcp):
    for cursor in ('nope', '', 'MA==', 7, None):
        error_of(mcp.request('tools/list', {'cursor': cursor}), PARAMS, mcp.last_id)


# ---- life of a session -------------------------------------------------------------------------

def test_before_initialize_there_is_only_ping(start):
    mcp = start('--pool', '0', version='none')
    mcp.ping()
    for method, params in (('tools/list', {}), ('tools/call', {'name': 'sandbox_create',
                                                               'arguments': {'pool': 'host'}})):
        answer = mcp.request(method, params)
        assert answer['error']['code'] in (REQUEST, PARAMS, -32002, -32000), answer
    mcp.initialize()
    assert len(mcp.request('tools/list')['result']['tools']) == TOOLS


def test_requests_right_behind_initialize(start):
    """Clients that send it all at once, without waiting for the answer, are served."""
    mcp = start('--pool', '0', version='none')
    mcp.start('initialize', {'protocolVersion': LATEST, 'capabilities': {},
                             'clientInfo': {'name': 'x', 'version': '1'}})
    mcp.notify('notifications/initialized')
    last = mcp.start('tools/list')
    assert 'result' in mcp.wait(last)


def test_initialize_twice_is_refused(mcp):
    answer = mcp.request('initialize', {'protocolVersion': LATEST, 'capabilities': {},
                                        'clientInfo': {'name': 'x', 'version': '1'}})
    error_of(answer, REQUEST, mcp.last_id)
    mcp.ping()


def test_initialize_that_makes_no_sense(start):
    for params in (None, {}, {'protocolVersion': 7},
                   {'protocolVersion': LATEST, 'capabilities': 7}, []):
        mcp = start('--pool', '0', version='none')
        answer = mcp.request('initialize', params)
        assert answer['error']['code'] == PARAMS, answer
        mcp.initialize()


def test_the_end_of_input_ends_all(start):
    mcp = start('--pool', '0')
    for _ in range(3):
        mcp.create().exec('sleep 1000 >/dev/null 2>&1 &')
    assert mcp.close() == 0
    assert mcp.said() == ''


def test_the_end_of_input_before_anything(start):
    mcp = start(version='none')
    assert mcp.close() == 0
    assert not mcp.inbox


def test_the_end_of_input_lets_calls_end(start):
    """A client that sends and closes, as a pipe of a shell does, gets its answers."""
    mcp = start('--pool', '0')
    sb = mcp.create()
    call = sb.start('sleep 0.5; echo done')
    assert mcp.close() == 0
    assert mcp.result(call)['stdout'] == 'done\n'


def test_a_last_line_without_its_end(start):
    mcp = start('--pool', '0')
    mcp.send_raw(b'{"jsonrpc":"2.0","id":7,"method":"ping"}')
    assert mcp.close() == 0
    assert mcp.next() == {'jsonrpc': '2.0', 'id': 7, 'result': {}}


def test_a_client_that_does_not_read_is_not_buffered_without_end(start):
    """A thousand answers of half a megabyte each: few are held, and none is lost."""
    mcp = start('--pool', '0')
    sb = mcp.create()
    sb.write('big', 'z' * (256 << 10))
    before = rss(mcp.pid)
    ids = range(5000, 6000)
    data = b''.join(json.dumps({'jsonrpc': '2.0', 'id': i, 'method': 'tools/call', 'params': {
        'name': 'sandbox_read_file', 'arguments': {
            'sandbox': sb.id, 'path': 'big', 'limit': 256 << 10}}}).encode() + b'\n' for i in ids)
    fd = mcp.proc.stdin.fileno()
    peak = quiet = 0
    while quiet < 20:  # writes what is taken, and reads nothing
        try:
            n = os.write(fd, data[:65536]) if data else 0
        except BlockingIOError:
            n = 0
        data, quiet = data[n:], 0 if n else quiet + 1
        peak = max(peak, rss(mcp.pid))
        time.sleep(0.02)
    assert peak - before < 250 << 20
    mcp.send_raw(data, timeout=60)
    for i in ids:
        answer = mcp.wait(i)
        if 'error' in answer or answer['result'].get('isError'):
            assert 'limit_exceeded' in json.dumps(answer)
        else:
            assert len(answer['result']['content'][0]['text']) == 256 << 10
    mcp.ping()


# ---- cancellation and progress -----------------------------------------------------------------

def test_cancel_kills_the_command_and_answers_nothing(mcp):
    sb = mcp.create()
    call = sb.start('sleep 777 & setsid sleep 777; wait')
    until(lambda: sb.running('sleep') == 2, what='both sleeps')
    mcp.notify('notifications/cancelled', {'requestId': call, 'reason': 'enough'})
    until(lambda: sb.running('sleep') == 0, what='their end')
    mcp.ping()
    assert not [m for m in mcp.inbox if m.get('id') == call]


def test_cancel_of_what_is_not_there(mcp):
    for request_id in (4711, 'x', None, 1.5, {}, 2**63 - 1):
        mcp.notify('notifications/cancelled', {'requestId': request_id})
    sb = mcp.create()
    mcp.notify('notifications/cancelled', {'requestId': mcp.last_id})
    assert sb.sh('echo on') == 'on\n'


def test_a_cancelled_create_leaves_no_sandbox(start):
    mcp = start('--pool', '0', '--max-sandboxes', '4')
    for _ in range(40):
        call = mcp.start_tool('sandbox_create', pool='host')
        mcp.notify('notifications/cancelled', {'requestId': call})
        mcp.ping()
        if any(m.get('id') == call for m in mcp.inbox):  # it was faster
            try:
                mcp.call('sandbox_terminate', sandbox=mcp.result(call)['sandbox'])
            except Failed as e:
                assert e.code == 'limit_exceeded', e  # those before it are still being ended
    made = [until(lambda: try_create(mcp), what='room again') for _ in range(4)]
    assert len({sb.id for sb in made}) == 4


def try_create(mcp):
    try:
        return mcp.create()
    except Failed as e:
        assert e.code == 'limit_exceeded', e
        return None


def test_progress_of_a_long_exec(mcp):
    """Of two at once, each with its own token, as it was."""
    sb, begun, tokens = mcp.create(), time.monotonic(), ('tok', 0)
    calls = [mcp.start('tools/call', {
        'name': 'sandbox_exec', '_meta': {'progressToken': token},
        'arguments': {'sandbox': sb.id, 'command': 'echo some; sleep 2.5', 'timeout_seconds': 60}})
             for token in tokens]
    assert [mcp.result(call)['exit_code'] for call in calls] == [0, 0]
    told = mcp.notifications()
    for token in tokens:
        mine = [n['params'] for n in told if n['params']['progressToken'] == token
                and type(n['params']['progressToken']) is type(token)]
        assert 1 <= len(mine) <= time.monotonic() - begun + 2
        values = [params['progress'] for params in mine]
        assert values == sorted(set(values))
    assert {n['params']['progressToken'] for n in told} == set(tokens)
    for n in told:
        assert n['method'] == 'notifications/progress'
        assert n['params']['total'] == 60 and isinstance(n['params']['message'], str)


def test_the_list_of_resources_changes(mcp):
    """Told when it does, and not for what else happens to a sandbox."""
    sb = mcp.create()
    until(lambda: mcp.ping() is not None and mcp.changed)
    told = mcp.changed
    sb.exec('true')
    mcp.call('sandbox_pause', sandbox=sb.id)
    mcp.call('sandbox_resume', sandbox=sb.id)
    time.sleep(0.2)
    mcp.ping()
    assert mcp.changed == told == 1
    sb.terminate()
    until(lambda: mcp.ping() is not None and mcp.changed > told)
    assert mcp.changed == told + 1


def test_no_progress_without_a_token(mcp):
    sb = mcp.create()
    sb.exec('sleep 1.5')
    assert not mcp.notifications()


def test_the_log_never_reaches_the_wire(start):
    mcp = start('--pool', '0', env={'HOLT_LOG': 'debug'})
    sb = mcp.create()
    sb.exec('echo x')
    mcp.send_raw(b'{broken\n')
    assert mcp.next()['error']['code'] == PARSE
    assert mcp.close() == 0
    assert 'sandbox_create' in mcp.said()


def test_the_log_as_json_is_json(start):
    mcp = start('--pool', '0', env={'HOLT_LOG': 'debug', 'HOLT_LOG_FORMAT': 'json'})
    mcp.create().exec('echo x')
    assert mcp.close() == 0
    with open(mcp.log, encoding='utf-8') as f:
        rows = [json.loads(line) for line in f]
    assert rows and all(isinstance(row, dict) for row in rows)


def test_file_contents_and_commands_stay_out_of_the_log(start):
    mcp = start('--pool', '0', env={'HOLT_LOG': 'debug'})
    sb = mcp.create(env={'K': 'hush-hush-env'})
    sb.write('f', 'hush-hush-file')
    sb.exec('echo hush-hush-$((40+2)); cat', stdin='hush-hush-stdin')
    mcp.fails('sandbox_exec', sandbox=sb.id, command='hush-hush', args=['hush-hush'])
    assert mcp.close() == 0
    with open(mcp.log, encoding='utf-8') as f:
        assert 'hush-hush' not in f.read()
