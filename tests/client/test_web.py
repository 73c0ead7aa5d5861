"""Streamable HTTP and HTTP+SSE from the client's side: sessions, streams that break,
and servers that lie."""

import gzip
import signal
import threading
import time

import pytest

from hostile_http import KEEP, error, event, events, initialized, reply, result
from links import EVERYTHING, until
from test_eras import modern

MIB = 1 << 20
LARGE = 3 * MIB // 4
LEGACY = {'wire': 'http', 'era': 'legacy'}
MODERN = {'wire': 'http', 'era': 'modern'}


def text(said):
    return {'resultType': 'complete', 'content': [{'type': 'text', 'text': said}]}


def called(request):
    return (request.message or {}).get('method') == 'tools/call'


def answer_of(request, said='well'):
    return {'jsonrpc': '2.0', 'id': request.message['id'], 'result': text(said)}


@pytest.fixture(params=['legacy', 'modern'])
def bad(host, hostile_http, everything, request):
    """A server that answers a call of `now` by the function,
    and beside it one that is as it should be."""
    era = request.param

    def start(act, **target):
        def answer(got):
            if called(got) and got.message['params']['name'] == 'now':
                return act(got)
            if called(got):
                return result(got, text(got.message['params']['name']))
            return modern(got) if era == 'modern' else initialized(got)
        host.connect('good', url=everything.url)
        server = hostile_http(answer)
        link = host.connect('bad', url=server.url, known={'wire': 'http', 'era': era}, **target)
        link.server = server
        return link
    yield start
    assert 'simple text' in host.links['good'].text('test_simple_text')
    about = host.links['good'].about()
    assert (about['pending'], about['strays'], about['garbage']) == (0, 0, 0)


@pytest.mark.parametrize('name, act, code', [
    ('events that are JSON', lambda r: reply(body=answer_of(r), kind='text/event-stream'),
     'transport_failed'),
    ('JSON that is events', lambda r: reply(body=event(answer_of(r)), kind='application/json'),
     'invalid_arguments'),
    ('a page', lambda r: reply(body='<p>hello', kind='text/html'), 'invalid_arguments'),
    ('a page in place of an error', lambda r: reply('500 Oops', '<p>' * MIB, kind='text/html'),
     'transport_failed'),
    ('nothing', lambda r: reply(), 'invalid_arguments'),
    ('202', lambda r: reply('202 Accepted', kind=None), 'invalid_arguments'),
    ('no end', lambda r: reply(body=answer_of(r))[:-10], 'transport_failed'),
    ('no answer', lambda r: b'', 'transport_failed'),
    ('no HTTP', lambda r: b'SSH-2.0-x\r\n', 'transport_failed'),
    ('another id', lambda r: reply(body={**answer_of(r), 'id': 4711}), 'invalid_arguments'),
    ('no message', lambda r: reply(body=[]), 'invalid_arguments'),
    ('broken UTF-8', lambda r: reply(body=b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xe2\x82"}}'),
     'invalid_arguments'),
    ('a redirect', lambda r: reply(
        '302 Found', Location='http://169.254.169.254/latest/meta-data/'), 'transport_failed'),
    ('a redirect that keeps the method',
     lambda r: reply('307 x', Location='http://169.254.169.254/'), 'transport_failed'),
    ('headers without end', lambda r: b'HTTP/1.1 200 OK\r\n' + b'X: y\r\n' * 100000, 'too_large'),
    ('a header without end', lambda r: b'HTTP/1.1 200 OK\r\nX: ' + b'y' * 300000, 'too_large'),
    ('a status line without end', lambda r: b'HTTP/1.1 200 ' + b'y' * 300000, 'too_large'),
    ('headers that end in their middle',
     lambda r: b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n', 'transport_failed'),
    ('a wrong length', lambda r: b'HTTP/1.1 200 OK\r\nContent-Type: '
     b'application/json\r\nContent-Length: -1\r\n\r\n', None),
    ('gzip', lambda r: reply(body=gzip.compress(b'x' * 100 * MIB), Content_Encoding='gzip'),
     'invalid_arguments'),
    ('gzip of events', lambda r: events(Content_Encoding='gzip') + gzip.compress(b'\n' * 100 * MIB),
     'invalid_arguments'),
    ('403', lambda r: reply('403 Forbidden', '{}'), 'denied'),
    ('401', lambda r: reply('401 Unauthorized'), 'login_required'),
    ('403 in JSON', lambda r: error(r, -32000, status='403 Forbidden'), 'denied'),
    ('413', lambda r: reply('413 Too Large'), 'too_large'),
    ('429', lambda r: reply('429 Slow Down'), 'limit_exceeded'),
], ids=lambda v: v if isinstance(v, str) and ' ' in v else None)
def test_lies(bad, host, name, act, code):
    link = bad(act, message_max=4 * MIB)
    done = link.call('now')
    assert 'error' in done and (code is None or done['error'] == code), done
    assert link.text('x') == 'x'
    assert host.peak() < 64 * MIB


def test_an_error_with_its_status(bad):
    link = bad(lambda r: error(r, -32602, 'no such tool', status='404 Not Found'))
    assert link.call('now')['fault'] == {'code': -32602, 'message': 'no such tool'}


@pytest.mark.parametrize('piece', [b'x' * 65536, b': ping\n' * 8192, b'data: x\n' * 8192,
                                   b'id: 1\n' * 8192, b'event: ' + b'x' * 65536],
                         ids=['body', 'comments', 'data', 'ids', 'name'])
def test_bodies_without_end(bad, host, piece):
    """An answer over the bound fails; what is no answer yet runs into the time that the request
    has."""
    def act(request):
        head = (events() if piece != b'x' * 65536
                else reply(body=b'').replace(b'Content-Length: 0\r\n', b''))
        yield head
        while True:
            yield piece
    link = bad(act, message_max=4 * MIB)
    assert link.call('now', timeout_ms=1500)['error'] in ('too_large', 'timeout')
    assert link.text('x') == 'x'
    assert host.peak() < 64 * MIB


def test_answers_that_together_are_too_much(host, hostile_http, everything):
    """One budget for the link: who would pass it hears so, the others have what they had."""
    def answer(request):
        if not called(request) or request.message['params']['name'] == 'small':
            return modern(request)
        return large(request)

    def large(request):
        body = reply(body=answer_of(request, 'x' * LARGE))
        yield body[:-10]
        go.wait(60)
        yield body[-10:]
    go = threading.Event()
    link = host.connect(url=hostile_http(answer).url, known=MODERN, message_max=MIB,
                        memory_max=4 * MIB + MIB // 4)
    requests = [link.start('call', tool=f'large{i}', arguments={}) for i in range(12)]
    refused = [link.wait('done')['error'] for _ in range(8)]
    assert refused == ['limit_exceeded'] * 8
    assert link.text('small') == 'modern'
    go.set()
    done = [link.wait('done') for _ in range(4)]
    assert ({len(d['result']['content'][0]['text']) for d in done} == {LARGE}
            and {d['id'] for d in done} < set(requests))
    assert host.peak() < 64 * MIB


def test_events_that_together_are_too_much(host, hostile_http):
    def answer(request):
        return (large() if called(request) and request.message['params']['name'] != 'small'
                else modern(request))

    def large():
        yield events('data: ' + 'x' * LARGE)
        go.wait(60)
    go = threading.Event()
    link = host.connect(url=hostile_http(answer).url, known=MODERN, message_max=MIB,
                        memory_max=4 * MIB + MIB // 4)
    for i in range(12):
        link.start('call', tool=f'large{i}', arguments={})
    assert [link.wait('done')['error'] for _ in range(8)] == ['limit_exceeded'] * 8
    assert link.text('small') == 'modern'
    go.set()
    assert [link.wait('done')['error'] for _ in range(4)] == ['transport_failed'] * 4
    assert host.peak() < 64 * MIB


def test_silence(bad):
    def act(request):
        time.sleep(1)
        return b''
    link = bad(act)
    assert link.call('now', timeout_ms=200)['error'] == 'timeout'
    assert link.text('x') == 'x'


def test_an_answer_twice_and_one_of_another(bad):
    def act(request):
        return events(event({**answer_of(request), 'id': 4711}), event(answer_of(request, 'first')),
                      event(answer_of(request, 'second')))
    link = bad(act)
    assert link.text('now') == 'first'
    assert link.text('x') == 'x'
    until(lambda: link.about()['strays'] >= 1, what='the strays')


def test_a_stream_that_goes_on_after_its_answer(bad):
    """Each of them has its connection closed in time, however much more it says."""
    ended = []

    def act(request):
        yield events(event(answer_of(request)))
        try:
            for i in range(2000):
                time.sleep(0.01)
                yield event({'jsonrpc': '2.0', 'method': 'notifications/more'}).encode()
        finally:
            ended.append(1)
    link = bad(act)
    for _ in range(3):
        assert link.text('now') == 'well'
    until(lambda: len(ended) == 3, what='the ends of the connections')


def test_a_stream_that_is_not_ended_after_its_answer(bad):
    def act(request):
        yield events(event(answer_of(request)))
        for _ in range(200):
            time.sleep(0.05)
            yield b': still here\n'
    link = bad(act)
    assert link.text('now') == 'well'
    assert link.text('x') == 'x'


def test_pieces_of_every_size(bad):
    def act(request):
        data = events('\ufeff: hello\r\rid: 7\r\n',
                      'data: {"jsonrpc":"2.0","method":"notifications/x"}\r\n\r\n',
                      event(answer_of(request, 'ä€😀')).replace('\n', '\r'))
        for i in range(len(data)):
            yield data[i:i + 1]
    link = bad(act)
    assert link.text('now') == 'ä€😀'
    assert link.wait('notified')['method'] == 'notifications/x'


def test_an_address_that_is_not_public(host, hostile_http):
    server = hostile_http(modern)
    for url in (server.url, 'http://169.254.169.254/', 'http://[::ffff:10.0.0.1]/',
                'http://localhost/mcp'):
        assert host.connect(url, ready=False, url=url,
                            public_only=True).over()['error'] == 'address_not_public'
    assert server.requests == []


# ---- legacy: sessions and streams ----------------------------------------------------------------

class Sessions:
    """A legacy server whose sessions the test can forget, by one status or another."""

    def __init__(self, forgotten='404 Not Found', body=''):
        self.forgotten, self.body = forgotten, body
        self.made, self.open, self.calls = 0, set(), []

    def __call__(self, request):
        session = request.headers.get('mcp-session-id')
        if (request.message or {}).get('method') == 'initialize':
            assert session is None
            self.made += 1
            self.open.add(f's{self.made}')
            return initialized(request, Mcp_Session_Id=f's{self.made}')
        if request.headers.get('mcp-protocol-version') and session not in self.open:
            return reply(self.forgotten, self.body)
        if request.method == 'DELETE':
            self.open.remove(session)
            return reply('204 No Content', kind=None)
        if called(request):
            self.calls.append((session, request.message['params']['name']))
            return result(request, text(session))
        return initialized(request)


NO_SESSION = {'jsonrpc': '2.0', 'error': {'code': -32000, 'message': 'Bad Request: No valid '
                                          'session ID provided'}, 'id': None}


@pytest.mark.parametrize('status, body', [('404 Not Found', ''), ('404 Not Found', '{"jsonrpc":'),
                                          ('400 Bad Request', NO_SESSION),
                                          ('400 Bad Request', 'Mcp-Session-Id is not known')])
def test_a_session_that_is_lost(host, hostile_http, status, body):
    sessions = Sessions(status, body)
    link = host.connect(url=hostile_http(sessions).url, known=LEGACY)
    assert link.text('a') == 's1'
    sessions.open.clear()
    requests = [link.start('call', tool=f'b{i}', arguments={}) for i in range(20)]
    for request in requests:
        assert link.done(request)['result']['content'][0]['text'][0] == 's'
    assert link.text('c') in sessions.open
    names = [name for _, name in sessions.calls]
    assert len(names) == len(set(names)) == 22  # none was made twice
    link.close()
    until(lambda: len(sessions.open) < sessions.made, what='the end of the session')


def test_a_server_that_forgets_every_session(host, hostile_http):
    sessions = Sessions()
    link = host.connect(url=hostile_http(sessions).url, known=LEGACY)
    sessions.open = type('Never', (set,), {'add': lambda *_: None})()
    assert 'error' in link.call('a')
    assert sessions.made < 10


@pytest.mark.parametrize('message', ['not so', 'the session takes one request at a time'])
def test_a_400_that_means_something_else(host, hostile_http, message):
    sessions = Sessions('400 Bad Request', {'jsonrpc': '2.0', 'id': None,
                                            'error': {'code': -32600, 'message': message}})
    link = host.connect(url=hostile_http(sessions).url, known=LEGACY)
    sessions.open.clear()
    assert link.call('a')['fault']['code'] == -32600
    assert sessions.made == 1


@pytest.mark.parametrize('head', [events(': hello\n\n'),
                                  b'HTTP/1.1 202 Accepted\r\nContent-Length: 100000\r\n\r\n'],
                         ids=['events', '202'])
def test_a_beginning_whose_last_answer_has_no_end(host, hostile_http, head):
    """The head of the answer to notifications/initialized tells enough:
    nothing waits for the rest for long."""
    ended = []

    def endless():
        yield head
        try:
            for _ in range(2000):
                time.sleep(0.01)
                yield b':\n'
        finally:
            ended.append(1)

    def answer(request):
        if (request.message or {}).get('method') == 'notifications/initialized':
            return endless()
        return initialized(request) or result(request, text('well'))
    server = hostile_http(answer)
    begun = time.monotonic()
    link = host.connect(url=server.url, known=LEGACY)
    assert link.text('x') == 'well'
    assert not ended or b'202' in head or time.monotonic() - begun > 0.8
    until(lambda: ended, what='the end of its connection')
    assert 'GET' in server.methods()


def test_everything_is_started_anew(host, server, tmp_path):
    """A legacy client goes on with the next process at the same address;
    what it watched it watches again."""
    first = server(EVERYTHING, '127.0.0.1:0')
    link = host.connect(url=first.url, version='2025-11-25')
    assert 'simple text' in link.text('test_simple_text')
    first.stop(signal.SIGKILL)
    assert link.call('test_simple_text')['error'] == 'transport_failed'
    server(EVERYTHING, first.url[len('http://'):-len('/mcp')])
    assert 'simple text' in link.text('test_simple_text')


@pytest.mark.parametrize('breaks', ['in order', 'in the middle', 'at once'])
def test_a_call_whose_stream_breaks_off(host, hostile_http, breaks):
    """GET takes it up behind its last event; the call is not made again."""
    calls = []

    def answer(request):
        if called(request):
            calls.append(request)
            return [events(event({'jsonrpc': '2.0', 'method': 'notifications/a'},
                                 'e1').replace('data', 'retry: 20\ndata', 1),
                           'id: e2\ndata:\n\n' if breaks == 'in order' else 'id: e3\ndata: {"half'),
                    b'']
        if request.method == 'GET' and request.headers.get('last-event-id'):
            last = request.headers['last-event-id']
            assert last == ('e2' if breaks == 'in order' else 'e1'), last
            if (breaks == 'at once'
                and len([r for r in server.requests if r.headers.get('last-event-id')]) < 3):
                return b''
            return events(event(answer_of(calls[0], 'the rest'), 'e9'))
        return initialized(request)
    server = hostile_http(answer)
    link = host.connect(url=server.url, known=LEGACY)
    assert link.text('now') == 'the rest'
    assert len(calls) == 1
    assert link.wait('notified')['method'] == 'notifications/a'


def test_a_call_goes_out_once(bad):
    """Also where the connection, which others have used before, ends without an answer."""
    link = bad(lambda r: None)
    inner = link.server.answer

    def answer(request):
        got = inner(request)
        return [got.replace(b'Connection: close\r\n', b''), KEEP] if got else None
    link.server.answer = answer
    for _ in range(3):
        assert link.text('x') == 'x'
    assert link.call('now')['error'] == 'transport_failed'
    assert link.server.methods().count('tools/call') == 4
    assert link.text('x') == 'x'


def test_a_call_that_can_not_be_taken_up(host, hostile_http):
    def answer(request):
        if called(request):
            return events('id: 1\nretry: 10\ndata:\n\n')
        return initialized(request)
    link = host.connect(url=hostile_http(answer).url, known=LEGACY)
    done = link.call('now')
    assert (done['error'] == 'transport_failed' and 'may have been carried out'
            in done['message']), done


def test_polling(host, server):
    """The everything-server disconnects a call in its middle (2025-11-25)."""
    link = host.connect(url=server(EVERYTHING, '127.0.0.1:0').url, version='2025-11-25')
    assert 'result' in link.call('test_reconnection')


def test_the_stream_of_what_belongs_to_no_request(host, hostile_http):
    """It is opened after initialized, and again when it breaks off."""
    streams = []

    def answer(request):
        if request.method != 'GET':
            return initialized(request)
        streams.append(request.headers.get('last-event-id'))
        n = len(streams)
        return events(f'retry: 10\n{event({"jsonrpc": "2.0", "method": f"notifications/n{n}"}, n)}')
    server = hostile_http(answer)
    link = host.connect(url=server.url, known=LEGACY)
    for n in (1, 2, 3):
        link.wait('notified', method=f'notifications/n{n}')
    assert streams[:3] == [None, '1', '2']
    assert server.methods()[:3] == ['initialize', 'notifications/initialized', 'GET']


def test_servers_without_such_a_stream_are_asked_once(host, hostile_http):
    """None of them is asked again when another try would be due."""
    def serve(answer):
        return hostile_http(lambda r: answer if r.method == 'GET' else initialized(r)
                            or result(r, text('well')))
    servers = [serve(answer) for answer in (
        reply('405 Method Not Allowed'), reply('404 Not Found'),
        reply(body='<p>', kind='text/html'), reply(body='{}'),
        reply('400 Bad Request'), reply('204 No Content', kind=None))]
    again = hostile_http(lambda r: events() if r.method == 'GET' else initialized(r))
    for server in [*servers, again]:
        host.connect(server.url, url=server.url, known=LEGACY)
    until(lambda: again.methods().count('GET') == 2, what='a stream that is taken up')
    for server in servers:
        assert server.methods().count('GET') == 1
        assert host.links[server.url].text('x') == 'well'


def test_headers_of_a_legacy_session(host, hostile_http):
    sessions = Sessions()
    server = hostile_http(sessions)
    link = host.connect(url=server.url, known=LEGACY)
    link.text('a')
    link.close()
    assert server.methods()[-1] == 'DELETE'
    first, *rest = server.requests
    assert 'mcp-session-id' not in first.headers and 'mcp-protocol-version' not in first.headers
    for request in rest:
        assert (request.headers['mcp-session-id'] == 's1'
                and request.headers['mcp-protocol-version'] == '2025-11-25')
        assert 'mcp-method' not in request.headers
    posts = [r for r in server.requests if r.method == 'POST']
    assert all(r.headers['accept'] == 'application/json, text/event-stream' for r in posts)
    assert all(r.headers['content-type'] == 'application/json' for r in posts)


# ---- modern --------------------------------------------------------------------------------------

def test_headers_of_a_modern_request(host, hostile_http):
    server = hostile_http(modern)
    link = host.connect(url=server.url, known=MODERN)
    link.text('näme')
    link.text('plain name')
    for request in server.requests:
        assert request.headers['mcp-protocol-version'] == '2026-07-28'
        assert request.headers['mcp-method'] == request.message['method']
        assert 'mcp-session-id' not in request.headers
    assert [r.headers.get('mcp-name') for r in server.requests] == [None, '=?base64?bsOkbWU=?=',
                                                                    'plain name']


@pytest.mark.parametrize('how', ['cancelled', 'timed out'])
def test_a_request_that_is_not_wanted_closes_its_connection(host, hostile_http, how):
    gone = []

    def answer(request):
        if called(request) and request.message['params']['name'] == 'now':
            return wait()
        return modern(request)

    def wait():
        yield events(': begun\n\n')
        try:
            for _ in range(1000):
                time.sleep(0.01)
                yield b': still\n'
        finally:
            gone.append(1)
    server = hostile_http(answer)
    link = host.connect(url=server.url, known=MODERN)
    request = link.start('call', tool='now', arguments={},
                         **({'timeout_ms': 300} if how == 'timed out' else {}))
    until(lambda: called(server.requests[-1]), what='the call')
    if how == 'cancelled':
        link.send('cancel', id=request)
    else:
        assert link.done(request)['error'] == 'timeout'
    until(lambda: gone, what='the end of the connection')
    assert 'notifications/cancelled' not in server.methods()


def test_a_modern_stream_that_breaks_off_is_lost(host, hostile_http):
    def answer(request):
        if called(request):
            return events('id: 1\nretry: 1\ndata:\n\n')
        return modern(request)
    server = hostile_http(answer)
    link = host.connect(url=server.url, known=MODERN)
    assert link.call('now')['error'] == 'transport_failed'
    assert server.methods() == ['server/discover', 'tools/call']


def test_many_calls_at_once(host, everything):
    """More than any pool of connections has, each with an answer of its own."""
    link = host.connect(url=everything.url)
    requests = [link.start('call', tool='test_simple_text', arguments={}) for _ in range(256)]
    for request in requests:
        assert 'result' in link.done(request)
    assert 'error' not in link.call('test_simple_text')


# ---- HTTP+SSE ------------------------------------------------------------------------------------

def test_the_end_of_the_stream_is_the_end(host, server):
    peer = server(EVERYTHING, '127.0.0.1:0')
    link = host.connect(url=peer.url.replace('/mcp', '/sse'), version='2024-11-05')
    peer.stop(signal.SIGKILL)
    assert link.over()['error'] == 'transport_failed'


@pytest.fixture
def old(host, hostile_http, everything):
    """A server of 2024-11-05 whose posts and stream are in the test's hands;
    and a good one beside it."""
    def start(post, say, **target):
        posted = []

        def answer(request):
            if request.method == 'GET':
                return stream()
            posted.append(request.message)
            return post(request) if called(request) else reply('202 Accepted', 'Accepted',
                                                               kind='text/plain')

        def stream():
            yield events('event: endpoint\ndata: /post\n\n')
            while not server.ended.is_set():
                message = posted.pop(0) if posted else None
                if message and message['method'] == 'initialize':
                    yield event({'jsonrpc': '2.0', 'id': message['id'], 'result': {
                        'protocolVersion': '2024-11-05', 'capabilities': {},
                        'serverInfo': {'name': 'x', 'version': '1'}}}).encode()
                elif message and message['method'] == 'tools/call':
                    yield from say(message)
                elif not message:
                    time.sleep(0.005)
        server = hostile_http(answer)
        host.connect('good', url=everything.url)
        return host.connect('old', url=server.url, known={'wire': 'sse', 'era': 'legacy'}, **target)
    yield start
    assert 'simple text' in host.links['good'].text('test_simple_text')


def accepted(_request):
    return reply('202 Accepted')


def answered(message, said='well'):
    return event({'jsonrpc': '2.0', 'id': message['id'],
                  'result': {'content': [{'type': 'text', 'text': said}]}}).encode()


def test_events_that_are_no_messages(old):
    link = old(accepted, lambda m: [b'data: {"jsonrpc"\n\ndata: []\n\n',
                                    b'event: endpoint\ndata: http://169.254.169.254/\n\n',
                                    b'event: other\ndata: x\n\n', b': comment\n\n',
                                    b'data: \xff\xfe\n\n', answered(m)])
    assert link.text('now') == 'well'
    assert link.text('x') == 'well'
    assert link.about()['garbage'] >= 2


@pytest.mark.parametrize('status, code',
                         [('500 Oops', 'transport_failed'), ('404 Not Found', 'transport_failed'),
                          ('401 Unauthorized', 'login_required'),
                          ('307 Elsewhere', 'transport_failed')])
def test_a_post_that_is_refused(old, status, code):
    link = old(lambda r: reply(status, Location='http://169.254.169.254/'), lambda m: [])
    assert link.call('now')['error'] == code
    assert link.about()['pending'] == 0


def test_posts_whose_answers_never_end(old):
    ended = []

    def act(_request):
        yield b'HTTP/1.1 202 Accepted\r\nContent-Type: text/plain\r\n\r\n'
        try:
            for _ in range(2000):
                time.sleep(0.01)
                yield b'x'
        finally:
            ended.append(1)
    link = old(act, lambda m: [answered(m)])
    for _ in range(3):
        assert link.text('now') == 'well'
    until(lambda: len(ended) == 3, what='the ends of the connections')


def test_an_answer_that_is_there_before_its_post_is_accepted(old):
    def slow(_request):
        time.sleep(0.3)
        return reply('202 Accepted')
    link = old(slow, lambda m: [answered(m)])
    assert link.text('now') == 'well'
    assert link.text('x') == 'well'


def test_an_event_over_the_bound(old, host):
    """The connection can't be read on, and it is the session."""
    link = old(accepted, lambda m: [b'data: ' + b'x' * (8 * MIB) + b'\n\n'], message_max=MIB)
    assert link.call('now')['error'] in ('too_large', 'transport_failed')
    assert link.over()['error'] == 'too_large'
    assert host.peak() < 64 * MIB
