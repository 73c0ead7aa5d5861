"""N4: the system-call filter, beyond single calls."""

import os
import pty
import subprocess
import termios

import pytest

import world as worlds

# Each number in a process of its own, with arguments that are nowhere valid;
# prints those that are known.
NUMBERS = r"""
import ctypes, errno, json, os, sys
c = ctypes.CDLL(None, use_errno=True)
bad = ctypes.c_long(-1)
known = []
for number in range(int(sys.argv[1]), int(sys.argv[2])):
    pid = os.fork()
    if pid == 0:
        c.syscall(ctypes.c_long(number), bad, bad, bad, bad, bad, bad)
        os._exit(ctypes.get_errno() & 0x7f)
    status = os.waitpid(pid, 0)[1]
    if not os.WIFEXITED(status) or os.WEXITSTATUS(status) not in (errno.ENOSYS, errno.EPERM):
        known.append([number, status])
print(json.dumps(known))
"""
NEWER = (453, 700)  # after fchmodat2; the filter knows none of them


@pytest.mark.tries(what='calls that are newer than the filter, by every number from 453 to 700',
                   by='seccomp',
                   control='some are known outside')
def test_newer_calls(sb):
    assert worlds.python(sb, NUMBERS, *NEWER) == []
    worlds.healthy(sb)


def test_newer_calls_control(world):
    """Outside some of them are there, on a kernel that is newer than the filter."""
    done = subprocess.run([*world.user.prefix, '/usr/bin/python3', '-c', NUMBERS, *map(str, NEWER)],
                          check=True,
                          stdout=subprocess.PIPE)
    if done.stdout.strip() == b'[]':
        pytest.skip('this kernel has none of these calls')


X32 = r"""
import ctypes, errno, json
c = ctypes.CDLL(None, use_errno=True)
known = []
for number in [n | 0x40000000 for n in range(0, 560)] + [1 << 31, (1 << 32) - 1, 1 << 30,
                                                         0x7fffffff]:
    ctypes.set_errno(0)
    c.syscall(ctypes.c_long(number), 0, 0, 0, 0, 0, 0)
    if ctypes.get_errno() != errno.ENOSYS:
        known.append(number)
print(json.dumps(known))
"""


@pytest.mark.tries(what='the calls of x32, by every number', by='seccomp',
                   control='row x32')
def test_x32_numbers(sb):
    assert worlds.python(sb, X32) == []
    worlds.healthy(sb)


# Pushes characters by every descriptor that might be the caller's terminal.
PUSH = r"""
import fcntl, json, os
TIOCSTI, TIOCLINUX, TIOCSETD, TIOCSWINSZ = 0x5412, 0x541c, 0x5423, 0x5414
worked = []
fds = [0, 1, 2]
for name in ('/dev/tty', '/dev/console', '/dev/tty0', '/dev/pts/0', '/dev/ptmx'):
    try:
        fds.append(os.open(name, os.O_RDWR | os.O_NOCTTY))
        if name != '/dev/ptmx':  # a terminal of its own
            worked.append(name)
    except OSError:
        pass
import ctypes
c = ctypes.CDLL(None)
for fd in fds:
    for request in (TIOCSTI, TIOCSTI | 1 << 32, TIOCSTI | 0xffffffff << 32, TIOCLINUX):
        for byte in b'touch /tmp/pushed\n':
            if c.syscall(ctypes.c_long(16), ctypes.c_long(fd), ctypes.c_long(request),
                         ctypes.byref(ctypes.c_char(byte))) == 0:
                worked.append([fd, request])
print(json.dumps(worked))
"""


@pytest.mark.tries(what='type into the terminal of the person who called `holt run`',
                   by='seccomp, pipes for a terminal',
                   control='rows tiocsti, tiocsti_high')
def test_the_callers_terminal(who, unchanged):
    master, slave = pty.openpty()
    try:
        os.chown(os.ttyname(slave), who.uid, who.uid)
        for flags in ((), ('-i',)):
            child = subprocess.Popen(['setsid', '--ctty',
                                      *who.argv('run', *flags, '--', '/usr/bin/python3', '-c',
                                                PUSH)],
                                     stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     env=who.env, cwd='/')
            out, err = child.communicate(timeout=60)
            assert child.returncode == 0 and out.strip() == b'[]', (out, err)
        settings = termios.tcgetattr(slave)
        settings[3] &= ~termios.ICANON
        settings[6][termios.VMIN] = settings[6][termios.VTIME] = 0
        termios.tcsetattr(slave, termios.TCSANOW, settings)
        assert os.read(slave, 100) == b''  # nothing waits to be read as if it had been typed
    finally:
        os.close(master)
        os.close(slave)
