"""Shapes of bytes through every door that returns output or files: lengths around each buffer's
bound, without a line end, half a character, any bytes, the start of a secret at a boundary; and
clients that go at each moment. It runs against the sanitizer build, after its unit tests (the step
`asan` of scripts/test): a report of memory that was misused ends the hub there.

What a door must say of such bytes is in that door's own tests; here nothing may end but the call.
"""

import base64
import contextlib
import gzip
import json
import os
import random
import re
import socket
import struct

import pytest

import host
from client import until
from rest import Rest, b64, frames
from serving import run
from soak import soak
from talk import Attached, Exec, Framed, Pty
from test_door import frame as ws_frame
from test_expose import APP
from test_serve import Session

SEED = 32
PORT = 8000
BOUNDS = [64, 1024, 4096, 8192, 65536, 131072, 1 << 20]
LIMIT = 2 << 20
REPORT = re.compile(r'AddressSanitizer|runtime error:|LeakSanitizer')


def lengths():
    return [bound + d for bound in BOUNDS for d in (-1, 0, 1)]


STARTS = [b'password=', b'ghp_', b'AKIA', b'Bearer ', b'eyJhbGciOi', b'https://a:b', b'TOKEN=$',
          b'-----BEGIN RSA PRIVATE KEY-----\n', b'sk-ant-', b'xoxb-', b'"api_key": "']
FILLS = {
    'word': lambda draw, n: b'x' * n,
    'lines': lambda draw, n: (b'0123456789abcde\n' * (n // 16 + 1))[:n],
    'ends': lambda draw, n: b'\n' * n,
    'nul': lambda draw, n: bytes(n),
    'bytes': lambda draw, n: draw.randbytes(n),
    'half': lambda draw, n: ('\U0001f600'.encode() * (n // 4 + 1))[:n],
    'digits': lambda draw, n: b'7' * n,
}


def shapes(draw, count):
    """Name and bytes: every length once, then others that are drawn."""
    sizes = lengths()
    for i in range(max(count, len(sizes))):
        n = sizes[i] if i < len(sizes) else draw.choice(sizes)
        name, fill = draw.choice([*FILLS.items()])
        data = bytearray(fill(draw, n))
        if draw.random() < 0.5:  # across a bound, and open at the end
            start = draw.choice(STARTS)
            at = max(0, draw.choice([n, *(b for b in BOUNDS if b < n)]) - draw.randrange(
                len(start) + 1))
            data[at:at + len(start)] = start[:max(0, n - at)]
            name += f' and {start.decode()!r} at {at}'
        yield f'{n} bytes of {name}', bytes(data)


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    with Rest(me, tmp_path_factory.mktemp('shapes'), '--listen', '127.0.0.1:0', '--pool', '1',
              '--compat', 'e2b,mitos') as shared:
        yield shared
        intact(shared, 'after all')
    before.check()


@pytest.fixture(scope='module')
def box(hub):
    made = hub.create()
    yield made
    hub.delete(made)


@pytest.fixture(scope='module')
def app(hub, box):
    hub.post('/v1/files/write', sandbox=box, path='app.py', content=APP)
    run(hub, box, 'python3', ['-u', 'app.py'], stdin_open=True)
    return f'/v1/sandboxes/{box}/expose/{PORT}'


def intact(hub, what):
    report = REPORT.search(hub.said())
    assert not report and hub.proc.poll() is None, (
        f'{what}: {hub.said()[report.start() if report else -4000:][:6000]}')


def written(hub, box, data):
    hub.post('/v1/files/write', sandbox=box, path='shape', content=b64(data), encoding='base64')


# ---- each door: prints the file `shape` of the sandbox, or reads it ------------------------------

BOTH = 'cat shape; cat shape >&2'


def by_exec(hub, box):
    return hub.exec(box, BOTH, max_output_bytes=LIMIT)


def by_a_small_budget(hub, box):
    hub.exec(box, BOTH, max_output_bytes=1024)


def by_both_at_once(hub, box):
    hub.exec(box, 'cat shape >&2 & cat shape; wait')


def by_run(hub, box):
    content = hub.post('/v1/files/read', sandbox=box, path='shape', encoding='base64')['content']
    parts = [content[at:at + 1_000_000] for at in range(0, len(content), 1_000_000)]
    hub.post('/v1/run', command=['sh', '-c', f'cat text* | base64 -d > shape; {BOTH}'],
             state={'retention': 'destroy'},
             files=[{'path': f'text{i}', 'content': part} for i, part in enumerate(parts)])


def by_javascript(hub, box):
    # without what would be cut off inside anyway, and as its text, since it has no files
    text = hub.post('/v1/files/read', sandbox=box, path='shape', encoding='base64')['content']
    hub.post('/v1/javascript', code=f'''
        const s = {json.dumps(base64.b64decode(text)[:40_000].decode('latin-1'))}
        console.log(s); console.error(s); s + s''')


def by_stream(hub, box):
    reply = hub.raw('POST', '/v1/exec/stream', {'sandbox': box, 'command': BOTH})
    assert reply.status == 200, reply


def by_background(hub, box):
    job = hub.exec(box, BOTH, background=True)['exec_id']
    at = f'/v1/sandboxes/{box}/execs/{job}'
    hub.post(f'{at}/wait', timeout_seconds=60)
    offset, eof = 0, False
    while not eof:
        page = hub.call('GET', f'{at}/output?offset={offset}&limit=65537')
        offset, eof = page['next_offset'], page['eof']
    with Attached(hub, box, job, 0) as x:
        x.end()
    hub.raw('GET', f'{at}/output?follow=true')


def by_files(hub, box):
    hub.raw('POST', '/v1/files/read', {'sandbox': box, 'path': 'shape'})
    hub.post('/v1/files/read', sandbox=box, path='shape', encoding='base64')


def by_socket(hub, box):
    with Exec(hub, box, BOTH, stdin=False) as x:
        x.end()


def by_terminal(hub, box):
    with Pty(hub, box, BOTH) as x:
        x.end()


def by_frames(hub, box):
    with Framed(hub, box, {'command': BOTH}) as x:
        x.end()


def by_connect(hub, box):
    reply = hub.connect('Exec', box, None, kind='application/connect+json',
                        body=struct.pack('>BI', 0, len(m := json.dumps(
                            {'open': {'command': BOTH}}).encode())) + m)
    assert reply.status == 200 and list(frames(reply.body))


DOORS = [by_exec, by_a_small_budget, by_both_at_once, by_run, by_stream, by_background, by_files,
         by_socket, by_terminal, by_frames, by_connect, by_javascript]


@pytest.mark.parametrize('door', DOORS)
def test_shapes(hub, box, door):
    draw = random.Random(f'{SEED} {door.__name__}')
    for name, data in shapes(draw, soak(210, 21)):
        written(hub, box, data)
        try:
            got = door(hub, box)
        except Exception as e:
            intact(hub, name)
            raise AssertionError(f'{door.__name__} of {name}') from e
        intact(hub, name)
        if got and ' and ' not in name:
            for stream in ('stdout', 'stderr'):
                said = got[stream].encode()
                if f'{stream}_base64' in got:  # no text
                    said = base64.b64decode(got[f'{stream}_base64'])
                assert said == data, f'{door.__name__}, {stream} of {name}'


def test_shapes_over_stdio(me, start):
    """`holt mcp`, its reports by its own log."""
    client = start()
    box = client.create()
    for name, data in shapes(random.Random(f'{SEED} stdio'), soak(210, 21)):
        box.write('shape', b64(data), encoding='base64')
        box.exec(BOTH)
        box.read('shape', encoding='base64')
        assert client.proc.poll() is None, name
    box.terminate()


# ---- clients that go -----------------------------------------------------------------------------

def upgrade(hub, path):
    wire = hub.wire()
    wire.send(hub.request('GET', path, fields=[
        'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: ' + b64(bytes(16))]))
    return wire


def go(wire, how):
    """Ends a connection in one of the ways that there are."""
    with contextlib.suppress(OSError):
        if how == 'close frame':
            wire.send(ws_frame(8, (1000).to_bytes(2, 'big')))
        elif how == 'reset':
            wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        elif how == 'half':
            wire.sock.shutdown(socket.SHUT_WR)
    wire.close()


HOWS = ['close frame', 'reset', 'half', 'close']


def records(hub, action):
    found = []
    for top, _, names in os.walk(hub.home):
        for name in names:
            if os.path.basename(top) == 'audit':
                with open(os.path.join(top, name), encoding='utf-8', errors='replace') as f:
                    found += [line for line in f if f'"{action}"' in line]
    return found


def test_a_port_whose_client_goes(hub, box, app):
    """The call outlives the client's connection; its record names the sandbox nevertheless."""
    before = len(records(hub, 'port.expose'))
    asked = 0
    for how in HOWS:
        for _ in range(soak(30, 3)):
            for path in ('/ws', '/x', '/sunk'):
                for said in (False, True):
                    wire = upgrade(hub, app + path)
                    if said:
                        wire.head()
                        if path == '/ws':
                            wire.send(ws_frame(1, b'hello'))
                    asked += said
                    go(wire, how)
                    # others take the memory that it leaves
                    for _ in range(2):
                        hub.ask(path='/v1/sandboxes?limit=1')
        intact(hub, how)
    until(lambda: len(records(hub, 'port.expose')) >= before + asked, what='the records')
    strange = [line for line in records(hub, 'port.expose')[before:] if f'"{box}"' not in line]
    assert not strange, strange[:3]


def test_a_client_that_goes_in_the_middle(hub, box):
    """Of each kind of answer that comes in pieces, after none, some and all of it."""
    written(hub, box, b'x' * 300_000)
    asks = [('POST', '/v1/exec', {'sandbox': box, 'command': BOTH}),
            ('POST', '/v1/exec/stream', {'sandbox': box, 'command': f'{BOTH}; sleep 0.1; {BOTH}'}),
            ('POST', '/v1/files/read', {'sandbox': box, 'path': 'shape'}),
            ('POST', '/v1/run', {'command': ['cat', '/dev/zero'], 'timeout_seconds': 1,
                                 'state': {'retention': 'destroy'}})]
    for method, path, body in asks:
        for least in (0, 1, 1000, 100_000):
            for how in HOWS[1:]:
                wire = hub.wire()
                wire.send(hub.request(method, path, body=json.dumps(body)))
                while len(wire.got) < least and path != '/v1/run':
                    wire.more()
                go(wire, how)
        intact(hub, path)
    until(lambda: all('cat' not in p['command'] for p in hub.call(
        'GET', f'/v1/sandboxes/{box}/processes')['processes']), what='the end of what they ran')


BODY = 3 << 20  # more bytes than the loop parses itself
AT_ONCE = 12  # more than the pool has threads: some are parsed and some wait


def long_requests(hub, box):
    """What sends one to each door that parses or unpacks a body in the work pool, or writes its
    answer there."""
    made = json.loads(hub.ask('POST', '/v2/sandboxes', body='{"templateID": "base"}',
                              fields=[f'X-API-KEY: {hub.token}']).body)
    mcp = Session(hub)
    text = json.dumps({'sandbox': box, 'path': 'gone', 'content': 'x\n' * (BODY // 3)})
    packed = gzip.compress(bytes(BODY)).decode('latin-1')
    posts = {
        'right': hub.request('POST', '/v1/files/write', body=text),
        'wrong': hub.request('POST', '/v1/files/write', body=text[:-1]),
        'printed': hub.request('POST', '/v1/exec', body=json.dumps(
            {'sandbox': box, 'command': 'cat shape', 'max_output_bytes': LIMIT})),
        'packed': hub.request('POST', '/files?path=gone', token=None, fields=[
            f'E2b-Sandbox-Id: {made["sandboxID"]}', 'E2b-Sandbox-Port: 49983',
            f'X-Access-Token: {made["envdAccessToken"]}', 'Content-Encoding: gzip',
            'Content-Type: application/octet-stream', f'Content-Length: {len(packed)}']) + packed,
    }
    for name, post in posts.items():
        yield name, lambda wire, post=post: wire.send(post)
    yield 'mcp', lambda wire: mcp.call(wire, 'sandbox_exec', sandbox=box, command=BOTH,
                                       max_output_bytes=LIMIT)
    hub.ask('DELETE', f'/sandboxes/{made["sandboxID"]}', fields=[f'X-API-KEY: {hub.token}'])


def test_a_client_that_goes_while_the_pool_has_its_bytes(me, tmp_path):
    """Whatever is done beside the loop with what a request has, its client may go meanwhile, and so
    may the hub."""
    with Rest(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0', '--compat', 'e2b') as own:
        box = own.create()
        written(own, box, random.Random(SEED).randbytes(1 << 20))
        for name, send in long_requests(own, box):
            with own.wire() as wire:  # the control: it would be answered
                send(wire)
                status = wire.head()[0]
                assert status in ((400,) if name == 'wrong' else (200, 204)), (name, status)
            for how in HOWS[1:] * soak(10, 1):
                wires = [own.wire() for _ in range(AT_ONCE)]
                for wire in wires:
                    send(wire)
                for wire in wires:
                    go(wire, how)
                for _ in range(4):  # others take the memory that they leave
                    own.ask(path='/v1/sandboxes?limit=1')
                intact(own, (name, how))
        # and the hub ends with what they printed in the pool, behind which is a record of the audit
        wires = [own.wire() for _ in range(4 * AT_ONCE)]
        for wire in wires:
            send(wire)
        until(lambda: all('cat' not in p['command'] for p in own.call(
            'GET', f'/v1/sandboxes/{box}/processes')['processes']), what='the end of what they ran')
        for wire in wires:
            go(wire, 'close')
    assert not REPORT.search(own.said()), own.said()[-6000:]
