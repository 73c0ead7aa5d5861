"""holt images: what is imported, how it is kept, and hostile archives,
each with a twin that is fine."""

import gzip
import io
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tarfile

import pytest

import host
import image_files as files
from client import until
from image_files import entry, folder, hardlink, layer, symlink

pytestmark = pytest.mark.rights

REFUSED = 125
SMALL = ('--max-size', '64M', '--max-files', '400')


class Store:
    """The images of an identity, and what it can see of them from outside."""

    def __init__(self, who):
        self.who = who
        self.path = os.path.join(who.env['XDG_DATA_HOME'], 'holt/images')

    def __call__(self, *arguments, **options):
        return self.who.run('images', *arguments, **options)

    def ok(self, *arguments, **options):
        done = self(*arguments, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def json(self, *arguments):
        return json.loads(self.ok(*arguments, '-o', 'json'))

    def root(self, name):
        return os.path.join(self.path, 'image', self.json('inspect', name)['image']['digest'],
                            'root')

    def tree(self):
        """Every file of the store with its bytes, but what builds keep of their lines."""
        found = {}
        for at, dirs, names in os.walk(self.path):
            if 'step' in dirs and at == self.path:
                dirs.remove('step')
            for name in names:
                path = os.path.join(at, name)
                with (open(path, 'rb') if not os.path.islink(path)
                      else io.BytesIO(os.readlink(path).encode()) as f):
                    found[path] = f.read()
            found[at] = sorted({*dirs, *names})
        return found


@pytest.fixture
def store(who):
    made = Store(who)
    yield made
    shutil.rmtree(made.path, ignore_errors=True)


@pytest.fixture
def work(who, tmp_path):
    """A folder for sources that the identity can read."""
    path = os.path.join(who.work, 'sources')
    os.mkdir(path)
    yield path
    shutil.rmtree(path)


def read(*path):
    with open(os.path.join(*path), 'rb') as f:
        return f.read()


# ---- what is imported ----------------------------------------------------------------------------

LAYERS = (
    layer(folder('etc'), entry('etc/a', b'one'), folder('d'), entry('d/x', b'x'),
          entry('d/y', b'y'), folder('o'), entry('o/old', b''), symlink('link', 'd'),
          hardlink('hard', 'etc/a'), entry('kept', b'kept')),
    layer(entry('etc/a', b'two'), entry('d/.wh.x'), folder('o'), entry('o/.wh..wh..opq'),
          entry('o/new', b'new'), entry('link/z', b'z')),
)


def check_layers(root):
    assert read(root, 'etc/a') == b'two' and read(root, 'hard') == b'one'
    assert sorted(os.listdir(root + '/d')) == ['y', 'z'] and os.listdir(root + '/o') == ['new']
    assert os.readlink(root + '/link') == 'd' and read(root, 'kept') == b'kept'


@pytest.mark.parametrize('compress', [None, files.gzipped, 'zstd'], ids=['plain', 'gzip', 'zstd'])
def test_oci_layout(store, work, compress):
    if compress == 'zstd':
        if not shutil.which('zstd'):
            pytest.skip('zstd is not installed')
        def zstd(data):
            return subprocess.run(['zstd', '-q', '-c'], input=data, stdout=subprocess.PIPE,
                                  check=True).stdout
        compress = zstd
    run = {'User': 'app', 'WorkingDir': '/srv/x', 'Env': ['A=1', 'B=b=c'], 'Entrypoint': ['/bin/e'],
           'Cmd': ['c']}
    path = files.layout(work + '/l', *LAYERS, run=run, compress=compress, ref='my/box:2')
    assert store.ok('import', path).startswith('my/box:2  ')
    found = store.json('inspect', 'my/box:2')
    image = found['image']
    assert found['names'] == ['my/box:2'] and image['source'] == 'oci'
    assert image['workdir'] == '/srv/x' and image['env'] == run['Env']
    assert image['entrypoint'] == ['/bin/e'] and image['cmd'] == ['c'] and image['user'] == 'agent'
    assert image['layers'] == [files.sha256(t)[7:] for t in LAYERS]
    check_layers(store.root('my/box:2'))
    assert os.path.isdir(store.root('my/box:2') + '/srv/x')


def test_every_kind_of_source_gives_the_same_tree(store, work):
    path = files.layout(work + '/l', *LAYERS)
    files.archive_of(path, work + '/a.tar')
    files.archive_of(path, work + '/a.tgz', 'gz')
    files.docker_save(work + '/d.tar', LAYERS)
    store.ok('import', path, 'a')
    store.ok('import', work + '/a.tar', 'b')
    store.ok('import', work + '/a.tgz', 'c')
    store.ok('import', work + '/d.tar')  # names itself
    with open(work + '/d.tar', 'rb') as f:
        store.ok('import', '-', 'e:piped', stdin=f)
    for name in ('a', 'b', 'c', 'box:1', 'e:piped'):
        check_layers(store.root(name))
    listed = store.json('ls')
    assert sorted(n for i in listed for n in i['names']) == ['a:latest', 'b:latest', 'box:1',
                                                             'c:latest', 'e:piped']
    assert len(listed) == 2  # one by its manifest, one by its configuration
    table = store.ok('ls').splitlines()
    assert table[0].split() == ['NAME', 'DIGEST', 'SIZE', 'IMPORTED'] and len(table) == 6
    store.ok('import', store.root('a'), 'f')
    check_layers(store.root('f'))
    digest = store.json('inspect', 'f')['image']['digest']
    store.ok('import', store.root('f'), 'g')
    assert store.json('inspect', 'g')['image']['digest'] == digest


def a_root(*more):
    """As docker export writes it: names without "./", devices in /dev, set-id programs, a mark."""
    def device(name):
        return entry(name, kind=tarfile.CHRTYPE)
    return files.busybox_layer(
        entry('.dockerenv'), folder('dev'), device('dev/null'), device('dev/console'),
        folder('dev/pts'), entry('bin/su', b'#!', 0o4755), folder('tmp', 0o1777),
        symlink('lib', 'usr/lib'), folder('usr/lib'), *more)


def test_the_root_of_a_file_system_as_an_archive(store, work):
    """Of docker export, tar -C root or debootstrap: the same image as of the directory."""
    tree = work + '/tree'
    os.mkdir(tree)
    with open(work + '/x.tar', 'wb') as f:
        f.write(a_root())
    with open(work + '/x.tgz', 'wb') as f:
        f.write(files.gzipped(a_root()))
    store.ok('import', work + '/x.tar', 'a')
    store.ok('import', work + '/x.tgz', 'b')
    with open(work + '/x.tar', 'rb') as f:
        store.ok('import', '-', 'c', stdin=f)
    with tarfile.open(work + '/x.tar') as tar:
        members = [m for m in tar.getmembers() if not m.ischr()]
        tar.extractall(tree, members)  # noqa: S202
    os.chmod(tree + '/bin/su', 0o755)
    shutil.rmtree(tree + '/dev/pts')
    os.mkdir(tree + '/dev/pts')
    subprocess.run(['chown', '-R', str(store.who.uid), tree], check=True)
    store.ok('import', tree, 'd')
    files.archive_of(tree, work + '/dotted.tar')
    store.ok('import', work + '/dotted.tar', 'e')
    images = [store.json('inspect', name)['image'] for name in 'abcde']
    assert [i['source'] for i in images] == ['tar', 'tar', 'tar', 'tar', 'tar']
    assert len({i['digest'] for i in images}) == 1
    root = store.root('a')
    assert os.readlink(root + '/lib') == 'usr/lib' and os.path.exists(root + '/.dockerenv')
    assert os.stat(root + '/bin/su').st_mode & 0o7777 == 0o755
    done = store.who.run('run', '--image', 'a', '--', 'sh', '-c', 'test -c /dev/null && echo in')
    assert done.stdout == b'in\n', done
    assert os.listdir(store.path + '/new') == []


def test_archives_of_no_root(store, work):
    """What was packed for something else is no image; a hostile root is refused as a layer is."""
    os.mkdir(work + '/out')
    before = store.ok('ls')
    for i, (why, *entries) in enumerate((
            ('nor the root of a file system', folder('src'), entry('src/main.c')),
            ('nor the root of a file system', entry('README')),
            ('neither a file nor', entry('null', kind=tarfile.CHRTYPE), folder('bin')),
            ('neither a file nor', folder('bin'), entry('devices/null', kind=tarfile.CHRTYPE)),
            ('', folder('bin'), entry('../x')), ('', folder('bin'), hardlink('x', '/etc/passwd')),
            ('', folder('bin'), symlink('l', work + '/out'), entry('l/x')))):
        with open(f'{work}/{i}.tar', 'wb') as f:
            f.write(layer(*entries))
        done = store('import', f'{work}/{i}.tar', 'evil')
        check_refused(done, 'invalid')
        assert why.encode() in done.stderr, done
    assert store.ok('ls') == before and os.listdir(work + '/out') == []
    assert os.listdir(store.path + '/new') == []


def test_names_as_docker_shortens_them(store, work):
    path = files.layout(work + '/l', GOOD)
    for given, name in (('docker.io/my/app:3', 'my/app:3'),
                        ('index.docker.io/other/app', 'other/app:latest'),
                        ('docker.io/library/alpine:3', 'alpine:3'),
                        ('library/debian', 'debian:latest'),
                        ('docker.io/busybox', 'busybox:latest'),
                        ('quay.io/library/x', 'quay.io/library/x:latest'),
                        ('library/a/b', 'library/a/b:latest')):
        assert store.ok('import', path, given).split()[0] == name
        for asked in (given, name):
            assert name in store.json('inspect', asked)['names'], asked
    for reserved in ('docker.io/library/host', 'library/host', 'docker.io/', 'library/'):
        assert store('import', path, reserved).returncode == REFUSED
    store.ok('rm', 'docker.io/my/app:3')
    assert store('inspect', 'my/app:3').returncode == REFUSED


def test_names_of_an_older_store(store, work):
    """They were kept as they were given."""
    store.ok('import', files.layout(work + '/l', GOOD), 'my/app:3')
    with open(store.path + '/names.json', encoding='utf-8') as f:
        old = f.read().replace('my/app:3', 'docker.io/my/app:3')
    with open(store.path + '/names.json', 'w', encoding='utf-8') as f:
        f.write(old)
    for name in ('my/app:3', 'docker.io/my/app:3'):
        assert store.json('inspect', name)['names'] == ['my/app:3']
    store.ok('rm', 'my/app:3')
    assert store.json('ls') == []


def test_docker_save_with_layers_that_are_links(store, work):
    same = LAYERS[0]
    files.docker_save(work + '/d.tar', [same, LAYERS[1], same], links={2: 0})
    store.ok('import', work + '/d.tar', 'x')
    assert read(store.root('x'), 'etc/a') == b'one'


def test_one_of_several(store, work):
    made = files.Layout(work + '/l')
    made.image([layer(entry('one'))], ref='one')
    made.image([layer(entry('two'))], ref='two')
    other = {'architecture': 's390x', 'os': 'linux'}
    made.image([layer(entry('big'))], ref='one', config=other, platform=other)
    path = made.write()
    assert store('import', path).returncode == REFUSED
    store.ok('import', '--ref', 'two', path, 'b')
    store.ok('import', path, '--ref', made.manifests[0]['digest'], 'a')
    assert os.path.exists(store.root('b') + '/two') and os.path.exists(store.root('a') + '/one')


def test_an_index_in_the_index_is_for_several_machines(store, work):
    made = files.Layout(work + '/l')
    here = {'architecture': files.ARCH, 'os': 'linux'}
    made.image([layer(entry('other'))], platform={'architecture': 's390x', 'os': 'linux'})
    made.image([layer(entry('ours'))], platform=here)
    inner = made.blob(files.OCI + 'index.v1+json',
                      {'schemaVersion': 2, 'manifests': made.manifests})
    made.manifests = [inner]
    store.ok('import', made.write(), 'x')
    assert os.path.exists(store.root('x') + '/ours')


def test_what_is_taken_over(store, work):
    sparse = io.BytesIO()
    with tarfile.open(fileobj=sparse, mode='w', format=tarfile.PAX_FORMAT) as tar:
        for info, content in [
                entry('setuid', b'', 0o4755), entry('setgid', b'', 0o2755),
                folder('sticky', 0o1777), folder('closed', 0o000),
                entry('attributes', b'', SCHILY__xattr__user__overlay__opaque='y',
                      SCHILY__xattr__security__capability='x' * 20,
                      SCHILY__xattr__trusted__overlay__redirect='/',
                      SCHILY__xattr__trusted__overlay__opaque='y',
                      SCHILY__xattr__user__overlay__whiteout='y', LIBARCHIVE__xattr__user__x='eA==',
                      SCHILY__acl__access='user::rwx,user:0:rwx,group::rwx,mask::rwx,other::rwx'),
                entry('long/' * 40 + 'n' * 255, b'long'), entry('grüße-日本', b'names'),
                entry('dev/null', kind=tarfile.CHRTYPE),
                entry('.wh..wh.plnk'), entry('./dotted/./x', b'1')]:
            tar.addfile(info, io.BytesIO(content) if info.isreg() else None)
    store.ok('import', files.layout(work + '/l', sparse.getvalue()), 'x')
    root = store.root('x')
    mode = lambda name: os.lstat(os.path.join(root, name)).st_mode & 0o7777
    assert (mode('setuid') == 0o755 and mode('setgid') == 0o755 and mode('sticky') == 0o1777
            and mode('closed') == 0o700)
    assert os.listxattr(root + '/attributes') == []
    assert read(root, 'long/' * 40 + 'n' * 255) == b'long' and read(root, 'grüße-日本') == b'names'
    assert os.listdir(root + '/dev') == [] and not os.path.lexists(root + '/.wh..wh.plnk')
    assert os.lstat(root + '/setuid').st_uid == store.who.uid
    for at in (store.path, store.path + '/image', store.path + '/new', os.path.dirname(root)):
        assert os.lstat(at).st_mode & 0o777 == 0o700


def test_holes_stay_holes(store, work):
    with open(work + '/holes', 'wb') as f:
        f.truncate(32 << 20)
        f.seek(16 << 20)
        f.write(b'middle')
    subprocess.run(['tar', '--sparse', '-cf', work + '/s.tar', '-C', work, 'holes'], check=True)
    store.ok('import', files.layout(work + '/l', read(work, 's.tar')), 'x')
    made = os.stat(store.root('x') + '/holes')
    assert made.st_size == 32 << 20 and made.st_blocks * 512 < 4 << 20
    assert read(store.root('x'), 'holes') == read(work, 'holes')


def test_what_a_root_lacks_is_added(store, work):
    passwd = (b'root:x:0:0:root:/root:/bin/sh\nagent:x:7:7::/:/x\n'
              b'app:x:10001:10001::/srv/app:/bin/sh\n')
    data = layer(folder('etc'), entry('etc/passwd', passwd), symlink('etc/resolv.conf', '../run/x'),
                 symlink('proc', '/etc'), entry('dev', b'a file'), symlink('tmp', '/var/tmp'),
                 symlink('etc/hosts', '/etc/passwd'))
    users = {'': ('agent', '/root'), 'root': ('agent', '/root'), 'app': ('app', '/srv/app'),
             '10001:5': ('app', '/srv/app'), '4711': ('agent', '/home/agent'),
             'nosuch': ('agent', '/home/agent'), 'a:b\nc': ('agent', '/home/agent')}
    for i, (user, (name, home)) in enumerate(users.items()):
        store.ok('import', files.layout(f'{work}/l{i}', data, run={'User': user}), f'x:{i}')
        image, root = store.json('inspect', f'x:{i}')['image'], store.root(f'x:{i}')
        assert (image['user'], image['home']) == (name, home)
        lines = read(root, 'etc/passwd').decode().splitlines()
        assert lines[0] == f'{name}:x:1000:1000:{name}:{home}:/bin/sh'
        assert (len([l for l in lines if l.startswith(name + ':')]) == 1
                and 'root:x:0:0:root:/root:/bin/sh' in lines)
        assert read(root, 'etc/group').startswith(name.encode() + b':x:1000:')
    for name in ('dev', 'proc', 'sys', 'tmp', 'run/shm', 'workspace', 'home'):
        assert os.path.isdir(f'{root}/{name}') and not os.path.islink(f'{root}/{name}')
    assert b'localhost' in read(root, 'etc/hosts') and b'network' in read(root, 'etc/resolv.conf')


def test_json_of_images_is_no_command_to_the_terminal(store, work):
    env = 'A=\x9b1m\x7f\u202eb'
    store.ok('import', files.layout(work + '/l', GOOD, run={'Env': [env]}), 'x')
    for arguments in (('inspect', 'x'), ('ls',)):
        told = store.ok(*arguments, '-o', 'json')
        assert not re.search('[\x7f-\x9f\u202e]', told), told
    assert env in store.json('inspect', 'x')['image']['env']


def test_images_of_umoci(store, work):
    umoci = shutil.which('umoci')
    if not umoci:
        pytest.skip('umoci is not installed: scripts/deps test')
    def run(*arguments):
        subprocess.run([umoci, *arguments], check=True, cwd='/')
    image = work + '/u:one'
    run('init', '--layout', work + '/u')
    run('new', '--image', image)
    os.makedirs(work + '/in/sub')
    os.symlink('sub', work + '/in/link')
    with open(work + '/in/sub/file', 'w', encoding='ascii') as f:
        f.write('of umoci')
    run('insert', '--rootless', '--image', image, work + '/in', '/top')
    run('insert', '--rootless', '--image', image, '--whiteout', '/top/link')
    run('config', '--image', image, '--config.user', '5:5', '--config.workingdir', '/top',
        '--config.env', 'U=1')
    subprocess.run(['chmod', '-R', 'a+rX', work], check=True)
    store.ok('import', work + '/u', 'x')
    assert (read(store.root('x'), 'top/sub/file') == b'of umoci'
            and os.listdir(store.root('x') + '/top') == ['sub'])
    found = store.json('inspect', 'x')['image']
    assert found['workdir'] == '/top' and 'U=1' in found['env']


# ---- hostile archives ----------------------------------------------------------------------------

LONG = 'p' * 200 + '/'

# What is refused, with its code; and the twin, which differs in that only and is fine.
HOSTILE = {
    'traversal': ('invalid', [entry('../out/x', b'1')], [entry('in/x', b'1')]),
    'traversal in the middle': ('invalid', [entry('a/../../out/x', b'1')],
                                [entry('a/./out/x', b'1')]),
    'traversal to the root': ('invalid', [folder('a/..')], [folder('a/.')]),
    'absolute': ('invalid', [entry('OUT/x', b'1')], [entry('out/x', b'1')]),
    'through an absolute link': ('invalid', [symlink('l', 'OUT'), entry('l/x', b'1')],
                                 [folder('etc'), symlink('l', '/etc'), entry('l/x', b'1')]),
    'through a climbing link': ('invalid', [symlink('l', '../../../../../../../..' + 'OUT'),
                                            entry('l/x', b'1')],
                                [folder('e'), symlink('l', '../../e'), entry('l/x', b'1')]),
    'through a chain of links': ('invalid', [symlink('a', 'b'), symlink('b', 'OUT'), entry(
        'a/x', b'1')], [symlink('a', 'b'), folder('b'), entry('a/x', b'1')]),
    'through a link to itself': ('invalid', [symlink('a', 'a'), entry('a/x', b'1')],
                                 [folder('a'), entry('a/x', b'1')]),
    'through a file': ('invalid', [entry('a', b''), entry('a/x', b'1')],
                       [folder('a'), entry('a/x', b'1')]),
    'a link swapped in': ('invalid', [folder('a'), entry('a/x', b'1'), symlink('a', 'OUT'), entry(
        'a/y', b'1')], [folder('a'), entry('a/x', b'1'), entry('a/y')]),
    'through magic links': ('invalid', [symlink('l', '/proc/self/root/tmp'), entry('l/x', b'1')],
                            [symlink('l', '/tmp'), folder('tmp'), entry('l/x', b'1')]),
    'hard link to outside': ('invalid', [hardlink('h', '/etc/passwd')],
                             [entry('p', b'1'), hardlink('h', 'p')]),
    'hard link by ..': ('invalid', [hardlink('h', '../../../../../../../etc/passwd')],
                        [folder('e'), entry('e/p'), hardlink('h', 'e/p')]),
    'hard link through a link': ('invalid', [symlink('l', 'OUT'), hardlink('h', 'l/secret')], [
        folder('e'), entry('e/p'), symlink('l', 'e'), hardlink('h', 'l/p')]),
    'hard link to a directory': ('invalid', [folder('d'), hardlink('h', 'd')],
                                 [entry('d'), hardlink('h', 'd')]),
    'hard link to itself': ('invalid', [hardlink('h', 'h')], [entry('p'), hardlink('h', 'p')]),
    'character device': ('invalid', [entry('d', kind=tarfile.CHRTYPE)],
                         [entry('dev/d', kind=tarfile.CHRTYPE)]),
    'block device': ('invalid', [entry('sub/dev/d', kind=tarfile.BLKTYPE)],
                     [entry('dev/d', kind=tarfile.BLKTYPE)]),
    'pipe': ('invalid', [entry('p', kind=tarfile.FIFOTYPE)], [entry('p')]),
    'device through a link to /dev': ('invalid', [symlink('x', 'dev'), entry(
        'x/d', kind=tarfile.CHRTYPE)], [folder('dev'), symlink('x', 'dev'), entry('x/d')]),
    'twice': ('invalid', [entry('a', b'1'), entry('a', b'2')], [folder('a'), folder('a')]),
    'twice by two names': ('invalid', [folder('d'), symlink('l', 'd'), entry('d/a'), entry('l/a')],
                           [folder('d'), symlink('l', 'd'), entry('d/a'), entry('l/b')]),
    'a file in place of a directory': ('invalid', [folder('a'), entry('a')],
                                       [folder('a'), entry('b')]),
    'a directory in place of a file': ('invalid', [entry('a'), folder('a')],
                                       [entry('b'), folder('a')]),
    'whiteout by ..': ('invalid', [entry('.wh...')], [entry('.wh.x')]),
    'whiteout of nothing': ('invalid', [entry('a/.wh.')], [entry('a/.wh.a')]),
    'opaque outside': ('invalid', [entry('../.wh..wh..opq')], [entry('a/.wh..wh..opq')]),
    'the root as a file': ('invalid', [entry('.', b'1')], [folder('.')]),
    'a long name': ('invalid', [entry('n' * 256)], [entry('n' * 255)]),
    'a long path': ('deep', [entry(LONG * 20 + 'x')], [entry(LONG * 17 + 'x')]),
    'deep': ('deep', [folder('d/' * 201 + 'x')], [folder('d/' * 150 + 'x')]),
    'deep by links': ('deep', [folder('d/' * 150), symlink('l', 'd/' * 149 + 'd'),
                               folder('l/' + 'e/' * 80 + 'x')],
                      [folder('d/' * 150), symlink('l', 'd/' * 149 + 'd'),
                       folder('l/' + 'e/' * 20 + 'x')]),
    'a huge header': ('invalid', [entry('a', comment='x' * (2 << 20))],
                      [entry('a', comment='x' * 1000)]),
    'many entries': ('too_large', [entry(f'{i}') for i in range(500)],
                     [entry(f'{i}') for i in range(150)]),
    'many whiteouts': ('too_large', [entry(f'.wh.{i}') for i in range(500)],
                       [entry('.wh.first'), folder('d')] + [entry('d/.wh..wh..opq')] * 500),
    'many directories in one name': ('too_large', [folder(f'{k}/' + 'd/' * 150) for k in 'abc'],
                                     [folder(f'{k}/' + 'd/' * 50) for k in 'abc']),
    'a huge hole': ('too_large', [entry('a', b'1\n0\n0\n'.ljust(512, b'\0'), GNU__sparse__major='1',
                                        GNU__sparse__minor='0', GNU__sparse__realsize=str(1 << 50),
                                        GNU__sparse__name='a')],
                    [entry('a', b'1')]),
    'a huge size': ('too_large', [entry('a', b'', GNU__sparse__size=str(
        1 << 45), GNU__sparse__numblocks='1', GNU__sparse__map='0,0')], [entry('a', b'1')]),
}
WORDS = {'invalid': b'in an unknown format', 'too_large': b'--max-size',
         'deep': b'fewer directories'}


def check_refused(done, code):
    assert done.returncode == REFUSED and done.stdout == b'', done
    assert done.stderr.startswith(b'holt: ') and WORDS[code] in done.stderr, done.stderr
    assert b'\x1b' not in done.stderr and len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize('name', HOSTILE)
def test_hostile_layer(store, work, name):
    code, bad, good = HOSTILE[name]
    out = work + '/out'
    os.mkdir(out)
    with open(out + '/secret', 'w', encoding='ascii') as f:
        f.write('secret')
    def place(info, content):
        info.name, info.linkname = info.name.replace('OUT', out), info.linkname.replace('OUT', out)
        return info, content
    first = layer(entry('first', b'1'))
    evil, fine = layer(*[place(*e) for e in bad]), layer(*[place(*e) for e in good])
    store.ok('import', files.layout(work + '/fine', first, fine), 'fine', *SMALL)
    before = store.tree()
    check_refused(store('import', files.layout(work + '/evil', first, evil), 'evil', *SMALL), code)
    assert store.tree() == before
    assert os.listdir(out) == ['secret'] and os.stat(out + '/secret').st_nlink == 1
    assert sorted(os.listdir(work)) == ['evil', 'fine', 'out']


ACROSS = {  # the first layer, the second one, the twin of the second
    'a link of the layer before': ([symlink('l', 'OUT')], [entry('l/x')], [entry('m/x')]),
    'hard link through a link of the layer '
          'before': ([symlink('l', 'OUT')], [hardlink('h', 'l/secret')], [hardlink('h', 'l')]),
    'whiteout through a file': ([entry('f')], [entry('f/.wh.x')], [entry('.wh.f')]),
    'a file where files of the same layer are': ([folder('a')], [entry('a/x'), entry('a')],
                                                 [entry('a/x'), entry('b')]),
}


@pytest.mark.parametrize('name', ACROSS)
def test_hostile_layers_together(store, work, name):
    def place(entries):
        for info, _ in entries:
            info.linkname = info.linkname.replace('OUT', work + '/out')
        return layer(*entries)
    first, evil, fine = [place(e) for e in ACROSS[name]]
    os.mkdir(work + '/out')
    with open(work + '/out/secret', 'w', encoding='ascii') as f:
        f.write('secret')
    store.ok('import', files.layout(work + '/fine', first, fine), 'fine')
    before = store.tree()
    check_refused(store('import', files.layout(work + '/evil', first, evil), 'evil'), 'invalid')
    assert (store.tree() == before and os.listdir(work + '/out') == ['secret']
            and os.stat(work + '/out/secret').st_nlink == 1)


def test_layers_replace_files_by_directories_and_back(store, work):
    first = layer(entry('f'), folder('d'), entry('d/x'), symlink('s', 'd'), folder('opq'),
                  entry('opq/sub/old'))
    second = layer(folder('f'), entry('f/new'), entry('d'), folder('s'), entry('s/y'),
                   entry('opq/sub/new'), entry('opq/.wh..wh..opq'))
    store.ok('import', files.layout(work + '/l', first, second), 'x')
    root = store.root('x')
    assert (os.listdir(root + '/f') == ['new'] and os.path.isfile(root + '/d')
            and os.listdir(root + '/s') == ['y'])
    assert os.listdir(root + '/opq/sub') == ['new']


@pytest.mark.parametrize('evil', [
    [folder('d/' * 1990 + 'x')],
    [entry('d/' * 1990 + 'x')],
    [folder('d/' * 199), symlink('l', 'd/' * 198 + 'd'), folder('l/' + 'e/' * 1800)],
    [folder('d/' * 1990), folder('d/' * 1990)]], ids=['directory', 'file', 'link', 'twice'])
def test_nothing_is_made_so_deep_that_it_could_not_be_removed(store, work, evil):
    """By somebody who may open 1,024 files: then every later import would fail,
    as each removes leftovers first."""
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    store.ok('import', files.layout(work + '/fine', layer(folder('d/' * 190))), 'fine')
    before = store.tree()
    for name, path in (('layer', files.layout(work + '/evil', layer(*evil))),
                       ('archive', work + '/evil.tar')):
        if name == 'archive':
            with open(path, 'wb') as f:
                f.write(layer(*evil))
        check_refused(store('import', path, 'evil', preexec_fn=few), 'deep')
        assert store.tree() == before, name


def test_an_archive_that_never_ends(store, work):
    """Behind the end of what it is compressed with, where nobody looks for more."""
    files.archive_of(files.layout(work + '/l', layer(entry('a'))), work + '/a.tgz', 'gz')
    with subprocess.Popen(['sh', '-c', 'cat "$0"; exec cat /dev/zero', work + '/a.tgz'],
                          stdout=subprocess.PIPE) as endless:
        check_refused(store('import', '-', 'evil', *SMALL, stdin=endless.stdout), 'too_large')
        endless.stdout.close()
    assert store.json('ls') == [] and os.listdir(store.path + '/new') == []


def test_whiteouts_by_other_spellings(store, work):
    """What any reader of layers takes for one is one: else two of them see two images."""
    first = layer(*[folder(n) for n in 'abcd'], *[entry(n + '/x') for n in 'abcd'])
    second = layer(folder('.wh.a/'), folder('./.wh.b/.'), symlink('.wh.c', 'x'),
                   folder('d/.wh..wh..opq//'))
    store.ok('import', files.layout(work + '/l', first, second), 'x')
    root = store.root('x')
    assert ([n for n in os.listdir(root) if n in 'abcd' or n.startswith('.')] == ['d']
            and os.listdir(root + '/d') == [])


def bombs(work):
    zeros = layer(entry('zeros', bytes(80 << 20)))
    twice = files.gzipped(files.gzipped(layer(entry('a'))))
    cut = layer(entry('a', bytes(4096)))[:1024]
    return {
        'ratio': ('too_large', files.layout(work + '/1', zeros, compress=gzip.compress), ()),
        'bytes': ('too_large', files.layout(work + '/2', zeros, compress=None), SMALL),
        'compressed twice': ('invalid', files.layout(work + '/3', layer(entry('a')),
                                                     compress=lambda _: twice), ()),
        'cut off': ('invalid', files.layout(work + '/4', cut), ()),
        'no tar': ('invalid', files.layout(work + '/5', os.urandom(9000)), ()),
        'nothing': ('invalid', files.layout(work + '/6', b'', compress=None), ()),
        'broken gzip': ('invalid', files.layout(work + '/7', layer(entry('a')),
                                                compress=lambda t: files.gzipped(t)[:-30]), ()),
    }


def test_bombs_and_broken_streams(store, work):
    store.ok('ls')
    before = store.tree()
    for name, (code, path, limits) in bombs(work).items():
        check_refused(store('import', path, name.replace(' ', '-'), *limits), code)
        assert [p for p in store.tree() if p not in before and not p.endswith('/lock')] == [], name
    store.ok('import', files.layout(work + '/ok', layer(entry('zeros', bytes(80 << 20))),
                                    compress=None), 'zeros')


# ---- hostile documents ---------------------------------------------------------------------------

GOOD = layer(entry('a', b'1'))


def evil_documents():
    def other_layer(made):
        made.blob(files.LAYER, GOOD)
        made.image([GOOD], compress=None)
        made.put('blobs/sha256/' + files.sha256(GOOD)[7:], layer(entry('b', b'1')))

    def replaced(**members):
        return lambda made: made.image([GOOD], manifest=members)

    def desc(media_type=files.LAYER, data=GOOD, **more):
        return lambda made: made.image([GOOD], layer_descs=[{**made.blob(media_type, data),
                                                             **more}])

    def loop(made):
        inner = made.blob(files.OCI + 'index.v1+json', {'schemaVersion': 2, 'manifests': [
            made.blob(files.OCI + 'index.v1+json',
                      {'schemaVersion': 2, 'manifests': [made.image([GOOD])]})]})
        made.manifests = [inner]

    def index(text):
        def make(made):
            made.write = lambda: made.put('index.json', text) or made.path
        return make

    def linked(made):
        made.image([GOOD], compress=None)
        path = os.path.join(made.path, 'blobs/sha256', files.sha256(GOOD)[7:])
        os.unlink(path)
        os.symlink('/etc/passwd', path)

    return {
        'a layer that is another': other_layer,
        'a layer of another size': desc(size=len(GOOD) + 1),
        'a layer that is not there': desc(digest='sha256:' + '0' * 64),
        'a digest that is a path': desc(digest='sha256:../../../../etc/passwd'),
        'a digest of another kind': desc(digest='md5:' + '0' * 32),
        'an unknown kind of layer': desc(files.OCI + 'layer.v1.tar+xz'),
        'a foreign layer': desc('application/vnd.docker.image.rootfs.foreign.diff.tar.gzip',
                                urls=['http://127.0.0.1/x']),
        'a layer at a URL': desc(urls=['http://127.0.0.1/x']),
        'an encrypted layer': desc(files.LAYER + '+gzip+encrypted'),
        'a tar that is another': lambda made: made.image(
            [GOOD], config={'rootfs': {'type': 'layers', 'diff_ids': [files.sha256(b'')]}}),
        'fewer digests than layers': lambda made: made.image(
            [GOOD], config={'rootfs': {'type': 'layers', 'diff_ids': []}}),
        'no layers': lambda made: made.image([]),
        'for another machine': lambda made: made.image([GOOD], config={'architecture': 's390x'}),
        'for another system': lambda made: made.image([GOOD], config={'os': 'windows'}),
        'layers that are no array': replaced(layers={}),
        'a manifest that is none': replaced(mediaType='text/plain'),
        'an environment without names': lambda made: made.image([GOOD], run={'Env': ['=x']}),
        'a relative working directory': lambda made: made.image([GOOD], run={'WorkingDir': 'x'}),
        'a climbing working directory': lambda made: made.image([GOOD],
                                                                run={'WorkingDir': '/../../x'}),
        'indices in indices': loop,
        'no JSON': index(b'{"schemaVersion": 2,'),
        'deep JSON': index(b'[' * 5000 + b']' * 5000),
        'a huge document': index(b'{"manifests": [], "x": "' + b'x' * (5 << 20) + b'"}'),
        'a key twice': index(b'{"manifests": [], "manifests": []}'),
        'an empty index': index(b'{"schemaVersion": 2, "manifests": []}'),
        'a size below nothing': desc(size=-1),
        'a link for a layer': linked,
    }


def test_hostile_documents(store, work):
    store.ok('import', files.layout(work + '/fine', GOOD), 'fine')
    before = store.tree()
    for i, (name, make) in enumerate(evil_documents().items()):
        made = files.Layout(f'{work}/{i}')
        make(made)
        done = store('import', made.write(), 'evil')
        assert done.returncode == REFUSED and done.stdout == b'' and store.tree() == before, (
            name, done.stderr)


def test_hostile_archives_of_docker(store, work):
    def save(name, *entries):
        with open(f'{work}/{name}', 'wb') as f:
            f.write(layer(*entries))
        return f'{work}/{name}'
    config = json.dumps({'os': 'linux', 'architecture': files.ARCH,
                         'rootfs': {'diff_ids': [files.sha256(GOOD)]}}).encode()
    name = files.sha256(config)[7:] + '.json'
    def manifest(**more):
        return entry('manifest.json',
                     json.dumps([{'Config': name, 'Layers': ['l.tar'], **more}]).encode())
    store.ok('import', save('fine', manifest(), entry(name, config), entry('l.tar', GOOD)), 'fine')
    before = store.tree()
    for i, entries in enumerate([
            [manifest(Layers=['../../../../../../etc/passwd']), entry(name, config)],
            [manifest(Layers=['/etc/passwd']), entry(name, config)],
            [manifest(Config='../' * 9 + 'etc/passwd'), entry('l.tar', GOOD)],
            [manifest(Config='x.json'), entry('x.json', config), entry('l.tar', GOOD)],
            [manifest(), entry(name, config), symlink('l.tar', '/etc/passwd')],
            [manifest(), entry(name, config), entry('l.tar', kind=tarfile.FIFOTYPE)],
            [manifest(), entry(name, config), entry('l.tar', layer(entry('../x')))],
            [entry('manifest.json', b'{}')], [entry('x')], [entry('../manifest.json', b'[]')],
            [manifest(RepoTags=['a'] * 2000), entry(name, config), entry('l.tar', GOOD)]]):
        check_refused(store('import', save(f'{i}', *entries), 'evil'), 'invalid')
        assert store.tree() == before, i
    assert store('import', work + '/none', 'evil').returncode == REFUSED


# ---- the store -----------------------------------------------------------------------------------

def test_names(store, work):
    path = files.layout(work + '/l', GOOD)
    for name in ('host', 'HOST', 'a b', '../a', 'a/../b', '', '_a', 'a:', ':a', 'a:b:c d',
                 'a' * 300, 'a\nb', 'ä'):
        done = store('import', path, name)
        assert done.returncode == REFUSED and done.stdout == b'', name
    assert store('import', path).returncode == REFUSED  # it has none of its own
    assert store.json('ls') == []
    store.ok('import', path, 'reg.example:5000/a/b')
    store.ok('import', path, 'b:V1.x_y')
    digest = store.json('inspect', 'b:V1.x_y')['image']['digest']
    for name in (digest, 'sha256:' + digest, digest[:12], 'reg.example:5000/a/b',
                 'reg.example:5000/a/b:latest'):
        assert store.json('inspect', name)['names'] == ['b:V1.x_y', 'reg.example:5000/a/b:latest']
    assert 'V1.x_y' in store.ok('inspect', digest[:12])
    for name in (digest[:11], 'b', 'no', 'sha256:' + 'f' * 64, 'f' * 12):
        assert b'no template' in store('inspect', name).stderr


def test_a_name_moves_and_what_is_left_is_pruned(store, work):
    store.ok('import', files.layout(work + '/1', GOOD), 'x')
    first = store.json('inspect', 'x')['image']['digest']
    store.ok('import', files.layout(work + '/2', layer(entry('b'))), 'x')
    assert store.json('inspect', 'x')['image']['digest'] != first
    assert [i['names'] for i in store.json('ls') if i['image']['digest'] == first] == [[]]
    os.makedirs(store.path + '/new/new-left/root/x/y')
    os.chown(store.path + '/new/new-left', store.who.uid, store.who.uid)
    if os.getuid() == store.who.uid:
        assert store.json('prune') == {'images': 1, 'leftovers': 1, 'steps': 0, 'in_use': 0}
    else:
        shutil.rmtree(store.path + '/new/new-left')
        assert store.json('prune') == {'images': 1, 'leftovers': 0, 'steps': 0, 'in_use': 0}
    assert store.json('prune') == {'images': 0, 'leftovers': 0, 'steps': 0, 'in_use': 0}
    assert len(store.json('ls')) == 1 and os.listdir(store.path + '/new') == []


def test_rm(store, work):
    path = files.layout(work + '/1', GOOD)
    for name in ('a', 'b', 'c'):
        store.ok('import', path, name)
    digest = store.json('inspect', 'a')['image']['digest']
    store.ok('rm', 'a')
    assert store('inspect', 'a').returncode == REFUSED and store.json('inspect', 'b')
    done = store('rm', 'no', 'b')
    assert (done.returncode == REFUSED and b'"no' in done.stderr
            and store.json('inspect', 'c')['names'] == ['c:latest'])
    store.ok('rm', digest[:12])
    assert (store.json('ls') == [] and os.listdir(store.path + '/image')
            == os.listdir(store.path + '/new') == [])
    assert store('rm', 'c').returncode == REFUSED


class Importing:
    """An import from standard input that was given the first part of an archive,
    and has begun to read it."""

    def __init__(self, store, name, data):
        self.proc = subprocess.Popen(store.who.argv('images', 'import', '-', name),
                                     env=store.who.env, stdin=subprocess.PIPE,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd='/')
        self.proc.stdin.write(data)
        self.proc.stdin.flush()
        self.reader = until(self.find_reader, what='a process that unpacks')

    def find_reader(self):
        with open(f'/proc/{self.proc.pid}/task/{self.proc.pid}/children', encoding='ascii') as f:
            found = f.read().split()
        return (int(found[0]) if found and b'Seccomp:\t2' in read(f'/proc/{found[0]}/status')
                else None)

    def kill(self):
        self.proc.kill()
        self.proc.wait()
        self.proc.stdin.close()
        until(lambda: self.reader not in host.below(), what='the end of the process that unpacks')


def test_an_import_that_is_killed_leaves_nothing_but_what_prune_removes(store, work):
    """At whatever point: it is fed part by part, so it is known where it stands."""
    data = read(files.docker_save(work + '/d.tar', [layer(entry('big', os.urandom(1 << 20)))]))
    store.ok('import', files.layout(work + '/l', GOOD), 'kept')
    before = store.tree()
    for part in (1, 512, len(data) // 3, len(data) // 2, len(data) - 1):
        Importing(store, 'x', data[:part]).kill()
        assert len(os.listdir(store.path + '/new')) == 1
        assert store.json('prune') == {'images': 0, 'leftovers': 1, 'steps': 0, 'in_use': 0}
        assert store.tree() == before, part
    Importing(store, 'x', data[:9000]).kill()
    store.ok('import', work + '/d.tar', 'x')  # removes what is left, too
    assert os.listdir(store.path + '/new') == []


def test_what_unpacks_has_no_rights_and_nothing_open_of_others(store, work):
    """The inside of it: tests/unit/box_confine.c."""
    data = read(files.docker_save(work + '/d.tar', [layer(entry('big', os.urandom(1 << 20)))]))
    running = Importing(store, 'x', data[:len(data) // 2])
    status = dict(re.findall(r'^(\w+):\t(.*)$', read(f'/proc/{running.reader}/status').decode(),
                             re.M))
    assert (int(status['CapEff'], 16) == int(status['CapPrm'], 16) == 0
            and status['NoNewPrivs'] == '1' and status['Seccomp'] == '2')
    opened = {fd: os.readlink(f'/proc/{running.reader}/fd/{fd}')
              for fd in os.listdir(f'/proc/{running.reader}/fd')}
    source = os.readlink(f'/proc/{os.getpid()}/fd/{running.proc.stdin.fileno()}')
    others = [at for fd, at in opened.items() if fd != '2' and at != source
              and not at.startswith(store.path + '/new/')]
    assert len(others) == 1 and others[0].startswith('pipe:'), opened  # where its answer goes
    running.kill()
    store.ok('prune')


def test_a_name_that_can_t_be_written_leaves_no_image(store, work):
    path = files.layout(work + '/l', GOOD)
    store.ok('ls')
    # stands for any fault: the last step of an import fails
    os.mkdir(store.path + '/names.json.new')
    try:
        done = store('import', path, 'x')
        assert done.returncode == REFUSED and done.stdout == b''
        assert os.listdir(store.path + '/image') == os.listdir(store.path + '/new') == []
    finally:
        os.rmdir(store.path + '/names.json.new')
    store.ok('import', path, 'x')


def test_a_full_disk(store, work):
    """In a mount namespace of the test's own, where the store is on a small disk."""
    if os.getuid():
        pytest.skip('only root mounts')
    store.ok('ls')
    big = files.layout(work + '/big',
                       layer(*[entry(f'f{i}', os.urandom(1 << 20)) for i in range(8)]))
    os.mkdir(work + '/d')
    with open(work + '/d/f', 'wb') as f:
        f.write(os.urandom(8 << 20))
    holt = ' '.join(store.who.argv('images'))
    small = files.layout(work + '/small', GOOD)
    script = f'''
        mount -t tmpfs -o size=4m,mode=700,uid={store.who.uid},gid={store.who.uid} \\
            small {store.path}
        for source in {big} {work}/d; do
            {holt} import $source x; echo "status $?"
            find {store.path} -mindepth 2
        done
        {holt} import {small} fine && {holt} ls'''
    done = subprocess.run(['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script],
                          env=store.who.env, cwd='/',
                          capture_output=True, text=True, timeout=60, check=False)
    lines = done.stdout.splitlines()
    assert (lines[:2] == ['status 125'] * 2 and lines[2].startswith('fine:latest')
            and len(lines) == 5), done
    assert (done.stderr.count('No space left on device') == 2 and done.stderr.count('images prune')
            == 2), done.stderr


def test_a_source_that_is_not_there_or_closed(store, work):
    """Of the host: nothing is said of paths in sandboxes."""
    path = files.docker_save(work + '/closed.tar', [layer(entry('a'))])
    os.chmod(path, 0)
    done = [store('import', work + '/no-such-file', 'x')]
    if store.who.uid:
        done.append(store('import', path, 'x'))
    for one in done:
        assert (one.returncode == REFUSED and len(one.stderr.splitlines()) == 1
                and b'open ' in one.stderr), one


def test_many_at_once(store, work, who):
    path = files.layout(work + '/l', *LAYERS)
    running = [subprocess.Popen(who.argv('images', 'import', path, f'n{i % 4}'), env=who.env,
                                cwd='/', stdout=subprocess.DEVNULL)
               for i in range(8)]
    assert [p.wait() for p in running] == [0] * 8
    assert [i['names'] for i in store.json('ls')] == [[f'n{i}:latest' for i in range(4)]]
    assert os.listdir(store.path + '/new') == []


def test_import_rm_and_prune_at_once(store, work, who):
    """Some of them killed: whatever comes first, there are whole images, and names of them."""
    paths = [files.layout(f'{work}/{i}', layer(entry(f'of-{i}', b'x' * 5000))) for i in range(3)]
    words = [('import', paths[0], 'a'), ('rm', 'a'), ('import', paths[1], 'a'), ('prune',),
             ('import', paths[1], 'b'), ('ls',), ('rm', 'b'), ('import', paths[2], 'c'),
             ('inspect', 'a'), ('import', paths[2], 'b')]
    for turn in range(4):
        running = [subprocess.Popen(who.argv('images', *w), env=who.env, cwd='/',
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                   for w in words]
        for proc in running[turn::4]:
            proc.kill()
        for proc, word in zip(running, words):
            said = proc.communicate()[1]
            assert (proc.returncode in (0, -signal.SIGKILL) or proc.returncode == REFUSED
                    and b'no template' in said), (word, said)
        for digest in os.listdir(store.path + '/image'):
            here = os.path.join(store.path, 'image', digest)
            assert (sorted(os.listdir(here)) == ['image.json', 'root']
                    and [n for n in os.listdir(here + '/root') if n.startswith('of-')])
    for i, name in enumerate('abc'):
        store.ok('import', paths[i], name)
    store.ok('prune')
    assert sorted(i['names'] for i in store.json('ls')) == [['a:latest'], ['b:latest'],
                                                            ['c:latest']]
    assert [os.path.exists(f'{store.root(n)}/of-{i}') for i, n in enumerate('abc')] == [True] * 3
    assert os.listdir(store.path + '/new') == [] and len(os.listdir(store.path + '/image')) == 3
    assert sorted(os.listdir(store.path)) == ['image', 'lock', 'names.json', 'new']


def test_an_rm_that_is_killed_leaves_no_name_that_leads_nowhere(store, work):
    """Before each of its renames, and with the last one killed before it removes the files."""
    path = files.layout(work + '/l', GOOD)
    for call, when in (('renameat2', 1), ('renameat', 1), ('unlinkat', 1), ('unlinkat', 2),
                       ('unlinkat', 3)):
        store.ok('import', path, 'x')
        done = subprocess.run([*store.who.prefix, 'strace', '-f', '-qq', '-o', '/dev/null', '-e',
                               f'trace={call}', '-e',
                               f'inject={call}:signal=KILL:when={when}',
                               *store.who.argv('images', 'rm', 'x')[len(store.who.prefix):]],
                              env=store.who.env, cwd='/', capture_output=True, timeout=60,
                              check=False)
        if done.returncode == 0:
            continue  # there were not so many
        assert done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), done
        names = json.loads(read(store.path, 'names.json'))['names']
        assert all(os.path.exists(f'{store.path}/image/{n["digest"]}/image.json')
                   for n in names), (call, when)
        assert len(names) == (call == 'renameat2')
        store('rm', 'x')
        store.ok('prune')
        assert store.json('ls') == [] and os.listdir(store.path + '/new') == [], (call, when)


def test_a_name_of_an_image_that_is_gone(store, work):
    """Whoever took it away may bring it back: its name stays, and is told."""
    store.ok('import', files.layout(work + '/l', GOOD), 'x')
    shutil.rmtree(os.path.dirname(store.root('x')))
    assert b'not in the data folder' in store('inspect', 'x').stderr
    assert b'x:latest: images/image/' in store('ls').stderr and store.json('ls') == []
    store.ok('prune')
    assert [n['name'] for n in json.loads(read(store.path, 'names.json'))['names']] == ['x:latest']
    store.ok('import', work + '/l', 'x')
    store.ok('inspect', 'x')
    store.ok('rm', 'x')


def test_a_store_that_others_may_read_is_refused(store, work):
    store.ok('ls')
    os.chmod(store.path, 0o755)
    assert b'chmod 700' in store('ls').stderr
