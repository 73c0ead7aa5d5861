"""Bytes in and out: output of programs, files, trees; copies of whole sandboxes."""

import base64
import json
import os
import shutil

from hub import seconds_of, shell
from table import Section, median

FILE_MB, OUTPUT_MB, PIECE = 16, 512, 4 << 20
FORKED_MB = 100
SPLIT = 'split -b 1000000 -a 3 -'


def bwrap(*folders):
    """Everything unshared; these folders can be written to."""
    return ('bwrap --unshare-all --die-with-parent --ro-bind / / --proc /proc --dev /dev '
            + ' '.join(f'--bind {folder} {folder}' for folder in folders))


def empty(path):
    shutil.rmtree(path, ignore_errors=True)
    os.mkdir(path)
    return path


def times_of(rounds, line, before=lambda: None):
    took = []
    for _ in range(rounds):
        before()
        took.append(seconds_of(shell, line))
    return took


def hub_seconds(hub, rounds, *request):
    return [us / 1e6 for us in hub.load('transfer', rounds, *request)['transfer']]


# ---- output and files

def measure_bytes(hub, rounds):
    s = Section()
    s.table('bytes', 'who', 'MB/s')

    def row(what, who, mb, seconds):
        s.row(what, who, f'{mb / median(seconds):.0f}')

    def request(name, **body):
        path = os.path.join(hub.work, name)
        with open(path, 'w', encoding='ascii') as f:
            json.dump({'sandbox': sandbox, **body}, f)
        return 'application/json', path

    sandbox = hub.create()
    command = f'head -c {OUTPUT_MB}000000 /dev/zero'
    row(f'{OUTPUT_MB} MB of stdout', 'a pipe to cat', OUTPUT_MB,
        times_of(rounds, f'{command} | cat >/dev/null'))
    row('the same', 'bwrap, a pipe to cat', OUTPUT_MB,
        times_of(rounds, f'{bwrap()} {command} | cat >/dev/null'))
    row('the same', 'holt, WebSocket', OUTPUT_MB,
        [us / 1e6 for us in hub.load('output', sandbox, rounds, command)['transfer']])
    kept = request('kept', command=command, timeout=120)
    row('the same', 'holt, a stream of base64', OUTPUT_MB,
        hub_seconds(hub, rounds, 'POST', '/v1/exec/stream', *kept))
    row('the same', 'holt, 1 MiB of it kept', OUTPUT_MB,
        hub_seconds(hub, rounds, 'POST', '/v1/exec', *kept))

    file, copy = (os.path.join(hub.memory, name) for name in ('file', 'copy'))
    data = os.urandom(FILE_MB * 1000000)
    with open(file, 'wb') as f:
        f.write(data)
    for who, prefix in (('cat', ''), ('bwrap cat', bwrap(hub.memory) + ' ')):
        row(f'a file of {FILE_MB} MB', who, FILE_MB,
            times_of(rounds, f'{prefix}cat <{file} >{copy}'))
    write = request('write', path='f', content=base64.b64encode(data).decode(), encoding='base64')
    row('the same in', 'holt, base64', FILE_MB,
        hub_seconds(hub, rounds, 'POST', '/v1/files/write', *write))
    read = request('read', path='f', encoding='base64', limit=PIECE)
    row('4 MiB of it out', 'holt, base64', PIECE / 1e6,
        hub_seconds(hub, 4 * rounds, 'POST', '/v1/files/read', *read))
    hub.delete(sandbox)
    return s


# ---- trees

def measure_trees(hub, rounds, trees):
    """trees: (files, bytes of each)"""
    s = Section()
    s.table('a tree as tar', 'who', 'in MB/s', 'out MB/s', 'in files/s', 'out files/s')
    for files, size in trees:
        tree, archive = (empty(os.path.join(hub.memory, 'tree')),
                         os.path.join(hub.memory, 'tree.tar'))
        back = os.path.join(hub.memory, 'back')
        for i in range(files):
            with open(os.path.join(tree, f'{i:06}'), 'wb') as f:
                f.write(os.urandom(size))
        shell(f'tar -C {tree} -cf {archive} .')
        sandbox = hub.create(limits={'memory_mb': 2048, 'disk_mb': 1024})
        url = f'/v1/sandboxes/{sandbox}/archive?path=t'
        hub.exec(sandbox, 'mkdir t')
        # What comes in the second time replaces what is there, of all alike.
        rows = (
            ('tar over a pipe', times_of(rounds, f'cat {archive} | tar -xf - -C {empty(back)}'),
             times_of(rounds, f'tar -C {tree} -cf - . | cat >/dev/null')),
            ('bwrap tar over a pipe',
             times_of(rounds, f'cat {archive} | {bwrap(hub.memory)} tar -xf - -C {empty(back)}'),
             times_of(rounds, f'{bwrap(hub.memory)} tar -C {tree} -cf - . | cat >/dev/null')),
            ('holt', hub_seconds(hub, rounds, 'PUT', url, 'application/x-tar', archive),
             hub_seconds(hub, rounds, 'GET', url, '-', '-')))
        for who, come, go in rows:
            s.row(f'{files} files of {size} bytes', who,
                  *(f'{files * size / 1e6 / median(t):.0f}' for t in (come, go)),
                  *(f'{files / median(t):.0f}' for t in (come, go)))
        hub.delete(sandbox)
        for path in (tree, back):
            shutil.rmtree(path)
        os.unlink(archive)
    return s


# ---- copies of sandboxes

def measure_forks(hub, rounds, counts):
    s = Section()
    fill = f'mkdir d && cd d && head -c {FORKED_MB}000000 /dev/urandom | {SPLIT}'
    tree = empty(os.path.join(hub.memory, 'tree'))
    shell(fill, cwd=tree)
    copies = times_of(rounds, f'cp -a {tree} {hub.memory}/copies',
                      lambda: shutil.rmtree(f'{hub.memory}/copies', ignore_errors=True))
    for path in (tree, f'{hub.memory}/copies'):
        shutil.rmtree(path)
    s.table(f'a sandbox with {FORKED_MB} MB written', 'who', 'ms', 'ms each')
    s.row('one copy of the files, in memory', 'cp -a', median(copies) * 1e3, median(copies) * 1e3)
    for count in counts:
        took = []
        for _ in range(rounds):
            sandbox = hub.create()
            hub.exec(sandbox, fill)
            made = []
            took.append(seconds_of(lambda: made.extend(
                hub.ask('POST', f'/v1/sandboxes/{sandbox}/fork', {'count': count})['sandboxes'])))
            hub.delete(sandbox, *(child['id'] for child in made))
        s.row(f'fork of {count}', 'holt', median(took) * 1e3, median(took) * 1e3 / count)
    return s


def checksum(hub, sandbox):
    return hub.exec(sandbox, 'cat d/* | wc -c; ls d | wc -l; cksum d/xaab')


def snapshots_of(hub, rounds, mb, source):
    """[seconds to take], [seconds to restore], bytes kept"""
    taken, restored, kept = [], [], 0
    sandbox = hub.create(limits={'memory_mb': mb + 1024, 'disk_mb': mb + 128})
    hub.exec(sandbox, f'mkdir d && cd d && head -c {mb}000000 {source} | {SPLIT}')
    expected = checksum(hub, sandbox)
    for _ in range(rounds):
        answers = []
        taken.append(seconds_of(lambda: answers.append(
            hub.ask('POST', f'/v1/sandboxes/{sandbox}/snapshots', {}))))
        snapshot, kept = answers[0]['id'], answers[0]['bytes']
        restored.append(seconds_of(lambda: answers.append(
            hub.ask('POST', f'/v1/snapshots/{snapshot}/restore', {}))))
        if checksum(hub, answers[1]['id']) != expected:
            raise SystemExit('bench: a restored sandbox has other files')
        hub.delete(answers[1]['id'])
        hub.ask('DELETE', f'/v1/snapshots/{snapshot}')
    hub.delete(sandbox)
    return taken, restored, kept


def size_of(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(where, name)) for where, _, names in os.walk(path)
               for name in names)


def peer_copies(hub, rounds, mb, source):
    """(name, [seconds to take], [seconds to restore], bytes kept):
    from memory through to the disk, and back."""
    tree, back = empty(os.path.join(hub.memory, 'tree')), os.path.join(hub.memory, 'back')
    shell(f'mkdir d && cd d && head -c {mb}000000 {source} | {SPLIT}', cwd=tree)
    kept = os.path.join(hub.work, 'kept')
    for name, take, restore in (
            ('cp -a', f'cp -a {tree} {kept}; sync -f {kept}', f'cp -a {kept}/. {back}'),
            ('tar, zstd -1', f'tar -C {tree} -cf - . | zstd -1 -q >{kept}; sync {kept}',
             f'zstd -dcq {kept} | tar -xf - -C {back}')):
        taken, restored, size = [], [], 0
        for _ in range(rounds):
            shell(f'rm -rf {kept}')
            taken.append(seconds_of(shell, take))
            size = size_of(kept)
            empty(back)
            restored.append(seconds_of(shell, restore))
        shell(f'rm -rf {kept} {back}')
        yield name, taken, restored, size
    shutil.rmtree(tree)


def measure_snapshots(hub, rounds, mb):
    s = Section()
    s.table(f'{mb} MB in files of 1 MB', 'who', 'taken s', 'MB/s', 'restored s', 'MB/s', 'kept MB')
    for kind, source in (('random', '/dev/urandom'), ('zeros', '/dev/zero')):
        for name, taken, restored, kept in (*peer_copies(hub, rounds, mb, source),
                                            ('holt', *snapshots_of(hub, rounds, mb, source))):
            s.row(kind, name, median(taken), f'{mb / median(taken):.0f}', median(restored),
                  f'{mb / median(restored):.0f}',
                  f'{kept / 1e6:.1f}')
    return s
