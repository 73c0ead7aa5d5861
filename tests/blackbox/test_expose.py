"""Servers in sandboxes over /v1/sandboxes/{id}/expose/{port}: real ones, hostile ones, and clients
that try to hide something."""

import contextlib
import hashlib
import json
import threading

import pytest

import host
from client import until
from door import Closed, Reply
from rest import Rest, b64
from serving import run, serve
from test_door import frame as ws_frame

PORT = 8000
# Tells what it was asked, streams events, reads bodies, and speaks WebSockets back,
# by python3 alone.
APP = r'''
import base64, fcntl, hashlib, http.server, json, socket, socketserver, struct, sys, termios, time

class App(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def tell(self, status=200, body=b'', fields=()):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        if not any(name == 'Transfer-Encoding' for name, _ in fields):
            self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)

    def body(self):
        if self.headers.get('Transfer-Encoding') == 'chunked':
            data = b''
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get('Content-Length', 0)))

    def any(self):
        where = self.path.split('?')[0]
        if where == '/events':
            self.tell(fields=[('Content-Type', 'text/event-stream'),
                              ('Transfer-Encoding', 'chunked')])
            for line in sys.stdin:
                data = f'data: {line.strip()}\n\n'.encode()
                self.wfile.write(b'%x\r\n%s\r\n' % (len(data), data))
                self.wfile.flush()
            self.wfile.write(b'0\r\n\r\n')
        elif where == '/sum':
            body = self.body()
            self.tell(body=json.dumps([len(body), hashlib.sha256(body).hexdigest()]).encode())
        elif where == '/wait':
            self.tell(fields=[('Content-Type', 'text/event-stream'),
                              ('Transfer-Encoding', 'chunked')])
            self.wfile.flush()
            time.sleep(3600)
        elif where == '/big':
            self.tell(body=bytes(20000000))
        elif where == '/ws':
            self.websocket()
        elif where == '/sink':
            self.websocket()
            time.sleep(0.1)  # so that it is not all read before more comes
            self.sink()
        elif where == '/shreds':
            self.websocket()
            self.wfile.write(b'\x01\x01a' + b'\x00\x01a' * 5000)
            self.sink()
        elif where == '/stuck':
            self.websocket()
            self.wait_until_full()
            self.wfile.write(b'\x88\x02\x03\xe8')
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            time.sleep(3600)
        elif where == '/sunk':
            self.tell(body=json.dumps(sunk).encode())
        elif where == '/empty':
            self.tell(204)
        else:
            told = {'method': self.command, 'path': self.path,
                    'body': self.body().decode('latin-1'),
                    'fields': [[k.lower(), v] for k, v in self.headers.items()],
                    'from': self.client_address[0]}
            self.tell(body=json.dumps(told).encode(),
                      fields=[('Content-Type', 'application/json'), ('X-Own', 'yes')])

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = any

    def websocket(self):
        key = self.headers['Sec-WebSocket-Key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
        self.send_response_only(101)
        self.send_header('Upgrade', 'websocket')
        self.send_header('Connection', 'Upgrade')
        self.send_header('Sec-WebSocket-Accept',
                         base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        if 'b' in self.headers.get('Sec-WebSocket-Protocol', ''):
            self.send_header('Sec-WebSocket-Protocol', 'b')
        self.end_headers()
        if self.path.endswith('/ws'):
            self.echo()

    def frame(self):
        first, second = self.rfile.read(2)
        n = second & 127
        if n > 125:
            n = struct.unpack('>H' if n == 126 else '>Q', self.rfile.read(2 if n == 126 else 8))[0]
        mask, data = self.rfile.read(4), self.rfile.read(n)
        return first & 15, (int.from_bytes(data, 'big') ^ int.from_bytes(
            (mask * (n // 4 + 1))[:n], 'big')).to_bytes(n, 'big')

    def say(self, opcode, data):
        n = len(data)
        self.wfile.write(bytes([128 | opcode])
                         + (bytes([n]) if n < 126 else b'\x7e' + struct.pack('>H', n)) + data)

    def echo(self):
        while True:
            opcode, data = self.frame()
            if opcode in (1, 2):
                self.say(opcode, data)
            if data == b'flood':
                for _ in range(200):
                    self.say(2, bytes(60000))
            if data in (b'bye', b'flood'):
                self.say(8, struct.pack('>H', 4321))
            if opcode == 8 or data in (b'bye', b'flood'):
                return

    def wait_until_full(self):
        """Nothing more comes, as nothing is read."""
        had, same = 0, 0
        while same < 20:
            n = struct.unpack('i', fcntl.ioctl(self.connection, termios.FIONREAD, bytes(4)))[0]
            had, same = n, same + 1 if n and n == had else 0
            time.sleep(0.05)

    def sink(self):
        sunk.clear()
        opcode = n = 0
        while opcode != 8:
            opcode, data = self.frame()
            n += len(data) if opcode != 8 else 0
        sunk.extend([n, struct.unpack('>H', data)[0]])
        self.say(8, data)

sunk = []

class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

server = Server(('127.0.0.1', 8000), App)
print('ready', flush=True)
server.serve_forever()
'''


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    with Rest(me, tmp_path_factory.mktemp('expose'), '--listen', '127.0.0.1:0',
              '--pool', '1') as shared:
        yield shared
    before.check()


class App:
    def __init__(self, hub):
        self.hub = hub
        self.id = hub.create()
        hub.post('/v1/files/write', sandbox=self.id, path='app.py', content=APP)
        self.exec = run(hub, self.id, 'python3', ['-u', 'app.py'], stdin_open=True)

    def path(self, path, port=PORT):
        return f'/v1/sandboxes/{self.id}/expose/{port}{path}'

    def ask(self, path, method='GET', **options):
        return self.hub.raw(method, self.path(path), **options)

    def told(self, path, method='GET', **options):
        reply = self.ask(path, method, **options)
        assert reply.status == 200, reply
        return json.loads(reply.body)


@pytest.fixture(scope='module')
def app(hub):
    made = App(hub)
    yield made
    hub.delete(made.id)


def problem(reply, status, code):
    assert reply.status == status, reply
    error = json.loads(reply.body)['error']
    assert error['code'] == code and error['remediation'], reply
    return error['cause']


# ---- what goes over

@pytest.mark.parametrize('path, seen',
                         [('', '/'), ('/', '/'), ('/a/b', '/a/b'), ('/a%20b//c/', '/a%20b//c/'),
                          ('/?', '/'), ('/x?a=1&b=%2f+c&&d', '/x?a=1&b=%2f+c&&d'),
                          ('/x?a==b&c=', '/x?a==b&c=')])
def test_paths(app, path, seen):
    assert app.told(path)['path'] == seen


@pytest.mark.parametrize('method', ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
def test_methods(app, method):
    told = app.told('/x', method, body='hello' if method in ('POST', 'PUT', 'PATCH') else None)
    assert told['method'] == method and told['from'] == '127.0.0.1'
    assert told['body'] == ('hello' if method in ('POST', 'PUT', 'PATCH') else '')


def test_head_and_no_body(app):
    reply = app.ask('/x', 'HEAD')
    assert reply.status == 200 and reply.get('X-Own') == 'yes' and reply.body == b''
    assert app.ask('/empty').status == 204


def test_what_the_server_is_told(hub, app):
    """Nothing of the client's that is the hub's, and nothing of one connection."""
    fields = dict(app.told('/', fields=[
        'Cookie: hub=secret', 'X-Mine: 1', 'Accept: text/html', 'Connection: close, X-Hop',
        'X-Hop: 1', 'Proxy-Authorization: Basic x', 'TE: trailers', 'Keep-Alive: 5',
        'X-Forwarded-For: 1.2.3.4', 'Forwarded: for=1.2.3.4',
        'Referer: http://localhost/?token=x'])['fields'])
    assert fields.pop('x-mine') == '1' and fields.pop('accept') == 'text/html'
    assert fields.pop('host') == f'localhost:{PORT}' and fields.pop('connection') == 'close'
    assert fields.pop('x-forwarded-host') and fields.pop('x-forwarded-proto') == 'http'
    assert fields.pop('x-forwarded-prefix') == app.path('')
    assert fields == {}
    fields = dict(app.told('/', fields=['Origin: http://localhost'])['fields'])
    assert fields['origin'] == f'http://localhost:{PORT}'
    assert hub.token not in json.dumps(fields)


@pytest.mark.parametrize('chunked', [False, True])
def test_bodies(hub, app, chunked):
    body = bytes(range(256)) * 12000  # 3 MB
    with hub.wire() as wire:
        if chunked:
            wire.send(hub.request('POST', app.path('/sum'), fields=['Transfer-Encoding: chunked']))
            for at in range(0, len(body), 100000):
                piece = body[at:at + 100000]
                wire.send(b'%x\r\n%s\r\n' % (len(piece), piece))
            wire.send(b'0\r\n\r\n')
        else:
            wire.send(hub.request('POST', app.path('/sum'),
                                  fields=[f'Content-Length: {len(body)}']).encode() + body)
        reply = wire.reply('POST')
    assert json.loads(reply.body) == [len(body), hashlib.sha256(body).hexdigest()]


def test_a_large_answer_and_a_slow_reader(hub, app):
    with hub.wire(receive_buffer=4096) as wire:
        wire.send(hub.request('GET', app.path('/big')))
        status, _ = wire.head()
        assert status == 200 and hub.exec(app.id, 'true')['exit_code'] == 0  # others go on
        assert sum(map(len, iter(wire.chunk, b''))) == 20000000


def test_events_as_they_come(hub, app):
    """Each before the next is made; the client's end is the server's."""
    def say(text):
        hub.post(f'/v1/sandboxes/{app.id}/execs/{app.exec}/stdin', data=text + '\n')
    with hub.wire() as wire:
        wire.send(hub.request('GET', app.path('/events')))
        status, fields = wire.head()
        assert status == 200 and Reply(status, fields,
                                       b'').get('Content-Type') == 'text/event-stream'
        for text in ('one', 'two', 'three'):
            say(text)
            assert wire.chunk() == f'data: {text}\n\n'.encode()
    say('for nobody')
    assert app.told('/')['method'] == 'GET'


# ---- WebSockets

def heard(wire):
    first, n = wire.exactly(2)
    if n == 126:
        n = int.from_bytes(wire.exactly(2), 'big')
    return first, wire.exactly(n)


def upgrade(hub, app, path='/ws', fields=(), **options):
    wire = hub.wire(**options)
    wire.send(hub.request('GET', app.path(path), fields=[
        'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13',
       'Sec-WebSocket-Key: ' + b64(bytes(16)), *fields]))
    return wire, wire.reply()


def test_a_websocket(hub, app):
    wire, reply = upgrade(hub, app, fields=['Sec-WebSocket-Protocol: a, b',
                                            'Sec-WebSocket-Extensions: permessage-deflate'])
    with wire:
        assert (reply.status == 101 and reply.get('Sec-WebSocket-Protocol') == 'b'
                and not reply.get('Sec-WebSocket-Extensions'))
        for opcode, data in ((1, b'hello'), (2, bytes(range(256)) * 200)):
            wire.send(ws_frame(opcode, data))
            assert heard(wire) == (128 | opcode, data)
        wire.send(ws_frame(1, b'bye'))
        assert heard(wire)[1] == b'bye'
        assert heard(wire) == (0x88, (4321).to_bytes(2, 'big'))
    wire, reply = upgrade(hub, app)
    with wire:
        assert reply.status == 101 and reply.get('Sec-WebSocket-Protocol') is None
        wire.send(ws_frame(1, b'again'))
        assert heard(wire)[1] == b'again'


def test_all_that_was_said_before_the_end(hub, app):
    """Whoever closes first, and however slow the other is."""
    wire, reply = upgrade(hub, app, receive_buffer=4096)
    with wire:
        assert reply.status == 101
        wire.send(ws_frame(1, b'flood'))
        assert heard(wire) == (0x81, b'flood')
        assert [heard(wire) == (0x82, bytes(60000)) for _ in range(200)] == [True] * 200
        assert heard(wire) == (0x88, (4321).to_bytes(2, 'big'))
    wire, reply = upgrade(hub, app, '/sink')
    with wire:
        assert reply.status == 101
        wire.send(ws_frame(2, bytes(60000)) * 100 + ws_frame(8, (4000).to_bytes(2, 'big')))
        assert heard(wire) == (0x88, (4000).to_bytes(2, 'big'))
    until(lambda: json.loads(app.ask('/sunk').body) == [6000000, 4000], what='all of it')


def test_a_message_in_shreds(hub, app):
    """Each frame costs a hundred times what it carries: a message may have a thousand,
    from either side."""
    def shreds(n):
        return ws_frame(1, b'a', final=False) + ws_frame(0, b'a', final=False) * n
    wire, reply = upgrade(hub, app)
    with wire:
        wire.send(shreds(1000) + ws_frame(0, b'a'))
        assert heard(wire) == (0x81, b'a' * 1002)
        wire.send(shreds(1100))
        assert heard(wire) == (0x88, (1009).to_bytes(2, 'big'))
    wire, reply = upgrade(hub, app, '/shreds')
    with wire:
        assert reply.status == 101 and heard(wire)[0] == 0x88


def test_a_server_that_closes_and_never_reads(hub, app):
    """What still waits for it is for nobody."""
    wire, reply = upgrade(hub, app, '/stuck')
    with wire:
        assert reply.status == 101

        def flood():
            with contextlib.suppress(OSError):
                for _ in range(2000):
                    wire.send(ws_frame(2, bytes(60000)))
        sender = threading.Thread(target=flood)
        sender.start()
        assert heard(wire)[0] == 0x88
    sender.join()


def test_no_websocket(hub, app):
    wire, reply = upgrade(hub, app, '/')
    with wire:
        assert 'answers 200' in problem(reply, 502, 'port_failed')


def test_a_websocket_ends_with_its_sandbox(hub):
    app = App(hub)
    wire, reply = upgrade(hub, app)
    with wire:
        assert reply.status == 101
        hub.delete(app.id)
        assert heard(wire)[0] == 0x88


def test_an_answer_ends_with_its_sandbox(hub):
    """Also where nobody reads it, and so nobody hears of the server's end."""
    app = App(hub)
    with hub.wire(receive_buffer=4096) as slow, hub.wire() as waiting:
        slow.send(hub.request('GET', app.path('/big')))
        assert slow.head()[0] == 200
        waiting.send(hub.request('GET', app.path('/wait')))
        assert waiting.head()[0] == 200
        hub.post(f'/v1/sandboxes/{app.id}/stop')
        for wire in (slow, waiting):
            with pytest.raises(Closed):
                while wire.chunk():
                    pass
    hub.delete(app.id)


# ---- who may not

@pytest.mark.parametrize('options', [{'token': None}, {'token': 'wrong'}, {'host': 'evil.example'},
                                     {'fields': ['Origin: http://evil.example']},
                                     {'fields': ['Origin: null']}])
def test_the_door_is_before_it(hub, app, options):
    reply = until(lambda: (r := hub.raw('GET', app.path('/x'), **options)).status != 429 and r,
                  what='a refusal')
    assert reply.status in (401, 403), reply
    assert app.told('/x')['method'] == 'GET'  # the control


@pytest.mark.parametrize('port', ['0', '65536', '-1', '08000', 'x', '8000x', '99999999', '%38000',
                                  '{port}'])
def test_no_ports(hub, app, port):
    problem(hub.raw('GET', f'/v1/sandboxes/{app.id}/expose/{port}/'), 400, 'invalid_input')


def test_what_is_not_there(hub, app):
    problem(hub.raw('GET', f'/v1/sandboxes/nobody/expose/{PORT}/'), 404, 'not_found')
    assert 'port 8001' in problem(hub.raw('GET', app.path('/', 8001)), 502, 'port_failed')


def test_paused(hub):
    app = App(hub)
    hub.post('/v1/pause', sandbox=app.id)
    problem(app.ask('/'), 409, 'conflict')
    hub.post('/v1/resume', sandbox=app.id)
    assert app.told('/')['method'] == 'GET'
    hub.delete(app.id)


@pytest.mark.parametrize('head', [
    'GET {}/../../../../../healthz HTTP/1.1\r\n', 'GET {}/%2e%2e/x HTTP/1.1\r\n',
    'GET {}/a\\b HTTP/1.1\r\n', 'GET {}/ /x HTTP/1.1\r\n', 'GET {}/\x01 HTTP/1.1\r\n',
    'POST {}/ HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n',
    'POST {}/ HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n',
    'POST {}/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n',
    'GET {}/ HTTP/1.1\r\nX: a\r\n b\r\n', 'GET {}/ HTTP/1.1\r\nX : a\r\n'])
def test_nothing_is_smuggled(hub, app, head):
    """What two readers could take for two things is refused, and never reaches the server."""
    with hub.wire() as wire:
        wire.send(head.format(app.path(''))
                  + f'Host: localhost\r\nAuthorization: Bearer {hub.token}\r\n\r\nhello')
        assert wire.head()[0] == 400


def test_one_connection_each(hub, app):
    """Two requests of one client are two connections to the server;
    what one leaves there is nobody's answer."""
    with hub.wire() as wire:
        wire.send(hub.request('GET', app.path('/1')) + hub.request('GET', app.path('/2')))
        assert [json.loads(wire.reply().body)['path'] for _ in range(2)] == ['/1', '/2']


# ---- hostile servers

def says(hub, box, said, path='/', method='GET', **options):
    """The reply to a request whose server says these bytes."""
    hub.post('/v1/files/write', sandbox=box, path='said', encoding='base64', content=b64(said))
    return hub.raw(method, f'/v1/sandboxes/{box}/expose/9000{path}', **options)


@pytest.fixture(scope='module')
def liar(hub):
    box = hub.create()
    hub.post('/v1/files/write', sandbox=box, path='said', content='')
    serve(hub, box, 'say', 9000, 'said')
    yield box
    hub.delete(box)


OK = b'HTTP/1.1 200 OK\r\n'


@pytest.mark.parametrize('said', [
    b'', b'\r\n\r\n', b'hello', b'HTTP/1.1 200 OK\n\n', b'HTTP/2 200 OK\r\n\r\n',
    b'HTTP/1.1 099 X\r\n\r\n', b'HTTP/1.1 2000\r\n\r\n',
    b'HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nfree', b'HTTP/1.1 600 X\r\n\r\n',
    b'HTTP/1.1 200 O\x00K\r\n\r\n', OK + b'No colon\r\n\r\n', OK + b'A b: c\r\n\r\n',
    OK + b': c\r\n\r\n', OK + b'A: b\r\n c\r\n\r\n', OK + b'A: b\rc\r\n\r\n',
    OK + b'A: b\nSet-Cookie: c\r\n\r\n',
    OK + b'A: \x00\r\n\r\n', OK + b'Content-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    OK + b'Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    OK + b'Content-Length: -1\r\n\r\n', OK + b'Content-Length: 1, 1\r\n\r\na',
    OK + b'Content-Length: 99999999999999999999\r\n\r\n', OK + b'Transfer-Encoding: gzip, '
    b'chunked\r\n\r\n0\r\n\r\n', b'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    OK + b'A: b\r\n' * 101 + b'\r\n', OK + b'A: ' + b'x' * 40000 + b'\r\n\r\n',
    OK + b'A: ' + b'x' * 20000 + b'\r\n\r\n', b'HTTP/1.1 100 Continue\r\n\r\n' * 3,
    b'HTTP/1.1 102 Processing\r\n\r\n' * 1000 + OK + b'\r\n',
], ids=lambda said: repr(said[:40]))
def test_answers_that_are_none(hub, liar, said):
    problem(says(hub, liar, said), 502, 'port_failed')


@pytest.mark.parametrize('said', [
    b'Content-Length: 5\r\n\r\nab', b'Transfer-Encoding: chunked\r\n\r\n5\r\nab',
    b'Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n', b'Transfer-Encoding: chunked\r\n\r\n2\r\nabc',
    b'Transfer-Encoding: chunked\r\n\r\nx\r\n', b'Transfer-Encoding: chunked\r\n\r\n\r\n',
    b'Transfer-Encoding: chunked\r\n\r\n-1\r\n', b'Transfer-Encoding: chunked\r\n\r\n0x2\r\nab\r\n',
    b'Transfer-Encoding: chunked\r\n\r\n2\nab\r\n', b'Transfer-Encoding: '
    b'chunked\r\n\r\n1111111111111111\r\nab', b'Transfer-Encoding: chunked\r\n\r\n2;' + b'x' * 9000,
    b'Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\r\n'], ids=lambda said: repr(said[-30:]))
def test_bodies_without_an_end(hub, liar, said):
    """Nobody takes what came for all of it."""
    hub.post('/v1/files/write', sandbox=liar, path='said', encoding='base64',
             content=b64(OK + said))
    with hub.wire() as wire:
        wire.send(hub.request('GET', f'/v1/sandboxes/{liar}/expose/9000/'))
        assert wire.head()[0] == 200
        with pytest.raises(Closed):
            while wire.chunk():
                pass


@pytest.mark.parametrize('said, body', [
    (b'HTTP/1.0 200\r\n\r\nto the end', b'to the end'),
    (OK + b'Content-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\n\r\n', b'ab'),
    (b'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n' + OK
     + b'Content-Length: 2\r\n\r\nab', b'ab'),
    (OK + b'Transfer-Encoding: Chunked\r\n\r\n2;x=y\r\nab\r\n01\r\nc\r\n0\r\nSet-Cookie: '
     b'x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n', b'abc')], ids=range(4))
def test_answers_that_are_right(hub, liar, said, body):
    """What stands behind them is heard by nobody."""
    reply = says(hub, liar, said)
    assert ((reply.status, reply.body) == (200, body) and reply.get('Set-Cookie') is None
            and reply.get('Link') is None)


@pytest.mark.parametrize('asked, said, status',
                         [(7000, 100, 200), (100, 7000, 200), (7000, 7000, 502)])
def test_large_heads(hub, liar, asked, said, status):
    """Where there is no room for what the server says, the client hears that."""
    assert says(hub, liar, OK + b'A: ' + b'x' * said + b'\r\n\r\n',
                fields=['B: ' + 'x' * asked]).status == status


KEPT = {'X-Own': 'a', 'Content-Type': 'text/html', 'ETag': '"x"', 'Cache-Control': 'no-store'}
DROPPED = ['Set-Cookie', 'Set-Cookie2', 'Clear-Site-Data', 'Strict-Transport-Security', 'Alt-Svc',
           'Access-Control-Allow-Origin', 'Access-Control-Allow-Credentials',
           'Service-Worker-Allowed', 'WWW-Authenticate', 'Proxy-Authenticate', 'NEL', 'Report-To',
           'Reporting-Endpoints', 'Refresh', 'Link', 'Keep-Alive', 'Upgrade', 'Trailer', 'X-Hop',
           'Content-Location', 'Public-Key-Pins']


def test_a_page_is_nobody(hub, liar):
    """It has the hub's origin, so it may run nothing,
    set nothing and say nothing of that origin."""
    fields = [f'{k}: {v}' for k, v in KEPT.items()] + [f'{name}: x' for name in DROPPED]
    fields += ['Connection: X-Hop',
               'Content-Security-Policy: sandbox allow-same-origin allow-scripts',
               'X-Content-Type-Options: x', 'Cross-Origin-Resource-Policy: cross-origin']
    reply = says(hub, liar, OK + '\r\n'.join(fields).encode() + b'\r\n\r\n<script>1</script>')
    assert reply.status == 200 and reply.body == b'<script>1</script>'
    assert {k: reply.get(k) for k in KEPT} == KEPT
    assert [name for name in DROPPED if reply.all(name)] == []
    assert (reply.get('Content-Security-Policy').startswith('sandbox;')
            and 'allow' not in reply.get('Content-Security-Policy'))
    assert (reply.get('X-Content-Type-Options') == 'nosniff'
            and reply.get('Cross-Origin-Resource-Policy') == 'same-origin')


@pytest.mark.parametrize('to, leads', [
    ('/x', '/x'), ('/x?a=1#b', '/x?a=1#b'), ('http://localhost:9000/x', '/x'),
    ('http://127.0.0.1:9000', '/'), ('/', '/'), ('http://localhost:5757/v1/health', None),
    ('//evil.example/', None), ('https://evil.example/', None), ('/../../../x', None),
    ('/a/%2e%2E/%2e./x', None), ('/a/..', None), ('../x', None), ('x', None), ('', None),
    ('/\\evil.example', None), ('/\t/evil.example', None), ('\\\\evil.example', None),
    ('/\xe9', None), ('http://localhost:9000@evil.example/', None),
    ('http://localhost:90001/', None), ('javascript:1', None), ('/%zz', None)])
def test_where_it_sends_its_clients(hub, liar, to, leads):
    """Below its own route: a client that follows sends the token along."""
    reply = says(hub, liar, b'HTTP/1.1 307 T\r\nContent-Length: 0\r\nLocation: '
                 + to.encode('latin-1') + b'\r\n\r\n')
    assert reply.status == 307
    assert reply.get('Location') == (None if leads is None
                                     else f'/v1/sandboxes/{liar}/expose/9000{leads}')


def test_a_silent_server_holds_nobody_else(hub, liar):
    """It has connections for so many clients, and no more; their going makes room."""
    serve(hub, liar, 'hold', 9001)
    wires = [hub.wire() for _ in range(64)]
    for wire in wires:
        wire.send(hub.request('GET', f'/v1/sandboxes/{liar}/expose/9001/'))

    def full():
        reply = says(hub, liar, OK + b'\r\n')
        return reply.status == 429 and reply
    until(full, what='no more than so many')
    assert hub.exec(liar, 'true')['exit_code'] == 0
    for wire in wires:
        wire.close()
    until(lambda: says(hub, liar, OK + b'\r\n').status == 200, what='room')


def memory(hub):
    with open(f'/proc/{hub.proc.pid}/status', encoding='ascii') as f:
        return next(int(line.split()[1]) for line in f if line.startswith('VmRSS')) * 1024


def test_a_flood_is_held(hub, liar):
    """A server that never ends, to a client that does not read: nobody keeps it."""
    hub.exec(liar, '(printf "HTTP/1.1 200 OK\\r\\n\\r\\n"; head -c 60000000 /dev/zero) > said')
    with hub.wire(receive_buffer=4096) as wire:
        before = memory(hub)
        wire.send(hub.request('GET', f'/v1/sandboxes/{liar}/expose/9000/'))
        assert wire.head()[0] == 200
        for _ in range(20):
            assert hub.exec(liar, 'true')['exit_code'] == 0
        assert memory(hub) - before < 20 << 20


def test_at_once(hub, app):
    found = []

    def one(i):
        found.append(app.told(f'/{i}')['path'])
    threads = [threading.Thread(target=one, args=[i]) for i in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(f'/{i}' for i in range(32))


def test_it_is_counted(hub, app):
    before = hub.call('GET', f'/v1/sandboxes/{app.id}/usage')['bytes_out']
    assert len(app.ask('/big').body) == 20000000
    until(lambda: hub.call('GET', f'/v1/sandboxes/{app.id}/usage')['bytes_out'] >= before
          + 20000000, what='it is counted')


def test_many_small_messages(hub, app):
    """Neither side is taken for slow because it is fast."""
    wire, reply = upgrade(hub, app)
    with wire:
        assert reply.status == 101
        got = []
        reader = threading.Thread(target=lambda: [got.append(heard(wire)) for _ in range(20000)])
        reader.start()
        wire.send(ws_frame(1, b'x') * 20000)
        reader.join()
    assert got == [(0x81, b'x')] * 20000
