"""Snapshots of a user without rights, from one person's hub to another's, with very many files,
and of strangers."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import threading
import time

import pytest

import host
import image_files as files
from client import until
from soak import soak
from test_snapshots import LAYER, MAKE, TELL, Hub, code_of
from who import Who


@pytest.fixture(scope='module')
def hubs(me, tmp_path_factory):
    """Hubs of root and of a user, or of the one whom there is, by name."""
    people = [me]
    if me.uid == 0:
        user = Who('user')
        if not user.reaches_holt():
            shutil.rmtree(user.top)
            pytest.skip('the build directory is closed to users without rights')
        people.append(user)
    found = {}
    for who in people:
        home = os.path.join(who.work, 'snapshots')
        os.mkdir(home, 0o700)
        os.chown(home, who.uid, who.uid)
        found[who.name] = Hub(who, home, '--pool', '0')
    yield found
    for hub in found.values():
        hub.works()
        assert hub.end() == 0, hub.said()
        hub.kill()
        shutil.rmtree(hub.home)
    for who in people[1:]:
        shutil.rmtree(who.top)


def export(hub, snapshot):
    with hub.wire() as wire:
        reply = wire.ask(hub.request('GET', f'/v1/snapshots/{snapshot}/export'), 'GET')
    assert reply.status == 200, reply
    return reply.body


def put(hub, data, query=''):
    head = hub.request('POST', '/v1/snapshots' + query,
                       fields=['Content-Type: application/zstd', f'Content-Length: {len(data)}'])
    with hub.wire() as wire:
        reply = wire.ask(head.encode() + data, 'POST')
    return reply.status, json.loads(reply.body)


def clean(hub):
    for one in hub.sandboxes():
        hub.delete(one)
    for one in hub.snapshots():
        hub.call('DELETE', f'/v1/snapshots/{one}')
    until(lambda: hub.on_disk() == set() and hub.half() == [], what='no file is left')


@pytest.mark.parametrize('template', ['host', 'of a directory'])
def test_of_a_user(hubs, tmp_path, template):
    """Taken, forked, restored, forked again: what root's do."""
    hub = hubs['user' if 'user' in hubs else 'root']
    name = 'host'
    if template != 'host':
        root = os.path.join(hub.who.work, 'root')
        os.mkdir(root)
        with tarfile.open(fileobj=io.BytesIO(files.busybox_layer(*LAYER))) as tar:
            tar.extractall(root)
        subprocess.run(['chown', '-R', f'{hub.who.uid}:{hub.who.uid}', root], check=True)
        done = hub.who.run('images', 'import', root, 'small', env=hub.env)
        shutil.rmtree(root)
        assert done.returncode == 0, done.stderr
        name = 'small'
        if hub.who.run('run', '--template', 'small', '--', 'true', env=hub.env).returncode:
            pytest.skip('users without privileges have no whole overlays on this kernel')
    source = hub.create(template=name)
    if name == 'host':
        hub.sh(source, 'cd /workspace; ' + MAKE + 'rm -f pipe .wh.d')
        tell = TELL
    else:
        hub.sh(source, 'rm -r /t/o; echo x > /t/o; echo more >> /t/d/keep; mkdir -p /new/deep; '
               'echo y > /new/deep/y; chmod 700 /new')
        tell = ('cd /; find t new | sort | while read f; do stat -c "%F %a %n" $f; done; '
                'cat /t/o /t/d/keep /new/deep/y')
    child = hub.post(f'/v1/sandboxes/{source}/fork')['id']
    told = hub.sh(source, tell)
    snapshots = [hub.take(source), hub.take(child)]
    hub.sh(source, 'echo later > /tmp/later')
    for snapshot in snapshots:
        restored = hub.restore(snapshot)
        grandchild = hub.post(f'/v1/sandboxes/{restored}/fork')['id']
        assert [hub.sh(one, tell) for one in (restored, grandchild)] == [told, told]
        assert hub.sh(restored, 'test -e /tmp/later || echo none') == 'none\n'
    hub.post(f'/v1/sandboxes/{source}/stop')
    hub.post('/v1/resume', sandbox=source)
    assert hub.sh(source, 'cat /tmp/later; rm /tmp/later; ' + tell) == 'later\n' + told
    clean(hub)


def test_from_root_to_a_user_and_back(hubs):
    """Each has the files as its own, by contents and modes."""
    if len(hubs) < 2:
        pytest.skip('there is one identity only')
    source = hubs['root'].create()
    hubs['root'].sh(source, 'cd /workspace; ' + MAKE + 'rm -f pipe .wh.d')
    told = hubs['root'].sh(source, TELL)
    data = export(hubs['root'], hubs['root'].take(source))
    for hub in (hubs['user'], hubs['root'], hubs['user']):
        status, view = put(hub, data, '?digest=' + hashlib.sha256(data).hexdigest())
        assert status == 200, view
        restored = hub.restore(view['id'])
        assert hub.sh(restored, TELL) == told and hub.sh(restored,
                                                         'stat -c %u:%g d').strip() == '1000:1000'
        data = export(hub, hub.take(restored))
    for hub in hubs.values():
        clean(hub)


# ---- much of it ----------------------------------------------------------------------------------

class Peaks(threading.Thread):
    """The most that each program outside of the sandboxes below a hub has resident while this runs,
    by its name."""

    def __init__(self, hub):
        super().__init__(daemon=True)
        self.hub, self.over, self.found = hub, threading.Event(), {}
        for pid in self.pids():
            try:
                with open(f'/proc/{pid}/clear_refs', 'w', encoding='ascii') as f:
                    f.write('5')  # from here on
            except OSError:
                pass
        self.start()

    def pids(self):
        return [self.hub.proc.pid, *host.below(self.hub.proc.pid)]

    def look(self, pid):
        with open(f'/proc/{pid}/status', encoding='utf-8', errors='replace') as f:
            row = dict(line.split(':', 1) for line in f)
        name, size = row['Name'].strip(), int(row.get('VmHWM', '0').split()[0]) * 1024
        if len(row['NSpid'].split()) == 1:
            self.found[name] = max(size, self.found.get(name, 0))

    def run(self):
        while not self.over.wait(0.02):
            for pid in self.pids():
                try:
                    self.look(pid)
                except (OSError, KeyError):
                    pass

    def end(self):
        self.over.set()
        self.join()
        return self.found


MIB = 1 << 20
MANY = soak(100_000)


def test_very_many_files(hubs):
    """In memory that does not depend on how many they are."""
    hub = hubs['root' if 'root' in hubs else 'user']
    source = hub.create(limits={'disk_mb': 1024, 'memory_mb': 2048})
    hub.sh(source, f'for d in $(seq {MANY // 1000}); do mkdir -p many/$d; (cd many/$d && '
           'seq 1000 | split -l 1 -a 3); done')
    tell = 'find many -type f | wc -l; tar --sort=name -cf - many | sha256sum'
    told = hub.sh(source, tell)
    assert told.startswith(f'{MANY}\n')
    peaks, times = Peaks(hub), [time.monotonic()]
    snapshot = hub.take(source)
    times.append(time.monotonic())
    restored = hub.restore(snapshot)
    times.append(time.monotonic())
    found = peaks.end()
    assert hub.sh(restored, tell) == told
    assert 'holt-warden' in found and 'holt-pack' in found, found
    print(f'taken in {times[1] - times[0]:.2f} s, restored in {times[2] - times[1]:.2f} s; at most '
          + ', '.join(f'{name} {size // 1024} KiB' for name, size in found.items()))
    sanitized = any(key.endswith('SAN_OPTIONS') for key in os.environ)
    assert found['holt-warden'] < 16 * MIB and (sanitized or max(found.values()) < 48 * MIB), found
    clean(hub)


# ---- of strangers --------------------------------------------------------------------------------

def zstd(data):
    return subprocess.run(['zstd', '-q', '-c'], input=data, stdout=subprocess.PIPE,
                          check=True).stdout


def meta(disk, **more):
    return json.dumps({'version': 1, 'template': 'host', 'base': '', 'memory': 2 * disk,
                       'disk': disk, 'pids': 100, 'cpu_milli': 1000, **more},
                      separators=(',', ':')).encode()


def head(name, size, kind=tarfile.REGTYPE, link=''):
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, link
    return info.tobuf(tarfile.GNU_FORMAT)


def begin(disk, **more):
    text = (meta(64 * MIB).replace(b'"disk":67108864', b'"disk" : 67108864') if disk is None
            else meta(disk, **more))
    return head('.wh..wh.holt', len(text)) + text + bytes(-len(text) % 512)


def bomb(size, disk):
    """A file of zeros, some thousand times smaller than what is in it."""
    piece = zstd(bytes(64 * MIB))
    return (zstd(begin(disk) + head('workspace/zeros', size)) + piece * (size // (64 * MIB))
            + zstd(bytes(1024)))


def test_of_strangers(hubs):
    """Whatever it is, it is refused by name, in bounded memory, and nothing of it stays."""
    if not shutil.which('zstd'):
        pytest.skip('zstd is not installed: scripts/deps test')
    hub = hubs['root' if 'root' in hubs else 'user']
    fine = begin(64 * MIB) + head('workspace/f', 2) + b'x\n'.ljust(512, b'\0') + bytes(1024)
    status, view = put(hub, zstd(fine))
    assert status == 200 and hub.sh(hub.restore(view['id']), 'cat f') == 'x\n', view
    clean(hub)
    bad = {
        'ten gigabytes of zeros': bomb(10 << 30, 64 * MIB),
        'two gigabytes, said in another way': bomb(2 << 30, None),
        'nothing that says what it is': zstd(fine[len(begin(64 * MIB)):]),
        'limits beyond': zstd(begin(1 << 60) + bytes(1024)),
        'no limits': zstd(begin(0) + bytes(1024)),
        'another image by no digest': zstd(begin(64 * MIB, base='../../x') + bytes(1024)),
        'a member that is not known': zstd(begin(64 * MIB, more=1) + bytes(1024)),
        'a device': zstd(begin(64 * MIB) + head('workspace/d', 0, tarfile.CHRTYPE) + bytes(1024)),
        'no tar': zstd(os.urandom(100_000)), 'no zstd': fine, 'twice zstd': zstd(zstd(fine)),
        'nothing': b'', 'no end': zstd(fine[:-1024]), 'half a file': zstd(fine[:-1400]),
    }
    peaks = Peaks(hub)
    for what, data in bad.items():
        status, answer = put(hub, data)
        code = (413, 'body_too_large') if 'gigabytes' in what else (400, 'invalid_input')
        assert (status, answer['error']['code']) == code, (what, answer)
        assert hub.snapshots() == set() and hub.on_disk() == set() and hub.half() == [], what
    found = peaks.end()
    sanitized = any(key.endswith('SAN_OPTIONS') for key in os.environ)
    assert sanitized or max(found.values()) < 48 * MIB, found
    # One bit anywhere; the digest of another; and what is fine, but not below its folder.
    good = zstd(fine)
    for at in range(0, len(good), max(1, len(good) // 24)):
        changed = bytearray(good)
        changed[at] ^= 0x10
        status, answer = put(hub, bytes(changed), '?digest=' + hashlib.sha256(good).hexdigest())
        assert (status, answer['error']['code']) == (400, 'invalid_input'), (at, answer)
    for name, kind, link in (('../out', tarfile.REGTYPE, ''), ('/proc/1/x', tarfile.REGTYPE, ''),
                             ('workspace/h', tarfile.LNKTYPE, '../../etc/passwd')):
        status, view = put(hub, zstd(begin(64 * MIB) + head(name, 0, kind, link) + bytes(1024)))
        if status == 200:  # whoever restores it is told
            assert code_of(hub.restore, view['id'])[0] in (400, 403, 404), name
            hub.call('DELETE', f'/v1/snapshots/{view["id"]}')
        else:
            assert (status, view['error']['code']) == (400, 'invalid_input'), (name, view)
    assert hub.sandboxes() == set()
    clean(hub)
