"""A client of /v1 and of Connect-JSON that sends what it is told."""

import base64
import json
import struct

import pytest

from door import Reply
from test_serve import Serve

TIMEOUT = 200  # seconds without a byte: code and commands may have a minute and more
MEMBERS = {'code', 'message', 'cause', 'remediation', 'failure', 'retryable', 'context'}


class Failed(Exception):
    """The server answered with an error."""

    def __init__(self, status, error):
        super().__init__(status, error)
        self.status, self.error, self.code = status, error, error.get('code')


def fails(status, code, call, *arguments, **more):
    with pytest.raises(Failed) as caught:
        call(*arguments, **more)
    assert (caught.value.status, caught.value.code) == (status, code), caught.value
    return caught.value.error


class Rest(Serve):
    """A running hub, asked over /v1."""

    def raw(self, method, path, body=None, **options):
        """The reply to a body that may be anything."""
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        text = self.request(method, path, body=body, **options)  # may start a program first
        with self.wire() as wire:
            wire.sock.settimeout(TIMEOUT)
            return wire.ask(text, method)

    def asked(self, method, path, body=None, **options):
        """Status and document."""
        reply = self.raw(method, path, body, **options)
        assert reply.get('Content-Type') == 'application/json', reply
        return reply.status, json.loads(reply.body)

    def call(self, method, path, body=None, **options):
        status, answer = self.asked(method, path, body, **options)
        if status != 200:
            assert {'error'} <= set(answer) <= {'error', 'result'}, answer
            assert set(answer['error']) - {'pointer'} == MEMBERS, answer
            raise Failed(status, answer['error'])
        return answer

    def post(self, path, /, **body):
        return self.call('POST', path, body)

    def create(self, **body):
        return self.post('/v1/sandboxes', **body)['id']

    def exec(self, sandbox, command, /, **more):
        return self.post('/v1/exec', sandbox=sandbox, command=command, **more)

    def delete(self, sandbox):
        return self.call('DELETE', f'/v1/sandboxes/{sandbox}')

    def sweep(self, sandbox):
        """Deletes it, unless the test has."""
        try:
            self.delete(sandbox)
        except Failed as e:
            assert e.code == 'not_found'

    def announced(self, path, size, kind='application/json', method='POST', **options):
        """The reply to the head of a body that is never sent."""
        with self.wire() as wire:
            return wire.ask(self.request(method, path, fields=[f'Content-Type: {kind}',
                                                               f'Content-Length: {size}'],
                                         **options), method)

    def after_first(self, request, then):
        """The reply to it, when then() has been called behind its first chunk."""
        with self.wire() as wire:
            wire.send(request)
            reply = Reply(*wire.head(), b'')
            reply.body = wire.chunk()
            then()
            reply.body += b''.join(iter(wire.chunk, b''))
            return reply

    # ---- Connect

    def connect(self, rpc, sandbox, message, fields=(), kind='application/json', body=None,
                **options):
        """The raw reply of a unary method, or to any body."""
        fields = [f'Content-Type: {kind}', *([f'X-Sandbox-Id: {sandbox}'] if sandbox else []),
                  *fields]
        body = json.dumps(message).encode() if body is None else body
        head = self.request('POST', f'/sandbox.v1.Sandbox/{rpc}',
                            fields=[*fields, f'Content-Length: {len(body)}'], **options)
        with self.wire() as wire:
            return wire.ask(head.encode() + body, 'POST')

    def unary(self, rpc, sandbox, /, **message):
        reply = self.connect(rpc, sandbox, message)
        answer = json.loads(reply.body)
        if reply.status != 200:
            raise Failed(reply.status, answer)
        return answer

    def stream(self, rpc, sandbox, *messages, fields=()):
        """The messages of the answer; raises what its last frame says."""
        reply = self.connect(rpc, sandbox, None, fields, 'application/connect+json',
                             b''.join(map(frame, messages)))
        if reply.status != 200:
            raise Failed(reply.status, json.loads(reply.body))
        assert reply.get('Content-Type') == 'application/connect+json'
        found = list(frames(reply.body))
        assert [flags for flags, _ in found] == [0] * (len(found) - 1) + [2], found
        if 'error' in found[-1][1]:
            failed = Failed(200, found[-1][1]['error'])
            failed.messages = [m for _, m in found[:-1]]
            raise failed
        return [m for _, m in found[:-1]]


def frame(message, flags=0):
    text = json.dumps(message).encode()
    return bytes([flags]) + struct.pack('>I', len(text)) + text


def frames(body):
    at = 0
    while at < len(body):
        flags, n = struct.unpack_from('>BI', body, at)
        yield flags, json.loads(body[at + 5:at + 5 + n])
        at += 5 + n


def told(reply):
    """The document of a reply, or what the last message of a stream says; of that, the error."""
    if reply.get('Content-Type') != 'application/connect+json':
        return json.loads(reply.body)
    assert reply.status == 200, reply
    flags, end = list(frames(reply.body))[-1]
    assert flags == 2, reply
    return end.get('error', end)


def b64(data):
    return base64.b64encode(data).decode()


def joined(messages, key):
    """The bytes of one stream."""
    return b''.join(base64.b64decode(m[key]) for m in messages if key in m)


def lines(body):
    return [json.loads(line) for line in body.splitlines()]
