"""What is written down, held to the product: each example of the documents about sandboxes is run
as it stands there, and routes, codes, states, verbs and options are those that there are. An
example that the table here has not fails by its place."""

import json
import os
import pty
import re
import shutil
import subprocess

import pytest

from described import Described
from test_exec_cli import SERVER
from test_hub_cli import Hub
from who import HERE

TOP = os.path.dirname(os.path.dirname(HERE))
PAGES = ('holt', 'holt-sandbox', 'holt-snapshot', 'holt-build', 'holt-images', 'holt-run',
         'holt-serve', 'holt-hub', 'holt-auth', 'holt-doctor')
FILES = ('README.md', *(f'docs/{name}.md' for name in ('sandboxes', 'rest', 'templates')),
         *(f'man/{page}.1.scd' for page in PAGES))


class Documented(Described, Hub):
    pass


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    person = tmp_path_factory.mktemp('docs')  # whose folders are where they are by default
    data = person / '.local/share/holt'
    data.mkdir(0o700, parents=True)
    with Documented(me, data, '--listen', '127.0.0.1:0', '--pool', '1') as shared:
        shared.person = person
        yield shared


def read(path):
    with open(os.path.join(TOP, path), encoding='utf-8') as f:
        return f.read()


def examples():
    for path in FILES:
        fenced = re.findall(r'^```(\w*)\n(.*?)^```$', read(path), re.M | re.S)
        for n, text in enumerate((text for language, text in fenced if not language), 1):
            yield f'{path} {n}', text


EXAMPLES = dict(examples())


class Shell:
    """A person at a terminal, in a folder of files, with holt and this hub."""

    def __init__(self, hub, folder):
        self.hub, self.folder = hub, folder
        (folder / 'bin').mkdir()
        (folder / 'bin/holt').symlink_to(hub.who.argv()[-1])
        (hub.person / '.curlrc').write_text('fail\nsilent\nshow-error\n')
        plain = {k: v for k, v in hub.env.items() if not k.startswith('XDG_')}
        self.env = {**plain, 'PATH': f'{folder}/bin:{hub.env["PATH"]}', 'HOME': str(hub.person)}

    def put(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def run(self, text, typed=b''):
        if 'curl' in text and not shutil.which('curl'):
            pytest.skip('curl is missing: scripts/deps test')
        master, slave = pty.openpty()
        try:
            os.write(master, typed)
            done = subprocess.run(['bash', '-ec', text.replace('5757', str(self.hub.address[1]))],
                                  env=self.env, cwd=self.folder, stdin=slave,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  timeout=110, check=False)
        finally:
            os.close(master)
            os.close(slave)
        assert done.returncode == 0, (text, done)
        return done.stdout


@pytest.fixture
def shell(hub, tmp_path):
    yield Shell(hub, tmp_path)
    for name in hub.names():
        hub.ok('down', name)


# ---- the examples

def rest_curl(shell, text):
    answers = [json.loads(part) for part in re.findall(r'\{.*?\}(?=\{|$)',
                                                       shell.run(text).replace('\n', '')) if part]
    assert answers[-1] == {'status': 'terminated', 'id': 'demo'} and 'Linux' in str(answers)


def rest_open(shell, text):
    shell.hub.check(json.loads(text),
                    shell.hub.by_name['sandboxes.exec'][2]['x-websocket']['client'])


def rest_error(shell, text):
    shell.hub.check(json.loads(text), shell.hub.document['components']['schemas']['Error'])


def auth_header(shell, text):
    assert text == 'Authorization: Bearer TOKEN\n'


def sandbox(shell, text):
    shell.put('main.py', 'print("from main")\n')
    shell.put('server.py', SERVER)
    said = shell.run(text, typed=b'echo on a $TERM; exit\n')
    assert 'call\n' in said and 'from main\n' in said and 'echo' in said


def snapshot(shell, text):
    shell.hub.ok('up', '--name', 'agent')
    shell.hub.ok('exec', 'agent', '--', 'sh', '-c', 'mkdir src; echo x > src/main.c')
    assert shell.run(text).endswith('agent-2\n')
    assert shell.hub.ok('fs', 'read', 'agent-2', 'src/main.c') == b'x\n'
    for kept in shell.hub.json('snapshot'):
        shell.hub.ok('snapshot', 'rm', kept['id'])


def build(shell, text):
    shell.put('agent-tool/holt.json', EXAMPLES['man/holt-build.1.scd 1'])
    shell.put('agent-tool/tool.py', 'def answer(n):\n    return f"answer {n}"\n')
    shell.put('request-main.py', 'import tool\nprint(tool.answer(42))\n')
    said = shell.run(text.replace('/tmp/', ''))
    # of exec, and of logs
    assert said.startswith('agent-tool:latest') and said.count('answer 42\n') == 2
    shell.hub.ok('images', 'rm', 'agent-tool')


def run_with_input(shell, text):
    shell.put('names', 'b\na\n')
    assert shell.run(text, typed=b'echo here: $((6*7)); exit\n').endswith('a\nb\n')


def run(shell, text):
    shell.put('Makefile', 'check:\n\techo checked > result\n')
    shutil.chown(shell.folder, shell.hub.who.uid)
    shell.run(text)
    assert (shell.folder / 'result').read_text() == 'checked\n'


def serve(shell, text):
    first, second = text.splitlines()
    assert first.startswith('holt serve ')  # there is one; its options are tried in test_serve.py
    assert json.loads(shell.run(second.replace('$XDG_RUNTIME_DIR/holt/holt.sock',
                                               shell.hub.paths[0])))


def version(shell, text):
    assert json.loads(shell.run(text))['name'] == 'holt'


def hub_status(shell, text):
    said = shell.run(text)
    assert 'socket' in said and '"running":true' in said


def readme_hub(shell, text):
    """There is one already."""
    serve, status, token, connect, remote = text.splitlines()
    assert serve.startswith('holt serve &')
    assert 'socket' in shell.run(status) and len(shell.run(token).strip()) > 30
    assert shell.run(connect.split('#')[0] + '< /dev/null') == ''
    here = 'http://127.0.0.1:%d' % shell.hub.address[1]
    shell.run(remote.split('#')[0].replace('https://hub.example', here) + '< /dev/null')


def readme_client(shell, text):
    assert 'Created sandbox' in shell.run(text.splitlines()[-1])
    assert len(shell.hub.names()) == 1


def readme_verbs(shell, text):
    shell.put('Makefile', 'all:\n\techo made\n')
    shell.put('untrusted', '#!/bin/sh\necho "not trusted, in $PWD"\n')
    (shell.folder / 'untrusted').chmod(0o755)
    shutil.chown(shell.folder, shell.hub.who.uid)
    said = shell.run(text.replace("'exit 3' ", "'exit 3' || test $? = 3 "), typed=b'exit\n')
    assert said.startswith('42\n') and 'not trusted, in /src\n' in said
    assert said.count('made\n') >= 2 and '"exit_code":3' in said


RUNS = {
    'README.md 1': 'clones, builds and tests: scripts/test-fresh does', 'README.md 2': readme_hub,
    'README.md 3': readme_client, 'README.md 4': readme_verbs,
    'docs/rest.md 1': rest_curl, 'docs/rest.md 2': rest_open, 'docs/rest.md 3': rest_error,
    'docs/templates.md 1': 'its words are places for others; '
    'test_templates.py and test_images.py run them',
    'docs/templates.md 2': 'stands in holt-build(1), too, and runs with that',
    'man/holt-sandbox.1.scd 1': sandbox, 'man/holt-snapshot.1.scd 1': snapshot,
    'man/holt-build.1.scd 1': 'runs with the next', 'man/holt-build.1.scd 2': build,
    'man/holt-images.1.scd 1': 'wants a registry, docker and debootstrap; '
    'test_pull.py and test_images.py have such',
    'man/holt-run.1.scd 1': run_with_input, 'man/holt-run.1.scd 2': run,
    'man/holt-serve.1.scd 1': serve,
    'man/holt-hub.1.scd 1': hub_status,
    'man/holt-auth.1.scd 1': auth_header, 'man/holt-auth.1.scd 2': version,
}


def test_each_example_has_its_row():
    assert set(EXAMPLES) == set(RUNS)


@pytest.mark.parametrize('place', [place for place, run_it in RUNS.items() if callable(run_it)])
def test_example(shell, place):
    RUNS[place](shell, EXAMPLES[place])


# ---- names

def test_routes(hub):
    """Each stands in docs/rest.md and in holt-serve(1),
    as such or behind the one that it shares its beginning with."""
    rest, man = read('docs/rest.md'), read('man/holt-serve.1.scd').replace('\\_', '_')
    for path, method, operation in hub.operations():
        last = path.rpartition('/')[2]
        if path.startswith('/sandbox.v1.Sandbox/'):
            assert f'`{last}`' in rest and f'_{last}_' in man, path
            continue
        assert (f'{method} {path}`' in rest or f'`{path}`' in rest or path.startswith('/v1/files/')
                and f'`{last}`' in rest), (method, path)
        named = path.replace('{id}', 'ID').replace('{exec}', 'EXEC')
        within = re.sub(r'^/v1/sandboxes/ID/', '', named)
        shared = (path.startswith(('/v1/files/', '/v1/workspaces/{name}/'))
                  or path.startswith('/v1/sandboxes/{id}/execs/{exec}/'))
        assert f'_{named}_' in man or f'_{within}_' in man or shared and f'_{last}_' in man, (
            method, path)


def test_codes(hub):
    rows = re.findall(r'^\| `(\w+)` \| (\d+) \| `(\w+)` \| (.*?) ?\|$', read('docs/rest.md'), re.M)
    told = {code: int(status) for code, status, _, _ in rows}
    for path, _, operation in hub.operations():
        for status, response in operation['responses'].items():
            if int(status) >= 400 and path.startswith('/v1/'):
                for code in response['description'].split(', '):
                    assert told[code] == int(status), (path, code)
    context = hub.document['components']['schemas']['Error']['properties']['error']['properties'][
        'context']['properties']
    assert ({name for _, _, _, about in rows for name in re.findall(r'`(\w+)`', about)}
            == set(context))


def test_states(hub):
    told = set(re.findall(r'^\| `(\w+)` \|.*\|.*\|$',
                          read('docs/sandboxes.md').split('## Pause')[0], re.M))
    state = next(p for p in hub.by_name['sandboxes.list'][2]['parameters'] if p['name'] == 'state')
    assert told == set(state['schema']['enum'])


def test_verbs_and_options(hub):
    """Each verb stands in holt(1) and on its page, with its words;
    a page has the options of its verbs, and no others."""
    known, variables, first = {}, {}, read('man/holt.1.scd')
    for verb in re.findall(r'^  ([\w-]+) ', hub.ok('help').decode(), re.M):
        own = hub.ok('help', verb).decode()
        assert f'*{verb}*' in first or f'*{verb} ' in first, verb
        for words in [[verb], *re.findall(rf'^  ({verb}) (\w+) ', own, re.M)]:
            text = hub.ok('help', *words).decode()
            page = re.search(r'^More: man (\S+)$', text, re.M)[1]
            assert re.search(rf'\*(holt |{verb} )*{words[-1]}\b',
                             read(f'man/{page}.1.scd')), (words, page)
            variables.setdefault(page, set()).update(re.findall(r'\(\$(HOLT_\w+)\)', text))
            known.setdefault(page, set()).update(re.findall(r'^ .*?(--[\w-]+)', text, re.M))
    for page in known:
        told = {o for line in re.findall(r'^\*-.*', read(f'man/{page}.1.scd'), re.M)
                for o in re.findall(r'--[\w-]+', line)}
        assert told | {'--help'} == known[page] | {'--help'}, page
        said = set(re.findall(r'\*(HOLT_\w+)\*', read(f'man/{page}.1.scd').replace('\\_', '_')))
        assert variables[page] <= said, page
