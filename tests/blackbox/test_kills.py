"""Hubs and wardens that are killed at any moment of their work, two hundred times in all (soak.py).
What was acknowledged is there afterwards, or lost by name where its warden was killed: sandboxes,
their forks and files, programs in the background, snapshots. Nothing stands behind an id but what
was put there; and nothing of any of it is left at the end.

A lane is a data folder with one hub after the other. Lanes run beside each other, as a hub mostly
waits. In every second one sandboxes sleep as soon as nothing runs in them. In every other round the
kill comes when something of a certain kind was acknowledged, so that each kind is put to the test
in each batch. The engine's own rounds, which look closer, are in tests/engine/keep_crash.c.
"""

import os
import random
import signal
import threading

import pytest

import host
from client import until
from door import Closed
from rest import Failed, Rest
from soak import soak

pytestmark = pytest.mark.rights

LANES, ROUNDS, BATCHES = 4, 5, soak(5)  # of each of two users: 200 in all
WORKERS, KEPT = 2, 5
LATEST = 0.15  # seconds of work before the kill
SEED = int(os.environ.get('HOLT_SEED', random.randrange(1 << 30)))
GONE = (OSError, EOFError, Closed)
KINDS = ('create', 'fill', 'fork', 'end', 'job', 'snapshot')
ENDED = 7  # the status of a program in the background that ends by itself


class Known:
    """What was said of one sandbox."""

    def __init__(self, generation, begun=0, done=0):
        self.generation, self.begun, self.done = generation, begun, done
        self.sleeps = self.ending = self.ended = False
        self.risk = False  # its warden was killed
        self.jobs = {}  # id: the hub that started it, and whether it ends by itself


class Lane:
    def __init__(self, who, home, number):
        self.who, self.home, self.random = who, home, random.Random(SEED + number)
        self.options = ('--pool', '2', *(('--sleep-after', '0.01') if number % 2 else ()))
        self.known, self.tried, self.hubs, self.victims, self.wrong = {}, set(), [], [], []
        self.names = iter(range(1 << 30))
        # id: what was in it; how often each was acknowledged
        self.snapshots, self.done = {}, {kind: 0 for kind in KINDS}

    def name(self):
        name = f's{next(self.names)}'
        self.tried.add(name)
        return name

    def hub(self):
        if not self.hubs or self.hubs[-1].proc.poll() is not None:
            self.hubs.append(Rest(self.who, self.home, '--listen', '127.0.0.1:0', '--socket',
                                  'none', *self.options,
                                  env={'HOLT_LOG': 'info'}))
            self.hubs[-1].victim = None
        return self.hubs[-1]

    def warden(self):
        return host.warden_of(self.home)

    # ---- work

    def create(self, hub, mine):
        name = self.name()
        made = hub.post('/v1/sandboxes', id=name)
        self.known[name] = Known(made['generation'])
        mine.append(name)
        # it is no copy of the shell any more
        hub.exec(name, 'sleep 1000 >/dev/null 2>&1 & until grep -sqx sleep /proc/$!/comm; do :; '
                 'done')
        self.known[name].sleeps = True

    def fork(self, hub, mine, source, known):
        names = [self.name(), self.name()]
        for made in hub.post(f'/v1/sandboxes/{source}/fork', ids=names)['sandboxes']:
            self.known[made['id']] = Known(made['generation'], known.begun, known.done)
            mine.append(made['id'])

    def job(self, hub, name, known):
        """One that runs on, or one that ends at once."""
        ends = len(known.jobs) % 2 == 1
        started = hub.exec(name, f'exit {ENDED}' if ends else 'exec tail -f /dev/null',
                           background=True)
        known.jobs[started['exec_id']] = hub, ends

    def snapshot(self, hub, name, known):
        self.snapshots[hub.post(f'/v1/sandboxes/{name}/snapshots')['id']] = known.done

    def fill(self, hub, name, known):
        known.begun += 1
        if known.begun % 2:
            hub.post('/v1/files/write', sandbox=name, path='n', content=str(known.begun))
        else:
            # by rename: a program that ends with its hub may have emptied the file and not written
            hub.exec(name, f'echo {known.begun} > new && mv new n')
        known.done = known.begun

    def end(self, hub, name, known):
        known.ending = True
        hub.delete(name)
        known.ended = True

    def step(self, hub, what, chance, mine):
        """Does one thing, to one of its own sandboxes where it takes one."""
        live = [name for name in mine if not self.known[name].ending]
        name = chance.choice(live) if live else None
        if what == 'create' or not live:
            what = 'create'
            self.create(hub, mine)
        elif what == 'fork':
            self.fork(hub, mine, name, self.known[name])
        else:
            getattr(self, what)(hub, name, self.known[name])
        self.done[what] += 1

    def work(self, hub, first, seed, mine):
        """Until the hub is gone, or says that what it worked with was lost."""
        chance = random.Random(seed)
        try:
            for what in ('create', *first):
                self.step(hub, what, chance, mine)
            while len(mine) < 30:
                self.step(hub, chance.choices(KINDS, (25, 38, 12, 10, 10, 5))[0], chance, mine)
        except GONE as e:
            if hub.victim is None or isinstance(e, TimeoutError):
                self.wrong.append(e)
        except Failed as e:
            if hub.victim not in ('warden', 'both'):
                self.wrong.append(e)
        except BaseException as e:  # a test's thread must not end unseen
            self.wrong.append(e)

    # ---- what is there

    def look_at_jobs(self, hub, name, known):
        """What ran when its hub was killed is lost, and has ended; nobody is told otherwise."""
        states = ({e['exec_id']: e for e in hub.call('GET', f'/v1/sandboxes/{name}/execs')}
                  if known.jobs else {})
        for job, (started, ends) in known.jobs.items():
            state = states[job]['state']
            if ends and state == 'exited':
                assert states[job]['exit_code'] == ENDED, states[job]
            else:
                assert state == ('running' if started is hub else 'lost'), (state, started is hub)
        if not any(started is hub for started, _ in known.jobs.values()):
            until(lambda: hub.exec(name, 'grep -sx tail /proc/[0-9]*/comm')['exit_code'] == 1,
                  what='the end of what was lost')

    def look_at_snapshots(self, hub):
        """All are there, and what is in them; then all but one go."""
        there = {s['id'] for s in hub.call('GET', '/v1/snapshots')['snapshots']}
        assert set(self.snapshots) <= there, (self.snapshots, there)
        for snapshot, value in self.snapshots.items():
            name = self.name()
            hub.post(f'/v1/snapshots/{snapshot}/restore', id=name)
            assert (hub.exec(name, 'cat n 2>/dev/null || echo 0')['stdout'].strip()
                    == str(value)), snapshot
            self.known[name] = Known(1)
            self.end(hub, name, self.known[name])
        for snapshot in there - set(list(self.snapshots)[:1]):
            hub.call('DELETE', f'/v1/snapshots/{snapshot}')
            self.snapshots.pop(snapshot, None)

    def look(self, hub, name, known):
        view = hub.call('GET', f'/v1/sandboxes/{name}')
        assert view['generation'] == known.generation, (name, view)
        said = hub.exec(name, 'echo $(cat n 2>/dev/null || echo 0); grep -sx sleep '
                        '/proc/[0-9]*/comm | wc -l')
        found = said['stdout'].split()
        assert len(found) == 2, (name, said, vars(known))
        assert not known.ended and found[0] in (str(known.done), str(known.begun)), (name, found,
                                                                                     vars(known))
        assert not known.sleeps or found[1] == '1', (name, found)
        self.look_at_jobs(hub, name, known)
        known.begun = known.done = int(found[0])
        known.risk = False

    def check(self, hub):
        for name, known in self.known.items():
            if known.ended:
                continue
            try:
                self.look(hub, name, known)
            except Failed as e:
                may = {'sandbox_lost': known.risk or known.ending, 'not_found': known.ending}
                assert may.get(e.code), (name, e.error['cause'], vars(known), self.victims)
                known.ended = known.ended or e.code == 'not_found'
                if e.code == 'sandbox_lost':
                    hub.delete(name)  # it stays known as lost until then
                    known.ended = True
        there = {view['id'] for view in hub.call('GET', '/v1/sandboxes')}
        alive = {name for name, known in self.known.items() if not known.ended}
        assert alive <= there and there - alive <= self.tried, (there, alive)
        for name in (there - alive) | set(sorted(alive, key=lambda n: int(n[1:]))[KEPT:]):
            hub.delete(name)  # one that was made and not said, and what is too much
            self.known.setdefault(name, Known(0)).ended = True
        self.look_at_snapshots(hub)

    # ---- rounds

    def kill(self, hub):
        warden = self.warden()
        hub.victim = self.random.choice(['hub', 'warden', 'both'] if warden else ['hub'])
        self.victims.append(hub.victim)
        if hub.victim != 'hub':
            for known in list(self.known.values()):
                known.risk = True
            os.kill(warden, signal.SIGKILL)
        if hub.victim != 'warden':
            hub.proc.kill()
            hub.proc.wait()

    def round(self, kind):
        """kind: what must have been acknowledged before the kill; None for nothing."""
        hub = self.hub()
        hub.victim = None
        self.check(hub)
        before = dict(self.done)
        workers = [threading.Thread(target=self.work,
                                    args=(hub, [kind] if kind else [], self.random.random(), []))
                   for _ in range(WORKERS)]
        for worker in workers:
            worker.start()
        if kind:
            until(lambda: self.wrong or self.done[kind] > before[kind], timeout=60,
                  what=f'a {kind} that is acknowledged')
        workers[0].join(self.random.uniform(0.01, LATEST))
        self.kill(hub)
        for worker in workers:
            worker.join(60)
        # what was acknowledged meanwhile stood on it, too, or stands on another one
        if hub.victim != 'hub':
            for known in self.known.values():
                known.risk = True
        assert not self.wrong, self.wrong

    def run(self, kinds):
        try:
            for kind in kinds:
                self.round(kind)
            hub = self.hub()
            self.check(hub)
            for snapshot in self.snapshots:
                hub.call('DELETE', f'/v1/snapshots/{snapshot}')
            folder = os.path.join(self.home, 'snapshots')
            # one that was killed before it was acknowledged may stand in lost/
            until(lambda: set(os.listdir(folder)) - {'lost'} == {'new'}
                  and not os.listdir(folder + '/new'), what='no file of a snapshot')
            assert hub.end() == 0, hub.said()
        except BaseException as e:
            said = ''.join(f'--- {hub.victim}\n{hub.said()[-3000:]}' for hub in self.hubs)
            self.wrong.append(f'{e}\n{self.victims}, {os.listdir(self.home + "/warden")}, '
                              f'warden {self.warden()}\n{said}')


@pytest.mark.parametrize('batch', range(BATCHES))
def test_killed_at_any_moment(residue, who, batch):
    lanes = []
    for number in range(LANES):
        home = who.log() + '.home'
        os.mkdir(home, 0o700)
        os.chown(home, who.uid, who.uid)
        lanes.append(Lane(who, home, batch * LANES + number))
    kinds = iter(KINDS * LANES)
    threads = [threading.Thread(target=lane.run, args=(
        [next(kinds) if n % 2 else None for n in range(ROUNDS)],)) for lane in lanes]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(110)
        for lane in lanes:
            assert not lane.wrong, '\n'.join([f'HOLT_SEED={SEED}', *map(str, lane.wrong)])
            for hub in lane.hubs:
                assert 'Sanitizer' not in hub.said(), hub.said()
        done = {kind: sum(lane.done[kind] for lane in lanes) for kind in KINDS}
        print(f'acknowledged: {done}, killed: {sum(len(lane.victims) for lane in lanes)}')
        assert all(done.values()), done
    finally:
        for lane in lanes:
            for hub in lane.hubs:
                hub.kill()
            if warden := lane.warden():  # of a lane that failed
                os.kill(warden, signal.SIGKILL)
