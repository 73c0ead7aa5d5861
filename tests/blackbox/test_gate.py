"""What a gateway must not let through, by the numbers of a list that is kept for that. What other
files test is named here; what is about servers of others waits for modules.

 7  the token: test_serve.py (test_the_token_is_nowhere_to_be_seen), test_keys.py
    (test_keys_are_nowhere); in addresses: here
 8  each route without it: test_serve.py, test_keys.py, which has it with too little, too
 9  what is another's: test_keys.py (test_a_session_is_its_principals, and each route, tool, verb)
22  what is denied or hidden: on every road test_policy.py; by other names, and by an old approval,
    here. Meta-tools and code mode wait for modules
23  approvals: test_approvals.py; nobody to ask: here. Hints of servers that are not trusted wait
    for modules
26  secrets: test_canary.py, test_secrets.py, test_redact.py
32  each principal's share: test_door.py (rate), test_concurrency.py; and here. Servers wait for
    modules
34  the audit log: tests/unit/guard_audit.c, test_audit.py, test_full_disk.py; forged lines: here
35  what people are shown: test_approvals.py (test_hostile_arguments_are_shown_escaped); what
    servers ask them waits for modules
"""

import concurrent.futures
import json
import os
import resource

import pytest

import host
from approval import pending
from client import until
from http_client import Door, Modern
from rest import Failed
from test_keys import as_bearer, key
from test_policy import Hub, deny
from test_serve import Session

ASK = {'rules': [{'name': 'ask', 'actions': ['sandbox.exec'], 'when': {'/command': '*asked*'},
                  'then': 'ask'}]}


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    home = tmp_path_factory.mktemp('gate')
    os.chown(home, me.uid, me.uid)
    with Hub(me, home, policy=ASK) as shared:
        shared.box = shared.create()
        yield shared
        shared.delete(shared.box)
    before.check()


@pytest.fixture
def pool():
    with concurrent.futures.ThreadPoolExecutor(40) as made:
        yield made


def verb(hub, *words):
    done = hub.me.run(*words, env=hub.env, text=True)
    assert done.returncode == 0, done
    return done.stdout


def answer(hub, one, decision, **more):
    return hub.post(f'/v1/approvals/{one["id"]}', decision=decision, **more)


def test_07_no_address_has_the_token(hub):
    """Neither as a parameter, which logs of others would keep, nor as a name and password."""
    token = hub.token
    for path in (f'/v1/sandboxes?token={token}', f'/v1/sandboxes?access_token={token}',
                 f'/v1/sandboxes?authorization=Bearer%20{token}', f'/mcp?token={token}',
                 f'/sse?token={token}'):
        assert hub.ask(path=path, token=None).status == 401, path
    assert hub.ask(path=f'/v1/sandboxes?token={token}').status == 400
    assert hub.ask(path='/v1/sandboxes').status == 200


def test_22_a_hidden_tool_has_no_other_name(hub):
    """Of a session that was narrowed, also by a list that is older than the narrowing."""
    whole, narrow = Session(hub), Session(hub, '/mcp?tools=sandbox_list')

    def call(session, name):
        with hub.wire() as wire:
            session.call(wire, name, sandbox=hub.box, command='touch hidden')
            return session.answer(wire)
    for name in ('sandbox_exec', 'mitto_sandbox_exec', 'holt_sandbox_exec', 'Sandbox_Exec',
                 'sandbox_exec ', 'sandbox.exec', 'exec', 'sandbox_list/../sandbox_exec',
                 'call_tool', 'sandbox_exec\u200b'):
        said = call(narrow, name)
        assert said.get('error', {}).get('code') == -32602, (name, said)
    hub.set(policy=deny('sandbox.exec'))  # its list is older, and does not help
    assert 'no sandbox.exec' in json.dumps(call(whole, 'sandbox_exec'))
    hub.set(policy=ASK)
    assert 'hidden' not in hub.exec(hub.box, 'ls')['stdout']


def test_22_an_old_approval_does_not_outvote_the_policy(hub, pool):
    run = pool.submit(hub.exec, hub.box, 'echo asked')
    answer(hub, pending(hub)[0], 'approve', scope='always')
    assert run.result(30)['stdout'] == hub.exec(hub.box, 'echo asked')['stdout'] == 'asked\n'
    hub.set(policy=deny('sandbox.exec'))
    with pytest.raises(Failed) as failed:
        hub.exec(hub.box, 'echo asked')
    assert failed.value.status == 403
    hub.set(policy=ASK)


def test_23_nobody_to_ask(hub):
    """Where there is no hub there is no door by which somebody could answer."""
    hub.set(policy={'rules': [{'name': 'runs', 'actions': ['sandbox.run'], 'then': 'ask'}]})
    done = hub.me.run('run', '--', 'echo', 'ran', env=hub.env, text=True)
    assert (done.returncode, done.stdout) == (125, '') and 'runs' in done.stderr, done
    hub.set(policy=ASK)
    assert hub.me.run('run', '--', 'echo', 'ran', env=hub.env, text=True).stdout == 'ran\n'


def test_32_one_key_leaves_room_for_others(hub, pool):
    """What one has waiting for a person, or opens, is bounded; others go on."""
    busy, other = (as_bearer(hub, key(hub, name, ['admin'])) for name in ('busy', 'other'))
    runs = [pool.submit(busy.exec, hub.box, f'echo asked {i}') for i in range(36)]
    refused = until(lambda: len(done := [r for r in runs if r.done()]) == 4 and done, 30)
    assert {r.exception().status for r in refused} == {429}, refused
    assert other.exec(hub.box, 'echo well')['stdout'] == 'well\n'
    run = pool.submit(other.exec, hub.box, 'echo asked too')
    mine, = [a for a in pending(hub, 33) if 'asked too' in a['arguments']]
    answer(hub, mine, 'approve')
    assert run.result(30)['stdout'] == 'asked too\n'
    hub.call('DELETE', '/v1/keys/busy')
    concurrent.futures.wait(runs, 30)
    until(lambda: not any(a['state'] == 'pending'
                          for a in hub.call('GET', '/v1/approvals')['approvals']), 30)
    hub.call('DELETE', '/v1/keys/other')


def test_32_one_key_leaves_streams_to_others(hub):
    """However many it opens: others open theirs, and have connections for their requests."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    busy, other = (as_bearer(hub, key(hub, name, ['read'])) for name in ('busy', 'other'))
    held = []

    def listens(of):
        held.append(Modern(Door(hub.address, of.token)).request(
            'subscriptions/listen', {'notifications': {'toolsListChanged': True}}))
        return held[-1].status == 200
    try:
        while listens(busy):
            assert len(held) < 1024
        assert len(held) > 500 and held[-1].status == 429
        assert listens(other)
        for of in (other, busy, hub):
            of.works()
    finally:
        for reply in held:
            reply.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for name in ('busy', 'other'):
            hub.call('DELETE', f'/v1/keys/{name}')


def test_34_no_line_is_forged(hub):
    """A name with line breaks and quotes is one record, and one line of the log."""
    forged = '{"seq":1,"who":"local","action":"key.create"}'
    replies = [hub.raw('POST', '/v1/exec', {'sandbox': f'x{mark}{forged}', 'command': 'true'})
               for mark in ('\n', '\r\n', '",', '\u2028', '\x00', '\\')]
    said = verb(hub, 'audit', 'tail', '-n', '1000', '-o', 'json').splitlines()
    records = {r.get('id'): r for r in map(json.loads, said)}
    for reply in replies:
        assert reply.status in (400, 404)
        record = records[reply.get('Audit-Id')]
        assert record['who'] == 'token' and record['action'] == 'sandbox.exec', record
    assert not any(line.startswith('{"seq":1,"who"') for line in said)
    assert hub.me.run('audit', 'verify', env=hub.env).returncode == 2  # its session goes on
    assert not any(line.startswith('{"seq"') for line in hub.said().splitlines())
