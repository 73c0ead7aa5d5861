"""The blocking client: sockets, and what hangs on an open answer or WebSocket."""

from __future__ import annotations

import queue
import select
import socket
import ssl
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Generic, Iterator, List, Optional, TypeVar, Union

from . import _core as core
from ._call import ASK, ERROR_MAX, IDLE, IDLE_CONNECTIONS, Hub, Request, tune
from ._core import Answer, Call, Collected, Opening, Steps
from ._http import BINARY, CLOSE, PING, PONG, TEXT, Head, Messages, ProtocolError, Response
from ._http import encode_chunk, encode_frame
from .errors import HoltError, TransportError
from .types import CommandResult, Data, Output, RunRequest, RunResult, SnapshotInfo

T = TypeVar('T')
_BROKEN = (OSError, ProtocolError)
_LATER = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_PIECE = 256 << 10


class _Wire:
    """One connection, for one call at a time."""

    def __init__(self, hub: Hub, timeout: float) -> None:
        e = hub.endpoint
        if e.unix:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                self.sock.settimeout(timeout)
                self.sock.connect(e.unix)
            except BaseException:
                self.sock.close()
                raise
        else:
            self.sock = socket.create_connection((e.host, e.port), timeout)
            tune(self.sock)
        if hub.tls:
            self.sock = hub.tls.wrap_socket(self.sock, server_hostname=e.host)
        self.idle_since = 0.0
        self._lock = threading.Lock()  # TLS reads and writes by one state

    def send(self, data: bytes, deadline: Optional[float]) -> None:
        self.sock.settimeout(_left(deadline))
        self.sock.sendall(data)

    def receive(self, deadline: Optional[float]) -> bytes:
        self.sock.settimeout(_left(deadline))
        return self.sock.recv(_PIECE)

    def is_fresh(self) -> bool:
        """Nothing came meanwhile: not its end either."""
        return time.monotonic() - self.idle_since < IDLE and not self.has(time.monotonic())

    def has(self, deadline: Optional[float], events: int = select.POLLIN) -> bool:
        """Waits until there is something to read, or room to write."""
        if events == select.POLLIN and isinstance(self.sock,
                                                  ssl.SSLSocket) and self.sock.pending():
            return True
        poll = select.poll()
        poll.register(self.sock, events)
        return bool(
            poll.poll(None if deadline is None else max(deadline - time.monotonic(), 0) * 1000))

    # One thread reads while others write: neither waits for the other.

    def receive_beside(self) -> bytes:
        self.sock.setblocking(False)
        while True:
            try:
                with self._lock:
                    return self.sock.recv(_PIECE)
            except _LATER:
                self.has(None)

    def send_beside(self, data: bytes, deadline: float) -> None:
        self.sock.setblocking(False)
        rest = memoryview(data)
        while rest:
            try:
                with self._lock:
                    rest = rest[self.sock.send(rest):]
            except _LATER:
                if not self.has(deadline, select.POLLOUT):
                    raise socket.timeout('nobody reads it') from None

    def end(self) -> None:
        """Wakes a thread that waits for it."""
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self) -> None:
        self.end()
        self.sock.close()


def _left(deadline: Optional[float]) -> Optional[float]:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise socket.timeout('its time is over')
    return left


class Client:
    """A hub and the connections to it. Threads may share one.

    base_url: http://HOST[:PORT], https://HOST[:PORT] or unix:/PATH. None: HOLT_BASE_URL,
        MITOS_BASE_URL, else the hub of this user by its Unix socket.
    api_key: None: HOLT_API_KEY, MITOS_API_KEY, else the token file of this user's hub (Unix
        socket) or credentials.json (HTTP), unless that is for another server. It is never in a
        text, a log or an error.
    request_timeout: seconds for a request that waits for nothing else; 60.
    retries: how often a request that can be sent again is, after a failure of the way to the hub
        or while it takes no more; 2. In between 0.1 s, 0.2 s, …, or what the hub says.

    Raises ValidationError if base_url or api_key are none, PolicyDeniedError if the token file or
    credentials.json is open to other users. Nothing is connected before the first call. Every call
    may raise any HoltError.
    """

    def __init__(self,
                 base_url: Optional[str] = None,
                 api_key: Optional[str] = None,
                 *,
                 request_timeout: float = 60.0,
                 retries: int = 2) -> None:
        self._hub = Hub(base_url, api_key, request_timeout, retries)
        self._idle: Deque[_Wire] = deque()

    def __repr__(self) -> str:
        return f'Client({self._hub!r})'

    def __enter__(self) -> 'Client':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes connections that are idle. Another call opens new ones."""
        while self._idle:
            try:
                self._idle.popleft().close()
            except IndexError:  # another thread was faster
                return

    # ---- what one can ask a hub that is about no one sandbox

    def health(self) -> Dict[str, Any]:
        """Whether it works: status, templates, sandboxes, tier. Needs no token."""
        return self._run(core.health())

    def templates(self) -> List[str]:
        """Names of images that sandboxes can be made from; "host" is always there."""
        return self._run(core.templates())

    def run(self, request: RunRequest) -> RunResult:
        """Makes a sandbox, writes files, runs a command, and ends or keeps the sandbox:
        docs/contract.md.

        The request may be a model's: the hub refuses what its schema does not have. A command that
        fails or times out is a result; check() of it raises. Not sent again by itself.
        """
        return self._run(core.run(request))

    def snapshots(self) -> List[SnapshotInfo]:
        """All that this token may see, in order of creation."""
        return self._run(core.snapshots())

    def snapshot(self, id: str) -> SnapshotInfo:
        """One of them. Raises NotFoundError."""
        return self._run(core.snapshot(id))

    def delete_snapshot(self, id: str) -> bool:
        """Deletes one; False if there is none."""
        return self._run(core.delete_snapshot(id))

    def audit_record(self, audit_id: str) -> Dict[str, Any]:
        """The record of a call in the audit log, and its signed receipt: docs/audit.md."""
        return self._run(core.audit_record(audit_id))

    # ---- how

    def _run(self, steps: Steps[T]) -> T:
        """Drives steps of _core to their end."""
        try:
            call = next(steps)
            while True:
                answer: Union[Answer, HoltError]
                try:
                    answer = self._ask(call)
                except HoltError as e:
                    answer = e
                call = core.advance(steps, answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _ask(self, call: Call) -> Answer:
        attempt = 0
        while True:
            try:
                stream = self._open(call)
                with stream:
                    body = stream.read_all(call.answer_max)
                return self._hub.answer(stream.head, body)
            except HoltError as e:
                pause = core.retry_pause(call, e, attempt, self._hub.retries)
                if pause is None:
                    raise
            attempt += 1
            time.sleep(pause)

    def _wire(self) -> _Wire:
        while self._idle:
            try:
                wire = self._idle.pop()
            except IndexError:
                break
            if wire.is_fresh():
                return wire
            wire.close()
        try:
            return _Wire(self._hub, self._hub.request_timeout)
        except OSError as e:
            raise self._hub.unreachable(e) from None

    def _keep(self, wire: _Wire) -> None:
        wire.idle_since = time.monotonic()
        if len(self._idle) < IDLE_CONNECTIONS:
            self._idle.append(wire)
        else:
            wire.close()

    def _open(self, call: Call, headers: Optional[Dict[str, str]] = None) -> 'Stream':
        """Sends a call, and waits for the head of the answer, whatever its status is."""
        request = self._hub.request(call, headers)
        wire = self._wire()
        stream = Stream(self, wire, call,
                        time.monotonic() + (call.timeout or self._hub.request_timeout))
        try:
            stream.start(request)
        except BaseException:
            wire.close()
            raise
        return stream

    def _stream(self, call: Call) -> 'Stream':
        """The same where the answer is a stream without an end of its own; raises what another
        status is.
        """
        stream = self._open(call)
        if stream.head.status != 200:
            with stream:
                raise self._hub.refusal(stream.head, stream.read_all(ERROR_MAX))
        if call.timeout is None:
            stream.deadline = None
        return stream

    def _channel(self, opening: Opening) -> 'Channel':
        request, accept = self._hub.upgrade(opening)
        wire = self._wire()
        stream = Stream(self, wire, opening.call, time.monotonic() + self._hub.request_timeout)
        try:
            stream.start(Request(request, b''))
            if stream.head.status != 101:
                raise self._hub.refusal(stream.head, stream.read_all(ERROR_MAX))
            if stream.head.fields.get('sec-websocket-accept') != accept:
                raise TransportError('the answer is no WebSocket of a hub', code='bad_answer')
            first = core.word(open=opening.first) if opening.first is not None else None
            return Channel(wire, stream, first)
        except BaseException:
            wire.close()
            raise


class Stream:
    """An answer as it comes."""

    head: Head

    def __init__(self, client: Client, wire: _Wire, call: Call, deadline: Optional[float]) -> None:
        self._client, self._wire, self._call = client, wire, call
        self._response = Response()
        self._first = b''
        self._closed = False
        self._sent = False
        self.deadline = deadline

    def __enter__(self) -> 'Stream':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, request: Request) -> None:
        lost: Optional[Exception] = None
        try:
            self._sent = self._send(request)
        except (BrokenPipeError, ConnectionResetError) as e:
            lost = e  # the hub may have refused it before all of it was sent
        except OSError as e:
            raise self._client._hub.lost(self._call, e) from None
        try:
            while self._response.head is None:
                self._first += self._response.feed(self._wire.receive(self.deadline))
        except _BROKEN as e:
            raise self._client._hub.lost(self._call, lost or e) from None
        self.head = self._response.head

    def _send(self, request: Request) -> bool:
        """Whether all of it has left."""
        if isinstance(request.body, bytes) and not request.asks:
            self._wire.send(request.head + request.body, self.deadline)
            return True
        self._wire.send(request.head, self.deadline)
        if isinstance(request.body, bytes):
            wanted = self._is_wanted()
            if wanted:
                self._wire.send(request.body, self.deadline)
            return wanted
        for piece in request.body:
            if piece:
                self._wire.send(encode_chunk(piece), self.deadline)
        self._wire.send(encode_chunk(b''), self.deadline)
        return True

    def _is_wanted(self) -> bool:
        """Whether the hub has not refused the body by its head; a proxy may say nothing."""
        until = time.monotonic() + ASK
        while self._response.head is None and not self._response.goes_on:
            if not self._wire.has(until):
                return True
            self._first += self._response.feed(self._wire.receive(self.deadline))
        return self._response.head is None

    def read(self) -> bytes:
        """The next bytes of the body; b"" at its end."""
        data, self._first = self._first, b''
        try:
            while not data and not self._response.done:
                data = self._response.feed(self._wire.receive(self.deadline))
        except _BROKEN as e:
            if self._closed:
                return b''
            raise self._client._hub.lost(self._call, e) from None
        return data

    def has(self, deadline: float) -> bool:
        """Waits until there is something to read, or its end."""
        return bool(self._first) or self._response.done or self._closed or self._wire.has(deadline)

    def read_all(self, most: int) -> bytes:
        body = bytearray()
        while True:
            data = self.read()
            if not data:
                return bytes(body)
            body += data
            if len(body) > most:
                raise TransportError(f'the answer has more than {most} bytes',
                                     code='answer_too_large')

    def rest(self) -> bytes:
        return self._first + self._response.rest()

    def close(self) -> None:
        """What is left of the answer does not come any more; a command that it tells about ends.
        """
        if self._closed:
            return
        self._closed = True
        if self._response.keeps and self._sent:
            self._client._keep(self._wire)
        else:
            self._wire.close()


class Events(Generic[T]):
    """Iterates over what an answer tells line by line. As a context manager it ends with the
    block.
    """

    def __init__(self, stream: Stream, make: Callable[[Dict[str, Any]], Optional[T]]) -> None:
        self._stream, self._make = stream, make
        self._lines = core.Lines()
        self._ready: Deque[Dict[str, Any]] = deque()
        self._over = False

    def __enter__(self: '_E') -> '_E':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[T]:
        while True:
            event = self.get()
            if event is None:
                return
            yield event

    def get(self, timeout: Optional[float] = None) -> Optional[T]:
        """The next one; None at the end, or if none came within `timeout` seconds (None: no
        limit).

        After a timeout it goes on.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            while self._ready:
                event = core.told(self._make, self._ready.popleft())
                if event is not None:
                    return event
            if self._over:
                return None
            if until is not None and not self._stream.has(until):
                return None
            data = self._stream.read()
            if data:
                self._ready.extend(self._lines.feed(data))
            else:
                self._over = True
                self.close()

    def close(self) -> None:
        """What is left does not come any more."""
        self._stream.close()


_E = TypeVar('_E', bound='Events[Any]')


class CommandStream(Events[Output]):
    """A command whose output comes as it prints. It ends when this is closed."""

    def __init__(self, stream: Stream, collected: Collected) -> None:
        super().__init__(stream, collected.line)
        self._collected = collected

    def wait(self) -> CommandResult:
        """Reads to the end; how it ended."""
        for _ in self:
            pass
        return self.result

    @property
    def result(self) -> CommandResult:
        """How it ended, once all of its output was read. Raises TransportError before, or if the
        stream was cut.
        """
        return self._collected.ended()


class Bytes:
    """Iterates over the bytes of an answer. As a context manager it ends with the block."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def __enter__(self) -> 'Bytes':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[bytes]:
        with self._stream:
            while True:
                data = self._stream.read()
                if not data:
                    return
                yield data

    def read(self) -> bytes:
        """All of them."""
        return b''.join(self)

    def close(self) -> None:
        """What is left does not come any more."""
        self._stream.close()


class Channel:
    """A command over a WebSocket: output as it comes, input as it is sent, a terminal if it has
    one.

    A thread reads, so that the hub's pings are answered while nobody waits for output. What is not
    taken stays with the hub beyond 32 messages, and stops the command. Closing ends a command that
    was opened, and leaves one that was attached to. Threads may write while another reads.
    """

    def __init__(self, wire: _Wire, stream: Stream, first: Optional[bytes]) -> None:
        self._wire = wire
        self._collected = Collected(core.OUTPUT_MAX, stream.head.fields.get('audit-id'))
        self._got: 'queue.Queue[Union[Output, HoltError, None]]' = queue.Queue(32)
        self._write_lock = threading.Lock()
        self._closed = False
        self._end: Optional[HoltError] = None
        self._over = False
        if first is not None:
            self._frame(TEXT, first)
        self._thread = threading.Thread(target=self._pump,
                                        args=(stream.rest(), ),
                                        daemon=True,
                                        name='holt-channel')
        self._thread.start()

    def __enter__(self) -> 'Channel':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Output]:
        while True:
            piece = self.read()
            if piece is None:
                return
            yield piece

    def _pump(self, data: bytes) -> None:
        messages = Messages()
        end: Optional[HoltError] = None
        try:
            while True:
                for opcode, payload in messages.feed(data):
                    if opcode == PING:
                        self._frame(PONG, payload)
                    elif opcode == CLOSE:
                        self._frame(CLOSE, payload[:2])
                        return
                    elif opcode in (TEXT, BINARY):
                        piece = core.heard(self._collected, opcode == TEXT, payload)
                        if piece is not None:
                            self._put(piece)
                data = self._wire.receive_beside()
                if not data:
                    raise ProtocolError('the connection ended')
        except HoltError as e:
            end = e
        except (*_BROKEN, ValueError) as e:
            if self._collected.result is None:
                end = TransportError(f'the connection broke: {e}', code='connection_lost')
        finally:
            self._wire.close()
            self._put(end)

    def _put(self, what: Union[Output, HoltError, None]) -> None:
        while not self._closed:
            try:
                self._got.put(what, timeout=0.5)
                return
            except queue.Full:
                pass

    def _frame(self, opcode: int, data: bytes) -> None:
        try:
            with self._write_lock:
                self._wire.send_beside(encode_frame(opcode, data), time.monotonic() + core.WAIT)
        except OSError as e:
            raise TransportError(f'the connection broke: {e}', code='connection_lost') from None

    def read(self, timeout: Optional[float] = None) -> Optional[Output]:
        """The next output; None at the end, or if none came within `timeout` seconds (None: no
        limit).
        """
        if self._over:
            self._finish()
            return None
        try:
            what = self._got.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(what, Output):
            return what
        self._over, self._end = True, what
        self._finish()
        return None

    def _finish(self) -> None:
        if self._end is not None:
            raise self._end

    def write(self, data: Data) -> None:
        """Standard input; of a terminal, what is typed. A command that does not read blocks this,
        up to 60 s.
        """
        data = data.encode() if isinstance(data, str) else data
        for at in range(0, len(data), core.INPUT_PIECE):
            self._frame(BINARY, b'\0' + data[at:at + core.INPUT_PIECE])

    def close_stdin(self) -> None:
        """The end of standard input; a terminal gets its end-of-file character."""
        self._frame(TEXT, core.word(stdin_close=True))

    def resize(self, cols: int, rows: int) -> None:
        """Another size of the terminal."""
        self._frame(TEXT, core.word(resize={'cols': cols, 'rows': rows}))

    def signal(self, number: int) -> None:
        """A signal for the process group of the command."""
        self._frame(TEXT, core.word(signal=number))

    def wait(self, timeout: Optional[float] = None) -> CommandResult:
        """Reads to the end; how the command ended, with at most 1 MiB of each stream.

        Raises TimedOutError after `timeout` seconds (None: no limit), and the command goes on;
        GuestError where it never ran or its sandbox ended; TransportError if the hub went away.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while not self._over:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                raise core.wait_over(timeout)
            self.read(left)
        self._finish()
        return self._collected.ended()

    def close(self) -> None:
        """Ends the connection."""
        self._closed = True
        self._wire.end()
        self._thread.join(5)
