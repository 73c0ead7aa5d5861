"""Which agents and workspaces of the operator's file a principal's conversations may have: each
list of "principals" narrows, keys have nothing by default, and a key has an agent without a sandbox
only by its whole name. The tables have every principal against all that the file names."""

import fnmatch
import itertools
import json
import os

import pytest

from client import until
from rest import Failed
from test_agents import Hub, by_token, mock, of_kind
from test_keys import ALL, as_bearer, key
from test_serve import Session

AGENTS = {'mock': mock(), 'more': mock(), 'bare': mock(sandbox=False)}
PLACES = ('site', 'other', 'nowhere')
# Of each key: its entry and its scopes. "key:ba*" matches both "bare" and "bars".
KEYS = {
    'none': (None, ALL),
    'all': ({'agents': ['*'], 'workspaces': ['*']}, ALL),
    'some': ({'agents': ['m*', 'ba*'], 'workspaces': ['s*']}, ALL),
    'bare': ({'agents': ['mock', 'bare'], 'workspaces': ['site', 'other', 'nowhere']}, ALL),
    'bars': ({'agents': ['*', 'bare', 'absent'], 'workspaces': ['other']}, ALL),
    'agents': ({'agents': ['*']}, ALL),
    'places': ({'workspaces': ['*']}, ALL),
    'empty': ({'agents': [], 'workspaces': []}, ALL),
    'boss': (None, ['admin']),
    'less': ({'agents': ['mock']}, ['admin']),
}
FOR_SEVERAL = {'key:ba*': {'agents': ['bare', 'more', 'absent']}}


def entries(**more):
    return {**{f'key:{name}': entry for name, (entry, _) in KEYS.items() if entry}, **FOR_SEVERAL,
            **more}


def granted(principal, admin, member, name):
    """The rule of docs/policy.md once more."""
    is_key = principal.startswith('key:')
    lists = [entry[member] for pattern, entry in entries().items()
             if member in entry and fnmatch.fnmatchcase(principal, pattern)]
    if not all(any(fnmatch.fnmatchcase(name, one) for one in names) for names in lists):
        return False
    if is_key and AGENTS.get(name, {}).get('sandbox') is False and member == 'agents':
        return any(name in names for names in lists)
    return not is_key or admin or bool(lists)


def write(hub, **config):
    path = os.path.join(hub.home, 'config.json')
    reads = hub.metrics()['holt_config_reads_total']
    with open(path, encoding='utf-8') as f:
        before = json.load(f)
    with open(path + '.new', 'w', encoding='utf-8') as f:
        json.dump({**before, **config}, f)
    os.chown(path + '.new', os.stat(path).st_uid, -1)
    os.rename(path + '.new', path)
    until(lambda: hub.metrics()['holt_config_reads_total'] > reads, what='the file')
    assert not hub.metrics()['holt_config_bad']


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    other = tmp_path_factory.mktemp('other')
    places = {'site': {'dir': str(other), 'agent': 'mock'}, 'other': {'dir': str(other)}}
    with Hub(me, str(tmp_path_factory.mktemp('grants')), AGENTS,
             policy={'principals': entries(), 'workspaces': places}) as made:
        os.chown(other, me.uid, me.uid)
        made.site = str(other)
        made.who = {f'key:{name}': as_bearer(made, key(made, name, scopes))
                    for name, (_, scopes) in KEYS.items()}
        made.who['token'] = made
        yield made


def creates(who, **what):
    """None: it does; else the cause."""
    try:
        talk = who.post('/api/sessions', **what)['session_id']
    except Failed as failed:
        assert failed.status in (400, 403, 404), failed.error
        return failed.error['cause']
    who.call('DELETE', f'/api/sessions/{talk}')
    return None


def test_each_principal_and_each_name(hub):
    """404 is for who may have what does not exist."""
    for name, who in hub.who.items():
        admin = name == 'token' or KEYS[name[4:]][1] == ['admin']
        agents = {a: granted(name, admin, 'agents', a) for a in (*AGENTS, 'absent')}
        places = {p: granted(name, admin, 'workspaces', p) for p in PLACES}
        assert creates(who) is None
        for agent, place in itertools.product((*agents, None), (*places, None)):
            words = {**({'acp_server': agent} if agent else {}),
                     **({'workspace': place} if place else {})}
            of = agent or ('mock' if place == 'site' else None)
            if place and not places[place]:
                wanted = '"workspaces" in "principals"'
            elif place == 'nowhere':
                wanted = 'has no workspace nowhere'
            elif of and not agents[of]:
                wanted = '"agents" in "principals"'
            elif of == 'absent':
                wanted = 'has no agent absent'
            else:
                wanted = None
            why = creates(who, **words)
            assert why is None if wanted is None else wanted in (why or ''), (name, words, why)
        # what is listed is what may be had
        shown = {a['name'] for a in who.call('GET', '/api/config')['acp_servers']}
        assert shown == {a for a in AGENTS if agents[a]}, name
        shown = {w['name'] for w in who.call('GET', '/api/workspaces')['workspaces']}
        assert shown == {p for p in ('site', 'other') if places[p]}, name


def test_prompts_of_another_principal(hub):
    """The one who prompts has the agent's rights: an admin's key sees the operator's conversation,
    and is refused its agent without a sandbox."""
    one = hub.talk('bare')
    boss, bars = hub.who['key:boss'], hub.who['key:bars']
    assert boss.of(one)['session_id'] == one
    with pytest.raises(Failed) as failed:
        boss.send(one, ['say', 'x'])
    assert failed.value.status == 403 and 'whole name' in failed.value.error['cause']
    assert not hub.of(one)['queue_length']
    mine = bars.talk('bare', workspace='other')
    assert bars.says(mine, ['say', 'granted']) == 'granted'


@pytest.fixture
def taken_back(hub):
    yield lambda less: write(hub, principals=entries(**{'key:all': less}))
    write(hub, principals=entries())


@pytest.mark.parametrize('less', [
    {'agents': ['more']}, {'agents': ['*'], 'workspaces': ['other']}, {'limits': {'forks': 9}}])
def test_the_file_takes_it_back(hub, taken_back, less):
    """The turn that runs ends, the prompt behind it fails and can be sent again once the grant is
    there; nothing is sent and no child made. Others' agents go on."""
    owner = hub.who['key:all']
    runs, parent, kept = owner.talk(), owner.talk(), hub.talk()
    owner.of(parent, '/settings', 'PATCH', {'settings': {'can_start_conversation': True}})
    session = Session(by_token(owner, parent), '/mcp?tools=conversation')

    def child():
        with hub.wire() as wire:
            session.call(wire, 'conversation_start', title='child')
            return session.result(wire)
    assert not child().get('isError')
    hub.begin(kept, ['sleep', 60])
    after = owner.begin(runs, ['sleep', 60])
    owner.send(runs, ['say', 'later'])
    taken_back(less)
    message, = until(lambda: [m for m in owner.of(runs, '/queue')['messages']
                              if m['state'] == 'failed'], what='the end of both')
    events = owner.events(runs, after)
    assert len(of_kind(events, 'user_prompt')) == 1, events
    assert [e['code'] for e in of_kind(events, 'error')] == ['denied'] * 2, events
    assert 'key:all may not use the ' in message['error'], message
    for talk in (runs, parent):
        with pytest.raises(Failed) as failed:
            owner.send(talk, ['say', 'x'])
        assert failed.value.status == 403, failed.value.error
    refused = child()
    assert refused['isError'] and 'key:all may not use' in json.dumps(refused), refused
    assert hub.of(kept)['is_prompting']
    write(hub, principals=entries())
    owner.of(runs, f'/queue/{message["id"]}/retry', 'POST', {})
    until(lambda: 'later' in json.dumps(owner.events(runs, after)), what='the second prompt')
    for talk, who in ((kept, hub), (runs, owner), (parent, owner)):
        who.of(talk, '?children=true', 'DELETE')


def test_flags(hub):
    """Of all flags, the one that answers for a person needs what that answer needs."""
    flags = [f['name'] for f in hub.call('GET', '/api/advanced-flags')]
    boss = hub.who['key:boss']
    made = as_bearer(boss, key(boss, 'made-by-boss', ['admin']))
    for name, owner in (('key:all', hub.who['key:all']), ('key:boss', boss), ('token', hub)):
        talk = owner.talk()
        others = {'owner': owner, 'boss': boss, 'made': made, 'operator': hub}
        for flag, on in itertools.product(flags, (True, False)):
            for label, who in others.items():
                answers = who is hub or (label in ('boss', 'made') and name != 'key:boss')
                refused = flag == 'auto_approve_permissions' and on and not answers
                try:
                    who.of(talk, '/settings', 'PATCH', {'settings': {flag: on}})
                    assert not refused, (name, flag, on, label)
                except Failed as failed:
                    assert refused and failed.status == 403, (name, flag, on, label, failed.error)
                    assert not hub.of(talk)['flags'][flag]


def test_a_permission_is_not_answered_in_its_own_line(hub):
    """Neither by the key whose agent asks nor by one that it made."""
    boss = hub.who['key:boss']
    made = as_bearer(boss, key(boss, 'line-of-boss', ['admin']))
    talk = boss.talk()
    after = boss.send(talk, ['permit', 'Edit it?'])
    asked = hub.question(talk)
    for who in (boss, made):
        with pytest.raises(Failed) as failed:
            who.answer(asked, 'yes')
        assert failed.value.status == 403, failed.value.error
    hub.answer(asked, 'yes')
    assert '"yes"' in json.dumps(hub.ended(talk, after))
