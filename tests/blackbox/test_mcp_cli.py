"""`holt mcp WORD`: the client for people, against servers that others wrote,
and against our own in every revision."""

import base64
import concurrent.futures
import http.server
import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from client import LATEST, until
from conftest import SHARED, residue_of
from http_client import MODERN
from mcp_cli import (EVERYTHING, Cli, Daemon, Sweep, Terminal, free_port, package, script,
                     to_program, to_url)
from oauth_site import World

REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', LATEST, MODERN]
PNG = base64.b64decode(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9'
    'awAAAABJRU5ErkJggg==')


@pytest.fixture(scope='module')
def pool():
    with concurrent.futures.ThreadPoolExecutor(4) as found:
        yield found


@pytest.fixture(scope='module')
def daemons(me):
    """Starts each server once for all tests here."""
    started = {}

    def start(key, argv, env=None):
        if key not in started:
            port = free_port()
            started[key] = Daemon(me, [a.replace('PORT', str(port)) for a in argv], port,
                                  {k: str(port) if v == 'PORT' else v
                                   for k, v in (env or {}).items()})
            SHARED.append(started[key].proc.pid)
        return started[key]
    yield start
    for daemon in started.values():
        SHARED.remove(daemon.proc.pid)
        daemon.close()


@pytest.fixture(scope='module')
def peer(daemons):
    """server.mjs over HTTP: peer('v1', 'stateful')."""
    def start(sdk, kind):
        return daemons((sdk, kind), [*script('server.mjs'), sdk, kind, 'PORT'])
    return start


@pytest.fixture
def sdk(me, peer):
    """server.mjs where it need not be started for each call."""
    return Cli(me, to_url(peer('v1', 'stateful').url('/mcp')))


@pytest.fixture
def ours(me):
    """Our own example, which starts at once."""
    return Cli(me, to_program([EVERYTHING]))


# ---- everything that servers from npm offer -----------------------------------------------------

# A name -> what is special about it. See Sweep.
SERVER_EVERYTHING = {
    # by default it fetches from the Internet
    'gzip-file-as-resource': {'values': {'data': 'data:text/plain,hello'}},
    # ten seconds by default
    'trigger-long-running-operation': {'values': {'duration': 0.2, 'steps': 2}},
    'toggle-simulated-logging': {}, 'toggle-subscriber-updates': {},
}
FILESYSTEM_FILES = {'f.txt': b'one\ntwo\n', 'p.png': PNG}


def filesystem_table(top):
    """Its schemas say no more than "a string"; what they mean are paths."""
    file, new, folder = f'{top}/f.txt', f'{top}/new.txt', f'{top}/d'
    return {
        **{name: {'values': {'path': file}}
           for name in ('read_file', 'read_text_file', 'get_file_info')},
        **{name: {'values': {'path': top}}
           for name in ('list_directory', 'list_directory_with_sizes', 'directory_tree')},
        'read_media_file': {'values': {'path': f'{top}/p.png'}},
        'read_multiple_files': {'values': {'paths': [file]}},
        'write_file': {'values': {'path': f'{top}/w.txt'}},
        'edit_file': {'values': {'path': f'{top}/e.txt',
                                 'edits': [{'oldText': 'a', 'newText': 'b'}]}},
        'create_directory': {'values': {'path': folder}},
        'move_file': {'values': {'source': f'{top}/m.txt', 'destination': new}},
        'search_files': {'values': {'path': top, 'pattern': '*.txt'}},
    }


@pytest.mark.parametrize('transport', ['stdio', 'sse', 'http'])
def test_server_everything(me, pool, daemons, transport):
    argv = package('everything')
    if transport == 'stdio':
        cli = Cli(me, to_program([*argv, 'stdio']))
    else:
        kind, path = {'sse': ('sse', '/sse'), 'http': ('streamableHttp', '/mcp')}[transport]
        cli = Cli(me, to_url(daemons(('everything', kind), [*argv, kind],
                                     {'PORT': 'PORT'}).url(path)))
    assert cli.json('discover')['transport'] == transport
    sweep = Sweep(cli, SERVER_EVERYTHING)
    # over stdio each call starts a server of its own
    assert sweep.run(pool, 4 if transport == 'stdio' else 1) >= 12
    assert transport == 'stdio' or set(SERVER_EVERYTHING) <= sweep.used  # no row is stale


def test_server_filesystem(me, pool):
    top = os.path.join(me.work, 'filesystem')
    os.mkdir(top)
    for name, data in {**FILESYSTEM_FILES, 'e.txt': b'a\n', 'm.txt': b'm\n'}.items():
        with open(os.path.join(top, name), 'wb') as f:
            f.write(data)
    cli = Cli(me, to_program([*package('filesystem'), top]))
    table = filesystem_table(top)
    assert Sweep(cli, table).run(pool, 3) > 10
    cli.json('call', 'create_directory', f'path={top}/d')
    assert os.path.isdir(f'{top}/d')
    done = cli.run('call', 'read_text_file', 'path=/etc/passwd')
    assert done.returncode == 5 and b'denied' in done.stdout
    other = os.path.join(me.work, 'other')
    os.mkdir(other)
    until(lambda: other in cli.text('call', 'list_allowed_directories', '--root', other),
          what='the root')


def test_server_memory(me):
    """Its tools depend on each other, so they are called in order."""
    path = os.path.join(me.work, 'memory.jsonl')
    cli = Cli(me, to_program(package('memory'), '--env', f'MEMORY_FILE_PATH={path}'))
    calls = {
        'create_entities': ['entities=[{"name":"a","entityType":"t","observations":[]},'
                            '{"name":"b","entityType":"t","observations":[]}]'],
        'create_relations': ['relations=[{"from":"a","to":"b","relationType":"knows"}]'],
        'add_observations': ['observations=[{"entityName":"a","contents":["seen"]}]'],
        'read_graph': [], 'search_nodes': ['query=a'], 'open_nodes': ['names=["a"]'],
        'delete_observations': ['deletions=[{"entityName":"a","observations":["seen"]}]'],
        'delete_relations': ['relations=[{"from":"a","to":"b","relationType":"knows"}]'],
        'delete_entities': ['entityNames=["a"]'],
    }
    assert {t['name'] for t in cli.json('tools')['tools']} == set(calls)
    got = {name: cli.json('call', name, *arguments) for name, arguments in calls.items()}
    assert ('seen' in json.dumps(got['read_graph'])
            and 'knows' in json.dumps(got['search_nodes'] | got['read_graph']))
    with open(path, encoding='utf-8') as f:
        assert [json.loads(line)['name'] for line in f] == ['b']


def test_server_sequential_thinking(me, pool):
    cli = Cli(me, to_program(package('sequential-thinking')))
    assert Sweep(cli, {}).run(pool) == 1


# ---- servers built on the TypeScript SDK --------------------------------------------------------

SDK_TABLE = {
    'fail': {'status': 5}, 'refuse': {'skip': 'is an error of the protocol: test_how_it_ends'},
    'ask': {'options': ['--answer', 'name=Al']}, 'hold': {'skip': 'never ends: test_interrupted'},
}
SDK_STATELESS = {**SDK_TABLE, 'ask': {'skip': 'a server without sessions can not be answered'}}


@pytest.mark.parametrize('sdk, kind, era, table', [
    ('v1', 'stdio', 'legacy', SDK_TABLE), ('v1', 'stateful', 'legacy', SDK_TABLE),
    ('v1', 'stateless', 'legacy', SDK_STATELESS), ('v1', 'sse', 'legacy', SDK_TABLE),
    ('v2', 'stdio', 'modern', SDK_TABLE), ('v2', 'dual', 'modern', SDK_TABLE),
    ('v2', 'modern', 'modern', SDK_TABLE),
], ids=lambda v: v if isinstance(v, str) else '')
def test_sdk_servers(me, pool, peer, sdk, kind, era, table):
    if kind == 'stdio':
        cli = Cli(me, to_program([*script('server.mjs'), sdk, 'stdio']))
    else:
        cli = Cli(me, to_url(peer(sdk, kind).url('/sse' if kind == 'sse' else '/mcp')))
    begun = time.monotonic()
    found = cli.json('discover')['era']
    # who is silent for three seconds is taken for one of the old revisions
    assert found == era or kind == 'stdio' and time.monotonic() - begun > 3
    assert Sweep(cli, table).run(pool, 3 if kind == 'stdio' else 1) == 9


def test_a_dual_server_in_both_eras(me, peer):
    url = peer('v2', 'dual').url('/mcp')
    for era, revision in (('legacy', LATEST), ('modern', MODERN)):
        got = Cli(me, to_url(url, '--era', era)).json('discover')
        assert (got['era'], got['revision']) == (era, revision)
    works = Cli(me, to_url(url)).json('discover', '--all')['works']
    assert [w['revision'] for w in works] == REVISIONS
    only = Cli(me, to_url(peer('v2', 'modern').url('/mcp')))
    assert [w['revision'] for w in only.json('discover', '--all')['works']] == [MODERN]
    assert only.run('tools', '--era', 'legacy').returncode == 6


# ---- bridges in front of them -------------------------------------------------------------------


@pytest.mark.parametrize('front, path, wire', [
    (['supergateway/dist/index.js', '--stdio', 'COMMAND', '--outputTransport', 'streamableHttp',
      '--stateful', '--port', 'PORT',
      '--logLevel', 'none'], '/mcp', 'http'),
    (['supergateway/dist/index.js', '--stdio', 'COMMAND', '--outputTransport', 'sse', '--port',
      'PORT', '--logLevel', 'none'],
     '/sse', 'sse'),
    (['mcp-proxy/dist/bin/mcp-proxy.mjs', '--host', '127.0.0.1', '--port', 'PORT', '--', 'ARGV'],
     '/mcp', 'http'),
    (['mcp-proxy/dist/bin/mcp-proxy.mjs', '--host', '127.0.0.1', '--port', 'PORT', '--', 'ARGV'],
     '/sse', 'sse'),
], ids=['supergateway-http', 'supergateway-sse', 'mcp-proxy-http', 'mcp-proxy-sse'])
def test_bridges(me, daemons, front, path, wire):
    inner = package('sequential-thinking')
    argv = script(*front[0].split('/'))
    for word in front[1:]:
        argv += inner if word == 'ARGV' else [' '.join(inner) if word == 'COMMAND' else word]
    cli = Cli(me, to_url(daemons((front[0], 'sse' in front), argv).url(path)))
    assert cli.json('discover')['transport'] == wire
    got = cli.json('call', 'sequentialthinking', 'thought=x', 'nextThoughtNeeded=true',
                   'thoughtNumber=1', 'totalThoughts=2')
    assert not got.get('isError')


@pytest.mark.parametrize('option, kind, path',
                         [('--streamableHttp', 'stateful', '/mcp'), ('--sse', 'sse', '/sse')])
def test_supergateway_to_stdio(me, peer, option, kind, path):
    argv = [*script('supergateway', 'dist', 'index.js'), option, peer('v1', kind).url(path),
            '--logLevel', 'none']
    assert Cli(me, to_program(argv)).text('call', 'echo', 'message=through') == 'through\n'


# ---- our own, in every revision -----------------------------------------------------------------

OURS = {
    'json_schema_2020_12_tool': {'values': {'phone': '1', 'contactMethod': 'phone'}},
    'test_error_handling': {'status': 5},
    'test_dynamic_tool': {'skip': 'comes and goes with test_trigger_tool_change'},
    'slow_compute': {'values': {'seconds': 0}},
    # what has to be answered; folders and a model are asked for by their own
    **{name: {'options': ['--answer',
                          '{"name":"Al","username":"Al","email":"a@b.example","confirm":true}']}
       for name in (
           'test_elicitation', 'test_elicitation_sep1034_defaults', 'test_streaming_elicitation',
           'test_input_required_result_elicitation', 'test_input_required_result_request_state',
           'test_input_required_result_tampered_state', 'confirm_delete')},
}
# Tools that need a model, a page, folders, tasks or what not every revision has:
# how they end is theirs, but they end.
ANY = ('sampling', 'missing', 'url', 'roots', 'multiple_inputs', 'multi_round', 'capabilities',
       'enums', 'multi_input', 'with_task', 'protocol_error_job', 'failing_job', 'elicitation',
       'request_state', 'tampered', 'confirm_delete')


class OurSweep(Sweep):
    def tool(self, tool):
        name = tool['name']
        if not any(word in name for word in ANY):
            super().tool(tool)
            return
        operands = (['filename=x'] if name == 'confirm_delete'
                    else [f'{k}=x' for k in tool['inputSchema'].get('required', [])])
        done = self.cli.run('call', '--json', *self.row(name).get('options', []), name, *operands)
        assert done.returncode in (0, 5, 6), (name, done)
        json.loads(done.stdout or done.stderr.splitlines()[-1])


@pytest.fixture(scope='module')
def everything(daemons):
    return daemons('ours', [EVERYTHING, '127.0.0.1:PORT'])


@pytest.mark.parametrize('revision', REVISIONS)
@pytest.mark.parametrize('transport', ['stdio', 'http', 'sse'])
def test_our_own(me, pool, everything, transport, revision):
    if transport == 'sse' and revision == MODERN:
        pytest.skip('HTTP+SSE is a transport of the old revisions')
    if transport == 'stdio':
        to = to_program([EVERYTHING])
    else:
        to = to_url(everything.url('/sse' if transport == 'sse' else '/mcp'))
    cli = Cli(me, [*to[:-2], '--revision', revision, *to[-2:]])
    got = cli.json('discover')
    assert (got['revision'], got['transport']) == (revision, transport)
    # all of it once a wire and an era
    whole = (transport, revision) in (('stdio', MODERN), ('http', MODERN), ('http', LATEST),
                                      ('sse', LATEST))
    assert OurSweep(cli, OURS).run(pool, 1 if whole else 6) > 40


@pytest.mark.parametrize('transport', ['stdio', 'http', 'sse'])
def test_all_that_our_own_speaks(me, everything, transport):
    cli = Cli(me, to_program([EVERYTHING]) if transport == 'stdio'
              else to_url(everything.url('/sse' if transport == 'sse' else '/mcp')))
    works = [(w['revision'], w['transport']) for w in cli.json('discover', '--all')['works']]
    assert works == [(r, transport) for r in (REVISIONS[:-1] if transport == 'sse' else REVISIONS)]


# ---- arguments ----------------------------------------------------------------------------------


def test_arguments_take_their_types(sdk, tmp_path):
    file = tmp_path / 'list'
    file.write_text('[1, 2.5]')
    got = sdk.json('call', 'types', 's=1', 'i=-3', 'b=true', f'l=@{file}', 'o={"x":[null]}',
                   'n=null', 'e=2')
    assert json.loads(got['content'][0]['text']) == {'s': '1', 'i': -3, 'b': True, 'l': [1, 2.5],
                                                     'o': {'x': [None]}, 'n': None, 'e': 2}
    for given in (['{"i":5}'], ['i:=5'], ['-']):
        got = sdk.json('call', 'types', *given,
                       **({'input': b'{"i": 5}'} if given == ['-'] else {}))
        assert json.loads(got['content'][0]['text']) == {'i': 5}


@pytest.mark.parametrize('given, says', [
    (['types', 'i=x'], 'i takes an integer'), (['types', 'i=1.5'], 'i takes an integer'),
    (['types', 'b=yes'], 'b takes true or false'), (['types', 'l=1,2'], 'l takes an array'),
    (['types', 'n=x'], 'n takes a number or null'), (['types', 'ss=1'], 'did you mean'),
    (['types', 'other=1'], 'no argument other'), (['types', 'other:=1'], 'other'),
    (['types', 'i=1', 'i=2'], 'twice'), (['types', 'l=["a"]'], 'l/0'), (['types', 'e=3'], 'e '),
    (['types', 'loose'], 'NAME=VALUE'), (['types', '{"i":}'], 'arguments'),
    (['types', '[1]'], 'NAME=VALUE'), (['types', 's=@/no/such/file'], 's: '),
    (['types', 'i:=x'], 'JSON'), (['sum', 'a=1'], 'b is missing (number'),
    (['ech', 'message=x'], 'did you mean echo'), (['nothing-like-it'], 'no tool'),
], ids=str)
def test_arguments_that_are_refused(sdk, given, says):
    """Nothing is sent of them."""
    done = sdk.run('call', *given)
    assert done.returncode == 2 and says in done.stderr.decode() and not done.stdout, done


@pytest.mark.parametrize('line, words', [
    ("a b", ['a', 'b']), ("'a b'", ['a b']), ('"a b"', ['a b']), ('a\\ b', ['a b']),
    ('"a\\"b" \'c"d\'', ['a"b', 'c"d']),
    ('"$HOME" * `id` $(id) > x | y ; z && w ~',
     ['$HOME', '*', '`id`', '$(id)', '>', 'x', '|', 'y', ';', 'z', '&&', 'w', '~']),
    ("''", ['']), ('a""b', ['ab']), ('\\\\ "\\n"', ['\\', '\\n']),
])
def test_command_lines(me, tmp_path, line, words):
    """No shell has a part in it."""
    program = tmp_path / 'program'
    program.write_text(f'#!/bin/sh\nfor a; do printf "%s\\0" "$a"; done >"{tmp_path}/said.$$"\n')
    program.chmod(0o755)
    me.run('mcp', 'tools', '--stdio', f'{program} {line}')
    said = [p.read_text() for p in tmp_path.glob('said.*')]
    assert said and all(s == ''.join(w + '\0' for w in words) for s in said)


# ---- which server -------------------------------------------------------------------------------


def test_which_server(me, tmp_path):
    config = tmp_path / 'mcp.json'
    server = script('server.mjs')
    config.write_text(json.dumps({'mcpServers': {
        'a': {'command': server[0], 'args': [server[1], 'v1', 'stdio'], 'env': {'X': 'y'}},
        'bad': {'command': 'x', 'args': ['${HOME}']}, 'number': {'command': 5}}}))
    assert 'echo' in Cli(me, ['--config', str(config), '--server', 'a']).text('tools')
    for to, says in (([], 'which server'), (['--config', str(config)], 'which server'),
                     (['--config', str(config), '--server', 'b'], 'no server b'),
                     (['--config', '/no/such', '--server', 'a'], 'no/such'),
                     (['--config', str(config), '--server', 'bad'], 'does not expand'),
                     (['--config', str(config), '--server', 'number'], 'command'),
                     (['--stdio', "'"], 'not closed'), (['--stdio', ''], 'empty'),
                     (['--url', 'ftp://x'], 'http'), (['--url', 'x'], ''),
                     (['--url', 'http://x/', '--stdio', 'y'], 'more than one'),
                     (['--'], 'no program'),
                     (['--revision', '2020-01-01', '--', 'true'], 'revision'),
                     (['--era', 'old', '--', 'true'], 'legacy|modern'),
                     (['--era', 'legacy', '--revision', MODERN, '--', 'true'], 'nothing is left'),
                     (['-H', 'x: y', '--', 'true'], 'no headers'),
                     (['--transport', 'sse', '--', 'true'], 'nothing is left'),
                     (['-H', 'bad', '--url', 'http://127.0.0.1:1/'], 'NAME: VALUE')):
        done = Cli(me, to).run('tools')
        assert done.returncode == (125 if '/no/such' in to
                                   else 2) and says in done.stderr.decode(), (to, done)


def test_variables(ours, me, tmp_path):
    """A program gets what it needs to know, what it is given, and no secrets."""
    program = tmp_path / 'program'
    program.write_text(f'#!/bin/sh\nenv >"{tmp_path}/env"\n')
    program.chmod(0o755)
    Cli(me, to_program([str(program)], '-e', 'A=b c', '-e', 'TAKEN', '-e', 'LANG=x', '-e',
                       'ABSENT'),
        env={'TAKEN': '1', 'SECRET': '2'}).run('tools')
    env = (tmp_path / 'env').read_text().splitlines()
    assert ('A=b c' in env and 'TAKEN=1' in env and env.count('LANG=x') == 1
            and not [v for v in env if 'SECRET' in v or 'ABSENT' in v])
    assert [v for v in env if v.startswith('LANG=')] == ['LANG=x'] and [v for v in env
                                                                        if v.startswith('PATH=')]


def test_a_socket(me, tmp_path):
    """unix:PATH, as that of `holt serve`."""
    path = str(tmp_path / 'socket')
    log = open(me.log(), 'wb')
    with log, subprocess.Popen(me.argv('serve', '--listen', '127.0.0.1:0', '--socket', path,
                                       '--pool', '0'), env=me.env, cwd='/',
                               stdout=subprocess.PIPE, stderr=log) as proc:
        try:
            assert proc.stdout.readline()
            token = tmp_path / 'token'
            token.write_bytes(me.run('auth', 'token').stdout)
            cli = Cli(me, to_url('unix:' + path, '--token-file', str(token)))
            assert 'sandbox_exec' in cli.text('tools')
            assert Cli(me, to_url('unix:' + path)).run('tools').returncode in (0, 3)
        finally:
            proc.send_signal(signal.SIGTERM)


# ---- what is shown ------------------------------------------------------------------------------


@pytest.mark.parametrize('json_too', [[], ['--json']], ids=['text', 'json'])
def test_nothing_of_a_server_is_a_command_to_the_terminal(sdk, json_too):
    for arguments in (['call', 'evil'], ['tools'], ['discover']):
        out = sdk.run(*arguments, *json_too).stdout
        text = out.decode()
        assert not re.search('[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2028]', text), out
    assert json_too or r'a\x1b[31mred\x07\x9b1m\u202eb' in sdk.text('call', 'evil')
    if json_too:
        assert (sdk.json('call', 'evil')['content'][0]['text']
                == 'a\x1b[31mred\x07\x9b1m\u202eb\r\nnext\tcolumn')


def test_content(sdk, tmp_path):
    text = sdk.text('call', 'media')
    assert ('[image image/png, 70 bytes]' in text and '[audio audio/wav, 4 bytes]' in text
            and 'embedded\n' in text)
    assert '[link peer://text]' in text
    folder = tmp_path / 'out'
    for _ in range(2):  # nothing is written over
        assert 'saved as' in sdk.text('call', 'media', '--out', str(folder))
    files = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert (len(files) == 6 and list(files.values()).count(PNG) == 2
            and list(files.values()).count(b'embedded\n') == 2)
    assert json.loads(sdk.text('call', 'sum', 'a=1', 'b=0.5')) == {'sum': 1.5}
    assert sdk.text('read', 'peer://text') == 'this is peer://text\n'
    assert 'sum' in sdk.text('tools', 'sum') and '"outputSchema"' not in sdk.text('tools')


def test_progress_and_log(ours):
    done = ours.run('call', 'test_tool_with_progress', '--progress')
    assert done.returncode == 0 and b'100' in done.stderr.splitlines()[-1], done
    done = ours.run('call', 'test_tool_with_logging', '--log', 'info')
    assert done.stderr.count(b'[info]') == 3, done
    assert b'[' not in ours.run('call', 'test_tool_with_logging').stderr
    assert b'[' not in ours.run('call', 'test_tool_with_logging', '--log', 'emergency').stderr
    done = ours.run('call', 'test_tool_with_logging', '--log', 'debug', '--era', 'legacy')
    assert done.stderr.count(b'[info]') == 3, done


# ---- how it ends --------------------------------------------------------------------------------


class Refusing(http.server.BaseHTTPRequestHandler):
    """It reads a body before it refuses: closing on one unread resets the connection,
    refusal and all."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get('Content-Length', 0)))
        self.send_response(401)
        self.send_header('Content-Length', '0')
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *arguments):
        pass


@pytest.fixture
def refusing():
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f'http://127.0.0.1:{server.server_address[1]}/mcp'
        server.shutdown()


def test_how_it_ends(me, sdk, refusing, tmp_path):
    assert sdk.run('call', 'fail').returncode == 5
    error = sdk.failure(6, 'call', 'refuse')
    assert (error['kind'], error['code'], error['data']) == ('protocol_error', -32602,
                                                             {'name': 'refuse'})
    assert sdk.failure(2, 'call', 'sum')['kind'] == 'usage'
    assert sdk.failure(124, 'call', 'hold', '--timeout', '3')['kind'] == 'timeout'
    for to in (['--', '/no/such/program'], ['--', 'true'], ['--', str(tmp_path)],
               to_url(f'http://127.0.0.1:{free_port()}/mcp')):
        assert Cli(me, to).failure(4, 'tools')['kind'] == 'unreachable'
    assert (Cli(me, ['--', 'sleep', '100']).failure(4, 'tools', '--timeout', '1')['kind']
            == 'unreachable')
    token = tmp_path / 'token'
    token.write_text('wrong\n')
    for to in (to_url(refusing), to_url(refusing, '--token-file', str(token)),
               to_url(refusing, '-H', 'Authorization: Basic x')):
        assert Cli(me, to).failure(3, 'tools')['kind'] == 'authorization', to


def test_what_its_program_wrote(me):
    done = Cli(me, ['--', 'sh', '-c', 'printf "broken\\033[31m\\n" >&2; exit 3']).run('tools')
    assert done.returncode == 4 and rb'broken\x1b[31m' in done.stderr and b'status 3' in done.stderr
    done = Cli(me, ['-v', '--', 'sh', '-c', 'echo told >&2; exec "$0"', EVERYTHING]).run('discover')
    assert done.returncode == 0 and b'told' in done.stderr


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize('sdk', ['v1', 'v2'])
def test_interrupted(me, sdk, number):
    """The server hears of it, and ends."""
    residue = residue_of(me)
    argv = me.argv('mcp', 'call', '-v', 'hold', '--', *script('server.mjs'), sdk, 'stdio')
    with subprocess.Popen(argv, env=me.env, cwd='/', stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as proc:
        while b'held' not in proc.stderr.readline():
            assert proc.poll() is None
        proc.send_signal(number)
        assert proc.wait(60) == 128 + number
    residue.check()


def test_interrupted_over_http(me, peer):
    daemon = peer('v2', 'modern')
    before = daemon.said().count('cancelled')
    argv = me.argv('mcp', 'call', 'hold', '--url', daemon.url('/mcp'))
    with subprocess.Popen(argv, env=me.env, cwd='/', stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as proc:
        until(lambda: daemon.said().count('held') > daemon.said().count('cancelled'),
              what='the call')
        proc.send_signal(signal.SIGINT)
        assert proc.wait(60) == 130
    until(lambda: daemon.said().count('cancelled') > before, what='its cancellation')


def test_a_second_signal_ends_at_once(me, tmp_path):
    """Also of a program that will not go, with what it has started."""
    residue = residue_of(me)
    program = tmp_path / 'program'
    program.write_text('#!/bin/sh\ntrap "" TERM\nsleep 1000 & echo up >&2\nwhile :; do sleep 1; '
                       'done\n')
    program.chmod(0o755)
    with subprocess.Popen(me.argv('mcp', 'tools', '-v', '--', str(program)), env=me.env, cwd='/',
                          stderr=subprocess.PIPE) as proc:
        assert proc.stderr.readline() == b'up\n'
        proc.send_signal(signal.SIGINT)
        time.sleep(0.1)
        proc.send_signal(signal.SIGINT)
        assert proc.wait(60) in (130, 128 + signal.SIGKILL)
    residue.check()


def test_output_that_nobody_reads(me):
    with subprocess.Popen(me.argv('mcp', 'tools', '--', EVERYTHING), env=me.env, cwd='/',
                          stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as proc:
        proc.stdout.close()
        assert proc.wait(60) in (0, 128 + signal.SIGPIPE)


# ---- questions ----------------------------------------------------------------------------------


@pytest.mark.parametrize('sdk', ['v1', 'v2'])
def test_a_form_at_the_terminal(me, sdk):
    """Types are checked, Enter takes the default, choices are numbered."""
    t = Terminal(me, 'mcp', 'call', 'ask', '--', *script('server.mjs'), sdk, 'stdio')
    t.expect('peer-' + sdk + ' asks:')
    t.expect('Who are you?')
    t.expect('name (string, required)')
    t.expect('> ')
    t.type('\n')
    t.expect('it is required')
    t.type('A\n')
    t.expect('fewer than 2')
    t.type('Ada\n')
    t.expect('age (integer)')
    t.expect('[7]')
    t.type('old\n')
    t.expect('an integer')
    t.type('-1\n')
    t.expect('less than 0')
    t.type('\n')
    t.expect('vip (yes or no)')
    t.type('n\n')
    t.expect('2) "green"')
    t.type('blue\n')
    t.expect('not one of the choices')
    t.type('2\n')
    t.expect('Send it')
    t.type('\n')
    said, status = t.end()
    assert status == 0 and '{"name":"Ada","age":7,"vip":false,"color":"green"}' in said, said


@pytest.mark.parametrize('typed, action', [('Ada\n\n\n\nn\n', 'decline'), ('\x04', 'cancel'),
                                           ('Ada\n\x04', 'cancel')])
def test_a_form_that_is_declined(me, typed, action):
    t = Terminal(me, 'mcp', 'call', 'ask', '--', *script('server.mjs'), 'v1', 'stdio')
    t.expect('> ')
    t.type(typed)
    said, status = t.end()
    assert status == 0 and f'{{"action":"{action}"}}' in said, said


def test_an_interrupt_at_a_question(me):
    residue = residue_of(me)
    t = Terminal(me, 'mcp', 'call', 'ask', '--', *script('server.mjs'), 'v1', 'stdio')
    t.expect('> ')
    t.type('\x03')
    assert t.end()[1] == 130
    residue.check()


@pytest.mark.parametrize('typed, action',
                         [('y\n', 'accept'), ('\n', 'decline'), ('\x04', 'cancel')])
def test_an_address(me, typed, action):
    t = Terminal(me, 'mcp', 'call', 'test_elicitation_url', '--', EVERYTHING)
    t.expect('https://example.com/confirm')
    t.expect('agree?')
    t.type(typed)
    said, status = t.end()
    assert status == 0 and f'action={action}' in said, said


def test_questions_without_a_terminal(sdk, ours):
    done = sdk.run('call', 'ask')
    assert done.returncode == 0 and b'"decline"' in done.stdout and b'Who are you?' in done.stderr
    done = sdk.run('call', 'ask', '--answer', 'name=A')  # too short
    assert b'"decline"' in done.stdout and b'declined' in done.stderr, done
    done = sdk.run('call', 'ask', '--answer', 'name=Al', '--answer', 'age=x')
    assert b'"decline"' in done.stdout and b'age takes an integer' in done.stderr
    done = sdk.run('call', 'ask', '--answer', '{"name":"Al","vip":false}')
    assert b'"content":{"age":7,"name":"Al","vip":false}' in done.stdout
    done = ours.run('call', 'test_elicitation_url')
    assert b'action=decline' in done.stdout and b'https://example.com/confirm' in done.stderr
    done = ours.run('call', 'test_sampling', 'prompt=x')
    assert done.returncode == 6 and b'does not offer' in done.stderr, done


def test_folders(ours, tmp_path):
    folder = tmp_path / 'ä b'
    folder.mkdir()
    got = ours.text('call', 'test_input_required_result_list_roots', '--root', str(folder))
    assert '%C3%A4%20b' in got or '1' in got
    assert ours.run('call', 'test_input_required_result_list_roots').returncode == 6


# ---- what was found out -------------------------------------------------------------------------


def cache_of(me):
    return os.path.join(me.env['XDG_CACHE_HOME'], 'holt', 'mcp-servers')


def test_what_is_known_is_not_trusted(me, tmp_path):
    """A server that has become another is found out anew."""
    program = tmp_path / 'program'
    server = script('server.mjs')

    def become(sdk):
        program.write_text(f'#!/bin/sh\necho start >>{tmp_path}/starts\nexec {server[0]} '
                           f'{server[1]} {sdk} stdio\n')
        program.chmod(0o755)
        (tmp_path / 'starts').write_text('')
    cli = Cli(me, to_program([str(program)]))
    become('v1')
    assert cli.json('discover')['era'] == 'legacy'
    assert (tmp_path / 'starts').read_text() == 'start\n' * 2  # one was asked what it is
    (tmp_path / 'starts').write_text('')
    begun = time.monotonic()
    assert cli.json('discover')['era'] == 'legacy'
    assert (tmp_path / 'starts').read_text() == 'start\n' or time.monotonic() - begun > 3
    become('v2')
    assert cli.json('tools')['tools']  # it speaks the old revisions as well
    assert cli.json('discover', '--era', 'modern')['era'] == 'modern'
    become('v1')
    assert cli.json('discover')['era'] == 'legacy'


def test_the_cache_survives_anything(me, ours, pool):
    path = cache_of(me)
    for text in (b'', b'\xff' * 100, b'x\n' * 5000, b'0123456789abcdef 9 9\n', b'\n' * 10000):
        with open(path, 'wb') as f:
            f.write(text)
        assert ours.json('discover')['era'] == 'modern'
    targets = [Cli(me, to_program([EVERYTHING], '--cwd', f'/proc/{os.getpid()}/' + './' * n))
               for n in range(24)]
    for done in [pool.submit(t.json, 'discover') for t in targets]:
        assert done.result()['era'] == 'modern'
    with open(path, encoding='ascii') as f:
        lines = f.read().splitlines()
    assert (lines and all(re.fullmatch('[0-9a-f]{16} [123] [12]', line) for line in lines)
            and len(lines) <= 200)
    assert os.listdir(os.path.dirname(path)) == ['mcp-servers']
    os.unlink(path)
    os.mkdir(path)
    try:
        assert ours.json('discover')['era'] == 'modern'
    finally:
        os.rmdir(path)


# ---- the command line itself --------------------------------------------------------------------


WORDS = ['discover', 'tools', 'call', 'read', 'logout', 'import', 'config']


def test_help(me):
    text = me.run('help', 'mcp').stdout.decode()
    man = open(os.path.join(os.path.dirname(__file__), '../../man/holt-mcp-client.1.scd'),
               encoding='utf-8').read()
    told = {o for line in re.findall(r'^\*-.*', man, re.M) for o in re.findall(r'--[\w-]+', line)}
    known = set()
    for word in WORDS:
        assert re.search(rf'^  mcp {word} ', text, re.M), word
        own = me.run('help', 'mcp', word).stdout.decode()
        assert own == me.run('mcp', word, '--help').stdout.decode()
        assert all(len(line) <= 80 for line in own.splitlines()), word
        assert re.search(rf'\*holt mcp {word}\*', man), word
        known |= set(re.findall(r'^ .*?(--[\w-]+)', own, re.M))
    assert told == known
    for status in re.findall(r'PEER_END\(\w+, (\d+)', open(os.path.join(
        os.path.dirname(__file__), '../../src/cli/peer/end.h'), encoding='utf-8').read()):
        assert f'*{status}*' in man


@pytest.mark.parametrize('given, says', [
    (['cal'], "did you mean 'mcp call'"), (['nonsense'], 'help mcp'), (['call'], 'missing'),
    (['tools', 'a', 'b', 'c'], 'too much'), (['tools', '--jsn'], '--json'),
    (['call', '--log', 'loud', 'x'], 'debug|info'), (['read'], 'missing'),
])
def test_what_is_refused(me, given, says):
    done = me.run('mcp', *given)
    assert done.returncode == 2 and says in done.stderr.decode() and not done.stdout, done


def test_options_stand_anywhere(ours):
    assert ours.text('call', 'echo', '--json', 'message=x', '-v').startswith('{')
    assert ours.text('call', '--json', 'echo', 'message=--json').count('--json') == 1


# ---- who we are ---------------------------------------------------------------------------------


def rpc(q):
    """A server of one revision with one tool, for who is let in."""
    m = json.loads(q.body)
    results = {
        'initialize': {'protocolVersion': LATEST, 'capabilities': {'tools': {}},
                       'serverInfo': {'name': 'guarded', 'version': '1'}},
        'tools/list': {'tools': [{'name': 'secret', 'inputSchema': {'type': 'object'}}]},
        'tools/call': {'content': [{'type': 'text', 'text': 'let in'}]},
    }
    if 'id' not in m:
        return 202, {}, b''
    if m['method'] not in results:
        return (200, {'Content-Type': 'application/json'},
                {'jsonrpc': '2.0', 'id': m['id'], 'error': {'code': -32601, 'message': 'no'}})
    return 200, {'Content-Type': 'application/json'}, {'jsonrpc': '2.0', 'id': m['id'],
                                                       'result': results[m['method']]}


@pytest.fixture
def guarded():
    with World() as world:
        ask = world.server.on['/mcp']

        def serve(q):
            if q.method != 'POST':
                return 405, {}, b''
            refusal = ask(q)
            return rpc(q) if refusal[0] == 200 else refusal
        world.server.on['/mcp'] = serve
        yield world


def modern_rpc(q):
    """One whose tool wants to know folders, and again, for ever."""
    m = json.loads(q.body)
    results = {'server/discover': {'supportedVersions': [MODERN], 'capabilities': {'tools': {}},
                                   'ttlMs': 0, 'cacheScope': 'public'},
               'tools/list': {'tools': [{'name': 'secret', 'inputSchema': {'type': 'object'}}],
                              'ttlMs': 0, 'cacheScope': 'public'},
               'tools/call': {'resultType': 'input_required', 'inputRequests': {
                   'k': {'method': 'roots/list'}}, 'requestState': 's'}}
    answer = {'jsonrpc': '2.0', 'id': m.get('id'),
              'error': {'code': -32601, 'message': 'no such method'}}
    if m['method'] in results:
        answer = {'jsonrpc': '2.0', 'id': m['id'],
                  'result': {'resultType': 'complete', **results[m['method']]}}
    return (200 if 'result' in answer else 404), {'Content-Type': 'application/json'}, answer


def test_a_server_that_wants_too_much(me, guarded):
    """Its fault, not one of Holt: the status says so."""
    cli = Cli(me, to_url(guarded.server.mcp, '--login', 'never'))
    serve = guarded.server.on['/mcp'] = lambda q: (429, {}, {})
    error = cli.failure(4, 'tools')
    assert error['kind'] == 'unreachable' and '429' in error['message']
    assert b'Wait, and try again.' in cli.run('tools').stderr
    guarded.server.on['/mcp'] = (lambda q: serve(q) if b'tools/call' in q.body else rpc(q)
                                 if q.method == 'POST' else (405, {}, b''))
    assert cli.failure(6, 'call', 'secret')['kind'] == 'protocol_error'
    guarded.server.on['/mcp'] = modern_rpc
    error = cli.failure(6, 'call', 'secret', '--root', '/tmp', '--era', 'modern')
    assert error['kind'] == 'protocol_error' and '16' in error['message'], error

    def pages(q):
        m = json.loads(q.body)
        if m.get('method') != 'tools/list':
            return rpc(q)
        return 200, {'Content-Type': 'application/json'}, {
            'jsonrpc': '2.0', 'id': m['id'], 'result': {'tools': [], 'nextCursor': str(m['id'])}}
    guarded.server.on['/mcp'] = lambda q: pages(q) if q.method == 'POST' else (405, {}, b'')
    error = cli.failure(6, 'tools', '--era', 'legacy')
    assert error['kind'] == 'protocol_error' and '1000 pages' in error['message'], error


def attack_issuer(world):
    world.auth.meta['issuer'] = 'https://honest.example'


def attack_resource(world):
    world.server.meta['resource'] = 'https://honest.example/mcp'


def attack_pkce(world):
    del world.auth.meta['code_challenge_methods_supported']


def attack_network(world):
    world.server.meta['authorization_servers'] = ['https://10.0.0.1/']


@pytest.mark.parametrize('attack, status, remedy', [
    (attack_issuer, 6, 'give it no token'), (attack_resource, 6, 'give it no token'),
    (attack_pkce, 6, 'give it no token'),
    (attack_network, 3, '--allow-private'),
], ids=lambda v: getattr(v, '__name__', None))
def test_what_to_do_about_an_attack(me, guarded, attack, status, remedy):
    """To give the server a token would be the worst of all."""
    attack(guarded)
    done = Cli(me, to_url(guarded.server.mcp, '--login', 'browser')).run('tools')
    assert (done.returncode == status and remedy in done.stderr.decode()
            and b'--token-file' not in done.stderr), done


def test_what_to_do_about_other_refusals(me, guarded):
    guarded.server.on['/mcp'] = lambda q: (403, {}, {})
    done = Cli(me, to_url(guarded.server.mcp)).run('tools')
    assert done.returncode == 3 and b'operator to allow it' in done.stderr, done
    guarded.server.on['/mcp'] = lambda q: (405, {}, b'') if q.method == 'POST' else (
        200, {'Content-Type': 'text/event-stream'},
        b'event: endpoint\ndata: http://honest.example/post\n\n')
    done = Cli(me, to_url(guarded.server.mcp, '--transport', 'sse')).run('tools')
    assert done.returncode == 6 and b'give it no token' in done.stderr, done


class LogIn:
    """`holt mcp call secret` while it waits for somebody to log in."""

    def __init__(self, me, world, *options):
        argv = me.argv('mcp', 'call', 'secret', '--url', world.server.mcp, *options)
        self.proc = subprocess.Popen(argv, env=me.env, cwd='/', stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.said = b''

    def find(self, pattern):
        while True:
            found = re.search(pattern, self.said)
            if found:
                return found.group().decode().strip()
            line = self.proc.stderr.readline()
            assert line, self.said
            self.said += line

    def end(self):
        out, err = self.proc.communicate(timeout=60)
        return self.proc.returncode, out, self.said + err


def test_log_in_by_link(me, guarded):
    never = Cli(me, to_url(guarded.server.mcp, '--login', 'never'))
    assert never.failure(3, 'tools')['kind'] == 'authorization'
    # nobody is there to log in
    assert Cli(me, to_url(guarded.server.mcp)).run('tools').returncode == 3
    assert guarded.auth.count('/authorize') == 0
    login = LogIn(me, guarded, '--login', 'browser')
    # as a browser goes there and back
    with urllib.request.urlopen(login.find(rb'http://\S+/authorize\S+\n')) as page:
        assert page.status == 200
    status, out, err = login.end()
    assert (status, out) == (0, b'let in\n') and b'Logged in' in err
    assert not [s for s in guarded.auth.secrets if s.encode() in out + err]
    assert never.text('call', 'secret') == 'let in\n'  # it is kept
    assert guarded.auth.count('/authorize') == 1
    folder = os.path.join(me.env['XDG_DATA_HOME'], 'holt', 'oauth')
    assert {os.stat(os.path.join(folder, n)).st_mode & 0o777 for n in os.listdir(folder)} == {0o600}
    assert me.run('mcp', 'logout', '--url', guarded.server.mcp).returncode == 0
    assert never.failure(3, 'tools')['kind'] == 'authorization'


def test_log_in_by_code(me, guarded):
    guarded.auth.meta['device_authorization_endpoint'] = guarded.auth.url + '/device'
    guarded.auth.pending = 1
    login = LogIn(me, guarded, '--login', 'device')
    assert login.find(rb'http://\S+/go\n') == guarded.auth.url + '/go'
    login.find(rb'WDJB-MJHT')
    status, out, _ = login.end()
    assert (status, out) == (0, b'let in\n')


def test_without_a_home(me, everything):
    """Nothing can be kept; servers that want nobody to log in do not mind."""
    for home in ({}, {'HOME': '/proc/1/none'}):
        done = subprocess.run(me.argv('mcp', 'call', 'echo', 'message=x', '--url',
                                      everything.url('/mcp')), env=home, cwd='/',
                              capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (0, b'x\n'), done


def test_a_log_in_that_is_given_up(me, guarded):
    residue = residue_of(me)
    login = LogIn(me, guarded, '--login', 'browser')
    login.find(rb'http://\S+/authorize\S+\n')
    login.proc.send_signal(signal.SIGINT)
    assert login.end()[0] == 130
    login = LogIn(me, guarded, '--login', 'browser')
    guarded.auth.redirect_with = {'code': None, 'error': 'access_denied'}
    try:
        urllib.request.urlopen(login.find(rb'http://\S+/authorize\S+\n')).close()
    except urllib.error.HTTPError:
        pass
    assert login.end()[0] == 3
    residue.check()
