"""Secrets by reference: each provider, both ways in, who may have them, and that their values are
nowhere else: a canary of each is looked for in all that Holt says, writes and shows."""

import base64
import hashlib
import json
import os
import pty
import re
import secrets as random
import subprocess
import urllib.parse

import pytest

import host
from client import until
from rest import fails
from test_hub_cli import FAILED, Hub

PROVIDERS = ('of-store', 'of-env', 'of-file', 'of-command')
# Bytes that differ in every form.
CANARIES = {name: f'{random.token_hex(9)}+/="&\u00fc {name}~' for name in PROVIDERS}


def forms(value):
    """How it could be written; of base64 what does not depend on what stands around it."""
    raw = value.encode()
    yield raw
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    yield urllib.parse.quote(raw, safe='').encode()
    yield urllib.parse.quote_plus(raw).encode()
    yield json.dumps(value)[1:-1].encode()
    yield json.dumps(value, ensure_ascii=False)[1:-1].encode()
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(bytes(shift) + raw)[4 if shift else 0:-4]


# Used, but printed by no program: output is kept as it came, and redacted when it leaves.
QUIET = {name: f'{random.token_hex(9)} quiet {name}' for name in ('file', 'command', 'store')}
FORMS = {form: name for name, value in CANARIES.items() for form in forms(value)}


def find(data):
    """Which canaries are there, in any form."""
    return {name for form, name in FORMS.items() if form in data}


def digest(name):
    return hashlib.sha256(CANARIES[name].encode()).hexdigest()


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    home = tmp_path_factory.mktemp('secrets')
    value = home / 'of-file'
    value.write_text(CANARIES['of-file'] + '\n')
    value.chmod(0o600)
    quiet = home / 'quiet'
    quiet.write_text(QUIET['file'])
    quiet.chmod(0o600)
    quiet_printer = home / 'quiet-print'
    quiet_printer.write_text(f"#!/bin/sh\necho '{QUIET['command']}'\n")
    quiet_printer.chmod(0o700)
    printer = home / 'print'
    printer.write_text(f"#!/bin/sh\ncat <<'end'\n{CANARIES['of-command']}\nend\n"
                       f"echo '{CANARIES['of-command']}' >&2\n")
    printer.chmod(0o700)
    (home / 'config.json').write_text(json.dumps({'principals': {
        'token': {'secrets': ['of-token', 'shared-*']},
        'to*': {'secrets': ['of-token', 'shared-all', 'other']},
    }, 'secrets': {
        'of-env': {'env': 'CANARY_OF_ENV'},
        'of-file': {'file': str(value)},
        'of-command': {'command': [str(printer)]},
        'quiet-file': {'file': str(quiet)},
        'quiet-command': {'command': [str(quiet_printer)]},
        'no-file': {'file': '/nonexistent'},
        'no-variable': {'env': 'CANARY_OF_NOBODY'},
        'no-command': {'command': ['false']},
        'bound': {'file': '/nonexistent', 'hosts': ['api.example.org']},
    }}))
    (home / 'config.json').chmod(0o600)
    for path in (home, value, printer, quiet, quiet_printer, home / 'config.json'):
        os.chown(path, me.uid, me.uid)
    with Hub(me, home, '--listen', '127.0.0.1:0', '--pool', '0',
             env={'CANARY_OF_ENV': CANARIES['of-env'], 'HOLT_LOG': 'debug'}) as shared:
        shared.inputs = (value, printer)
        shared.ok('secret', 'set', 'of-store', input=CANARIES['of-store'].encode() + b'\n')
        yield shared
    before.check()


@pytest.fixture(scope='module')
def box(hub):
    name = hub.create()
    yield name
    hub.delete(name)


# ---- that the program has it, and nobody else sees it

HAS = 'printf %s "$V" | sha256sum; printf %s "$(cat $F)" | sha256sum; echo "$V"; cat $F; echo; env'


@pytest.mark.parametrize('name', PROVIDERS)
def test_the_program_has_it(hub, box, name):
    done = hub.run('exec', '--secret', f'{name}=V', '--secret-file', f'{name}=F', box, '--', 'sh',
                   '-c', HAS)
    lines = list(filter(None, done.stdout.decode().splitlines()))
    assert done.returncode == 0 and lines[:2] == [digest(name) + '  -'] * 2, done
    assert lines[2:4] == [f'[REDACTED:{name}:output]'] * 2, lines
    assert f'V=[REDACTED:{name}:output]' in lines and not find(done.stdout + done.stderr)
    done = hub.run('exec', box, '--', 'sh', '-c', 'echo $V$F; env')
    assert done.stdout.splitlines()[0] == b'' and b'REDACTED' not in done.stdout, done


def test_encodings(hub, box):
    """What a program encodes is found, too, also where it comes in pieces."""
    code = ('import base64, json, os, sys, time, urllib.parse as u\n'
            'v = os.environ["V"]; raw = v.encode()\n'
            'for text in (v, base64.b64encode(raw).decode(),'
            ' base64.urlsafe_b64encode(raw).decode(),'
            ' base64.b64encode(b"xy" + raw + b"z").decode(), raw.hex(),'
            ' u.quote(v, safe=""), json.dumps(v), json.dumps(v, ensure_ascii=False)):\n'
            '    for piece in (text[:9], text[9:], "\\n"):\n'
            '        sys.stdout.write(piece); sys.stdout.flush(); time.sleep(.002)\n')
    for name in PROVIDERS:
        done = hub.run('exec', '--secret', f'{name}=V', box, '--', 'python3', '-c', code)
        assert done.returncode == 0 and not find(done.stdout + done.stderr), done
        assert done.stdout.count(b'[REDACTED:' + name.encode() + b':output]') == 8, done


def test_names_of_variables(hub, box):
    done = hub.ok('exec', '--secret', 'of-store', '--secret-file', 'of-env', box, '--', 'sh', '-c',
                  'echo $OF_STORE; cat $OF_ENV_FILE; stat -Lc %a $OF_ENV_FILE')
    assert done.split() == [b'[REDACTED:of-store:output]', b'[REDACTED:of-env:output]400']
    hub.fails(FAILED, 'two are to be in A', 'exec', '--secret', 'of-store=A', '--secret',
              'of-env=A', box, 'true')
    hub.fails(FAILED, 'no variable', 'exec', '--secret', 'of-store=', box, 'true')


def test_run_has_it(hub):
    """Without a hub, while one runs: the store is read beside it."""
    done = hub.run('run', '--secret', 'of-store=V', '--secret-file', 'of-store=F', '--', 'sh', '-c',
                   HAS)
    assert done.stdout.decode().splitlines()[:2] == [digest('of-store') + '  -'] * 2, done
    assert not find(done.stdout + done.stderr)
    done = hub.run('run', '--json', '--secret', 'of-command=V', '--', 'sh', '-c', 'echo "$V"')
    assert json.loads(done.stdout)['stdout'] == '[REDACTED:of-command:output]\n'
    hub.fails(FAILED, 'there is no secret', 'run', '--secret', 'nothing', '--', 'true')


def test_a_line_typed_is_not_shown(hub):
    main, side = pty.openpty()
    with subprocess.Popen(hub.who.argv('secret', 'set', 'typed'), env=hub.env, stdin=side,
                          stdout=side, stderr=side, start_new_session=True) as proc:
        os.close(side)
        seen = os.read(main, 100)
        os.write(main, b'typed in silence\n')
        while True:
            try:
                seen += os.read(main, 100)
            except OSError:
                break
        assert proc.wait(60) == 0
    os.close(main)
    assert seen.startswith(b'Value: ') and b'silence' not in seen
    assert hub.ok('run', '--secret', 'typed', '--', 'sh', '-c', 'echo ${#TYPED}') == b'16\n'
    hub.ok('secret', 'rm', 'typed')


# ---- nowhere else

def everything_said(hub, box):
    """What the hub answers about itself and its sandboxes."""
    for path in ('/v1/secrets', '/v1/sandboxes', '/v1/events', '/v1/snapshots', '/v1/usage',
                 f'/v1/sandboxes/{box}/execs', f'/v1/sandboxes/{box}/processes',
                 '/v1/openapi.json', '/metrics', '/version'):
        yield hub.ask('GET', path).body
    for words in (['secret'], ['secret', 'ls', '-o', 'json'], ['execs', box], ['ps', box],
                  ['events', box], ['inspect', box], ['hub', 'status'], ['auth', 'token']):
        done = hub.run(*words)
        yield done.stdout + done.stderr


def files_below(top):
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def processes():
    return [int(name) for name in os.listdir('/proc') if name.isdigit()]


def read(path):
    try:
        with open(path, 'rb') as f:
            return f.read()
    except OSError:
        return b''


def test_canary(hub, box):
    """All of this while a program has all of them in both ways."""
    grants = {f'V{i}': {'ref': name} for i, name in enumerate(PROVIDERS)}
    grants |= {f'F{i}': {'ref': name, 'file': True} for i, name in enumerate(PROVIDERS)}
    words = [word for i, name in enumerate(PROVIDERS)
             for word in ('--secret', f'{name}=V{i}', '--secret-file', f'{name}=F{i}')]
    started = hub.ok('exec', '-d', *words, box, '--', 'sh', '-c',
                     'echo "$V0 $V1 $V2 $V3"; cat $F0 $F1 $F2 $F3; echo ready; exec sleep 1000')
    started = started.decode().strip()
    until(lambda: b'ready' in hub.ok('logs', box, started), 60)
    said = [*everything_said(hub, box), hub.ok('logs', box, started)]
    # of failures
    for words in (['--secret', 'no-file'], ['--secret', 'no-variable'], ['--secret', 'no-command'],
                  ['--secret', 'nothing'], ['--secret', 'of-store', '-e', 'OF_STORE=1'],
                  ['--secret', 'of-store', '-w', '/none'], ['--secret', '../of-store']):
        done = hub.run('exec', *words, box, '--', 'true')
        assert done.returncode in (FAILED, 126), done
        said.append(done.stdout + done.stderr)
    # of what clients choose: paths and ids, which are logged
    token = 'ghp_' + random.token_hex(18)
    for value in (CANARIES['of-store'], token):
        said.append(hub.ask('GET', f'/v1/sandboxes/{urllib.parse.quote(value, safe="")}').body)
    until(lambda: all(f'request=/v1/sandboxes/[REDACTED:{kind}:output]' in hub.said()
                      for kind in ('of-store', 'github-token')), 60)
    assert token not in hub.said()
    # of copies of its files
    forked = hub.post(f'/v1/sandboxes/{box}/fork')['id']
    said.append(hub.ask('GET', f'/v1/sandboxes/{forked}/archive?path=/tmp').body)
    said.append(hub.ok('exec', forked, '--', 'sh', '-c', 'cat /proc/[0-9]*/environ; ls /proc'))
    snapshot = hub.post(f'/v1/sandboxes/{box}/snapshots')['id']
    said.append(hub.ok('snapshot', 'export', snapshot, '-'))
    hub.delete(forked)
    assert [find(text) for text in said if find(text)] == []
    assert b''.join(said).count(b'[REDACTED:of-store:output]') >= 2
    # of command lines, and of environments, but for those of the hub that has one in its own
    running = processes()
    assert [find(read(f'/proc/{pid}/cmdline')) for pid in running
            if find(read(f'/proc/{pid}/cmdline'))] == []
    with_all = [pid for pid in running if len(find(read(f'/proc/{pid}/environ'))) == 4]
    if os.getuid() == 0:
        assert len(with_all) == 1, 'the control: root of the host finds the program'
        other = subprocess.run(['setpriv', '--reuid=54321', '--regid=54321', '--clear-groups',
                                'cat', f'/proc/{with_all[0]}/environ',
                                f'/proc/{hub.proc.pid}/environ'], capture_output=True, check=False)
        assert other.stdout == b'' and other.stderr.count(b'Permission denied') == 2, other
    # of files, cores among them: there are none
    limits = read(f'/proc/{hub.proc.pid}/limits').decode()
    assert re.search(r'Max core file size +[01] +[01] ', limits), limits
    searched = [path for top in (*hub.who.trees, hub.home) for path in files_below(top)
                if path not in map(str, hub.inputs)]
    assert {'registry.db', 'secret.key', 'of-store'} <= {os.path.basename(p) for p in searched}
    assert [(path, find(read(path))) for path in searched if find(read(path))] == []
    assert find(hub.said().encode()) == set() and 'a secret is read' in hub.said()
    assert [os.stat(os.path.join(hub.home, path)).st_mode & 0o777
            for path in ('secret.key', 'secrets', 'secrets/of-store')] == [0o600, 0o700, 0o600]
    assert all(find(read(path)) for path in hub.inputs), 'the control: the search finds them'
    hub.run('kill', box, started)
    hub.call('DELETE', f'/v1/snapshots/{snapshot}')


def descendants(pid):
    """Processes below one, at any depth."""
    parents = {}
    for one in processes():
        found = re.search(rb'^PPid:\t(\d+)$', read(f'/proc/{one}/status'), re.M)
        parents[one] = int(found.group(1)) if found else None
    below, more = set(), {pid}
    while more:
        more = {one for one, parent in parents.items() if parent in more} - below
        below |= more
    return below


def test_helpers_have_no_secrets(hub):
    """No process that the hub has started, of whichever kind, has a value of its environment."""
    name = hub.ok('up', '--allow', 'example.org').decode().strip()
    hub.ok('exec', name, 'touch', '/workspace/x')
    hub.ok('down', hub.ok('fork', name).decode().strip())  # which is what the broom is for
    with hub.wire() as wire:  # for an archive that is to come, there is holt-pack
        wire.send(hub.request('POST', '/v1/snapshots?name=half', fields=[
            'Content-Type: application/zstd', 'Content-Length: 1000']))

        def look():
            told = {pid: (read(f'/proc/{pid}/comm').decode().strip(), read(f'/proc/{pid}/environ'))
                    for pid in descendants(hub.proc.pid)}
            return told if 'holt-pack' in {comm for comm, _ in told.values()} else None
        told = until(look, what='all helpers')
    names = {comm for comm, environ in told.values() if environ}
    if not names:
        pytest.skip('this user may not read the environment of its programs')
    assert {'holt-warden', 'holt-egress', 'holt-pack'} <= names, told
    assert [comm for comm, environ in told.values() if find(environ)] == []
    assert all(b'HOLT_LOG=debug' in environ for comm, environ in told.values()
               if comm in ('holt-warden', 'holt-egress', 'holt-pack')), told
    hub.ok('down', name)


def dumped_memory(pid):
    """What a core of it would have, as the kernel marks its memory."""
    with open(f'/proc/{pid}/smaps', encoding='utf-8') as f:
        areas = re.findall(r'^(\w+)-(\w+) r(?:.*\n)+?VmFlags:(.*)', f.read(), re.M)
    with open(f'/proc/{pid}/mem', 'rb', buffering=0) as f:
        for begin, end, flags in areas:
            if not {'dd', 'io'} & set(flags.split()):
                f.seek(int(begin, 16))
                try:
                    yield f.read(int(end, 16) - int(begin, 16))
                except OSError:  # [vvar]
                    pass


def test_memory_of_the_hub(hub, box):
    """Where they have been used, they are left nowhere but in memory that no core has."""
    hub.ok('secret', 'set', 'quiet-store', input=QUIET['store'].encode())
    for name in QUIET:
        hub.ok('exec', '--secret', f'quiet-{name}=V', '--secret-file', f'quiet-{name}=F', box,
               'true')
    hub.ok('secret', 'rm', 'quiet-store')
    try:
        found = b''.join(dumped_memory(hub.proc.pid))
    except PermissionError:
        pytest.skip('this user may not read the memory of its programs')
    assert CANARIES['of-env'].encode() in found, 'the control: the environment of the hub'
    assert [text for text in QUIET.values() if text.encode() in found] == []


def test_who_shares_its_user_id(hub, box):
    """What docs/secrets.md says: other programs of the sandbox can read it while it runs, and after
    its end there is nothing to be read."""
    started = hub.ok('exec', '-d', '--secret', 'of-store=V', '--secret-file', 'of-file=F', box,
                     '--', 'sh', '-c', 'echo $F; sleep 1000').decode().strip()
    until(lambda: hub.ok('logs', box, started), 60)
    name = hub.ok('logs', box, started).decode().strip()
    look = f'cat {name}; tr "\\0" "\\n" </proc/{name.split("/")[2]}/environ | grep ^V='
    assert (hub.ok('exec', box, '--', 'sh', '-c', look)
            == b'[REDACTED:of-file:output]\nV=[REDACTED:of-store:output]\n')
    hub.ok('kill', box, started)
    until(lambda: hub.run('exec', box, 'cat', name).returncode == 1, 60)


# ---- the store, and who may

def test_store(hub):
    hub.ok('secret', 'set', 'kept', input=b'at least eight')
    listed = {s['name']: s for s in hub.json('secret')}
    assert listed['kept']['provider'] == 'store' and listed['kept']['changed_at']
    assert listed['of-command'] == {'name': 'of-command', 'provider': 'command'}
    assert set(listed) >= {*PROVIDERS, 'kept'}
    for wrong, why in ((b'short', 'fewer than 8'), (b'', 'not 0'), (b'nul \0 in the middle', ''),
                       (b'x' * (32 * 1024 + 1), 'at most'), (b'\xff' * 9, 'UTF-8')):
        assert wrong[:9] not in hub.fails(FAILED, why, 'secret', 'set', 'wrong',
                                          input=wrong).stderr or not wrong
    for name in ('', '-x', '../kept', 'a/b', 'x' * 65):
        assert hub.run('secret', 'set', '--', name, input=b'at least eight').returncode, name
    hub.fails(FAILED, 'comes from a env', 'secret', 'set', 'of-env', input=b'at least eight')
    fails(404, 'not_found', hub.call, 'DELETE', '/v1/secrets/nothing')
    for method in ('GET', 'PUT', 'POST'):
        assert hub.ask(method, '/v1/secrets/kept').status in (404, 405)
    hub.ok('secret', 'rm', 'kept')
    hub.fails(FAILED, 'there is no secret', 'secret', 'rm', 'kept')
    hub.fails(FAILED, 'there is no secret', 'run', '--secret', 'kept', '--', 'true')


def test_killed_while_one_is_stored(me, tmp_path):
    """Whenever that is: the value is the old one or the new one, and nothing half made stays."""
    os.chown(tmp_path, me.uid, me.uid)
    env = {**me.env, 'HOLT_HOME': str(tmp_path)}
    folder = tmp_path / 'secrets'
    said = []
    for i in range(6):
        with Hub(me, tmp_path, '--listen', 'none', '--pool', '0') as hub:
            hub.ok('secret', 'set', 'kept', input=f'value number {i}'.encode())
            said += [f'value number {i}', f'another number {i}']
            verb = subprocess.Popen(me.argv('secret', 'set', 'kept'), env=env,
                                    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
            verb.stdin.write(said[-1].encode())
            verb.stdin.close()
            until(lambda last=i: i < 3 or any(n.startswith('.secret') for n in os.listdir(folder))
                  or verb.poll() is not None, 30)
            (verb if i < 3 else hub.proc).kill()
            hub.proc.poll()
            verb.wait()
            hub.works, hub.end = lambda: None, lambda: 0
            hub.kill()
        done = me.run('run', '--secret', 'kept', '--', 'sh', '-c', 'printf %s "$KEPT" | sha256sum',
                      env=env)
        assert done.stdout.split()[0].decode() in [
            hashlib.sha256(v.encode()).hexdigest() for v in said[-2:]], done
    for where, name in ((folder, '.secret-old'), (tmp_path, '.secret-key')):
        (where / name).write_text('left by one that was killed')
        os.utime(where / name, (1, 1))
    (folder / '.secret-new').write_text('of one that is at work')
    with Hub(me, tmp_path, '--listen', 'none', '--pool', '0') as hub:
        hub.ok('secret', 'set', 'kept', input=b'the last of them')
    assert {'kept', '.secret-new'} <= set(os.listdir(folder))
    assert not {n for n in (*os.listdir(folder), *os.listdir(tmp_path))} & {
        '.secret-old', '.secret-key'}


def test_another_configuration(hub, box):
    """What the file says from here on holds for the next call."""
    path = os.path.join(hub.home, 'config.json')
    was = json.loads(read(path))
    says = {**was, 'secrets': {**was['secrets'], 'new': {'command': ['echo', 'a new secret']}}}

    def write(text):
        with open(path + '.new', 'w', encoding='utf-8') as f:
            f.write(text)
        os.chown(path + '.new', hub.who.uid, hub.who.uid)
        os.rename(path + '.new', path)
    assert 'new' not in {s['name'] for s in hub.json('secret')}
    write(json.dumps(says))
    until(lambda: 'new' in {s['name'] for s in hub.json('secret')}, 60)
    assert hub.ok('exec', '--secret', 'new', box, 'env').count(b'NEW=[REDACTED:new:output]') == 1
    write(json.dumps(was))
    until(lambda: 'new' not in {s['name'] for s in hub.json('secret')}, 60)


def test_who_may_use_it(hub, box):
    """A client over TCP is not the operator; over the hub's own socket it is."""
    grant = {'V': {'ref': 'of-store'}}
    problem = fails(403, 'forbidden', hub.exec, box, 'echo $V', secrets=grant)
    assert 'of-store' in problem['cause']
    assert hub.ok('exec', '--secret', 'of-store=V', box, '--', 'sh', '-c', 'echo $V')
    for name in ('of-token', 'shared-all', 'shared-one', 'other'):
        hub.ok('secret', 'set', name, input=b'a value of ' + name.encode())
    for name in ('of-token', 'shared-all'):
        assert hub.exec(box, 'echo $V', secrets={'V': {'ref': name}})['stdout'] == (
            f'[REDACTED:{name}:output]\n')
    for name in ('shared-one', 'other'):
        fails(403, 'forbidden', hub.exec, box, 'true', secrets={'V': {'ref': name}})
        hub.ok('exec', '--secret', name, box, 'true')
    hub.fails(FAILED, 'enters no sandbox', 'exec', '--secret', 'bound', box, 'true')
    for wrong in ({'V': 'literal'}, {'V': {}}, {'V': {'ref': 'a', 'value': 'b'}},
                  {'': {'ref': 'a'}}, {'A=B': {'ref': 'a'}}, {'V': {'ref': '../a'}}, ['of-store'],
                  {f'V{i}': {'ref': 'a'} for i in range(33)}):
        fails(400, 'invalid_input', hub.exec, box, 'true', secrets=wrong)
    fails(400, 'invalid_input', hub.exec, box, 'true', secrets=grant, env={'V': '1'})
