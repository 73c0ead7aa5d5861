"""Approvals: a call for which the policy asks waits for a person, and goes, or is denied."""

import concurrent.futures
import json
import os
import re

import pytest

import host
from approval import pending
from rest import Failed
from test_keys import as_bearer, key
from test_policy import Hub


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    home = tmp_path_factory.mktemp('approvals')
    os.chown(home, me.uid, me.uid)
    rule = {'name': 'ask me', 'actions': ['sandbox.exec'], 'then': 'ask'}
    with Hub(me, home, policy={'rules': [rule]}) as shared:
        shared.box = shared.create()
        yield shared
        shared.delete(shared.box)
    before.check()


@pytest.fixture
def pool():
    with concurrent.futures.ThreadPoolExecutor(4) as made:
        yield made


def answer(hub, one, decision, **more):
    return hub.post(f'/v1/approvals/{one["id"]}', decision=decision, **more)


def test_allow_is_used_up(hub, pool):
    for _ in range(2):
        run = pool.submit(hub.exec, hub.box, 'echo gone')
        one, = pending(hub)
        assert one['action'] == 'sandbox.exec' and one['rule'] == 'ask me'
        assert 'echo gone' in one['arguments']
        assert answer(hub, one, 'approve')['state'] == 'approved'
        assert run.result(30)['stdout'] == 'gone\n'


def test_deny(hub, pool):
    run = pool.submit(hub.exec, hub.box, 'touch denied')
    one, = pending(hub)
    answer(hub, one, 'deny')
    with pytest.raises(Failed) as failed:
        run.result(30)
    assert one['id'] in str(failed.value)


def test_of_two_answers_the_first_counts(hub, pool):
    run = pool.submit(hub.exec, hub.box, 'true')
    one, = pending(hub)
    answer(hub, one, 'approve')
    run.result(30)
    with pytest.raises(Failed) as failed:
        answer(hub, one, 'deny')
    assert (failed.value.status, failed.value.code) == (409, 'already_answered')
    error = failed.value.error
    assert not error['retryable'] and error['failure'] == 'validation_failed'
    assert re.search(r'was approved by token over rest at \d{4}-.*Z', error['cause']), error


def test_the_asking_key_cannot_answer(hub, pool):
    own = as_bearer(hub, key(hub, 'asker', ['admin']))
    run = pool.submit(own.exec, hub.box, 'true')
    one, = pending(hub)
    for who in (own, as_bearer(hub, key(hub, 'plain'))):
        with pytest.raises(Failed):
            answer(who, one, 'approve')
    assert json.dumps(pending(hub))
    answer(hub, one, 'deny')
    with pytest.raises(Failed):
        run.result(30)


def test_other_arguments_need_another_request(hub, pool):
    first, other = (pool.submit(hub.exec, hub.box, f'echo {i}') for i in 'ab')
    for one in pending(hub, 2):
        answer(hub, one, 'approve' if 'echo a' in one['arguments'] else 'deny')
    assert first.result(30)['stdout'] == 'a\n'
    with pytest.raises(Failed):
        other.result(30)


def test_a_hub_that_ends_keeps_the_request(me, tmp_path, pool):
    """Its caller is told at once; who asks the next hub for exactly the same has its approval."""
    os.chown(tmp_path, me.uid, me.uid)
    rule = {'name': 'make', 'actions': ['sandbox.create'], 'when': {'/id': 'asked*'}, 'then': 'ask'}
    with Hub(me, tmp_path, policy={'rules': [rule]}) as first:
        made = pool.submit(first.create, id='asked')
        one, = pending(first)
    error = made.exception(30).error
    assert error['code'] == 'unavailable' and one['id'] in error['cause'] and error['retryable']
    with Hub(me, tmp_path, policy={'rules': [rule]}) as second:
        assert pending(second) == [one]
        answer(second, one, 'approve')
        other = pool.submit(second.create, id='asked', cwd='/tmp')
        answer(second, pending(second)[0], 'deny')
        assert other.exception(30).status == 403
        assert second.create(id='asked') == 'asked'
        second.delete('asked')
        other = pool.submit(second.create, id='asked')
        answer(second, pending(second)[0], 'deny')
        assert other.exception(30).status == 403
