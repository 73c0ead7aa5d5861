"""What packages are made of. `make dist-check` makes them whole, twice, and installs them."""

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess

import pytest

from who import HERE

TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get('HOLT_BUILD', os.path.join(TOP, 'build'))


def out(*argv, **more):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=60,
                          **more).stdout


@pytest.fixture(scope='module')
def installed():
    return set(json.loads(out('meson', 'introspect', '--installed', BUILD)).values())


def test_what_is_installed(installed):
    """A helper each, a page of the manual for each verb's help, and what the shells load."""
    names = {os.path.basename(path) for path in installed}
    assert names >= {'holt', 'holt-warden', 'holt-init', 'holt-pack', 'holt-egress', 'holt-js',
                     'holt-call', 'holt.py', 'holt.service', 'holt.socket', 'config.schema.json',
                     'agent.schema.json'}
    ends = {'bash-completion/completions/holt.bash', 'zsh/site-functions/_holt',
            'fish/vendor_completions.d/holt.fish'}
    assert not {end for end in ends if not any(path.endswith('/' + end) for path in installed)}
    if shutil.which('scdoc'):
        pages = {f'{page}.1' for page in re.findall(
            r'\.page = "(.*?)"', out('grep', '-rh', r'\.page =', os.path.join(TOP, 'src/cli')))}
        assert len(pages) > 10 and pages <= names


def test_what_messages_name_is_installed(installed):
    """`docs/policy.md`, say, of a message, of help or of a page of the manual."""
    assert any(path.endswith('/share/doc/holt/docs') for path in installed)
    named = {*out('grep', '-rhoE', '--exclude-dir=node_modules', r'docs/[A-Za-z_-]+\.(md|json)',
                  f'{TOP}/src', f'{TOP}/man').split()}
    assert len(named) > 10
    assert not {name for name in named if not os.path.exists(os.path.join(TOP, name))}


def unit(name):
    """A unit of systemd as it is built; a key that stands twice has all its values."""
    parsed = configparser.RawConfigParser(strict=False, delimiters='=', comment_prefixes='#')
    parsed.optionxform = str
    with open(os.path.join(BUILD, 'systemd', name), encoding='utf-8') as f:
        parsed.read_string(re.sub(r'^ListenStream=(.*)\nListenStream=(.*)$',
                                  r'ListenStream=\1 \2', f.read(), flags=re.M))
    return parsed


def test_units(installed):
    """The program that is started is the one that is installed, as the user who has its folder."""
    service, sockets = unit('holt.service'), unit('holt.socket')
    program, verb = shlex.split(service['Service']['ExecStart'])
    assert program in installed and verb == 'serve'
    assert service['Service']['User'] == sockets['Socket']['SocketGroup'] == 'holt'
    home = dict(row.split('=') for row in service['Service']['Environment'].split())['HOLT_HOME']
    assert home == '/var/lib/' + service['Service']['StateDirectory']
    assert service['Service']['KillMode'] == 'process'  # a crash leaves the sandboxes
    assert '127.0.0.1:5757' in sockets['Socket']['ListenStream'].split()


def test_the_version_is_one():
    version = json.loads(out('meson', 'introspect', '--projectinfo', BUILD))['version']
    with open(os.path.join(TOP, 'debian/changelog'), encoding='utf-8') as f:
        assert re.match(r'holt \((.*?)\) ', f.read())[1] == version


def test_same_bytes_in_another_folder(tmp_path):
    """Of a program of each way to build: by musl, with the flags of packages; the page."""
    ninja = out('ninja', '-C', BUILD, '-t', 'commands', '-s', 'src/box/inside/holt-call')
    command = ninja.strip().splitlines()[-1]
    made = []
    for folder in ('one', 'another/deeper'):
        top = str(tmp_path / folder)
        shutil.copytree(os.path.join(TOP, 'src'), f'{top}/src')
        shutil.copytree(os.path.join(TOP, 'ui'), f'{top}/ui', symlinks=True,
                        ignore=shutil.ignore_patterns('node_modules'))
        os.symlink(os.path.join(TOP, 'ui/node_modules'), f'{top}/ui/node_modules')
        words = [word.replace('../src', 'src').replace(TOP, top) for word in shlex.split(command)]
        words[words.index('-o') + 1] = f'{top}/program'
        words = [word for word in words if word != '-s'] + [f'-ffile-prefix-map={top}=.']
        subprocess.run(words, cwd=top, check=True, timeout=60)
        files = [f'{top}/program']
        if shutil.which('node') and os.path.exists(f'{top}/ui/node_modules/.holt-stamp'):
            subprocess.run(['node', f'{top}/ui/build.mjs', f'{top}/page.c'], check=True, timeout=60)
            files.append(f'{top}/page.c')
        made.append([open(path, 'rb').read() for path in files])
    assert made[0] == made[1] and all(made[0])
