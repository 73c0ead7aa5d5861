"""Ports and the network of a sandbox."""

import socket

import pytest

import holt
from face import scenario
from holt import HttpRule, NetworkPolicy
from holt import _core as core

SERVER = 'echo ready; exec python3 -u -m http.server --bind 127.0.0.1 8000'


@scenario
async def test_ports(face, box):
    await box.files.write('hello.txt', 'grüße')
    server = await box.commands.start('python3 -u -m http.server --bind 127.0.0.1 8000')
    await server.wait_for('Serving', timeout_seconds=20)
    answer = await box.ports.expose(8000, '/hello.txt')
    assert (answer.status, answer.text) == (200, 'grüße')
    assert answer.headers['content-type'].startswith('text/plain')
    assert (await box.ports.expose(8000, '/nope?a=b c')).status == 404
    assert (await box.ports.expose(8000, '/', method='POST', body=b'x')).status == 501
    refused = await box.ports.expose(8001)
    assert refused.status == 502 and 'port_failed' in refused.text
    one = await box.ports.forward(8000)
    with socket.create_connection(('127.0.0.1', one.port), 10) as wire:
        wire.sendall(b'GET /hello.txt HTTP/1.0\r\n\r\n')
        assert b'200 OK' in wire.recv(4096)
    again = await box.ports.forward(8000)
    assert again.host == one.host
    listed, = await box.ports.list()
    assert (listed.guest_port, listed.connections_total) == (8000, 1)
    await box.ports.close(8000)
    await box.ports.close()
    assert await box.ports.list() == []
    link = await box.ports.preview(8000, 60)
    assert link.url.startswith('http://') and link.expires_unix > 0 and link.url not in repr(link)
    with pytest.raises(holt.ValidationError):
        await box.ports.forward(0)


@scenario
async def test_grants_change_live(face, box):
    now = await box.network.get()
    assert now.policy == NetworkPolicy.deny_by_default() and now.opened == 0
    now = await box.network.allow('a.example', 443)
    assert [(h.host, h.port) for h in now.policy.hosts] == [('a.example', 443)]
    rules = (HttpRule('GET', '/repos/*'), HttpRule(then='deny'))
    if face.place['base_url'].startswith('unix:'):  # the operator's own way: no --allow bounds it
        now = await box.network.allow('c.example', 80, rules)
        assert now.policy.hosts[-1].http[0] == HttpRule('GET', '/repos/*', 'allow')
        now = await box.network.revoke('c.example')
    now = await box.network.allow('b.example', 8443)
    assert len(now.policy.hosts) == 2
    now = await box.network.revoke('a.example')
    assert [h.host for h in now.policy.hosts] == ['b.example']
    now = await box.network.set(NetworkPolicy.deny_by_default())
    assert now.policy.hosts == ()


@scenario
async def test_a_change_keeps_what_others_changed_meanwhile(face, box, monkeypatch):
    others = [NetworkPolicy.deny_by_default(),
              NetworkPolicy.deny_by_default().allow('a.example', 443).allow('b.example', 8443)]
    read = core.get_network

    def late(sandbox):
        now = yield from read(sandbox)
        if others:
            yield from core.set_network(sandbox, others.pop(0))
        return now
    await box.network.allow('a.example', 443)
    monkeypatch.setattr(core, 'get_network', late)
    now = await box.network.allow('b.example', 8443)
    assert [h.host for h in now.policy.hosts] == ['a.example', 'b.example'] and not others
    others += [NetworkPolicy.deny_by_default().allow('b.example', 8443)]
    now = await box.network.revoke('b.example')
    assert now.policy.hosts == () and not others
    with pytest.raises(holt.ConflictError):
        await box.network.set(now.policy, now.revision - 1)


@scenario
async def test_granted_from_the_start(face):
    policy = NetworkPolicy.deny_by_default().allow('a.example', 443)
    async with await face.Sandbox.create(network=policy, client=face.client) as sandbox:
        assert (await sandbox.network.get()).policy == policy
    async with await face.Sandbox.create(network=NetworkPolicy.from_template(),
                                         client=face.client) as sandbox:
        assert (await sandbox.info()).network['mode'] == 'none'


def test_a_policy_is_a_value():
    one = NetworkPolicy.deny_by_default().allow('a', 443).allow('a', 80).allow('b')
    assert one.to_json() == {'mode': 'bridge', 'allow': [
        {'host': 'a', 'port': 443}, {'host': 'a', 'port': 80}, {'host': 'b'}]}
    assert one.allow('a', 80) == NetworkPolicy((one.hosts[0], one.hosts[2], one.hosts[1]))
    assert one.revoke('a', 80).revoke('b').hosts == one.hosts[:1]
    assert one.revoke('a').revoke('b').to_json() == {'mode': 'none'}
