"""/v1/openapi.json, and the server held to it: each route is there as the document says, with each of the ways in
which a request can be wrong, and what it answers is of the schemas. The validator is not ours (python3-jsonschema)."""

import io
import json
import re
import tarfile

import pytest

from client import until
from rest import Rest, b64, frame, frames
from talk import Exec, Framed

jsonschema = pytest.importorskip('jsonschema', reason='python3-jsonschema is missing: scripts/deps test')

TAR = ('application/x-tar', 'application/zstd')
METHODS = ('get', 'post', 'delete', 'put', 'patch')


class Described(Rest):
    """A hub, and what it says of itself."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.document = self.call('GET', '/v1/openapi.json')

    def operations(self):
        for path, item in self.document['paths'].items():
            for method, operation in item.items():
                yield path, method.upper(), operation

    def schema(self, operation, reply):
        """Of a reply to it; the document must have its status and type."""
        told = operation['responses'][str(reply.status)]
        return told['content'][reply.get('Content-Type')]['schema']

    def check(self, value, schema):
        validator = jsonschema.Draft202012Validator({**schema, 'components': self.document['components']})
        errors = [e.message for e in validator.iter_errors(value)]
        assert not errors, (errors, value)

    def conforms(self, operation, reply):
        schema = self.schema(operation, reply)
        kind = reply.get('Content-Type')
        if kind == 'application/connect+json':
            found = list(frames(reply.body))
            values = [message for flags, message in found if flags == 0]
        elif kind in TAR and reply.status == 200:
            if kind == TAR[0]:
                tarfile.open(fileobj=io.BytesIO(reply.body)).getmembers()
            values = []
        elif kind == 'application/x-ndjson':
            values = [json.loads(line) for line in reply.body.splitlines()]
        else:
            values = [json.loads(reply.body)]
        for value in values:
            self.check(value, schema)
        return reply


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    shared = Described(me, tmp_path_factory.mktemp('openapi'), '--listen', '127.0.0.1:0', '--pool', '0')
    yield shared
    shared.works()
    assert shared.end() == 0, shared.said()
    shared.kill()


def each(hub):
    """The operations with a path and a body that would be right, were there such a sandbox."""
    for path, method, operation in hub.operations():
        content = operation.get('requestBody', {}).get('content', {})
        kind = next((k for k in content if k not in TAR), None)
        schema = content[kind]['schema'] if kind else None
        headers = [f'{p["name"]}: nobody' for p in operation['parameters'] if p['in'] == 'header']
        yield path.replace('{id}', 'nobody').replace('{exec}', 'nothing'), method, operation, kind, schema, headers


def framed(kind, body):
    body = body.encode() if isinstance(body, str) else body
    return b'\0' + len(body).to_bytes(4, 'big') + body if kind == 'application/connect+json' else body


def send(hub, path, method, kind, body, headers, frame=True, **options):
    data = framed(kind, body) if kind and frame else (body or b'')
    data = data.encode() if isinstance(data, str) else data
    fields = [*headers, *([f'Content-Type: {kind}', f'Content-Length: {len(data)}'] if kind else [])]
    with hub.wire() as wire:
        return wire.ask(hub.request(method, path, fields=fields, **options).encode() + data, method)


def example(schema):
    """Something that the schema takes."""
    if 'default' in schema:
        return schema['default']
    if 'enum' in schema:
        return schema['enum'][0]
    kind = schema['type']
    if kind == 'object':
        return {name: example(schema['properties'][name]) for name in schema.get('required', [])}
    return {'string': 'x' * schema.get('minLength', 1), 'boolean': False, 'array': [],
            'integer': schema.get('minimum', 1), 'number': 1.0}[kind]


WRONG = {'string': 7, 'integer': '7', 'number': '7', 'boolean': 'true', 'array': {}, 'object': []}


def wrong_bodies(schema):
    """Bodies with one thing wrong in each, and the part of the cause that names it."""
    good = example(schema)
    yield 'null', None
    yield '[]', 'object'
    yield '"x"', 'object'
    yield json.dumps({**good, 'no_such_member': 1}), 'no_such_member'
    for name, member in schema.get('properties', {}).items():
        yield json.dumps({**good, name: WRONG[member['type']]}), name
        yield json.dumps({**good, name: None}), name
        if 'maximum' in member:
            yield json.dumps({**good, name: member['maximum'] + 1}), name
        if 'maxLength' in member and member['maxLength'] < 100000:
            yield json.dumps({**good, name: 'x' * (member['maxLength'] + 1)}), name
        if member['type'] == 'string':
            yield json.dumps({**good, name: 'a\ud800b'}), None
    for name in schema.get('required', []):
        yield json.dumps({k: v for k, v in good.items() if k != name}), name


NO_JSON = ('{', '{"a":1,}', "{'a':1}", '{"a":1} x', '{"a":NaN}', '{"a":01}', '\ufeff{}', '{"a":1,"a":2}', '[' * 60, b'{"a":"\xff"}',
           b'{"a":"\0"}')


def test_the_document_is_one(hub):
    """OpenAPI 3.1: the parts that a generator reads, each schema a schema."""
    document = hub.document
    assert document['openapi'].startswith('3.1.') and document['info']['title'] == 'Holt'
    names = [operation['operationId'] for _, _, operation in hub.operations()]
    assert len(names) == len(set(names)) >= 25

    def walk(value):
        if isinstance(value, dict):
            if 'schema' in value:
                jsonschema.Draft202012Validator.check_schema(value['schema'])
            for key, below in value.items():
                if key == '$ref':
                    assert below.split('/')[-1] in document['components']['schemas']
                walk(below)
        elif isinstance(value, list):
            for below in value:
                walk(below)
    walk(document)
    for path, method, operation in hub.operations():
        assert method.lower() in METHODS and operation['summary'].endswith('.')
        named = {p['name'] for p in operation['parameters'] if p['in'] == 'path'}
        assert named == set(re.findall(r'\{(\w+)\}', path)), path
        assert ('101' if 'x-websocket' in operation else '200') in operation['responses'] and '500' in operation['responses']
        assert ('401' in operation['responses']) == (path != '/v1/health')


def test_every_route_wants_its_token(hub):
    for path, method, operation, kind, schema, headers in each(hub):
        body = json.dumps(example(schema)) if schema else None
        reply = send(hub, path, method, kind, body, headers, token=None)
        if path == '/v1/health':
            assert hub.conforms(operation, reply).status == 200
            continue
        assert hub.conforms(operation, reply).status == 401, path
        answer = json.loads(reply.body)
        assert (answer['code'] if 'code' in answer else answer['error']['code']) in ('unauthorized', 'unauthenticated')


def test_every_route_has_no_other_method(hub):
    for path, item in hub.document['paths'].items():
        served = {m.upper() for m in item}
        for method in {'GET', 'POST', 'DELETE', 'PUT', 'PATCH'} - served:
            reply = hub.raw(method, path.replace('{id}', 'nobody').replace('{exec}', 'nothing'), '{}' if method in ('PUT', 'PATCH') else None)
            assert reply.status == 405 and set(reply.get('Allow').split(', ')) == served, (path, method, reply)
            code = json.loads(reply.body)
            assert code.get('code') == 'unimplemented' or code['error']['code'] == 'method_not_allowed'


def test_unknown_routes_have_the_same_form(hub):
    for path in ('/v1/', '/v1/x', '/v1/sandboxes/', '/v1/sandboxes//fork', '/v1/sandboxes/a/b', '/v1/files/x'):
        status, answer = hub.asked('GET', path)
        assert (status, answer['error']['code']) == (404, 'not_found')
    reply = hub.connect('NoSuch', 'nobody', {})
    assert reply.status == 404 and json.loads(reply.body)['code'] == 'not_found'


def test_every_route_refuses_wrong_bodies(hub):
    tried = 0
    for path, method, operation, kind, schema, headers in each(hub):
        if not schema:
            continue
        for body in NO_JSON:
            reply = hub.conforms(operation, send(hub, path, method, kind, body, headers))
            answer = json.loads(reply.body)
            assert reply.status == 400, (path, body, reply)
            if 'error' in answer:
                assert answer['error']['code'] == 'invalid_json', (path, body, answer)
            else:
                assert answer['code'] == 'invalid_argument'
        for body, named in wrong_bodies(schema):
            reply = hub.conforms(operation, send(hub, path, method, kind, body, headers))
            assert reply.status == 400, (path, body[:200], reply)
            answer = json.loads(reply.body)
            cause = answer['error']['cause'] if 'error' in answer else answer['message']
            assert named is None or named in cause, (path, body[:200], cause)
            tried += 1
    assert tried > 300


def test_every_route_refuses_other_types_and_sizes(hub):
    for path, method, operation, kind, schema, headers in each(hub):
        if not schema:
            continue
        for other in ('text/plain', 'application/x-www-form-urlencoded', 'application/proto', ''):
            reply = hub.conforms(operation, send(hub, path, method, other, '{}', headers))
            assert reply.status == 415, (path, other, reply)
        reply = hub.conforms(operation, hub.announced(path, 1 << 30, kind))
        assert reply.status == 413, (path, reply)


def test_every_route_refuses_unknown_queries(hub):
    for path, method, operation, kind, schema, headers in each(hub):
        body = json.dumps(example(schema)) if schema else None
        reply = hub.conforms(operation, send(hub, path + '?no_such=1', method, kind, body, headers))
        assert reply.status == 400 and b'no_such' in reply.body, (path, reply)


def test_every_route_says_what_is_not_there(hub):
    """All that names a sandbox says so of one that is not there, twice."""
    for path, method, operation, kind, schema, headers in each(hub):
        body = example(schema) if schema else {}
        if 'nobody' not in path and 'sandbox' not in body and 'X-Sandbox-Id: nobody' not in headers:
            continue
        if 'sandbox' in body:
            body['sandbox'] = 'nobody'
        if 'Exec' in path or 'WriteFile' in path or 'Upload' in path:
            opened = {'command': 'true'} if 'Exec' in path else {'path': 'f'}
            body = opened if 'ExecStream' in path else {'open': opened}
        for _ in range(2):
            reply = hub.conforms(operation, send(hub, path, method, kind, json.dumps(body) if schema else None, headers))
            assert reply.status == 404, (path, body, reply)
            answer = json.loads(reply.body)
            if 'error' in answer:
                what = 'snapshot' if path.startswith('/v1/snapshots/') else 'sandbox'
                assert answer['error']['context'].get(what) == 'nobody', (path, body, answer)
            else:
                assert answer['code'] == 'not_found'


def watch_by_connect(hub):
    body = frame({'path': 'd'})
    return hub.request('POST', '/sandbox.v1.Sandbox/Watch', fields=[
        'Content-Type: application/connect+json', 'X-Sandbox-Id: doc', f'Content-Length: {len(body)}']).encode() + body


def test_every_answer_is_of_its_schema(hub):
    """A small life, each step of which is a route."""
    def ask(name, path, /, raw=None, **body):
        for p, method, operation in hub.operations():
            if operation['operationId'] == name:
                kind = next(iter(operation.get('requestBody', {}).get('content', {})), None)
                headers = ['X-Sandbox-Id: doc', 'Connect-Timeout-Ms: 20000'] if p.startswith('/sandbox') else []
                if name == 'Vitals':  # it goes on until then
                    headers[1] = 'Connect-Timeout-Ms: 1500'
                reply = hub.conforms(operation, send(hub, path or p, method, kind, raw or json.dumps(body), headers, frame=not raw))
                assert reply.status == 200, (name, reply)
                seen.add(name)
                return reply
        raise KeyError(name)
    seen = set()
    ask('health', None)
    ask('openapi', None)
    ask('templates.list', None)
    ask('templates.create', None, id='host')
    ask('fork', None, template='host', id='doc')
    ask('sandboxes.create', None, id='doc-2')
    ask('sandboxes.list', None)
    ask('sandboxes.list', '/v1/sandboxes?limit=1')
    ask('sandboxes.get', '/v1/sandboxes/doc')
    ask('sandboxes.fork', '/v1/sandboxes/doc/fork')
    ask('sandboxes.fork', '/v1/sandboxes/doc/fork', count=2)
    ask('set_timeout', None, sandbox='doc', timeout_seconds=60)
    ask('pause', None, sandbox='doc')
    ask('resume', None, sandbox='doc')
    snapshot = json.loads(ask('sandboxes.snapshot', '/v1/sandboxes/doc/snapshots', name='n', ttl_seconds=3600).body)['id']
    ask('snapshots.list', None)
    ask('snapshots.get', f'/v1/snapshots/{snapshot}')
    ask('snapshots.restore', f'/v1/snapshots/{snapshot}/restore')
    ask('snapshots.restore', f'/v1/snapshots/{snapshot}/restore', count=2)
    packed = ask('snapshots.export', f'/v1/snapshots/{snapshot}/export').body
    ask('snapshots.import', '/v1/snapshots', raw=packed)
    ask('snapshots.delete', f'/v1/snapshots/{snapshot}')
    ask('sandboxes.stop', '/v1/sandboxes/doc/stop')
    ask('resume', None, sandbox='doc')
    ask('sandboxes.diff', '/v1/sandboxes/doc/diff')
    ask('exec', None, sandbox='doc', command='echo')
    ask('exec.stream', None, sandbox='doc', command='echo; echo >&2')
    ask('exec', None, sandbox='doc', command='cat; echo >&2', background=True, exec_id='x', stdin_open=True)
    one = '/v1/sandboxes/doc/execs/x'
    ask('execs.list', '/v1/sandboxes/doc/execs')
    ask('execs.get', one)
    ask('execs.stdin', one + '/stdin', data_base64='aGVsbG8K')
    ask('execs.wait', one + '/wait', text='hello')
    ask('execs.output', one + '/output')
    ask('execs.stdin', one + '/stdin', close=True)
    ask('execs.output', one + '/output?follow=true')
    ask('execs.wait', one + '/wait')
    ask('execs.get', one)
    ask('execs.delete', one)
    ask('exec', None, sandbox='doc', command='cat', background=True, exec_id='y', stdin_open=True)
    ask('exec', None, sandbox='doc', command='cat', background=True, exec_id='z', tty={})
    ask('execs.resize', '/v1/sandboxes/doc/execs/z/resize', cols=100, rows=20)
    ask('execs.delete', '/v1/sandboxes/doc/execs/z')
    ask('execs.signal', '/v1/sandboxes/doc/execs/y/signal', signal=9)
    ask('exec', None, sandbox='doc', command='sleep 1000 > /dev/null 2>&1 & sleep 1001 > /dev/null 2>&1 &')
    until(lambda: all(p['command'].startswith('sleep') for p in hub.call('GET', '/v1/sandboxes/doc/processes')['processes']))
    first, second = [p['pid'] for p in json.loads(ask('sandboxes.processes', '/v1/sandboxes/doc/processes').body)['processes']]
    ask('sandboxes.signal', '/v1/sandboxes/doc/signal', pid=first)
    ask('Processes', None)
    ask('sandboxes.usage', '/v1/sandboxes/doc/usage')
    ask('usage', None)
    ask('usage', '/v1/usage?limit=1')
    ask('events', None)
    ask('events', '/v1/events?limit=2&after=1&sandbox=doc')
    ask('Vitals', None)
    ask('Signal', None, pid=second)
    ask('files.write', None, sandbox='doc', path='f', content='x')
    ask('files.read', None, sandbox='doc', path='f')
    ask('files.list', None, sandbox='doc', path='.')
    ask('files.stat', None, sandbox='doc', path='f')
    ask('files.mkdir', None, sandbox='doc', path='d')
    ask('files.move', None, sandbox='doc', path='f', to='d/f')
    ask('Exec', None, open={'command': 'echo'})
    ask('ExecStream', None, command='echo; echo >&2')
    ask('ReadFile', None, path='d/f')
    ask('WriteFile', None, open={'path': 'g'})
    ask('List', None, parent='d')
    ask('Stat', None, path='d')
    ask('Mkdir', None, path='e')
    ask('Remove', None, path='e')
    ask('archive.download', '/v1/sandboxes/doc/archive')
    ask('archive.upload', '/v1/sandboxes/doc/archive', raw=bytes(1024))
    ask('Archive', None)
    ask('Upload', None, raw=frame({'open': {}}) + frame({'data': b64(bytes(1024))}))
    for name, request in (('watch', hub.request('GET', '/v1/sandboxes/doc/watch?path=d')), ('Watch', watch_by_connect(hub))):
        reply = hub.after_first(request, lambda: hub.exec('doc', 'rm -r d; mkdir d'))
        hub.conforms(next(o for _, _, o in hub.operations() if o['operationId'] == name), reply)
        seen.add(name)
    ask('files.remove', None, sandbox='doc', path='d', recursive=True)

    def talk(name, kind, opened):
        operation = next(o for _, _, o in hub.operations() if o['operationId'] == name)
        schemas = operation['x-websocket']
        hub.check({'open': opened}, schemas['client'])
        with kind(hub, 'doc', protocol=schemas['subprotocol']) as x:
            x.say(open=opened)
            x.end()
            for message in getattr(x, 'messages', [{'exit': x.exit}]):
                hub.check(message, schemas['server'])
            assert x.out == b'out\r\n', x.error
        seen.add(name)
    talk('sandboxes.exec', Exec, {'command': 'echo', 'args': ['out'], 'tty': {'cols': 1, 'rows': 1}})
    talk('ExecSocket', Framed, {'command': 'echo out', 'pty': {'size': {'cols': 1, 'rows': 1}}})
    for sandbox in [s['id'] for s in hub.call('GET', '/v1/sandboxes')]:
        ask('sandboxes.delete', f'/v1/sandboxes/{sandbox}')
    assert seen == {operation['operationId'] for _, _, operation in hub.operations()}
