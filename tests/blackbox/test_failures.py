"""Every way in which a tool can fail, provoked for real and held to golden/failures.json.

The golden file has for each case the failure as a client sees it, ids masked, and for each row of
src/base/err_table.h that no tool can produce the reason. A new row wants a line there.
"""

import json
import os
import re
import shutil
import signal

import pytest

import host
from client import Failed, until
from who import HERE, Who

GOLDEN = os.path.join(HERE, 'golden', 'failures.json')
TABLE = os.path.join(HERE, '../../src/base/err_table.h')
CASES = {}
FAILURES = {'POLICY': 'policy_denied', 'VALIDATION': 'validation_failed', 'TIMEOUT': 'timeout',
            'GUEST': 'guest_failed', 'TRANSPORT': 'transport_failed', 'CLEANUP': 'cleanup_failed'}


def case(function):
    CASES[function.__name__] = function
    return function


def table():
    """Rows of the table: code on the wire, retryable, class, remediation."""
    with open(TABLE, encoding='utf-8') as f:
        text = f.read()
    rows = re.findall(r'^ERR_ROW\(\w+, "(\w+)", [^"]*?(true|false), (\w+),'
                      r'\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)', text, re.M)
    assert len(rows) == len(re.findall(r'^ERR_ROW\(', text, re.M)) > 10
    return {name: (retryable == 'true', FAILURES[kind],
                   ''.join(json.loads(s) for s in re.findall(r'"(?:[^"\\]|\\.)*"', words)))
            for name, retryable, kind, words in rows}


@case
def unknown_argument(mcp, sb):
    return sb.fails('sandbox_exec', comand='true')


@case
def wrong_type(mcp, sb):
    return mcp.fails('sandbox_exec', sandbox=123, command='true')


@case
def missing_argument(mcp, sb):
    return mcp.fails('sandbox_create')


@case
def out_of_bounds(mcp, sb):
    return sb.fails('sandbox_fork', replicas=65)


@case
def broken_base64(mcp, sb):
    return sb.fails('sandbox_write_file', path='f', content='a?==', encoding='base64')


@case
def broken_mode(mcp, sb):
    return sb.fails('sandbox_write_file', path='f', content='', mode='0888')


@case
def not_text(mcp, sb):
    sb.exec("printf 'ok\\377' > binary")
    return sb.fails('sandbox_read_file', path='binary')


@case
def env_name(mcp, sb):
    return sb.fails('sandbox_exec', command='true', env={'A=B': 'c'})


@case
def disk_over_memory(mcp, sb):
    return mcp.fails('sandbox_create', pool='host', memory_mb=32, disk_mb=64)


@case
def no_such_sandbox(mcp, sb):
    return mcp.fails('sandbox_exec', sandbox='sbx-' + '0' * 32, command='true')


@case
def terminated_sandbox(mcp, sb):
    other = mcp.create()
    other.terminate()
    return other.fails('sandbox_terminate')


@case
def no_such_template(mcp, sb):
    return mcp.fails('sandbox_create', pool='debian')


@case
def no_such_file(mcp, sb):
    return sb.fails('sandbox_read_file', path='missing/file.txt')


@case
def no_such_parent(mcp, sb):
    return sb.fails('sandbox_write_file', path='missing/file.txt', content='', make_parents=False)


@case
def below_a_file(mcp, sb):
    sb.write('plain', '')
    return sb.fails('sandbox_write_file', path='plain/f', content='')


@case
def read_only_place(mcp, sb):
    return sb.fails('sandbox_write_file', path='/usr/bin/holt', content='')


@case
def unreadable_file(mcp, sb):
    sb.exec('echo x > closed; chmod 0 closed')
    return sb.fails('sandbox_read_file', path='closed')


@case
def a_directory(mcp, sb):
    return sb.fails('sandbox_read_file', path='/workspace')


@case
def write_to_a_directory(mcp, sb):
    return sb.fails('sandbox_write_file', path='/workspace', content='')


@case
def a_pipe(mcp, sb):
    sb.exec('mkfifo pipe')
    return sb.fails('sandbox_read_file', path='pipe')


@case
def a_device(mcp, sb):
    return sb.fails('sandbox_read_file', path='/dev/zero')


@case
def a_file_of_proc(mcp, sb):
    return sb.fails('sandbox_read_file', path='/proc/self/environ')


@case
def no_such_command(mcp, sb):
    return sb.fails('sandbox_exec', command='no-such-program', args=['x'])


@case
def no_such_program_path(mcp, sb):
    return sb.fails('sandbox_exec', command='/workspace/none', args=[])


@case
def not_executable(mcp, sb):
    sb.write('script', '#!/bin/sh\n')
    return sb.fails('sandbox_exec', command='./script', args=[])


@case
def no_such_directory(mcp, sb):
    return sb.fails('sandbox_exec', command='true', cwd='/nowhere')


@case
def arguments_too_large(mcp, sb):
    return sb.fails('sandbox_exec', command='true', args=['x' * 60_000, 'y' * 60_000])


@case
def too_many_sandboxes(mcp, sb):
    others = []
    try:
        while len(others) < 100:
            others.append(mcp.create())
    except Failed as e:
        return e.error
    finally:
        for other in others:
            other.terminate()
    raise AssertionError('there is no limit')


@case
def too_much_output_asked_for(mcp, sb):
    calls = [sb.start('sleep 60', max_output_bytes=2 << 20, timeout_seconds=60) for _ in range(128)]
    try:
        return sb.fails('sandbox_exec', command='true', max_output_bytes=2 << 20)
    finally:
        for one in calls:
            mcp.notify('notifications/cancelled', {'requestId': one})
        until(lambda: sb.gone() is None, what='room again')


@case
def forked_twice_at_once(mcp, sb):
    """The files are many, so that the first is still under way."""
    sb.exec('head -c 50000000 /dev/urandom > big; sleep 100 >/dev/null 2>&1 &')
    first, second = mcp.last_id + 1, mcp.last_id + 2
    mcp.last_id += 2
    mcp.send_raw(b''.join(json.dumps({  # in one write
        'jsonrpc': '2.0', 'id': one, 'method': 'tools/call',
        'params': {'name': 'sandbox_fork', 'arguments': {'sandbox': sb.id}}}).encode() + b'\n'
        for one in (first, second)))
    with pytest.raises(Failed) as e:
        mcp.result(second)
    for kid in mcp.result(first)['sandboxes']:
        mcp.call('sandbox_terminate', sandbox=kid)
    return e.value.error


@case
def limit_that_the_host_can_not_hold(mcp, sb):
    """A user without rights has no control groups, so no share of processors."""
    user = Who('user')
    other = user.mcp('--pool', '0')
    try:
        other.initialize()
        made = other.create()
        if made.info['limits']['enforced_by'] != 'rlimit':
            pytest.skip('even users without rights have control groups here')
        return other.fails('sandbox_create', pool='host', cpus=0.5)
    finally:
        assert other.close() == 0
        shutil.rmtree(user.top)


@case
def disk_full(mcp, sb):
    small = mcp.create(disk_mb=2)
    try:
        return small.fails('sandbox_write_file', path='f', content='x' * (3 << 20))
    finally:
        small.terminate()


@case
def pids_exhausted(mcp, sb):
    small = mcp.create(pids=4)
    running = [mcp.start_tool('sandbox_exec', sandbox=small.id, command='sleep', args=['1000'],
                              timeout_seconds=1000)
               for _ in range(3)]
    error = small.fails('sandbox_exec', command='true', args=[])
    small.terminate()
    for one in running:
        mcp.wait(one)
    return error


@case
def paused(mcp, sb):
    mcp.call('sandbox_pause', sandbox=sb.id)
    try:
        return sb.fails('sandbox_exec', command='true')
    finally:
        mcp.call('sandbox_resume', sandbox=sb.id)


@case
def no_such_process(mcp, sb):
    return sb.fails('sandbox_signal', pid=30000)


@case
def terminated_meanwhile(mcp, sb):
    other = mcp.create()
    running = other.start('sleep 60')
    other.terminate()
    with pytest.raises(Failed) as e:
        mcp.result(running)
    return e.value.error


@case
def first_process_killed(mcp, sb):
    other = mcp.create()
    running = other.start('sleep 3141592', timeout_seconds=100)
    sleeper = until(lambda: host.with_argument('3141592', mcp.pid))[0]
    os.kill(host.init_of(sleeper.pid), signal.SIGKILL)
    with pytest.raises(Failed) as e:
        mcp.result(running)
    return e.value.error


def mask(error):
    return {k: re.sub('sbx-[0-9a-f]{32}', 'sbx-…', v) if isinstance(v, str) else v
            for k, v in error.items()}


@pytest.fixture(scope='module')
def golden(request):
    with open(GOLDEN, encoding='utf-8') as f:
        content = json.load(f)
    yield content
    if request.config.getoption('--update-golden'):
        content['failures'] = {name: content['failures'][name]
                               for name in CASES if name in content['failures']}
        with open(GOLDEN, 'w', encoding='utf-8') as f:
            json.dump(content, f, indent='\t', ensure_ascii=False)
            f.write('\n')


@pytest.mark.parametrize('name', CASES)
def test_failure(start, request, golden, name):
    mcp = start('--pool', '0', '--max-sandboxes', '8')
    sb = mcp.create()
    error = mask(CASES[name](mcp, sb))
    assert list(error)[:5] == ['code', 'cause', 'remediation', 'failure', 'retryable']
    assert list(error)[5:] in ([], ['pointer'])
    if request.config.getoption('--update-golden'):
        golden['failures'][name] = error
    assert error == golden['failures'][name]
    assert sb.sh('echo well') == 'well\n'  # a failure breaks nothing


def test_every_row_of_the_table_is_covered_or_excused(golden):
    rows = table()
    seen = {error['code'] for error in golden['failures'].values()}
    excused = set(golden['not_from_a_tool'])
    assert seen | excused == set(rows)
    assert not seen & excused
    assert all(len(reason) > 20 for reason in golden['not_from_a_tool'].values())
    assert set(golden['failures']) == set(CASES)


def test_the_golden_file_says_what_the_table_says(golden):
    rows = table()
    for name, error in golden['failures'].items():
        assert (error['retryable'], error['failure'], error['remediation']) \
            == rows[error['code']], name


def test_causes_fit_for_a_model(golden):
    for name, error in golden['failures'].items():
        cause = error['cause']
        assert 5 < len(cause) < 256 and '\n' not in cause, name
        assert not re.search(r'0x[0-9a-f]{4}|\(null\)|/proc/self/fd|holt-init|errno|%[sd]',
                             cause), name
