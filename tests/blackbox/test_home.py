"""The data folder: Holt starts with none that others may write to, whatever they put there, and
follows no link in its own."""

import os
import shutil
import subprocess

import pytest

from test_serve import Serve
from who import NOBODY

pytestmark = pytest.mark.rights

OTHER = NOBODY + 1
VERBS = (['serve', '--listen', '127.0.0.1:0', '--pool', '0'], ['run', 'true'], ['mcp'], ['ls'],
         ['auth', 'token'])
PLANT = 'for name in $1; do ln -s "$2/$name" "$0/$name" || exit 1; done'
LINKS = ('audit', 'trust', 'trust.run', 'images', 'registry.db', 'hub.log', 'hub', 'token')


def tree(path):
    """What is below a folder, with modes."""
    return sorted((os.path.join(at, name), os.lstat(os.path.join(at, name)).st_mode)
                  for at, folders, files in os.walk(path) for name in (*folders, *files))


class Planted:
    """A folder in which another user has put links to what only Holt's user may write."""

    def __init__(self, who, path, names):
        self.home, self.target = f'{path}/home', f'{path}/target'
        for folder in (path, self.home, self.target):
            os.mkdir(folder, 0o755)
        for name in ('audit', 'trust/ca-1', 'images'):
            os.makedirs(f'{self.target}/{name}', 0o700)
        with open(f'{self.target}/trust/ca-1/key', 'wb'):
            pass
        os.chmod(self.home, 0o777)
        plants = ['setpriv', f'--reuid={OTHER}', f'--regid={OTHER}', '--clear-groups']
        subprocess.run([*(plants if os.getuid() == 0 else []), 'sh', '-c', PLANT, self.home,
                        ' '.join(names), self.target], check=True, cwd='/')
        for at, folders, files in os.walk(self.target):
            for one in (at, *(os.path.join(at, name) for name in files)):
                os.chown(one, who.uid, who.uid)
        os.chown(self.home, who.uid, who.uid)

    def env(self, who):
        return {**who.env, 'HOLT_HOME': self.home, 'HOLT_SOCKET': ''}


@pytest.fixture
def place(who):
    """Reachable for every user."""
    path = os.path.join(who.top, 'planted')
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize('foreign, mode', [(True, 0o777), (True, 0o755), (False, 0o777),
                                           (False, 0o775), (False, 0o757), (False, 0o1777)])
def test_a_folder_of_others(who, place, foreign, mode):
    if foreign and os.getuid() != 0:
        pytest.skip('needs root: a folder of another user')
    planted = Planted(who, place, LINKS)
    os.chown(planted.home, OTHER if foreign else who.uid, -1)
    os.chmod(planted.home, mode)
    before = tree(place)
    for verb in VERBS:
        done = who.run(*verb, env=planted.env(who), text=True)
        cause = 'belongs to another user' if foreign else 'others may write'
        assert done.returncode == 125 and cause in done.stderr, (verb, done)
        assert 'chown, chmod go-w' in done.stderr, done.stderr
        assert tree(place) == before, verb


def test_a_folder_of_root(who, place):
    """As it may be made for a user who has no home: what is root's is nobody's trap."""
    os.mkdir(place, 0o755)
    os.chown(place, 0 if os.getuid() == 0 else who.uid, -1)
    done = who.run('run', 'true', env={'HOLT_HOME': place})
    assert done.returncode == 0, done


def test_links_that_are_left(who, place):
    """Whoever closes the folder has not removed them."""
    planted = Planted(who, place, ('audit',))
    os.chmod(planted.home, 0o700)
    before = tree(planted.target)
    for verb in VERBS[:3]:
        done = who.run(*verb, env=planted.env(who), text=True)
        assert done.returncode == 125 and "audit log's folder is a link" in done.stderr, done
    assert tree(planted.target) == before
    os.unlink(f'{planted.home}/audit')
    os.symlink(f'{planted.target}/trust', f'{planted.home}/trust')
    with Serve(who, planted.home, '--listen', '127.0.0.1:0', '--pool', '0') as hub:
        hub.works()
    assert tree(planted.target) == before
