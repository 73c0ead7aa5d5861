"""Whole conversations, byte for byte, one of each revision: transcripts/REVISION.txt.

In the files "> " is what the client sends, "< " what the server answers; ids of sandboxes and
measured numbers are replaced. `pytest --update-golden` writes them anew; read the difference before
you commit.
"""

import json
import re

import pytest

from client import LATEST

REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']
MODERN = '2026-07-28'  # no initialize: each request says what it is


def call(tool, meta=None, **arguments):
    return 'tools/call', {'name': tool, 'arguments': arguments, **({'_meta': meta} if meta else {})}


# (method, params), or a line as it is; SB and KID stand for ids that were answered.
DATA = ['sandbox_exec', 'sandbox_read_file', 'sandbox_list', 'sandbox_get', 'sandbox_list_files',
        'sandbox_processes', 'sandbox_exec_output', 'sandbox_diff']  # whose texts are all of it
SCRIPT = [
    ('ping', None),
    ('tools/list', {}),
    call('sandbox_create', pool='host', memory_mb=256, pids=64),
    call('sandbox_exec', sandbox='SB', command='echo out; echo err >&2; exit 3'),
    call('sandbox_exec', sandbox='SB', command='printf "\\377"'),
    call('sandbox_exec', sandbox='SB', command='kill -9 $$'),
    call('sandbox_exec', meta={'progressToken': 'p'}, sandbox='SB', command='sleep 1.3'),
    call('sandbox_write_file', sandbox='SB', path='notes.txt', content='grüße\n'),
    call('sandbox_read_file', sandbox='SB', path='notes.txt'),
    call('sandbox_read_file', sandbox='SB', path='notes.txt', offset=1, limit=4, encoding='base64'),
    call('sandbox_fork', sandbox='SB'),
    call('sandbox_read_file', sandbox='KID', path='notes.txt'),
    call('sandbox_exec', sandbox='SB', comand='true'),
    call('sandbox_read_file', sandbox='SB', path='missing'),
    call('sandbox_delete', sandbox='SB'),
    call('sandbox_terminate', sandbox='KID'),
    call('sandbox_terminate', sandbox='SB'),
    call('sandbox_exec', sandbox='SB', command='true'),
    ('resources/list', {}),
    '{"jsonrpc":"2.0","id":99,"method":',
    '[{"jsonrpc":"2.0","id":100,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},'
    '{"jsonrpc":"2.0","id":101,"method":"nope"}]',
    '[]',
]
MEASURED = ('wall_ms', 'cpu_ms', 'peak_memory_bytes', 'milliseconds', 'progress')
ID = r'sbx-[0-9a-f]{32}'
PROGRESS_NOTE = '"method":"notifications/progress"'


def run_script(mcp, revision):
    """The conversation as lines, masked."""
    lines, ids = [], []
    mcp.lines = []

    def mask(text):
        for found in re.findall(ID, text):
            if found not in ids:
                ids.append(found)
        text = re.sub(ID, lambda m: f'sbx-{ids.index(m.group()) + 1}', text)
        text = re.sub('exec-[0-9a-f]{32}', 'exec-…', text)
        for name in MEASURED:
            text = re.sub(rf'"{name}":[0-9.e+-]+', f'"{name}":0', text)
        text = re.sub(r'"running for \d+ s,', '"running for 0 s,', text)
        text = re.sub(r'"enforced_by":"\w+"', '"enforced_by":"…"', text)
        text = re.sub('"run_[0-9a-f]{32}","holt/receipt":{[^}]*}', '"run_…","holt/receipt":{}',
                      text)
        text = re.sub('"run_[0-9a-f]{32}"', '"run_…"', text)
        return re.sub(r'(serverInfo":\{[^}]*"version":)"[^"]*"', r'\1"…"', text)

    def exchange(line, answered=True):
        for i, name in enumerate(('SB', 'KID')):
            if i < len(ids):
                line = line.replace(f'"{name}"', f'"{ids[i]}"')
        lines.append('> ' + mask(line))
        mcp.send_raw(line.encode('utf-8') + b'\n')
        message = mcp.next() if answered else None
        while answered and 'method' in message:
            message = mcp.next()
        for got in mcp.lines:
            told = '< ' + mask(got)
            if PROGRESS_NOTE not in told or lines[-1] != told:  # a slow machine tells of it again
                lines.append(told)
        mcp.lines.clear()

    def message(*members):
        return json.dumps({'jsonrpc': '2.0', **dict(members)}, ensure_ascii=False,
                          separators=(',', ':'))

    def envelope(params):
        meta = {'io.modelcontextprotocol/protocolVersion': MODERN,
                'io.modelcontextprotocol/clientCapabilities': {}}
        return {**(params or {}), '_meta': {**meta, **(params or {}).get('_meta', {})}}

    if revision == MODERN:
        exchange(message(('id', 0), ('method', 'server/discover'), ('params', envelope(None))))
    else:
        exchange(message(('id', 0), ('method', 'initialize'), ('params', {
            'protocolVersion': revision, 'capabilities': {},
            'clientInfo': {'name': 'transcript', 'version': '1'}})))
        exchange(message(('method', 'notifications/initialized')), answered=False)
    for n, row in enumerate(SCRIPT, 1):
        if isinstance(row, str):
            exchange(row)
        else:
            method, params = row
            if revision == MODERN:
                params = envelope(params)
            exchange(message(('id', n), ('method', method),
                             *([('params', params)] if params is not None else [])))
    return lines


@pytest.mark.parametrize('revision', REVISIONS + [MODERN])
def test_transcript(start, transcript, revision):
    mcp = start('--pool', '0', version='none')
    lines = run_script(mcp, revision)
    assert mcp.close() == 0
    transcript(revision, lines)


# What each revision knows, beside the transcripts: a golden file can be wrong from the start.
SERVER_INFO = {'2024-11-05': {'name', 'version'}, '2025-03-26': {'name', 'version'},
               '2025-06-18': {'name', 'title', 'version'},
               '2025-11-25': {'name', 'title', 'version', 'description', 'icons', 'websiteUrl'}}
TOOL = {'2024-11-05': {'name', 'description', 'inputSchema'}}
TOOL['2025-03-26'] = TOOL['2024-11-05'] | {'annotations'}
TOOL['2025-06-18'] = TOOL['2025-03-26'] | {'title', 'outputSchema', '_meta'}
TOOL['2025-11-25'] = TOOL['2025-06-18'] | {'icons', 'execution'}
RESULT = {'2024-11-05': {'content', 'isError', '_meta'},
          '2025-03-26': {'content', 'isError', '_meta'}}
RESULT['2025-06-18'] = RESULT['2025-11-25'] = {'content', 'isError', '_meta', 'structuredContent'}
PROGRESS = {'2024-11-05': {'progressToken', 'progress', 'total'}}
PROGRESS['2025-03-26'] = PROGRESS['2025-06-18'] = PROGRESS['2025-11-25'] = (PROGRESS['2024-11-05']
                                                                            | {'message'})


@pytest.mark.parametrize('revision', REVISIONS)
def test_no_message_has_what_its_revision_does_not_know(start, revision):
    mcp = start('--pool', '0', version='none')
    hello = mcp.initialize(revision)
    assert hello['protocolVersion'] == revision
    assert set(hello) <= {'protocolVersion', 'capabilities', 'serverInfo', 'instructions', '_meta'}
    assert set(hello['serverInfo']) <= SERVER_INFO[revision]
    assert {'tools', 'resources'} <= set(hello['capabilities'])

    tools = mcp.request('tools/list')['result']['tools']
    for tool in tools:
        assert set(tool) <= TOOL[revision], tool['name']
        assert {'name', 'description', 'inputSchema'} <= set(tool)
        if revision >= '2025-03-26':
            assert set(tool['annotations']) <= {'title', 'readOnlyHint', 'destructiveHint',
                                                'idempotentHint', 'openWorldHint'}
        if revision >= '2025-06-18':
            assert ('outputSchema' in tool) == (tool['name'] not in DATA)

    made = mcp.request('tools/call',
                       {'name': 'sandbox_create', 'arguments': {'pool': 'host'}})['result']
    assert set(made) <= RESULT[revision]
    assert ('structuredContent' in made) == (revision >= '2025-06-18')
    sandbox = re.search(ID, made['content'][0]['text']).group()
    call_id = mcp.start('tools/call', {'name': 'sandbox_exec', '_meta': {'progressToken': 1},
                                       'arguments': {'sandbox': sandbox, 'command': 'sleep 1.5'}})
    assert set(mcp.wait(call_id)['result']) <= RESULT[revision]
    for told in mcp.notifications():
        assert set(told['params']) <= PROGRESS[revision]
    failed = mcp.request('tools/call', {'name': 'sandbox_exec',
                                        'arguments': {'sandbox': 'x', 'command': 'true'}})['result']
    assert set(failed) <= RESULT[revision] and failed['isError']


@pytest.mark.parametrize('asked', ['1999-01-01', '2024-10-07', '2026-07-28', '2099-01-01', '',
                                   '2025-06-18 ', 'x' * 1000])
def test_unknown_revisions_get_the_latest(start, asked):
    mcp = start('--pool', '0', version='none')
    assert mcp.initialize(asked)['protocolVersion'] == LATEST
    assert 'outputSchema' in mcp.request('tools/list')['result']['tools'][0]


@pytest.mark.parametrize('revision', REVISIONS)
def test_batches(start, revision):
    """Promised by 2025-03-26, not forbidden by 2024-11-05, taken out by 2025-06-18."""
    mcp = start('--pool', '0', version='none')
    mcp.initialize(revision)
    mcp.send([{'jsonrpc': '2.0', 'id': i, 'method': 'ping'} for i in range(100, 110)]
             + [{'jsonrpc': '2.0', 'method': 'x'}])
    answer = mcp.next()
    if revision > '2025-03-26':
        assert 'id' not in answer and answer['error']['code'] == -32600
    else:
        assert sorted(one['id'] for one in answer) == list(range(100, 110))
        mcp.send([{'jsonrpc': '2.0', 'method': 'x'}])  # nothing to answer
        mcp.send([7, {'jsonrpc': '2.0', 'id': 5, 'method': 'ping'}])
        answer = mcp.next()
        assert len(answer) == 2 and {one.get('id') for one in answer} == {None, 5}
    mcp.send([])
    assert mcp.next()['error']['code'] == -32600
    mcp.ping()
    assert not mcp.inbox


def test_a_batch_of_calls_runs_at_once(start):
    mcp = start('--pool', '0', version='none')
    mcp.initialize('2025-03-26')
    text = mcp.text('sandbox_create', pool='host')
    sandbox = re.search(ID, text).group()
    mcp.send([{'jsonrpc': '2.0', 'id': f'b{i}', 'method': 'tools/call', 'params': {
        'name': 'sandbox_exec', 'arguments': {'sandbox': sandbox, 'command': f'sleep 8; echo {i}'}}}
              for i in range(8)])
    mcp.ping(timeout=7)
    answers = mcp.next(timeout=60)
    assert {one['id']: json.loads(one['result']['content'][0]['text'])['stdout']
            for one in answers} == {
                f'b{i}': f'{i}\n' for i in range(8)}
