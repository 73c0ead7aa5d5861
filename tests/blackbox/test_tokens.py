"""Log-ins at holt-egress, with the test as its hub: tokens are exchanged by it, and the client
inside has placeholders alone. The same with a hub, a store and programs is in
test_agent_login.py."""

import base64
import json
import os
import threading
import urllib.parse

import pytest

from egress import (DENIED, IN_FIELDS, IN_TOKENS, REFRESHES, SHOWS_CLAIMS, WEB_IP, Proxy, World)
from test_placeholder import shows, take, tls

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason='needs root: it makes network namespaces')


def jwt(payload, signature):
    word = base64.urlsafe_b64encode(json.dumps({'alg': 'RS256'}).encode()).decode().rstrip('=')
    claims = base64.urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip('=')
    return f'{word}.{claims}.{signature}'


ACCESS, REFRESH, ID = (f'holt-secret-{i:032d}' for i in (1, 2, 3))
OLD = {'access_token': 'sk-ant-oat01-first-access/token+1',
       'refresh_token': 'first-refresh/token&1=',
       'id_token': jwt({'sub': 'me', 'exp': 1}, 'first-signature-of-the-id')}
NEW = {'access_token': jwt({'sub': 'me', 'exp': 2}, 'second-signature-of-access'),
       'refresh_token': 'second-refresh"token', 'id_token': jwt({'exp': 2}, 'second-signature-id')}
TOKEN_URL = '/v1/oauth/token'
BOUND, API = ('127.1.0.1', 443), ('127.1.0.2', 443)


def claims(token):
    return token[:token.rindex('.') + 1] if token.startswith('eyJ') else ''


def shown(tokens):
    marks = {'access_token': ACCESS, 'refresh_token': REFRESH, 'id_token': ID}
    return {**tokens, **{k: claims(tokens[k]) + marks[k] for k in marks}}


class Server:
    """Of tokens and of an API. `answer` is what it says to a request for tokens; `gate` holds it
    back."""

    def __init__(self):
        self.requests, self.answer, self.gate = [], None, threading.Event()
        self.gate.set()

    def __call__(self, connection):
        data = b''
        while True:
            while b'\r\n\r\n' not in data:
                piece = connection.recv(65536)
                if not piece:
                    return
                data += piece
            head, _, data = data.partition(b'\r\n\r\n')
            fields = dict(line.lower().split(b': ', 1) for line in head.split(b'\r\n')[1:])
            n = int(fields.get(b'content-length', 0))
            while len(data) < n:
                data += connection.recv(65536)
            body, data = data[:n], data[n:]
            self.requests.append((head, body))
            self.gate.wait(20)
            answer = self.answer or head + b'\n' + body
            if isinstance(answer, tuple):
                connection.sendall(answer[0])
                continue
            connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % len(answer)
                               + answer)


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    w = World(str(tmp_path_factory.mktemp('tokens')))
    w.zone.update({'web.example': [WEB_IP], 'other.example': [WEB_IP]})
    w.web = Server()
    w.serve(w.web, WEB_IP, 443, tls=True)
    with open(w.ca, 'rb') as f:
        w.pem = f.read()
    yield w
    w.close()


def bind(p, tokens=None, begins=False, renews=False):
    """The log-in of a sandbox: tokens are for web.example, and the API is other.example."""
    uses = {'access_token': (ACCESS, IN_FIELDS | IN_TOKENS, 'other.example:443'),
            'refresh_token': (REFRESH, IN_TOKENS | REFRESHES, 'web.example:443'),
            'id_token': (ID, IN_TOKENS, 'web.example:443')}
    p.bind(*(('login', mark, (tokens or OLD)[member].encode(), [host], p.world.pem, False,
              use | SHOWS_CLAIMS) for member, (mark, use, host) in uses.items()),
           exchanges=[('login', 'web.example', TOKEN_URL, begins)], renews=renews)


@pytest.fixture
def proxy(world):
    world.web.requests.clear()
    world.web.answer = None
    world.web.gate.set()
    p = Proxy(world)
    p.allow('web.example:443', 'other.example:443')
    bind(p)
    yield p
    p.close()


def post(body, kind='application/x-www-form-urlencoded', path=TOKEN_URL, method='POST', more=''):
    return (f'{method} {path} HTTP/1.1\r\nHost: web.example\r\nContent-Type: {kind}\r\n{more}'
            f'Content-Length: {len(body)}\r\n\r\n{body}').encode()


def refresh_form(**more):
    return urllib.parse.urlencode({'grant_type': 'refresh_token', 'refresh_token': REFRESH,
                                   'client_id': 'app', **more})


def refresh_json(**more):
    return json.dumps({'grant_type': 'refresh_token', 'refresh_token': REFRESH,
                       'client_id': 'app', **more})


def read_back(body, kind):
    return json.loads(body) if 'json' in kind else dict(urllib.parse.parse_qsl(body.decode(),
                                                                               strict_parsing=True))


KINDS = {'application/x-www-form-urlencoded;charset=UTF-8': refresh_form,
         'application/json': refresh_json}


@pytest.mark.parametrize('kind', KINDS)
def test_a_refresh(world, proxy, kind):
    """New tokens go to the hub; then the same connections have them."""
    world.web.answer = json.dumps({**NEW, 'expires_in': 60}).encode()
    with tls(world, API, 'other.example') as api, tls(world, BOUND, 'web.example') as peer:
        peer.send(post(KINDS[kind](scope='a b'), kind))
        m, body = proxy.wait_tokens()
        assert m.name == b'login' and json.loads(body) == {**NEW, 'expires_in': 60}
        bind(proxy, NEW, renews=True)
        proxy.kept(m, json.dumps({**shown(NEW), 'expires_in': 60}).encode())
        got, text = take(peer)
        assert json.loads(text) == {**shown(NEW), 'expires_in': 60}
        head, sent = world.web.requests.pop(0)
        assert read_back(sent, kind) == {'grant_type': 'refresh_token', 'scope': 'a b',
                                         'client_id': 'app',
                                         'refresh_token': OLD['refresh_token']}
        assert head.lower().count(b'content-length') == 1
        # the same connections go on, with the placeholder as it was shown before and now
        world.web.answer = None
        for text in (ACCESS, shown(OLD)['access_token'], shown(NEW)['access_token']):
            api.send(f'GET / HTTP/1.1\r\nHost: other.example\r\nAuthorization: Bearer {text}\r\n'
                     '\r\n'.encode())
            got, echo = take(api)
            assert f'Bearer {NEW["access_token"]}\r\n'.encode() in world.web.requests.pop(0)[0]
            assert shown(NEW)['access_token'].encode() in echo
            assert not shows(echo, NEW['access_token'].rsplit('.', 1)[1])
        # an answer to what was asked before has the values of before
        world.web.answer = b'late: ' + OLD['access_token'].encode()
        api.send(b'GET / HTTP/1.1\r\nHost: other.example\r\n\r\n')
        assert take(api)[1] == b'late: ' + ACCESS.encode()


ODD = {
    'a token of another account': refresh_form().replace(REFRESH, 'stolen-refresh-token'),
    'another placeholder': refresh_form().replace(REFRESH, ACCESS),
    'with words before it': refresh_form().replace(REFRESH, 'x' + REFRESH),
    'in another member': refresh_form().replace('client_id=app', f'client_id={REFRESH}').replace(
        f'refresh_token={REFRESH}', 'refresh_token=stolen-token'),
    'twice': refresh_form() + '&refresh_token=stolen-token',
    'twice, and escaped': refresh_form() + '&refresh%5Ftoken=stolen-token',
    'with a semicolon': refresh_form() + ';refresh_token=stolen-token',
    'a code beside it': refresh_form(code='code-of-another'),
    'a code': 'grant_type=authorization_code&code=code-of-another',
    'an exchange': refresh_form().replace('=refresh_token&', '=urn:token-exchange&'),
    'no grant': refresh_form().replace('grant_type=refresh_token&', ''),
    'nothing': '',
    'an end': refresh_form() + '&',
}
ODD_JSON = {
    'twice': refresh_json()[:-1] + ', "refresh_token": "stolen-token"}',
    'twice, and escaped': refresh_json()[:-1] + ', "refresh\\u005ftoken": "stolen-token"}',
    'not flat': refresh_json()[:-1] + ', "client_id2": {"a": 1}}',
    'behind it': refresh_json() + '{}',
    'a list': f'[{refresh_json()}]',
    'a number': refresh_json().replace(f'"{REFRESH}"', '1'),
    'cut': refresh_json()[:-1],
    'an open string': refresh_json()[:-2] + '}',
}


@pytest.mark.parametrize('kind, body', [
    *((list(KINDS)[0], body) for body in ODD.values()),
    *((list(KINDS)[1], body) for body in ODD_JSON.values()),
    ('text/plain', refresh_form()), ('application/json', refresh_form()),
    ('application/x-www-form-urlencoded', refresh_json())])
def test_nothing_but_its_own_refresh_token(world, proxy, kind, body):
    """Else code inside could have the log-in of another account kept. test_a_refresh is the
    control."""
    with tls(world, BOUND, 'web.example') as peer:
        peer.send(post(body, kind))
        head, text = take(peer)
    assert b' 403 ' in head and b'Holt-Reason: bad_tokens' in head, (head, text)
    assert proxy.wait_event(DENIED, 'bad_tokens') and not world.web.requests


@pytest.mark.parametrize('path, method', [
    (TOKEN_URL + '?refresh_token=x', 'POST'), (TOKEN_URL, 'PUT'), (TOKEN_URL + '/', 'POST'),
    (TOKEN_URL + ';x', 'POST'), ('/V1/oauth/Token', 'POST'), ('/v1/oauth/%74oken', 'POST'),
    ('//v1/oauth/token', 'POST'), ('/v1/./oauth/token', 'POST'), ('/v1/oauth/token.json', 'POST')])
def test_paths_that_a_server_may_take_for_it(world, proxy, path, method):
    with tls(world, BOUND, 'web.example') as peer:
        peer.send(post(refresh_form(), path=path, method=method))
        assert b'bad_tokens' in take(peer)[0]
    assert not world.web.requests


@pytest.mark.parametrize('path', ['/profile', TOKEN_URL + 'info', TOKEN_URL + '/revoke'])
def test_other_paths_get_no_token(world, proxy, path):
    with tls(world, BOUND, 'web.example') as peer:
        peer.send(post(refresh_form(), path=path, more=f'X-Key: {ACCESS}\r\n'))
        take(peer)
    head, body = world.web.requests.pop()
    assert REFRESH.encode() in body and ACCESS.encode() in head
    assert not any(value.encode() in head + body for value in OLD.values())


def test_a_log_in_begins(world, proxy):
    """Its code comes from a person, so it can't be known; what it gets goes to the hub as well."""
    bind(proxy, begins=True)
    world.web.answer = json.dumps(NEW).encode()
    with tls(world, BOUND, 'web.example') as peer:
        peer.send(post(json.dumps({'grant_type': 'authorization_code', 'code': 'abc', 'n': 5,
                                   'redirect_uri': 'http://localhost:1/cb'}), 'application/json'))
        m, body = proxy.wait_tokens()
        assert json.loads(body) == NEW
        proxy.kept(m, b'{"shown": 1}')
        assert take(peer)[1] == b'{"shown": 1}'
    assert json.loads(world.web.requests[0][1])['code'] == 'abc'


def test_a_failure_is_the_servers(world, proxy):
    """And has no value in it, whatever the server repeats."""
    text = json.dumps({'error': 'invalid_grant', 'got': OLD['refresh_token']}).encode()
    world.web.answer = (b'HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n' % len(text)
                        + text,)
    with tls(world, BOUND, 'web.example') as peer:
        peer.send(post(refresh_form()))
        head, body = take(peer)
        assert b' 400 ' in head and json.loads(body) == {'error': 'invalid_grant', 'got': REFRESH}
    assert not proxy.tokens


BAD = {
    'too large': b'HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n' + b'x' * 70000,
    'too large in chunks': b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
                           + b'8000\r\n' + b'x' * 0x8000 + b'\r\n8001\r\n' + b'x' * 0x8001
                           + b'\r\n0\r\n\r\n',
    'compressed': b'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc',
}


@pytest.mark.parametrize('what', BAD)
def test_answers_that_nobody_can_read(world, proxy, what):
    world.web.answer = (BAD[what],)
    with tls(world, BOUND, 'web.example') as peer:
        peer.send(post(refresh_form()))
        assert b' 502 ' in take(peer)[0]
    assert not proxy.tokens


def test_what_the_hub_does_not_keep_is_not_passed(world, proxy):
    world.web.answer = json.dumps(NEW).encode()
    with tls(world, BOUND, 'web.example') as peer:
        peer.send(post(refresh_form()))
        proxy.kept(proxy.wait_tokens()[0], why=b'the disk is full')
        head, body = take(peer)
    assert b' 502 ' in head and b'the disk is full' in body
    assert not any(value.encode() in body for value in NEW.values())


def test_one_after_the_other(world, proxy):
    """A server takes each refresh token once: the second request has the first one's new token."""
    world.web.answer = json.dumps(NEW).encode()
    world.web.gate.clear()
    with tls(world, BOUND, 'web.example') as one, tls(world, BOUND, 'web.example') as two:
        one.send(post(refresh_form()))
        two.send(post(refresh_form()))
        world.web.gate.set()
        for peer_tokens in (NEW, NEW):
            m, _ = proxy.wait_tokens()
            assert not proxy.tokens
            bind(proxy, peer_tokens, renews=True)
            proxy.kept(m, b'{}')
        assert take(one)[1] == take(two)[1] == b'{}'
    sent = [read_back(body, '')['refresh_token'] for _, body in world.web.requests]
    assert sent == [OLD['refresh_token'], NEW['refresh_token']]


def test_too_many(world, proxy):
    """Each request costs a write of the store, and a request at the server."""
    world.web.answer = (b'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n',)
    heads = []
    for _ in range(9):
        with tls(world, BOUND, 'web.example') as peer:
            peer.send(post(refresh_form()))
            heads.append(take(peer)[0])
    assert [b' 400 ' in h for h in heads[:6]] == [True] * 6
    assert b'limit_rate' in heads[-1]
