"""Workspaces as archives: in and out as tar, hostile ones, and out as a branch of git."""

import datetime
import io
import json
import os
import subprocess
import tarfile

import pytest

from rest import fails
from test_hub_cli import Hub as Cli
from test_workspace_history import diff, log, made
from test_workspaces import hub  # noqa: F401, a fixture


def archive(*entries):
    """Of (name, type, content or link)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as tar:
        for name, kind, content in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, 0o755 if kind == tarfile.DIRTYPE else 0o640
            data = content if kind == tarfile.REGTYPE else b''
            if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
                info.linkname = content
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


FILE, LINK, HARD, DIR = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE


def import_(hub, name, data, query=''):
    head = hub.request('POST', f'/v1/workspaces/{name}/import{query}', fields=[
        'Content-Type: application/x-tar', f'Content-Length: {len(data)}'])
    with hub.wire() as wire:
        wire.send(head.encode() + data)
        return wire.reply()


def ok(reply):
    assert reply.status == 200, reply
    return json.loads(reply.body)


def test_in_and_out(hub):
    hub.new('tarred')
    told = ok(import_(hub, 'tarred', archive(
        ('d', DIR, b''), ('d/f', FILE, b'hello'), ('l', LINK, '/etc/passwd'), ('h', HARD, 'd/f'),
        ('n\udcff\n', FILE, b'x'), ('.env', FILE, b'secret'), ('big', FILE, os.urandom(3000000))),
        '?message=from%20a%20tar'))
    assert (told['files'], told['left_out'], told['left_out_names']) == (6, 1, '.env')
    assert log(hub, 'tarred')['revisions'][0]['message'] == 'from a tar'
    sandbox = hub.open('tarred')
    assert hub.sh(sandbox, 'cat d/f h; readlink l; stat -c "%a %s" d/f big') == \
        'hellohello/etc/passwd\n640 5\n640 3000000\n'
    fails(409, 'conflict', hub.call, 'POST', '/v1/workspaces/tarred/revert',
          {'revision': told['revision']})
    assert import_(hub, 'tarred', archive()).status == 409
    hub.finish(sandbox, '?discard=true')
    whole = hub.raw('GET', '/v1/workspaces/tarred/export').body
    with tarfile.open(fileobj=io.BytesIO(whole), errors='surrogateescape') as tar:
        assert sorted(tar.getnames()) == ['big', 'd', 'd/f', 'h', 'l', 'n\udcff\n']
        assert tar.extractfile('d/f').read() == b'hello' and tar.getmember('d/f').mode == 0o640
    hub.new('again')
    again = ok(import_(hub, 'again', whole))
    assert (again['added_bytes'], again['files'], again['bytes']) == (0, 6, told['bytes'])
    again = ok(import_(hub, 'again', whole))
    assert not again['changed']
    less = ok(import_(hub, 'again', archive(('only', FILE, b'1'))))
    assert less['files'] == 1
    assert hub.raw('GET', f'/v1/workspaces/again/export?revision={again["revision"]}').body == whole
    assert [c['change'] for c in diff(hub, 'again')['changes']].count('removed') == 6


HOSTILE = {
    'upwards': archive(('../f', FILE, b'x')),
    'upwards inside': archive(('a/../../f', FILE, b'x')),
    'a hard link out': archive(('h', HARD, '../../etc/passwd')),
    'a hard link to nothing': archive(('h', HARD, 'etc/passwd')),
    'a device': archive(('dev', tarfile.CHRTYPE, b'')),
    'a pipe': archive(('pipe', tarfile.FIFOTYPE, b'')),
    'cut': archive(('f', FILE, b'x' * 5000))[:2000],
    'no end': archive(('f', FILE, b'x'))[:1024],
    'no archive': b'x' * 4096,
    'deep': archive(('d/' * 70 + 'f', FILE, b'x')),
    'a long name': archive(('x' * 300, FILE, b'x')),
}


@pytest.mark.parametrize('which', HOSTILE)
def test_hostile_archives(hub, which):
    name = 'hostile-' + which.replace(' ', '-')
    before = hub.new(name)
    reply = import_(hub, name, HOSTILE[which])
    assert reply.status in (400, 413), reply
    assert hub.of(name) == before
    assert ok(import_(hub, name, archive(('f', FILE, b'x'))))['files'] == 1  # the control


def test_links_are_never_followed(hub):
    """What is below a link is not where it points to."""
    hub.new('links')
    ok(import_(hub, 'links', archive(('out', LINK, '/tmp'), ('out/holt-ws-escape', FILE, b'x'))))
    assert not os.path.lexists('/tmp/holt-ws-escape')
    sandbox = hub.open('links')
    hub.sh(sandbox, 'ls -la out; ! test -e /tmp/holt-ws-escape')
    hub.finish(sandbox)


def test_a_slow_client_holds_up_nobody(hub):
    hub.new('slow')
    data = archive(('f', FILE, b'x' * 100000))
    with hub.wire() as wire:
        wire.send(hub.request('POST', '/v1/workspaces/slow/import', fields=[
            'Content-Type: application/x-tar', f'Content-Length: {len(data)}']).encode()
            + data[:5000])
        made(hub, 'beside-slow', 'echo 1 > f')
        wire.send(data[5000:])
        assert wire.reply().status == 200
    assert hub.of('slow')['bytes'] == 100000
    with hub.wire() as wire:
        wire.send(hub.request('POST', '/v1/workspaces/slow/import', fields=[
            'Content-Type: application/x-tar', f'Content-Length: {len(data)}']).encode()
            + data[:5000])
    made(hub, 'beside-gone', 'echo 1 > f')
    assert hub.of('slow')['bytes'] == 100000


def test_a_reader_that_stands_still(hub):
    """An export that is not read holds up neither commits nor diffs."""
    hub.new('still')
    ok(import_(hub, 'still', archive(('big', FILE, os.urandom(40000000)))))
    with hub.wire() as wire:
        wire.send(hub.request('GET', '/v1/workspaces/still/export').encode())
        for i in range(3):
            made(hub, f'beside-still-{i}', 'echo 1 > f')
            assert diff(hub, f'beside-still-{i}')['changes']
        assert len(wire.reply().body) > 40000000
    with hub.wire() as wire:
        wire.send(hub.request('GET', '/v1/workspaces/still/export').encode())
    hub.call('GET', '/v1/workspaces/still')


@pytest.fixture(scope='module')
def cli(me, tmp_path_factory):
    with Cli(me, tmp_path_factory.mktemp('ws-archive'), '--listen', 'none', '--pool',
             '0') as shared:
        yield shared


def git(folder, *words):
    return subprocess.run(['git', '-C', folder, *words], check=True, capture_output=True,
                          env={'PATH': os.environ['PATH'], 'GIT_CONFIG_GLOBAL': '/dev/null',
                               'HOME': '/nonexistent'}).stdout.decode(errors='surrogateescape')


def test_the_command_line(cli, tmp_path):
    folder = tmp_path / 'in'
    (folder / 'd').mkdir(parents=True)
    (folder / 'd/f').write_text('one\n')
    (folder / 'run').write_text('#!/bin/sh\n')
    (folder / 'run').chmod(0o755)
    (folder / 'l').symlink_to('d/f')
    (folder / 'id_rsa').write_text('key')
    cli.ok('ws', 'create', 'cli')
    done = cli.run('ws', 'import', 'cli', str(folder), '-m', 'by hand')
    assert done.returncode == 0 and b'id_rsa' in done.stderr, done
    one = done.stdout.decode().strip()
    assert cli.json('ws', 'log', 'cli')[0]['revision'] == one
    out = tmp_path / 'out.tar'
    cli.ok('ws', 'export', 'cli', str(out))
    with tarfile.open(out) as tar:
        assert sorted(tar.getnames()) == ['d', 'd/f', 'l', 'run']
    assert cli.ok('ws', 'export', 'cli', '-') == out.read_bytes()
    (folder / 'd/f').write_text('two\n')
    cli.ok('ws', 'import', 'cli', str(folder))
    cli.ok('ws', 'import', 'cli', '-', input=out.read_bytes())
    assert cli.ok('ws', 'diff', 'cli', one) == b''
    cli.fails(125, 'no-such-file', 'ws', 'import', 'cli', str(tmp_path / 'no-such-file'))
    cli.fails(125, 'archive', 'ws', 'import', 'cli', '/etc/passwd')
    assert cli.ok('ws', 'export', '-r', one, 'cli', '-') == out.read_bytes()


def test_a_branch_of_git(cli, tmp_path):
    """A commit for each export; nothing of the repository runs."""
    repository = str(tmp_path / 'repository')
    os.mkdir(repository)
    git(repository, 'init', '-q')
    trap = tmp_path / 'trap'
    script = tmp_path / 'hook'
    script.write_text(f'#!/bin/sh\ntouch {trap}\n')
    script.chmod(0o755)
    for hook in ('reference-transaction', 'post-commit', 'pre-auto-gc', 'update'):
        os.symlink(script, f'{repository}/.git/hooks/{hook}')
    git(repository, '-c', 'core.hooksPath=/dev/null', 'config', 'core.fsmonitor', str(script))
    folder = tmp_path / 'in'
    (folder / '.git/hooks').mkdir(parents=True)
    (folder / '.git/config').write_text('[core]\n')
    (folder / 'd').mkdir()
    (folder / 'd/f').write_text('one\n')
    (folder / 'run').write_bytes(b'#!/bin/sh\n\0')
    (folder / 'run').chmod(0o755)
    (folder / 'l').symlink_to('d/f')
    (folder / 'a "q"\n').write_text('odd')
    cli.ok('ws', 'create', 'git')
    cli.ok('ws', 'import', 'git', str(folder), '-m', 'the first')
    one = cli.ok('ws', 'export', 'git', repository, '--git').decode().strip()
    (folder / 'd/f').write_text('two\n')
    (folder / 'run').unlink()
    cli.ok('ws', 'import', 'git', str(folder), '-m', 'the second')
    two = cli.ok('ws', 'export', 'git', repository, '--git').decode().strip()
    assert not trap.exists()
    head = ('-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null')
    assert git(repository, *head, 'rev-list', 'holt/git').split() == [two, one]
    assert git(repository, *head, 'ls-tree', '-rz', '--name-only', one).split('\0')[:-1] == [
        'a "q"\n', 'd/f', 'l', 'run']
    assert git(repository, *head, 'show', f'{two}:d/f') == 'two\n'
    assert '100755 blob' in git(repository, *head, 'ls-tree', one, 'run')
    assert '120000 blob' in git(repository, *head, 'ls-tree', one, 'l')
    assert git(repository, *head, 'log', '--format=%s', 'holt/git') == 'the second\nthe first\n'
    assert git(repository, *head, 'status', '--porcelain') == ''  # nothing else has changed
    old = cli.json('ws', 'log', 'git')[1]['revision']
    three = cli.ok('ws', 'export', 'git', repository, '--git', '-r', old).decode().strip()
    assert git(repository, *head, 'diff', '--stat', one, three) == ''
    done = cli.run('ws', 'export', 'git', str(tmp_path / 'nothing'), '--git')
    assert done.returncode == 125, done
    assert not trap.exists()


def test_the_history_as_commits(cli, tmp_path):
    """Each revision with its message and time; later only those that came since."""
    repository, folder = str(tmp_path / 'repository'), tmp_path / 'in'
    git(str(tmp_path), 'init', '-q', repository)
    folder.mkdir()
    cli.ok('ws', 'create', 'tale')

    def tell(text, message):
        (folder / 'f').write_text(text)
        cli.ok('ws', 'import', 'tale', str(folder), '-m', message)

    def export(*more):
        return cli.ok('ws', 'export', 'tale', repository, '--git', *more).decode().strip()

    def commits():
        return git(repository, 'log', '--format=%s', 'holt/tale').split('\n')[:-1]

    tell('1', 'one')
    first = cli.json('ws', 'log', 'tale')[0]['revision']
    tell('2', f'two\n\nHolt-Revision: {first}')
    tell('3', 'three')
    tip = export('--history')
    start = ['three', 'two', 'one', 'Revision of a workspace']  # the last is empty
    assert commits() == start and export('--history') == tip
    assert [git(repository, 'show', f'{tip}~{n}:f') for n in range(3)] == ['3', '2', '1']
    made_at = [datetime.datetime.fromisoformat(r['created_at'].replace('Z', '+00:00'))
               for r in cli.json('ws', 'log', 'tale')]
    times = git(repository, 'log', '--format=%ct', 'holt/tale').split()
    assert times == [str(int(t.timestamp())) for t in made_at]
    tell('4', f'four\n\nHolt-Revision: {first}')
    assert git(repository, 'rev-parse', export('--history') + '~') == tip + '\n'
    tell('5', 'five')
    assert git(repository, 'rev-parse', export() + '~2') == tip + '\n'
    assert export('--history') and commits() == ['five', 'four', *start]
    for words in (('--history',), ('--git', '--history', '-r', first)):
        done = cli.run('ws', 'export', 'tale', repository, *words)
        assert done.returncode != 0 and b'--history' in done.stderr, done
