"""Why a module can't be used: what is told leads to what helps, and a name or an address that its
program is not granted is told wherever somebody looks."""

import http.server
import json
import re
import threading

import pytest

from client import until
from modules import approve, call, home, server, text
from rest import fails
from test_hub_cli import FAILED, Hub

# What a program says on standard error before it ends.
NODE = """node:internal/modules/cjs/loader:1228
  throw err;
  ^

Error: Cannot find module '/srv/weather/index.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15)
    at Module._load (node:internal/modules/cjs/loader:1051:27) {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v22.19.0
"""
PYTHON = """Traceback (most recent call last):
  File "/srv/w.py", line 3, in <module>
    import mcp
ModuleNotFoundError: No module named 'mcp'
"""
PLAIN = 'Usage: server --api-key KEY\nMissing required option: --api-key\n\nSee the README.\n'
SAYS = 'sys.stderr.write(%r); sys.stderr.flush(); sys.exit(1)'

# A tool that asks for a name or an address, and tells as SDKs do.
ASKS = '''
import socket, urllib.request
def call(id, name, arguments):
    at = arguments['text']
    try:
        if at.startswith('http'):
            said, bad = urllib.request.urlopen(at, timeout=20).read().decode(), False
        else:
            said, bad = socket.getaddrinfo(at, 443)[0][4][0], False
    except Exception:
        said, bad = 'fetch failed', True
    say({'id': id, 'result': {'content': [{'type': 'text', 'text': said}], 'isError': bad}})
main()
'''
LISTS = '''
def take(m, take=take):
    if m.get('method') == 'tools/list':
        say({'id': m['id'], 'error': {'code': -32603, 'message': 'SUPABASE_ACCESS_TOKEN is unset'}})
    else:
        take(m)
main()
'''


class Site(http.server.BaseHTTPRequestHandler):
    """A service of the host."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'of the host')

    def log_message(self, *_):
        pass


@pytest.fixture(scope='module')
def site():
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Site) as at:
        threading.Thread(target=at.serve_forever, daemon=True).start()
        yield at.server_port
        at.shutdown()


@pytest.fixture(scope='module')
def hub(me, site, tmp_path_factory):
    servers = {
        'node': server(SAYS % NODE), 'python': server(SAYS % PYTHON), 'usage': server(SAYS % PLAIN),
        'silent': server('sys.exit(4)'),
        'words': server(SAYS % 'starting\nbye\n'),
        'missing': {'command': 'no-such-program', 'approval': 'allow'},
        'cwd': server(cwd='/no/such/folder'),
        'image': server(sandbox={'template': 'no-such-image'}),
        'folder': server(sandbox={'read': ['/no/such/folder']}),
        'unset': server(env={'A': '${NO_SUCH_VARIABLE}'}),
        'secret': server(env={'A': '${secret:never-stored}'}),
        'json': server('print("{{{", flush=True)\ntime.sleep(1000)', connectSeconds=2),
        'wrong': server('def take(m): say({"id": m.get("id"), "result": 7})\nmain()'),
        'slow': server('time.sleep(1000)', connectSeconds=1),
        'lists': server(LISTS),
        'shell': {'command': 'false', 'approval': 'allow', 'sandbox': False},
        'remote': {'url': 'http://127.0.0.1:9/mcp', 'approval': 'allow'},
        'asks': server(ASKS),
        'many': server(ASKS, sandbox={'network': ['npm.holt:80', f'127.0.0.1:{site}']}),
    }
    folder = home(me, tmp_path_factory.mktemp('why'), {'modules': {'connected': 9}}, **servers)
    with Hub(me, folder, '--listen', '127.0.0.1:0', '--pool', '0',
             '--service', f'npm.holt:80=127.0.0.1:{site}') as shared:
        yield shared


WHY = {
    'node': "status 1; it said: Error: Cannot find module '/srv/weather/index.js'",
    'python': "it said: ModuleNotFoundError: No module named 'mcp'",
    'usage': 'it said: Usage: server --api-key KEY … Missing required option: --api-key',
    'silent': 'status 4', 'words': 'it said: bye',
    'missing': 'no-such-program', 'cwd': '/no/such/folder', 'image': 'no-such-image',
    'folder': '/no/such/folder', 'unset': 'NO_SUCH_VARIABLE', 'secret': 'never-stored',
    'json': '', 'wrong': '', 'slow': 'not ready in 1 s (connectSeconds)',
    'lists': 'SUPABASE_ACCESS_TOKEN is unset', 'shell': 'status 1', 'remote': '',
}
# Remedies of what a client asks for, of its sandbox, and of the way to the hub.
OTHERS = re.compile('schema of the call|longer timeout|holt serve|connect again|Make the file|'
                    'sandbox_exec|template contains|host failed|argument')


@pytest.mark.parametrize('name', WHY)
def test_why(hub, name):
    """The cause is told, and the remedy is about the module."""
    if name != 'unset':  # which can't be approved
        approve(hub, name)
    error = fails(502, 'module_not_started', hub.post, f'/v1/modules/{name}/test')
    assert WHY[name] in error['cause'] and not OTHERS.search(error['remediation']), error
    said = hub.fails(FAILED, 'holt mcp logs NAME', 'mcp', 'test', name)
    assert not OTHERS.search(said.stderr.decode()), said
    assert WHY[name] in hub.json('mcp', 'info', name)['cause']


def test_a_name_that_is_not_granted(hub):
    """It is told once in the log and the audit log, and in `info` and each failing call."""
    approve(hub, 'asks')
    host = 'api.tavily.example'
    way = f'it asked for {host}, which is not granted: holt mcp allow asks {host}'
    assert call(hub, 'asks', 'echo', text=host)['isError']
    until(lambda: hub.json('mcp', 'info', 'asks').get('denied') == [host], 20, 'the name')
    for _ in range(2):
        said = call(hub, 'asks', 'echo', text=host)
        assert said['isError'], said
        assert [c['text'] for c in said['content']] == ['fetch failed', way], said
    assert 'holt mcp allow asks HOST' in hub.ok('mcp', 'info', 'asks').decode()
    assert hub.ok('mcp', 'logs', 'asks').decode().count(way) == 1
    records = until(lambda: [r for r in hub.call('GET', '/v1/audit?limit=100')['records']
                             if r['action'] == 'network.denied'], what='the record')
    assert len(records) == 1 and records[0]['target'] == 'asks', records


def test_many_and_hostile_names(hub):
    """Bounded, and nothing of them acts on a terminal."""
    approve(hub, 'many')
    for i in range(40):
        call(hub, 'many', 'echo', text=f'n{i}.example')
    for evil in ('a\x1b[31m.example', 'x' * 63 + '.example', '-.example', '..', 'a b.example'):
        try:
            call(hub, 'many', 'echo', text=evil)
        except Exception:  # some are no names to Python
            pass
    shown = until(lambda: len(hub.json('mcp', 'info', 'many').get('denied', [])) >= 8 and
                  hub.json('mcp', 'info', 'many'), 20, lambda: hub.json('mcp', 'info', 'many'))
    assert len(shown['denied']) == 8
    logs = hub.ok('mcp', 'logs', 'many').decode()
    assert logs.count('which is not granted') == 8 and logs.count('more that is not granted') == 1
    assert '\x1b' not in logs + json.dumps(shown)


def test_services_and_ports_of_the_host(hub, site):
    """`holt serve --service`, and a port of the host's localhost that the file grants: no other."""
    approve(hub, 'many')
    assert text(hub, 'many', 'echo', text='http://npm.holt/') == 'of the host'
    for host in ('127.0.0.1', 'localhost'):
        assert text(hub, 'many', 'echo', text=f'http://{host}:{site}/') == 'of the host'
    approve(hub, 'asks')
    assert call(hub, 'asks', 'echo', text=f'http://127.0.0.1:{site}/')['isError']
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Site) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        assert call(hub, 'many', 'echo', text=f'http://127.0.0.1:{other.server_port}/')['isError']
        other.shutdown()
