"""Messages of sandbox.v1.Sandbox as protocol buffers, as mitos' CLI and its MCP server send them:
by hand here, and by Connect's own client in test_connect.py."""

import json
import os
import struct

import pytest

from rest import Rest

BINARY = 'application/connect+proto'


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    with Rest(me, tmp_path_factory.mktemp('proto'), '--listen', '127.0.0.1:0',
              '--pool', '0') as shared:
        yield shared


@pytest.fixture(scope='module')
def sb(hub):
    return hub.create()


def varint(n):
    out = b''
    while n > 0x7f:
        out, n = out + bytes([n & 0x7f | 0x80]), n >> 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(message):
    """Number and value of each."""
    found, at = [], 0

    def number():
        nonlocal at
        n = shift = 0
        while True:
            byte = message[at]
            at += 1
            n |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return n
    while at < len(message):
        tag = number()
        if tag & 7 == 0:
            found.append((tag >> 3, number()))
        elif tag & 7 == 1:
            found.append((tag >> 3, struct.unpack('<d', message[at:at + 8])[0]))
            at += 8
        else:
            assert tag & 7 == 2
            n = number()
            found.append((tag >> 3, message[at:at + n]))
            at += n
    return found


def binary(hub, rpc, sandbox, *messages, raw=None):
    """The messages of the answer, decoded one level, and what its last frame says."""
    body = raw if raw is not None else b''.join(
        b'\0' + struct.pack('>I', len(m)) + m for m in messages)
    reply = hub.connect(rpc, sandbox, None, ['Connect-Protocol-Version: 1'], BINARY, body)
    assert reply.status == 200 and reply.get('Content-Type') == BINARY, reply
    found, left = [], reply.body
    while left:
        flags, n = struct.unpack('>BI', left[:5])
        found.append((flags, left[5:5 + n]))
        left = left[5 + n:]
    assert [flags for flags, _ in found] == [0] * (len(found) - 1) + [2]
    return [fields(m) for _, m in found[:-1]], json.loads(found[-1][1])


def test_messages(hub, sb):
    env = field(1, 'A') + field(2, 'ü')
    said, end = binary(hub, 'ExecStream', sb, field(1, 'sh') + field(2, '-c') + field(
        2, 'echo $A; pwd; echo err >&2; exit 3') + field(3, env) + field(4, '/tmp')
        + field(5, 30) + field(99, 'unknown') + field(98, 1))
    out = b''.join(m[0][1] for m in said if m[0][0] == 1)
    err = b''.join(m[0][1] for m in said if m[0][0] == 2)
    assert (out, err, end) == ('ü\n/tmp\n'.encode(), b'err\n', {})
    exit = dict(fields(said[-1][0][1]))
    assert said[-1][0][0] == 3 and exit[1] == 3 and exit[2] > 0 and 3 not in exit
    said, _ = binary(hub, 'ExecStream', sb, field(1, 'true') + field(5, -1))
    assert 1 not in dict(fields(said[-1][0][1]))  # 0 is not sent
    data = os.urandom(3 << 20)
    opened = field(1, field(1, 'bin/f') + field(2, 0o600))
    said, end = binary(hub, 'WriteFile', sb, opened, field(2, data[:1 << 20]), field(2, b''),
                       field(2, data[1 << 20:]))
    assert (said, end) == ([[(1, len(data))]], {})
    said, end = binary(hub, 'ReadFile', sb, field(1, 'bin/f'))
    assert b''.join(v for m in said for n, v in m if n == 1) == data and end == {}
    assert [(2, 1) in m for m in said] == [False] * (len(said) - 1) + [True]


def test_what_parsers_take(hub, sb):
    """The rules of the wire: what is not known, what stands twice, what is too long."""
    def run(message):
        said, end = binary(hub, 'ExecStream', sb, message)
        return b''.join(m[0][1] for m in said if m[0][0] == 1), end
    echo = field(1, 'echo hi')
    group, group_end = varint(99 << 3 | 3), varint(99 << 3 | 4)
    for message in (
            echo + group + group_end, group + field(1, 'x') + field(5, 9) + group_end + echo,
            group + varint(98 << 3 | 3) + varint(98 << 3 | 4) + group_end + echo,
            field(1, 7) + echo, echo + field(1, 7), field(1, 'false') + echo,
            echo + field(5, (1 << 32) + 5), echo + varint(5 << 3) + b'\xff' * 9 + b'\x7f'):
        assert run(message) == (b'hi\n', {}), message
    for message in (echo + group, echo + group_end, echo + varint(5 << 3) + b'\x80' * 10 + b'\1',
                    echo + varint(99 << 3 | 6)):
        assert run(message)[1]['error']['code'] == 'invalid_argument', message
    path, mode = field(1, 'twice'), field(2, (1 << 32) + 0o640)
    for opened in (field(1, path) + field(1, mode), field(2, b'no') + field(1, path + mode)):
        said, end = binary(hub, 'WriteFile', sb, opened, field(2, b'data'))
        assert (said, end) == ([[(1, 4)]], {})
        assert hub.exec(sb, 'stat -c %a twice && rm twice')['stdout'] == '640\n'


def test_secrets_do_not_leave(hub, sb):
    secret = b'ghp_' + b'a1B2c3D4e5' * 3 + b'a1B2c3'
    said, _ = binary(hub, 'ExecStream', sb, field(1, b'echo ' + secret))
    out = b''.join(m[0][1] for m in said if m[0][0] == 1)
    assert secret not in out and b'[REDACTED' in out


def test_failures_are_ends(hub, sb):
    """A client of that kind reads no body of another status."""
    for rpc, sandbox, message, code in (
            ('ReadFile', 'nobody', field(1, '/etc/hostname'), 'not_found'),
            ('ReadFile', sb, field(1, 'none'), 'not_found'),
            ('ExecStream', sb, b'', 'invalid_argument'),
            ('ExecStream', sb, field(1, 'true') + field(5, 86401), 'invalid_argument'),
            ('ExecStream', sb, field(1, 'a\0b'), 'invalid_argument'),
            ('ExecStream', sb, field(1, b'\xff\xfe'), 'invalid_argument'),
            ('ExecStream', sb, field(1, 1), 'invalid_argument'),
            ('WriteFile', sb, field(2, b'x'), 'invalid_argument'),
            ('ExecStream', sb, b'\x0a\xff\xff\xff\xff\x0fx', 'invalid_argument'),
            ('ExecStream', sb, b'\x0b', 'invalid_argument'),
            ('ExecStream', sb, field(1, 'true') + field(2, 'x') * 5000, 'invalid_argument'),
            ('ExecStream', sb, b'\x78\x01' * 300000, 'invalid_argument'),
            ('ExecStream', sb, b'\x78\x01' * 500000, 'resource_exhausted'),
            ('ExecStream', sb, field(1, b'\x01' * 700000), 'resource_exhausted')):
        said, end = binary(hub, rpc, sandbox, message)
        assert said == [] and end['error']['code'] == code, (rpc, end)
    said, end = binary(hub, 'WriteFile', sb, field(1, field(1, 'f')), *[field(2, b'')] * 4097)
    assert end['error']['code'] == 'resource_exhausted'
    said, end = binary(hub, 'ExecStream', sb, raw=b'\0\0\0\0\5')
    assert end['error']['code'] == 'invalid_argument'
    reply = hub.connect('ReadFile', sb, None, kind=BINARY, body=b'', token='wrong')
    assert reply.status == 401
    reply = hub.connect('Archive', sb, None, kind=BINARY, body=b'\0\0\0\0\0')
    assert reply.status == 415  # only those three
