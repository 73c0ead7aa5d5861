"""Event streams of legacy sessions: priming, resumption, polling, the GET stream, bounds."""

import json

import pytest

from client import until
from http_client import BOTH, Closed, Session, rpc

LOG = {'progressToken': 1}


def texts(events):
    return [e.message() for e in events if e.data]


def test_an_answer_at_once_is_json(peer):
    reply = peer.session().tool('echo', text='x')
    assert (reply.status, reply.type) == (200, 'application/json')


def test_a_stream_begins_with_an_id_and_no_data(peer):
    session = peer.session()
    hold = session.tool('hold', key='k')
    assert hold.headers['x-accel-buffering'] == 'no'
    assert 'no-cache' in hold.headers['cache-control']
    assert 'mcp-session-id' not in hold.headers  # it came with the answer to initialize
    first = hold.event()
    assert (first.data, first.retry) == ('', '1000') and first.id
    peer.release('k')
    events = list(hold.events())
    assert len(events) == 1 and events[0].event == 'message'
    assert events[0].message()['id'] == session.last_id


@pytest.mark.parametrize('version', ['2025-03-26', '2025-06-18'])
def test_older_revisions_know_no_empty_events(peer, version):
    session = peer.session(version)
    reply = session.tool('say', n=2)
    events = list(reply.events())
    assert [e.message().get('method') for e in events] == ['notifications/message'] * 2 + [None]
    assert all(e.id for e in events)


@pytest.mark.parametrize('version', ['2025-06-18', '2025-11-25'])
def test_what_comes_before_the_answer_makes_a_stream(peer, version):
    reply = peer.session(version).tool('say', n=3)
    assert reply.type == 'text/event-stream'
    got = reply.messages()
    assert [m.get('method') for m in got] == ['notifications/message'] * 3 + [None]


def test_ids_are_unique_in_the_session(peer):
    session = peer.session()
    ids = []
    for _ in range(3):
        ids += [e.id for e in session.tool('say', n=5).events()]
    stream = session.listen()
    ids.append(stream.event().id)
    peer.text('change')
    ids.append(stream.real_event().id)
    assert len(ids) == len(set(ids)) == 3 * 7 + 2


def test_a_client_that_goes_away_cancels_nothing_and_comes_back(peer):
    session = peer.session()
    before = peer.stats()['cancelled']
    reply = session.tool('say', n=3, then='hold', key='k')
    ids = [reply.event().id for _ in range(3)]  # one of the three records is not read
    reply.close()
    until(lambda: peer.stats()['held'] == 1)
    peer.release('k')
    back = session.listen(ids[-1])
    got = list(back.events())
    assert [m.get('method') for m in texts(got)] == ['notifications/message', None]
    assert texts(got)[0]['params']['data'].startswith('2 ')
    assert texts(got)[1]['id'] == session.last_id
    assert peer.stats()['cancelled'] == before


def test_back_before_the_answer(peer):
    session = peer.session()
    reply = session.tool('say', n=1, then='hold', key='k')
    reply.event()
    at = reply.event().id
    reply.close()
    back = session.listen(at)
    assert not back.event().data
    peer.release('k')
    assert [m['id'] for m in texts(back.events())] == [session.last_id]


def test_from_the_beginning_again_and_again(peer):
    session = peer.session()
    reply = session.tool('say', n=10)
    first = reply.event()
    assert first.data == ''
    whole = list(reply.events())
    again = [e for e in session.listen(first.id).events() if e.data]
    assert [e.id for e in again] == [e.id for e in whole]
    assert [e.data for e in again] == [e.data for e in whole]
    middle = [e for e in session.listen(whole[4].id).events() if e.data]
    assert [e.id for e in middle] == [e.id for e in whole[5:]]


def test_only_the_events_of_that_stream(peer):
    session = peer.session()
    one, two = (session.tool('say', n=1, then='hold', key='one'),
                session.tool('say', n=1, then='hold', key='two'))
    at_one, at_two = [stream.event() and stream.event().id for stream in (one, two)]
    stream = session.listen()
    assert stream.event().id
    one.close()
    two.close()
    stream.close()
    peer.text('change')
    peer.release('one')
    peer.release('two')
    assert ([m['result']['content'][0]['text'] for m in texts(session.listen(at_two).events())]
            == ['two'])
    assert ([m['result']['content'][0]['text'] for m in texts(session.listen(at_one).events())]
            == ['one'])
    general = session.listen('0-0')
    assert general.real_event().message()['method'] == 'notifications/tools/list_changed'


def test_a_newer_connection_takes_the_stream(peer):
    session = peer.session()
    old = session.tool('say', n=1, then='hold', key='k')
    first = old.event().id
    assert old.event().data
    new = session.listen(first)
    assert list(old.events()) == []
    assert new.real_event().message()['method'] == 'notifications/message'
    peer.release('k')
    assert new.real_event().message()['id'] == session.last_id
    assert new.real_event() is None


@pytest.mark.parametrize('at', ['', '0', '0-', '-1', '1-0', '0-1', '77-0', '2-1', '2-99', 'x',
                                '2-0x', ' ', '2--1', '+2-0',
                                '2-18446744073709551616', '99999999999999999999-1'])
def test_ids_that_were_never_given(peer, at):
    session = peer.session()
    hold = session.tool('hold', key='k')
    assert hold.event().id == '2-0'
    assert session.listen(at).status == 400
    peer.release('k')
    assert hold.answer()


def test_ids_of_another_session(peer):
    one, two = peer.session(), peer.session()
    reply = one.tool('say', n=2)
    ids = [e.id for e in reply.events()]
    assert two.listen(ids[1]).status == 400


def test_the_server_closes_and_the_client_polls(peer):
    session = peer.session()
    reply = session.tool('disconnect', key='k')
    events = list(reply.events())
    assert [(e.data, e.retry) for e in events] == [('', '1000')]
    back = session.listen(events[0].id)
    assert not back.event().data
    assert back.event().message()['params']['data'] == 'away'
    peer.release('k')
    assert texts(back.events())[0]['id'] == session.last_id


def test_polling_after_something_was_said(peer):
    session = peer.session()
    events = list(session.tool('disconnect', key='k', say=1).events())
    assert [e.message()['params']['data'] for e in events if e.data] == ['before']
    peer.release('k')
    got = texts(session.listen(events[-1].id).events())
    assert got[0]['params']['data'] == 'away' and got[1]['id'] == session.last_id


def test_older_revisions_are_not_disconnected(peer):
    reply = peer.session('2025-06-18').tool('disconnect', key='k')
    assert reply.event().message()['params']['data'] == 'away'
    peer.release('k')
    assert reply.real_event().message()['result']


def test_the_get_stream(peer):
    session, deaf = peer.session(), peer.session()
    peer.text('change')  # before it, nobody listens
    stream = session.listen()
    assert stream.event().id == '0-0'
    peer.text('change', n=2)
    got = [stream.real_event() for _ in range(2)]
    assert [e.message()['method'] for e in got] == ['notifications/tools/list_changed'] * 2
    stream.close()
    peer.until(streams=0)
    peer.text('change')
    back = session.listen(got[-1].id)
    event = back.real_event()
    assert event.id == '0-3'
    deaf.end()


CHANGED = 'notifications/tools/list_changed'


def test_get_streams_beside_each_other(peer):
    """A message goes to one of them; none of them ends another."""
    session = peer.session()
    old = session.listen()
    assert old.event()
    new = session.listen()
    assert new.event().id != '0-0'
    peer.text('change')
    seen = new.real_event()
    assert seen.message()['method'] == CHANGED
    new.close()
    peer.until(streams=1)
    peer.text('change')
    assert old.real_event().id == '0-1'  # and not what the other had
    back = session.listen(seen.id)
    assert back.event()
    peer.text('change')
    assert back.real_event().message()['method'] == CHANGED
    back.close()
    peer.until(streams=1)
    peer.text('change')
    assert old.real_event().id == '0-2'


def test_a_resumed_get_stream_ends_no_other(peer):
    session = peer.session()
    old = session.listen()
    first = old.event().id
    old.close()
    peer.until(streams=0)
    new = session.listen()  # from now on nothing is for the old one
    assert new.event()
    back = session.listen(first)
    assert back.event()
    peer.until(streams=2)
    back.close()
    peer.until(streams=1)
    peer.text('change')
    assert new.real_event().message()['method'] == CHANGED


def test_too_many_get_streams_end_the_oldest(peer):
    session = peer.session()
    streams = [session.listen() for _ in range(9)]
    assert streams[0].real_event() is None
    assert all(stream.event() for stream in streams[1:])
    peer.until(streams=8)
    streams[4].close()
    peer.until(streams=7)
    more = session.listen()  # a stream that its client has left makes room first
    assert more.event()
    peer.until(streams=8)
    peer.text('change')
    assert more.real_event().message()['method'] == CHANGED


def test_no_message_is_on_two_streams(peer):
    session = peer.session()
    stream = session.listen()
    reply = session.tool('say', n=5)
    assert len(reply.messages()) == 6
    peer.text('change')
    event = stream.real_event()
    assert event.message()['method'] == 'notifications/tools/list_changed'


def test_questions_come_on_the_stream_of_their_call(peer):
    session = peer.session(capabilities={'elicitation': {}})
    reply = session.tool('ask')
    question = reply.real_event().message()
    assert question['method'] == 'elicitation/create'
    answer = {'jsonrpc': '2.0', 'id': question['id'],
              'result': {'action': 'accept', 'content': {'name': 'Ada'}}}
    done = session.post(answer)
    assert (done.status, done.body()) == (202, b'')
    assert reply.real_event().message()['result']['content'][0]['text'] == 'Ada'


def test_a_question_survives_its_connection(peer):
    session = peer.session(capabilities={'elicitation': {}})
    reply = session.tool('ask')
    first = reply.event().id
    reply.close()
    back = session.listen(first)
    question = back.real_event().message()
    session.post({'jsonrpc': '2.0', 'id': question['id'],
                  'result': {'action': 'accept', 'content': {'name': 'Bea'}}})
    assert back.real_event().message()['result']['content'][0]['text'] == 'Bea'


def test_silence_is_filled_with_comments(http_host):
    peer = http_host(pulse_ms=50)
    session = peer.session()
    stream, hold = session.listen(), session.tool('hold', key='k')
    old = peer.session('2025-06-18').tool('hold', key='k')  # becomes a stream when it has waited
    for one in (stream, hold, old):
        seen = 0
        while seen < 2:
            seen += len(one.event().comments)
    peer.release('k')
    for one in (hold, old):
        assert one.real_event().message()['result']


def test_events_are_stored_up_to_a_number(http_host):
    peer = http_host(events=10)
    session = peer.session()
    reply = session.tool('say', n=1, then='hold', key='k')
    first = reply.event().id
    reply.close()
    for _ in range(5):
        assert len(session.tool('say', n=5).messages()) == 6
    peer.release('k')
    got = texts(session.listen(first).events())
    assert [m.get('id') for m in got] == [session.last_id
                                          - 5], 'the record is lost, the answer is not'


def test_events_are_stored_up_to_a_size(http_host):
    peer = http_host(store_max=100_000)
    session = peer.session()
    reply = session.tool('say', n=20, bytes=10_000, then='hold', key='k')
    first = reply.event().id
    reply.close()
    assert peer.until(held=1)['stored'] <= 100_000
    peer.release('k')
    got = texts(session.listen(first).events())
    assert 5 <= len(got) <= 10 and got[-1]['id'] == session.last_id
    session.end()
    assert peer.stats()['stored'] == 0


def test_all_sessions_store_up_to_a_size(http_host):
    peer = http_host(store_all=50_000)
    for _ in range(10):
        session = peer.session()
        session.tool('say', n=3, bytes=10_000).messages()
        assert peer.stats()['stored'] <= 50_000


def test_one_session_leaves_room_to_others(http_host):
    """The one that has most of the store loses its oldest events."""
    peer = http_host(store_all=50_000)
    greedy, other = peer.session(), peer.session()
    firsts = {}
    for held, (session, n) in enumerate([(greedy, 20), (other, 2)], 1):
        reply = session.tool('say', n=n, bytes=10_000, then='hold', key=f'k{held}')
        firsts[session] = reply.event().id
        reply.close()
        assert peer.until(held=held)['stored'] <= 50_000
    for session, n, name in ((other, 2, 'k2'), (greedy, 1, 'k1')):
        peer.release(name)
        got = texts(session.listen(firsts[session]).events())
        assert len(got) >= n + 1 and got[-1]['id'] == session.last_id


def test_many_sessions_leave_room_to_another_principal(http_host):
    """The principal that has most gives way, though each of its sessions has less."""
    peer = http_host(store_all=50_000)
    session = peer.session()
    reply = session.tool('say', n=2, bytes=9_000, then='hold', key='k0')
    first = reply.event().id
    reply.close()
    for held in range(1, 8):
        reply = Session(peer.door.as_other('bob')).tool('say', n=1, bytes=9_000, then='hold',
                                                        key=f'k{held}')
        reply.event()
        reply.close()
        assert peer.until(held=held + 1)['stored'] <= 50_000
    peer.release('k0')
    assert len(texts(session.listen(first).events())) == 3


def test_what_is_finished_is_not_stored_for_ever(http_host):
    peer = http_host(keep_ms=100, pulse_ms=30)
    session = peer.session()
    first = session.tool('say', n=3).event().id
    peer.until(stored=0)
    assert session.listen(first).status == 400
    assert session.request('ping').status == 200


def test_a_reader_that_stops(http_host):
    """It is never starved silently: what it does not take is stored, and when that is full too it
    is cut off, and comes back for what is left."""
    peer = http_host(queue=64 << 10, store_max=1 << 20)
    session = peer.session()
    conn = peer.connect(receive_buffer=4096)
    body = rpc('tools/call', {'name': 'say', 'arguments': {'n': 2000, 'bytes': 10_000,
                                                           'then': 'hold', 'key': 'k'}}, 'slow')
    session.door.send(conn, 'POST', '/mcp', body, session.headers())
    peer.until(held=1, streams=0)
    assert peer.stats()['stored'] <= 1 << 20
    for _ in range(20):
        assert session.call('echo', text='others')['content'][0]['text'] == 'others'
    reply = conn.reply()
    ids = []
    try:
        ids = [e.id for e in reply.events()]
    except (AssertionError, Closed):
        pass  # it may end in the middle of an event
    peer.release('k')
    back = texts(session.listen(ids[-1] if ids else '2-0').events())
    assert back[-1]['id'] == 'slow' and len(back) > 10


def test_a_long_replay_needs_no_large_queue(http_host):
    peer = http_host(queue=16 << 10)
    session = peer.session()
    reply = session.tool('say', n=400, bytes=20_000)
    first = reply.event().id
    reply.close()
    again = session.listen(first)
    got = [e.message() for e in again.events() if e.data]
    assert len(got) == 401 and got[-1]['id'] == session.last_id


def test_an_answer_larger_than_all_queues(http_host):
    peer = http_host(queue=64 << 10, store_max=1 << 20)
    session = peer.session()
    got = session.tool('large', bytes=20 << 20, say=1).messages(60)
    assert len(got) == 2 and len(got[1]['result']['content'][0]['text']) == 20 << 20


def test_too_many_streams(http_host):
    peer = http_host(streams=2)
    session = peer.session()
    streams = [session.listen(), peer.session().listen()]
    assert all(s.event() for s in streams)
    assert peer.session().listen().status in (429, 503)
    # a call that has nothing to say before its answer still gets that
    conn = peer.connect()
    session.door.send(conn, 'POST', '/mcp',
                      rpc('tools/call', {'name': 'hold', 'arguments': {'key': 'k'}}, 5),
                      session.headers())
    peer.until(held=1)
    peer.release('k')
    assert conn.reply().json()['id'] == 5
    assert session.tool('say', n=1).status in (429, 503)
    for stream in streams:
        stream.close()


def test_every_line_of_a_stream_is_json(peer):
    reply = peer.session().tool('say', n=3, bytes=100)
    for event in reply.events():
        if event.data:
            assert '\n' not in event.data
            json.loads(event.data)


def test_get_with_a_body_of_accept(peer):
    session = peer.session()
    assert peer.door.request('GET', '/mcp', None, session.headers({'Accept': BOTH})).status == 200


def test_progress_waits_for_a_client_that_is_away(peer):
    session = peer.session()
    reply = session.tool('advance', _meta={'progressToken': 'p'}, key='k')
    first = reply.event().id
    assert reply.event().message()['params']['progress'] == 1
    reply.close()
    peer.until(streams=0)
    for _ in range(3):
        peer.text('advance')
    peer.release('k')
    got = texts(session.listen(first).events())
    assert [m.get('params', {}).get('progress') for m in got] == [1, 4, None]


def test_a_question_ends_with_its_call(http_host):
    peer = http_host(events=1)  # so that nothing else keeps the stream
    session = peer.session(capabilities={'elicitation': {}})
    reply = session.tool('ask')
    asked = session.last_id
    question = reply.real_event().message()
    assert len(session.tool('say', n=1).messages()) == 2
    session.cancel(asked)
    got = reply.real_event().message()
    assert (got['method'], got['params']['requestId']) == ('notifications/cancelled',
                                                           question['id'])
    assert reply.real_event() is None
    assert session.request('ping').status == 200


def test_a_question_that_had_no_stream_is_asked_again(http_host):
    peer = http_host(streams=1, pulse_ms=50)
    session = peer.session(capabilities={'elicitation': {}})
    general = session.listen()
    assert general.event().id
    session.last_id += 1
    made = session.post(rpc('tools/call', {'name': 'job', 'arguments': {'ask': 1}, 'task': {}},
                            session.last_id)).json()
    task = {'taskId': made['result']['task']['taskId']}
    assert session.request('tasks/result', task).status in (429, 503)
    general.close()
    peer.until(streams=0)
    result = session.request('tasks/result', task)
    question = result.real_event().message()
    assert question['method'] == 'elicitation/create'
    session.post({'jsonrpc': '2.0', 'id': question['id'],
                  'result': {'action': 'accept', 'content': {'name': 'Ada'}}})
    assert result.real_event().message()['result']['content'][0]['text'] == 'Ada'
