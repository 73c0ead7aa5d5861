"""What sandboxes use: /v1/sandboxes/{id}/usage, /v1/usage, Vitals, /metrics, holt top; held to what
the kernel says in the files of the control groups, read from the host. And what a sandbox runs
into, told apart."""

import itertools
import json
import os

import pytest

import host
from client import until
from rest import Failed, frame
from test_hub_cli import Hub
from test_trees import made, upload

MIB = 1 << 20
NUMBERS = itertools.count(31_000_000)


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    with Hub(me, tmp_path_factory.mktemp('usage'), '--listen', '127.0.0.1:0',
             '--pool', '0') as shared:
        yield shared


@pytest.fixture
def box(hub):
    made = []

    def create(**body):
        made.append(hub.create(**body))
        return made[-1]
    yield create
    for sandbox in made:
        try:
            hub.delete(sandbox)
        except Failed as e:
            assert e.code == 'not_found'


def usage(hub, sandbox):
    return hub.call('GET', f'/v1/sandboxes/{sandbox}/usage')


def sleeper(hub, sandbox):
    """The host's pid of a program that sleeps in it."""
    number = str(next(NUMBERS))
    hub.exec(sandbox, f'sleep {number} > /dev/null 2>&1 &')
    return until(lambda: [p.pid for p in host.with_argument(number) if p.comm == 'sleep'],
                 what='the sleep')[0]


def group_of(pid, controller):
    """The directory of its control group, and whether it is one of version 2;
    None where it has none of ours."""
    with open('/proc/self/mountinfo', encoding='utf-8') as f:
        rows = [line.split() for line in f]
    with open(f'/proc/{pid}/cgroup', encoding='utf-8') as f:
        mine = [line.rstrip('\n').split(':', 2) for line in f]
    for number, names, path in mine:
        for row in rows:
            kind, root, place = (row[row.index('-') + 1], host.unescape(row[3]),
                                 host.unescape(row[4]))
            v2 = kind == 'cgroup2' and number == '0'
            if not v2 and not (kind == 'cgroup' and controller in names.split(',')
                               and controller in row[-1].split(',')):
                continue
            here = os.path.normpath(os.path.join(place, os.path.relpath(path, root)))
            if '/holt-' in here and os.path.exists(
                os.path.join(here, {'memory': 'memory.current' if v2 else 'memory.usage_in_bytes',
                                    'pids': 'pids.current',
                                    'cpuacct': 'cpu.stat' if v2 else 'cpuacct.usage'}[controller])):
                return here, v2
    return None


def read(group, name):
    with open(os.path.join(group, name), encoding='utf-8') as f:
        return f.read()


def cpu_ms(pid):
    group, v2 = group_of(pid, 'cpuacct')
    if v2:
        return int(dict(line.split()
                        for line in read(group, 'cpu.stat').splitlines())['usage_usec']) / 1000
    return int(read(group, 'cpuacct.usage')) / 1e6


def test_numbers_are_the_kernels(hub, box):
    sandbox = box(limits={'memory_mb': 96, 'disk_mb': 32, 'pids': 50, 'cpus': 0.5}
                  if os.getuid() == 0 else
                  {'memory_mb': 96, 'disk_mb': 32, 'pids': 50})
    pid = sleeper(hub, sandbox)
    hub.exec(sandbox, 'head -c 5000000 /dev/zero > f')
    got = usage(hub, sandbox)
    assert got['sandbox'] == sandbox and got['state'] == 'running'
    assert ((got['memory_limit_bytes'], got['disk_limit_bytes'], got['processes_limit'])
            == (96 * MIB, 32 * MIB, 50))
    assert 5_000_000 <= got['disk_bytes'] < 6_000_000
    memory, pids, cpu = (group_of(pid, name) for name in ('memory', 'pids', 'cpuacct'))
    for has, keys in ((memory, ('memory_bytes',)), (pids, ('processes',)), (cpu, ('cpu_ms',))):
        for key in keys:
            assert (key in got) == (has is not None), (key, got)  # absent, never 0
    if pids:
        # the first one, and the sleep
        assert got['processes'] == int(read(pids[0], 'pids.current')) == 2
    if memory:
        name = 'memory.current' if memory[1] else 'memory.usage_in_bytes'
        until(lambda: usage(hub, sandbox)['memory_bytes'] == int(read(memory[0], name)),
              what='the same number twice')
        assert got['memory_bytes'] >= got['disk_bytes']
        if 'memory_peak_bytes' in got:
            assert got['memory_peak_bytes'] >= got['memory_bytes']
    if cpu:
        # their growth: the group may have counted for the sandbox before
        first, counted, second = cpu_ms(pid), usage(hub, sandbox)['cpu_ms'], cpu_ms(pid)
        hub.exec(sandbox, 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done')
        third, grown, fourth = cpu_ms(pid), usage(hub, sandbox)['cpu_ms'] - counted, cpu_ms(pid)
        assert third - second - 0.001 <= grown <= fourth - first + 0.001 and grown > 0


def test_the_time_of_the_one_before_is_not_counted(hub, box):
    """Whose control groups it may have got."""
    first = hub.create()
    if 'cpu_ms' in usage(hub, first):
        until(lambda: hub.exec(first, 'i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done')
              and usage(hub, first)['cpu_ms'] > 1000,
              what='a second of its time')
    hub.delete(first)
    second = box()
    assert usage(hub, second).get('cpu_ms', 0) < 500


def test_one_that_was_frozen_holds_nobody(hub, box):
    """Its groups do not stay for the next one, as others' may."""
    first = hub.create()
    group = group_of(sleeper(hub, first), 'pids')
    hub.post('/v1/pause', sandbox=first)
    hub.delete(first)
    until(lambda: not group or not os.path.exists(group[0]), what='its group removed')
    for _ in range(3):
        assert hub.exec(box(), 'echo here')['stdout'] == 'here\n'


def test_files_are_counted_across_forks(hub, box):
    """What a fork stands on is its own, too."""
    sandbox = box(limits={'disk_mb': 32})
    hub.exec(sandbox, 'head -c 4000000 /dev/zero > f')
    fork = hub.post(f'/v1/sandboxes/{sandbox}/fork', count=1)
    child = fork['sandboxes'][0]['id'] if 'sandboxes' in fork else fork['id']
    for one in (sandbox, child):
        assert 4_000_000 <= usage(hub, one)['disk_bytes'] < 5_000_000
    hub.exec(child, 'head -c 2000000 /dev/zero > g')
    assert 6_000_000 <= usage(hub, child)['disk_bytes'] < 7_000_000
    assert usage(hub, sandbox)['disk_bytes'] < 5_000_000
    hub.delete(child)


def test_what_went_through(hub, box):
    sandbox = box()
    before = usage(hub, sandbox)
    assert ((before['execs'], before['execs_running'], before['bytes_in'], before['bytes_out'])
            == (0, 0, 0, 0))
    hub.post('/v1/files/write', sandbox=sandbox, path='f', content='x' * 1000)
    hub.exec(sandbox, 'cat > /dev/null; head -c 5000 /dev/zero; head -c 300 /dev/zero >&2',
             stdin='y' * 70)
    hub.post('/v1/files/read', sandbox=sandbox, path='f')
    after = usage(hub, sandbox)
    assert (after['execs'], after['execs_running']) == (1, 0)
    assert (after['bytes_in'], after['bytes_out']) == (1070, 6300)
    with hub.wire() as wire:
        body = json.dumps({'sandbox': sandbox, 'command': 'sleep 1000'})
        wire.send(hub.request('POST', '/v1/exec', body=body))
        until(lambda: usage(hub, sandbox)['execs_running'] == 1, what='it runs')
    until(lambda: usage(hub, sandbox)['execs_running'] == 0, what='it has ended with its client')
    assert usage(hub, sandbox)['execs'] == 2 and usage(hub, sandbox)['age_ms'] >= after['age_ms']


def test_states(hub, box):
    sandbox = box()
    hub.post('/v1/pause', sandbox=sandbox)
    paused = usage(hub, sandbox)
    assert paused['state'] == 'paused' and paused['disk_bytes'] >= 0
    assert sandbox in [s['sandbox'] for s in hub.call('GET', '/v1/usage')['sandboxes']]
    hub.post('/v1/resume', sandbox=sandbox)
    hub.delete(sandbox)
    for name in (sandbox, 'nobody'):
        with pytest.raises(Failed) as e:
            usage(hub, name)
        assert (e.value.status, e.value.code) == (404, 'not_found')
    assert sandbox not in [s['sandbox'] for s in hub.call('GET', '/v1/usage')['sandboxes']]


def test_to_be_looked_at_is_no_use(hub, box):
    """It ends as idle while somebody looks at it all the time."""
    sandbox = box(idle_seconds=1)

    def over():
        try:
            usage(hub, sandbox)
        except Failed as e:
            return e.code
        return None
    until(lambda: over() == 'idle_timeout', what='its end')
    for path, body in (('exec', {'command': 'true'}), ('pause', {}),
                       ('set_timeout', {'timeout_seconds': 9}), ('files/list', {'path': '.'})):
        with pytest.raises(Failed) as refused:
            hub.post(f'/v1/{path}', sandbox=sandbox, **body)
        assert (refused.value.status, refused.value.code) == (410, 'idle_timeout'), path
        assert refused.value.error['context']['sandbox'] == sandbox


def test_sums(hub, box):
    first = hub.metrics()
    sandbox = box()
    hub.exec(sandbox, 'head -c 1000 /dev/zero')
    second = hub.metrics()
    assert second['holt_execs_total'] == first['holt_execs_total'] + 1
    assert (second['holt_sandbox_output_bytes_total'] == first['holt_sandbox_output_bytes_total']
            + 1000)
    if 'memory_bytes' in usage(hub, sandbox):
        assert second['holt_sandboxes_memory_bytes'] > 0 and second['holt_sandboxes_processes'] >= 1
    if 'cpu_ms' in usage(hub, sandbox):
        assert second['holt_sandboxes_cpu_seconds_total'] > 0
    assert not [name for name in second if sandbox in name]


# ---- Vitals ------------------------------------------------------------------------------------


def test_vitals(hub, box):
    sandbox = box(limits={'memory_mb': 64, 'disk_mb': 16})
    with pytest.raises(Failed) as e:
        hub.stream('Vitals', sandbox, {'intervalSeconds': 1}, fields=['Connect-Timeout-Ms: 8000'])
    assert e.value.code == 'deadline_exceeded'
    samples = e.value.messages
    assert len(samples) >= 2 and 'cpuPercent' not in samples[0]
    for s in samples:
        assert (s['memTotalBytes'] == 64 * MIB and s['diskTotalBytes'] == 16 * MIB
                and 'diskUsedBytes' in s)
    if 'cpu_ms' in usage(hub, sandbox):
        assert all(s['cpuPercent'] >= 0 for s in samples[1:])


def test_vitals_end_with_their_sandbox(hub, box):
    sandbox = box()
    with hub.wire() as wire:
        body = frame({})
        wire.send(hub.request('POST', '/sandbox.v1.Sandbox/Vitals', fields=[
            'Content-Type: application/connect+json', f'X-Sandbox-Id: {sandbox}',
            f'Content-Length: {len(body)}']).encode() + body)
        assert wire.head()[0] == 200 and b'sampledAtUnix' in wire.chunk()
        hub.delete(sandbox)
        assert b'not_found' in b''.join(iter(wire.chunk, b''))
    with pytest.raises(Failed) as e:
        hub.stream('Vitals', 'nobody', {})
    assert e.value.code == 'not_found'


def test_a_limit_that_is_not_held_is_not_shown(who, tmp_path):
    """A user without control groups: what is limited for each process is no limit of all."""
    hub = Hub(who, f'{who.work}/unheld', '--listen', '127.0.0.1:0', '--pool', '0')
    try:
        up = who.run('up', '-m', '64M', '-n', 'box', env=hub.env)
        assert up.returncode == 0, up
        made = hub.call('GET', '/v1/sandboxes/box')
        held = made['limits']['enforced_by'] != 'rlimit'
        assert (b'holds for each process' in up.stderr) != held
        assert ('memory_limit_bytes' in usage(hub, 'box')) == held
        row, = (line for line in hub.ok('top').decode().splitlines() if line.startswith('box'))
        assert ('64.0' in row) == held, row
        hub.delete('box')
        assert hub.end() == 0, hub.said()
    finally:
        hub.kill()


# ---- top ---------------------------------------------------------------------------------------


def test_top(hub, box):
    sandbox = box(limits={'memory_mb': 64, 'disk_mb': 16, 'pids': 77})
    lines = hub.ok('top').decode().splitlines()
    assert lines[0].split()[:2] == ['NAME', 'STATE']
    row, = (line.split() for line in lines if line.startswith(sandbox))
    assert row[1] == 'running' and '77' in row and '64.0' in row and '16.0' in row
    one, = hub.json('top', sandbox)
    assert one['sandbox'] == sandbox and one['memory_limit_bytes'] == 64 * MIB
    assert ([line.split()[0] for line in hub.ok('top', sandbox).decode().splitlines()]
            == ['NAME', sandbox])
    hub.fails(125, 'holt ls', 'top', 'nobody')
    hub.fails(2, '--evry', 'top', '--evry', '1')


def test_top_of_two_hundred(hub, box):
    """In pages, of which each is one question to the warden;
    and none of them fails for want of sandboxes."""
    first = box(limits={'memory_mb': 16, 'disk_mb': 1})
    made = [first]
    for _ in range(4):
        made += [s['id'] for s in hub.post(f'/v1/sandboxes/{first}/fork', count=50)['sandboxes']]
    try:
        seen = [s['sandbox'] for s in hub.json('top')]
        assert set(made) <= set(seen) and len(seen) == len(set(seen))
        assert [s for s in seen if s in made] == made  # in order of creation
        pages, cursor = [], ''
        while cursor is not None:
            page = hub.call('GET', '/v1/usage?limit=50' + cursor)
            pages += [s['sandbox'] for s in page['sandboxes']]
            cursor = '&cursor=' + page['next_cursor'] if 'next_cursor' in page else None
        assert pages == seen
        assert len(hub.ok('top').decode().splitlines()) == 1 + len(seen)
    finally:
        hub.ok('down', *made)


# ---- what it runs into ---------------------------------------------------------------------------


def fails(status, code, call, *arguments, **more):
    with pytest.raises(Failed) as e:
        call(*arguments, **more)
    assert (e.value.status, e.value.code) == (status, code), e.value
    return e.value.error['context']


def test_disk_full_is_told_apart(hub, box, tmp_path):
    sandbox = box(limits={'memory_mb': 64, 'disk_mb': 4})
    fine = hub.exec(sandbox, 'echo > f; exit 3')
    assert ((fine['exit_code'], fine['hit_disk'], fine['hit_memory'], fine['hit_pids'])
            == (3, False, False, False))
    full = hub.exec(sandbox, 'head -c 6000000 /dev/zero > f')
    assert (full['exit_code'] == 1 and full['hit_disk'] and not full['hit_memory']
            and not full['hit_pids'])
    context = fails(429, 'quota_exceeded', hub.post, '/v1/files/write', sandbox=sandbox, path='g',
                    content='x' * 5000)
    assert context['dimension'] == 'disk' and context['sandbox'] == sandbox
    hub.fails(125, 'more --disk', 'fs', 'write', sandbox, 'g', input=b'x' * 5000)
    (tmp_path / 'g').write_bytes(b'x' * 5000)
    os.chmod(tmp_path, 0o755)
    hub.fails(125, 'more --disk', 'cp', str(tmp_path / 'g'), f'{sandbox}:/workspace/g')
    context = fails(429, 'quota_exceeded', upload, hub, sandbox, made(('g', 'x' * 5000)))
    assert context['dimension'] == 'disk' and context['sandbox'] == sandbox
    reply = hub.raw('POST', '/v1/exec/stream', {'sandbox': sandbox, 'command': 'echo x > g'})
    end = json.loads(reply.body.splitlines()[-1])
    assert end['kind'] == 'exit' and end['exit_code'] != 0 and 'disk' in end['error']
    hub.exec(sandbox, 'rm f')
    assert not hub.exec(sandbox, 'echo x > g; exit 1')['hit_disk']


def test_memory_and_pids_are_told_apart(hub, box):
    sandbox = box(limits={'memory_mb': 64, 'disk_mb': 32, 'pids': 8})
    if 'processes' in usage(hub, sandbox):  # by control groups
        hungry = hub.exec(sandbox, 'x=$(head -c 200000000 /dev/zero | tr "\\0" x); echo ${#x}')
        assert hungry['hit_memory'] and not hungry['hit_disk']
        many = hub.exec(sandbox, 'for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 > '
                        '/dev/null 2>&1 & done; exit 1')
        assert many['hit_pids'] and not many['hit_disk'] and not many['hit_memory']
    running = []
    try:
        for _ in range(9):
            wire = hub.wire()
            running.append(wire)
            wire.send(hub.request('POST', '/v1/exec', body=json.dumps(
                {'sandbox': sandbox, 'command': 'sleep', 'args': ['1000']})))
        error = until(lambda: refused(hub, sandbox), what='no process to spare')
        assert error['context']['dimension'] == 'pids'
        hub.fails(125, 'more --pids', 'exec', sandbox, '--', 'true')
    finally:
        for wire in running:
            wire.close()


def refused(hub, sandbox):
    status, answer = hub.asked('POST', '/v1/exec',
                               {'sandbox': sandbox, 'command': 'true', 'args': []})
    return answer['error'] if status == 429 else None


def test_wall_is_told_apart(hub, box):
    context = fails(504, 'exec_timeout', hub.exec, box(), 'sleep 1000', timeout=1)
    assert context['dimension'] == 'wall' and context['timeout_s'] == 1
