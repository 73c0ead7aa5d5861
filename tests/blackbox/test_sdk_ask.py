"""Unmodified clients from npm are asked by the everything-server, and run its tasks."""

import os
import signal
import subprocess

import pytest

from client import LATEST
from http_client import MODERN
from who import BUILD, node

EVERYTHING = os.path.join(BUILD, 'examples/everything/everything')
ASKED = ['form', 'url', 'sampling', 'form', 'form', 'form', 'sampling', 'roots', 'form', 'form']
SAID = {
    'test_elicitation_url': 'Page: action=accept',
    'test_sampling': 'LLM response: Paris',
    'test_input_required_result_multi_round': 'Alice likes blue',
    'test_input_required_result_multiple_inputs': 'Paris, Alice, 1 roots',
    'test_input_required_result_request_state': 'state-ok',
    'prompt': 'here',
}
TASKS = {
    'slow_compute': ['taskCreated', 'completed', 'result',
                     'job: computed for 0.20000000000000001 s'],
    'confirm_delete': ['taskCreated', 'input_required', 'result', 'f: deleted'],
    'multi_input': ['taskCreated', 'input_required', 'result', 'first: yes, second: yes'],
    'test_tool_with_task': ['taskCreated', 'input_required', 'result', 'Done for Alice'],
    'failing_job': ['taskCreated', 'failed', 'error'],
    'protocol_error_job': ['taskCreated', 'failed', 'error'],
}


@pytest.fixture(params=['stdio', 'http'])
def everything(request):
    """What an SDK connects to."""
    if not os.path.exists(EVERYTHING):
        pytest.skip(f'there is no {EVERYTHING}')
    if request.param == 'stdio':
        yield {'command': EVERYTHING, 'args': []}
        return
    with subprocess.Popen([EVERYTHING, '127.0.0.1:0'], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True) as p:
        yield {'url': p.stdout.readline().strip()}
        p.send_signal(signal.SIGTERM)
        assert p.wait(timeout=60) == 0


def drive(server, script, least, mode=None):
    seen = node(script, {'server': server, 'mode': mode}, least=least)
    elicited = seen['said'].pop('test_elicitation')
    assert elicited.startswith('User response: action=accept, content={"name":"Alice"')
    assert {key: seen['said'].pop(key) for key in SAID} == SAID
    assert seen['asked'][:len(ASKED)] == ASKED
    return seen


def test_sdk_v1_is_asked_and_has_tasks(everything):
    assert drive(everything, 'asking_v1.mjs', 18)['said'] == TASKS


@pytest.mark.parametrize('mode, version',
                         [('legacy', LATEST), ('auto', MODERN), ('modern', MODERN)])
def test_sdk_v2_is_asked(everything, mode, version):
    seen = drive(everything, 'asking_v2.mjs', 20, mode)
    assert seen['version'] == version
    assert seen['asked'] == ASKED
