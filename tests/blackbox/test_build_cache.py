"""What a build keeps of its lines, and what it leaves out of its folder by .holtignore."""

import os
import random
import signal
import subprocess

import pytest

from client import until
from folder import build_with_buildah, needs_buildah, work  # noqa: F401
from test_build import overlays  # noqa: F401

# where it is all the same for users
once = pytest.mark.parametrize('who', ['root' if os.getuid() == 0 else 'user'], indirect=True)


# ---- lines ---------------------------------------------------------------------------------------

CHANCE = 'head -c 16 /dev/urandom | od -An -tx1 > /'


def kept_of(done):
    """How many lines were not run, which are the first ones."""
    said = [line for line in done.stderr.decode().splitlines() if line.startswith('step ')]
    kept = [', kept: ' in line for line in said]
    assert kept == sorted(kept, reverse=True)
    return sum(kept)


def steps(work):
    path = work.store.path + '/step'
    return sorted(os.listdir(path)) if os.path.isdir(path) else []


def build(work, run, *arguments, **members):
    work.spec(run=run, **members)
    done = work.build(*arguments)
    assert done.returncode == 0, done
    assert os.listdir(work.store.path + '/new') == []
    return kept_of(done)


# What a line can leave, of every kind; what the next makes of it.
FIRST = '''set -e; mkdir -p /d/sub /gone/sub /closed; echo one > /d/one
ln /d/one /d/sub/hard; ln -s one /d/link; echo x > /gone/sub/x
echo x > "/d/new
line"; touch -d @1000000000 /d/link /d/sub/hard; chmod 1777 /d; echo in > /closed/in
chmod 500 /closed; rm /etc/shells; mv /etc/issue /etc/moved 2>/dev/null || :
head -c 3000000 /dev/zero > /big; ''' + CHANCE + 'chance'
SECOND = ('rm -r /gone /big; echo two >> /d/one; mkdir /gone; echo again > /gone/y; ' + CHANCE
          + 'second')
TELL = '''cd /; find d gone closed big -printf '%y %m %n %s %l %p\\n' 2>/dev/null | sort
cat d/one d/sub/hard d/link closed/in gone/y; stat -c %Y d/one; test -e /etc/shells || echo none'''


def test_the_lines_before_a_changed_one_are_not_run_again(overlays):
    work = overlays
    assert build(work, [FIRST, SECOND, 'echo three > /three']) == 0 and len(steps(work)) == 3
    told, chances = work.sh('agent-tool', TELL), work.sh('agent-tool', 'cat /chance /second')
    # The last line, then another one behind it, the middle one, and what is no line at all.
    assert build(work, [FIRST, SECOND, 'echo 3 > /three']) == 2
    assert (work.sh('agent-tool', TELL) == told
            and work.sh('agent-tool', 'cat /chance /second /three') == chances + '3\n')
    assert build(work, [FIRST, SECOND, 'echo 3 > /three', 'echo four > /four']) == 3
    assert work.sh('agent-tool', 'cat /chance /second /three /four') == chances + '3\nfour\n'
    assert build(work, [FIRST, SECOND + '; true', 'echo 3 > /three']) == 1
    assert (work.sh('agent-tool', 'cat /chance')[:48] == chances[:48]
            != work.sh('agent-tool', 'cat /second')[:48])
    assert build(work, [FIRST, SECOND], cmd=['x'], limits={'memory_mb': 512}) == 2
    assert work.sh('agent-tool', TELL) == told
    assert build(work, [FIRST, SECOND], '--no-cache', cmd=['y']) == 0
    assert work.sh('agent-tool', 'cat /chance /second') != chances
    assert build(work, [FIRST, SECOND], cmd=['z']) == 2  # what was made anew
    assert work.sh('agent-tool', 'cat /chance /second') != chances


@once
def test_what_lines_find_counts(overlays):
    work = overlays
    work.put('f', 'one')
    members = {'files': [{'from': 'f', 'to': '/f'}]}
    assert build(work, ['cat /f > /g'], **members) == 0
    work.put('f', 'two')
    assert build(work, ['cat /f > /g'], **members) == 0 and work.sh('agent-tool', 'cat /g') == 'two'
    for more in ({'env': {'A': '1'}}, {'workdir': '/w', 'user': 'root'}):
        assert build(work, ['cat /f > /g'], **members, **more) == 0
    work.put('f', 'one')
    assert (build(work, ['cat /f > /g', 'true'], **members) == 1 and work.sh('agent-tool', 'cat /g')
            == 'one')


@once
def test_a_line_that_fails_or_a_build_that_is_killed_leaves_those_before(overlays, residue):
    work = overlays
    chance = CHANCE + 'chance'
    work.spec(run=[chance, 'exit 3'])
    done = work.build()
    assert (done.returncode == 125 and b'step 2 ended with status 3' in done.stderr
            and len(steps(work)) == 1)
    assert build(work, [chance, 'true']) == 1
    first = work.sh('agent-tool', 'cat /chance')
    for number in (signal.SIGTERM, signal.SIGKILL):
        work.spec(run=[chance, 'true', f'echo {int(number)} > /n',
                       'echo in the step; exec sleep 1000'])
        work.give()
        proc = subprocess.Popen(work.who.argv('build', work.path), env=work.who.env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, cwd='/')
        while proc.stderr.readline() != b'in the step\n':
            assert proc.poll() is None
        proc.send_signal(number)
        proc.communicate(timeout=60)
        until(lambda: work.store.json('prune') and os.listdir(work.store.path + '/new') == [],
              what='the end of the build')
        assert build(work, [chance, 'true', f'echo {int(number)} > /n', 'true']) == 3
        assert work.sh('agent-tool', 'cat /chance /n') == f'{first}{int(number)}\n'
    work.store.ok('rm', 'agent-tool')
    work.store.ok('prune', '--all')


@once
def test_what_is_damaged_is_as_if_it_had_never_been(overlays):
    """A bit, an end that is missing, no file at all; then the one before it counts."""
    work = overlays
    lines = [CHANCE + 'a', 'sleep 0; ' + CHANCE + 'b']

    def damage(how):
        for name in steps(work):
            how(os.path.join(work.store.path, 'step', name))

    def flip(path):
        with open(path, 'r+b') as f:
            f.seek(700)
            was = f.read(1)
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([was[0] ^ 1]))

    def pipe(path):
        os.unlink(path)
        os.mkfifo(path)

    build(work, lines)
    for how in (flip, lambda path: os.truncate(path, os.path.getsize(path) - 1), pipe):
        damage(how)
        assert build(work, lines, cmd=[str(how)]) == 0
    assert build(work, lines, cmd=['again']) == 2


@once
def test_prune_and_bounds(overlays):
    work = overlays
    build(work, ['true', 'echo 1 > /1'])
    old, new = (os.path.join(work.store.path, 'step', name) for name in steps(work))
    os.utime(old, (1, 1))
    assert (work.store.json('prune')['steps'] == 1 and not os.path.exists(old)
            and os.path.exists(new))
    assert 'cached build steps' in work.store.ok('prune', '--all') and steps(work) == []
    assert build(work, ['true', 'echo 1 > /1'], cmd=['x']) == 0
    # More than there may be: the oldest go with the next build. Holes take no room on the disk.
    for i in range(600):
        path = os.path.join(work.store.path, 'step', f'{i:064x}')
        with open(path, 'wb'):
            pass
        os.utime(path, (10**9 + i, 10**9 + i))
    huge = os.path.join(work.store.path, 'step', 'f' * 64)
    with open(huge, 'wb') as f:
        f.truncate(9 << 30)
    os.utime(huge, (2 * 10**9, 2 * 10**9))
    os.utime(path, (10**9 * 2 - 1, 10**9 * 2 - 1))
    assert build(work, ['true', 'echo 2 > /1']) == 1
    left = steps(work)
    assert huge not in left and len(left) < 512 and f'{0:064x}' not in left
    assert work.store.json('prune', '--all')['steps'] == len(left)


@once
def test_the_same_folder_many_times_at_once(overlays):
    work = overlays
    work.spec(run=[CHANCE + 'chance', 'cp /chance /copy'])
    work.give()
    running = [subprocess.Popen(work.who.argv('build', work.path, '-t', f'n{i}',
                                              *(['--no-cache'] if i % 2 else [])), env=work.who.env,
                                cwd='/', stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
               for i in range(4)]
    assert [(p.communicate(timeout=100), p.returncode)[1] for p in running] == [0] * 4
    for i in range(4):
        a, b = work.sh(f'n{i}', 'cat /chance; echo; cat /copy').split('\n\n')
        assert a.strip() == b.strip()
    assert len(steps(work)) == 2 and os.listdir(work.store.path + '/new') == []


@once
def test_what_can_not_be_put_back_is_tried_once(overlays):
    """The next try has what the lines before it have made."""
    work = overlays
    lines = [CHANCE + 'chance', 'head -c 80000000 /dev/zero > /big']
    assert build(work, lines, limits={'disk_mb': 128}) == 0
    for kept in (0, 1):
        work.spec(run=lines, limits={'disk_mb': 64})
        done = work.build()
        assert (done.returncode == 125 and b'step 2 ended' in done.stderr
                and kept_of(done) == kept), done


@pytest.mark.skipif(os.getuid() != 0, reason='needs a mount')
@once
def test_some_of_the_disk_stays_free(overlays):
    work = overlays
    work.spec(run=['echo 1 > /1'])
    work.give()
    script = ('mount -t tmpfs -o mode=700,size=$1 none "$0" || exit; shift; "$@" >&2 || exit; '
              'ls "$0"/step 2>/dev/null | wc -l')

    def kept(size):
        done = subprocess.run(['unshare', '-m', '--propagation', 'private', 'sh', '-c', script,
                               work.store.path, size,
                               *work.who.argv('build', work.path)], env=work.who.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.returncode, done.stdout, done.stderr
    control = kept('1g')
    if control[0]:
        pytest.skip(f'no image on a tmpfs: {control[2]}')
    assert control[1] == b'1\n' and kept('200m')[:2] == (0, b'0\n')


@once
def test_what_is_too_large_is_not_kept(overlays):
    """It fails no build; what its image may not have does."""
    work = overlays
    work.spec(run=['echo 1 > /1', 'truncate -s 6G /hole', 'rm /hole'], limits={'disk_mb': 64})
    done = work.build()
    assert done.returncode == 0, done
    assert len(steps(work)) == 2  # not of the second
    assert work.sh('agent-tool', 'cat /1; test -e /hole || echo gone') == '1\ngone\n'


# ---- what is left out ----------------------------------------------------------------------------

def files_of(root):
    return {os.path.relpath(os.path.join(at, name), root) for at, _dirs, names in os.walk(root)
            for name in names}


def test_left_out(work):  # noqa: F811
    for path in ('keep', 'a.o', 'sub/b.o', 'sub/keep', 'out/x', 'out/deep/keep', 'out/deep/x',
                 'node_modules/m/index.js', '.git/config'):
        work.put(path, path)
    work.put('.holtignore', '# objects\n**/*.o\n.git\nnode_modules/\nout\n!out/deep/keep\nclosed\n')
    closed = os.path.join(work.path, 'closed')
    os.mkdir(closed, 0)  # nobody has to look into it
    work.spec(files=[{'from': '.', 'to': '/all'}, {'from': 'out', 'to': '/out'},
                     {'from': './sub/../sub', 'to': '/sub'}])
    work.ok()
    root = work.store.root('agent-tool')
    assert files_of(root + '/all') == {'keep', 'sub/keep', 'out/deep/keep', 'holt.json',
                                       '.holtignore'}
    assert files_of(root + '/out') == {'deep/keep'} and files_of(root + '/sub') == {'keep'}
    assert not os.path.exists(root + '/all/.git') and not os.path.exists(root + '/all/node_modules')
    os.rmdir(closed)
    # What is left out does not count.
    work.put('a.o', 'changed')
    assert 'built before' in work.ok()
    work.put('sub/keep', 'changed')
    assert 'built before' not in work.ok()
    work.spec(files=[{'from': 'a.o', 'to': '/a.o'}]).refused('left out by .holtignore')
    work.put('.holtignore', 'fine\n[')
    work.refused('.holtignore: line 2')
    work.put('.holtignore', 'x' * 70000)
    work.refused('.holtignore')
    os.unlink(work.path + '/.holtignore')
    os.mkdir(work.path + '/.holtignore')
    work.refused('.holtignore')


NAMES = ['a', 'b', 'ab', 'a.o', '.x', 'é', 'a*', '!b', 'c[d]']
PARTS = ['a', 'b', '*', '**', '?', '*.o', '[ab]', 'a?', '**b', 'a**', '.*', '\\*', '[^a]', '*b*',
         'é', 'a\\*', '..', '.']


def patterns_of(chance):
    lines = []
    for _ in range(chance.randint(1, 4)):
        # buildah looks below a folder that is left out where one names it letter by letter
        exception = chance.random() < 0.3
        above = ['a', 'b', 'ab', 'é'] if exception else PARTS
        parts = [*(chance.choice(above) for _ in range(chance.randint(0, 2))), chance.choice(PARTS)]
        lines.append((exception, '/'.join(parts[parts[0] == '..':]) or 'a'))
    return lines


@once
def test_the_same_is_left_out_as_by_buildah(work):  # noqa: F811
    """Random lists and trees, as many as may be in one file, each below a folder of its own."""
    needs_buildah(work)
    chance, lists = random.Random(int(os.environ.get('HOLT_SEED', '5'))), []
    for case in range(100):
        lists.append([f'{"!" if exception else ""}c{case}/{pattern}'
                      for exception, pattern in patterns_of(chance)])
        for _ in range(12):
            parts = [chance.choice(NAMES) for _ in range(chance.randint(1, 3))]
            path = os.path.join(work.path, f'c{case}', *parts)
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, 'x', encoding='utf-8'):
                    pass
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                pass
    text = '\n'.join(line for lines in lists for line in lines) + '\n'
    work.put('.dockerignore', text)
    work.put('Containerfile', 'FROM scratch\nCOPY . /all\n')
    build_with_buildah(work)
    theirs = files_of(work.store.root('agent-tool') + '/all')
    work.put('.holtignore', text)
    work.spec(files=[{'from': '.', 'to': '/all'}]).ok()
    ours = files_of(work.store.root('agent-tool') + '/all') - {'.holtignore', 'holt.json'}
    differs = sorted(ours ^ theirs)
    assert not differs, [(path, path in ours, lists[int(path.split('/')[0][1:])])
                         for path in differs[:20]]
    assert 100 < len(ours) < sum(len(names) for _at, _dirs, names in os.walk(work.path)) - 100


@once
def test_a_file_of_very_many_names(work):  # noqa: F811
    """Where the image goes to it may not have as many: it is some files there,
    and the same contents by each name."""
    first = work.put('d/n', 'once')
    for i in range(33000):
        os.link(first, f'{first}{i:05}')
    work.spec(files=[{'from': 'd', 'to': '/d'}])
    work.ok()
    folder = work.store.root('agent-tool') + '/d'
    names = os.listdir(folder)
    assert len(names) == 33001 and len({os.stat(os.path.join(folder, name)).st_ino
                                        for name in names}) == 2
