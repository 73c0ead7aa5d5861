"""`holt agent acp`: an editor, by the protocol's own SDK, whose agent runs in a sandbox of Holt."""

import contextlib
import json
import os
import queue
import subprocess
import threading

import pytest

import host
from client import until
from test_agents import AGENTS, Hub, SDK, mock
from who import node_program

EDITOR = os.path.join(AGENTS, 'editor.mjs')
CAN = {'fs': {'readTextFile': True, 'writeTextFile': True}, 'terminal': True}

pytestmark = pytest.mark.skipif(not os.path.exists(SDK),
                                reason='the SDK is missing: scripts/deps test')


class Editor:
    def __init__(self, hub, agent):
        self.hub = hub
        self.proc = subprocess.Popen(
            [node_program(20), EDITOR, *hub.who.argv('agent', 'acp', agent)],
            env={**os.environ, **hub.env}, cwd='/', stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        self.seen = []
        self.calls = 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.proc.stdout:
            self.lines.put(json.loads(line))

    def say(self, *what):
        self.proc.stdin.write(json.dumps(what) + '\n')
        self.proc.stdin.flush()

    def next(self, kind, seconds=60):
        """The first of this kind that was not given yet."""
        while True:
            for what in self.seen:
                if what[0] == kind:
                    self.seen.remove(what)
                    return what[1:]
            self.seen.append(self.lines.get(timeout=seconds))

    def start(self, method, **params):
        self.calls += 1
        self.say(self.calls, method, params)
        return self.calls

    def call(self, method, **params):
        result, error = self.next(self.start(method, **params))
        assert error is None, error
        return result

    def fails(self, method, **params):
        result, error = self.next(self.start(method, **params))
        assert error, result
        return error

    def open(self, **params):
        self.call('initialize', protocolVersion=1, clientCapabilities=CAN)
        return self.call('newSession', cwd=self.hub.site, mcpServers=[], **params)['sessionId']

    def begin(self, session, *steps):
        return self.start('prompt', sessionId=session,
                          prompt=[{'type': 'text', 'text': json.dumps(steps)}])

    def turn(self, session, *steps):
        """The stop reason, and what the agent said."""
        result, error = self.next(self.begin(session, *steps))
        assert error is None, error
        return result['stopReason'], self.said()

    def updates(self, kind):
        found = [what[1] for what in self.seen
                 if what[0] == 'update' and what[1]['sessionUpdate'] == kind]
        self.seen = [what for what in self.seen if what[0] != 'update' or what[1] not in found]
        return found

    def said(self):
        return ''.join(u['content']['text'] for u in self.updates('agent_message_chunk'))

    def end(self):
        self.proc.stdin.close()
        self.proc.wait(30)
        self.proc.stdout.close()
        said = self.proc.stderr.read()
        self.proc.stderr.close()
        return said


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    agents = {'mock': mock(), 'offers': mock('--offers'), 'locked': mock('--auth', ''),
              'missing': mock(command='no-such-agent')}
    with Hub(me, str(tmp_path_factory.mktemp('editor')), agents) as shared:
        yield shared
    before.check()


@pytest.fixture
def editors(hub):
    with contextlib.ExitStack() as stack:
        def made(agent='mock'):
            editor = Editor(hub, agent)
            stack.callback(lambda: editor.proc.poll() is None and editor.end())
            return editor
        yield made


def gone(hub, session):
    until(lambda: hub.of(session)['archived'] and not hub.of(session)['is_running'],
          what='the end of its agent')


def test_a_turn(hub, editors):
    """In the sandbox, at the folder's own path; nothing is asked of the editor's own files."""
    editor = editors()
    session = editor.open()
    why, said = editor.turn(
        session, ['think', 'hm'], ['say', 'Hel', 'lo '], ['tool', 'c', 'Edit a'],
        ['update', {'sessionUpdate': 'plan', 'entries': [
            {'content': 'x', 'priority': 'high', 'status': 'pending'}]}],
        ['shell', 'pwd; echo $HOLT_HOME; ls ' + hub.home],
        ['ask', 'fs/write_text_file', {'path': hub.site + '/by-editor', 'content': 'x'}])
    assert why == 'end_turn' and said.startswith('Hello '), said
    assert hub.site in said and 'config.json' not in said and said.endswith('{}'), said
    with open(os.path.join(hub.site, 'by-editor'), encoding='utf-8') as f:
        assert f.read() == 'x'
    call, = editor.updates('tool_call')
    assert (call['toolCallId'], call['title'], call['rawInput']) == ('c', 'Edit a', {'path': '/a'})
    assert editor.updates('tool_call_update')[-1]['status'] == 'completed'
    assert editor.updates('plan')[0]['entries'][0]['content'] == 'x'
    assert editor.updates('agent_thought_chunk')[0]['content']['text'] == 'hm'
    assert not [what for what in editor.seen if what[0] in ('read', 'write', 'terminal')]
    long = editor.turn(session, ['shell', 'yes x | tr -d "\\n" | head -c 200000'])
    assert long == ('end_turn', 'x' * 200_000)
    editor.end()
    gone(hub, session)


def test_a_permission(hub, editors):
    """Answered in the editor, or in Holt's inbox: then the editor needs to ask no more."""
    editor = editors()
    session = editor.open()
    turn = editor.begin(session, ['permit', 'Run it'])
    asked, = editor.next('ask')
    assert asked['toolCall']['title'] == 'Run it'
    assert [(o['optionId'], o['kind']) for o in asked['options']][0] == ('yes', 'allow_once')
    editor.say('answer', {'outcome': 'selected', 'optionId': 'no'})
    assert editor.next(turn)[0] == {'stopReason': 'end_turn'}
    assert '"no"' in editor.said()
    turn = editor.begin(session, ['permit', 'Run it'])
    editor.next('ask')
    hub.answer(hub.question(session), 'yes')
    assert editor.next(turn)[0] == {'stopReason': 'end_turn'}
    assert '"yes"' in editor.said()


def test_cancel_and_load(hub, editors):
    editor = editors()
    session = editor.open()
    assert editor.turn(session, ['say', 'first']) == ('end_turn', 'first')
    turn = editor.begin(session, ['say', 'now'], ['sleep', 60])
    until(lambda: editor.next('update')[0].get('content', {}).get('text') == 'now', what='a word')
    editor.call('cancel', sessionId=session)
    assert editor.next(turn)[0] == {'stopReason': 'cancelled'}
    editor.end()
    gone(hub, session)
    editor = editors()
    editor.call('initialize', protocolVersion=1, clientCapabilities=CAN)
    editor.call('loadSession', sessionId=session, cwd=hub.site, mcpServers=[])
    assert editor.said() == 'firstnow'
    assert len(editor.updates('user_message_chunk')) == 2
    assert editor.turn(session, ['say', 'third']) == ('end_turn', 'third')
    assert editor.fails('loadSession', sessionId='../x', cwd='/', mcpServers=[])['code'] == -32602


def test_modes(hub, editors):
    editor = editors('offers')
    session = editor.open()
    editor.turn(session, ['say', 'x'])
    until(lambda: editor.updates('config_option_update') or editor.seen.append(
        editor.lines.get(timeout=60)), what='its options')
    told = editor.call('setSessionMode', sessionId=session, modeId='plan')
    assert told is not None
    editor.call('setSessionConfigOption', sessionId=session, configId='fast', type='boolean',
                value=True)
    until(lambda: {o['id']: o['value'] for o in hub.of(session)['options']}['fast'] == 'true',
          what='the option')
    assert json.loads(editor.turn(session, ['values'])[1])['mode'] == 'plan'
    assert editor.fails('setSessionMode', sessionId=session, modeId='none')['code'] == -32602


def test_what_fails(hub, editors):
    """A log-in, an agent that does not start, its crash, an unknown one."""
    editor = editors('locked')
    session = editor.open()
    for _ in range(2):  # the hub keeps no prompt of the first
        error = editor.next(editor.begin(session, ['say', 'x']))[1]
        assert error['code'] == -32000 and 'Authentication' in error['message'], error
    assert hub.of(session)['queue_length'] == 0
    editor = editors('missing')
    session = editor.open()
    assert 'no-such-agent' in editor.next(editor.begin(session, ['say', 'x']))[1]['message']
    editor = editors()
    session = editor.open()
    assert 'status 3' in editor.next(editor.begin(session, ['exit', 3]))[1]['message']
    assert editor.turn(session, ['say', 'again']) == ('end_turn', 'again')
    hub.fails(125, 'no agent nobody', 'agent', 'acp', 'nobody')


def test_the_editor_is_killed(hub, editors):
    """Also where `holt agent acp` itself gets no time: its agent ends."""
    editor = editors()
    session = editor.open()
    editor.begin(session, ['say', 'now'], ['sleep', 600])
    until(lambda: editor.next('update')[0].get('content', {}).get('text') == 'now', what='a word')
    editor.say('kill')
    editor.next('exit')
    gone(hub, session)
