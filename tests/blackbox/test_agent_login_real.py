"""Claude Code, Codex and Gemini CLI (npm) with keys and log-ins of placeholders: TLS servers of
ours stand in under the real hosts' names (login_site.py), and no value is in any process of the
sandboxes. `make test-agents` runs these."""

import glob
import json
import os
import pty
import re
import select
import shutil
import time
import types

import pytest

import host
from login_site import SAID, Site
from real_agents import AGENTS, LARGE, NODE
from who import HERE, HOLT
from test_agent_login import CLAUDE, CODEX, MARK, LoginHub, memory_of

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason='makes network namespaces as root')


PRESETS = os.path.join(HERE, '../../presets/agents')


def program(pattern):
    return next((path for top in (AGENTS, LARGE)
                 for path in sorted(glob.glob(os.path.join(top, 'node_modules', pattern)))), None)


# file: where it keeps its log-in, below its state; ask: how it is asked by a script
TABLE = {
    'claude': {
        'program': program('@anthropic-ai/claude-code-linux-x64/claude'), 'ask': ['-p', 'hello'],
        'key': ('ANTHROPIC_API_KEY', ['api.anthropic.com']), 'login': CLAUDE,
        'hosts': ['api.anthropic.com', 'platform.claude.com'],
        'env': {'CLAUDE_CONFIG_DIR': '/state', 'DISABLE_AUTOUPDATER': '1',
                'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC': '1'},
        'file': '.credentials.json'},
    'codex': {
        'program': program('@openai/codex-linux-x64/vendor/*/bin/codex'),
        'ask': ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox',
                'hello'],
        'key': ('CODEX_API_KEY', ['api.openai.com']), 'login': CODEX,
        'hosts': ['api.openai.com', 'chatgpt.com', 'auth.openai.com'],
        'env': {'CODEX_HOME': '/state'}, 'file': 'auth.json'},
    'gemini': {
        'program': program('@google/gemini-cli/bundle/gemini.js'),
        'ask': ['-m', 'gemini-2.5-pro', '-p', 'hello'],
        'key': ('GEMINI_API_KEY', ['generativelanguage.googleapis.com']),
        'login': {'store': True,
                  'hosts': ['cloudcode-pa.googleapis.com', 'www.googleapis.com',
                            'oauth2.googleapis.com'],
                  'login': {'urls': ['https://oauth2.googleapis.com/token']}},
        'hosts': ['generativelanguage.googleapis.com', 'oauth2.googleapis.com',
                  'www.googleapis.com', 'cloudcode-pa.googleapis.com'],
        'env': {'GEMINI_CLI_TRUST_WORKSPACE': 'true', 'GEMINI_CLI_HOME': '/state',
                'NO_BROWSER': 'true'},
        'file': '.gemini/oauth_creds.json'},
}
NAMES = [pytest.param(name, marks=[pytest.mark.whole, pytest.mark.skipif(
    not one['program'], reason=f'no {name} of npm')]) for name, one in TABLE.items()]


class AgentHub(LoginHub):
    def configure(self):
        secrets = {f'{name}-key': {'store': True, 'hosts': one['key'][1]}
                   for name, one in TABLE.items()}
        return {'secrets': {**secrets, **{n: one['login'] for n, one in TABLE.items()}}}

    def box(self, name, secrets):
        one = TABLE[name]
        state = os.path.join(self.home + '-state', name)
        os.makedirs(state, exist_ok=True)
        for path in (os.path.dirname(state), state):
            os.chown(path, self.who.uid, self.who.uid)
        folder = os.path.dirname(os.path.realpath(one['program']))
        volumes = [{'host': folder, 'inside': folder, 'mode': 'ro'},
                   {'host': state, 'inside': '/state', 'mode': 'rw-all'}]
        status, answer = self.operator('POST', '/v1/sandboxes', {
            'network': {'mode': 'bridge', 'allow': [{'host': h, 'port': 443}
                                                    for h in one['hosts']]},
            'secrets': secrets, 'volumes': volumes, 'env': one['env']})
        assert status == 200, answer
        return answer['id']

    def argv(self, name):
        path = os.path.realpath(TABLE[name]['program'])
        return [NODE, path] if path.endswith('.js') else [path]

    def state(self, name):
        return os.path.join(self.home + '-state', name, TABLE[name]['file'])

    def agent(self, box, name, *words, seconds=60):
        words = ' '.join(f"'{w}'" for w in (*self.argv(name), *words))
        return self.sh(box, f'cd /workspace; {words} </dev/null', timeout=seconds)


@pytest.fixture(scope='module')
def site(tmp_path_factory):
    site = Site(tmp_path_factory.mktemp('site'))
    yield site
    site.close()


@pytest.fixture(scope='module')
def hub(site, me):
    before = host.Residue(me.trees)
    hub = AgentHub(types.SimpleNamespace(world=site.world), me, '--pool', '0', trust=site.world.ca)
    yield hub
    hub.end()
    shutil.rmtree(hub.home + '-state', ignore_errors=True)
    before.check()


@pytest.mark.parametrize('name', NAMES)
def test_a_key(hub, site, name):
    """In the variable is a placeholder; the server gets the key, by whichever field it has."""
    key = site.make('key')
    site.keys.add(key)
    hub.ok('secret', 'set', f'{name}-key', input=key.encode(), stdin=None)
    box = hub.box(name, {TABLE[name]['key'][0]: {'ref': f'{name}-key'}})
    status, text = hub.agent(box, name, *TABLE[name]['ask'])
    assert status == 0 and SAID in text, (text[-3000:], site.log[-5:])
    assert any(key in str(one[3].values()) for one in site.log)
    assert 'canary' not in text
    hub.ok('rm', box)


# A person at the terminal of a log-in: sees the URL and pastes what the browser would show.
PERSON = r'''
import os, pty, re, select, sys, time
code, file, words = sys.argv[1], sys.argv[2], sys.argv[3:]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(words[0], words)
seen, sent, until = b'', False, time.time() + 60
while time.time() < until and not os.path.exists(file):
    ready = select.select([fd], [], [], 1)[0]
    try:
        seen += os.read(fd, 65536) if ready else b''
    except OSError:
        break
    state = re.search(rb'(?:state=|authorize\?z-)([\w-]+)', seen)
    if not sent and (b'ode here' in seen or b'uthorization code' in seen):
        time.sleep(0.5)
        text = code + ('#' + state[1].decode() if state and '{}' in code else '')
        os.write(fd, text.replace('{}', '').encode())
        time.sleep(0.2)
        os.write(fd, b'\r')
        sent = True
time.sleep(1)
os.kill(pid, 15)
sys.stdout.write(seen.decode(errors='replace'))
sys.exit(not os.path.exists(file))
'''
LOGINS = {'claude': ['auth', 'login', '--claudeai'], 'codex': ['login', '--device-auth'],
          'gemini': ['-m', 'gemini-2.5-pro']}
SETTINGS = {'gemini': ('.gemini/settings.json',
                       {'security': {'auth': {'selectedType': 'oauth-personal'}}})}


@pytest.mark.parametrize('name', NAMES)
def test_a_log_in(hub, site, name):
    """By the agent's own log-in. Its file has placeholders alone, by which it works and renews its
    tokens, also in another sandbox."""
    if name in SETTINGS:
        path = os.path.join(hub.home + '-state', name, SETTINGS[name][0])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w') as f:
            json.dump(SETTINGS[name][1], f)
        for one in (os.path.dirname(path), path):
            os.chown(one, hub.who.uid, hub.who.uid)
    box = hub.box(name, {'HOLT_LOGIN': {'ref': name, 'begin': True}})
    hub.ok('fs', 'write', box, '/workspace/person.py', input=PERSON.encode(), stdin=None)
    site.lives = 1  # second, of the first access token
    code = site.code + ('{}' if name == 'claude' else '')
    words = ' '.join(f"'{w}'" for w in (*hub.argv(name), *LOGINS[name]))
    status, text = hub.sh(box, f'/usr/bin/python3 person.py "{code}" '
                          f'"/state/{TABLE[name]["file"]}" {words}', timeout=90)
    assert status == 0, (text[-3000:], [one[:3] for one in site.log[-8:]])
    with open(hub.state(name)) as f:
        kept = f.read()
    assert MARK.search(kept) and 'canary' not in kept + text, kept
    hub.ok('rm', box)
    assert name in hub.stored()

    site.lives, first = 3600, site.refresh
    box = hub.box(name, {'HOLT_LOGIN': {'ref': name}})
    status, text = hub.agent(box, name, *TABLE[name]['ask'])
    if name == 'codex':  # before a turn it wants more of its backend than is known here
        assert any(site.access in one[3].get('authorization', '') for one in site.log), text
    else:
        assert status == 0 and SAID in text, (text[-3000:], [one[:3] for one in site.log[-8:]])
        assert site.refresh != first, 'it has renewed its tokens'
    found = memory_of(hub, box)
    assert b'canary' not in found
    hub.ok('rm', box)


# The preset's programs, at the places of npm here.
def own_preset(hub, name):
    with open(os.path.join(PRESETS, name + '.json')) as f:
        preset = json.load(f)
    preset['find'] = [os.path.dirname(os.path.realpath(TABLE[name]['program']))]
    folder = os.path.join(hub.home, 'agents')
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name + '.json'), 'w') as f:
        json.dump(preset, f)
    for path in (folder, os.path.join(folder, name + '.json')):
        os.chown(path, hub.who.uid, hub.who.uid)


def at_terminal(hub, code, *words):
    """A person who pastes the code that the browser would show; gives status and screen."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe(hub.prefix[0], [*hub.prefix, HOLT, *words], hub.env)
    seen, sent, entered, end = b'', 0, False, time.monotonic() + 60
    while time.monotonic() < end:
        try:
            seen += os.read(fd, 65536) if select.select([fd], [], [], 1)[0] else b''
        except OSError:  # its end
            break
        state = re.search(rb'(?:state=|authorize\?z-)([\w-]+)', seen)
        if sent and not entered and len(seen) > sent:  # it has drawn the code
            os.write(fd, b'\r')
            entered = True
        if not sent and b'ode here' in seen and state:
            os.write(fd, code.encode() + b'#' + state[1])
            sent = len(seen)
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode(errors='replace')


@pytest.mark.parametrize('name', [one for one in NAMES if one.values[0] in ('claude', 'codex')])
def test_the_verb(hub, site, name):
    """`holt agent login`, and then `holt agent run` works."""
    own_preset(hub, name)
    site.lives = 3600
    status, text = at_terminal(hub, site.code, 'agent', 'login', name)
    assert status == 0 and f'next: holt agent run {name}' in text, (
        text[-3000:], [one[:3] for one in site.log[-8:]])
    with open(os.path.join(hub.home, 'state', name, '.' + name, TABLE[name]['file'])) as f:
        kept = f.read()
    assert MARK.search(kept) and 'canary' not in kept + text
    folder = hub.home + '-state'
    os.makedirs(folder, exist_ok=True)
    os.chown(folder, hub.who.uid, hub.who.uid)
    if name == 'claude':  # Codex wants more of its backend than is known here
        done = hub.run('agent', 'run', '--rm', '-w', folder, '-p', 'hello', name, timeout=90)
        assert done.returncode == 0 and SAID in done.stdout.decode(), done
    hub.ok('agent', 'logout', name)
