"""API keys: what each is good for, whose things it sees, and how it ends. The rows of routes,
procedures, tools and verbs are those of test_surface.py, test_tools.py and test_verbs.py, which
fail where one is missing: each is asked without a token, with a key that lacks its scope, with the
key of somebody else, and with the right one."""

import copy
import json
import os
import re
import signal
import socket

import pytest

import host
import test_tools
import test_verbs
from approval import Asker, asks
from client import Failed, data_of, until
from described import Described, code_of
from door import Closed, Wire, request
from modules import approve
from serving import serve as serve_in
from talk import Exec, websocket
from test_expose import App
from test_hub_cli import FAILED, Hub
from test_preview import Browser, link
from test_serve import INITIALIZE, Serve, Session, post
from test_surface import ROWS, Asking, Stage, outcome

LIFECYCLE = {'workspaces.create', 'workspaces.attach', 'workspaces.commit', 'workspaces.delete',
             'workspaces.revert', 'workspaces.fork', 'workspaces.import',
             'fork', 'sandboxes.create', 'sandboxes.delete', 'sandboxes.fork', 'sandboxes.stop',
             'sandboxes.snapshot', 'set_timeout', 'pause', 'resume', 'snapshots.delete',
             'snapshots.import', 'snapshots.restore'}
READ = {'sessions.list', 'sessions.get', 'sessions.events', 'sessions.queue', 'sessions.wait',
        'sessions.files', 'sessions.file',
        'sessions.settings', 'flags.list', 'conversation.workspaces', 'conversation.config',
        'conversation.runtime', 'feed.follow', 'modules.list', 'modules.info', 'modules.logs',
        'modules.search', 'modules.result',
        'openapi', 'workspaces.list', 'workspaces.get', 'workspaces.log', 'workspaces.diff',
        'workspaces.verify', 'workspaces.export', 'templates.list', 'sandboxes.list',
        'sandboxes.get', 'sandboxes.processes', 'sandboxes.usage', 'sandboxes.diff', 'network.get',
        'forwards.list', 'vitals', 'usage', 'events', 'snapshots.list', 'snapshots.get',
        'snapshots.export', 'execs.list', 'execs.get', 'execs.output', 'execs.wait', 'files.read',
        'files.list', 'files.stat', 'archive.download', 'audit.list', 'audit.get', 'watch',
        'prompts.list', 'prompts.get', 'prompts.result', 'sessions.prompts.list',
        'ReadFile', 'List', 'Stat', 'Processes', 'Vitals', 'Archive', 'Watch'}
ADMIN = {'workspaces.gc', 'approvals.list', 'approvals.get', 'approvals.answer', 'prompts.answer',
         'sessions.prompts.answer',
         'templates.create', 'network.set',
         'keys.create', 'keys.list', 'keys.revoke', 'modules.approve', 'modules.revoke',
         'modules.enable', 'modules.disable', 'secrets.list', 'secrets.set', 'secrets.remove'}
NAMELESS = {'sessions.list', 'sessions.create', 'flags.list', 'conversation.workspaces',
            'conversation.config', 'conversation.runtime', 'feed.follow',
            'openapi', 'run', 'javascript', 'javascript.register', 'workspaces.create',
            'workspaces.list', 'templates.list', 'fork', 'sandboxes.create', 'sandboxes.list',
            'usage', 'events', 'audit.list', 'audit.get', 'snapshots.list',
            'prompts.list', 'prompts.ask',
            'modules.list', 'modules.info', 'modules.logs', 'modules.test', 'modules.call',
            'modules.search', 'modules.disconnect',
            'snapshots.import'}  # these name nothing of anybody
SCOPES = ('read', 'execute', 'lifecycle', 'admin')
ALL = SCOPES[:3]


def scope_of(name):
    return ('read' if name in READ else 'lifecycle' if name in LIFECYCLE
            else 'admin' if name in ADMIN else 'execute')


def key(hub, name, scopes=ALL, **more):
    return hub.post('/v1/keys', name=name, scopes=list(scopes), **more)['token']


def as_bearer(hub, token):
    """The same hub, asked with another token."""
    other = copy.copy(hub)
    other.cached, other.first = token, hub
    return other


class Keyed(Described, Hub):
    """A hub with keys of two people, one of the admin, and some that each lack one scope."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.alice = as_bearer(self, key(self, 'alice'))
        self.bob = as_bearer(self, key(self, 'bob'))
        self.root = as_bearer(self, key(self, 'root', ['admin']))
        self.lacks = {scope: as_bearer(self, key(self, f'no-{scope}', set(ALL) - {scope}))
                      for scope in SCOPES}


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    with Keyed(me, asks(me, tmp_path_factory.mktemp('keys')), '--listen', '127.0.0.1:0',
               '--preview', '127.0.0.1:0', '--pool', '2', env={'HOLT_LOG': 'debug'}) as shared:
        yield shared
    before.check()


def test_what_the_hub_runs_on(hub):
    """Names, numbers and paths of the machine are for who administers it."""
    details = {'hostname', 'pid', 'executable', 'working_dir', 'data_dir', 'sessions_dir',
               'config_file'}
    admin = as_bearer(hub, key(hub, 'reads-all', ['read', 'admin'])).call('GET', '/api/runtime')
    told = hub.alice.call('GET', '/api/runtime')
    assert set(admin) >= details and admin['pid'] == hub.proc.pid
    assert not set(told) & details and told['os'] == 'linux', told
    hub.call('DELETE', '/v1/keys/reads-all')


NO_TALK = '20000101-000000-00000000'


class Nothing:
    """Names of the same length as those of a stage, of what never was."""

    def __init__(self, stage):
        self.id, self.exec, self.pid = 'sbx-' + '0' * 32, stage.exec, stage.pid
        self.snapshot = stage.snapshot and 'snap-' + '0' * 32
        self.archive, self.named = stage.archive, stage.named
        self.asker = stage.asker
        self.workspace, self.fresh, self.revision = 'of-nobod', self.id, stage.revision
        self.module, self.result = stage.module, None
        self.question = 'qst-' + '0' * 32
        self.talk, self.message, self.file = NO_TALK, stage.message, stage.file


@pytest.fixture(scope='module')
def victim(hub):
    stage = Stage(hub.alice, 'process program snapshot workspace talk message file question')
    stage.module = approve(hub, 'of-stage')
    stage.asker = Asker(hub, stage.id)
    stage.named = hub.post('/v1/keys', name='of-victim', scopes=['read'])['name']
    inside = 'ls -lR --time-style=+; ps -eo comm'
    until(lambda: {'cat', 'sleep'} <= set(hub.exec(stage.id, 'ps -eo comm')['stdout'].split()),
          what='its programs')
    before = hub.exec(stage.id, inside)['stdout']
    yield stage
    assert hub.exec(stage.id, inside)['stdout'] == before
    assert stage.snapshot in [s['id'] for s in hub.call('GET', '/v1/snapshots')['snapshots']]


def sweep(hub):
    """What the right ones have made."""
    for sandbox in hub.call('GET', '/v1/sandboxes'):
        hub.delete(sandbox['id'])
    for snapshot in hub.call('GET', '/v1/snapshots')['snapshots']:
        hub.call('DELETE', f'/v1/snapshots/{snapshot["id"]}')
    for workspace in hub.call('GET', '/v1/workspaces')['workspaces']:
        hub.call('DELETE', f'/v1/workspaces/{workspace["workspace"]}')
    for module in hub.call('GET', '/v1/modules')['modules']:
        if module['module'].startswith('ha:'):
            hub.call('DELETE', f'/v1/javascript/modules/{module["module"][3:]}')
    for talk in hub.call('GET', '/api/sessions')['conversations']:
        hub.call('DELETE', f'/api/sessions/{talk["session_id"]}')


@pytest.fixture(scope='module')
def carol(hub):
    """Whose calls are right."""
    yield as_bearer(hub, key(hub, 'carol'))


SOCKETS = {'sandboxes.exec', 'pty', 'execs.attach', 'ExecSocket'}  # test_sockets has them


@pytest.mark.parametrize('name', sorted(set(ROWS) - SOCKETS - {'health'}))
def test_each_route_and_procedure(hub, carol, victim, name):
    scope, right = scope_of(name), hub.root if name in ADMIN else carol
    if name.startswith('modules.'):
        approve(hub, 'of-stage')
    assert outcome(Asking(hub, name, victim, None).reply()) == (401, 'unauthorized')
    lesser = Asking(hub.lacks[scope], name, victim).reply()
    assert outcome(lesser)[0] == 403 and f'scope {scope}'.encode() in lesser.body, lesser
    if name in ADMIN:
        other = Asking(hub.bob, name, victim).reply()
        assert outcome(other)[0] == 403, other
    elif name in NAMELESS:
        other = Asking(hub.bob, name, victim).reply()
        assert other.status == 200 and victim.id.encode() not in other.body, other
        sweep(hub.bob)
    else:
        other = Asking(hub.bob, name, victim).reply()
        never = Asking(hub.bob, name, Nothing(victim)).reply()
        assert outcome(other)[0] == outcome(never)[0] == 404, (other, never)
        for was, is_now in zip((victim.id, victim.fresh, victim.snapshot, victim.question),
                               ('sbx-', 'sbx-', 'snap-', 'qst-')):
            other.body = other.body.replace(was.encode(), (is_now + '0' * 32).encode())
        other.body = other.body.replace(victim.talk.encode(), NO_TALK.encode())
        other.body = other.body.replace(victim.workspace.encode(), b'of-nobod')
        assert other.body == never.body
    stage = Stage(right if name not in ADMIN else hub, ROWS[name].needs)
    assert outcome(Asking(right, name, stage).reply()) == (200, None)
    sweep(right if name not in ADMIN else carol)
    if name in ADMIN:
        hub.delete(stage.id)
    for left in {k['name'] for k in hub.call('GET', '/v1/keys')} & {'made', 'of-stage'}:
        hub.call('DELETE', f'/v1/keys/{left}')


def test_sockets(hub, victim):
    """The upgrade or the first message is refused; the right one runs."""
    def ran(by, box=victim.id):
        try:
            with Exec(by, box, 'echo out', token=by.cached) as x:
                return x.end().error or x.out
        except websocket.WebSocketBadStatusException as e:
            return e.status_code
    assert ran(as_bearer(hub, 'wrong' * 8)) == 401
    assert ran(hub.bob) == ran(hub.lacks['execute']) == 404
    own = hub.lacks['execute'].create()
    assert code_of({'error': ran(hub.lacks['execute'], own)}) == 'forbidden'
    hub.delete(own)
    assert ran(hub.alice) == b'out\n'


TOOLS = {'sandbox_create': 'lifecycle', 'sandbox_fork': 'lifecycle',
         'sandbox_terminate': 'lifecycle', 'sandbox_pause': 'lifecycle',
         'sandbox_resume': 'lifecycle', 'sandbox_set_timeout': 'lifecycle',
         'sandbox_snapshot': 'lifecycle', 'sandbox_restore': 'lifecycle',
         'sandbox_exec': 'execute', 'sandbox_write_file': 'execute',
         'sandbox_move_file': 'execute', 'sandbox_remove_file': 'execute',
         'sandbox_signal': 'execute'}


def test_tools_and_resources(hub, me, carol, victim):
    """Each tool, over Streamable HTTP by `holt mcp --connect`."""
    def mcp(by):
        client = me.mcp('--connect', f'http://{hub.address[0]}:{hub.address[1]}',
                        env={'HOLT_TOKEN': by.cached})
        client.initialize()
        return client
    clients = {name: mcp(by) for name, by in (
        ('bob', hub.bob), ('carol', carol), *((s, hub.lacks[s]) for s in ALL))}

    def error(who, name, stage):
        tool = test_tools.start(clients[who], name, test_tools.ROWS[name].arguments(stage))
        return test_tools.failure(clients[who], tool)
    assert set(test_tools.ROWS) == {
        t['name'] for t in clients['bob'].request('tools/list')['result']['tools']}
    for name, row in test_tools.ROWS.items():
        scope = TOOLS.get(name, 'read')
        denied = error(scope, name, victim)
        assert denied['code'] == 'denied' and f'scope {scope}' in denied['cause'], (name, denied)
        other, never = error('bob', name, victim), error('bob', name, Nothing(victim))
        if name in ('sandbox_create', 'sandbox_list'):
            assert other is never is None
        else:
            assert other and other['code'] in ('sandbox_not_found', 'snapshot_not_found'), other
            cause = other['cause'].replace(victim.id, Nothing(victim).id).replace(
                victim.snapshot, Nothing(victim).snapshot)
            assert {**other, 'cause': cause} == never, name
        stage = test_tools.Stage(clients['carol'], row.needs)
        assert error('carol', name, stage) is None, name

    def seen(who):
        listed = clients[who].request('resources/list')['result']['resources']
        done = clients[who].request('completion/complete', {
            'ref': {'type': 'ref/resource', 'uri': 'sandbox://{sandbox}/{+path}'},
            'argument': {'name': 'sandbox', 'value': ''}})['result']['completion']['values']
        return {r['name'] for r in listed} | set(done)
    mine = clients['carol'].create()
    assert victim.id not in seen('bob') and victim.id not in seen('carol')
    assert mine.id in seen('carol') - seen('bob')
    uri = f'sandbox://{mine.id}/etc/hostname'
    assert 'error' in clients['bob'].request('resources/read', {'uri': uri})
    assert 'result' in clients['carol'].request('resources/read', {'uri': uri})
    for client in clients.values():
        assert client.close() == 0
    sweep(hub.bob)
    sweep(carol)


HUB_VERBS = [name for name, row in test_verbs.ROWS.items()
             if row.hub and row.right(test_verbs.Names()) is not None and not row.endless
             # the first reads its value first, and its route is asked; the others are for everybody
             and name not in ('secret set', 'web', 'auth whoami')]
FREE = {'up', 'ls', 'top', 'events', 'snapshot', 'snapshot ls', 'js', 'ws', 'ws ls',
        'ws create', 'prompts', 'prompts ls', 'conversations', 'conversations ls',
        'conversations new'}  # of no sandbox of anybody
ADMINS = {name for name in HUB_VERBS
          if name.startswith(('approvals', 'auth keys', 'secret', 'ws gc', 'prompts answer'))}


def test_verbs_of_the_command_line(hub, victim, tmp_path):
    """A key in the place of the token file is a key, at the user's own socket too."""
    def env(token):
        home = tmp_path / str(len(os.listdir(tmp_path)))
        home.mkdir()
        (home / 'token').write_text(token)
        (home / 'token').chmod(0o600)
        os.chown(home, os.stat(hub.home).st_uid, -1)
        os.chown(home / 'token', os.stat(hub.home).st_uid, -1)
        return {'HOLT_HOME': str(home), 'HOLT_SOCKET': hub.paths[0]}
    stage = test_verbs.Names()
    stage.box, stage.snapshot, stage.talk = victim.id, victim.snapshot, victim.talk
    stage.ended = stage.runs = victim.exec
    wrong, bob = env('wrong' * 8), env(hub.bob.cached)
    lacking = {scope: env(hub.lacks[scope].cached) for scope in SCOPES}
    for name in HUB_VERBS:
        words = [*name.split(), *test_verbs.ROWS[name].right(stage)]
        done = hub.run(*words, env=wrong)
        assert done.returncode == FAILED and b'token' in done.stderr, done
        if name in FREE:
            done = hub.run(*words, env=bob)
            assert done.returncode == 0 and victim.id.encode() not in done.stdout, done
        else:
            done = hub.run(*words, env=bob)
            assert done.returncode == FAILED and not done.stdout, done
            assert (b'scope admin' if name in ADMINS or name in ('net allow', 'net revoke')
                    and b'scope' in done.stderr else b'damaged' if name == 'snapshot import'
                    else b'there is no') in done.stderr, done
        ends = [hub.run(*words, env=one) for one in lacking.values()]
        refused = b'there is no' if name == 'exec' else b'needs a key with the scope'
        assert any(refused in done.stderr for done in ends), (name, ends)
    sweep(hub.bob)
    for by in hub.lacks.values():
        for sandbox in hub.call('GET', '/v1/sandboxes'):
            if sandbox['id'] != victim.id:
                hub.delete(sandbox['id'])
    alice = env(hub.alice.cached)  # the control
    assert victim.id in hub.ok('ls', env=alice).decode()
    assert hub.ok('exec', victim.id, '--', 'cat', 'f', env=alice) == b'old\n'


# ---- owners ---------------------------------------------------------------------------------

def test_what_comes_of_ones_own_is_ones_own(hub):
    """Forks, snapshots, imports and what is restored, whoever asks for them; and the events of
    those that are gone."""
    def all_of(by):
        return ({s['id'] for s in by.call('GET', '/v1/sandboxes')}
                | {s['id'] for s in by.call('GET', '/v1/snapshots')['snapshots']})
    box = hub.alice.create()
    made = {box}
    for by in (hub.alice, hub.root, hub):
        made |= {s['id'] for s in by.post(f'/v1/sandboxes/{box}/fork', count=1)['sandboxes']}
        snapshot = by.post(f'/v1/sandboxes/{box}/snapshots')['id']
        made |= {snapshot}
        made |= {by.post(f'/v1/snapshots/{snapshot}/restore')['id']}
    archive = hub.alice.raw('GET', f'/v1/snapshots/{snapshot}/export').body
    head = hub.request('POST', '/v1/snapshots', token=hub.bob.cached, fields=[
        'Content-Type: application/zstd', f'Content-Length: {len(archive)}'])
    with hub.wire() as wire:
        reply = wire.ask(head.encode() + archive, 'POST')
    assert reply.status == 200, reply
    of_bob = json.loads(reply.body)['id']
    assert made <= all_of(hub.alice) and of_bob not in all_of(hub.alice)
    assert of_bob in all_of(hub.bob) and not made & all_of(hub.bob)
    assert made | {of_bob} <= all_of(hub.root) and made | {of_bob} <= all_of(hub)
    hub.alice.delete(box)

    def told(by):
        return {e.get('sandbox') for e in by.call('GET', '/v1/events?limit=1000')['events']}
    assert box in told(hub.alice) and box in told(hub) and box not in told(hub.bob)
    assert hub.bob.call('GET', f'/v1/events?sandbox={box}&after=1')['events'] == []
    # The name is free again, and what happened to its first bearer stays his.
    assert hub.bob.create(id='shared') and hub.bob.delete('shared')
    assert hub.alice.create(id='shared')
    kinds = [[e['kind'] for e in by.call('GET', '/v1/events?sandbox=shared')['events']]
             for by in (hub.bob, hub.alice, hub)]
    assert kinds == [['created', 'terminated'], ['created'], ['created', 'terminated', 'created']]
    with pytest.raises(Exception) as e:
        hub.bob.create(id='shared')
    assert 'running' not in str(e.value) and 'taken' in str(e.value)
    for one in all_of(hub.alice) & made:
        hub.call('DELETE', f'/v1/{"snapshots" if one.startswith("snap") else "sandboxes"}/{one}')
    hub.delete('shared')
    sweep(hub.bob)


def test_numbers_of_the_hub_are_for_the_admin(hub):
    for by, status in ((hub, 200), (hub.root, 200), (hub.alice, 403)):
        assert by.ask(path='/metrics').status == status


# ---- the end of a key -----------------------------------------------------------------------

def gone(wire):
    """The server ends what was open, in order or not."""
    try:
        while wire.chunk():
            pass
    except TimeoutError:
        raise  # it goes on, and says nothing
    except (Closed, OSError, AssertionError, ValueError):
        pass


def open_events(by, box):
    wire = by.wire()
    wire.send(by.request('GET', f'/v1/events?follow=true&sandbox={box}'))
    assert wire.head()[0] == 200 and wire.chunk()
    return wire, gone


def open_watch(by, box):
    asking = Asking(by, 'Watch', type('S', (), {'id': box, 'exec': None, 'snapshot': None,
                                                'asker': None, 'named': None,
                                                'talk': None, 'message': None,
                                                'question': None}))
    assert asking.wire.head()[0] == 200
    return asking.wire, gone


def open_exec(by, box):
    talk = Exec(by, box, 'echo out; sleep 1000', token=by.cached)
    talk.until(b'out\n')

    def ended(x):
        with pytest.raises((websocket.WebSocketException, OSError, AssertionError)):
            while x.hear():
                pass
            raise OSError
        x.ws.shutdown()
    return talk, ended


def open_exposed(by, box):
    """A WebSocket to a server in the sandbox."""
    wire = by.wire()
    wire.send(by.request('GET', f'/v1/sandboxes/{box}/expose/8000/ws', fields=[
        'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==']))
    assert wire.head()[0] == 101
    return wire


def open_session(by, box):
    wire = Session(by).stream()
    return wire, gone


def open_sse(by, box):
    wire = by.wire()
    wire.send(by.request(path='/sse', fields=['Accept: text/event-stream']))
    assert wire.head()[0] == 200 and wire.chunk()
    return wire, gone


STREAMS = [open_events, open_watch, open_exec, open_session, open_sse]


def test_revoked_while_streams_run(hub):
    """All that the key has under way ends; the same of another key goes on."""
    left = as_bearer(hub, key(hub, 'left'))
    mine, theirs = left.create(), hub.bob.create()
    for by, box in ((left, mine), (hub.bob, theirs)):
        by.exec(box, 'mkdir d')
    job = left.exec(mine, 'sleep 1000', background=True)['exec_id']
    stay = [open_(hub.bob, theirs) for open_ in STREAMS]
    end = [open_(left, mine) for open_ in STREAMS]
    session = Session(left)
    sessions = hub.metrics()['holt_sessions{transport="http"}']
    hub.call('DELETE', '/v1/keys/left')
    assert left.ask().status == 401
    with left.wire() as wire:
        assert wire.ask(post(left, {'jsonrpc': '2.0', 'id': 1, 'method': 'ping'},
                             fields=session.fields)).status == 401
    for stream, ended in end:
        ended(stream)
    until(lambda: hub.metrics()['holt_sessions{transport="http"}'] == sessions - 2)
    # The streams of the other are open, and one of them says what happens.
    hub.bob.exec(theirs, 'echo > d/f')
    assert b'f' in stay[1][0].chunk()
    stay[2][0].type('x')
    assert hub.metrics()['holt_http_streams'] >= 4
    for stream, _ in stay:
        stream.__exit__(None, None, None)
    # What it made stays, for those who see everything; a key of the same name is another.
    again = as_bearer(hub, key(hub, 'left'))
    assert again.ask(path=f'/v1/sandboxes/{mine}/execs/{job}').status == 404
    assert again.call('GET', '/v1/sandboxes') == []
    assert [r['outcome'] for r in again.call('GET', '/v1/audit')['records']] == [
        'sandbox_not_found', 'ok']
    assert hub.call('GET', f'/v1/sandboxes/{mine}/execs/{job}')['state'] == 'running'
    assert {r.get('target') for r in hub.call('GET', '/v1/audit?who=key:left')['records']} >= {mine}
    with again.wire() as wire:
        assert wire.ask(post(again, {'jsonrpc': '2.0', 'id': 1, 'method': 'ping'},
                             fields=session.fields)).status == 404
    hub.delete(mine)
    hub.bob.delete(theirs)
    hub.call('DELETE', '/v1/keys/left')


def test_links_and_forwards_end_with_their_key(hub):
    """Those that somebody else has asked for stay."""
    def forward(by):
        port = by.post(f'/v1/sandboxes/{box}/forward', guest_port=8001)['host'].split(':')[1]
        return socket.create_connection(('127.0.0.1', int(port)), timeout=60)

    def page(by):
        browser = Browser(link(by, box, 8000))
        browser.enter()
        return browser

    def status(browser):
        return browser.raw().status

    def open_page(browser):
        wire = Wire(('127.0.0.1', browser.port))
        wire.send(request('GET', '/wait', host=browser.host, token=None,
                          fields=[f'Cookie: {browser.cookies[0]}']))
        assert wire.head()[0] == 200
        return wire
    left = as_bearer(hub, key(hub, 'left'))
    box = App(left).id
    serve_in(left, box, 'echo', 8001)
    one, stays = page(left), page(hub)
    assert status(one) == status(stays) == 200
    shown, forwarded, exposed = open_page(one), forward(left), open_exposed(left, box)
    hub.call('DELETE', '/v1/keys/left')
    gone(shown)
    gone(exposed)
    assert forwarded.recv(1) == b''
    assert hub.call('GET', f'/v1/sandboxes/{box}/forward')['forwards'] == []
    assert status(one) == 401
    assert status(stays) == 200
    key(hub, 'left')  # of the same name, and another
    assert status(one) == 401
    # what the operator asked for, too, is his
    bob = hub.bob.create()
    for by in (hub.bob, hub):
        by.post(f'/v1/sandboxes/{bob}/forward', guest_port=1)
    hub.call('DELETE', '/v1/keys/bob')
    assert len(hub.call('GET', f'/v1/sandboxes/{bob}/forward')['forwards']) == 1
    hub.bob = as_bearer(hub, key(hub, 'bob'))
    hub.delete(bob)
    hub.delete(box)
    hub.call('DELETE', '/v1/keys/left')


def test_a_session_is_its_principals(hub):
    session = Session(hub.alice)
    for by, status in ((hub.bob, 404), (hub, 404), (hub.alice, 200)):
        with by.wire() as wire:
            assert wire.ask(post(by, {'jsonrpc': '2.0', 'id': 1, 'method': 'ping'},
                                 fields=session.fields)).status == status
    with hub.alice.wire() as wire:
        wire.send(hub.alice.request(path='/sse', fields=['Accept: text/event-stream']))
        assert wire.head()[0] == 200
        uri = re.search(rb'data: (\S+)', wire.chunk())[1].decode()
        for by, status in ((hub.bob, 404), (hub.alice, 202)):
            with by.wire() as other:
                assert other.ask(post(by, INITIALIZE, path=uri)).status == status


def test_expires(hub):
    """By itself, and what is under way with it."""
    brief = as_bearer(hub, key(hub, 'brief', ttl_seconds=10))
    box = brief.create()
    wire, ended = open_events(brief, box)
    ended(wire)
    assert brief.ask().status == 401
    assert [k['expired'] for k in hub.call('GET', '/v1/keys') if k['name'] == 'brief'] == [True]
    again = as_bearer(hub, key(hub, 'brief'))  # in its place
    assert again.ask(path=f'/v1/sandboxes/{box}').status == 404
    assert brief.ask().status == 401
    hub.delete(box)
    hub.call('DELETE', '/v1/keys/brief')


def test_a_key_may_revoke_itself(hub):
    own = as_bearer(hub, key(hub, 'own', ['admin']))
    assert own.call('DELETE', '/v1/keys/own') == {'status': 'revoked', 'name': 'own'}
    assert own.ask().status == 401
    with pytest.raises(Exception) as e:
        hub.call('DELETE', '/v1/keys/own')
    assert e.value.code == 'not_found'


# ---- at rest --------------------------------------------------------------------------------

def test_keys_are_nowhere(me, tmp_path):
    """Neither in the registry nor in a log nor on a command line; they outlive a hub that is
    killed, and so do owners."""
    with Hub(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0',
             env={'HOLT_LOG': 'debug'}) as first:
        printed = first.run('auth', 'keys', 'create', '--name', 'kept', '--scopes',
                            'read,lifecycle', '--ttl', '1h', env={'HOLT_LOG': 'debug'}, text=True)
        token = printed.stdout.strip()
        assert re.fullmatch('holt_key_[0-9a-f]{64}', token) and token[9:] not in printed.stderr
        bearer = as_bearer(first, token)
        box = bearer.create()
        listed = first.ok('auth', 'keys', 'ls', '-o', 'json').decode()
        assert token[9:] not in listed and json.loads(listed)[0]['scopes'] == ['read', 'lifecycle']
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open(f'/proc/{pid}/cmdline', 'rb') as f:
                    assert token.encode() not in f.read()
            except OSError:
                pass
        os.kill(first.proc.pid, signal.SIGKILL)
        first.proc.wait()
        logs = first.said()
        with Serve(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0') as second:
            reply = second.ask(path=f'/v1/sandboxes/{box}', token=token)
            assert reply.status == 200, reply
            other = json.loads(second.ask('POST', '/v1/keys', body=json.dumps(
                {'name': 'other', 'scopes': ['read']})).body)['token']
            assert second.ask(path=f'/v1/sandboxes/{box}', token=other).status == 404
            logs += second.said()
            found = [os.path.join(top, name) for top, _, names in os.walk(tmp_path)
                     for name in names if os.path.isfile(os.path.join(top, name))]
            assert any(name.endswith('registry.db') for name in found)
            for name in found:
                with open(name, 'rb') as f:
                    text = f.read()
                assert token[9:].encode() not in text and other[9:].encode() not in text, name
            assert token[9:] not in logs and other[9:] not in logs
            second.ask('DELETE', f'/v1/sandboxes/{box}')
        first.works = lambda: None
        first.end = lambda: 0
