"""/v1/openapi.json, and the server held to it: each route is there as the document says, with each
of the ways in which a request can be wrong, and what it answers is of the schemas."""

import json
import re

import pytest

from approval import Asker, asks, question
from described import TAR, Described, code_of, jsonschema, send
from rest import b64, frame, told
from talk import Attached, Exec, Framed, Pty
from wrong import IDS, NO_JSON, SEGMENTS, example, texts, values

METHODS = ('get', 'post', 'delete', 'put', 'patch')


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    with Described(me, asks(me, tmp_path_factory.mktemp('openapi')), '--listen', '127.0.0.1:0',
                   '--preview', '127.0.0.1:0', '--pool', '0') as shared:
        yield shared


def each(hub):
    """The operations with a path and a body that would be right, were there such a sandbox."""
    for path, method, operation in hub.operations():
        content = operation.get('requestBody', {}).get('content', {})
        kind = next((k for k in content if k not in TAR), None)
        schema = content[kind]['schema'] if kind else None
        headers = [f'{p["name"]}: nobody' for p in operation['parameters'] if p['in'] == 'header']
        yield (path.replace('{id}', 'nobody').replace('{exec}', 'nothing'), method, operation, kind,
               schema, headers)


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
        assert (('101' if 'x-websocket' in operation else '200') in operation['responses']
                and '500' in operation['responses'])
        assert ('401' in operation['responses']) == (path != '/v1/health')


def test_the_document_says_where_and_groups(hub):
    """What generators make of it: a client that knows its address, with its methods in groups."""
    document = hub.document
    assert [server['url'] for server in document['servers']] == [f'http://localhost']
    tags = [tag['name'] for tag in document['tags']]
    assert len(tags) == len(set(tags)) and {'sandbox', 'files', 'snapshot', 'Connect'} <= set(tags)
    used = [operation['tags'] for _, _, operation in hub.operations()]
    assert all(len(each) == 1 for each in used) and {each[0] for each in used} == set(tags)


def test_a_filter_is_refused_as_described(hub):
    """List of Connect has none, and says so."""
    operation = hub.by_name['List'][2]
    reply = hub.connect('List', hub.create(), {'parent': '.', 'filter': 'x'})
    assert hub.conforms(operation, reply).status == 501


def test_every_route_has_no_other_method(hub):
    for path, item in hub.document['paths'].items():
        served = {m.upper() for m in item}
        for method in {'GET', 'POST', 'DELETE', 'PUT', 'PATCH'} - served:
            reply = hub.raw(method, path.replace('{id}', 'nobody').replace('{exec}', 'nothing'),
                            '{}' if method in ('PUT', 'PATCH') else None)
            assert reply.status == 405 and set(reply.get('Allow').split(', ')) == served, (
                path, method, reply)
            code = json.loads(reply.body)
            assert (code.get('code') == 'unimplemented'
                    or code['error']['code'] == 'method_not_allowed')


def test_unknown_routes_have_the_same_form(hub):
    for path in ('/v1/', '/v1/x', '/v1/sandboxes/', '/v1/sandboxes//fork', '/v1/sandboxes/a/b',
                 '/v1/files/x'):
        status, answer = hub.asked('GET', path)
        assert (status, answer['error']['code']) == (404, 'not_found')
    reply = hub.connect('NoSuch', 'nobody', {})
    assert reply.status == 404 and json.loads(reply.body)['code'] == 'not_found'


def failed(operation, status):
    """The status of a failure; a stream of Connect has it in its last message."""
    streams = 'application/connect+json' in operation['responses'].get('200', {}).get('content', {})
    return 200 if streams else status


def refused(hub, operation, reply, code, named=None, status=400):
    """With this status and code, and a cause that names what was wrong."""
    answer = told(hub.conforms(operation, reply))
    assert reply.status == failed(operation, status) and code_of(answer) in code, reply
    cause = answer['error']['cause'] if 'error' in answer else answer['message']
    assert named is None or named in cause, (named, cause)


def test_every_route_refuses_wrong_bodies(hub):
    """Each member of each, however deep it stands, wrong in each way that the schema has."""
    tried = 0
    for path, method, operation, kind, schema, headers in each(hub):
        if not schema:
            continue
        for body in NO_JSON:
            refused(hub, operation, send(hub, path, method, kind, body, headers), ('invalid_json',))
        for body, named in values(schema):
            reply = send(hub, path, method, kind, json.dumps(body), headers)
            refused(hub, operation, reply, ('invalid_input', 'invalid_json'), named)
            tried += 1
        for name, member in schema.get('properties', {}).items():
            if member['type'] == 'string':
                reply = send(hub, path, method, kind,
                             json.dumps({**example(schema), name: 'a\ud800b'}), headers)
                refused(hub, operation, reply, ('invalid_json', 'invalid_input'))
    assert tried > 1000


def parameters(hub, place):
    for path, method, operation, kind, schema, headers in each(hub):
        body = json.dumps(example(schema)) if schema else None
        for parameter in operation['parameters']:
            if parameter['in'] == place:
                yield path, method, operation, kind, body, headers, parameter


def test_every_route_refuses_wrong_queries(hub):
    for path, method, operation, kind, body, headers, parameter in parameters(hub, 'query'):
        name = parameter['name']
        schema = parameter['schema'].get('items', parameter['schema'])  # it may be repeated
        good = example(schema)
        good = {True: 'true', False: 'false'}.get(good, good) if isinstance(good, bool) else good
        many = '&'.join([f'{name}={good}'] * (1 + parameter['schema'].get('maxItems', 1)))
        for query in ([f'{name}={text}' for text in texts(schema)] + [many, f'{name}']):
            if query == name and schema['type'] == 'string' and not schema.get('minLength'):
                continue
            reply = send(hub, f'{path}?{query}', method, kind, body, headers)
            refused(hub, operation, reply, ('invalid_input', 'invalid_json'))


def test_every_route_refuses_wrong_headers(hub):
    for path, method, operation, kind, body, headers, parameter in parameters(hub, 'header'):
        name, schema = parameter['name'], parameter['schema']
        others = [h for h in headers if not h.startswith(name + ':')]
        wrong = [[f'{name}: a', f'{name}: b'], [f'{name}: {"x" * (schema["maxLength"] + 1)}'],
                 *([[f'{name}: \xff']])]
        for fields in wrong + ([[], [f'{name}:']] if parameter['required'] else []):
            refused(hub, operation, send(hub, path, method, kind, body, [*others, *fields]),
                    ('invalid_input', 'invalid_json'))


CONNECT = ('Connect-Protocol-Version: 2', 'Content-Encoding: gzip', 'Connect-Content-Encoding: br',
           *(f'Connect-Timeout-Ms:{value}' for value in (' 0', ' -1', ' 1.5', ' x', '',
                                                          ' 10000000000')))


def test_every_rpc_refuses_what_connect_does_not_have(hub):
    for path, method, operation, kind, schema, headers in each(hub):
        for field in CONNECT if path.startswith('/sandbox.v1.Sandbox/') and schema else ():
            reply = send(hub, path, method, kind, json.dumps(example(schema)), [*headers, field])
            status, code = (501, 'unsupported') if 'Encoding' in field else (400, 'invalid_input')
            refused(hub, operation, reply, (code,), field.split(':')[0], status)


def test_every_route_knows_no_hostile_ids(hub):
    """In the path, in the body, in the header: nothing has such a name, and nothing that is wrong
    with it goes any further."""
    for path, method, operation, kind, schema, headers in each(hub):
        body = json.dumps(example(schema)) if schema else None
        for part in {'nobody', 'nothing'} & set(path.split('/')):
            for segment in SEGMENTS:
                reply = send(hub, path.replace(part, segment), method, kind, body, headers)
                answer = json.loads(reply.body)
                assert (reply.status in (400, 404, 431) and set(answer['error'])
                        >= {'code', 'cause', 'remediation'}), (path, segment, reply)
        if schema and 'sandbox' in schema['properties']:
            for name in IDS:
                reply = hub.conforms(operation, send(hub, path, method, kind, json.dumps(
                    {**example(schema), 'sandbox': name}), headers))
                assert reply.status in (400, 404), (path, name, reply)
        if any(h.startswith('X-Sandbox-Id') for h in headers):
            for name in IDS:
                if name.isascii() and name.isprintable() and len(name) < 4000:
                    reply = hub.conforms(operation, send(hub, path, method, kind, body,
                                                         [f'X-Sandbox-Id: {name}']))
                    assert reply.status in (failed(operation, 400), failed(operation, 404)), (
                        path, name, reply)
                    assert code_of(told(reply)) in ('invalid_input', 'not_found'), (path, name)


def test_every_route_refuses_other_types_and_sizes(hub):
    for path, method, operation, kind, schema, headers in each(hub):
        if not schema:
            continue
        for other in ('text/plain', 'application/x-www-form-urlencoded', 'application/proto', ''):
            reply = hub.conforms(operation, send(hub, path, method, other, '{}', headers))
            assert reply.status == 415, (path, other, reply)
        if operation['operationId'] == 'Upload':
            continue  # of any size
        reply = hub.conforms(operation, hub.announced(path, 1 << 30, kind, method))
        assert reply.status == 413, (path, reply)


def test_every_route_refuses_unknown_queries(hub):
    for path, method, operation, kind, schema, headers in each(hub):
        body = json.dumps(example(schema)) if schema else None
        reply = hub.conforms(operation, send(hub, path + '?no_such=1', method, kind, body, headers))
        assert reply.status == failed(operation, 400) and b'no_such' in reply.body, (path, reply)


def test_every_route_says_what_is_not_there(hub):
    """All that names a sandbox says so of one that is not there, twice."""
    for path, method, operation, kind, schema, headers in each(hub):
        body = example(schema) if schema else {}
        if 'nobody' not in path and 'sandbox' not in body and 'X-Sandbox-Id: nobody' not in headers:
            continue
        if 'sandbox' in body:
            body['sandbox'] = 'nobody'
        if 'Exec' in path or 'WriteFile' in path or 'Upload' in path:
            opened = {'command': 'true'} if 'Exec' in path else {'dest' if 'Upload' in path
                                                                 else 'path': 'f'}
            body = opened if 'ExecStream' in path else {'open': opened}
        for _ in range(2):
            reply = hub.conforms(operation, send(hub, path, method, kind,
                                                 json.dumps(body) if schema else None, headers))
            assert reply.status == failed(operation, 404), (path, body, reply)
            answer = told(reply)
            if 'error' in answer:
                what = 'snapshot' if path.startswith('/v1/snapshots/') else 'sandbox'
                assert answer['error']['context'].get(what) == 'nobody', (path, body, answer)
            else:
                assert answer['code'] == 'not_found'


def watch_by_connect(hub):
    body = frame({'path': 'd'})
    return hub.request('POST', '/sandbox.v1.Sandbox/Watch', fields=[
        'Content-Type: application/connect+json', 'X-Sandbox-Id: doc',
        f'Content-Length: {len(body)}']).encode() + body


def test_other_forms_are_of_their_schemas(hub):
    """What is answered to the requests of surface.py test_keys.py holds to the document; here are
    their other forms, and what comes later."""
    box = hub.create(id='doc')

    def ask(name, path=None, /, raw=None, **body):
        p, method, operation = hub.by_name[name]
        kind = next(iter(operation.get('requestBody', {}).get('content', {})), None)
        headers = ([f'X-Sandbox-Id: {box}', 'Connect-Timeout-Ms: 1500']
                   if p.startswith('/sandbox') else [])
        reply = hub.conforms(operation, send(hub, path or p, method, kind, raw or json.dumps(body),
                                             headers, frame=not raw))
        assert reply.status == 200, (name, reply)
        return reply

    def made(name, path=None, /, **body):
        return json.loads(ask(name, path, **body).body)
    for path in ('/v1/sandboxes', '/v1/sandboxes?limit=1', '/v1/sandboxes?state=running'):
        ask('sandboxes.list', path)
    ask('sandboxes.fork', '/v1/sandboxes/doc/fork')
    ask('sandboxes.fork', '/v1/sandboxes/doc/fork', count=2)
    snapshot = made('sandboxes.snapshot', '/v1/sandboxes/doc/snapshots', name='n',
                    ttl_seconds=3600)['id']
    ask('snapshots.restore', f'/v1/snapshots/{snapshot}/restore')
    ask('snapshots.restore', f'/v1/snapshots/{snapshot}/restore', count=2)
    ask('sessions.list', '/api/sessions?limit=1&archived=false')
    talk = '/api/sessions/' + made('sessions.create', title='asks')['session_id']
    ask('sessions.update', talk, description='of the document')
    ask('sessions.events', talk + '/events?event_types=session_start&since=1h')
    ask('prompts.ask', kind='form', title='t', timeout_seconds=1, schema={
        'type': 'object', 'properties': {'a': {'type': 'string'}}})
    asked = question(hub)
    hub.post(f'/api/prompts/{asked}/answer', option_id='no')
    ask('prompts.result', f'/api/prompts/{asked}/result')
    asker = Asker(hub, box)
    ask('approvals.answer', f'/v1/approvals/{asker.id}', decision='approve')
    with asker.wire as wire:
        assert wire.reply('POST').status == 200
    ask('keys.create', name='doc', scopes=['read'], ttl_seconds=60)
    ask('sandboxes.forward', '/v1/sandboxes/doc/forward', guest_port=8000)
    ask('forwards.list', '/v1/sandboxes/doc/forward')
    ask('forwards.delete', '/v1/sandboxes/doc/forward?guest_port=8000')
    ask('network.set', '/v1/sandboxes/doc/network', network={'mode': 'none', 'allow': []})
    ask('javascript', code='throw new Error()')
    ask('exec.stream', sandbox=box, command='echo; echo >&2')
    ask('ExecStream', command='echo; echo >&2')
    ask('exec', sandbox=box, command='cat; echo >&2', background=True, exec_id='x',
        stdin_open=True)
    one = '/v1/sandboxes/doc/execs/x'
    ask('execs.stdin', one + '/stdin', data_base64='aGVsbG8K')
    ask('execs.wait', one + '/wait', text='hello')
    ask('execs.stdin', one + '/stdin', close=True)
    ask('execs.output', one + '/output?follow=true')
    ask('execs.wait', one + '/wait')
    ask('execs.get', one)
    ask('events', '/v1/events?limit=2&after=1&sandbox=doc')
    ask('Vitals')  # until its time is over
    ask('Upload', raw=frame({'open': {}}) + frame({'chunk': b64(bytes(1024))}))
    hub.exec(box, 'mkdir d')
    for name, request in (('watch', hub.request('GET', '/v1/sandboxes/doc/watch?path=d')),
                          ('Watch', watch_by_connect(hub))):
        hub.conforms(hub.by_name[name][2],
                     hub.after_first(request, lambda: hub.exec(box, 'rm -r d; mkdir d')))
    sockets(hub, box)


def sockets(hub, box):
    """What is said on them is of their schemas, both ways."""
    schemas = hub.by_name['execs.attach'][2]['x-websocket']
    hub.check({'resize': {'cols': 1, 'rows': 1}}, schemas['client'])
    with Attached(hub, box, 'x', 0, protocol=schemas['subprotocol']) as x:
        x.end()
        assert x.out == b'hello\n'
        for message in ({'attached': x.hello}, {'exit': x.exit}):
            hub.check(message, schemas['server'])
    for name, kind, opened in (
            ('sandboxes.exec', Exec, {'command': 'echo', 'args': ['out'],
                                      'tty': {'cols': 1, 'rows': 1}}),
            ('pty', Pty, {'command': 'test -t 0 && echo out'}),
            ('ExecSocket', Framed, {'command': 'echo out', 'pty': {'size': {'cols': 1,
                                                                            'rows': 1}}})):
        schemas = hub.by_name[name][2]['x-websocket']
        hub.check({'open': opened}, schemas['client'])
        with kind(hub, box, protocol=schemas['subprotocol']) as x:
            x.say(open=opened)
            x.end()
            for message in getattr(x, 'messages', [{'exit': x.exit}]):
                hub.check(message, schemas['server'])
            assert x.out == b'out\r\n', x.error
