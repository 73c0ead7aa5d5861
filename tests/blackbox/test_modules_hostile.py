"""Modules that do all that a server can: garbage, wrong and double answers, endless lists, lines
that never end. Each fails alone, in bounded time."""

import concurrent.futures
import time

import pytest

import host
from modules import approve, call, home, server, text
from rest import Failed, fails
from test_hub_cli import Hub

SCRIPTS = {
    # what is no message between messages, and answers that nobody waits for
    'garbage': r'''
plain = call
def call(id, name, arguments):
    sys.stdout.write('\x1b[2Jnot json\n\n[]\n"x"\n{"jsonrpc":"2.0"}\n\xff\xfe\n')
    say({'id': id + 1000, 'result': {'content': []}})
    say({'id': 'another', 'result': {'content': []}})
    plain(id, name, arguments)
    plain(id, name, {'text': 'twice'})
main()''',
    'pages': r'''
old = take
def take(m):
    if m.get('method') == 'tools/list':
        say({'id': m['id'], 'result': {'tools': [], 'nextCursor': str(time.monotonic())}})
    else:
        old(m)
main()''',
    'many': "TOOLS = [tool(f't{i}') for i in range(5000)]\nmain()",
    'shapes': r'''
plain = call
def call(id, name, arguments):
    say({'id': id, 'result': [1, 2]} if arguments['text'] == 'array' else
        {'id': id, 'result': {'content': 'no list'}} if arguments['text'] == 'content' else
        {'id': id, 'error': {'code': -32000, 'message': '\x1b[31mno' + 'x' * 5000}})
main()''',
    'endless': r'''
def call(id, name, arguments):
    while True:
        sys.stdout.write('x' * 65536)
main()''',
    'asks': r'''
plain = call
def call(id, name, arguments):
    say({'id': 'q1', 'method': 'sampling/createMessage',
         'params': {'messages': [], 'maxTokens': 1}})
    say({'id': 'q2', 'method': 'elicitation/create', 'params': {
        'message': 'Your password?', 'requestedSchema': {'type': 'object', 'properties': {}}}})
    say({'id': 'q3', 'method': 'roots/list'})
    plain(id, name, arguments)
main()''',
    'deep': r'''
def call(id, name, arguments):
    print('{"jsonrpc":"2.0","id":%d,"result":{"content":[],"x":%s%s}}' % (
        id, '[' * 100000, ']' * 100000), flush=True)
main()''',
    'hang': 'main()',
    'sane': 'main()',
}


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    servers = {name: server(script, timeoutSeconds=20, connectSeconds=20)
               for name, script in SCRIPTS.items()}
    servers['hang'] = server(timeoutSeconds=4)
    servers['endless'] = server(SCRIPTS['endless'], timeoutSeconds=5)
    with Hub(me, home(me, tmp_path_factory.mktemp('hostile'), **servers),
             '--listen', '127.0.0.1:0', '--pool', '1') as shared:
        for name in servers:
            approve(shared, name)
        yield shared
        assert text(shared, 'sane', 'echo', text='still') == 'still'
    before.check()


def test_garbage_and_strays_are_dropped(hub):
    for i in range(5):
        assert text(hub, 'garbage', 'echo', text=f'right {i}') == f'right {i}'
    assert 'not json\n' in hub.call('GET', '/v1/modules/garbage/logs')['text']


@pytest.mark.timing
@pytest.mark.parametrize('name', ['pages', 'many'])
def test_lists_that_are_none(hub, name):
    began = time.monotonic()
    with pytest.raises(Failed):
        call(hub, name, 'echo', text='x')
    assert time.monotonic() - began < 60
    assert hub.call('GET', f'/v1/modules/{name}')['state'] == 'error'


@pytest.mark.parametrize('shape', ['array', 'content'])
def test_answers_of_no_shape(hub, shape):
    with pytest.raises(Failed):
        call(hub, 'shapes', 'echo', text=shape)


def test_its_errors_are_told(hub):
    error = fails(502, 'module_failed', call, hub, 'shapes', 'echo', text='error')
    assert '-32000' in error['cause'] and len(error['cause']) < 1000


@pytest.mark.parametrize('name', ['endless', 'deep'])
def test_lines_without_an_end_and_depth(hub, name):
    with pytest.raises(Failed):
        call(hub, name, 'echo', text='x')
    hub.post(f'/v1/modules/{name}/disable')


def test_nobody_is_asked_for_a_server(hub):
    assert text(hub, 'asks', 'echo', text='x') == 'x'


def test_a_call_that_hangs_is_ended_alone(hub):
    text(hub, 'hang', 'echo', text='x')
    fails(504, 'exec_timeout', call, hub, 'hang', 'sleep', text='1000')


def test_each_of_many_gets_its_own_answer(hub):
    text(hub, 'sane', 'echo', text='x')
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        said = list(pool.map(lambda i: text(hub, 'sane', 'echo', text=str(i)), range(400)))
    assert said == [str(i) for i in range(400)]
