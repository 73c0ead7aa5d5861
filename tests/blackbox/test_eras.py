"""Modern clients over stdio, and those that are not sure:
both eras in one session of `holt mcp`."""

import re

import pytest

from client import TOOLS, data_of, until

NOW = '2026-07-28'
KEY = 'io.modelcontextprotocol/'
ALL = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']
ID = r'sbx-[0-9a-f]{32}'


def meta(version=NOW, **more):
    return {KEY + 'protocolVersion': version, KEY + 'clientCapabilities': {},
            KEY + 'clientInfo': {'name': 'eras', 'version': '1'}, **more}


def modern(mcp, method, **params):
    return mcp.request(method, {**params, '_meta': meta()})


def complete(answer):
    result = answer['result']
    assert result['resultType'] == 'complete'
    assert result['_meta'][KEY + 'serverInfo']['name'] == 'holt'
    return result


@pytest.fixture
def mcp(start):
    return start('--pool', '0', version='none')


def test_all_without_a_handshake(mcp):
    made = complete(modern(mcp, 'tools/call', name='sandbox_create', arguments={'pool': 'host'}))
    sandbox = re.search(ID, made['content'][0]['text']).group()
    ran = complete(modern(mcp, 'tools/call', name='sandbox_exec',
                          arguments={'sandbox': sandbox, 'command': 'echo on'}))
    assert data_of(ran)['stdout'] == 'on\n'
    failed = complete(modern(mcp, 'tools/call', name='sandbox_exec',
                             arguments={'sandbox': 'x', 'command': 'true'}))
    assert failed['isError']


def test_discover_says_all(mcp):
    found = complete(modern(mcp, 'server/discover'))
    assert found['supportedVersions'] == ALL
    assert (set(found['capabilities']) == {'tools', 'resources', 'completions', 'extensions'}
            and found['instructions'])
    assert found['ttlMs'] >= 0 and found['cacheScope'] in ('public', 'private')
    listed = complete(modern(mcp, 'tools/list'))
    assert len(listed['tools']) == TOOLS and listed['ttlMs'] >= 0


def test_a_probe_and_then_initialize(mcp):
    """Of a client that gave up on a slow start: the probe is answered, and is no promise."""
    complete(modern(mcp, 'server/discover'))
    assert mcp.initialize('2025-06-18')['protocolVersion'] == '2025-06-18'
    mcp.ping()
    assert len(mcp.request('tools/list')['result']['tools']) == TOOLS


def test_a_probe_that_comes_late(mcp):
    probe = mcp.start('server/discover', {'_meta': meta()})
    hello = mcp.start('initialize', {'protocolVersion': '2025-11-25', 'capabilities': {},
                                     'clientInfo': {'name': 'x', 'version': '1'}})
    assert mcp.wait(hello)['result']['protocolVersion'] == '2025-11-25'
    complete(mcp.wait(probe))
    complete(modern(mcp, 'tools/list'))
    mcp.ping()


def test_initialize_and_then_modern_requests(mcp):
    mcp.initialize()
    complete(modern(mcp, 'tools/list'))
    assert 'resultType' not in mcp.request('tools/list')['result']


@pytest.mark.parametrize('method', ['ping', 'initialize', 'logging/setLevel', 'resources/subscribe',
                                    'tasks/list'])
def test_what_the_revision_took_out(mcp, method):
    assert modern(mcp, method)['error']['code'] == -32601


@pytest.mark.parametrize('version', ['1999-01-01', '2027-01-01', '2025-11-25', ''])
def test_versions_that_are_not_served(mcp, version):
    error = mcp.request('tools/list', {'_meta': meta(version)})['error']
    assert error['code'] == -32022
    assert error['data'].items() >= {'supported': ALL, 'requested': version}.items()


@pytest.mark.parametrize('broken', [
    {KEY + 'protocolVersion': NOW}, {KEY + 'protocolVersion': 7, KEY + 'clientCapabilities': {}},
    {**meta(), KEY + 'clientCapabilities': None}, {**meta(), KEY + 'clientInfo': 'me'},
    {**meta(), KEY + 'logLevel': 'loud'}])
def test_envelopes_that_are_not_whole(mcp, broken):
    assert mcp.request('tools/list', {'_meta': broken})['error']['code'] == -32602


def test_a_modern_message_in_a_batch(mcp):
    mcp.initialize('2025-03-26')
    mcp.send([{'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list', 'params': {'_meta': meta()}}])
    assert mcp.next()['error']['code'] == -32600


def test_cancel_by_notification(mcp):
    text = complete(modern(mcp, 'tools/call', name='sandbox_create',
                           arguments={'pool': 'host'}))['content'][0]['text']
    sandbox = re.search(ID, text).group()

    def running():
        ran = complete(modern(mcp, 'tools/call', name='sandbox_exec',
                              arguments={'sandbox': sandbox,
                                         'command': 'grep -lx sleep /proc/[0-9]*/comm | wc -l'}))
        return int(data_of(ran)['stdout'])

    call = mcp.start('tools/call', {'name': 'sandbox_exec', '_meta': meta(progressToken='p'),
                                    'arguments': {'sandbox': sandbox, 'command': 'sleep 777'}})
    until(lambda: running() == 1, what='the sleep')
    mcp.notify('notifications/cancelled', {'requestId': call})
    until(lambda: running() == 0, what='its end')
    assert not [m for m in mcp.inbox if m.get('id') == call]


def test_a_listen_is_acknowledged_and_ends_with_the_server(mcp):
    call = mcp.start('subscriptions/listen',
                     {'_meta': meta(), 'notifications': {'promptsListChanged': True}})
    told = mcp.next()
    assert told['method'] == 'notifications/subscriptions/acknowledged'
    assert told['params'] == {'_meta': {KEY + 'subscriptionId': call}, 'notifications': {}}
    mcp.proc.stdin.close()
    ended = mcp.wait(call)
    assert complete(ended)['_meta'][KEY + 'subscriptionId'] == call
    assert mcp.proc.wait(60) == 0
