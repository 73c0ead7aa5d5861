#!/usr/bin/env python3
"""A model that does what the prompt says, for agents of others: Anthropic's messages, OpenAI's
responses and chat completions, Gemini's generateContent.

    model.py [--port PORT] [--tls CERTIFICATE KEY] [--key SECRET] [--record FILE]

It prints its port. A line of the last prompt that begins with DO is a step. What an agent calls a
tool for commands or files is found among the tools that it offers (TOOLS).

    DO edit FILE TEXT    writes the file (`\\n` in the text is a new line)
    DO run COMMAND
    DO plan              a plan of two entries, by the agent's tool for that
    DO call TOOL {JSON}  any tool; the end of its name is enough, as for tools of MCP servers
    DO say TEXT          DO think TEXT
    DO tell              says what the last tool has answered
    DO slow N            says something for N seconds, four times a second
    DO hang              never answers
    DO cut [N]           ends the connection in the middle of the answer, N times
    DO fail STATUS [N]   fails with this HTTP status, N times

Without N it is each time. After the last step it says `Done.` Requests without tools (titles,
summaries) are answered with a line of text. --key: requests with another credential are refused.
--record: a line of JSON for each request: method, path, credential, body.
"""
import argparse
import http.server
import itertools
import json
import re
import select
import socket
import ssl
import threading
import time
import urllib.parse

from dialects import Chat, Gemini, Messages, Responses

MODEL = 'scripted-1'
STEP = re.compile(r'^\s*DO (edit|run|plan|call|say|think|tell|slow|hang|cut|fail)\b ?(.*)$', re.M)
WORDS = {'edit': 2, 'fail': 2, 'call': 2}  # arguments of a step; others take the rest of the line
PLAN = ('Look around', 'Say what is there')


def shell_edit(path, text):
    added = '\n'.join('+' + line for line in text.split('\n'))
    return (f"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {path}\n{added}\n"
            '*** End Patch\nEOF')


def program(command):
    """For a tool that runs JavaScript, of which commands are a function."""
    return f'text(await tools.exec_command({json.dumps({"cmd": command})}))'


# step: the tools that can do it, and how their arguments are made; the first that is offered counts
TOOLS = {
    'edit': {
        'Write': lambda path, text: {'file_path': path, 'content': text},
        'write_file': lambda path, text: {'file_path': path, 'content': text},
        'write': lambda path, text: {'filePath': path, 'content': text},
        'create': lambda path, text: {'path': path, 'file_text': text},
        'exec_command': lambda path, text: {'cmd': shell_edit(path, text)},
        'exec': lambda path, text: program(shell_edit(path, text)),
    },
    'run': {
        'Bash': lambda line: {'command': line, 'description': 'A harmless command'},
        'run_shell_command': lambda line: {'command': line, 'is_background': False},
        'bash': lambda line: {'command': line, 'description': 'A harmless command'},
        'exec_command': lambda line: {'cmd': line},
        'exec': program,
    },
    'plan': {
        'update_plan': lambda: {'plan': [{'step': p, 'status': 'pending'} for p in PLAN]},
        'TodoWrite': lambda: {'todos': [{'content': p, 'status': 'pending', 'activeForm': p}
                                        for p in PLAN]},
        'todowrite': lambda: {'todos': [{'id': p, 'content': p, 'status': 'pending',
                                         'priority': 'high'} for p in PLAN]},
        'todo_write': lambda: {'todos': [{'id': p, 'content': p, 'status': 'pending'}
                                         for p in PLAN]},
        'write_todos': lambda: {'todos': [{'description': p, 'status': 'pending'} for p in PLAN]},
        'ExitPlanMode': lambda: {'plan': '\n'.join(PLAN)},
    },
}


class Asked:
    """A request, as dialects.py has read it."""

    def __init__(self, body, turns, tools):
        self.tools, self.whole = tools, json.dumps(body)
        scripts = [n for n, (kind, text) in enumerate(turns)
                   if kind == 'user' and STEP.search(text)]
        self.script = turns[scripts[-1]][1] if scripts else ''
        after = turns[scripts[-1]:] if scripts else []
        self.done = [what for kind, what in after if kind == 'call']
        self.results = [what for kind, what in after if kind == 'result']

    def call(self, verb, words):
        """The answer's part for a step that is a tool. An agent may keep tools back until the model
        searches for them by name; the request mentions them then."""
        hidden = 'ToolSearch' in self.tools
        if verb == 'call':
            of_servers = re.findall(rf'\b\w+__{words[0]}\b', self.whole) if hidden else []
            known = {name: lambda: json.loads(words[1] if words[1:] else '{}') for name in (
                words[0], *(t for t in self.tools if t.endswith(words[0])), *of_servers)}
            words = ()
        else:
            known = TOOLS[verb]
        for name in known:
            if name in self.tools:
                return ('call', name, known[name](*words))
        for name in known:
            if hidden and name in self.whole and 'ToolSearch' not in self.done:
                return ('call', 'ToolSearch', {'query': f'select:{name}', 'max_results': 5})
        if verb == 'call' or hidden and 'ToolSearch' in self.done:
            return ('call', name, known[name](*words))
        return ('text', f'No tool can {verb}: {", ".join(self.tools)}')

    def answer(self, failed):
        """The parts of the answer: (kind, what). failed: how often each script has failed."""
        if not self.tools or not self.script:
            return [('text', 'A scripted answer')]
        over, parts = len([name for name in self.done if name != 'ToolSearch']), []
        for verb, rest in STEP.findall(self.script):
            words = rest.strip().split(' ', WORDS.get(verb, 1) - 1) if rest.strip() else []
            if verb in TOOLS or verb == 'call':
                if not over:
                    words = [w.replace('\\n', '\n') for w in words] if verb == 'edit' else words
                    return [*parts, self.call(verb, words)]
                over -= 1
            elif over:
                continue
            elif verb in ('fail', 'cut'):
                times = failed.setdefault((self.script, len(self.done)), itertools.count())
                most = words[1:] if verb == 'fail' else words
                if not most or next(times) < int(most[0]):
                    return [(verb, *words)]
            elif verb == 'tell':
                parts.append(('text', (self.results or ['nothing'])[-1][:4000] + '\n'))
            else:
                parts.append(({'say': 'text'}.get(verb, verb), *words))
        return [*parts, ('text', 'Done.')]


# The end of a path without its query, and the dialect.
DIALECTS = {'/messages': Messages, '/responses': Responses, '/chat/completions': Chat,
            ':generateContent': Gemini, ':streamGenerateContent': Gemini}
# What agents ask for besides.
OTHERS = {'/count_tokens': {'input_tokens': 10}, ':countTokens': {'totalTokens': 10},
          '/models': {'object': 'list', 'data': [{'id': MODEL, 'object': 'model'}]}}


def ending(path, table):
    path = urllib.parse.urlsplit(path).path
    return next((value for end, value in table.items() if path.endswith(end)), None)


class Exchange(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def json(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(data)

    def refuse(self, status, text):
        """With the members that each dialect has."""
        self.json(status, {'type': 'error', 'error': {
            'type': 'api_error', 'message': text, 'code': status, 'status': text}})

    def credential(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        said = [self.headers.get('x-api-key'), self.headers.get('x-goog-api-key'),
                (self.headers.get('Authorization') or '').partition(' ')[2], *query.get('key', [])]
        return next((key for key in said if key), None)

    def do_GET(self):
        data = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        try:
            body = json.loads(data) if data else None
        except ValueError:
            body = data.decode('utf-8', 'replace')
        self.server.note({'method': self.command, 'path': self.path, 'body': body,
                          'credential': self.credential()})
        dialect, other = ending(self.path, DIALECTS), ending(self.path, OTHERS)
        if dialect and body and self.server.key not in (None, self.credential()):
            self.refuse(401, 'invalid x-api-key')
        elif dialect and body:
            self.reply(dialect(), body)
        elif other or self.path == '/':
            self.json(200, other or {})
        else:
            self.refuse(404, f'no such path: {self.path}')

    do_POST = do_HEAD = do_GET

    def reply(self, dialect, body):
        parts = Asked(body, *dialect.read(body)).answer(self.server.failed)
        model = body.get('model', MODEL)
        if parts[0][0] == 'fail':
            self.refuse(int(parts[0][1]), 'overloaded')
        elif not (body.get('stream') or 'stream' in self.path):
            self.json(200, dialect.whole(model, ''.join(p[1] for p in parts if p[0] == 'text')))
        else:
            self.send_response(200)
            self.send_header('Content-Type', 'text/event-stream')
            self.send_header('Transfer-Encoding', 'chunked')
            self.end_headers()
            try:
                self.stream(dialect, model, parts)
            except OSError:  # the agent has cancelled
                self.close_connection = True

    def pieces(self, pieces):
        for piece in pieces:
            name = f'event: {piece["type"]}\n' if piece and 'type' in piece else ''
            text = f'{name}data: {json.dumps(piece) if piece else "[DONE]"}\n\n'.encode()
            self.wfile.write(f'{len(text):x}\r\n'.encode() + text + b'\r\n')

    def stream(self, dialect, model, parts):
        self.pieces(dialect.begin(model))
        at = itertools.count()
        for kind, *what in parts:
            if kind == 'hang':
                select.select([self.connection], [], [], 600)  # until the agent gives up
            if kind in ('hang', 'cut'):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if kind == 'slow':
                for n in range(int(what[0]) * 4):
                    self.pieces(dialect.say(next(at), f'piece {n}, '))
                    time.sleep(0.25)
            else:
                self.pieces({'text': dialect.say, 'think': dialect.think,
                             'call': dialect.call}[kind](next(at), *what))
        self.pieces(dialect.end(any(kind == 'call' for kind, *_ in parts)))
        self.wfile.write(b'0\r\n\r\n')


class Model(http.server.ThreadingHTTPServer):
    """requests: all that were made. At `address`, on a port of the kernel's if it is 0."""
    daemon_threads = True

    def __init__(self, address=('127.0.0.1', 0), key=None, tls=None, record=None):
        super().__init__(address, Exchange)
        self.key, self.failed, self.requests, self.record = key, {}, [], record
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.socket = context.wrap_socket(self.socket, server_side=True,
                                              do_handshake_on_connect=False)
        self.port = self.server_address[1]

    def note(self, request):
        self.requests.append(request)
        if self.record:
            with open(self.record, 'a', encoding='utf-8') as f:
                f.write(json.dumps(request) + '\n')

    def handle_error(self, request, client_address):
        pass

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


def main():
    args = argparse.ArgumentParser()
    args.add_argument('--port', type=int, default=0)
    args.add_argument('--tls', nargs=2)
    args.add_argument('--key')
    args.add_argument('--record')
    said = args.parse_args()
    with Model(('127.0.0.1', said.port), said.key, said.tls, said.record) as model:
        print(model.port, flush=True)
        threading.Event().wait()


if __name__ == '__main__':
    main()
