"""The hub's life: what it starts, holds and leaves, beside other hubs,
and where PID 1 is no init."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile

import pytest

import host
import image_files as files
from client import until
from soak import FULL
from test_cli import root_elsewhere
from test_debug import needs
from test_sleep import AFTER, asleep
from test_readopt import begin as begin_home  # noqa: F401
from test_serve import Serve
from who import BUILD, HOLT

pytestmark = pytest.mark.rights

# Runs a program as PID 1 of a PID namespace.
APART = ['unshare', *(['-U', '--map-current-user'] if os.getuid() else []), '-pf', '--mount-proc']


def test_sleepers_are_left_alone(begin_home, me, tmp_path):  # noqa: F811
    """By a Holt that can't see their warden's process: it has another PID namespace."""
    hub = begin_home('--pool', '0', '--sleep-after', str(AFTER))
    box = hub.create()
    hub.post('/v1/files/write', sandbox=box, path='f', content='kept')
    asleep(hub)
    done = subprocess.run([*APART, *me.argv('run', '--', 'true')], check=False, timeout=60,
                          env={**me.env, 'HOLT_HOME': str(tmp_path)}, capture_output=True)
    assert done.returncode == 0, done
    assert hub.exec(box, 'cat f')['stdout'] == 'kept'


def members(group):
    with open(os.path.join(group, 'cgroup.procs'), encoding='ascii') as f:
        return f.read()


def test_what_the_dead_left_is_swept(spawn, who):
    """Of a warden that was killed together with its janitor, which nobody's lock holds any more."""
    hub = spawn('--pool', '0')
    hub.create()
    warden = host.program(hub.pid, 'holt-warden')
    left = [path for path in host.cgroups() if f'/holt-w{warden}-' in path]
    for pid in ([p.pid for p in host.below(warden).values() if p.comm == 'holt-janitor']
                + [warden, hub.pid]):
        os.kill(pid, signal.SIGKILL)
    until(lambda: not host.below(hub.pid) and not host.below(warden), what='the end')
    assert all(map(os.path.isdir, left))
    until(lambda: not any(map(members, left)), what='the last of its programs that dies')
    assert who.run('run', '--', 'true').returncode == 0
    assert not any(map(os.path.isdir, left))


@pytest.mark.skipif(not FULL, reason='it waits as long as a warden waits for its janitor')
def test_what_dies_late_leaves_nothing(spawn):
    """A process in the groups of a killed warden outlasts the patience of its janitor."""
    hub = spawn('--pool', '0')
    hub.create()
    warden = host.program(hub.pid, 'holt-warden')
    left = [path for path in host.cgroups() if f'/holt-w{warden}-' in path]
    if not left:
        pytest.skip('there are no control groups')
    janitor, = (p.pid for p in host.below(warden).values() if p.comm == 'holt-janitor')
    with subprocess.Popen(['sleep', '1000']) as late:
        for path in left:  # those of v2 that have groups below have no processes
            with contextlib.suppress(OSError), open(f'{path}/cgroup.procs', 'w') as f:
                f.write(str(late.pid))
        for pid in (warden, hub.pid):
            os.kill(pid, signal.SIGKILL)
        until(lambda: all(p.pid != janitor or p.state == 'Z' for p in host.processes().values()),
              timeout=120, what='the end of its patience')
        assert any(map(os.path.isdir, left))
        late.kill()
    until(lambda: not any(map(os.path.isdir, left)), what='the end of the groups')


@contextlib.contextmanager
def failing(pid, call, how, trace):
    """A running process whose system calls of this name fail as strace's inject= says; gives how
    many have."""
    with subprocess.Popen(['strace', '-e', f'trace={call}', '-e', f'inject={call}:{how}',
                           '-o', trace, '-p', str(pid)], stderr=subprocess.PIPE,
                          text=True) as tracer:
        said = tracer.stderr.readline()
        if 'attached' not in said:
            pytest.skip(f'a process that runs can\'t be traced here: {said}')

        def failed():
            with open(trace, encoding='utf-8') as f:
                return f.read().count('(INJECTED)')
        try:
            yield failed
        finally:
            tracer.send_signal(signal.SIGINT)


@needs('strace')
@pytest.mark.parametrize('error', ['EINTR', 'EAGAIN', 'ENOMEM', 'EIO'])
def test_a_read_that_fails_is_not_the_wardens_end(begin_home, tmp_path, error):  # noqa: F811
    """The janitor removes nothing of a warden that lives."""
    hub = begin_home('--pool', '0')
    hub.delete(hub.create())
    warden = host.program(hub.proc.pid, 'holt-warden')
    janitor, = (p.pid for p in host.below(warden).values() if p.comm == 'holt-janitor')
    with failing(janitor, 'read', f'error={error}:when=1..3', tmp_path / 'trace') as failed:
        until(lambda: failed() == 3 or not os.path.isdir(f'/proc/{janitor}'), what='three failures')
    assert {'socket', 'lock'} <= set(os.listdir(begin_home.folder))
    box = hub.create()
    assert hub.exec(box, 'echo well')['stdout'] == 'well\n'
    assert os.path.isdir(f'/proc/{janitor}')


@needs('strace')
def test_the_warden_comes_back(begin_home, tmp_path):  # noqa: F811
    """From the mount namespaces of others, also where the first try fails."""
    hub = begin_home('--pool', '0')
    box = hub.create()
    warden = host.program(hub.proc.pid, 'holt-warden')
    for n in range(1, 8):
        with failing(warden, 'setns', f'error=ENOMEM:when={n}', tmp_path / f'{n}') as failed:
            for _ in range(4):
                hub.delete(hub.create())
        assert failed() == 1
        assert hub.exec(box, 'echo well')['stdout'] == 'well\n'
        hub.delete(hub.create())


# The first process of a container that is no init: it waits for its own children alone,
# then tells what was left to it.
PID_1 = """
import os, subprocess, sys
for _ in range(20):
    assert subprocess.run(sys.argv[1:], check=False).returncode == 0
for pid in filter(str.isdigit, os.listdir('/proc')):
    with open(f'/proc/{pid}/stat') as f:
        print(f.read().rsplit(' ', 50)[0])
"""


def test_nothing_is_left_to_reap(who, residue):
    """By a PID 1 that does not reap, when Holt has run twenty times."""
    done = subprocess.run([*APART, 'python3', '-c', PID_1,
                           *who.argv('run', '--', 'sh', '-c', 'sleep 60 &')],
                          env=who.env, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode == 0 and done.stdout.split()[:2] == ['1', '(python3)']
            and done.stdout.count('\n') == 1), done


def test_it_may_be_pid_1(who, residue):
    done = subprocess.run([*APART, *who.argv('run', '--', 'true')], env=who.env, check=False,
                          timeout=60)
    assert done.returncode == 0


def in_container(who, *argv):
    """Runs a program as PID 1 of a container: a root of its own that has this machine's programs
    and Holt, and the machine's control groups, as where containers share them."""
    made = os.path.dirname(os.path.realpath(BUILD))
    root = ['--ro-bind', '/usr', '/usr', '--ro-bind', '/etc', '/etc', '--proc', '/proc',
            '--dev', '/dev', '--tmpfs', '/tmp', '--tmpfs', '/run', '--ro-bind', made, made,
            '--bind', who.top, who.top, '--bind', '/sys/fs/cgroup', '/sys/fs/cgroup']
    for name in 'bin', 'sbin', 'lib', 'lib64':
        root += ['--symlink', f'usr/{name}', f'/{name}']
    return subprocess.run(
        [*who.prefix, 'bwrap', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--as-pid-1',
         *(['--cap-add', 'ALL'] if not who.uid else []), *root, '--', *argv],
        env=who.env, cwd='/', capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.skipif(os.getuid() != 0, reason='maps ids')
def test_images_for_root_of_another_user_namespace():
    """Changed, removed and moved files of an image are as they were left, also in a fork, where
    overlays may keep their marks in user.* alone. Such a root can map only mounts of its own."""
    with tempfile.TemporaryDirectory() as work:
        os.mkdir(work + '/store')
        for path in work, work + '/store':
            os.chmod(path, 0o777)
        with open(work + '/image.tar', 'wb') as f:
            f.write(files.busybox_layer(
                files.folder('srv'), files.folder('srv/tree'), files.entry('srv/gone', b'x'),
                files.entry('srv/tree/old', b'old')))
        run = f'{HOLT} images import image.tar made && {HOLT} run --image made -- ls /srv'
        lines = ['mount -t tmpfs -o mode=700 none store', run, f'{HOLT} up --name first made',
                 f'{HOLT} exec first sh -ec "cd /srv; echo new > tree/new; busybox rm gone; '
                 'busybox mv tree moved; (sleep 100 &)"', f'{HOLT} fork first --name second',
                 f'{HOLT} exec second sh -c "id -u; ls /srv /srv/moved; cat /srv/moved/*"']
        said = []
        for home, line in ('home', run), ('store', ' && '.join(lines)):
            env = {'PATH': os.environ['PATH'], 'HOME': work, 'HOLT_HOME': f'{work}/{home}'}
            root_elsewhere(['/bin/sh', '-c', f'exec >{home}.out 2>&1; {line}; {HOLT} hub stop'],
                           env, work)
            with open(f'{work}/{home}.out', encoding='utf-8') as f:
                said.append(f.read())
        assert 'mounted in it: use one, as a tmpfs' in said[0], said
        assert ('\ngone\ntree\nfirst\nsecond\n1000\n/srv:\nmoved\n\n'
                '/srv/moved:\nnew\nold\nnew\nold') in said[1], said


def test_hubs_beside_each_other(begin_home, who):  # noqa: F811
    """One in a container without an init, and another on this machine: when they have ended there
    is no zombie, and the sandboxes of the first, one asleep and one busy, are as they were."""
    earlier = {p.pid for p in host.zombies()}
    hub = begin_home('--pool', '0', '--sleep-after', str(AFTER))
    box, busy = hub.create(), hub.create()
    hub.post('/v1/files/write', sandbox=box, path='f', content='kept')
    job = hub.exec(busy, 'exec sleep 1000', background=True)['exec_id']
    asleep(hub)
    done = in_container(who, 'python3', '-c', PID_1, HOLT, 'run', '--', 'sh', '-c', 'sleep 60 &')
    assert done.returncode == 0 and done.stdout == '1 (python3)\n', done
    home = f'{who.work}/other'
    other = Serve(who, home, '--socket', 'none', '--listen', '127.0.0.1:0')
    try:
        other.works()
        assert other.end() == 0, other.said()
    finally:
        other.kill()
        shutil.rmtree(home)
    assert hub.exec(box, 'cat f')['stdout'] == 'kept'
    assert hub.call('GET', f'/v1/sandboxes/{busy}/execs/{job}')['state'] == 'running'
    assert {p.pid for p in host.zombies()} <= earlier
