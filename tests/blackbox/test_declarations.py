"""What modules/code/declare.h prints of schemas, held to the compilers: TypeScript with --strict,
Python's own parser, and mypy where it is installed. tests/code/declare.c prints it."""

import ast
import json
import os
import re
import shutil
import subprocess

import pytest

from schemas import HUGE, IDIOMS, NASTY, by_chance
from who import BUILD, HERE

TSC = os.path.join(HERE, 'node_modules/.bin/tsc')
DECLARE = os.path.join(BUILD, 'tests/code/code-declare')
TOOL_BYTES = 64 << 10
HIDDEN = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\U000e0000-\U000e0fff]')

SCHEMAS = IDIOMS + HUGE + list(by_chance(150))


def declare(what, tools, place, server='weather'):
    path = place / 'tools.json'
    path.write_text(json.dumps(tools))
    done = subprocess.run([DECLARE, what, path, server], capture_output=True, timeout=60,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def tool(schema, name='use_it'):
    return {'name': name, 'description': 'Uses it.', 'inputSchema': schema, 'outputSchema': schema}


def tsc(place, *files):
    if not os.path.exists(TSC) or not shutil.which('node'):
        pytest.skip('Node.js or its packages are missing: scripts/deps test')
    (place / 'tsconfig.json').write_text(json.dumps({
        'compilerOptions': {'strict': True, 'noEmit': True, 'types': [], 'target': 'es2022',
                            'module': 'es2022', 'moduleResolution': 'bundler',
                            'exactOptionalPropertyTypes': True},
        'files': list(files)}))
    return subprocess.run([TSC, '--pretty', 'false'], cwd=place, capture_output=True, text=True,
                          timeout=600, check=False).stdout


def mypy(place, *files):
    if not os.path.exists('/usr/bin/mypy'):
        pytest.skip('mypy is missing: scripts/deps test')
    return subprocess.run(['/usr/bin/mypy', '--strict', '--cache-dir', os.devnull,
                           '--no-error-summary', '--no-color-output', *files],
                          cwd=place, capture_output=True, text=True, timeout=600,
                          check=False).stdout


NAMES = [name for name in NASTY if name] + [f'{name}-' for name in NASTY]
HOSTILE = [{'name': name, 'description': name, 'inputSchema': {'properties': {name: {
    'description': name, 'properties': {name: {'enum': [name]}}}}}} for name in NAMES]
BIG = [tool({'properties': {f'p{i}': {'type': 'string', 'description': 'long ' * 100}
                            for i in range(200)}}, f'tool_{i}') for i in range(60)]


@pytest.fixture(scope='module')
def declared(tmp_path_factory):
    """All texts in one folder, for one start of each compiler; by the server, in both languages."""
    place, texts = tmp_path_factory.mktemp('declared'), {}
    for server, tools in (*((f's{i}', [tool(schema)]) for i, schema in enumerate(SCHEMAS)),
                          ('hostile', HOSTILE), ('big', BIG), ('weather', [FORECAST])):
        texts[server] = [declare(what, tools, place, server) for what in ('typescript', 'python')]
        for kind, text in zip(('d.ts', 'pyi'), texts[server]):
            (place / f'{server}.{kind}').write_text(text)
    texts['place'] = place
    return texts


def functions(text):
    return [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]


def test_every_schema_in_both_languages(declared):
    assert len(SCHEMAS) >= 200
    for i in range(len(SCHEMAS)):
        script, stub = declared[f's{i}']
        assert len(script) < 3 * TOOL_BYTES and len(stub) < 4 * TOOL_BYTES, i
        assert functions(stub) == ['use_it']


def test_every_schema_on_a_line(tmp_path):
    for schema in SCHEMAS:
        text = declare('lines', [tool(schema)], tmp_path)
        assert text.count('\n') == 1 and text.startswith('use_it(') and len(text) < 3000, text
        assert not HIDDEN.search(text)


def test_many_tools_of_hostile_names(declared):
    """Whatever they are called, each is a function of its own, and its text closes no comment."""
    script, stub = declared['hostile']
    assert len(re.findall(r'^\texport function \w+\(', script, re.M)) == len(NAMES)
    assert len(functions(stub)) == len(set(functions(stub))) == len(NAMES)
    for text in (script, stub):
        assert not HIDDEN.search(text)


def test_a_module_is_bounded(declared):
    """However many tools, and however much each of them says."""
    for text in declared['big']:
        assert 1 << 20 < len(text) < (1 << 20) + 60 * 600


FORECAST = {
    'name': 'get-forecast', 'description': 'Get the forecast.',
    'inputSchema': {
        'type': 'object', 'required': ['location'], 'properties': {
            'location': {'type': 'string', 'description': 'A city.'},
            'days': {'type': 'integer', 'default': 3},
            'unit': {'enum': ['c', 'f']},
            'area': {'$ref': '#/$defs/area'},
            'pair': {'type': 'array', 'prefixItems': [{'type': 'string'}, {'type': 'number'}]},
            'tags': {'type': 'object', 'additionalProperties': {'type': 'number'}},
            'or': {'anyOf': [{'type': 'string'}, {'type': 'array', 'items': {'type': 'string'}}]},
            'none': {'type': 'string', 'nullable': True}},
        '$defs': {'area': {'type': 'object', 'properties': {
            'inner': {'type': 'array', 'items': {'$ref': '#/$defs/area'}}}}}},
    'outputSchema': {'type': 'object', 'required': ['temperature'],
                     'properties': {'temperature': {'type': 'number'}}}}

USE_TS = '''
import { get_forecast } from "host:mcp-weather";
const r = await get_forecast({ location: "Austin", days: 2, unit: "c",
  area: { inner: [{ inner: [{}] }] }, pair: ["a", 1], tags: { x: 1 }, or: ["a"], none: null });
if (r.ok) { const t: number = r.data.temperature; const s: string = r.text; t; s; }
else { const e: string = r.error; e; }
%s
export {};
'''

USE_PY = '''
from weather import get_forecast
r = get_forecast({"location": "Austin", "days": 2, "unit": "c",
                  "area": {"inner": [{"inner": [{}]}]}, "pair": ["a", 1],
                  "tags": {"x": 1}, "or": ["a"], "none": None})
if r["ok"]:
    t: float = r["data"]["temperature"]
%s
'''

WRONG = ['{}', '{"location": 1}', '{"location": "a", "days": "2"}',
         '{"location": "a", "unit": "k"}',
         '{"location": "a", "area": {"inner": [1]}}', '{"location": "a", "tags": {"x": "1"}}',
         '{"location": "a", "or": 1}', '{"location": "a", "other": 1}']


def test_a_line_of_a_summary(tmp_path):
    properties = {name: schema for name, schema in FORECAST['inputSchema']['properties'].items()
                  if name != 'or'}
    forecast = {**FORECAST, 'inputSchema': {**FORECAST['inputSchema'], 'properties': properties}}
    ping = {'name': 'ping', 'inputSchema': {'type': 'object', 'properties': {}}}
    assert declare('lines', [forecast, ping], tmp_path) == (
        'get_forecast(input: {location: string; days?: number; unit?: "c" | "f"; '
        'area?: {inner?: unknown[]}; pair?: [string, number]; tags?: { [key: string]: number }; '
        'none?: string | null}): Promise<Result<{temperature: number}>>\n'
        'ping(input?: { [key: string]: unknown }): Promise<Result<unknown>>\n')


CALLS = [f'get_forecast({text})' for text in WRONG]


def test_types_mean_what_the_schema_says_in_typescript(declared):
    """All that is printed compiles; a right call does, and each wrong one is refused."""
    place = declared['place']
    (place / 'right.ts').write_text(USE_TS % '\n'.join(
        f'// @ts-expect-error\n{line};' for line in CALLS))
    assert tsc(place, *(path.name for path in place.glob('*.ts'))) == ''


def test_types_mean_what_the_schema_says_in_python(declared):
    place, first = declared['place'], (USE_PY % '').count('\n')
    (place / 'right.py').write_text(USE_PY % '')
    (place / 'wrong.py').write_text(USE_PY % '\n'.join(CALLS))
    said = mypy(place, *(path.name for path in place.glob('*.py*')))
    found = re.findall(r'^(\S+?):(\d+): error', said, re.M)
    assert set(found) == {('wrong.py', str(first + n)) for n in range(len(CALLS))}, said
