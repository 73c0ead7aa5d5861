# Runs what the hub sends line by line, in one namespace. Marks on both streams tell the hub where
# an execution begins and ends; in between they have what the code and its children print.
import ast
import asyncio
import base64
import builtins
import inspect
import json
import linecache
import os
import signal
import sys
import traceback
import types

TOKEN = sys.argv[1]
del sys.argv[1:]
commands = os.fdopen(os.dup(0), encoding='utf-8')
null = os.open(os.devnull, os.O_RDONLY)
os.dup2(null, 0)
os.close(null)
sys.stdin = open(0, closefd=False)

main = types.ModuleType('__main__')
main.__builtins__ = builtins
sys.modules['__main__'] = main
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
streams = {1: os.dup(1), 2: os.dup(2)}  # code may lead its output elsewhere, not the marks
state = {'id': 0, 'runs': False, 'count': 0}

FORMS = {'html': 'text/html', 'markdown': 'text/markdown', 'svg': 'image/svg+xml',
         'png': 'image/png', 'jpeg': 'image/jpeg', 'pdf': 'application/pdf',
         'latex': 'text/latex', 'json': 'application/json',
         'javascript': 'application/javascript'}
NAMES = {**{mime: name for name, mime in FORMS.items()}, 'text/plain': 'text'}


def write(fd, data):
    while data:
        data = data[os.write(fd, data):]


def mark(fd, kind, what=None):
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    tail = '' if what is None else ' ' + json.dumps(what)
    write(streams[fd], f'\x1e{TOKEN} {state["id"]} {kind}{tail}\n'.encode())


def plain(value):
    if isinstance(value, tuple):  # with metadata
        value = value[0]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def shown(value):
    found = {}
    bundle = getattr(value, '_repr_mimebundle_', None)
    if bundle is not None and not isinstance(value, type):
        try:
            data = bundle()
            data = data[0] if isinstance(data, tuple) else data
            for mime, one in data.items():
                if mime in NAMES:
                    found[NAMES[mime]] = plain(one)
                else:
                    found.setdefault('extra', {})[mime] = plain(one)
        except Exception:
            pass
    for name in FORMS:
        method = getattr(value, f'_repr_{name}_', None)
        if method is None or name in found or isinstance(value, type):
            continue
        try:
            one = method()
        except Exception:
            continue
        if one is not None:
            found[name] = plain(one)
    if 'text' not in found:
        found['text'] = repr(value)
    return found


def tell(value, is_main=False):
    mark(1, 'R', {**shown(value), 'is_main_result': is_main})


def display(*values, **_):
    for value in values:
        tell(value)


builtins.display = display


def figures(*_, **__):
    """What matplotlib has drawn, as results."""
    pyplot = sys.modules.get('matplotlib.pyplot')
    if pyplot is None:
        return
    import io
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        data = io.BytesIO()
        figure.savefig(data, format='png', bbox_inches='tight')
        mark(1, 'R', {'text': repr(figure), 'png': base64.b64encode(data.getvalue()).decode(),
                      'is_main_result': False})
        pyplot.close(figure)


def backend(name):
    if name == 'FigureCanvas':
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        return FigureCanvasAgg
    raise AttributeError(name)


canvas = types.ModuleType('holt_matplotlib')
canvas.__getattr__ = backend
canvas.show = figures
sys.modules['holt_matplotlib'] = canvas
os.environ.setdefault('MPLBACKEND', 'module://holt_matplotlib')


def run(code, name):
    tree = ast.parse(code, name)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    value = None
    for part, mode in ((tree, 'exec'), (last, 'eval')):
        if part is None:
            continue
        compiled = compile(part, name, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        value = eval(compiled, main.__dict__)
        if inspect.iscoroutine(value) and compiled.co_flags & inspect.CO_COROUTINE:
            value = loop.run_until_complete(value)
    figures()
    if last is not None and value is not None:
        main.__dict__['_'] = value
        tell(value, True)


def failed(error, name):
    steps = traceback.TracebackException.from_exception(error)
    steps.stack = traceback.StackSummary.from_list(
        [step for step in steps.stack if step.filename not in ('<string>', ast.__file__)])
    mark(1, 'E', {'name': type(error).__name__, 'value': str(error),
                  'traceback': ''.join(steps.format())})


def on_interrupt(number, frame):
    if state['runs']:
        raise KeyboardInterrupt


signal.signal(signal.SIGINT, on_interrupt)

for line in commands:
    command = json.loads(line)
    state['id'] = command['id']
    state['count'] += 1
    kept = dict(os.environ)
    os.environ.update(command.get('env') or {})
    name = f'<cell {state["count"]}>'
    code = command['code']
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    mark(2, 'B', state['count'])
    try:
        state['runs'] = True
        try:
            mark(1, 'B', state['count'])  # from here on it can be interrupted
            run(code, name)
        finally:
            state['runs'] = False
    except BaseException as error:  # SystemExit, too: the interpreter goes on
        state['runs'] = False  # a signal may have come before the line above
        failed(error, name)
    os.environ.clear()
    os.environ.update(kept)
    mark(2, 'Z')
    mark(1, 'Z')
