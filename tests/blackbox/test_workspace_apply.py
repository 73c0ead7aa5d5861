"""`holt ws apply`: the changes of a revision in a folder of the operator's: shown, asked for, and
undone; nothing outside of the folder, and the old or the new whatever happens."""

import contextlib
import hashlib
import io
import os
import pty
import random
import shutil
import stat
import subprocess
import tarfile
import time

import pytest

from client import until
from soak import soak
from test_faults import Fault, library  # noqa: F401 (library is a fixture)
from test_hub_cli import FAILED, Hub as Cli
from test_project_git import listed, told

ROUNDS = soak(200)  # of each of two users
SEED = int(os.environ.get('HOLT_SEED', random.randrange(1 << 30)))
DECLINED, CONFLICTS = 1, 3


def tree(top, times=False):
    """All that is in a folder, by its path."""
    top, found = os.fsencode(top), {}
    for at, dirs, files in os.walk(top):
        for name in dirs + files:
            path = os.path.join(at, name)
            st = os.lstat(path)
            mode = stat.S_IMODE(st.st_mode)
            if stat.S_ISLNK(st.st_mode):
                what = ('link', os.readlink(path))
            elif stat.S_ISDIR(st.st_mode):
                what = ('dir', mode)
            else:
                with open(path, 'rb') as f:
                    what = ('file', mode, f.read(), st.st_mtime_ns if times else 0)
            found[os.path.relpath(path, top)] = what
    return found


class Hub(Cli):
    """Its workspaces and folders are those of one test, by its name."""

    def folder(self, name):
        path = os.path.join(self.who.work, name)
        os.mkdir(path)
        self.own(path)
        return path

    def own(self, path):
        for at, dirs, files in os.walk(os.fsencode(path)):
            for name in (b'.', *dirs, *files):
                os.chown(os.path.join(at, name), self.who.uid, self.who.uid, follow_symlinks=False)

    def fill(self, path, files):
        """The folder has then these and no others: text, ('link', to), or (mode, text)."""
        for name in os.listdir(path):
            one = os.path.join(path, name)
            if os.path.isdir(one) and not os.path.islink(one):
                shutil.rmtree(one)
            else:
                os.unlink(one)
        for name, what in files.items():
            one = os.path.join(path, name)
            os.makedirs(os.path.dirname(one), exist_ok=True)
            if isinstance(what, tuple) and what[0] == 'link':
                os.symlink(what[1], one)
                continue
            mode, text = what if isinstance(what, tuple) else (0o644, what)
            with open(one, 'w', encoding='utf-8', newline='') as f:
                f.write(text)
            os.chmod(one, mode)
        self.own(path)

    def revision(self, name, source, files):
        if source not in self.sources:
            self.ok('ws', 'create', name)
            self.sources[source] = self.folder(source)
        self.fill(self.sources[source], files)
        done = self.ok('ws', 'import', name, self.sources[source], timeout=100)
        return done.decode().strip()

    def apply(self, name, folder, *more, **options):
        return self.run('ws', 'apply', name, '--to', folder, *more, timeout=100, **options)

    def applied(self, name, folder, *more):
        done = self.apply(name, folder, '--yes', *more)
        assert done.returncode == 0, done
        return done

    def archived(self, name, files):
        """A revision of files that nobody may read here, or with directories: (mode, text), or
        (mode, None)."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode='w') as tar:
            for path, (mode, text) in files.items():
                info = tarfile.TarInfo(path)
                info.mode, info.mtime = mode, 1000000000
                info.type = tarfile.DIRTYPE if text is None else tarfile.REGTYPE
                info.size = len(text or '')
                tar.addfile(info, io.BytesIO((text or '').encode()))
        return self.ok('ws', 'import', name, '-', input=out.getvalue()).decode().strip()

    def data(self, folder):
        """Where Holt keeps what it knows of the folder, to which something was applied."""
        key = hashlib.sha256()
        at = os.path.join(self.env['HOLT_HOME'], 'applied')
        key.update(os.fsencode(at) + b'\0' + os.fsencode(os.path.realpath(folder)))
        return os.path.join(at, key.hexdigest()[:32])

    def stage(self, folder):
        return os.path.join(folder, '.holt-apply-' + os.path.basename(self.data(folder))[:16])

    def killed(self, name, folder, *more, stage=True):
        """An apply that was killed when it had done everything, but not ended its journal. What
        its stage has then is what was saved."""
        data, was = self.data(folder), self.folder('was')
        shutil.copytree(data, was, dirs_exist_ok=True)
        self.applied(name, folder, *more)
        os.rename(f'{data}/last', f'{data}/journal')
        now = [one for one in os.listdir(data) if one.startswith('saved-')]
        if stage:
            shutil.copytree(f'{data}/{now[0]}', self.stage(folder), symlinks=True)
            os.chmod(self.stage(folder), 0o700)
        for one in set(os.listdir(was)) - set(now):
            copy = shutil.copytree if os.path.isdir(f'{was}/{one}') else shutil.copy
            copy(f'{was}/{one}', f'{data}/{one}')
        shutil.rmtree(was)
        for path in (data, folder):
            self.own(path)

    def has_journal(self):
        at = os.path.join(self.env['HOLT_HOME'], 'applied')
        return any(os.path.exists(f'{at}/{one}/journal') for one in os.listdir(at))

    @contextlib.contextmanager
    def asked(self, name, folder, *more):
        """One that waits for an answer."""
        ours, theirs = pty.openpty()
        proc = subprocess.Popen(self.who.argv('ws', 'apply', name, '--to', folder, *more),
                                env=self.env, cwd='/', stdin=theirs, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        os.close(theirs)
        os.set_blocking(proc.stderr.fileno(), False)
        said = bytearray()

        def has_asked():
            said.extend(proc.stderr.read() or b'')
            return b'[y/N] ' in said

        def answer(text):
            os.write(ours, text)
            out = proc.stdout.read()
            status = proc.wait(60)
            return status, out, bytes(said) + (proc.stderr.read() or b'')
        try:
            until(has_asked)
            yield answer
        finally:
            proc.kill()
            proc.communicate()
            os.close(ours)


@pytest.fixture(scope='module')
def hub(who):
    before = set(os.listdir(who.work))  # of other tests
    home = os.path.join(who.work, 'ws-apply')
    os.mkdir(home, 0o700)
    os.chown(home, who.uid, who.uid)
    with Hub(who, home, '--listen', 'none', '--pool', '0') as shared:
        shared.sources = {}
        yield shared
    for name in set(os.listdir(who.work)) - before:
        shutil.rmtree(os.path.join(who.work, name))


FIRST = {'a': 'one\ntwo\n', 'd/b': 'b\n', 'run': (0o755, '#!/bin/sh\n'), 'l': ('link', 'a'),
         'n\udcff\n': 'bytes\n', 'same': 'same\n', 'becomes-dir': 'x\n', 'becomes-file/x': 'x\n',
         'gone/deep/er': 'x\n', 'l2': ('link', 'a'), 'bin': 'a\0b'}
SECOND = {'a': 'one\nTWO\n', 'run': (0o700, '#!/bin/sh\n'), 'l': ('link', 'new/f'),
          'n\udcff\n': 'other\n', 'same': 'same\n', 'becomes-dir/y': 'y\n', 'becomes-file': 'y\n',
          'new/f': 'f\n', 'l2': 'a file\n', 'bin': 'a\0c'}


def test_there_and_back(hub):
    dst = hub.folder('there-dst')
    hub.revision('there', 'there-src', FIRST)
    hub.applied('there', dst)
    assert tree(dst) == tree(hub.sources['there-src'])
    assert b'nothing to change' in hub.applied('there', dst).stderr
    hub.revision('there', 'there-src', SECOND)
    for name, text in (('mine', 'my own\n'), ('same', 'changed by me\n')):
        with open(f'{dst}/{name}', 'w', encoding='utf-8') as f:
            f.write(text)
    hub.own(dst)
    before = tree(dst, times=True)
    done = hub.apply('there', dst)
    assert done.returncode == FAILED and b'--yes' in done.stderr
    assert b'C a\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n' in done.stdout, done
    assert b'C run (mode 700, was 755)\n' in done.stdout and b'D d/b\n' in done.stdout
    assert b'C l -> new/f\n' in done.stdout and b'... it is no text' in done.stdout
    assert tree(dst, times=True) == before
    hub.applied('there', dst)
    expected = tree(hub.sources['there-src'])
    for name in (b'mine', b'same'):
        expected[name] = (*before[name][:3], 0)
    assert tree(dst) == expected
    done = hub.applied('there', dst, '--undo')
    assert tree(dst, times=True) == before, done
    hub_says = hub.apply('there', dst, '--undo', '--yes')
    assert hub_says.returncode == FAILED and b'no apply' in hub_says.stderr
    hub.applied('there', dst)
    assert tree(dst) == expected


def test_an_earlier_revision(hub):
    dst = hub.folder('earlier-dst')
    one = hub.revision('earlier', 'earlier-src', {'f': '1\n', 'g': 'g\n'})
    hub.revision('earlier', 'earlier-src', {'f': '2\n'})
    hub.applied('earlier', dst)
    hub.applied('earlier', dst, '--revision', one[:8])
    assert sorted(tree(dst)) == [b'f', b'g']
    done = hub.apply('earlier', dst, '-r', 'ffffffffffff')
    assert done.returncode == FAILED and b'no revision' in done.stderr


def test_only_what_the_base_had_is_removed(hub):
    """The base is also what was imported from the folder."""
    hub.revision('base', 'base-src', {'f': '1\n', 'g': '1\n'})
    src = hub.sources['base-src']
    other = hub.folder('base-other')
    hub.fill(other, {'f': '1\n'})
    hub.ok('ws', 'import', 'base', other)  # g has gone
    with open(f'{src}/new', 'w', encoding='utf-8') as f:
        f.write('new')
    hub.own(src)
    without = hub.folder('base-without')
    hub.fill(without, {'f': '1\n', 'g': '1\n'})
    hub.applied('base', without)
    assert sorted(tree(without)) == [b'f', b'g']
    hub.applied('base', src)
    assert sorted(tree(src)) == [b'f', b'new']
    hub.applied('base', src, '--undo')
    assert sorted(tree(src)) == [b'f', b'g', b'new']


def test_what_can_not_be_looked_at_is_not_passed_over(hub, library):  # noqa: F811
    """Each call that looks at something in the folder fails once: then the apply fails, or nothing
    is left that it was to remove."""
    name = 'blind'
    first = hub.revision(name, f'{name}-src', {'f': '1\n', 'g': '1\n', 'd/g': '1\n', 'd/f': '1\n'})
    second = hub.revision(name, f'{name}-src', {'f': '1\n', 'd/f': '1\n'})
    dst = hub.folder(f'{name}-dst')
    place = hub.folder(f'{name}-place')
    fault = Fault(shutil.copy(library, place), dst, place)
    count, nth, failed = 1, 0, 0
    while count >= nth:
        nth += 1
        hub.applied(name, dst, '-r', first)
        with fault.armed(('open', 'look'), 'fail', nth):
            done = hub.apply(name, dst, '--yes', '-r', second, env={**hub.env, **fault.env})
        count = fault.count
        failed += done.returncode != 0
        if done.returncode:
            assert count >= nth, done
            hub.applied(name, dst, '-r', second)
        left = {one for one in tree(dst) if not one.startswith(b'.holt-apply-')}
        assert left == {b'd', b'd/f', b'f'}, (nth, done)
    assert failed > 3


def test_the_base_has_gone(hub):
    """Then nothing is removed, and what differs is a conflict."""
    dst, again = hub.folder('nobase-dst'), hub.folder('nobase-again')
    hub.revision('nobase', 'nobase-src', {'f': '1\n', 'g': '1\n'})
    hub.applied('nobase', dst)
    hub.ok('ws', 'rm', 'nobase')
    hub.ok('ws', 'create', 'nobase')
    hub.fill(again, {'f': '2\n'})
    hub.ok('ws', 'import', 'nobase', again)
    done = hub.apply('nobase', dst, '--yes')
    assert done.returncode == CONFLICTS and b'last is gone' in done.stderr, done
    hub.applied('nobase', dst, '--force')
    assert {name: what[2] for name, what in tree(dst).items()} == {b'f': b'2\n', b'g': b'1\n'}


def test_conflicts(hub):
    dst = hub.folder('conflicts-dst')
    hub.revision('conflicts', 'conflicts-src', {'f': '1\n', 'g': '1\n', 'h': '1\n', 'i': '1\n'})
    hub.applied('conflicts', dst)
    hub.revision('conflicts', 'conflicts-src', {'f': '2\n', 'i': '2\n', 'new': '2\n'})
    hub.fill(dst, {'f': 'mine\n', 'g': 'mine\n', 'h': '1\n', 'new': 'mine\n'})
    before = tree(dst, times=True)
    done = hub.apply('conflicts', dst, '--yes')
    assert done.returncode == CONFLICTS and done.stdout == b'', done
    assert [f'{name}: was changed'.encode() in done.stderr for name in ('f', 'g', 'h', 'i', 'new')
            ] == [True, True, False, True, False], done
    assert b'new: is here, too, and is another one' in done.stderr
    assert tree(dst, times=True) == before
    hub.applied('conflicts', dst, '--force')
    assert tree(dst) == tree(hub.sources['conflicts-src'])
    with open(f'{dst}/f', 'w', encoding='utf-8') as f:
        f.write('later\n')
    now = tree(dst)
    done = hub.apply('conflicts', dst, '--undo', '--yes')
    assert done.returncode == CONFLICTS and b'f: was changed since' in done.stderr
    assert tree(dst) == now
    hub.applied('conflicts', dst, '--undo', '--force')
    assert tree(dst, times=True) == before


def test_protected(hub):
    dst = hub.folder('protected-dst')
    hub.revision('protected', 'protected-src', {
        'f': '1\n', '.git/hooks/post-checkout': 'x\n', '.vscode/tasks.json': 'x\n',
        'sub/.MCP.json': 'x\n', '.bashrc': 'x\n', 'sub/.GIT/config': 'x\n'})
    done = hub.applied('protected', dst)
    assert sorted(tree(dst)) == [b'f', b'sub'], done
    assert b'.vscode/tasks.json: left out' in done.stderr
    done = hub.applied('protected', dst, '--protected')
    assert sorted(tree(dst)) == [b'.bashrc', b'.vscode', b'.vscode/tasks.json', b'f', b'sub',
                                 b'sub/.MCP.json']
    assert b'.vscode/tasks.json: programs of this machine act on it' in done.stderr
    hub.applied('protected', dst, '--undo')
    assert sorted(tree(dst)) == [b'f', b'sub']


def test_everything_that_is_told_of_a_folder_is_left_out(hub):
    """The list of what programs of the host act on is one list, and a bare repository is of it:
    also one that the folder has a part of. What `holt cp` brings is named."""
    dst = hub.folder('listed-dst')
    bare = ('HEAD', 'config', 'hooks/update', 'objects/x', 'refs/x')
    names = sorted({name for name in listed()[0] - {'refs', 'objects'}
                    if not name.startswith('.git/')} | set(told()))
    names = [name for name in names if not any(name.startswith(f'{n}/') for n in names)
             and not name.startswith('.git/') and name not in ('.git', '.npmrc', '.envrc', '.ssh')]
    hub.fill(dst, {'half/objects/x': 'x\n', 'half/refs/x': 'x\n'})
    hub.revision('listed', 'listed-src', {
        'f': 'x\n', **{f'in/{name}': 'x\n' for name in names}, 'half/HEAD': 'x\n',
        'not/HEAD': 'x\n', 'not/config': 'x\n', **{f'r.git/{name}': 'x\n' for name in bare}})
    done = hub.applied('listed', dst)
    assert [name for name, what in sorted(tree(dst).items()) if what[0] == 'file'] == [
        b'f', b'half/objects/x', b'half/refs/x', b'not/HEAD', b'not/config'], done
    assert b'half/HEAD: left out' in done.stderr and b'left out: ' in done.stderr
    box = hub.ok('up', '--workspace', 'listed').decode().strip()
    for path, n in (('in', len(names)), ('r.git', None)):
        done = hub.run('cp', f'{box}:/workspace/{path}', hub.folder(f'cp-{path}'))
        assert done.returncode == 0, done
        said = done.stderr.decode()
        some = said.count('programs of this machine act on what this says: ')
        assert some and (not n or some + int(said.split('and on ')[1].split()[0]) == n), said
    hub.ok('down', '--discard', box)


def test_hostile_texts(hub):
    """What is shown does nothing to a terminal."""
    dst = hub.folder('hostile-dst')
    hub.revision('hostile', 'hostile-src', {
        '\x1b]0;title\x07': 'x\n', 'f': '\x1b[2J\x1b[H\r\u202eabc\n', 'l': ('link', '\x1b[31m'),
        '.vscode/\x1b[1m': 'x\n', 'n\nA forged': 'x\n'})
    assert any(b'\x1b' in name for name in map(os.fsencode, os.listdir(hub.sources['hostile-src'])))
    done = hub.apply('hostile', dst)
    for byte in (b'\x1b', b'\x07', '\u202e'.encode()):
        assert byte not in done.stdout + done.stderr, done
    assert b'\nA forged' not in done.stdout and b'left out' in done.stderr
    hub.applied('hostile', dst)
    assert os.path.lexists(f'{dst}/\x1b]0;title\x07')


def test_the_question(hub):
    dst = hub.folder('question-dst')
    hub.revision('question', 'question-src', {'f': '1\n'})
    for no in (b'n\n', b'\n', b'yy\n', b'\x04'):
        with hub.asked('question', dst) as answer:
            status, out, said = answer(no)
        assert status == DECLINED and b'A f' in out and b'nothing was changed' in said, said
        assert tree(dst) == {}
    with hub.asked('question', dst) as answer:
        done = hub.apply('question', dst, '--yes')  # at the same time
        assert done.returncode == FAILED and b'another apply' in done.stderr, done
        assert answer(b'y\n')[0] == 0
    assert sorted(tree(dst)) == [b'f']


def test_links_lead_nowhere(hub):
    """Neither one that is there nor one that gets there while the question is asked."""
    dst, outside = hub.folder('links-dst'), hub.folder('links-outside')
    hub.revision('links', 'links-src', {'sub/f': '1\n', 'z': '1\n'})
    os.symlink(outside, f'{dst}/sub')
    done = hub.apply('links', dst, '--yes')
    assert done.returncode == FAILED and b'a symbolic link is in the way' in done.stderr, done
    assert sorted(tree(dst)) == [b'sub'] and tree(outside) == {}
    hub.applied('links', dst, '--force')  # the link itself is replaced
    assert sorted(tree(dst)) == [b'sub', b'sub/f', b'z'] and tree(outside) == {}
    hub.applied('links', dst, '--undo')
    assert tree(dst) == {b'sub': ('link', os.fsencode(outside))} and tree(outside) == {}
    hub.fill(dst, {'sub/old': 'x\n'})
    with hub.asked('links', dst) as answer:
        os.rename(f'{dst}/sub', f'{dst}/was')
        os.symlink(outside, f'{dst}/sub')
        status, _, said = answer(b'y\n')
    assert status == FAILED and b'nothing was changed' in said, said
    assert tree(outside) == {} and sorted(tree(dst)) == [b'sub', b'was', b'was/old']
    with open(f'{dst}/sub/f', 'w', encoding='utf-8'):  # the control
        pass
    assert sorted(tree(outside)) == [b'f']


def test_changed_while_it_was_asked(hub):
    dst = hub.folder('meanwhile-dst')
    hub.revision('meanwhile', 'meanwhile-src', {'a': '1\n', 'f': '1\n', 'x': '1\n'})
    hub.applied('meanwhile', dst)
    hub.revision('meanwhile', 'meanwhile-src', {'a': '2\n', 'f': '2\n'})
    with hub.asked('meanwhile', dst) as answer:
        with open(f'{dst}/f', 'w', encoding='utf-8') as f:
            f.write('mine\n')
        status, _, said = answer(b'y\n')
    assert status == FAILED and b'f changes' in said, said
    found = tree(dst)
    assert sorted(found) == [b'a', b'f', b'x']
    assert (found[b'a'][2], found[b'f'][2]) == (b'1\n', b'mine\n')


FULL_DISK = '''
mount -t tmpfs -o size=1m,mode=700 none "$0" && echo old > "$0/f" && : > "$0/z" || exit 9
"$@"; status=$?
cat "$0/f"; ls -A "$0"; exit $status
'''


def test_a_full_disk(hub):
    if hub.who.prefix or os.getuid() != 0:
        pytest.skip('only root mounts a small disk here')
    dst = hub.folder('full-dst')
    hub.revision('full', 'full-src', {'f': 'new\n', 'big': 'x' * 3000000, 'z': ''})
    done = subprocess.run(
        ['unshare', '-m', 'sh', '-c', FULL_DISK, dst,
         *hub.who.argv('ws', 'apply', 'full', '--to', dst, '--yes', '--force')],
        env=hub.env, cwd='/', capture_output=True, check=False, timeout=60)
    assert done.returncode == FAILED and done.stdout == b'old\nf\nz\n', done
    hub.applied('full', dst)  # the control
    assert len(tree(dst)) == 3


@pytest.mark.parametrize('mode', [0, 0o111, 0o200])
def test_taken_back_unread(hub, mode):
    """The revision has a file that its owner may not read, and the apply fails after that."""
    name = f'unread{mode}'
    dst = hub.folder(f'{name}-dst')
    hub.revision(name, f'{name}-src', {'a': 'old\n', 'd/f': 'f\n'})
    hub.applied(name, dst)
    with open(f'{dst}/d/.env', 'w', encoding='utf-8') as f:
        f.write('mine\n')
    hub.own(dst)
    before = tree(dst, times=True)
    hub.archived(name, {'a': (mode, 'new\n'), 'd': (0o644, 'a file\n')})
    done = hub.apply(name, dst, '--yes')
    assert done.returncode == FAILED and b'nothing was changed: d: File exists' in done.stderr, done
    assert tree(dst, times=True) == before


@pytest.mark.parametrize('mode', [0o111, 0o300])
def test_killed_behind_a_closed_directory(hub, mode):
    """It may not be read, which is what the apply does last."""
    name = f'closed{mode}'
    dst = hub.folder(f'{name}-dst')
    hub.revision(name, f'{name}-src', {'a': '1\n'})
    hub.applied(name, dst)
    before = tree(dst, times=True)
    hub.archived(name, {'a': (0o644, '2\n'), 'new': (mode, None), 'new/f': (0, 'f\n')})
    hub.killed(name, dst)
    done = hub.apply(name, dst)
    assert b'was taken back\n' in done.stderr and b'--yes' in done.stderr, done
    assert tree(dst, times=True) == before
    hub.applied(name, dst)
    assert stat.S_IMODE(os.stat(f'{dst}/new').st_mode) == mode
    os.chmod(f'{dst}/new', 0o700)


def test_changed_after_a_kill(hub):
    """What is there then stays, and so does what was there before the apply."""
    dst = hub.folder('after-dst')
    first = {'a': 'old a\n', 'b': 'old b\n', 'gone': 'old gone\n', 'sub/f': 'old f\n', 'e': '1\n',
             'w': 'old w\n'}
    one = hub.revision('after', 'after-src', first)
    hub.applied('after', dst)
    hub.archived('after', {'a': (0o644, 'new a\n'), 'b': (0o644, 'new b\n'), 'e': (0o644, '2\n'),
                           'sub/f': (0o644, 'new f\n'), 'w': (0o200, 'new w\n')})
    hub.killed('after', dst)
    for name in ('a', 'gone', 'w'):
        with open(f'{dst}/{name}', 'w', encoding='utf-8') as f:
            f.write('mine\n')
    os.unlink(f'{dst}/b')
    shutil.rmtree(f'{dst}/sub')
    hub.own(dst)
    done = hub.apply('after', dst, '-r', one)
    assert b'was taken back, but for these files\n' in done.stderr, done
    assert stat.S_IMODE(os.stat(f'{dst}/w').st_mode) == 0o200
    os.chmod(f'{dst}/w', 0o600)
    found = {name: what[2] for name, what in tree(dst).items() if what[0] == 'file'}
    kept = {name.split(b'/')[1]: what for name, what in found.items()
            if name.startswith(b'holt-kept-')}
    assert {name.split(b'-')[1]: what for name, what in kept.items()} == {
        b'a': b'old a\n', b'gone': b'old gone\n', b'f': b'old f\n', b'w': b'old w\n'}
    assert {name: what for name, what in found.items() if not name.startswith(b'holt-kept-')} == {
        b'a': b'mine\n', b'b': b'old b\n', b'gone': b'mine\n', b'e': b'1\n', b'w': b'mine\n'}
    for name in (b'a', b'gone', b'sub/f', b'w'):
        assert b"holt: %s: the old one can't get back" % name in done.stderr, done
    assert b'a: was changed since, and stays' in done.stderr and not hub.has_journal()


def state(n):
    """All of it says its number; what is in one and not in the other, too."""
    files = {f'd{i % 5}/f{i}': f'{n}\n' * (1 + i) for i in range(60)}
    files |= {f'only{n}/{i}': f'{n}\n' for i in range(10)}
    return files | {'link': ('link', str(n)), 'run': (0o700 + n, '')}


def test_killed(hub):
    dst = hub.folder('killed-dst')
    ids = [hub.revision('killed', 'killed-src', state(n)) for n in (0, 1)]
    trees = []
    for n in (0, 1):
        hub.fill(hub.sources['killed-src'], state(n))
        trees.append(tree(hub.sources['killed-src']))
    hub.applied('killed', dst, '-r', ids[0])
    began = time.monotonic()
    hub.applied('killed', dst, '-r', ids[1])
    latest = 1.2 * (time.monotonic() - began)
    assert tree(dst) == trees[1]
    chance, seen, now = random.Random(SEED), {'old': 0, 'new': 0, 'taken back': 0}, 1
    for _ in range(ROUNDS):
        new = 1 - now
        undo = chance.random() < 0.3
        more = ['--undo'] if undo else ['-r', ids[new]]
        proc = hub.popen('ws', 'apply', 'killed', '--to', dst, '--yes', *more)
        if chance.random() < 0.7:  # when it has begun to change things
            while proc.poll() is None and not hub.has_journal():
                pass
            time.sleep(chance.uniform(0, 0.004))
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                proc.wait(chance.uniform(0, latest))
        proc.kill()
        proc.communicate()
        done = hub.apply('killed', dst, '-r', ids[0])
        assert done.returncode in (0, FAILED), (done, SEED)
        seen['taken back'] += b'was interrupted' in done.stderr
        found = tree(dst)
        assert found in trees, (SEED, seen)
        seen['old' if found == trees[now] else 'new'] += 1
        if found == trees[now]:
            hub.applied('killed', dst, '-r', ids[new])
        now = new
        assert tree(dst) == trees[now], SEED
    print(seen, SEED)


HALF = [  # what was not done yet when somebody removed the stage
    (), ('a',), ('d', 'only0', 'only1'), ('to-file',), ('to-dir',), ('a', 'd', 'to-file', 'to-dir')]
LESS = [{'a': '0\n', 'd/f': '0\n', 'only0': '0\n', 'to-file/x': '0\n', 'to-dir': '0\n',
         'same': '0\n'},
        {'a': '1\n', 'd/f': '1\n', 'only1': '1\n', 'to-file': '1\n', 'to-dir/x': '1\n',
         'same': '0\n'}]


def leave_undone(dst, source, names):
    """These are as they are in the source."""
    for name in names:
        for top in (dst, source):
            at = os.path.join(top, name)
            if top == dst and os.path.lexists(at):
                (shutil.rmtree if os.path.isdir(at) else os.unlink)(at)
            elif top == source and os.path.isdir(at):
                shutil.copytree(at, os.path.join(dst, name))
            elif top == source and os.path.exists(at):
                shutil.copy2(at, os.path.join(dst, name))


def refuses(hub, name, dst):
    """All but an undo, and nothing is lost by that."""
    before = tree(dst, times=True)
    asked = ('ws', 'apply', name, '--to', dst, '--yes')
    for what in (asked, (*asked, '--force'), asked, ('ws', 'import', name, dst)):
        hub.fails(FAILED, 'its stage is gone, or files of it; first take back what it did: '
                  f'holt ws apply {name} --undo', *what)
    hub.fails(FAILED, '--yes', 'ws', 'apply', name, '--to', dst, '--undo')
    hub.fails(FAILED, 'its stage is gone', *asked)
    assert tree(dst, times=True) == before


def undone_and_applied(hub, name, dst, before):
    hub.applied(name, dst, '--undo')
    assert tree(dst) == before
    hub.applied(name, dst)
    assert tree(dst) == tree(hub.sources[f'{name}-src'])


@pytest.mark.parametrize('undone', HALF)
def test_undone_without_its_stage(hub, undone):
    """Somebody has cleaned the folder after an apply was killed in the middle."""
    name = f'stage{HALF.index(undone)}'
    dst, was = hub.folder(f'{name}-dst'), hub.folder(f'{name}-was')
    hub.revision(name, f'{name}-src', LESS[0])
    hub.fill(was, LESS[0])
    hub.applied(name, dst)
    before = tree(dst)
    hub.revision(name, f'{name}-src', LESS[1])
    hub.killed(name, dst, stage=False)
    leave_undone(dst, was, undone)
    hub.own(dst)
    refuses(hub, name, dst)
    undone_and_applied(hub, name, dst, before)
    hub.applied(name, dst, '--undo')
    assert tree(dst) == before


@pytest.mark.parametrize('gone', ['all', 'even', 'odd'])
def test_undone_without_files_of_its_stage(hub, gone):
    """Somebody has removed some of the old files, so what it did can't be taken back in steps."""
    name = f'part-{gone}'
    dst = hub.folder(f'{name}-dst')
    hub.revision(name, f'{name}-src', LESS[0])
    hub.applied(name, dst)
    before = tree(dst)
    hub.revision(name, f'{name}-src', LESS[1])
    hub.killed(name, dst)
    for number in os.listdir(hub.stage(dst)):
        path = os.path.join(hub.stage(dst), number)
        if os.path.isfile(path) and gone in ('all', ('even', 'odd')[int(number) % 2]):
            os.unlink(path)
    for what in ('apply', 'apply', 'import'):
        to = (dst,) if what == 'import' else ('--to', dst, '--yes')
        hub.fails(FAILED, 'its stage is gone, or files of it', 'ws', what, name, *to)
    undone_and_applied(hub, name, dst, before)


@pytest.mark.parametrize('undone', HALF[1:])
def test_an_undo_without_its_stage(hub, undone):
    """It was interrupted, too, and then once more: what it has not done is undone again."""
    name = f'undo{HALF.index(undone)}'
    dst = hub.folder(f'{name}-dst')
    hub.revision(name, f'{name}-src', LESS[0])
    hub.applied(name, dst)
    before = tree(dst)
    hub.revision(name, f'{name}-src', LESS[1])
    hub.applied(name, dst)
    for _ in range(2):
        hub.killed(name, dst, '--undo', stage=False)
        leave_undone(dst, hub.sources[f'{name}-src'], undone)
        hub.own(dst)
        refuses(hub, name, dst)
    undone_and_applied(hub, name, dst, before)


def test_an_import_after_a_kill(hub):
    """It first takes back what was done, so the base is what the folder has."""
    dst = hub.folder('import-dst')
    hub.revision('import', 'import-src', {'a': '1\n', 'b': '1\n'})
    hub.applied('import', dst)
    before = tree(dst)
    two = hub.revision('import', 'import-src', {'a': '2\n', 'new': '2\n'})
    hub.killed('import', dst)
    done = hub.run('ws', 'import', 'import', dst)
    assert done.returncode == 0 and b'was taken back' in done.stderr, done
    assert tree(dst) == before and not hub.has_journal()
    os.makedirs(hub.stage(dst))  # of one that was killed before it did anything
    with open(f'{hub.stage(dst)}/1', 'w', encoding='utf-8') as f:
        f.write('new\n')
    hub.own(dst)
    assert hub.ok('ws', 'import', 'import', dst) == done.stdout
    assert tree(dst) == before
    with hub.asked('import', dst, '-r', two) as answer:
        hub.fails(FAILED, 'another apply', 'ws', 'import', 'import', dst)
        assert answer(b'y\n')[0] == 0
    assert tree(dst) == tree(hub.sources['import-src'])
