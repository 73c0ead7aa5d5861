"""The service sandbox.v1.Sandbox as Connect-JSON: frames and errors by hand,
and Connect's own client for Node.js."""

import base64
import json

import pytest

from client import until
from rest import Failed, Rest, b64, frame, frames, joined, told
from who import node

STREAM = 'application/connect+json'


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    with Rest(me, tmp_path_factory.mktemp('connect'), '--listen', '127.0.0.1:0',
              '--pool', '2') as shared:
        yield shared


@pytest.fixture
def sb(hub):
    sandbox = hub.create()
    yield sandbox
    hub.sweep(sandbox)


def fails(code, call, *arguments, **more):
    with pytest.raises(Failed) as caught:
        call(*arguments, **more)
    assert caught.value.code == code, caught.value
    assert caught.value.error['details'][0]['type'] == 'google.rpc.ErrorInfo'
    return caught.value


def test_a_stream_fails_in_its_last_message(hub, sb):
    """Its status is 200, from which a client infers no code. What is no stream has another."""
    reply = hub.connect('ExecStream', 'nobody', None, kind=STREAM, body=frame({'command': 'true'}))
    assert (reply.status, reply.get('Content-Type')) == (200, STREAM)
    (flags, end), = frames(reply.body)
    assert flags == 2 and end['error']['code'] == 'not_found', end
    assert hub.connect('Stat', 'nobody', {'path': '/'}).status == 404
    assert hub.connect('ExecStream', sb, {'command': 'true'}).status == 415
    assert hub.connect('ExecStream', sb, None, kind=STREAM, body=b'', token='wrong').status == 401


def test_files(hub, sb):
    assert hub.stream('WriteFile', sb, {'open': {'path': 'a/f', 'mode': 0o640}},
                      {'data': b64(b'one ')},
                      {'data': b64(b'two')}) == [{'bytesWritten': 7}]
    info = hub.unary('Stat', sb, path='a/f')
    assert (info['name'] == 'f' and info['size'] == 7 and info['mode'] == 0o640
            and info['isDir'] is False)
    assert hub.unary('List', sb, parent='a')['entries'] == [info]
    read = hub.stream('ReadFile', sb, {'path': 'a/f'})
    assert joined(read, 'data') == b'one two' and read[-1]['eof'] is True
    assert hub.unary('Mkdir', sb, path='a/b/c') == {}
    fails('aborted', hub.unary, 'Remove', sb, path='a', recursive=False)
    assert hub.unary('Remove', sb, path='a') == {}  # as clients of mitos mean it
    assert fails('not_found', hub.unary, 'Stat', sb, path='a').status == 404
    assert fails('not_found', hub.stream, 'ReadFile', sb, {'path': 'a'}).status == 200


def test_pages(hub, sb):
    hub.exec(sb, 'mkdir d; for i in 1 2 3 4 5; do echo > d/$i; done')
    first = hub.unary('List', sb, parent='d', pageSize=2)
    second = hub.unary('List', sb, parent='d/', pageSize=4, pageToken=first['nextPageToken'])
    assert ([e['path'] for e in first['entries'] + second['entries']]
            == [f'/workspace/d/{i}' for i in range(1, 6)])
    assert 'nextPageToken' not in second
    fails('unimplemented', hub.unary, 'List', sb, parent='d', filter='is_dir=true')
    hub.exec(sb, 'cd d; i=0; while [ $i -lt 1100 ]; do : > f$i; i=$((i+1)); done')
    fails('resource_exhausted', hub.unary, 'List', sb, parent='d')


def test_a_large_file_comes_whole(hub, sb):
    hub.exec(sb, 'head -c 20000000 /dev/urandom > big; sha256sum < big > sum')
    read = hub.stream('ReadFile', sb, {'path': 'big'})
    assert len(read) > 10 and [m['eof'] for m in read] == [False] * (len(read) - 1) + [True]
    data = joined(read, 'data')
    assert len(data) == 20000000
    half = len(data) // 2
    hub.stream('WriteFile', sb, {'open': {'path': 'copy'}}, {'data': b64(data[:half])},
               {'data': b64(data[half:])})
    assert hub.exec(sb, 'sha256sum < copy | cmp - sum')['exit_code'] == 0


def test_a_sandbox_that_ends_while_it_is_read(hub):
    """Of a file that a slow reader has not come to the end of: what is missing is said,
    and nothing else suffers."""
    sandbox = hub.create()
    hub.exec(sandbox, 'head -c 40000000 /dev/zero > big')
    body = frame({'path': 'big'})
    with hub.wire(receive_buffer=16384) as wire:
        wire.send(hub.request('POST', '/sandbox.v1.Sandbox/ReadFile', fields=[
            f'Content-Type: {STREAM}', f'Content-Length: {len(body)}',
            f'X-Sandbox-Id: {sandbox}']).encode() + body)
        assert wire.head()[0] == 200
        for _ in range(40):  # in this time it comes to wait for room, most likely
            hub.exec(sandbox, 'true')
        hub.delete(sandbox)
        said = list(frames(b''.join(iter(wire.chunk, b''))))
    assert [flags for flags, _ in said] == [0] * (len(said) - 1) + [2]
    assert said[-1][1]['error']['code'] in ('not_found', 'canceled')
    assert len(joined([m for _, m in said[:-1]], 'data')) < 40000000
    hub.works()


def test_exec(hub, sb):
    said = hub.stream('Exec', sb, {'open': {'command': 'cat; echo $A; pwd; echo err >&2; exit 3',
                                            'cwd': '/tmp',
                                            'env': [{'key': 'A', 'value': 'b'}]}},
                      {'stdin': b64(b'in 1\n')}, {'stdin': b64(b'in 2\n')}, {'stdinClose': True})
    assert joined(said, 'stdout') == b'in 1\nin 2\nb\n/tmp\n' and joined(said, 'stderr') == b'err\n'
    assert said[-1]['exit']['exitCode'] == 3 and said[-1]['exit']['execTimeMs'] > 0
    said = hub.stream('ExecStream', sb, {'command': 'printf', 'args': ['%s|', 'a b', '$HOME']})
    assert joined(said, 'stdout') == b'a b|$HOME|' and said[-1]['exit']['exitCode'] == 0


def test_processes(hub, sb):
    assert hub.unary('Processes', sb) == {'processes': [], 'truncated': False}
    hub.exec(sb, 'sleep 4321 > /dev/null 2>&1 &')
    [found] = until(lambda: [p for p in hub.unary('Processes', sb)['processes']
                             if p['command'] == 'sleep 4321' and p['parentPid'] == 1],
                    what='sleep')
    assert {'cpuMs', 'memoryBytes', 'ageMs', 'state'} < set(found)
    assert hub.unary('Signal', sb, pid=found['pid'], signal=15) == {}
    until(lambda: not hub.unary('Processes', sb)['processes'], what='the end')
    fails('not_found', hub.unary, 'Signal', sb, pid=found['pid'])
    fails('invalid_argument', hub.unary, 'Signal', sb, pid=1)


def test_exec_fails(hub, sb):
    for method, message in (('ExecStream', {'command': 'sleep 100', 'timeoutSeconds': 1}),
                            ('Exec', {'open': {'command': 'sleep 100', 'timeoutSeconds': 1}})):
        said = hub.stream(method, sb, message)  # a good end
        assert said[-1]['exit']['exitCode'] == 124
    fails('deadline_exceeded', hub.stream, 'ExecStream', sb, {'command': 'sleep 100'},
          fields=['Connect-Timeout-Ms: 500'])
    failed = fails('failed_precondition', hub.stream, 'ExecStream', sb,
                   {'command': 'no-such-program', 'args': ['x']})
    assert 'no-such-program' in failed.messages[-1]['exit']['error']
    failed = fails('invalid_argument', hub.stream, 'ExecStream', sb,
                   {'command': 'true', 'timeoutSeconds': 86401})
    assert (failed.status == 200 and failed.error['details'][0]['debug']['context']['max_timeout_s']
            == 86400)
    for messages in ([{}], [{'stdin': ''}],
                     [{'open': {'command': 'cat'}}, {'open': {'command': 'cat'}}], [{'open': {
                         'command': 'cat'}}, {}], [{'open': {'command': 'cat'}, 'stdin': ''}],
                     [{'open': {'command': 'cat'}}, {'stdinClose': True}, {'stdin': b64(b'x')}],
                     [{'open': {'command': 'cat'}}, {'stdin': 'no base64!'}],
                     [{'open': {'command': 'cat', 'pty': {}}}]):
        fails('invalid_argument', hub.stream, 'Exec', sb, *messages)
    assert hub.exec(sb, 'pidof cat')['exit_code'] == 1


OPEN = frame({'command': 'true'})


@pytest.mark.parametrize('body', [
    b'', OPEN[:3], OPEN[:-1], OPEN + b'x', b'\1' + OPEN[1:], b'\2' + OPEN[1:],
    b'\0\xff\xff\xff\xff{}', b'{"command":"true"}',
], ids=['none', 'half a head', 'short', 'more', 'compressed', 'an end', 'huge', 'no frame'])
def test_frames_that_are_none(hub, sb, body):
    reply = hub.connect('ExecStream', sb, None, kind=STREAM, body=body)
    assert told(reply)['code'] == 'invalid_argument', reply


@pytest.mark.parametrize('fields, says', [
    (['Connect-Protocol-Version: 2'], 'Connect-Protocol-Version'),
    (['Connect-Timeout-Ms: 0'], 'Connect-Timeout-Ms'),
    (['Connect-Timeout-Ms: -1'], 'Connect-Timeout-Ms'),
    (['Connect-Timeout-Ms: soon'], 'Connect-Timeout-Ms'),
    (['Connect-Timeout-Ms: 12345678901'], 'Connect-Timeout-Ms'),
    (['X-Sandbox-Id: another'], 'X-Sandbox-Id'),
])
def test_fields_that_are_wrong(hub, sb, fields, says):
    reply = hub.connect('Stat', sb, {'path': '/'}, fields)
    answer = json.loads(reply.body)
    assert (reply.status, answer['code']) == (400, 'invalid_argument') and says in answer['message']
    assert hub.connect('Stat', sb, {'path': '/'},
                       ['Connect-Protocol-Version: 1', 'Connect-Timeout-Ms: 10000']).status == 200


def test_what_is_compressed_is_unimplemented(hub, sb):
    """By that code a client knows that it can send the same as it is."""
    reply = hub.connect('Stat', sb, {'path': '/'}, ['Content-Encoding: gzip'])
    answer = json.loads(reply.body)
    assert (reply.status, answer['code']) == (501, 'unimplemented')
    assert 'identity' in answer['message']
    fails('unimplemented', hub.stream, 'ExecStream', sb, {'command': 'true'},
          fields=['Connect-Content-Encoding: gzip'])


@pytest.mark.parametrize('rpc, first, small', [
    ('Exec', {'open': {'command': 'cat'}}, {'stdin': b64(b'x')}),
    ('WriteFile', {'open': {'path': 'pieces'}}, {'data': b64(b'x')})])
def test_messages_of_a_request_are_bounded(hub, sb, rpc, first, small):
    """Each costs something, however small it is."""
    said = hub.stream(rpc, sb, first, *[small] * 4096)
    assert said[0].get('bytesWritten', len(joined(said, 'stdout'))) == 4096
    more = fails('resource_exhausted', hub.stream, rpc, sb, first, *[small] * 4097)
    assert '4096 messages' in more.error['message']


def peak(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as f:
        return next(int(line.split()[1]) for line in f if line.startswith('VmHWM')) * 1024


def test_no_body_of_tiny_messages_is_read_whole(hub, sb):
    body = frame({'open': {'path': 'pieces'}}) + frame({'data': ''}) * 1000000
    before = peak(hub.proc.pid)
    reply = hub.connect('WriteFile', sb, None, kind=STREAM, body=body)
    assert b'resource_exhausted' in reply.body, reply
    assert peak(hub.proc.pid) - before < 2 * len(body) + (16 << 20)


def test_who_goes_away_ends_the_command(hub, sb):
    body = frame({'command': 'sleep 1000'})
    with hub.wire() as wire:
        wire.send(hub.request('POST', '/sandbox.v1.Sandbox/ExecStream', fields=[
            f'Content-Type: {STREAM}', f'Content-Length: {len(body)}',
            f'X-Sandbox-Id: {sb}']).encode() + body)
        until(lambda: hub.exec(sb, 'pidof sleep')['exit_code'] == 0, what='the command')
    until(lambda: hub.exec(sb, 'pidof sleep')['exit_code'] == 1, what='the end of the command')


def test_the_error_detail_is_a_protocol_buffer(hub):
    reply = hub.connect('Stat', 'nobody', {'path': '/'})
    detail = json.loads(reply.body)['details'][0]
    value = detail['value']
    assert base64.b64decode(value + '=' * (-len(value) % 4)) == b'\x0a\x09not_found\x12\x04holt'
    assert '=' not in value  # as Connect has it


def test_the_client_of_node(hub, sb):
    """@connectrpc/connect-node over HTTP/1.1, which decodes by the messages' own descriptors."""
    host, port = hub.address
    got = node('connect.mjs', {'url': f'http://{host}:{port}', 'token': hub.token, 'sandbox': sb},
               least=20)
    assert got['written'] == '7' and got['read'] == 'one two' and got['entries'] == ['f']
    assert got['stdout'] == 'out\n' and got['stderr'] == 'err\n' and got['exit'] == 3
    assert got['vitals'] is True
    assert got['binary'] == {'written': '7', 'read': 'one two', 'stdout': 'out\n',
                             'stderr': 'err\n', 'exit': 3,
                             'missing': {'code': 'NotFound', 'reason': 'not_found'}}
    assert got['missing'] == {'code': 'NotFound', 'reason': 'not_found'}
    assert got['late'] == 'DeadlineExceeded' and got['unknown'] == 'Unauthenticated'
