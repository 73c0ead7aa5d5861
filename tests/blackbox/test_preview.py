"""Previews: links for people to servers in sandboxes, at a door and under names of their own."""

import json
from urllib.parse import urlsplit

import pytest

import host
from client import until
from door import Wire, request
from rest import Failed, Rest, b64
from serving import serve
from test_door import frame
from test_expose import App, heard

PORT = 8000


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    with Rest(me, tmp_path_factory.mktemp('preview'), '--listen', '127.0.0.1:0',
              '--preview', '127.0.0.1:0', '--pool', '1') as shared:
        yield shared
    before.check()


@pytest.fixture(scope='module')
def app(hub):
    made = App(hub)
    yield made
    hub.delete(made.id)


class Browser:
    """Follows the link once and keeps its cookie, as browsers do."""

    def __init__(self, url):
        parts = urlsplit(url)
        self.host, self.port, self.query = parts.netloc, parts.port, parts.query
        self.cookies = []
        assert (parts.scheme == 'http' and parts.path == '/'
                and parts.hostname.endswith('.localhost'))

    def raw(self, path='/', method='GET', *, named=None, fields=(), **options):
        with Wire(('127.0.0.1', self.port)) as wire:
            cookies = [f'Cookie: {"; ".join(self.cookies)}'] if self.cookies else []
            return wire.ask(request(method, path, host=named or self.host, token=None,
                                    fields=[*cookies, *fields], **options), method)

    def enter(self, path='/'):
        reply = self.raw(f'{path}?{self.query}')
        assert (reply.status == 303 and reply.get('Referrer-Policy') == 'no-referrer'
                and reply.get('Cache-Control') == 'no-store'), reply
        cookie, *attributes = reply.get('Set-Cookie').split('; ')
        assert ({'Path=/', 'HttpOnly', 'SameSite=Lax'} <= set(attributes)
                and not any(a.startswith('Domain') for a in attributes))
        self.cookies = [cookie]
        return reply.get('Location')

    def told(self, path='/', *args, **options):
        reply = self.raw(path, *args, **options)
        assert reply.status == 200, reply
        return json.loads(reply.body)


def link(hub, sandbox, port=PORT, **more):
    answer = hub.post('/v1/preview', sandbox=sandbox, port=port, **more)
    assert set(answer) == {'url', 'expires_unix'}
    return answer['url']


@pytest.fixture
def page(hub, app):
    browser = Browser(link(hub, app.id))
    assert browser.enter() == '/'
    return browser


def test_a_page(app, page):
    told = page.told('/a/b?x=1&y=%20+z')
    assert told['path'] == '/a/b?x=1&y=%20+z' and told['from'] == '127.0.0.1'
    assert page.told('/', 'POST', body='hello')['body'] == 'hello'


def test_the_token_goes(hub, app):
    """Out of the address, with all else of that kept."""
    browser = Browser(link(hub, app.id))
    token = browser.query
    browser.query = f'a=1&{token}&b=%2F'
    assert browser.enter('/x/y') == '/x/y?a=1&b=%2F'
    fields = json.dumps(browser.told('/', fields=['Referer: http://x/?' + token]))
    assert token.partition('=')[2] not in fields  # nor is the cookie shown


def test_cookies_of_its_own(hub, page):
    """The server sees those of its name, and not ours, and can't set ours,
    nor any for other names."""
    page.cookies = ['mine=1', *page.cookies, 'other=2']
    assert dict(page.told('/')['fields'])['cookie'] == 'mine=1; other=2'
    box = hub.create()
    said = [b'Set-Cookie: a=b; Path=/; Domain=localhost; HttpOnly', b'Set-Cookie: holt_preview=x',
            b'Set-Cookie: holt_preview =x', b'Set-Cookie: =holt_preview=x',
            b'Set-Cookie: c=d; domain =.example', b'Clear-Site-Data: "*"',
            b'Access-Control-Allow-Origin: *', b'Content-Security-Policy: default-src x',
            b'Location: http://localhost:9000/there']
    hub.post('/v1/files/write', sandbox=box, path='said', encoding='base64',
             content=b64(b'HTTP/1.1 302 F\r\nContent-Length: 0\r\n' + b'\r\n'.join(said)
                         + b'\r\n\r\n'))
    serve(hub, box, 'say', 9000, 'said')
    other = Browser(link(hub, box, 9000))
    other.enter()
    reply = other.raw()
    assert reply.status == 302 and reply.all('Set-Cookie') == ['a=b; Path=/; HttpOnly', 'c=d']
    assert reply.get('Clear-Site-Data') is None and reply.get('Access-Control-Allow-Origin') is None
    assert (reply.get('Content-Security-Policy') == 'default-src x' and reply.get('Location')
            == '/there')
    hub.delete(box)


@pytest.mark.parametrize('change', [
    lambda b: setattr(b, 'cookies', []), lambda b: setattr(b, 'cookies', ['holt_preview=']),
    lambda b: setattr(b, 'cookies', ['holt_preview=x']),
    lambda b: setattr(b, 'cookies', [b.cookies[0][:-1]]),
    lambda b: setattr(b, 'cookies', [b.cookies[0] + 'A'])], ids=range(5))
def test_without_a_right(page, change):
    change(page)
    reply = page.raw()
    error = json.loads(reply.body)['error']
    # no word of the hub's token, which would open nothing here
    assert reply.status == 401 and error['code'] == 'unauthorized'
    assert 'holt preview' in error['remediation'] and 'TOKEN' not in error['remediation']


def test_a_cookie_of_another_page_is_in_nobodys_way(page):
    page.cookies = ['holt_preview=x', *page.cookies, 'holt_preview=y']
    assert page.told('/')['method'] == 'GET'


def test_names_are_apart(hub, app, page):
    """A right is one for one port of one sandbox, under its name."""
    other = hub.create()
    urls = [link(hub, app.id), link(hub, app.id, 8001), link(hub, other)]
    names = [urlsplit(url).hostname for url in urls]
    assert len(set(names)) == 3 and urlsplit(urls[0]).netloc == page.host
    for url in urls[1:]:
        assert page.raw(named=urlsplit(url).netloc).status == 401
        # the server's own, as the cookie is right
        assert page.raw('/?' + urlsplit(url).query, named=page.host).status == 200
        page_without = Browser(urls[0])
        assert page_without.raw('/?' + urlsplit(url).query).status == 401
    hub.delete(other)


@pytest.mark.parametrize('name', ['localhost', '127.0.0.1', 'evil.example', 'a.evil.example',
                                  'a.b.localhost', '.localhost'])
def test_other_names(page, name):
    reply = page.raw(named=f'{name}:{page.port}')
    assert reply.status in (400, 401, 403), reply


def test_other_pages(page):
    for origin in ('http://evil.example', 'null', f'http://localhost:{page.port}',
                   f'http://8000-0.localhost:{page.port}'):
        assert page.raw('/', 'POST', body='x', fields=[f'Origin: {origin}']).status == 403
    # what browsers ask for on behalf of pages; people may go wherever they like
    for site in ('same-site', 'cross-site'):
        for mode, dest, status in (('no-cors', 'script', 403), ('navigate', 'iframe', 403),
                                   ('navigate', 'document', 200)):
            assert page.raw(fields=[f'Sec-Fetch-Site: {site}', f'Sec-Fetch-Mode: {mode}',
                                    f'Sec-Fetch-Dest: {dest}']).status == status
    for site in ('same-origin', 'none'):
        assert page.told(fields=[f'Sec-Fetch-Site: {site}', 'Sec-Fetch-Mode: no-cors',
                                 'Sec-Fetch-Dest: script'])['method'] == 'GET'
    told = page.told('/', 'POST', body='x', fields=[f'Origin: http://{page.host}'])
    assert dict(told['fields'])['origin'] == f'http://localhost:{PORT}'


def test_the_doors_are_apart(hub, page):
    """The hub's token opens nothing here, nothing of the hub is here, and a preview's names and
    cookies are nothing there."""
    assert page.raw('/', fields=[f'Authorization: Bearer {hub.token}']).status == 200
    for path in ('/healthz', '/version', '/v1/health', '/v1/sandboxes', '/mcp',
                 '/sandbox.v1.Sandbox/Exec'):
        assert page.told(path)['path'] == path  # the server's in the sandbox
        cookies, page.cookies = page.cookies, []
        assert page.raw(path, fields=[f'Authorization: Bearer {hub.token}']).status == 401
        page.cookies = cookies
    for options in ({'host': page.host}, {'token': None, 'fields': [f'Cookie: {page.cookies[0]}']},
                    {'fields': [f'Origin: http://{page.host}']}):
        assert hub.raw('GET', '/v1/sandboxes', **options).status in (401, 403)
    assert hub.raw('GET', '/v1/sandboxes').status == 200  # the control


def test_a_token_of_the_hub_stays_here(hub, app, page):
    """In whatever field somebody sends one, a server inside never has it."""
    key = hub.post('/v1/keys', name='shown', scopes=['read'])['token']
    tokens = [hub.token, key]
    for token in tokens:
        sent = [f'Authorization: Bearer {token}', f'X-Token: {token}', f'X-More: bearer {token}',
                'X-Mine: 1']
        for told in (page.told('/', fields=sent), app.told('/', fields=sent[1:])):
            fields = dict(told['fields'])
            assert fields['x-mine'] == '1' and token not in json.dumps(fields), fields
    # what is none goes over
    other = f'Bearer {key[:-1]}{"0" if key[-1] != "0" else "1"}'
    fields = dict(page.told('/', fields=[f'Authorization: {other}'])['fields'])
    assert fields['authorization'] == other
    hub.call('DELETE', '/v1/keys/shown')


def test_no_way_to_another_server(hub, app):
    """A path with two slashes would be a place elsewhere, were it answered by its name."""
    browser = Browser(link(hub, app.id))
    assert browser.raw(f'//evil.example/?{browser.query}').status == 404


def test_its_time(hub, app):
    for seconds in (1, 5, 25):  # a busy machine needs some of it
        url = link(hub, app.id, ttl_seconds=seconds)
        browser = Browser(url)
        if (reply := browser.raw('/?' + browser.query)).status == 303:
            break
    browser.cookies = [reply.get('Set-Cookie').partition(';')[0]]

    def over():
        status = browser.raw().status
        assert status in (200, 401)
        return status == 401
    until(over, what='its time is over')
    assert Browser(url).raw('/?' + urlsplit(url).query).status == 401


def test_its_sandbox(hub):
    """A link is to that sandbox, and to none that comes after it under its name."""
    app = App(hub)
    page = Browser(link(hub, app.id))
    page.enter()
    hub.post(f'/v1/sandboxes/{app.id}/stop')
    assert page.raw().status in (404, 409, 410)
    hub.post('/v1/resume', sandbox=app.id)
    assert page.raw().status == 401
    again = Browser(link(hub, app.id))
    assert again.host != page.host
    hub.delete(app.id)
    assert again.enter() and again.raw().status == 404


def test_a_websocket(hub, page):
    def upgrade(*fields):
        wire = Wire(('127.0.0.1', page.port))
        wire.send(request('GET', '/ws', host=page.host, token=None, fields=[
            'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13',
            'Sec-WebSocket-Key: ' + b64(bytes(16)), *fields]))
        return wire, wire.reply()
    cookie = f'Cookie: {page.cookies[0]}'
    wire, reply = upgrade(cookie, f'Origin: http://{page.host}')
    with wire:
        assert reply.status == 101
        wire.send(frame(1, b'hello'))
        assert heard(wire) == (0x81, b'hello')
    for fields in ([cookie, 'Origin: http://evil.example'], [f'Origin: http://{page.host}']):
        wire, reply = upgrade(*fields)
        wire.close()
        assert reply.status in (401, 403)


def test_off(me, tmp_path):
    """Where nobody asked for previews there are none."""
    hub = Rest(me, tmp_path, '--listen', '127.0.0.1:0')
    made = hub.create()
    with pytest.raises(Failed) as failed:
        link(hub, made)
    assert (failed.value.status, failed.value.code) == (501, 'unsupported')
    assert hub.end() == 0
    hub.kill()


@pytest.mark.parametrize('options, why', [
    (['--preview', '0.0.0.0:0'], 'loopback'),
    (['--preview', '127.0.0.1:0', '--preview-domain', 'No Domain'], 'preview'),
    (['--preview', '127.0.0.1:0', '--preview-domain', 'holt.test'], '--tls-cert'),
    (['--preview', '127.0.0.1:0', '--preview-domain', 'localhost.evil.test'], '--tls-cert'),
    (['--preview', '127.0.0.1:0', '--preview-domain', ''], 'preview'), (['--preview', 'x'], 'x')])
def test_wrong_options(me, tmp_path, options, why):
    done = me.run('serve', '--listen', '127.0.0.1:0', '--socket', 'none', *options,
                  env={'HOLT_HOME': str(tmp_path)}, timeout=60)
    assert done.returncode in (2, 125) and why.encode() in done.stderr, done
