"""Agents of others in sandboxes of a hub, with a model that does what prompts say (real_agents.py):
each scenario with each agent. Those that are large are driven by `make test-agents` alone, and so
are scenarios for which an agent starts anew.

And Claude Code itself with an entry of `holt mcp config`."""

import json
import os
import signal
import subprocess

import pytest

import host
from client import until
from real_agents import AGENTS, NODE, TABLE, Model, made, missing, program
from test_agent_acp import Editor, gone
from test_agents import Hub, cause, of_kind

CLAUDE_CODE = os.path.join(AGENTS, 'node_modules', '@anthropic-ai', 'claude-agent-sdk-linux-x64',
                           'claude')
# scenario and agent: why it can't pass, which is the agent's own doing
NO_PLAN = 'it offers its model no tool for a plan'
WRONG = {
    ('tells_a_plan', 'codex'): NO_PLAN,
    ('tells_a_plan', 'copilot'): NO_PLAN,
    ('tells_a_plan', 'gemini'): NO_PLAN,
    ('tells_a_plan', 'qwen'): 'its tool for a plan is one that the model must search for',
    ('calls_the_hub', 'qwen'): 'it keeps the tools of servers until the model searches for them',
}
# and why it may not pass
UNSURE = {
    ('comes_back_after_a_crash', 'gemini'):
        'in the minute in which a session began, it writes over what it should load',
    **{(scenario, 'qwen'): 'after a prompt that was cancelled it may not end the next one'
       for scenario in ('is_cancelled', 'goes_on_where_its_model_fails', 'changes_its_mode',
                        'comes_back_after_a_crash')},
}


def marks(name):
    yield pytest.mark.skipif(missing(name) is not None, reason=str(missing(name)))
    if TABLE[name].get('large'):
        yield pytest.mark.whole


NAMES = [pytest.param(name, marks=[*marks(name)]) for name in TABLE]


class AgentsHub(Hub):
    """A hub with all agents of the table that are here, and a conversation with each."""

    def __init__(self, who, home, state, model, words=(), **options):
        self.model, self.state, self.talks = model, state, {}
        agents = {name: made(name, who, state) for name in TABLE if not missing(name)}
        for name in ('claude', 'codex-zed'):  # as they are before a log-in
            if name in agents:
                env = {k: v for k, v in agents[name]['env'].items() if 'DISABLE' in k}
                agents[f'{name}-out'] = {**agents[name], 'env': env}
                agents[f'{name}-out'].pop('authMethod', None)
        for name in [name for name in TABLE if name in agents]:
            sandbox = {**agents[name]['sandbox'], 'network': []}
            agents[f'{name}-alone'] = {**agents[name], 'sandbox': sandbox}
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

    def permission(self, talk, after):
        """The next permission of a turn, which must not end before."""
        def look():
            ended = [data for kind, data in self.events(talk, after) if kind in ('stop', 'error')]
            assert not ended, self.events(talk, after)
            return [q for q in self.call('GET', '/api/prompts?state=pending')['prompts']
                    if q['session_id'] == talk]
        return until(look, 60, 'a permission')[0]

    def file(self, name):
        return os.path.join(self.site, name)

    def prompts(self, text):
        """The requests to the model for a prompt with that text."""
        return [r for r in list(self.model.requests) if text in json.dumps(r['body'])]


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    state = tmp_path_factory.mktemp('state')
    os.chmod(state, 0o755)
    with Model() as model, AgentsHub(me, str(tmp_path_factory.mktemp('real')), str(state),
                                     model) as shared:
        yield shared
    before.check()


@pytest.fixture(scope='module', params=NAMES)
def name(request, hub):
    """An agent, with whom one conversation lives from scenario to scenario."""
    yield request.param
    if request.param in hub.talks:
        hub.of(hub.talks[request.param], '', 'PATCH', {'archived': True})


@pytest.fixture(autouse=True)
def wrong(request):
    if 'name' in request.fixturenames:
        case = (request.node.originalname.removeprefix('test_it_'),
                request.node.callspec.params['name'])
        why = WRONG.get(case) or UNSURE.get(case)
        if why:
            request.node.add_marker(pytest.mark.xfail(reason=why, strict=case in WRONG))


def said(events):
    return ''.join(data['text'] for data in of_kind(events, 'agent_message'))


def done(events):
    assert events[-1] == ('stop', {'stop_reason': 'end_turn'}), events
    assert said(events).rstrip().endswith('Done.'), events
    return events


def allowing(question):
    return next(o['id'] for o in question['options'] if o['kind'] == 'allow_once')


def test_it_edits_and_runs(hub, name):
    """What it is allowed, over REST and by the command line."""
    one = hub.with_agent(name)
    edited, ran = hub.file(f'{name}.txt'), hub.file(f'{name}-ran')
    if TABLE[name].get('knows_no_new_files'):
        open(edited, 'w', encoding='utf-8').close()
        os.chown(edited, hub.who.uid, hub.who.uid)
    after = hub.send(one, f'DO edit {edited} hello', f'DO run touch {ran}')
    if TABLE[name].get('asks', True):
        edit = hub.permission(one, after)
        assert edited in json.dumps(edit) and not os.path.exists(ran), edit
        hub.answer(edit, allowing(edit))
        run = until(lambda: (now := hub.permission(one, after)) != edit and now, 60, 'the other')
        assert f'touch {ran}' in json.dumps(run) and not os.path.exists(ran), run
        hub.ok('inbox', 'answer', run['request_id'], allowing(run))
    done(hub.ended(one, after))
    with open(edited, encoding='utf-8') as f:
        assert f.read().rstrip('\n') == 'hello'
    assert os.path.exists(ran)


def test_it_takes_no_for_an_answer(hub, name):
    if not TABLE[name].get('asks', True):
        pytest.skip(f'{name} asks nothing where its own sandbox is off')
    one, ran = hub.with_agent(name), hub.file(f'{name}-denied')
    after = hub.send(one, f'DO run touch {ran}')
    question = hub.permission(one, after)
    hub.answer(question, next(o['id'] for o in question['options'] if o['kind'] == 'reject_once'))
    assert hub.ended(one, after)[-1][0] == 'stop'
    assert not os.path.exists(ran)


def test_it_tells_a_plan(hub, name):
    """As a plan, or as a call of its tool for tasks."""
    one = hub.with_agent(name)
    events = done(hub.turn(one, 'DO plan'))
    assert 'Look around' in json.dumps(of_kind(events, 'plan') + of_kind(events, 'tool_call')
                                       + of_kind(events, 'tool_call_update')), events


def test_it_calls_the_hub(hub, name):
    """Whose tools it got with its session, and which knows its conversation."""
    one = hub.with_agent(name)
    after = hub.send(one, 'DO call conversation_get_current {}', 'DO tell')

    def answered():
        for question in hub.call('GET', '/api/prompts?state=pending')['prompts']:
            hub.answer(question, allowing(question))
        events = hub.events(one, after)
        return events if [e for e in events if e[0] == 'stop'] else None
    assert one in said(done(until(answered, 60, 'the end of a turn')))


def test_it_is_cancelled(hub, name):
    """While its model speaks, and while that says nothing; then it goes on."""
    one = hub.with_agent(name)
    for how in (f'DO slow 60\nDO say {name} slow', f'DO hang\nDO say {name} hang'):
        after = hub.send(one, how)
        until(lambda: hub.prompts(how.splitlines()[1]), 60, 'the request to the model')
        hub.of(one, '/cancel', 'POST', {})
        assert hub.ended(one, after)[-1] == ('stop', {'stop_reason': 'cancelled'})
    done(hub.turn(one, 'DO say again'))


def test_it_goes_on_where_its_model_fails(hub, name):
    """Once, where it asks again by itself; and for good, where it says so and takes the next
    prompt."""
    one = hub.with_agent(name)
    done(hub.turn(one, 'DO fail 503 1'))
    events = hub.turn(one, 'DO fail 400')
    assert events[-1][0] in ('stop', 'error') and not said(events).endswith('Done.'), events
    for queued in hub.of(one, '/queue')['messages']:
        hub.of(one, f'/queue/{queued["id"]}', 'DELETE')
    done(hub.turn(one, 'DO say again'))


def test_it_changes_its_mode(hub, name):
    """To one in which it edits without asking, by the command line, and back."""
    free = TABLE[name].get('free')
    if not free:
        pytest.skip(f'{name} has no mode in which it asks less')
    one, edited = hub.with_agent(name), hub.file(f'{name}.txt')
    option = free.split('=')[0]
    done(hub.turn(one, 'DO say hello'))  # what it has to choose is known from its first session on
    before = {o['id']: o['value'] for o in hub.of(one)['options']}[option]
    with open(edited, 'w', encoding='utf-8'):
        os.chown(edited, hub.who.uid, hub.who.uid)
    hub.ok('conversations', 'set', one, free)
    events = done(hub.turn(one, f'DO edit {edited} {name} free'))
    assert not of_kind(events, 'ui_prompt'), events
    with open(edited, encoding='utf-8') as f:
        assert f.read().rstrip('\n') == f'{name} free'
    hub.ok('conversations', 'set', one, f'{option}={before}')


def of_program(name, hub):
    """The processes of an agent's program below the hub."""
    return [p for p in host.below(hub.proc.pid).values()
            if p.pid in {q.pid for q in host.with_argument(program(name), hub.proc.pid)}]


@pytest.mark.whole
def test_it_comes_back_after_a_crash(hub, name):
    """With its session, if it can resume one."""
    one = hub.with_agent(name)
    done(hub.turn(one, f'DO say word-of-{name}'))
    until(lambda: subprocess.run(['grep', '-rqs', f'word-of-{name}', f'{hub.state}/state-{name}'],
                                 check=False).returncode == 0, what='the session on the disk')
    after = hub.send(one, f'DO slow 60\nDO say {name} crash')
    until(lambda: hub.prompts(f'{name} crash'), 60, 'the request to the model')
    for process in of_program(name, hub):
        os.kill(process.pid, signal.SIGKILL)
    assert cause(hub.ended(one, after))['code'] == 'agent_failed'
    done(hub.turn(one, f'DO say {name} is back'))
    assert any(f'word-of-{name}' in json.dumps(request['body'])
               for request in hub.prompts(f'{name} is back')), 'it has forgotten what was before'


@pytest.mark.whole
def test_it_says_that_its_model_is_not_granted(hub, name):
    """Soon, also where it tries again for minutes."""
    one = hub.talk(f'{name}-alone')
    after = hub.send(one, 'DO say hello')
    until(lambda: [told for told in of_kind(hub.events(one, after), 'network')
                   if 'model.holt' in told['message']], 60, 'the denied host')
    hub.of(one, '/cancel', 'POST', {})
    hub.of(one, '', 'PATCH', {'archived': True})


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
        # An agent may have told of another option before.
        until(lambda: {o['id']: o['value'] for o in hub.of(session)['options']}['mode'] == 'plan',
              what='mode plan')
    editor.end()
    gone(hub, session)
