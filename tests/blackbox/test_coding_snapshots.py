"""Snapshots of the folder in which an agent works (docs/coding.md): what differs is told, and what
is restored is exact."""

import json
import os
import random
import shutil
import socket
import stat
import time

import pytest

import host
from soak import soak
from test_coding import Project, answer, call, edit, fails, peak_of, read
from rest import Rest
from test_keys import as_bearer, key
from test_serve import Session

KEPT = ['.git', '.vscode', '.mcp.json']


def look(path, but=()):
    """All that is below a folder, without the names in `but` at its top: type, mode, time, and what
    is in it. Of the folder itself nothing."""
    seen = {}
    for at, folders, files in os.walk(os.fsencode(path)):
        below = os.path.relpath(at, os.fsencode(path))
        if below == b'.':
            for names in (folders, files):
                names[:] = [n for n in names if os.fsdecode(n) not in but]
        for name in folders + files:
            whole = os.path.join(at, name)
            st = os.lstat(whole)
            what = b''
            if stat.S_ISLNK(st.st_mode):
                what = os.readlink(whole)
            elif stat.S_ISREG(st.st_mode):
                with open(whole, 'rb') as f:
                    what = f.read()
            seen[os.path.normpath(os.path.join(below, name))] = (st.st_mode, st.st_mtime_ns, what)
    return seen


def settle():
    """So that what is written next has another time."""
    time.sleep(0.02)


@pytest.fixture(scope='module')
def home(me, tmp_path_factory):
    path = str(tmp_path_factory.mktemp('home'))
    for above in (path, os.path.dirname(path)):
        os.chmod(above, 0o755)
    os.chmod(path, 0o700)
    os.chown(path, me.uid, me.uid)
    return path


@pytest.fixture
def project(me):
    before = host.Residue(me.trees)
    made = Project(me)
    yield made
    for at, folders, _ in os.walk(os.fsencode(made.path)):
        for name in folders:
            if not os.path.islink(os.path.join(at, name)):
                os.chmod(os.path.join(at, name), 0o755)
    shutil.rmtree(made.path)
    before.check()


@pytest.fixture
def start(me, home, project):
    """Starts a `holt mcp` that works in the project."""
    clients = []

    def run(*arguments, folder=None):
        client = me.mcp('--pool', '0', '--workspace', folder or project.path, *arguments,
                        env={'HOLT_HOME': home})
        clients.append(client)
        client.initialize()
        return client
    yield run
    for client in clients:
        if client.proc.poll() is None:
            assert client.close() == 0


def own(project):
    """What a test has put there belongs to whom Holt runs as."""
    for at, folders, files in os.walk(os.fsencode(project.path)):
        for name in [b'.', *folders, *files]:
            os.chown(os.path.join(at, name), project.who.uid, project.who.uid,
                     follow_symlinks=False)


def fill(project):
    """A tree with everything that a file can be. Times are old, so that any change shows."""
    project.folder('src/deep', 'empty', 'closed', 'changes')
    for name, content, mode in [
            ('src/a.c', 'int a;\n', 0o644), ('run', '#!/bin/sh\n', 0o755),
            ('src/deep/b', b'\0\1\2' * 5000, 0o600), ('closed/c', 'c\n', 0o400),
            ('none', '', 0o644), (b'\xff\xfe', 'bytes\n', 0o644), (b'src/a\nb"\'\\', 'n\n', 0o640),
            ('Grüße', 'ä\n', 0o644), ('--help', 'x\n', 0o644),
            ('large', os.urandom(1 << 20), 0o644),
            ('changes/one', '1\n', 0o644), ('changes/two', '2\n', 0o644),
            (b'changes/' + b'n' * 255, 'long\n', 0o644)]:
        project.put(name, content, mode)
    os.symlink('src/a.c', project.at('link'))
    os.symlink(b'nowhere/\xff', project.at('dangling'))
    os.chmod(project.at('closed'), 0o555)
    own(project)
    for n, (at, folders, files) in enumerate(os.walk(os.fsencode(project.path), topdown=False)):
        for name in [*files, *folders]:
            os.utime(os.path.join(at, name), ns=(10**18, 10**18 + 1000 * n + len(name)),
                     follow_symlinks=False)


def spoil(project):
    """Changes, removes, adds and retypes."""
    at = project.at
    project.put('src/a.c', 'int b;\n')  # of the same length
    os.chmod(at('run'), 0o644)
    os.unlink(at('none'))
    shutil.rmtree(at('src/deep'))
    project.put('src/deep', 'a file now\n')
    os.rmdir(at('empty'))
    os.symlink('src', at('empty'))
    os.unlink(at('link'))
    os.mkdir(at('link'))
    project.put('link/in', 'x')
    os.unlink(at('dangling'))
    os.symlink('elsewhere', at('dangling'))
    os.chmod(at('closed'), 0o755)
    os.unlink(at('closed/c'))
    project.put('closed/new', 'new\n')
    project.put(b'\xff\xfe', 'other\n')
    project.put(b'more \xc3\xa4 \xff\n', 'more\n')  # D4: git quotes such a name
    project.put('größer', 'more\n')
    project.folder('made/deep/er')
    project.put('made/deep/er/f', 'f\n')
    with open(at('large'), 'r+b') as f:
        f.seek(500_000)
        f.write(b'changed')
    os.utime(at('changes/one'))
    own(project)


# ---- what is restored is exact -----------------------------------------------------------------


def test_restores_are_exact(start, project):
    fill(project)
    before = look(project.path)
    mcp = start()
    (said,) = call(mcp, 'snapshot_create', name='first')
    assert said.startswith('Snapshot first has ') and 'left out' not in said
    assert call(mcp, 'snapshot_diff', name='first') == ['Nothing differs.']
    settle()
    spoil(project)
    assert look(project.path, KEPT) != before
    (told,) = call(mcp, 'snapshot_restore', name='first')
    lines = told.splitlines()
    for line in ('changed file: src/a.c', 'changed file: run (mode 644, then 755)',
                 'new file: none', 'deleted file: file:///workspace/more%20%C3%A4%20%FF%0A',
                 'deleted file: größer', 'deleted directory: made', 'deleted file: made/deep/er/f',
                 'changed link: dangling', 'deleted link: empty', 'new directory: empty',
                 'changed directory: closed (mode 755, then 555)', 'changed file: large'):
        assert line in lines, (line, told)
    assert look(project.path, project_names(project)) == before
    assert call(mcp, 'snapshot_restore', name='first') == ['Nothing differs.']


def project_names(project):
    """What Holt itself has made at the top for as long as a sandbox has the folder."""
    return [n for n in os.listdir(project.path)
            if n.startswith('.') and not n.startswith('.holt-')
            or n in ('commondir', 'refs', 'opencode.json', 'opencode.jsonc')]


def test_restores_are_exact_at_random(start, project):
    rng = random.Random(7)
    names = [os.fsencode(n) for n in ('a', 'b', 'ß', 'x y')] + [b'\x80', b'a\n']
    mcp = start()

    def change(n):
        for _ in range(n):
            at = os.path.join(os.fsencode(project.path), rng.choice([b'.', b'd1', b'd1/d2', b'd3']))
            path = os.path.join(at, rng.choice(names))
            what = rng.randrange(6)
            if os.path.lexists(path) and what < 3:
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) \
                    else os.unlink(path)
            if os.path.lexists(path):
                continue
            os.makedirs(at, exist_ok=True)
            if what == 3:
                os.symlink(rng.choice(names), path)
            elif what == 4:
                os.mkdir(path, rng.choice([0o755, 0o700]))
            else:
                with open(path, 'wb') as f:
                    f.write(rng.randbytes(rng.choice([0, 10, 100_000])))
                os.chmod(path, rng.choice([0o644, 0o755, 0o600]))
        own(project)

    states = []
    for n in range(soak(40, 4)):
        change(25)
        states.append((f's{n}', look(project.path, project_names(project))))
        call(mcp, 'snapshot_create', name=states[-1][0])
        if len(states) > 20:
            states.pop(0)
        name, state = rng.choice(states)
        call(mcp, 'snapshot_restore', name=name)
        assert look(project.path, project_names(project)) == state, name


def test_d4_a_restore_tells_what_content_it_changed(start, project):
    """Not only which paths came and went; and whatever their times and sizes say."""
    project.put('a', 'one\n')
    times = os.stat(project.at('a'))
    mcp = start()
    call(mcp, 'snapshot_create', name='s')
    project.put('a', 'two\n')
    os.utime(project.at('a'), ns=(times.st_atime_ns, times.st_mtime_ns))
    (diff,) = call(mcp, 'snapshot_diff', name='s')
    assert diff == 'changed file: a\n@@ -1,1 +1,1 @@\n-one\n+two\n'
    assert call(mcp, 'snapshot_restore', name='s') == ['changed file: a\n']
    assert project.get('a') == b'one\n'
    os.utime(project.at('a'))
    assert call(mcp, 'snapshot_diff', name='s') == [
        'No content differs, but the times of 1 files.']
    call(mcp, 'snapshot_restore', name='s')
    assert os.stat(project.at('a')).st_mtime_ns == times.st_mtime_ns


def test_d4_extra_files_with_any_name_go(start, project):
    mcp = start()
    call(mcp, 'snapshot_create', name='empty')
    for name in (b'\xc3\xa4', b'\xff', b'a\tb', b'"', b'-rf', b'*'):
        project.put(name, 'x')
    call(mcp, 'snapshot_restore', name='empty')
    assert look(project.path, project_names(project)) == {}


def test_many_files_come_back(start, project):
    """Past each bound that an unpacker may have of its own."""
    for n in range(1500):
        project.put(f'f{n}', f'was {n}')
        os.symlink(f'f{n}'.encode(), project.at(f'l{n}'))
    mcp = start()
    call(mcp, 'snapshot_create', name='s')
    for n in range(1500):
        project.put(f'f{n}', 'now')
        os.unlink(project.at(f'l{n}'))
    call(mcp, 'snapshot_restore', name='s')
    assert all(project.get(f'l{n}') == f'was {n}'.encode() for n in range(1500))


def test_a_diff_shows_what_lines_differ(start, project):
    project.put('long', ''.join(f'{n}\n' for n in range(100)))
    project.put('end', 'no end')
    project.put('bin', b'\0' * 10)
    project.put('run', 'x\n')
    os.symlink('a', project.at('l'))
    own(project)
    mcp = start()
    call(mcp, 'snapshot_create', name='one', description='before\tall')
    project.put('long', ''.join(f'{n}\n' for n in range(100) if n not in (10, 50)) + 'more\n')
    project.put('end', 'no end\n')
    project.put('bin', b'\0' * 20)
    os.chmod(project.at('run'), 0o755)
    os.unlink(project.at('l'))
    os.symlink('b', project.at('l'))
    project.put('latin', b'\xe4\n')
    own(project)
    call(mcp, 'snapshot_create', name='two')
    (diff,) = call(mcp, 'snapshot_diff', name='one')
    assert diff == (
        'changed file: bin\nbinary: 10 bytes, then 20\n'
        'changed file: end\n@@ -1,1 +1,1 @@\n-no end\n\\ No newline at end of file\n+no end\n'
        'changed link: l\n-a\n+b\n'
        'new file: latin\n@@ -0,0 +1,1 @@\n+\ufffd\n'
        'changed file: long\n@@ -8,7 +8,6 @@\n 7\n 8\n 9\n-10\n 11\n 12\n 13\n'
        '@@ -48,7 +47,6 @@\n 47\n 48\n 49\n-50\n 51\n 52\n 53\n'
        '@@ -98,3 +96,4 @@\n 97\n 98\n 99\n+more\n'
        'changed file: run (mode 644, then 755)\n')
    project.put('long', '')
    assert call(mcp, 'snapshot_diff', name='one', to='two') == [diff]
    assert call(mcp, 'snapshot_diff', name='one', to='two', path='l') == [
        'changed link: l\n-a\n+b\n']
    assert call(mcp, 'snapshot_diff', name='two', to='two') == ['Nothing differs.']
    fails(mcp, 'invalid_arguments', 'snapshot_diff', name='one', path='/etc')
    listed = call(mcp, 'snapshot_list')[0].splitlines()
    assert [line.split('\t')[0] for line in listed] == ['two', 'one']
    assert listed[1].endswith('\tbefore\tall')


def test_a_long_diff_is_cut_where_a_file_begins(start, project):
    mcp = start()
    call(mcp, 'snapshot_create', name='s')
    for n in range(30):
        project.put(f'f{n:02d}', f'{n}\n' * 10_000)
    text, note = call(mcp, 'snapshot_diff', name='s')
    assert len(text) <= 256 << 10 and text.endswith('\n')
    assert note == '30 differ, of which the first are shown.'


# ---- what is never touched ---------------------------------------------------------------------


def test_what_the_host_acts_on_stays(start, project):
    """Whatever a snapshot of a folder given as a whole would have."""
    project.folder('.git/hooks', '.vscode')
    project.put('.git/HEAD', 'ref: refs/heads/main\n')
    project.put('.git/config', '[core]\n')
    project.put('.git/hooks/pre-commit', 'old\n', 0o755)
    project.put('.vscode/tasks.json', '{"old": 1}')
    project.put('a', 'old\n')
    own(project)
    whole = start(folder=f'{project.path}:rw-all')
    call(whole, 'snapshot_create', name='s')
    assert whole.close() == 0
    project.put('.git/hooks/pre-commit', 'new\n', 0o755)
    project.put('.git/HEAD', 'ref: refs/heads/other\n')
    project.put('.vscode/tasks.json', '{"new": 1}')
    project.put('.mcp.json', '{"mcpServers": {}}')
    project.put('a', 'new\n')
    own(project)

    def kept():  # times of .git change with what Holt makes in it meanwhile
        return {name: what for name, (_, _, what) in look(project.path, ['a']).items()}
    before = kept()
    for folder in (project.path, f'{project.path}:rw-all'):
        mcp = start(folder=folder)
        call(mcp, 'snapshot_restore', name='s')
        assert project.get('a') == b'old\n'
        assert mcp.close() == 0
        assert kept() == before


def test_files_with_credentials_stay(start, project):
    project.folder('conf')
    project.put('.env', 'KEY=1\n')
    project.put('conf/server.pem', 'pem\n')
    project.put('a', 'a\n')
    mcp = start()
    (said,) = call(mcp, 'snapshot_create', name='s')
    assert '2 are left out: ' in said and '.env' in said and 'conf/server.pem' in said
    project.folder('later')
    project.put('later/.env', 'KEY=2\n')
    project.put('later/b', 'b\n')
    project.put('.env', 'KEY=3\n')
    shutil.rmtree(project.at('conf'))
    (told,) = call(mcp, 'snapshot_restore', name='s')
    assert 'KEY' not in told
    assert project.get('.env') == b'KEY=3\n' and project.get('later/.env') == b'KEY=2\n'
    assert sorted(os.listdir(project.at('later'))) == [b'.env']
    assert os.listdir(project.at('conf')) == []


def test_what_no_snapshot_has_stays(start, project):
    mcp = start()
    call(mcp, 'snapshot_create', name='s')
    project.folder('made')
    with socket.socket(socket.AF_UNIX) as s:
        os.chdir(project.at('made'))
        s.bind('socket')
        os.chdir('/')
    os.mkfifo(project.at('pipe'))
    project.put('made/f', 'f')
    call(mcp, 'snapshot_restore', name='s')
    assert os.listdir(project.at('made')) == [b'socket'] and os.path.exists(project.at('pipe'))


def test_links_are_not_followed(start, project, tmp_path_factory):
    """A program of the sandbox puts links where folders were."""
    outside = str(tmp_path_factory.mktemp('outside'))
    os.chmod(outside, 0o777)
    project.folder('d/e')
    project.put('d/e/f', 'old\n')
    mcp = start()
    call(mcp, 'snapshot_create', name='s')
    shutil.rmtree(project.at('d'))
    os.symlink(outside, project.at('d'))
    call(mcp, 'snapshot_restore', name='s')
    assert os.listdir(outside) == [] and project.get('d/e/f') == b'old\n'
    assert not os.path.islink(project.at('d'))


def test_what_cannot_be_read_is_no_snapshot(start, project):
    project.folder('d')
    project.put('d/closed', 'x', mode=0)
    mcp = start()
    failure, _ = fails(mcp, 'path_denied', 'snapshot_create', name='s')
    assert 'closed' in failure['cause']
    assert call(mcp, 'snapshot_list') == ['No snapshots.']
    os.chmod(project.at('d/closed'), 0o600)
    call(mcp, 'snapshot_create', name='s')


def test_a_restore_that_fails_says_what_is_left(start, project):
    """The owner of a file stays, or the restore fails there, and another does the rest."""
    if os.getuid():
        pytest.skip('only root gives files away')
    for name in 'abc':
        project.put(name, 'old\n', mode=0o666)
    mcp = start()
    call(mcp, 'snapshot_create', name='s')
    for name in 'abc':
        project.put(name, 'new\n', mode=0o666)
    os.chown(project.at('b'), 54321, 54321)
    failure, _ = fails(mcp, 'foreign_owner', 'snapshot_restore', name='s')
    assert ('another restore does the rest: b: it belongs to another user' in failure['cause']
            and 'chown' in failure['remediation'])
    status = os.stat(project.at('b'))
    assert (status.st_uid, project.get('b')) == (54321, b'new\n')
    os.chown(project.at('b'), project.who.uid, project.who.uid)
    call(mcp, 'snapshot_restore', name='s')
    assert [project.get(name) for name in 'abc'] == [b'old\n'] * 3


# ---- whose they are ----------------------------------------------------------------------------


def test_they_outlive_the_hub_and_belong_to_the_folder(start, me, project):
    project.put('a', 'old\n')
    mcp = start()
    call(mcp, 'snapshot_create', name='s')
    failure, _ = fails(mcp, 'name_taken', 'snapshot_create', name='s')
    assert not failure['retryable']
    for wrong in ('', '.s', '-s', 'a/b', '../s', 'x' * 65, 'ä'):
        fails(mcp, 'invalid_arguments', 'snapshot_create', name=wrong)
    failure, _ = fails(mcp, 'snapshot_not_found', 'snapshot_restore', name='t')
    assert 'the newest are: s' in failure['cause']
    mcp.kill()
    project.put('a', 'new\n')
    mcp = start()
    assert after_kill(mcp, 'snapshot_list')['content'][0]['text'].startswith('s\t')
    call(mcp, 'snapshot_restore', name='s')
    assert project.get('a') == b'old\n'
    other = Project(me)
    try:
        beside = start(folder=other.path)
        assert call(beside, 'snapshot_list') == ['No snapshots.']
        fails(beside, 'snapshot_not_found', 'snapshot_restore', name='s')
        assert beside.close() == 0
    finally:
        shutil.rmtree(other.path)


def test_others_do_not_see_them(me, project, tmp_path_factory):
    project.put('a', 'a\n')
    home = tmp_path_factory.mktemp('keys')
    with Rest(me, home, '--listen', '127.0.0.1:0', '--pool', '0', '--workspace',
              project.path) as hub:
        other = as_bearer(hub, key(hub, 'other'))
        said = {}
        for who in (hub, other, hub):
            mcp = Session(who)
            for tool in ('snapshot_list', 'snapshot_create', 'snapshot_list'):
                with who.wire() as wire:
                    mcp.call(wire, tool, **({'name': 'mine'} if tool.endswith('create') else {}))
                    said[who, tool] = mcp.result(wire)['content'][0]['text']
            assert said[who, 'snapshot_list'].startswith('mine\t')
        assert said[other, 'snapshot_create'].startswith('Snapshot mine has')


def test_a_session_without_a_workspace_has_its_own(me, home):
    for _ in range(2):
        client = me.mcp('--pool', '0', '--tools', 'coding', env={'HOLT_HOME': home})
        client.initialize()
        assert call(client, 'snapshot_list') == ['No snapshots.']
        call(client, 'Write', file_path='a', content='one\n')
        call(client, 'snapshot_create', name='s')
        edit(client, 'a', 'one', 'two')
        call(client, 'snapshot_restore', name='s')
        assert read(client, 'a') == ['1\tone\n']
        assert client.close() == 0


def test_only_reading_where_nothing_may_change(start, project):
    project.put('a', 'a\n')
    mcp = start()
    call(mcp, 'snapshot_create', name='s')
    assert mcp.close() == 0
    project.put('a', 'b\n')
    mcp = start('--readonly')
    listed = {t['name'] for t in mcp.request('tools/list')['result']['tools']}
    assert {'snapshot_list', 'snapshot_diff'} <= listed
    assert not {'snapshot_create', 'snapshot_restore'} & listed
    assert '-a\n+b\n' in call(mcp, 'snapshot_diff', name='s')[0]


# ---- what the conversation knows ---------------------------------------------------------------


def test_what_was_restored_is_known(start, project):
    project.put('a', 'one\ntwo\n')
    project.put('b', 'b\n')
    mcp = start()
    read(mcp, 'a')
    call(mcp, 'snapshot_create', name='s')
    edit(mcp, 'a', 'two', '2')
    call(mcp, 'snapshot_restore', name='s')
    edit(mcp, 'a', 'two', 'zwei')  # without another Read
    assert project.get('a') == b'one\nzwei\n'
    project.put('b', 'B\n')
    call(mcp, 'snapshot_restore', name='s')
    fails(mcp, 'file_not_read', 'Edit', file_path='b', old_string='b', new_string='c')


def test_another_conversation_is_told(me, project, tmp_path_factory):
    project.put('a', 'one\n')
    with Rest(me, tmp_path_factory.mktemp('two'), '--listen', '127.0.0.1:0', '--pool', '0',
              '--workspace', project.path) as hub:
        first, second = Session(hub), Session(hub)

        def ask(session, tool, /, **arguments):
            with hub.wire() as wire:
                session.call(wire, tool, **arguments)
                return session.result(wire)
        ask(first, 'snapshot_create', name='s')
        for session, old, new in ((first, 'one', 'two'), (second, 'two', 'three')):
            assert not ask(session, 'Read', file_path='a').get('isError')
            assert not ask(session, 'Edit', file_path='a', old_string=old,
                           new_string=new).get('isError')
        assert not ask(first, 'snapshot_restore', name='s').get('isError')
        assert not ask(first, 'Edit', file_path='a', old_string='one',
                       new_string='1').get('isError')
        failed = ask(second, 'Edit', file_path='a', old_string='three', new_string='3')
        assert json.loads(failed['content'][0]['text'])['code'] == 'file_changed'
        assert failed['content'][1]['text'] == '1\t1\n'


# ---- bounds ------------------------------------------------------------------------------------


def test_the_oldest_goes_for_the_51st(start, project):
    mcp = start()
    for n in range(52):
        project.put('a', f'{n}\n')
        (said,) = call(mcp, 'snapshot_create', name=f's{n}')
        assert ('The oldest one, ' in said) == (n >= 50), said
    names = [line.split('\t')[0] for line in call(mcp, 'snapshot_list')[0].splitlines()]
    assert names == [f's{n}' for n in range(51, 1, -1)]
    call(mcp, 'snapshot_restore', name='s2')
    assert project.get('a') == b'2\n'
    assert call(mcp, 'snapshot_diff', name='s50', to='s51') == [
        'changed file: a\n@@ -1,1 +1,1 @@\n-50\n+51\n']


def test_what_is_too_large_is_named(start, project):
    with open(project.at('sparse'), 'wb') as f:
        f.truncate(5 << 30)
    own(project)
    mcp = start()
    failure, _ = fails(mcp, 'workspace_too_large', 'snapshot_create', name='s')
    assert '4294967296 bytes' in failure['cause']
    os.unlink(project.at('sparse'))
    call(mcp, 'snapshot_create', name='s')


def test_much_is_kept_once_and_given_back(start, project, home):
    """What no snapshot has any more is removed."""
    def used():
        return sum(os.lstat(os.path.join(at, name)).st_size
                   for at, _, files in os.walk(home) for name in files)
    project.put('large', os.urandom(8 << 20))
    mcp = start()
    before = used()
    call(mcp, 'snapshot_create', name='large')
    for n in range(49):
        call(mcp, 'snapshot_create', name=f's{n}')
    assert used() - before < 10 << 20
    os.unlink(project.at('large'))
    for n in range(50):
        call(mcp, 'snapshot_create', name=f't{n}')
    assert used() - before < 1 << 20


def test_memory_is_bounded(me):
    """100,000 files, and a large one."""
    before = host.Residue(me.trees)
    project = Project(me, '/dev/shm')  # a disk would take minutes for so many names
    home = Project(me, '/dev/shm').path
    folders, each = 100, soak(1000)
    for n in range(folders):
        os.mkdir(project.at(f'd{n}'))
        for k in range(each):
            with open(project.at(f'd{n}/f{k}'), 'w', encoding='ascii') as f:
                f.write(f'{n} {k}\n')
    with open(project.at('large'), 'wb') as f:
        for _ in range(soak(400)):
            f.write(b'y' * (1 << 20))
    os.chown(project.path, me.uid, me.uid)
    client = me.mcp('--pool', '0', '--workspace', project.path, env={'HOLT_HOME': home})
    client.initialize()

    def ask(tool):
        request = client.start('tools/call', {'name': tool, 'arguments': {'name': 'all'}})
        said = client.wait(request, timeout=100)['result']
        assert not said.get('isError'), said
        return said['content'][0]['text']
    try:
        assert f'has {folders * each + folders + 1} files' in ask('snapshot_create')
        for n in range(folders):
            project.put(f'd{n}/f0', 'changed\n')
        assert ask('snapshot_restore').count('\n') == folders
        assert project.get('d7/f0') == b'7 0\n'
        assert peak_of(client) < 120_000, peak_of(client)
    finally:
        assert client.close() == 0
        shutil.rmtree(project.path)
        shutil.rmtree(home)
    before.check()


def test_writers_and_restores_take_turns(start, project):
    """An edit is before a restore or behind it: all of it or nothing is there."""
    project.put('a', 'x\n' * 50)
    mcp = start()
    read(mcp, 'a')
    call(mcp, 'snapshot_create', name='s')
    for n in range(soak(20, 3)):
        asked = []
        for k in range(10):
            asked.append(mcp.start('tools/call', {'name': 'Write', 'arguments': {
                'file_path': 'a', 'content': f'{k}\n' * 50}}))
            if k % 4 == 0:
                asked.append(mcp.start('tools/call', {'name': 'snapshot_restore', 'arguments': {
                    'name': 's'}}))
        for request in asked:
            said = mcp.wait(request, timeout=100)['result']
            assert not said.get('isError'), said
        lines = set(project.get('a').splitlines())
        assert len(lines) == 1, lines


def test_cancelled_in_the_middle(start, project):
    project.put('large', os.urandom(64 << 20))
    mcp = start()
    call(mcp, 'snapshot_list')  # it has a sandbox
    for n in range(3):
        request = mcp.start('tools/call', {'name': 'snapshot_create', 'arguments': {
            'name': f'c{n}'}})
        mcp.notify('notifications/cancelled', {'requestId': request})
    call(mcp, 'snapshot_create', name='whole')
    shown = call(mcp, 'snapshot_list')[0]
    assert shown.startswith('whole\t')


# ---- kill -9 -----------------------------------------------------------------------------------


def after_kill(mcp, tool, **arguments):
    """What a killed hub has left may still be tidying up the folder: that is said, and passes."""
    deadline = time.monotonic() + 30
    while True:
        said = answer(mcp, tool, **arguments)
        if not said.get('isError'):
            return said
        failure = json.loads(said['content'][0]['text'])
        assert failure['code'] == 'conflict' and failure['retryable'], failure
        assert time.monotonic() < deadline, failure

def test_killed_in_the_middle_of_restores(start, project):
    """Each file is old or new, and another restore does the rest."""
    rng = random.Random(11)
    size, files = 60_000, 40
    mcp = start()

    def write(letter):
        for n in range(files):
            project.put(f'f{n:02d}', letter * size)
    for letter in 'ab':
        write(letter)
        call(mcp, 'snapshot_create', name=letter)
    for n in range(soak(200, 20)):
        to = 'ab'[n % 2]
        began = time.monotonic()
        mcp.start('tools/call', {'name': 'snapshot_restore', 'arguments': {'name': to}})
        while time.monotonic() - began < rng.random() * 0.08:
            pass
        mcp.kill()
        for k in range(files):
            text = project.get(f'f{k:02d}')
            assert text in (b'a' * size, b'b' * size), (n, k, len(text), text[:1])
        mcp = start()
        after_kill(mcp, 'snapshot_restore', name=to)
        left = look(project.path, project_names(project))
        assert {what for _, _, what in left.values()} == {to.encode() * size}, n
        assert len(left) == files


def test_killed_in_the_middle_of_keeping(start, project):
    """A snapshot is there as a whole, or not at all."""
    rng = random.Random(12)
    for n in range(soak(100, 8)):
        project.put('large', rng.randbytes(2 << 20))
        project.put('n', f'{n}\n')
        mcp = start()
        after_kill(mcp, 'snapshot_list')
        began = time.monotonic()
        mcp.start('tools/call', {'name': 'snapshot_create', 'arguments': {'name': f's{n}'}})
        while time.monotonic() - began < rng.random() * 0.2:
            pass
        mcp.kill()
    mcp = start()
    listed = after_kill(mcp, 'snapshot_list')['content'][0]['text']
    for line in listed.splitlines() if '\t' in listed else []:
        name = line.split('\t')[0]
        call(mcp, 'snapshot_restore', name=name)
        assert project.get('n') == f'{name[1:]}\n'.encode()
    call(mcp, 'snapshot_create', name='last')
