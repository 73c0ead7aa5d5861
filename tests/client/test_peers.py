"""Servers that we did not write: the SDKs' in every era,
and server-everything over all of its wires."""

import json
import os
import socket
import subprocess

import pytest

from links import HERE, until

NODE = os.path.join(os.path.dirname(HERE), 'conformance/node_modules/node-linux-'
                    + {'x86_64': 'x64', 'aarch64': 'arm64'}[os.uname().machine], 'bin/node')
EVERYTHING = f'{HERE}/node_modules/@modelcontextprotocol/server-everything/dist/index.js'
MISSING = not os.path.exists(NODE) or not os.path.exists(EVERYTHING)
pytestmark = pytest.mark.skipif(MISSING, reason='Node.js or its packages are missing: '
                                'scripts/deps test')


def use(link):
    """All that a peer of peer.mjs has."""
    assert [tool['name'] for tool in link.list('tools')] == ['echo', 'tell', 'fail']
    assert link.text('echo', {'text': 'ä€😀\n'}) == 'ä€😀\n'
    assert link.call('fail')['result']['isError']
    request = link.start('call', tool='tell', arguments={}, progress=True)
    assert 'result' in link.done(request)
    assert [link.wait('progress', id=request)['progress'] for _ in range(3)] == [1, 2, 3]
    assert link.list('resources')[0]['uri'] == 'peer://a'
    assert (link.request('resources/read', {'uri': 'peer://a'})['result']['contents'][0]['text']
            == 'contents')
    assert link.request('prompts/get',
                        {'name': link.list('prompts')[0]['name']})['result']['messages']
    assert link.request('completion/complete', {'ref': {'type': 'ref/prompt', 'name': 'p'},
                                                'argument': {'name': 'x', 'value': ''}}
                        )['result']['completion']['values'] == ['one', 'two']
    assert link.request('no/such')['fault']['code'] == -32601
    large = 'x' * (1 << 20)
    assert link.text('echo', {'text': large}) == large
    requests = [link.start('call', tool='echo', arguments={'text': str(i)}) for i in range(64)]
    assert ([link.done(r)['result']['content'][0]['text'] for r in requests]
            == [str(i) for i in range(64)])
    about = link.about()
    assert (about['pending'], about['strays'], about['garbage']) == (0, 0, 0)


@pytest.mark.parametrize('kind, era',
                         [('sdk1', 'legacy'), ('sdk1-stateless', 'legacy'), ('sdk2', 'modern')])
def test_sdks_over_http(host, server, kind, era):
    peer = server(NODE, f'{HERE}/peer.mjs', kind)
    link = host.connect(url=peer.url)
    assert (link.found['wire'], link.found['era']) == ('http', era)
    use(link)
    link.close()


def test_sdk2_in_its_legacy_era(host, server):
    link = host.connect(url=server(NODE, f'{HERE}/peer.mjs', 'sdk2').url, version='2025-11-25')
    assert link.found['version'] == '2025-11-25'
    use(link)
    link.close()


@pytest.mark.parametrize('kind, era', [('sdk1', 'legacy'), ('sdk2', 'modern')])
def test_sdks_over_stdio(host, kind, era):
    link = host.connect(argv=[NODE, f'{HERE}/peer.mjs', f'{kind}-stdio'], probe_ms=30000,
                        start_ms=60000)
    assert (link.found['wire'], link.found['era']) == ('stdio', era)
    use(link)
    link.close()


@pytest.mark.parametrize('version', ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])
def test_sdk1_in_each_revision(host, server, version):
    link = host.connect(url=server(NODE, f'{HERE}/peer.mjs', 'sdk1').url, version=version)
    assert link.found['version'] == version
    use(link)
    link.close()


# ---- server-everything ---------------------------------------------------------------------------

@pytest.fixture
def everything_of_npm(nothing_is_left, tmp_path):
    """Starts it over HTTP, where it was before if it was: its mode and path."""
    started = []
    with socket.create_server(('127.0.0.1', 0)) as s:
        port = s.getsockname()[1]

    def start(mode, path):
        for proc in started:
            proc.kill()
            proc.wait()
        with open(tmp_path / 'everything.log', 'wb') as log:
            started.append(subprocess.Popen([NODE, EVERYTHING, mode], env={
                **os.environ, 'PORT': str(port)}, stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL))
        until(lambda: socket.socket().connect_ex(('127.0.0.1', port)) == 0,
              what='server-everything')
        return f'http://127.0.0.1:{port}{path}'
    yield start
    for proc in started:
        proc.kill()
        proc.wait()


def sample(schema):
    """Arguments that the schema wants."""
    def one(of):
        kind = of.get('type')
        return of.get('default', of['enum'][0] if 'enum' in of else 'https://example.com/'
                      if of.get('format') == 'uri' else
                      {'string': 'x', 'number': of.get('minimum', 1),
                       'integer': of.get('minimum', 1), 'boolean': False,
                       'array': [], 'object': {}}.get(kind))
    return {name: one(schema['properties'][name]) for name in schema.get('required', [])}


SLOW = {'trigger-long-running-operation', 'simulate-research-query'}  # as long as they are told
WANTS_NETWORK = {'gzip-file-as-resource'}


def use_everything(link):
    """Each tool, resource, prompt and completion that it offers, once."""
    tools = link.list('tools')
    assert {'echo', 'get-sum'} <= {tool['name'] for tool in tools}
    for tool in tools:
        arguments = sample(tool['inputSchema'])
        if tool['name'] in WANTS_NETWORK:
            arguments['data'] = 'data:text/plain,hello'
        if tool['name'] in SLOW:
            arguments.update({name: 1 for name in ('duration', 'steps')
                              if name in tool['inputSchema']['properties']})
        done = link.call(tool['name'], arguments, timeout=60)
        assert 'result' in done, (tool['name'], arguments, done)
    for resource in link.list('resources')[:20]:
        assert 'result' in link.request('resources/read', {'uri': resource['uri']}), resource
    for template in link.list('resourceTemplates'):
        uri = template['uriTemplate'].replace('{resourceId}', '1')
        assert 'result' in link.request('resources/read', {'uri': uri}), template
    for prompt in link.list('prompts'):
        arguments = {a['name']: {'resourceType': 'Text', 'resourceId': '1'}.get(a['name'], 'x')
                     for a in prompt.get('arguments', [])}
        assert 'result' in link.request('prompts/get',
                                        {'name': prompt['name'], 'arguments': arguments}), prompt
        for argument in prompt.get('arguments', []):
            done = link.request('completion/complete',
                                {'ref': {'type': 'ref/prompt', 'name': prompt['name']},
                                 'argument': {'name': argument['name'], 'value': ''}})
            assert 'result' in done or done['fault']['code'] == -32602, done
    assert json.dumps(link.about()['about']).find('everything') > 0


def test_everything_of_npm_over_stdio(host):
    """It does not end at the end of its input, but by SIGTERM."""
    link = host.connect(argv=[NODE, EVERYTHING, 'stdio'], stop_ms=300)
    assert (link.found['wire'], link.found['era']) == ('stdio', 'legacy')
    use_everything(link)
    link.close()


@pytest.mark.parametrize('mode, path, wire',
                         [('streamableHttp', '/mcp', 'http'), ('sse', '/sse', 'sse')])
def test_everything_of_npm_over_http(host, everything_of_npm, mode, path, wire):
    link = host.connect(url=everything_of_npm(mode, path))
    assert (link.found['wire'], link.found['era']) == (wire, 'legacy')
    use_everything(link)
    link.close()


def test_everything_of_npm_is_started_anew(host, everything_of_npm):
    """It answers with 400 to a session that it does not know."""
    link = host.connect(url=everything_of_npm('streamableHttp', '/mcp'))
    assert link.text('echo', {'message': 'a'}) == 'Echo: a'
    everything_of_npm('streamableHttp', '/mcp')
    done = link.call('echo', {'message': 'b'})
    if 'error' in done:  # its connection was still that of the first
        done = link.call('echo', {'message': 'b'})
    assert done['result']['content'][0]['text'] == 'Echo: b', done
    link.close()
