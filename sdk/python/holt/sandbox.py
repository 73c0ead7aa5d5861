"""Sandbox: the blocking face."""

from __future__ import annotations

import logging
from typing import (TYPE_CHECKING, Any, Iterable, Iterator, List, Mapping, Optional, Sequence,
                    Tuple, Type, Union)

from . import _core as core
from ._core import FILE_MAX, OUTPUT_MAX, Collected, Secrets, Steps, T
from .client import Bytes, Channel, Client, CommandStream, Events
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

    def __init__(self, client: Client, sandbox: str) -> None:
        self._client, self._sandbox = client, sandbox

    def _do(self, steps: Steps[T]) -> T:
        return self._client._run(steps)


class Files(_Part):
    """Files of a sandbox. A path is absolute, or counts from its working directory, /workspace."""

    def read(self, path: str, *, max_bytes: int = FILE_MAX) -> str:
        """The text of a file, which has to be UTF-8.

        Raises NotFoundError, and ValidationError if it is no text or has more than max_bytes (256
        MiB).
        """
        return self._do(core.read_text(self._sandbox, path, max_bytes))

    def read_bytes(self, path: str, *, max_bytes: int = FILE_MAX) -> bytes:
        """The bytes of a file. Secrets in it are redacted, as in all that the hub answers."""
        return self._do(core.read_file(self._sandbox, path, max_bytes))

    def write(self, path: str, data: Data, *, mode: Optional[int] = None) -> None:
        """Replaces a file, or makes it with the permission bits `mode` (0o644) and the directories
        above it.

        At most 32 MiB as JSON: about 24 MiB of bytes. upload() takes more.
        """
        self._do(core.write_file(self._sandbox, path, data, mode))

    def list(self, path: str = '.', *, limit: Optional[int] = None) -> List[FileInfo]:
        """A directory by name, at most 1024 entries."""
        return self._do(core.list_files(self._sandbox, path, limit))

    def stat(self, path: str) -> FileInfo:
        """What a path is. Raises NotFoundError."""
        return self._do(core.stat_file(self._sandbox, path))

    def exists(self, path: str) -> bool:
        """Whether there is something at a path."""
        return self._do(core.exists(self._sandbox, path))

    def mkdir(self, path: str) -> None:
        """Makes a directory and those above it. One that is there is no error."""
        self._do(core.make_dir(self._sandbox, path))

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Removes a file or an empty directory; recursive: with all that is in it."""
        self._do(core.remove_file(self._sandbox, path, recursive))

    def rename(self, path: str, to: str) -> None:
        """Moves a file or a directory; a file that is at `to` is replaced."""
        self._do(core.rename_file(self._sandbox, path, to))

    def watch(self, path: Optional[str] = None, *, recursive: bool = False) -> Events[WatchEvent]:
        """What happens in a directory from now on (None: the working directory), until it is
        closed.

        It keeps the sandbox busy. get(timeout) gives one event.
        """
        stream = self._client._stream(core.watch(self._sandbox, path, recursive))
        events = Events(stream, core.watch_event)
        events.get()  # ready: nothing is missed from here on
        return events

    def download(self, path: Optional[str] = None, named: bool = False) -> Bytes:
        """A directory with all that is in it, or a file, as a tar archive that comes in pieces.
        named: with the directory's name in front of all others."""
        return Bytes(self._client._stream(core.download(self._sandbox, path, named)))

    def upload(self,
               path: str,
               tar: Union[bytes, Iterable[bytes]],
               *,
               timeout: float = 600.0) -> None:
        """Unpacks a tar archive in the directory `path`, within `timeout` seconds."""
        self._do(core.upload(self._sandbox, path, tar, timeout))


class Process(_Part):
    """A command in the background, by its id. It outlives this object and the connection."""

    def __init__(self,
                 client: Client,
                 sandbox: str,
                 id: str,
                 audit_id: Optional[str] = None) -> None:
        super().__init__(client, sandbox)
        self.id = id
        #: Names the record of the call that started it; None if it was found by its id.
        self.audit_id = audit_id

    def __repr__(self) -> str:
        return f'Process({self.id!r} in {self._sandbox!r})'

    def __iter__(self) -> Iterator[Output]:
        with self.follow() as output:
            yield from output

    def info(self) -> ProcessInfo:
        """Its state, how it ended, how much it has printed."""
        return self._do(core.process_info(self._sandbox, self.id))

    def output(self,
               offset: int = 0,
               *,
               limit: Optional[int] = None,
               stream: Optional[str] = None) -> Tuple[List[Output], int, bool]:
        """What there is of its output from `offset` on: pieces, where to go on, and whether it was
        all.

        limit: bytes at once, at most 4 MiB, 1 MiB if None. stream: stdout or stderr alone.
        """
        return self._do(core.read_output(self._sandbox, self.id, offset, limit, stream))

    def follow(self, offset: int = 0, *, stream: Optional[str] = None) -> CommandStream:
        """Its output from `offset` on as it comes, to its end. Closing leaves it running."""
        call = core.follow(self._sandbox, self.id, offset, stream)
        return CommandStream(self._client._stream(call),
                             Collected(OUTPUT_MAX, self.audit_id, self.id))

    def wait(self,
             timeout_seconds: Optional[int] = None,
             *,
             max_output_bytes: int = OUTPUT_MAX,
             check: bool = False) -> CommandResult:
        """Waits for its end (None: as long as it takes), then reads its output.

        Raises TimedOutError (code wait_timeout) if it goes on; GuestError if it never ran or its
        sandbox ended.
        """
        steps = core.wait_end(self._sandbox, self.id, timeout_seconds, max_output_bytes,
                              self.audit_id)
        result = self._do(steps)
        return result.check() if check else result

    def wait_for(self,
                 text: Optional[str] = None,
                 *,
                 pattern: Optional[str] = None,
                 timeout_seconds: int = 30) -> bool:
        """Waits until it has printed a text, or a line that a regular expression matches.

        False: it ended before. Raises TimedOutError (code wait_timeout).
        """
        return self._do(core.wait_for(self._sandbox, self.id, text, pattern, timeout_seconds))

    def write(self, data: Data, *, close: bool = False) -> None:
        """Standard input, at most 1 MiB that it has not read yet; beyond that LimitError. close:
        it ends there.
        """
        self._do(core.send_input(self._sandbox, self.id, data, close))

    def resize(self, cols: int, rows: int) -> None:
        """Another size of its terminal."""
        self._do(core.resize(self._sandbox, self.id, cols, rows))

    def signal(self, number: int = 15) -> None:
        """A signal for its process group."""
        self._do(core.send_signal(self._sandbox, self.id, number))

    def kill(self) -> bool:
        """Kills it with all its descendants, and forgets it and its output. False: there was none.
        """
        return self._do(core.kill_command(self._sandbox, self.id))

    def attach(self, offset: Optional[int] = None) -> Channel:
        """Its output from `offset` on (None: new output), its input and its terminal."""
        return self._client._channel(core.attach(self._sandbox, self.id, offset))


class Commands(_Part):
    """Commands in a sandbox: a line for the shell, or a list of a program and its arguments."""

    def run(self,
            command: Command,
            *,
            timeout_seconds: int = 30,
            max_output_bytes: int = OUTPUT_MAX,
            stdin: Optional[Data] = None,
            on_stdout: Optional[OnOutput] = None,
            on_stderr: Optional[OnOutput] = None,
            check: bool = False,
            **options: Unpack[CommandOptions]) -> CommandResult:
        """Runs a command to its end.

        timeout_seconds: then it is killed with all its descendants, and the result has timed_out;
            at most 86400.
        max_output_bytes: of stdout and of stderr each; of more the middle is left out. 1 KiB to 8
            MiB.
        options: CommandOptions, also of the methods below.
        on_stdout, on_stderr: are called with the bytes as they come.
        check: raise CommandError if it does not end with 0, and TimedOutError at its timeout.

        Raises GuestError if the program is not there. What raises ends the command, too.
        """
        body = core.exec_body(command, options, timeout_seconds, stdin)
        if on_stdout is None and on_stderr is None:
            body['max_output_bytes'] = max_output_bytes
            result = self._do(core.run_command(self._sandbox, body))
        else:
            with self._stream(core.stream_command(self._sandbox, body),
                              max_output_bytes) as output:
                for piece in output:
                    take = on_stdout if piece.stream == 'stdout' else on_stderr
                    if take is not None:
                        take(piece.data)
                result = output.result
        return result.check() if check else result

    def stream(self,
               command: Command,
               *,
               timeout_seconds: int = 30,
               max_output_bytes: int = OUTPUT_MAX,
               stdin: Optional[Data] = None,
               **options: Unpack[CommandOptions]) -> CommandStream:
        """The same as an iterator over Output; `result` behind its end. A slow reader stops the
        command.

        max_output_bytes: what `result` keeps.
        """
        body = core.exec_body(command, options, timeout_seconds, stdin)
        return self._stream(core.stream_command(self._sandbox, body), max_output_bytes)

    def code(self,
             code: str,
             language: str = 'python',
             *,
             timeout_seconds: int = 60) -> CommandStream:
        """Runs a program's text in python, bash or javascript, whose interpreter the image has to
        have.
        """
        return self._stream(core.stream_code(self._sandbox, code, language, timeout_seconds),
                            OUTPUT_MAX)

    def _stream(self, call: core.Call, most: int) -> CommandStream:
        stream = self._client._stream(call)
        return CommandStream(stream, Collected(most, stream.head.fields.get('audit-id')))

    def start(self,
              command: Command,
              *,
              timeout_seconds: Optional[int] = None,
              stdin: Optional[Data] = None,
              stdin_open: bool = False,
              terminal: Optional[Terminal] = None,
              id: Optional[str] = None,
              keep_bytes: Optional[int] = None,
              **options: Unpack[CommandOptions]) -> Process:
        """Starts a command in the background.

        timeout_seconds: None: it runs until it ends, or its sandbox does.
        stdin_open: write() sends more input. terminal: it runs on one, whose output is all stdout.
        keep_bytes: how much of its output the hub keeps; 64 MiB if None, of more the newest.
        """
        body = core.exec_body(command,
                              options,
                              timeout_seconds,
                              stdin,
                              stdin_open=stdin_open or None,
                              tty=terminal and core.terminal_json(terminal),
                              exec_id=id,
                              keep_bytes=keep_bytes)
        found, audit_id = self._do(core.start_command(self._sandbox, body))
        return Process(self._client, self._sandbox, found, audit_id)

    def connect(self, id: str) -> Process:
        """A command that was started, by its id. Asks nothing."""
        return Process(self._client, self._sandbox, id)

    def list(self) -> List[ProcessInfo]:
        """Those that run, and those that have ended lately, the newest first."""
        return self._do(core.list_commands(self._sandbox))

    def open(self,
             command: Command,
             *,
             timeout_seconds: Optional[int] = None,
             terminal: Optional[Terminal] = None,
             **options: Unpack[CommandOptions]) -> Channel:
        """Runs a command whose input is sent as it comes, until the channel is closed.

        timeout_seconds: None: a day.
        """
        body = core.exec_body(command, options, timeout_seconds)
        if terminal:
            body['tty'] = core.terminal_json(terminal)
        return self._client._channel(core.open_command(self._sandbox, body))


class Ports(_Part):
    """Servers in a sandbox, which listen at its 127.0.0.1 or ::1."""

    def forward(self, guest_port: int, host_port: Optional[int] = None) -> Forward:
        """Connects a port of 127.0.0.1 on the hub's machine to one of the sandbox. None: one that
        is free.

        Everybody on that machine can connect. At most 16 of a sandbox.
        """
        return self._do(core.forward(self._sandbox, guest_port, host_port))

    def list(self) -> List[Forward]:
        """Those that are forwarded, and the connections to them."""
        return self._do(core.forwards(self._sandbox))

    def close(self, guest_port: Optional[int] = None) -> None:
        """Ends the forward of a port; None: all."""
        self._do(core.unforward(self._sandbox, guest_port))

    def preview(self, port: int, ttl_seconds: Optional[int] = None) -> Preview:
        """A link for people to what a server shows, good for ttl_seconds (an hour).

        Raises ValidationError (code unsupported) unless the hub was started with --preview.
        """
        return self._do(core.preview(self._sandbox, port, ttl_seconds))

    def expose(self,
               port: int,
               path: str = '/',
               *,
               method: str = 'GET',
               headers: Optional[Mapping[str, str]] = None,
               body: Optional[bytes] = None,
               max_bytes: int = core.ANSWER_MAX) -> PortResponse:
        """One HTTP request to a server, by the hub. Status 502 with the code port_failed: nobody
        listens.

        It needs no port of the hub's machine, and no network of the sandbox. At most max_bytes (64
        MiB) come back.
        """
        call = core.expose(self._sandbox, port, path, method, body)
        with self._client._open(call, dict(headers or {})) as stream:
            return PortResponse(stream.head.status, stream.head.fields, stream.read_all(max_bytes))


class Network(_Part):
    """What a sandbox may reach, while it runs. The operator bounds what can be granted."""

    def get(self) -> NetworkInfo:
        """Its policy, and how many connections and bytes there were."""
        return self._do(core.get_network(self._sandbox))

    def set(self, policy: NetworkPolicy, revision: Optional[int] = None) -> NetworkInfo:
        """Replaces it. Connections that stay allowed go on, the others end.

        revision: what get() told; ConflictError if it was changed since. Raises PolicyDeniedError
        if the operator does not let it.
        """
        return self._do(core.set_network(self._sandbox, policy, revision))

    def allow(self,
              host: str,
              port: Optional[int] = None,
              http: Sequence[HttpRule] = ()) -> NetworkInfo:
        """Grants a host, too; what others change at once stays. port None: 80 and 443."""
        return self._do(core.change_network(self._sandbox, lambda p: p.allow(host, port, http)))

    def revoke(self, host: str, port: Optional[int] = None) -> NetworkInfo:
        """Takes a host back; port None: at all ports."""
        return self._do(core.change_network(self._sandbox, lambda p: p.revoke(host, port)))


class Sandbox(_Part):
    """A sandbox. As a context manager it ends with the block, if create(), fork() or restore()
    made it.

    with Sandbox.create(image='host', ttl_seconds=600) as sandbox:
        sandbox.files.write('main.py', "print('hello')")
        print(sandbox.commands.run(['python3', 'main.py']).stdout)

    Threads may share one.
    """

    def __init__(self,
                 client: Client,
                 id: str,
                 *,
                 owned: bool = False,
                 own_client: bool = False) -> None:
        super().__init__(client, id)
        self.id = id
        self.client = client
        self._owned = owned
        self._own_client = own_client
        self.files = Files(client, id)
        self.commands = Commands(client, id)
        self.ports = Ports(client, id)
        self.network = Network(client, id)

    def __repr__(self) -> str:
        return f'Sandbox({self.id!r})'

    @classmethod
    def create(cls: 'Type[Sandbox]',
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
               client: Optional[Client] = None) -> 'Sandbox':
        """Makes a sandbox.

        image: "host", the programs of the hub's machine, or an image that the operator has.
        network: None is NetworkPolicy.deny_by_default().
        ttl_seconds: its time to live, an hour; 0: no end; at most 2592000. idle_seconds: how long
            it may be unused.
        id: its name; None: the hub makes one. cwd: where commands start; /workspace.
        user: "user" (uid 1000) or "root" within the sandbox.
        secrets: SecretRef by environment variable, for hosts: programs get placeholders.
        workspace: the name of one to show at /workspace; workspace_mode: "write" or "copy".
        retention: what becomes of it when its time is over: destroy, stop, cold, snapshot.
        client: None: a new one, from the environment.

        Raises PolicyDeniedError, NotFoundError (image), ConflictError (id), LimitError. It is sent
        again, with an idempotency key, where the way to the hub fails.
        """
        own, client = client is None, client or Client()
        made = client._run(
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
    def connect(cls: 'Type[Sandbox]', id: str, *, client: Optional[Client] = None) -> 'Sandbox':
        """One that is there, by its id. Raises NotFoundError."""
        own, client = client is None, client or Client()
        client._run(core.info(id, False))
        return cls(client, id, own_client=own)

    @classmethod
    def list(cls,
             *,
             state: Optional[str] = None,
             labels: Optional[Sequence[str]] = None,
             client: Optional[Client] = None) -> List[SandboxInfo]:
        """All that are not terminated, in order of creation. labels: KEY or KEY=VALUE, all must
        match.
        """
        if client:
            return client._run(core.list_sandboxes(state, labels))
        with Client() as own:
            return own._run(core.list_sandboxes(state, labels))

    @classmethod
    def restore(cls: 'Type[Sandbox]',
                snapshot: str,
                n: int = 1,
                *,
                ids: Optional[Sequence[str]] = None,
                labels: Optional[Mapping[str, str]] = None,
                client: Optional[Client] = None) -> 'List[Sandbox]':
        """n new sandboxes with the files of a snapshot, all or none; ids: their names."""
        client = client or Client()
        return cls._copies(client, client._run(core.restore(snapshot, n, ids, labels)))

    @classmethod
    def _copies(cls: 'Type[Sandbox]', client: Client,
                made: Sequence[SandboxInfo]) -> 'List[Sandbox]':
        return [cls(client, m.id, owned=True) for m in made]

    def info(self, *, usage: bool = False) -> SandboxInfo:
        """What it is now, also for a while after its end; usage: with what it uses."""
        return self._do(core.info(self.id, usage))

    def fork(self,
             n: int = 1,
             *,
             ids: Optional[Sequence[str]] = None,
             labels: Optional[Mapping[str, str]] = None) -> 'List[Sandbox]':
        """n copies of its files at one instant, all or none; it runs on. ids: their names. At most
        64.
        """
        return self._copies(self.client, self._do(core.fork(self.id, n, ids, labels)))

    def snapshot(self,
                 name: Optional[str] = None,
                 *,
                 ttl_seconds: Optional[int] = None) -> SnapshotInfo:
        """Keeps the files that it has changed beyond its end; ttl_seconds None: for ever."""
        return self._do(core.take_snapshot(self.id, name, ttl_seconds))

    def pause(self) -> str:
        """Stops all that runs in it; its state."""
        return self._do(core.pause(self.id, 'pause'))

    def resume(self) -> str:
        """Continues; one that was stopped starts again with its files."""
        return self._do(core.pause(self.id, 'resume'))

    def stop(self, *, cold: bool = False) -> SandboxInfo:
        """Ends its programs and keeps its files for 30 days; cold: for 7."""
        return self._do(core.stop(self.id, cold))

    def set_timeout(self, seconds: int) -> int:
        """Its time to live begins anew; when it is over, in seconds since 1970."""
        return self._do(core.set_timeout(self.id, seconds))

    def diff(self, *, limit: Optional[int] = None) -> List[Change]:
        """What it has changed against its image; at most 50000 paths."""
        return self._do(core.diff(self.id, limit))

    def pty(self,
            command: Optional[Command] = None,
            *,
            terminal: Terminal = Terminal(),
            timeout_seconds: Optional[int] = None,
            **options: Unpack[CommandOptions]) -> Channel:
        """A terminal with a shell (None) or a command, until the channel is closed."""
        body = core.exec_body(command, options, timeout_seconds)
        body['tty'] = core.terminal_json(terminal)
        return self._client._channel(core.open_terminal(self.id, body))

    def kill(self, *, discard: bool = False) -> bool:
        """Ends it with all that runs in it; False: there was none any more.

        Files of a workspace that it writes to become a revision, unless `discard`.
        """
        ended = self._do(core.kill(self.id, discard))
        self._owned = False
        return ended

    def close(self) -> None:
        """Ends the sandbox if this object made it. Raises CleanupError if it may still be there.
        """
        try:
            if self._owned:
                self.kill()
        except HoltError as e:
            raise cleanup_error_of(self.id, e) from e
        finally:
            if self._own_client:
                self.client.close()

    def __enter__(self) -> 'Sandbox':
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: Any) -> None:
        try:
            self.close()
        except CleanupError as e:
            if kind is None:
                raise
            log.warning('sandbox %s could not be ended: %s', self.id,
                        e)  # what failed in the block counts
