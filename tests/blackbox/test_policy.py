"""The operator's file: what it denies is denied on every road, it is read again when it changes,
and nobody in a sandbox gets at it."""

import json
import os
import re
import shutil
import subprocess
import time

import jsonschema
import pytest

import image_files
from client import until
from described import Described
from rest import Failed
from stage import Stage, outcome, start
from test_keys import as_bearer, key
from test_stages import denied
from test_serve import Session, post
from who import HERE


class Hub(Described):
    """A hub whose file is `config`."""

    def __init__(self, me, home, *arguments, **config):
        self.path = home
        self.config = os.path.join(home, 'config.json')
        self.me = me
        self.put(config)
        super().__init__(me, home, '--listen', '127.0.0.1:0', '--pool', '0', *arguments)

    def put(self, config):
        text = config if isinstance(config, str) else json.dumps(config, indent=1)
        with open(self.config + '.new', 'w', encoding='utf-8') as f:
            f.write(text)
        os.chown(self.config + '.new', self.me.uid, self.me.uid)
        os.rename(self.config + '.new', self.config)

    def ready(self):
        return json.loads(self.ask(path='/readyz').body)

    def set(self, **config):
        """Writes the file, and waits until it holds."""
        before = self.metrics()['holt_config_reads_total']
        self.put(config)
        until(lambda: self.metrics()['holt_config_reads_total'] > before, what='the new file')
        assert 'config' not in self.ready()


def deny(action, **more):
    return {'rules': [{'name': f'no {action}', 'actions': [action], 'then': 'deny', **more}]}


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    home = tmp_path_factory.mktemp('policy')
    os.chown(home, me.uid, me.uid)
    with Hub(me, home, '--allow', 'a.example:443', '--allow', 'wide', '--allow', '*.b.example:8443',
             network={'presets': {'wide': ['c.example']}}) as shared:
        yield shared


@pytest.fixture
def box(hub):
    return hub.create()


def cause(call, *arguments, **more):
    """Why it was denied; None: it was not."""
    try:
        call(*arguments, **more)
    except Failed as e:
        assert (e.status, e.code) == (403, 'forbidden'), e
        return e.error['cause']
    return None


def files(hub, box):
    return hub.exec(box, 'ls')['stdout']


def test_denied_on_every_road(hub, me):
    """One rule; the same requests are answered without it."""
    stage = Stage(hub)
    session = Session(hub)
    rule = deny('sandbox.exec')

    def tool():
        with hub.wire() as wire:
            session.call(wire, 'sandbox_exec', sandbox=stage.id, command='touch by-tool')
            return session.result(wire)

    def local():
        return me.run('run', '--', 'true', env=hub.env, text=True)

    hub.set(policy=rule)
    why = cause(hub.exec, stage.id, 'touch by-rest')
    assert 'rule "no sandbox.exec", config.json:' in why and str(hub.path) not in why, why
    with pytest.raises(Failed) as failed:
        hub.exec(stage.id, 'touch by-rest')
    assert 'operator' in failed.value.error['remediation']
    assert 'path' not in failed.value.error['remediation']
    for name in ('exec', 'exec.stream', 'run_code.stream', 'Exec', 'ExecStream', 'ExecSocket',
                 'pty'):
        assert denied(start(hub, name, stage)) in ('forbidden', 'permission_denied'), name
    said = tool()
    assert said['isError'] and 'rule "no sandbox.exec"' in json.dumps(said).replace('\\', ''), said
    hub.set(policy=deny('sandbox.run'))
    done = local()
    assert (done.returncode, done.stdout) == (125, '') and 'rule "no sandbox.run"' in done.stderr
    hub.set()
    assert 'by-' not in files(hub, stage.id)
    assert not tool().get('isError') and 'by-tool' in files(hub, stage.id)
    assert outcome(start(hub, 'exec.stream', stage).reply()) == (200, None)
    assert local().returncode == 0
    hub.delete(stage.id)


def listed(session):
    with session.hub.wire() as wire:
        wire.send(post(session.hub, {'jsonrpc': '2.0', 'id': 7, 'method': 'tools/list'},
                       fields=session.fields))
        return {t['name'] for t in session.result(wire)['tools']}


def test_a_tool_that_is_always_denied_is_not_listed(hub, box):
    """For whom, and from when on; a call of it ends as it does without that."""
    reader = as_bearer(hub, key(hub, 'reader', ['read']))
    mine, its = Session(hub), Session(reader)
    every = listed(mine)
    stream = mine.stream()

    def rules(*some):
        hub.set(policy={'rules': [{'name': f'{n}', 'then': 'deny', **rule}
                                  for n, rule in enumerate(some)]})
        stream.until(b'notifications/tools/list_changed')

    def told(session, tool, **arguments):
        with session.hub.wire() as wire:
            session.call(wire, tool, **arguments)
            return session.result(wire)['content'][0]['text']

    assert {'sandbox_exec', 'sandbox_list'} <= every
    assert 'sandbox_list' in listed(its) and 'sandbox_exec' not in listed(its)
    assert 'needs a key with the scope execute' in told(its, 'sandbox_exec', sandbox=box,
                                                        command='true')
    rules({'tools': ['sandbox_fork']}, {'effects': ['destroy'], 'who': ['key:reader']},
          {'actions': ['sandbox.exec'], 'when': {'/command': 'rm*'}})
    assert listed(mine) == every - {'sandbox_fork'}
    assert 'the policy denies sandbox.fork: rule \\"0\\"' in told(mine, 'sandbox_fork', sandbox=box)
    rules({'actions': ['sandbox.pause'], 'when': {'/sandbox': '*'}})
    assert listed(mine) == every
    stream.close()
    hub.set()


def test_arguments_principals_and_defaults(hub, box):
    """Who asks, what with, and what no rule says."""
    hub.set(policy=deny('sandbox.exec', when={'/command': 'git push*'}))
    assert cause(hub.exec, box, 'git pull || true') is None
    hub.set(policy=deny('sandbox.exec', who=['key:*', 'local']))
    hub.set(policy=deny('sandbox.exec', who=['token']))
    hub.set(policy=deny('*', tools=['sandbox_exec']))
    assert cause(hub.call, 'GET', f'/v1/sandboxes/{box}') is None
    hub.set(policy={'default': 'deny', 'rules': [
        {'name': 'looks', 'effects': ['read'], 'then': 'allow'}]})
    assert cause(hub.call, 'GET', f'/v1/sandboxes/{box}') is None
    hub.set(principals={
        'token': {'policy': deny('sandbox.pause')}, 'key:x': {'policy': {'default': 'deny'}}})
    assert 'no sandbox.pause' in cause(hub.post, '/v1/pause', sandbox=box)
    hub.set()


def status(call, *arguments, **more):
    """200, or the status of its failure."""
    try:
        call(*arguments, **more)
    except Failed as e:
        return e.status
    return 200


def spellings(path):
    """The same file, relative to /workspace too."""
    parts = path.strip('/').split('/')
    yield from (path, path + '/', '/' + path, path.replace('/', '//'), path.replace('/', '/./'),
                '/..' + path, '/tmp/..' + path, '/tmp/x/../..' + path, '../' + '/'.join(parts),
                './../' + '/'.join(parts), '/'.join(['', parts[0], '..', *parts]))


def test_a_path_has_one_spelling(hub, box):
    """Whatever it is written as, a rule that denies and one that allows decide alike, also of a
    file that is uploaded; and the file is the one that the rule saw."""
    hub.exec(box, 'mkdir -p /tmp/no /workspace/yes; echo a >/tmp/no/f; echo b >/workspace/yes/f')
    asks = {
        'read': lambda path: hub.post('/v1/files/read', sandbox=box, path=path),
        'stat': lambda path: hub.post('/v1/files/stat', sandbox=box, path=path),
        'mkdir': lambda path: hub.post('/v1/files/mkdir', sandbox=box, path=path),
        'upload': lambda path: hub.call('PUT', f'/v1/sandboxes/{box}/archive?path={path}'),
    }
    both = ((deny('files.*', when={'/path': '/tmp/no*'}), '/tmp/no/f', '/workspace/yes/f'),
            ({'default': 'deny', 'rules': [
                {'name': 'here', 'actions': ['files.*'], 'when': {'/path': '/workspace/yes/*'},
                 'then': 'allow'}]}, '/tmp/no/f', '/workspace/yes/f'))
    for policy, no, yes in both:
        hub.set(policy=policy)
        for name, ask in asks.items():
            assert {s for s in spellings(no) if status(ask, s) != 403} == set(), name
            assert {s for s in spellings(yes) if status(ask, s) == 403} == set(), name
    hub.set()
    assert hub.post('/v1/files/read', sandbox=box, path='../tmp/./no//f')['content'] == 'a\n'
    hub.delete(box)


def test_any_command(hub, box):
    """One rule about all that runs commands, whole lines of arguments too, and what leaves some
    open is told."""
    session = Session(hub, '/mcp?tools=all')

    def run(*words):
        return hub.post('/v1/run', command=list(words), state={'retention': 'destroy'})

    def bash(command):
        with hub.wire() as wire:
            session.call(wire, 'Bash', command=command)
            return 'denies' in json.dumps(session.result(wire))

    hub.set(policy=deny('command.run', when={'/command': 'rm *'}))
    assert 'no command.run' in cause(hub.exec, box, 'rm -rf x')
    assert 'no command.run' in cause(hub.post, '/v1/exec', sandbox=box, command='rm',
                                     args=['-rf', 'a b'])
    assert 'no command.run' in cause(run, 'rm', '-rf', 'x') and bash('rm -rf x')
    assert cause(hub.exec, box, 'true') is cause(run, 'true') is None and not bash('true')
    # and each word of a list, however it is asked for
    assert 'no command.run' in cause(run, 'sh', '-c', 'rm x')
    assert 'no command.run' in cause(hub.post, '/v1/exec', sandbox=box, command='sh',
                                     args=['-c', 'rm x'])
    assert 'no command.run' in cause(hub.post, '/v1/run_code/stream', sandbox=box,
                                     language='bash', code='rm x')
    assert cause(hub.post, '/v1/exec', sandbox=box, command='sh', args=['-c', 'true']) is None
    # where it runs has two names
    for name in ('/cwd', '/working_dir'):
        hub.set(policy=deny('command.run', when={name: '/etc*'}))
        assert 'no command.run' in cause(hub.exec, box, 'true', working_dir='/etc'), name
        assert 'no command.run' in cause(hub.post, '/v1/run', command=['true'],
                                         working_dir='/etc', state={'retention': 'destroy'}), name
        assert cause(hub.exec, box, 'true', working_dir='/tmp') is None, name
    hub.set(policy={'default': 'deny', 'rules': [
        {'name': 'logs', 'actions': ['command.run'], 'when': {'/command': 'echo log *'},
         'then': 'allow'}]})
    assert cause(hub.exec, box, 'echo log -3') is cause(run, 'echo', 'log', '-3') is None
    for evil in ('echo log -3; id', 'echo log -3\nid', 'echo log $(id)', 'echo log | sh'):
        assert cause(hub.exec, box, evil), evil
    hub.set()
    hub.delete(box)


def test_what_a_request_leaves_out(hub):
    """Rules decide by the working directory and the user that hold, whoever has said them."""
    boxes = {cwd: hub.create(**({'cwd': cwd} if cwd else {}), user='root')
             for cwd in (None, '/etc')}

    session = Session(hub, '/mcp?tools=all')

    def run(**more):
        return hub.post('/v1/run', command=['true'], state={'retention': 'destroy'}, **more)

    def listed(box):
        with hub.wire() as wire:
            session.call(wire, 'sandbox_list_files', sandbox=box)
            return json.dumps(session.result(wire))

    calls = {
        'exec': lambda cwd: hub.exec(boxes[cwd], 'true'),
        'archive': lambda cwd: hub.raw('GET', f'/v1/sandboxes/{boxes[cwd]}/archive').status,
        'list': lambda cwd: listed(boxes[cwd]),
    }
    names = ['/cwd', '/working_dir']
    for name in names:
        hub.set(policy=deny('command.run', when={name: '/etc*'}))
        assert 'no command.run' in cause(calls['exec'], '/etc'), name
        assert cause(calls['exec'], None) is cause(run) is None, name
        hub.set(policy=deny('command.run', when={name: '/workspace'}))
        assert 'no command.run' in cause(calls['exec'], None) and cause(run), name
        assert cause(calls['exec'], '/etc') is None, name
        hub.set(policy={'default': 'deny', 'rules': [
            {'name': 'here', 'actions': ['command.run'], 'when': {name: '/workspace'},
             'then': 'allow'}]})
        assert cause(calls['exec'], None) is cause(run) is None, name
        assert cause(calls['exec'], '/etc') and cause(run, working_dir='/tmp'), name
    hub.set(policy=deny('files.*', when={'/path': '/etc*'}))
    assert calls['archive']('/etc') == 403 and calls['archive'](None) == 200
    assert 'no files.*' in calls['list']('/etc') and 'no files.*' not in calls['list'](None)
    hub.set(policy=deny('command.run', when={'/user': 'root'}))
    assert 'no command.run' in cause(calls['exec'], None)
    assert 'no command.run' in cause(hub.exec, boxes[None], 'true', user='root')
    assert cause(hub.exec, boxes[None], 'true', user='user') is cause(run) is None
    hub.set(policy=deny('sandbox.create', when={'/cwd': '/workspace'}))
    assert 'no sandbox.create' in cause(hub.create)
    hub.delete(hub.create(cwd='/tmp'))
    hub.set()
    for box in boxes.values():
        hub.delete(box)


def test_images(hub):
    hub.set(images=['python-*'])
    assert 'rule "images", config.json:2' in cause(hub.create)
    hub.set(principals={'tok*': {'images': []}})
    hub.set(images=['ho*'])
    hub.delete(hub.create())


def ids_of_keys():
    """The rules of docs/policy.md."""
    with open(os.path.join(HERE, '../../docs/policy.md'), encoding='utf-8') as f:
        text = re.search(r'one space of ids.*?```jsonc\n(.*?)```', f.read(), re.S)[1]
    return json.loads(f'{{{text}}}')


def test_ids_that_keys_may_choose(hub):
    """With such rules, an id that another has is told apart from none by no answer."""
    hub.set(policy=ids_of_keys())
    alice, bob = (as_bearer(hub, key(hub, name)) for name in ('alice', 'bob'))
    alice.create(id='alice-1')
    hub.create(id='taken-1')
    box = bob.create()
    snapshot = bob.post(f'/v1/sandboxes/{box}/snapshots')['id']
    roads = [('/v1/sandboxes', lambda name: {'id': name}),
             ('/v1/fork', lambda name: {'template': 'host', 'id': name}),
             ('/v1/fork', lambda name: {'template': box, 'id': name}),
             (f'/v1/sandboxes/{box}/fork', lambda name: {'ids': [name]}),
             (f'/v1/sandboxes/{box}/fork', lambda name: {'id': name}),
             (f'/v1/snapshots/{snapshot}/restore', lambda name: {'id': name})]
    for path, body in roads:
        answers = [bob.asked('POST', path, body(name))
                   for name in ('alice-1', 'taken-1', 'alice-2', 'taken-2')]
        told = {json.dumps(answer).replace('alice-1', 'N').replace('taken-1', 'N').replace(
            'alice-2', 'N').replace('taken-2', 'N') for answer in answers}
        assert len(told) == 1 and answers[0][0] == 403, (path, told)
    for who, one in ((alice, 'alice-1'), (bob, box), (hub, 'taken-1')):
        who.delete(one)
    bob.delete(bob.post(f'/v1/snapshots/{snapshot}/restore')['id'])
    bob.call('DELETE', f'/v1/snapshots/{snapshot}')
    for name in ('alice', 'bob'):
        hub.call('DELETE', f'/v1/keys/{name}')
    hub.set()


def archive(**meta):
    """A snapshot as anybody can write one."""
    zstd = shutil.which('zstd')
    if not zstd:
        pytest.skip('zstd is missing')
    text = json.dumps({'version': 1, 'template': 'host', 'base': '', 'memory': 256 << 20,
                       'disk': 64 << 20, 'pids': 64, 'cpu_milli': 0, **meta},
                      separators=(',', ':'))
    tar = image_files.layer(image_files.entry('.wh..wh.holt', text.encode()))
    return subprocess.run([zstd, '-c'], input=tar, stdout=subprocess.PIPE, check=True).stdout


def imported(hub, **meta):
    data = archive(**meta)
    head = hub.request('POST', '/v1/snapshots', fields=['Content-Type: application/zstd',
                                                        f'Content-Length: {len(data)}'])
    with hub.wire() as wire:
        reply = wire.ask(head.encode() + data, 'POST')
    assert reply.status == 200, reply.body
    return json.loads(reply.body)['id']


def test_images_of_what_is_restored(hub):
    """An archive says itself what it was made from, and may be older than the list."""
    ci, free = (as_bearer(hub, key(hub, name)) for name in ('ci', 'free'))
    digest = 'ab' * 32
    denied_by = 'rule "images", config.json:'

    def restore(who, snapshot):
        for box in who.post(f'/v1/snapshots/{snapshot}/restore', count=2)['sandboxes']:
            who.delete(box['id'])

    hub.set()
    box = ci.create()
    stopped = ci.create()
    taken = ci.post(f'/v1/sandboxes/{box}/snapshots')['id']
    ci.post(f'/v1/sandboxes/{stopped}/stop')
    hub.set(principals={'key:ci': {'images': ['python-*']}})
    assert denied_by in cause(ci.create)
    for snapshot in (imported(ci), imported(ci, template='python-3', base=digest), taken):
        assert denied_by in cause(restore, ci, snapshot), snapshot
    assert denied_by in cause(ci.post, f'/v1/sandboxes/{box}/fork')
    # what is there already goes on
    assert cause(ci.post, '/v1/resume', sandbox=stopped) is None
    assert cause(restore, free, imported(free)) is None
    # nor does the answer tell of what others have
    with pytest.raises(Failed) as of_others:
        restore(ci, imported(free))
    with pytest.raises(Failed) as of_nobody:
        restore(ci, 'none')
    assert of_others.value.status == of_nobody.value.status == 404

    hub.set(principals={'key:ci': {'images': ['ho*', f'sha256:{digest}']}})
    assert cause(restore, ci, taken) is None and cause(restore, ci, imported(ci)) is None
    ci.delete(ci.post(f'/v1/sandboxes/{box}/fork')['id'])
    with pytest.raises(Failed) as missing:  # it may be used, but there is none
        restore(ci, imported(ci, template='python-3', base=digest))
    assert missing.value.status == 404, missing.value
    assert denied_by in cause(restore, ci, imported(ci, template='python-3'))
    hub.set()
    for one in (box, stopped):
        ci.delete(one)


def test_limits(hub):
    """Of all, of one principal, of the forks of one; and of time, which a fork has no more of."""
    for box in hub.call('GET', '/v1/sandboxes'):
        hub.delete(box['id'])
    hub.set(limits={'sandboxes': 3}, principals={'token': {'limits': {'sandboxes': 2, 'forks': 1}}})
    first = hub.create()
    child = hub.post(f'/v1/sandboxes/{first}/fork')['id']
    for more in (hub.create, lambda: hub.post(f'/v1/sandboxes/{first}/fork')):
        with pytest.raises(Failed, match='limits.sandboxes'):
            more()
    hub.set(limits={'forks': 1})
    with pytest.raises(Failed, match='limits.forks'):
        hub.post(f'/v1/sandboxes/{first}/fork')
    hub.delete(child)
    hub.delete(hub.post(f'/v1/sandboxes/{first}/fork')['id'])
    hub.delete(first)
    hub.set(limits={'wall_seconds': 600})
    first = hub.create(timeout_seconds=60)
    child = hub.post(f'/v1/sandboxes/{first}/fork')['id']
    forever = hub.create()

    def ends(box):
        return hub.call('GET', f'/v1/sandboxes/{box}')['deadline_unix']

    assert ends(child) <= ends(first) < ends(forever) <= time.time() + 601
    assert 'wall_seconds' in cause(hub.post, '/v1/set_timeout', sandbox=child, timeout_seconds=90)
    assert 'wall_seconds' in cause(hub.post, '/v1/set_timeout', sandbox=first, timeout_seconds=601)
    hub.post('/v1/set_timeout', sandbox=first, timeout_seconds=300)
    hub.set()
    for box in (first, child, forever):
        hub.delete(box)


def test_a_lifetime_holds_over_all_that_interrupts_it(hub):
    """Stopped, resumed, paused, forked, given all of its time anew: none makes it longer, and later
    it can't be resumed."""
    hub.set(limits={'wall_seconds': 3})
    box = hub.create(retention='stop')
    child = hub.post(f'/v1/sandboxes/{box}/fork')['id']

    def deadline(which):
        return hub.call('GET', f'/v1/sandboxes/{which}')['deadline_unix']

    ends = deadline(box)
    assert deadline(child) <= ends
    for _ in range(2):
        hub.post(f'/v1/sandboxes/{box}/stop')
        assert deadline(box) > ends + 3600, 'until when its files are kept'
        hub.post('/v1/resume', sandbox=box)
        assert deadline(box) <= ends
    hub.post('/v1/pause', sandbox=box)
    hub.post('/v1/resume', sandbox=box)
    assert 'wall_seconds' in cause(hub.post, '/v1/set_timeout', sandbox=box, timeout_seconds=3)
    assert deadline(box) <= ends
    until(lambda: hub.call('GET', f'/v1/sandboxes/{box}')['state'] == 'stopped',
          what='the end of its time')
    with pytest.raises(Failed, match='wall_seconds'):
        hub.post('/v1/resume', sandbox=box)
    hub.set()
    hub.post('/v1/resume', sandbox=box)
    hub.delete(box)


def test_limits_tell_nothing_of_others(hub):
    """Whether a sandbox is there, and has forks."""
    hub.set(limits={'forks': 1})
    one, other = (as_bearer(hub, key(hub, name)) for name in ('forks', 'looks'))
    box = one.create()
    child = one.post(f'/v1/sandboxes/{box}/fork')['id']

    def refused(by, name):
        with pytest.raises(Failed) as failed:
            by.post(f'/v1/sandboxes/{name}/fork')
        return failed.value.status, json.dumps(failed.value.error).replace(name, 'ID')
    assert 'limits.forks' in refused(one, box)[1]
    never = refused(other, 'sbx-' + '0' * 32)
    assert never[0] == 404 and refused(other, box) == never
    hub.set()
    for box in (box, child):
        hub.delete(box)
    for name in ('forks', 'looks'):
        hub.call('DELETE', f'/v1/keys/{name}')


def ended(hub, box):
    """Why its budget ended it."""
    until(lambda: hub.call('GET', f'/v1/sandboxes/{box}')['state'] in ('terminated', 'stopped'),
          what='the end of it')
    return hub.call('GET', f'/v1/sandboxes/{box}')['cause']


def spin(hub, box, ms):
    """Lets it use so much of its processor time at least."""
    hub.post('/v1/exec', sandbox=box, background=True, command='while :; do :; done')
    until(lambda: hub.call('GET', f'/v1/sandboxes/{box}/usage')['cpu_ms'] >= ms, what='its time')


def test_bytes_out_through_each_door(hub):
    """What leaves counts, whatever it is asked for as; and an archive counts as a file."""
    hub.set(limits={'bytes_out': 1_000_000})
    box = hub.create()
    hub.exec(box, 'mkdir d; head -c 300000 /dev/urandom > d/f; cd d; '
                  'for i in $(seq 100); do : > $(printf %0200d $i); done')
    doors = {
        'archive': (300_000, lambda: hub.raw('GET', f'/v1/sandboxes/{box}/archive?path=d')),
        'list': (20_000, lambda: hub.post('/v1/files/list', sandbox=box, path='d')),
        'diff': (20_000, lambda: hub.call('GET', f'/v1/sandboxes/{box}/diff')),
        'read': (300_000, lambda: hub.post('/v1/files/read', sandbox=box, path='d/f',
                                           encoding='base64')),
    }
    for name, (least, asks) in doors.items():
        before = hub.call('GET', f'/v1/sandboxes/{box}/usage')['bytes_out']
        asks()
        after = hub.call('GET', f'/v1/sandboxes/{box}/usage')['bytes_out']
        assert after - before >= least, (name, before, after)
    doors['read'][1]()  # too much only with what the archive was
    assert 'limits.bytes_out' in ended(hub, box)
    hub.set()


def test_bytes_out(hub):
    """What leaves a sandbox, by commands and as files; a fork has used what its source has."""
    hub.set(limits={'bytes_out': 100_000})
    printer, reader, idle = hub.create(), hub.create(), hub.create()
    for box in (printer, reader):
        hub.exec(box, 'head -c 60000 /dev/zero > f; head -c 60000 f')
    child = hub.post(f'/v1/sandboxes/{printer}/fork')['id']
    assert hub.call('GET', f'/v1/sandboxes/{printer}')['state'] == 'running'
    with pytest.raises(Failed):
        hub.exec(child, 'head -c 60000 f; sleep 60')
    assert 'limits.bytes_out' in ended(hub, child)
    with pytest.raises(Failed):
        hub.exec(printer, 'head -c 60000 f; sleep 60')
    assert 'limits.bytes_out' in ended(hub, printer)
    hub.post('/v1/files/read', sandbox=reader, path='f')
    assert 'limits.bytes_out' in ended(hub, reader)
    with pytest.raises(Failed, match='limits.bytes_out') as caught:
        hub.post('/v1/run', state={'retention': 'destroy'},
                 command=['sh', '-c', 'head -c 120000 /dev/zero; sleep 60'])
    assert caught.value.error['failure'] == 'guest_failed'
    hub.exec(idle, 'head -c 60000 /dev/zero')
    hub.set(limits={'bytes_out': 50_000})  # holds for what is there, too
    assert 'limits.bytes_out' in ended(hub, idle)
    hub.set()
    free = hub.create()
    hub.exec(free, 'head -c 120000 /dev/zero')
    hub.delete(free)


def test_cpu_seconds(hub):
    """They are used up together with those of its source and of its time before a stop."""
    free = hub.create()
    if 'cpu_ms' not in hub.call('GET', f'/v1/sandboxes/{free}/usage'):
        hub.set(limits={'cpu_seconds': 1})
        with pytest.raises(Failed, match='limits.cpu_seconds'):
            hub.create()
        hub.set()
        hub.delete(free)
        return
    hub.set(limits={'cpu_seconds': 6}, principals={'token': {'limits': {'cpu_seconds': 3}}})
    idle, first = hub.create(), hub.create(retention='stop')
    spin(hub, first, 500)
    child = hub.post(f'/v1/sandboxes/{first}/fork')['id']
    hub.post('/v1/exec', sandbox=child, background=True, command='while :; do :; done')
    assert 'its 3 s of processor time' in ended(hub, child)
    assert 'limits.cpu_seconds' in ended(hub, first)
    with pytest.raises(Failed, match='limits.cpu_seconds'):
        hub.post('/v1/resume', sandbox=first)
    hub.set(limits={'cpu_seconds': 600})
    hub.post('/v1/resume', sandbox=first)
    hub.set(limits={'cpu_seconds': 1})
    assert 'limits.cpu_seconds' in ended(hub, first)
    assert hub.call('GET', f'/v1/sandboxes/{idle}')['state'] == 'running'
    hub.set()
    for box in (free, first, idle):
        hub.delete(box)


def full(member, fails):
    with pytest.raises(Failed, match=f'limits.{member}'):
        fails()


def ended_by(hub, member, box):
    assert f'limits.{member}' in ended(hub, box)


def spins(hub, made):
    free = hub.create()
    if 'cpu_ms' not in hub.call('GET', f'/v1/sandboxes/{free}/usage'):
        full('cpu_seconds', made.create)
        return
    box = made.create()
    made.post('/v1/exec', sandbox=box, background=True, command='while :; do :; done')
    ended_by(hub, 'cpu_seconds', box)


# What a key and the key that it made have together of a limit that is only the first one's.
LINES = {
    'sandboxes': (1, lambda hub, own, made: (
        box := own.create(), full('sandboxes', made.create),
        own.delete(box), made.create(), full('sandboxes', own.create),
        hub.call('DELETE', '/v1/keys/line-made'), full('sandboxes', own.create))),
    'forks': (1, lambda hub, own, made: (
        box := made.create(), own.post(f'/v1/sandboxes/{box}/fork'),
        full('forks', lambda: made.post(f'/v1/sandboxes/{box}/fork')))),
    'wall_seconds': (600, lambda hub, own, made: full('wall_seconds', lambda: made.post(
        '/v1/set_timeout', sandbox=made.create(), timeout_seconds=700))),
    'cpu_seconds': (1, lambda hub, own, made: spins(hub, made)),
    'bytes_out': (50_000, lambda hub, own, made: (
        box := made.create(), made.post('/v1/exec', sandbox=box, background=True,
                                        command='head -c 60000 /dev/zero'),
        ended_by(hub, 'bytes_out', box))),
}


def test_a_key_and_those_that_it_made_have_one_limit(hub):
    """Each limit of the file that a principal may have."""
    schema = json.loads(hub.me.run('config', 'schema').stdout)['properties']
    limits = schema['principals']['additionalProperties']['properties']['limits']['properties']
    assert set(limits) == set(LINES) == set(schema['limits']['properties'])
    for member, (most, check) in LINES.items():
        hub.set(principals={'key:line-own': {'limits': {member: most}}})
        own = as_bearer(hub, key(hub, 'line-own', ('admin',)))
        made = as_bearer(hub, key(own, 'line-made', ('admin',)))
        check(hub, own, made)
        for box in hub.call('GET', '/v1/sandboxes'):
            hub.delete(box['id'])
        for name in {k['name'] for k in hub.call('GET', '/v1/keys')} & {'line-own', 'line-made'}:
            hub.call('DELETE', f'/v1/keys/{name}')
    hub.set()


@pytest.mark.parametrize('revoked', ['line-low', 'line-middle'])
@pytest.mark.parametrize('bounded', ['line-top', 'line-middle'])
def test_each_key_of_a_line_bounds_what_is_below_it(me, tmp_path, bounded, revoked):
    """And what a key that is revoked has made counts, for the next hub, too."""
    os.chown(tmp_path, me.uid, me.uid)
    rules = {'principals': {f'key:{bounded}': {'limits': {'sandboxes': 1}}}}
    tokens = []
    with Hub(me, tmp_path, **rules) as hub:
        line = [hub]
        for name in 'line-top', 'line-middle', 'line-low':
            tokens.append(key(line[-1], name, ('admin',)))
            line.append(as_bearer(hub, tokens[-1]))
        box = line[3].create(id='lasts')
        line[3].post(f'/v1/sandboxes/{box}/stop')
        for by in line[2:]:
            full('sandboxes', by.create)
        hub.call('DELETE', f'/v1/keys/{revoked}')
    with Hub(me, tmp_path, **rules) as hub:
        assert [b['id'] for b in hub.call('GET', '/v1/sandboxes')] == [box]
        names = 'line-top', 'line-middle', 'line-low'
        for name, token in zip(names, tokens):
            if name != revoked and names.index(name) >= names.index(bounded):
                full('sandboxes', as_bearer(hub, token).create)
        hub.delete(box)
        as_bearer(hub, tokens[0]).create()


def test_networks(hub):
    """Presets by name, for --allow and for grants; and what a principal may grant of that."""
    presets = {'presets': {'pair': ['a.example:443', '*.b.example:8443'], 'wide': ['c.example']}}
    hub.set(network=presets)
    box = hub.create()

    def grant(*hosts):
        return hub.post(f'/v1/sandboxes/{box}/network', network={
            'allow': [{'host': host} for host in hosts]})

    def granted():
        return {f"{a['host']}:{a['port']}" for a in hub.call(
            'GET', f'/v1/sandboxes/{box}/network')['allow']}

    grant('pair')
    assert granted() == {'a.example:443', '*.b.example:8443'}
    grant('pair', 'c.example')
    assert granted() == {'a.example:443', '*.b.example:8443', 'c.example:80', 'c.example:443'}
    assert 'd.example' in cause(grant, 'd.example')  # not of --allow
    hub.set(network=presets, principals={'token': {'network': ['pair']}})
    assert 'principals' in cause(grant, 'c.example')
    assert 'principals' in cause(grant, 'pair', 'wide')
    grant('pair')
    hub.set(network=presets, principals={'token': {'network': []}})
    assert 'principals' in cause(grant, 'pair')
    grant()
    hub.put({'network': {'presets': {'bad': ['not a host']}}})
    until(lambda: 'preset bad' in hub.ready().get('config', ''), what='the refusal')
    hub.set()
    hub.delete(box)


def test_a_bad_file_changes_nothing(hub, box):
    """It says so; nor does one that is gone, or that others may write."""
    hub.set(policy=deny('sandbox.exec'))

    def bad(says):
        until(lambda: says in hub.ready().get('config', ''), what=says)
        assert hub.ready()['status'] == 'ok'
        told = hub.me.run('hub', env={'HOLT_HOME': str(hub.path)}, text=True).stdout
        assert f'An earlier configuration holds: {hub.ready()["config"]}\n' in told
        told = hub.me.run('hub', 'status', '-o', 'json', env={'HOLT_HOME': str(hub.path)})
        assert says in json.loads(told.stdout)['config']
        assert cause(hub.exec, box, 'true')

    hub.put('{\n "policy": {},\n "polices": {}\n}')
    bad('config.json:3: /polices: unknown field')
    os.unlink(hub.config)
    bad('config.json: No such file')
    hub.put({})
    os.chmod(hub.config, 0o666)
    bad('others may write')
    hub.set()


BAD_PARTS = {
    'matches without an end': ({'redaction': {'patterns': {'badge': 'X-[0-9]+'}}}, 'pattern badge'),
    'no expression': ({'redaction': {'patterns': {'badge': 'X-[0-9'}}}, 'pattern badge'),
    'no kind': ({'redaction': {'patterns': {'Badge': 'X-[0-9]{6}'}}}, 'the kind of a pattern'),
    'unknown kind': ({'redaction': {'without': ['badge']}}, 'no pattern has the kind badge'),
    'relative file': ({'secrets': {'deploy': {'file': 'a/b'}}}, 'file takes an absolute path'),
    'no variable': ({'secrets': {'deploy': {'env': 'A=b'}}}, 'env takes the name of a variable'),
    'no program': ({'secrets': {'deploy': {'command': ['']}}}, 'command takes a program'),
    'no name': ({'secrets': {'-deploy': {'store': True}}}, "a secret's name has"),
}


@pytest.mark.parametrize('mistake', BAD_PARTS)
def test_a_file_holds_whole_or_not_at_all(hub, box, mistake):
    """A part that can't be used keeps the others from holding."""
    config, says = BAD_PARTS[mistake]
    hub.set(policy=deny('sandbox.exec'), redaction={'patterns': {'badge': 'BADGE-[0-9]{6}'}})
    hub.put(config)
    until(lambda: says in hub.ready().get('config', ''), what=says)
    assert hub.metrics()['holt_config_bad'] == 1
    assert 'no sandbox.exec' in cause(hub.exec, box, 'true')
    hub.post('/v1/files/write', sandbox=box, path='badge', content='BADGE-123456')
    assert (hub.post('/v1/files/read', sandbox=box, path='badge')['content']
            == '[REDACTED:badge:output]')
    env = {**hub.env, 'HOLT_CONFIG': hub.config}
    checked = hub.me.run('config', 'check', env=env, text=True)
    assert checked.returncode != 0 and says in checked.stderr, checked
    hub.set()
    assert hub.metrics()['holt_config_bad'] == 0
    assert hub.me.run('config', 'check', env=env).returncode == 0
    hub.delete(box)


def test_a_hub_does_not_start_without_its_policy(me, tmp_path):
    """Where the file has a mistake, or is named and not there."""
    os.chown(tmp_path, me.uid, me.uid)
    env = {**me.env, 'HOLT_HOME': str(tmp_path)}
    (tmp_path / 'config.json').write_text('{"policy": 1}')
    for verb in (['serve', '--listen', 'none'], ['mcp'], ['run', '--', 'true']):
        done = me.run(*verb, env=env, text=True)
        assert done.returncode != 0 and 'config.json:1: /policy' in done.stderr, (verb, done)
        done = me.run(*verb[:1], '--config', '/none.json', *verb[1:], env=env, text=True)
        assert done.returncode != 0 and 'none.json' in done.stderr, (verb, done)


def test_nobody_inside_gets_at_it(me, hub, tmp_path):
    """Its folder is no volume, wherever it is, for the operator neither."""
    elsewhere = tmp_path / 'etc'
    elsewhere.mkdir()
    (elsewhere / 'holt.json').write_text('{}')
    (tmp_path / 'other').mkdir()
    os.chmod(tmp_path, 0o755)
    env = {**hub.env, 'HOLT_CONFIG': str(elsewhere / 'holt.json')}

    def show(path, mode='ro'):
        return me.run('run', '-v', f'{path}:/shown:{mode}', '--', 'ls', '/shown', env=env,
                      text=True)

    assert show(tmp_path / 'other').returncode == 0
    for path in (elsewhere, tmp_path, elsewhere / 'holt.json', hub.path):
        for mode in ('ro', 'rw'):
            done = show(path, mode)
            assert done.returncode != 0 and done.stdout == '', (path, done)


def test_config_and_why(me, hub, tmp_path):
    """What the file decides is told without a hub, by the rules that the hub goes by."""
    os.chmod(tmp_path, 0o755)
    path = tmp_path / 'holt.json'
    path.write_text(json.dumps({'images': ['ho*'], 'policy': deny('sandbox.exec', when={
        '/command': 'git push*'})}, indent=1))
    env = {**hub.env, 'HOLT_CONFIG': str(path)}

    def holt(*words, status=0):
        done = me.run(*words, env=env, text=True)
        assert done.returncode == status, done
        return done.stdout or done.stderr

    assert holt('config') == holt('config', 'check') == f'{path}: right\n'
    assert json.loads(holt('config', 'show'))['approvals']['expire_seconds'] == 3600
    schema = json.loads(holt('config', 'schema'))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(path.read_text()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({'polices': {}}, schema)
    assert holt('why', 'sandbox.exec', '--arg', '/command=ls') == (
        'allow: rule "default", holt.json:5\n')
    assert holt('why', 'sandbox.exec', '--arg', '/command=git push x') == (
        'deny: rule "no sandbox.exec", holt.json:7\n')
    assert json.loads(holt('why', 'sandbox.create', '--arg', '/template=x', '-o', 'json')) == {
        'decision': 'deny', 'rule': 'images', 'place': 'holt.json:2'}
    assert "did you mean 'sandbox.exec'" in holt('why', 'sandbox.exe', status=2)
    path.write_text(json.dumps({'policy': deny('sandbox.exce')}))
    assert 'nothing is called "sandbox.exce"' in holt('config', status=1)
    for action, pointer, meant in (
            ('sandbox.set_timeout', '/timeout_seconds', '/seconds'),
            ('files.read', '/pth', '/path'),
            ('sandbox.exec', '/timeout', '/timeout_seconds'),
            ('sandbox.fork', '/count', '/replicas')):
        path.write_text(json.dumps({'policy': deny(action, when={pointer: 'x'})}))
        assert f'has {pointer}; did you mean {meant}?' in holt('config', 'check', status=1), pointer
        assert f'did you mean {meant}?' in holt('why', action, '--arg', f'{pointer}=600', status=2)
    for wrong in ('/a/../b', 'a/b', '/a//b', '/a/', '/a/./*'):
        path.write_text(json.dumps({'policy': deny('files.*', when={'/path': wrong})}))
        assert 'no path is spelt' in holt('config', 'check', status=1), wrong
    path.write_text(json.dumps({'policy': deny('*', tools=['sandbox_exec'])}))
    done = me.run('config', 'check', env=env, text=True)
    assert done.returncode == 0 and 'note: commands can still be run by' in done.stderr, done
    assert all(a in done.stderr for a in ('coding.bash', 'contract.run', 'code.execute')), done
    path.write_text(json.dumps({'policy': {'rules': [
        *deny('files.*', when={'/path': '/etc/*'})['rules'],
        *deny('command.run', when={'/command': 'rm *'})['rules'],
        *deny('sandbox.exec', when={'/args': 'push'})['rules']]}}))
    for words in (('files.read', '/path=/tmp/../etc//passwd'),
                  ('files.read', '/path=../etc/passwd'), ('files.upload', '/path=/etc/x/'),
                  ('contract.run', '/command=["rm", "-rf", "/"]'),
                  ('sandbox.exec', '/command=git', '/args=["push"]'),
                  ('sandbox.exec', '/command=git', '/args/0=push'),
                  ('contract.run', '/command=["sh", "-c", "rm x"]'),
                  ('sandbox.exec', '/command=sh', '/args=["-c", "rm x"]')):
        said = holt('why', words[0], *(w for a in words[1:] for w in ('--arg', a)))
        assert said.startswith('deny: rule "no'), (words, said)
    listed = json.loads(holt('policy', 'actions', '-o', 'json'))
    named = {a['action']: a for a in listed}
    assert {'files.upload', 'sandbox.run', 'contract.run'} <= set(named)
    assert 'command.run' in holt('policy', 'actions', 'sandbox.exec')
    for one in listed:  # every pointer that is listed is one that rules may have
        whens = [{a['pointer']: '/x' if a['path'] else 'x'} for a in one.get('arguments', [])]
        rules = [rule for when in whens for rule in deny(one['action'], when=when)['rules']]
        path.write_text(json.dumps({'policy': {'rules': rules}}))
        assert ': right' in holt('config', 'check'), one
    # one name for one thing, so that a rule about a path is passed by no other tool
    paths = {p['pointer'] for a in listed for p in a.get('arguments', []) if p['path']}
    assert paths == {'/path', '/to', '/cwd', '/working_dir', '/files/*/path', '/volumes/*/host',
                     '/volumes/*/inside'}
    listed = [p['pointer'] for a in listed for p in a.get('arguments', [])]
    assert {'/files/*/path', '/volumes/*/host', '/network/allow/*/http/*/path'} <= set(listed)
    for place in ('*', '0', '1'):  # of a list: each
        path.write_text(json.dumps({'policy': {'rules': [
            *deny('contract.run', when={f'/files/{place}/path': '*/secret'})['rules'],
            *deny('sandbox.run', when={f'/volume/{place}/host': '/etc'})['rules']]}}))
        assert ': right' in holt('config', 'check')
        for action, *args in (
                ('contract.run', '/files/0/path=a', '/files/1/path=/work/secret'),
                ('contract.run', '/files/1/path=/work/secret'),
                ('contract.run', '/files=[{"path": "a"}, {"path": "/work/secret"}]'),
                ('sandbox.run', '/volume/0/host=/a', '/volume/1/host=/etc')):
            said = holt('why', action, *(w for a in args for w in ('--arg', a)))
            assert said.startswith('deny'), (place, args, said)
    path.write_text('{')
    assert 'holt.json:1: not JSON' in holt('config', status=125)
    path.write_text(json.dumps({'approvals': {'webhook': 'http://example.org/'}}))
    assert 'webhook' in holt('config', status=125)  # as the hub would say


def test_a_rule_about_nothing_is_told_by_what_it_holds_for(me, tmp_path):
    """As `holt config check` tells it: by a start, by each new file, and by programs without a
    hub."""
    os.chown(tmp_path, me.uid, me.uid)

    def told(hub, action):
        return f'config.json:4: actions: nothing is called "{action}"' in hub.said()
    with Hub(me, tmp_path, policy=deny('exec.run')) as hub:
        assert told(hub, 'exec.run')
        hub.set(policy=deny('exec.rum'))
        assert told(hub, 'exec.rum')
        done = me.run('run', '--', 'true', env=hub.env, text=True)
        assert 'nothing is called "exec.rum"' in done.stderr, done
        hub.set(policy=deny('sandbox.exec'))
        assert hub.said().count('nothing is called') == 2
