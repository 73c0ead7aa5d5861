"""Each tool over MCP: with arguments of every wrong kind, with ids of nothing, sixteen times at
once, and once more. The rows are of tools/list: a tool that the table here has not fails by its
name."""

import json

import pytest

from client import Failed
from described import jsonschema
from test_serve import Serve
from wrong import IDS, example, values

AT_ONCE = 16


@pytest.fixture(scope='module')
def mcp(me, tmp_path_factory):
    """Of a hub with a registry, which snapshots want."""
    hub = Serve(me, tmp_path_factory.mktemp('tools'), '--listen', '127.0.0.1:0', '--pool', '2')
    client = me.mcp('--connect', f'http://{hub.address[0]}:{hub.address[1]}',
                    env={'HOLT_TOKEN': hub.token})
    client.initialize()
    yield client
    assert client.close() == 0
    hub.works()
    assert hub.end() == 0, hub.said()
    hub.kill()


@pytest.fixture(scope='module')
def tools(mcp):
    return {tool['name']: tool for tool in mcp.request('tools/list')['result']['tools']}


class Row:
    """Right arguments, and what the same again fails with; races:
    what it may fail with while others are under way."""

    def __init__(self, arguments, again=None, *, races=(), needs=''):
        self.arguments, self.again, self.races, self.needs = arguments, again, set(races), needs


def about(**more):
    return lambda s: {'sandbox': s.id, **more}


ROWS = {
    'sandbox_create': Row(lambda s: {'pool': 'host'}),
    'sandbox_exec': Row(about(command='cat f')),
    'sandbox_read_file': Row(about(path='f')),
    'sandbox_write_file': Row(about(path='f', content='new')),
    'sandbox_fork': Row(about(replicas=2), races=['conflict']),
    'sandbox_terminate': Row(about(), 'sandbox_not_found'),
    'sandbox_list': Row(lambda s: {}),
    'sandbox_get': Row(about()),
    'sandbox_list_files': Row(about(path='.')),
    'sandbox_move_file': Row(about(path='f', to='d/f'), 'path_not_found'),
    'sandbox_remove_file': Row(about(path='f'), 'path_not_found'),
    'sandbox_pause': Row(about(), races=['conflict']),
    'sandbox_resume': Row(about(), races=['conflict']),
    'sandbox_set_timeout': Row(about(seconds=600)),
    'sandbox_processes': Row(about()),
    'sandbox_signal': Row(lambda s: {'sandbox': s.id, 'pid': s.pid, 'signal': 18}, needs='process'),
    'sandbox_exec_output': Row(lambda s: {'sandbox': s.id, 'exec': s.exec, 'wait_for': 'hello'},
                               needs='program'),
    'sandbox_snapshot': Row(about(name='one'), races=['conflict']),
    'sandbox_restore': Row(lambda s: {'snapshot': s.snapshot}, needs='snapshot'),
    'sandbox_diff': Row(about(), races=['conflict']),
}
CODES = {'sandbox': 'sandbox_not_found', 'snapshot': 'snapshot_not_found', 'exec': None}


class Stage:
    """What calls are about: a sandbox with files, programs and a snapshot,
    as far as they are needed."""

    def __init__(self, mcp, needs=''):
        box = mcp.create()
        self.id = box.id
        said = box.sh('echo old > f; mkdir d' + ('; sleep 1000 >/dev/null 2>&1 & echo $!'
                                                 if needs == 'process' else ''))
        self.pid = int(said) if needs == 'process' else None
        self.exec = (box.exec('echo hello; sleep 1000', background=True)['exec']
                     if needs == 'program' else None)
        self.snapshot = (mcp.call('sandbox_snapshot', sandbox=box.id)['snapshot']
                         if needs == 'snapshot' else None)


def clear(mcp):
    for sandbox in mcp.call('sandbox_list')['sandboxes']:
        mcp.call('sandbox_terminate', sandbox=sandbox['sandbox'])


def start(mcp, tool, arguments):
    return mcp.start('tools/call', {'name': tool, 'arguments': arguments})


def failure(mcp, request_id):
    """The code of a call, None if it was well."""
    try:
        mcp.result(request_id)
    except Failed as e:
        assert set(e.error) - {'pointer'} == {'code', 'cause', 'remediation', 'failure',
                                              'retryable'}, e.error
        return e.error
    return None


def test_each_has_its_row(tools):
    assert set(tools) == set(ROWS)


@pytest.mark.parametrize('name', ROWS)
def test_wrong_arguments(mcp, tools, name):
    """Each argument, in each way that its schema has, names itself;
    so do one too many and one that is missing."""
    cases = list(values(tools[name]['inputSchema']))
    sent = []
    for value, named in cases:
        if isinstance(value, dict):  # all else is no arguments, and the protocol's error
            sent.append((start(mcp, name, value), value, named))
    for request_id, value, named in sent:
        error = failure(mcp, request_id)
        assert (error and error['code'] == 'invalid_arguments'
                and (not named or named in error['cause'])), (str(value)[:200], error)
    for value in ([], 'x', 7, None):
        answer = mcp.request('tools/call', {'name': name, 'arguments': value})
        assert answer['error']['code'] == -32602, answer
    assert sent


@pytest.mark.parametrize('name', ROWS)
def test_names_of_nothing(mcp, tools, name):
    schema = tools[name]['inputSchema']
    good = {k: v for k, v in ROWS[name].arguments(Named()).items() if v is not None}
    sent = []
    for argument in {'sandbox', 'snapshot'} & set(schema['properties']):
        for value in ('nobody', *IDS):
            arguments = {**example(schema), **good, argument: value}
            sent += [(start(mcp, name, arguments), argument, value) for _ in range(2)]
    for request_id, argument, value in sent:
        error = failure(mcp, request_id)
        assert error and error['code'] in ('invalid_arguments', CODES[argument]), (argument, value,
                                                                                   error)
        assert value != 'nobody' or error['code'] == CODES[argument]


class Named:
    """In the place of a stage."""
    id, exec, snapshot, pid = 'nobody', 'nobody', 'nobody', 2


@pytest.mark.parametrize('name', ROWS)
def test_at_once_and_again(mcp, tools, name):
    row = ROWS[name]
    stage = Stage(mcp, row.needs)
    validator = jsonschema.Draft202012Validator(tools[name].get('outputSchema', True))
    codes = []

    def outcome(answer):
        result = answer['result']
        text = result['content'][0]['text']
        if result.get('isError'):
            return json.loads(text)['code']
        assert ('structuredContent' in result) == ('outputSchema' in tools[name])
        errors = [e.message for e in validator.iter_errors(result.get('structuredContent'))]
        assert not errors, (errors, result)
        return None
    for request_id in [start(mcp, name, row.arguments(stage)) for _ in range(AT_ONCE)]:
        codes.append(outcome(mcp.wait(request_id)))
    if row.again:
        assert sorted(map(str, codes)) == sorted(['None'] + [row.again] * (AT_ONCE - 1)), codes
    else:
        assert None in codes and set(codes) <= {None, *row.races}, codes
    assert (outcome(mcp.request('tools/call', {'name': name, 'arguments': row.arguments(stage)}))
            == row.again)
    clear(mcp)
