"""Which secrets come by which road to whom: every road on which something of a request or of the
operator's file reaches a program or a server, times every kind of secret (docs/secrets.md). Where
placeholders are replaced is in test_placeholder_programs.py."""

import hashlib
import itertools
import json
import os

import pytest

import host
from client import until
from modules import approve, call
from rest import Failed
from test_hub_cli import Hub

VALUE = 'canary+of/a-secret="0123"'
DIGEST = hashlib.sha256(VALUE.encode()).hexdigest()
KINDS = {
    'store': {'store': True},
    'env': {'env': 'CANARY'},
    'file': {'file': 'FILE'},
    'command': {'command': ['PRINTER']},
    **{f'hosts-{name}': {**source, 'hosts': ['api.example.org']} for name, source in
       (('store', {'store': True}), ('env', {'env': 'CANARY'}), ('file', {'file': 'FILE'}),
        ('command', {'command': ['PRINTER']}))},
}
REACHED, ELSEWHERE = ['api.example.org:443'], ['other.example.org:443']
# Says what its first argument is, in words that are redacted in no form.
LOOK = ('case "$1" in holt-secret-????????????????????????????????) echo IS-PLACEHOLDER;; '
        f'*) if [ "$(printf %s "$1" | sha256sum)" = "{DIGEST}  -" ]; then echo IS-GIVEN; '
        'else echo "IS-ABSENT"; fi;; esac')
# Roads of the operator's file: what of an entry has the secret, where the program runs, and what
# it may reach; then what becomes of secrets without and with hosts.
PROGRAMS = {
    'env': (lambda s: {'args': ['-c', LOOK.replace('$1', '$K') + ' >&2; exit 3'], 'env': {'K': s}}),
    'args': (lambda s: {'args': ['-c', LOOK + ' >&2; exit 3', 'sh', s]}),
}
PLACES = {
    'reached': ({'sandbox': {'network': REACHED}}, 'placeholder'),
    'elsewhere': ({'sandbox': {'network': ELSEWHERE}}, "can't reach"),
    'alone': ({}, "can't reach"),
    'host': ({'sandbox': False}, 'enters no program'),
}
SERVERS = {
    'url': (lambda s: {'url': f'https://api.example.org/{s}'}, 'can stand in'),
    'header-plain': (lambda s: {'url': 'http://api.example.org/', 'headers': {'X': s}},
                     'not to the URL'),
    'header-other': (lambda s: {'url': 'https://other.example.org/', 'headers': {'X': s}},
                     'not to the URL'),
    'header-port': (lambda s: {'url': 'https://api.example.org:8443/', 'headers': {'X': s}},
                    'not to the URL'),
    'header-user': (lambda s: {'url': 'https://api.example.org:443@other.example.org/',
                               'headers': {'X': s}}, 'not to the URL'),
    'cwd': (lambda s: {'command': 'sh', 'cwd': f'/{s}', 'sandbox': {'network': REACHED}},
            'can stand in'),
    'read': (lambda s: {'command': 'sh', 'sandbox': {'network': REACHED, 'read': [f'/{s}']}},
             'can stand in'),
    'write': (lambda s: {'command': 'sh', 'sandbox': {'network': REACHED, 'write': [f'/{s}']}},
              'can stand in'),
}


def name_of(*parts):
    return '-'.join(parts).lower()


def entries():
    """Of the file: name, entry, what secrets with hosts meet."""
    for kind, (how, program), (where, (place, then)) in itertools.product(
            KINDS, PROGRAMS.items(), PLACES.items()):
        yield (name_of(kind, how, where),
               {'command': 'sh', **program(f'${{secret:{kind}}}'), **place},
               then if kind.startswith('hosts') else 'given')


def servers():
    for kind, (how, (server, then)) in itertools.product(KINDS, SERVERS.items()):
        if kind.startswith('hosts'):
            yield name_of(kind, how), server(f'${{secret:{kind}}}'), then


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    home = tmp_path_factory.mktemp('roads')
    value, printer = home / 'value', home / 'print'
    site = tmp_path_factory.mktemp('site')
    value.write_text(VALUE + '\n')
    printer.write_text(f"#!/bin/sh\ncat <<'end'\n{VALUE}\nend\n")
    printer.chmod(0o700)
    value.chmod(0o600)
    text = json.dumps({
        'secrets': KINDS, 'principals': {'token': {'secrets': ['*']}},
        'agents': {name: entry for name, entry, _ in entries()},
        'modules': {'servers': 500},
        'mcpServers': {name: {**entry, 'approval': 'allow'}
                       for name, entry, _ in (*entries(), *servers())},
        'workspaces': {'site': {'dir': str(site)}},
    }).replace('"FILE"', json.dumps(str(value))).replace('"PRINTER"', json.dumps(str(printer)))
    (home / 'config.json').write_text(text)
    for path in (home, value, printer, site, home / 'config.json'):
        os.chown(path, me.uid, me.uid)
    with Hub(me, home, '--listen', '127.0.0.1:0', '--pool', '0', '--allow', 'example.org',
             env={'CANARY': VALUE}) as shared:
        for name in ('store', 'hosts-store'):
            shared.ok('secret', 'set', name, input=VALUE.encode())
        yield shared
    before.check()


def module_outcome(hub, name):
    """Its last words, or why it did not start."""
    approve(hub, name)
    with pytest.raises(Failed) as failed:
        call(hub, name, 'any')
    return hub.ok('mcp', 'logs', name).decode() + str(failed.value)


def agent_outcome(hub, name):
    talk = hub.post('/api/sessions', acp_server=name, workspace='site')['session_id']
    hub.call('POST', f'/api/sessions/{talk}/queue', {'prompt': 'x'})

    def look():
        events = hub.call('GET', f'/api/sessions/{talk}/events?limit=100')['events']
        return [json.dumps(e['data']) for e in events if e['type'] == 'error']
    said = until(look, what='the end of a turn')[0]
    hub.call('DELETE', f'/api/sessions/{talk}')
    return said


def check(said, then):
    words = {'given': 'IS-GIVEN', 'placeholder': 'IS-PLACEHOLDER', 'absent': 'IS-ABSENT'}
    assert words.get(then, then) in said and VALUE not in said, (said, then)
    assert [w for w in words.values() if w in said] == [w for w in [words.get(then)] if w], said


@pytest.mark.parametrize('outcome, kind', [
    *((module_outcome, kind) for kind in KINDS),
    *((agent_outcome, kind) for kind in ('env', 'hosts-file'))])  # by the same code
def test_programs_of_the_file(hub, kind, outcome):
    for name, entry, then in entries():
        # each place once for each kind; a program's arguments in a single place
        if name.startswith(f'{kind}-env') or name == f'{kind}-args-reached':
            check(outcome(hub, name), then)


@pytest.mark.parametrize('name', [name for name, _, _ in servers()])
def test_servers_of_the_file(hub, name):
    check(module_outcome(hub, name), {n: then for n, _, then in servers()}[name])


# Roads of requests. In each the secret is named as far as it can be; where it can't, the text that
# names one in the operator's file is a text.
ABSENT = '${secret:%s}'


def by_exec(hub, box, kind):
    return hub.run('exec', '--secret', f'{kind}=K', box, 'sh', '-c', LOOK.replace('$1', '$K'))


def by_file(hub, box, kind):
    return hub.run('exec', '--secret-file', f'{kind}=K', box, 'sh', '-c',
                   'set -- "$(cat $K)"; ' + LOOK)


def by_run(hub, box, kind):
    return hub.run('run', '--secret', f'{kind}=K', '--', 'sh', '-c', LOOK.replace('$1', '$K'))


def by_contract(hub, box, kind):
    try:
        return hub.post('/v1/run', image='host', command=['sh', '-c', LOOK.replace('$1', '$K')],
                        secrets={'K': {'ref': kind}}, env={}, timeout_seconds=20,
                        network={'mode': 'none'}, state={'retention': 'destroy'})['stdout']
    except Failed as e:
        return str(e)


def by_up(hub, box, kind):
    return with_box(hub, 'sh', '-c', LOOK.replace('$1', '$K'),
                    up=('--secret', f'{kind}=K', '--allow', REACHED[0]))


def by_exec_env(hub, box, kind):
    return hub.run('exec', '-e', 'K=' + ABSENT % kind, box, 'sh', '-c', LOOK.replace('$1', '$K'))


def by_up_env(hub, box, kind):
    return with_box(hub, 'sh', '-c', LOOK.replace('$1', '$K'), up=('-e', 'K=' + ABSENT % kind))


def by_args(hub, box, kind):
    return hub.run('exec', box, 'sh', '-c', LOOK, 'sh', ABSENT % kind)


def by_content(hub, box, kind):
    hub.ok('fs', 'write', box, '/workspace/k', input=(ABSENT % kind).encode())
    return hub.run('exec', box, 'sh', '-c', 'set -- "$(cat /workspace/k)"; ' + LOOK)


def with_box(hub, *argv, up):
    made = hub.run('up', *up)
    if made.returncode:
        return made
    name = made.stdout.decode().strip()
    done = hub.run('exec', name, *argv)
    hub.ok('down', name)
    return done


ROADS = {
    by_exec: ('given', 'enters no sandbox'),
    by_file: ('given', 'enters no sandbox'),
    by_run: ('given', 'enters no sandbox'),
    by_contract: ('given', 'enters no sandbox'),
    by_up: ('has no hosts', 'placeholder'),
    by_exec_env: ('absent', 'absent'),
    by_up_env: ('absent', 'absent'),
    by_args: ('absent', 'absent'),
    by_content: ('absent', 'absent'),
}


@pytest.fixture(scope='module')
def box(hub):
    name = hub.ok('up').decode().strip()
    yield name
    hub.ok('down', name)


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('road', ROADS, ids=lambda road: road.__name__)
def test_requests(hub, box, road, kind):
    said = road(hub, box, kind)
    if not isinstance(said, str):
        said = (said.stdout + said.stderr).decode()
    check(said, ROADS[road][kind.startswith('hosts')])
