"""HTTP with SSE, the transport of 2024-11-05."""

import re

import pytest

from client import until
from http_client import Sse, hello, rpc


def test_a_session(peer):
    sse = Sse(peer.door)
    assert sse.stream.headers['content-type'].startswith('text/event-stream')
    assert sse.stream.headers['x-accel-buffering'] == 'no'
    assert re.fullmatch(r'/message\?sessionId=[\x21-\x7e]{32,}', sse.endpoint)
    assert sse.info['protocolVersion'] == '2024-11-05'
    assert sse.call('echo', text='grüße')['content'][0]['text'] == 'grüße'
    sse.close()
    peer.until(sse=0)


@pytest.mark.parametrize('version', ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])
def test_every_legacy_revision_may_use_it(peer, version):
    sse = Sse(peer.door, version)
    assert sse.info['protocolVersion'] == version
    sse.close()


def test_messages_get_202_and_the_answers_come_on_the_stream(peer):
    sse = Sse(peer.door)
    for body in [rpc('ping', number=5), rpc('notifications/x', number=None),
                 {'jsonrpc': '2.0', 'id': 3, 'result': {}},
                 rpc('no/such', number=6)]:
        reply = sse.post(body)
        assert reply.status == 202
    assert sse.next()['id'] == 5
    assert sse.next()['error']['code'] == -32601
    sse.close()


def test_what_is_no_message(peer):
    sse = Sse(peer.door)
    assert sse.post('{').status in (202, 400)
    assert sse.next()['error']['code'] == -32700
    assert sse.call('echo', text='x')['content'][0]['text'] == 'x'
    sse.close()


def test_batches_of_the_first_revision(peer):
    sse = Sse(peer.door)
    assert sse.post([rpc('ping', number=1), rpc('ping', number=2)]).status == 202
    assert sorted(m['id'] for m in sse.next()) == [1, 2]
    sse.close()


def test_a_slow_call_delays_nobody(peer):
    sse = Sse(peer.door)
    sse.send(rpc('tools/call', {'name': 'hold', 'arguments': {'key': 'k'}}, 'slow'))
    for i in range(20):
        assert sse.call('echo', text=str(i))['content'][0]['text'] == str(i)
    peer.release('k')
    assert sse.next()['id'] == 'slow'
    sse.close()


def test_the_end_of_the_stream_cancels(peer):
    sse = Sse(peer.door)
    before = peer.stats()['cancelled']
    sse.send(rpc('tools/call', {'name': 'hold', 'arguments': {'key': 'k'}}, 1))
    peer.until(held=1)
    sse.close()
    peer.until(held=0, cancelled=before + 1, sse=0)
    assert sse.post(rpc('ping')).status == 404


def test_sessions_that_never_were(peer):
    for path, status in [('/message', 400), ('/message?sessionId=', 404),
                         ('/message?sessionId=x', 404),
                         ('/message?sessionId=sse-00000000000000000000000000000000', 404),
                         ('/message?session=x', 400)]:
        assert peer.door.request('POST', path, rpc('ping')).status == status, path
    assert peer.door.request('GET', '/message?sessionId=x').status == 405
    assert peer.door.request('POST', '/sse', rpc('ping')).status == 405


def test_a_session_belongs_to_its_principal(peer):
    sse = Sse(peer.door)
    assert sse.post(rpc('ping'), door=peer.door.as_other('bob')).status == 404
    assert sse.post(rpc('ping'), door=peer.door.as_other('mallory')).status == 401
    assert sse.call('echo', text='x')['content'][0]['text'] == 'x'
    sse.close()


def test_sessions_of_the_two_transports_are_not_the_same(peer):
    session, sse = peer.session(), Sse(peer.door)
    assert peer.door.request('POST', f'/message?sessionId={session.id}', rpc('ping')).status == 404
    name = sse.endpoint.partition('=')[2]
    assert peer.door.request('POST', '/mcp', rpc('ping'),
                             session.headers({'Mcp-Session-Id': name})).status == 404
    sse.close()


def test_notifications_that_belong_to_no_request(peer):
    sse = Sse(peer.door)
    peer.text('change')
    assert sse.next()['method'] == 'notifications/tools/list_changed'
    sse.close()


def test_questions(peer):
    sse = Sse(peer.door, start=False)
    sse.ask(hello('2025-06-18', {'elicitation': {}}))
    sse.send(rpc('tools/call', {'name': 'ask', 'arguments': {}}, 9))
    question = sse.next()
    sse.send({'jsonrpc': '2.0', 'id': question['id'],
              'result': {'action': 'accept', 'content': {'name': 'Ada'}}})
    assert sse.next()['result']['content'][0]['text'] == 'Ada'
    sse.close()


def test_silence_is_filled_with_comments(http_host):
    peer = http_host(sse_pulse_ms=50)
    sse = Sse(peer.door)
    for _ in range(3):
        assert sse.stream.event().comments
    assert sse.call('echo', text='x')['content'][0]['text'] == 'x'


def test_a_client_that_is_too_slow_is_disconnected(http_host):
    peer = http_host(queue=64 << 10)
    slow, quick = Sse(peer.door, receive_buffer=4096), Sse(peer.door)
    slow.send(rpc('tools/call', {'name': 'say', 'arguments': {'n': 1000, 'bytes': 10_000}}, 1))
    peer.until(sse=1)
    assert peer.stats()['slow'] == 1
    assert slow.post(rpc('ping')).status == 404
    assert quick.call('echo', text='x')['content'][0]['text'] == 'x'


def test_a_large_answer_to_a_quick_client(http_host):
    peer = http_host(queue=64 << 10)
    sse = Sse(peer.door)
    assert len(sse.call('large', bytes=20 << 20)['content'][0]['text']) == 20 << 20


def test_too_many(http_host):
    peer = http_host(sse_sessions_each=2)
    one, two = Sse(peer.door), Sse(peer.door)
    assert peer.door.request('GET', '/sse').status == 429
    other = Sse(peer.door.as_other('bob'))
    one.close()
    peer.until(sse=2)
    assert Sse(peer.door).call('echo', text='x')
    other.close()
    two.close()


def test_three_hundred_that_go_away(http_host):
    peer = http_host(sse_sessions_each=400)
    used = []
    for _ in range(3):
        many = [Sse(peer.door) for _ in range(300)]
        assert peer.stats()['sse'] == 300
        for sse in many:
            sse.close()
        peer.until(sse=0, streams=0)
        until(lambda: peer.stats()['connections'] <= 1)
        used.append(peer.memory())
    assert used[2] - used[0] < 1000, f'KiB after each: {used}'


def test_the_end_waits_for_answers(http_host):
    peer = http_host()
    idle, busy = Sse(peer.door), Sse(peer.door)
    busy.send(rpc('tools/call', {'name': 'doze', 'arguments': {'ms': 1000}}, 1))
    peer.proc.terminate()
    assert idle.next() is None
    assert busy.next()['result']['content'][0]['text'] == 'waited'
    assert busy.next() is None
    assert peer.proc.wait(60) == 0
