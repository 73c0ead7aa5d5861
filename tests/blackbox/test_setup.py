"""What a machine that lacks something is told, and that nothing is left out once it has been
installed."""

import json
import os
import shutil
import subprocess

import pytest

from who import HERE

TOP = os.path.dirname(os.path.dirname(HERE))
PROGRAMS = {'json_parse', 'engine_life'}  # a test of each kind that needs cmocka


@pytest.fixture
def lacking(tmp_path):
    """An environment where everything is installed but cmocka."""
    modules = tmp_path / 'pkgconfig'
    modules.mkdir()
    folders = subprocess.run(['pkg-config', '--variable', 'pc_path', 'pkg-config'],
                             capture_output=True, text=True, check=True)
    for folder in folders.stdout.strip().split(':'):
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name != 'cmocka.pc' and not (modules / name).exists():
                (modules / name).symlink_to(os.path.join(folder, name))
    return {**os.environ, 'PKG_CONFIG_LIBDIR': str(modules), 'CMAKE': '/nonexistent'}


def configure(folder, *arguments, env=None):
    return subprocess.run([os.path.join(TOP, 'scripts/setup'), folder, *arguments], env=env,
                          capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=280, check=False)


def programs_of(folder):
    said = subprocess.run(['meson', 'introspect', '--tests', folder], capture_output=True,
                          text=True, check=True)
    return {test['name'] for test in json.loads(said.stdout)}


def test_what_is_installed_later_is_found(tmp_path, lacking):
    """`make demo` installs and configures less than `make test` needs, which says what it lacks."""
    folder = tmp_path / 'build'
    for _ in range(2):  # a failure is not remembered as a success
        done = configure(folder, '-Dtests=enabled', env=lacking)
        assert done.returncode == 1
        assert 'cmocka' in done.stderr and 'run: scripts/deps build test' in done.stderr, (
            done.stderr)
    assert configure(folder, '--buildtype=release', env=lacking).returncode == 0
    assert not PROGRAMS & programs_of(folder)
    done = configure(folder, '--buildtype=release')
    assert done.returncode == 0, done.stderr
    assert programs_of(folder) >= PROGRAMS

    # Nothing has changed, so nothing is done; also not for fewer arguments than before.
    configured = os.stat(folder / 'build.ninja').st_mtime_ns
    for arguments in (['--buildtype=release'], []):
        assert configure(folder, *arguments).returncode == 0
        assert os.stat(folder / 'build.ninja').st_mtime_ns == configured

    # An argument that is new counts.
    assert configure(folder, '-Dtests=enabled').returncode == 0
    assert os.stat(folder / 'build.ninja').st_mtime_ns != configured
    assert programs_of(folder) >= PROGRAMS


@pytest.mark.skipif(not shutil.which('dpkg-query'), reason='this is no Debian')
def test_make_names_the_command_that_helps(tmp_path):
    """In a clone where nothing has been installed."""
    query = tmp_path / 'dpkg-query'
    query.write_text('#!/bin/sh\n')
    query.chmod(0o755)
    env = {**os.environ, 'PATH': f'{tmp_path}:{os.environ["PATH"]}'}
    done = subprocess.run(['make', '-s', '-C', TOP], env=env, capture_output=True, text=True,
                          timeout=60,
                          stdin=subprocess.DEVNULL, check=False)
    assert done.returncode and 'libuv1-dev' in done.stderr
    assert 'deps: to install what is missing, run: scripts/deps\n' in done.stderr, done.stderr


# ---- what installs -------------------------------------------------------------------------------

FAKE = """#!/bin/sh
echo "${0##*/} $*" >> "$FAKE_LOG"
case "${0##*/} $*" in
"meson install"*) mkdir -p "$FAKE_TO/lib/some" && touch "$FAKE_TO/lib/some/libmcp.so.0" ;;
"ldconfig -p") [ -z "$FAKE_KNOWN" ] || echo "	libmcp.so.0 => $FAKE_TO/lib/some/libmcp.so.0" ;;
"id -u") echo "$FAKE_UID" ;;
esac
"""


@pytest.mark.parametrize('uid', [0, 1000])
@pytest.mark.parametrize('known', ['', 'yes'])
@pytest.mark.parametrize('destdir', [False, True])
def test_install_tells_the_linker(tmp_path, uid, known, destdir):
    """As root it has the cache made anew; where the linker does not look, it says so."""
    (tmp_path / 'scripts').mkdir()
    (tmp_path / 'build').mkdir()
    (tmp_path / 'build/build.ninja').touch()
    shutil.copy(os.path.join(TOP, 'scripts/install'), tmp_path / 'scripts')
    (tmp_path / 'bin').mkdir()
    for name in ('meson', 'ldconfig', 'id'):
        (tmp_path / 'bin' / name).write_text(FAKE)
        (tmp_path / 'bin' / name).chmod(0o755)
    prefix = tmp_path / 'prefix'
    env = {'PATH': f'{tmp_path}/bin:{os.environ["PATH"]}', 'FAKE_LOG': str(tmp_path / 'log'),
           'FAKE_TO': str(prefix), 'FAKE_UID': str(uid), 'FAKE_KNOWN': known}
    done = subprocess.run([tmp_path / 'scripts/install', prefix,
                           *([tmp_path / 'dest'] if destdir else [])], env=env, timeout=60,
                          capture_output=True, text=True, check=True)
    ran = (tmp_path / 'log').read_text().splitlines()
    assert ('ldconfig ' in ran) == (uid == 0 and not destdir), ran
    assert ('the linker does not look' in done.stdout) == (not known and not destdir), done
    assert done.stdout.splitlines()[0].endswith('/bin/holt')
