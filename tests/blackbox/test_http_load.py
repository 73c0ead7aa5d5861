"""Sixteen clients at once, whose ids are all the same: every answer finds its request."""

import json
import selectors
import time

from http_client import BOTH, META, MODERN, Session, Sse
from soak import soak

CALLS = soak(100_000)
CLIENTS = 16
LANES = 6  # connections of one client
SECONDS = 100


class Caller:
    """One client: what it asks next, and what it has not been told yet."""

    def __init__(self, name, calls):
        self.name, self.left, self.next_id = name, calls, 0
        self.waiting = set()

    def text(self, number):
        return f'{self.name}:{number}'

    def arguments(self, number):
        """Some are answered at once, some later."""
        if number % 16 == 7:
            return 'doze', {'ms': number % 5, 'text': self.text(number)}
        return 'echo', {'text': self.text(number)}

    def take(self, message):
        number = message['id']
        self.waiting.remove(number)
        assert message['result']['content'][0]['text'] == self.text(number), message


class Lane:
    """A connection that always has one request on it."""

    def __init__(self, peer, caller, head, meta=None, answers=True):
        self.sock = peer.connect().sock
        self.sock.setblocking(False)
        self.caller, self.head, self.meta, self.answers = caller, head, meta, answers
        self.have = b''
        self.mine = None

    def ask(self):
        caller = self.caller
        if caller.next_id == caller.left:
            return False
        number = caller.next_id
        caller.next_id += 1
        caller.waiting.add(number)
        self.mine = number
        tool, arguments = caller.arguments(number)
        params = {'name': tool, 'arguments': arguments}
        name = ''
        if self.meta:
            params['_meta'] = self.meta
            name = f'Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n'
        body = json.dumps({'jsonrpc': '2.0', 'id': number, 'method': 'tools/call',
                           'params': params})
        self.sock.send(f'{self.head}{name}Content-Length: {len(body)}\r\n\r\n{body}'.encode())
        return True

    def read(self):
        """True where another can be asked."""
        self.have += self.sock.recv(1 << 16)
        end = self.have.find(b'\r\n\r\n')
        if end < 0:
            return False
        head = self.have[:end].lower()
        at = head.find(b'content-length: ')
        size = int(head[at + 16:].split(b'\r\n', 1)[0]) if at >= 0 else 0
        if len(self.have) < end + 4 + size:
            return False
        status, body = head[9:12], self.have[end + 4:end + 4 + size]
        self.have = self.have[end + 4 + size:]
        if self.answers:
            message = json.loads(body)
            assert (status, message['id']) == (b'200', self.mine), (head, body)
            self.caller.take(message)
        else:
            assert (status, body) == (b'202', b''), (head, body)
        return True


class Stream:
    """The one stream of an SSE client."""

    def __init__(self, sse, caller):
        self.sock, self.caller, self.text = sse.stream.conn.sock, caller, b''
        self.sock.setblocking(False)
        self.have = sse.stream.conn.have

    def read(self):
        self.have += self.sock.recv(1 << 16)
        while True:
            line, mark, rest = self.have.partition(b'\r\n')
            size = int(line, 16) if mark else 0
            if not mark or len(rest) < size + 2:
                break
            self.text += rest[:size]
            self.have = rest[size + 2:]
        *events, self.text = self.text.split(b'\n\n')
        for event in events:
            for line in event.split(b'\n'):
                if line.startswith(b'data: '):
                    self.caller.take(json.loads(line[6:]))
        return False


def lanes_of(peer, number, caller):
    common = (f'Host: {peer.door.host}\r\nAuthorization: Bearer alice\r\nContent-Type: '
              'application/json\r\n'
              f'Accept: {BOTH}\r\n')
    if number % 4 == 0:
        sse = Sse(peer.door)
        head = f'POST {sse.endpoint} HTTP/1.1\r\n{common}'
        return ([Lane(peer, caller, head, answers=False) for _ in range(LANES)]
                + [Stream(sse, caller)], sse)
    if number % 2 == 0:
        session = Session(peer.door, '2025-06-18')
        head = (f'POST /mcp HTTP/1.1\r\n{common}Mcp-Session-Id: {session.id}\r\n'
                'MCP-Protocol-Version: 2025-06-18\r\n')
        return [Lane(peer, caller, head) for _ in range(LANES)], session
    meta = {META + 'protocolVersion': MODERN, META + 'clientCapabilities': {}}
    head = f'POST /mcp HTTP/1.1\r\n{common}MCP-Protocol-Version: {MODERN}\r\n'
    return [Lane(peer, caller, head, meta) for _ in range(LANES)], None


def test_very_many_calls_of_sixteen_clients_with_equal_ids(peer):
    callers = [Caller(f'client-{i}', CALLS // CLIENTS) for i in range(CLIENTS)]
    select, kept = selectors.DefaultSelector(), []
    for i, caller in enumerate(callers):
        lanes, keep = lanes_of(peer, i, caller)
        kept.append(keep)
        for lane in lanes:
            select.register(lane.sock, selectors.EVENT_READ, lane)
            if isinstance(lane, Lane):
                lane.ask()
    deadline = time.monotonic() + SECONDS
    while any(c.waiting or c.next_id < c.left for c in callers):
        assert time.monotonic() < deadline, [(c.next_id, len(c.waiting)) for c in callers]
        for key, _ in select.select(1):
            if key.data.read():
                key.data.ask()
    assert sum(c.next_id for c in callers) == CALLS // CLIENTS * CLIENTS
    for key in list(select.get_map().values()):
        key.fileobj.close()
    peer.until(held=0, posts=1, sse=0)
