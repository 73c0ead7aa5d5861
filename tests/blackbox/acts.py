"""What changes a hub's state, an act for each action: for tests that let something fail meanwhile
(test_faults.py). prepare() is done before, without a fault; is_done() tells whether do() has had
its effect, and whole() tries what it does not look at. `lasts`: it has it after the next start,
too."""

import io
import json
import os
import tarfile

from approval import ASKED, pending
from modules import WORKSPACE, approve, server
from rest import Failed, b64
from test_serve import Session

CONFIG = {
    'workspaces': {'site': {'dir': WORKSPACE, 'agent': 'mock'}},
    'principals': {'token': {'secrets': ['*']}},
    'mcpServers': {f'to-{word}': server() for word in ('approve', 'revoke', 'enable', 'disable')},
    'policy': {'rules': [{'name': 'asked', 'actions': ['sandbox.exec'],
                          'when': {'/command': f'*{ASKED}*'}, 'then': 'ask'}]}}
SERVE = ['--allow', 'a.example:443']


def tar_of(**files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


class Act:
    lasts, shared = True, False  # shared: all rounds are about one thing

    def __init__(self):
        self.ids = {}

    def prepare(self, hub, n):
        pass

    def again(self, hub, n):
        self.do(hub, n)

    def whole(self, hub, n):
        pass


class KeyCreate(Act):
    def do(self, hub, n):
        hub.post('/v1/keys', name=f'k{n}', scopes=['read'])

    def is_done(self, hub, n):
        return f'k{n}' in {k['name'] for k in hub.call('GET', '/v1/keys')}


class KeyDelete(KeyCreate):
    prepare = KeyCreate.do

    def do(self, hub, n):
        hub.call('DELETE', f'/v1/keys/k{n}')

    def is_done(self, hub, n):
        return not super().is_done(hub, n)


class SecretSet(Act):
    def do(self, hub, n):
        hub.post('/v1/secrets', name=f'S{n}', value='value of a secret')

    def is_done(self, hub, n):
        return f'S{n}' in {s['name'] for s in hub.call('GET', '/v1/secrets')['secrets']}

    def whole(self, hub, n):
        hub.create(id='asks')
        done = hub.exec('asks', 'echo ${#V}', secrets={'V': {'ref': f'S{n}'}})
        assert done['stdout'] == '17\n', done


class SecretDelete(SecretSet):
    prepare, whole = SecretSet.do, Act.whole

    def do(self, hub, n):
        hub.call('DELETE', f'/v1/secrets/S{n}')

    def is_done(self, hub, n):
        return not super().is_done(hub, n)


class WorkspaceCreate(Act):
    def do(self, hub, n):
        hub.post('/v1/workspaces', name=f'w{n}')

    def is_done(self, hub, n):
        return f'w{n}' in {w['workspace'] for w in hub.call('GET', '/v1/workspaces')['workspaces']}


class WorkspaceDelete(WorkspaceCreate):
    prepare = WorkspaceCreate.do

    def do(self, hub, n):
        hub.call('DELETE', f'/v1/workspaces/w{n}')

    def is_done(self, hub, n):
        return not super().is_done(hub, n)


class WorkspaceImport(WorkspaceCreate):
    """Its objects, too: they are read again, after another revision was made."""
    prepare = WorkspaceCreate.do

    def put(self, hub, n, data):
        head = hub.request('POST', f'/v1/workspaces/w{n}/import', fields=[
            'Content-Type: application/x-tar', f'Content-Length: {len(data)}'])
        with hub.wire() as wire:
            wire.send(head.encode() + data)
            reply = wire.reply()
        if reply.status != 200:
            raise Failed(reply.status, json.loads(reply.body)['error'])

    def do(self, hub, n):
        self.put(hub, n, tar_of(**{f'f{i}': f'{n} {i}'.encode() * 9 for i in range(4)}))

    def is_done(self, hub, n):
        told = hub.call('GET', f'/v1/workspaces/w{n}')
        assert hub.call('GET', f'/v1/workspaces/w{n}/verify')['damaged'] == 0
        return told['files'] == 4


class TalkCreate(Act):
    def talks(self, hub):
        return {c['title']: c['session_id'] for c in hub.call('GET', '/api/sessions')[
            'conversations']}

    def do(self, hub, n):
        hub.post('/api/sessions', title=f't{n}', workspace='site')

    def is_done(self, hub, n):
        return f't{n}' in self.talks(hub)


class TalkDelete(TalkCreate):
    prepare = TalkCreate.do

    def do(self, hub, n):
        hub.call('DELETE', f'/api/sessions/{self.talks(hub)[f"t{n}"]}')

    def is_done(self, hub, n):
        return not super().is_done(hub, n)


class TalkQueue(TalkCreate):
    prepare = TalkCreate.do

    def queue(self, hub, n):
        return f'/api/sessions/{self.talks(hub)[f"t{n}"]}/queue'

    def do(self, hub, n):
        hub.post(self.queue(hub, n), prompt=f'p{n}', delay_seconds=3000)

    def is_done(self, hub, n):
        return f'p{n}' in json.dumps(hub.call('GET', self.queue(hub, n)))


class TalkRestore(TalkCreate):
    def prepare(self, hub, n):
        super().do(hub, n)
        self.ids[n] = self.talks(hub)[f't{n}']
        hub.call('DELETE', f'/api/sessions/{self.ids[n]}')

    def do(self, hub, n):
        hub.post(f'/api/sessions/{self.ids[n]}/restore')


class Attach(TalkCreate):
    prepare = TalkCreate.do

    def files(self, hub, n):
        return f'/api/sessions/{self.talks(hub)[f"t{n}"]}/files'

    def do(self, hub, n):
        hub.post(self.files(hub, n), name=f'f{n}', content=b64(b'attached'))

    def is_done(self, hub, n):
        return (f'f{n}', 8) in {(f['name'], f['size'])
                                for f in hub.call('GET', self.files(hub, n))['files']}


class Snapshot(Act):
    def prepare(self, hub, n):
        if not [s for s in hub.call('GET', '/v1/sandboxes') if s['id'] == 'box'
                and s['state'] == 'running']:
            hub.create(id='box')

    def do(self, hub, n):
        hub.post('/v1/sandboxes/box/snapshots', name=f'n{n}')

    def is_done(self, hub, n):
        return f'n{n}' in {s['name'] for s in hub.call('GET', '/v1/snapshots')['snapshots']}


class Stop(Act):
    def prepare(self, hub, n):
        hub.create(id=f'b{n}')
        hub.exec(f'b{n}', 'echo kept > f')

    def do(self, hub, n):
        hub.post(f'/v1/sandboxes/b{n}/stop')

    def is_done(self, hub, n):
        return hub.call('GET', f'/v1/sandboxes/b{n}')['state'] == 'stopped'

    def whole(self, hub, n):
        hub.post('/v1/resume', sandbox=f'b{n}')
        assert hub.exec(f'b{n}', 'cat f')['stdout'] == 'kept\n'


class AttachRemove(Attach):
    def prepare(self, hub, n):
        super().prepare(hub, n)
        super().do(hub, n)

    def do(self, hub, n):
        file, = hub.call('GET', self.files(hub, n))['files']
        hub.call('DELETE', f'{self.files(hub, n)}/{file["file_id"]}')

    def is_done(self, hub, n):
        return not hub.call('GET', self.files(hub, n))['files']


class QueueRemove(TalkQueue):
    def prepare(self, hub, n):
        super().prepare(hub, n)
        self.ids[n] = [hub.post(self.queue(hub, n), prompt=f'p{n} {i}', delay_seconds=3000)[
            'message_id'] for i in range(3)]

    def do(self, hub, n):
        hub.call('DELETE', f'{self.queue(hub, n)}/{self.ids[n][0]}')

    def is_done(self, hub, n):
        return f'p{n} 0' not in json.dumps(hub.call('GET', self.queue(hub, n)))


class QueueMove(QueueRemove):
    def do(self, hub, n):
        hub.post(f'{self.queue(hub, n)}/{self.ids[n][2]}/move', to=0)

    def is_done(self, hub, n):
        return hub.call('GET', self.queue(hub, n))['messages'][0]['id'] == self.ids[n][2]


class TalkUpdate(TalkCreate):
    prepare = TalkCreate.do
    def at(self, hub, n):
        self.ids[n] = self.ids.get(n) or self.talks(hub)[f't{n}']
        return f'/api/sessions/{self.ids[n]}'

    def do(self, hub, n):
        hub.call('PATCH', self.at(hub, n), {'title': f'new{n}'})

    def is_done(self, hub, n):
        return f'new{n}' in self.talks(hub)


class TalkFlags(TalkUpdate):
    def do(self, hub, n):
        hub.call('PATCH', self.at(hub, n) + '/settings',
                 {'settings': {'can_do_introspection': True}})

    def is_done(self, hub, n):
        return hub.call('GET', self.at(hub, n))['flags']['can_do_introspection']


class TalkData(TalkUpdate):
    def do(self, hub, n):
        hub.call('PUT', self.at(hub, n) + '/user-data/ticket', {'value': f'T-{n}'})

    def is_done(self, hub, n):
        return f'T-{n}' in json.dumps(hub.call('GET', self.at(hub, n)))


class SnapshotDelete(Snapshot):
    def prepare(self, hub, n):
        super().prepare(hub, n)
        self.id = hub.post('/v1/sandboxes/box/snapshots', name=f'n{n}')['id']

    def do(self, hub, n):
        hub.call('DELETE', f'/v1/snapshots/{self.id}')

    def is_done(self, hub, n):
        return not super().is_done(hub, n)


class Create(Act):
    lasts, state = False, 'running'

    def do(self, hub, n):
        hub.create(id=f'b{n}')

    def is_done(self, hub, n):
        return (f'b{n}', self.state) in [(s['id'], s['state'])
                                         for s in hub.call('GET', '/v1/sandboxes')]


class Fork(Create):
    def prepare(self, hub, n):
        Snapshot().prepare(hub, n)

    def do(self, hub, n):
        hub.post('/v1/sandboxes/box/fork', ids=[f'b{n}'])


class Restore(Create):
    def prepare(self, hub, n):
        Snapshot().prepare(hub, n)
        self.id = hub.post('/v1/sandboxes/box/snapshots', name=f'r{n}')['id']

    def do(self, hub, n):
        hub.post(f'/v1/snapshots/{self.id}/restore', ids=[f'b{n}'])


class Pause(Create):
    prepare, state = Create.do, 'paused'

    def do(self, hub, n):
        hub.post('/v1/pause', sandbox=f'b{n}')


class Resume(Create):
    def prepare(self, hub, n):
        super().do(hub, n)
        hub.post(f'/v1/sandboxes/b{n}/stop')

    def do(self, hub, n):
        hub.post('/v1/resume', sandbox=f'b{n}')


class Terminate(Create):
    prepare, lasts = Create.do, True

    def do(self, hub, n):
        hub.delete(f'b{n}')

    def is_done(self, hub, n):
        return not super().is_done(hub, n)


class SetTimeout(Create):
    prepare = Create.do

    def do(self, hub, n):
        hub.post('/v1/set_timeout', sandbox=f'b{n}', timeout_seconds=77777)

    def is_done(self, hub, n):
        return hub.call('GET', f'/v1/sandboxes/b{n}').get('timeout_seconds') == 77777


class Grant(Create):
    prepare = Create.do

    def do(self, hub, n):
        hub.post(f'/v1/sandboxes/b{n}/network',
                 network={'allow': [{'host': 'a.example', 'port': 443}]})

    def is_done(self, hub, n):
        return hub.call('GET', f'/v1/sandboxes/b{n}/network')['allow'] != []


class Revoke(Grant):
    def prepare(self, hub, n):
        super().prepare(hub, n)
        super().do(hub, n)

    def do(self, hub, n):
        hub.post(f'/v1/sandboxes/b{n}/network', network={})

    def is_done(self, hub, n):
        return not super().is_done(hub, n)


class WorkspaceRevert(WorkspaceImport):
    def prepare(self, hub, n):
        super().prepare(hub, n)
        super().do(hub, n)
        self.put(hub, n, tar_of(another=b''))

    def do(self, hub, n):
        newest, before = hub.call('GET', f'/v1/workspaces/w{n}/log')['revisions'][:2]
        hub.post(f'/v1/workspaces/w{n}/revert', revision=before['revision'])


class WorkspaceFork(WorkspaceCreate):
    prepare = WorkspaceCreate.do

    def do(self, hub, n):
        hub.post(f'/v1/workspaces/w{n}/fork', fork=f'c{n}')

    def is_done(self, hub, n):
        return f'c{n}' in {w['workspace'] for w in hub.call('GET', '/v1/workspaces')['workspaces']}


class Attached(WorkspaceCreate):
    lasts = False

    def prepare(self, hub, n):
        super().do(hub, n)
        hub.create(id=f'b{n}')

    def do(self, hub, n):
        hub.post(f'/v1/workspaces/w{n}/attach', sandbox=f'b{n}')

    def is_done(self, hub, n):
        return hub.call('GET', f'/v1/workspaces/w{n}').get('sandbox') == f'b{n}'

    def again(self, hub, n):
        hub.delete(f'b{n}')  # it may have a copy, as it was told
        hub.create(id=f'b{n}')
        self.do(hub, n)


class Commit(WorkspaceCreate):
    def prepare(self, hub, n):
        super().do(hub, n)
        hub.create(id=f'b{n}', workspace=f'w{n}')
        hub.exec(f'b{n}', 'echo 1 > f')

    def do(self, hub, n):
        hub.post(f'/v1/workspaces/w{n}/commit')

    def is_done(self, hub, n):
        assert hub.call('GET', f'/v1/workspaces/w{n}/verify')['damaged'] == 0
        return hub.call('GET', f'/v1/workspaces/w{n}')['files'] == 1


class ModuleRevoke(Act):
    """Each round begins with the opposite."""
    shared, word, shows = True, 'revoke', ('approved', False)

    @property
    def name(self):
        return f'to-{self.word}'

    def prepare(self, hub, n):
        approve(hub, self.name)

    def do(self, hub, n):
        hub.post(f'/v1/modules/{self.name}/{self.word}')

    def is_done(self, hub, n):
        member, value = self.shows
        return hub.call('GET', f'/v1/modules/{self.name}')[member] is value


class ModuleDisable(ModuleRevoke):
    word, shows = 'disable', ('disabled', True)


class ModuleEnable(ModuleRevoke):
    word, shows = 'enable', ('disabled', False)

    def prepare(self, hub, n):
        hub.post(f'/v1/modules/{self.name}/disable')


class ModuleApprove(ModuleRevoke):
    word, shows = 'approve', ('approved', True)

    def prepare(self, hub, n):
        hub.post(f'/v1/modules/{self.name}/revoke')

    def do(self, hub, n):
        digest = hub.call('GET', f'/v1/modules/{self.name}')['digest']
        hub.post(f'/v1/modules/{self.name}/approve', digest=digest)


class CodeRegister(Act):
    def do(self, hub, n):
        hub.post(f'/v1/javascript/modules/j{n}', source='export const a = 1')

    def is_done(self, hub, n):
        return f'ha:j{n}' in {m['module'] for m in hub.call('GET', '/v1/modules')['modules']}


class CodeUnregister(CodeRegister):
    prepare = CodeRegister.do

    def do(self, hub, n):
        hub.call('DELETE', f'/v1/javascript/modules/j{n}')

    def is_done(self, hub, n):
        return not super().is_done(hub, n)


class Question(Act):
    lasts = False  # for whom it was put goes on without its answer

    def do(self, hub, n):
        hub.post('/api/prompts', wait=False, kind='yes_no', question=f'q{n}?')

    def is_done(self, hub, n):
        return f'q{n}?' in json.dumps(hub.call('GET', '/api/prompts'))


class QuestionCancel(Question):
    word, more = 'cancel', {}

    def prepare(self, hub, n):
        self.id = hub.post('/api/prompts', wait=False, kind='yes_no', question=f'q{n}?')[
            'request_id']

    def do(self, hub, n):
        hub.post(f'/api/prompts/{self.id}/{self.word}', **self.more)

    def is_done(self, hub, n):
        return hub.call('GET', f'/api/prompts/{self.id}')['state'] != 'pending'


class QuestionAnswer(QuestionCancel):
    word, more = 'answer', {'option_id': 'yes'}


class Approve(Snapshot):
    """For always: an approval for once is used at once."""
    def prepare(self, hub, n):
        super().prepare(hub, n)
        self.wire = hub.wire()
        body = json.dumps({'sandbox': 'box', 'command': f'true # {ASKED} {n}'})
        self.wire.send(hub.request('POST', '/v1/exec', body=body))
        self.ids[n] = pending(hub)[0]['id']

    def do(self, hub, n):
        hub.post(f'/v1/approvals/{self.ids[n]}', decision='approve', scope='always')

    def is_done(self, hub, n):
        return hub.call('GET', f'/v1/approvals/{self.ids[n]}')['state'] == 'approved'


ACTS = {
    'key.create': KeyCreate, 'key.revoke': KeyDelete, 'secret.set': SecretSet,
    'secret.remove': SecretDelete, 'workspace.create': WorkspaceCreate,
    'workspace.delete': WorkspaceDelete, 'workspace.import': WorkspaceImport,
    'workspace.revert': WorkspaceRevert, 'workspace.fork': WorkspaceFork,
    'workspace.attach': Attached, 'workspace.commit': Commit, 'conversation.create': TalkCreate,
    'conversation.delete': TalkDelete, 'conversation.send': TalkQueue,
    'conversation.restore': TalkRestore, 'conversation.add_file': Attach,
    'conversation.remove_file': AttachRemove, 'conversation.remove': QueueRemove,
    'conversation.move': QueueMove, 'conversation.update': TalkUpdate,
    'conversation.set_flags': TalkFlags, 'conversation.set_user_data': TalkData,
    'snapshot.take': Snapshot, 'snapshot.delete': SnapshotDelete, 'snapshot.restore': Restore,
    'sandbox.create': Create, 'sandbox.fork': Fork, 'sandbox.stop': Stop, 'sandbox.pause': Pause,
    'sandbox.resume': Resume, 'sandbox.terminate': Terminate, 'sandbox.set_timeout': SetTimeout,
    'network.set': Grant, 'network.set, less': Revoke, 'module.approve': ModuleApprove,
    'module.revoke': ModuleRevoke, 'module.enable': ModuleEnable, 'module.disable': ModuleDisable,
    'code.register': CodeRegister, 'code.unregister': CodeUnregister, 'question.ask': Question,
    'question.cancel': QuestionCancel, 'question.answer': QuestionAnswer,
    'approval.answer': Approve}
IN_A_SANDBOX = 'its effect is in a sandbox, of which the hub stores nothing'
READS = 'it only reads'
# Those that change something and are no act, and why.
NO_ACTS = {
    'files.*': IN_A_SANDBOX, 'exec.*': IN_A_SANDBOX, 'process.*': IN_A_SANDBOX,
    'coding.*': IN_A_SANDBOX, 'sandbox.exec': IN_A_SANDBOX, 'code.execute': IN_A_SANDBOX,
    'module.call': IN_A_SANDBOX, 'module.test': IN_A_SANDBOX,
    'module.update': 'what it fetches is approved by module.approve (test_module_packages.py)',
    'port.*': 'the hub has it in memory alone', 'module.disconnect': 'the next call connects it',
    'contract.run': 'it makes a sandbox, runs and ends it',
    'conversation.start': "an agent's program runs", 'conversation.cancel': "an agent's turn ends",
    'conversation.retry': 'it moves a prompt that an agent failed, as conversation.move does',
    'workspace.gc': 'it removes what nothing refers to',
    'snapshot.import': 'test_full_disk.py has it',
    'template.create': 'it changes an image: test_start.py has their store',
    'image.build': 'no hub does it', 'sandbox.run': 'no hub does it',
    'host.doctor': 'no hub does it',
    'approval.get': READS, 'approval.list': READS, 'key.list': READS, 'secret.list': READS}
