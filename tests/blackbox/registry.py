"""A registry of npm, one of images and an index of PyPI on loopback: what a test generates, and
npm's packages from the registry that this machine's npm is set to, with its addresses replaced by
this one's."""

import base64
import hashlib
import http.server
import io
import json
import os
import subprocess
import tarfile
import threading
import urllib.error
import urllib.parse
import urllib.request
import zipfile

# An MCP server without an SDK. It says which version it is, and tells what stands in a file.
NODE = r'''#!/usr/bin/env node
const fs = require('fs');
const say = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\n');
const tool = (name, description) => ({ name, description, inputSchema: { type: 'object' } });
const TOOLS = [tool('about', 'Tells about itself.'), tool('reach', 'Tries a host.')];
MORE
const about = () => ({ version: require('./package.json').version, args: process.argv.slice(2),
  home: process.env.HOME, env: Object.keys(process.env).sort(), dep: dep() });
function dep() { try { return require('dep-of-ours'); } catch { return null; } }
function reach(id) {
  require('http').get(process.argv[2], () => said(id, 'reached'))
    .on('error', (e) => said(id, e.code || 'failed'));
}
const said = (id, text) => say({ id, result: { content: [{ type: 'text', text }] } });
function take(m) {
  if (m.method === 'initialize') say({ id: m.id, result: { protocolVersion: '2025-06-18',
    capabilities: { tools: {} }, serverInfo: { name: 'ours', version: '1' } } });
  else if (m.method === 'tools/list') say({ id: m.id, result: { tools: TOOLS } });
  else if (m.method === 'tools/call' && m.params.name === 'reach') reach(m.id);
  else if (m.method === 'tools/call') {
    fs.writeFileSync(process.env.HOME + '/mine', 'x');
    said(m.id, JSON.stringify(about()));
  } else if (m.id !== undefined) say({ id: m.id, error: { code: -32601, message: 'no' } });
}
require('readline').createInterface({ input: process.stdin })
  .on('line', (line) => take(JSON.parse(line)));
'''


def tarball(files, links=(), raw=()):
    """files: name -> text, below package/; links: name -> target; raw: names as they are."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w:gz') as tar:
        for name, text in [*((f'package/{n}', t) for n, t in files.items()), *dict(raw).items()]:
            one = tarfile.TarInfo(name)
            data = text if isinstance(text, bytes) else text.encode()
            one.size, one.mode = len(data), 0o644
            tar.addfile(one, io.BytesIO(data))
        for name, to in dict(links).items():
            one = tarfile.TarInfo(f'package/{name}')
            one.type, one.linkname = tarfile.SYMTYPE, to
            tar.addfile(one)
    return out.getvalue()


def wheel(name, version, source, requires=()):
    """A wheel with a program of its name, which is main() of this source."""
    module, out = name.replace('-', '_'), io.BytesIO()
    info = f'{module}-{version}.dist-info'
    needs = ''.join(f'Requires-Dist: {r}\n' for r in requires)
    with zipfile.ZipFile(out, 'w') as z:
        z.writestr(f'{module}.py', source)
        z.writestr(f'{info}/METADATA', f'Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n'
                   f'License: MIT\nAuthor: A. Uthor\n{needs}')
        z.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\nGenerator: test\n'
                   'Root-Is-Purelib: true\nTag: py3-none-any\n')
        z.writestr(f'{info}/entry_points.txt', f'[console_scripts]\n{name} = {module}:main\n')
        z.writestr(f'{info}/RECORD', '')
    return out.getvalue()


class Registry:
    """packages: name -> version -> bytes of its tarball, with what package.json says in .about."""

    def __init__(self, forward=False):
        self.packages, self.tags, self.wheels, self.asked = {}, {}, {}, []
        self.images = {}  # name -> path of an OCI layout of one image
        self.upstream, self.open = None, threading.Event()  # open: it answers
        self.open.set()
        if forward:
            self.upstream = subprocess.run(
                ['npm', 'config', 'get', 'registry'], check=True, timeout=60, text=True,
                stdout=subprocess.PIPE).stdout.strip().rstrip('/')
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_GET(self):
                registry.asked.append(self.path)
                registry.open.wait()
                status, kind, body = registry.answer(urllib.parse.unquote(self.path),
                                                     self.headers.get('Accept', '*/*'))
                self.send_response(status)
                self.send_header('Content-Type', kind)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.url = f'http://127.0.0.1:{self.server.server_port}'
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.open.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @staticmethod
    def node(*tool):
        """The server, with another tool."""
        return NODE.replace('MORE', f'TOOLS.push(tool{tool!r});' if tool else '')

    def add(self, name, version, files=None, *, links=(), raw=(), tag='latest', **about):
        """Publishes a version, by default with a server."""
        about = {'name': name, 'version': version, 'license': 'MIT', **about}
        if files is None:
            files = {'index.js': self.node()}
            about.setdefault('bin', 'index.js')
        data = tarball({'package.json': json.dumps(about), **files}, links, raw)
        self.packages.setdefault(name, {})[version] = (about, data)
        self.tags.setdefault(name, {})[tag] = version

    def add_wheel(self, name, version, source, requires=()):
        file = f'{name.replace("-", "_")}-{version}-py3-none-any.whl'
        self.wheels.setdefault(name, {})[file] = wheel(name, version, source, requires)

    def add_source(self, name, version):
        """A source archive, whose setup.py would run."""
        data = tarball({}, raw={f'{name}-{version}/setup.py': 'raise SystemExit("it ran")'})
        self.wheels.setdefault(name, {})[f'{name}-{version}.tar.gz'] = data

    def _document(self, name):
        versions = {}
        for version, (about, data) in self.packages[name].items():
            digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
            # A registry's document does not name the host that the client knows it by.
            scripts = about.get('scripts', {})
            versions[version] = {**about, 'dist': {
                'integrity': f'sha512-{digest}',
                'shasum': hashlib.sha1(data, usedforsecurity=False).hexdigest(),
                'tarball': f'http://localhost:1/{name}/-/{version}.tgz'},
                **({'hasInstallScript': True} if {'preinstall', 'install', 'postinstall'} & {
                    *scripts} else {})}
        return {'name': name, 'dist-tags': self.tags[name], 'versions': versions,
                'maintainers': [{'name': 'maintainer', 'email': 'm@example.org'}]}

    def _simple(self, name):
        links = ''.join(
            f'<a href="/files/{f}#sha256={hashlib.sha256(data).hexdigest()}">{f}</a>\n'
            for f, data in self.wheels[name].items())
        return f'<!DOCTYPE html><html><body>{links}</body></html>'.encode()

    def _image(self, path):
        """/v2/NAME/manifests/TAG, or a digest, and /v2/NAME/blobs/DIGEST."""
        name, what, ref = path[4:].rsplit('/', 2) if path != '/v2/' else ('', '', '')
        if path == '/v2/':
            return 200, 'application/json', b'{}'
        if name not in self.images:
            return 404, 'application/json', b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}'
        with open(os.path.join(self.images[name], 'index.json'), 'rb') as f:
            manifest = json.load(f)['manifests'][0]
        digest = ref if ref.startswith('sha256:') else manifest['digest']
        with open(os.path.join(self.images[name], 'blobs/sha256', digest[7:]), 'rb') as f:
            return 200, manifest['mediaType'] if what == 'manifests' else 'application/data', \
                f.read()

    def answer(self, path, accept):
        path = path.split('?')[0]
        if path.startswith('/v2/'):
            return self._image(path)
        if path.startswith('/simple/') and (name := path.split('/')[2]) in self.wheels:
            return 200, 'text/html', self._simple(name)
        if path.startswith('/files/'):
            return 200, 'application/octet-stream', next(
                files[path[7:]] for files in self.wheels.values() if path[7:] in files)
        name, _, rest = path.strip('/').partition('/-/')
        if name in self.packages and rest:
            return 200, 'application/octet-stream', self.packages[name][rest[:-4]][1]
        if name in self.packages:
            return 200, 'application/json', json.dumps(self._document(name)).encode()
        if not self.upstream or path.startswith('/simple/'):
            return 404, 'application/json', b'{"error":"Not found"}'
        return self._forward(path, accept)

    def _forward(self, path, accept):
        try:
            with urllib.request.urlopen(urllib.request.Request(
                    self.upstream + urllib.parse.quote(path, safe='/@'),
                    headers={'Accept': accept}), timeout=120) as got:
                kind, body = got.headers.get('Content-Type', 'application/json'), got.read()
        except urllib.error.HTTPError as failed:
            return failed.code, 'application/json', failed.read()
        if 'json' in kind:
            body = body.replace(self.upstream.encode(), self.url.encode())
        return 200, kind, body
