"""A client of /v1 that a generator of others makes of /v1/openapi.json: openapi-typescript, the
compiler of TypeScript, and openapi-fetch, which runs what they made."""

import json
import os
import shutil
import subprocess

import pytest

from rest import Rest
from who import HERE

MODULES = os.path.join(HERE, 'node_modules')
TOOLS = {name: os.path.join(MODULES, '.bin', name) for name in ('openapi-typescript', 'tsc')}


@pytest.fixture
def hub(me, tmp_path):
    one = Rest(me, tmp_path / 'home', '--listen', '127.0.0.1:0', '--socket', 'none', '--pool', '0')
    yield one
    one.works()
    assert one.end() == 0, one.said()
    one.kill()


def run(*argv, cwd):
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_generated_client(hub, tmp_path):
    missing = [path for path in TOOLS.values() if not os.path.exists(path)]
    if missing or not shutil.which('node'):
        pytest.skip('Node.js or its packages are missing: scripts/deps test')
    place = tmp_path / 'client'
    place.mkdir()
    os.symlink(MODULES, place / 'node_modules')
    shutil.copy(os.path.join(HERE, 'sdk/generated.ts'), place / 'use.ts')
    (place / 'package.json').write_text('{"type": "module"}')
    (place / 'node.d.ts').write_text(
        'declare const process: { argv: string[] };\n'
        'declare const Buffer: { from(text: string, how: string): { toString(): string } };\n')
    with open(place / 'openapi.json', 'w', encoding='utf-8') as f:
        json.dump(hub.call('GET', '/v1/openapi.json'), f)
    run(TOOLS['openapi-typescript'], 'openapi.json', '-o', 'described.d.ts', cwd=place)
    (place / 'tsconfig.json').write_text(json.dumps({
        'compilerOptions': {'strict': True, 'target': 'es2022', 'module': 'nodenext', 'types': [],
                            'lib': ['es2022', 'dom', 'dom.iterable'], 'skipLibCheck': True},
        'files': ['use.ts', 'node.d.ts', 'described.d.ts']}))
    run(TOOLS['tsc'], cwd=place)
    url = f'http://127.0.0.1:{hub.address[1]}'
    said = json.loads(run('node', 'use.js', url, hub.token, cwd=place))
    assert said == {'exit': 3, 'stdout': 'out\n', 'code': 'exec_timeout', 'early': 'early\n',
                    'later': 'later\n', 'state': 'exited', 'missing': 'not_found',
                    'names': ['generated']}
