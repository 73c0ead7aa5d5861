"""Fixtures: programs of Holt as root and as a user without rights, and what they must not leave.

	hub      a `holt mcp` that many tests share; sandboxes of it come from `sb` and `box`
	spawn    starts a `holt mcp` of the test's own; nothing of it may be left at the end
	holt     runs `holt ARGUMENT...` to its end
peer a server over HTTP whose every step is in the test's hands; http_host makes one with options

Tests that have an identity get the mark `sandboxes`, those that mostly wait for programs of others
`peers`. scripts/test runs them and the others beside each other (pytest -m). Those with the mark
`rights` run as root and as a user; `make test-all` runs all that have an identity so, and those
with the mark `whole` (tests/soak.py).
"""

import itertools
import os
import shutil
import sys

import pytest

import host
from client import Failed
from http_host import HttpHost
from who import BUILD, HERE, HOLT, Who

# To write 150 files of tests anew for their asserts takes ten seconds, and several pytest run.
sys.dont_write_bytecode, sys.pycache_prefix = False, os.path.join(BUILD, 'pycache')
sys.path.append(os.path.dirname(HERE))
from soak import WHOLE  # noqa: E402
from time_limit import time_limit  # noqa: E402, F401


def pytest_addoption(parser):
    parser.addoption('--update-golden', action='store_true', help='write the golden files anew')


def pytest_configure(config):
    config.addinivalue_line('markers', 'sandboxes: runs as root or as a user without rights')
    config.addinivalue_line('markers', 'rights: what Holt may do decides how it does it')
    config.addinivalue_line('markers', 'whole: asks in another way what a cheaper one asks')
    config.addinivalue_line('markers', 'timing: its verdict hangs on how long something takes')
    config.addinivalue_line('markers', 'peers: mostly waits for programs of others')


PEERS = {'test_bridge', 'test_e2b', 'test_http_clients', 'test_mcp_cli',
         'test_mcp_cli_hostile', 'test_module_servers', 'test_oauth', 'test_page',
         'test_real_agents', 'test_sdk_ask'}
LONG = {'test_page.py', 'test_lag.py', 'test_http_clients.py', 'test_mcp_cli.py', 'test_faults.py',
        'test_marks.py'}  # come first, so that no process ends alone with one of them


def pytest_collection_modifyitems(config, items):
    if WHOLE:
        return
    left_out = [item for item in items if item.get_closest_marker('whole')
                or not os.getuid() and not item.get_closest_marker('rights')
                and hasattr(item, 'callspec') and item.callspec.params.get('who') == 'user']
    config.hook.pytest_deselected(items=left_out)
    left = set(left_out)
    items[:] = [item for item in items if item not in left]


def claimed(items, queue):
    """The tests of the files that no other pytest of this queue has taken."""
    files = [(name, list(tests))
             for name, tests in itertools.groupby(items, lambda item: item.path.name)]
    files.sort(key=lambda file: file[0] not in LONG)
    for n, (name, tests) in enumerate(files):  # a file is there once for each identity
        try:
            os.close(os.open(os.path.join(queue, f'{n}-{name}'), os.O_CREAT | os.O_EXCL))
            yield from tests
        except FileExistsError:
            pass


def pytest_runtestloop(session):
    """HOLT_TEST_QUEUE: a folder by which several pytest share their files (scripts/test)."""
    queue = os.environ.get('HOLT_TEST_QUEUE')
    if not queue or session.testsfailed or session.config.option.collectonly:
        return None
    tests = claimed(session.items, queue)
    item = next(tests, None)
    while item:
        following = next(tests, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        item = following
    return True


def pytest_itemcollected(item):
    if 'who' in item.fixturenames:
        item.add_marker('sandboxes')
    elif item.module.__name__ in PEERS:
        item.add_marker('peers')


def pytest_sessionstart(session):
    if not os.path.exists(HOLT):
        pytest.exit(f'there is no {HOLT}: build it, or set HOLT_BUILD', 1)
    host.as_after_login()
    host.OWN.enter()


def pytest_sessionfinish(session, exitstatus):
    host.kill_all()
    host.OWN.leave()


@pytest.fixture
def transcript(request):
    """Compares lines with transcripts/NAME.txt, or writes that anew."""
    def compare(name, lines):
        path = os.path.join(HERE, 'transcripts', name + '.txt')
        if request.config.getoption('--update-golden'):
            with open(path, 'w', encoding='utf-8') as f:
                f.write('\n'.join(lines) + '\n')
        with open(path, encoding='utf-8') as f:
            assert lines == f.read().splitlines()
    return compare


SHARED = []  # pids of programs that outlive a test


@pytest.fixture(scope='session')
def me():
    who = Who('root' if os.getuid() == 0 else 'user')
    yield who
    shutil.rmtree(who.top)


@pytest.fixture(scope='session', params=['root', 'user'] if os.getuid() == 0 else ['user'])
def who(request, me):
    if request.param == me.name:
        yield me
        return
    user = Who('user')
    if not user.reaches_holt():
        pytest.skip('the build directory is closed to users without rights')
    yield user
    shutil.rmtree(user.top)


def residue_of(who):
    return host.Residue([*who.trees], except_for=tuple(SHARED))


@pytest.fixture
def residue(who):
    """What is there before the test must be all that is there after it."""
    found = residue_of(who)
    yield found
    found.check()


def spawner(who):
    started = []

    def spawn(*arguments, version=None, env=None):
        client = who.mcp(*arguments, env=env)
        started.append(client)
        if version != 'none':
            client.initialize(*([version] if version else []))
        return client
    return spawn, started


@pytest.fixture
def spawn(residue, who):
    """Starts a holt mcp that is initialized, unless version is 'none'."""
    start, started = spawner(who)
    yield start
    for client in started:
        client.kill()


@pytest.fixture
def start(me):
    """The same as whoever runs the tests: for what does not depend on rights."""
    residue = residue_of(me)
    start, started = spawner(me)
    yield start
    for client in started:
        client.kill()
    residue.check()


@pytest.fixture(scope='session')
def hub(who):
    client = who.mcp('--pool', '2')
    SHARED.append(client.pid)
    client.initialize()
    yield client
    SHARED.remove(client.pid)
    assert client.close() == 0


@pytest.fixture
def box(hub):
    """Makes sandboxes in the shared hub, and ends those that are left."""
    made = []

    def create(**arguments):
        made.append(hub.create(**arguments))
        return made[-1]
    yield create
    for sandbox in made:
        try:
            sandbox.terminate()
        except Failed as e:
            assert e.code == 'sandbox_not_found', e


@pytest.fixture
def sb(box):
    return box()


@pytest.fixture(scope='session')
def driver(hub):
    """How limits are held for this identity: cgroup2, cgroup1 or rlimit."""
    sandbox = hub.create()
    sandbox.terminate()
    return sandbox.info['limits']['enforced_by']


@pytest.fixture
def exact(driver):
    """Limits hold for the sandbox as a whole."""
    if driver == 'rlimit':
        pytest.skip('this identity has no control groups: limits are per process here')


@pytest.fixture
def holt(residue, who):
    return who.run


@pytest.fixture
def http_host(me):
    started = []

    def start(**options):
        started.append(HttpHost(me.log(), **options))
        return started[-1]
    yield start
    for peer in started:
        peer.close()


@pytest.fixture
def peer(http_host):
    return http_host()
