"""`holt serve --compat mitos`: clients that ask as mitos' SDKs, CLI and MCP server do, what they
say as a golden transcript, and each difference from the hub without it."""

import base64
import contextlib
import json
import os
import re
import threading
import time

import pytest
import websocket

from client import until
from rest import Failed, Rest, b64, frame, frames, joined
from who import node

TEMPLATE, SANDBOX = 'conf-template', 'conf-sandbox'
MANY = [f'many-{i}' for i in range(65)]
ALIASES = {TEMPLATE: 'host', 'lost': 'no-such-image', 'wishes': 'wants',
           **{name: 'host' for name in MANY}}
SECRET = 'ghp_' + 'a1B2c3D4e5' * 3 + 'a1B2c3'  # which no answer has
STREAM = 'application/connect+json'


class Box:
    """A sandbox as the SDKs have it: each call sends what theirs sends, and reads what theirs
    reads."""

    def __init__(self, site, made):
        self.site, self.id, self.template = site, made['id'], made['template_id']
        assert made['endpoint'] and made['fork_time_ms'] > 0

    def unary(self, rpc, **message):
        return self.site.connect(rpc, self.id, message)

    def stream(self, rpc, *messages):
        return self.site.connect(rpc, self.id, *messages, stream=True)

    def exec(self, command, timeout=30):
        said = self.stream('ExecStream', {'command': command, 'timeoutSeconds': timeout})
        exit = said[-1]['exit']
        assert not exit.get('error'), exit  # the SDKs say that it never ran
        return exit.get('exitCode', 0), joined(said, 'stdout'), joined(said, 'stderr')

    def run_code(self, code, language='python', timeout=60):
        said = self.stream('RunCodeStream', {'code': code, 'language': language,
                                             'timeoutSeconds': timeout})
        assert list(said[-1]) == ['exitCode'] and all(len(m) == 1 for m in said), said
        errors = [m['error'] for m in said if 'error' in m]
        assert all(isinstance(e['traceback'], list) for e in errors)
        return {'exit': said[-1]['exitCode'], 'error': errors[0] if errors else None,
                'stdout': joined(said, 'stdout').decode(),
                'stderr': joined(said, 'stderr').decode(),
                'results': [{'text': m['result'].get('text'), 'data': {
                    mime: base64.b64decode(data) for mime, data in m['result']['data'].items()}}
                    for m in said if 'result' in m]}

    def write(self, path, data, mode=0o644):
        self.stream('WriteFile', {'open': {'path': path, 'mode': mode}}, {'data': b64(data)})

    def read(self, path):
        return joined(self.stream('ReadFile', {'path': path}), 'data')

    def list(self, path):
        return [e['name'] for e in self.unary('List', parent=path)['entries']]

    def fork(self, id):
        return Box(self.site, self.site.rest(
            'POST', f'/v1/sandboxes/{self.id}/fork',
            {'id': id, 'template': self.template, 'pause_source': True}, key=f'fork-{id}'))

    def terminate(self):
        self.site.rest('DELETE', f'/v1/sandboxes/{self.id}')


def whole(said):
    """The messages, with output that came in pieces in one."""
    found = []
    for flags, message in said:
        (name, value), *more = message.items() or [(None, None)]
        if found and name in ('stdout', 'stderr') and list(found[-1][1]) == [name]:
            found[-1][1][name] = b64(base64.b64decode(found[-1][1][name])
                                     + base64.b64decode(value))
        else:
            found.append((flags, dict(message)))
    return found


class Site:
    """The server as the SDKs have it, and a record of all that is said."""

    def __init__(self, hub, token=None):
        self.hub, self.token, self.lines = hub, token or hub.token, []

    def note(self, sign, *words):
        text = ' '.join(w if isinstance(w, str) else json.dumps(w) for w in words)
        for pattern, shown in (
                (r'"(created_at)": "2[0-9T:.-]+Z"', r'"\1": "2…Z"'),
                (r'"(fork_time_ms|execTimeMs)": [0-9.]*[1-9][0-9.e-]*', r'"\1": 1'),
                (r'"(modifiedAtUnix|deadline_unix)": \d+', r'"\1": 1'),
                (r'"(memory_mb|disk_mb|pids|open_files)": \d+', r'"\1": 1'),
                (r'"enforced_by": "\w+"', '"enforced_by": "…"'),
                (r'"from_pool": \w+', '"from_pool": false'),
                (r'("isDir": true, "size"): \d+', r'\1: 0'),
                (r'http://127.0.0.1:\d+', 'http://127.0.0.1:0')):
            text = re.sub(pattern, shown, text)
        self.lines.append(f'{sign} {text}')

    def rest(self, method, path, body=None, key=None):
        self.note('>', method, path, *([body] if body is not None else []))
        status, answer = self.hub.asked(
            method, path, body, token=self.token,
            fields=[f'Idempotency-Key: {key}'] if key else [])
        self.note('<', str(status), answer)
        if status != 200:
            raise Failed(status, answer['error'])
        return answer

    def connect(self, rpc, sandbox, *messages, stream=False, path=None, more=()):
        self.note('>', rpc, sandbox, *messages)
        body = b''.join(map(frame, messages)) if stream else json.dumps(messages[0]).encode()
        fields = [f'Content-Type: {STREAM if stream else "application/json"}',
                  *([f'X-Sandbox-Id: {sandbox}'] if not path else []),
                  f'Content-Length: {len(body)}']
        head = self.hub.request('POST', path or f'/sandbox.v1.Sandbox/{rpc}',
                                fields=[*fields, *more], token=self.token)
        with self.hub.wire() as wire:
            reply = wire.ask(head.encode() + body, 'POST')
        said = list(frames(reply.body)) if stream and reply.status == 200 else []
        for flags, message in whole(said):
            self.note('<', str(flags), message)
        if not said:
            self.note('<', str(reply.status), json.loads(reply.body))
        if reply.status != 200:
            raise Failed(reply.status, json.loads(reply.body))
        if not stream:
            return json.loads(reply.body)
        assert [flags for flags, _ in said] == [0] * (len(said) - 1) + [2]
        if 'error' in said[-1][1]:
            raise Failed(200, said[-1][1]['error'])
        return [m for _, m in said[:-1]]

    def create_template(self, id, **more):
        return self.rest('POST', '/v1/templates', {'id': id, 'init_wait_seconds': 1, **more})

    def list_templates(self):
        return self.rest('GET', '/v1/templates')

    def fork(self, template, id, **more):
        return Box(self, self.rest('POST', '/v1/fork', {'template': template, 'id': id, **more},
                                   key=f'make-{id}'))

    def list_sandboxes(self):
        return self.rest('GET', '/v1/sandboxes')

    def create(self, id, image='python', **more):
        """mitos.create()"""
        self.create_template(image, **more)
        return self.fork(image, id)


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    home = tmp_path_factory.mktemp('mitos')
    path = home / 'config.json'
    path.write_text(json.dumps({'compat': {'apis': ['mitos'], 'templates': ALIASES}}))
    path.chmod(0o600)
    os.chown(path, me.uid, me.uid)
    with Rest(me, home, '--listen', '127.0.0.1:0', '--pool', '2', '--allow', 'example.com:443',
              '--config', str(path)) as shared:
        yield shared


@pytest.fixture(scope='module')
def site(hub):
    return Site(hub)


@pytest.fixture(scope='module')
def box(site):
    made = site.create('shared')
    yield made
    made.terminate()


def fails(code, call, *arguments, **more):
    with pytest.raises(Failed) as caught:
        call(*arguments, **more)
    assert caught.value.code == code, caught.value
    return caught.value


# ---- their shared scenario ------------------------------------------------------------------

def test_scenario_as_in_python(site):
    made = site.create_template(TEMPLATE)
    assert (made['id'], made['ready']) == (TEMPLATE, True)
    assert [t['ready'] for t in site.list_templates() if t['id'] == TEMPLATE] == [True]
    sandbox = site.fork(TEMPLATE, SANDBOX)
    assert (sandbox.id, sandbox.template) == (SANDBOX, TEMPLATE)
    assert [s['template_id'] for s in site.list_sandboxes() if s['id'] == SANDBOX] == [TEMPLATE]
    sandbox.terminate()
    assert SANDBOX not in [s['id'] for s in site.list_sandboxes() if s['state'] == 'running']


def test_scenario_as_in_typescript(hub):
    """And exec, files and code, in one run of Node.js."""
    host, port = hub.address
    got = node('mitos.mjs', {'url': f'http://{host}:{port}', 'token': hub.token,
                             'template': TEMPLATE, 'sandbox': SANDBOX + '-ts'})
    assert got == {
        'create_template': {'id': TEMPLATE, 'ready': True},
        'list_templates_contains': {'id': TEMPLATE, 'ready': True},
        'fork': {'id': SANDBOX + '-ts', 'endpoint_present': True},
        'list_sandboxes_contains': {'id': SANDBOX + '-ts', 'template_id': TEMPLATE},
        'timed': True, 'exec': {'exitCode': 3, 'stdout': 'out\n', 'stderr': 'err\n'},
        'late': 124, 'file': 'grüße', 'gone': True, 'terminate': True}


def test_transcript(hub, transcript):
    """What both sides say, byte by byte but for what is measured."""
    site = Site(hub)
    made = site.create('golden')
    made.exec('echo out')  # one stream each: of two the order is chance
    made.exec('echo err >&2; exit 3')
    made.exec('sleep 9', timeout=1)
    made.write('d/notes.txt', 'grüße'.encode())
    made.read('d/notes.txt')
    made.unary('Mkdir', path='d/e')
    made.list('d')
    made.unary('Remove', path='d')
    fails('not_found', made.list, 'd')
    made.run_code('print(1)\n"two"')
    made.run_code('raise ValueError("three")')
    made.run_code('1', language='cobol')
    made.fork('golden-kid').terminate()
    site.rest('POST', '/v1/set_timeout', {'sandbox': 'golden', 'timeout_seconds': 600})
    site.rest('POST', '/v1/pause', {'sandbox': 'golden'})
    site.rest('POST', '/v1/resume', {'sandbox': 'golden'})
    made.terminate()
    fails('not_found', made.exec, 'true')
    transcript('mitos', site.lines)


# ---- what differs from the hub without it ---------------------------------------------------

NEW = [('POST', f'/sandbox.v1.Sandbox/{name}') for name in ('RunCode', 'RunCodeStream',
                                                           'PortForward')]
NEW += [('POST', f'/v1/sandboxes/plain/{name}') for name in ('files', 'run_code')]


def test_off_there_is_nothing(me, tmp_path):
    """The same requests get the hub's own answers."""
    with Rest(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0') as plain:
        for method, path in NEW:
            reply = plain.raw(method, path, '{}')
            assert reply.status == 404 and b'nothing is served' in reply.body, (path, reply)
        assert plain.raw('POST', '/v1/sandboxes/plain/exec', '{}').status == 405
        assert fails('not_found', plain.post, '/v1/fork', template='python', id='plain')
        plain.post('/v1/fork', template='host', id='plain')
        for path, body in (('/v1/fork', {'template': 'host', 'id': 'x', 'region': 'fra'}),
                           ('/v1/sandboxes', {'pool': 'host'}),
                           ('/v1/sandboxes', {'image': 'host'}),
                           ('/v1/sandboxes/plain/fork', {'secret_inheritance': 'reissue'})):
            assert fails('invalid_input', plain.post, path, **body)
        fails('unimplemented', plain.unary, 'List', 'plain', parent='/', filter='is_dir=true')
        fails('invalid_argument', plain.stream, 'Archive', 'plain', {'direction': 'DOWNLOAD'})
        said = plain.stream('ExecStream', 'plain', {'command': 'sleep 9', 'timeoutSeconds': 1})
        assert said[-1]['exit']['error']
        assert 'fork_time_ms' not in plain.call('GET', '/v1/sandboxes/plain')


def test_the_source_of_a_fork_runs_on(site, box):
    box.exec('sleep 4321 & echo $! > /tmp/pid')
    box.write('/workspace/here', b'x')
    kid = box.fork('kid')
    assert box.exec('kill -0 $(cat /tmp/pid)')[0] == 0 and kid.read('/workspace/here') == b'x'
    assert [s['state'] for s in site.list_sandboxes() if s['id'] == box.id] == ['running']
    assert kid.template == 'python'
    box.exec('kill $(cat /tmp/pid)')
    kid.terminate()


def test_a_timeout_is_an_exit(box):
    assert box.exec('echo begun; sleep 60', timeout=3) == (124, b'begun\n', b'')
    assert box.stream('ExecStream', {'command': 'exit 7'})[-1]['exit']['exitCode'] == 7


def test_code_keeps_its_state(box):
    assert box.run_code('a = 40')['results'] == []
    got = box.run_code('print("x"); a + 2')
    assert (got['exit'], got['stdout'], got['error']) == (0, 'x\n', None)
    assert got['results'] == [{'text': '42', 'data': {'text/plain': b'42'}}]
    got = box.run_code('''
class Shown:
    def _repr_html_(self):
        return '<b>ü</b>'
    def __repr__(self):
        return 'shown'
Shown()''')
    assert got['results'][0]['data'] == {'text/plain': b'shown',
                                         'text/html': '<b>ü</b>'.encode()}
    got = box.run_code('def f():\n    raise ValueError("no")\nf()')
    assert (got['exit'], got['error']['name'], got['error']['value']) == (1, 'ValueError', 'no')
    assert any('line 2' in line for line in got['error']['traceback'])
    assert box.run_code('echo $0', language='bash')['exit'] == 0
    got = box.run_code('1', language='cobol')
    assert (got['exit'], got['error']['name']) == (127, 'KernelUnavailable')


def test_code_that_takes_too_long(site, box):
    got = box.run_code('b = 1\nimport time\ntime.sleep(100)', timeout=3)
    assert (got['exit'], got['error']['name']) == (1, 'TimeoutError')
    assert box.run_code('b')['results'][0]['text'] == '1'  # interrupted, and it works
    said = site.connect('RunCodeStream', box.id, {'code': 'time.sleep(100)', 'timeoutSeconds': 90},
                        stream=True, more=['Connect-Timeout-Ms: 2000'])
    assert said[-2]['error']['name'] == 'TimeoutError'
    assert box.run_code('b')['results'][0]['text'] == '1'
    fails('invalid_argument', box.stream, 'RunCodeStream', {'code': '1', 'timeoutSeconds': 86401})


def test_time_begins_when_those_before_have_ended(box):
    """What waits in line is not told to be over, and run all the same."""
    begun = threading.Thread(target=lambda: box.run_code(
        'open("/tmp/begun", "w").close()\nimport time\ntime.sleep(4)'))
    begun.start()
    until(lambda: box.exec('test -e /tmp/begun')[0] == 0, what='the first')
    assert box.run_code('"late"', timeout=3)['results'][0]['text'] == "'late'"
    begun.join()


def test_code_of_a_bidirectional_client(site, box):
    for path in (None, f'/v1/sandboxes/{box.id}/run_code'):
        said = site.connect('RunCode', box.id, {'open': {'code': '6 * 7'}}, stream=True, path=path)
        assert said[0]['result']['text'] == '42' and said[-1] == {'exitCode': 0}
    body = frame({'open': {'code': '6 * 7'}})
    reply = site.hub.ask('POST', f'/v1/sandboxes/{box.id}/run_code', body=body.decode('latin1'),
                         fields=['X-Sandbox-Id: nobody'])
    assert list(frames(reply.body))[-1] == (2, {})  # the path says it
    reply = site.hub.connect('RunCode', box.id, None, [f'X-Sandbox-Id: {box.id}'], STREAM, body)
    assert list(frames(reply.body))[-1][1]['error']['code'] == 'not_found'  # none, said twice
    fails('invalid_argument', site.connect, 'RunCode', box.id, {'code': '1'}, stream=True)
    fails('invalid_argument', box.stream, 'RunCode', {'open': {'code': '1'}}, {'stdin': ''})
    fails('not_found', site.connect, 'RunCodeStream', 'nobody', {'code': '1'}, stream=True)


def test_secrets_do_not_leave(box):
    for code in (f'print("{SECRET}")', f'"{SECRET}"', f'raise ValueError("{SECRET}")',
                 f'import sys; sys.stderr.write("{SECRET}\\n"); None'):
        got = box.run_code(code)
        assert SECRET not in repr(got) and '[REDACTED' in repr(got), got
    assert SECRET.encode() not in box.exec(f'echo {SECRET}')[1]


def test_code_of_others(hub, site, box):
    """Their sandboxes are none, with an interpreter that runs or without."""
    other = Site(hub, hub.post('/v1/keys', name='other', scopes=['read', 'execute',
                                                                 'lifecycle'])['token'])
    box.run_code('1')
    there = fails('not_found', other.connect, 'RunCodeStream', box.id, {'code': '1'}, stream=True)
    none = fails('not_found', other.connect, 'RunCodeStream', 'nobody', {'code': '1'}, stream=True)
    assert there.error == none.error


# ---- templates ------------------------------------------------------------------------------

def test_names_of_templates(site):
    listed = {t['id']: t for t in site.list_templates()}
    assert {'host', 'python', TEMPLATE} <= set(listed) and 'lost' not in listed
    assert not any(t['created_at'].startswith('1970') for t in listed.values())
    for call in (site.create_template, lambda id: site.fork(id, 'never')):
        fails('not_found', call, 'lost')
        fails('not_found', call, 'no-such')
    for by in ('template', 'pool', 'image'):
        made = site.rest('POST', '/v1/sandboxes', {by: 'python', 'labels': {'a': 'b'}})
        assert made['template_id'] == 'python' and made['labels']['a'] == 'b'
        assert site.rest('GET', f'/v1/sandboxes/{made["id"]}')['template_id'] == 'python'
        site.rest('DELETE', f'/v1/sandboxes/{made["id"]}')
    made = site.rest('POST', '/v1/sandboxes', {'image': 'host', 'labels': {'mitos/template': 'x'}})
    assert made['template_id'] == 'host' and 'mitos/template' not in made.get('labels', {})
    site.rest('DELETE', f'/v1/sandboxes/{made["id"]}')
    fails('invalid_input', site.rest, 'POST', '/v1/sandboxes', {'pool': 'host', 'image': 'host'})
    fails('invalid_input', site.rest, 'POST', '/v1/sandboxes', {'image': 1})


def test_a_network_and_resources_of_a_template(hub, site):
    network = {'egress': 'allow', 'allow_domains': ['example.com:443'], 'inbound': 'allow'}
    resources = {'vcpu_count': 1, 'mem_size_mib': 256}
    made = site.create_template('python', network=network, resources=resources)
    assert made['network']['egress'] == 'deny' and made['network']['allow']
    one = site.rest('POST', '/v1/fork', {'template': 'python', 'id': 'networked'})
    assert [a['host'] for a in one['network']['allow']] == ['example.com']
    assert (one['limits']['memory_mb'], one['limits']['cpus']) == (256, 1)
    site.rest('DELETE', '/v1/sandboxes/networked')
    # Of others, and after the next word, nothing of it holds.
    other = Site(hub, hub.post('/v1/keys', name='apart', scopes=['read', 'lifecycle'])['token'])
    for who, id in ((other, 'apart'), (site, 'again')):
        who.create_template('python', network=None)
        made = who.rest('POST', '/v1/fork', {'template': 'python', 'id': id})
        assert made['network']['allow'] == [] and made['limits']['memory_mb'] == 1024
        who.rest('DELETE', f'/v1/sandboxes/{id}')


def test_a_network_that_the_image_wants(hub, site):
    """Holds where nothing is said, and never where the client says that there is to be none."""
    folder = os.path.join(hub.home, 'wants')
    os.mkdir(folder)
    with open(os.path.join(folder, 'holt.json'), 'w', encoding='utf-8') as f:
        json.dump({'network': {'mode': 'bridge', 'allow': [{'host': 'example.com',
                                                            'port': 443}]}}, f)
    done = hub.who.run('build', folder, '-t', 'wants', env=hub.env, text=True)
    assert done.returncode == 0, done
    for network, hosts in ((None, ['example.com']), ({'block': True}, []), ({}, []),
                           ({'egress': 'allow'}, [])):
        said = site.create_template('wishes', **({'network': network} if network is not None
                                                 else {}))
        assert [a['host'] for a in said['network']['allow']] == hosts
        try:
            made = site.rest('POST', '/v1/sandboxes', {'image': 'wishes'})
        except Failed as e:
            assert e.code == 'unsupported'
            pytest.skip('users without privileges have no whole overlays on this kernel')
        assert [a['host'] for a in made['network']['allow']] == hosts
        site.rest('DELETE', f'/v1/sandboxes/{made["id"]}')


def test_a_workload_of_who_may_run_nothing(hub, site):
    other = Site(hub, hub.post('/v1/keys', name='lifecycle', scopes=['read', 'lifecycle'])['token'])
    other.create_template('python', workload={'command': ['touch', '/tmp/ran']})
    made = other.fork('python', 'denied')
    until(lambda: 'sandbox denied: the workload of its template does not run' in hub.said(),
          what='the refusal')
    assert fails('not_found', site.connect, 'ReadFile', 'denied', {'path': '/tmp/ran'}, stream=True)
    made.terminate()


def test_what_is_kept_ends_with_the_key(hub):
    """Else all the room would be taken for good: 17 keys say more than all may."""
    for i in range(17):
        made = hub.post('/v1/keys', name=f'keeps-{i}', scopes=['read'])
        with hub.wire() as wire:
            for name in MANY[:64]:
                reply = wire.ask(hub.request(
                    'POST', '/v1/templates', token=made['token'],
                    body=json.dumps({'id': name, 'resources': {'vcpu_count': 1}})), 'POST')
                assert reply.status == 200, (i, reply)
        hub.call('DELETE', f'/v1/keys/keeps-{i}')


def test_a_workload_runs_in_each(site):
    site.create_template('python', workload={
        'command': ['sh', '-c', 'echo $A > /tmp/ran; exec sleep 4321'], 'env': {'A': 'ü'},
        'ready': {'port': 80, 'path': '/', 'expect': 200}})
    made = [site.fork('python', 'works'), site.fork('python', 'works')]  # the same key
    until(lambda: made[0].exec('cat /tmp/ran')[1] == 'ü\n'.encode(), what='the workload')
    until(lambda: made[0].exec('pgrep -fc "^sleep 4321"')[1] == b'1\n', what='its program')
    made[0].terminate()
    site.create_template('python')
    made = site.fork('python', 'idle')
    assert made.exec('pgrep -fc "^sleep 4321"')[1] == b'0\n'
    made.terminate()


def test_what_a_template_may_not_say(hub, site):
    other = Site(hub, hub.post('/v1/keys', name='small', scopes=['read', 'lifecycle'])['token'])
    fails('forbidden', other.create_template, 'python', network={'allow_domains': ['a.test:1']})
    fails('invalid_input', site.create_template, 'python', network={'allow_domains': ['a b']})
    fails('invalid_input', site.create_template, 'python', resources={'mem_size_mib': -1})
    fails('invalid_input', site.rest, 'POST', '/v1/templates', {'id': 1})
    fails('invalid_input', site.create_template, 'python', workload={'command': 'sleep 1'})
    for name in MANY[:64]:
        other.create_template(name, resources={'vcpu_count': 1})
    fails('quota_exceeded', other.create_template, MANY[64], resources={'vcpu_count': 1})
    other.create_template(MANY[64])  # nothing is kept of it
    other.create_template(MANY[0])
    other.create_template(MANY[64], resources={'vcpu_count': 1})
    fails('body_too_large', site.create_template, TEMPLATE,
          workload={'command': ['x' * (17 << 10)]})
    other.create_template(MANY[64])
    assert other.create_template('python', network={'block': True})['network']['allow'] == []


# ---- what is harmless, and the gateway's paths ----------------------------------------------

def test_harmless_members(site, box):
    made = site.fork('python', 'regional', region='fra')
    kid = site.rest('POST', '/v1/sandboxes/regional/fork',
                    {'id': 'regional-kid', 'secret_inheritance': 'reissue', 'region': 'fra'})
    assert kid['fork_time_ms'] > 0
    for id in (made.id, kid['id']):
        site.rest('DELETE', f'/v1/sandboxes/{id}')
    box.exec('mkdir -p /tmp/dir; touch /tmp/dir/f')
    assert [e['name'] for e in box.unary('List', parent='/tmp/dir',
                                         filter='is_dir=true')['entries']] == ['f']
    for direction in ('DOWNLOAD', 'DIRECTION_UNSPECIFIED', 0, 1):
        said = box.stream('Archive', {'path': '/tmp/dir', 'direction': direction})
        assert b'ustar' in joined(said, 'data')
    fails('invalid_argument', box.stream, 'Archive', {'direction': 'UNTAR'})
    # What is no member of either is refused as ever.
    fails('invalid_input', site.fork, 'python', 'never', regoin='fra')
    fails('invalid_argument', box.unary, 'List', parent='/', filtre='x')


def test_paths_of_the_gateway(site, box):
    def there(name, *messages):
        return site.connect(name, box.id, *messages, stream=True,
                            path=f'/v1/sandboxes/{box.id}/{name}')

    said = there('exec', {'open': {'command': 'cat'}}, {'stdin': b64(b'in')}, {'stdinClose': True})
    assert joined(said, 'stdout') == b'in' and said[-1]['exit']['exitCode'] == 0
    assert there('files', {'open': {'path': 'g'}}, {'data': b64(b'gate')})[0]['bytesWritten'] == 4
    assert joined(there('files', {'path': 'g'}), 'data') == b'gate'
    fails('not_found', site.connect, 'exec', 'nobody', {'open': {'command': 'true'}}, stream=True,
          path='/v1/sandboxes/nobody/exec')


@contextlib.contextmanager
def watching(hub, box, path, **options):
    """A connection on which a Watch has begun to answer."""
    body = frame({'path': path})
    with hub.wire(**options) as wire:
        wire.send(hub.request('POST', '/sandbox.v1.Sandbox/Watch', fields=[
            f'Content-Type: {STREAM}', f'Content-Length: {len(body)}',
            f'X-Sandbox-Id: {box.id}']).encode() + body)
        assert wire.head()[0] == 200
        yield wire


def test_watch(hub, box):
    box.exec('mkdir -p /tmp/w /tmp/apart')
    with watching(hub, box, '/tmp/w') as wire:
        box.exec('cd /tmp/w; echo 1 > a; mv a b; rm b; mv /tmp/apart . ; mv apart /tmp/gone; '
                 'mkdir end')
        told = []
        while not told or told[-1]['path'] != '/tmp/w/end':
            told += [m for _, m in frames(wire.chunk())]
    kinds = [(m['kind'], m['path'], m.get('newPath')) for m in told]
    assert [k for k in kinds if k[0] != 'MODIFY'] == [
        ('CREATE', '/tmp/w/a', None), ('RENAME', '/tmp/w/a', '/tmp/w/b'),
        ('DELETE', '/tmp/w/b', None), ('CREATE', '/tmp/w/apart', None),
        ('DELETE', '/tmp/w/apart', None), ('CREATE', '/tmp/w/end', None)], kinds
    assert ('MODIFY', '/tmp/w/a', None) in kinds


def test_a_move_out_is_told_by_itself(hub, box):
    box.exec('mkdir -p /tmp/m; touch /tmp/m/a')
    with watching(hub, box, '/tmp/m') as wire:
        box.exec('mv /tmp/m/a /tmp/out')
        assert [m for _, m in frames(wire.chunk())] == [{'kind': 'DELETE', 'path': '/tmp/m/a'}]


CHURN = """
import os
for n in range(40000):
    name = '/tmp/churn/' + '0' * 200 + str(n % 100)
    os.close(os.open(name, os.O_CREAT))
    os.unlink(name)
    if n % 1000 == 0:
        print(n, flush=True)
"""


def test_a_watch_that_can_not_follow_says_so(hub, box):
    """The client reads nothing until more has happened than anybody keeps for it."""
    box.exec('mkdir -p /tmp/churn')
    with watching(hub, box, '/tmp/churn', receive_buffer=4096) as wire:
        box.write('/tmp/churn.py', CHURN.encode())
        assert box.exec('python3 /tmp/churn.py', timeout=200)[0] == 0
        said = b''
        while chunk := wire.chunk():
            said += chunk
    told = list(frames(said))
    assert told[-1][0] == 2 and told[-1][1]['error']['code'] == 'resource_exhausted', told[-1]
    assert {m['kind'] for _, m in told[:-1]} == {'CREATE', 'DELETE'}, told[:3]


ECHO = """
import socket
s = socket.create_server(('127.0.0.1', 4000))
open('/tmp/listens', 'w').close()
while True:
    c = s.accept()[0]
    while data := c.recv(65536):
        c.sendall(data.upper())
    c.close()
"""


BREAKS = """
import socket, struct
s = socket.create_server(('127.0.0.1', 4002))
open('/tmp/breaks', 'w').close()
c = s.accept()[0]
c.recv(1)
c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
c.close()
"""


@pytest.fixture(scope='module')
def echo(box):
    box.write('/tmp/echo.py', ECHO.encode())
    box.exec('python3 /tmp/echo.py > /dev/null 2>&1 &')
    until(lambda: box.exec('test -e /tmp/listens')[0] == 0, what='the server')
    return box


def test_port_forward(hub, site, echo):
    def forward(*messages, sandbox=echo.id):
        return site.connect('PortForward', sandbox, *messages, stream=True)

    said = forward({'open': {'port': 4000}}, {'data': b64(b'one ')}, {'close': False},
                   {'data': b64(b'two')})
    assert joined(said, 'data') == b'ONE TWO' and said[-1] == {'close': True}
    many = os.urandom(3 << 20)
    said = forward({'open': {'port': 4000}}, {'data': b64(many)}, {'close': True})
    assert joined(said, 'data') == many.upper()
    echo.exec('python3 -c "' + BREAKS + '" > /dev/null 2>&1 &')
    until(lambda: echo.exec('test -e /tmp/breaks')[0] == 0, what='the other server')
    failed = fails('unavailable', forward, {'open': {'port': 4002}})
    assert 'broken' in failed.error['message'] or 'takes no more' in failed.error['message']
    fails('unavailable', forward, {'open': {'port': 4001}})
    fails('not_found', forward, {'open': {'port': 4000}}, sandbox='nobody')
    for messages in (({'open': {'port': 0}},), ({'data': ''},), ({},),
                     ({'open': {'port': 4000}}, {'open': {'port': 4000}}),
                     ({'open': {'port': 4000}}, {'close': True}, {'data': ''}),
                     ({'open': {'port': 4000}}, {'data': 'no base64!'})):
        fails('invalid_argument', forward, *messages)


def test_port_forward_in_both_directions(hub, echo):
    ws = websocket.create_connection(
        f'ws://127.0.0.1:{hub.address[1]}/sandbox.v1.Sandbox/PortForward?sandbox={echo.id}',
        header=[f'Authorization: Bearer {hub.token}'], subprotocols=['connect.sandbox.v1'],
        timeout=20)

    def heard():
        return next(frames(ws.recv()))
    ws.send_binary(frame({'open': {'port': 4000}}))
    ws.send_binary(frame({'close': False}))
    for word in (b'a', b'bc'):
        ws.send_binary(frame({'data': b64(word)}))
        assert heard() == (0, {'data': b64(word.upper())})
    ws.send_binary(frame({'close': True}))
    assert heard() == (0, {'close': True}) and heard() == (2, {})
    ws.close()


def serves(box, text=ECHO):
    """Runs a server in the sandbox, which makes this file when it listens."""
    box.write('/tmp/server.py', text.encode())
    box.exec('rm -f /tmp/listens; python3 /tmp/server.py > /dev/null 2>&1 &')
    until(lambda: box.exec('test -e /tmp/listens')[0] == 0, what='the server')


def forwarded(hub, sandbox, port=4000):
    ws = websocket.create_connection(
        f'ws://127.0.0.1:{hub.address[1]}/sandbox.v1.Sandbox/PortForward?sandbox={sandbox}',
        header=[f'Authorization: Bearer {hub.token}'], subprotocols=['connect.sandbox.v1'],
        timeout=20)
    ws.send_binary(frame({'open': {'port': port}}))
    return ws


def test_a_connection_ends_with_its_sandbox_or_its_client(hub, site, echo):
    made = site.create('ends')
    serves(made)

    def opened(sandbox):
        ws = forwarded(hub, sandbox)
        ws.send_binary(frame({'data': b64(b'x')}))
        assert next(frames(ws.recv())) == (0, {'data': b64(b'X')})
        return ws
    left, stays = opened(echo.id), opened(made.id)
    left.sock.close()
    made.terminate()
    told = [next(frames(stays.recv()))]
    while told[-1][0] != 2:
        told.append(next(frames(stays.recv())))
    assert told[-1][1]['error']['code'] == 'failed_precondition', told
    stays.close()
    opened(echo.id).close()


HALF = """
import socket
s = socket.create_server(('127.0.0.1', 4005))
open('/tmp/listens', 'w').close()
c = s.accept()[0]
c.sendall(b'bye')
c.shutdown(socket.SHUT_WR)
n = 0
while data := c.recv(65536):
    n += len(data)
open('/tmp/n', 'w').write(str(n))
"""


def test_a_server_that_closes_its_side_first(hub, site):
    """It still gets what the client sends."""
    box = site.create('half')
    serves(box, HALF)
    ws = forwarded(hub, box.id, 4005)
    assert next(frames(ws.recv())) == (0, {'data': b64(b'bye')})
    assert next(frames(ws.recv())) == (0, {'close': True})
    for _ in range(40):
        ws.send_binary(frame({'data': b64(b'x' * 50000)}))
    ws.send_binary(frame({'close': True}))
    assert next(frames(ws.recv())) == (2, {})
    until(lambda: box.exec('cat /tmp/n')[1] == b'2000000', what='the bytes')
    box.terminate()


GREETS = """
import socket
s = socket.create_server(('127.0.0.1', 4003), backlog=256)
open('/tmp/listens', 'w').close()
kept = []
while True:
    kept.append(s.accept()[0])
    kept[-1].sendall(b'hello')
"""


def test_connections_are_calls_that_wait(hub, site):
    """More than one principal's calls that work may be: others of its own still find room."""
    boxes = [site.create(f'waits-{i}') for i in range(4)]
    for box in boxes:
        serves(box, GREETS)
    kept = [forwarded(hub, box.id, 4003) for box in boxes for _ in range(60)]
    for ws in kept:
        assert next(frames(ws.recv())) == (0, {'data': b64(b'hello')})
    assert boxes[0].exec('echo ok')[:2] == (0, b'ok\n')
    for ws in kept:
        ws.sock.close()
    for box in boxes:
        box.terminate()


DEAF = GREETS.replace('4003', '4004')


def memory(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as f:
        return next(int(line.split()[1]) for line in f if line.startswith('VmRSS')) * 1024


def test_what_connections_keep_is_counted(me, tmp_path):
    """The bytes that a server does not take, once each, and 256 MiB of all together."""
    with Rest(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0', '--compat',
              'mitos') as own:
        box = Site(own).create('deaf', 'host')
        serves(box, DEAF)
        body = frame({'open': {'port': 4004}}) + frame({'data': b64(bytes(7 << 18))}) * 3
        asked = own.request('POST', '/sandbox.v1.Sandbox/PortForward', fields=[
            f'Content-Type: {STREAM}', f'Content-Length: {len(body)}',
            f'X-Sandbox-Id: {box.id}']).encode() + body
        before, kept = memory(own.proc.pid), []

        def opened():
            wire = own.wire()
            wire.send(asked)
            found = wire.got.find
            while found(b64(b'hello').encode()) < 0 and found(b'"resource_exhausted"') < 0:
                wire.more()
            kept.append(wire)
            return found(b'"resource_exhausted"') < 0
        while opened():
            assert len(kept) < 60
        assert 40 < len(kept) < 52
        assert memory(own.proc.pid) - before < 300 << 20
        for wire in kept:
            wire.close()
        until(opened, what='room')
        kept[-1].close()


def test_a_sandbox_that_ends_cuts_a_request(hub, site):
    box = site.create('cut')
    serves(box, GREETS)
    body = frame({'open': {'port': 4003}})
    asked = hub.request('POST', '/sandbox.v1.Sandbox/PortForward', fields=[
        f'Content-Type: {STREAM}', f'Content-Length: {len(body)}',
        f'X-Sandbox-Id: {box.id}']).encode() + body
    told = list(frames(hub.after_first(asked, box.terminate).body))
    assert told[-1][0] == 2 and told[-1][1]['error']['code'] == 'failed_precondition', told


@pytest.mark.timing
def test_connections_end_with_the_hub(me, tmp_path):
    own = Rest(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0', '--compat', 'mitos')
    try:
        box = Site(own).create('brief', 'host')
        serves(box, GREETS)
        ws = forwarded(own, box.id, 4003)
        assert next(frames(ws.recv())) == (0, {'data': b64(b'hello')})
        body = frame({'open': {'port': 4003}})
        with own.wire() as wire:
            wire.send(own.request('POST', '/sandbox.v1.Sandbox/PortForward', fields=[
                f'Content-Type: {STREAM}', f'Content-Length: {len(body)}',
                f'X-Sandbox-Id: {box.id}']).encode() + body)
            wire.head()
            wire.until(b64(b'hello').encode())
            begun = time.monotonic()
            assert own.end() == 0 and time.monotonic() - begun < 9.5
            wire.until(b'"canceled"')  # nobody takes it for whole
        flags, said = next(frames(ws.recv()))
        assert flags == 2 and said['error']['code'] == 'canceled'
    finally:
        own.kill()


def test_lists_tell_how_long_it_took(site, box):
    assert [s['fork_time_ms'] > 0 for s in site.list_sandboxes() if s['id'] == box.id] == [True]


# ---- without a token ------------------------------------------------------------------------

def test_without_a_token(me, tmp_path):
    """Only procedures of a sandbox that is there, and only where that was asked for."""
    def asks(hub, rpc='Stat', sandbox='mine', **more):
        return hub.connect(rpc, sandbox, {'path': '/'}, token=None, **more).status

    with Rest(me, tmp_path / 'closed', '--listen', '127.0.0.1:0', '--pool', '0', '--compat',
              'mitos') as closed:
        closed.post('/v1/fork', template='python', id='mine')
        assert asks(closed) == 401
        for method, path in [*NEW, ('GET', '/sandbox.v1.Sandbox/PortForward'),
                             ('POST', '/v1/sandboxes/mine/exec')]:
            reply = closed.raw(method, path, '{}' if method == 'POST' else None, token=None,
                               fields=['X-Sandbox-Id: mine'])
            assert reply.status == 401, (path, reply)
    with Rest(me, tmp_path / 'open', '--listen', '127.0.0.1:0', '--pool', '0', '--compat',
              'e2b,mitos-tokenless') as hub:
        hub.post('/v1/fork', template='python', id='mine')
        assert asks(hub) == 200
        assert asks(hub, sandbox='nobody') == 401 and asks(hub, sandbox=None) == 401
        assert asks(hub, fields=['Origin: http://localhost']) == 401  # a page of the hub's own
        assert asks(hub, fields=['Origin: http://evil.example']) == 403
        assert asks(hub, fields=['X-Forwarded-For: 192.0.2.1']) == 401  # through a proxy
        assert hub.connect('Stat', 'mine', {'path': '/'}, token='wrong').status == 401
        for method, path in (('GET', '/v1/sandboxes'), ('DELETE', '/v1/sandboxes/mine'),
                             ('POST', '/v1/sandboxes/mine/exec'), ('GET', '/v1/keys')):
            reply = hub.raw(method, path, '{}' if method == 'POST' else None, token=None,
                            fields=['X-Sandbox-Id: mine'])
            assert reply.status == 401, (path, reply)
        said = hub.connect('RunCodeStream', 'mine', None, kind=STREAM, token=None,
                           body=frame({'code': 'true', 'language': 'bash'}))
        assert [m for _, m in frames(said.body)][-2:] == [{'exitCode': 0}, {}]


def test_a_proxy_and_no_tokens(me, tmp_path):
    for more in (('--public-url', 'https://holt.example'), ('--allow-host', 'holt.example')):
        done = me.run('serve', '--listen', 'none', '--compat', 'mitos-tokenless', *more, text=True,
                      env={**me.env, 'HOLT_HOME': str(tmp_path)})
        assert done.returncode != 0 and 'proxy' in done.stderr


def test_many_at_once(site, box):
    """Code waits for its turn, files and commands do not."""
    got = []
    asked = [threading.Thread(target=lambda i=i: got.append(
        (box.run_code(f'{i}')['results'][0]['text'], box.exec(f'echo {i}')[1])))
        for i in range(8)]
    for thread in asked:
        thread.start()
    for thread in asked:
        thread.join()
    assert sorted(got) == sorted((str(i), f'{i}\n'.encode()) for i in range(8))
    until(lambda: box.exec('true')[0] == 0, what='the end')
