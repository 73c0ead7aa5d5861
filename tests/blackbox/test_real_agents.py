"""Agents of others as far as they go without a log-in: claude-code-acp and codex-acp in sandboxes
that reach nothing but the hub, to which they connect with their conversation's token; and Claude
Code itself with an entry of `holt mcp config`."""

import glob
import os
import shutil
import subprocess

import pytest

import host
from client import until
from test_agents import AGENTS, Hub, cause, of_kind

MODULES = os.path.join(AGENTS, 'node_modules')
CLAUDE = os.path.join(MODULES, '@zed-industries', 'claude-code-acp', 'dist', 'index.js')
CLAUDE_CODE = os.path.join(MODULES, '@anthropic-ai', 'claude-agent-sdk', 'cli.js')
CODEX = glob.glob(os.path.join(MODULES, '@zed-industries', 'codex-acp-linux-*', 'bin', 'codex-acp'))
NODE = os.path.realpath(shutil.which('node') or 'node')

pytestmark = pytest.mark.skipif(not CODEX or not os.path.exists(CLAUDE),
                                reason='the agents from npm are missing: scripts/deps test')


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    quiet = {'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC': '1', 'DISABLE_AUTOUPDATER': '1'}
    codex = {'command': CODEX[0], 'sandbox': {'read': [AGENTS]}}
    agents = {
        'claude': {'command': NODE, 'args': [CLAUDE], 'env': quiet,
                   'sandbox': {'read': [os.path.dirname(NODE), AGENTS]}},
        'codex': codex,
        # It looks at its key only when it asks its model, which it can't reach.
        'codex-with-a-key': {**codex, 'authMethod': 'codex-api-key',
                             'env': {'CODEX_API_KEY': 'no-key-of-anybody'}},
    }
    with Hub(me, str(tmp_path_factory.mktemp('real')), agents) as shared:
        yield shared
    before.check()


def sessions(hub):
    """Of MCP clients: none but agents connect to this hub, and only a token that holds gets one."""
    return hub.metrics()['holt_sessions{transport="http"}']


def test_they_want_a_log_in(hub):
    """Claude Code has a session before, and has connected to the hub by then."""
    claude, codex = hub.talk('claude'), hub.talk('codex')
    before = {one: hub.send(one, ['say', 'hello']) for one in (claude, codex)}
    for one, after in before.items():
        error = cause(hub.ended(one, after, 60))
        assert error['code'] == 'agent_login_required', error
        assert 'Authentication required' in error['message'], error
    until(lambda: sessions(hub) == 1, what='its session at the hub')
    hub.of(claude, '', 'PATCH', {'archived': True})
    until(lambda: sessions(hub) == 0, what='the end of its token')


def test_codex_connects_to_the_hub(hub):
    """As it begins a turn, which ends when a person wants that."""
    one = hub.talk('codex-with-a-key')
    after = hub.begin(one, ['say', 'hello'])
    until(lambda: sessions(hub) == 1, 30, 'its session at the hub')
    hub.of(one, '/cancel', 'POST', {})
    assert of_kind(hub.ended(one, after), 'stop')[0] == {'stop_reason': 'cancelled'}
    hub.of(one, '', 'PATCH', {'archived': True})


def test_claude_code_finds_holt_by_its_entry(hub, me, tmp_path):
    """In a network of its own, where nothing but the hub's socket is."""
    os.chmod(tmp_path, 0o755)
    home = str(tmp_path / 'home')
    os.mkdir(home)
    os.chown(home, me.uid, me.uid)
    env = {'HOME': home, 'HOLT_HOME': hub.home, 'DISABLE_AUTOUPDATER': '1'}
    done = me.run('mcp', 'config', 'claude-code', '--connect', f'unix:{hub.home}/holt.sock',
                  '--write', env=env)
    assert done.returncode == 0, done
    alone = ['unshare', '-rn' if os.getuid() else '-n']
    done = subprocess.run([*alone, *me.prefix, NODE, CLAUDE_CODE, 'mcp', 'list'],
                          env={**os.environ, **env}, capture_output=True, text=True, timeout=60,
                          check=False)
    assert 'holt: ' in done.stdout and '✓ Connected' in done.stdout, done
