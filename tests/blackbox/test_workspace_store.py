"""What is stored of workspaces: what nobody needs goes, beside those who write; what is damaged is
told; a kill leaves the old or the new."""

import contextlib
import os
import shutil
import threading

import pytest

from client import until
from rest import Failed
from test_hub_cli import Hub as Cli
from test_workspace_history import log, made
from test_workspaces import Hub, hub  # noqa: F401, a fixture


def objects(hub):
    found = {}
    for folder, _, names in os.walk(hub.folder + '/objects'):
        for path in (os.path.join(folder, name) for name in names):
            with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                found[path] = os.path.getsize(path)
    return found


def trees(hub):
    return os.listdir(hub.folder + '/trees')


def gc(hub):
    return hub.call('DELETE', '/v1/workspaces-garbage')


def verify(hub, name):
    return hub.call('GET', f'/v1/workspaces/{name}/verify')


def clear(hub):
    for workspace in hub.call('GET', '/v1/workspaces')['workspaces']:
        hub.call('DELETE', f'/v1/workspaces/{workspace["workspace"]}')
    gc(hub)


def test_what_nobody_needs_goes(hub):
    clear(hub)
    made(hub, 'stays', 'head -c 300000 /dev/urandom > a; echo same > same')
    before = objects(hub)
    made(hub, 'goes', 'head -c 900000 /dev/urandom > b; echo same > same; mkdir d; echo 1 > d/f',
         'head -c 900000 /dev/urandom > b')
    hub.post('/v1/workspaces/goes/fork', fork='fork')
    assert gc(hub)['removed'] == 0
    hub.call('DELETE', '/v1/workspaces/goes')
    told = gc(hub)
    assert (told['removed'], told['revisions']) == (0, 0)  # the fork has them
    assert verify(hub, 'fork')['damaged'] == 0
    hub.call('DELETE', '/v1/workspaces/fork')
    told = gc(hub)
    assert told['removed_bytes'] > 1800000 and told['revisions'] == 3
    assert objects(hub) == before and told['kept'] == len(before)
    assert sum(before.values()) == told['kept_bytes']
    assert len([name for name in trees(hub) if len(name) == 64]) <= 2
    assert verify(hub, 'stays')['damaged'] == 0


def test_it_happens_by_itself(hub):
    clear(hub)
    before = objects(hub)
    made(hub, 'brief', 'head -c 300000 /dev/urandom > a')
    hub.call('DELETE', '/v1/workspaces/brief')
    until(lambda: objects(hub) == before, timeout=90)


def test_what_a_failed_commit_left_goes(hub):
    clear(hub)
    made(hub, 'failing', 'echo 1 > f')
    before = objects(hub)
    sandbox = hub.open('failing')
    hub.sh(sandbox, 'head -c 300000 /dev/urandom > a; p=$(printf "d/%.0s" $(seq 70)); mkdir -p $p')
    with pytest.raises(Failed):
        hub.commit('failing')
    hub.finish(sandbox, '?discard=true')
    gc(hub)
    assert objects(hub) == before


def test_beside_commits_and_deletes(hub):
    """Nothing that is needed goes, also where a commit puts again what nobody needed."""
    clear(hub)
    stop = threading.Event()
    wrong = []

    def collect():
        while not stop.is_set():
            try:
                gc(hub)
            except Failed as e:
                wrong.append(e)

    def work(name):
        try:
            for round_ in range(6):
                made(hub, f'{name}-{round_}', 'for i in $(seq 300); do echo $i > f$i; done; mkdir d'
                     '; head -c 200000 /dev/zero > d/z', f'echo {name} {round_} > own; rm -r d')
                if round_:
                    hub.call('DELETE', f'/v1/workspaces/{name}-{round_ - 1}')
        except Exception as e:  # pylint: disable=broad-except
            wrong.append(e)

    threads = [threading.Thread(target=work, args=(name,)) for name in ('one', 'two')]
    collector = threading.Thread(target=collect)
    for thread in [*threads, collector]:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    collector.join()
    assert not wrong, wrong
    for name in ('one-5', 'two-5'):
        told = verify(hub, name)
        assert (told['damaged'], told['revisions']) == (0, 3), told
        sandbox = hub.open(name)
        assert hub.sh(sandbox, 'ls | wc -l; cat f299 own') == f'301\n299\n{name[:3]} 5\n'
        hub.finish(sandbox)


def test_damage_is_told(hub):
    clear(hub)
    ids = made(hub, 'damaged', 'mkdir d; echo one > d/f; head -c 900000 /dev/urandom > big',
               'echo two > d/f')
    good = verify(hub, 'damaged')
    assert (good['revisions'], good['damaged'], good['damages']) == (3, 0, [])
    assert good['bytes'] == 900008
    files = objects(hub)
    piece = next(path for path in files if open(path, 'rb').read() == b'cone\n')
    largest = max(files, key=files.get)
    with open(piece, 'r+b') as f:
        f.seek(2)
        f.write(b'X')
    os.unlink(largest)
    told = verify(hub, 'damaged')
    assert told['damaged'] == 2
    assert {(d['number'], d['revision'], d['path']) for d in told['damages']} == {
        (3, ids[2], 'big'), (2, ids[1], 'd/f')}
    assert all('damaged' in d['why'] or 'missing' in d['why'] for d in told['damages'])
    clear(hub)


def test_nothing_goes_where_marks_are_missing(hub):
    """A directory that can't be read hides what it needs."""
    clear(hub)
    made(hub, 'hidden', 'mkdir d; echo one > d/inner')
    made(hub, 'other', 'echo other > f')
    hub.call('DELETE', '/v1/workspaces/other')
    tree, was = next((path, data) for path, data in
                     ((path, open(path, 'rb').read()) for path in objects(hub))
                     if data[:2] == b'tf' and b'inner' in data)
    os.unlink(tree)
    before = objects(hub)
    with pytest.raises(Failed) as told:
        gc(hub)
    assert told.value.code == 'internal_error' or 'missing' in told.value.error['cause']
    assert objects(hub) == before
    with open(tree, 'wb') as f:
        f.write(was)
    os.chown(tree, hub.who.uid, hub.who.uid)
    gc(hub)
    assert verify(hub, 'hidden')['damaged'] == 0
    clear(hub)


def test_the_next_hub_goes_on(who):
    home = f'{who.work}/next'
    os.mkdir(home, 0o700)
    os.chown(home, who.uid, who.uid)
    first = Hub(who, home, '--pool', '0')
    try:
        made(first, 'kept', 'echo 1 > f', 'echo 2 > f')
        made(first, 'gone', 'head -c 300000 /dev/urandom > a')
        before = objects(first)
        first.call('DELETE', '/v1/workspaces/gone')
    finally:
        first.kill()
    with Hub(who, home, '--pool', '0') as second:
        assert len(log(second, 'kept')['revisions']) == 3
        gc(second)
        assert len(objects(second)) < len(before)
        assert verify(second, 'kept')['damaged'] == 0
    shutil.rmtree(home)


@pytest.fixture(scope='module')
def cli(me, tmp_path_factory):
    with Cli(me, tmp_path_factory.mktemp('ws-store'), '--listen', 'none', '--pool', '0') as shared:
        yield shared


def test_the_command_line(cli):
    box = None
    cli.ok('ws', 'create', 'cli')
    box = cli.ok('up', '--workspace', 'cli').decode().strip()
    cli.ok('exec', box, '--', 'sh', '-c', r'echo damaged > "$(printf "a\\033b")"')
    cli.ok('down', box)
    assert b' 0 damaged\n' in cli.ok('ws', 'verify', 'cli')
    folder = os.path.join(cli.env['HOLT_HOME'], 'workspaces/objects')
    for path in [os.path.join(f, n) for f, _, names in os.walk(folder) for n in names]:
        if open(path, 'rb').read() == b'cdamaged\n':
            os.unlink(path)
    done = cli.run('ws', 'verify', 'cli')
    assert done.returncode == 3 and b' 1 damaged\n' in done.stdout and b'\x1b' not in done.stdout
    assert done.stdout.startswith(b'revision 2, /a'), done
    assert cli.run('ws', 'verify', 'cli', '-o', 'json').returncode == 3
    cli.ok('ws', 'rm', 'cli')
    assert b'are in use' in cli.ok('ws', 'gc')
    assert cli.json('ws', 'gc')['kept'] == 0
    cli.fails(125, 'no workspace', 'ws', 'verify', 'cli')
