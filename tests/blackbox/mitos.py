"""A stand-in for mitos' sandbox-server, by the Python standard library alone. It answers as that
does: the older one (before its issue 358) with /v1/exec and /v1/files, the newer with live forks
and Connect, each with its errors. A sandbox is a dict of files; commands are those of run()."""

import base64
import http.server
import json
import re
import struct
import threading

ID = re.compile(r'[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}')


class Refused(Exception):
    def __init__(self, status, code, cause, **context):
        super().__init__(code)
        self.status = status
        self.error = {'code': code, 'message': code.replace('_', ' '), 'cause': cause,
                      'remediation': 'read the documentation', 'context': context}


def run(files, command, env, cwd):
    """Exit code, stdout, stderr."""
    word, _, rest = command.partition(' ')
    if word == 'echo':
        return 0, (rest + '\n').encode(), b''
    if word == 'cat':
        return (0, files[rest], b'') if rest in files else (1, b'', b'cat: no such file\n')
    if word == 'env':
        return 0, json.dumps({**env, 'PWD': cwd}).encode(), b''
    if word == 'many':
        return 0, b'x' * int(rest), b''
    if word == 'bytes':
        return 0, bytes(range(256)), b''
    if word == 'late':
        return 124, b'', b''
    return 127, b'', f'sh: {word}: not found\n'.encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind='application/json', fields=()):
        body = body if isinstance(body, bytes) else json.dumps(body).encode() + b'\n'
        self.send_response(status)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(body)))
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def absent(self):
        """What Go's router says where there is no such route."""
        self.answer(404, b'404 page not found\n', 'text/plain; charset=utf-8')

    def serve(self):
        site = self.server
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        with site.lock:
            site.requests.append((self.command, self.path, dict(self.headers), body))
            special = site.special
        if special:
            special(self, body)
            return
        try:
            for pattern, method, since, until, do in ROUTES:
                found = re.fullmatch(pattern, self.path.split('?')[0])
                if found and method == self.command and since <= site.age <= until:
                    do(self, body, *found.groups())
                    return
            if any(re.fullmatch(row[0], self.path) and row[2] <= site.age <= row[3]
                   for row in ROUTES):
                self.answer(405, b'Method Not Allowed\n', 'text/plain; charset=utf-8')
            else:
                self.absent()
        except Refused as e:
            self.answer(e.status, {'error': e.error})

    do_GET = do_POST = do_DELETE = serve

    def guard(self):
        wanted = self.server.token
        if wanted and self.headers.get('Authorization') != f'Bearer {wanted}':
            said = self.headers.get('Authorization')
            raise Refused(401, 'unauthorized', f'missing or wrong token: {said}')

    def json(self, body):
        try:
            return json.loads(body)
        except ValueError:
            raise Refused(400, 'invalid_json', 'the body is not JSON') from None

    def box(self, name, field='sandbox'):
        if name not in self.server.boxes:
            raise Refused(404, 'not_found', f'{field} "{name}" not found', sandbox=name)
        return self.server.boxes[name]

    def shown(self, name, template):
        return {'id': name, 'template_id': template, 'endpoint': '127.0.0.1:1',
                'created_at': '2026-07-18T00:00:00Z', 'fork_time_ms': 56.1,
                'network': {'egress': 'deny'}}

    def make(self, name, template, files):
        if not isinstance(name, str) or not ID.fullmatch(name):
            raise Refused(400, 'invalid_json', f'invalid id {name!r}')
        self.server.boxes[name] = files
        self.answer(200, self.shown(name, template))

    # ---- routes

    def health(self, body):
        self.answer(200, {'status': 'ok', 'mock': False, 'templates': 1,
                          'sandboxes': len(self.server.boxes)})

    def fork(self, body):
        asked = self.json(body)
        template = asked.get('template')
        if template in self.server.templates:
            self.make(asked.get('id'), template, {})
        elif template in self.server.boxes and self.server.age == OLD:
            self.make(asked.get('id'), template, dict(self.server.boxes[template]))
        else:
            raise Refused(404, 'not_found', f'template "{template}" not found')

    def live_fork(self, body, source):
        self.make(self.json(body).get('id'), source, dict(self.box(source)))

    def list(self, body):
        self.answer(200, [self.shown(name, 'python') for name in self.server.boxes])

    def delete(self, body, name):
        self.box(name)
        del self.server.boxes[name]
        self.answer(200, {'status': 'terminated', 'id': name})

    def exec(self, body):
        self.guard()
        asked = self.json(body)
        code, out, err = run(self.box(asked['sandbox']), asked['command'], asked.get('env', {}),
                             asked.get('working_dir', '/workspace'))
        if code == 124:
            raise Refused(504, 'exec_timeout', 'the command exceeded its timeout',
                          timeout_s=asked.get('timeout'))
        self.answer(200, {'exit_code': code, 'stdout': out.decode('utf-8', 'replace'),
                          'stderr': err.decode(), 'exec_time_ms': 1.5})

    def read(self, body):
        self.guard()
        asked = self.json(body)
        files = self.box(asked['sandbox'])
        if asked['path'] not in files:
            raise Refused(500, 'file_failed', 'open: no such file', path=asked['path'])
        data = files[asked['path']]
        self.answer(200, {'content': data.decode('utf-8', 'replace'), 'size': len(data)})

    def write(self, body):
        self.guard()
        asked = self.json(body)
        self.box(asked['sandbox'])[asked['path']] = asked['content'].encode()
        self.answer(200, {'status': 'ok'})

    # ---- Connect

    def frames(self, body):
        while body:
            flags, n = struct.unpack('>BI', body[:5])
            assert flags == 0
            yield json.loads(body[5:5 + n])
            body = body[5 + n:]

    def stream(self, messages, error=None):
        end = {'error': error} if error else {}
        out = b''
        for flags, message in [*((0, m) for m in messages), (2, end)]:
            text = json.dumps(message).encode()
            out += struct.pack('>BI', flags, len(text)) + text
        self.answer(200, out, 'application/connect+json')

    def called(self):
        """The sandbox of a call; None where the stream has said what is wrong."""
        wanted = self.server.token
        if wanted and self.headers.get('Authorization') != f'Bearer {wanted}':
            self.stream([], {'code': 'unauthenticated', 'message': 'unauthorized: '
                             + str(self.headers.get('Authorization'))})
            return None
        name = self.headers.get('X-Sandbox-Id')
        if name not in self.server.boxes:
            self.stream([], {'code': 'not_found', 'message': f'sandbox "{name}" not found'})
            return None
        return self.server.boxes[name]

    def exec_stream(self, body):
        asked, = self.frames(body)
        box = self.called()
        if box is None:
            return
        env = {v['key']: v['value'] for v in asked.get('env', [])}
        command = ' '.join([asked['command'], *asked.get('args', [])])
        code, out, err = run(box, command, env, asked.get('cwd', '/workspace'))
        messages = []
        for name, data in (('stdout', out), ('stderr', err)):
            messages += [{name: base64.b64encode(data[i:i + 4096]).decode()}
                         for i in range(0, len(data), 4096)]
        end = {'exitCode': code} if code else {}
        self.stream([*messages, {'exit': {**end, 'execTimeMs': 1.5}}])

    def read_file(self, body):
        asked, = self.frames(body)
        box = self.called()
        if box is None:
            return
        if asked['path'] not in box:
            self.stream([], {'code': 'internal', 'message': 'open: no such file'})
            return
        data = box[asked['path']]
        self.stream([{'data': base64.b64encode(data[i:i + 4096]).decode()}
                     for i in range(0, len(data), 4096)] + [{'eof': True}])

    def write_file(self, body):
        first, *rest = self.frames(body)
        box = self.called()
        if box is None:
            return
        data = b''.join(base64.b64decode(m['data']) for m in rest)
        box[first['open']['path']] = data
        self.stream([{'bytesWritten': str(len(data))}])


OLD, NEW = 1, 2
ROUTES = [
    ('/v1/health', 'GET', OLD, NEW, Handler.health),
    ('/v1/fork', 'POST', OLD, NEW, Handler.fork),
    ('/v1/sandboxes/([^/]+)/fork', 'POST', NEW, NEW, Handler.live_fork),
    ('/v1/sandboxes', 'GET', OLD, NEW, Handler.list),
    ('/v1/sandboxes/([^/]+)', 'DELETE', OLD, NEW, Handler.delete),
    ('/v1/exec', 'POST', OLD, OLD, Handler.exec),
    ('/v1/files/read', 'POST', OLD, OLD, Handler.read),
    ('/v1/files/write', 'POST', OLD, OLD, Handler.write),
    ('/sandbox.v1.Sandbox/ExecStream', 'POST', NEW, NEW, Handler.exec_stream),
    ('/sandbox.v1.Sandbox/ReadFile', 'POST', NEW, NEW, Handler.read_file),
    ('/sandbox.v1.Sandbox/WriteFile', 'POST', NEW, NEW, Handler.write_file),
]


class Server(http.server.ThreadingHTTPServer):
    """special: what answers all requests instead, or None."""

    daemon_threads = True

    def __init__(self, age, token=None, port=0):
        super().__init__(('127.0.0.1', port), Handler)
        self.age, self.token, self.special = age, token, None
        self.templates, self.boxes, self.requests = {'python'}, {}, []
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f'http://127.0.0.1:{self.server_address[1]}'

    def asked(self):
        """Methods and paths since the last time, without the question who it is."""
        with self.lock:
            found = [(m, p) for m, p, *_ in self.requests if p != '/version']
            self.requests.clear()
        return found

    def handle_error(self, request, client_address):
        pass  # a client that went away
