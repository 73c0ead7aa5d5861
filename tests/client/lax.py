"""How real servers depart from the letter of the protocol, a row each, and what is to come of it:
lax.py ROW is a program that speaks so on its standard input and output.

A departure that both official SDKs take, or that can mean one thing only, is taken. The others end
the call with an error that names them, and nothing else is disturbed.
"""

import json
import sys

WELL = {'content': [{'type': 'text', 'text': 'well'}]}
BOM = b'\xef\xbb\xbf'


def dump(message, **options):
    return json.dumps(message, **options).encode()


def member(name, value):
    """Each answer with this member, too."""
    return lambda m: dump({**m, name: value(m) if callable(value) else value})


def result(name, value):
    def change(m):
        if 'content' in m.get('result', {}):
            m = {**m, 'result': {**m['result'], name: value}}
        return dump(m)
    return change


class Row:
    """write makes the bytes of an answer. error: the code and a word of what a call then ends
    with. before and after are written around the lines of stdio."""

    def __init__(self, write=dump, error=None, before=b'', after=b'\n', first=b'',
                 wires=('stdio', 'http'), only_calls=False, **http):
        self.write, self.error, self.before, self.after = write, error, before, after
        self.first, self.wires, self.only_calls, self.http = first, wires, only_calls, http

    def text(self, message):
        called = 'content' in message.get('result', {})
        return self.write(message) if called or not self.only_calls else dump(message)


STDIO = {'wires': ('stdio',)}
HTTP = {'wires': ('http',)}
ROWS = {
    'nothing': Row(),
    # ids and members
    'the id as text': Row(member('id', lambda m: str(m['id']))),
    'the id as a fraction': Row(member('id', lambda m: float(m['id']))),
    'the id with a zero before it': Row(member('id', lambda m: f'0{m["id"]}'), only_calls=True,
                                        error=('timeout', '')),
    'error null beside a result': Row(member('error', None)),
    'method and params null beside a result': Row(
        lambda m: dump({**m, 'method': None, 'params': None})),
    'error beside a result': Row(member('error', {'code': 1, 'message': 'x'}), only_calls=True,
                                 error=('invalid_arguments', 'both result and error')),
    'no jsonrpc': Row(lambda m: dump({k: v for k, v in m.items() if k != 'jsonrpc'}),
                      only_calls=True, error=('invalid_arguments', 'jsonrpc')),
    'members that nobody knows': Row(member('x', {'y': [1]})),
    'a result that is null': Row(member('result', None), only_calls=True,
                                 error=('invalid_arguments', 'object')),
    'structuredContent null': Row(result('structuredContent', None)),
    'isError null': Row(result('isError', None)),
    '_meta null': Row(result('_meta', None)),
    # bytes
    'blanks around': Row(lambda m: b'  ' + dump(m) + b'\t '),
    'a byte order mark': Row(first=BOM),
    'CRLF': Row(after=b'\r\n', **STDIO),
    'blank lines': Row(before=b'\n\r\n\n', **STDIO),
    'log lines': Row(before=b'[INFO] starting {"a": 1}\nlistening on stdio\n', **STDIO),
    'several lines': Row(lambda m: dump(m, indent=1), only_calls=True, error=('timeout', ''),
                         **STDIO),
    # HTTP
    'application/json-rpc': Row(kind='application/json-rpc', **HTTP),
    'application/json with a charset': Row(kind='Application/JSON;charset=utf-8', **HTTP),
    'no type': Row(kind=None, **HTTP),
    'text/plain': Row(kind='text/plain', only_calls=True,
                      error=('invalid_arguments', 'text/plain'), **HTTP),
    '201': Row(status='201 Created', **HTTP),
}


def answer(message, row):
    """What a good legacy server says; None: nothing."""
    method, params = message.get('method'), message.get('params', {})
    if 'id' not in message:
        return None
    said = {'jsonrpc': '2.0', 'id': message['id']}
    if method == 'initialize':
        said['result'] = {'protocolVersion': params['protocolVersion'], 'instructions': None,
                          'capabilities': {'tools': {}, 'prompts': None},
                          'serverInfo': {'name': 'lax', 'version': '1'}}
    elif method == 'tools/list':
        said['result'] = {'tools': [{'name': 'now', 'inputSchema': {'type': 'object'}}],
                          'nextCursor': None}
    elif method == 'tools/call':
        said['result'] = WELL
    else:
        said['error'] = {'code': -32601, 'message': 'no such method'}
    return ROWS[row].text(said)


def main(row):
    how, out = ROWS[row], sys.stdout.buffer
    out.write(how.first)
    for line in sys.stdin.buffer:
        said = answer(json.loads(line), row)
        if said is not None:
            out.write(how.before + said + how.after)
            # a server's own notifications, as serialisers write them that know no absence
            out.write(dump({'jsonrpc': '2.0', 'method': 'notifications/tools/list_changed',
                            'params': None}) + how.after)
            out.flush()


if __name__ == '__main__':
    main(sys.argv[1])
