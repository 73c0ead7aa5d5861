"""MCP servers in the operator's file, and `holt mcp import`: what files of other clients become,
that no secret of them is copied, and what hostile ones do. `holt mcp config`, whose entries it
reads back."""

import concurrent.futures
import json
import os
import random as rand
import re
import secrets as random
import signal
import stat
import string
import subprocess
import tomllib
import uuid

import pytest

from test_debug import needs

CLIENTS = ('vscode', 'claude-code', 'claude-desktop', 'cursor', 'windsurf', 'zed', 'codex',
           'gemini', 'opencode', 'augment')
# Entries are written for these; their own servers are not read.
FOREIGN = ('zed', 'codex', 'opencode')


class Desk:
    """A person with a home, a project and the operator's file."""

    def __init__(self, me, top):
        self.me = me
        self.top = str(top)
        self.home = os.path.join(self.top, 'home')
        self.project = os.path.join(self.top, 'project')
        self.config = os.path.join(self.top, 'holt', 'config.json')
        for path in (self.home, self.project):
            self.mkdir(path)

    def mkdir(self, path):
        os.makedirs(path, mode=0o700, exist_ok=True)
        while path.startswith(self.top):
            os.chown(path, self.me.uid, self.me.uid)
            path = os.path.dirname(path)

    def put(self, path, text):
        self.mkdir(os.path.dirname(path))
        with open(path, 'wb') as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        os.chown(path, self.me.uid, self.me.uid)
        return path

    def holt(self, *arguments, env=None):
        done = self.me.run(*arguments, cwd=self.project, text=True,
                           env={'HOME': self.home, 'HOLT_HOME': os.path.dirname(self.config),
                                **(env or {})})
        assert done.returncode >= 0, done
        return done

    def read(self, *arguments, status=0):
        done = self.holt('mcp', 'import', *arguments)
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout), done.stderr

    def check(self, **env):
        return self.holt('config', 'check', env=env)


@pytest.fixture
def desk(me, tmp_path):
    os.chmod(tmp_path, 0o755)
    return Desk(me, tmp_path)


# ---- the operator's file -------------------------------------------------------------------------

WRONG = [
    ('{\n"mcpServers": {\n"a": {}}}', 'config.json:3: /mcpServers/a: a server has a command or a'),
    ('{"mcpServers": {\n"fetch": {"command": "x"}}}',
     'config.json:2: /mcpServers/fetch: the name is'),
    ('{"mcpServers": {"a": {"command": "x",\n"args": ["${"]}}}',
     'config.json:2: /mcpServers/a/args/0:'),
    ('{"mcpServers": {"a": {"command": "x", "shell": true}}}', 'unknown field "shell"'),
    ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', '/mcpServers/a'),
    ('{"mcpServers": {"a": {"command": "x\\u0000"}}}', 'without U+0000'),
    ('{"mcpServers": {"a": {"command": "x", "sandbox": {"network": ["http://x/"]}}}}',
     '/mcpServers/a/sandbox/network'),
    ('{"modules": {"enabled": "yes"}}', '/modules/enabled: enabled takes true or false'),
]


@pytest.mark.parametrize('text, says', WRONG, ids=range(len(WRONG)))
def test_wrong(desk, text, says):
    desk.put(desk.config, text)
    done = desk.check()
    assert done.returncode == 125 and says in done.stderr, done


def test_variables_that_are_not_set(desk):
    """Told with their place, and only of servers that are in use. What is set is never printed."""
    desk.put(desk.config, '''{"mcpServers": {
        "a": {"command": "python3", "env": {
            "KEY": "${OPS_KEY}"}},
        "b": {"command": "python3", "args": ["${OPS_B:-b}", "${secret:none}", "$${OPS_C}"]},
        "c": {"command": "x", "args": ["${OPS_D}"], "disabled": true}}}''')
    done = desk.check()
    assert done.returncode == 1 and done.stderr == (
        'holt: config.json:3: /mcpServers/a/env/KEY: the variable OPS_KEY is not set, and has no '
        'default\n')
    done = desk.check(OPS_KEY='canary-of-key')
    assert (done.returncode, done.stderr) == (0, ''), done
    shown = desk.holt('config', 'show', env={'OPS_KEY': 'canary-of-key'}).stdout
    assert 'canary' not in shown
    server = json.loads(shown)['mcpServers']['a']
    assert server['env'] == {'KEY': '[secret]'} and server['sandbox']['template'] == 'host'


def test_schema(desk):
    """What the schema that editors use takes, and what not."""
    import jsonschema
    schema = json.loads(desk.holt('config', 'schema').stdout)
    good = {'mcpServers': {'a': {'command': 'x', 'sandbox': False},
                           'b': {'url': 'https://h/', 'sandbox': True},
                           'c': {'command': 'x', 'sandbox': {'read': ['/a']},
                                 'approvals': {'t': 'deny'}}}}
    jsonschema.validate(good, schema)
    for bad in ({'sandbox': 'no'}, {'approvals': {'t': 'maybe'}}, {'allowTools': 'a'}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({'mcpServers': {'a': {'command': 'x', **bad}}}, schema)


# ---- import: a file of each client, and what it becomes ------------------------------------------

VSCODE = '''// servers of the project
{
  "inputs": [
    { "type": "promptString", "id": "key", "description": "API key", "password": true },
    { "type": "pickString", "id": "where", "description": "Where", "options": ["a", "b"] },
    { "type": "promptString", "id": "unused" }, /* of none */
  ],
  "servers": {
    "GitHub": { "type": "http", "url": "https://api.githubcopilot.com/mcp/",
                "headers": { "Authorization": "Bearer ${input:key}" } },
    "files": {
      "command": "npx",
      "args": ["-y", "server", "${workspaceFolder}/docs", "--at=${input:where}"],
      "env": { "TOP": "${userHome}${/}x", "WHO": "${env:USER}", "PORT": 8080 },
      "envFile": "${workspaceFolder}/.env",
      "sandboxEnabled": true,
      "sandbox": {
        "filesystem": { "allowWrite": ["${workspaceFolder}", "~/out"], "denyRead": ["~/.ssh"] },
        "network": { "allowedDomains": ["api.example.com", "*.example.org"],
                     "deniedDomains": ["x"] }
      },
      "dev": { "watch": "*.js" },
    },
  },
}
'''
CLAUDE_CODE = '''{ "numStartups": 3, "mcpServers": {
  "api": { "type": "sse", "url": "${API:-https://a.example}/sse",
           "headers": { "X-Team": "${TEAM}" } } },
  "projects": { "PROJECT": { "mcpServers": {
     "local": { "command": "./run.sh", "args": ["$HOME"], "env": {} } } },
   "/other": { "mcpServers": { "none": { "command": "none" } } } } }'''
# client: its file, from the home (~/) or the project; the text; what it becomes; what is told
FORMATS = {
    'vscode': ('.vscode/mcp.json', VSCODE, {
        'inputs': [{'type': 'pickString', 'id': 'where', 'description': 'Where',
                    'options': ['a', 'b']}],
        'mcpServers': {
            'github': {'type': 'http', 'url': 'https://api.githubcopilot.com/mcp/',
                       'headers': {'Authorization': 'Bearer ${secret:key}'}},
            'files': {'command': 'npx',
                      'args': ['-y', 'server', 'PROJECT/docs', '--at=${input:where}'],
                      'env': {'TOP': '${HOME}/x', 'WHO': '${env:USER}', 'PORT': '8080'},
                      'sandbox': {'write': ['PROJECT', '${HOME}/out'],
                                  'network': ['api.example.com', '*.example.org']}}}},
        ['GitHub: ${input:key} becomes ${secret:key}', 'GitHub: it is called github now',
         'files: envFile has no counterpart', 'files: sandbox: denyRead', 'deniedDomains']),
    'claude-code': ('~/.claude.json', CLAUDE_CODE, {'mcpServers': {
        'api': {'type': 'sse', 'url': '${API:-https://a.example}/sse',
                'headers': {'X-Team': '${TEAM}'}},
        'local': {'command': 'PROJECT/run.sh', 'args': ['$HOME']}}}, []),
    'claude-desktop': ('~/.config/Claude/claude_desktop_config.json', '''{ "mcpServers": {
        "Brave Search": { "command": "npx", "args": ["${HOME}"] } } }''', {'mcpServers': {
            'brave-search': {'command': 'npx', 'args': ['$${HOME}']}}}, ['called brave-search']),
    'cursor': ('.cursor/mcp.json', '''{ "mcpServers": {
        "a": { "command": "python", "args": ["${workspaceFolder}/a.py"], "env": {"A": "${env:A}"} },
        "b": { "url": "http://localhost:1/mcp", "auth": { "CLIENT_ID": "x" } } } }''', {
            'mcpServers': {'a': {'command': 'python', 'args': ['PROJECT/a.py'],
                                 'env': {'A': '${env:A}'}},
                           'b': {'url': 'http://localhost:1/mcp'}}}, ['b: auth has no counter']),
    'windsurf': ('~/.codeium/windsurf/mcp_config.json', '''{ "mcpServers": {
        "a": { "serverUrl": "https://a.example/mcp", "headers": { "X-A": "${env:A}" },
               "disabledTools": ["rm"], "disabled": true } } }''', {'mcpServers': {
            'a': {'url': 'https://a.example/mcp', 'headers': {'X-A': '${env:A}'},
                  'denyTools': ['rm'], 'disabled': True}}}, []),
    'gemini': ('~/.gemini/settings.json', '''{ "mcpServers": {
        "a": { "httpUrl": "https://a.example/mcp", "timeout": 45000, "includeTools": ["x"],
               "excludeTools": [] },
        "b": { "url": "https://b.example/sse", "trust": true },
        "c": { "command": "c", "env": { "A": "$A", "B": "${B}-$$", "C": "{env:C}" } } } }''', {
            'mcpServers': {
                'a': {'url': 'https://a.example/mcp', 'allowTools': ['x'], 'timeoutSeconds': 45},
                'b': {'type': 'sse', 'url': 'https://b.example/sse', 'approval': 'allow'},
                'c': {'command': 'c', 'env': {'A': '${A}', 'B': '${B}-$$', 'C': '{env:C}'}}}},
        ['b: trust: nobody is asked']),
    'augment': ('~/.augment/settings.json', '''{ "mcpServers": {
        "a": { "command": "npx", "args": ["-y", "a"], "env": { "K": "v" } },
        "b": { "type": "http", "url": "https://b.example/mcp", "headers": { "X": "y" } } } }''', {
            'mcpServers': {'a': {'command': 'npx', 'args': ['-y', 'a'], 'env': {'K': 'v'}},
                           'b': {'type': 'http', 'url': 'https://b.example/mcp',
                                 'headers': {'X': 'y'}}}}, []),
}


def test_all_clients_are_here(desk):
    assert set(FORMATS) == set(CLIENTS) - set(FOREIGN)
    for client in FOREIGN:
        done = desk.holt('mcp', 'import', '--from', client)
        assert done.returncode == 2 and f'the file of {client} is not read' in done.stderr, done


@pytest.mark.parametrize('client', FORMATS)
def test_import(desk, client):
    """By the client's name, and by the file's: the same. All of it can be written, and is right."""
    name, text, want, told = FORMATS[client]
    path = name.replace('~', desk.home) if name[0] == '~' else os.path.join(desk.project, name)
    desk.put(path, text.replace('PROJECT', desk.project))
    want = json.loads(json.dumps(want).replace('PROJECT', desk.project))
    left = any('left out: /mcp' in line for line in told)
    found, says = desk.read('--from', client, status=int(left))
    assert found == want
    for line in told:
        assert line in says, says
    done = desk.holt('mcp', 'import', '--from', client, '--write')
    assert done.returncode == int(left) and f'{len(want["mcpServers"])} added' in done.stdout, done
    assert stat.S_IMODE(os.stat(desk.config).st_mode) == 0o600
    with open(desk.config, encoding='utf-8') as f:
        assert json.load(f) == want
    assert desk.check().returncode in (0, 1)


def test_by_path(desk):
    """Without --from a file is known by what is in it."""
    for name, text, key in (('a.json', '{"servers": {"x": {"command": "x"}}}', 'x'),
                            ('b.json', '{"mcp": {"servers": {"x": {"command": "x"}}}}', 'x'),
                            ('d.json', '\ufeff{"mcpServers": {"x": {"command": "x"},},}', 'x')):
        path = desk.put(os.path.join(desk.project, name), text)
        assert desk.read(path)[0] == {'mcpServers': {key: {'command': 'x'}}}, name
    for text in ('{}', '[]', '{"mcpServers": []}', '{"mcp": 1}'):
        path = desk.put(os.path.join(desk.project, 'e.json'), text)
        done = desk.holt('mcp', 'import', path)
        assert done.returncode == 125 and 'no MCP servers' in done.stderr, done
    done = desk.holt('mcp', 'import', '--from', 'cursor')
    assert done.returncode == 125 and 'cursor has no file here' in done.stderr, done
    assert desk.holt('mcp', 'import').returncode == 2


# ---- import: secrets, names, the file that is there ----------------------------------------------

def letters(n):
    known = string.ascii_letters + string.digits
    return ''.join(random.choice(known) for _ in range(n - 3)) + 'aB3'


SECRETS = {
    'ghp': 'ghp_' + letters(36),
    'uuid': str(uuid.uuid4()),
    'basic': letters(24),
    'sk': 'sk-ant-api03-' + letters(93) + 'AA',
    'url': 'p4' + letters(12),
}


def test_secrets_are_not_copied(desk):
    """They become references; what is told says how to store them, and has no value either."""
    path = desk.put(os.path.join(desk.project, 'x.json'), json.dumps({'mcpServers': {
        'a': {'command': 'x', 'args': ['--api-key=' + SECRETS['sk'], '--port=80'],
              'env': {'GITHUB_TOKEN': SECRETS['ghp'], 'API_KEY': SECRETS['uuid'],
                      'KEY_FILE': '/run/key', 'TOKEN_ENV': '${TOKEN}', 'MODE': 'production'}},
        'b': {'url': 'https://joe:' + SECRETS['url'] + '@b.example/mcp',
              'headers': {'Authorization': 'Bearer ' + SECRETS['basic'],
                          'X-API-Key': SECRETS['uuid'], 'Accept-Language': 'de'}}}}))
    found, says = desk.read(path)
    for value in SECRETS.values():
        assert value not in json.dumps(found) + says, value
    a, b = found['mcpServers']['a'], found['mcpServers']['b']
    assert a['env'] == {'GITHUB_TOKEN': '${secret:a.GITHUB_TOKEN}',
                        'API_KEY': '${secret:a.API_KEY}', 'KEY_FILE': '/run/key',
                        'TOKEN_ENV': '${TOKEN}', 'MODE': 'production'}
    assert a['args'][1] == '--port=80' and a['args'][0] == '--api-key=${secret:a.api-key}'
    assert '${secret:b.Authorization}' in b['headers']['Authorization']
    assert b['headers']['X-API-Key'] == '${secret:b.X-API-Key}'
    assert b['headers']['Accept-Language'] == 'de'
    assert b['url'] == 'https://joe:${secret:b.url}@b.example/mcp'
    for name in ('a.GITHUB_TOKEN', 'a.API_KEY', 'a.api-key', 'b.Authorization', 'b.url'):
        assert f'holt secret set {name}\n' in says, says
    assert desk.holt('mcp', 'import', path, '--write').returncode == 0
    with open(desk.config, encoding='utf-8') as f:
        text = f.read()
    assert not any(value in text for value in SECRETS.values())


def test_names(desk):
    path = desk.put(os.path.join(desk.project, 'x.json'), json.dumps({'mcpServers': {
        name: {'command': 'x'} for name in ('My Server', 'my_server', 'my-server', 'host', '9lives',
                                            '\u65e5\u672c', 'a' * 80, 'a' * 79, '--x--')}}))
    found, says = desk.read(path)
    assert list(found['mcpServers']) == ['my-server', 'my-server-2', 'my-server-3', 'host-server',
                                         'lives', 'server', 'a' * 28, 'a' * 28 + '-2', 'x']
    assert 'host: it is called host-server now' in says


def test_what_is_there_stays(desk):
    """Comments, order and servers of the file; --write is all or nothing."""
    was = '''// of the operator
{ "policy": { "default": "ask" }, /* all */
  "inputs": [ { "type": "promptString", "id": "i" } ],
  "mcpServers": { // mine
    "a": { "command": "mine" } } } // end
'''
    desk.put(desk.config, was)
    os.chmod(desk.config, 0o640)
    path = desk.put(os.path.join(desk.project, 'x.json'), json.dumps({
        'inputs': [{'type': 'promptString', 'id': 'i'}, {'type': 'promptString', 'id': 'k'}],
        'servers': {'a': {'command': 'theirs'}, 'b': {'command': 'b', 'args': ['${input:i}']},
                    'c': {'command': 'c', 'args': ['${input:k}']}}}))
    done = desk.holt('mcp', 'import', path, '--write')
    assert done.returncode == 1 and 'a: it is left out: a is there already' in done.stderr
    with open(desk.config, encoding='utf-8') as f:
        now = f.read()
    for piece in ('// of the operator', '/* all */', '// mine', '"a": { "command": "mine" }',
                  '// end'):
        assert piece in now
    assert stat.S_IMODE(os.stat(desk.config).st_mode) == 0o640
    shown = json.loads(desk.holt('config', 'show').stdout)
    assert {k: v['command'] for k, v in shown['mcpServers'].items()} == {
        'b': 'b', 'c': 'c', 'a': 'mine'}
    assert [i['id'] for i in shown['inputs']] == ['k', 'i'] and shown['policy']['default'] == 'ask'
    desk.put(path, json.dumps({'servers': {f's{i}': {'command': 'x'} for i in range(30)}}))
    done = desk.holt('mcp', 'import', path, '--write')
    assert done.returncode == 125 and 'modules.servers is 20' in done.stderr
    with open(desk.config, encoding='utf-8') as f:
        assert f.read() == now
    assert os.listdir(os.path.dirname(desk.config)) == ['config.json']
    assert len(desk.read(path)[0]['mcpServers']) == 30


def test_a_link_stays_a_link(desk):
    real = desk.put(os.path.join(desk.top, 'real.json'), '{}')
    desk.mkdir(os.path.dirname(desk.config))
    os.symlink(real, desk.config)
    path = desk.put(os.path.join(desk.project, 'x.json'), '{"mcpServers": {"a": {"command": "x"}}}')
    assert desk.holt('mcp', 'import', path, '--write').returncode == 0
    assert os.path.islink(desk.config)
    with open(real, encoding='utf-8') as f:
        assert json.load(f) == {'mcpServers': {'a': {'command': 'x'}}}


# ---- import: what has no counterpart -------------------------------------------------------------

def test_inputs_of_other_types(desk):
    """An input costs no server: it is asked for as a text, which is told."""
    path = desk.put(os.path.join(desk.project, '.vscode', 'mcp.json'), json.dumps({
        'inputs': [{'type': 'command', 'id': 'c', 'command': 'x.y'}, 7, {'id': 7}, {},
                   {'type': 'pickString', 'id': 'p',
                    'options': [{'label': 'A', 'value': 'a'}, 'b']},
                   {'type': 'pickString', 'id': 'q', 'options': []},
                   {'type': 'promptString', 'id': 'd', 'description': 'x' * 5000},
                   {'type': 'promptString', 'id': 'd'}],
        'servers': {**{i: {'command': 'x', 'args': ['${input:%s}' % i]} for i in 'cpqd'},
                    'none': {'command': 'x', 'args': ['${input:none}']},
                    'plain': {'command': 'x'}}}))
    found, says = desk.read(path, status=1)
    assert list(found['mcpServers']) == ['c', 'p', 'q', 'd', 'plain']
    assert {i['id']: (i['type'], i.get('options')) for i in found['inputs']} == {
        'c': ('promptString', None), 'p': ('pickString', ['a', 'b']), 'q': ('promptString', None),
        'd': ('promptString', None)}
    assert 'c: ${input:c} is of the type "command": a person is asked for it' in says
    assert 'none: it is left out' in says
    assert desk.holt('mcp', 'import', path, '--write').returncode == 1
    assert desk.check().returncode in (0, 1)


def test_gemini_is_known_by_its_members(desk):
    servers = {'mcpServers': {
        'a': {'httpUrl': 'https://a.example/mcp', 'trust': True, 'includeTools': ['x']},
        'b': {'url': 'https://b.example/sse'}, 'c': {'command': 'c', 'env': {'K': '$MY_THING'}}}}
    want, _ = desk.read(desk.put(os.path.join(desk.project, '.gemini', 'settings.json'),
                                 json.dumps(servers)), '--from', 'gemini')
    assert want['mcpServers']['c']['env'] == {'K': '${MY_THING}'}
    found, _ = desk.read(desk.put(os.path.join(desk.project, 'x.json'), json.dumps(servers)))
    assert found == want
    del servers['mcpServers']['a']  # by its place alone
    found, _ = desk.read(desk.put(os.path.join(desk.project, '.gemini', 'settings.json'),
                                  json.dumps(servers)))
    del want['mcpServers']['a']
    assert found == want
    found, says = desk.read(desk.put(os.path.join(desk.project, 'x.json'), json.dumps(servers)))
    assert found['mcpServers']['c']['env'] == {'K': '$MY_THING'}
    assert 'c: K: $MY_THING is text there' in says


def test_variables_of_editors(desk):
    """Those that are known have values, in commands too; no other becomes one of the hub's."""
    path = desk.put(os.path.join(desk.project, '.vscode', 'mcp.json'), json.dumps({'servers': {
        'home': {'command': '${userHome}/bin/s'}, 'tilde': {'command': '~/bin/s'},
        'work': {'command': '${workspaceFolder}/s', 'args': ['${workspaceFolderBasename}']},
        'file': {'command': 'x', 'args': ['${file}', '${env:A}', '${fileDirname}']},
        'other': {'command': '${env:WHERE}/s'}, 'ws': {'type': 'ws', 'url': 'wss://a.example'},
        'scheme': {'url': 'wss://a.example'}}}))
    found, says = desk.read(path, status=1)
    assert found['mcpServers'] == {
        'home': {'command': f'{desk.home}/bin/s'}, 'tilde': {'command': f'{desk.home}/bin/s'},
        'work': {'command': f'{desk.project}/s', 'args': ['project']},
        'file': {'command': 'x', 'args': ['$${file}', '${env:A}', '$${fileDirname}']}}
    for line in ('file: args[0]: ${file} has no counterpart', 'other: it is left out: ',
                 'ws: it is left out: there is no type ws', 'scheme: it is left out: its URL'):
        assert line in says, says


MEMBERS = ['type', 'transport', 'command', 'args', 'env', 'envFile', 'cwd', 'url', 'serverUrl',
           'httpUrl', 'headers', 'enabled', 'disabled', 'timeout', 'includeTools', 'allowTools',
           'disabledTools', 'excludeTools', 'denyTools', 'autoApprove', 'alwaysAllow', 'trust',
           'sandboxEnabled', 'sandbox', 'oauth', 'auth', 'authProviderType', 'scopes',
           'headersHelper', 'dev', 'nobodyKnows', 'startup_timeout_sec', 'tools', 'restart']
VALUES = [7, -1, 1.5, True, False, '', 'x', 'stdio', '${env:A}', '${input:i}', '${file}', [], ['a'],
          [1], [['a']], {}, {'A': 'b'}, {'A': 1}, {'A': None}, {'A': {}}, {'filesystem': {'x': 1}},
          {'network': {'allowedDomains': 'x'}}, ['--token', 'abcdefghijkl'], 'https://a.example/']
# What our entry has for each, where it is not the member itself.
OURS = {'allowTools': ('allowTools',), 'includeTools': ('allowTools',),
        'disabledTools': ('denyTools',), 'excludeTools': ('denyTools',),
        'autoApprove': ('approvals',), 'alwaysAllow': ('approvals',), 'trust': ('approval',),
        'serverUrl': ('url',), 'httpUrl': ('url',), 'timeout': ('timeoutSeconds',),
        'enabled': ('disabled',), 'transport': ('type',), 'sandboxEnabled': ('sandbox',)}
# That say what is so anyhow.
SILENT = {('enabled', True), ('disabled', False), ('trust', False), ('sandboxEnabled', True)}


@pytest.mark.parametrize('seed', range(6))
def test_nothing_is_dropped_in_silence(desk, seed):
    """Each member of an entry is in ours, or told; one bad entry costs at most itself."""
    r = rand.Random(seed)
    servers = {'good': {'command': 'x'}}
    for i in range(60):
        entry = {'command': 'x'} if r.random() < 0.7 else {'url': 'https://a.example/'}
        for name in r.sample(MEMBERS, r.randrange(1, 4)):
            entry[name] = r.choice(VALUES)
        servers[f's{i}'] = entry
    servers['last'] = {'command': 'x'}
    inputs = [{'id': 'i', 'type': r.choice(['command', 'promptString', 'pickString', 7])}]
    path = desk.put(os.path.join(desk.project, 'x.json'),
                    json.dumps({'inputs': inputs, 'servers': servers}))
    done = desk.holt('mcp', 'import', path)
    assert done.returncode in (0, 1), done
    found = json.loads(done.stdout)['mcpServers']
    assert found['good'] == found['last'] == {'command': 'x'}
    for name, entry in servers.items():
        told = [line for line in done.stderr.splitlines() if line.startswith(f'holt: {name}: ')]
        if name not in found:
            assert any('left out' in line for line in told), (name, entry, told)
            continue
        for member, value in entry.items():
            ours = (member, *OURS.get(member, ()))
            empty = value in ([], {}, '') or member in ('type', 'transport')
            assert (any(o in found[name] for o in ours) or empty or (member, value) in SILENT
                    if isinstance(value, (bool, int)) else
                    any(o in found[name] for o in ours) or empty) or any(
                member in line or 'sandbox' in line for line in told), (name, entry, found[name],
                                                                         told)


# ---- import: hostile files -----------------------------------------------------------------------

DEEP = 100000
HOSTILE = [
    ('x.json', b''), ('x.json', b'{'), ('x.json', b'\xff\xfe'), ('x.json', b'{"a": 1 /* '),
    ('x.json', b'{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}'),
    ('x.json', b'{"mcpServers": {"a": {"command": "x", "command": "y"}}}'),
    ('x.json', b'{"mcpServers":' * DEEP), ('x.json', b'[' * DEEP), ('x.json', b'\0' * 4096),
    ('x.json', b'{"mcpServers": {"a": {"command": "x", "args": ["\xed\xa0\x80"]}}}'),
    ('x.json', b' ' * (17 << 20)),
    ('x.json', b'{"mcpServers": {' + b','.join(b'"s%d": {"command": "x"}' % i
                                               for i in range(2000)) + b'}}'),
]


@pytest.mark.parametrize('name, text', HOSTILE, ids=range(len(HOSTILE)))
def test_hostile(desk, name, text):
    """Refused at once with one line, and nothing is written."""
    path = desk.put(os.path.join(desk.project, name), text)
    done = desk.holt('mcp', 'import', path, '--write')
    assert done.returncode == 125 and done.stdout == '', done
    assert done.stderr.startswith('holt: ') and len(done.stderr) < 1000, done.stderr[:2000]
    assert not os.path.exists(desk.config)


def test_wrong_types(desk):
    """A member of a wrong type is told and left out; others of the server are not."""
    names = ('args', 'env', 'cwd', 'headers', 'type', 'timeout', 'disabled', 'includeTools',
             'autoApprove', 'trust', 'sandbox', 'envFile')
    for value in (7, -1, 1e300, True, None, 'x', '', [], [[]], [1], {}, {'a': {'b': []}}):
        path = desk.put(os.path.join(desk.project, 'x.json'), json.dumps({'mcpServers': {
            **{f'm{i}': {'command': 'x', name: value} for i, name in enumerate(names)},
            'whole': value, 'vector': {'command': value}}}))
        done = desk.holt('mcp', 'import', path)
        assert done.returncode in (0, 1), (value, done.stderr)
        found = json.loads(done.stdout)['mcpServers']
        for i, name in enumerate(names):
            if name not in ('headers', 'type') and (name, value) != ('cwd', ''):
                assert found[f'm{i}']['command'] == 'x', (name, value, done.stderr)


def test_nothing_of_a_file_acts_on_the_terminal(desk):
    evil = 'a\x1b]0;owned\x07\u202eb'
    path = desk.put(os.path.join(desk.project, 'x.json'), json.dumps({'mcpServers': {
        evil: {'command': 'x', evil: 1, 'env': {evil: 1, 'A': '${command:' + evil + '}'}}}}))
    done = desk.holt('mcp', 'import', path)
    for bad in ('\x1b', '\x07', '\u202e'):
        assert bad not in done.stdout + done.stderr


# ---- the other way round -------------------------------------------------------------------------

TOKEN = 'holt_' + ''.join(random.choice('0123456789abcdef') for _ in range(64))
URL = 'http://127.0.0.1:5757'
# client: how it names the token by itself, as the operator's file has it; where it keeps servers
BY_ITSELF = {'vscode': '${secret:holt-token}', 'claude-code': '${HOLT_TOKEN}',
             'cursor': '${env:HOLT_TOKEN}', 'windsurf': '${env:HOLT_TOKEN}',
             'codex': '${HOLT_TOKEN}', 'gemini': '${HOLT_TOKEN}', 'opencode': '${HOLT_TOKEN}',
             'generic': '${HOLT_TOKEN}'}
KEPT = {'vscode': '.config/Code/User/mcp.json', 'claude-code': '.claude.json',
        'claude-desktop': '.config/Claude/claude_desktop_config.json',
        'cursor': '.cursor/mcp.json', 'windsurf': '.codeium/windsurf/mcp_config.json',
        'zed': '.config/zed/settings.json', 'codex': '.codex/config.toml',
        'gemini': '.gemini/settings.json', 'opencode': '.config/opencode/opencode.json',
        'augment': '.augment/settings.json'}


def entry(desk, client, *arguments, env=None, status=0):
    done = desk.holt('mcp', 'config', client, '--name', 'box', *arguments,
                     env={'HOLT_TOKEN': TOKEN, **(env or {})})
    assert done.returncode == status, done
    return done


def read_foreign(client, text):
    """An entry of a client whose file is not read, as the operator's file would have it."""
    if client == 'codex':
        server = tomllib.loads(text)['mcp_servers']['box']
        headers = server.pop('http_headers', {})
        if name := server.pop('bearer_token_env_var', None):
            headers = {'Authorization': f'Bearer ${{{name}}}'}
        return server | ({'headers': headers} if headers else {})
    if '/*' in text:
        text = re.sub(r',(\s*})', r'\1', re.sub(r'/\*.*?\*/|//.*', '', text))
    server = json.loads(text)[{'zed': 'context_servers', 'opencode': 'mcp'}[client]]['box']
    if server.pop('type', None) == 'local':
        server['command'], *server['args'] = server['command']
    return json.loads(json.dumps(server).replace('{env:', '${'))


def read_back(desk, client, text):
    if client in FOREIGN:
        return json.loads(json.dumps(read_foreign(client, text)).replace(
            TOKEN, '${secret:box.Authorization}'))
    path = desk.put(os.path.join(desk.project, 'entry'), text)
    server, = desk.read('--from', client, path)[0]['mcpServers'].items()
    assert server[0] == 'box'
    return server[1]


def test_every_client_has_an_entry(desk):
    assert set(CLIENTS) == set(KEPT)
    for client in (*CLIENTS, 'generic'):
        text = entry(desk, client, '--connect', URL, '--tools', 'coding,ui').stdout
        back = read_back(desk, client, text)
        assert TOKEN not in text and os.path.isabs(back['command']), text
        assert back['args'] == ['mcp', '--connect', URL, '--tools', 'coding,ui']
        assert read_back(desk, client, entry(desk, client).stdout) == {
            'command': back['command'], 'args': ['mcp']}


def test_every_client_that_speaks_http(desk):
    for client in {*CLIENTS, 'generic'} - {'claude-desktop'}:
        text = entry(desk, client, '--url', URL, '--with-token', '--tools', 'ui').stdout
        back = read_back(desk, client, text)
        assert TOKEN in text and back['url'] == URL + '/mcp?tools=ui', text
        assert back['headers'] == {'Authorization': 'Bearer ${secret:box.Authorization}'}
        assert back.get('type', 'http') == 'http'
        if client not in BY_ITSELF:
            done = entry(desk, client, '--url', URL, status=2)
            assert 'has no variables' in done.stderr and not done.stdout
            continue
        text = entry(desk, client, '--url', URL + '/other/mcp').stdout
        back = read_back(desk, client, text)
        assert TOKEN not in text and back['url'] == URL + '/other/mcp'
        assert back['headers'] == {'Authorization': f'Bearer {BY_ITSELF[client]}'}, client
    assert 'only starts programs' in entry(desk, 'claude-desktop', '--url', URL, status=2).stderr


def test_an_entry_is_written(desk):
    """Where the client looks; twice is refused."""
    for client, file in KEPT.items():
        path = os.path.join(desk.home, file)
        assert entry(desk, client, '--write').stdout == f'{path}: box added\n'
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        with open(path, encoding='utf-8') as f:
            was = f.read()
        read_back(desk, client, was)
        assert 'already' in entry(desk, client, '--write', status=125).stderr
        with open(path, encoding='utf-8') as f:
            assert f.read() == was
        assert os.listdir(os.path.dirname(path)).count(os.path.basename(path)) == 1
    assert 'name one' in entry(desk, 'generic', '--write', status=125).stderr


CODEX = '''model = "o3" # of all
[projects."/home/me/x"]
trust_level = "trusted"

[mcp_servers.docs]
command = "npx"
[mcp_servers.docs.tools.a]
approval_mode = "approve"
[mcp_servers.box-2]
url = "https://mcp.example/mcp"'''


@pytest.mark.parametrize('client, before', [
    ('vscode', VSCODE), ('claude-code', CLAUDE_CODE), ('codex', CODEX), ('codex', ''),
    ('zed', '{\n  // theme\n  "theme": "One",\n  "context_servers": {\n/* none */\n  },\n}\n'),
    ('zed', '{ "theme": "One" }'), ('opencode', '{}'), ('generic', ''),
])
def test_what_is_there_stays(desk, client, before):
    """To the byte, but for what is added; a link leads to the same file as before."""
    path = desk.put(os.path.join(desk.project, 'real', 'file'), before)
    link = os.path.join(desk.project, 'link')
    os.symlink(path, link)
    more = () if client == 'zed' else ('--url', URL)
    entry(desk, client, '--write', link, *more)
    with open(path, encoding='utf-8') as f:
        now = f.read()
    for line in before.splitlines():
        assert line.strip(' {}') in now, line
    assert os.path.islink(link) and stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert TOKEN not in now and os.listdir(os.path.dirname(path)) == ['file']
    if client in FOREIGN:
        assert read_foreign(client, now)
    else:
        back, _ = desk.read('--from', client, path, status=0)
        assert 'box' in back['mcpServers']
        assert client != 'vscode' or {'github', 'files'} <= set(back['mcpServers'])
    if client == 'vscode':
        assert now.count('holt-token"') == 1
        entry(desk, client, '--write', link, *more, '--name', 'second')
        with open(path, encoding='utf-8') as f:
            assert f.read().count('"id": "holt-token"') == 1


@pytest.mark.parametrize('client, before', [
    ('cursor', '{"mcpServers": []}'), ('cursor', '[]'), ('cursor', '{"mcpServers": {'),
    ('cursor', '{"a": 1} {}'), ('codex', 'mcp_servers = { a = { command = "x" } }\n'),
    ('codex', '[mcp_servers."box"]\ncommand = "x"\n'), ('codex', 'a = "mcp_servers"\n'),
    ('codex', '[mcp_servers]\nbox = { command = "x" }\n'),
    ('vscode', '{"inputs": {}, "servers": {}}'),
    ('cursor', '{"mcpServers": {"box": 7}}'), ('codex', '[mcp_servers.box]\ncommand = "x"\n'),
])
def test_what_cannot_be_added_to(desk, client, before):
    path = desk.put(os.path.join(desk.project, 'file'), before)
    done = entry(desk, client, '--write', path, '--url', URL, status=125)
    assert path in done.stderr and not done.stdout, done
    with open(path, encoding='utf-8') as f:
        assert f.read() == before
    assert os.listdir(desk.project) == ['file']


def test_what_is_written_meanwhile_stays(desk):
    """The client writes its file while ours is made from what it was: ours is refused."""
    path = os.path.join(desk.project, 'file')
    os.mkfifo(path, 0o600)  # which is read when we say so
    os.chown(path, desk.me.uid, desk.me.uid)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        writing = pool.submit(entry, desk, 'cursor', '--write', path, status=125)
        with open(path, 'w', encoding='utf-8') as was:  # it has opened what was there
            os.rename(desk.put(path + '.new', '{"mcpServers": {"theirs": {"command": "x"}}}'), path)
            was.write('{}')
        done = writing.result(30)
    assert 'changed meanwhile' in done.stderr and not done.stdout, done
    assert set(read_all(path)) == {'theirs'}
    assert os.listdir(desk.project) == ['file']
    entry(desk, 'cursor', '--write', path)
    assert set(read_all(path)) == {'theirs', 'box'}


def read_all(path):
    with open(path, encoding='utf-8') as f:
        return json.load(f)['mcpServers']


@pytest.mark.parametrize('before', [None, '{"mcpServers": {}}'])
def test_many_at_once(desk, before):
    """Each that says it was added is there; each other says why it is not."""
    path = os.path.join(desk.project, 'deep', 'file')
    if before:
        desk.put(path, before)

    def add(name):
        done = desk.holt('mcp', 'config', 'cursor', '--name', name, '--write', path)
        assert done.returncode == 0 or 'try again' in done.stderr, done
        return name if done.returncode == 0 else None
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        added = set(pool.map(add, [f'box-{i}' for i in range(12)])) - {None}
    assert added and set(read_all(path)) == added
    assert os.listdir(os.path.dirname(path)) == ['file']


@needs('strace')
@pytest.mark.parametrize('call', ['fsync', 'renameat2'])
def test_one_that_is_killed_leaves_no_more_than_the_next_takes(desk, call):
    path = desk.put(os.path.join(desk.project, 'x.json'),
                    json.dumps({'servers': {'a': {'command': 'x'}}}))
    verb = ['mcp', 'import', path, '--write']
    argv = desk.me.argv(*verb)
    for _ in range(2):
        done = subprocess.run([*argv[:-len(verb) - 1], 'strace', '-f', '-qq', '-o', '/dev/null',
                               '-e', f'trace={call}', '-e', f'inject={call}:signal=KILL',
                               *argv[-len(verb) - 1:]], cwd='/', capture_output=True, check=False,
                              timeout=60, env={**desk.me.env, 'HOME': desk.home,
                                               'HOLT_HOME': os.path.dirname(desk.config)})
        assert done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), done
        assert len(os.listdir(os.path.dirname(desk.config))) <= 2
    assert desk.holt(*verb).returncode == 0
    assert os.listdir(os.path.dirname(desk.config)) == ['config.json']


def test_a_token_stays_at_its_hub(desk):
    """Ours goes into entries for this machine alone, however the URL is written."""
    env = {'HOLT_TOKEN': ''}
    ours = entry(desk, 'generic', '--url', URL, '--with-token', env=env).stdout
    assert 'Bearer ' in ours and '${' not in ours
    for url in ('https://hub.example', 'http://127.0.0.1.example', 'http://localhost.example:80'):
        done = entry(desk, 'generic', '--url', url, '--with-token', env=env, status=2)
        assert 'HOLT_TOKEN' in done.stderr and not done.stdout
    env = json.loads(entry(desk, 'opencode', '--connect', 'https://hub.example',
                           '--with-token').stdout)['mcp']['box']['environment']
    assert env == {'HOLT_TOKEN': TOKEN}
    for wrong in (['--url', 'ftp://x'], ['--url', 'http://x/"y'], ['--name', 'a.b'], ['file'],
                  ['--url', URL, '--connect', URL], ['--tools', 'a b'], ['--with-token']):
        entry(desk, 'generic', *wrong, status=2)
    assert 'there are vscode, claude-code, ' in desk.holt('mcp', 'config', 'emacs').stderr
