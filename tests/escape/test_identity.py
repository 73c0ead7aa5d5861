"""N10: what a program is called, how it is started and what its environment says changes nothing;
and secrets of the host, or of another call, are nowhere to be found."""

import json
import os
import re
import shutil
import tempfile

import pytest

import host
import world as worlds
from client import Failed

# Rows of the probe that must be denied however the program was started.
ROWS = ('unshare_user', 'capabilities', 'no_new_privs', 'seccomp_mode', 'io_uring', 'pid1_ptrace',
        'setuid')

WAYS = {
    'by /proc/self/root': 'exec /proc/self/root/workspace/probe "$@"',
    'copied and renamed': 'cp probe /tmp/ls && exec /tmp/ls "$@"',
    'by a hard link': 'ln probe /tmp/env && exec /tmp/env "$@"',
    'by a symbolic link named /tmp/holt-init': 'ln -s /workspace/probe /tmp/holt-init && '
    'exec /tmp/holt-init "$@"',
    'by a script': 'printf "#!/workspace/probe\\n" > /tmp/s; chmod +x /tmp/s; '
    'exec /workspace/probe "$@"',
    'by env -i': 'exec env -i HOLT_PROBE_CONFINED="$HOLT_PROBE_CONFINED" /workspace/probe "$@"',
    'from memory': 'exec python3 -c "import os,sys; f=os.memfd_create(\'x\'); '
    'os.write(f,open(\'/workspace/probe\',\'rb\')'
                   '.read()); os.execve(f,[\'x\']+sys.argv[1:],os.environ)" "$@"',
    'by a descriptor': 'exec python3 -c "import os,sys; '
    'os.execve(os.open(\'/workspace/probe\',0),[\'x\']+sys.argv[1:],'
                       'os.environ)" "$@"',
    'with another name for itself': 'exec -a holt-init /workspace/probe "$@"',
    'by nohup, setsid and nice': 'exec setsid -w nohup nice -n 5 /workspace/probe "$@"',
    'by xargs and find': 'echo "$@" | xargs /workspace/probe',
}


@pytest.mark.tries(what='get more rights by another way to start a program: /proc/self/root, '
                   'copies, links, scripts, '
                   'env -i, memory, descriptors',
                   by='rights belong to the sandbox, not to names of programs',
                   control='the rows that are tried')
@pytest.mark.parametrize('way', WAYS)
def test_ways_to_start(sb, world, way):
    got = sb.argv('bash', '-c', WAYS[way], 'bash', *ROWS, env=world.told(), cwd='/workspace')
    found = [json.loads(line) for line in got['stdout'].splitlines()]
    assert [row['name'] for row in found] == list(ROWS), got
    assert {row['result'] for row in found} == {'denied'}, found
    worlds.healthy(sb)


# The loader started as a program, with a program as its argument: its rights are the same.
LOADER = r"""
import ctypes, glob, json, os, subprocess, sys
act = ('import ctypes; c = ctypes.CDLL(None); '
       'print(int(c.unshare(0x10000000) == 0 or c.ptrace(16, 1, None, None) == 0))')
loader = (glob.glob('/lib64/ld-linux*.so*') + glob.glob('/lib/ld-linux*.so*')
          + glob.glob('/lib/*/ld-linux*.so*'))
print(json.dumps([subprocess.run([loader[0], '/usr/bin/python3', '-c', act],
                                 stdout=subprocess.PIPE).stdout.decode().strip()]))
"""


@pytest.mark.tries(what='start a program by its loader (ld-linux.so PROGRAM)',
                   by='rights belong to the sandbox')
def test_loader(sb):
    assert worlds.python(sb, LOADER) == ['0']
    worlds.healthy(sb)


@pytest.mark.tries(what='run a set-user-id program of the host, shown by -v',
                   by='nosuid, no_new_privs, one user',
                   control='its bit is there, and stays')
def test_set_user_id_program(who, world, unchanged):
    folder = tempfile.mkdtemp(prefix='suid.', dir=who.work)
    try:
        program = os.path.join(folder, 'id')
        shutil.copy(shutil.which('id'), program)
        os.chown(program, 0 if os.getuid() == 0 and who.uid == 0 else who.uid, who.uid)
        os.chmod(program, 0o6755)
        os.chmod(folder, 0o755)
        os.chown(folder, who.uid, who.uid)
        for mode in ('ro', 'rw'):
            done = who.run('run', '-v', f'{folder}:/suid:{mode}', '--', '/suid/id', '-u', text=True)
            assert done.stdout == '1000\n', done
        mode = os.stat(program).st_mode
        done = who.run('run', '-v', f'{folder}:/suid:rw', '--', 'sh', '-c',
                       'cp /suid/id /suid/mine; chmod 6755 /suid/mine')
        assert os.stat(program).st_mode == mode
        assert not any(os.stat(os.path.join(folder, name)).st_mode & 0o6000
                       for name in os.listdir(folder) if name != 'id')
    finally:
        shutil.rmtree(folder)


def told_of(process):
    with open(f'/proc/{process.pid}/environ', 'rb') as f:
        return f.read().decode(errors='replace')


EVIL = {'LD_PRELOAD': '/workspace/evil.so', 'LD_LIBRARY_PATH': '/workspace',
        'LD_AUDIT': '/workspace/evil.so', 'GLIBC_TUNABLES': 'glibc.malloc.check=3',
        'BASH_ENV': '/workspace/evil.sh', 'ENV': '/workspace/evil.sh',
        'PATH': '/workspace/evil:/usr/bin:/bin', 'IFS': '/', 'PYTHONSTARTUP': '/workspace/evil.py',
        'HOLT_LOG': 'debug', 'NODE_OPTIONS': '--require=/workspace/evil.js',
        'HOLT_ALLOW_MISSING': 'seccomp,landlock,userns',
        'TMPDIR': '/workspace/evil', 'HOME': '/workspace/evil'}


@pytest.mark.tries(what='reach Holt\'s own processes by LD_PRELOAD, '
                   'BASH_ENV, PATH … in env of sandbox_create and sandbox_exec',
                   by='given to programs inside only')
def test_environment_of_holt(hub, box, who):
    sb = box(env=EVIL)
    sb.write('/workspace/evil.sh', 'echo "evil in $$ of $PPID" >> /tmp/evil\n')
    sb.exec('true', env=EVIL)
    request = sb.start('sleep 607.25', env=EVIL)
    sleeper = worlds.until(lambda: host.with_argument('607.25', hub.pid))[0]
    everything = host.processes()
    ours = [everything[pid] for pid in (hub.pid, host.program(hub.pid, 'holt-warden'),
                                        host.init_of(sleeper.pid))]
    for process in ours:
        try:
            text = told_of(process)
        except PermissionError:  # as it should be for PID 1, unless root looks
            continue
        assert '/workspace/evil' not in text and 'HOLT_ALLOW_MISSING' not in text, process
    assert '/workspace/evil' in (told_of(sleeper) if os.getuid() == 0 else '/workspace/evil')
    worlds.healthy(sb)  # it got what it asked for, and nobody else did
    sb.terminate()
    hub.wait(request)
    worlds.healthy(box())


@pytest.mark.tries(what='be root of the host, have capabilities, or run without filter, '
                   'as the host sees its processes',
                   by='user namespace, no_new_privs, seccomp')
def test_as_the_host_sees_it(hub, box):
    sb = box()
    request = sb.start('sleep 608.75')
    sleeper = worlds.until(lambda: host.with_argument('608.75', hub.pid))[0]
    for pid in (sleeper.pid, host.init_of(sleeper.pid)):
        with open(f'/proc/{pid}/status', encoding='utf-8') as f:
            status = dict(line.rstrip('\n').split(':\t', 1) for line in f if ':\t' in line)
        assert '0' not in status['Uid'].split() + status['Gid'].split(), status['Uid']
        assert len(set(status['Uid'].split())) == 1
        for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'):
            assert int(status[name], 16) == 0, (pid, name, status[name])
        assert status['NoNewPrivs'] == '1' and status['Seccomp'] == '2', status
        # without privileges nobody can give up a group
        assert set(status['Groups'].split()) <= {str(g) for g in os.getgroups()
                                                 if os.getuid()}, status['Groups']
        if os.getuid() == 0:
            for kind in ('user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup'):
                assert (os.readlink(f'/proc/{pid}/ns/{kind}')
                        != os.readlink(f'/proc/self/ns/{kind}')), kind
    sb.terminate()
    hub.wait(request)


# ---- secrets -------------------------------------------------------------------------------------

# Looks for some words in every file and every process that it can read, and in what it was given.
SEARCH = r"""
import json, os, sys
words, found = [w.encode() for w in sys.stdin.read().split()], []

def look(path):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return
    try:
        text = os.read(fd, 1 << 20)
    except OSError:
        text = b''
    os.close(fd)
    for word in words:
        if word in text:
            found.append(path)
        elif word in path.encode():
            found.append('the name ' + path)

for top in ('/etc', '/home', '/root', '/tmp', '/var', '/run', '/workspace', '/mnt', '/opt', '/srv',
            '/dev', '/sys'):
    for path, directories, names in os.walk(top):
        for name in names:
            look(os.path.join(path, name))
for path, directories, names in os.walk('/proc'):
    directories[:] = [d for d in directories if path != '/proc' or not d.isdigit()
                      or d in ('1', str(os.getpid()))]
    for name in names:
        if not (path.startswith('/proc/self') or name in ('kmsg', 'mem')):
            look(os.path.join(path, name))
for entry in os.listdir('/proc'):
    if entry.isdigit():
        for name in ('cmdline', 'environ', 'mountinfo', 'status', 'maps', 'comm'):
            look(f'/proc/{entry}/{name}')
look('/proc/self/environ')
print(json.dumps(sorted(set(found))))
"""


def secrets_and_places(who, world):
    """Words that stand for the host: its secrets, and paths that only it has."""
    return [worlds.SECRET, who.env['HOME'], who.top, world.top, world.abstract, worlds.BUILD]


@pytest.mark.tries(what='find a secret of the hub\'s environment or of its user\'s home, '
                   'or a path of the host, in any file '
                   'or process', by='an environment and a root of its own',
                   control='a planted copy is found')
def test_search_for_the_hosts_secrets(sb, who, world):
    words = secrets_and_places(who, world)
    assert worlds.python(sb, SEARCH, stdin='\n'.join(words), timeout_seconds=60) == []
    sb.sh(f'echo {worlds.SECRET} > /tmp/control')
    assert '/tmp/control' in worlds.python(sb, SEARCH, stdin='\n'.join(words), timeout_seconds=60)
    worlds.healthy(sb)


@pytest.mark.tries(what='find a secret of the caller of `holt run` in its environment or arguments',
                   by='an environment of its own')
def test_search_under_holt_run(who, world, unchanged):
    words = [worlds.SECRET, world.top, who.env['HOME']]
    done = who.run('run', '-i', '-e', 'KEPT=1', '--', '/usr/bin/python3', '-c', SEARCH,
                   input='\n'.join(words), text=True)
    assert json.loads(done.stdout) == [], done
    done = who.run('run', '-e', 'KEPT=1', '--', 'env', text=True)
    assert 'KEPT=1\n' in done.stdout and worlds.SECRET not in done.stdout


def provoke(hub, sb, token):
    """Failures of every kind, with a secret in the arguments that may hold one; their texts."""
    env, exec_ = {'TOKEN': token}, 'sandbox_exec'
    true, none = {'command': 'true', 'args': [], 'env': env}, {'command': '/none', 'args': [],
                                                               'env': env}
    for name, arguments in (
            (exec_, none), (exec_, {**none, 'command': '/etc/passwd'}),
            (exec_, {**true, 'cwd': '/none'}), (exec_, {**true, 'command': ''}),
            (exec_, {**true, 'env': {**env, 'A=B': 'x'}}), (exec_, {**true, 'typo': 1}), (exec_, {
                **true, 'env': {'TOKEN': token * 9000}}), (exec_, {**true, 'timeout_seconds': 0}),
            (exec_, {'command': 'true', 'stdin': token, 'stdin_base64': 'eA=='}),
            (exec_, {'command': 'true', 'stdin_base64': token + '!'}),
            ('sandbox_write_file', {'path': '/none/../usr/x', 'content': token}),
            ('sandbox_write_file', {'path': '/proc/x', 'content': token}),
            ('sandbox_write_file', {'path': '/tmp/x', 'content': token, 'encoding': 'base64'}),
            ('sandbox_write_file', {'path': '/tmp/x', 'content': token, 'mode': '9'}),
            ('sandbox_read_file', {'path': '/none'}),
            ('sandbox_read_file', {'path': '/proc/1/environ'}),
            ('sandbox_fork', {'replicas': 1000}), ('sandbox_create', {'pool': 'none', 'env': env})):
        if name != 'sandbox_create':
            arguments = {'sandbox': sb.id, **arguments}
        yield json.dumps(hub.request('tools/call', {'name': name, 'arguments': arguments}))


@pytest.mark.tries(what='read a secret or a path of the host in the text of a failure',
                   by='causes name what was asked for')
def test_texts_of_failures(hub, sb, who, world):
    token = 'TOKEN-' + os.urandom(8).hex()
    for text in provoke(hub, sb, token):
        assert '"isError": true' in text or '"error"' in text, text
        assert token not in text, text
        for word in secrets_and_places(who, world):
            assert word not in text, text
        assert not re.search(r'/l/\d|/skel|holt-warden|/proc/\d\d', text), text
    with open(hub.log, encoding='utf-8', errors='replace') as f:
        log = f.read()
    assert token not in log and worlds.SECRET not in log
    worlds.healthy(sb)


@pytest.mark.tries(what='find the secret that one exec was given in a later exec, '
                   'another sandbox, or a fork',
                   by='it ends with the program')
def test_secret_of_one_exec(sb, box):
    token = 'TOKEN-' + os.urandom(8).hex()
    got = sb.exec('test -n "$TOKEN" && cat > /dev/null', env={'TOKEN': token}, stdin=token)
    assert got['exit_code'] == 0
    with pytest.raises(Failed):
        sb.argv('/none', env={'TOKEN': token})
    child = sb.fork(1)[0]
    for sandbox in (sb, child, box(), box(memory_mb=91)):
        assert worlds.python(sandbox, SEARCH, stdin=token, timeout_seconds=60) == []
    child.terminate()
    worlds.healthy(sb)
