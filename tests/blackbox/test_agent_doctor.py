"""`holt agent doctor`: what an agent lacks is told, with what mends it, and nothing else is."""

import json
import os
import subprocess

import pytest

PRESET = {
    'title': 'Our agent', 'about': 'https://agent.example', 'run': ['ours'], 'acp': ['ours-acp'],
    'npm': {'ours': 'ours'}, 'node': 20, 'hosts': ['api.example.com:443', 'cdn.example.com:443'],
    'state': ['~/.ours'], 'settings': {'~/.ours/settings.json': {'json': {'mode': {'is': 'ask'}}}},
    'secrets': {'OURS_KEY': {'hosts': ['api.example.com']}}, 'credentials': ['~/.ours/login'],
    'mode': 'ask', 'autonomous': ['--yolo'], 'autonomousModes': ['never'],
}


class Desk:
    """A host with all that the agent needs; each method takes one thing away."""

    def __init__(self, me, top):
        self.me, self.home, self.data = me, f'{top}/home', f'{top}/data'
        self.config = {'agents': {'mine': {'preset': 'ours'}}, 'secrets': {
            'OURS_KEY': {'store': True, 'hosts': ['api.example.com']}}}
        self.entry = self.config['agents']['mine']
        self.put(f'{self.data}/agents/ours.json', json.dumps(PRESET))
        self.put(f'{self.data}/secrets/OURS_KEY', 'sealed')
        self.node('v22.1.0')
        for name in ('ours', 'ours-acp'):
            self.program(name, '#!/usr/bin/env node\n')

    def put(self, path, text, mode=0o600):
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        os.chmod(path, mode)

    def program(self, name, text):
        self.put(f'{self.home}/.local/bin/{name}', text, 0o755)

    def node(self, version):
        self.program('node', f'#!/bin/sh\necho {version}\n')

    def no_program(self):
        os.unlink(f'{self.home}/.local/bin/ours')
        return 'program', 'holt agent add ours'

    def no_acp(self):
        os.unlink(f'{self.home}/.local/bin/ours-acp')
        return 'acp', 'Install it: https://agent.example'

    def old_node(self):
        self.node('v18.2.0')
        return 'node', 'Install Node.js 20 or newer'

    def no_key(self):
        os.unlink(f'{self.data}/secrets/OURS_KEY')
        return 'key', 'holt secret set OURS_KEY'

    def no_host(self):
        some = ['*.other.com:443', 'api.example.com:443']
        self.config['principals'] = {'loc*': {'network': some}}
        return 'network', 'Add "cdn.example.com:443" to "network" of "loc*"'

    def no_state(self):
        self.put(f'{self.data}/state', 'in the way')
        return 'state', f"mv '{self.data}/state'"

    def own_settings(self):
        self.put(f'{self.data}/state/mine/.ours/settings.json',
                 '// mine\n{"mode": {"is": "auto"}}')
        return 'settings', 'mv '

    def yolo(self):
        self.entry['args'] = ['--fast', '--yolo']
        return 'mode', 'Take it out of "args"'

    def doctor(self, *words, name='mine'):
        self.put(f'{self.data}/config.json', json.dumps(self.config))
        subprocess.run(['chown', '-R', str(self.me.uid), self.home, self.data],
                       check=True)
        return self.me.run('agent', 'doctor', *words, name, text=True, env={
            'HOME': self.home, 'HOLT_HOME': self.data, 'PATH': '/nonexistent'})


THINGS = ['no_program', 'no_acp', 'old_node', 'no_key', 'no_host', 'no_state', 'own_settings',
          'yolo']
ADVICE = {'settings', 'mode'}


@pytest.fixture
def desks(me, tmp_path):
    os.chmod(tmp_path, 0o755)
    return lambda n: Desk(me, f'{tmp_path}/{n}')


def look(desk):
    done = desk.doctor('-o', 'json')
    assert done.stderr == '', done
    said = json.loads(done.stdout)
    assert done.returncode == (0 if said['ready'] else 1), done
    return said


def test_each_combination_of_what_is_missing(desks):
    """What is taken away is told with its remedy, all else is right."""
    for number in range(1 << len(THINGS)):
        taken = [name for i, name in enumerate(THINGS) if number >> i & 1]
        if {'no_state', 'own_settings'} <= set(taken) or len(taken) > 3 and number % 7:
            continue  # one file can't be in the way of the other; and a sample of the large ones
        desk = desks(number)
        lacks = dict(getattr(desk, name)() for name in taken)
        if 'no_program' in taken and 'no_acp' in taken:
            lacks.pop('node', None)  # none is looked for
        said = look(desk)
        wrong = {c['feature']: c for c in said['checks'] if not c['ok']}
        assert wrong.keys() == lacks.keys(), (taken, said)
        for feature, remedy in lacks.items():
            assert remedy in wrong[feature]['remedy'], (taken, wrong)
        assert said['ready'] == (lacks.keys() <= ADVICE), (taken, said)


def test_what_else_is_a_key(desks):
    """A variable of the entry, a log-in that it keeps; and a secret without hosts is none."""
    desk = desks('entry')
    desk.no_key()
    assert not look(desk)['ready']
    desk.put(f'{desk.data}/state/mine/.ours/login', '{}')
    assert look(desk)['ready']
    os.unlink(f'{desk.data}/state/mine/.ours/login')
    desk.entry['env'] = {'OURS_KEY': '${secret:other}'}
    assert look(desk)['ready']
    desk = desks('without-hosts')
    del desk.config['secrets']['OURS_KEY']['hosts']
    key = [c for c in look(desk)['checks'] if c['feature'] == 'key'][0]
    assert not key['ok'] and '"hosts": ["api.example.com"]' in key['remedy'], key
    del desk.config['secrets']
    assert 'holt agent add ours && holt secret set OURS_KEY' in str(look(desk))


def test_what_an_agent_wrote_leads_nowhere(desks):
    """Its state is hostile: a link, a folder, a pipe or a large file in it are no settings."""
    desk = desks('hostile')
    folder = f'{desk.data}/state/mine/.ours'
    path = f'{folder}/settings.json'
    desk.put(f'{desk.home}/other.json', '{"mode": {"is": "ask"}}')
    os.makedirs(folder)
    for make in (lambda: os.symlink(f'{desk.home}/other.json', path), lambda: os.mkdir(path),
                 lambda: os.mkfifo(path), lambda: desk.put(path, 'x' * (2 << 20))):
        make()
        found = {c['feature']: c['detail'] for c in look(desk)['checks'] if not c['ok']}
        assert found.keys() == {'settings'} and 'settings.json' in found['settings'], found
        (os.rmdir if os.path.isdir(path) and not os.path.islink(path) else os.unlink)(path)
    for text in ('', '{', '[]', '{"mode": ["is"]}', '{"mode": null}'):
        desk.put(path, text)
        assert 'settings' in {c['feature'] for c in look(desk)['checks'] if not c['ok']}, text


def test_a_mode_that_approves_by_itself(desks):
    """As the entry chooses it for conversations."""
    desk = desks('mode')
    desk.entry['options'] = {'mode': 'never'}
    said = look(desk)
    mode = [c for c in said['checks'] if c['feature'] == 'mode'][0]
    assert said['ready'] and not mode['ok'] and 'never: ' in mode['detail'], said


def test_for_people(desks):
    """With remedies; a preset without an entry has a doctor, an unknown name has none."""
    desk = desks('people')
    desk.no_key()
    done = desk.doctor()
    assert done.returncode == 1 and 'holt secret set OURS_KEY' in done.stdout, done
    assert 'neither a key nor a log-in' in desk.doctor(name='ours').stdout
    assert 'did you mean ours?' in desk.doctor(name='our').stderr
