"""A hub that is killed in the middle of its work:
what it had acknowledged is there in the next one, and nothing else.

One thing at a time; test_kills.py does it at any moment.
"""

import json
import os
import signal

import pytest

import host
from client import until
from rest import Rest
from test_serve import Session

pytestmark = pytest.mark.rights


@pytest.fixture
def begin(residue, who):
    """Starts a hub, again and again in one home; what is left at the end is ended in order."""
    home = who.log() + '.home'
    os.mkdir(home, 0o700)
    os.chown(home, who.uid, who.uid)
    started = []

    def start(*arguments):
        started.append(Rest(who, home, '--listen', '127.0.0.1:0', '--socket', 'none', '--pool', '2',
                            *arguments))
        return started[-1]
    start.home, start.folder = home, os.path.join(home, 'warden')
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
    """Not by where this login has its sockets: another registry's hub would end the sandboxes as
    strangers."""
    started = []

    def folder():
        path = who.log() + '.d'
        os.mkdir(path, 0o700)
        os.chown(path, who.uid, who.uid)
        return path

    def start(data, runtime):
        env = {'HOLT_HOME': '', 'XDG_DATA_HOME': data, 'XDG_RUNTIME_DIR': runtime}
        started.append(Rest(who, data, '--listen', '127.0.0.1:0', '--socket', 'none', '--pool', '0',
                            env=env))
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
    done = hub.who.run('serve', '--listen', '127.0.0.1:0', '--socket', 'none', env=hub.env,
                       text=True)
    assert done.returncode == 125 and 'another' in done.stderr, done
    assert session.run(sandbox, 'echo well') == 'well\n'


def test_an_exec_with_a_key_is_not_run_again(begin):
    """In the background the next hub tells of it; in the foreground it says that it does not
    know."""
    def ask(key, **more):
        return hub.asked('POST', '/v1/exec', {'sandbox': sandbox, **more},
                         fields=[f'Idempotency-Key: {key}'])
    hub = begin()
    sandbox = hub.create()
    behind = {'command': 'echo x >> behind; exec sleep 100', 'background': True}
    first = ask('behind', **behind)
    assert first[0] == 200
    before = {'command': 'echo x >> before; exec sleep 100'}
    with hub.wire() as wire:
        wire.send(hub.request('POST', '/v1/exec', body=json.dumps({'sandbox': sandbox, **before}),
                              fields=['Idempotency-Key: before']))
        until(lambda: hub.exec(sandbox, 'cat before')['stdout'] == 'x\n', what='it runs')
        kill(hub)
    hub = begin()
    assert ask('behind', **behind) == first
    status, answer = ask('before', **before)
    assert status == 409 and 'not known' in answer['error']['cause']
    assert hub.exec(sandbox, 'cat behind before')['stdout'] == 'x\nx\n'
