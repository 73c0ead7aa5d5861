"""How the sources stand to each other: what scripts/check-layers refuses,
and what the build of a warden depends on."""

import os
import subprocess
import sys

import pytest

from who import BUILD, HERE

TOP = os.path.dirname(os.path.dirname(HERE))
RULES = '''
app		: box/* base
box/host	: box/wire base
box/warden	: box/wire base
box/wire	: base
base		:

box/host/tls.c	: base
<uv.h>		: box/host app
'''
TREE = {
    'app/main.c': '#include <uv.h>\n#include "box/host/box.h"\n#include "box/wire/wire.h"\n',
    'box/host/box.c': '#include <uv.h>\n\n#include "box/host/internal.h"\n#include '
    '"box/wire/wire.h"\n',
    'box/host/box.h': '#include "base/err.h"\n',
    'box/host/internal.h': '#include "box/host/box.h"\n',
    'box/host/deep/below.c': '#include "box/host/internal.h"\n',
    'box/warden/warden.c': '#include <stdio.h>\n\n#include "box/warden/internal.h"\n#include '
    '"box/wire/wire.h"\n',
    'box/warden/internal.h': '',
    'box/wire/wire.h': '#include "base/err.h"\n',
    'base/err.h': '',
}


def check(top, rules=RULES, **more):
    """The exit status of scripts/check-layers for that tree, and what it says;
    a key of more is a path with __ for /."""
    files = {**TREE, **{path.replace('__', '/') + '.c': text for path, text in more.items()}}
    for path, text in files.items():
        full = top / 'src' / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text)
    (top / 'src/layers.txt').write_text(rules)
    done = subprocess.run([sys.executable, f'{TOP}/scripts/check-layers', str(top)],
                          capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout


def test_layers_are_kept(tmp_path):
    status, said = check(tmp_path)
    assert (status, said) == (0, 'check-layers: 9 files keep to src/layers.txt\n')


@pytest.mark.parametrize('include,wanted', [
    ('"box/host/box.h"', 'box/warden may not include box/host ("box/host/box.h")'),
    ('"app/app.h"', 'box/warden may not include app'),
    ('<box/host/box.h>', 'write "box/host/box.h": <> is for headers of libraries'),
    ('<uv.h>', '<uv.h> belongs to box/host, app'),
    ('"wire.h"', 'write "box/warden/wire.h": include paths start at src/'),
    ('"../wire/wire.h"', 'include paths start at src/'),
    ('"box/box.h"', '"box/box.h": no folder box in src/layers.txt'),
])
def test_layers_refuse(tmp_path, include, wanted):
    status, said = check(tmp_path, box__warden__new=f'\n#include {include}\n')
    assert status == 1 and said.startswith('src/box/warden/new.c:2: ') and wanted in said, said
    assert said.endswith('check-layers: 1 breaches of src/layers.txt\n'), said


def test_internal_headers_are_their_folders_own(tmp_path):
    status, said = check(tmp_path, app__new='#include "box/host/internal.h"\n')
    assert status == 1
    assert said.splitlines()[0] == ('src/app/new.c:1: "box/host/internal.h" is for box/host alone; '
                                    'include a header that box/host has for others, '
                                    'or declare it in one'), said


def test_every_folder_has_a_line(tmp_path):
    status, said = check(tmp_path, box__new='', stray='', other__x='')
    assert status == 1
    assert said.splitlines()[:3] == ['src/stray.c:1: no file stands in src/ itself; '
                                     'move it into a folder',
                                     'src/box:1: this folder has no line in src/layers.txt; '
                                     'add one at its height',
                                     'src/other:1: this folder has no line in src/layers.txt; '
                                     'add one at its height'], said


@pytest.mark.parametrize('line,wanted', [
    ('top : none', 'none has no line of its own'),
    ('top : app/*', 'app/* matches no folder further below'),
    ('top', 'write "folder : what it may include"'),
    ('base : ', 'write "folder : what it may include", once a folder'),
])
def test_rules_are_checked(tmp_path, line, wanted):
    status, said = check(tmp_path, f'{line}\n{RULES}')
    assert status == 1 and wanted in said, said


def test_arrows_go_down(tmp_path):
    status, said = check(tmp_path, RULES.replace('base\t\t:', 'base\t\t: box/wire'))
    assert status == 1 and 'base includes box/wire, which stands above it' in said, said


def test_a_file_has_rules_of_its_own(tmp_path):
    rules = RULES.replace('box/host/tls.c\t: base', 'box/warden/spy_*\t: box/host')
    assert check(tmp_path, rules, box__warden__spy_a='#include "box/host/box.h"\n')[0] == 0
    assert check(tmp_path, rules, box__warden__sly_a='#include "box/host/box.h"\n')[0] == 1


def test_a_build_of_the_warden_is_its_own_and_the_wires():
    """A hub finds the warden of an earlier one by the digest of what that was built from: a change
    of the hub's leaves it."""
    said = subprocess.run(['ninja', '-C', BUILD, '-t', 'deps', 'src/box/wire/build_id.h'],
                          capture_output=True, text=True,
                          timeout=60, check=True).stdout
    needed = {os.path.relpath(line.strip(), TOP)
              for line in said.splitlines() if line.startswith('    ')}
    assert {os.path.dirname(path) for path in needed} == {'src/base', 'src/box/archive',
                                                          'src/box/init', 'src/box/warden',
                                                          'src/box/wire'}, said
    for folder in ('init', 'warden'):
        of_it = {f'src/box/{folder}/{name}' for name in os.listdir(f'{TOP}/src/box/{folder}')
                 if name.endswith(('.c', '.h'))}
        assert of_it <= needed, of_it - needed
    assert {'src/box/wire/wire.h', 'src/box/wire/limits.h', 'src/box/archive/tar_tree.h',
            'src/base/err_table.h'} <= needed
