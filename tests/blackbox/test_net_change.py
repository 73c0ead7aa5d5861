"""What a sandbox may reach, changed by several at once: no change is lost."""

import os

import pytest

import test_policy
from approval import pending
from rest import Failed
from test_hub_cli import Hub, box  # noqa: F401


class Both(test_policy.Hub, Hub):
    """A hub with its file and its verbs."""


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    home = tmp_path_factory.mktemp('net')
    os.chown(home, me.uid, me.uid)
    with Both(me, home) as shared:
        yield shared


def hosts(hub, box):  # noqa: F811
    return {h['host'] for h in hub.json('net', 'show', box)['allow']}


def test_changes_at_once(hub, box):  # noqa: F811
    """Each that was acknowledged holds. All have read before one writes, which a person allows."""
    hub.ok('net', 'allow', box, 'old0.example:443', 'old1.example:443', 'old2.example:443')
    hub.set(policy={'rules': [{'name': 'at once', 'actions': ['network.set'], 'then': 'ask'}]})
    wanted = {f'h{i}.example' for i in range(5)}
    calls = [hub.popen('net', 'allow', box, f'{name}:443') for name in wanted]
    calls += [hub.popen('net', 'revoke', box, f'old{i}.example:443') for i in range(3)]
    asked = pending(hub, len(calls))
    hub.set()
    for one in asked:
        hub.post(f'/v1/approvals/{one["id"]}', decision='approve')
    for call in calls:
        assert (call.wait(), call.stderr.read()) == (0, b'')
        call.stdout.close()
        call.stderr.close()
    assert hosts(hub, box) == wanted


def test_what_was_changed_meanwhile(hub, box):  # noqa: F811
    """A whole that was read before another change is not written over that."""
    path = f'/v1/sandboxes/{box}/network'
    hub.ok('net', 'allow', box, 'a.example:443')
    read = hub.call('GET', path)['revision']
    hub.ok('net', 'allow', box, 'b.example:443')
    with pytest.raises(Failed) as failed:
        hub.post(path, network={}, revision=read)
    assert failed.value.status == 409 and hosts(hub, box) == {'a.example', 'b.example'}
    hub.post(path, network={}, revision=hub.call('GET', path)['revision'])
    hub.ok('net', 'allow', box, 'a.example:443')
    hub.post(path, network={})  # whatever it is
    assert hosts(hub, box) == set()
