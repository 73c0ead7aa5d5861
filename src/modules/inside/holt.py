"""Modules of Holt: holt.mcp.NAME has the tools of the module NAME as functions.

    import holt.mcp.weather
    result = holt.mcp.weather.get_forecast({'city': 'Oslo'})
    if result['ok']:
        print(result['data']['temperature'])

A function takes one dict. What it gives is {'ok': True, 'data': ..., 'text': ...}, or
{'ok': False, 'error': ..., 'text': ...} where the tool has failed or the call was denied. data is
the structured content, else the text, parsed where it is a JSON object or array, else an image or
another blob as bytes with an attribute mimeType. content has all items where there is more than
text. What a sandbox was not made with can't be imported. A result of more than a mebibyte is read
in parts by holt.result(result['data']['result'], offset).

`python3 -m holt` names the sandbox's modules, and `python3 -m holt NAME` prints declarations for
type checkers.
"""

import base64
import importlib.abc
import importlib.machinery
import json
import socket
import sys

__path__ = []  # a package without files
_AT = ('127.3.0.1', 3129)  # modules/code/inlet.h


class Blob(bytes):
    """Bytes of an image or another file."""
    mimeType = None


def _read(connection, n):
    pieces = []
    while n > 0:
        piece = connection.recv(min(n, 1 << 20))
        if not piece:
            raise ConnectionError('Holt gave no answer')
        pieces.append(piece)
        n -= len(piece)
    return b''.join(pieces)


def _ask(**request):
    """What kind of answer the hub gives, and its text."""
    text = json.dumps(request, allow_nan=False).encode()
    try:
        connection = socket.create_connection(_AT)
    except ConnectionRefusedError:
        raise ConnectionRefusedError('this sandbox has no modules') from None
    with connection:
        try:
            connection.sendall(len(text).to_bytes(4, 'little') + text)
        except ConnectionError:
            pass  # the answer may be there, and say why
        answer = _read(connection, int.from_bytes(_read(connection, 4), 'little'))
    return answer[:1], answer[1:].decode()


def _item(item):
    of = item.get('resource') or item
    coded = of.get('blob', of.get('data'))
    if isinstance(of.get('text'), str):
        return of['text']
    try:
        blob = Blob(base64.b64decode(coded, validate=True))
    except (TypeError, ValueError):
        return item  # it is none, or what redaction left of one
    blob.mimeType = of.get('mimeType')
    return blob


def _data(items, text):
    if text[:1] in ('{', '['):
        try:
            return json.loads(text)
        except ValueError:
            pass
    if all(isinstance(i, str) for i in items):
        return text
    return items[0] if len(items) == 1 and isinstance(items[0], Blob) else items


def _result(answer):
    items = [_item(i) for i in answer.get('content') or ()]
    text = '\n'.join(i for i in items if isinstance(i, str))
    if answer.get('isError'):
        error = text or 'the tool has failed, and did not say why'
        result = {'ok': False, 'error': error, 'text': error}
    else:
        data = answer.get('structuredContent')
        result = {'ok': True, 'data': _data(items, text) if data is None else data, 'text': text}
    if not all(isinstance(i, str) for i in items):
        result['content'] = items
    return result


def _function(module, of):
    tool = of['tool']

    def function(input=None):  # pylint: disable=redefined-builtin
        if not isinstance(input, (dict, type(None))):
            raise TypeError(f'{of["function"]}() takes one dict')
        kind, text = _ask(do='call', module=module, tool=tool, arguments=input or {})
        if kind != b'r':
            return {'ok': False, 'error': text, 'text': text}
        return _result(json.loads(text))

    function.__name__ = function.__qualname__ = of['function']
    function.__doc__ = of['description']
    return function


def result(result, offset=0):  # pylint: disable=redefined-outer-name
    """A part of a result that was too large for one answer: its text, and in data the number of all
    its bytes and, unless this is the last part, the offset of the next."""
    return _function('holt', {'tool': 'result', 'function': 'result', 'description': None})(
        {'result': result, 'offset': offset})


def _modules():
    """The modules of this sandbox: what Python calls them, and their names."""
    kind, text = _ask(do='list')
    if kind != b'r':
        raise ImportError(text)
    return {m['python']: m['module'] for m in json.loads(text)['modules']}


class _Loader(importlib.abc.Loader):
    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__.rpartition('.')[2]
        if module.__name__ == 'holt.mcp':
            module.__doc__ = 'The modules that this sandbox was made with.'
            module.__dir__ = lambda: sorted(_modules())
            return
        kind, text = _ask(do='info', module=name)
        if kind != b'r':
            raise ImportError(f'holt.mcp.{name}: {text}', name=module.__name__)
        told = json.loads(text)
        module.__doc__ = f'Tools of the module {told["module"]}.'
        module.__declaration__ = told['declaration']
        module.__all__ = [f['function'] for f in told['functions']]
        for one in told['functions']:
            function = _function(told['module'], one)
            function.__module__ = module.__name__
            setattr(module, one['function'], function)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        del path, target
        if name != 'holt.mcp' and not name.startswith('holt.mcp.') or name.count('.') > 2:
            return None
        return importlib.machinery.ModuleSpec(name, _Loader(), is_package=name == 'holt.mcp')


if __name__ == '__main__':
    if len(sys.argv) > 1:
        _kind, _text = _ask(do='info', module=sys.argv[1], text=True)
    else:
        _kind, _text = _ask(do='list', text=True)
    print(_text, file=sys.stdout if _kind == b'r' else sys.stderr)
    sys.exit(_kind != b'r')
sys.meta_path.append(_Finder())
