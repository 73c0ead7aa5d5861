"""Fixtures: the host of the client's role, and servers that it talks to.
Nothing of them may be left."""

import ctypes
import os
import re
import signal
import subprocess
import sys

import pytest

from hostile_http import HostileHttp
from links import EVERYTHING, HERE, HOST, Host, below, until

sys.path.append(os.path.dirname(HERE))
from time_limit import time_limit  # noqa: E402, F401

PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def pytest_sessionstart(session):
    for program in (HOST, EVERYTHING):
        if not os.path.exists(program):
            pytest.exit(f'there is no {program}: build it, or set HOLT_BUILD', 1)


def alive():
    """The living processes below this one. Dead ones that became ours are collected."""
    found = set()
    for pid, p in below(os.getpid()).items():
        if p.state != 'Z':
            found.add(pid)
        elif p.parent == os.getpid():
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass
    return found


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = alive()
    yield
    try:
        until(lambda: not alive() - before, what='the end of what was started')
    finally:
        for pid in alive() - before:
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def host(nothing_is_left, tmp_path):
    running = Host(tmp_path / 'host.log')
    yield running
    if running.proc.poll() is None:
        try:
            running.close()
        finally:
            running.kill()


class Server:
    """A server that prints its URL."""

    def __init__(self, argv, log, **options):
        with open(log, 'wb') as stderr:
            self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=stderr,
                                         start_new_session=True, text=True, **options)
        found = re.search(r'http://\S+', self.proc.stdout.readline())
        assert found, f'{argv} does not listen'
        self.url = found[0]

    def stop(self, number=signal.SIGTERM):
        if self.proc.poll() is None:
            os.killpg(self.proc.pid, number)
        self.proc.wait(60)
        self.proc.stdout.close()


@pytest.fixture
def server(nothing_is_left, tmp_path):
    started = []

    def start(*argv, **options):
        started.append(Server(argv, tmp_path / f'server{len(started)}.log', **options))
        return started[-1]
    yield start
    for one in started:
        one.stop(signal.SIGKILL)


@pytest.fixture
def everything(server):
    return server(EVERYTHING, '127.0.0.1:0')


@pytest.fixture
def hostile_http():
    """A server over HTTP that does what the test's function says."""
    started = []

    def start(answer):
        started.append(HostileHttp(answer))
        return started[-1]
    yield start
    for one in started:
        one.close()
