"""Requests of one kind with one key, and of all kinds at once on one sandbox. Each kind by itself,
sixteen times at once, is in test_keys.py."""

import json
import random
import select

import pytest

import host
from approval import asks
from described import Described
from stage import Stage, clear, outcome
from surface import GONE, TAKEN, about

AT_ONCE = 16


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    with Described(me, asks(me, tmp_path_factory.mktemp('surface')), '--listen', '127.0.0.1:0',
                   '--preview', '127.0.0.1:0', '--pool', '2') as shared:
        yield shared
    before.check()


# ---- with one key

KEYED = {  # a body that makes something new each time, and another one
    'fork': ({'template': 'host', 'id': 'twin'}, {'template': 'host', 'id': 'other'}),
    'sandboxes.create': ({}, {'cwd': '/tmp'}),
    'sandboxes.fork': ({'count': 2}, {'count': 1}),
    'sandboxes.snapshot': ({'name': 'one'}, {'name': 'other'}),
    'snapshots.restore': ({'count': 2}, {'count': 1}),
}


def test_each_that_takes_a_key_has_its_row(hub):
    assert {*KEYED, 'exec'} == {name for name, (_, _, operation) in hub.by_name.items()
                          if 'Idempotency-Key' in [p['name'] for p in operation['parameters']]}


def all_there(hub):
    return ({s['id'] for s in hub.call('GET', '/v1/sandboxes')}
            | {s['id'] for s in hub.call('GET', '/v1/snapshots')['snapshots']})


@pytest.mark.parametrize('name', KEYED)
def test_one_key_makes_one(hub, name):
    """Sixteen at once: one makes, the others hear what it has made or that it is under way.
    So does who asks again."""
    stage = Stage(hub, 'snapshot')
    path, method, operation = hub.by_name[name]
    path = path.replace('{id}', stage.snapshot if path.startswith('/v1/snapshots/') else stage.id)

    def send(body):
        wire = hub.wire()
        wire.send(hub.request(method, path, body=json.dumps(body),
                              fields=[f'Idempotency-Key: {stage.id}']))
        return wire

    def take(wire):
        with wire:
            return hub.conforms(operation, wire.reply(method))
    before = all_there(hub)
    replies = [take(wire) for wire in [send(KEYED[name][0]) for _ in range(AT_ONCE)]]
    assert (200, None) in map(outcome, replies) and set(map(outcome, replies)) <= {(200, None),
                                                                                   TAKEN}, replies
    said = {reply.body for reply in replies if reply.status == 200}
    answer = json.loads(said.pop())
    made = {one['id'] for one in answer.get('sandboxes', [answer])}
    assert not said and all_there(hub) - before == made
    again = take(send(KEYED[name][0]))
    assert again.status == 200 and json.loads(again.body) == answer
    assert outcome(take(send(KEYED[name][1]))) == TAKEN and all_there(hub) - before == made
    clear(hub)


# ---- all kinds at once, on one sandbox

MIX = {
    'pause': about(), 'resume': about(), 'exec': about(command='cat f; echo x >> g'),
    'set_timeout': about(timeout_seconds=600),
    'files.read': about(path='f'), 'files.list': about(path='.'), 'files.mkdir': about(path='a/b'),
    'files.remove': about(path='g'),
    'sandboxes.fork': lambda s: {'count': 2}, 'sandboxes.snapshot': lambda s: {'name': 'mixed'},
    'sandboxes.processes': None, 'sandboxes.diff': None, 'sandboxes.usage': None,
    'execs.list': None, 'archive.download': None,
}
CONTENTS = [c * 50000 for c in 'abcd']


class Mixed:
    """Requests of many kinds at the same time; what was answered to them."""

    def __init__(self, hub, stage):
        self.hub, self.stage = hub, stage
        self.made, self.snapshots = set(), set()

    def send(self, name, body):
        path, method, _ = self.hub.by_name[name]
        wire = self.hub.wire()
        path = path.replace('{id}', self.stage.id)
        wire.send(self.hub.request(method, path, body=body and json.dumps(body(self.stage))))
        return wire

    def take(self, name, reply, allowed):
        self.hub.conforms(self.hub.by_name[name][2], reply)
        assert outcome(reply) in {(200, None), *allowed}, (name, reply)
        if reply.status == 200 and name == 'sandboxes.fork':
            self.made |= {s['id'] for s in json.loads(reply.body)['sandboxes']}
        if reply.status == 200 and name == 'sandboxes.snapshot':
            self.snapshots.add(json.loads(reply.body)['id'])

    def all(self, asked, allowed):
        """A command that stands still does not end: while nothing comes, the sandbox is resumed."""
        wires = {(wire := self.send(name, body)).sock: (name, wire) for name, body in asked}
        while wires:
            ready = select.select(list(wires), [], [], 0.05)[0]
            for sock in ready:
                name, wire = wires.pop(sock)
                with wire:
                    self.take(name, wire.reply(self.hub.by_name[name][1]), allowed)
            if not ready:
                self.hub.asked('POST', '/v1/resume', {'sandbox': self.stage.id})

    def there(self):
        """What was acknowledged is there, and nothing else."""
        assert ({s['id'] for s in self.hub.call('GET', '/v1/sandboxes')}
                - {self.stage.id} == self.made)
        assert ({s['id'] for s in self.hub.call('GET', '/v1/snapshots')['snapshots']}
                == self.snapshots)


def writes(content):
    return 'files.write', about(path='f', content=content)


def test_all_kinds_at_once(hub):
    """Each answer is one that its route promises, files are of one writer,
    and the sandbox works on."""
    rng, stage = random.Random(5), Stage(hub)
    mixed = Mixed(hub, stage)
    for _ in range(4):
        asked = [*MIX.items(), *map(writes, CONTENTS)]
        rng.shuffle(asked)
        mixed.all(asked, {TAKEN, GONE})  # paused, being copied; a file that is removed
    hub.post('/v1/resume', sandbox=stage.id)
    assert hub.exec(stage.id, 'cat f')['stdout'] in CONTENTS
    mixed.there()
    for made in mixed.made:
        assert hub.exec(made, 'cat f')['stdout'] in ['old\n', *CONTENTS]
    clear(hub)


def test_the_end_among_all_kinds(hub):
    """One that is stopped, started and then ended while all else is asked of it."""
    rng, stage = random.Random(6), Stage(hub)
    mixed = Mixed(hub, stage)
    ended = {TAKEN, GONE, (410, 'sandbox_lost'), (499, 'canceled')}
    for last in ('sandboxes.stop', 'sandboxes.stop', 'sandboxes.delete'):
        asked = [*MIX.items(), *map(writes, CONTENTS),
                 (last, None if last.endswith('delete') else lambda s: {})]
        rng.shuffle(asked)
        mixed.all(asked, ended)
    assert hub.call('GET', f'/v1/sandboxes/{stage.id}')['state'] == 'terminated'
    assert {s['id'] for s in hub.call('GET', '/v1/sandboxes')} == mixed.made
    mixed.there()
    clear(hub)
