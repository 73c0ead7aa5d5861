"""debug: programs of a sandbox may trace each other, with the real gdb, strace and LeakSanitizer.
What tracing can not be turned against is in tests/escape/test_debug.py."""

import json
import shutil

import pytest

from client import until
from test_readopt import begin, kill  # noqa: F401

pytestmark = pytest.mark.rights

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
static int secret = 41;
int twice(int x) { return 2 * x; }
void lose(void)
{
	char *volatile lost = malloc(123);

	lost[0] = 1;
	lost = NULL;
}
int main(void)
{
	for (int i = 0; i < 10; i++)
		lose();
	printf("%d\n", twice(secret));
	return 0;
}
"""
GDB = ("gdb -batch -ex 'break twice' -ex run -ex 'print x' -ex 'set var x = 50' -ex continue "
       './program')
STRACE = 'strace -f -e trace=getppid -o trace sh -c : && grep -c getppid trace'


def needs(program):
    return pytest.mark.skipif(not shutil.which(program), reason=f'there is no {program} here')


def traces(hub, sandbox):
    """Whether strace works in a sandbox of a hub over REST."""
    done = hub.exec(sandbox, 'strace -o /dev/null true')
    assert done['exit_code'] == 0 or 'Operation not permitted' in done['stderr'], done
    return done['exit_code'] == 0


@pytest.fixture
def built(box):
    """Makes sandboxes with the program in them."""
    def make(**arguments):
        sandbox = box(**arguments)
        sandbox.write('program.c', PROGRAM)
        sandbox.sh('cc -g -O0 -o program program.c')
        return sandbox
    return make


@needs('gdb')
def test_gdb(built):
    got = built(debug=True).exec(GDB, timeout_seconds=120)
    assert got['exit_code'] == 0 and '$1 = 41' in got['stdout'] and '\n100\n' in got['stdout'], got
    got = built().exec(GDB, timeout_seconds=120)
    assert got['exit_code'] != 0 and '$1' not in got['stdout'], got
    assert 'ptrace: Operation not permitted' in got['stderr'], got


@needs('gdb')
def test_gdb_of_a_process_that_runs(box):
    """That another command has started."""
    sandbox = box(debug=True)
    sandbox.start('exec sleep 1000', background=True)
    until(lambda: sandbox.running('sleep') == 1, what='what is to be traced')
    got = sandbox.exec("gdb -batch -p $(pgrep -x sleep) -ex 'info registers' -ex detach",
                       timeout_seconds=120)
    assert got['exit_code'] == 0 and 'rip' in got['stdout'] + got['stderr'], got
    assert sandbox.running('sleep') == 1


@needs('strace')
def test_strace(box):
    sandbox = box(debug=True)
    assert sandbox.info['debug'] and not sandbox.info['from_pool']
    got = sandbox.exec(STRACE)
    assert got['exit_code'] == 0 and int(got['stdout']) > 0, got
    assert sandbox.client.call('sandbox_get', sandbox=sandbox.id)['debug']
    plain = box()
    assert 'debug' not in plain.info
    got = plain.exec(STRACE)
    assert got['exit_code'] != 0 and 'Operation not permitted' in got['stderr'], got


@pytest.mark.parametrize('kind', ['leak', 'address'])
def test_leak_sanitizer(built, driver, kind):
    if kind == 'address' and driver == 'rlimit':
        pytest.skip('AddressSanitizer reserves more addresses than a process may have')
    build = f'cc -g -O0 -fsanitize={kind} -o program program.c && ./program'
    got = built(debug=True).exec(build, timeout_seconds=120)
    assert 'LeakSanitizer: detected memory leaks' in got['stderr'], got
    assert 'in lose ' in got['stderr'], got
    got = built().exec(build, timeout_seconds=120)
    assert 'LeakSanitizer has encountered a fatal error' in got['stderr'], got
    assert 'in lose ' not in got['stderr'], got


def test_a_timeout_ends_what_is_traced(box):
    sandbox = box(debug=True)
    got = sandbox.exec('strace -f -o /dev/null sh -c "trap : TERM; while :; do sleep 0.01; done"',
                       timeout_seconds=1)
    assert got['timed_out'], got
    until(lambda: sandbox.running('strace') == sandbox.running('sh') == 0, what='their end')


COUNT = 'strace -f -o /dev/null sh -c "while :; do echo x >>n; sleep 0.01; done"'


@needs('strace')
def test_pause_while_something_is_traced(begin):
    """Whatever state its tracer has left each process in, it stands still and goes on."""
    hub = begin()
    sandbox = hub.create(debug=True)
    hub.exec(sandbox, COUNT, background=True)

    def count():
        return int(hub.exec(sandbox, 'wc -l <n || echo 0')['stdout'])
    for _ in range(5):
        before = until(count, what='a first line')
        hub.post('/v1/pause', sandbox=sandbox)
        hub.post('/v1/resume', sandbox=sandbox)
        until(lambda: count() > before + 3, what='that it goes on')


@needs('strace')
def test_it_stays_with_the_sandbox(begin):
    """Through forks, snapshots, a stop, sleep, and the end of its hub."""
    hub = begin('--sleep-after', '0.1')
    source, plain = hub.create(debug=True), hub.create()
    assert traces(hub, source) and not traces(hub, plain)
    fork = hub.post(f'/v1/sandboxes/{source}/fork')['id']
    snapshot = hub.post(f'/v1/sandboxes/{source}/snapshots')['id']
    restored = hub.post(f'/v1/snapshots/{snapshot}/restore')['id']
    stopped = hub.create(debug=True)
    hub.post(f'/v1/sandboxes/{stopped}/stop')
    until(lambda: hub.metrics()['holt_sandboxes_asleep'] == 4, what='that all sleep')
    for sandbox in (source, fork, restored):
        assert traces(hub, sandbox)
    assert not traces(hub, plain)
    kill(hub)
    hub = begin('--sleep-after', '0.1')
    hub.post('/v1/resume', sandbox=stopped)
    for sandbox in (source, fork, restored, stopped):
        assert hub.call('GET', f'/v1/sandboxes/{sandbox}')['debug'] and traces(hub, sandbox)
    again = hub.post(f'/v1/snapshots/{snapshot}/restore')['id']
    assert traces(hub, again) and not traces(hub, plain)


@needs('strace')
def test_an_archive_does_not_say_it(begin):
    hub = begin()
    source = hub.create(debug=True)
    snapshot = hub.post(f'/v1/sandboxes/{source}/snapshots')['id']
    archive = hub.raw('GET', f'/v1/snapshots/{snapshot}/export').body
    head = hub.request('POST', '/v1/snapshots', fields=['Content-Type: application/zstd',
                                                        f'Content-Length: {len(archive)}'])
    with hub.wire() as wire:
        came = json.loads(wire.ask(head.encode() + archive, 'POST').body)['id']
    assert not traces(hub, hub.post(f'/v1/snapshots/{came}/restore')['id'])


@needs('strace')
def test_run(holt):
    done = holt('run', '--debug', '--', 'strace', '-o', '/dev/null', 'echo', 'well')
    assert (done.returncode, done.stdout) == (0, b'well\n'), done
    done = holt('run', '--', 'strace', '-o', '/dev/null', 'echo', 'well')
    assert done.returncode != 0 and b'Operation not permitted' in done.stderr, done
