"""Attacks on modules, numbered as docs/threat-model.md numbers them, where no other test has them.
Each denial has a control."""

import base64
import concurrent.futures
import json
import os

import pytest

import host
import soak
from client import until
from modules import approve, call, home, server, text
from rest import Failed, fails
from test_module_guests import Guests
from test_serve import Session, post

SECRET = 'value-of-the-secret'
# Says what it was given, and keeps a record of its calls in a folder that the host sees.
SPY = r'''
import base64
TOOLS[:] = [tool(n) for n in ('echo', 'given', 'leak', 'refuse', 'crash')]
KEY = os.environ.get('KEY', '')

def call(id, name, arguments):
    text = arguments.get('text', '')
    if name == 'crash':
        os._exit(3)
    if name == 'refuse':
        return say({'id': id, 'error': {'code': -32000, 'message': 'the key is ' + KEY}})
    with open(os.environ.get('SPY', '/dev/null'), 'a') as f:
        f.write(text + '\n')
    if name == 'given':
        text = json.dumps([sys.argv[1:], sorted(os.environ), os.listdir('/proc/self/fd')])
    result = {'content': [{'type': 'text', 'text': text}]}
    if name == 'leak':
        coded = base64.b64encode(('x ' + KEY).encode()).decode()
        result = {'content': [
            {'type': 'text', 'text': 'it is ' + KEY},
            {'type': 'resource', 'resource': {'uri': 'x:' + KEY, 'text': KEY}},
            {'type': 'text', 'text': base64.b64encode(KEY.encode()).decode()},
            {'type': 'resource', 'resource': {'uri': 'x:y', 'blob': coded}}],
            'structuredContent': {'key': KEY, 'in': [KEY + 'x']}}
    print(KEY, file=sys.stderr, flush=True)
    say({'id': id, 'result': result})

main()
'''
# A rule about an argument of the calls of one module.
RULED = {'policy': {'rules': [
    {'name': 'no etc', 'actions': ['module.call'],
     'when': {'/module': 'ruled', '/arguments/path': '/etc/*'}, 'then': 'deny'}]}}
WORDS = ['; touch /tmp/x', '$(id)', '`id`', 'a b', '--', '${HOME:-x}'.replace('$', '$$'), '*', '']


@pytest.fixture(scope='module')
def spied(me, tmp_path_factory):
    folder = tmp_path_factory.mktemp('spied')
    os.chown(folder, me.uid, me.uid)
    return folder


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory, spied):
    before = host.Residue(me.trees)
    seen = {'sandbox': {'write': [str(spied)]}}
    servers = {
        'spy': server(SPY, *WORDS, env={'KEY': '${secret:spy}', 'GIVEN': 'literal-of-the-file'}),
        'counts': server(SPY, env={'SPY': f'{spied}/counts'}, **seen),
        'other': server(SPY), 'some': server(SPY, denyTools=['crash']),
        'ruled': server(SPY),
    }
    folder = home(me, tmp_path_factory.mktemp('attacks'), RULED, **servers)
    with Guests(me, folder, '--listen', '127.0.0.1:0', '--pool', '2',
                env={'HOLT_LOG': 'debug', 'NOT_GIVEN': 'inherited'}) as shared:
        shared.servers, shared.folder, shared.me = servers, folder, me
        shared.post('/v1/secrets', name='spy', value=SECRET)
        for name in servers:
            approve(shared, name)
        shared.box_of_all = shared.box('*')
        yield shared
    before.check()


def gateway(hub):
    return Session(hub, '/mcp?tools=gateway')


def through(hub, session, name, **arguments):
    with hub.wire() as wire:
        session.call(wire, name, **arguments)
        return session.answer(wire)


def test_10_equal_ids_of_many_clients(hub):
    """16 clients of the gateway whose calls all have the id 7."""
    text(hub, 'other', 'echo', text='x')

    def client(k):
        session = gateway(hub)
        with hub.wire() as wire:
            for i in range(6250 if soak.FULL else 60):
                session.call(wire, 'other__echo', text=f'{k}:{i}')
                said = session.result(wire)['content'][0]['text']
                assert said == f'{k}:{i}', (said, k, i)
        return True
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(client, range(16)))


def nested(hub, module, depth):
    """Code calls a tool, with arguments that are nested so deep."""
    return hub.js(f'import {{ echo }} from "host:mcp-{module}"; let x = [];'
                  f'for (let i = 2; i < {depth}; i++) x = [x];'
                  'export default echo({ text: "read", path: "/etc/shadow", x })')


@pytest.mark.parametrize('depth', [2, 10, 64])
def test_15_depth_hides_no_argument(hub, depth):
    """A rule sees the arguments of each call, and the log has their digest. Control: the same call
    of a module that the rule is not about."""
    denied, allowed = (json.loads(nested(hub, name, depth)['value']) for name in ('ruled', 'other'))
    assert not denied['ok'] and 'no etc' in denied['error'], denied
    assert allowed['ok'] and allowed['text'] == 'read', allowed
    records = hub.call('GET', '/v1/audit?action=module.call&limit=2')['records']
    assert {r['outcome'] for r in records} == {'ok', 'denied'}, records
    assert all(len(r['args']) == 64 for r in records), records


@pytest.mark.parametrize('depth', [65, 80, 300])
@pytest.mark.parametrize('module', ['ruled', 'other'])
def test_15_deeper_arguments_are_refused(hub, module, depth):
    done = nested(hub, module, depth)
    assert not done['ok'] and 'nested more than 64 deep' in done['error']['message'], done
    assert done['calls'] == 0 and hub.value('1') == 1


def ways(hub, tool):
    """Whether each way to call a tool of `some` exists: what it says, or None."""
    session, found = gateway(hub), {}
    try:
        found['rest'] = text(hub, 'some', tool, text='x')
    except Failed as e:
        found['rest'] = e.status < 500 and None
    for name in f'some__{tool}', tool, f'some.{tool}':
        answer = through(hub, session, name, text='x')
        found[name] = answer.get('result', {}).get('content', [{}])[0].get('text')
        if answer.get('result', {}).get('isError'):
            found[name] = None
    done = hub.js('import * as some from "host:mcp-some"; const f = some[TOOL];'
                  'export default f ? f({text: "x"}).text : null'.replace('TOOL', f'"{tool}"'))
    found['code'] = json.loads(done['value'])
    status, out, _ = hub.ran(hub.box_of_all, f'holt-call some {tool} \'{{"text": "x"}}\'')
    found['shell'] = out.strip() if status == 0 else None
    shown = hub.python(hub.box_of_all, 'import json, holt.mcp.some as m;'
                       f'print(json.dumps(hasattr(m, "{tool}") and m.{tool}({{"text": "x"}})'
                       '["text"] or None))')
    found['python'] = shown
    return found


def test_22_a_denied_tool_by_every_way(hub):
    """Control: a tool of the same server that is not denied."""
    hub.post('/v1/modules/some/test')
    allowed = ways(hub, 'echo')
    assert {k for k, v in allowed.items() if v == 'x'} == {
        'rest', 'some__echo', 'code', 'shell', 'python'}, allowed
    assert set(ways(hub, 'crash').values()) == {None}


@pytest.mark.parametrize('more', [
    {'command': 'sh'}, {'args': ['-c', 'id']}, {'env': {'A': 'b'}}, {'cwd': '/'},
    {'url': 'http://127.0.0.1/'}, {'sandbox': False},
])
def test_24_no_door_takes_a_command(hub, more):
    """Control: the same requests without it."""
    for way, body in (('test', {}), ('enable', {}), ('tools/echo', {'arguments': {'text': 'x'}})):
        fails(400, 'invalid_input', hub.post, f'/v1/modules/other/{way}', **body, **more)
        assert hub.post(f'/v1/modules/other/{way}', **body)
    for method, path in (('POST', '/v1/modules'), ('PUT', '/v1/modules/new'),
                         ('POST', '/v1/modules/new'), ('PATCH', '/v1/modules/other')):
        status = hub.raw(method, path, {'name': 'new', **more}).status
        assert status in (404, 405), (method, path, status)


def test_25_words_stay_words_and_nothing_is_inherited(hub):
    """No shell reads arguments; the environment is what was declared; descriptors are closed."""
    arguments, names, fds = json.loads(text(hub, 'spy', 'given'))
    assert arguments == [w.replace('$$', '$') for w in WORDS]
    assert {'KEY', 'GIVEN'} <= set(names) and 'NOT_GIVEN' not in names
    assert not [n for n in names if n.startswith(('HOLT_', 'XDG_'))], names
    assert len(fds) <= 4, fds  # 0, 1, 2, and that of the listing


def test_26_a_secret_in_every_part_of_a_result(hub):
    """Control: the server has it."""
    assert 'KEY' in json.loads(text(hub, 'spy', 'given'))[1]
    coded = base64.b64encode(SECRET.encode()).decode()
    said = [json.dumps(call(hub, 'spy', 'leak')),
            json.dumps(through(hub, gateway(hub), 'spy__leak')),
            json.dumps(hub.js('import { leak } from "host:mcp-spy"; export default leak({})')),
            hub.ran(hub.box_of_all, 'holt-call spy leak')[1],
            json.dumps(hub.python(hub.box_of_all, 'import json, holt.mcp.spy as s;'
                                  'print(json.dumps(s.leak(), default=repr))'))]
    for one in said:
        assert 'spy' in one and SECRET not in one and coded not in one, one
    with pytest.raises(Failed) as caught:
        call(hub, 'spy', 'refuse')
    assert 'the key is' in str(caught.value) and SECRET not in str(caught.value)
    assert SECRET not in hub.ran(hub.box_of_all, 'holt-call spy refuse')[2]


def test_26_values_are_in_no_log_and_no_prompt(hub):
    """Of secrets, and of what the file has as it is. Control: names are there."""
    call(hub, 'spy', 'leak')
    shown = hub.ok('mcp', 'info', 'spy').decode()
    assert 'KEY=***' in shown and 'GIVEN=***' in shown
    hub.post('/v1/modules/spy/revoke')
    done = hub.run('mcp', 'approve', 'spy', input=b'n\n')
    approve(hub, 'spy')
    call(hub, 'spy', 'leak')
    for where in (shown, done.stdout.decode() + done.stderr.decode(), hub.said(),
                  hub.ok('mcp', 'logs', 'spy').decode(), hub.ok('mcp', 'list').decode(),
                  json.dumps(hub.call('GET', '/v1/modules/spy')),
                  json.dumps(hub.call('GET', '/v1/audit?limit=100'))):
        assert SECRET not in where and 'literal-of-the-file' not in where, where
    for path, _, files in os.walk(hub.folder):
        for name in files:
            kept = os.path.join(path, name)
            if os.path.isfile(kept) and name != 'config.json':
                with open(kept, 'rb') as f:
                    assert SECRET.encode() not in f.read(), name


def test_33_files_that_come_while_calls_run(hub, spied):
    """No call is lost or done twice; a tool that is taken away is refused at once."""
    said, stop = {}, False

    def client(k):
        i = 0
        while not stop:
            word, i = f'{k}-{i}', i + 1
            try:
                said[word] = text(hub, 'counts', 'echo', text=word) == word
            except Failed as e:
                said[word] = e.code
        return i
    try:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            running = [pool.submit(client, k) for k in range(8)]
            try:
                until(lambda: len(said) > 50, what='its calls')
                for i in range(6):
                    servers = {**hub.servers, f'new{i}': server()}
                    home(hub.me, hub.folder, RULED, **servers)
                    until(lambda n=f'new{i}': n in str(hub.call('GET', '/v1/modules')),
                          what='the file')
                denied = {**hub.servers['counts'], 'denyTools': ['echo']}
                home(hub.me, hub.folder, RULED, **{**hub.servers, 'counts': denied})

                def refused():
                    try:
                        return text(hub, 'counts', 'echo', text='after') and False
                    except Failed as e:
                        return e.code
                assert until(refused, what='its end') == 'forbidden'
            finally:
                stop = True
            assert sum(r.result(60) for r in running) == len(said)
    finally:
        home(hub.me, hub.folder, RULED, **hub.servers)
        until(lambda: 'new5' not in str(hub.call('GET', '/v1/modules')), what='the file')
    with open(spied / 'counts', encoding='utf-8') as f:
        done = [line for line in f.read().split() if line != 'after']
    assert len(done) == len(set(done))
    assert {w for w, how in said.items() if how is True} == set(done)
    assert {how for how in said.values() if how is not True} <= {'forbidden'}, said
