"""A raw HTTP client that sends what it is told, byte for byte,
and the server of tests/door to send it to."""

import os
import select
import socket
import ssl
import subprocess
import threading

from client import until
from who import BUILD

HOST = os.path.join(BUILD, 'tests/door/door-host')
TOKEN = 'right'
WAIT = 60


class Closed(Exception):
    """The connection ended where a reply was expected."""


class Reply:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def all(self, name):
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def get(self, name):
        found = self.all(name)
        assert len(found) <= 1, (name, found)
        return found[0] if found else None

    def __repr__(self):
        return f'{self.status} {self.fields} {self.body[:300]}'


class Wire:
    """A connection: bytes out, replies in."""

    def __init__(self, address, tls=None, receive_buffer=None):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(WAIT)
        self.sock.connect(address)
        if family == socket.AF_INET:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.sock = tls.wrap_socket(self.sock, server_hostname='localhost')
        self.got = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data.encode('latin-1') if isinstance(data, str) else data)

    def more(self):
        try:
            piece = self.sock.recv(65536)
        except (ConnectionResetError, BrokenPipeError):
            piece = b''
        if not piece:
            raise Closed(bytes(self.got))
        self.got += piece

    def exactly(self, n):
        while len(self.got) < n:
            self.more()
        head = bytes(self.got[:n])
        del self.got[:n]
        return head

    def until(self, mark):
        looked = 0  # there is no mark before it
        while (at := self.got.find(mark, looked)) < 0:
            looked = max(0, len(self.got) - len(mark) + 1)
            self.more()
        return self.exactly(at + len(mark))[:at]

    def head(self):
        lines = self.until(b'\r\n\r\n').decode('latin-1').split('\r\n')
        version, status, _ = lines[0].split(' ', 2)
        assert version == 'HTTP/1.1', lines
        return int(status), [tuple(part.strip() for part in line.split(':', 1))
                             for line in lines[1:]]

    def chunk(self):
        """The next chunk; b'' at the end of the body."""
        size = int(self.until(b'\r\n'), 16)
        data = self.exactly(size)
        assert self.until(b'\r\n') == b''
        return data

    def reply(self, to='GET'):
        status, fields = self.head()
        reply = Reply(status, fields, b'')
        length = reply.get('Content-Length')
        if to == 'HEAD' or status in (100, 101, 204, 304):
            return reply
        if reply.get('Transfer-Encoding') == 'chunked':
            reply.body = b''.join(iter(self.chunk, b''))
            return reply
        reply.body = self.exactly(int(length))
        return reply

    def ask(self, data, to='GET'):
        self.send(data)
        return self.reply(to)

    def ended(self):
        """Waits for the end of the connection; what came before it."""
        try:
            while True:
                self.more()
        except Closed:
            return bytes(self.got)


def request(method='GET', path='/show', *, host='localhost', token=TOKEN, body=None, fields=(),
            version='HTTP/1.1'):
    """A right request, as text; what is None is left out."""
    lines = [f'{method} {path} {version}']
    lines += [f'Host: {host}'] if host is not None else []
    lines += [f'Authorization: Bearer {token}'] if token is not None else []
    if body is not None:
        lines += ['Content-Type: application/json', f'Content-Length: {len(body)}']
    return '\r\n'.join([*lines, *fields, '', body or ''])


class DoorHost:
    """tests/door's server; said() is what its routes were told."""

    def __init__(self, **options):
        self.proc = subprocess.Popen([HOST, *(f'{k}={v}' for k, v in options.items())],
                                     stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, start_new_session=True, text=True)
        self.port = int(self.proc.stdout.readline())
        self.address = ('127.0.0.1', self.port)
        self.tls = options.get('certificate') and trusting(options['certificate'])
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.proc.stdout:
            self.lines.append(line.rstrip('\n'))

    def wire(self, **options):
        return Wire(self.address, **{'tls': self.tls, **options})

    def ask(self, data, to='GET'):
        with self.wire() as wire:
            return wire.ask(data, to)

    def works(self):
        """The control: a right request is answered."""
        reply = self.ask(request())
        assert reply.status == 200, reply

    def heard(self, line, times=1):
        until(lambda: self.lines.count(line) >= times, what=f'{line!r} in {self.lines}')

    def close(self):
        """Asks it to end in order."""
        self.proc.stdin.write('end\n')
        self.proc.stdin.flush()

    def finish(self, timeout=WAIT):
        if self.proc.poll() is None:
            if 'closed' not in self.lines and not self.proc.stdin.closed:
                try:
                    self.close()
                except BrokenPipeError:
                    pass
            self.proc.wait(timeout)
        self.reader.join(timeout)
        assert self.proc.returncode == 0, (self.proc.returncode, self.lines)
        assert self.lines.count('closed') == 1 and 'handles left' not in self.lines, self.lines

    def kill(self):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()
        self.proc.stdin.close()
        self.proc.stdout.close()

    def memory(self):
        with open(f'/proc/{self.proc.pid}/status', encoding='utf-8') as f:
            return next(int(line.split()[1]) for line in f if line.startswith('VmRSS:')) * 1024


def readable(sock):
    return bool(select.select([sock], [], [], 0)[0])


def trusting(certificate):
    context = ssl.create_default_context(cafile=certificate)
    return context
