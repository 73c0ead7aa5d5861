"""A raw MCP client: bytes to a program's standard input, lines from its standard output, deadlines.

It has no threads: whoever waits reads. Every line that comes is checked for what JSON-RPC promises,
so each test also tests the wire.
"""

import collections
import errno
import json
import os
import select
import subprocess
import time

LATEST = '2025-11-25'
TOOLS = 20  # that are served
DEADLINE = 60  # seconds for one answer, unless told


class Failed(Exception):
    """A tool result with isError; .error is its decoded text."""

    def __init__(self, error):
        super().__init__(f'{error["code"]}: {error["cause"]}')
        self.error = error
        self.code = error['code']


CHANGED = {'jsonrpc': '2.0', 'method': 'notifications/resources/list_changed', 'params': {}}


def data_of(result):
    """What a tool has told: as structured content, or in its text and, of what that does not
    tell, in _meta."""
    if 'structuredContent' in result:
        return result['structuredContent']
    text, facts = result['content'][0]['text'], result.get('_meta', {}).get('holt/facts', {})
    if 'encoding' in facts:
        return {'content': text, **facts}
    return {**facts, **json.loads(text)}


# What each failure says, whether of a tool or of the protocol.
FAILURE = {'code', 'cause', 'remediation', 'failure', 'retryable'}


def no_repeats(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f'a repeated key in what the server sent: {keys}'
    return dict(pairs)


def check_message(message):
    if isinstance(message, list):  # the answers to a batch
        assert message
        for one in message:
            check_message(one)
        return
    assert isinstance(message, dict) and message.get('jsonrpc') == '2.0', message
    if 'method' in message:
        assert set(message) <= {'jsonrpc', 'method', 'params'}, message  # it sends no requests
        return
    assert ('result' in message) != ('error' in message), message
    assert (set(message) <= {'jsonrpc', 'id', 'result', 'error'}
            and message.get('id', 0) is not None), message
    assert 'id' in message or 'error' in message, message
    if 'error' in message:
        error = message['error']
        assert set(error) <= {'code', 'message', 'data'}, message
        assert isinstance(error['code'], int) and isinstance(error['message'], str), message
        assert FAILURE <= set(error.get('data', ())), message


class Client:
    def __init__(self, argv, env, log, cwd='/'):
        self.log = log  # path of what it writes to standard error
        with open(log, 'wb') as stderr:
            self.proc = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=stderr,
                                         env=env, cwd=cwd, start_new_session=True, bufsize=0)
        self.pid = self.proc.pid
        os.set_blocking(self.proc.stdin.fileno(), False)
        os.set_blocking(self.proc.stdout.fileno(), False)
        self.part = []  # pieces of a line that has not ended
        self.inbox = collections.deque()  # messages in the order in which they came
        self.changed = 0  # times that the list of resources did: no answer waits for it
        self.arrived = {}  # id of a response: time of arrival
        self.last_id = 0
        self.lines = None  # a list here keeps the lines as they came
        self.eof = False

    # ---- bytes -------------------------------------------------------------------------------

    def said(self):
        with open(self.log, encoding='utf-8', errors='replace') as f:
            return f.read()[-4000:]

    def take(self, data):
        now = time.monotonic()
        lines = data.split(b'\n')
        for line in lines[:-1]:
            self.part.append(line)
            text = b''.join(self.part)
            self.part = []
            message = json.loads(text.decode('utf-8'), object_pairs_hook=no_repeats)
            check_message(message)
            if message == CHANGED:
                self.changed += 1
                continue
            self.inbox.append(message)
            if self.lines is not None:
                self.lines.append(text.decode('utf-8'))
            if 'id' in message:
                self.arrived[message['id']] = now
        if lines[-1]:
            self.part.append(lines[-1])

    def pump(self, deadline, data=b''):
        """Reads what there is, and writes data meanwhile; what is left of data.
        Waits until one of both was possible."""
        out, into = self.proc.stdout.fileno(), self.proc.stdin.fileno() if data else None
        poll = select.poll()
        if not self.eof:
            poll.register(out, select.POLLIN)
        if data:
            poll.register(into, select.POLLOUT)
        left = deadline - time.monotonic()
        ready = dict(poll.poll(max(0, left * 1000)))
        if not ready:
            raise TimeoutError(f'nothing from the server in time; its log: {self.said()}')
        if out in ready:
            got = os.read(out, 1 << 20)
            if got:
                self.take(got)
            else:
                self.eof = True
        if into in ready:
            try:
                data = data[os.write(into, data[:1 << 20]):]
            except BlockingIOError:
                pass
            except OSError as e:
                if e.errno != errno.EPIPE:
                    raise
                raise ConnectionError(f'the server reads no more; its log: {self.said()}') from e
        return data

    def send_raw(self, data, timeout=DEADLINE):
        deadline = time.monotonic() + timeout
        data = memoryview(data)
        while data:
            data = self.pump(deadline, data)

    # ---- messages ----------------------------------------------------------------------------

    def send(self, message):
        self.send_raw(json.dumps(message, ensure_ascii=False).encode('utf-8') + b'\n')

    def next(self, timeout=DEADLINE):
        """The next message, whatever it is."""
        deadline = time.monotonic() + timeout
        while not self.inbox:
            if self.eof:
                raise ConnectionError(f'the server ended; its log: {self.said()}')
            self.pump(deadline)
        return self.inbox.popleft()

    def wait(self, request_id, timeout=DEADLINE):
        """The response to one id; others stay for later."""
        deadline = time.monotonic() + timeout
        while True:
            for i, message in enumerate(self.inbox):
                if 'id' in message and message['id'] == request_id:
                    del self.inbox[i]
                    return message
            if self.eof:
                raise ConnectionError(f'the server ended; its log: {self.said()}')
            self.pump(deadline)

    def notifications(self):
        """Takes all notifications that have come."""
        found = [m for m in self.inbox if 'method' in m]
        self.inbox = collections.deque(m for m in self.inbox if 'method' not in m)
        return found

    def start(self, method, params=None):
        """Sends a request; its id."""
        self.last_id += 1
        message = {'jsonrpc': '2.0', 'id': self.last_id, 'method': method}
        if params is not None:
            message['params'] = params
        self.send(message)
        return self.last_id

    def request(self, method, params=None, timeout=DEADLINE):
        return self.wait(self.start(method, params), timeout)

    def notify(self, method, params=None):
        message = {'jsonrpc': '2.0', 'method': method}
        if params is not None:
            message['params'] = params
        self.send(message)

    def initialize(self, version=LATEST):
        answer = self.request('initialize', {
            'protocolVersion': version, 'capabilities': {},
            'clientInfo': {'name': 'blackbox', 'version': '1'}})
        self.notify('notifications/initialized')
        return answer['result']

    def ping(self, timeout=DEADLINE):
        """How long a ping took, in seconds."""
        begun = time.monotonic()
        assert self.request('ping', timeout=timeout)['result'] == {}
        return time.monotonic() - begun

    # ---- tools -------------------------------------------------------------------------------

    def start_tool(self, name, **arguments):
        return self.start('tools/call', {'name': name, 'arguments': arguments})

    def result(self, request_id, within=DEADLINE):
        """What a call has told; Failed where the tool failed."""
        answer = self.wait(request_id, within)
        assert 'result' in answer, answer
        result = answer['result']
        if result.get('isError'):
            raise Failed(json.loads(result['content'][0]['text']))
        return data_of(result)

    def call(self, name, within=DEADLINE, **arguments):
        return self.result(self.start_tool(name, **arguments), within)

    def text(self, name, **arguments):
        """The text of a call that must succeed."""
        result = self.request('tools/call', {'name': name, 'arguments': arguments})['result']
        assert not result.get('isError'), result
        assert [c['type'] for c in result['content']] == ['text']
        return result['content'][0]['text']

    def fails(self, name, **arguments):
        """The decoded failure of a call that must fail."""
        try:
            got = self.call(name, **arguments)
        except Failed as e:
            return e.error
        raise AssertionError(f'{name} {str(arguments)[:300]} succeeded: {str(got)[:300]}')

    def create(self, **arguments):
        return Sandbox(self, self.call('sandbox_create', **{'pool': 'host', **arguments}))

    # ---- end ---------------------------------------------------------------------------------

    def close(self, timeout=DEADLINE):
        """Ends the input, reads what still comes, and gives the exit status."""
        if self.proc.poll() is None:
            if not self.proc.stdin.closed:
                self.proc.stdin.close()
            deadline = time.monotonic() + timeout
            while not self.eof:
                self.pump(deadline)
        status = self.proc.wait(timeout)
        self.proc.stdout.close()
        return status

    def kill(self):
        """For clearing up, whatever state it is in."""
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait()
        for stream in (self.proc.stdin, self.proc.stdout):
            try:
                stream.close()
            except OSError:
                pass


class Sandbox:
    def __init__(self, client, info):
        self.client, self.info = client, info
        self.id = info['sandbox']

    def start(self, command, **arguments):
        """Its output up to a mebibyte: what a model is told is less."""
        return self.client.start_tool('sandbox_exec', sandbox=self.id, command=command,
                                      **{'max_output_bytes': 1 << 20, **arguments})

    def exec(self, command, within=DEADLINE + 30, **arguments):
        return self.client.result(self.start(command, **arguments), within)

    def argv(self, *argv, within=DEADLINE + 30, **arguments):
        return self.exec(argv[0], within, args=list(argv[1:]), **arguments)

    def sh(self, command, **arguments):
        """Standard output of a command that must succeed."""
        got = self.exec(command, **arguments)
        assert got['exit_code'] == 0, got
        return got['stdout']

    def write(self, path, content, **arguments):
        return self.client.call('sandbox_write_file', sandbox=self.id, path=path, content=content,
                                **arguments)

    def read(self, path, **arguments):
        """As much as there can be: what a model is told is less."""
        return self.client.call('sandbox_read_file', sandbox=self.id, path=path,
                                **{'limit': 4 << 20, **arguments})

    def content(self, path, **arguments):
        return self.read(path, **arguments)['content']

    def fork(self, n=1, within=DEADLINE):
        got = self.client.call('sandbox_fork', within=within, sandbox=self.id, replicas=n)
        assert len(got['sandboxes']) == n == len(set(got['sandboxes']))
        return [Sandbox(self.client, {'sandbox': i}) for i in got['sandboxes']]

    def running(self, name):
        """How many living processes of this name are in it."""
        return int(self.exec("cat /proc/[0-9]*/stat 2>/dev/null | grep -c "
                             f"'({name}) [^ZX]'")['stdout'])

    def terminate(self):
        return self.client.call('sandbox_terminate', sandbox=self.id)

    def fails(self, tool, **arguments):
        return self.client.fails(tool, sandbox=self.id, **arguments)

    def gone(self):
        try:
            self.exec('true')
        except Failed as e:
            return e.code
        return None


def until(condition, timeout=100, what='it'):
    """Polls until the condition gives something true, and returns that. what: awaited, a text or
    a function that tells in the end how things stand."""
    deadline = time.monotonic() + timeout
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > deadline:
            what = what() if callable(what) else what
            raise TimeoutError(f'{what} did not come about within {timeout} s')
        time.sleep(0.01)
