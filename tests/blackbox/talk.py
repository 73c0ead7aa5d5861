"""Conversations with programs over the hub's WebSockets,
by a client that is not ours (python3-websocket)."""

import json
import struct
import time

import pytest

from rest import b64, joined

websocket = pytest.importorskip('websocket',
                                reason='python3-websocket is missing: scripts/deps test')

DEADLINE = 60
REST, ATTACH, CONNECT = 'holt.exec.v1', 'holt.attach.v1', 'connect.sandbox.v1'
TEXT, BINARY, CLOSE = 1, 2, 8


class Talk:
    """A WebSocket to a hub: what it says is kept until somebody wants it."""

    def __init__(self, hub, path, protocol, *, token=True, headers=(), **options):
        host, port = hub.address
        tls = getattr(hub, 'context', None)
        options.update({'sslopt': {'context': tls}} if tls else {})
        fields = [*headers, *([f'Authorization: Bearer {hub.token if token is True else token}']
                              if token else [])]
        self.ws = websocket.create_connection(f'{"wss" if tls else "ws"}://{host}:{port}{path}',
                                              header=fields, timeout=DEADLINE,
                                              subprotocols=protocol and [protocol],
                                              suppress_origin=True, **options)
        self.out, self.err = b'', b''
        self.exit = self.error = self.closed = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ws.shutdown()

    def hear(self):
        """The next message, among what it says; False at the end."""
        opcode, data = self.ws.recv_data()
        if opcode == CLOSE:
            self.closed = struct.unpack('>H', data[:2])[0], data[2:].decode()
            return False
        self.take(opcode, data)
        return True

    def end(self):
        while self.hear():
            pass
        return self

    def until(self, text, stream='out'):
        deadline = time.monotonic() + DEADLINE
        while text not in getattr(self, stream):
            assert time.monotonic() < deadline and self.hear(), (text, self.out, self.err,
                                                                 self.exit, self.error)


class Exec(Talk):
    """GET /v1/sandboxes/{id}/exec"""

    def __init__(self, hub, sandbox, command=None, *, protocol=REST, **more):
        options = {k: more.pop(k) for k in ('token', 'headers', 'sockopt') if k in more}
        super().__init__(hub, self.path(sandbox), protocol, **options)
        if command is not None or more:
            self.say(open={**({'command': command} if command else {}), **more})

    @staticmethod
    def path(sandbox):
        return f'/v1/sandboxes/{sandbox}/exec'

    def say(self, **message):
        self.ws.send(json.dumps(message))

    def type(self, data):
        self.ws.send_binary(b'\0' + (data.encode() if isinstance(data, str) else data))

    def take(self, opcode, data):
        if opcode == BINARY:
            assert data[0] in (1, 2), data
            if data[0] == 1:
                self.out += data[1:]
            else:
                self.err += data[1:]
            return
        message = json.loads(data)
        assert len(message) == 1 and set(message) <= {'exit', 'error'}, message
        assert self.error is None and (self.exit is None or 'error' in message)
        self.exit, self.error = message.get('exit', self.exit), message.get('error')


class Pty(Exec):
    """GET /v1/pty"""

    @staticmethod
    def path(sandbox):
        return f'/v1/pty?sandbox={sandbox}'


class Attached(Exec):
    """GET /v1/sandboxes/{id}/execs/{exec}/attach; what it heard first, and what it missed"""

    def __init__(self, hub, sandbox, job, offset=None, *, protocol=ATTACH, **options):
        query = '' if offset is None else f'?offset={offset}'
        Talk.__init__(self, hub, f'/v1/sandboxes/{sandbox}/execs/{job}/attach{query}', protocol,
                      **options)
        self.hello, self.dropped = None, []
        assert self.hear()

    def take(self, opcode, data):
        message = json.loads(data) if opcode == TEXT else {}
        if 'attached' in message:
            assert self.hello is None
            self.hello = message['attached']
        elif 'dropped' in message:
            self.dropped.append(message['dropped'])
        else:
            super().take(opcode, data)


class Framed(Talk):
    """GET /sandbox.v1.Sandbox/Exec"""

    def __init__(self, hub, sandbox, opened=None, *, by_query=True, protocol=CONNECT, headers=(),
                 **options):
        query = f'?sandbox={sandbox}' if by_query else ''
        headers = [*headers, *([] if by_query else [f'X-Sandbox-Id: {sandbox}'])]
        super().__init__(hub, f'/sandbox.v1.Sandbox/Exec{query}', protocol, headers=headers,
                         **options)
        self.messages, self.ended = [], None
        if opened is not None:
            self.say(open=opened)

    def say(self, **message):
        text = json.dumps(message).encode()
        self.ws.send_binary(b'\0' + struct.pack('>I', len(text)) + text)

    def type(self, data):
        self.say(stdin=b64(data))

    def take(self, opcode, data):
        flags, n = struct.unpack('>BI', data[:5])
        message = json.loads(data[5:])
        assert opcode == BINARY and n == len(data) - 5 and self.ended is None, data
        if flags == 2:
            self.ended, self.error = message, message.get('error')
        else:
            assert flags == 0
            self.messages.append(message)
            self.exit = message.get('exit', self.exit)
            self.out += joined([message], 'stdout')
            self.err += joined([message], 'stderr')
