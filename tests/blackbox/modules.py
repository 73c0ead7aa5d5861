"""Modules: an MCP server of ours, and a hub whose file names it."""

import json
import os

# Speaks MCP of 2025-06-18 over stdio, without an SDK.
SERVER = r'''
import json, os, sys, time

def say(message):
    print(json.dumps({'jsonrpc': '2.0', **message}), flush=True)

def tool(name, description='Gives back its text.', **more):
    return {'name': name, 'description': description, 'inputSchema': {
        'type': 'object', 'properties': {'text': {'type': 'string'}}}, **more}

TOOLS = [tool('echo'), tool('environment'), tool('crash'), tool('sleep'), tool('large')]

def call(id, name, arguments):
    text = arguments.get('text', '')
    if name == 'environment':
        text = json.dumps(dict(os.environ))
    if name == 'sleep':
        time.sleep(float(text))
    if name == 'crash' and text:  # says that instead of an answer
        sys.stdout.buffer.write(bytes.fromhex(text).replace(b'ID', json.dumps(id).encode()) + b'\n')
        sys.stdout.flush()
        return
    if name == 'crash':
        os._exit(3)
    if name == 'large':
        text = 'x' * int(text)
    say({'id': id, 'result': {'content': [{'type': 'text', 'text': text}]}})

def take(m):
    method, params = m.get('method'), m.get('params') or {}
    if method == 'initialize':
        say({'id': m['id'], 'result': {
            'protocolVersion': '2025-06-18', 'capabilities': {'tools': {'listChanged': True}},
            'serverInfo': {'name': 'ours', 'version': '1'}, 'instructions': 'Be kind.'}})
    elif method == 'tools/list':
        say({'id': m['id'], 'result': {'tools': TOOLS}})
    elif method == 'tools/call':
        call(m['id'], params['name'], params.get('arguments') or {})
    elif 'id' in m:
        say({'id': m['id'], 'error': {'code': -32601, 'message': 'no such method'}})

def main():
    print('ready', file=sys.stderr, flush=True)
    for line in sys.stdin:
        take(json.loads(line))
'''


def server(script='main()', *arguments, **more):
    """An entry of mcpServers: the server, with more of a script behind it."""
    return {'command': 'python3', 'args': ['-c', SERVER + script, *arguments], 'approval': 'allow',
            **more}


# A workspace for conversations with agents, which has an .holtrc.
WORKSPACE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'peers', 'workspace')


def configured(**servers):
    return {'mcpServers': servers, 'workspaces': {'of-stage': {'dir': WORKSPACE}}}


def approve(hub, name):
    """Gives the digest of what is approved."""
    digest = hub.call('GET', f'/v1/modules/{name}')['digest']
    hub.post(f'/v1/modules/{name}/approve', digest=digest)
    hub.post(f'/v1/modules/{name}/enable')
    return digest


def call(hub, name, tool, **arguments):
    return hub.post(f'/v1/modules/{name}/tools/{tool}', arguments=arguments)['result']


def text(hub, name, tool, **arguments):
    return call(hub, name, tool, **arguments)['content'][0]['text']


def home(me, path, more=None, **servers):
    """A folder for the data of a hub that has these servers."""
    config = os.path.join(path, 'config.json')
    with open(config, 'w', encoding='utf-8') as f:
        json.dump({**configured(**servers), **(more or {})}, f)
    for one in (path, config):
        os.chown(one, me.uid, me.uid)
    return path
