"""A program that speaks MCP on its standard input and output as badly as its argument says:
hostile.py HOW[=MIB] [ERA]

It is a good server until a call of the tool `now`,
or from its first line where HOW begins with `at-once-`.
"""

import json
import os
import signal
import sys
import time

HOW, _, MIB = sys.argv[1].partition('=')
ERA = (sys.argv[2:] or ['legacy'])[0]
out = os.fdopen(1, 'wb', buffering=0)


def put(data):
    view = memoryview(data if isinstance(data, bytes) else json.dumps(data).encode() + b'\n')
    while view:
        view = view[out.write(view):]


def answer(request, **members):
    put({'jsonrpc': '2.0', 'id': request['id'], **members})


def text(request, said):
    more = {'resultType': 'complete'} if ERA == 'modern' else {}
    answer(request, result={'content': [{'type': 'text', 'text': said}], **more})


def stream(piece):
    """Without an end."""
    while True:
        put(piece)


def large(request):
    put(b'{"jsonrpc":"2.0","id":' + json.dumps(request['id']).encode()
        + b',"result":{"content":[{"type":"text","text":"')
    for _ in range(int(MIB)):
        put(b'x' * (1 << 20))
    put(b'"}]}}\n')


def fork_and_stay(request):
    """A child that ignores everything, and outlives this one if it may."""
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(3600)
    text(request, 'forked')


def deaf(request):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    text(request, 'deaf')
    while True:
        time.sleep(3600)


def other_ids(request):
    for wrong in (request['id'] + 1000, f'0{request["id"]}', None, 1.5, {'a': 1}, -1, 2 ** 70):
        put({'jsonrpc': '2.0', 'id': wrong, 'result': {'content': []}})
    text(request, 'right')
    text(request, 'double')


ACTS = {
    'garbage': lambda r: (put(b'hello\n\x00\x01\n{"jsonrpc":\n[]\n{}\n"x"\n\n' + b'{"a":' * 5000
                              + b'\n'),
                          text(r, 'well')),
    'partial-utf8': lambda r: (put(
        b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xe2\x82"}]}}\n'
        % r['id']), text(r, 'well')),
    'large': lambda r: (large(r)),
    'endless-line': lambda r: stream(b'x' * 65536),
    'endless-stderr': lambda r: (text(r, 'well'), [os.write(2, b'e' * 65536) for _ in range(4096)]),
    'ids': other_ids,
    'silent': lambda r: None,
    'crash': lambda r: os.kill(os.getpid(), signal.SIGSEGV),
    'exit': lambda r: (put(b'half a line'), os._exit(7)),
    'close-output': lambda r: (out.close(), time.sleep(3600)),
    'close-input': lambda r: (os.close(0), text(r, 'closed'), time.sleep(3600)),
    'fork': fork_and_stay,
    'deaf': deaf,
    'environment': lambda r: text(r, json.dumps({'env': dict(os.environ), 'cwd': os.getcwd(),
                                                 'argv': sys.argv[1:],
                                                 'fds': sorted(
                                                     map(int, os.listdir('/proc/self/fd')))[:-1],
                                                 'sid': os.getsid(0) == os.getpid(),
                                                 'pgid': os.getpgrp() == os.getpid()})),
    'flood': lambda r: stream({'jsonrpc': '2.0', 'method': 'notifications/message',
                               'params': {'level': 'info', 'data': 'x' * 1000}}),
    'pings': lambda r: stream(b''.join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % i
                                       for i in range(1000))),
}

MODERN = '2026-07-28'


def serve(request):
    method = request.get('method')
    modern = 'io.modelcontextprotocol/protocolVersion' in request.get('params', {}).get('_meta', {})
    if 'id' not in request:
        return
    if method == 'initialize' and ERA == 'legacy':
        answer(request, result={'protocolVersion': request['params']['protocolVersion'],
                                'capabilities': {'tools': {}},
                                'serverInfo': {'name': 'hostile', 'version': '1'}})
    elif method == 'server/discover' and ERA == 'modern':
        answer(request, result={'resultType': 'complete', 'supportedVersions': [MODERN],
                                'capabilities': {'tools': {}},
                                'ttlMs': 0, 'cacheScope': 'private'})
    elif modern != (ERA == 'modern'):
        answer(request, error={'code': -32601, 'message': 'no such method'})
    elif method == 'tools/call' and request['params']['name'] == 'now':
        ACTS[HOW](request)
    elif method == 'tools/call':
        text(request, request['params']['name'])
    else:
        answer(request, error={'code': -32601, 'message': 'no such method'})


def at_once():
    """What is done with the first line, in place of serving it; None: it is served."""
    first = sys.stdin.buffer.readline()
    known = (b'server/discover' in first and ERA == 'legacy' or b'initialize' in first
             and ERA == 'modern')
    if HOW == 'at-once-exit' and known:
        sys.exit(3)
    if HOW == 'at-once-silent' and known:
        time.sleep(3600)
    if HOW == 'at-once-die':
        sys.exit(3)
    if HOW == 'at-once-mute':
        time.sleep(3600)
    if HOW == 'at-once-chatter':
        stream(b'not yet\n')
    if HOW == 'at-once-slow':
        time.sleep(0.7)
    serve(json.loads(first))


if HOW.startswith('at-once-'):
    at_once()
for line in sys.stdin.buffer:
    serve(json.loads(line))
