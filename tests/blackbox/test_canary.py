"""Canaries in everything that Holt says: a program that has secrets of each provider writes them,
in each form, into files, names of files, command lines, output and errors; then each route,
procedure, socket, tool and verb that shows something of its sandbox is asked, and none shows one.
Rows: surface.py. Memory and /proc are searched by test_secrets.py."""

import base64
import json
import os
import re

import pytest

import host
from approval import ASKED, pending
from client import until
from described import Described
from stage import TALKS, Asking, Stage, Talking, walk
from surface import ROUTES, TOOLS, VERBS
from test_hub_cli import Hub
from test_secrets import CANARIES, FORMS, PROVIDERS, digest, files_below, find, forms, read
from test_tools import call

NAME = 'canary.in.names.' + CANARIES['of-env'][:18]  # what can be in a path and in a label
FORMS.update({form: 'named' for form in forms(NAME)})
GRANTS = [word for i, name in enumerate((*PROVIDERS, 'named'))
          for word in ('--secret', f'{name}=V{i}', '--secret-file', f'{name}=F{i}')]

HAUNT = r'''
import base64, json, os, subprocess, sys, urllib.parse as u
values = [os.environ[f'V{i}'] for i in range(5)]
lines = []
for v in values:
    raw = v.encode()
    lines += [v, json.dumps(v), u.quote(v, safe=''), base64.b64encode(raw).decode(), raw.hex()]
text = '\n'.join(lines) + '\n'
os.makedirs('d', exist_ok=True)
for name in ('f', 'd/g', 'd/' + values[4], values[4]):
    open(name, 'w').write(text)
open('blob', 'wb').write(b'\0\1\2' + text.encode() + bytes(range(256)))
for key in ('TOKEN', 'MORE'):
    os.environ[key] = values[0]
said = [sys.executable, '-c', 'import time; print("up", flush=True); time.sleep(10000)']
child = subprocess.Popen([*said, *values], stdout=subprocess.PIPE)
child.stdout.readline()
print(text, flush=True)
print(text, file=sys.stderr, flush=True)
print('hello', flush=True)
while line := sys.stdin.readline():
    print(line, text, flush=True)
'''


class Everything(Described, Hub):
    """A hub with all its doors."""


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    home = tmp_path_factory.mktemp('canary')
    value, printer = home / 'of-file', home / 'print'
    value.write_text(CANARIES['of-file'] + '\n')
    printer.write_text(f"#!/bin/sh\ncat <<'end'\n{CANARIES['of-command']}\nend\n")
    rule = {'name': 'asked', 'actions': ['sandbox.exec'], 'when': {'/command': f'*{ASKED}*'},
            'then': 'ask'}
    (home / 'config.json').write_text(json.dumps({'policy': {'rules': [rule]}, 'secrets': {
        'of-env': {'env': 'CANARY_OF_ENV'}, 'of-file': {'file': str(value)},
        'of-command': {'command': [str(printer)]}}}))
    for path, mode in ((value, 0o600), (printer, 0o700), (home / 'config.json', 0o600),
                       (home, 0o700)):
        path.chmod(mode)
        os.chown(path, me.uid, me.uid)
    with Everything(me, home, '--listen', '127.0.0.1:0', '--pool', '0',
                    env={'CANARY_OF_ENV': CANARIES['of-env'], 'HOLT_LOG': 'debug'}) as shared:
        shared.inputs = (str(value), str(printer))
        for name, text in (('of-store', CANARIES['of-store']), ('named', NAME)):
            shared.ok('secret', 'set', name, input=text.encode())
        yield shared
    before.check()


@pytest.fixture(scope='module')
def stage(hub):
    """A sandbox in which the program runs."""
    made = Stage(hub)
    hub.ok('fs', 'write', made.id, 'haunt.py', input=HAUNT.encode())
    begun = hub.run('exec', '-d', '-i', *GRANTS, made.id, '--', 'python3', 'haunt.py')
    made.exec = made.runs = begun.stdout.decode().strip()
    until(lambda: b'hello' in hub.ok('logs', made.id, made.exec), 60)
    ended = hub.ok('exec', '-d', *GRANTS, made.id, '--', 'sh', '-c', 'env; cat f; exit 3')
    made.ended = ended.decode().strip()
    hub.run('wait', made.id, made.ended)
    made.snapshot = hub.post(f'/v1/sandboxes/{made.id}/snapshots')['id']
    has = hub.exec(made.id, 'head -n 1 f | tr -d "\\n" | sha256sum')['stdout']
    assert has.split()[0] == digest(PROVIDERS[0]), 'the control: the files have them'
    yield made
    hub.delete(made.id)
    hub.call('DELETE', f'/v1/snapshots/{made.snapshot}')


def unpacked(text):
    """Also what strings of JSON and base64 in them stand for, one by one and together."""
    found, decoded = [text], []
    for one in re.findall(rb'"(?:[^"\\]|\\.)*"', text):
        try:
            found.append(json.loads(one).encode())
            decoded.append(base64.b64decode(found[-1], validate=True))
        except ValueError:
            pass
    return b'\n'.join([*found, *decoded, b''.join(decoded)])


def silent(text, at_least=0):
    """No canary is in it, and redactions are."""
    text = unpacked(text)
    assert find(text) == set(), text[:2000]
    assert text.count(b'[REDACTED:') >= at_least, text[:2000]


ENDLESS = {'watch', 'Watch', 'Vitals'}
# Where a name is redacted the archive is no archive any more; what is compressed is not searched.
ARCHIVES = {'archive.download', 'Archive', 'snapshots.export'}


def test_routes_and_procedures(hub, stage):
    looks = [name for name, row in ROUTES.items() if row.scope == 'read' or row.shows is not None]
    walk([name for name in looks if name not in ENDLESS | ARCHIVES], lambda name: silent(
        Asking(hub, name, stage).reply().body, ROUTES[name].shows or 0))


def test_archives(hub, stage):
    for name in ('archive.download', 'Archive'):
        with Asking(hub, name, stage).wire as wire:
            silent(wire.reply('GET').body, 5)


def test_sockets_and_streams(hub, stage):
    for name in sorted(ENDLESS - {'Vitals'}):
        asking = Asking(hub, name, stage)
        asking.wire.head()
        first = asking.wire.chunk()
        hub.exec(stage.id, f'cp f "d/$(ls d | head -1).{name}"')
        with asking.wire:
            silent(first + asking.wire.chunk(), 1)
    for name, (kind, opened) in TALKS.items():
        line = 'cat f; ls d; cat f >&2'
        opened = line if isinstance(opened, str) else {**opened, 'command': line}
        with kind(hub, stage.id, opened) as talk:
            done = talk.end()
            silent(done.out + getattr(done, 'err', b''), 5)
    with Talking(hub, 'execs.attach', stage).talk as talk:
        talk.until(b'hello\n')
        silent(talk.out, 5)


def test_tools_and_resources(me, hub, stage):
    mcp = me.mcp('--connect', f'http://{hub.address[0]}:{hub.address[1]}',
                 env={'HOLT_TOKEN': hub.token})
    mcp.initialize()
    for name, row in TOOLS.items():
        if row.shows is not None:
            asked = call(mcp, name, row.right(stage))
            silent(json.dumps(mcp.wait(asked), ensure_ascii=False).encode(), row.shows)
    failed = mcp.request('tools/call', {'name': 'sandbox_read_file', 'arguments': {
        'sandbox': stage.id, 'path': f'nothing/{NAME}'}})
    silent(json.dumps(failed).encode(), 1)
    for uri, least in ((f'sandbox://{stage.id}/workspace/f', 5),
                       (f'sandbox://{stage.id}/workspace/blob', 5),
                       (f'sandbox://{stage.id}/workspace/d', 0)):
        silent(json.dumps(mcp.request('resources/read', {'uri': uri})).encode(), least)
    for method in ('tools/list', 'resources/list', 'resources/templates/list'):
        silent(json.dumps(mcp.request(method)).encode())
    done = mcp.request('completion/complete', {
        'ref': {'type': 'ref/resource', 'uri': 'sandbox://{sandbox}/{+path}'},
        'argument': {'name': 'path', 'value': 'canary'},
        'context': {'arguments': {'sandbox': stage.id}}})
    silent(json.dumps(done).encode())
    assert mcp.close() == 0


def test_what_verbs_print(hub, stage):
    def check(name):
        done = hub.run(*name.split(), *VERBS[name].right(stage))
        silent(done.stdout + done.stderr, VERBS[name].shows)
    walk([name for name, row in VERBS.items() if row.shows is not None], check)


def test_requests_for_approval(hub, stage):
    """What a person is asked about, and what the caller is told."""
    command = f'true # {ASKED} {CANARIES["of-store"]} {NAME}'
    with hub.wire() as wire:
        wire.send(hub.request('POST', '/v1/exec', body=json.dumps(
            {'sandbox': stage.id, 'command': command})))
        asked = pending(hub)[0]['id']
        for said in (hub.raw('GET', '/v1/approvals').body,
                     hub.raw('GET', f'/v1/approvals/{asked}').body,
                     hub.ok('inbox', 'show', asked), hub.ok('inbox')):
            silent(said)
        assert b'[REDACTED:named:output]' in hub.ok('inbox', 'show', asked)
        hub.ok('inbox', 'deny', asked)
        silent(wire.reply('POST').body)


def test_what_is_left_of_a_program_that_dies(hub, stage):
    """No core has them, and another sandbox sees nothing of it."""
    other = hub.create()
    done = hub.run('exec', *GRANTS, stage.id, '--', 'sh', '-c',
                   'ulimit -c unlimited; echo "$V0" >&2; kill -ABRT $$')
    assert done.returncode == 134, done
    silent(done.stdout + done.stderr, 1)
    found = hub.exec(stage.id, 'find / -xdev -type f -name "core*" -newer haunt.py 2>/dev/null; '
                               'cat /proc/sys/kernel/core_pattern >/dev/null; ulimit -Hc')
    assert found['stdout'] == '0\n', found
    said = hub.exec(other, 'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr "\\0" "\\n"; env')
    assert find(said['stdout'].encode()) == set() and 'REDACTED' not in said['stdout']
    hub.delete(other)


def test_what_is_kept(hub, stage):
    """After all of that: the log, the audit log, the registry and all else of the hub's files but
    the snapshot, whose files are as the program wrote them."""
    kept = [path for top in (*hub.who.trees, hub.home) for path in files_below(top)
            if path not in hub.inputs and '/snapshots/' not in path]
    assert {'registry.db', 'secret.key'} <= {os.path.basename(path) for path in kept}
    assert [(path, find(read(path))) for path in kept if find(read(path))] == []
    silent(hub.said().encode())
