"""Execs in the background: over REST and by the CLI, read from any offset, followed, waited for,
and what becomes of them and of their output in the end."""

import base64
import hashlib
import json
import os
import resource
import signal
import socket
import subprocess
import threading

import pytest

import host
from client import data_of, until
from rest import Failed, fails, lines
from soak import soak
from test_hub_cli import Hub
from test_serve import Session
from who import BUILD

SANITIZED = 'asan' in BUILD
LARGE = (24 if SANITIZED else soak(160)) << 20
LINE = 11  # bytes of a line of numbers of ten digits, so that each offset tells what stands there
FIRST = 1000000000


def numbers(size):
    """A command that prints so many bytes, and the bytes that it prints between two offsets."""
    def expected(begin, end):
        first = begin // LINE
        text = b''.join(b'%d\n' % (FIRST + n) for n in range(first, -(-end // LINE)))
        return text[begin - first * LINE:end - first * LINE]
    return f'seq {FIRST} {FIRST + -(-size // LINE) - 1} | head -c {size}', expected


class Jobs(Hub):
    """A hub, and the routes of execs."""

    def start(self, sandbox, command, /, **more):
        return self.exec(sandbox, command, background=True, **more)['exec_id']

    @staticmethod
    def at(sandbox, job, more=''):
        return f'/v1/sandboxes/{sandbox}/execs/{job}{more}'

    def look(self, sandbox, job):
        return self.call('GET', self.at(sandbox, job))

    def wait(self, sandbox, job, **body):
        return self.call('POST', self.at(sandbox, job, '/wait'), {'timeout_seconds': 60, **body})

    def send(self, sandbox, job, **body):
        return self.call('POST', self.at(sandbox, job, '/stdin'), body)

    def piece(self, sandbox, job, offset=0, **query):
        query = '&'.join(f'{k}={v}' for k, v in {'offset': offset, **query}.items())
        return self.call('GET', self.at(sandbox, job, f'/output?{query}'))

    def output(self, sandbox, job, offset=0, **query):
        """All that is there."""
        got = b''
        while True:
            piece = self.piece(sandbox, job, offset, **query)
            got += b''.join(base64.b64decode(c['data']) for c in piece['chunks'])
            if piece['eof'] or piece['next_offset'] == offset:
                return got
            offset = piece['next_offset']

    def followed(self, sandbox, job, offset=0, **query):
        query = ''.join(f'&{k}={v}' for k, v in query.items())
        reply = self.raw('GET', self.at(sandbox, job,
                                        f'/output?follow=true&offset={offset}{query}'))
        assert reply.status == 200 and reply.get('Content-Type') == 'application/x-ndjson'
        return lines(reply.body)

    def files(self):
        """Files that the hub holds open and that have no name."""
        folder = f'/proc/{self.proc.pid}/fd'
        found = []
        for name in os.listdir(folder):
            try:
                path = os.readlink(f'{folder}/{name}')
            except FileNotFoundError:
                continue
            if path.startswith(os.path.realpath(self.home)) and path.endswith('(deleted)'):
                found.append(path)
        return found

    def memory(self):
        with open(f'/proc/{self.proc.pid}/status', encoding='utf-8') as f:
            return next(int(line.split()[1]) << 10 for line in f if line.startswith('VmHWM'))


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    with Jobs(me, tmp_path_factory.mktemp('jobs'), '--listen', '127.0.0.1:0',
              '--pool', '1') as shared:
        yield shared
        assert not shared.files()
    assert 'ERROR' not in shared.said() and 'Sanitizer' not in shared.said(), shared.said()


@pytest.fixture
def sb(hub):
    sandbox = hub.create()
    yield sandbox
    hub.sweep(sandbox)


def runs(hub, sandbox, name):
    return hub.exec(sandbox, f'grep -lsx {name} /proc/[0-9]*/comm', timeout=60)['exit_code'] == 0


# ---- a life

def test_life(hub, sb):
    made = hub.exec(sb, 'echo out; echo err >&2; cat; exit 3', background=True, stdin_open=True,
                    exec_id='mine')
    assert (made['exec_id'] == 'mine' and made['sandbox'] == sb and made['state'] == 'running'
            and made['background'])
    assert made['stdin_open'] and 'exit_code' not in made and made['command'].startswith('echo out')
    assert hub.wait(sb, 'mine', text='err\n')['result'] == 'matched'
    assert hub.send(sb, 'mine', data='hello ') == {'status': 'ok'}
    assert (hub.send(sb, 'mine', data_base64=base64.b64encode(b'\0\xff').decode(), close=True)
            == {'status': 'ok'})
    ended = hub.wait(sb, 'mine')
    assert (ended['result'], ended['state'], ended['exit_code']) == ('ended', 'exited', 3)
    seen = hub.look(sb, 'mine')
    assert (seen['state'] == 'exited' and seen['exit_code'] == 3 and seen['exec_time_ms'] > 0
            and not seen['stdin_open'])
    assert (seen['ended_at'] >= seen['started_at'] and seen['stdout_bytes'] == 12
            and seen['stderr_bytes'] == 4)
    assert (seen['first_offset'], seen['next_offset']) == (0, 16)
    assert (hub.output(sb, 'mine', stream='stdout') == b'out\nhello \0\xff'
            and hub.output(sb, 'mine', stream='stderr') == b'err\n')
    assert hub.call('GET', f'/v1/sandboxes/{sb}/execs')[0]['exec_id'] == 'mine'
    fails(409, 'conflict', hub.start, sb, 'true', exec_id='mine')
    for call, body in ((hub.send, {'data': 'x'}),
                       (lambda s, j: hub.call('POST', hub.at(s, j, '/signal'), {}), {})):
        fails(409, 'conflict', call, sb, 'mine', **body)
    assert hub.call('DELETE', hub.at(sb, 'mine')) == {'status': 'deleted'}
    for method, more in (('GET', ''), ('DELETE', ''), ('GET', '/output')):
        error = fails(404, 'not_found', hub.call, method, hub.at(sb, 'mine', more))
        assert 'mine' in error['cause'] and error['context'] == {'sandbox': sb}


def test_refused(hub, sb):
    fails(400, 'invalid_input', hub.exec, sb, 'true', exec_id='x')
    fails(400, 'invalid_input', hub.exec, sb, 'true', stdin_open=True)
    fails(400, 'invalid_input', hub.start, sb, 'true', exec_id='../x')
    fails(400, 'invalid_input', hub.start, sb, 'true', keep_bytes=1)
    fails(400, 'timeout_too_large', hub.start, sb, 'true', timeout=86401)
    fails(404, 'not_found', hub.start, 'nobody', 'true')
    job = hub.start(sb, 'sleep 1000')
    fails(409, 'conflict', hub.send, sb, job, data='x')  # it has no input
    fails(400, 'invalid_input', hub.send, sb, job, data='x', data_base64='eA==')
    fails(400, 'invalid_input', hub.send, sb, job, data_base64='?')
    for query in ('offset=-1', 'limit=0', 'limit=4194305', 'stream=stdin', 'follow=1', 'other=1'):
        fails(400, 'invalid_input', hub.call, 'GET', hub.at(sb, job, f'/output?{query}'))
    for body in ({'text': ''}, {'text': 'x' * 1025}, {'text': 'ä' * 600},
                 {'timeout_seconds': 86401}, {'stream': 'x'}):
        fails(400, 'invalid_input', hub.call, 'POST', hub.at(sb, job, '/wait'), body)
    hub.call('DELETE', hub.at(sb, job))


def test_never_ran(hub, sb):
    job = hub.exec(sb, 'no-such-program', args=[], background=True)['exec_id']
    assert hub.wait(sb, job)['state'] == 'failed'
    assert 'no-such-program' in hub.look(sb, job)['error'] and 'exit_code' not in hub.look(sb, job)
    assert hub.followed(sb, job)[-1]['state'] == 'failed'


def test_its_time_is_over(hub, sb):
    job = hub.start(sb, 'sleep 1000 & wait', timeout=1)
    assert hub.wait(sb, job)['state'] == 'timed_out' and hub.look(sb, job)['exit_code'] == 124
    until(lambda: not runs(hub, sb, 'sleep'), what='the end of its tree')


def test_signals(hub, sb):
    job = hub.start(sb, 'trap "echo caught; exit 5" INT; echo on; while :; do sleep 0.1; done')
    hub.wait(sb, job, text='on\n')
    hub.call('POST', hub.at(sb, job, '/signal'), {'signal': 2})
    assert hub.wait(sb, job)['exit_code'] == 5 and hub.output(sb, job) == b'on\ncaught\n'
    job = hub.start(sb, 'exec sleep 1000')
    hub.call('POST', hub.at(sb, job, '/signal'), {'signal': 9})
    assert hub.wait(sb, job)['state'] == 'signaled'
    assert (hub.look(sb, job)['signal'], hub.look(sb, job)['exit_code']) == (9, 137)


def test_deleted_with_its_tree(hub, sb):
    job = hub.start(sb, 'setsid sleep 1000 & echo on; wait')
    hub.wait(sb, job, text='on\n')
    until(lambda: runs(hub, sb, 'sleep'), what='the start of its tree')
    hub.call('DELETE', hub.at(sb, job))
    until(lambda: not runs(hub, sb, 'sleep'), what='the end of its tree')


@pytest.mark.skipif(not os.access('/proc/sys/kernel/ns_last_pid', os.W_OK),
                    reason='only root chooses the numbers of processes')
def test_a_number_that_is_used_again(hub, sb):
    """A stranger has the number of what has ended: who ends the one does not reach the other."""
    anchor = hub.start(sb, 'exec sleep 27182.8')
    inside, = until(lambda: host.with_argument('27182.8', hub.proc.pid))

    def again():
        first = hub.start(sb, 'echo $$')
        hub.wait(sb, first)
        number = int(hub.output(sb, first))
        subprocess.run(['nsenter', f'--pid=/proc/{inside.pid}/ns/pid', 'sh', '-c',
                        f'echo {number - 1} > /proc/sys/kernel/ns_last_pid'], check=True)
        second = hub.start(sb, 'echo $$; exec sleep 1000')
        hub.wait(sb, second, text='\n')
        if int(hub.output(sb, second)) == number:
            return first, second
        return hub.call('DELETE', hub.at(sb, second)) and None
    first, second = until(again, what='a number that is used again')
    fails(409, 'conflict', hub.call, 'POST', hub.at(sb, first, '/signal'), {'signal': 9})
    fails(409, 'conflict', hub.send, sb, first, data='x')
    hub.call('DELETE', hub.at(sb, first))
    assert hub.look(sb, second)['state'] == 'running' and runs(hub, sb, 'sleep')
    for job in (anchor, second):
        hub.call('DELETE', hub.at(sb, job))


def test_on_a_terminal(hub, sb):
    script = 'test -t 0 && test -t 1 && stty size; read x; stty size; exit 3'
    job = hub.start(sb, script, tty={'cols': 100, 'rows': 30})
    hub.wait(sb, job, text='30 100\r\n')
    assert hub.look(sb, job)['stdin_open']
    hub.call('POST', hub.at(sb, job, '/resize'), {'cols': 90, 'rows': 20})
    hub.send(sb, job, data='typed\n')
    assert hub.wait(sb, job)['exit_code'] == 3
    assert hub.output(sb, job) == b'30 100\r\ntyped\r\n20 90\r\n'
    fails(400, 'invalid_input', hub.exec, sb, 'true', tty={})
    job = hub.start(sb, 'sleep 1000')
    fails(400, 'invalid_input', hub.call, 'POST', hub.at(sb, job, '/resize'),
          {'cols': 90, 'rows': 20})


def test_too_many(hub, sb):
    jobs = [hub.start(sb, 'exec sleep 1000') for _ in range(64)]
    assert 'background' in fails(429, 'quota_exceeded', hub.start, sb, 'true')['cause']
    assert hub.exec(sb, 'echo well')['stdout'] == 'well\n'
    hub.call('DELETE', hub.at(sb, jobs[0]))
    hub.wait(sb, hub.start(sb, 'true'))


def test_the_oldest_are_forgotten(hub, sb):
    jobs = []
    for n in range(40):
        jobs.append(hub.start(sb, f'echo {n}'))
        hub.wait(sb, jobs[-1])
    assert [e['exec_id'] for e in hub.call('GET', f'/v1/sandboxes/{sb}/execs')] == jobs[:7:-1]
    fails(404, 'not_found', hub.look, sb, jobs[7])
    assert hub.output(sb, jobs[8]) == b'8\n'


# ---- output

def test_any_offset(hub, sb):
    """All of a large output, read at places of it, without the hub having it in memory."""
    command, expected = numbers(LARGE)
    before = hub.memory()
    job = hub.start(sb, command, keep_bytes=LARGE + (LARGE >> 3))
    assert hub.wait(sb, job, timeout_seconds=600)['exit_code'] == 0
    seen = hub.look(sb, job)
    assert (seen['first_offset'], seen['next_offset'], seen['stdout_bytes']) == (0, LARGE,
                                                                                 LARGE), seen
    for offset in [0, 1, 65530, 65536, LARGE // 3, LARGE // 2 + 7, LARGE - 100000, LARGE - 1,
                   LARGE]:
        piece = hub.piece(sb, job, offset, limit=200000)
        got = b''.join(base64.b64decode(c['data']) for c in piece['chunks'])
        end = min(offset + 200000, LARGE)
        assert (got == expected(offset, end) and piece['next_offset'] == end
                and piece['dropped_bytes'] == 0)
        at = offset
        for chunk in piece['chunks']:
            assert chunk['offset'] == at and chunk['stream'] == 'stdout'
            at += len(base64.b64decode(chunk['data']))
    if not SANITIZED:
        assert hub.memory() - before < 64 << 20
    assert len(hub.files()) == 1
    hub.call('DELETE', hub.at(sb, job))
    assert not hub.files()


def test_the_oldest_is_dropped(hub, sb):
    size = 8 << 20
    command, expected = numbers(size)
    job = hub.start(sb, command, keep_bytes=1 << 20)
    hub.wait(sb, job)
    seen = hub.look(sb, job)
    assert (size - (1 << 20) <= seen['first_offset'] < size - (1 << 19)
            and 'output_error' not in seen), seen
    assert hub.output(sb, job) == expected(seen['first_offset'], size)
    assert hub.piece(sb, job, 5, limit=1)['dropped_bytes'] == seen['first_offset'] - 5
    first = hub.followed(sb, job, 100)[0]
    assert first == {'kind': 'dropped', 'offset': 100, 'bytes': seen['first_offset'] - 100}


def test_streams_in_one_order(hub, sb):
    job = hub.start(sb, 'for i in 1 2 3; do echo o$i; read x; echo e$i >&2; read x; done',
                    stdin_open=True)
    for n in range(1, 7):
        until(lambda: hub.look(sb, job)['next_offset'] == 3 * n)
        hub.send(sb, job, data='\n')
    said = hub.followed(sb, job)
    assert (''.join(base64.b64decode(s['data']).decode() for s in said if s['kind'] == 'chunk')
            == 'o1\ne1\no2\ne2\no3\ne3\n')
    assert said[-1] == {'kind': 'exit', 'offset': 18, 'state': 'exited', 'exit_code': 0,
                        'exec_time_ms': said[-1]['exec_time_ms']}
    assert [s['stream'] for s in said[:2]] == ['stdout', 'stderr']
    assert hub.output(sb, job, 4, stream='stdout') == b'o2\no3\n'
    assert [s['offset'] for s in hub.followed(sb, job, 4, stream='stdout')] == [6, 12, 18]


def follow(hub, path, step):
    """Reads a stream in steps of so many bytes; the bytes in it, and the last line."""
    with hub.wire(receive_buffer=8192) as wire:
        wire.send(hub.request('GET', path))
        assert wire.head()[0] == 200
        body, chunk = b'', None
        while chunk != b'':
            for _ in range(step):
                chunk = wire.chunk()
                body += chunk
                if not chunk:
                    break
    said = lines(body)
    return b''.join(base64.b64decode(s['data']) for s in said if s['kind'] == 'chunk'), said[-1]


def test_followers(hub, sb):
    """Ten of them, each from another place and at another pace;
    one more that never reads holds nobody."""
    size = 6 << 20
    command, expected = numbers(size)
    whole = expected(0, size)
    job = hub.start(sb, f'read x; {command}', stdin_open=True)
    got = {}
    with hub.wire(receive_buffer=4096) as never:
        never.send(hub.request('GET', hub.at(sb, job, '/output?follow=true')))
        assert never.head()[0] == 200
        threads = [threading.Thread(target=lambda n=n: got.__setitem__(n, follow(
            hub, hub.at(sb, job, f'/output?follow=true&offset={n * n * 50000}'), n + 1)))
                   for n in range(10)]
        for t in threads:
            t.start()
        hub.send(sb, job, data='go\n', close=True)
        assert hub.wait(sb, job)['exit_code'] == 0  # whoever reads how much
        for t in threads:
            t.join(120)
    for n in range(10):
        assert got[n][0] == whole[n * n * 50000:] and got[n][1]['exit_code'] == 0, n


def test_foreground_leaves_its_end(hub, sb):
    hub.exec(sb, 'echo first')
    hub.exec(sb, 'sh', args=['-c', 'echo said; echo oh >&2; exit 4'])
    last = hub.call('GET', f'/v1/sandboxes/{sb}/execs')[0]
    assert (last['command'] == 'sh -c echo said; echo oh >&2; exit 4' and last['exit_code'] == 4
            and not last['background'])
    assert sorted(hub.output(sb, last['exec_id']).splitlines()) == [b'oh', b'said']
    command, expected = numbers(2 << 20)
    hub.exec(sb, command)
    last = hub.call('GET', f'/v1/sandboxes/{sb}/execs')[0]
    assert hub.output(sb, last['exec_id']) == expected(0, 2 << 20) and hub.files()
    for n in range(9):
        hub.exec(sb, f'echo {n}')
    assert len(hub.call('GET', f'/v1/sandboxes/{sb}/execs')) == 8
    assert not hub.files()
    hub.raw('POST', '/v1/exec/stream', {'sandbox': sb, 'command': command})  # which has told it all
    last = hub.call('GET', f'/v1/sandboxes/{sb}/execs')[0]
    assert (2 << 20) - (128 << 10) <= last['first_offset'] <= (2 << 20) - (32 << 10)
    assert hub.output(sb, last['exec_id']) == expected(last['first_offset'], 2 << 20)
    assert not hub.files()


# ---- waiting

def test_a_text_in_pieces(hub, sb):
    """It is found where it comes in several writes, on its own stream, from an offset on."""
    job = hub.start(sb, 'printf "aabaab rea"; read x; printf noise >&2; read x; printf "dy now"; '
                    'read x', stdin_open=True)
    until(lambda: hub.look(sb, job)['next_offset'] == 10)
    assert hub.wait(sb, job, text='ready', timeout_seconds=1)['result'] == 'timeout'
    assert hub.wait(sb, job, text='aabaab')['offset'] == 6
    found = {}
    waiter = threading.Thread(target=lambda: found.update(hub.wait(sb, job, text='ready',
                                                                   stream='stdout')))
    waiter.start()
    hub.send(sb, job, data='\n')
    until(lambda: hub.look(sb, job)['stderr_bytes'] == 5)
    hub.send(sb, job, data='\n')
    waiter.join(60)
    assert found == {'result': 'matched', 'offset': 17, 'state': 'running'}
    assert hub.wait(sb, job, text='ready')['offset'] == 17
    assert hub.output(sb, job, 17) == b' now'
    hub.send(sb, job, close=True)
    for body in ({'text': 'ready', 'offset': 13}, {'text': 'ready', 'stream': 'stderr'},
                 {'text': 'Ready'}):
        waited = hub.wait(sb, job, **body)
        assert (waited['result'], waited['state'], waited['offset']) == ('ended', 'exited', 21)


def test_a_pattern(hub, sb):
    """Found in each line for itself, however it is cut into pieces;
    a line without its end counts as far as it has come."""
    script = ("printf 'list'; sleep 0.1; printf 'ening on port '; sleep 0.1; printf '80'; "
              "while [ ! -e go ]; do sleep 0.02; done; "
              r"printf '80\r\n'; printf 'x\377y\n' >&2; printf last")
    job = hub.start(sb, script)
    found = hub.wait(sb, job, pattern='port [0-9]+')
    assert (found['result'] == 'matched' and found['state'] == 'running'
            and 19 <= found['offset'] <= 20), found
    assert (hub.wait(sb, job, pattern='^listening on port [0-9]+$', timeout_seconds=1)['result']
            == 'timeout')
    assert (hub.wait(sb, job, pattern='port', stream='stderr', timeout_seconds=1)['result']
            == 'timeout')
    hub.exec(sb, 'touch go')
    assert hub.wait(sb, job, pattern='^listening on port [0-9]{4}$')['offset'] == 22
    assert hub.wait(sb, job, pattern='^x.y$')['result'] == 'matched'
    assert hub.wait(sb, job, pattern='^last$')['result'] == 'matched'  # its end is that of all
    waited = hub.wait(sb, job, pattern='port.*x')
    assert (waited['result'], waited['state'], waited['exit_code']) == ('ended', 'exited', 0)
    for body in ({'pattern': '('}, {'pattern': '(?R)'}, {'pattern': ''}, {'pattern': 'x' * 1025},
                 {'pattern': 'a', 'text': 'a'},
                 {'pattern': 1}):
        fails(400, 'invalid_input', hub.call, 'POST', hub.at(sb, job, '/wait'), body)


def test_a_pattern_in_long_lines(hub, sb):
    job = hub.start(sb, "head -c 300000 /dev/zero | tr '\\0' a; printf needle; head -c 100000 "
                    "/dev/zero | tr '\\0' b; echo")
    found = hub.wait(sb, job, pattern='aneedle')
    assert (found['result'], found['offset']) == ('matched', 300006)
    for pattern in ('^b', 'x'):
        assert hub.wait(sb, job, pattern=pattern)['result'] == 'ended'


def test_hostile_patterns(hub, sb):
    """Each costs its bounded time beside the loop; whoever asks for something else meanwhile is
    answered."""
    job = hub.start(sb, "while :; do head -c 4000 /dev/zero | tr '\\0' a; echo '!'; sleep 0.01; "
                    "done")
    hub.wait(sb, job, text='!')
    hostile = ['(a+)+$', '(a|aa)+$', '([ab]*)*[cd]', '^(([a-z])+.)+[A-Z]([a-z])+$']
    refused = []

    def wait(pattern):
        try:
            hub.wait(sb, job, pattern=pattern)
        except Failed as e:
            refused.append(e.code)
    waiters = [threading.Thread(target=wait, args=(pattern,)) for pattern in hostile * 2]
    answers, enough = [], threading.Event()
    looker = threading.Thread(target=lambda: [answers.append(hub.look(sb, job))
                                              for _ in iter(enough.is_set, True)])
    for thread in (looker, *waiters):
        thread.start()
    for waiter in waiters:
        waiter.join(60)
    enough.set()
    looker.join(60)
    assert refused == ['invalid_input'] * len(waiters) and len(answers) > 1
    assert hub.wait(sb, job, pattern='a!$')['result'] == 'matched'  # the control
    with hub.wire() as gone:  # goes away while a thread looks
        gone.send(hub.request('POST', hub.at(sb, job, '/wait'),
                              body='{"pattern":"(a|aa)+$","timeout_seconds":0}'))
        hub.look(sb, job)
    hub.call('DELETE', hub.at(sb, job))


def test_who_waits_goes_away(hub, sb):
    job = hub.start(sb, 'sleep 1000')
    for path, method, body in ((hub.at(sb, job, '/wait'), 'POST', '{"timeout_seconds":0}'),
                               (hub.at(sb, job, '/output?follow=true'), 'GET', None)):
        with hub.wire() as wire:
            wire.send(hub.request(method, path, body=body))
    assert hub.look(sb, job)['state'] == 'running'
    with hub.wire() as wire:
        wire.send(hub.request('DELETE', hub.at(sb, job)))
    until(lambda: not hub.call('GET', f'/v1/sandboxes/{sb}/execs')
          or hub.raw('GET', hub.at(sb, job)).status == 404)
    until(lambda: not runs(hub, sb, 'sleep'), what='its end')


# ---- its sandbox

def test_paused(hub, sb):
    job = hub.start(sb, 'echo on; cat', stdin_open=True)
    hub.wait(sb, job, text='on\n')
    hub.post('/v1/pause', sandbox=sb)
    assert hub.output(sb, job) == b'on\n' and hub.look(sb, job)['state'] == 'running'
    for call in (lambda: hub.send(sb, job, data='x'),
                 lambda: hub.call('POST', hub.at(sb, job, '/signal'), {}),
                 lambda: hub.call('DELETE', hub.at(sb, job)), lambda: hub.start(sb, 'true')):
        assert 'paused' in fails(409, 'conflict', call)['cause']
    hub.post('/v1/resume', sandbox=sb)
    hub.send(sb, job, data='more', close=True)
    assert hub.wait(sb, job)['exit_code'] == 0 and hub.output(sb, job) == b'on\nmore'


def test_terminated(hub, sb):
    job = hub.start(sb, 'head -c 1000000 /dev/zero; exec sleep 1000')
    until(lambda: hub.look(sb, job)['next_offset'] == 1000000 and hub.files())
    with hub.wire() as wire:
        wire.send(hub.request('GET', hub.at(sb, job, '/output?follow=true&offset=1000000')))
        assert wire.head()[0] == 200
        hub.delete(sb)
        last = json.loads(wire.chunk())
    assert last['kind'] == 'exit' and last['state'] == 'lost' and last['error']
    fails(404, 'not_found', hub.look, sb, job)
    until(lambda: not hub.files(), what='no file')


def test_it_keeps_its_sandbox_from_being_idle(hub):
    sandbox = hub.create(idle_seconds=4)
    job = hub.start(sandbox, 'sleep 6; echo done')
    with hub.wire() as wire:
        reply = wire.ask(hub.request('GET', hub.at(sandbox, job, '/output?follow=true')))
    assert lines(reply.body)[-1]['state'] == 'exited'
    until(lambda: hub.call('GET', f'/v1/sandboxes/{sandbox}')['state'] == 'terminated',
          what='its end')


# ---- the hub

@pytest.fixture
def begin(me):
    """Starts hubs of one home, of whoever runs the tests."""
    residue = host.Residue(me.trees)
    home = me.log() + '.home'
    os.mkdir(home, 0o700)
    started = []

    def start(who=me, **options):
        started.append(Jobs(who, home, '--listen', '127.0.0.1:0', '--pool', '0', **options))
        return started[-1]
    start.home = home
    yield start
    try:
        if started and started[-1].proc.poll() is None:
            assert started[-1].end() == 0, started[-1].said()
        for one in started:
            assert 'Sanitizer' not in one.said(), one.said()
    finally:
        for one in started:
            one.kill()
    residue.check()


def test_killed(begin):
    """What ran is lost and nobody is told otherwise; what had ended is known,
    without its output."""
    hub = begin()
    sandbox = hub.create()
    done = hub.start(sandbox, 'echo hello; exit 7')
    hub.wait(sandbox, done)
    job = hub.start(sandbox, 'echo on; exec sleep 1000', exec_id='long')
    hub.wait(sandbox, job, text='on\n')
    other = hub.create()
    gone = hub.start(other, 'exec sleep 1000')
    hub.delete(other)
    hub.proc.kill()
    hub.proc.wait()
    hub = begin()
    seen = hub.look(sandbox, 'long')
    assert (seen['state'] == 'lost' and 'killed' in seen['error'] and 'ended_at' in seen
            and 'exit_code' not in seen)
    assert hub.wait(sandbox, 'long')['state'] == 'lost'
    until(lambda: not runs(hub, sandbox, 'sleep'), what='its end')
    seen = hub.look(sandbox, done)
    assert (seen['state'], seen['exit_code'], seen['stdout_bytes']) == ('exited', 7, 6)
    assert hub.piece(sandbox, done) == {'chunks': [], 'dropped_bytes': 6, 'next_offset': 6,
                                        'eof': True,
                                       'state': 'exited', 'exit_code': 7}
    fails(404, 'not_found', hub.look, other, gone)
    assert hub.output(sandbox, again := hub.start(sandbox, 'echo well')) in (b'', b'well\n')
    hub.wait(sandbox, again)
    hub.proc.kill()  # and what is known goes on being known
    hub.proc.wait()
    hub = begin()
    assert (hub.look(sandbox, 'long')['state'] == 'lost' and hub.look(sandbox, again)['state']
            == 'exited')
    hub.call('DELETE', hub.at(sandbox, 'long'))
    fails(404, 'not_found', hub.look, sandbox, 'long')
    hub.delete(sandbox)
    assert sorted(n for n in os.listdir(begin.home) if 'spool' in n) == []


def test_ended_in_order(begin):
    """Whoever follows or waits is told that it is over, and the next hub knows that it ended."""
    hub = begin()
    sandbox = hub.create()
    job = hub.start(sandbox, 'echo on; exec sleep 1000')
    hub.wait(sandbox, job, text='on\n')
    with hub.wire() as follower, hub.wire() as waiter:
        follower.send(hub.request('GET', hub.at(sandbox, job, '/output?follow=true')))
        assert follower.head()[0] == 200 and json.loads(follower.chunk())['kind'] == 'chunk'
        waiter.send(hub.request('POST', hub.at(sandbox, job, '/wait'),
                                body='{"timeout_seconds":0}'))
        assert hub.end() == 0, hub.said()
        follower.ended()
        waiter.ended()
    hub = begin()
    seen = hub.look(sandbox, job)
    assert seen['state'] == 'lost' and 'ended' in seen['error'], seen
    hub.delete(sandbox)


class Mounted:
    """An identity whose data folder is a small disk of its own, which only the hub can see."""

    def __init__(self, who, home):
        self.who, self.home = who, home

    def __getattr__(self, name):
        return getattr(self.who, name)

    def argv(self, *arguments):
        script = ('cp -p "$1/token" "$1.token" && mount -t tmpfs -o size=24m,mode=700 none "$1" && '
                  'cp -p "$1.token" "$1/token" && shift && exec "$@"')
        return ['unshare', '-m', '--propagation', 'private', 'sh', '-c', script, 'sh', self.home,
                *self.who.argv(*arguments)]


@pytest.mark.skipif(os.getuid() != 0, reason='needs a mount')
def test_the_disk_is_full(begin, me):
    assert me.run('auth', 'token', env={'HOLT_HOME': begin.home}).returncode == 0
    hub = begin(Mounted(me, begin.home))
    sandbox = hub.create()
    size = 32 << 20
    command, expected = numbers(size)
    for _ in range(2):  # the second finds the room that the first has given back
        job = hub.start(sandbox, command)
        assert hub.wait(sandbox, job)['exit_code'] == 0
        seen = hub.look(sandbox, job)
        assert ('space' in seen['output_error'] and size - (12 << 20) < seen['first_offset'] < size
                - (2 << 20)), seen
        assert hub.output(sandbox, job) == expected(seen['first_offset'], size)
        hub.delete(hub.create())  # there is room for the registry
        hub.call('DELETE', hub.at(sandbox, job))
    hub.delete(sandbox)


# ---- the command line

def test_detached(hub, sb):
    job = hub.ok('exec', '-d', sb, '-e', 'A=1', '--', 'sh', '-c',
                 'echo $A; echo oh >&2; exit 6').decode().strip()
    assert hub.run('wait', sb, job).returncode == 6
    done = hub.run('logs', sb, job)
    assert (done.returncode, done.stdout, done.stderr) == (0, b'1\n', b'oh\n')
    done = hub.run('logs', '-f', '--stream', 'stdout', sb)
    assert (done.returncode, done.stdout, done.stderr) == (0, b'1\n', b'')
    assert hub.ok('logs', '--since-offset', '1', '--stream', 'stdout', sb, job) in (b'\n', b'1\n')
    assert hub.ok('exec', '-d', '--id', 'named', sb, '--', 'sleep', '1000') == b'named\n'
    assert [e['exec_id'] for e in hub.json('execs', sb)] == ['named', job]
    table = hub.ok('execs', sb).decode().splitlines()
    assert table[0].split() == ['EXEC', 'STATE', 'EXIT', 'BYTES', 'COMMAND']
    assert table[1].split() == ['named', 'running', '-', '0', 'sleep', '1000']
    assert hub.run('wait', '-t', '0.5', sb, 'named').returncode == 124
    hub.ok('kill', sb, 'named')
    assert hub.run('wait', sb, 'named').returncode == 128 + 15


def test_logs_of_the_last(hub, sb):
    hub.fails(125, 'has no execs yet', 'logs', sb)
    hub.run('exec', sb, '--', 'sh', '-c', 'echo agent; exit 9')
    assert hub.ok('logs', sb) == b'agent\n' and hub.run('wait', sb).returncode == 9
    hub.fails(125, 'no exec', 'logs', sb, 'nothing')
    hub.fails(125, 'can be called', 'logs', sb, '../x')
    hub.fails(125, 'whole number', 'logs', '--since-offset', '-1', sb)
    hub.fails(125, '-d', 'exec', '--id', 'x', sb, '--', 'true')


def test_logs_are_followed(hub, sb):
    size = 3 << 20
    command, expected = numbers(size)
    hub.start(sb, f'echo on; read x; {command}', exec_id='big', stdin_open=True)
    with hub.popen('logs', '-f', sb, 'big') as proc:
        assert proc.stdout.readline() == b'on\n'
        hub.send(sb, 'big', data='\n')
        out, err = proc.communicate(timeout=60)
        assert proc.returncode == 0 and out == expected(0, size) and err == b''
    assert hub.ok('logs', sb, 'big') == b'on\n' + expected(0, size)


def test_wait_for_a_text(hub, sb):
    hub.start(sb, 'echo ready; exec cat', exec_id='x', stdin_open=True)
    hub.ok('wait', '--text', 'ready', sb, 'x')
    assert hub.run('wait', '--text', 'never', '-t', '0.5', sb, 'x').returncode == 124
    hub.send(sb, 'x', close=True)
    assert hub.run('wait', '--text', 'never', sb, 'x').returncode == 1
    hub.ok('wait', '--pattern', '^r.*y$', sb, 'x')
    assert hub.run('wait', '--pattern', 'nev[e]r', sb, 'x').returncode == 1
    hub.fails(125, 'pattern', 'wait', '--pattern', '(', sb, 'x')
    hub.fails(125, 'not both', 'wait', '--pattern', 'a', '--text', 'a', sb, 'x')


def attached(hub, *arguments):
    return subprocess.Popen(hub.who.argv('attach', *arguments), env=hub.env, cwd='/',
                            stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def test_attach(hub, sb):
    hub.start(sb, 'trap "echo caught; exit 5" INT; echo on; while read x; do echo "<$x>"; done',
              exec_id='x', stdin_open=True)
    hub.wait(sb, 'x', text='on\n')
    with attached(hub, '--since-offset', '0', sb, 'x') as proc:
        assert proc.stdout.readline() == b'on\n'
        proc.stdin.write(b'one\n')
        proc.stdin.flush()
        assert proc.stdout.readline() == b'<one>\n'
        os.killpg(proc.pid, signal.SIGQUIT)  # goes away, as the key does
        assert proc.wait(60) == 0
    assert hub.look(sb, 'x')['state'] == 'running'
    with attached(hub, '--since-offset', '0', sb, 'x') as proc:
        assert proc.stdout.readline() + proc.stdout.readline() == b'on\n<one>\n'
        os.killpg(proc.pid, signal.SIGINT)
        assert proc.stdout.read() == b'caught\n'
        assert proc.wait(60) == 5
    hub.fails(125, 'no exec', 'attach', sb, 'nothing')


def test_attach_passes_much_on(hub, sb):
    data = os.urandom(4 << 20)
    hub.start(sb, 'sha256sum', exec_id='x', stdin_open=True)
    with attached(hub, sb, 'x') as proc:
        out, err = proc.communicate(data, timeout=60)
    assert out.split()[0].decode() == hashlib.sha256(data).hexdigest() and err == b''


# ---- who waits

def attach_all(hub, path, n, sockets):
    """So many more are attached: all ask, and then each is answered."""
    fields = ['Upgrade: websocket', 'Connection: Upgrade',
              'Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==',
              'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Protocol: holt.attach.v1']
    more = [socket.create_connection(hub.address, timeout=60) for _ in range(n)]
    sockets += more
    for one in more:
        one.sendall(hub.request('GET', path, fields=fields).encode())
    return [one.recv(12).split()[1] for one in more]


@pytest.fixture
def many_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures('many_files')
def test_who_waits_holds_nobody_up(hub, sb):
    """Those that wait are not among the calls that work, but have a bound of their own,
    of which one client has seven eighths."""
    job = hub.start(sb, 'sleep 1000')
    path = hub.at(sb, job, '/attach')
    sockets = []
    try:
        assert set(attach_all(hub, path, 672, sockets)) == {b'101'}
        assert hub.exec(sb, 'echo on')['stdout'] == 'on\n'
        assert attach_all(hub, path, 1, sockets) == [b'429']
        assert 'wait' in fails(429, 'quota_exceeded', hub.wait, sb, job)['cause']
        assert hub.call('GET', '/v1/sandboxes')
        sockets.pop(0).close()
        until(lambda: attach_all(hub, path, 1, sockets) == [b'101'], what='room for one more')
    finally:
        for one in sockets:
            one.close()


def test_a_command_of_mcp_is_found_while_it_runs(hub, sb):
    session = Session(hub)
    with hub.wire() as wire:
        session.call(wire, 'sandbox_exec', sandbox=sb, command='echo from mcp; exec sleep 1234')
        [job] = until(lambda: [e for e in hub.call('GET', f'/v1/sandboxes/{sb}/execs')
                               if 'sleep 1234' in e['command']],
                      what='the exec')
        assert job['state'] == 'running' and not job['background']
        until(lambda: hub.output(sb, job['exec_id']) == b'from mcp\n', what='its output')
        hub.call('POST', hub.at(sb, job['exec_id'], '/signal'), {'signal': 15})
        assert data_of(session.result(wire))['signal'] == 15
    assert hub.look(sb, job['exec_id'])['state'] == 'signaled'


# ---- what a wait tells --------------------------------------------------------------------------

SECRET = 'gh' + 'p_' + 'R7fK2mQz9TbX4wLc8NvH1sYd6GpJ3aEu5oZi'


@pytest.mark.parametrize('command', [
    f'echo "before key: {SECRET} after"',
    f'printf "before key: {SECRET[:20]}"; sleep 0.1; printf "{SECRET[20:]} after\\n"',
    f'printf "before key: {SECRET} after"; sleep 1000',  # no line end, and none to come
    f'echo "before key: {SECRET} after" >&2; sleep 1000',
])
def test_a_wait_tells_no_more_than_the_output(hub, sb, command):
    """Texts, patterns and offsets that a redacted secret answers: none is found. What stands around
    it is, wherever the output was cut."""
    job = hub.start(sb, command)
    assert hub.wait(sb, job, text='after')['result'] == 'matched'
    if 'sleep 1000' in command:
        hub.call('POST', hub.at(sb, job, '/signal'), {'signal': 9})
    assert hub.wait(sb, job)['result'] == 'ended'
    assert SECRET[4:10].encode() not in hub.output(sb, job)
    for guess in ({'text': SECRET[:9]}, {'text': SECRET[4:9]}, {'pattern': f'{SECRET[:5]}.*after'},
                  {'pattern': 'key: gh'}, {'pattern': 'key: [^[]'}, {'text': SECRET[-1] + ' after'},
                  {'text': SECRET[20:30], 'offset': 30}, {'pattern': '^[A-Z]', 'offset': 30}):
        assert hub.wait(sb, job, **guess)['result'] == 'ended', guess
    for shown in ({'text': 'before'}, {'pattern': '^before key: .REDACTED:[a-z-]+:output. after'},
                  {'text': ' after', 'offset': 40}):
        assert hub.wait(sb, job, **shown)['result'] == 'matched', shown
