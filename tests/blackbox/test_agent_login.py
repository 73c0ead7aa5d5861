"""Log-ins of programs in sandboxes: their tokens are in the hub's store and in the egress proxy
alone, and a sandbox has placeholders, from the first exchange of a code on. The proxy by itself is
in test_tokens.py."""

import base64
import glob
import json
import os
import re
import types

import pytest

import host
from client import until
from login_site import HOSTS, SAID, Site
from test_network import Hub, run

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason='makes network namespaces as root')

MARK = re.compile(r'holt-secret-[0-9a-f]{32}')
CLAUDE = {'store': True, 'hosts': ['api.anthropic.com'],
          'login': {'urls': ['https://platform.claude.com/v1/oauth/token']}}
CODEX = {'store': True, 'hosts': ['api.openai.com', 'chatgpt.com'],
         'login': {'urls': ['https://auth.openai.com/oauth/token']}}
REACH = ['api.anthropic.com', 'platform.claude.com', 'auth.openai.com', 'chatgpt.com',
         'api.openai.com']
CURL = 'curl -sS -m 20 '


@pytest.fixture(scope='module')
def site(tmp_path_factory):
    site = Site(tmp_path_factory.mktemp('site'))
    yield site
    site.close()


class LoginHub(Hub):
    def configure(self):
        return {'secrets': {'claude': CLAUDE, 'codex': CODEX}}

    def start(self):
        path = os.path.join(self.home, 'config.json')
        if not os.path.exists(path):
            with open(path, 'w') as f:
                json.dump(self.configure(), f)
            os.chown(path, self.who.uid, self.who.uid)
        super().start()

    def sh(self, box, line, **options):
        """As it is: redaction would take placeholders for the tokens that they stand for."""
        done = self.run('exec', box, '--', 'sh', '-c', f'({line}) >/tmp/said 2>&1; s=$?; '
                        'base64 -w0 /tmp/said; exit $s', **options)
        return done.returncode, base64.b64decode(done.stdout, validate=True).decode()

    def operator(self, method, path, body=None):
        token = self.ok('auth', 'token').strip()
        done = run(*self.prefix, 'curl', '-sS', '-X', method, '--unix-socket',
                   self.home + '/socket', '-H', f'Authorization: Bearer {token}',
                   '-H', 'Content-Type: application/json', '-w',
                   '\n%{http_code}', *(['-d', json.dumps(body)] if body else []),
                   f'http://localhost{path}')
        text, _, status = done.rpartition('\n')
        return int(status), json.loads(text or '{}')

    def box(self, *logins, begin=False):
        allow = [{'host': name, 'port': 443} for name in REACH]
        secrets = {f'HOLT_LOGIN_{i}': {'ref': name, **({'begin': True} if begin else {})}
                   for i, name in enumerate(logins)}
        status, answer = self.operator('POST', '/v1/sandboxes', {
            'network': {'mode': 'bridge', 'allow': allow}, 'secrets': secrets})
        assert status == 200, answer
        return answer['id']

    def stored(self):
        return {s['name']: s for s in self.operator('GET', '/v1/secrets')[1]['secrets']}


@pytest.fixture(scope='module')
def hub(site, me):
    before = host.Residue(me.trees)
    hub = LoginHub(types.SimpleNamespace(world=site.world), me, '--pool', '0', trust=site.world.ca)
    yield hub
    hub.end()
    before.check()


def form(**members):
    return "-d '" + '&'.join(f'{k}={v}' for k, v in members.items()) + "' "


def sh(hub, box, line):
    status, text = hub.sh(box, line)
    assert status == 0, text
    return text


def memory_of(hub, box):
    """All that can be read of all processes of the sandbox, from the outside as root."""
    tree = sh(hub, box, 'readlink /proc/self/ns/pid').strip()
    found = b''
    for pid in os.listdir('/proc'):
        try:
            if not pid.isdigit() or os.readlink(f'/proc/{pid}/ns/pid') != tree:
                continue
            with open(f'/proc/{pid}/maps') as maps, open(f'/proc/{pid}/mem', 'rb', 0) as memory:
                for line in maps:
                    fields = line.split()
                    if 'r' not in fields[1] or fields[-1] in ('[vvar]', '[vsyscall]'):
                        continue
                    start, end = (int(x, 16) for x in fields[0].split('-'))
                    try:
                        memory.seek(start)
                        found += b'\n'.join(re.findall(rb'canary[ -~]{0,80}|holt-secret-\w{32}',
                                                       memory.read(end - start)))
                    except OSError:
                        pass
        except OSError:
            pass
    return found


def log_in(hub, site, name='claude'):
    """By the exchange of a code. Gives what the program inside got."""
    url = (CLAUDE if name == 'claude' else CODEX)['login']['urls'][0]
    box = hub.box(name, begin=True)
    text = sh(hub, box, CURL + form(grant_type='authorization_code', code=site.code,
                                    client_id='app') + url)
    hub.ok('rm', box)
    return json.loads(text)


def test_by_the_command_line(hub, site):
    allow = [word for name in REACH for word in ('--allow', name)]
    line = CURL + form(grant_type='authorization_code', code=site.code) + CLAUDE['login']['urls'][0]
    box = hub.ok('up', '--login', 'claude', *allow).strip()
    got = json.loads(sh(hub, box, line))
    hub.ok('rm', box)
    box = hub.ok('up', '--secret', 'claude=TOKEN', *allow).strip()
    assert 'not the log-in' in sh(hub, box, line)
    for text in (got['access_token'], '$TOKEN'):
        assert SAID in sh(hub, box, CURL + f'-H "Authorization: Bearer {text}" '
                          '-d \'{"model": "m"}\' https://api.anthropic.com/v1/messages')
    hub.ok('rm', box)
    done = hub.run('up', '--login', 'nothing', *allow)
    assert done.returncode and b'has no hosts' in done.stderr, done


def test_a_log_in(hub, site):
    got = log_in(hub, site)
    assert MARK.fullmatch(got['access_token']) and MARK.fullmatch(got['refresh_token'])
    assert got['account']['email_address'] == 'me@example.org'  # all else is as it was
    assert hub.stored()['claude']['provider'] == 'store'
    # another sandbox has the same placeholders, which a file of the program may have
    box = hub.box('claude')
    ask = (CURL + '-H "Authorization: Bearer %s" -d \'{"model": "m"}\' '
           'https://api.anthropic.com/v1/messages')
    assert SAID in sh(hub, box, ask % got['access_token'])
    assert SAID in sh(hub, box, ask % '$HOLT_LOGIN_0')
    hub.ok('rm', box)


def test_a_refresh(hub, site):
    """The placeholders stay; the tokens of before end, also in other sandboxes."""
    got = log_in(hub, site)
    boxes = [hub.box('claude'), hub.box('claude')]
    before = site.access
    text = json.loads(sh(hub, boxes[0], CURL + form(
        grant_type='refresh_token', refresh_token=got['refresh_token'], client_id='app')
        + CLAUDE['login']['urls'][0]))
    assert text['access_token'] == got['access_token'] and site.access != before
    assert text['refresh_token'] == got['refresh_token']
    for box in boxes:
        assert SAID in sh(hub, box, CURL + f'-H "Authorization: Bearer {got["access_token"]}" '
                          '-d \'{"model": "m"}\' https://api.anthropic.com/v1/messages')
    # and again, by the other one, with the new refresh token
    sh(hub, boxes[1], CURL + '-f ' + form(
        grant_type='refresh_token', refresh_token=got['refresh_token'], client_id='app')
        + CLAUDE['login']['urls'][0])
    for box in boxes:
        hub.ok('rm', box)


def test_claims_are_shown(hub, site):
    """Of a JSON Web Token, since programs read them; its signature is a placeholder."""
    got = log_in(hub, site, 'codex')
    assert got['access_token'].startswith(site.access.rpartition('.')[0] + '.holt-secret-')
    assert got['id_token'].startswith('eyJ') and MARK.search(got['id_token'])
    box = hub.box('codex')
    assert SAID in sh(hub, box, CURL + f'-H "Authorization: Bearer {got["access_token"]}" '
                      'https://chatgpt.com/x/responses')
    hub.ok('rm', box)


def test_nothing_of_the_values_is_inside(hub, site):
    got = log_in(hub, site)
    box = hub.box('claude')
    keep = ('import os, time, urllib.request as u\n'
            'r = u.Request("https://api.anthropic.com/v1/messages", b\'{"model": "m"}\', '
            f'{{"Authorization": "Bearer {got["access_token"]}"}})\n'
            'text = u.urlopen(r).read()\n'
            'r = u.Request("https://platform.claude.com/v1/oauth/token", '
            f'b"grant_type=refresh_token&refresh_token={got["refresh_token"]}")\n'
            'text += u.urlopen(r).read()\nopen("done", "wb").write(text)\ntime.sleep(60)\n')
    hub.ok('fs', 'write', box, '/workspace/keep.py', input=keep.encode(), stdin=None)
    hub.ok('exec', '-d', box, '--', '/usr/bin/python3', '/workspace/keep.py')
    until(lambda: hub.sh(box, 'test -s done')[0] == 0, what='its answers')
    found = memory_of(hub, box)
    assert got['access_token'].encode() in found  # the control
    assert b'canary' not in found, found
    text = sh(hub, box, 'cat done; env; cat /proc/[0-9]*/environ; true')
    assert 'canary' not in text and got['refresh_token'] in text
    hub.ok('rm', box)
    for top, _, names in os.walk(hub.home):
        for name in names:
            path = os.path.join(top, name)
            if os.path.isfile(path):
                with open(path, 'rb') as f:
                    assert b'canary' not in f.read(), path
    for path in glob.glob(hub.log + '*'):
        with open(path, 'rb') as f:
            assert b'canary' not in f.read()


def test_code_inside_gets_nothing(hub, site):
    """Requests that would show a token, or put another log-in in its place. The control is
    test_a_refresh."""
    got = log_in(hub, site)
    box, before = hub.box('claude'), site.access
    url = CLAUDE['login']['urls'][0]
    for line in (
            CURL + form(grant_type='authorization_code', code=site.code) + url,
            CURL + form(grant_type='refresh_token', refresh_token=site.code) + url,
            CURL + form(grant_type='refresh_token', client_id=got['refresh_token']) + url,
            CURL + form(grant_type='refresh_token', refresh_token=got['refresh_token'],
                        code=site.code) + url,
            CURL + form(refresh_token=got['refresh_token']) + url + '?grant_type=refresh_token'):
        assert 'not the log-in' in sh(hub, box, line)
    assert site.access == before
    for line in (
            CURL + f'-H "X-Api-Key: {got["refresh_token"]}" https://api.anthropic.com/x',
            CURL + f'-H "Authorization: Bearer {got["access_token"]}" https://chatgpt.com/x',
            CURL + f'-d "{got["refresh_token"]}" https://platform.claude.com/other',
            CURL + f'https://platform.claude.com/{got["refresh_token"]}'):
        del site.log[:]
        sh(hub, box, line)
        assert site.log and 'canary' not in str(site.log), site.log
    hub.ok('rm', box)


def test_another_account_is_no_matter_of_a_sandbox(hub, site):
    """Who has the log-in of one agent has none of another, and begins none."""
    log_in(hub, site)
    log_in(hub, site, 'codex')
    box = hub.box('claude')
    text = sh(hub, box, CURL + form(grant_type='authorization_code', code=site.code)
              + CODEX['login']['urls'][0])
    assert json.loads(text)['access_token'].count('canary')  # this host is not bound here
    assert hub.stored()
    hub.ok('rm', box)
    # nor does a client over TCP
    status, answer = hub.rest('POST', '/v1/sandboxes', {
        'network': {'mode': 'bridge', 'allow': [{'host': REACH[0], 'port': 443}]},
        'secrets': {'K': {'ref': 'claude', 'begin': True}}})
    assert status == 403, answer


def test_without_a_log_in(hub, site):
    hub.run('secret', 'rm', 'claude')
    status, answer = hub.operator('POST', '/v1/sandboxes', {
        'network': {'mode': 'bridge', 'allow': [{'host': REACH[0], 'port': 443}]},
        'secrets': {'K': {'ref': 'claude'}}})
    assert status == 404, answer
    # a token that was made by hand is one of access
    site.access = site.make('access')
    hub.ok('secret', 'set', 'claude', input=site.access.encode(), stdin=None)
    box = hub.box('claude')
    assert SAID in sh(hub, box, CURL + '-H "Authorization: Bearer $HOLT_LOGIN_0" '
                      '-d \'{"model": "m"}\' https://api.anthropic.com/v1/messages')
    hub.ok('rm', box)


def test_it_outlives_the_hub(hub, site):
    got = log_in(hub, site)
    box = hub.box('claude')
    hub.proc.kill()
    hub.proc.wait()
    hub.start()
    line = CURL + '-f ' + form(grant_type='refresh_token', refresh_token=got['refresh_token']) \
        + CLAUDE['login']['urls'][0]
    until(lambda: hub.sh(box, line)[0] == 0, what='a refresh after the hub was killed')
    hub.ok('rm', box)
