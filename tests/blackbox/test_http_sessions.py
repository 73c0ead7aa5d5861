"""Sessions of Streamable HTTP, for clients of 2025-03-26 to 2025-11-25."""

import json
import re

import pytest

from http_client import BOTH, Modern, Session, Sse, hello, rpc

LEGACY = ['2025-03-26', '2025-06-18', '2025-11-25']


@pytest.mark.parametrize('version', LEGACY)
def test_a_session_from_initialize_to_delete(peer, version):
    session = peer.session(version)
    assert session.info['protocolVersion'] == version
    assert re.fullmatch(r'[\x21-\x7e]{32,}', session.id)
    assert session.call('echo', text='grüße')['content'][0]['text'] == 'grüße'
    assert session.end() == 204
    assert session.request('ping').status == 404
    assert session.listen().status == 404
    assert session.end() == 404


def test_a_byte_order_mark_before_a_body(peer):
    body = b'\xef\xbb\xbf' + json.dumps(hello('2025-11-25')).encode()
    assert peer.door.request('POST', '/mcp', body, {'Accept': BOTH}).status == 200
    reply = peer.door.request('POST', '/mcp', b'\xef\xbb\xbf' + body, {'Accept': BOTH})
    assert reply.status == 400 and reply.json()['error']['code'] == -32700


def test_ids_are_never_the_same(peer):
    assert len({peer.session().id for _ in range(50)}) == 50


def test_an_old_revision_is_served_too(peer):
    session = peer.session('2024-11-05')
    assert session.info['protocolVersion'] == '2024-11-05'
    assert session.call('echo', text='x')['content'][0]['text'] == 'x'


def test_a_request_without_a_session(peer):
    for method, body in [('POST', rpc('ping')),
                         ('POST', rpc('notifications/initialized', number=None)),
                         ('GET', None), ('DELETE', None)]:
        reply = peer.door.request(method, '/mcp', body,
                                  {'Accept': BOTH, 'MCP-Protocol-Version': '2025-11-25'})
        assert reply.status == 400, method
        assert reply.json()['error']['code'] == -32600


@pytest.mark.parametrize('name', ['mcp-00000000000000000000000000000000', 'x', 'é', ' ',
                                  'a' * 5000])
def test_a_session_that_never_was(peer, name):
    named = {'Accept': BOTH, 'Mcp-Session-Id': name}
    for method, body in [('POST', rpc('ping')), ('GET', None), ('DELETE', None),
                         ('POST', hello('2025-11-25'))]:
        reply = peer.door.request(method, '/mcp', body, named)
        assert reply.status in (404, 400), (method, reply.status)
        assert reply.status == 404 or name == ' '


def test_two_session_headers(peer):
    session = peer.session()
    conn = peer.connect()
    text = ('POST /mcp HTTP/1.1\r\nHost: '
            f'{peer.door.host}\r\nAuthorization: Bearer alice\r\nAccept: {BOTH}\r\n'
            f'Mcp-Session-Id: {session.id}\r\nMcp-Session-Id: {session.id}\r\n'
            'Content-Type: application/json\r\nContent-Length: 40\r\n\r\n'
            '{"jsonrpc":"2.0","id":1,"method":"ping"}')
    conn.send(text.encode())
    assert conn.reply().status == 400


def test_a_session_belongs_to_its_principal(peer):
    session = peer.session()
    hold = session.tool('hold', key='mine')
    assert hold.event().id == '2-0'
    other = Session.__new__(Session)
    other.__dict__.update(session.__dict__, door=peer.door.as_other('bob'))
    assert other.request('ping').status == 404
    assert other.listen().status == 404
    assert other.listen('2-0').status == 404
    assert other.end() == 404
    assert session.call('echo', text='still')['content'][0]['text'] == 'still'
    assert peer.release('mine') == 'released'
    assert hold.answer()['result']['content'][0]['text'] == 'mine'


def test_initialize_twice(peer):
    session = peer.session()
    again = session.post(hello('2025-11-25'))
    assert 'error' in again.json()
    assert session.request('ping').answer()['result'] == {}


def test_initialize_that_fails_leaves_no_session(peer):
    before = peer.stats()['sessions']
    reply = peer.door.request('POST', '/mcp', rpc('initialize', {'protocolVersion': 7}),
                              {'Accept': BOTH})
    assert 'error' in reply.json() and 'mcp-session-id' not in reply.headers
    assert peer.stats()['sessions'] == before


@pytest.mark.parametrize('accept, status', [
    (None, 406), ('application/json', 406), ('text/event-stream', 406), ('text/html', 406),
    ('', 406), ('application/json;q=0, text/event-stream', 406),
    ('application/json, text/event-stream;q=0.0', 406), ('*/*', 200), (BOTH, 200),
    ('APPLICATION/JSON;q=0.5 ,text/*', 200), ('text/event-stream,application/*;v=1', 200)])
def test_what_the_client_accepts(peer, accept, status):
    assert peer.door.request('POST', '/mcp', hello('2025-11-25'),
                             {'Accept': accept}).status == status


@pytest.mark.parametrize('accept, status', [(None, 406), ('application/json', 406),
                                            ('text/event-stream', 200), ('*/*', 200)])
def test_what_the_client_accepts_of_the_get_stream(peer, accept, status):
    reply = peer.session().listen(accept=accept)
    assert reply.status == status
    reply.close()


@pytest.mark.parametrize('version, status', [
    (None, 200), ('2025-03-26', 200), ('2025-06-18', 200), ('2025-11-25', 200), ('2024-11-05', 200),
    ('1999-01-01', 400), ('x', 400), ('', 400), ('2025-11-25, 2025-11-25', 400),
    ('2025-11-26', 400)])
def test_the_version_header(peer, version, status):
    session = peer.session()
    assert session.post(rpc('ping'), {'MCP-Protocol-Version': version}).status == status
    if status == 400:
        assert session.door.request(
            'GET', '/mcp', None, session.headers({'MCP-Protocol-Version': version})).status == 400
        assert session.door.request('DELETE', '/mcp', None, session.headers(
            {'MCP-Protocol-Version': version})).status == 400
    assert session.post(rpc('ping')).status == 200


def test_a_legacy_body_with_a_modern_header(peer):
    session = peer.session()
    reply = session.post(rpc('ping'), {'MCP-Protocol-Version': '2026-07-28'})
    assert reply.status == 400
    assert reply.json()['error']['code'] < 0


def test_notifications_and_responses_get_202(peer):
    session = peer.session()
    session.notify('notifications/roots/list_changed')
    reply = session.post({'jsonrpc': '2.0', 'id': 77, 'result': {}})
    assert (reply.status, reply.body()) == (202, b'')
    assert 'content-type' not in reply.headers


def test_batches_by_revision(peer):
    batch = [rpc('ping', number=1), rpc('notifications/x', number=None), rpc('ping', number='2')]
    old = peer.session('2025-03-26')
    reply = old.post(batch)
    assert reply.status == 200
    assert sorted(str(m['id']) for m in reply.json()) == ['1', '2']
    nothing = old.post([rpc('notifications/x', number=None),
                        {'jsonrpc': '2.0', 'id': 5, 'result': {}}])
    assert (nothing.status, nothing.body()) == (202, b'')
    for version in LEGACY[1:]:
        reply = peer.session(version).post(batch)
        assert (reply.status, reply.json()['error']['code']) == (400, -32600), version
    assert old.post([]).status == 400


def test_initialize_in_a_batch(peer):
    assert peer.door.request('POST', '/mcp', [hello('2025-03-26')], {'Accept': BOTH}).status == 400


@pytest.mark.parametrize('body', [
    pytest.param('', id='nothing'), pytest.param('{', id='half'), pytest.param('null', id='null'),
    pytest.param('7', id='number'), pytest.param('{"jsonrpc":"2.0"}', id='empty'),
    pytest.param('[[]]', id='nested'),
    pytest.param('{"jsonrpc":"1.0","id":1,"method":"ping"}', id='version'),
    pytest.param('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', id='fraction'),
    pytest.param('{"jsonrpc":"2.0","id":null,"method":"ping"}', id='null-id'),
    pytest.param('{"id":1,"id":1,"jsonrpc":"2.0","method":"ping"}', id='twice'),
    pytest.param('[' * 100000, id='deep'), pytest.param('"\ud800"', id='surrogate')])
def test_what_is_no_message(peer, body):
    session = peer.session()
    raw = body.encode('utf-8', 'surrogatepass')
    for headers in [session.headers(), {'Accept': BOTH}]:
        reply = peer.door.request('POST', '/mcp', raw, headers)
        assert reply.status == 400, reply.status
        assert reply.json()['error']['code'] in (-32700, -32600)
    assert session.request('ping').answer()['result'] == {}


def test_one_message_of_17_mib(peer):
    session = peer.session()
    conn = peer.connect()
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b'y' * (17 << 20) + b'"}}'
    try:
        reply = session.post(body, conn=conn)
        assert reply.status == 413
    except (BrokenPipeError, ConnectionResetError):
        pass  # it does not have to read on
    assert session.request('ping').answer()['result'] == {}


def test_equal_ids_of_two_sessions_and_connections(peer):
    one, two = peer.session(), peer.session()
    first, second = one.tool('hold', key='one'), two.tool('hold', key='two')
    assert one.last_id == two.last_id
    peer.release('two')
    assert second.answer()['result']['content'][0]['text'] == 'two'
    peer.release('one')
    assert first.answer()['result']['content'][0]['text'] == 'one'


def test_one_id_twice_at_once(peer):
    session = peer.session()
    hold = session.tool('hold', key='k')
    again = session.post(rpc('tools/call', {'name': 'echo', 'arguments': {'text': 'x'}},
                             session.last_id))
    assert again.answer()['error']['code'] == -32600
    peer.release('k')
    assert hold.answer()['result']['content'][0]['text'] == 'k'


def test_a_slow_call_delays_nobody(peer):
    session = peer.session()
    holds = [session.tool('hold', key='k') for _ in range(20)]
    for i in range(50):
        assert session.call('echo', text=str(i))['content'][0]['text'] == str(i)
    peer.release('k')
    for hold in holds:
        assert hold.answer()['result']['content'][0]['text'] == 'k'


def test_cancelled_by_a_notification(peer):
    session = peer.session()
    before = peer.stats()['cancelled']
    hold = session.tool('hold', key='k')
    session.cancel(session.last_id)
    assert [e for e in hold.events() if e.data] == []
    assert peer.stats()['cancelled'] == before + 1
    assert peer.release('k') == 'none'


def test_cancelled_before_anything_was_sent(peer):
    session = peer.session('2025-06-18')
    conn = peer.connect()
    session.last_id += 1
    body = rpc('tools/call', {'name': 'hold', 'arguments': {'key': 'k'}}, session.last_id)
    session.door.send(conn, 'POST', '/mcp', body, session.headers())
    peer.until(held=1)
    session.cancel(session.last_id)
    reply = conn.reply()
    assert (reply.status, reply.body()) == (202, b'')


def test_delete_cancels_and_ends_streams(peer):
    session = peer.session()
    before = peer.stats()['cancelled']
    hold, stream = session.tool('hold', key='k'), session.listen()
    assert hold.event().id and stream.event().id == '0-0'
    assert session.end() == 204
    assert list(hold.events()) == [] and list(stream.events()) == []
    assert peer.stats()['cancelled'] == before + 1


def test_delete_answers_what_waits(peer):
    session = peer.session('2025-06-18')
    conn = peer.connect()
    session.door.send(conn, 'POST', '/mcp', rpc('tools/call', {'name': 'hold', 'arguments': {}}),
                      session.headers())
    peer.until(held=1)
    assert session.end() == 204
    assert conn.reply().status == 404


def test_an_unused_session_ends(http_host):
    peer = http_host(idle_ms=3000, pulse_ms=50)
    unused, listening, waiting = peer.session(), peer.session(), peer.session()
    stream, hold = listening.listen(), waiting.tool('hold', key='k')
    peer.until(sessions=2)
    assert unused.request('ping').status == 404
    assert listening.request('ping').status == 200
    peer.release('k')
    assert hold.answer()['result']['content'][0]['text'] == 'k'
    stream.close()
    peer.until(sessions=0, streams=0)


def test_too_many_sessions_of_one_principal(http_host):
    peer = http_host(sessions_each=3)
    first, second, third = (peer.session() for _ in range(3))
    first.call('echo', text='used')
    fourth = peer.session()
    assert second.request('ping').status == 404  # longest unused
    for session in (first, third, fourth):
        assert session.request('ping').status == 200
    stream = first.listen()
    assert stream.event().id
    third.call('echo', text='used')
    fifth = peer.session()
    assert fourth.request('ping').status == 404  # nobody was on its stream
    calls = [session.tool('hold', key='k') for session in (third, fifth)]
    sixth = peer.session()
    assert list(stream.events()) == []  # it did nothing but listen
    calls.append(sixth.tool('hold', key='k'))
    assert peer.door.request('POST', '/mcp', hello('2025-11-25'), {'Accept': BOTH}).status == 429
    assert Session(peer.door.as_other('bob')).request('ping').status == 200
    peer.release('k')
    assert [call.answer()['result']['content'][0]['text'] for call in calls] == ['k'] * 3


def test_too_many_sessions_in_all(http_host):
    peer = http_host(sessions=2)
    one, two = peer.session(), peer.session()
    bob = peer.door.as_other('bob')
    assert bob.request('POST', '/mcp', hello('2025-11-25'), {'Accept': BOTH}).status == 429
    assert one.request('ping').status == two.request('ping').status == 200
    one.end()
    assert Session(bob).request('ping').status == 200


def test_a_thousand_abandoned_sessions(http_host):
    peer = http_host(idle_ms=500, pulse_ms=50)

    def abandon():
        reply = peer.door.request('POST', '/mcp', hello('2025-11-25'), {'Accept': BOTH})
        assert reply.status == 200 and reply.headers['mcp-session-id']
        reply.body()
        reply.close()
    abandon()
    peer.until(sessions=0)
    used = [peer.memory()]
    while len(used) < 3 or used[-1] - used[-2] >= 2000:  # KiB; what is kept free is used again
        assert len(used) < 6, used
        for _ in range(1000):
            abandon()
        peer.until(sessions=0)
        used.append(peer.memory())
    abandon()


def test_what_an_idle_session_costs(http_host):
    peer = http_host()
    for _ in range(100):
        peer.session()
    base = peer.memory()
    for _ in range(1000):
        peer.session()
    assert peer.memory() - base < 16 * 1000, 'KiB for 1000'


def test_the_end_with_idle_streams(http_host):
    peer = http_host()
    streams = [peer.session().listen() for _ in range(3)]
    assert all(stream.event().id == '0-0' for stream in streams)
    sse = Sse(peer.door)
    assert peer.stop(8.5) == 0  # sooner than what requests in flight may take
    assert [list(stream.events()) for stream in streams] == [[], [], []]
    assert sse.next() is None


@pytest.mark.parametrize('version', ['2025-06-18', '2025-11-25'])
def test_the_end_lets_requests_finish(http_host, version):
    peer = http_host()
    session = peer.session(version)
    conn = peer.connect()
    session.door.send(conn, 'POST', '/mcp',
                      rpc('tools/call', {'name': 'doze', 'arguments': {'ms': 1000}}, 5),
                      session.headers())
    assert session.request('ping').status == 200  # so the other one was taken
    peer.proc.terminate()
    assert conn.reply().answer()['result']['content'][0]['text'] == 'waited'
    assert peer.proc.wait(60) == 0


def test_the_end_fails_what_does_not_finish(http_host):
    peer = http_host(drain_ms=300, sse_drain_ms=300)
    streaming, waiting, modern, sse = (peer.session(), peer.session('2025-06-18'),
                                       Modern(peer.door), Sse(peer.door))
    stream = streaming.tool('say', n=1, then='hold')
    assert stream.real_event().message()['method'] == 'notifications/message'
    params = {'name': 'hold', 'arguments': {}}
    old, new = peer.connect(), peer.connect()
    peer.door.send(old, 'POST', '/mcp', rpc('tools/call', params, 5), waiting.headers())
    peer.door.send(new, 'POST', '/mcp', rpc('tools/call', {**params, '_meta': modern.meta()}),
                   modern.headers('tools/call', params))
    sse.send(rpc('tools/call', params, 5))
    peer.until(held=4)
    peer.proc.terminate()
    ended = {'code': -32603, 'message': 'the server ended before the request did',
             'data': {'code': 'transport_failed',
                      'cause': 'the server ended before the request did',
                      'remediation': 'The connection broke; connect again and repeat the call.',
                      'failure': 'transport_failed', 'retryable': True}}
    last = stream.real_event().message()
    assert (last['id'], last['error']) == (streaming.last_id, ended)
    assert stream.real_event() is None  # a stream that ends in order, with its last chunk
    assert sse.next() == {'jsonrpc': '2.0', 'id': 5, 'error': ended}
    assert sse.next() is None
    for reply, number in (old.reply(), 5), (new.reply(), 1):
        assert (reply.status, reply.json()) == (503, {'jsonrpc': '2.0', 'id': number,
                                                      'error': ended})
    assert peer.proc.wait(8) == 0  # before the door would have ended it
