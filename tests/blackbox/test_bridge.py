"""`holt mcp --connect`: the stdio face of a hub that runs elsewhere."""

import http.server
import json
import signal
import socket
import subprocess
import threading

import pytest

from client import LATEST, until
from http_client import META, MODERN
from mcp_cli import EVERYTHING, Daemon, free_port


def url(peer, path=''):
    return f'http://127.0.0.1:{peer.address[1]}{path}'


@pytest.fixture
def bridge(start, peer):
    """A bridge to the peer, as alice; not yet initialized."""
    return start('--connect', url(peer), version='none', env={'HOLT_TOKEN': 'alice'})


def modern(tool, **arguments):
    meta = {META + 'protocolVersion': MODERN, META + 'clientCapabilities': {}}
    return {'name': tool, 'arguments': arguments, '_meta': meta}


def said(answer):
    assert 'result' in answer, answer
    return answer['result']['content'][0]['text']


def call(client, tool, **arguments):
    return said(client.request('tools/call', {'name': tool, 'arguments': arguments}))


def test_a_legacy_life(bridge, peer):
    assert bridge.initialize()['protocolVersion'] == LATEST
    assert call(bridge, 'echo', text='ä\n"') == 'ä\n"'
    assert 'echo' in [t['name'] for t in bridge.request('tools/list')['result']['tools']]
    assert peer.stats()['sessions'] == 1
    assert bridge.close() == 0
    peer.until(sessions=0, streams=0)  # it says goodbye


def test_a_modern_call(bridge, peer):
    assert said(bridge.request('tools/call', modern('echo', text='x'))) == 'x'
    got = bridge.request('server/discover', {'_meta': modern('x')['_meta']})
    assert MODERN in got['result']['supportedVersions']
    assert peer.stats()['sessions'] == 0


def test_a_name_that_no_header_can_hold(bridge):
    got = bridge.request('tools/call', modern('näme \n'))
    assert got['error']['code'] == -32602, got  # no such tool; the headers agreed with the body


@pytest.fixture
def everything(me):
    port = free_port()
    daemon = Daemon(me, [EVERYTHING, f'127.0.0.1:{port}'], port)
    yield daemon
    daemon.close()


@pytest.mark.parametrize('listed', [True, False])
def test_arguments_in_headers(start, everything, listed):
    """A server of 2026-07-28 refuses a call whose Mcp-Param-* are missing. Who never listed the
    tools may call them, too."""
    bridge = start('--connect', everything.url('/mcp'), version='none', env={'HOLT_TOKEN': 't'})
    meta = modern('x')['_meta']
    if listed:
        assert 'tools' in bridge.request('tools/list', {'_meta': meta})['result']
    for region in ('eu', 'ünï "q"', 'x'):
        assert region in said(bridge.request('tools/call',
                                             modern('test_x_mcp_header', region=region, level=3)))


def test_calls_do_not_wait_for_each_other(bridge, peer):
    bridge.initialize()
    held = bridge.start('tools/call', {'name': 'hold', 'arguments': {'key': 'k'}})
    assert call(bridge, 'echo', text='x') == 'x'
    assert held not in bridge.arrived
    peer.release('k')
    assert 'result' in bridge.wait(held)


def test_notifications_on_the_way(bridge):
    bridge.initialize()
    call(bridge, 'say', n=3)
    assert [n['method'] for n in bridge.notifications()] == ['notifications/message'] * 3


def test_what_belongs_to_no_request(bridge, peer):
    bridge.initialize()
    peer.until(streams=1)
    peer.text('change')
    assert bridge.next()['method'] == 'notifications/tools/list_changed'


def test_cancel_of_a_legacy_call(bridge, peer):
    bridge.initialize()
    held = bridge.start('tools/call', {'name': 'hold', 'arguments': {'key': 'k'}})
    peer.until(held=1)
    bridge.notify('notifications/cancelled', {'requestId': held})
    peer.until(held=0, cancelled=1)


@pytest.mark.parametrize('revision', ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])
def test_a_cancelled_call_has_no_answer(bridge, peer, revision):
    """The server ends its POST without one; that is no failure for the client to hear of."""
    bridge.initialize(revision)
    held = bridge.start('tools/call', {'name': 'hold', 'arguments': {'key': 'k'}})
    peer.until(held=1)
    bridge.notify('notifications/cancelled', {'requestId': held})
    peer.until(held=0, cancelled=1)
    assert call(bridge, 'echo', text='x') == 'x'
    assert bridge.close() == 0
    assert held not in bridge.arrived


def test_cancel_of_a_modern_call_closes_its_connection(bridge, peer):
    held = bridge.start('tools/call', modern('hold', key='k'))
    peer.until(held=1)
    bridge.notify('notifications/cancelled', {'requestId': held})
    peer.until(held=0, cancelled=1)
    assert said(bridge.request('tools/call', modern('echo', text='x'))) == 'x'
    assert held not in bridge.arrived


def test_a_stream_that_the_server_drops_is_taken_up(start, http_host):
    peer = http_host(retry_ms=10)
    bridge = start('--connect', url(peer), env={'HOLT_TOKEN': 'alice'})
    held = bridge.start('tools/call', {'name': 'disconnect', 'arguments': {'key': 'k'}})
    peer.until(held=1)
    peer.release('k')
    assert 'result' in bridge.wait(held)


@pytest.fixture
def serve(me, start, tmp_path):
    """Starts `holt serve` at one address, again and again."""
    running = []
    address = f'127.0.0.1:{free_port()}'

    def begin():
        with open(me.log(), 'wb') as log:
            running.append(subprocess.Popen(me.argv('serve', '--listen', address, '--socket',
                                                    'none', '--pool', '0'),
                                            env={**me.env, 'HOLT_HOME': str(tmp_path)},
                                            stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=log,
                                            start_new_session=True))
        until(lambda: socket.socket().connect_ex(('127.0.0.1', int(address.partition(':')[2])))
              == 0)
        return running[-1]
    begin.address, begin.env = address, {'HOLT_HOME': str(tmp_path)}
    yield begin
    for proc in running:
        if proc.poll() is None:
            proc.terminate()
        assert proc.wait(60) in (0, -signal.SIGKILL)


@pytest.mark.parametrize('how', [signal.SIGTERM, signal.SIGKILL])
def test_a_hub_that_is_started_anew(serve, start, how):
    """The client goes on: its session is opened again behind its back.
    Sandboxes outlive a hub, however it ends."""
    hub = serve()
    bridge = start('--connect', f'http://{serve.address}', env=serve.env)
    sandbox = bridge.create()
    assert sandbox.sh('echo well | tee kept') == 'well\n'
    hub.send_signal(how)
    hub.wait(60)
    assert bridge.request('ping')['error']['data']['code'] == 'transport_failed'
    serve()
    calls = [bridge.start('ping') for _ in range(20)]
    assert [a for a in map(bridge.wait, calls) if a.get('result') != {}] == []
    assert sandbox.sh('cat kept') == 'well\n'
    again = bridge.create()
    assert again.sh('echo well') == 'well\n'
    again.terminate()


class Forgetful(http.server.ThreadingHTTPServer):
    """A server of 2025-11-25 whose sessions a test ends, and that may open no others."""

    def __init__(self):
        self.sessions, self.refuses, self.opened = set(), False, 0
        super().__init__(('127.0.0.1', 0), ForgetfulRequest)
        self.url = f'http://127.0.0.1:{self.server_address[1]}/mcp'
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class ForgetfulRequest(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def reply(self, status, body=b'', **headers):
        self.send_response(status)
        for name, value in {'Content-Type': 'application/json', 'Content-Length': str(len(body)),
                            **headers}.items():
            self.send_header(name.replace('_', '-'), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):  # noqa: N802
        self.reply(405)

    def do_DELETE(self):  # noqa: N802
        self.reply(200)

    def do_POST(self):  # noqa: N802
        message = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        opens, result, more = message['method'] == 'initialize', {}, {}
        if opens and self.server.refuses:
            self.reply(503)
            return
        if opens:
            self.server.opened += 1
            more = {'Mcp_Session_Id': f's{self.server.opened}'}
            self.server.sessions.add(more['Mcp_Session_Id'])
            result = {'protocolVersion': '2025-11-25', 'capabilities': {},
                      'serverInfo': {'name': 'forgetful', 'version': '1'}}
        elif self.headers['Mcp-Session-Id'] not in self.server.sessions:
            self.reply(404)
            return
        if 'id' in message:
            self.reply(200, json.dumps({'jsonrpc': '2.0', 'id': message['id'],
                                        'result': result}).encode(), **more)
        else:
            self.reply(202)


def test_a_session_that_can_not_be_opened_again_yet(start):
    """What waits for it fails; what comes later is tried in a new one again."""
    with Forgetful() as server:
        bridge = start('--connect', server.url, version='none', env={'HOLT_TOKEN': 't'})
        bridge.initialize('2025-11-25')
        assert bridge.request('ping')['result'] == {}
        server.sessions.clear()
        server.refuses = True
        assert 'new session' in bridge.request('ping')['error']['message']
        assert 'new session' in bridge.request('ping')['error']['message']
        server.refuses = False
        assert bridge.request('ping')['result'] == {}
        assert len(server.sessions) == 1
        assert bridge.close() == 0


def test_a_call_that_went_down_with_its_hub_is_not_run_again(serve, start):
    hub = serve()
    bridge = start('--connect', f'http://{serve.address}', env=serve.env)
    sandbox = bridge.create()
    call = sandbox.start('sleep 60')
    until(lambda: sandbox.running('sleep'))
    hub.kill()
    hub.wait(60)
    serve()
    lost = bridge.wait(call, 60)['error']['data']
    assert lost['code'] == 'outcome_unknown' and not lost['retryable'], lost
    assert bridge.request('ping')['result'] == {}


def test_the_token_of_our_own_hub_goes_to_no_other(serve, start):
    serve()
    bridge = start('--connect', 'http://localhost.example:1', version='none',
                   env={**serve.env, 'HOLT_LOG': 'debug'})
    assert 'error' in bridge.request('ping')
    assert 'a secret is read' not in bridge.said()


@pytest.mark.parametrize('line, code', [
    (b'{bad', -32700), (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}', -32600),
    (b'x' * (17 << 20), -32600),
], ids=['no JSON', 'a broken id', 'a key twice', '17 MiB'])
def test_bad_lines_are_answered(bridge, line, code):
    bridge.initialize()
    bridge.send_raw(line + b'\n')
    error = bridge.next()['error']
    assert error['code'] == code
    assert call(bridge, 'echo', text='x') == 'x'


def test_a_wrong_token(start, peer):
    bridge = start('--connect', url(peer), version='none', env={'HOLT_TOKEN': 'mallory'})
    error = bridge.request('ping')['error']
    assert 'token' in error['message'] and 'mallory' not in json.dumps(error)
    assert 'mallory' not in bridge.said()


def test_nobody_listens(start):
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        bridge = start('--connect', f'http://127.0.0.1:{s.getsockname()[1]}', version='none',
                       env={'HOLT_TOKEN': 'x'})
        error = bridge.request('initialize',
                               {'protocolVersion': LATEST, 'capabilities': {}, 'clientInfo': {
                                   'name': 'x', 'version': '1'}})['error']
    assert error['data']['code'] == 'transport_failed'
    assert bridge.close() == 0


@pytest.mark.parametrize('where', ['ftp://127.0.0.1/', 'nonsense', 'file:///etc/passwd'])
def test_no_other_schemes(start, where):
    bridge = start('--connect', where, version='none')
    assert bridge.request('ping')['error']['data']['code'] == 'invalid_arguments'


def test_at_the_end_of_input_what_is_under_way_ends(bridge, peer):
    bridge.initialize()
    dozing = bridge.start('tools/call', {'name': 'doze', 'arguments': {'ms': 300}})
    assert bridge.close() == 0
    assert 'result' in bridge.wait(dozing)


def test_sigterm_ends_it(bridge, peer):
    bridge.initialize()
    bridge.proc.send_signal(signal.SIGTERM)
    assert bridge.proc.wait(60) == 0
    peer.until(sessions=0)


def test_no_proxy_and_no_redirect(start):
    """A server that sends it elsewhere is an error: nothing but the named place is asked."""
    with socket.create_server(('127.0.0.1', 0)) as server:
        address = f'http://127.0.0.1:{server.getsockname()[1]}'
        bridge = start('--connect', address, version='none',
                       env={'http_proxy': 'http://127.0.0.1:9', 'HOLT_TOKEN': 't'})
        request = bridge.start('ping')
        connection, _ = server.accept()
        with connection:
            until(lambda: b'\r\n\r\n' in connection.recv(65536, socket.MSG_PEEK))
            connection.sendall(b'HTTP/1.1 307 Elsewhere\r\nLocation: '
                               b'http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n')
            assert '307' in bridge.wait(request)['error']['message']


def test_answers_of_all_sizes_in_order(bridge):
    bridge.initialize()
    ids = {bridge.start('tools/call', {'name': 'large', 'arguments': {'bytes': n}}): n
           for n in (1, 100000, 3000000, 10)}
    for request, n in ids.items():
        assert len(said(bridge.wait(request))) == n
