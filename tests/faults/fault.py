"""Drives tests/faults/fault.c, which is loaded into a hub: system calls on its data folder fail,
end it, or are recorded so that the folder can be rebuilt as a power cut leaves it."""

import contextlib
import errno
import mmap
import os
import shutil
import struct
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ('open', 'read', 'write', 'sync', 'rename', 'unlink', 'mkdir', 'readdir')
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
        self.env = {'LD_PRELOAD': library, 'FAULT_ROOT': self.root, 'FAULT_PLAN': plan}
        if power:
            self.env['FAULT_POWER'] = self.power

    def arm(self, kind, mode='fail', nth=1, last=None, why=errno.EIO, match=''):
        """nth: the first call that is hit; last: the last one (None: that one alone)."""
        self.map[:] = PLAN.pack(KINDS.index(kind), MODES.index(mode), why, nth, last or nth, 0, 1,
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

    def names(self):
        folders, root = {}, None
        with open(os.path.join(self.power, 'log'), encoding='utf-8', errors='surrogateescape') as f:
            for line in f:
                what, folder, *rest = line.rstrip('\n').split(' ', 4)
                if what == 'D':
                    folders[folder] = {}
                elif len(rest) == 3:
                    folders.setdefault(folder, {})[rest[2]] = rest[:2]
        return folders

    def cut(self, to, owner=None):
        """Rebuilds in `to` what was on the disk. The hub must have been killed."""
        folders = self.names()
        made = os.stat(self.root)
        root = next((f for f in folders if int(f.split('-')[0]) == made.st_ino), None)

        def one(folder, path):
            os.mkdir(path, 0o700)
            for name, (what, kind) in folders.get(folder, {}).items():
                at = os.path.join(path, name)
                kept = os.path.join(self.power, what)
                if kind == 'd':
                    one(what, at)
                elif name.endswith(BY_OTHERS):
                    shutil.copyfile(os.path.join(self.root, os.path.relpath(at, to)), at)
                elif os.path.exists(kept):
                    shutil.copyfile(kept, at)
                else:
                    open(at, 'w').close()
                if kind != 'd':
                    os.chmod(at, 0o600)
        if root is None:
            os.mkdir(to, 0o700)
        else:
            one(root, to)
        if owner is not None:
            for folder, below, files in os.walk(to):
                for name in ('.', *files):
                    os.chown(os.path.join(folder, name), owner.st_uid, owner.st_gid)
