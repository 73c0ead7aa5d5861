"""The contract of the tools: seed names and arguments, strict schemas, and texts to the letter."""

import json
import os
import re

import pytest

from stage import walk
from surface import TOOLS
from test_serve import Serve
from who import HERE, node

# Tool: (required, optional), by the seed; what Holt adds is optional.
SEED = {
    'sandbox_create': ({'pool': 'string'}, {}),
    'sandbox_exec': ({'sandbox': 'string', 'command': 'string'}, {'timeout_seconds': 'integer'}),
    'sandbox_read_file': ({'sandbox': 'string', 'path': 'string'}, {}),
    'sandbox_write_file': ({'sandbox': 'string', 'path': 'string', 'content': 'string'}, {}),
    'sandbox_fork': ({'sandbox': 'string'}, {'replicas': 'integer'}),
    'sandbox_terminate': ({'sandbox': 'string'}, {}),
}


@pytest.fixture(scope='module')
def tools(hub):
    return {t['name']: t for t in hub.request('tools/list')['result']['tools']}


def test_the_seeds_six_tools_in_its_order_and_few_more(tools):
    assert list(tools)[:6] == list(SEED) and set(tools) == set(TOOLS) and len(tools) <= 20
    for name, (required, optional) in SEED.items():
        schema = tools[name]['inputSchema']
        for argument, kind in {**required, **optional}.items():
            assert schema['properties'][argument]['type'] == kind
        assert set(schema['required']) == set(required)


def test_arguments_of_every_tool(start, transcript):
    """Of those too that are not listed by default: names and kinds, and what must be there."""
    mcp = start('--pool', '0', '--tools', 'all')
    transcript('arguments', [' '.join([tool['name'], *(
        f'{argument}:{"|".join([row["type"]] if isinstance(row["type"], str) else row["type"])}'
        f'{"!" * (argument in tool["inputSchema"].get("required", []))}'
        for argument, row in tool['inputSchema']['properties'].items())]) for tool in listed(mcp)])


def listed(mcp):
    found, cursor = [], {}
    while cursor is not None:
        page = mcp.request('tools/list', cursor)['result']
        found += page['tools']
        cursor = {'cursor': page['nextCursor']} if 'nextCursor' in page else None
    return found


def objects(schema, path='#'):
    """Every schema of an object in a schema."""
    if isinstance(schema, dict):
        if schema.get('type') == 'object':
            yield path, schema
        for key, value in schema.items():
            yield from objects(value, f'{path}/{key}')
    elif isinstance(schema, list):
        for i, value in enumerate(schema):
            yield from objects(value, f'{path}/{i}')


def test_schemas_are_strict_and_documented(tools):
    def check(name):
        for which in ('inputSchema', 'outputSchema'):
            for path, schema in objects(tools[name].get(which)):
                extra = schema['additionalProperties']
                assert extra is False or (extra == {**extra, 'type': 'string'}
                                          and 'properties' not in schema), (which, path)
                for argument, row in schema.get('properties', {}).items():
                    assert len(row['description']) > 5 and row['type'], (which, path, argument)
        for argument, row in tools[name]['inputSchema']['properties'].items():
            if row['type'] in ('integer', 'number'):
                assert 'minimum' in row and 'maximum' in row, argument
            if row['type'] == 'array':
                assert 'maxItems' in row, argument
    walk(tools, check)


def test_what_clients_need_to_choose_a_tool(tools):
    hints = {'readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'}
    for name, tool in tools.items():
        assert 30 < len(tool['description']) < 300, name
        assert tool['title'] and set(tool['annotations']) >= hints, name
        assert re.fullmatch(r'\d+\.\d+\.\d+', tool['_meta']['holt/schemaVersion'])
    assert [n for n, t in tools.items() if t['annotations']['readOnlyHint']] == [
        'sandbox_read_file', 'sandbox_list', 'sandbox_get', 'sandbox_list_files',
        'sandbox_processes',
        'sandbox_diff']
    assert not any(t['annotations']['openWorldHint'] for t in tools.values())
    assert tools['sandbox_terminate']['annotations']['destructiveHint']


def test_the_list_costs_few_tokens(tools):
    """A token is some four characters. What a model reads is names, descriptions and arguments."""
    read = [{k: t[k] for k in ('name', 'description', 'inputSchema')} for t in tools.values()]
    large = {t['name']: n for t in read if (n := len(json.dumps(t, separators=(',', ':')))) > 2_500}
    assert large == {}
    assert len(json.dumps(read, separators=(',', ':'))) < 16_384
    assert len(json.dumps(read[:6], separators=(',', ':'))) < 6_000  # the seed's
    assert len(json.dumps(list(tools.values()), separators=(',', ':'))) < 21_250


def test_a_result_is_said_once(hub, sb):
    """Some clients hand their model the text, some the structured content, some both: so what a
    tool has read is in one of them."""
    marker = 'once-and-no-more'
    sb.write(marker, marker)
    job = sb.exec(f'echo {marker}', background=True)['exec']
    for name, arguments in (
            ('sandbox_exec', {'command': f'cat {marker[:5]}*'}), ('sandbox_list_files', {}),
            ('sandbox_read_file', {'path': marker}), ('sandbox_diff', {}),
            ('sandbox_exec_output', {'exec': job, 'wait_seconds': 20})):
        result = hub.request('tools/call', {'name': name, 'arguments': {'sandbox': sb.id,
                                                                        **arguments}})['result']
        assert json.dumps(result).count(marker) == 1, result
        assert 'structuredContent' not in result


def test_output_is_bounded_and_the_rest_is_there(hub, sb):
    """By default 16 KiB of each stream, head and tail; an offset leads to all else."""
    def ask(command, **more):
        result = hub.request('tools/call', {'name': 'sandbox_exec', 'arguments': {
            'sandbox': sb.id, 'command': command, **more}})['result']
        assert len(json.dumps(result)) < 64 << 10
        return json.loads(result['content'][0]['text'])
    lines = ''.join(f'{n}\n' for n in range(1, 200001))
    got = ask('echo first >&2; seq 200000')
    assert got['exit_code'] == 0 and got['stderr'] == 'first\n'
    left_out = got['stdout_elided_bytes']
    mark = f'\n[... {left_out} bytes elided ...]\n'
    head, tail = got['stdout'].split(mark)
    assert lines.startswith(head) and lines.endswith(tail)
    assert len(head) + len(tail) == 16 << 10 and left_out == len(lines) - (16 << 10)
    read, at = '', got['next_offset']
    while len(read) < left_out:
        piece = hub.call('sandbox_exec_output', sandbox=sb.id, exec=got['exec'], offset=at)
        assert 0 < len(piece['stdout']) + len(piece['stderr']) <= 16 << 10
        read, at = read + piece['stdout'], piece['next_offset']
    assert (head + read).startswith(lines[:len(head) + left_out])
    both = ask('seq 200000; seq 200000 >&2')
    assert both['stdout_elided_bytes'] == both['stderr_elided_bytes'] == left_out
    assert both['next_offset'] == 8 << 10
    assert set(ask('seq 10')) == {'exit_code', 'stdout', 'stderr'}
    late = ask('seq 200000; exec sleep 100', timeout_seconds=3)
    assert late['timed_out'] and late['exec'] and late['next_offset']


def test_a_large_file_is_read_in_parts(hub, sb):
    """By default 64 KiB; a text behind it tells that there is more."""
    content = 'ü' * 50000
    sb.write('f', content)
    first, note = hub.request('tools/call', {'name': 'sandbox_read_file', 'arguments': {
        'sandbox': sb.id, 'path': 'f'}})['result']['content']
    assert len(first['text'].encode()) == 64 << 10
    assert json.loads(note['text']) == {'truncated': True, 'size': 100000, 'next_offset': 65536}
    assert first['text'] + hub.text('sandbox_read_file', sandbox=sb.id, path='f',
                                    offset=65536) == content


def test_a_large_directory_is_listed_in_part(hub, sb):
    sb.sh('mkdir many; cd many; seq 2000 | xargs touch')
    got = hub.call('sandbox_list_files', sandbox=sb.id, path='many')
    assert len(got['entries']) == 128 and got['truncated']
    got = hub.call('sandbox_list_files', sandbox=sb.id, path='many', limit=1024)
    assert len(got['entries']) == 1024 and got['truncated']


def test_many_processes_are_listed_in_part(hub, sb):
    sb.sh('i=0; while [ $i -lt 80 ]; do sleep 1000 >/dev/null 2>&1 & i=$((i+1)); done')
    got = hub.call('sandbox_processes', sandbox=sb.id)
    assert len(got['processes']) == 64 and got['truncated']
    got = hub.call('sandbox_processes', sandbox=sb.id, limit=100)
    assert len(got['processes']) == 80 and not got['truncated']
    assert len(json.dumps(got)) < 16 << 10


def test_schemas_compile_and_judge_as_the_server_does(tools, hub, sb):
    """Ajv, strict, draft 2020-12: what it says of an argument is what the server says."""
    cases = [
        ('sandbox_create', {'pool': 'host'}), ('sandbox_create', {}),
        ('sandbox_create', {'pool': 'host', 'x': 1}), ('sandbox_create', {'pool': 1}),
        ('sandbox_create', {'pool': ''}), ('sandbox_create', {'pool': 'host', 'env': {'A': 1}}),
        ('sandbox_create', {'pool': 'host', 'env': {'A': 'b'}}),
        ('sandbox_create', {'pool': 'host', 'memory_mb': 15}),
        ('sandbox_create', {'pool': 'host', 'memory_mb': 64, 'disk_mb': 8, 'pids': 32,
                            'cwd': '/tmp', 'ttl_seconds': 60}),
        ('sandbox_create', {'pool': 'host', 'pids': 3}),
        ('sandbox_create', {'pool': 'host', 'pids': 4.5}),
        ('sandbox_create', {'pool': 'host', 'pids': 64.0}),
        ('sandbox_create', {'pool': 'host', 'ttl_seconds': 0}),
        ('sandbox_exec', {'sandbox': sb.id, 'command': 'true', 'args': []}),
        ('sandbox_exec', {'sandbox': sb.id, 'command': '', 'args': []}),
        ('sandbox_exec', {'sandbox': sb.id, 'command': 'true', 'max_output_bytes': 10}),
        ('sandbox_exec', {'sandbox': sb.id, 'command': 'true', 'timeout_seconds': 5, 'stdin': 'x',
                          'cwd': '/', 'env': {}}),
        ('sandbox_write_file', {'sandbox': sb.id, 'path': 'f', 'content': 'x', 'mode': '0600',
                                'encoding': 'utf-8'}),
        ('sandbox_write_file', {'sandbox': sb.id, 'path': 'f', 'content': 'x',
                                'encoding': 'rot13'}),
        ('sandbox_read_file', {'sandbox': sb.id, 'path': 'f', 'offset': 0, 'limit': 1}),
        ('sandbox_read_file', {'sandbox': sb.id, 'path': 'f', 'offset': -1}),
        ('sandbox_fork', {'sandbox': sb.id, 'replicas': 65}),
        ('sandbox_fork', {'sandbox': sb.id, 'replicas': 1}),
    ]
    answers = [hub.request('tools/call', {'name': name, 'arguments': arguments})['result']
               for name, arguments in cases]
    said = node('schemas.mjs', {'tools': list(tools.values()),
                                'inputs': [{'name': n, 'value': a} for n, a in cases],
                                'outputs': [{'name': n, 'value': a.get('structuredContent')}
                                            for (n, _), a in zip(cases, answers)
                                            if 'structuredContent' in a]})
    for (name, arguments), answer, valid in zip(cases, answers, said['inputs']):
        refused = (bool(answer.get('isError')) and json.loads(answer['content'][0]['text'])['code']
                   == 'invalid_arguments')
        assert valid != refused, (name, arguments, answer)
    assert all(said['outputs']) and len(said['outputs']) > 5
    for (name, _), answer in zip(cases, answers):
        if name in ('sandbox_create', 'sandbox_fork') and not answer.get('isError'):
            for made in (answer['structuredContent'].get('sandboxes')
                         or [answer['structuredContent']['sandbox']]):
                hub.call('sandbox_terminate', sandbox=made)


# ---- the texts of the seed -----------------------------------------------------------------------

def test_text_of_create(hub):
    text = hub.text('sandbox_create', pool='host')
    assert re.fullmatch(r'Created sandbox sbx-[0-9a-f]{32}', text)
    hub.call('sandbox_terminate', sandbox=text.split()[-1])


@pytest.mark.parametrize('command, exit_code, out, err', [
    ('true', 0, '', ''), ('echo ok', 0, 'ok\n', ''), ('echo no >&2; exit 7', 7, '', 'no\n'),
    ("printf '\"\\\\ ü \\t\\001'", 0, '"\\ ü \t\x01', ''), ('kill -TERM $$', 143, '', ''),
])
def test_text_of_exec(hub, sb, command, exit_code, out, err):
    text = hub.text('sandbox_exec', sandbox=sb.id, command=command)
    signal = [('signal', exit_code - 128)] if exit_code > 128 else []
    assert list(json.loads(text).items()) == [('exit_code', exit_code), ('stdout', out),
                                              ('stderr', err), *signal]
    assert text.startswith(f'{{"exit_code":{exit_code},"stdout":"')


def test_text_of_files(hub, sb):
    for path, content in (('notes.txt', 'grüße\n'), ('/tmp/a b', ''), ('d/e', 'x' * 5000)):
        text = hub.text('sandbox_write_file', sandbox=sb.id, path=path, content=content)
        whole = os.path.join('/workspace', path)
        assert text == f'Wrote {len(content.encode())} bytes to {whole} in sandbox {sb.id}'
        assert hub.text('sandbox_read_file', sandbox=sb.id, path=path) == content


def test_text_of_fork(hub, sb):
    for n in (1, 3):
        text = hub.text('sandbox_fork', sandbox=sb.id, replicas=n)
        ids = json.loads(text)
        assert len(set(ids)) == n and all(re.fullmatch('sbx-[0-9a-f]{32}', i) for i in ids)
        for made in ids:
            assert hub.text('sandbox_terminate', sandbox=made) == f'Terminated sandbox {made}'


def test_facts_for_programs(hub, sb):
    """What the text does not tell of, as no model needs it, is in _meta."""
    result = hub.request('tools/call', {'name': 'sandbox_exec', 'arguments': {
        'sandbox': sb.id, 'command': r'printf "\377"; kill -9 $$'}})['result']
    facts = result['_meta']['holt/facts']
    assert facts['exec'].startswith('exec-') and facts['wall_ms'] > 0 and facts['signal'] == 9
    assert facts['stdout_base64'] == '/w==' and not facts['timed_out']
    assert not {'stdout', 'stderr'} & set(facts) and result.get('isError', False) is False


def test_ids_are_not_guessable(hub):
    made = [hub.create() for _ in range(20)]
    ids = {sb.id for sb in made}
    assert len(ids) == 20
    bits = [int(i[4:], 16) for i in ids]
    assert 40 < sum(bin(a ^ b).count('1') for a, b in zip(bits, bits[1:])) / 19 < 88
    for sb in made:
        sb.terminate()


def test_readme_and_manual_name_every_tool(tools):
    top = os.path.dirname(os.path.dirname(HERE))
    for document in ('README.md', 'man/holt-mcp.1.scd'):
        with open(os.path.join(top, document), encoding='utf-8') as f:
            text = f.read()
        assert not [name for name in tools if name not in text], document


# ---- fewer tools

def names_of(mcp):
    return [tool['name'] for tool in mcp.request('tools/list')['result']['tools']]


def test_tools_are_narrowed(start, me):
    """By their names and by sets; what is not served can't be called."""
    mcp = start('--pool', '0', '--tools', 'sandbox_read_file,sandbox_exec')
    assert names_of(mcp) == ['sandbox_exec', 'sandbox_read_file']
    answer = mcp.request('tools/call', {'name': 'sandbox_create', 'arguments': {'pool': 'host'}})
    assert answer['error']['code'] == -32602
    assert names_of(start('--pool', '0', '--tools', 'sandbox')) == list(TOOLS)
    for wrong in ('sandbox_none', '', 'sandbox,', 'sandbox exec', 'x' * 300):
        for verb in ('mcp', 'serve'):
            done = me.run(verb, '--pool', '0', '--tools', wrong, text=True,
                          env={'HOLT_SOCKET': 'none'})
            assert done.returncode != 0 and 'tools: there is no tool' in done.stderr, done


def test_clients_narrow_their_tools(me, tmp_path):
    """By the query of their URL, within what the hub serves; in sessions and without."""
    hub = Serve(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0', '--socket', 'none',
                '--tools', 'sandbox_exec,sandbox_create,sandbox_list')
    try:
        url = f'http://127.0.0.1:{hub.address[1]}'
        for tools, expected in ((None, ['sandbox_create', 'sandbox_exec', 'sandbox_list']),
                                ('sandbox_exec', ['sandbox_exec']), ('sandbox_get', []),
                                ('sandbox_list,sandbox_create',
                                 ['sandbox_create', 'sandbox_list'])):
            more = ['--tools', tools] if tools else []
            for where in (url, url + '/mcp'):
                mcp = me.mcp('--connect', where, *more, env={'HOLT_TOKEN': hub.token})
                mcp.initialize()
                assert names_of(mcp) == expected, (tools, where)
                assert mcp.close() == 0
            query = f'?tools={tools}' if tools else ''
            for kind in ('/mcp', '/sse'):
                done = me.run('mcp', 'tools', '--url', url + kind + query, '--header',
                              f'Authorization: Bearer {hub.token}', '--json', text=True)
                told = [tool['name'] for tool in json.loads(done.stdout)['tools']]
                assert done.returncode == 0 and told == expected, (tools, kind, done)
        for path in ('/mcp', '/sse'):
            reply = hub.ask(method='POST' if path == '/mcp' else 'GET',
                            path=path + '?tools=sandbox_none', fields=[
                                'Accept: application/json, text/event-stream'],
                            **({'body': json.dumps({
                                'jsonrpc': '2.0', 'id': 1, 'method': 'initialize', 'params': {
                                    'protocolVersion': '2025-11-25', 'capabilities': {},
                                    'clientInfo': {'name': 'x', 'version': '1'}}})}
                               if path == '/mcp' else {}))
            assert reply.status == 400 and b'sandbox_none' in reply.body, reply
        hub.works()
        assert hub.end() == 0, hub.said()
    finally:
        hub.kill()
