"""What answers hold (docs/redaction.md, "What each answer holds"): each action of the binary has a
row, and each that can bring content is driven on two hubs. In both the same secrets are where it
looks: one that is stored, and a token of a well-known form. One hub redacts, and brings neither in
any form; the other does not, which is the control that they were there."""

import base64
import contextlib
import fnmatch
import io
import json
import os
import re
import secrets
import shutil
import tarfile

import pytest

import host
import modules
import test_e2b
import test_hub_cli
from approval import ASKED, pending
from client import until
from talk import Attached
from test_canary import unpacked
from test_coding import Project
from test_conversations import events
from test_redact import TOKEN
from test_secrets import forms
from test_serve import Session
from test_trees import upload
from who import HERE

DOCS = os.path.join(HERE, '../../docs/redaction.md')
REDACTED, RAW, NONE = 'redacted', 'raw', 'no content'


def classes():
    """The rows: a class, and its actions or patterns."""
    with open(DOCS, encoding='utf-8') as f:
        text = f.read().split('## What each answer holds')[1].split('\n## ')[0]
    rows = re.findall(r'^\| \*\*([a-z ]+)\*\* \| (.*?) \|', text, re.M)
    return {name: re.findall(r'`([a-z_.*]+)`', cell) for name, cell in rows}


def classified(actions):
    """By action, its class. A pattern is only for what is redacted: so a new action is either
    driven below or named."""
    rows, found = classes(), {}
    assert set(rows) == {REDACTED, RAW, NONE}
    for name, words in rows.items():
        for word in words:
            assert '*' not in word or name == REDACTED, word
            matched = [a for a in actions if fnmatch.fnmatch(a, word)]
            assert matched, f'{word} is no action'
            if '*' not in word:
                assert word not in found, f'{word} has two rows'
                found[word] = name
    for action in actions:
        if action not in found and any(fnmatch.fnmatch(action, w) for w in rows[REDACTED]):
            found[action] = REDACTED
    return found


class Hub(test_e2b.Hub, test_hub_cli.Hub):
    """With all doors."""


class World:
    """A hub, and secrets wherever it has content."""

    def __init__(self, me, home, off):
        self.off, self.value = off, 'V' + secrets.token_hex(12)
        raw = self.value.encode()
        self.forms = [*forms(self.value), TOKEN.encode()]
        self.plant = (f'{self.value} {raw.hex()} {base64.b64encode(raw).decode()} '
                      f'A_TOKEN={TOKEN}')
        self.project, self.home = Project(me), home
        server = (f'PLANT = {self.plant!r}\n'
                  'def call(id, name, arguments):\n'
                  '    text = (PLANT + "\\n") * (9000 if name == "large" else 1)\n'
                  '    say({"id": id, "result": {"content": [{"type": "text", "text": text}]}})\n'
                  'TOOLS[:] = [tool("echo", "Gives text. " + PLANT), tool("large")]\n'
                  'print(PLANT, file=sys.stderr, flush=True)\n')
        broken = ('def take(m):\n'
                  '    say({"id": m["id"], "error": {"code": -1, "message": PLANT}})\n'
                  'main()')
        config = {
            'redaction': {'off': off}, 'compat': {'apis': ['e2b']},
            'policy': {'rules': [{'name': 'asked', 'actions': ['sandbox.exec'],
                                  'when': {'/command': f'*{ASKED}*'}, 'then': 'ask'}]},
            'agents': {'leaky': {'command': 'sh',
                                 'args': ['-c', f'echo "{self.plant}" >&2; exit 3']}},
            'workspaces': {'site': {'dir': self.project.path}},
            'mcpServers': {'leaky': modules.server(server + 'main()'),
                           'other': modules.server(server + 'main()'),
                           'broken': modules.server(server + broken),
                           'package': {'command': 'npx', 'args': [f'no/package-{self.value}']}}}
        (home / 'config.json').write_text(json.dumps(config))
        for path in (home, home / 'config.json'):
            os.chown(path, me.uid, me.uid)
        self.hub = Hub(me, home, '--listen', '127.0.0.1:0', '--pool', '0',
                       '--workspace', f'work={self.project.path}')

    def fill(self):
        self.mcp = Session(self.hub, '/mcp?tools=all')
        self.hub.ok('secret', 'set', 'stored', input=self.value.encode())
        self.files()
        self.box = self.hub.create(id=self.value, labels={'l': self.value})
        self.box = self.value  # as it is; what is shown may be a mark
        self.post('/v1/files/write', path='f', content=self.plant + '\n')
        self.post('/v1/files/write', path=f'd/{self.value}', content='x')
        begun = self.post('/v1/exec', background=True, command=(
            f'cat f; echo end; sh -c "while sleep 100; do :; done" {self.value}'))
        self.job = json.loads(begun)['exec_id']
        for name in ('leaky', 'broken'):
            modules.approve(self.hub, name)
        self.large = modules.call(self.hub, 'leaky', 'large')['structuredContent']['result']
        self.shot = json.loads(self.of('POST', '/snapshots', {'name': self.value}))['id']
        self.history()
        self.talk = self.hub.post('/api/sessions', title=self.value)['session_id']
        self.hub.post(f'/api/sessions/{self.talk}/queue', prompt=self.plant)
        self.file = self.hub.post(f'/api/sessions/{self.talk}/files', name=f'{self.value}.txt',
                                  content=base64.b64encode(self.plant.encode()).decode())['file_id']

    def files(self):
        self.project.put('f', self.plant + '\n')
        self.project.put(self.value, 'x')
        self.project.put('e.py', f'def connect(port, a_token="{TOKEN}"):\n    pass\n')
        self.project.put('Makefile', (
            f'all:\n\t@echo "a.c:1:2: error: {self.plant}"; exit 1\n'
            f'test:\n\t@echo "not ok 1 - {self.plant}"; echo 1..1; exit 1\n'
            f'lint:\n\t@echo "a.c:1:2: error: {self.plant}"; exit 1\n'
            '.PHONY: all test lint\n'))

    def history(self):
        """A workspace with a revision that a sandbox made, which has ended."""
        self.hub.post('/v1/workspaces', name='kept')
        box = self.hub.create(workspace='kept')
        self.hub.exec(box, f"echo '{self.plant}' > a; touch {self.value}.pem")
        self.committed = self.raw('POST', '/v1/workspaces/kept/commit', {'message': self.value})
        self.hub.exec(box, f'touch {self.value}2.pem; echo > b')
        self.ended = self.raw('DELETE', f'/v1/sandboxes/{box}')

    # ---- how it is asked: each gives the bytes of the answer

    def raw(self, method, path, body=None):
        return self.hub.raw(method, path, {} if body is None and method == 'POST' else body).body

    def get(self, path):
        return self.raw('GET', path)

    def post(self, path, /, **body):
        return self.raw('POST', path, {'sandbox': self.box, **body})

    def of(self, method, more, body=None):
        return self.raw(method, f'/v1/sandboxes/{self.box}{more}', body)

    def told(self, more='', method='GET', body=None):
        return self.raw(method, f'/api/sessions/{self.talk}{more}', body)

    def tool(self, name, /, **arguments):
        with self.hub.wire() as wire:
            wire.sock.settimeout(200)
            self.mcp.call(wire, name, **arguments)
            return json.dumps(self.mcp.answer(wire), ensure_ascii=False).encode()

    def code(self, name, /, **arguments):
        return self.tool(name, workspace='work', **arguments)

    def has(self, data):
        """Which of the secrets are in an answer, in any form."""
        data = unpacked(data)
        return [form for form in self.forms if form in data]

    # ---- roads of more than one step

    def asked(self, end):
        """A request for approval; end gets its id."""
        with self.hub.wire() as wire:
            wire.send(self.hub.request('POST', '/v1/exec', body=json.dumps(
                {'sandbox': self.box, 'command': f'true # {ASKED} {self.plant}'})))
            request = pending(self.hub)[0]['id']
            said = end(request)
            self.raw('POST', f'/v1/approvals/{request}', {'decision': 'deny'})
            wire.reply('POST')
        return said

    def question(self, end, **more):
        asked = self.hub.post('/api/prompts', kind='textbox', question=self.plant, wait=False,
                              **more)['request_id']
        return end(f'/api/prompts/{asked}')

    def answered(self, path):
        return self.raw('POST', path + '/answer', {'free_text': self.plant})

    def waited(self):
        with self.hub.wire() as wire:
            wire.send(self.hub.request('POST', '/api/prompts', body=json.dumps(
                {'kind': 'textbox', 'question': 'Which?', 'title': 'waits'})))
            asked = until(lambda: [p for p in self.hub.call('GET', '/api/prompts')['prompts']
                                   if p.get('title') == 'waits'], what='a question')[0]
            self.answered(f'/api/prompts/{asked["request_id"]}')
            return wire.reply('POST').body

    def attached(self):
        with Attached(self.hub, self.box, self.job, 0) as talk:
            talk.until(b'end\n')
            return talk.out

    def stream(self, path, after):
        """The first pieces of a stream, and what comes after something was done."""
        with self.hub.wire() as wire:
            wire.send(self.hub.request('GET', path))
            wire.head()
            first = wire.chunk()
            after()
            return first + wire.chunk()

    def feed(self):
        said = b''
        with events(self.hub, '/api/events') as following:
            self.told(method='PATCH', body={'title': f'again {self.value}'})
            while b'again' not in said:
                said += json.dumps(following()).encode()
        return said

    def queued(self, method, more='', body=None):
        """What is answered about a prompt that waits behind another."""
        talk = self.hub.post('/api/sessions', title='queued')['session_id']
        queue = f'/api/sessions/{talk}/queue'
        for _ in range(2):
            last = self.hub.post(queue, prompt=self.plant)['message_id']
        return self.raw(method, f'{queue}/{last}{more}', body)

    def restored(self):
        talk = self.hub.post('/api/sessions', title=self.value)['session_id']
        self.raw('DELETE', f'/api/sessions/{talk}')
        return self.raw('POST', f'/api/sessions/{talk}/restore', {})

    def named(self, method, more=''):
        """What is answered about a file of a conversation."""
        made = self.raw('POST', f'/api/sessions/{self.talk}/files', {
            'name': f'{self.value}.txt', 'content': 'aGVsbG8='})
        file = json.loads(made)['file_id']
        return made if method == 'POST' else self.told(f'/files/{file}', method)

    def changed(self, word):
        """Of a module that nothing else uses."""
        at = '/v1/modules/other'
        digest = json.loads(self.get(at))['digest']
        return self.raw('POST', f'{at}/{word}', {'digest': digest} if word == 'approve' else None)

    def driven(self):
        """The history of a conversation whose agent says something and fails."""
        talk = self.hub.post('/api/sessions', acp_server='leaky', workspace='site')['session_id']
        self.raw('POST', f'/api/sessions/{talk}/queue', {'prompt': self.plant})
        return until(lambda: (said := self.get(f'/api/sessions/{talk}/events?limit=100'))
                     and b'"error"' in said and said, what='the end of a turn')

    def shell(self):
        said = self.code('Bash', command='cat f; sleep 1000', run_in_background=True)
        return re.search(r'exec-[0-9a-f]+', said.decode())[0]

    def shell_said(self, tool):
        shell = self.shell()
        said = until(lambda: (s := self.code('BashOutput', shell_id=shell, offset=0))
                     and b'A_TOKEN' in s and s, what='its output')
        killed = self.code('KillShell', shell_id=shell)
        return killed if tool == 'KillShell' else said

    def watched(self):
        said = self.code('watch_process', command='cat f; sleep 1000', error_patterns=['A_TOKEN'])
        shell = re.search(r'exec-[0-9a-f]+', said.decode())[0]
        events_of = until(lambda: (e := self.code('watch_process_events', shell_id=shell))
                          and b'A_TOKEN' in e and e, what='an event')
        self.code('KillShell', shell_id=shell)
        return events_of

    def tested(self, tool):
        self.code('run_tests')
        return self.code(tool)

    def shots(self, tool, **more):
        name = 's' + secrets.token_hex(4)
        self.code('snapshot_create', name=name, description=self.value)
        self.project.put(f'{self.value}.{name}', self.plant + '\n')
        return self.code(tool, **({'name': name} if tool != 'snapshot_list' else {}), **more)

    def imported(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode='w') as tar:
            tar.addfile(tarfile.TarInfo(f'{self.value}.pem'))
        with self.hub.wire() as wire:
            data = out.getvalue()
            wire.send(self.hub.request('POST', '/v1/workspaces/kept/import', fields=[
                'Content-Type: application/x-tar', f'Content-Length: {len(data)}']).encode() + data)
            return wire.reply('POST').body

    def audit(self):
        record = self.hub.raw('GET', f'/v1/sandboxes/{self.box}').get('Audit-Id')
        return self.get(f'/v1/audit/{record}')


AT = '/v1/sandboxes/'
# How each action that is redacted is made to bring what it has.
DRIVERS = {
    'approval.list': lambda w: w.asked(lambda i: w.get('/v1/approvals')),
    'approval.get': lambda w: w.asked(lambda i: w.get(f'/v1/approvals/{i}')),
    'approval.answer': lambda w: w.asked(
        lambda i: w.raw('POST', f'/v1/approvals/{i}', {'decision': 'deny'})),
    'audit.list': lambda w: w.audit() and w.get('/v1/audit?limit=1000'),
    'audit.get': World.audit,
    'code.execute': lambda w: w.raw('POST', '/v1/javascript', {
        'code': f'console.log("{w.plant}"); "{w.plant}"'}),
    'coding.bash': lambda w: w.code('Bash', command='cat f'),
    'coding.edit': lambda w: w.code('Read', file_path=w.value) and w.code(
        'Edit', file_path=w.value, old_string='x', new_string='x'),
    'coding.events': World.watched,
    'coding.failures': lambda w: w.tested('last_test_failures'),
    'coding.glob': lambda w: w.code('Glob', pattern='*'),
    'coding.grep': lambda w: w.code('Grep', pattern='A_TOKEN', output_mode='content'),
    'coding.kill': lambda w: w.shell_said('KillShell'),
    'coding.lint': lambda w: w.code('run_lint'),
    'coding.output': lambda w: w.shell_said('BashOutput'),
    'coding.read': lambda w: w.code('Read', file_path='f'),
    'coding.retest': lambda w: w.tested('run_failing_tests'),
    'coding.script': lambda w: w.code('run_script', name='lint'),
    'coding.search': lambda w: w.code('search_code', query='connect'),
    'coding.snapshot_diff': lambda w: w.shots('snapshot_diff'),
    'coding.snapshot_list': lambda w: w.shots('snapshot_list'),
    'coding.snapshot_restore': lambda w: w.shots('snapshot_restore'),
    'coding.test': lambda w: w.code('run_tests'),
    'coding.typecheck': lambda w: w.code('run_typecheck'),
    'coding.write': lambda w: w.code('Read', file_path=w.value) and w.code(
        'Write', file_path=w.value, content='x'),
    'contract.run': lambda w: w.raw('POST', '/v1/run', {
        'command': ['echo', w.plant], 'state': {'retention': 'destroy'}}),
    'conversation.add_file': lambda w: w.named('POST'),
    'conversation.create': lambda w: w.raw('POST', '/api/sessions', {'title': w.value}),
    'conversation.file': lambda w: w.told(f'/files/{w.file}'),
    'conversation.files': lambda w: w.told('/files'),
    'conversation.get': World.told,
    'conversation.history': World.driven,
    'conversation.list': lambda w: w.get('/api/sessions'),
    'conversation.move': lambda w: w.queued('POST', '/move', {'to': 0}),
    'conversation.queue': lambda w: w.told('/queue'),
    'conversation.remove': lambda w: w.queued('DELETE'),
    'conversation.remove_file': lambda w: w.named('DELETE'),
    'conversation.restore': World.restored,
    'conversation.retry': lambda w: w.queued('POST', '/retry', {}),
    'conversation.update': lambda w: w.told(method='PATCH', body={'title': w.value}),
    'event.list': lambda w: w.get('/v1/events?limit=1000'),
    'exec.attach': World.attached,
    'exec.get': lambda w: w.of('GET', f'/execs/{w.job}'),
    'exec.list': lambda w: w.of('GET', '/execs'),
    'exec.output': lambda w: w.attached() and w.of('GET', f'/execs/{w.job}/output'),
    'feed.follow': World.feed,
    'files.download': lambda w: w.of('GET', '/archive'),
    'files.list': lambda w: w.post('/v1/files/list', path='d'),
    'files.read': lambda w: w.post('/v1/files/read', path='f'),
    'files.stat': lambda w: w.post('/v1/files/stat', path=f'd/{w.value}'),
    'files.watch': lambda w: w.stream(f'{AT}{w.box}/watch?path=.', lambda: w.post(
        '/v1/files/write', path=f'{w.value}.watched', content='x')),
    'module.approve': lambda w: w.changed('approve'),
    'module.call': lambda w: w.raw('POST', '/v1/modules/leaky/tools/echo', {'arguments': {}}),
    'module.disable': lambda w: w.changed('disable'),
    'module.disconnect': lambda w: w.raw('POST', '/v1/modules/broken/test') and w.raw(
        'POST', '/v1/modules/broken/disconnect'),
    'module.enable': lambda w: w.changed('enable'),
    'module.info': lambda w: w.get('/v1/modules/leaky'),
    'module.list': lambda w: w.raw('POST', '/v1/modules/broken/test') and w.get('/v1/modules'),
    'module.logs': lambda w: w.get('/v1/modules/leaky/logs'),
    'module.result': lambda w: w.get(f'/v1/module-results/{w.large}?limit=1000'),
    'module.revoke': lambda w: w.changed('revoke'),
    'module.search': lambda w: w.get('/v1/tools?query=echo'),
    'module.update': lambda w: w.raw('POST', '/v1/modules/package/update'),
    'module.test': lambda w: w.raw('POST', '/v1/modules/broken/test'),
    'process.list': lambda w: w.of('GET', '/processes'),
    'question.answer': lambda w: w.question(w.answered),
    'question.ask': World.waited,
    'question.cancel': lambda w: w.question(lambda p: w.raw('POST', p + '/cancel')),
    'question.get': lambda w: w.question(w.get),
    'question.list': lambda w: w.question(lambda p: w.get('/api/prompts')),
    'question.result': lambda w: w.question(lambda p: w.answered(p) and w.get(p + '/result')),
    'sandbox.create': lambda w: w.raw('POST', '/v1/sandboxes', {'labels': {'l': w.value}}),
    'sandbox.diff': lambda w: w.of('GET', '/diff'),
    'sandbox.exec': lambda w: w.post('/v1/exec', command='cat f; cat f >&2'),
    'sandbox.get': lambda w: w.of('GET', ''),
    'sandbox.list': lambda w: w.get('/v1/sandboxes'),
    'sandbox.terminate': lambda w: w.ended,
    'snapshot.get': lambda w: w.get(f'/v1/snapshots/{w.shot}'),
    'snapshot.list': lambda w: w.get('/v1/snapshots'),
    'snapshot.take': lambda w: w.of('POST', '/snapshots', {'name': w.value}),
    'workspace.commit': lambda w: w.committed,
    'workspace.diff': lambda w: w.get('/v1/workspaces/kept/diff?content=true&from='
                                      + json.loads(w.get('/v1/workspaces/kept/log'))
                                      ['revisions'][-1]['revision']),
    'workspace.export': lambda w: w.get('/v1/workspaces/kept/export?revision='
                                        + json.loads(w.committed)['revision']),
    'workspace.import': World.imported,
    'workspace.log': lambda w: w.get('/v1/workspaces/kept/log'),
}


def e2b(ask):
    """By the door of E2B's clients."""
    def road(w):
        box = test_e2b.Box(w.hub)
        try:
            box.ask('POST', '/files?path=/tmp/f', w.plant.encode(),
                    {'Content-Type': 'application/octet-stream'})
            box.ask('POST', f'/files?path=/tmp/d/{w.value}', b'x',
                    {'Content-Type': 'application/octet-stream'})
            return ask(box)
        finally:
            box.kill()
    return road


ROADS = {
    'E2B: files': e2b(lambda box: box.ask('GET', '/files?path=/tmp/f')[2]),
    'E2B: folders': e2b(lambda box: json.dumps(box.unary(
        'filesystem.Filesystem/ListDir', path='/tmp/d')).encode()),
    'E2B: commands': e2b(lambda box: json.dumps(box.start('cat /tmp/f; cat /tmp/f >&2')).encode()),
    'E2B: code': e2b(lambda box: json.dumps(box.execute(
        't = open("/tmp/f").read()\nprint(t)\nt')).encode()),
}


@pytest.fixture(scope='module')
def worlds(me, tmp_path_factory):
    before = host.Residue(me.trees)
    with contextlib.ExitStack() as hubs:
        made = []
        for off in (False, True):
            made.append(World(me, tmp_path_factory.mktemp('answers'), off))
            hubs.enter_context(made[-1].hub)
            hubs.callback(shutil.rmtree, made[-1].project.path)
            made[-1].fill()
        yield made
    before.check()


@pytest.fixture(scope='module')
def actions(me):
    done = me.run('policy', 'actions', '-o', 'json')
    assert done.returncode == 0, done
    return [one['action'] for one in json.loads(done.stdout)]


def test_each_action_has_its_row(actions):
    found = classified(actions)
    assert not set(actions) - set(found), 'docs/redaction.md says what these answer'
    assert {a for a, name in found.items() if name == REDACTED} == set(DRIVERS)


# With an argument that has them leave as they are; test_own_files.py tries who gets that.
OWN = {'files.download', 'files.read', 'workspace.export'}


def test_what_leaves_as_it_is(me):
    done = json.loads(me.run('policy', 'actions', '-o', 'json').stdout)
    assert {one['action'] for one in done
            if any(a['pointer'] == '/raw' for a in one.get('arguments', []))} == OWN
    with open(DOCS, encoding='utf-8') as f:
        told = re.search(r'with an argument `raw` \((.*?)\)', f.read(), re.S)[1]
    assert set(re.findall(r'`([a-z.]+)`', told)) == OWN


@pytest.mark.parametrize('name', [*DRIVERS, *ROADS])
def test_no_answer_has_a_secret(worlds, name):
    hidden, shown = worlds
    drive = DRIVERS.get(name) or ROADS[name]
    said = drive(shown)
    assert shown.has(said), ('the control: it is where this looks', said[:3000])
    said = drive(hidden)
    assert hidden.has(said) == [], said[:3000]
    assert b'[REDACTED:' in unpacked(said) or b'*' * 20 in said, said[:3000]
