"""`holt mcp WORD` as a client, and servers from npm that it speaks to."""

import contextlib
import json
import os
import pty
import random
import select
import signal
import socket
import subprocess
import time

import pytest

import host
from client import until
from who import BUILD, HERE, NEW_NODE

PEERS = os.path.join(HERE, 'peers')
MODULES = os.path.join(PEERS, 'node_modules')
EVERYTHING = os.path.join(BUILD, 'examples/everything/everything')


def script(*path):
    """The command of a program from npm."""
    found = os.path.join(PEERS if path[0] == 'server.mjs' else MODULES, *path)
    if not os.path.exists(NEW_NODE) or not os.path.exists(found) or not os.path.isdir(MODULES):
        pytest.skip('the peers from npm are missing: scripts/deps test')
    return [NEW_NODE, found]


def package(name):
    return script('@modelcontextprotocol', 'server-' + name, 'dist', 'index.js')


def free_port():
    """One that nobody has, nor is given for a connection before it is used:
    Linux takes those from 32768 on."""
    while True:
        port = random.randrange(10000, 32768)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(('127.0.0.1', port))
            return port


def answers(port):
    try:
        socket.create_connection(('127.0.0.1', port), 1).close()
    except OSError:
        return False
    return True


class Daemon:
    """A server that listens on a port, and all that it has started."""

    def __init__(self, who, argv, port, env=None):
        self.port = port
        self.log = who.log()
        with open(self.log, 'wb') as log:
            self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                         cwd='/', start_new_session=True,
                                         env={**who.env, **(env or {})})
        try:
            until(lambda: self.proc.poll() is not None or answers(port), what=f'a server at {port}',
                  timeout=60)
            assert self.proc.poll() is None, self.said()
        except BaseException:
            self.close()
            raise

    def said(self):
        with open(self.log, encoding='utf-8', errors='replace') as f:
            return f.read()[-4000:]

    def url(self, path):
        return f'http://127.0.0.1:{self.port}{path}'

    def close(self):
        below = [self.proc.pid, *host.below(self.proc.pid)]
        for pid in below:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.proc.wait()


class Cli:
    """The words of `holt mcp` to one server, which `to` names on the command line."""

    def __init__(self, who, to, env=None):
        self.who, self.to, self.env = who, to, env

    def run(self, word, *arguments, timeout=60, **options):
        command = ['mcp', word, *arguments, *self.to]
        done = self.who.run(*command, timeout=timeout, env=self.env, **options)
        assert b'Sanitizer' not in done.stderr, done.stderr
        return done

    def text(self, word, *arguments, **options):
        done = self.run(word, *arguments, **options)
        assert done.returncode == 0, (done.args, done)
        return done.stdout.decode()

    def json(self, word, *arguments, status=0, **options):
        done = self.run(word, '--json', *arguments, **options)
        assert done.returncode == status, (done.args, done)
        return json.loads(done.stdout)

    def failure(self, status, word, *arguments, **options):
        """What --json says on standard error of a call that ends so."""
        done = self.run(word, '--json', *arguments, **options)
        assert done.returncode == status and not done.stdout, (done.args, done)
        return json.loads(done.stderr.splitlines()[-1])['error']


class Terminal:
    """holt at a terminal of its own."""

    def __init__(self, who, *arguments):
        pid, self.fd = pty.fork()
        if pid == 0:
            os.chdir('/')
            os.execve(who.argv()[0], who.argv(*arguments), who.env)
        self.pid, self.seen = pid, ''

    def expect(self, word, timeout=60):
        """Reads until it is there; what came before it."""
        deadline = time.monotonic() + timeout
        while word not in self.seen:
            assert select.select([self.fd], [], [],
                                 max(0, deadline - time.monotonic()))[0], (word, self.seen)
            try:
                piece = os.read(self.fd, 65536)
            except OSError:
                piece = b''
            assert piece, (word, self.seen)
            self.seen += piece.decode()
        before, _, self.seen = self.seen.partition(word)
        return before

    def type(self, line):
        os.write(self.fd, line.encode())

    def end(self):
        """What it says until its end, and its status."""
        while True:
            assert select.select([self.fd], [], [], 60)[0], self.seen
            try:
                piece = os.read(self.fd, 65536)
            except OSError:
                break
            if not piece:
                break
            self.seen += piece.decode()
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return self.seen, status


def to_program(argv, *options):
    return [*options, '--', *argv]


def to_url(url, *options):
    return [*options, '--url', url]


# ---- a sweep over all that a server offers ------------------------------------------------------


def value_for(schema, name, values):
    """Something that the schema takes."""
    if name in values:
        return values[name]
    if 'default' in schema:
        return schema['default']
    if 'const' in schema:
        return schema['const']
    if schema.get('enum'):
        return schema['enum'][0]
    for key in ('anyOf', 'oneOf'):
        if schema.get(key):
            return value_for(schema[key][0], name, {})
    kind = schema.get('type', 'string')
    kind = kind[0] if isinstance(kind, list) else kind
    if kind in ('integer', 'number'):
        return max(schema.get('minimum', 1), schema.get('exclusiveMinimum', 0) + 1, 1)
    if kind == 'boolean':
        return False
    if kind == 'array':
        return [value_for(schema.get('items', {}), name, {})] * max(schema.get('minItems', 1), 1)
    if kind == 'object':
        wanted = schema.get('required', [])
        return {k: value_for(v, k, {}) for k, v in schema.get('properties', {}).items()
                if k in wanted}
    return 'https://example.com/' if schema.get('format') == 'uri' else 'text'


def operands_for(tool, values):
    """NAME=VALUE for each required argument, and for those that are named."""
    schema = tool['inputSchema']
    found = []
    for name, property_ in schema.get('properties', {}).items():
        if name not in schema.get('required', []) and name not in values:
            continue
        value = value_for(property_, name, values)
        found.append(f'{name}={value if isinstance(value, str) else json.dumps(value)}')
    return found


class Sweep:
    """Calls every tool once. (tests/client asks for resources, prompts and completions.)

    table: for what is not just to work with what its schema says: name -> {'values': {…},
    'status': n, 'skip': 'why'}."""

    def __init__(self, cli, table):
        self.cli, self.table = cli, table
        self.used = set()

    def row(self, name):
        self.used.add(name)
        return self.table.get(name, {})

    def tool(self, tool):
        row = self.row(tool['name'])
        if 'skip' in row:
            return
        result = self.cli.json('call', *row.get('options', []), tool['name'],
                               *operands_for(tool, row.get('values', {})),
                               status=row.get('status', 0))
        assert 'content' in result, (tool['name'], result)
        if 'outputSchema' in tool and not result.get('isError'):
            assert 'structuredContent' in result

    def jobs(self):
        return [(self.tool, t) for t in self.cli.json('tools')['tools']]

    def run(self, pool, every=1):
        """Those that there are, of which each n-th is done."""
        jobs = self.jobs()
        for done in [pool.submit(*job) for job in jobs[::every]]:
            done.result()
        return len(jobs)
