"""Resources, prompts, completions and log messages of modules through the gateway, whatever the era
of each side: server-everything (legacy), examples/everything (modern), and hostile ones of ours.
Two servers have the same names. Each denial has a control."""

import base64
import concurrent.futures
import json
import os
import threading

import pytest

import host
from approval import pending
from client import until
from http_client import Modern, Session
from mcp_cli import EVERYTHING
from modules import approve, home, server
from test_gateway import Hub, libraries
from test_keys import as_bearer, key
from test_module_servers import entry

SECRET = 'value-of-the-secret-4d27'
OURS = r'''
import threading
TOOLS[:] = [tool(n) for n in ('echo', 'log', 'update', 'wait', 'link', 'change')]
KEY = os.environ.get('KEY', '')
RESOURCES = [
    {'uri': 'x:same', 'name': 'same\u202e', 'description': 'See\u200b \x1b[2Jit', 'size': 3},
    {'uri': 'x:hid\u200bden', 'name': 'hidden'}, {'name': 'without'}, {'uri': 'x:large'},
    {'uri': 'x:wrong'}, {'uri': 'x:' + 'y' * 5000}]
PROMPTS = [{'name': 'say it', 'description': 'Says\u200b it.', 'arguments': [
    {'name': 'text', 'required': True, 'description': 'Wh\u202eat.'}]},
    {'name': 'say-it'}, {'name': 'bad', 'arguments': [{'name': 'a\u200bb'}]}, {'name': 'wrong'}]

def log(level, data, **more):
    say({'method': 'notifications/message', 'params': {'level': level, 'data': data, **more}})

def contents(uri):
    if uri == 'x:wrong':
        return {'contents': 'x'}
    if uri == 'x:same':
        return {'contents': [{'uri': uri, 'text': sys.argv[1] + ' ' + KEY}]}
    return {'contents': [{'uri': uri, 'text': 'x' * (2 << 20)}]}

def prompt(name, arguments):
    if name == 'wrong':
        return {'messages': [{'role': 'user', 'content': 'x'}]}
    return {'description': 'As\u200b asked.', 'messages': [
        {'role': 'evil', 'content': {'type': 'text', 'text': sys.argv[1] + str(arguments) + KEY}},
        {'role': 'assistant', 'content': {'type': 'resource', 'resource': {
            'uri': 'x:same', 'text': 'in it'}}}]}

def call(id, name, arguments):
    text = arguments.get('text', '')
    content = [{'type': 'text', 'text': text}]
    if name == 'log':
        for level in ('debug', 'info', 'error'):
            log(level, {'said': text + level, 'key': KEY, 'hid\u200bden': 'a\u202eb'}, logger='me')
        log('loud', 'no level')
        for i in range(int(arguments.get('n', 0))):
            log('info', 'x' * 1000 + str(i))
    if name == 'update':
        for uri in ['x:same'] * int(text):
            say({'method': 'notifications/resources/updated', 'params': {'uri': uri}})
    if name == 'link':
        content = [{'type': 'resource_link', 'uri': 'x:same', 'name': 'same'}]
    if name == 'change':
        RESOURCES.append({'uri': 'x:' + text, 'name': text})
        PROMPTS.append({'name': text})
        say({'method': 'notifications/resources/list_changed'})
        say({'method': 'notifications/prompts/list_changed'})
    if name == 'wait':
        waits.append(id)
        return
    if name == 'echo' and text == 'go':
        log('info', 'of nobody that is known')
        for one in waits:
            say({'id': one, 'result': {'content': content}})
        waits.clear()
    say({'id': id, 'result': {'content': content}})

waits = []
before = take
def take(m):
    method, params = m.get('method'), m.get('params') or {}
    result = None
    if method == 'initialize':
        result = {'protocolVersion': '2025-06-18', 'serverInfo': {'name': 'ours', 'version': '1'},
                  'capabilities': {'tools': {}, 'logging': {}, 'completions': {},
                                   'prompts': {'listChanged': True},
                                   'resources': {'subscribe': True, 'listChanged': True}}}
    if method == 'resources/list':
        result = {'resources': RESOURCES}
    if method == 'resources/templates/list':
        result = {'resourceTemplates': [{'uriTemplate': 'x:{name}', 'name': 'any'}]}
    if method == 'resources/read':
        result = contents(params['uri'])
    if method == 'prompts/list':
        result = {'prompts': PROMPTS}
    if method == 'prompts/get':
        result = prompt(params['name'], params.get('arguments'))
    if method == 'completion/complete':
        result = {'completion': {'values': ['a', 'b\u202ec', json.dumps(params)] + ['z'] * 200}}
    if method in ('resources/subscribe', 'resources/unsubscribe', 'logging/setLevel'):
        print(method, json.dumps(params), file=sys.stderr, flush=True)
        result = {}
    say({'id': m['id'], 'result': result}) if result is not None else before(m)
main()
'''

# Some of what they have, in each of them.
ALL_PROMPTS = {'npm__simple-prompt', 'npm__args-prompt', 'ours__test_simple_prompt', 'odd__say-it',
               'twin__say-it', 'narrow__say-it'}
ALL_TEMPLATES = {'sandbox://{sandbox}/{+path}', 'module://odd/x:{name}', 'module://twin/x:{name}',
                 'module://npm/demo://resource/dynamic/text/{resourceId}'}


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    servers = {
        'npm': entry('everything', 'stdio'),
        'ours': {'command': os.path.realpath(EVERYTHING), 'approval': 'allow',
                 'sandbox': {'read': libraries(EVERYTHING)}},
        'odd': server(OURS, 'odd', env={'KEY': '${secret:of-odd}'}),
        'twin': server(OURS, 'twin'),
        'asks': server(OURS, 'asks', approval='ask', readOnlyTools=['prompts/get', 'echo']),
        'narrow': server(OURS, 'narrow', allowTools=['echo', 'prompts/get']),
    }
    more = {'modules': {'connected': 9}, 'policy': {'rules': [
        {'name': 'no large', 'tools': ['twin__resources/read'], 'when': {
            '/kind': 'resource', '/arguments/uri': 'x:large'}, 'then': 'deny'}]}}
    folder = home(me, tmp_path_factory.mktemp('resources'), more, **servers)
    with Hub(me, folder, '--listen', '127.0.0.1:0', '--pool', '2') as shared:
        shared.post('/v1/secrets', name='of-odd', value=SECRET)
        for name in servers:
            approve(shared, name)
            shared.post(f'/v1/modules/{name}/test')
        until(lambda: {'npm', 'ours', 'odd', 'twin', 'asks'} <= {
            u.split('/')[2] for u in uris(legacy(shared)) if u.startswith('module:')}, what='lists')
        until(lambda: ALL_PROMPTS <= set(prompts(legacy(shared))), what='those of prompts')
        until(lambda: ALL_TEMPLATES <= templates(legacy(shared)), what='those of templates')
        yield shared
    before.check()


def legacy(hub, path='/mcp?tools=gateway'):
    return Session(hub.door, path=path)


def modern(hub):
    return Modern(hub.door, '/mcp?tools=gateway')


eras = pytest.mark.parametrize('client', [legacy, modern], ids=['legacy', 'modern'])


def ask(of, method, **params):
    reply = of.request(method, params)
    got = reply.answer()
    reply.close()
    return got


def listed(of, method, member):
    params, all = {}, []
    while True:
        got = ask(of, method, **params)['result']
        all += got[member]
        if 'nextCursor' not in got:
            return all
        params = {'cursor': got['nextCursor']}


def uris(of):
    return {r['uri']: r for r in listed(of, 'resources/list', 'resources')}


def prompts(of):
    return {p['name']: p for p in listed(of, 'prompts/list', 'prompts')}


def templates(of):
    return {t['uriTemplate'] for t in listed(of, 'resources/templates/list', 'resourceTemplates')}


def read(of, uri):
    answer = ask(of, 'resources/read', uri=uri)
    return answer['result']['contents'] if 'result' in answer else answer['error']


# ---- lists ------------------------------------------------------------------------------------

@eras
def test_lists(hub, client):
    """Names of two servers never meet, texts are clean, and what can't be shown is left out."""
    of = client(hub)
    found, named, made = uris(of), prompts(of), templates(of)
    same = found['module://odd/x:same']
    assert same['name'] == 'same' and same['description'] == 'See it' and same['size'] == 3
    assert {'module://twin/x:same', 'module://npm/demo://resource/static/document/features.md',
            'module://ours/test://static-text'} <= set(found)
    assert not [u for u in found if 'hid' in u or 'yyy' in u or 'narrow' in u]
    assert ALL_TEMPLATES <= made and ALL_PROMPTS <= set(named)
    assert not [n for n in named if 'bad' in n] and all(len(n) <= 64 for n in named)
    said = [p for n, p in named.items() if n.startswith('odd__say_it')][0]
    assert said['description'] == 'Says it.' and said['arguments'][0]['description'] == 'What.'
    assert '\\u20' not in json.dumps([found, named, list(made)])


def test_without_the_set(hub):
    """A client that did not ask for tools of modules has nothing of them."""
    of = legacy(hub, '/mcp')
    assert {'prompts', 'logging'} & set(of.info['capabilities']) == set()
    assert 'subscribe' not in of.info['capabilities']['resources']
    assert {'prompts', 'logging'} <= set(legacy(hub).info['capabilities'])
    assert not [u for u in uris(of) if u.startswith('module:')]
    assert read(of, 'module://odd/x:same')['code'] == -32002
    for method in 'prompts/list', 'resources/subscribe', 'logging/setLevel':
        assert ask(of, method, uri='module://odd/x:same', level='info')['error']['code'] == -32601


def test_lists_that_change(hub):
    of = legacy(hub)
    stream = of.listen()
    of.call('twin__change', text='later')
    seen = set()
    while len(seen) < 2:
        seen.add(stream.real_event().message()['method'])
    assert seen == {'notifications/resources/list_changed', 'notifications/prompts/list_changed'}
    assert 'module://twin/x:later' in uris(of) and 'twin__later' in prompts(of)
    stream.close()


# ---- use --------------------------------------------------------------------------------------

@eras
def test_reads(hub, client):
    of = client(hub)
    for name in 'odd', 'twin':
        one, = read(of, f'module://{name}/x:same')
        assert one['text'].startswith(name) and one['uri'] == f'module://{name}/x:same'
        assert SECRET not in one['text']
    document = 'module://npm/demo://resource/static/document/features.md'
    assert 'Everything' in read(of, document)[0]['text']
    text, = read(of, 'module://npm/demo://resource/dynamic/text/7')
    assert text['text'].startswith('Resource 7')
    blob, = read(of, 'module://npm/demo://resource/dynamic/blob/7')
    assert base64.b64decode(blob['blob']).startswith(b'Resource 7')
    assert blob['uri'] == 'module://npm/demo://resource/dynamic/blob/7'
    assert read(of, 'module://ours/test://static-text')[0]['text']


@eras
def test_reads_that_fail(hub, client):
    of = client(hub)
    for uri, says in (
            ('module://odd/x:large', 'at most'), ('module://odd/x:wrong', 'resources/read'),
            ('module://twin/x:large', 'no large'), ('module://narrow/x:same', 'does not allow'),
            ('module://npm/demo://resource/dynamic/text/no', 'answered with error'),
            ('module://odd/' + 'x' * 5000, 'at most')):
        assert says in read(of, uri)['message'], uri
    for uri in 'module://none/x:same', 'module://odd/', 'module://odd', 'module:///x', 'x:same':
        assert read(of, uri)['code'] in (-32002, -32602), uri
    assert read(of, 'module://odd/x:same')[0]['text']  # the control


@eras
def test_prompts(hub, client):
    of = client(hub)
    names = [n for n in prompts(of) if n.startswith('odd__say_it')]
    got = ask(of, 'prompts/get', name=names[0], arguments={'text': 'hi'})['result']
    assert got['description'] == 'As asked.' and SECRET not in json.dumps(got)
    assert [m['role'] for m in got['messages']] == ['user', 'assistant']
    assert "odd{'text': 'hi'}" in got['messages'][0]['content']['text']
    inside = got['messages'][1]['content']['resource']['uri']
    assert read(of, inside)[0]['text'].startswith('odd')
    for name, arguments, says in ((names[0], {}, 'missing'), ('odd__none', {}, 'unknown prompt'),
                                  ('odd__wrong', {}, 'prompts/get')):
        answer = ask(of, 'prompts/get', name=name, arguments=arguments)
        assert says in answer['error']['message'], answer
    weather = ask(of, 'prompts/get', name='npm__args-prompt', arguments={'city': 'Oslo'})
    assert 'Oslo' in json.dumps(weather['result'])
    got = ask(of, 'prompts/get', name='ours__test_prompt_with_embedded_resource',
              arguments={'resourceUri': 'test://static-text'})['result']
    assert 'module://ours/test://static-text' in json.dumps(got)


@eras
def test_completions(hub, client):
    of = client(hub)

    def complete(ref, name, value):
        answer = ask(of, 'completion/complete', ref=ref, argument={'name': name, 'value': value})
        return answer['result']['completion']['values']
    assert complete({'type': 'ref/prompt', 'name': 'npm__completable-prompt'}, 'department',
                    'Eng') == ['Engineering']
    got = complete({'type': 'ref/resource', 'uri': 'module://odd/x:{name}'}, 'name', 'v')
    assert len(got) <= 100 and got[0] == 'a' and not [v for v in got if '\u202e' in v]
    assert json.loads(got[1])['ref'] == {'type': 'ref/resource', 'uri': 'x:{name}'}
    # nobody is asked about one
    assert complete({'type': 'ref/resource', 'uri': 'module://asks/x:{name}'}, 'name', 'v') == []


def test_links_in_results(hub):
    of = legacy(hub)
    link, = of.call('odd__link')['content']
    assert read(of, link['uri'])[0]['text'].startswith('odd')
    links = [c for c in of.call('npm__get-resource-links', count=2)['content']
             if c['type'] == 'resource_link']
    assert len(links) == 2 and all(read(of, one['uri'])[0] for one in links)


def test_a_person_is_asked(hub):
    """As for a tool; a method that the operator calls read-only asks nobody."""
    of = legacy(hub)
    assert ask(of, 'prompts/get', name='asks__say-it')['result']['messages']
    for decision, sees in ('approve', 'contents'), ('deny', None):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read, of, 'module://asks/x:same')
            request, = pending(hub, 1)
            assert request['action'] == 'module.call' and 'x:same' in json.dumps(request)
            hub.post(f'/v1/approvals/{request["id"]}', decision=decision)
            got = reading.result(20)
        assert (isinstance(got, list)) == bool(sees), got
    record = hub.call('GET', '/v1/audit?action=module.call&limit=1')['records'][0]
    assert record['decision'] != 'allow', record


# ---- what is watched --------------------------------------------------------------------------

def updates(stream, n):
    return [stream.real_event().message()['params']['uri'] for _ in range(n)]


def test_a_legacy_client_watches(hub):
    of, other = legacy(hub), legacy(hub)
    stream, quiet = of.listen(), other.listen()
    assert ask(of, 'resources/subscribe', uri='module://odd/x:same')['result'] == {}
    assert ask(other, 'resources/subscribe', uri='module://twin/x:same')['result'] == {}
    until(lambda: log(hub, 'odd').count('resources/subscribe {"uri": "x:same"}') == 1,
          what='its subscription')
    of.call('odd__update', text='1')
    assert updates(stream, 1) == ['module://odd/x:same']
    of.call('twin__update', text='1')
    assert updates(quiet, 1) == ['module://twin/x:same']
    ask(of, 'resources/unsubscribe', uri='module://odd/x:same')
    until(lambda: 'resources/unsubscribe' in log(hub, 'odd'), what='its end')
    assert of.end() == other.end() == 204
    until(lambda: 'resources/unsubscribe' in log(hub, 'twin'), what='the end of a session')


def test_a_modern_client_watches(hub):
    of = modern(hub)
    listen = of.request('subscriptions/listen', {'notifications': {
        'resourceSubscriptions': ['module://odd/x:same', 'module://ours/test://watched-resource']}})
    assert listen.real_event().message()['method'].endswith('acknowledged')
    until(lambda: log(hub, 'odd').count('resources/subscribe') >
          log(hub, 'odd').count('resources/unsubscribe'), what='its subscription')
    of.call('odd__update', text='1')
    assert updates(listen, 1) == ['module://odd/x:same']
    listen.close()


def test_a_flood_of_updates(hub):
    """Control: one that comes later is told."""
    of = legacy(hub)
    stream = of.listen()
    ask(of, 'resources/subscribe', uri='module://odd/x:same')
    of.call('odd__update', text='5000')
    of.call('twin__change', text='end of the flood')
    told = []
    while 'list_changed' not in (told or [''])[-1]:
        told.append(stream.real_event().message()['method'])
    assert 1 <= len(told) < 500, len(told)
    stream.close()
    of.end()


# ---- log messages -----------------------------------------------------------------------------

def log(hub, name):
    return hub.call('GET', f'/v1/modules/{name}/logs')['text']


def heard(reply):
    """Messages on the way to the answer."""
    got = reply.messages()
    reply.close()
    assert 'result' in got[-1], got[-1]
    return [m['params'] for m in got[:-1] if m['method'] == 'notifications/message']


def test_a_legacy_client_hears_what_it_wants(hub):
    of = legacy(hub)
    told = heard(of.tool('odd__log', text='a-'))
    assert [m['level'] for m in told] == ['info', 'error'] and told[0]['logger'] == 'me'
    assert told[0]['data']['said'] == 'a-info'
    for level, hears in ('error', ['error']), ('debug', ['debug', 'info', 'error']):
        assert ask(of, 'logging/setLevel', level=level)['result'] == {}
        assert [m['level'] for m in heard(of.tool('odd__log', text=level))] == hears
    assert '"level": "debug"' in log(hub, 'odd')  # the server was asked for them
    assert SECRET not in json.dumps(told) and '\\u20' not in json.dumps(told)
    kept = log(hub, 'odd')
    assert '[info] me: ' in kept and '[debug] me: ' in kept
    assert 'a-info' not in kept and 'debugdebug' not in kept  # that is the call's
    assert SECRET not in kept and '\u202e' not in kept
    assert '[info] me: ' in hub.ok('mcp', 'logs', 'odd').decode()


def test_a_modern_client_hears_what_it_wants(hub):
    of = modern(hub)
    assert heard(of.tool('odd__log', text='b-')) == []
    told = heard(of.tool('odd__log', text='c-', meta={'io.modelcontextprotocol/logLevel': 'error'}))
    assert [m['data']['said'] for m in told] == ['c-error']


def test_a_modern_server_logs(hub):
    of = legacy(hub)
    assert heard(of.tool('ours__test_tool_with_logging'))


def test_a_flood_of_messages(hub):
    """Control: the call is answered, and so is the next."""
    of = legacy(hub)
    told = heard(of.tool('odd__log', text='', n='3000'))
    assert 100 < len(told) < 1000, len(told)
    assert len(log(hub, 'odd').encode()) <= 65536
    assert [m['level'] for m in heard(of.tool('odd__log', text=''))] == ['info', 'error']


def test_no_principal_hears_of_another(hub):
    """Over stdio a message may be about any call so far. Control: one principal alone."""
    other = legacy(as_bearer(hub, key(hub, 'hears')))
    of = legacy(hub)
    waiting = other.tool('odd__wait', text='x')
    until(lambda: hub.call('GET', '/v1/modules/odd')['calls'] == 1, what='its call')
    assert heard(of.tool('odd__log', text='private-')) == []
    of.call('odd__echo', text='go')
    assert heard(waiting) == []
    assert heard(of.tool('odd__log', text='late-')) == []  # the other's call may have said that
    hub.post('/v1/modules/odd/disconnect')
    threads = [threading.Thread(target=lambda: heard(of.tool('odd__wait')))]
    threads[0].start()
    until(lambda: hub.call('GET', '/v1/modules/odd')['calls'] == 1, what='its call')
    assert heard(of.tool('odd__log', text='own-'))
    of.call('odd__echo', text='go')
    threads[0].join(20)
