"""Log-ins of browsers, as attacks: links that were used, pages of others, cookies without the key,
keys without the cookie. Each has its control: the same request as the page sends it."""

import contextlib
import json
import os
import re
import shutil
import signal

import pytest

import host
from client import until
from door import Wire, trusting
from rest import Rest
from test_door import KEY, certificate  # noqa: F401 (certificate is a fixture)


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    with Rest(me, tmp_path_factory.mktemp('login'), '--listen', '127.0.0.1:0',
              '--pool', '0') as shared:
        yield shared
    before.check()


def origin(hub, host='127.0.0.1'):
    return f'http://{host}:{hub.address[1]}'


def link(hub, **options):
    """The code of a new link."""
    status, answer = hub.asked('POST', '/session/links', {}, **options)
    assert status == 200 and answer['url'] == origin(hub) + answer['path'], answer
    return answer['path'].removeprefix('/login#')


class Browser:
    """Logged in by a link; sends what the page would."""

    def __init__(self, hub, code=None, **options):
        self.hub = hub
        self.reply = self.enter(code or link(hub), **options)
        if self.reply.status == 200:
            self.cookie, *self.attributes = self.reply.get('Set-Cookie').split('; ')
            self.key = json.loads(self.reply.body)['key']

    def fields(self, method, named=None, **other):
        own = {'Origin': origin(self.hub) if method not in ('GET', 'HEAD') else None,
               'Sec-Fetch-Site': 'same-origin', 'Cookie': getattr(self, 'cookie', None),
               'Holt-Page': getattr(self, 'key', None)}
        return [f'{k}: {v}' for k, v in {**own, **(named or {}), **other}.items()
                if v is not None]

    def raw(self, method, path, body=None, named=None, host=None, **other):
        text = self.hub.request(method, path, token=None, body=body,
                                host=host or f'127.0.0.1:{self.hub.address[1]}',
                                fields=self.fields(method, named, **other))
        with self.hub.wire() as wire:
            return wire.ask(text, method)

    def enter(self, code, **more):
        return self.raw('POST', '/session', json.dumps({'code': code}), **more)

    def asks(self, method='GET', path='/v1/sandboxes', *args, **more):
        return self.raw(method, path, *args, **more).status


class Restless(Rest):
    """One that is not asked over its port at its end, which speaks TLS."""

    def works(self):
        assert self.proc.poll() is None


def code_of(hub, token=None):
    """Of a new link, whatever the hub's port speaks."""
    with Wire(hub.paths[0]) as wire:
        reply = wire.ask(hub.request('POST', '/session/links', body='{}',
                                     **({'token': token} if token else {})), 'POST')
    return json.loads(reply.body)['path'].removeprefix('/login#')


class Secure(Browser):
    """The same over TLS."""

    def __init__(self, hub, trust, code=None, token=None):
        self.trust = trust
        super().__init__(hub, code or code_of(hub, token))

    def fields(self, method, named=None, **other):
        own = {} if method in ('GET', 'HEAD') else {
            'Origin': f'https://localhost:{self.hub.address[1]}'}
        return super().fields(method, {**own, **(named or {})}, **other)

    def raw(self, method, path, body=None, named=None, host=None, **other):
        text = self.hub.request(method, path, token=None, body=body,
                                host=host or f'localhost:{self.hub.address[1]}',
                                fields=self.fields(method, named, **other))
        with self.hub.wire(tls=self.trust) as wire:
            return wire.ask(text, method)


def secured(me, home, certificate):  # noqa: F811
    """Options of a hub with TLS."""
    key = os.path.join(home, 'key.pem')
    shutil.copy(certificate[1], key)
    os.chown(key, me.uid, me.uid)
    return ['--tls-cert', certificate[0], '--tls-key', key]


@pytest.fixture(scope='module')
def browser(hub):
    return Browser(hub)


def test_a_browser_logs_in(hub, browser):
    assert browser.reply.get('Cache-Control') == 'no-store'
    assert re.fullmatch(rf'holt_session_{hub.address[1]}=[0-9a-f]{{64}}', browser.cookie)
    assert {'Path=/', 'HttpOnly', 'SameSite=Strict'} <= set(browser.attributes)
    assert not any(a.startswith('Domain') for a in browser.attributes)
    assert browser.asks() == 200
    made = browser.raw('POST', '/v1/sandboxes', '{"template": "host"}')
    assert made.status == 200, made
    assert browser.asks('DELETE', f'/v1/sandboxes/{json.loads(made.body)["id"]}') == 200
    said = json.loads(browser.raw('GET', '/session').body)
    assert said['name'] == 'token' and said['current'] and 'admin' in said['scopes']


def test_log_ins_are_audited(hub):
    browser = Browser(hub)
    one = json.loads(browser.raw('GET', '/session').body)['id']
    assert browser.asks('DELETE', '/session') == 200
    done = hub.who.run('audit', 'tail', '-n', '500', '-o', 'json', env=hub.env, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(r['action'], r['effect'], r['who'], r['outcome']) for r in found
            if r.get('target') == one] == [('login.begin', 'administer', 'token', 'ok'),
                                           ('login.end', 'administer', 'token', 'ok')], found[-5:]
    assert 'login.link' in {r.get('action') for r in found}


def test_the_verb_prints_a_link(hub):
    done = hub.who.run('web', env=hub.env, text=True)
    assert done.returncode == 0 and done.stdout.startswith(origin(hub) + '/login#'), done
    own = Browser(hub, done.stdout.strip().partition('#')[2])
    assert own.asks() == 200
    assert json.loads(own.raw('GET', '/session').body)['name'] == 'local'
    # a browser is never the operator, who may give sandboxes the host's folders
    body = json.dumps({'volumes': [{'host': '/etc', 'inside': '/x'}]})
    assert own.asks('POST', '/v1/sandboxes', body) == 403


def test_a_link_works_once(hub):
    code = link(hub)
    assert Browser(hub, code).asks() == 200
    again = Browser(hub, code)
    assert again.reply.status == 401 and not again.reply.get('Set-Cookie')


def test_a_look_at_a_link(hub):
    """Tells the page whose it is, and nothing else; it can still be used."""
    token = hub.post('/v1/keys', name='giver', scopes=['read'])['token']
    code = link(hub, token=token)
    own = Browser(hub)
    look = json.dumps({'code': code, 'look': True})
    for _ in range(2):
        reply = own.raw('POST', '/session', look)
        assert (reply.status, json.loads(reply.body)) == (200, {'name': 'key:giver'})
        assert not reply.get('Set-Cookie')
    for named in ({'Origin': None}, {'Origin': 'http://evil.example'}):
        assert own.raw('POST', '/session', look, named=named).status == 403
    assert own.raw('POST', '/session', json.dumps({'code': '0' * 64, 'look': True})).status == 401
    entered = Browser(hub, code)
    assert entered.asks() == 200 and json.loads(entered.reply.body)['name'] == 'key:giver'
    assert own.raw('POST', '/session', look).status == 401
    hub.call('DELETE', '/v1/keys/giver')


@pytest.mark.parametrize('code', ['', 'x', '0' * 64, 'x' * 129, 'é'])
def test_wrong_codes(hub, code):
    link(hub)
    assert Browser(hub).enter(code).status in (400, 401)


def test_the_oldest_link_gives_way(hub):
    first = link(hub)
    others = [link(hub) for _ in range(16)]
    assert Browser(hub, first).reply.status == 401
    assert Browser(hub, others[0]).asks() == 200


def test_log_ins_share_what_their_key_has(me, tmp_path):
    """Many browsers of one key leave room to others, as one does."""
    with Rest(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0') as hub, \
            contextlib.ExitStack() as held:
        key = hub.post('/v1/keys', name='reader', scopes=['read'])['token']

        def opens(text):
            wire = held.enter_context(hub.wire())
            wire.send(text)
            return wire.head()[0] == 200
        n = 0
        for _ in range(5):
            one = Browser(hub, link(hub, token=key))
            while opens(hub.request('GET', '/api/events', token=None, fields=one.fields('GET'),
                                    host=f'127.0.0.1:{hub.address[1]}')):
                n += 1
        assert 600 < n <= 720, n  # 15/16 of 768 calls
        assert all(opens(hub.request('GET', '/api/events')) for _ in range(20))


def test_a_link_takes_a_token(hub, browser):
    assert hub.raw('POST', '/session/links', {}, token=None).status == 401
    assert browser.asks('POST', '/session/links', '{}') == 403
    # nobody gets a link by a page of another origin
    evil = hub.raw('POST', '/session/links', {}, fields=['Origin: http://evil.example'])
    assert evil.status == 403


FOREIGN = [{'Origin': 'http://evil.example'}, {'Origin': 'null'},
           {'Origin': 'http://127.0.0.1:1'}, {'Origin': 'https://127.0.0.1'},
           {'Sec-Fetch-Site': 'cross-site'}, {'Sec-Fetch-Site': 'same-site'},
           {'Sec-Fetch-Site': 'none'}]


@pytest.mark.parametrize('named', FOREIGN, ids=str)
@pytest.mark.parametrize('method, path, body', [
    ('GET', '/v1/sandboxes', None), ('POST', '/v1/sandboxes', '{}'), ('DELETE', '/session', None)])
def test_pages_of_others(browser, named, method, path, body):
    assert browser.asks(method, path, body, named=named) in (401, 403)
    assert browser.asks() == 200


@pytest.mark.parametrize('named', [
    *[{**n} for n in FOREIGN if 'Origin' in n], {'Origin': None}], ids=str)
def test_no_page_of_others_logs_in(hub, named):
    code = link(hub)
    assert Browser(hub, code, named=named).reply.status == 403
    assert Browser(hub, code).asks() == 200  # nor uses the link up


def test_a_change_needs_the_origin(browser):
    assert browser.asks('POST', '/v1/sandboxes', '{}', named={'Origin': None}) == 401
    assert browser.asks('GET', '/v1/sandboxes', named={'Sec-Fetch-Site': None}) == 200


def test_neither_alone(browser):
    other = Browser(browser.hub)
    for named in ({'Holt-Page': None}, {'Cookie': None}, {'Holt-Page': browser.key[:-1]},
                  {'Holt-Page': browser.key + '0'}, {'Holt-Page': ''},
                  {'Holt-Page': other.key}, {'Cookie': other.cookie},
                  {'Cookie': browser.cookie[:-1]}, {'Cookie': 'x' + browser.cookie},
                  {'Cookie': browser.cookie.replace('_session_', '_session_1')}):
        assert browser.asks(named=named) == 401, named
        assert browser.asks('POST', '/v1/sandboxes', '{}', named=named) == 401, named
    # one that another server of this host has set stands beside it
    name = browser.cookie.partition('=')[0]
    for cookies in (f'a=b; {browser.cookie}', f'{name}=x; {browser.cookie}; c',
                    f' {browser.cookie} ;;', f'{other.cookie}; {browser.cookie}'):
        assert browser.asks(named={'Cookie': cookies}) == 200, cookies


def test_a_wrong_token_is_no_cookie(browser):
    assert browser.asks(named={'Authorization': 'Bearer wrong'}) == 401


@pytest.mark.parametrize('name', ['evil.example', 'localhost.evil.example', '10.0.0.1',
                                  '127.0.0.1.evil.example'])
def test_rebound_names(hub, browser, name):
    host = f'{name}:{hub.address[1]}'
    assert browser.asks(host=host, named={'Origin': f'http://{host}'}) == 403
    for path in ('/', '/inbox', '/login', '/session'):
        assert browser.asks('GET', path, host=host) == 403
    assert Browser(hub, named={'Origin': f'http://{host}'}, host=host).reply.status == 403


def test_mcp_takes_no_cookie(browser):
    for method, path in (('POST', '/mcp'), ('GET', '/sse'), ('POST', '/message'),
                         ('POST', '/sandbox.v1.Sandbox/List')):
        assert browser.asks(method, path, '{}' if method == 'POST' else None) == 401


def test_websockets(hub, browser):
    box = hub.create()
    exec_id = hub.exec(box, 'sleep 1000', background=True)['exec_id']
    path = f'/v1/sandboxes/{box}/execs/{exec_id}/attach'

    def opens(*, protocol=f'holt.attach.v1, holt.page.{browser.key}', **named):
        fields = [*browser.fields('GET', {'Origin': origin(hub), 'Holt-Page': None, **named}),
                  f'Sec-WebSocket-Protocol: {protocol}']
        with hub.wire() as wire:
            wire.send(hub.request('GET', path, token=None, host=f'127.0.0.1:{hub.address[1]}',
                                  fields=['Upgrade: websocket', 'Connection: Upgrade',
                                          f'Sec-WebSocket-Key: {KEY}',
                                          'Sec-WebSocket-Version: 13', *fields]))
            return wire.head()
    status, fields = opens()
    assert status == 101 and ('Sec-WebSocket-Protocol', 'holt.attach.v1') in fields
    for named in ({'Origin': None}, {'Origin': 'http://evil.example'}, {'Cookie': None},
                  {'Origin': f'http://localhost:{hub.address[1] - 1}'},
                  {'Sec-Fetch-Site': 'same-site'},
                  {'protocol': 'holt.attach.v1'}, {'protocol': 'holt.attach.v1, holt.page.'},
                  {'protocol': f'holt.attach.v1, {browser.key}'},
                  # the header is for requests that are none
                  {'protocol': 'holt.attach.v1', 'Holt-Page': browser.key}):
        assert opens(**named)[0] in (401, 403), named
    hub.sweep(box)


def test_logging_out_ends_what_goes_on(hub):
    own, other = Browser(hub), Browser(hub)
    with hub.wire() as wire, hub.wire() as kept:
        for who, at in ((own, wire), (other, kept)):
            at.send(hub.request('GET', '/v1/events?follow=true', token=None,
                                host=f'127.0.0.1:{hub.address[1]}', fields=who.fields('GET')))
            assert at.head()[0] == 200
        done = own.raw('DELETE', '/session')
        assert done.status == 200 and 'Max-Age=0' in done.get('Set-Cookie')
        wire.ended()
        assert own.asks() == 401
        assert other.asks() == 200
        box = hub.create()
        kept.until(box.encode())  # still hears of it
        hub.sweep(box)


def test_behind_a_proxy_that_speaks_tls(me, tmp_path):
    """It passes on the name that browsers know; what comes with another name is as without it."""
    public = 'https://holt.example'
    with Rest(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0', '--public-url',
              public) as hub:
        done = hub.who.run('web', env=hub.env, text=True)
        assert done.stdout.startswith(public + '/login#'), done
        code = done.stdout.strip().partition('#')[2]
        for other in ('http://holt.example', 'https://evil.example', origin(hub), 'null',
                      'https://holt.example:8443', 'https://x.holt.example', None):
            wrong = Browser(hub, code, host='holt.example', named={'Origin': other})
            assert wrong.reply.status == 403, other
        at = {'host': 'holt.example', 'named': {'Origin': public}}
        own = Browser(hub, code, **at)
        assert own.cookie.startswith('__Host-holt_session_0=') and own.asks(**at) == 200
        assert {'Secure', 'Path=/', 'HttpOnly', 'SameSite=Strict'} <= set(own.attributes)
        assert own.asks('POST', '/v1/sandboxes', '{"template": 3}', **at) == 400
        assert own.asks('POST', '/v1/sandboxes', '{}', host='holt.example',
                        named={'Origin': 'http://holt.example'}) == 403
        assert own.asks() == 401  # at another name
        assert own.asks(host='evil.example') == 403
        leaves = own.raw('DELETE', '/session', **at)
        assert leaves.get('Set-Cookie').endswith('; Secure')
        # not by the proxy
        code = hub.post('/session/links')['path'].removeprefix('/login#')
        direct = Browser(hub, code)
        assert direct.asks() == 200 and 'Secure' not in direct.attributes
        assert direct.asks(named={'Origin': public}) == 403


def test_log_ins_are_listed_and_ended(hub):
    own, other = Browser(hub), Browser(hub)
    def listed():
        return json.loads(own.raw('GET', '/sessions').body)['sessions']
    (mine,) = [s for s in listed() if s['current']]
    before = {s['id'] for s in listed()}
    third = Browser(hub)
    (new,) = [s['id'] for s in listed() if s['id'] not in before]
    assert own.asks('DELETE', f'/sessions/{new}') == 200
    assert third.asks() == 401 and other.asks() == 200
    assert own.asks('DELETE', f'/sessions/{new}') == 404
    assert own.asks('DELETE', f'/sessions/{mine["id"]}') == 200 and own.asks() == 401


def test_log_ins_of_a_key_end_with_it(hub):
    key = hub.post('/v1/keys', name='reader', scopes=['read'])['token']
    code, spare = link(hub, token=key), link(hub, token=key)
    own = Browser(hub, code)
    assert own.asks() == 200
    assert own.asks('POST', '/v1/sandboxes', '{}') == 403  # no more than the key may
    assert len(json.loads(own.raw('GET', '/sessions').body)['sessions']) == 1  # nor see
    hub.call('DELETE', '/v1/keys/reader')
    until(lambda: own.asks() == 401, what='the end of the log-in')
    assert Browser(hub, spare).reply.status == 401


@pytest.mark.parametrize('ends', [signal.SIGKILL, signal.SIGTERM])
def test_a_log_in_outlives_the_hub(me, tmp_path, certificate, ends):  # noqa: F811
    """Those of the operator, over TLS (test_port_taken.py); those of a key end with the hub."""
    trust, tls = trusting(certificate[0]), secured(me, tmp_path, certificate)
    first = Rest(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0', *tls)
    try:
        own, gone = Secure(first, trust), Secure(first, trust)
        with first.wire(tls=trust) as wire:
            text = json.dumps({'name': 'k', 'scopes': ['read']})
            key = json.loads(wire.ask(first.request('POST', '/v1/keys', body=text)).body)['token']
        of_key = Secure(first, trust, token=key)
        assert gone.asks('DELETE', '/session') == 200
        until(lambda: gone.asks() == 401, what='the end of the other')
        first.end(ends)
    finally:
        first.kill()
    again = ('--listen', f'127.0.0.1:{first.address[1]}', '--pool', '0', *tls)
    with Restless(me, tmp_path, *again):
        assert [b.asks() for b in (own, gone, of_key)] == [200, 401, 401]
        text = (tmp_path / 'logins.json').read_text()
        assert own.key not in text and own.cookie.partition('=')[2] not in text
        assert (tmp_path / 'logins.json').stat().st_mode & 0o77 == 0
    # what is no file of log-ins logs nobody in, and keeps no hub from its start
    for spoilt in ('{', '{"logins": [{"name": "local"}]}', '[]'):
        (tmp_path / 'logins.json').write_text(spoilt)
        with Restless(me, tmp_path, *again):
            assert own.asks() == 401


def test_another_token_ends_log_ins(me, tmp_path, certificate):  # noqa: F811
    trust, tls = trusting(certificate[0]), secured(me, tmp_path, certificate)
    with Restless(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0', *tls) as first:
        own = Secure(first, trust)
        done = first.who.run('web', env=first.env, text=True)
        of_verb = Secure(first, trust, done.stdout.strip().partition('#')[2])
    token = (tmp_path / 'token').read_text()
    again = ('--listen', f'127.0.0.1:{first.address[1]}', '--pool', '0', *tls)
    with Restless(me, tmp_path, *again):
        assert [own.asks(), of_verb.asks()] == [200, 200]
    (tmp_path / 'token').unlink()
    with Restless(me, tmp_path, *again):
        assert [own.asks(), of_verb.asks()] == [401, 401]
    # nor are they there again with the old one
    (tmp_path / 'token').write_text(token)
    with Restless(me, tmp_path, *again):
        assert [own.asks(), of_verb.asks()] == [401, 401]


def test_the_least_used_gives_way(hub):
    first = Browser(hub)
    assert first.asks() == 200
    for _ in range(64):
        last = Browser(hub)
    assert first.asks() == 401 and last.asks() == 200


def test_a_key_takes_no_places_of_others(hub):
    """Neither the operator's log-in nor an unused link of theirs gives way to those of a key."""
    token = hub.post('/v1/keys', name='crowd', scopes=['read'])['token']
    own, unused = Browser(hub), link(hub)
    crowd = [Browser(hub, link(hub, token=token)) for _ in range(66)]
    for _ in range(17):
        last = link(hub, token=token)
    assert own.asks() == 200 and Browser(hub, unused).asks() == 200
    assert [crowd[0].asks(), crowd[-1].asks(), Browser(hub, last).asks()] == [401, 200, 200]
    hub.call('DELETE', '/v1/keys/crowd')


def test_headers_of_the_page(hub, browser):
    nonces = set()
    for path in ('/', '/inbox', '/s/any/term', '/login'):
        reply = browser.raw('GET', path)
        assert reply.status != 501, 'built without the page: scripts/deps installs what it needs'
        policy = reply.get('Content-Security-Policy')
        nonce = re.search(r"'nonce-([^']+)'", policy)[1]
        nonces.add(nonce)
        assert reply.status == 200 and f'<style nonce="{nonce}">' in reply.body.decode()
        for part in ("default-src 'none'", "script-src 'self';", "connect-src 'self'",
                     "base-uri 'none'", "frame-ancestors 'none'", "form-action 'self'",
                     "require-trusted-types-for 'script'", "trusted-types 'none'"):
            assert part in policy
        assert 'unsafe' not in policy
        for name, value in (('X-Content-Type-Options', 'nosniff'), ('Cache-Control', 'no-store'),
                            ('Referrer-Policy', 'no-referrer'),
                            ('Cross-Origin-Opener-Policy', 'same-origin'),
                            ('Cross-Origin-Resource-Policy', 'same-origin')):
            assert reply.get(name) == value
    assert len(nonces) == 4
    files = re.findall(r'"(/assets/[^"]+)"', browser.raw('GET', '/').body.decode())
    assert len(files) == 3
    for path in files:
        reply = browser.raw('GET', path)
        assert (reply.status == 200 and reply.get('Content-Encoding') == 'gzip'
                and 'immutable' in reply.get('Cache-Control')), reply
        assert browser.raw('HEAD', path).body == b''
    for path in ('/assets/', '/assets/none.js', '/assets/../token', '/assets/%2e%2e/token'):
        assert browser.asks('GET', path) in (400, 404)
