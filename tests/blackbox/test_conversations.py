"""Conversations over /api, MCP and the command line: what was acknowledged is kept, whoever asks
sees what is theirs, and no agent gets more than the flags of its conversation."""

import base64
import contextlib
import fcntl
import json
import os
import re
import subprocess
import threading
import time
import urllib.parse

import pytest

from approval import question
from client import until
from modules import WORKSPACE
from rest import Failed
from soak import soak
from test_hub_cli import Hub as Cli
from test_keys import as_bearer, key
from test_serve import Session, post

NOBODY = '20000101-000000-00000000'


class Hub(Cli):
    """A hub with a workspace; conversations of it by REST."""

    def __init__(self, who, home, *arguments, conversations=None, **options):
        self.folder = os.path.join(home, 'conversations')
        config = os.path.join(home, 'config.json')
        with open(config, 'w', encoding='utf-8') as f:
            json.dump({'workspaces': {'site': {'dir': WORKSPACE, 'agent': 'mock'}},
                       'principals': {'key:*': {'agents': ['*'], 'workspaces': ['*']}},
                       'conversations': conversations or {}}, f)
        for one in (home, config):
            os.chown(one, who.uid, who.uid)
        super().__init__(who, home, '--listen', '127.0.0.1:0', '--pool', '0', *arguments, **options)

    def talk(self, **more):
        return self.post('/api/sessions', **more)['session_id']

    def of(self, talk, more='', method='GET', body=None):
        return self.call(method, f'/api/sessions/{talk}{more}', body)

    def send(self, talk, prompt, **more):
        return self.of(talk, '/queue', 'POST', {'prompt': prompt, **more})

    def waiting(self, talk):
        return [m['message'] for m in self.of(talk, '/queue')['messages']]

    def fails(self, code, method, path, body=None):
        with pytest.raises(Failed) as e:
            self.call(method, path, body)
        assert e.value.error['code'] == code, e.value.error
        return e.value.error['cause']


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    with Hub(me, str(tmp_path_factory.mktemp('conversations')),
             conversations={'tool_prefix': 'mitto_'}) as shared:
        yield shared


@contextlib.contextmanager
def events(hub, path, room=None, last=None):
    """Server-Sent Events as they come: a function that gives the next one, but for beats. room: of
    the socket, for one who does not read. last: where an EventSource goes on."""
    with hub.wire(receive_buffer=room) as wire:
        wire.send(hub.request('GET', path, fields=[f'Last-Event-ID: {last}'] if last else ()))
        status, fields = wire.head()
        assert status == 200 and ('Content-Type', 'text/event-stream') in fields, (status, fields)
        kept = bytearray()

        def following(beats=False):
            while True:
                while b'\n\n' not in kept:
                    kept.extend(wire.chunk())
                text, _, rest = bytes(kept).partition(b'\n\n')
                kept[:] = rest
                *named, said = text.split(b'\n')
                assert said.startswith(b'data: ')
                event = json.loads(said[6:])
                place = event.get('cursor') or event['seq']
                assert named == ([b'id: %s' % str(place).encode()] if place else [])
                if beats or 'alive' not in (event.get('kind'), event.get('type')):
                    return event
        yield following


# ---- people

def test_a_life(hub):
    made = hub.post('/api/sessions', title='one', workspace='site', initial_prompt='hello')
    talk = made['session_id']
    assert made['working_dir'] == WORKSPACE and made['acp_server'] == 'mock'
    assert made['state'] == 'no_agent' and made['queue_length'] == 1 and not made['is_prompting']
    assert made['message_count'] == 1 and made['lock_status'] == 'idle'
    assert talk in [c['session_id'] for c in hub.call('GET', '/api/sessions')['conversations']]
    assert hub.of(talk, '', 'PATCH', {'title': 'other'})['title'] == 'other'
    assert hub.of(talk, '', 'PATCH', {'archived': True})['archived_reason'] == 'manual'
    hub.fails('conflict', 'POST', f'/api/sessions/{talk}/queue', {'prompt': 'x'})
    listed = hub.call('GET', '/api/sessions?archived=true')['conversations']
    assert [c['session_id'] for c in listed] == [talk]
    assert 'archived_at' not in hub.of(talk, '', 'PATCH', {'archived': False})
    hub.of(talk, '', 'DELETE')
    hub.fails('not_found', 'GET', f'/api/sessions/{talk}')
    assert hub.of(talk, '/restore', 'POST', {})['title'] == 'other'
    assert hub.waiting(talk) == ['hello']
    folder = os.path.join(hub.folder, talk)
    modes = [os.stat(os.path.join(folder, one)).st_mode & 0o777 for one in ('', 'events.jsonl')]
    assert modes == [0o700, 0o600]


def test_pages_of_the_list(hub):
    made = [hub.talk(workspace='site', title=f'{n}') for n in range(3)]
    first = hub.call('GET', '/api/sessions?limit=2')
    after = hub.call('GET', f'/api/sessions?limit=1000&cursor={first["next_cursor"]}')
    ids = [c['session_id'] for c in first['conversations'] + after['conversations']]
    assert len(ids) == len(set(ids)) and set(made) <= set(ids) and 'next_cursor' not in after
    assert ids == sorted(ids, reverse=True)


PNG = b'\x89PNG\r\n\x1a\n'


def b64(data):
    return base64.b64encode(data).decode()


@pytest.mark.parametrize('data, kind', [
    (PNG + b'x', 'image/png'), (b'\xff\xd8\xffx', 'image/jpeg'), (b'GIF89a', 'image/gif'),
    (b'RIFF\0\0\0\0WEBP', 'image/webp'), (b'\0\0\0\0\0\0\0\0WEBP', None), (PNG[:7], None),
    (b'<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>', None),
    (b'<!doctype html><script>', None), (b'', None)], ids=str)
def test_a_file_is_what_its_bytes_say(hub, data, kind):
    talk = hub.talk()
    made = hub.of(talk, '/files', 'POST', {'name': 'ünd <b>.svg.png', 'content': b64(data)})
    assert (made['type'], made['image']) == (kind or 'application/octet-stream', bool(kind))
    assert made['size'] == len(data) and made['name'] == 'ünd <b>.svg.png'
    found = hub.of(talk, f'/files/{made["file_id"]}')
    assert base64.b64decode(found.pop('content')) == data and found == made
    assert hub.of(talk, '/files')['files'] == [made]
    # never a page, whatever is in it
    reply = hub.raw('GET', f'/api/sessions/{talk}/files/{made["file_id"]}')
    assert reply.get('Content-Type') == 'application/json'


def test_files_are_kept_within_bounds(hub):
    talk = hub.talk()
    path = f'/api/sessions/{talk}/files'
    for name in ('', '..', '.x', 'a/b', '/etc/x', 'a\n', 'a\x7f', 'x' * 121):
        hub.fails('invalid_input', 'POST', path, {'name': name, 'content': ''})
    hub.fails('invalid_input', 'POST', path, {'name': 'x', 'content': 'no base64'})
    most = b64(bytes(4 << 20))
    hub.fails('invalid_input', 'POST', path, {'name': 'x', 'content': most + 'AAAA'})
    first = hub.of(talk, '/files', 'POST', {'name': 'most', 'content': most})
    second = hub.of(talk, '/files', 'POST', {'name': 'most', 'content': most})
    hub.fails('body_too_large', 'POST', f'/api/sessions/{talk}/queue',
              {'prompt': 'x', 'files': [first['file_id'], second['file_id']]})
    for _ in range(62):
        last = hub.of(talk, '/files', 'POST', {'name': 'x' * 120, 'content': ''})
    hub.fails('conflict', 'POST', path, {'name': 'x', 'content': ''})
    assert len(hub.of(talk, '/files')['files']) == 64
    hub.of(talk, f'/files/{last["file_id"]}', 'DELETE')
    for gone in (last['file_id'], 'f-' + '0' * 32, '../metadata.json', 'x'):
        hub.fails('not_found', 'GET', f'{path}/{urllib.parse.quote(gone, safe="")}')
        hub.fails('not_found', 'POST', f'/api/sessions/{talk}/queue',
                  {'prompt': 'x', 'files': [gone]})
    # nothing is followed that somebody has put there
    folder = os.path.join(hub.folder, talk, 'files')
    planted = 'f-' + '1' * 32
    os.symlink(os.path.join(hub.home, 'token'), os.path.join(folder, planted + '-x'))
    hub.fails('not_found', 'GET', f'{path}/{planted}')
    assert planted not in [f['file_id'] for f in hub.of(talk, '/files')['files']]
    modes = {os.stat(os.path.join(folder, n)).st_mode & 0o777 for n in os.listdir(folder)
             if not n.startswith(planted)}
    assert modes == {0o600} and os.stat(folder).st_mode & 0o777 == 0o700
    # they go where the conversation goes
    hub.of(talk, '', 'DELETE')
    hub.fails('not_found', 'GET', path)
    hub.of(talk, '/restore', 'POST', {})
    assert hub.of(talk, f'/files/{first["file_id"]}')['size'] == 4 << 20


def test_what_is_idle_is_archived(me, tmp_path):
    """By the hub itself where the operator says so; its children stay."""
    with Hub(me, str(tmp_path)) as hub:
        idle, waits, child, used = (hub.talk(title=name) for name in ('idle', 'waits', 'c', 'u'))
        hub.send(waits, 'x')
    record = os.path.join(hub.folder, child, 'metadata.json')
    with open(record, encoding='utf-8') as f:
        kept = json.load(f)
    with open(record, 'w', encoding='utf-8') as f:
        json.dump({**kept, 'parent_session_id': idle}, f)
    for one in (idle, waits):
        for name in os.listdir(os.path.join(hub.folder, one)):
            os.utime(os.path.join(hub.folder, one, name), (1, time.time() - 2 * 86400))
    for days, archived in ((0, set()), (3, set()), (1, {idle})):
        with Hub(me, str(tmp_path), conversations={'archive_days': days}) as hub:
            def now():
                listed = hub.call('GET', '/api/sessions')['conversations']
                return {c['session_id']: c for c in listed}
            if archived:
                until(lambda: now()[idle]['archived'], what='its end')
            found = now()
            assert {i for i, c in found.items() if c['archived']} == archived
            assert set(found) == {idle, waits, child, used}
            assert found[child]['parent_session_id'] == idle and hub.waiting(waits) == ['x']
    assert found[idle]['archived_reason'] == 'inactivity'


def test_the_queue(hub):
    talk = hub.talk()
    ids = [hub.send(talk, f'p{n}', key=f'k{n}') for n in range(10)]
    assert [one['queue_position'] for one in ids] == list(range(10))
    assert hub.send(talk, 'p3', key='k3')['message_id'] == ids[3]['message_id']
    assert 'wait already' in hub.fails('conflict', 'POST', f'/api/sessions/{talk}/queue',
                                       {'prompt': 'more'})
    moved = hub.of(talk, f'/queue/{ids[9]["message_id"]}/move', 'POST', {'to': 0})
    assert [m['message'] for m in moved['messages']][:2] == ['p9', 'p0']
    hub.of(talk, f'/queue/{ids[0]["message_id"]}', 'DELETE')
    hub.fails('not_found', 'DELETE', f'/api/sessions/{talk}/queue/{ids[0]["message_id"]}')
    assert len(hub.waiting(talk)) == 9 and hub.of(talk)['queue_length'] == 9
    assert hub.of(talk, '/cancel', 'POST', {}) == {'cancelled': False}
    waited = hub.of(talk, '/wait?timeout_seconds=1')
    assert waited['timed_out'] and not waited['success'] and not waited['still_prompting']


def test_a_wait_is_over_though_more_comes(hub):
    """The only prompt is taken out, and the next one comes before the answer."""
    talk = hub.talk()
    last = hub.send(talk, 'first')['message_id']
    with hub.wire() as waits, hub.wire() as changes:
        for wire in (waits, changes):
            assert wire.ask(hub.request('GET', '/version'), 'GET').status == 200
        waits.send(hub.request('GET', f'/api/sessions/{talk}/wait?timeout_seconds=20'))
        for _ in range(2):  # it has been read
            assert changes.ask(hub.request('GET', '/version'), 'GET').status == 200
        changes.send(hub.request('DELETE', f'/api/sessions/{talk}/queue/{last}') +
                     hub.request('POST', f'/api/sessions/{talk}/queue',
                                 body=json.dumps({'prompt': 'second'})))
        waited = json.loads(waits.reply('GET').body)
        assert waited['success'] and not waited['timed_out'], waited
    assert hub.waiting(talk) == ['second']


def test_flags(hub):
    talk = hub.talk()
    flags = {f['name']: f['default'] for f in hub.call('GET', '/api/advanced-flags')}
    assert flags == {'can_do_introspection': False, 'can_send_prompt': False,
                     'can_prompt_user': True, 'can_start_conversation': False,
                     'auto_approve_permissions': False} == hub.of(talk)['flags']
    assert hub.of(talk, '/settings') == {'settings': {}}
    hub.of(talk, '/settings', 'PATCH', {'settings': {'can_send_prompt': True}})
    both = hub.of(talk, '/settings', 'PATCH', {'settings': {'can_prompt_user': False}})
    assert both == {'settings': {'can_send_prompt': True, 'can_prompt_user': False}}
    assert 'can_fly' in hub.fails('invalid_input', 'PATCH', f'/api/sessions/{talk}/settings',
                                  {'settings': {'can_fly': True}})
    assert hub.of(talk, '/settings') == both


def test_others_see_none_of_it(hub):
    """Each key has its own; a child of somebody else's is none."""
    alice, bob = (as_bearer(hub, key(hub, name)) for name in ('alice', 'bob'))
    talk = alice.post('/api/sessions', workspace='site')['session_id']
    assert bob.call('GET', '/api/sessions')['conversations'] == []
    for method, more, body in (('GET', '', None), ('PATCH', '', {'title': 'x'}),
                               ('GET', '/events', None), ('POST', '/queue', {'prompt': 'x'}),
                               ('PATCH', '/settings', {'settings': {}}), ('DELETE', '', None)):
        causes = []
        for one in (talk, NOBODY):
            with pytest.raises(Failed) as e:
                bob.call(method, f'/api/sessions/{one}{more}', body)
            causes.append((e.value.status, e.value.error['cause'].replace(one, NOBODY)))
        assert causes[0] == causes[1] and causes[0][0] == 404, causes
    alice.call('DELETE', f'/api/sessions/{talk}')
    with pytest.raises(Failed) as e:
        bob.call('POST', f'/api/sessions/{talk}/restore', {})
    assert e.value.status == 404
    assert alice.call('POST', f'/api/sessions/{talk}/restore', {})['session_id'] == talk
    with pytest.raises(Failed) as e:
        alice.post('/api/sessions', working_dir='/etc')
    assert e.value.error['code'] == 'forbidden'


# ---- history

def written(hub, talk, rows):
    """Events that an agent could have made, put into the file while no hub has it open."""
    path = os.path.join(hub.folder, talk, 'events.jsonl')
    with open(path, encoding='utf-8') as f:
        seq = sum(1 for _ in f)
    with open(path, 'a', encoding='utf-8') as f:
        for n, (kind, text) in enumerate(rows, seq + 1):
            when = f'2026-01-01T00:00:{n:02}.000Z'
            event = {'seq': n, 'type': kind, 'timestamp': when, 'data': {'text': text}}
            f.write(json.dumps(event, separators=(',', ':')) + '\n')


def left(me, tmp_path):
    """The data folder of a hub that has ended, the hub, and its one conversation."""
    home = str(tmp_path / 'history')
    os.mkdir(home)
    first = Hub(me, home, '--socket', 'none')
    talk = first.talk()
    assert first.end() == 0
    first.kill()
    return home, first, talk


def test_a_filter_of_history_tells_nothing_of_a_secret(me, tmp_path):
    home, first, talk = left(me, tmp_path)
    secret = 'kx9Lq2vTzz'
    written(first, talk, [('agent_message', f'it has DB_PASSWORD={secret} in it')])
    with Hub(me, home, '--socket', 'none') as hub:
        for n in range(1, len(secret) + 1):
            right, wrong = [hub.of(talk, f'/events?text_contains=DB_PASSWORD%3D{text}')
                            for text in (secret[:n], secret[:n - 1] + '0')]
            assert right == wrong and right['events'] == []
        for text in ('REDACTED', 'it%20has%20DB_PASSWORD%3D', '%20in%20it'):
            assert len(hub.of(talk, f'/events?text_contains={text}')['events']) == 1


def test_history(me, tmp_path):
    home, first, talk = left(me, tmp_path)
    written(first, talk, [('agent_message' if n % 2 else 'agent_thought', f'text {n}')
                          for n in range(40)])
    with Hub(me, home, '--socket', 'none') as hub:
        newest = hub.of(talk, '/events?limit=3')
        assert [e['seq'] for e in newest['events']] == [39, 40, 41] and newest['has_more']
        assert newest['events'][2] == {'seq': 41, 'type': 'agent_message',
                                       'timestamp': '2026-01-01T00:00:41.000Z',
                                       'data': {'text': 'text 39'}}
        before = hub.of(talk, f'/events?limit=3&before_seq={newest["first_seq"]}')
        assert [e['seq'] for e in before['events']] == [36, 37, 38]
        after = hub.of(talk, '/events?limit=4&after_seq=38')
        assert [e['seq'] for e in after['events']] == [39, 40, 41] and not after['has_more']
        assert after['max_seq'] == after['total_events'] == 41
        some = hub.of(talk, '/events?event_types=agent_thought&limit=2')
        assert [e['data']['text'] for e in some['events']] == ['text 36', 'text 38']
        assert some['has_more'] and some['first_seq'] == 38
        some = hub.of(talk, '/events?event_types=agent_thought&limit=2&after_seq=0')
        assert [e['seq'] for e in some['events']] == [2, 4] and some['last_seq'] == 4
        some = hub.of(talk, '/events?text_contains=text%2017')
        assert [e['seq'] for e in some['events']] == [19]
        some = hub.of(talk, '/events?since=2026-01-01T00:00:39Z&until=2026-01-01T00:00:40Z')
        assert [e['seq'] for e in some['events']] == [39, 40]
        assert [e['type'] for e in hub.of(talk, '/events?since=1h')['events']] == ['session_start']
        hub.fails('invalid_input', 'GET', f'/api/sessions/{talk}/events?since=yesterday')
        path = f'/api/sessions/{talk}/events?follow=true'
        for begin in ('', '&after_seq=0'):  # an EventSource comes again at the address that it has
            with events(hub, path + begin, last='39') as following:
                assert [following()['seq'] for _ in range(2)] == [40, 41]
        for wrong in ('x', '-1', '99999999999999999999'):
            with hub.wire() as wire:
                wire.send(hub.request('GET', path, fields=[f'Last-Event-ID: {wrong}']))
                assert wire.head()[0] == 400, wrong
        with events(hub, f'/api/sessions/{talk}/events?follow=true&after_seq=39') as following:
            assert [following()['seq'] for _ in range(2)] == [40, 41]
            assert following()['state'] == 'no_agent'
            hub.of(talk, '', 'PATCH', {'archived': True})
            seen = [following() for _ in range(2)]
            assert {e['type'] for e in seen} == {'session_end', 'changed'}, seen
            assert 42 in {e['seq'] for e in seen}
            hub.of(talk, '', 'DELETE')


def test_a_follower_gets_all(me, tmp_path):
    """Also where a page has more than may wait for its reader, and where that does not read."""
    home = str(tmp_path / 'much')
    os.mkdir(home)
    with Hub(me, home) as first:
        talk = first.talk()
    written(first, talk, [('agent_message', f'{n} ' + 'x' * 300_000) for n in range(50)])
    with Hub(me, home) as hub:
        path = f'/api/sessions/{talk}/events?follow=true&after_seq='
        with events(hub, path + '0', room=65536) as slow, events(hub, path + '0') as fast, \
                events(hub, path + '7&event_types=session_end') as none:
            for following in (fast, slow):
                seen = [following() for _ in range(52)]
                assert [e['seq'] for e in seen] == [*range(1, 52), 0]
                assert [e['data']['text'].split()[0] for e in seen[1:51]] == [
                    str(n) for n in range(50)]
                assert seen[51]['state'] == 'no_agent'
            assert none()['state'] == 'no_agent'
            hub.of(talk, '', 'PATCH', {'archived': True})
            for following in (fast, slow, none):
                assert {following()['seq'] for _ in range(2)} == {52, 0}


def test_news_of_the_hub(hub):
    with events(hub, '/api/events?topics=conversation') as following:
        cursor = following(beats=True)['cursor']
        talk = hub.talk(title='news')
        seen = [following() for _ in range(2)]
        assert {e['data']['kind'] for e in seen} == {'event', 'created'}
        assert {e['id'] for e in seen} == {talk} and {e['topic'] for e in seen} == {'conversation'}
    with events(hub, f'/api/events?after={cursor}') as following:  # the same again
        assert [following() for _ in range(2)] == seen
    for begin in ('', '?after=' + seen[1]['cursor']):
        with events(hub, '/api/events' + begin, last=cursor) as following:
            assert [following() for _ in range(2)] == seen
    with events(hub, f'/api/events?after={cursor}&topics=question') as following:
        assert following(beats=True)['kind'] == 'alive'
    epoch, _, number = cursor.partition(':')
    for gone in ('0' * 16 + ':' + number, f'{epoch}:{int(number) + 10**6}'):
        with events(hub, f'/api/events?after={gone}') as following:
            assert following()['kind'] == 'reset'
    hub.fails('invalid_input', 'GET', '/api/events?after=x')
    bob = as_bearer(hub, key(hub, 'bob-of-news'))
    with events(bob, f'/api/events?after={cursor}') as following:
        assert following(beats=True)['kind'] == 'alive'  # none of it is for bob


def test_readers_of_news_that_do_not_read(hub):
    """They hold nobody up and cost nothing; one that reads again is told that it missed some."""
    talk = hub.talk(title='much')

    def resident():
        with open(f'/proc/{hub.proc.pid}/status', encoding='ascii') as f:
            return int(re.search(r'VmRSS:\s+(\d+)', f.read())[1]) << 10

    def much(count):
        for _ in range(count):
            question(hub, kind='notify', session_id=talk, text='x' * 15000)
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(events(hub, '/api/events', room=65536)) for _ in range(16)]
        much(20)
        before = resident()
        much(1000)  # twice what the hub keeps
        # 8 MiB of news, and up to 1 MiB on the way to each; all that there was is 240 MiB
        assert resident() - before < 40 << 20, (before, resident())
        kinds = []
        while 'reset' not in kinds[-1:]:
            got = held[0](beats=True)
            kinds.append(got['kind'])
        assert kinds.count('news') > 10
        with events(hub, f'/api/events?after={got["cursor"]}') as following:
            assert following(beats=True)['kind'] in ('news', 'alive')
        hub.of(talk, '', 'PATCH', {'title': 'last'})
        while held[0](beats=True).get('data', {}).get('title') != 'last':
            pass


# ---- agents

class Agent(Session):
    """An MCP client without a conversation's token."""

    def ask(self, method, **params):
        with self.hub.wire() as wire:
            wire.send(post(self.hub, {'jsonrpc': '2.0', 'id': 7, 'method': method,
                                      'params': params}, self.path, fields=self.fields))
            return self.result(wire)


@pytest.fixture(scope='module')
def agent(hub):
    return Agent(hub, '/mcp?tools=conversation')


def tool(agent, name, /, **arguments):
    answer = agent.ask('tools/call', name='mitto_' + name, arguments=arguments)
    said = json.loads(answer['content'][0]['text'])
    if answer.get('isError'):
        assert {'code', 'cause', 'remediation'} <= set(said)
        return said['code'], said['cause']
    assert answer['structuredContent'] == said
    return said


def test_tools_have_the_names_of_the_seed(agent):
    listed = agent.ask('tools/list')['tools']
    assert [t['name'] for t in listed] == ['mitto_' + name for name in (
        'conversation_list', 'get_config', 'get_runtime_info', 'conversation_get_current',
        'conversation_get', 'conversation_history', 'conversation_wait',
        'conversation_send_prompt', 'conversation_start', 'conversation_userdata_set')]
    of = {t['name'][6:]: t['inputSchema'] for t in listed}
    assert set(of['conversation_send_prompt']['properties']) == {'session_id', 'conversation_id',
                                                                  'prompt'}
    assert set(of['conversation_start']['properties']) == {'session_id', 'title', 'initial_prompt'}
    assert of['conversation_wait']['properties']['timeout_seconds']['default'] == 600
    assert all(t['outputSchema']['type'] == 'object' for t in listed)


def test_both_names(me, hub, tmp_path):
    """A session is told one name of each tool; a call may use any."""
    def names(agent):
        return {t['name'] for t in agent.ask('tools/list')['tools']}

    def ask(agent, name):
        return agent.ask('tools/call', name=name, arguments={})['structuredContent']
    some = {'conversation_list', 'get_runtime_info', 'ui_ask_yes_no', 'ask'}
    with Hub(me, str(tmp_path)) as plain:
        ours, theirs, one = (Agent(plain, '/mcp?tools=' + some) for some in (
            'conversation,ui', 'mitto', 'sandbox_list,mitto_get_config'))
        assert some <= names(ours)
        assert names(theirs) == {'mitto_' + name for name in names(ours)}
        assert names(one) == {'sandbox_list', 'mitto_get_config'}
        for agent in (ours, theirs):
            for name in ('get_config', 'mitto_get_config'):
                assert ask(agent, name)['acp_servers'] == []
        # a name is no right
        with plain.wire() as wire:
            one.call(wire, 'mitto_conversation_list')
            assert 'unknown tool' in one.answer(wire)['error']['message']
    agent = Agent(hub, '/mcp?tools=conversation')
    assert ask(agent, 'get_config') == ask(agent, 'mitto_get_config')


def test_where_the_logs_are(me, tmp_path):
    """With admin: the paths of the seed, all of them there. Without: none."""
    with Hub(me, str(tmp_path)) as hub:
        talk = hub.talk()
        told = hub.call('GET', '/api/runtime')
        assert told['log_files'] == [hub.log] and told['logs_dir'] == os.path.dirname(hub.log)
        assert told['config_files'] == [told['config_file']]
        folder = hub.of(talk)['session_folder']
        assert os.path.samefile(folder, os.path.join(hub.folder, talk))
        of_key = as_bearer(hub, key(hub, 'nobody'))
        told = of_key.call('GET', '/api/runtime')
        assert not {'log_files', 'logs_dir', 'config_files', 'data_dir'} & {
            name for name, value in told.items() if value}
        talk = of_key.talk()
        assert of_key.of(talk)['session_folder'] == f'conversations/{talk}'


def test_an_archived_one_has_no_rights(hub, agent):
    mine = hub.talk(title='mine')
    hub.of(mine, '/settings', 'PATCH', {'settings': {'can_start_conversation': True}})
    hub.of(mine, '', 'PATCH', {'archived': True})
    asker = Agent(hub, '/mcp?tools=ui')
    for who, name, more in ((agent, 'conversation_start', {}), (agent, 'conversation_list', {}),
                            (asker, 'ui_ask_yes_no', {'question': 'Go?'})):
        code, cause = tool(who, name, session_id=mine, **more)
        assert code == 'conversation_not_found' and 'archived' in cause, (name, cause)
    hub.of(mine, '', 'PATCH', {'archived': False})
    assert tool(agent, 'conversation_start', session_id=mine)['success']


def test_flags_hold_whatever_is_left_out(hub, agent):
    """Without the flag none is reached by naming it, by naming nothing, or by another's name."""
    mine, other = hub.talk(title='mine'), hub.talk(title='other')
    assert tool(agent, 'conversation_get_current', session_id=mine)['title'] == 'mine'
    for name, more in (('conversation_get', {}), ('conversation_history', {}),
                       ('conversation_wait', {'timeout_seconds': 1}),
                       ('conversation_send_prompt', {'prompt': 'x'})):
        code, cause = tool(agent, name, session_id=mine, conversation_id=other, **more)
        assert code == 'denied' and 'requires the flag' in cause, (name, cause)
        code, cause = tool(agent, name, conversation_id=other, **more)
        assert code == 'invalid_arguments' and 'session_id' in cause, (name, cause)
        assert tool(agent, name, session_id=mine, conversation_id=NOBODY,
                    **more)[0] == 'conversation_not_found'
    assert {c['session_id'] for c in tool(agent, 'conversation_list', session_id=mine)[
        'conversations']} == {mine}
    assert tool(agent, 'get_config', session_id=mine)[0] == 'denied'
    assert hub.waiting(other) == []
    hub.of(mine, '/settings', 'PATCH', {'settings': {'can_do_introspection': True,
                                                     'can_send_prompt': True}})
    got = tool(agent, 'conversation_get', session_id=mine, conversation_id=other)
    assert got['title'] == 'other'
    assert tool(agent, 'conversation_history', session_id=mine,
                conversation_id=other)['events'][0]['type'] == 'session_start'
    sent = tool(agent, 'conversation_send_prompt', session_id=mine, conversation_id=other,
                prompt='hello')
    assert sent['success'] and sent['queue_position'] == 0
    assert hub.of(other, '/queue')['messages'][0]['source'] == f'conversation:{mine}'
    assert other in {c['session_id'] for c in tool(agent, 'conversation_list', session_id=mine)[
        'conversations']}
    assert tool(agent, 'get_config', session_id=mine)['acp_servers'] == []
    assert tool(agent, 'get_runtime_info', session_id=mine)['pid'] == hub.proc.pid


def test_children(hub, agent):
    mine = hub.talk(title='parent', workspace='site')
    assert tool(agent, 'conversation_start', session_id=mine)[0] == 'denied'
    hub.of(mine, '/settings', 'PATCH', {'settings': {'can_start_conversation': True}})
    made = tool(agent, 'conversation_start', session_id=mine, title='child', initial_prompt='go')
    child = made['session_id']
    assert made['success'] and made['queue_position'] == 0 and made['working_dir'] == WORKSPACE
    assert hub.waiting(child) == ['go'] and hub.of(child)['child_origin'] == 'mcp'
    got = tool(agent, 'conversation_get', session_id=mine, conversation_id=child)
    assert got['title'] == 'child'
    hub.of(child, '/settings', 'PATCH', {'settings': {'can_start_conversation': True}})
    code, cause = tool(agent, 'conversation_start', session_id=child)
    assert code == 'denied' and 'child' in cause
    made = [tool(agent, 'conversation_start', session_id=mine) for _ in range(10)]
    assert made[8]['success'] and made[9][0] == 'limit_exceeded'
    assert 'is the child' in hub.fails('conflict', 'DELETE', f'/api/sessions/{mine}')
    hub.of(mine, '', 'PATCH', {'archived': True})  # its children stay
    assert not hub.of(child)['archived']
    hub.of(mine, '?children=true', 'DELETE')
    hub.fails('not_found', 'GET', f'/api/sessions/{child}')
    hub.of(child, '/restore', 'POST', {})


def test_nobody_elses_trash(hub):
    """A key that knows the id changes nothing, also where a child is out of the trash already."""
    alice, bob = (as_bearer(hub, key(hub, name)) for name in ('alice-of-trash', 'bob-of-trash'))
    mine = alice.talk(workspace='site')
    alice.of(mine, '/settings', 'PATCH', {'settings': {'can_start_conversation': True}})
    child = tool(Agent(alice, '/mcp?tools=conversation'), 'conversation_start',
                 session_id=mine)['session_id']
    alice.of(mine, '?children=true', 'DELETE')
    alice.of(child, '/restore', 'POST', {})
    with events(hub, '/api/events?topics=conversation') as following:
        following(beats=True)
        cause = bob.fails('not_found', 'POST', f'/api/sessions/{mine}/restore', {})
        assert cause.replace(mine, NOBODY) == bob.fails('not_found', 'POST',
                                                        f'/api/sessions/{NOBODY}/restore', {})
        assert [c['session_id'] for c in alice.call('GET', '/api/sessions')['conversations']
                ] == [child]
        alice.of(child, '', 'PATCH', {'title': 'next'})
        assert following()['id'] == child
    assert alice.of(mine, '/restore', 'POST', {})['session_id'] == mine


def test_user_data(hub, agent):
    talk = hub.talk(workspace='site')

    def put(key, value):
        return tool(agent, 'conversation_userdata_set', session_id=talk, key=key, value=value)
    assert put('ticket', 'T-1') == {'success': True, 'key': 'ticket', 'value': 'T-1'}
    assert put('link', 'https://example.org/x')['success'] and put('file', 'notes.txt')['success']
    for name, value in (('other', 'x'), ('link', 'no url'), ('link', '://x'), ('file', 'none'),
                        ('file', '/etc/hostname'), ('file', '../workspace/notes.txt'),
                        ('file', '.')):
        assert put(name, value)[0] == 'invalid_arguments', (name, value)
    assert hub.of(talk)['user_data'] == {'ticket': 'T-1', 'link': 'https://example.org/x',
                                         'file': 'notes.txt'}
    assert put('link', '')['success'] and 'link' not in hub.of(talk)['user_data']
    bare = hub.talk()
    assert tool(agent, 'conversation_userdata_set', session_id=bare, key='ticket',
                value='x')[0] == 'invalid_arguments'


@pytest.mark.parametrize('text, allowed', [
    ('{"conversations": {"user_data": [{"name": "ticket"}]}}', True),
    ('metadata:\n    group: x\n    user_data:\n    - {name: x}\n    - name: "ticket"\n', True),
    ('conversations:\r\n  user_data:\r\n  - type: string\r\n    name: ticket\r\n', True),
    ('user_data:\n  - name: ticket\n', False), ('', False), ('\0' * 100, False),
    ('conversations:\n  user_data:\n' + '    - name: x\n' * 100, False),
    ('x' * (1 << 20), False),
])
def test_forms_of_the_schema(hub, agent, tmp_path, text, allowed):
    """The file of a workspace is a stranger's."""
    (tmp_path / '.mittorc').write_text(text, newline='')
    talk = hub.ok('conversations', 'new', '--folder', str(tmp_path)).decode().strip()
    got = tool(agent, 'conversation_userdata_set', session_id=talk, key='ticket', value='x')
    assert (got == {'success': True, 'key': 'ticket', 'value': 'x'} if allowed
            else got[0] == 'invalid_arguments'), got


def test_an_agent_allows_itself_no_attributes(hub, agent, tmp_path):
    """What an agent could have written into its folder allows nothing: neither its conversation,
    nor a child, nor another one there. What was there before counts."""
    def allow(name, ticket):
        text = json.dumps({'conversations': {'user_data': [{'name': ticket}]}})
        (tmp_path / name).write_text(text, encoding='utf-8')

    def made(folder=tmp_path):
        talk = hub.ok('conversations', 'new', '--folder', str(folder)).decode().strip()
        hub.send(talk, 'without a prompt there is no agent')
        return talk

    def may(talk, ticket):
        got = tool(agent, 'conversation_userdata_set', session_id=talk, key=ticket, value='x')
        assert got in ({'success': True, 'key': ticket, 'value': 'x'},
                       ('invalid_arguments', got[1] if isinstance(got, tuple) else None)), got
        return isinstance(got, dict)
    first = made()
    hub.of(first, '/settings', 'PATCH', {'settings': {'can_start_conversation': True}})
    allow('.mittorc', 'mine')
    (tmp_path / 'below').mkdir()
    (tmp_path / 'below' / '.holtrc').write_bytes((tmp_path / '.mittorc').read_bytes())
    child = tool(agent, 'conversation_start', session_id=first)['session_id']
    talks = [first, child, made(), made(tmp_path / 'below')]
    assert not any(may(talk, 'mine') for talk in talks)
    for talk in reversed(talks):
        hub.of(talk, '', 'PATCH', {'archived': True})
    # A person has seen it, or has made it.
    second = made()
    assert may(second, 'mine')
    hub.of(second, '/settings', 'PATCH', {'settings': {'can_start_conversation': True}})
    allow('.holtrc', 'other')
    child = tool(agent, 'conversation_start', session_id=second)['session_id']
    for talk in (second, child, made()):
        assert may(talk, 'mine') and not may(talk, 'other'), talk
    # It is read-only for agents of that folder, so the person at the host has changed it.
    allow('.mittorc', 'new')
    assert may(made(), 'new')


# ---- the end of a hub

def test_a_second_hub_is_told(me, tmp_path):
    home = str(tmp_path / 'locked')
    os.makedirs(os.path.join(home, 'conversations'), mode=0o700)
    path = os.path.join(home, 'conversations', '.lock')
    with open(path, 'w', encoding='utf-8') as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        for one in (os.path.dirname(path), path):
            os.chown(one, me.uid, me.uid)
        os.chown(home, me.uid, me.uid)
        done = subprocess.run(me.argv('serve', '--listen', '127.0.0.1:0', '--pool', '0'),
                              env={**me.env, 'HOLT_HOME': home}, cwd='/', check=False, timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 125 and b'another process has the conversations' in done.stderr, done


def test_kills_lose_nothing_acknowledged(me, tmp_path):
    """Eight senders, and -9 in the middle of it, again and again: each prompt that was acknowledged
    waits afterwards, each title holds, and no event's number is there twice."""
    home = str(tmp_path / 'killed')
    os.mkdir(home)
    kept = {}
    for n in range(soak(100, 6)):
        hub = Hub(me, home, '--socket', 'none')
        try:
            for talk, prompts in kept.items():
                assert set(prompts) <= set(hub.waiting(talk)), (n, talk)
                assert hub.of(talk)['title'] == 'new'
                seqs = [e['seq'] for e in hub.of(talk, '/events?limit=500')['events']]
                assert seqs == sorted(set(seqs))
            kept.clear()
            acknowledged = threading.Semaphore(0)
            threads = [threading.Thread(target=send_on, args=(hub, kept, acknowledged, n))
                       for _ in range(8)]
            for one in threads:
                one.start()
            for _ in range(8 + n % 20):
                assert acknowledged.acquire(timeout=60)
        finally:
            hub.kill()
        for one in threads:
            one.join()


def send_on(hub, kept, acknowledged, n):
    """Prompts for a conversation of its own, which is put away and taken out between them."""
    talk = None
    with contextlib.suppress(Exception):  # the hub is gone
        talk = hub.talk(title='new')
        kept[talk] = []
        for k in range(9):
            hub.send(talk, f'{n}-{k}')
            kept[talk].append(f'{n}-{k}')
            acknowledged.release()
            hub.of(talk, '', 'PATCH', {'archived': True})
            hub.of(talk, '', 'PATCH', {'archived': False})
