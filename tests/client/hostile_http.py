"""A server over HTTP, in a thread of the test, whose answers are bytes that the test makes.

answer(request) gives the bytes of an answer, or pieces of them one after the other; the connection
is closed behind them, unless they end in KEEP. request has method, path, headers (lower case),
body, and message: the body's JSON, or None.
"""

import contextlib
import json
import socket
import threading
import types


KEEP = bytearray()  # as the last of the pieces: more requests may come on the connection


def reply(status='200 OK', body=b'', kind='application/json', **headers):
    if isinstance(body, (dict, list)):
        body = json.dumps(body).encode()
    elif isinstance(body, str):
        body = body.encode()
    lines = [f'HTTP/1.1 {status}', f'Content-Length: {len(body)}', 'Connection: close']
    lines += [f'Content-Type: {kind}'] if kind else []
    lines += [f'{name.replace("_", "-")}: {value}' for name, value in headers.items()]
    return '\r\n'.join(lines).encode() + b'\r\n\r\n' + body


def result(request, value, **more):
    return reply(body={'jsonrpc': '2.0', 'id': request.message['id'], 'result': value}, **more)


def error(request, code, message='no', status='200 OK', **more):
    return reply(status, {'jsonrpc': '2.0', 'id': (request.message or {}).get('id'),
                          'error': {'code': code, 'message': message}},
                 **more)


def events(*texts, **headers):
    """The head and the beginning of a stream without an end of its own."""
    lines = ['HTTP/1.1 200 OK', 'Content-Type: text/event-stream', 'Connection: close']
    lines += [f'{name.replace("_", "-")}: {value}' for name, value in headers.items()]
    return '\r\n'.join(lines).encode() + b'\r\n\r\n' + ''.join(texts).encode()


def event(message, number=None):
    return (f'id: {number}\n' if number is not None else '') + f'data: {json.dumps(message)}\n\n'


def initialized(request, version='2025-11-25', **more):
    """What every legacy server says; None where the request is nothing of the beginning."""
    method = (request.message or {}).get('method')
    if method == 'server/discover':
        return error(request, -32601, status='400 Bad Request')
    if method == 'initialize':
        return result(request, {'protocolVersion': version, 'capabilities': {'tools': {}},
                                'serverInfo': {'name': 'hostile', 'version': '1'}}, **more)
    if method and method.startswith('notifications/'):
        return reply('202 Accepted', kind=None)
    if request.method != 'POST':
        return reply('405 Method Not Allowed', kind=None)
    return None


class HostileHttp:
    def __init__(self, answer):
        self.answer = answer
        self.requests = []  # all that were made
        self.ended = threading.Event()
        self.connections = set()
        self.socket = socket.create_server(('127.0.0.1', 0))
        self.url = f'http://127.0.0.1:{self.socket.getsockname()[1]}/mcp'
        self.threads = [threading.Thread(target=self.accept, daemon=True)]
        self.threads[0].start()

    def accept(self):
        while True:
            try:
                connection = self.socket.accept()[0]
            except OSError:
                return
            thread = threading.Thread(target=self.serve, args=(connection,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def serve(self, connection):
        with connection:
            self.connections.add(connection)
            try:
                while self.serve_one(connection) is KEEP:
                    pass
            except OSError:
                pass  # the client has gone
            self.connections.discard(connection)

    def serve_one(self, connection):
        """The last piece of its answer."""
        request, piece = self.read(connection), None
        if request:
            self.requests.append(request)
            answer = self.answer(request)
            for piece in [answer] if isinstance(answer, bytes) else answer or []:
                connection.sendall(piece)
        return piece

    @staticmethod
    def read(connection):
        data = b''
        while b'\r\n\r\n' not in data:
            piece = connection.recv(65536)
            if not piece:
                return None
            data += piece
        head, _, body = data.partition(b'\r\n\r\n')
        first, *lines = head.decode('latin-1').split('\r\n')
        headers = {name.strip().lower(): value.strip()
                   for name, _, value in (line.partition(':') for line in lines)}
        while len(body) < int(headers.get('content-length', 0)):
            body += connection.recv(65536)
        method, path, _ = first.split(' ')
        return types.SimpleNamespace(method=method, path=path, headers=headers, body=body,
                                     message=json.loads(body) if body else None)

    def methods(self):
        """What was asked: the method of each message, or HTTP's."""
        return [r.message['method'] if r.message and 'method' in r.message else r.method
                for r in self.requests]

    def close(self):
        self.ended.set()
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)  # what waits in it would wait on
        for thread in self.threads:
            thread.join(10)
