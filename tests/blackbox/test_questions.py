"""Questions to people: several at once, the first answer counts, they stay when the hub is killed,
and an agent never answers for a person."""

import concurrent.futures
import datetime
import json
import os
import signal
import subprocess
import time

import pytest

import host
from approval import pending, question
from client import data_of, until
from rest import Failed
from test_approvals import HOSTILE, Person
from test_keys import as_bearer, key
from test_policy import Hub
from test_serve import Session, post
from who import node

HIDDEN = set('\x1b\x07\u202e\u2066\u200b\x7f\x9b\r')
RULE = {'name': 'ask me', 'actions': ['sandbox.exec'], 'then': 'ask'}


@pytest.fixture(scope='module')
def home(me, tmp_path_factory):
    path = tmp_path_factory.mktemp('questions')
    os.chown(path, me.uid, me.uid)
    return path


@pytest.fixture(scope='module')
def hub(me, home):
    before = host.Residue(me.trees)
    with Hub(me, home, policy={'rules': [RULE]}) as shared:
        yield shared
    before.check()


@pytest.fixture(scope='module')
def pool():
    with concurrent.futures.ThreadPoolExecutor(60) as made:
        yield made


@pytest.fixture(scope='module')
def patient(hub, pool):
    """A client that gives up after twenty seconds without a word, and is answered after more."""
    url = f'http://{hub.address[0]}:{hub.address[1]}/mcp?tools=ui'
    return pool.submit(node, 'asks_person.mjs', {'url': url, 'token': hub.token,
                                                'timeout': 20000}, timeout=280)


def inbox(hub, query=''):
    return hub.call('GET', f'/api/prompts{query}')['prompts']


def get(hub, one):
    return hub.call('GET', f'/api/prompts/{one}')


def answer(hub, one, option=None, **more):
    return hub.post(f'/api/prompts/{one}/answer', **({'option_id': option} if option else {}),
                    **more)


def asked(hub, text, n=1):
    """The ids of so many questions with this text, once they wait."""
    def look():
        return [q['request_id'] for q in inbox(hub) if q['question'] == text]
    return until(lambda: len(found := look()) == n and found, what='a question')


def moment(text):
    return datetime.datetime.fromisoformat(text[:-1] + '+00:00').timestamp()


def refused(call, *arguments, **more):
    with pytest.raises(Failed) as failed:
        call(*arguments, **more)
    return failed.value


class Agent(Session):
    """A conversation with the tools of the set ui."""

    def __init__(self, hub, **capabilities):
        super().__init__(hub, '/mcp?tools=ui', **capabilities)

    def ask(self, tool, /, **arguments):
        with self.hub.wire() as wire:
            self.call(wire, tool, **arguments)
            result = self.result(wire)
        assert not result.get('isError'), result
        return data_of(result)


def test_the_asked_for(hub, patient, pool):
    """Yes or no, and what the person sees of it."""
    agent = Agent(hub)
    run = pool.submit(agent.ask, 'ui_ask_yes_no', question='Deploy?', yes_label='Do', no_label='No')
    one, = asked(hub, 'Deploy?')
    shown = get(hub, one)
    assert {k: shown[k] for k in ('kind', 'origin', 'state', 'principal', 'options')} == {
        'kind': 'yes_no', 'origin': 'mcp', 'state': 'pending', 'principal': 'token',
        'options': [{'id': 'yes', 'label': 'Do'}, {'id': 'no', 'label': 'No'}]}
    assert shown['created_at'] < shown['expires_at'] and 'answered_by' not in shown
    told = answer(hub, one, 'yes')
    assert (told['state'], told['label'], told['answered_by'], told['answered_over']) == (
        'answered', 'Do', 'token', 'rest')
    assert run.result(30) == {'response': 'yes', 'label': 'Do'}


def test_each_tool(hub, pool):
    agent = Agent(hub)
    schema = {'type': 'object', 'required': ['port'], 'properties': {
        'port': {'type': 'integer', 'minimum': 1}, 'mail': {'type': 'string', 'format': 'email'}}}
    cases = [
        ('ui_options_buttons', {'options': ['a', 'b']}, {'option_id': '2'},
         {'selected': 'b', 'index': 1, 'timed_out': False, 'cancelled': False}),
        ('ui_options_combo', {'options': list('abcdefghij'), 'allow_free_text': True},
         {'free_text': 'other'}, {'selected': '', 'index': -1, 'timed_out': False,
                                  'cancelled': False, 'free_text': 'other'}),
        ('ui_textbox', {'title': 't', 'text': 'old'}, {'free_text': 'new'},
         {'result': 'new', 'changed': True, 'aborted': False, 'timed_out': False}),
        ('ui_form', {'title': 't', 'schema': schema}, {'values': {'port': 8080}},
         {'submitted': True, 'cancelled': False, 'timed_out': False, 'values': {'port': 8080}}),
    ]
    for tool, arguments, reply, wanted in cases:
        run = pool.submit(agent.ask, tool, **arguments, question=tool)
        one, = asked(hub, tool)
        answer(hub, one, **reply)
        assert run.result(30) == wanted, tool
    assert agent.ask('ui_notify', title='Done', message='All of it', style='success')['success']
    one, = asked(hub, 'All of it')
    assert answer(hub, one, 'seen')['state'] == 'answered'
    one = agent.ask('ask', kind='yes_no', question='Later?')['request_id']
    assert agent.ask('ask_result', request_id=one)['state'] == 'pending'
    run = pool.submit(agent.ask, 'ask_result', request_id=one, wait_seconds=50)
    answer(hub, one, 'no')
    assert run.result(30)['response'] == 'no'
    for tool, arguments in (('ui_options_buttons', {'options': list('abcde')}),
                            ('ui_options_combo', {'options': []}),
                            ('ui_ask_yes_no', {'question': 'x' * 501}),
                            ('ui_ask_yes_no', {'question': ''}),
                            ('ui_ask_yes_no', {'question': 'x', 'timeout_seconds': 3601}),
                            ('ui_ask_yes_no', {'question': 'x', 'kind': 'notify'}),
                            ('ui_options_buttons', {'options': ['a', 'a']}),
                            ('ui_form', {'title': 't', 'schema': {'type': 'string'}})):
        with hub.wire() as wire:
            agent.call(wire, tool, **arguments)
            result = agent.result(wire)
        assert result['isError'] and 'invalid_arguments' in str(result), (tool, arguments)


def test_of_answers_at_the_same_moment_one_counts(hub):
    for _ in range(3):
        one = question(hub)
        wires = [(hub.wire(), word) for word in ('yes', 'no') * 8]
        for wire, word in wires:
            wire.send(hub.request('POST', f'/api/prompts/{one}/answer',
                                  body=json.dumps({'option_id': word})))
        replies = [(wire.reply('POST'), word) for wire, word in wires]
        first, = [word for reply, word in replies if reply.status == 200]
        for reply, _ in replies:
            error = json.loads(reply.body).get('error')
            assert not error or (error['code'], reply.status) == ('already_answered', 409), reply
            assert not error or 'was answered by token over rest at 20' in error['cause'], error
        assert get(hub, one)['option_id'] == first
        for wire, _ in wires:
            wire.close()


def test_fifty_at_once(hub, pool):
    """Each has its own answer, and the one whose deadline is next comes first."""
    ask = [pool.submit(hub.post, '/api/prompts', kind='yes_no', question='One of many',
                       timeout_seconds=1000 - i) for i in range(50)]
    ids = asked(hub, 'One of many', 50)
    deadlines = [q['expires_at'] for q in inbox(hub) if q['question'] == 'One of many']
    assert deadlines == sorted(deadlines)
    for i, one in enumerate(ids):
        answer(hub, one, 'yes' if i % 2 else 'no')
    told = {run.result(30)['request_id']: run.result()['response'] for run in ask}
    assert told == {one: 'yes' if i % 2 else 'no' for i, one in enumerate(ids)}


def test_only_what_was_offered(hub):
    one = question(hub)
    for body in ({'option_id': 'maybe'}, {}, {'free_text': 'yes'}, {'values': {'a': 1}},
                 {'option_id': 'yes', 'free_text': 'yes'}, {'label': 'Yes'}):
        failed = refused(answer, hub, one, **body)
        assert (failed.status, failed.code) == (400, 'invalid_input'), body
    form = question(hub, kind='form', schema={'type': 'object', 'properties': {
        'n': {'type': 'integer', 'maximum': 3}}})
    for values in ({'n': 4}, {'n': 'x'}, {'m': 1}, {'n': 1.5}):
        assert refused(answer, hub, form, values=values).status == 400, values
    assert answer(hub, form, values={'n': 3})['values'] == {'n': 3}
    assert answer(hub, one, 'no')['label'] == 'No'
    assert refused(answer, hub, 'qst-' + '0' * 32, 'no').status == 404


def test_nobody_answers(hub, pool):
    first, second = Agent(hub), Agent(hub)
    run = pool.submit(first.ask, 'ui_ask_yes_no', question='In time?', timeout_seconds=4)
    buttons = pool.submit(second.ask, 'ui_options_buttons', options=['a'], timeout_seconds=4,
                          question='In time?')
    one = asked(hub, 'In time?', 2)[0]
    assert run.result(60) == {'response': 'timeout', 'label': ''}
    assert buttons.result(60) == {'selected': '', 'index': -1, 'timed_out': True,
                                  'cancelled': False}
    assert get(hub, one)['state'] == 'expired'
    failed = refused(answer, hub, one, 'yes')
    assert (failed.status, failed.code) == (410, 'expired')


def test_taken_back(hub, pool):
    """By a person, who asked is told; by who asked, a person is told."""
    agent = Agent(hub)
    run = pool.submit(agent.ask, 'ui_ask_yes_no', question='Wanted?')
    one, = asked(hub, 'Wanted?')
    assert hub.post(f'/api/prompts/{one}/cancel')['state'] == 'cancelled'
    assert run.result(30)['response'] == 'cancelled'
    with hub.wire() as wire, hub.wire() as other:
        agent.call(wire, 'ui_ask_yes_no', question='Still wanted?')
        one, = asked(hub, 'Still wanted?')
        other.send(post(hub, {'jsonrpc': '2.0', 'method': 'notifications/cancelled',
                              'params': {'requestId': 7}}, fields=agent.fields))
        until(lambda: get(hub, one)['state'] == 'cancelled', what='its end')
    assert refused(answer, hub, one, 'yes').status == 409


def test_the_asker_cannot_answer(hub, pool):
    own = as_bearer(hub, key(hub, 'asks', ['admin']))
    plain = as_bearer(hub, key(hub, 'plain'))
    one = question(own)
    for who in (own, plain):
        failed = refused(answer, who, one, 'yes')
        assert (failed.status, failed.code) == (403, 'forbidden')
    assert refused(plain.call, 'GET', f'/api/prompts/{one}').status == 404
    assert refused(plain.post, f'/api/prompts/{one}/cancel').status == 404
    assert not [q for q in inbox(plain) if q['request_id'] == one]
    mine = question(plain)
    assert [q['request_id'] for q in inbox(plain)] == [mine]
    assert get(own, mine)['principal'] == 'key:plain'
    assert answer(own, mine, 'yes')['answered_by'] == 'key:asks'
    assert answer(hub, one, 'yes')['state'] == 'answered'


def test_bounds(hub):
    many = as_bearer(hub, key(hub, 'many'))
    made = [question(many) for _ in range(64)]
    failed = refused(question, many)
    assert (failed.status, failed.code) == (429, 'quota_exceeded')
    assert question(hub)  # others have room
    for one in made:
        many.post(f'/api/prompts/{one}/cancel')


def test_shares_go_by_who_pays(hub):
    """A key and all keys that it made leave half of the places to others."""
    first = as_bearer(hub, key(hub, 'pays', ['admin']))
    line = [first, *(as_bearer(hub, key(first, f'pays-{n}', ['admin'])) for n in range(8))]
    other = as_bearer(hub, key(hub, 'pays-not'))
    made = []
    for who in line:
        for _ in range(64):
            status, told = who.asked('POST', '/api/prompts', {
                'kind': 'yes_no', 'question': 'Go on?', 'wait': False})
            if status == 429:
                break
            made.append(told['request_id'])
    assert 64 < len(made) <= 256
    assert 'of all that share with it' in refused(question, line[-1]).error['cause']
    for who in (other, hub):
        made += [question(who) for _ in range(32)]
    for one in made:
        hub.post(f'/api/prompts/{one}/cancel')
    for name in ('pays', *(f'pays-{n}' for n in range(8)), 'pays-not'):
        hub.call('DELETE', f'/v1/keys/{name}')


def test_approvals_stand_in_the_inbox(hub, pool):
    box = hub.create()
    for option, wanted in (('approve', None), ('deny', 403)):
        run = pool.submit(hub.exec, box, 'echo asked')
        one, = pending(hub)
        shown, = [q for q in inbox(hub) if q['request_id'] == one['id']]
        assert shown['kind'] == 'permission' and shown['approval'] == one
        assert 'sandbox.exec' in shown['question'] and 'echo asked' in shown['text']
        assert refused(answer, hub, one['id'], 'yes').status == 400
        assert answer(hub, one['id'], option)['option_id'] == option
        assert refused(answer, hub, one['id'], option).status == 409
        error = run.exception(30)
        assert getattr(error, 'status', None) == wanted
    plain = as_bearer(hub, key(hub, 'no-approvals'))
    assert not inbox(plain, '?state=all')
    hub.delete(box)


def test_hostile_texts_are_shown_escaped(hub, me):
    one = question(hub, kind='select', title=HOSTILE, question=HOSTILE, options=[HOSTILE, 'b'],
                   allow_free_text=True)
    texts = []
    for words in (['ls'], ['ls', '-o', 'json'], ['show', one]):
        done = me.run('inbox', *words, env=hub.env)
        assert done.returncode == 0 and b'echo' in done.stdout, done
        texts.append(done.stdout.decode())
    answer(hub, one, '1')
    done = me.run('inbox', 'show', one, env=hub.env)
    for text in [*texts, done.stdout.decode()]:
        assert not set(text) & HIDDEN and '202e' in text, text
    assert get(hub, one)['label'] == HOSTILE


def test_the_command_line(hub, me):
    def run(*words, status=0):
        done = me.run('inbox', *words, env=hub.env, text=True)
        assert done.returncode == status, done
        return done
    with subprocess.Popen(me.argv('inbox', 'watch', '-o', 'json'), env=hub.env, cwd='/',
                          stdout=subprocess.PIPE) as proc:
        one = question(hub, question='Watched?')
        seen = {}

        def follow(state):
            while seen.get(one) != state:
                told = json.loads(proc.stdout.readline())
                seen[told['request_id']] = told['state']
        follow('pending')
        run('answer', one, 'yes')
        follow('answered')
        proc.kill()
    assert 'was answered by local' in run('answer', one, 'no', status=125).stderr
    form = question(hub, kind='form', schema={'type': 'object', 'properties': {
        'n': {'type': 'integer'}, 's': {'type': 'string'}, 'b': {'type': 'boolean'}}})
    run('answer', form, '--set', 'n=x', status=125)
    run('answer', form, '--set', 'n=1', '-s', 's=1', '-s', 'b=true')
    assert get(hub, form)['values'] == {'n': 1, 's': '1', 'b': True}
    box = question(hub, kind='textbox')
    run('answer', '--text', 'of the person', box)
    assert get(hub, box)['free_text'] == 'of the person'
    left = question(hub)
    run('cancel', left)
    assert get(hub, left)['state'] == 'cancelled'


def test_in_a_conversation(hub, pool):
    """It needs the flag, and question and answer are in its log."""
    talk = hub.post('/api/sessions', title='asks')['session_id']
    agent = Agent(hub)
    run = pool.submit(agent.ask, 'ui_ask_yes_no', question='In it?', session_id=talk)
    one, = asked(hub, 'In it?')
    assert [q['request_id'] for q in hub.call('GET', f'/api/sessions/{talk}/prompts')[
        'prompts']] == [one] and get(hub, one)['session_id'] == talk
    other = hub.post('/api/sessions', title='other')['session_id']
    assert refused(hub.post, f'/api/sessions/{other}/prompts/{one}/answer',
                   option_id='yes').status == 404
    hub.post(f'/api/sessions/{talk}/prompts/{one}/answer', option_id='yes')
    assert run.result(30)['response'] == 'yes'
    events = {e['type']: e['data'] for e in hub.call('GET', f'/api/sessions/{talk}/events')[
        'events']}
    assert {k: events['ui_prompt'][k] for k in ('request_id', 'kind', 'question', 'origin')} == {
        'request_id': one, 'kind': 'yes_no', 'question': 'In it?', 'origin': 'mcp'}
    assert events['ui_prompt_answer'] == {
        'request_id': one, 'outcome': 'answered', 'option_id': 'yes', 'label': 'Yes',
        'by': 'token', 'over': 'rest'}
    hub.call('PATCH', f'/api/sessions/{talk}/settings', {'settings': {'can_prompt_user': False}})
    for arguments in ({'session_id': talk}, {'session_id': '20000101-000000-00000000'}):
        with hub.wire() as wire:
            agent.call(wire, 'ui_ask_yes_no', question='Not in it?', **arguments)
            result = agent.result(wire)
        assert result['isError'], result
    assert 'can_prompt_user' in refused(question, hub, session_id=talk).error['cause']
    assert not [q for q in inbox(hub) if q['question'] == 'Not in it?']


class Asking(Person):
    """A conversation whose client has a person, who is asked by the tools of the set ui."""

    def __init__(self, hub):
        Session.__init__(self, hub, '/mcp?tools=ui', elicitation={})

    def asked(self, tool, /, **arguments):
        wire = self.hub.wire()
        self.call(wire, tool, **arguments)
        assert wire.head()[0] == 200
        return wire, self.next(wire, lambda m: m.get('method') == 'elicitation/create')

    def told(self, wire):
        return data_of(super().told(wire))


def test_the_person_at_the_client(hub):
    """Only where the operator says so; others may answer meanwhile."""
    hub.set(policy={'rules': [RULE]}, approvals={'elicitation': ['tok*']})
    person = Asking(hub)
    wire, form = person.asked('ui_ask_yes_no', question=HOSTILE, yes_label='Do')
    schema = form['params']['requestedSchema']
    assert not set(form['params']['message']) & HIDDEN, form
    assert schema['properties']['answer']['enum'] == ['yes', 'no']
    assert schema['properties']['answer']['enumNames'] == ['Do', 'No']
    person.says(form, 'accept', answer='yes')
    assert person.told(wire) == {'response': 'yes', 'label': 'Do'}
    done = [q for q in inbox(hub, '?state=answered') if q['question'] == HOSTILE]
    assert {q['answered_over'] for q in done if q['kind'] == 'yes_no'} == {'elicitation'}
    wire, form = person.asked('ui_form', title='t', schema={
        'type': 'object', 'properties': {'n': {'type': 'integer'}}})
    person.says(form, 'accept', n=7)
    assert person.told(wire)['values'] == {'n': 7}
    wire, form = person.asked('ui_ask_yes_no', question='No thanks')
    person.says(form, 'decline')
    assert person.told(wire)['response'] == 'cancelled'
    wire, form = person.asked('ui_ask_yes_no', question='Somebody else')
    answer(hub, asked(hub, 'Somebody else')[0], 'no')
    person.says(form, 'accept', answer='yes')
    assert person.told(wire)['response'] == 'no'
    wire, form = person.asked('ui_ask_yes_no', question='Dismissed')
    person.says(form, 'cancel')
    answer(hub, asked(hub, 'Dismissed')[0], 'no')
    assert person.told(wire)['response'] == 'no'
    hub.set(policy={'rules': [RULE]})
    with hub.wire() as wire:
        person.call(wire, 'ui_ask_yes_no', question='Not trusted')
        answer(hub, asked(hub, 'Not trusted')[0], 'no')
        assert data_of(person.result(wire))['response'] == 'no'


def test_nobody_can_be_asked(me):
    """In `holt mcp` without a hub, where the client has no person."""
    mcp = me.mcp('--tools', 'ui')
    mcp.initialize()
    answered = mcp.request('tools/call', {'name': 'ui_ask_yes_no', 'arguments': {'question': '?'}})
    assert 'nobody can be asked' in str(answered['result']), answered
    assert mcp.close() == 0


def test_progress_holds_a_client(hub, patient):
    """The official SDK, which would give up after its timeout."""
    one, = asked(hub, 'Still there?')
    since = moment(get(hub, one)['created_at'])
    until(lambda: time.time() - since > 21.5, 60, 'its timeout')
    answer(hub, one, 'yes')
    said = patient.result(60)
    assert json.loads(said['result']['content'][0]['text'])['response'] == 'yes', said
    assert len(said['told']) >= 2 and all(one in text for text in said['told']), said


def test_a_hub_that_ends_or_is_killed_keeps_its_questions(me, home, hub):
    """Who waits is told where the answer will be; asked again, it is the same question."""
    del hub  # its own is another
    before = host.Residue(me.trees)
    folder = os.path.join(home, 'kept')
    os.mkdir(folder)
    os.chown(folder, me.uid, me.uid)
    ids = []
    for end in (signal.SIGTERM, signal.SIGKILL):
        first = Hub(me, folder)
        agent = Agent(first)
        wire = first.wire()
        agent.call(wire, 'ui_ask_yes_no', question=f'Across {end}?')
        one, = asked(first, f'Across {end}?')
        first.end(end)
        if end == signal.SIGTERM:
            assert one in str(agent.result(wire)), 'the client is told'
        wire.close()
        first.kill()
        ids.append(one)
    with Hub(me, folder) as second, second.wire() as wire:
        assert [get(second, one)['state'] for one in ids] == ['pending', 'pending']
        asker = Agent(second)
        asker.call(wire, 'ui_ask_yes_no', question=f'Across {signal.SIGKILL}?')
        answer(second, ids[0], 'no')
        assert Agent(second).ask('ask_result', request_id=ids[0])['response'] == 'no'
        assert asked(second, f'Across {signal.SIGKILL}?') == ids[1:]
        answer(second, ids[1], 'yes')
        assert data_of(asker.result(wire))['response'] == 'yes'
    before.check()


def test_nothing_is_told_of_others(hub, pool):
    """Who waits for changes hears of its own alone, and its cursor does not move for others."""
    own = as_bearer(hub, key(hub, 'hears-own'))
    cursor = own.call('GET', '/api/prompts')['cursor']
    run = pool.submit(own.call, 'GET', f'/api/prompts?after={cursor}&wait_seconds=50')
    for _ in range(5):  # of which the first comes when that waits, or before
        answer(hub, question(hub), 'no')
        assert own.call('GET', '/api/prompts')['cursor'] == cursor and not run.done()
    mine = question(own)
    heard = run.result(30)
    assert [q['request_id'] for q in heard['prompts']] == [mine] and heard['cursor'] != cursor
    answer(hub, mine, 'no')
    over = own.call('GET', f'/api/prompts?after={heard["cursor"]}&wait_seconds=50')
    assert [(q['request_id'], q['state']) for q in over['prompts']] == [(mine, 'answered')]


def test_a_deadline_that_passes_while_no_hub_runs(me, home, hub):
    """Of a question in a conversation, whose end the next hub tells."""
    del hub  # its own is another
    before = host.Residue(me.trees)
    folder = os.path.join(home, 'passed')
    os.mkdir(folder)
    os.chown(folder, me.uid, me.uid)
    first = Hub(me, folder)
    talk = first.post('/api/sessions', title='asks')['session_id']
    one = question(first, session_id=talk, timeout_seconds=1)
    shown = get(first, one)
    first.kill()
    until(lambda: time.time() > moment(shown['expires_at']), what='its deadline')
    with Hub(me, folder) as second:
        assert (get(second, one)['state'], get(second, one)['session_id']) == ('expired', talk)
    before.check()
