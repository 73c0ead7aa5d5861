"""Whatever the host does to a folder that a sandbox has, the sandbox and its own files stay."""

import os
import shutil
import subprocess

import pytest

from client import until
from rest import Failed
from test_project import Project, await_seal, begin, work  # noqa: F401

pytestmark = pytest.mark.rights

MODES = 'ro', 'rw', 'rw-all'


def remove(path):
    """As `rm -rf` from outside, however often the folder gets something new meanwhile."""
    def attempt():
        shutil.rmtree(path, ignore_errors=True)
        return not os.path.exists(path)
    until(attempt, what='the end of the folder')


def replace(path):
    remove(path)
    os.mkdir(path)


def link(path):
    """At a name that stays as it is for programs of the host."""
    os.rename(f'{path}/.vscode', f'{path}/.vscode.old')
    os.symlink('.vscode.old', f'{path}/.vscode')


def empty(path):
    for name in os.listdir(path):
        if os.path.isdir(f'{path}/{name}') and not os.path.islink(f'{path}/{name}'):
            remove(f'{path}/{name}')
        else:
            os.unlink(f'{path}/{name}')


def swap_parent(path):
    above = os.path.dirname(path)
    os.rename(above, above + '.moved')
    os.mkdir(above)


def fill(path):
    """No inode is left for what has to be made again, already while it is there."""
    with pytest.raises(OSError):
        for i in range(10000):
            os.mkdir(f'{path}/fill{i}')
    os.rename(f'{path}/.vscode', f'{path}/.vscode.old')


ACTS = {
    'removed': remove,
    'renamed': lambda path: os.rename(path, path + '.moved'),
    'made anew': replace,
    'emptied': empty,
    'parent moved': swap_parent,
    'mode 0': lambda path: os.chmod(path, 0),
    'mode 0555': lambda path: os.chmod(path, 0o555),
    'a link': link,
    'full': fill,
    'unmounted': lambda path: subprocess.run(['umount', '-l', path], check=True),
}
MOUNTED = {'full', 'unmounted'}  # what is done to a file system of its own
MISSING = {'removed', 'renamed', 'parent moved'}
GONE = set(ACTS) - {'unmounted', 'emptied'}  # it may not be had anew


def folder(who, above, act):
    os.makedirs(above)
    path = f'{above}/p'
    if act not in MOUNTED:
        return Project(who, path)
    os.mkdir(path)
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=4m,nr_inodes=200', 'none', path],
                   check=True)
    for name in 'a.txt', '.vscode/tasks.json', '.mcp.json':
        os.makedirs(os.path.dirname(f'{path}/{name}'), exist_ok=True)
        with open(f'{path}/{name}', 'w', encoding='ascii') as f:
            f.write('mine')
    subprocess.run(['chown', '-R', f'{who.uid}:{who.uid}', path], check=True)
    project = Project.__new__(Project)
    project.who, project.path = who, path
    return project


def holds(hub, box):
    done = hub.exec(box, 'cat /workspace/own')
    assert done['stdout'] == 'precious', done


def follow(hub, box, act):
    """What may be wanted of it next. A fork needs the folder; a start goes without one that can not
    be had."""
    for verb in 'pause', 'resume':
        hub.post(f'/v1/{verb}', sandbox=box)
    holds(hub, box)
    hub.post(f'/v1/sandboxes/{box}/snapshots')
    try:
        hub.delete(hub.post(f'/v1/sandboxes/{box}/fork')['id'])
    except Failed:
        assert act in GONE
    holds(hub, box)
    hub.post(f'/v1/sandboxes/{box}/stop')
    gone = hub.post('/v1/resume', sandbox=box).get('volumes_gone')
    assert gone in ((['/w'],) if act in MISSING else (None, ['/w']) if act in GONE else (None,))
    holds(hub, box)


@pytest.mark.skipif(os.getuid() != 0, reason='mounts file systems')
def test_what_the_host_does(who, work, begin):  # noqa: F811
    watched = Project(who, f'{work}/watched')
    above = {(act, mode): f'{work}/{i}' for i, (act, mode) in
             enumerate((act, mode) for act in ACTS for mode in MODES)}
    projects = {key: folder(who, path, key[0]) for key, path in above.items()}
    try:
        hub, _ = begin(watched, *(f'{work}:{mode}' for mode in MODES[1:]))
        last = hub.create(volumes=[{'host': watched.path, 'inside': '/w', 'mode': 'rw'}])
        boxes = {}
        for key, project in projects.items():
            boxes[key] = hub.create(volumes=[{'host': project.path, 'inside': '/w',
                                              'mode': key[1]}])
            hub.exec(boxes[key], 'printf precious > own')
        for (act, mode), project in projects.items():
            ACTS[act](project.path)
        # Of what was done before nothing is left to be seen once this is seen.
        os.rename(f'{watched.path}/.vscode', f'{watched.path}/old')
        await_seal(hub, last, '.vscode')
        for key, box in boxes.items():
            holds(hub, box)
        full = projects['full', 'rw'].path
        assert hub.exec(boxes['full', 'rw'], 'echo x > /w/a.txt')['exit_code'] != 0
        empty(full)
        await_seal(hub, boxes['full', 'rw'], '.vscode')
        until(lambda: hub.exec(boxes['full', 'rw'], 'echo x > /w/new')['exit_code'] == 0)
        assert hub.exec(boxes['full', 'rw'], 'echo x > /w/.vscode/new')['exit_code'] != 0
        for key, box in boxes.items():
            follow(hub, box, key[0])
    finally:
        for (act, _), project in projects.items():
            if act in MOUNTED:
                subprocess.run(['umount', '-l', project.path], check=False,
                               stderr=subprocess.DEVNULL)


@pytest.mark.skipif(os.getuid() != 0, reason='mounts file systems')
def test_a_full_file_system_is_named(who, work, begin):  # noqa: F811
    """It is the host's: nothing that is removed in a sandbox helps."""
    project = folder(who, f'{work}/above', 'full')
    try:
        fill(project.path)
        hub, volumes = begin(project)
        with pytest.raises(Failed) as caught:
            hub.create(volumes=volumes)
        error = caught.value.error
        assert 'file system of the folder' in error['cause'], error
        assert "host's disk" in error['remediation'], error
    finally:
        subprocess.run(['umount', '-l', project.path], check=True)
