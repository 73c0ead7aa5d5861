"""A server on standard input and output that says what a file tells it: planned.py PLAN

answers method -> {"result": …} or {"error": …}; lists that are not there are empty, all else is no
method before method -> messages that are sent before its answer; requests among them are waited
for, and a progressToken is that of the method's request
	info, capabilities	of initialize

A call without an answer in the plan gives what the client said to those requests, as text.
"""

import json
import sys

LISTS = {'tools/list': 'tools', 'prompts/list': 'prompts', 'resources/list': 'resources',
         'resources/templates/list': 'resourceTemplates'}

with open(sys.argv[1], encoding='utf-8') as f:
    plan = json.load(f)


def put(message):
    sys.stdout.write(json.dumps({'jsonrpc': '2.0', **message}) + '\n')
    sys.stdout.flush()


def ask(message, token):
    if 'progressToken' in message.get('params', {}):
        message['params']['progressToken'] = token
    put(message)
    while 'id' in message:
        reply = json.loads(sys.stdin.readline())
        if reply.get('id') == message['id']:
            return {k: v for k, v in reply.items() if k in ('result', 'error')}
    return None


def answer(method, params):
    token = params.get('_meta', {}).get('progressToken')
    said = [reply for reply in (ask(m, token) for m in plan.get('before', {}).get(method, []))
            if reply]
    if method in plan.get('answers', {}):
        return plan['answers'][method]
    if method == 'initialize':
        return {'result': {'protocolVersion': params['protocolVersion'],
                           'serverInfo': plan.get('info', {'name': 'planned', 'version': '1'}),
                           'capabilities': plan.get('capabilities',
                                                    {'tools': {}, 'prompts': {}, 'resources': {}})}}
    if method in LISTS:
        return {'result': {LISTS[method]: []}}
    if method == 'tools/call':
        return {'result': {'content': [{'type': 'text', 'text': json.dumps(said)}]}}
    return {'error': {'code': -32601, 'message': 'no such method'}}


for line in sys.stdin:
    request = json.loads(line)
    if 'id' in request and 'method' in request:
        put({'id': request['id'], **answer(request['method'], request.get('params', {}))})
