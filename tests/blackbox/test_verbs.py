"""Each verb of the command line: with wrong options and operands, with names of nothing, without a
hub, with another token, for programs (-o json), again, and at once. The rows are of `holt help`: a
verb that the table here has not fails by its name."""

import concurrent.futures
import json
import os
import re
import subprocess

import pytest

import host
from approval import Asker, asks, question
from client import until
from test_hub_cli import FAILED, Hub

USAGE = 2
NAMES = ('nobody', '../x', '', 'x' * 10000, '\xfc%2e', '-x')


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    with Hub(me, asks(me, tmp_path_factory.mktemp('verbs')), '--listen', '127.0.0.1:0',
             '--preview', '127.0.0.1:0', '--pool', '2') as shared:
        shared.helps = {}
        shared.folder = tmp_path_factory.mktemp('verbs-files')
        (shared.folder / 'f').write_text('of the image')
        (shared.folder / 'Tool').mkdir()
        (shared.folder / 'Tool/holt.json').write_text('{}')
        yield shared
    before.check()


class Stage:
    """What verbs are about: a sandbox with files, what ran in it and what runs, a snapshot, an
    image; as far as they are needed."""

    def __init__(self, hub, needs=''):
        self.folder = str(hub.folder)
        self.box = hub.create()
        hub.exec(self.box, 'echo old > f; mkdir d')
        start = {'sandbox': self.box, 'background': True}
        if 'program' in needs:
            self.ended = hub.post('/v1/exec', **start, command='echo said')['exec_id']
            hub.post(f'/v1/sandboxes/{self.box}/execs/{self.ended}/wait')
            self.runs = hub.post('/v1/exec', **start, command='sleep 1000')['exec_id']
        if 'workspace' in needs:
            self.revision = hub.post('/v1/workspaces', name='of-stage')['revision']
            self.fresh = hub.create()
        if 'attached' in needs:
            hub.post('/v1/workspaces/of-stage/attach', sandbox=self.fresh)
        if 'snapshot' in needs:
            self.snapshot = hub.post(f'/v1/sandboxes/{self.box}/snapshots')['id']
            self.archive = os.path.join(self.folder, 'archive')
            hub.ok('snapshot', 'export', self.snapshot, self.archive)
        if 'talk' in needs:
            self.talk = hub.post('/api/sessions', title='of stage',
                                 workspace='of-stage')['session_id']
        if 'message' in needs:
            self.message = hub.post(f'/api/sessions/{self.talk}/queue', prompt='x')['message_id']
        if 'trash' in needs:
            hub.call('DELETE', f'/api/sessions/{self.talk}')
        if 'key' in needs:
            hub.post('/v1/keys', name='of-stage', scopes=['read'])
        if 'approval' in needs:
            self.asker = Asker(hub, self.box)
            self.asked = self.asker.id
        if 'question' in needs:
            self.question = question(hub)
        if 'image' in needs:
            hub.ok('images', 'import', self.folder, 'of-verbs')


class Row:
    """Right arguments; the status of that and of the same again; the name among them, and how the
    verb ends on wrong usage. Without hub the verb asks none; without right there is nothing that
    can always be right."""

    def __init__(self, right=(), again=0, *, status=0, needs='', name=None, hub=True, usage=USAGE,
                 endless=False):
        self.right = right if callable(right) or right is None else lambda s: list(right)
        self.again, self.status, self.needs, self.name = again, status, needs, name
        self.hub, self.usage, self.endless = hub, usage, endless


def box(*more, before=()):
    return lambda s: [*before, s.box, *more]


ROWS = {
    'run': Row(['--', 'cat', '/etc/hostname'], hub=False, usage=FAILED),
    'up': Row(['-n', 'made'], FAILED),
    'inspect': Row(box(), name=0),
    'ls': Row(),
    'ps': Row(box(), name=0),
    'top': Row(['-1']),
    'events': Row(),
    'exec': Row(box('--', 'cat', 'f'), name=0, usage=FAILED),
    'execs': Row(box(), name=0, needs='program'),
    'logs': Row(lambda s: [s.box, s.ended], name=0, needs='program'),
    'attach': Row(lambda s: ['--no-stdin', s.box, s.ended], name=1, needs='program', usage=FAILED),
    'wait': Row(lambda s: [s.box, s.ended], name=0, needs='program', usage=FAILED),
    'kill': Row(lambda s: ['-s', '18', s.box, s.runs], name=2, needs='program'),
    'fs': Row([], USAGE, status=USAGE, hub=False),
    'fs ls': Row(box(), name=0),
    'fs stat': Row(box('f'), name=0),
    'fs read': Row(box('f'), name=0),
    'fs write': Row(box('g'), name=0),
    'fs mkdir': Row(box('a/b'), name=0),
    'fs rm': Row(box('f'), FAILED, name=0),
    'fs mv': Row(box('f', 'd/f'), FAILED, name=0),
    'fs watch': Row(box('d'), name=0, endless=True),
    'cp': Row(lambda s: [s.box + ':f', '-']),
    'net': Row([], USAGE, status=USAGE, hub=False),
    'net show': Row(box(), name=0),
    'net allow': Row(box('example.org'), name=0),
    'net revoke': Row(box(), name=0),
    'forward': Row(box('8000'), name=0),
    'preview': Row(box('8000'), name=0),
    'fork': Row(box(before=['-n', 'kid']), FAILED, name=2),
    'pause': Row(box(), name=0),
    'resume': Row(box(), name=0),
    'stop': Row(box(), name=0),
    'down': Row(box(), FAILED, name=0),
    'diff': Row(box(), name=0),
    'snapshot': Row(),
    'snapshot ls': Row(),
    'snapshot create': Row(box(), name=0),
    'snapshot restore': Row(lambda s: ['-n', 'back', s.snapshot], FAILED, name=2, needs='snapshot'),
    'snapshot rm': Row(lambda s: [s.snapshot], FAILED, name=0, needs='snapshot'),
    'snapshot export': Row(lambda s: [s.snapshot, '-'], name=0, needs='snapshot'),
    'snapshot import': Row(lambda s: [s.archive], name=0, needs='snapshot'),
    'approvals': Row(),
    'approvals ls': Row(),
    'approvals show': Row(lambda s: [s.asked], name=0, needs='approval'),
    'approvals approve': Row(lambda s: [s.asked], FAILED, name=0, needs='approval'),
    'approvals deny': Row(lambda s: [s.asked], FAILED, name=0, needs='approval'),
    'approvals watch': Row(needs='approval', endless=True),
    'conversations': Row(),
    'conversations ls': Row(),
    'conversations new': Row(['--title', 'made', 'a prompt']),
    'conversations show': Row(lambda s: [s.talk], name=0, needs='talk'),
    'conversations send': Row(lambda s: ['--key', 'one', s.talk, 'x'], name=2, needs='talk'),
    'conversations queue': Row(lambda s: [s.talk], name=0, needs='talk'),
    'conversations unqueue': Row(lambda s: [s.talk, s.message], FAILED, name=1,
                                 needs='talk message'),
    'conversations retry': Row(lambda s: [s.talk, s.message], name=1, needs='talk message'),
    'conversations history': Row(lambda s: [s.talk], name=0, needs='talk'),
    'conversations cancel': Row(lambda s: [s.talk], name=0, needs='talk'),
    'conversations flags': Row(lambda s: [s.talk], name=0, needs='talk'),
    'conversations archive': Row(lambda s: [s.talk], name=0, needs='talk'),
    'conversations rm': Row(lambda s: [s.talk], FAILED, name=0, needs='talk'),
    'conversations restore': Row(lambda s: [s.talk], FAILED, name=0, needs='talk trash'),
    'prompts': Row(),
    'prompts ls': Row(),
    'prompts show': Row(lambda s: [s.question], name=0, needs='question'),
    'prompts answer': Row(lambda s: [s.question, 'yes'], FAILED, name=0, needs='question'),
    'prompts cancel': Row(lambda s: [s.question], FAILED, name=0, needs='question'),
    'prompts watch': Row(needs='question', endless=True),
    'js': Row([os.path.join(os.path.dirname(__file__), 'peers/sum.js')]),
    'ws': Row(),
    'ws ls': Row(),
    'ws create': Row(['made'], FAILED),
    'ws attach': Row(lambda s: ['of-stage', s.fresh], FAILED, name=0, needs='workspace'),
    'ws commit': Row(['of-stage'], name=0, needs='workspace attached'),
    'ws log': Row(['of-stage'], name=0, needs='workspace'),
    'ws diff': Row(['of-stage'], name=0, needs='workspace'),
    'ws revert': Row(lambda s: ['of-stage', s.revision], name=0, needs='workspace'),
    'ws fork': Row(['of-stage', 'made'], FAILED, name=0, needs='workspace'),
    'ws gc': Row(),
    'ws import': Row(['of-stage', '/etc/skel'], name=0, needs='workspace'),
    'ws export': Row(['of-stage', '-'], name=0, needs='workspace'),
    'ws apply': Row(lambda s: ['of-stage', '--yes', '--to', s.folder], name=0, needs='workspace'),
    'ws verify': Row(['of-stage'], name=0, needs='workspace'),
    'ws rm': Row(lambda s: ['of-stage'], FAILED, name=0, needs='workspace'),
    'web': Row(),
    'audit': Row(hub=False, usage=FAILED),
    'audit tail': Row(['-n', '1'], hub=False, usage=FAILED),
    'audit show': Row(['of-verbs'], 3, status=3, hub=False, usage=FAILED),
    'audit verify': Row(['/nowhere'], 3, status=3, hub=False, usage=FAILED),
    'secret': Row(),
    'secret ls': Row(),
    'secret set': Row(['of-verbs'], FAILED, status=FAILED),  # with nothing on standard input
    'secret rm': Row(['of-verbs'], FAILED, name=0, status=FAILED),
    'build': Row(lambda s: [s.folder + '/Tool'], hub=False),
    'images': Row(hub=False),
    'images ls': Row(hub=False),
    'images import': Row(lambda s: [s.folder, 'of-verbs'], hub=False),
    'images pull': Row(None, hub=False),
    'images inspect': Row(['of-verbs'], needs='image', name=0, hub=False),
    'images rm': Row(['of-verbs'], FAILED, needs='image', name=0, hub=False),
    'images prune': Row(hub=False),
    'mcp': Row(hub=False),
    'serve': Row(['--listen', 'none'], FAILED, status=FAILED, hub=False),  # there is one
    'hub': Row(hub=False),
    'hub status': Row(hub=False),
    'hub stop': Row(None, hub=False),  # test_hub_verbs.py ends one
    'hub logs': Row([], FAILED, status=FAILED, hub=False),  # none has started by itself
    'auth': Row([], USAGE, status=USAGE, hub=False),
    'auth token': Row(hub=False),
    'auth keys': Row(),
    'auth login': Row([], USAGE, status=USAGE, hub=False),
    'auth whoami': Row(),
    'auth keys ls': Row(),
    'auth keys create': Row(['-n', 'made', '-s', 'read'], FAILED),
    'auth keys revoke': Row(lambda s: ['of-stage'], FAILED, name=0, needs='key'),
    'config': Row(hub=False),
    'config check': Row(hub=False),
    'config show': Row(hub=False),
    'config schema': Row(hub=False),
    'why': Row(['sandbox.exec'], hub=False),
    'policy': Row(hub=False),
    'policy actions': Row(['files.*'], hub=False),
    'init': Row(['of-nothing'], USAGE, status=USAGE, hub=False),
    'shell': Row(hub=False),  # with nothing on standard input
    'doctor': Row(hub=False),
    'self-check': Row(hub=False),
    'version': Row(hub=False),
    'help': Row(hub=False),
    'completion': Row(['zsh'], hub=False),
}
HUB = [name for name, row in ROWS.items() if row.hub]
NAMED = [name for name, row in ROWS.items() if row.name is not None]


def each(hub, cases, **options):
    """The ends of many, some at a time, with what each was for."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(zip(cases, pool.map(lambda words: hub.run(*words, timeout=100, **options),
                                        cases)))


def clear(hub):
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
    if hub.json('images'):
        hub.ok('images', 'rm', *[name for image in hub.json('images') for name in image['names']])


def help_of(hub, name):
    if name not in hub.helps:
        hub.helps[name] = hub.ok('help', *name.split()).decode()
    return hub.helps[name]


def test_each_has_its_row(hub):
    """The words of `holt mcp` have rows of their own in test_mcp_cli.py."""
    verbs = re.findall(r'^  ([\w-]+) ', hub.ok('help').decode(), re.M)
    words, names = [], list(verbs)
    while names:
        name = names.pop()
        below = re.findall(rf'^  ({name} \w+) ', help_of(hub, name), re.M)
        words += below
        names += below
    assert {*verbs, *(word for word in words if not word.startswith('mcp '))} == set(ROWS)


@pytest.mark.parametrize('name', ROWS)
def test_wrong_usage(hub, name):
    """Says what is wrong and where it stands how it is right, and has done nothing."""
    about = help_of(hub, name)
    usage = about.splitlines()[0]
    cases = [[*name.split(), '--no-such-option']]
    if '--output' in about:
        cases.append([*name.split(), '-o', 'xml'])
    if '...' not in usage and '--' not in usage:
        cases.append([*name.split(), *['x'] * 8])
    if re.search(r' [A-Z]+(?![^\[]*\])', usage):  # an operand that must be there
        cases.append(name.split())
    for words, done in each(hub, cases):
        first = done.stderr.decode().splitlines()[:1]
        assert done.returncode == ROWS[name].usage and done.stdout == b'', (words, done)
        assert first and first[0].startswith(('holt ' + name.split()[0], 'Usage: ')), (words, done)


NUMBERS = ('TIME', 'SIZE', 'N', 'NUMBER', 'OCTAL', 'ADDR:PORT')


def test_wrong_values(hub):
    """Of each option that takes a number, a time or a size: what is none, and what is too much."""
    cases = []
    for name in set(ROWS) - {'images pull'}:
        for option in re.findall(rf'^ .*(--[\w-]+) (?:{"|".join(NUMBERS)})(?: |$)',
                                 help_of(hub, name), re.M):
            cases += [[*name.split(), option, value, *ROWS[name].right(Names())]
                      for value in ('x', '9' * 30)]
    assert len(cases) > 50
    for words, done in each(hub, cases, input=b''):
        verb = next(name for name in sorted(ROWS, key=len, reverse=True)
                    if words[:len(name.split())] == name.split())
        assert (done.returncode in (ROWS[verb].usage, FAILED) and done.stdout == b''
                and done.stderr.startswith(b'holt')), (words, done)
    hub.fails(USAGE, 'takes at least 1, not 0', 'up', '--ttl', '0')
    hub.fails(FAILED, 'holt snapshot', 'snapshot', 'restore', 'nobody')
    assert hub.call('GET', '/v1/health')['sandboxes'] == 0


@pytest.mark.parametrize('name', NAMED)
def test_names_of_nothing(hub, name):
    row, cases = ROWS[name], []
    words = row.right(Names())
    for wrong in NAMES:
        cases.append([*name.split(), *words[:row.name], wrong, *words[row.name + 1:]])
    for words, done in each(hub, cases, input=b''):
        assert done.returncode == (row.usage if '-x' in words else FAILED) and done.stdout == b'', (
            words, done)
        assert done.stderr.startswith(b'holt'), (words, done)
    assert hub.call('GET', '/v1/health')['sandboxes'] == 0


class Names:
    """In the place of a stage, where nothing is there."""
    box = ended = runs = snapshot = asked = fresh = revision = talk = message = question = 'nobody'
    folder, archive = '/none', '/etc/hostname'


@pytest.mark.parametrize('kind', ['no hub', 'another token'])
def test_without(hub, tmp_path, kind):
    env = ({'HOLT_SOCKET': str(tmp_path / 'none')} if kind == 'no hub'
           else {'HOLT_HOME': str(tmp_path), 'HOLT_SOCKET': hub.paths[0]})
    cases = [[*name.split(), *ROWS[name].right(Names())] for name in HUB]
    for words, done in each(hub, cases, env=env, input=b''):
        said = done.stderr.decode()
        assert done.returncode == FAILED and done.stdout == b'', (words, done)
        assert ('holt serve' in said) if kind == 'no hub' else ('token' in said), (words, done)
    done = hub.fails(FAILED, '/none', 'snapshot', 'import', '/none')
    assert b'of this machine' in done.stderr
    assert hub.call('GET', '/v1/health')['sandboxes'] == 0


@pytest.mark.parametrize('name', [name for name, row in ROWS.items() if row.right])
def test_right_and_again(hub, name):
    """-o json is one JSON value (a line each of what is a stream);
    the second time may be refused, by name."""
    row, stage = ROWS[name], Stage(hub, ROWS[name].needs)
    words = [*name.split(), *row.right(stage)]
    if row.endless:
        with hub.popen(*words, '-o', 'json') as proc:
            assert json.loads(proc.stdout.readline())
            proc.kill()
        clear(hub)
        return
    as_json = '--output' in help_of(hub, name)
    first = hub.run(*words, *(['-o', 'json'] if as_json else []), input=b'', timeout=280)
    assert first.returncode == row.status, first
    if as_json:
        values = [json.loads(line) for line in first.stdout.splitlines()]
        assert len(values) == 1 or name == 'events', first
    again = hub.run(*words, input=b'', timeout=280)
    assert again.returncode == row.again, again
    assert again.returncode == 0 or again.stdout == b'' and again.stderr, again
    clear(hub)


def test_at_once(hub):
    """Sixteen programs of all kinds on one sandbox: each does it,
    or says that something is in the way."""
    s = Stage(hub)
    one = [['up', '-n', 'same'] for _ in range(8)]
    ends = [done.returncode for _, done in each(hub, one)]
    assert sorted(ends) == [0] + [FAILED] * 7
    kinds = [['pause', s.box], ['resume', s.box], ['exec', s.box, '--', 'cat', 'f'],
             ['fs', 'write', s.box, 'f'], ['fs', 'read', s.box, 'f'], ['fork', s.box],
             ['snapshot', 'create', s.box], ['diff', s.box], ['ps', s.box], ['top', '-1'], ['ls'],
             ['execs', s.box], ['cp', s.box + ':.', '-'], ['fs', 'ls', s.box],
             ['fs', 'mkdir', s.box, 'x'], ['pause', s.box]]
    procs = [(words, hub.popen(*words)) for words in kinds]
    while any(proc.poll() is None for _, proc in procs):  # a command that stands still does not end
        until(lambda: hub.asked('POST', '/v1/resume', {'sandbox': s.box})[0] == 200,
              what='its going on')
        try:
            next(proc for _, proc in procs if proc.poll() is None).wait(0.1)
        except (StopIteration, subprocess.TimeoutExpired):
            pass
    for words, proc in procs:
        _, said = proc.communicate()
        assert proc.returncode == 0 or proc.returncode == FAILED and said.startswith(b'holt: '), (
            words, proc.returncode, said)
    hub.ok('resume', s.box)
    assert hub.ok('exec', s.box, '--', 'echo', 'on') == b'on\n'
    assert [done.returncode for _, done in each(hub, [['down', s.box]] * 8)].count(0) == 1
    clear(hub)


def test_images_at_once(hub):
    cases = [['images', 'import', str(hub.folder), 'same'], ['images', 'prune'], ['images', 'ls'],
             ['images', 'import', str(hub.folder), 'other']] * 3
    assert {done.returncode for _, done in each(hub, cases)} == {0}
    assert (sorted(name for image in hub.json('images') for name in image['names'])
            == ['other:latest', 'same:latest'])
    clear(hub)
