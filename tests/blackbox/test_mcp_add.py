"""`holt mcp add`, `remove` and `allow`: what people type and paste becomes an entry of the
operator's file, and all other text of it stays."""

import json
import os
import random
import re
import types

import pytest

from mcp_cli import Terminal
from modules import server
from test_mcp_config import desk  # noqa: F401: a fixture

NPX = {'command': 'npx', 'args': ['-y', 'p']}
HTTP = 'https://mcp.example.com/mcp'


def entries(desk):
    if not os.path.exists(desk.config):
        return {}
    return json.loads(desk.holt('config', 'show').stdout).get('mcpServers', {})


def text_of(desk):
    with open(desk.config, encoding='utf-8') as f:
        return f.read()


def paste(desk, text, *arguments):
    done = desk.me.run('mcp', 'add', *arguments, cwd=desk.project, input=text, text=True,
                       env={'HOME': desk.home, 'HOLT_HOME': os.path.dirname(desk.config)})
    assert done.returncode >= 0, done
    return done


def added(desk, name, done, status=0):
    assert done.returncode == status, done
    assert f'next: holt mcp approve {name}\n' in done.stdout, done
    return json.loads(text_of(desk))['mcpServers'][name]


# ---- command lines -------------------------------------------------------------------------------

LINES = [
    ('w -- npx -y p', NPX),
    ('w npx -y p', NPX),
    ('w -- npx -y p -e X=Y --env Z --header H', {'command': 'npx', 'args': [
        '-y', 'p', '-e', 'X=Y', '--env', 'Z', '--header', 'H']}),
    ('-e MODE=fast -e EMPTY= w -- npx -y p', {**NPX, 'env': {'MODE': 'fast', 'EMPTY': ''}}),
    ('w --env MODE=a=b -- npx -y p', {**NPX, 'env': {'MODE': 'a=b'}}),
    ('--transport stdio --scope user w -- npx -y p', NPX),
    ('-s user w /opt/server --fast', {'command': '/opt/server', 'args': ['--fast']}),
    ('w -- uvx mcp-server-time', {'command': 'uvx', 'args': ['mcp-server-time']}),
    ('w -- docker run -i --rm -e K mcp/time', {
        'command': 'docker', 'args': ['run', '-i', '--rm', '-e', 'K', 'mcp/time']}),
    (f'w {HTTP}', {'type': 'http', 'url': HTTP}),
    (f'--transport http w {HTTP}', {'type': 'http', 'url': HTTP}),
    (f'-t sse w {HTTP}', {'type': 'sse', 'url': HTTP}),
    (f'w {HTTP} --transport sse', {'type': 'sse', 'url': HTTP}),
    (f'w --url {HTTP}', {'type': 'http', 'url': HTTP}),
    (f'w --url {HTTP} --bearer-token-env-var TOKEN', {
        'type': 'http', 'url': HTTP, 'headers': {'Authorization': 'Bearer ${TOKEN}'}}),
    (f'w {HTTP} --header Accept-Language:de', {
        'type': 'http', 'url': HTTP, 'headers': {'Accept-Language': 'de'}}),
]


@pytest.mark.parametrize('line, want', LINES, ids=range(len(LINES)))
def test_lines(desk, line, want):
    """As people know them of `claude mcp add` and `codex mcp add`."""
    assert added(desk, 'w', desk.holt('mcp', 'add', *line.split())) == want
    assert desk.check().returncode in (0, 1)


WRONG = [
    ('npx -y p', 'a name stands before a command'), ('https://x/', 'a name stands before it'),
    ('@a/b', 'a name stands before it'), ('', 'an operand is missing'),
    ('w', 'what is to be started'), ('w --', 'what is to be'),
    ('-e w -- npx', 'an operand is missing'), ('-- npx -y p', 'an operand is missing'),
    ('-e KEY w npx', "--env takes KEY=VALUE, not 'KEY'"),
    ('-H Key w https://x/', '--header takes "NAME: VALUE"'),
    ('-t http w npx', 'are for a URL'), ('-H a:b w npx', 'are for a URL'),
    ('-t stdio w https://x/', 'are for a command'), ('-e A=b w https://x/', 'are for a command'),
    ('-t pigeon w npx', '-t takes stdio|http|sse'),
    ('-s project w npx', '-s takes user'),
    ('--client-id x w https://x/', 'a token may stand in a header'),
    ('--nonsense w npx', 'there is no option'), ('w https://x/ more', "too much: 'more'"),
    ('w https://x/ --nonsense', 'there is no option'),
    ('w --url https://x/ https://y/', '--url has the URL'),
    ('w --url https://x/ npx', 'not both'), ('w --url npx', '--url takes http://'),
]


@pytest.mark.parametrize('line, says', WRONG, ids=range(len(WRONG)))
def test_wrong_lines(desk, line, says):
    """Each word is obeyed or refused, and what is refused writes nothing."""
    done = desk.holt('mcp', 'add', *line.split())
    assert done.returncode == 2 and says in done.stderr, done
    assert not os.path.exists(desk.config)


def test_names(desk):
    """A name is made valid, which is told; one that is there is refused with the way out."""
    for given, name in (('My_Server', 'my-server'), ('fetch', 'fetch-server'), ('9', 'server')):
        done = desk.holt('mcp', 'add', given, '--', 'npx', '-y', 'p')
        assert added(desk, name, done) == NPX
        assert f'{given}: it is called {name} now' in done.stderr, done
    was = text_of(desk)
    done = desk.holt('mcp', 'add', 'my-server', '--', 'other')
    assert done.returncode == 1 and 'holt mcp remove my-server' in done.stderr, done
    assert done.stdout == '' and text_of(desk) == was


def test_secrets(desk):
    """Their values go nowhere, and what stores them is told."""
    value = 'tvly-' + ''.join(random.choice('0123456789abcdefXYZ') for _ in range(30))
    done = desk.holt('mcp', 'add', 'w', '-e', f'TAVILY_API_KEY={value}', '-e', 'STRIPE_KEY=<key>',
                     '-e', 'API_TOKEN=', '--', 'npx', '-y', 'p', '--api-key', value,
                     f'--access-token={value}', '--mode', 'long-enough', '--header',
                     'Authorization: Bearer abcdefgh1234', '-H', 'Accept-Language: de')
    entry = added(desk, 'w', done)
    assert entry['env'] == {'TAVILY_API_KEY': '${secret:w.TAVILY_API_KEY}',
                            'STRIPE_KEY': '${secret:w.STRIPE_KEY}',
                            'API_TOKEN': '${secret:w.API_TOKEN}'}
    assert entry['args'] == ['-y', 'p', '--api-key', '${secret:w.api-key}',
                             '--access-token=${secret:w.access-token}', '--mode', 'long-enough',
                             '--header', 'Authorization: ${secret:w.Authorization}', '-H',
                             'Accept-Language: de']
    for name in ('TAVILY_API_KEY', 'STRIPE_KEY', 'API_TOKEN', 'api-key', 'access-token'):
        assert f'holt secret set w.{name}\n' in done.stderr, done
    assert value not in done.stdout + done.stderr + text_of(desk)


# ---- blocks --------------------------------------------------------------------------------------

W = '"w": {"command": "npx", "args": ["-y", "p"]}'
BLOCKS = [
    '{"mcpServers": {%s}}' % W,
    '{"servers": {%s}}' % W,
    '{"mcp": {"servers": {%s}, "inputs": []}}' % W,
    '{%s}' % W, W, W + ',', '"mcpServers": {%s}' % W,
    '"mcpServers": {%s},' % W,
    '// of the README\n{"mcpServers": {\n  %s, // here\n}, /* all */ }' % W,
    '```json\n{"mcpServers": {%s}}\n```\n' % W,
    'Add this to your file:\n\n  ```jsonc\n  %s\n  ```\n\nThen restart.\n' % W,
    '\ufeff{"mcpServers": {%s}}' % W,
    '{\u00a0"mcpServers":\u00a0{\u200b%s}}' % W,
    '{"name": "w", "command": "npx", "args": ["-y", "p"]}',
    '\r\n{"mcpServers": {\r\n%s\r\n}}\r\n' % W,
]


@pytest.mark.parametrize('block', BLOCKS, ids=range(len(BLOCKS)))
def test_blocks(desk, block):
    """A block of a README as it stands, from standard input and as an argument."""
    assert added(desk, 'w', paste(desk, block, '-')) == NPX
    assert desk.holt('mcp', 'remove', 'w').returncode == 0
    assert added(desk, 'w', desk.holt('mcp', 'add', block)) == NPX


def test_an_entry_alone(desk):
    entry = json.dumps(NPX)
    for i, (text, arguments) in enumerate(((entry, ('w', '-')), ('', ('w', entry)))):
        assert added(desk, 'w', paste(desk, text, *arguments)) == NPX, i
        assert desk.holt('mcp', 'rm', 'w').returncode == 0
    assert added(desk, 'w', desk.holt('mcp', 'add-json', 'w', entry)) == NPX


WRONG_BLOCKS = [
    ('', 'there is nothing in it'), ('   \n', 'there is nothing in it'),
    ('npx -y p', 'A command line stands behind two dashes'),
    ('[mcp_servers.w]\ncommand = "npx"\n', 'TOML'),
    ('{\n  \u201cmcpServers\u201d: {}}', 'line 2, column 3: \u201c is no quote of JSON'),
    ('{"mcpServers": {"w": {"command": "npx",\n "args": ["-y" "p"]}}}', 'line 2'),
    (json.dumps(NPX), 'the entry has no name'),
    ('{"a": 1}', 'no MCP servers that are known'), ('{}', 'no MCP servers that are known'),
    ('```\n{}\n```\n```\n{}\n```\n', 'several blocks'),
    ('{"mcpServers": {%s}' % W, 'line 1'),
]


@pytest.mark.parametrize('block, says', WRONG_BLOCKS, ids=range(len(WRONG_BLOCKS)))
def test_wrong_blocks(desk, block, says):
    done = paste(desk, block, '-')
    assert done.returncode == 125 and says in done.stderr, done
    assert not os.path.exists(desk.config)


def test_a_block_and_more(desk):
    """A block says all by itself."""
    block = '{"mcpServers": {%s}}' % W
    done = paste(desk, block, 'other', '-')
    assert done.returncode == 125 and 'leave out other' in done.stderr, done
    done = paste(desk, block, '-e', 'A=b', '-')
    assert done.returncode == 125 and 'leave out' in done.stderr, done
    assert not os.path.exists(desk.config)


# ---- the text around it --------------------------------------------------------------------------

def blank(r, where='out'):
    note = f'{where}-{r.randrange(1000)}'
    return r.choice(['', ' ', '\n', '\n    ', '  \n\t', f' // {note} "a" }}\n',
                     f' /* {note} {{ , */ ', f'\n  // {note}\n  // {note}\n  ', '\r\n  '])


def members(r, them):
    """An object or array of these texts, written as somebody might."""
    text = ''
    for i, one in enumerate(them):
        text += blank(r) + one + (blank(r) + ',' if i + 1 < len(them) else '')
    return text + blank(r)


def a_file(r, names):
    servers = []
    for name in names:
        more = ', "args": ["// }"]' if r.randrange(2) else ''
        servers.append(f'"{name}":{blank(r, "in")}{{{blank(r, "in")}"command": "/bin/{name}"{more}'
                       f'{blank(r, "in")}}}')
    sections = [f'"mcpServers":{blank(r)}{{{members(r, servers)}}}'] if names else []
    sections += r.sample(['"modules": {"servers": 30}', '"policy": { "default": "ask" }',
                          '"images": ["host" /* out-0 */ ]'], r.randrange(4))
    r.shuffle(sections)
    return f'{blank(r)}{{{members(r, sections)}}}{blank(r)}'


@pytest.mark.parametrize('seed', range(60))
def test_the_text_stays(desk, seed):
    """What was added and removed leaves the very bytes of the file. What is removed of others
    leaves all comments that are not in it, and the other servers."""
    r = random.Random(seed)
    names = [f's{i}' for i in range(r.randrange(5))]
    was = a_file(r, names)
    desk.put(desk.config, was)
    assert desk.check().returncode in (0, 1), was
    for _ in range(r.randrange(1, 3)):
        done = desk.holt('mcp', 'add', 'added', '-e', 'A=b', '--', 'npx', '-y', 'p')
        assert done.returncode == 0, (was, done)
        assert list(entries(desk)) == ['added', *names]
        for name in names:
            assert entries(desk)[name]['command'] == f'/bin/{name}'
        done = desk.holt('mcp', 'remove', 'added')
        assert done.returncode == 0, (was, done)
        with open(desk.config, newline='', encoding='utf-8') as f:
            assert f.read() == was
    notes = re.findall(r'out-\d+', was)
    while names:
        gone = names.pop(r.randrange(len(names)))
        assert desk.holt('mcp', 'remove', gone).returncode == 0, (was, gone)
        assert list(entries(desk)) == names, (was, gone, text_of(desk))
        assert re.findall(r'out-\d+', text_of(desk)) == notes, (was, gone, text_of(desk))
    assert 'in-' not in text_of(desk), (was, text_of(desk))


def test_remove_what_is_not_there(desk):
    done = desk.holt('mcp', 'remove', 'w')
    assert done.returncode == 125 and 'no MCP server w' in done.stderr, done
    assert not os.path.exists(desk.config)


def grants(desk, name):
    return entries(desk)[name]['sandbox'].get('network', [])


@pytest.mark.parametrize('seed', range(30))
def test_allow(desk, seed):
    """Hosts come into the entry, whatever of its sandbox is there; all else stays."""
    r = random.Random(seed)
    hosts = r.sample(['"a.example:443"'], r.randrange(2))
    inner = [f'"read":{blank(r)}["/usr/share"{blank(r)}]', '"template": "host"',
             f'"network":{blank(r)}[{members(r, hosts)}]']
    inner = r.sample(inner, r.randrange(4))
    entry = [f'"command": "/bin/x"{blank(r)}', '"args": ["}"]']
    entry += [f'"sandbox":{blank(r)}{{{members(r, inner)}}}'] if r.randrange(4) else []
    r.shuffle(entry)
    desk.put(desk.config, f'{{{blank(r)}"mcpServers": {{"w": {{{members(r, entry)}}}}}}}')
    was, before = text_of(desk), entries(desk)
    had = grants(desk, 'w')
    for host, rule in (('api.example.com', 'api.example.com:443'),
                       ('*.b.example:80', '*.b.example:80'), ('10.1.2.3:5432', '10.1.2.3:5432'),
                       ('npm.holt:80', 'npm.holt:80'), ('localhost:5432', '127.0.0.1:5432')):
        done = desk.holt('mcp', 'allow', 'w', host)
        assert done.returncode == 0 and 'holt mcp approve w' in done.stdout, (was, done)
        had.append(rule)
        assert grants(desk, 'w') == had, (was, text_of(desk))
    now = entries(desk)
    now['w']['sandbox']['network'] = before['w']['sandbox'].get('network', [])
    before['w']['sandbox']['network'] = before['w']['sandbox'].get('network', [])
    assert now == before
    assert re.findall(r'out-\d+', text_of(desk)) == re.findall(r'out-\d+', was), text_of(desk)
    last = text_of(desk)
    done = desk.holt('mcp', 'allow', 'w', 'api.example.com')
    assert done.returncode == 0 and 'granted already' in done.stdout and text_of(desk) == last


def test_wrong_allow(desk):
    for host in ('https://a.example/', 'a b', 'x:0', 'x:99999', 'localhost'):
        desk.put(desk.config, '{"mcpServers": {"w": {"command": "x"}, "u": {"url": "https://x/"}, '
                              '"n": {"command": "x", "sandbox": false}}}')
        was = text_of(desk)
        done = desk.holt('mcp', 'allow', 'w', host)
        assert done.returncode == 125 and host in done.stderr, done
        done = desk.holt('mcp', 'allow', 'none', 'a.example')
        assert done.returncode == 125 and 'no MCP server none' in done.stderr, done
        done = desk.holt('mcp', 'allow', 'n', 'a.example')
        assert done.returncode == 125 and 'no sandbox' in done.stderr, done
        done = desk.holt('mcp', 'allow', 'u', 'a.example')
        assert done.returncode == 125 and 'for a command' in done.stderr, done
        assert text_of(desk) == was


# ---- what can't work is told before it fails -----------------------------------------------------

ADVICE = [
    ({'command': 'no-such-program'}, 'there is no program "no-such-program"'),
    ({'command': 'only-here'}, 'HOME/.local/bin/only-here'),
    ({'command': '/srv/none/s'}, '/srv/none/s is not there'),
    ({'command': 'HOME/.local/bin/only-here'}, 'HOME/.local/bin/only-here is not granted'),
    ({'command': 'node', 'args': ['dist/index.js']}, 'dist/index.js is a relative path'),
    ({'command': 'python3', 'args': ['-m', 'x', './data']}, './data is a relative path'),
    ({'command': 'npx', 'args': ['-y', '@modelcontextprotocol/server-filesystem', 'HOME/docs']},
     'HOME/docs is not granted'),
    ({'command': 'npx', 'args': ['-y', 'p', '--root=HOME/docs']}, 'HOME/docs is not granted'),
    ({'command': 'npx', 'args': ['-y', 'p', '/path/to/allowed/files']}, 'stands for something'),
    ({'command': 'npx', 'args': ['-y', 'p', '/Users/username/Desktop']}, 'stands for something'),
    ({'command': 'docker', 'args': ['run', '-i', '--rm']}, 'names no image'),
    ({'command': 'python3', 'cwd': 'HOME/docs'}, 'HOME/docs is not granted'),
    ({'command': 'python3', 'sandbox': {'read': ['HOME/none']}}, 'HOME/none, which is granted'),
    ({'command': 'npx', 'args': ['-y', 'p', 'postgresql://localhost:5432/db']},
     'holt mcp allow w localhost:5432'),
    ({'command': 'python3', 'env': {'OLLAMA_HOST': 'http://127.0.0.1:11434'}},
     'holt mcp allow w localhost:11434'),
    ({'url': 'https://a.example/sse'}, '"type": "sse"'),
]
FINE = [
    {'command': 'python3', 'args': ['-m', 'x', '--port', '80', 'https://a.example/b', '@a/b']},
    {'command': 'npx', 'args': ['-y', '@modelcontextprotocol/server-filesystem', 'HOME/docs'],
     'sandbox': {'write': ['HOME/docs']}},
    {'command': 'HOME/.local/bin/only-here', 'sandbox': {'read': ['HOME/.local']}},
    {'command': 'docker', 'args': ['run', '-i', '--rm', '-e', 'KEY', 'mcp/time'],
     'env': {'KEY': 'x'}},
    {'command': 'docker', 'args': ['run', '-i', 'mcp/sqlite', '--db-path', '/mcp/x.db']},
    {'command': 'python3', 'args': ['-m', 'x', '/tmp/its-own.db']},
    {'command': 'npx', 'args': ['-y', 'p', 'postgresql://localhost:5432/db'],
     'sandbox': {'network': ['127.0.0.1:5432']}},
    {'command': 'uvx', 'args': ['mcp-server-time', '--local-timezone=Europe/Oslo']},
    {'command': 'python3', 'args': ['server.py'], 'cwd': '/usr/share'},
    {'command': 'no-such-program', 'disabled': True},
    {'url': 'https://a.example/mcp'}, {'type': 'sse', 'url': 'https://a.example/sse'},
]


def at_home(desk, entry):
    desk.put(os.path.join(desk.home, '.local', 'bin', 'only-here'), '#!/bin/sh\n')
    os.chmod(os.path.join(desk.home, '.local', 'bin', 'only-here'), 0o755)
    desk.mkdir(os.path.join(desk.home, 'docs'))
    return json.loads(json.dumps(entry).replace('HOME', desk.home))


@pytest.mark.parametrize('entry, says', ADVICE, ids=range(len(ADVICE)))
def test_told_before(desk, entry, says):
    """By config check with its place, by import and by add: the same words."""
    block = json.dumps({'mcpServers': {'w': at_home(desk, entry)}})
    says = says.replace('HOME', desk.home)
    path = desk.put(os.path.join(desk.project, 'x.json'), block)
    if 'sandbox' not in entry:  # which is ours, and foreign to others
        assert says in desk.holt('mcp', 'import', path).stderr
        done = paste(desk, block, '-')
        assert done.returncode == 0 and says in done.stderr, done
    desk.put(desk.config, block)
    done = desk.check()
    assert done.returncode == 1 and 'config.json:1: /mcpServers/w: ' in done.stderr, done
    assert says in done.stderr, done


def test_a_path_from_here(desk):
    done = desk.holt('mcp', 'add', 'w', './s', './data')
    assert added(desk, 'w', done) == {'command': f'{desk.project}/s', 'args': ['./data']}
    assert f'{desk.project}/s is not there' in done.stderr, done


@pytest.mark.parametrize('entry', FINE, ids=range(len(FINE)))
def test_nothing_is_told_of_what_works(desk, entry):
    desk.put(desk.config, json.dumps({'mcpServers': {'w': at_home(desk, entry)}}))
    done = desk.check()
    assert (done.returncode, done.stderr) == (0, ''), done


# ---- as READMEs have them ------------------------------------------------------------------------

# What a page has: a command line behind "holt mcp add ", or a block; hosts that are proposed.
READMES = {
    'context7': ('context7 -- npx -y @upstash/context7-mcp --api-key YOUR_API_KEY', 'context7.com'),
    'context7-remote': ('--transport http context7-remote https://mcp.context7.com/mcp '
                        '--header CONTEXT7_API_KEY:YOUR_API_KEY', ''),
    'playwright': ('''{
  "mcpServers": {
    "playwright": {
      "command": "npx",
      "args": [
        "@playwright/mcp@latest"
      ]
    }
  }
}''', ''),
    'github': ('''{
  "mcp": {
    "inputs": [
      {
        "type": "promptString",
        "id": "github_token",
        "description": "GitHub Personal Access Token",
        "password": true
      }
    ],
    "servers": {
      "github": {
        "command": "docker",
        "args": [
          "run",
          "-i",
          "--rm",
          "-e",
          "GITHUB_PERSONAL_ACCESS_TOKEN",
          "ghcr.io/github/github-mcp-server"
        ],
        "env": {
          "GITHUB_PERSONAL_ACCESS_TOKEN": "${input:github_token}"
        }
      }
    }
  }
}''', 'api.github.com'),
    'filesystem': ('''{
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": [
        "-y",
        "@modelcontextprotocol/server-filesystem",
        "/Users/username/Desktop",
        "/path/to/other/allowed/dir"
      ]
    }
  }
}''', ''),
    'tavily-mcp': ('-e TAVILY_API_KEY=your-api-key-here tavily-mcp -- npx -y tavily-mcp@latest',
                   'api.tavily.com'),
    'notionapi': ('''```javascript
{
  "mcpServers": {
    "notionApi": {
      "command": "npx",
      "args": ["-y", "@notionhq/notion-mcp-server"],
      "env": {
        "NOTION_TOKEN": "ntn_****"
      }
    }
  }
}
```''', 'api.notion.com'),
    'sentry': ('''"sentry": {
  "command": "npx",
  "args": ["@sentry/mcp-server@latest", "--access-token=sentry-user-token"]
},''', 'sentry.io'),
    'stripe': ('''{
  "mcpServers": {
    "stripe": {
      "command": "npx",
      "args": [
          "-y",
          "@stripe/mcp",
          "--tools=all",
          "--api-key=STRIPE_SECRET_KEY"
      ]
    }
  }
}''', 'api.stripe.com'),
    'supabase': ('''{
  "mcpServers": {
    "supabase": {
      "command": "npx",
      "args": [
        "-y",
        "@supabase/mcp-server-supabase@latest",
        "--read-only",
        "--project-ref=<project-ref>"
      ],
      "env": {
        "SUPABASE_ACCESS_TOKEN": "<personal-access-token>"
      }
    }
  }
}''', 'api.supabase.com'),
    'framelink-figma-mcp': ('''{
  "mcpServers": {
    "Framelink Figma MCP": {
      "command": "npx",
      "args": ["-y", "figma-developer-mcp", "--figma-api-key=YOUR-KEY", "--stdio"]
    }
  }
}''', 'api.figma.com'),
    'slack': ('''{
  "mcpServers": {
    "slack": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-slack"],
      "env": {
        "SLACK_BOT_TOKEN": "xoxb-your-bot-token",
        "SLACK_TEAM_ID": "T01234567",
        "SLACK_CHANNEL_IDS": "C01234567, C76543210"
      }
    }
  }
}''', 'slack.com'),
    'postgres': ('''{
  "mcpServers": {
    "postgres": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-postgres", "postgresql://localhost/mydb"]
    }
  }
}''', ''),
    'brave-search': ('''{
  "mcpServers": {
    "brave-search": {
      "command": "docker",
      "args": ["run", "-i", "--rm", "-e", "BRAVE_API_KEY", "mcp/brave-search"],
      "env": {
        "BRAVE_API_KEY": "YOUR_API_KEY_HERE"
      }
    }
  }
}''', 'api.search.brave.com'),
    'puppeteer': ('''{
  "mcpServers": {
    "puppeteer": {
      "command": "docker",
      "args": ["run", "-i", "--rm", "--init", "-e", "DOCKER_CONTAINER=true", "mcp/puppeteer"]
    }
  }
}''', ''),
    'memory': ('memory -- npx -y @modelcontextprotocol/server-memory', ''),
    'sequential-thinking': ('''{ "servers": {
    "sequential-thinking": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-sequential-thinking"]
    } } }''', ''),
    'time': ('''"mcpServers": {
  "time": {
    "command": "uvx",
    "args": ["mcp-server-time", "--local-timezone=America/New_York"]
  }
}''', ''),
    'fetch-server': ('fetch -- uvx mcp-server-fetch', ''),
    'sqlite': ('''{"mcpServers": {"sqlite": {"command": "docker", "args": ["run", "--rm", "-i",
    "-v", "mcp-test:/mcp", "mcp/sqlite", "--db-path", "/mcp/test.db"]}}}''', ''),
    'git': ('git -- uvx mcp-server-git --repository path/to/git/repo', ''),
    'linear': ('--transport sse linear https://mcp.linear.app/sse', ''),
}


@pytest.mark.parametrize('name', READMES)
def test_readmes(desk, name):
    """Each is added as it stands, its secrets are not written, and what it will ask for is told."""
    text, host = READMES[name]
    typed = '\n' not in text
    done = desk.holt('mcp', 'add', *text.split()) if typed else paste(desk, text, '-')
    entry = added(desk, name, done)
    assert entry.get('command') in ('npx', 'uvx', 'docker', None) and 'sandbox' not in entry
    assert host in done.stderr and ('is proposed' in done.stderr) == bool(host), done
    for key in entry.get('env', {}):
        if re.search('TOKEN|KEY', key):
            assert re.fullmatch(r'\$\{secret:[\w.-]+\}', entry['env'][key]), entry
    assert desk.check().returncode in (0, 1)
    assert desk.holt('mcp', 'remove', name).returncode == 0


# ---- at a terminal -------------------------------------------------------------------------------

def test_at_a_terminal(desk):
    """It asks for the secrets that the entry names, shows the module and asks to approve it."""
    env = {'HOME': desk.home, 'HOLT_HOME': os.path.dirname(desk.config)}
    who = types.SimpleNamespace(argv=desk.me.argv, env={**desk.me.env, **env})
    program = server()
    desk.mkdir(os.path.dirname(desk.config))
    try:
        talk = Terminal(who, 'mcp', 'add', '-e', 'API_KEY=<key>', 'ours', '--', program['command'],
                        *program['args'])
        talk.expect('Value of the secret ours.API_KEY (empty: later): ')
        talk.type('value-of-the-key\n')
        seen = talk.expect('Approve this module? [y/N] ')
        assert 'value-of' not in seen and 'API_KEY=***' in seen, seen
        talk.type('y\n')
        seen, status = talk.end()
        assert status == 0 and 'connected' in seen, seen
        done = desk.holt('mcp', 'test', 'ours')
        assert done.stdout == 'connected\n', done
        talk = Terminal(who, 'mcp', 'add', 'two', '--', 'python3', '-c', 'pass')
        talk.expect('Approve this module? [y/N] ')
        talk.type('n\n')
        seen, status = talk.end()
        assert status == 125 and 'it was not approved' in seen, seen
        assert list(entries(desk)) == ['two', 'ours']
        done = desk.holt('mcp', 'remove', 'two')
        assert done.returncode == 0, done
    finally:
        desk.holt('hub', 'stop')
