"""Log-ins of programs in sandboxes: their tokens are in the hub's store and in the egress proxy
alone, and a sandbox has placeholders, from the first exchange of a code on. The proxy by itself is
in test_tokens.py."""

import base64
import glob
import json
import os
import re
import shutil
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


# ---- by the verb ---------------------------------------------------------------------------------

TOOL = r'''#!/usr/bin/python3
import json, os, subprocess, sys
FILE = os.path.expanduser('~/.tool/auth.json')

def curl(*words):
    return subprocess.run(['curl', '-sS', '-m', '20', *words], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout

def login():
    text = curl('-d', 'grant_type=authorization_code', '-d', 'code=' + input(),
                'https://platform.claude.com/v1/oauth/token')
    if 'access_token' in text:
        open(FILE, 'w').write(text)

def ask():
    if not os.path.exists(FILE):
        return 'no log-in'
    token = json.load(open(FILE))['access_token']
    return os.environ.get('TOOL_BY', '') + curl(
        '-H', 'Authorization: Bearer ' + token, '-d', '{"model": "m"}',
        'https://api.anthropic.com/v1/messages')

def say(**m):
    print(json.dumps({'jsonrpc': '2.0', **m}), flush=True)

def acp():
    for m in map(json.loads, sys.stdin):
        result = {'initialize': {'protocolVersion': 1, 'agentCapabilities': {}},
                  'session/new': {'sessionId': 's'},
                  'session/prompt': {'stopReason': 'end_turn'}}.get(m.get('method'), {})
        if m.get('method') == 'session/prompt':
            say(method='session/update', params={'sessionId': 's', 'update': {
                'sessionUpdate': 'agent_message_chunk',
                'content': {'type': 'text', 'text': ask()}}})
        if 'id' in m:
            say(id=m['id'], result=result)

{'login': login, '--acp': acp}.get(sys.argv[1], lambda: print(ask()))()
'''
PRESET = {'title': 'A tool', 'run': ['tool'], 'print': ['-p'], 'acp': ['tool', '--acp'],
          'state': ['~/.tool'], 'credentials': ['~/.tool/auth.json'], 'login': ['tool', 'login'],
          'tokens': {**CLAUDE['login'], 'hosts': CLAUDE['hosts'], 'env': {'TOOL_BY': 'a log-in'}}}


@pytest.fixture(scope='module')
def tool(hub):
    """A preset of the operator's, with its program and the folder of a project."""
    beside = hub.home + '-tool'
    files = {f'{beside}/bin/tool': TOOL, f'{beside}/project/x': '',
             f'{hub.home}/agents/tool.json': json.dumps({**PRESET, 'find': [beside + '/bin']})}
    for path, text in files.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w') as f:
            f.write(text)
        os.chmod(path, 0o755 if '/bin/' in path else 0o644)
        for one in (beside, os.path.dirname(path), path):
            os.chown(one, hub.who.uid, hub.who.uid)
    yield beside + '/project'
    shutil.rmtree(beside)


def agent_login(hub, code):
    return hub.run('agent', 'login', 'tool', input=code.encode() + b'\n', stdin=None)


def ask(hub, project, *words):
    done = hub.run('agent', 'run', '-w', project, *words, '-p', 'hello', 'tool')
    return done.stdout.decode() + done.stderr.decode()


def test_the_verb(hub, site, tool):
    """What the agent keeps has placeholders, and its interface and conversations work by them."""
    done = agent_login(hub, site.code)
    assert done.returncode == 0 and b'next: holt agent run tool' in done.stdout, done
    with open(hub.home + '/state/tool/.tool/auth.json') as f:
        kept = f.read()
    assert MARK.search(kept) and 'canary' not in kept + str(done)
    assert 'tool-login' in hub.stored() and 'tool-login' not in hub.ok('ls', '-q')
    said = ask(hub, tool)
    assert SAID in said and 'a log-in' in said, said
    hub.ok('agent', 'add', 'tool')
    assert json.loads(hub.ok('agent', 'ls', '-o', 'json'))[0]['login']
    assert 'a log-in, whose tokens are of 20' in hub.run('agent', 'doctor', 'tool').stdout.decode()
    made = hub.ok('conversations', 'new', '--agent', 'tool').strip()
    hub.ok('conversations', 'send', made, 'hello')
    until(lambda: SAID in hub.ok('conversations', 'history', made), what='its answer')
    hub.ok('conversations', 'rm', made)


def test_a_verb_that_fails(hub, site, tool):
    """A wrong code leaves the log-in of before, and nothing else."""
    assert agent_login(hub, site.code).returncode == 0
    before = hub.stored()['tool-login']
    done = agent_login(hub, 'another')
    assert done.returncode and b'without a new log-in' in done.stderr, done
    assert hub.stored()['tool-login'] == before
    assert SAID in ask(hub, tool, '--new', '--rm')


def test_two_at_once(hub, site, tool):
    hub.ok('up', '-n', 'tool-login')
    done = agent_login(hub, site.code)
    assert done.returncode and b'holt down tool-login' in done.stderr, done
    hub.ok('down', 'tool-login')
    assert agent_login(hub, site.code).returncode == 0


def test_the_end_of_a_log_in(hub, site, tool):
    if 'changed_at' in hub.stored().get('tool-login', {}):
        hub.ok('agent', 'logout', 'tool')
    said = ask(hub, tool, '-n', 'early')
    assert SAID not in said, said
    assert agent_login(hub, site.code).returncode == 0
    assert 'is older than the log-in' in ask(hub, tool, '-n', 'early')
    hub.ok('agent', 'logout', 'tool')
    assert not os.path.exists(hub.home + '/state/tool/.tool/auth.json')
    assert 'changed_at' not in hub.stored()['tool-login']
    doctor = hub.run('agent', 'doctor', 'tool').stdout.decode()
    assert 'holt agent login tool' in doctor, doctor
    done = hub.run('agent', 'logout', 'tool')
    assert done.returncode and b'has no log-in' in done.stderr, done
    for box in hub.ok('ls', '-q').split():
        hub.ok('rm', box)
