"""Idle sandboxes sleep: they have no process then, and whoever uses one by any of the ways in is
served as ever. At every moment of falling asleep and waking, and what it keeps:
tests/engine/sleep.c; with hubs and wardens that are killed: test_kills.py."""

import concurrent.futures
import os
import signal

import pytest

import host
from client import until
from rest import Failed
from talk import Exec
from test_readopt import begin as begin_home, kill

pytestmark = pytest.mark.rights

AFTER = 0.1  # seconds


@pytest.fixture
def begin(begin_home):
    """The same without a pool, and sandboxes sleep soon."""
    def start(after=AFTER):
        return begin_home('--pool', '0', '--sleep-after', str(after))
    start.home = begin_home.home
    return start


def inits(hub):
    return [p for p in host.below(hub.proc.pid).values() if p.comm == 'holt-init']


def asleep(hub, n=1):
    until(lambda: hub.metrics()['holt_sandboxes_asleep'] == n, what=f'{n} that sleep')


def test_it_has_no_process(begin):
    hub = begin()
    box = hub.create()
    asleep(hub)
    assert not inits(hub)
    assert hub.call('GET', f'/v1/sandboxes/{box}')['state'] == 'running'
    assert hub.call('GET', f'/v1/sandboxes/{box}/usage')['disk_bytes'] >= 0
    asleep(hub)  # to be looked at is no use
    job = hub.exec(box, 'exec sleep 1000', background=True)['exec_id']
    until(lambda: len(inits(hub)) == 1, what='its first process')
    asleep(hub, 0)
    hub.call('DELETE', f'/v1/sandboxes/{box}/execs/{job}')
    asleep(hub)
    assert not inits(hub)


def test_every_way_in(begin):
    hub = begin()
    box = hub.create()
    file = f'/v1/sandboxes/{box}/files/archive?path=/workspace'

    def shell():
        with Exec(hub, box, 'cat', tty={'cols': 80, 'rows': 24}) as x:
            x.type(b'typed\n\x04')
            return b'typed' in x.end().out

    ways = {
        'write': lambda: hub.post('/v1/files/write', sandbox=box, path='f', content='x'),
        'read': lambda: hub.post('/v1/files/read', sandbox=box, path='f')['content'] == 'x',
        'exec': lambda: hub.exec(box, 'cat f')['stdout'] == 'x',
        'terminal': shell,
        'background': lambda: hub.exec(box, 'echo said', background=True)['exec_id'],
        'processes': lambda: hub.call('GET', f'/v1/sandboxes/{box}/processes')['processes'] == [],
        'archive': lambda: b'f' in hub.raw('GET', file).body,
        'connect': lambda: hub.unary('Stat', box, path='f'),
        'diff': lambda: hub.call('GET', f'/v1/sandboxes/{box}/diff'),
        'snapshot': lambda: hub.post(f'/v1/sandboxes/{box}/snapshots')['id'],
    }
    for name, use in ways.items():
        asleep(hub)
        assert use(), name
    asleep(hub)
    hub.post('/v1/pause', sandbox=box)
    with pytest.raises(Failed, match='paused'):
        hub.exec(box, 'true')
    hub.post('/v1/resume', sandbox=box)
    asleep(hub)
    child = hub.post(f'/v1/sandboxes/{box}/fork')['id']
    asleep(hub, 2)
    assert hub.exec(child, 'cat f')['stdout'] == 'x'
    for snapshot in hub.call('GET', '/v1/snapshots')['snapshots']:
        hub.call('DELETE', f'/v1/snapshots/{snapshot["id"]}')
    asleep(hub, 2)
    hub.delete(box)
    hub.delete(child)


def test_what_has_ended_is_remembered(begin):
    """Output of a program in the background, read when nothing runs any more."""
    hub = begin()
    box = hub.create()
    job = hub.exec(box, 'sleep 0.3; seq 1000; exit 3', background=True)['exec_id']
    asleep(hub)
    state = hub.call('GET', f'/v1/sandboxes/{box}/execs/{job}')
    assert (state['state'], state['exit_code']) == ('exited', 3), state
    assert (hub.call('GET', f'/v1/sandboxes/{box}/execs/{job}/output')['next_offset']
            == len(''.join(f'{n}\n' for n in range(1, 1001))))
    asleep(hub)


def test_what_runs_keeps_it_awake(begin):
    hub = begin()
    box, other = hub.create(), hub.create()
    job = hub.exec(box, 'exec sleep 1000', background=True)['exec_id']
    asleep(hub)
    for _ in range(20):
        assert hub.exec(other, 'true')['exit_code'] == 0
        asleep(hub)  # the other alone
    assert hub.call('GET', f'/v1/sandboxes/{box}/execs/{job}')['state'] == 'running'
    hub.call('DELETE', f'/v1/sandboxes/{box}/execs/{job}')
    asleep(hub, 2)


def test_many_are_woken_at_once(begin):
    hub = begin()
    boxes = [hub.create() for _ in range(40)]
    for number, box in enumerate(boxes):
        hub.post('/v1/files/write', sandbox=box, path='n', content=str(number))
    asleep(hub, 40)
    assert not inits(hub)
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        said = list(pool.map(lambda box: hub.exec(box, 'cat n')['stdout'], boxes * 3))
    assert said == [str(n) for n in range(40)] * 3
    asleep(hub, 40)


def test_another_hub_finds_it_asleep(begin):
    hub = begin()
    box = hub.create()
    hub.post('/v1/files/write', sandbox=box, path='f', content='kept')
    asleep(hub)
    kill(hub)
    hub = begin()
    asleep(hub)
    assert hub.call('GET', f'/v1/sandboxes/{box}')['state'] == 'running'
    assert hub.exec(box, 'cat f')['stdout'] == 'kept'
    asleep(hub)


def test_lost_with_its_warden(begin):
    hub = begin()
    box = hub.create()
    asleep(hub)
    os.kill(host.warden_of(begin.home) or host.program(hub.proc.pid, 'holt-warden'), signal.SIGKILL)
    until(lambda: hub.call('GET', f'/v1/sandboxes/{box}')['state'] == 'lost', what='the loss')
    asleep(hub, 0)
    hub.delete(box)


def test_not_at_once(begin):
    """0 is for never."""
    hub = begin(0)
    boxes = [hub.create() for _ in range(2)]
    hub.exec(boxes[0], 'sleep 1')
    asleep(hub, 0)
    assert len(inits(hub)) == 2


def test_bad_times(start, me):
    for text in ('-1', 'x', '', '25h'):
        done = me.run('serve', '--sleep-after', text, '--listen', '127.0.0.1:0')
        assert done.returncode == 2 and b'--sleep-after' in done.stderr, done
