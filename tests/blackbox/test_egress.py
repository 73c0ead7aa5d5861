"""holt-egress with real clients and servers, in namespaces of the test's own (egress.py): what is
granted is reached by programs that know of no proxy, and each way around it is tried, beside a
control that shows that the same attempt works where it is allowed."""

import contextlib
import os
import socket
import ssl
import struct
import threading
import time

import pytest

import ech
from client import until
from egress import (CLOSED, DENIED, DNS_IP, FORBIDDEN, HOST_IP, LISTEN, OPENED, OTHER_IP, PROGRAM,
                    PROXY_AT, UNREACHED, WEB_IP, WEB_IP6, HttpRule, Limits, Peer, Proxy, Refused,
                    Way, World, company_proxy, kill, python_inside, rule)

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason='needs root: it makes network namespaces')

WEB, WEB_TLS = ('127.1.0.1', 80), ('127.1.0.1', 443)
EXPLICIT = ('127.0.0.1', 3128)


class Reader:
    """Of a connection, to marks and in numbers of bytes. EOFError at its end."""

    def __init__(self, connection):
        self.connection, self.data = connection, b''

    def more(self):
        piece = self.connection.recv(65536)
        if not piece:
            raise EOFError
        self.data += piece

    def to(self, mark):
        while mark not in self.data:
            self.more()
        found, _, self.data = self.data.partition(mark)
        return found

    def take(self, n):
        while len(self.data) < n:
            self.more()
        found, self.data = self.data[:n], self.data[n:]
        return found


def web(connection):
    """HTTP/1.1 with connections that are kept: answers with the request, as it came."""
    reader = Reader(connection)
    with contextlib.suppress(EOFError):
        while web_answer(connection, reader):
            pass


def web_answer(connection, reader):
    head = reader.to(b'\r\n\r\n')
    fields = {k.lower(): v for k, v in (line.split(b': ', 1) for line in head.split(b'\r\n')[1:])}
    body = b''
    if b'content-length' in fields:
        body = reader.take(int(fields[b'content-length']))
    elif b'transfer-encoding' in fields:
        body = reader.to(b'0\r\n\r\n') + b'0\r\n\r\n'
    if fields.get(b'upgrade') == b'websocket' and b'/no' not in head.split(b'\r\n')[0]:
        connection.sendall(b'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n')
        while True:
            if not reader.data:
                reader.more()
            connection.sendall(b'raw:' + reader.take(len(reader.data)))
    if b'/redirect' in head:
        connection.sendall(b'HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest\r\n'
                           b'Content-Length: 0\r\n\r\n')
        return True
    text = head + b'\n' + body
    close = fields.get(b'connection') == b'close'
    connection.sendall(b'HTTP/1.1 200 OK\r\n' + (b'Connection: close\r\n' if close else b'') +
                       b'Content-Length: %d\r\n\r\n' % len(text) + text)
    return not close


def echo(connection):
    while data := connection.recv(65536):
        connection.sendall(data)


def greeter(connection):
    """As ssh and SMTP: the server speaks first."""
    connection.sendall(b'220 hello\r\n')
    echo(connection)


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    w = World(str(tmp_path_factory.mktemp('egress')))
    w.zone.update({'web.example': [WEB_IP], 'other.example': [OTHER_IP],
                   'deep.wild.example': [WEB_IP], 'a.b.wild.example': [WEB_IP]})
    w.logs = {}
    for ip in (WEB_IP, OTHER_IP, *FORBIDDEN.values()):
        w.logs[ip, 80] = w.serve(web, ip)
    for ip in (WEB_IP, OTHER_IP):
        w.logs[ip, 443] = w.serve(web, ip, 443, tls=True)
        w.logs[ip, 7000] = w.serve(echo, ip, 7000)
        w.logs[ip, 22] = w.serve(greeter, ip, 22)
    w.logs['keys'] = w.serve(ech.server(w.ca, w.key), port=9443)
    w.logs['retry'] = w.serve(web, WEB_IP, 8443, tls='retry')
    yield w
    w.close()


@pytest.fixture
def start(world):
    """Starts proxies. Each must end by itself, and well, when its hub is gone."""
    started = []

    def one(limits=None, **more):
        started.append(Proxy(world, limits, **more))
        return started[-1]

    yield one
    for p in started:
        p.close()


@pytest.fixture
def proxy(start):
    return start()


def curl(world, *args):
    return world.inside.run('curl', '-sS', '--max-time', '15', '--cacert', world.ca, *args,
                            text=True)


def seen(world, where):
    """What the servers at an address have seen, forgotten then."""
    log = world.logs[where]
    found, log[:] = list(log), []
    return found


@contextlib.contextmanager
def nothing_reaches(world, *where):
    for w in where:
        seen(world, w)
    yield
    for w in where:
        assert not seen(world, w), w


def exchange(world, to, data, *more):
    """Sends data, then what follows after each answer; all that comes, and whether it was reset."""
    with Peer(world, *to) as peer:
        peer.send(data)
        got = b''
        for m in more:
            got += peer.read()
            peer.send(m)
        try:
            peer.s.shutdown(socket.SHUT_WR)
            got += peer.read_all()
        except TimeoutError:
            raise
        except OSError:
            return got, True
        return got, False


def is_refused(world, *to):
    """The connection is reset, as soon as it is there or before."""
    try:
        with Peer(world, *to) as peer:
            return peer.is_reset()
    except ConnectionResetError:
        return True


GET = b'GET / HTTP/1.1\r\nHost: web.example\r\n\r\n'


# ---- what is granted -----------------------------------------------------------------------------

def test_programs_need_no_settings(world, proxy):
    proxy.allow('web.example:80', 'web.example:443')
    for url in ('http://web.example/', 'https://web.example/', 'http://WEB.Example/',
                'https://web.example./', 'http://web.example.:80/'):
        done = curl(world, url)
        assert done.returncode == 0 and 'GET / HTTP/1.1' in done.stdout, (url, done)
    got = python_inside(world, '''
import ssl, sys, urllib.request
c = ssl.create_default_context(cafile=sys.argv[1])
print(urllib.request.urlopen('https://web.example/py', context=c).read().decode())''', world.ca)
    assert 'GET /py' in got
    e = proxy.wait_event(OPENED)
    assert (e.host, e.port, str(e.addr), e.rule) == (b'web.example', 80, WEB_IP, 0)
    e = proxy.wait_event(CLOSED)
    assert e.up > 0 and e.down > 0 and e.reason == 'none'


def test_what_is_not_granted_does_not_exist(world, proxy):
    proxy.allow('web.example:80')
    for url, code in (('http://other.example/', 6), ('https://web.example/', 7),
                      (f'http://{OTHER_IP}/', 7), ('http://[2606:2800:220:1::34]/', 7)):
        done = curl(world, url)
        assert done.returncode == code, (url, done)
    proxy.allow('web.example:80', 'other.example:80')
    assert curl(world, 'http://other.example/').returncode == 0


def test_other_protocols_pass(world, proxy):
    proxy.allow('web.example:7000', 'web.example:22', 'web.example:80')
    with Peer(world, '127.1.0.1', 22) as peer:  # the server is first
        assert peer.read() == b'220 hello\r\n'
        peer.send(b'x' * 100)
        assert peer.read() == b'x' * 100
    for first in (b'\0\0\0\x08\x04\xd2\x16\x2f', b'*1\r\n$4\r\nPING\r\n', b'SSH-2.0-x\r\n',
                  b'GET key\r\n', bytes(range(256))):
        with Peer(world, '127.1.0.1', 7000) as peer:
            peer.send(first)
            got = b''
            while len(got) < len(first):
                got += peer.read()
            assert got == first
    # and nothing else passes at a port of the web
    got, reset = exchange(world, WEB, b'\0\0\0\x08\x04\xd2\x16\x2f')
    assert (got, reset) == (b'', True)
    assert proxy.wait_event(DENIED, 'not_http')


def test_a_half_closed_connection_still_answers(world, proxy):
    proxy.allow('web.example:7000', 'web.example:80')
    assert exchange(world, ('127.1.0.1', 7000), b'\0last') == (b'\0last', False)
    got, reset = exchange(world, WEB, GET)
    assert not reset and got.count(b'GET / HTTP/1.1') == 1


def test_large_bodies_pass_both_ways(world, proxy):
    proxy.allow('web.example:80', 'web.example:7000')
    body = os.urandom(3 << 20)
    for framing in (b'Content-Length: %d\r\n\r\n' % len(body) + body,
                    b'Transfer-Encoding: chunked\r\n\r\n' +
                    b''.join(b'%x\r\n' % 65536 + body[i:i + 65536] + b'\r\n'
                             for i in range(0, len(body), 65536)) + b'0\r\n\r\n'):
        got, _ = exchange(world, WEB, b'POST /p HTTP/1.1\r\nHost: web.example\r\n' + framing + GET)
        assert len(got) > len(body) and got.count(b'HTTP/1.1 200 OK') == 2
        assert framing[-len(body) // 2:] in got
    done = python_inside(world, '''
import hashlib, os, socket, threading
s = socket.create_connection(('127.1.0.1', 7000)); n = 64 << 20
block = b'\\0' + os.urandom((1 << 20) - 1); sent = hashlib.sha256(); got = hashlib.sha256()
def send():
    for _ in range(64): s.sendall(block); sent.update(block)
    s.shutdown(1)
t = threading.Thread(target=send); t.start(); total = 0
while d := s.recv(1 << 20): got.update(d); total += len(d)
t.join(); print(total == n and sent.digest() == got.digest())''')
    assert done == 'True\n'


def test_ipv6_hosts_are_reached_over_ipv4_inside(world, proxy):
    world.serve(web, WEB_IP6, 8006)
    world.zone['six.example'] = [WEB_IP6]
    proxy.allow('six.example:8006')
    assert curl(world, 'http://six.example:8006/').returncode == 0
    assert str(proxy.wait_event(OPENED).addr) == WEB_IP6


def test_the_next_address_is_tried(world, proxy):
    world.zone['two.example'] = [DNS_IP, WEB_IP]  # nothing listens at the first
    proxy.allow('two.example:80')
    assert curl(world, 'http://two.example/').returncode == 0
    assert str(proxy.wait_event(OPENED).addr) == WEB_IP


def test_the_hosts_file_counts(world, start, tmp_path):
    hosts = tmp_path / 'hosts'
    hosts.write_text(f'{WEB_IP} listed.example\n{FORBIDDEN["private"]} bad.example\n')
    tmp_path.chmod(0o755)
    proxy = start(wrap=['unshare', '-m', 'sh', '-c',
                               'mount --bind "$0" /etc/hosts; exec "$1"', str(hosts)])
    proxy.allow('listed.example:80', 'bad.example:80')
    assert curl(world, 'http://listed.example/').returncode == 0
    assert 'forbidden address' in curl(world, 'http://bad.example/').stdout


# ---- addresses -----------------------------------------------------------------------------------

@pytest.mark.parametrize('kind', FORBIDDEN)
def test_a_name_must_not_resolve_to_a_forbidden_address(world, proxy, kind):
    ip = FORBIDDEN[kind]
    world.zone['evil.example'] = [ip]
    with nothing_reaches(world, (ip, 80)):
        proxy.allow('evil.example:80', '0.0.0.0/0')  # a wide range grants no special one
        done = curl(world, 'http://evil.example/')
        assert 'forbidden address' in done.stdout, done
        assert 'ask for a grant of a range with its address' in done.stdout, done
        e = proxy.wait_event(DENIED, 'forbidden_address')
        assert str(e.addr) == ip and e.host == b'evil.example'
    proxy.allow('evil.example:80', ip + '/32:80')
    assert 'GET / HTTP' in curl(world, 'http://evil.example/').stdout
    assert seen(world, (ip, 80))


def test_the_host_itself_is_forbidden(world, proxy):
    for ip in ('127.0.0.1', HOST_IP):
        log = world.serve(web, ip, 8007, where=world.host)
        world.zone['evil.example'] = [ip]
        proxy.allow('evil.example:8007')
        assert is_refused(world, '127.1.0.1', 8007)
        assert str(proxy.wait_event(DENIED, 'forbidden_address').addr) == ip
        assert not log
        proxy.allow('evil.example:8007', ip + '/32:8007')
        assert curl(world, 'http://evil.example:8007/').returncode == 0 and log


@pytest.mark.parametrize('ip', ['::ffff:10.9.0.1', '::10.9.0.1', '64:ff9b::a09:1', '2002:a09:1::1',
                                '::1', 'fe80::1', 'fd00:ec2::254', 'fec0::1', '2001::a09:1',
                                '0.0.0.0', '::', '255.255.255.255', '224.0.0.1', '127.8.8.8'])
def test_forbidden_addresses_in_disguise(world, proxy, ip):
    world.zone['evil.example'] = [ip]
    proxy.allow('evil.example:7000')
    assert is_refused(world, '127.1.0.1', 7000)
    assert proxy.wait_event(DENIED, 'forbidden_address')


def test_a_forbidden_address_among_others_is_passed_over(world, proxy):
    world.zone['mixed.example'] = [FORBIDDEN['private'], WEB_IP]
    with nothing_reaches(world, (FORBIDDEN['private'], 80)):
        proxy.allow('mixed.example:80')
        for _ in range(5):
            assert curl(world, 'http://mixed.example/').returncode == 0


def test_rebinding_between_check_and_connect(world, proxy):
    """The name is good when it is asked for first, and bad at once after that."""
    answers = []

    def rebind(kind):
        if kind != 1:
            return []
        answers.append(WEB_IP if len(answers) % 2 == 0 else FORBIDDEN['private'])
        return [answers[-1]]

    world.zone['rebind.example'] = rebind
    proxy.allow('rebind.example:80')
    with nothing_reaches(world, (FORBIDDEN['private'], 80)):
        got = [curl(world, 'http://rebind.example/').stdout for _ in range(6)]
    assert all('GET / HTTP' in text for text in got[::2])
    assert all('forbidden address' in text for text in got[1::2])
    assert len(answers) == 6  # one query a flow: what was checked was dialled


def test_a_redirect_to_metadata(world, proxy):
    proxy.allow('web.example:80')
    with nothing_reaches(world, (FORBIDDEN['metadata'], 80)):
        for more in ((), ('-x', 'http://127.0.0.1:3128')):
            done = curl(world, '-L', *more, 'http://web.example/redirect')
            assert 'GET /latest' not in done.stdout
            assert done.returncode == (0 if more else 7)
    assert proxy.wait_event(DENIED, 'address_literal').host == b'169.254.169.254'
    proxy.allow('web.example:80', '169.254.169.254/32')  # the control
    assert 'GET /latest' in curl(world, '-L', '-x', 'http://127.0.0.1:3128',
                                 'http://web.example/redirect').stdout


NOTATIONS = ['93.184.216.35', '1572395043', '0x5db8d823', '0135.0270.0330.043',
             '0x5d.0xb8.0xd8.0x23', '93.12113955', '93.184.55331', '[::ffff:93.184.216.35]',
             '93.184.216.35.', '[::ffff:5db8:d823]', '[2606:2800:220:1::34]']


@pytest.mark.parametrize('text', NOTATIONS)
def test_addresses_are_no_names(world, proxy, text):
    proxy.allow('web.example:80', 'web.example:443')
    with nothing_reaches(world, (OTHER_IP, 80), (WEB_IP, 80)):
        for line in (f'CONNECT {text}:80 HTTP/1.1', f'GET http://{text}/ HTTP/1.1'):
            got, _ = exchange(world, EXPLICIT, f'{line}\r\nHost: {text}\r\n\r\n'.encode())
            assert got.startswith(b'HTTP/1.1 403') and b'use the name' in got, got
            assert proxy.wait_event(DENIED, 'address_literal')
        name = text.strip('[]').encode()
        got, _ = exchange(world, EXPLICIT, b'\5\1\0', b'\5\1\0\3' + bytes([len(name)]) + name +
                          b'\0\x50')
        assert got == b'\5\0\5\2' + b'\0\1'.ljust(8, b'\0')
    if text == '93.184.216.35':
        proxy.allow('93.184.216.35/32:80')
        got, _ = exchange(world, EXPLICIT, b'CONNECT 0x5db8d823:80 HTTP/1.1\r\n\r\n', GET)
        assert b'200 OK' in got


# ---- TLS -----------------------------------------------------------------------------------------

def hello(name, ech=False, version=ssl.TLSVersion.TLSv1_3):
    """The bytes of a ClientHello."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = version
    bio_in, bio_out = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(bio_in, bio_out, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    data = bio_out.read()
    if ech:
        data = add_extension(data, 0xfe0d, b'\0\0\1\0\1\x42\0\0\0\0')
    return data


def add_extension(data, kind, body):
    ext = struct.pack('>HH', kind, len(body)) + body
    inner = data[9:]
    at = 34
    at += 1 + inner[at]
    at += 2 + struct.unpack('>H', inner[at:at + 2])[0]
    at += 1 + inner[at]
    n = struct.unpack('>H', inner[at:at + 2])[0]
    inner = inner[:at] + struct.pack('>H', n + len(ext)) + inner[at + 2:] + ext
    body = b'\1' + struct.pack('>I', len(inner))[1:] + inner
    return b'\x16\3\1' + struct.pack('>H', len(body)) + body


ALERT = b'\x15\3\3\0\2\2\x31'


@pytest.mark.parametrize('data, reason', [
    (hello('other.example'), 'sni_mismatch'), (hello('web.example.other.example'), 'sni_mismatch'),
    (hello('xweb.example'), 'sni_mismatch'), (hello(None), 'no_sni'),
    (hello('other.example', ech=True), 'sni_mismatch'),
    (hello('other.example', version=ssl.TLSVersion.TLSv1_2), 'sni_mismatch'),
    (add_extension(hello('web.example'), 0, b'\0\x10\0\0\x0dother.example'), 'bad_tls'),
    (b'\x16\3\1\0\5\2\0\0\1\0', 'bad_tls'), (b'\x16\3\1\xff\xff' + b'x' * 100, 'bad_tls'),
], ids=['other', 'below', 'longer', 'none', 'ech', 'tls12', 'two', 'message', 'record'])
def test_tls_must_name_the_granted_host(world, proxy, data, reason):
    proxy.allow('web.example:443', 'web.example:80')
    with nothing_reaches(world, (OTHER_IP, 443)):
        for to in (WEB_TLS, WEB):
            seen(world, (WEB_IP, 443))
            assert exchange(world, to, data) == (ALERT, False)
            assert proxy.wait_event(DENIED, reason)
            assert 'other.example' not in seen(world, (WEB_IP, 443))


def test_a_name_may_not_be_encrypted(world, proxy):
    """What browsers send to every server passes where the server can't read it. A server with keys
    would, and one that does not say so in time is not trusted."""
    keys = world.logs['keys']
    seen(world, 'keys')
    none = world.serve(ech.server(world.ca, world.key, keys=False), port=9444)
    mute = world.serve(lambda c: c.recv(1 << 16) and c.close(), port=9445)
    proxy.allow(*(f'web.example:{port}' for port in (443, 8443, 9443, 9444, 9445)))
    for port in (443, 9444, 443):
        with Peer(world, '127.1.0.1', port) as peer:
            peer.send(hello('web.example', ech=True))
            assert peer.read()[:1] == b'\x16'
    assert len(none) == 3  # one that gave way to the question, that, and the flow's
    for port in (9443, 9443, 9445):
        got = exchange(world, ('127.1.0.1', port), hello('web.example', ech=True))
        assert got == (ALERT, False)
        assert proxy.wait_event(DENIED, 'ech').port == port
        # with a name in the clear the server may be what it is
        with Peer(world, '127.1.0.1', port) as peer:
            peer.send(hello('web.example'))
            assert port == 9445 or peer.read()[:1] == b'\x16'
    # connections of the program: two at keys twice, and the question once; mute is asked each time
    until(lambda: len(mute) == 2 + 1)
    assert len(keys) == 2 + 2 + 1
    with Peer(world, '127.1.0.1', 8443) as peer:  # the second ClientHello has it, the first not
        peer.send(hello('web.example'))
        assert peer.read()[:1] == b'\x16'
        peer.send(b'\x14\3\3\0\1\1' + hello('web.example', ech=True))
        assert ALERT in peer.read_all()
    assert proxy.wait_event(DENIED, 'ech').port == 8443


def test_tls_names_in_any_case_and_any_pieces(world, proxy):
    proxy.allow('web.example:443')
    for data, pieces in ((hello('web.example'), 1), (hello('web.example'), 37),
                         (hello('WEB.example'), 500),
                         (split_records(hello('web.example'), 12), 99999)):
        with Peer(world, *WEB_TLS) as peer:
            for i in range(0, len(data), pieces):
                peer.send(data[i:i + pieces])
            assert peer.read()[:1] == b'\x16'  # the server's answer


def split_records(data, about):
    """Into about so many, which the proxy takes 16 of."""
    body = data[5:]
    n = len(body) // about
    return b''.join(b'\x16\3\1' + struct.pack('>H', len(body[i:i + n])) + body[i:i + n]
                    for i in range(0, len(body), n))


def test_only_tls_at_443(world, proxy):
    proxy.allow('web.example:443')
    got, _ = exchange(world, WEB_TLS, GET)
    assert got.startswith(b'HTTP/1.1 403') and b'only TLS' in got
    for data in (b'\x80\x2e\1\0\2', b'SSH-2.0-x\r\n', b'\0'):
        assert exchange(world, WEB_TLS, data)[1]
        assert proxy.wait_event(DENIED, 'not_tls')
    assert curl(world, 'https://web.example/').returncode == 0


def test_the_second_client_hello_counts_too(world, proxy):
    """A server that asks for another key share gets a second ClientHello, in plain text."""
    proxy.allow('web.example:8443')
    assert curl(world, '--curves', 'X25519:P-521', 'https://web.example:8443/').returncode == 0
    seen(world, 'retry')
    for early in (False, True):
        with Peer(world, '127.1.0.1', 8443) as peer:
            second = b'\x14\3\3\0\1\1' + hello('other.example')
            peer.send(hello('web.example') + (second if early else b''))
            got = peer.read()
            if not early:
                assert got[0] == 0x16
                peer.send(second)
            while ALERT not in got:
                piece = peer.read()
                assert piece
                got += piece
        assert proxy.wait_event(DENIED, 'sni_mismatch').host == b'other.example'
    assert 'other.example' not in seen(world, 'retry')


# ---- networks of companies -----------------------------------------------------------------------

@pytest.fixture(scope='module')
def company(world, tmp_path_factory):
    with company_proxy(world, tmp_path_factory.mktemp('company')) as said:
        yield said


FAR = '127.1.0.1'  # the first name that is granted


def test_the_only_way_is_a_proxy(world, start, company):
    proxy = start(way=Way(PROXY_AT, auth='holt:password1', direct=('other.example',)))
    proxy.allow('far.example:443', 'far.example:22', 'far.example:9443', 'far.example:7000',
                'other.example:443')
    keys = world.logs['keys']
    seen(world, 'keys')
    done = curl(world, '-k', 'https://far.example/by-proxy')
    assert 'GET /by-proxy' in done.stdout, done
    opened = proxy.wait_event(OPENED)
    assert (opened.host, str(opened.addr)) == (b'far.example', '')
    assert 'CONNECT far.example:443' in company()
    with Peer(world, FAR, 22) as peer:  # the server speaks first
        assert peer.read().startswith(b'220 hello')
        peer.send(b'x')
        assert peer.read() == b'x'
    # the proxy refuses the port
    assert exchange(world, (FAR, 7000), b'x')[1]
    assert proxy.wait_event(UNREACHED, 'proxy_failed').port == 7000
    # what must not pass does not pass there, either
    to = FAR
    assert exchange(world, (to, 443), hello('other.example')) == (ALERT, False)
    assert proxy.wait_event(DENIED, 'sni_mismatch')
    assert exchange(world, (to, 9443), hello('far.example', ech=True)) == (ALERT, False)
    assert proxy.wait_event(DENIED, 'ech') and set(keys) == {WEB_IP}
    with Peer(world, to, 443) as peer:
        peer.send(hello('far.example', ech=True))
        assert peer.read()[:1] == b'\x16'
    # a name that is reached without it
    before = company().count('other.example')
    seen(world, (OTHER_IP, 443))
    assert curl(world, 'https://other.example/').returncode == 0
    assert seen(world, (OTHER_IP, 443))[0] == HOST_IP and company().count('other.example') == before
    # what is not granted is not asked for
    got, _ = exchange(world, EXPLICIT, b'CONNECT secret.example:443 HTTP/1.1\r\n\r\n')
    assert b'403' in got and 'secret.example' not in company()


@pytest.mark.parametrize('way', [Way(PROXY_AT), Way(PROXY_AT, auth='holt:wrong'),
                                 Way((WEB_IP, 3129), auth='holt:password1'),
                                 Way(('none.example', 3128), auth='holt:password1')],
                         ids=['no password', 'another', 'no proxy', 'no such name'])
def test_a_proxy_that_does_not_let_us(world, start, company, way):
    proxy = start(way=way)
    proxy.allow('far.example:443')
    assert curl(world, '-k', 'https://far.example/').returncode != 0
    assert proxy.wait_event(UNREACHED, 'proxy_failed').host == b'far.example'


def test_names_of_the_firm(world, start):
    """Servers of their own for a suffix, and private addresses for names that the operator lists:
    of no other name, and of no host that is special."""
    inner = world.world.socket(socket.AF_INET, socket.SOCK_DGRAM)
    inner.bind((WEB_IP, 53))
    zone = {'mirror.corp.example': [FORBIDDEN['private']], 'nat.corp.example': [FORBIDDEN['nat']],
            'meta.corp.example': [FORBIDDEN['metadata']], 'self.corp.example': ['127.0.0.1'],
            'host.corp.example': [HOST_IP], 'web.example': [OTHER_IP]}
    threading.Thread(target=world.serve_names, args=(inner, zone), daemon=True).start()
    proxy = start(way=Way(split={'corp.example': WEB_IP},
                          private=('mirror.corp.example', '*.corp.example')))
    names = [name for name in zone if name.startswith(('mirror', 'nat'))]
    special = [name for name in zone if name.startswith(('meta', 'self', 'host'))]
    proxy.allow(*(f'{name}:80' for name in (*names, *special, 'web.example')))
    for name in names:
        assert 'GET /x' in curl(world, f'http://{name}/x').stdout, name
    for name in special:
        assert '403' in curl(world, '-i', f'http://{name}/').stdout, name
        assert proxy.wait_event(DENIED, 'forbidden_address').host == name.encode()
    # the others stay with the servers of all
    seen(world, (WEB_IP, 80))
    assert curl(world, 'http://web.example/').returncode == 0 and seen(world, (WEB_IP, 80))
    proxy.close()
    other = start(way=Way(split={'corp.example': WEB_IP}))
    other.allow('mirror.corp.example:80')
    assert '403' in curl(world, '-i', 'http://mirror.corp.example/').stdout
    inner.close()


# ---- HTTP ----------------------------------------------------------------------------------------

BAD_REQUESTS = {
    'host': (b'GET / HTTP/1.1\r\nHost: other.example\r\n\r\n', 403),
    'host port': (b'GET / HTTP/1.1\r\nHost: web.example:81\r\n\r\n', 403),
    'host below': (b'GET / HTTP/1.1\r\nHost: web.example.other.example\r\n\r\n', 403),
    'host user': (b'GET / HTTP/1.1\r\nHost: web.example@other.example\r\n\r\n', 400),
    'host list': (b'GET / HTTP/1.1\r\nHost: web.example, other.example\r\n\r\n', 400),
    'host address': (b'GET / HTTP/1.1\r\nHost: 93.184.216.35\r\n\r\n', 403),
    'no host': (b'GET / HTTP/1.1\r\nX: y\r\n\r\n', 400),
    'two hosts': (b'GET / HTTP/1.1\r\nHost: web.example\r\nHost: other.example\r\n\r\n', 400),
    'hidden host': (b'GET / HTTP/1.1\r\nHost: web.example\r\nhost : other.example\r\n\r\n', 400),
    'folded': (b'GET / HTTP/1.1\r\nHost: web.example\r\nX: y\r\n Host: other.example\r\n\r\n', 400),
    'bare lf': (b'GET / HTTP/1.1\r\nHost: web.example\nHost: other.example\r\n\r\n', 400),
    'bare cr': (b'GET / HTTP/1.1\r\nHost: web.example\rHost: other.example\r\n\r\n', 400),
    'nul': (b'GET / HTTP/1.1\r\nHost: web.example\r\nX: \0\r\n\r\n', 400),
    'absolute': (b'GET http://other.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n', 400),
    'absolute both': (b'GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n', 403),
    'absolute https': (b'GET https://web.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n', 400),
    'CL TE': (b'POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 4\r\n'
              b'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400),
    'TE CL': (b'POST / HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: chunked\r\n'
              b'Content-Length: 4\r\n\r\n0\r\n\r\n', 400),
    'CL CL': (b'POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 4\r\nContent-Length: 5\r\n'
              b'\r\nxxxxx', 400),
    'CL list': (b'POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 4, 4\r\n\r\nxxxx', 400),
    'CL sign': (b'POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: +4\r\n\r\nxxxx', 400),
    'TE other': (b'POST / HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: xchunked\r\n\r\n',
                 400),
    'TE two': (b'POST / HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n',
               400),
    'TE cgi': (b'POST / HTTP/1.1\r\nHost: web.example\r\nTransfer_Encoding: chunked\r\n\r\n', 400),
    'TE old': (b'POST / HTTP/1.0\r\nHost: web.example\r\nTransfer-Encoding: chunked\r\n\r\n', 400),
    'connection': (b'GET / HTTP/1.1\r\nHost: web.example\r\nConnection: close, Host\r\n\r\n', 400),
    'connect': (b'CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n', 403),
    'http2': (b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400),
    'version': (b'GET / HTTP/1.2\r\nHost: web.example\r\n\r\n', 400),
    'space': (b'GET /  HTTP/1.1\r\nHost: web.example\r\n\r\n', 400),
    'blank first': (b'\r\nGET / HTTP/1.1\r\nHost: other.example\r\n\r\n', 400),
    'lower': (b'get / http/1.1\r\nHost: other.example\r\n\r\n', 400),
    'half': (b'GET / HTTP/1.1\r\nHost: web.example', 400),
    'too large': (b'GET / HTTP/1.1\r\nHost: web.example\r\nX: ' + b'y' * 70000 + b'\r\n\r\n', 400),
}


@pytest.mark.parametrize('name', BAD_REQUESTS)
def test_http_requests_that_must_not_pass(world, proxy, name):
    request, status = BAD_REQUESTS[name]
    proxy.allow('web.example:80', 'web.example:8080')
    world.zone['web.example'] = [WEB_IP]
    with nothing_reaches(world, (OTHER_IP, 80)):
        got, reset = exchange(world, WEB, request)
        assert got.startswith(b'HTTP/1.1 %d' % status) and not reset, got
        assert got.count(b'HTTP/1.1 ') == 1
        assert proxy.wait_event(DENIED)
        # the same behind a good one, on the connection that is kept
        got, _ = exchange(world, WEB, GET, request)
        assert got.startswith(b'HTTP/1.1 200 OK'), got
        assert got.count(b'HTTP/1.1 %d' % status) == 1
        # and in the same bytes
        got, _ = exchange(world, WEB, GET + request)
        assert got.startswith(b'HTTP/1.1 200 OK'), got
        assert b'HTTP/1.1 %d' % status in got[10:]
    assert exchange(world, WEB, GET, GET)[0].count(b'HTTP/1.1 200 OK') == 2


def test_a_denial_is_readable(world, proxy):
    proxy.allow('web.example:80', 'other.example:443')
    got, _ = exchange(world, WEB, BAD_REQUESTS['host'][0])
    head, text = got.split(b'\r\n\r\n')
    assert b'Holt-Reason: host_mismatch' in head and b'text/plain' in head
    for part in (b'other.example', b'web.example:80', b'other.example:443', b'sb-test',
                 b'Granted:'):
        assert part in text
    e = proxy.wait_event(DENIED)
    assert (e.host, e.port, e.rule) == (b'other.example', 80, 0)


BAD_CHUNKS = [b'5;x=y\r\nhello\r\n0\r\n\r\n', b'5\nhello\n0\n\n', b'0x5\r\nhello\r\n0\r\n\r\n',
              b'5\r\nhello0\r\n\r\n', b' 5\r\nhello\r\n0\r\n\r\n',
              b'0\r\nHost: other.example\r\n\r\n',
              b'fffffffffffffffff\r\nx', b'5\r\nhelloGET / HTTP/1.1\r\nHost: other.example\r\n\r\n']


@pytest.mark.parametrize('chunks', BAD_CHUNKS)
def test_chunks_that_two_parsers_read_differently(world, proxy, chunks):
    head = b'POST / HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: chunked\r\n\r\n'
    proxy.allow('web.example:80')
    exchange(world, WEB, head + chunks)
    assert proxy.wait_event(DENIED, 'bad_http')
    assert b'200 OK' in exchange(world, WEB, head + b'5\r\nhello\r\n0\r\n\r\n')[0]


def test_web_sockets_are_raw_only_after_the_answer(world, proxy):
    proxy.allow('web.example:80')
    upgrade = (b'GET /%s HTTP/1.1\r\nHost: web.example\r\nConnection: Upgrade\r\n'
               b'Upgrade: websocket\r\n\r\n')
    with Peer(world, *WEB) as peer:
        peer.send(upgrade % b'' + b'\x81\x05early')
        got = b''
        while b'early' not in got:
            got += peer.read()
        assert b' 101 ' in got and b'raw:\x81\x05early' in got
        peer.send(b'late')
        assert peer.read() == b'raw:late'
    # the server refuses: what follows is a request again, and is checked
    with nothing_reaches(world, (OTHER_IP, 80)):
        got, _ = exchange(world, WEB, upgrade % b'no' + BAD_REQUESTS['host'][0])
        assert b'200 OK' in got and b'HTTP/1.1 403' in got
    # an upgrade to what could name hosts by itself is not passed on
    for other in (b'h2c', b'h2c, websocket', b'TLS/1.0', b'HTTP/2.0'):
        got, _ = exchange(world, WEB, (upgrade % b'').replace(b'websocket', other))
        assert b'200 OK' in got and other not in got


def test_http_at_other_ports_is_checked_too(world, proxy):
    log = world.serve(web, WEB_IP, 8080)
    proxy.allow('web.example:8080')
    to = ('127.1.0.1', 8080)
    for name in ('host', 'blank first', 'http2', 'lower', 'nul'):
        request, status = BAD_REQUESTS[name]
        assert exchange(world, to, request)[0].startswith(b'HTTP/1.1 %d' % status)
    assert b'200 OK' in exchange(world, to, GET.replace(b'example', b'example:8080'))[0]
    assert log


def test_rules_of_methods_and_paths(world, proxy):
    proxy.allow('web.example:80', 'web.example:443',
                http=[HttpRule(0, 0, b'', b'/secret*'), HttpRule(0, 1, b'GET', b'/*'),
                      HttpRule(0, 1, b'POST', b'/put'),
                      HttpRule(1, 1, b'', b'/*')])

    def status(method, path):
        head = f'{method} {path} HTTP/1.1\r\nHost: web.example\r\n\r\n'
        got, _ = exchange(world, WEB, head.encode())
        return int(got.split()[1])

    for allowed in (('GET', '/a'), ('POST', '/put'), ('GET', '/x?a=../secret'),
                    ('GET', '/%53ecret'), ('GET', '/a%2fsecret'), ('GET', '/a;secret')):
        assert status(*allowed) == 200, allowed
    for denied in (('GET', '/secret'), ('GET', '/secret/x'), ('POST', '/ask'), ('POST', '/put/'),
                   ('DELETE', '/a'), ('GET', '/a/../secret'), ('GET', '/a/%2e%2e/secret'),
                   ('GET', '/%73ecret%2f'), ('GET', '//secret'), ('GET', '/a/%2E./secret'),
                   ('GET', '/%73ecret'), ('GET', '/sec%72et?x'), ('GET', '/secret;x'),
                   ('GET', '/;x/secret'), ('GET', '/a/..;/secret'), ('GET', '/a/..%2fsecret'),
                   ('GET', '/%2573ecret'), ('GET', '/%2e%2fsecret'), ('GET', '/..%5csecret'),
                   ('GET', '/a;x%2Fq/secret'), ('GET', '/;x%2fq/secret'),
                   ('get', '/a'), ('GET', 'http://web.example//secret'), ('OPTIONS', '*'),
                   ('GET', '/%00/../secret'), ('POST', 'http://web.example/secret'),
                   ('GET', '/a HTTP/1.1\r\nX-HTTP-Method-Override: DELETE\r\nX: '),
                   ('POST', '/put HTTP/1.1\r\nX_Original_URL: /secret\r\nX: '),
                   ('GET', '/a HTTP/1.1\r\nDestination: /secret\r\nX: '),
                   ('POST', '/put HTTP/1.1\r\nx-amz-copy-source: /secret\r\nX: ')):
        assert status(*denied) == 403, denied
        event = proxy.wait_event(DENIED, 'http_rule')
        assert event.method.decode() == denied[0] and event.path.decode() in denied[1]
    got, _ = exchange(world, WEB, b'GET /%73ecret HTTP/1.1\r\nHost: web.example\r\n\r\n')
    assert b'GET /%73ecret: by the rule deny * /secret*' in got, got
    assert proxy.wait_event(DENIED, 'http_rule').http == b'deny * /secret*'
    # each request of a connection by itself
    two = b'GET /%s HTTP/1.1\r\nHost: web.example\r\n\r\n'
    got, _ = exchange(world, WEB, two % b'a' + two % b'secret' + two % b'b')
    assert got.count(b'200 OK') == 1 and got.count(b'HTTP/1.1 403') == 1, got
    assert exchange(world, WEB_TLS, hello('web.example'))[0] == ALERT  # they can't be held to there
    assert proxy.wait_event(DENIED, 'http_rule_tls')


ASKED = [HttpRule(0, 1, b'GET', b'/*'), HttpRule(0, 2, b'POST', b'/a*')]
POST = b'POST /a%s HTTP/1.1\r\nHost: web.example\r\n%s\r\n'


def test_a_request_waits_for_a_person(world, proxy):
    """Between others on a connection that is kept; the server is dialled anew for it."""
    proxy.allow('web.example:80', http=ASKED)
    with Peer(world, *WEB) as peer:
        peer.send(GET)
        assert b'200 OK' in peer.read()
        peer.send(POST % (b'?x=1', b'') + GET)
        ask = proxy.wait_ask()
        assert (ask.host, ask.port, ask.method, ask.target, ask.http) == (
            b'web.example', 80, b'POST', b'/a?x=1', b'ask POST /a*')
        proxy.verdict(ask, True)
        got = b''
        while got.count(b'200 OK') < 2:
            piece = peer.read()
            assert piece, got
            got += piece
        assert got.index(b'POST /a?x=1') < got.index(b'GET / ')
        # each is asked about by itself
        peer.send(POST % (b'', b''))
        proxy.verdict(proxy.wait_ask(), False, b'Eve has denied it')
        got = peer.read_all()
        assert got.startswith(b'HTTP/1.1 403') and b'Holt-Reason: http_asked' in got, got
        assert b'POST /a: Eve has denied it' in got
    event = proxy.wait_event(DENIED, 'http_asked')
    assert (event.method, event.path, event.http) == (b'POST', b'/a', b'ask POST /a*')


def test_who_gives_up_waits_no_more(world, proxy):
    """The program, or its sandbox; a late answer is for nobody, also where rules have changed."""
    def wait(peer):
        peer.send(POST % (b'', b''))
        return proxy.wait_ask()

    def is_left(ask):
        until(lambda: ask.h.seq in proxy.left)
        proxy.verdict(ask, True)

    proxy.allow('web.example:80', http=ASKED)
    with Peer(world, *WEB) as peer:
        ask = wait(peer)
    is_left(ask)
    with Peer(world, *WEB) as peer:
        ask = wait(peer)
        proxy.drop()
        assert peer.is_reset()
    is_left(ask)
    proxy.exact.clear()
    proxy.allow('web.example:80', http=ASKED)
    with Peer(world, *WEB) as peer:  # the rules have become others meanwhile
        ask = wait(peer)
        proxy.grant('web.example:80', http=[HttpRule(0, 0, b'', b'*')])
        proxy.verdict(ask, True)
        assert b'HTTP/1.1 403' in peer.read()
    proxy.allow('web.example:80', http=ASKED)
    with Peer(world, *WEB) as peer:
        peer.send(POST % (b'?' + b'y' * 3000, b''))
        assert b'too long to be shown' in peer.read_all()
    assert b'200 OK' in exchange(world, WEB, GET)[0]


# ---- the explicit proxy --------------------------------------------------------------------------

def test_the_explicit_proxy(world, proxy):
    proxy.allow('web.example:80', 'web.example:443', 'web.example:7000')
    for x in ('http://127.0.0.1:3128', 'socks5h://127.0.0.1:3128'):
        for url in ('http://web.example/', 'https://web.example/'):
            done = curl(world, '-x', x, url)
            assert done.returncode == 0 and 'GET / HTTP/1.1' in done.stdout, (x, url, done)
            done = curl(world, '-x', x, url.replace('web', 'other'))
            assert done.returncode != 0 or 'not granted' in done.stdout
            assert proxy.wait_event(DENIED, 'not_granted').host == b'other.example'
    done = curl(world, '-x', 'http://127.0.0.1:3128', 'http://web.example/1',
                'http://other.example/2', 'http://web.example/3')
    assert 'GET /1' in done.stdout and 'GET /3' in done.stdout and 'GET /2' not in done.stdout
    assert 'Proxy-Connection' not in done.stdout
    with Peer(world, *EXPLICIT) as peer:
        peer.send(b'CONNECT web.example:7000 HTTP/1.1\r\n\r\n')
        assert peer.read().startswith(b'HTTP/1.1 200')
        peer.send(b'\0raw')
        assert peer.read() == b'\0raw'


CONNECT = b'CONNECT web.example:%d HTTP/1.1\r\nHost: other.example\r\n\r\n'


def test_inside_connect_the_same_is_checked(world, proxy):
    proxy.allow('web.example:80', 'web.example:443')
    with nothing_reaches(world, (OTHER_IP, 80), (OTHER_IP, 443)):
        got, _ = exchange(world, EXPLICIT, CONNECT % 443, hello('other.example'))
        assert got.endswith(ALERT)
        got, _ = exchange(world, EXPLICIT, CONNECT % 443 + hello('other.example'))
        assert got.endswith(ALERT)
        got, _ = exchange(world, EXPLICIT, CONNECT % 80, BAD_REQUESTS['host'][0])
        assert b'HTTP/1.1 403' in got
        got, _ = exchange(world, EXPLICIT, CONNECT % 80, BAD_REQUESTS['connect'][0])
        assert b'HTTP/1.1 403' in got
        assert exchange(world, EXPLICIT, CONNECT % 443, b'SSH-2.0-x\r\n')[1]
        assert exchange(world, EXPLICIT, CONNECT % 22)[0].startswith(b'HTTP/1.1 403')
        got, _ = exchange(world, EXPLICIT, b'GET http://web.example/ HTTP/1.1\r\n'
                          b'Host: other.example\r\n\r\n')
        assert got.startswith(b'HTTP/1.1 400')
    got, _ = exchange(world, EXPLICIT, CONNECT % 80, GET)
    assert b'HTTP/1.1 200 OK' in got


def test_a_relay_inside_gains_nothing(world, proxy):
    """CONNECT to a granted host that is itself a proxy of the sandbox's making."""
    proxy.allow('web.example:80')
    relayed = b'CONNECT 127.0.0.1:3128 HTTP/1.1\r\n\r\n'
    assert exchange(world, EXPLICIT, relayed)[0].startswith(b'HTTP/1.1 403')
    for name in (b'localhost', b'localhost.', b'x.localhost'):
        got, _ = exchange(world, EXPLICIT, b'CONNECT ' + name + b':3128 HTTP/1.1\r\n\r\n')
        assert got.startswith(b'HTTP/1.1 403')


@pytest.mark.parametrize('data', [b'\4\1\0\x50' + b'\1\2\3\4\0', b'\5\1\2', b'\5\0', b'\x16\3\1',
                                  b'GET / HTTP/1.1\r\nHost: web.example\r\n\r\n', b'\0',
                                  b'CONNECT web.example HTTP/1.1\r\n\r\n',
                                  b'CONNECT web.example:0 HTTP/1.1\r\n\r\n'])
def test_what_is_no_proxy_request(world, proxy, data):
    proxy.allow('web.example:80')
    got, reset = exchange(world, EXPLICIT, data)
    assert reset or b'400' in got or got == b'\5\xff'
    assert proxy.wait_event(DENIED).reason in ('bad_proxy', 'bad_http')


def test_socks_by_hand(world, proxy):
    proxy.allow('web.example:80')
    name = b'\x0bweb.example\0\x50'
    got, _ = exchange(world, EXPLICIT, b'\5\2\2\0', b'\5\1\0\3' + name, GET)
    assert got.startswith(b'\5\0\5\0\0\1' + bytes(6)) and b'200 OK' in got
    got, _ = exchange(world, EXPLICIT, b'\5\1\0\5\1\0\3' + name + GET)  # all at once
    assert b'200 OK' in got
    for request, code in ((b'\5\2\0\3' + name, 7), (b'\5\3\0\3' + name, 7), (b'\5\1\0\2' + name, 8),
                          (b'\5\1\0\1' + socket.inet_aton(OTHER_IP) + b'\0\x50', 2),
                          (b'\5\1\0\4' + socket.inet_pton(socket.AF_INET6, WEB_IP6) + b'\0\x50', 2),
                          (b'\5\1\0\3\x0dother.example\0\x50', 2), (b'\5\1\0\3\x03a\0b\0\x50', 1)):
        got, _ = exchange(world, EXPLICIT, b'\5\1\0', request)
        assert got[:4] == b'\5\0\5' + bytes([code]), (request, got)


# ---- names ---------------------------------------------------------------------------------------

def ask(world, name, kind=1, tcp=False, raw=None):
    query = raw or (b'\x12\x34\1\0\0\1\0\0\0\0\0\0' +
                    b''.join(bytes([len(p)]) + p for p in name.encode().split(b'.') if p) +
                    b'\0' + struct.pack('>HH', kind, 1))
    s = world.inside.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM)
    s.settimeout(10)
    with s:
        s.connect(('127.0.0.1', 53))
        s.sendall((struct.pack('>H', len(query)) if tcp else b'') + query)
        answer = s.recv(2000)
    if tcp:
        assert len(answer) == 2 + struct.unpack('>H', answer[:2])[0]
        answer = answer[2:]
    assert answer[:2] == b'\x12\x34'
    code, n = answer[3] & 15, struct.unpack('>H', answer[6:8])[0]
    return code, socket.inet_ntoa(answer[-4:]) if n else None


def test_the_resolver_knows_the_grants_alone(world, proxy):
    proxy.allow('web.example:80', 'other.example:443')
    world.asked.clear()
    for tcp in (False, True):
        assert ask(world, 'web.example', tcp=tcp) == (0, '127.1.0.1')
        assert ask(world, 'WEB.example', tcp=tcp) == (0, '127.1.0.1')
        assert ask(world, 'other.example', tcp=tcp) == (0, '127.1.0.2')
        assert ask(world, 'localhost', tcp=tcp) == (0, '127.0.0.1')
        for kind in (28, 16, 65, 15, 2, 12):
            assert ask(world, 'web.example', kind, tcp=tcp) == (0, None)
        for name in ('evil.example', 'example', 'x.web.example', 'web.example.evil', 'web',
                     '34.216.184.93.in-addr.arpa', 'a' * 63 + '.' + 'b' * 63 + '.web.example'):
            assert ask(world, name, tcp=tcp) == (3, None), name
        for kind in (251, 252, 255):
            assert ask(world, 'web.example', kind, tcp=tcp) == (5, None)
    for i in range(50):  # labels that would carry something out
        assert ask(world, f'{i:032x}.secret.web.example') == (3, None)
    assert not world.asked
    e = proxy.wait_event(DENIED, 'not_granted', 'evil.example')
    assert e.by == 3
    curl(world, 'http://web.example/')
    assert ('web.example', 1) in world.asked  # the proxy's own question, the control


def test_bad_queries(world, proxy):
    proxy.allow('web.example:80')
    head = b'\x12\x34\1\0\0\1\0\0\0\0\0\0'
    for raw in (head, head + b'\3web', head + b'\xc0\x0c\0\1\0\1', head + b'\0\0\1',
                b'\x12\x34\1\0\0\2\0\0\0\0\0\0\0\0\1\0\1\0\0\1\0\1',
                head + b'\3web\7example\0\0\1\0\1junk'):
        assert ask(world, '', raw=raw)[0] == 1, raw
    assert ask(world, '', raw=b'\x12\x34\x28\0' + head[4:] + b'\0\0\1\0\1')[0] == 4
    s = world.inside.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with s:
        s.connect(('127.0.0.1', 53))
        for raw in (b'', b'x' * 11, b'\x12\x34\x81\0' + head[4:] + b'\0\0\1\0\1', b'x' * 2000):
            s.send(raw)
    edns = b'\x12\x34\1\0\0\1\0\0\0\0\0\1\3web\7example\0\0\1\0\1\0\0\x29\x10\0\0\0\0\0\0\0'
    with world.inside.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(10)
        s.connect(('127.0.0.1', 53))
        s.send(edns)
        answer = s.recv(1500)
    assert answer[3] & 15 == 0 and answer[11] == 1 and b'\0\0\x29' in answer


def test_names_of_a_wildcard_get_an_address_when_they_are_asked_for(world, proxy):
    proxy.allow('*.wild.example:80', '*.wild.example:443')
    assert ask(world, 'wild.example') == (3, None)
    code, ip = ask(world, 'deep.wild.example')
    assert code == 0 and ip == '127.2.0.1'
    assert ask(world, 'deep.wild.example', tcp=True) == (0, ip)
    for url in ('http://deep.wild.example/', 'https://deep.wild.example/',
                'http://a.b.wild.example/'):
        assert curl(world, url).returncode == 0, url
    assert ask(world, 'a.b.wild.example') == (0, '127.2.0.2')
    assert len(proxy.wants) == 2 and list(proxy.wants[0].ports[:2]) == [80, 443]
    # the address is of that name alone
    got, _ = exchange(world, (ip, 80), b'GET / HTTP/1.1\r\nHost: a.b.wild.example\r\n\r\n')
    assert got.startswith(b'HTTP/1.1 403')


def test_names_of_a_wildcard_are_bounded(world, start):
    proxy = start(Limits(names=4))
    proxy.allow('*.wild.example:80')
    got = [ask(world, f'n{i}.wild.example') for i in range(6)]
    assert [code for code, _ in got] == [0] * 4 + [2] * 2


def test_a_hub_that_makes_no_sockets(world, proxy):
    proxy.makes_sockets = False
    proxy.allow('*.wild.example:80')
    assert ask(world, 'n.wild.example') == (2, None)
    proxy.makes_sockets = True
    assert ask(world, 'n.wild.example')[0] == 0


# ---- grants change -------------------------------------------------------------------------------

def test_a_change_keeps_what_stays_allowed(world, proxy):
    proxy.allow('web.example:7000', 'other.example:7000', 'web.example:80')
    with Peer(world, '127.1.0.1', 7000) as stays, Peer(world, '127.1.0.2', 7000) as goes:
        for peer in (stays, goes):
            peer.send(b'\0hi')
            assert peer.read() == b'\0hi'
        proxy.allow('x.example:1', 'web.example:7000')
        assert goes.is_reset()
        stays.send(b'still')
        assert stays.read() == b'still'
        assert proxy.wait_event(CLOSED, 'revoked').host == b'other.example'
        with pytest.raises(ConnectionRefusedError):
            Peer(world, '127.1.0.2', 7000)
        with pytest.raises(ConnectionRefusedError):
            Peer(world, '127.1.0.1', 80)
        assert ask(world, 'other.example') == (3, None)
        assert ask(world, 'web.example') == (0, '127.1.0.1')
        proxy.drop()
        assert stays.is_reset()
    with pytest.raises(ConnectionRefusedError):
        Peer(world, '127.1.0.1', 7000)
    proxy.drop()


def test_sandboxes_have_nothing_of_each_other(world, proxy):
    proxy.allow('web.example:80', key=1)
    proxy.grant('other.example:80', key=2)
    with pytest.raises(Refused):
        proxy.give([(LISTEN, 0x7f010009, 80, 'web.example')], key=3)
    assert ask(world, 'other.example') == (3, None)
    proxy.drop(2)
    assert curl(world, 'http://web.example/').returncode == 0


def test_services_of_the_host(world, proxy, tmp_path):
    world.serve(echo, '127.0.0.1', 5432, where=world.host)
    path = '/tmp/egress-%d.sock' % os.getpid()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    os.chmod(path, 0o777)
    listener.listen()
    try:
        proxy.allow(rule('db.holt:5432', '127.0.0.1:5432'), rule('sock.holt:80', 'unix:' + path))
        assert ask(world, 'db.holt')[0] == 0
        with Peer(world, '127.1.0.1', 5432) as peer:
            peer.send(b'hi')
            assert peer.read() == b'hi'
        with Peer(world, '127.1.0.2', 80) as peer:
            connection, _ = listener.accept()
            connection.sendall(b'from the host')
            connection.close()
            assert peer.read_all() == b'from the host'
        with Peer(world, '127.1.0.1', 5432) as peer:
            peer.send(b'hi')
            peer.read()
            proxy.allow(rule('db.holt:5432', '127.0.0.1:5433'))  # another one: not the same service
            assert peer.is_reset()
    finally:
        listener.close()
        os.unlink(path)


# ---- limits --------------------------------------------------------------------------------------

def test_flows_are_bounded_for_each_sandbox(world, start):
    proxy = start(Limits(flows=8))
    proxy.allow('web.example:7000')
    peers = []
    for _ in range(8):
        peers.append(Peer(world, '127.1.0.1', 7000))
        peers[-1].send(b'\0x')
        assert peers[-1].read() == b'\0x'
    assert is_refused(world, '127.1.0.1', 7000)
    assert proxy.wait_event(DENIED, 'limit_flows')
    for peer in peers:
        peer.close()
    proxy.wait_event(CLOSED)
    with Peer(world, '127.1.0.1', 7000) as peer:
        peer.send(b'\0y')
        assert peer.read() == b'\0y'


def answers(world, *to):
    """Whether an echo comes back."""
    with contextlib.suppress(ConnectionResetError, BrokenPipeError), Peer(world, *to) as peer:
        peer.send(b'\0x')
        return peer.read() == b'\0x'
    return False


def test_new_flows_are_bounded_in_a_second(world, start):
    proxy = start(Limits(flows_per_s=5))
    proxy.allow('web.example:7000')
    assert 0 < sum(answers(world, '127.1.0.1', 7000) for _ in range(30)) < 30
    assert proxy.wait_event(DENIED, 'limit_rate')


def test_a_rate_of_bytes_is_held(world, start):
    proxy = start(Limits(bytes_per_s=1 << 20))
    proxy.allow('web.example:7000', 'web.example:80')
    body = b'\0' * (1 << 20)
    start = time.monotonic()
    got, _ = exchange(world, ('127.1.0.1', 7000), body)
    # both ways together, and a second's worth passes at once
    assert got == body and time.monotonic() - start > 0.5
    got, _ = exchange(world, WEB, b'POST / HTTP/1.1\r\nHost: web.example\r\n'
                      b'Content-Length: 300000\r\n\r\n' + body[:300000])
    assert got.endswith(body[:300000])


def test_slow_clients_are_cut(world, start):
    proxy = start(Limits(handshake_ms=300, idle_ms=5000))
    proxy.allow('web.example:80', 'web.example:443', 'web.example:7000')
    for to, data in ((WEB, b''), (WEB, b'GET / HT'), (WEB_TLS, b'\x16\3'), (EXPLICIT, b'CONN')):
        with Peer(world, *to) as peer:
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                peer.send(data)
                assert b'200' not in peer.read_all()
        assert proxy.wait_event(DENIED, 'slow')
    with Peer(world, '127.1.0.1', 7000) as peer:  # nothing has to be said there
        peer.send(b'\0x')
        assert peer.read() == b'\0x'
        assert peer.is_reset()
    assert proxy.wait_event(CLOSED, 'idle')


def test_out_of_descriptors(world, start):
    proxy = start(Limits(flows_per_s=10000, flows=10000),
                  wrap=['setpriv', '--bounding-set=-sys_resource',
                        '--inh-caps=-sys_resource', 'prlimit', '--nofile=64:64'])
    proxy.allow('web.example:7000')
    peers = []
    for _ in range(100):
        with contextlib.suppress(ConnectionResetError):
            peers.append(Peer(world, '127.1.0.1', 7000))
    until = time.monotonic() + 20
    while not any(e.reason == 'limit_host' for e in proxy.events):
        assert time.monotonic() < until
    for peer in peers:
        peer.close()
    while not answers(world, '127.1.0.1', 7000):
        assert time.monotonic() < until


def test_a_hub_that_does_not_read_stops_nothing(world, start):
    proxy = start(Limits(queries_per_s=1000000))
    proxy.allow('web.example:80')
    proxy.reads.clear()
    for i in range(4000):  # each is an event
        assert ask(world, f'n{i}.example') == (3, None)
    assert curl(world, 'http://web.example/').returncode == 0
    proxy.reads.set()
    proxy.allow('web.example:80')  # answers are not dropped
    until = time.monotonic() + 20
    while not any(e.lost for e in proxy.events):
        ask(world, f'n{time.monotonic_ns()}.example')
        assert time.monotonic() < until
    assert 0 < len(proxy.events) < 4000


# ---- the process ---------------------------------------------------------------------------------

def test_it_has_no_rights(world, proxy):
    proxy.allow('web.example:80')
    with open(f'/proc/{proxy.process.pid}/status', encoding='utf-8') as f:
        status = dict(line.split(':\t', 1) for line in f.read().splitlines() if ':\t' in line)
    assert status['Uid'].split() == ['65534'] * 4 and status['Gid'].split() == ['65534'] * 4
    assert status['Groups'].strip() == '' and int(status['CapEff'], 16) == 0
    assert int(status['CapPrm'], 16) == 0 and status['NoNewPrivs'] == '1'
    with open(PROGRAM, 'rb') as f:
        sanitized = b'__asan_init' in f.read()
    assert sanitized or status['Seccomp'] == '2'
    assert sanitized or os.stat(f'/proc/{proxy.process.pid}/environ').st_uid == 0  # not dumpable


@pytest.mark.parametrize('end', ['hub', 'kill'])
def test_nothing_outlives_it(world, start, end):
    proxy = start()
    proxy.allow('web.example:7000')
    with Peer(world, '127.1.0.1', 7000) as peer:
        peer.send(b'\0x')
        assert peer.read() == b'\0x'
        if end == 'hub':
            proxy.close()
        else:
            kill(proxy.process)
        with contextlib.suppress(ConnectionResetError):
            assert peer.read_all() == b''
    with pytest.raises(ConnectionRefusedError):
        Peer(world, '127.1.0.1', 7000)
    again = start()  # a new one is told all again
    again.allow('web.example:80')
    assert curl(world, 'http://web.example/').returncode == 0


def test_messages_that_are_wrong(world, proxy):
    proxy.allow('web.example:80')
    bad = rule('web.example:80')
    bad.host = b'Web.Example'
    for rules in ([bad], [rule('web.example:1')] * 257):
        with pytest.raises(Refused):
            proxy.grant(*rules)
    with pytest.raises(Refused):
        proxy.grant('web.example:80', http=[HttpRule(5, 1, b'', b'/')])
    for s in ((LISTEN, 0x0a000001, 80, 'web.example'), (9, 0x7f010002, 80, ''),
              (LISTEN, 0x7f010002, 80, 'UPPER.example')):
        with pytest.raises((Refused, OSError)):
            proxy.give([s])
    assert curl(world, 'http://web.example/').returncode == 0  # what stood still stands
