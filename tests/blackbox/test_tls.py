"""TLS of `holt serve`, with curl, openssl, Python and Node.js as clients: who may come in, with
what, and how a certificate is renewed while the hub runs."""

import base64
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

from certificates import Authority
from client import until
from door import WAIT, Closed, DoorHost, Wire, trusting
from rest import Rest
from talk import Exec
from test_serve import INITIALIZE, post, serve  # noqa: F401 (serve is a fixture)


@pytest.fixture(scope='module')
def certs(tmp_path_factory):
    class Made:
        top = tmp_path_factory.mktemp('certs')
        ours, other = Authority(top, 'ours'), Authority(top, 'other')
        server = ours.sign('server')
        expired = ours.sign('expired', days=-1)
        client = ours.sign('client', usage='clientAuth')
        old_client = ours.sign('old-client', usage='clientAuth', days=-1)
        no_client = ours.sign('no-client', usage='serverAuth')
        stranger = other.sign('stranger', usage='clientAuth')
    return Made


def flags(pair, ca=None):
    return ['--tls-cert', pair[0], '--tls-key', pair[1], *(['--tls-client-ca', ca] if ca else [])]


@pytest.fixture(scope='module')
def hub(me, certs, tmp_path_factory):
    with Tls(me, tmp_path_factory.mktemp('tls-hub'), certs, *flags(certs.server)) as shared:
        yield shared


@pytest.fixture(scope='module')
def closed(me, certs, tmp_path_factory):
    """A hub whose clients need a certificate."""
    with Tls(me, tmp_path_factory.mktemp('tls-closed'), certs,
             *flags(certs.server, certs.ours.path), client=certs.client) as shared:
        yield shared


class Tls(Rest):
    def __init__(self, who, home, certs, *arguments, client=None):
        self.context = trusting(certs.ours.path)
        if client:
            self.context.load_cert_chain(*client)
        super().__init__(who, home, '--listen', '127.0.0.1:0', '--pool', '0', *arguments)

    def wire(self, **options):
        return super().wire(**{'tls': self.context, **options})

    @property
    def url(self):
        return f'https://localhost:{self.address[1]}'


def curl(hub, *arguments, path='/version'):
    return subprocess.run(['curl', '-sS', '-m', '20', '-o', '-', '-w', '%{http_code}', '-H',
                           f'Authorization: Bearer {hub.token}', *arguments, hub.url + path],
                          capture_output=True, text=True, check=False)


def s_client(hub, *arguments, send=b'', timeout=WAIT):
    done = subprocess.run(['openssl', 's_client', '-connect', f'127.0.0.1:{hub.address[1]}',
                           *arguments], input=send, capture_output=True, timeout=timeout,
                          check=False)
    return (done.stdout + done.stderr).decode('utf-8', 'replace')


# ---- what is refused ----------------------------------------------------------------------------

def test_curl_trusts_the_right_authority_alone(hub, certs):
    right = curl(hub, '--cacert', certs.ours.path)
    assert right.stdout.endswith('200'), right
    wrong = curl(hub, '--cacert', certs.other.path)
    assert wrong.returncode == 60 and wrong.stdout == '000', wrong


def test_an_expired_certificate_is_refused_by_clients(serve, certs):  # noqa: F811
    shown = serve(*flags(certs.expired))
    with pytest.raises(ssl.SSLCertVerificationError, match='expired'):
        shown.wire(tls=trusting(certs.ours.path))


@pytest.mark.parametrize('version, spoken', [('-tls1', False), ('-tls1_1', False),
                                             ('-tls1_2', True), ('-tls1_3', True)])
def test_versions(hub, certs, version, spoken):
    said = s_client(hub, '-CAfile', certs.ours.path, version, '-cipher', 'ALL:@SECLEVEL=0')
    assert ('Cipher is (NONE)' in said) != spoken, said


@pytest.mark.parametrize('cipher', ['AES128-GCM-SHA256', 'ECDHE-ECDSA-AES128-SHA'])
def test_without_forward_secrecy_or_with_cbc(hub, cipher):
    said = s_client(hub, '-tls1_2', '-cipher', f'{cipher}:@SECLEVEL=0')
    assert 'Cipher is (NONE)' in said, said


def test_plain_http_gets_no_answer(hub):
    with Wire(hub.address) as wire:
        wire.send(hub.request())
        assert b'HTTP' not in wire.ended()
    hub.works()


def test_noise_gets_no_answer(hub):
    for noise in (b'\x16\x03\x01\xff\xff' + b'x' * 4096, b'\x16\x03\x01\x00\x00' * 500, b'\0' * 100,
                  b'\x15\x03\x01\x00\x02\x02\x28'):
        with Wire(hub.address) as wire:
            wire.send(noise)
            try:
                wire.sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it has hung up already
            assert b'HTTP' not in wire.ended()
    hub.works()


# ---- every door ---------------------------------------------------------------------------------

def test_mcp_and_its_streams(hub):
    with hub.wire() as wire:
        session = wire.ask(post(hub, INITIALIZE)).get('Mcp-Session-Id')
        wire.send(hub.request(path='/mcp', fields=['Accept: text/event-stream',
                                                   f'Mcp-Session-Id: {session}']))
        assert wire.head()[0] == 200
    with hub.wire() as wire:
        wire.send(hub.request(path='/sse', fields=['Accept: text/event-stream']))
        assert wire.head()[0] == 200
        assert b'event: endpoint' in wire.chunk()


@pytest.fixture(scope='module')
def box(hub):
    made = hub.create(template='host')
    yield made
    hub.delete(made)


def runs(hub, box):
    found = hub.call('GET', f'/v1/sandboxes/{box}/processes')['processes']
    return [p for p in found if 'sleep 1234' in p['command']]


def test_rest_and_large_bodies(hub, box):
    text = os.urandom(6 << 20)
    hub.post('/v1/files/write', sandbox=box, path='big', encoding='base64',
             content=base64.b64encode(text).decode())
    got = hub.raw('GET', f'/v1/sandboxes/{box}/archive?path=big')
    assert got.status == 200 and text in got.body
    ran = hub.exec(box, 'head -c 3000000 /dev/zero | tr "\\0" x', max_output_bytes=4 << 20)
    assert len(ran['stdout']) == 3000000


def test_connect_streams(hub, box):
    events = hub.stream('ExecStream', box, {'command': 'echo over TLS'})
    assert base64.b64decode(events[0]['stdout']) == b'over TLS\n', events


def test_a_websocket_both_ways(hub, box):
    """Several MiB, of which a part is on its way at any time."""
    data, piece, ahead = os.urandom(8 << 20), 1 << 16, 1 << 18
    with Exec(hub, box, 'cat') as x:
        for at in range(0, len(data), piece):
            x.type(data[at:at + piece])
            while len(x.out) < at - ahead:
                assert x.hear()
        x.say(stdin_close=True)
        assert x.end().out == data and x.exit['exit_code'] == 0 and x.closed == (1000, '')


def test_a_websocket_whose_client_leaves_ends_its_command(hub, box):
    with Exec(hub, box, 'exec sleep 1234'):
        until(lambda: runs(hub, box))
    until(lambda: not runs(hub, box))


NODE = '''
const https = require('https'), fs = require('fs');
const [url, ca, token] = process.argv.slice(1);
const options = { ca: fs.readFileSync(ca), headers: { Authorization: 'Bearer ' + token } };
const get = (path, more) => new Promise((done, failed) =>
  https.get(url + path, { ...options, ...more }, done).on('upgrade', done).on('error', failed));
(async () => {
  const version = await get('/version');
  const sse = await get('/sse', { headers: { ...options.headers, Accept: 'text/event-stream' } });
  const first = await new Promise((done) => sse.once('data', done));
  sse.destroy();
  const wrong = await get('/version', { ca: fs.readFileSync('/dev/null') }).catch((e) => e.code);
  console.log(JSON.stringify([version.statusCode, first.toString(), wrong]));
  process.exit(0);
})();
'''


def test_node(hub, certs):
    if not shutil.which('node'):
        pytest.skip('Node.js is missing: scripts/deps test')
    done = subprocess.run(['node', '-e', NODE, hub.url, certs.ours.path, hub.token],
                          capture_output=True, text=True, timeout=60, check=False)
    status, first, wrong = json.loads(done.stdout)
    assert status == 200 and 'endpoint' in first and 'VERIFY' in wrong + '', done


# ---- certificates of clients --------------------------------------------------------------------

def test_a_client_of_the_authority(closed, certs):
    closed.works()
    assert closed.ask(token=None).status == 401  # it replaces no token
    done = curl(closed, '--cacert', certs.ours.path, '--cert', certs.client[0], '--key',
                certs.client[1])
    assert done.stdout.endswith('200'), done


@pytest.mark.parametrize('who', [None, 'stranger', 'old_client', 'no_client'])
@pytest.mark.parametrize('version', [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_all_others_are_refused_at_the_handshake(closed, certs, who, version):
    context = trusting(certs.ours.path)
    context.minimum_version = context.maximum_version = version
    if who:
        context.load_cert_chain(*getattr(certs, who))
    before = closed.metrics().get('holt_http_requests_total')
    with pytest.raises((ssl.SSLError, ConnectionResetError, BrokenPipeError)):
        with Wire(closed.address, tls=context) as wire:  # TLS 1.3 tells it with the first answer
            wire.sock.sendall(closed.request(path='/healthz', token=None).encode())
            assert b'HTTP' not in wire.sock.recv(1000)
            raise ConnectionResetError
    assert closed.metrics().get('holt_http_requests_total') == (before and before + 1)


# ---- slow handshakes ----------------------------------------------------------------------------

@pytest.mark.timing
def test_handshakes_have_a_time(certs):
    """Those that never begin, stop in the middle, or drip, end as a request's head would."""
    door = DoorHost(certificate=certs.server[0], key=certs.server[1], header_ms=1000)
    try:
        begun = time.monotonic()
        silent, half, drip = (door.wire(tls=None) for _ in range(3))
        half.send(b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03')
        drip.send(b'\x16\x03\x01\x02\x00')
        drip.sock.settimeout(0.1)
        with pytest.raises((OSError, EOFError)):
            while time.monotonic() - begun < WAIT:
                drip.send(b'\x01')
                try:
                    if not drip.sock.recv(100):
                        raise EOFError
                except socket.timeout:
                    pass
        assert silent.ended() == b'' and b'HTTP' not in half.ended()
        assert time.monotonic() - begun < 15
        door.finish()
    finally:
        door.kill()


# ---- renewal ------------------------------------------------------------------------------------

def copy(pair, to):
    """As renewing programs do: other files take the names."""
    for i, name in ((1, 'key.pem'), (0, 'cert.pem')):
        new = str(to / (name + '.new'))
        with open(pair[i], 'rb') as f, open(os.open(new, os.O_WRONLY | os.O_CREAT, 0o600),
                                            'wb') as out:
            out.write(f.read())
        os.rename(new, str(to / name))
    return str(to / 'cert.pem'), str(to / 'key.pem')


def serial(hub):
    with socket.create_connection(hub.address) as plain:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(plain) as wire:
            return wire.getpeercert(binary_form=True)


def der(pair):
    with open(pair[0], encoding='ascii') as f:
        return ssl.PEM_cert_to_DER_cert(f.read())


def test_renewal_while_it_runs(me, certs, tmp_path):
    pair = copy(certs.server, tmp_path)
    with Tls(me, tmp_path / 'home', certs, *flags(pair)) as hub:
        assert serial(hub) == der(certs.server)
        with hub.wire() as old:
            assert old.ask(hub.request()).status == 200
            renewed = certs.ours.sign('renewed')
            copy(renewed, tmp_path)
            until(lambda: serial(hub) == der(renewed))
            assert old.ask(hub.request()).status == 200  # it goes on with what it has
        (tmp_path / 'cert.pem').write_text('rubbish')
        until(lambda: 'the certificate stays as it was' in hub.said())
        assert serial(hub) == der(renewed)
        os.remove(pair[1])
        copy(certs.server, tmp_path)
        until(lambda: serial(hub) == der(certs.server))


def one_of(pair, i, to):
    name = ('cert.pem', 'key.pem')[i]
    new = to / (name + '.new')
    shutil.copy(pair[i], new)
    new.chmod(0o600)
    new.rename(to / name)


def test_one_file_after_the_other(me, certs, tmp_path):
    """What does not fit yet is not served; clients see the one or the other, and are never
    refused."""
    pair, now = copy(certs.server, tmp_path), certs.server
    stays = 'the certificate stays as it was'
    with Tls(me, tmp_path / 'home', certs, *flags(pair)) as hub:
        for turn, order in enumerate(((0, 1), (1, 0)), 1):
            renewed = certs.ours.sign(f'in-two-steps-{turn}')
            told = hub.said().count(stays)
            one_of(renewed, order[0], tmp_path)
            until(lambda told=told: serial(hub) == der(now) and hub.said().count(stays) > told,
                  what='a pair that does not fit')
            hub.works()
            one_of(renewed, order[1], tmp_path)
            until(lambda: serial(hub) in (der(now), der(renewed)) and
                  serial(hub) == der(renewed), what='the pair')
            now = renewed


def test_a_renewal_while_it_starts(me, certs, tmp_path):
    """Behind what it has read, and before it looks for changes."""
    pair, renewed = copy(certs.server, tmp_path), certs.ours.sign('early')
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]

    class Early(Tls):
        proc = None

        def renew(self):
            while True:
                try:
                    socket.create_connection(('127.0.0.1', port)).close()
                    break
                except OSError:
                    assert not self.proc or self.proc.poll() is None
            until(lambda: self.proc)  # it may listen before that is set
            self.proc.send_signal(signal.SIGSTOP)
            copy(renewed, tmp_path)
            self.proc.send_signal(signal.SIGCONT)

        def __init__(self, *arguments):
            thread = threading.Thread(target=self.renew)
            thread.start()
            super().__init__(*arguments, '--listen', f'127.0.0.1:{port}')
            thread.join()
    with Early(me, tmp_path / 'home', certs, *flags(pair)) as hub:
        until(lambda: serial(hub) == der(renewed))


def test_the_operators_file(me, certs, tmp_path):
    """It names the files; another name holds without a restart, and so do other authorities."""
    home = tmp_path / 'home'
    home.mkdir(mode=0o700)
    config = home / 'config.json'
    one = {'certificate': certs.server[0], 'key': certs.server[1]}
    config.write_text(json.dumps({'tls': one}))
    with Tls(me, home, certs) as hub:
        hub.works()
        two = certs.ours.sign('second')
        config.write_text(json.dumps({'tls': {'certificate': two[0], 'key': two[1],
                                              'client_ca': certs.ours.path}}))
        until(lambda: serial_or_none(hub) == der(two))
        with pytest.raises((ssl.SSLError, OSError, Closed)):
            with hub.wire() as wire:
                wire.ask(hub.request())
        config.write_text(json.dumps({'tls': one}))
        until(lambda: serial(hub) == der(certs.server))
        config.write_text(json.dumps({'tls': {'certificate': 'here.pem', 'key': one['key']}}))
        until(lambda: 'a path from / on' in hub.said())
        config.write_text('{}')
        until(lambda: 'until the hub is started again' in hub.said())


def serial_or_none(hub):
    try:
        return serial(hub)
    except OSError:
        return None


@pytest.mark.parametrize('mode, ok', [(0o600, True), (0o400, True), (0o644, False),
                                      (0o660, False), (0o604, False)])
def test_modes_of_the_key(me, certs, tmp_path, mode, ok):
    pair = copy(certs.server, tmp_path)
    os.chmod(pair[1], mode)
    if ok:
        with Tls(me, tmp_path / 'home', certs, *flags(pair)):
            return
    done = me.run('serve', '--listen', '127.0.0.1:0', *flags(pair), text=True,
                  env={'HOLT_HOME': str(tmp_path / 'home')})
    assert done.returncode == 125 and 'others may use the private key' in done.stderr, done


@pytest.mark.parametrize('change, cause', [
    (lambda c: flags((c.server[0], c.client[1])), "can't be used"),
    (lambda c: flags(c.server, c.server[1]), 'authorities of clients'),
    (lambda c: flags(c.server, '/nowhere'), 'open /nowhere'),
    (lambda c: flags((c.server[1], c.server[1])), "can't be used"),
    (lambda c: ['--tls-client-ca', c.ours.path], '--tls-client-ca'),
], ids=['other key', 'no authority', 'no file', 'no certificate', 'alone'])
def test_what_can_not_be_served(me, certs, tmp_path, change, cause):
    done = me.run('serve', '--listen', '127.0.0.1:0', *change(certs), text=True,
                  env={'HOLT_HOME': str(tmp_path)})
    assert done.returncode == 125 and cause in done.stderr, done
