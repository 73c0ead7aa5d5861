"""Fixtures of the escape tests.

	world		things of the host that must not be reached
	who		root and an unprivileged user, in turn
	hub		a `holt mcp` of that identity, shared by the tests
	box		makes sandboxes in it; at the end they are gone and the host is unchanged
	attempts	what became of each row of the probe in a sandbox
	controls	what becomes of it outside
"""

import json
import os
import shutil
import sys

import pytest

import world as worlds
import isolation_table
import host
from client import Client, Failed
from who import HERE, HOLT

sys.path.append(os.path.dirname(HERE))
from time_limit import time_limit  # noqa: E402, F401


def pytest_addoption(parser):
    parser.addoption('--update-table', action='store_true',
                     help='write docs/isolation.md from this run')


def pytest_configure(config):
    config.addinivalue_line('markers', 'tries(what, by, control): a row of docs/isolation.md')
    config.addinivalue_line('markers', 'timing: of tests whose helpers are used here')
    config.addinivalue_line('markers', 'bombs: measures what a neighbour notices')
    config.addinivalue_line('markers', 'stories: looks at what became of those of this run')
    config.outcomes = {}


def pytest_itemcollected(item):
    if item.module.__name__ == 'test_bombs':
        item.add_marker('bombs')
    elif item.originalname == 'test_stories':
        item.add_marker('stories')


def pytest_sessionstart(session):
    for program in (HOLT, worlds.PROBE):
        if not os.path.exists(program):
            pytest.exit(f'there is no {program}: build it, or set HOLT_BUILD', 1)
    host.as_after_login()
    host.OWN.enter()


def pytest_sessionfinish():
    host.kill_all()
    host.OWN.leave()


def pytest_collection_modifyitems(items):
    """The table is compared when everything else has been tried."""
    items.sort(key=lambda item: item.path.name == 'test_table.py')


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if item.get_closest_marker('tries') and (report.when == 'call' or not report.passed):
        who = item.callspec.params.get('who') if hasattr(item, 'callspec') else None
        text = ('denied' if report.passed else isolation_table.UNBOUNDED if report.skipped
                else 'open')
        outcomes, key = item.config.outcomes, (item.originalname, who)
        # "open" is worse than "not …" is worse than "denied"
        outcomes[key] = max(outcomes.get(key, ''), text)


@pytest.fixture(scope='session')
def world():
    w = worlds.Host()
    yield w
    w.close()


@pytest.fixture(scope='session', params=['root', 'user'] if os.getuid() == 0 else ['user'])
def who(request):
    identity = worlds.identity(request.param)
    if not identity.reaches_holt():
        pytest.skip('the build directory is closed to users without rights')
    yield identity
    shutil.rmtree(identity.top)


SHARED = []  # pids of hubs that outlive a test


def start_hub(who, *arguments):
    """In a session with more rights and secrets than a sandbox should ever see."""
    client = Client([*worlds.SESSION, *who.argv('mcp', *arguments)], who.env, who.log())
    client.initialize()
    return client


@pytest.fixture(scope='session')
def hub(who, world):
    client = start_hub(who, '--pool', '2')
    SHARED.append(client.pid)
    yield client
    SHARED.remove(client.pid)
    assert client.close() == 0


@pytest.fixture
def unchanged():
    found = worlds.Unchanged(except_for=SHARED)
    yield found
    found.check()


@pytest.fixture
def own_hub(who, unchanged):
    """Starts hubs of the test's own."""
    started = []

    def start(*arguments):
        started.append(start_hub(who, *arguments))
        return started[-1]
    yield start
    for client in started:
        client.kill()


@pytest.fixture
def box(hub, unchanged):
    made = []

    def create(probe=False, **arguments):
        made.append(hub.create(**arguments))
        if probe:
            worlds.put_probe(made[-1])
        return made[-1]
    yield create
    for sandbox in made:
        try:
            sandbox.terminate()
        except Failed as e:
            assert e.code == 'sandbox_not_found'


@pytest.fixture
def sb(box):
    return box(probe=True)


# ---- the probe's rows ----------------------------------------------------------------------------

class Attempts:
    """Every row in a sandbox that the others were tried in as well; another one when it broke."""

    def __init__(self, hub, world, **create):
        self.hub, self.world, self.create, self.sandbox = hub, world, create, None
        self.found, self.unhealthy, self.changed = {}, {}, ''
        before = worlds.Unchanged(except_for=SHARED)
        for name in worlds.rows():
            self.one(name)
        self.end()
        try:
            before.check()
        except AssertionError as e:
            self.changed = str(e)

    def one(self, name):
        try:
            if not self.sandbox:
                self.sandbox = self.hub.create(**self.create)
                worlds.put_probe(self.sandbox)
            self.found[name] = worlds.attempt(self.sandbox, name, self.world, timeout_seconds=20)
            worlds.healthy(self.sandbox)
        except (AssertionError, Failed, TimeoutError, json.JSONDecodeError) as e:
            self.unhealthy[name] = repr(e)
            self.end()

    def end(self):
        sandbox, self.sandbox = self.sandbox, None
        try:
            if sandbox:
                sandbox.terminate()
        except Failed:
            pass


@pytest.fixture(scope='session')
def attempts(hub, world):
    hits = len(world.hits)
    found = Attempts(hub, world)
    found.reached = len(world.hits) - hits
    return found


@pytest.fixture(scope='session')
def controls(world):
    table, known = worlds.rows(), {}

    def control(name):
        if name not in known:
            known[name] = worlds.outside(table[name], world)
        return known[name]
    return control


@pytest.fixture(scope='session')
def table():
    return isolation_table.Table()
