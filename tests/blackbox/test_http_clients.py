"""Unmodified clients and bridges from npm against `holt serve`,
over every transport and in every era."""

import json
import os
import subprocess

import pytest

from client import LATEST
from http_client import BOTH, MODERN, hello
from http_host import Serving
from test_sdk import STEPS
from who import HERE, NEW_NODE, node

PEERS = os.path.join(HERE, 'peers', 'node_modules')
TOOLS = ['sandbox_create', 'sandbox_diff', 'sandbox_exec', 'sandbox_exec_output', 'sandbox_fork',
         'sandbox_get', 'sandbox_list', 'sandbox_list_files', 'sandbox_move_file', 'sandbox_pause',
         'sandbox_processes', 'sandbox_read_file', 'sandbox_remove_file', 'sandbox_restore',
         'sandbox_resume', 'sandbox_set_timeout', 'sandbox_signal', 'sandbox_snapshot',
         'sandbox_terminate', 'sandbox_write_file']


@pytest.fixture
def serve(me):
    server = Serving(me)
    yield server
    server.close()


def life(script, server, least, mode=None, without=()):
    seen = node(script, {'mode': mode, 'server': server, 'without': without}, least=least,
                timeout=100)
    assert [name for name in STEPS if name not in seen] == list(without)
    assert seen['server']['name'] == 'holt'
    assert seen['failures'] == ['sandbox_not_found', 'invalid_arguments', 'invalid_arguments',
                                'path_not_found',
                                'template_not_found']
    return seen.get('version')


@pytest.mark.parametrize('path', ['/mcp', '/sse'])
def test_sdk_v1(serve, path):
    life('v1.mjs', {'url': serve.url + path, 'token': serve.token, 'sse': path == '/sse'}, 18)


@pytest.mark.parametrize('mode, version',
                         [('legacy', LATEST), ('auto', MODERN),
                          pytest.param({'pin': MODERN}, MODERN, marks=pytest.mark.whole)],
                         ids=['legacy', 'auto', 'modern'])
def test_sdk_v2(serve, mode, version):
    assert life('v2.mjs', {'url': serve.url + '/mcp', 'token': serve.token}, 20, mode) == version


def test_sdk_v2_over_sse(serve):
    assert life('v2.mjs', {'url': serve.url + '/sse', 'token': serve.token, 'sse': True}, 20,
                'legacy') == LATEST


# ---- bridges: the SDK speaks to them over stdio -------------------------------------------------


def program(*path):
    found = os.path.join(PEERS, *path)  # an absolute path stands for itself
    if not os.path.exists(NEW_NODE) or not os.path.exists(found):
        pytest.skip('the peers from npm are missing: scripts/deps test')
    return found


def bridge(me, script, *arguments):
    return {'command': NEW_NODE, 'args': [script, *arguments], 'cwd': '/',
            'env': {**me.env, 'MCP_REMOTE_CONFIG_DIR': me.env['HOME'] + '/mcp-remote'}}


@pytest.mark.parametrize('path, transport', [
    ('/mcp', 'http-only'), pytest.param('/sse', 'sse-only', marks=pytest.mark.whole)])
def test_mcp_remote(me, serve, path, transport):
    script = program('mcp-remote', 'dist', 'proxy.js')
    life('v1.mjs', bridge(me, script, serve.url + path, '--allow-http', '--transport', transport,
                          '--silent',
                          '--header', f'Authorization: Bearer {serve.token}'), 20)


def test_mcp_remote_for_a_modern_client(me, serve):
    """It sends a cancellation on as a notification, which means nothing over HTTP in this era."""
    script = program('mcp-remote', 'dist', 'proxy.js')
    life('v2.mjs', bridge(me, script, serve.url + '/mcp', '--allow-http', '--transport',
                          'http-only', '--silent',
                          '--header', f'Authorization: Bearer {serve.token}'), 20, 'auto',
         ['cancel'])


@pytest.mark.parametrize('option, path', [
    ('--streamableHttp', '/mcp'), pytest.param('--sse', '/sse', marks=pytest.mark.whole)])
def test_supergateway(me, serve, option, path):
    """It passes no notifications on."""
    script = program('supergateway', 'dist', 'index.js')
    life('v1.mjs', bridge(me, script, option, serve.url + path, '--logLevel', 'none',
                          '--oauth2Bearer', serve.token), 20,
         without=['changes', 'progress'])


# ---- the inspector ------------------------------------------------------------------------------


class Inspector:
    def __init__(self, who):
        self.script = program('@modelcontextprotocol', 'inspector', 'clients', 'launcher', 'build',
                              'index.js')
        self.node = program(NEW_NODE)
        self.env = {**who.env, 'PATH': f'{os.path.dirname(self.node)}:{who.env["PATH"]}'}

    def run(self, *arguments, timeout=60):
        done = subprocess.run([self.node, self.script, '--cli', '--format', 'json', *arguments],
                              env=self.env, cwd='/',
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout, check=False)
        return done.returncode, done.stdout, done.stderr

    def ok(self, *arguments):
        status, out, err = self.run(*arguments)
        assert status == 0, (status, out, err)
        return json.loads(out)['result']


def to_http(serve, era):
    return ['--server-url', serve.url + '/mcp', '--transport', 'http', '--header',
            f'Authorization: Bearer {serve.token}',
            '--protocol-era', era]


def to_sse(serve):
    return ['--server-url', serve.url + '/sse', '--transport', 'sse', '--header',
            f'Authorization: Bearer {serve.token}']


def look_around(inspector, *to):
    """Its era, its tools, and one call that works and one that does not."""
    listed = inspector.ok(*to, '--method', 'tools/list')
    assert sorted(tool['name'] for tool in listed['tools']) == TOOLS
    made = inspector.ok(*to, '--method', 'tools/call', '--tool-name', 'sandbox_create',
                        '--tool-arg', 'pool=host')
    assert made['structuredContent']['sandbox'].startswith('sbx-')
    status, out, err = inspector.run(*to, '--method', 'tools/call', '--tool-name',
                                     'sandbox_terminate', '--tool-arg',
                                     'sandbox=sbx-none')
    assert status == 5 and 'sandbox_not_found' in out + err


ERAS = ['legacy', 'auto', pytest.param('modern', marks=pytest.mark.whole)]  # as auto finds it


@pytest.mark.parametrize('era', ERAS)
def test_inspector_over_http(me, serve, era):
    inspector = Inspector(me)
    look_around(inspector, *to_http(serve, era))
    told = json.dumps(inspector.ok(*to_http(serve, era), '--method', 'initialize'))
    assert (LATEST if era == 'legacy' else MODERN) in told


def test_inspector_over_sse(me, serve):
    look_around(Inspector(me), *to_sse(serve))


@pytest.mark.parametrize('era', ERAS)
def test_inspector_over_stdio(me, era):
    inspector = Inspector(me)
    listed = inspector.ok('--protocol-era', era, '--method', 'tools/list', '--',
                          *me.argv('mcp', '--pool', '0'))
    assert sorted(tool['name'] for tool in listed['tools']) == TOOLS


def test_inspector_under_load(me, serve):
    """Its own load generator, in the modern era."""
    inspector, to = Inspector(me), to_http(serve, 'modern')
    made = inspector.ok(*to, '--method', 'tools/call', '--tool-name', 'sandbox_create',
                        '--tool-arg', 'pool=host')
    sandbox = made['structuredContent']['sandbox']
    done = inspector.ok(*to, '--method', 'tools/call', '--tool-name', 'sandbox_exec', '--tool-arg',
                        f'sandbox={sandbox}', '--tool-arg', 'command=/bin/true', '--load',
                        '--load-requests', '200', '--load-concurrency', '8')
    assert (done['requests'], done['ok'], done['errors'], done['toolErrors']) == (200, 200, 0, 0)


# ---- the routes of the hub ----------------------------------------------------------------------


@pytest.mark.parametrize('path, method',
                         [('/mcp', 'POST'), ('/mcp', 'GET'), ('/mcp', 'DELETE'), ('/sse', 'GET'),
                          ('/message?sessionId=x', 'POST')])
def test_strangers(serve, path, method):
    body = hello(LATEST) if method == 'POST' else None
    for token in (None, 'wrong', ''):
        assert serve.door.as_other(token).request(method, path, body,
                                                  {'Accept': BOTH}).status == 401
    evil = {'Accept': BOTH, 'Origin': 'https://evil.example'}
    assert serve.door.request(method, path, body, evil).status == 403
    assert serve.door.request(method, path, body,
                              {'Accept': BOTH, 'Host': 'evil.example'}).status == 403


# ---- what the SDKs do with streams --------------------------------------------------------------


@pytest.mark.parametrize('asked', [
    {'sdk': 1}, {'sdk': 1, 'sse': True}, {'sdk': 2, 'mode': 'legacy'},
    {'sdk': 2, 'mode': 'legacy', 'sse': True},
    {'sdk': 2, 'mode': 'auto'}, {'sdk': 2, 'mode': {'pin': MODERN}}],
    ids=['v1', 'v1-sse', 'v2-legacy', 'v2-sse', 'v2-auto', 'v2-modern'])
def test_streams(http_host, asked):
    peer = http_host(retry_ms=10)
    url = f'http://{peer.door.host}/{"sse" if asked.get("sse") else "mcp"}'
    seen = node('streams.mjs', {'url': url, 'token': 'alice', **asked},
                least=18 if asked['sdk'] == 1 else 20, timeout=100)
    assert seen['version'] == ('modern' if asked.get('mode', 'legacy') != 'legacy' else 'legacy')
    peer.until(streams=0, posts=1, held=0)
