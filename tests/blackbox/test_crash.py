"""Whoever is killed: nothing of Holt is left on the host. `spawn` compares before and after."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

import host
from client import Failed, until
from conftest import residue_of
from who import HERE


def populate(mcp, calls=True):
    """Sandboxes as they are in real life: with files, forks, processes of all kinds,
    and calls under way."""
    sbs = [mcp.create() for _ in range(3)]
    sbs += sbs[0].fork(2)
    for sb in sbs:
        sb.exec('head -c 1000000 /dev/zero > f; (trap "" TERM INT HUP; '
                'sleep 1000) >/dev/null 2>&1 & '
                'setsid sleep 1000 >/dev/null 2>&1 &')
        if calls:
            sb.start('echo running; sleep 1000', timeout_seconds=1000)
    until(lambda: len([p for p in host.below(mcp.pid).values() if p.comm == 'sleep'])
          == (15 if calls else 10), what='all sleeps')
    return sbs


def test_orderly_end(spawn, residue):
    mcp = spawn('--pool', '2')
    populate(mcp, calls=False)
    assert residue.left(), 'the comparison would see nothing'
    mcp.proc.send_signal(signal.SIGTERM)
    mcp.proc.wait(60)
    residue.check()


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it_in_order(spawn, number):
    mcp = spawn('--pool', '0')
    mcp.create().exec('sleep 1000 >/dev/null 2>&1 &')
    mcp.proc.send_signal(number)
    assert mcp.proc.wait(60) == 0


def test_end_of_input_with_much_running(spawn):
    mcp = spawn('--pool', '2')
    populate(mcp)
    assert mcp.close() == 0


def test_hub_killed(spawn, residue):
    mcp = spawn('--pool', '2')
    populate(mcp)
    os.kill(mcp.pid, signal.SIGKILL)
    mcp.proc.wait()
    residue.check()


def test_hub_killed_while_it_is_busy(spawn, residue):
    for wait in (0, 0.003, 0.01, 0.03):
        mcp = spawn('--pool', '4')
        sb = mcp.create()
        for _ in range(8):
            mcp.start_tool('sandbox_create', pool='host')
            mcp.start_tool('sandbox_fork', sandbox=sb.id, replicas=4)
        time.sleep(wait)
        os.kill(mcp.pid, signal.SIGKILL)
        mcp.proc.wait()
        residue.check()


def test_hub_killed_before_it_is_ready(spawn, residue):
    for wait in (0, 0.001, 0.004, 0.01, 0.02, 0.05):
        mcp = spawn('--pool', '4', version='none')
        time.sleep(wait)
        os.kill(mcp.pid, signal.SIGKILL)
        mcp.proc.wait()
        residue.check()


def test_hub_stopped_and_killed(spawn, residue):
    mcp = spawn('--pool', '0')
    populate(mcp)
    os.kill(mcp.pid, signal.SIGSTOP)
    os.kill(mcp.pid, signal.SIGKILL)
    mcp.proc.wait()
    residue.check()


def test_warden_killed(spawn, residue):
    mcp = spawn('--pool', '2')
    sbs = populate(mcp)
    running = mcp.start_tool('sandbox_exec', sandbox=sbs[0].id, command='sleep 1000',
                             timeout_seconds=1000)
    mcp.ping()
    os.kill(host.program(mcp.pid, 'holt-warden'), signal.SIGKILL)
    with pytest.raises(Failed) as e:
        mcp.result(running)
    assert e.value.code == 'sandbox_lost'
    for sb in sbs:
        assert until(sb.gone) in ('sandbox_lost', 'sandbox_not_found')
    mcp.ping()
    fresh = until(lambda: try_create(mcp), what='a new sandbox after the death of the warden')
    assert fresh.sh('echo new; ls -A') == 'new\n'
    assert mcp.close() == 0
    residue.check()


def try_create(mcp):
    try:
        return mcp.create()
    except Failed as e:
        assert e.code in ('sandbox_lost', 'transport_failed', 'io_error'), e
        return None


def test_warden_killed_again_and_again(spawn, residue):
    mcp = spawn('--pool', '0')
    for i in range(3):
        sb = until(lambda: try_create(mcp), what='a sandbox')
        assert sb.sh(f'echo {i}') == f'{i}\n'
        os.kill(host.program(mcp.pid, 'holt-warden'), signal.SIGKILL)
        assert until(sb.gone) in ('sandbox_lost', 'sandbox_not_found')
    mcp.close()
    residue.check()


def test_warden_killed_while_it_works(spawn, residue):
    mcp = spawn('--pool', '4')
    sb = mcp.create()
    calls = [mcp.start_tool('sandbox_create', pool='host') for _ in range(20)]
    calls += [mcp.start_tool('sandbox_fork', sandbox=sb.id, replicas=3) for _ in range(5)]
    os.kill(host.program(mcp.pid, 'holt-warden'), signal.SIGKILL)
    for call in calls:
        try:
            mcp.result(call)
        except Failed as e:
            assert e.code in ('sandbox_lost', 'transport_failed', 'io_error', 'cancelled',
                              'conflict', 'sandbox_not_found'), e
    assert mcp.close() == 0
    residue.check()


def test_hub_and_warden_killed_at_once(spawn, residue):
    mcp = spawn('--pool', '2')
    populate(mcp)
    warden = host.program(mcp.pid, 'holt-warden')
    os.kill(mcp.pid, signal.SIGKILL)
    os.kill(warden, signal.SIGKILL)
    mcp.proc.wait()
    residue.check()


def test_first_process_of_a_sandbox_killed(spawn, residue):
    mcp = spawn('--pool', '0')
    one, two = mcp.create(), mcp.create()
    before = host.Residue(residue.trees, residue.except_for)
    mcp.create().terminate()  # its groups for pids and the CPU stay, in version 1, for the next one
    until(lambda: not any('/cpu' not in c and '/pids/' not in c
                          for c in before.left().get('cgroups', ())), what='its end')
    before = host.Residue(residue.trees, residue.except_for)
    lost = mcp.create()
    run = lost.start('sleep 2718281', timeout_seconds=1000)
    sleeper = until(lambda: host.with_argument('2718281', mcp.pid))[0]
    os.kill(host.init_of(sleeper.pid), signal.SIGKILL)
    with pytest.raises(Failed) as e:
        mcp.result(run)
    assert e.value.code == 'sandbox_lost'
    assert lost.gone() in ('sandbox_lost', 'sandbox_not_found')
    assert lost.fails('sandbox_read_file', path='f')['code'] in ('sandbox_lost',
                                                                 'sandbox_not_found')
    assert lost.fails('sandbox_fork')['code'] in ('sandbox_lost', 'sandbox_not_found')
    before.check()  # its control groups, mounts and namespaces went too
    assert one.sh('echo one') == 'one\n' and two.sh('echo two') == 'two\n'
    assert mcp.create().sh('echo new') == 'new\n'


def test_first_process_killed_in_the_pool(spawn):
    mcp = spawn('--pool', '2')
    until(lambda: mcp.create().info['from_pool'], what='a ready sandbox')
    warden = host.program(mcp.pid, 'holt-warden')
    for p in host.below(warden).values():
        if p.comm == 'holt-init' and host.inside_pid(p.pid) == 1:
            os.kill(p.pid, signal.SIGKILL)
    fresh = [until(lambda: working(mcp), what='a sandbox that works') for _ in range(4)]
    assert len({sb.id for sb in fresh}) == 4


def working(mcp):
    try:
        sb = mcp.create()
        return sb if sb.sh('echo up') == 'up\n' else None
    except Failed as e:
        assert e.code in ('sandbox_lost', 'sandbox_not_found'), e
        return None


def test_first_process_can_not_be_ended_from_inside(sb):
    """Signals from inside its namespace do nothing to a first process that did not ask for them."""
    got = sb.exec('for s in TERM INT HUP KILL STOP USR1 SEGV ALRM PIPE QUIT; do kill -$s 1; done; '
                  'echo tried')
    assert got['stdout'] == 'tried\n'
    assert sb.sh('echo alive') == 'alive\n'


def test_client_killed(spawn, residue, who):
    """The client is a program of its own, and dies without a word."""
    code = f'''
import sys, time
sys.path.insert(0, {HERE!r})
from client import Client
c = Client({who.argv('mcp', '--pool', '2')!r}, {who.env!r}, {who.log()!r})
c.initialize()
for _ in range(3):
    sb = c.create()
    sb.exec("sleep 1000 >/dev/null 2>&1 &")
print("ready", flush=True)
time.sleep(1000)
'''
    with subprocess.Popen([sys.executable, '-B', '-c', code], stdout=subprocess.PIPE) as client:
        assert client.stdout.readline() == b'ready\n'
        assert residue.left()
        client.kill()
    residue.check()


def test_who_runs_the_tests_is_killed(me, tmp_path):
    """Of this suite itself (tests/guardian.py): its hubs end all the same,
    and wardens whose hub was killed."""
    before = residue_of(me)
    code = f'''
import sys, time
sys.path.insert(0, {HERE!r})
from who import Who
from test_serve import Serve, Session
import host
who = Who({me.name!r})
hubs = []
for number in range(2):
    hubs.append(Serve(who, f"{tmp_path}/{{number}}", "--listen", "127.0.0.1:0", "--socket", "none",
                      "--pool", "0"))
    Session(hubs[-1]).create()
started = [*host.below(hubs[0].proc.pid), *host.below(hubs[1].proc.pid), hubs[1].proc.pid]
hubs[0].proc.kill()
hubs[0].proc.wait()
print(*started, flush=True)
time.sleep(1000)
'''
    with subprocess.Popen([sys.executable, '-B', '-c', code], stdout=subprocess.PIPE, cwd='/',
                          env={**os.environ, 'TMPDIR': str(tmp_path)}) as runner:
        started = [int(pid) for pid in runner.stdout.readline().split()]
        assert {'holt-hub', 'holt-warden'} <= {p.comm for p in host.below(runner.pid).values()
                                               if p.pid in started}
        runner.kill()
    until(lambda: host.reap() or not set(started) & set(host.below()), timeout=60,
          what='the end of all that was started')
    shutil.rmtree(tmp_path)
    before.check(timeout=60)


def test_nothing_is_left_on_disk_or_mounted_in_a_namespace_of_its_own(holt, who):
    """The same seen from a mount namespace in which nobody else is: exact."""
    if os.getuid() or who.prefix:
        pytest.skip('only root makes such a namespace')
    places = [p for p in ('/tmp', '/run', '/dev/shm', '/var/tmp')
              if not f'{HERE}/'.startswith(p + '/')
              and not who.argv()[0].startswith(p + '/')]
    # /run/holt-ids stays (host.py), and so does the audit log in the data folder
    home = os.path.dirname(who.env['HOME'])
    look = ('find ' + ' '.join(places) + f' ! -path /run/holt-ids ! -path {home} '
            f'! -path {os.path.dirname(home)} ! -path "{home}/*" -printf "%p %y\\n" | sort; '
            'cut -d" " -f3- /proc/self/mountinfo')
    script = 'set -e; ' + ''.join(f'mount -t tmpfs fresh {p}; ' for p in places) + f'''
        : > /run/holt-ids # the one file that stays: holt-serve(1)
        ({look}) > /dev/shm/before 2>/dev/null || :
        {who.argv()[0]} run -- sh -c 'echo inside > f; setsid sleep 100 &' >&2
        {who.argv()[0]} run --timeout 0.3 -- sleep 100 || :
        {who.argv()[0]} run -- sleep 100 & pid=$!; sleep 0.3; kill -9 $pid; wait $pid || :
        for i in $(seq 100); do
            ({look}) > /dev/shm/after; cmp -s /dev/shm/before /dev/shm/after && exit 0; sleep 0.3
        done
        diff /dev/shm/before /dev/shm/after'''
    script = script.replace('> /dev/shm/before', '> /dev/shm/before; : > /dev/shm/after; '
                            f'({look}) > /dev/shm/before', 1)
    done = subprocess.run(['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script],
                          env=who.env, cwd='/',
                          capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
