"""Coding tools: files of a project that the operator gave (docs/coding.md)."""

import copy
import json
import os
import random
import re
import shutil
import stat
import tempfile
import time

import pytest

import host
from client import until
from http_client import Door, Modern
from rest import Rest
from soak import soak
from test_keys import as_bearer, key
from who import node

CODING = ['Read', 'Write', 'Edit', 'Glob', 'Grep']


class Project:
    """A folder of the host, of whoever runs Holt."""

    def __init__(self, who, below=None):
        self.who = who
        self.path = tempfile.mkdtemp(prefix='blackbox.', dir=below or who.work)
        os.chown(self.path, who.uid, who.uid)

    def at(self, name):
        return os.path.join(os.fsencode(self.path), os.fsencode(name))

    def put(self, name, content='', mode=0o644):
        with open(self.at(name), 'wb') as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(self.at(name), mode)
        os.chown(self.at(name), self.who.uid, self.who.uid)

    def folder(self, *names):
        for name in names:
            os.makedirs(self.at(name))
        for path, _, _ in os.walk(self.path):
            os.chown(path, self.who.uid, self.who.uid)

    def get(self, name):
        with open(self.at(name), 'rb') as f:
            return f.read()


def texts(result):
    return [part['text'] for part in result['content']]


@pytest.fixture(scope='module')
def project(me):
    before = host.Residue(me.trees)
    made = Project(me)
    yield made
    shutil.rmtree(made.path)
    before.check()


@pytest.fixture(scope='module')
def mcp(me, project):
    client = me.mcp('--pool', '0', '--workspace', project.path)
    client.initialize()
    yield client
    assert client.close() == 0


def answer(mcp, tool, **arguments):
    return mcp.request('tools/call', {'name': tool, 'arguments': arguments},
                       timeout=100)['result']


def call(mcp, tool, **arguments):
    said = answer(mcp, tool, **arguments)
    assert not said.get('isError'), said
    return texts(said)


def read(mcp, path, **arguments):
    return call(mcp, 'Read', file_path=path, **arguments)


def edit(mcp, path, old, new, **arguments):
    return call(mcp, 'Edit', file_path=path, old_string=old, new_string=new, **arguments)


def fails(mcp, code, tool, **arguments):
    """The texts of a failure: what it is, as an object, and what follows."""
    said = answer(mcp, tool, **arguments)
    assert said['isError'], said
    first, *more = texts(said)
    first = json.loads(first)
    assert first['code'] == code, first
    return first, more


def box_of(mcp):
    """The sandbox in which the tools work."""
    boxes = mcp.request('tools/call', {'name': 'sandbox_list', 'arguments': {}})['result']
    return [s['sandbox'] for s in json.loads(texts(boxes)[0])['sandboxes']
            if 'workspace' in s.get('labels', {})][0]


def test_tools_for_code_are_listed_where_there_is_a_workspace(mcp, me):
    listed = [t['name'] for t in mcp.request('tools/list')['result']['tools']]
    assert [n for n in listed if n in CODING] == CODING
    client = me.mcp('--pool', '0')
    client.initialize()
    listed = [t['name'] for t in client.request('tools/list')['result']['tools']]
    assert 'sandbox_exec' in listed and not set(CODING) & set(listed)
    assert client.close() == 0


def test_a_session_without_a_workspace_has_an_empty_one_of_its_own(me):
    client = me.mcp('--pool', '0', '--tools', 'coding,sandbox_exec,sandbox_terminate')
    client.initialize()
    fails(client, 'path_not_found', 'Read', file_path='a')
    call(client, 'Write', file_path='deep/a', content='one\n')
    assert read(client, '/workspace/deep/a') == ['1\tone\n']
    assert client.close() == 0


def test_a_folder_that_was_made_again_is_told(me):
    """Once, before the new sandbox: what is not in the folder is gone."""
    project = Project(me)
    client = me.mcp('--pool', '0', '--workspace', project.path)
    client.initialize()
    call(client, 'Bash', command='echo kept > /tmp/kept')
    os.rename(project.path, project.path + '.old')
    call(client, 'Bash', command='cat /tmp/kept')
    os.mkdir(project.path)
    os.chown(project.path, me.uid, me.uid)
    project.put('new', 'here')
    failure, *_ = fails(client, 'sandbox_not_found', 'Bash', command='cat /tmp/kept')
    assert 'was removed and made again' in failure['cause'], failure
    assert call(client, 'Bash', command='cat new')[0].startswith('here')
    assert client.close() == 0
    shutil.rmtree(project.path)
    shutil.rmtree(project.path + '.old')


def test_edit_needs_what_was_read(mcp, project):
    project.put('a.py', 'one\ntwo\n', mode=0o755)
    fails(mcp, 'file_not_read', 'Edit', file_path='a.py', old_string='two', new_string='2')
    fails(mcp, 'file_not_read', 'Write', file_path='a.py', content='x')
    assert read(mcp, 'a.py') == ['1\tone\n2\ttwo\n']
    edit(mcp, './a.py', 'two', '2')
    edit(mcp, '/workspace/a.py', '2', 'zwei')  # its own writes are known
    assert project.get('a.py') == b'one\nzwei\n'
    status = os.stat(project.at('a.py'))
    assert stat.S_IMODE(status.st_mode) == 0o755
    assert (status.st_uid, status.st_gid) == (project.who.uid, project.who.uid)
    assert [n for n in os.listdir(project.path) if '.holt-' in n] == []


def test_the_owner_of_a_file_stays(mcp, project):
    """Or the call fails: a file beside it of whoever writes would be another's."""
    if os.getuid():
        pytest.skip('only root gives files away')
    project.put('foreign', 'one\n', mode=0o666)
    os.chown(project.at('foreign'), 54321, 54321)
    read(mcp, 'foreign')
    fails(mcp, 'path_denied', 'Edit', file_path='foreign', old_string='one', new_string='two')
    status = os.stat(project.at('foreign'))
    assert (status.st_uid, status.st_gid, project.get('foreign')) == (54321, 54321, b'one\n')
    os.chown(project.at('foreign'), project.who.uid, project.who.uid)
    edit(mcp, 'foreign', 'one', 'two')  # a control


def test_a_workspace_in_memory(me):
    """Where init writes small files itself, with all that is promised of others."""
    project = Project(me, below='/dev/shm')
    client = me.mcp('--pool', '0', '--workspace', project.path)
    client.initialize()
    try:
        test_edit_needs_what_was_read(client, project)
        test_links_lead_to_one_file(client, project)
        if os.getuid() == 0:
            test_the_owner_of_a_file_stays(client, project)
        for size in (65536, 65537, 200_000):
            project.put('sized', '.' * (size - 1) + 'x')
            read(client, 'sized')
            edit(client, 'sized', 'x', 'y')
            assert project.get('sized') == b'.' * (size - 1) + b'y'
    finally:
        client.close()
        shutil.rmtree(project.path)


def test_links_lead_to_one_file(mcp, project):
    """By several paths at once, too, none of which is replaced by a file."""
    project.put('target', ''.join(f'<{n}>\n' for n in range(40)))
    for name in ('link1', 'link2'):
        os.symlink('target', project.at(name))
    paths = ['target', 'link1', './link2', '/workspace/link1']
    for path in paths:
        read(mcp, path)
    asked = {n: mcp.start('tools/call', {'name': 'Edit', 'arguments': {
        'file_path': paths[n % 4], 'old_string': f'<{n}>', 'new_string': f'[{n}]'}})
        for n in range(40)}
    while asked:
        again = [n for n, request in asked.items()
                 if mcp.wait(request)['result'].get('isError')]
        asked = {n: mcp.start('tools/call', {'name': 'Edit', 'arguments': {
            'file_path': paths[n % 4], 'old_string': f'<{n}>', 'new_string': f'[{n}]'}})
            for n in again}
    assert project.get('target').decode() == ''.join(f'[{n}]\n' for n in range(40))
    assert os.path.islink(project.at('link1')) and os.path.islink(project.at('link2'))
    os.symlink('/etc/passwd', project.at('out'))
    read(mcp, 'out')
    # The sandbox has an /etc/passwd of its own, or none that it may write.
    before = open('/etc/passwd', 'rb').read()
    answer(mcp, 'Edit', file_path='out', old_string='root', new_string='toor', replace_all=True)
    assert open('/etc/passwd', 'rb').read() == before


def test_a_changed_file_is_shown_instead_of_edited(mcp, project):
    project.put('b.py', 'one\ntwo\n')
    read(mcp, 'b.py')
    before = os.stat(project.at('b.py'))
    project.put('b.py', 'ONE\ntwo\n')
    # Times say nothing.
    os.utime(project.at('b.py'), ns=(before.st_atime_ns, before.st_mtime_ns))
    failure, more = fails(mcp, 'file_changed', 'Edit', file_path='b.py', old_string='two',
                          new_string='2')
    assert more == ['1\tONE\n2\ttwo\n'] and not failure['retryable']
    assert project.get('b.py') == b'ONE\ntwo\n'
    edit(mcp, 'b.py', 'two', '2')
    assert project.get('b.py') == b'ONE\n2\n'


def test_a_program_makes_a_file_stale(mcp, project):
    project.put('c.py', ''.join(f'line {i}\n' for i in range(1000)))
    read(mcp, 'c.py')
    mcp.call('sandbox_exec', sandbox=box_of(mcp), command='sed -i s/500$/fivehundred/ c.py')
    _, more = fails(mcp, 'file_changed', 'Edit', file_path='c.py',
                    old_string='line 499\nline 500', new_string='x')
    assert '501\tline fivehundred\n' in more[0] and '\t'.join(('1', 'line 0')) not in more[0]
    fails(mcp, 'invalid_arguments', 'Edit', file_path='c.py', old_string='line 499\nline 500',
          new_string='x')


def test_edits_say_why_they_fail(mcp, project):
    project.put('d.py', 'x = 1\nx = 1\n')
    read(mcp, 'd.py')
    failure, _ = fails(mcp, 'invalid_arguments', 'Edit', file_path='d.py', old_string='x = 1',
                       new_string='y')
    assert '2 times' in failure['cause']
    fails(mcp, 'invalid_arguments', 'Edit', file_path='d.py', old_string='z', new_string='y')
    edit(mcp, 'd.py', 'x = 1', 'y', replace_all=True)
    assert project.get('d.py') == b'y\ny\n'


def test_reads_in_parts(mcp, project):
    project.put('long', ''.join(f'{i}\n' for i in range(1, 5001)))
    lines, note = read(mcp, 'long')
    assert lines.count('\n') == 2000 and 'of 5000' in note and 'offset 2001' in note
    lines, note = read(mcp, 'long', offset=4000, limit=2)
    assert lines == '4000\t4000\n4001\t4001\n' and 'offset 4002' in note
    assert read(mcp, 'long', offset=5000) == ['5000\t5000\n']
    fails(mcp, 'invalid_arguments', 'Read', file_path='long', offset=5001)
    project.put('wide', 'x' * (1 << 20) + '\nend\n')
    assert '\t' + 'x' * 16384 + ' [' in read(mcp, 'wide')[0]
    assert read(mcp, 'wide', offset=2) == ['2\tend\n']


def test_binary_files_are_told(mcp, project):
    project.put('image', b'\x89PNG\r\n\x1a\n\0\0')
    assert 'binary, 10 bytes' in read(mcp, 'image')[0]
    project.put('latin', 'ä\n'.encode('latin-1'))
    lines, note = read(mcp, 'latin')
    assert lines == '1\t�\n' and '1 bytes are no UTF-8' in note
    project.put('empty')
    assert read(mcp, 'empty') == ['empty is empty.']


def test_names_have_any_bytes(mcp, project):
    for name in (b'\xff.txt', b'a\nb', b'%20', b'--help', b"'\" $x"):
        project.put(name, 'one\n')
        said = 'file:///workspace/' + ''.join(f'%{byte:02x}' for byte in name)
        assert read(mcp, said) == ['1\tone\n']
        edit(mcp, said, 'one', 'two')
        assert project.get(name) == b'two\n'
    assert read(mcp, '--help') == ['1\ttwo\n']


def test_secrets_stay_out_of_lines(mcp, project):
    key = 'ghp_' + 'A1b2C3d4' * 4 + 'E5f6'
    project.put('env', f'a\nTOKEN={key}\nb\n')
    (lines,) = read(mcp, 'env')
    assert key not in lines and lines.startswith('1\ta\n2\tTOKEN=') and lines.endswith('\n3\tb\n')


def test_large_files_are_not_kept(mcp, project):
    with open(project.at('sparse'), 'wb') as f:
        f.truncate(2 << 30)
    assert 'binary' in read(mcp, 'sparse')[0]
    with open(project.at('large'), 'wb') as f:
        f.write(b'x' * 63 + b'\n')
        for _ in range(5):
            f.write((b'y' * 63 + b'\n') * (1 << 14))
    lines, note = read(mcp, 'large', offset=80000, limit=1)
    assert lines == f'80000\t{"y" * 63}\n' and 'offset 80001' in note
    fails(mcp, 'too_large', 'Edit', file_path='large', old_string='x', new_string='')
    # A line of a gibibyte: the hub reads it in pieces, and keeps little.
    size = soak(2 << 30)
    with open(project.at('sparse'), 'wb') as f:
        f.write(b'x\n' * 8192)
        f.seek(size)
        f.write(b'\nend\n')
    assert read(mcp, 'sparse', offset=8194) == ['8194\tend\n']
    shown, note = read(mcp, 'sparse', offset=8193, limit=1)
    assert len(shown) < 100_000 and f'{size - 16384 - 16384} more bytes' in shown
    assert peak_of(mcp) < 150_000
    os.unlink(project.at('sparse'))


def test_paths_of_the_host_are_those_of_the_project(mcp, project):
    """Agents say absolute paths of the folder that they were started in."""
    new = f'{project.path}/src/host.py'
    assert call(mcp, 'Write', file_path=new, content='one\n')[0].endswith('src/host.py')
    assert project.get('src/host.py') == b'one\n'
    assert read(mcp, f'file://{new}') == read(mcp, 'src/host.py') == ['1\tone\n']
    edit(mcp, new, 'one', 'two')
    assert project.get('src/host.py') == b'two\n'
    for tool, more in (('Glob', {'pattern': '*.py'}), ('Grep', {'pattern': 'two'})):
        assert 'host.py' in call(mcp, tool, path=f'{project.path}/src', **more)[0], tool
    beside = f'{os.path.dirname(project.path)}/{os.path.basename(project.path)}-2/f'
    said = call(mcp, 'Write', file_path=beside, content='x')[0]
    assert 'outside of /workspace' in said and not os.path.exists(beside), said


def lossless(lines):
    return ''.join(f'line {n}\n' for n in range(lines))


@pytest.mark.parametrize('content, reads', [
    (lossless(5001), [{}]),
    (lossless(5001), [{}, {'offset': 4001}]),
    (lossless(10), [{'limit': 9}]),
    ('a\n' + 'x' * 40_000 + '\n', [{}]),
    ('x' * 40_000, [{}]),
    (b'caf\xe9\n', [{}]),
], ids=['pages', 'a gap', 'a limit', 'a long line', 'one long line', 'latin-1'])
def test_write_replaces_nothing_unseen(mcp, project, content, reads):
    """What Read left out, or showed otherwise than it is, would be lost."""
    project.put('lossy', content)
    before = project.get('lossy')
    for one in reads:
        read(mcp, 'lossy', **one)
    failure, _ = fails(mcp, 'file_not_read', 'Write', file_path='lossy', content='new\n')
    assert 'Edit' in failure['cause'], failure
    assert project.get('lossy') == before
    old = 'line 1\n' if b'line 1\n' in before else before[:1].decode()
    if before.count(old.encode()) == 1:
        edit(mcp, 'lossy', old, 'new ')
        assert project.get('lossy') == before.replace(old.encode(), b'new ', 1)


def test_write_replaces_what_was_read_in_pages(mcp, project):
    project.put('pages', lossless(5001))
    for offset in (1, 2001, 4001):
        read(mcp, 'pages', offset=offset)
    call(mcp, 'Write', file_path='pages', content='new\n')
    call(mcp, 'Write', file_path='pages', content='newer\n')
    assert project.get('pages') == b'newer\n'


def test_workspaces_have_names(me, project):
    for wrong in ('/nowhere', '/etc/passwd', f'a={project.path}', f'x y={project.path}'):
        done = me.run('mcp', '--workspace', f'a={project.path}', '--workspace', wrong)
        assert done.returncode == 125 and b'--workspace' in done.stderr, done
    client = me.mcp('--pool', '0', '--workspace', f'one={project.path}',
                    '--workspace', f'two={project.path}')
    client.initialize()
    project.put('n', 'n\n')
    failure, _ = fails(client, 'invalid_arguments', 'Read', file_path='n')
    assert 'one, two' in failure['cause']
    fails(client, 'invalid_arguments', 'Read', file_path='n', workspace='three')
    assert read(client, 'n', workspace='one') == ['1\tn\n']
    # Another workspace is another file.
    fails(client, 'file_not_read', 'Edit', file_path='n', workspace='two', old_string='n',
          new_string='m')
    assert client.close() == 0


def test_readonly(me, project):
    project.put('r', 'r\n')
    client = me.mcp('--pool', '0', '--readonly', '--workspace', project.path)
    client.initialize()
    listed = [t['name'] for t in client.request('tools/list')['result']['tools']]
    assert 'Read' in listed and 'sandbox_list' in listed
    assert not {'Write', 'Edit', 'sandbox_exec', 'sandbox_create'} & set(listed)
    assert read(client, 'r') == ['1\tr\n']
    assert 'error' in client.request('tools/call', {
        'name': 'Write', 'arguments': {'file_path': 'r', 'content': ''}})
    assert client.close() == 0


# ---- Glob and Grep ---------------------------------------------------------------------------


@pytest.fixture(scope='module')
def tree(mcp, project):
    """Below the folder "tree", the older first."""
    project.folder('tree/src/deep', 'tree/build')
    files = {'tree/.gitignore': 'build/\n', 'tree/build/out.c': 'needle\n',
             'tree/src/a.c': 'one\nneedle = 1;\nthree\n', 'tree/src/deep/b.c': 'Needle\n',
             'tree/src/deep/c.h': 'x\n', 'tree/README': 'needle needle\n',
             b'tree/\xff\n.c': 'needle\n', 'tree/bin': b'needle\n\0needle\n'}
    for n, (name, content) in enumerate(files.items()):
        project.put(name, content)
        os.utime(project.at(name), (1_000_000_000 + n,) * 2)
    return mcp


def test_glob(tree):
    def glob(pattern, **arguments):
        return call(tree, 'Glob', pattern=pattern, path='tree', **arguments)

    assert glob('*.c') == ['file:///workspace/tree/%FF%0A.c\ntree/src/deep/b.c\ntree/src/a.c\n']
    assert glob('src/*.{c,h}') == ['tree/src/a.c\n']
    assert glob('src/**/*.[ch]') == ['tree/src/deep/c.h\ntree/src/deep/b.c\ntree/src/a.c\n']
    files, note = glob('**', limit=2)
    assert files == 'tree/bin\nfile:///workspace/tree/%FF%0A.c\n' and note.startswith('2 of 7')
    assert glob('*.rs') == ['Nothing.']
    assert call(tree, 'Glob', pattern='README', path='/workspace/tree') == ['tree/README\n']
    fails(tree, 'path_not_found', 'Glob', pattern='*', path='--nowhere')
    fails(tree, 'invalid_arguments', 'Glob', pattern='{a')


def test_grep(tree):
    def grep(pattern, **arguments):
        return call(tree, 'Grep', pattern=pattern, path=arguments.pop('path', 'tree'), **arguments)

    lines = ('file:///workspace/tree/%FF%0A.c:1:needle\ntree/README:1:needle needle\n'
             'tree/src/a.c:2:needle = 1;\n')
    found = grep('needle')[0]
    assert sorted(found.splitlines()) == sorted(lines.splitlines())
    assert 'tree/src/deep/b.c:1:Needle\n' in grep('needle', case_insensitive=True, glob='*.c')[0]
    assert grep('needle', path='tree/src/a.c', context=1) == [
        'tree/src/a.c-1-one\ntree/src/a.c:2:needle = 1;\ntree/src/a.c-3-three\n']
    assert 'tree/README:2\n' in grep('needle', output_mode='count')[0]
    names = grep('needle', output_mode='files_with_matches')[0].splitlines()
    assert sorted(names) == sorted(['file:///workspace/tree/%FF%0A.c', 'tree/README',
                                    'tree/src/a.c'])
    assert grep('one\nneedle', multiline=True, output_mode='files_with_matches') == [
        'tree/src/a.c\n']
    assert grep('--help') == ['Nothing.']
    shown, note = grep('needle', head_limit=1)
    assert shown.count('\n') == 1 and 'there are more' in note
    assert grep('needle', head_limit=9, offset=1)[0].count('\n') == 2
    nothing, note = grep('needle', path='tree/bin')
    assert nothing == 'Nothing.' and 'binary file' in note
    failure, _ = fails(tree, 'invalid_arguments', 'Grep', pattern='(')
    assert 'unclosed' in failure['cause']
    fails(tree, 'invalid_arguments', 'Grep', pattern='x', path='tree/nowhere')


def test_grep_shows_a_line_with_many_matches(tree, project):
    """Also of a file that is searched piece by piece, as large ones are, and what is not counted is
    told. Behind it the search goes on."""
    for matches in (1000, 100_000, 1_200_000):
        project.put('line', 'a' * matches + '.' * (1_200_000 - matches) + '\nan end\n')
        shown, *notes = call(tree, 'Grep', pattern='a', path='line')
        first, last = shown.splitlines()
        assert first.startswith('line:1:aaaaa') and first.endswith('[... omitted end of long line]')
        assert last == 'line:2:an end'
        count, *told = call(tree, 'Grep', pattern='a', path='line', output_mode='count')
        n = int(count.split(':')[1])
        assert n == matches + 1 or (10_000 < n < matches and 'too many matches' in told[0]), n
        assert call(tree, 'Grep', pattern='a', path='line', output_mode='files_with_matches')[
            0] == 'line\n'
    os.unlink(project.at('line'))


def test_grep_keeps_secrets_of_several_lines(tree, project):
    body = '\n'.join('MIIEowIBAAKCAQEA' + f'{n:048d}' for n in range(4))
    project.put('tree/key', f'-----BEGIN RSA PRIVATE KEY-----\n{body}\n'
                            '-----END RSA PRIVATE KEY-----\nafter\n')
    shown = call(tree, 'Grep', pattern='.', path='tree/key')[0]
    assert 'MIIE' not in shown and 'tree/key:7:after\n' in shown


def test_searches_are_bounded(tree, project):
    """Much output, and many files of which the newest are wanted."""
    project.put('many', 'needle\n' * 300_000)
    shown, note = call(tree, 'Grep', pattern='needle', path='many', head_limit=10_000)
    assert len(shown) < 400_000 and 'there are more' in note
    box = box_of(tree)
    tree.call('sandbox_exec', sandbox=box, command='mkdir /tmp/m; cd /tmp/m; '
                                                   'seq 20000 | xargs touch; touch -d 2040-01-01 7')
    files, note = call(tree, 'Glob', pattern='[0-9]*', path='/tmp/m', limit=1)
    assert files == '/tmp/m/7\n' and note.startswith('1 of 20000')


# ---- clients ---------------------------------------------------------------------------------


def check_edits(project, clients, edits):
    """Each line was edited once, and no other has changed."""
    assert project.get('shared').decode() == ''.join(
        f'done {who}-{n};\n' for who in range(clients) for n in range(edits))
    for who in range(clients):
        assert project.get(f'p{who}/lib/sum.js') == b'export const sum = (a, b) => a + b;\n'


def test_sdk_over_http(me, project, tmp_path_factory):
    """Four clients, over both transports; together 1,000 edits of one file at once."""
    edits = soak(1000, 10) // 4
    with Rest(me, tmp_path_factory.mktemp('coding'), '--listen', '127.0.0.1:0', '--pool', '0',
              '--workspace', project.path) as hub:
        url = 'http://%s:%d' % hub.address
        server = {'url': f'{url}/mcp', 'token': hub.token}
        old = {'url': f'{url}/sse', 'token': hub.token, 'sse': True}
        node('coding.mjs', {'servers': [server, old, server, old], 'edits': edits})
        assert len(hub.call('GET', '/v1/sandboxes')) == 1
    check_edits(project, 4, edits)


def test_sdk_over_stdio(me, project):
    for path in project.at('p0'), project.at('p1'):
        shutil.rmtree(path, ignore_errors=True)
    if os.path.exists(project.at('shared')):
        os.unlink(project.at('shared'))
    command = me.argv('mcp', '--pool', '0', '--workspace', project.path)
    node('coding.mjs', {'servers': [{'command': command[0], 'args': command[1:], 'env': me.env,
                                     'cwd': '/'}], 'edits': 25})
    check_edits(project, 1, 25)


class Keyed:
    """Calls without a session, by a key of this name."""

    def __init__(self, hub, name):
        self.hub = as_bearer(hub, key(hub, name, ['read', 'execute', 'lifecycle']))
        self.modern = Modern(Door(hub.address, self.hub.cached), '/mcp?tools=coding')

    def request(self, method, params, timeout):
        return self.modern.request(method, params).answer(timeout)

    def boxes(self):
        return [s['id'] for s in self.hub.call('GET', '/v1/sandboxes')]


def test_a_later_key_of_the_name_is_another(me, project, tmp_path_factory):
    """Without a session, too: it has read nothing, and has no sandbox that has ended."""
    project.put('heir', 'one\n')
    with Rest(me, tmp_path_factory.mktemp('coding'), '--listen', '127.0.0.1:0', '--pool', '0',
              '--workspace', project.path) as hub:
        first = Keyed(hub, 'heir')
        read(first, 'heir')
        edit(first, 'heir', 'one', 'two')  # the next call of this key knows what it has read
        box, = first.boxes()
        hub.call('DELETE', '/v1/keys/heir')
        hub.delete(box)
        second = Keyed(hub, 'heir')
        fails(second, 'file_not_read', 'Edit', file_path='heir', old_string='two',
              new_string='three')
        assert project.get('heir') == b'two\n'
    with Rest(me, tmp_path_factory.mktemp('coding'), '--listen', '127.0.0.1:0', '--pool',
              '0') as hub:
        first = Keyed(hub, 'heir')
        call(first, 'Write', file_path='a', content='one\n')
        call(first, 'Read', file_path='a')  # in the same sandbox
        box, = first.boxes()
        hub.call('DELETE', '/v1/keys/heir')
        second = Keyed(hub, 'heir')
        fails(second, 'path_not_found', 'Read', file_path='a')
        assert len(second.boxes()) == 1 and box not in second.boxes()


def filled(letter, size):
    """Lines that Read shows whole."""
    return (letter * 99 + '\n') * (size // 100)


def killed_in_the_middle(me, project, size, ask, begin):
    """Rounds of requests to change a file, and a kill behind a random answer. begin: what a round
    does first. The file is as one of the requests left it, and of no earlier one than was answered
    last."""
    rng = random.Random(20)
    ahead = 12
    project.put('killed', filled(chr(64), size))
    for _ in range(soak(200, 20)):
        client = me.mcp('--pool', '0', '--workspace', project.path)
        client.initialize()
        begin(client)
        was = project.get('killed')[:1]
        asked = [client.start('tools/call', ask(was.decode(), i, size)) for i in range(ahead)]
        last = rng.randrange(ahead)
        for request in asked[:last]:
            assert not client.wait(request)['result'].get('isError')
        client.kill()
        text = project.get('killed')
        assert text.decode() == filled(text[:1].decode(), size)
        assert (last == 0 and text[:1] == was) or text[0] >= 65 + last - 1, (text[:1], was, last)
        until(lambda: not [name for name in os.listdir(project.path) if name.startswith('.holt-')],
              what='the end of what it has left')


def read_after_kill(client):
    """What a killed hub has left may still be tidying up the folder: that is said, and passes."""
    deadline = time.monotonic() + 30
    while True:
        said = answer(client, 'Read', file_path='killed')
        if not said.get('isError'):
            return
        failure = json.loads(texts(said)[0])
        assert failure['code'] == 'conflict' and failure['retryable'], failure
        assert time.monotonic() < deadline, failure


def test_killed_in_the_middle_of_writes(me, project):
    killed_in_the_middle(me, project, 200_000, lambda was, i, size: {
        'name': 'Write', 'arguments': {
            'file_path': 'killed', 'content': filled(chr(65 + i), size)}},
        read_after_kill)


def test_killed_in_the_middle_of_edits(me):
    """In memory, where init does each by itself."""
    project = Project(me, below='/dev/shm')
    try:
        killed_in_the_middle(me, project, 20_000, lambda was, i, size: {
            'name': 'Edit', 'arguments': {
                'file_path': 'killed', 'old_string': filled(chr(64 + i) if i else was, size),
                'new_string': filled(chr(65 + i), size)}}, read_after_kill)
    finally:
        # what the killed hub has left may still be at work in it
        until(lambda: shutil.rmtree(project.path, ignore_errors=True)
              or not os.path.exists(project.path), what='the end of its folder')


# ---- large workspaces ------------------------------------------------------------------------


def peak_of(client):
    """The most memory that the hub ever had, in KiB."""
    with open(f'/proc/{client.proc.pid}/status', encoding='ascii') as f:
        return int(re.search(r'VmHWM:\s*(\d+) kB', f.read())[1])


def test_memory_is_bounded_in_large_workspaces(me):
    """100,000 files, and one of two gibibytes in which the hub has nothing to keep."""
    before = host.Residue(me.trees)
    project = Project(me, '/dev/shm')  # a disk would take minutes for so many names
    folders, each = 100, soak(1000)
    for n in range(folders):
        os.mkdir(project.at(f'd{n}'))
        for k in range(each):
            with open(project.at(f'd{n}/f{k}.txt'), 'w', encoding='ascii') as f:
                f.write(f'needle {n} {k}\n')
    size = soak(2 << 30)
    line = b'y' * 99 + b'\n'
    with open(project.at('huge'), 'wb') as f:
        for _ in range(size // (len(line) << 14)):
            f.write(line * (1 << 14))
        f.write(b'needle at the end\n')
    os.chown(project.path, me.uid, me.uid)
    client = me.mcp('--pool', '0', '--workspace', project.path)
    client.initialize()
    try:
        files, note = call(client, 'Glob', pattern='**', limit=1000)
        assert files.count('\n') == 1000 and note.startswith(f'1000 of {folders * each + 1}')
        shown, note = call(client, 'Grep', pattern='needle', head_limit=10_000)
        assert shown.count('\n') <= 10_000 and 'there are more' in note
        shown = call(client, 'Grep', pattern=f'needle {folders - 1} {each - 1}$')[0]
        assert shown == f'd{folders - 1}/f{each - 1}.txt:1:needle {folders - 1} {each - 1}\n'
        assert call(client, 'Grep', pattern='at the end', path='huge') == [
            f'huge:{(os.path.getsize(project.at("huge")) - 18) // 100 + 1}:needle at the end\n']
        lines, note = call(client, 'Read', file_path='huge', limit=2)
        assert lines.startswith('1\tyyy') and 'offset 3' in note
        last = (os.path.getsize(project.at('huge')) - 18) // 100 + 1
        assert call(client, 'Read', file_path='huge', offset=last) == [
            f'{last}\tneedle at the end\n']
        lines, _ = call(client, 'Read', file_path='huge', offset=last // 2, limit=1)
        assert lines.startswith(f'{last // 2}\tyyy')
        assert peak_of(client) < 120_000, peak_of(client)
    finally:
        assert client.close() == 0
        shutil.rmtree(project.path)
    before.check()


# ---- what is missing ---------------------------------------------------------------------------

WITHOUT_RG = ('mount -t tmpfs none "$0" && mkdir "$0/up" "$0/work" && '
              'mount -t overlay overlay -o "lowerdir=/usr,upperdir=$0/up,workdir=$0/work" /usr && '
              'rm -f /usr/bin/rg /usr/local/bin/rg && exec "$@"')


def test_a_sandbox_without_ripgrep_is_told(me, project, tmp_path):
    """With the way to get it; Bash and the others work."""
    if os.getuid():
        pytest.skip('only root can hide a program of the host')
    who = copy.copy(me)
    who.prefix = ['unshare', '-m', 'sh', '-c', WITHOUT_RG, str(tmp_path), *me.prefix]
    client = who.mcp('--pool', '0', '--workspace', project.path)
    client.initialize()
    project.put('there', 'needle\n')
    for name, arguments in (('Glob', {'pattern': '*'}), ('Grep', {'pattern': 'needle'})):
        failure, _ = fails(client, 'program_missing', name, **arguments)
        assert 'ripgrep' in failure['cause'] and 'package' in failure['cause'], failure
    assert 'needle' in call(client, 'Bash', command='grep needle there')[0]
    assert read(client, 'there') == ['1\tneedle\n']
    assert client.close() == 0
