"""What the host shows of Holt: processes, mounts, control groups, namespaces, files.

The test process is made a subreaper: whatever Holt starts stays below it in the tree of processes,
also when its parent was killed. So what is ours is known exactly, and other users of the machine
don't disturb.
"""

import contextlib
import ctypes
import os
import resource
import re
import signal
import sys
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import guardian  # noqa: E402, F401 (it begins with the import)

PR_SET_CHILD_SUBREAPER = 36
ME = os.getpid()
ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Process:
    def __init__(self, pid):
        with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as f:
            text = f.read()
        at, end = text.index('('), text.rindex(')')
        rest = text[end + 2:].split()
        self.pid, self.comm = pid, text[at + 1:end]
        self.state, self.parent, self.started = rest[0], int(rest[1]), int(rest[19])

    def key(self):
        return self.pid, self.started

    def __repr__(self):
        try:
            with open(f'/proc/{self.pid}/cmdline', encoding='utf-8', errors='replace') as f:
                line = f.read().replace('\0', ' ').strip()
            with open(f'/proc/{self.pid}/wchan', encoding='utf-8') as f:
                waits = f.read()
        except OSError:
            line, waits = 'gone', ''
        return f'{self.pid} {self.comm} [{self.state} {waits}] {line[:120]}'


def processes():
    found = {}
    for name in os.listdir('/proc'):
        if name.isdigit():
            try:
                found[int(name)] = Process(int(name))
            except (OSError, ValueError):
                pass
    return found


def below(root=ME, except_for=(), everything=None):
    """The living processes below one, in a dict by pid, without the trees of some. everything:
    what processes() has given."""
    everything = everything or processes()
    children = {}
    for p in everything.values():
        children.setdefault(p.parent, []).append(p)
    found, todo = {}, [root]
    while todo:
        for p in children.get(todo.pop(), []):
            if p.pid in except_for:
                continue
            todo.append(p.pid)
            if p.state not in 'ZX':
                found[p.pid] = p
    return found


def zombies(root=ME):
    """The ended processes below one that their parent has not noticed."""
    everything = processes()
    parents = {root, *below(root, everything=everything)}
    return [p for p in everything.values() if p.state == 'Z' and p.parent in parents]


def reap(everything=None):
    """Collects the orphans of killed programs, as the machine's first process would."""
    for p in (everything or processes()).values():
        if p.parent == ME and p.state == 'Z' and p.comm.startswith('holt-'):
            os.waitpid(p.pid, os.WNOHANG)


def kill_all():
    """Ends whatever is still there of this run: what failed tests left must not outlive them."""
    for _ in range(100):
        left = below()
        if not left:
            return
        for p in left.values():
            try:
                os.kill(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)


def program(parent, name):
    """The one process of a program that another one started."""
    found = [p for p in below(parent).values() if p.comm == name and p.parent == parent]
    assert len(found) == 1, f'{name}: {found}'
    return found[0].pid


def warden_of(home):
    """The warden of a data folder, by the lock that it holds there, as it may be the child of an
    earlier hub; None where that is secret, or where it has ended."""
    lock = os.path.join(os.path.realpath(home), 'warden', 'lock')
    for p in below().values():
        try:
            fds = f'/proc/{p.pid}/fd'
            if p.comm == 'holt-warden' and lock in (os.readlink(f'{fds}/{n}')
                                                    for n in os.listdir(fds)):
                return p.pid
        except OSError:
            pass
    return None


def with_argument(word, root=ME):
    """The processes below root that have this word on their command line."""
    found = []
    for p in below(root).values():
        try:
            with open(f'/proc/{p.pid}/cmdline', 'rb') as f:
                if word.encode() in f.read().split(b'\0'):
                    found.append(p)
        except OSError:
            pass
    return found


def inside_pid(pid):
    """The pid that a process has in its innermost pid namespace."""
    with open(f'/proc/{pid}/status', encoding='utf-8') as f:
        return int(re.search(r'^NSpid:.*?(\d+)$', f.read(), re.M).group(1))


def init_of(pid):
    """PID 1 of the sandbox that a process is in."""
    while inside_pid(pid) != 1:
        pid = Process(pid).parent
    return pid


def mounts():
    """Without the one that `ip netns` makes for all who use it, and leaves."""
    with open('/proc/self/mountinfo', encoding='utf-8') as f:
        rows = [line.split()[2:] for line in f]
    return {' '.join(row) for row in rows if row[2] != '/run/netns'}


def unescape(path):
    return re.sub(r'\\([0-7]{3})', lambda m: chr(int(m.group(1), 8)), path)


def cgroup_roots():
    with open('/proc/self/mountinfo', encoding='utf-8') as f:
        rows = [line.split() for line in f]
    return sorted({unescape(row[4])
                   for row in rows if row[row.index('-') + 1] in ('cgroup', 'cgroup2')})


CPU_SHARES, CPU_SHARES_MAX = 1024, 262144  # the kernel's default, and the most that it takes
HELD = {'memory', 'pids', 'cpu', 'cpuacct', 'freezer'}


def own_cgroups():
    """The groups of this process in which it may make another one and move there: directories.
    Version 2 allows that only where it controls nothing."""
    with open('/proc/self/mountinfo', encoding='utf-8') as f:
        rows = [line.split() for line in f]
    mounted = [(r[r.index('-') + 1], unescape(r[3]), unescape(r[4]), r[-1].split(','))
               for r in rows]
    found = []
    with open('/proc/self/cgroup', encoding='utf-8') as f:
        for line in f:
            number, names, path = line.rstrip('\n').split(':', 2)
            for kind, root, place, options in mounted:
                here = os.path.normpath(os.path.join(place, os.path.relpath(path, root)))
                if kind == 'cgroup' and set(names.split(',')) <= HELD & set(options):
                    found.append(here)
                elif kind == 'cgroup2' and number == '0':
                    with open(os.path.join(here, 'cgroup.controllers'), encoding='utf-8') as f2:
                        if not f2.read().strip():
                            found.append(here)
    return found


def as_after_login():
    """The usual soft limit of descriptors, however many there may be. Programs inherit it: set
    between fork() and exec(), it would cost a copy of our memory for each."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), hard))


class OwnCgroups:
    """Moves this process into groups of its own where that is possible (version 1, as root), so
    that Holt makes its groups there and those of other users of the machine are not seen."""

    def __init__(self):
        self.made = []  # (directory we came from, our own)

    def enter(self):
        for place in own_cgroups():
            mine = os.path.join(place, f'blackbox-{ME}')
            try:
                os.mkdir(mine)
                self.made.append((place, mine))
                self.move(mine)
            except OSError:
                pass

    def leave(self):
        for place, mine in self.made:
            self.move(place)
            for path, _, _ in os.walk(mine, topdown=False):
                self.remove(path)

    @contextlib.contextmanager
    def first(self):
        """Meanwhile what runs in our groups has a processor before what others of the machine do,
        where version 1 shares it out."""
        files = [f for _, mine in self.made
                 if os.path.exists(f := os.path.join(mine, 'cpu.shares'))]
        try:
            self.share(files, CPU_SHARES_MAX)
            yield
        finally:
            self.share(files, CPU_SHARES)

    @staticmethod
    def share(files, n):
        for file in files:
            with open(file, 'w', encoding='utf-8') as f:
                f.write(str(n))

    @staticmethod
    def remove(path):
        """What is dying in it takes its time to go."""
        for _ in range(100):
            try:
                os.rmdir(path)
                return
            except OSError:
                time.sleep(0.02)

    @staticmethod
    def move(place):
        with open(os.path.join(place, 'cgroup.procs'), 'w', encoding='utf-8') as f:
            f.write(str(ME))


OWN = OwnCgroups()


def cgroups(except_for=(), everything=None):
    """Directories of control groups that are Holt's; not those of wardens that others started, nor
    of those below some of our processes."""
    everything, found = everything or processes(), set()
    for root in [mine for _, mine in OWN.made] or cgroup_roots():
        for path, names, _ in os.walk(root):
            found.update(os.path.join(path, n) for n in names if n.startswith('holt-w')
                         or '/holt-w' in path)
    theirs = everything.keys() - below(except_for=except_for, everything=everything)
    return {c for c in found if int(re.search(r'/holt-w(\d+)-', c).group(1)) not in theirs}


def namespaces(pids):
    found = set()
    for pid in pids:
        try:
            for name in os.listdir(f'/proc/{pid}/ns'):
                found.add(os.readlink(f'/proc/{pid}/ns/{name}'))
        except OSError:
            pass
    return found


def files(*trees):
    found = set()
    for tree in trees:
        for path, names, leaves in os.walk(tree):
            # The log of what was done stays, and so does the folder that it is in.
            names[:] = [n for n in names if n != 'audit']
            found.update(os.path.join(path, n) for n in names + leaves
                         if (os.path.basename(path), n) != ('data', 'holt'))
    return found


def named_files():
    """What bears Holt's name in the places where programs leave things."""
    found = set()
    # /run/holt-ids stays: an empty file whose locks say which ids are in use. Other tests beside
    # these have names of their own.
    ours = re.compile('(?<!fuzz-)holt-(?!test|ids|lives|fuzz)|sbx-')
    for place in ('/tmp', '/var/tmp', '/run', '/dev/shm', f'/run/user/{os.getuid()}'):
        try:
            found.update(os.path.join(place, n)
                         for n in os.listdir(place) if ours.search(n))
        except OSError:
            pass
    return found


def kernel_objects(*names):
    """Live objects of the kernel by kind, over the whole machine; {} where that is secret."""
    found = {}
    try:
        with open('/proc/slabinfo', encoding='utf-8') as f:
            for line in f:
                word = line.split()
                if word[0] in names:
                    found[word[0]] = int(word[1])
    except OSError:
        pass
    return found


class Residue:
    """Everything that Holt may leave, as it is at one time."""

    def __init__(self, trees, except_for=()):
        self.trees, self.except_for = trees, except_for
        self.before = self.look()

    def look(self):
        everything = processes()  # once: it is what takes time
        reap(everything)
        mine = below(except_for=self.except_for, everything=everything)
        return {
            'processes': {p.key(): p for p in mine.values()},
            # Not those of others: one that is left has a process in it, which is told as such, and
            # a shared hub's warden that was there before may change its own while it starts.
            'namespaces': namespaces([ME]),
            'mounts': mounts(),
            'cgroups': cgroups(self.except_for, everything),
            'files': files(*self.trees) | named_files(),
        }

    def left(self):
        now = self.look()
        found = {}
        for kind, was in self.before.items():
            more = set(now[kind]) - set(was)
            if more:
                found[kind] = ([repr(now[kind][k]) for k in more] if kind == 'processes'
                               else sorted(more))
        return found

    def check(self, timeout=60):
        """Fails unless all that came since is gone within the time."""
        deadline = time.monotonic() + timeout
        while True:
            left = self.left()
            if not left:
                return
            assert time.monotonic() < deadline, 'left behind: ' + '; '.join(
                f'{len(found)} {kind}: {", ".join(map(str, found[:4]))}'
                for kind, found in left.items())
            time.sleep(0.02)


def memory(pid):
    """Resident bytes that are a process's own."""
    total = 0
    with open(f'/proc/{pid}/smaps_rollup', encoding='utf-8') as f:
        for line in f:
            if line.startswith(('Private_Clean', 'Private_Dirty')):
                total += int(line.split()[1]) * 1024
    return total


def descriptors(pid):
    return len(os.listdir(f'/proc/{pid}/fd'))
