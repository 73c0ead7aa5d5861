"""Root inside: every row again as uid 0, and what ids and set-id bits could be turned against."""

import os
import shutil
import subprocess

import pytest

import host
import world as worlds
from client import Failed
from conftest import SHARED, Attempts, start_hub
from test_debug import OPEN as TRACED
from test_init import ATTACK, alone, timed
from who import NOBODY, ranger

ROWS = worlds.rows()
# What root inside is for, and the numbers of PID 1's descriptors and mappings, without what they
# are.
OPEN = {'setuid', 'setgid', 'setgroups', 'capabilities', 'no_new_privs', 'setcap', 'chown_root',
        'pid1_fd', 'pid1_map_files', *(name for name in ROWS if name[:5] in ('suid_', 'sgid_')
                                       and name != 'suid_openat2')}
RIGHTS = 0x800004fb


@pytest.fixture(scope='module')
def owner(who):
    if not who.uid:
        yield who
        return
    found = ranger()
    yield found
    shutil.rmtree(found.top)


@pytest.fixture(scope='module')
def root_hub(owner, world):
    """A hub that may have root inside: of root, or of a user who has ids."""
    client = start_hub(owner, '--pool', '0')
    SHARED.append(client.pid)
    yield client
    SHARED.remove(client.pid)
    assert client.close() == 0


@pytest.fixture(scope='module')
def root_attempts(root_hub, world):
    return Attempts(root_hub, world, user='root')


@pytest.fixture
def rooted(root_hub, unchanged):
    """Makes sandboxes with root."""
    made = []

    def create(**arguments):
        made.append(root_hub.create(user='root', **arguments))
        return made[-1]
    yield create
    for sandbox in made:
        try:
            sandbox.terminate()
        except Failed as e:
            assert e.code == 'sandbox_not_found', e


@pytest.mark.tries(what='with root inside: every row above again', by='what holds it there',
                   control='what is open is said in "With root inside"')
@pytest.mark.parametrize('name', ROWS)
def test_attempt_as_root(name, root_attempts):
    assert name not in root_attempts.unhealthy, root_attempts.unhealthy[name]
    found = root_attempts.found[name]
    expected = ['open'] if ROWS[name]['policy'] or name in OPEN else ['denied', 'absent']
    assert found['result'] in expected, f'{ROWS[name]["what"]}: {found}'


def test_host_is_unchanged_with_root(root_attempts):
    assert not root_attempts.changed, root_attempts.changed


@pytest.fixture(scope='module')
def tracing_root_attempts(root_hub, world):
    return Attempts(root_hub, world, user='root', debug=True)


@pytest.mark.tries(what='with root inside and debug: every row above again',
                   by='what holds it there', control='what is open with either is open')
@pytest.mark.parametrize('name', ROWS)
def test_attempt_as_tracing_root(name, tracing_root_attempts):
    assert name not in tracing_root_attempts.unhealthy, tracing_root_attempts.unhealthy[name]
    found = tracing_root_attempts.found[name]
    known = ROWS[name]['policy'] or name in OPEN | TRACED
    expected = ['open'] if known else ['denied', 'absent']
    assert found['result'] in expected, f'{ROWS[name]["what"]}: {found}'


@pytest.mark.tries(what='with root inside: every attack on PID 1 at once by eight processes, until '
                   'a timeout',
                   by='PID 1 is spared by the kernel, not dumpable, seccomp',
                   control='rows pid1_*')
def test_all_attacks_of_root(rooted):
    sandbox = rooted()
    assert timed(sandbox, 2, '/usr/bin/python3', '-c', ATTACK).get('timed_out')
    alone(sandbox)
    worlds.healthy(sandbox)


# ---- ids -----------------------------------------------------------------------------------------

BEYOND = r"""
import ctypes, json, os
c = ctypes.CDLL(None, use_errno=True)
done = []

def tries(what, act):
    try:
        act()
        done.append(what)
    except OSError:
        pass

open('f', 'w').close()
for uid in (65536, 1900000000, 2000000, 0xfffffffe):
    tries(f'become {uid}', lambda: os.setresuid(uid, uid, uid))
    tries(f'become group {uid}', lambda: os.setresgid(uid, uid, uid))
    tries(f'have group {uid}', lambda: os.setgroups([uid]))
    tries(f'give away to {uid}', lambda: os.chown('f', uid, uid))
for path in ('/usr', '/usr/bin/env', '/dev', '/dev/null', '/proc', '/proc/1', '/proc/self/stat'):
    tries(f'own {path}', lambda: os.chown(path, 0, 0))
    tries(f'chmod {path}', lambda: os.chmod(path, 0o777))
    tries(f'mark {path}', lambda: os.setxattr(path, 'user.x', b'x'))
for path in ('/dev/x', '/usr/x', '/proc/x'):
    tries(f'make {path}', lambda: open(path, 'w').close())
for mode, device in ((0o20666, os.makedev(1, 3)), (0o20666, os.makedev(1, 1)), (0o20666, 0),
                     (0o60666, os.makedev(8, 0))):
    tries(f'a device {device}', lambda: os.mknod('node', mode, device))
for name in ('trusted.x', 'trusted.overlay.opaque', 'security.ima'):
    tries(name, lambda: os.setxattr('/workspace', name, b'y'))
print(json.dumps(done))
"""


@pytest.mark.tries(what='with root inside: become or give files to ids outside the range, own what '
                   'is the host\'s, make devices, set trusted attributes',
                   by='user namespace, read-only mounts, Landlock', control='rows of root outside')
def test_ids_beyond_the_range(rooted):
    sandbox = rooted()
    assert worlds.python(sandbox, BEYOND) == []
    worlds.healthy(sandbox)


@pytest.mark.tries(what='with root inside: be root of the host, or have other rights than said, as '
                   'the host sees its processes',
                   by='user namespace, seccomp')
def test_root_as_the_host_sees_it(root_hub, rooted, owner):
    sandbox = rooted()
    first = 1900000000 if not owner.uid else owner.uid
    requests = [sandbox.start('sleep 608.75'),
                sandbox.start('exec setpriv --reuid 7 --regid 7 --clear-groups sleep 608.25')]
    for words, inside in (('608.75', 0), ('608.25', 7)):
        sleeper = worlds.until(lambda: [p for p in host.with_argument(words, root_hub.pid)
                                        if p.comm == 'sleep'])[0]
        for pid in (sleeper.pid, host.init_of(sleeper.pid)):
            with open(f'/proc/{pid}/status', encoding='utf-8') as f:
                status = dict(line.rstrip('\n').split(':\t', 1) for line in f if ':\t' in line)
            uid = int(status['Uid'].split()[0])
            if owner.uid:
                assert uid in (owner.uid, 2000000 + inside - 1), status
            else:
                assert first <= uid < 2147352576, status
            assert status['Seccomp'] == '2', status
            for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'):
                assert int(status[name], 16) & ~RIGHTS == 0, (pid, name, status[name])
        if inside:
            with open(f'/proc/{sleeper.pid}/status', encoding='utf-8') as f:
                assert 'CapEff:\t' + '0' * 16 in f.read()
    sandbox.terminate()
    for request in requests:
        root_hub.wait(request)


# Takes as much of something as it can get, as many users in turn, and keeps it.
TAKE = r"""
import ctypes, os, signal, sys, time
c = ctypes.CDLL(None, use_errno=True)

def instance():
    return c.inotify_init1(0) >= 0

def pending():
    return c.sigqueue(os.getpid(), 35, None) == 0

def process():
    if os.fork() == 0:
        signal.pause()
    return True

take, total = globals()[sys.argv[1]], 0
signal.pthread_sigmask(signal.SIG_BLOCK, [35])
for uid in range(1, 25):
    out, into = os.pipe()
    try:
        child = os.fork()
    except OSError:
        break
    if child == 0:
        os.setresuid(uid, uid, uid)
        n = 0
        try:
            while n < 20000 and take():
                n += 1
        except OSError:
            pass
        os.write(into, b'%d' % n)
        signal.pause()
    total += int(os.read(out, 9))
print(total, flush=True)
os.kill(-1, 9)
"""


@pytest.mark.tries(what='with root inside: have more of what the kernel counts for a user, by '
                   'being many users: inotify, pending signals, processes',
                   by='a second user namespace, whose maker stands for all of them',
                   control='one user gets as much')
@pytest.mark.parametrize('what,most', [('instance', 32), ('pending', 4096),
                                       ('process', 48)])
def test_many_users_have_no_more(rooted, what, most):
    sandbox = rooted(pids=48)
    got = sandbox.argv('/usr/bin/python3', '-c', TAKE, what, within=60)
    assert 0 < int(got['stdout']) <= most, got
    worlds.healthy(sandbox)


@pytest.mark.tries(what='with root inside: a fork bomb of many users', by='cgroup or rlimit: pids')
def test_forks_of_root(rooted):
    sandbox = rooted(pids=64)
    bomb = ('import os, random\nwhile True:\n try:\n  if os.fork() == 0: '
            'os.setresuid(*[random.randrange(65536)] * 3)\n except OSError: pass\n')
    assert timed(sandbox, 2, '/usr/bin/python3', '-c', bomb).get('timed_out')
    alone(sandbox)
    worlds.healthy(sandbox)


# ---- what it leaves in its files -----------------------------------------------------------------

@pytest.mark.tries(what='with root inside: run a set-user-id program, or one with capabilities, of '
                   'the sandbox\'s files on the host',
                   by='mounts of other namespaces, ids of the sandbox\'s own',
                   control='inside both count')
def test_set_id_files_seen_from_the_host(root_hub, rooted):
    if os.getuid() != 0:
        pytest.skip('only root sees the files of a sandbox from outside')
    sandbox = rooted()
    sandbox.sh('for f in set cap; do cp /usr/bin/python3 $f; done; chmod 4755 set; python3 -c "'
               "import os; os.setxattr('cap', 'security.capability', "
               "bytes([1, 0, 0, 2, 1] + [0] * 15))\"")
    as_other = 'setpriv --reuid 5 --clear-groups'
    euid = './set -c "import os; print(os.geteuid())"'
    assert sandbox.sh(f'{as_other} {euid}') == '0\n'
    caps = "print(open('/proc/self/status').read().split('CapEff:\\t')[1][:16])"
    assert sandbox.sh(f'{as_other} ./cap -c "{caps}"') == '0' * 15 + '1\n'
    request = sandbox.start('sleep 608.5')
    sleeper = worlds.until(lambda: [p for p in host.with_argument('608.5', root_hub.pid)
                                    if p.comm == 'sleep'])[0]
    outside = ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups',
               '--bounding-set=+all', '--inh-caps=-all']
    for name, words, told in (('set', 'import os; print(os.geteuid())', f'{NOBODY}\n'),
                              ('cap', caps, '0' * 16 + '\n')):
        fd = os.open(f'/proc/{sleeper.pid}/root/workspace/{name}', os.O_PATH)
        try:
            assert os.stat(fd).st_mode & 0o4000 or name == 'cap'
            done = subprocess.run([*outside, f'/proc/self/fd/{fd}', '-c', words], pass_fds=[fd],
                                  stdout=subprocess.PIPE, check=True)
        finally:
            os.close(fd)
        assert done.stdout.decode() == told, name
    # and none of it is on a mount of the host's
    assert not [m for m in host.mounts() if 'overlay' in m and '/l/' in m]
    sandbox.terminate()
    root_hub.wait(request)
