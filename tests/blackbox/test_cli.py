"""The command line: holt run, doctor, version, help, and what is refused."""

import ctypes
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

from who import HOLT



def out(done):
    assert done.returncode == 0, done
    return done.stdout.decode()


# ---- holt run: exit status -----------------------------------------------------------------------

@pytest.mark.parametrize('code', [0, 1, 3, 99, 124, 125, 126, 127, 255])
def test_run_exits_as_the_command(holt, code):
    done = holt('run', '--', 'sh', '-c', f'exit {code}')
    assert done.returncode == code and done.stderr == b''


@pytest.mark.parametrize('number', [1, 2, 9, 11, 15])
def test_run_of_a_command_that_a_signal_ends(holt, number):
    assert holt('run', '--', 'sh', '-c', f'kill -{number} $$').returncode == 128 + number


def test_run_into_the_timeout(holt):
    done = holt('run', '--timeout', '4', '--', 'sh', '-c',
                'echo early; setsid sleep 100 & sleep 100')
    assert done.returncode == 124 and done.stdout == b'early\n'


def test_run_of_what_is_no_program(holt, who):
    done = holt('run', '--', 'no-such-program')
    assert done.returncode == 127 and b'no-such-program' in done.stderr
    assert holt('run', '--', '/workspace').returncode == 126
    assert holt('run', '--', 'sh', '-c', 'touch x; ./x').returncode == 126


@pytest.mark.parametrize('arguments', [
    ['run'], ['run', '--'], ['run', '--no-such', '--', 'true'],
    ['run', '--timeout', 'x', '--', 'true'], ['run', '--memory', '1', '--', 'true'],
    ['run', '--pids', '-1', '--', 'true'], ['run', '--image', 'none', '--', 'true'],
    ['run', '-v', 'x', '--', 'true'], ['run', '-v', '/no/such/dir:/x', '--', 'true'],
    ['run', '-v', '/tmp:/x:rx', '--', 'true'], ['run', '-v', '/tmp:x', '--', 'true'],
    ['run', '-e', '=x', '--', 'true'], ['run', '--memory', '--', 'true'],
    ['run', '--json=1', '--', 'true'],
], ids=' '.join)
def test_run_that_holt_refuses(holt, arguments):
    done = holt(*arguments)
    assert done.returncode == 125 and done.stdout == b'' and done.stderr.startswith(b'holt')


# ---- holt run: streams ---------------------------------------------------------------------------

def test_run_streams(holt):
    done = holt('run', '--', 'sh', '-c', 'echo o; echo e >&2')
    assert (done.stdout, done.stderr) == (b'o\n', b'e\n')


def test_run_binary_through_a_pipe(holt):
    data = os.urandom(3 << 20)
    assert holt('run', '-i', '--', 'cat', input=data).stdout == data
    assert holt('run', '-i', '--', 'sh', '-c', 'cat >&2', input=data).stderr == data


def test_run_with_the_end_of_input(holt):
    assert out(holt('run', '-i', '--', 'cat')) == ''
    assert out(holt('run', '-i', '--', 'wc', '-c', input=b'12345')).strip() == '5'


def test_run_reads_no_input_unasked(who, residue):
    """As with `docker run`: what calls it in a loop over its own input keeps that."""
    loop = 'while read -r line; do "$@" sh -c "cat; echo ran"; echo "$line"; done'
    for flags, want in (((), 'ran\na\nran\nb\n'), (('-t',), 'ran\na\nran\nb\n'),
                        (('-i',), 'b\nran\na\n')):  # the control: it is given the rest
        line = loop.replace('cat;', '') if '-t' in flags else loop  # where it would wait for keys
        argv = who.argv('run', *flags, '--')
        done = subprocess.run(['sh', '-c', line, 'sh', *argv], env=who.env, cwd='/',
                              input=b'a\nb\n', capture_output=True, timeout=60, check=True)
        assert done.stdout.decode().replace('\r', '') == want, (flags, done)


def test_run_passes_output_on_as_it_comes(who, residue):
    line = 'echo first; read x; echo got $x'
    with subprocess.Popen(who.argv('run', '-i', '--', 'sh', '-c', line), env=who.env, cwd='/',
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdout.readline() == b'first\n'
        run.stdin.write(b'word\n')
        run.stdin.flush()
        assert run.stdout.readline() == b'got word\n'
    assert run.returncode == 0


def test_run_that_nobody_reads(who, residue):
    """As in `holt run -- yes | head -1`: the reader goes, the command is ended,
    and no one hangs."""
    with subprocess.Popen(who.argv('run', '--', 'yes'), env=who.env, cwd='/',
                          stdout=subprocess.PIPE) as run:
        assert run.stdout.readline() == b'y\n'
        run.stdout.close()
        assert run.wait(60) == 128 + signal.SIGPIPE


def test_run_with_closed_streams(who, residue):
    for redirect in ('>&-', '2>&-', '<&-', '>&- 2>&- <&-'):
        done = subprocess.run(['sh', '-c', f'exec "$@" {redirect}', 'sh',
                               *who.argv('run', '--', 'sh', '-c', 'echo x; exit 3')],
                              env=who.env, cwd='/', capture_output=True, timeout=60, check=False)
        assert done.returncode in ((3,) if '>&-' not in redirect.split() else (3, 125, 141)), (
            redirect, done)


def test_run_to_a_full_device(who, residue):
    with open('/dev/full', 'wb') as full:
        done = subprocess.run(who.argv('run', '--', 'echo', 'x'), env=who.env, cwd='/', stdout=full,
                              stderr=subprocess.PIPE,
                              timeout=60, check=False)
    assert done.returncode == 125 and done.stderr.startswith(b'holt')


def test_run_into_a_file(who, residue):
    path = os.path.join(who.work, 'out')
    with open(path, 'wb') as file:
        subprocess.run(who.argv('run', '--', 'seq', '200000'), env=who.env, cwd='/', stdout=file,
                       timeout=60, check=True)
    with open(path, 'rb') as file:
        assert file.read() == b''.join(b'%d\n' % i for i in range(1, 200_001))
    os.unlink(path)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_run_passes_signals_on(who, residue, number):
    """The command gets the signal and may clear up; then holt ends as it did."""
    name = number.name[3:]
    with subprocess.Popen(who.argv('run', '--', 'sh', '-c', f'trap "echo got; exit 7" {name}; '
                                   'echo up; while :; do sleep 0.1; done'),
                          env=who.env, cwd='/', stdout=subprocess.PIPE) as run:
        assert run.stdout.readline() == b'up\n'
        run.send_signal(number)
        assert run.stdout.read() == b'got\n'
        assert run.wait(60) == 7


def test_run_ends_a_command_that_ignores_signals_at_the_second(who, residue):
    with subprocess.Popen(who.argv('run', '--', 'sh', '-c',
                                   'trap "echo no" INT TERM; echo up; while :; do sleep 0.1; done'),
                          env=who.env, cwd='/', stdout=subprocess.PIPE) as run:
        assert run.stdout.readline() == b'up\n'
        run.send_signal(signal.SIGINT)
        assert run.stdout.readline() == b'no\n'  # so the next one is another
        run.send_signal(signal.SIGINT)
        assert run.wait(60) in (128 + signal.SIGINT, 128 + signal.SIGKILL)


def test_run_killed_leaves_nothing(who, residue):
    with subprocess.Popen(who.argv('run', '--', 'sh', '-c',
                                   'sleep 1000 & setsid sleep 1000 & echo up; wait'), env=who.env,
                          cwd='/', stdout=subprocess.PIPE) as run:
        assert run.stdout.readline() == b'up\n'
        run.kill()
    residue.check()


def test_run_ends_with_its_command_and_what_it_left(holt):
    done = holt('run', '--', 'sh', '-c', 'sleep 1000 >/dev/null 2>&1 & echo done')
    assert done.stdout == b'done\n'


# ---- holt run: options ---------------------------------------------------------------------------

def test_run_environment(holt):
    text = out(holt('run', '-e', 'A=b c', '-eB=', '-e', 'C=x=y', '--', 'env', env={'HUSH': 'hush'}))
    assert 'A=b c\n' in text and 'B=\n' in text and 'C=x=y\n' in text and 'HUSH' not in text


def test_run_directory(holt):
    assert out(holt('run', '--', 'pwd')) == '/workspace\n'
    assert out(holt('run', '-w', '/tmp', '--', 'pwd')) == '/tmp\n'


@pytest.fixture
def folder(who):
    path = os.path.join(who.work, 'folder')
    os.mkdir(path)
    os.chown(path, who.uid, who.uid)
    with open(os.path.join(path, 'f'), 'w', encoding='utf-8') as f:
        f.write('host\n')
    os.chown(os.path.join(path, 'f'), who.uid, who.uid)
    yield path
    shutil.rmtree(path)


def test_run_volume_read_only(holt, folder):
    for suffix in ('', ':ro'):
        assert (out(holt('run', '-v', f'{folder}:/mnt/x{suffix}', '--', 'cat', '/mnt/x/f'))
                == 'host\n')
        done = holt('run', '-v', f'{folder}:/mnt/x{suffix}', '--', 'sh', '-c', 'echo no > /mnt/x/g')
        assert done.returncode and b'Read-only' in done.stderr
        assert os.listdir(folder) == ['f']


def test_run_volume_writable(holt, folder, who):
    """What is written inside belongs on the host to the folder's owner,
    and can be read and removed."""
    out(holt('run', '-v', f'{folder}:/workspace:rw', '--', 'sh', '-c',
             'cat f > g; echo more >> f; mkdir d; touch d/x'))
    assert sorted(os.listdir(folder)) == ['d', 'f', 'g']
    for name in ('f', 'g', 'd', 'd/x'):
        assert os.stat(os.path.join(folder, name)).st_uid == who.uid, name
    with open(os.path.join(folder, 'f'), encoding='utf-8') as f:
        assert f.read() == 'host\nmore\n'


def refuses_to_show(holt, env, *paths, why=b'Holt itself'):
    for path in paths:
        for suffix in (':ro', ':rw'):
            done = holt('run', '-v', f'{path}:/mnt/x{suffix}', '--', 'true', env=env)
            assert done.returncode == 125 and why in done.stderr, (path, done)


def test_run_volume_of_holts_own(holt, folder, who):
    """Who has the token, the registry or the warden's folder has the hub;
    who can make them is the next one."""
    inner, link = f'{folder}/in', f'{folder}/link'
    env = {'HOLT_HOME': f'{inner}/holt'}
    refuses_to_show(holt, env, folder, '/')  # before it is there, too
    os.makedirs(inner, exist_ok=True)  # what was refused is in the audit log there
    os.chown(inner, who.uid, who.uid)
    os.symlink(inner, link)
    assert out(holt('auth', 'token', env=env))
    refuses_to_show(holt, env, folder, inner, f'{inner}/holt', f'{inner}/holt/token',
                    f'{folder}/in/../in', '/')
    refuses_to_show(holt, env, link, f'{link}/holt', why=b'is a link')
    os.mkdir(f'{folder}/beside')
    os.chown(f'{folder}/beside', who.uid, who.uid)
    out(holt('run', '-v', f'{folder}/beside:/mnt/x:rw', '-v', f'{folder}/f:/mnt/f', '--', 'touch',
             '/mnt/x/y', env=env))
    assert os.listdir(f'{folder}/beside') == ['y']


def test_run_volume_of_state_in_holts_own(holt, folder, who):
    """What is below `state` of Holt's folder is for sandboxes; that folder itself, and what a link
    or ".." in it leads to, is not."""
    own = f'{folder}/holt'
    state, env = f'{own}/state', {'HOLT_HOME': own}
    assert out(holt('auth', 'token', env=env))
    for path in (state, f'{state}/a', f'{own}/other', f'{own}/other/state'):
        os.mkdir(path)
        os.chown(path, who.uid, who.uid)
    os.symlink('../../token', f'{state}/a/token')
    os.link(f'{own}/token', f'{own}/other/state/token')
    refuses_to_show(holt, env, own, state, f'{state}/../token', f'{state}/a/..', f'{own}/other',
                    f'{own}/other/state', f'{own}/other/state/token')
    refuses_to_show(holt, env, f'{state}/a/token', why=b'is a link')
    out(holt('run', '-v', f'{state}/a:/mnt/x:rw-all', '--', 'touch', '/mnt/x/y', env=env))
    assert sorted(os.listdir(f'{state}/a')) == ['token', 'y']


def test_run_volume_of_a_file(holt, folder):
    assert out(holt('run', '-v', f'{folder}/f:/etc/one', '--', 'cat', '/etc/one')) == 'host\n'


def test_run_volumes_do_not_show_their_parents(holt, folder):
    done = holt('run', '-v', f'{folder}:/mnt/x', '--', 'sh', '-c',
                'ls -A /mnt /mnt/x/..; ln -s ../../.. /tmp/up; ls /tmp/up')
    assert done.stdout.decode().split('\n')[1:2] == ['x']


@pytest.mark.parametrize('files', [64, 96, 256])
def test_run_with_few_files(who, files):
    """A small ulimit -n is enough, and one that is too small is said to be."""
    def run(n):
        return subprocess.run(['sh', '-c', f'ulimit -n {n}; exec "$@"', 'sh',
                               *who.argv('run', '--', 'sh', '-c', 'ulimit -n')],
                              env=who.env, cwd='/', stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=60, check=False)

    assert int(out(run(files))) >= files // 2
    few = run(40)
    assert few.returncode == 125 and b'ulimit -n' in few.stderr and b'40' in few.stderr, few


def test_run_says_what_its_memory_limit_holds(who, driver):
    """Without control groups each process alone is held: who asks for a limit hears of it."""
    for argv, told in [(['-m', '64M'], driver == 'rlimit'), ([], False)]:
        done = who.run('run', *argv, '--', 'true')
        assert done.returncode == 0
        assert (b'holds for each process' in done.stderr) == told, done


@pytest.mark.parametrize('score', [0, 800])
def test_run_where_others_end_first(who, score):
    """When the machine has no more memory a sandbox ends before Holt, whatever score that has."""
    line = f'echo {score} > /proc/self/oom_score_adj && exec "$@"'
    argv = who.argv('run', '--', 'cat', '/proc/1/oom_score_adj', '/proc/self/oom_score_adj')
    done = subprocess.run(['sh', '-c', line, 'sh', *argv], env=who.env, cwd='/', timeout=60,
                          stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert out(done) == {0: '300\n600\n', 800: '900\n1000\n'}[score]


@pytest.mark.skipif(os.getuid() != 0, reason='an unprivileged user has one id for all')
def test_ids_of_two_hubs():
    """What the kernel counts for each user is shared with no sandbox of another hub."""
    with tempfile.TemporaryDirectory() as home:
        env = {'PATH': os.environ['PATH'], 'HOME': home, 'HOLT_HOME': f'{home}/holt'}
        runs = [subprocess.Popen([HOLT, 'run', '-i', '--', 'sh', '-c',
                                  'cat /proc/self/uid_map; read x'], env=env, cwd=home,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(8)]
        ids = [run.stdout.readline().split()[1] for run in runs]
        for run in runs:
            run.communicate(b'x\n')
        assert len(set(ids)) == len(ids) and all(int(i) >= 1900000000 for i in ids), ids


def root_elsewhere(argv, env, cwd):
    """Runs a program as root of a user namespace with 65536 ids,
    as in a container without privileges."""
    def enter():
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(0x10000000 | 0x00020000) < 0:  # CLONE_NEWUSER, CLONE_NEWNS
            raise OSError(ctypes.get_errno(), 'unshare')
        os.write(entered[1], b'x')
        os.read(mapped[0], 1)
        os.setgroups([])
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)

    entered, mapped = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            enter()
            os.chdir(cwd)
            os.execve(argv[0], argv, env)
        finally:
            os._exit(99)
    os.read(entered[0], 1)
    for name in ('uid_map', 'gid_map'):
        with open(f'/proc/{pid}/{name}', 'w', encoding='ascii') as f:
            f.write('0 100000 65536')
    os.write(mapped[1], b'x')
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    for fd in (*entered, *mapped):
        os.close(fd)
    return status


@pytest.mark.skipif(os.getuid() != 0, reason='maps ids')
def test_run_as_root_of_another_user_namespace():
    """Such a root may neither write trusted.* attributes nor mount a new /proc where no whole one
    is in sight."""
    script = ('test $(id -u) = 1000 && mkdir -p a/b && mv a c && ls c/b && test -z "$(ls -A '
              '/proc/sys)" && exit 7')
    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, 0o777)
        env = {'PATH': os.environ['PATH'], 'HOME': home, 'HOLT_HOME': f'{home}/holt'}
        assert root_elsewhere([HOLT, 'run', '--', 'sh', '-c', script], env, home) == 7
        # and where it has hidden a part of /proc itself, as container engines do
        mask = 'mount -t tmpfs x /proc/sys && exec "$@"'
        for argv in ['run', '--', 'true'], ['doctor']:
            assert root_elsewhere(['/bin/sh', '-c', mask, 'sh', HOLT, *argv], env, home) == 0, argv


# What goes over the end of a folder, each in an empty one: exit status 0 means that it fitted.
ATTEMPTS = {
    'one write': 'head -c 12M /dev/zero > f',
    'many small files': 'i=0; while [ $i -lt 600 ]; do echo x > $i || exit 1; i=$((i+1)); done',
    'empty files': 'i=0; while [ $i -lt 600 ]; do : > $i || exit 1; i=$((i+1)); done',
    'holes that are filled': 'truncate -s 12M f && head -c 12M /dev/zero | '
    'dd of=f conv=notrunc bs=64k 2>&1',
    'room that is reserved': 'fallocate -l 12M f',
    'a file that has no name any more': 'exec 9> f; rm f; head -c 12M /dev/zero >&9',
    'files that are linked': 'for i in 1 2 3; do head -c 4M /dev/zero > f && ln f g$i && '
    'mv f h$i || exit 1; done',
    'files moved in': 'head -c 12M /dev/zero > /tmp/f && mv /tmp/f f',
    'directories': 'i=0; while [ $i -lt 600 ]; do mkdir $i || exit 1; i=$((i+1)); done',
}
SIZED = r"""
set -e
mount -o loop "$1" "$2"
chown "$3" "$2"
rm -rf "$2/lost+found"
shift 3
exec "$@"
"""


@pytest.mark.skipif(os.getuid() != 0, reason='needs a mount')
@pytest.mark.skipif(not shutil.which('mkfs.ext4', path='/usr/sbin:/sbin')
                    or not os.path.exists('/dev/loop-control'),
                    reason='needs e2fsprogs and loop devices')
def test_run_volume_with_an_end(who, folder):
    """A folder that the kernel ends is held to it, whatever is tried;
    one that it does not end is refused."""
    inside = f'{folder}/in'
    os.mkdir(inside)

    def sized(size, script, *more):
        fd, image = tempfile.mkstemp(dir=who.work)  # the last one may still be on its way out
        os.ftruncate(fd, 8 << 20)
        os.close(fd)
        subprocess.run(['/usr/sbin/mkfs.ext4', '-q', '-N', '512', '-m', '0', image], check=True)
        argv = who.argv('run', *more, '-v', f'{inside}:/mnt/x:rw{size}', '-w', '/mnt/x', '--', 'sh',
                        '-c', script)
        done = subprocess.run(['unshare', '-m', '--propagation', 'private', 'sh', '-c', SIZED, 'sh',
                               image, inside, str(who.uid), *argv],
                              cwd='/', env=who.env, capture_output=True, timeout=60, check=False)
        os.unlink(image)
        return done
    for attempt, script in ATTEMPTS.items():
        done = sized(',size=8M', script)
        assert done.returncode not in (0, 125), (attempt, done)
        assert b'No space' in done.stderr + done.stdout, (attempt, done)
    done = sized(',size=8M', ATTEMPTS['one write'], '--json')
    assert json.loads(done.stdout)['hit_disk'], done
    assert b'a folder of -v is full' in sized(',size=8M', ATTEMPTS['one write']).stderr
    assert sized(',size=1G', 'head -c 4M /dev/zero > f; ln f g; mv g h').returncode == 0
    done = sized(',size=2M', 'true')  # it holds more than that
    assert done.returncode == 125 and b'file system of its own' in done.stderr, done


def test_run_volume_without_an_end(holt, folder):
    """Nothing ends it, so all of that fits: then a size is refused."""
    for attempt, script in ATTEMPTS.items():
        done = holt('run', '-m', '256M', '-v', f'{folder}:/mnt/x:rw', '--', 'sh', '-c',
                    f'mkdir /mnt/x/d && cd /mnt/x/d && {{ {script}; }}')
        assert done.returncode == 0, (attempt, done)
        shutil.rmtree(f'{folder}/d')
    done = holt('run', '-v', f'{folder}:/mnt/x:rw,size=64M', '--', 'true')
    assert (done.returncode == 125 and b'67108864 bytes' in done.stderr
            and b'file system of its own' in done.stderr), done
    for mode in ('ro,size=64M', 'rw,size=', 'rw,size=x', 'rw,size=0', 'rw,', 'size=64M',
                 'rw,size=64M,', 'rw:size=64M'):
        done = holt('run', '-v', f'{folder}:/mnt/x:{mode}', '--', 'true')
        assert done.returncode == 125 and b'-v takes' in done.stderr, (mode, done)


def test_run_limits(holt, driver):
    done = holt('run', '--disk', '2M', '--', 'sh', '-c', 'head -c 5000000 /dev/zero > f')
    assert done.returncode == 1 and b'No space left' in done.stderr
    done = holt('run', '--pids', '8', '--', 'sh', '-c',
                'for i in 1 2 3 4 5 6 7 8 9; do sleep 30 & done; wait')
    assert b'fork' in done.stderr.lower() or b'resource' in done.stderr.lower()
    if driver != 'rlimit':
        assert holt('run', '--memory', '64M', '--', 'python3', '-c',
                    'x = bytearray(300 << 20)').returncode == 137


def test_json_of_run_is_no_command_to_the_terminal(holt):
    done = out(holt('run', '--json', '--', 'printf', r'a\302\2331m\177\342\200\256b'))
    assert not re.search('[\x7f-\x9f\u202e]', done), done
    assert json.loads(done)['stdout'] == 'a\x9b1m\x7f\u202eb'


def test_run_json(holt):
    got = json.loads(out(holt('run', '--json', '--', 'sh', '-c', 'echo o; echo e >&2')))
    assert (got['exit_code'], got['stdout'], got['stderr'], got['timed_out']) == (0, 'o\n', 'e\n',
                                                                                  False)
    assert got['wall_ms'] > 0
    done = holt('run', '--json', '--', 'sh', '-c', 'exit 3')
    assert done.returncode == 3 and json.loads(done.stdout)['exit_code'] == 3
    done = holt('run', '--json', '--timeout', '0.3', '--', 'sleep', '9')
    assert done.returncode == 124 and json.loads(done.stdout)['timed_out']
    got = json.loads(holt('run', '--json', '--', 'sh', '-c', 'kill -9 $$').stdout)
    assert (got['exit_code'], got['signal']) == (137, 9)
    got = json.loads(holt('run', '--json', '--', 'printf', '\\377').stdout)
    assert got['stdout_base64'] == '/w=='


def test_run_is_isolated(holt):
    text = out(holt('run', '--', 'sh', '-c',
                    'id -u; ls /sys/class/net 2>/dev/null; cat /proc/net/route | wc -l; '
                    'grep Cap /proc/self/status; grep NoNewPrivs /proc/self/status; grep Seccomp: '
                    '/proc/self/status'))
    assert (text.startswith('1000\n') and 'CapEff:\t0000000000000000' in text
            and 'CapBnd:\t0000000000000000' in text)
    assert 'NoNewPrivs:\t1' in text and 'Seccomp:\t2' in text


# ---- the rest ------------------------------------------------------------------------------------

def test_version(holt):
    text = out(holt('version'))
    assert re.fullmatch(r'holt \d+\.\d+\.\d+\S*\n', text)
    assert out(holt('--version')) == text


def test_help(holt):
    text = out(holt('help'))
    assert out(holt('--help')) == text
    verbs = re.findall(r'^  (\w+) ', text, re.M)
    assert {'run', 'up', 'exec', 'fs', 'images', 'mcp', 'serve', 'auth', 'doctor', 'version',
            'help'} <= set(verbs)
    for verb in verbs:
        own = out(holt('help', verb))
        assert own == out(holt(verb, '--help')) and f'holt {verb}' in own
        texts = [own, *(out(holt('help', verb, word))
                        for word in re.findall(rf'^  {verb} (\w+) ', own, re.M))]
        assert all(len(line) <= 80 for said in texts for line in said.splitlines()), verb
    for option in ('--timeout', '--memory', '--pids', '--image', '--json', '--cpus', '--disk', '-v',
                   '-e', '-w'):
        assert option in out(holt('help', 'run'))


def test_nothing_asked_for(holt):
    done = holt()
    assert done.returncode == 125 and done.stdout == b'' and b'holt help' in done.stderr
    assert len(done.stderr.splitlines()) < 12 and max(map(len, done.stderr.splitlines())) <= 80


@pytest.mark.parametrize('typed, meant', [
    (['run', '--memroy', '1G', '--', 'true'], '--memory'),
    (['run', '--time-out', '1', '--', 'true'], '--timeout'),
    (['mcp', '--pol', '1'], '--pool'), (['doctor', '--jason'], '--json'),
    (['rum', '--', 'true'], 'run'), (['doktor'], 'doctor'),
    (['help', 'mpc'], 'mcp'),
    (['approvals', 'ls'], "'inbox'"), (['prompts'], "'inbox'"),
    (['pull', 'debian'], "'images pull'"), (['port'], "'forward'"), (['load'], "'images import'"),
], ids=' '.join)
def test_misspelt_words_get_the_nearest_name(holt, typed, meant):
    done = holt(*typed)
    assert (done.returncode == (2 if typed[0] in ('mcp', 'doctor') else 125)
            and done.stdout == b''), done
    assert 'did you mean' in done.stderr.decode() and meant in done.stderr.decode()


@pytest.mark.parametrize('status, arguments', [
    (2, ['doctor', 'x']), (2, ['version', 'x']), (2, ['mcp', 'x']),
    (2, ['help', 'a', 'b', 'c', 'd']),
    (125, ['help', 'mcp', 'x']), (2, ['mcp', '--pool', '65']), (2, ['mcp', '--pool', 'many']),
    (2, ['mcp', '--pool', '']), (125, ['run', '-q', 'true']), (125, ['nonsense']), (125, ['']),
], ids=str)
def test_what_is_refused(holt, status, arguments):
    done = holt(*arguments)
    assert done.returncode == status and done.stdout == b'' and done.stderr.startswith(b'holt')


def test_doctor(holt):
    done = holt('doctor')
    text = done.stdout.decode()
    assert done.returncode == 0, text
    for word in ('userns', 'overlay', 'seccomp', 'landlock', 'namespace'):
        assert word in text


def test_doctor_json(holt, who, driver):
    got = json.loads(out(holt('doctor', '--json')))
    assert got['tier'] == 'namespace'
    rows = {row['feature']: row for row in got['features']}
    for name in ('userns', 'mountns', 'pidns', 'netns', 'overlay', 'seccomp'):
        assert rows[name]['ok'] and rows[name]['required'], name
    for row in rows.values():
        assert row['ok'] or (row['detail'] and row['remedy']), row
    assert got['ready'] and got['limits'] == driver and got['rootless'] == (who.uid != 0)


def checks(done):
    """What `holt self-check --json` says: each part's detail where it is as it should be, else
    None."""
    return {row['feature']: row['detail'] if row['ok'] else None
            for row in json.loads(done.stdout)['checks']}


def test_self_check(holt):
    done = holt('self-check')
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0, lines
    for name in ('holt', 'holt-warden', 'holt-init', 'holt-js', 'create', 'exec', 'destroy'):
        assert sum(line.split()[1] == name for line in lines) == 1, (name, lines)
    got = json.loads(out(holt('self-check', '--json')))
    assert got['ok'] and len(got['checks']) == len(lines)


def test_self_check_of_what_is_broken(who):
    """A helper that is missing, of another version, or no program."""
    top = os.path.join(who.work, 'installed')
    program = who.argv()[-1]
    box = os.path.join(os.path.dirname(program), '../box')
    helpers = os.path.join(top, 'libexec/holt')
    os.makedirs(os.path.join(top, 'bin'))
    os.makedirs(os.path.join(helpers, 'inside'))
    shutil.copy(program, os.path.join(top, 'bin'))
    for name in ('holt-warden', 'holt-init', 'holt-pack', 'holt-egress', 'holt-js',
                 'inside/holt-call', 'inside/holt.py'):
        shutil.copy(os.path.join(box, name), os.path.join(helpers, name))
    os.makedirs(os.path.join(top, 'lib/holt'))
    for library in glob.glob(os.path.join(os.path.dirname(program), '../../../.deps/lib/*.so.?')):
        shutil.copy(library, os.path.join(top, 'lib/holt'))  # as scripts/install does

    def check():
        return subprocess.run([*who.prefix, os.path.join(top, 'bin/holt'), 'self-check', '--json'],
                              env=who.env, cwd='/', capture_output=True, timeout=60, check=False)
    try:
        whole = check()
        assert whole.returncode == 0 and None not in checks(whole).values(), whole
        for name, text, mode in (('holt-js', '#!/bin/sh\necho holt-js 0.0.1\n', 0o755),
                                 ('holt-pack', '#!/bin/sh\n', 0o755), ('holt-egress', '', 0o644)):
            path = os.path.join(helpers, name)
            os.unlink(path)
            with open(path, 'w', encoding='utf-8') as f:
                f.write(text)
            os.chmod(path, mode)
        os.unlink(os.path.join(helpers, 'inside/holt.py'))
        broken = check()
        assert broken.returncode == 1
        assert {name for name, ok in checks(broken).items() if not ok} == {
            'holt-js', 'holt-pack', 'holt-egress', 'holt.py'}
        os.unlink(os.path.join(helpers, 'holt-init'))
        broken = checks(check())
        assert broken['holt-init'] is None and broken['create'] is None and 'exec' not in broken
    finally:
        shutil.rmtree(top)


def test_a_start_loads_few_libraries(who):
    """What is loaded at once delays every command; the others are loaded when they are needed."""
    if who.prefix:
        pytest.skip('the same program')
    told = subprocess.run(['ldd', who.argv()[0]], capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r'\blib([a-z0-9_+]+)[-.\d]*\.so', told)) <= {
        'c', 'sodium', 'uv', 'yyjson',
        # of sanitizers
        'asan', 'ubsan', 'lsan', 'm', 'gcc_s', 'stdc++'}


def test_doctor_in_a_chroot_says_so(holt, who):
    """User namespaces are forbidden there: creation fails closed,
    and the remedy names the chroot."""
    if os.getuid() or who.prefix or not shutil.which('chroot'):
        pytest.skip('only root enters a chroot')
    top = os.path.join(who.work, 'root')
    os.mkdir(top)
    program = who.argv()[0]
    libraries = subprocess.run(['ldd', program], capture_output=True, text=True, check=True).stdout
    binds = {'/usr', '/proc', '/dev', '/sys',
             os.path.dirname(os.path.dirname(os.path.dirname(program)))}
    binds |= {os.path.dirname(p) for p in re.findall(r'=> (/\S+)', libraries)
              if not p.startswith(('/usr/', '/lib'))}
    script = ('set -e; ' + ''.join(f'mkdir -p {top}{p}; mount --bind {p} {top}{p}; ' for p in binds)
              +
              ''.join(f'ln -s usr/{n} {top}/{n}; '
                      for n in ('bin', 'lib', 'lib64') if os.path.exists('/usr/' + n)) +
              f'mkdir -p {top}/etc {top}/tmp; exec chroot {top} "$@"')

    def inside(*arguments):
        for name in ('bin', 'lib', 'lib64'):
            if os.path.islink(f'{top}/{name}'):
                os.unlink(f'{top}/{name}')
        return subprocess.run(['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script,
                               'sh', *who.argv(*arguments)],
                              env=who.env, cwd='/', capture_output=True, text=True, timeout=60,
                              check=False)
    try:
        done = inside('doctor')
        assert done.returncode == 1 and 'chroot' in done.stdout, done
        done = inside('run', '--', 'true')
        assert done.returncode == 125 and 'holt doctor' in done.stderr, done
    finally:
        shutil.rmtree(top)


def test_programs_need_no_environment(who, residue):
    done = subprocess.run(who.argv('run', '--', 'echo', 'x'), env={}, cwd='/', capture_output=True,
                          timeout=60, check=False)
    assert done.stdout == b'x\n', done


def test_a_program_started_by_a_link_or_from_elsewhere(who, residue):
    link = os.path.join(who.work, 'link')
    os.symlink(who.argv()[-1], link)
    try:
        done = subprocess.run([*who.prefix, link, 'run', '--', 'echo', 'x'], env=who.env,
                              cwd=who.work if not who.prefix else '/',
                              capture_output=True, timeout=60, check=False)
        assert done.stdout == b'x\n', done
    finally:
        os.unlink(link)


def ignore_all_signals():
    """Also those that the C library keeps for itself, as some ancestors of ours do."""
    ignoring = (ctypes.c_ulong * 4)(1)
    rt_sigaction = ctypes.c_long(13 if os.uname().machine == 'x86_64' else 134)
    for number in set(range(1, 65)) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        ctypes.CDLL(None).syscall(rt_sigaction, ctypes.c_long(number), ignoring, None,
                                  ctypes.c_long(8))


def test_nothing_is_inherited_by_the_command(who, residue):
    """Descriptors and signal settings of whoever starts holt stop there."""
    r, w = os.pipe()
    try:
        done = subprocess.run(who.argv('run', '--', 'sh', '-c', 'ls /proc/self/fd; grep SigIgn '
                                       '/proc/self/status; umask'), env=who.env,
                              cwd='/', pass_fds=(r, w), capture_output=True, timeout=60,
                              check=False,
                              preexec_fn=lambda: (ignore_all_signals(), os.umask(0)))
    finally:
        os.close(r)
        os.close(w)
    assert done.stdout.decode().split() == ['0', '1', '2', '3', 'SigIgn:', '0' * 16, '0022'], done


