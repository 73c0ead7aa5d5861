"""What `holt` loads: libraries for HTTP, TLS and archives only where they are used, and a plain
failure where they can't be."""

import glob
import json
import re

import pytest

from client import LATEST
from test_hub_cli import Hub
from who import HOLT

HEAVY = ('libcurl', 'libgnutls', 'libmicrohttpd', 'libarchive', 'libssl', 'libldap', 'libxml2',
         'libicuuc')
NOWHERE = 'http://127.0.0.1:1/'  # nobody listens there
HELLO = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'initialize', 'params': {
    'protocolVersion': LATEST, 'capabilities': {},
    'clientInfo': {'name': 'test', 'version': '1'}}}).encode() + b'\n'


@pytest.fixture
def run(me, tmp_path):
    """Runs holt with folders of its own."""
    def run(*arguments, env=None, **options):
        own = {'HOLT_HOME': str(tmp_path), 'XDG_CACHE_HOME': str(tmp_path), **(env or {})}
        return me.run(*arguments, env=own, **options)
    return run


@pytest.fixture
def loads(run, tmp_path):
    """Runs holt; what it printed, and which of HEAVY the dynamic linker loaded for it,
    at its start or later."""
    def loads(*arguments, env=None, **options):
        trace = str(tmp_path / 'trace')
        done = run(*arguments, env={**(env or {}), 'LD_DEBUG': 'files', 'LD_DEBUG_OUTPUT': trace},
                   **options)
        found = set()
        for path in glob.glob(trace + '.*'):
            with open(path, encoding='utf-8') as f:
                found.update(re.findall(r'calling init: .*/(lib\w+)', f.read()))
        assert 'libc' in found
        return done, sorted(found & set(HEAVY))
    return loads


@pytest.mark.parametrize('arguments, typed', [
    (('version',), None), (('help',), None), (('doctor',), None), (('run', '--', 'true'), None),
    (('mcp',), HELLO)],
    ids=lambda x: x[0] if isinstance(x, tuple) else '')
def test_light(loads, arguments, typed):
    done, heavy = loads(*arguments, input=typed or b'')
    assert done.returncode == 0, done.stderr
    assert heavy == []
    assert typed is None or b'"serverInfo"' in done.stdout


def test_exec_is_light(me, loads, tmp_path):
    hub = Hub(me, tmp_path, '--listen', 'none', '--pool', '0')
    try:
        name = hub.ok('up').decode().strip()
        done, heavy = loads('exec', name, '--', 'echo', 'hello', env=hub.env)
        assert (done.returncode, done.stdout) == (0, b'hello\n'), done.stderr
        assert heavy == []
        hub.ok('down', name)
    finally:
        hub.end()
        hub.kill()


def test_a_client_loads_what_it_needs(loads):
    done, heavy = loads('mcp', 'tools', '--url', NOWHERE)
    assert done.returncode != 0
    assert re.search(b"Could(n't| not) connect", done.stderr), done  # as curl's versions say it
    assert 'libcurl' in heavy and 'libmicrohttpd' not in heavy and 'libarchive' not in heavy


@pytest.mark.parametrize('library, arguments', [
    ('libcurl', ('mcp', 'tools', '--url', NOWHERE)),
    ('libcurl', ('mcp', '--connect', NOWHERE)),
    ('libmicrohttpd', ('serve', '--listen', '127.0.0.1:0', '--pool', '0')),
    ('libarchive', ('images', 'import', 'ARCHIVE', 'name')),
    ('libgnutls', ('images', 'import', 'ARCHIVE', 'name'))],
                         ids=lambda x: x if isinstance(x, str) else '-'.join(x[:2]))
def test_a_broken_library_is_named(run, tmp_path, library, arguments):
    with open(HOLT, 'rb') as f:
        soname = re.search(rb'\0(%s\.so\.[0-9]+)\0' % library.encode(), f.read())[1].decode()
    (tmp_path / soname).write_bytes(b'')
    archive = tmp_path / 'an.tar'
    archive.write_bytes(bytes(10240))
    done = run(*[str(archive) if a == 'ARCHIVE' else a for a in arguments],
               env={'LD_LIBRARY_PATH': str(tmp_path)}, input=b'')
    assert done.returncode == 125, done
    assert f"the library {soname} can't be loaded; install it".encode() in done.stderr
