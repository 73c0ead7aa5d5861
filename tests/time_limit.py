"""No test hangs: the fixture that each conftest.py here takes."""

import signal

import pytest

from soak import FULL

TEST_SECONDS = 3600 if FULL else 300


@pytest.fixture(autouse=True)
def time_limit():
    def on_alarm(_number, _frame):
        raise TimeoutError(f'the test took more than {TEST_SECONDS} s')
    signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(TEST_SECONDS)
    yield
    signal.alarm(0)
