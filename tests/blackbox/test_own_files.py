"""What the operator copies out of Holt is a file of his own, byte for byte, whatever redaction
would make of it (docs/redaction.md, "Copies of the operator's own"): nobody else gets that. And a
copy comes whole or not at all, and takes no other file with it."""

import base64
import glob
import hashlib
import io
import json
import os
import random
import re
import signal
import stat
import subprocess
import tarfile

import pytest

from client import until
from door import Wire
from test_hub_cli import FAILED, Hub as Cli
from test_keys import as_bearer, key
from test_login import Browser
from test_redact import TOKEN
from test_serve import Session
from test_trees import frame, upload

PASSWORD = 'kx9Qm2vT7wLp4RzB'
HERE = os.path.dirname(os.path.abspath(__file__))


def ordinary():
    """Files as a machine has them, some of which redaction alters, and those that have secrets."""
    noise = random.Random(7)
    files = {
        'settings.py': f'PASSWORD = "{PASSWORD}"\nTOKEN = "{TOKEN}"\nDEBUG = True\n'.encode(),
        'code.js': b'let pwd = findPassword(x) ? "a1b2c3d4e5" : cookie_secret = "Zq8kLm2Np4";\n',
        'latin1.properties': b'name=caf\xe9\npassword=' + PASSWORD.encode() + b'\n',
        'long.txt': b'\n'.join(b'password=%s%d' % (PASSWORD.encode(), n) for n in range(90000)),
        'stars': b'/' + b'*' * 70 + b'/\n[REDACTED:password:output]\n',
        'binary': bytes(noise.randrange(256) for _ in range(5000)) + b'\0password='
                  + PASSWORD.encode() + b'\0' + TOKEN.encode() + b'\0',
        'empty': b'', 'name with \xc3\xa9': b'x'}
    found = glob.glob('/usr/lib/python3*/**/*.py*', recursive=True) + glob.glob('/usr/bin/git*')
    for path in sorted(found)[::40][:60]:
        if os.path.isfile(path) and os.path.getsize(path) < 4 << 20:
            with open(path, 'rb') as f:
                files['system/' + path.strip('/').replace('/', '-')] = f.read()
    return files


FILES = ordinary()


def packed(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name if isinstance(name, str) else os.fsdecode(name))
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def unpacked(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {os.path.relpath(m.name, '.'): tar.extractfile(m).read() for m in tar if m.isfile()}


def read_tree(top):
    top, found = os.fspath(top), {}
    for at, dirs, files in os.walk(top):
        dirs[:] = [d for d in dirs if d != '.git']
        for name in files:
            with open(os.path.join(at, name), 'rb') as f:
                found[os.path.relpath(os.path.join(at, name), top)] = f.read()
    return found


def different(got, expected=None):
    expected = FILES if expected is None else expected
    return sorted(n for n in {*got, *expected} if got.get(n) != expected.get(n))


class Hub(Cli):
    """With a sandbox and a workspace that have the files."""

    def fill(self):
        self.box = self.create()
        self.exec(self.box, 'mkdir tree')
        upload(self, self.box, packed(FILES), 'tree')
        self.ok('ws', 'create', 'tree')
        self.ok('ws', 'import', 'tree', '-', input=packed(FILES), timeout=100)
        self.snapshot = json.loads(self.raw('POST', f'/v1/sandboxes/{self.box}/snapshots',
                                            {'name': 'tree'}).body)['id']

    def folder(self, path):
        path.mkdir()
        os.chown(path, self.who.uid, self.who.uid)
        return path


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    with Hub(me, tmp_path_factory.mktemp('own'), '--listen', '127.0.0.1:0',
             '--pool', '0') as shared:
        shared.fill()
        yield shared


@pytest.fixture
def here(hub, tmp_path):
    return hub.folder(tmp_path / 'here')


# ---- the bytes -------------------------------------------------------------------------------


def by_cp(hub, here):
    hub.ok('cp', f'{hub.box}:tree', str(here / 'out'))
    return read_tree(here / 'out')


def by_cp_of_each(hub, here):
    """Over what is there."""
    for name in list(FILES)[:8]:
        (here / name).write_bytes(b'old')
        os.chown(here / name, hub.who.uid, hub.who.uid)
        hub.ok('cp', f'{hub.box}:tree/{name}', str(here / name))
    return {**FILES, **read_tree(here)}


def by_pipe(hub, here):
    return unpacked(hub.ok('cp', f'{hub.box}:tree/.', '-'))


def by_another_sandbox(hub, here):
    """As `holt cp A:d - | holt cp - B:`."""
    other = hub.create()
    hub.ok('cp', '-', f'{other}:.', input=hub.ok('cp', f'{hub.box}:tree/.', '-'))
    hub.ok('cp', f'{other}:.', str(here / 'out'))
    hub.ok('down', other)
    return read_tree(here / 'out')


def by_fs_read(hub, here):
    return {**FILES, **{name: hub.ok('fs', 'read', '--raw', hub.box, f'tree/{name}')
                        for name in list(FILES)[:8]}}


def by_export(hub, here):
    hub.ok('ws', 'export', 'tree', str(here / 'out.tar'))
    return unpacked((here / 'out.tar').read_bytes())


def by_export_to_a_pipe(hub, here):
    return unpacked(hub.ok('ws', 'export', 'tree', '-'))


def by_git(hub, here):
    git = ['git', '-c', 'safe.directory=*', '-C', str(here)]
    subprocess.run([*git, 'init', '-q'], check=True)
    for path in (here, *here.rglob('*')):
        os.chown(path, hub.who.uid, hub.who.uid)
    hub.ok('ws', 'export', 'tree', str(here), '--git')
    done = subprocess.run([*git, 'archive', 'holt/tree'], check=True, stdout=subprocess.PIPE)
    return unpacked(done.stdout)


def by_apply(hub, here):
    hub.ok('ws', 'apply', 'tree', '--to', str(here), '--yes', timeout=100)
    return read_tree(here)


ROADS = [by_cp, by_cp_of_each, by_pipe, by_another_sandbox, by_fs_read, by_export,
         by_export_to_a_pipe, by_git, by_apply]


@pytest.mark.parametrize('road', ROADS)
def test_own_copies_are_whole(hub, here, road):
    assert different(road(hub, here)) == []


def test_what_others_get_is_redacted(hub):
    """The control: the files are such as redaction alters."""
    with hub.wire() as wire:
        wire.send(hub.request('GET', f'/v1/sandboxes/{hub.box}/archive?path=tree'))
        altered = different(unpacked(wire.reply().body))
    assert {'settings.py', 'binary', 'long.txt', 'latin1.properties'} <= set(altered)


def test_what_an_agent_changed_comes_back(hub, here):
    """A file of the user's with a password, in which an agent changed another line."""
    (here / 'settings.py').write_bytes(FILES['settings.py'])
    (here / '.env').write_text(f'DB_PASSWORD={PASSWORD}\nPORT=1\n')
    for path in here.iterdir():
        os.chown(path, hub.who.uid, hub.who.uid)
    box = hub.create()
    hub.ok('cp', f'{here}/.', f'{box}:.')
    hub.exec(box, 'sed -i s/PORT=1/PORT=2/ .env; sed -i s/True/False/ settings.py')
    hub.ok('cp', f'{box}:/workspace/.', str(here))
    hub.ok('down', box)
    assert read_tree(here) == {
        '.env': f'DB_PASSWORD={PASSWORD}\nPORT=2\n'.encode(),
        'settings.py': FILES['settings.py'].replace(b'True', b'False')}


def test_apply_knows_who_changed_a_file_with_a_secret(hub, here):
    (here / 'settings.py').write_bytes(FILES['settings.py'])
    (here / 'mine').write_text('1\n')
    for path in here.iterdir():
        os.chown(path, hub.who.uid, hub.who.uid)
    hub.ok('ws', 'create', 'secretive')
    hub.ok('ws', 'import', 'secretive', str(here))
    box = hub.create(workspace='secretive')
    hub.exec(box, 'sed -i s/True/False/ settings.py; echo 2 > mine; '
             f'echo password={PASSWORD}2 > new')
    hub.ok('down', box)
    (here / 'new').write_text('mine\n')
    done = hub.fails(3, 'new: was changed here, too', 'ws', 'apply', 'secretive', '--to',
                     str(here), '--yes')
    assert b'settings.py' not in done.stderr and done.stderr.count(b'changed here') == 1
    (here / 'new').unlink()
    hub.ok('ws', 'apply', 'secretive', '--to', str(here), '--yes')
    assert read_tree(here) == {
        'settings.py': FILES['settings.py'].replace(b'True', b'False'), 'mine': b'2\n',
        'new': f'password={PASSWORD}2\n'.encode()}


def test_fs_read_says_that_marks_stand_for_something(hub):
    done = hub.run('fs', 'read', hub.box, 'tree/settings.py')
    assert done.returncode == 0 and PASSWORD.encode() not in done.stdout
    assert b'--raw' in done.stderr
    assert hub.run('fs', 'read', hub.box, 'tree/empty').stderr == b''
    # in pieces, whose marks have another length than what they stand for
    lines = hub.ok('fs', 'read', hub.box, 'tree/long.txt').splitlines()
    assert len(lines) == 90000 and {line[:9] for line in lines} == {b'password='}


# ---- who gets them ---------------------------------------------------------------------------


def b64_of(body):
    """What the messages of a stream of Connect have."""
    return b''.join(base64.b64decode(data) for data in re.findall(rb'"data": ?"([^"]*)"', body))


def asks(hub):
    """Each request with `raw`."""
    read = json.dumps({'sandbox': hub.box, 'path': 'tree/settings.py', 'raw': True})
    return {'download': ('GET', f'/v1/sandboxes/{hub.box}/archive?path=tree&raw=true', None),
            'read': ('POST', '/v1/files/read', read),
            'export': ('GET', '/v1/workspaces/tree/export?raw=true', None)}


def over_socket(hub, method, path, body, **options):
    with Wire(hub.paths[0]) as wire:
        return wire.ask(hub.request(method, path, body=body, **options), method)


@pytest.mark.parametrize('what', ['download', 'read', 'export'])
def test_nobody_else_gets_them(hub, what):
    method, path, body = asks(hub)[what]
    has = PASSWORD.encode()
    assert has in over_socket(hub, method, path, body).body  # the control
    token = key(hub, f'all-{what}', ['read', 'execute', 'lifecycle', 'admin'])
    browser = Browser(hub)
    said = {
        'token over TCP': hub.raw(method, path, body),
        'key over TCP': as_bearer(hub, token).raw(method, path, body),
        'key over the socket': over_socket(hub, method, path, body, token=token),
        'browser': browser.raw(method, path, body)}
    for who, reply in said.items():
        assert has not in reply.body, who
        assert reply.status == 403 and b'redacted copy' in reply.body, (who, reply)
    assert json.loads(said['token over TCP'].body)['error']['code'] == 'forbidden'


def test_what_the_operator_copies_in_has_the_bytes_of_the_file(hub, tmp_path):
    """Over files with secrets, where marks and asterisks would stand for them to others."""
    noise, n, mark = random.Random(11), len(PASSWORD), b'[REDACTED:password:output]'
    files = {**FILES, 'settings.py': FILES['settings.py'].replace(PASSWORD.encode(), mark),
             'binary': FILES['binary'].replace(PASSWORD.encode(), b'*' * n), 'noise': bytes(
                 noise.randrange(256) for _ in range(70000)), 'doc': b'password=' + mark * 3,
             'long.txt': FILES['long.txt'].replace(PASSWORD.encode(), mark)}
    top = hub.folder(tmp_path / 'top')
    for name, data in files.items():
        path = os.path.join(os.fsencode(top), name.encode() if isinstance(name, str) else name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'wb') as f:
            f.write(data)
    os.chown(tmp_path, hub.who.uid, hub.who.uid)
    box = hub.create()
    for source in (str(top) + '/.', '-'):
        hub.exec(box, 'rm -rf in; mkdir in')
        upload(hub, box, packed(FILES), 'in')
        hub.ok('cp', source, f'{box}:/workspace/in', timeout=100,
               **({'input': packed(files)} if source == '-' else {}))
        assert different(unpacked(hub.ok('cp', f'{box}:/workspace/in/.', '-', timeout=100)),
                         files) == [], source
    hub.ok('ws', 'create', 'in')
    for source in (str(top), '-'):
        hub.ok('ws', 'import', 'in', '-', input=packed(FILES), timeout=100)
        hub.ok('ws', 'import', 'in', source, timeout=100,
               **({'input': packed(files)} if source == '-' else {}))
        assert different(unpacked(hub.ok('ws', 'export', 'in', '-', timeout=100)),
                         files) == [], source


def test_a_key_has_a_redacted_copy_and_is_told(hub, tmp_path):
    """By the same verbs, at the user's own socket."""
    home = tmp_path / 'of a key'
    home.mkdir()
    (home / 'token').write_text(key(hub, 'copies', ['read', 'execute', 'lifecycle', 'admin']))
    (home / 'token').chmod(0o600)
    for path in (tmp_path, home, home / 'token'):
        os.chown(path, hub.who.uid, hub.who.uid)
    env = {'HOLT_HOME': str(home), 'HOLT_SOCKET': hub.paths[0]}
    for words in (('cp', f'{hub.box}:tree/.', '-'), ('ws', 'export', 'tree', '-')):
        done = hub.run(*words, env=env)
        assert done.returncode == 0 and b'a copy for a key is redacted' in done.stderr, done.stderr
        assert PASSWORD.encode() not in done.stdout and b'*****' in done.stdout
        assert {*unpacked(done.stdout)} == {*FILES}


def test_models_are_not_told_of_it(hub):
    """No tool has it, nor any procedure of Connect: there it is a member that nobody knows."""
    agent = Session(hub, '/mcp?tools=all')
    with hub.wire() as wire:
        agent.call(wire, 'sandbox_read_file', sandbox=hub.box, path='tree/settings.py', raw=True)
        said = json.dumps(agent.answer(wire))
    assert PASSWORD not in said and 'raw' in said, said
    for name, path in ('ReadFile', 'tree/settings.py'), ('Archive', 'tree'):
        for raw in (None, True):
            asked = frame({'path': path, **({'raw': True} if raw else {})})
            with Wire(hub.paths[0]) as wire:
                wire.send(hub.request('POST', f'/sandbox.v1.Sandbox/{name}', fields=[
                    'Content-Type: application/connect+json', f'X-Sandbox-Id: {hub.box}',
                    f'Content-Length: {len(asked)}']).encode() + asked)
                reply = wire.reply('POST')
            assert PASSWORD.encode() not in reply.body
            assert (b'DEBUG' in b64_of(reply.body)) == (raw is None), (name, reply.body[:300])


def test_rules_and_the_log_see_it(me, tmp_path_factory):
    home = tmp_path_factory.mktemp('ruled')
    (home / 'config.json').write_text(json.dumps({'policy': {'rules': [
        {'name': 'no-copies', 'actions': ['files.download'], 'when': {'/raw': 'true'},
         'then': 'deny'}]}}))
    for path in (home, home / 'config.json'):
        os.chown(path, me.uid, me.uid)
    with Cli(me, home, '--listen', '127.0.0.1:0', '--pool', '0') as hub:
        box = hub.create()
        hub.post('/v1/files/write', sandbox=box, path='f', content=f'password={PASSWORD}\n')
        mine = os.path.join(me.work, 'kept')
        with open(mine, 'w', encoding='ascii') as f:
            f.write('mine')
        os.chown(mine, me.uid, me.uid)
        hub.fails(FAILED, 'no-copies', 'cp', f'{box}:f', mine)
        with open(mine, encoding='ascii') as f:
            assert f.read() == 'mine'  # and not what somebody else is shown
        os.unlink(mine)
        record = hub.json('audit', 'tail', '--action', 'files.download', '-n', '1')
        assert '"decision": "deny"' in json.dumps(record), record


# ---- what is written where -------------------------------------------------------------------


def writes(hub):
    """Verbs that write a file of the user's, without its name."""
    return {'cp': ('cp', f'{hub.box}:tree/settings.py'), 'ws export': ('ws', 'export', 'tree'),
            'snapshot export': ('snapshot', 'export', hub.snapshot)}


VERBS = ['cp', 'ws export', 'snapshot export']


def own(hub, *paths):
    for path in paths:
        os.chown(path, hub.who.uid, hub.who.uid, follow_symlinks=False)


@pytest.mark.parametrize('verb', VERBS)
def test_other_files_stay(hub, here, verb):
    others = {here / f'out{end}': end for end in ('.new', '.tmp', '.holt-new', '~')}
    for path, text in others.items():
        path.write_text(text)
    (here / 'out').write_text('old')
    (here / 'out').chmod(0o640)
    own(hub, here / 'out', *others)
    hub.ok(*writes(hub)[verb], str(here / 'out'))
    assert {path: path.read_text() for path in others} == others
    assert sorted(here.iterdir()) == sorted([*others, here / 'out'])
    assert (here / 'out').read_bytes()[:3] != b'old'
    assert verb == 'cp' or stat.S_IMODE((here / 'out').stat().st_mode) == 0o640


@pytest.mark.parametrize('verb', VERBS[1:])
def test_links_are_followed(hub, here, verb):
    """But by `holt cp`, which writes where sandboxes may have made links (test_trees.py)."""
    hub.folder(here / 'd')
    (here / 'd/out').write_text('old')
    (here / 'link').symlink_to('d/out')
    own(hub, here / 'd/out', here / 'link')
    hub.ok(*writes(hub)[verb], str(here / 'link'))
    assert os.readlink(here / 'link') == 'd/out' and (here / 'd/out').stat().st_size > 3
    assert [p.name for p in (here / 'd').iterdir()] == ['out']


@pytest.mark.parametrize('verb', VERBS)
def test_pipes_and_devices_stay_what_they_are(hub, here, verb):
    """The devices are copies of the system's."""
    os.mkfifo(here / 'fifo')
    own(hub, here / 'fifo')
    proc = hub.popen(*writes(hub)[verb], str(here / 'fifo'))
    with open(here / 'fifo', 'rb') as f:
        came = f.read()
    assert proc.wait(60) == 0 and len(came) > 50, proc.communicate()
    assert stat.S_ISFIFO((here / 'fifo').stat().st_mode)
    if verb == 'cp':
        assert came == FILES['settings.py']
    if verb == 'cp':
        assert hub.ok(*writes(hub)[verb], '/dev/stdout') == FILES['settings.py']
        (here / 'self').symlink_to('/proc/self/fd/1')  # as /dev/stdout is one
        with open(here / 'file', 'wb') as f:
            assert hub.run(*writes(hub)[verb], str(here / 'self'), stdout=f).returncode == 0
        assert os.readlink(here / 'self') == '/proc/self/fd/1'
        assert (here / 'file').read_bytes() == came
        (here / 'self').unlink()
        (here / 'file').unlink()
    if os.geteuid() != 0:
        return
    os.mknod(here / 'null', 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    os.chmod(here / 'null', 0o666)
    done = hub.run(*writes(hub)[verb], str(here / 'null'))
    assert stat.S_ISCHR((here / 'null').stat().st_mode)
    assert sorted(p.name for p in here.iterdir()) == ['fifo', 'null']
    assert done.returncode == 0 or b'Permission' in done.stderr, done  # a file system without them


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing_behind(hub, here, number):
    """It comes while the answer is awaited: the hub stands still then."""
    (here / 'out').write_text('mine')
    own(hub, here / 'out')
    os.kill(hub.proc.pid, signal.SIGSTOP)
    try:
        proc = hub.popen('ws', 'export', 'tree', str(here / 'out'))
        until(lambda: len(list(here.iterdir())) == 2, what='the file beside')
        proc.send_signal(number)
        assert proc.wait(60) == -number
    finally:
        os.kill(hub.proc.pid, signal.SIGCONT)
    assert [p.name for p in here.iterdir()] == ['out'] and (here / 'out').read_text() == 'mine'


# ---- an apply that is interrupted ------------------------------------------------------------


@pytest.fixture(scope='module')
def many(hub):
    hub.ok('ws', 'create', 'many')
    hub.ok('ws', 'import', 'many', '-', timeout=100, input=packed(
        {f'd{n % 40}/f{n}': b'line %d\n' % n * 20 for n in range(2500)}))


def test_apply_whose_reader_leaves(hub, many, here):
    proc = hub.popen('ws', 'apply', 'many', '--to', str(here), '--yes')
    assert proc.stdout.read(10)
    proc.stdout.close()
    proc.wait(100)
    assert proc.returncode != 0 and os.listdir(here) == []


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize('moment', ['fetch', 'run'])
def test_apply_that_is_interrupted(hub, many, here, number, moment):
    """All or nothing of it, and its stage goes."""
    (here / 'mine').write_text('mine')
    own(hub, here / 'mine')
    with open(os.devnull, 'wb') as null:
        proc = subprocess.Popen(hub.who.argv('ws', 'apply', 'many', '--to', str(here), '--yes'),
                                env=hub.env, cwd='/', stdin=subprocess.DEVNULL, stdout=null,
                                stderr=subprocess.PIPE)
    until(lambda: any(here.glob('.holt-apply-*' if moment == 'fetch' else 'd*')), what='a stage')
    proc.send_signal(number)
    said = proc.communicate(timeout=100)[1]
    left = read_tree(here)
    assert left.pop('mine') == b'mine'
    assert len(left) in (0, 2500), said
    assert not any(here.glob('.holt-apply-*')) and (proc.returncode == -number), said


def test_digest(hub):
    """What the hub has is what was put there."""
    said = hub.exec(hub.box, 'cd tree && sha256sum settings.py binary')['stdout']
    assert said.split()[::2] == [hashlib.sha256(FILES[n]).hexdigest()
                                 for n in ('settings.py', 'binary')]
