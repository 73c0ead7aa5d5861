"""What programs of the host read in a folder and act on stays as it is where a sandbox may write
the folder, whether it exists or not. Each attempt is tried under rw-all, too, where it works."""

import fcntl
import os
import pwd
import re
import shutil
import struct
import subprocess
import tempfile

import pytest

from client import until
from rest import Failed
from test_hub_cli import Hub

pytestmark = pytest.mark.rights

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

GIT = ['git', '-c', 'user.name=a', '-c', 'user.email=a@example.com', '-c', 'safe.directory=*']

# Each writes something that a program of the host would run, by a way of its own.
ATTEMPTS = {
    'write a file': 'echo evil > {0}',
    'append to it': 'echo evil >> {0}',
    'write over it': 'echo evil > own; mv -T own {0}',
    'link over it': 'ln -sfT /tmp {0}',
    'exchange it': 'echo evil > own; python3 -c "{exchange}" own {0}',
    'remove it': 'rm -rf {0}; [ ! -e {0} ]',
    'rename it': 'mv {0} gone',
    'change its mode': 'chmod 777 {0}',
    'write by another name': 'ln {0} other && echo evil > other',
    'mount over it': 'mount -t tmpfs none {0}',
}
EXCHANGE = ("import ctypes, sys; c = ctypes.CDLL(None, use_errno=True); "
            "sys.exit(-c.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2))")
# What can't be done under rw-all either.
NEVER = {'mount over it'}
EXISTING = ('.git/config', '.git/hooks/pre-commit', '.mcp.json', '.vscode/tasks.json',
            '.claude/settings.json', '.bashrc')


@pytest.fixture
def work(who, residue):
    path = tempfile.mkdtemp(dir=who.work)
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path)


class Project:
    """A folder of who's that git has made, with what the tests name in it."""

    def __init__(self, who, path, existing=True):
        self.who, self.path = who, path
        os.mkdir(path)
        self.put('a.txt', 'a')
        if existing:
            subprocess.run([*GIT, 'init', '-q', path], check=True)
            for name in EXISTING:
                if not os.path.exists(os.path.join(path, name)):
                    self.put(name, 'mine')
        self.own()

    def put(self, name, text):
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)

    def own(self):
        subprocess.run(['chown', '-R', f'{self.who.uid}:{self.who.uid}', self.path], check=True)

    def run(self, line, mode='rw', status=0):
        done = self.who.run('run', '-v', f'{self.path}:/w:{mode}', '--', 'sh', '-c', line)
        assert done.returncode == status, (line, done.stderr)
        return done.stdout.decode() + done.stderr.decode()

    def tree(self):
        """Each entry with its type, mode and content."""
        found = {}
        for top, dirs, names in os.walk(self.path):
            for name in dirs + names:
                path = os.path.join(top, name)
                st = os.lstat(path)
                text = None
                if os.path.isfile(path) and not os.path.islink(path):
                    with open(path, 'rb') as f:
                        text = f.read()
                found[os.path.relpath(path, self.path)] = (st.st_mode, text)
        return found


def script(ways, name):
    """All ways at one path, each in turn, and the names of those that succeed."""
    lines = ['cd /w']
    for i, way in enumerate(ways.values()):
        line = way.format(name, exchange=EXCHANGE)
        lines.append(f'( {line} ) 2>/dev/null && echo {i}; rm -rf own other gone 2>/dev/null')
    return '\n'.join([*lines, 'true'])


def succeeded(project, ways, name, mode='rw'):
    out = project.run(script(ways, name), mode)
    return {list(ways)[int(line)] for line in out.splitlines() if line.isdigit()}


def test_what_exists_stays(who, work):
    project = Project(who, f'{work}/p')
    before = project.tree()
    for name in EXISTING + ('.git/hooks', '.vscode', '.claude', '.git'):
        ways = {k: v for k, v in ATTEMPTS.items()
                if name != '.git' or k not in ('change its mode', 'remove it')}
        assert succeeded(project, ways, name) == set(), name
    assert project.run('rm -rf /w/.git/hooks /w/.git/config 2>&1; rmdir /w/.git 2>&1; true')
    assert project.tree() == before
    # and what is none of that can be worked with
    project.run('cd /w && echo b > b.txt && mkdir d && mv a.txt d/ && git add -A && '
                'git -c user.name=a -c user.email=a@example.com commit -qm c && '
                'git checkout -q -b other && rm b.txt')
    log = subprocess.run([*GIT, '-C', project.path, 'log', '--format=%s'], check=True,
                         capture_output=True, text=True).stdout
    assert log == 'c\n'
    assert sorted(os.listdir(project.path)) == ['.bashrc', '.claude', '.git', '.mcp.json',
                                                '.vscode', 'd']


@pytest.mark.parametrize('name', ['.mcp.json', '.vscode'])
def test_the_control(who, work, name):
    for way, line in ATTEMPTS.items():
        project = Project(who, f'{work}/{way}')
        shutil.rmtree(f'{project.path}/.vscode')
        project.put('.vscode', 'a file, for all ways to be tried')
        project.own()
        assert (succeeded(project, {way: line}, name, 'rw-all') == {way}) == (way not in NEVER), way


def test_what_is_missing_stays_so(who, work):
    project = Project(who, f'{work}/p', existing=False)
    line = ('cd /w; for n in .git .mcp.json .vscode .claude .cursor .idea .zed; do '
            'rm -rf $n; rmdir $n; mkdir $n/in; echo evil > $n; echo evil > $n/config; '
            'echo evil > own; mv -T own $n; rm -f own; mkdir own; mv -T own $n; rmdir own; '
            'ln -sfnT /tmp $n; done 2>/dev/null; git init -q . 2>/dev/null; echo "$?"')
    assert project.run(line) != '0\n'
    assert os.listdir(project.path) == ['a.txt']
    # the control
    assert project.run(line, 'rw-all') == '0\n'
    assert {'.git', '.mcp.json', '.vscode'} < set(os.listdir(project.path))


def test_git_reads_its_configuration_from_nowhere_else(who, work):
    """commondir makes git take hooks and configuration from another folder."""
    project = Project(who, f'{work}/p')
    line = ('cd /w; cp -r .git evil; '
            'printf "[core]\\n\\tfsmonitor = touch /w/hit\\n" >> evil/config; '
            'rm -f .git/commondir 2>/dev/null; (echo ../evil > .git/commondir) 2>/dev/null; '
            'git status >/dev/null 2>&1; ls hit 2>/dev/null; true')
    assert 'hit\n' not in project.run(line)
    assert not os.path.exists(f'{project.path}/.git/commondir')
    shutil.rmtree(f'{project.path}/evil')
    assert project.run(line, 'rw-all') == 'hit\n'


def test_a_worktree_and_a_home(who, work):
    """There .git is a file; profiles of shells are held where there is one."""
    project = Project(who, f'{work}/p', existing=False)
    project.put('.git', 'gitdir: /somewhere/else')
    project.put('.profile', 'mine')
    project.own()
    before = project.tree()
    assert project.run('cd /w; for n in .git .profile .bashrc .zshenv; do '
                       '(echo evil > $n) 2>/dev/null && echo $n; done; true') == ''
    assert project.tree() == before


def test_sandboxes_that_share_it(who, work):
    """What was made for the first stays until the last has ended, however the hub ends between."""
    project = Project(who, f'{work}/p', existing=False)
    home = f'{work}/home'
    os.mkdir(home, 0o700)
    os.chown(home, who.uid, who.uid)
    hub = Hub(who, home, '--listen', '127.0.0.1:0', '--pool', '1', '--allow-volumes',
              f'{project.path}:rw')
    try:
        shared = [{'host': project.path, 'inside': '/w', 'mode': 'rw'}]
        first = hub.create(volumes=shared)
        second = hub.create(volumes=shared)
        child = hub.post(f'/v1/sandboxes/{first}/fork')['id']
        hub.delete(first)
        for box in (second, child):
            done = hub.exec(box, 'echo evil > /w/.mcp.json; rmdir /w/.git; mv /w/.vscode /w/x')
            assert done['exit_code'] != 0 and done['stderr'].count('\n') == 3, done
            with pytest.raises(Failed):
                hub.post('/v1/files/write', sandbox=box, path='/w/.mcp.json', content='evil')
        with pytest.raises(Failed) as failed:
            hub.create(volumes=[{**shared[0], 'mode': 'rw-all'}])
        assert '--allow-volumes DIR:rw-all' in failed.value.error['cause']
        # nor what is kept as it is by itself
        for name in ('.vscode', '.git', '.mcp.json', '.GIT'):
            below = [{**shared[0], 'host': f'{project.path}/{name}'}]
            if os.path.exists(below[0]['host']):
                with pytest.raises(Failed) as failed:
                    hub.create(volumes=below)
                assert 'programs of the host act on it' in failed.value.error['cause']
                hub.delete(hub.create(volumes=[{**below[0], 'mode': 'ro'}]))
        project.put('sub/x', 'x')
        project.own()
        hub.delete(hub.create(volumes=[{**shared[0], 'host': f'{project.path}/sub'}]))
        shutil.rmtree(f'{project.path}/sub')
        # whose own locks keep nobody out
        assert hub.exec(second, 'flock -n /w true')['exit_code'] != 0
        hub.delete(hub.create(volumes=shared))
        hub.delete(second)
        hub.delete(child)
        until(lambda: os.listdir(project.path) == ['a.txt'])
    finally:
        hub.end()
        hub.kill()
    assert os.listdir(project.path) == ['a.txt']


@pytest.fixture
def begin(who, work):
    """Begins a hub for one project, and ends it."""
    hubs = []

    def start(project, *also):
        home = f'{work}/home{len(hubs)}'
        os.mkdir(home, 0o700)
        os.chown(home, who.uid, who.uid)
        roots = [word for root in (f'{project.path}:rw', *also)
                 for word in ('--allow-volumes', root)]
        hubs.append(Hub(who, home, '--listen', '127.0.0.1:0', '--pool', '1', *roots))
        return hubs[-1], [{'host': project.path, 'inside': '/w', 'mode': 'rw'}]
    yield start
    for hub in hubs:
        hub.end()
        hub.kill()


def await_seal(hub, box, name):
    until(lambda: hub.exec(box, f'grep -q " /w/{name} " /proc/self/mountinfo')['exit_code'] == 0,
          what=f'the seal of {name}')


def replace(project, name, text):
    """As programs do that write a file anew: under another name, which then becomes its name."""
    project.put(f'{name}.new', text)
    os.chown(f'{project.path}/{name}.new', project.who.uid, project.who.uid)
    os.rename(f'{project.path}/{name}.new', f'{project.path}/{name}')


def test_what_the_host_replaces_is_sealed_again(who, work, begin):
    project = Project(who, f'{work}/p')
    hub, shared = begin(project)
    first = hub.create(volumes=shared)
    second = hub.create(volumes=shared)
    child = hub.post(f'/v1/sandboxes/{first}/fork')['id']
    hub.delete(first)
    subprocess.run([*GIT, '-C', project.path, 'config', 'a.b', 'c'], check=True)
    replace(project, '.mcp.json', 'other')
    replace(project, '.git/config.worktree', '[a]\n')
    os.mkdir(f'{project.path}/new')
    project.put('new/tasks.json', 'other')
    os.rename(f'{project.path}/.vscode', f'{project.path}/old')
    os.rename(f'{project.path}/new', f'{project.path}/.vscode')
    project.own()
    before = project.tree()
    for box in (second, child):
        for name in ('.git/config', '.mcp.json', '.git/config.worktree', '.vscode'):
            await_seal(hub, box, name)
        for name in ('.git/config', '.mcp.json', '.git/config.worktree', '.vscode/tasks.json'):
            done = hub.exec(box, script(ATTEMPTS, name))
            assert done['stdout'] == '' and done['exit_code'] == 0, (name, done)
        assert hub.exec(box, 'echo more >> /w/a.txt')['exit_code'] == 0
    hub.delete(second)
    hub.delete(child)
    for name in ('.git/config', '.mcp.json', '.git/config.worktree', '.vscode/tasks.json'):
        assert project.tree()[name] == before[name], name


def test_what_the_host_removes_is_made_again(who, work, begin):
    project = Project(who, f'{work}/p')
    hub, shared = begin(project)
    box = hub.create(volumes=shared)
    os.unlink(f'{project.path}/.mcp.json')
    os.rename(f'{project.path}/.vscode', f'{project.path}/old')
    shutil.rmtree(f'{project.path}/.git/hooks')
    hub.exec(box, 'mv /w/.git/HEAD /w/.git/gone')  # as if all of it were being removed
    for name in ('.mcp.json', '.vscode', '.git/hooks'):
        await_seal(hub, box, name)
        done = hub.exec(box, script(ATTEMPTS, name))
        assert done['stdout'] == '' and done['exit_code'] == 0, (name, done)
    hub.delete(box)
    until(lambda: not {'.mcp.json', '.vscode'} & set(os.listdir(project.path)))


def test_a_repository_that_the_host_puts_there(who, work, begin):
    """Of what it has nothing is sealed by itself, so all of it is."""
    project = Project(who, f'{work}/p', existing=False)
    other = Project(who, f'{work}/other')
    hub, shared = begin(project)
    box = hub.create(volumes=shared)
    await_seal(hub, box, '.git')
    os.rename(f'{other.path}/.git', f'{project.path}/.git')
    await_seal(hub, box, '.git')
    assert hub.exec(box, 'echo evil > /w/.git/commondir')['exit_code'] != 0
    for name in ('.git/config', '.git/hooks/pre-commit', '.git/HEAD'):
        done = hub.exec(box, script(ATTEMPTS, name))
        assert done['stdout'] == '' and done['exit_code'] == 0, (name, done)
    assert hub.exec(box, 'cd /w && git status')['exit_code'] == 0
    hub.delete(box)
    assert os.path.exists(f'{project.path}/.git/config')


def test_other_worktrees_of_the_repository(who, work):
    """What leads git from there to its configuration is in this folder."""
    project = Project(who, f'{work}/p')
    project.put('.git/worktrees/x/commondir', '../..')
    project.own()
    before = project.tree()
    assert succeeded(project, ATTEMPTS, '.git/worktrees/x/commondir') == set()
    assert project.tree() == before


def test_what_the_host_begins_to_use(who, work, begin):
    """Directories that git and husky make at their first use, which is while a sandbox runs."""
    project = Project(who, f'{work}/p')
    names = ('.git/worktrees/fix/commondir', '.git/modules/x/config', '.husky/pre-commit')
    line = (f'cd {project.path} && git add a.txt && '
            'git -c user.name=a -c user.email=a@example.com commit -qm c && '
            'git worktree add -q ../fix && mkdir -p .git/modules/x .husky/_ && '
            'git config core.hooksPath .husky/_ && '
            'echo mine | tee .git/modules/x/config > .husky/pre-commit')
    as_owner = ['setpriv', f'--reuid={who.uid}', '--clear-groups'] * (os.getuid() == 0)
    os.chown(work, who.uid, who.uid)
    hub, shared = begin(project)
    box = hub.create(volumes=shared)
    done = subprocess.run([*as_owner, 'sh', '-c', line], env={**os.environ, 'HOME': '/'},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    for name in names:
        done = hub.exec(box, script(ATTEMPTS, name))
        assert done['stdout'] == '' and done['exit_code'] == 0, (name, done)
    hub.delete(box)
    for name in names:
        assert os.path.exists(f'{project.path}/{name}'), name
        assert succeeded(project, ATTEMPTS, name, 'rw-all') > {'write a file'}  # the control


def test_a_folder_with_a_default_acl(who, work):
    """It takes rights from what is made in it."""
    project = Project(who, f'{work}/p', existing=False)
    entries = (1, 7), (4, 5), (0x20, 0)  # the user's, the group's and others'
    acl = struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *one, 0xffffffff) for one in entries)
    os.setxattr(project.path, 'system.posix_acl_default', acl)
    project.run('true')
    assert os.listdir(project.path) == ['a.txt']


def test_placeholders_are_not_made_through_links(who, work, begin):
    """A sandbox that has the folder puts a link where the next one's is being made."""
    project = Project(who, f'{work}/p', existing=False)
    project.put('.profile', 'mine')  # so that there are many
    target = f'{work}/secret'
    with open(target, 'w', encoding='utf-8') as f:
        f.write('mine')
    os.chmod(target, 0o600)
    os.chown(target, who.uid, who.uid)
    project.own()
    os.unlink(f'{project.path}/.profile')
    hub, shared = begin(project)
    box = hub.create(volumes=shared)
    links = [f'import os\nos.symlink("{target}", "/w/own")',
             f'import ctypes\nc = ctypes.CDLL(None)\nwhile True:\n'
             '    for n in (b".bash_login", b".zshrc", b".ssh", b".zlogin"):\n'
             '        c.renameat2(-100, b"/w/own", -100, b"/w/" + n, 2)']
    hub.exec(box, 'echo mine > /w/.profile')
    job = hub.exec(box, f"exec python3 -c '{chr(10).join(links)}'", background=True)
    for _ in range(10):
        try:
            hub.delete(hub.create(volumes=shared))
        except Failed as e:  # it finds the link
            assert 'as it is' in e.error['cause'], e
    assert os.stat(target).st_mode & 0o7777 == 0o600, job


def test_a_link_of_the_host_is_sealed(who, work, begin):
    """It stays, and what it leads to is as it was."""
    project = Project(who, f'{work}/p')
    hub, shared = begin(project)
    box = hub.create(volumes=shared)
    project.put('settings/mcp.json', 'mine')
    project.own()
    os.symlink('settings/mcp.json', f'{project.path}/new')
    os.rename(f'{project.path}/new', f'{project.path}/.mcp.json')
    await_seal(hub, box, 'settings/mcp.json')
    assert hub.exec(box, 'ln -sfT /tmp /w/.mcp.json || rm /w/.mcp.json')['exit_code'] != 0
    assert hub.exec(box, 'echo evil > /w/.mcp.json || mv /w/settings /w/x')['exit_code'] != 0
    assert hub.exec(box, 'echo b > /w/a.txt')['exit_code'] == 0
    hub.delete(box)
    assert os.readlink(f'{project.path}/.mcp.json') == 'settings/mcp.json'


# Git takes a folder for a repository in which a sandbox has made what one consists of.
BARE = ('cd /w; rm -f .git/HEAD; mkdir -p objects refs evil/objects evil/refs; '
        'echo "ref: refs/heads/x" > HEAD; {more}'
        'printf "[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = {top}\\n'
        '\\tfsmonitor = \\"touch {top}/hit; false\\"\\n[alias]\\n\\tx = !touch {top}/hit\\n" '
        '| tee config > evil/config; true')


def git_obeys(project, env=None):
    """Whether git on the host runs what the folder's configuration says."""
    user = ['setpriv', f'--reuid={project.who.uid}', '--clear-groups'] * (os.getuid() == 0)
    for command in ('status', 'x'):
        subprocess.run([*user, *GIT, command], cwd=project.path, capture_output=True, check=False,
                       env={**os.environ, **(env or {})})
    return os.path.exists(f'{project.path}/hit')


@pytest.mark.parametrize('own', ['', 'refs', 'objects'])
@pytest.mark.parametrize('existing', [True, False])
def test_the_folder_becomes_no_repository(who, work, begin, existing, own):
    for more in ('', 'echo evil > commondir; '):
        for mode in ('rw', 'rw-all'):
            project = Project(who, f'{work}/{mode}{len(more)}', existing)
            if own:
                project.put(f'{own}/mine', 'mine')
                project.own()
            line = BARE.format(top=project.path, more=more)
            if mode == 'rw-all':
                project.run(line, mode)
                assert git_obeys(project)
                continue
            # neither while there is a sandbox nor later
            hub, shared = begin(project)
            box = hub.create(volumes=shared)
            hub.exec(box, line)
            assert not git_obeys(project), more
            hub.delete(box)
            until(lambda: not os.path.exists(f'{project.path}/commondir'))
            assert not git_obeys(project), more


def test_what_keeps_it_from_that_is_nothing_to_git(who, work):
    project = Project(who, f'{work}/p')
    out = project.run('cd /w && git add -A && git status --porcelain; ls -d refs commondir')
    assert '?? ' not in out and out.endswith('commondir\nrefs\n')


TOOLS = {
    'cp -a': 'cp -a $p to', 'cp -r': 'cp -r $p to', 'tar': 'tar -cf to -C $p .',
    'find': 'find $p -type f', 'du': 'du -a $p', 'grep': 'grep -rc a $p', 'ls': 'ls -lR $p',
    'zip': 'zip -qr to $p', 'rsync': 'rsync -a $p/ to', 'zipfile': 'python3 -m zipfile -c to $p',
    'copytree': """python3 -c 'import os, shutil; shutil.copytree(os.environ["p"], "to")'""",
    'git': 'git -C $p status --porcelain', 'git clone': 'git clone -q $p to',
    'diff': 'cp -a $p to; diff -r $p to', 'rm': 'cp -a $p to; rm -rf to'}


@pytest.mark.parametrize('existing', [True, False])
def test_tools_of_the_host_pass_what_stands_there(who, work, begin, existing):
    """While a sandbox has the folder of somebody who is not root; each tool that is here."""
    if who.uid == 0:
        pytest.skip('root enters any directory, so a socket stands in a folder of root')
    project = Project(who, f'{work}/p', existing)
    hub, shared = begin(project)
    box = hub.create(volumes=shared)
    assert {'commondir', 'refs'} <= set(os.listdir(project.path))
    as_user = ['setpriv', f'--reuid={who.uid}', '--clear-groups'] * (os.getuid() == 0)
    for name, line in TOOLS.items():
        if not shutil.which(line.split()[0]) or ('git' in name and not existing):
            continue
        to = f'{work}/{name.replace(" ", "")}'
        os.mkdir(to, 0o700)
        os.chown(to, who.uid, who.uid)
        done = subprocess.run([*as_user, 'sh', '-ec', line], cwd=to, capture_output=True,
                              text=True, check=False,
                              env={**os.environ, 'HOME': to, 'p': project.path})
        said = done.stderr.replace('warning: You appear to have cloned an empty repository.\n', '')
        if name == 'rsync' and done.returncode == 23:  # 3.5 enters a directory to open it
            refuses = r'rsync: .*opendir "\S+/refs" failed.*\nrsync error: .*\n'
            assert re.fullmatch(refuses, said), done
            assert set(os.listdir(f'{to}/to')) >= set(os.listdir(project.path)) - {'refs'}
            continue
        assert done.returncode == 0 and not said, (name, done)
        assert name != 'git' or 'refs' not in done.stdout, done
    hub.delete(box)
    until(lambda: not {'commondir', 'refs'} & set(os.listdir(project.path)))


def test_its_own_names_stay_writable(who, work):
    for name in ('refs', 'objects'):
        project = Project(who, f'{work}/{name}', existing=False)
        project.put(f'{name}/mine', 'mine')
        project.own()
        project.run(f'echo more >> /w/{name}/mine && mv /w/{name} /w/own')
        assert sorted(os.listdir(project.path)) == ['a.txt', 'own']


def test_a_folder_that_has_the_parts_of_a_repository_is_refused(who, work):
    project = Project(who, f'{work}/p', existing=False)
    subprocess.run([*GIT, 'init', '-q', '--bare', project.path], check=True)
    project.own()
    assert 'rw-all' in project.run('true', status=125)
    assert project.run('echo fine', 'rw-all') == 'fine\n'


def test_a_locked_folder_is_refused(who, work):
    """Another warden may be about to remove what it has made."""
    project = Project(who, f'{work}/p', existing=False)
    fd = os.open(project.path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        assert 'locked' in project.run('true', status=125)
    finally:
        os.close(fd)
    assert project.run('echo fine') == 'fine\n'


def test_left_by_a_warden_that_was_killed(who, work):
    """Their mode tells that they were made, so the next sandbox's end removes them."""
    project = Project(who, f'{work}/p', existing=False)
    for name in ('.git', '.mcp.json'):
        os.mkdir(f'{project.path}/{name}')
        os.chmod(f'{project.path}/{name}', 0o1755)
    os.mkdir(f'{project.path}/.vscode')  # the user's own
    project.own()
    os.chmod(f'{project.path}/.git', 0o1755)
    os.chmod(f'{project.path}/.mcp.json', 0o1755)
    project.run('true')
    assert sorted(os.listdir(project.path)) == ['.vscode', 'a.txt']


# ---- what appears

ENTRIES = os.path.join(ROOT, 'src/box/wire/project.h')


def kept_from():
    """Names that are made if missing, with what tells in a home that something acts on them."""
    with open(ENTRIES, encoding='utf-8') as f:
        rows = re.findall(r'^\t\{ "([^"/]+)",\s+BECOMES_\w+(.*?) \},$', f.read(), re.M | re.S)
    found = {name: re.findall(r'"([^"]+)"', rest) for name, rest in rows if 'of_home' not in rest}
    assert len(found) > 12 and found['.codex'] == ['.codex'] and len(found['.vscode']) > 8
    return found


@pytest.fixture
def home(who, work):
    """Makes a home with that in it; what tells programs of it."""
    def make(name, *inside, git=''):
        path = f'{work}/{name}'
        os.mkdir(path)
        for one in inside:
            os.makedirs(f'{path}/{one}')
        if git:
            with open(f'{path}/.gitconfig', 'w', encoding='utf-8') as f:
                f.write(git)
        subprocess.run(['chown', '-R', f'{who.uid}:{who.uid}', path], check=True)
        return {'HOME': path, 'XDG_CONFIG_HOME': f'{path}/.config',
                'XDG_DATA_HOME': f'{path}/.local/share'}
    return make


def appear(project, env):
    """Names that the folder has only while a sandbox runs."""
    own = set(os.listdir(project.path))
    done = project.who.run('run', '-v', f'{project.path}:/w:rw', '--', 'ls', '-A', '/w', env=env)
    assert done.returncode == 0, done
    assert set(os.listdir(project.path)) == own
    return set(done.stdout.decode().split()) - own


EXPLICIT = '[safe]\n\tbareRepository = explicit\n'


@pytest.mark.parametrize('kind', ['repository', 'worktree', 'none'])
def test_what_appears_in_the_folder(who, work, home, kind):
    """Nothing that no program of this host acts on; for git what its configuration asks for."""
    project = Project(who, f'{work}/p', existing=False)
    if kind == 'repository':
        subprocess.run([*GIT, 'init', '-q', project.path], check=True)
    elif kind == 'worktree':
        project.put('.git', 'gitdir: /nonexistent/x\n')
    project.own()
    new = {'.git'} if kind == 'none' else set()
    bare = set() if kind == 'worktree' else {'commondir', 'refs'}
    assert appear(project, home('empty')) == new | bare
    for i, git in enumerate((EXPLICIT, '[safe]\nbarerepository=all\n' + EXPLICIT)):
        assert appear(project, home(f'explicit{i}', git=git)) == new
    for i, git in enumerate(('[safe]\n\tbareRepository = all\n', EXPLICIT + '[wrong',
                             EXPLICIT + '[safe]\n\tbareRepository = all\n')):
        assert appear(project, home(f'not{i}', git=git)) == new | bare
    # where programs keep their settings elsewhere it is not known which are used
    missing = {name for name, _ in kept_from().items()} - {'objects', '.git'}
    missing = (missing - {'commondir', 'refs'} | new | bare) - set(os.listdir(project.path))
    for name in 'XDG_CONFIG_HOME', 'XDG_DATA_HOME':
        assert appear(project, {**home(name), name: f'{work}/elsewhere'}) == missing
    assert appear(project, {**home('gone'), 'HOME': '/nonexistent'}) == missing


def test_what_each_program_of_the_host_acts_on(who, work, home):
    """It can't be made where that is used, by any of the signs of it, and is told of elsewhere."""
    kept = kept_from()
    project = Project(who, f'{work}/p', existing=False)
    for i, sign in enumerate(sorted({one for signs in kept.values() for one in signs})):
        env = home(f'home{i}', sign)
        names = {name for name, signs in kept.items() if sign in signs}
        assert appear(project, env) == names | {'.git', 'commondir', 'refs'}, sign
        line = 'cd /w; ' + '; '.join(f'(mkdir {n}; echo evil > {n}; mv -T b.txt {n}) 2>/dev/null '
                                     f'&& echo {n}' for n in sorted(names)) + '; true'
        done = who.run('run', '-v', f'{project.path}:/w:rw', '--', 'sh', '-c', line, env=env)
        assert done.stdout == b'', (sign, done)
    env = home('empty')
    done = who.run('run', '-v', f'{project.path}:/w:rw', '--', 'mkdir', '/w/.cursor', '/w/.husky',
                   env=env)
    for name in '.cursor', '.husky':
        assert f'{project.path}/{name} is new' in done.stderr.decode(), done


def test_git_that_asks_for_no_placeholders_obeys_nothing(who, work, home):
    """With safe.bareRepository; the control is git that has another configuration."""
    project = Project(who, f'{work}/p')
    env = home('explicit', git=EXPLICIT)
    done = who.run('run', '-v', f'{project.path}:/w:rw', '--', 'sh', '-c',
                   BARE.format(top=project.path, more='echo evil > commondir; '), env=env)
    assert done.returncode == 0, done
    assert not git_obeys(project, env)
    assert git_obeys(project, home('other'))


def test_a_folder_of_somebody_else(who, work, home):
    """The home of its owner tells, by /etc/passwd; without one all is kept."""
    if who.uid:
        pytest.skip('a user has no other owner of a folder')
    project = Project(who, f'{work}/p', existing=False)
    env = home('empty')
    owners = {p.pw_uid for p in pwd.getpwall() if p.pw_uid and p.pw_dir == '/bin'}
    for uid, known in [(one, True) for one in owners] + [(1234567, False)]:
        subprocess.run(['chown', '-R', f'{uid}:{uid}', project.path], check=True)
        found = appear(project, env)
        assert ('.codex' in found) != known and '.git' in found, (uid, found)
