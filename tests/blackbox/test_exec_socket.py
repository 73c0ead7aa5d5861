"""Commands over WebSockets: their input as it comes, terminals,
and all that clients can do wrong."""

import hashlib
import json
import os
import signal
import socket
import struct
import subprocess
import threading

import pytest

from client import until
from rest import MEMBERS, Rest
from soak import soak
from talk import CONNECT, REST, Attached, Exec, Framed, Pty, websocket
from test_door import closed_with, frame, refused, ws_request


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    with Rest(me, tmp_path_factory.mktemp('socket'), '--listen', '127.0.0.1:0',
              '--pool', '1') as shared:
        yield shared


@pytest.fixture(scope='module')
def box(hub):
    made = hub.create()
    yield made
    hub.delete(made)


def processes(hub, box):
    return hub.call('GET', f'/v1/sandboxes/{box}/processes')['processes']


def gone(hub, box, what):
    """Nothing of that command line runs."""
    return not [p for p in processes(hub, box) if what in p['command']]


TTY = {'cols': 100, 'rows': 30, 'term': 'vt220'}


# ---- /v1 ------------------------------------------------------------------------------------

def test_a_command(hub, box):
    with Exec(hub, box, 'echo out; echo err >&2; exit 7', stdin=False) as x:
        x.end()
        assert (x.out, x.err, x.exit['exit_code'], x.error, x.closed) == (b'out\n', b'err\n', 7,
                                                                          None, (1000, ''))
        assert x.exit['exec_time_ms'] > 0 and 'error' not in x.exit


def test_by_the_other_way_always_on_a_terminal(hub, box):
    with Pty(hub, box, 'test -t 0 && test -t 1 && stty size && echo $TERM') as x:
        assert x.end().out == b'24 80\r\nxterm-256color\r\n'
    with Pty(hub, box, 'stty size && echo $TERM', tty=TTY) as x:
        assert x.end().out == b'30 100\r\nvt220\r\n'
    with Pty(hub, box, env={}) as x:  # the shell
        x.type('exit 3\n')
        assert x.end().exit['exit_code'] == 3
    for path in ('/v1/pty', '/v1/pty?sandbox=', '/v1/pty?sandbox=no-such',
                 f'/v1/pty?sandbox={box}'):
        assert hub.asked('GET', path)[0] in (400, 404, 426), path


def test_what_it_runs_in(hub, box):
    hub.post('/v1/files/mkdir', sandbox=box, path='/workspace/there')
    with Exec(hub, box, 'sh', args=['-c', 'echo "$0 $1 $A"; pwd', 'a b', '$c'], env={'A': '1'},
              working_dir='there') as x:
        assert x.end().out == b'a b $c 1\n/workspace/there\n'


def test_input_as_it_comes(hub, box):
    with Exec(hub, box, 'while read -r line; do echo "<$line>"; done; echo end') as x:
        for line in (b'one', b'two'):
            x.type(line + b'\n')
            x.until(b'<' + line + b'>\n')
        x.type(b'')
        x.type(b'thr')
        x.type(b'ee\n')
        x.say(stdin_close=True)
        assert x.end().out.endswith(b'<three>\nend\n') and x.exit['exit_code'] == 0
    with Exec(hub, box, 'cat', stdin=False) as x:
        assert x.end().exit['exit_code'] == 0


def test_input_that_nobody_reads(hub, box):
    with Exec(hub, box, 'exec <&-; echo closed; sleep 0.1; exit 3') as x:
        x.until(b'closed')
        for _ in range(20):
            x.type(b'x' * 100000)
        assert x.end().exit['exit_code'] == 3


SIZE = 100 << 20


def test_a_hundred_megabytes_through_both_directions(hub, box):
    """Byte by byte, while both read and write."""
    piece = os.urandom(1 << 16)
    sent = hashlib.sha256()
    with Exec(hub, box, 'cat') as x:
        def send():
            for i in range(SIZE // len(piece)):
                part = piece[i % 7:] + piece[:i % 7]
                sent.update(part)
                x.type(part)
            x.say(stdin_close=True)
        sender = threading.Thread(target=send)
        sender.start()
        got, n = hashlib.sha256(), 0
        while x.hear():
            got.update(x.out)
            n += len(x.out)
            x.out = b''
        sender.join()
        assert n == SIZE and got.digest() == sent.digest() and x.exit['exit_code'] == 0


def rss(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as f:
        return next(int(line.split()[1]) for line in f if line.startswith('VmRSS')) * 1024


def test_who_reads_nothing_holds_the_command(hub, box):
    before = rss(hub.proc.pid)
    with Exec(hub, box, 'yes | head -c 300000000; echo done >/workspace/flooded', stdin=False,
              sockopt=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)]) as x:
        x.until(b'y\n')
        for _ in range(20):
            assert hub.exec(box, 'test -e flooded')['exit_code'] == 1
        assert rss(hub.proc.pid) - before < 32 << 20
    until(lambda: gone(hub, box, 'head -c 300000000'), what='the end of the command')


def test_a_command_that_reads_nothing_holds_the_client(hub, box):
    before = rss(hub.proc.pid)

    def how_things_stand():
        sockets = subprocess.run(['ss', '-tnoi', f'( sport = :{hub.address[1]} )'], check=False,
                                 stdout=subprocess.PIPE, text=True).stdout
        return f'the end of a command whose client was held; {processes(hub, box)}; {sockets}'
    with Exec(hub, box, 'until test -e /workspace/go; do sleep 0.05; done; cat | wc -c') as x:
        x.ws.settimeout(1)
        n = 0
        with pytest.raises((websocket.WebSocketTimeoutException, TimeoutError)):
            while n < 200 << 20:
                x.type(b'x' * 100000)
                n += 100000
        assert rss(hub.proc.pid) - before < 32 << 20
        # else its end waits behind the rest
        x.ws.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    until(lambda: gone(hub, box, 'test -e /workspace/go'), what=how_things_stand)


def test_signals(hub, box):
    with Exec(hub, box, 'trap "echo usr1" USR1; echo on; while :; do sleep 0.02; done') as x:
        x.until(b'on')
        x.say(signal=10)
        x.until(b'usr1')
        x.say(signal=15)
        x.end()
        assert x.exit['exit_code'] == 128 + 15 and x.error is None


def test_timeouts(hub, box):
    with Exec(hub, box, 'sleep 1000', timeout=1) as x:
        x.end()
        assert x.exit['exit_code'] == 124 and x.exit['code'] == x.error['code'] == 'exec_timeout'
        assert x.error['context']['timeout_s'] == 1 and x.closed == (1011, 'exec_timeout')
    with Exec(hub, box, 'true', timeout=86401) as x:
        x.end()
        assert x.exit is None and x.error['code'] == 'timeout_too_large' and x.closed[0] == 1008


def test_what_cannot_be_run(hub, box):
    with Exec(hub, box, 'no-such-program', args=[]) as x:
        x.end()
        assert x.exit['exit_code'] == -1 and x.exit['code'] == x.error['code'] == 'exec_failed'
        assert set(x.error) == MEMBERS
        assert x.exit['failure'] == x.error['failure'] == 'guest_failed'


@pytest.mark.parametrize('end, line', [('close', 'sleep 5431'), ('reset', 'sleep 5432'),
                                       ('goodbye', 'sleep 5433')])
def test_who_goes_away_ends_it(hub, box, end, line):
    x = Exec(hub, box, f'echo on; exec {line}')
    try:
        x.until(b'on')
        # while it begins, it has no arguments
        until(lambda: not gone(hub, box, line), what='the command')
        if end == 'reset':
            x.ws.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        if end == 'goodbye':
            x.ws.close()
    finally:
        x.ws.shutdown()
    until(lambda: gone(hub, box, line), what='the end of the command')


def test_what_is_born_while_its_parent_is_killed(hub, box):
    """A fork takes long where much memory is copied and others compute."""
    others = [Exec(hub, box, 'while :; do :; done') for _ in range(4)]
    try:
        for _ in range(soak(80)):
            with Exec(hub, box, "printf -v x '%*s' 20000000 ''; echo on; "
                                'while :; do (:); done') as x:
                x.until(b'on')
            until(lambda: gone(hub, box, 'printf -v x'), what=lambda: processes(hub, box))
    finally:
        for one in others:
            one.ws.shutdown()
    until(lambda: gone(hub, box, 'do :; done'), what='the end of the others')


def test_sandbox_ends_below_it(hub):
    box = hub.create()
    with Exec(hub, box, 'echo on; sleep 1000') as x, Exec(hub, box, 'echo on; cat', tty={}) as y:
        x.until(b'on')
        y.until(b'on')
        hub.delete(box)
        for one in (x, y):
            one.end()
            assert one.exit['exit_code'] == -1 and one.error['code'] in ('canceled', 'not_found'), (
                one.error)


# ---- terminals ------------------------------------------------------------------------------

def test_a_terminal(hub, box):
    with Exec(hub, box, 'tty; stty size; echo $TERM; echo err >&2', tty=TTY) as x:
        assert x.end().out == b'/dev/pts/0\r\n30 100\r\nvt220\r\nerr\r\n' and x.err == b''
    with Exec(hub, box, 'stty size; echo $TERM', tty={}) as x:
        assert x.end().out == b'24 80\r\nxterm-256color\r\n'


def test_a_shell(hub, box):
    """No command: the shell, as people use it."""
    with Exec(hub, box, tty=TTY, env={'PS1': '$ '}) as x:
        x.until(b'$ ')
        x.type('echo $((6 * 7))\r')
        x.until(b'42\r\n')
        x.type('sleep 1000\r')
        until(lambda: not gone(hub, box, 'sleep 1000'))
        x.type(b'\x03')  # only what is in front
        x.type('stty size\r')
        x.until(b'30 100')
        x.say(resize={'cols': 90, 'rows': 20})
        x.type('stty size\r')
        x.until(b'20 90')
        x.type('exit 5\r')
        assert x.end().exit['exit_code'] == 5


def test_keys_of_an_editor(hub, box):
    with Exec(hub, box, 'stty raw -echo; echo on; head -c 6 | od -An -tx1', tty={}) as x:
        x.until(b'on')
        x.type(b'\x03\x04\x1a\x1b[A')
        assert b' 03 04 1a 1b 5b 41' in x.end().out


def test_the_end_of_input(hub, box):
    with Exec(hub, box, 'cat; echo end', tty={}) as x:
        x.type('line\nhalf')
        x.say(stdin_close=True)
        assert x.end().out.endswith(b'end\r\n') and x.exit['exit_code'] == 0


def test_two_hundred_terminals(me, tmp_path):
    """Of four sandboxes, which have 64 each."""
    hub = Rest(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0')
    try:
        boxes = [hub.create() for _ in range(4)]
        before = rss(hub.proc.pid)
        talks = [Exec(hub, boxes[i % 4], 'tty; read', tty={}) for i in range(200)]
        for x in talks:
            x.until(b'\n')
        assert rss(hub.proc.pid) - before < 64 << 20
        for _ in range(64 - 50):
            talks.append(Exec(hub, boxes[0], 'tty; read', tty={}))
            talks[-1].until(b'\n')
        with Exec(hub, boxes[0], 'tty', tty={}) as x:
            assert x.end().error['code'] == 'quota_exceeded'
        for x in talks:
            x.type('\n')
        for x in talks:
            assert x.end().exit['exit_code'] == 0
            x.ws.shutdown()
        hub.works()
        assert hub.end() == 0, hub.said()
    finally:
        hub.kill()


# ---- what clients do wrong -------------------------------------------------------------------

@pytest.mark.parametrize('status, code, more', [
    (401, 'unauthorized', {'token': None}), (401, 'unauthorized', {'token': 'wrong'}),
    (400, 'invalid_input', {'protocol': None}),
    (400, 'invalid_input', {'protocol': 'holt.exec.v2'}),
    (400, 'invalid_input', {'protocol': CONNECT}),
    (403, 'forbidden', {'headers': ['Origin: https://evil.example']}),
    (403, 'forbidden', {'headers': ['Origin: null']})])
def test_who_gets_no_websocket(hub, box, status, code, more):
    with pytest.raises(websocket.WebSocketBadStatusException) as failed:
        Exec(hub, box, **more)
    assert failed.value.status_code == status
    if getattr(failed.value, 'resp_body', None):
        assert json.loads(failed.value.resp_body)['error']['code'] == code


def test_nothing_else_is_there(hub, box):
    path = f'/v1/sandboxes/{box}/exec'
    reply = hub.raw('GET', path)
    assert (reply.status == 426 and reply.get('Upgrade') == 'websocket'
            and reply.get('Sec-WebSocket-Version') == '13')
    assert (json.loads(reply.body)['error']['code'] == 'upgrade_required'
            and REST in reply.body.decode())
    assert hub.raw('POST', path, '{}').status == 405
    for sandbox in ('nobody', 'x' * 65, '%00'):
        assert hub.asked('GET', f'/v1/sandboxes/{sandbox}/exec')[0] in (400, 404)
    hub.post('/v1/pause', sandbox=box)
    try:
        assert hub.asked('GET', path)[1]['error']['code'] == 'conflict'
    finally:
        hub.post('/v1/resume', sandbox=box)


BAD_OPENS = [b'', b'{', b'[]', b'null', b'{}', b'{"open":{}}', b'{"open":[]}',
             b'{"open":{"command":"true","args":"x"}}', b'{"open":{"command":"true","no_such":1}}',
             b'{"open":{"command":"true","tty":{"cols":10000}}}',
             b'{"open":{"command":"true"},"signal":1}', b'{"resize":{"cols":1,"rows":1}}',
             b'{"stdin_close":true}', b'{"open":{"command":"true","env":{"A=B":"c"}}}',
             b'{"open":{"command":"a\\u0000b"}}',
             b'{"open":{"args":["x"],"tty":{}}}',
             b'{"open":{"command":"true"},"open":{"command":"true"}}']


@pytest.mark.parametrize('text', BAD_OPENS, ids=range(len(BAD_OPENS)))
def test_bad_openings(hub, box, text):
    with Exec(hub, box) as x:
        x.ws.send(text)
        x.end()
        assert (x.exit is None and x.error['code'] == 'invalid_input'
                and x.closed == (1008, 'invalid_input')), x.error


@pytest.mark.parametrize('opcode, data', [
    (2, b''), (2, b'\1x'), (2, b'\xff'), (1, b'{"open":{"command":"true"}}'),
    (1, b'{"resize":{"cols":1,"rows":1}}'), (1, b'{"resize":{"cols":0,"rows":1}}'),
    (1, b'{"signal":0}'), (1, b'{"signal":65}'), (1, b'{"signal":"TERM"}'),
    (1, b'{"stdin_close":false}'), (1, b'{"no_such":1}'), (1, b'x')])
def test_bad_words_end_the_command(hub, box, opcode, data):
    with Exec(hub, box, 'echo on; exec sleep 65432') as x:
        x.until(b'on')
        x.ws.send(data, opcode)
        x.end()
        assert (x.exit is None and x.error['code'] == 'invalid_input'
                and x.closed == (1008, 'invalid_input')), x.error
    assert gone(hub, box, 'sleep 65432')


@pytest.mark.parametrize('sent, code', [
    (frame(1, b'x' * (256 * 1024 + 1)), 1009),
    (frame(2, b'\0' * 200000, final=False) + frame(0, b'x' * 200000), 1009),
    (frame(1, b'a', mask=None), 1002), (frame(3), 1002), (frame(0, b'a'), 1002),
    (frame(1, b'\xff'), 1007)],
    ids=['long', 'long in parts', 'unmasked', 'opcode', 'continued', 'utf-8'])
def test_broken_frames_end_the_command(hub, box, sent, code):
    with hub.wire() as wire:
        reply = wire.ask(ws_request(path=f'/v1/sandboxes/{box}/exec', token=hub.token, fields=[
            'Upgrade: websocket', 'Connection: Upgrade',
            'Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==',
            'Sec-WebSocket-Version: 13', f'Sec-WebSocket-Protocol: chat, {REST}']))
        assert reply.status == 101 and reply.get('Sec-WebSocket-Protocol') == REST
        wire.send(frame(1, b'{"open":{"command":"sleep 76543"}}'))
        until(lambda: not gone(hub, box, 'sleep 76543'))
        wire.send(sent)
        closed_with(wire, code)
    until(lambda: gone(hub, box, 'sleep 76543'), what='the end of the command')


def test_a_hub_that_ends(me, tmp_path):
    hub = Rest(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0')
    try:
        box = hub.create()
        job = started(hub, box, 'sleep 1000')
        with (Exec(hub, box, 'echo on; sleep 1000', tty={}) as x, Exec(hub, hub.create()) as silent,
              Attached(hub, box, job) as attached):
            x.until(b'on')
            hub.proc.terminate()
            until(lambda: refused(hub), what='no more listening')
            assert hub.end() == 128 + signal.SIGTERM
            for one in (x, silent):
                with pytest.raises(websocket.WebSocketConnectionClosedException):
                    one.end()
            assert (attached.end().error['code'] == 'canceled'
                    and attached.closed == (1001, 'canceled'))
    finally:
        hub.kill()


# ---- Connect --------------------------------------------------------------------------------

@pytest.mark.parametrize('by_query', [True, False])
def test_connect(hub, box, by_query):
    opened = {'command': 'while read -r line; do echo "<$line>"; done; echo err >&2; exit 4'}
    with Framed(hub, box, opened, by_query=by_query) as x:
        x.say(stdinClose=False)  # no end
        x.type(b'one\n')
        x.until(b'<one>\n')
        x.say(stdinClose=True)
        x.end()
        assert (x.err == b'err\n' and x.exit['exitCode'] == 4 and x.ended == {}
                and x.closed == (1000, ''))


def test_connect_with_a_terminal(hub, box):
    """As mitos' clients open one: nothing but a size."""
    with Framed(hub, box, {'pty': {'size': {'cols': 71, 'rows': 17}}}) as x:
        x.type(b'stty size; tty\r')
        x.until(b'17 71\r\n/dev/pts/0\r\n')
        x.say(resize={'cols': 72, 'rows': 18})
        x.type(b'stty size\r')
        x.until(b'18 72\r\n')
        x.type(b'exit 6\r')
        assert x.end().exit['exitCode'] == 6


def test_connect_deadline(hub, box):
    with Framed(hub, box, {'command': 'exec sleep 1000'}, headers=['Connect-Timeout-Ms: 500']) as x:
        x.end()
        assert x.error['code'] == 'deadline_exceeded'
    with Framed(hub, box, {'command': 'sleep 1000', 'timeoutSeconds': 1}) as x:
        assert x.end().exit['exitCode'] == 124 and x.ended == {} and x.closed == (1000, '')


def test_connect_refusals(hub, box):
    for more in ({'token': None}, {'protocol': REST}, {'protocol': None},
                 {'headers': ['Origin: null']}):
        with pytest.raises(websocket.WebSocketBadStatusException):
            Framed(hub, box, **more)
    for sandbox, more in (('nobody', {}), (box, {'headers': [f'X-Sandbox-Id: {box}']})):
        with pytest.raises(websocket.WebSocketBadStatusException):
            Framed(hub, sandbox, **more)
    open_text = json.dumps({'open': {'command': 'true'}}).encode()
    for sent, opcode in ((open_text, 1), (b'', 2), (b'\0\0\0', 2), (b'\0\0\0\0\5{}', 2),
                         (b'\1' + struct.pack('>I', 2) + b'{}', 2),
                         ((b'\0' + struct.pack('>I', 2) + b'{}') * 2, 2),
                         (b'\0' + struct.pack('>I', 2) + b'{}', 2)):
        with Framed(hub, box) as x:
            x.ws.send(sent, opcode)
            x.end()
            assert x.error['code'] == 'invalid_argument' and x.closed[0] == 1008, (sent, x.error)
    for words in ({'open': {'command': 'true'}}, {'stdin': '!'}, {},
                  {'stdin': '', 'stdinClose': True}):
        with Framed(hub, box, {'command': 'sleep 1000'}) as x:
            x.say(**words)
            assert x.end().error['code'] == 'invalid_argument', words


# ---- attached to an exec --------------------------------------------------------------------

def started(hub, box, command, **more):
    return hub.exec(box, command, background=True, **more)['exec_id']


def at(box, job):
    return f'/v1/sandboxes/{box}/execs/{job}'


def test_attached(hub, box):
    job = started(hub, box, 'echo on; while read -r line; do echo "<$line>"; done; echo err >&2; '
                  'exit 5', stdin_open=True)
    hub.call('POST', f'{at(box, job)}/wait', {'text': 'on\n'})
    with Attached(hub, box, job, 0) as one, Attached(hub, box, job) as other:
        assert (one.hello == {'offset': 0, 'tty': False, 'stdin_open': True}
                and other.hello['offset'] == 3)
        one.until(b'on\n')
        one.type('a\n')
        other.type('b\n')
        for x in (one, other):
            x.until(b'<a>\n')
            x.until(b'<b>\n')
        assert other.out.startswith(b'<')
    assert hub.call('GET', at(box, job))['state'] == 'running'  # whoever goes away leaves it alone
    with Attached(hub, box, job, 0) as x:
        x.say(stdin_close=True)
        x.end()
        assert sorted(x.out.split()) == [b'<a>', b'<b>', b'on'] and x.err == b'err\n'
        assert (x.exit['exit_code'], x.error, x.closed) == (5, None, (1000, ''))
    with Attached(hub, box, job, 3) as x:  # after its end
        assert x.hello['stdin_open'] is False
        assert sorted(x.end().out.split()) == [b'<a>', b'<b>'] and x.exit['exit_code'] == 5


def test_attached_to_a_terminal(hub, box):
    job = started(hub, box, 'trap "stty size" WINCH; echo on; while :; do sleep 0.02; done',
                  tty=TTY)
    with Attached(hub, box, job, 0) as x:
        assert x.hello['tty'] and x.hello['stdin_open']
        x.until(b'on\r\n')
        x.say(resize={'cols': 91, 'rows': 21})
        x.until(b'21 91\r\n')
        x.say(signal=9)  # bash may take a Ctrl-C for that of a sleep which has just ended
        assert x.end().exit['exit_code'] == 137
    job = started(hub, box, 'exec sleep 5551')
    with Attached(hub, box, job) as x:
        assert x.hello['tty'] is False
        x.type('nobody reads it')
        x.say(signal=9)
        assert x.end().exit['exit_code'] == 137


def test_attached_and_at_an_end(hub, box):
    """On a terminal the end of input is a key, which this program does not know:
    whoever else types goes on."""
    job = started(hub, box, 'stty raw -echo; echo on; exec cat', tty=TTY)
    with Attached(hub, box, job, 0) as one, Attached(hub, box, job, 0) as other:
        one.until(b'on')
        one.say(stdin_close=True)
        one.type('1')
        other.until(b'1')
        other.type('2')
        one.until(b'2')
        with Attached(hub, box, job) as late:
            assert late.hello['stdin_open']
        one.say(signal=9)
        assert one.end().exit['exit_code'] == 137


def test_attached_and_all_send(hub, box):
    """More than the hub keeps for a program that does not read yet: all wait,
    and nothing is lost or mixed."""
    senders, size = 8, 200000
    job = started(hub, box, f'until [ -e go ]; do sleep 0.02; done; head -c {2 * senders * size} | '
                  'fold -w 1000 | sort | uniq -c',
                  stdin_open=True)
    talks = [Attached(hub, box, job) for _ in range(senders)]
    threads = []
    for letter, x in zip('abcdefgh', talks):
        x.type(letter * size)
        # it may have to wait
        threads.append(threading.Thread(target=x.type, args=(letter * size,)))
        threads[-1].start()
    hub.post('/v1/files/write', sandbox=box, path='go', content='')
    for x in talks:
        assert x.end().error is None and x.exit['exit_code'] == 0
        assert [line.split()[0] for line in x.out.splitlines()] == [b'400'] * senders
    for thread in threads:
        thread.join()


def test_attached_and_slow(hub, box):
    """He holds nobody, and reads later what was kept; what was not is told, to the byte."""
    size = 24 << 20
    job = started(hub, box, f'head -c {size} /dev/zero', keep_bytes=1 << 20)
    with Attached(hub, box, job, 0) as x:
        assert hub.call('POST', f'{at(box, job)}/wait', {'timeout_seconds': 60})['exit_code'] == 0
        x.end()
        assert (x.dropped and len(x.out) + sum(d['bytes'] for d in x.dropped) == size
                and x.exit['exit_code'] == 0)


def test_attached_and_wrong(hub, box):
    job = started(hub, box, 'exec sleep 5552')
    for message in ({'open': {'command': 'true'}}, {'signal': 0},
                    {'resize': {'cols': 1, 'rows': 1}}, {}, {'stdin_close': False}):
        with Attached(hub, box, job) as x:
            x.say(**message)
            assert x.end().error['code'] == 'invalid_input' and x.closed[0] == 1008, message
    with Attached(hub, box, job) as x:
        x.ws.send_binary(b'\1')
        assert x.end().error['code'] == 'invalid_input'
    assert hub.call('GET', at(box, job))['state'] == 'running'
    assert hub.raw('GET', f'{at(box, job)}/attach').status == 426
    for path in (f'{at(box, "nothing")}/attach', f'{at("nobody", job)}/attach'):
        with pytest.raises(websocket.WebSocketBadStatusException, match='404'):
            websocket.create_connection(f'ws://{hub.address[0]}:{hub.address[1]}{path}',
                                        subprotocols=['holt.attach.v1'],
                                        header=[f'Authorization: Bearer {hub.token}'],
                                        suppress_origin=True)
    with Attached(hub, box, job) as x:
        hub.call('DELETE', at(box, job))
        assert x.end().exit['exit_code'] == 137
    job = started(hub, box, 'x', args=['y'])
    with Attached(hub, box, job, 0) as x:
        assert x.end().exit['exit_code'] == -1 and x.error['code'] == 'exec_failed'
