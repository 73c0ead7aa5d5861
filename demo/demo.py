"""A real session: an MCP client of our own, in Python's standard library, drives `holt mcp`.

demo.mjs tells the same story with the TypeScript SDK; change both.
"""
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SECRET = os.path.join(os.path.dirname(HERE), 'README.md')
ROUNDS = 20


def bold(text):
    return f'\x1b[1m{text}\x1b[0m' if sys.stdout.isatty() else text


def dim(text):
    return f'\x1b[2m{text}\x1b[0m' if sys.stdout.isatty() else text


def say(text):
    print(f'   {text}')


def tell(what, ms):
    say(f'{what}  {dim(f"{ms:.1f} ms")}')


def short(sandbox):
    return f'{sandbox[:12]}…'


class Failed(Exception):
    pass


def must(condition, what):
    if not condition:
        raise Failed(f'the demonstration expected: {what}')


class Client:
    """MCP over standard input and output, one request at a time."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.id = 0

    def send(self, message):
        self.process.stdin.write(json.dumps({'jsonrpc': '2.0', **message}).encode() + b'\n')
        self.process.stdin.flush()

    def request(self, method, params):
        self.id += 1
        self.send({'id': self.id, 'method': method, 'params': params})
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get('id') == self.id and 'method' not in answer:
                if 'error' in answer:
                    raise Failed(f'{method}: {answer["error"]}')
                return answer['result']
        raise Failed(f'{method}: the server ended')

    def connect(self):
        me = {'name': 'holt-demo', 'version': '1.0.0'}
        hello = self.request('initialize', {'protocolVersion': '2025-11-25', 'capabilities': {},
                                            'clientInfo': me})
        self.send({'method': 'notifications/initialized'})
        return hello['serverInfo']

    def call(self, name, **arguments):
        """The text, the structured content, and the milliseconds that it took."""
        begin = time.perf_counter()
        result = self.request('tools/call', {'name': name, 'arguments': arguments})
        ms = (time.perf_counter() - begin) * 1000
        text = result['content'][0]['text']
        if result.get('isError'):
            raise Failed(f'{name}: {text}')
        return text, result.get('structuredContent'), ms

    def run(self, sandbox, command, *args):
        text, _, ms = self.call('sandbox_exec', sandbox=sandbox, command=command, args=list(args))
        return {**json.loads(text), 'ms': ms}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Story:
    def __init__(self, client):
        self.client = client
        self.chapter = 0

    def title(self, text):
        self.chapter += 1
        print('\n' + bold(f'{self.chapter}  {text}'))

    def create(self):
        self.title('Create a sandbox')
        _, made, ms = self.client.call('sandbox_create', pool='host')
        tell(made['sandbox'], ms)
        limits = made['limits']
        say(f'tier {made["tier"]}; {limits["memory_mb"]} MiB of memory, '
            f'{limits["disk_mb"]} MiB of disk, '
            f'{limits["pids"]} processes, held by {limits["enforced_by"]}')
        return made['sandbox']

    def write(self, sandbox):
        self.title('Write a Python program into it, and run it')
        with open(os.path.join(HERE, 'diary.py'), encoding='utf-8') as f:
            program = f.read()
        text, _, ms = self.client.call('sandbox_write_file', sandbox=sandbox, path='diary.py',
                                       content=program)
        tell(text.replace(sandbox, short(sandbox)), ms)
        ran = self.client.run(sandbox, 'python3', 'diary.py', 'I was made')
        must(ran['exit_code'] == 0, f'exit code 0, not {ran}')
        tell(f'$ python3 diary.py "I was made"  →  {ran["stdout"].strip()}', ran['ms'])

    def fork(self, sandbox):
        self.title('Fork it into three, and let each go its own way')
        text, _, ms = self.client.call('sandbox_fork', sandbox=sandbox, replicas=3)
        forks = json.loads(text)
        tell(f'three copies: {" ".join(map(short, forks))}', ms)
        for fork, way in zip(forks, ('I went left', 'I went right', 'I stayed')):
            told = self.client.run(fork, 'python3', 'diary.py', way)
            say(f'{short(fork)}  {told["stdout"].strip()}')
            must(f'I was made, {way}' in told['stdout'], 'three different diaries')
        diary, _, _ = self.client.call('sandbox_read_file', sandbox=sandbox, path='diary.txt')
        say(f'{short(sandbox)}  (the first, untouched) {diary.strip()}')
        must(diary == 'I was made\n', 'an untouched source')
        return forks

    def escape(self, sandbox):
        self.title('Try to get out')
        # Something outside that answers, so that being refused means something.
        with socket.create_server(('127.0.0.1', 0)) as server:
            port = server.getsockname()[1]
            threading.Thread(target=greet, args=[server], daemon=True).start()
            with socket.create_connection(('127.0.0.1', port)) as control:
                must(control.recv(5) == b'hello', 'an answer outside')
            for what, argv in (
                    (f'a file of this host ({os.path.getsize(SECRET)} bytes, readable outside)',
                     ['cat', SECRET]),
                    (f'a port of this host (127.0.0.1:{port}, answers outside)',
                     ['bash', '-c', f'exec 3<>/dev/tcp/127.0.0.1/{port} && cat <&3']),
                    ('an address of the net (192.0.2.1:443)',
                     ['bash', '-c', 'exec 3<>/dev/tcp/192.0.2.1/443'])):
                ran = self.client.run(sandbox, *argv)
                must(ran['exit_code'] != 0 and ran['stdout'] == '', f'to be refused {what}')
                say(what)
                say(f'    refused: {ran["stderr"].strip().splitlines()[-1].split(": ")[-1]}')

    def end(self, sandboxes):
        self.title('End them')
        for sandbox in sandboxes:
            text, _, ms = self.client.call('sandbox_terminate', sandbox=sandbox)
            tell(text, ms)

    def times(self):
        self.title(f'Times, as this client sees them: medians of {ROUNDS}')
        made, created, executed, forked = [], [], [], []
        for _ in range(ROUNDS):
            _, sandbox, ms = self.client.call('sandbox_create', pool='host')
            made.append(sandbox['sandbox'])
            created.append(ms)
        for _ in range(ROUNDS):
            executed.append(self.client.run(made[0], 'true')['ms'])
        for _ in range(ROUNDS):
            text, _, ms = self.client.call('sandbox_fork', sandbox=made[0], replicas=3)
            made += json.loads(text)
            forked.append(ms)
        say(f'create {statistics.median(created):.1f} ms · exec of true '
            f'{statistics.median(executed):.1f} ms · '
            f'fork into three {statistics.median(forked):.1f} ms')
        for sandbox in made:
            self.client.call('sandbox_terminate', sandbox=sandbox)


def greet(server):
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            connection.sendall(b'hello')


def main():
    holt = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, '../build/src/bin/holt')
    begin = time.perf_counter()
    client = Client([holt, 'mcp'])
    try:
        server = client.connect()
        ready = (time.perf_counter() - begin) * 1000
        tools = client.request('tools/list', {})['tools']
        print(bold(f'holt {server["version"]} answers over MCP'), dim(f'{ready:.1f} ms'))
        say(' '.join(tool['name'] for tool in tools))
        story = Story(client)
        sandbox = story.create()
        story.write(sandbox)
        forks = story.fork(sandbox)
        story.escape(sandbox)
        story.end([sandbox, *forks])
        story.times()
        print('\nAll of it happened as it should.')
        return 0
    except Failed as error:
        print(f'\ndemo: {error}', file=sys.stderr)
        print(f"demo: '{holt} doctor' says what this host lacks, if it does", file=sys.stderr)
        return 1
    finally:
        client.close()


if __name__ == '__main__':
    sys.stdout.reconfigure(encoding='utf-8')
    sys.exit(main())
