"""`holt serve --compat e2b`: E2B's own SDKs from npm, in three versions, and clients that ask by
hand."""

import base64
import gzip
import hashlib
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlencode

import pytest

from client import until
from door import request
from rest import Rest, b64, frame, frames
from who import HERE, node_program

SDKS = os.path.join(HERE, '..', 'e2b')
VERSIONS = ['2.51', '2.45', '2.20']
ENVD, CODE = '49983', '49999'
NONE = 'sbx-' + '0' * 32


class Hub(Rest):
    """The same over E2B's wire."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.keys = {}

    def key(self, name, *scopes):
        """Another principal."""
        if name not in self.keys:
            self.keys[name] = self.post('/v1/keys', name=name, scopes=list(scopes))['token']
        return self.keys[name]

    def e2b(self, method, path, body=None, headers=None, host=None):
        """Status, headers and body."""
        conn = http.client.HTTPConnection(*self.address, timeout=60)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        given = {'Content-Type': 'application/json', **(headers or {})}
        if host:
            given['Host'] = host
        try:
            conn.request(method, path, body, given)
            reply = conn.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            conn.close()

    def control(self, method, path, body=None, key=None):
        """Status and document of the control plane."""
        status, _, text = self.e2b(method, path, body, {'X-API-KEY': key or self.token})
        return status, json.loads(text) if text else None

    def connections(self):
        text = self.e2b('GET', '/metrics', headers={'Authorization': f'Bearer {self.token}'})[2]
        return int(re.search(r'^holt_http_connections (\d+)', text.decode(), re.M)[1])

    def refused(self, *arguments, **options):
        """A status of who has no right token; too many of those are told to wait."""
        def asked():
            status, _, text = self.e2b(*arguments, **options)
            return None if status == 429 else (status, text)
        return until(asked, what='a refusal')


class Box:
    """A sandbox as E2B's clients know it."""

    def __init__(self, hub, key=None, **body):
        self.hub, self.key = hub, key
        status, self.made = hub.control('POST', '/v2/sandboxes',
                                        {'templateID': 'base', 'timeout': 3600, **body}, key)
        assert status == 201, self.made
        self.id = self.made['sandboxID']

    def headers(self, port=ENVD, **more):
        token = {'X-Access-Token': self.made['envdAccessToken']}
        return {'E2b-Sandbox-Id': self.id, 'E2b-Sandbox-Port': port, **token, **more}

    def ask(self, method, path, body=None, headers=None, port=ENVD):
        return self.hub.e2b(method, path, body, {**self.headers(port), **(headers or {})})

    def unary(self, name, **message):
        status, _, text = self.ask('POST', f'/{name}', message)
        return status, json.loads(text)

    def beside(self, process):
        """Starts one, and follows it until it ends by itself."""
        threading.Thread(target=self.stream, args=(
            'process.Process/Start', {'process': process, 'stdin': False})).start()

    def stream(self, name, message=None, raw=None, **headers):
        """The messages, and what the last frame says."""
        status, given, body = self.ask('POST', f'/{name}', raw or frame(message), {
            'Content-Type': 'application/connect+json', 'Connect-Protocol-Version': '1', **headers})
        assert status == 200 and given['Content-Type'] == 'application/connect+json', (status, body)
        found = list(frames(body))
        assert [flags for flags, _ in found] == [0] * (len(found) - 1) + [2], found
        return [m for _, m in found[:-1]], found[-1][1]

    def start(self, command, **more):
        return self.stream('process.Process/Start', {
            'process': {'cmd': '/bin/bash', 'args': ['-c', command]}, 'stdin': False, **more})

    def execute(self, code, **more):
        status, _, body = self.ask('POST', '/execute', {'code': code, **more}, port=CODE)
        assert status == 200 and body.isascii(), (status, body)
        return [json.loads(line) for line in body.splitlines()]

    def sign(self, path, op, until_s=None, user=''):
        text = f'{path}:{op}:{user}:{self.made["envdAccessToken"]}'
        text += f':{until_s}' if until_s else ''
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip('=')
        query = {'path': path, 'signature': 'v1_' + digest}
        if until_s:
            query['signature_expiration'] = str(until_s)
        return query

    def kill(self):
        assert self.hub.control('DELETE', f'/sandboxes/{self.id}', key=self.key)[0] in (204, 404)


def query(**parameters):
    return '?' + urlencode(parameters)


def config(home):
    path = home / 'config.json'
    path.write_text(json.dumps({
        'compat': {'apis': ['e2b'], 'templates': {'mine': 'host', 'lost': 'no-such-image'}},
        'principals': {'key:timeless': {'policy': {'rules': [
            {'name': 'times', 'actions': ['sandbox.set_timeout'], 'then': 'deny'}]}}}}))
    path.chmod(0o600)
    return str(path)


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    home = tmp_path_factory.mktemp('e2b')
    path = config(home)
    os.chown(path, me.uid, me.uid)
    with Hub(me, home, '--listen', '127.0.0.1:0', '--pool', '2', '--config', path) as shared:
        yield shared


@pytest.fixture(scope='module')
def scripts(hub):
    """One for each version, all at once."""
    program = node_program(20)  # what they require is an ES module
    if not os.path.isdir(os.path.join(SDKS, VERSIONS[0], 'node_modules')):
        pytest.skip('packages are missing: scripts/deps test')
    url = f'http://127.0.0.1:{hub.address[1]}'
    env = {**os.environ, 'E2B_API_KEY': 'e2b_' + hub.token.removeprefix('holt_'),
           'E2B_API_URL': url, 'E2B_SANDBOX_URL': url}
    started = {version: subprocess.Popen(
        [program, os.path.join(SDKS, 'check.cjs'), os.path.join(SDKS, version)], env=env,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for version in VERSIONS}
    yield started
    for proc in started.values():
        proc.kill()
        proc.communicate()


@pytest.fixture(scope='module')
def box(hub):
    made = Box(hub)
    yield made
    made.kill()


@pytest.mark.parametrize('version', VERSIONS)
def test_sdk(scripts, version):
    out, err = scripts[version].communicate(timeout=280)
    checks = [json.loads(line) for line in out.splitlines()]
    failed = '\n'.join(f'{c["name"]}: {c["why"]}' for c in checks if not c['ok'])
    assert not failed and scripts[version].returncode == 0, f'{failed}\n{err}'
    assert len(checks) >= 60, len(checks)


# ---- what both sides say --------------------------------------------------------------------

MASKS = [(r'[a-z0-9-]*[0-9a-f]{32,}(_\w+)?', '…'), (r'"\d{4}-\d\d-\d\dT[0-9:.]+Z"', '"2…Z"'),
         (r'"(pid|cpuCount|memoryMB|diskSizeMB)": \d+', r'"\1": 1'),
         (r'localhost:\d+', 'localhost:1'),
         (r'(DIRECTORY","path":"[^"]*","size":)"\d+"', r'\1"1"')]


class Recorded:
    """What is asked and answered, as lines without what differs each time."""

    def __init__(self, hub, **body):
        self.hub, self.lines, self.ids = hub, [], {}
        self.made = self.control('POST', '/v2/sandboxes', {'templateID': 'base', **body})
        self.id = self.made['sandboxID']

    def note(self, sign, *words):
        text = ' '.join(w if isinstance(w, str) else json.dumps(w) for w in words)
        for pattern, shown in MASKS:
            text = re.sub(pattern, shown, text)
        self.lines += [f'{sign} {line}' for line in text.splitlines()]

    def control(self, method, path, body=None):
        self.note('>', method, path, *([body] if body is not None else []))
        status, said = self.hub.control(method, path, body)
        self.note('<', str(status), said)
        return said

    def asked(self, method, path, body=None, port=ENVD, **headers):
        self.note('>', port, method, path, *([body] if body is not None else []))
        status, given, text = self.hub.e2b(method, path, body, {
            'E2b-Sandbox-Id': self.id, 'E2b-Sandbox-Port': port,
            'X-Access-Token': self.made['envdAccessToken'], **headers})
        self.note('<', str(status), given.get('Content-Type', ''), text.decode())

    def stream(self, name, message):
        self.note('>', ENVD, 'POST', f'/{name}', message)
        body = self.hub.e2b('POST', f'/{name}', frame(message), {
            'E2b-Sandbox-Id': self.id, 'E2b-Sandbox-Port': ENVD,
            'X-Access-Token': self.made['envdAccessToken'],
            'Content-Type': 'application/connect+json', 'Connect-Protocol-Version': '1'})[2]
        for flags, said in frames(body):
            self.note('<', str(flags), said)

    def start(self, command):
        self.stream('process.Process/Start', {
            'process': {'cmd': '/bin/bash', 'args': ['-c', command]}, 'stdin': False})


def test_transcript(hub, transcript):
    one = Recorded(hub, timeout=300, metadata={'of': 'transcript'}, envVars={'A': 'b'})
    one.control('GET', f'/sandboxes/{one.id}')
    one.control('GET', '/v2/sandboxes?metadata=of%3Dtranscript')
    one.control('POST', f'/sandboxes/{one.id}/timeout', {'timeout': 600})
    one.asked('GET', '/health')
    one.start('echo $A')  # one stream of output each: of two the order is chance
    one.start('echo err >&2; exit 3')
    one.start('kill -9 $$')
    one.stream('process.Process/Start', {'process': {'cmd': '/no/such'}, 'stdin': False})
    one.asked('POST', '/process.Process/List', {})
    one.asked('POST', '/process.Process/SendSignal',
              {'process': {'pid': 999999}, 'signal': 'SIGNAL_SIGKILL'})
    one.asked('POST', '/files?path=/tmp/t/a.txt', 'text',
              **{'Content-Type': 'application/octet-stream'})
    one.asked('GET', '/files?path=/tmp/t/a.txt')
    one.asked('GET', '/files?path=/tmp/t/none')
    for name, message in (('Stat', {'path': '/tmp/t/a.txt'}), ('MakeDir', {'path': '/tmp/t/d'}),
                          ('MakeDir', {'path': '/tmp/t/d'}),
                          ('Move', {'source': '/tmp/t/a.txt', 'destination': '/tmp/t/d/b'}),
                          ('ListDir', {'path': '/tmp/t', 'depth': 2}),
                          ('Remove', {'path': '/tmp/t'}), ('Stat', {'path': '/tmp/t'})):
        one.asked('POST', f'/filesystem.Filesystem/{name}', message)
    one.asked('POST', '/execute', {'code': 'print(1)\n"two"'}, port=CODE)
    one.asked('POST', '/execute', {'code': 'raise ValueError("three")'}, port=CODE)
    one.asked('POST', '/contexts', {'language': 'bash', 'cwd': '/tmp'}, port=CODE)
    one.asked('GET', '/contexts', port=CODE)
    one.control('POST', f'/sandboxes/{one.id}/pause')
    one.control('POST', f'/sandboxes/{one.id}/pause')
    one.control('POST', f'/v2/sandboxes/{one.id}/connect', {'timeout': 60})
    one.control('DELETE', f'/sandboxes/{one.id}')
    one.control('DELETE', f'/sandboxes/{one.id}')
    one.asked('GET', '/health')
    transcript('e2b', one.lines)


# ---- who may ask ----------------------------------------------------------------------------

CONTROL = [('POST', '/sandboxes'), ('POST', '/v2/sandboxes'), ('GET', '/sandboxes'),
           ('GET', '/v2/sandboxes'), ('GET', '/sandboxes/ID'), ('DELETE', '/sandboxes/ID'),
           ('POST', '/sandboxes/ID/connect'), ('POST', '/v2/sandboxes/ID/connect'),
           ('POST', '/sandboxes/ID/resume'), ('POST', '/sandboxes/ID/timeout'),
           ('POST', '/sandboxes/ID/pause'), ('GET', '/sandboxes/ID/metrics'),
           ('POST', '/sandboxes/ID/snapshots'), ('POST', '/sandboxes/ID/fork'),
           ('PUT', '/sandboxes/ID/network'), ('GET', '/snapshots'),
           ('DELETE', '/templates/snap-1'), ('GET', '/templates/aliases/base'),
           ('POST', '/v3/templates'), ('POST', '/volumes')]
DATA = [('POST', f'/process.Process/{name}') for name in (
    'Start', 'Connect', 'SendInput', 'CloseStdin', 'SendSignal', 'Update', 'List')]
DATA += [('POST', f'/filesystem.Filesystem/{name}') for name in (
    'Stat', 'MakeDir', 'Move', 'Remove', 'ListDir', 'WatchDir', 'CreateWatcher',
    'GetWatcherEvents', 'RemoveWatcher')]
DATA += [('GET', '/files?path=/tmp/x'), ('POST', '/files?path=/tmp/x'), ('GET', '/health')]
INTERPRETER = [('POST', '/execute'), ('GET', '/contexts'), ('POST', '/contexts'),
               ('DELETE', '/contexts/ctx-1'), ('POST', '/contexts/ctx-1/restart')]


def test_off_there_is_nothing(me, tmp_path):
    with Rest(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0') as plain:
        with plain.wire() as wire:
            for method, path in CONTROL + DATA + INTERPRETER:
                if path == '/health':
                    continue  # a view of the page
                body = '{}' if method in ('POST', 'PUT') else None
                reply = wire.ask(plain.request(method, path, body=body, fields=[
                    f'X-API-KEY: {plain.token}', f'E2b-Sandbox-Id: {NONE}']), method)
                assert reply.status == 404 and b'route_not_found' in reply.body, (path, reply)
            reply = wire.ask(plain.request(host=f'3000-{NONE}.localhost'))
            assert reply.status == 403 and b'host_not_allowed' in reply.body


def test_what_is_served_is_said(me, tmp_path):
    done = me.run('serve', '--listen', 'none', '--compat', 'e2b,mitto', text=True,
                  env={**me.env, 'HOLT_HOME': str(tmp_path)})
    assert done.returncode != 0 and 'mitto' in done.stderr


def test_the_control_plane_wants_a_key(hub, box):
    """Each route without one; one with all that is wrong, since too many of those have to wait."""
    wrong = [{'X-API-KEY': 'wrong'}, {'X-API-KEY': 'e2b_' + '0' * 64}, {'X-API-KEY': ''},
             {'Authorization': f'Bearer {hub.token}'},
             {'X-API-KEY': box.made['envdAccessToken']}]
    asked = [(method, path, {}) for method, path in CONTROL]
    for method, path, headers in asked + [('GET', '/v2/sandboxes', h) for h in wrong]:
        status, text = hub.refused(method, path.replace('ID', box.id),
                                   None if method == 'GET' else '{}', headers)
        said = json.loads(text)
        assert status == said['code'] == 401 and set(said) == {'code', 'message'}, (path, said)


def test_a_sandbox_wants_its_token(hub, box):
    other = Box(hub)
    wrong = [{'X-Access-Token': 'wrong'}, {'X-API-KEY': hub.token},
             {'Authorization': f'Bearer {hub.token}'},
             {'X-Access-Token': box.made['envdAccessToken'][:-1]},
             {'X-Access-Token': other.made['envdAccessToken']},
             {'E2B-Traffic-Access-Token': box.made['trafficAccessToken']}]
    asked = [(method, path, {}) for method, path in DATA + INTERPRETER]
    asked += [('POST', '/process.Process/List', headers) for headers in wrong]
    for method, path, headers in asked + [('GET', '/contexts', {
            'E2B-Traffic-Access-Token': other.made['trafficAccessToken']})]:
        status, text = hub.refused(method, path, None if method == 'GET' else '{}',
                                   {'E2b-Sandbox-Id': box.id, **headers})
        assert status == 401, (path, headers, text)
    for method, path in DATA + INTERPRETER:
        port = CODE if (method, path) in INTERPRETER else ENVD
        status, _, text = hub.e2b(method, path, None if method == 'GET' else '{}', {
            **box.headers(port), 'E2b-Sandbox-Id': NONE})
        assert status == 502, (path, status, text)
    other.kill()


def test_large_bodies_want_a_sandbox(hub, box):
    """No body above 1 MiB is awaited of a client without a token."""
    for method, path, port in (('POST', '/files?path=/tmp/x', ENVD), ('POST', '/execute', CODE)):
        for length in ('Content-Length: 2000000', 'Transfer-Encoding: chunked'):
            head = (f'{method} {path} HTTP/1.1\r\nHost: localhost\r\nE2b-Sandbox-Id: {NONE}'
                    f'\r\nE2b-Sandbox-Port: {port}\r\nExpect: 100-continue\r\n{length}')
            with socket.create_connection(hub.address, timeout=60) as wire:
                wire.sendall(head.encode() + b'\r\n\r\n')
                assert wire.recv(12) in (b'HTTP/1.1 401', b'HTTP/1.1 429'), (path, length)


def test_sandboxes_of_others_are_none(hub, box):
    key = hub.key('other', 'read', 'execute', 'lifecycle')
    for method, path in CONTROL:
        if 'ID' in path and 'network' not in path:  # which wants a key that administers
            body = {'timeout': 9} if method != 'GET' else None
            status, said = hub.control(method, path.replace('ID', box.id), body, key)
            assert (status, said['code']) == (404, 404), (path, said)
    assert hub.control('GET', '/v2/sandboxes', key=key) == (200, [])
    mine = Box(hub, key=f'e2b_{key.removeprefix("holt_key_")}')
    assert [s['sandboxID'] for s in hub.control('GET', '/v2/sandboxes', key=key)[1]] == [mine.id]
    assert mine.start('true')[1] == {}
    mine.kill()


def test_a_key_that_ends_ends_its_tokens(hub):
    key = hub.key('short', 'read', 'execute', 'lifecycle')
    mine = Box(hub, key=key)
    assert mine.ask('GET', '/health')[0] == 204
    hub.call('DELETE', '/v1/keys/short')
    assert hub.refused('GET', '/health', headers=mine.headers())[0] == 401
    assert hub.refused('GET', '/v2/sandboxes', headers={'X-API-KEY': key})[0] == 401
    hub.sweep(mine.id)


def test_a_key_that_may_only_read(hub):
    key = hub.key('reader', 'read')
    status, said = hub.control('POST', '/sandboxes', {'templateID': 'base'}, key)
    assert (status, said['code']) == (403, 403) and 'lifecycle' in said['message']


def test_holt_knows_the_same_ids(hub, box):
    assert hub.call('GET', f'/v1/sandboxes/{box.id}')['state'] == 'running'
    assert hub.exec(box.id, 'pwd')['stdout'] in ('/home/user\n', '/home/agent\n')
    made = hub.create()
    status, said = hub.control('POST', f'/v2/sandboxes/{made}/connect', {'timeout': 60})
    assert status == 200 and said['sandboxID'] == made
    # what was not made here is not shown to strangers
    assert hub.e2b('GET', '/', host=f'8000-{made}.localhost')[0] in (404, 502)
    hub.delete(made)


def test_every_call_is_audited(hub, box):
    box.start('true')
    records = hub.call('GET', f'/v1/audit?limit=50&target={box.id}')['records']
    assert {'sandbox.exec', 'exec.attach'} <= {r['action'] for r in records}, records


# ---- the control plane ----------------------------------------------------------------------

@pytest.mark.parametrize('body, status, says', [
    ({'mcp': {'x': {}}}, 501, 'mcp'),
    ({'iam': {'tokens': {'a': {}}}}, 501, 'iam'),
    ({'volumeMounts': [{'name': 'v', 'path': '/v'}]}, 501, 'volumeMounts'),
    ({'autoPause': True}, 501, 'autoPause'),
    ({'autoResume': {'enabled': True}}, 501, 'autoResume'),
    ({'network': {'rules': {'h': [{}]}}}, 501, 'network'),
    ({'network': {'denyOut': ['10.0.0.0/8']}}, 501, 'denyOut'),
    ({'network': {'allowOut': ['0.0.0.0/0']}}, 501, 'allowOut'),
    ({'network': {'allowOut': ['example.com']}}, 403, 'allow'),
    ({'metadata': {'e2b/template': 'x'}}, 400, 'e2b/'),
    ({'metadata': {'a b': 'x'}}, 400, 'labels'),
    ({'metadata': {'a': 1}}, 400, 'a string'),
    ({'envVars': {'A=B': 'x'}}, 400, 'env'),
    ({'timeout': 10**9}, 400, 'timeout'),
    ({'templateID': 'lost'}, 404, 'no-such-image'),
    ({'templateID': '../x'}, 404, ''),
    ({'templateID': 'snap-none'}, 404, ''),
])
def test_what_can_not_be_made(hub, body, status, says):
    got, said = hub.control('POST', '/v2/sandboxes', {'templateID': 'base', **body})
    assert (got, said['code']) == (status, status) and says in said['message'], said


def test_what_is_harmless_is_passed_over(hub):
    made = Box(hub, templateID='mine', unknown=1, secure=True, allow_internet_access=True,
               metadata={'a': 'b'}, autoPause=True, autoPauseMemory=False)
    info = hub.control('GET', f'/sandboxes/{made.id}')[1]
    assert (info['templateID'], info['metadata']) == ('mine', {'a': 'b'})
    assert info['lifecycle'] == {'onTimeout': 'pause', 'autoResume': False}
    made.kill()


@pytest.mark.parametrize('text', ['', '[]', '1', '{', '{"timeout":1,"timeout":2}', '\ud800',
                                  'null'])
def test_wrong_bodies(hub, box, text):
    for path in ('timeout', 'fork', 'network') if text else ('timeout',):
        method = 'PUT' if path == 'network' else 'POST'
        status, _, said = hub.e2b(method, f'/sandboxes/{box.id}/{path}', text.encode(
            'utf-8', 'surrogatepass'), {'X-API-KEY': hub.token})
        assert status == 400 and json.loads(said)['code'] == 400, (path, said)


NUMBERS = [-5, 1.5, 'abc', '60', True, [], {}, 2592001, 2**32 + 60, 2**63 - 1, 2**63, 2**64, 1e300]


@pytest.mark.parametrize('path, body', [
    *(('', {'timeout': n}) for n in NUMBERS), *(('/ID/connect', {'timeout': n}) for n in NUMBERS),
    *(('/ID/timeout', {'timeout': n}) for n in [*NUMBERS, None]),
    *(('/ID/fork', {'timeout': n}) for n in NUMBERS),
    *(('/ID/fork', {'count': n}) for n in [*NUMBERS, 0, 65]),
    *(('', {name: wrong}) for name in ('envVars', 'metadata', 'network', 'autoResume')
      for wrong in (['x'], 'x', 5, True)),
    *(('', {name: wrong}) for name in ('allow_internet_access', 'autoPause', 'autoPauseMemory')
      for wrong in ('false', 0, {})),
    ('', {'templateID': 5}), ('', {'network': {'allowPublicTraffic': 'false'}}),
    ('', {'network': {'allowOut': 'example.com'}}), ('', {'network': {'denyOut': {'a': 'b'}}}),
    ('/ID/pause', {'memory': 'false'}), ('/ID/snapshots', {'name': 5}),
    ('/ID/network', {'allowOut': 'example.com'})])
def test_wrong_types(hub, box, path, body):
    before = hub.control('GET', f'/sandboxes/{box.id}')[1]
    method = 'PUT' if 'network' in path else 'POST'
    if not path:
        body = {'templateID': 'base', **body}
    status, said = hub.control(method, f'/sandboxes{path.replace("ID", box.id)}', body)
    assert status == 400 and next(reversed(body)) in said['message'], (status, said)
    assert hub.control('GET', f'/sandboxes/{box.id}')[1] == before


def test_what_is_null_is_absent(hub):
    Box(hub, envVars=None, metadata=None, network=None, autoPause=None, timeout=None).kill()


def test_wrong_queries(hub):
    for limit in ('0', '-1', 'x', '', '1.5', str(2**64)):
        for path in ('/v2/sandboxes', '/snapshots'):
            assert hub.control('GET', f'{path}?limit={limit}')[0] == 400, (path, limit)
    assert hub.control('GET', '/v2/sandboxes?limit=100000')[0] == 200
    for metadata in ('a', 'a%3D%252500', '%252500%3Da', 'a%3D%2525ff', 'a%3D%252'):
        assert hub.control('GET', f'/v2/sandboxes?metadata={metadata}')[0] == 400, metadata


@pytest.mark.parametrize('name, message', [
    ('process.Process/Update', {'process': {'pid': 2**32 + 1}}),
    ('process.Process/Update', {'process': {'pid': 1}, 'pty': {'size': {'cols': -1}}}),
    ('process.Process/Update', {'process': {'pid': 1}, 'pty': 'x'}),
    ('process.Process/SendInput', {'process': 'x', 'input': {'stdin': ''}}),
    *((f'filesystem.Filesystem/{rpc}', {'path': wrong}) for rpc in (
        'Stat', 'MakeDir', 'Remove', 'ListDir', 'CreateWatcher') for wrong in (5, [], {}, True)),
    ('filesystem.Filesystem/ListDir', {'path': '/tmp', 'depth': -1}),
    ('filesystem.Filesystem/ListDir', {'path': '/tmp', 'depth': '2'}),
    ('filesystem.Filesystem/CreateWatcher', {'path': '/tmp', 'recursive': 'yes'}),
    ('filesystem.Filesystem/Move', {'source': '/tmp/none', 'destination': 5})])
def test_wrong_types_of_envd(box, name, message):
    """What removes is among them: another path than the one that is meant would go."""
    status, said = box.unary(name, **message)
    assert (status, said['code']) == (400, 'invalid_argument'), said


@pytest.mark.parametrize('message', [
    {'process': {'cmd': 'true', 'args': {'a': 'x'}}}, {'process': {'cmd': 'true', 'args': 'x'}},
    {'process': {'cmd': 'true', 'envs': ['x']}}, {'process': {'cmd': 'true', 'cwd': 5}},
    {'process': {'cmd': 'true'}, 'stdin': 'x'}, {'process': {'cmd': 'true'}, 'pty': []},
    {'process': {'cmd': 'true'}, 'pty': {'size': {'cols': -1, 'rows': 1}}},
    {'process': {'cmd': 'true'}, 'tag': 5}, {'process': {'cmd': 'true'}, 'tag': 'a\0b'}])
def test_wrong_types_of_a_start(box, message):
    messages, end = box.stream('process.Process/Start', message)
    assert messages == [] and end['error']['code'] == 'invalid_argument', end


def test_what_fails_leaves_nothing(hub):
    """A copy is made first, and gets its time to live then."""
    key = hub.key('timeless', 'read', 'execute', 'lifecycle')
    source = Box(hub, key)

    def left():
        return {s['sandboxID'] for s in hub.control('GET', '/v2/sandboxes', key=key)[1]}
    status, said = hub.control('POST', f'/sandboxes/{source.id}/snapshots', {}, key)
    assert status == 201, said
    for timeout, wanted in ((60, 403), (99999999999, 400)):
        for path, body in (('', {'templateID': said['snapshotID']}),
                           (f'/{source.id}/fork', {'count': 3})):
            got, why = hub.control('POST', f'/sandboxes{path}', {**body, 'timeout': timeout}, key)
            assert got == wanted, why
            until(lambda: left() == {source.id}, what='the end of what was made')
    source.kill()


def test_large_bodies(hub, box):
    for path, headers in (('/sandboxes', {'X-API-KEY': hub.token}),
                          ('/process.Process/List', box.headers()),
                          ('/execute', box.headers(CODE)), ('/files?path=/tmp/x', box.headers())):
        size = 80 << 20 if 'files' in path else 4 << 20
        with hub.wire() as wire:  # the head is enough
            reply = wire.ask(hub.request('POST', path, token=None, fields=[
                f'Content-Length: {size}', *(f'{k}: {v}' for k, v in headers.items())]), 'POST')
        assert reply.status == 413 and json.loads(reply.body)['code'], (path, reply)


def test_pages(hub):
    made = [Box(hub, metadata={'page': 'one&two='}) for _ in range(3)]
    found, token = [], ''
    wanted = quote('page=' + quote(quote('one&two=', safe=''), safe=''), safe='')
    while True:
        status, headers, text = hub.e2b(
            'GET', f'/v2/sandboxes?limit=1&metadata={wanted}{token}', headers={
                'X-API-KEY': hub.token})
        assert status == 200, text
        found += json.loads(text)
        if not headers['X-Next-Token']:
            break
        token = '&nextToken=' + headers['X-Next-Token']
    assert [s['sandboxID'] for s in found] == [m.id for m in made]
    for m in made:
        m.kill()


def test_a_pause_of_files_alone(hub):
    made = Box(hub)
    made.ask('POST', '/files?path=kept', b'kept', {'Content-Type': 'application/octet-stream'})
    assert hub.control('POST', f'/sandboxes/{made.id}/pause', {'memory': False})[0] == 204
    assert hub.control('POST', f'/sandboxes/{made.id}/pause', {'memory': False})[0] == 409
    assert made.ask('GET', '/health')[0] == 502
    status, again = hub.control('POST', f'/v2/sandboxes/{made.id}/connect', {'timeout': 60})
    assert status == 201
    made.made = again
    assert made.ask('GET', '/files?path=kept')[2] == b'kept'
    made.kill()


# ---- envd -----------------------------------------------------------------------------------

def test_events(box):
    events, end = box.start('echo out; exit 3')
    kinds = [next(iter(e['event'])) for e in events]
    assert kinds[0] == 'start' and kinds[-1] == 'end' and end == {}
    assert events[1]['event']['data'] == {'stdout': b64(b'out\n')}
    assert events[-1]['event']['end'] == {'exitCode': 3, 'exited': True,
                                          'status': 'exit status 3', 'error': 'exit status 3'}


def test_a_tag(box):
    sleeping = {'process': {'cmd': 'sleep', 'args': ['60']}, 'tag': 'named', 'stdin': False}
    events, end = box.stream('process.Process/Start', sleeping, **{'Connect-Timeout-Ms': '1000'})
    assert end['error']['code'] == 'deadline_exceeded' and events[0]['event']['start']['pid']
    events, end = box.stream('process.Process/Connect', {'process': {'tag': 'named'}})
    assert 'start' in events[0]['event']
    _, end = box.stream('process.Process/Connect', {'process': {'tag': 'none'}})
    assert end['error']['code'] == 'not_found'


def test_a_deadline_of_connect_ends_the_stream_alone(box):
    conn = http.client.HTTPConnection(*box.hub.address, timeout=60)
    conn.request('POST', '/process.Process/Start', frame(
        {'process': {'cmd': 'sleep', 'args': ['60']}, 'stdin': False}),
        {**box.headers(), 'Content-Type': 'application/connect+json'})
    reply = conn.getresponse()
    head = reply.read(5)
    pid = json.loads(reply.read(int.from_bytes(head[1:], 'big')))['event']['start']['pid']
    conn.close()  # the client cuts it
    _, end = box.stream('process.Process/Connect', {'process': {'pid': pid}},
                             **{'Connect-Timeout-Ms': '200'})
    assert end['error']['code'] == 'deadline_exceeded'
    running = [p['pid'] for p in box.unary('process.Process/List')[1]['processes']]
    assert pid in running
    assert box.unary('process.Process/SendSignal', process={'pid': pid},
                     signal='SIGNAL_SIGTERM') == (200, {})
    until(lambda: pid not in [p['pid'] for p in box.unary('process.Process/List')[1]['processes']],
          what='its end')


@pytest.mark.parametrize('raw', [
    b'\0\0\0\0', b'\0\0\0\0\x05{}', b'\1\0\0\0\2{}', b'\x80\0\0\0\2{}', b'\0\xff\xff\xff\xff{}',
    b'\0\0\0\0\2{}\0\0\0\0\2{}', b'\0\0\0\0\2[]', b'\0\0\0\0\1{', b'\0\0\0\0\0',
    b'\0\0\0\0\x18{"process":{"args":[1]}}', b'{}'])
def test_malformed_frames(box, raw):
    messages, end = box.stream('process.Process/Start', raw=raw)
    assert messages == [] and end['error']['code'] == 'invalid_argument', end


@pytest.mark.parametrize('name, message, code', [
    ('process.Process/SendInput', {'process': {'pid': 1}, 'input': {'stdin': 'eA=='}}, 'not_found'),
    ('process.Process/SendInput', {'process': {'pid': 1}, 'input': {}}, 'invalid_argument'),
    ('process.Process/SendInput', {'process': {}, 'input': {'stdin': 'eA=='}}, 'invalid_argument'),
    ('process.Process/SendInput', {'process': {'pid': -1}, 'input': {'stdin': ''}},
     'invalid_argument'),
    ('process.Process/SendSignal', {'process': {'pid': 1}, 'signal': 'SIGNAL_SIGSTOP'},
     'invalid_argument'),
    ('process.Process/SendSignal', {'process': {'pid': 1}, 'signal': 9}, 'not_found'),
    ('process.Process/Update', {'process': {'pid': 1}, 'pty': {'size': {'cols': 1, 'rows': 1}}},
     'not_found'),
    ('filesystem.Filesystem/Stat', {'path': '/none'}, 'not_found'),
    ('filesystem.Filesystem/Stat', {'path': '/tmp\0/x'}, 'invalid_argument'),
    ('filesystem.Filesystem/ListDir', {'path': '/tmp', 'depth': 1000}, 'invalid_argument'),
    ('filesystem.Filesystem/ListDir', {'path': '/etc/passwd'}, None),
    ('filesystem.Filesystem/Move', {'source': '/none', 'destination': '/tmp/x'}, 'not_found'),
    ('filesystem.Filesystem/GetWatcherEvents', {'watcherId': 'watch-1'}, 'not_found'),
    ('filesystem.Filesystem/RemoveWatcher', {'watcherId': ''}, 'not_found'),
    ('filesystem.Filesystem/CreateWatcher', {'path': '/none'}, 'not_found'),
])
def test_unary_failures(box, name, message, code):
    status, said = box.unary(name, **message)
    assert status >= 400 and set(said) == {'code', 'message'}, said
    assert code is None or said['code'] == code, said


def test_a_watcher(hub, box):
    status, said = box.unary('filesystem.Filesystem/CreateWatcher', path='/tmp', recursive=False)
    assert status == 200
    box.ask('POST', '/files?path=/tmp/watched', b'1', {'Content-Type': 'application/octet-stream'})
    box.ask('POST', '/files?path=/tmp/watched', b'2', {'Content-Type': 'application/octet-stream'})
    seen = []

    def wrote():
        seen.extend(box.unary('filesystem.Filesystem/GetWatcherEvents', **said)[1]['events'])
        return {'name': 'watched', 'type': 'EVENT_TYPE_WRITE'} in seen
    until(wrote, what='a write')
    assert not [e for e in seen if '.holt' in e['name']]
    other = Box(hub)  # which knows nothing of it
    assert other.unary('filesystem.Filesystem/GetWatcherEvents', **said)[0] == 404
    other.kill()
    assert box.unary('filesystem.Filesystem/RemoveWatcher', **said) == (200, {})
    assert box.unary('filesystem.Filesystem/GetWatcherEvents', **said)[0] == 404


def test_watchers_of_a_sandbox_are_bounded(hub, box):
    greedy = Box(hub)
    got = [greedy.unary('filesystem.Filesystem/CreateWatcher', path='/tmp')[0] for _ in range(33)]
    assert got[0] == 200 and got[-1] == 429, got
    status, said = box.unary('filesystem.Filesystem/CreateWatcher', path='/tmp')
    assert status == 200 and box.unary('filesystem.Filesystem/RemoveWatcher', **said)[0] == 200
    greedy.kill()


def test_paths_stay_inside(box):
    """Which of them are: the host's file is a control."""
    with open('/etc/hostname', 'rb') as f:
        own = f.read()
    for path in ('/../../../../etc/hostname', '../../../../etc/hostname',
                 '/proc/1/root/etc/hostname', '/proc/self/cwd/../../etc/hostname',
                 '~/../../../../etc/hostname'):
        status, _, text = box.ask('GET', '/files' + query(path=path))
        assert own not in text or not own.strip(), (path, status, text)
    for name in ('Start', 'Stat'):
        assert box.ask('GET', f'/files/../process.Process/{name}')[0] == 400
    assert box.start('ln -s /proc/1/environ /tmp/env')[1] == {}
    assert box.ask('GET', '/files?path=/tmp/env')[0] in (400, 403, 404)


@pytest.mark.parametrize('kind, body, status', [
    ('multipart/form-data; boundary=b', b'', 400),
    ('multipart/form-data; boundary=b', b'--b\r\n', 400),
    ('multipart/form-data; boundary=b', b'--b--\r\n', 400),
    ('multipart/form-data; boundary=b', b'--b\r\n\r\nx\r\n--b--', 400),
    ('multipart/form-data; boundary=b',
     b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nx\r\n--b', 400),
    ('multipart/form-data; boundary=b',
     b'--b\r\nContent-Disposition: form-data; name="file"; filename=""\r\n\r\nx\r\n--b--', 400),
    ('multipart/form-data; boundary=b',
     b'--b\r\nX: ' + b'y' * 9000 + b'\r\n\r\nx\r\n--b--', 400),
    ('multipart/form-data; boundary=b',
     b'--b\r\nContent-Disposition: form-data; name="file"; filename="/tmp/\xff"\r\n\r\nx\r\n--b--',
     400),
    ('multipart/form-data', b'--b--', 415),
    ('multipart/form-data; boundary=' + 'b' * 300, b'--b--', 415),
    ('text/plain', b'x', 415), ('application/json', b'{}', 415),
])
def test_malformed_uploads(box, kind, body, status):
    got, _, said = box.ask('POST', '/files', body, {'Content-Type': kind})
    assert got == status and json.loads(said)['code'] == status, said


@pytest.mark.timing
def test_a_boundary_that_is_nearly_everywhere(box):
    begun = time.monotonic()
    got, _, said = box.ask('POST', '/files', b'a' * (64 << 20), {
        'Content-Type': 'multipart/form-data; boundary=' + 'a' * 200})
    assert got == 400 and time.monotonic() - begun < 60, said


def test_forms(box):
    body = (b'--b\r\ncontent-disposition: form-data; name="file"; filename="/tmp/q%22.txt"\r\n'
            b'Content-Type: text/plain\r\n\r\n--b in it\r\n-\r\n--b\r\n'
            b'Content-Disposition: form-data; name=other\r\n\r\nignored\r\n--b--\r\nepilogue')
    status, _, said = box.ask('POST', '/files', body,
                              {'Content-Type': 'multipart/form-data; boundary="b"'})
    assert status == 200 and json.loads(said) == [
        {'name': 'q".txt', 'type': 'file', 'path': '/tmp/q".txt'}]
    assert box.ask('GET', '/files' + query(path='/tmp/q".txt'))[2] == b'--b in it\r\n-'


def test_gzip(box):
    kind = {'Content-Type': 'application/octet-stream', 'Content-Encoding': 'gzip'}
    packed = gzip.compress(b'packed')
    assert box.ask('POST', '/files?path=/tmp/z', packed, kind)[0] == 200
    assert box.ask('GET', '/files?path=/tmp/z')[2] == b'packed'
    for wrong in (packed[:-3], b'no gzip', packed + b'more', b''):
        status, _, said = box.ask('POST', '/files?path=/tmp/z', wrong, kind)
        assert status == 400, (wrong, said)
    bomb = gzip.compress(b'\0' * (66 << 20), 1)
    status, _, said = box.ask('POST', '/files?path=/tmp/bomb', bomb, kind)
    assert status == 413 and json.loads(said)['code'] == 413
    assert box.ask('GET', '/files?path=/tmp/bomb')[0] == 404
    assert box.ask('POST', '/files?path=/tmp/z', b'x', {
        'Content-Type': 'application/octet-stream', 'Content-Encoding': 'br'})[0] == 415


def test_gzips_beside_each_other(box):
    """What they unpack to is bounded in all; the others are told to come again."""
    kind = {'Content-Type': 'application/octet-stream', 'Content-Encoding': 'gzip'}
    large = gzip.compress(b'\0' * (60 << 20), 1)
    with ThreadPoolExecutor(12) as pool:
        got = [reply[0] for reply in pool.map(
            lambda n: box.ask('POST', f'/files?path=/tmp/g{n % 2}', large, kind), range(12))]
    assert set(got) <= {200, 429, 507} and 429 in got, got
    assert box.ask('POST', '/files?path=/tmp/z', gzip.compress(b'x'), kind)[0] == 200


def test_signatures(hub, box):
    kind = {'Content-Type': 'application/octet-stream'}
    now = int(time.time())

    def ask(method, **parameters):
        return hub.refused(method, '/files' + query(**parameters),
                           b'signed' if method == 'POST' else None, kind)
    assert ask('POST', **box.sign('/tmp/s', 'write', now + 60))[0] == 200
    assert ask('GET', **box.sign('/tmp/s', 'read')) == (200, b'signed')
    assert ask('GET', **box.sign('/tmp/s', 'read', user='user'), username='user')[0] == 200
    good = box.sign('/tmp/s', 'read', now + 60)
    for wrong in ({'path': '/tmp/z'}, {'signature': good['signature'][:-1]},
                  {'signature': good['signature'] + '='}, {'signature': 'v1_'}, {'signature': ''},
                  {'signature_expiration': str(now + 61)}, {'signature_expiration': str(now - 1)},
                  {'signature_expiration': '-1'}, {'signature_expiration': 'x'},
                  {'username': 'root'}):
        assert ask('GET', **{**good, **wrong})[0] == 401, wrong
    assert ask('POST', **good)[0] == 401
    assert ask('GET', **box.sign('/tmp/s', 'write'))[0] == 401
    assert ask('GET', **box.sign('/tmp/s', 'read', now - 1))[0] == 401
    other = Box(hub)
    assert hub.refused('GET', '/files' + query(**good),
                       headers={'E2b-Sandbox-Id': other.id})[0] == 401
    assert hub.refused('GET', '/health' + query(**good),
                       headers={'E2b-Sandbox-Id': other.id})[0] == 401
    gone = other.sign('/tmp/s', 'read')
    other.kill()
    assert ask('GET', **gone)[0] == 401


def test_a_stranger_who_guesses_signatures(hub, box):
    """What is looked at for him is bounded; addresses that are known, and tokens, go on."""
    others = [Box(hub) for _ in range(60)]
    # many at once: fewer in a second than are looked at prove nothing
    guess = request(path='/files' + query(path='p', signature='v1_' + 'A' * 43), token=None) * 100
    good = '/files' + query(**box.sign('/etc/passwd', 'read'))
    assert hub.refused('GET', good)[0] == 200
    refused = threading.Event()

    def guesses(_):
        with hub.wire() as wire:
            for _ in range(40):
                wire.send(guess)
                if any(b'too many signed addresses' in wire.reply().body for _ in range(100)):
                    refused.set()
                if refused.is_set():
                    break
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(guesses, range(8)))
    assert refused.is_set()
    assert hub.e2b('GET', good)[0] == 200
    assert box.ask('GET', '/health')[0] == 204
    fresh = '/files' + query(**others[-1].sign('/etc/passwd', 'read'))
    assert hub.refused('GET', fresh)[0] == 200
    for other in others:
        other.kill()


# ---- ports ----------------------------------------------------------------------------------

def test_host_names(hub, box):
    for host in (f'3000-{box.id}.evil.example', 'evil.example', f'3000-{box.id}.a.localhost',
                 f'3000-{box.id}.localhost.evil', f'{box.id}'):
        assert hub.e2b('GET', '/', host=host)[0] == 403, host
    for host in (f'0-{box.id}.localhost', f'99999-{box.id}.localhost'):
        assert hub.e2b('GET', '/v1/sandboxes', host=host)[0] in (401, 404), host
    # a name of a port never leads to the hub's own routes
    for path in ('/', '/v1/sandboxes', '/healthz', '/sandboxes', '/mcp'):
        status, _, text = hub.e2b('GET', path, host=f'3000-{box.id}.localhost')
        assert status == 502 and b'port' in text, (path, status, text)
        assert hub.e2b('GET', path, host=f'3000-{NONE}.localhost')[0] in (404, 502)
        assert hub.e2b('GET', path, headers={**box.headers('3000')})[0] == 502
    status, _, _ = hub.e2b('GET', '/', host=f'3000-{box.id}.localhost',
                           headers={'Origin': 'http://evil.example'})
    assert status == 403


def is_public(hub, box):
    """Whether its ports are shown without a token; behind this one nothing listens."""
    status = hub.e2b('GET', '/', host=f'3000-{box.id}.localhost')[0]
    assert status in (401, 502), status
    return status == 502


def test_copies_of_a_private_one_are_private(hub, box):
    closed, opened = {'allowPublicTraffic': False}, {'allowPublicTraffic': True}
    source = Box(hub, network=closed)
    snapshot = hub.control('POST', f'/sandboxes/{source.id}/snapshots', {})[1]['snapshotID']
    forked = hub.control('POST', f'/sandboxes/{source.id}/fork', {})[1][0]['sandbox']
    copy = Box(hub, templateID=snapshot)
    again = hub.control('POST', f'/sandboxes/{copy.id}/snapshots', {})[1]['snapshotID']
    source.kill()
    copies = [copy, Box(hub, templateID=snapshot, network=closed), Box(hub, templateID=snapshot),
              Box(hub, templateID=again)]
    for made in copies:
        assert not is_public(hub, made)
        token = {'E2B-Traffic-Access-Token': made.made['trafficAccessToken']}
        assert hub.e2b('GET', '/', headers=token, host=f'3000-{made.id}.localhost')[0] == 502
    assert hub.e2b('GET', '/', host=f'3000-{forked["sandboxID"]}.localhost')[0] == 401
    status, said = hub.control('POST', '/sandboxes', {'templateID': snapshot, 'network': opened})
    assert status == 403 and 'allowPublicTraffic' in said['message'], said
    for made in copies:
        made.kill()


def test_copies_of_a_public_one(hub, box):
    closed, opened = {'allowPublicTraffic': False}, {'allowPublicTraffic': True}
    snapshot = hub.control('POST', f'/sandboxes/{box.id}/snapshots', {})[1]['snapshotID']
    plain = hub.create()  # whose ports nobody sees
    other = hub.control('POST', f'/sandboxes/{plain}/snapshots', {})[1]['snapshotID']
    hub.delete(plain)
    for template, network, public in ((snapshot, {}, True), (snapshot, closed, False),
                                      (snapshot, opened, True), (other, {}, False),
                                      (other, opened, True)):
        made = Box(hub, templateID=template, network=network)
        assert is_public(hub, made) == public, (template, network)
        made.kill()
    for network in ({'allowPublicTraffic': 'false'}, {'allowPublicTraffic': 0},
                    {'allowPublicTraffic': []}):
        for template in ('base', snapshot):
            assert hub.control('POST', '/sandboxes', {
                'templateID': template, 'network': network})[0] == 400, network
    assert hub.control('POST', '/sandboxes', {'templateID': snapshot, 'network': {
        'allowOut': ['example.com'], **closed}})[0] == 501


def test_credentials_stay_here(hub, box):
    """A program behind a port sees none that were meant for the hub."""
    program = ('import socket\ns = socket.create_server(("", 4567))\nfor _ in range(2):\n'
               '    c = s.accept()[0]\n    t = c.recv(65536)\n'
               '    c.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\n" + t)\n    c.close()\n')
    box.beside({'cmd': 'python3', 'args': ['-c', program]})
    secret = {'X-API-KEY': hub.token, 'E2B-Traffic-Access-Token': box.made['trafficAccessToken'],
              'Authorization': 'Bearer own', 'X-Other': 'kept'}
    at_port = {'host': f'4567-{box.id}.localhost',
               'headers': {**secret, 'X-Access-Token': box.made['envdAccessToken']}}
    for how in (at_port, {'headers': {**box.headers('4567'), **secret}}):
        def asked():
            status, _, text = hub.e2b('GET', '/', **how)
            return status == 200 and text.decode().lower()
        seen = until(asked, what='the program')
        assert 'x-other: kept' in seen, seen
        assert not re.search('x-api-key|access-token', seen), seen
        assert ('bearer own' in seen) == (how is at_port), seen


# ---- the code interpreter -------------------------------------------------------------------

def test_lines(box):
    lines = box.execute('print("é\\u2028")\n1')
    assert [line['type'] for line in lines] == ['number_of_executions', 'stdout', 'result',
                                                'end_of_execution']
    assert lines[1]['text'] == 'é\u2028\n' and lines[2] == {
        'type': 'result', 'text': '1', 'is_main_result': True}
    assert box.execute('')[-1] == {'type': 'end_of_execution'}


def test_large_results(box):
    lines = box.execute('class R:\n    def _repr_html_(self): return "x" * (3 << 20)\n'
                        '    def __repr__(self): return "r"\nR()')
    assert [len(line['html']) for line in lines if line['type'] == 'result'] == [3 << 20]
    assert lines[-1] == {'type': 'end_of_execution'}


def test_executions_that_wait(box):
    box.execute('1')
    with ThreadPoolExecutor(24) as pool:
        asked = [pool.submit(box.ask, 'POST', '/execute', {
            'code': 'import os, time\nwhile not os.path.exists("/tmp/go"): time.sleep(.05)'},
            port=CODE) for _ in range(24)]
        until(lambda: [one for one in asked if one.done()], what='a refusal')
        box.start('touch /tmp/go')
        got = [one.result()[0] for one in asked]
    assert set(got) == {200, 429} and got.count(200) >= 16, got


def test_a_client_that_leaves_before_the_first_mark(hub, box):
    box.execute('1')
    before = hub.connections()
    asked = [http.client.HTTPConnection(*hub.address, timeout=60) for _ in range(2)]
    for conn, code in zip(asked, ('import time; time.sleep(3)', '2')):
        conn.request('POST', '/execute', json.dumps({'code': code}), {
            **box.headers(CODE), 'Content-Type': 'application/json'})
        if conn is asked[0]:
            assert conn.getresponse().status == 200  # the other waits behind it
    until(lambda: hub.connections() >= before + 2, what='both executions')
    for conn in reversed(asked):
        conn.close()
    until(lambda: hub.connections() <= before, what='the end of both')
    assert box.execute('3')[-1] == {'type': 'end_of_execution'}


def executing(hub, box, code, **more):
    conn = http.client.HTTPConnection(*hub.address, timeout=60)
    conn.request('POST', '/execute', json.dumps({'code': code, **more}), {
        **box.headers(CODE), 'Content-Type': 'application/json'})
    box.ask('GET', '/contexts', port=CODE)  # the hub has read this one, too
    return conn


def test_who_leaves_the_line_is_never_run(hub, box):
    waits = 'import os, time\nwhile not os.path.exists("/tmp/free"): time.sleep(.05)'
    first = executing(hub, box, waits)
    assert first.getresponse().status == 200
    others = [executing(hub, box, f'open("/tmp/ran{n}", "w")') for n in range(3)]
    others[1].close()
    box.start('touch /tmp/free')
    for one in (others[0], others[2]):
        assert b'end_of_execution' in one.getresponse().read()
    first.close()
    lines = box.execute('print(sorted(f for f in os.listdir("/tmp") if f[:3] == "ran"))')
    assert kept(lines) == "['ran0', 'ran2']\n"


LONG = {'python': 'import time; time.sleep(1000)', 'bash': 'sleep 1000',
        'javascript': 'await new Promise(f => setTimeout(f, 1e6))'}
# as long as it takes until one is interrupted
SHORT = {'python': 'import time; time.sleep(.05)', 'bash': 'sleep .05',
         'javascript': 'await new Promise(f => setTimeout(f, 50))'}
TELLS = {'python': 'x = 0\nfor i in range(100000): x += i\nprint(kept)',
         'bash': 'sleep .01; echo $kept',
         'javascript': 'await new Promise(f => setTimeout(f, 10)); console.log(kept)'}


@pytest.mark.parametrize('language', sorted(LONG))
def test_who_leaves_stops_its_own_code_alone(hub, box, language):
    """Whether it has begun, runs or just ends."""
    assert box.execute('kept=41', language=language)[-1] == {'type': 'end_of_execution'}
    for n in range(45):
        gone = executing(hub, box, (SHORT if n % 3 else LONG)[language], language=language)
        if n % 2:
            assert gone.getresponse().status == 200
        gone.close()
        lines = box.execute(TELLS[language], language=language)
        assert kept(lines) == '41\n' and not [x for x in lines if x['type'] == 'error'], (n, lines)


def test_loops_of_a_shell(box):
    box.execute('kept=41', language='bash')
    for code in ('continue', 'break', 'for i in 1 2; do continue 2; done', 'false', 'return'):
        assert box.execute(code, language='bash')[-1] == {'type': 'end_of_execution'}, code
        assert kept(box.execute('echo $kept', language='bash')) == '41\n', code


def test_an_end_that_is_lost(hub, box):
    """Its client reads nothing, and what it leaves behind prints more than is kept: who comes next
    is not held up by it."""
    slow = executing(hub, box, 'yes | head -c 16000000; yes | head -c 150000000 & '
                     'while kill -0 $!; do sleep .1; done; touch /tmp/flooded', language='bash')
    until(lambda: box.execute('import os; os.path.exists("/tmp/flooded")')[1]['text'] == 'True',
          what='the end of the flood')
    slow.close()
    assert kept(box.execute('echo on', language='bash')) == 'on\n'


def test_forged_marks(box):
    """Code may say what it likes about itself, and breaks nothing."""
    lines = box.execute('import os\nfor n in range(3):\n'
                        '    os.write(1, b"\\x1e" + b"x" * 100 + b"\\n")\n'
                        '    os.write(1, b"\\x1eholt-")\n'
                        'os.write(2, b"\\x1e" * 1000)\n"end"')
    text = ''.join(line['text'] for line in lines if line['type'] == 'stdout')
    assert text == ('\x1e' + 'x' * 100 + '\n\x1eholt-') * 3
    assert any(line.get('text') == "'end'" for line in lines)
    assert ''.join(line['text'] for line in lines if line['type'] == 'stderr') == '\x1e' * 1000
    forged = box.execute('import sys, gc\nt = TOKEN if "TOKEN" in globals() else "x"\n'
                         'print("\\x1e" + t + " 1 Z")\n2')
    assert forged[-1]['type'] == 'end_of_execution'


def test_an_end_that_redaction_holds(box):
    """What looks like a key is held until nothing follows, and the end with it."""
    for _ in range(5):
        lines = box.execute('import sys\nsys.stderr.write("x " * 450); sys.stderr.flush()\n'
                            'sys.stdout.write("-----BEGIN PRIVATE KEY-----\\nX: ")')
        assert lines[-1] == {'type': 'end_of_execution'}
        assert 'x ' * 450 == ''.join(line['text'] for line in lines if line['type'] == 'stderr')
    assert kept(box.execute('print("on")')) == 'on\n'


@pytest.mark.parametrize('body, status', [
    ({}, 400), ({'code': 1}, 400), ({'code': 'x', 'language': 'r'}, 400),
    ({'code': '1', 'language': 5}, 400), ({'code': '1', 'context_id': 5}, 400),
    ({'code': 'x', 'context_id': 'ctx-none'}, 404), ({'code': 'x' * (600 << 10)}, 413)])
def test_wrong_executions(box, body, status):
    got, headers, text = box.ask('POST', '/execute', body, port=CODE)
    assert got == status and headers['Content-Type'].startswith('text/plain'), text


def kept(lines):
    return ''.join(line['text'] for line in lines if line['type'] == 'stdout')


@pytest.mark.parametrize('language, keep, tell', [
    ('python', 'kept = 41', 'print(kept)'), ('javascript', 'kept = 41', 'console.log(kept)'),
    ('bash', 'kept=41', 'echo $kept')])
def test_wrong_variables_cost_no_state(box, language, keep, tell):
    if language == 'javascript' and not shutil.which('node'):
        pytest.skip('Node.js is missing: scripts/deps test')
    box.execute(keep, language=language)
    for wrong in ({'A': 'x\0y'}, {'A': 5}, {'A': None}, {'A=B': '5'}, {'': '5'}, {'A\0B': '5'},
                  {f'A{n}': '' for n in range(300)}, [], ['A'], 'A', 5):
        status, _, text = box.ask('POST', '/execute', {
            'code': tell, 'language': language, 'env_vars': wrong}, port=CODE)
        assert status == 400 and b'env_vars' in text, (wrong, status, text)
    for right in (None, {}, {'A': ''}, {'A': "it's\n$HOME"}):
        assert kept(box.execute(tell, language=language, env_vars=right)) == '41\n', right


def test_a_shell_that_splits_by_other_signs(box):
    """What the interpreter itself reads is not split by them."""
    for code in ('IFS=,', 'a=x,y; echo $a', 'unset IFS', 'echo $a'):
        lines = box.execute(code, language='bash')
    assert kept(lines) == 'x,y\n'


@pytest.mark.parametrize('language, away, tell, seen', [
    ('bash', 'exec >/dev/null 2>&1', 'echo 1', '1\n'), ('bash', 'exec >&- 2>&-', 'echo 2', '2\n'),
    ('python', 'import os; os.dup2(os.open("/dev/null", 1), 1); os.dup2(1, 2)', '1', ''),
    ('python', 'os.close(1); os.close(2)', '1', '')])
def test_output_that_is_led_elsewhere(hub, box, language, away, tell, seen):
    """An execution still ends, and so does the next in its context."""
    context = json.loads(box.ask('POST', '/contexts', {'language': language}, port=CODE)[2])['id']
    for code in (away if 'os' not in away else f'import os; {away}', tell):
        status, _, body = box.ask('POST', '/execute', {'code': code, 'context_id': context},
                                  port=CODE)
        lines = [json.loads(line) for line in body.splitlines()]
        assert status == 200 and lines[-1] == {'type': 'end_of_execution'}, (code, body)
        assert not [line for line in lines if line['type'] == 'error'], lines
    assert kept(lines) == seen


def test_contexts_of_others(hub, box):
    status, _, text = box.ask('POST', '/contexts', {}, port=CODE)
    assert status == 200
    mine = json.loads(text)
    other = Box(hub)
    for method, path in (('DELETE', ''), ('POST', '/restart')):
        assert other.ask(method, f'/contexts/{mine["id"]}{path}', '{}', port=CODE)[0] == 404
    assert json.loads(other.ask('GET', '/contexts', port=CODE)[2]) == []
    got, _, _ = other.ask('POST', '/execute', {'code': '1', 'context_id': mine['id']}, port=CODE)
    assert got == 404
    other.kill()
    traffic = {'E2b-Sandbox-Id': box.id, 'E2b-Sandbox-Port': CODE,
               'E2B-Traffic-Access-Token': box.made['trafficAccessToken']}
    assert hub.e2b('DELETE', f'/contexts/{mine["id"]}', headers=traffic)[0] == 204


def test_secrets_do_not_leave(hub, box):
    token = 'ghp_' + 'a1B2c3D4e5' * 3 + 'a1B2c3'
    for code in (f'print("{token}")', f'"{token}"', f'raise ValueError("{token}")'):
        assert token not in json.dumps(box.execute(code))
    box.beside({'cmd': 'sleep', 'args': ['5'], 'envs': {'TOKEN': token}})
    said = json.dumps(until(lambda: box.unary('process.Process/List')[1]['processes'],
                            what='the process'))
    assert token not in said and '[REDACTED' in said
    events, _ = box.start(f'echo {token}')
    assert b64(token.encode())[:20] not in json.dumps(events)
    assert '[REDACTED' in base64.b64decode(''.join(
        e['event']['data']['stdout'] for e in events if 'data' in e['event'])).decode()


def test_a_sandbox_that_ends_below_who_left(hub):
    for n in range(6):
        own = Box(hub)
        first = executing(hub, own, 'import time\nwhile 1:\n  try: time.sleep(1000)\n'
                          '  except BaseException: pass')
        assert first.getresponse().status == 200
        waits = [executing(hub, own, '1') for _ in range(3)]
        first.close()
        waits[1].close()
        if n % 2:
            until(lambda: own.ask('GET', '/contexts', port=CODE)[0] == 200)
        own.kill()
        for one in (waits[0], waits[2]):
            answer = one.getresponse()
            assert answer.status in (404, 499, 502), answer.read()
    assert hub.proc.poll() is None


def test_a_hub_that_ends_below_who_left(me, tmp_path):
    """It ends as ever."""
    path = config(tmp_path)
    os.chown(path, me.uid, me.uid)
    with Hub(me, tmp_path, '--listen', '127.0.0.1:0', '--config', path) as own:
        box = Box(own)
        first = executing(own, box, 'import time\nwhile 1:\n  try: time.sleep(1000)\n'
                          '  except BaseException: open("/tmp/heard", "w")')
        assert first.getresponse().status == 200
        own.waits = [executing(own, box, '1') for _ in range(3)]
        first.close()
        until(lambda: box.ask('GET', '/files?path=/tmp/heard')[0] == 200, what='the interruption')
