"""Profiles of the operator's file: what they give is never more than the rest of it allows."""

import concurrent.futures
import json
import os

import pytest

import host
from approval import pending
from modules import approve, server
from rest import Failed, fails
from test_hub_cli import Hub
from test_keys import as_bearer, key

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
    with Hub(me, folder, '--listen', '127.0.0.1:0', '--pool', '1', '--allow', 'a.example:443',
             '--allow', 'b.example:443') as shared:
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
    done = js(anyone, loop, 'small', cpu_ms=50)
    assert done['error']['limit'] == 'cpu' and done['duration_ms'] < 1000
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
