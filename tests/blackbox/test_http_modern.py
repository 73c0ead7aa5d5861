"""Streamable HTTP of 2026-07-28: every POST for itself."""

import pytest

from client import until
from http_client import BOTH, META, MODERN, Modern, rpc

LOG = {META + 'logLevel': 'debug'}


def test_an_answer_is_json(peer):
    reply = Modern(peer.door).tool('echo', text='grüße')
    assert (reply.status, reply.type) == (200, 'application/json')
    got = reply.json()
    assert (got['result']['resultType'] == 'complete' and got['result']['content'][0]['text']
            == 'grüße')
    assert 'mcp-session-id' not in reply.headers


def test_discover(peer):
    got = Modern(peer.door).request('server/discover').json()['result']
    assert MODERN in got['supportedVersions']


def test_a_session_header_means_nothing(peer):
    reply = Modern(peer.door).tool('echo', text='x',
                                   headers={'Mcp-Session-Id': 'mcp-0', 'Last-Event-ID': '1-1'})
    assert reply.status == 200 and 'mcp-session-id' not in reply.headers


@pytest.mark.parametrize('method', ['GET', 'DELETE', 'PUT', 'HEAD'])
def test_there_is_only_post(peer, method):
    reply = peer.door.request(method, '/mcp', None,
                              {'Accept': BOTH, 'MCP-Protocol-Version': MODERN})
    assert reply.status == 405
    if method in ('GET', 'DELETE'):
        assert reply.headers['allow'] == 'POST'


def test_statuses(peer):
    modern = Modern(peer.door)

    def status(reply):
        return reply.status, reply.json()['error']['code']
    assert status(modern.request('no/such')) == (404, -32601)
    assert status(modern.request('ping')) == (404, -32601)
    assert status(modern.request('initialize', {'protocolVersion': MODERN})) == (404, -32601)
    assert (status(modern.request('tools/list', headers={'Mcp-Method': 'tools/call'}))
            == (400, -32020))
    assert status(modern.request('tools/list', headers={'Mcp-Method': None})) == (400, -32020)
    assert (status(modern.request('tools/list', headers={'MCP-Protocol-Version': None}))
            == (400, -32020))
    assert (status(modern.request('tools/list', headers={'MCP-Protocol-Version': '2025-11-25'}))
            == (400, -32020))
    assert status(modern.tool('echo', headers={'Mcp-Name': 'hold'})) == (400, -32020)
    assert status(modern.request('tools/list', meta={META + 'protocolVersion': '2099-01-01'},
                                 headers={'MCP-Protocol-Version': '2099-01-01'})) == (400, -32022)
    assert (status(modern.request('tools/list', meta={META + 'clientCapabilities': 7}))
            == (400, -32602))
    assert status(peer.door.request('POST', '/mcp', '{', {'Accept': BOTH})) == (400, -32700)
    assert status(modern.tool('ask')) == (400, -32021)
    assert status(modern.tool('none')) == (200, -32602)


def test_the_id_comes_back_with_errors(peer):
    assert Modern(peer.door).request('no/such', number='näme').json()['id'] == 'näme'


def test_two_headers_of_a_kind(peer):
    conn = peer.connect()
    body = '{}'
    text = ('POST /mcp HTTP/1.1\r\nHost: '
            f'{peer.door.host}\r\nAuthorization: Bearer alice\r\nAccept: {BOTH}\r\n'
            'Mcp-Method: tools/list\r\nMcp-Method: tools/call\r\n'
            f'Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}')
    conn.send(text.encode())
    assert conn.reply().status == 400


def test_an_encoded_name(peer):
    reply = Modern(peer.door).tool('echo', text='x', headers={'Mcp-Name': '=?base64?ZWNobw==?='})
    assert reply.json()['result']['content'][0]['text'] == 'x'


def test_a_notification_is_accepted(peer):
    for method in ('notifications/cancelled', 'notifications/anything'):
        body = rpc(method, {'requestId': 1, '_meta': Modern(peer.door).meta()}, None)
        reply = peer.door.request('POST', '/mcp', body,
                                  {'Accept': BOTH, 'MCP-Protocol-Version': MODERN,
                                   'Mcp-Method': method})
        assert (reply.status, reply.body()) == (202, b'')


def test_what_comes_first_makes_a_stream(peer):
    reply = Modern(peer.door).tool('say', n=3, meta=LOG)
    assert reply.type == 'text/event-stream' and reply.headers['x-accel-buffering'] == 'no'
    events = list(reply.events())
    assert [e.message().get('method') for e in events] == ['notifications/message'] * 3 + [None]
    assert not any(e.id or e.retry for e in events)


def test_going_away_cancels(peer):
    before = peer.stats()['cancelled']
    conn = peer.connect()
    modern = Modern(peer.door)
    params = {'name': 'hold', 'arguments': {'key': 'k'}, '_meta': modern.meta()}
    peer.door.send(conn, 'POST', '/mcp', rpc('tools/call', params),
                   modern.headers('tools/call', params))
    peer.until(held=1)
    conn.close()
    peer.until(held=0, cancelled=before + 1)


def test_going_away_from_a_stream_cancels(peer):
    before = peer.stats()['cancelled']
    reply = Modern(peer.door).tool('say', n=1, then='hold', key='k', meta=LOG)
    assert reply.event().message()['method'] == 'notifications/message'
    reply.close()
    peer.until(held=0, cancelled=before + 1, streams=0)
    assert peer.stats()['posts'] == 1  # the one that asks


def test_equal_ids_at_once_are_two_requests(peer):
    modern = Modern(peer.door)
    conns = [peer.connect() for _ in range(8)]
    for i, conn in enumerate(conns):
        params = {'name': 'hold', 'arguments': {'key': str(i)}, '_meta': modern.meta()}
        peer.door.send(conn, 'POST', '/mcp', rpc('tools/call', params, 1),
                       modern.headers('tools/call', params))
    peer.until(held=8)
    for i, conn in reversed(list(enumerate(conns))):
        peer.release(str(i))
        got = conn.reply().json()
        assert (got['id'], got['result']['content'][0]['text']) == (1, str(i))


def test_many_on_one_connection(peer):
    modern, conn = Modern(peer.door), peer.connect()
    for i in range(200):
        reply = modern.request('tools/call', {'name': 'echo', 'arguments': {'text': str(i)}}, i,
                               conn=conn)
        assert reply.json()['result']['content'][0]['text'] == str(i)


def test_listening(peer):
    modern = Modern(peer.door)
    first = modern.request('subscriptions/listen', {'notifications': {'toolsListChanged': True}},
                           'a')
    second = modern.request('subscriptions/listen', {'notifications': {'promptsListChanged': True}},
                            'b')
    for reply, name in [(first, 'a'), (second, 'b')]:
        assert reply.type == 'text/event-stream' and reply.headers['x-accel-buffering'] == 'no'
        ack = reply.event().message()
        assert ack['method'] == 'notifications/subscriptions/acknowledged'
        assert ack['params']['_meta'][META + 'subscriptionId'] == name
    peer.text('change')
    told = first.event().message()
    assert told['method'] == 'notifications/tools/list_changed'
    assert told['params']['_meta'][META + 'subscriptionId'] == 'a'
    first.close()
    second.close()
    peer.until(streams=0, posts=1)


def test_silence_is_filled_with_comments(http_host):
    peer = http_host(pulse_ms=50)
    modern = Modern(peer.door)
    listen = modern.request('subscriptions/listen', {'notifications': {'toolsListChanged': True}})
    assert listen.event().message()
    hold = modern.tool('hold', key='k')  # becomes a stream when it has waited
    assert hold.type == 'text/event-stream'
    for reply in (listen, hold):
        seen = 0
        while seen < 3:
            seen += len(reply.event().comments)
    peer.release('k')
    assert hold.real_event().message()['result']


def test_the_end_of_the_server_is_the_result_of_listening(http_host):
    peer = http_host()
    listen = Modern(peer.door).request('subscriptions/listen',
                                       {'notifications': {'toolsListChanged': True}}, 7)
    assert listen.event().message()['method'].endswith('acknowledged')
    peer.proc.terminate()
    last = listen.event().message()
    assert last['id'] == 7 and last['result']['_meta'][META + 'subscriptionId'] == 7
    assert listen.event() is None
    assert peer.proc.wait(60) == 0


def test_a_reader_that_stops_is_cut_off(http_host):
    peer = http_host(queue=64 << 10)
    conn = peer.connect(receive_buffer=4096)
    modern = Modern(peer.door)
    params = {'name': 'say', 'arguments': {'n': 2000, 'bytes': 10_000, 'then': 'hold', 'key': 'k'},
              '_meta': modern.meta(LOG)}
    before = peer.stats()['cancelled']
    peer.door.send(conn, 'POST', '/mcp', rpc('tools/call', params),
                   modern.headers('tools/call', params))
    until(lambda: peer.stats()['cancelled'] == before + 1)
    assert peer.until(streams=0, posts=1)['slow'] == 1
    conn.close()


def test_an_answer_larger_than_the_queue(http_host):
    peer = http_host(queue=64 << 10)
    got = Modern(peer.door).tool('large', bytes=20 << 20, say=1, meta=LOG).messages(60)
    assert len(got) == 2 and len(got[1]['result']['content'][0]['text']) == 20 << 20


def test_a_question_is_a_result(peer):
    modern = Modern(peer.door, capabilities={'elicitation': {}})
    got = modern.tool('ask').json()['result']
    assert got['resultType'] == 'input_required' and 'who' in got['inputRequests']
    params = {'name': 'ask', 'arguments': {}, 'requestState': got['requestState'],
              'inputResponses': {'who': {'action': 'accept', 'content': {'name': 'Eve'}}}}
    assert modern.request('tools/call', params, 2).json()['result']['content'][0]['text'] == 'Eve'


def test_both_eras_at_one_time(peer):
    session, modern = peer.session(), Modern(peer.door)
    for i in range(20):
        assert session.call('echo', text=f'l{i}')['content'][0]['text'] == f'l{i}'
        assert modern.call('echo', text=f'm{i}')['content'][0]['text'] == f'm{i}'
