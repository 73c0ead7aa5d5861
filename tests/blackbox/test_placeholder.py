"""Placeholder secrets at holt-egress, with the test as its hub: the server sees the value, and the
client inside never does, whatever the server says. Real sandboxes and programs are in
test_placeholder_programs.py."""

import base64
import contextlib
import json
import os
import re
import ssl
import urllib.parse

import pytest

from egress import (DENIED, MISPLACED, OTHER_IP, USED, WEB_IP, HttpRule, Peer, Proxy, Refused,
                    World)

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason='needs root: it makes network namespaces')

VALUE = 'ghp_S3cr3t/va+lue"of<web>&\\42='
OTHER_VALUE = 'another-value-of-another-host'
MARK, OTHER_MARK = 'holt-secret-0123456789abcdef01', 'holt-secret-fedcba987654321001'
FOREIGN = 'holt-secret-00000000000000000f'  # another sandbox's
BOUND, FREE = ('127.1.0.1', 443), ('127.1.0.2', 443)


class Server:
    """HTTP/1.1 that keeps what it got, and answers by the path."""

    def __init__(self):
        self.heads = []

    def __call__(self, connection):
        data = b''
        while True:
            while b'\r\n\r\n' not in data:
                piece = connection.recv(65536)
                if not piece:
                    return
                data += piece
            head, _, data = data.partition(b'\r\n\r\n')
            self.heads.append(head)
            fields = dict(line.lower().split(b': ', 1) for line in head.split(b'\r\n')[1:])
            n = int(fields.get(b'content-length', 0))
            while len(data) < n:
                data += connection.recv(65536)
            body, data = data[:n], data[n:]
            if not self.answer(connection, head, body):
                return

    def answer(self, connection, head, body):
        path = head.split(b' ')[1].split(b'?')[0]
        text = head + b'\n' + body
        if path == b'/forms':
            text = b'\n'.join(form.encode() for form in forms(VALUE)) + b'\n'
        elif path == b'/large':
            text = (b'x' * 5000 + VALUE.encode()) * 40
        if path in (b'/chunked', b'/large'):
            connection.sendall(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
            step = 7 if path == b'/chunked' else 4999
            for at in range(0, len(text), step):
                piece = text[at:at + step]
                connection.sendall(b'%x\r\n%s\r\n' % (len(piece), piece))
            connection.sendall(b'0\r\n\r\n')
        elif path == b'/end':
            connection.sendall(b'HTTP/1.0 200 OK\r\n\r\n' + text)
            connection.unwrap()
            return False
        elif path in RAW_ANSWERS:
            raw = RAW_ANSWERS[path]
            for at in range(0, len(raw), step := 1 if b'?slow' in head else len(raw)):
                connection.sendall(raw[at:at + step])
            return path not in (b'/cut', b'/close')
        else:
            echo = next((line for line in head.split(b'\r\n') if b'uthorization' in line), b'')
            connection.sendall(b'HTTP/1.1 200 OK\r\nX-Echo: %s\r\nContent-Length: %d\r\n\r\n'
                               % (echo, len(text)) + text)
        return True


OK_CHUNKS = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
RAW_ANSWERS = {
    b'/gzip': b'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc',
    b'/two-lengths': b'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc',
    b'/both': b'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n'
              b'0\r\n\r\n',
    b'/coding': b'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    b'/folded': b'HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n',
    b'/feeds': b'HTTP/1.1 200 OK\nContent-Length: 0\n\n',
    b'/upgrade': b'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n',
    b'/cut': b'HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\nabc',
    b'/empty': b'HTTP/1.1 204 No Content\r\n\r\n',
    # what RFC 9112 lets a server say, and what servers say besides
    b'/extension': OK_CHUNKS + b'3;x="%s"\r\nabc\r\n2 ;y\r\nde\r\n0;z\r\n\r\n' % VALUE.encode(),
    b'/trailer': OK_CHUNKS + b'5\r\nabcde\r\n0\r\nX-Key: %s\r\nY: 2\r\n\r\n' % VALUE.encode(),
    b'/behind': b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde%s' % VALUE.encode(),
    b'/204': b'HTTP/1.1 204 No Content\r\n\r\nabcde',
    b'/304': b'HTTP/1.1 304 Not Modified\r\n\r\nabcde',
    b'/close': b'HTTP/1.0 200 OK\r\n\r\nabcde',
    b'/bad-chunk': OK_CHUNKS + b'3\r\nabcX\r\n0\r\n\r\n',
    b'/no-size': OK_CHUNKS + b';x\r\nabc\r\n0\r\n\r\n',
    b'/long-extension': OK_CHUNKS + b'3;' + b'x' * 9000 + b'\r\nabc\r\n0\r\n\r\n',
    b'/hints': b'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n'
               b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
}


def forms(value):
    """How a server may give a value back."""
    yield value
    yield json.dumps(value)
    yield json.dumps(value).replace('/', '\\/')
    yield json.dumps(value).replace('<', '\\u003c').replace('>', '\\u003e').replace('&', '\\u0026')
    yield urllib.parse.quote(value, safe='')
    yield urllib.parse.quote(value, safe="!'()*")
    for before in ('', 'a', 'ab', 'user:'):
        yield base64.b64encode((before + value).encode()).decode()
        yield base64.urlsafe_b64encode((before + value + 'x').encode()).decode()


def shows(text, value=VALUE):
    """Whether a part of the value can be read in the text, in any form."""
    if any(form.encode().strip(b'="')[6:-6] in text for form in forms(value)):
        return True
    for word in set(re.findall(rb'[A-Za-z0-9+/_-]{12,}', text)):
        word = word.translate(bytes.maketrans(b'-_', b'+/'))
        for at in range(4):
            raw = base64.b64decode(word[at:at + (len(word) - at) // 4 * 4])
            if value[6:12].encode() in raw:
                return True
    return False


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    w = World(str(tmp_path_factory.mktemp('placeholder')))
    w.zone.update({'web.example': [WEB_IP], 'other.example': [OTHER_IP],
                   'wrong.example': [OTHER_IP], 'a.wild.example': [WEB_IP]})
    w.web, w.other = Server(), Server()
    w.serve(w.web, WEB_IP, 443, tls=True)
    w.serve(w.web, WEB_IP, 80)
    w.serve(w.other, OTHER_IP, 443, tls=True)
    with open(w.ca, 'rb') as f:
        w.pem = f.read()
    yield w
    w.close()


@pytest.fixture(scope='module')
def proxy(world):
    p = Proxy(world)
    p.allow('web.example:443', 'other.example:443', 'wrong.example:443', 'web.example:80')
    bind(p)
    yield p
    p.close()


def bind(p, plain=False):
    p.bind(('web-token', MARK, VALUE.encode(), ['web.example:443', '*.wild.example:443'],
            p.world.pem, plain),
           ('other-token', OTHER_MARK, OTHER_VALUE.encode(), ['wrong.example:443'],
            p.world.pem, False))


@pytest.fixture(autouse=True)
def forget(world, proxy):
    world.web.heads.clear()
    world.other.heads.clear()
    proxy.events.clear()


def tls(world, to, name, trust=None, alpn=None):
    peer = Peer(world, *to)
    context = ssl.create_default_context(cafile=trust or world.own_ca)
    if alpn:
        context.set_alpn_protocols(alpn)
    peer.s = context.wrap_socket(peer.s, server_hostname=name)
    return peer


def request(path='/', fields='', method='GET', body='', host='web.example'):
    length = f'Content-Length: {len(body)}\r\n' if body else ''
    return f'{method} {path} HTTP/1.1\r\nHost: {host}\r\n{fields}{length}\r\n{body}'.encode()


def take(peer):
    """One answer of a connection that is kept: its head and its body, without chunks."""
    data = b''
    while b'\r\n\r\n' not in data:
        piece = peer.read()
        assert piece, data
        data += piece
    head, _, body = data.partition(b'\r\n\r\n')
    low = head.lower()
    if b'transfer-encoding: chunked' in low:
        while not body.endswith(b'0\r\n\r\n'):
            body += peer.read()
        whole = b''
        while body:
            size, _, body = body.partition(b'\r\n')
            n = int(size, 16)
            whole, body = whole + body[:n], body[n + 2:]
        return head, whole
    n = int(low.split(b'content-length: ')[1].split(b'\r\n')[0]) if b'content-length' in low else 0
    while len(body) < n:
        piece = peer.read()
        assert piece, (head, body)
        body += piece
    assert len(body) == n, body
    return head, body


def ask(world, data, to=BOUND, name='web.example', **more):
    with tls(world, to, name, **more) as peer:
        peer.send(data)
        return take(peer)


# ---- the way there -------------------------------------------------------------------------------

def test_the_server_sees_the_value(world, proxy):
    head, body = ask(world, request(fields=f'Authorization: Bearer {MARK}\r\nX-Key: a{MARK}b\r\n'))
    assert f'Authorization: Bearer {VALUE}'.encode() in world.web.heads[0]
    assert f'X-Key: a{VALUE}b'.encode() in world.web.heads[0]
    assert b'Accept-Encoding: identity' in world.web.heads[0]
    assert not shows(head) and not shows(body)
    assert f'X-Echo: Authorization: Bearer {MARK}'.encode() in head and MARK.encode() in body
    event = proxy.wait_event(USED)
    assert event.secret == b'web-token' and event.host == b'web.example'


def test_basic(world, proxy):
    text = base64.b64encode(f'user:{MARK}'.encode()).decode()
    head, body = ask(world, request(fields=f'authorization: basic {text}\r\n'))
    sent = world.web.heads[0].split(b'asic ')[1].split(b'\r\n')[0]
    assert base64.b64decode(sent).decode() == f'user:{VALUE}'
    assert not shows(head) and not shows(body)


def test_kept_connection(world, proxy):
    """Each request by itself, also where the next one comes before the answer."""
    one = request(fields=f'X-Key: {MARK}\r\n')
    with tls(world, BOUND, 'web.example') as peer:
        for _ in range(3):
            peer.send(one)
            assert MARK.encode() in take(peer)[1]
        peer.send(one + request('/two'))
        assert MARK.encode() in take(peer)[1]
        assert b'/two' in take(peer)[1]
    assert len(world.web.heads) == 5
    assert [VALUE.encode() in h for h in world.web.heads] == [True] * 4 + [False]


def test_not_in_bodies_and_targets(world, proxy):
    ask(world, request(f'/?k={MARK}', method='POST', body=f'token={MARK}'))
    assert MARK.encode() in world.web.heads[0] and VALUE.encode() not in world.web.heads[0]
    event = proxy.wait_event(MISPLACED)
    assert event.secret == b'web-token'
    assert not [e for e in proxy.events if e.what == USED and e.flow == event.flow]


def test_elsewhere_it_is_only_a_text(world, proxy):
    """To a host that is not bound TLS passes untouched: the client needs the real certificate."""
    fields = f'Authorization: Bearer {MARK}\r\n'
    with pytest.raises(ssl.SSLError):
        ask(world, request(host='other.example'), FREE, 'other.example')
    ask(world, request(fields=fields, host='other.example'), FREE, 'other.example',
        trust=world.ca)
    assert MARK.encode() in world.other.heads[0] and VALUE.encode() not in world.other.heads[0]


def test_a_secret_is_for_its_host_alone(world, proxy):
    ask(world, request(fields=f'X-A: {OTHER_MARK}\r\nX-B: {FOREIGN}\r\n'))
    assert OTHER_MARK.encode() in world.web.heads[0] and FOREIGN.encode() in world.web.heads[0]
    assert OTHER_VALUE.encode() not in world.web.heads[0]
    assert proxy.wait_event(MISPLACED).secret == b'other-token'


def test_never_without_tls(world, proxy):
    with Peer(world, '127.1.0.1', 80) as peer:
        peer.send(request(fields=f'X-Key: {MARK}\r\n'))
        take(peer)
    assert MARK.encode() in world.web.heads[0] and VALUE.encode() not in world.web.heads[0]
    assert proxy.wait_event(MISPLACED)


def test_without_tls_where_the_operator_says_so(world, proxy):
    bind(proxy, plain=True)
    with Peer(world, '127.1.0.1', 80) as peer:
        peer.send(request(fields=f'X-Key: {MARK}\r\n'))
        head, body = take(peer)
        peer.send(request('/two'))
        assert b'/two' in take(peer)[1]
    with Peer(world, '127.0.0.1', 3128) as peer:
        peer.send(request('http://web.example/', f'X-Key: {MARK}\r\n'))
        assert MARK.encode() in take(peer)[1]
    bind(proxy)
    assert VALUE.encode() in world.web.heads[0] and VALUE.encode() in world.web.heads[2]
    assert not shows(body) and MARK.encode() in body


def test_by_the_explicit_proxy(world, proxy):
    with Peer(world, '127.0.0.1', 3128) as peer:
        peer.send(b'CONNECT web.example:443 HTTP/1.1\r\nHost: web.example:443\r\n\r\n')
        assert b' 200 ' in peer.read()
        peer.s = ssl.create_default_context(cafile=world.own_ca).wrap_socket(
            peer.s, server_hostname='web.example')
        peer.send(request(fields=f'X-Key: {MARK}\r\n'))
        take(peer)
    assert VALUE.encode() in world.web.heads[0]


def test_only_http_1(world, proxy):
    with tls(world, BOUND, 'web.example', alpn=['h2', 'http/1.1']) as peer:
        assert peer.s.selected_alpn_protocol() == 'http/1.1'
    with pytest.raises((ssl.SSLError, ConnectionError)):
        tls(world, BOUND, 'web.example', alpn=['h2'])
    with pytest.raises(ssl.SSLError):  # nobody else's authority is trusted by the client
        tls(world, BOUND, 'web.example', trust=world.ca)


# ---- who the server is ---------------------------------------------------------------------------

@pytest.mark.parametrize('what', ['name', 'issuer'])
def test_a_wrong_server_gets_nothing(world, proxy, what):
    """The certificate is of another host, or by nobody whom the operator trusts."""
    if what == 'issuer':
        proxy.bind(('other-token', OTHER_MARK, OTHER_VALUE.encode(), ['other.example:443'], b'',
                    False))
        name, to = 'other.example', FREE
    else:
        name, to = 'wrong.example', ('127.1.0.3', 443)
    head, body = ask(world, request(fields=f'X-Key: {OTHER_MARK}\r\n', host=name), to, name)
    bind(proxy)
    assert b' 502 ' in head and b'Holt-Reason: bad_certificate' in head, (head, body)
    assert proxy.wait_event(DENIED, 'bad_certificate', name)
    assert not world.other.heads


# ---- the way back --------------------------------------------------------------------------------

def test_the_search_finds_values():
    """The control of all tests below."""
    assert all(shows(b'x' + form.encode() + b'y') for form in forms(VALUE))
    assert not shows(MARK.encode() * 3)


@pytest.mark.parametrize('path', ['/', '/chunked', '/end', '/forms', '/large'])
def test_echoes(world, proxy, path):
    """However it comes, in whatever pieces, the value is a placeholder again."""
    with tls(world, BOUND, 'web.example') as peer:
        peer.send(request(path, f'Authorization: Bearer {MARK}\r\n'))
        head, body = take(peer)
    assert VALUE.encode() in world.web.heads[0]
    assert not shows(head) and not shows(body), body
    assert body.count(MARK.encode()) >= {'/forms': 14, '/large': 40}.get(path, 1)
    if path == '/large':
        assert body == (b'x' * 5000 + MARK.encode()) * 40


def test_a_sound_answer_stays_as_it_is(world, proxy):
    with tls(world, BOUND, 'web.example') as peer:
        peer.send(request('/empty') + request('/hints') + request(method='HEAD'))
        assert b' 204 ' in take(peer)[0]
        head, body = take(peer)
        if b' 103 ' in head:
            head, body = take(peer)
        assert b' 200 ' in head and body == b'ok'


@pytest.mark.parametrize('pace', ['', '?slow'])
@pytest.mark.parametrize('path', ['/extension', '/trailer', '/behind', '/204', '/304'])
def test_an_odd_answer_is_put_right(world, proxy, path, pace):
    """What a client would pass over goes no further, with all that is in it."""
    with tls(world, BOUND, 'web.example') as peer:
        peer.send(request(path + pace, f'X-Key: {MARK}\r\n'))
        head, body = take(peer)
        assert body == (b'' if path in ('/204', '/304') else b'abcde'), (head, body)
        assert not shows(head) and not shows(body)


@pytest.mark.parametrize('pace', ['', '?slow'])
def test_an_answer_that_is_cut_off_is_passed_on_as_that(world, proxy, pace):
    """All that came, and no end: so would the client see it without a proxy."""
    got = b''
    with tls(world, BOUND, 'web.example') as peer:
        peer.send(request('/close' + pace, f'X-Key: {MARK}\r\n'))
        with pytest.raises((ssl.SSLError, EOFError)):
            while piece := peer.read():
                got += piece
            raise EOFError
    assert b''.join(got.partition(b'\r\n\r\n')[2].split(b'\r\n')[1::2]) == b'abcde', got
    assert b'\r\n0\r\n' not in got


REFUSED = {'/gzip': 'compressed', '/two-lengths': 'ambiguous', '/both': 'exclude',
           '/coding': 'chunked', '/folded': 'field', '/feeds': 'CR LF', '/upgrade': 'upgrades',
           '/cut': 'ended', '/bad-chunk': 'malformed', '/no-size': 'malformed',
           '/long-extension': 'malformed'}


@pytest.mark.parametrize('path', REFUSED)
def test_what_cannot_be_searched_is_refused(world, proxy, path):
    with tls(world, BOUND, 'web.example') as peer:
        peer.send(request(path, f'X-Key: {MARK}\r\n'))
        head, body = take(peer)
    assert b' 502 ' in head and b'Holt-Reason: bad_answer' in head, head
    assert REFUSED[path].encode() in body, body
    assert proxy.wait_event(DENIED, 'bad_answer', 'web.example')


# ---- smuggling -----------------------------------------------------------------------------------

SMUGGLED = {
    'two lengths': 'Content-Length: 3\r\nContent-Length: 30\r\n',
    'length and coding': 'Content-Length: 3\r\nTransfer-Encoding: chunked\r\n',
    'another coding': 'Transfer-Encoding: xchunked\r\n',
    'an underscore': 'Content_Length: 30\r\n',
    'a folded line': 'X: a\r\n b: c\r\n',
    'a blank before the colon': 'X : a\r\n',
    'a line feed alone': 'X: a\nY: b\r\n',
    'another host': 'Host: other.example\r\n',
    'an upgrade': 'Connection: upgrade\r\nUpgrade: websocket\r\n',
}


@pytest.mark.parametrize('what', SMUGGLED)
def test_smuggling(world, proxy, what):
    with tls(world, BOUND, 'web.example') as peer:
        peer.send(request(fields=SMUGGLED[what] + f'X-Key: {MARK}\r\n') + b'abc')
        head, _ = take(peer)
    # By a 426 a client knows at once to go on by plain requests.
    wanted = (b' 426 ',) if what == 'an upgrade' else (b' 400 ', b' 403 ')
    assert any(status in head for status in wanted), head
    assert not world.web.heads


def test_rules_hold_for_each_request(world, proxy):
    """HTTP rules within TLS: a connection that is kept, and a request hidden in another's body."""
    allow = ('web.example:443', 'other.example:443', 'wrong.example:443', 'web.example:80')
    proxy.grant(*allow, http=[HttpRule(0, 0, b'', b'/a/secret*'), HttpRule(0, 1, b'GET', b'/a/*'),
                              HttpRule(0, 1, b'POST', b'/a/b')])
    hidden = request('/c').decode()
    with tls(world, BOUND, 'web.example') as peer:
        peer.send(request('/a/b'))
        assert b' 200 ' in take(peer)[0]
        peer.send(request('/a/b', method='POST', body=hidden))
        head, body = take(peer)
        assert b' 200 ' in head and body.count(b'GET /c') == 1
        peer.send(request('/a/%73ecret'))
        head, body = take(peer)
        assert b' 403 ' in head and b'by the rule deny * /a/secret*' in body, body
        assert peer.read() == b''
    for bad in (request('/a/b', method='POST', fields='Transfer-Encoding: chunked\r\n',
                        body=hidden), request('/a/b') + request('/c'),
                request('/a/b', fields='X-HTTP-Method-Override: DELETE\r\n')):
        with tls(world, BOUND, 'web.example') as peer:
            peer.send(bad)
            while b' 200 ' in (head := take(peer)[0]):
                pass
            assert b' 403 ' in head or b' 400 ' in head, head
    assert not [head for head in world.web.heads if b'/c' in head or b'secret' in head]
    proxy.grant(*allow)
    with tls(world, BOUND, 'web.example') as peer:
        peer.send(request('/c'))
        assert b' 200 ' in take(peer)[0]


def test_each_request_is_for_the_host(world, proxy):
    with tls(world, BOUND, 'web.example') as peer:
        peer.send(request(fields=f'X-Key: {MARK}\r\n'))
        take(peer)
        peer.send(request(host='other.example', fields=f'X-Key: {MARK}\r\n'))
        head, body = take(peer)
        assert b' 403 ' in head and b'Holt-Reason: host_mismatch' in head, body
    assert len(world.web.heads) == 1


def test_ranges_and_codings_are_not_asked_for(world, proxy):
    """A value could come in two parts, or in a form that nobody looks into."""
    ask(world, request(fields='Range: bytes=0-3\r\nAccept-Encoding: gzip\r\nTE: trailers\r\n'
                       'If-Range: x\r\n'))
    head = world.web.heads[0].lower()
    assert b'range' not in head and b'gzip' not in head and b'trailers' not in head


# ---- changes -------------------------------------------------------------------------------------

def test_a_change_ends_what_was_bound(world, proxy):
    with tls(world, BOUND, 'web.example') as bound, tls(world, FREE, 'other.example',
                                                        trust=world.ca) as free:
        bound.send(request())
        take(bound)
        proxy.bind()
        with contextlib.suppress(ConnectionResetError):
            assert not bound.read()
        free.send(request(host='other.example'))
        assert b' 200 ' in take(free)[0]
    ask(world, request(fields=f'X-Key: {MARK}\r\n'), trust=world.ca)
    bind(proxy)
    assert MARK.encode() in world.web.heads[-1]


BAD = {'line end': b'abcdefgh\r\nX: y', 'NUL': b'abcd\0efgh', 'short': b'abc',
       'blank': b' abcdefgh'}


@pytest.mark.parametrize('what', BAD)
def test_values_that_cannot_be_bound(world, proxy, what):
    with pytest.raises(Refused):
        proxy.bind(('web-token', MARK, BAD[what], ['web.example:443'], b'', False))
    ask(world, request(fields=f'X-Key: {MARK}\r\n'))  # what was bound is
    assert VALUE.encode() in world.web.heads[0]


def test_nothing_in_the_open_of_the_process(world, proxy):
    """Neither its environment nor its arguments nor a core dump have any value."""
    pid = proxy.process.pid
    for name in ('environ', 'cmdline'):
        with open(f'/proc/{pid}/{name}', 'rb') as f:
            assert VALUE.encode() not in f.read()
    with open(f'/proc/{pid}/limits', encoding='ascii') as f:
        assert next(line for line in f if 'core' in line).split()[4:6] == ['0', '0']
