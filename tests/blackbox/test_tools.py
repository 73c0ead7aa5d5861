"""Each tool over MCP (surface.py): with arguments of every wrong kind, with ids of nothing, sixteen
times at once, and once more."""

import json

import pytest

from client import Failed
from described import jsonschema
from rest import Rest
from stage import Nothing, Stage, clear, walk
from surface import TOOLS
from wrong import IDS, example, values

AT_ONCE = 16
CODES = {'sandbox': 'sandbox_not_found', 'snapshot': 'snapshot_not_found'}


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    """With a registry, which snapshots want."""
    with Rest(me, tmp_path_factory.mktemp('tools'), '--listen', '127.0.0.1:0', '--pool',
              '2') as shared:
        yield shared


@pytest.fixture(scope='module')
def mcp(me, hub):
    client = me.mcp('--connect', f'http://{hub.address[0]}:{hub.address[1]}',
                    env={'HOLT_TOKEN': hub.token})
    client.initialize()
    yield client
    assert client.close() == 0


@pytest.fixture(scope='module')
def tools(mcp):
    return {tool['name']: tool for tool in mcp.request('tools/list')['result']['tools']}


def call(mcp, tool, arguments):
    return mcp.start('tools/call', {'name': tool, 'arguments': arguments})


def failure(mcp, request_id):
    """The error of a call, None if it was well."""
    try:
        mcp.result(request_id)
    except Failed as e:
        assert set(e.error) - {'pointer'} == {'code', 'cause', 'remediation', 'failure',
                                              'retryable'}, e.error
        return e.error
    return None


def test_each_has_its_row(tools):
    assert set(tools) == set(TOOLS)


def test_wrong_arguments(mcp, tools):
    """Each argument, in each way that its schema has, names itself;
    so do one too many and one that is missing."""
    def check(name):
        sent = [(call(mcp, name, value), value, named)
                for value, named in values(tools[name]['inputSchema'])
                if isinstance(value, dict)]  # all else is no arguments, and the protocol's error
        for request_id, value, named in sent:
            error = failure(mcp, request_id)
            assert (error and error['code'] == 'invalid_arguments'
                    and (not named or named in error['cause'])), (str(value)[:200], error)
        for value in ([], 'x', 7, None):
            answer = mcp.request('tools/call', {'name': name, 'arguments': value})
            assert answer['error']['code'] == -32602, answer
        assert sent
    walk(TOOLS, check)


def test_names_of_nothing(mcp, tools):
    def check(name):
        schema = tools[name]['inputSchema']
        good = {k: v for k, v in TOOLS[name].right(Nothing()).items() if v is not None}
        sent = []
        for argument in {'sandbox', 'snapshot'} & set(schema['properties']):
            for value in ('nobody', *IDS):
                arguments = {**example(schema), **good, argument: value}
                sent += [(call(mcp, name, arguments), argument, value) for _ in range(2)]
        for request_id, argument, value in sent:
            error = failure(mcp, request_id)
            assert error and error['code'] in ('invalid_arguments', CODES[argument]), (
                argument, value, error)
            assert value != 'nobody' or error['code'] == CODES[argument]
    walk(TOOLS, check)


def test_at_once_and_again(hub, mcp, tools):
    def outcome(tool, answer):
        result = answer['result']
        if result.get('isError'):
            return json.loads(result['content'][0]['text'])['code']
        told = result.get('structuredContent')
        assert ('structuredContent' in result) == ('outputSchema' in tool)
        validator = jsonschema.Draft202012Validator(tool.get('outputSchema', True))
        errors = [e.message for e in validator.iter_errors(told)]
        assert not errors, (errors, result)
        return None

    def check(name):
        row, tool = TOOLS[name], tools[name]
        arguments = row.right(Stage(hub, row.needs))
        sent = [call(mcp, name, arguments) for _ in range(AT_ONCE)]
        codes = [outcome(tool, mcp.wait(request_id)) for request_id in sent]
        if row.again:
            assert sorted(map(str, codes)) == sorted(['None'] + [row.again] * (AT_ONCE - 1)), codes
        else:
            assert None in codes and set(codes) <= {None, *row.races}, codes
        assert outcome(tool, mcp.wait(call(mcp, name, arguments))) == row.again
    walk(TOOLS, check, lambda: clear(hub))
