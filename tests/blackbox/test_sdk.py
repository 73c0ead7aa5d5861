"""Unmodified clients from npm drive the whole life; the SDKs hold every result to its schema."""

import os

import pytest

from client import LATEST
from http_client import MODERN
from who import node

STEPS = ['tools', 'server', 'life', 'rest', 'resources', 'changes', 'tasks', 'bytes', 'failures',
         'concurrent', 'cancel', 'progress', 'large']


@pytest.fixture
def who(me):
    """What an SDK sees does not depend on rights: whoever runs the tests."""
    return me


def drive(who, script, least, mode=None, version=LATEST):
    prefix, (program, *arguments) = who.prefix, who.argv('mcp', '--pool', '2')[len(who.prefix):]
    command = [*prefix, program, *arguments]
    seen = node(script, {'mode': mode, 'server': {'command': command[0], 'args': command[1:],
                                                  'env': who.env, 'cwd': '/'}},
                least=least)
    assert [name for name in STEPS if name not in seen] == []
    assert seen.get('version', version) == version  # version 1 does not tell
    assert seen['server']['name'] == 'holt'
    assert seen['failures'] == ['sandbox_not_found', 'invalid_arguments', 'invalid_arguments',
                                'path_not_found',
                                'template_not_found']
    assert not os.path.exists(f'/proc/{seen["pid"]}')
    return seen


def test_sdk_v1(who, residue):
    assert 'taskCreated' in drive(who, 'v1.mjs', 18)['tasks']


def test_sdk_v2(who, residue):
    drive(who, 'v2.mjs', 20, 'legacy')


def test_sdk_v2_that_asks_for_the_modern_protocol_first(who, residue):
    drive(who, 'v2.mjs', 20, 'auto', MODERN)
