"""Snapshots over REST: what is kept, what comes back, what a crash leaves, and what an archive that
was changed does. The retentions that need them are here, too."""

import concurrent.futures
import contextlib
import datetime
import fcntl
import hashlib
import json
import os
import random
import signal
import subprocess
import tarfile
import threading
import time

import pytest

import host
import image_files as files
from client import until
from door import Closed, readable
from image_files import entry, folder, symlink
from rest import Failed, Rest

ROUNDS = 6


class Hub(Rest):
    """A hub whose snapshots are looked at from both sides."""

    def __init__(self, who, home, *arguments, **options):
        super().__init__(who, home, '--listen', '127.0.0.1:0', '--socket', 'none', *arguments,
                         **options)
        self.folder = os.path.join(self.env['HOLT_HOME'], 'snapshots')

    def take(self, sandbox, **body):
        return self.post(f'/v1/sandboxes/{sandbox}/snapshots', **body)['id']

    def restore(self, snapshot, **body):
        got = self.post(f'/v1/snapshots/{snapshot}/restore', **body)
        return [s['id'] for s in got['sandboxes']] if 'sandboxes' in got else got['id']

    def sh(self, sandbox, line):
        done = self.exec(sandbox, line)
        assert done['exit_code'] == 0, (done['stdout'], done['stderr'])
        return done['stdout']

    def snapshots(self):
        return {s['id'] for s in self.call('GET', '/v1/snapshots')['snapshots']}

    def on_disk(self):
        return {name.removesuffix('.tar.zst') for name in os.listdir(self.folder)
                if name not in ('new', 'lost')}

    def half(self):
        return os.listdir(os.path.join(self.folder, 'new'))

    def state(self, sandbox):
        return self.call('GET', f'/v1/sandboxes/{sandbox}')['state']

    def sandboxes(self):
        return {s['id'] for s in self.call('GET', '/v1/sandboxes')}

    def crash(self):
        self.proc.kill()
        self.proc.wait()


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    with Hub(me, tmp_path_factory.mktemp('snapshots'), '--pool', '1') as shared:
        yield shared


@pytest.fixture
def begin(me, tmp_path):
    """Starts a hub, again and again in one home."""
    home = os.path.join(tmp_path, 'home')
    started = []

    def start(*arguments):
        started.append(Hub(me, home, '--pool', '0', *arguments))
        return started[-1]
    os.mkdir(home, 0o700)
    yield start
    if started[-1].proc.poll() is None:
        assert started[-1].end() == 0, started[-1].said()
    for one in started:
        one.kill()


def code_of(f, *arguments, **body):
    with pytest.raises(Failed) as failed:
        f(*arguments, **body)
    return failed.value.status, failed.value.code


MAKE = '''set -e
mkdir -p d/deep/er empty; echo one > d/one; echo two > d/deep/er/two
ln d/one d/deep/again; ln -s ../one d/link; ln -s /nowhere gone
head -c 300000 /dev/zero | tr '\\0' x > big; : > nothing; chmod 640 d/one; chmod 1777 empty
touch -d @1000000000 d/deep
mkdir closed; echo in > closed/in; chmod 500 closed; mkfifo pipe; touch .wh.d "a b" 'new
line'
long=$(head -c 200 /dev/zero | tr '\\0' l); mkdir -p $long/$long; echo far > $long/$long/$long
echo home > ~/home; echo tmp > /tmp/tmp
'''
TELL = '''cd /workspace; find . ~ /tmp ! -name '*.tmp' -printf '%y %m %n %s %l %p\\n' | sort
cat d/one d/deep/er/two closed/in l*/l*/l* ~/home /tmp/tmp
stat -c '%Y %n' d/deep; sha256sum big; test d/one -ef d/deep/again && echo linked'''


def test_files_come_back(hub):
    source = hub.create(env={'A': 'kept'}, cwd='/tmp', limits={'disk_mb': 100})
    hub.sh(source, 'cd /workspace; ' + MAKE)
    snapshot = hub.take(source, name='first')
    told = hub.sh(source, f'rm -f /workspace/pipe /workspace/.wh.d; {TELL}')
    view = hub.call('GET', f'/v1/snapshots/{snapshot}')
    assert ((view['name'], view['source'], view['template_id'], view['disk_mb'])
            == ('first', source, 'host', 100))
    path = os.path.join(hub.folder, snapshot + '.tar.zst')
    with open(path, 'rb') as f:
        data = f.read()
    assert (view['bytes'], view['digest']) == (len(data), hashlib.sha256(data).hexdigest())
    assert os.stat(path).st_mode & 0o777 == 0o600
    hub.sh(source, 'rm -rf /workspace/d; echo later > /workspace/later')
    restored = hub.restore(snapshot)
    assert hub.sh(restored, TELL) == told
    assert hub.sh(restored, 'echo $A; pwd; hostname; ls /workspace/later 2>&1 || '
                  'true').split('\n')[:3] == ['kept', '/tmp', 'sandbox']
    shown = hub.call('GET', f'/v1/sandboxes/{restored}')
    assert ((shown['source'], shown['state'], shown['generation'], shown['limits']['disk_mb'])
            == (snapshot, 'running', 1, 100))
    assert hub.sh(source, 'ls /workspace/later') == '/workspace/later\n'  # which went on
    for one in (source, restored):
        hub.delete(one)
    hub.call('DELETE', f'/v1/snapshots/{snapshot}')
    assert code_of(hub.call, 'DELETE', f'/v1/snapshots/{snapshot}') == (404, 'not_found')
    until(lambda: snapshot not in hub.on_disk(), what='its file is gone')


def test_of_a_busy_one(hub):
    """What runs stands still meanwhile, and goes on."""
    source = hub.create()
    hub.sh(source, '(i=0; while :; do i=$((i+1)); echo $i > a; cp a b; sleep 0.01; done) > '
           '/dev/null 2>&1 & '
                   'while ! test -e b; do :; done')
    snapshot = hub.take(source)
    before = int(hub.sh(source, 'cat a') or 0)
    until(lambda: int(hub.sh(source, 'cat a') or 0) > before, what='it goes on')
    restored = hub.restore(snapshot)
    got = hub.sh(restored, 'cat a; echo; cat b').split()
    assert len(got) <= 2 and all(int(n) > 0 for n in got)
    assert hub.call('GET', f'/v1/sandboxes/{restored}/processes')['processes'] == []
    hub.post('/v1/pause', sandbox=source)
    paused = hub.take(source)
    assert hub.state(source) == 'paused'
    for one in (source, restored):
        hub.delete(one)
    for one in (snapshot, paused):
        hub.call('DELETE', f'/v1/snapshots/{one}')


def test_several_at_once_all_or_none(hub):
    source = hub.create()
    hub.sh(source, 'echo x > f')
    snapshot = hub.take(source)
    hub.delete(source)
    made = hub.restore(snapshot, ids=['r-1', 'r-2', 'r-3'])
    assert made == ['r-1', 'r-2', 'r-3'] and len(hub.restore(snapshot, count=2)) == 2
    for one in made:
        assert hub.sh(one, f'cat f; echo {one} > f; cat f') == f'x\n{one}\n'
    before = hub.sandboxes()
    assert code_of(hub.restore, snapshot, ids=['r-4', 'r-2']) == (409, 'conflict')
    assert code_of(hub.restore, snapshot, ids=['r-4', 'r-4']) == (409, 'conflict')
    assert code_of(hub.restore, snapshot, id='r-4', count=2) == (400, 'invalid_input')
    assert code_of(hub.restore, 'none') == (404, 'not_found')
    assert hub.sandboxes() == before
    for one in before:
        hub.delete(one)
    hub.call('DELETE', f'/v1/snapshots/{snapshot}')


def test_once(hub):
    source = hub.create()
    key = {'fields': ['Idempotency-Key: snap', 'Content-Type: application/json',
                      'Content-Length: 2']}

    def post(path):
        with hub.wire() as wire:
            reply = wire.ask(hub.request('POST', path, **key) + '{}', 'POST')
        assert reply.status == 200, reply
        return reply.body
    first = post(f'/v1/sandboxes/{source}/snapshots')
    assert post(f'/v1/sandboxes/{source}/snapshots') == first and len(hub.snapshots()) == 1
    snapshot = hub.snapshots().pop()
    restored = post(f'/v1/snapshots/{snapshot}/restore')
    assert post(f'/v1/snapshots/{snapshot}/restore') == restored
    for one in hub.sandboxes():
        hub.delete(one)
    hub.call('DELETE', f'/v1/snapshots/{snapshot}')


def test_pages_and_time(hub):
    source = hub.create()
    made = [hub.take(source) for _ in range(5)]
    seen, cursor = [], ''
    while cursor is not None:
        page = hub.call('GET', f'/v1/snapshots?limit=2{cursor}')
        assert len(page['snapshots']) <= 2
        seen += [s['id'] for s in page['snapshots']]
        cursor = f'&cursor={page["next_cursor"]}' if 'next_cursor' in page else None
    assert seen == made
    for one in made:
        hub.call('DELETE', f'/v1/snapshots/{one}')
    assert code_of(hub.take, source, ttl_seconds=10**9)[0] == 400
    assert code_of(hub.take, source, name='x' * 100)[0] == 400
    assert code_of(hub.take, 'none') == (404, 'not_found')
    hub.delete(source)
    assert code_of(hub.take, source)[0] == 404


def test_an_archive_that_is_not_what_it_was(begin):
    hub = begin()
    source = hub.create(id='source')
    hub.sh(source, 'head -c 2000000 /dev/urandom > f')
    snapshot = hub.take(source)
    path = os.path.join(hub.folder, snapshot + '.tar.zst')
    with open(path, 'r+b') as f:
        f.seek(1500000)
        was = f.read(1)
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([was[0] ^ 1]))
    assert code_of(hub.restore, snapshot) == (400, 'invalid_input')
    assert hub.sandboxes() == {source}
    os.truncate(path, 1000)
    assert code_of(hub.restore, snapshot) == (500, 'internal')
    with (open(os.path.join(hub.folder, 'x.tar.zst'), 'wb'),
          open(os.path.join(hub.folder, 'new', 'y'), 'wb')):
        pass
    hub.crash()
    hub = begin()
    assert hub.snapshots() == {snapshot} == hub.on_disk() and hub.half() == []
    assert f'{snapshot}.tar.zst' in hub.said()
    assert code_of(hub.restore, snapshot) == (500, 'internal')


def test_an_archive_that_can_not_be_read_now(begin):
    """At a start with trouble nothing is removed, and what is gone may come back."""
    hub = begin()
    source = hub.create(id='source')
    hub.sh(source, 'echo kept > f')
    kept, gone = hub.take(source), hub.take(source)
    path = os.path.join(hub.folder, kept + '.tar.zst')
    hub.delete(source)  # whose files the hub's end would keep, too
    assert hub.end() == 0
    os.unlink(os.path.join(hub.folder, gone + '.tar.zst'))
    with open(path, 'rb') as held:  # by a lease: whoever opens it is told to try again
        fcntl.fcntl(held, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        hub = begin()
        assert hub.snapshots() == {kept, gone} and hub.on_disk() == {kept}
    restored = hub.restore(kept)
    assert hub.sh(restored, 'cat f') == 'kept\n'
    hub.delete(restored)


def test_a_disk_that_is_full(hub):
    """The sandbox's is told apart from the hub's."""
    source = hub.create(limits={'disk_mb': 20})
    hub.sh(source, 'head -c 15000000 /dev/urandom > f')
    snapshot = hub.take(source)
    hub.sh(source, 'rm f; truncate -s 200G f')
    status, code = code_of(hub.take, source)
    assert (status, code) == (413, 'body_too_large')
    hub.delete(source)
    hub.call('DELETE', f'/v1/snapshots/{snapshot}')


def test_out_and_in_again(hub, me, tmp_path):
    """By the command line; what was changed on the way is refused, and nothing of it stays."""
    source = hub.create(limits={'disk_mb': 99})
    hub.sh(source, 'head -c 3000000 /dev/urandom > f')
    digest = hub.sh(source, 'sha256sum f')
    snapshot = hub.take(source)
    with hub.wire() as wire:
        packed = wire.ask(hub.request('GET', f'/v1/snapshots/{snapshot}/export'), 'GET')
    assert (packed.status, packed.get('Content-Type')) == (200, 'application/zstd')
    hub.call('DELETE', f'/v1/snapshots/{snapshot}')

    def put(data, query=''):
        head = hub.request('POST', '/v1/snapshots' + query,
                           fields=['Content-Type: application/zstd',
                                   f'Content-Length: {len(data)}'])
        with hub.wire() as wire:
            reply = wire.ask(head.encode() + data, 'POST')
        return reply.status, json.loads(reply.body)
    told = hashlib.sha256(packed.body).hexdigest()
    status, view = put(packed.body, f'?name=again&digest={told}')
    assert (status == 200 and view['digest'] == told and view['name'] == 'again'
            and 'source' not in view), view
    restored = hub.restore(view['id'])
    assert hub.sh(restored, 'sha256sum f') == digest
    assert hub.call('GET', f'/v1/sandboxes/{restored}')['limits']['disk_mb'] == 99
    before = hub.snapshots()
    wrong = bytearray(packed.body)
    wrong[len(wrong) // 2] ^= 1
    for data in (bytes(wrong), packed.body[:-1], packed.body[:100000], b'', b'x' * 5000,
                 packed.body + packed.body):
        status, answer = put(data, f'?digest={told}')
        assert (status, answer['error']['code']) == (400, 'invalid_input'), (len(data), answer)
    assert put(packed.body[:-5])[0] == 400 and put(b'(\xb5/\xfd' + b'x' * 5000)[0] == 400
    assert (put(packed.body, '?digest=' + '0' * 64)[0] == 400 and put(packed.body, '?digest=x')[0]
            == 400)
    assert hub.snapshots() == before and hub.half() == []
    files = hub.on_disk()
    with hub.wire() as wire:  # who goes away has not said that this was all
        wire.send(hub.request('POST', '/v1/snapshots', fields=['Content-Type: application/zstd',
                                                               'Content-Length: '
                                                               f'{len(packed.body) + 1}']).encode()
                  + packed.body)
        until(lambda: hub.half() != [], what='an import')
    until(lambda: hub.half() == [] and hub.on_disk() == files, what='nothing of an import')
    assert hub.snapshots() == before
    for one in (source, restored):
        hub.delete(one)
    hub.call('DELETE', f'/v1/snapshots/{view["id"]}')


def test_who_goes_away_gets_none(hub):
    source = hub.create()
    hub.sh(source, 'head -c 60000000 /dev/urandom > f')
    before, files = hub.snapshots(), hub.on_disk()

    def left():
        """Whether that was before it was whole."""
        with hub.wire() as wire:
            wire.send(hub.request('POST', f'/v1/sandboxes/{source}/snapshots', body='{}'))
            until(lambda: hub.half() or readable(wire.sock), what='a snapshot')
            if not readable(wire.sock):
                return True
            whole = json.loads(wire.reply('POST').body)['id']
        hub.call('DELETE', f'/v1/snapshots/{whole}')
        return False
    until(left, what='half a snapshot')
    until(lambda: hub.half() == [] and hub.on_disk() == files, what='nothing of a snapshot')
    assert hub.snapshots() == before
    hub.delete(source)


# ---- images --------------------------------------------------------------------------------------

NAMES = ('rm', 'mkdir', 'mv', 'cp', 'chmod', 'find', 'sort')
LAYER = [*[symlink('bin/' + n, 'busybox') for n in NAMES], folder('t'), folder('t/d'),
         entry('t/d/keep', b'keep'), entry('t/d/gone', b'gone'), folder('t/d/sub'),
         entry('t/d/sub/x', b'x'), folder('t/o'), entry('t/o/old', b'old'), folder('t/m'), entry(
             't/m/in', b'in'), entry('t/file', b'file'), folder('t/swap'), entry('t/swap/x', b'x'),
         symlink('t/link', 'file')]


@pytest.fixture(scope='module')
def image(hub, me, tmp_path_factory):
    path = str(tmp_path_factory.mktemp('image') / 'layout')
    done = me.run('images', 'import', files.layout(path, files.busybox_layer(*LAYER), run={}),
                  'marks', env=hub.env)
    assert done.returncode == 0, done.stderr
    try:
        hub.delete(hub.create(template='marks'))
    except Failed as failed:
        if failed.code == 'unsupported':
            pytest.skip('images take whole overlays')
        raise
    yield 'marks'


@pytest.mark.parametrize('kept', ('stopped', 'a snapshot'))
@pytest.mark.parametrize('alive', (True, False), ids=('beside a hub', 'without a hub'))
def test_images_of_what_is_kept_stay(begin, me, tmp_path, kept, alive):
    """Nothing runs on the image any more, and its name is another's by now."""
    hub = begin()

    def images(*words):
        return me.run('images', *words, env=hub.env)
    for n, more in enumerate(((), LAYER)):
        files.layout(f'{tmp_path}/{n}', files.busybox_layer(*more), run={})
    assert images('import', f'{tmp_path}/0', 'tiny').returncode == 0
    digest = json.loads(images('inspect', 'tiny', '-o', 'json').stdout)['image']['digest']
    try:
        hub.create(id='s', template='tiny')
    except Failed as failed:
        assert failed.code == 'unsupported', failed.error
        pytest.skip('images take whole overlays')
    hub.sh('s', 'echo own > /own')
    if kept == 'stopped':
        hub.post('/v1/sandboxes/s/stop')
    else:
        snapshot = hub.take('s')
        hub.delete('s')
    if not alive:
        assert hub.end() == 0
    refused = images('rm', digest)
    assert refused.returncode == 125 and b'use image' in refused.stderr, refused
    assert images('import', f'{tmp_path}/1', 'tiny').returncode == 0
    assert json.loads(images('prune', '-o', 'json').stdout)['in_use'] == 1
    if not alive:
        hub = begin()
    if kept == 'stopped':
        hub.post('/v1/resume', sandbox='s')
    else:
        hub.restore(snapshot, id='s')
        hub.call('DELETE', f'/v1/snapshots/{snapshot}')
    assert hub.sh('s', 'cat /own') == 'own\n'
    hub.delete('s')
    until(lambda: json.loads(images('prune', '-o', 'json').stdout)['images'] == 1,
          what='nobody needs it')


CHANGE = '''set -e; cd /t; rm d/gone; rm -r d/sub; rm -r o; mkdir o; echo new > o/new
rm -r swap; echo file > swap; rm file; mkdir file
echo x > file/in; echo more >> d/keep; mv m moved 2>/dev/null || { cp -r m moved; rm -r m; }
rm link; mkdir added; echo y > added/y; chmod 700 d'''
SHOW = '''cd /t; find /bin d o m moved file swap link added 2>/dev/null | sort |
while read f; do stat -c '%F %a %n' $f; done; cat d/keep o/new file/in swap moved/in'''


def test_what_an_image_had_is_gone(hub, image):
    source = hub.create(template=image)
    before = hub.call('GET', f'/v1/sandboxes/{source}/diff')
    assert before == {'changes': [], 'truncated': False}
    hub.sh(source, CHANGE)
    shown = hub.sh(source, SHOW)
    diff = {(c['path'], c['change'])
            for c in hub.call('GET', f'/v1/sandboxes/{source}/diff')['changes']}
    assert {(path.removeprefix('/t/'), change) for path, change in diff} == {
        ('d', 'changed'), ('d/gone', 'removed'), ('d/keep', 'changed'), ('d/sub', 'removed'),
        ('o/new', 'added'), ('o/old', 'removed'), ('swap', 'removed'), ('swap', 'added'),
        ('file', 'removed'), ('file', 'added'), ('file/in', 'added'), ('m', 'removed'),
        ('moved', 'added'), ('moved/in', 'added'), ('link', 'removed'), ('added', 'added'),
        ('added/y', 'added')}
    child = hub.post(f'/v1/sandboxes/{source}/fork')['id']  # what was changed is then in two layers
    hub.sh(child, 'rm /t/o/new; echo again > /t/o/new')
    snapshots = [hub.take(source), hub.take(child)]
    restored = [hub.restore(s) for s in snapshots]
    assert hub.sh(restored[0], SHOW) == shown
    assert hub.sh(restored[1], SHOW) == shown.replace('new\nx\nfile\n', 'again\nx\nfile\n')
    again = hub.call('GET', f'/v1/sandboxes/{restored[0]}/diff')['changes']
    assert {(c['path'], c['change']) for c in again} == diff
    for one in (source, child, *restored):
        hub.delete(one)
    for one in snapshots:
        hub.call('DELETE', f'/v1/snapshots/{one}')


def test_diff_of_the_host(hub):
    source = hub.create()
    assert hub.call('GET', f'/v1/sandboxes/{source}/diff') == {'changes': [], 'truncated': False}
    hub.sh(source, 'mkdir d; echo x > d/f; ln -s f d/l; echo y > /tmp/t; touch ".wh.x"')
    got = hub.call('GET', f'/v1/sandboxes/{source}/diff')['changes']
    assert [(c['change'], c['type'], c['path']) for c in got] == [
        ('added', 'file', '/tmp/t'), ('added', 'file', '/workspace/.wh.x'),
        ('added', 'directory', '/workspace/d'),
        ('added', 'file', '/workspace/d/f'), ('added', 'symlink', '/workspace/d/l')]
    assert code_of(hub.call, 'GET', '/v1/sandboxes/none/diff') == (404, 'not_found')
    hub.delete(source)


def test_diffs_at_once(hub):
    """Each has all that was there when it was asked for."""
    source = hub.create()
    hub.sh(source, 'i=0; while [ $i -lt 3000 ]; do : > f$i; i=$((i+1)); done')

    def look(who):
        for turn in range(4):
            hub.post('/v1/files/write', sandbox=source, path=f'{who}-{turn}', content='')
            got = hub.call('GET', f'/v1/sandboxes/{source}/diff')['changes']
            names = [c['path'] for c in got]
            assert (names == sorted(names) and f'/workspace/{who}-{turn}' in names
                    and len(names) > 3000)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(look, 'abcdefgh'))
    hub.delete(source)


def test_what_is_in_the_archive(hub, tmp_path):
    """Others can read it: a layer of OCI's, with what it is in front."""
    zstd = subprocess.run(['sh', '-c', 'command -v zstd'],
                          stdout=subprocess.PIPE).stdout.decode().strip()
    if not zstd:
        pytest.skip('zstd is missing')
    source = hub.create()
    hub.sh(source, 'echo hello > f; mkdir d; mkfifo p')
    snapshot = hub.take(source)
    plain = tmp_path / 'plain.tar'
    with open(plain, 'wb') as f:
        subprocess.run([zstd, '-dc', os.path.join(hub.folder, snapshot + '.tar.zst')], stdout=f,
                       check=True)
    with tarfile.open(plain) as tar:
        names = tar.getnames()
        assert (names[0] == '.wh..wh.holt'
                and b'"template":"host"' in tar.extractfile(names[0]).read())
        assert tar.extractfile('workspace/f').read() == b'hello\n'
        assert 'workspace/d' in names and not any('etc' in n.split('/') or n.endswith('/p')
                                                  for n in names), names
    hub.delete(source)
    hub.call('DELETE', f'/v1/snapshots/{snapshot}')


# ---- stopped -------------------------------------------------------------------------------------

def test_stopped_and_started_again(begin):
    hub = begin()
    source = hub.create(id='s', env={'A': 'b'})
    hub.sh(source, 'echo x > f; sleep 1000 > /dev/null 2>&1 &')
    assert hub.post('/v1/sandboxes/s/stop')['state'] == 'stopped'
    assert hub.post('/v1/sandboxes/s/stop')['state'] == 'stopped'  # as it is
    assert code_of(hub.exec, 's', 'true') == (409, 'conflict')
    assert code_of(hub.create, id='s') == (409, 'conflict')
    assert hub.snapshots() == set() and len(hub.on_disk()) == 1  # its own
    hub.crash()
    hub = begin()
    assert hub.state('s') == 'stopped'
    assert hub.end() == 0
    hub = begin()
    assert hub.state('s') == 'stopped'
    hub.post('/v1/resume', sandbox='s')
    shown = hub.call('GET', '/v1/sandboxes/s')
    assert (shown['state'], shown['generation']) == ('running', 2)
    assert hub.sh('s', 'cat f; echo $A') == 'x\nb\n'
    assert len(hub.on_disk()) == 1  # until its next stop
    assert hub.call('GET', '/v1/sandboxes/s/processes')['processes'] == []
    hub.post('/v1/pause', sandbox='s')
    assert hub.post('/v1/sandboxes/s/stop', cold=True)['state'] == 'cold'
    until(lambda: len(hub.on_disk()) == 1, what='the one before is gone')
    hub.crash()
    hub = begin()
    hub.post('/v1/resume', sandbox='s')
    assert hub.call('GET', '/v1/sandboxes/s')['generation'] == 3 and hub.sh('s', 'cat f') == 'x\n'
    hub.post('/v1/sandboxes/s/stop')
    hub.delete('s')
    until(lambda: hub.on_disk() == set(), what='what was kept is gone with it')
    assert hub.call('GET', '/v1/sandboxes/s')['state'] == 'terminated'


def test_a_hub_that_is_told_to_end_meanwhile(begin):
    """Whatever is under way ends soon, and nothing of it stays. The sandbox does."""
    hub = begin()
    hub.create(id='s', limits={'disk_mb': 300, 'memory_mb': 600})
    hub.sh('s', 'head -c 150000000 /dev/urandom > f')

    def take():
        try:
            hub.take('s')
        except (Failed, OSError, Closed, EOFError):
            pass
    worker = threading.Thread(target=take, daemon=True)
    worker.start()
    until(lambda: hub.half() or hub.on_disk(), what='it has begun')
    assert hub.end() == 0, hub.said()
    worker.join(60)
    assert not worker.is_alive()
    hub = begin()
    assert hub.half() == []
    assert hub.sh('s', 'stat -c %s f') == '150000000\n'
    hub.delete('s')
    until(lambda: hub.on_disk() == hub.snapshots(), what='its archive is removed')


def test_retention(begin):
    hub = begin()
    for retention in ('snapshot', 'stop', 'cold'):
        hub.create(id=retention, retention=retention)
        hub.sh(retention, f'echo {retention} > f')
        hub.post('/v1/set_timeout', sandbox=retention, timeout_seconds=1)
    until(lambda: (hub.state('snapshot'), hub.state('stop'), hub.state('cold'))
          == ('terminated', 'stopped', 'cold'),
          what='what they say is done')
    assert 'time to live' in hub.call('GET', '/v1/sandboxes/stop')['cause']
    kept, = hub.snapshots()
    restored = hub.restore(kept)
    assert hub.sh(restored, 'cat f') == 'snapshot\n'
    for one in ('stop', 'cold'):
        hub.post('/v1/resume', sandbox=one)
        assert hub.sh(one, 'cat f') == one + '\n'


def test_what_can_not_be_kept_stands_still(begin):
    """Past its time it does not run on, and nothing of it is lost."""
    hub = begin()
    hub.create(id='huge', retention='stop')
    hub.sh('huge', 'echo mine > f; truncate -s 200G hole')
    hub.post('/v1/set_timeout', sandbox='huge', timeout_seconds=1)
    until(lambda: hub.state('huge') == 'paused', what='it is paused')
    assert 'reap_failed' in {v['kind'] for v in hub.call('GET', '/v1/events')['events']}
    hub.post('/v1/set_timeout', sandbox='huge', timeout_seconds=600)
    until(lambda: hub.asked('POST', '/v1/resume', {'sandbox': 'huge'})[0] == 200,
          what='what its deadline began has ended')
    hub.sh('huge', 'rm hole')
    hub.post('/v1/set_timeout', sandbox='huge', timeout_seconds=1)
    until(lambda: hub.state('huge') == 'stopped', what='its files are kept')
    hub.post('/v1/resume', sandbox='huge')
    assert hub.sh('huge', 'cat f') == 'mine\n'


def test_a_hub_that_ends_keeps_what_its_deadline_could_not(begin):
    """It is tried less and less often, and the end of the hub waits for a try that is under way."""
    hub = begin()
    tries = lambda: [v['kind'] for v in hub.call('GET', '/v1/events?limit=1000')['events']].count(
        'reap_failed')
    hub.create(id='huge', retention='stop')
    hub.sh('huge', 'echo mine > f; truncate -s 200G hole')
    hub.post('/v1/set_timeout', sandbox='huge', timeout_seconds=1)
    began = time.monotonic()
    until(lambda: tries() >= 2, what='it is tried again')
    assert tries() <= 2 + time.monotonic() - began
    hub.proc.terminate()
    hub.proc.wait(60)
    hub = begin()
    assert hub.state('huge') in ('paused', 'running')
    hub.post('/v1/set_timeout', sandbox='huge', timeout_seconds=600)
    until(lambda: hub.asked('POST', '/v1/resume', {'sandbox': 'huge'})[0] == 200,
          what='what its deadline began has ended')
    assert hub.sh('huge', 'rm hole; cat f') == 'mine\n'


def test_a_machine_that_crashes_leaves_what_was_kept(begin):
    hub = begin()
    for name in ('kept', 'lost', 'again'):
        hub.create(id=name, retention='stop')
        hub.sh(name, 'echo x > f')
    hub.post('/v1/sandboxes/kept/stop')
    hub.post('/v1/sandboxes/again/stop')
    assert hub.post('/v1/resume', sandbox='again') == {'status': 'running'}
    hub.sh('again', 'echo y > f')
    snapshot = hub.take('lost')
    warden = host.program(hub.proc.pid, 'holt-warden')
    hub.crash()
    os.kill(warden, 9)
    hub = begin()
    assert (hub.state('kept'), hub.state('lost')) == ('stopped', 'lost')
    assert code_of(hub.exec, 'lost', 'true') == (410, 'sandbox_lost')
    assert hub.sh(hub.restore(snapshot), 'cat f') == 'x\n'
    assert hub.post('/v1/resume', sandbox='kept') == {'status': 'running'}
    assert hub.sh('kept', 'cat f') == 'x\n'
    # One that has older files than it had says so.
    cause = hub.call('GET', '/v1/sandboxes/again')['cause']
    assert cause.endswith('its files are those of its last stop')
    assert hub.post('/v1/resume', sandbox='again') == {'status': 'running', 'cause': cause}
    assert hub.sh('again', 'cat f') == 'x\n'
    assert hub.call('GET', '/v1/sandboxes/again')['cause'] == cause
    hub.post('/v1/sandboxes/again/stop')
    assert hub.post('/v1/resume', sandbox='again') == {'status': 'running'}


# ---- kill -9 -------------------------------------------------------------------------------------

def pid_of(hub, name):
    """One of the processes that a snapshot of the only sandbox takes."""
    warden = host.warden_of(hub.home)
    if name == 'holt-warden':
        return warden
    found = [p.pid for p in host.below(hub.proc.pid).values()
             if p.comm == name and (name != 'holt-init' or host.inside_pid(p.pid) == 1)]
    return found[0] if found else None


@pytest.mark.parametrize('victim', ['holt-init', 'holt-warden', 'holt-pack'])
def test_who_dies_in_the_middle(begin, victim):
    """Of those that the hub needs for it: it is told what failed, and nothing half made stays."""
    hub = begin()
    hub.create(id='s', limits={'disk_mb': 120, 'memory_mb': 300})
    hub.sh('s', 'head -c 80000000 /dev/urandom > f')
    others = {name: pid_of(hub, name) for name in ('holt-init', 'holt-warden')}
    said, stopped = [], []

    def take():
        while not stopped:  # once more where it was too quick to be stopped
            try:
                said.append(hub.take('s'))
            except Failed as failed:
                said.append(failed.code)

    def stop():
        pid = hub.half() and pid_of(hub, 'holt-pack')
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                stopped.append(pid)
        return stopped
    worker = threading.Thread(target=take)
    worker.start()
    packer, = until(stop, what='it has begun')
    os.kill(others.get(victim, packer), 9)
    if victim != 'holt-pack':
        os.kill(packer, signal.SIGCONT)
    worker.join(60)
    codes = {'holt-init': {'sandbox_lost', 'not_found'},
             'holt-warden': {'sandbox_lost', 'unavailable', 'not_found'}, 'holt-pack': {'internal'}}
    assert said[-1] in codes[victim] | hub.snapshots(), said
    assert hub.half() == [] and hub.on_disk() == hub.snapshots()
    if victim == 'holt-pack':
        assert hub.restore(hub.take('s')) and hub.sh('s', 'stat -c %s f') == '80000000\n'
    else:
        assert code_of(hub.exec, 's', 'true')[1] in ('sandbox_lost', 'not_found')
    until(lambda: hub.asked('POST', '/v1/sandboxes', {'id': 'new'})[0] == 200, what='another one')
    hub.delete(hub.restore(hub.take('new')))


class Worker(threading.Thread):
    """Takes, restores and deletes until its hub is gone, and knows what it was told."""

    def __init__(self, hub, seed):
        super().__init__(daemon=True)
        self.hub, self.random, self.wrong = hub, random.Random(seed), None
        self.there, self.maybe, self.gone = {}, set(), set()

    def run(self):
        try:
            while True:
                self.step()
        except (OSError, Closed, EOFError):
            pass
        except BaseException as e:  # a test's thread must not end unseen
            self.wrong = e

    def step(self):
        source = self.hub.create()
        text = str(self.random.random())
        self.hub.sh(source, f'echo {text} > f; head -c 3000000 /dev/urandom > big')
        snapshot = self.hub.take(source)
        self.there[snapshot] = text
        restored = self.hub.restore(snapshot)
        assert self.hub.sh(restored, 'cat f') == text + '\n'
        if self.random.random() < 0.5:
            self.maybe.add(snapshot)
            self.hub.call('DELETE', f'/v1/snapshots/{snapshot}')
            self.gone.add(snapshot)
        for one in (source, restored):
            self.hub.delete(one)


def crash(hub, chance):
    """The hub alone, or with all that runs: the archives are nobody's."""
    warden = host.warden_of(hub.home)
    hub.crash()
    if chance.random() < 0.5:
        os.kill(warden, 9)


def test_a_hub_that_is_killed(begin):
    """Nothing acknowledged is lost, nothing that was not is left. Every other round waits for
    something acknowledged."""
    chance, acknowledged, deleted = random.Random(7), 0, 0
    hub = begin()
    for round in range(ROUNDS):
        workers = [Worker(hub, f'{round} {i}') for i in range(2)]
        for w in workers:
            w.start()
        if round % 2:
            until(lambda: any(w.gone if round == 1 else w.there for w in workers)
                  or any(w.wrong for w in workers), timeout=60,
                  what='a snapshot, or the end of one, that is acknowledged')
        threading.Event().wait(chance.random() / 2)
        crash(hub, chance)
        for w in workers:
            w.join(60)
            assert not w.is_alive() and w.wrong is None, w.wrong
        hub = begin()
        there = {snapshot: text for w in workers for snapshot, text in w.there.items()}
        gone = set().union(*(w.gone for w in workers))
        maybe = set().union(*(w.maybe for w in workers)) - gone
        acknowledged, deleted = acknowledged + len(there), deleted + len(gone)
        now = hub.snapshots()
        assert now >= set(there) - gone - maybe and not now & gone
        assert hub.on_disk() == now and hub.half() == []
        for snapshot in set(there) & now:
            one = hub.restore(snapshot)
            assert hub.sh(one, 'cat f') == there[snapshot] + '\n'
            hub.call('DELETE', f'/v1/snapshots/{snapshot}')
        for one in hub.sandboxes():
            hub.delete(one)
        for one in hub.snapshots():
            hub.call('DELETE', f'/v1/snapshots/{one}')
        until(lambda: hub.on_disk() == set(), what='no file is left')
    assert acknowledged >= ROUNDS // 2 and deleted > 0


def is_there(call, *arguments):
    try:
        call(*arguments)
    except Failed as e:
        assert e.status == 404, e
        return False
    return True


def test_what_is_kept_goes_when_its_time_is_over(hub):
    """A snapshot, and a stopped sandbox: no answer after expires_at has it."""
    box = hub.create()
    snapshot = hub.take(box, ttl_seconds=2)
    made = hub.post('/v1/run', command=['true'], state={'retention': 'stop'}, ttl_seconds=2)
    stopped = made['sandbox_id']
    gone = hub.call('GET', f'/v1/sandboxes/{stopped}')['deadline_unix']
    expires = hub.call('GET', f'/v1/snapshots/{snapshot}')['expires_at']
    over = datetime.datetime.fromisoformat(expires.replace('Z', '+00:00')).timestamp()
    asks = {
        'the list': (over, lambda: snapshot in hub.snapshots()),
        'a look': (over, lambda: is_there(hub.call, 'GET', f'/v1/snapshots/{snapshot}')),
        'a list of sandboxes': (gone, lambda: stopped in {
            s['id'] for s in hub.call('GET', '/v1/sandboxes')}),
        'its state': (gone, lambda: hub.state(stopped) == 'stopped'),
    }
    late = {}

    def look():
        for name, (end, is_there) in asks.items():
            began = time.time()
            if is_there() and began > end:
                late[name] = began - end
        return time.time() > max(over, gone) + 0.5

    until(look, what='the end of their time')
    assert not late
    assert code_of(hub.post, '/v1/resume', sandbox=stopped)[0] in (404, 410)
    until(lambda: not hub.on_disk(), what='their files to go')
    hub.delete(box)
