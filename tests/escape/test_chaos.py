"""N8: much at once, with sandboxes killed from outside in between. What was lost is lost with a
typed error, the rest works on, and in the end nothing is left."""

import os
import random
import signal

import pytest

import host
import world as worlds
from client import Failed

TYPED = {'sandbox_lost', 'sandbox_not_found', 'cancelled', 'conflict', 'limit_exceeded',
         'path_not_found', 'pids_exhausted',
         'memory_exhausted'}


def outcome(client, request):
    """'ok' or the code of a failure; nothing else is an answer."""
    answer = client.wait(request, 60)
    assert 'result' in answer, answer
    try:
        client.inbox.append(answer)
        client.result(request, 60)
        return 'ok'
    except Failed as e:
        assert e.code in TYPED, e
        return e.code


def some_call(client, sandboxes, dice):
    sandbox = dice.choice(sandboxes)
    name, arguments = dice.choice([
        ('sandbox_exec', {'command': 'echo x; sleep 0.05', 'timeout_seconds': 5}),
        ('sandbox_exec', {'command': 'sleep 60', 'timeout_seconds': 1}),
        ('sandbox_exec', {'command': 'yes | head -c 3000000', 'timeout_seconds': 5}),
        ('sandbox_write_file', {'path': f'/workspace/{dice.randrange(5)}', 'content': 'x' * 50000}),
        ('sandbox_read_file', {'path': f'/workspace/{dice.randrange(5)}'}),
        ('sandbox_fork', {'replicas': 2})])
    return client.start_tool(name, sandbox=sandbox.id, **arguments)


@pytest.mark.tries(what='kill PID 1 of sandboxes, end them twice, and go on calling',
                   by='typed errors, nothing is waited for')
def test_chaos(own_hub):
    client, dice = own_hub('--pool', '3'), random.Random(8)
    victims, survivor = [client.create() for _ in range(6)], client.create()
    requests = [some_call(client, victims, dice) for _ in range(40)]
    for victim in victims[:3]:
        mark = f'77.{dice.randrange(10 ** 6)}'
        requests.append(victim.start(f'exec sleep {mark}', timeout_seconds=60))
        # ping() takes what comes meanwhile: a hub whose answers nobody reads waits
        sleeper = worlds.until(lambda m=mark: client.ping()
                               and host.with_argument(m, client.pid))[0]
        os.kill(host.init_of(sleeper.pid), signal.SIGKILL)
        requests += [some_call(client, victims, dice) for _ in range(10)]
    for victim in victims[3:]:
        requests += [client.start_tool('sandbox_terminate', sandbox=victim.id) for _ in range(2)]
        requests += [some_call(client, victims, dice) for _ in range(5)]
    codes = [outcome(client, request) for request in requests]
    assert 'ok' in codes and {'sandbox_lost', 'sandbox_not_found'} & set(codes), codes
    worlds.healthy(survivor)
    worlds.healthy(client.create())
    assert client.close() == 0


@pytest.mark.tries(what='kill the hub, or the warden, in the middle of everything',
                   by='ends with its parent')
@pytest.mark.parametrize('victim', ['hub', 'warden'])
def test_killed_in_the_middle(own_hub, victim):
    client, dice = own_hub('--pool', '3'), random.Random(9)
    sandboxes = [client.create() for _ in range(4)]
    requests = [some_call(client, sandboxes, dice) for _ in range(30)]
    requests += [client.start_tool('sandbox_create', pool='host') for _ in range(8)]
    if victim == 'hub':
        os.kill(client.pid, signal.SIGKILL)
        return  # the fixture looks that nothing is left
    os.kill(host.program(client.pid, 'holt-warden'), signal.SIGKILL)
    for request in requests:
        outcome(client, request)
    client.close()
