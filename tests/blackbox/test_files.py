"""sandbox_read_file and sandbox_write_file."""

import base64
import hashlib

import pytest



def b64(data):
    return base64.b64encode(data).decode()


@pytest.mark.parametrize('text', ['', 'x', 'line\n', 'no end', 'grüße \U0001f600\n', 'nul\0nul',
                                  '\r\n\t"\\', '\ufeffbom', '\x7f\x1b[0m'])
def test_text_comes_back(sb, text):
    assert sb.write('f', text)['bytes'] == len(text.encode())
    got = sb.read('f')
    assert got['content'] == text and got['encoding'] == 'utf-8' and got['eof']
    assert got['size'] == got['bytes'] == len(text.encode()) and 'next_offset' not in got


def test_bytes_come_back(sb):
    data = bytes(range(256)) * 100
    assert sb.write('f', b64(data), encoding='base64')['bytes'] == len(data)
    got = sb.read('f', encoding='base64')
    assert base64.b64decode(got['content']) == data and got['encoding'] == 'base64'
    assert sb.sh('md5sum < f').split()[0] == hashlib.md5(data).hexdigest()
    assert sb.fails('sandbox_read_file', path='f')['code'] == 'invalid_arguments'


@pytest.mark.parametrize('content', ['a', 'a?==', 'YQ=', 'YQ', 'YQ==YQ==', 'Y Q==', 'YR=='])
def test_base64_that_is_none(sb, content):
    error = sb.fails('sandbox_write_file', path='f', content=content, encoding='base64')
    assert error['code'] == 'invalid_arguments' and 'content' in error['cause']
    assert sb.fails('sandbox_read_file', path='f')['code'] == 'path_not_found'


def test_ranges(sb):
    sb.write('f', '0123456789')
    for offset, limit, content, eof in ((0, 4, '0123', False), (4, 4, '4567', False),
                                        (8, 4, '89', True), (0, 10, '0123456789', True),
                                        (6, 4, '6789', True), (10, 1, '', True), (99, 5, '', True)):
        got = sb.read('f', offset=offset, limit=limit)
        assert (got['content'], got['eof']) == (content, eof)
        assert got.get('next_offset') == (None if eof else offset + len(content))
        assert got['size'] == 10
    assert sb.content('f', offset=7) == '789'
    assert sb.content('f', offset=2**62) == ''


def test_ranges_cut_no_character(sb):
    sb.write('f', 'aü€😀' * 50)
    text, offset = '', 0
    while offset is not None:
        got = sb.read('f', offset=offset, limit=7)
        text += got['content']
        offset = got.get('next_offset')
    assert text == 'aü€😀' * 50
    assert sb.fails('sandbox_read_file', path='f', offset=2, limit=5)['code'] == 'invalid_arguments'


def test_a_file_too_large_to_read_at_once(sb):
    sb.sh('head -c 4194305 /dev/zero > f')
    more = (4 << 20) + 1
    assert sb.fails('sandbox_read_file', path='f', limit=more)['code'] == 'invalid_arguments'
    assert sb.read('f')['next_offset'] == 4 << 20
    sb.sh('truncate -s 4194304 f')
    assert len(sb.content('f')) == 4 << 20


def test_fifty_mebibytes_in_parts(sb):
    sb.sh("head -c 52428800 /dev/urandom > big; truncate -s 1T sparse 2>/dev/null; rm -f sparse")
    digest, offset = hashlib.sha256(), 0
    while offset is not None:
        got = sb.read('big', offset=offset, limit=4 << 20, encoding='base64')
        digest.update(base64.b64decode(got['content']))
        offset = got.get('next_offset')
    assert digest.hexdigest() == sb.sh('sha256sum big').split()[0]


def test_eleven_mebibytes_of_bytes_in_one_message(sb):
    data = bytes(range(256)) * (44 << 10)
    sb.write('big', b64(data), encoding='base64')
    assert sb.sh('sha256sum big').split()[0] == hashlib.sha256(data).hexdigest()


def test_modes(sb):
    sb.write('plain', '')
    sb.write('script', '#!/bin/sh\necho ran\n', mode='0755')
    sb.write('private', '', mode='600')
    assert sb.sh('stat -c "%a %n" plain script private').split() == ['644', 'plain', '755',
                                                                     'script', '600', 'private']
    assert sb.argv('./script')['stdout'] == 'ran\n'
    assert sb.read('script')['mode'] == '0755'


def test_an_overwritten_file_keeps_its_mode(sb):
    sb.write('f', 'a', mode='0755')
    sb.sh('chmod 710 f')
    sb.write('f', 'b', mode='0600')
    assert sb.sh('stat -c %a f') == '710\n' and sb.content('f') == 'b'


@pytest.mark.parametrize('mode', ['4755', '2755', '1777', '0888', 'rwx', '0', '000', '07777', '99',
                                  '-1'])
def test_modes_that_are_refused(sb, mode):
    assert (sb.fails('sandbox_write_file', path='f', content='', mode=mode)['code']
            == 'invalid_arguments')


def test_parents(sb):
    sb.write('a/b/c', 'x')
    assert sb.sh('stat -c %a a a/b').split() == ['755', '755']
    assert (sb.fails('sandbox_write_file', path='d/e', content='', make_parents=False)['code']
            == 'path_not_found')
    assert sb.exec('test -e d')['exit_code'] == 1
    sb.write('a/b/d', 'y', make_parents=False)


def test_paths(box):
    sb = box(cwd='/tmp')
    sb.write('rel', '1')
    assert sb.content('/tmp/rel') == '1'
    sb.write('/workspace/../tmp/./x//y', '2')
    assert sb.content('/tmp/x/y') == '2'
    for name in ('a b', 'new\nline', 'ünï', "q'\"$", '-rf', '*', '.hidden', 'x' * 255):
        sb.write(name, name)
        assert sb.content(name) == name
        assert sb.argv('cat', '--', './' + name)['stdout'] == name
    assert (sb.fails('sandbox_write_file', path='x' * 256, content='')['code']
            in ('invalid_arguments', 'path_not_found'))
    deep = '/tmp/' + 'd/' * 200 + 'f'
    sb.write(deep, 'deep')
    assert sb.content(deep) == 'deep'


def test_files_belong_to_the_sandboxs_user(sb):
    sb.write('new/f', 'x')
    assert sb.sh('stat -c %u:%g new/f new') == '1000:1000\n1000:1000\n'
    sb.sh('echo more >> new/f && rm -r new')


def test_what_exec_wrote_is_read_and_the_other_way(sb):
    sb.sh('echo hello > from-exec')
    assert sb.content('from-exec') == 'hello\n'
    sb.write('from-tool', 'world')
    assert sb.sh('cat from-tool') == 'world'


def test_symlinks_inside_are_followed(sb):
    sb.sh('mkdir d; echo t > d/target; ln -s d/target link; ln -s /workspace/d dir; '
          'ln -s link twice')
    assert sb.content('link') == sb.content('twice') == sb.content('dir/target') == 't\n'
    sb.write('twice', 'new')
    assert sb.sh('readlink twice link; cat d/target') == 'link\nd/target\nnew'
    sb.write('dir/other', 'o')
    assert sb.sh('cat d/other') == 'o'


def test_symlinks_that_lead_nowhere(sb):
    sb.sh('ln -s loop loop; ln -s missing dangling')
    assert (sb.fails('sandbox_read_file', path='loop')['code']
            in ('path_not_found', 'not_a_file', 'path_denied', 'invalid_arguments'))
    assert sb.fails('sandbox_read_file', path='dangling')['code'] == 'path_not_found'


def test_symlinks_do_not_lead_out(sb):
    sb.sh('ln -s ../../../../../../../../etc/passwd up; ln -s /proc/1/root/etc/passwd proc; '
          'ln -s /proc/self/root/etc root')
    inside = sb.sh('cat /etc/passwd')
    assert sb.content('up') == inside
    for path in ('proc', 'root/passwd', '/proc/1/root/etc/shadow', '/proc/self/fd/0',
                 '/proc/1/environ', '/proc/1/fd/3'):
        try:
            got = sb.content(path)
        except Exception as e:  # pylint: disable=broad-except
            assert getattr(e, 'code', None) in ('path_denied', 'path_not_found', 'not_a_file'), e
        else:
            assert got == inside, path


@pytest.mark.parametrize('make, path, code', [
    ('mkdir d', 'd', 'not_a_file'), ('mkfifo p', 'p', 'not_a_file'),
    (':', '/dev/null', 'not_a_file'), (':', '/dev/zero', 'not_a_file'), (':', '/', 'not_a_file'),
    (':', '/proc/self/maps', 'not_a_file'), (':', '/proc/uptime', 'not_a_file'),
    (':', '/proc/self/exe', 'not_a_file'), (':', '/proc/self/fd/3', 'not_a_file'),
    (':', '/dev/stdin', 'not_a_file'),
    ("python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'", 's', 'not_a_file'),
    ('ln -s /dev/tty t', 't', 'not_a_file'), ('ln -s / r', 'r', 'not_a_file'),
    ('touch f', 'f/g', 'path_not_found'), (':', 'missing', 'path_not_found'),
    ('touch c; chmod 0 c', 'c', 'path_denied'), ('mkdir -m 0 x', 'x/y', 'path_denied'),
])
def test_what_is_no_readable_file(sb, make, path, code):
    sb.exec(make)
    error = sb.fails('sandbox_read_file', path=path)
    assert error['code'] == code, error


@pytest.mark.parametrize('make, path, code', [
    ('mkdir d', 'd', 'not_a_file'), ('mkfifo p', 'p', 'not_a_file'),
    (':', '/dev/null', 'not_a_file'), (':', '/', 'not_a_file'), ('touch f', 'f/g', 'not_a_file'),
    (':', '/usr/x', 'path_denied'), (':', '/usr/bin/env', 'path_denied'),
    (':', '/proc/x', 'not_a_file'), ('mkdir -m 555 r', 'r/x', 'path_denied'),
    (':', 'd/', 'not_a_file'), ('mkdir d', 'd/..', 'not_a_file'), (':', '.', 'not_a_file'),
])
def test_what_can_not_be_written(sb, make, path, code):
    sb.exec(make)
    error = sb.fails('sandbox_write_file', path=path, content='x')
    assert error['code'] == code, error


def test_readers_see_the_old_or_the_new(sb):
    sb.write('f', 'a' * 100_000)
    reader = sb.start('''python3 -c '
import os, time
seen = set()
end = time.time() + 2
while time.time() < end or len(seen) < 3 and time.time() < end + 15:
    data = open("f").read()
    assert len(data) == 100000 and len(set(data)) == 1, (len(data), set(data))
    seen.add(data[0])
print("".join(sorted(seen)))
' ''')
    n = 0
    while sb.client.last_id < 10**9 and n < 10_000:
        n += 1
        sb.write('f', 'abc'[n % 3] * 100_000)
        if reader in sb.client.arrived:
            break
    got = sb.client.result(reader)
    assert got['exit_code'] == 0 and got['stdout'] == 'abc\n', got
    assert sb.sh('ls -A') == 'f\n'  # and nothing beside it


def test_a_failed_write_leaves_the_old_file_and_no_other(box):
    sb = box(disk_mb=4)
    sb.write('f', 'old')
    assert sb.fails('sandbox_write_file', path='f', content='x' * (6 << 20))['code'] == 'disk_full'
    assert sb.sh('ls -A; cat f') == 'f\nold'


def test_nobody_can_stand_in_the_way_of_writes(sb):
    """Names that Holt might use for what it has not finished are taken already."""
    names = [f'.holt-{i}{end}' for i in range(300) for end in ('.tmp', '.new')]
    sb.sh(f'touch {" ".join(names)}; for i in $(seq 50); do ln -s /etc/passwd .holt-$i; done')
    for i in range(5):
        sb.write('f', str(i))
        sb.write(f'f{i}', str(i))
    assert sb.content('f') == sb.content('f4') == '4'


def test_many_writes_at_once(sb):
    calls = [sb.client.start_tool('sandbox_write_file', sandbox=sb.id, path=f'd/{i}',
                                  content=str(i)) for i in range(200)]
    for one in calls:
        sb.client.result(one)
    assert sb.sh('cat d/* | wc -c').strip() == str(sum(len(str(i)) for i in range(200)))
    # each read may take 4 MiB of the room that calls have
    for some in (range(100), range(100, 200)):
        calls = [sb.client.start_tool('sandbox_read_file', sandbox=sb.id, path=f'd/{i}')
                 for i in some]
        assert [sb.client.result(one)['content'] for one in calls] == [str(i) for i in some]


def test_files_of_a_sandbox_are_its_own(box):
    one, two = box(), box()
    one.write('/workspace/f', 'one')
    one.write('/tmp/f', 'one')
    assert two.exec('cat /workspace/f /tmp/f')['exit_code'] == 1
