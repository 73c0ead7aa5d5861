"""Every call takes one road, whatever door it came through: hooks of the test's own
(tests/hooks/hooked.c) deny, delay, count and rewrite. Rows: surface.py."""

import copy
import json
import os
import signal
import subprocess

import pytest

import host
import rest
from client import Failed, data_of, until
from described import Described, code_of, failure_of
from door import Wire
from modules import home, server
from rest import b64
from talk import Attached, Exec
from stage import Stage, clear, outcome, start, walk
from surface import ROUTES, TOOLS
from test_keys import as_bearer, key
from test_serve import Session
from test_tools import call, failure
from who import BUILD


class Road:
    """The folder that hooks read and write, and Holt with these hooks."""

    def __init__(self, me, folder):
        self.folder = str(folder)
        self.at = 0  # how much of the log was taken
        program = os.path.join(BUILD, 'tests/hooks/road-holt')
        if not os.path.lexists(beside := os.path.join(BUILD, 'tests/box')):
            os.symlink('../src/box', beside)  # where a program looks for its warden
        os.chmod(self.folder, 0o777)
        self.me = copy.copy(me)
        self.me.argv = lambda *arguments: [*me.prefix, program, *arguments]
        self.me.env = {**me.env, 'HOLT_ROAD': self.folder}

    def set(self, name, text=''):
        with open(os.path.join(self.folder, name), 'w', encoding='utf-8') as f:
            f.write(text)

    def unset(self, name):
        os.unlink(os.path.join(self.folder, name))

    def taken(self):
        """What hooks have noted since the last time."""
        with open(os.path.join(self.folder, 'log'), 'ab+') as f:
            f.seek(self.at)
            text = f.read()
        whole = text.rfind(b'\n') + 1
        self.at += whole
        return [json.loads(line) for line in text[:whole].splitlines()]

    def notes(self, n, timeout=30):
        """The same, once there are so many."""
        found = []
        until(lambda: found.extend(self.taken()) or len(found) >= n, timeout, f'{n} notes')
        return found


@pytest.fixture(scope='module')
def road(me, tmp_path_factory):
    return Road(me, tmp_path_factory.mktemp('road'))


@pytest.fixture(scope='module')
def hub(me, road, tmp_path_factory):
    before = host.Residue(me.trees)
    with Described(road.me, home(me, tmp_path_factory.mktemp('hub'), **{'of-stage': server()}),
                   '--listen', '127.0.0.1:0',
                   '--preview', '127.0.0.1:0', '--pool', '0') as shared:
        yield shared
    before.check()


@pytest.fixture
def mcp(road):
    client = road.me.mcp('--pool', '0')
    client.initialize()
    yield client
    assert client.close() == 0


def inside(hub, box):
    """What there is of programs and files in a sandbox."""
    programs = hub.call('GET', f'/v1/sandboxes/{box}/processes')['processes']
    return len(programs), hub.exec(box, 'ls -lR --time-style=+')['stdout']


def denied(one):
    """A request of a row that policy denies, over HTTP or a WebSocket."""
    try:
        reply = one.reply()
    except AssertionError:
        return code_of(one.talk.error)
    error = failure_of(reply)
    return code_of(error) if error else reply


def denied_by_policy(hub, road, name, stage):
    before = inside(hub, stage.id)
    road.set('deny')
    road.taken()
    try:
        said = denied(start(hub, name, stage))
    except Exception as e:  # the upgrade itself is refused
        said = 'forbidden' if '403' in str(e) else e
    finally:
        road.unset('deny')
    notes = road.taken()[-2:]  # some ask for something else before
    assert said in ('forbidden', 'permission_denied'), said
    assert [n['hook'] for n in notes] == ['policy', 'audit'] and notes[-1]['end'] == 'denied', notes
    assert inside(hub, stage.id) == before


def seen_once(hub, road, name, stage):
    road.taken()
    asking = start(hub, name, stage)
    # the hooks here write no record that could be got, and keep no request
    gone = name in ('audit.get', 'approvals.get', 'approvals.answer')
    assert outcome(asking.reply()) == ((404, 'not_found') if gone else (200, None))
    # these make other calls too: one before, or one within
    more = {'audit.get': 6, 'javascript': 6, 'javascript.register': 6}
    notes = road.notes(2 if ROUTES[name].endless else more.get(name, 3))
    if name == 'audit.get':
        notes = notes[-3:]
    elif name in ('javascript', 'javascript.register'):
        action = 'code.execute' if name == 'javascript' else 'code.register'
        notes = [n for n in notes if n['action'] == action]
    assert [n['hook'] for n in notes][:3] == ['policy', 'approval', 'audit'][:len(notes)], notes
    assert len({n['digest'] for n in notes}) == 1 and len(notes[0]['digest']) == 64
    assert len({n['action'] for n in notes}) == 1


def test_each_route_and_procedure(hub, road):
    """Where policy denies it none runs a program, opens a file, or says anything of what there is;
    else each hook sees each call once."""
    def check(name):
        stage = Stage(hub, ROUTES[name].needs)
        denied_by_policy(hub, road, name, stage)
        seen_once(hub, road, name, stage)
    walk(ROUTES, check, lambda: clear(hub))


def test_tools(hub, road):
    """Each is denied, and each is seen once by each hook. Over stdio the road is the same, as
    test_resources and those of the digests show."""
    mcp = road.me.mcp('--connect', f'http://{hub.address[0]}:{hub.address[1]}',
                      env={'HOLT_TOKEN': hub.token})
    mcp.initialize()

    def check(name):
        arguments = TOOLS[name].right(Stage(hub, TOOLS[name].needs))
        road.set('deny')
        road.taken()
        try:
            assert failure(mcp, call(mcp, name, arguments))['code'] == 'denied'
        finally:
            road.unset('deny')
        assert [n['hook'] for n in road.notes(2)] == ['policy', 'audit']
        assert failure(mcp, call(mcp, name, arguments)) is None
        notes = road.notes(3)
        assert [n['hook'] for n in notes] == ['policy', 'approval', 'audit'], notes
    walk(TOOLS, check, lambda: clear(hub))
    assert mcp.close() == 0


def test_resources(mcp, road):
    """To read one is files.read, and files.list where that is a directory."""
    box = mcp.call('sandbox_create', pool='host')['sandbox']
    mcp.call('sandbox_write_file', sandbox=box, path='/workspace/f', content='of the file')
    road.taken()
    road.set('deny')
    assert 'error' in mcp.request('resources/read', {'uri': f'sandbox://{box}/workspace/f'})
    road.unset('deny')
    assert [(n['hook'], n['action']) for n in road.taken()] == [('policy', 'files.read'),
                                                                ('audit', 'files.read')]
    assert mcp.request('resources/read', {'uri': f'sandbox://{box}/workspace/f'})['result'][
        'contents'][0]['text'] == 'of the file'
    assert [n['action'] for n in road.taken()] == ['files.read'] * 3
    assert '"f"' in mcp.request('resources/read', {'uri': f'sandbox://{box}/workspace'})['result'][
        'contents'][0]['text']
    assert [n['action'] for n in road.taken()] == ['files.read'] * 3 + ['files.list'] * 3


def test_nobody_sees_resources(mcp, road):
    """Neither the list nor the completion tells of a sandbox that the principal may not know of."""
    box = mcp.call('sandbox_create', pool='host')['sandbox']

    def told():
        names = [r['name'] for r in mcp.request('resources/list')['result']['resources']]
        done = mcp.request('completion/complete',
                           {'ref': {'type': 'ref/resource', 'uri': 'sandbox://{sandbox}/{+path}'},
                            'argument': {'name': 'sandbox', 'value': ''}})
        return names, done['result']['completion']['values']

    assert told() == ([box], [box])
    road.set('hide')
    try:
        assert told() == ([], [])
    finally:
        road.unset('hide')
    assert told() == ([box], [box])
    mcp.call('sandbox_terminate', sandbox=box)


def test_nobody_sees(hub, road):
    """A sandbox that a principal may not know of is no sandbox, whatever is asked of it;
    what waits is told nothing else."""
    stage = Stage(hub, 'program')
    road.set('hide')
    try:
        for name in ('sandboxes.get', 'exec', 'files.read', 'execs.list', 'sandboxes.fork', 'Stat',
                     'archive.download', 'set_timeout'):
            assert denied(start(hub, name, stage)) == 'not_found', name
        assert hub.call('GET', '/v1/sandboxes') == []
        assert hub.call('GET', '/v1/usage')['sandboxes'] == []
        page = hub.call('GET', '/v1/events?limit=1000')
        assert page['events'] == [] and page['next'] == page['newest'] > 0
    finally:
        road.unset('hide')
    assert outcome(start(hub, 'sandboxes.get', stage).reply()) == (200, None)
    clear(hub)


def test_fork_of_a_sandbox_is_one(hub, road):
    """POST /v1/fork is sandbox.fork where its template is a sandbox: policy judges by that, and
    who may not know of the sandbox hears of no such template."""
    box = hub.create()
    road.taken()
    made = hub.post('/v1/fork', template=box)['id']
    assert {n['action'] for n in road.notes(3)} == {'sandbox.fork'}
    for set_to, expected in (('deny', (403, 'forbidden')), ('hide', (404, 'not_found'))):
        road.set(set_to)
        try:
            status, answer = hub.asked('POST', '/v1/fork', {'template': box})
        finally:
            road.unset(set_to)
        assert (status, answer['error']['code']) == expected
    assert {s['id'] for s in hub.call('GET', '/v1/sandboxes')} == {box, made}
    clear(hub)


def test_policy_takes_its_time(hub, road):
    """Who waits for it holds nobody up, and may leave: then nothing runs, and the audit is told."""
    stage = Stage(hub)
    road.set('delay', '400')
    try:
        asked = [start(hub, 'exec', stage) for _ in range(8)]
        for one in asked:
            assert outcome(one.reply()) == (200, None)
        road.set('delay', '60000')
        road.taken()
        left = start(hub, 'files.remove', stage)
        road.notes(1)
        left.wire.__exit__()
        for _ in range(3):  # the hub hears of that before what comes later
            hub.works()
    finally:
        road.unset('delay')
    assert road.notes(1, 60)[-1]['end'] == 'cancelled'
    assert hub.post('/v1/files/stat', sandbox=stage.id, path='f')['type'] == 'file'
    clear(hub)


def test_an_audit_takes_its_time(hub, road):
    """What comes for a call that has ended reaches it no more: no second end, no command in it,
    no memory that is gone."""
    stage = Stage(hub, 'program')
    road.set('delay', '300')
    try:
        road.taken()
        with Exec(hub, stage.id) as x:
            for _ in range(3):
                x.say(nonsense=1)
            x.say(open={'command': 'touch made'})
            x.end()
            assert x.error['code'] == 'invalid_input'
        assert [n['hook'] for n in road.notes(1)] == ['audit']
        for names in (('exec', 'exec.stream', 'execs.output', 'archive.upload', 'Upload', 'Exec',
                       'ExecSocket', 'execs.attach'), ('pause',), ('resume',)):
            for one in [start(hub, name, stage) for name in names]:
                assert outcome(one.reply()) == (200, None), names
    finally:
        road.unset('delay')
    with pytest.raises(rest.Failed):
        hub.post('/v1/files/stat', sandbox=stage.id, path='made')
    clear(hub)


# ---- one wish, whatever its door

NOBODY = 'nobody'  # its requests are decoded, and go no further than that

# An operation, and how each door asks for the same of it: a tool's arguments, a route's body,
# a procedure's.
WISHES = {
    'exec.output': {'sandbox_exec_output': {'exec': 'x', 'offset': 5, 'max_bytes': 2048},
                    'execs.output': '?offset=5&limit=2048'},
    'files.list': {'sandbox_list_files': {'path': 'd', 'limit': 1024}, 'files.list': {'path': 'd'},
                   'List': {'parent': 'd'}},
    'files.mkdir': {'files.mkdir': {'path': 'd'}, 'Mkdir': {'path': 'd'}},
    'files.move': {'sandbox_move_file': {'path': 'a', 'to': 'b'},
                   'files.move': {'path': 'a', 'to': 'b'}},
    'files.read': {'sandbox_read_file': {'path': 'a'},
                   'files.read': {'path': 'a', 'offset': 0, 'encoding': 'utf-8',
                                  'limit': 65536}},
    'files.remove': {'sandbox_remove_file': {'path': 'a'},
                     'files.remove': {'path': 'a', 'recursive': False},
                     'Remove': {'path': 'a', 'recursive': False}},
    'files.stat': {'files.stat': {'path': 'a'}, 'Stat': {'path': 'a'}},
    'files.write': {'sandbox_write_file': {'path': 'a', 'content': b64(b'x'), 'encoding': 'base64',
                                           'mode': '0600'},
                    'files.write': {'path': 'a', 'content': 'x', 'mode': 0o600}},
    'process.list': {'sandbox_processes': {'limit': 512}, 'sandboxes.processes': None,
                     'Processes': {}},
    'process.signal': {'sandbox_signal': {'pid': 7}, 'sandboxes.signal': {'pid': 7, 'signal': 15},
                       'Signal': {'pid': 7}},
    'sandbox.diff': {'sandbox_diff': {'limit': 9}, 'sandboxes.diff': '?limit=9'},
    'sandbox.exec': {'sandbox_exec': {'command': 'true', 'stdin_base64': b64(b'x'),
                                      'timeout_seconds': 30, 'max_output_bytes': 1 << 20},
                     'exec': {'command': 'true', 'stdin': 'x'},
                     'exec.stream': {'command': 'true', 'stdin': 'x', 'timeout': 0}},
    'sandbox.get': {'sandbox_get': {'usage': False}, 'sandboxes.get': None},
    'sandbox.pause': {'sandbox_pause': {}, 'pause': {}},
    'sandbox.resume': {'sandbox_resume': {}, 'resume': {}},
    'sandbox.set_timeout': {'sandbox_set_timeout': {'seconds': 60},
                            'set_timeout': {'timeout_seconds': 60}},
    'snapshot.take': {'sandbox_snapshot': {'ttl_seconds': 9},
                      'sandboxes.snapshot': {'ttl_seconds': 9}},
    'sandbox.terminate': {'sandbox_terminate': {}, 'sandboxes.delete': None},
}


def asked(hub, mcp, name, wish):
    """The code with which a door answers a wish for NOBODY."""
    if name.startswith('sandbox_'):
        with pytest.raises(Failed) as e:
            mcp.call(name, **{'sandbox': NOBODY, **wish})
        return e.value.code
    path, method, _ = hub.by_name[name]
    header = path.startswith('/sandbox.v1.')
    query, wish = (wish, None) if isinstance(wish, str) else ('', wish)
    body = wish if '{id}' in path or header else {'sandbox': NOBODY, **wish}
    reply = hub.raw(method, path.replace('{id}', NOBODY).replace('{exec}', 'x') + query, body,
                    fields=[f'X-Sandbox-Id: {NOBODY}', 'Content-Type: application/json'] if header
                    else ())
    return code_of(json.loads(reply.body))


def test_one_digest_through_every_door(hub, mcp, road):
    """What an approval would be bound to: the same for the same wish,
    another one for another target."""
    def check(action):
        found = set()
        for name, wish in WISHES[action].items():
            road.taken()
            assert asked(hub, mcp, name, wish) in ('sandbox_not_found', 'not_found')
            notes = road.notes(3)
            found |= {(n['action'], n['target'], n['digest']) for n in notes}
            assert notes[-1]['end'] == 'sandbox_not_found'
        assert len(found) == 1 and found.pop()[:2] == (action, NOBODY)
    walk(WISHES, check)


# The same of those that name no sandbox, or one that need not be there: they are denied.
MORE = {
    'sandbox.create': {'sandbox_create': {'pool': 'host', 'memory_mb': 64, 'cpus': 2,
                                          'env': {'B': '2', 'A': '1'}, 'ttl_seconds': 60},
                       'sandboxes.create': {'limits': {'cpus': 2.0, 'memory_mb': 64},
                                            'env': {'A': '1', 'B': '2'},
                                            'timeout_seconds': 60, 'network': {'block': True}}},
    'sandbox.fork': {'sandbox_fork': {'sandbox': NOBODY, 'replicas': 1},
                     'sandboxes.fork': {'pause_source': True}},
    'snapshot.restore': {'sandbox_restore': {'snapshot': NOBODY},
                         'snapshots.restore': {'count': 1}},
    'sandbox.list': {'sandbox_list': {'limit': 7, 'after': 10, 'state': 'paused'},
                     'sandboxes.list': '?limit=7&cursor=000000000000000a&state=paused'},
}


def test_one_digest_of_what_is_denied(hub, mcp, road):
    def check(action):
        found = set()
        for name, wish in MORE[action].items():
            road.taken()
            if name.startswith('sandbox_'):
                with pytest.raises(Failed):
                    mcp.call(name, **wish)
            else:
                path, method, operation = hub.by_name[name]
                query, wish = (wish, None) if isinstance(wish, str) else ('', wish)
                hub.raw(method, path.replace('{id}', NOBODY) + query, wish)
            notes = road.notes(2)
            found |= {(n['action'], n['digest']) for n in notes}
            assert notes[-1]['end'] == 'denied'
        assert len(found) == 1 and found.pop()[0] == action
    road.set('deny')
    try:
        walk(MORE, check)
    finally:
        road.unset('deny')


def test_one_digest_of_files(hub, road):
    """Through procedures of messages, too: a path that is absent is the working directory, and
    other content another wish."""
    stage = Stage(hub)
    box, asked = stage.id, f'/v1/sandboxes/{stage.id}'
    road.taken()
    for text, data in (('hello', ('he', 'llo')), ('other', ('other',))):
        hub.post('/v1/files/write', sandbox=box, path='g', content=text)
        hub.stream('WriteFile', box, {'open': {'path': 'g'}},
                   *({'data': b64(d.encode())} for d in data))
        assert hub.post('/v1/files/read', sandbox=box, path='g')['content'] == text
        assert rest.joined(hub.stream('ReadFile', box, {'path': 'g'}), 'data') == text.encode()
    assert hub.raw('GET', f'{asked}/archive').body == rest.joined(hub.stream('Archive', box, {}),
                                                                  'data')
    notes = road.notes(30)
    assert [len({n['digest'] for n in notes if n['action'] == f'files.{a}'})
            for a in ('read', 'write', 'download')] == [1, 2, 1], notes
    watching = [start(hub, name, stage) for name in ('watch', 'Watch')]
    notes = road.notes(4)
    assert ({n['action'] for n in notes} == {'files.watch'} and len({n['digest'] for n in notes})
            == 1), notes
    for one in watching:
        one.wire.__exit__()
    assert [n['end'] for n in road.notes(2)] == ['cancelled'] * 2
    clear(hub)


def test_names_of_variables(hub, mcp, road):
    """Empty, with = or with NUL they are none, for a sandbox and for a command."""
    box = mcp.call('sandbox_create', pool='host')['sandbox']
    for name in ('', 'A=B', 'A\0B'):
        for tool, more in (('sandbox_create', {'pool': 'host'}),
                           ('sandbox_exec', {'sandbox': box, 'command': 'true'})):
            with pytest.raises(Failed) as e:
                mcp.call(tool, env={name: 'x'}, **more)
            assert e.value.code == 'invalid_arguments', (tool, name)
        for path, more in (('/v1/sandboxes', {}),
                           ('/v1/exec', {'sandbox': NOBODY, 'command': 'true'})):
            with pytest.raises(rest.Failed) as e:
                hub.post(path, env={name: 'x'}, **more)
            assert e.value.code == 'invalid_input', (path, name)


def test_one_digest_of_a_command(hub, road):
    """Through streams and sockets, too, where the first message is the request; a terminal or
    another word is another wish."""
    stage = Stage(hub)
    road.taken()
    hub.exec(stage.id, 'true', env={'B': '2', 'A': '1'})
    env = [{'key': 'A', 'value': '0'}, {'key': 'B', 'value': '2'}, {'key': 'A', 'value': '1'}]
    hub.stream('ExecStream', stage.id, {'command': 'true', 'env': env})
    hub.stream('Exec', stage.id, {'open': {'command': 'true', 'env': env, 'timeoutSeconds': -1}})
    with Exec(hub, stage.id, 'true', env={'A': '1', 'B': '2'}, timeout=30, stdin=False) as x:
        x.end()
    notes = road.notes(12)
    assert ({n['action'] for n in notes} == {'sandbox.exec'} and len({n['digest'] for n in notes})
            == 1), notes
    for more in ({}, {'tty': {}}, {'args': []}, {'working_dir': '/'}):
        with Exec(hub, stage.id, 'true', env={'A': '1', 'B': '2'}, timeout=30, **more) as x:
            x.end()
    assert len({n['digest'] for n in notes + road.notes(12)}) == 5
    clear(hub)


def test_a_kill_is_no_reading(mcp, road):
    """sandbox_exec_output only reads, unless it is told to kill: then policy hears of that."""
    box = mcp.call('sandbox_create', pool='host')['sandbox']
    job = mcp.call('sandbox_exec', sandbox=box, command='echo hunter2; sleep 1000',
                   background=True)['exec']
    road.taken()
    said = mcp.call('sandbox_exec_output', sandbox=box, exec=job, wait_for='hunter2', kill=False)
    assert said['found'] and said['state'] == 'running'
    assert {n['action'] for n in road.taken()} == {'exec.output'}
    road.set('secret', 'hunter2')
    try:
        said = mcp.call('sandbox_exec_output', sandbox=box, exec=job, wait_seconds=30, kill=True)
    finally:
        road.unset('secret')
    assert said['stdout'] == '[gone]\n' and said['state'] == 'signaled'
    assert {n['action'] for n in road.taken()} == {'exec.kill'}
    mcp.call('sandbox_terminate', sandbox=box)


def test_what_is_said_while_policy_thinks(hub, road):
    """Input that comes behind the first message waits for the program, in order."""
    stage = Stage(hub)
    road.set('delay', '300')
    try:
        with Exec(hub, stage.id, 'cat') as x:
            for i in range(100):
                x.type(f'{i} ')
            x.say(stdin_close=True)
            assert x.end().out.decode().split() == [str(i) for i in range(100)]
    finally:
        road.unset('delay')
    clear(hub)


def test_bad_input_is_refused_by_every_door(hub, mcp, road):
    """What is unknown, of another type, too long or missing: nobody is asked whether it may be
    done, and the audit knows."""
    def check(action):
        for name, wish in WISHES[action].items():
            if wish is None or hub.by_name.get(name, ('', 'POST'))[1] == 'GET':
                continue
            bad = [{**wish, 'no_such_member': 1}]
            for key in wish:
                bad += [{**wish, key: [1]}, {**wish, key: {'x': 1}}]
                if key in ('path', 'to', 'parent', 'cwd'):
                    bad += [{**wish, key: ''}, {**wish, key: 'x' * 5000},
                            {k: v for k, v in wish.items() if k != key}]
                if key in ('path', 'parent') and name == 'sandbox_list_files':
                    bad.pop()  # its default is the working directory
            for one in bad:
                road.taken()
                assert asked(hub, mcp, name, one) in ('invalid_arguments', 'invalid_argument',
                                                      'invalid_input'), (name, one)
                notes = road.notes(1)
                assert ([n['hook'] for n in notes] == ['audit'] and notes[0]['action'] == action
                        and notes[0]['end'] == 'invalid_arguments'), notes
    walk([action for action in WISHES if any(WISHES[action].values())], check)


# ---- room

def busy(hub, road, box, n):
    """So many commands that run, each of a connection of its own."""
    road.taken()
    wires = [hub.wire() for _ in range(n)]
    for wire in wires:
        wire.send(hub.request('POST', '/v1/exec', body=json.dumps(
            {'sandbox': box, 'command': 'sleep 1000', 'timeout': 600, 'max_output_bytes': 1024})))
    road.notes(2 * n, timeout=100)
    return wires


def refusal(hub, box):
    """Why there is no room for one more; '' where there is."""
    try:
        hub.exec(box, 'true', max_output_bytes=1024)
    except rest.Failed as e:
        assert e.code == 'quota_exceeded', e
        return e.error['cause']
    return ''


def test_a_line_of_keys_is_one_client(hub, road):
    """Keys that a key made have no room beside it: together they leave a sixteenth."""
    stage = Stage(hub)
    first = as_bearer(hub, key(hub, 'pays', ['admin']))
    line = [as_bearer(hub, key(first, f'pays-{n}', ['admin'])) for n in range(2)]
    wires = [wire for who, n in zip(line, (224, 16)) for wire in busy(who, road, stage.id, n)]
    for who in (line[1], first):
        assert '240 calls of this principal' in refusal(who, stage.id)
    assert not refusal(hub, stage.id)
    hub.delete(stage.id)
    for wire in wires:
        wire.reply()
    for name in ('pays', 'pays-0', 'pays-1'):
        hub.call('DELETE', f'/v1/keys/{name}')


def test_who_fills_all_room_locks_nobody_out(hub, road):
    """One client has 224 of the room for 256 calls that work, and all clients of one principal
    240; then others still find room, and that for looking and ending is apart."""
    stage = Stage(hub)
    wires = busy(hub, road, stage.id, 224)
    assert refusal(hub, stage.id) == \
        '224 of this client\'s calls are under way; others have the rest'
    for session in Session(hub), Session(hub):
        with hub.wire() as wire:
            session.call(wire, 'sandbox_exec', sandbox=stage.id, command='echo well')
            assert data_of(session.result(wire))['stdout'] == 'well\n'
    with Wire(hub.paths[0]) as wire:
        reply = wire.ask(hub.request('POST', '/v1/exec', body=json.dumps(
            {'sandbox': stage.id, 'command': 'true'})))
        assert reply.status == 200, reply
    assert [s['id'] for s in hub.call('GET', '/v1/sandboxes')] == [stage.id]
    assert len(hub.call('GET', f'/v1/sandboxes/{stage.id}/execs')) >= 224
    wires.pop().close()
    until(lambda: not refusal(hub, stage.id), what='room for one more')
    wires += busy(hub, road, stage.id, 1)
    many = [(Session(hub), hub.wire()) for _ in range(16)]
    for session, wire in many:
        session.call(wire, 'sandbox_exec', sandbox=stage.id, command='sleep 1001',
                     timeout_seconds=600)
    at = f'/v1/sandboxes/{stage.id}/execs'
    until(lambda: sum('sleep 1001' in e['command'] for e in hub.call('GET', at)) == 16,
          what='that they run')
    session = Session(hub)
    with hub.wire() as wire:
        session.call(wire, 'sandbox_exec', sandbox=stage.id, command='true')
        assert '240 calls of this principal' in str(session.answer(wire))
    other = as_bearer(hub, key(hub, 'other'))
    box = other.create()
    assert other.exec(box, 'echo well', max_output_bytes=1024)['stdout'] == 'well\n'
    other.delete(box)
    hub.call('DELETE', '/v1/keys/other')
    hub.delete(stage.id)
    for wire in wires:
        with wire:
            assert wire.reply('POST').status in (404, 410, 499)
    for session, wire in many:
        with wire:
            assert session.answer(wire)['result']['isError']
    assert hub.call('GET', '/v1/health')['sandboxes'] == 0
    clear(hub)


def test_who_waits_for_a_person_takes_no_room(hub, road):
    """300 that nobody has approved yet: others work meanwhile,
    and those that are approved then do, too."""
    stage = Stage(hub)
    road.set('approve', '5000')
    road.taken()
    asked = [hub.wire() for _ in range(300)]
    for wire in asked:
        wire.send(hub.request('POST', '/v1/exec', body=json.dumps(
            {'sandbox': stage.id, 'command': 'true', 'max_output_bytes': 1024})))
    road.notes(600, timeout=100)
    road.unset('approve')
    assert hub.exec(stage.id, 'echo well', max_output_bytes=1024)['stdout'] == 'well\n'
    for wire in asked:
        with wire:
            assert wire.reply('POST').status == 200
    clear(hub)


# ---- what leaves

def test_redaction(hub, road):
    """No door lets it out: answers, lines, frames, sockets, output that is read later,
    files, archives, names."""
    stage = Stage(hub, 'program')
    box, word = stage.id, 'hunter2'
    hub.post('/v1/files/write', sandbox=box, path='f', content=f'a {word} b\n')
    hub.post('/v1/files/write', sandbox=box, path=word, content='')
    road.set('secret', word)
    try:
        for name in ('exec', 'files.read', 'files.list', 'List', 'sandboxes.diff', 'execs.list',
                     'execs.output'):
            reply = start(hub, name, stage).reply()
            assert outcome(reply) == (200, None)
            for shape in (word, b64(word.encode()), b64(b'a ' + word.encode())[:8]):
                assert shape.encode() not in reply.body, (name, reply)
        with pytest.raises(rest.Failed) as e:
            hub.post('/v1/files/read', sandbox=box, path=f'no {word}')
        assert word not in str(e.value) and '[gone]' in e.value.error['cause']
        with Exec(hub, box, 'cat f >&2; cat f') as x:
            x.end()
            assert x.out == x.err == b'a [gone] b\n'
        said = rest.lines(hub.raw('POST', '/v1/exec/stream',
                                  {'sandbox': box, 'command': 'cat f'}).body)
        assert rest.joined(said, 'data') == b'a [gone] b\n'
        reply = hub.raw('POST', '/v1/exec/stream',
                        {'sandbox': box, 'command': 'head -c 150000000 /dev/zero; cat f',
                         'timeout': 250})
        said = rest.lines(reply.body)  # more than a call may keep
        assert said[-1]['exit_code'] == 0 and rest.joined(said[-3:],
                                                          'data').endswith(b'\0a [gone] b\n')
        said = hub.stream('ExecStream', box, {'command': 'cat f'})
        assert rest.joined(said, 'stdout') == b'a [gone] b\n'
        job = hub.post('/v1/exec', sandbox=box, command='cat f', background=True)['exec_id']
        said = rest.lines(hub.raw('GET',
                                  f'/v1/sandboxes/{box}/execs/{job}/output?follow=true').body)
        assert said[-1]['kind'] == 'exit' and rest.joined(said, 'data') == b'a [gone] b\n'
        with Attached(hub, box, job, offset=0) as x:
            x.end()
            assert x.out == b'a [gone] b\n'
    finally:
        road.unset('secret')
    assert hub.exec(box, 'cat f')['stdout'] == f'a {word} b\n'
    clear(hub)


# ---- without a hub

def test_programs_of_this_user(me, road, tmp_path):
    """`holt run`, builds and doctor: the same road, as the local user."""
    run = road.me.run
    road.taken()
    done = run('run', '--', 'sh', '-c', 'echo hunter2', text=True)
    assert (done.returncode, done.stdout) == (0, 'hunter2\n')
    notes = road.taken()
    assert ([(n['hook'], n['action'], n['who']) for n in notes]
            == [(h, 'sandbox.run', 'local') for h in ('policy', 'approval', 'audit')])
    road.set('secret', 'hunter2')
    road.set('delay', '100')
    try:
        assert run('run', '--', 'sh', '-c', 'echo hunter2; echo hunter2 >&2',
                   text=True).stdout == '[gone]\n'
    finally:
        road.unset('secret')
        road.unset('delay')
    assert run('run', '--', 'false').returncode == 1
    assert [n['end'] for n in road.taken()][-1] == 'ok'  # what a command ends with is a result

    folder = tmp_path / 'app'
    folder.mkdir()
    (folder / 'holt.json').write_text(json.dumps({'base': 'host', 'run': ['touch /made']}))
    os.chmod(tmp_path, 0o755)
    road.set('deny')
    try:
        for words in (('run', '--', 'true'), ('build', str(folder)), ('doctor',)):
            road.taken()
            done = run(*words, text=True)
            assert done.returncode != 0 and "policy denies" in done.stderr + done.stdout, (
                words, done)
            assert [n['hook'] for n in road.taken()] == ['policy', 'audit'], words
    finally:
        road.unset('deny')


def test_a_signal_while_policy_waits(road):
    """A person who leaves before policy has said its word starts nothing."""
    road.set('delay', '60000')
    road.taken()
    try:
        left = subprocess.Popen(road.me.argv('run', '--', 'true'), env=road.me.env, cwd='/',
                                stdin=subprocess.DEVNULL)
        road.notes(1)
        left.send_signal(signal.SIGTERM)
        assert left.wait(60) == -signal.SIGTERM
    finally:
        road.unset('delay')
