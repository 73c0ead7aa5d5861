"""holt build: images from a folder, by holt.json and by a Containerfile,
and the recipe of the tool contract."""

import json
import os
import re
import shutil
import signal
import subprocess

import pytest

import image_files as files
from client import until
from folder import (REFUSED, Fake, Folder, build_with_buildah, needs_buildah,  # noqa: F401
                    without_programs, work)
from image_files import entry, folder as dir_entry
from test_images import read

pytestmark = pytest.mark.rights


@pytest.fixture
def overlays(work):
    work.spec()
    work.ok()
    if work.who.uid and work.who.run('run', '--template', 'agent-tool', '--',
                                     'true').returncode == REFUSED:
        pytest.skip('users without privileges have no whole overlays on this kernel')
    work.store.ok('rm', 'agent-tool')
    return work


# ---- what is built -------------------------------------------------------------------------------

def test_files(overlays):
    work = overlays
    work.put('a/one', 'one', 0o600)
    work.put('a/sub/two', 'two', 0o755)
    work.put('script', '#!/bin/sh\necho ran\n')
    os.symlink('/etc/hostname', os.path.join(work.path, 'a/link'))
    work.spec(files=[{'from': 'a', 'to': '/srv/a'},
                     {'from': 'script', 'to': '/opt/bin/', 'mode': '755'},
                     {'from': './a/one', 'to': '/opt/renamed', 'mode': '0640'},
                     {'from': '.', 'to': '/all/'}])
    assert work.ok().startswith('agent-tool:latest  ')
    assert (work.sh('agent-tool', 'cd /srv/a; cat one sub/two; stat -c %a one sub/two; cat link; '
                    '/opt/bin/script; stat -c %a:%u /opt/renamed; ls /all') ==
            'onetwo600\n755\nsandbox\nran\n640:1000\na\nholt.json\nscript\n')


def test_how_programs_run(overlays):
    work = overlays
    work.spec(env={'A': '1', 'B': 'two words'}, workdir='/work',
              entrypoint=['sh', '-c', 'echo "$@"', 'x'], cmd=['by', 'default'])
    work.ok('-t', 'tool:1')
    image = work.image('tool:1')
    assert ((image['source'], image['of_host'], image['user'], image['workdir'])
            == ('build', True, 'agent', '/work'))
    assert image['env'] == ['A=1', 'B=two words'] and image['recipe'] == image['digest']
    assert work.who.run('run', '--template', 'tool:1').stdout == b'by default\n'
    assert (work.sh('tool:1', 'echo "$A $B $HOME"; pwd; id -un; echo x > /work/x; mkdir /new; '
                    'ls -d /usr/bin') ==
            '1 two words /home/agent\n/work\nagent\n/usr/bin\n')


def test_an_image_as_base(overlays):
    work = overlays
    run = {'User': 'app', 'WorkingDir': '/srv/x', 'Env': ['PATH=/bin', 'A=base', 'B=base'],
           'Entrypoint': ['/bin/echo'], 'Cmd': ['base']}
    base = files.layout(work.path + '/layout', files.busybox_layer(dir_entry('srv'), entry(
        'srv/old', b'old'), dir_entry('usr'), entry('usr/own', b'own')), run=run)
    work.store.ok('import', base, 'box')
    shutil.rmtree(base)
    work.put('new', 'new')
    work.spec(base='box', files=[{'from': 'new', 'to': '/bin/new'}, {
        'from': 'new', 'to': '/srv/old'}, {'from': 'new', 'to': '/usr/new'}],
              env={'B': 'own', 'AA': 'x'})
    work.ok('-t', 'one')
    image = work.image('one')
    assert (image['env'] == ['PATH=/bin', 'A=base', 'B=own', 'AA=x'] and image['user'] == 'app'
            and not image.get('of_host'))
    assert (work.sh('one', 'cat /bin/new /srv/old /usr/own /usr/new; pwd; '
                    'whoami; echo $A $B; test -e /usr/lib || echo none') ==
            'newnewownnew/srv/x\napp\nbase own\nnone\n')
    assert work.who.run('run', '--template', 'one').stdout == b'base\n'
    work.spec(base='one', entrypoint=['/bin/cat'], run=[
        'echo of a step > /made', 'rm /usr/own', 'ln -s made /link', 'mkdir -p d/e && chmod 700 d'])
    work.ok('-t', 'two')
    assert (work.sh('two', 'cat /made /link; test -e /usr/own || echo gone; stat -c %a /srv/x/d; '
                    'whoami; ls /proc/self/stat') ==
            'of a step\nof a step\ngone\n700\napp\n/proc/self/stat\n')
    assert (work.image('two')['entrypoint'] == ['/bin/cat'] and work.image('two').get('cmd', [])
            == [])
    assert work.who.run('images', 'rm', 'box',
                        'one').returncode == 0 and work.sh('two', 'cat /bin/new') == 'new'


def test_steps(overlays):
    work = overlays
    work.put('tool/lib.py', 'VALUE = 42\n')
    work.spec(files=[{'from': 'tool', 'to': '/opt/tool'}], env={'WHERE': '/opt/tool'},
              workdir='/work',
              run=['echo step says this', 'echo $PWD $HOME > said', 'cp "$WHERE/lib.py" '
                   '/opt/copy.py && rm /etc/shells', 'mkfifo /tmp/pipe; ln said hard'])
    done = work.build()
    assert done.returncode == 0, done
    assert done.stderr.decode().splitlines()[:2] == ['step 1 of 4: echo step says this',
                                                     'step says this']
    assert (work.sh('agent-tool', 'cat said hard /opt/copy.py; test -e /etc/shells || echo gone; '
                    'ls -d /usr/bin; stat -c %h said') ==
            '/work /home/agent\n/work /home/agent\nVALUE = 42\ngone\n/usr/bin\n2\n')
    root = work.store.root('agent-tool')
    assert (os.listdir(root + '/usr') == [] and os.listdir(root + '/dev') == []
            and os.listdir(root + '/proc') == [])
    assert sorted(os.listdir(os.path.dirname(root))) == ['image.json', 'root']


def test_nothing_of_the_machine_is_in_reach_of_a_step(overlays):
    work = overlays
    work.spec(run=['test ! -e "%s" && ! ls /sys/class/net/e* 2>/dev/null && test $(id -u) = 1000 '
                   '&& grep -q "CapEff:.0000000000000000" /proc/self/status' % work.path])
    work.ok()


# ---- what was built before -----------------------------------------------------------------------

def test_the_same_is_built_once(overlays):
    work = overlays
    chance = 'head -c 16 /dev/urandom | od -An -tx1 > /chance'
    work.put('f', 'one')
    spec = {'files': [{'from': 'f', 'to': '/f'}], 'run': [chance]}
    work.spec(**spec)
    def build(*arguments):
        said = work.ok(*arguments)
        return 'built before' in said, work.image('agent-tool')['digest']
    first = build()
    assert first[0] is False
    os.utime(os.path.join(work.path, 'f'), (1, 1))
    assert build() == (True, first[1])
    assert 'built before' in work.ok('-t', 'other') and work.image('other')['digest'] == first[1]
    again = build('--no-cache')
    assert again[0] is False and again[1] != first[1]
    work.put('f', 'two')
    assert build()[0] is False
    work.put('f', 'one')
    assert build()[0] is True
    work.put('f', 'one', 0o755)
    assert build()[0] is False
    work.spec(**spec, env={'A': ''})
    assert build()[0] is False
    work.store.ok('rm', *[i['image']['digest'] for i in work.store.json('ls')])
    assert build()[0] is False
    assert os.listdir(work.store.path + '/new') == []


def test_what_was_built_depends_on_its_base(overlays):
    work = overlays
    for i in range(2):
        path = files.layout(f'{work.path}/layout', files.busybox_layer(entry('which', b'%d' % i)))
        work.store.ok('import', path, 'box')
        shutil.rmtree(path)
        work.spec(base='box', run=['cp /which /copy'])
        assert 'before' not in work.ok() and work.sh('agent-tool', 'cat /copy') == str(i)


def test_names(overlays, who):
    for name, image in (('Agent Tool (2)', 'agent-tool-2:latest'), ('.hidden', 'hidden:latest')):
        made = Folder(who, name)
        made.spec()
        assert made.ok().split()[0] == image
        assert (json.loads(made.ok('-o', 'json', '-t', 'reg.example/x:1'))['name']
                == 'reg.example/x:1')
        shutil.rmtree(made.path)
    for name in ('host', '日本'):
        made = Folder(who, name)
        made.spec()
        made.refused('--tag')
        shutil.rmtree(made.path)
    overlays.spec().refused('no name', '-t', '../x')
    done = who.run('build', who.work + '/none')
    assert done.returncode == REFUSED and b'No such file' in done.stderr
    assert who.run('build').returncode == 2


# ---- what is refused -----------------------------------------------------------------------------

def one(**row):
    return {'files': [{'to': '/x', 'from': 'f', **row}]}


SPECS = {
    'an unknown member': ({'bas': 'host'}, 'bas'),
    'an unknown member of a file': (one(mod='755'), 'mod'),
    'a file without a place': ({'files': [{'from': 'f'}]}, 'to'),
    'no array': ({'run': 'true'}, 'run'),
    'a step that is no line': ({'run': [['true']]}, 'run'),
    'an empty step': ({'run': ['']}, 'run'),
    'a NUL': ({'run': ['a\0b']}, 'run'),
    'a relative place': (one(to='x'), 'absolute'),
    'a climbing place': (one(to='/../x'), '..'),
    'the root as a file': (one(to='/.'), 'files[0]'),
    'a place of the host': (one(to='/usr/local/bin/x'), '/usr is the host'),
    'a place of the host by a link': (one(to='/bin/x'), 'is the host'),
    'outside': (one(**{'from': '../secret'}), 'leads out'),
    'outside and back': (one(**{'from': '../agent-tool/f'}), 'leads out'),
    'absolute': (one(**{'from': '/etc/passwd'}), 'leads out'),
    'a link to outside': (one(**{'from': 'out'}), 'leads out'),
    'through a link to outside': (one(**{'from': 'up/secret'}), 'leads out'),
    'a pipe': (one(**{'from': 'pipe'}), 'neither a file'),
    'a folder with a pipe': (one(**{'from': 'pipes'}), 'neither a file'),
    'what is not there': (one(**{'from': 'none'}), 'No such file'),
    'no permissions': (one(mode='999'), 'mode'),
    'permissions beyond': (one(mode='4755'), 'mode'),
    'a variable without a name': ({'env': {'': 'x'}}, 'env'),
    'a variable with =': ({'env': {'a=b': 'x'}}, 'env'),
    'a relative directory': ({'workdir': 'x'}, 'workdir'),
    'a climbing directory': ({'workdir': '/../../x'}, '..'),
    'no such base': ({'base': 'none'}, 'none'),
    'a limit beyond': ({'limits': {'pids': 1 << 30}}, 'pids'),
    'no time': ({'timeout_seconds': 0}, 'timeout_seconds'),
    'many steps': ({'run': ['true'] * 65}, 'run'),
}


def test_hostile_specs(work):
    work.put('f', 'fine')
    os.symlink('../secret', work.path + '/out')
    os.symlink('..', work.path + '/up')
    os.mkfifo(work.path + '/pipe')
    os.mkdir(work.path + '/pipes')
    os.mkfifo(work.path + '/pipes/pipe')
    secret = os.path.join(work.who.work, 'secret')
    with open(secret, 'w', encoding='ascii') as f:
        f.write('secret')
    os.chown(secret, work.who.uid, work.who.uid)
    try:
        work.spec(**one()).ok('-t', 'twin')
        for spec, why in SPECS.values():
            work.spec(**spec).refused(why)
    finally:
        os.unlink(secret)


def test_what_is_no_document(work):
    for text in ('', '{', '[]', '{} {}', '{"env": {}, "env": {}}',
                 '{"a": "' + 'x' * (5 << 20) + '"}', '// no\n{}'):
        work.put('holt.json', text)
        work.refused('holt.json')


def test_nothing_to_build_by(work):
    work.refused('neither holt.json nor Containerfile')
    os.symlink('/etc/hostname', work.path + '/holt.json')  # it is read below the folder only
    work.refused('holt.json')


@pytest.mark.parametrize('spec, why', [
    ({'run': ['true', 'echo last words; exit 3', 'false']}, 'step 2 ended with status 3'),
    ({'run': ['kill -9 $$']}, 'step 1 ended with status 137'),
    ({'run': ['sleep 1000'], 'timeout_seconds': 1}, 'step 1 took more than 1 seconds'),
    ({'run': ['no-such-program']}, 'step 1 ended with status 127'),
    ({'run': ['head -c 100000000 /dev/zero > /big'], 'limits': {'memory_mb': 64, 'disk_mb': 16}},
     'step 1 ended')])
def test_steps_that_fail(overlays, spec, why):
    done = overlays.spec(**spec).refused(why)
    assert b'holt build --allow' in done.stderr


class Running:
    """A build that is in its step."""

    def __init__(self, work):
        work.spec(run=['echo in the step; exec sleep 1000'])
        work.give()
        self.proc = subprocess.Popen(work.who.argv('build', work.path), env=work.who.env,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, cwd='/')
        assert (self.proc.stderr.readline().startswith(b'step 1') and self.proc.stderr.readline()
                == b'in the step\n')


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing(overlays, residue, number):
    work, before = overlays, overlays.store.tree()
    running = Running(work)
    running.proc.send_signal(number)
    assert running.proc.wait(60) == -number
    running.proc.communicate()
    assert work.store.tree() == before


def test_killed(overlays, residue):
    """What it leaves, the next one removes."""
    work = overlays
    running = Running(work)
    running.proc.kill()
    running.proc.communicate(timeout=60)
    until(lambda: work.store.json('prune') and os.listdir(work.store.path + '/new') == [],
          what='the end of the build')
    work.spec().ok()
    work.store.ok('rm', 'agent-tool')


def test_many_at_once(overlays):
    work = overlays
    work.spec(run=['head -c 16 /dev/urandom > /chance'])
    work.give()
    running = [subprocess.Popen(work.who.argv('build', work.path, '-t', f'n{i}'), env=work.who.env,
                                cwd='/', stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE) for i in range(4)]
    assert [(p.communicate(timeout=100), p.returncode)[1] for p in running] == [0] * 4
    assert sorted(n for i in work.store.json('ls') for n in i['names']) == [f'n{i}:latest'
                                                                            for i in range(4)]
    assert os.listdir(work.store.path + '/new') == []


# ---- by Containerfile ----------------------------------------------------------------------------

BUILDAH = '''#!/bin/sh
# Stands for buildah: builds whatever layout FAKE_LAYOUT is, and says what it was asked for.
echo "$PWD: $*" >> "$FAKE_LOG"
echo "words of buildah $1"
case $1 in
build)
	while [ $# -gt 0 ]; do [ "$1" = --iidfile ] && printf 'sha256:%064d' 7 > "$2"; shift; done
	exit "${FAKE_STATUS:-0}" ;;
push) cp -r "$FAKE_LAYOUT" layout ;;
esac
'''


@pytest.fixture
def buildah(work):
    fake = Fake(work, 'buildah', BUILDAH)
    yield fake
    fake.remove()


@pytest.mark.parametrize('file', ['Containerfile', 'Dockerfile'])
def test_containerfile(work, buildah, file):
    work.put(file, 'FROM scratch\n')
    done = work.build(env=buildah.env)
    assert done.returncode == 0 and done.stdout.startswith(b'agent-tool:latest  '), done
    assert b'words of buildah build\nwords of buildah push\n' in done.stderr
    build, push = buildah.asked()
    assert re.fullmatch(f'{work.path}: build --layers --format oci --ulimit nofile=[0-9:]+ '
                        f'--ulimit nproc=[0-9:]+ --iidfile [^ ]+/id --file {file} \\.', build)
    assert push.endswith(f': push {7:064d} oci:layout:holt')
    assert (read(work.store.root('agent-tool'), 'made') == b'made'
            and work.image('agent-tool')['workdir'] == '/bin')
    assert os.listdir(work.store.path + '/new') == []


def test_a_containerfile_that_fails(work, buildah):
    work.put('Containerfile', 'FROM scratch\n')
    work.refused('buildah build ended with status 7', env={**buildah.env, 'FAKE_STATUS': '7'})
    work.refused('BUILDAH_ISOLATION=chroot', env={**buildah.env, 'FAKE_STATUS': '7'})


def test_no_buildah(work):
    work.put('Containerfile', 'FROM scratch\n')
    work.give()
    done = without_programs(work.who, 'build', work.path)
    assert (done.returncode == REFUSED and b'the package buildah' in done.stderr
            and b'holt.json' in done.stderr)


def test_holt_json_goes_before_a_containerfile(work, buildah):
    work.put('Containerfile', 'FROM scratch\n')
    work.spec().ok(env=buildah.env)
    assert buildah.asked() == []


def test_buildah_itself(work):
    """Where it is installed, and without a network: an image of a file and a program that ran."""
    needs_buildah(work)
    work.put('Containerfile', 'FROM scratch\nCOPY busybox /bin/sh\nCOPY f /srv/f\n'
             'RUN read x < /srv/f; echo "$x and run" > /srv/g\nENV A=1\nWORKDIR /srv\n')
    work.put('f', 'copied\n')
    shutil.copy('/bin/busybox', os.path.join(work.path, 'busybox'))
    build_with_buildah(work)
    assert read(work.store.root('agent-tool'), 'srv/g') == b'copied and run\n'
    assert 'A=1' in work.image('agent-tool')['env']


# ---- the tool contract ---------------------------------------------------------------------------

def test_the_recipe_of_the_contract(me, tmp_path):
    """Word for word, with holt for mvmctl."""
    if not os.path.exists('/usr/bin/python3'):
        pytest.skip('the host has no python3 for its sandboxes')
    (tmp_path / 'home').mkdir()
    (tmp_path / 'agent-tool').mkdir()
    (tmp_path / 'agent-tool/holt.json').write_text('{"files": [{"from": "tool.py", "to": '
                                                   '"/opt/tool/tool.py"}], "env": {"PYTHONPATH": '
                                                   '"/opt/tool"}}')
    (tmp_path / 'agent-tool/tool.py').write_text('def answer(n):\n    return f"answer {n}"\n')
    (tmp_path / 'request-main.py').write_text('import tool\nprint(tool.answer(42))\n')
    env = {**me.env, 'HOLT_HOME': str(tmp_path / 'home')}

    def run(line, **options):
        done = subprocess.run(['sh', '-c', line], cwd=tmp_path, env=env, capture_output=True,
                              text=True, timeout=60, check=False, **options)
        assert done.returncode == 0, (line, done)
        return done.stdout

    holt = me.argv()[-1]
    try:
        assert run(f'{holt} build ./agent-tool').startswith('agent-tool:latest')
        assert run(f'{holt} up ./agent-tool --name agent-tool-call') == 'agent-tool-call\n'
        run(f'{holt} fs write agent-tool-call /work/main.py < ./request-main.py')
        assert (run(f'{holt} exec agent-tool-call --timeout 20 -- python /work/main.py')
                == 'answer 42\n')
        assert 'answer 42\n' in run(f'{holt} logs agent-tool-call')
        run(f'{holt} down agent-tool-call')
        assert (run(f'{holt} run --timeout 20 -- python -c \'print("bounded tool call")\'')
                == 'bounded tool call\n')
    finally:
        end_hub(tmp_path / 'home')


def end_hub(home):
    """That was started on demand."""
    from test_hub_cli import runs, served
    try:
        hub = served(home)
    except OSError:
        return
    os.kill(hub, signal.SIGTERM)
    until(lambda: not runs(hub), what='the end of the hub')


def test_up_of_a_folder_is_of_what_is_in_it_now(me, tmp_path):
    env = {**me.env, 'HOLT_HOME': str(tmp_path / 'home')}
    (tmp_path / 'home').mkdir()
    (tmp_path / 'Tool').mkdir()
    (tmp_path / 'Tool/holt.json').write_text('{"files": [{"from": "f", "to": "/f"}]}')
    try:
        for content in ('one', 'two'):
            (tmp_path / 'Tool/f').write_text(content)
            for path in ('./Tool', str(tmp_path / 'Tool')):
                box = me.run('up', path, env=env, cwd=tmp_path)
                assert box.returncode == 0, box
                name = box.stdout.decode().strip()
                assert me.run('fs', 'read', name, '/f', env=env).stdout == content.encode()
                assert [s['template_id'] for s in json.loads(
                    me.run('ls', '-o', 'json', env=env).stdout)] == ['tool:latest']
                assert me.run('down', name, env=env).returncode == 0
        done = me.run('up', 'Tool', env=env, cwd=tmp_path)  # a name, not a path
        assert done.returncode == REFUSED and b'Tool' in done.stderr
        done = me.run('up', './none', env=env, cwd=tmp_path)
        assert done.returncode == REFUSED and b'./none' in done.stderr
    finally:
        end_hub(tmp_path / 'home')
