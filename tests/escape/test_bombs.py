"""N7: what uses something up is stopped by a limit with a name, the sandbox lives on, and neither another sandbox nor
the hub itself waits for it."""

import os
import re
import signal
import subprocess
import time

import pytest

import world as worlds
from client import Failed

LIMITS = {'memory_mb': 96, 'disk_mb': 32, 'pids': 64}
CAP = 256  # MiB after which a bomb gives up, so that a hole harms nobody
SMALL = 0.5  # seconds that a call may take longer on two busy processors, on which more than our bombs may run
UNSHARED = 1.5  # the same where no control group shares them out: each process of the bomb counts as much as ours


def rlimits(sandbox):
    return sandbox.info['limits']['enforced_by'] == 'rlimit'


def p99(times):
    return sorted(times)[-1 - len(times) // 100]


class Neighbour:
    """Measures how long a small command in another sandbox takes, and the hub for a ping."""

    def __init__(self, sandbox):
        self.sandbox, self.client = sandbox, sandbox.client
        for _ in range(5):
            self.once()
        self.base = self.measure(25)
        self.more = UNSHARED if rlimits(sandbox) else SMALL

    def once(self):
        begun = time.monotonic()
        assert self.sandbox.argv('true')['exit_code'] == 0
        between = time.monotonic()
        self.client.ping()
        return between - begun, time.monotonic() - between

    def measure(self, n):
        both = [self.once() for _ in range(n)]
        return p99([a for a, _ in both]), p99([b for _, b in both])

    def slower(self, now):
        """What takes too much longer than before; '' for nothing."""
        return '; '.join(f'{what}: p99 {1000 * is_:.1f} ms, was {1000 * was:.1f} ms' for what, was, is_ in zip(
            ('exec in a neighbour', 'ping of the hub'), self.base, now) if is_ >= 2 * was + self.more)


@pytest.fixture
def neighbour(box):
    return Neighbour(box())


@pytest.fixture
def small(box):
    return box(probe=True, **LIMITS)


def explode(sandbox, neighbour, world, *argv, seconds=20):
    """Runs a bomb while a neighbour is measured: how it ended. A machine that others keep busy gets three chances to be
    as quick as before or after."""
    for _ in range(3):
        request = worlds.start(sandbox, worlds.INSIDE, '--bomb', *argv, env=world.told(), timeout_seconds=seconds)
        now = neighbour.measure(30)
        try:
            got = sandbox.client.result(request, seconds + 30)
        except Failed as e:
            got = e.error
        if neighbour.slower(now):
            neighbour.base = tuple(map(max, neighbour.base, neighbour.measure(25)))
        slower = neighbour.slower(now)
        if not slower:
            return got
        sandbox.exec('rm -rf /workspace/fill /dev/shm/fill /workspace/inodes /workspace/d')
    raise AssertionError(slower)


def said(got):
    """The count and the error that a bomb printed."""
    found = re.match(r'(-?\d+) (\w+)\n', got.get('stdout', ''))
    return (int(found.group(1)), found.group(2)) if found else (None, None)


def unbounded_under_rlimits(sandbox):
    if rlimits(sandbox):
        pytest.skip('limits are held by rlimit here, which bounds the memory of each process only; '
                    'holt doctor says how to get control groups')


# ---- processes -----------------------------------------------------------------------------------

@pytest.mark.tries(what='a fork bomb', by='cgroup or rlimit: pids',
                   control='row processes_many')
def test_forks(small, neighbour, world):
    got = explode(small, neighbour, world, 'fork', seconds=2)
    count, error = said(got)
    assert error == 'EAGAIN' and count <= LIMITS['pids'], got
    # as many as may be can be too much for its memory: then that limit ends it before the time does
    assert (got['timed_out'] or got['hit_memory']) and (got['hit_pids'] or rlimits(small)), got
    worlds.healthy(small)


@pytest.mark.tries(what='a fork bomb that goes on in the background', by='cgroup or rlimit: pids')
def test_forks_left(box, neighbour, world):
    """It is what the program left behind, so it goes on; but it says why nothing else starts, and ends at once."""
    sb = box(probe=True, **LIMITS)
    sb.exec(f'{worlds.INSIDE} --bomb fork > /dev/null &', env=world.told())
    try:
        got = sb.exec('true', timeout_seconds=2)
        assert got['exit_code'] == 0 or got['hit_pids'] or rlimits(sb), got
    except Failed as e:
        assert e.code == 'pids_exhausted', e
    assert any(not neighbour.slower(neighbour.measure(10)) for _ in range(3))
    sb.terminate()


@pytest.mark.tries(what='a bomb of threads', by='cgroup or rlimit: pids')
def test_threads(small, neighbour, world):
    got = explode(small, neighbour, world, 'threads')
    count, error = said(got)
    assert error == 'EAGAIN' and count <= LIMITS['pids'] and (got['hit_pids'] or rlimits(small)), got
    worlds.healthy(small)


@pytest.mark.tries(what='more spinning threads than there are processors', by='the kernel\'s scheduler, cgroup: cpu')
def test_spin(small, neighbour, world):
    got = explode(small, neighbour, world, 'spin', 4 * os.cpu_count(), seconds=2)
    assert got['timed_out'], got
    worlds.healthy(small)


# ---- memory --------------------------------------------------------------------------------------

@pytest.mark.tries(what='fill anonymous memory', by='cgroup or rlimit: memory',
                   control='reaches its cap under wide limits')
def test_memory(small, neighbour, world):
    got = explode(small, neighbour, world, 'memory', CAP)
    if rlimits(small):
        assert said(got)[1] == 'ENOMEM', got
    else:
        assert got['hit_memory'] and got['signal'] == 9, got
    worlds.healthy(small)


@pytest.mark.tries(what='fill a memory file (memfd)', by='cgroup: memory',
                   control='reaches its cap under wide limits')
def test_memfd(small, neighbour, world):
    unbounded_under_rlimits(small)
    got = explode(small, neighbour, world, 'memfd', CAP)
    assert got['hit_memory'], got
    worlds.healthy(small)


@pytest.mark.tries(what='fill shared memory, also such that outlives its program', by='cgroup: memory',
                   control='reaches its cap under wide limits')
@pytest.mark.parametrize('kind', ['segments', 'segments_left'])
def test_shared_memory(small, neighbour, world, kind):
    unbounded_under_rlimits(small)
    got = explode(small, neighbour, world, kind, CAP)
    assert got['hit_memory'] or (kind == 'segments_left' and said(got)[1] == 'none'), got
    worlds.healthy(small)


@pytest.mark.tries(what='read more files than there is memory: the page cache',
                   by='cgroup: memory, given back by the kernel')
def test_page_cache(box, neighbour, world):
    sb = box(probe=True, memory_mb=32)
    got = explode(sb, neighbour, world, 'pagecache', 80)
    count, error = said(got)
    assert error == 'none' and count >= 80 and not got['hit_memory'], got
    worlds.healthy(sb)


# ---- files ---------------------------------------------------------------------------------------

@pytest.mark.tries(what='fill the disk', by='size of the tmpfs',
                   control='reaches its cap under wide limits')
@pytest.mark.parametrize('where', ['disk', 'dev_shm'])
def test_disk(small, neighbour, world, where):
    got = explode(small, neighbour, world, where, CAP)
    count, error = said(got)
    assert error == 'ENOSPC' and count <= LIMITS['disk_mb'] and not got['hit_memory'], got
    with pytest.raises(Failed) as e:
        small.write('/workspace/more', 'x' * 200000)
    assert e.value.code == 'disk_full', e.value
    small.sh('rm -f /workspace/fill /dev/shm/fill')
    worlds.healthy(small)


@pytest.mark.tries(what='use up the inodes', by='inodes of the tmpfs')
def test_inodes(small, neighbour, world):
    got = explode(small, neighbour, world, 'inodes')
    assert said(got)[1] == 'ENOSPC' or got['hit_memory'], got
    assert small.exec('rm -rf /workspace/inodes')['exit_code'] == 0
    worlds.healthy(small)


@pytest.mark.tries(what='directories five thousand deep', by='inodes of the tmpfs, no recursion in Holt')
def test_deep_directories(small, neighbour, world):
    got = explode(small, neighbour, world, 'deep', 5000)
    assert said(got)[1] in ('none', 'ENOSPC'), got
    child = small.fork(1)[0]  # what copies or stacks files goes down there too
    worlds.healthy(child)
    child.terminate()
    worlds.healthy(small)


# ---- what is queued in the kernel ----------------------------------------------------------------

@pytest.mark.tries(what='a million descriptors', by='rlimit: files, cgroup: pids and memory')
def test_descriptors(box, neighbour, world):
    sb = box(probe=True, memory_mb=64, pids=16)
    got = explode(sb, neighbour, world, 'descriptors', 1000000)
    count, error = said(got)
    assert got['hit_memory'] or (error in ('EMFILE', 'EAGAIN', 'ENFILE', 'ENOMEM') and count < 1000000), got
    worlds.healthy(sb)


@pytest.mark.tries(what='fill buffers in the kernel: pipes, unix, TCP and UDP sockets', by='cgroup: memory',
                   control='unix: reaches its cap under wide limits')
@pytest.mark.parametrize('kind', ['pipes', 'unix', 'tcp', 'udp'])
def test_buffers(small, neighbour, world, kind):
    unbounded_under_rlimits(small)
    got = explode(small, neighbour, world, kind, CAP)
    count, error = said(got)
    assert got['hit_memory'] or error in ('EMFILE', 'ENOMEM', 'ENOBUFS', 'EPERM', 'EAGAIN'), got
    assert count is None or count <= LIMITS['memory_mb'], f'{count} MiB of buffers beside {LIMITS["memory_mb"]} MiB of memory'
    worlds.healthy(small)


@pytest.mark.parametrize('kind', ['memory', 'memfd', 'segments', 'disk', 'dev_shm', 'unix'])
def test_control(box, world, kind):
    """With wide limits these bombs reach their cap: it is the limit that stops them."""
    sb = box(probe=True, memory_mb=1024, disk_mb=512)
    got = worlds.bomb(sb, world, kind, 128)
    count, error = said(got)
    assert count >= 128 and error == 'none', got


# ---- output --------------------------------------------------------------------------------------

def resident(pid):
    """The most that a process had in memory at any time, in MiB."""
    with open(f'/proc/{pid}/status', encoding='utf-8') as f:
        return int(re.search(r'VmHWM:\s*(\d+)', f.read()).group(1)) // 1024


@pytest.mark.tries(what='ten gigabytes of output, in lines or as one', by='head and tail are kept, the rest is counted')
@pytest.mark.parametrize('kind, mib, seconds', [('lines', 10240, 2), ('line', 1024, 30)])
def test_output(small, neighbour, world, hub, kind, mib, seconds):
    got = explode(small, neighbour, world, kind, mib, seconds=seconds)
    assert got['timed_out'] or got['exit_code'] == 0, got
    assert len(got['stdout']) < 3 << 20 and got['stdout_elided_bytes'] > 100 << 20, got['stdout_elided_bytes']
    assert resident(hub.pid) < 64
    worlds.healthy(small)


@pytest.mark.tries(what='output that the caller of `holt run` does not read', by='the program waits')
def test_slow_reader(who, world, unchanged):
    child = subprocess.Popen(who.argv('run', '--timeout', '30', '--', 'sh', '-c', 'yes; echo ended >&2'), env=who.env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd='/')
    try:
        assert os.read(child.stdout.fileno(), 4)
        time.sleep(1)
        assert resident(child.pid) < 32
    finally:
        child.stdout.close()
    assert child.wait(10) in (125, 128 + signal.SIGPIPE)
    child.stderr.close()


@pytest.mark.tries(what='answers that the client does not read', by='bounded queues')
def test_client_that_reads_nothing(own_hub):
    client = own_hub()
    sb = client.create()
    for _ in range(40):
        sb.start('head -c 900000 /dev/zero | tr "\\0" x')
    time.sleep(2)
    assert resident(client.pid) < 160
    assert sum(1 for _ in range(40) if client.next(60)) == 40
    worlds.healthy(sb)


@pytest.mark.tries(what='arguments and environments that are too large', by='bounded before anything is started')
def test_large_arguments(sb):
    program = {'command': 'true', 'args': []}
    for arguments in ({**program, 'args': ['x' * 2000000]}, {**program, 'args': ['true'] * 5000},
                      {**program, 'args': ['xx'] * 60000}, {**program, 'env': {'A': 'x' * 2000000}},
                      {**program, 'env': {f'A{i}': 'x' for i in range(3000)}}, {**program, 'cwd': '/' + 'x' * 2000000},
                      {'command': 'true ' + 'x' * 2000000}):
        error = sb.fails('sandbox_exec', **arguments)
        assert error['code'] in ('invalid_arguments', 'too_large'), error
    worlds.healthy(sb)


@pytest.mark.tries(what='all bombs of processes and memory at once, in three sandboxes', by='cgroup, rlimit')
def test_together(box, neighbour, world):
    bombed = [box(probe=True, **LIMITS) for _ in range(3)]
    requests = [worlds.start(sb, worlds.INSIDE, '--bomb', *argv, timeout_seconds=2, env=world.told())
                for sb, argv in zip(bombed, (['fork'], ['memory', CAP], ['lines', 10240]))]
    worst = max(neighbour.once()[0] for _ in range(20))
    for sb, request in zip(bombed, requests):
        got = sb.client.result(request, 30)
        if not got['hit_memory'] or not got['hit_pids']:  # else what the bomb left goes on, as test_forks_left has it
            worlds.healthy(sb)
    assert worst < 2 * neighbour.base[0] + UNSHARED, worst
