"""The client for asyncio: the same calls as client.py, over streams of the running loop."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import (Any, AsyncIterator, Callable, Deque, Dict, Generic, List, Optional, TypeVar,
                    Union)

from . import _core as core
from ._call import ASK, ERROR_MAX, IDLE, IDLE_CONNECTIONS, Hub, Request, tune
from ._core import Answer, Call, Collected, Opening, Steps
from ._http import BINARY, CLOSE, PING, PONG, TEXT, Head, Messages, ProtocolError, Response
from ._http import encode_chunk, encode_frame
from . import client as blocking
from .errors import HoltError, TransportError
from .types import CommandResult, Data, Output, RunRequest, RunResult, SnapshotInfo

T = TypeVar('T')
_BROKEN = (OSError, ProtocolError, asyncio.TimeoutError)
_PIECE = 256 << 10


class _Wire:
    """One connection, for one call at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.idle_since = 0.0
        self.loop = asyncio.get_running_loop()

    @classmethod
    async def connect(cls, hub: Hub, timeout: float) -> '_Wire':
        e = hub.endpoint
        if e.unix:
            opening = asyncio.open_unix_connection(e.unix)
        else:
            opening = asyncio.open_connection(e.host,
                                              e.port,
                                              ssl=hub.tls,
                                              server_hostname=e.host if hub.tls else None)
        reader, writer = await asyncio.wait_for(opening, timeout)
        if not e.unix:
            tune(writer.get_extra_info('socket'))
        return cls(reader, writer)

    async def send(self, data: bytes, deadline: Optional[float]) -> None:
        self._writer.write(data)
        await asyncio.wait_for(self._writer.drain(), _left(deadline))

    async def receive(self, deadline: Optional[float]) -> bytes:
        return await asyncio.wait_for(self._reader.read(_PIECE), _left(deadline))

    def is_fresh(self) -> bool:
        """Of this loop, and nothing came meanwhile, as far as that is known."""
        return (self.loop is asyncio.get_running_loop()
                and time.monotonic() - self.idle_since < IDLE and not self._reader.at_eof()
                and not self._writer.is_closing())

    def close(self) -> None:
        if not self.loop.is_closed():
            self._writer.close()


def _left(deadline: Optional[float]) -> Optional[float]:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise asyncio.TimeoutError('its time is over')
    return left


class AsyncClient:
    """A hub and the connections to it, as Client. A call that is cancelled ends its connection,
    and with it
    what the hub does for it."""

    def __init__(self,
                 base_url: Optional[str] = None,
                 api_key: Optional[str] = None,
                 *,
                 request_timeout: float = 60.0,
                 retries: int = 2) -> None:
        self._hub = Hub(base_url, api_key, request_timeout, retries)
        self._idle: Deque[_Wire] = deque()

    def __repr__(self) -> str:
        return f'AsyncClient({self._hub!r})'

    async def __aenter__(self) -> 'AsyncClient':
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
        await asyncio.sleep(0)  # the loop closes them in its next turn

    async def health(self) -> Dict[str, Any]:
        return await self._run(core.health())

    async def templates(self) -> List[str]:
        return await self._run(core.templates())

    async def run(self, request: RunRequest) -> RunResult:
        return await self._run(core.run(request))

    async def snapshots(self) -> List[SnapshotInfo]:
        return await self._run(core.snapshots())

    async def snapshot(self, id: str) -> SnapshotInfo:
        return await self._run(core.snapshot(id))

    async def delete_snapshot(self, id: str) -> bool:
        return await self._run(core.delete_snapshot(id))

    async def audit_record(self, audit_id: str) -> Dict[str, Any]:
        return await self._run(core.audit_record(audit_id))

    # ---- how

    async def _run(self, steps: Steps[T]) -> T:
        try:
            call = next(steps)
            while True:
                answer: Union[Answer, HoltError]
                try:
                    answer = await self._ask(call)
                except HoltError as e:
                    answer = e
                call = core.advance(steps, answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    async def _ask(self, call: Call) -> Answer:
        attempt = 0
        while True:
            try:
                async with await self._open(call) as stream:
                    body = await stream.read_all(call.answer_max)
                return self._hub.answer(stream.head, body)
            except HoltError as e:
                pause = core.retry_pause(call, e, attempt, self._hub.retries)
                if pause is None:
                    raise
            attempt += 1
            await asyncio.sleep(pause)

    async def _wire(self) -> _Wire:
        while self._idle:
            wire = self._idle.pop()
            if wire.is_fresh():
                return wire
            wire.close()
        try:
            return await _Wire.connect(self._hub, self._hub.request_timeout)
        except (OSError, asyncio.TimeoutError) as e:
            raise self._hub.unreachable(e) from None

    def _keep(self, wire: _Wire) -> None:
        wire.idle_since = time.monotonic()
        if len(self._idle) < IDLE_CONNECTIONS:
            self._idle.append(wire)
        else:
            wire.close()

    async def _open(self, call: Call, headers: Optional[Dict[str, str]] = None) -> 'AsyncStream':
        request = self._hub.request(call, headers)
        wire = await self._wire()
        stream = AsyncStream(self, wire, call,
                             time.monotonic() + (call.timeout or self._hub.request_timeout))
        try:
            await stream.start(request)
        except BaseException:
            wire.close()
            raise
        return stream

    async def _stream(self, call: Call) -> 'AsyncStream':
        stream = await self._open(call)
        if stream.head.status != 200:
            async with stream:
                raise self._hub.refusal(stream.head, await stream.read_all(ERROR_MAX))
        if call.timeout is None:
            stream.deadline = None
        return stream

    async def _channel(self, opening: Opening) -> 'AsyncChannel':
        request, accept = self._hub.upgrade(opening)
        wire = await self._wire()
        stream = AsyncStream(self, wire, opening.call,
                             time.monotonic() + self._hub.request_timeout)
        try:
            await stream.start(Request(request, b''))
            if stream.head.status != 101:
                raise self._hub.refusal(stream.head, await stream.read_all(ERROR_MAX))
            if stream.head.fields.get('sec-websocket-accept') != accept:
                raise TransportError('the answer is no WebSocket of a hub', code='bad_answer')
            channel = AsyncChannel(wire, stream)
            if opening.first is not None:
                await channel._frame(TEXT, core.word(open=opening.first))
            return channel
        except BaseException:
            wire.close()
            raise


class AsyncStream:
    """An answer as it comes."""

    head: Head

    def __init__(self, client: AsyncClient, wire: _Wire, call: Call,
                 deadline: Optional[float]) -> None:
        self._client, self._wire, self._call = client, wire, call
        self._response = Response()
        self._first = b''
        self._closed = False
        self._sent = False
        self.deadline = deadline

    async def __aenter__(self) -> 'AsyncStream':
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    async def start(self, request: Request) -> None:
        lost: Optional[Exception] = None
        try:
            self._sent = await self._send(request)
        except (BrokenPipeError, ConnectionResetError) as e:
            lost = e  # the hub may have refused it before all of it was sent
        except _BROKEN as e:
            raise self._client._hub.lost(self._call, e) from None
        try:
            while self._response.head is None:
                self._first += self._response.feed(await self._wire.receive(self.deadline))
        except _BROKEN as e:
            raise self._client._hub.lost(self._call, lost or e) from None
        self.head = self._response.head

    async def _send(self, request: Request) -> bool:
        """Whether all of it has left."""
        if isinstance(request.body, bytes) and not request.asks:
            await self._wire.send(request.head + request.body, self.deadline)
            return True
        await self._wire.send(request.head, self.deadline)
        if isinstance(request.body, bytes):
            wanted = await self._is_wanted()
            if wanted:
                await self._wire.send(request.body, self.deadline)
            return wanted
        for piece in request.body:
            if piece:
                await self._wire.send(encode_chunk(piece), self.deadline)
        await self._wire.send(encode_chunk(b''), self.deadline)
        return True

    async def _is_wanted(self) -> bool:
        """Whether the hub has not refused the body by its head; a proxy may say nothing."""
        until = time.monotonic() + ASK
        while self._response.head is None and not self._response.goes_on:
            try:
                came = await self._wire.receive(until)
            except asyncio.TimeoutError:
                return True
            self._first += self._response.feed(came)
        return self._response.head is None

    async def read(self, timeout: Optional[float] = None) -> Optional[bytes]:
        """The next bytes of the body; b"" at its end; None if none came in time."""
        until = None if timeout is None else time.monotonic() + timeout
        data, self._first = self._first, b''
        try:
            while not data and not self._response.done:
                try:
                    came = await self._wire.receive(self.deadline if until is None else until)
                except asyncio.TimeoutError:
                    if until is None:
                        raise
                    return None
                data = self._response.feed(came)
        except _BROKEN as e:
            if self._closed:
                return b''
            raise self._client._hub.lost(self._call, e) from None
        return data

    async def read_all(self, most: int) -> bytes:
        body = bytearray()
        while True:
            data = await self.read()
            if not data:
                return bytes(body)
            body += data
            if len(body) > most:
                raise TransportError(f'the answer has more than {most} bytes',
                                     code='answer_too_large')

    def rest(self) -> bytes:
        return self._first + self._response.rest()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._response.keeps and self._sent:
            self._client._keep(self._wire)
        else:
            self._wire.close()


class AsyncEvents(Generic[T]):
    """As Events, for `async for` and `async with`."""

    def __init__(self, stream: AsyncStream, make: Callable[[Dict[str, Any]], Optional[T]]) -> None:
        self._stream, self._make = stream, make
        self._lines = core.Lines()
        self._ready: Deque[Dict[str, Any]] = deque()
        self._over = False

    async def __aenter__(self: '_E') -> '_E':
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[T]:
        while True:
            event = await self.get()
            if event is None:
                return
            yield event

    async def get(self, timeout: Optional[float] = None) -> Optional[T]:
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            while self._ready:
                event = core.told(self._make, self._ready.popleft())
                if event is not None:
                    return event
            if self._over:
                return None
            left = None if until is None else until - time.monotonic()
            data = None if left is not None and left <= 0 else await self._stream.read(left)
            if data is None:
                return None
            if data:
                self._ready.extend(self._lines.feed(data))
            else:
                self._over = True
                await self.close()

    async def close(self) -> None:
        self._stream.close()


_E = TypeVar('_E', bound='AsyncEvents[Any]')


class AsyncCommandStream(AsyncEvents[Output]):
    """As CommandStream."""

    def __init__(self, stream: AsyncStream, collected: Collected) -> None:
        super().__init__(stream, collected.line)
        self._collected = collected

    async def wait(self) -> CommandResult:
        async for _ in self:
            pass
        return self.result

    @property
    def result(self) -> CommandResult:
        return self._collected.ended()


class AsyncBytes:
    """As Bytes."""

    def __init__(self, stream: AsyncStream) -> None:
        self._stream = stream

    async def __aenter__(self) -> 'AsyncBytes':
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with self._stream:
            while True:
                data = await self._stream.read()
                if not data:
                    return
                yield data

    async def read(self) -> bytes:
        return b''.join([piece async for piece in self])

    async def close(self) -> None:
        self._stream.close()


class AsyncChannel:
    """As Channel; a task of the loop reads."""

    def __init__(self, wire: _Wire, stream: AsyncStream) -> None:
        self._wire = wire
        self._collected = Collected(core.OUTPUT_MAX, stream.head.fields.get('audit-id'))
        self._got: 'asyncio.Queue[Union[Output, HoltError, None]]' = asyncio.Queue(32)
        self._write_lock = asyncio.Lock()
        self._end: Optional[HoltError] = None
        self._over = False
        self._task = asyncio.get_running_loop().create_task(self._pump(stream.rest()))

    async def __aenter__(self) -> 'AsyncChannel':
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[Output]:
        while True:
            piece = await self.read()
            if piece is None:
                return
            yield piece

    async def _pump(self, data: bytes) -> None:
        messages = Messages()
        end: Optional[HoltError] = None
        try:
            while True:
                for opcode, payload in messages.feed(data):
                    if opcode == PING:
                        await self._frame(PONG, payload)
                    elif opcode == CLOSE:
                        await self._frame(CLOSE, payload[:2])
                        await self._got.put(None)
                        return
                    elif opcode in (TEXT, BINARY):
                        piece = core.heard(self._collected, opcode == TEXT, payload)
                        if piece is not None:
                            await self._got.put(piece)
                data = await self._wire.receive(None)
                if not data:
                    raise ProtocolError('the connection ended')
        except HoltError as e:
            end = e
        except (*_BROKEN, ValueError) as e:
            if self._collected.result is None:
                end = TransportError(f'the connection broke: {e}', code='connection_lost')
        await self._got.put(end)

    async def _frame(self, opcode: int, data: bytes) -> None:
        try:
            async with self._write_lock:
                await self._wire.send(encode_frame(opcode, data), time.monotonic() + core.WAIT)
        except _BROKEN as e:
            raise TransportError(f'the connection broke: {e}', code='connection_lost') from None

    async def read(self, timeout: Optional[float] = None) -> Optional[Output]:
        if self._over:
            self._finish()
            return None
        try:
            what = await asyncio.wait_for(self._got.get(), timeout)
        except asyncio.TimeoutError:
            return None
        if isinstance(what, Output):
            return what
        self._over, self._end = True, what
        self._finish()
        return None

    def _finish(self) -> None:
        if self._end is not None:
            raise self._end

    async def write(self, data: Data) -> None:
        data = data.encode() if isinstance(data, str) else data
        for at in range(0, len(data), core.INPUT_PIECE):
            await self._frame(BINARY, b'\0' + data[at:at + core.INPUT_PIECE])

    async def close_stdin(self) -> None:
        await self._frame(TEXT, core.word(stdin_close=True))

    async def resize(self, cols: int, rows: int) -> None:
        await self._frame(TEXT, core.word(resize={'cols': cols, 'rows': rows}))

    async def signal(self, number: int) -> None:
        await self._frame(TEXT, core.word(signal=number))

    async def wait(self, timeout: Optional[float] = None) -> CommandResult:
        until = None if timeout is None else time.monotonic() + timeout
        while not self._over:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                raise core.wait_over(timeout)
            await self.read(left)
        self._finish()
        return self._collected.ended()

    async def close(self) -> None:
        self._task.cancel()
        self._wire.close()
        await asyncio.wait([self._task])


def share_docs(pairs: Dict[type, type]) -> None:
    """Methods of asynchronous classes are described where they block."""
    for cls, blocking in pairs.items():
        for name, method in vars(cls).items():
            said = getattr(getattr(blocking, name, None), '__doc__', None)
            method = getattr(method, '__func__', method)  # of a class method
            if callable(method) and not method.__doc__ and not name.startswith('_') and said:
                method.__doc__ = said


share_docs({
    AsyncClient: blocking.Client,
    AsyncEvents: blocking.Events,
    AsyncCommandStream: blocking.CommandStream,
    AsyncBytes: blocking.Bytes,
    AsyncChannel: blocking.Channel
})
