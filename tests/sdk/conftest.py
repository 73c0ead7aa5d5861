"""Both SDKs against a real hub, over both of its sockets.

	hub	a `holt serve` that many tests share, with an operator's file
	face	both faces of the Python SDK, each over one of the sockets, as one to await
		(face.py); with @every both over both
	box	a sandbox of it
"""

import os
import shutil
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(TOP, 'sdk/python'), os.path.join(TOP, 'tests/blackbox'),
                os.path.join(TOP, 'tests')]

import host  # noqa: E402
from face import Face  # noqa: E402
from test_policy import Hub  # noqa: E402
from time_limit import time_limit  # noqa: E402, F401
from who import HOLT, Who  # noqa: E402

TS = os.path.join(TOP, 'sdk/typescript')
TSC = os.path.join(TS, 'node_modules/.bin/tsc')
SECRET = 'value-of-the-secret-f3a9c1'
CONFIG = {
    'policy': {'rules': [
        {'name': 'no forbidden files', 'actions': ['files.write'],
         'when': {'/path': '*forbidden*'}, 'then': 'deny'},
        {'name': 'keeps', 'actions': ['sandbox.terminate'], 'when': {'/sandbox': 'kept-*'},
         'then': 'deny'}]},
    'principals': {'token': {'secrets': ['of-store']}},
}
SERVE = ['--allow', 'a.example:443', '--allow', 'b.example:8443', '--preview', '127.0.0.1:0']


def pytest_sessionstart(session):
    if not os.path.exists(HOLT):
        pytest.exit(f'there is no {HOLT}: build it, or set HOLT_BUILD', 1)
    host.OWN.enter()


def pytest_sessionfinish(session, exitstatus):
    host.kill_all()
    host.OWN.leave()


@pytest.fixture(scope='session')
def me():
    who = Who('root' if os.getuid() == 0 else 'user')
    yield who
    shutil.rmtree(who.top)


@pytest.fixture(scope='session')
def hub(me, tmp_path_factory):
    home = tmp_path_factory.mktemp('hub')
    os.chown(home, me.uid, me.uid)
    with Hub(me, home, *SERVE, **CONFIG) as shared:
        done = me.run('secret', 'set', 'of-store', env=shared.env, input=SECRET, text=True)
        assert done.returncode == 0, done.stderr
        yield shared
        assert shared.call('GET', '/v1/sandboxes') == []  # nothing is left


def place(hub, door):
    """How to find the hub."""
    url = f'unix:{hub.paths[0]}' if door == 'unix' else f'http://127.0.0.1:{hub.address[1]}'
    return {'base_url': url, 'api_key': hub.token}


@pytest.fixture(params=['blocking-unix', 'asyncio-http'])
def face(request, hub):
    kind, door = request.param.split('-')
    with Face(kind, place(hub, door)) as one:
        yield one


@pytest.fixture
def box(face):
    made = face.wait(face.Sandbox.create(ttl_seconds=600, client=face.client))
    yield made
    face.wait(made.kill())


@pytest.fixture(scope='session')
def compiled():
    """The TypeScript SDK and its examples, once."""
    if not shutil.which('node') or not os.path.exists(TSC):
        pytest.skip('Node.js or its packages are missing: scripts/deps test')
    done = subprocess.run([TSC, '-p', TS], capture_output=True, text=True, timeout=280,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def node(*arguments, env=None):
    done = subprocess.run(['node', '--test-reporter=tap', *arguments],
                          env={**os.environ, **(env or {})}, capture_output=True, text=True,
                          timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout
