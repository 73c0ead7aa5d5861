"""Each route of /v1 and /api and each RPC: without a token, sixteen times at once, and once more.
The rows are of the document that the hub prints: what it has and the table here has not fails by
its name. What is wrong with a request is in test_openapi.py."""

import json
import random
import select

import pytest

import host
from approval import Asker, asks, question
from client import until
from described import TAR, Described, code_of, failure_of, framed
from door import Reply
from modules import approve, call
from rest import b64, frame
from talk import Attached, Exec, Framed, Pty

AT_ONCE = 16
GONE, TAKEN = (404, 'not_found'), (409, 'conflict')
ANSWERED = (409, 'already_answered')


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    with Described(me, asks(me, tmp_path_factory.mktemp('surface')), '--listen', '127.0.0.1:0',
                   '--preview', '127.0.0.1:0', '--pool', '2') as shared:
        yield shared
    before.check()


class Stage:
    """What requests are about: a sandbox with files, programs and a snapshot,
    as far as they are needed."""

    def __init__(self, hub, needs=''):
        self.id = hub.create()
        self.exec = self.pid = self.snapshot = self.archive = self.named = None
        self.workspace = self.fresh = self.module = self.result = self.talk = self.message = None
        self.file = None
        if 'talk' in needs:
            self.talk = hub.post('/api/sessions', title='of stage',
                                 workspace='of-stage')['session_id']
        if 'message' in needs:
            self.message = hub.post(f'/api/sessions/{self.talk}/queue', prompt='x')['message_id']
        if 'file' in needs:
            self.file = hub.post(f'/api/sessions/{self.talk}/files', name='a.txt',
                                 content='aGVsbG8=')['file_id']
        if 'trash' in needs:
            hub.call('DELETE', f'/api/sessions/{self.talk}')
        self.asker = Asker(hub, self.id) if 'approval' in needs else None
        self.question = question(hub, **{'session_id': self.talk} if self.talk else {}) if (
            'question' in needs) else None
        if 'module' in needs:
            self.module = approve(getattr(hub, 'first', hub), 'of-stage')
        if 'result' in needs:
            large = call(hub, 'of-stage', 'large', text='1100000')
            self.result = large['structuredContent']['result']
        if 'key' in needs:
            self.named = hub.post('/v1/keys', name='of-stage', scopes=['read'])['name']
        if 'secret' in needs:
            self.named = hub.post('/v1/secrets', name='of-stage', value='eight bytes')['name']
        if 'code' in needs:
            self.named = register(hub, 'of-stage', 'export const stage = 1')
        if 'workspace' in needs:
            made = hub.post('/v1/workspaces', name='of-stage')
            self.workspace, self.revision = made['workspace'], made['revision']
            self.fresh = hub.create()
        if 'attached' in needs:
            hub.post('/v1/workspaces/of-stage/attach', sandbox=self.fresh)
        script = 'echo old > f; mkdir d; echo > d/g'
        if 'process' in needs:
            script += '; sleep 1000 > /dev/null 2>&1 & echo $!'
        said = hub.exec(self.id, script)['stdout']
        if 'process' in needs:
            self.pid = int(said)
        if 'program' in needs or 'terminal' in needs:
            more = {'tty': {}} if 'terminal' in needs else {'stdin_open': True}
            self.exec = hub.exec(self.id, 'echo hello; cat', background=True, **more)['exec_id']
            hub.post(f'/v1/sandboxes/{self.id}/execs/{self.exec}/wait', text='hello')
        if 'snapshot' in needs:
            self.snapshot = hub.post(f'/v1/sandboxes/{self.id}/snapshots')['id']
            self.archive = hub.raw('GET', f'/v1/snapshots/{self.snapshot}/export').body


class Row:
    """A right request, and what is answered to the same one again. races: what else may be answered
    while others are under way."""

    def __init__(self, body=None, again=None, *, query='', raw=None, needs='', races=(),
                 first=False):
        self.body, self.again, self.query, self.raw, self.needs = body, again, query, raw, needs
        self.races, self.first = races, first  # first: it does not end by itself


def about(**more):
    return lambda s: {'sandbox': s.id, **more}


ROWS = {
    'health': Row(),
    'openapi': Row(),
    'approvals.list': Row(),
    'approvals.get': Row(needs='approval'),
    'approvals.answer': Row({'decision': 'deny'}, ANSWERED, needs='approval'),
    'prompts.list': Row(query='?state=all'),
    'prompts.ask': Row({'kind': 'yes_no', 'question': 'Go on?', 'wait': False}),
    'prompts.get': Row(needs='question'),
    'prompts.result': Row(needs='question'),
    'prompts.answer': Row({'option_id': 'yes'}, ANSWERED, needs='question'),
    'prompts.cancel': Row(again=ANSWERED, needs='question'),
    'sessions.prompts.list': Row(query='?state=all', needs='talk question'),
    'sessions.prompts.answer': Row({'option_id': 'yes'}, ANSWERED, needs='talk question'),
    'audit.list': Row(query='?limit=3'),
    'audit.get': Row(),
    'templates.list': Row(),
    'templates.create': Row({'id': 'host'}),
    'fork': Row({'template': 'host', 'id': 'twin'}, TAKEN),
    'sandboxes.create': Row({'id': 'made'}, TAKEN),
    'sandboxes.list': Row(query='?limit=3'),
    'sandboxes.get': Row(),
    'sandboxes.delete': Row(again=GONE),
    'sandboxes.fork': Row({'ids': ['kid-1', 'kid-2']}, TAKEN),
    'sandboxes.processes': Row(),
    'sandboxes.signal': Row(lambda s: {'pid': s.pid, 'signal': 18}, needs='process'),
    'sandboxes.usage': Row(),
    'sandboxes.snapshot': Row({'name': 'one'}, races=(TAKEN,)),
    'sandboxes.diff': Row(races=(TAKEN,)),
    'sandboxes.stop': Row({}, races=(TAKEN,)),
    'sandboxes.exec': Row(),
    'sandboxes.forward': Row({'guest_port': 8000}),
    'network.get': Row(),
    'network.set': Row({'network': {'mode': 'none'}}, races=(TAKEN,)),
    'preview': Row(about(port=8000)),
    'forwards.list': Row(),
    'forwards.delete': Row(),
    'vitals': Row(about()),
    'pty': Row(),
    'usage': Row(query='?limit=2'),
    'events': Row(query='?limit=2'),
    'set_timeout': Row(about(timeout_seconds=600)),
    'pause': Row(about(), races=(TAKEN,)),
    'resume': Row(about(), races=(TAKEN,)),
    'snapshots.list': Row(needs='snapshot'),
    'snapshots.get': Row(needs='snapshot'),
    'snapshots.delete': Row(again=GONE, needs='snapshot'),
    'snapshots.export': Row(needs='snapshot'),
    'snapshots.import': Row(raw=lambda s: s.archive, needs='snapshot'),
    'snapshots.restore': Row({'ids': ['back-1', 'back-2']}, TAKEN, needs='snapshot'),
    'workspaces.create': Row({'name': 'made'}, TAKEN, races=(TAKEN,)),
    'workspaces.list': Row(query='?limit=3', needs='workspace'),
    'workspaces.get': Row(needs='workspace'),
    'workspaces.attach': Row(lambda s: {'sandbox': s.fresh}, TAKEN, needs='workspace',
                             races=(TAKEN,)),
    'workspaces.commit': Row({'message': 'one'}, needs='workspace attached', races=(TAKEN,)),
    'workspaces.log': Row(query='?limit=3', needs='workspace'),
    'workspaces.diff': Row(query='?content=true', needs='workspace'),
    'workspaces.verify': Row(needs='workspace'),
    'workspaces.gc': Row(),
    'workspaces.export': Row(needs='workspace'),
    'workspaces.import': Row(raw=bytes(1024), needs='workspace', races=(TAKEN,)),
    'workspaces.revert': Row(lambda s: {'revision': s.revision}, needs='workspace',
                             races=(TAKEN,)),
    'workspaces.fork': Row({'fork': 'made-by-fork'}, TAKEN, needs='workspace', races=(TAKEN,)),
    'workspaces.delete': Row(again=GONE, needs='workspace'),
    'modules.list': Row(),
    'modules.info': Row(needs='module'),
    'modules.logs': Row(needs='module'),
    'modules.approve': Row(lambda s: {'digest': s.module}, needs='module'),
    'modules.revoke': Row(needs='module'),
    'modules.enable': Row(needs='module'),
    'modules.disable': Row(needs='module'),
    'modules.test': Row(needs='module'),
    'modules.disconnect': Row(needs='module'),
    'modules.search': Row(query='?query=echo'),
    'modules.call': Row({'arguments': {'text': 'hello'}}, needs='module'),
    'modules.result': Row(query='?offset=1&limit=10', needs='module result'),
    'sessions.list': Row(query='?limit=3'),
    'sessions.create': Row({'title': 'made'}),
    'sessions.get': Row(needs='talk'),
    'sessions.update': Row({'title': 'other', 'archived': True}, needs='talk'),
    'sessions.delete': Row(again=GONE, needs='talk'),
    'sessions.restore': Row({}, again=GONE, needs='talk trash'),
    'sessions.events': Row(query='?limit=2', needs='talk'),
    'sessions.queue': Row(needs='talk message'),
    'sessions.send': Row({'prompt': 'x', 'key': 'one'}, needs='talk'),
    'sessions.unqueue': Row(again=GONE, needs='talk message'),
    'sessions.move': Row({'to': 0}, needs='talk message'),
    'sessions.retry': Row({}, needs='talk message'),
    'sessions.files': Row(needs='talk file'),
    'sessions.add_file': Row({'name': 'b.txt', 'content': 'aGVsbG8='}, needs='talk'),
    'sessions.file': Row(needs='talk file'),
    'sessions.remove_file': Row(again=GONE, needs='talk file'),
    'sessions.cancel': Row({}, needs='talk'),
    'sessions.wait': Row(query='?timeout_seconds=1', needs='talk'),
    'sessions.settings': Row(needs='talk'),
    'sessions.set_flags': Row({'settings': {'can_send_prompt': True}}, needs='talk'),
    'sessions.set_user_data': Row({'value': 'T-1'}, needs='talk'),
    'flags.list': Row(),
    'conversation.workspaces': Row(),
    'conversation.config': Row(),
    'conversation.runtime': Row(),
    'feed.follow': Row(first=True),
    'secrets.list': Row(),
    'secrets.set': Row({'name': 'set', 'value': 'a value of the surface'}),
    'secrets.remove': Row(again=GONE, needs='secret'),
    'run': Row({'command': ['true'], 'state': {'retention': 'destroy'}}),
    'javascript': Row({'code': '1 + 1'}),
    'javascript.register': Row({'source': 'export const a = 1'}, needs='code'),
    'javascript.unregister': Row(again=GONE, needs='code'),
    'exec': Row(about(command='cat f')),
    'exec.stream': Row(about(command='cat f')),
    'run_code.stream': Row(about(code='cat f', language='bash')),
    'keys.list': Row(),
    'keys.create': Row({'name': 'made', 'scopes': ['read']}, TAKEN),
    'keys.revoke': Row(again=GONE, needs='key'),
    'execs.list': Row(needs='program'),
    'execs.get': Row(needs='program'),
    'execs.output': Row(needs='program'),
    'execs.attach': Row(needs='program'),
    'execs.wait': Row({'text': 'hello'}, needs='program'),
    'execs.stdin': Row({'data': 'x', 'close': True}, TAKEN, needs='program'),
    'execs.signal': Row({'signal': 18}, needs='program'),
    'execs.resize': Row({'cols': 100, 'rows': 20}, needs='terminal'),
    'execs.delete': Row(again=GONE, needs='program'),
    'files.read': Row(about(path='f')),
    'files.write': Row(about(path='f', content='new')),
    'files.list': Row(about(path='.')),
    'files.stat': Row(about(path='f')),
    'files.mkdir': Row(about(path='a/b')),
    'files.move': Row(about(path='f', to='d/f'), GONE),
    'files.remove': Row(about(path='f'), GONE),
    'archive.download': Row(),
    'archive.upload': Row(raw=bytes(1024)),
    'watch': Row(query='?path=d', first=True),
    'Exec': Row({'open': {'command': 'cat f'}}),
    'ExecStream': Row({'command': 'cat f'}),
    'ExecSocket': Row(),
    'ReadFile': Row({'path': 'f'}),
    'WriteFile': Row(raw=frame({'open': {'path': 'f'}}) + frame({'data': b64(b'new')})),
    'List': Row({'parent': '.'}),
    'Stat': Row({'path': 'f'}),
    'Mkdir': Row({'path': 'a/b'}),
    'Remove': Row({'path': 'f'}, GONE),
    'Processes': Row(),
    'Signal': Row(lambda s: {'pid': s.pid, 'signal': 18}, needs='process'),
    'Vitals': Row({}, first=True),
    'Archive': Row({}),
    'Upload': Row(raw=frame({'open': {}}) + frame({'chunk': b64(bytes(1024))})),
    'Watch': Row({'path': 'd'}, first=True),
}


def register(hub, name, source):
    """A JavaScript module; gives its name."""
    hub.post(f'/v1/javascript/modules/{name}', source=source)
    return name


class Asking:
    """A request of a row that is under way, on a connection of its own."""

    def __init__(self, hub, name, stage, token=True):
        path, method, self.operation = hub.by_name[name]
        self.hub, self.row, self.method = hub, ROWS[name], method
        kind = next(iter(self.operation.get('requestBody', {}).get('content', {})), None)
        of = stage.snapshot if path.startswith('/v1/snapshots/') else stage.id
        named = (stage.workspace if path.startswith('/v1/workspaces/') else
                 'of-stage' if path.startswith('/v1/modules/') else stage.named)
        for part, value in (('{id}', of), ('{exec}', stage.exec), ('{name}', named),
                            ('{tool}', 'echo'), ('{session_id}', stage.talk),
                            ('{message_id}', stage.message), ('{key}', 'ticket'),
                            ('{file_id}', getattr(stage, 'file', None)),
                            ('{result}', getattr(stage, 'result', None) or 'none'),
                            ('{request_id}', stage.question),
                            ('{approval_id}', stage.asker and stage.asker.id)):
            path = path.replace(part, value or '')
        path += self.row.query
        if '{audit_id}' in path:
            path = path.replace('{audit_id}', hub.raw('GET', '/v1/templates').get('Audit-Id'))
        data, fields = (self.data(kind, stage),
                        [f'X-Sandbox-Id: {stage.id}'] if path.startswith('/sandbox.v1.') else [])
        if kind:
            fields += [f'Content-Type: {kind}', f'Content-Length: {len(data)}']
        self.wire = hub.wire()
        self.wire.send(hub.request(method, path, fields=fields,
                                   **({} if token is True else {'token': token})).encode() + data)

    def data(self, kind, stage):
        if not kind:
            return b''
        raw = self.row.raw(stage) if callable(self.row.raw) else self.row.raw
        body = self.row.body(stage) if callable(self.row.body) else self.row.body
        return (raw if raw is not None else b'' if kind in TAR
                else framed(kind, json.dumps(body or {})))

    def reply(self):
        with self.wire:
            if not self.row.first:
                return self.hub.conforms(self.operation, self.wire.reply(self.method))
            reply = Reply(*self.wire.head(), b'')
            length = reply.get('Content-Length')
            reply.body = self.wire.exactly(int(length)) if length else self.wire.chunk()
            return self.hub.conforms(self.operation, reply)


TALKS = {
    'sandboxes.exec': (Exec, 'echo out'),
    'pty': (Pty, 'echo out'),
    'ExecSocket': (Framed, {'command': 'echo out'}),
}


class Talking:
    """The same of a WebSocket."""

    def __init__(self, hub, name, stage):
        self.left = name == 'execs.attach'  # before its end
        if self.left:
            self.talk = Attached(hub, stage.id, stage.exec, 0)
        else:
            kind, opened = TALKS[name]
            self.talk = kind(hub, stage.id, opened)

    def reply(self):
        with self.talk as x:
            if self.left:
                x.until(b'hello\n')
            else:
                assert x.end().out.splitlines() == [b'out'], x.error
        return Reply(200, [], b'')


def start(hub, name, stage):
    return (Talking if 'x-websocket' in hub.by_name[name][2] else Asking)(hub, name, stage)


def outcome(reply):
    """The status and the code of a failure. A stream that failed has the status 200; it is that
    of its code otherwise."""
    error = failure_of(reply)
    if error and reply.status == 200:
        return STATUSES[error['code']], code_of(error)
    return reply.status, error and code_of(error)


STATUSES = {'invalid_argument': 400, 'failed_precondition': 400, 'permission_denied': 403,
            'not_found': 404, 'aborted': 409, 'resource_exhausted': 429, 'canceled': 499,
            'internal': 500, 'unimplemented': 501, 'unavailable': 503, 'deadline_exceeded': 504}


def clear(hub):
    """All that is there is ended; nothing of it stays."""
    for one in hub.call('GET', '/v1/approvals')['approvals']:
        hub.post(f'/v1/approvals/{one["id"]}', decision='deny')
    for one in hub.call('GET', '/api/prompts')['prompts']:
        hub.post(f'/api/prompts/{one["request_id"]}/cancel')
    for sandbox in hub.call('GET', '/v1/sandboxes'):
        hub.delete(sandbox['id'])
    for talk in hub.call('GET', '/api/sessions')['conversations']:
        hub.call('DELETE', f'/api/sessions/{talk["session_id"]}')
    for snapshot in hub.call('GET', '/v1/snapshots')['snapshots']:
        hub.call('DELETE', f'/v1/snapshots/{snapshot["id"]}')
    for workspace in hub.call('GET', '/v1/workspaces')['workspaces']:
        hub.call('DELETE', f'/v1/workspaces/{workspace["workspace"]}')
    for key in hub.call('GET', '/v1/keys'):
        hub.call('DELETE', f'/v1/keys/{key["name"]}')
    for module in hub.call('GET', '/v1/modules')['modules']:
        if module['module'].startswith('ha:'):
            hub.call('DELETE', f'/v1/javascript/modules/{module["module"][3:]}')
    for secret in hub.call('GET', '/v1/secrets')['secrets']:
        hub.call('DELETE', f'/v1/secrets/{secret["name"]}')
    assert hub.call('GET', '/v1/health')['sandboxes'] == 0


def test_each_has_its_row(hub):
    assert set(hub.by_name) == set(ROWS)


@pytest.mark.parametrize('name', ROWS)
def test_without_a_token_at_once_and_again(hub, name):
    row, stage = ROWS[name], Stage(hub, ROWS[name].needs)
    if name != 'health':
        for token in (None, hub.token + 'a'):  # nothing is done: what is right below is the first
            reply = until(lambda token=token: (r := Asking(hub, name, stage, token).reply()).status
                          != 429 and r, what='a refusal')
            assert outcome(reply) == (401, 'unauthorized'), reply
    replies = [asking.reply() for asking in [start(hub, name, stage) for _ in range(AT_ONCE)]]
    found = [outcome(reply) for reply in replies]
    if row.again:
        assert sorted(found, key=str) == [(200, None)] + [row.again] * (AT_ONCE - 1), replies
    else:
        assert (200, None) in found and set(found) <= {(200, None), *row.races}, replies
    assert outcome(start(hub, name, stage).reply()) == (row.again or (200, None))
    clear(hub)


def test_nobody_is_asked_for_a_token_of_health(hub):
    assert Asking(hub, 'health', Stage(hub), None).reply().status == 200
    clear(hub)


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
