"""Servers over HTTP: that of tests/http, whose tools leave every step to the test, and the hub."""

import json
import os
import re
import signal
import subprocess

from client import until
from http_client import Conn, Door, Modern, Session
from who import BUILD, HERE

HOST = os.path.join(BUILD, 'tests/http/mcp-http-host')


class HttpHost:
    def __init__(self, log, **options):
        self.log = log
        with open(log, 'wb') as stderr:
            self.proc = subprocess.Popen([HOST, *(f'{k}={v}' for k, v in options.items())],
                                         stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, stderr=stderr, cwd=HERE,
                                         start_new_session=True)
        line = self.proc.stdout.readline()
        assert line, self.said()
        self.address = ('127.0.0.1', int(line))
        self.door = Door(self.address, 'alice')
        self.control = Modern(self.door)

    def said(self):
        with open(self.log, encoding='utf-8', errors='replace') as f:
            return f.read()[-4000:]

    def session(self, version='2025-11-25', **options):
        return Session(self.door, version, **options)

    def text(self, tool, **arguments):
        return self.control.call(tool, **arguments)['content'][0]['text']

    def stats(self):
        return json.loads(self.text('stats'))

    def until(self, **wanted):
        """Waits until the numbers are these."""
        def met():
            got = self.stats()
            return got if all(got[k] == v for k, v in wanted.items()) else None
        return until(met, what=f'{wanted}')

    def release(self, key=None):
        return self.text('release', **({'key': key} if key else {}))

    def memory(self):
        with open(f'/proc/{self.proc.pid}/smaps_rollup', encoding='utf-8') as f:
            return sum(int(line.split()[1])
                       for line in f if line.startswith(('Private_Clean', 'Private_Dirty')))

    def connect(self, **options):
        return Conn(self.address, **options)

    def stop(self, timeout=60):
        """SIGTERM and the exit status."""
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGTERM)
        return self.proc.wait(timeout)

    def close(self):
        try:
            status = self.stop()
        finally:
            if self.proc.poll() is None:
                self.proc.kill()
                self.proc.wait()
            self.proc.stdout.close()
        assert status == 0, (status, self.said())
        assert 'ERROR' not in self.said() and 'Sanitizer' not in self.said(), self.said()


class Serving:
    """A `holt serve` on a port of its own, and its token."""

    def __init__(self, who, *arguments):
        self.log = who.log()
        home = self.log + '.home'  # of its own: there is one hub a home
        os.mkdir(home, 0o700)
        os.chown(home, who.uid, who.uid)
        env = {**who.env, 'HOLT_HOME': home}
        with open(self.log, 'wb') as stderr:
            self.proc = subprocess.Popen(
                who.argv('serve', '--listen', '127.0.0.1:0', '--socket', 'none', '--pool', '2',
                         *arguments),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, env=env, cwd='/',
                start_new_session=True)
        line = self.proc.stdout.readline().decode()
        found = re.fullmatch(r'Listening on (http://127\.0\.0\.1:(\d+))\n', line)
        assert found, (line, open(self.log, encoding='utf-8').read())
        self.url, self.port = found.group(1), int(found.group(2))
        self.token = who.run('auth', 'token', env=env).stdout.decode().strip()
        self.door = Door(('127.0.0.1', self.port), self.token)

    def close(self):
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGTERM)
        try:
            status = self.proc.wait(60)
        finally:
            self.proc.kill()
            self.proc.wait()
            self.proc.stdout.close()
        assert status == 0, open(self.log, encoding='utf-8').read()[-4000:]
