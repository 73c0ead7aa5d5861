"""Modules whose entry runs a package of a registry, as READMEs have it: `npx -y PKG`, `uvx PKG`."""

import json
import os

import pytest

import host
from modules import approve, home, text
from registry import Registry
from rest import fails
from test_hub_cli import Hub

pytestmark = pytest.mark.sandboxes


def npx(*words, **more):
    return {'command': 'npx', 'args': list(words), 'approval': 'allow', **more}


def hub_of(me, path, registry, **servers):
    return Hub(me, home(me, path, **servers), '--listen', '127.0.0.1:0',
               env={'npm_config_registry': registry, 'PIP_INDEX_URL': f'{registry}/simple'})


def entry(hub, name, **server):
    """Changes an entry of the file."""
    path = os.path.join(hub.home, 'config.json')
    with open(path, encoding='utf-8') as f:
        config = json.load(f)
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
