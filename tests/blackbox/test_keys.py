"""API keys: what each is good for, whose things it sees, and how it ends. Each route, procedure,
tool and verb (surface.py) is asked without a token, with a key that lacks its scope, with the key
of somebody else, and with the right one."""

import copy
import json
import os
import re
import signal
import socket

import pytest

import host
from approval import asks
from client import until
from described import Described, code_of
from door import Closed, Wire, request
from modules import approve
from serving import serve as serve_in
from stage import SOCKETS, Asking, Nothing, Stage, clear, outcome, start, walk
from surface import FAILED, ROUTES, SCOPES, TOOLS, VERBS
from talk import Exec, websocket
from test_expose import App
from test_hub_cli import Hub
from test_preview import Browser, link
from test_serve import INITIALIZE, Serve, Session, post
from test_tools import call, failure

ALL = SCOPES[:3]


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
AT_ONCE = 16


class Never(Stage):
    """Names of the same length as those of a stage, of what never was."""

    def __init__(self, stage):
        self.__dict__.update(vars(stage))
        self.id = self.fresh = 'sbx-' + '0' * 32
        self.snapshot = stage.snapshot and 'snap-' + '0' * 32
        self.workspace, self.result, self.question = 'of-nobod', None, 'qst-' + '0' * 32
        self.talk = NO_TALK

    def instead(self, stage, text):
        """The text with these names for those of the stage."""
        for one in ('id', 'fresh', 'snapshot', 'question', 'talk', 'workspace'):
            text = text.replace(getattr(stage, one), getattr(self, one))
        return text


@pytest.fixture(scope='module')
def victim(hub):
    stage = Stage(hub.alice, 'process program snapshot workspace talk message file question module')
    stage.hub = hub
    stage.make_approval()
    stage.named = hub.post('/v1/keys', name='of-victim', scopes=['read'])['name']
    inside = 'ls -lR --time-style=+; ps -eo comm'
    until(lambda: {'cat', 'sleep'} <= set(hub.exec(stage.id, 'ps -eo comm')['stdout'].split()),
          what='its programs')
    before = hub.exec(stage.id, inside)['stdout']
    yield stage
    assert hub.exec(stage.id, inside)['stdout'] == before
    assert stage.snapshot in [s['id'] for s in hub.call('GET', '/v1/snapshots')['snapshots']]


@pytest.fixture(scope='module')
def carol(hub):
    """Whose calls are right."""
    yield as_bearer(hub, key(hub, 'carol'))


def test_each_has_its_row(hub):
    assert set(hub.by_name) == set(ROUTES)
    assert SOCKETS == {name for name, (_, _, operation) in hub.by_name.items()
                       if 'x-websocket' in operation}


def refused_to_others(hub, victim, name):
    """Without a token, without the scope, and to another: to him it is as what never was."""
    row = ROUTES[name]
    for token in (None, hub.token + 'a'):
        reply = until(lambda: (r := Asking(hub, name, victim, token).reply()).status != 429 and r,
                      what='a refusal')
        assert outcome(reply) == (401, 'unauthorized'), reply
    if name in SOCKETS:
        return  # test_sockets has the rest
    lesser = Asking(hub.lacks[row.scope], name, victim).reply()
    assert outcome(lesser)[0] == 403 and f'scope {row.scope}'.encode() in lesser.body, lesser
    other = Asking(hub.bob, name, victim).reply()
    if row.scope == 'admin':
        assert outcome(other)[0] == 403, other
    elif row.free:
        assert other.status == 200 and victim.id.encode() not in other.body, other
        clear(hub.bob, admin=False)  # names are taken for all
    else:
        nothing = Never(victim)
        never = Asking(hub.bob, name, nothing).reply()
        assert outcome(other)[0] == outcome(never)[0] == 404, (other, never)
        assert nothing.instead(victim, other.body.decode()) == never.body.decode()


def answered_at_once(by, name, stage):
    """One does it, or each; once more is told that it is done. The record of the last is there."""
    row = ROUTES[name]
    replies = [asking.reply() for asking in [start(by, name, stage) for _ in range(AT_ONCE)]]
    found = [outcome(reply) for reply in replies]
    if row.again:
        assert sorted(found, key=str) == [(200, None)] + [row.again] * (AT_ONCE - 1), replies
    else:
        assert (200, None) in found and set(found) <= {(200, None), *row.races}, replies
    done = start(by, name, stage).reply()
    assert outcome(done) == (row.again or (200, None))
    return done.get('Audit-Id')


def recorded(hub, name, audit_id):
    record = hub.call('GET', f'/v1/audit/{audit_id}')['record']
    assert (record['outcome'] == 'ok') != bool(ROUTES[name].again), record
    assert record['who'] and record['session'] and record['args'], record
    assert record['decision'] == 'allow', record
    assert record['effect'] in ('read', 'write', 'execute', 'destroy', 'administer'), record


def test_each_route_and_procedure(hub, carol, victim):
    """Refused to all others, answered to the right one, sixteen times at once and once more;
    a record is there of each that ends by itself."""
    kept = {*vars(victim).values(), *(k['name'] for k in hub.call('GET', '/v1/keys'))}

    def check(name):
        row = ROUTES[name]
        if name.startswith('modules.'):
            approve(hub, 'of-stage')
        if row.scope:
            refused_to_others(hub, victim, name)
        stage = Stage(hub if row.scope == 'admin' else carol, row.needs)
        audit_id = answered_at_once(hub.root if row.scope == 'admin' else carol, name, stage)
        if row.scope and not row.endless and name not in SOCKETS:
            recorded(hub, name, audit_id)

    def after():
        clear(carol, admin=False)
        clear(hub, kept)
    walk(ROUTES, check, after)
    assert Asking(hub, 'health', victim, None).reply().status == 200


def test_sockets(hub, victim):
    """The upgrade or the first message is refused; the right one runs."""
    def ran(by, box=victim.id):
        try:
            with Exec(by, box, 'echo out', token=by.cached) as x:
                return x.end().error or x.out
        except websocket.WebSocketBadStatusException as e:
            return e.status_code
    # so many wrong tokens came before that more of them may have to wait
    until(lambda: ran(as_bearer(hub, 'wrong' * 8)) == 401, what='what a wrong token gets')
    assert ran(hub.bob) == ran(hub.lacks['execute']) == 404
    own = hub.lacks['execute'].create()
    assert code_of({'error': ran(hub.lacks['execute'], own)}) == 'forbidden'
    hub.delete(own)
    assert ran(hub.alice) == b'out\n'


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
        return failure(clients[who], call(clients[who], name, TOOLS[name].right(stage)))

    def check(name):
        row, nothing = TOOLS[name], Never(victim)
        denied = error(row.scope, name, victim)
        assert denied['code'] == 'denied' and f'scope {row.scope}' in denied['cause'], denied
        other, never = error('bob', name, victim), error('bob', name, nothing)
        if row.free:
            assert other is never is None
        else:
            assert other and other['code'] in ('sandbox_not_found', 'snapshot_not_found'), other
            assert {**other, 'cause': nothing.instead(victim, other['cause'])} == never
        assert error('carol', name, Stage(carol, row.needs)) is None
    walk(TOOLS, check)

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
    clear(hub.bob, admin=False)
    clear(carol, admin=False)


# The first reads its value first, and its route is asked; the others are for everybody.
KEYED = [name for name, row in VERBS.items() if row.scope in SCOPES and row.made is not None
         and not row.endless and name != 'secret set']
LOOK = {'exec', 'net allow', 'net revoke'}  # for the sandbox, before all else


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
    stage = Nothing()
    stage.box, stage.snapshot, stage.talk = victim.id, victim.snapshot, victim.talk
    stage.ended = stage.runs = victim.exec
    wrong, bob, alice = env('wrong' * 8), env(hub.bob.cached), env(hub.alice.cached)
    lacking = {scope: env(hub.lacks[scope].cached) for scope in SCOPES}

    def check(name):
        row = VERBS[name]
        words = [*name.split(), *row.right(stage)]
        done = hub.run(*words, env=wrong)
        assert done.returncode == FAILED and b'token' in done.stderr, done
        done = hub.run(*words, env=bob)
        if row.free:
            assert done.returncode == row.status and victim.id.encode() not in done.stdout, done
        else:
            assert done.returncode == FAILED and not done.stdout, done
            assert (b'damaged' if name == 'snapshot import' else b'scope admin'
                    if row.scope == 'admin' and name not in LOOK
                    else b'there is no') in done.stderr, done
        done = hub.run(*words, env=lacking[row.scope])
        refused = (b'there is no' if name in LOOK
                   else f'needs a key with the scope {row.scope}'.encode())
        assert done.returncode == FAILED and refused in done.stderr, done
    walk(KEYED, check, lambda: clear(hub.bob, admin=False))
    assert victim.id in hub.ok('ls', env=alice).decode()  # the control
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
    clear(hub.bob, admin=False)


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
    stage = Stage.__new__(Stage)
    stage.id = box
    asking = Asking(by, 'Watch', stage)
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
    brief = as_bearer(hub, key(hub, 'brief', ttl_seconds=4))
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
