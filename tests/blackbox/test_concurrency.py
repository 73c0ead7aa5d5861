"""Nothing waits for what has nothing to do with it."""

import pytest

from client import Failed, TOOLS, data_of, until


def gate(sb):
    """Whoever reads a line of `go` waits until one is written: somebody holds it open."""
    sb.sh('mkfifo go; sleep 1000 <>go >/dev/null 2>&1 &')


def let_through(sb, n):
    sb.sh(f'yes "" | head -n {n} >go')


def test_a_long_exec_delays_no_other_request(box):
    """They are answered while it runs, which is until it is cancelled."""
    one, two = box(), box()
    hub = one.client
    long = one.start('sleep 600', timeout_seconds=600)
    until(lambda: one.running('sleep') == 1, what='it')
    for i in range(50):
        hub.ping()
        for sb in (one, two):
            assert sb.sh('echo short') == 'short\n'
        assert len(hub.request('tools/list')['result']['tools']) == TOOLS
        two.write('f', str(i))
        assert two.content('f') == str(i)
    assert long not in hub.arrived
    hub.notify('notifications/cancelled', {'requestId': long})


def test_sixty_four_execs_at_once(box):
    """None ends before all have begun."""
    sbs = [box() for _ in range(4)]
    for sb in sbs:
        gate(sb)
    calls = [sbs[i % 4].start(f'touch begun-{i}; read x <go; echo {i}; echo e{i} >&2; exit {i}',
                              timeout_seconds=60) for i in range(64)]
    for sb in sbs:
        until(lambda sb=sb: sb.sh('ls begun-* 2>/dev/null | wc -l') == '16\n', what='all of them')
    for sb in sbs:
        let_through(sb, 16)
    for i, call in enumerate(calls):
        got = sbs[0].client.result(call)
        assert (got['stdout'], got['stderr'], got['exit_code']) == (f'{i}\n', f'e{i}\n', i)


def test_answers_come_as_they_are_ready(sb):
    gate(sb)
    slow = sb.start('read x <go; echo slow')
    fast = sb.start('echo fast')
    assert sb.client.result(fast)['stdout'] == 'fast\n'
    assert slow not in sb.client.arrived
    let_through(sb, 1)
    assert sb.client.result(slow)['stdout'] == 'slow\n'


def test_sixteen_creates_at_once(hub):
    calls = [hub.start_tool('sandbox_create', pool='host') for _ in range(16)]
    ids = [hub.result(call)['sandbox'] for call in calls]
    assert len(set(ids)) == 16
    calls = [hub.start_tool('sandbox_exec', sandbox=i, command='echo $$') for i in ids]
    assert all(hub.result(call)['exit_code'] == 0 for call in calls)
    for call in [hub.start_tool('sandbox_terminate', sandbox=i) for i in ids]:
        hub.result(call)


def refused(answer):
    """At either of the bounds, that of requests and that of calls."""
    if 'result' in answer and not answer['result'].get('isError'):
        return False
    assert 'limit_exceeded' in str(answer), answer
    return True


def test_requests_over_the_bound_are_refused_and_the_others_served(spawn):
    """None of them ends before all have been sent; some are then given up, so that there is room to
    let the others through."""
    mcp = spawn('--pool', '0')
    sb = mcp.create()
    gate(sb)
    calls = [sb.start('read x <go; echo served', max_output_bytes=1024, timeout_seconds=100)
             for _ in range(300)]
    mcp.request('ping')  # answered or refused, behind all of them
    given_up, kept = calls[:40], calls[40:]
    for call in given_up:
        mcp.notify('notifications/cancelled', {'requestId': call})
    until(lambda: not refused(mcp.wait(sb.start('true'))), what='room')
    let_through(sb, len(kept))
    answers = [mcp.wait(call) for call in kept]
    served = [answer for answer in answers if not refused(answer)]
    assert 0 < len(answers) - len(served) < 60
    assert {data_of(answer['result'])['stdout'] for answer in served} == {'served\n'}
    assert sb.sh('echo well') == 'well\n'


@pytest.mark.parametrize('n', [2, 8])
def test_terminating_twice_at_once(hub, n):
    sb = hub.create()
    calls = [hub.start_tool('sandbox_terminate', sandbox=sb.id) for _ in range(n)]
    done = 0
    for call in calls:
        try:
            hub.result(call)
            done += 1
        except Failed as e:
            assert e.code in ('sandbox_not_found', 'conflict'), e
    assert done >= 1


def test_termination_ends_execs(hub):
    sb = hub.create()
    calls = [sb.start('sleep 100', timeout_seconds=100) for _ in range(5)]
    sb.terminate()
    for call in calls:
        with pytest.raises(Failed) as e:
            hub.result(call)
        assert e.value.code == 'cancelled'


def test_output_of_one_is_not_mixed_with_another(sb):
    calls = [sb.start(f'for i in $(seq 500); do echo {n}-$i; done') for n in range(20)]
    for n, call in enumerate(calls):
        assert sb.client.result(call)['stdout'] == ''.join(f'{n}-{i}\n' for i in range(1, 501))


def test_floods_from_many_delay_nobody(box):
    """Others are served while they flow, which is until they are cancelled."""
    one, two = box(), box()
    floods = [one.start('yes', timeout_seconds=600) for _ in range(4)]
    until(lambda: one.running('yes') == 4, what='the floods')
    for _ in range(20):
        one.client.ping()
        assert two.sh('echo served') == 'served\n'
    assert one.running('yes') == 4 and not set(floods) & set(one.client.arrived)
    for flood in floods:
        one.client.notify('notifications/cancelled', {'requestId': flood})
    until(lambda: one.running('yes') == 0, what='their end')


def test_many_cancelled_at_once_cost_no_sandbox(spawn):
    """Killing takes its first process a while, and dying the programs; that is no reason to give
    the sandbox up, nor to end what else runs in it."""
    mcp = spawn('--pool', '0')
    sb = mcp.create()
    sb.write('f', 'kept')
    sb.start('exec tail -f f', timeout_seconds=300)
    for _ in range(2):
        calls = [sb.start('sleep 60 & sleep 60', max_output_bytes=1024, timeout_seconds=60)
                 for _ in range(128)]
        for call in calls:
            mcp.notify('notifications/cancelled', {'requestId': call})
        until(lambda: sb.running('sleep') == 0, what='their end')
    assert sb.content('f') == 'kept' and sb.running('tail') == 1
