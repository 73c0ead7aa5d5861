"""AsyncSandbox: what sandbox.py has, for asyncio. Docstrings are those of Sandbox."""

from __future__ import annotations

import logging
from typing import (TYPE_CHECKING, Any, AsyncIterator, Iterable, List, Mapping, Optional, Sequence,
                    Tuple, Type, Union)

from . import _core as core
from ._core import FILE_MAX, OUTPUT_MAX, Collected, Secrets, Steps, T
from . import sandbox as blocking
from .async_client import (AsyncBytes, AsyncChannel, AsyncClient, AsyncCommandStream, AsyncEvents,
                           share_docs)
from .errors import CleanupError, HoltError
from .types import (Change, Command, CommandOptions, CommandResult, Data, FileInfo, Forward,
                    HttpRule, Limits, NetworkInfo, NetworkPolicy, OnOutput, Output, PortResponse,
                    Preview, ProcessInfo, SandboxInfo, SnapshotInfo, Terminal, Volume, WatchEvent,
                    cleanup_error_of)

if TYPE_CHECKING:
    from typing_extensions import Unpack

log = logging.getLogger('holt')


class _Part:
    """What a sandbox has."""

    def __init__(self, client: AsyncClient, sandbox: str) -> None:
        self._client, self._sandbox = client, sandbox

    async def _do(self, steps: Steps[T]) -> T:
        return await self._client._run(steps)


class AsyncFiles(_Part):
    """As Files."""

    async def read(self, path: str, *, max_bytes: int = FILE_MAX) -> str:
        return await self._do(core.read_text(self._sandbox, path, max_bytes))

    async def read_bytes(self, path: str, *, max_bytes: int = FILE_MAX) -> bytes:
        return await self._do(core.read_file(self._sandbox, path, max_bytes))

    async def write(self, path: str, data: Data, *, mode: Optional[int] = None) -> None:
        await self._do(core.write_file(self._sandbox, path, data, mode))

    async def list(self, path: str = '.', *, limit: Optional[int] = None) -> List[FileInfo]:
        return await self._do(core.list_files(self._sandbox, path, limit))

    async def stat(self, path: str) -> FileInfo:
        return await self._do(core.stat_file(self._sandbox, path))

    async def exists(self, path: str) -> bool:
        return await self._do(core.exists(self._sandbox, path))

    async def mkdir(self, path: str) -> None:
        await self._do(core.make_dir(self._sandbox, path))

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        await self._do(core.remove_file(self._sandbox, path, recursive))

    async def rename(self, path: str, to: str) -> None:
        await self._do(core.rename_file(self._sandbox, path, to))

    async def watch(self,
                    path: Optional[str] = None,
                    *,
                    recursive: bool = False) -> AsyncEvents[WatchEvent]:
        stream = await self._client._stream(core.watch(self._sandbox, path, recursive))
        events = AsyncEvents(stream, core.watch_event)
        await events.get()  # ready: nothing is missed from here on
        return events

    async def download(self, path: Optional[str] = None, named: bool = False) -> AsyncBytes:
        return AsyncBytes(await self._client._stream(core.download(self._sandbox, path, named)))

    async def upload(self,
                     path: str,
                     tar: Union[bytes, Iterable[bytes]],
                     *,
                     timeout: float = 600.0) -> None:
        await self._do(core.upload(self._sandbox, path, tar, timeout))


class AsyncProcess(_Part):
    """As Process."""

    def __init__(self,
                 client: AsyncClient,
                 sandbox: str,
                 id: str,
                 audit_id: Optional[str] = None) -> None:
        super().__init__(client, sandbox)
        self.id = id
        #: Names the record of the call that started it; None if it was found by its id.
        self.audit_id = audit_id

    def __repr__(self) -> str:
        return f'AsyncProcess({self.id!r} in {self._sandbox!r})'

    async def __aiter__(self) -> AsyncIterator[Output]:
        async with await self.follow() as output:
            async for piece in output:
                yield piece

    async def info(self) -> ProcessInfo:
        return await self._do(core.process_info(self._sandbox, self.id))

    async def output(self,
                     offset: int = 0,
                     *,
                     limit: Optional[int] = None,
                     stream: Optional[str] = None) -> Tuple[List[Output], int, bool]:
        return await self._do(core.read_output(self._sandbox, self.id, offset, limit, stream))

    async def follow(self, offset: int = 0, *, stream: Optional[str] = None) -> AsyncCommandStream:
        call = core.follow(self._sandbox, self.id, offset, stream)
        return AsyncCommandStream(await self._client._stream(call),
                                  Collected(OUTPUT_MAX, self.audit_id, self.id))

    async def wait(self,
                   timeout_seconds: Optional[int] = None,
                   *,
                   max_output_bytes: int = OUTPUT_MAX,
                   check: bool = False) -> CommandResult:
        steps = core.wait_end(self._sandbox, self.id, timeout_seconds, max_output_bytes,
                              self.audit_id)
        result = await self._do(steps)
        return result.check() if check else result

    async def wait_for(self,
                       text: Optional[str] = None,
                       *,
                       pattern: Optional[str] = None,
                       timeout_seconds: int = 30) -> bool:
        return await self._do(core.wait_for(self._sandbox, self.id, text, pattern,
                                            timeout_seconds))

    async def write(self, data: Data, *, close: bool = False) -> None:
        await self._do(core.send_input(self._sandbox, self.id, data, close))

    async def resize(self, cols: int, rows: int) -> None:
        await self._do(core.resize(self._sandbox, self.id, cols, rows))

    async def signal(self, number: int = 15) -> None:
        await self._do(core.send_signal(self._sandbox, self.id, number))

    async def kill(self) -> bool:
        return await self._do(core.kill_command(self._sandbox, self.id))

    async def attach(self, offset: Optional[int] = None) -> AsyncChannel:
        return await self._client._channel(core.attach(self._sandbox, self.id, offset))


class AsyncCommands(_Part):
    """As Commands."""

    async def run(self,
                  command: Command,
                  *,
                  timeout_seconds: int = 30,
                  max_output_bytes: int = OUTPUT_MAX,
                  stdin: Optional[Data] = None,
                  on_stdout: Optional[OnOutput] = None,
                  on_stderr: Optional[OnOutput] = None,
                  check: bool = False,
                  **options: Unpack[CommandOptions]) -> CommandResult:
        body = core.exec_body(command, options, timeout_seconds, stdin)
        if on_stdout is None and on_stderr is None:
            body['max_output_bytes'] = max_output_bytes
            result = await self._do(core.run_command(self._sandbox, body))
        else:
            async with await self._stream(core.stream_command(self._sandbox, body),
                                          max_output_bytes) as output:
                async for piece in output:
                    take = on_stdout if piece.stream == 'stdout' else on_stderr
                    if take is not None:
                        take(piece.data)
                result = output.result
        return result.check() if check else result

    async def stream(self,
                     command: Command,
                     *,
                     timeout_seconds: int = 30,
                     max_output_bytes: int = OUTPUT_MAX,
                     stdin: Optional[Data] = None,
                     **options: Unpack[CommandOptions]) -> AsyncCommandStream:
        body = core.exec_body(command, options, timeout_seconds, stdin)
        return await self._stream(core.stream_command(self._sandbox, body), max_output_bytes)

    async def code(self,
                   code: str,
                   language: str = 'python',
                   *,
                   timeout_seconds: int = 60) -> AsyncCommandStream:
        return await self._stream(core.stream_code(self._sandbox, code, language, timeout_seconds),
                                  OUTPUT_MAX)

    async def _stream(self, call: core.Call, most: int) -> AsyncCommandStream:
        stream = await self._client._stream(call)
        return AsyncCommandStream(stream, Collected(most, stream.head.fields.get('audit-id')))

    async def start(self,
                    command: Command,
                    *,
                    timeout_seconds: Optional[int] = None,
                    stdin: Optional[Data] = None,
                    stdin_open: bool = False,
                    terminal: Optional[Terminal] = None,
                    id: Optional[str] = None,
                    keep_bytes: Optional[int] = None,
                    **options: Unpack[CommandOptions]) -> AsyncProcess:
        body = core.exec_body(command,
                              options,
                              timeout_seconds,
                              stdin,
                              stdin_open=stdin_open or None,
                              tty=terminal and core.terminal_json(terminal),
                              exec_id=id,
                              keep_bytes=keep_bytes)
        found, audit_id = await self._do(core.start_command(self._sandbox, body))
        return AsyncProcess(self._client, self._sandbox, found, audit_id)

    def connect(self, id: str) -> AsyncProcess:
        return AsyncProcess(self._client, self._sandbox, id)

    async def list(self) -> List[ProcessInfo]:
        return await self._do(core.list_commands(self._sandbox))

    async def open(self,
                   command: Command,
                   *,
                   timeout_seconds: Optional[int] = None,
                   terminal: Optional[Terminal] = None,
                   **options: Unpack[CommandOptions]) -> AsyncChannel:
        body = core.exec_body(command, options, timeout_seconds)
        if terminal:
            body['tty'] = core.terminal_json(terminal)
        return await self._client._channel(core.open_command(self._sandbox, body))


class AsyncPorts(_Part):
    """As Ports."""

    async def forward(self, guest_port: int, host_port: Optional[int] = None) -> Forward:
        return await self._do(core.forward(self._sandbox, guest_port, host_port))

    async def list(self) -> List[Forward]:
        return await self._do(core.forwards(self._sandbox))

    async def close(self, guest_port: Optional[int] = None) -> None:
        await self._do(core.unforward(self._sandbox, guest_port))

    async def preview(self, port: int, ttl_seconds: Optional[int] = None) -> Preview:
        return await self._do(core.preview(self._sandbox, port, ttl_seconds))

    async def expose(self,
                     port: int,
                     path: str = '/',
                     *,
                     method: str = 'GET',
                     headers: Optional[Mapping[str, str]] = None,
                     body: Optional[bytes] = None,
                     max_bytes: int = core.ANSWER_MAX) -> PortResponse:
        call = core.expose(self._sandbox, port, path, method, body)
        async with await self._client._open(call, dict(headers or {})) as stream:
            return PortResponse(stream.head.status, stream.head.fields, await
                                stream.read_all(max_bytes))


class AsyncNetwork(_Part):
    """As Network."""

    async def get(self) -> NetworkInfo:
        return await self._do(core.get_network(self._sandbox))

    async def set(self, policy: NetworkPolicy, revision: Optional[int] = None) -> NetworkInfo:
        return await self._do(core.set_network(self._sandbox, policy, revision))

    async def allow(self,
                    host: str,
                    port: Optional[int] = None,
                    http: Sequence[HttpRule] = ()) -> NetworkInfo:
        return await self._do(
            core.change_network(self._sandbox, lambda p: p.allow(host, port, http)))

    async def revoke(self, host: str, port: Optional[int] = None) -> NetworkInfo:
        return await self._do(core.change_network(self._sandbox, lambda p: p.revoke(host, port)))


class AsyncSandbox(_Part):
    """As Sandbox, with `async with await AsyncSandbox.create(…) as sandbox:`."""

    def __init__(self,
                 client: AsyncClient,
                 id: str,
                 *,
                 owned: bool = False,
                 own_client: bool = False) -> None:
        super().__init__(client, id)
        self.id = id
        self.client = client
        self._owned = owned
        self._own_client = own_client
        self.files = AsyncFiles(client, id)
        self.commands = AsyncCommands(client, id)
        self.ports = AsyncPorts(client, id)
        self.network = AsyncNetwork(client, id)

    def __repr__(self) -> str:
        return f'AsyncSandbox({self.id!r})'

    @classmethod
    async def create(cls: 'Type[AsyncSandbox]',
                     image: str = 'host',
                     *,
                     network: Optional[NetworkPolicy] = None,
                     ttl_seconds: int = 3600,
                     idle_seconds: Optional[int] = None,
                     id: Optional[str] = None,
                     env: Optional[Mapping[str, str]] = None,
                     cwd: Optional[str] = None,
                     user: Optional[str] = None,
                     limits: Optional[Limits] = None,
                     labels: Optional[Mapping[str, str]] = None,
                     secrets: Optional[Secrets] = None,
                     volumes: Optional[Sequence[Volume]] = None,
                     workspace: Optional[str] = None,
                     workspace_mode: Optional[str] = None,
                     profiles: Optional[Sequence[str]] = None,
                     modules: Optional[Sequence[str]] = None,
                     retention: Optional[str] = None,
                     debug: Optional[bool] = None,
                     client: Optional[AsyncClient] = None) -> 'AsyncSandbox':
        own, client = client is None, client or AsyncClient()
        made = await client._run(
            core.create(image,
                        network or NetworkPolicy.deny_by_default(),
                        ttl_seconds,
                        limits,
                        secrets,
                        volumes,
                        id=id,
                        idle_seconds=idle_seconds,
                        env=env,
                        cwd=cwd,
                        user=user,
                        labels=labels,
                        workspace=workspace,
                        workspace_mode=workspace_mode,
                        profiles=profiles,
                        modules=modules,
                        retention=retention,
                        debug=debug))
        return cls(client, made.id, owned=True, own_client=own)

    @classmethod
    async def connect(cls: 'Type[AsyncSandbox]',
                      id: str,
                      *,
                      client: Optional[AsyncClient] = None) -> 'AsyncSandbox':
        own, client = client is None, client or AsyncClient()
        await client._run(core.info(id, False))
        return cls(client, id, own_client=own)

    @classmethod
    async def list(cls,
                   *,
                   state: Optional[str] = None,
                   labels: Optional[Sequence[str]] = None,
                   client: Optional[AsyncClient] = None) -> List[SandboxInfo]:
        if client:
            return await client._run(core.list_sandboxes(state, labels))
        async with AsyncClient() as own:
            return await own._run(core.list_sandboxes(state, labels))

    @classmethod
    async def restore(cls: 'Type[AsyncSandbox]',
                      snapshot: str,
                      n: int = 1,
                      *,
                      ids: Optional[Sequence[str]] = None,
                      labels: Optional[Mapping[str, str]] = None,
                      client: Optional[AsyncClient] = None) -> 'List[AsyncSandbox]':
        client = client or AsyncClient()
        return cls._copies(client, await client._run(core.restore(snapshot, n, ids, labels)))

    @classmethod
    def _copies(cls: 'Type[AsyncSandbox]', client: AsyncClient,
                made: Sequence[SandboxInfo]) -> 'List[AsyncSandbox]':
        return [cls(client, m.id, owned=True) for m in made]

    async def info(self, *, usage: bool = False) -> SandboxInfo:
        return await self._do(core.info(self.id, usage))

    async def fork(self,
                   n: int = 1,
                   *,
                   ids: Optional[Sequence[str]] = None,
                   labels: Optional[Mapping[str, str]] = None) -> 'List[AsyncSandbox]':
        return self._copies(self.client, await self._do(core.fork(self.id, n, ids, labels)))

    async def snapshot(self,
                       name: Optional[str] = None,
                       *,
                       ttl_seconds: Optional[int] = None) -> SnapshotInfo:
        return await self._do(core.take_snapshot(self.id, name, ttl_seconds))

    async def pause(self) -> str:
        return await self._do(core.pause(self.id, 'pause'))

    async def resume(self) -> str:
        return await self._do(core.pause(self.id, 'resume'))

    async def stop(self, *, cold: bool = False) -> SandboxInfo:
        return await self._do(core.stop(self.id, cold))

    async def set_timeout(self, seconds: int) -> int:
        return await self._do(core.set_timeout(self.id, seconds))

    async def diff(self, *, limit: Optional[int] = None) -> List[Change]:
        return await self._do(core.diff(self.id, limit))

    async def pty(self,
                  command: Optional[Command] = None,
                  *,
                  terminal: Terminal = Terminal(),
                  timeout_seconds: Optional[int] = None,
                  **options: Unpack[CommandOptions]) -> AsyncChannel:
        body = core.exec_body(command, options, timeout_seconds)
        body['tty'] = core.terminal_json(terminal)
        return await self._client._channel(core.open_terminal(self.id, body))

    async def kill(self, *, discard: bool = False) -> bool:
        ended = await self._do(core.kill(self.id, discard))
        self._owned = False
        return ended

    async def close(self) -> None:
        try:
            if self._owned:
                await self.kill()
        except HoltError as e:
            raise cleanup_error_of(self.id, e) from e
        finally:
            if self._own_client:
                await self.client.close()

    async def __aenter__(self) -> 'AsyncSandbox':
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], *_: Any) -> None:
        try:
            await self.close()
        except CleanupError as e:
            if kind is None:
                raise
            log.warning('sandbox %s could not be ended: %s', self.id,
                        e)  # what failed in the block counts


share_docs({
    AsyncFiles: blocking.Files,
    AsyncProcess: blocking.Process,
    AsyncCommands: blocking.Commands,
    AsyncPorts: blocking.Ports,
    AsyncNetwork: blocking.Network,
    AsyncSandbox: blocking.Sandbox
})
