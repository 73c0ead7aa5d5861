"""Workspaces: files that outlive sandboxes, as revisions. Each test says what becomes of the files,
from outside and inside."""

import hashlib
import os
import shutil

import pytest

from rest import Failed, Rest

HOSTILE = r'''
set -e; cd /workspace
mkdir -p sub/deep; echo one > sub/deep/a; ln sub/deep/a hard; ln -s /etc/passwd link
mkfifo pipe; printf x > "$(printf 'n\377\n')"; chmod 755 sub/deep/a; echo s > .env; mkdir .SSH
echo key > .SSH/id; echo up > A; echo low > a; mkdir 'mode'; chmod 711 mode; : > empty
'''


class Hub(Rest):
    def __init__(self, who, home, *arguments, **options):
        super().__init__(who, home, '--listen', '127.0.0.1:0', '--socket', 'none', *arguments,
                         **options)
        self.folder = os.path.join(self.env['HOLT_HOME'], 'workspaces')

    def sh(self, sandbox, line):
        done = self.exec(sandbox, line)
        assert done['exit_code'] == 0, (done['stdout'], done['stderr'])
        return done['stdout']

    def new(self, name):
        return self.post('/v1/workspaces', name=name)

    def open(self, workspace, **more):
        return self.post('/v1/sandboxes', workspace=workspace, **more)['id']

    def finish(self, sandbox, query=''):
        self.call('DELETE', f'/v1/sandboxes/{sandbox}{query}')

    def of(self, workspace):
        return self.call('GET', f'/v1/workspaces/{workspace}')

    def commit(self, workspace, **more):
        return self.post(f'/v1/workspaces/{workspace}/commit', **more)


@pytest.fixture(scope='module')
def hub(who):
    home = f'{who.work}/workspaces'
    os.mkdir(home, 0o700)
    os.chown(home, who.uid, who.uid)
    with Hub(who, home, '--pool', '1') as shared:
        yield shared
    shutil.rmtree(home)


def test_files_outlive_their_sandbox(hub):
    first = hub.new('plain')
    assert first['files'] == 0
    one = hub.open('plain')
    assert hub.of('plain')['sandbox'] == one
    hub.sh(one, 'echo hello > a; mkdir d; echo x > d/b; touch -d 2001-02-03 d/b')
    hub.finish(one)
    second = hub.of('plain')
    assert second['revision'] != first['revision']
    assert (second['files'], second['bytes'], 'sandbox' in second) == (3, 8, False)
    two = hub.open('plain')
    assert hub.sh(two, 'cat a d/b; date -r d/b +%F; pwd') == 'hello\nx\n2001-02-03\n/workspace\n'
    hub.sh(two, 'rm a; echo more >> d/b; mv d e')
    made = hub.commit('plain', message='moved')
    assert made['changed'] and made['files'] == 2
    assert not hub.commit('plain')['changed']
    hub.sh(two, 'echo 3 > c')
    hub.finish(two)
    three = hub.open('plain')
    assert hub.sh(three, 'find . -type f | sort; cat e/b') == './c\n./e/b\nx\nmore\n'
    hub.finish(three)


def test_hostile_names_and_kinds(hub):
    hub.new('hostile')
    one = hub.open('hostile')
    hub.sh(one, HOSTILE)
    made = hub.commit('hostile')
    assert (made['left_out'], made['left_out_names']) == (2, '.SSH/id, .env')
    hub.finish(one)
    two = hub.open('hostile')
    seen = hub.sh(two, 'find . | LC_ALL=C sort | od -An -c | tr -d " \\n"; stat -c "%a %n" '
                  'sub/deep/a mode; readlink link; cat hard A a')
    assert seen.endswith('755 sub/deep/a\n711 mode\n/etc/passwd\none\nup\nlow\n')
    assert '377' in seen and 'pipe' not in seen and '.env' not in seen and '.SSH' not in seen
    hub.finish(two)


def test_one_writes_and_others_have_copies(hub):
    hub.new('shared')
    one = hub.open('shared')
    with pytest.raises(Failed) as busy:
        hub.open('shared')
    assert 'writes to workspace shared' in str(busy.value)
    hub.sh(one, 'echo 1 > f')
    hub.commit('shared')
    two = hub.open('shared', workspace_mode='copy')
    assert hub.sh(two, 'cat f; echo mine > f; cat f') == '1\nmine\n'
    hub.finish(two)
    with pytest.raises(Failed):
        hub.call('DELETE', '/v1/workspaces/shared')
    hub.finish(one, '?discard=true')
    hub.call('DELETE', '/v1/workspaces/shared')
    with pytest.raises(Failed):
        hub.of('shared')


def test_what_is_in_the_way_is_told(hub):
    hub.new('way')
    sandbox = hub.post('/v1/sandboxes')['id']
    hub.sh(sandbox, 'echo mine > /workspace/f')
    with pytest.raises(Failed) as told:
        hub.post('/v1/workspaces/way/attach', sandbox=sandbox)
    assert '/workspace is not empty' in str(told.value)
    assert hub.sh(sandbox, 'cat f') == 'mine\n'
    hub.sh(sandbox, 'rm f')
    hub.post('/v1/workspaces/way/attach', sandbox=sandbox)
    with pytest.raises(Failed):
        hub.post('/v1/workspaces/way/attach', sandbox=sandbox)
    hub.finish(sandbox)


def test_limits_keep_what_they_refuse(hub):
    hub.new('deep')
    one = hub.open('deep')
    hub.sh(one, 'p=$(printf "d/%.0s" $(seq 70)); mkdir -p $p; echo 1 > $p/f')
    with pytest.raises(Failed) as told:
        hub.finish(one)
    assert 'at most 64 directories inside each other' in str(told.value)
    assert hub.of('deep')['files'] == 0
    assert hub.sh(one, 'find . -name f | xargs cat') == '1\n'
    hub.sh(one, 'rm -r d; echo 2 > f')
    hub.finish(one)
    assert hub.of('deep')['files'] == 1


def test_equal_content_is_stored_once(hub):
    hub.new('dedup')
    one = hub.open('dedup')
    hub.sh(one, 'head -c 3000000 /dev/urandom > big; cp big copy')
    made = hub.commit('dedup')
    assert made['bytes'] == 6000000 and made['added_bytes'] < 3200000
    was = hashlib.sha256(hub.sh(one, 'sha256sum < big').encode()).hexdigest()
    hub.sh(one, '(head -c 1000000 big; echo between; tail -c 2000000 big) > next; mv next copy')
    made = hub.commit('dedup')
    assert 0 < made['added_bytes'] < 1500000
    hub.finish(one)
    two = hub.open('dedup')
    assert hashlib.sha256(hub.sh(two, 'sha256sum < big').encode()).hexdigest() == was
    assert hub.sh(two, 'cmp <(head -c 1000000 big) <(head -c 1000000 copy) && stat -c %s copy') \
        == '3000008\n'
    hub.finish(two)
