"""/v1 over real sockets: what each route promises, twice, at the same time,
and to clients that misbehave."""

import base64
import json
import shutil
import subprocess
import threading

import pytest

from client import until
from rest import Failed, Rest, b64, fails, lines


@pytest.fixture(scope='module')
def rest(me, tmp_path_factory):
    with Rest(me, tmp_path_factory.mktemp('rest'), '--listen', '127.0.0.1:0',
              '--pool', '2') as shared:
        yield shared


@pytest.fixture
def sb(rest):
    sandbox = rest.create()
    yield sandbox
    rest.sweep(sandbox)


def too_large(rest, path, size):
    reply = rest.announced(path, size)
    assert (reply.status, json.loads(reply.body)['error']['code']) == (413, 'body_too_large')


# ---- the lifecycle

def test_health_is_open_and_counts(rest, sb):
    health = rest.call('GET', '/v1/health', token=None)
    assert health['status'] == 'ok' and health['mock'] is False and health['templates'] == 1
    assert health['sandboxes'] >= 1 and health['tier'] == 'namespace'


def test_templates(rest):
    assert [t['id'] for t in rest.call('GET', '/v1/templates')] == ['host']
    made = rest.post('/v1/templates', id='host')
    assert (made['id'] == 'host' and made['ready'] is True
            and made['network'] == {'block': True, 'egress': 'deny', 'mode': 'none',
                                    'allow': []})
    fails(501, 'unsupported', rest.post, '/v1/templates', id='other')
    fails(501, 'unsupported', rest.post, '/v1/templates', id='host', workload={'command': ['true']})


def test_life(rest):
    made = rest.post('/v1/fork', template='host', id='life-1')
    assert made['id'] == 'life-1' and made['template_id'] == 'host' and made['fork_time_ms'] > 0
    assert (made['endpoint'] == 'http://localhost' and made['state'] == 'running'
            and made['tier'] == 'namespace')
    seen = rest.call('GET', '/v1/sandboxes/life-1')
    assert {k: v for k, v in made.items() if k != 'fork_time_ms'} == seen
    assert seen in rest.call('GET', '/v1/sandboxes')
    error = fails(409, 'conflict', rest.post, '/v1/fork', template='host', id='life-1')
    assert error['context'] == {'sandbox': 'life-1'}
    assert rest.exec('life-1', 'echo here')['stdout'] == 'here\n'
    assert rest.delete('life-1') == {'status': 'terminated', 'id': 'life-1'}
    fails(404, 'not_found', rest.delete, 'life-1')
    fails(404, 'not_found', rest.exec, 'life-1', 'true')
    assert 'life-1' not in [s['id'] for s in rest.call('GET', '/v1/sandboxes')]
    again = rest.post('/v1/fork', template='host', id='life-1')  # the name is free again
    assert again['generation'] == made['generation'] + 1
    rest.delete('life-1')


def test_create_with_all(rest):
    made = rest.post('/v1/sandboxes', template='host',
                     limits={'memory_mb': 256, 'disk_mb': 64, 'pids': 64},
                     env={'GREETING': 'hello'}, cwd='/tmp', timeout_seconds=600, idle_seconds=300)
    assert made['limits'].pop('enforced_by') in ('cgroup2', 'cgroup1', 'rlimit')
    assert made['limits'] == {'memory_mb': 256, 'disk_mb': 64, 'pids': 64}
    assert (made['timeout_seconds'] == 600 and made['idle_seconds'] == 300
            and made['deadline_unix'] > 0)
    assert rest.exec(made['id'], 'pwd; echo $GREETING')['stdout'] == '/tmp\nhello\n'
    rest.delete(made['id'])


@pytest.mark.parametrize('body, code, says', [
    ({'template': 'nope'}, (404, 'not_found'), 'nope'),
    ({'id': '-x'}, (400, 'invalid_input'), 'id'),
    ({'id': 'a b'}, (400, 'invalid_input'), 'id'),
    ({'id': 'x' * 65}, (400, 'invalid_input'), 'id'),
    ({'id': '../x'}, (400, 'invalid_input'), 'id'),
    ({'network': {'egress': 'allow'}}, (400, 'invalid_input'), 'network.egress'),
    ({'network': {'allow_domains': ['http://x']}}, (400, 'invalid_input'), 'network.allow_domains'),
    ({'network': {'allow_cidrs': ['10.0.0.1/8']}}, (400, 'invalid_input'), 'network.allow_cidrs'),
    ({'network': {'allow_domains': ['example.com']}}, (403, 'forbidden'), 'example.com'),
    ({'network': {'allow_cidrs': ['10.0.0.0/8']}}, (403, 'forbidden'), '10.0.0.0/8'),
    ({'network': {'inbound': 'allow'}}, (400, 'invalid_input'), 'network.inbound'),
    ({'network': {'inbound_cidrs': ['::/0']}}, (400, 'invalid_input'), 'network.inbound_cidrs'),
    ({'limits': {'cpus': 0.001}}, (400, 'invalid_input'), 'cpus'),
    ({'limits': {'memory_mb': 1}}, (400, 'invalid_input'), 'memory'),
    ({'env': {'': 'x'}}, (400, 'invalid_input'), 'env'),
    ({'env': {'a=b': 'x'}}, (400, 'invalid_input'), 'env'),
    ({'cwd': 'a\0b'}, (400, 'invalid_input'), 'cwd'),
])
def test_create_refuses(rest, body, code, says):
    before = rest.call('GET', '/v1/health')['sandboxes']
    assert says in fails(*code, rest.create, **body)['cause']
    assert rest.call('GET', '/v1/health')['sandboxes'] == before


def test_network_none_is_well(rest):
    rest.delete(rest.create(network={'block': True, 'egress': 'deny', 'allow_domains': []}))


def test_one_id_at_the_same_time(rest):
    """Of many that want one name, one gets it."""
    got = []

    def want():
        got.append(rest.asked('POST', '/v1/fork', {'template': 'host', 'id': 'race'}))
    threads = [threading.Thread(target=want) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(status for status, _ in got) == [200] + [409] * 7, got
    rest.delete('race')


def test_forks(rest, sb):
    rest.post('/v1/files/write', sandbox=sb, path='f', content='old')
    one = rest.call('POST', f'/v1/sandboxes/{sb}/fork',
                    {'id': 'child', 'pause_source': False, 'template': 'any'})
    assert one['id'] == 'child' and one['source'] == sb
    many = rest.call('POST', f'/v1/sandboxes/{sb}/fork', {'count': 3})['sandboxes']
    named = rest.call('POST', f'/v1/sandboxes/{sb}/fork', {'ids': ['kid-1', 'kid-2']})['sandboxes']
    assert len({s['id'] for s in many}) == 3 and [s['id'] for s in named] == ['kid-1', 'kid-2']
    rest.post('/v1/files/write', sandbox=sb, path='f', content='new')
    for child in [one, *many, *named]:
        assert rest.post('/v1/files/read', sandbox=child['id'], path='f')['content'] == 'old'
    # All or none: one of the names is taken.
    count = rest.call('GET', '/v1/health')['sandboxes']
    fails(409, 'conflict', rest.call, 'POST', f'/v1/sandboxes/{sb}/fork',
          {'ids': ['kid-3', 'kid-2']})
    assert rest.call('GET', '/v1/health')['sandboxes'] == count
    for body in ({'id': 'a', 'count': 2}, {'id': 'a', 'ids': ['b']},
                 {'ids': ['a', 'b'], 'count': 3}, {'count': 0},
                 {'count': 65}):
        fails(400, 'invalid_input', rest.call, 'POST', f'/v1/sandboxes/{sb}/fork', body)
    for child in [one, *many, *named]:
        rest.delete(child['id'])
    fails(404, 'not_found', rest.call, 'POST', '/v1/sandboxes/nobody/fork', {})


def test_a_fork_leaves_its_source_as_it_was(rest, sb):
    """pause_source: it stands still for the copy, and runs on,
    as clients that always ask for it expect."""
    rest.exec(sb, 'while :; do date +%s%N > t; sleep 0.01; done >/dev/null 2>&1 & echo')
    child = rest.call('POST', f'/v1/sandboxes/{sb}/fork', {'pause_source': True})
    assert child['state'] == 'running' == rest.call('GET', f'/v1/sandboxes/{sb}')['state']
    before = rest.exec(sb, 'cat t')['stdout']
    until(lambda: rest.exec(sb, 'cat t')['stdout'] != before, what='the loop goes on')
    rest.post('/v1/pause', sandbox=sb)
    other = rest.call('POST', f'/v1/sandboxes/{sb}/fork', {'pause_source': True})
    assert rest.call('GET', f'/v1/sandboxes/{sb}')['state'] == 'paused'
    rest.post('/v1/resume', sandbox=sb)
    for one in (child, other):
        rest.delete(one['id'])


def test_pages(rest):
    mine = [rest.create() for _ in range(5)]
    seen, cursor = [], None
    while True:
        page = rest.call('GET', '/v1/sandboxes?limit=2' + (f'&cursor={cursor}' if cursor else ''))
        assert len(page['sandboxes']) <= 2
        seen += [s['id'] for s in page['sandboxes']]
        cursor = page.get('next_cursor')
        if not cursor:
            break
    assert [s for s in seen if s in mine] == mine and len(set(seen)) == len(seen)
    assert isinstance(rest.call('GET', '/v1/sandboxes?state=running'), list)
    assert rest.call('GET', '/v1/sandboxes?state=cold') == []
    for query in ('limit=0', 'limit=1001', 'limit=x', 'limit=01', 'limit=', 'limit=1&limit=2',
                  'cursor=', 'cursor=zz', 'cursor=00000000000000001', 'cursor=000000000000000G',
                  'state=happy', 'other=1', 'limit=%ff'):
        fails(400, 'invalid_input', rest.call, 'GET', f'/v1/sandboxes?{query}')
    for sandbox in mine:
        rest.delete(sandbox)


def test_set_timeout(rest, sb):
    answer = rest.post('/v1/set_timeout', sandbox=sb, timeout_seconds=3600)
    assert answer['status'] == 'ok' and answer['timeout_seconds'] == 3600
    assert rest.call('GET', f'/v1/sandboxes/{sb}')['deadline_unix'] == answer['deadline_unix']
    error = fails(400, 'timeout_too_large', rest.post, '/v1/set_timeout', sandbox=sb,
                  timeout_seconds=2592001)
    assert error['context'] == {'sandbox': sb, 'requested_s': 2592001, 'max_timeout_s': 2592000}
    fails(400, 'invalid_input', rest.post, '/v1/set_timeout', sandbox=sb, timeout_seconds=0)
    fails(404, 'not_found', rest.post, '/v1/set_timeout', sandbox='nobody', timeout_seconds=1)


def test_pause(rest, sb):
    rest.exec(sb, 'while :; do date +%s%N > t; sleep 0.01; done >/dev/null 2>&1 & echo')
    assert rest.post('/v1/pause', sandbox=sb) == {'status': 'paused'} == rest.post('/v1/pause',
                                                                                   sandbox=sb)
    assert rest.call('GET', f'/v1/sandboxes/{sb}')['state'] == 'paused'
    error = fails(409, 'conflict', rest.exec, sb, 'true')
    assert 'paused' in error['cause'] and error['context'] == {'sandbox': sb}
    fails(409, 'conflict', rest.post, '/v1/files/read', sandbox=sb, path='t')
    assert (rest.post('/v1/resume', sandbox=sb) == {'status': 'running'}
            == rest.post('/v1/resume', sandbox=sb))
    assert rest.exec(sb, 'cat t')['exit_code'] == 0
    for path in ('/v1/pause', '/v1/resume'):
        fails(404, 'not_found', rest.post, path, sandbox='nobody')


def test_fork_takes_a_sandbox_as_its_template(rest):
    """As mitos' sandbox_fork asks; a template of that name goes first."""
    source = rest.create(id='source', limits={'pids': 77})
    rest.exec(source, 'echo old > f')
    copy = rest.post('/v1/fork', template=source, id='copy')
    assert copy['id'] == 'copy' and copy['source'] == source and copy['state'] == 'running'
    assert rest.exec('copy', 'cat f')['stdout'] == 'old\n' and copy['limits']['pids'] == 77
    rest.exec('copy', 'echo new > f')
    assert rest.exec(source, 'cat f')['stdout'] == 'old\n'
    fails(409, 'conflict', rest.post, '/v1/fork', template=source, id='copy')
    assert 'no_such' in fails(400, 'invalid_input', rest.post, '/v1/fork', template=source,
                              no_such=1)['cause']
    rest.post('/v1/pause', sandbox=source)
    rest.delete(rest.post('/v1/fork', template=source)['id'])
    named = rest.create(id='host')
    rest.exec(named, 'echo old > f')
    made = rest.post('/v1/fork', template='host')['id']
    assert rest.exec(made, 'cat f')['exit_code'] == 1
    for sandbox in ('source', 'copy', 'host', made):
        rest.delete(sandbox)
    fails(404, 'not_found', rest.post, '/v1/fork', template='nobody')


# ---- asked twice

def keyed(rest, key, path, body):
    return rest.asked('POST', path, body, fields=[f'Idempotency-Key: {key}'])


def test_a_key_makes_one(rest, sb):
    for n, (path, body, same, other) in enumerate((
            ('/v1/fork', {'template': 'host', 'id': 'once'},
             {'network': {}, 'id': 'once', 'template': 'host'},
             {'template': 'host', 'id': 'twice'}),
            ('/v1/sandboxes', {}, {'template': 'host'}, {'cwd': '/tmp'}),
            (f'/v1/sandboxes/{sb}/fork', {'count': 2}, {'count': 2, 'pause_source': True},
             {'count': 3}))):
        before = rest.call('GET', '/v1/health')['sandboxes']
        first = keyed(rest, f'key-{n}', path, body)
        assert first[0] == 200
        assert [keyed(rest, f'key-{n}', path, body) for _ in range(3)] == [first] * 3
        assert keyed(rest, f'key-{n}', path, same) == first  # the same wish in other words
        made = first[1].get('sandboxes', [first[1]])
        assert rest.call('GET', '/v1/health')['sandboxes'] == before + len(made)
        status, answer = keyed(rest, f'key-{n}', path, other)
        assert (status, answer['error']['code']) == (409, 'conflict')
        for sandbox in made:
            rest.delete(sandbox['id'])
        assert keyed(rest, f'key-{n}', path, body) == first  # also of what is gone
    for key in ('', 'x' * 256, 'a\tb', 'a b'):
        assert keyed(rest, key, '/v1/sandboxes', {})[0] == 400, key


def test_a_failure_lets_its_key_go(rest):
    assert keyed(rest, 'again', '/v1/sandboxes', {'template': 'nope'})[0] == 404
    status, made = keyed(rest, 'again', '/v1/sandboxes', {})
    assert status == 200
    rest.delete(made['id'])


def test_a_key_at_the_same_time(rest):
    """Many with one key: one is made, and each hears of it or that it is under way."""
    before = rest.call('GET', '/v1/health')['sandboxes']
    got = []
    threads = [threading.Thread(target=lambda: got.append(keyed(rest, 'all-at-once',
                                                                '/v1/sandboxes', {})))
               for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    made = {answer['id'] for status, answer in got if status == 200}
    assert len(made) == 1 and {status for status, _ in got} <= {200, 409}, got
    assert rest.call('GET', '/v1/health')['sandboxes'] == before + 1
    rest.delete(made.pop())


def test_a_key_outlives_the_server(me, tmp_path):
    hubs = [Rest(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0')]
    try:
        first = keyed(hubs[0], 'kept', '/v1/fork', {'template': 'host', 'id': 'kept'})
        assert first[0] == 200
        hubs[0].kill()
        hubs.append(Rest(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0'))
        assert keyed(hubs[1], 'kept', '/v1/fork', {'template': 'host', 'id': 'kept'}) == first
        assert keyed(hubs[1], 'kept', '/v1/fork', {'template': 'host', 'id': 'other'})[0] == 409
        assert hubs[1].end() == 0
    finally:
        for hub in hubs:
            hub.kill()


# ---- exec

def test_exec(rest, sb):
    done = rest.exec(sb, 'cat; echo $A; pwd; echo err >&2; exit 7', env={'A': 'b'},
                     working_dir='/tmp', stdin='in\n')
    assert (done['exit_code'], done['stdout'], done['stderr']) == (7, 'in\nb\n/tmp\n', 'err\n')
    assert done['exec_time_ms'] > 0 and done['hit_memory'] is False
    assert rest.exec(sb, 'printf', args=['%s|', 'a b', '$HOME'])['stdout'] == 'a b|$HOME|'
    killed = rest.exec(sb, 'kill -9 $$')
    assert killed['exit_code'] == 137 and killed['signal'] == 9
    binary = rest.exec(sb, r'printf "\377\000"')
    assert base64.b64decode(binary['stdout_base64']) == b'\xff\0'
    cut = rest.exec(sb, 'yes | head -c 100000', max_output_bytes=1024)
    assert cut['stdout_elided_bytes'] > 90000 and len(cut['stdout']) < 2048


def test_a_timeout_tells_what_came(rest, sb):
    """As a failure, with all that an end would have told; the output can be read on by its id."""
    command = 'echo early; echo err >&2; seq 100000; printf "\\377"; exec sleep 100'
    status, answer = rest.asked('POST', '/v1/exec', {
        'sandbox': sb, 'command': command, 'timeout': 4, 'max_output_bytes': 1024})
    assert (status, answer['error']['code']) == (504, 'exec_timeout')
    result = answer['result']
    assert (result['exit_code'], result['stderr']) == (124, 'err\n')
    assert result['stdout'].startswith('early\n1\n') and result['stdout_elided_bytes'] > 100000
    whole = b'early\n' + b''.join(b'%d\n' % i for i in range(1, 100001)) + b'\xff'
    path = f'/v1/sandboxes/{sb}/execs/{result["exec_id"]}'
    assert rest.call('GET', path)['state'] == 'timed_out'
    output = rest.call('GET', f'{path}/output?stream=stdout')
    assert b''.join(base64.b64decode(c['data']) for c in output['chunks']) == whole
    rest_of = rest.call('GET', f'{path}/output?offset={result["elided_offset"]}&stream=stdout')
    got = b''.join(base64.b64decode(c['data']) for c in rest_of['chunks'])
    assert whole[:512].decode() == result['stdout'][:512] and got == whole[512:]


def test_an_exec_with_a_key_runs_once(rest, sb):
    """Also where who asked went away meanwhile; what came of it is told again."""
    def ask(key, command, **more):
        return keyed(rest, key, '/v1/exec', {'sandbox': sb, 'command': command, **more})
    first = ask('ran', r'echo x >> ran; printf "\377" | tee -a /dev/stderr; exit 3')
    assert first[0] == 200 and first[1]['exit_code'] == 3 and first[1]['stdout_base64'] == '/w=='
    assert ask('ran', r'echo x >> ran; printf "\377" | tee -a /dev/stderr; exit 3') == first
    assert ask('ran', 'true')[1]['error']['code'] == 'conflict'
    assert rest.exec(sb, 'cat ran')['stdout'] == 'x\n'
    late = ask('late', 'echo x >> late; sleep 100', timeout=3)
    assert late[0] == 504 and ask('late', 'echo x >> late; sleep 100', timeout=3) == late
    begun = ask('begun', 'echo x >> begun; exec sleep 100', background=True)
    again = ask('begun', 'echo x >> begun; exec sleep 100', background=True)
    assert again == begun and begun[1]['state'] == 'running'
    until(lambda: rest.exec(sb, 'cat begun')['stdout'] == 'x\n', what='it runs')
    rest.call('DELETE', f'/v1/sandboxes/{sb}/execs/{begun[1]["exec_id"]}')
    large = ask('large', 'seq 100000', max_output_bytes=4 << 20)
    assert large[1]['stdout_elided_bytes'] > 400000 and ask('large', 'seq 100000',
                                                            max_output_bytes=4 << 20) == large
    rest.exec(sb, 'mkfifo go')
    body = {'sandbox': sb, 'command': 'echo x >> left; cat go; echo done'}
    with rest.wire() as wire:
        wire.send(rest.request('POST', '/v1/exec', body=json.dumps(body),
                               fields=['Idempotency-Key: left']))
        until(lambda: rest.exec(sb, 'cat left')['stdout'] == 'x\n', what='it runs')
    assert keyed(rest, 'left', '/v1/exec', body)[0] == 409
    rest.exec(sb, 'echo went > go')
    done = until(lambda: (got := keyed(rest, 'left', '/v1/exec', body))[0] == 200 and got)
    assert done[1]['stdout'] == 'went\ndone\n'
    assert rest.exec(sb, 'cat late begun left')['stdout'] == 'x\n' * 3


def test_exec_fails(rest, sb):
    error = fails(504, 'exec_timeout', rest.exec, sb, 'sleep 100', timeout=1)
    assert error['context'] == {'sandbox': sb, 'timeout_s': 1, 'dimension': 'wall'}
    until(lambda: rest.exec(sb, 'pidof sleep')['exit_code'] == 1, what='the end of it')
    error = fails(400, 'timeout_too_large', rest.exec, sb, 'true', timeout=86401)
    assert error['context'] == {'sandbox': sb, 'requested_s': 86401, 'max_timeout_s': 86400}
    error = fails(400, 'exec_failed', rest.exec, sb, 'no-such-program', args=[])
    assert error['context'] == {'sandbox': sb, 'exit_code': 127}
    error = fails(400, 'exec_failed', rest.exec, sb, '/etc/passwd', args=[])
    assert error['context'] == {'sandbox': sb, 'exit_code': 126}
    fails(400, 'exec_failed', rest.exec, sb, 'true', working_dir='/none')
    fails(400, 'exec_failed', rest.exec, sb, '/etc/passwd', args=[])
    assert rest.exec(sb, 'no-such-program')['exit_code'] == 127
    assert rest.exec(sb, 'exit 124')['exit_code'] == 124  # its own
    fails(400, 'invalid_input', rest.exec, sb, '')
    too_large(rest, '/v1/exec', (8 << 20) + 1)


def stream(rest, sandbox, command, **more):
    reply = rest.raw('POST', '/v1/exec/stream', {'sandbox': sandbox, 'command': command, **more})
    assert reply.status == 200 and reply.get('Content-Type') == 'application/x-ndjson', reply
    return lines(reply.body)


def test_code(rest, sb):
    def said(**body):
        reply = rest.raw('POST', '/v1/run_code/stream', {'sandbox': sb, **body})
        assert reply.status == 200 and reply.get('Content-Type') == 'application/x-ndjson', reply
        *chunks, end = lines(reply.body)
        return b''.join(base64.b64decode(f['data']) for f in chunks if f['stream'] == 'stdout'), end
    out, end = said(language='bash', code='echo "$0" "it\'s"; exit 3')
    assert (out, end['kind'], end['exit_code']) == (b"bash it's\n", 'exit', 3)
    assert said(language='bash', code='sleep 100', timeout=1)[1]['code'] == 'exec_timeout'
    for code, more in (('timeout_too_large', {'timeout': 86401}),
                       ('invalid_input', {'language': 'perl'})):
        fails(400, code, rest.call, 'POST', '/v1/run_code/stream',
              {'sandbox': sb, 'code': 'x', **more})
    if rest.exec(sb, 'command -v python3')['exit_code'] == 0:
        assert said(code='import sys\nprint(sys.argv, sys.stdin.read())')[0] == b"['-c'] \n"


def test_processes(rest, sb):
    path, signalled = f'/v1/sandboxes/{sb}/processes', f'/v1/sandboxes/{sb}/signal'
    assert rest.call('GET', path) == {'processes': [], 'truncated': False}
    rest.exec(sb, 'sleep 1234 > /dev/null 2>&1 &')
    wanted = {'command': 'sleep 1234', 'parent': 1, 'state': 'S'}
    [found] = until(lambda: [p for p in rest.call('GET', path)['processes']
                             if wanted.items() <= p.items()], what='sleep')
    assert 0 < found['memory_bytes'] < 1 << 26
    fails(400, 'invalid_input', rest.post, signalled, pid=1, signal=9)
    fails(400, 'invalid_input', rest.post, signalled, pid=found['pid'], signal=65)
    fails(404, 'not_found', rest.post, signalled, pid=4000000, signal=9)
    assert rest.post(signalled, pid=found['pid'], signal=9) == {'status': 'ok'}
    until(lambda: not rest.call('GET', path)['processes'], what='the end')
    rest.post('/v1/pause', sandbox=sb)
    fails(409, 'conflict', rest.call, 'GET', path)
    rest.post('/v1/resume', sandbox=sb)


def test_stream(rest, sb):
    said = stream(rest, sb, 'cat; echo err >&2; exit 3', stdin='in')
    assert (said[-1]['kind'] == 'exit' and said[-1]['exit_code'] == 3
            and not {'error', 'code'} & set(said[-1]))
    assert {(f['stream'], f['data']) for f in said[:-1]} == {('stdout', b64(b'in')),
                                                             ('stderr', b64(b'err\n'))}
    end = stream(rest, sb, 'sleep 100', timeout=1)[-1]
    assert (end['exit_code'], end['code']) == (124, 'exec_timeout') and 'timeout' in end['error']
    end = stream(rest, sb, 'no-such-program', args=[])[-1]
    assert ((end['exit_code'], end['code']) == (-1, 'exec_failed') and 'no-such-program'
            in end['error'])
    assert fails(404, 'not_found', rest.post, '/v1/exec/stream', sandbox='nobody', command='true')


def test_stream_comes_as_it_goes(rest, sb):
    """The first line is there while the command waits for what the client does then."""
    rest.exec(sb, 'mkfifo go')
    with rest.wire() as wire:
        wire.send(rest.request('POST', '/v1/exec/stream', body=json.dumps(
            {'sandbox': sb, 'command': 'echo one; cat go; echo two'})))
        assert wire.head()[0] == 200
        first = json.loads(wire.chunk())
        assert base64.b64decode(first['data']) == b'one\n'
        rest.exec(sb, 'echo now > go')
        rest_of_it = b''
        while True:
            piece = wire.chunk()
            if not piece:
                break
            rest_of_it += piece
    said = lines(rest_of_it)
    assert (b''.join(base64.b64decode(f['data']) for f in said[:-1]) == b'now\ntwo\n'
            and said[-1]['exit_code'] == 0)


def test_who_goes_away_ends_the_command(rest, sb):
    for path in ('/v1/exec/stream', '/v1/exec'):
        with rest.wire() as wire:
            wire.send(rest.request('POST', path,
                                   body=json.dumps({'sandbox': sb, 'command': 'sleep 1000'})))
            until(lambda: rest.exec(sb, 'pidof sleep')['exit_code'] == 0, what='the command')
        until(lambda: rest.exec(sb, 'pidof sleep')['exit_code'] == 1, what='the end of the command')


STEPS = 'i=0; while [ $i -lt 512 ]; do head -c 65536 /dev/zero; i=$((i+1)); echo $i > n; done'


def test_a_slow_reader_holds_the_command(rest, sb):
    """32 MiB that nobody reads: what was made of them is what pipes and queues hold;
    then all of them come."""
    with rest.wire(receive_buffer=16384) as wire:
        wire.send(rest.request('POST', '/v1/exec/stream', body=json.dumps(
            {'sandbox': sb, 'command': STEPS, 'timeout': 100})))
        assert wire.head()[0] == 200

        def steps():
            text = rest.exec(sb, 'cat n 2>/dev/null')['stdout'].strip()
            return int(text) if text else 0
        until(lambda: steps() >= 1, what='the first output')
        same = [0, -1]

        def stands():
            now = steps()
            same[:] = [same[0] + 1, now] if now == same[1] else [0, now]
            return same[0] >= 20
        until(stands, what='a halt')
        assert steps() < 256, 'it went on without a reader'
        got = []
        while True:
            piece = wire.chunk()
            if not piece:
                break
            got.append(piece)
    said = lines(b''.join(got))
    assert said[-1]['exit_code'] == 0
    assert sum(len(base64.b64decode(f['data'])) for f in said[:-1]) == 512 * 65536


def test_streams_end_with_their_sandbox(rest):
    sandbox = rest.create()
    with rest.wire() as wire:
        wire.send(rest.request('POST', '/v1/exec/stream', body=json.dumps(
            {'sandbox': sandbox, 'command': 'echo on; sleep 1000'})))
        assert wire.head()[0] == 200
        assert json.loads(wire.chunk())['kind'] == 'chunk'
        rest.delete(sandbox)
        end = json.loads(wire.chunk())
        assert end['kind'] == 'exit' and end['exit_code'] == -1 and end['error']
        assert wire.chunk() == b''


# ---- files

def test_files(rest, sb):
    def file(what, **body):
        return rest.post(f'/v1/files/{what}', sandbox=sb, **body)
    ok = {'status': 'ok'}
    assert file('write', path='a/b/c.txt', content='grüße\n', mode=0o600) == ok
    read = file('read', path='/workspace/a/b/c.txt')
    assert read == {'content': 'grüße\n', 'size': 8, 'encoding': 'utf-8', 'eof': True}
    assert file('write', path='bin', content=b64(b'\xff\0\1'), encoding='base64') == ok
    fails(400, 'invalid_input', file, 'read', path='bin')
    assert base64.b64decode(file('read', path='bin', encoding='base64')['content']) == b'\xff\0\1'
    part = file('read', path='a/b/c.txt', offset=1, limit=1)
    assert part == {'content': 'r', 'eof': False, 'size': 8, 'encoding': 'utf-8', 'next_offset': 2}
    part = file('read', path='a/b/c.txt', limit=3)  # which cuts ü
    assert part['content'] == 'gr' and part['next_offset'] == 2
    assert file('read', path='a/b/c.txt', offset=2)['content'] == 'üße\n'
    fails(400, 'invalid_input', file, 'read', path='a/b/c.txt', offset=2, limit=1)
    fails(400, 'invalid_input', file, 'read', path='a/b/c.txt', offset=3)
    assert file('mkdir', path='a/d/e') == ok and file('mkdir', path='a/d/e') == ok
    assert ([(e['name'], e['is_dir']) for e in file('list', path='a')['entries']]
            == [('b', True), ('d', True)])
    entry = file('list', path='a/b')['entries'][0]
    assert (entry['name'] == 'c.txt' and entry['size'] == 8 and entry['mode'] == 0o600
            and entry['type'] == 'file')
    stat = file('stat', path='a/b/c.txt')
    assert (stat['path'] == '/workspace/a/b/c.txt' and stat['modified_at'] == entry['modified_at']
            and not stat['is_dir'])
    assert file('move', path='a/b/c.txt', to='a/c.txt') == ok
    error = fails(404, 'not_found', file, 'read', path='a/b/c.txt')
    assert error['context'] == {'sandbox': sb, 'path': '/workspace/a/b/c.txt'}
    fails(409, 'conflict', file, 'remove', path='a')
    assert file('remove', path='a', recursive=True) == ok
    fails(404, 'not_found', file, 'remove', path='a')


@pytest.mark.parametrize('path, status, code', [
    ('/etc/shadow', 404, 'not_found'),
    ('/proc/self/environ', 400, 'file_failed'),
    ('/dev/null', 400, 'file_failed'),
    ('/workspace', 400, 'file_failed'),
    ('../../../../../../etc/hostname/x', 404, 'not_found'),
    ('/usr/../../../proc/1/mem', 400, 'file_failed'),
])
def test_paths_that_are_no_files(rest, sb, path, status, code):
    fails(status, code, rest.post, '/v1/files/read', sandbox=sb, path=path)


def test_large_files(rest, sb):
    rest.exec(sb, 'head -c 5000000 /dev/zero > big')
    fails(413, 'body_too_large', rest.post, '/v1/files/read', sandbox=sb, path='big')
    assert (len(rest.post('/v1/files/read', sandbox=sb, path='big', limit=4 << 20)['content'])
            == 4 << 20)
    content = 'x' * (20 << 20)
    assert rest.post('/v1/files/write', sandbox=sb, path='big', content=content) == {'status': 'ok'}
    assert rest.post('/v1/files/stat', sandbox=sb, path='big')['size'] == len(content)
    too_large(rest, '/v1/files/write', (32 << 20) + 1)


def test_disk_full(rest):
    sandbox = rest.create(limits={'memory_mb': 64, 'disk_mb': 8})
    error = fails(429, 'quota_exceeded', rest.post, '/v1/files/write', sandbox=sandbox, path='f',
                  content='x' * (12 << 20))
    assert error['context']['dimension'] == 'disk'
    rest.delete(sandbox)


@pytest.mark.parametrize('path, named, meant', [
    ('/v1/sandboxes', 'ttl_seconds', 'timeout_seconds'),
    ('/v1/exec', 'timeout_seconds', 'timeout')])
def test_a_name_of_another_door_is_answered_by_this_ones(rest, path, named, meant):
    """Not by one that looks like it, and may mean the end of the sandbox's files."""
    error = fails(400, 'invalid_input', rest.post, path, **{named: 300})
    assert f'"{named}"; did you mean "{meant}"?' in error['cause']
    assert error['pointer'] == f'/{named}'


def test_tokens_are_not_shown(rest, sb):
    reply = rest.raw('POST', '/v1/exec', {'sandbox': sb, rest.token: 1})
    assert reply.status == 400
    with open(rest.log, encoding='utf-8') as f:
        assert rest.token not in f.read()


# ---- a client that is answered while it still sends ----------------------------------------------

FETCH = """
const [url, token, size, chunked] = process.argv.slice(1);
const body = new Uint8Array(size << 20);
const answer = await fetch(url, {
  method: 'POST', duplex: 'half',
  headers: {Authorization: `Bearer ${token}`, 'Content-Type': 'application/json'},
  body: chunked ? new Blob([body]).stream() : body});
console.log(answer.status, await answer.text());
"""


def senders(url, token, mib, chunked):
    more = ['-H', 'Transfer-Encoding: chunked'] if chunked else []
    yield 'curl', ['curl', '-sS', '-w', '%{http_code}', '-H', 'Expect:', '-H',
                   f'Authorization: Bearer {token}', '-H', 'Content-Type: application/json', *more,
                   '--data-binary', '@-', url], bytes(mib << 20)
    if shutil.which('node'):
        yield 'node', ['node', '--input-type=module', '-e', FETCH, url, token, str(mib),
                       *(['chunked'] if chunked else [])], b''


@pytest.mark.parametrize('chunked', [False, True])
def test_refused_while_it_sends(rest, chunked):
    """The answer arrives, and names the limit."""
    host, port = rest.address
    url = f'http://{host}:{port}/v1/files/write'
    for name, argv, body in senders(url, rest.token, 70, chunked):
        made = subprocess.run(argv, input=body, capture_output=True, timeout=100)
        assert made.returncode == 0 and b'413' in made.stdout, (name, made)
        assert b'"cause":"the body is larger than 32 MiB"' in made.stdout, (name, made)
    with rest.wire() as wire:  # sends all before it reads
        wire.send(rest.request('POST', '/v1/files/write', fields=[
            'Content-Type: application/json', f'Content-Length: {70 << 20}']))
        wire.send(bytes(70 << 20))
        assert wire.reply().status == 413
    rest.works()


@pytest.mark.parametrize('over', ['rest', 'cli'])
def test_a_failure_after_the_effect_says_so(rest, sb, me, over):
    """An answer beyond what fits: whoever asked learns that the command ran, and where its output
    is. The verb, which reads it as it comes, has all of it."""
    command = 'echo ran >> ran; for fd in 1 2; do head -c 8000000 /dev/zero >&$fd; done; exit 7'
    if over == 'cli':
        done = me.run('exec', sb, '--', 'sh', '-c', command, env=rest.env)
        assert (done.returncode, len(done.stdout), len(done.stderr)) == (7, 8000000, 8000000)
    else:
        with pytest.raises(Failed) as failed:
            rest.post('/v1/exec', sandbox=sb, command=command, max_output_bytes=8 << 20)
        error = failed.value.error
        exec_id = error['context']['exec_id']
        assert (failed.value.code, error['context']['exit_code']) == ('outcome_unknown', 7), error
        assert not error['retryable'] and 'sandbox.exec was done' in error['cause'], error
        assert exec_id in error['cause'], error
        path = f'/v1/sandboxes/{sb}/execs/{exec_id}'
        assert rest.call('GET', path)['exit_code'] == 7
        page = rest.call('GET', f'{path}/output?offset=15999000')
        assert page['eof'] and page['next_offset'] == 16000000, page
    assert rest.post('/v1/files/read', sandbox=sb, path='ran')['content'] == 'ran\n'
