"""Modules whose entry is `docker run -i IMAGE`, as READMEs have it: a sandbox of the image."""

import json
import os
import re
import shutil
import subprocess

import pytest

import host
import image_files as files
import modules
from client import until
from image_files import entry, folder, symlink
from modules import approve, home, text
from registry import Registry
from rest import fails
from test_hub_cli import Hub
from test_module_packages import entry as edit
from test_module_packages import fetch, images, info, npx, run

pytestmark = [pytest.mark.sandboxes,
              pytest.mark.skipif(not shutil.which('skopeo'), reason='skopeo is missing')]

PYTHON = modules.SERVER + r'''
TOOLS[:] = [tool('about')]
def call(id, name, arguments):
    say({'id': id, 'result': {'content': [{'type': 'text', 'text': json.dumps(
        {'args': sys.argv[1:], 'cwd': os.getcwd(), 'env': dict(os.environ),
         'data': os.path.isdir('/data') and sorted(os.listdir('/data'))})}]}})
main()
'''


def with_libraries(program):
    """Entries of a layer: the program of this host, and what it is linked with."""
    said = subprocess.run(['ldd', program], check=True, stdout=subprocess.PIPE, text=True).stdout
    names = {program, *re.findall(r'(/\S+) \(0x', said)}
    made = []
    for name in sorted(names):
        with open(os.path.realpath(name), 'rb') as f:
            made.append(entry(name[1:], f.read(), 0o755))
    return made


def node_layer(registry):
    return files.layer(*with_libraries(shutil.which('node')), folder('srv'), folder('root'),
                       entry('srv/index.js', registry.node().encode()),
                       entry('srv/package.json', b'{"version": "image"}'))


def python_layer():
    lib = os.path.dirname(json.__file__.removesuffix('/__init__.py'))
    made = [folder(lib[1:])]
    for at in ('', 'json', 'encodings', 'importlib', 'collections', 're'):
        for name in sorted(os.listdir(os.path.join(lib, at))):
            if name.endswith('.py'):
                path = os.path.join(lib, at, name)
                with open(path, 'rb') as f:
                    made.append(entry(path[1:], f.read()))
    return files.layer(*with_libraries(os.path.realpath('/usr/bin/python3')),
                       symlink('usr/bin/python3', os.path.basename(
                           os.path.realpath('/usr/bin/python3'))),
                       *made, folder('app'), entry('app/server.py', PYTHON.encode()))


@pytest.fixture(scope='module')
def registry(tmp_path_factory):
    """A registry with a server in Python; .archives: with one in Node, and another beside it."""
    work = str(tmp_path_factory.mktemp('images'))
    with Registry() as shared:
        shared.layer = python_layer()
        shared.images['mcp/python-ours'] = files.layout(
            work + '/python', shared.layer, compress=None, run={
                'Entrypoint': ['/usr/bin/python3', '/app/server.py'], 'Cmd': ['--by-default'],
                'WorkingDir': '/app', 'Env': ['OF_IMAGE=1', 'MODE=slow']})
        files.layout(work + '/node', node_layer(shared), compress=None, ref='1', run={
            'Cmd': [shutil.which('node'), '/srv/index.js']})
        shared.archive = files.archive_of(work + '/node', work + '/node.tar')
        shared.home = work + '/home'
        os.makedirs(shared.home + '/.config/containers')
        with open(shared.home + '/.config/containers/registries.conf', 'w',
                  encoding='utf-8') as f:
            f.write(f'[[registry]]\nlocation = "{shared.url[7:]}"\ninsecure = true\n')
        subprocess.run(['chmod', '-R', 'a+rX', os.path.dirname(work), work], check=True)
        yield shared


def docker(*words, **more):
    return {'command': 'docker', 'args': ['run', *words], 'approval': 'allow', **more}


def hub_of(me, path, registry, **servers):
    return Hub(me, home(me, path, **servers), '--listen', '127.0.0.1:0',
               env={'HOME': registry.home})


def test_an_image_of_a_registry(me, tmp_path, registry):
    """Pulled once, pinned by its digest, shown; its entry point runs, with what docker was told."""
    before = host.Residue(me.trees)
    name = f'{registry.url[7:]}/mcp/python-ours'
    data, place = tmp_path / 'data', tmp_path / 'hub'
    data.mkdir()
    place.mkdir()
    (data / 'kept').write_text('x')
    servers = {
        'plain': docker('-i', '--rm', name),
        'full': docker('--rm', '-ie', 'TOKEN', '-e', 'MODE=${HOW:-fast}', '--name', 'x', '-v',
                       f'{data}:/data:ro', '--mount', f'type=bind,src={data},dst=/other,readonly',
                       '-w', '/data', '--network', 'none', '-p', '80:80', '--pull', 'always',
                       name, '--one', 'two', env={'TOKEN': 'of-entry', 'UNNAMED': 'x'}),
        'program': docker('-i', '--entrypoint', '/usr/bin/python3', name, '/app/server.py')}
    with hub_of(me, str(place), registry, **servers) as hub:
        seen = fetch(hub, 'plain')
        got = seen['update']
        assert seen['wanted'] == f'image {name}' and got['kind'] == 'image', seen
        assert got['name'] == name and re.fullmatch('sha256:[0-9a-f]{64}', got['version']), got
        assert got['version'] == 'sha256:' + got['image'] and got['bytes'] > 1 << 20, got
        about = run(hub, 'plain')
        assert about['args'] == ['--by-default'] and about['cwd'] == '/app', about
        assert about['env']['MODE'] == 'slow' and about['env']['OF_IMAGE'] == '1', about
        about = run(hub, 'full')
        assert about['args'] == ['--one', 'two'] and about['cwd'] == '/data', about
        assert about['env']['MODE'] == 'fast' and about['env']['TOKEN'] == 'of-entry', about
        assert about['data'] == ['kept'], about
        assert any('--publish has no effect' in a for a in info(hub, 'full')['advice'])
        assert not any('network' in a for a in info(hub, 'full')['advice'])
        assert run(hub, 'program')['args'] == []
        shown = hub.ok('mcp', 'info', 'plain').decode()
        assert f'image {name}@sha256:' in shown, shown
        registry.asked.clear()
    registry.open.clear()  # from now on it does not answer
    with hub_of(me, str(place), registry, **servers) as hub:
        assert json.loads(text(hub, 'plain', 'about'))['args'] == ['--by-default']
        assert not registry.asked
    registry.open.set()
    before.check()


def test_an_image_of_an_archive(me, tmp_path, registry):
    """What `holt images import` has put into the store is what the name means, until it means
    another; and nothing that an image says of itself makes it a package."""
    archive, other = str(tmp_path / 'node.tar'), str(tmp_path / 'other')
    shutil.copy(registry.archive, archive)
    files.layout(other, files.layer(entry('opt/package/package.holt.json', json.dumps({
        'wanted': 'npm ours version: program: template:host', 'kind': 'npm', 'name': 'ours',
        'version': '1.0.0', 'lock': '0' * 64, 'program': ['/bin/true']}).encode())))
    subprocess.run(['chmod', '-R', 'a+rX', str(tmp_path)], check=True)
    ours = docker('-i', '--rm', 'mcp/node-ours', 'x')
    with hub_of(me, str(tmp_path), registry, ours=ours) as hub:
        error = fails(502, 'module_failed', fetch, hub, 'ours')
        assert 'image mcp/node-ours was not pulled' in error['cause'], error
        hub.ok('images', 'import', archive, 'mcp/node-ours')
        os.remove(archive)
        entry_of = docker('-i', '--rm', 'mcp/node-ours', shutil.which('node'), '/srv/index.js', 'x')
        edit(hub, 'ours', **entry_of)
        until(lambda: '/srv/index.js' in info(hub, 'ours')['args'], what='the new entry')
        about = run(hub, 'ours')
        assert about['version'] == 'image' and about['args'] == ['x'], about
        digest = info(hub, 'ours')['package']['version']
        assert 'update' not in fetch(hub, 'ours')
        hub.ok('images', 'import', other, 'mcp/node-ours')
        assert json.loads(text(hub, 'ours', 'about'))['args'] == ['x']
        changes = fetch(hub, 'ours')['update']['changes']
        assert f'- version {digest}' in changes, changes
        approve(hub, 'ours')
        edit(hub, 'ours', **npx('-y', 'ours'))
        until(lambda: info(hub, 'ours')['wanted'].startswith('npm'))
        seen = info(hub, 'ours')
        assert 'package' not in seen and not seen['approved'], seen
        assert images(hub) == []


def test_entries_of_docker_that_cannot_run(me, tmp_path, registry):
    rows = {'volume': (docker('-i', '-v', 'claude-memory:/app', 'x'), "Docker's volumes"),
            'rights': (docker('--privileged', 'x'), 'no sandbox gives more rights'),
            'file': (docker('-i', '--env-file', 'f', 'x'), '"env" of the entry'),
            'none': (docker('-i', '--rm'), 'names no image'),
            'template': (docker('x', sandbox={'template': 'x'}), 'leave out')}
    with hub_of(me, str(tmp_path), registry, **{n: s for n, (s, _) in rows.items()}) as hub:
        checked = hub.run('config', 'check').stderr.decode()
        for name, (_, why) in rows.items():
            seen = info(hub, name)
            assert why in seen.get('cause', '') + ''.join(seen.get('advice', [])), seen
            assert why in checked or name == 'volume', checked
