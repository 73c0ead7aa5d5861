"""The TypeScript SDK: compiled by tsc, driven by one run of Node's test runner (sdk.test.mjs)."""

import json
import os

from conftest import HERE, SECRET, node, place
from test_policy import Hub


def test_against_a_hub(compiled, hub, me, tmp_path):
    home = tmp_path / 'victim'
    home.mkdir()
    os.chown(home, me.uid, me.uid)
    victim = Hub(me, str(home))
    given = {'unix': place(hub, 'unix')['base_url'], 'http': place(hub, 'http')['base_url'],
             'token': hub.token, 'secret': SECRET, 'home': hub.home,
             'victim': {'url': place(victim, 'unix')['base_url'], 'token': victim.token,
                        'pid': victim.proc.pid}}
    (tmp_path / 'given.json').write_text(json.dumps(given))
    env = {'HOLT_TEST': str(tmp_path / 'given.json'), 'HOME': str(tmp_path)}
    for name in ('HOLT_BASE_URL', 'HOLT_API_KEY', 'HOLT_SOCKET', 'MITOS_API_KEY'):
        env[name] = ''
    try:
        said = node(os.path.join(HERE, 'sdk.test.mjs'), env=env)
        assert '# fail 0' in said and '# tests 21' in said, said
    finally:
        victim.kill()
        with Hub(me, str(home)):
            pass  # ends what was left
