"""Sandboxes that are made from images: who runs, where, with what, and what they share."""

import json
import os
import shutil
import subprocess

import pytest

import image_files as files
from client import Failed
from image_files import entry, folder, symlink

pytestmark = pytest.mark.rights

RUN = {'User': 'app', 'WorkingDir': '/srv/x', 'Env': ['A=of the image', 'B=2', 'PATH=/bin'],
       'Entrypoint': ['/bin/sh', '-c', 'echo "$@"; pwd', 'word'], 'Cmd': ['the', 'default']}
MORE = [folder('srv'), folder('srv/app', 0o700), entry('srv/app/private', b'own', 0o600),
        entry('bin/set', b'#!/bin/sh\nid -u\n', 0o4755),
        symlink('etc/hostname', '/proc/1/environ')]


@pytest.fixture(scope='session')
def image(who):
    """A store with a busybox image of a user, and one of root."""
    work = os.path.join(who.work, 'images')
    os.mkdir(work)
    data = files.busybox_layer(*MORE)
    for name, run in (('box', RUN), ('root', {})):
        done = who.run('images', 'import', files.layout(f'{work}/{name}', data, run=run), name)
        assert done.returncode == 0, done.stderr
    shutil.rmtree(work)
    if who.run('run', '--template', 'root', '--', 'true').returncode == 125 and who.uid:
        pytest.skip('users without privileges have no whole overlays on this kernel')
    yield 'box'
    shutil.rmtree(os.path.join(who.env['XDG_DATA_HOME'], 'holt'))


def run(who, *arguments, code=0, image='box'):
    done = who.run('run', '--template', image, *arguments)
    assert done.returncode == code, done
    return done.stdout.decode()


def sh(who, line, *options, **more):
    return run(who, *options, '--', 'sh', '-c', line, **more)


def test_user_directory_and_environment(who, image):
    assert run(who) == 'the default\n/srv/x\n'
    assert run(who, '--', 'true') == ''
    assert (sh(who, 'id -u; id -g; whoami; pwd; echo "$HOME $USER $A $B"')
            == '1000\n1000\napp\n/srv/x\n/srv/app app of the image 2\n')
    assert (sh(who, 'echo "$A $B $C"; pwd', '-e', 'A=given', '-e', 'C=3', '-w', '/tmp')
            == 'given 2 3\n/tmp\n')
    assert (sh(who, 'id -u; whoami; pwd; echo "$HOME $USER"', image='root')
            == '1000\nagent\n/workspace\n/root agent\n')
    assert run(who, image='root', code=125) == ''  # it names no program


def test_all_of_the_image_is_the_user_s_and_nobody_gains_more(who, image):
    assert sh(who, 'cat ~/private; stat -c %u:%g:%a /bin/busybox /etc /root /srv/app') == \
        'own1000:1000:755\n1000:1000:755\n1000:1000:700\n1000:1000:700\n'
    assert sh(who, 'echo new > /bin/added && echo more >> /srv/app/private && ls /bin/added && '
              'cat ~/private') == '/bin/added\nownmore\n'
    assert sh(who, 'test -e /bin/added || cat ~/private') == 'own'  # of the next sandbox
    assert sh(who, 'stat -c %a /bin/set; /bin/set') == '755\n1000\n'


def test_the_root_has_what_a_sandbox_needs(who, image):
    assert (sh(who, 'cat /etc/hostname; echo x > /dev/null; echo y > /dev/shm/y; echo z > /tmp/z; '
               'cat /dev/shm/y; test -r /proc/self/stat && echo proc')
            == 'sandbox\ny\nproc\n')
    assert sh(who, 'cd /; echo *').split() == ['bin', 'dev', 'etc', 'home', 'proc', 'root', 'run',
                                               'srv', 'sys', 'tmp', 'var', 'work',
                                               'workspace']


def test_what_is_no_template(who, image):
    for name in ('none', 'box:2', '../box', '', 'f' * 64, 'x' * 300, '/etc'):
        done = who.run('run', '--template', name, '--', 'true')
        assert done.returncode == 125 and b'template' in done.stderr, name


def test_sandboxes_over_mcp_fork_share_and_hold_the_image(who, image, spawn):
    mcp = spawn('--pool', '1')
    with pytest.raises(Failed) as e:
        mcp.create(pool='none')
    assert e.value.code == 'template_not_found'
    sb = mcp.create(pool='box')
    assert sb.info['template'] == 'box' and not sb.info['from_pool']
    assert (sb.exec('whoami; pwd; echo one > /srv/app/private; rm /bin/ls; echo $A')['stdout']
            == 'app\n/srv/x\nof the image\n')
    children = sb.fork(2)
    for child in children:
        assert child.exec('whoami; cat /srv/app/private; test -e /bin/ls || echo gone; '
                          'echo $A')['stdout'] == 'app\none\ngone\nof the image\n'
    other = mcp.create(pool='box')
    assert other.exec('cat /srv/app/private; ls /bin/ls')['stdout'] == 'own/bin/ls\n'
    other.terminate()
    sb.terminate()
    done = who.run('images', 'rm', 'box')
    assert done.returncode == 125 and b'use image' in done.stderr
    # it has a name
    assert json.loads(who.run('images', 'prune', '-o', 'json').stdout)['in_use'] == 0
    assert children[0].exec('cat /srv/app/private')['stdout'] == 'one\n'
    for child in children:
        child.terminate()
    assert who.run('images', 'import', store_root(who), 'copy').returncode == 0
    assert who.run('images', 'rm', 'copy').returncode == 0


def store_root(who):
    record = json.loads(who.run('images', 'inspect', 'box', '-o', 'json').stdout)
    return os.path.join(who.env['XDG_DATA_HOME'], 'holt/images/image', record['image']['digest'],
                        'root')


def test_a_deep_line_of_forks_stays_on_its_image(who, image, spawn):
    mcp = spawn('--pool', '0')
    sb = mcp.create(pool='box')
    for i in range(24):  # past where chains are squashed
        sb.exec(f'echo {i} > /srv/{i}')
        child = sb.fork(1)[0]
        sb.terminate()
        sb = child
    assert sb.exec('cat /srv/0 /srv/23; whoami')['stdout'] == '0\n23\napp\n'
    sb.terminate()


def test_an_image_that_was_tampered_with_leads_nowhere(who, image):
    """Of its owner's doing; but what would be mounted on is looked at all the same."""
    path = store_root(who)
    os.rename(path + '/proc', path + '/aside')
    os.symlink('/t', path + '/proc')
    try:
        done = who.run('run', '--template', 'box', '--', 'true')
        assert done.returncode == 125 and b'/proc of the image' in done.stderr
    finally:
        os.unlink(path + '/proc')
        os.rename(path + '/aside', path + '/proc')
    assert run(who, '--', 'true') == ''


def test_images_come_and_go_while_sandboxes_run(who, image):
    """A sandbox has the whole of one image, or there is none."""
    work = os.path.join(who.work, 'churn')
    os.mkdir(work)
    paths = [files.layout(f'{work}/{i}', files.busybox_layer(
        entry('which', b'%d' % i), entry('bin/last', b'%d' % i))) for i in range(2)]
    look = ('run', '--template', 'churn', '--', 'sh', '-c', 'cat /which /bin/last')
    words = [('images', 'import', paths[0], 'churn'), look, ('images', 'prune'), look,
             ('images', 'import', paths[1], 'churn'), look,
             ('images', 'rm', 'churn'), look]
    assert who.run(*words[0]).returncode == 0 and who.run(*look).stdout == b'00'
    for turn in range(6):
        running = [subprocess.Popen(who.argv(*words[(i + turn) % len(words)]), env=who.env, cwd='/',
                                    stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                   for i in range(len(words))]
        for i, proc in enumerate(running):
            out, said = proc.communicate(timeout=60)
            if words[(i + turn) % len(words)] is look:
                assert (proc.returncode, out) in ((0, b'00'), (0, b'11'), (125, b'')), (out, said)
            assert (proc.returncode == 0 or b'template' in said or b'was removed' in said
                    or b'use image' in said), said
    who.run('images', 'rm', 'churn')
    pruned = who.run('images', 'prune', '-o', 'json').stdout
    assert json.loads(pruned)['in_use'] == 0 and who.run(*look).returncode == 125
    shutil.rmtree(work)
