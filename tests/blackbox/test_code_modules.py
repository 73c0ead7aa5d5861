"""Code that calls modules: what it sees of their results, and that each of its calls is a call like
any other."""

import concurrent.futures
import json
import os
import time

import pytest

import host
from approval import pending
from client import until
from modules import approve, home, server
from rest import Failed, Rest, fails
from test_hub_cli import Hub as Base
from test_keys import as_bearer, key
from test_serve import Session

EVERYTHING = os.path.join(os.path.dirname(__file__), '../client/node_modules')
# Answers out of order, and with each kind of content.
ODD = r'''
import threading
TOOLS[:] = [tool(n) for n in ('slow', 'json', 'broken', 'blob', 'mixed', 'structured', 'fails',
                              'silent', 'refuses', '__proto__', 'get-it', 'get_it', 'class',
                              'default', 'ids', 'ids-text', 'raw')]
IDS = {'id': 725653563933458433, 'all': [-9007199254740993, 9007199254740992, 2 ** 64 - 1, -2 ** 63,
                                   1.5, 1e30],
       'text': '725653563933458433', 'nested': {'"': [725653563933458433]}}
PNG = 'iVBORw0KGgo='

def texts(text):
    return {'content': [{'type': 'text', 'text': text}]}

def content(name, text):
    if name == 'json': return texts('{"a": [1, 2], "__proto__": 3}')
    if name == 'broken': return texts('[1')
    if name == 'blob': return {'content': [
        {'type': 'image', 'data': PNG, 'mimeType': 'image/png'}]}
    if name == 'mixed': return {'content': [
        {'type': 'text', 'text': 'one'}, {'type': 'text', 'text': 'two'},
        {'type': 'resource', 'resource': {'uri': 'x:y', 'blob': PNG, 'mimeType': 'image/png'}},
        {'type': 'resource_link', 'uri': 'x:z', 'name': 'z'}]}
    if name == 'structured': return {'content': [{'type': 'text', 'text': 'no'}],
                                     'structuredContent': {'t': 1.5, 'error': 'mine'}}
    if name == 'fails': return {'content': [{'type': 'text', 'text': 'it broke'}], 'isError': True}
    if name == 'ids': return {**texts('-'), 'structuredContent': IDS}
    if name == 'ids-text': return texts(json.dumps(IDS))
    if name == 'silent': return {'content': [], 'isError': True}
    return texts(name + ':' + text)

def call(id, name, arguments):
    if name == 'refuses':
        return say({'id': id, 'error': {'code': -32602, 'message': 'refused'}})
    def later():
        time.sleep(arguments.get('seconds', 0.3) if name == 'slow' else 0)
        said = json.dumps(arguments) if name == 'raw' else str(arguments.get('text', ''))
        say({'id': id, 'result': content(name, said)})
    threading.Thread(target=later).start()

main()
'''


class Hub(Base, Rest):
    def js(self, code, **more):
        return self.post('/v1/javascript', code=code, **more)

    def value(self, code, **more):
        done = self.js(code, **more)
        assert done['ok'], done
        return json.loads(done['value'])


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    servers = {'odd': server(ODD), 'asks': server(approval='ask', readOnlyTools=['echo']),
               'unapproved': server(), 'plain': server()}
    folder = home(me, tmp_path_factory.mktemp('code'), **servers)
    with Hub(me, folder, '--listen', '127.0.0.1:0', '--pool', '2') as shared:
        for name in 'odd', 'asks', 'plain':
            approve(shared, name)
        yield shared
    before.check()


ODDLY = 'import * as odd from "host:mcp-odd"; export default '


@pytest.mark.parametrize('code, value', [
    ('odd.slow({text: "x"})', {'ok': True, 'data': 'slow:x', 'text': 'slow:x'}),
    ('(await odd.slow({})).data', 'slow:'), ('odd.slow().ok', True),
    ('odd.json({}).data.a', [1, 2]), ('Object.keys(odd.json({}).data)', ['a', '__proto__']),
    ('odd.broken({}).data', '[1'),
    ('[odd.blob({}).data.mimeType, odd.blob({}).data.length,'
     ' odd.blob({}).data instanceof Uint8Array]', ['image/png', 8, True]),
    ('odd.mixed({}).text', 'one\ntwo'),
    ('odd.mixed({}).content', ['one', 'two', 'iVBORw0KGgo=',
                               {'type': 'resource_link', 'uri': 'x:z', 'name': 'z'}]),
    ('odd.structured({}).data', {'t': 1.5, 'error': 'mine'}), ('odd.structured({}).error ?? 0', 0),
    ('odd.fails({})', {'ok': False, 'text': 'it broke', 'error': 'it broke'}),
    ('odd.silent({}).error', 'the tool has failed, and did not say why'),
    ('[odd.refuses({}).ok, /refused/.test(odd.refuses({}).error)]', [False, True]),
    ('Object.keys(odd.default).length', 17), ('require("host:mcp-odd") === odd.default', True),
    ('Object.values(odd.default).map(f => f({text: 1}).text)'
     '.filter(t => /^(get|class|__p)/.test(t)).sort()',
     ['__proto__:1', 'class:1', 'get-it:1', 'get_it:1']),
    ('Object.getPrototypeOf(odd.default)', None), ('Object.isExtensible(odd.default)', False),
])
def test_results(hub, code, value):
    assert hub.value(ODDLY + code) == value


@pytest.mark.parametrize('code, says', [
    ('import "host:mcp-none"', 'none'), ('import "host:mcp-unapproved"', 'approv'),
    ('import "host:mcp-"', ''), ('import { nope } from "host:mcp-odd"', 'nope'),
    ('require("host:mcp-odd").slow("text")', 'one object'),
    ('require("host:mcp-odd").slow([1])', 'one object'),
    ('require("host:mcp-odd").slow({toJSON() { return 1 }})', 'no object'),
    ('require("host:mcp-odd").slow({text: "x".repeat(2 ** 20)})', 'longer'),
    ('const o = {}; o.o = o; require("host:mcp-odd").slow(o)', 'circular'),
])
def test_wrong(hub, code, says):
    done = hub.js(code)
    assert not done['ok'] and says in done['error']['message'], done


@pytest.mark.parametrize('tool', ['ids', 'ids_text'])
def test_integers_are_exact(hub, tool):
    run = f'import {{ {tool}, raw }} from "host:mcp-odd";\nconst d = (await {tool}()).data;\n'
    exact = {'id': 725653563933458433, 'all': [-9007199254740993, 9007199254740992, 2 ** 64 - 1,
                                               -2 ** 63, 1.5, 1e30],
             'text': '725653563933458433', 'nested': {'"': [725653563933458433]}}
    assert hub.value(run + '[typeof d.id, typeof d.all[1], d.id + 1n]') == [
        'bigint', 'number', '725653563933458434']
    said = hub.value(run + 'return (await raw(d)).text')
    assert json.loads(said.removeprefix('raw:')) == exact
    assert json.loads(hub.value(run + 'JSON.stringify(d)')) == exact
    assert json.loads(hub.value(run + 'JSON.stringify({ d }, null, 2)')) == {'d': exact}
    assert hub.value(run + 'JSON.stringify(d, (k, v) => typeof v === "bigint" ? `${v}` : v)'
                     ).startswith('{"id":"725653563933458433","all":["-9007199254740993",')
    assert hub.value(run + '({ id: d.id })') == {'id': '725653563933458433'}
    said = hub.value(run + 'console.log(d.id); (await raw({ m: new Map([["a", d.id]]),'
                     ' s: new Set([1]) })).text')
    assert said == 'raw:{"m": {"a": 725653563933458433}, "s": [1]}'


HINTS = [
    ('import { ech } from "host:mcp-plain"', 'did you mean echo?', 1),
    ('import { nothing_like_it } from "host:mcp-plain"', 'it has echo, environment', 1),
    ('import * as p from "host:mcp-plain";\n\nawait p.Echo({})', 'did you mean echo?', 3),
    ('const { Echo } = require("host:mcp-plain");\nreturn Echo({})', 'did you mean echo?', 2),
    ('import "host:mcp-plain"; ech({})', 'did you mean echo?', 1),
    ('require("host:mcp-plain");\nconst x: string = echo({})', 'import { echo } from', 2),
    ('import { fails } from "host:mcp-odd"; (await fails({})).data.length',
     'fails had failed: it broke', 1),
    ('import { slow } from "host:mcp-odd"; await slow({ text: (async () => 1)() })', 'await it', 1),
]


@pytest.mark.parametrize('code, says, line', HINTS)
def test_errors_say_what_was_meant(hub, code, says, line):
    error = hub.js(code)['error']
    assert says in error['message'] and error['line'] == line, error


@pytest.mark.timing
def test_calls_run_at_once(hub):
    """Eight of 0.3 s each take less than four of them would."""
    run = 'import { slow } from "host:mcp-odd"; const began = Date.now(), n = [...Array(8).keys()];'
    for calls in ('await Promise.all(n.map(text => slow({ text })))',
                  'await Promise.all(n.map(async text => await slow({ text })))',
                  'await n.map(text => slow({ text }))',
                  'await Promise.allSettled(n.map(async text => { const r = await slow({ text });'
                  ' return r.text; }))'):
        took, got = hub.value(f'{run} const r = {calls}; const all = r.map(x => (x.value ?? x));'
                              ' [Date.now() - began, all.map(x => x.text ?? x)]', wall_ms=60000)
        assert got == [f'slow:{i}' for i in range(8)]
        assert took < 1200, took
    first = hub.value('import { slow, json } from "host:mcp-odd"; return (await Promise.race('
                      '[slow({ seconds: 5 }), json({})])).data.a', wall_ms=60000)
    assert first == [1, 2]


def test_code_that_awaits_nothing_keeps_its_order(hub):
    run = 'import { slow, raw } from "host:mcp-odd"; '
    assert hub.value(run + 'slow({ text: 1 }); const r = raw({ a: 1 }); [r.text, Object.keys(r)]'
                     ) == ['raw:{"a": 1}', ['ok', 'data', 'text']]
    # One that awaits sees the same results.
    for code in ('const r = raw({}); await 0; [r.ok, r.data, ',
                 'const r = raw({}); const { ok, data } = r; await 0; [ok, data, ',
                 'const r = await raw({}); [r.ok, r.data, '):
        assert hub.value(f'{run}{code}JSON.stringify(r)]') == [True, 'raw:{}',
                                         '{"ok":true,"data":"raw:{}","text":"raw:{}"}']
    done = hub.js(run + 'const r = raw({}); await 0; console.log(r); console.table([r]);'
                  ' structuredClone(r)')
    assert done['console'][0]['text'] == "{ ok: true, data: 'raw:{}', text: 'raw:{}' }", done
    assert json.loads(done['value'])['data'] == 'raw:{}'


def test_parallel_calls_run_at_once(hub):
    """Sixteen that take a second each. The control is a loop of four of 0.3 s."""
    run = ('import { parallel } from "host:holt"; import { slow } from "host:mcp-odd";'
           'const began = Date.now();'
           'const all = WAY; export default [all.map(r => r.data).join(), Date.now() - began]')
    hub.value(run.replace('WAY', '[slow({})]'))
    text = ','.join(f'slow:{i}' for i in range(16))
    each = 'Array.from({ length: 16 }, (_, i) => '
    for way in (f'parallel({each}() => slow({{ text: i, seconds: 1 }})))',
                f'parallel({each}async () => await slow({{ text: i, seconds: 1 }})))',
                f'parallel({each}[slow, {{ text: i, seconds: 1 }}]))'):
        got, ms = hub.value(run.replace('WAY', way))
        assert got == text and ms < 16 * 1000 / 2, (way, got, ms)
    got, ms = hub.value(run.replace('WAY', '[0, 1, 2, 3].map(i => slow({ text: i }))'))
    assert got == 'slow:0,slow:1,slow:2,slow:3' and ms >= 4 * 300
    assert hub.value('import { parallel } from "host:holt"; import { slow } from "host:mcp-odd";'
                     'export default parallel([() => slow({text: 1}).data,'
                     ' () => { const { ok, data } = slow({text: 2});'
                     ' return [ok, data] }])') == ['slow:1', [True, 'slow:2']]


def test_many_calls(hub):
    many = ('import { parallel } from "host:holt"; import { get_it } from "host:mcp-odd";'
            'const n = parallel(Array.from({ length: %d }, (_, i) => () => get_it({ text: i })))'
            '.filter((r, i) => r.ok).length; export default n')
    done = hub.js(many % 300)
    assert json.loads(done['value']) == 300 and done['calls'] == 300
    done = hub.js(many % 100000, wall_ms=60000)
    assert not done['ok'] and done['error']['limit'] == 'calls' and done['calls'] <= 1000, done
    assert hub.value('1') == 1
    done = hub.js('import { get_it } from "host:mcp-odd"; for (;;) get_it({})', max_calls=5)
    assert done['error']['limit'] == 'calls' and done['calls'] == 5


def test_games_with_prototypes(hub):
    """The call is that of the index, with the arguments as they were."""
    assert hub.value('''
        const { slow } = require("host:mcp-odd");
        Object.prototype.module = 9; Object.prototype.function = 9; Object.prototype.error = "x";
        Object.prototype.isError = true; Object.prototype.result = 1; Array.prototype.length = 0;
        Object.prototype.structuredContent = { not: "this" }; Object.prototype.kind = "module";
        Object.defineProperty(Object.prototype, "ok", { set() { throw 1 } });
        Function.prototype.call = Function.prototype.apply = () => 1; Promise = null;
        Object.defineProperty(slow, "name", { value: "json" });
        const { ok, data, text } = slow({ text: "true" }); [ok, data, text]''') == [
            True, 'slow:true', 'slow:true']


def test_what_was_not_awaited_is_done(hub):
    done = hub.js('import { parallel } from "host:holt"; import { slow } from "host:mcp-odd";'
                  'parallel([() => { slow({ text: "a" }); slow({ text: "b" }); return 1 }])')
    assert done['ok'] and done['calls'] == 2


class Model:
    """Calls tools of the set `code`."""

    def __init__(self, hub, path='/mcp?tools=code'):
        self.session = Session(hub, path)

    def result(self, tool, /, **arguments):
        with self.session.hub.wire() as wire:
            self.session.call(wire, tool, **arguments)
            return self.session.result(wire)

    def texts(self, tool, /, **arguments):
        result = self.result(tool, **arguments)
        assert not result.get('isError'), result
        return [c['text'] for c in result['content']]

    def said(self, tool, /, **arguments):
        return self.texts(tool, **arguments)[0]

    def fails(self, tool, /, **arguments):
        result = self.result(tool, **arguments)
        assert result['isError'], result
        return result['content'][0]['text']


@pytest.fixture
def model(hub):
    hub.value('import "host:mcp-plain"; import "host:mcp-odd"; import "host:mcp-asks";'
              'export default 1')
    return Model(hub)


def test_the_tools_that_show_modules(model):
    """A model finds out what there is, and how to call it, for 1,200 tokens until it asks."""
    with model.session.hub.wire() as wire:
        tools = model.session.ask(wire, 'tools/list')['tools']
    assert [t['name'] for t in tools] == [
        'execute_javascript', 'register_module', 'list_modules', 'module_info', 'search_modules',
        'list_mcp_servers', 'mcp_server_info', 'manage_mcp']
    sent = [{k: t[k] for k in ('name', 'description', 'inputSchema')} for t in tools]
    assert len(json.dumps(sent, separators=(',', ':'))) + 8 * 60 < 4000  # list_modules of 8
    listed = model.said('list_modules').split('\n')
    assert listed[0] == 'host:holt: parallel'
    assert any(line.startswith('host:mcp-unapproved: ') and 'not approved' in line
               for line in listed), listed
    assert any(line.startswith('host:mcp-plain: 5 functions, ') for line in listed), listed
    shown = model.said('module_info', module='plain')
    assert 'echo(' in shown and 'text?: string' in shown and 'Gives back its text.' in shown, shown
    assert 'get_it' in model.said('module_info', module='odd')


def test_servers_are_listed(model):
    lines = dict(line.split(': ', 1) for line in model.said('list_mcp_servers').split('\n'))
    assert set(lines) == {'odd', 'asks', 'unapproved', 'plain'}
    assert lines['plain'] == 'connected, stdio, import host:mcp-plain, 5 tools'
    assert lines['unapproved'] == (
        'closed, stdio, not approved: the operator can (holt mcp approve unapproved)')


def test_a_server_shows_its_tools(model):
    shown = model.said('mcp_server_info', name='plain')
    assert shown.startswith('plain: connected, stdio, import host:mcp-plain, 5 tools\n'), shown
    assert 'declare module "host:mcp-plain" {' in shown
    assert shown.count('export function') == 5 and 'text?: string' in shown, shown
    few = model.said('mcp_server_info', name='plain', tools=['crash', 'echo'])
    assert few.count('export function') == 2 and '; 2 shown' in few.split('\n')[0], few
    one = model.said('mcp_server_info', name='plain', limit=1)
    assert one.count('export function') == 1 and 'function echo' in one, one
    one = model.said('mcp_server_info', name='plain', query='ENVIRON none', limit=1)
    assert 'function environment' in one, one
    assert 'export function' not in model.said('mcp_server_info', name='plain', query='nothing')
    one = model.said('mcp_server_info', name='odd', tools=['get-it'])
    function = one.split('export function ')[1].split('(')[0]
    assert function.startswith('get_it_') and one.count('export function') == 1, one
    assert model.said('mcp_server_info', name='odd', tools=[function]) == one
    assert 'has no tool called' in model.fails('mcp_server_info', name='plain', tools=['none'])
    assert 'mcp_server_info' in model.fails('mcp_server_info', name='plain', tools=['none'])
    assert 'list_mcp_servers' in model.fails('mcp_server_info', name='none')
    said, note = model.texts('mcp_server_info', name='asks')
    assert 'function echo' in said
    assert note == 'A person is asked for each call of environment, crash, sleep, large', note
    assert 'known once it was connected' in model.said('mcp_server_info', name='unapproved')
    for wrong in ({'limit': 51}, {'limit': 0}, {'query': 'x' * 257}, {'tools': ['x'] * 51}):
        model.fails('mcp_server_info', name='plain', **wrong)


def test_functions_are_found_by_words(hub, model):
    found = model.said('search_modules', query='environment').split('\n')
    assert found == ['host:mcp-asks environment: Gives back its text.',
                     'host:mcp-plain environment: Gives back its text.'], found
    assert model.said('search_modules', query='get-it').split('\n')[0].startswith(
        'host:mcp-odd get_it')
    said, note = model.texts('search_modules', query='TEXT gives', limit=3)
    assert len(said.split('\n')) == 3 and note == '3 of 27 are shown.', (said, note)
    assert model.said('search_modules', query='zebra ...') == (
        'No approved tool has such a word.')
    hub.post('/v1/modules/plain/disable')
    assert 'mcp-plain' not in model.said('search_modules', query='environment')
    hub.post('/v1/modules/plain/enable')
    assert 'mcp-plain' in model.said('search_modules', query='environment')  # it is not connected
    for wrong in ({'query': ''}, {'query': 'x' * 257}, {'query': 'x', 'limit': 51}, {}):
        model.fails('search_modules', **wrong)


def test_a_model_connects_servers_and_approves_none(hub, model):
    said = model.said('manage_mcp', name='plain', action='disconnect')
    assert said == 'plain: idle, stdio, import host:mcp-plain, 5 tools'
    assert hub.call('GET', '/v1/modules/plain')['state'] == 'idle'
    said = model.said('manage_mcp', name='plain', action='connect')
    assert said == 'plain: connected, stdio, import host:mcp-plain, 5 tools'
    for action in 'connect', 'approve', 'enable', '', None:
        refused = model.fails('manage_mcp', name='unapproved', action=action)
        assert 'holt mcp approve' in refused or action != 'connect', refused
    assert model.said('manage_mcp', name='unapproved', action='disconnect').startswith(
        'unapproved: closed')
    module = hub.call('GET', '/v1/modules/unapproved')
    assert module['state'] == 'closed' and not module['approved'], module
    reading = Model(as_bearer(hub, key(hub, 'reader', ['read'])))
    for action in 'connect', 'disconnect':
        assert 'scope' in reading.fails('manage_mcp', name='plain', action=action)
    assert 'plain: connected' in reading.said('list_mcp_servers')
    hub.call('DELETE', '/v1/keys/reader')


def test_no_call_loses_its_server(hub, model):
    """One that has calls under way is not disconnected."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        run = pool.submit(hub.post, '/v1/modules/plain/tools/sleep', arguments={'text': '4'})
        until(lambda: hub.call('GET', '/v1/modules/plain')['calls'] == 1, what='the call')
        assert 'under way' in model.fails('manage_mcp', name='plain', action='disconnect')
        assert run.result(60)['result']['content'][0]['text'] == '4'
    assert model.said('manage_mcp', name='plain', action='disconnect').startswith('plain: idle')


def register(hub, name, source, **more):
    return hub.post(f'/v1/javascript/modules/{name}', source=source, **more)


def unregister(hub, *names):
    for name in names:
        hub.call('DELETE', f'/v1/javascript/modules/{name}')


def test_a_registered_module_is_imported(hub, model):
    said = model.said('register_module', name='dates', description='Weeks\x1b[31m of dates.',
                      source='import { echo } from "host:mcp-plain";'
                             'export const week = n => echo({ text: "week " + n }).data;'
                             'export default 7')
    assert said == 'Code can import ha:dates. It exports week, default.', said
    use = 'import days, { week } from "ha:dates"; export default [days, week(3)]'
    assert hub.value(use) == [7, 'week 3']
    assert hub.value('require("ha:dates").week(4)') == 'week 4'
    register(hub, 'over', 'export { week } from "ha:dates"; export let n = 0; n++')
    assert hub.value('import { week, n } from "ha:over"; export default [week(1), n]') == [
        'week 1', 1]
    assert hub.value('require("ha:over").n') == 1  # each run has it anew
    # it takes the place of the older one
    assert register(hub, 'dates', 'export const week = 8')['exports'] == ['week']
    assert hub.value('require("ha:dates").week') == 8
    assert model.said('register_module', name='dates', delete=True) == 'ha:dates is deleted.'
    unregister(hub, 'over')
    for gone in ('ha:dates', 'ha:over', 'ha:', 'ha:none', 'ha:../x'):
        done = hub.js(f'import "{gone}"')
        assert not done['ok'] and 'is registered' in done['error']['message'], done
    fails(404, 'not_found', unregister, hub, 'dates')


def test_a_registered_module_is_shown(hub, model):
    source = 'export function fortnight(n) { return 14 * n }'
    register(hub, 'shown', source, description='Counts\x1b[31m days.')
    try:
        assert 'ha:shown: 1 functions, registered' in model.said('list_modules').split('\n')
        said = model.said('module_info', module='ha:shown')
        assert 'days.' in said and 'exports fortnight' in said and source in said, said
        assert model.said('search_modules', query='fortnight').startswith('ha:shown fortnight: ')
        assert 'shown' not in model.said('list_mcp_servers')
        assert 'ha:shown' in model.fails('manage_mcp', name='ha:shown', action='connect')
        for word in 'test', 'approve', 'revoke', 'enable', 'disable':
            fails(404, 'not_found', hub.post, f'/v1/modules/ha:shown/{word}', **(
                {'digest': 'x'} if word == 'approve' else {}))
    finally:
        unregister(hub, 'shown')


@pytest.mark.parametrize('source, where, says', [
    ('export const a = ;', (1, 18), 'unexpected token'), ('let a;\n  let a;', (2, 8), ''),
    ('\n\nimport { from "x"', (3, 15), ''), ('await', (1, 6), ''),
    ('export default 1; export default 2', (1, 0), 'redefinition'),
])
def test_one_that_does_not_parse_is_refused(hub, source, where, says):
    """With the place, and what was there stays."""
    register(hub, 'parsed', 'export const kept = 1')
    try:
        error = fails(400, 'invalid_input', register, hub, 'parsed', source)
        assert f'line {where[0]}, column ' in error['cause'] and says in error['cause'], error
        assert hub.value('require("ha:parsed").kept') == 1
    finally:
        unregister(hub, 'parsed')


def test_nothing_of_a_module_runs_when_it_is_registered(hub):
    """Nor is anything that it imports looked at."""
    got = register(hub, 'busy', 'import "host:mcp-none"; import x from "ha:none"; for (;;); '
                                'export const never = 1; export * from "host:mcp-odd"')
    assert got['exports'] == ['never']
    done = hub.js('export const a = 1; export default function b() { return 1 }', check=True)
    assert json.loads(done['value']) == ['a', 'default'] and done['console'] == []
    done = hub.js('''export { a as b, c }; export * from "x"; let a, c; // export let no
        export class D {} export async function e() {} export let f, g = "export let no";
        export function* h() { /* export let no */ return `export let no ${f}` }''', check=True)
    assert json.loads(done['value']) == ['b', 'c', 'D', 'e', 'f', 'h']
    unregister(hub, 'busy')


@pytest.mark.parametrize('name', ['A', '1a', 'a_b', 'a' * 33, 'holt', 'host', 'mcp', 'ha-a',
                                  'mcp-a', 'host-a', '__proto__', 'a:b', 'a%2fb', '%00'])
def test_names_that_no_module_can_have(hub, name):
    with pytest.raises(Failed) as failed:
        register(hub, name, 'export const a = 1')
    assert failed.value.status in (400, 404), failed.value.error
    assert 'ha:' not in json.dumps(hub.call('GET', '/v1/modules'))


def test_bounds_of_registered_modules(hub):
    big = f'export const a = "{"x" * (500 << 10)}"'
    for i in range(8):
        register(hub, f'big-{i}', big)
    assert '4 MiB' in fails(429, 'quota_exceeded', register, hub, 'more', big)['cause']
    register(hub, 'big-7', big)  # instead of itself
    unregister(hub, *(f'big-{i}' for i in range(8)))
    fails(400, 'invalid_input', register, hub, 'more', 'x' * ((512 << 10) + 1))
    fails(400, 'invalid_input', register, hub, 'more', '1', description='x' * 501)
    fails(400, 'invalid_input', hub.post, '/v1/javascript/modules/more')
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: register(hub, f'm-{i}', 'export const a = 1'), range(64)))
    fails(429, 'quota_exceeded', register, hub, 'more', 'export const a = 1')
    assert 'too many' in hub.js('for (let i = 0; i < 65; i++) require(`ha:m-${i % 64}`);'
                                'for (let i = 0; i < 65; i++) require(`ha:n-${i}`)'
                                )['error']['message']
    unregister(hub, *(f'm-{i}' for i in range(64)))


def test_keys_of_one_line_share_the_room(hub):
    """A key and one that it made; another key has room of its own."""
    own = as_bearer(hub, key(hub, 'room-own', ('admin',)))
    made, other = (as_bearer(by, key(by, name, ('admin',))) for by, name in ((own, 'room-made'),
                                                                             (hub, 'room-other')))
    big = 'export const a = 1; //' + 'x' * ((512 << 10) - 22)
    for i in range(8):
        register((own, made)[i % 2], f'big-{i}', big)
    for by in (own, made):
        assert '4 MiB' in fails(429, 'quota_exceeded', register, by, 'more', big)['cause']
    register(made, 'big-7', big)  # instead of itself
    fails(429, 'quota_exceeded', register, own, 'big-7', big)  # which is another's
    register(other, 'more', big)
    for by, name in ((own, 'room-made'), (hub, 'room-own'), (hub, 'room-other')):
        by.call('DELETE', f'/v1/keys/{name}')


def test_what_others_have_registered_is_not_there(hub):
    """Not for keys, nor for a later key of the same name."""
    first, bob = as_bearer(hub, key(hub, 'first')), as_bearer(hub, key(hub, 'bob'))
    register(first, 'hidden', 'export const a = "mine"')
    assert first.call('POST', '/v1/javascript', {'code': 'require("ha:hidden").a'})['value']
    for other in bob, hub:
        done = other.call('POST', '/v1/javascript', {'code': 'require("ha:hidden")'})
        assert not done['ok'] and 'mine' not in json.dumps(done)
        assert 'hidden' not in json.dumps(other.call('GET', '/v1/modules'))
        assert other.call('GET', '/v1/tools?query=hidden')['tools'] == []
        fails(404, 'not_found', other.call, 'GET', '/v1/modules/ha:hidden')
        fails(404, 'not_found', unregister, other, 'hidden')
    register(bob, 'hidden', 'export const a = "his"')
    assert json.loads(first.call('POST', '/v1/javascript',
                                 {'code': 'require("ha:hidden").a'})['value']) == 'mine'
    hub.call('DELETE', '/v1/keys/first')
    again = as_bearer(hub, key(hub, 'first'))
    fails(404, 'not_found', again.call, 'GET', '/v1/modules/ha:hidden')
    reading = as_bearer(hub, key(hub, 'reader', ['read']))
    fails(403, 'forbidden', register, reading, 'a', 'export const a = 1')
    fails(403, 'forbidden', unregister, reading, 'hidden')


def test_the_verb_registers(hub):
    path = f'{hub.who.work}/module.js'
    with open(path, 'w', encoding='utf-8') as file:
        file.write('export const twice = n => 2 * n')
    os.chmod(path, 0o644)
    assert hub.ok('js', '--register', 'by-verb', '--description', 'Twice\x1b[31m.',
                  path) == b'ha:by-verb\n'
    os.unlink(path)
    assert b'ha:by-verb' in hub.ok('mcp', 'list')
    told = hub.ok('mcp', 'info', 'ha:by-verb').decode()
    assert 'n => 2 * n' in told and 'Twice' in told and '\x1b' not in told, told
    assert hub.ok('js', '-', input=b'require("ha:by-verb").twice(4)') == b'8\n'
    assert hub.ok('js', '--unregister', 'by-verb') == b'ha:by-verb\n'
    hub.fails(125, 'by-verb', 'js', '--unregister', 'by-verb')
    hub.fails(125, 'line 1, column', 'js', '--register', 'bad', '-', input=b'export')
    for wrong in ([], ['--unregister', 'a', '-'], ['--register', 'a', '--heap', '8', '-'],
                  ['--description', 'a', '-']):
        hub.fails(2, '', 'js', *wrong)


def test_registered_modules_outlive_the_hub(me, tmp_path):
    folder = home(me, tmp_path, {'modules': {'enabled': False}})
    with Hub(me, folder, '--listen', '127.0.0.1:0') as hub:
        register(hub, 'kept', 'export const a = 1')
    with Hub(me, folder, '--listen', '127.0.0.1:0') as hub:
        assert hub.value('require("ha:kept").a') == 1
        assert [m['module'] for m in hub.call('GET', '/v1/modules')['modules']] == ['ha:kept']
        assert 'off' in fails(403, 'forbidden', hub.call, 'GET', '/v1/modules/plain')['cause']


def test_a_person_is_asked_and_the_clock_stands(hub):
    """For a key's code, and not for the operator's. The run has 6 s, the person takes 7."""
    asking = as_bearer(hub, key(hub, 'coder', ['read', 'execute', 'lifecycle']))
    code = ('import { large, echo } from "host:mcp-asks";'
            'export default [echo({ text: "e" }).data, large({ text: "3" })]')
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        run = pool.submit(asking.call, 'POST', '/v1/javascript', {'code': code, 'wall_ms': 6000})
        one, = pending(hub)
        assert one['action'] == 'module.call' and 'large' in one['arguments'], one
        until(lambda began=time.monotonic(): time.monotonic() - began > 7, what='the person thinks')
        hub.post(f'/v1/approvals/{one["id"]}', decision='approve')
        done = run.result(30)
        assert json.loads(done['value']) == ['e', {'ok': True, 'data': 'xxx', 'text': 'xxx'}], done
        run = pool.submit(asking.call, 'POST', '/v1/javascript', {'code': code})
        one, = pending(hub)
        hub.post(f'/v1/approvals/{one["id"]}', decision='deny')
        large = json.loads(run.result(30)['value'])[1]
        assert large['ok'] is False and one['id'] in large['error'], large
    hub.call('DELETE', '/v1/keys/coder')


def test_each_call_is_audited(hub):
    hub.value('import { echo } from "host:mcp-plain"; echo({text: "a"}); export default 1')
    text = json.dumps(hub.call('GET', '/v1/audit?limit=20'))
    assert '"module.call"' in text and '"code.execute"' in text, text


def test_a_module_that_ends_in_a_call(hub):
    got = hub.value('import { crash, echo } from "host:mcp-plain";'
                    'const r = crash({});'
                    'export default [r.ok, typeof r.error, echo({text: "b"}).ok]')
    assert got[:2] == [False, 'string']


@pytest.mark.timing
def test_a_run_that_ends_takes_its_calls_along(hub):
    """A call has what is left of the run, and one that ends meanwhile does not leave it behind."""
    began = time.monotonic()
    done = hub.js('import { sleep } from "host:mcp-plain"; export default sleep({ text: "60" })',
                  wall_ms=1500)
    assert time.monotonic() - began < 20, done
    assert (json.loads(done['value'])['error'].startswith('timeout') if done['ok']
            else done['error']['limit'] == 'wall'), done
    done = hub.js('import { parallel } from "host:holt"; import { sleep } from "host:mcp-plain";'
                  'parallel([() => sleep({ text: "60" }), () => { for (;;); }])', cpu_ms=1000,
                  wall_ms=120000)
    assert done['error']['limit'] == 'cpu' and done['calls'] == 1, done
    until(lambda: hub.call('GET', '/v1/modules/plain')['calls'] == 0, what='no call is left')
    assert hub.value('1') == 1


def test_the_everything_server(me, tmp_path):
    """One of npm."""
    modules = os.path.realpath(EVERYTHING)
    main = os.path.join(modules, '@modelcontextprotocol/server-everything/dist/index.js')
    if not os.path.exists(main):
        pytest.skip('tests/client has no node_modules (make deps)')
    entry = {'command': 'node', 'args': [main, 'stdio'], 'approval': 'allow', 'connectSeconds': 60,
             'sandbox': {'read': [modules]}}
    with Hub(me, home(me, tmp_path, everything=entry), '--listen', '127.0.0.1:0') as hub:
        approve(hub, 'everything')
        names = hub.value('import e from "host:mcp-everything"; export default Object.keys(e)',
                          wall_ms=120000)
        image = next(n for n in names if 'image' in n.lower())
        got = hub.value(f'''import e, {{ echo }} from "host:mcp-everything";
            const image = e[{json.dumps(image)}]({{}});
            const blob = image.content.find(c => c instanceof Uint8Array);
            export default [echo({{ message: "hi" }}).text, echo({{}}).ok, blob.mimeType, blob[1],
                            blob[2]]''', wall_ms=60000)
        assert got == ['Echo: hi', False, 'image/png', ord('P'), ord('N')]
