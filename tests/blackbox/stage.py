"""What a row of surface.py is about, and how it is asked: a stage, requests that are under way,
what became of them, and the walk over all rows."""

import json
import os
import signal
import traceback

import modules
from approval import Asker, question
from described import TAR, code_of, failure_of, framed
from door import Reply
from surface import ROUTES
from talk import Attached, Exec, Framed, Pty
from time_limit import TEST_SECONDS
from who import HERE

MANY = 5  # rows that fail say enough


def walk(rows, check, after=lambda: None):
    """check(name) of each row, and then after(): fails with the names of those that failed. Each
    has the time of a test."""
    failed = {}
    for name in rows:
        signal.alarm(TEST_SECONDS)
        try:
            check(name)
        except Exception:
            failed[name] = traceback.format_exc()
        try:
            after()
        except Exception:
            failed.setdefault(name, traceback.format_exc())
        if len(failed) == MANY:
            break
    assert not failed, '\n'.join(f'---- {name}\n{said}' for name, said in failed.items())


class Nothing:
    """In the place of a stage, where nothing is there."""

    def __init__(self, name='nobody'):
        for one in ('id', 'box', 'exec', 'ended', 'runs', 'snapshot', 'asked', 'fresh', 'revision',
                    'talk', 'message', 'question'):
            setattr(self, one, name)
        self.pid, self.folder, self.archive = 2, '/none', '/etc/hostname'
        self.peers = os.path.join(HERE, 'peers')


class Stage:
    """What requests are about: a sandbox with files, and what else is needed."""

    exec = pid = snapshot = packed = named = workspace = fresh = module = result = None
    talk = message = file = asker = asked = question = None

    def __init__(self, hub, needs=''):
        self.hub, self.id = hub, hub.create()
        self.box, self.folder = self.id, str(getattr(hub, 'folder', ''))
        self.peers = os.path.join(HERE, 'peers')
        hub.exec(self.id, 'echo old > f; mkdir d; echo > d/g')
        for need in needs.split():  # in an order in which each finds what it needs itself
            getattr(self, 'make_' + need)()

    def make_talk(self):
        self.talk = self.hub.post('/api/sessions', title='of stage',
                                  workspace='of-stage')['session_id']

    def make_message(self):
        self.message = self.hub.post(f'/api/sessions/{self.talk}/queue', prompt='x')['message_id']

    def make_file(self):
        self.file = self.hub.post(f'/api/sessions/{self.talk}/files', name='a.txt',
                                  content='aGVsbG8=')['file_id']

    def make_trash(self):
        self.hub.call('DELETE', f'/api/sessions/{self.talk}')

    def make_approval(self):
        self.asker = Asker(self.hub, self.id)
        self.asked = self.asker.id

    def make_approved(self):
        self.hub.post(f'/v1/approvals/{self.asked}', decision='approve', scope='always')

    def make_question(self):
        self.question = question(self.hub, **{'session_id': self.talk} if self.talk else {})

    def make_module(self):
        self.module = modules.approve(getattr(self.hub, 'first', self.hub), 'of-stage')

    def make_result(self):
        large = modules.call(self.hub, 'of-stage', 'large', text='1100000')
        self.result = large['structuredContent']['result']

    def make_key(self):
        self.named = self.hub.post('/v1/keys', name='of-stage', scopes=['read'])['name']

    def make_secret(self):
        self.named = self.hub.post('/v1/secrets', name='of-stage', value='eight bytes')['name']

    def make_code(self):
        self.named = 'of-stage'
        self.hub.post('/v1/javascript/modules/of-stage', source='export const stage = 1')

    def make_workspace(self):
        made = self.hub.post('/v1/workspaces', name='of-stage')
        self.workspace, self.revision = made['workspace'], made['revision']
        self.fresh = self.hub.create()

    def make_attached(self):
        self.hub.post('/v1/workspaces/of-stage/attach', sandbox=self.fresh)

    def make_process(self):
        said = self.hub.exec(self.id, 'sleep 1000 > /dev/null 2>&1 & echo $!')['stdout']
        self.pid = int(said)

    def make_program(self, **more):
        more = more or {'stdin_open': True}
        self.exec = self.runs = self.hub.exec(self.id, 'echo hello; cat', background=True,
                                              **more)['exec_id']
        self.hub.post(f'/v1/sandboxes/{self.id}/execs/{self.exec}/wait', text='hello')

    def make_terminal(self):
        self.make_program(tty={})

    def make_ended(self):
        self.ended = self.hub.exec(self.id, 'echo said', background=True)['exec_id']
        self.hub.post(f'/v1/sandboxes/{self.id}/execs/{self.ended}/wait')

    def make_snapshot(self):
        self.snapshot = self.hub.post(f'/v1/sandboxes/{self.id}/snapshots')['id']
        self.packed = self.hub.raw('GET', f'/v1/snapshots/{self.snapshot}/export').body

    def make_archive(self):
        self.make_snapshot()
        self.archive = os.path.join(self.folder, 'archive')
        with open(self.archive, 'wb') as f:
            f.write(self.packed)

    def make_image(self):
        self.hub.ok('images', 'import', self.folder, 'of-verbs')


class Asking:
    """A request of a row that is under way, on a connection of its own."""

    def __init__(self, hub, name, stage, token=True):
        path, method, self.operation = hub.by_name[name]
        self.hub, self.row, self.method = hub, ROUTES[name], method
        kind = next(iter(self.operation.get('requestBody', {}).get('content', {})), None)
        of = stage.snapshot if path.startswith('/v1/snapshots/') else stage.id
        named = (stage.workspace if path.startswith('/v1/workspaces/') else
                 'of-stage' if path.startswith('/v1/modules/') else stage.named)
        for part, value in (('{id}', of), ('{exec}', stage.exec), ('{name}', named),
                            ('{tool}', 'echo'), ('{session_id}', stage.talk),
                            ('{message_id}', stage.message), ('{key}', 'ticket'),
                            ('{file_id}', stage.file), ('{result}', stage.result or 'none'),
                            ('{request_id}', stage.question), ('{approval_id}', stage.asked)):
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
        raw = self.row.raw(stage)
        return (raw if raw is not None else b'' if kind in TAR
                else framed(kind, json.dumps(self.row.right(stage) or {})))

    def reply(self):
        """It is as the document says."""
        with self.wire:
            if not self.row.endless:
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
SOCKETS = {*TALKS, 'execs.attach'}


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
    return (Talking if name in SOCKETS else Asking)(hub, name, stage)


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


def end_question(hub, name):
    hub.post(f'/api/prompts/{name}/cancel')


def end_approval(hub, name):
    valid = hub.call('GET', f'/v1/approvals/{name}')['state'] == 'approved'
    hub.post(f'/v1/approvals/{name}', decision='revoke' if valid else 'deny')


def ends(path):
    return lambda hub, name: hub.call('DELETE', path + name)


# What can be there: where it is listed, by which member, how it is named and how it is ended.
THINGS = (
    ('/v1/sandboxes', None, 'id', ends('/v1/sandboxes/')),
    ('/api/prompts', 'prompts', 'request_id', end_question),
    ('/api/sessions', 'conversations', 'session_id', ends('/api/sessions/')),
    ('/v1/snapshots', 'snapshots', 'id', ends('/v1/snapshots/')),
    ('/v1/workspaces', 'workspaces', 'workspace', ends('/v1/workspaces/')),
    ('/v1/modules', 'modules', 'module', lambda hub, name: name.startswith('ha:') and ends(
        '/v1/javascript/modules/')(hub, name[3:])),
)
OF_ADMIN = (
    ('/v1/approvals', 'approvals', 'id', end_approval),
    ('/v1/keys', None, 'name', ends('/v1/keys/')),
    ('/v1/secrets', 'secrets', 'name', ends('/v1/secrets/')),
)


def clear(hub, kept=frozenset(), admin=True):
    """All that it sees is ended but what is kept by name."""
    for path, member, key, end in (*(OF_ADMIN if admin else ()), *THINGS):
        listed = hub.call('GET', path)
        for one in listed[member] if member else listed:
            if one[key] not in kept:
                end(hub, one[key])
    if admin and not kept:
        assert hub.call('GET', '/v1/health')['sandboxes'] == 0
