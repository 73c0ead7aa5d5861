"""A hub of paper: it has read /v1/openapi.json, holds each request to that, remembers which members
were there, and answers with everything that the document lets an answer have."""

import base64
import hashlib
import json
import re
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

import jsonschema

ABSENT = object()
BYTES = base64.b64encode(b'bytes').decode()
# What of a sample has a meaning. By the name of a member, or with its operation before it.
SAMPLES = {'eof': True, 'host': '127.0.0.1:80', 'content': BYTES,
           'data': BYTES, 'encoding': 'base64', 'files.read.next_offset': ABSENT,
           'failure': ABSENT, 'stdout_base64': BYTES, 'stderr_base64': BYTES}


class Paper:
    def __init__(self, document):
        self.document = document
        self.routes = [(re.compile(re.sub(r'\{(\w+)\}', r'(?P<\1>[^/]+)', path) + '$'), path, item)
                       for path, item in document['paths'].items()]
        self.used = {}  # names of members, by operation
        self.wrong = []
        handler = type('Handler', (Handler,), {'paper': self})
        self.server = ThreadingHTTPServer(('127.0.0.1', 0), handler)
        self.server.daemon_threads = True
        self.url = f'http://127.0.0.1:{self.server.server_port}'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def find(self, method, path):
        """A route without parameters before one with."""
        name = method.lower()
        found = [(path_, item[name], match.groupdict()) for pattern, path_, item in self.routes
                 if (match := pattern.match(path)) and name in item]
        assert found, f'{method} {path} is none of its routes'
        return min(found, key=lambda f: f[0].count('{'))

    def check(self, value, schema, what):
        whole = {**schema, 'components': self.document['components']}
        for e in jsonschema.Draft202012Validator(whole).iter_errors(value):
            raise AssertionError(f'{what}: {e.message}')

    def take(self, operation, parameters, query, body, schema):
        name = operation['operationId']
        used = self.used.setdefault(name, set())
        known = {(p['in'], p['name']): p['schema'] for p in operation.get('parameters', ())}
        for place, given in (('path', parameters), ('query', query)):
            for key, value in given.items():
                one = known[place, key]
                kind = one.get('type')
                value = (int(value) if kind == 'integer' else value == 'true' if kind == 'boolean'
                         else [value] if kind == 'array' else value)
                self.check(value, one, f'{name} {key}')
        used.update(query)
        if body is not None:
            self.check(body, schema, name)
            used.update(members(body, schema))

    def sample(self, schema, name, operation):
        said = SAMPLES.get(f'{operation}.{name}', SAMPLES.get(name))
        if said is not None:
            return said
        if 'oneOf' in schema:
            return self.sample(schema['oneOf'][-1], name, operation)
        if '$ref' in schema:
            known = self.document['components']['schemas']
            return self.sample(known[schema['$ref'].split('/')[-1]], name, operation)
        if 'enum' in schema:
            return 'exited' if 'exited' in schema['enum'] else schema['enum'][0]
        kind = schema.get('type')
        if kind == 'object':
            return {key: value for key, one in schema.get('properties', {}).items()
                    if (value := self.sample(one, key, operation)) is not ABSENT}
        if kind == 'array':
            return [self.sample(schema['items'], name, operation)]
        return {'string': 'text'.ljust(schema.get('minLength', 0), 't'), 'number': 1.5,
                'integer': max(schema.get('minimum', 1), 1), 'boolean': True}[kind]

    def lines(self, schema, operation):
        """One of each kind; those of a watch begin with ready, others end with exit."""
        for kind in schema['properties']['kind']['enum']:
            yield {**self.sample(schema, '', operation), 'kind': kind,
                   **({'stream': 'stdout'} if 'stream' in schema['properties'] else {})}


def members(body, schema, before=''):
    """Names of those that are there, also below objects that the schema describes."""
    for key, value in body.items():
        yield before + key
        one = schema.get('properties', {}).get(key, {})
        if isinstance(value, dict) and one.get('properties'):
            yield from members(value, one, f'{before}{key}.')


def known(operation):
    """All that a client can say."""
    names = {p['name'] for p in operation.get('parameters', ()) if p['in'] == 'query'}
    schema = body_schema(operation)

    def walk(one, before):
        for key, below in one.get('properties', {}).items():
            names.add(before + key)
            walk(below, f'{before}{key}.')
    walk(schema or {}, '')
    return names


def body_schema(operation):
    if 'x-websocket' in operation:
        return operation['x-websocket']['client'].get('properties', {}).get('open')
    content = operation.get('requestBody', {}).get('content', {})
    return content.get('application/json', {}).get('schema')


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    paper = None

    def log_message(self, *_):
        pass

    def do(self):
        try:
            self.serve()
        except Exception as e:
            self.paper.wrong.append(f'{self.command} {self.path}: {e!r}')
            self.close_connection = True
            raise SystemExit from None  # of this thread, quietly

    do_GET = do_POST = do_PUT = do_DELETE = do

    def serve(self):
        url = urlsplit(self.path)
        if '/expose/' in url.path:  # not described
            self.say(b'served', 'text/plain')
            return
        _, operation, parameters = self.paper.find(self.command, url.path)
        parameters = {k: unquote(v) for k, v in parameters.items()}
        query = dict(parse_qsl(url.query, keep_blank_values=True, strict_parsing=bool(url.query)))
        schema = body_schema(operation)
        if 'x-websocket' in operation:
            self.upgrade(operation, parameters, query, schema)
            return
        body = self.read()
        document = json.loads(body) if schema else None
        self.paper.take(operation, parameters, query, document, schema)
        content = operation['responses']['200']['content']
        lines = 'application/json' not in content or 'follow' in query
        kind = ('application/x-ndjson' if 'application/x-ndjson' in content and lines
                else next(iter(content)))
        schema, name = content[kind]['schema'], operation['operationId']
        if kind == 'application/x-ndjson':
            said = ''.join(json.dumps(line) + '\n' for line in self.paper.lines(schema, name))
        elif kind == 'application/json':
            said = self.paper.sample(schema, '', name)
            if 'cursor' in query:
                del said['next_cursor']  # the second page is the last
            self.paper.check(said, schema, f'answer of {name}')
            said = json.dumps(said)
        else:
            said = 'tar'
        self.say(said.encode(), kind)

    def read(self):
        if self.headers.get('Transfer-Encoding') != 'chunked':
            return self.rfile.read(int(self.headers.get('Content-Length') or 0))
        body = b''
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def say(self, body, kind):
        self.send_response(200)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(body)))
        self.send_header('Audit-Id', 'run_paper')
        self.end_headers()
        self.wfile.write(body)

    def upgrade(self, operation, parameters, query, schema):
        socket = operation['x-websocket']
        assert self.headers['Sec-WebSocket-Protocol'] == socket['subprotocol']
        key = self.headers['Sec-WebSocket-Key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
        self.send_response(101)
        self.send_header('Upgrade', 'websocket')
        self.send_header('Connection', 'Upgrade')
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.send_header('Sec-WebSocket-Accept', accept)
        self.end_headers()
        self.close_connection = True
        first = None
        if schema:
            message = json.loads(self.frame()[1])
            assert set(message) == {'open'}
            first = message['open']
        self.paper.take(operation, parameters, query, first, schema)
        words = set()
        while True:
            opcode, payload = self.frame()
            if opcode == 8:
                return
            if opcode == 1:
                word = json.loads(payload)
                self.paper.check(word, socket['client'], operation['operationId'])
                words |= set(word)
            if words == {'stdin_close', 'resize', 'signal'}:
                break
        said = {'exit': {'exit_code': 0, 'exec_time_ms': 1}}
        self.paper.check(said, socket['server'], operation['operationId'])
        for opcode, payload in ((2, b'\1out'), (9, b'ping'), (1, json.dumps(said).encode()),
                                (8, struct.pack('>H', 1000))):
            self.wfile.write(bytes([0x80 | opcode, len(payload)]) + payload)
        assert self.frame() == (10, b'ping')

    def frame(self):
        head = self.rfile.read(2)
        if len(head) < 2:
            return 8, b''
        n = head[1] & 127
        if n == 126:
            n = struct.unpack('>H', self.rfile.read(2))[0]
        mask, payload = self.rfile.read(4), self.rfile.read(n)
        return head[0] & 15, bytes(c ^ mask[i % 4] for i, c in enumerate(payload))
