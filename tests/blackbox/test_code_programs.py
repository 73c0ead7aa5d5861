"""Programs as models write them (tests/code/programs), over three real servers of npm: they were
written before what they need was. Each runs at its first try, and prints and returns what
expected.json says; what can't run says why."""

import json
import os
import shutil
import tempfile

import pytest

import host
from modules import approve, home
from test_code_modules import Hub
from test_module_servers import entry

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../code/programs')
DATA = os.path.join(HERE, 'data')
with open(os.path.join(HERE, 'expected.json'), encoding='utf-8') as file:
    EXPECTED = json.load(file)


class Programs:
    """A hub with the servers, which see a copy of the data."""

    def __init__(self, hub, folder):
        self.hub, self.folder = hub, folder

    def refill(self):
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if os.path.isdir(path):
                shutil.rmtree(path)
            else:
                os.remove(path)
        shutil.copytree(DATA, self.folder, dirs_exist_ok=True)
        for top, folders, files in os.walk(self.folder):
            for name in folders + files:
                os.chmod(os.path.join(top, name), 0o777)

    def run(self, name):
        """Its answer, in which the folder is called /data."""
        with open(os.path.join(HERE, name), encoding='utf-8') as f:
            code = f.read()
        done = self.hub.js(code.replace('/data', self.folder), wall_ms=120000)
        return json.loads(json.dumps(done).replace(self.folder, '/data'))


@pytest.fixture(scope='module')
def programs(me, tmp_path_factory):
    before = host.Residue(me.trees)
    with tempfile.TemporaryDirectory(dir='/var/tmp') as top:
        os.chmod(top, 0o755)
        folder = os.path.join(top, 'd')
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        servers = {
            'everything': entry('everything', 'stdio'),
            'filesystem': entry('filesystem', folder, sandbox={'write': [folder]}),
            'memory': entry('memory', env={'MEMORY_FILE_PATH': f'{folder}/memory.jsonl'},
                            sandbox={'write': [folder]}),
        }
        path = home(me, tmp_path_factory.mktemp('programs'), **servers)
        with Hub(me, path, '--listen', '127.0.0.1:0', '--pool', '1') as hub:
            for name in servers:
                approve(hub, name)
                hub.post(f'/v1/modules/{name}/test')
            yield Programs(hub, folder)
    before.check()


def test_each_program_is_expected():
    assert {n for n in os.listdir(HERE) if n.endswith(('.js', '.ts'))} == set(EXPECTED)


@pytest.mark.parametrize('name', EXPECTED)
def test_a_program(programs, name):
    programs.refill()
    done = programs.run(name)
    if 'fails' in EXPECTED[name]:
        assert EXPECTED[name]['fails'] in done['error']['message']
        return
    assert done['ok'], done['error']
    assert json.loads(done['value']) == EXPECTED[name]['value']
    if 'console' in EXPECTED[name]:
        assert [line['text'] for line in done['console']] == EXPECTED[name]['console']
