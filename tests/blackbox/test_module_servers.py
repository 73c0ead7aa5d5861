"""Servers of npm as modules: stdio in sandboxes, Streamable HTTP and SSE elsewhere. Each is called
through REST, the gateway with `holt mcp call`, and code."""

import json
import os
import socket
import threading

import pytest

import host
from mcp_cli import MODULES, Daemon, free_port, package
from modules import approve, call, home, text
from rest import fails
from test_code_modules import Hub

TOKEN = 'token-of-the-tracker-5f1c0e'


def entry(name, *arguments, **more):
    """A sandboxed server of npm that may read its own packages, and what else is said."""
    node, main = package(name)
    folders = more.pop('sandbox', {})
    return {'command': os.path.realpath(node), 'args': [main, *arguments], 'approval': 'allow',
            'connectSeconds': 60, 'timeoutSeconds': 60,
            'sandbox': {**folders, 'read': [os.path.dirname(os.path.realpath(node)),
                                            os.path.realpath(MODULES), *folders.get('read', [])]},
            **more}


class Guard:
    """Stands before a server: a connection whose first request has no token is refused."""

    def __init__(self, port):
        self.to, self.refused, self.passed = port, 0, 0
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(one,), daemon=True).start()

    def serve(self, one):
        with one:
            head = b''
            while b'\r\n\r\n' not in head:
                got = one.recv(65536)
                if not got:
                    return
                head += got
            if f'Authorization: Bearer {TOKEN}\r\n'.encode() not in head:
                self.refused += 1
                one.sendall(b'HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n'
                            b'Connection: close\r\n\r\n')
                one.shutdown(socket.SHUT_WR)
                while one.recv(65536):  # a body that is not read would reset the connection
                    pass
                return
            self.passed += 1
            with socket.create_connection(('127.0.0.1', self.to)) as other:
                other.sendall(head)
                back = threading.Thread(target=self.pump, args=(other, one), daemon=True)
                back.start()
                self.pump(one, other)
                back.join()

    @staticmethod
    def pump(source, to):
        try:
            while data := source.recv(65536):
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture(scope='module')
def remote(me):
    """server-everything over both of its wires: the port of a guard before each."""
    node, main = package('everything')
    daemons, guards = [], {}
    try:
        for wire in 'streamableHttp', 'sse':
            port = free_port()
            daemons.append(Daemon(me, [node, main, wire], port, env={'PORT': str(port)}))
            guards[wire] = Guard(port)
        yield guards
    finally:
        for one in (*guards.values(), *daemons):
            one.close()


@pytest.fixture(scope='module')
def folders(me):
    """Of the host: what the server may read, what it may write, and another one."""
    top = os.path.join(me.top, 'of-servers')
    for name in '', 'read', 'write', 'other':
        path = os.path.join(top, name)
        os.mkdir(path)
        os.chown(path, me.uid, me.uid)
    for name in 'read/a.txt', 'other/secret.txt':
        with open(os.path.join(top, name), 'w', encoding='utf-8') as f:
            f.write(f'this is {name}\n')
        os.chown(os.path.join(top, name), me.uid, me.uid)
    return top


@pytest.fixture(scope='module')
def hub(me, remote, folders, tmp_path_factory):
    before = host.Residue(me.trees)
    sandbox = {'read': [f'{folders}/read'], 'write': [f'{folders}/write']}
    elsewhere = {'headers': {'Authorization': 'Bearer ${secret:tracker}'}, 'approval': 'allow'}
    http, sse = (f'http://127.0.0.1:{remote[w].port}' for w in ('streamableHttp', 'sse'))
    servers = {
        'everything': entry('everything', 'stdio'),
        'http': {'url': f'{http}/mcp', **elsewhere},
        'sse': {'url': f'{sse}/sse', 'type': 'sse', **elsewhere},
        'naked': {'url': f'{http}/mcp', 'approval': 'allow',
                  'headers': {'Authorization': 'Bearer another'}},
        # Both may go anywhere below the top, as far as the server itself is concerned.
        'files': entry('filesystem', folders, sandbox=sandbox),
        'outside': {**entry('filesystem', folders), 'sandbox': False},
        'memory': entry('memory', env={'MEMORY_FILE_PATH': '/tmp/memory.jsonl'}),
        'thinking': entry('sequential-thinking', env={'DISABLE_THOUGHT_LOGGING': 'true'}),
    }
    folder = home(me, tmp_path_factory.mktemp('servers'), {'modules': {'connected': 8}}, **servers)
    with Hub(me, folder, '--listen', '127.0.0.1:0', '--pool', '2') as shared:
        shared.post('/v1/secrets', name='tracker', value=TOKEN)
        for name in servers:
            approve(shared, name)
        yield shared
    before.check()


def gateway(hub, tool, **arguments):
    """A call with `holt mcp call`, of a client of the hub."""
    url = 'http://%s:%d/mcp?tools=gateway' % hub.address
    done = hub.run('mcp', 'call', '--url', url, '--header', f'Authorization: Bearer {hub.token}',
                   tool, *(f'{name}={value}' for name, value in arguments.items()), timeout=120)
    assert done.returncode == 0, done
    return done.stdout.decode()


# ---- server-everything -----------------------------------------------------------------------


@pytest.mark.parametrize('name', ['everything', 'http', 'sse'])
def test_everything_over_each_wire(hub, name):
    assert text(hub, name, 'echo', message='hi') == 'Echo: hi'
    assert 'The sum of 2 and 3 is 5' in text(hub, name, 'get-sum', a=2, b=3)
    assert call(hub, name, 'echo')['isError'] is True
    kinds = [c['type'] for c in call(hub, name, 'get-tiny-image')['content']]
    assert 'image' in kinds
    assert gateway(hub, f'{name}__echo', message='through').strip() == 'Echo: through'
    got = hub.value(f'import {{ parallel }} from "host:holt"; import e from "host:mcp-{name}";'
                    'export default parallel([1, 2, 3, 4].map(i => () =>'
                    ' e.echo({ message: String(i) }).text))', wall_ms=60000)
    assert got == [f'Echo: {i}' for i in range(1, 5)]
    shown = hub.call('GET', f'/v1/modules/{name}')
    assert shown['state'] == 'connected' and shown['sandboxed'] == (name == 'everything'), shown


def test_the_secret_is_sent_and_never_shown(hub, remote):
    for name, wire in (('http', 'streamableHttp'), ('sse', 'sse')):
        assert text(hub, name, 'echo', message='hi') == 'Echo: hi'
        assert remote[wire].passed > 0
        for shown in (hub.call('GET', f'/v1/modules/{name}'), hub.call('GET', '/v1/modules')):
            assert TOKEN not in json.dumps(shown)
        assert TOKEN not in text(hub, name, 'echo', message=TOKEN)
    refused = remote['streamableHttp'].refused
    error = fails(502, 'module_failed', call, hub, 'naked', 'echo', message='hi')
    assert 'HTTP status 401' in error['cause']
    fails(502, 'module_failed', hub.post, '/v1/modules/naked/test')
    assert remote['streamableHttp'].refused > refused


# ---- server-filesystem -----------------------------------------------------------------------


def test_files_of_declared_folders(hub, folders):
    read = f'{folders}/read/a.txt'
    assert text(hub, 'files', 'read_text_file', path=read) == 'this is read/a.txt\n'
    assert 'this is read/a.txt' in gateway(hub, 'files__read_text_file', path=read)
    wrote = f'{folders}/write/b.txt'
    assert hub.value('import { write_file, read_text_file } from "host:mcp-files";'
                     f'const path = {json.dumps(wrote)};'
                     'export default [write_file({ path, content: "from code" }).ok,'
                     ' read_text_file({ path }).text]', wall_ms=60000) == [True, 'from code']
    with open(wrote, encoding='utf-8') as f:
        assert f.read() == 'from code'


def test_the_sandbox_refuses_other_folders(hub, folders):
    """What the server would do is not what its program can. The control has no sandbox."""
    secret = f'{folders}/other/secret.txt'
    assert text(hub, 'outside', 'read_text_file', path=secret) == 'this is other/secret.txt\n'
    for arguments in (('read_text_file', {'path': secret}),
                      ('list_directory', {'path': f'{folders}/other'}),
                      ('write_file', {'path': f'{folders}/read/a.txt', 'content': 'x'}),
                      ('write_file', {'path': f'{folders}/read/new.txt', 'content': 'x'}),
                      ('read_text_file', {'path': f'{folders}/read/../other/secret.txt'})):
        answer = call(hub, 'files', arguments[0], **arguments[1])
        assert answer['isError'] is True, answer
        assert 'this is' not in json.dumps(answer), answer
    assert os.listdir(f'{folders}/read') == ['a.txt']
    with open(f'{folders}/read/a.txt', encoding='utf-8') as f:
        assert f.read() == 'this is read/a.txt\n'
    wanted = f'{folders}/outside.txt'
    assert 'isError' not in call(hub, 'outside', 'write_file', path=wanted, content='x')
    assert os.path.exists(wanted)


# ---- server-memory, server-sequential-thinking -------------------------------------------------


def test_memory_keeps_what_it_was_told(hub):
    entities = [{'name': 'Ada', 'entityType': 'person', 'observations': ['writes programs']}]
    done = call(hub, 'memory', 'create_entities', entities=entities)
    assert not done.get('isError'), done
    assert hub.value('import { search_nodes } from "host:mcp-memory";'
                     'export default search_nodes({ query: "ada" }).data.entities',
                     wall_ms=60000) == entities
    assert 'writes programs' in gateway(hub, 'memory__read_graph')
    assert call(hub, 'memory', 'read_graph')['structuredContent']['entities'] == entities


def test_thinking(hub):
    thought = {'thought': 'x', 'nextThoughtNeeded': True, 'thoughtNumber': 1, 'totalThoughts': 3}
    first = json.loads(text(hub, 'thinking', 'sequentialthinking', **thought))
    assert first['thoughtNumber'] == 1 and first['totalThoughts'] == 3
    second = hub.value('import t from "host:mcp-thinking"; export default t.sequentialthinking('
                       '{ thought: "y", nextThoughtNeeded: false, thoughtNumber: 2,'
                       ' totalThoughts: 3 }).data', wall_ms=60000)
    assert second['thoughtNumber'] == 2
    assert second['thoughtHistoryLength'] == first['thoughtHistoryLength'] + 1
    assert 'thoughtNumber' in gateway(hub, 'thinking__sequentialthinking', thought='z',
                                      nextThoughtNeeded='true', thoughtNumber=3, totalThoughts=3)
