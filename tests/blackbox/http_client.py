"""A raw HTTP client, and MCP over it: one request a connection unless told,
SSE read as it comes, deadlines.

It knows just enough of HTTP/1.1 to read what a server sends, byte by byte if need be, so that tests
see the wire and not a library's idea of it.
"""

import json
import socket
import time

from client import DEADLINE, check_message, no_repeats

MODERN = '2026-07-28'
BOTH = 'application/json, text/event-stream'
META = 'io.modelcontextprotocol/'


class Closed(Exception):
    """The server closed the connection before what was waited for."""


class Event:
    def __init__(self):
        self.id, self.event, self.data, self.retry, self.comments = None, 'message', None, None, []

    def message(self):
        got = json.loads(self.data, object_pairs_hook=no_repeats)
        check_rpc(got)
        return got

    def __repr__(self):
        return (f'Event(id={self.id!r}, event={self.event!r}, data={(self.data or "")[:200]!r}, '
                f'retry={self.retry!r})')


def check_rpc(message):
    """Requests to the client are allowed here, unlike on the streams of client.py."""
    if isinstance(message, dict) and 'method' in message and 'id' in message:
        assert set(message) <= {'jsonrpc', 'id', 'method', 'params'}, message
        return
    check_message(message)


class Reply:
    """A status, headers, and a body that may still be coming."""

    def __init__(self, conn, deadline):
        self.conn = conn
        line = conn.line(deadline)
        version, status, *_ = line.split(' ', 2)
        assert version == 'HTTP/1.1', line
        self.status = int(status)
        self.headers = {}
        while True:
            line = conn.line(deadline)
            if not line:
                break
            name, _, value = line.partition(':')
            name = name.lower()
            self.headers[name] = (f'{self.headers[name]}, {value.strip()}' if name in self.headers
                                  else value.strip())
        self.type = self.headers.get('content-type', '').partition(';')[0].strip()
        self.chunked = self.headers.get('transfer-encoding', '').lower() == 'chunked'
        self.left = int(self.headers.get('content-length', 0))
        self.ended = not self.chunked and self.left == 0
        if self.status in (204, 304) or self.status < 200:
            self.ended = True
        elif not self.chunked and 'content-length' not in self.headers:
            self.ended, self.left = False, None  # until the connection closes
        self.text = bytearray()  # of the body, read and not yet used

    def more(self, deadline):
        """Reads one more piece of the body; False at its end."""
        if self.ended:
            return False
        if self.chunked:
            size = int(self.conn.line(deadline).partition(';')[0], 16)
            self.text += self.conn.exactly(size, deadline)
            end = self.conn.line(deadline)
            assert end == '', end
            self.ended = size == 0
        elif self.left is None:
            got = self.conn.some(deadline)
            self.text += got
            self.ended = not got
        else:
            got = self.conn.upto(self.left, deadline)
            self.left -= len(got)
            self.text += got
            self.ended = self.left == 0
        return not self.ended

    def body(self, timeout=DEADLINE):
        deadline = time.monotonic() + timeout
        while not self.ended:
            self.more(deadline)
        got, self.text = bytes(self.text), bytearray()
        return got

    def json(self, timeout=DEADLINE):
        assert self.type == 'application/json', (self.status, self.headers,
                                                 self.body(timeout)[:500])
        got = json.loads(self.body(timeout).decode('utf-8'), object_pairs_hook=no_repeats)
        check_rpc(got)
        return got

    def event(self, timeout=DEADLINE):
        """The next event; None at the end of the stream. An event of comments only has no data."""
        assert self.status == 200 and self.type == 'text/event-stream', (self.status, self.headers,
                                                                         self.text[:500])
        deadline = time.monotonic() + timeout
        looked = 0  # there is no end of an event before it
        while (at := self.text.find(b'\n\n', looked)) < 0:
            looked = max(0, len(self.text) - 1)
            if self.ended:
                assert self.text == b'', self.text
                return None
            self.more(deadline)
        block = bytes(self.text[:at])
        del self.text[:at + 2]
        got, data = Event(), []
        for line in block.decode('utf-8').split('\n'):
            name, colon, value = line.partition(':')
            value = value.removeprefix(' ')
            if line.startswith(':'):
                got.comments.append(line[1:])
            elif name == 'data':
                data.append(value)
            else:
                assert colon and name in ('id', 'event', 'retry'), line
                setattr(got, name, value)
        if data:
            got.data = '\n'.join(data)
        return got

    def events(self, timeout=DEADLINE):
        """All events up to the end, without comments."""
        deadline = time.monotonic() + timeout
        while True:
            got = self.event(deadline - time.monotonic())
            if got is None:
                return
            if got.data is not None or got.retry is not None:
                yield got

    def real_event(self, timeout=DEADLINE):
        """The next event that carries a message."""
        deadline = time.monotonic() + timeout
        while True:
            got = self.event(deadline - time.monotonic())
            if got is None or got.data:
                return got

    def messages(self, timeout=DEADLINE):
        """Every message of the reply, whether it is JSON or a stream."""
        if self.type == 'application/json':
            got = self.json(timeout)
            return got if isinstance(got, list) else [got]
        return [e.message() for e in self.events(timeout) if e.data]

    def answer(self, timeout=DEADLINE):
        """The last message, which must be a response."""
        got = self.messages(timeout)
        assert got and 'method' not in got[-1], got
        return got[-1]

    def close(self):
        self.conn.close()


class Conn:
    """One TCP or Unix connection."""

    def __init__(self, address, receive_buffer=None):
        self.sock = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(DEADLINE)
        self.sock.connect(address)
        self.have = b''

    def fill(self, deadline):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError('nothing from the server in time')
        self.sock.settimeout(left)
        try:
            got = self.sock.recv(1 << 16)
        except ConnectionResetError:
            got = b''
        self.have += got
        return len(got) > 0

    def line(self, deadline):
        while b'\r\n' not in self.have:
            if not self.fill(deadline):
                raise Closed(f'in the middle of {self.have[:200]!r}')
        line, _, self.have = self.have.partition(b'\r\n')
        return line.decode('latin-1')

    def exactly(self, n, deadline):
        while len(self.have) < n:
            if not self.fill(deadline):
                raise Closed(f'{n - len(self.have)} bytes are missing')
        got, self.have = self.have[:n], self.have[n:]
        return got

    def upto(self, n, deadline):
        if not self.have and not self.fill(deadline):
            raise Closed(f'{n} bytes are missing')
        got, self.have = self.have[:n], self.have[n:]
        return got

    def some(self, deadline):
        if not self.have:
            self.fill(deadline)
        got, self.have = self.have, b''
        return got

    def send(self, data):
        self.sock.settimeout(DEADLINE)
        self.sock.sendall(data)

    def reply(self, timeout=DEADLINE):
        return Reply(self, time.monotonic() + timeout)

    def closed(self, timeout=DEADLINE):
        """Waits until the server closes; what it still sent."""
        deadline = time.monotonic() + timeout
        while self.fill(deadline):
            pass
        return self.have

    def close(self):
        self.sock.close()


class Door:
    """An HTTP server, and who speaks to it."""

    def __init__(self, address, token=None, host=None):
        self.address, self.token = address, token
        self.host = host or ('localhost' if isinstance(address, str)
                             else f'{address[0]}:{address[1]}')

    def as_other(self, token):
        return Door(self.address, token, self.host)

    def send(self, conn, method, path, body=None, headers=None):
        """Headers of None are left out."""
        if isinstance(body, (dict, list)):
            body = json.dumps(body, ensure_ascii=False)
        if isinstance(body, str):
            body = body.encode('utf-8')
        lines = {'Host': self.host}
        if self.token:
            lines['Authorization'] = f'Bearer {self.token}'
        if body is not None:
            lines['Content-Type'] = 'application/json'
            lines['Content-Length'] = str(len(body))
        lines.update(headers or {})
        head = f'{method} {path} HTTP/1.1\r\n' + ''.join(f'{k}: {v}\r\n'
                                                         for k, v in lines.items() if v is not None)
        conn.send(head.encode('latin-1') + b'\r\n' + (body or b''))

    def request(self, method, path, body=None, headers=None, conn=None, timeout=DEADLINE):
        conn = conn or Conn(self.address)
        self.send(conn, method, path, body, headers)
        return conn.reply(timeout)


def rpc(method, params=None, number=1):
    message = {'jsonrpc': '2.0', 'method': method}
    if number is not None:
        message['id'] = number
    if params is not None:
        message['params'] = params
    return message


def hello(version, capabilities=None):
    return rpc('initialize', {'protocolVersion': version, 'capabilities': capabilities or {},
                              'clientInfo': {'name': 'blackbox', 'version': '1'}}, 0)


class Session:
    """A legacy session at /mcp."""

    def __init__(self, door, version='2025-11-25', capabilities=None, path='/mcp'):
        self.door, self.version, self.path = door, version, path
        self.last_id = 0
        reply = door.request('POST', path, hello(version, capabilities), {'Accept': BOTH})
        assert reply.status == 200, (reply.status, reply.body())
        self.id = reply.headers['mcp-session-id']
        self.info = reply.answer()['result']
        reply.close()
        done = self.post(rpc('notifications/initialized', number=None))
        assert (done.status, done.body()) == (202, b''), done.headers
        done.close()

    def headers(self, more=None):
        named = {'Accept': BOTH, 'Mcp-Session-Id': self.id}
        if self.version >= '2025-06-18':
            named['MCP-Protocol-Version'] = self.version
        return {**named, **(more or {})}

    def post(self, body, headers=None, conn=None):
        return self.door.request('POST', self.path, body, self.headers(headers), conn)

    def request(self, method, params=None):
        """The reply to a request; it may be a stream."""
        self.last_id += 1
        return self.post(rpc(method, params, self.last_id))

    def tool(self, name, _meta=None, **arguments):
        params = {'name': name, 'arguments': arguments}
        if _meta:
            params['_meta'] = _meta
        return self.request('tools/call', params)

    def call(self, name, within=DEADLINE, **arguments):
        """The result of a call that must succeed."""
        reply = self.tool(name, **arguments)
        assert reply.status == 200, (reply.status, reply.body())
        got = reply.answer(within)
        reply.close()
        assert got['id'] == self.last_id, got
        assert not got['result'].get('isError'), got
        return got['result']

    def notify(self, method, params=None):
        reply = self.post(rpc(method, params, None))
        assert (reply.status, reply.body()) == (202, b''), reply.status
        reply.close()

    def cancel(self, number):
        self.notify('notifications/cancelled', {'requestId': number, 'reason': 'enough'})

    def listen(self, last_event=None, accept='text/event-stream'):
        """The GET stream, from the beginning or from an event."""
        named = {'Accept': accept}
        if last_event is not None:
            named['Last-Event-ID'] = last_event
        return self.door.request('GET', self.path, None, self.headers(named))

    def end(self):
        reply = self.door.request('DELETE', self.path, None, self.headers({'Accept': None}))
        reply.body()
        reply.close()
        return reply.status


class Modern:
    """Requests of 2026-07-28, each for itself."""

    def __init__(self, door, path='/mcp', capabilities=None):
        self.door, self.path, self.capabilities = door, path, capabilities or {}

    def meta(self, more=None):
        return {META + 'protocolVersion': MODERN, META + 'clientCapabilities': self.capabilities,
                META + 'clientInfo': {'name': 'blackbox', 'version': '1'}, **(more or {})}

    def headers(self, method, params, more=None):
        named = {'Accept': BOTH, 'MCP-Protocol-Version': MODERN, 'Mcp-Method': method}
        names = {'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri',
                 'tasks/get': 'taskId',
                 'tasks/update': 'taskId', 'tasks/cancel': 'taskId'}
        name = params.get(names.get(method))
        if name:
            named['Mcp-Name'] = name
        return {**named, **(more or {})}

    def request(self, method, params=None, number=1, meta=None, headers=None, conn=None):
        params = {**(params or {}), '_meta': self.meta(meta)}
        return self.door.request('POST', self.path, rpc(method, params, number),
                                 self.headers(method, params, headers),
                                 conn)

    def tool(self, name, number=1, meta=None, headers=None, **arguments):
        return self.request('tools/call', {'name': name, 'arguments': arguments}, number, meta,
                            headers)

    def call(self, name, within=DEADLINE, **arguments):
        reply = self.tool(name, **arguments)
        assert reply.status == 200, (reply.status, reply.body())
        got = reply.answer(within)
        reply.close()
        assert not got['result'].get('isError'), got
        return got['result']


class Sse:
    """A session of 2024-11-05 over HTTP+SSE."""

    def __init__(self, door, version='2024-11-05', path='/sse', receive_buffer=None, start=True):
        self.door, self.last_id = door, 0
        conn = Conn(door.address, receive_buffer)
        self.stream = door.request('GET', path, None, {'Accept': 'text/event-stream'}, conn)
        first = self.stream.event()
        assert first.event == 'endpoint', first
        self.endpoint = first.data
        if start:
            self.info = self.ask(hello(version))['result']
            self.post(rpc('notifications/initialized', number=None))

    def post(self, body, headers=None, door=None):
        reply = (door or self.door).request('POST', self.endpoint, body, headers)
        reply.body()
        reply.close()
        return reply

    def send(self, body):
        assert self.post(body).status == 202

    def next(self, timeout=DEADLINE):
        """The next message; None at the end of the stream."""
        got = self.stream.real_event(timeout)
        if got is None:
            return None
        assert got.event == 'message', got
        return got.message()

    def ask(self, body, timeout=DEADLINE):
        """The answer; what comes between is dropped."""
        self.send(body)
        deadline = time.monotonic() + timeout
        while True:
            got = self.next(deadline - time.monotonic())
            if got is None or got.get('id') == body['id'] and 'method' not in got:
                return got

    def request(self, method, params=None):
        self.last_id += 1
        return self.ask(rpc(method, params, self.last_id))

    def call(self, name, **arguments):
        got = self.request('tools/call', {'name': name, 'arguments': arguments})['result']
        assert not got.get('isError'), got
        return got

    def close(self):
        self.stream.close()
