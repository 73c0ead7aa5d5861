"""What a server is, found out: all revisions over all wires, and servers that are hard to tell."""

import sys
import time

import pytest

from hostile_http import error, event, events, initialized, reply, result
from links import EVERYTHING, HERE

HOSTILE = [sys.executable, f'{HERE}/hostile.py']
LEGACY = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']
MODERN = '2026-07-28'


def use(link):
    """Something of all that a server has."""
    tools = {tool['name'] for tool in link.list('tools')}
    assert 'test_simple_text' in tools
    assert 'simple text' in link.text('test_simple_text')
    assert len(link.list('resources')) > 1 and len(link.list('resourceTemplates')) > 0
    assert 'test_simple_prompt' in [prompt['name'] for prompt in link.list('prompts')]
    assert link.request('resources/read', {'uri': 'test://static-text'})['result']['contents']
    assert link.request('prompts/get', {'name': 'test_simple_prompt'})['result']['messages']
    assert 'fault' in link.request('tools/call', {'name': 'no such tool'})
    assert link.text('test_sampling', {'prompt': 'x'}).find('sampled') >= 0
    assert link.about()['strays'] == 0


@pytest.mark.parametrize('version', [*LEGACY, MODERN])
def test_everything_over_stdio(host, version):
    link = host.connect(argv=[EVERYTHING], version=version)
    assert link.found == {'event': 'ready', 'link': 'link', 'version': version, 'wire': 'stdio',
                          'era': 'modern' if version == MODERN else 'legacy'}
    use(link)
    link.close()


@pytest.mark.parametrize('version', [*LEGACY[1:], MODERN])
def test_everything_over_http(host, everything, version):
    link = host.connect(url=everything.url, version=version)
    assert (link.found['version'], link.found['wire']) == (version, 'http')
    use(link)
    link.close()


@pytest.mark.parametrize('version', LEGACY)
def test_everything_over_sse(host, everything, version):
    link = host.connect(url=everything.url.replace('/mcp', '/sse'), version=version)
    assert (link.found['version'], link.found['wire']) == (version, 'sse')
    use(link)
    link.close()


@pytest.mark.parametrize('known', [None, {'wire': 'stdio', 'era': 'modern'},
                                   {'wire': 'stdio', 'era': 'legacy'},
                                   {'wire': 'http', 'era': 'modern'}, {'wire': 'stdio'}])
def test_both_eras_are_there(host, known):
    """What is known is taken; nothing says modern."""
    link = host.connect(argv=[EVERYTHING], **({'known': known} if known else {}))
    assert link.found['era'] == ('legacy' if known == {'wire': 'stdio', 'era': 'legacy'}
                                 else 'modern')
    link.close()


@pytest.mark.parametrize('how', ['garbage', 'at-once-exit', 'at-once-silent', 'at-once-slow'])
@pytest.mark.parametrize('era', ['legacy', 'modern'])
@pytest.mark.parametrize('known', [None, 'legacy', 'modern'])
def test_programs_that_are_hard_to_tell(host, how, era, known):
    """Some exit at what they do not know, some are silent, some take their time. A modern one that
    is silent when it is asked as a legacy one would be has to be asked as what it is for as long as
    it needs to start."""
    more = {'known': {'wire': 'stdio', 'era': known}} if known else {}
    patient = era == 'modern' and how == 'at-once-silent'
    link = host.connect(argv=[*HOSTILE, how, era], probe_ms=8000 if patient else 400,
                        start_ms=40000, **more)
    assert link.found['era'] == era
    assert link.text('hello') == 'hello'
    link.close()


def test_a_server_that_starts_slower_than_the_probe_waits(host):
    link = host.connect(argv=[*HOSTILE, 'at-once-slow', 'modern'], probe_ms=100)
    assert link.found['era'] == 'modern'
    link.close()


@pytest.mark.parametrize('how, code, start_ms', [('at-once-die', 'transport_failed', 15000),
                                                 ('at-once-mute', 'timeout', 500),
                                                 ('at-once-chatter', 'timeout', 500)])
def test_programs_that_are_none(host, how, code, start_ms):
    link = host.connect(ready=False, argv=[*HOSTILE, how], probe_ms=100, start_ms=start_ms,
                        stop_ms=100)
    assert link.over()['error'] == code


def test_a_program_that_is_not_there(host):
    assert host.connect(ready=False,
                        argv=['/no/such/program']).over()['error'] == 'command_not_found'
    assert host.connect('b', ready=False, argv=[HERE]).over()['error'] == 'command_not_executable'
    assert host.connect('c', ready=False, argv=['/bin/true']).over()['error'] == 'transport_failed'
    assert host.connect('d', ready=False).over()['error'] == 'invalid_arguments'
    assert host.connect('e', ready=False, url='ftp://h/').over()['error'] == 'invalid_arguments'
    assert host.connect('f', ready=False, url='http://h/',
                        version='1999').over()['error'] == 'invalid_arguments'


# ---- HTTP ----------------------------------------------------------------------------------------

def modern(request):
    """A modern server with a tool of any name."""
    method = (request.message or {}).get('method')
    if method == 'server/discover':
        return result(request, {'resultType': 'complete', 'supportedVersions': [MODERN],
                                'capabilities': {'tools': {}},
                                'ttlMs': 0, 'cacheScope': 'private'})
    if method == 'tools/call':
        return result(request, {'resultType': 'complete',
                                'content': [{'type': 'text', 'text': 'modern'}]})
    return error(request, -32601, status='404 Not Found')


def legacy(request):
    known = initialized(request)
    return known or result(request, {'content': [{'type': 'text', 'text': 'legacy'}]})


@pytest.mark.parametrize('known', [None, 'modern', 'legacy', 'sse'])
def test_a_modern_server(host, hostile_http, known):
    wire = {'sse': {'wire': 'sse', 'era': 'legacy'}}.get(known, {'wire': 'http', 'era': known})
    server = hostile_http(modern)
    link = host.connect(url=server.url, probe_ms=15000, **({'known': wire} if known else {}))
    assert (link.found['wire'], link.found['era']) == ('http', 'modern')
    assert link.text('x') == 'modern'
    if known in (None, 'modern'):
        assert server.methods() == ['server/discover', 'tools/call']


@pytest.mark.parametrize('refusal', [
    lambda r: error(r, -32601, status='400 Bad Request'), lambda r: error(r, -32601),
    lambda r: reply('404 Not Found'), lambda r: error(r, -32000, status='400 Bad Request'),
    lambda r: reply('400 Bad Request', 'what?', kind='text/plain'),
    lambda r: reply('406 Not Acceptable'),
    lambda r: reply('500 Internal Server Error', 'oops', kind='text/html'),
    lambda r: reply('202 Accepted'), lambda r: reply(body='{', kind='application/json'),
    lambda r: reply(body='<p>', kind='text/html'), lambda r: events(': no\n\n'),
    lambda r: result(r, {}), lambda r: result(r, {'supportedVersions': ['1999-01-01']}),
], ids=range(13))
@pytest.mark.parametrize('known', [None, 'modern', 'legacy'])
def test_a_legacy_server(host, hostile_http, refusal, known):
    """However it refuses what it does not know."""
    def answer(request):
        if (request.message or {}).get('method') == 'server/discover':
            return refusal(request)
        return legacy(request)
    server = hostile_http(answer)
    link = host.connect(url=server.url,
                        **({'known': {'wire': 'http', 'era': known}} if known else {}))
    assert (link.found['wire'], link.found['era']) == ('http', 'legacy')
    assert link.text('x') == 'legacy'


def silent_at(n, answer):
    """A server that says nothing to the first n server/discover."""
    asked = []

    def act(request):
        if (request.message or {}).get('method') == 'server/discover':
            asked.append(request)
            if len(asked) <= n:
                return mute()
        return answer(request)

    def mute():
        time.sleep(3)
        yield b''
    return act


@pytest.mark.parametrize('known', [None, 'modern'])
def test_a_legacy_server_that_is_silent_at_what_it_does_not_know(host, hostile_http, known):
    """The rest of the ladder is tried long before the whole time is over."""
    server = hostile_http(silent_at(1, legacy))
    link = host.connect(url=server.url, probe_ms=200,
                        **({'known': {'wire': 'http', 'era': known}} if known else {}))
    assert (link.found['wire'], link.found['era']) == ('http', 'legacy')
    assert server.methods()[:2] == ['server/discover', 'initialize']


@pytest.mark.parametrize('refusal', ['400 Bad Request', '500 Internal Server Error'])
def test_a_modern_server_that_is_slow_at_first(host, hostile_http, refusal):
    """It is asked once more, when it has turned out to be nothing else."""
    def answer(request):
        if request.message and 'initialize' in request.message['method']:
            return error(request, -32601, status=refusal)
        return modern(request) if request.message else reply('405 Method Not Allowed')
    server = hostile_http(silent_at(1, answer))
    link = host.connect(url=server.url, probe_ms=200)
    assert link.found['era'] == 'modern'
    assert server.methods().count('server/discover') == 2


def test_a_server_that_is_silent_at_everything(host, hostile_http):
    over = host.connect(url=hostile_http(lambda r: time.sleep(2)).url, ready=False, probe_ms=100,
                        start_ms=600).over()
    assert over['error'] == 'timeout', over


@pytest.mark.parametrize('code, supported, era', [
    (-32022, [MODERN], 'modern'), (-32022, ['2027-01-01', '2025-11-25'], 'legacy'),
    (-32022, ['2027-01-01'], None),
    (-32020, None, None), (-32021, None, None)])
def test_a_modern_server_that_refuses(host, hostile_http, code, supported, era):
    """Only a refusal that names a legacy revision leads to initialize."""
    def answer(request):
        first = ((request.message or {}).get('method') == 'server/discover'
                 and len(server.requests) == 1)
        if first or (era is None and request.message):
            return reply('400 Bad Request',
                         {'jsonrpc': '2.0', 'id': request.message['id'], 'error': {
                             'code': code, 'message': 'no',
                             'data': {'supported': supported, 'requested': MODERN}}})
        return legacy(request) if era == 'legacy' else modern(request)
    server = hostile_http(answer)
    link = host.connect(url=server.url, ready=False, probe_ms=15000)
    if era:
        assert link.ready()['era'] == era
    else:
        link.over()
        assert 'initialize' not in server.methods()


@pytest.mark.parametrize('status', ['400 Bad Request', '404 Not Found', '405 Method Not Allowed'])
@pytest.mark.parametrize('known', [None, 'sse', 'http'])
def test_a_server_of_2024(host, hostile_http, status, known):
    """GET gives an endpoint, which answers on the stream."""
    said = []

    def answer(request):
        if request.method == 'GET':
            return stream()
        if request.path == '/mcp':
            return reply(status, 'no', kind='text/plain')
        said.append(request.message)
        return reply('202 Accepted', 'Accepted', kind='text/plain')

    def stream():
        yield events('event: endpoint\ndata: /post?s=1\n\n')
        while not server.ended.is_set():
            if not said:
                time.sleep(0.005)
                continue
            message = said.pop(0)
            if message['method'] == 'initialize':
                yield event({'jsonrpc': '2.0', 'id': message['id'], 'result': {
                    'protocolVersion': '2024-11-05', 'capabilities': {},
                    'serverInfo': {'name': 'x', 'version': '1'}}}).encode()
            elif 'id' in message:
                yield event({'jsonrpc': '2.0', 'id': message['id'], 'result': {
                    'content': [{'type': 'text', 'text': 'old'}]}}).encode()
    server = hostile_http(answer)
    link = host.connect(url=server.url,
                        **({'known': {'wire': known, 'era': 'legacy'}} if known else {}))
    assert (link.found['wire'], link.found['version']) == ('sse', '2024-11-05')
    assert link.text('x') == 'old'
    if known == 'sse':
        assert server.methods()[0] == 'GET'


@pytest.mark.parametrize('endpoint, code', [('http://127.0.0.1:1/post', 'server_untrusted'),
                                            ('//example.com/post', 'server_untrusted'),
                                            ('ftp://x/', 'invalid_arguments'),
                                            ('a b', 'invalid_arguments')])
def test_an_endpoint_elsewhere(host, hostile_http, endpoint, code):
    def answer(request):
        if request.method == 'GET':
            return events(f'event: endpoint\ndata: {endpoint}\n\n')
        return reply('405 Method Not Allowed')
    link = host.connect(url=hostile_http(answer).url, ready=False,
                        known={'wire': 'sse', 'era': 'legacy'})
    link.over()
    link = host.connect('b', url=hostile_http(answer).url, ready=False)
    assert link.over()['error'] == code


@pytest.mark.parametrize('status, code, word', [
    ('401 Unauthorized', 'login_required', '401'), ('403 Forbidden', 'denied', '403'),
    ('404 Not Found', 'transport_failed', '404'),
    ('503 Service Unavailable', 'limit_exceeded', '503'),
    ('307 Temporary Redirect', 'transport_failed', 'redirect')])
def test_what_is_no_server(host, hostile_http, status, code, word):
    server = hostile_http(lambda r: reply(status,
                                          Location='http://169.254.169.254/latest/meta-data/'))
    over = host.connect(url=server.url, ready=False).over()
    assert over['error'] == code and word in over['message'], over


def test_nobody_listens(host):
    over = host.connect(url='http://127.0.0.1:1/mcp', ready=False).over()
    assert over['error'] == 'transport_failed'
