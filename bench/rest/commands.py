"""Sandboxes and commands in them: how long one takes, and how many a second."""

from hub import POOL
from table import Section, median, p99

BURST, SUSTAINED, BURST_RATE = 24, 16, 100
PLAIN, UNSHARE, BWRAP = 'fork + exec', 'unshare, 8 namespaces', 'bwrap, everything unshared'
PEERS = (PLAIN, UNSHARE, BWRAP)  # of bench/peers.c

ROWS = (
    ('first', 'create, then the first command'),
    ('create', '— of it create'),
    ('exec', 'a command in a live sandbox'),
    ('delete', 'delete'),
)


def measure_times(hub, rounds, whole):
    s = Section()
    took = hub.load('commands', rounds)
    burst = []
    for _ in range(10 if whole else 2):
        hub.fill_pool()
        burst += hub.load('burst', BURST, 1)['burst']
    plain = median(took[PLAIN])
    s.table('one at a time', 'who', 'p50 ms', 'p99 ms', f'× {PLAIN}')
    for name, what, who in (*((peer, 'run `true`', peer) for peer in PEERS),
                            *((*row, 'holt') for row in ROWS)):
        if name in took:
            s.row(what, who, median(took[name]) / 1000, p99(took[name]) / 1000,
                  median(took[name]) / plain)
        else:
            s.row(what, who, '—', '—', 'could not be run here')
    s.row(f'{BURST} creates at once, from a pool of {POOL}, each', 'holt', median(burst) / 1000,
          p99(burst) / 1000, median(burst) / plain)
    s.bound('create, then the first command, p50', most=5, here=median(took['first']) / 1000,
            unit=' ms', below=True)
    s.bound('the same, p99', most=15, here=p99(took['first']) / 1000, unit=' ms', below=True)
    return s


def measure_rates(hub, seconds):
    s = Section()
    s.table('without a pause', 'who', 'under way', 'a second', 'p50 ms', 'p99 ms',
            'of a CPU for the client')

    def row(what, who, wide, got, sample):
        times = [median(got[sample]) / 1000, p99(got[sample]) / 1000] if sample else ['', '']
        rate = got['made'][0] / got['seconds'][0]
        s.row(what, who, wide, f'{rate:.0f}', *times, f'{got["client"][0] / got["seconds"][0]:.0%}')
        return rate

    for n in (POOL, BURST_RATE):
        bursts = []
        for _ in range(10 if seconds > 1 else 2):
            hub.fill_pool()
            bursts.append(hub.load('make', min(n, 64), n))
        got = {name: sum((burst[name] for burst in bursts), []) for name in bursts[0]}
        got |= {name: [sum(got[name])] for name in ('made', 'seconds', 'client')}
        s.bound(f'creates a second, {n} at once', least=600, here=row(
            f'{n} creates, from a pool of {POOL}', 'holt', min(n, 64), got, 'create'), unit='/s')
    hub.fill_pool()
    created = row('create, delete', 'holt', SUSTAINED,
                  hub.load('cycle', SUSTAINED, seconds, 10 ** 9), 'create')
    s.bound('creates a second, each deleted again', least=600, here=created, unit='/s')
    sandbox = hub.create()
    for wide in (1, SUSTAINED):
        row('`true` in one live sandbox', 'holt', wide,
            hub.load('exec', wide, seconds / 2, sandbox), 'exec')
    hub.delete(sandbox)
    for peer in PEERS:
        for wide in (1, SUSTAINED):
            row('run `true`', peer, wide, hub.load('spawn', wide, seconds / 3, peer), None)
    return s


def measure_terminal(hub, rounds):
    s = Section()
    sandbox = hub.create()
    took = hub.load('terminal', sandbox, rounds)
    hub.delete(sandbox)
    s.table('a key to `cat` on a terminal and back', 'p50 µs', 'p99 µs', 'n')
    for name, who in (('local', 'a terminal of this machine, no sandbox'),
                      ('terminal', 'holt, WebSocket')):
        s.row(who, f'{median(took[name]):.0f}', f'{p99(took[name]):.0f}', len(took[name]))
    return s
