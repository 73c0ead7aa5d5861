"""What code/declare.h prints of schemas, held to the compilers: TypeScript with --strict, Python's
own parser, and mypy where it is installed. tests/code/declare.c prints it."""

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


def test_every_schema_in_typescript(tmp_path):
    assert len(SCHEMAS) >= 200
    for i, schema in enumerate(SCHEMAS):
        text = declare('typescript', [tool(schema)], tmp_path, f's{i}')
        assert len(text) < 3 * TOOL_BYTES, i
        (tmp_path / f's{i}.d.ts').write_text(text)
    said = tsc(tmp_path, *(f's{i}.d.ts' for i in range(len(SCHEMAS))))
    assert said == ''


def test_every_schema_in_python(tmp_path):
    for i, schema in enumerate(SCHEMAS):
        text = declare('python', [tool(schema)], tmp_path, f's{i}')
        assert len(text) < 4 * TOOL_BYTES, i
        found = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
        assert found == {'use_it'}
        (tmp_path / f's{i}.pyi').write_text(text)
    said = mypy(tmp_path, *(f's{i}.pyi' for i in range(len(SCHEMAS))))
    assert said == ''


def test_every_schema_on_a_line(tmp_path):
    for schema in SCHEMAS:
        text = declare('lines', [tool(schema)], tmp_path)
        assert text.count('\n') == 1 and text.startswith('use_it(') and len(text) < 3000, text
        assert not HIDDEN.search(text)


def test_many_tools_of_hostile_names(tmp_path):
    """Whatever they are called, each is a function of its own, and its text closes no comment."""
    names = [name for name in NASTY if name] + [f'{name}-' for name in NASTY]
    tools = [{'name': name, 'description': name, 'inputSchema': {'properties': {name: {
        'description': name, 'properties': {name: {'enum': [name]}}}}}} for name in names]
    script, stub = (declare(what, tools, tmp_path) for what in ('typescript', 'python'))
    assert len(re.findall(r'^\texport function \w+\(', script, re.M)) == len(names)
    found = [n.name for n in ast.parse(stub).body if isinstance(n, ast.FunctionDef)]
    assert len(found) == len(set(found)) == len(names)
    for text in (script, stub):
        assert not HIDDEN.search(text)
    (tmp_path / 'weather.d.ts').write_text(script)
    (tmp_path / 'weather.pyi').write_text(stub)
    assert tsc(tmp_path, 'weather.d.ts') == ''
    assert mypy(tmp_path, 'weather.pyi') == ''


def test_a_module_is_bounded(tmp_path):
    """However many tools, and however much each of them says."""
    big = {'properties': {f'p{i}': {'type': 'string', 'description': 'long ' * 100}
                          for i in range(200)}}
    tools = [tool(big, f'tool_{i}') for i in range(60)]
    for what in ('typescript', 'python'):
        text = declare(what, tools, tmp_path)
        assert 1 << 20 < len(text) < (1 << 20) + 60 * 600
        (tmp_path / f'weather.{"d.ts" if what[0] == "t" else "pyi"}').write_text(text)
    assert tsc(tmp_path, 'weather.d.ts') == ''
    assert mypy(tmp_path, 'weather.pyi') == ''


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
const r = get_forecast({ location: "Austin", days: 2, unit: "c", area: { inner: [{ inner: [{}] }] },
  pair: ["a", 1], tags: { x: 1 }, or: ["a"], none: null });
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


def test_types_mean_what_the_schema_says(tmp_path):
    """A right call compiles, and each wrong one is refused by both checkers."""
    (tmp_path / 'weather.d.ts').write_text(declare('typescript', [FORECAST], tmp_path))
    (tmp_path / 'weather.pyi').write_text(declare('python', [FORECAST], tmp_path))
    wrong = [f'get_forecast({text})' for text in WRONG]
    (tmp_path / 'right.ts').write_text(USE_TS % '\n'.join(
        f'// @ts-expect-error\n{line};' for line in wrong))
    assert tsc(tmp_path, 'weather.d.ts', 'right.ts') == ''
    (tmp_path / 'right.py').write_text(USE_PY % '')
    assert mypy(tmp_path, 'right.py') == ''
    (tmp_path / 'wrong.py').write_text(USE_PY % '\n'.join(wrong))
    said = mypy(tmp_path, 'wrong.py')
    lines = {int(n) for n in re.findall(r'^wrong\.py:(\d+): error', said, re.M)}
    first = (USE_PY % '').count('\n')
    assert lines == set(range(first, first + len(wrong)))


def test_a_line_of_a_summary(tmp_path):
    properties = {name: schema for name, schema in FORECAST['inputSchema']['properties'].items()
                  if name != 'or'}
    forecast = {**FORECAST, 'inputSchema': {**FORECAST['inputSchema'], 'properties': properties}}
    ping = {'name': 'ping', 'inputSchema': {'type': 'object', 'properties': {}}}
    assert declare('lines', [forecast, ping], tmp_path) == (
        'get_forecast(input: {location: string; days?: number; unit?: "c" | "f"; '
        'area?: {inner?: unknown[]}; pair?: [string, number]; tags?: { [key: string]: number }; '
        'none?: string | null}): Result<{temperature: number}>\n'
        'ping(input?: { [key: string]: unknown }): Result<unknown>\n')
