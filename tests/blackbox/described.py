"""A hub that is held to what /v1/openapi.json says of it.
The validator is not ours (python3-jsonschema)."""

import io
import json
import tarfile

import pytest

from rest import Rest, frames

jsonschema = pytest.importorskip('jsonschema',
                                 reason='python3-jsonschema is missing: scripts/deps test')

TAR = ('application/x-tar', 'application/zstd')


class Described(Rest):
    """A hub, and what it says of itself."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.document = self.call('GET', '/v1/openapi.json')
        self.by_name = {operation['operationId']: (path, method, operation)
                        for path, method, operation in self.operations()}
        self.validators = {}  # by the identity of a schema, which is a part of the document

    def operations(self):
        for path, item in self.document['paths'].items():
            for method, operation in item.items():
                yield path, method.upper(), operation

    def schema(self, operation, reply):
        """Of a reply to it; the document must have its status and type."""
        told = operation['responses'][str(reply.status)]
        return told['content'][reply.get('Content-Type')]['schema']

    def check(self, value, schema):
        if id(schema) not in self.validators:
            whole = {**schema, 'components': self.document['components']}
            self.validators[id(schema)] = jsonschema.Draft202012Validator(whole)
        errors = [e.message for e in self.validators[id(schema)].iter_errors(value)]
        assert not errors, (errors, value)

    def check_code(self, operation, error, status=None):
        """It is among those that the document has for this status; of a stream, for any."""
        told = {code for number, response in operation['responses'].items()
                if status in (None, int(number))
                for code in response['description'].split(', ')}
        assert code_of(error) in told, (operation['operationId'], status, error, told)

    def conforms(self, operation, reply):
        schema = self.schema(operation, reply)
        kind = reply.get('Content-Type')
        if kind == 'application/connect+json':
            found = list(frames(reply.body))
            values = [message for flags, message in found if flags == 0]
            for message in [message for flags, message in found
                            if flags == 2 and 'error' in message]:
                self.check_code(operation, message['error'])
        elif kind in TAR and reply.status == 200:
            if kind == TAR[0]:
                tarfile.open(fileobj=io.BytesIO(reply.body)).getmembers()
            values = []
        elif kind == 'text/event-stream' and reply.status == 200:
            values = [json.loads(line[6:]) for line in reply.body.splitlines()
                      if line.startswith(b'data: ')]
        elif kind == 'application/x-ndjson':
            values = [json.loads(line) for line in reply.body.splitlines()]
        else:
            values = [json.loads(reply.body)]
        for value in values:
            self.check(value, schema)
        if reply.status >= 400:
            self.check_code(operation, values[0], reply.status)
        return reply


def code_of(answer):
    """Of an error of either kind, in the words of /v1."""
    if 'error' in answer:
        return answer['error']['code']
    return answer['details'][0]['debug']['code'] if 'details' in answer else answer['code']


def failure_of(reply):
    """What a reply says of a failure, in its last message if it is a stream of Connect; or
    None."""
    if reply.get('Content-Type') == 'application/connect+json' and reply.status == 200:
        return next((m['error'] for flags, m in frames(reply.body)
                     if flags == 2 and 'error' in m), None)
    return json.loads(reply.body) if reply.status != 200 else None


def framed(kind, body):
    body = body.encode() if isinstance(body, str) else body
    return (b'\0' + len(body).to_bytes(4, 'big') + body if kind == 'application/connect+json'
            else body)


def send(hub, path, method, kind, body, headers, frame=True, **options):
    data = framed(kind, body) if kind and frame else (body or b'')
    data = data.encode() if isinstance(data, str) else data
    fields = [*headers, *([f'Content-Type: {kind}', f'Content-Length: {len(data)}'] if kind
                          else [])]
    with hub.wire() as wire:
        return wire.ask(hub.request(method, path, fields=fields, **options).encode('latin-1')
                        + data, method)
