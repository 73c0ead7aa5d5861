"""What idle sandboxes cost, and where it goes; and whether many that have come and gone left
anything."""

import json
import os
import sys
import time

import host
from commands import BWRAP, SUSTAINED, UNSHARE
from hub import group
from table import Section

IDLE_PEERS = 200
FLOOR = 'sleep, with a network namespace and a memory group'
SETTLE = 1.5  # seconds: the kernel gives memory of what has ended back late,
SETTLES = 10  # and at most so often, until
STILL = 2000  # KiB more or less is all that this changes
LATEST = 20  # seconds that everything has to be gone
# bytes that hub and warden may have more: allocators go up and down by half of that; a leak goes up
GROWTH = 4 << 20

# of /proc/meminfo
WHERE = (('AnonPages', 'programs'), ('Shmem', 'tmpfs'), ('SReclaimable', 'slab, reclaimable'),
         ('SUnreclaim', 'slab, other'), ('KernelStack', 'kernel stacks'),
         ('PageTables', 'page tables'), ('Percpu', 'per CPU'))


def read_meminfo():
    """KiB of each kind."""
    with open('/proc/meminfo', encoding='ascii') as f:
        return {name: int(rest.split()[0]) for name, _, rest in (line.partition(':') for line in f)}


def meminfo():
    """The same when what has ended is gone."""
    now = read_meminfo()
    for _ in range(SETTLES):
        was = now
        time.sleep(SETTLE)
        now = read_meminfo()
        if abs(now['MemAvailable'] - was['MemAvailable']) < STILL:
            break
    return now


def spent(before, after, n):
    """KB each: all in, then by kind."""
    kb = {name: (after[name] - before[name]) * 1.024 / n for name in (name for name, _ in WHERE)}
    return [(before['MemAvailable'] - after['MemAvailable']) * 1.024 / n,
            sum(kb.values()) - kb['SReclaimable'], *kb.values()]


def idle_peer(hub, peer, n):
    before = meminfo()
    with hub.loading('idle', peer, n) as load:
        load.stdout.readline()
        return spent(before, meminfo(), n)


def idle_floor(n):
    """What the kernel takes for the two that make a sandbox's memory and its network its own, with
    nothing in them. Nothing where memory's groups are not of version 1."""
    place = next((path for path in host.own_cgroups() if '/memory' in path), None)
    if not place:
        return None
    before, top = meminfo(), os.path.join(place, f'holt-bench-{os.getpid()}')
    os.mkdir(top)
    each = (f'mkdir {top}/$i; sh -c "echo \\$\\$ > {top}/$i/cgroup.procs; '
            'exec unshare -n sleep 1000" &')
    try:
        with group(['/bin/sh', '-c',
                    f'i=0; while [ $i -lt {n} ]; do {each} i=$((i + 1)); done; wait']):
            deadline = time.monotonic() + LATEST
            while not sleeping(top, n):
                if time.monotonic() > deadline:
                    sys.exit('bench: not all peers sleep')
                time.sleep(0.1)
            return spent(before, meminfo(), n)
    finally:
        for path, _, _ in os.walk(top, topdown=False):
            host.OwnCgroups.remove(path)


def sleeping(top, n):
    """All have begun."""
    everybody, found = host.processes(), 0
    for each in next(os.walk(top))[1]:
        with open(os.path.join(top, each, 'cgroup.procs'), encoding='ascii') as f:
            found += sum(int(p) in everybody and everybody[int(p)].comm == 'sleep'
                         for p in f.read().split())
    return found == n


def charged(hub):
    """Bytes that the control groups of all sandboxes say; 0 where nobody counts them."""
    total, cursor = 0, ''
    while True:
        page = hub.ask('GET', '/v1/usage?limit=64' + (f'&cursor={cursor}' if cursor else ''))
        total += sum(s.get('memory_bytes', 0) for s in page['sandboxes'])
        cursor = page.get('next_cursor')
        if not cursor:
            return total


def own(hub):
    return [host.memory(pid) for pid in (hub.proc.pid, host.program(hub.proc.pid, 'holt-warden'))]


def idle_holt(hub, n):
    """The rows of those that were just made, and of the same asleep."""
    hub.fill_pool()
    own_before, before = own(hub), meminfo()
    made = [hub.create() for _ in range(n)]
    hub.fill_pool()
    rows = []
    for asleep in (0, n):
        while hub.metric('holt_sandboxes_asleep') < asleep:
            time.sleep(0.1)
        kb = spent(before, meminfo(), n)
        if not asleep and hub.metric('holt_sandboxes_asleep'):
            sys.exit('bench: some sleep already')
        groups, grown = charged(hub), [(after - b) / n / 1000
                                       for after, b in zip(own(hub), own_before)]
        rows.append((f'holt, {"asleep" if asleep else "just made"}', n, kb,
                     [f'{groups / n / 1000:.0f}' if groups else '—',
                      *(f'{kb:.1f}' for kb in grown)]))
    hub.delete(*made)
    return rows


def measure_idle(hub, n):
    s = Section()
    few, nothing = min(n, IDLE_PEERS), ['', '', '']
    # In each memory group the kernel keeps room for the most file systems that the machine ever
    # had: so the peer's has it, too.
    hub.load('make', SUSTAINED, n)
    rows = [(peer, few, idle_peer(hub, peer, few), nothing) for peer in (UNSHARE, BWRAP)]
    floor = idle_floor(few)
    if floor:
        rows.append((FLOOR, few, floor, nothing))
    rows += idle_holt(hub, n)
    s.table('idle, KB each', 'how many', '**all in**', '**counted**', *(what for _, what in WHERE),
            'charged to its groups', 'of the hub', 'of the warden')
    for who, count, kb, rest in rows:
        s.row(who, count, *(f'{x:.0f}' for x in kb), *rest)
    s.bound(f'each of {n} idle sandboxes, asleep, all in', most=0.4,
            here=max(rows[-1][2][:2]) / 1000, unit=' MB')
    return s


# ---- residue

def look(hub):
    hub.fill_pool()
    pids = [hub.proc.pid, *host.below(hub.proc.pid)]
    warden = host.program(hub.proc.pid, 'holt-warden')
    everybody = host.processes()
    memory = own(hub)

    def mounts(pid):
        with open(f'/proc/{pid}/mountinfo', encoding='utf-8') as f:
            return len(f.readlines())

    return {
        'processes': len(pids),
        'zombies': sum(p.state == 'Z' and p.parent in pids for p in everybody.values()),
        'namespaces': len(host.namespaces(pids)),
        'mounts here': mounts('self'),
        'mounts of the warden': mounts(warden),
        'control groups': len(host.cgroups()),
        'descriptors of the hub': host.descriptors(hub.proc.pid),
        'descriptors of the warden': host.descriptors(warden),
        'files': len(host.files(os.path.join(hub.home, 'hub'))),
        'bytes of the hub': memory[0],
        'bytes of the warden': memory[1],
    }


def too_much(name, before, after):
    return after > before + (GROWTH if name.startswith('bytes') else 0)


def measure_residue(hub, cycles, warm):
    s = Section()
    # what the hub remembers of those that have ended is bounded, and full from here on
    hub.load('cycle', SUSTAINED, 600, warm)
    time.sleep(SETTLE)
    before = look(hub)
    got = hub.load('cycle', SUSTAINED, 600, cycles)
    deadline = time.monotonic() + LATEST
    while True:
        after = look(hub)
        left = {name: (was, after[name])
                for name, was in before.items() if too_much(name, was, after[name])}
        if not left or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    made = int(got['made'][0])
    s.table(f'left of {made} sandboxes, made and deleted in {got["seconds"][0]:.0f} s', 'before',
            'after', 'more')
    for name, was in before.items():
        s.row(name, was, after[name], f'{after[name] - was:+}')
    s.bound(f'kinds of things left of {made} sandboxes', most=0, here=len(left), must=True)
    if left:
        print(f'bench: left behind: {json.dumps(left)}', file=sys.stderr)
    return s
