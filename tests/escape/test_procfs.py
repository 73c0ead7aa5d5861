"""N1: the kernel's files, by every name that the host has for them."""

import json
import os

import pytest

import world as worlds

# Opens for writing each path on standard input, by some roundabout ways as well;
# prints those that opened.
SWEEP = r"""
import json, os, sys
before = ['', '/proc/self/root', '/proc/1/root', '/proc/thread-self/root',
          '/proc/self/cwd/../../..']
proc = os.open('/proc', os.O_RDONLY | os.O_DIRECTORY)
paths, opened = sys.stdin.read().split('\n'), []
for path in paths:
    for prefix in before:
        try:
            os.close(os.open(prefix + path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY))
            opened.append(prefix + path)
        except OSError:
            pass
    if path.startswith('/proc/'):
        try:
            os.close(os.open(path[6:], os.O_WRONLY | os.O_NONBLOCK, dir_fd=proc))
            opened.append(path + ' by openat')
        except OSError:
            pass
print(json.dumps([len(paths), opened]))
"""


def files_below(top, depth):
    found = []
    for path, directories, names in os.walk(top):
        if path.count('/') - top.count('/') >= depth:
            directories.clear()
        found += [os.path.join(path, name) for name in names]
    return found


@pytest.mark.tries(what='write any file that the host has in /proc/sys, /proc/irq, /proc/bus, '
                   '/proc/fs, /sys, each by '
                   'five names', by="hidden, read-only /proc, /sys not the kernel's",
                   control='rows proc_sys, proc_irq, sys')
def test_write_sweep(sb):
    paths = ['/proc/sysrq-trigger', '/proc/mtrr', '/proc/kmsg', '/proc/kcore', '/dev/mem',
             '/dev/kmsg']
    for top, depth in (('/proc/sys', 12), ('/proc/irq', 4), ('/proc/bus', 4), ('/proc/fs', 4),
                       ('/sys', 5)):
        paths += files_below(top, depth)
    tried, opened = worlds.python(sb, SWEEP, stdin='\n'.join(paths))
    assert tried == len(paths) and tried > 200
    assert opened == []
    worlds.healthy(sb)


# A way into a file of /proc that was opened before,
# by a descriptor that is sent over a socket and opened again.
SENT = r"""
import array, json, os, socket
a, b = socket.socketpair()
fd = os.open('/proc/self/oom_score_adj', os.O_RDONLY)
path = os.open('/proc/self/oom_score_adj', os.O_PATH)
a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd, path]))])
_, control, _, _ = b.recvmsg(1, socket.CMSG_SPACE(8))
got, opened = array.array('i', control[0][2]), []
for fd in got:
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC):
        for name in ('/proc/self/fd/%d', '/dev/fd/%d', '/proc/thread-self/fd/%d',
                     '/proc/1/root/proc/self/fd/%d'):
            try:
                os.write(os.open(name % fd, flags), b'0')
                opened.append([name, flags])
            except OSError:
                pass
print(json.dumps(opened))
"""


@pytest.mark.tries(what='send a descriptor of a file of /proc over a socket and open it again for '
                   'writing',
                   by='read-only /proc',
                   control='row proc_reopen')
def test_reopen_of_a_sent_descriptor(sb):
    assert worlds.python(sb, SENT) == []
    worlds.healthy(sb)


# Turns the read-only /proc into a writable one by what a user namespace could do if there were one.
REMOUNT = r"""
import ctypes, json, os
c = ctypes.CDLL(None, use_errno=True)
MS_RDONLY, MS_REMOUNT, MS_BIND = 1, 32, 4096
worked = []
for flags in (0x10000000, 0x10020000, 0x12020000, 0x1e020000):
    if os.fork() == 0:
        os._exit(0 if c.unshare(flags) == 0 else 1)
    worked.append(os.wait()[1] == 0)
for source, target, kind, flags in ((b'proc', b'/tmp', b'proc', 0),
                                    (b'/proc', b'/tmp', None, MS_BIND),
                                    (None, b'/proc', None, MS_REMOUNT | MS_BIND),
                                    (b'none', b'/proc/sys', None, MS_BIND),
                                    (b'tmpfs', b'/proc/sys', b'tmpfs', 0),
                                    (b'sysfs', b'/sys', b'sysfs', 0)):
    worked.append(c.mount(source, target, kind, flags, None) == 0)
for hidden in (b'/proc/sys', b'/proc/meminfo', b'/sys/fs/cgroup', b'/sys'):
    worked.append(c.umount2(hidden, 2) == 0)
print(json.dumps(worked))
"""


@pytest.mark.tries(what='lay bare the hidden parts of /proc and /sys: second mounts, binds, '
                   'remounts, unmounts', by='seccomp',
                   control='rows mount_*')
def test_uncover(sb):
    assert not any(worlds.python(sb, REMOUNT))
    assert sb.sh('ls /proc/sys') == ''
    # of Holt, and about the sandbox
    assert sb.sh('stat -f -c %T /sys /sys/fs/cgroup /proc/meminfo') == 'tmpfs\n' * 3
    worlds.healthy(sb)
