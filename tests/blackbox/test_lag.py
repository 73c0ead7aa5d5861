"""No content holds the hub's loop. Each door that takes, looks through or gives content that others
choose gets content that grows, of several shapes, while the hub measures its longest step by the
processor's time: what a door does with it is bounded, or done beside the loop.

A door has a hub of its own, so that the figure is its own; `pytest -s` prints it. What the bound
means is at check_step() (test_serve.py).
"""

import json
import os
import secrets as random
import shutil

import pytest

import host
import modules
from approval import pending
from rest import Rest, b64
from soak import FULL, WHOLE, soak
from test_coding import Project
from test_conversations import events, left, written
from test_conversations import Hub as Talks
from test_serve import Session, check_step, post

DOOR_MAX = 0.1  # seconds of a step: less than a hub may take in all, since one door has it alone
SIZES = [256 << 10, (4 << 20) - 100][0 if FULL else 1:]
PIECES = {  # repeated up to a size; no line end is added
    'passwords': '{"password":"hunter2hunter2"},\n',
    'passwords on a line': '{"password":"hunter2hunter2"},',
    'options': 'curl -u joe:sshpass -p \n',
    'words': 'a few words of a line that nobody hides\n',
    'letters': 'a',
    'line ends': '\n',
    'control': '\x01\x02\x1b',
    'half': '\U0001f600',
    'functions': 'int name_of_it(int left, int right) { return left; }\n',
}


def content(piece, size):
    return (PIECES[piece] * (size // len(PIECES[piece].encode()) + 1)).encode()[:size].decode(
        errors='ignore')


class Lag(Rest):
    """A hub of one door, its workspace, and how long its steps were."""

    def __init__(self, me, home, *arguments, **options):
        self.me, self.project, self.longest, self.by = me, Project(me), 0, ''
        os.chown(home, me.uid, me.uid)
        super().__init__(me, home, '--listen', '127.0.0.1:0', '--pool', '0', '--workspace',
                         self.project.path, *arguments, **options)
        self.made = None
        assert self.addresses, self.said()

    def box(self):
        self.made = self.made or self.create()
        return self.made

    def __exit__(self, *of):
        if self.made:
            self.sweep(self.made)
        super().__exit__(*of)
        shutil.rmtree(self.project.path)

    def tool(self, session, tool, **arguments):
        with self.wire() as wire:
            wire.sock.settimeout(200)
            session.call(wire, tool, **arguments)
            return session.answer(wire)

    def put(self, data):
        self.stream('WriteFile', self.box(), {'open': {'path': '/workspace/f'}},
                    {'data': b64(data)})

    def served(self, path, body=None):
        """What is refused measures nothing."""
        reply = self.raw('GET' if body is None else 'POST', path, body)
        assert reply.status == 200, (path, reply.status, reply.body[:500])

    def measure(self, what, bound=DOOR_MAX):
        took = check_step(self, bound, what)
        if took > self.longest:
            self.longest, self.by = took, what


@pytest.fixture
def lag(me, tmp_path, request):
    before = host.Residue(me.trees)
    with Lag(me, tmp_path) as hub:
        yield hub
    print(f'\nlongest step: {1000 * hub.longest:.0f} ms, {request.node.name}, {hub.by}')
    before.check()


# ---- the tools of who writes code ----------------------------------------------------------------

def by_read(hub, mcp, text):
    for offset in (1, 1000):
        hub.tool(mcp, 'Read', file_path='f', offset=offset)


def by_edit(hub, mcp, text):
    hub.project.put('f', text + '\nthe end\n')
    hub.tool(mcp, 'Read', file_path='f')
    hub.tool(mcp, 'Edit', file_path='f', old_string='the end', new_string='an end')
    hub.project.put('f', text + '\nanother\n')
    hub.tool(mcp, 'Edit', file_path='f', old_string='the end', new_string='an end')


def by_write(hub, mcp, text):
    hub.tool(mcp, 'Read', file_path='f')
    hub.tool(mcp, 'Write', file_path='f', content=text[:len(text) // 2])
    hub.tool(mcp, 'Write', file_path='new', content=text)
    os.unlink(hub.project.at('new'))


def by_grep(hub, mcp, text):
    for i in range(4):
        hub.project.put(f'beside{i}', text[:1 << 20])
    for more in ({}, {'output_mode': 'count'}, {'path': 'f', 'multiline': True, 'context': 2},
                 {'output_mode': 'files_with_matches', 'path': 'f'}):
        hub.tool(mcp, 'Grep', pattern='[a-z]', head_limit=10_000, **more)


def by_search_code(hub, mcp, text):
    for i in range(60):
        hub.project.put(f'code{i}.c', (text * (1 + (60 << 10) // len(text)))[:100_000])
    hub.tool(mcp, 'search_code', query='name')
    for i in range(60):
        hub.project.put(f'code{i}.c', '')
    hub.tool(mcp, 'search_code', query='name of it')


def by_bash(hub, mcp, text):
    hub.tool(mcp, 'Bash', command='cat f')
    hub.tool(mcp, 'Bash', command='cat f >&2; cat f; exit 1')


def by_snapshots(hub, mcp, text):
    hub.tool(mcp, 'snapshot', name='first')
    hub.project.put('f', text.replace('a', 'b') + text[:100])
    hub.tool(mcp, 'snapshot_diff', name='first')
    hub.tool(mcp, 'snapshot_restore', name='first')


CODING = [by_read, by_edit, by_write, by_grep, by_search_code, by_bash, by_snapshots]


@pytest.mark.parametrize('door', CODING)
def test_tools_for_code(lag, door):
    mcp = Session(lag, '/mcp?tools=all')
    for piece in ('passwords on a line', 'functions', 'passwords', 'letters')[:4 if WHOLE else 2]:
        for size in SIZES:
            text = content(piece, size)
            lag.project.put('f', text)
            door(lag, mcp, text)
            lag.measure(f'{size} bytes of {piece}')


def test_a_tree(lag):
    """Many names instead of many bytes."""
    mcp = Session(lag, '/mcp?tools=all')
    for count in (1000, soak(100_000, 10_000)):
        lag.tool(mcp, 'Bash', command='for d in 1 2 3 4; do mkdir -p tree/$d; '
                 f'seq -f "tree/$d/name-%06g.c" {count // 4} | xargs touch; done')
        box = lag.box()
        lag.exec(box, f'mkdir -p tree; seq -f "tree/name-%06g" {count} | xargs touch')
        for tool, arguments in [('Glob', {'pattern': '**/*[0-9]*{c,h}'}),
                                ('Grep', {'pattern': '^$', 'output_mode': 'count'}),
                                ('search_code', {'query': 'name'}), ('snapshot', {}),
                                ('search_code', {'query': 'name'})]:
            lag.tool(mcp, tool, **arguments)
            lag.measure(f'{tool} of {count} files')
        for path, body in [('/v1/files/list', {'sandbox': box, 'path': 'tree'}),
                           (f'/v1/sandboxes/{box}/archive?path=tree', None)]:
            lag.served(path, body)
            lag.measure(f'{path} of {count} files')
    lag.tool(mcp, 'Bash', command='rm -rf tree')
    lag.tool(mcp, 'search_code', query='name')
    lag.measure('search_code, when the files are gone')


# ---- REST ----------------------------------------------------------------------------------------

BOTH = 'cat f & cat f >&2; wait'


def by_exec(hub, text):
    hub.served('/v1/exec', {'sandbox': hub.box(), 'command': BOTH,
                            'max_output_bytes': 2 << 20})


def by_stream(hub, text):
    hub.served('/v1/exec/stream', {'sandbox': hub.box(), 'command': BOTH})


def by_pages(hub, text):
    job = hub.exec(hub.box(), BOTH, background=True)['exec_id']
    at = f'/v1/sandboxes/{hub.box()}/execs/{job}'
    hub.post(f'{at}/wait', timeout_seconds=60)
    hub.served(f'{at}/output?limit=4000000')


def by_files(hub, text):
    for encoding in ('utf-8', 'base64') if text.isascii() else ('base64',):
        hub.served('/v1/files/read', {'sandbox': hub.box(), 'path': 'f', 'limit': 2 << 20,
                                      'encoding': encoding})
    hub.served('/v1/files/write', {'sandbox': hub.box(), 'path': 'f',
                                   'content': text if text.isascii() else text[:len(text) // 2]})


def by_run(hub, text):
    hub.served('/v1/run', {'command': ['cat', 'f'], 'state': {'retention': 'destroy'},
                           'files': [{'path': 'f', 'content': text[:500_000]}]})


def by_javascript(hub, text):
    hub.served('/v1/javascript', {'code': f'const s = {json.dumps(text[:60_000])}; '
                                          'console.log(s); console.error(s); s.repeat(60)'})


def by_mcp(hub, text):
    mcp = Session(hub)
    for arguments in ({'command': BOTH, 'max_output_bytes': 2 << 20}, {'command': 'exit 1'}):
        assert 'result' in hub.tool(mcp, 'sandbox_exec', sandbox=hub.box(), **arguments)


def by_connect(hub, text):
    hub.put(text.encode())
    hub.stream('ReadFile', hub.box(), {'path': '/workspace/f'})


REST = [by_exec, by_stream, by_pages, by_files, by_run, by_javascript, by_mcp, by_connect]


@pytest.mark.parametrize('door', REST)
def test_rest(lag, door):
    for piece in ('passwords', 'line ends', 'control', 'half', 'bytes')[:5 if WHOLE else 3]:
        for size in (256 << 10, 2 << 20)[0 if FULL else 1:]:  # as JSON, up to six times as long
            data = (random.token_bytes(size) if piece == 'bytes'
                    else content(piece, size).encode())
            lag.put(data)
            door(lag, data.decode('latin-1'))
            lag.measure(f'{size} bytes of {piece}')


LARGE = 31 << 20  # bytes of a body; nearly the largest


def test_large_bodies(lag):
    """They are parsed beside the loop, and so is what they have of marks."""
    for piece in ('words', 'control', 'base64', 'line ends', 'half')[:5 if WHOLE else 3]:
        encoding = 'base64' if piece == 'base64' else 'utf-8'
        text = (b64(random.token_bytes(LARGE // 4 * 3 - 3000)) if piece == 'base64'
                else content(piece, LARGE))
        while len(json.dumps(text)) > LARGE - 1000:
            text = text[:len(text) // 2]
        lag.served('/v1/files/write', {'sandbox': lag.box(), 'path': 'f', 'content': text,
                                       'encoding': encoding})
        lag.measure(f'{len(text)} characters of {piece}', 0.03)
    was = content('words', 3 << 20) + 'password: kx9Lq2vTzz17\n'
    lag.put(was.encode())
    shown = lag.post('/v1/files/read', sandbox=lag.box(), path='f')['content']
    lag.served('/v1/files/write', {'sandbox': lag.box(), 'path': 'f', 'content': 'new\n' + shown})
    lag.measure('marks', 0.03)
    lag.put(content('options', 3 << 20).encode())
    at = f'/v1/sandboxes/{lag.box()}/archive?path=/workspace'
    shown = lag.raw('GET', at).body.decode('latin-1')
    assert '*****' in shown or 'REDACTED' in shown
    lag.raw('PUT', at, shown, fields=['Content-Type: application/x-tar'])
    lag.measure('marks of an archive', 0.06)


def test_a_large_body_that_a_person_is_asked_about(me, tmp_path):
    """Its digest and its text without secrets are made beside the loop."""
    with open(tmp_path / 'config.json', 'w', encoding='utf-8') as f:
        json.dump({'policy': {'rules': [
            {'name': 'asked', 'actions': ['files.write'], 'then': 'ask'}]}}, f)
    os.chown(tmp_path / 'config.json', me.uid, me.uid)
    with Lag(me, tmp_path) as hub, hub.wire() as wire:
        wire.send(hub.request('POST', '/v1/files/write', body=json.dumps({
            'sandbox': hub.box(), 'path': 'f', 'content': content('words', LARGE - 1000)})))
        pending(hub)
        hub.measure('asked')


def test_large_bodies_of_a_reader(lag):
    """What a key may do is judged before its body is received."""
    token = lag.post('/v1/keys', name='reader', scopes=['read'])['token']
    body = json.dumps({'sandbox': 'none', 'path': 'f', 'content': content('words', LARGE)})
    for path in ('/v1/files/write', '/v1/exec', '/sandbox.v1.Sandbox/WriteFile'):
        size = LARGE if path == '/v1/files/write' else 500_000
        reply = lag.raw('POST', path, body[:size], token=token)
        assert reply.status == 403 and b'needs a key with the scope execute' in reply.body, reply
        assert reply.get('Connection') == 'close' and reply.get('Audit-Id'), reply
        lag.measure(f'{size} bytes for {path}')
    received = lag.announced('/v1/files/write', LARGE, token=token)
    assert received.status == 403, received


# ---- conversations -------------------------------------------------------------------------------

@pytest.mark.parametrize('piece', [
    'options', *(pytest.param(p, marks=pytest.mark.whole) for p in ('passwords', 'half'))])
def test_history(me, tmp_path, piece):
    """As long as one answer looks through: filters that find nothing, a page, a follower."""
    home, first, talk = left(me, tmp_path)
    text = content(piece, 900_000)
    written(first, talk, [('agent_message', text) for _ in range(12)])
    written(first, talk, [('agent_message', text[:2000]) for _ in range(40)])
    with Talks(me, home, '--socket', 'none') as hub:
        for query in ('text_contains=nobody%20says%20this', 'text_contains=a&limit=500',
                      'event_types=none', 'limit=500', 'limit=500&after_seq=0'):
            hub.of(talk, f'/events?{query}')
            check_step(hub, what=query)
        for more in ('', '&text_contains=nobody%20says%20this'):
            with events(hub, f'/api/sessions/{talk}/events?follow=true&after_seq=0{more}') as next_:
                while next_()['type'] != 'changed':
                    pass
            took = check_step(hub, what=more)
        print(f'\nlongest step: {1000 * took:.0f} ms, history of {piece}')


# ---- modules -------------------------------------------------------------------------------------

MANY = r"""
TOOLS = [tool('t%05d' % i, 'A tool that does a thing, number %d. ' % i * 170) for i in range(1000)]
main()
"""
ONE = """
TOOLS = [tool('one', 'A tool.')]
main()
"""


def test_a_module_of_many_words(me, tmp_path):
    """As many tools and texts as one may have: they are judged, shown, searched and listed for
    clients. A change of another module costs no more than that one has."""
    home = modules.home(me, str(tmp_path), many=modules.server(MANY), one=modules.server(ONE))
    with Lag(me, home) as hub:
        modules.approve(hub, 'many')
        for path, body in (('/v1/modules/many/test', {}), ('/v1/modules/many', None),
                           ('/v1/modules', None), ('/v1/tools?query=thing', None)):
            hub.served(path, body)
            hub.measure(path)
        print(f'\nlongest step: {1000 * hub.longest:.0f} ms, {hub.by}')
    with Lag(me, home) as hub:  # what its start takes does not count
        mcp = Session(hub, '/mcp?tools=gateway')
        with hub.wire() as wire:
            wire.send(post(hub, {'jsonrpc': '2.0', 'id': 7, 'method': 'tools/list'}, mcp.path,
                           fields=mcp.fields))
            assert 'many__t00000' in [t['name'] for t in mcp.result(wire)['tools']]
        for _ in range(3):
            modules.approve(hub, 'one')
            hub.served('/v1/modules/one/test', {})
            hub.served('/v1/modules/one/disable', {})
            hub.served('/v1/modules/one/enable', {})
        hub.measure('a change of another', 0.03)


# ---- secrets -------------------------------------------------------------------------------------

def test_a_start_with_long_secrets(me, tmp_path):
    """They are made ready before anybody waits."""
    values = [random.token_urlsafe(9_000) for _ in range(100)]
    with Lag(me, tmp_path) as hub:
        for n, value in enumerate(values):
            hub.post('/v1/secrets', name=f'S{n}', value=value)
    with Lag(me, tmp_path) as hub:
        hub.post('/v1/files/write', sandbox=hub.box(), path='f', content=values[7])
        assert hub.exec(hub.box(), 'cat f')['stdout'].startswith('[REDACTED:S7')
        hub.measure('100 secrets')
        print(f'\nlongest step: {1000 * hub.longest:.0f} ms, start with secrets')
