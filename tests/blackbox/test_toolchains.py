"""Toolchains of a home in the sandboxes of workspaces (docs/coding.md): programs run, and what is
beside them in the home stays there."""

import json
import os
import shutil

import pytest

from test_coding_shell import Work
from test_hub_cli import Hub
from test_keys import as_bearer, key
from test_profiles import session, tried

CARGO = '''#!/bin/sh
test -f "$RUSTUP_HOME/toolchains/stable/lib/std" || exit 1
printf 'running 2 tests\\ntest a ... ok\\ntest b ... ok\\n\\n'
echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'
'''
SAY = '#!/bin/sh\necho {}\n'
PROGRAMS = {
    '.cargo/bin/cargo': CARGO,
    '.rustup/toolchains/stable/lib/std': 'of rust',
    '.rustup/settings.toml': 'default_toolchain = "stable"\n',
    '.nvm/alias/default': '20\n',
    '.nvm/versions/node/v20.9.0/bin/node': SAY.format('older'),
    '.nvm/versions/node/v22.1.0/bin/node': SAY.format('not chosen'),
    '.pyenv/version': '3.12.1\n3.11.0\n',
    '.pyenv/versions/3.11.0/bin/python3': SAY.format('not chosen'),
    '.pyenv/versions/3.12.1/bin/python3': SAY.format('chosen python'),
    'sdk/go1.9/bin/go': SAY.format('older'),
    'sdk/go1.22.1/bin/go': SAY.format('newest go'),
    '.local/bin/uv': SAY.format('uv'),
}
NODE = '.nvm/versions/node/v20.10.0'  # a real one
KEPT = ['.cargo/credentials.toml', '.cargo/config.toml', '.npmrc', f'{NODE}/etc/npmrc',
        '.config/go/env', '.ssh/id_ed25519', '.pyenv/versions/3.12.1/pip.conf', '.local/bin/other',
        '.rustup/other', 'keys/bin/key']
LINKS = {'.bun': 'keys', '.deno/bin': '../keys/bin',
         f'{NODE}/bin/leak': '../../../../../keys/bin/key'}


class Home:
    def __init__(self, me, top):
        self.path = str(top)
        for name, text in {**PROGRAMS, **dict.fromkeys(KEPT, 'hidden')}.items():
            at = self.at(name)
            os.makedirs(os.path.dirname(at), exist_ok=True)
            with open(at, 'w', encoding='utf-8') as f:
                f.write(text)
            os.chmod(at, 0o755)
        os.makedirs(self.at(f'{NODE}/bin'))
        shutil.copy(shutil.which('node'), self.at(f'{NODE}/bin/node'))
        for name, to in LINKS.items():
            os.makedirs(os.path.dirname(self.at(name)), exist_ok=True)
            os.symlink(to, self.at(name))
        for at, _, names in os.walk(self.path):
            for path in (at, *(os.path.join(at, n) for n in names)):
                os.lchown(path, me.uid, me.uid)
        os.chmod(self.path, 0o755)

    def at(self, name):
        return f'{self.path}/{name}'


@pytest.fixture(scope='module')
def home(me, tmp_path_factory):
    if not shutil.which('node'):
        pytest.skip('node is not installed')
    home = Home(me, tmp_path_factory.mktemp('home'))
    yield home
    shutil.rmtree(home.path)


@pytest.fixture(scope='module')
def work(me, home):
    w = Work(me, env={'HOME': home.path})
    yield w
    assert w.mcp.close() == 0
    shutil.rmtree(w.path)


def test_programs_run(work, home):
    """The chosen version, else the newest; a runner of tests by its name alone."""
    said = work.text('Bash', command='python3; go; uv; node -p process.execPath').split('\n')
    assert said[:4] == ['chosen python', 'newest go', 'uv', home.at(f'{NODE}/bin/node')], said
    work.put('Cargo.toml', '[package]\nname = "x"\n')
    facts = work.facts('run_tests')
    assert (facts['verdict'], facts['passed']) == ('passed', 2), facts
    work.clear()
    work.put('package.json', '{"scripts": {"test": "node --test"}}')
    work.put('a.test.js', 'require("node:test")("adds", () => {})\n')
    facts = work.facts('run_tests')
    assert (facts['verdict'], facts['passed']) == ('passed', 1), facts
    work.clear()


def test_nothing_else_of_the_home(work, home):
    """No credentials beside them, nothing through links. The control is a program's own text."""
    def read(names):
        paths = ' '.join(home.at(name) for name in names)
        return work.text('Bash', command=f'for f in {paths}; do cat $f && echo "of $f"; done')
    assert read(['.cargo/bin/cargo', '.rustup/settings.toml']).count('of /') == 2
    said = read([*KEPT, '.bun/bin/key', '.deno/bin/key', f'{NODE}/bin/leak'])
    assert 'hidden' not in said and '\nof /' not in said, said


def test_nothing_is_written(work, home):
    names = ['.cargo/bin/cargo', '.cargo/bin/new', '.rustup/settings.toml', f'{NODE}/bin/node',
             '.pyenv/versions/3.12.1/bin/new', 'sdk/go1.22.1/new']
    said = work.text('Bash', command='; '.join(f'echo x >> {home.at(n)} || echo held'
                                               for n in names))
    assert said.count('held\n') == len(names) and said.count('Read-only') == len(names), said
    assert not os.path.exists(home.at('.cargo/bin/new'))
    with open(home.at('.cargo/bin/cargo'), encoding='utf-8') as f:
        assert f.read() == CARGO


def test_who_gets_them(me, home, tmp_path_factory):
    """The operator's client, unless the workspace says no; a key only where it says yes."""
    top = tmp_path_factory.mktemp('grants')
    dirs = {name: str(top / name) for name in ('yes', 'no', 'silent')}
    config = {'workspaces': {'a': {'dir': dirs['yes'], 'toolchains': True},
                             'b': {'dir': dirs['no'], 'toolchains': False}}}
    (top / 'home').mkdir()
    (top / 'home/config.json').write_text(json.dumps(config))
    for path in dirs.values():
        os.mkdir(path)
    for at, _, names in os.walk(top):
        for path in (at, *(os.path.join(at, n) for n in names)):
            os.chown(path, me.uid, me.uid)
    (top / 'home').chmod(0o700)
    flags = [word for path in dirs.values() for word in ('--workspace', path)]
    flags += ['--pool', '0', '--config', str(top / 'home/config.json')]
    has = {}
    with Hub(me, top / 'home', '--listen', '127.0.0.1:0', *flags,
             env={'HOME': home.path}) as hub:
        of = session(as_bearer(hub, key(hub, 'other')), tools='coding')
        for name in dirs:
            has['key', name] = 'uv\n' in tried(of, 'Bash', command='uv', workspace=name)
    mcp = me.mcp('--tools', 'coding', *flags, env={'HOME': home.path})
    mcp.initialize()
    for name in dirs:
        said = mcp.request('tools/call', {'name': 'Bash', 'arguments': {
            'command': 'uv', 'workspace': name}})['result']
        has['own', name] = said['content'][0]['text'].startswith('uv\n')
    assert mcp.close() == 0
    assert has == {('key', 'yes'): True, ('key', 'no'): False, ('key', 'silent'): False,
                   ('own', 'yes'): True, ('own', 'no'): False, ('own', 'silent'): True}
