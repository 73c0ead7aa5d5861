"""docs/daily.md: each command of its table does what its row says, from the top to the bottom."""

import json
import os
import re
import shutil
import urllib.request

import pytest

import image_files as files
from client import until
from test_docs import Shell, hub, read  # noqa: F401

ROWS = re.findall(r'^\| ([^|]*?) \| (.*?) \| `([^|]*)` \|$', read('docs/daily.md'), re.M)


@pytest.fixture
def shell(hub, tmp_path):  # noqa: F811
    made = Shell(hub, tmp_path)
    made.put('Makefile', 'all:\n\techo made > result; cat result\n')
    made.put('app.env', '# of the application\nGREETING=hello you\nMODE=file\n')
    made.put('names', 'b\nc\na\n')
    made.put('src/main.c', 'int main;\n')
    made.put('tool/hello.sh', 'echo "from the tool"\n')
    made.put('tool/holt.json', json.dumps({
        'files': [{'from': 'hello.sh', 'to': '/opt/hello.sh'}],
        'entrypoint': ['sh', '/opt/hello.sh']}))
    root = files.busybox_layer()
    (tmp_path / 'image.tar').write_bytes(root)
    files.layout(str(tmp_path / 'layout'), root)
    for path in (tmp_path, tmp_path / 'src', tmp_path / 'src/main.c'):
        shutil.chown(path, hub.who.uid)
    yield made
    for name in hub.names():
        hub.ok('down', name)
    for kept in hub.json('snapshot'):
        hub.ok('snapshot', 'rm', kept['id'])
    for image in hub.json('images'):
        hub.ok('images', 'rm', *image['names'])


def lines(*wanted):
    """All that is printed."""
    def check(shell, said):
        assert said.split() == ' '.join(wanted).split()
    return check


def has(*wanted):
    def check(shell, said):
        assert all(text in said for text in wanted)
    return check


def logs(shell, said):
    until(lambda: 'Serving HTTP' in shell.run('holt logs box server 2>&1'), what='the server')


def server(shell, said):
    with urllib.request.urlopen(f'http://{said.strip()}/', timeout=60) as reply:
        assert b'src/' in reply.read()


def copied(shell, said):
    assert (shell.folder / 'copy/main.c').read_text() == 'int main;\n'


def states(**wanted):
    def check(shell, said):
        assert {s['id']: s['state'] for s in shell.hub.json('ls') if s['id'] in wanted} == wanted
    return check


def gone(*names):
    def check(shell, said):
        assert not shell.hub.names() & set(names)
    return check


CHECKS = {
    'run a command in a place of its own': lines('hello'),
    'have a shell there': has('/workspace'),
    'run a command on one of your folders': has('made'),
    'with variables of a file, and one more': has('GREETING=hello you\n', 'MODE=test\n'),
    'with limits': has('echo made'),
    'as root': has('uid=0(root)'),
    'make one that stays': lines('box'),
    'make one with a folder of yours': lines('here'),
    'note whose it is': lines('mine'),
    'list them': has('box', 'mine', 'owner=me'),
    'list the names of some': lines('mine'),
    'know all about one': has('"id": "box"', '"state": "running"'),
    'run a command in it': has('usr', 'workspace'),
    'have a shell in it': has('/workspace'),
    'give a command its input': lines('a', 'b', 'c'),
    'leave one running in it': lines('server'),
    'see what it prints': logs,
    'copy files in': lines(),
    'copy files out': copied,
    'see what runs in it': has('http.server'),
    'see what it uses': has('box', 'mine'),
    'see what it has changed': has('/workspace/src/main.c'),
    'reach a server in it': server,
    'stop all in it for a while': states(box='running'),
    'keep its files, and go on later': states(box='running'),
    'keep a state, and make more of it': lines('again'),
    'copy it as it is': has('sbx-'),
    'build an image': has('tool:latest'),
    'take an image from a file': has('loaded:latest'),
    'take an image from a registry': has('pulled:latest'),
    'list images': has('tool:latest', 'loaded:latest', 'pulled:latest'),
    'run what an image names': lines('from', 'the', 'tool'),
    'see what happened': has('box', 'created'),
    'remove one': gone('box'),
    'remove all': gone('mine', 'again', 'here'),
}


def test_each_row_has_its_check():
    assert [task for task, _, _ in ROWS] == list(CHECKS) and len(CHECKS) >= 20
    assert len(ROWS) == len(re.findall(r'^\| ', read('docs/daily.md'), re.M)) - 1  # the heading


def test_the_column_of_docker():
    """It stands there for people who know it: nearly each row has a command of it."""
    others = [docker for _, docker, _ in ROWS if not docker.startswith('`docker ')]
    assert others == ['no such thing']


def test_the_day(shell):
    for task, _, command in ROWS:
        if '--user root' in command and os.getuid():
            continue  # wants ids of its own, which this user may not have
        typed = b'pwd; exit\n' if '-it' in command.split() else b''
        said = shell.run(command.replace('debian:12', 'oci:layout pulled'), typed=typed)
        try:
            CHECKS[task](shell, said)
        except AssertionError as e:
            raise AssertionError(task, command, said) from e
