"""The rest of a sandbox's life over MCP: the tools beside the seed's six, files as resources, and
commands as tasks; in the eras of both kinds of clients."""

import base64
import json

import pytest

from client import Sandbox, data_of, until
from test_eras import KEY, complete, meta, modern
from test_serve import Serve

NOT_FOUND = {'legacy': -32002, 'modern': -32602}
TASKS = {'extensions': {'io.modelcontextprotocol/tasks': {}}}


@pytest.fixture
def mcp(start):
    return start('--pool', '0')


@pytest.fixture
def sb(mcp):
    return mcp.create(memory_mb=64, disk_mb=16, pids=40)


# ---- the tools ---------------------------------------------------------------------------------


def test_list_and_get(mcp, sb):
    child = sb.fork()[0]
    listed = mcp.call('sandbox_list')
    assert ([s['sandbox'] for s in listed['sandboxes']] == [sb.id, child.id]
            and 'next_after' not in listed)
    assert listed['sandboxes'][1]['source'] == sb.id
    got = mcp.call('sandbox_get', sandbox=sb.id)
    assert got['state'] == 'running' and got['template'] == 'host' and 'ttl_left_seconds' not in got
    assert got['usage']['disk_limit_bytes'] == 16 << 20 and got['usage']['disk_bytes'] >= 0
    assert json.loads(mcp.text('sandbox_get', sandbox=sb.id))['sandbox'] == sb.id
    mcp.call('sandbox_set_timeout', sandbox=sb.id, seconds=600)
    assert 0 < mcp.call('sandbox_get', sandbox=sb.id)['ttl_left_seconds'] <= 600
    mcp.call('sandbox_set_timeout', sandbox=sb.id, seconds=0)
    assert 'ttl_left_seconds' not in mcp.call('sandbox_get', sandbox=sb.id)
    child.terminate()
    assert [s['sandbox'] for s in mcp.call('sandbox_list')['sandboxes']] == [sb.id]
    assert ([s['sandbox'] for s in mcp.call('sandbox_list', state='terminated')['sandboxes']]
            == [child.id])
    gone = mcp.call('sandbox_get', sandbox=child.id)
    assert gone['state'] == 'terminated' and 'usage' not in gone
    assert mcp.fails('sandbox_get', sandbox='nobody')['code'] == 'sandbox_not_found'


def test_pages(mcp):
    first = mcp.create(memory_mb=16, disk_mb=1)
    made = [first.id]
    for _ in range(4):
        made += [s.id for s in first.fork(51)]
    page = mcp.call('sandbox_list')
    assert [s['sandbox'] for s in page['sandboxes']] == made[:100]
    rest = mcp.call('sandbox_list', after=page['next_after'], limit=200)
    assert [s['sandbox'] for s in rest['sandboxes']] == made[100:] and 'next_after' not in rest
    seen, params = [], {}
    while True:
        listed = mcp.request('resources/list', params)['result']
        seen += [r['uri'] for r in listed['resources']]
        if 'nextCursor' not in listed:
            break
        assert len(listed['resources']) == 100
        params = {'cursor': listed['nextCursor']}
    assert seen == [f'sandbox://{one}/' for one in made]
    found = complete_id(mcp, 'sbx-')
    assert len(found['values']) == 100 and found['total'] == len(made) and found['hasMore']


def test_files(mcp, sb):
    sb.write('d/a', 'one')
    sb.sh('ln -s a d/link; chmod 600 d/a')
    got = mcp.call('sandbox_list_files', sandbox=sb.id, path='d')
    assert [(e['name'], e['type'], e['size'], e['mode'])
            for e in got['entries'] if e['name'] == 'a'] == [('a', 'file', 3, '0600')]
    assert [(e['name'], e['type']) for e in got['entries']] == [('a', 'file'), ('link', 'symlink')]
    assert [e['name'] for e in mcp.call('sandbox_list_files', sandbox=sb.id)['entries']] == ['d']
    assert (mcp.text('sandbox_move_file', sandbox=sb.id, path='d/a', to='b')
            == f'Moved /workspace/d/a to /workspace/b in sandbox {sb.id}')
    assert sb.content('b') == 'one'
    assert sb.fails('sandbox_remove_file', path='d')['code'] == 'conflict'
    mcp.call('sandbox_remove_file', sandbox=sb.id, path='d', recursive=True)
    mcp.call('sandbox_remove_file', sandbox=sb.id, path='b')
    assert mcp.call('sandbox_list_files', sandbox=sb.id)['entries'] == []
    assert sb.fails('sandbox_remove_file', path='b')['code'] == 'path_not_found'
    assert sb.fails('sandbox_list_files', path='/etc/passwd')['code'] in ('not_a_file',
                                                                          'path_not_found')
    assert sb.fails('sandbox_move_file', path='x', to='y')['code'] == 'path_not_found'


def test_pause_and_resume(mcp, sb):
    for _ in range(2):  # twice is well
        assert mcp.call('sandbox_pause', sandbox=sb.id) == {'sandbox': sb.id, 'state': 'paused'}
    assert sb.fails('sandbox_exec', command='true')['code'] == 'sandbox_paused'
    assert mcp.call('sandbox_get', sandbox=sb.id)['usage']['state'] == 'paused'
    for _ in range(2):
        assert mcp.call('sandbox_resume', sandbox=sb.id)['state'] == 'running'
    assert sb.sh('echo on') == 'on\n'


def test_processes_and_signals(mcp, sb):
    sb.sh('sleep 1000 > /dev/null 2>&1 &')
    pid = until(lambda: [p['pid'] for p in mcp.call('sandbox_processes', sandbox=sb.id)['processes']
                         if p['command'] == 'sleep 1000'], what='the sleep')[0]
    mcp.call('sandbox_signal', sandbox=sb.id, pid=pid, signal=9)
    until(lambda: pid not in [p['pid'] for p in mcp.call('sandbox_processes', sandbox=sb.id)[
        'processes']], what='its end')
    assert sb.fails('sandbox_signal', pid=1)['code'] == 'invalid_arguments'


def test_disk_full(mcp, sb):
    full = sb.exec('head -c 20000000 /dev/zero > f')
    assert full['exit_code'] == 1 and full['hit_disk'] and not full['hit_memory']
    assert sb.fails('sandbox_write_file', path='g', content='x' * 5000)['code'] == 'disk_full'


# ---- in the background -------------------------------------------------------------------------


def test_a_command_in_the_background(mcp, sb):
    made = sb.exec('echo one; echo two; while [ ! -e go ]; do sleep 0.05; done; echo three; '
                   'echo err >&2; exit 7', background=True)
    assert 'exit_code' not in made
    first = mcp.call('sandbox_exec_output', sandbox=sb.id, exec=made['exec'], wait_for='two',
                     wait_seconds=20)
    assert (first['state'] == 'running' and first['found'] and (first['stdout'], first['stderr'])
            == ('one\ntwo\n', ''))
    nothing = mcp.call('sandbox_exec_output', sandbox=sb.id, exec=made['exec'],
                       offset=first['next_offset'])
    assert (nothing['stdout'], nothing['found'], nothing['next_offset']) == ('', False,
                                                                             first['next_offset'])
    waiting = mcp.start_tool('sandbox_exec_output', sandbox=sb.id, exec=made['exec'],
                             offset=first['next_offset'], wait_seconds=30)
    sb.sh('touch go')
    last = mcp.result(waiting)
    assert ((last['state'], last['exit_code'], last['stdout'], last['stderr'])
            == ('exited', 7, 'three\n', 'err\n'))
    whole = mcp.call('sandbox_exec_output', sandbox=sb.id, exec=made['exec'])
    assert (whole['stdout'] == 'one\ntwo\nthree\n' and whole['next_offset'] == last['next_offset']
            and whole['lost_bytes'] == 0)
    assert mcp.call('sandbox_exec_output', sandbox=sb.id, exec=made['exec'], wait_for='two',
                    wait_seconds=30)['found']
    assert mcp.call('sandbox_exec_output', sandbox=sb.id, exec=made['exec'], wait_pattern='^t[w]o$',
                    wait_seconds=30)['found']
    never = mcp.call('sandbox_exec_output', sandbox=sb.id, exec=made['exec'], wait_pattern='^wo',
                     wait_seconds=30)
    assert not never['found'] and never['stdout'] == whole['stdout']
    assert (sb.fails('sandbox_exec_output', exec=made['exec'], wait_pattern='(')['code']
            == 'invalid_arguments')


def test_the_end_of_one_in_the_background(mcp, sb):
    made = sb.exec('cat; sleep 1000', background=True, stdin='in')['exec']
    mcp.call('sandbox_exec_output', sandbox=sb.id, exec=made, wait_for='in', wait_seconds=20)
    ended = mcp.call('sandbox_exec_output', sandbox=sb.id, exec=made, kill=True, wait_seconds=20)
    assert ended['state'] == 'signaled' and ended['exit_code'] == 137 and ended['stdout'] == 'in'
    until(lambda: sb.running('sleep') == 0, what='the end of its tree')
    late = sb.exec('sleep 1000', background=True, timeout_seconds=1)['exec']
    assert (mcp.call('sandbox_exec_output', sandbox=sb.id, exec=late, wait_seconds=20)['state']
            == 'timed_out')
    assert sb.fails('sandbox_exec_output', exec='none')['code'] == 'process_not_found'
    assert (mcp.fails('sandbox_exec_output', sandbox='none', exec=made)['code']
            == 'sandbox_not_found')


def test_much_output_in_pieces(mcp, sb):
    made = sb.exec('head -c 300000 /dev/zero | tr "\\0" x', background=True)['exec']
    got, offset = '', 0
    while len(got) < 300000:
        piece = mcp.call('sandbox_exec_output', sandbox=sb.id, exec=made, offset=offset,
                         max_bytes=50000, wait_seconds=20)
        assert (0 < len(piece['stdout']) <= 50000 and piece['next_offset'] == offset
                + len(piece['stdout']))
        got, offset = got + piece['stdout'], piece['next_offset']
    assert got == 'x' * 300000


# ---- snapshots ---------------------------------------------------------------------------------


def test_what_has_changed(mcp, sb):
    sb.write('a/b', 'x')
    changed = {c['path']: c['change'] for c in mcp.call('sandbox_diff', sandbox=sb.id)['changes']}
    assert ({path.lstrip('/') for path, change in changed.items() if change == 'added'}
            >= {'workspace/a', 'workspace/a/b'})
    assert mcp.call('sandbox_diff', sandbox=sb.id, limit=1)['truncated']
    assert mcp.fails('sandbox_diff', sandbox='none')['code'] == 'sandbox_not_found'


def test_snapshots_want_a_registry(mcp, sb):
    assert sb.fails('sandbox_snapshot')['code'] == 'unsupported_on_host'
    assert mcp.fails('sandbox_restore', snapshot='none')['code'] in ('snapshot_not_found',
                                                                     'unsupported_on_host')


def test_a_snapshot_outlives_its_sandbox(me, tmp_path):
    hub = Serve(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0')
    try:
        mcp = me.mcp('--connect', f'http://{hub.address[0]}:{hub.address[1]}',
                     env={'HOLT_TOKEN': hub.token})
        try:
            mcp.initialize()
            sb = mcp.create()
            sb.write('kept', 'files stay')
            taken = mcp.call('sandbox_snapshot', sandbox=sb.id, ttl_seconds=600)
            assert taken['sandbox'] == sb.id and taken['bytes'] > 0
            sb.terminate()
            again = Sandbox(mcp, mcp.call('sandbox_restore', snapshot=taken['snapshot']))
            assert again.id != sb.id and again.content('kept') == 'files stay'
            assert mcp.fails('sandbox_restore', snapshot='none')['code'] == 'snapshot_not_found'
        finally:
            assert mcp.close() == 0
        assert hub.end() == 0
    finally:
        hub.kill()


# ---- resources ---------------------------------------------------------------------------------


def read(mcp, uri, era='legacy'):
    answer = (modern(mcp, 'resources/read', uri=uri) if era == 'modern'
              else mcp.request('resources/read', {'uri': uri}))
    if 'error' in answer:
        return answer['error']['code']
    contents, = answer['result']['contents']
    assert contents['uri'] == uri
    return contents


def complete_id(mcp, value):
    answer = mcp.request('completion/complete',
                         {'ref': {'type': 'ref/resource', 'uri': 'sandbox://{sandbox}/{+path}'},
                          'argument': {'name': 'sandbox', 'value': value}})
    return answer['result']['completion']


@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_files_are_resources(mcp, sb, era):
    sb.write('a b/grüße.txt', 'héllo\n')
    sb.sh("printf '\\377\\0x' > bytes; : > empty; mkdir -p 'a b'")
    text = read(mcp, f'sandbox://{sb.id}/workspace/a%20b/gr%C3%BC%C3%9Fe.txt', era)
    assert (text['text'], text['mimeType']) == ('héllo\n', 'text/plain')
    blob = read(mcp, f'sandbox://{sb.id}/workspace/bytes', era)
    assert (base64.b64decode(blob['blob']) == b'\xff\0x'
            and blob['mimeType'] == 'application/octet-stream' and 'text' not in blob)
    assert read(mcp, f'sandbox://{sb.id}/workspace/empty', era)['text'] == ''
    listing = json.loads(read(mcp, f'sandbox://{sb.id}/workspace', era)['text'])
    assert [e['name'] for e in listing['entries']] == ['a b', 'bytes', 'empty']
    root = read(mcp, f'sandbox://{sb.id}/', era)
    assert (root['mimeType'] == 'inode/directory'
            and 'workspace' in [e['name'] for e in json.loads(root['text'])['entries']])


@pytest.mark.parametrize('era', ['legacy', 'modern'])
def test_what_is_no_resource(mcp, sb, era):
    other = mcp.create()
    other.terminate()
    for uri in (f'sandbox://{sb.id}/workspace/none', 'sandbox://nobody/workspace',
                f'sandbox://{other.id}/', 'file:///etc/passwd', 'sandbox://', f'sandbox://{sb.id}',
                'sandbox:///etc/passwd', 'http://x/'):
        assert read(mcp, uri, era) == NOT_FOUND[era], uri
    sb.sh('truncate -s 5M large; mkfifo pipe')
    for path in ('workspace/large', 'workspace/pipe', 'dev/zero', 'proc/self/environ',
                 'workspace/%zz', 'workspace/%0', 'workspace/%00',
                 'x' * 5000):
        code = read(mcp, f'sandbox://{sb.id}/{path}', era)
        assert isinstance(code, int) and code < 0, path
    assert sb.sh('echo well') == 'well\n'


def test_traversal_stays_inside(mcp, sb):
    inside = sb.sh('cat /etc/hostname')
    for path in ('../../../../etc/hostname', 'workspace/%2e%2e/%2e%2e/%2e%2e/etc/hostname',
                 '/etc/hostname'):
        assert read(mcp, f'sandbox://{sb.id}/{path}')['text'] == inside


def test_roots_templates_and_ids(mcp, sb):
    assert [(r['uri'], r['name'], r['mimeType'])
            for r in mcp.request('resources/list')['result']['resources']] == [
                (f'sandbox://{sb.id}/', sb.id, 'inode/directory')]
    template, = mcp.request('resources/templates/list')['result']['resourceTemplates']
    assert template['uriTemplate'] == 'sandbox://{sandbox}/{+path}'
    assert complete_id(mcp, sb.id[:6])['values'] == [sb.id]
    assert complete_id(mcp, 'none')['values'] == []
    sb.terminate()
    assert mcp.request('resources/list')['result']['resources'] == []
    assert complete_id(mcp, '')['values'] == []


# ---- tasks -------------------------------------------------------------------------------------


def begin(mcp, sb, command, **arguments):
    """tools/call by a modern client that has tasks; its result, which may be one."""
    answer = mcp.request('tools/call', {
        'name': 'sandbox_exec', 'arguments': {'sandbox': sb.id, 'command': command, **arguments},
        '_meta': {**meta(), KEY + 'clientCapabilities': TASKS}})
    return answer['result']


def task(mcp, method, task_id):
    answer = mcp.request(f'tasks/{method}', {
        'taskId': task_id, '_meta': {**meta(), KEY + 'clientCapabilities': TASKS}})
    return answer['result']


def test_a_long_command_becomes_a_task(mcp, sb):
    short = begin(mcp, sb, 'echo x')
    assert short['resultType'] == 'complete' and data_of(short)['stdout'] == 'x\n'
    made = begin(mcp, sb, 'while [ ! -e go ]; do sleep 0.1; done; echo done')
    assert made['resultType'] == 'task' and made['status'] == 'working'
    assert task(mcp, 'get', made['taskId'])['status'] == 'working'
    assert sb.sh('touch go') == ''  # meanwhile all else goes on
    done = until(lambda: ended(mcp, made['taskId']), what='its end')
    assert (done['status'] == 'completed' and data_of(done['result'])['stdout']
            == 'done\n')


def ended(mcp, task_id):
    got = task(mcp, 'get', task_id)
    return got if got['status'] != 'working' else None


def test_a_cancelled_task_ends_its_command(mcp, sb):
    made = begin(mcp, sb, 'sleep 1000', timeout_seconds=1000)
    assert made['resultType'] == 'task'
    until(lambda: sb.running('sleep') == 1, what='the sleep')
    task(mcp, 'cancel', made['taskId'])
    until(lambda: sb.running('sleep') == 0, what='the end of the sleep')
    assert task(mcp, 'get', made['taskId'])['status'] == 'cancelled'


def test_a_task_outlives_no_sandbox(mcp, sb):
    other = mcp.create()
    made = begin(mcp, other, 'sleep 1000', timeout_seconds=1000)
    other.terminate()
    done = until(lambda: ended(mcp, made['taskId']), what='its end')
    assert done['status'] == 'completed' and done['result']['isError']
    assert json.loads(done['result']['content'][0]['text'])['code'] == 'cancelled'


def test_clients_without_tasks_wait(mcp, sb):
    ran = modern(mcp, 'tools/call', name='sandbox_exec',
                 arguments={'sandbox': sb.id, 'command': 'sleep 3.5; echo on'})
    assert data_of(complete(ran))['stdout'] == 'on\n'


def test_tasks_of_the_legacy_kind(mcp, sb):
    tools = {t['name']: t for t in mcp.request('tools/list')['result']['tools']}
    assert tools['sandbox_exec']['execution'] == {'taskSupport': 'optional'}
    assert [n for n, t in tools.items() if 'execution' in t] == ['sandbox_exec']
    answer = mcp.request('tools/call', {
        'name': 'sandbox_exec', 'arguments': {'sandbox': sb.id, 'command': 'echo x'}, 'task': {}})
    task_id = answer['result']['task']['taskId']
    result = mcp.request('tasks/result', {'taskId': task_id})['result']
    assert data_of(result)['stdout'] == 'x\n'
    assert mcp.request('tasks/get', {'taskId': task_id})['result']['status'] == 'completed'
    refused = mcp.request('tools/call',
                          {'name': 'sandbox_create', 'arguments': {'pool': 'host'}, 'task': {}})
    assert refused['error']['code'] == -32601


def test_the_end_with_a_task(start):
    """Nothing is left of it (the fixture looks)."""
    mcp = start('--pool', '0')
    sb = mcp.create()
    mcp.request('tools/call', {'name': 'sandbox_exec', 'arguments': {
        'sandbox': sb.id, 'command': 'sleep 1000'}, 'task': {}})
    until(lambda: sb.running('sleep') == 1, what='the sleep')
    assert mcp.close() == 0
