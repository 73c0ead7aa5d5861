"""`holt agent run --worktree`: an agent on a branch of its own, and what brings its work back."""

import os
import subprocess

import pytest

from test_agent_run import hub, shared  # noqa: F401

BYTES = bytes(range(256)) * 8


def git(hub, *words, cwd=None):
    """The user's, in the folder."""
    done = subprocess.run(
        ['git', '-c', 'user.name=U', '-c', 'user.email=u@x', *words], check=False,
        cwd=cwd or hub.project, user=hub.who.uid, group=hub.who.uid, extra_groups=[],
        env={'PATH': os.environ['PATH'], 'HOME': str(hub.top)}, capture_output=True)
    assert done.returncode == 0, done
    return done.stdout.decode()


def write(hub, path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    for at in (path, path.parent):
        os.chown(at, hub.who.uid, hub.who.uid)


@pytest.fixture
def project(hub):  # noqa: F811
    git(hub, 'init', '-q', '-b', 'main')
    for name, content in (('gone', b'1\n'), ('both', b'a\nb\nc\nd\ne\n'), ('bin', BYTES),
                          ('mine', b'mine\n'), ('.gitignore', b'ignored\nlog\n'), ('log', b'1\n')):
        write(hub, hub.project / name, content)
    git(hub, 'add', '-A', '-f')
    git(hub, 'commit', '-q', '-m', 'one')
    yield hub.project
    for name in hub.names():
        hub.ok('down', name)
    for path in hub.top.glob('project-*'):
        subprocess.run(['rm', '-rf', str(path)], check=True)


def start(hub, *more):
    done = hub.agent('tui', '-d', *more)
    assert done.returncode == 0, done
    return done.stdout.decode().strip()


def inside(hub, box, script, where):
    return hub.ok('exec', '-w', str(where), box, '--', 'sh', '-ec', script)


def bring(hub, word, *more):
    return hub.run('agent', word, '-w', str(hub.project), *more)


def test_there_and_back(hub, project):  # noqa: F811
    """All kinds of changes come, once each; the folder is left as it is until then."""
    write(hub, project / 'mine', b'not committed\n')
    before = git(hub, 'status', '--porcelain')
    box, tree = start(hub, '--worktree', 'fix/it'), hub.top / 'project-fix-it'
    said = inside(hub, box, 'git status --porcelain; git branch --show-current', tree)
    assert said == b'fix/it\n'
    inside(hub, box, r'''
        rm gone; echo new >new; sed -i s/a/A/ both; printf '\0\1' >bin; echo x >ignored; echo 2 >log
        mkdir -p sub/.vscode; echo y >sub/y; chmod +x sub/y; ln -s /etc/passwd sub/link
        echo '{}' >sub/.vscode/tasks.json
        git add new; git -c user.name=a -c user.email=a@x commit -qm new; echo more >>new
        git init -q nested; echo z >nested/z''', tree)
    assert git(hub, 'status', '--porcelain') == before
    write(hub, project / 'both', b'a\nb\nc\nd\nE\n')
    for words in ((), ('fix/it',)):
        said = bring(hub, 'diff', *words)
        assert said.returncode == 0 and b'nested/: left out' in said.stderr, said
        for part in (b'+A', b'deleted file', b'Binary', b'+new\n+more', b'sub/link'):
            assert part in said.stdout, said
        assert b'ignored' not in said.stdout.replace(b'.gitignore', b'')
    assert bring(hub, 'apply').returncode != 0  # nobody to ask
    assert git(hub, 'status', '--porcelain') != '' and (project / 'gone').exists()
    done = bring(hub, 'apply', '-y')
    assert done.returncode == 0, done
    assert not (project / 'gone').exists() and not (project / 'sub/.vscode').exists()
    assert b'sub/.vscode/tasks.json: left out' in done.stderr
    assert (project / 'both').read_bytes() == b'A\nb\nc\nd\nE\n'
    assert (project / 'new').read_bytes() == b'new\nmore\n'
    assert (project / 'log').read_bytes() == b'2\n'  # git has it, though it is ignored
    assert (project / 'bin').read_bytes() == b'\0\1'
    assert (project / 'mine').read_bytes() == b'not committed\n'
    assert os.access(project / 'sub/y', os.X_OK)
    assert os.readlink(project / 'sub/link') == '/etc/passwd'
    assert git(hub, 'branch', '--show-current') == 'main\n'
    # it goes on: the same sandbox and tree; what was left out is still shown
    assert start(hub, '--worktree', 'fix/it') == box
    left = bring(hub, 'diff').stdout
    assert left.count(b'diff --git') == 1 and b'sub/.vscode/tasks.json' in left, left
    inside(hub, box, 'echo again >>new', tree)
    assert bring(hub, 'apply', '-y').returncode == 0
    assert (project / 'new').read_bytes() == b'new\nmore\nagain\n'


def test_conflicts(hub, project):  # noqa: F811
    """They are named, and nothing is changed; --force takes the agent's."""
    box, tree = start(hub, '--worktree', 'w'), hub.top / 'project-w'
    inside(hub, box, 'echo agent >both; echo agent >new', tree)
    write(hub, project / 'both', b'user\n')
    write(hub, project / 'new', b'user\n')
    done = bring(hub, 'apply', '-y')
    assert done.returncode == 3, done
    assert b'both: was changed here' in done.stderr and b'new: was changed here' in done.stderr
    assert (project / 'both').read_bytes() == (project / 'new').read_bytes() == b'user\n'
    assert bring(hub, 'apply', '-y', '--force').returncode == 0
    assert (project / 'both').read_bytes() == b'agent\n'


def test_nothing_of_the_repository_runs(hub, project):  # noqa: F811
    """Hooks, filters, monitors and remotes, of the repository and of the tree, in each step."""
    seen = hub.top / 'bin' / 'seen'
    evil = f'touch {seen}; cat'
    for name, value in (('filter.x.smudge', evil), ('filter.x.clean', evil),
                        ('diff.x.textconv', evil), ('diff.x.command', evil),
                        ('merge.x.driver', evil), ('core.fsmonitor', evil),
                        ('diff.external', evil), ('core.pager', evil)):
        git(hub, 'config', name, value)
    write(hub, project / '.gitattributes', b'* filter=x diff=x merge=x\n')
    hook = project / '.git/hooks/post-checkout'
    for name in ('post-checkout', 'post-index-change', 'reference-transaction', 'pre-commit'):
        write(hub, hook.with_name(name), f'#!/bin/sh\ntouch {seen}\n'.encode())
        hook.with_name(name).chmod(0o755)
    git(hub, '-c', 'core.hooksPath=/dev/null', '-c', 'core.fsmonitor=', 'add', '.gitattributes')
    git(hub, '-c', 'core.hooksPath=/dev/null', '-c', 'core.fsmonitor=', 'commit', '-qm', 'x')
    assert seen.exists()  # they work: the user's git ran one
    seen.unlink()
    box, tree = start(hub, '--worktree', 'w'), hub.top / 'project-w'
    with open(tree / 'both', 'a') as f:
        f.write('more\n')
    inside(hub, box, f"""mkdir n; cd n; git init -q
        git config core.fsmonitor 'touch {seen}'
        git config user.name a; git config user.email a@x
        git commit -q --allow-empty -m x""", tree)
    assert bring(hub, 'diff', 'w').returncode == 0
    assert bring(hub, 'apply', '-y', 'w').returncode == 0
    assert (project / 'both').read_bytes().endswith(b'more\n')
    assert not seen.exists()


def test_what_is_refused(hub, project):  # noqa: F811
    (hub.top / 'project-there').mkdir()
    for branch, why in (('-x', b'no name of a branch'), ('a..b', b'no name of a branch'),
                        ('there', b'was not made'), ('main', b'git failed')):
        done = hub.agent('tui', '-d', '--worktree=' + branch)
        assert done.returncode == 125 and why in done.stderr, done
    assert b'no agent has a worktree' in bring(hub, 'diff').stderr
    for branch in ('a', 'b'):
        start(hub, '--worktree', branch)
    done = bring(hub, 'apply', '-y')
    assert b'branches with a worktree: a, b\n' in done.stderr, done
    assert b'no agent has' in bring(hub, 'diff', 'c').stderr
