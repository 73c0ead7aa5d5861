"""Alpine's package manager as root inside, in a root of busybox and of packages made here. No
release of Debian has apk: this runs where a static one is in PATH or named by HOLT_TEST_APK."""

import os
import shutil
import subprocess

import pytest

import image_files as files
from test_distributions import Template
from test_root import root_in, who  # noqa: F401

APK = os.environ.get('HOLT_TEST_APK') or shutil.which('apk.static') or shutil.which('apk')

pytestmark = pytest.mark.skipif(not APK, reason='no release of Debian has apk')

# Busybox of Debian has no adduser.
PRE_INSTALL = ('#!/bin/sh\nset -e\necho greeter:x:150: >> /etc/group\n'
               'echo greeter:x:150:150::/var/lib/greeter:/bin/sh >> /etc/passwd\n')
POST_INSTALL = ('#!/bin/sh\nset -e\nmkdir -m 2750 /var/lib/greeter\n'
                'chown greeter:greeter /var/lib/greeter\nchmod 2750 /var/lib/greeter\n'
                'chown root:greeter /usr/bin/greet\nchmod 2755 /usr/bin/greet\n')


class Mirror:
    """A repository of signed packages."""

    def __init__(self, work):
        self.path, self.keys, self.key = work + '/repo', work + '/keys', work + '/made.rsa'
        os.mkdir(self.path)
        os.mkdir(self.keys)
        for words in (['genrsa', '-out', self.key, '2048'],
                      ['rsa', '-in', self.key, '-pubout', '-out', self.keys + '/made.rsa.pub']):
            subprocess.run(['openssl', *words], check=True, capture_output=True)

    def apk(self, *words):
        done = subprocess.run([APK, '--keys-dir', self.keys, *words], check=False, cwd='/',
                              capture_output=True)
        assert done.returncode == 0, done

    def add(self, tree, name, scripts=()):
        """A package of the files of a tree, which is removed."""
        for root, _, names in os.walk(tree):
            for path in (root, *(os.path.join(root, n) for n in names)):
                os.chown(path, 0, 0, follow_symlinks=False)
        words = []
        for kind, text in scripts:
            with open(f'{self.path}/{kind}', 'w', encoding='ascii') as f:
                f.write(text)
            words += ['--script', f'{kind}:{self.path}/{kind}']
        info = ['name:' + name, 'version:1.0-r0', 'arch:noarch', 'license:MIT', 'description:test']
        self.apk('mkpkg', '--sign-key', self.key, '--files', tree,
                 *(word for i in info for word in ('--info', i)), *words,
                 '--output', f'{self.path}/{name}-1.0-r0.apk')
        for kind, _ in scripts:
            os.unlink(f'{self.path}/{kind}')
        shutil.rmtree(tree)

    def index(self):
        self.apk('mkndx', '--sign-key', self.key, '--output', self.path + '/Packages.adb',
                 *(f'{self.path}/{name}' for name in sorted(os.listdir(self.path))))


@pytest.fixture(scope='module')
def alpine(who):  # noqa: F811
    """What apk itself installs of the mirror, with apk and the mirror beside it."""
    work = os.path.join(who.top, 'alpine')
    os.mkdir(work)
    mirror, tree, root = Mirror(work), work + '/tree', work + '/root'
    with open(work + '/tar', 'wb') as f:
        f.write(files.busybox_layer(*(files.symlink('bin/' + n, 'busybox') for n in (
            'chmod', 'chown', 'grep', 'mkdir', 'setpriv'))))
    mirror.add(files.unpacked(work + '/tar', tree), 'busybox')
    os.makedirs(tree + '/usr/bin')
    os.makedirs(tree + '/var/lib')
    with open(tree + '/usr/bin/greet', 'w', encoding='ascii') as f:
        f.write('#!/bin/sh\necho hello from $(id -un)\n')
    os.chmod(tree + '/usr/bin/greet', 0o755)
    mirror.add(tree, 'greeter', (('pre-install', PRE_INSTALL), ('post-install', POST_INSTALL)))
    mirror.index()
    shutil.copytree(mirror.keys, root + '/etc/apk/keys')
    mirror.apk('--root', root, '--initdb', '--no-scripts', '--repository',
               mirror.path + '/Packages.adb', 'add', 'busybox')
    os.makedirs(root + '/sbin', exist_ok=True)
    shutil.copy(APK, root + '/sbin/apk')
    shutil.move(mirror.path, root + '/repo')
    with open(root + '/etc/apk/repositories', 'w', encoding='ascii') as f:
        f.write('/repo/Packages.adb\n')
    subprocess.run(['chmod', '-R', 'a+rX', root], check=True)
    done = who.run('images', 'import', root, 'alpine-root', timeout=120)
    assert done.returncode == 0, done.stderr
    yield Template(who, 'alpine-root')
    shutil.rmtree(os.path.join(who.env['XDG_DATA_HOME'], 'holt'))


def test_apk_add(alpine, residue):
    """As on a machine: what it trusts, scripts, a user, a setgid program, a removal."""
    told = root_in(alpine, 'apk update >&2 && apk add greeter >&2 && '
                           'grep greeter /etc/passwd; stat -c "%a %U:%G" /usr/bin/greet '
                           '/var/lib/greeter; greet; apk info -e greeter; '
                           'apk del greeter >&2 && test ! -e /usr/bin/greet && apk info -e busybox')
    assert told == ('greeter:x:150:150::/var/lib/greeter:/bin/sh\n2755 root:greeter\n'
                    '2750 greeter:greeter\nhello from root\ngreeter\nbusybox\n'), told


def test_apk_as_uid_1000(alpine, residue):
    """What root inside replaces."""
    assert alpine.run('apk', 'add', 'greeter').returncode != 0
