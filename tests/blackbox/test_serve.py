"""`holt serve` as a whole: its routes, its token, its addresses, its end.
The real program over real sockets.

What the door does byte by byte is in test_door.py, and what MCP does over it in test_http_*.py.
"""

import json
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import sys
import time

import pytest

from client import data_of, until
from door import Wire, request, trusting
from test_door import WRONG, certificate, refused  # noqa: F401 (certificate is a fixture)
from who import HERE

SRC = os.path.join(HERE, '../../src')
GRACE = 10  # seconds that what is in flight has
STEP_MAX = 0.25  # seconds of a processor for one step of a hub's loop, as check_step() means them

# Python reads the largest message that a hub takes: ten megabytes of base64 in JSON.
PEER = """
import base64, json, os, time
text = json.dumps({'data': base64.b64encode(os.urandom(10 << 20)).decode()})
began = time.process_time()
base64.b64decode(json.loads(text)['data'])
print(time.process_time() - began)
"""
PEER_SECONDS = 0.03  # that it takes where the bounds of steps were set


def check_step(hub, bound=STEP_MAX, what=''):
    """The longest step of the hub's loop so far, by the processor's time, of which nobody else on a
    busy machine takes. Where Python is slower, the bound is as much larger. A sanitized build has
    none."""
    longest = hub.metrics().get('holt_loop_step_cpu_max_seconds', 0)  # not told to each key
    if longest > bound and 'ASAN_OPTIONS' not in os.environ:
        peer = float(subprocess.run([sys.executable, '-c', PEER], check=True,
                                    stdout=subprocess.PIPE).stdout)
        assert longest <= bound * peer / PEER_SECONDS, (what, longest, peer)
    return longest


class Serve:
    """A running `holt serve`, with a home of its own."""

    def __init__(self, who, home, *arguments, env=None):
        self.who, self.home = who, str(home)
        self.env = {**who.env, 'HOLT_HOME': self.home, **(env or {})}
        self.log = who.log()
        with open(self.log, 'wb') as stderr:
            self.proc = subprocess.Popen(who.argv('serve', *arguments), env=self.env, cwd='/',
                                         stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, stderr=stderr,
                                         start_new_session=True, text=True)
        self.lines = []
        for line in self.proc.stdout:
            self.lines.append(line.rstrip('\n'))
            if 'auth token' in line:
                break
        found = [re.fullmatch(r'Listening on https?://(.*):(\d+)', line) for line in self.lines]
        self.addresses = [(m[1], int(m[2])) for m in found if m]
        self.paths = [line[13:] for line in self.lines if line.startswith('Listening on /')]
        self.address = (self.addresses[0] if self.addresses else self.paths[0] if self.paths
                        else None)
        self.cached = None

    @property
    def token(self):
        if not self.cached:
            done = self.who.run('auth', 'token', env=self.env, text=True)
            assert done.returncode == 0, done
            self.cached = done.stdout.strip()
        return self.cached

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """It must still work, and end well."""
        try:
            if not kind:
                self.works()
                assert self.end() == 0, self.said()
        finally:
            self.kill()

    def said(self):
        with open(self.log, encoding='utf-8', errors='replace') as f:
            return f.read()

    def request(self, method='GET', path='/version', **options):
        return request(method, path, **{'token': self.token, **options})

    def wire(self, **options):
        try:
            return Wire(self.address, **options)
        except ConnectionRefusedError as e:
            raise ConnectionRefusedError(e.errno, f'{self.proc.poll()}: {self.said()}') from None

    def ask(self, method='GET', path='/version', **options):
        text = self.request(method, path, **options)  # may start a program first
        with self.wire() as wire:
            return wire.ask(text, method)

    def works(self):
        """Also, nothing that a test did has held the hub's loop."""
        reply = self.ask()
        assert reply.status == 200 and json.loads(reply.body)['name'] == 'holt', reply
        check_step(self)

    def metrics(self):
        text = self.ask(path='/metrics').body.decode()
        return {name: float(value) for name, value in re.findall(r'^([a-z_]+(?:\{[^}]*\})?) (\S+)$',
                                                                 text, re.M)}

    def end(self, number=signal.SIGTERM, timeout=60):
        self.proc.send_signal(number)
        return self.proc.wait(timeout)

    def kill(self):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()
        self.proc.stdout.close()


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    with Serve(me, tmp_path_factory.mktemp('hub'), '--listen', '127.0.0.1:0',
               '--pool', '0') as shared:
        yield shared


@pytest.fixture
def serve(me, tmp_path):
    """Starts hubs of one home; each that still runs must end well."""
    started = []

    def run(*arguments, **options):
        if '--listen' not in arguments:
            arguments = ('--listen', '127.0.0.1:0', *arguments)
        started.append(Serve(me, tmp_path, '--pool', '0', *arguments, **options))
        return started[-1]
    yield run
    try:
        for one in started:
            assert one.proc.poll() is not None or one.end() == 0, one.said()
    finally:
        for one in started:
            one.kill()


def post(hub, message, path='/mcp', fields=(), **options):
    return hub.request('POST', path, body=json.dumps(message),
                       fields=['Accept: application/json, text/event-stream', *fields], **options)


INITIALIZE = {'jsonrpc': '2.0', 'id': 0, 'method': 'initialize', 'params': {
    'protocolVersion': '2025-11-25', 'capabilities': {},
    'clientInfo': {'name': 'test', 'version': '1'}}}


class Session:
    """Just enough of a legacy client."""

    def __init__(self, hub, path='/mcp', **capabilities):
        self.hub, self.path = hub, path
        params = {**INITIALIZE['params'], 'capabilities': capabilities}
        with hub.wire() as wire:
            reply = wire.ask(post(hub, {**INITIALIZE, 'params': params}, path))
            assert reply.status == 200, reply
            self.fields = [f'Mcp-Session-Id: {reply.get("Mcp-Session-Id")}',
                           'MCP-Protocol-Version: 2025-11-25']
            done = wire.ask(post(hub, {'jsonrpc': '2.0', 'method': 'notifications/initialized'},
                                 path, fields=self.fields))
            assert done.status == 202, done

    def send(self, wire, method, params):
        wire.send(post(self.hub, {'jsonrpc': '2.0', 'id': 7, 'method': method, 'params': params},
                       self.path, fields=self.fields))

    def call(self, wire, tool, /, **arguments):
        self.send(wire, 'tools/call', {'name': tool, 'arguments': arguments})

    def ask(self, wire, method, **params):
        self.send(wire, method, params)
        return self.result(wire)

    def answer(self, wire):
        text = wire.reply().body.decode()
        if text.startswith('{'):
            return json.loads(text)
        return next(m for m in (json.loads(line[6:])
                                for line in text.split('\n') if line.startswith('data: {'))
                    if m.get('id') == 7)

    def result(self, wire):
        return self.answer(wire)['result']

    def create(self):
        with self.hub.wire() as wire:
            self.call(wire, 'sandbox_create', pool='host')
            result = self.result(wire)
            assert not result.get('isError'), result['content'][0]['text']
            return data_of(result)['sandbox']

    def run(self, sandbox, command):
        with self.hub.wire() as wire:
            self.call(wire, 'sandbox_exec', sandbox=sandbox, command=command)
            result = self.result(wire)
            assert not result.get('isError'), result['content'][0]['text']
            return data_of(result)['stdout']

    def stream(self):
        """An open GET stream."""
        wire = self.hub.wire()
        wire.send(self.hub.request(path='/mcp', fields=[*self.fields, 'Accept: text/event-stream']))
        status, _ = wire.head()
        assert status == 200
        return wire


# ---- routes ---------------------------------------------------------------------------------

FOLDERS = ('cli', 'mcp', 'door')
ELSEWHERE = {  # where rows are tried that this hub does not serve, or that are no literals
    'listen.c': 'of a client that waits for its browser',
    'api.c': 'test_keys.py, by the OpenAPI document',
    'e2b.c': 'test_e2b.py',
    'expose.c': 'test_expose.py', 'expose_preview.c': 'test_preview.py'}
VIEWS = ['/', '/login', '/inbox', '/c', '/c/', '/s', '/s/', '/m', '/m/', '/audit', '/policy',
         '/health', '/settings']  # of the page: they have no data
OPEN = {('/healthz', 'GET'), ('/assets/', 'GET'), ('/session', 'POST'),
        *((path, 'GET') for path in VIEWS)}


def routes():
    """All routes that the sources have: path, methods, open."""
    found = []
    for folder in FOLDERS:
        names = [os.path.join(top, name) for top, _, names in os.walk(os.path.join(SRC, folder))
                 for name in names if name.endswith('.c') and name not in ELSEWHERE]
        assert names, folder
        for name in names:
            with open(name, encoding='utf-8') as f:
                text = f.read()
            if 'struct http_route' not in text:
                continue
            rows = re.findall(r'\.path = "([^"]*)"(.*?)\.run = ', text, re.S)
            rows += [(path, 'HTTP_GET open') for path in re.findall(r'VIEW\("([^"]*)"\)', text)]
            assert rows or '.path = ' not in text, name
            found += [(path, re.findall(r'HTTP_([A-Z]+)', row), 'open' in row)
                      for path, row in rows]
    return found


ROUTES = routes()


def test_the_sources_have_routes():
    assert all(methods for _, methods, _ in ROUTES)
    assert ({'/healthz', '/readyz', '/version', '/metrics', '/mcp', '/sse', '/message',
             '/session/links', '/sessions/{id}', '/inbox'} <= {path for path, _, _ in ROUTES})


@pytest.mark.parametrize('path, methods, opened', ROUTES,
                         ids=[f'{path} {",".join(m)}' for path, m, _ in ROUTES])
def test_every_route_wants_the_token(hub, path, methods, opened):
    assert opened == ((path, methods[0]) in OPEN)
    path = path.replace('{id}', 'x')
    for method in methods:
        body = '{}' if method in ('POST', 'PUT') else None
        for options in ({'token': None}, {'token': 'wrong'}, {'token': hub.token[:-1]},
                        {'token': hub.token + 'a'},
                        {'token': hub.token.upper()},
                        {'token': None, 'fields': [f'Authorization: Basic {hub.token}']}):
            def asked(options=options):
                with hub.wire() as wire:
                    reply = wire.ask(hub.request(method, path, body=body, **options), method)
                # too many wrong ones; there is room again soon
                return None if reply.status == 429 else reply
            reply = until(asked, what='a refusal')
            assert (reply.status == 401) != opened, (options, reply)
            assert opened or reply.get('WWW-Authenticate').startswith('Bearer')
        with hub.wire() as wire:
            # only the page itself logs in
            own = 'Origin: http://localhost' if path == '/session' else 'X: y'
            wire.send(hub.request(method, path, body=body, fields=['Connection: close', own]))
            status = wire.head()[0]
            assert status not in (401, 403, 405)
            # of a session or a file that is not there
            assert (status != 404 or path in ('/sessions/x', '/assets/')
                    or b'route_not_found' not in wire.ended())
        for name, value in (('Host', 'evil.example'), ('Origin', 'null'),
                            ('Origin', 'http://evil.example')):
            with hub.wire() as wire:
                options = {'host': value} if name == 'Host' else {'fields': [f'{name}: {value}']}
                wire.send(hub.request(method, path, body=body, **options))
                assert wire.head()[0] == 403, (name, value)


@pytest.mark.parametrize('path', ['/mcp', '/message'])
@pytest.mark.parametrize('kind', ['text/plain', '', 'application/x-www-form-urlencoded',
                                  'multipart/form-data; boundary=x'])
def test_messages_are_json(hub, path, kind):
    body = json.dumps(INITIALIZE)
    with hub.wire() as wire:
        reply = wire.ask(hub.request('POST', path, fields=[f'Content-Type: {kind}',
                                                           f'Content-Length: {len(body)}']) + body)
        assert reply.status == 415, reply
        assert wire.ask(post(hub, INITIALIZE)).status == 200


def test_unknown_paths(hub):
    for path in ('/x', '/mcp/', '/MCP', '/mcp/x', '/admin', '/.well-known/oauth-protected-resource',
                 '/metrics/'):
        reply = hub.ask(path=path)
        assert reply.status == 404 and json.loads(reply.body)['error']['code'] == 'route_not_found'


def test_preflight(hub):
    for origin in ('http://evil.example', 'null', 'http://localhost:3000'):
        reply = hub.ask('OPTIONS', '/mcp', token=None,
                        fields=[f'Origin: {origin}', 'Access-Control-Request-Method: POST'])
        assert reply.status == 403 and not [n for n, _ in reply.fields
                                            if n.lower().startswith('access-control')]


@pytest.mark.parametrize('name', ['two lengths', 'a hidden encoding', 'a long field'])
def test_wrong_framing(hub, name):
    """The others are in test_door.py, whose host has the same server."""
    status, sent = WRONG[name]
    with hub.wire() as wire:
        wire.send(sent.replace('Bearer right', f'Bearer {hub.token}'))
        assert wire.head()[0] == status


def test_state(hub):
    assert json.loads(hub.ask(path='/healthz', token=None).body) == {'status': 'ok'}
    until(lambda: hub.ask(path='/readyz').status == 200, what='ready')
    assert set(json.loads(hub.ask().body)) == {'name', 'principal', 'version'}
    assert hub.ask('HEAD', '/healthz').body == b''


def test_metrics(hub):
    reply = hub.ask(path='/metrics')
    assert reply.get('Content-Type') == 'text/plain; version=0.0.4'
    for line in reply.body.decode().splitlines():
        assert re.fullmatch(r'# HELP [a-z_]+ .+|# TYPE [a-z_]+ (counter|gauge)|'
                            r'[a-z_]+(\{[a-z]+="[a-z0-9]+"\})? [0-9.e-]+', line), line
    until(lambda: hub.metrics()['holt_http_streams'] == 0, what='the end of those that others had')
    before = hub.metrics()
    session = Session(hub)
    sandbox = session.create()
    hub.ask(path='/none')
    with session.stream():
        now = hub.metrics()
        assert now['holt_sandboxes'] == before['holt_sandboxes'] + 1
        assert now['holt_sandboxes_created_total'] == before['holt_sandboxes_created_total'] + 1
        assert (now['holt_pool_hits_total'] + now['holt_pool_misses_total']
                == now['holt_sandboxes_created_total'])
        assert now['holt_http_requests_total'] >= before['holt_http_requests_total'] + 5
        assert now['holt_http_refused_total'] > before['holt_http_refused_total']
        assert (now['holt_http_responses_total{class="4xx"}']
                > before['holt_http_responses_total{class="4xx"}'])
        assert now['holt_http_streams'] == before['holt_http_streams'] + 1
        assert now['holt_sessions{transport="http"}'] >= 1
        with hub.wire() as wire:
            session.call(wire, 'sandbox_terminate', sandbox=sandbox)
            session.result(wire)
    until(lambda: hub.metrics()['holt_http_streams'] == before['holt_http_streams'],
          what='the stream gone')


def test_no_authorization_server_is_named(serve, me):
    """Only the hub's own token is accepted, so clients must not be sent to a server that gives
    others."""
    hub = serve()
    assert hub.ask(path='/.well-known/oauth-protected-resource/mcp').status == 404
    assert hub.ask('POST', '/mcp', token=None,
                   body='{}').get('WWW-Authenticate') == 'Bearer realm="holt"'
    assert me.run('serve', '--issuer', 'https://issuer.example').returncode == 2


# ---- the token ------------------------------------------------------------------------------

def test_token_file(serve, me, tmp_path):
    """Made once, for its owner alone, and the same for all who ask."""
    env = {**me.env, 'HOLT_HOME': str(tmp_path)}
    first = me.run('auth', 'token', env=env, text=True).stdout
    assert re.fullmatch(r'holt_[0-9a-f]{64}\n', first)
    path = tmp_path / 'token'
    assert path.read_text() == first and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ['token']
    hub = serve()
    assert hub.token == first.strip() and path.read_text() == first
    hub.works()


def test_a_token_of_ones_own(serve, tmp_path):
    path = tmp_path / 'token'
    path.write_text('mine-0123456789.~+/=_\r\n')
    path.chmod(0o400)
    hub = serve()
    assert hub.token == 'mine-0123456789.~+/=_'
    hub.works()


@pytest.mark.parametrize('mode, text, cause', [
    (0o644, 'a' * 40, 'chmod 600'), (0o660, 'a' * 40, 'chmod 600'), (0o604, 'a' * 40, 'chmod 600'),
    (0o600, '', 'holds no token'), (0o600, 'short', 'holds no token'),
    (0o600, 'a' * 513, 'holds no token'), (0o600, 'two words of a token', 'holds no token'),
    (0o600, 'first-token-0000\nsecond-token-00', 'holds no token'),
    (0o600, 'nul-in-it-000000\0', 'holds no token'),
])
def test_a_token_file_that_is_none(me, tmp_path, mode, text, cause):
    path = tmp_path / 'token'
    path.write_text(text)
    path.chmod(mode)
    for verb in (['auth', 'token'], ['serve', '--listen', '127.0.0.1:0']):
        done = me.run(*verb, env={'HOLT_HOME': str(tmp_path)}, text=True)
        assert done.returncode == 125 and cause in done.stderr and not done.stdout, done
        assert not text or text not in done.stderr


def test_a_token_file_that_leads_elsewhere(me, tmp_path):
    (tmp_path / 'other').write_text('a' * 40)
    (tmp_path / 'other').chmod(0o600)
    (tmp_path / 'token').symlink_to(tmp_path / 'other')
    assert me.run('auth', 'token', env={'HOLT_HOME': str(tmp_path)}).returncode == 125
    assert me.run('auth', 'token', env={'HOLT_HOME': 'relative'}).returncode == 125


def test_folders(me, tmp_path):
    """HOLT_HOME, else the XDG folder, else that of the home; made with their parents,
    closed to others."""
    for env, path in (({'HOLT_HOME': f'{tmp_path}/a/b'}, 'a/b'),
                      ({'XDG_DATA_HOME': f'{tmp_path}/c'}, 'c/holt'),
                      ({'HOME': f'{tmp_path}/d', 'XDG_DATA_HOME': ''}, 'd/.local/share/holt')):
        done = me.run('auth', 'token', env=env, text=True)
        assert done.returncode == 0, done
        assert stat.S_IMODE((tmp_path / path).stat().st_mode) == 0o700
        assert (tmp_path / path / 'token').read_text() == done.stdout


def test_the_token_is_nowhere_to_be_seen(serve, me):
    """Not in arguments, environment, log, errors, or a core dump's memory."""
    hub = serve(env={'HOLT_LOG': 'debug'})
    hub.works()
    Session(hub).create()
    with hub.wire() as wire:
        for sent in (hub.request(path='/none'),
                     hub.request(path=f'/version?token={hub.token}', token=None),
                     hub.request(token=hub.token + 'x'), hub.request('POST', '/mcp', body='{'),
                     hub.request(path='/version', host='evil.example')):
            assert hub.token not in str(wire.ask(sent))
    for name in ('cmdline', 'environ'):
        with open(f'/proc/{hub.proc.pid}/{name}', encoding='utf-8', errors='replace') as f:
            assert hub.token not in f.read()
    with open(f'/proc/{hub.proc.pid}/coredump_filter', encoding='utf-8') as f:
        assert int(f.read(), 16) == 0
    assert hub.end() == 0
    assert ('refused' in hub.said() and hub.token not in hub.said()
            and hub.token not in '\n'.join(hub.lines))


def test_auth_usage(me):
    assert 'auth token' in me.run('auth', 'tokens', text=True).stderr
    assert me.run('auth').returncode == 2


# ---- addresses ------------------------------------------------------------------------------

def listeners(pid):
    """Local addresses that the process listens on, as the kernel has them."""
    inodes = set()
    for fd in os.listdir(f'/proc/{pid}/fd'):
        found = re.fullmatch(r'socket:\[(\d+)\]', os.readlink(f'/proc/{pid}/fd/{fd}'))
        inodes |= {found[1]} if found else set()
    addresses = []
    for name in ('tcp', 'tcp6'):
        with open(f'/proc/{pid}/net/{name}', encoding='utf-8') as f:
            for row in (line.split() for line in list(f)[1:]):
                if row[3] == '0A' and row[9] in inodes:
                    addresses.append((row[1].split(':')[0], int(row[1].split(':')[1], 16)))
    return sorted(addresses)


def test_default_addresses(me, tmp_path):
    """Loopback and the socket, and nothing else."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(('127.0.0.1', 5757))
        except OSError:
            pytest.skip('something else listens at 127.0.0.1:5757')
    hub = Serve(me, tmp_path, '--pool', '0')
    try:
        assert hub.addresses == [('127.0.0.1', 5757)] and hub.paths == [f'{tmp_path}/holt.sock']
        assert listeners(hub.proc.pid) == [('0100007F', 5757)]
        mode = os.lstat(hub.paths[0]).st_mode
        assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600
        assert hub.end() == 0 and not os.path.exists(hub.paths[0])
    finally:
        hub.kill()


def test_the_socket_has_the_same_checks(serve):
    hub = serve('--listen', 'none')
    assert isinstance(hub.address, str) and not listeners(hub.proc.pid)
    hub.works()
    assert hub.ask(token=None).status == 401 and hub.ask(host='evil.example').status == 403
    assert hub.ask(fields=['Origin: null']).status == 403
    assert Session(hub).create().startswith('sbx-')


def test_runtime_folder(me, tmp_path):
    env = {**me.env, 'XDG_RUNTIME_DIR': str(tmp_path)}
    env.pop('HOLT_HOME', None)
    hub = Serve(me, '', '--pool', '0', '--listen', '127.0.0.1:0', env=env)
    try:
        assert hub.paths == [f'{tmp_path}/holt/holt.sock']
        assert stat.S_IMODE(os.stat(f'{tmp_path}/holt').st_mode) == 0o700
        assert hub.end() == 0
    finally:
        hub.kill()


def test_several_addresses(serve):
    hub = serve('--listen', '127.0.0.1:0', '--listen', '127.0.0.2:0', '--socket', 'none')
    assert len(hub.addresses) == 2 and not hub.paths
    for address in hub.addresses:
        with Wire(address) as wire:
            assert wire.ask(hub.request()).status == 200
            # one of our own
            assert wire.ask(hub.request(host=f'127.0.0.2:{address[1]}')).status == 200
            assert wire.ask(hub.request(host='127.0.0.3')).status == 403


def test_all_addresses_want_the_token(serve):
    hub = serve('--listen', '0.0.0.0:0', '--socket', 'none')
    hub.address = ('127.0.0.1', hub.addresses[0][1])
    hub.works()
    assert hub.ask(token=None).status == 401 and hub.ask(host='0.0.0.0').status == 403


def test_plain_http_beyond_loopback_is_warned_of(serve, certificate):
    """Tokens would pass in the clear; with a certificate, or on loopback, nothing is said."""
    tls = ['--tls-cert', certificate[0], '--tls-key', certificate[1]]
    for arguments, warns in ((['--listen', '0.0.0.0:0'], True), (['--listen', '[::]:0'], True),
                             (['--listen', '127.0.0.1:0'], False),
                             (['--listen', '0.0.0.0:0', *tls], False)):
        hub = serve(*arguments, '--socket', 'none')
        said = hub.said()
        assert ('plain HTTP' in said and arguments[1] in said) == warns, (arguments, said)
        assert hub.end() == 0, hub.said()


def test_allowed_hosts_and_origins(serve):
    hub = serve('--allow-host', 'hub.example', '--allow-host', 'box.example:8443', '--allow-origin',
                'https://app.example')
    for host, status in (('hub.example', 200), ('HUB.example:1', 200), ('box.example:8443', 200),
                         ('box.example', 403),
                         ('app.example', 403), ('localhost', 200)):
        assert hub.ask(host=host).status == status, host
    reply = hub.ask(fields=['Origin: https://app.example'])
    assert reply.status == 200 and reply.get('Access-Control-Allow-Origin') == 'https://app.example'
    assert 'Mcp-Session-Id' in reply.get('Access-Control-Expose-Headers')


@pytest.mark.parametrize('arguments, cause', [
    (['--listen', '5757'], 'ADDRESS:PORT'), (['--listen', '127.0.0.1'], 'ADDRESS:PORT'),
    (['--listen', '::1:5757'], 'ADDRESS:PORT'), (['--listen', '127.0.0.1:99999'], 'ADDRESS:PORT'),
    (['--listen', '127.0.0.1:x'], 'ADDRESS:PORT'), (['--listen', '192.0.2.1:0'], '192.0.2.1:0'),
    (['--listen', 'none', '--socket', 'none'], 'nowhere'),
    (['--socket', '/' + 'x' * 200], 'characters'),
    (['--socket', '/nowhere/at/all'], '/nowhere/at/all'),
    (['--tls-cert', '/nowhere'], 'belong together'),
    (['--tls-cert', '/nowhere', '--tls-key', '/nowhere'], 'open /nowhere'),
    (['--tls-cert', '/etc/passwd', '--tls-key', '/etc/passwd'], 'private key'),
    (['--allow-host', 'a b'], 'a b'), (['--allow-host', 'user@host'], 'no host name'),
    (['--allow-origin', '*'], 'no origin'),
    (['--allow-origin', 'https://app.example/'], 'no origin'),
    (['--allow-origin', 'https://APP.example'], 'no origin'),
    (['--allow-origin', 'app.example'], 'no origin'), (['--allow-origin', 'null'], 'no origin'),
    (['--public-url', 'https://holt.example/x'], 'no origin'),
])
def test_what_can_not_be_served(me, tmp_path, arguments, cause):
    if '--listen' not in arguments:
        arguments = ['--listen', '127.0.0.1:0', *arguments]
    done = me.run('serve', '--pool', '0', *arguments, env={'HOLT_HOME': str(tmp_path)}, text=True)
    assert done.returncode == 125 and cause in done.stderr, done


def test_taken_addresses(serve, me, tmp_path):
    first = serve()
    other = {'HOLT_HOME': str(tmp_path / 'other')}
    done = me.run('serve', '--listen', f'127.0.0.1:{first.address[1]}', '--socket', 'none',
                  env=other, text=True)
    assert done.returncode == 125 and 'in use already' in done.stderr
    done = me.run('serve', '--listen', 'none', '--socket', first.paths[0], env=other, text=True)
    assert done.returncode == 125 and 'another server' in done.stderr
    done = me.run('serve', '--listen', 'none', env={'HOLT_HOME': str(tmp_path)}, text=True)
    assert done.returncode == 125 and 'another hub' in done.stderr
    with Wire(first.paths[0]) as wire:  # which it did not take away
        assert wire.ask(first.request()).status == 200
    first.proc.kill()
    first.proc.wait()
    assert os.path.exists(first.paths[0])
    second = serve()  # nobody listens on that socket any more
    with Wire(second.paths[0]) as wire:
        assert wire.ask(second.request()).status == 200


def test_a_file_where_the_socket_should_be(me, tmp_path):
    (tmp_path / 'holt.sock').write_text('precious')
    done = me.run('serve', '--listen', 'none', env={'HOLT_HOME': str(tmp_path)}, text=True)
    assert done.returncode == 125 and (tmp_path / 'holt.sock').read_text() == 'precious'


def test_tls(serve, certificate):  # noqa: F811
    hub = serve('--tls-cert', certificate[0], '--tls-key', certificate[1])
    assert hub.lines[0].startswith('Listening on https://')
    with hub.wire(tls=trusting(certificate[0])) as wire:
        assert wire.ask(hub.request(fields=['Origin: https://localhost'])).status == 200
        assert wire.ask(post(hub, INITIALIZE)).status == 200
        assert wire.ask(hub.request(token=None)).status == 401


def test_rate(serve):
    hub = serve('--rate', '5')
    with hub.wire() as wire:
        assert 429 in [wire.ask(hub.request()).status for _ in range(60)]
        assert wire.ask(hub.request(path='/healthz', token=None)).status == 200


# ---- the end --------------------------------------------------------------------------------

@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_idle_streams_end_at_once(serve, number):
    """With the mark of their end, not cut off; and before what is in flight would have to."""
    hub = serve()
    streams = [Session(hub).stream() for _ in range(20)]
    sse = hub.wire()
    sse.send(hub.request(path='/sse', fields=['Accept: text/event-stream']))
    assert sse.head()[0] == 200
    idle = hub.wire()
    idle.ask(hub.request())
    before = time.monotonic()
    assert hub.end(number) == 0
    assert time.monotonic() - before < GRACE
    for wire in [*streams, sse]:
        while wire.chunk():
            pass
        assert wire.ended() == b''
        wire.close()
    assert idle.ended() == b''
    idle.close()


def test_a_call_in_flight_finishes(serve):
    hub = serve()
    session = Session(hub)
    sandbox = session.create()
    with hub.wire() as wire, session.stream() as stream:
        session.call(wire, 'sandbox_exec', sandbox=sandbox,
                     command='echo begun; sleep 6; echo done')
        until(lambda: hub.metrics()['holt_http_requests'] + hub.metrics()['holt_http_streams'] >= 3,
              what='the call')
        hub.proc.send_signal(signal.SIGTERM)
        until(lambda: refused(hub), what='no more listening')
        result = session.result(wire)
        assert data_of(result)['stdout'] == 'begun\ndone\n', result
        while stream.chunk():
            pass
    assert hub.proc.wait(60) == 0


def test_a_call_that_does_not_finish(serve):
    """Ten seconds, then the end, with all sandboxes."""
    hub = serve()
    session = Session(hub)
    sandbox = session.create()
    with hub.wire() as wire:
        session.call(wire, 'sandbox_exec', sandbox=sandbox, command='sleep 600')
        until(lambda: hub.metrics()['holt_http_requests'] + hub.metrics()['holt_http_streams'] >= 2,
              what='the call')
        assert hub.end(timeout=3 * GRACE) == 0, hub.said()


def test_a_second_signal(serve):
    hub = serve()
    session = Session(hub)
    sandbox = session.create()
    with hub.wire() as wire:
        session.call(wire, 'sandbox_exec', sandbox=sandbox, command='sleep 600')
        until(lambda: hub.metrics()['holt_http_requests'] + hub.metrics()['holt_http_streams'] >= 2,
              what='the call')
        hub.proc.send_signal(signal.SIGTERM)
        until(lambda: refused(hub), what='no more listening')
        before = time.monotonic()
        assert hub.end() == 128 + signal.SIGTERM
        assert time.monotonic() - before < GRACE / 2


def test_sandboxes_outlive_a_hub_that_is_killed(serve, tmp_path):
    """And what it left of its sockets is no hindrance to the next.
    Who can't start takes nothing along."""
    hub = serve()
    session = Session(hub)
    sandbox = session.create()
    assert session.run(sandbox, 'echo kept > f; sleep 1000 >/dev/null 2>&1 & echo') == '\n'
    hub.proc.kill()
    hub.proc.wait()
    done = hub.who.run('serve', '--listen', 'nowhere:0', env=hub.env, text=True)
    assert done.returncode == 125
    again = serve()
    assert 'Sandboxes of the hub before: 1' in again.lines
    assert (Session(again).run(sandbox, 'cat f; grep -sx sleep /proc/[0-9]*/comm | wc -l')
            == 'kept\n1\n')
    assert again.end() == 0
    until(lambda: not os.listdir(tmp_path / 'warden'), what='nothing in the folder')
    last = serve()
    assert not [line for line in last.lines if line.startswith('Sandboxes')]
    assert (Session(last).run(sandbox, 'cat f; grep -sx sleep /proc/[0-9]*/comm | wc -l')
            == 'kept\n0\n')  # started again


# ---- many -----------------------------------------------------------------------------------

@pytest.mark.parametrize('text', ['', request('POST', '/mcp', token=None, body='x' * 100)[:-100]],
                         ids=['idle', 'without a token'])
def test_more_clients_than_there_is_room_for(serve, text):
    """Connections are bounded; who comes too late takes the place of the idle ones, and of those
    whose request has no token."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    hub = serve()
    held = []
    try:
        for _ in range(1300):
            held.append(hub.wire())
            held[-1].send(text)
        hub.works()
        with Wire(hub.paths[0]) as operator:
            assert operator.ask(hub.request()).status == 200
        assert hub.metrics()['holt_http_connections'] <= 1024 + 64
    finally:
        for wire in held:
            wire.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    until(lambda: hub.metrics()['holt_http_connections'] < 10, what='all gone')


def test_our_client_without_the_token(serve, tmp_path):
    """It says where the token is, not that a log-in failed; with it, all is well."""
    hub = serve('--socket', 'none')
    url = f'http://127.0.0.1:{hub.address[1]}/mcp'
    env = {'HOLT_HOME': str(tmp_path / 'home')}
    for more in ((), ('--login', 'never'), ('--login', 'browser')):
        done = hub.who.run('mcp', 'tools', '--url', url, *more, env=env, text=True)
        assert done.returncode == 3, done
        assert 'wants a token' in done.stderr and 'holt auth token' in done.stderr, done.stderr
    secret = hub.who.log() + '.token'
    with open(secret, 'w', encoding='ascii') as f:
        f.write(hub.token)
    os.chmod(secret, 0o600)
    os.chown(secret, hub.who.uid, hub.who.uid)
    done = hub.who.run('mcp', 'tools', '--url', url, '--token-file', secret, env=env, text=True)
    assert done.returncode == 0 and 'sandbox_exec' in done.stdout, done
