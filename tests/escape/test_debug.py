"""Sandboxes whose programs may trace each other (debug): every row again, and what tracing could be
turned against."""

import json

import pytest

import world as worlds
from conftest import Attempts
from test_init import ATTACK, alone, timed

ROWS = worlds.rows()
OPEN = {'ptrace_self', 'vm_readv_own'}  # what such a sandbox is for


@pytest.fixture(scope='module')
def debug_attempts(hub, world):
    return Attempts(hub, world, debug=True)


@pytest.fixture
def debug(box):
    return box(probe=True, debug=True)


@pytest.mark.tries(what='with debug: every row above again',
                   by='what holds it there; of PID 1: not dumpable, seccomp',
                   control='only ptrace_self and vm_readv_own are open')
@pytest.mark.parametrize('name', ROWS)
def test_attempt_with_debug(name, debug_attempts):
    assert name not in debug_attempts.unhealthy, debug_attempts.unhealthy[name]
    found = debug_attempts.found[name]
    expected = ['open'] if ROWS[name]['policy'] or name in OPEN else ['denied', 'absent']
    assert found['result'] in expected, f'{ROWS[name]["what"]}: {found}'


def test_host_is_unchanged_with_debug(debug_attempts):
    assert not debug_attempts.changed, debug_attempts.changed


@pytest.mark.tries(what='with debug: every attack on PID 1 at once by eight processes, until a '
                   'timeout',
                   by='not dumpable, seccomp, pid namespace', control='rows pid1_*')
def test_all_attacks_of_tracers(debug):
    got = timed(debug, 2, '/usr/bin/python3', '-c', ATTACK)
    assert got.get('timed_out'), got
    alone(debug)
    worlds.healthy(debug)


# A program that PID 1 started has PID 1 as its tracer, each time until its next signal.
TRACED_BY_INIT = r"""
import ctypes, os, signal, sys
c, came = ctypes.CDLL(None, use_errno=True), []
signal.signal(signal.SIGUSR1, lambda *_: came.append(1))
turns = int(sys.argv[1])
while turns:
    assert c.ptrace(0, 0, None, None) == 0, ctypes.get_errno()
    os.kill(os.getpid(), signal.SIGUSR1)
    turns -= 1
assert c.ptrace(0, 0, None, None) == 0
if sys.argv[2:]:
    os.execvp(sys.argv[2], sys.argv[2:])
print(len(came))
"""


def test_a_program_that_is_traced_by_pid_1(debug):
    """It ends as ever: its stops are no ends, its signals reach it, and what it executes runs."""
    assert debug.argv('/usr/bin/python3', '-c', TRACED_BY_INIT, '20')['stdout'] == '20\n'
    got = debug.argv('/usr/bin/python3', '-c', TRACED_BY_INIT, '1', 'sh', '-c', 'echo well; exit 7')
    assert (got['stdout'], got['exit_code']) == ('well\n', 7), got


@pytest.mark.tries(what='with debug: make PID 1 a tracer, over and over in many processes, until a '
                   'timeout',
                   by='PID 1 lets go of those that it traces')
def test_many_that_pid_1_traces(debug):
    running = [worlds.start(debug, '/usr/bin/python3', '-c', TRACED_BY_INIT, -1, timeout_seconds=2)
               for _ in range(12)]
    worlds.healthy(debug)
    for request in running:
        got = debug.client.result(request, within=60)
        # PID 1 may end those that keep it busy
        assert got['timed_out'] or got.get('signal') == 9, got
    alone(debug)
    worlds.healthy(debug)


# Traces its parent, and all that this starts, and lets none of their signals through.
HOLD = r"""
import ctypes, os, signal, time
c = ctypes.CDLL(None, use_errno=True)
for number in range(1, 65):
    if number not in (9, 19, 32, 33):
        signal.signal(number, signal.SIG_IGN)
parent = os.getpid()
if os.fork() == 0:
    options = 2 | 4 | 8 | 0x40                            # whoever it forks, and where it exits
    assert c.ptrace(0x4206, parent, None, ctypes.c_void_p(options)) == 0, ctypes.get_errno()
    while True:
        try:
            pid, _ = os.waitpid(-1, 0x40000000)           # __WALL
        except OSError:
            time.sleep(0.01)
            continue
        c.ptrace(7, pid, None, None)                      # on it goes, without the signal
time.sleep(0.2)
while True:
    if os.fork() == 0:
        time.sleep(3600)
    time.sleep(0.05)
"""


@pytest.mark.tries(what='with debug: hide from a timeout behind a tracer that holds back '
                   'signals and ends',
                   by='SIGKILL to the whole tree, kill(-1)')
def test_tree_that_is_traced(debug):
    got = timed(debug, 2, '/usr/bin/python3', '-c', HOLD)
    assert got.get('timed_out'), got
    alone(debug)
    worlds.healthy(debug)


# Tries to trace each process that PID 1 forks, for two seconds, and longer until it has met one.
HELPERS = r"""
import ctypes, json, os, time
c, found = ctypes.CDLL(None, use_errno=True), set()
began = time.time()
while time.time() < began + (60 if 1 not in found else 2):
    for pid in map(int, filter(str.isdigit, os.listdir('/proc'))):
        try:
            ours = open(f'/proc/{pid}/comm').read() == 'holt-init\n' and pid != 1
        except OSError:
            continue
        if ours:
            ok = c.ptrace(0x4206, pid, None, None) == 0
            found.add(0 if ok else ctypes.get_errno())
print(json.dumps(list(found)))
"""


def commands(sandbox):
    """What runs inside, as a process that PID 1 forks for it has it."""
    listed = sandbox.client.call('sandbox_processes', sandbox=sandbox.id)
    return [p['command'] for p in listed['processes']]


@pytest.mark.tries(what='with debug: trace what PID 1 forks to list processes', by='not dumpable')
def test_helpers_of_pid_1(debug):
    request = worlds.start(debug, '/usr/bin/python3', '-c', HELPERS, timeout_seconds=90)
    worlds.until(lambda: any('ctypes' in command for command in commands(debug)), what='the tracer')
    while any('ctypes' in command for command in commands(debug)):
        pass
    got = debug.client.result(request, within=120)
    assert got['exit_code'] == 0, got
    errnums = set(json.loads(got['stdout']))
    assert 1 in errnums and errnums <= {1, 3}, got  # not permitted, or gone
    worlds.healthy(debug)
