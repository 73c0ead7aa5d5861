"""Programs of a sandbox that call modules: Python and shells, the gate on their way, and what
hostile ones try. Each denial has a control."""

import concurrent.futures
import json
import os
import socket

import pytest

import host
from approval import pending
from client import until
from modules import approve, call, home, server
from rest import fails
from test_code_modules import EVERYTHING, ODD, Hub
from test_keys import as_bearer, key

AT = ('127.3.0.1', 3129)
PYTHON = 'python3 -c "$CODE"'


class Guests(Hub):
    def box(self, *modules, **more):
        return self.post('/v1/sandboxes', modules=list(modules), **more)['id']

    def ran(self, box, command, **env):
        """Exit status, standard output and standard error."""
        done = self.exec(box, command, env=env)
        return done['exit_code'], done['stdout'], done['stderr']

    def python(self, box, code):
        status, out, err = self.ran(box, PYTHON, CODE=code)
        assert status == 0, err
        return json.loads(out)

    def last(self, n):
        """The last calls of tools that are recorded."""
        return self.call('GET', f'/v1/audit?action=module.call&limit={n}')['records']


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    servers = {'odd': server(ODD), 'asks': server(approval='ask', readOnlyTools=['echo']),
               'unapproved': server(), 'my-plain': server(), 'import': server(),
               'ruled': server()}
    rules = [{'name': 'no crash', 'actions': ['module.call'],
              'when': {'/module': 'ruled', '/tool': 'crash'}, 'then': 'deny'},
             {'name': 'not from inside', 'actions': ['module.call'],
              'when': {'/module': 'ruled', '/tool': 'large', '/sandbox': '*'}, 'then': 'deny'},
             {'name': 'no such sandbox', 'actions': ['sandbox.create'],
              'when': {'/modules': 'unapproved'}, 'then': 'deny'}]
    folder = home(me, tmp_path_factory.mktemp('guests'), {'policy': {'rules': rules}}, **servers)
    with Guests(me, folder, '--listen', '127.0.0.1:0', '--pool', '2') as shared:
        for name in 'odd', 'asks', 'my-plain', 'import', 'ruled':
            approve(shared, name)
        yield shared
    before.check()


@pytest.fixture(scope='module')
def box(hub):
    return hub.box('odd', 'asks', 'my-plain', 'import', 'ruled')


ODDLY = 'import json, holt.mcp.odd as odd; r = %s; print(json.dumps(r, default=repr))'


@pytest.mark.parametrize('code, value', [
    ('odd.slow({"text": "x"})', {'ok': True, 'data': 'slow:x', 'text': 'slow:x'}),
    ('odd.slow()["ok"]', True), ('odd.json({})["data"]["a"]', [1, 2]),
    ('odd.broken({})["data"]', '[1'),
    ('[odd.blob({})["data"].mimeType, len(odd.blob({})["data"])]', ['image/png', 8]),
    ('odd.mixed({})["text"]', 'one\ntwo'), ('len(odd.mixed({})["content"])', 4),
    ('odd.structured({})["data"]', {'t': 1.5, 'error': 'mine'}),
    ('odd.fails({})', {'ok': False, 'text': 'it broke', 'error': 'it broke'}),
    ('odd.silent({})["error"]', 'the tool has failed, and did not say why'),
    ('odd.refuses({})["ok"]', False), ('len(odd.__all__)', 17),
    ('sorted(getattr(odd, f)({"text": 1})["text"] for f in odd.__all__ if f[:3] in ("get", "cla"))',
     ['class:1', 'get-it:1', 'get_it:1']),
])
def test_python(hub, box, code, value):
    """The same results as in JavaScript (test_code_modules.py)."""
    assert hub.python(box, ODDLY % code) == value


@pytest.mark.parametrize('code, says', [
    ('import holt.mcp.none', "not made with a module none"),
    ('import holt.mcp.unapproved', "not made with a module unapproved"),
    ('from holt.mcp.odd import nope', 'nope'),
    ('import holt.mcp.odd as odd; odd.slow("text")', 'takes one dict'),
    ('import holt.mcp.odd as odd; odd.slow({"text": float("nan")})', 'not JSON compliant'),
    ('import holt.mcp.odd.slow', 'holt.mcp.odd'),
])
def test_python_that_is_wrong(hub, box, code, says):
    status, _, err = hub.ran(box, PYTHON, CODE=code)
    assert status == 1 and says in err


def test_names_of_python(hub, box):
    assert hub.python(box, 'import json, holt.mcp.my_plain, holt.mcp.import_, holt.mcp as all;'
                      'print(json.dumps([dir(all), holt.mcp.my_plain.echo({"text": "a"})["data"],'
                      'holt.mcp.import_.echo({"text": "b"})["data"]]))') == [
                          ['asks', 'import_', 'my_plain', 'odd', 'ruled'], 'a', 'b']


def test_declarations(hub, box, tmp_path):
    """What is printed is what a type checker takes."""
    status, out, _ = hub.ran(box, 'python3 -m holt odd')
    assert status == 0 and 'def get_it(input: GetItInput' in out
    assert hub.ran(box, 'holt-call odd')[1].strip() == out.strip()
    compile(out, 'odd.pyi', 'exec')
    assert hub.ran(box, 'python3 -m holt')[1] == 'odd\nasks\nmy-plain\nimport\nruled\n'
    assert 'slow' in hub.python(box, 'import json, holt.mcp.odd as m;'
                                'print(json.dumps(m.__declaration__))')


@pytest.mark.parametrize('command, status, out, err', [
    ("holt-call odd slow '{\"text\": \"a b\"}'", 0, 'slow:a b\n', ''),
    ('holt-call odd json', 0, '{"a": [1, 2], "__proto__": 3}\n', ''),
    ('holt-call odd structured', 0, '{"t":1.5,"error":"mine"}\n', ''),
    ('holt-call odd fails', 1, '', 'it broke\n'),
    ('echo \'{"text": 7}\' | holt-call odd get-it -', 0, 'get-it:7\n', ''),
    ('holt-call odd __proto__', 0, '__proto__:\n', ''),
    ('holt-call my_plain echo', 0, '\n', ''),
    ('holt-call a b c d', 2, '', 'usage: '), ('holt-call --help', 2, '', 'usage: '),
    ("holt-call odd slow '{'", 3, '', 'holt-call: invalid'),
    ("holt-call odd slow '{},\"do\":\"list\"'", 3, '', 'holt-call: invalid'),
    ("holt-call odd slow '[]'", 3, '', 'an object'), ('holt-call none x', 3, '', 'none'),
    ('head -c 2000000 /dev/zero | holt-call odd slow -', 2, '', 'too long'),
])
def test_shell(hub, box, command, status, out, err):
    got = hub.ran(box, command)
    assert got[0] == status and got[1] in (out, out.rstrip('\n')) and err in got[2], got


def test_large_results(hub, box):
    assert len(hub.ran(box, "holt-call my-plain large '{\"text\": \"900000\"}'")[1]) > 800000
    status, out, _ = hub.ran(box, "holt-call my-plain large '{\"text\": \"1100000\"}'")
    assert status == 0 and json.loads(out)['bytes'] > 1100000  # the rest is by handle


def test_holt_run(hub):
    """With modules it is the hub that runs it, and nothing stays."""
    echo = ['holt-call', 'my-plain', 'echo']
    out = hub.ok('run', '--module', 'my-plain', '-e', 'A=b c', '--memory', '256', '--timeout', '20',
                 '-w', '/tmp', '--', 'sh', '-c', 'pwd; holt-call; holt-call my-plain echo "$1"',
                 'sh', '{"text": "it"}')
    assert out == b'/tmp\nmy-plain\nit\n', out
    done = hub.run('run', '--module', '*', '-i', '--', *echo, '-', input=b'{"text": "in"}')
    assert (done.returncode, done.stdout) == (0, b'in\n'), done
    assert hub.run('run', '--module', 'my-plain', '--', 'sh', '-c', 'exit 7').returncode == 7
    done = hub.run('run', '--', *echo)  # the control: no modules
    assert done.returncode not in (0, 1), done
    hub.fails(125, 'no module', 'run', '--module', 'none', '--', 'true')
    assert hub.ok('run', '--module', 'my-plain', '-u', 'root', '--cpus', '0.5', '--', 'id',
                  '-u') == b'0\n'
    for option in (['--json'], ['--allow-missing', 'x'], ['--resolver', '127.0.0.1']):
        hub.fails(125, option[0], 'run', '--module', 'my-plain', *option, '--', 'true')
    hub.fails(125, 'a program', 'run', '--module', 'my-plain')
    left = {s['id'] for s in hub.call('GET', '/v1/sandboxes')}
    assert not [name for name in left if name.startswith('run-')]


PARTS = r'''
import json, holt, holt.mcp.my_plain as m
first = m.large({"text": "1500000"})
told, text, offset = first["data"], "", 0
while offset is not None:
    part = holt.result(told["result"], offset)
    assert part["ok"], part
    text, offset = text + part["text"], part["data"].get("next")
whole = json.loads(text)
print(json.dumps([told, len(text), whole["content"][0]["text"] == "x" * 1500000]))
'''
SHELL = r'''
set -e; at=0; : > all
ask() { holt-call holt result "{\"result\": \"$ID\", \"offset\": $at}"; }
while ask > part && [ -s part ]; do
    head -c -1 part >> all; at=$(wc -c < all); done
wc -c < all
'''


def test_large_results_in_parts(hub, box):
    """By Python and shells of the sandbox that has called, and by nobody else."""
    told, n, same = hub.python(box, PARTS)
    assert same and n == told['bytes']
    status, out, err = hub.ran(box, SHELL, ID=told['result'])
    assert status == 0 and int(out) == n, (out, err)
    ask = 'holt-call holt result \'{"result": "%s"}\''
    other = hub.box('my-plain')
    status, _, err = hub.ran(other, ask % told['result'])
    assert status == 3 and 'no such result' in err
    own = hub.python(other, PARTS)[0]['result']
    assert hub.ran(other, ask % own)[0] == 0  # the control
    assert hub.ran(box, ask % own)[0] == 3
    of_client = call(hub, 'my-plain', 'large', text='1500000')['structuredContent']['result']
    assert hub.call('GET', f'/v1/module-results/{of_client}')['bytes'] > 1500000
    assert hub.ran(box, ask % of_client)[0] == 3
    fails(404, 'not_found', hub.call, 'GET', f'/v1/module-results/{own}')
    js = f'import {{ result }} from "host:mcp-holt"; const r = result({{ result: "{own}", ' \
         f'sandbox: "{other}" }}); export default r.ok'
    assert hub.value(js) is False
    for wrong in '{}', '{"result": 1}', '{"result": "x", "limit": 9999999}':
        status, _, err = hub.ran(box, f"holt-call holt result '{wrong}'")
        assert status == 3 and 'invalid' in err, err
    records = hub.call('GET', '/v1/audit?action=module.result&limit=20')['records']
    assert len(records) > 9 and {r['who'] for r in records} == {'token'}, records
    hub.delete(other)


def test_at_once(hub, box):
    """Sixteen that take two seconds each, from threads."""
    assert hub.python(box, 'import json, time; import holt.mcp.odd as odd;'
                      'from concurrent.futures import ThreadPoolExecutor as Pool\n'
                      'began = time.time()\n'
                      'with Pool(16) as pool:\n'
                      '    all = list(pool.map(lambda i: odd.slow({"text": i, "seconds": 2})'
                      '["data"], range(16)))\n'
                      'print(json.dumps([all, time.time() - began < 18]))') == [
                          [f'slow:{i}' for i in range(16)], True]


# ---- who has them --------------------------------------------------------------------------------


def reaches(hub, box):
    return hub.python(box, f'import socket, json\ntry: socket.create_connection({AT})\n'
                      'except OSError as e: print(json.dumps(str(e)))\n'
                      'else: print(json.dumps(True))')


def test_only_a_sandbox_that_was_made_with_them(hub, box):
    """Control: one that was."""
    bare = hub.post('/v1/sandboxes')['id']
    assert reaches(hub, box) is True and 'refused' in reaches(hub, bare)
    status, _, err = hub.ran(bare, 'ls /opt/holt/modules/holt.py; holt-call')
    assert status == 127 and 'holt-call' in err
    assert 'No module named' in hub.ran(bare, PYTHON, CODE='import holt.mcp.odd')[2]
    assert 'modules' not in hub.call('GET', f'/v1/sandboxes/{bare}')
    assert hub.call('GET', f'/v1/sandboxes/{box}')['modules'] == [
        'asks', 'import', 'my-plain', 'odd', 'ruled']


def test_only_those_it_was_made_with(hub, box):
    one = hub.box('my-plain', 'my-plain')
    assert hub.ran(one, 'holt-call')[1] == 'my-plain\n'
    assert hub.ran(one, 'holt-call my-plain echo')[0] == 0
    status, _, err = hub.ran(one, 'holt-call odd slow')
    assert status == 3 and 'denied' in err and 'not made with a module odd' in err
    assert hub.ran(one, 'holt-call nothing slow')[2].replace('nothing', 'odd') == err
    assert hub.ran(box, 'holt-call odd slow')[0] == 0
    every = hub.box('odd', '*')
    assert hub.call('GET', f'/v1/sandboxes/{every}')['modules'] == ['*']
    assert hub.ran(every, 'holt-call')[1].split() == [
        'odd', 'asks', 'unapproved', 'my-plain', 'import', 'ruled']
    assert 'not_approved' in (err := hub.ran(every, 'holt-call unapproved echo')[2]) or \
        'approv' in err


def test_a_fork_has_no_more_and_a_snapshot_none(hub):
    source = hub.box('my-plain')
    fork = hub.post(f'/v1/sandboxes/{source}/fork')['id']
    assert hub.call('GET', f'/v1/sandboxes/{fork}')['modules'] == ['my-plain']
    assert hub.ran(fork, 'holt-call my-plain echo \'{"text": "f"}\'')[1] == 'f\n'
    assert hub.ran(fork, 'holt-call odd slow')[0] == 3
    snapshot = hub.post(f'/v1/sandboxes/{source}/snapshots', name='guest')['id']
    restored = hub.post(f'/v1/snapshots/{snapshot}/restore')['id']
    assert 'modules' not in hub.call('GET', f'/v1/sandboxes/{restored}')
    assert 'refused' in reaches(hub, restored) and reaches(hub, source) is True
    assert hub.ran(restored, 'ls /opt/holt/modules')[1] == ''


def test_what_may_be_asked_for(hub):
    for modules, says in ((['nothing'], 'no module'), (['unapproved'], 'no such sandbox'),
                          ([''], 'modules'), (['x' * 42], 'modules')):
        status, body = hub.asked('POST', '/v1/sandboxes', {'modules': modules})
        assert status >= 400 and says in json.dumps(body), (modules, status, body)
    assert hub.json('up', '--module', 'odd', '--module', 'asks')['modules'] == ['asks', 'odd']


def test_it_outlives_its_hub(me, tmp_path):
    """Sandboxes that stay when their hub is killed ask the next one."""
    folder = home(me, str(tmp_path), plain=server())
    first = Guests(me, folder, '--listen', '127.0.0.1:0', '--pool', '0')
    try:
        approve(first, 'plain')
        box = first.box('plain')
    finally:
        first.kill()
    with Guests(me, folder, '--listen', '127.0.0.1:0', '--pool', '0') as hub:
        assert hub.ran(box, 'holt-call plain echo \'{"text": "again"}\'')[1] == 'again\n'


# ---- the gate ------------------------------------------------------------------------------------


def test_policy_decides(hub, box):
    """Control: another tool of the same module, and the same call by a client."""
    status, _, err = hub.ran(box, 'holt-call ruled crash')
    assert status == 3 and 'no crash' in err
    assert hub.ran(box, 'holt-call ruled echo')[0] == 0
    status, _, err = hub.ran(box, "holt-call ruled large '{\"text\": \"1\"}'")
    assert status == 3 and 'not from inside' in err
    assert hub.post('/v1/modules/ruled/tools/large', arguments={'text': '1'})['result']


def test_a_person_is_asked_also_for_the_operator(hub, box):
    """The sandbox is the operator's, but its programs are not. Control: what only reads."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for decision, status in ('deny', 3), ('approve', 0):
            run = pool.submit(hub.ran, box, f'holt-call asks sleep \'{{"text": "0.{status}"}}\'')
            one, = pending(hub, box=box)
            assert one['action'] == 'module.call' and box in one['arguments'], one
            hub.post(f'/v1/approvals/{one["id"]}', decision=decision)
            assert run.result(30)[0] == status
    assert hub.ran(box, 'holt-call asks echo \'{"text": "read"}\'')[1] == 'read\n'


def test_a_program_that_leaves_asks_no_more(hub, box):
    hub.ran(box, f'timeout 1 holt-call asks sleep \'{{"text": "0"}}\'')
    until(lambda: not [a for a in hub.call('GET', '/v1/approvals')['approvals']
                       if a['state'] == 'pending'], what='nobody is asked any more')


def test_each_call_is_recorded_with_its_sandbox(hub, box):
    hub.ran(box, 'holt-call my-plain echo')
    hub.ran(box, 'holt-call nothing echo')
    last = hub.last(2)
    assert {r['outcome'] for r in last} == {'ok', 'denied'}, last
    assert [r.get('target') for r in last if r['outcome'] == 'ok'] == [box], last


def test_a_key_that_may_not_execute(hub):
    """Control: the same with a key that may."""
    for scopes, status in ((['read', 'lifecycle'], 3), (['read', 'lifecycle', 'execute'], 0)):
        mine = as_bearer(hub, key(hub, f'guest{status}', scopes))
        box = mine.post('/v1/sandboxes', modules=['my-plain'])['id']
        got = hub.ran(box, 'holt-call my-plain echo')
        assert got[0] == status, got
        if status == 0:
            hub.call('DELETE', '/v1/keys/guest0')
            status, _, err = hub.ran(box, 'holt-call my-plain echo')
            assert status == 3 and 'denied' in err


# ---- hostile programs ----------------------------------------------------------------------------


HOSTILE = '''
import json, socket, struct, time
def say(raw, more=b''):
    s = socket.create_connection(('127.3.0.1', 3129)); s.settimeout(15)
    try:
        s.sendall(raw)
        if more: time.sleep(0.05); s.sendall(more)
        got = b''
        while len(got) < 5 or len(got) < 4 + int.from_bytes(got[:4], 'little'):
            piece = s.recv(65536)
            if not piece: break
            got += piece
        return got[4:].decode()
    except OSError as e: return type(e).__name__
    finally: s.close()
def framed(text): return struct.pack('<I', len(text)) + text
'''


@pytest.mark.parametrize('raw, says', [
    ("b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'", 'too_large'),
    ("b'\\xff\\xff\\xff\\xff'", 'too_large'), ("framed(b'')", 'invalid'),
    ("framed(b'[' * 100000)", 'f'), ("framed(b'{\"do\":\"list\",\"do\":\"call\"}')", 'invalid'),
    ("framed(b'{\"do\":\"call\",\"module\":\"odd\"}')", 'tool: it is missing'),
    ("framed(b'{\"do\":\"approve\",\"module\":\"odd\"}')", 'do: '),
    ("framed(b'{\"do\":\"info\",\"module\":[1]}')", 'module: a string'),
    ("framed(b'{\"do\":\"call\",\"module\":\"odd\",\"tool\":\"slow\",\"arguments\":[]}')",
     'an object'),
    ("framed(b'{\"do\":\"list\"}\\xff')", 'invalid'),
    ("framed(b'{\"do\":\"call\",\"module\":\"odd\",\"tool\":\"' + b'x' * 5000 + b'\"}')", 'tool'),
    ("framed(b'{\"do\":\"call\",\"module\":\"../odd\",\"tool\":\"slow\"}')", 'denied'),
    ("framed(b'{\"do\":\"call\",\"module\":\"*\",\"tool\":\"slow\"}')", 'denied'),
    ("framed(b'{\"do\":\"call\",\"module\":\"odd\",\"tool\":\"none\"}')", 'none'),
])
def test_no_request(hub, box, raw, says):
    """Control: a request that is one."""
    got = hub.python(box, HOSTILE + f'print(json.dumps([say({raw}), '
                     'say(framed(b\'{"do":"list","text":true}\'))]))')
    assert says in got[0] and 'odd' in got[1], got


def test_more_than_one_request(hub, box):
    """What follows a request ends it."""
    got = hub.python(box, HOSTILE + 'one = framed(b\'{"do":"call","module":"odd","tool":"slow",'
                     '"arguments":{"seconds":3}}\');'
                     'print(json.dumps([say(one + one), say(one, one), say(one)]))')
    assert 'more than one' in got[0] and 'slow' not in got[1] and 'slow:' in got[2], got


def test_connections_are_bounded(hub, box):
    """Silent ones take a sandbox's own room, not that of another; and end by themselves."""
    other = hub.box('my-plain')
    got = hub.python(box, HOSTILE + '''
all = [socket.create_connection(('127.3.0.1', 3129)) for _ in range(64)]
def gone(s):
    s.setblocking(False)
    try: return s.recv(1) == b''
    except BlockingIOError: return False
    except OSError: return True
end = time.time() + 5 # the others go after ten seconds
while sum(map(gone, all)) < 32 and time.time() < end: time.sleep(0.05)
print(json.dumps([sum(map(gone, all)), say(framed(b'{"do":"list"}'))]))''')
    assert got[0] == 32 and 'Error' in got[1], got
    assert hub.ran(other, 'holt-call my-plain echo')[0] == 0
    assert hub.ran(box, 'holt-call my-plain echo')[0] == 0


def test_no_other_way_to_the_socket(hub, box):
    """Neither by a port that is exposed, nor from another sandbox or the host."""
    hub.ran(box, 'python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 &')
    exposed = f'/v1/sandboxes/{box}/expose/%d/'
    until(lambda: hub.raw('GET', exposed % 8000).status == 200, what='a server')
    assert hub.raw('GET', exposed % AT[1]).status == 502
    with pytest.raises(OSError):
        socket.create_connection(AT, timeout=2)
    bare = hub.post('/v1/sandboxes')['id']
    assert 'refused' in reaches(hub, bare)


def test_the_files_are_read_only(hub, box):
    for path in '/opt/holt/modules/holt-call', '/opt/holt/modules/holt.py':
        assert hub.ran(box, f'echo x > {path}')[0] != 0
        assert hub.ran(box, f'rm -f {path}')[0] != 0
    assert hub.ran(box, 'holt-call')[0] == 0


def test_the_everything_server(me, tmp_path):
    if not os.path.isdir(EVERYTHING):
        pytest.skip('packages of npm are missing: scripts/deps test')
    packages = os.path.realpath(EVERYTHING)
    program = os.path.join(packages, '@modelcontextprotocol/server-everything/dist/index.js')
    everything = {'command': 'node', 'args': [program, 'stdio'], 'approval': 'allow',
                  'connectSeconds': 60, 'sandbox': {'read': [packages]}}
    folder = home(me, str(tmp_path), everything=everything)
    with Guests(me, folder, '--listen', '127.0.0.1:0') as hub:
        approve(hub, 'everything')
        box = hub.box('everything')
        got = hub.python(box, 'import json, holt.mcp.everything as e; print(json.dumps('
                         '[e.echo({"message": "hi"})["data"], sorted(e.__all__)]))')
        assert 'hi' in got[0] and 'echo' in got[1]
        assert 'hi' in hub.ran(box, 'holt-call everything echo \'{"message": "hi"}\'')[1]
