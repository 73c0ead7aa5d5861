"""Sandboxes from their first breath to their last, with both faces and over both sockets."""

import pytest

import holt
from face import every, scenario
from holt import Limits, NetworkPolicy


@every
@scenario
async def test_create_with_all(face):
    async with await face.Sandbox.create(
            image='host', network=NetworkPolicy.deny_by_default(), ttl_seconds=600,
            idle_seconds=300, env={'GREETING': 'grüße'}, cwd='/tmp', user='user',
            limits=Limits(memory_mb=256, disk_mb=64, pids=64), labels={'of': 'sdk'},
            retention='destroy', client=face.client) as sandbox:
        info = await sandbox.info(usage=True)
        assert (info.id, info.state, info.image) == (sandbox.id, 'running', 'host')
        assert info.ttl_seconds == 600 and info.idle_seconds == 300 and info.deadline_unix > 0
        assert info.limits['memory_mb'] == 256 and info.labels == {'of': 'sdk'} and info.usage
        assert info.network['mode'] == 'none'
        said = await sandbox.commands.run('pwd; echo $GREETING')
        assert said.stdout == '/tmp\ngrüße\n'
        listed = await face.Sandbox.list(labels=['of=sdk'], client=face.client)
        assert [one.id for one in listed] == [sandbox.id]
        assert await face.Sandbox.list(labels=['of=other'], client=face.client) == []
        again = await face.Sandbox.connect(sandbox.id, client=face.client)
        async with again:
            assert (await again.commands.run(['true'])).ok
        assert (await sandbox.info()).state == 'running'  # who only connects ends nothing
    assert (await again.info()).state == 'terminated'
    assert await sandbox.kill() is False


@scenario
async def test_pause_stop_and_time(face, box):
    assert await box.pause() == 'paused'
    with pytest.raises(holt.ConflictError):
        await box.commands.run('true')
    assert await box.resume() == 'running'
    assert await box.set_timeout(1000) > 0
    await box.files.write('kept', 'kept')
    assert (await box.stop()).state == 'stopped'
    assert await box.resume() == 'running'
    assert await box.files.read('kept') == 'kept'
    assert (await box.stop(cold=True)).state == 'cold'
    assert await box.resume() == 'running'


@scenario
async def test_fork_snapshot_restore(face, box):
    await box.files.write('a', 'before')
    copies = await box.fork(2, labels={'copy': ''})
    await box.files.write('a', 'after')
    assert [await one.files.read('a') for one in copies] == ['before', 'before']
    assert [(await one.info()).source for one in copies] == [box.id, box.id]
    named, = await box.fork(ids=[f'named-{face.kind}'])
    assert named.id == f'named-{face.kind}'
    kept = await box.snapshot('for later', ttl_seconds=600)
    assert kept.name == 'for later' and kept.source == box.id and kept.expires_at
    assert kept.id in [one.id for one in await face.client.snapshots()]
    assert (await face.client.snapshot(kept.id)).digest == kept.digest
    restored = await face.Sandbox.restore(kept.id, 2, client=face.client)
    assert [await one.files.read('a') for one in restored] == ['after', 'after']
    changes = {change.path: change.change for change in await box.diff()}
    assert changes['/workspace/a'] == 'added' and len(await box.diff(limit=1)) == 1
    for one in [*copies, named, *restored]:
        async with one:
            pass
        assert (await one.info()).state == 'terminated'
    assert await face.client.delete_snapshot(kept.id) is True
    assert await face.client.delete_snapshot(kept.id) is False
    with pytest.raises(holt.NotFoundError):
        await face.client.snapshot(kept.id)


@scenario
async def test_the_client(face):
    assert (await face.client.health())['status'] == 'ok'
    assert await face.client.templates() == ['host']


@scenario
async def test_run(face):
    """The contract of docs/contract.md, with the seed's request."""
    answer = await face.client.run({
        'language': 'python', 'files': [{'path': '/work/main.py', 'content': "print('hello')"}],
        'command': ['python3', '/work/main.py'], 'timeout_seconds': 20,
        'network': {'mode': 'none'}, 'state': {'retention': 'destroy'}})
    assert (answer.exit_code, answer.stdout, answer.ok) == (0, 'hello\n', True)
    assert answer.check() is answer and answer.audit_id.startswith('run_')
    record = await face.client.audit_record(answer.audit_id)
    assert record['record']['action'] == 'contract.run'
    kept = await face.client.run({'command': ['touch', 'f'], 'state': {'retention': 'snapshot'}})
    assert await face.client.delete_snapshot(kept.snapshot_id)
    said = await face.client.run({
        'command': ['sh', '-c', 'test -n "$KEY" && exit 3'], 'state': {'retention': 'destroy'},
        'secrets': {'KEY': holt.SecretRef('of-store')}})
    assert said.failure == 'guest_failed'
    with pytest.raises(holt.CommandError) as caught:
        said.check()
    assert caught.value.result is said and caught.value.audit_id == said.audit_id
    late = await face.client.run({'command': ['sleep', '60'], 'timeout_seconds': 1,
                                  'state': {'retention': 'destroy'}})
    with pytest.raises(holt.TimedOutError):
        late.check()
    with pytest.raises(holt.ValidationError) as caught:
        await face.client.run({'command': ['true'], 'state': {}})
    assert caught.value.pointer == '/state/retention'


def test_found_as_the_program_finds_it(hub, monkeypatch):
    """The Unix socket and the token file of this user's hub, without a word."""
    for name in ('HOLT_BASE_URL', 'MITOS_BASE_URL', 'HOLT_API_KEY', 'MITOS_API_KEY', 'HOLT_SOCKET'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('HOLT_HOME', hub.home)
    with holt.Sandbox.create(ttl_seconds=60) as sandbox:
        assert sandbox.commands.run('echo $0').exit_code == 0
        assert sandbox.id in [one.id for one in holt.Sandbox.list()]
    monkeypatch.setenv('MITOS_BASE_URL', f'http://127.0.0.1:{hub.address[1]}')
    with pytest.raises(holt.PolicyDeniedError) as caught:  # the token file is not for HTTP
        holt.Sandbox.list()
    assert caught.value.code == 'unauthorized'
    monkeypatch.setenv('MITOS_API_KEY', hub.token)
    assert holt.Sandbox.list() == []
    monkeypatch.setenv('HOLT_BASE_URL', 'http://127.0.0.1:1')
    with pytest.raises(holt.TransportError):
        holt.Client(retries=0).health()
    monkeypatch.setenv('HOLT_API_KEY', 'wrong')
    with pytest.raises(holt.PolicyDeniedError):
        holt.Client(f'unix:{hub.paths[0]}').templates()


def test_credentials_of_mitos(hub, monkeypatch, tmp_path):
    for name in ('HOLT_API_KEY', 'MITOS_API_KEY'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('MITOS_CONFIG_DIR', str(tmp_path))
    url = f'http://127.0.0.1:{hub.address[1]}'
    (tmp_path / 'credentials.json').write_text('not JSON')
    (tmp_path / 'credentials.json').chmod(0o600)
    with pytest.raises(holt.PolicyDeniedError):
        holt.Client(url).templates()
    (tmp_path / 'credentials.json').write_text('{"token": "%s"}' % hub.token)
    (tmp_path / 'credentials.json').chmod(0o600)
    assert holt.Client(url).templates() == ['host']


def test_a_token_file_that_others_can_read(monkeypatch, tmp_path):
    monkeypatch.delenv('HOLT_API_KEY', raising=False)
    monkeypatch.setenv('HOLT_HOME', str(tmp_path))
    (tmp_path / 'token').write_text('holt_0123456789abcdef\n')
    (tmp_path / 'token').chmod(0o644)
    with pytest.raises(holt.PolicyDeniedError) as caught:
        holt.Client(f'unix:{tmp_path}/holt.sock')
    assert 'holt_0123' not in str(caught.value.to_dict())
    (tmp_path / 'token').chmod(0o600)
    holt.Client(f'unix:{tmp_path}/holt.sock')
