"""What the end of a hub leaves: every sandbox, with its files."""

import os
import signal
import subprocess

import pytest

import host
from client import until
from test_hub_verbs import home, home_of  # noqa: F401

ENDS = {
    'hub stop': lambda h, p: h.run('hub', 'stop'),
    'SIGTERM': lambda h, p: p.send_signal(signal.SIGTERM),
    'SIGINT': lambda h, p: p.send_signal(signal.SIGINT),
    'SIGHUP': lambda h, p: p.send_signal(signal.SIGHUP),
    'SIGTERM twice': lambda h, p: (p.send_signal(signal.SIGTERM), p.send_signal(signal.SIGTERM)),
    'SIGKILL': lambda h, p: p.kill(),
}
AT_ONCE = {'SIGTERM twice', 'SIGKILL'}
MADE = {
    'plain': (), 'ttl': ('--ttl', '10h'), 'stop': ('--retention', 'stop'),
    'cold': ('--retention', 'cold'), 'snapshot': ('--retention', 'snapshot', '--ttl', '10h'),
    'idle-stop': ('--idle', '10h', '--retention', 'stop'), 'workspace': ('--workspace', 'w'),
    'idle': ('--idle', '10h'),
}


@pytest.mark.parametrize('end', ENDS)
def test_what_is_made_to_stay_stays(home_of, end):  # noqa: F811
    served = home_of.serve()
    few = {k: MADE[k] for k in ('plain', 'workspace', 'idle')}
    made = MADE if end in ('hub stop', 'SIGKILL') else few
    home_of.run('ws', 'create', 'w')
    for name, options in made.items():
        home_of.run('up', '--name', name, *options)
        home_of.run('fs', 'write', name, 'f', input=name)
    home_of.run('pause', 'plain')
    left = host.below(served.pid)
    ENDS[end](home_of, served)
    status = served.wait()
    if end not in AT_ONCE:
        said = served.stderr.read()
        assert status == 0, said
        assert home_of.run('ws', 'diff', 'w').split() == ['A', 'f']
        assert f'stopping {len(made)} sandboxes' in said and 'A second signal' in said
        until(lambda: not host.below() & left.keys(), what='the end of what it ran')
        assert {line.split()[2] for line in home_of.run('ls').splitlines()[1:]} == {'stopped'}
        assert {line.split()[0] for line in home_of.run('ls').splitlines()[1:]} == set(made)
    else:
        home_of.run('resume', 'plain')
        until(lambda: {line.split()[2] for line in home_of.run('ls').splitlines()[1:]}
              <= {'running', 'stopped'}, what='those that were being saved')
    calls = [subprocess.Popen(home_of.who.argv('exec', name, '--', 'cat', 'f'), text=True,
                              env={**home_of.who.env, **home_of.env}, stdout=subprocess.PIPE)
             for name in made for _ in range(2)]  # at once
    said = [call.communicate()[0] for call in calls]
    assert said == [name for name in made for _ in range(2)]
    home_of.run('hub', 'stop', '--remove')
    assert home_of.run('ls').count('\n') == 1


def test_what_ends_is_told(home_of):  # noqa: F811
    """By a hub that takes over, and by `holt hub stop`."""
    home_of.run('up', '--name', 'box')
    for _ in range(2):
        home_of.run('exec', '-d', 'box', '--', 'sleep', '1000')
    home_of.run('forward', 'box', '80')
    served = subprocess.Popen(home_of.who.argv('serve', '--listen', 'none', '--pool', '0'),
                              text=True, env={**home_of.who.env, **home_of.env},
                              stdout=subprocess.PIPE, cwd='/')
    assert served.stdout.readline() == 'Ended with the hub before: 2 commands and 1 forward\n'
    until(lambda: 'auth token' in served.stdout.readline())
    home_of.run('exec', '-d', 'box', '--', 'sleep', '1000')
    home_of.run('up', '--name', 'idles', '--idle', '10h')
    home_of.run('exec', 'idles', '--', 'sh', '-c', 'echo kept > f')
    done = home_of.who.run('hub', 'stop', env=home_of.env, text=True)
    assert '2 sandboxes to be stopped' in done.stderr and '1 command ends' in done.stderr, done
    assert served.wait() == 0
    served.stdout.close()
    assert home_of.run('exec', 'idles', '--', 'cat', 'f') == 'kept\n'
    done = home_of.who.run('hub', 'stop', '--remove', env=home_of.env, text=True)
    assert 'to be removed, with all files: idles\n' in done.stderr, done
    assert 'box' not in done.stderr, done  # it is stopped, and stays
    assert {line.split()[0] for line in home_of.run('ls').splitlines()[1:]} == {'box'}


def test_what_is_kept_of_one_that_idles_goes_when_it_would(home_of):  # noqa: F811
    home_of.run('up', '--name', 'idles', '--idle', '2s')
    home_of.run('hub', 'stop')
    until(lambda: home_of.run('ls').count('\n') == 1, what='its time is over')


def test_hubs_that_are_killed_leave_one_sandbox_of_code(home_of):  # noqa: F811
    """The next hub runs code in the one that is there."""
    for n in range(4):
        served = home_of.serve()
        assert home_of.run('js', '-', input=f'{n} + 1') == f'{n + 1}\n'
        assert home_of.run('ls').count('\n') == 2, n
        served.kill()
        served.wait()


def test_what_is_not_used_ends_without_a_hub(home_of):  # noqa: F811
    """As it would with one; what has no such limit stays."""
    served = home_of.serve()
    home_of.run('up', '--name', 'stays')
    others = host.below(served.pid)
    home_of.run('up', '--name', 'kept', '--idle', '10s', '--retention', 'stop')
    before = host.below(served.pid)
    home_of.run('up', '--name', 'goes', '--idle', '10s')
    now = host.below(served.pid).keys()
    goes, others = now - before.keys(), now & others.keys()  # without what only passed by
    served.kill()
    served.wait()
    assert goes
    until(lambda: not host.below().keys() & goes, what='the end of what nobody uses')
    assert others - {served.pid} <= host.below().keys()
    assert {line.split()[0] for line in home_of.run('ls').splitlines()[1:]} == {'stays', 'kept'}


def test_what_holt_web_advises_keeps_them(home_of):  # noqa: F811
    """Word for word, and in its order."""
    home_of.run('up', '--name', 'box')
    home_of.run('fs', 'write', 'box', 'f', input='mine')
    done = home_of.who.run('web', env=home_of.env, text=True)
    assert done.returncode and 0 < done.stderr.find('holt serve') < done.stderr.find('hub stop')
    served = home_of.serve('--listen', '127.0.0.1:0')
    assert home_of.run('exec', 'box', '--', 'cat', 'f') == 'mine'
    assert home_of.run('web').startswith('http://127.0.0.1:')
    home_of.run('hub', 'stop')
    served.wait()
    assert home_of.run('exec', 'box', '--', 'cat', 'f') == 'mine'
    home_of.run('hub', 'stop', '--remove')


def test_a_verb_right_behind_a_kill_has_a_hub(home_of):  # noqa: F811
    """One that is killed takes connections for another moment."""
    home_of.run('up', '--name', 'box')
    for _ in range(20):
        os.kill(home_of.pid(), signal.SIGKILL)
        assert 'box' in home_of.run('ls')
    home_of.run('hub', 'stop', '--remove')
