"""The warden, the janitor and a sandbox's init are static, so nothing is loaded into them: strace
makes their system calls fail for once, or ends the warden before them (N = 1, 2, ... of each
name). A failure that passes ends nothing. What was answered outlives a warden that is killed.
holt-pack has nothing of the hub's environment, and with that no library either.
`make test` does a part of the rounds, `make soak` all."""

import collections
import os
import random
import signal

import pytest

import host
from client import until
from rest import Failed
from soak import FULL
from test_debug import needs
from test_hub_life import failing
from test_readopt import begin as begin_home, warden_of  # noqa: F401
from test_faults import SEED

# Calls that a busy host makes fail for a moment, and how.
PASS = {'recvmsg': ('ENOMEM', 'ENOBUFS', 'EINTR'), 'recvfrom': ('ENOMEM', 'ENOBUFS', 'EINTR'),
        'sendmsg': ('ENOMEM', 'ENOBUFS', 'EINTR'), 'sendto': ('ENOMEM', 'ENOBUFS', 'EINTR'),
        'poll': ('ENOMEM', 'EINTR'), 'epoll_wait': ('EINTR',), 'epoll_pwait': ('EINTR',),
        'read': ('EINTR',)}


def few(points, chance, n):
    points = list(points)
    return points if FULL else chance.sample(points, min(len(points), n))


def act(hub, box, n):
    """Everything of a sandbox that a warden or an init has a hand in."""
    hub.post('/v1/files/write', sandbox=box, path='f', content=str(n))
    assert hub.exec(box, 'cat f')['stdout'] == str(n)
    fork = hub.post(f'/v1/sandboxes/{box}/fork', count=1)['sandboxes'][0]['id']
    snapshot = hub.post(f'/v1/sandboxes/{box}/snapshots')['id']
    hub.delete(fork)
    hub.delete(hub.create())
    return snapshot


def calls_of(hub, box, pid, tmp_path):
    """What a process calls in an act: the names, and how often."""
    trace = tmp_path / f'calls{pid}'
    with failing(pid, 'all', 'delay_enter=0', trace):
        act(hub, box, 0)
    with open(trace, encoding='utf-8') as f:
        return collections.Counter(line.split('(')[0] for line in f if line[0].isalpha())


@needs('strace')
def test_a_failure_that_passes_ends_nothing(begin_home, tmp_path):  # noqa: F811
    hub, chance, tried = begin_home('--pool', '0'), random.Random(SEED), 0
    box = hub.create()
    hub.exec(box, 'sleep 100000 >/dev/null 2>&1 &')
    warden = warden_of(hub)
    sleeper = host.with_argument('100000', warden)[0].pid
    for pid in (warden, host.init_of(sleeper)):
        calls = calls_of(hub, box, pid, tmp_path)
        points = [(call, why, nth) for call in PASS for why in PASS[call]
                  for nth in range(1, calls[call] + 1)]
        assert len(points) > 10, calls
        for call, why, nth in few(points, chance, 4):
            about = (SEED, host.Process(pid).comm, call, why, nth)
            with failing(pid, call, f'error={why}:when={nth}', tmp_path / f'{tried}') as failed:
                try:
                    act(hub, box, tried)
                except Failed as e:
                    assert e.code in ('quota_exceeded', 'limit_exceeded', 'io_error'), (e, *about)
                assert failed() <= 1, about
            assert hub.exec(box, 'echo well')['stdout'] == 'well\n', about
            act(hub, box, tried)
            tried += 1
    assert warden_of(hub) == warden and os.path.isdir(f'/proc/{sleeper}')
    print(f'{tried} calls failed')


LOST = ('sandbox_lost', 'sandbox_not_found', 'not_found', 'transport_failed', 'io_error',
        'conflict', 'unavailable')


def new_box(hub):
    try:
        return hub.create()
    except Failed as e:
        assert e.code in LOST, e
        return None


@needs('strace')
def test_the_warden_is_killed_before_each_call(begin_home, tmp_path):  # noqa: F811
    """A kill after a call is one before the next, whichever that is."""
    hub, chance, kept, tried = begin_home('--pool', '0'), random.Random(SEED), [], 0
    calls = calls_of(hub, hub.create(), warden_of(hub), tmp_path)
    for call, nth in few([(call, nth) for call in sorted(calls)
                          for nth in range(1, calls[call] + 1)], chance, 4):
        about = (SEED, call, nth)
        box, warden = hub.create(), warden_of(hub)
        with failing(warden, call, f'signal=KILL:when={nth}', tmp_path / f'{tried}'):
            try:
                kept.append(act(hub, box, tried))
            except Failed as e:
                assert e.code in LOST, (e, *about)
        if os.path.isdir(f'/proc/{warden}'):
            os.kill(warden, signal.SIGKILL)  # fewer calls than before: it waits for the next one
        fresh = until(lambda: new_box(hub), what=f'a new sandbox after {about}')
        assert hub.exec(fresh, 'echo well')['stdout'] == 'well\n', about
        assert hub.ask(path='/readyz').status == 200, about
        for name in (box, fresh):
            hub.sweep(name)
        tried += 1
    there = {s['id'] for s in hub.call('GET', '/v1/snapshots')['snapshots']}
    assert set(kept) <= there, (SEED, kept, there)
    for snapshot in kept:
        box = hub.post(f'/v1/snapshots/{snapshot}/restore')['id']
        assert hub.exec(box, 'cat f')['stdout'].isdigit()
        hub.delete(box)
    print(f'{tried} wardens killed, {len(kept)} answered')


@needs('strace')
def test_what_holt_pack_can_not_sync_is_no_snapshot(begin_home, tmp_path):  # noqa: F811
    """An archive that is on its way holds it. Control: the same archive without a failure."""
    hub = begin_home('--pool', '0')
    box = hub.create()
    taken = hub.post(f'/v1/sandboxes/{box}/snapshots')['id']
    packed = hub.raw('GET', f'/v1/snapshots/{taken}/export').body
    head = hub.request('POST', '/v1/snapshots', fields=['Content-Type: application/zstd',
                                                        f'Content-Length: {len(packed)}'])

    def packer():
        """Not the confined one, which it starts."""
        found = {pid: p for pid, p in host.below(hub.proc.pid).items() if p.comm == 'holt-pack'}
        return [pid for pid, p in found.items() if p.parent not in found]
    for fails in (True, False):
        until(lambda: not packer(), what='the end of the one before')
        with hub.wire() as wire:
            wire.send(head.encode() + packed[:-1])
            pid, = until(packer, what='what reads it')
            with failing(pid, 'fsync', 'error=EIO' if fails else 'delay_enter=0',
                         tmp_path / 'trace'):
                wire.send(packed[-1:])
                assert (wire.reply().status >= 500) == fails
    hub.delete(box)
