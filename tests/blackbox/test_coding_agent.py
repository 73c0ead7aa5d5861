"""What an agent does with the coding tools, by the TypeScript SDK: failing tests are found, run
again, mended and green. And what it learns of secrets."""

import json
import os
import shutil
import tempfile

import pytest

import host
from http_host import Serving
from rest import Rest
from test_coding_shell import Work, texts
from test_serve import Session
from who import node

C = 'int add(int a, int b)\n{\n\treturn a - b;\n}\n'
CHECK_C = """#include <stdio.h>
int add(int a, int b);
int main(void)
{
	printf("1..2\\nok 1 - zero\\n");
	printf("%sok 2 - adds\\n", add(1, 2) == 3 ? "" : "not ");
	return add(1, 2) != 3;
}
"""
PROJECTS = [
    # C with make, whose program writes TAP; Python; Node
    ('c', 'c/add.c', 'a - b', 'a + b', 1, 'adds', True, {
        'c/Makefile': 'check: test\n\t./test\ntest: test.c add.c\n\tcc -o test test.c add.c\n',
        'c/add.c': C, 'c/test.c': CHECK_C}),
    ('py', 'py/add.py', 'a - b', 'a + b', 1,
     'tests/test_add.py::TestAdd::test_adds[it\'s]', False, {
        'py/pyproject.toml': '[project]\nname = "add"\nversion = "1"\n',
        'py/add.py': 'def add(a, b):\n    return a - b\n',
        'py/tests/test_add.py': 'import pytest\nfrom add import add\n\n\ndef test_zero():\n'
        '    assert add(0, 0) == 0\n\n\nclass TestAdd:\n'
        '    @pytest.mark.parametrize("a", ["it\'s"])\n'
        '    def test_adds(self, a):\n        assert add(1, 2) == 3\n'}),
    ('node', 'node/add.js', 'a - b', 'a + b', 1,
     'test/add.test.js::sums > adds 1 + 2 (really)', False, {
        'node/package.json': '{"name": "add", "scripts": {"test": "node --test"}}',
        'node/add.js': 'exports.add = (a, b) => a - b;\n',
        'node/test/add.test.js': 'const { test, describe } = require("node:test");\n'
        'const assert = require("node:assert");\nconst { add } = require("../add.js");\n'
        'test("zero", () => assert.strictEqual(add(0, 0), 0));\n'
        'describe("sums", () => { test("adds 1 + 2 (really)", () => '
        'assert.strictEqual(add(1, 2), 3)); });\n'}),
]


@pytest.fixture(scope='module')
def serve(me):
    before = host.Residue(me.trees)
    path = tempfile.mkdtemp(dir=me.work)
    os.chown(path, me.uid, me.uid)
    hub = Serving(me, '--pool', '0', '--workspace', path)
    hub.path, hub.me = path, me
    yield hub
    hub.close()
    shutil.rmtree(path)
    before.check()


@pytest.mark.parametrize('path', ['/sse', '/mcp'])
def test_failing_tests_are_found_mended_and_green(serve, path):
    for *_, files in PROJECTS:
        for name, content in files.items():
            Work.put(serve, name, content)
    server = {'url': serve.url + path, 'token': serve.token, 'sse': path == '/sse'}
    seen = node('coding_agent.mjs', {'server': server, 'projects': [
        {'path': p, 'file': file, 'old': old, 'fixed': fixed}
        for p, file, old, fixed, *_ in PROJECTS]}, timeout=280)
    assert {'run_tests', 'Bash', 'secrets_available'} <= set(seen['tools'])
    for name, *_, passed, failing, whole, files in PROJECTS:
        steps = seen[name]
        counts = {step: (steps[step].get('facts') or {}) for step in steps}
        counts = {step: (f.get('verdict'), f.get('passed'), f.get('failed'))
                  for step, f in counts.items()}
        assert counts['tests'] == ('failed', passed, 1), steps['tests']
        assert failing in steps['tests']['text'] and failing in steps['failures']['text']
        assert counts['again'] == ('failed', passed if whole else 0, 1), steps['again']
        assert not steps['read'].get('isError') and not steps['edit'].get('isError'), steps
        assert counts['mended'] == ('passed', passed + 1 if whole else 1, 0), steps['mended']
        assert counts['all'] == ('passed', passed + 1, 0), steps['all']
        assert steps['none']['isError']


# ---- secrets -----------------------------------------------------------------------------------


def test_d11_secrets_are_named_as_they_are_and_never_shown(me, tmp_path_factory):
    home = tmp_path_factory.mktemp('secrets')
    (home / 'config.json').write_text(json.dumps({
        'principals': {'token': {'secrets': ['GITHUB_TOKEN']}},
        'secrets': {'GITHUB_TOKEN': {'env': 'OF_THE_HUB'}, 'other': {'env': 'OF_THE_HUB'}}}))
    (home / 'config.json').chmod(0o600)
    for path in (home, home / 'config.json'):
        os.chown(path, me.uid, me.uid)
    with Rest(me, home, '--listen', '127.0.0.1:0', '--pool', '0', '--tools', 'coding',
              env={'OF_THE_HUB': 'kjh34kjh5-of-the-hub'}) as hub:
        mcp = Session(hub)

        def call(name, **arguments):
            with hub.wire() as wire:
                mcp.call(wire, name, **arguments)
                said = mcp.result(wire)
            return texts(said), said.get('isError')
        assert call('secrets_available') == (['GITHUB_TOKEN'], None)
        (said, *_), failed = call('Bash', command='echo $T | wc -c; echo $T; env',
                                  secrets={'T': {'ref': 'GITHUB_TOKEN'}})
        assert not failed and said.startswith('21\n') and 'kjh34kjh5' not in said
        (said, *_), failed = call('Bash', command='env')
        assert not failed and 'kjh34kjh5' not in said and 'OF_THE_HUB' not in said
        assert call('Bash', command='true', secrets={'T': {'ref': 'other'}})[1]
