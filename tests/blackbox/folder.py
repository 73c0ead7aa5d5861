"""A folder that an image is built from, and programs that stand for others."""

import json
import os
import shutil
import subprocess
import tempfile

import pytest

import image_files as files
from image_files import entry
from test_images import Store, read

REFUSED = 125


class Folder:
    """A folder to build from, and what an identity makes of it."""

    def __init__(self, who, name):
        self.who, self.store = who, Store(who)
        self.path = os.path.join(who.work, name)
        os.mkdir(self.path)

    def put(self, name, content='', mode=0o644):
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(content)
        os.chmod(path, mode)
        return path

    def spec(self, **members):
        self.put('holt.json', json.dumps(members))
        return self

    def give(self):
        """All of it to the identity."""
        subprocess.run(['chown', '-R', f'{self.who.uid}:{self.who.uid}', self.path], check=True)

    def build(self, *arguments, **options):
        self.give()
        return self.who.run('build', self.path, *arguments, **options)

    def ok(self, *arguments, **options):
        done = self.build(*arguments, **options)
        assert done.returncode == 0, done
        return done.stdout.decode()

    def refused(self, why, *arguments, **options):
        before = self.store.tree()
        done = self.build(*arguments, **options)
        assert (done.returncode == REFUSED and done.stdout == b''
                and why in done.stderr.decode()), done
        assert self.store.tree() == before
        return done

    def image(self, name):
        return self.store.json('inspect', name)['image']

    def sh(self, name, line, *options):
        done = self.who.run('run', '--template', name, *options, '--', 'sh', '-c', line)
        assert done.returncode == 0, done
        return done.stdout.decode()


class Fake:
    """A folder with a program that stands for another, first in PATH."""

    def __init__(self, work, name, script):
        self.path, self.log, self.layout = (os.path.join(work.who.work, n)
                                            for n in ('fake', 'fake.log', 'fake-layout'))
        os.mkdir(self.path)
        with open(os.path.join(self.path, name), 'w', encoding='ascii') as f:
            f.write(script)
        os.chmod(os.path.join(self.path, name), 0o755)
        files.layout(self.layout, files.busybox_layer(entry('made', b'made')),
                     run={'WorkingDir': '/bin'})
        with open(self.log, 'x', encoding='ascii'):
            pass
        subprocess.run(['chown', '-R', str(work.who.uid), self.path, self.layout, self.log],
                       check=True)
        self.env = {'PATH': self.path + ':' + work.who.env['PATH'], 'FAKE_LOG': self.log,
                    'FAKE_LAYOUT': self.layout}

    def asked(self):
        return read(self.log).decode().splitlines()

    def remove(self):
        shutil.rmtree(self.path)
        shutil.rmtree(self.layout)
        os.unlink(self.log)


def needs_buildah(work):
    if not shutil.which('buildah'):
        pytest.skip('buildah is not installed: scripts/deps test')
    if work.who.uid:
        pytest.skip('this user has no subordinate ids, which buildah wants')


def build_with_buildah(work):
    """The image of a Containerfile, without anything of buildah's own on this machine."""
    own = tempfile.mkdtemp(dir=work.who.work)
    conf = os.path.join(own, 'storage.conf')
    with open(conf, 'w', encoding='ascii') as f:
        f.write(f'[storage]\ndriver = "vfs"\ngraphroot = "{own}/graph"\nrunroot = "{own}/run"\n')
    try:
        done = work.build(env={'CONTAINERS_STORAGE_CONF': conf})
    finally:
        shutil.rmtree(own)
    assert done.returncode == 0, done


def without_programs(who, *arguments):
    return subprocess.run([*who.prefix, 'env', 'PATH=/nowhere', who.argv()[-1], *arguments],
                          env=who.env, cwd='/', capture_output=True,
                          timeout=60, check=False)


@pytest.fixture
def work(who):
    """A folder, and a store that is there already; removed with all images."""
    made = Folder(who, 'agent-tool')
    made.store.ok('prune')
    yield made
    shutil.rmtree(made.path)
    shutil.rmtree(made.store.path)
