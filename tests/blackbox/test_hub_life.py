"""The hub's life: what it starts, holds and leaves, beside other hubs, and where PID 1 is no init."""

import os
import signal
import subprocess

import host
from client import until
from test_sleep import AFTER, asleep
from test_readopt import begin as begin_home  # noqa: F401


def test_sleepers_are_left_alone(begin_home, me, tmp_path):  # noqa: F811
    """By a Holt that can't see their warden's process: it has another PID namespace."""
    hub = begin_home('--pool', '0', '--sleep-after', str(AFTER))
    box = hub.create()
    hub.post('/v1/files/write', sandbox=box, path='f', content='kept')
    asleep(hub)
    done = subprocess.run(['unshare', '-pf', '--mount-proc', *me.argv('run', '--', 'true')], check=False, timeout=60,
                          env={**me.env, 'HOLT_HOME': str(tmp_path)}, capture_output=True)
    assert done.returncode == 0, done
    assert hub.exec(box, 'cat f')['stdout'] == 'kept'


def test_what_the_dead_left_is_swept(spawn, who):
    """Of a warden that was killed together with its janitor, which nobody's lock holds any more."""
    hub = spawn('--pool', '0')
    hub.create()
    warden = host.program(hub.pid, 'holt-warden')
    left = [path for path in host.cgroups() if f'/holt-w{warden}-' in path]
    for pid in [p.pid for p in host.below(warden).values() if p.comm == 'holt-janitor'] + [warden, hub.pid]:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not host.below(hub.pid) and not host.below(warden), what='the end')
    assert all(map(os.path.isdir, left))
    assert who.run('run', '--', 'true').returncode == 0
    assert not any(map(os.path.isdir, left))
