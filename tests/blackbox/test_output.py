"""Programs that write without end, in lines without end, to clients that read slowly:
the hub's memory stays what it was.

What each door is given here is smaller than what it was proven with, so that it takes seconds on a
slow machine, too (soak.py); HOLT_TEST_OUTPUT says how many bytes: 10737418240 for 10 GB.
"""

import base64
import json
import os
import struct

import pytest

from client import data_of, until
from rest import Rest, frame
from soak import soak
from test_serve import Session

SIZE = int(os.environ.get('HOLT_TEST_OUTPUT') or soak(1 << 30))
SMALL = 8 << 20  # more than any answer keeps
MORE = 16 << 20  # bytes by which the hub may grow for what is larger than that


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    hub = Rest(me, tmp_path_factory.mktemp('output'), '--listen', '127.0.0.1:0', '--socket', 'none',
               '--pool', '0')
    yield hub
    assert hub.end() == 0, hub.said()
    hub.kill()


@pytest.fixture
def sb(hub):
    name = hub.create()
    yield name
    hub.delete(name)


class Peak:
    """The highest resident size of the hub, which may be that of a small answer of the same
    kind."""

    def __init__(self, hub):
        self.pid = hub.proc.pid
        with open(f'/proc/{self.pid}/clear_refs', 'w', encoding='ascii') as f:
            f.write('5')
        self.small = None

    def read(self):
        with open(f'/proc/{self.pid}/status', encoding='ascii') as f:
            return next(int(line.split()[1]) for line in f if line.startswith('VmHWM:')) << 10

    def check(self):
        if self.small is None:
            self.small = self.read()
        assert self.read() < self.small + MORE, (self.small, self.read())


@pytest.fixture
def patient(hub):
    """Connections on which an answer may take its time."""
    def connect():
        wire = hub.wire()
        wire.sock.settimeout(100)
        return wire
    return connect


def bytes_of(size, lines=False):
    return f'yes 0123456789abcde | head -c {size}' if lines else f'head -c {size} /dev/zero'


@pytest.mark.parametrize('lines', [False, True])
def test_rest(hub, sb, patient, lines):
    peak = Peak(hub)
    for size in (SMALL, SIZE):
        body = {'sandbox': sb, 'command': bytes_of(size, lines), 'timeout': 600}
        with patient() as wire:
            done = json.loads(wire.ask(hub.request('POST', '/v1/exec', body=json.dumps(body)),
                                       'POST').body)
        assert done['exit_code'] == 0, done
        kept = (base64.b64decode(done['stdout_base64']) if 'stdout_base64' in done
                else done['stdout'].encode())
        assert size - (1 << 21) < done['stdout_elided_bytes'] < size and len(kept) <= 1 << 21
        peak.check()


def test_mcp(hub, sb, patient):
    session, peak = Session(hub), Peak(hub)
    for size in (SMALL, SIZE):
        with patient() as wire:
            session.call(wire, 'sandbox_exec', sandbox=sb, command=bytes_of(size),
                         timeout_seconds=600)
            result = session.result(wire)
        assert not result.get('isError'), result
        assert data_of(result)['exit_code'] == 0
        assert size - (1 << 21) < data_of(result)['stdout_elided_bytes'] < size
        peak.check()


def stands(hub, sb):
    """The processor time of the program, in a list, while it waits."""
    found = [p for p in hub.call('GET', f'/v1/sandboxes/{sb}/processes')['processes']
             if p['command'].startswith('head')]
    return [found[0]['cpu_ms']] if found and found[0]['state'] == 'S' else None


def stand_still(hub, sb):
    """Until nobody takes what the program writes, so that it waits:
    seen three times with nothing done in between."""
    seen = []

    def still():
        seen.append(stands(hub, sb))
        return len(seen) > 2 and seen[-1] and seen[-1] == seen[-2] == seen[-3]
    until(still, what='a program that waits for its reader')


def take(hub, sb, wire, peak, slow):
    """How much came, and the end of it. A slow reader begins only when the program can't go on
    without."""
    size, last = 0, b''
    assert wire.head()[0] == 200
    if slow:
        stand_still(hub, sb)
        peak.check()
    while piece := wire.chunk():
        last = (last + piece)[-4096:]
        size += len(piece)
    peak.check()
    return size, last


@pytest.mark.parametrize('slow', [False, True])
def test_rest_stream(hub, sb, patient, slow):
    peak = Peak(hub)
    for size in (SMALL, SIZE // 4):
        with patient() as wire:
            wire.send(hub.request('POST', '/v1/exec/stream', body=json.dumps(
                {'sandbox': sb, 'command': 'head', 'args': ['-c', str(size), '/dev/zero'],
                 'timeout': 600})))
            came, last = take(hub, sb, wire, peak, slow)
        end = json.loads(last.splitlines()[-1])
        assert end['kind'] == 'exit' and end['exit_code'] == 0 and came > size * 4 // 3


@pytest.mark.parametrize('slow', [False, True])
def test_connect_stream(hub, sb, patient, slow):
    peak = Peak(hub)
    for size in (SMALL, SIZE // 4):
        body = frame({'command': 'head', 'args': ['-c', str(size), '/dev/zero'],
                      'timeoutSeconds': 600})
        with patient() as wire:
            wire.send(hub.request('POST', '/sandbox.v1.Sandbox/ExecStream', fields=[
                'Content-Type: application/connect+json', f'X-Sandbox-Id: {sb}',
                f'Content-Length: {len(body)}']).encode() + body)
            came, last = take(hub, sb, wire, peak, slow)
        assert last.endswith(b'\x02' + struct.pack('>I', 2)
                             + b'{}') and came > size * 4 // 3, last[-300:]
