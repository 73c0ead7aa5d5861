"""A stored secret as every text of every request: no answer echoes it (docs/redaction.md). The
requests are made of what the hub says of itself, so that a new route, tool or argument is tried
without a line here. A hub that does not know the secret is the control: it echoes it."""

import json
import secrets

import pytest

import host
from described import Described, send
from test_hub_cli import Hub
from test_serve import Session, post
from wrong import example, kind_of

RAW = {'keys.create', 'ports.preview'}  # docs/redaction.md: a credential for whom it is for
WAITS = ('session_id',)  # so that no tool waits for a person: there is no such conversation
LIST = {'jsonrpc': '2.0', 'id': 7, 'method': 'tools/list', 'params': {}}
STREAMS = ('text/event-stream', 'application/x-ndjson')  # they end with what they are about


class Told(Described, Hub):
    """A hub that is described, with its verbs."""


@pytest.fixture(scope='module')
def hubs(me, tmp_path_factory):
    """The one that stores the secrets, and the other."""
    before = host.Residue(me.trees)
    values = ['v' + secrets.token_hex(12), 'w' + secrets.token_hex(150)]
    options = ('--listen', '127.0.0.1:0', '--pool', '0', '--compat', 'e2b,mitos')
    with Told(me, tmp_path_factory.mktemp('knows'), *options) as knows, \
            Told(me, tmp_path_factory.mktemp('other'), *options) as other:
        for i, value in enumerate(values):
            knows.ok('secret', 'set', f'stored{i}', input=value.encode())
        yield knows, other, values
    before.check()


def within(schema, value):
    """What the schema takes, with the value as each text in it and as the name of a member."""
    kind = kind_of(schema) if 'type' in schema else None
    if kind == 'string':
        yield value
    elif kind == 'array' and 'items' in schema:
        yield from ([item] for item in within(schema['items'], value))
    elif kind == 'object':
        good = example(schema)
        yield {**good, value: value}
        for name, member in schema.get('properties', {}).items():
            yield from ({**good, name: inner} for inner in within(member, value))


def halves(value):
    """Eight bytes and more of it are a part of the secret."""
    return [value[i:i + 12] for i in range(0, len(value) - 12, 4)]


def text_of(reply):
    return f'{reply.status} {reply.fields} {reply.body.decode(errors="replace")}'


class Count:
    """Of answers, and of those that have a part of the value."""

    def __init__(self, value):
        self.parts, self.asked, self.echoes = halves(value), 0, []

    def take(self, what, said):
        self.asked += 1
        if any(part in said for part in self.parts):
            self.echoes.append((what, said[:1500]))


def routes(hub, value):
    for path, method, operation in hub.operations():
        content = operation.get('requestBody', {}).get('content', {})
        kind = next((k for k in content if 'json' in k), None)
        given = operation['responses'].get('200', {}).get('content', {})
        if operation['operationId'] in RAW or any(s in given for s in STREAMS):
            continue
        schema = content[kind]['schema'] if kind else {}
        whole = example(schema) if schema else None
        if operation['operationId'] == 'prompts.ask':
            whole['wait'] = False
        parts = path.split('/')
        there = '/'.join('nobody' if p.startswith('{') else p for p in parts)
        for i, part in enumerate(parts):
            if part.startswith('{'):
                named = '/'.join(value if j == i else 'nobody' if p.startswith('{') else p
                                 for j, p in enumerate(parts))
                yield operation, method, named, kind, whole, []
        for one in operation['parameters']:
            if one['in'] == 'query':
                yield operation, method, f'{there}?{one["name"]}={value}', kind, whole, []
            if one['in'] == 'header':
                yield operation, method, there, kind, whole, [f'{one["name"]}: {value}']
        yield operation, method, f'{there}?{value}={value}', kind, whole, []
        for body in within(schema, value):
            if operation['operationId'] == 'secrets.set' and body['value'] == value:
                continue  # the control would know it
            yield operation, method, there, kind, {'wait': False, **body} if whole and (
                'wait' in whole) else body, []


def others(value):
    """Paths that no description has."""
    yield from (f'/{value}', f'/v1/{value}', f'/v1/sandboxes/a/{value}')
    for path in ('sandboxes', 'v2/sandboxes', 'templates', 'v1/snapshots', 'v1/workspaces'):
        yield from (f'/{path}/{value}', f'/{path}/{value}/logs', f'/{path}?metadata={value}%3D1')


def test_no_route_echoes_a_secret(hubs):
    knows, other, values = hubs
    for value in values:
        found = []
        for hub in (knows, other):
            count = Count(value)
            for path in others(value):
                for method in ('GET', 'DELETE'):
                    count.take((method, path), text_of(hub.raw(
                        method, path, fields=[f'X-API-KEY: {hub.token}'])))
            for operation, method, path, kind, body, headers in routes(hub, value):
                reply = send(hub, path, method, kind, None if body is None else json.dumps(body),
                             headers)
                count.take((operation['operationId'], method, path, body), text_of(reply))
            found.append(count)
        assert found[1].asked > 300 and len(found[1].echoes) > 50, 'the control'
        assert found[0].echoes == []


def requests(tools, value):
    """Methods and parameters."""
    yield f'tools/{value}', {}
    for name in (value, f'sandbox_{value}'):
        yield 'tools/call', {'name': name}
        yield 'prompts/get', {'name': name}
    for uri in (value, f'holt://{value}', f'holt://sandboxes/{value}'):
        yield 'resources/read', {'uri': uri}
        yield 'resources/subscribe', {'uri': uri}
    for ref in ({'type': 'ref/prompt', 'name': value}, {'type': 'ref/resource', 'uri': value},
                {'type': value}):
        yield 'completion/complete', {'ref': ref, 'argument': {'name': value, 'value': value}}
    yield 'logging/setLevel', {'level': value}
    yield 'tools/list', {'cursor': value}
    yield 'tasks/get', {'taskId': value}
    for tool in tools:
        about = {name: 'nobody' for name in WAITS if name in tool['inputSchema']['properties']}
        for arguments in within(tool['inputSchema'], value):
            yield 'tools/call', {'name': tool['name'], 'arguments': {**about, **arguments}}


def ask(session, message, fields=None):
    with session.hub.wire() as wire:
        return text_of(wire.ask(post(session.hub, message, session.path,
                                     fields=fields or session.fields)))


def test_no_tool_and_no_fault_echoes_a_secret(hubs):
    knows, other, values = hubs
    for value in values:
        found = []
        for hub in (knows, other):
            session, count = Session(hub, '/mcp?tools=all'), Count(value)
            with hub.wire() as wire:
                listed = json.loads(wire.ask(post(hub, LIST, session.path,
                                                  fields=session.fields)).body)
            tools = listed['result']['tools']
            for method, params in requests(tools, value):
                count.take((method, params), ask(session, {
                    'jsonrpc': '2.0', 'id': 7, 'method': method, 'params': params}))
            for text in (f'{{"{values[0]}":1,"{values[0]}":2}}', f'{{"jsonrpc":"2.0",{value}',
                         f'{{"jsonrpc":"{value}","id":1,"method":"ping"}}'):
                count.take(text, raw(session, text))
            for field in (f'MCP-Protocol-Version: {value}', f'Mcp-Session-Id: {value}'):
                count.take(field, ask(session, {'jsonrpc': '2.0', 'id': 7, 'method': 'ping'},
                                      [field]))
            found.append(count)
        assert found[1].asked > 15 and len(found[1].echoes) > 50, 'the control'
        assert found[0].echoes == []


def raw(session, text):
    """A body that is no message."""
    with session.hub.wire() as wire:
        fields = [*session.fields, 'Accept: application/json, text/event-stream']
        return text_of(wire.ask(session.hub.request('POST', session.path, body=text,
                                                    fields=fields)))
