"""N3: nothing is left open in a sandbox, and no way leads through /proc/self/fd or
/proc/self/exe."""

import os

import pytest

import world as worlds
from client import Failed, until

LIST = 'for f in /proc/self/fd/*; do readlink $f; done'
KINDS = ('pipe:', '/dev/null', 'socket:')


def listed(text):
    """What the descriptors of the shell lead to, without the one that it reads the list by."""
    return [line for line in text.splitlines() if not line.startswith('/proc/')]


@pytest.mark.tries(what='inherit a descriptor from the hub, the warden, the pool, a fork, '
                   'another program', by='closed')
def test_descriptors_of_every_kind_of_start(box, hub):
    cold, pooled = box(memory_mb=77), box()
    sandboxes = [cold, pooled, *cold.fork(2)]
    requests = []
    for i in range(6):  # while others run, and files are on their way
        for sandbox in sandboxes:
            requests.append(sandbox.start(LIST, **({'stdin': 'x'} if i % 2 else {})))
            hub.start_tool('sandbox_write_file', sandbox=sandbox.id, path='/tmp/x',
                           content='x' * 100000)
    for request in requests:
        got = listed(hub.result(request)['stdout'])
        assert 1 <= len(got) <= 3 and all(line.startswith(KINDS) for line in got), got
    for sandbox in sandboxes[2:]:
        sandbox.terminate()


@pytest.mark.tries(what='inherit a descriptor from the program that called Holt', by='closed',
                   control='row descriptors')
def test_descriptors_of_the_caller(who, world, unchanged):
    held = [os.open(path, os.O_RDONLY) for path in ('/', world.file, world.top)]
    try:
        done = who.run('run', '-v', f'{world.probe}:/probe', *env_of(world), '--', '/probe',
                       'descriptors', 'cwd_by_descriptor', pass_fds=held, text=True)
    finally:
        for fd in held:
            os.close(fd)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('denied') == 2, done.stdout


def env_of(world):
    return [word for pair in world.told().items() for word in ('-e', '='.join(pair))]


@pytest.mark.tries(what='start a program in the directory /proc/self/fd/N or /proc/1/cwd of PID 1',
                   by='closed',
                   control='row cwd_by_descriptor')
def test_working_directory_by_descriptor(sb):
    for place in [f'/proc/self/fd/{n}' for n in range(40)] + ['/proc/1/cwd', '/proc/1/root',
                                                              '/proc/1/fd/3']:
        try:
            got = sb.argv('pwd', cwd=place)
            assert got['exit_code'] != 0, (place, got)
        except Failed as e:
            assert e.code in ('command_not_executable', 'path_not_found', 'path_denied',
                              'not_a_file',
                              'invalid_arguments'), e
    worlds.healthy(sb)


# Watches for processes that execute the program of PID 1, and tries to open and change it.
WATCH = r"""
import json, os
ACTS = {'write': lambda fd: os.pwrite(fd, b'\0', 0), 'truncate': lambda fd: os.ftruncate(fd, 0),
        'chmod': lambda fd: os.fchmod(fd, 0), 'chown': lambda fd: os.fchown(fd, 1000, 1000),
        'open for writing': lambda fd: os.close(os.open(f'/proc/self/fd/{fd}',
                                                        os.O_WRONLY | os.O_TRUNC))}
worked = set()

def change(fd):
    for name, act in ACTS.items():
        try:
            act(fd)
            worked.add(name)
        except OSError:
            pass

def look(pid):
    for flags in (os.O_RDWR, os.O_RDONLY):
        try:
            fd = os.open(f'/proc/{pid}/exe', flags)
        except OSError:
            continue
        try:
            if not os.readlink(f'/proc/self/fd/{fd}').startswith(('/usr', '/bin', '/lib')):
                change(fd)
        finally:
            os.close(fd)

open('/tmp/ready', 'w').close()
while not os.path.exists('/tmp/stop'):
    for pid in os.listdir('/proc'):
        if pid.isdigit() and pid != str(os.getpid()):
            look(pid)
print(json.dumps(sorted(worked)))
"""


@pytest.mark.tries(what='change the program of PID 1 while /proc/self/exe is started by '
                   'sandbox_exec',
                   by='a read-only mount, not dumpable',
                   control='row pid1_exe')
def test_overwriting_init(sb, box):
    watch = worlds.start(sb, '/usr/bin/python3', '-c', WATCH, timeout_seconds=60)
    until(lambda: sb.exec('rm /tmp/ready')['exit_code'] == 0)
    for _ in range(40):
        try:
            sb.argv('/proc/self/exe')
        except Failed as e:
            assert e.code in ('command_not_executable', 'command_not_found'), e
    sb.sh('touch /tmp/stop')
    assert sb.client.result(watch)['stdout'] == '[]\n'
    worlds.healthy(sb)
    worlds.healthy(box(memory_mb=99))  # a new one, from the same file
