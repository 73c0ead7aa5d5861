"""Workspaces: files that outlive sandboxes, as revisions. Each test says what becomes of the files,
from outside and inside."""

import hashlib
import os
import shutil

import pytest

import image_files as files
from client import until
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

    def sh(self, sandbox, line, **more):
        done = self.exec(sandbox, line, **more)
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


def deadline(hub, sandbox):
    hub.post('/v1/set_timeout', sandbox=sandbox, timeout_seconds=1)
    until(lambda: hub.call('GET', f'/v1/sandboxes/{sandbox}')['state'] in
          ('terminated', 'stopped', 'cold'), what='its deadline')


def stop(hub, sandbox):
    hub.post(f'/v1/sandboxes/{sandbox}/stop')


ENDS = {
    'terminated': ({}, [Hub.finish]),
    'stopped': ({}, [stop, Hub.finish]),
    'paused and stopped': ({}, [lambda h, s: h.post('/v1/pause', sandbox=s), stop, Hub.finish]),
    'stopped twice': ({}, [stop, lambda h, s: h.post('/v1/resume', sandbox=s),
                           lambda h, s: h.sh(s, 'echo more > g'), stop, Hub.finish]),
    'overdue': ({}, [deadline]),
    'overdue and stopped': ({'retention': 'stop'}, [deadline, Hub.finish]),
    'overdue and cold': ({'retention': 'cold'}, [deadline, Hub.finish]),
    'overdue and a snapshot': ({'retention': 'snapshot'}, [deadline]),
}


@pytest.mark.parametrize('end', ENDS)
def test_every_end_makes_a_revision(hub, end):
    more, steps = ENDS[end]
    name = end.replace(' ', '-')
    hub.new(name)
    one = hub.open(name, **more)
    hub.sh(one, 'echo mine > f')
    for step in steps:
        step(hub, one)
    assert 'sandbox' not in hub.of(name)
    next_one = hub.open(name)
    assert hub.sh(next_one, 'cat f; ls | wc -l') == f'mine\n{1 + end.endswith("twice")}\n'
    hub.finish(next_one)


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


# ---- /workspace itself is replaced ---------------------------------------------------------------

FIRST = {'old': '1', 'd': None, 'd/x': '1', 'd/deep': None, 'd/deep/y': '1', 'e': None, 'e/z': '1'}
SHOW = r"""find . -type d | while read -r p; do echo "$p"; done
find . -type f | while read -r p; do echo "$p=$(cat "$p")"; done"""

REPLACED = {
    'anew': ('rm -rf /workspace; mkdir -p /workspace/d/deep; echo 2 > /workspace/d/n; '
             'echo 2 > /workspace/d/deep/m; echo 2 > /workspace/d/x',
             {'d': None, 'd/n': '2', 'd/x': '2', 'd/deep': None, 'd/deep/m': '2'}),
    'another': ('mkdir -p /other/d/deep; echo 2 > /other/d/deep/m; rm -rf /workspace; '
                'mv /other /workspace',
                {'d': None, 'd/deep': None, 'd/deep/m': '2'}),
    'of-the-image': ('rm -rf /workspace; mv /srv /workspace; echo 2 > /workspace/d/m',
                     {'d': None, 'd/m': '2', 'd/of': 'the image'}),
    'and-back': ('mv /workspace /aside; mv /aside /workspace; echo 2 > /workspace/d/x; '
                 'rm /workspace/old',
                 {k: '2' if k == 'd/x' else v for k, v in FIRST.items() if k != 'old'}),
    'empty': ('rm -rf /workspace; mkdir /workspace', {}),
    'gone': ('rm -rf /workspace', {}),
}


@pytest.fixture(scope='module')
def image(hub, who):
    """An image whose folders are all the user's: / is, too, so /workspace can be replaced."""
    layout = who.work + '/replaced'
    names = ('find', 'mkdir', 'mv', 'rm', 'ln', 'mkfifo')
    files.layout(layout, files.busybox_layer(
        *[files.symlink('bin/' + n, 'busybox') for n in names], files.folder('srv'),
        files.folder('srv/d'), files.entry('srv/d/of', b'the image')), run={})
    done = who.run('images', 'import', layout, 'own', env=hub.env)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(layout)
    if who.uid and who.run('run', '--template', 'own', '--', 'true', env=hub.env).returncode == 125:
        pytest.skip('users without privileges have no whole overlays on this kernel')
    return 'own'


def shown(hub, sandbox):
    """All that is in its workspace: contents of files by their paths, None of folders."""
    lines = [line[2:].partition('=') for line in hub.sh(sandbox, SHOW).splitlines() if line != '.']
    return {path: text if mark else None for path, mark, text in lines}


def tip(hub, workspace):
    sandbox = hub.open(workspace, workspace_mode='copy')
    got = shown(hub, sandbox)
    hub.finish(sandbox)
    return got


def started(hub, name, image):
    """A sandbox that has FIRST from an earlier one."""
    hub.new(name)
    one = hub.open(name)
    hub.sh(one, 'mkdir -p d/deep e; for f in old d/x d/deep/y e/z; do echo 1 > $f; done')
    hub.finish(one)
    assert tip(hub, name) == FIRST
    return hub.open(name, template=image)


def change(was, now):
    return {(k, 'added' if k not in was else 'removed' if k not in now else 'changed')
            for k in {*was, *now} if k not in was or k not in now or was[k] != now[k]}


@pytest.mark.parametrize('how', REPLACED)
def test_the_folder_itself_is_replaced(hub, image, how):
    """Nothing of what it was comes back, neither in folders of the same name."""
    script, want = REPLACED[how]
    name = 'replaced-' + how
    sandbox = started(hub, name, image)
    hub.sh(sandbox, 'set -e; ' + script, working_dir='/')
    told = hub.call('GET', f'/v1/workspaces/{name}/diff?live=true&renames=false')['changes']
    assert {(c['path'], c['change']) for c in told} == change(FIRST, want)
    assert hub.commit(name)['changed']
    assert tip(hub, name) == want
    assert not hub.commit(name)['changed']
    # another layer is above it
    fork = hub.post(f'/v1/sandboxes/{sandbox}/fork')['id']
    hub.sh(sandbox, 'mkdir -p /workspace/e; echo 3 > /workspace/e/late', working_dir='/')
    hub.finish(sandbox)
    hub.finish(fork)
    assert tip(hub, name) == {**want, 'e': None, 'e/late': '3'}


@pytest.mark.parametrize('how', ['file', 'link'])
def test_the_folder_itself_is_none_any_more(hub, image, how):
    """It is told, and nothing is kept or lost."""
    name = 'none-' + how
    sandbox = started(hub, name, image)
    hub.sh(sandbox, 'mv /workspace /data && ' +
           {'file': 'echo 2 > /workspace', 'link': 'ln -s /data /workspace'}[how], working_dir='/')
    for ask in (lambda: hub.commit(name), lambda: hub.finish(sandbox),
                lambda: hub.call('GET', f'/v1/workspaces/{name}/diff?live=true')):
        with pytest.raises(Failed) as told:
            ask()
        assert '/workspace is no directory any more' in str(told.value)
    assert tip(hub, name) == FIRST
    hub.sh(sandbox, 'rm /workspace; mv /data /workspace; echo 2 > /workspace/old', working_dir='/')
    hub.finish(sandbox)
    assert tip(hub, name) == {**FIRST, 'old': '2'}
