"""A hub that is killed in the middle of its work: what it had acknowledged is there in the next one, and nothing else.

The engine's own rounds are in tests/engine/keep_crash.c; here it is the real program over its door.
"""

import os
import random
import signal
import threading

import pytest

import host
from client import until
from door import Closed
from test_serve import Serve, Session

ROUNDS = 12
WORKERS = 3
LATEST = 0.25  # seconds of work before the kill


@pytest.fixture
def begin(residue, who):
    """Starts a hub, again and again in one home; what is left at the end is ended in order."""
    home = who.log() + '.home'
    os.mkdir(home, 0o700)
    os.chown(home, who.uid, who.uid)
    started = []

    def start(*arguments):
        started.append(Serve(who, home, '--listen', '127.0.0.1:0', '--socket', 'none', '--pool', '2', *arguments))
        return started[-1]
    start.folder = os.path.join(home, 'warden')
    yield start
    try:
        if started and started[-1].proc.poll() is None:
            assert started[-1].end() == 0, started[-1].said()
            until(lambda: not os.listdir(start.folder), what='nothing in the folder')
        for one in started:
            assert 'ERROR' not in one.said() and 'Sanitizer' not in one.said(), one.said()
    finally:
        for one in started:
            one.kill()


def kill(hub):
    hub.killed = True
    hub.proc.kill()
    hub.proc.wait()


def warden_of(hub):
    return host.program(hub.proc.pid, 'holt-warden')


class Known:
    """What a worker was told of one sandbox."""

    def __init__(self):
        self.begun = self.done = 0
        self.sleeps = self.ending = False


class Worker(threading.Thread):
    """Makes sandboxes, fills, forks and ends them until its hub is gone."""

    def __init__(self, hub, seed):
        super().__init__(daemon=True)
        self.hub, self.random, self.known, self.wrong = hub, random.Random(seed), {}, None

    def run(self):
        try:
            session = Session(self.hub)
            while True:
                self.step(session)
        except (OSError, Closed, StopIteration, EOFError):
            pass
        except BaseException as e:  # a test's thread must not end unseen
            if not getattr(self.hub, 'killed', False):
                self.wrong = e

    def call(self, session, tool, **arguments):
        with self.hub.wire() as wire:
            session.call(wire, tool, **arguments)
            result = session.result(wire)
            assert not result.get('isError'), result
            return result['structuredContent']

    def step(self, session):
        live = [sandbox for sandbox, known in self.known.items() if not known.ending]
        what = self.random.random()
        if not live or what < 0.2:
            sandbox = session.create()
            self.known[sandbox] = Known()
            session.run(sandbox, 'sleep 1000 >/dev/null 2>&1 &')
            self.known[sandbox].sleeps = True
            return
        sandbox = self.random.choice(live)
        known = self.known[sandbox]
        if what < 0.5:
            known.begun += 1
            self.call(session, 'sandbox_write_file', sandbox=sandbox, path='n', content=str(known.begun))
            known.done = known.begun
        elif what < 0.65:
            known.begun += 1
            session.run(sandbox, f'echo {known.begun} > n')
            known.done = known.begun
        elif what < 0.8 and len(live) < 5:
            for child in self.call(session, 'sandbox_fork', sandbox=sandbox, replicas=2)['sandboxes']:
                self.known[child] = Known()
                self.known[child].begun = self.known[child].done = known.done
        elif len(live) > 2:
            known.ending = True
            self.call(session, 'sandbox_terminate', sandbox=sandbox)


def check(session, sandbox, known):
    if known.ending:
        return
    found = session.run(sandbox, 'cat n 2>/dev/null || echo 0').strip()
    assert found in (str(known.done), str(known.begun))
    if known.sleeps:
        assert session.run(sandbox, 'grep -sx sleep /proc/[0-9]*/comm | wc -l') == '1\n'


def test_killed_at_any_moment(begin):
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    everything = {}
    for number in range(ROUNDS):
        hub = begin()
        session = Session(hub)
        for sandbox, known in everything.items():
            check(session, sandbox, known)
        for sandbox in [s for s, k in everything.items() if not k.ending][6:]:
            session.run(sandbox, 'true')
            with hub.wire() as wire:
                session.call(wire, 'sandbox_terminate', sandbox=sandbox)
                assert not session.result(wire).get('isError')
            everything[sandbox].ending = True
        workers = [Worker(hub, seed + number * WORKERS + i) for i in range(WORKERS)]
        for worker in workers:
            worker.start()
        workers[0].join(chance.uniform(0.02, LATEST))
        kill(hub)
        for worker in workers:
            worker.join(30)
            assert worker.wrong is None, (seed, worker.wrong)
            everything.update(worker.known)
    session = Session(begin())
    for sandbox, known in everything.items():
        check(session, sandbox, known)


def test_the_warden_is_killed(begin):
    """Its sandboxes end with it, and the hub says so; new ones are made by another."""
    hub = begin()
    session = Session(hub)
    sandbox = session.create()
    os.kill(warden_of(hub), signal.SIGKILL)
    until(lambda: hub.metrics()['holt_sandboxes_lost_total'] == 1, what='the loss is known')
    with pytest.raises(AssertionError, match='sandbox_(lost|not_found)'):
        session.run(sandbox, 'true')
    assert session.run(session.create(), 'echo well') == 'well\n'


def test_both_are_killed(begin, residue):
    hub = begin()
    sandbox = Session(hub).create()
    warden = warden_of(hub)
    kill(hub)
    os.kill(warden, signal.SIGKILL)
    residue.check()
    again = begin()
    with pytest.raises(AssertionError, match='sandbox_(lost|not_found)'):
        Session(again).run(sandbox, 'true')
    assert Session(again).run(Session(again).create(), 'echo well') == 'well\n'


def test_found_by_the_registry_alone(residue, who):
    """Not by where this login has its sockets: another registry's hub would end the sandboxes as strangers."""
    started = []

    def folder():
        path = who.log() + '.d'
        os.mkdir(path, 0o700)
        os.chown(path, who.uid, who.uid)
        return path

    def start(data, runtime):
        env = {'HOLT_HOME': '', 'XDG_DATA_HOME': data, 'XDG_RUNTIME_DIR': runtime}
        started.append(Serve(who, data, '--listen', '127.0.0.1:0', '--socket', 'none', '--pool', '0', env=env))
        return started[-1]
    mine, other, here, there = [folder() for _ in range(4)]
    try:
        sandbox = Session(start(mine, here)).create()
        kill(started[-1])
        assert start(other, here).end() == 0, started[-1].said()
        assert Session(start(mine, there)).run(sandbox, 'echo well') == 'well\n'
        assert started[-1].end() == 0, started[-1].said()
    finally:
        for one in started:
            one.kill()


def test_one_hub_a_home(begin):
    hub = begin()
    session = Session(hub)
    sandbox = session.create()
    done = hub.who.run('serve', '--listen', '127.0.0.1:0', '--socket', 'none', env=hub.env, text=True)
    assert done.returncode == 125 and 'another' in done.stderr, done
    assert session.run(sandbox, 'echo well') == 'well\n'
