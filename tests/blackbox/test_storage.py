"""The operator's bound over what workspaces and snapshots of coding sessions keep."""

import io
import json
import os
import shutil
import tarfile

import pytest

import test_policy
from rest import Failed
from test_coding import Project
from test_serve import Session

MB = 1 << 20
BOUND = {'storage': {'objects_mb': 8}}


class Hub(test_policy.Hub):
    def sh(self, sandbox, line):
        done = self.exec(sandbox, line)
        assert done['exit_code'] == 0, done
        return done['stdout']

    def of(self, workspace):
        return self.call('GET', f'/v1/workspaces/{workspace}')

    def commit(self, workspace):
        return self.post(f'/v1/workspaces/{workspace}/commit')

    def write(self, sandbox, name, size):
        """What no other file has."""
        self.sh(sandbox, f'head -c {size} /dev/urandom > {name}')

    def import_(self, workspace, data):
        head = self.request('POST', f'/v1/workspaces/{workspace}/import', fields=[
            'Content-Type: application/x-tar', f'Content-Length: {len(data)}'])
        with self.wire() as wire:
            return json.loads(wire.ask(head.encode() + data, 'POST').body)


@pytest.fixture(scope='module')
def project(me):
    made = Project(me)
    yield made
    shutil.rmtree(made.path)


@pytest.fixture(scope='module')
def hub(me, project, tmp_path_factory):
    home = tmp_path_factory.mktemp('storage')
    os.chown(home, me.uid, me.uid)
    with Hub(me, home, '--workspace', project.path, '--tools', 'sandbox,coding',
             **BOUND) as shared:
        yield shared


def full(call, *arguments, **more):
    with pytest.raises(Failed) as caught:
        call(*arguments, **more)
    assert caught.value.code == 'quota_exceeded', caught.value.error
    assert 'storage.objects_mb' in caught.value.error['cause']


def tar(size):
    to = io.BytesIO()
    with tarfile.open(fileobj=to, mode='w') as archive:
        info = tarfile.TarInfo('imported')
        info.size = size
        archive.addfile(info, io.BytesIO(os.urandom(size)))
    return to.getvalue()


@pytest.fixture
def box(hub):
    hub.post('/v1/workspaces', name='one')
    made = hub.create(workspace='one')
    yield made
    hub.call('DELETE', f'/v1/sandboxes/{made}?discard=true')
    hub.call('DELETE', '/v1/workspaces/one')
    hub.call('DELETE', '/v1/workspaces-garbage')


def test_a_revision_that_does_not_fit(hub, box):
    """Is not made, and nothing is lost; within the bound it is."""
    hub.write(box, 'fits', 3 * MB)
    assert hub.commit('one')['changed']
    tip = hub.of('one')['revision']
    hub.write(box, 'more', 6 * MB)
    full(hub.commit, 'one')
    full(hub.delete, box)  # its last revision
    assert hub.of('one')['revision'] == tip and hub.sh(box, 'stat -c %s more') == f'{6 * MB}\n'
    full(hub.call, 'GET', '/v1/workspaces/one/diff?live=true')
    hub.sh(box, 'cp fits again; truncate -s 4M more; rm fits')  # contents are kept once
    assert hub.commit('one')['changed']
    assert hub.call('GET', '/v1/workspaces/one/verify')['damaged'] == 0


def test_what_nobody_needs_goes_first(hub, box):
    for name in ('gone', 'next'):
        hub.post('/v1/workspaces', name=name)
        assert 'revision' in hub.import_(name, tar(5 * MB))
        hub.call('DELETE', f'/v1/workspaces/{name}')
    hub.write(box, 'large', 6 * MB)
    assert hub.commit('one')['changed']


def test_imports(hub, box):
    hub.post('/v1/workspaces', name='two')
    said = hub.import_('two', tar(9 * MB))
    assert said['error']['code'] == 'quota_exceeded', said
    assert hub.of('two')['files'] == 0
    assert hub.import_('two', tar(5 * MB))['changed']
    hub.write(box, 'large', 5 * MB)
    full(hub.commit, 'one')  # both workspaces together
    hub.set(storage={'objects_mb': 20})
    assert hub.commit('one')['changed']
    hub.set(**BOUND)
    hub.call('DELETE', '/v1/workspaces/two')


def test_snapshots_of_coding_sessions(hub, project, box):
    """Count with workspaces."""
    session = Session(hub)

    def keep(name):
        with hub.wire() as wire:
            session.call(wire, 'snapshot_create', name=name)
            return session.result(wire)

    project.put('code', os.urandom(5 * MB))
    assert not keep('first').get('isError')
    hub.write(box, 'large', 5 * MB)
    full(hub.commit, 'one')
    project.put('code', os.urandom(5 * MB))
    said = keep('second')
    assert said['isError'] and '"storage_full"' in json.dumps(said).replace('\\', ''), said
    hub.set()
    assert not keep('second').get('isError') and hub.commit('one')['changed']
    hub.set(**BOUND)
