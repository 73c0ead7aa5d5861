"""Agents of others in sandboxes of a hub, with a model that does what prompts say (real_agents.py):
each scenario with each agent. Those that are large are driven by `make test-agents` alone.

And Claude Code itself with an entry of `holt mcp config`."""

import os
import subprocess

import pytest

import host
from client import until
from real_agents import AGENTS, NODE, TABLE, Model, made, missing
from test_agent_acp import Editor, gone
from test_agents import Hub, cause, of_kind

CLAUDE_CODE = os.path.join(AGENTS, 'node_modules', '@anthropic-ai', 'claude-agent-sdk-linux-x64',
                           'claude')


def marks(name):
    yield pytest.mark.skipif(missing(name) is not None, reason=str(missing(name)))
    if TABLE[name].get('large'):
        yield pytest.mark.whole


NAMES = [pytest.param(name, marks=[*marks(name)]) for name in TABLE]


class AgentsHub(Hub):
    """A hub with all agents of the table that are here, and a conversation with each."""

    def __init__(self, who, home, state, model, words=(), **options):
        self.model, self.talks = model, {}
        agents = {name: made(name, who, state) for name in TABLE if not missing(name)}
        for name in ('claude', 'codex-zed'):  # as they are before a log-in
            if name in agents:
                env = {k: v for k, v in agents[name]['env'].items() if 'DISABLE' in k}
                agents[f'{name}-out'] = {**agents[name], 'env': env}
                agents[f'{name}-out'].pop('authMethod', None)
        super().__init__(who, home, agents,
                         words=['--service', f'model.holt:80={model.port}', *words], **options)

    def with_agent(self, name):
        if name not in self.talks:
            self.talks[name] = self.talk(name)
        return self.talks[name]

    def send(self, talk, *lines):
        last = self.of(talk)['last_seq']
        self.of(talk, '/queue', 'POST', {'prompt': '\n'.join(lines)})
        return last

    def file(self, name):
        return os.path.join(self.site, name)


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    state = tmp_path_factory.mktemp('state')
    os.chmod(state, 0o755)
    with Model() as model, AgentsHub(me, str(tmp_path_factory.mktemp('real')), str(state),
                                     model) as shared:
        yield shared
    before.check()


def said(events):
    return ''.join(data['text'] for data in of_kind(events, 'agent_message'))


@pytest.mark.parametrize('name', NAMES)
def test_it_edits_and_runs(hub, name):
    """What it is allowed, and a person answers."""
    one = hub.with_agent(name)
    edited, ran = hub.file(f'{name}.txt'), hub.file(f'{name}-ran')
    if TABLE[name].get('knows_no_new_files'):
        open(edited, 'w', encoding='utf-8').close()
        os.chown(edited, hub.who.uid, hub.who.uid)
    after = hub.send(one, f'DO edit {edited} hello', f'DO run touch {ran}')
    edit = hub.question(one)
    assert edited in str(edit) and not os.path.exists(ran), edit
    hub.answer(edit, next(o['id'] for o in edit['options'] if o['kind'] == 'allow_once'))
    run = until(lambda: (now := hub.question(one)) != edit and now, what='the other question')
    assert f'touch {ran}' in str(run) and not os.path.exists(ran), run
    with open(edited, encoding='utf-8') as f:
        assert f.read().rstrip('\n') == 'hello'
    yes = next(o['id'] for o in run['options'] if o['kind'] == 'allow_once')
    hub.ok('inbox', 'answer', run['request_id'], yes)
    events = hub.ended(one, after)
    assert events[-1] == ('stop', {'stop_reason': 'end_turn'}), events
    assert said(events).endswith('Done.') and os.path.exists(ran), events


@pytest.mark.parametrize('name', ['claude', 'codex-zed'])
def test_it_wants_a_log_in(hub, name):
    if missing(name):
        pytest.skip(missing(name))
    one = hub.talk(f'{name}-out')
    error = cause(hub.turn(one, 'hello', seconds=60))
    assert error['code'] == 'agent_login_required', error
    assert 'Authentication required' in error['message'], error
    hub.of(one, '', 'PATCH', {'archived': True})


@pytest.mark.skipif(not os.path.exists(CLAUDE_CODE), reason='Claude Code from npm is missing')
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
    done = subprocess.run([*alone, *me.prefix, CLAUDE_CODE, 'mcp', 'list'],
                          env={**os.environ, **env}, capture_output=True, text=True, timeout=60,
                          check=False)
    assert 'holt: ' in done.stdout and 'Connected' in done.stdout, done


@pytest.mark.parametrize('name', [pytest.param(name, marks=[
    *marks(name), *([] if name == 'claude' else [pytest.mark.whole])]) for name in TABLE])
def test_for_an_editor(hub, name):
    """By the SDK as the editor: it edits what the editor allows, and tells what can be chosen."""
    editor = Editor(hub, name)
    edited = hub.file(f'{name}-for-an-editor.txt')
    if TABLE[name].get('knows_no_new_files'):
        open(edited, 'w', encoding='utf-8').close()
        os.chown(edited, hub.who.uid, hub.who.uid)
    session = editor.open()
    turn = editor.start('prompt', sessionId=session,
                        prompt=[{'type': 'text', 'text': f'DO edit {edited} hello'}])
    asked, = editor.next('ask', 120)
    assert edited in str(asked), asked
    editor.say('answer', {'outcome': 'selected', 'optionId': next(
        o['optionId'] for o in asked['options'] if o['kind'] == 'allow_once')})
    assert editor.next(turn, 120)[0] == {'stopReason': 'end_turn'}
    with open(edited, encoding='utf-8') as f:
        assert f.read().rstrip('\n') == 'hello'
    assert editor.said().endswith('Done.')
    if name == 'claude':
        mode = next(o for o in hub.of(session)['options'] if o['id'] == 'mode')
        assert 'acceptEdits' in [c['value'] for c in mode['choices'] if c['unattended']], mode
        hub.of(session, '', 'PATCH', {'options': {'mode': 'plan'}})
        until(lambda: editor.updates('config_option_update') or editor.seen.append(
            editor.lines.get(timeout=60)), what='the mode')
        assert {o['id']: o['value'] for o in hub.of(session)['options']}['mode'] == 'plan'
    editor.end()
    gone(hub, session)
