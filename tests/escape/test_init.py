"""N5: PID 1 of a sandbox under attack. Whatever is done to it, a timeout ends what runs before the
hub has to end the sandbox, the hub answers others, and at the worst the sandbox ends itself with a
typed error."""

import pytest

import world as worlds
from client import Failed

# All that single rows try on PID 1, at once and again and again,
# by processes that don't want to end.
ATTACK = r"""
import ctypes, os, signal, sys
c = ctypes.CDLL(None)
for number in range(1, 65):
    if number not in (9, 19, 32, 33):
        signal.signal(number, signal.SIG_IGN)
PID1 = 1
def once():
    for number in range(1, 65):
        c.kill(PID1, number)
        c.syscall(ctypes.c_long(234), PID1, PID1, number)                   # tgkill
        c.syscall(ctypes.c_long(200), PID1, number)                         # tkill
    fd = c.syscall(ctypes.c_long(434), PID1, 0)                             # pidfd_open
    for number in (9, 19, 11):
        c.syscall(ctypes.c_long(424), fd, number, None, 0)                  # pidfd_send_signal
        c.syscall(ctypes.c_long(424), fd, number, None, 4)
    os.close(fd)
    # ptrace: attach, seize, be traced
    for request in (16, 0x4206, 0):
        c.ptrace(request, PID1, None, None)
    c.process_vm_readv(PID1, None, 0, None, 0, 0)
    for name in ('mem', 'oom_score_adj', 'comm', 'clear_refs', 'coredump_filter', 'attr/current'):
        try:
            os.close(os.open(f'/proc/1/{name}', os.O_WRONLY))
        except OSError:
            pass
for _ in range(3):
    os.fork()
while True:
    once()
"""


def timed(sandbox, seconds, *argv, **arguments):
    """Runs something into its timeout: the result. It says `timed_out` where PID 1 has ended it;
    had that been some seconds late, the hub would have ended the sandbox, and the result be an
    error."""
    try:
        return sandbox.argv(*argv, timeout_seconds=seconds, within=60, **arguments)
    except Failed as e:
        return e.error


def alone(sandbox):
    """Waits until nothing else lives inside: what was killed takes a moment to go."""
    worlds.until(lambda: others(sandbox) == [], what='the end of all others')


def others(sandbox):
    """The living processes inside but PID 1 and the looker."""
    got = worlds.python(sandbox, r"""
import json, os
found = []
for pid in os.listdir('/proc'):
    try:
        if pid.isdigit() and int(pid) not in (1, os.getpid()):
            for thread in os.listdir(f'/proc/{pid}/task'):
                text = open(f'/proc/{pid}/task/{thread}/stat').read()
                if text[text.rindex(')') + 2] not in 'ZX':
                    found.append(text.split(')')[0])
    except OSError:
        pass
print(json.dumps(found))
""")
    return got


@pytest.mark.tries(what='every attack on PID 1 at once by eight processes, until a timeout',
                   by='not dumpable, pid namespace',
                   control='rows pid1_*')
def test_all_attacks(sb):
    got = timed(sb, 2, '/usr/bin/python3', '-c', ATTACK)
    assert got.get('timed_out'), got
    alone(sb)
    worlds.healthy(sb)


@pytest.mark.tries(what='kill(-1, SIGKILL): everything in the sandbox',
                   by='PID 1 is spared by the kernel')
def test_kill_everything(sb):
    sleeping = sb.start('sleep 60')
    worlds.until(lambda: sb.running('sleep') == 1)
    got = sb.exec('kill -KILL -1; echo still here')
    assert got['stdout'] == 'still here\n', got
    assert sb.client.result(sleeping)['signal'] == 9
    worlds.healthy(sb)
    alone(sb)


@pytest.mark.tries(what='kill(-1) with SIGSTOP and real-time signals',
                   by='PID 1 is spared by the kernel')
def test_stop_everything(sb):
    request = sb.start('sleep 60 & kill -STOP $!; kill -STOP -1; kill -RTMIN -1; kill -STOP $$',
                       timeout_seconds=1)
    assert sb.client.result(request)['timed_out']
    worlds.healthy(sb)


# Leaves a process that a search for descendants might miss.
HIDE = r"""
import ctypes, os, signal, sys, threading, time
c = ctypes.CDLL(None)
for number in range(1, 65):
    if number not in (9, 19, 32, 33):
        signal.signal(number, signal.SIG_IGN)

def stay():
    os.closerange(0, 3)
    while True:
        time.sleep(1)

def orphan():        # a session of its own, and no subreaper above it
    c.prctl(36, 0, 0, 0, 0)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            stay()
        os._exit(0)
    os.wait()

def sibling():        # a child of its parent: CLONE_PARENT
    if c.syscall(ctypes.c_long(56), ctypes.c_long(0x8000 | 17), None, None, None, None) == 0:
        stay()

def headless():        # its first thread has ended: /proc shows a zombie
    if os.fork() == 0:
        threading.Thread(target=stay).start()
        time.sleep(0.1)
        c.syscall(ctypes.c_long(60), 0)

globals()[sys.argv[1]]()
time.sleep(3600)
"""


@pytest.mark.tries(what='hide from a timeout: deaf to signals, in a session of its own, '
                   'without a subreaper, beside its '
                   'parent, without a first thread', by='seccomp, the whole tree is searched')
@pytest.mark.parametrize('how', ['orphan', 'sibling', 'headless'])
def test_hidden_descendant(sb, how):
    got = timed(sb, 1, '/usr/bin/python3', '-c', HIDE, how)
    assert got.get('timed_out'), got
    alone(sb)
    worlds.healthy(sb)


@pytest.mark.tries(what='hide from a timeout behind stopped and waiting processes',
                   by='SIGKILL to the whole tree')
def test_stopped_tree(sb):
    got = timed(sb, 1, 'sh', '-c',
                'trap "" TERM HUP INT; (trap "" TERM; sleep 99 & kill -STOP $!; wait) & '
                'setsid sleep 98 & (setsid sh -c "sleep 97 & sleep 96" &) ; kill -STOP $$; '
                'sleep 95')
    assert got.get('timed_out'), got
    worlds.healthy(sb)
    alone(sb)


@pytest.mark.tries(what='outrun a timeout by forking', by='kill(-1)')
def test_forking_tree(box, world):
    sb = box(probe=True, pids=64)
    got = timed(sb, 1, worlds.INSIDE, '--bomb', 'fork', env=world.told())
    assert got.get('timed_out'), got
    worlds.healthy(sb)
    alone(sb)


@pytest.mark.tries(what='keep the output open in the background after the program has ended',
                   by='what is left is not waited for')
def test_output_held_open(sb):
    got = sb.exec('sleep 60 & echo done', timeout_seconds=20)
    assert got['stdout'] == 'done\n' and not got['timed_out'], got
    worlds.healthy(sb)


@pytest.mark.tries(what='leave PID 1 two hundred orphans at a time', by='PID 1 collects them')
def test_orphans(sb):
    for _ in range(3):
        assert sb.exec("setsid sh -c 'for i in $(seq 200); do sleep 0.3 & done' &",
                       timeout_seconds=200)['exit_code'] == 0
    worlds.until(lambda: int(sb.sh('ls -d /proc/[0-9]* | wc -l')) < 6)  # zombies too
    alone(sb)
    worlds.healthy(sb)


# What a user may do to a process of the same user although it is not dumpable.
CRIPPLE = r"""
import ctypes, os, resource, sys, time
c = ctypes.CDLL(None)
worked = []
def attempt(name, f):
    try:
        f()
        worked.append(name)
    except (OSError, ValueError):
        pass
which = sys.argv[1]
if which == 'limits':
    for name in ('NOFILE', 'NPROC', 'FSIZE', 'AS', 'DATA', 'STACK', 'SIGPENDING', 'MEMLOCK'):
        attempt(name, lambda: resource.prlimit(1, getattr(resource, 'RLIMIT_' + name), (0, 0)))
elif which == 'cpu':
    attempt('CPU', lambda: resource.prlimit(1, resource.RLIMIT_CPU, (0, 0)))
elif which == 'priority':
    attempt('nice', lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
    attempt('nice of the group', lambda: os.setpriority(os.PRIO_PGRP, 1, 19))
    attempt('nice of the user', lambda: os.setpriority(os.PRIO_USER, 0, 19))
    attempt('idle', lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)))
    for who, number in ((1, 1), (2, 1), (3, 0)):
        if c.syscall(ctypes.c_long(251), who, number, 3 << 13) == 0:
            worked.append(f'ioprio {who}')
elif which == 'affinity':
    attempt('affinity', lambda: os.sched_setaffinity(1, {min(os.sched_getaffinity(0))}))
print(worked, flush=True)
for _ in range(2 * os.cpu_count() if which in ('priority', 'affinity') else 0):
    if os.fork() == 0:
        while True:
            pass
time.sleep(3600)
"""


@pytest.mark.tries(what='cripple PID 1 by its limits, priority, '
                   'scheduling or place, then wait for the timeout',
                   by='seccomp',
                   control='rows pid1_prlimit, pid1_nice, pid1_sched, pid1_affinity, pid1_ioprio')
@pytest.mark.parametrize('which', ['limits', 'cpu', 'priority', 'affinity'])
def test_crippled(sb, which):
    got = timed(sb, 8, '/usr/bin/python3', '-c', CRIPPLE, which)
    assert got.get('timed_out'), got
    assert got['stdout'] == '[]\n', got
    worlds.healthy(sb)
    alone(sb)


@pytest.mark.tries(what='make PID 1 wait on the file that it is to open or execute',
                   by='opened without waiting')
def test_waiting_programs(sb):
    """Programs that are pipes: the process that is to become them may wait, PID 1 may not."""
    sb.sh('mkfifo /workspace/program; chmod 755 /workspace/program; mkfifo /workspace/script.in')
    for argv in (['/workspace/program'], ['sh', '/workspace/program']):
        timed(sb, 1, *argv)
        worlds.healthy(sb)
