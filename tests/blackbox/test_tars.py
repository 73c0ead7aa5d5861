"""Tar archives that no writer makes, header by header, at every place that takes one: an upload,
`holt cp`, a layer of an image, a snapshot. What tar's libraries can say wrong (traversal, links,
devices, bombs) is in test_images.py, 41 kinds of it.

All readers are given the same bytes. What can be read in two ways is refused,
or all of them read it in the same way.
"""

import json
import os
import resource
import shutil
import subprocess

import pytest

import image_files as files
from image_files import entry
from rest import Failed
from test_images import REFUSED, SMALL, Store
from test_trees import FAILED, Hub, upload

END = bytes(1024)
META = '.wh..wh.holt'  # the entry of a snapshot that says what it belongs to


def header(name=b'f', size=b'%011o\0' % 0, kind=b'0', link=b'', mode=b'0000644\0',
           mtime=b'%011o\0' % 0, magic=b'ustar\x0000', prefix=b'',
         checksum=None):
    """A header with whatever in its fields; the checksum is right unless it is given."""
    front = (name.ljust(100, b'\0') + mode.ljust(8, b'\0') + b'0000000\0' * 2
             + size.ljust(12, b'\0') + mtime.ljust(12, b'\0'))
    back = (kind + link.ljust(100, b'\0') + magic + bytes(64) + b'0000000\0' * 2
            + prefix.ljust(155, b'\0') + bytes(12))
    total = sum(front) + sum(back) + 8 * ord(' ')
    made = front + (b'%06o\0 ' % total if checksum is None else checksum(total)) + back
    assert len(made) == 512
    return made


def octal(n):
    return b'%011o\0' % n


def base256(n):
    return (n & ((1 << 96) - 1) | 1 << 95).to_bytes(12, 'big')


def content(data):
    return data + bytes(-len(data) % 512)


def extended(body, kind=b'x'):
    return header(b'extended', octal(len(body)), kind) + content(body)


def record(key, value):
    body = b' %s=%s\n' % (key, value)
    n = len(body) + 1
    while len(b'%d' % n) + len(body) != n:
        n += 1
    return b'%d' % n + body


def signed(total):
    """Of a header that has one byte above 127, as old tars counted it."""
    return b'%06o\0 ' % (total - 256)


BAD, OUT, LARGE, FINE = 'invalid', 'forbidden', 'too large', 'fine'

def tars(at):
    """Entries below `at`, by name: bytes, what becomes of them as an upload, and as a layer where
    libarchive is more generous."""
    def head(name=b'f', *arguments, **more):
        return header((at + name)[:100] if name else name, *arguments, **more)

    def file(data=b'inside', **more):
        return head(size=octal(len(data)), **more) + content(data)

    return {
        'control': (file() + END, FINE),
        'checksum wrong': (head(checksum=lambda total: b'%06o\0 ' % (total + 1)) + END, BAD),
        'checksum blank': (head(checksum=lambda total: b' ' * 8) + END, BAD),
        'checksum of letters': (head(checksum=lambda total: b'abcdefg\0') + END, BAD),
        'checksum negative': (head(checksum=lambda total: b'\xff' * 8) + END, BAD),
        'checksum with signs': (head(b'f\xff', checksum=signed) + END, FINE),
        'size below zero': (head(size=base256(-512)) + content(b'x' * 512) + END, BAD),
        'size of all ones': (head(size=b'\xff' * 12) + END, BAD),
        'size of 2^62': (head(size=base256(1 << 62)) + content(b'x') + END, LARGE),
        'size of 2^63': (head(size=base256(1 << 63)) + content(b'x') + END, BAD),
        'size of 2^64 and a bit': (head(size=base256((1 << 64) + 6)) + content(b'inside') + END,
                                   BAD),
        'size of 2^80': (head(size=base256(1 << 80)) + content(b'x') + END, BAD),
        'size in decimals': (head(size=b'00000000089\0') + content(b'x' * 89) + END, BAD),
        'size with letters': (head(size=b'0000000000x\0') + END, BAD),
        'size with a sign': (head(size=b'-0000000001\0') + END, BAD),
        'size in base 256 of six': (head(size=base256(6)) + content(b'inside') + END, FINE),
        'time of 2^62': (head(mtime=base256(1 << 62)) + END, BAD, FINE),
        'time with letters': (head(mtime=b'yesterday') + END, BAD),
        'mode with letters': (head(mode=b'rwxrwxrw') + END, BAD),
        'no name': (head(b'') + END, BAD),
        'a name that is no UTF-8': (file(name=b'\xff\xfe\xc0\xaf') + END, FINE),
        'a name without its NUL': (file(name=b'n' * 100) + END, FINE),
        'a prefix that climbs': (file(name=b'x', prefix=b'../..') + END, OUT),
        'a prefix of the root': (file(name=b'../x', prefix=b'/') + END, OUT),
        'a path with a NUL': (extended(record(b'path', b'a\0/../../x')) + file() + END, BAD, FINE),
        'a path that climbs': (extended(record(b'path', b'a/../../x')) + file() + END, OUT),
        'a path of 5000': (extended(record(b'path', b'p/' * 2500)) + file() + END, BAD),
        'a link of 5000': (extended(record(b'linkpath', b'p/' * 2500)) + head(kind=b'2', link=b'x')
                           + END, BAD),
        'a link without a target': (head(kind=b'2') + END, BAD),
        'a hard link without a target': (head(kind=b'1') + END, BAD),
        'a record longer than its header': (extended(b'99 path=x\n') + file() + END, BAD),
        'a record of no length': (extended(b'0 path=x\n') + file() + END, BAD),
        'a record shorter than its key': (extended(b'5 path=x\n') + file() + END, BAD),
        'a record of 10^30': (extended(b'1' + b'0' * 30 + b' path=x\n') + file() + END, BAD),
        'a record of a negative length': (extended(b'-10 path=x\n') + file() + END, BAD),
        'a record without its end': (extended(b'10 path=xy') + file() + END, BAD),
        'a record without a key': (extended(b'5 =x\n') + file() + END, BAD),
        'a record without an equals sign': (extended(b'10 pathxy\n') + file() + END, BAD),
        'a size below zero in a record': (extended(record(b'size', b'-1')) + file() + END, BAD),
        'a size of 2^64 in a record': (extended(record(b'size', b'18446744073709551616')) + file()
                                       + END, BAD),
        'a size of letters in a record': (extended(record(b'size', b'1x')) + file() + END, BAD,
                                          FINE),
        'a record that names no size': (extended(record(b'size', b'6')) + head()
                                        + content(b'inside') + END, FINE),
        'records of 2 MiB': (extended(record(b'comment', b'x' * (2 << 20))) + file() + END, BAD),
        'records said to be of 1 GiB': (head(b'x', octal(1 << 30), b'x')
                                        + content(record(b'path', b'x')), BAD),
        'records of a negative size': (head(b'x', base256(-1), b'x')
                                       + content(record(b'path', b'x')) + file() + END, BAD),
        'records for everybody that name a file': (extended(record(b'path', b'../x'), b'g') + file()
                                                   + END, BAD, FINE),
        'records for everybody of a size': (extended(record(b'size', b'0'), b'g') + file() + END,
                                            BAD, FINE),
        'records and then nothing': (extended(record(b'path', b'x')) + END, BAD),
        'a long name of 1 GiB': (head(b'././@LongLink', octal(1 << 30), b'L')
                                 + content(b'n' * 5000), BAD),
        'a long name of 5000': (head(b'././@LongLink', octal(5001), b'L')
                                + content(b'n/' * 2500 + b'\0') + file() + END, BAD),
        'a long name of nothing': (head(b'././@LongLink', octal(0), b'L') + file() + END, BAD),
        'a long name that climbs': (head(b'././@LongLink', octal(10), b'L')
                                    + content(b'a/../../x\0') + file() + END, OUT),
        'a long name with a NUL': (head(b'././@LongLink', octal(6), b'L') + content(b'a\0bcd\0')
                                   + file() + END, BAD, FINE),
        'a long name and then nothing': (head(b'././@LongLink', octal(2), b'L') + content(b'x\0')
                                         + END, BAD),
        'a sparse file of GNU': (head(kind=b'S', magic=b'ustar  \0') + END, BAD, FINE),
        'a sparse file by records': (extended(record(b'GNU.sparse.map', b'0,1') + record(
            b'GNU.sparse.size', b'99999999999')) + file() + END, BAD),
        'a file of several volumes': (head(kind=b'M', magic=b'ustar  \0') + END, BAD),
        'a file of an unknown kind': (head(kind=b'Q') + END, BAD, FINE),
        'a directory with content': (head(b'd/', octal(512), b'5') + head(b'hidden') + END, BAD,
                                     FINE),
        'a link with content': (head(b'l', octal(512), b'2', b'x') + head(b'hidden') + END, BAD,
                                FINE),
        'cut in a header': (file() + head()[:300], BAD),
        'cut in a file': (head(size=octal(5000)) + b'x' * 4000, BAD),
        'cut behind a file': (file(), BAD, FINE),
        'two archives': (file() + END + file(name=b'second') + END, BAD, FINE),
        'an entry behind one block of zeros': (file() + bytes(512) + file(name=b'second') + END,
                                               BAD, FINE),
        'rubbish behind the end': (file() + END + b'\x7fELF' * 200, BAD, FINE),
        'zeros behind the end': (file() + END + bytes(9000), FINE),
    }


TARS, KEPT = tars(b''), tars(b'workspace/')


def data(name):
    return TARS[name][0]


def fate(name, reader):
    """What becomes of it: of an upload, unless this reader has its own."""
    return TARS[name][2 if reader == 'layer' and len(TARS[name]) > 2 else 1]


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    with Hub(me, tmp_path_factory.mktemp('tars'), '--listen', '127.0.0.1:0',
             '--pool', '1') as shared:
        yield shared
    assert 'Sanitizer' not in shared.said(), shared.said()


@pytest.fixture(scope='module')
def sb(hub):
    sandbox = hub.create()
    yield sandbox
    hub.delete(sandbox)


def place(hub, sandbox):
    """A new folder, with nothing that an archive made before."""
    hub.exec(sandbox, 'rm -rf in; mkdir in; echo kept > in/kept')
    return 'in'


def untouched(hub, sandbox):
    """Nothing but what is below the folder is there."""
    done = hub.exec(sandbox, 'cat in/kept; ls -A /workspace /tmp; '
                    'find / -xdev -name x -newer in -not -path "/proc/*" 2>/dev/null')
    assert done['stdout'] == 'kept\n/tmp:\n\n/workspace:\nin\n', done


CODES = {BAD: (400, 'invalid_input'), OUT: (403, 'forbidden'), LARGE: (413, 'body_too_large')}


@pytest.mark.parametrize('name', TARS)
def test_upload(hub, sb, name):
    try:
        upload(hub, sb, data(name), place(hub, sb))
        assert fate(name, 'upload') == FINE
    except Failed as failed:
        assert (failed.status, failed.code) == CODES.get(fate(name, 'upload')), failed
    untouched(hub, sb)


@pytest.mark.parametrize('name', ['control', 'checksum wrong', 'a path that climbs',
                                  'a record of 10^30', 'size of 2^62', 'cut in a file'])
def test_cp(hub, sb, name):
    """Which hands the bytes on."""
    done = hub.run('cp', '-', f'{sb}:{place(hub, sb)}', input=data(name))
    assert done.returncode == (0 if fate(name, 'upload') == FINE else FAILED), done
    assert b'\x1b' not in done.stderr and (done.stderr or not done.returncode)
    untouched(hub, sb)


def test_a_file_that_does_not_come_whole_leaves_the_old_one(hub, sb, tmp_path):
    """Into a sandbox, and out of it, where a limit of the copier's ends the copy in the middle."""
    into = place(hub, sb)
    hub.exec(sb, 'echo old > in/f; head -c 300000 /dev/zero > in/large')
    with pytest.raises(Failed):
        upload(hub, sb, data('cut in a file'), into)
    assert hub.exec(sb, 'ls -A in; cat in/f')['stdout'] == 'f\nkept\nlarge\nold\n'
    (tmp_path / 'f').write_text('old')
    done = hub.run('cp', f'{sb}:/workspace/in/large', str(tmp_path / 'f'),
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)))
    assert done.returncode != 0
    assert os.listdir(tmp_path) == ['f'] and (tmp_path / 'f').read_text() == 'old'


@pytest.mark.parametrize('name', TARS)
def test_layer(me, tmp_path, name):
    store = Store(me)
    try:
        done = store('import', files.layout(str(tmp_path / 'l'), files.layer(entry('first')),
                                            data(name)), 'evil', *SMALL)
        if fate(name, 'layer') == FINE:
            assert done.returncode == 0, done
        else:
            assert (done.returncode == REFUSED and done.stdout == b''
                    and b'\x1b' not in done.stderr), done
            assert (store.json('ls') == [] and os.listdir(store.path + '/image')
                    == os.listdir(store.path + '/new') == [])
    finally:
        shutil.rmtree(store.path)


def packed(evil):
    """What would be a snapshot but for what is in it."""
    about = {'version': 1, 'template': 'host', 'base': '', 'memory': 256 << 20, 'disk': 64 << 20,
             'pids': 64, 'cpu_milli': 0}
    made = files.layer(entry(META, json.dumps(about).encode()))
    return subprocess.run(['zstd', '-q', '-c', '-1'], input=made[:1024] + evil,
                          stdout=subprocess.PIPE, check=True).stdout


@pytest.mark.parametrize('name', TARS)
def test_snapshot(hub, name):
    """It is refused when it is taken over, or nothing is made of it."""
    if not shutil.which('zstd'):
        pytest.skip('zstd is missing')
    archive, before = packed(KEPT[name][0]), len(hub.call('GET', '/v1/sandboxes'))
    request = hub.request('POST', '/v1/snapshots', fields=['Content-Type: application/zstd',
                                                           f'Content-Length: {len(archive)}'])
    with hub.wire() as wire:
        reply = wire.ask(request.encode() + archive, 'POST')
    if reply.status != 200:
        assert fate(name, 'upload') != FINE and reply.status == 400, reply
    else:
        snapshot = json.loads(reply.body)['id']
        try:
            hub.delete(hub.post(f'/v1/snapshots/{snapshot}/restore')['id'])
            assert fate(name, 'upload') == FINE
        except Failed as failed:
            assert fate(name, 'upload') != FINE and failed.status in (400, 403, 413), failed
        finally:
            hub.call('DELETE', f'/v1/snapshots/{snapshot}')
    assert (hub.call('GET', '/v1/snapshots')['snapshots'] == []
            and len(hub.call('GET', '/v1/sandboxes')) == before)
    assert os.listdir(os.path.join(hub.home, 'snapshots/new')) == []


def test_there_are_enough():
    assert len([name for name in TARS if fate(name, 'upload') != FINE]) >= 30
