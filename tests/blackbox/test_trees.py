"""Trees of files as tar archives: /v1/sandboxes/{id}/archive, Connect's Archive, Upload and Watch,
and holt cp. The other side is never ours: Python's tarfile, GNU tar and bsdtar."""

import base64
import contextlib
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile

import pytest

from client import until
from door import Closed
from rest import Failed, b64, frame, frames, joined, told
from test_hub_cli import FAILED, Hub

GNU, BSD = 'tar', 'bsdtar'
SANITIZED = 'ASAN_OPTIONS' in os.environ
PEERS = [pytest.param(tool, marks=pytest.mark.skipif(not shutil.which(tool), reason=f'{tool} is '
                                                     'missing: scripts/deps test'))
         for tool in (GNU, BSD)]
MAKE = '''mkdir -p t/d/e t/empty && cd t && echo hello > d/f &&
head -c 200000 /dev/urandom > d/e/large && : > none &&
ln -s ../nowhere l && ln d/f hard && chmod 750 d && chmod 444 d/f &&
n=$(printf %0120d 7) && mkdir -p $n/$n && echo deep > $n/$n/f &&
echo x > "$(printf 'sp ace\\n\\303\\244')" && touch -d @1000000000 d/f d/e'''
SUMS = 'cd {} && find . -type f -exec md5sum {{}} + | sort -k2'


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    with Hub(me, tmp_path_factory.mktemp('trees'), '--listen', '127.0.0.1:0',
             '--pool', '2') as shared:
        yield shared


@pytest.fixture
def sb(hub):
    sandbox = hub.create()
    yield sandbox
    hub.delete(sandbox)


@pytest.fixture
def here(tmp_path):
    folder = tmp_path / 'here'
    folder.mkdir()
    return folder


def sh(hub, sandbox, line):
    done = hub.exec(sandbox, line)
    assert done['exit_code'] == 0, done
    return done['stdout']


def url(sandbox, path=None, what='archive'):
    return f'/v1/sandboxes/{sandbox}/{what}' + (f'?path={path}' if path else '')


def download(hub, sandbox, path=None):
    reply = hub.raw('GET', url(sandbox, path))
    assert (reply.status, reply.get('Content-Type')) == (200, 'application/x-tar'), reply
    return reply.body


def upload(hub, sandbox, data, path=None, chunked=False):
    fields = ['Content-Type: application/x-tar', 'Transfer-Encoding: chunked' if chunked
              else f'Content-Length: {len(data)}']
    with hub.wire() as wire:
        wire.send(hub.request('PUT', url(sandbox, path), fields=fields))
        if chunked:
            for at in range(0, len(data), 70001):
                piece = data[at:at + 70001]
                wire.send(b'%x\r\n' % len(piece) + piece + b'\r\n')
            wire.send(b'0\r\n\r\n')
        else:
            wire.send(data)
        reply = wire.reply('PUT')
    answer = json.loads(reply.body)
    if reply.status != 200:
        raise Failed(reply.status, answer['error'])
    return answer


def made(*entries, format=tarfile.PAX_FORMAT):
    """An archive of (name, content or what else it is, more)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=format) as tar:
        for name, what, *more in entries:
            info = tarfile.TarInfo(name)
            info.mode = 0o644
            content = what.encode() if isinstance(what, str) else b''
            info.type = tarfile.REGTYPE if isinstance(what, str) else what
            info.size = len(content)
            for key, value in (more[0] if more else {}).items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


# ---- with others' archives

def test_python_reads_it(hub, sb):
    sh(hub, sb, MAKE)
    with tarfile.open(fileobj=io.BytesIO(download(hub, sb, 't'))) as tar:
        members = {m.name: m for m in tar.getmembers()}
        assert (members['.'].isdir() and members['d'].mode == 0o750 and members['d/f'].mtime
                == 1000000000)
        assert members['l'].issym() and members['l'].linkname == '../nowhere'
        linked = [m for m in members.values() if m.islnk()]
        assert len(linked) == 1 and {linked[0].name, linked[0].linkname} == {'hard', 'd/f'}
        assert {m.uid for m in members.values()} == {0}
        n = '7'.zfill(120)
        assert tar.extractfile(f'{n}/{n}/f').read() == b'deep\n'
        sums = {m.name: hashlib.md5(tar.extractfile(m).read()).hexdigest()
                for m in members.values() if m.isfile()}
    inside = dict(reversed(line.split('  ./', 1))
                  for line in sh(hub, sb, SUMS.format('t')).splitlines() if '\\' not in line)
    assert {name: sums[name] for name in inside if name in sums} == {k: v for k, v in inside.items()
                                                                     if k in sums}
    assert len(set(inside) - set(sums)) <= 1


@pytest.mark.parametrize('tool', PEERS)
def test_a_tool_reads_it(hub, sb, tool, tmp_path):
    sh(hub, sb, MAKE)
    subprocess.run([tool, '-xpf', '-', '-C', tmp_path], input=download(hub, sb, 't'), check=True)
    want = sh(hub, sb, SUMS.format('t'))
    assert subprocess.run(['sh', '-c', SUMS.format(tmp_path)], capture_output=True, text=True,
                          check=True).stdout == want
    assert (os.readlink(tmp_path / 'l') == '../nowhere' and (tmp_path / 'd').stat().st_mode & 0o7777
            == 0o750)
    assert (tmp_path / 'hard').stat().st_ino == (tmp_path / 'd/f').stat().st_ino


@pytest.mark.parametrize('form', ['ustar', 'pax', 'gnu', 'v7', 'oldgnu', 'gnutar'])
@pytest.mark.parametrize('tool', PEERS)
def test_a_tool_writes_it(hub, sb, tool, form, tmp_path):
    if (tool, form) in ((GNU, 'gnutar'), (BSD, 'gnu'), (BSD, 'oldgnu')):
        pytest.skip('it has another name there')
    long = 'n' * (90 if form in ('ustar', 'v7') else 250)
    (tmp_path / 'd').mkdir()
    (tmp_path / 'd' / 'f').write_bytes(os.urandom(100000))
    (tmp_path / 'd' / long).write_text('long')
    (tmp_path / 'l').symlink_to('d/f')
    os.link(tmp_path / 'd/f', tmp_path / 'h')
    data = subprocess.run([tool, f'--format={form}', '-cf', '-', '-C', tmp_path, '.'],
                          capture_output=True, check=True).stdout
    assert upload(hub, sb, data) == {'status': 'ok'}
    assert sh(hub, sb, f'cat d/{long}; readlink l; stat -c %h h') == 'longd/f\n2\n'
    want = hashlib.md5((tmp_path / 'd/f').read_bytes()).hexdigest()
    assert sh(hub, sb, 'md5sum < h').split()[0] == want


@pytest.mark.parametrize('form', [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_python_writes_it(hub, sb, form):
    name = 'x' * 90 + '/' + 'y' * (60 if form == tarfile.USTAR_FORMAT else 200)
    data = made((name, 'content'), ('s', '', {'mode': 0o6755}),
                ('e/', tarfile.DIRTYPE, {'mode': 0o711}), format=form)
    upload(hub, sb, data, chunked=True)
    assert sh(hub, sb, f'cat {name}; stat -c %a s e') == 'content755\n711\n'


def test_git_archives_have_a_global_comment(hub, sb):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT,
                      pax_headers={'comment': '0' * 40}) as tar:
        info = tarfile.TarInfo('f')
        info.size = 1
        tar.addfile(info, io.BytesIO(b'x'))
    upload(hub, sb, out.getvalue())
    assert sh(hub, sb, 'cat f') == 'x'


# ---- what is refused

@pytest.mark.parametrize('entries, status, code', [
    ([('../x', 'x')], 403, 'forbidden'),
    ([('a/../../x', 'x')], 403, 'forbidden'),
    ([('l', tarfile.SYMTYPE, {'linkname': '/tmp'}), ('l/x', 'x')], 403, 'forbidden'),
    ([('h', tarfile.LNKTYPE, {'linkname': '../../etc/hostname'})], 403, 'forbidden'),
    ([('dev', tarfile.CHRTYPE, {'devmajor': 1, 'devminor': 3})], 400, 'invalid_input'),
    ([('pipe', tarfile.FIFOTYPE)], 400, 'invalid_input'),
    ([('there', '')], 400, 'file_failed'),
])
def test_hostile_archives(hub, sb, entries, status, code):
    sh(hub, sb, 'mkdir there; echo kept > kept')
    with pytest.raises(Failed) as caught:
        upload(hub, sb, made(('first', '1'), *entries, ('last', '2')))
    assert (caught.value.status, caught.value.code) == (status, code), caught.value
    assert 'last' not in sh(hub, sb, 'ls')
    assert sh(hub, sb, 'ls /tmp; ls / | grep -x x || true') == ''


def test_what_is_no_archive(hub, sb):
    for data in (b'', b'x' * 5000, made(('f', 'x' * 3000))[:2000], b'\x1f\x8b' + b'\0' * 2000):
        with pytest.raises(Failed) as caught:
            upload(hub, sb, data)
        assert (caught.value.status, caught.value.code) == (400, 'invalid_input'), data[:20]
        assert 'archive' in caught.value.error['cause']


def test_places_that_are_not_there(hub, sb):
    for call in (lambda path: upload(hub, sb, made(), path),
                 lambda path: hub.call('GET', url(sb, path)),
                 lambda path: hub.call('GET', url(sb, path, 'watch'))):
        with pytest.raises(Failed) as caught:
            call('none')
        assert (caught.value.status, caught.value.code) == (404, 'not_found')
        assert caught.value.error['context'] == {'sandbox': sb, 'path': '/workspace/none'}
        with pytest.raises(Failed) as caught:
            call('/proc/self')
        assert caught.value.code == 'file_failed'


def test_a_refused_upload_is_answered_when_it_has_ended(hub, sb):
    """And the connection goes on."""
    data = made(('../x', ''), ('large', 'x' * 3000000))
    with hub.wire() as wire:
        for _ in range(2):
            wire.send(hub.request('PUT', url(sb), fields=[f'Content-Length: {len(data)}']))
            wire.send(data)
            assert wire.reply('PUT').status == 403
        assert json.loads(wire.ask(hub.request('GET', '/v1/health')).body)['status'] == 'ok'


def test_who_waits_for_a_word_is_answered_at_once(hub):
    with hub.wire() as wire:
        wire.send(hub.request('PUT', url('nobody'),
                              fields=['Content-Length: 1000000000', 'Expect: 100-continue']))
        assert wire.reply('PUT').status == 404


# ---- streams

def test_more_than_is_held(hub, sb):
    """200 MB each way through a hub that has no more memory afterwards than before."""
    def resident():
        with open(f'/proc/{hub.proc.pid}/statm', encoding='ascii') as statm:
            return int(statm.read().split()[1]) * os.sysconf('SC_PAGESIZE')
    sh(hub, sb, 'truncate -s 200M f; printf end >> f')
    download(hub, sb)
    most = resident() + ((16 << 20) if not SANITIZED else (1 << 40))  # which keeps what was freed
    data = download(hub, sb)
    assert len(data) > 200 << 20 and resident() < most
    other = hub.create(limits={'memory_mb': 1024, 'disk_mb': 512})
    upload(hub, other, data)
    assert resident() < most
    assert sh(hub, other, 'tail -c 3 f') == 'end'
    hub.delete(other)


def test_a_slow_reader_holds_it(hub, sb):
    sh(hub, sb, 'truncate -s 100M f')
    with hub.wire(receive_buffer=65536) as wire:
        wire.send(hub.request('GET', url(sb)))
        wire.head()
        wire.chunk()
        assert sh(hub, sb, 'echo still here') == 'still here\n'
        n = 0
        while piece := wire.chunk():
            n += len(piece)
    assert n > 99 << 20


def helpers(hub, sandbox):
    return sh(hub, sandbox, 'grep -lx holt-init /proc/[0-9]*/comm 2>/dev/null | grep -vc '
              '/proc/1/comm || true').strip()


def test_clients_that_go_away(hub, sb):
    """Nothing of them stays inside."""
    sh(hub, sb, 'truncate -s 100M f')
    with hub.wire(receive_buffer=65536) as wire:
        wire.send(hub.request('GET', url(sb)))
        wire.head()
        wire.chunk()
        until(lambda: helpers(hub, sb) == '1')
    until(lambda: helpers(hub, sb) == '0', what='the end of a download')
    with hub.wire() as wire:
        wire.send(hub.request('PUT', url(sb), fields=['Content-Length: 10000000']))
        wire.send(made(('up', 'x' * 5000))[:3000])
        until(lambda: helpers(hub, sb) == '1')
    until(lambda: helpers(hub, sb) == '0', what='the end of an upload')
    with hub.wire() as wire:
        wire.send(hub.request('GET', url(sb, what='watch')))
        wire.head()
        assert json.loads(wire.chunk()) == {'kind': 'ready', 'is_dir': False}
    until(lambda: helpers(hub, sb) == '0', what='the end of a watch')


def test_a_failure_in_the_middle_is_seen(hub, sb):
    """What can't be read comes late in the tree; the reply has no end then."""
    sh(hub, sb, 'truncate -s 30M a; mkdir z; echo > z/shut; chmod 0 z/shut')
    names = sh(hub, sb, 'ls -U').split()
    with hub.wire() as wire, pytest.raises(Closed):
        wire.send(hub.request('GET', url(sb)))
        status, _ = wire.head()
        assert status == (200 if names[0] == 'a' else 403)
        if status == 403:
            raise Closed(b'')
        while wire.chunk():
            pass


def test_the_sandbox_ends_in_the_middle(hub):
    sandbox = hub.create()
    sh(hub, sandbox, 'truncate -s 100M f')
    with hub.wire(receive_buffer=65536) as wire:
        wire.send(hub.request('GET', url(sandbox)))
        wire.head()
        hub.delete(sandbox)
        with pytest.raises(Closed):
            while wire.chunk():
                pass


def test_a_file_that_is_replaced_is_read(hub, sb):
    """Also in the moment in which another one takes its place."""
    hub.exec(sb, 'echo x > f; (while :; do echo x > t; mv t f; done) > /dev/null 2>&1 &')
    for _ in range(3000):
        assert hub.post('/v1/files/read', sandbox=sb, path='f')['content'] == 'x\n'


# ---- watch

def test_watch(hub, sb):
    sh(hub, sb, 'mkdir d')
    with hub.wire() as wire:
        wire.send(hub.request('GET', url(sb, 'd&recursive=true', 'watch')))
        assert wire.head()[0] == 200

        def each():
            while piece := wire.chunk():
                yield from (json.loads(line) for line in piece.splitlines())
        seen = each()
        assert next(seen) == {'kind': 'ready', 'is_dir': False}
        sh(hub, sb, 'mkdir d/e')
        events = [next(seen)]  # what is made in a new directory before it is watched is not seen
        sh(hub, sb, 'echo > d/e/f; mv d/e/f d/g; printf x > "$(printf "d/\\377")"; rm -r d')
        events += list(seen)
    kinds = [(e['kind'], e.get('path')) for e in events]
    assert (('created', 'e') in kinds and ('created', 'e/f') in kinds
            and kinds[-1] == ('ended', None))
    moved = [e for e in events if e['kind'].startswith('moved')]
    assert [e['path'] for e in moved] == ['e/f', 'g'] and moved[0]['cookie'] == moved[1]['cookie']
    assert any(e.get('path_base64') == base64.b64encode(b'\xff').decode() for e in events)
    assert ('removed', 'g') in kinds


def test_watches_tell_of_no_temporary_names(hub, sb):
    """A file that is written over the API is created or modified, and nothing else is seen of it;
    nor of a program's file without a name, but of any that has such a name."""
    sh(hub, sb, 'mkdir d; echo > d/old')
    nameless = ('import os; fd = os.open("d", os.O_TMPFILE | os.O_RDWR); os.write(fd, b"x"); '
                'os.link(f"/proc/self/fd/{fd}", "linked", dst_dir_fd=os.open("d", 0))')
    with hub.wire() as wire:
        wire.send(hub.request('GET', url(sb, 'd&recursive=true', 'watch')))
        assert wire.head()[0] == 200

        def each():
            while piece := wire.chunk():
                yield from (json.loads(line) for line in piece.splitlines())
        seen = each()
        assert next(seen)['kind'] == 'ready'
        for path in ('d/old', 'd/new', 'd/sub/new'):
            hub.post('/v1/files/write', sandbox=sb, path=path, content='x')
        sh(hub, sb, f"python3 -c '{nameless}'; echo > 'd/#25'; echo >> 'd/#25'; mv d/new d/moved")
        events = []
        while not events or events[-1]['kind'] != 'moved_to':
            events.append(next(seen))
        sh(hub, sb, 'rm -r d')  # while it was there, '#25' could be told from a file without a name
        events += seen
    kinds = [(e['kind'], e.get('path')) for e in events]
    wanted = {('modified', 'old'), ('created', 'new'), ('created', 'linked'), ('created', '#25'),
              ('modified', '#25'), ('moved_from', 'new'), ('moved_to', 'moved'),
              ('created', 'sub/new')}
    assert wanted <= set(kinds), kinds
    named = {'old', 'new', 'sub', 'sub/new', 'linked', '#25', 'moved', None}
    assert {path for _, path in kinds} == named, kinds
    assert [kind for kind, path in kinds if path == 'new'] == ['created', 'moved_from'], kinds


def test_the_end_of_the_hub_ends_watches(me, tmp_path):
    """As a whole answer, not as a failure."""
    hub = Hub(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0')
    try:
        box, body = hub.create(), frame({})
        with hub.wire() as lines, hub.wire() as messages:
            lines.send(hub.request('GET', url(box, what='watch')))
            fields = ['Content-Type: application/connect+json', f'X-Sandbox-Id: {box}',
                      f'Content-Length: {len(body)}']
            messages.send(hub.request('POST', '/sandbox.v1.Sandbox/Watch', fields=fields).encode()
                          + body)
            assert lines.head()[0] == messages.head()[0] == 200
            first = lines.chunk(), messages.chunk()
            hub.proc.terminate()
            rest = [b''.join(iter(wire.chunk, b'')) for wire in (lines, messages)]
        assert json.loads(first[0] + rest[0]) == {'kind': 'ready', 'is_dir': False}
        assert (list(frames(first[1] + rest[1]))
                == [(0, {'kind': 'ready', 'isDir': False, 'cookie': 0}), (2, {})])
        assert hub.proc.wait(60) == 0
    finally:
        hub.kill()


# ---- Connect

def test_connect(hub, sb):
    sh(hub, sb, MAKE)
    data = joined(hub.stream('Archive', sb, {'path': 't'}), 'data')
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert tar.extractfile('d/f').read() == b'hello\n'
    pieces = [{'chunk': b64(data[at:at + 50000])} for at in range(0, len(data), 50000)]
    other = hub.create()
    assert hub.stream('Upload', other, {'open': {}}, *pieces) == [{'bytesWritten': len(data)}]
    assert sh(hub, other, SUMS.format('.')) == sh(hub, sb, SUMS.format('t'))
    hub.delete(other)
    with pytest.raises(Failed) as caught:
        hub.stream('Archive', sb, {'path': 'none'})
    assert caught.value.error['code'] == 'not_found'
    body = frame({'path': 't'})
    reply = hub.after_first(hub.request('POST', '/sandbox.v1.Sandbox/Watch', fields=[
        'Content-Type: application/connect+json', f'X-Sandbox-Id: {sb}',
        f'Content-Length: {len(body)}']).encode() + body,
        lambda: sh(hub, sb, 'chmod -R u+w t; rm -r t'))
    seen = [message for flags, message in frames(reply.body) if flags == 0]
    assert seen[0]['kind'] == 'ready' and seen[-1]['kind'] == 'ended'


def upload_head(hub, sandbox, *fields):
    return hub.request('POST', '/sandbox.v1.Sandbox/Upload',
                       fields=['Content-Type: application/connect+json', f'X-Sandbox-Id: {sandbox}',
                               *fields]).encode()


def test_connect_uploads_that_are_none(hub, sb):
    """Each is refused when all of it was sent, nothing of it stays, and the connection goes on."""
    opened, archive = frame({'open': {}}), frame({'chunk': b64(made(('f', 'x' * 3000)))})
    bad, large = 'invalid_argument', 'resource_exhausted'
    rows = [
        (b'', bad, 'no message'), (opened[:3], bad, 'not whole'),
        (opened + archive[:-1], bad, 'not whole'),
        (frame({'chunk': ''}), bad, 'the first message has open'),
        (frame({'open': {}, 'chunk': ''}), bad, 'the first message has open'),
        (opened + opened, bad, 'behind the first'), (opened + frame({}), bad, 'behind the first'),
        (opened + frame({'chunk': '?'}), bad, 'chunk'), (opened + b'\1' + archive[
            1:], bad, 'compressed'), (opened + b'\2' + archive[1:], bad, 'flags'),
        (opened + b'\0\xff\xff\xff\xff' + bytes(100000), large, 'send several'),
        (opened + frame({'chunk': b64(bytes(5 << 20))}), large, 'send several'),
        (frame({'open': {'dest': 'none'}}) + archive * 100, 'not_found', 'none'),
        (opened + frame({'chunk': b64(made(('../x', '')))}) + archive * 100, 'permission_denied',
         '..'),
    ]
    with hub.wire() as wire:
        for body, code, cause in rows:
            reply = wire.ask(upload_head(hub, sb, f'Content-Length: {len(body)}') + body, 'POST')
            answer = told(reply)
            assert answer['code'] == code and cause in answer['message'], (body[:100], reply)
        assert wire.ask(hub.request('GET', '/v1/health')).status == 200
    until(lambda: helpers(hub, sb) == '0', what='the end of an upload')


def peak(hub):
    """Bytes of memory that the hub has had at most since it was asked last."""
    with open(f'/proc/{hub.proc.pid}/status', encoding='ascii') as status:
        most = next(int(line.split()[1]) << 10 for line in status if line.startswith('VmHWM'))
    with open(f'/proc/{hub.proc.pid}/clear_refs', 'w', encoding='ascii') as clear:
        clear.write('5')
    return most


def test_connect_uploads_what_nobody_holds(hub):
    """200 MB through a hub that has never more memory than a few messages;
    and then the half of it."""
    info = tarfile.TarInfo('f')
    info.size = 200 << 20
    mib = frame({'chunk': b64(bytes(1 << 20))})
    pieces = [frame({'open': {}}), frame({'chunk': b64(info.tobuf())}), *[mib] * 200,
              frame({'chunk': b64(bytes(1024))})]
    head = upload_head(hub, sandbox := hub.create(limits={'memory_mb': 1024, 'disk_mb': 512}),
                       f'Content-Length: {sum(map(len, pieces))}')
    peak(hub)
    most = peak(hub) + ((16 << 20) if not SANITIZED else (1 << 40))  # which keeps what was freed
    with hub.wire() as wire:
        wire.send(head)
        for piece in pieces:
            wire.send(piece)
        reply = wire.reply('POST')
    assert list(frames(reply.body)) == [(0, {'bytesWritten': 512 + (200 << 20) + 1024}), (2, {})]
    assert peak(hub) < most
    assert sh(hub, sandbox, 'stat -c %s f; rm f') == f'{200 << 20}\n'
    with hub.wire() as wire:
        wire.send(head)
        for piece in pieces[:100]:
            wire.send(piece)
        until(lambda: helpers(hub, sandbox) == '1', what='an upload')
    until(lambda: helpers(hub, sandbox) == '0', what='its end')
    assert peak(hub) < most
    assert int(sh(hub, sandbox, 'stat -c %s * 2>/dev/null || echo 0')) < 200 << 20
    hub.delete(sandbox)


def test_connect_uploads_side_by_side(hub):
    """Each of them between two messages of the largest size:
    none keeps anything of the last one, so all have room."""
    info = tarfile.TarInfo('f')
    info.size = 4 << 20
    pieces = [frame({'open': {}}), frame({'chunk': b64(info.tobuf())}),
              frame({'chunk': b64(bytes(info.size))}), frame({'chunk': b64(bytes(1024))})]
    with contextlib.ExitStack() as stack:
        wires = [(stack.enter_context(hub.wire()), hub.create()) for _ in range(16)]
        for wire, sandbox in wires:
            wire.send(upload_head(hub, sandbox, f'Content-Length: {sum(map(len, pieces))}')
                      + b''.join(pieces[:-1]))
        for wire, sandbox in wires:
            wire.send(pieces[-1])
            assert (list(frames(wire.reply('POST').body))[0]
                    == (0, {'bytesWritten': 512 + info.size + 1024}))
            hub.delete(sandbox)


# ---- holt cp

def tree(here, name='t'):
    top = here / name
    (top / 'd').mkdir(parents=True)
    (top / 'd' / 'f').write_text('hello')
    (top / 'l').symlink_to('d/f')
    for path in (top, top / 'd'):
        path.chmod(0o755)
    return top


def test_cp_up(hub, sb, here):
    tree(here)
    hub.ok('cp', str(here / 't'), f'{sb}:.')
    hub.ok('cp', str(here / 't'), f'{sb}:named')
    hub.ok('cp', f'{here}/t/.', f'{sb}:/workspace/named')
    hub.ok('cp', str(here / 't/d/f'), f'{sb}:file')
    hub.ok('cp', str(here / 't/l'), f'{sb}:/workspace/named/')
    assert sh(hub, sb, 'find . | sort | tr "\\n" " "; cat file named/l; readlink t/l') == (
        '. ./file ./named ./named/d ./named/d/f ./named/l ./t ./t/d ./t/d/f ./t/l hellohellod/f\n')
    hub.fails(FAILED, 'none', 'cp', str(here / 't'), f'{sb}:none/there/x')
    hub.fails(FAILED, 'file', 'cp', str(here / 't'), f'{sb}:file')
    hub.fails(FAILED, 'no directory', 'cp', str(here / 't/d/f'), f'{sb}:new/')
    hub.fails(FAILED, 'none', 'cp', str(here / 'none'), f'{sb}:.')
    hub.fails(FAILED, 'nobody', 'cp', str(here / 't'), 'nobody:.')
    for wrong in (('a', 'b'), (f'{sb}:a', f'{sb}:b'), (f'{sb}:a',)):
        assert hub.run('cp', *wrong).returncode == 2


def test_cp_down(hub, sb, here):
    sh(hub, sb, 'mkdir -p t/d; echo hello > t/d/f; ln -s d/f t/l; chmod 700 t/d; echo one > file; '
       'ln -s file link')
    hub.ok('cp', f'{sb}:t', str(here))
    hub.ok('cp', f'{sb}:t', str(here / 'named'))
    hub.ok('cp', f'{sb}:t/.', str(here / 'named'))
    hub.ok('cp', f'{sb}:file', str(here))
    hub.ok('cp', f'{sb}:/workspace/link', str(here / 'other'))
    assert sorted(str(p.relative_to(here)) for p in here.rglob('*')) == sorted(
        ['t', 't/d', 't/d/f', 't/l', 'named', 'named/d', 'named/d/f', 'named/l', 'file', 'other'])
    assert (here / 'other').read_text() == 'one\n' and os.readlink(here / 'named/l') == 'd/f'
    assert (here / 't/d').stat().st_mode & 0o777 == 0o700
    hub.fails(FAILED, 'a file', 'cp', f'{sb}:t', str(here / 'file'))
    hub.fails(FAILED, 'none', 'cp', f'{sb}:t', str(here / 'none/there'))
    hub.fails(FAILED, 'none', 'cp', f'{sb}:none', str(here))


def test_cp_of_many_entries(hub, sb, here):
    """Past each bound that an unpacker may have of its own."""
    tree = here / 'many'
    tree.mkdir()
    for n in range(2500):
        (tree / f'f{n}').write_text(str(n))
        (tree / f'l{n}').symlink_to(f'f{n}')
    for _ in range(2):  # the second time in the place of the first
        hub.ok('cp', str(tree), f'{sb}:')
        hub.ok('cp', f'{sb}:many', str(here / 'back'))
        back = here / 'back' / 'many' if (here / 'back' / 'many').exists() else here / 'back'
        assert {p.name: p.read_text() for p in back.iterdir()} == {
            p.name: p.read_text() for p in tree.iterdir()}


def test_cp_archives(hub, sb, here):
    hub.ok('cp', '-', f'{sb}:.', input=made(('d/f', 'through')))
    hub.ok('exec', sb, 'sh', '-c', 'mkdir d/e; ln d/f d/e/g; ln -s f d/s')
    # As docker cp: a directory's name is in front, and that of its contents not.
    for path, top in (('d', 'd/'), ('d/', 'd/'), ('/workspace/d', 'd/'), ('d/e/..', ''),
                      ('d/.', ''), ('./d', 'd/'), ('/workspace/d/.', '')):
        done = hub.ok('cp', f'{sb}:{path}', '-')
        with tarfile.open(fileobj=io.BytesIO(done)) as tar:
            names = {top + name for name in ('e', 'e/g', 'f', 's')} | {top.strip('/') or '.'}
            assert set(tar.getnames()) == names, path
            assert tar.extractfile(top + 'e/g').read() == b'through'
    for path, name in (('d/e/g', 'g'), ('d/s', 's')):
        done = hub.ok('cp', f'{sb}:{path}', '-')
        with tarfile.open(fileobj=io.BytesIO(done)) as tar:
            assert tar.extractfile(name).read() == b'through'
    hub.fails(FAILED, 'archive', 'cp', '-', f'{sb}:.', input=b'no archive' * 100)


@pytest.mark.parametrize('n', [0, 1, 3, 400])
def test_cp_names_what_it_leaves_out(hub, sb, here, n):
    """Pipes and sockets, in both directions and into an archive: how many there were, in one line,
    and the first of them, whatever they are called. All else is copied."""
    make = ('import os, socket, sys; os.makedirs("odd/in"); open("odd/in/f", "w").close()\n'
            'for i in range(int(sys.argv[1])):\n'
            '    name = f"odd/in/\\n\\x1b{i}"\n'
            '    os.mkfifo(name) if i % 2 else socket.socket(socket.AF_UNIX).bind(name)\n')
    hub.ok('exec', '-i', sb, 'python3', '-', str(n), input=make.encode())
    subprocess.run(['python3', '-c', make, str(n)], cwd=here, check=True)
    for source, to in ((f'{sb}:odd', str(here / 'out')), (f'{sb}:odd', '-'), (f'{sb}:odd/.', '-'),
                       (str(here / 'odd'), f'{sb}:again')):
        done = hub.run('cp', source, to)
        assert done.returncode == 0, done
        said = done.stderr.decode()
        if n == 0:
            assert not said
        else:
            assert said.count('\n') == 1 and f': {n}: ' in said and 'in/' in said, said
            assert '\x1b' not in said and 80 < len(said) < 2000, said
    assert {p.name for p in (here / 'out/in').iterdir()} == {'f'}
    assert hub.ok('exec', sb, 'ls', 'again/in') == b'f\n'


def test_cp_keeps_within_its_directory(hub, sb, here):
    """The tree of a hostile sandbox: what stands in its place here is not followed, set-id bits are
    dropped, and holes stay holes."""
    outside = here / 'outside'
    outside.mkdir()
    (outside / 'kept').write_text('kept')
    to = here / 'to'
    to.mkdir()
    (to / 'd').symlink_to('../outside')
    (to / 'kept').symlink_to('../outside/kept')
    sh(hub, sb, 'mkdir -p t; cd t; echo evil > kept; '
       'truncate -s 300M giant; echo > s; ln -s /etc/passwd p')
    hub.ok('cp', f'{sb}:t/.', str(to))
    assert (outside / 'kept').read_text() == 'kept' and (to / 'kept').read_text() == 'evil\n'
    assert (to / 'giant').stat().st_size == 300 << 20 and (to / 'giant').stat().st_blocks < 1000
    assert os.readlink(to / 'p') == '/etc/passwd'
    sh(hub, sb, 'mkdir t/d; echo evil > t/d/evil')
    done = hub.fails(FAILED, '', 'cp', f'{sb}:t/.', str(to))
    assert os.listdir(outside) == ['kept'] and b'\x1b' not in done.stderr


def test_cp_says_why_a_copy_is_not_whole(hub, sb, here):
    """That a tree is too deep is found in the middle; the hub runs on."""
    sh(hub, sb,
       'mkdir t; cd t; i=0; while [ $i -lt 300 ]; do mkdir -p d; cd d; i=$((i + 1)); done')
    done = hub.fails(FAILED, 'not whole', 'cp', f'{sb}:t', str(here))
    assert b'holt serve' not in done.stderr
    assert '256 directories inside each other' in hub.said()
    deep = here / 'deep' / '/'.join('d' * 300)
    deep.mkdir(parents=True)
    hub.fails(FAILED, 'fewer directories', 'cp', str(here / 'deep'), f'{sb}:.')


def test_fs_watch(hub, sb):
    sh(hub, sb, 'mkdir d')
    watch = hub.popen('fs', 'watch', '-r', sb, 'd')
    try:
        assert watch.stdout.readline() == b'ready      \n'
        sh(hub, sb, 'mkdir d/e; rm -r d')
        said = watch.stdout.read().splitlines()
        assert b'created    e/' in said and said[-1] == b'ended      '
        assert watch.wait(60) == 0
    finally:
        watch.kill()
        watch.communicate()
