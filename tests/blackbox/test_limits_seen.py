"""A sandbox's limits as programs in it see them: by the real runtimes, and in the files that others
would read. What is not seen is in docs/sandboxes.md."""

import json
import os
import shutil

import pytest

from client import until
from test_readopt import begin, kill  # noqa: F401

pytestmark = pytest.mark.rights

MIB = 1 << 20
MACHINE = len(os.sched_getaffinity(0))
NODE = """
const os = require('os');
console.log(JSON.stringify({
    heap: require('v8').getHeapStatistics().heap_size_limit, total: os.totalmem(),
    constrained: process.constrainedMemory ? process.constrainedMemory() : 0,
    cpus: os.cpus().length}))
"""
PYTHON = """
import json, os
print(json.dumps([os.cpu_count(), len(os.sched_getaffinity(0)), os.sysconf('SC_NPROCESSORS_ONLN')]))
"""

# As Go, .NET and Java find the files: where a tree of version 2 is mounted.
# As Java does it: trees of version 1 where all of these are, else that of version 2.
MOUNTED = """
import json, os
lines = [line.split() for line in open('/proc/self/mountinfo')]
trees = {name: (line[3], line[4]) for line in reversed(lines)
         if line[line.index('-') + 1] == 'cgroup' for name in line[-1].split(',')}
(two,) = [(line[3], line[4]) for line in lines if line[line.index('-') + 1] == 'cgroup2'] or [None]
own = {name: (number, path.strip()) for number, names, path in
       (line.split(':') for line in open('/proc/self/cgroup')) for name in names.split(',')}
known = {line.split()[0]: line.split()[1] for line in open('/proc/cgroups')}
version = 1 if {'memory', 'cpu', 'cpuacct', 'cpuset'} <= set(trees) else 2
assert version == 1 or two, lines
for name in ('memory', 'cpu'):
    number, path = own[name if version == 1 else '']
    root, _ = trees[name] if version == 1 else two
    assert root == path == '/' and known[name] == number, (name, root, path, known, own)
read = lambda tree, name: open(f'{tree[1]}/{name}').read().split()
print(json.dumps({
    'limits': [read(trees['memory'], 'memory.limit_in_bytes'),
               read(trees['cpu'], 'cpu.cfs_quota_us') + read(trees['cpu'], 'cpu.cfs_period_us')]
              if version == 1 else [read(two, 'memory.max'), read(two, 'cpu.max')],
    'files': sorted(name for _, _, names in os.walk('/sys/fs/cgroup') for name in names)}))
"""

fewer = pytest.mark.skipif(MACHINE < 2, reason='no CPU limit is below one processor')


def cat(sandbox, *paths):
    return sandbox.sh('cat ' + ' '.join(paths)).split()


def free(sandbox):
    """Total memory, and what of it is free."""
    words = sandbox.sh('free -b').splitlines()[1].split()
    return int(words[1]), int(words[3])


def node(sandbox):
    got = sandbox.argv(shutil.which('node'), '-e', NODE, timeout_seconds=60)
    assert got['exit_code'] == 0, got
    return json.loads(got['stdout'])


def meminfo(sandbox):
    rows = [line.split() for line in sandbox.sh('cat /proc/meminfo').splitlines()]
    assert all(row[0].endswith(':') and row[2:] == ['kB'] for row in rows), rows
    return {row[0][:-1]: int(row[1]) * 1024 for row in rows}


@pytest.fixture
def limited(box, driver):
    """A sandbox with one processor of several."""
    if driver == 'rlimit':
        pytest.skip('no share of the processors can be had here')
    return box(cpus=1, memory_mb=256)


@pytest.mark.parametrize('limits', [{}, {'memory_mb': 64}, {'memory_mb': 300, 'disk_mb': 8}])
def test_memory(box, limits):
    """Also of a sandbox of the pool, which was made with other limits."""
    sandbox = until(lambda: next((s for s in [box(**limits)]
                                  if s.info['from_pool'] or s.info['limits']['enforced_by'] ==
                                  'rlimit'), None), what='a ready sandbox')
    memory = limits.get('memory_mb', 1024) * MIB
    assert free(sandbox) == (memory, memory)
    seen = meminfo(sandbox)
    assert seen['MemTotal'] == seen['MemAvailable'] == memory and seen['SwapTotal'] == 0
    group = '/sys/fs/cgroup'
    assert cat(sandbox, f'{group}/memory.max', f'{group}/memory/memory.limit_in_bytes') == \
        [str(memory)] * 2


def test_no_more_memory_than_the_machine_has(box):
    machine = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    assert free(box(memory_mb=1 << 20))[0] <= machine


def test_node(box):
    for memory_mb in (256, 1024):
        sandbox = box(memory_mb=memory_mb)
        got = node(sandbox)
        memory = memory_mb * MIB
        assert got['total'] == memory and got['heap'] <= max(memory / 2, 256 * MIB) * 1.1, got
        assert got['constrained'] in (0, memory), got


def has_groups():
    with open('/proc/self/mountinfo', encoding='utf-8') as f:
        return ' - cgroup' in f.read()


@pytest.mark.skipif(not has_groups(), reason='no control groups are mounted here')
def test_runtimes_that_look_for_a_mounted_tree(box):
    """They find one, and in it nothing but the limits: the kernel's own files are hidden."""
    for sandbox, memory_mb in ((box(memory_mb=128), 128), (box(), 1024)):
        got = sandbox.argv('/usr/bin/python3', '-c', MOUNTED)
        assert got['exit_code'] == 0, got
        found = json.loads(got['stdout'])
        memory, (quota, period) = found['limits']
        assert memory == [str(memory_mb * MIB)]
        assert quota in ('max', '-1') and period == '100000'
        assert found['files'] == ['cgroup.controllers', 'cpu.cfs_period_us', 'cpu.cfs_quota_us',
                                  'cpu.max', 'memory.high', 'memory.limit_in_bytes', 'memory.max',
                                  'memory.soft_limit_in_bytes']


@pytest.mark.skipif(not shutil.which('java') or not has_groups(), reason='no Java here')
def test_java(box, driver):
    if driver == 'rlimit':
        pytest.skip('Java reserves more than a limit of memory for each process lets it')
    got = box(memory_mb=512).exec('java -XX:+PrintFlagsFinal -version', timeout_seconds=120)
    heap = next(line for line in got['stdout'].splitlines() if ' MaxHeapSize ' in line)
    assert int(heap.split()[3]) == 512 * MIB / 4, heap


@fewer
def test_processors(limited):
    assert limited.sh('nproc') == '1\n'
    assert json.loads(limited.argv('/usr/bin/python3', '-c', PYTHON)['stdout']) == [1, 1, 1]
    assert node(limited)['cpus'] == 1
    assert limited.sh('grep -c ^processor /proc/cpuinfo') == '1\n'
    assert limited.sh('grep -c "^cpu[0-9]" /proc/stat') == '1\n'
    assert '"CPU(s):", "data": "1"' in ' '.join(limited.sh('lscpu -J').replace('"field":', '')
                                                .replace(',\n', ', ').split())


@fewer
def test_a_share_of_processors_is_rounded_up(limited, box):
    for cpus, quota in ((0.25, 25000), (1, 100000), (MACHINE - 0.5, MACHINE * 100000 - 50000)):
        sandbox = box(cpus=cpus)
        whole = -(-cpus // 1)
        assert int(sandbox.sh('nproc')) == whole
        group = '/sys/fs/cgroup'
        seen = cat(sandbox, f'{group}/cpu.max', f'{group}/cpu/cpu.cfs_quota_us',
                   f'{group}/cpu/cpu.cfs_period_us')
        assert seen == [str(quota), '100000', str(quota), '100000']


def test_all_processors(box):
    """Where there is no limit below the machine's, nothing hides what it has."""
    sandbox = box()
    assert int(sandbox.sh('nproc')) == MACHINE
    assert json.loads(sandbox.argv('/usr/bin/python3', '-c', PYTHON)['stdout']) == [MACHINE] * 3
    assert cat(sandbox, '/sys/fs/cgroup/cpu.max', '/sys/fs/cgroup/cpu/cpu.cfs_quota_us') == \
        ['max', '100000', '-1']
    assert ' 0 0 0 0 0 0\n' not in sandbox.sh('grep "^cpu " /proc/stat')


@fewer
def test_programs_that_read_the_files_work(limited):
    """Whatever they print of what is not told: it is no nonsense, and no failure."""
    with open('/proc/stat', encoding='ascii') as f:
        booted = next(line for line in f if line.startswith('btime'))
    assert limited.sh('grep btime /proc/stat') == booted
    for line in ('top -bn1', 'vmstat', 'ps aux', 'uptime', 'lscpu'):
        assert limited.exec(line)['exit_code'] == 0, line
    assert limited.sh('vmstat | tail -n 1').split()[14] == '100'  # idle
    assert limited.sh('ps -o lstart= -p $$') == limited.sh('ps -o lstart= -p $$')


@fewer
def test_sandboxes_are_spread_over_the_processors(limited, box):
    places = {limited.sh('taskset -cp $$').split()[-1]}
    for _ in range(2 * MACHINE):
        places.add(box(cpus=1).sh('taskset -cp $$').split()[-1])
    assert len(places) == MACHINE, places


@fewer
def test_hubs_are_spread_over_the_processors(limited, who):
    """Each run has a hub of its own."""
    places = set()
    for _ in range(30 * MACHINE):
        done = who.run('run', '--cpus', '1', '--', 'sh', '-c', 'taskset -cp $$')
        assert done.returncode == 0, done
        places.add(done.stdout.split()[-1])
        if len(places) == MACHINE:
            return
    assert False, places


@fewer
def test_programs_may_leave_their_processors_and_gain_nothing(limited):
    burn = 'timeout 2 sh -c "while :; do :; done" & ' * 2 * MACHINE + 'wait'
    got = limited.exec(f"taskset -c 0-{MACHINE - 1} sh -c '{burn}'", timeout_seconds=60)
    assert got['cpu_ms'] <= got['wall_ms'] * 1.3, got


def test_a_fork_sees_the_same(box, driver):
    cpus = {} if driver == 'rlimit' or MACHINE < 2 else {'cpus': 1}
    sandbox = box(memory_mb=128, **cpus)
    sandbox.sh('echo mine > f')
    busy = sandbox.start('sleep 1000')
    until(lambda: sandbox.running('sleep') == 1)
    forks = sandbox.fork(2)
    sandbox.sh('pkill sleep')
    sandbox.client.result(busy)
    forks += sandbox.fork(2)  # its root is swapped
    for one in (sandbox, *forks):
        assert free(one)[0] == 128 * MIB
        assert cat(one, '/sys/fs/cgroup/memory.max') == [str(128 * MIB)]
        assert int(one.sh('nproc')) == cpus.get('cpus', MACHINE)


def test_what_slept_sees_the_same(begin):
    hub = begin('--sleep-after', '0.1', '--pool', '0')
    box = hub.create(limits={'memory_mb': 128})
    for _ in range(2):
        until(lambda: hub.metrics()['holt_sandboxes_asleep'] == 1, what='that it sleeps')
        got = hub.exec(box, 'free -b; cat /sys/fs/cgroup/memory.max')['stdout']
        assert got.split()[7] == got.split()[-1] == str(128 * MIB), got


def test_many_kinds_of_limits(box):
    """More than are kept; those that run still see theirs, and come again."""
    first = box(memory_mb=100)
    for memory_mb in range(101, 140):
        box(memory_mb=memory_mb).terminate()
    assert free(first)[0] == 100 * MIB
    for memory_mb in (101, 139, 100):
        sandbox = box(memory_mb=memory_mb)
        assert free(sandbox)[0] == memory_mb * MIB
        assert cat(sandbox, '/sys/fs/cgroup/memory.max') == [str(memory_mb * MIB)]


def test_nothing_of_it_can_be_changed(box):
    sandbox, other = box(memory_mb=222), box(memory_mb=222)
    for line in ('echo 1 >/proc/meminfo', 'echo 1 >/sys/fs/cgroup/memory.max', 'chmod u+w /sys',
                 'rm -f /sys/fs/cgroup/memory.max', 'mkdir /sys/x', 'touch /proc/meminfo',
                 'mv /sys /mnt/sys', 'rmdir /sys'):
        assert sandbox.exec(line)['exit_code'] != 0, line
    assert free(other)[0] == free(sandbox)[0] == 222 * MIB


def test_run(holt):
    done = holt('run', '--memory', '96M', '--', 'free', '-b')
    assert done.returncode == 0 and done.stdout.split()[7] == str(96 * MIB).encode(), done
