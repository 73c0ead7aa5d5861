"""What is asked for and what is answered: plain data, the same for Sandbox and AsyncSandbox."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Callable, Dict, List, Literal, Mapping, Optional, Sequence, Tuple, Type
from typing import TypedDict, TypeVar, Union, cast

from .errors import CleanupError, CommandError, HoltError, TimedOutError

T = TypeVar('T')

#: A command line for the shell, or a program with its arguments, which no shell reads.
Command = Union[str, Sequence[str]]
#: Text is sent as UTF-8.
Data = Union[str, bytes]
SHOWN = 2000  # characters of an output in repr()
#: What takes output as it comes.
OnOutput = Callable[[bytes], None]

# ---- what is asked for ------------------------------------------------------------------------


@dataclass(frozen=True)
class SecretRef:
    """A secret of the operator's by its name; its value never passes through here.

    file: the variable has the path of a file with the value instead; for commands only.
    """

    ref: str
    file: bool = False

    def to_json(self) -> Dict[str, Any]:
        return {'ref': self.ref, 'file': True} if self.file else {'ref': self.ref}


class CommandOptions(TypedDict, total=False):
    """What can be said of every command, by keyword. None is the same as nothing.

    user: "user" or "root", where the sandbox was made with root; None: as the sandbox was made.
    secrets: SecretRef by environment variable, for this command alone.
    """

    env: Optional[Mapping[str, str]]
    cwd: Optional[str]
    user: Optional[str]
    secrets: Optional[Mapping[str, SecretRef]]


@dataclass(frozen=True)
class HttpRule:
    """Which requests a host may get. None: any; a * at the end of a path: any rest."""

    method: Optional[str] = None
    path: Optional[str] = None
    then: Literal['allow', 'deny', 'ask'] = 'allow'


@dataclass(frozen=True)
class Host:
    """A name, *.NAME, an address range, or a preset of the operator's. port None: 80 and 443."""

    host: str
    port: Optional[int] = None
    http: Tuple[HttpRule, ...] = ()

    def to_json(self) -> Dict[str, Any]:
        d: Dict[str, Any] = {'host': self.host}
        if self.port is not None:
            d['port'] = self.port
        if self.http:
            d['http'] = [{k: v for k, v in vars(r).items() if v is not None} for r in self.http]
        return d


@dataclass(frozen=True)
class NetworkPolicy:
    """What a sandbox may reach: nothing but `hosts`. The operator decides what may be granted."""

    hosts: Tuple[Host, ...] = ()
    of_template: bool = False

    @classmethod
    def deny_by_default(cls) -> 'NetworkPolicy':
        """Nothing; allow() adds to it."""
        return cls()

    @classmethod
    def from_template(cls) -> 'NetworkPolicy':
        """What the image and the profiles want, where the operator lets it."""
        return cls(of_template=True)

    def allow(self,
              host: str,
              port: Optional[int] = None,
              http: Sequence[HttpRule] = ()) -> 'NetworkPolicy':
        """A policy that allows this host, too; what it said of the host and port before is
        replaced.
        """
        kept = tuple(h for h in self.hosts if (h.host, h.port) != (host, port))
        return replace(self, hosts=(*kept, Host(host, port, tuple(http))))

    def revoke(self, host: str, port: Optional[int] = None) -> 'NetworkPolicy':
        """A policy without this host. port None: at no port."""
        kept = tuple(h for h in self.hosts if h.host != host or port not in (None, h.port))
        return replace(self, hosts=kept)

    def to_json(self) -> Optional[Dict[str, Any]]:
        if self.hosts:
            return {'mode': 'bridge', 'allow': [h.to_json() for h in self.hosts]}
        return None if self.of_template else {'mode': 'none'}


@dataclass(frozen=True)
class Limits:
    """What a sandbox may use; None: the hub's default. Memory counts processes and files together.
    """

    memory_mb: Optional[int] = None
    disk_mb: Optional[int] = None
    pids: Optional[int] = None
    cpus: Optional[float] = None
    open_files: Optional[int] = None


@dataclass(frozen=True)
class Volume:
    """A folder or file of the hub's host, where its operator allows that."""

    host: str
    inside: str
    mode: Literal['ro', 'rw', 'rw-all'] = 'ro'


@dataclass(frozen=True)
class Terminal:
    """Size of a terminal, and the variable TERM."""

    cols: int = 80
    rows: int = 24
    term: str = 'xterm-256color'


class RunFile(TypedDict):
    path: str
    content: str


class RunState(TypedDict):
    retention: Literal['destroy', 'stop', 'cold', 'snapshot']


class _RunRequired(TypedDict):
    command: List[str]
    state: RunState


class RunRequest(_RunRequired, total=False):
    """The contract of docs/contract.md, as a model may send it: the hub checks all of it."""

    language: str
    image: str
    files: List[RunFile]
    env: Dict[str, str]
    secrets: Dict[str, Any]
    network: Dict[str, Any]
    working_dir: str
    stdin: str
    timeout_seconds: int
    max_output_bytes: int
    ttl_seconds: int


# ---- what is answered -------------------------------------------------------------------------


def build(cls: Type[T], d: Mapping[str, Any], **more: Any) -> T:
    """A dataclass of an answer. What the hub has more is passed over, so that a newer one can be
    asked.
    """
    if not isinstance(d, dict):
        raise TypeError(f'{type(d).__name__} for an object')
    known = {}
    for f in fields(cast(Any, cls)):
        name = f.metadata.get('wire', f.name)
        if name in d:
            known[f.name] = d[name]
    return cls(**known, **more)


def wire(name: str, default: Any = None) -> Any:
    """A member that the REST interface calls otherwise."""
    return field(default=default, metadata={'wire': name})


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox as the hub sees it (docs/rest.md). Times ending in _unix are seconds since 1970.
    """

    id: str
    state: str  # running, paused, stopped, cold, terminated, lost, failed, …
    generation: int
    created_at: str  # RFC 3339
    image: str = wire('template_id', '')
    source: Optional[str] = None  # the sandbox that it was forked from
    cause: Optional[str] = None  # why it ended, where nobody asked for that
    deadline_unix: Optional[int] = None
    ttl_seconds: Optional[int] = wire('timeout_seconds')
    idle_seconds: Optional[int] = None
    retention: str = 'destroy'
    user: str = 'user'
    debug: bool = False
    tier: str = ''  # what isolates it
    from_pool: bool = False
    made_ms: Optional[float] = wire('fork_time_ms')
    endpoint: str = ''
    labels: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    network: Mapping[str, Any] = field(default_factory=dict)
    volumes: Sequence[Mapping[str, Any]] = ()
    modules: Sequence[str] = ()
    usage: Optional[Mapping[str, Any]] = None


@dataclass(frozen=True)
class SnapshotInfo:
    """Files of a sandbox that were kept."""

    id: str
    created_at: str
    bytes: int  # of its archive
    unpacked_bytes: int
    digest: str  # SHA-256 of the archive, hex
    name: Optional[str] = None
    source: Optional[str] = None
    image: str = wire('template_id', '')
    expires_at: Optional[str] = None  # None: never
    disk_mb: int = 0


@dataclass(frozen=True)
class FileInfo:
    """An entry of a directory, or what a path is. A link is not followed in a list."""

    is_dir: bool
    type: str  # file, directory, symlink, other
    size: int  # bytes
    mode: int  # permission bits
    modified_at: int  # seconds since 1970
    name: str = ''
    path: str = ''


@dataclass(frozen=True)
class WatchEvent:
    """created, modified, attributes, removed, moved_from, moved_to; overflow: changes were lost;
    ended.
    """

    kind: str
    is_dir: bool
    path: str = ''  # below the directory that is watched
    path_base64: Optional[str] = None  # where its bytes are not UTF-8
    cookie: Optional[int] = None  # the same for both ends of one move


@dataclass(frozen=True)
class Output:
    """A piece of what a command printed."""

    stream: str  # stdout or stderr
    data: bytes
    offset: Optional[int] = None  # of its first byte; of a background command only

    @property
    def text(self) -> str:
        """A character may be cut at either end; what is no UTF-8 is replaced."""
        return self.data.decode('utf-8', 'replace')


@dataclass(frozen=True)
class CommandResult:
    """How a command ended. Output beyond max_output_bytes of a stream has a mark in place of its
    middle."""

    exit_code: int  # 128 and the number of a signal that ended it; 124: its timeout
    stdout_bytes: bytes = field(repr=False)
    stderr_bytes: bytes = field(repr=False)
    timed_out: bool = False
    #: Names the record in the audit log of the call that started it.
    audit_id: Optional[str] = None
    duration_ms: float = 0
    exec_id: Optional[str] = None
    signal: Optional[int] = None
    stdout_elided_bytes: int = 0
    stderr_elided_bytes: int = 0
    #: The limit of the sandbox that it met: memory, pids or disk.
    limit: Optional[str] = None

    def __repr__(self) -> str:
        """With the beginnings of both outputs, since `print(result)` is how many look at them."""
        def short(text: str) -> str:
            return repr(text if len(text) <= SHOWN else text[:SHOWN] + '\u2026')
        late = ', timed_out=True' if self.timed_out else ''
        return (f'CommandResult(exit_code={self.exit_code}, stdout={short(self.stdout)}, '
                f'stderr={short(self.stderr)}{late})')

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode('utf-8', 'replace')

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode('utf-8', 'replace')

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and not self.timed_out

    def check(self) -> 'CommandResult':
        """Itself, where it ended with 0. Else raises TimedOutError or CommandError."""
        if self.ok:
            return self
        context = {'exit_code': self.exit_code, 'dimension': self.limit}
        if self.timed_out:
            raise TimedOutError('the command was killed at its timeout',
                                code='exec_timeout',
                                retryable=True,
                                audit_id=self.audit_id,
                                context=context,
                                result=self)
        raise CommandError(f'the command ended with {self.exit_code}',
                           code='command_failed',
                           audit_id=self.audit_id,
                           context=context,
                           result=self)


@dataclass(frozen=True)
class ProcessInfo:
    """A command by its id, running or ended."""

    id: str = wire('exec_id', '')
    command: str = ''  # at most 512 bytes of it
    state: str = ''  # running, exited, signaled, timed_out, failed, lost
    background: bool = False
    tty: bool = False
    stdin_open: bool = False
    started_at: str = ''
    ended_at: Optional[str] = None
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    duration_ms: Optional[float] = wire('exec_time_ms')
    hit_memory: bool = False
    hit_pids: bool = False
    first_offset: int = 0  # of the oldest byte of output that is kept
    next_offset: int = 0  # behind the newest one
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    error: Optional[str] = None
    output_error: Optional[str] = None


@dataclass(frozen=True)
class NetworkInfo:
    """What a sandbox may reach, and how much it did."""

    policy: NetworkPolicy
    revision: int  # another after each change
    opened: int  # connections
    denied: int
    failed: int
    bytes_sent: int
    bytes_received: int


@dataclass(frozen=True)
class Forward:
    """A port of a sandbox at a port of 127.0.0.1 on the hub's machine."""

    guest_port: int
    host: str  # 127.0.0.1:PORT
    connections: int = 0
    connections_total: int = 0

    @property
    def port(self) -> int:
        return int(self.host.rpartition(':')[2])


@dataclass(frozen=True)
class Preview:
    """A link for people; whoever has it sees what the server shows."""

    url: str = field(repr=False)
    expires_unix: int = 0


@dataclass(frozen=True)
class PortResponse:
    """What a server in a sandbox answered."""

    status: int
    headers: Mapping[str, str]  # by their names in lower case
    body: bytes = field(repr=False)

    @property
    def text(self) -> str:
        return self.body.decode('utf-8', 'replace')


@dataclass(frozen=True)
class Change:
    """A path that differs from the image: added, changed or removed."""

    change: str
    type: str
    path: str


@dataclass(frozen=True)
class RunResult:
    """The answer of run(): docs/contract.md."""

    sandbox_id: str
    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool
    audit_id: str
    retention: str
    duration_ms: int = 0
    stdout_truncated_bytes: int = 0
    stderr_truncated_bytes: int = 0
    isolation: str = ''
    #: timeout, guest_failed or cleanup_failed; None: all is as asked for.
    failure: Optional[str] = None
    snapshot_id: Optional[str] = None
    #: Why the sandbox is not as asked for: code, cause, remediation, retryable.
    cleanup: Optional[Mapping[str, Any]] = None
    #: The record of the call as a line of JSON, which `holt audit verify` reads.
    receipt: Optional[str] = field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        return self.failure is None

    def check(self) -> 'RunResult':
        """Itself, where all is as asked for. Else raises TimedOutError, CommandError or
        CleanupError.
        """
        if self.failure is None:
            return self
        if self.failure == 'cleanup_failed':
            raise cleanup_error(self.sandbox_id, self.cleanup or {}, self.audit_id, self)
        if self.failure == 'guest_failed':
            raise CommandError(f'the command ended with {self.exit_code}',
                               code='command_failed',
                               audit_id=self.audit_id,
                               context={'exit_code': self.exit_code},
                               result=self)
        raise TimedOutError('the command was killed at its timeout',
                            code='exec_timeout',
                            retryable=True,
                            audit_id=self.audit_id,
                            result=self)


def cleanup_error(sandbox: str, told: Mapping[str, Any], audit_id: Optional[str],
                  result: Any) -> CleanupError:
    return CleanupError(str(told.get('cause', 'the sandbox could not be ended')),
                        code=str(told.get('code', 'cleanup_failed')),
                        remediation=str(told.get('remediation', '')),
                        retryable=told.get('retryable') is True,
                        audit_id=audit_id,
                        context={'sandbox': sandbox},
                        result=result)


def cleanup_error_of(sandbox: str, error: HoltError) -> CleanupError:
    """Of a sandbox that could not be ended."""
    return cleanup_error(sandbox, error.to_dict(), error.audit_id, None)
