"""Modules whose entry runs a package of a registry, as READMEs have it: `npx -y PKG`, `uvx PKG`."""

import concurrent.futures
import json
import os
import signal
import subprocess

import pytest

import host
import modules
from client import until
from modules import approve, home, text
from registry import Registry
from rest import fails
from test_code_modules import Hub as CodeHub
from test_declarations import tsc
from test_hub_cli import Hub
from test_module_servers import gateway

pytestmark = pytest.mark.sandboxes


def npx(*words, **more):
    return {'command': 'npx', 'args': list(words), 'approval': 'allow', **more}


def hub_of(me, path, registry, **servers):
    return Hub(me, home(me, path, **servers), '--listen', '127.0.0.1:0',
               env={'npm_config_registry': registry, 'PIP_INDEX_URL': f'{registry}/simple'})


def entry(hub, name, **server):
    """Changes an entry of the file, or takes it out."""
    path = os.path.join(hub.home, 'config.json')
    with open(path, encoding='utf-8') as f:
        config = json.load(f)
    config['mcpServers'].pop(name)
    if server:
        config['mcpServers'][name] = server
    with open(path, 'w', encoding='utf-8') as f:
        json.dump(config, f)


def info(hub, name):
    return hub.call('GET', f'/v1/modules/{name}')


def fetch(hub, name):
    return hub.post(f'/v1/modules/{name}/update')


def run(hub, name):
    """As a user does: fetches, approves, calls."""
    fetch(hub, name)
    approve(hub, name)
    return json.loads(text(hub, name, 'about'))


@pytest.fixture(scope='module')
def registry():
    with Registry() as shared:
        shared.add('ours', '1.0.0', dependencies={'dep-of-ours': '^1.0.0'}, author={
            'name': 'A.\u202e Uthor', 'email': 'a@example.org'})
        shared.add('dep-of-ours', '1.0.0', {'index.js': 'module.exports = "one";'})
        yield shared


def test_a_line_of_a_readme_runs(me, tmp_path, registry):
    """Resolved once, shown, approved; then it runs without its registry, also after a restart."""
    before = host.Residue(me.trees)
    servers = {'ours': npx('-y', 'ours@latest', registry.url, '--two')}
    with hub_of(me, str(tmp_path), registry.url, **servers) as hub:
        seen = info(hub, 'ours')
        assert seen['wanted'] == 'npm ours@latest' and 'package' not in seen, seen
        assert 'holt mcp approve ours' in seen['cause'], seen
        fails(403, 'forbidden', hub.post, '/v1/modules/ours/approve', digest='0')
        seen = fetch(hub, 'ours')
        got = seen['update']
        assert (got['kind'], got['name'], got['version']) == ('npm', 'ours', '1.0.0'), seen
        assert got['dependencies'] == 1 and got['license'] == 'MIT' and got['bytes'] > 1000, seen
        assert got['author'] == 'A. Uthor <a@example.org>', seen
        assert got['maintainers'] == ['maintainer <m@example.org>'], seen
        assert got['scripts'] == [] and len(got['lock']) == 64, seen
        fails(403, 'forbidden', hub.post, '/v1/modules/ours/tools/about', arguments={})
        approve(hub, 'ours')
        about = json.loads(text(hub, 'ours', 'about'))
        assert about['version'] == '1.0.0' and about['args'] == [registry.url, '--two'], about
        assert about['dep'] == 'one' and 'npm_config_registry' not in about['env'], about
        shown = hub.ok('mcp', 'info', 'ours').decode()
        assert 'npm ours@1.0.0' in shown and 'NOT RUN' not in shown, shown
        registry.asked.clear()
    with hub_of(me, str(tmp_path), 'http://127.0.0.1:9', **servers) as hub:
        assert info(hub, 'ours')['package']['version'] == '1.0.0'
        assert json.loads(text(hub, 'ours', 'about'))['dep'] == 'one'
        assert text(hub, 'ours', 'reach') != 'reached' and not registry.asked, registry.asked
    before.check()


def changed(hub, name):
    return fetch(hub, name)['update']['changes']


def test_a_new_version_waits_for_a_person(me, tmp_path):
    """By version, by what it depends on, by an install script: each is shown, and none runs."""
    with Registry() as registry:
        registry.add('ours', '1.0.0', dependencies={'dep': '^1.0.0'})
        registry.add('dep', '1.0.0', {'index.js': ''})
        with hub_of(me, str(tmp_path), registry.url, ours=npx('-y', 'ours')) as hub:
            assert run(hub, 'ours')['version'] == '1.0.0'
            assert 'update' not in fetch(hub, 'ours')
            assert 'nothing has changed' in hub.ok('mcp', 'update', 'ours').decode()
            registry.add('dep', '1.0.1', {'index.js': ''})
            assert changed(hub, 'ours') == ['- dependency dep@1.0.0', '+ dependency dep@1.0.1']
            registry.add('ours', '1.1.0', {'index.js': registry.node('evil', 'a tool')},
                         bin='index.js', dependencies={'dep': '^1.0.0'},
                         scripts={'postinstall': 'touch /opt/package/ran'})
            told = changed(hub, 'ours')
            assert {'- version 1.0.0', '+ version 1.1.0',
                    '+ script ours@1.1.0: postinstall'} <= set(told), told
            assert json.loads(text(hub, 'ours', 'about'))['version'] == '1.0.0'
            shown = hub.run('mcp', 'approve', 'ours').stdout.decode()
            assert '+ version 1.1.0' in shown and 'NOT RUN' in shown, shown
            approve(hub, 'ours')
            assert json.loads(text(hub, 'ours', 'about'))['version'] == '1.1.0'
            pins = {t['name']: t['state'] for t in info(hub, 'ours')['tools']}
            assert pins == {'about': 'approved', 'reach': 'approved', 'evil': 'new'}, pins


def test_what_was_shown_is_what_is_approved(me, tmp_path):
    """Not what was fetched meanwhile; nor another entry's."""
    with Registry() as registry:
        registry.add('ours', '1.0.0')
        registry.add('ours', '2.0.0', tag='next')
        with hub_of(me, str(tmp_path), registry.url, ours=npx('-y', 'ours')) as hub:
            seen = fetch(hub, 'ours')
            registry.add('ours', '1.0.1')
            fetch(hub, 'ours')
            fails(409, 'conflict', hub.post, '/v1/modules/ours/approve', digest=seen['digest'])
            assert run(hub, 'ours')['version'] == '1.0.1'
            entry(hub, 'ours', **npx('-y', 'ours@9'))
            until(lambda: not info(hub, 'ours')['approved'])
            hub.post('/v1/modules/ours/disable')
            entry(hub, 'ours', **npx('-y', 'ours'))
            until(lambda: info(hub, 'ours')['approved'], what='the same entry is the same package')
            hub.post('/v1/modules/ours/enable')
            assert json.loads(text(hub, 'ours', 'about'))['version'] == '1.0.1'
            entry(hub, 'ours', **npx('-y', 'ours@next'))
            until(lambda: not info(hub, 'ours')['approved'])
            assert 'package' not in info(hub, 'ours')
            assert run(hub, 'ours')['version'] == '2.0.0'
            names = until(lambda: len(n := images(hub)) == 1 and n, what='the others are removed')
            assert names[0].startswith('holt-modules/ours:')
            assert hub.run('images', 'rm', names[0]).returncode != 0
            assert json.loads(text(hub, 'ours', 'about'))['version'] == '2.0.0'
            assert not os.path.exists(os.path.join(hub.home, 'images', 'step')), 'a second copy'
            entry(hub, 'ours')
            until(lambda: not images(hub), what='a module that has left the file keeps nothing')


def images(hub):
    return [n for one in hub.json('images') for n in one['names'] if n.startswith('holt-modules/')]


def hostile(registry):
    registry.add('scripted', '1.0.0', {'index.js': registry.node()}, bin='index.js', scripts={
        word: 'touch /opt/package/ran /tmp/ran; echo ran >> index.js; exit 0'
        for word in ('preinstall', 'install', 'postinstall')})
    registry.add('linked', '1.0.0', {'real.js': registry.node()}, bin='index.js',
                 links={'index.js': '/etc/passwd', 'up': '../../../../../../etc'})
    registry.add('climber', '1.0.0', {'index.js': registry.node()}, bin='index.js', raw={
        'package/../../../../../../opt/package/climbed': 'x', '/opt/package/absolute': 'x',
        'package/../victim/index.js': 'x'})
    registry.add('victim', '1.0.0', {'index.js': 'module.exports = 1'})
    registry.add('thief', '1.0.0', {'index.js': ''}, bin={'thief': '../victim/index.js'},
                 dependencies={'victim': '1.0.0'})
    registry.add('bundler', '1.0.0', {'index.js': '', 'node_modules/victim/index.js': 'x',
                                      'node_modules/victim/package.json': json.dumps(
                                          {'name': 'victim', 'version': '1.0.0'})},
                 bin={'bundler': 'node_modules/victim/index.js'},
                 dependencies={'victim': '1.0.0'}, bundledDependencies=['victim'])
    registry.add('library', '1.0.0', {'index.js': ''})
    registry.add('two', '1.0.0', {'a.js': '', 'b.js': registry.node()},
                 bin={'a': 'a.js', 'b': 'b.js'})


REFUSED = {
    'linked': 'is missing', 'thief': 'its program "thief" is',
    'bundler': 'a file of another package',
    'library': 'it has no program, so it is no server', 'two': 'it has no program "two", but a, b',
    'nobody': '404 Not Found',
}


def test_hostile_packages(me, tmp_path):
    """They fail, or are harmless, and leave nothing behind."""
    with Registry() as registry:
        hostile(registry)
        servers = {name: npx('-y', name) for name in REFUSED}
        servers |= {'scripted': npx('-y', 'scripted'), 'climber': npx('-y', 'climber'),
                    'chosen': npx('-y', '-p', 'two', 'b')}
        with hub_of(me, str(tmp_path), registry.url, **servers) as hub:
            for name, why in REFUSED.items():
                error = fails(502, 'module_failed', fetch, hub, name)
                assert why in error['cause'] and registry.url in error['cause'], error
                assert 'package' not in info(hub, name) and 'update' not in info(hub, name)
            assert run(hub, 'chosen')['version'] == '1.0.0'
            seen = fetch(hub, 'scripted')['update']
            assert seen['scripts'] == ['scripted@1.0.0: preinstall, install, postinstall'], seen
            root = os.path.join(hub.home, 'images', 'image', seen['image'], 'root')
            assert sorted(os.listdir(os.path.join(root, 'opt/package'))) == [
                'node_modules', 'package-lock.json', 'package.holt.json', 'package.json']
            assert run(hub, 'scripted')['version'] == '1.0.0'
            assert run(hub, 'climber')['version'] == '1.0.0'
            assert not os.path.exists('/opt/package')
            assert until(lambda: len(images(hub)) == 3, what='failures leave no image')
            assert os.listdir(os.path.join(hub.home, 'packages')) == []


def test_packages_that_are_too_large(me, tmp_path):
    """Few bytes of a registry that become many on the disk: by size, and by number of files."""
    with Registry() as registry:
        registry.add('huge', '1.0.0', {'index.js': '', 'large': b''.join(
            os.urandom(64) + bytes(16000) for _ in range(1300))}, bin='index.js')
        registry.add('crowd', '1.0.0', {'index.js': '', **{
            f'{i % 64}/{i}': '' for i in range(6000)}}, bin='index.js')
        registry.add('ours', '1.0.0')
        path = home(me, str(tmp_path), {'modules': {'packageMegabytes': 16}},
                    **{name: npx('-y', name) for name in ('huge', 'crowd', 'ours')})
        with Hub(me, path, '--listen', '127.0.0.1:0',
                 env={'npm_config_registry': registry.url}) as hub:
            for name in ('huge', 'crowd'):
                error = fails(502, 'module_failed', fetch, hub, name)
                assert 'than 16 MiB hold (modules.packageMegabytes' in error['cause'], error
                assert 'update' not in info(hub, name)
            assert run(hub, 'ours')['version'] == '1.0.0'
            assert os.listdir(os.path.join(hub.home, 'packages')) == []


def test_install_scripts_that_the_file_allows(me, tmp_path):
    with Registry() as registry:
        registry.add('ours', '1.0.0', {'index.js': registry.node()}, bin='index.js', scripts={
            'postinstall': 'echo "module.exports = \'built\'" > node_modules.js'
                           ' && mkdir -p node_modules/dep-of-ours'
                           ' && mv node_modules.js node_modules/dep-of-ours/index.js'
                           ' && sed -i s/ours/forged/ /opt/package/package.holt.json'})
        with hub_of(me, str(tmp_path), registry.url, ours=npx(
                '-y', 'ours', sandbox={'installScripts': True})) as hub:
            seen = fetch(hub, 'ours')['update']
            assert seen['name'] == 'ours' and seen['scripts_run'], seen
            assert seen['scripts'] == ['ours@1.0.0: postinstall'], seen
            assert run(hub, 'ours')['dep'] == 'built'


def test_a_registry_that_is_away(me, tmp_path):
    with hub_of(me, str(tmp_path), 'http://127.0.0.1:9', ours=npx('-y', 'ours')) as hub:
        error = fails(502, 'module_failed', fetch, hub, 'ours')
        assert 'npm ours was not fetched from http://127.0.0.1:9' in error['cause'], error
        assert 'registry' in error['remediation'], error
        hub.fails(125, "Check the package's name", 'mcp', 'approve', '-y', 'ours')


def test_entries_that_are_not_understood(me, tmp_path):
    servers = {'git': npx('-y', 'github:user/repo'), 'option': npx('-c', 'x'),
               'variable': npx('-y', '${WHICH}')}
    with hub_of(me, str(tmp_path), 'http://127.0.0.1:9', **servers) as hub:
        for name, why in {'git': 'packages of a registry', 'option': '"-c": this option',
                          'variable': 'no variables'}.items():
            assert why in info(hub, name)['cause']
            assert why in fails(400, 'invalid_input', fetch, hub, name)['cause']


PYTHON = modules.SERVER + r'''
import importlib
DEP = importlib.import_module('dep_of_ours').TEXT
TOOLS[:] = [tool('about')]
def call(id, name, arguments):
    say({'id': id, 'result': {'content': [{'type': 'text', 'text': json.dumps(
        {'version': VERSION, 'dep': DEP, 'args': sys.argv[1:]})}]}})
'''


@pytest.mark.skipif(subprocess.run(['/usr/bin/python3', '-m', 'pip', '--version'], check=False,
                                   capture_output=True).returncode != 0,
                    reason="this host's python3 has no pip")
def test_packages_of_python(me, tmp_path):
    """Wheels alone, of an index on loopback."""
    with Registry() as registry:
        registry.add_wheel('py-ours', '1.0', 'VERSION = "1.0"\n' + PYTHON, ['dep-of-ours>=1'])
        registry.add_wheel('py-ours', '2.0', 'VERSION = "2.0"\n' + PYTHON, ['dep-of-ours>=1'])
        registry.add_wheel('dep-of-ours', '1.5', 'TEXT = "wheel"')
        registry.add_source('sourced', '1.0')
        servers = {name: {'command': command, 'args': args, 'approval': 'allow'}
                   for name, command, args in [
                       ('newest', 'uvx', ['py-ours', '--x']), ('older', 'uvx', ['py-ours==1.0']),
                       ('named', 'pipx', ['run', '--spec', 'py-ours<2', 'py-ours', 'y']),
                       ('sourced', 'uvx', ['sourced']), ('absent', 'uvx', ['no-such-package'])]}
        with hub_of(me, str(tmp_path), registry.url, **servers) as hub:
            assert run(hub, 'newest') == {'version': '2.0', 'dep': 'wheel', 'args': ['--x']}
            got = info(hub, 'newest')['package']
            assert (got['kind'], got['name'], got['dependencies']) == ('PyPI', 'py-ours', 1), got
            assert got['license'] == 'MIT' and got['author'] == 'A. Uthor', got
            assert run(hub, 'older')['version'] == '1.0'
            assert run(hub, 'named') == {'version': '1.0', 'dep': 'wheel', 'args': ['y']}
            for name in ('sourced', 'absent'):
                error = fails(502, 'module_failed', fetch, hub, name)
                assert 'No matching distribution' in error['cause'], error
            registry.wheels.clear()
            hub.post('/v1/modules/newest/disconnect')
            assert json.loads(text(hub, 'newest', 'about'))['dep'] == 'wheel'


@pytest.mark.parametrize('end', ['kill', pytest.param('stop', marks=pytest.mark.whole)])
def test_a_hub_that_ends_while_it_fetches(me, tmp_path, end):
    """Nothing of the fetch outlives it, and the next hub fetches."""
    before = host.Residue(me.trees)
    with Registry() as registry:
        registry.add('ours', '1.0.0')
        registry.open.clear()
        hub = hub_of(me, str(tmp_path), registry.url, ours=npx('-y', 'ours'))
        with concurrent.futures.ThreadPoolExecutor() as pool:
            asked = pool.submit(lambda: pytest.raises(Exception, fetch, hub, 'ours'))
            until(lambda: registry.asked, what='npm asks')
            fails(409, 'conflict', fetch, hub, 'ours')
            hub.proc.send_signal(signal.SIGKILL if end == 'kill' else signal.SIGTERM)
            hub.proc.wait(60)
            hub.kill()
            asked.result(60)
        registry.open.set()
        until(lambda: not [p for p in before.look()['processes'] if p not in
                           before.before['processes']], what='its processes end')
        with hub_of(me, str(tmp_path), registry.url, ours=npx('-y', 'ours')) as hub:
            assert run(hub, 'ours')['version'] == '1.0.0' and len(images(hub)) == 1
    before.check()


# Entries as the README of each server has it, with keys that are none; `read` where it asks for a
# folder. All start without a network.
FOLDER = '/usr/share/doc'
REAL = {
    'memory': npx('-y', '@modelcontextprotocol/server-memory'),
    'everything': npx('-y', '@modelcontextprotocol/server-everything'),
    'filesystem': npx('-y', '@modelcontextprotocol/server-filesystem', FOLDER,
                      sandbox={'read': [FOLDER]}),
    'sequential-thinking': npx('-y', '@modelcontextprotocol/server-sequential-thinking'),
    'github': npx('-y', '@modelcontextprotocol/server-github',
                  env={'GITHUB_PERSONAL_ACCESS_TOKEN': 'none'}),
    'brave-search': npx('-y', '@modelcontextprotocol/server-brave-search',
                        env={'BRAVE_API_KEY': 'none'}),
    'slack': npx('-y', '@modelcontextprotocol/server-slack',
                 env={'SLACK_BOT_TOKEN': 'xoxb-none', 'SLACK_TEAM_ID': 'T01'}),
    'gitlab': npx('-y', '@modelcontextprotocol/server-gitlab',
                  env={'GITLAB_PERSONAL_ACCESS_TOKEN': 'none'}),
    'google-maps': npx('-y', '@modelcontextprotocol/server-google-maps',
                       env={'GOOGLE_MAPS_API_KEY': 'none'}),
    'everart': npx('-y', '@modelcontextprotocol/server-everart', env={'EVERART_API_KEY': 'none'}),
    'postgres': npx('-y', '@modelcontextprotocol/server-postgres',
                    'postgresql://localhost/mydb'),
    'calc': npx('-y', '@coo-quack/calc-mcp@latest'),
    'tavily': npx('-y', 'tavily-mcp@latest', env={'TAVILY_API_KEY': 'none'}),
    'context7': npx('-y', '@upstash/context7-mcp'),
    'firecrawl': npx('-y', 'firecrawl-mcp', env={'FIRECRAWL_API_KEY': 'fc-none'}),
    'exa': npx('-y', 'exa-mcp-server', env={'EXA_API_KEY': 'none'}),
    'notion': npx('-y', '@notionhq/notion-mcp-server', env={'OPENAPI_MCP_HEADERS': '{}'}),
    'knowledge-graph': npx('-y', '@itseasy21/mcp-knowledge-graph'),
    'weather': npx('-y', '@h1deya/mcp-server-weather'),
    'brave': npx('-y', '@brave/brave-search-mcp-server', '--transport', 'stdio',
                 env={'BRAVE_API_KEY': 'none'}),
    'duckduckgo': npx('-y', '@ericthered926/duckduckgo-mcp-server'),
    'chart': npx('-y', '@antv/mcp-server-chart'),
}


def starts(me, tmp_path, name, tool=None, **arguments):
    """Fetched through a mirror, approved, listed, and listed again when the mirror is gone."""
    with Registry(forward=True) as registry:
        server = {**REAL[name], 'connectSeconds': 120, 'timeoutSeconds': 120}
        with hub_of(me, str(tmp_path), registry.url, **{name: server}) as hub:
            got = fetch(hub, name)['update']
            assert registry.asked and got['name'] in REAL[name]['args'][1], got
            registry.asked.clear()
            approve(hub, name)
            registry.open.clear()
            assert hub.post(f'/v1/modules/{name}/test')['tools_count'] > 0
            said = tool and modules.call(hub, name, tool, **arguments)
            assert not registry.asked
            return said


def through(hub, box, name):
    """One tool of it, listed by each way to call it, and a declaration of all for tsc."""
    tools = [t['name'] for t in info(hub, name)['tools']]
    got = hub.js(f'import m from "host:mcp-{name}"; export default Object.keys(m).length',
                 wall_ms=120000)
    assert got['ok'] and int(got['value']) >= len(tools), got
    listed = hub.exec(box, f'holt-call {name}')
    assert listed['exit_code'] == 0 and listed['stdout'].count('def ') >= len(tools), listed
    python = hub.exec(box, f'python3 -c "import holt.mcp.{name.replace("-", "_")} as m;'
                      'print(len(dir(m)))"')
    assert python['exit_code'] == 0, python['stderr']
    return gateway(hub, 'mcp_server_info', name=name, limit=50)


@pytest.mark.whole
def test_real_servers_by_every_road(me, tmp_path):
    """Approved, then listed, declared and called by code, the gateway, Python and the shell,
    without the registry."""
    names = ['memory', 'calc', 'weather']
    with Registry(forward=True) as registry:
        path = home(me, str(tmp_path), **{
            n: {**REAL[n], 'connectSeconds': 120, 'timeoutSeconds': 120} for n in names})
        env = {'npm_config_registry': registry.url}
        with CodeHub(me, path, '--listen', '127.0.0.1:0', env=env) as hub:
            for name in names:
                fetch(hub, name)
                approve(hub, name)
                assert info(hub, name)['tools'], name
        registry.close()
        with CodeHub(me, path, '--listen', '127.0.0.1:0', env=env) as hub:
            box = hub.create(modules=['*'])
            for name in names:
                said = through(hub, box, name).partition('declare module')
                (tmp_path / f'{name}.d.ts').write_text(said[1] + said[2])
            assert tsc(tmp_path, *(f'{n}.d.ts' for n in names)) == ''
            called_by_every_road(hub, box)


def called_by_every_road(hub, box):
    entities = [{'name': 'Ada', 'entityType': 'person', 'observations': ['wrote programs']}]
    assert 'Ada' in modules.call(hub, 'memory', 'create_entities', entities=entities)[
        'content'][0]['text']
    assert hub.value('import m from "host:mcp-memory"; export default m.read_graph({})'
                     '.data.entities[0].name', wall_ms=60000) == 'Ada'
    assert 'Ada' in gateway(hub, 'memory__read_graph')
    assert 'Ada' in hub.exec(box, 'holt-call memory read_graph')['stdout']
    assert 'Ada' in hub.exec(box, 'python3 -c "import holt.mcp.memory as m;'
                             'print(m.read_graph({})[\'text\'])"')['stdout']


@pytest.mark.whole
def test_a_real_server(me, tmp_path):
    said = starts(me, tmp_path, 'memory', 'create_entities', entities=[
        {'name': 'Ada', 'entityType': 'person', 'observations': ['wrote programs']}])
    assert 'Ada' in said['content'][0]['text'], said


@pytest.mark.whole
@pytest.mark.parametrize('name', [name for name in REAL if name != 'memory'])
def test_real_servers(me, tmp_path, name):
    starts(me, tmp_path, name)
