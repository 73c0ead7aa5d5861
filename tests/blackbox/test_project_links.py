"""Links that a sandbox puts where git of the host writes. Which files those are, git itself says: a
day's work with it is traced once, and whatever it opens to write without O_EXCL is a place for a
link. The control shows that git does write through links there."""

import argparse
import json
import os
import re
import shlex
import shutil
import stat
import sys

import pytest

from client import until
from rest import Failed
from test_project import (EXCHANGE, ROOT, Project, await_seal, begin,
                          work)  # noqa: F401 (fixtures)
from test_project_git import as_owner

# Each is a line of a shell in the repository. What it leaves unfinished is removed, unless the next
# one continues it.
DAY = [
    'echo 1 >> a.txt; git commit -qam 1', 'git commit -q --amend -m 2', 'git branch a/b/c',
    'git checkout -qb x/y; echo 2 >> a.txt; git commit -qam 3; git push -q origin x/y main',
    'git -C ../other push -q origin main:far/away; git fetch -q; git pull -q origin far/away',
    'git notes add -m n; git notes edit', 'git tag -a v/1 -m t; git tag -f v/2',
    'echo 3 >> a.txt; git stash -q; git stash pop -q; git commit -qam 4',
    'git checkout -q main; git merge -q --no-ff -m m x/y',
    'git checkout -qb c/1; echo l > b; git add b; git commit -qm l; git checkout -qb c/2 HEAD~1; '
    'echo r > b; git add b; git commit -qm r; git merge c/1; git merge --abort; git branch c/3',
    'git merge c/1', 'echo lr > b; git add b; git merge --continue', 'git checkout -q c/3',
    'git rebase c/1', 'echo lr > b; git add b; git rebase --continue',
    'git cherry-pick c/2~1 main', 'echo x > b; git add -A; git cherry-pick --continue',
    'git checkout -qb t/x x/y; git rebase -q --force-rebase HEAD~1; '
    'GIT_SEQUENCE_EDITOR="sed -i s/^pick/reword/" git rebase -qi HEAD~1',
    'git format-patch -q -1 c/1 -o ../mail; git checkout -q c/2; git am -q -3 ../mail/*',
    'echo am > b; git add b; git am --continue', 'git revert -n HEAD~1; git reset -q --hard',
    'git bisect start HEAD HEAD~2; git bisect reset; git checkout -q main; git merge --squash x/y',
    'echo 5 >> a.txt; git add -e; git commit -qavm 5; git branch --edit-description',
    'git branch -m a/b/c a/d; git branch -c a/d e/f; git symbolic-ref refs/heads/s refs/heads/a/d',
    'git replace HEAD~1 HEAD~2; git replace -d HEAD~1; git update-index --split-index',
    'git pack-refs --all; git reflog expire --expire=now --all; git gc -q; git branch -D e/f',
    'git worktree add -q ../tree -b w/t; cd ../tree; echo 6 >> a.txt; git commit -qam 6',
    'git submodule -q add ../o.git sub; git commit -qm sub; git submodule -q update --init',
    'git sparse-checkout set sub; git sparse-checkout disable; git update-server-info',
]
# Git stops where one of these is there.
UNFINISHED = ('rebase-merge', 'rebase-apply', 'sequencer', 'MERGE_HEAD', 'CHERRY_PICK_HEAD',
              'REVERT_HEAD', 'BISECT_LOG')

# Puts a link at each path below a git directory, but where it can't.
PLANT = '''
import json, os, shutil, sys
top, way, links = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
for path, target in links.items():
    path = os.path.join(top, path)
    dir, new = os.path.dirname(path), os.path.join(top, 'new')
    try:
        os.makedirs(dir, exist_ok=True)
        if way == 'directory renamed' and dir != top:
            shutil.copytree(dir, new, symlinks=True)
            put = os.path.join(new, os.path.basename(path))
            os.path.lexists(put) and os.unlink(put)
            os.symlink(target, put)
            os.rename(dir, os.path.join(top, 'old'))
            os.rename(new, dir)
            shutil.rmtree(os.path.join(top, 'old'))
        elif way == 'link renamed':
            os.symlink(target, new)
            os.rename(new, path)
        else:
            os.path.lexists(path) and os.unlink(path)
            os.symlink(target, path)
    except OSError:
        pass
'''
WAYS = ['link', 'link renamed', 'directory renamed']


class Day:
    """A repository with another one that it pushes to, in a folder of its own."""

    def __init__(self, who, top):
        self.who, self.top, self.victims = who, top, f'{top}/victims'
        os.makedirs(self.victims)
        with open(f'{top}/config', 'w', encoding='utf-8') as f:
            f.write('[user]\n\tname = a\n\temail = a@example.com\n[init]\n\tdefaultBranch = main\n'
                    '[protocol "file"]\n\tallow = always\n[rerere]\n\tenabled = true\n'
                    '[core]\n\tfsync = none\n')
        os.chmod(top, 0o755)
        os.chown(top, who.uid, who.uid)
        os.chown(self.victims, who.uid, who.uid)
        self.project = Project(who, f'{top}/p', existing=False)
        self.git = f'{self.project.path}/.git'
        done = self.do('git init -q; git init -q --bare ../o.git; git add a.txt; git commit -qm 0; '
                       'git remote add origin ../o.git; git push -q origin main; '
                       'git clone -q ../o.git ../other; for i in 1 2 3; do echo $i >> a.txt; '
                       'git commit -qam $i; done')
        assert done.returncode == 0, done

    def do(self, line, trace=None):
        tool = ['strace', '-f', '--seccomp-bpf', '-yqq', '-e', 'trace=open,openat', '-o', trace]
        if '--continue' not in line:
            self.tidy()
        return as_owner(self.who, *tool * bool(trace), 'sh', '-c', line, cwd=self.project.path,
                        env={'GIT_CONFIG_GLOBAL': f'{self.top}/config', 'GIT_EDITOR': 'true',
                             'GIT_AUTHOR_DATE': '1700000000 +0000',
                             'GIT_COMMITTER_DATE': '1700000000 +0000'})

    def tidy(self):
        for name in UNFINISHED:
            path = f'{self.git}/{name}'
            shutil.rmtree(path) if os.path.isdir(path) else (
                os.path.lexists(path) and os.unlink(path))

    def written(self, line):
        """The paths below the git directory that git opens to write, and that may be links."""
        trace = f'{self.top}/trace'
        self.do(line, trace)
        with open(trace, encoding='utf-8', errors='replace') as f:
            calls = re.findall(r'open(?:at)?\((?:\w+<([^>]*)>, )?"([^"]+)", ([A-Z_|]+)', f.read())
        paths = {os.path.normpath(os.path.join(at or self.project.path, name))
                 for at, name, flags in calls
                 if re.search('O_WRONLY|O_RDWR', flags) and 'O_EXCL' not in flags}
        names = {os.path.relpath(path, self.git) for path in paths if path.startswith(self.git)}
        return {name for name in names
                if '--continue' in line or name.split('/')[0] not in UNFINISHED}

    def links(self, paths):
        """For each path a link to a file of its own."""
        made = {}
        for path in sorted(paths):
            made[path] = f'{self.victims}/{path.replace("/", "!")}'
            if not os.path.exists(made[path]):
                with open(made[path], 'w', encoding='utf-8') as f:
                    f.write('mine\n')
                os.chown(made[path], self.who.uid, self.who.uid)
        return made

    def hit(self):
        """The paths by which git wrote elsewhere."""
        found = set()
        for name in os.listdir(self.victims):
            with open(f'{self.victims}/{name}', encoding='utf-8', errors='replace') as f:
                found |= {name.replace('!', '/')} if f.read() != 'mine\n' else set()
        return found


TRACED = []


@pytest.fixture
def day(who, work):  # noqa: F811
    """The lines of a day, with what git writes in each: traced once."""
    if not shutil.which('strace'):
        pytest.skip('there is no strace here; scripts/deps test installs it')
    if not TRACED:
        traced = Day(who, f'{work}/traced')
        TRACED.extend([(line, traced.written(line)) for line in DAY])
    return TRACED


def test_what_git_writes_is_no_link(who, work, begin, day):  # noqa: F811
    """Each place, in each way, in the state in which git is about to write there."""
    alone = Day(who, f'{work}/alone')
    for line, paths in day:
        links = json.dumps(alone.links(paths))
        as_owner(who, sys.executable, '-c', PLANT, alone.git, 'link', links, cwd='/')
        alone.do(line)
    hit = alone.hit()
    assert {'COMMIT_EDITMSG', 'logs/refs/heads/x/y', 'logs/refs/remotes/origin/far/away',
            'logs/refs/notes/commits', 'logs/refs/heads/t/x'} <= hit, hit
    assert len(hit) > 20, hit
    one = Day(who, f'{work}/one')
    hub, shared = begin(one.project)
    box = hub.create(volumes=shared)
    for line, paths in day:
        links = one.links(paths)

        def left():
            return [path for path in links if os.path.islink(f'{one.git}/{path}')]
        for way in WAYS:
            done = hub.exec(box, shlex.join(['python3', '-c', PLANT, '/w/.git', way,
                                             json.dumps(links)]))
            assert done['exit_code'] == 0, done
            until(lambda: not left(), timeout=20, what=lambda: f'{way}: the end of {left()}')
        one.do(line)
        await_seal(hub, box, '.git/worktrees')  # `git gc` has removed it
    assert one.hit() == set()


def test_a_worktree_has_the_directories_of_its_repository(who, work, begin):  # noqa: F811
    """And what else is beside them, in a bare repository with its worktrees in it, is the
    sandbox's to link."""
    os.chown(work, who.uid, who.uid)
    done = as_owner(who, 'sh', '-c', 'git init -qb main s; git -C s -c user.name=a -c user.email=b '
                    'commit -q --allow-empty -m a; git clone -q --bare s p; cd p; '
                    'git worktree add -q $PWD/w/t -b w/t; mkdir other', cwd=work)
    assert done.returncode == 0, done
    hub, shared = begin(argparse.Namespace(path=f'{work}/p/w/t'), f'{work}/p:rw')
    shared[0]['inside'] = shared[0]['host']
    box = hub.create(volumes=shared)
    done = hub.exec(box, f'set -e; cd {work}/p; mkdir w/t/d; ln -s /x w/t/d/l; ln -s /x other/l; '
                    'for d in refs/heads/x logs/refs/heads/x/y rr-cache/x worktrees/t/logs/refs/x; '
                    'do mkdir -p $d; ln -s /x $d/l; done')
    assert done['exit_code'] == 0, done
    own = [f'{work}/p/other/l', f'{work}/p/w/t/d/l']
    until(lambda: sorted(links_below(f'{work}/p')) == own, what=lambda: links_below(f'{work}/p'))
    hub.delete(box)
    assert sorted(links_below(f'{work}/p')) == own


def test_each_directory_of_git_is_known(day):
    """To what watches a git directory that is given as a folder itself."""
    with open(os.path.join(ROOT, 'src/box/warden/planted.c'), encoding='utf-8') as f:
        names = re.findall(r'"([^"]+)"', f.read().split('git_names[] = {')[1].split('};')[0])
    with open(os.path.join(ROOT, 'src/box/wire/project.h'), encoding='utf-8') as f:
        names += re.findall(r'\{ "\.git/([^"]+)", BECOMES', f.read())
    seen = {path.split('/')[0] for _, paths in day for path in paths if '/' in path}
    assert {'logs', 'rebase-merge', 'worktrees'} <= seen <= set(names), seen - set(names)


# Each leaves a link somewhere in the git directory; nothing watches objects/zz.
SHAPES = {
    'deep': 'd=logs/$(printf d/%.0s $(seq 50)); mkdir -p $d; ln -s /x $d/l',
    'long': 'd=refs/$(printf "%0255d/%0255d/%0255d" 1 2 3); mkdir -p $d; ln -s /x $d/l',
    'beside many': 'mkdir -p objects/zz/d; cd objects/zz/d; seq 3000 | xargs touch; '
                   'ln -s /x l; cd ..; mv d ../../rr-cache',
    'moved in': 'mkdir -p objects/zz/e/f/g; ln -s /x objects/zz/e/f/g/l; mv objects/zz/e refs/e',
    'among many': 'mkdir -p objects/zz/m; cd objects/zz/m; seq 600 | xargs mkdir; '
                  'ln -s /x 600/l; cd ..; mv m ../../refs',
    'moved about': 'mkdir -p a/b/c; mv a aa; mv aa/b bb; mkdir aa/b; ln -s /x bb/c/l; mv bb aa/b; '
                   'ln -s /x aa/b/bb/m',
    'linked': 'mkdir -p objects/zz info/x; ln -s /x objects/zz/h; ln -P objects/zz/h info/x/l',
    'exchanged': 'mkdir -p objects/zz/i; ln -s /x objects/zz/i/l; mkdir -p refs/i/l; '
                 'python3 -c "{exchange}" objects/zz/i/l refs/i/l',
    'a directory': 'ln -s /tmp objects/ab; ln -s /tmp objects/pack/x; ln -s /tmp lfs',
    'unreadable': 'mkdir -pm 300 info/y; ln -s /x info/y/l; chmod 700 info/y',
    'a pipe': 'mkdir -p sequencer; mkfifo sequencer/todo',
    'behind many events': 'python3 -c "import os\nfor i in range(30000):\n'
                          ' os.close(os.open(chr(48), os.O_CREAT)), os.unlink(chr(48))"; '
                          'ln -s /x refs/heads/l',
}


def links_below(top):
    return [path for at, dirs, names in os.walk(top) for path in
            (os.path.join(at, name) for name in dirs + names)
            if not stat.S_ISREG(os.lstat(path).st_mode) and not stat.S_ISDIR(os.lstat(path).st_mode)
            and 'objects/zz' not in path]


@pytest.mark.rights
def test_a_link_goes_wherever_it_is(who, work, begin):  # noqa: F811
    """Nothing of a directory's place, size or way hides it, and the log tells of it at once."""
    project = Project(who, f'{work}/p')
    hub, shared = begin(project)
    box = hub.create(volumes=shared)
    for name, shape in SHAPES.items():
        before = hub.said().count('was made by a sandbox, and is removed')
        done = hub.exec(box, 'set -e; cd /w/.git; ' + shape.format(exchange=EXCHANGE))
        assert done['exit_code'] == 0, done
        until(lambda: not links_below(f'{project.path}/.git'), timeout=20, what=name)
        until(lambda: hub.said().count('was made by a sandbox, and is removed') > before, what=name)


MANY = 'mkdir -p logs; seq 3000 | sed s,^,logs/d, | xargs mkdir'


@pytest.mark.parametrize('holds', [False, True])
def test_a_git_directory_that_is_too_large(who, work, begin, holds):  # noqa: F811
    """It can't be written until it is smaller, or where a program of the sandbox keeps it so by a
    file that it holds open, that is told at once. None is given like that."""
    project = Project(who, f'{work}/p')
    hub, shared = begin(project)
    box = hub.create(volumes=shared)
    hub.exec(box, 'cd /w/.git; ' + 'exec 3> held; sleep 1000 & ' * holds + MANY)
    until(lambda: f'end the sandbox before you use git in {project.path}' in hub.said(), timeout=20)
    if not holds:
        until(lambda: hub.exec(box, 'touch /w/.git/x /w/y')['exit_code'])
        shutil.rmtree(f'{project.path}/.git/logs')
        until(lambda: hub.exec(box, 'touch /w/.git/x /w/y')['exit_code'] == 0)
    hub.exec(box, f'cd /w/.git; {MANY}')
    hub.delete(box)
    with pytest.raises(Failed) as failed:
        hub.create(volumes=shared)
    assert 'rw-all' in failed.value.error['cause']
