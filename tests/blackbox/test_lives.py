"""What a hub remembers of its sandboxes: in order, after a kill, with a full disk, and with a
registry that is not as it should be. The real `holt serve`; sandboxes are made and used by MCP."""

import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import threading

import pytest

import host
from client import data_of, until
from http_client import Closed, Door, Modern
from test_serve import serve  # noqa: F401 (a fixture)


class Hub:
    def __init__(self, started):
        self.started = started
        self.tools = Modern(Door(started.address, started.token))

    def ask(self, tool, **arguments):
        """The result, or the code and the cause of the failure."""
        reply = self.tools.tool(tool, **arguments)
        assert reply.status == 200, (reply.status, reply.body())
        got = reply.answer()['result']
        reply.close()
        if got.get('isError'):
            return json.loads(got['content'][0]['text'])
        return data_of(got)

    def create(self, **arguments):
        got = self.ask('sandbox_create', pool='host', **arguments)
        return got['sandbox'] if 'sandbox' in got else got

    def code(self, sandbox):
        """Of an exec: None where it works."""
        return self.ask('sandbox_exec', sandbox=sandbox, command='true').get('code')

    def states(self):
        found = {k: v for k, v in self.started.metrics().items()
                 if k.startswith('holt_sandboxes_by_state')}
        return {k.split('"')[1]: int(v) for k, v in found.items() if v}

    def crash(self):
        """The hub and what holds its sandboxes, so that nobody can tell anybody."""
        proc = self.started.proc
        warden = host.program(proc.pid, 'holt-warden')
        proc.send_signal(signal.SIGSTOP)
        os.kill(warden, signal.SIGKILL)
        proc.kill()
        proc.wait()


@pytest.fixture
def hub(serve):  # noqa: F811
    return lambda *arguments, **options: Hub(serve(*arguments, '--socket', 'none', **options))


def registry(tmp_path):
    return tmp_path / 'registry.db'


def test_what_was_alive_is_lost(hub, tmp_path):
    first = hub()
    alive = [first.create() for _ in range(3)]
    alive += first.ask('sandbox_fork', sandbox=alive[0], replicas=2)['sandboxes']
    ended = first.create()
    assert first.ask('sandbox_terminate', sandbox=ended)['terminated'] is True
    assert first.states() == {'running': 5, 'terminated': 1}
    assert os.stat(registry(tmp_path)).st_mode & 0o777 == 0o600
    first.crash()

    second = hub()
    assert second.states() == {'lost': 5, 'terminated': 1}
    for sandbox in alive:
        assert second.code(sandbox) == 'sandbox_lost'
        assert second.ask('sandbox_fork', sandbox=sandbox)['code'] == 'sandbox_lost'
    assert second.code(ended) == 'sandbox_not_found'
    assert second.code('sbx-never') == 'sandbox_not_found'
    assert second.ask('sandbox_terminate', sandbox=alive[0])['terminated'] is True
    assert second.ask('sandbox_terminate', sandbox=alive[0])['code'] == 'sandbox_not_found'
    new = second.create()
    assert second.code(new) is None
    assert second.started.end() == 0

    third = hub()  # and all of it is as it was
    assert third.states() == {'lost': 4, 'terminated': 2, 'stopped': 1}
    assert third.code(alive[1]) == 'sandbox_lost'
    assert third.code(new) is None  # which starts it again
    with sqlite3.connect(f'file:{registry(tmp_path)}?mode=ro', uri=True) as db:
        kinds = [kind for kind, in db.execute('SELECT kind FROM events WHERE '
                                              'sandbox = ? ORDER BY seq', (alive[0],))]
    db.close()
    assert kinds == ['created', 'lost', 'terminated']


def test_a_killed_warden_is_told(hub):
    one = hub()
    sandbox = one.create()
    warden = host.program(one.started.proc.pid, 'holt-warden')
    os.kill(warden, signal.SIGKILL)
    assert until(lambda: one.code(sandbox), what='the loss') == 'sandbox_lost'
    assert one.code(one.create()) is None
    assert one.states() == {'lost': 1, 'running': 1}


def test_nothing_acknowledged_is_forgotten(hub, tmp_path):
    """Killed in the middle of creating and terminating, again and again."""
    alive, ended, acts = set(), set(), []

    def work(one, mine):
        while True:
            try:
                sandbox = one.create()
                if not isinstance(sandbox, str):
                    return
                mine.add(sandbox)
                acts.append(sandbox)
                if len(acts) % 3 == 0:
                    gone = mine.pop()  # of which nothing is known until it is answered
                    if one.ask('sandbox_terminate', sandbox=gone).get('terminated'):
                        ended.add(gone)
            except (OSError, EOFError, Closed, AssertionError, KeyError, ValueError):
                return

    for round_ in range(8):
        one = hub()
        for sandbox in alive:
            assert one.code(sandbox) == 'sandbox_lost', round_
        for sandbox in ended:
            assert one.code(sandbox) == 'sandbox_not_found', round_
        made = [set() for _ in range(3)]
        workers = [threading.Thread(target=work, args=(one, mine)) for mine in made]
        for worker in workers:
            worker.start()
        enough = len(acts) + random.randrange(1, 12)
        until(lambda: len(acts) >= enough, what='some sandboxes')
        one.crash()
        for worker in workers:
            worker.join()
        for mine in made:
            alive |= mine
    with sqlite3.connect(registry(tmp_path)) as db:
        assert db.execute('PRAGMA integrity_check').fetchone() == ('ok',)
    db.close()


# ---- a registry that is not as it should be ---------------------------------------------------

def refused(me, tmp_path):
    done = me.run('serve', '--listen', '127.0.0.1:0', '--socket', 'none',
                  env={'HOLT_HOME': str(tmp_path)}, text=True)
    assert done.returncode == 125 and 'Listening' not in done.stdout, done
    return done.stderr


def test_one_hub_for_a_registry(hub, me, tmp_path):
    first = hub()
    sandbox = first.create()
    assert 'another hub' in refused(me, tmp_path)
    assert first.code(sandbox) is None
    first.started.proc.kill()
    first.started.proc.wait()
    hub().started.works()


def test_a_damaged_registry(hub, me, tmp_path):
    first = hub()
    first.create()
    assert first.started.end() == 0
    shutil.copy(registry(tmp_path), tmp_path / 'kept')
    with open(registry(tmp_path), 'r+b') as f:
        f.seek(4096)
        f.write(os.urandom(3 * 4096))
    said = refused(me, tmp_path)
    assert 'damaged' in said and '.recover' in said
    with open(registry(tmp_path), 'wb') as f:
        f.write(b'This is no registry.' * 500)
    assert 'damaged' in refused(me, tmp_path)
    shutil.copy(tmp_path / 'kept', registry(tmp_path))
    assert hub().states() == {'stopped': 1}


def test_a_registry_of_a_later_holt(hub, me, tmp_path):
    assert hub().started.end() == 0
    db = sqlite3.connect(registry(tmp_path))
    db.execute('PRAGMA user_version=1000')
    db.close()
    assert 'version 1000' in refused(me, tmp_path)


def test_a_full_disk(hub, tmp_path):
    """What would have to be remembered is refused and undone; what ends something works; all is
    well again when there is room again."""
    one = hub()
    pid = one.started.proc.pid
    kept = [one.create() for _ in range(2)]
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE,
                     (os.stat(f'{registry(tmp_path)}-wal').st_size, before[1]))
    failed = one.create()
    assert failed['code'] == 'registry_full', failed
    assert one.ask('sandbox_fork', sandbox=kept[0], replicas=2)['code'] == 'registry_full'
    until(lambda: one.started.metrics()['holt_sandboxes'] == 2, what='the end of what was undone')
    assert one.states() == {'running': 2}
    assert one.ask('sandbox_terminate', sandbox=kept[0])['terminated'] is True
    assert one.code(kept[0]) == 'sandbox_not_found' and one.code(kept[1]) is None
    assert one.started.metrics()['holt_registry_unsaved'] == 1
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    until(lambda: one.started.metrics()['holt_registry_unsaved'] == 0, what='the registry')
    new = one.create()
    assert one.code(new) is None
    one.crash()
    second = hub()
    assert second.states() == {'lost': 2, 'terminated': 1}
    assert second.code(new) == 'sandbox_lost'


def test_a_time_to_live(hub, tmp_path):
    one = hub()
    sandbox = one.create(ttl_seconds=1)
    until(lambda: one.code(sandbox) == 'sandbox_not_found', what='its end')
    until(lambda: 'time to live' in one.ask('sandbox_exec', sandbox=sandbox,
                                            command='true')['cause'], what='word of why')
    assert one.states() == {'terminated': 1}
