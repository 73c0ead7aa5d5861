"""Images as other programs write them: OCI layouts, archives of docker save,
and layers with whatever in them."""

import gzip
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import tarfile

ARCH = {'x86_64': 'amd64', 'aarch64': 'arm64'}[platform.machine()]
OCI = 'application/vnd.oci.image.'
LAYER = OCI + 'layer.v1.tar'


def entry(name, content=b'', mode=0o644, kind=tarfile.REGTYPE, link='', size=None, **pax):
    """One entry of a tar, for layer()."""
    info = tarfile.TarInfo(name)
    info.mode, info.type, info.linkname = mode, kind, link
    info.size = (len(content) if size is None else size) if kind == tarfile.REGTYPE else 0
    info.pax_headers = {k.replace('__', '.'): v for k, v in pax.items()}
    return info, content


def folder(name, mode=0o755):
    return entry(name, mode=mode, kind=tarfile.DIRTYPE)


def symlink(name, target):
    return entry(name, mode=0o777, kind=tarfile.SYMTYPE, link=target)


def hardlink(name, target):
    return entry(name, kind=tarfile.LNKTYPE, link=target)


def layer(*entries):
    """The bytes of a tar."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT) as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content) if info.isreg() else None)
    return out.getvalue()


def sha256(data):
    return 'sha256:' + hashlib.sha256(data).hexdigest()


def gzipped(data):
    return gzip.compress(data, 1, mtime=0)


class Layout:
    """An OCI layout that is being made: blobs, and what the index says."""

    def __init__(self, path):
        self.path = path
        os.makedirs(os.path.join(path, 'blobs/sha256'))
        self.manifests = []
        self.put('oci-layout', b'{"imageLayoutVersion": "1.0.0"}')

    def put(self, name, data):
        with open(os.path.join(self.path, name), 'wb') as f:
            f.write(data)

    def blob(self, media_type, data, **more):
        if not isinstance(data, bytes):
            data = json.dumps(data).encode()
        self.put('blobs/sha256/' + sha256(data)[7:], data)
        return {'mediaType': media_type, 'digest': sha256(data), 'size': len(data), **more}

    def image(self, layers, run=None, ref=None, compress=gzipped, config=None, manifest=None,
              layer_descs=None, **more):
        """Adds an image of tars. config, manifest: what takes the place of members of those
        documents."""
        how = LAYER if compress is None else LAYER + ('+zstd' if compress.__name__ == 'zstd'
                                                      else '+gzip')
        config = {'architecture': ARCH, 'os': 'linux', 'config': run or {},
                  'rootfs': {'type': 'layers', 'diff_ids': [sha256(t) for t in layers]},
                  **(config or {})}
        descs = layer_descs or [self.blob(how, compress(t) if compress else t) for t in layers]
        desc = self.blob(OCI + 'manifest.v1+json', {
            'schemaVersion': 2, 'mediaType': OCI + 'manifest.v1+json',
            'config': self.blob(OCI + 'config.v1+json', config),
            'layers': descs, **(manifest or {})}, **more)
        if ref:
            desc['annotations'] = {'org.opencontainers.image.ref.name': ref}
        self.manifests.append(desc)
        return desc

    def write(self, **more):
        self.put('index.json',
                 json.dumps({'schemaVersion': 2, 'manifests': self.manifests, **more}).encode())
        return self.path


def layout(path, *layers, **more):
    """The path of an OCI layout with one image of these tars."""
    made = Layout(path)
    made.image(layers, **more)
    return made.write()


def archive_of(path, to, compress=None):
    """The directory as a tar, as an OCI archive is."""
    with tarfile.open(to, 'w:' + (compress or '')) as tar:
        tar.add(path, '.')
    return to


def docker_save(to, layers, run=None, tags=('box:1',), links=(), **config):
    """What docker save wrote before it wrote OCI layouts; links:
    layers that are links to others."""
    text = json.dumps({'architecture': ARCH, 'os': 'linux', 'config': run or {},
                       'rootfs': {'type': 'layers', 'diff_ids': [sha256(t) for t in layers]},
                       **config}).encode()
    names, files = [], []
    for i, data in enumerate(layers):
        names.append(f'{i:064x}/layer.tar')
        files.append(folder(f'{i:064x}'))
        files.append(symlink(names[i], f'../{links[i]:064x}/layer.tar') if i in links
                     else entry(names[i], data))
    config_name = sha256(text)[7:] + '.json'
    manifest = [{'Config': config_name, 'RepoTags': list(tags) or None, 'Layers': names}]
    with open(to, 'wb') as f:
        f.write(layer(*files, entry(config_name, text),
                      entry('manifest.json', json.dumps(manifest).encode())))
    return to


def busybox_layer(*more):
    """A root with a static busybox and a few of its names."""
    with open('/bin/busybox', 'rb') as f:
        program = f.read()
    names = ['sh', 'true', 'id', 'env', 'cat', 'ls', 'pwd', 'stat', 'echo', 'whoami', 'touch',
             'sleep', 'test']
    return layer(folder('bin'), entry('bin/busybox', program, 0o755),
                 *[symlink('bin/' + n, 'busybox') for n in names], folder('etc'),
                 entry('etc/passwd',
                       b'root:x:0:0:root:/root:/bin/sh\napp:x:10001:10001::/srv/app:/bin/sh\n'),
                 entry('etc/group', b'root:x:0:\napp:x:10001:\n'), folder('root', 0o700), *more)


def packages_with(*wanted):
    """The packages of the Debian that this is which every Debian has, those wanted,
    and what they all depend on."""
    listed = subprocess.run(['dpkg-query', '-W', '-f',
                             '${Package}\t${Essential}\t${Pre-Depends},${Depends}\t${Status}\n'],
                            capture_output=True, text=True, check=True).stdout
    rows = {p[0]: p for p in (line.split('\t') for line in listed.splitlines())
            if p[3].endswith(' installed')}
    todo, found = [name for name, row in rows.items() if row[1] == 'yes' or name in wanted], set()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [n for n in re.findall(r'(?:^|[,|]) *([a-z0-9.+-]+)', rows[name][2])
                     if n in rows]
    return sorted(found)


def debian_tar(to, *wanted):
    """A root of those packages' files, as they are on this machine,
    and the first users of a new Debian."""
    listed = subprocess.run(['dpkg-query', '-L', *packages_with(*wanted)], capture_output=True,
                            text=True, check=True).stdout
    left_out = re.compile(
        '/usr/share/(doc|man|info|locale|zoneinfo|bash-completion)/|/usr/lib/udev/')
    paths = {'/var/lib/dpkg/status'}
    for path in listed.splitlines():
        if path.startswith('/') and path != '/.' and not left_out.match(path):
            # /bin is /usr/bin
            paths.add(os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)))
    paths |= {'/' + name for name in os.listdir('/') if os.path.islink('/' + name)
              and name.startswith(('bin', 'sbin', 'lib'))}
    with tarfile.open(to, 'w') as tar:
        for path in sorted(p for p in paths if os.path.islink(p) or os.access(p, os.R_OK)):
            tar.add(path, recursive=False)
        for name in ('passwd', 'group'):
            tar.add(f'/usr/share/base-passwd/{name}.master', f'etc/{name}')
    return to


def by_umoci(path, data, *config):
    """An OCI layout of a tar, with one image, called image."""
    image = path + ':image'
    for words in (['init', '--layout', path], ['new', '--image', image],
                  ['raw', 'add-layer', '--image', image, data],
                  ['config', '--image', image, *config]):
        subprocess.run(['umoci', *words], check=True, cwd='/', capture_output=True)
    return path


def by_skopeo(layout_path, to, name):
    """The same as docker save writes it."""
    subprocess.run(['skopeo', '--insecure-policy', 'copy', f'oci:{layout_path}:image',
                    f'docker-archive:{to}:{name}'], check=True, cwd='/',
                   capture_output=True)
    return to


def unpacked(data, to):
    os.mkdir(to)
    subprocess.run(['tar', '-C', to, '-xpf', data], check=True)
    return to
