"""HTTP/1.1 and WebSockets as a client speaks them, without I/O: bytes in, bytes out."""

from __future__ import annotations

import base64
import hashlib
import os
from typing import Dict, List, NamedTuple, Optional, Tuple

HEAD_MAX = 64 << 10
MESSAGE_MAX = 8 << 20  # of a WebSocket
_LINE_MAX = 4096  # of the size of a chunk
_DIGITS_MAX = 18


class ProtocolError(Exception):
    """The peer does not speak HTTP, or ended in the middle."""


class Head(NamedTuple):
    status: int
    fields: Dict[str, str]  # by their names in lower case


def encode_head(method: str, target: str, fields: Dict[str, str]) -> bytes:
    lines = [f'{method} {target} HTTP/1.1', *(f'{k}: {v}' for k, v in fields.items())]
    if any(c in line for line in lines for c in '\r\n\0'):
        raise ProtocolError('a line break in a header field')
    return ('\r\n'.join(lines) + '\r\n\r\n').encode('latin-1')


def encode_chunk(data: bytes) -> bytes:
    return b'%x\r\n%s\r\n' % (len(data), data)


class Response:
    """One answer. feed() takes what came and gives what that holds of the body."""

    def __init__(self) -> None:
        self.head: Optional[Head] = None
        self.done = False
        self.goes_on = False  # 100 Continue has come
        self._got = bytearray()
        self._left: Optional[int] = None  # bytes of the body or of this chunk; None: unknown
        self._chunked = False
        self._in_chunk = False

    @property
    def keeps(self) -> bool:
        """The connection can be used again."""
        return (self.done and not self._got and self.head is not None and self.head.status != 101
                and (self._chunked or self._left is not None)
                and self.head.fields.get('connection', '').lower() != 'close')

    def rest(self) -> bytes:
        """What came behind the answer: of a connection that was upgraded."""
        return bytes(self._got)

    def feed(self, data: bytes) -> bytes:
        """b"" is the end of the connection."""
        if not data:
            if self.head is None or self._chunked or self._left is not None:
                raise ProtocolError('the connection ended in the middle of an answer')
            self.done = True
            return b''
        self._got += data
        body = bytearray()
        while not self.done and self._step(body):
            pass
        return bytes(body)

    def _line(self, most: int) -> Optional[bytes]:
        at = self._got.find(b'\r\n')
        if at > most or (at < 0 and len(self._got) > most):
            raise ProtocolError('a line is too long')
        if at < 0:
            return None
        line = bytes(self._got[:at])
        del self._got[:at + 2]
        return line

    def _step(self, body: bytearray) -> bool:
        """Takes the next part, if all of it is there."""
        if self.head is None:
            return self._take_head()
        if self._chunked and not self._in_chunk:
            return self._take_size()
        return self._take_body(body)

    def _take_head(self) -> bool:
        end = self._got.find(b'\r\n\r\n')
        if end < 0 and len(self._got) > HEAD_MAX or end > HEAD_MAX:
            raise ProtocolError('the head of the answer is too long')
        if end < 0:
            return False
        lines = bytes(self._got[:end]).decode('latin-1').split('\r\n')
        del self._got[:end + 4]
        words = lines[0].split(' ', 2)
        if (len(words) < 2 or not words[0].startswith('HTTP/1.') or len(words[1]) != 3
                or not words[1].isdecimal()):
            raise ProtocolError('the answer is not HTTP/1.1')
        fields: Dict[str, str] = {}
        for line in lines[1:]:
            name, _, value = line.partition(':')
            fields[name.strip().lower()] = value.strip()
        head = Head(int(words[1]), fields)
        if head.status < 200 and head.status != 101:
            self.goes_on = True
            return True  # the answer follows
        self.head = head
        length = fields.get('content-length')
        self._chunked = fields.get('transfer-encoding', '').lower() == 'chunked'
        if length is not None and not self._chunked:
            if not length.isdecimal() or len(length) > _DIGITS_MAX:
                raise ProtocolError('the length of the answer is no number')
            self._left = int(length)
        self.done = head.status in (101, 204, 304) or self._left == 0
        return True

    def _take_size(self) -> bool:
        line = self._line(_LINE_MAX)
        if line is None:
            return False
        if self._left == 0:  # the trailer, up to an empty line
            self.done = not line
            return True
        try:
            self._left = int(line.split(b';')[0], 16)
        except ValueError:
            raise ProtocolError('the size of a chunk is no number') from None
        self._in_chunk = self._left > 0
        return True

    def _take_body(self, body: bytearray) -> bool:
        n = len(self._got) if self._left is None else min(self._left, len(self._got))
        if n:
            body += self._got[:n]
            del self._got[:n]
        if self._left is None:
            return False
        self._left -= n
        if self._left:
            return False
        if not self._chunked:
            self.done = True
            return True
        if len(self._got) < 2:
            return False
        if self._got[:2] != b'\r\n':
            raise ProtocolError('a chunk does not end where it should')
        del self._got[:2]
        self._in_chunk, self._left = False, None
        return True


# ---- WebSockets (RFC 6455) --------------------------------------------------------------------

_ACCEPT = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def upgrade_fields(protocol: str) -> Tuple[Dict[str, str], str]:
    """Header fields of the request, and what the answer's Sec-WebSocket-Accept must be."""
    key = base64.b64encode(os.urandom(16)).decode()
    accept = base64.b64encode(hashlib.sha1((key + _ACCEPT).encode()).digest()).decode()
    return {
        'Connection': 'Upgrade',
        'Upgrade': 'websocket',
        'Sec-WebSocket-Version': '13',
        'Sec-WebSocket-Key': key,
        'Sec-WebSocket-Protocol': protocol
    }, accept


def encode_frame(opcode: int, data: bytes) -> bytes:
    n = len(data)
    mask = os.urandom(4)
    if n < 126:
        head = bytes([0x80 | opcode, 0x80 | n])
    elif n < 1 << 16:
        head = bytes([0x80 | opcode, 0x80 | 126]) + n.to_bytes(2, 'big')
    else:
        head = bytes([0x80 | opcode, 0x80 | 127]) + n.to_bytes(8, 'big')
    key = int.from_bytes((mask * (n // 4 + 1))[:n], 'big')
    return head + mask + (int.from_bytes(data, 'big') ^ key).to_bytes(n, 'big')


class Messages:
    """What comes over a WebSocket: whole messages and control frames, as (opcode, bytes)."""

    def __init__(self) -> None:
        self._got = bytearray()
        self._opcode = 0
        self._parts = bytearray()

    def feed(self, data: bytes) -> List[Tuple[int, bytes]]:
        self._got += data
        found: List[Tuple[int, bytes]] = []
        while True:
            frame = self._frame()
            if frame is None:
                return found
            final, opcode, payload = frame
            if opcode >= CLOSE:
                found.append((opcode, payload))
                continue
            if (opcode == 0) != (self._opcode != 0):
                raise ProtocolError("a frame of a WebSocket where it can't be")
            self._opcode = self._opcode or opcode
            self._parts += payload
            if len(self._parts) > MESSAGE_MAX:
                raise ProtocolError('a message of a WebSocket is too long')
            if final:
                found.append((self._opcode, bytes(self._parts)))
                self._opcode, self._parts = 0, bytearray()

    def _frame(self) -> Optional[Tuple[bool, int, bytes]]:
        got = self._got
        if len(got) < 2:
            return None
        n, at = got[1] & 0x7F, 2
        if got[0] & 0x70 or got[1] & 0x80:
            raise ProtocolError('a frame of a WebSocket that was not agreed on')
        if n >= 126:
            at = 4 if n == 126 else 10
            if len(got) < at:
                return None
            n = int.from_bytes(got[2:at], 'big')
        if n > MESSAGE_MAX:
            raise ProtocolError('a message of a WebSocket is too long')
        if len(got) < at + n:
            return None
        frame = (bool(got[0] & 0x80), got[0] & 0x0F, bytes(got[at:at + n]))
        del got[:at + n]
        return frame
