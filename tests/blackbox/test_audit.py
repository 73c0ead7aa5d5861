"""The audit log (docs/audit.md): every answer names a record (test_keys.py asks each route), which
verifies; what was killed is told, and what was changed is found. How each kind of change is told
is tests/unit/guard_audit.c."""

import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest

import host
from client import until
from approval import asks
from described import Described
from stage import Stage, clear


class Log:
    """The audit log of one data folder, by `holt audit`."""

    def __init__(self, me, home):
        self.me, self.env = me, {'HOLT_HOME': str(home)}
        self.folder = os.path.join(str(home), 'audit')

    def run(self, *words, **options):
        return self.me.run('audit', *words, env=self.env, text=True, **options)

    def records(self):
        done = self.run('tail', '-n', '1000000', '-o', 'json')
        assert done.returncode == 0, done
        return [json.loads(line) for line in done.stdout.splitlines()]

    def calls(self):
        return {r['id']: r for r in self.records() if 'event' not in r}

    def verdict(self, *words, **options):
        done = self.run('verify', '-o', 'json', *words, **options)
        return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    with Described(me, asks(me, tmp_path_factory.mktemp('audited')), '--listen', '127.0.0.1:0',
                   '--preview', '127.0.0.1:0', '--pool', '0') as shared:
        shared.audit = Log(me, shared.home)
        yield shared
    before.check()
    assert shared.audit.verdict()[0] == 0  # sealed


def test_a_log_that_is_open_is_not_sealed(hub):
    assert hub.raw('GET', '/v1/templates').get('Audit-Id') in hub.audit.calls()
    assert hub.audit.verdict() == (2, {
        **hub.audit.verdict()[1], 'verdict': 'unsealed', 'cause': '1 sessions are still running'})


def test_what_is_wrong_and_denied(hub):
    """A request that can't be read has a record, too; what nobody is known to ask has none."""
    reply = hub.raw('POST', '/v1/exec', {'sandbox': 'x', 'command': 'true', 'no such': 1})
    record = hub.audit.calls()[reply.get('Audit-Id')]
    assert record['outcome'] == 'invalid_arguments' and 'args' not in record
    reply = hub.raw('GET', '/v1/sandboxes', token=None)
    assert reply.status == 401 and not reply.get('Audit-Id')


def test_over_rest(hub):
    """The last ones, those that follow, by what they are; and one with a receipt that verifies."""
    ids = [hub.raw('GET', '/v1/templates').get('Audit-Id') for _ in range(5)]
    page = hub.call('GET', '/v1/audit?limit=3&action=template.list&who=token&outcome=ok')
    assert [r['id'] for r in page['records']] == ids[-3:]
    after = page['records'][0]['seq']
    page = hub.call('GET', f'/v1/audit?after={after}&limit=1&action=template.list')
    assert [r['id'] for r in page['records']] == ids[-2:-1]
    assert page['next'] == page['records'][0]['seq'] > after
    failed = hub.raw('GET', '/v1/sandboxes/none').get('Audit-Id')
    changed = hub.call('GET', '/v1/audit?limit=1000&reads=false')['records']
    assert not {r['id'] for r in changed} & set(ids)
    assert changed[-1]['id'] == failed
    told = hub.audit.run('tail', '--no-reads', '-n', '1', '-o', 'json')
    assert json.loads(told.stdout)['id'] == failed
    one = hub.call('GET', f'/v1/audit/{ids[0]}')
    assert one['record']['id'] == ids[0] and 'sig' not in one['record']
    assert {**one['receipt'], 'key': 0, 'sig': 0} == {**one['record'], 'key': 0, 'sig': 0}
    assert hub.audit.verdict('-', input=json.dumps(one['receipt']))[0] == 0
    reply = hub.raw('GET', '/v1/audit/run_none')
    assert reply.status == 404 and b'audit log' in reply.body


def test_readers_that_do_not_read(hub):
    """They hold nobody up, and what they are sent is bounded."""
    for _ in range(40):
        hub.raw('GET', '/v1/templates')
    held = [hub.wire() for _ in range(24)]
    for wire in held:
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.send(hub.request('GET', '/v1/audit?limit=1000') * 8)
    ids = {hub.raw('GET', '/v1/templates').get('Audit-Id') for _ in range(20)}
    assert ids <= {r['id'] for r in hub.call('GET', '/v1/audit?limit=1000')['records']}
    with open(f'/proc/{hub.proc.pid}/status', encoding='ascii') as f:
        rss = int(re.search(r'VmRSS:\s+(\d+)', f.read())[1])
    assert rss < 256 << 10, rss
    for wire in held:
        wire.__exit__(None, None, None)
    assert hub.raw('GET', '/v1/health').status == 200


def test_nothing_secret_is_in_it(hub):
    stage = Stage(hub)
    reply = hub.raw('POST', '/v1/exec', {'sandbox': stage.id, 'command': 'echo hunter2-$CANARY',
                                         'env': {'CANARY': 'hunter3'}})
    assert b'hunter2-hunter3' in reply.body
    for name in os.listdir(hub.audit.folder):
        with open(os.path.join(hub.audit.folder, name), 'rb') as f:
            assert b'hunter' not in f.read(), name
    record = hub.audit.calls()[reply.get('Audit-Id')]
    assert record['target'] == stage.id and record['output'] and record['bytes'] > 0
    again = hub.raw('POST', '/v1/exec', {'sandbox': stage.id, 'command': 'echo hunter2-$CANARY',
                                         'env': {'CANARY': 'hunter3'}})
    assert hub.audit.calls()[again.get('Audit-Id')]['args'] == record['args']
    clear(hub)


def test_tools_name_their_record(me, tmp_path):
    """In _meta, and with a receipt where something was done; OpenSSL finds its signature right."""
    env = {'HOLT_HOME': str(tmp_path / 'home')}
    os.mkdir(env['HOLT_HOME'])
    os.chmod(tmp_path, 0o755)
    os.chown(env['HOLT_HOME'], me.uid, me.uid)
    log = Log(me, env['HOLT_HOME'])
    mcp = me.mcp('--pool', '0', env=env)
    mcp.initialize()
    box = mcp.call('sandbox_create', pool='host')['sandbox']
    metas = []
    for name, more in (('sandbox_exec', {'command': 'true'}), ('sandbox_get', {}),
                       ('sandbox_read_file', {'path': 'missing'}), ('sandbox_terminate', {})):
        result = mcp.request('tools/call', {'name': name, 'arguments': {'sandbox': box, **more}})
        metas.append(result['result']['_meta'])
    calls = log.calls()
    assert [calls[m['holt/audit_id']]['outcome'] for m in metas] == [
        'ok', 'ok', 'path_not_found', 'ok']
    assert ['holt/receipt' in m for m in metas] == [True, False, False, True]
    assert mcp.close() == 0
    receipt = metas[0]['holt/receipt']
    text = json.dumps(receipt, indent=2)
    assert len(json.dumps(receipt, separators=(',', ':'))) <= 1024
    assert log.verdict('-', input=text)[0] == 0
    assert log.verdict('-', input=text.replace('"outcome": "ok"', '"outcome": "io_error"'))[0] == 1
    # with the public key alone, elsewhere
    key = tmp_path / 'kept.pub'
    shutil.copy(os.path.join(log.folder, 'key.pub'), key)
    os.chmod(key, 0o644)
    done = me.run('audit', 'verify', '--key', str(key), '-', input=text, text=True,
                  env={'HOLT_HOME': str(tmp_path / 'none')})
    assert done.returncode == 0, done
    signature = receipt.pop('sig')
    (tmp_path / 'line').write_text(json.dumps(receipt, separators=(',', ':')))
    (tmp_path / 'sig').write_bytes(base64.urlsafe_b64decode(signature + '=='))
    if shutil.which('openssl'):
        subprocess.run(['openssl', 'pkeyutl', '-verify', '-pubin', '-inkey', key, '-rawin', '-in',
                        tmp_path / 'line', '-sigfile', tmp_path / 'sig'], check=True,
                       stdout=subprocess.DEVNULL)
    assert log.verdict()[0] == 0
    assert log.run('show', receipt['id']).returncode == 0
    assert log.run('show', 'run_none').returncode == 3
    # another log, signed with another key
    with open(os.path.join(log.folder, '000001.jsonl'), 'r+', encoding='ascii') as f:
        text = f.read()
        f.seek(0)
        f.write(text.replace('"who":"local"', '"who":"other"', 1))
    assert log.verdict()[0] == 1


def test_programs_without_a_hub(me, tmp_path):
    env = {'HOLT_HOME': str(tmp_path / 'home')}
    os.mkdir(env['HOLT_HOME'])
    os.chmod(tmp_path, 0o755)
    os.chown(env['HOLT_HOME'], me.uid, me.uid)
    log = Log(me, env['HOLT_HOME'])
    assert log.verdict() == (3, {**log.verdict()[1], 'verdict': 'not found'})
    assert me.run('run', '--', 'true', env=env).returncode == 0
    me.run('doctor', env=env)
    assert [(r['action'], r['who']) for r in log.records()] == [
        ('sandbox.run', 'local'), ('host.doctor', 'local')]
    assert log.verdict()[0] == 0  # each is signed
    os.chmod(os.path.join(log.folder, 'key'), 0o644)
    done = me.run('run', '--', 'true', env=env, text=True)
    assert done.returncode == 125 and 'others may read the audit key' in done.stderr


def test_programs_without_a_hub_keep_its_limits(me, tmp_path):
    """The operator's file says when another file begins, and how many are kept."""
    home = tmp_path / 'home'
    with Described(me, home, '--listen', '127.0.0.1:0', '--pool', '0') as hub:
        log = Log(me, hub.home)
        first = os.path.join(log.folder, '000001.jsonl')
        with hub.wire() as wire:
            while os.path.getsize(first) < 1 << 20:
                wire.send(hub.request('GET', '/v1/templates') * 50)
                for _ in range(50):
                    assert wire.reply('GET').status == 200

    def run(**audit):
        with open(os.path.join(hub.home, 'config.json'), 'w', encoding='utf-8') as f:
            json.dump({'audit': audit}, f)
        os.chown(f.name, me.uid, me.uid)
        done = me.run('run', '--', 'true', env=hub.env, text=True)
        assert done.returncode == 0, done
        assert log.verdict()[0] == 0
        return sorted(n for n in os.listdir(log.folder) if n.endswith('.jsonl'))

    assert run() == run(file_mb=2) == ['000001.jsonl']
    assert run(file_mb=1) == ['000001.jsonl', '000002.jsonl']


def test_killed_again_and_again(me, tmp_path):
    """What was answered has its record, whenever the hub is killed."""
    told, times = set(), 20
    os.chmod(tmp_path, 0o755)
    home = tmp_path / 'home'
    home.mkdir()
    os.chown(home, me.uid, me.uid)
    log = Log(me, home)
    for i in range(times):
        mcp = me.mcp('--pool', '0', env=log.env)
        mcp.initialize()
        for _ in range(1 + i % 3):
            result = mcp.request('tools/call', {'name': 'sandbox_list', 'arguments': {}})
            told.add(result['result']['_meta']['holt/audit_id'])
        mcp.send_raw(b'{"jsonrpc":"2.0","id":"last","method":"tools/call","params":'
                     b'{"name":"sandbox_list","arguments":{}}}\n')
        mcp.proc.send_signal(signal.SIGKILL)
        mcp.proc.wait()
    status, said = log.verdict()
    assert status == 2 and said['unsealed'] == times, said
    assert f'{times} sessions ended without a seal' in said['cause']
    assert told <= set(log.calls())


def test_tail_follows(me, hub, tmp_path):
    with open(tmp_path / 'said', 'w', encoding='utf-8') as out:
        tail = subprocess.Popen(me.argv('audit', 'tail', '-f', '-n', '0', '--action',
                                        'template.list', '-o', 'json'),
                                env={**me.env, **hub.audit.env}, stdout=out, cwd='/')
        told = set()
        try:
            def followed():
                told.add(hub.raw('GET', '/v1/templates').get('Audit-Id'))
                said = (tmp_path / 'said').read_text()
                return any(audit_id in said for audit_id in told)
            until(followed, what='a record')
        finally:
            tail.kill()
            tail.wait()
