"""What a repository's own configuration makes git of the host run is as it was behind a sandbox
that may write the folder. The controls show that git does run it where nothing is protected
(rw-all)."""

import os
import pty
import re
import shutil
import signal
import subprocess

import pytest

import host
from client import until
from test_hub_cli import Hub
from test_project import GIT, Project, begin, succeeded, work  # noqa: F401 (fixtures)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IDENTITY = ['-c', 'user.name=a', '-c', 'user.email=a@example.com', '-c',
            'protocol.file.allow=always']

# Variables whose values git neither runs nor reads, though they may look like paths: names of
# branches, people and remotes, addresses, texts that it shows, files that it leaves out.
HARMLESS = re.compile(
    r'(advice|author|branch|color|column|committer|mailmap|url|user)\.|'
    r'remote\..*\.(fetch|push|pushurl|url)$|submodule\.(active$|.*\.(branch|url)$)|'
    r'commit\.template$|core\.(excludesfile|worktree)$|safe\.directory$')
# Read before anything else, and wrong there.
FORMAT = ('extensions.objectformat', 'include.path', 'includeif.')


def as_owner(who, *line, cwd, env=None):
    user = ['setpriv', f'--reuid={who.uid}', '--clear-groups'] * (os.getuid() == 0)
    return subprocess.run([*user, *line], cwd=cwd, capture_output=True, text=True, check=False,
                          env={**os.environ, 'HOME': '/nonexistent', 'TERM': 'dumb', **(env or {})},
                          stdin=subprocess.DEVNULL)


def git(project, *arguments, cwd=None, check=False):
    done = as_owner(project.who, *GIT, *IDENTITY, *arguments, cwd=cwd or project.path)
    assert not check or done.returncode == 0, done
    return done


def hit(project):
    """A program that git may run, which leaves a trace of it."""
    return f'#!/bin/sh\ntouch {project.path}/hit\nexit 1\n'


def listed_keys():
    """All variables that git's documentation lists, with something in place of <name> and *."""
    out = subprocess.run(['git', 'help', '--config'], check=True, capture_output=True, text=True)
    keys = re.findall(r'^[a-z][A-Za-z0-9]*\.(?:\S+\.)?[A-Za-z0-9<>*-]+$', out.stdout, re.M)
    assert len(keys) > 500
    made = {re.sub(r'<[^>]*>|\*', 'x', key) for key in keys}
    made |= {'core.hooksPath', 'filter.x.clean', 'diff.x.textconv', 'merge.x.driver', 'alias.x',
             'hook.x.command', 'of.a.later.git'}
    return sorted(made)


def quoted(key, value):
    first, last = key.split('.', 1)[0], key.rsplit('.', 1)[1]
    middle = key[len(first) + 1:-len(last) - 1]
    return f'[{first}' + (f' "{middle}"' if middle else '') + f']\n\t{last} = {value}\n'


SHAPES = ['{}', './{}', 'sh {} --more', '!f() {{ {}; }}; f', '"{}" a', '{} # a comment', '\\\n {}']


# In one process: thousands would take long.
EACH = '''
import os, sys
for name in sys.argv[1:]:
    for way in (lambda: open(name, 'w'), lambda: os.unlink(name), lambda: os.rename('free', name),
                lambda: os.rename(name, 'gone')):
        try:
            way()
            print(name)
        except OSError:
            pass
'''


def test_each_variable(who, work):  # noqa: F811
    """Whatever variable names a file of the folder, in whatever shape, it stays."""
    project = Project(who, f'{work}/p')
    names, config = [], ''
    for i, key in enumerate(listed_keys()):
        if HARMLESS.match(key.lower()) or key.lower().startswith(FORMAT):
            continue
        name = f'tools/k{i}' if i % 3 else f'k{i}.sh'
        project.put(name, 'mine')
        names.append(name)
        config += quoted(key, SHAPES[i % len(SHAPES)].format(name))
    project.put('.git/config', config)
    project.put('free', 'mine')
    project.own()
    before = project.tree()
    assert project.run(f'cd /w; python3 -c "{EACH}" {" ".join(names)}') == ''
    assert 'tools' in project.run('mv /w/tools /w/other 2>/dev/null; ls /w').splitlines()
    after = project.tree()
    assert {name: after[name] for name in names} == {name: before[name] for name in names}
    assert project.run('cd /w && echo more >> free && mkdir -p d && mv free d && ls d') == 'free\n'


# Each: configuration, what a sandbox writes to get hold of it ({hit}: the program), and what the
# operator does afterwards.
WAYS = {
    'hooksPath': ('core.hooksPath', 'githooks', ['githooks/pre-commit', 'githooks/post-checkout'],
                  [('commit', '--allow-empty', '-m', 'c'), ('checkout', '-b', 'other')]),
    'hooksPath that exists': ('core.hooksPath', 'tools/own', ['tools/own/pre-commit'],
                              [('commit', '--allow-empty', '-m', 'c')]),
    'hooksPath through a link': ('core.hooksPath', 'link/own', ['tools/own/pre-commit'],
                                 [('commit', '--allow-empty', '-m', 'c')]),
    'hooksPath, absolute': ('core.hooksPath', '{top}/tools/own', ['tools/own/pre-commit'],
                            [('commit', '--allow-empty', '-m', 'c')]),
    'hooksPath above and back': ('core.hooksPath', '../p/tools/own', ['tools/own/pre-commit'],
                                 [('commit', '--allow-empty', '-m', 'c')]),
    'fsmonitor': ('core.fsmonitor', './tools/x.sh', ['tools/x.sh'], [('status',)]),
    'missing fsmonitor': ('core.fsmonitor', 'none/x.sh', ['none/x.sh'], [('status',)]),
    'sshCommand': ('core.sshCommand', './tools/x.sh', ['tools/x.sh'],
                   [('fetch', 'ssh://nowhere.invalid/x')]),
    'filter': ('filter.f.clean', 'sh tools/x.sh', ['tools/x.sh'], [('add', 'b.txt')]),
    'diff': ('diff.f.textconv', 'tools/x.sh', ['tools/x.sh'], [('diff',)]),
    'merge': ('merge.f.driver', 'tools/x.sh %O %A %B', ['tools/x.sh'], [('merge', 'side')]),
    'alias': ('alias.go', '!tools/x.sh a', ['tools/x.sh'], [('go',)]),
    'editor': ('core.editor', './tools/x.sh', ['tools/x.sh'], [('commit', '--allow-empty')]),
    'include': ('include.path', '../.gitcfg', ['.gitcfg'], [('status',)]),
    'include that exists': ('include.path', '../tools/cfg', ['tools/cfg'], [('status',)]),
    'include that names more': ('include.path', '../tools/more', ['tools/x.sh'], [('status',)]),
    'includeIf': ('includeIf.gitdir:**.path', '../.gitcfg', ['.gitcfg'], [('status',)]),
}
ATTACK = ('cd /w; for n in {names}; do '
          'd=$(dirname $n); mkdir -p $d; (cp evil $n && chmod 755 $n) || '
          '{{ mv $d gone; mkdir -p $d; cp evil $n; chmod 755 $n; }} || '
          '{{ rm -rf tools link; mkdir tools; ln -s tools link; mkdir -p $d; cp evil $n; '
          'chmod 755 $n; }}; done 2>/dev/null; echo more >> b.txt; true')


def prepared(who, path, way):
    key, value, names, _ = WAYS[way]
    project = Project(who, path)
    hooks = project.path + '/.git/hooks'
    shutil.rmtree(hooks)
    os.mkdir(hooks)
    for name in ('tools/own/pre-commit', 'tools/x.sh'):
        project.put(name, '#!/bin/sh\n')
        os.chmod(f'{project.path}/{name}', 0o755)
    project.put('tools/cfg', '[a]\n\tb = c\n')
    project.put('tools/more', '[core]\n\tfsmonitor = tools/x.sh\n')
    os.symlink('tools', f'{project.path}/link')
    project.put('b.txt', 'b\n')
    project.put('.gitattributes', '*.txt filter=f diff=f merge=f\n')
    project.own()
    for line in (('add', '-A'), ('commit', '-qm', 'a'), ('checkout', '-qb', 'side')):
        git(project, *line, check=True)
    for branch, text in (('side', 'side\n'), ('main', 'main\n')):
        git(project, 'checkout', '-q', '-B', branch, *['side~1'] * (branch == 'main'), check=True)
        project.put('b.txt', text)
        git(project, 'commit', '-qam', text, check=True)
    git(project, 'config', key, value.format(top=path), check=True)
    included = any(name in ('.gitcfg', 'tools/cfg') for name in names)
    project.put('evil', f'[core]\n\tfsmonitor = "touch {path}/hit; false"\n' if included
                else hit(project))
    project.own()
    return project


@pytest.mark.parametrize('way', WAYS)
def test_what_git_runs(who, work, way):  # noqa: F811
    for mode in ('rw', 'rw-all'):
        os.makedirs(f'{work}/{mode}')
        os.chown(f'{work}/{mode}', who.uid, who.uid)
        project = prepared(who, f'{work}/{mode}/p', way)
        names = WAYS[way][2]
        project.run(ATTACK.format(names=' '.join(names)), mode)
        if way == 'merge':
            git(project, 'checkout', 'b.txt')
        for line in (*WAYS[way][3], ('status',), ('diff',), ('log', '-1'), ('add', '-A')):
            git(project, *line)
        assert os.path.exists(f'{project.path}/hit') == (mode == 'rw-all'), (way, mode)


# Each: configuration, and what the program of the sandbox is called. The volume is p/sub, ~ is the
# folder above p.
PARTS = {
    'hooksPath': ('core.hooksPath', 'sub/own', 'own/post-checkout'),
    'hooksPath that is the volume': ('core.hooksPath', 'sub', 'post-checkout'),
    'fsmonitor': ('core.fsmonitor', 'sub/x.sh', 'x.sh'),
    'include': ('include.path', '../sub/cfg', 'cfg'),
    'include of a home': ('include.path', '~/p/sub/cfg', 'cfg'),
    'what an include of a home names': ('include.path', '~/shared', 'x.sh'),
    'files elsewhere': ('core.worktree', '../sub', 'y.sh'),
}


@pytest.mark.parametrize('way', PARTS)
def test_a_part_of_a_repository(who, work, way):  # noqa: F811
    """A volume may be a folder within a repository, which is obeyed all the same."""
    key, value, name = PARTS[way]
    for mode in ('rw', 'rw-all'):
        top = f'{work}/{mode}'
        os.makedirs(top)
        os.chown(top, who.uid, who.uid)
        project = Project(who, f'{top}/p')
        shutil.rmtree(f'{project.path}/.git/hooks')
        os.mkdir(f'{project.path}/.git/hooks')
        for one in ('x.sh', 'y.sh', 'own/post-checkout', 'cfg'):
            project.put(f'sub/{one}', '')
            os.chmod(f'{project.path}/sub/{one}', 0o755)
        git(project, 'add', 'a.txt', 'sub/x.sh', check=True)
        git(project, 'commit', '-qm', 'a', check=True)
        with open(f'{top}/shared', 'w', encoding='utf-8') as f:
            f.write('[core]\n\tfsmonitor = sub/x.sh\n')
        if key == 'core.worktree':
            git(project, 'config', 'core.fsmonitor', './y.sh', check=True)
        git(project, 'config', key, value, check=True)
        project.own()
        line = (f'cd /w; printf %s "$1" > evil; chmod 755 evil; mkdir -p $(dirname {name}); '
                f'cp evil {name} || (rm -rf {name}; mv evil {name}) || '
                f'(mv $(dirname {name}) gone; mkdir -p $(dirname {name}); mv evil {name})')
        evil = (f'[core]\n\tfsmonitor = "touch {project.path}/hit; false"\n' if name == 'cfg'
                else hit(project))
        done = who.run('run', '-v', f'{project.path}/sub:/w:{mode}', '--', 'sh', '-c', line, '-',
                       evil)
        assert done.returncode != 125 or mode == 'rw' and b'rw-all gives it' in done.stderr
        for line in (('status',), ('checkout', '-qb', 'other')):
            as_owner(who, *GIT, *line, cwd=project.path, env={'HOME': top})
        assert os.path.exists(f'{project.path}/hit') == (mode == 'rw-all'), (mode, done)


TOO_LONG = {
    'words': 'x ' * 30000,
    'ways': ' '.join(f'{"d/" * 500}{i}' for i in range(400)),
    'ways elsewhere': ' '.join(f'/{"d/" * 800}{i}' for i in range(300)),
    'file': 'x' * (1 << 20),
}


@pytest.mark.parametrize('what', TOO_LONG)
def test_what_takes_too_long_is_refused(who, work, what):  # noqa: F811
    """The warden serves others, too. Nothing is left unprotected since it was not looked at."""
    project = Project(who, f'{work}/p')
    project.put('.git/config', f'[a]\n\tb = {TOO_LONG[what]}\n[core]\n\tfsmonitor = x.sh\n')
    project.put('x.sh', 'mine')
    os.makedirs(f'{project.path}/{"d/" * 500}')
    project.own()
    said = project.run('true', status=125)
    assert 'rw-all' in said and 'try again' not in said
    assert project.run('echo fine', 'rw-all') == 'fine\n'


def test_nobody_elses_repository_counts(who, work):  # noqa: F811
    """Git obeys none, so it must not keep a folder from its owner either (/tmp/.git)."""
    os.makedirs(f'{work}/.git')
    with open(f'{work}/.git/config', 'w', encoding='utf-8') as f:
        f.write('[wrong')
    project = Project(who, f'{work}/p')
    if os.getuid() == 0:
        for uid, status in ((who.uid + 1, 0), (who.uid, 125)):
            os.chown(f'{work}/.git', uid, uid)
            project.run('true', status=status)


# ---- the list

def listed():
    """Names of the fixed list, and those that can't be created either."""
    with open(os.path.join(ROOT, 'src/box/wire/project.h'), encoding='utf-8') as f:
        rows = re.findall(r'\{ "([^"]+)",\s+(\w+)', f.read())
    assert len(rows) > 40
    return ({name for name, _ in rows},
            {name for name, missing in rows if missing != 'STAYS_MISSING'})


def told():
    """Names that are only told of."""
    with open(os.path.join(ROOT, 'src/box/wire/project.h'), encoding='utf-8') as f:
        rows = f.read().split('project_told[] = {')[1].split('};')[0]
    return re.findall(r'"([^"]+)",', rows)


def test_the_list_has_what_clients_read():
    """Files of projects, of each client in docs/clients.md."""
    with open(os.path.join(ROOT, 'docs/clients.md'), encoding='utf-8') as f:
        cells = re.findall(r'^\| [^|]+ \| `[a-z-]+` \| ([^|]+) \|', f.read(), re.M)
    files = {name.split('/')[0] for cell in cells for name in re.findall(r'`([^`]+)`', cell)
             if not name.startswith('~')}
    assert len(cells) > 9 and '.mcp.json' in files and files <= listed()[1], files - listed()[1]


def test_the_list_has_what_a_hub_reads():
    """Of a workspace, on the host: names of attributes of conversations. A new one is told of when
    the sandbox ends."""
    with open(os.path.join(ROOT, 'src/op/conversation/user_data.c'), encoding='utf-8') as f:
        names = set(re.findall(r'"(\.\w+rc)"', f.read()))
    assert names == {'.holtrc', '.mittorc'} and names <= listed()[0]


def test_the_list_is_documented():
    with open(os.path.join(ROOT, 'docs/sandboxes.md'), encoding='utf-8') as f:
        text = f.read()
    text = text[text.index('### What stays read-only'):text.index('**What the repository names')]
    names, made = listed()
    for name in names - {'refs', 'objects', 'commondir'}:
        star = re.search(rf'`(?:\.git/)?{re.escape(name.removeprefix(".git/"))}`( \*)?', text)
        assert star and (name in made) == (star.group(1) is None), name
    also = set()
    for name in told():
        ways = {name, f'{name.rsplit(".", 1)[0]}.*'}
        assert any(f'`{way}` *' in text for way in ways), name
        also |= ways
    rows = re.findall(r"^\| (?:clients|other|Holt's|hooks)[^|]*\| (.*) \|$", text, re.M)
    stand = {name for row in rows for name in re.findall(r'`([^`]+)`', row)}
    assert len(rows) == 4 and stand <= names | also, stand - names - also


# ---- submodules, links, worktrees, state

def test_submodules(who, work):  # noqa: F811
    """In each, git of the host runs what its .git says: none can be given another."""
    for mode in ('rw', 'rw-all'):
        os.makedirs(f'{work}/{mode}')
        os.chown(f'{work}/{mode}', who.uid, who.uid)
        project, other = Project(who, f'{work}/{mode}/p'), Project(who, f'{work}/{mode}/o')
        git(other, 'add', '-A', check=True)
        git(other, 'commit', '-qm', 'a', check=True)
        for name in ('deep/er', 'away', 'gone', 'old'):
            git(project, 'submodule', 'add', '-q', other.path, name, check=True)
        git(project, 'commit', '-qam', 'a', check=True)
        git(project, 'submodule', '--quiet', 'deinit', '-f', 'away', check=True)
        git(project, 'submodule', '--quiet', 'deinit', '-f', 'gone', check=True)
        os.rmdir(f'{project.path}/gone')
        os.unlink(f'{project.path}/old/.git')  # as git had them before it had .git/modules
        shutil.copytree(f'{project.path}/.git/modules/old', f'{project.path}/old/.git')
        git(other, 'config', '-f', f'{project.path}/old/.git/config', '--unset', 'core.worktree')
        project.own()
        evil = (f'git init -q evil; git -C evil config core.fsmonitor "touch {project.path}/hit; '
                'false"; git -C evil -c user.name=a -c user.email=a@b commit -q --allow-empty -m a')
        line = (f'cd /w; {evil}; for n in deep/er away gone old; do mkdir -p $n; '
                '(rm -rf $n/.git; cp -rT evil/.git $n/.git) 2>/dev/null; '
                '(mv $n $n.gone; mkdir $n; cp -rT evil/.git $n/.git) 2>/dev/null; '
                '(mv $(dirname $n) x; mkdir -p $n; cp -rT evil/.git $n/.git) 2>/dev/null; '
                'done; true')
        project.run(line, mode)
        for command in ('status', 'diff', 'add', 'submodule'):
            git(project, command, *['-A'] * (command == 'add'))
        assert os.path.exists(f'{project.path}/hit') == (mode == 'rw-all'), mode


def test_links_of_the_list(who, work):  # noqa: F811
    """A link at a name of the list stays, and so does what it leads to."""
    project = Project(who, f'{work}/p', existing=False)
    project.put('dotfiles/codex/config.toml', 'mine')
    project.put('dotfiles/settings/settings.json', 'mine')
    for name, target in (('.codex', 'dotfiles/codex'), ('.claude', 'dotfiles/link'),
                         ('dotfiles/link', f'{project.path}/dotfiles/settings'),
                         ('.mcp.json', '/nonexistent/x'), ('.vscode', 'dotfiles/none')):
        os.symlink(target, f'{project.path}/{name}')
    project.own()
    before = project.tree()
    for name in ('.codex', '.claude', '.mcp.json', 'dotfiles/codex', 'dotfiles/link',
                 'dotfiles/codex/config.toml', 'dotfiles/settings/settings.json', 'dotfiles/none',
                 'dotfiles'):
        line = ('cd /w; (echo evil > {0}) 2>/dev/null && echo a; '
                'mv {0} gone 2>/dev/null && echo b; '
                '(rm -rf {0} && ! ls {0}) 2>/dev/null && echo c; '
                '(mkdir {0} && echo evil > {0}/x) 2>/dev/null && echo d; rm -rf gone').format(name)
        assert project.run(line) == '', name
    assert project.run('cd /w && echo fine > dotfiles/other && cat dotfiles/other') == 'fine\n'
    os.unlink(f'{project.path}/dotfiles/other')
    assert project.tree() == before


def with_worktree(who, work, name):  # noqa: F811
    os.chown(work, who.uid, who.uid)
    project = Project(who, f'{work}/main')
    git(project, 'add', 'a.txt', check=True)
    git(project, 'commit', '-qm', 'a', check=True)
    git(project, 'worktree', 'add', '-q', '-b', 'topic', name, check=True)
    return project


COMMIT = ('echo more >> a.txt && git -c user.name=a -c user.email=a@b commit -qam inside && '
          'git checkout -q -b more && git status --porcelain')


@pytest.mark.parametrize('inner', [False, True])
def test_a_worktree_is_worked_in(who, work, inner):  # noqa: F811
    name = f'{work}/main/.claude/worktrees/w' if inner else f'{work}/w'
    project = with_worktree(who, work, name)
    given = project.path if inner else name
    own = f'{project.path}/.git/worktrees/w'
    def run(line):
        return who.run('run', '-v', f'{given}:{given}:rw', '-w', name, '--', 'sh', '-c', line)
    done = run(COMMIT)
    assert done.returncode == 0, done.stderr
    assert git(project, 'log', '-1', '--format=%s', 'more', check=True).stdout == 'inside\n'
    before = project.tree()
    kept = [f'{name}/.git', f'{own}/commondir', f'{own}/gitdir', f'{project.path}/.git/config',
            f'{project.path}/.git/hooks/x', f'{own}/modules/x', f'{own}/config.worktree',
            f'{name}/.claude/settings.json', f'{name}/.mcp.json', f'{project.path}/.git/commondir']
    line = ('for n in {}; do (mkdir -p $(dirname $n); echo evil > $n) 2>/dev/null && echo $n; '
            'mv $n $n.gone 2>/dev/null && echo $n; rm -f $n 2>/dev/null && [ ! -e $n ] && '
            '[ -e $n.was ] && echo $n; done; true')
    assert run(line.format(' '.join(kept))).stdout == b''
    assert project.tree() == before
    assert git(project, 'status', cwd=name).returncode == 0


def test_a_worktree_with_relative_links(who, work):  # noqa: F811
    """As worktree.useRelativePaths has them (git 2.48). The control is one that names another."""
    name = f'{work}/w'
    project = with_worktree(who, work, name)
    own = f'{project.path}/.git/worktrees/w'

    def link(path, text):
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)

    def run():
        return who.run('run', '-v', f'{name}:{name}:rw', '-w', name, '--', 'sh', '-c',
                       f'echo evil > {own}/gitdir; echo evil > {name}/.git; {COMMIT}')
    link(f'{name}/.git', 'gitdir: ../main/.git/worktrees/w\n')
    link(f'{own}/gitdir', '../../../../other/.git\n')
    assert run().returncode != 0
    link(f'{own}/gitdir', '../../../../w/.git\n')
    before = project.tree()
    done = run()
    assert done.returncode == 0, done.stderr
    assert git(project, 'log', '-1', '--format=%s', 'more', check=True).stdout == 'inside\n'
    for kept in '.git/worktrees/w/gitdir', '.git/config':
        assert project.tree()[kept] == before[kept]


def with_repository_elsewhere(who, work, kind):  # noqa: F811
    """A folder, and the git directory of it, which is not below the folder."""
    os.chown(work, who.uid, who.uid)
    other = Project(who, f'{work}/other')
    git(other, 'add', 'a.txt', check=True)
    git(other, 'commit', '-qm', 'a', check=True)
    if kind == 'submodule':
        project = Project(who, f'{work}/main')
        git(project, 'submodule', 'add', '-q', other.path, 'sub', check=True)
        return project, f'{project.path}/sub', f'{project.path}/.git/modules/sub'
    git(other, 'clone', '-q', '--separate-git-dir', f'{work}/git', other.path, f'{work}/sep',
        check=True)
    git(other, 'config', 'core.worktree', f'{work}/sep', cwd=f'{work}/sep', check=True)
    return other, f'{work}/sep', f'{work}/git'


@pytest.mark.parametrize('kind', ['submodule', 'separate'])
def test_a_repository_elsewhere_comes_along(who, work, kind):  # noqa: F811
    """Its objects can be written, and nothing that git of the host acts on."""
    project, name, own = with_repository_elsewhere(who, work, kind)

    def run(line):
        return who.run('run', '-v', f'{name}:{name}:rw', '-w', name, '--', 'sh', '-c', line)
    done = run(COMMIT)
    assert done.returncode == 0 and done.stderr == b'', done.stderr
    assert git(project, 'log', '-1', '--format=%s', 'more', cwd=name,
               check=True).stdout == 'inside\n'
    kept = [f'{name}/.git', f'{own}/config', f'{own}/hooks/x', f'{own}/commondir',
            f'{own}/modules/x', f'{name}/.mcp.json', f'{project.path}/.git/config']
    line = ('for n in {}; do (mkdir -p $(dirname $n); echo evil > $n) 2>/dev/null && echo $n; '
            'mv $n $n.gone 2>/dev/null && echo $n; done; true')
    before = project.tree()
    assert {way for way in run(line.format(' '.join(kept))).stdout.decode().split()
            if not way.startswith(project.path + '/.git/config')} == set()
    assert project.tree() == before
    assert git(project, 'status', cwd=name).returncode == 0


def test_a_repository_brings_nothing_by_itself(who, work):  # noqa: F811
    """The .git of a folder may be a sandbox's work: the repository must name the folder, too."""
    project, name, own = with_repository_elsewhere(who, work, 'submodule')

    def seen():
        done = who.run('run', '-v', f'{name}:{name}:rw', '--', 'sh', '-c',
                       f'ls -d {own} 2>/dev/null; true')
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()
    for other in ('../../../other', '..', ''):
        git(project, 'config', '-f', f'{own}/config', 'core.worktree', other, check=True)
        assert seen() == '', other
    git(project, 'config', '-f', f'{own}/config', 'core.worktree', '../../../sub', check=True)
    os.rename(f'{own}/refs', f'{own}/refs2')  # any folder may have a file of the name config
    assert seen() == ''
    os.rename(f'{own}/refs2', f'{own}/refs')
    assert seen() == f'{own}\n'


def test_why_git_does_not_work_is_told(who, work, begin):  # noqa: F811
    """Each remedy that is named is one."""
    def run(name, *more, inside=None):
        inside = inside or name
        done = who.run('run', '-v', f'{name}:{inside}:rw', *more, '-w', inside, '--', 'sh', '-c',
                       COMMIT)
        told = [line for line in done.stderr.decode().splitlines()
                if f'holt: git does not work in {inside}: ' in line]
        assert len(told) == (done.returncode != 0), done.stderr
        return ''.join(told)
    project, name, own = with_repository_elsewhere(who, work, 'submodule')
    assert f'give it at {name}' in run(name, inside='/w')
    assert run(name) == ''
    os.makedirs(f'{work}/2')
    project, name, own = with_repository_elsewhere(who, f'{work}/2', 'separate')
    git(project, 'config', '--unset', 'core.worktree', cwd=name, check=True)
    assert f'{own}, comes along only' in run(name) and 'core.worktree "$PWD"' in run(name)
    git(project, 'config', 'core.worktree', name, cwd=name, check=True)
    assert run(name) == ''
    for way in ('--shared', '--reference'):
        to = f'{work}/2/clone{way}'
        source = [project.path] if way == '--shared' else [project.path, f'file://{project.path}']
        git(project, 'clone', '-q', way, *source, to, check=True)
        git(project, 'checkout', '-qB', 'x', cwd=to, check=True)
        objects = f'{project.path}/.git/objects'
        assert objects in run(to), way
        assert run(to, '-v', f'{objects}:{objects}:ro') == '', way
    git(project, 'checkout', '-qB', 'x', cwd=to, check=True)
    git(project, 'branch', '-qD', 'more', cwd=to, check=True)
    git(project, 'repack', '-qad', cwd=to, check=True)
    os.unlink(f'{to}/.git/objects/info/alternates')
    assert run(to) == ''
    to = f'{work}/2/clone--shared'
    hub, _ = begin(project, f'{to}:rw')
    hub.delete(hub.create(volumes=[{'host': to, 'inside': '/w', 'mode': 'rw'}]))
    until(lambda: f'git does not work in the volume {to}: ' in hub.said(), what='the warning')


def test_worktrees_in_the_folder(who, work):  # noqa: F811
    """Their .git stays, wherever in the folder they are."""
    for mode in ('rw', 'rw-all'):
        os.makedirs(f'{work}/{mode}')
        project = with_worktree(who, f'{work}/{mode}', f'{work}/{mode}/main/deep/w')
        project.run('cd /w; git init -q evil; git -C evil config core.fsmonitor '
                    f'"touch {project.path}/hit; false"; '
                    'rm -f deep/w/.git; cp -rT evil/.git deep/w/.git || '
                    '(mv deep gone; mkdir -p deep/w; cp -rT evil/.git deep/w/.git); true', mode)
        git(project, 'status', cwd=f'{project.path}/deep/w')
        assert os.path.exists(f'{project.path}/hit') == (mode == 'rw-all'), mode


def test_a_worktree_brings_nothing_by_itself(who, work):  # noqa: F811
    """Its .git may be a sandbox's work: the repository must name it, too."""
    os.chown(work, who.uid, who.uid)
    other = Project(who, f'{work}/other')
    os.makedirs(f'{other.path}/.git/worktrees/w')
    project = Project(who, f'{work}/p', existing=False)
    project.put('.git', f'gitdir: {other.path}/.git/worktrees/w\n')
    other.put('.git/worktrees/w/commondir', '../..')
    project.own()
    other.own()
    look, told = f'ls -d {other.path} 2>/dev/null; true', 'run git worktree repair in the folder\n'
    assert project.run(look).endswith(told)
    other.put('.git/worktrees/w/gitdir', f'{work}/elsewhere/.git\n')
    assert project.run(look).endswith(told)
    other.put('.git/worktrees/w/gitdir', f'{project.path}/.git\n')
    assert project.run(look) == f'{other.path}\n'  # the control


def test_the_state_of_a_program_is_no_project(who, work):  # noqa: F811
    for name in ('.codex', '.claude', '.gemini'):
        project = Project(who, f'{work}/{name}', existing=False)
        assert project.run('ls -A /w; mkdir /w/.claude && echo mine > /w/.claude/x; '
                           'ls -A /w') == 'a.txt\n.claude\na.txt\n'


def test_the_start_tells_what_is_guarded(who, work):  # noqa: F811
    """To a person at a terminal; what programs read of standard error is as it was."""
    project = Project(who, f'{work}/p')

    def told(mode, terminal):
        read, write = pty.openpty() if terminal else os.pipe()
        done = who.run('run', '-v', f'{project.path}:/w{mode}', '--', 'true', stderr=write)
        os.write(write, b'end\n')
        os.close(write)
        said = b''
        while b'end' not in said:
            said += os.read(read, 4096)
        os.close(read)
        assert done.returncode == 0
        return said.split(b'end')[0]
    said = told(':rw', True)
    assert said.count(b'\n') == 1 and b'.git/config' in said and b':rw-all' in said
    for mode, terminal in ((':rw', False), (':rw-all', True), ('', True)):
        assert told(mode, terminal) == b'', mode


def test_the_host_works_meanwhile(who, work, begin):  # noqa: F811
    """Programs of the host may begin to use what is missing."""
    project = Project(who, f'{work}/p', existing=False)
    hub, shared = begin(project)
    box = hub.create(volumes=shared)
    git(project, 'init', '-q', '.', check=True)
    git(project, 'commit', '-q', '--allow-empty', '-m', 'a', check=True)
    for name in ('.vscode/settings.json', '.claude/settings.json', '.opencode/x'):
        project.put(name, 'mine')
    project.own()
    for name in ('.vscode/settings.json', '.claude/settings.json', '.git/config', '.opencode/x'):
        assert hub.exec(box, f'echo evil > /w/{name}')['exit_code'] != 0
    hub.delete(box)
    until(lambda: sorted(os.listdir(project.path)) == ['.claude', '.git', '.opencode', '.vscode',
                                                       'a.txt'])
    assert os.stat(f'{project.path}/.vscode').st_mode & 0o7777 == 0o755
    git(project, 'status', check=True)


def test_what_a_sandbox_leaves_is_told(who, work, begin):  # noqa: F811
    project = Project(who, f'{work}/p')
    for name in ('old', 'worked in', 'changed'):
        git(project, 'init', '-q', name, check=True)
    project.put('changed/.git/hooks/pre-commit', 'mine')
    git(project, 'init', '-q', 'in place', check=True)
    project.put('in place/.git/hooks/pre-commit', 'mine')
    project.own()
    hub, shared = begin(project)
    box = hub.create(volumes=shared)
    done = hub.exec(box, 'cd /w && git init -q sub/new && touch mise.toml && '
                    'cd "worked in" && git -c user.name=a -c user.email=a@b commit -q '
                    '--allow-empty -m a && echo x > ../changed/.git/hooks/pre-push && '
                    'echo x > "../in place/.git/hooks/pre-commit" && git init -q --bare ../bare && '
                    'mkdir ../.git/rebase-merge && '
                    'echo "exec x" > ../.git/rebase-merge/git-rebase-todo')
    assert done['exit_code'] == 0, done
    hub.delete(box)
    for name in ('sub/new', 'changed', 'mise.toml', 'in place', 'bare', '.git/rebase-merge'):
        until(lambda: f'{project.path}/{name} is new' in hub.said(), what=name)
    assert f'{project.path}/old' not in hub.said()
    assert f'{project.path}/worked in' not in hub.said()


LEAVES = ('cd /w && git init -q sub/new && echo x > mise.toml && echo x > .gdbinit && '
          'git init -q --bare bare && echo x > changed/.git/hooks/pre-push && '
          'mkdir .git/rebase-merge && '
          'echo "exec x" > .git/rebase-merge/git-rebase-todo')
LEFT = ('sub/new', 'mise.toml', '.gdbinit', 'bare', 'changed', '.git/rebase-merge')


@pytest.mark.parametrize('way', ['power', 'alone', 'warden', 'shared'])
def test_what_is_left_where_nobody_saw_the_end_is_told(who, work, way):  # noqa: F811
    """Hub and warden are killed; the hub is, and the sandbox's time is over before the next one;
    the warden is; both are, under two sandboxes. The next start tells what each end tells, also of
    a link that git writes through, which may be the user's by now and stays."""
    project = Project(who, f'{work}/p')
    git(project, 'init', '-q', 'old', check=True)
    git(project, 'init', '-q', 'changed', check=True)
    project.own()
    hubs = []

    def start():
        hubs.append(Hub(who, f'{work}/home', '--listen', '127.0.0.1:0', '--pool', '1',
                        '--allow-volumes', f'{project.path}:rw'))
        return hubs[-1]

    def said():
        return ''.join(hub.said() for hub in hubs)
    os.mkdir(f'{work}/home', 0o700)
    os.chown(f'{work}/home', who.uid, who.uid)
    try:
        hub = start()
        warden = host.program(hub.proc.pid, 'holt-warden')
        shared = [{'host': project.path, 'inside': '/w', 'mode': 'rw'}]
        box = hub.create(volumes=shared)
        if way == 'shared':
            hub.create(volumes=shared)
        done = hub.exec(box, LEAVES)
        assert done['exit_code'] == 0, done
        if way == 'warden':
            os.kill(warden, signal.SIGKILL)
        else:
            if way == 'alone':
                hub.post('/v1/set_timeout', sandbox=box, timeout_seconds=2)
            hub.proc.kill()
            hub.proc.wait()
            if way == 'alone':
                until(lambda: 'refs' not in os.listdir(project.path), what='its end')
            else:
                os.kill(warden, signal.SIGKILL)
            os.symlink('/etc/x', f'{project.path}/.git/FETCH_HEAD')
            hub = start()
        for name in LEFT:
            until(lambda name=name: f'{project.path}/{name} is new' in said(), what=name)
        if way != 'warden':
            until(lambda: '.git/FETCH_HEAD is new, in a git directory' in said(), what='a link')
            assert os.readlink(f'{project.path}/.git/FETCH_HEAD') == '/etc/x'
        assert said().count('/mise.toml is new') == 1, said()
        for name in ('old', '.git', '.mcp.json', '.vscode', 'refs'):
            assert f'{project.path}/{name} ' not in said(), said()
        until(lambda: 'refs' not in os.listdir(project.path), what='placeholders are gone')
    finally:
        for hub in hubs:
            if hub.proc.poll() is None:
                hub.end()
            hub.kill()


def left_by(begin, project, *lines):
    """What is told of sandboxes that have the folder one after the other."""
    hub, shared = begin(project)
    for i, line in enumerate(lines):
        box = hub.create(volumes=shared)
        done = hub.exec(box, f'set -e; cd /w; {line}; touch end{i}; mkdir .exrc')
        assert done['exit_code'] == 0, done
        hub.delete(box)
        until(lambda: hub.said().count('/.exrc is new') > i, what='the look at its end')
        os.rmdir(f'{project.path}/.exrc')
    return hub.said()


def test_what_git_writes_through_is_removed(who, work, begin):  # noqa: F811
    """Git makes no link in a git directory, and follows one that is there. What a user has made
    before stays, and so does the HEAD of an old git."""
    project = Project(who, f'{work}/p')
    os.symlink('/nonexistent', f'{project.path}/.git/mine')
    git(project, 'worktree', 'add', '-q', '--orphan', '-b', 'w', 'tree')
    git(project, 'init', '-q', 'nested', check=True)
    project.own()
    top = f'{project.path}/.git'
    hub, shared = begin(project)
    box = hub.create(volumes=shared)
    at_once = ('COMMIT_EDITMSG', 'FETCH_HEAD', 'logs/HEAD', 'refs/tags', 'refs/heads/x',
               'logs/refs/heads/x', 'index', 'packed-refs')
    done = hub.exec(box, 'set -e; cd /w/.git; rm -rf logs refs/tags; n=objects/n; '
                    'mkdir -p $n/refs/heads; ln -s ../config $n/HEAD; '
                    'ln -s /etc/x $n/refs/heads/x; mv $n logs; '
                    'ln -s /etc/x COMMIT_EDITMSG; ln -s ../a.txt index; ln -s x packed-refs; '
                    'mkfifo FETCH_HEAD; ln -s /etc refs/tags; ln -s x refs/heads/x; '
                    'rm HEAD; ln -s refs/heads/main HEAD; '
                    'mkdir -p refs/heads/deep; ln -s x refs/heads/deep/x; '
                    'ln -s /etc/x ../nested/.git/COMMIT_EDITMSG')
    assert done['exit_code'] == 0, done
    for name in at_once:
        until(lambda: not os.path.lexists(f'{top}/{name}'), what=name)
    hub.delete(box)
    until(lambda: not os.path.lexists(f'{top}/refs/heads/deep/x'), what='the look at its end')
    for name in (*at_once, 'refs/heads/deep/x'):
        assert f'{top}/{name} was made by a sandbox, and is removed' in hub.said(), name
    assert f'{top}/COMMIT_EDITMSG was made by a sandbox, and is removed: git would have written ' \
           'through it to /etc/x' in hub.said()
    until(lambda: f'{project.path}/nested/.git/COMMIT_EDITMSG is new' in hub.said())
    assert os.readlink(f'{top}/mine') == '/nonexistent'
    assert os.readlink(f'{top}/HEAD') == 'refs/heads/main'


@pytest.mark.rights
def test_links_out_of_the_folder_are_told(who, work, begin):  # noqa: F811
    """Also through others. The control are links that stay in it, and that of the user."""
    project = Project(who, f'{work}/p')
    os.symlink('/etc', f'{project.path}/mine')
    project.own()
    said = left_by(begin, project,
                   'mkdir -p d/e; ln -s ../a.txt d/in; ln -s none d/none; ln -s d/e short; '
                   f'ln -s {project.path}/a.txt whole; ln -s /usr/bin/python3 d/python; '
                   f'rm a.txt; ln -s {work}/home a.txt; ln -s ../../x d/up; '
                   'ln -s short/../../../x through; ln -s mine/x by')
    for name in ('a.txt', 'd/up', 'through', 'by'):
        assert f'{project.path}/{name} is a new link out of the folder' in said, name
    assert said.count('is a new link out') == 4 + (who.uid == 0), said  # root writes to /usr


def test_what_hides_from_review_is_told(who, work, begin):  # noqa: F811
    """Not again where it was so before."""
    project = Project(who, f'{work}/p')
    for name in ('assumed', 'skipped', 'mine'):
        project.put(name, name)
    git(project, 'add', '-A', check=True)
    git(project, 'commit', '-qm', 'a', check=True)
    git(project, 'update-index', '--skip-worktree', 'mine', check=True)
    git(project, 'replace', 'HEAD:assumed', 'HEAD:skipped', check=True)
    project.own()
    said = left_by(begin, project, 'echo b > b; git add b')
    assert '/.git/' not in said, said
    files = ('info/exclude', 'info/attributes', 'info/grafts', 'info/sparse-checkout',
             'objects/info/alternates', 'shallow')
    said = left_by(begin, project, 'git update-index --assume-unchanged assumed; '
                   'git replace HEAD:mine HEAD:skipped; cd .git; '
                   f'for n in {" ".join(files)}; do echo x >> $n; done; cd ..')
    for name in (*files, 'refs/replace'):
        assert f'{project.path}/.git/{name} is new' in said, name
    assert f'{project.path}/.git/index hides other files' in said
    git(project, 'update-index', '--no-assume-unchanged', 'assumed', check=True)
    for name in files:
        os.unlink(f'{project.path}/.git/{name}')
    project.own()
    said = left_by(begin, project, 'git update-index --skip-worktree skipped; git pack-refs --all')
    for name in ('index hides', 'packed-refs is new'):
        assert f'{project.path}/.git/{name}' in said, said


def test_directories_that_a_command_enters_stay(who, work):  # noqa: F811
    """And those that it only names can be worked in."""
    project = Project(who, f'{work}/p')
    kept = ('make/Makefile', 'entered/x.sh', 'module/fmt.py', 'template/hooks/x',
            'deep/er/Makefile', 'single.py')
    for name in (*kept, 'src/a.c'):
        project.put(name, 'mine')
    for key, value in (('alias.a', '!make -s -C make x'), ('alias.b', '!cd entered && ./x.sh'),
                       ('alias.c', '!python3 -m module.fmt src'), ('alias.e', '!eslint src'),
                       ('alias.d', '!make --directory=deep/er'), ('alias.f', '!python -m single'),
                       ('init.templateDir', 'template')):
        git(project, 'config', key, value, check=True)
    project.own()
    before = project.tree()
    assert project.run(f'cd /w; for n in {" ".join(kept)}; do (echo evil > $n) 2>/dev/null && '
                       'echo $n; mv ${n%%/*} gone 2>/dev/null && echo $n; done; true') == ''
    assert project.tree() == before
    assert project.run('echo fine > /w/src/a.c') == ''


def test_a_long_path_is_told_with_a_sign(who, work, begin):  # noqa: F811
    project = Project(who, f'{work}/p')
    name = 'n' * 200
    said = left_by(begin, project, f'mkdir -p {name}/{name}/{name}; '
                   f'git init -q {name}/{name}/{name}/last')
    assert '[…]' in said and '/last is new' in said


def test_what_two_sandboxes_make_is_told(who, work, begin):  # noqa: F811
    """Renaming changes nothing of what is in a directory, so it is told of where it is made."""
    project = Project(who, f'{work}/p')
    evil = 'git init -q $n; git -C $n config core.fsmonitor x; mv $n/.git $n/x; mv $n/x/HEAD $n/x/H'
    said = left_by(begin, project,
                   f'n=sub; {evil}; n=bare; {evil}; git init -q ok; mv ok/.git ok/x; '
                   'rm ok/x/HEAD; '
                   'n=hooked; git init -q $n; echo x > $n/.git/hooks/pre-commit; '
                   'mv $n/.git $n/x; mkdir hg .git/rm; echo x > hg/hgrc; '
                   'echo "exec x" > .git/rm/git-rebase-todo; echo "Host x" > config',
                   'mv sub/x sub/.git; mv sub/.git/H sub/.git/HEAD; mv bare/x/H bare/x/HEAD; '
                   'mv .git/rm .git/rebase-merge')
    for name in ('sub/x', 'bare/x', 'hooked/x', 'hg/hgrc', '.git/rm', '.git/rebase-merge'):
        assert f'{project.path}/{name} is new' in said, name
    assert f'{project.path}/ok' not in said and f'{project.path}/config ' not in said


def test_what_a_repository_below_names_is_told(who, work, begin):  # noqa: F811
    """Of one that was there: the scripts that its configuration names, and the git directory of a
    submodule of it. Control: one that is as it was, though it was worked in."""
    project = Project(who, f'{work}/p')
    for name in ('hooked', 'husky', 'aliased', 'same', 'outer'):
        git(project, 'init', '-q', name, check=True)
        project.put(f'{name}/tools/x.sh', 'mine')
        project.put(f'{name}/.husky/pre-commit', 'mine')
        project.put(f'{name}/.husky/_/h', 'mine')
    for name, key, value in (('hooked', 'core.hooksPath', '.husky'),
                             ('husky', 'core.hooksPath', '.husky/_'),
                             ('aliased', 'alias.x', '!sh tools/x.sh'),
                             ('same', 'core.hooksPath', '.husky')):
        git(project, 'config', key, value, cwd=f'{project.path}/{name}', check=True)
    shutil.copytree(f'{project.path}/same/.git', f'{project.path}/outer/.git/modules/m')
    project.own()
    said = left_by(begin, project,
                   'echo x > hooked/.husky/pre-commit; echo x > husky/.husky/pre-commit; '
                   'echo x > aliased/tools/x.sh; git -C outer/.git/modules/m config a.b x; '
                   'echo x > same/a.txt; git -C same add a.txt')
    for name in ('hooked', 'husky', 'aliased'):
        assert f'{project.path}/{name} is a repository whose configuration names ' in said, name
    assert f'{project.path}/outer/.git/modules/m is new' in said
    assert f'{project.path}/same' not in said and f'{project.path}/outer ' not in said


def test_what_a_worktree_leaves_is_told(who, work, begin):  # noqa: F811
    """A rebase that was begun in its git directory, and nothing where nothing was done."""
    name = f'{work}/w'
    project = with_worktree(who, work, name)

    def run(line):
        done = who.run('run', '-v', f'{name}:{name}:rw', '-w', name, '--', 'sh', '-c', line)
        assert done.returncode == 0, done
        return done.stderr.decode()
    assert run('true') == ''
    own = f'{project.path}/.git/worktrees/w'
    assert f'{own}/rebase-merge is new' in run(
        f'mkdir {own}/rebase-merge && echo "exec x" > {own}/rebase-merge/git-rebase-todo')


def test_what_is_harmless_hides_nothing(who, work, begin):  # noqa: F811
    """Each class has its lines, and what runs something has the first ones; the rest is counted."""
    project = Project(who, f'{work}/p')
    names, ways = told()[:25], {
        'config': 'git -C $n config core.fsmonitor x',
        'include': 'git -C $n config include.path 7', 'hooks': 'git -C $n config core.hooksPath on',
        'file': 'rm -r $n/.git; echo x > $n/.git',
        'hook': 'echo x > $n/.git/hooks/pre-push',
        'link': 'rm -r $n/.git/hooks; ln -s / $n/.git/hooks',
        'bare': 'mv $n/.git $n.bare; echo x > $n.bare/hooks/update; mv $n.bare $n/.',
        'hg': 'rm -r $n/.git; mkdir $n/.hg; echo x > $n/.hg/hgrc'}
    hub, shared = begin(project)
    box = hub.create(volumes=shared)
    done = hub.exec(box, f'set -e; cd /w; mkdir -p {" ".join(names)}; touch mise.toml; '
                    'for i in $(seq 30); do git init -q d/a$i; done; '
                    + '; '.join(f'n=d/{name}; git init -q $n; {way}' for name, way in ways.items()))
    assert done['exit_code'] == 0, done
    hub.delete(box)
    until(lambda: 'more are not shown' in hub.said(), what='the count')
    said = [line.split(f'{project.path}/', 1)[1].split(' is new')[0]
            for line in hub.said().splitlines() if f'{project.path}/' in line and ' is new' in line]
    first = {f'd/{name}' for name in ways} - {'d/bare'} | {
        'd/bare/bare.bare', 'd/link/.git/hooks', 'mise.toml'}
    plain = [name for name in said if name.startswith('d/') and name not in first]
    assert first <= set(said), said
    assert len(plain) == 20 and len(set(said) & set(names)) == 20, said
    assert max(map(said.index, first)) < min(map(said.index, plain)), said
    assert '15 more are not shown: 0 repositories with commands, 15 others' in hub.said()


def test_what_other_tools_act_on_is_told(who, work, begin):  # noqa: F811
    """A repository of Mercurial that is new, at the top and below; names that tools act on, and
    what is new in a folder of such a name. Control: what was there is not told of."""
    project = Project(who, f'{work}/p')
    project.put('.direnv/flake.rc', 'mine')
    project.put('.nvimrc', 'mine')
    project.put('old/.hg/requires', 'mine')
    project.put('old/.hg/hgrc', 'mine')
    project.own()
    names = [name for name in told() if name not in ('.direnv', '.nvimrc')]
    repositories = ('.hg/hgrc', '.sl/config', '_darcs/prefs/defaults', '.pijul/config',
                    '.bzr/branch/branch.conf', '.jj/repo/config.toml')
    hub, shared = begin(project)

    def leave(files, way='mkdir -p $n'):
        box = hub.create(volumes=shared)
        done = hub.exec(box, f'set -e; cd /w; for n in {" ".join(files)}; do {way}; done')
        assert done['exit_code'] == 0, done
        hub.delete(box)
    for at in range(0, len(names), 10):  # no more than are shown
        leave(names[at:at + 10])
        for name in names[at:at + 10]:
            until(lambda: f'{project.path}/{name} is new' in hub.said(), what=name)
    leave(['.direnv/flake.rc', *repositories, *(f'sub{i}/{repositories[i]}' for i in range(6))],
          'mkdir -p "$(dirname $n)"; echo x > $n')
    for name in ('.direnv', *(name.split('/')[0] for name in repositories),
                 *(f'sub{i}' for i in range(6))):
        until(lambda: f'{project.path}/{name} is new' in hub.said(), what=name)
    for name in ('.nvimrc', 'old'):
        assert f'{project.path}/{name} ' not in hub.said()


def test_a_repository_of_jujutsu_is_told_of(who, work, begin):  # noqa: F811
    """One that was moved, or names another. Control: one that was worked in."""
    project = Project(who, f'{work}/p')
    for at in ('', 'worked in/', 'named/', 'moved/'):
        project.put(f'{at}.jj/repo/config.toml', 'mine')
        project.put(f'{at}.jj/working_copy/tree_state', 'mine')
    project.own()
    hub, shared = begin(project)
    box = hub.create(volumes=shared)
    done = hub.exec(box, 'cd /w && mv .jj .jj3 && mv moved/.jj moved2 && mv moved2 moved/.jj && '
                    'mkdir build && mv named/.jj/repo build/r && '
                    'printf ../build/r > named/.jj/repo && echo x > build/r/config.toml && '
                    'echo x > "worked in/.jj/working_copy/tree_state"')
    assert done['exit_code'] == 0, done
    hub.delete(box)
    for name in ('.jj is gone', 'named is new', 'moved is new'):
        until(lambda: f'{project.path}/{name}' in hub.said(), what=name)
    assert f'{project.path}/worked in' not in hub.said()


def test_a_repository_of_mercurial_that_was_there_is_not_told_of(who, work, begin):  # noqa: F811
    """What takes the place of its hgrc meanwhile is no change."""
    project = Project(who, f'{work}/p')
    project.put('.hg/requires', 'mine')
    project.own()
    hub, shared = begin(project)
    box = hub.create(volumes=shared)
    done = hub.exec(box, 'cd /w; echo x > .hg/hgrc; mkdir .exrc')
    hub.delete(box)
    until(lambda: f'{project.path}/.exrc is new' in hub.said(), what='the look at its end')
    assert f'{project.path}/.hg ' not in hub.said(), done
