"""Profiles of the operator's file: what they give is never more than the rest of it allows."""

import concurrent.futures
import json
import os

import pytest

import host
from approval import pending
from client import until
from modules import approve, server
from rest import Failed, fails
from test_keys import as_bearer, key
from test_module_guests import Guests
from test_serve import Session, post

CONFIG = {
    'network': {'presets': {'web': ['a.example:443']}},
    'profiles': {
        'default': {'limits': {'cpu_ms': 2000, 'memory_mb': 300}},
        'small': {'limits': {'cpu_ms': 1000, 'heap_mb': 8, 'memory_mb': 128, 'pids': 64},
                  'mcpServers': ['one'], 'network': ['web']},
        'large': {'limits': {'cpu_ms': 20000, 'memory_mb': 256, 'ttl_seconds': 900},
                  'mcpServers': ['two', 'one'], 'network': ['b.example:443']},
        'ask': {'mcpServers': ['one', 'wants'], 'approval': 'ask'},
        'loose': {'mcpServers': ['wants', 'never'], 'approval': 'allow'},
        'deny': {'mcpServers': ['one'], 'approval': 'deny'},
        'far': {'network': ['evil.example:443']},
        'some': {'tools': ['sandbox_list', 'code', 'gateway'], 'mcpServers': ['one']},
        'few tools': {'tools': ['sandbox_list', 'sandbox_get']},
        'looks': {'tools': ['Read', 'Grep', 'Glob']},
        'broken': {'tools': ['no_such_tool']},
    },
    'policy': {'rules': [
        {'name': 'no evil', 'when': {'/network/allow': 'evil*'}, 'then': 'deny'},
        {'name': 'no large', 'who': ['key:kept'], 'when': {'/profiles': 'large'}, 'then': 'deny'},
        {'name': 'big asks', 'who': ['key:memory'], 'when': {'/limits/memory_mb': '256'},
         'then': 'deny'}]},
    'principals': {'key:narrow': {'network': ['web']}, 'key:few': {'profiles': ['sm*']}},
    'mcpServers': {'one': server(), 'two': server(), 'wants': server(approval='ask'),
                   'never': server(approval='deny')},
}


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    folder = tmp_path_factory.mktemp('profiles')
    config = os.path.join(folder, 'config.json')
    with open(config, 'w', encoding='utf-8') as file:
        json.dump(CONFIG, file)
    for one in folder, config:
        os.chown(one, me.uid, me.uid)
    with Guests(me, folder, '--listen', '127.0.0.1:0', '--pool', '1', '--allow', 'a.example:443',
                '--allow', 'b.example:443') as shared:
        shared.file = config
        for name in CONFIG['mcpServers']:
            approve(shared, name)
        shared.keys = {name: as_bearer(shared, key(shared, name))
                       for name in ('any', 'narrow', 'few', 'kept', 'memory')}
        yield shared
    before.check()


@pytest.fixture
def anyone(hub):
    yield hub.keys['any']
    for one in hub.call('GET', '/v1/sandboxes'):
        hub.delete(one['id'])


def js(hub, code, *profiles, **more):
    return hub.post('/v1/javascript', code=code, **({'profiles': profiles} if profiles else {}),
                    **more)


def hosts(made):
    return sorted(h['host'] for h in made['network']['allow'])


USE = 'import { echo } from "host:mcp-one"; export default echo({ text: "x" }).text'


def test_the_default_has_no_servers(hub, anyone):
    assert 'no profile of this call' in js(anyone, USE)['error']['message']
    assert js(anyone, USE, 'small')['value'] == '"x"'  # the control
    assert 'no profile' in js(anyone, USE.replace('one', 'two'), 'small')['error']['message']
    assert js(anyone, USE.replace('one', 'two'), 'small', 'large')['value'] == '"x"'
    with pytest.raises(Failed) as failed:
        js(anyone, '1', 'none')
    assert failed.value.status == 400 and 'no profile "none"' in failed.value.error['cause']


def test_limits_of_code(anyone):
    """Those of one, the largest of several, and never more than that."""
    loop = 'for (;;);'
    for profiles, most in ((), 2000), (('small',), 1000), (('small', 'large'), 20000):
        error = fails(403, 'forbidden', js, anyone, loop, *profiles, cpu_ms=most + 1)
        assert 'at most' in error['cause'] and str(most) in error['cause']

    def quick():
        done = js(anyone, loop, 'small', cpu_ms=50)
        assert done['error']['limit'] == 'cpu'
        return done['duration_ms'] < 1000
    until(quick, what='an end long before a second')
    assert js(anyone, 'const a = []; for (;;) a.push(new Uint8Array(1 << 20))', 'small'
              )['error']['limit'] == 'heap'


def test_what_sandboxes_have(hub, anyone):
    made = anyone.post('/v1/sandboxes', profiles=['small'])
    assert made['limits']['memory_mb'] == 128 and made['limits']['pids'] == 64
    assert hosts(made) == ['a.example']
    made = anyone.post('/v1/sandboxes', profiles=['small', 'large'],
                       limits={'memory_mb': 64})
    assert made['limits']['memory_mb'] == 64 and hosts(made) == ['a.example', 'b.example']
    assert anyone.post('/v1/sandboxes')['limits']['memory_mb'] == 300
    made = anyone.post('/v1/sandboxes', profiles=['small'], network={'mode': 'none'})
    assert hosts(made) == []
    fails(403, 'forbidden', anyone.post, '/v1/sandboxes', profiles=['small'],
          limits={'memory_mb': 129})
    for module in ('two', '*'):
        assert 'no profile' in fails(403, 'forbidden', anyone.post, '/v1/sandboxes',
                                     profiles=['small'], modules=[module])['cause']
    anyone.post('/v1/sandboxes', profiles=['small'], modules=['one'])
    made = json.loads(hub.ok('up', '--profile', 'small', '--profile', 'large', '-o', 'json'))
    assert made['limits']['memory_mb'] == 256 and hosts(made) == ['a.example', 'b.example']
    hub.ok('down', made['id'])


def test_a_profile_gives_nothing_that_is_denied(hub, anyone):
    assert 'no evil' in fails(403, 'forbidden', anyone.post, '/v1/sandboxes',
                              profiles=['far'])['cause']
    narrow = hub.keys['narrow']
    fails(403, 'forbidden', narrow.post, '/v1/sandboxes', profiles=['large'])
    assert hosts(narrow.post('/v1/sandboxes', profiles=['small'])) == ['a.example']
    few = hub.keys['few']
    for call in (lambda: few.post('/v1/sandboxes', profiles=['small', 'large']),
                 lambda: js(few, '1', 'large'),
                 lambda: few.post('/v1/modules/one/tools/echo', arguments={}, profiles=['large'])):
        assert 'may not ask' in fails(403, 'forbidden', call)['cause']
    assert js(few, '1', 'small')['ok']
    kept = hub.keys['kept']
    assert 'no large' in fails(403, 'forbidden', js, kept, '1', 'large')['cause']
    assert js(kept, '1', 'small')['ok']
    fails(403, 'forbidden', hub.keys['memory'].post, '/v1/sandboxes', profiles=['large'])
    hub.keys['memory'].post('/v1/sandboxes', profiles=['small'])


def test_the_stricter_approval_holds(hub, anyone):
    def tool(name, *profiles):
        return anyone.post(f'/v1/modules/{name}/tools/echo', arguments={'text': 'x'},
                           profiles=profiles)
    assert tool('one', 'small')['result']['content'][0]['text'] == 'x'
    for denied in (('one', 'deny'), ('one', 'small', 'deny'), ('never', 'loose'), ('two', 'small')):
        fails(403, 'forbidden', tool, *denied)
    asking = ('one', 'ask'), ('one', 'small', 'ask'), ('wants', 'loose')
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(tool, *asked) for asked in asking]
        for one in pending(hub, 3):
            hub.post(f'/v1/approvals/{one["id"]}', decision='deny')
        for call in calls:
            fails(403, 'forbidden', call.result, 20)
    code = 'const r = require("host:mcp-one").echo({}); [r.ok, r.error]'
    ok, why = json.loads(js(anyone, code, 'small', 'deny')['value'])
    assert not ok and 'denies' in why


# ---- modules by every road ------------------------------------------------------------------

def session(hub, *profiles, tools='gateway,code'):
    asks = f'&profile={",".join(profiles)}'.replace(' ', '%20') if profiles else ''
    return Session(hub, f'/mcp?tools={tools}{asks}' if tools else f'/mcp?{asks[1:]}')


def say(of, method, /, **params):
    """The answer to a request of a session."""
    with of.hub.wire() as wire:
        wire.send(post(of.hub, {'jsonrpc': '2.0', 'id': 7, 'method': method, 'params': params},
                       of.path, fields=of.fields))
        return of.answer(wire)


def tools(of):
    return {t['name'] for t in say(of, 'tools/list')['result']['tools']}


def tried(of, name, /, **arguments):
    """What a tool says, or None where it is denied or not there."""
    answer = say(of, 'tools/call', name=name, arguments=arguments)
    result = answer.get('result', {'isError': True})
    return None if result.get('isError') else result['content'][0]['text']


CALL = 'holt-call {} echo \'{{"text": "x"}}\''


def roads(hub, who, module, *profiles):
    """The roads by which a client of these profiles reaches a module."""
    found, of = set(), session(who, *profiles)
    named = {'profiles': list(profiles)} if profiles else {}

    def reached(road, did):
        try:
            if did():
                found.add(road)
        except Failed as e:
            assert e.status == 403, e
    reached('rest', lambda: who.post(f'/v1/modules/{module}/tools/echo', arguments={'text': 'x'},
                                     **named))
    code = USE.replace('one', module)
    reached('code', lambda: js(who, code, *profiles)['ok'])
    for road, tool, arguments in (
            ('gateway', f'{module}__echo', {'text': 'x'}),
            ('connect', 'manage_mcp', {'action': 'connect', 'name': module}),
            ('info', 'mcp_server_info', {'name': module}),
            ('module', 'module_info', {'module': module})):
        if tried(of, tool, **arguments) is not None:
            found.add(road)
    if f'{module}: ' in (tried(of, 'list_mcp_servers') or ''):
        found.add('list')
    if f'mcp-{module}: ' in (tried(of, 'list_modules') or ''):
        found.add('modules')
    if f'mcp-{module}' in (tried(of, 'search_modules', query='echo', limit=50) or ''):
        found.add('search')
    if '"x"' in (tried(of, 'execute_javascript', code=code) or ''):
        found.add('session code')

    def guest():
        box = who.post('/v1/sandboxes', modules=[module], **named)['id']
        return who.ran(box, CALL.format(module))[0] == 0
    reached('guest', guest)
    return found


ROADS = {'rest', 'code', 'gateway', 'connect', 'info', 'module', 'list', 'modules', 'search',
         'session code', 'guest'}


def test_a_module_of_no_profile_is_denied_on_every_road(hub, anyone):
    """Controls: the same client with a profile that has it, and another one beside it."""
    assert roads(hub, anyone, 'one', 'small') == ROADS
    assert roads(hub, anyone, 'two', 'small') == set()
    assert roads(hub, anyone, 'one') == set()
    assert roads(hub, anyone, 'two', 'small', 'large') == ROADS


def test_a_key_asks_for_what_it_may(hub):
    few = hub.keys['few']
    try:
        assert roads(hub, few, 'one', 'small') == ROADS
        assert roads(hub, few, 'two', 'small') == set()
    finally:
        for one in few.call('GET', '/v1/sandboxes'):
            hub.delete(one['id'])
    for asks in ('large',), ('small', 'large'), ('none',), ('broken',), ('small',) * 9, (',',):
        with pytest.raises(AssertionError, match='400'):
            session(few, *asks)
    assert tools(session(few, 'small'))


def test_what_a_session_has_bounds_its_calls(hub, anyone):
    """A model can't name a profile that its client did not."""
    code = USE.replace('one', 'two')
    of = session(anyone, 'small')
    assert tried(of, 'execute_javascript', code=USE, profiles=['small'])
    assert tried(of, 'execute_javascript', code=code, profiles=['large']) is None
    assert '"x"' in tried(session(anyone, 'small', 'large'), 'execute_javascript', code=code,
                          profiles=['large'])


def test_programs_have_what_their_sandbox_was_made_with(hub, anyone):
    """Also where a profile is another by now, and the approval of a profile holds for them."""
    box = hub.ok('up', '--module', 'one', '--module', 'two').decode().strip()  # the operator's
    kept = anyone.post('/v1/sandboxes', modules=['one'], profiles=['small'])['id']
    denied = anyone.post('/v1/sandboxes', modules=['one'], profiles=['small', 'deny'])['id']
    copy = anyone.post(f'/v1/sandboxes/{kept}/fork')['id']

    def status(who, where, module='one'):
        return who.ran(where, CALL.format(module))[0]
    assert status(hub, box) == status(hub, box, 'two') == 0
    for profiles, runs in ((), False), (('small',), False), (('small', 'large'), True):
        of = session(hub, *profiles, tools='sandbox')
        said = tried(of, 'sandbox_exec', sandbox=box, command='echo ran')
        assert (said is not None) == runs, (profiles, said)
        assert tried(of, 'sandbox_get', sandbox=box)
    assert status(anyone, kept) == status(anyone, copy) == 0
    assert status(anyone, denied) == 3
    less = json.loads(json.dumps(CONFIG))
    less['profiles']['small']['mcpServers'] = ['two']
    try:
        with open(hub.file, 'w', encoding='utf-8') as file:
            json.dump(less, file)
        until(lambda: status(anyone, kept) == 3, what='the file')
        assert status(anyone, copy) == 3 and status(hub, box) == 0
    finally:
        with open(hub.file, 'w', encoding='utf-8') as file:
            json.dump(CONFIG, file)
    until(lambda: status(anyone, kept) == 0, what='the file')
    hub.delete(box)


@pytest.mark.parametrize('method, params', [
    ('resources/read', {'uri': 'module://%s/x:y'}),
    ('completion/complete', {'ref': {'type': 'ref/resource', 'uri': 'module://%s/x:{y}'},
                             'argument': {'name': 'y', 'value': ''}})])
def test_resources_of_a_module_of_no_profile(anyone, method, params):
    """Control: a server without resources is asked for them, and says so."""
    def answer(module):
        return json.dumps(say(session(anyone, 'small'), method,
                              **json.loads(json.dumps(params).replace('%s', module))))
    assert 'no such method' in answer('one') and 'no such method' not in answer('two')


def test_tools_of_a_profile(hub, anyone):
    usual = tools(session(anyone, tools=''))
    assert 'sandbox_create' in usual and 'execute_javascript' not in usual
    some = tools(session(anyone, 'some', tools=''))
    assert {'sandbox_list', 'execute_javascript', 'one__echo'} <= some
    assert not {'sandbox_create', 'two__echo'} & some
    of = session(anyone, 'few tools', tools='sandbox')
    assert tools(of) == {'sandbox_list', 'sandbox_get'}
    assert tried(of, 'sandbox_list') is not None
    assert tried(of, 'sandbox_create') is None and not anyone.call('GET', '/v1/sandboxes')
    both = tools(session(anyone, 'some', 'few tools', tools=''))
    assert {'sandbox_get', 'execute_javascript'} <= both and 'sandbox_create' not in both
    assert tools(session(anyone, 'few tools', tools='code')) == set()


def test_some_of_the_coding_tools(hub, anyone):
    """The others are neither listed nor called. The control is a session without the profile."""
    wide, looks = (session(anyone, *names, tools='coding') for names in ((), ('looks',)))
    every = tools(wide)
    assert {'Read', 'Grep', 'Glob', 'Write', 'Edit', 'Bash', 'run_tests'} <= every
    assert tools(looks) == {'Read', 'Grep', 'Glob'}
    assert tools(session(anyone, 'looks', tools='')) == {'Read', 'Grep', 'Glob'}
    path = '/workspace/kept'
    assert tried(wide, 'Write', file_path=path, content='a\n') is not None
    for name in every - {'Read', 'Grep', 'Glob'}:
        answer = say(looks, 'tools/call', name=name, arguments={
            'file_path': path, 'content': 'b', 'command': f'echo b > {path}'})
        assert answer['error']['code'] == -32602, (name, answer)
    assert tried(wide, 'Bash', command=f'cat {path}').startswith('a\nexit: 0')
    assert tried(looks, 'Glob', pattern='*') is not None


def test_places_of_a_profile(hub, anyone):
    """Sandboxes that coding and code make for a session are those of its profiles."""
    calls = {'coding': ('Bash', {'command': 'true'}), 'code': ('execute_javascript', {'code': '1'})}
    for which, (tool, arguments) in calls.items():
        seen = set()
        for profiles, memory in ((), 300), (('small',), 128), (('small', 'large'), 256):
            before = {one['id'] for one in anyone.call('GET', '/v1/sandboxes')}
            of = session(anyone, *profiles, tools=which)
            assert tried(of, tool, **arguments) is not None, (which, profiles)
            made, = [one for one in anyone.call('GET', '/v1/sandboxes') if one['id'] not in before]
            assert made['limits']['memory_mb'] == memory, (which, profiles, made)
            assert profiles != ('small',) or made['limits']['pids'] == 64
            seen.add(made['id'])
        assert len(seen) == 3


def test_over_stdio(hub):
    """holt mcp --profile, connected to the hub and by itself."""
    wide = '--tools', 'sandbox,gateway', '--profile', 'some', '--profile', 'few tools'
    near = f'http://127.0.0.1:{hub.address[1]}'
    for where in ('--connect', near), ('--config', hub.file):
        talk = hub.who.mcp(*where, *wide, env={'HOLT_TOKEN': hub.token})
        try:
            talk.initialize()
            listed = {t['name'] for t in talk.request('tools/list')['result']['tools']}
        finally:
            talk.close()
        assert {'sandbox_list', 'sandbox_get'} <= listed and 'sandbox_create' not in listed
        assert ('one__echo' in listed) == ('--connect' in where)
    done = hub.run('mcp', '--profile', 'none', '--config', hub.file, input=b'')
    assert done.returncode == 125 and b'no profile "none"' in done.stderr, done


@pytest.mark.parametrize('profiles, says', [
    ({'a': {'limit': {}}}, '/profiles/a/limit'),
    ({'a': {'limits': {'cpu_ms': 60001}}}, '/profiles/a/limits/cpu_ms'),
    ({'a': {'limits': {'cpu_ms': '1'}}}, '/profiles/a/limits/cpu_ms'),
    ({'a': {'mcpServers': ['none']}}, '/profiles/a/mcpServers/0: mcpServers has no none'),
    ({'default': {'mcpServers': ['one']}}, 'the default profile has no servers'),
    ({'default': {'network': ['web']}}, 'the default profile has no servers'),
    ({'a': {'network': ['no host']}}, '/profiles/a/network'),
    ({'a': {'approval': 'maybe'}}, '/profiles/a/approval'), ({'': {}}, '/profiles'),
    ({'a': {'limits': {'sandboxes': 9}}}, '/profiles/a/limits/sandboxes'),
])
def test_a_file_that_is_wrong(me, tmp_path, profiles, says):
    path = tmp_path / 'config.json'
    path.write_text(json.dumps({**CONFIG, 'profiles': profiles}))
    os.chown(path, me.uid, me.uid)
    done = me.run('config', 'check', '--config', str(path))
    assert done.returncode != 0 and says.encode() in done.stderr, done


def test_the_file_is_shown(me, tmp_path):
    path = tmp_path / 'config.json'
    path.write_text(json.dumps(CONFIG))
    os.chown(path, me.uid, me.uid)
    shown = json.loads(me.run('config', 'show', '--config', str(path)).stdout)
    assert {p: shown['profiles'][p].get('approval') for p in ('ask', 'small')} == {
        'ask': 'ask', 'small': None}
    schema = json.loads(me.run('config', 'schema').stdout)
    assert 'profiles' in schema['properties']
