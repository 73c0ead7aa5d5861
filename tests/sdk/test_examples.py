"""The examples of both SDKs, and those of their documents, as they are, against a real hub: they
need no key."""

import json
import os
import re
import subprocess
import sys

import pytest

from conftest import TOP, TS, node

PYTHON = os.path.join(TOP, 'sdk/python')
STYLES = ['openai', 'claude', 'langchain']
SAID = 'There was no such file (not_found); now it prints 55.\n'


@pytest.fixture
def env(hub):
    """As for a user of this hub, who says nothing of it."""
    return {'PATH': os.environ['PATH'], 'HOLT_HOME': hub.home, 'PYTHONPATH': PYTHON,
            'PYTHONDONTWRITEBYTECODE': '1'}


def python(env, *arguments):
    done = subprocess.run([sys.executable, '-W', 'error', *arguments], env=env, timeout=60,
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, '')
    return done.stdout


@pytest.mark.parametrize('style', STYLES)
def test_python(env, style):
    assert python(env, os.path.join(PYTHON, f'examples/{style}_style.py')) == SAID


@pytest.mark.parametrize('style', STYLES)
def test_typescript(compiled, env, style):
    assert node(os.path.join(TS, f'dist/examples/{style}-style.js'), env=env) == SAID


# ---- documents

def blocks(language):
    """What they print begins so."""
    for path in ('docs/sdk.md', 'sdk/python/README.md', 'sdk/typescript/README.md'):
        with open(os.path.join(TOP, path), encoding='utf-8') as f:
            found = re.findall(rf'^```{language}\n(.*?)^```$', f.read(), re.M | re.S)
        yield from ((f'{path} {n}', text) for n, text in enumerate(found, 1))


PRINTED = {
    'docs/sdk.md 1': r'0 hello\n run_\w+\n', 'docs/sdk.md 2': r'hello\n\n',
    'docs/sdk.md 3': r'ok running\n',
    'docs/sdk.md 4': r'stdout one\nstderr two\n200\n3\nWatchEvent\(kind=.created.*\ntext\n',
    'docs/sdk.md 5': '', 'docs/sdk.md 6': r'hello\n\n',
    'sdk/python/README.md 1': r'0 hello\n run_\w+\n'}


@pytest.mark.parametrize('place, text', blocks('python'))
def test_python_in_documents(env, place, text):
    assert re.fullmatch(PRINTED[place], python(env, '-c', text))


TRANSPILE = '''
const [ts, found] = [require('typescript'), JSON.parse(require('fs').readFileSync(0, 'utf8'))];
const compilerOptions = { module: 'esnext', target: 'es2022' };
for (const [path, text] of found)
	require('fs').writeFileSync(path, ts.transpileModule(text, { compilerOptions }).outputText);
'''


def test_typescript_in_documents(compiled, env):
    texts = [text for _, text in blocks('typescript')]
    paths = [os.path.join(TS, f'dist/examples/document-{n}.js') for n in range(len(texts))]
    subprocess.run(['node', '-e', TRANSPILE], input=json.dumps(list(zip(paths, texts))), text=True,
                   cwd=TS, check=True, timeout=60)
    for path in paths:
        assert re.fullmatch(r'0 hello\n run_\w+\n', node(path, env=env))
