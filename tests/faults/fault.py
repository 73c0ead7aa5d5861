"""Drives tests/faults/fault.c, which is loaded into a hub: system calls on its data folder fail,
end it, or are recorded so that the folder can be rebuilt as a power cut leaves it."""

import contextlib
import ctypes
import errno
import mmap
import os
import shutil
import struct
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ('open', 'read', 'write', 'sync', 'rename', 'unlink', 'mkdir', 'readdir', 'link',
         'truncate', 'look')
CHANGES = ('write', 'sync', 'rename', 'unlink', 'mkdir', 'link', 'truncate')
MODES = ('fail', 'done', 'kill_before', 'kill_after')
PLAN = struct.Struct('7i64s')
LAST = 1 << 30
# Contents that holt-pack syncs, which the library is not in; their names are the hub's.
BY_OTHERS = '.tar.zst'


def build(folder):
    """Compiles the library; its path."""
    to = os.path.join(folder, 'fault.so')
    subprocess.run([os.environ.get('CC', 'cc'), '-shared', '-fPIC', '-O1', '-D_GNU_SOURCE', '-w',
                    '-o', to, os.path.join(HERE, 'fault.c'), '-ldl', '-pthread'], check=True)
    os.chmod(to, 0o755)
    return to


class Fault:
    """Of one data folder. `place` is a folder for its own files."""

    def __init__(self, library, root, place, uid=None, power=False):
        self.root, self.power = os.path.realpath(root), os.path.join(place, 'power')
        plan = os.path.join(place, 'plan')
        with open(plan, 'wb') as f:
            f.write(bytes(PLAN.size))
        os.makedirs(self.power, exist_ok=True)
        for path in (plan, self.power):
            os.chmod(path, 0o777)
        with open(plan, 'r+b') as f:
            self.map = mmap.mmap(f.fileno(), PLAN.size)
        self.library = ctypes.CDLL(library)
        self.env = {'LD_PRELOAD': library, 'FAULT_ROOT': self.root, 'FAULT_PLAN': plan}
        if power:
            self.env['FAULT_POWER'] = self.power

    def arm(self, kind, mode='fail', nth=1, last=None, why=errno.EIO, match=''):
        """kind: one, or several, which are counted together. nth: the first call that is hit; last:
        the last one (None: that one alone)."""
        kinds = sum(1 << KINDS.index(k) for k in ((kind,) if isinstance(kind, str) else kind))
        self.map[:] = PLAN.pack(kinds, MODES.index(mode), why, nth, last or nth, 0, 1,
                                match.encode())

    def disarm(self):
        """How many calls matched."""
        plan = PLAN.unpack(self.map[:])
        self.map[:] = bytes(PLAN.size)
        return plan[5]

    @contextlib.contextmanager
    def armed(self, *arguments, **options):
        self.arm(*arguments, **options)
        try:
            yield
        finally:
            self.count = self.disarm()

    # ---- power

    def names(self, folder):
        folders = {}
        with open(os.path.join(folder, 'log'), encoding='utf-8', errors='surrogateescape') as f:
            for line in f:
                what, folder, *rest = line.rstrip('\n').split(' ', 4)
                if what == 'D':
                    folders[folder] = {}
                elif len(rest) == 3:
                    folders.setdefault(folder, {})[rest[2]] = tuple(rest[:2])
        return folders

    def cut(self, to, chance=None):
        """Makes `to` what the disk may have after a power cut. The hub must have been killed. What
        was synced is there; of what was not: nothing, or what `chance` (random.Random) chooses."""
        synced = self.names(self.power)
        now = os.path.join(os.path.dirname(self.power), 'now')
        shutil.rmtree(now, ignore_errors=True)
        os.mkdir(now)
        self.library.tree(self.root.encode(), now.encode())
        if chance:
            folders = mixed_names(synced, self.names(now), chance)
        else:
            folders = synced
        made = os.stat(self.root)
        root = next((f for f in folders if int(f.split('-')[0]) == made.st_ino), None)

        def contents(what, at):
            old, new = (read_or(os.path.join(place, what)) for place in (self.power, now))
            if at.endswith(BY_OTHERS):
                whole = new or b''
                return whole[:chance.randint(0, len(whole))] if chance and '/new/' in at else whole
            return mixed_bytes(old or b'', new, chance) if chance and new is not None else old

        def one(folder, path):
            os.mkdir(path, 0o700)
            for name, (what, kind) in folders.get(folder, {}).items():
                if name == 'socket':
                    continue  # it is no file
                at = os.path.join(path, name)
                if kind == 'd':
                    one(what, at)
                    continue
                with open(at, 'wb') as f:
                    f.write(contents(what, at) or b'')
                os.chmod(at, 0o600)
        one(root, to)


def read_or(path):
    try:
        with open(path, 'rb') as f:
            return f.read()
    except FileNotFoundError:
        return None


SECTOR = 512


def mixed_bytes(old, new, chance):
    """A file whose last sync was at `old`: none or all of what was written since then; any sectors
    of what was written over, and what was appended up to any byte."""
    how = chance.choice(('old', 'new', 'torn', 'torn'))
    if how != 'torn' or old == new:
        return new if how == 'new' else old
    same = min(len(old), len(new))
    kept = b''.join(chance.choice((old, new))[i:min(i + SECTOR, same)]
                    for i in range(0, same, SECTOR))
    longest = max(old, new, key=len)
    return kept + longest[same:chance.randint(same, len(longest))]


def places(folders):
    found = {}
    for folder, entries in folders.items():
        for name, (what, kind) in entries.items():
            found.setdefault((what, kind), set()).add((folder, name))
    return found


def mixed_names(synced, now, chance):
    """Each file and folder is where it was at the last sync, or where it is now. A rename is done
    or not; it leaves nothing at both places, or at none."""
    old, new = places(synced), places(now)
    every = sorted(set(old) | set(new))

    def may_stay(one):
        was, is_ = old.get(one, set()), new.get(one, set())
        if one[1] == 'd' and is_ and was > is_:
            return False  # its new name was synced, so the old one went
        return is_ or not any(name.endswith(BY_OTHERS) for _, name in was)
    stays = {one for one in every if may_stay(one) and chance.random() < 0.5}

    def at(one):
        return (old if one in stays else new).get(one, set())
    while True:
        taken = {place: one for one in every if one not in stays for place in at(one)}
        missing = {one[0] for one in every if one[1] == 'd' and not at(one)}
        moved = {one for one in stays if any(taken.get(place, one) != one or place[0] in missing
                                             for place in at(one))}
        if not moved:
            break
        stays -= moved
    folders = {folder: {} for folder in (*synced, *now)}
    for one in every:
        for folder, name in at(one):
            folders[folder][name] = one
    return folders
