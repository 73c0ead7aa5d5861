"""What the SDK asks a hub, without I/O.

A step is a generator: it yields each Call, is sent the Answer (or thrown the HoltError), and
returns the result. Both faces drive the same steps, one by blocking sockets, the other by asyncio.
"""

from __future__ import annotations

import base64
import json
import random
import uuid
from dataclasses import asdict, dataclass, field
from typing import (Any, Callable, Dict, Generator, Iterable, List, Mapping, Optional, Sequence,
                    Tuple, Type, TypeVar, Union)
from urllib.parse import quote, urlencode

from .errors import (ConflictError, HoltError, LimitError, NotFoundError, TimedOutError,
                     TransportError, ValidationError, error_of)
from .types import (Change, Command, CommandOptions, CommandResult, Data, FileInfo, Forward, Host,
                    HttpRule, Limits, NetworkInfo, NetworkPolicy, Output, Preview, ProcessInfo,
                    RunRequest, RunResult, SandboxInfo, SecretRef, SnapshotInfo, Terminal, Volume,
                    WatchEvent, build)

T = TypeVar('T')
Secrets = Mapping[str, SecretRef]

ANSWER_MAX = 64 << 20  # bytes of an answer, or of one line of a stream
GRACE = 30.0  # seconds that an answer may come later than the timeout of what it waits for
PIECE = 2 << 20  # bytes of a file at once
WAIT = 60  # seconds of one request that waits
OUTPUT_MAX = 1 << 20  # of stdout and of stderr, in bytes
FILE_MAX = 256 << 20
INPUT_PIECE = 128 << 10  # of a message with standard input, in bytes
CHANGES_MAX = 100  # of grants, one after another


@dataclass(frozen=True)
class Call:
    """One request. route and body are as in the hub's OpenAPI document."""

    method: str
    route: str
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Optional[Mapping[str, Any]] = None
    content: Union[None, bytes, Iterable[bytes]] = None  # instead of body: a tar archive
    timeout: Optional[float] = None  # seconds for all of it; None: the client's
    idempotent: bool = False  # can be sent again
    key: Optional[str] = None  # makes it so
    answer_max: int = ANSWER_MAX

    @property
    def again(self) -> bool:
        return self.idempotent or self.key is not None

    def target(self) -> str:
        path = self.route
        for name, value in self.params.items():
            path = path.replace('{%s}' % name, quote(value, safe=''))
        query = {
            k: str(v).lower() if isinstance(v, bool) else v
            for k, v in self.query.items() if v is not None
        }
        return path + ('?' + urlencode(query, doseq=True) if query else '')


@dataclass(frozen=True)
class Answer:
    document: Any
    audit_id: Optional[str] = None


Steps = Generator[Call, Answer, T]


def members(**given: Any) -> Dict[str, Any]:
    """Those that were given."""
    return {k: v for k, v in given.items() if v is not None}


def read(route: str, **params: str) -> Call:
    return Call('GET', route, params, idempotent=True)


def post(route: str, body: Mapping[str, Any], **more: Any) -> Call:
    return Call('POST', route, body=body, **more)


def on(sandbox: str, method: str, more: str, **rest: Any) -> Call:
    """Of one sandbox."""
    return Call(method, '/v1/sandboxes/{id}' + more, {'id': sandbox}, **rest)


def new_key() -> str:
    return uuid.uuid4().hex


def retry_pause(call: Call, error: HoltError, attempt: int, retries: int) -> Optional[float]:
    """Seconds until it is sent again; None: it is not."""
    if attempt >= retries or not call.again or not error.retryable or not isinstance(
            error, TransportError):
        return None
    said = error.context.get('retry_after_ms') if isinstance(error, LimitError) else None
    pause = said / 1000 if isinstance(said, (int, float)) and said > 0 else 0.1 * 2**attempt
    return float(min(pause, 5.0) * random.uniform(0.8, 1.2))


MISFIT = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


def bad_answer(e: Exception, audit_id: Optional[str] = None) -> TransportError:
    """An answer that lacks what it should have is none of a hub."""
    return TransportError(f'the answer is none of a Holt hub: {e!r}', code='bad_answer',
                          audit_id=audit_id)


def advance(steps: Steps[T], answer: Union[Answer, HoltError]) -> Call:
    """The next call."""
    try:
        return steps.throw(answer) if isinstance(answer, HoltError) else steps.send(answer)
    except MISFIT as e:
        raise bad_answer(e, answer.audit_id) from e


def typed(kind: Type[T], value: Any) -> T:
    """A value of an answer, if it is of that type."""
    if type(value) is not kind:
        raise TypeError(f'{type(value).__name__} for {kind.__name__}')
    return value


# ---- the client -------------------------------------------------------------------------------


def health() -> Steps[Dict[str, Any]]:
    return typed(dict, (yield read('/v1/health')).document)


def templates() -> Steps[List[str]]:
    return [t['id'] for t in typed(list, (yield read('/v1/templates')).document)]


def audit_record(audit_id: str) -> Steps[Dict[str, Any]]:
    return typed(dict, (yield read('/v1/audit/{audit_id}', audit_id=audit_id)).document)


def run(request: RunRequest) -> Steps[RunResult]:
    body = dict(request)
    if 'secrets' in body:
        body['secrets'] = secrets_json(request['secrets'])
    seconds = body.get('timeout_seconds', 30)
    wait = seconds + GRACE + WAIT if isinstance(seconds, (int, float)) else WAIT
    made = build(RunResult, (yield post('/v1/run', body, timeout=wait)).document)
    typed(dict, made.cleanup or {})
    return made


def snapshots() -> Steps[List[SnapshotInfo]]:
    found: List[SnapshotInfo] = []
    cursor = None
    while True:
        page = (yield Call('GET',
                           '/v1/snapshots',
                           query=members(limit=100, cursor=cursor),
                           idempotent=True)).document
        found += [build(SnapshotInfo, d) for d in typed(list, page['snapshots'])]
        cursor = typed(str, page.get('next_cursor', ''))
        if not cursor:
            return found


def snapshot(id: str) -> Steps[SnapshotInfo]:
    return build(SnapshotInfo, (yield read('/v1/snapshots/{id}', id=id)).document)


def delete_snapshot(id: str) -> Steps[bool]:
    return (yield from ended(Call('DELETE', '/v1/snapshots/{id}', {'id': id}, idempotent=True)))


def ended(call: Call) -> Steps[bool]:
    """False: there was none."""
    try:
        yield call
    except NotFoundError:
        return False
    return True


# ---- sandboxes --------------------------------------------------------------------------------


def secrets_json(secrets: Optional[Secrets]) -> Optional[Dict[str, Any]]:
    """References only: a value that somebody gives by mistake does not leave."""
    if secrets is None:
        return None
    for name, ref in secrets.items():
        if not isinstance(ref, SecretRef) and not (isinstance(ref, dict)
                                                   and set(ref) <= {'ref', 'file'}):
            raise ValidationError(
                f'secrets: {name} is no SecretRef',
                code='invalid_secret',
                remediation="Give the name of a secret of the operator's: SecretRef(NAME).")
    return {k: r.to_json() if isinstance(r, SecretRef) else r for k, r in secrets.items()}


def create(image: str, network: NetworkPolicy, ttl_seconds: int, limits: Optional[Limits],
           secrets: Optional[Secrets], volumes: Optional[Sequence[Volume]],
           **plain: Any) -> Steps[SandboxInfo]:
    """plain: what the request has as it is given."""
    body = members(template=image,
                   network=network.to_json(),
                   timeout_seconds=ttl_seconds,
                   limits=limits and members(**asdict(limits)),
                   secrets=secrets_json(secrets),
                   volumes=None if volumes is None else [asdict(v) for v in volumes],
                   **plain)
    return build(SandboxInfo, (yield post('/v1/sandboxes', body, key=new_key())).document)


def list_sandboxes(state: Optional[str],
                   labels: Optional[Sequence[str]]) -> Steps[List[SandboxInfo]]:
    found: List[SandboxInfo] = []
    cursor = None
    while True:
        query = members(limit=100, cursor=cursor, state=state, label=labels and list(labels))
        page = (yield Call('GET', '/v1/sandboxes', query=query, idempotent=True)).document
        found += [build(SandboxInfo, d) for d in typed(list, page['sandboxes'])]
        cursor = typed(str, page.get('next_cursor', ''))
        if not cursor:
            return found


def info(sandbox: str, usage: bool) -> Steps[SandboxInfo]:
    query = {'usage': True} if usage else {}
    return build(SandboxInfo, (yield on(sandbox, 'GET', '', query=query,
                                        idempotent=True)).document)


def kill(sandbox: str, discard: bool) -> Steps[bool]:
    query = {'discard': True} if discard else {}
    return (yield from ended(on(sandbox, 'DELETE', '', query=query, idempotent=True)))


def pause(sandbox: str, how: str) -> Steps[str]:
    """how: pause or resume."""
    return str((yield post('/v1/' + how, {'sandbox': sandbox},
                           idempotent=True)).document['status'])


def stop(sandbox: str, cold: bool) -> Steps[SandboxInfo]:
    return build(SandboxInfo, (yield on(sandbox, 'POST', '/stop',
                                        body=members(cold=cold or None))).document)


def set_timeout(sandbox: str, seconds: int) -> Steps[int]:
    body = {'sandbox': sandbox, 'timeout_seconds': seconds}
    return int((yield post('/v1/set_timeout', body, idempotent=True)).document['deadline_unix'])


def copies_body(n: int, ids: Optional[Sequence[str]],
                labels: Optional[Mapping[str, str]]) -> Dict[str, Any]:
    which: Dict[str, Any] = {'ids': list(ids)} if ids is not None else {'count': n}
    return {**which, **members(labels=labels and dict(labels))}


def fork(sandbox: str, n: int, ids: Optional[Sequence[str]],
         labels: Optional[Mapping[str, str]]) -> Steps[List[SandboxInfo]]:
    call = on(sandbox, 'POST', '/fork', body=copies_body(n, ids, labels), key=new_key())
    return [build(SandboxInfo, d) for d in typed(list, (yield call).document['sandboxes'])]


def restore(snapshot: str, n: int, ids: Optional[Sequence[str]],
            labels: Optional[Mapping[str, str]]) -> Steps[List[SandboxInfo]]:
    body = copies_body(n, ids, labels)
    call = Call('POST', '/v1/snapshots/{id}/restore', {'id': snapshot}, body=body, key=new_key())
    return [build(SandboxInfo, d) for d in typed(list, (yield call).document['sandboxes'])]


def take_snapshot(sandbox: str, name: Optional[str],
                  ttl_seconds: Optional[int]) -> Steps[SnapshotInfo]:
    body = members(name=name, ttl_seconds=ttl_seconds)
    return build(SnapshotInfo, (yield on(sandbox, 'POST', '/snapshots', body=body,
                                         key=new_key())).document)


def diff(sandbox: str, limit: Optional[int]) -> Steps[List[Change]]:
    call = on(sandbox, 'GET', '/diff', query=members(limit=limit), idempotent=True)
    return [build(Change, d) for d in typed(list, (yield call).document['changes'])]


# ---- files ------------------------------------------------------------------------------------


def file_call(name: str, sandbox: str, path: str, again: bool = True, **more: Any) -> Call:
    return post('/v1/files/' + name, {
        'sandbox': sandbox,
        'path': path,
        **members(**more)
    },
                idempotent=again)


def read_file(sandbox: str, path: str, max_bytes: int) -> Steps[bytes]:
    """In pieces: the hub gives 4 MiB at once."""
    data = bytearray()
    offset = 0
    while True:
        call = file_call('read', sandbox, path, offset=offset, limit=PIECE, encoding='base64')
        d = (yield call).document
        data += base64.b64decode(d['content'])
        if len(data) > max_bytes:
            raise ValidationError(
                f"{path} has {d['size']} bytes, more than the {max_bytes} that were asked for",
                code='too_large',
                remediation='Give a larger max_bytes, or use download().')
        if 'next_offset' not in d:
            return bytes(data)
        offset = typed(int, d['next_offset'])


def read_text(sandbox: str, path: str, max_bytes: int) -> Steps[str]:
    data = yield from read_file(sandbox, path, max_bytes)
    try:
        return data.decode()
    except UnicodeDecodeError as e:
        raise ValidationError(f'{path} is no UTF-8 text: byte {e.start}',
                              code='not_text',
                              remediation='Use read_bytes().') from None


def write_file(sandbox: str, path: str, data: Data, mode: Optional[int]) -> Steps[None]:
    if isinstance(data, str):
        yield file_call('write', sandbox, path, content=data, mode=mode)
    else:
        content = base64.b64encode(data).decode()
        yield file_call('write', sandbox, path, content=content, encoding='base64', mode=mode)


def list_files(sandbox: str, path: str, limit: Optional[int]) -> Steps[List[FileInfo]]:
    entries = (yield file_call('list', sandbox, path, limit=limit)).document['entries']
    below = '' if path in ('.', './') else path.rstrip('/') + '/'
    return [build(FileInfo, d, path=below + d['name']) for d in typed(list, entries)]


def stat_file(sandbox: str, path: str) -> Steps[FileInfo]:
    d = (yield file_call('stat', sandbox, path)).document
    return build(FileInfo, d, name=path.rstrip('/').rpartition('/')[2])


def exists(sandbox: str, path: str) -> Steps[bool]:
    return (yield from ended(file_call('stat', sandbox, path)))


def remove_file(sandbox: str, path: str, recursive: bool) -> Steps[None]:
    yield file_call('remove', sandbox, path, False, recursive=recursive or None)


def rename_file(sandbox: str, path: str, to: str) -> Steps[None]:
    yield file_call('move', sandbox, path, False, to=to)


def make_dir(sandbox: str, path: str) -> Steps[None]:
    yield file_call('mkdir', sandbox, path)


def upload(sandbox: str, path: str, tar: Union[bytes, Iterable[bytes]],
           timeout: Optional[float]) -> Steps[None]:
    yield on(sandbox, 'PUT', '/archive', query={'path': path}, content=tar, timeout=timeout)


def download(sandbox: str, path: Optional[str], named: bool) -> Call:
    return on(sandbox, 'GET', '/archive', query=members(path=path, named=named or None))


def watch(sandbox: str, path: Optional[str], recursive: bool) -> Call:
    return on(sandbox, 'GET', '/watch', query=members(path=path, recursive=recursive or None))


def watch_event(d: Mapping[str, Any]) -> WatchEvent:
    return build(WatchEvent, d)


# ---- commands ---------------------------------------------------------------------------------


def words(command: Optional[Command]) -> Dict[str, Any]:
    if command is None:
        return {}
    if isinstance(command, str):
        return {'command': command}
    if not command:
        raise ValidationError('command: it is empty', code='invalid_command')
    return {'command': command[0], 'args': list(command[1:])}


def input_members(data: Optional[Data], name: str) -> Dict[str, Any]:
    if data is None:
        return {}
    if isinstance(data, str):
        return {name: data}
    return {name + '_base64': base64.b64encode(data).decode()}


def exec_body(command: Optional[Command],
              options: CommandOptions,
              timeout_seconds: Optional[int],
              stdin: Optional[Data] = None,
              **more: Any) -> Dict[str, Any]:
    said: Dict[str, Any] = {**options}
    for name in said.keys() - CommandOptions.__annotations__.keys():
        raise TypeError(f'there is no option {name} of a command')
    said['working_dir'] = said.pop('cwd', None)
    said['env'] = said.get('env') and dict(said['env'])
    said['secrets'] = secrets_json(said.get('secrets'))
    return {
        **words(command),
        **members(timeout=timeout_seconds, **said, **more),
        **input_members(stdin, 'stdin')
    }


def run_command(sandbox: str, body: Dict[str, Any]) -> Steps[CommandResult]:
    call = post('/v1/exec', {'sandbox': sandbox, **body}, timeout=body['timeout'] + GRACE)
    try:
        answer = yield call
    except TimedOutError as e:
        if not isinstance(e.result, dict):
            raise
        return exec_result(e.result, e.audit_id, True)
    return exec_result(answer.document, answer.audit_id, False)


def exec_result(d: Mapping[str, Any], audit_id: Optional[str], timed_out: bool) -> CommandResult:

    def stream(name: str) -> bytes:
        b64 = d.get(name + '_base64')
        return base64.b64decode(b64) if b64 is not None else str(d[name]).encode(
            'utf-8', 'replace')

    hit = [name for name in ('memory', 'pids', 'disk') if d.get('hit_' + name)]
    return CommandResult(exit_code=d['exit_code'],
                         stdout_bytes=stream('stdout'),
                         stderr_bytes=stream('stderr'),
                         timed_out=timed_out,
                         audit_id=audit_id,
                         duration_ms=d['exec_time_ms'],
                         exec_id=d['exec_id'],
                         signal=d.get('signal'),
                         stdout_elided_bytes=d.get('stdout_elided_bytes', 0),
                         stderr_elided_bytes=d.get('stderr_elided_bytes', 0),
                         limit=hit[0] if hit else None)


class Kept:
    """The head and the tail of a stream."""

    def __init__(self, most: int) -> None:
        self._head, self._tail = bytearray(), bytearray()
        self._most = most // 2, most - most // 2
        self.elided = 0

    def add(self, data: bytes) -> None:
        room = self._most[0] - len(self._head) if not self._tail else 0
        self._head += data[:room]
        self._tail += data[room:]
        over = len(self._tail) - self._most[1]
        if over > 0:
            del self._tail[:over]
            self.elided += over

    def all(self) -> bytes:
        mark = f'\n[... {self.elided} bytes elided ...]\n' if self.elided else ''  # as the hub's
        return bytes(self._head + mark.encode() + self._tail)


class Collected:
    """What a command printed, and how it ended, from the events of a stream or WebSocket."""

    def __init__(self,
                 max_output_bytes: int,
                 audit_id: Optional[str],
                 exec_id: Optional[str] = None) -> None:
        self._kept = {'stdout': Kept(max_output_bytes), 'stderr': Kept(max_output_bytes)}
        self._audit_id, self._exec_id = audit_id, exec_id
        self.result: Optional[CommandResult] = None

    def add(self, piece: Output) -> Output:
        self._kept[piece.stream].add(piece.data)
        return piece

    def line(self, d: Mapping[str, Any]) -> Optional[Output]:
        """A line of a stream; None: the end, or that something was dropped."""
        if d['kind'] == 'chunk':
            return self.add(Output(d['stream'], base64.b64decode(d['data']), d.get('offset')))
        if d['kind'] == 'dropped':
            self._kept['stdout'].elided += d['bytes']
        elif d['kind'] == 'exit':
            self.end(d)
        return None

    def end(self, d: Mapping[str, Any]) -> CommandResult:
        """Raises where it was no end of the command: it never ran, or its sandbox ended."""
        timed_out = d.get('failure') == 'timeout' or d.get('state') == 'timed_out'
        if d.get('failure') and not timed_out:
            raise error_of(str(d['failure']),
                           str(d.get('code', '')),
                           str(d.get('error', '')),
                           audit_id=self._audit_id)
        if 'exit_code' not in d:
            cause = str(d.get('error') or f"the command is {d.get('state', 'lost')}")
            raise error_of('guest_failed', 'exec_failed', cause, audit_id=self._audit_id)
        code = d['exit_code']
        self.result = CommandResult(exit_code=code,
                                    stdout_bytes=self._kept['stdout'].all(),
                                    stderr_bytes=self._kept['stderr'].all(),
                                    timed_out=timed_out,
                                    audit_id=self._audit_id,
                                    duration_ms=d.get('exec_time_ms', 0),
                                    exec_id=self._exec_id,
                                    signal=d.get('signal'),
                                    stdout_elided_bytes=self._kept['stdout'].elided,
                                    stderr_elided_bytes=self._kept['stderr'].elided,
                                    limit=None if timed_out else d.get('dimension'))
        return self.result

    def ended(self) -> CommandResult:
        if self.result is None:
            raise TransportError('the end of the command did not come', code='connection_lost')
        return self.result


def told(make: Callable[[Dict[str, Any]], T], line: Any) -> T:
    """What a line of a stream tells."""
    try:
        return make(typed(dict, line))
    except MISFIT as e:
        raise bad_answer(e) from e


def stream_command(sandbox: str, body: Dict[str, Any]) -> Call:
    return post('/v1/exec/stream', {'sandbox': sandbox, **body}, timeout=body['timeout'] + GRACE)


def stream_code(sandbox: str, code: str, language: str, timeout_seconds: int) -> Call:
    body = {'sandbox': sandbox, 'code': code, 'language': language, 'timeout': timeout_seconds}
    return post('/v1/run_code/stream', body, timeout=timeout_seconds + GRACE)


def start_command(sandbox: str, body: Dict[str, Any]) -> Steps[Tuple[str, Optional[str]]]:
    whole = {'sandbox': sandbox, 'background': True, **body}
    answer = yield post('/v1/exec', whole, key=new_key())
    return answer.document['exec_id'], answer.audit_id


def list_commands(sandbox: str) -> Steps[List[ProcessInfo]]:
    return [
        build(ProcessInfo, d)
        for d in typed(list, (yield on(sandbox, 'GET', '/execs', idempotent=True)).document)
    ]


def of_exec(sandbox: str, exec: str, method: str, more: str = '', **rest: Any) -> Call:
    return Call(method, '/v1/sandboxes/{id}/execs/{exec}' + more, {
        'id': sandbox,
        'exec': exec
    }, **rest)


def process_info(sandbox: str, exec: str) -> Steps[ProcessInfo]:
    return build(ProcessInfo, (yield of_exec(sandbox, exec, 'GET', idempotent=True)).document)


def follow(sandbox: str, exec: str, offset: int, stream: Optional[str]) -> Call:
    return of_exec(sandbox,
                   exec,
                   'GET',
                   '/output',
                   query=members(offset=offset, follow=True, stream=stream))


def read_output(sandbox: str, exec: str, offset: int, limit: Optional[int],
                stream: Optional[str]) -> Steps[Tuple[List[Output], int, bool]]:
    """What there is of it, where to go on, and whether that was the last of it."""
    query = members(offset=offset, limit=limit, stream=stream)
    d = (yield of_exec(sandbox, exec, 'GET', '/output', query=query, idempotent=True)).document
    chunks = [
        Output(c['stream'], base64.b64decode(c['data']), c['offset'])
        for c in typed(list, d['chunks'])
    ]
    return chunks, typed(int, d['next_offset']), typed(bool, d['eof'])


def wait_body(text: Optional[str], pattern: Optional[str], offset: int) -> Dict[str, Any]:
    return members(text=text, pattern=pattern, offset=offset if text or pattern else None)


def wait_for(sandbox: str, exec: str, text: Optional[str], pattern: Optional[str],
             timeout_seconds: int) -> Steps[bool]:
    """Whether it came before the command ended."""
    left, offset = timeout_seconds, 0
    while True:
        now = min(left, WAIT)
        body = {**wait_body(text, pattern, offset), 'timeout_seconds': max(now, 1)}
        call = of_exec(sandbox,
                       exec,
                       'POST',
                       '/wait',
                       body=body,
                       timeout=now + GRACE,
                       idempotent=True)
        d = (yield call).document
        if d['result'] != 'timeout':
            return bool(d['result'] == 'matched')
        left, offset = left - now, typed(int, d['offset'])
        if left <= 0:
            raise wait_over(timeout_seconds)


def wait_over(seconds: Optional[float]) -> TimedOutError:
    return TimedOutError(f'it did not come within {seconds} s; the command goes on',
                         code='wait_timeout')


def wait_end(sandbox: str, exec: str, timeout_seconds: Optional[int], max_output_bytes: int,
             audit_id: Optional[str]) -> Steps[CommandResult]:
    if timeout_seconds is None:
        while True:
            try:
                yield from wait_for(sandbox, exec, None, None, WAIT)
                break
            except TimedOutError as e:
                if e.code != 'wait_timeout':
                    raise
    else:
        yield from wait_for(sandbox, exec, None, None, timeout_seconds)
    collected = Collected(max_output_bytes, audit_id, exec)
    offset, eof = 0, False
    while not eof:
        chunks, offset, eof = yield from read_output(sandbox, exec, offset, PIECE, None)
        for piece in chunks:
            collected.add(piece)
    end = (yield of_exec(sandbox, exec, 'GET', idempotent=True)).document
    return collected.end({**end, 'dimension': 'memory' if end.get('hit_memory') else None})


def send_input(sandbox: str, exec: str, data: Data, close: bool) -> Steps[None]:
    body = {**input_members(data, 'data'), **members(close=close or None)}
    yield of_exec(sandbox, exec, 'POST', '/stdin', body=body)


def resize(sandbox: str, exec: str, cols: int, rows: int) -> Steps[None]:
    yield of_exec(sandbox,
                  exec,
                  'POST',
                  '/resize',
                  body={
                      'cols': cols,
                      'rows': rows
                  },
                  idempotent=True)


def send_signal(sandbox: str, exec: str, signal: int) -> Steps[None]:
    yield of_exec(sandbox, exec, 'POST', '/signal', body={'signal': signal})


def kill_command(sandbox: str, exec: str) -> Steps[bool]:
    return (yield from ended(of_exec(sandbox, exec, 'DELETE', idempotent=True)))


# ---- channels: commands over a WebSocket ------------------------------------------------------


@dataclass(frozen=True)
class Opening:
    """A WebSocket: where, which protocol, and the first message."""

    call: Call
    protocol: str
    first: Optional[Mapping[str, Any]]


def open_command(sandbox: str, body: Dict[str, Any]) -> Opening:
    return Opening(on(sandbox, 'GET', '/exec'), 'holt.exec.v1', body)


def open_terminal(sandbox: str, body: Dict[str, Any]) -> Opening:
    return Opening(Call('GET', '/v1/pty', query={'sandbox': sandbox}), 'holt.exec.v1', body)


def attach(sandbox: str, exec: str, offset: Optional[int]) -> Opening:
    call = of_exec(sandbox, exec, 'GET', '/attach', query=members(offset=offset))
    return Opening(call, 'holt.attach.v1', None)


def word(**said: Any) -> bytes:
    return json.dumps(said).encode()


def terminal_json(t: Terminal) -> Dict[str, Any]:
    return asdict(t)


def heard(collected: Collected, is_text: bool, message: bytes) -> Optional[Output]:
    """A message of the hub: output, or None. Raises what it tells to have failed."""
    if not is_text:
        if not message or message[0] not in (1, 2):
            raise TransportError('a message of the WebSocket is none of a Holt hub',
                                 code='bad_answer')
        return collected.add(Output('stdout' if message[0] == 1 else 'stderr', message[1:]))
    try:
        d = typed(dict, json.loads(message))
        if 'exit' in d:
            collected.end(d['exit'])
        elif 'error' in d:
            e = d['error']
            raise error_of(str(e['failure']),
                           str(e['code']),
                           str(e['cause']),
                           remediation=str(e['remediation']),
                           retryable=e['retryable'] is True,
                           context=e.get('context'))
    except MISFIT as misfit:
        raise bad_answer(misfit) from misfit
    return None


# ---- ports and network ------------------------------------------------------------------------


def forward(sandbox: str, guest_port: int, host_port: Optional[int]) -> Steps[Forward]:
    body = members(guest_port=guest_port, host_port=host_port)
    return forward_of((yield on(sandbox, 'POST', '/forward', body=body,
                                idempotent=True)).document)


def forwards(sandbox: str) -> Steps[List[Forward]]:
    d = (yield on(sandbox, 'GET', '/forward', idempotent=True)).document
    return [forward_of(f) for f in typed(list, d['forwards'])]


def forward_of(d: Mapping[str, Any]) -> Forward:
    made = build(Forward, d)
    _ = made.port  # raises where it is none
    return made


def unforward(sandbox: str, guest_port: Optional[int]) -> Steps[None]:
    yield on(sandbox, 'DELETE', '/forward', query=members(guest_port=guest_port), idempotent=True)


def preview(sandbox: str, port: int, ttl_seconds: Optional[int]) -> Steps[Preview]:
    body = {'sandbox': sandbox, 'port': port, **members(ttl_seconds=ttl_seconds)}
    return build(Preview, (yield post('/v1/preview', body, idempotent=True)).document)


def expose(sandbox: str, port: int, path: str, method: str, body: Optional[bytes]) -> Call:
    below = quote(path.lstrip('/'), safe="/?&=%~!$'()*+,;:@")
    return Call(method,
                '/v1/sandboxes/{id}/expose/{port}/' + below, {
                    'id': sandbox,
                    'port': str(port)
                },
                content=body)


def get_network(sandbox: str) -> Steps[NetworkInfo]:
    return network_info((yield on(sandbox, 'GET', '/network', idempotent=True)).document)


def set_network(sandbox: str,
                policy: NetworkPolicy,
                revision: Optional[int] = None) -> Steps[NetworkInfo]:
    body = {'network': policy.to_json() or {'mode': 'none'}, **members(revision=revision)}
    return network_info((yield on(sandbox, 'POST', '/network', body=body,
                                  idempotent=True)).document)


def network_info(d: Mapping[str, Any]) -> NetworkInfo:
    hosts = tuple(
        Host(h['host'], h.get('port'), tuple(HttpRule(**rule) for rule in h.get('http', ())))
        for h in d['allow'])
    return build(NetworkInfo, d, policy=NetworkPolicy(hosts))


def change_network(sandbox: str, change: Callable[[NetworkPolicy],
                                                  NetworkPolicy]) -> Steps[NetworkInfo]:
    """Of those that change it at once, each round has one that gets through."""
    left = CHANGES_MAX
    while True:
        now = yield from get_network(sandbox)
        try:
            return (yield from set_network(sandbox, change(now.policy), now.revision))
        except ConflictError:
            left -= 1
            if not left:
                raise


# ---- lines ------------------------------------------------------------------------------------


class Lines:
    """Cuts a stream into its lines of JSON."""

    def __init__(self) -> None:
        self._got = bytearray()

    def feed(self, data: bytes) -> List[Dict[str, Any]]:
        self._got += data
        *whole, rest = self._got.split(b'\n')
        if len(rest) > ANSWER_MAX:
            raise TransportError('a line of the answer is too long', code='bad_answer')
        self._got = bytearray(rest)
        try:
            return [json.loads(line) for line in whole if line.strip()]
        except (ValueError, RecursionError):
            raise TransportError('a line of the answer is no JSON', code='bad_answer') from None
