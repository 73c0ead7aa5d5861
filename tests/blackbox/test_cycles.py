"""A thousand sandboxes made and ended (soak.py): nothing is left, nothing grows."""

import os
import signal

import pytest

import host
from client import until
from soak import soak

CYCLES = soak(1000)
SANITIZED = 'ASAN_OPTIONS' in os.environ
OBJECTS = ('net_namespace', 'pid_namespace', 'user_namespace', 'mnt_cache')


def cycle(mcp, n, wide=8):
    """n times create, exec, fork at times, terminate; several at once."""
    creates, execs, ends = [], {}, []
    started = done = 0
    while done < n:
        while started < n and started - done < wide:
            creates.append(mcp.start_tool('sandbox_create', pool='host'))
            started += 1
        for call in creates:
            sandbox = mcp.result(call)['sandbox']
            execs[mcp.start_tool('sandbox_exec', sandbox=sandbox, command='echo x > f; '
                                 'sleep 100 >/dev/null 2>&1 &')] = sandbox
        creates = []
        for call, sandbox in execs.items():
            assert mcp.result(call)['exit_code'] == 0
            ends.append(mcp.start_tool('sandbox_terminate', sandbox=sandbox))
        execs = {}
        for call in ends:
            mcp.result(call)
            done += 1
        ends = []
        mcp.arrived.clear()


def weigh(mcp):
    warden = host.program(mcp.pid, 'holt-warden')
    return {'descriptors of the hub': host.descriptors(mcp.pid),
            'descriptors of the warden': host.descriptors(warden),
            'memory of the hub': host.memory(mcp.pid), 'memory of the warden': host.memory(warden),
            'processes': len(host.below(mcp.pid)), 'zombies': len(host.zombies(mcp.pid)),
            'mounts': mounts(warden)}


def mounts(warden, below='/'):
    """What is mounted where the warden keeps it, which nobody else sees; 0 where that is secret."""
    try:
        with open(f'/proc/{warden}/mountinfo', encoding='utf-8') as f:
            return sum(line.split()[4].startswith(below) for line in f)
    except OSError:
        return 0


def layers(warden):
    return mounts(warden, '/l/')


def allowance(kind):
    if kind.startswith('memory'):
        return 1 << 30 if SANITIZED else 1 << 20
    return 0 if kind == 'zombies' else 8


def test_layers_are_removed_without_the_broom(spawn, residue):
    mcp = spawn('--pool', '0')
    warden = host.program(mcp.pid, 'holt-warden')
    cycle(mcp, 20)
    until(lambda: not layers(warden), what='no more layers')
    broom = host.program(warden, 'holt-broom')
    os.kill(broom, signal.SIGKILL)
    until(lambda: broom in [p.pid for p in host.zombies(mcp.pid)], what='the end of the broom')
    cycle(mcp, 20)
    until(lambda: not layers(warden), what='no more layers without the broom')
    assert mcp.close() == 0
    residue.check()


@pytest.mark.parametrize('pool', [['--pool', '0'], ['--pool', '4']], ids=['cold', 'pool'])
def test_a_thousand_cycles(spawn, residue, pool):
    mcp = spawn(*pool)
    cycle(mcp, 100)
    before = weigh(mcp)
    inside = host.Residue(residue.trees, residue.except_for)
    cycle(mcp, CYCLES if pool[1] == '0' else CYCLES // 4)

    def settled():
        after = weigh(mcp)
        return all(after[k] <= before[k] + allowance(k) for k in after)
    until(settled, what=f'no growth over {before}, now {weigh(mcp)},')
    left = {k: v for k, v in inside.left().items()
            if k not in ('processes', 'namespaces', 'cgroups')}
    assert not left
    assert mcp.close() == 0
    residue.check()


def test_the_kernel_keeps_no_objects_of_what_ended(spawn):
    """Namespaces and mounts that only a forgotten descriptor holds are in no list of processes. The
    counts are those of the whole machine, so what grew must grow again to be believed."""
    mcp = spawn('--pool', '0')
    cycle(mcp, 50)
    for _ in range(4):
        before = host.kernel_objects(*OBJECTS)
        if not before:
            pytest.skip('only root sees the objects of the kernel')
        cycle(mcp, 200)
        try:
            until(lambda: all(n < before[k] + 100
                              for k, n in host.kernel_objects(*OBJECTS).items()), timeout=30)
            return
        except TimeoutError:
            pass
    raise AssertionError(f'before {before}, 200 sandboxes later {host.kernel_objects(*OBJECTS)}')


def test_programs_one_after_another(holt, residue):
    for i in range(soak(50, 10)):
        assert holt('run', '--', 'true').returncode == 0, i
    residue.check()


def test_memory_of_what_was_read_and_printed_is_given_back(spawn):
    mcp = spawn('--pool', '0')
    sb = mcp.create()
    sb.sh('head -c 3000000 /dev/zero | tr "\\0" a > f')
    sizes = []
    for _ in range(6):  # the first ones also fill what the threads of the work pool keep
        for _ in range(4):
            sb.content('f')
            sb.exec('cat f', max_output_bytes=2 << 20)
        sizes.append(host.memory(mcp.pid))
    assert sizes[-1] < sizes[2] + (8 << 20), sizes
    until(lambda: host.memory(mcp.pid) < (60 << 20) or SANITIZED, what='memory given back')
