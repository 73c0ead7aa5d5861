"""The token that `holt auth login` stores: both SDKs send it to its server alone, and take it only
from a file that is closed to others."""

import json
import os

import pytest

import holt
from conftest import TS, node
from face import Face
from holt._config import find_endpoint, find_token
from test_errors import answer, liar  # noqa: F401 (a fixture)
from who import NOBODY

TOKEN = 'holt_token-that-is-stored-0123456789'
DIST = os.path.join(TS, 'dist/src')
VARIABLES = ('HOLT_BASE_URL', 'MITOS_BASE_URL', 'HOLT_API_KEY', 'MITOS_API_KEY')


def store(folder, text):
    folder.mkdir()
    path = folder / 'credentials.json'
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    path.chmod(0o600)
    return path


# ---- the token that each of the calls (environment, base URL) finds, or its error

def python(calls):
    found = []
    for env, url in calls:
        try:
            token = find_token(None, find_endpoint(url, {}), env)
            found.append(token and token.reveal())
        except holt.HoltError as e:
            found.append(e.to_dict())
    return found


FIND = f'''
import {{ findEndpoint, findToken }} from '{DIST}/config.js';
const found = JSON.parse(process.env.CALLS).map(([env, url]) => {{
	try {{
		return findToken(undefined, findEndpoint(url, {{}}), env)?.reveal() ?? null;
	}} catch (e) {{
		return e.toJSON();
	}}
}});
console.log(JSON.stringify(found));
'''


def typescript(calls):
    return json.loads(node('--input-type=module', '-e', FIND, env={'CALLS': json.dumps(calls)}))


@pytest.fixture(params=[python, typescript], ids=lambda one: one.__name__)
def found(request):
    if request.param is typescript:
        request.getfixturevalue('compiled')
    return request.param


SERVERS = [
    # server of the file, base URL, whether the token is for it
    (None, 'http://h', True),
    ('', 'http://h', True),
    ('http://h:8080', 'http://h:8080', True),
    ('http://h:8080/', 'http://h:8080/prefix', True),
    ('HTTP://Hub.Example', 'http://hub.example:80', True),
    ('https://hub.example:443/a', 'https://HUB.example', True),
    ('http://[::1]:8080', 'http://[::1]:8080/', True),
    ('https://hub-a.example', 'http://other-host:8080', False),
    ('https://h', 'http://h', False),
    ('https://h', 'http://h:443', False),
    ('http://h:1', 'http://h:2', False),
    ('http://h', 'http://h:8080', False),
    ('http://h', 'http://h.example', False),
    ('http://127.0.0.1', 'http://localhost', False),
    ('http://h@other', 'http://h', False),
    ('http://h@other', 'http://other', False),
    ('http://[', 'http://h', False),
    ('ftp://h', 'http://h', False),
    ('h', 'http://h', False),
    ('unix:/h', 'http://localhost', False),
    (7, 'http://h', False),
    (['http://h'], 'http://h', False),
    (None, 'unix:/run/holt.sock', False),
    ('unix:/run/holt.sock', 'unix:/run/holt.sock', False),
]


def test_which_server_a_token_is_for(found, tmp_path):
    calls = []
    for i, (server, url, _) in enumerate(SERVERS):
        folder = tmp_path / str(i)
        store(folder, {'server': server, 'token': TOKEN})
        calls.append(({'MITOS_CONFIG_DIR': str(folder), 'HOLT_HOME': str(folder)}, url))
    assert [(*row[:2], said == TOKEN) for row, said in zip(SERVERS, found(calls))] == SERVERS
    home = tmp_path / 'home'
    (home / '.config').mkdir(parents=True)
    store(home / '.config/mitos', {'server': 'http://h', 'token': TOKEN})
    env = {'HOME': str(home)}
    assert found([(env, 'http://h'), (env, 'http://i')]) == [TOKEN, None]
    assert found([({**env, 'HOLT_API_KEY': 'said'}, 'http://i')]) == ['said']


def test_where_the_file_is(found, tmp_path):
    """Where `holt auth login` writes it, which goes before that of mitos."""
    home = tmp_path / 'home'
    (home / '.config').mkdir(parents=True)
    store(home / '.config/mitos', {'token': 'of-mitos'})
    store(home / '.config/holt', {'server': 'http://h', 'token': 'of-login'})
    store(tmp_path / 'all', {'server': 'http://h', 'token': 'of-all'})
    (tmp_path / 'xdg').mkdir()
    store(tmp_path / 'xdg/holt', {'token': 'of-xdg'})
    env = {'HOME': str(home)}
    assert found([(env, 'http://h'), (env, 'http://i'),
                  ({**env, 'XDG_CONFIG_HOME': str(tmp_path / 'xdg')}, 'http://h'),
                  ({**env, 'XDG_CONFIG_HOME': 'xdg'}, 'http://h'),
                  ({**env, 'HOLT_HOME': str(tmp_path / 'all')}, 'http://h'),
                  ({**env, 'MITOS_CONFIG_DIR': str(tmp_path / 'none')}, 'http://h')]) == [
                      'of-login', 'of-mitos', 'of-xdg', 'of-login', 'of-all', None]
    (home / '.config/holt/credentials.json').chmod(0o644)
    assert found([(env, 'http://h')])[0]['code'] == 'credentials_file'  # not passed over


def test_what_holt_auth_login_writes(me, hub, found, tmp_path):
    os.chown(tmp_path, me.uid, me.uid)
    url = f'http://127.0.0.1:{hub.address[1]}'
    env = {**me.env, 'XDG_CONFIG_HOME': str(tmp_path)}
    done = me.run('auth', 'login', '--server', url, env=env, text=True, input=hub.token + '\n')
    assert done.returncode == 0, done
    assert found([(env, url), (env, 'http://elsewhere')]) == [hub.token, None]


def test_a_file_that_is_refused(found, tmp_path):
    """The error names the file and the reason, and nothing that is in the file."""
    whys = {}
    for mode in (0o640, 0o604, 0o620, 0o610):
        path = store(tmp_path / oct(mode), {'server': 'http://elsewhere', 'token': TOKEN})
        path.chmod(mode)
        whys[path] = 'open to other'
    for name in ('fifo', 'folder'):
        path = store(tmp_path / name, '')
        path.unlink()
        os.mkfifo(path, 0o600) if name == 'fifo' else path.mkdir(0o700)
        whys[path] = 'not a regular file'
    if os.geteuid() == 0:
        path = store(tmp_path / 'owner', {'token': TOKEN})
        os.chown(path, NOBODY, -1)
        whys[path] = 'another user'
    envs = [{'MITOS_CONFIG_DIR': str(path.parent)} for path in whys]
    for (path, why), e in zip(whys.items(), found([(env, 'http://h') for env in envs])):
        assert (e['failure'], e['code']) == ('policy_denied', 'credentials_file'), path
        assert str(path) in e['cause'] and why in e['cause'] and 'chmod 600' in e['remediation']
        assert [word for word in (TOKEN, 'elsewhere') if word in json.dumps(e)] == []
    said = found([({**env, 'HOLT_API_KEY': 'said'}, 'http://h') for env in envs])
    assert said == ['said'] * len(envs)  # the file is not asked for


def test_a_file_without_a_token_is_none(found, tmp_path):
    texts = ['', 'not JSON', '[]', 'null', '7', '{}', '{"token": 7}', '{"token": ""}',
             '{"token": "%s"' % TOKEN, '[' * 60000]
    for i, text in enumerate(texts):
        store(tmp_path / str(i), text)
    store(tmp_path / 'target', {'token': TOKEN})
    (tmp_path / 'link').mkdir()
    (tmp_path / 'link/credentials.json').symlink_to(tmp_path / 'target/credentials.json')
    names = [*map(str, range(len(texts))), 'absent', 'link']
    calls = [({'MITOS_CONFIG_DIR': str(tmp_path / name)}, 'http://h') for name in names]
    assert found(calls) == [None] * (len(texts) + 1) + [TOKEN]


# ---- what is sent

HEALTH = f'''
import {{ Client }} from '{DIST}/index.js';
await new Client({{ retries: 0 }}).health();
'''


@pytest.mark.parametrize('kind', ['blocking', 'asyncio', 'typescript'])
def test_a_stored_token_is_for_its_server_alone(request, liar, tmp_path, monkeypatch,  # noqa: F811
                                                kind):
    """Neither an argument nor the environment brings it to another."""
    own, other = (liar(answer('{"status": "ok"}')) for _ in range(2))
    store(tmp_path / 'c', {'server': own.url, 'token': TOKEN})
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('MITOS_CONFIG_DIR', str(tmp_path / 'c'))
    for one in (own, other):
        for variable in ('HOLT_BASE_URL', 'MITOS_BASE_URL'):
            with monkeypatch.context() as patch:
                patch.setenv(variable, one.url)
                if kind == 'typescript':
                    request.getfixturevalue('compiled')
                    node('--input-type=module', '-e', HEALTH)
                    continue
                with Face(kind, {'retries': 0}) as face:
                    face.wait(face.client.health())
    assert [f'Authorization: Bearer {TOKEN}'.encode() in got for got in own.heard] == [True] * 2
    assert len(other.heard) == 2
    assert [got for got in other.heard if b'authorization' in got.lower()] == []
