"""The hub, or its warden, is killed before or after each call of an act (N = 1, 2, ...), and the
power is cut there. The next start holds every promise that was answered, deletes nothing that has
no row, and is ready. `make test` does a part of the rounds, `make soak` all."""

import json
import os
import random
import shutil
import signal

import pytest

import host
from acts import ACTS, CONFIG, Act, KeyCreate, Stop
from client import until
from door import Closed
from rest import Failed
from soak import FULL
from test_faults import (SEED, begin, check_audit,  # noqa: F401
                         home, library)
from fault import CHANGES, LAST, Fault  # test_faults knows where it is

GONE = (OSError, EOFError, Closed)
# What a start may remove: files that were being written, and the registry's own.
PASSING = ('new', '.new', 'warden', 'registry.db', 'plan')


def chosen(points, chance):
    """The first one always: an act that stops halfway does so behind the most of its calls."""
    points = list(points)
    return points if FULL else [points[0], *chance.sample(points[1:], len(points) // 40)]


class Life:
    """Of one data folder: what was answered, by one hub after the other."""

    def __init__(self, begin, home, fault):  # noqa: F811
        self.begin, self.home, self.fault = begin, home, fault
        self.kept, self.n, self.tried = [], 0, 0
        self.hub = self.start(home, fault)

    def start(self, home, fault=None):  # noqa: F811
        before = files(home)
        hub = self.begin(home, fault)
        hub.token  # read before anything fails
        until(lambda: hub.ask(path='/readyz').status == 200, what='a hub that is ready')
        lost = before - files(home)
        assert not lost, lost
        self.tried += 1
        return hub

    def ask(self, act):
        """Whether it was answered, with success; None: the hub did not answer."""
        try:
            act.do(self.hub, self.n)
        except Failed as e:
            assert e.status >= 500, e
            return None
        except GONE:
            return None
        return True

    def holds(self, hub, about):
        lost = [(type(act).__name__, n) for act, n in self.kept if not act.is_done(hub, n)]
        assert not lost, (SEED, *about, lost)
        try:
            check_audit(hub)
        except AssertionError as e:
            # Its head may reach the disk before records that nobody was promised.
            assert about[-1] == 'cut' and 'records before this one are lost' in str(e), about

    def kill(self):
        self.hub.proc.kill()
        self.hub.proc.wait()


def files(home):  # noqa: F811
    """What stands for somebody's work in a data folder: the numbers of its files."""
    found = set()
    for top in ('snapshots', 'workspaces', 'conversations'):
        for folder, _, names in os.walk(os.path.join(home, top)):
            if not set(os.path.relpath(folder, home).split('/')) & set(PASSING):
                found |= {(os.lstat(os.path.join(folder, name)).st_ino, name) for name in names
                          if not name.startswith('.')}
    return found


def test_killed_at_each_change(begin, library, home, tmp_path):  # noqa: F811
    place = os.path.join(tmp_path, 'place')
    os.mkdir(place)
    life, chance = Life(begin, home, Fault(library, home, place, power=True)), random.Random(SEED)
    cuts = 0
    for act in (act() for act in ACTS.values() if act.lasts and not act.shared):
        act.prepare(life.hub, life.n)
        life.fault.arm(CHANGES, 'fail', LAST)
        assert life.ask(act), act
        changes = life.fault.disarm()
        life.kept.append((act, life.n))
        for nth, mode in chosen(((n, mode) for n in range(1, changes + 1)
                                 for mode in ('kill_before', 'kill_after')), chance):
            life.n += 1
            about = (type(act).__name__, mode, nth)
            act.prepare(life.hub, life.n)
            with life.fault.armed(CHANGES, mode, nth):
                answered = life.ask(act)
            if answered:
                life.kept.append((act, life.n))
            life.kill()
            for _ in range(8 if FULL else 1):
                copy = os.path.join(tmp_path, f'cut{cuts}')
                life.fault.cut(copy, chance)
                shutil.copy(os.path.join(home, 'config.json'), copy)
                again = life.start(copy)
                life.holds(again, (*about, 'cut'))
                assert again.end() == 0, again.said()
                shutil.rmtree(copy)
                cuts += 1
            life.hub = life.start(home, life.fault)
            if not act.is_done(life.hub, life.n):
                assert not answered, (SEED, *about)
                if isinstance(act, Stop):
                    state = life.hub.call('GET', f'/v1/sandboxes/b{life.n}')['state']
                    assert state == 'running', (SEED, *about, state)
                act.do(life.hub, life.n)
            assert act.is_done(life.hub, life.n), (SEED, *about)
            life.kept.append((act, life.n))
        life.n += 1
    life.holds(life.hub, ('at the end',))
    assert life.hub.end() == 0
    print(f'{life.tried - cuts} starts after kills, {cuts} after power cuts')


@pytest.mark.parametrize('name, kind, mode', [('key.create', 'sync', 'kill_before'),
                                              ('conversation.update', 'rename', 'kill_after')])
def test_what_the_next_hub_tells_is_on_the_disk(
        begin, library, home, tmp_path, name, kind, mode):  # noqa: F811
    """Also what was written by one that was killed before it was synced."""
    place, copy = os.path.join(tmp_path, 'place'), os.path.join(tmp_path, 'cut')
    os.mkdir(place)
    life, act = Life(begin, home, Fault(library, home, place, power=True)), ACTS[name]()
    act.prepare(life.hub, life.n)
    with life.fault.armed(kind, mode):
        assert not life.ask(act)
    life.kill()
    life.hub = life.start(home, life.fault)
    assert act.is_done(life.hub, life.n)
    life.kept.append((act, life.n))
    life.fault.cut(copy)
    shutil.copy(os.path.join(home, 'config.json'), copy)
    life.holds(life.start(copy), ('cut',))


def test_a_file_of_the_audit_log_is_whole_before_the_next_begins(
        begin, library, home, tmp_path):  # noqa: F811
    """Whoever syncs the record of an act in the next file syncs that one alone."""
    place, copy = os.path.join(tmp_path, 'place'), os.path.join(tmp_path, 'cut')
    os.mkdir(place)
    config = os.path.join(home, 'config.json')
    with open(config, 'w', encoding='utf-8') as f:
        json.dump({**CONFIG, 'audit': {'file_mb': 1}}, f)
    life, act = Life(begin, home, Fault(library, home, place, power=True)), KeyCreate()
    act.prepare(life.hub, 0)
    while not os.path.exists(os.path.join(home, 'audit', '000002.jsonl')):
        for _ in range(20):
            life.hub.call('GET', '/v1/sandboxes')
    assert life.ask(act)
    life.kept.append((act, 0))
    life.kill()
    life.fault.cut(copy)
    shutil.copy(config, copy)
    life.holds(life.start(copy), ('at the next file',))


class Again(Act):
    """The start of a stopped sandbox."""

    def prepare(self, hub, n):
        hub.create(id=f'a{n}')
        hub.exec(f'a{n}', 'echo kept > f')
        hub.post(f'/v1/sandboxes/a{n}/stop')

    def do(self, hub, n):
        hub.post('/v1/resume', sandbox=f'a{n}')

    def all_kept(self, hub, n, about):
        for i in range(n + 1):
            told = hub.call('GET', f'/v1/sandboxes/a{i}')
            assert told['state'] == 'stopped', (*about, i, told)
            self.do(hub, i)
            assert hub.exec(f'a{i}', 'cat f; echo more > f')['stdout'] == 'kept\n', (*about, i)


def test_what_a_stop_kept_outlives_a_start(begin, library, home, tmp_path):  # noqa: F811
    """A machine or a warden that ends takes what was written since the stop, and no more. Control:
    what has a newer copy, or is terminated, is gone."""
    place = os.path.join(tmp_path, 'place')
    os.mkdir(place)
    life, chance = Life(begin, home, Fault(library, home, place, power=True)), random.Random(SEED)
    again = Again()
    again.prepare(life.hub, 0)
    life.fault.arm(CHANGES, 'fail', LAST)
    assert life.ask(again)
    changes = life.fault.disarm()
    points = [(nth, mode) for nth in range(1, changes + 1)
              for mode in ('kill_before', 'kill_after')]
    for n, (nth, mode) in enumerate([(LAST, 'kill_after'), *chosen(points, chance)], 1):
        again.prepare(life.hub, n)
        with life.fault.armed(CHANGES, mode, nth):
            life.ask(again)
        life.kill()
        copy = os.path.join(tmp_path, f'cut{n}')
        life.fault.cut(copy, chance)
        shutil.copy(os.path.join(home, 'config.json'), copy)
        cut = life.start(copy)
        again.all_kept(cut, n, (SEED, nth, mode, 'cut'))
        assert cut.end() == 0, cut.said()
        shutil.rmtree(copy)
        os.kill(host.warden_of(home), signal.SIGKILL)
        life.hub = life.start(home, life.fault)
        again.all_kept(life.hub, n, (SEED, nth, mode))
    hub, kept = life.hub, os.path.join(home, 'snapshots')
    assert archives(kept) == n + 1
    hub.post('/v1/sandboxes/a0/stop')
    again.do(hub, 0)
    assert hub.exec('a0', 'cat f')['stdout'] == 'more\n'
    until(lambda: archives(kept) == n + 1, what='one archive of each')
    for i in range(n + 1):
        hub.delete(f'a{i}')
    until(lambda: archives(kept) == 0, what='none of what is terminated')
    assert hub.end() == 0


def archives(folder):
    return len([name for name in os.listdir(folder) if name.endswith('.tar.zst')])
