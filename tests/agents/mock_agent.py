#!/usr/bin/env python3
"""An agent that speaks ACP and does what its prompts say: a prompt that is a JSON list is a list of
steps, [NAME, ARGUMENT...] (see `Turn`), any other is said back. It needs nothing but Python.

  --auth METHOD    it has no session before a log-in by this method; "": none helps
  --v2             it speaks the draft of version 2 alone
  --stdio          it takes MCP servers that are programs, not those with a URL
  --resume         it can go on with a session of before
  --images         it takes images in prompts
  --offers MODE... it has modes, of which the first holds, models and options
  --deaf           it never ends a turn that was cancelled
  --late           it has a session before a log-in, and refuses prompts
  --logins         it names a log-in in a terminal, and one by variables
  --banner TEXT    it prints this first
"""
import argparse
import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

ARGS = argparse.ArgumentParser()
ARGS.add_argument('--auth')
ARGS.add_argument('--banner')
ARGS.add_argument('--offers', nargs='*')
for flag in ('--v2', '--stdio', '--resume', '--deaf', '--images', '--late', '--logins'):
    ARGS.add_argument(flag, action='store_true')
OPTIONS = [{'optionId': 'yes', 'name': 'Allow', 'kind': 'allow_once'},
           {'optionId': 'always', 'name': 'Always', 'kind': 'allow_always'},
           {'optionId': 'no', 'name': 'Reject', 'kind': 'reject_once'}]


def grown(v):
    """With texts that are longer than a prompt: {"times": 3, "text": "x"} is "xxx"."""
    if isinstance(v, dict):
        return v['text'] * v['times'] if 'times' in v else {k: grown(w) for k, w in v.items()}
    return v


class Cancelled(Exception):
    pass


class Refused(Exception):
    pass


class Mcp:
    """The hub's MCP server, as session/new names it."""

    def __init__(self, server):
        self.server = server
        self.child = None
        if 'command' in server:
            env = {**os.environ, **{e['name']: e['value'] for e in server['env']}}
            self.child = subprocess.Popen([server['command'], *server['args']], env=env,
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.session = None
        self.call('initialize', {'protocolVersion': '2025-06-18', 'capabilities': {},
                                 'clientInfo': {'name': 'mock', 'version': '1'}})
        self.send({'jsonrpc': '2.0', 'method': 'notifications/initialized'})

    def send(self, message):
        text = json.dumps(message).encode()
        if self.child:
            self.child.stdin.write(text + b'\n')
            self.child.stdin.flush()
            return json.loads(self.child.stdout.readline()) if 'id' in message else None
        headers = {'Content-Type': 'application/json',
                   'Accept': 'application/json, text/event-stream',
                   **{h['name']: h['value'] for h in self.server['headers']}}
        if self.session:
            headers['Mcp-Session-Id'] = self.session
        with urllib.request.urlopen(
                urllib.request.Request(self.server['url'], text, headers), timeout=20) as answer:
            self.session = answer.headers.get('Mcp-Session-Id', self.session)
            body = answer.read().decode()
        for line in body.split('\n'):
            if line.startswith('data:'):
                line = line[5:]
            if '"id"' in line:
                return json.loads(line)
        return None

    def call(self, method, params):
        answer = self.send({'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params})
        return answer.get('result', answer.get('error'))


class Agent:
    def __init__(self, args):
        self.args = args
        self.lock = threading.Lock()
        self.answers = {}
        self.arrived = threading.Condition(self.lock)
        self.ids = 0
        self.logged_in = args.auth is None
        self.servers = []
        self.mcp = None
        self.session = None
        self.cancelled = threading.Event()
        self.broken = None
        self.modes = self.args.offers or ['default', 'plan', 'yolo']
        self.values = {'mode': self.modes[0], 'model': 'small', 'effort': 'low', 'fast': False}

    # ---- messages ----

    def write(self, message):
        with self.lock:
            sys.stdout.write(json.dumps({'jsonrpc': '2.0', **message}) + '\n')
            sys.stdout.flush()

    def raw(self, text):
        with self.lock:
            sys.stdout.write(text)
            sys.stdout.flush()

    def update(self, **update):
        self.write({'method': 'session/update',
                    'params': {'sessionId': self.session, 'update': update}})

    def ask(self, method, **params):
        with self.lock:
            self.ids += 1
            asked = f'ask-{self.ids}'
        self.write({'id': asked, 'method': method,
                    'params': {'sessionId': self.session, **params}})
        with self.arrived:
            self.arrived.wait_for(lambda: asked in self.answers)
            answer = self.answers.pop(asked)
        return answer.get('result', answer.get('error'))

    # ---- what clients ask ----

    def initialize(self, params):
        if self.args.v2:
            if params['protocolVersion'] != 2:
                raise ValueError('version 2 alone')
            return {'protocolVersion': 2, 'info': {'name': 'mock', 'version': '1'},
                    'capabilities': {'session': {
                        'mcp': {'http': {}, 'stdio': {}},
                        'prompt': {'image': {}} if self.args.images else {}}}}
        return {'protocolVersion': 1,
                'agentCapabilities': {'loadSession': False,
                                      'promptCapabilities': {'image': self.args.images},
                                      'sessionCapabilities':
                                          {'resume': {}} if self.args.resume else {},
                                      'mcpCapabilities': {'http': not self.args.stdio}},
                'authMethods': self.logins(params)}

    def logins(self, params):
        """Agents name a log-in in a terminal only to clients that can have one."""
        more = [{'id': 'env', 'name': 'By a key', 'type': 'env_var', 'vars': [{'name': 'KEY'}]}]
        if params['clientCapabilities']['auth']['terminal']:
            more.append({'id': 'tty', 'name': 'By a code', 'type': 'terminal', 'args': ['login']})
        return [{'id': self.args.auth or 'none', 'name': 'Log in'},
                *(more if self.args.logins else [])]

    def authenticate(self, params):
        self.logged_in = params['methodId'] == self.args.auth != ''
        if not self.logged_in:
            raise PermissionError
        return {}

    def session_new(self, params):
        if not self.logged_in and not self.args.late:
            raise PermissionError
        self.servers = params['mcpServers']
        self.cwd = params['cwd']
        self.session = params.get('sessionId', f'mock-{os.getpid()}-{time.time_ns()}')
        return {'sessionId': self.session, **({} if self.args.offers is None else self.offers())}

    def offers(self):
        def named(*names, member='id'):
            return [{member: name, 'name': name.title()} for name in names]
        return {'modes': {'currentModeId': self.values['mode'],
                          'availableModes': named(*self.modes)},
                'models': {'currentModelId': self.values['model'],
                           'availableModels': named('small', 'big', member='modelId')},
                'configOptions': [
                    {'id': 'effort', 'name': 'Effort', 'type': 'select',
                     'currentValue': self.values['effort'],
                     'options': [{'name': 'Some',
                                  'options': named('low', 'high', member='value')}]},
                    {'id': 'fast', 'name': 'Fast', 'type': 'boolean',
                     'currentValue': self.values['fast']}]}

    def set_value(self, params, option=None):
        option = option or params['configId']
        value = params.get('value', params.get(f'{option}Id'))
        if value == 'high' and self.values['model'] == 'small':
            raise ValueError('not with this model')
        self.values[option] = value
        return {'configOptions': self.offers()['configOptions']} if 'configId' in params else {}

    def prompt(self, request, params):
        text = ''.join(block.get('text', '') for block in params['prompt'])
        self.blocks = params['prompt'][1:]
        self.cancelled.clear()
        if self.args.v2:
            self.write({'id': request, 'result': {}})
        try:
            if not self.logged_in:
                raise Refused(-32000)
            if self.broken:
                raise Refused(self.broken)
            why = Turn(self).run(text) or 'end_turn'
        except Refused as e:
            self.write({'id': request, 'error': {'code': e.args[0], 'message': 'it is broken',
                                                 **({'data': e.args[1]} if e.args[1:] else {})}})
            return
        except Cancelled:
            why = 'cancelled'
        if self.args.v2:
            self.update(sessionUpdate='state_update', state='idle', stopReason=why)
        else:
            self.write({'id': request, 'result': {'stopReason': why}})

    METHODS = {'initialize': initialize, 'authenticate': authenticate, 'auth/login': authenticate,
               'session/new': session_new, 'session/resume': session_new,
               'session/set_mode': lambda self, params: self.set_value(params, 'mode'),
               'session/set_model': lambda self, params: self.set_value(params, 'model'),
               'session/set_config_option': set_value}

    def take(self, message):
        if 'method' not in message:
            with self.arrived:
                self.answers[message['id']] = message
                self.arrived.notify_all()
        elif message['method'] == 'session/cancel':
            self.cancelled.set()
        elif message['method'] == 'session/prompt':
            threading.Thread(target=self.prompt, args=(message['id'], message['params']),
                             daemon=True).start()
        elif 'id' in message:
            try:
                answer = {'result': self.METHODS[message['method']](self, message['params'])}
            except PermissionError:
                answer = {'error': {'code': -32000, 'message': 'Authentication required'}}
            except KeyError:
                answer = {'error': {'code': -32601, 'message': 'no such method'}}
            except ValueError as e:
                answer = {'error': {'code': -32022, 'message': str(e)}}
            self.write({'id': message['id'], **answer})


class Turn:
    """Each step is a method; what it returns, if anything, ends the turn."""

    def __init__(self, agent):
        self.agent = agent
        self.terminal = None

    def run(self, text):
        steps = json.loads(text) if text.startswith('[') else [['say', text]]
        for name, *args in steps:
            self.check()
            end = getattr(self, 'do_' + name)(*args)
            if end:
                return end
        self.check()
        return None

    def check(self):
        if self.agent.cancelled.is_set() and not self.agent.args.deaf:
            raise Cancelled

    def tell(self, value):
        self.do_say(value if isinstance(value, str) else json.dumps(value))

    def do_say(self, *pieces):
        for piece in pieces:
            self.agent.update(sessionUpdate='agent_message_chunk',
                              messageId='m', content={'type': 'text', 'text': piece})

    def do_later(self, seconds, text):
        """Says something, whether or not the turn is over by then."""
        threading.Timer(seconds, self.do_say, (text,)).start()

    def do_stream(self, seconds, every):
        """The time, in nanoseconds, again and again."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.check()
            self.do_say(str(time.time_ns()))
            time.sleep(every)

    def do_think(self, text):
        self.agent.update(sessionUpdate='agent_thought_chunk', messageId='t',
                          content={'type': 'text', 'text': text})

    def do_update(self, update):
        self.agent.update(**{name: grown(value) for name, value in update.items()})

    def do_modes(self, count):
        for n in range(count):
            self.agent.update(sessionUpdate='current_mode_update', currentModeId=f'mode-{n}')

    def do_tool(self, call, title, status='completed'):
        self.agent.update(sessionUpdate='tool_call_update' if self.agent.args.v2 else 'tool_call',
                          toolCallId=call, title=title, kind='edit', status='pending',
                          rawInput={'path': '/a'})
        self.agent.update(sessionUpdate='tool_call_update', toolCallId=call, status=status)

    def do_permit(self, title, options=None):
        about = {'title': title} if self.agent.args.v2 else \
            {'toolCall': {'toolCallId': 'c', 'title': title}}
        outcome = self.agent.ask('session/request_permission', options=options or OPTIONS,
                                 **grown(about))
        self.tell(outcome.get('outcome', outcome))

    def do_ask(self, method, params):
        self.tell(self.agent.ask(method, **grown(params)))

    def do_exec(self, command, *args):
        made = self.agent.ask('terminal/create', command=command, args=list(args))
        if 'terminalId' not in made:
            self.tell(made)
            return
        ended = self.agent.ask('terminal/wait_for_exit', terminalId=made['terminalId'])
        output = self.agent.ask('terminal/output', terminalId=made['terminalId'])
        self.agent.ask('terminal/release', terminalId=made['terminalId'])
        self.tell({'ended': ended, 'output': output})

    def do_shell(self, command):
        """What the process itself can do."""
        done = subprocess.run(['/bin/sh', '-c', command], capture_output=True, text=True,
                              check=False)
        self.tell(done.stdout + done.stderr)

    def do_mcp(self, tool, arguments=None):
        if not self.agent.mcp:
            self.agent.mcp = Mcp(self.agent.servers[0])
        self.tell(self.agent.mcp.call('tools/call', {'name': tool, 'arguments': arguments or {}}))

    def do_blocks(self):
        """What came with the prompt's text; of a file what is in it."""
        for block in self.agent.blocks:
            if block['type'] == 'resource_link':
                with open(urllib.parse.unquote(block['uri'][7:]), 'rb') as f:
                    block['read'] = base64.b64encode(f.read()).decode()
        self.tell(self.agent.blocks)

    def do_servers(self, path):
        """Into a file: the hub takes tokens out of what is said."""
        with open(path, 'w', encoding='utf-8') as f:
            json.dump(self.agent.servers, f)

    def do_session(self):
        self.tell(self.agent.session)

    def do_sleep(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.check()
            time.sleep(0.01)

    def do_raw(self, text):
        self.agent.raw(text)

    def do_flood(self, count):
        """One line of so many bytes."""
        piece = 'x' * (1 << 20)
        self.agent.raw('{"jsonrpc":"2.0","method":"')
        for _ in range(count >> 20):
            self.agent.raw(piece)
        self.agent.raw('"}\n')

    def do_stderr(self, text):
        print(text, file=sys.stderr, flush=True)

    def do_exit(self, status):
        os._exit(status)

    def do_kill(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def do_hang(self):
        while True:
            time.sleep(3600)

    def do_refuse(self, code, *data):
        raise Refused(code, *data)

    def do_values(self):
        """Of what it offers, as they are now."""
        self.tell(self.agent.values)

    def do_break(self, code):
        """Every later prompt is refused, as where the engine below has ended."""
        self.agent.broken = code

    def do_stop(self, why):
        return why


def main():
    args = ARGS.parse_args()
    agent = Agent(args)
    if args.banner:
        print(args.banner, flush=True)
    for line in sys.stdin:
        agent.take(json.loads(line))


if __name__ == '__main__':
    main()
