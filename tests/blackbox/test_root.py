"""Root inside: uid 0 of a sandbox with a range of ids, by the tools that need one.

Holt runs as root, and as a user who has ids in /etc/subuid and /etc/subgid. Those files are ones of
the test's own, in a mount namespace of the hub's. What root inside can not do is in
tests/escape/test_root.py.
"""

import io
import json
import os
import shutil
import subprocess
import tarfile
import zipfile

import pytest

import host
import image_files as files
from client import until
from test_distributions import Template, check_tools
from rest import Failed
from soak import FULL
from test_readopt import begin, kill  # noqa: F401
from who import Who, ranger

pytestmark = pytest.mark.rights

RIGHTS = '00000000800004fb'  # chown … net_bind_service, as capabilities(7) numbers them


@pytest.fixture(scope='module', params=['root', 'user'])
def who(request):
    if os.getuid() != 0:
        pytest.skip('only root can be both')
    who = Who('root') if request.param == 'root' else ranger()
    yield who
    shutil.rmtree(who.top)


def sh(who, line, *options, status=0):
    done = who.run('run', '--user', 'root', *options, '--', 'sh', '-c', line, timeout=120)
    assert done.returncode == status, done
    return done.stdout.decode()


# ---- who it is -----------------------------------------------------------------------------------


def test_identity(who, residue):
    assert sh(who, 'id -u; id -un; id -G; echo $HOME $USER $LOGNAME; pwd') == (
        '0\nroot\n0\n/root root root\n/workspace\n')
    assert sh(who, 'grep -E "^(Cap|NoNew|Seccomp:)" /proc/self/status | cut -f 2') == (
        f'0000000000000000\n{RIGHTS}\n{RIGHTS}\n{RIGHTS}\n0000000000000000\n0\n2\n')
    assert sh(who, "awk '{ n += $3 } END { print n }' /proc/self/uid_map") == '65536\n'


def test_default_is_what_it_was(who, residue):
    done = who.run('run', '--', 'sh', '-c', 'id -u; grep -E "CapBnd|NoNew" /proc/self/status')
    assert done.stdout.split() == [b'1000', b'CapBnd:', b'0' * 16, b'NoNewPrivs:', b'1'], done
    done = who.run('run', '--user', 'user', '--', 'id', '-u')
    assert done.stdout == b'1000\n', done
    assert who.run('run', '--user', 'daemon', '--', 'id').returncode == 125


def test_owners_and_modes(who, residue):
    """chown, set-id bits, setgid folders, and that a set-id program changes who runs it."""
    assert sh(who, 'stat -c "%U %G" / /etc /root /home/agent /workspace') == (
        'root root\n' * 3 + 'agent agent\n' + 'root root\n')
    assert sh(who, 'touch a && chown 123:456 a && stat -c %u:%g a') == '123:456\n'
    assert sh(who, 'mkdir d && chgrp 50 d && chmod 2775 d && mkdir d/e && touch d/f && '
                   'stat -c %a:%g d d/e d/f') == '2775:50\n2755:50\n644:50\n'
    as_other = 'setpriv --reuid 1000 --regid 1000 --clear-groups'
    assert sh(who, 'cp /usr/bin/id own && chown 77:88 own && chmod 6755 own && '
                   f'{as_other} ./own -u && {as_other} ./own -g') == '77\n88\n'
    assert sh(who, f'cp /usr/bin/id own && {as_other} ./own -u') == '1000\n'


def test_other_users(who, residue):
    """It becomes anybody of its range; what those may is what users may."""
    assert sh(who, 'useradd -r svc && useradd -m bob && '
                   'setpriv --reuid bob --regid $(id -g bob) --init-groups id -un && '
                   'getent passwd svc | cut -d: -f1') == 'bob\nsvc\n'
    assert sh(who, 'touch /etc/x && setpriv --reuid 65534 --clear-groups sh -c '
                   '"rm /etc/x 2>/dev/null || grep CapEff /proc/self/status | cut -f 2"') == (
        '0' * 16 + '\n')
    assert sh(who, 'sleep 1000 & setpriv --reuid 1000 sleep 1000 & kill $! && '
                   'wait $!; echo $?').endswith('143\n')
    assert sh(who, 'setpriv --reuid 65535 id -u; setpriv --reuid 65536 id -u 2>&1 | '
                   'grep -c Invalid') == '65535\n1\n'


def test_low_ports(who, residue):
    assert sh(who, 'python3 -c "import socket; socket.socket().bind((\'127.0.0.1\', 80))" && '
                   'echo bound') == 'bound\n'


def test_git_init_shared(who, residue):
    if not shutil.which('git'):
        pytest.skip('there is no git here')
    assert sh(who, 'git init -q --shared r && stat -c %a r/.git/refs') == '2775\n'


# ---- what it is refused --------------------------------------------------------------------------


def test_a_user_without_ids(residue_of_user):
    """By name, with what helps; and sandboxes of uid 1000 work as ever."""
    for user in residue_of_user:
        done = user.run('run', '--user', 'root', '--', 'id')
        assert done.returncode == 125 and b'/etc/subuid' in done.stderr, done
        assert user.run('run', '--', 'id', '-u').stdout == b'1000\n'


@pytest.fixture
def residue_of_user():
    if os.getuid() != 0:
        pytest.skip('only root can be both')
    users = [Who('user'), ranger(65534)]
    yield users
    for user in users:
        shutil.rmtree(user.top)


def test_host_folders(who, residue):
    """Its owner on the host is uid 0 inside; no bit that gives rights is left on the host."""
    folder = os.path.join(who.work, 'shown')
    os.mkdir(folder)
    os.chown(folder, who.uid, who.uid)
    with open(folder + '/old', 'w', encoding='ascii') as f:
        f.write('old')
    os.chown(folder + '/old', who.uid, who.uid)
    line = ('stat -c %u /mnt/old && echo new >/mnt/new && cp /usr/bin/id /mnt/id && '
            '! chmod u+s /mnt/id && ! chmod g+s /mnt && ! setcap cap_kill+ep /mnt/id 2>/dev/null; '
            'stat -c %a /mnt/id')
    assert sh(who, line, '-v', folder + ':/mnt:rw') == '0\n755\n'
    assert os.stat(folder + '/new').st_uid == who.uid
    assert not os.stat(folder + '/id').st_mode & 0o6000
    assert 'security.capability' not in os.listxattr(folder + '/id')
    # what the host has there gives nothing inside
    shutil.copy('/usr/bin/id', folder + '/set')
    os.chmod(folder + '/set', 0o4755)
    assert sh(who, 'setpriv --reuid 1000 /mnt/set -u', '-v', folder + ':/mnt:ro') == '1000\n'
    assert sh(who, '! touch /mnt/x 2>/dev/null; cp /usr/bin/id . && chmod 4755 id && echo set',
              '-v', folder + ':/mnt:ro') == 'set\n'
    shutil.rmtree(folder)


# ---- through a hub -------------------------------------------------------------------------------

KEEP = ('set -e; useradd -r svc; install -d -o svc -g 7 -m 2750 /srv/data; '
        'install -o svc -m 4711 /usr/bin/id /srv/data/id; ln -s x /srv/data/link; '
        'chown -h 5:6 /srv/data/link; ln /srv/data/id /srv/data/same; touch /srv/data/gone; '
        'chown 1000 /etc/hosts')
TELL = ('stat -c "%n %a %U %g" /srv/data /srv/data/id; stat -c "%u:%g" /srv/data/link; '
        'stat -c %h /srv/data/same; stat -c %U /etc/hosts; id -u; '
        'setpriv --reuid 1 --regid 7 --clear-groups /srv/data/id -un')
TOLD = ('/srv/data 2750 svc 7\n/srv/data/id 4711 svc 7\n5:6\n2\nagent\n0\nsvc\n')


def run(hub, sandbox, line):
    got = hub.exec(sandbox, line)
    assert got['exit_code'] == 0, got
    return got['stdout']


def test_it_stays_with_the_sandbox(begin):
    """Owners and bits, through forks, snapshots, a stop, sleep, a pause and the end of its hub."""
    hub = begin('--sleep-after', '0.1')
    source = hub.create(user='root')
    assert hub.call('GET', f'/v1/sandboxes/{source}')['user'] == 'root'
    assert hub.call('GET', f'/v1/sandboxes/{hub.create()}')['user'] == 'user'
    run(hub, source, KEEP)
    idle = hub.post(f'/v1/sandboxes/{source}/fork')['id']
    hub.exec(source, 'sleep 1000', background=True)
    busy = hub.post(f'/v1/sandboxes/{source}/fork')['id']
    deep = hub.post(f'/v1/sandboxes/{idle}/fork')['id']
    snapshot = hub.post(f'/v1/sandboxes/{source}/snapshots')['id']
    restored = hub.post(f'/v1/snapshots/{snapshot}/restore')['id']
    hub.post('/v1/pause', sandbox=idle)
    hub.post('/v1/resume', sandbox=idle)
    stopped = hub.create(user='root')
    run(hub, stopped, KEEP)
    hub.post(f'/v1/sandboxes/{stopped}/stop')
    until(lambda: hub.metrics()['holt_sandboxes_asleep'] == 5, what='that all sleep')
    for sandbox in (source, idle, busy, deep, restored):
        assert run(hub, sandbox, TELL) == TOLD, sandbox
    kill(hub)
    hub = begin('--sleep-after', '0.1')
    hub.post('/v1/resume', sandbox=stopped)
    again = hub.post(f'/v1/snapshots/{snapshot}/restore')['id']
    for sandbox in (source, idle, busy, deep, restored, stopped, again):
        assert run(hub, sandbox, TELL) == TOLD, sandbox
        assert hub.call('GET', f'/v1/sandboxes/{sandbox}')['user'] == 'root'


def test_the_workspace_is_made_anew(begin):  # noqa: F811
    """An agent that has removed it could start nothing any more."""
    hub = begin()
    sandbox = hub.create(user='root')
    run(hub, sandbox, 'touch a; cd /; rm -rf /workspace')
    assert run(hub, sandbox, 'pwd; ls -A') == '/workspace\n'
    run(hub, sandbox, 'cd /; rmdir /workspace; touch /workspace')
    with pytest.raises(Failed):  # what stands there stays
        run(hub, sandbox, 'true')
    assert hub.exec(sandbox, 'cat /workspace', working_dir='/')['exit_code'] == 0


def test_exec_as_somebody(begin):
    """In a sandbox with root, uid 1000 on request; in others nobody is root."""
    hub = begin()
    sandbox, plain = hub.create(user='root'), hub.create()
    told = 'id -u; id -G; echo $HOME $USER; grep CapEff /proc/self/status | cut -f 2; pwd'
    got = hub.exec(sandbox, told, user='user')
    assert got['stdout'] == f'1000\n1000\n/home/agent agent\n{"0" * 16}\n/workspace\n', got
    assert hub.exec(sandbox, 'id -u', user='root')['stdout'] == '0\n'
    assert hub.exec(sandbox, 'id -u')['stdout'] == '0\n'
    assert hub.exec(sandbox, 'id -u', user='user', env={'HOME': '/'})['stdout'] == '1000\n'
    assert hub.exec(plain, 'id -u', user='user')['stdout'] == '1000\n'
    with pytest.raises(Failed, match='without root'):
        hub.exec(plain, 'id -u', user='root')
    # its tree is found and ended by its timeout, whoever is in it
    with pytest.raises(Failed, match='exec_timeout'):
        hub.exec(sandbox, 'setpriv --reuid 5 sleep 1000 & sleep 1000', timeout=1)
    until(lambda: hub.exec(sandbox, 'pgrep sleep')['exit_code'] == 1, what='their end')


def test_files_over_the_api(begin):
    """They are root's, as what root writes inside; those of others can be read."""
    hub = begin()
    sandbox = hub.create(user='root')
    hub.post('/v1/files/write', sandbox=sandbox, path='/etc/new', content='x')
    run(hub, sandbox, 'useradd -r svc; install -d -o svc -m 700 /srv/d; '
                      'install -o svc -m 600 /etc/new /srv/d/f')
    assert run(hub, sandbox, 'stat -c %U /etc/new') == 'root\n'
    got = hub.post('/v1/files/read', sandbox=sandbox, path='/srv/d/f')
    assert got['content'] == 'x', got
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode='w') as t:
        info = tarfile.TarInfo('set')
        info.mode, info.uid = 0o4755, 5
        t.addfile(info)
    head = hub.request('PUT', f'/v1/sandboxes/{sandbox}/archive?path=/srv',
                       fields=['Content-Type: application/x-tar',
                               f'Content-Length: {len(tar.getvalue())}'])
    with hub.wire() as wire:
        assert wire.ask(head.encode() + tar.getvalue(), 'PUT').status == 200
    assert run(hub, sandbox, 'stat -c "%a %U" /srv/set') == '755 root\n'


def test_diff(begin):
    hub = begin()
    sandbox = hub.create(user='root')
    before = hub.call('GET', f'/v1/sandboxes/{sandbox}/diff')
    assert not before['changes'], before
    run(hub, sandbox, 'useradd -r svc; touch /srv/a; chown svc /srv/a; rm /etc/host.conf')
    found = {(c['path'], c['change']) for c in
             hub.call('GET', f'/v1/sandboxes/{sandbox}/diff')['changes']}
    assert {('/srv/a', 'added'), ('/etc/passwd', 'changed'),
            ('/etc/host.conf', 'removed')} <= found, found


def is_locked(first):
    """Whether a lock holds all ids of a range. The kernel makes one lock of neighbouring ones that
    a warden has. One reading may pass over some, where others come and go meanwhile."""
    with open('/proc/locks', encoding='ascii') as f:
        held = [line.split()[-2:] for line in f]
    return any(1900000000 <= int(start) <= first and first + 65535 <= int(end)
               for start, end in held if end != 'EOF')


def test_sandboxes_have_ids_of_their_own(begin, who):
    """As root: no two families share one, and other hubs' are left alone. What ends gives back."""
    if who.uid:
        pytest.skip('a user without rights has one range')
    hub = begin()
    made = [hub.create(user='root') for _ in range(8)]
    fork = hub.post(f'/v1/sandboxes/{made[0]}/fork')['id']

    seen = set()

    def first(sandbox):
        hub.exec(sandbox, 'exec sleep 4321', background=True)
        return until(asleep, what='its process')

    def asleep():
        """The uid of one that was not seen before."""
        for p in host.with_argument('4321'):
            if p.comm == 'sleep' and p.pid not in seen:
                seen.add(p.pid)
                return os.stat(f'/proc/{p.pid}').st_uid
        return None

    found = [first(s) for s in made]
    assert len(set(found)) == 8 and all(f >= 1900000000 for f in found), found
    gaps = [b - a for a, b in zip(sorted(found), sorted(found)[1:])]
    assert min(gaps) >= 65536, found
    assert first(fork) == found[0]
    for f in found:
        until(lambda: is_locked(f), what=f'the lock on the ids from {f}')
    # a fork keeps the ids when its source, in which something ran, ends before it
    source = hub.create(user='root')
    found.append(first(source))
    made.append(hub.post(f'/v1/sandboxes/{source}/fork')['id'])
    hub.delete(source)
    until(lambda: is_locked(found[-1]), what="the lock on the fork's ids")
    for sandbox in (*made, fork):
        hub.delete(sandbox)
    assert not any(map(is_locked, found))


def lives(hub, folder, **options):
    """A sandbox of each kind, and what can become of it; the ids of all that are left."""
    source = hub.create(**options)
    run(hub, source, 'touch /workspace/a')
    yield source
    yield hub.post(f'/v1/sandboxes/{source}/fork')['id']
    hub.exec(source, 'sleep 1000', background=True)
    yield hub.post(f'/v1/sandboxes/{source}/fork')['id']
    snapshot = hub.post(f'/v1/sandboxes/{source}/snapshots')['id']
    yield hub.post(f'/v1/snapshots/{snapshot}/restore')['id']
    hub.call('DELETE', f'/v1/snapshots/{snapshot}')
    stopped = hub.create(**options)
    hub.post(f'/v1/sandboxes/{stopped}/stop')
    hub.post('/v1/resume', sandbox=stopped)
    yield stopped
    yield hub.create(volumes=[{'host': folder, 'inside': '/mnt'}], **options)
    yield hub.create(debug=True, **options)


def test_what_ends_leaves_nothing_in_the_warden(begin, who):
    """Its mounts and inodes are bounded, and only its end would give them back."""
    folder = os.path.join(who.top, 'volume')
    os.makedirs(folder, exist_ok=True)
    hub = begin('--pool', '0', '--allow-volumes', folder)
    warden = host.program(hub.proc.pid, 'holt-warden')

    def held():
        with open(f'/proc/{warden}/mountinfo', encoding='utf-8') as f:
            mounts = len(f.readlines())
        inside = os.statvfs(f'/proc/{warden}/root')
        return mounts, inside.f_files - inside.f_ffree

    hub.delete(hub.create())
    before = held()
    for _ in range(150 if FULL else 2):  # seven sandboxes with root each
        for user in ('user', 'root'):
            for sandbox in [*lives(hub, folder, user=user)]:
                hub.delete(sandbox)
            until(lambda: all(now <= was for now, was in zip(held(), before)),
                  what=lambda: f'that {before} is all again, not {held()},')


# ---- package managers ----------------------------------------------------------------------------

POSTINST = ('#!/bin/sh\nset -e\n[ "$1" = configure ] || exit 0\n'
            'adduser --quiet --system --group --home /var/lib/greeter greeter\n'
            'install -d -o greeter -g greeter -m 2750 /var/lib/greeter\n'
            'chown root:greeter /usr/bin/greet\nchmod 2755 /usr/bin/greet\n')


def package(to):
    """A package whose script makes a user of its own, in a flat repository."""
    tree = os.path.join(to, 'tree')
    os.makedirs(tree + '/DEBIAN')
    os.makedirs(tree + '/usr/bin')
    with open(tree + '/DEBIAN/control', 'w', encoding='ascii') as f:
        f.write('Package: greeter\nVersion: 1.0\nArchitecture: all\nDepends: adduser\n'
                'Maintainer: Nobody <nobody@example.org>\nDescription: greets\n')
    for path, text in (('DEBIAN/postinst', POSTINST),
                       ('usr/bin/greet', '#!/bin/sh\necho hello from $(id -un)\n')):
        with open(os.path.join(tree, path), 'w', encoding='ascii') as f:
            f.write(text)
        os.chmod(os.path.join(tree, path), 0o755)
    os.mkdir(to + '/repo')
    subprocess.run(['dpkg-deb', '--root-owner-group', '-b', tree, to + '/repo/greeter.deb'],
                   check=True, capture_output=True)
    shutil.rmtree(tree)
    with open(to + '/repo/Packages', 'wb') as f:
        f.write(subprocess.run(['dpkg-scanpackages', '-m', '.'], cwd=to + '/repo', check=True,
                               capture_output=True).stdout)
    return to + '/repo'


@pytest.fixture(scope='module')
def debian(who):
    """A Debian's own packages as an image, and a repository beside it."""
    check_tools()
    if not shutil.which('dpkg-scanpackages'):
        pytest.skip('dpkg-dev is not installed: scripts/deps test')
    work = os.path.join(who.top, 'debian')
    os.mkdir(work)
    files.debian_tar(work + '/tar', 'apt', 'passwd', 'adduser', 'python3', 'login')
    root = files.unpacked(work + '/tar', work + '/root')
    os.makedirs(root + '/etc/apt/sources.list.d', exist_ok=True)
    shutil.rmtree(root + '/etc/apt/sources.list.d')
    os.makedirs(root + '/etc/apt/sources.list.d')
    with open(root + '/etc/apt/sources.list', 'w', encoding='ascii') as f:
        f.write('deb [trusted=yes] file:/repo ./\n')
    shutil.move(package(work), root + '/repo')
    for name in ('shadow', 'gshadow'):
        with open(f'{root}/etc/{name}', 'w', encoding='ascii'):
            pass
    subprocess.run(['chmod', '-R', 'a+rX', root], check=True)
    done = who.run('images', 'import', root, 'debian-root', timeout=280)
    assert done.returncode == 0, done.stderr
    yield Template(who, 'debian-root')
    shutil.rmtree(os.path.join(who.env['XDG_DATA_HOME'], 'holt'))


def root_in(debian, line, **options):
    done = debian.who.run('run', '--user', 'root', '--template', debian.name, '--', 'sh', '-c',
                          line, timeout=280, **options)
    assert done.returncode == 0, (done.stdout.decode(), done.stderr.decode())
    return done.stdout.decode()


def test_apt_install(debian, residue):
    """As on a machine: apt with its user _apt, dpkg, adduser, a setgid program, a removal."""
    told = root_in(debian, 'apt-get -q update && apt-get -qy install greeter && '
                           'echo; echo @; getent passwd greeter | cut -d: -f1,6,7; '
                           'stat -c "%a %U:%G" /usr/bin/greet /var/lib/greeter; greet; '
                           'setpriv --reuid greeter --regid greeter --clear-groups '
                           'sh -c "touch /var/lib/greeter/x && stat -c %U /var/lib/greeter/x"; '
                           'dpkg -s greeter | grep ^Status; '
                           'apt-get -qy purge greeter >/dev/null && test ! -e /usr/bin/greet')
    assert told.split('@\n')[1] == (
        'greeter:/var/lib/greeter:/usr/sbin/nologin\n2755 root:greeter\n2750 greeter:greeter\n'
        'hello from root\ngreeter\nStatus: install ok installed\n'), told


def test_dpkg_and_users(debian, residue):
    assert root_in(debian, 'dpkg -i /repo/greeter.deb >/dev/null && greet && useradd -m bob && '
                           'groupadd -r team && usermod -aG team bob && '
                           'setpriv --reuid bob --regid bob --init-groups id -Gn') == (
        'hello from root\nbob team\n')
    # what this replaces: nobody but uid 1000 is there
    done = debian.run('dpkg', '-i', '/repo/greeter.deb')
    assert done.returncode != 0, done


def test_pip_install(debian, residue, who):
    """A wheel into the system's own packages."""
    pip = '/usr/lib/python3/dist-packages/pip'
    if not os.path.isdir(pip):
        pytest.skip('there is no pip here')
    wheel = os.path.join(who.work, 'hello-1-py3-none-any.whl')
    with zipfile.ZipFile(wheel, 'w') as z:
        z.writestr('hello.py', 'WORD = "installed"\n')
        z.writestr('hello-1.dist-info/METADATA', 'Metadata-Version: 2.1\nName: hello\nVersion: 1\n')
        z.writestr('hello-1.dist-info/WHEEL',
                   'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
        z.writestr('hello-1.dist-info/RECORD', '')
    os.chmod(wheel, 0o644)
    inside = '/tmp/' + os.path.basename(wheel)
    trust = '/etc/ssl/certs/ca-certificates.crt'  # pip reads it before it knows that it needs none
    done = who.run('run', '--user', 'root', '--template', debian.name,
                   '-v', '/usr/lib/python3:/usr/lib/python3', '-v', f'{trust}:{trust}',
                   '-v', f'{wheel}:{inside}',
                   '--', 'sh', '-c',
                   f'python3 -m pip install -q --break-system-packages --no-index {inside} && '
                   'python3 -c "import hello; print(hello.WORD, hello.__file__)"', timeout=120)
    os.unlink(wheel)
    assert done.stdout.startswith(b'installed /usr/local/lib/python3'), done


def test_build(debian, who):
    """Lines of a build as root; a cached line has left owners as they were."""
    folder = os.path.join(who.work, 'built')
    os.mkdir(folder)
    os.chown(folder, who.uid, who.uid)

    def build(*lines, **more):
        with open(folder + '/holt.json', 'w', encoding='utf-8') as f:
            json.dump({'base': debian.name, 'run': lines, **more}, f)
        return who.run('build', '-t', 'built:1', folder, timeout=280)

    lines = ('apt-get -q update && apt-get -qy install greeter', 'stat -c %U /var/lib/greeter')
    done = build(*lines, run_user='root')
    assert done.returncode == 0 and b'\ngreeter\n' in done.stderr, done
    done = build(lines[0], 'stat -c "again %U" /var/lib/greeter', run_user='root')
    assert done.returncode == 0 and b'\nagain greeter\n' in done.stderr, done
    assert b'Setting up greeter' not in done.stderr, done
    built = Template(who, 'built:1')
    assert built.sh('greet; id -u') == 'hello from agent\n1000\n'
    assert root_in(built, 'greet; stat -c %U /var/lib/greeter') == 'hello from root\nroot\n'
    assert build(lines[0]).returncode != 0
    shutil.rmtree(folder)


def test_the_image_stays_as_it_was(debian, residue):
    root_in(debian, 'dpkg -i /repo/greeter.deb >/dev/null; chown 5 /etc/passwd; rm /usr/bin/apt')
    assert root_in(debian, 'stat -c %u /etc/passwd; ! command -v greet; command -v apt') == (
        '0\n/usr/bin/apt\n')


def test_mcp(spawn):
    """The one knob, over MCP."""
    mcp = spawn()
    sandbox = mcp.create(user='root')
    assert sandbox.info['user'] == 'root' and not sandbox.info['from_pool']
    assert sandbox.sh('id -u') == '0\n'
    assert mcp.create().info['user'] == 'user'
    assert json.dumps(mcp.fails('sandbox_create', pool='host', user='daemon'))
