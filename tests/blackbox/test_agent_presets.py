"""Agents by a preset: `holt agent add` fetches or finds their programs, and conversations start
them with what the preset says."""

import json
import os

import pytest

import host
from client import until
from registry import Registry
from rest import Failed
from test_agents import MOCK, Hub

pytestmark = pytest.mark.sandboxes

VALUE = 'the-value-of-the-key-1'
PRESET = {
    'title': 'Our agent', 'run': ['ours'], 'acp': ['ours', '--images'], 'npm': {'ours': 'ours'},
    'installScripts': True,
    'hosts': ['api.example.com:443'], 'env': {'OURS_HOME': '~/.ours', 'QUIET': '1'},
    'state': ['~/.ours', '~/.cache/ours'],
    'settings': {'~/.ours/settings.json': {'json': {'mode': 'ask'}},
                 '~/.ours/more.toml': {'text': 'ask = true\n'}},
    'secrets': {'OURS_KEY': {'hosts': ['api.example.com']}},
}
SECRETS = {'OURS_KEY': {'env': 'KEY_OF_TEST', 'hosts': ['api.example.com']}}


def mock_files():
    with open(MOCK, encoding='utf-8') as f:
        return {'agent.py': f.read()}


def publish(registry, version):
    registry.add('ours', version, mock_files(), bin={'ours': 'agent.py'},
                 scripts={'postinstall': 'cp /usr/bin/true /opt/package/ran'})


def write(me, path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    for one in (os.path.dirname(path), path):
        os.chown(one, me.uid, me.uid)


def hub_of(me, folder, env, agents=None, **conf):
    """Presets of the operator's are beside its file."""
    path = f'{folder}/hub'
    os.makedirs(path)
    os.chown(path, me.uid, me.uid)
    write(me, f'{path}/agents/ours.json', json.dumps(PRESET))
    return Hub(me, path, agents or {}, policy={'secrets': SECRETS, **conf},
               env={'KEY_OF_TEST': VALUE, **env})


def talk_of(hub, agent):
    try:
        return hub.talk(agent)
    except Failed:
        return None


def shell(hub, command, agent='ours'):
    # the hub reads its file a moment after it was written
    talk = until(lambda: talk_of(hub, agent), what='an agent')
    try:
        return str(hub.says(talk, ['shell', f'exec 2>&1; {command}']))
    finally:
        hub.of(talk, method='DELETE')


def agents_of(hub):
    return {a['name']: a for a in hub.json('agent', 'ls')}


def test_what_was_added_runs_by_its_preset(me, tmp_path):
    """With its environment, settings, key and state; an update is shown and asked for first; and
    nothing is left but its state."""
    before = host.Residue(me.trees)
    with Registry() as registry, hub_of(me, tmp_path, {'npm_config_registry': registry.url}) as hub:
        publish(registry, '1.0.0')
        with open(f'{hub.home}/config.json', encoding='utf-8') as f:
            was = f.read()
        hub.fails(125, 'did you mean ours?', 'agent', 'add', 'oura')
        said = hub.ok('agent', 'add', 'ours').decode()
        assert said.count('ours 1.0.0: ') == 1 and 'ours added' in said, said
        assert 'which ran in the sandbox: ours@1.0.0: postinstall' in said, said
        assert 'fetched before' in hub.ok('agent', 'add', 'ours').decode()
        assert agents_of(hub)['ours'] == {
            'name': 'ours', 'preset': 'ours', 'login': None, 'run': 'ours 1.0.0',
            'acp': 'ours 1.0.0'}
        got = shell(hub, 'echo $OURS_HOME $QUIET; cat ~/.ours/*; ls /opt/package/ran;'
                    'printenv OURS_KEY; mkdir ~/.ours/.git && echo kept > ~/.ours/kept;'
                    'touch ~/.cache/ours/x')
        assert '/home/agent/.ours 1\nask = true\n{"mode":"ask"}\n/opt/package/ran\n' in got, got
        key = got.rstrip().split('\n')[-1]
        assert VALUE not in got and len(key) > 16 and '/' not in key, got
        assert shell(hub, 'cat ~/.ours/kept; ls -d ~/.ours/.git').startswith('kept\n')
        publish(registry, '1.1.0')
        hub.fails(125, 'give --yes', 'agent', 'update', 'ours')
        assert agents_of(hub)['ours']['run'] == 'ours 1.0.0'
        said = hub.ok('agent', 'update', '-y', 'ours').decode()
        assert said.count('version 1.0.0 -> 1.1.0') == 1, said
        assert agents_of(hub)['ours']['acp'] == 'ours 1.1.0'
        assert 'nothing is new' in hub.ok('agent', 'update', '-y', 'ours').decode()
        assert len(hub.json('images')) == 1
        assert 'stay' in hub.ok('agent', 'rm', 'ours').decode()
        with open(f'{hub.home}/config.json', encoding='utf-8') as f:
            assert json.loads(f.read()) == json.loads(was)
        assert hub.json('images') == [] and agents_of(hub) == {}
        assert os.path.exists(f'{hub.home}/state/ours/.ours/kept')
    before.check()


def nvm(me, home):
    """As `nvm` and `npm install -g` leave it: a link to a folder of packages."""
    at = f'{home}/.nvm/versions/node/v22.1.0'
    for name, text in mock_files().items():
        write(me, f'{at}/lib/node_modules/ours/{name}', text)
        os.chmod(f'{at}/lib/node_modules/ours/{name}', 0o755)
    os.makedirs(f'{at}/bin')
    os.symlink('../lib/node_modules/ours/agent.py', f'{at}/bin/ours')
    return at


def test_what_is_installed_is_used_as_it_is(me, tmp_path):
    """Found through links below the home, which no sandbox has otherwise; read-only inside."""
    home = f'{tmp_path}/home'
    at = nvm(me, home)
    with hub_of(me, tmp_path, {'HOME': home, 'npm_config_registry': 'http://127.0.0.1:9'},
                {'ours': {'preset': 'ours'}, 'plain': {'preset': 'ours', 'env': {'QUIET': '2'}}}
                ) as hub:
        assert f'ours: {at}/bin/ours\n' in hub.ok('agent', 'add', 'ours').decode()
        assert agents_of(hub)['ours']['acp'] == f'{at}/bin/ours'
        got = shell(hub, f'echo $QUIET; touch {at}/lib/node_modules/ours/x; '
                    f'ls {at}/lib/node_modules/ours {home}')
        assert got.startswith('1\n') and 'agent.py' in got, got
        assert 'Read-only file system' in got and '.bashrc' not in got, got
        assert shell(hub, 'echo $QUIET', 'plain').strip() == '2'


@pytest.mark.parametrize('given', [True, False, None])
def test_toolchains_for_a_folder(me, tmp_path, given):
    """Where the file says so; else in the operator's own conversations: one by REST is none."""
    home, site = f'{tmp_path}/home', {'dir': f'{tmp_path}/hub-site'}
    nvm(me, home)
    write(me, f'{home}/.cargo/credentials.toml', 'hidden')
    write(me, f'{home}/.cargo/bin/cargo', '#!/bin/sh\necho cargo of the home\n')
    os.chmod(f'{home}/.cargo/bin/cargo', 0o755)
    workspaces = {'site': site if given is None else {**site, 'toolchains': given}}
    with hub_of(me, tmp_path, {'HOME': home, 'npm_config_registry': 'http://127.0.0.1:9'},
                {'ours': {'preset': 'ours'}}, workspaces=workspaces) as hub:
        got = shell(hub, f'cargo; echo x >> {home}/.cargo/bin/cargo; cat {home}/.cargo/*.toml')
        assert ('cargo of the home' in got) == bool(given) and 'hidden' not in got, got
        assert ('Read-only' in got) == bool(given), got
        own = hub.ok('conversations', 'new', '--agent', 'ours', '--workspace', 'site')
        got = str(hub.says(own.decode().strip(), ['shell', 'cargo 2>&1']))
        assert ('cargo of the home' in got) == (given is not False), got


def test_one_program_is_installed_and_one_is_fetched(me, tmp_path):
    """Each is taken from where it is; what was fetched is there for the next `add`, too."""
    home = f'{tmp_path}/home'
    at = nvm(me, home)
    with Registry() as registry, hub_of(me, tmp_path, {
            'HOME': home, 'npm_config_registry': registry.url}) as hub:
        write(me, f'{hub.home}/agents/both.json', json.dumps(
            PRESET | {'acp': ['ours-acp'], 'npm': {'ours': 'ours', 'ours-acp': '@us/ours-acp'}}))
        registry.add('@us/ours-acp', '2.0.0', mock_files(), bin={'ours-acp': 'agent.py'})
        for fetched in ('@us/ours-acp 2.0.0: ', 'ours-acp: @us/ours-acp 2.0.0, fetched before'):
            said = hub.ok('agent', 'add', 'both').decode()
            assert f'ours: {at}/bin/ours\n' in said and fetched in said, said
        assert agents_of(hub)['both'] == {
            'name': 'both', 'preset': 'both', 'login': None, 'run': f'{at}/bin/ours',
            'acp': '@us/ours-acp 2.0.0'}
        assert shell(hub, 'echo $QUIET', 'both').strip() == '1'


def test_what_cannot_start_says_why(me, tmp_path):
    """A program that is nowhere, a preset that is not there: each with what helps."""
    with hub_of(me, tmp_path, {'npm_config_registry': 'http://127.0.0.1:9'},
                {'ours': {'preset': 'ours'}, 'lost': {'preset': 'claud'}}) as hub:
        for agent, why in (('ours', 'ours is neither installed nor fetched: holt agent add '
                            'ours'), ('lost', 'did you mean claude?')):
            talk = hub.talk(agent)
            events = hub.turn(talk, ['say', 'x'])
            assert why in events[-1][1].get('message', '') or why in str(events), events
        hub.fails(125, 'was not fetched from', 'agent', 'add', 'ours')
        hub.fails(125, 'another agent ours', 'agent', 'add', '-n', 'ours', 'claude')
        hub.fails(125, 'no agent x', 'agent', 'rm', 'x')
        hub.fails(1, 'did you mean claude?', 'config', 'check')
