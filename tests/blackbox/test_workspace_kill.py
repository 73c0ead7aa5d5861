"""A hub that is killed at any moment of a commit leaves the old revision or the new one, never a
mix; what it had begun is removed later."""

import io
import os
import random
import shutil
import tarfile
import threading
import time

import pytest

from client import until
from door import Closed
from rest import Failed
from soak import FULL, soak
from test_workspace_history import log, made
from test_workspaces import Hub

ROUNDS = soak(200)  # of each of two users
SEED = int(os.environ.get('HOLT_SEED', random.randrange(1 << 30)))
GONE = (OSError, EOFError, Closed)
FILES = 150

# All that a state has says its number: many files of one piece, one of many, a name, a link.
WRITE = r'''
n=%d; cd /workspace; rm -rf name-*; mkdir name-$n; ln -sfn $n link
for i in $(seq %d); do echo $n > d$((i %% 7))/f$i; done; yes $n | head -c 1500000 > big
'''


def states(data):
    """The numbers of all that is in an archive."""
    found = set()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        names = tar.getmembers()
        for member in names:
            if member.issym():
                found.add(member.linkname)
            elif member.isfile():
                found |= set(tar.extractfile(member).read().decode().split())
            elif member.name.startswith('name-'):
                found.add(member.name[5:])
    return found, len(names)


def start(who, home):
    return Hub(who, home, '--pool', '0')


def commit(hub, ended):
    try:
        ended.append(hub.commit('killed')['revision'])
    except (*GONE, Failed):
        pass


def check(hub, old, new):
    """What the newest revision is: the number of its state."""
    told = hub.call('GET', '/v1/workspaces/killed/verify')
    assert told['damaged'] == 0, told
    found, n = states(hub.raw('GET', '/v1/workspaces/killed/export').body)
    assert found in ({str(old)}, {str(new)}), (found, old, new, SEED)
    assert n == FILES + 10, (n, SEED)
    return int(found.pop())


def test_old_or_new(who):
    home = f'{who.work}/ws-kill'
    os.mkdir(home, 0o700)
    os.chown(home, who.uid, who.uid)
    chance = random.Random(SEED)
    seen = {'old': 0, 'new': 0}
    hub = start(who, home)
    try:
        hub.new('killed')
        sandbox = hub.open('killed')
        hub.sh(sandbox, 'mkdir d0 d1 d2 d3 d4 d5 d6')
        hub.sh(sandbox, WRITE % (0, FILES))
        began = time.monotonic()
        hub.commit('killed')
        latest = 2 * (time.monotonic() - began)  # the kills come before, within and after
        old = 0
        for new in range(1, ROUNDS + 1):
            hub.sh(sandbox, WRITE % (new, FILES))
            ended = []
            thread = threading.Thread(target=commit, args=(hub, ended))
            thread.start()
            thread.join(chance.uniform(0, latest))
            hub.kill()
            thread.join()
            hub = start(who, home)
            until(hub.ask)
            is_now = check(hub, old, new)
            assert not ended or is_now == new, (ended, old, new, SEED)  # it was acknowledged
            seen['new' if is_now == new else 'old'] += 1
            assert hub.sh(sandbox, 'cat link 2> /dev/null || readlink link').strip() == str(new)
            if is_now == old:
                hub.commit('killed')
            old = new
            assert check(hub, old, new) == new
        before = hub.call('DELETE', '/v1/workspaces-garbage')['kept']
        assert before > FILES / 10
        assert hub.call('GET', '/v1/workspaces/killed/verify')['damaged'] == 0
        hub.finish(sandbox)
        assert hub.end() == 0, hub.said()
    finally:
        hub.kill()
    print(seen, SEED)
    shutil.rmtree(home)


@pytest.mark.timing
@pytest.mark.skipif(not FULL, reason='takes a minute of work (HOLT_SOAK=full)')
def test_the_end_of_a_hub_is_bounded(who):
    """A revision that takes too long is given up, and the one before stays."""
    home = f'{who.work}/ws-end'
    os.mkdir(home, 0o700)
    os.chown(home, who.uid, who.uid)
    hub = start(who, home)
    try:
        made(hub, 'slow', 'echo 1 > f')
        sandbox = hub.open('slow', limits={'memory_mb': 90 << 10, 'disk_mb': 80 << 10})
        hub.sh(sandbox, 'for i in 1 2 3 4 5 6; do truncate -s 10G hole$i; done')
        began = time.monotonic()
        assert hub.end(timeout=120) == 0
        assert 10 < time.monotonic() - began < 90
        assert 'takes too long' in hub.said()
    finally:
        hub.kill()
    with start(who, home) as hub:
        assert len(log(hub, 'slow')['revisions']) == 2
    shutil.rmtree(home)
