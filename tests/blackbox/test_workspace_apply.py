"""`holt ws apply`: the changes of a revision in a folder of the operator's: shown, asked for, and
undone; nothing outside of the folder, and the old or the new whatever happens. git merges, and what
it is asked to keep is in a repository of Holt's own."""

import contextlib
import hashlib
import os
import pty
import random
import shutil
import stat
import subprocess
import threading
import time

import pytest

from client import until
from soak import soak
from test_faults import Fault, library  # noqa: F401 (library is a fixture)
from test_hub_cli import FAILED, Hub as Cli
from test_project_git import listed, told

ROUNDS = soak(100)  # of each of two users
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

    def data(self, folder):
        """Where Holt keeps what it knows of the folder, to which something was applied."""
        key = hashlib.sha256()
        at = os.path.join(self.env['HOLT_HOME'], 'applied')
        key.update(os.fsencode(at) + b'\0' + os.fsencode(os.path.realpath(folder)))
        return os.path.join(at, key.hexdigest()[:32])

    def stage(self, folder):
        return os.path.join(folder, '.holt-apply-' + os.path.basename(self.data(folder))[:16])

    def git(self, folder, *words, **options):
        """Of the repository that Holt keeps for the folder."""
        done = subprocess.run(['git', '-c', 'safe.directory=*', '--git-dir',
                               os.path.join(self.data(folder), 'git'), *words],
                              capture_output=True, check=False, timeout=60, **options)
        self.own(self.data(folder))
        return done.stdout.decode().strip()

    def killed(self, name, folder, *more):
        """An apply that was killed when it had changed everything, and not ended."""
        had = self.git(folder, 'rev-parse', '--verify', '--quiet', 'last')
        self.git(folder, 'update-ref', 'refs/heads/was', had or '0' * 40)
        self.applied(name, folder, *more)
        self.git(folder, 'update-ref', 'refs/heads/begun', 'last')
        self.git(folder, 'update-ref', *(('refs/heads/last', 'was') if had
                                         else ('-d', 'refs/heads/last')))
        self.git(folder, 'update-ref', '-d', 'refs/heads/was')

    def has_begun(self):
        at = os.path.join(self.env['HOLT_HOME'], 'applied')
        return any(os.path.exists(f'{at}/{one}/git/refs/heads/begun') for one in os.listdir(at))

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
    assert b'--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n' in done.stdout, done
    assert b'deleted file mode 100644' in done.stdout and b'Binary files' in done.stdout
    assert tree(dst, times=True) == before
    hub.applied('there', dst)
    expected = tree(hub.sources['there-src'])
    expected[b'run'] = (*expected[b'run'][:1], 0o755, *expected[b'run'][2:])
    for name in (b'mine', b'same'):
        expected[name] = (*before[name][:3], 0)
    assert tree(dst) == expected
    done = hub.applied('there', dst, '--undo')
    assert tree(dst) == {**before, **{name: (*what[:3], 0) for name, what in before.items()
                                      if what[0] == 'file'}}, done
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
    first = hub.revision(name, f'{name}-src', {'f': '1\n', 'd/g': '1\n'})
    second = hub.revision(name, f'{name}-src', {'f': '1\n'})
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
        assert left - {b'd'} == {b'f'}, (nth, done)  # an empty directory may stay
    assert failed > 3


def test_the_base_has_gone(hub):
    """Then nothing is removed, and what differs is a conflict."""
    dst = hub.folder('nobase-dst')
    hub.revision('nobase', 'nobase-src', {'f': '1\n'})
    hub.fill(dst, {'f': '1\n', 'g': '1\n'})
    hub.ok('ws', 'import', 'nobase', dst)
    hub.ok('ws', 'rm', 'nobase')
    hub.ok('ws', 'create', 'nobase')
    hub.fill(hub.sources['nobase-src'], {'f': '2\n'})
    hub.ok('ws', 'import', 'nobase', hub.sources['nobase-src'])
    done = hub.apply('nobase', dst, '--yes')
    assert done.returncode == CONFLICTS and b'last is gone' in done.stderr, done
    hub.applied('nobase', dst, '--force')
    assert {name: what[2] for name, what in tree(dst).items()} == {b'f': b'2\n', b'g': b'1\n'}


def test_both_changed_other_lines(hub):
    """Both changes are in the file then. It keeps its permissions, and so do the others."""
    dst = hub.folder('lines-dst')
    lines = [f'{i}\n' for i in range(20)]
    hub.revision('lines', 'lines-src', {'f': ''.join(lines)})
    hub.applied('lines', dst)
    hub.revision('lines', 'lines-src', {'f': ''.join(['first\n', *lines[1:]])})
    hub.fill(dst, {'f': (0o600, ''.join([*lines[:-1], 'last\n']))})
    hub.applied('lines', dst)
    merged = ''.join(['first\n', *lines[1:-1], 'last\n']).encode()
    assert tree(dst) == {b'f': ('file', 0o600, merged, 0)}
    hub.applied('lines', dst, '--undo')
    assert tree(dst)[b'f'][2] == ''.join([*lines[:-1], 'last\n']).encode()


def test_a_file_that_becomes_a_link(hub):
    """By somebody who has the folder, too, while it is read: what the link leads to is neither
    shown nor merged."""
    lines = [f'{i}\n' for i in range(20)]
    hub.revision('raced', 'raced-src', {'d/f': ''.join(lines)})
    dst, secret = hub.folder('raced-dst'), hub.folder('raced-secret')
    hub.applied('raced', dst)
    hub.revision('raced', 'raced-src', {'d/f': ''.join([*lines[:-1], 'changed\n'])})
    hub.fill(secret, {'f': ''.join(['SECRET\n', *lines[1:]])})
    ends = threading.Event()
    os.symlink(secret, f'{dst}/other')

    def swap():  # the directory and a link in its place
        pairs = (('d', 'd.kept'), ('other', 'd'), ('d', 'other'), ('d.kept', 'd'))
        while not ends.is_set():
            for old, new in pairs:
                with contextlib.suppress(OSError):  # an apply may have been there
                    os.rename(f'{dst}/{old}', f'{dst}/{new}')
    swaps = threading.Thread(target=swap)
    swaps.start()
    try:
        for _ in range(soak(40)):
            shown = hub.apply('raced', dst, input=b'n\n')
            done = hub.apply('raced', dst, '--yes')
            assert b'SECRET' not in shown.stdout + done.stdout
    finally:
        ends.set()
        swaps.join()
    assert not [name for name, what in tree(dst).items()
                if what[0] == 'file' and b'SECRET' in what[2]]


@pytest.mark.parametrize('known', [True, False])
def test_what_comes_back_is_as_secret_as_it_was(hub, known):
    dst = hub.folder(f'secret-dst-{known}')
    hub.revision('secret', 'secret-src', {'key': 'k', 'text': 't', 'f': '1'})
    hub.applied('secret', dst)
    hub.fill(dst, {'key': (0o600, 'k'), 'text': (0o644, 't'), 'f': '1'})
    hub.revision('secret', 'secret-src', {'f': '2'})
    hub.applied('secret', dst)
    assert sorted(tree(dst)) == [b'f']
    if not known:
        os.unlink(os.path.join(hub.data(dst), 'modes'))
    hub.applied('secret', dst, '--undo')
    assert {name: oct(what[1]) for name, what in tree(dst).items()} == {
        b'key': '0o600', b'text': '0o644' if known else '0o600', b'f': '0o644'}


def test_nothing_of_the_folders_repository_runs(hub):
    """Neither hooks, nor what its configuration names, nor what attributes ask for."""
    dst, ran = hub.folder('own-dst'), hub.folder('own-ran')
    script = f'#!/bin/sh\necho "$0" >> {ran}/it\ncat\n'
    hub.fill(dst, {'f': 'f\r\n', 'filter': (0o755, script)})
    subprocess.run(['git', 'init', '-q', dst], check=True)
    with open(f'{dst}/.git/config', 'a', encoding='utf-8') as f:
        f.write(f'[core]\n\tfsmonitor = {dst}/filter\n\tpager = {dst}/filter\n'
                f'[filter "x"]\n\tclean = {dst}/filter\n\tsmudge = {dst}/filter\n'
                f'[diff]\n\texternal = {dst}/filter\n'
                f'[merge "x"]\n\tdriver = {dst}/filter\n')
    for name in ('post-checkout', 'post-index-change', 'pre-commit', 'reference-transaction'):
        shutil.copy(f'{dst}/filter', f'{dst}/.git/hooks/{name}')
    with open(f'{dst}/.gitattributes', 'w', encoding='utf-8') as f:
        f.write('* text=auto eol=lf filter=x diff=x merge=x ident\n')
    hub.own(dst)
    for n in (1, 2):
        hub.revision('own', 'own-src', {'f': f'{n}$Id$\r\n', 'new': '$Id$\r\n'})
        hub.applied('own', dst, '--force')
        with open(f'{dst}/f', 'rb') as f:
            assert f.read() == f'{n}$Id$\r\n'.encode()
    assert os.listdir(ran) == []
    subprocess.run(['git', '-c', 'safe.directory=*', '-C', dst, 'add', 'f'], check=True)
    assert os.listdir(ran) == ['it']  # the control


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
            ] == [True, True, False, True, True], done
    assert tree(dst, times=True) == before
    hub.applied('conflicts', dst, '--force')
    assert tree(dst) == tree(hub.sources['conflicts-src'])
    with open(f'{dst}/f', 'w', encoding='utf-8') as f:
        f.write('later\n')
    now = tree(dst)
    done = hub.apply('conflicts', dst, '--undo', '--yes')
    assert done.returncode == CONFLICTS and b'f: was changed here' in done.stderr
    assert tree(dst) == now
    hub.applied('conflicts', dst, '--undo', '--force')
    assert tree(dst) == {name: (*what[:3], 0) for name, what in before.items()}


def test_protected(hub):
    dst = hub.folder('protected-dst')
    hub.revision('protected', 'protected-src', {
        'f': '1\n', '.git/hooks/post-checkout': 'x\n', '.vscode/tasks.json': 'x\n',
        'sub/.MCP.json': 'x\n', '.bashrc': 'x\n', 'sub/.GIT/config': 'x\n'})
    done = hub.applied('protected', dst)
    assert sorted(tree(dst)) == [b'f'], done
    assert b'.vscode/tasks.json: left out' in done.stderr
    done = hub.applied('protected', dst, '--protected')
    assert sorted(tree(dst)) == [b'.bashrc', b'.vscode', b'.vscode/tasks.json', b'f', b'sub',
                                 b'sub/.MCP.json']
    assert b'.vscode/tasks.json: programs of this machine act on it' in done.stderr
    hub.applied('protected', dst, '--undo')
    assert sorted(tree(dst)) == [b'f']


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


def test_a_diff_that_is_too_large(hub):
    """Its names are shown."""
    dst = hub.folder('large-dst')
    hub.revision('large', 'large-src', {'f': 'x\n' * (9 << 20), 'g': 'g\n'})
    done = hub.applied('large', dst)
    assert done.stdout == (b'The changes are too large to be shown. These files have some:\n'
                           b'A\tf\nA\tg\n'), done
    assert sorted(tree(dst)) == [b'f', b'g']


def test_the_question(hub):
    dst = hub.folder('question-dst')
    hub.revision('question', 'question-src', {'f': '1\n'})
    for no in (b'n\n', b'\n', b'yy\n', b'\x04'):
        with hub.asked('question', dst) as answer:
            status, out, said = answer(no)
        assert status == DECLINED and b'+++ b/f' in out and b'nothing was changed' in said, said
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
    assert done.returncode == CONFLICTS and b'sub' in done.stderr, done
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
    assert status == FAILED and b'f was changed meanwhile' in said, said
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
    assert done.returncode == FAILED and done.stdout.endswith(b'old\nf\nz\n'), done
    hub.applied('full', dst)  # the control
    assert len(tree(dst)) == 3


def test_taken_back(hub):
    """What fails in the middle is taken back: a folder with a file of the operator's can't go."""
    dst = hub.folder('back-dst')
    hub.revision('back', 'back-src', {'a': 'old\n', 'd/f': 'f\n'})
    hub.applied('back', dst)
    with open(f'{dst}/d/.env', 'w', encoding='utf-8') as f:
        f.write('mine\n')
    hub.own(dst)
    before = tree(dst)
    hub.revision('back', 'back-src', {'a': 'new\n', 'd': 'a file\n'})
    done = hub.apply('back', dst, '--yes')
    assert done.returncode == FAILED and b'nothing was changed: d: File exists' in done.stderr, done
    assert tree(dst) == before and not hub.has_begun()


def test_changed_after_a_kill(hub):
    """What is there then stays, and what was there before the apply is kept."""
    dst = hub.folder('after-dst')
    first = {'a': 'old a\n', 'b': 'old b\n', 'gone': 'old gone\n', 'sub/f': 'old f\n', 'e': '1\n'}
    one = hub.revision('after', 'after-src', first)
    hub.applied('after', dst)
    hub.revision('after', 'after-src', {'a': 'new a\n', 'b': 'new b\n', 'e': '2\n',
                                        'sub/f': 'new f\n'})
    hub.killed('after', dst)
    os.mkdir(hub.stage(dst))
    for name in ('a', 'gone', os.path.join(hub.stage(dst), '7')):
        with open(os.path.join(dst, name), 'w', encoding='utf-8') as f:
            f.write(f'mine {os.path.basename(name)}\n')
    os.unlink(f'{dst}/b')
    hub.own(dst)
    done = hub.apply('after', dst, '-r', one)
    assert b'was taken back\n' in done.stderr, done
    assert {name: what[2] for name, what in tree(dst).items() if what[0] == 'file'} == {
        b'a': b'mine a\n', b'gone': b'mine gone\n', b'e': b'1\n', b'sub/f': b'old f\n'}
    for name in (b'a', b'gone', b'b'):
        assert b'holt: %s: was changed since, and stays' % name in done.stderr, done
    kept = done.stderr.decode().split(' show ')[1].split(':')[0]
    for name in ('a', 'gone', 'b'):
        assert hub.git(dst, 'show', f'{kept}:{name}') == f'old {name}'
    assert hub.git(dst, 'show', f'{kept}^:7') == 'mine 7'  # only the stage had it
    assert not hub.has_begun() and not os.path.exists(hub.stage(dst))


def state(n):
    """All of it says its number; what is in one and not in the other, too."""
    files = {f'd{i % 5}/f{i}': f'{n}\n' * (1 + i) for i in range(60)}
    files |= {f'only{n}/{i}': f'{n}\n' for i in range(10)}
    return files | {'link': ('link', str(n)), 'run': (0o644 + n * 0o111, '')}


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
            while proc.poll() is None and not hub.has_begun():
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


HALF = [  # what was not done yet
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


@pytest.mark.parametrize('undoes', [False, True])
def test_killed_in_the_middle(hub, undoes):
    """The next one takes it back wherever it was, also an undo; somebody has removed its stage."""
    name = f'half-{undoes}'
    dst = hub.folder(f'{name}-dst')
    hub.revision(name, f'{name}-src', LESS[0])
    hub.applied(name, dst)
    hub.revision(name, f'{name}-src', LESS[1])
    if undoes:
        hub.applied(name, dst)
    before = tree(dst)
    was = shutil.copytree(dst, os.path.join(hub.who.work, f'{name}-was'))
    for undone in HALF:
        hub.killed(name, dst, *(['--undo'] if undoes else []))
        leave_undone(dst, was, undone)
        hub.own(dst)
        done = hub.apply(name, dst, *(['--undo'] if undoes else []))
        assert done.returncode == FAILED and b'was taken back\n' in done.stderr, done
        assert tree(dst) == before and b'kept' not in done.stderr


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
    assert tree(dst) == before and not hub.has_begun()
    with hub.asked('import', dst, '-r', two) as answer:
        hub.fails(FAILED, 'another apply', 'ws', 'import', 'import', dst)
        assert answer(b'y\n')[0] == 0
    assert tree(dst) == tree(hub.sources['import-src'])
