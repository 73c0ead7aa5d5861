"""Servers that depart from the letter of the protocol (lax.py), redirects, and what servers say
of their failures."""

import json
import sys

import pytest

from hostile_http import initialized, reply, result
from lax import BOM, ROWS, WELL, answer
from links import HERE
from test_eras import modern

LEGACY = {'wire': 'http', 'era': 'legacy'}


def served(hostile_http, row):
    how = ROWS[row]

    def serve(request):
        if request.method != 'POST':
            return reply('405 Method Not Allowed', kind=None)
        said = answer(request.message, row)
        if said is None:
            return reply('202 Accepted', kind=None)
        called = request.message['method'] == 'tools/call'
        http = how.http if called or not how.only_calls else {}
        return reply(body=how.first + said, **http)
    return hostile_http(serve)


@pytest.mark.parametrize('wire, row', [(wire, row) for row, how in ROWS.items()
                                       for wire in how.wires])
def test_a_departure(host, hostile_http, wire, row):
    target = ({'argv': [sys.executable, f'{HERE}/lax.py', row]} if wire == 'stdio'
              else {'url': served(hostile_http, row).url})
    link = host.connect(known={'wire': wire, 'era': 'legacy'}, **target)
    done = link.call('now', timeout_ms=2000 if ROWS[row].error == ('timeout', '') else 60000)
    if not ROWS[row].error:
        assert done['result']['content'] == WELL['content'], done
        assert [tool['name'] for tool in link.list('tools')] == ['now']
        if wire == 'stdio':
            link.wait("changed", 10)
    else:
        code, word = ROWS[row].error
        if wire == 'http' and code == 'timeout':  # there the end of the answer tells
            code, word = 'invalid_arguments', 'no answer'
        assert done['error'] == code and word in done['message'], done


def test_log_lines_on_standard_output_are_logged(host):
    """Whoever looks for why a server does not start finds them beside its standard error."""
    link = host.connect(argv=[sys.executable, f'{HERE}/lax.py', 'log lines'], stderr=True,
                        known={'wire': 'stdio', 'era': 'legacy'})
    assert link.wait('stderr')['text'] == '[INFO] starting {"a": 1}'
    assert link.wait('stderr')['text'] == '\n'
    assert link.wait('stderr')['text'] == 'listening on stdio'
    assert link.call('now')['result']['content'] == WELL['content']


# ---- redirects ----------------------------------------------------------------------------------

def redirecting(hostile_http, status, where, era, hops=1):
    """A server at /mcp/, whose /mcp redirects there; where is None: within itself."""
    def serve(request):
        if request.path != '/mcp/':
            n = int(request.path.rpartition('-')[2]) if '-' in request.path else 1
            return reply(status, kind=None, Location=where or (
                '/mcp/' if n >= hops else f'/mcp-{n + 1}'))
        if (request.message or {}).get('method') == 'tools/call':
            return result(request, {**WELL, 'resultType': 'complete'})
        return modern(request) if era == 'modern' else initialized(request)
    return hostile_http(serve)


@pytest.mark.parametrize('era', ['legacy', 'modern'])
@pytest.mark.parametrize('status', ['307 Temporary Redirect', '308 Permanent Redirect'])
def test_a_redirect_within_the_server(host, hostile_http, status, era):
    server = redirecting(hostile_http, status, None, era, hops=3)
    link = host.connect(url=server.url, known={'wire': 'http', 'era': era},
                        headers=['X-Key: k'])
    assert link.call('now')['result']['content'] == WELL['content']
    sent = [r for r in server.requests if (r.message or {}).get('method') == 'tools/call']
    assert [r.path for r in sent] == ['/mcp', '/mcp-2', '/mcp-3', '/mcp/']
    assert len({(r.method, r.body, json.dumps({k: v for k, v in r.headers.items()}))
                for r in sent}) == 1


@pytest.mark.parametrize('status, where, word', [
    ('307 x', 'http://169.254.169.254/latest/', 'http://169.254.169.254/latest/'),
    ('308 x', 'https://127.0.0.1/mcp', 'https://127.0.0.1/mcp'),
    ('302 Found', '/mcp/', 'GET'),
    ('307 x', 'file:///etc/passwd', 'file:///etc/passwd'),
    ('307 x', '/mcp', 'redirect number 6'),
    ('307 x', '/mcp/\x1b[31m' + 'x' * 9000, 'redirect'),
    ('303 See Other', '/login', 'GET')])
def test_a_redirect_that_is_not_followed(host, hostile_http, status, where, word):
    server = redirecting(hostile_http, status, where, 'legacy')
    over = host.connect(url=server.url, known=LEGACY, ready=False).over()
    assert over['error'] == 'transport_failed' and word in over['message'], over
    assert '\x1b' not in over['message']
    assert len(server.requests) < 40


# ---- what is said of a failure ------------------------------------------------------------------

@pytest.mark.parametrize('status, body, code, word', [
    ('422 Unprocessable', {'detail': [{'type': 'missing', 'loc': ['body', 'name'],
                                       'msg': 'field required'}]}, 'transport_failed',
     'field required'),
    ('403 Forbidden', {'error': 'project is archived'}, 'denied', 'project is archived'),
    ('400 Bad Request', {'error': {'message': 'no such board', 'x': 1}}, 'transport_failed',
     'no such board'),
    ('500 Oops', {'title': 'Database is locked'}, 'transport_failed', 'Database is locked'),
    ('401 Unauthorized', {'error': 'invalid_token', 'error_description': 'it has expired'},
     'login_required', 'it has expired'),
    ('429 Slow Down', 'try again\r\nin \x1b[1m 40 s', 'limit_exceeded', 'try again'),
    ('503 x', b'\xff\xfe quota', 'limit_exceeded', 'quota'),
    ('500 Oops', 'x' * 100000, 'transport_failed', 'xxxx'),
    ('502 Bad Gateway', '<html><title>nginx</title>', 'transport_failed', '502'),
    ('500 Oops', '{}', 'transport_failed', '500')])
@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_what_a_server_says_of_a_failure(host, hostile_http, status, body, code, word, era):
    def serve(request):
        if (request.message or {}).get('method') == 'tools/call':
            return reply(status, body, kind='text/plain' if not isinstance(body, dict)
                         else 'application/json')
        return modern(request) if era == 'modern' else initialized(request)
    link = host.connect(url=hostile_http(serve).url, known={'wire': 'http', 'era': era})
    done = link.call('now')
    assert done['error'] == code and word in done['message'], done
    assert '\x1b' not in done['message'] and '<' not in done['message']


def test_what_a_server_of_2024_says_of_a_failure(host, hostile_http):
    server = hostile_http(lambda r: reply('403 Forbidden', {'error': 'project is archived'}))
    over = host.connect(url=server.url, known={'wire': 'sse', 'era': 'legacy'}, ready=False).over()
    assert 'project is archived' in over['message'], over


def test_a_byte_order_mark_is_skipped_once(host, hostile_http):
    def serve(request):
        if (request.message or {}).get('method') == 'tools/call':
            return reply(body=BOM * 2 + json.dumps({'jsonrpc': '2.0', 'id': request.message['id'],
                                                    'result': WELL}).encode())
        return initialized(request)
    link = host.connect(url=hostile_http(serve).url, known=LEGACY)
    assert link.call('now')['error'] == 'invalid_arguments'
