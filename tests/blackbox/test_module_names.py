"""Each name of a module or a tool that something prints is taken by everything that takes such a
name, in each spelling that something prints."""

import re

import pytest

import host
from modules import approve, home, server
from test_code_modules import Model, register
from test_module_guests import Guests
from test_serve import Session

LONG = 'a23456789-123456789-123456789-12'  # the longest name
# Each tool answers with its own name.
TOOLS = r'''
TOOLS[:] = [tool(n) for n in ('get-it', 'get_it', 'getIt', 'class', '7up', 'hidden', 'a__b')]

def call(id, name, arguments):
    say({'id': id, 'result': {'content': [{'type': 'text', 'text': name}]}})

main()
'''
SERVERS = ['files', 'my-server', 'mcp-like', LONG]


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    servers = {name: server(TOOLS, denyTools=['hidden']) for name in SERVERS}
    folder = home(me, tmp_path_factory.mktemp('names'), **servers)
    with Guests(me, folder, '--listen', '127.0.0.1:0', '--pool', '1') as shared:
        for name in SERVERS:
            approve(shared, name)
            shared.post(f'/v1/modules/{name}/test')
        register(shared, 'mine', 'export const f = () => 1')
        shared.modules = shared.box('*')
        yield shared
    before.check()


@pytest.fixture(scope='module')
def model(hub):
    return Model(hub)


def printed(hub, model):
    """What the tools and verbs say that list modules or show one."""
    yield model.said('list_modules')
    yield model.said('list_mcp_servers')
    yield model.said('search_modules', query='text', limit=50)
    yield hub.ok('mcp', 'list').decode()
    yield '\n'.join(m['module'] + ': ' for m in hub.call('GET', '/v1/modules')['modules'])
    yield ''.join(f'{name}: \n' for name in hub.ran(hub.modules, 'holt-call')[1].split())
    for name in SERVERS:
        yield model.said('module_info', module=name)
        yield model.said('mcp_server_info', name=name)
        yield model.said('manage_mcp', name=name, action='connect')
    yield model.said('module_info', module='ha:mine')


def modules(hub, model):
    names = set()
    for text in printed(hub, model):
        names |= set(re.findall(r'\b(?:host:|ha:)[a-z0-9-]+', text))
        names |= {n for n in re.findall(r'^([a-z0-9:-]+)(?::| +)', text, re.M)
                  if n.split(':')[-1] in SERVERS}
    assert {f'host:mcp-{n}' for n in SERVERS} | {'ha:mine', 'host:holt', *SERVERS} <= names, names
    # the parts of these, as one would say them
    return sorted(names | {n.removeprefix('host:') for n in names})


def test_modules(hub, model):
    for name in modules(hub, model):
        own = name.removeprefix('host:').removeprefix('mcp-')
        own = 'mcp-like' if own == 'like' else own
        for said in (model.said('module_info', module=name),
                     model.said('mcp_server_info', name=name)):
            assert own in said, (name, said)
        if own not in SERVERS:
            refused = model.fails('manage_mcp', name=name, action='connect')
            assert name.split(':')[-1] in refused and 'no server' in refused, refused
            continue
        assert model.said('manage_mcp', name=name, action='connect').startswith(f'{own}: ')
        assert hub.call('GET', f'/v1/modules/{name}')['module'] == own
        assert hub.json('mcp', 'info', name)['module'] == own
        assert hub.ran(hub.modules, f'holt-call {name}')[0] == 0
        assert hub.ran(hub.modules, f'holt-call {name} class')[1] == 'class\n'
    assert hub.ran(hub.modules, 'holt-call my_server class')[1] == 'class\n'  # as Python says
    box = hub.ok('up', '--module', 'host:mcp-files').decode().strip()
    assert hub.ran(box, 'holt-call')[1] == 'files\n'


def listed(session):
    with session.hub.wire() as wire:
        return session.ask(wire, 'tools/list')['tools']


@pytest.mark.parametrize('name', SERVERS)
def test_tools(hub, model, name):
    """Each spelling calls the tool that the list has next to it."""
    own = {}
    for t in hub.call('GET', f'/v1/modules/{name}')['tools']:
        own[t['name']] = own[t['function']] = t['name']
    for t in hub.call('GET', '/v1/tools?query=text&limit=50')['tools']:
        if t['module'] == name:
            assert own[t['function']] == own[t['name']] == t['name']
    gateway = Session(hub, '/mcp?tools=gateway')
    for shown in (t['name'] for t in listed(gateway)):
        if shown.startswith(f'{name}__'):
            with hub.wire() as wire:
                gateway.call(wire, shown)
                own[shown] = gateway.result(wire)['content'][0]['text']
    assert set(own.values()) == {'get-it', 'get_it', 'getIt', 'class', '7up', 'a__b'}
    assert len(own) > 12, own
    for spelled, right in own.items():
        called = hub.post(f'/v1/modules/{name}/tools/{spelled}', arguments={})['result']
        assert called['content'][0]['text'] == right, (spelled, called)
        assert hub.ran(hub.modules, f'holt-call {name} {spelled}')[1] == right + '\n'
        one = model.said('mcp_server_info', name=name, tools=[spelled])
        assert one.count('export function') == 1, (spelled, one)


def test_a_rule_sees_one_spelling(hub):
    """A record has the digest of a request as rules and approvals see it."""
    def args(module, tool):
        hub.post(f'/v1/modules/{module}/tools/{tool}', arguments={})
        return hub.call('GET', '/v1/audit?action=module.call&limit=1')['records'][0]['args']
    assert len({args(module, tool) for module in ('files', 'mcp-files', 'host:mcp-files')
                for tool in ('class', 'class_', 'files__class')}) == 1
    assert args('files', 'class') != args('files', '7up')


def test_the_client_knows_modules_of_the_hub(hub):
    """`holt mcp tools NAME` and `call NAME TOOL`, by the server's own names of tools."""
    listed = hub.ok('mcp', 'tools', 'my-server').decode()
    names = {line.split()[0] for line in listed.splitlines() if line[:1].strip()}
    assert {'get-it', 'get_it', 'a__b', '7up'} <= names and 'hidden' not in names, listed
    assert 'module_result' not in listed and '__get' not in listed, listed
    for tool in 'get-it', 'get_it', 'a__b', 'my-server__get-it':
        said = hub.ok('mcp', 'call', 'my-server', tool, 'text=x').decode()
        assert said.strip() == tool.removeprefix('my-server__')
    assert hub.ok('mcp', 'call', '--server', 'files', 'get-it').decode().strip() == 'get-it'
    hub.fails(2, 'which tool of the module files', 'mcp', 'call', 'files')
    hub.fails(2, 'is no name of a module', 'mcp', 'tools', 'a&tools=all')
    assert hub.run('mcp', 'call', 'my-server', 'hidden').returncode == 2
    assert hub.run('mcp', 'call', 'absent', 'get-it').returncode not in (0, 5)
