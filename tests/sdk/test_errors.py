"""Each way in which a call can fail, for real; and that no secret is in what is told of it."""

import asyncio
import base64
import contextlib
import hashlib
import json
import logging
import os
import shutil
import socket
import struct
import threading
import traceback

import pytest

import holt
import host
from client import until
from conftest import place
from face import Face, scenario
from test_policy import Hub

TOKEN = 'holt_token-of-this-test-0123456789'


@scenario
async def test_policy_denial(face, box):
    with pytest.raises(holt.PolicyDeniedError) as caught:
        await box.files.write('forbidden.txt', 'x')
    e = caught.value
    assert (e.code, e.status, e.retryable, e.failure) == ('forbidden', 403, False, 'policy_denied')
    assert 'no forbidden files' in e.cause and e.remediation and e.message and e.audit_id
    assert e.to_dict()['audit_id'] == e.audit_id and 'forbidden: ' in str(e)
    record = (await face.client.audit_record(e.audit_id))['record']
    assert record['decision'] == 'deny' and 'config.json' in record['rule']
    await box.files.write('allowed.txt', 'x')
    if face.place['base_url'].startswith('http'):  # who is not the operator grants what it may
        with pytest.raises(holt.PolicyDeniedError):
            await box.network.allow('c.example', 443)
    with pytest.raises(holt.PolicyDeniedError) as caught:
        await face.new_client(api_key='holt_wrong-token-0123456789').templates()
    assert caught.value.code == 'unauthorized'


@scenario
async def test_validation_not_found_conflict(face, box):
    with pytest.raises(holt.ValidationError) as caught:
        await face.Sandbox.create(ttl_seconds=-1, client=face.client)
    assert caught.value.status == 400 and not caught.value.retryable
    with pytest.raises(holt.NotFoundError) as caught:
        await face.Sandbox.create('no-such-image', client=face.client)
    assert isinstance(caught.value, holt.ValidationError)
    with pytest.raises(holt.NotFoundError):
        await face.Sandbox.connect('no-such-sandbox', client=face.client)
    with pytest.raises(holt.ConflictError) as caught:
        await face.Sandbox.create(id=box.id, client=face.client)
    assert caught.value.context['sandbox'] == box.id
    with pytest.raises(holt.ValidationError) as caught:
        await box.commands.run('true', timeout_seconds=100000)
    assert caught.value.context['max_timeout_s'] == 86400


@scenario
async def test_guest_and_limit(face, box):
    with pytest.raises(holt.CommandError) as caught:
        await box.commands.run('echo out; exit 3', check=True)
    assert caught.value.result.stdout == 'out\n' and caught.value.context['exit_code'] == 3
    async with await face.Sandbox.create(limits=holt.Limits(memory_mb=64, disk_mb=16),
                                         client=face.client) as small:
        await small.commands.run('head -c 20000000 /dev/zero > full')
        with pytest.raises(holt.GuestError) as caught:
            await small.files.write('more', b'x' * 100000)
        assert caught.value.context['dimension'] == 'disk'
    process = await box.commands.start('sleep 300', stdin_open=True)
    with pytest.raises(holt.LimitError) as caught:
        for _ in range(3):
            await process.write(b'x' * (700 << 10))
    assert caught.value.status == 429 and isinstance(caught.value, holt.TransportError)
    await process.kill()


@scenario
async def test_cleanup_failure(face):
    """An operator who lets nobody end it: the block tells so, unless it failed itself."""
    with pytest.raises(holt.CleanupError) as caught:
        async with await face.Sandbox.create(id=f'kept-{face.kind}', client=face.client) as kept:
            pass
    e = caught.value
    assert e.context == {'sandbox': kept.id} and e.code == 'forbidden' and e.audit_id
    assert isinstance(e.__cause__, holt.PolicyDeniedError)
    assert (await kept.info()).state == 'running'
    with pytest.raises(ZeroDivisionError):
        async with await face.Sandbox.create(id=f'kept-{face.kind}2', client=face.client) as other:
            raise ZeroDivisionError
    for one in (kept, other):
        assert await one.set_timeout(1) > 0  # its own time ends it all the same
        while (await one.info()).state != 'terminated':
            await asyncio.sleep(0.05)


def test_cleanup_failure_of_a_run(me, tmp_path_factory):
    home = tmp_path_factory.mktemp('cleanup')
    os.chown(home, me.uid, me.uid)
    with Hub(me, home) as hub:
        shutil.rmtree(os.path.join(hub.home, 'snapshots'))
        client = holt.Client(**place(hub, 'unix'))
        answer = client.run({'command': ['echo', 'done'], 'state': {'retention': 'stop'}})
        assert answer.stdout == 'done\n' and not answer.ok
        with pytest.raises(holt.CleanupError) as caught:
            answer.check()
        assert caught.value.context == {'sandbox': answer.sandbox_id}
        assert caught.value.result is answer
        client.close()
        hub.delete(answer.sandbox_id)  # a hub that can't keep it would not end well


# ---- the way to the hub

@pytest.mark.parametrize('kind, door', [('blocking', 'http'), ('asyncio', 'unix')])
def test_a_hub_that_is_killed(me, tmp_path_factory, kind, door):
    """Whoever waits for it hears of that at once: a command, streams, a terminal."""
    home = tmp_path_factory.mktemp('killed')
    os.chown(home, me.uid, me.uid)
    hub = Hub(me, home)

    def kill():
        until(lambda: host.with_argument('300.5'), 50, 'the command')
        hub.kill()
    with Face(kind, place(hub, door)) as face:
        async def go():
            box = await face.Sandbox.create(client=face.client)
            stream = await box.commands.stream('echo a; sleep 300')
            assert (await stream.get(20)).text == 'a\n'
            watch = await box.files.watch()
            channel = await box.commands.open(['cat'])
            follow = await (await box.commands.start('sleep 300')).follow()
            threading.Thread(target=kill).start()
            with pytest.raises(holt.TransportError) as caught:
                await box.commands.run('exec sleep 300.5', timeout_seconds=60)
            assert caught.value.code == 'connection_lost' and not caught.value.retryable
            for one in (stream, watch, follow):
                with pytest.raises(holt.TransportError):
                    await one.get(20)
                await one.close()
            with pytest.raises(holt.TransportError):
                await channel.read(20)
            await channel.close()
            with pytest.raises(holt.TransportError) as caught:
                await box.kill()
            assert caught.value.code == 'unreachable' and caught.value.retryable
            with pytest.raises(holt.TransportError):
                async with box:
                    await box.info()
        face.wait(go())
    with Hub(me, home):
        pass  # ends what was left


class Liar:
    """Answers each connection as the test says, and remembers what came."""

    def __init__(self, answer):
        self.answer, self.heard = answer, []
        self.sock = socket.create_server(('127.0.0.1', 0))
        self.url = f'http://127.0.0.1:{self.sock.getsockname()[1]}'
        self.kept = []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                wire = self.sock.accept()[0]
            except OSError:
                return
            got = b''
            while b'\r\n\r\n' not in got:
                got += wire.recv(65536)
            self.heard.append(got)
            said = self.answer(got) if callable(self.answer) else self.answer
            if said is None:
                self.kept.append(wire)
                continue
            try:
                wire.sendall(said)
            except OSError:
                pass
            wire.close()

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        for wire in self.kept:
            wire.close()


@pytest.fixture
def liar():
    made = []

    def make(answer):
        made.append(Liar(answer))
        return made[-1]
    yield make
    for one in made:
        one.close()


def answer(body, head='HTTP/1.1 200 OK', fields=()):
    return '\r\n'.join([head, f'Content-Length: {len(body)}', *fields, '', body]).encode()


def refusal(status, **error):
    error = {'code': 'unavailable', 'message': 'm', 'cause': 'c', 'remediation': 'r',
             'failure': 'transport_failed', 'retryable': True, 'context': {}, **error}
    return answer(json.dumps({'error': error}), f'HTTP/1.1 {status} X')


@pytest.fixture(params=['blocking', 'asyncio'])
def lied(request):
    """What a client's health() comes to at a liar's."""
    def ask(liar, **more):
        with Face(request.param, {'base_url': liar.url, 'api_key': TOKEN}) as face:
            return face.wait(face.new_client(**{'retries': 0, **more}).health())
    return ask


@pytest.mark.parametrize('said, code', [
    (b'', 'connection_lost'), (b'SSH-2.0-nothing\r\n\r\n', 'connection_lost'),
    (b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}', 'connection_lost'),
    (b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 'connection_lost'),
    (b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}x', 'connection_lost'),
    (b'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}', 'connection_lost'),
    (b'HTTP/1.1 200 OK\r\nX: ' + b'x' * 70000, 'connection_lost'),
    (b'HTTP/1.1 \xb200 OK\r\n\r\n{}', 'connection_lost'),
    (b'HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n{}', 'connection_lost'),
    (b'HTTP/1.1 200 OK\r\nContent-Length: ' + b'1' * 5000 + b'\r\n\r\n{}', 'connection_lost'),
    (answer('no JSON'), 'bad_answer'), (answer('[' * 100000), 'bad_answer'),
    (answer('{"status": "ok"'), 'bad_answer'), (answer(''), 'bad_answer'),
    (answer('[]'), 'bad_answer'), (answer('null'), 'bad_answer'),
    (refusal(500, context=[1]), 'bad_answer'), (answer('<html>', 'HTTP/1.1 502 Bad'), 'bad_answer'),
    (answer('{"error": 1}', 'HTTP/1.1 500 X'), 'bad_answer'),
    (answer('x' * 1000, 'HTTP/1.1 301 Moved', ['Location: http://127.0.0.2/']), 'bad_answer'),
], ids=lambda value: repr(value)[-40:])
def test_what_is_no_hub(liar, lied, said, code):
    with pytest.raises(holt.TransportError) as caught:
        lied(liar(said))
    assert caught.value.code == code and caught.value.remediation


# Of members that answers have, each with a value of another type.
VALUES = [None, True, 1, 'x', [], {}, [None], [{}]]
NAMES = ['id', 'exec_id', 'result', 'sandboxes', 'snapshots', 'entries', 'content', 'chunks',
         'changes', 'forwards', 'allow', 'host', 'guest_port', 'status', 'url', 'deadline_unix',
         'exit_code', 'stdout', 'stdout_base64', 'next_offset', 'next_cursor', 'eof', 'kind',
         'stream', 'data', 'bytes', 'is_dir', 'state', 'cleanup', 'exit', 'error']


def wrong():
    for value in VALUES:
        yield value
        yield dict.fromkeys(NAMES, value)
        yield dict.fromkeys(NAMES, [dict.fromkeys(NAMES, value)])


@pytest.mark.parametrize('kind', ['blocking', 'asyncio'])
def test_answers_that_are_none_of_a_hub(liar, kind):
    """Whatever a hub says, no other error comes than one of ours."""
    said = [{'id': 'x', 'state': 'x', 'generation': 1, 'created_at': 'x', 'exec_id': 'x'}]
    took = []

    def tell(got):
        text = json.dumps(said[0]) + '\n'
        if b'Sec-WebSocket-Key: ' not in got:
            return answer(text, fields=['Connection: close'])
        key = got.split(b'Sec-WebSocket-Key: ')[1][:24] + b'258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
        accept = base64.b64encode(hashlib.sha1(key).digest()).decode()
        return (f'HTTP/1.1 101 X\r\nSec-WebSocket-Accept: {accept}\r\n\r\n'.encode() + b'\x81\x7e'
                + struct.pack('>H', len(text)) + text.encode())
    one = liar(tell)

    async def go():
        client = face.client
        box = await face.Sandbox.connect('x', client=client)
        files, commands, ports, network = box.files, box.commands, box.ports, box.network
        process = await commands.start('x')
        policy = holt.NetworkPolicy.deny_by_default()
        run = {'command': ['x'], 'state': {'retention': 'destroy'}}
        plain = [
            client.health, client.templates, client.snapshots, lambda: client.snapshot('x'),
            lambda: client.audit_record('x'), lambda: client.run(run), box.info, box.fork,
            lambda: face.Sandbox.create(client=client), lambda: face.Sandbox.list(client=client),
            lambda: face.Sandbox.restore('x', client=client), box.snapshot, box.pause, box.resume,
            box.stop, lambda: box.set_timeout(1), box.diff, lambda: files.read('x'), files.list,
            lambda: files.stat('x'), lambda: commands.run('x'), lambda: commands.start('x'),
            commands.list, process.info, process.output, process.wait,
            lambda: process.wait_for('x'), lambda: ports.forward(1), ports.list,
            lambda: ports.preview(1), network.get, lambda: network.set(policy),
            lambda: network.allow('x')]
        streams = [(lambda: commands.stream('x'), 'wait'), (process.follow, 'wait'),
                   (files.watch, 'get'), (lambda: commands.open('x'), 'wait')]
        for said[0] in wrong():
            for call in plain:
                try:
                    await call()
                    took.append((call, said[0]))
                except holt.TransportError as e:
                    assert e.code == 'bad_answer', (call, said[0], e)
            for call, end in streams:
                with contextlib.suppress(holt.HoltError):
                    await getattr(await call(), end)()
    with Face(kind, {'base_url': one.url, 'api_key': TOKEN}) as face:
        face.wait(go())
    assert not [call for call, document in took if document is None or document == 1]


def test_what_can_not_be_sent(liar):
    with holt.Client(liar(answer('{}')).url, TOKEN) as client:
        for call in (lambda: holt.Ports(client, 'x').expose(1, headers={'X': 'a\r\nY: b'}),
                     lambda: holt.Commands(client, 'x').run('true', env={'A': object()}),
                     lambda: holt.Files(client, 'x').watch('\udc80')):
            with pytest.raises(holt.ValidationError) as caught:
                call()
            assert caught.value.code == 'invalid_request'


def test_forms_of_an_answer(liar, lied):
    for said in (b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\n{\r\n8\r\n"a": 10}'
                 b'\r\n0\r\nTrailer: 1\r\n\r\n',
                 b'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{"a": 10}',
                 answer('{"a": 10}', fields=['connection: close'])):
        assert lied(liar(said)) == {'a': 10}


def test_a_silent_hub(liar, lied):
    with pytest.raises(holt.TimedOutError) as caught:
        lied(liar(None), request_timeout=0.2)
    assert caught.value.code == 'request_timeout'


def test_an_endless_answer(liar, lied, monkeypatch):
    monkeypatch.setattr(holt._core, 'ANSWER_MAX', 1 << 20)
    monkeypatch.setattr(holt._core.Call, 'answer_max', 1 << 20)
    monkeypatch.setattr(holt._core.Call.__init__, '__defaults__', tuple(
        1 << 20 if one == 64 << 20 else one for one in holt._core.Call.__init__.__defaults__))
    with pytest.raises(holt.TransportError) as caught:
        lied(liar(answer('x' * (2 << 20))))
    assert caught.value.code == 'answer_too_large'


def test_what_is_sent_again(liar, lied):
    """Only what may be, and only after a failure of the way or a full hub."""
    for said, times in ((refusal(503), 3), (refusal(429, code='rate_limited', context={
            'retry_after_ms': 10}), 3), (refusal(500, retryable=False), 1),
            (refusal(403, failure='policy_denied'), 1), (b'', 3)):
        one = liar(said)
        with pytest.raises(holt.HoltError):
            lied(one, retries=2)
        assert len(one.heard) == times
    answers = [refusal(503), answer('{"status": "ok"}')]
    assert lied(liar(lambda _: answers.pop(0)), retries=2) == {'status': 'ok'}
    for call, times in ((lambda c: holt.Sandbox.create(client=c), 2),
                        (lambda c: holt.Files(c, 'x').remove('f'), 1),
                        (lambda c: holt.Commands(c, 'x').run('true'), 1),
                        (lambda c: holt.Commands(c, 'x').start('true'), 2)):
        one = liar(b'')
        with holt.Client(one.url, TOKEN, retries=1) as client, pytest.raises(holt.TransportError):
            call(client)
        assert len(one.heard) == times
        keys = {line for got in one.heard for line in got.split(b'\r\n') if b'Idempotency' in line}
        assert len(keys) == (times > 1)  # the same one


def test_no_token_is_told(liar, lied, caplog):
    """Not in what is printed of a client, not in errors, tracebacks or logs."""
    caplog.set_level(logging.DEBUG)
    echo = liar(lambda got: refusal(400, failure='validation_failed', cause=f'you sent {TOKEN}',
                                    context={'path': TOKEN}))
    with pytest.raises(holt.ValidationError) as caught:
        lied(echo)
    assert TOKEN.encode() in echo.heard[0]
    e = caught.value
    told = [repr(e), str(e), json.dumps(e.to_dict()), repr(vars(e)), caplog.text,
            ''.join(traceback.format_exception(type(e), e, e.__traceback__)),
            repr(holt.Client(echo.url, TOKEN)), str(vars(holt.Client(echo.url, TOKEN)._hub))]
    assert [text for text in told if TOKEN in text] == []
    assert '[token]' in e.cause
    with pytest.raises(holt.ValidationError) as caught:
        holt.Client('http://localhost', TOKEN + '\r\nX: y')
    assert TOKEN not in str(caught.value)
    with pytest.raises(holt.ValidationError) as caught:
        holt.Client('http://user:' + TOKEN + '@localhost')
    assert TOKEN not in str(caught.value)


# ---- cancelling

def gone(hub, box, pid):
    command = f'kill -0 {pid} 2>/dev/null || echo gone'
    until(lambda: hub.exec(box, command)['stdout'] == 'gone\n', 20, 'the end of the command')


@pytest.mark.parametrize('door', ['unix', 'http'])
def test_a_task_that_is_cancelled(hub, door):
    """Its command ends, and the client goes on."""
    async def go():
        async with await holt.AsyncSandbox.create(client=client) as box:
            def started():
                return box.files.exists('pid')
            task = asyncio.create_task(box.commands.run('echo $$ > new; mv new pid; sleep 300',
                                                        timeout_seconds=600))
            while not await started():
                await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            pid = int(await box.files.read('pid'))
            await asyncio.get_running_loop().run_in_executor(None, gone, hub, box.id, pid)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for((await box.commands.stream('sleep 300')).wait(), 0.1)
            assert (await box.commands.run('true')).ok
        await client.close()
    client = None

    async def whole():
        nonlocal client
        client = holt.AsyncClient(**place(hub, door))
        await go()
    asyncio.run(whole())


def test_a_callback_that_raises_ends_the_command(hub):
    with holt.Sandbox.create(client=holt.Client(**place(hub, 'unix'))) as box:
        def stop(data):
            pids.append(int(data))
            raise ZeroDivisionError
        pids = []
        with pytest.raises(ZeroDivisionError):
            box.commands.run('echo $$; sleep 300', on_stdout=stop)
        gone(hub, box.id, pids[0])
