"""Limits hold, and what was hit is told apart; ttl."""

import base64
import shutil
import subprocess
import time

import pytest

from client import Failed, until

pytestmark = pytest.mark.rights

# Starts processes until it can't, and tells how many there were.
FORK = """python3 -c '
import os, signal
n = 0
try:
    while n < 200:
        if not os.fork():
            signal.pause()
        n += 1
except OSError as e:
    print(n, e.strerror, flush=True)
os.killpg(0, signal.SIGKILL)
'"""
EAT = "python3 -c 'x = []\nwhile True: x.append(bytearray(1 << 20))'"


# Tiny processes that share memory which no process has mapped.
TINY = '''
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
	int fd = memfd_create("x", 0);

	for (int i = 0; i < 8 && fork() > 0; i++)
		;
	for (off_t at = 0; fallocate(fd, 0, at, 4096) == 0; at += 4096)
		;
	for (;;)
		pause();
}
'''


def flags(got):
    return {k for k in ('hit_memory', 'hit_pids', 'timed_out') if got[k]}


def test_defaults_are_told(box):
    limits = box().info['limits']
    assert ((limits['memory_mb'], limits['disk_mb'], limits['pids']) == (1024, 512, 512)
            and 'cpus' not in limits)
    assert limits['enforced_by'] in ('cgroup2', 'cgroup1', 'rlimit')


def test_what_was_asked_for_is_told(box):
    limits = box(memory_mb=64, disk_mb=8, pids=32).info['limits']
    assert (limits['memory_mb'], limits['disk_mb'], limits['pids']) == (64, 8, 32)
    assert box(memory_mb=64).info['limits']['disk_mb'] == 32


@pytest.mark.parametrize('limits', [
    {'memory_mb': 15}, {'memory_mb': 1 << 40}, {'disk_mb': 0}, {'memory_mb': 64, 'disk_mb': 65},
    {'pids': 3}, {'pids': 32769}, {'cpus': 0}, {'cpus': 0.001}, {'cpus': -1}, {'cpus': 1e9},
    {'ttl_seconds': 0}, {'ttl_seconds': 10**9},
])
def test_limits_that_make_no_sense(hub, limits):
    assert hub.fails('sandbox_create', pool='host', **limits)['code'] == 'invalid_arguments'


def test_memory(box, exact):
    sb = box(memory_mb=64)
    got = sb.exec(EAT, timeout_seconds=20)
    assert flags(got) == {'hit_memory'} and got['exit_code'] == 137
    assert flags(sb.exec('echo still here')) == set()


def test_memory_of_a_child_counts_too(box, exact):
    got = box(memory_mb=64).exec(f'{EAT}; echo "rest: $?"', timeout_seconds=20)
    assert flags(got) == {'hit_memory'} and got['exit_code'] == 0 and 'rest: 137' in got['stdout']


def test_memory_of_many_processes_is_one_sum(box, exact):
    sb = box(memory_mb=96, pids=64)
    got = sb.exec("for i in 1 2 3 4 5 6; do python3 -c 'x = bytearray(30 << 20)\nimport time; "
                  "time.sleep(2)' & done; wait",
                  timeout_seconds=20)
    assert flags(got) == {'hit_memory'}
    assert sb.sh('echo well') == 'well\n'


def test_memory_per_process(box, driver):
    if driver != 'rlimit':
        pytest.skip('control groups hold it here')
    got = box(memory_mb=64).exec(EAT, timeout_seconds=20)
    assert got['exit_code'] == 1 and 'MemoryError' in got['stderr']


def test_pids(box):
    sb = box(pids=16)
    got = sb.exec(FORK)
    assert ('Resource temporarily unavailable' in got['stdout']
            and 10 <= int(got['stdout'].split()[0]) < 16)
    if sb.info['limits']['enforced_by'] != 'rlimit':
        assert flags(got) == {'hit_pids'}
    assert flags(sb.exec('echo well')) == set()


def test_timeout(sb):
    got = sb.exec('sleep 100', timeout_seconds=1)
    assert flags(got) == {'timed_out'} and got['exit_code'] == 124
    assert got['wall_ms'] >= 1000


def test_nothing_is_hit_by_what_only_looks_like_it(sb):
    assert flags(sb.exec('exit 124')) == set()
    assert flags(sb.exec('exit 137')) == set()
    assert flags(sb.exec('kill -9 $$')) == set()


def test_disk(box):
    sb = box(disk_mb=4)
    got = sb.exec('head -c 10000000 /dev/zero > big')
    assert got['exit_code'] == 1 and 'No space left' in got['stderr'] and flags(got) == set()
    assert int(sb.sh('stat -c %s big')) <= 4 << 20
    assert sb.fails('sandbox_write_file', path='more', content='x' * 100_000)['code'] == 'disk_full'
    sb.sh('rm big')
    sb.write('more', 'x' * 100_000)


def test_disk_is_one_for_all_places(box):
    sb = box(disk_mb=4)
    got = sb.exec('for d in /workspace /tmp ~ /var/tmp /dev/shm; do head -c 3000000 '
                  '/dev/zero > $d/f; done')
    assert 'No space left' in got['stderr']
    total = sb.exec('cat /workspace/f /tmp/f ~/f /var/tmp/f /dev/shm/f 2>/dev/null | '
                    'wc -c')['stdout']
    assert int(total) <= 8 << 20


def test_inodes_are_bounded(box):
    sb = box(disk_mb=2, memory_mb=64)
    got = sb.exec("python3 -c 'for i in range(10**6): open(str(i), \"w\")'", timeout_seconds=30)
    assert got['exit_code'] != 0
    assert sb.exec('rm -rf /workspace/*; echo well')['stdout'] == 'well\n'


def test_files_count_as_memory(box, exact):
    sb = box(memory_mb=64, disk_mb=60)
    sb.sh('head -c 50000000 /dev/zero > f')
    got = sb.exec("python3 -c 'x = bytearray(40 << 20)'")
    assert flags(got) == {'hit_memory'}


def test_cpus(box, exact):
    got = box(cpus=0.2).exec('timeout 2 sh -c "while :; do :; done"')
    assert got['cpu_ms'] < 900, got
    free = box()
    # more than the other may have, by many, since the machine may be busy
    many = 'for i in 1 2 3 4 5 6 7 8; do timeout 1 sh -c "while :; do :; done" & done; wait'
    until(lambda: free.exec(many)['cpu_ms'] > 300, timeout=120, what='more without a limit')


def test_cpus_that_can_not_be_held_are_refused(hub, driver):
    if driver != 'rlimit':
        pytest.skip('control groups hold it here')
    assert hub.fails('sandbox_create', pool='host', cpus=0.5)['code'] == 'unsupported_on_host'


def test_a_sandbox_of_the_pool_has_the_limits_that_were_asked_for(box, driver):
    rlimit = driver == 'rlimit'  # can't be changed from outside, so those are made anew
    sb = until(lambda: next((s for s in [box(disk_mb=3, pids=16)] if s.info['from_pool'] or rlimit),
                            None), what='a ready sandbox')
    assert 'No space left' in sb.exec('head -c 10000000 /dev/zero > f')['stderr']
    assert int(sb.exec(FORK)['stdout'].split()[0]) < 16


def test_core_dumps_and_locked_memory(sb):
    assert sb.sh('ulimit -c') == '0\n'
    sb.exec('kill -SEGV $$')
    assert sb.sh('ls -A') == ''


# ---- time to live --------------------------------------------------------------------------------

def test_ttl(box):
    """Of one that is idle, of one that works, and of a fork, whose own begins with it. They wait
    for their ends together."""
    sb, busy, source = box(ttl_seconds=8), box(ttl_seconds=4), box(ttl_seconds=8)
    assert sb.info['ttl_seconds'] == 8 and 'ttl_seconds' not in box().info
    sb.exec('sleep 1000 >/dev/null 2>&1 &')
    time.sleep(0.5)
    begun = time.monotonic()
    kid, = source.fork()
    with pytest.raises(Failed) as e:
        busy.exec('sleep 100', timeout_seconds=60, within=30)
    assert e.value.code in ('cancelled', 'sandbox_not_found', 'sandbox_lost')
    until(kid.gone, what="the fork's end")
    assert time.monotonic() - begun >= 8
    until(lambda: sb.gone() == 'sandbox_not_found', what='its end')
    assert sb.fails('sandbox_terminate')['code'] == 'sandbox_not_found'


def test_files_leave_room_to_free_them(box, exact):
    """Where the disk is as large as the memory: the first process is not the kernel's victim."""
    sb = box(memory_mb=32, disk_mb=32)
    for _ in range(3):  # by a program, and by the first process itself
        sb.exec('head -c 40000000 /dev/zero > big')
        error = sb.fails('sandbox_write_file', path='more', content='x' * 4000000)
        assert error['code'] == 'disk_full'
        assert sb.sh('rm -f big more; echo room') == 'room\n'


def test_programs_die_before_the_first_process(box, exact, tmp_path):
    """Also where that is the largest, and they keep their memory elsewhere."""
    compiler = shutil.which('musl-gcc')
    if not compiler:
        pytest.skip('no musl-gcc')
    (tmp_path / 'tiny.c').write_text(TINY, encoding='utf-8')
    subprocess.run([compiler, '-static', '-O2', '-o', 'tiny', 'tiny.c'], cwd=tmp_path, check=True)
    sb = box(memory_mb=64)
    sb.write('tiny', base64.b64encode((tmp_path / 'tiny').read_bytes()).decode(),
             encoding='base64')
    sb.sh('chmod +x tiny')
    # To end these it makes a list of them all, and is larger from then on.
    sb.exec('for i in $(seq 200); do sleep 100 & done; wait', timeout_seconds=3)
    assert flags(sb.exec('./tiny', timeout_seconds=60)) == {'hit_memory'}
    first, own = sb.sh('cat /proc/1/oom_score_adj /proc/self/oom_score_adj').split()
    assert int(first) < int(own)
