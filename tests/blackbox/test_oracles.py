"""No door tells of a secret that it does not show. Two worlds differ in the bytes of their secrets
alone. Each door that looks for a text or pattern of the caller is asked the same about both, with
guesses of one's secrets and of none: the answers are the same."""

import json
import os
import re
import shutil

import pytest

import host
import modules
from client import until
from rest import Rest
from test_coding import Project
from test_serve import Session, post

# Those of a world have the lengths of those of the other.
SECRETS = {
    'east': {'password': 'kx9Lq2vTzz',
             'token': 'gh' + 'p_' + 'R7fK2mQz9TbX4wLc8NvH1sYd6GpJ3aEu5oZi',
          'key': 'MIIEowIBAAKCAQEAq7Z1' + 'c4' * 22},
    'west': {'password': 'Wn4tRb8yQx',
             'token': 'gh' + 'p_' + 'Zq3Wd8Yn5VkB2jRx7CmU6hTe1PsL4aGi9oFw',
          'key': 'MIIEpAIBAAKCAQEAz0Y8' + 'd7' * 22}}
PLAIN = ''.join(f'line {n} of what nobody hides\n' for n in range(60_000))


def files(secret):
    env = (f'# first\nA_PORT=8080\nDB_PASSWORD={secret["password"]}\nA_HOST=db\n'
           f'GITHUB_TOKEN={secret["token"]}\nlast=1\n')
    return {
        'env': env,
        'conf/app.yml': f'db:\n  user: joe\n  password: {secret["password"]}\n  port: 1\n',
        'key.pem': f'-----BEGIN RSA PRIVATE KEY-----\n{secret["key"]}\nAAAA{secret["key"]}\n'
                   '-----END RSA PRIVATE KEY-----\nafter\n',
        'large.txt': PLAIN + env + PLAIN, 'bin': b'db\0' + env.encode() + b'\0\1',
        'deep/bin2': b'x' * 100_000 + b'\n' + env.encode() + b'\0\1',
        'settings.py': f'def connect(port, password="{secret["password"]}"):\n'
                       '    return port\n\n'
                       f'API_TOKEN = "{secret["token"]}"\n\n\nclass Database:\n'
                       f'    def login(self, password="{secret["password"]}"):\n        pass\n',
        f'names/{secret["token"]}.txt': 'A_PORT=1\n', 'plain.txt': 'DB_PASSWORD and A_PORT\n'}


# ---- what is asked -------------------------------------------------------------------------------

A = SECRETS['east']
GUESSES = [A['password'], A['password'][:4], A['token'][:12], A['token'][-6:], A['key'][:24]]


def patterns(guess):
    """Regular expressions that tell of a secret by what they match, count, or lead to."""
    return [guess, f'A_PORT|{guess}', f'DB_PASSWORD=\\b{guess}|{guess}', f'PASSWORD=({guess}.*|$)',
            f'(?i)^.*{guess}.*$|db', f'(?s-u:{guess}.*)|last']


def greps(guess):
    for i, pattern in enumerate(patterns(guess)):
        yield {'pattern': pattern, **({}, {'output_mode': 'count'}, {'context': 2}, {},
                                      {'output_mode': 'files_with_matches'},
                                      {'context': 1, 'multiline': True})[i]}
    for path in ('env', 'bin', 'large.txt'):
        yield {'pattern': f'{guess}|A_PORT', 'path': path, 'context': 1}
    yield {'pattern': guess, 'path': 'bin'}
    yield {'pattern': guess, 'offset': 1}
    yield {'pattern': 'A_PORT', 'glob': f'{guess}*'}
    yield {'pattern': f'PORT|{guess}', 'head_limit': 2, 'path': 'large.txt'}


# Each door, and what it is asked for a guess.
DOORS = {
    'Grep': greps,
    'Glob': lambda g: [{'pattern': p} for p in (f'*{g}*', f'names/{{{g}*,*.x}}', '**')],
    'search_code': lambda g: [{'query': q} for q in (g, f'password {g}', f'connect {g}')],
    'Edit': lambda g: [{'file_path': 'env', 'old_string': old, 'new_string': 'x',
                        'replace_all': every}
                       for old in (g, f'DB_PASSWORD={g}', f'{g}\nA_HOST=db')
                       for every in (False, True)] +
                      [{'file_path': 'env', 'old_string': 'last=1', 'new_string': 'last=1'}],
    'watch_process': lambda g: [{'error_patterns': [p, 'never']} for p in patterns(g)
                                if '(?' not in p],
    'sandbox_exec_output': lambda g: [{'wait_for': g}, {'wait_pattern': f'{g}|last'}],
    'exec.wait': lambda g: [{'text': f'DB_PASSWORD={g}'}, {'pattern': f'{g}|last'}],
    'module.info': lambda g: [{'query': g}, {'query': f'text {g}'}],
    'module.search': lambda g: [{'query': g}, {'query': 'gives'}],
    'sandbox.list': lambda g: [{'label': f'key={A["token"]}'}, {'label': 'key'}],
}


class World:
    """A workspace, a sandbox and a module of one name, with what is asked of them."""

    def __init__(self, name, project, hub):
        self.name, self.project, self.hub = name, project, hub
        self.mcp = Session(hub, '/mcp?tools=all')
        hub.create(id=name, labels={'key': SECRETS[name]['token']})
        for path, content in files(SECRETS[name]).items():
            if '/' in path:
                project.folder(os.path.dirname(path))
            project.put(path, content)
        hub.post('/v1/files/write', sandbox=name, path='env', content=project.get('env').decode())

    def tool(self, tool, **arguments):
        with self.hub.wire() as wire:
            wire.sock.settimeout(200)
            self.mcp.call(wire, tool, **arguments)
            said = self.mcp.answer(wire)['result']
        return {'said': said['content'], 'facts': said.get('_meta', {}).get('holt/facts'),
                'failed': said.get('isError')}

    def asked(self, door, **arguments):
        """The answer, where it names neither world nor what differs from call to call."""
        ask = getattr(self, door.replace('.', '_'), None)
        answer = ask(**arguments) if ask else self.tool(door, workspace=self.name, **arguments)
        text = json.dumps(answer, sort_keys=True)
        asked = json.dumps(arguments)
        for world in SECRETS.values():
            assert not [s for s in world.values() if s in text and s not in asked], (door, text)
        return VARIES.sub('_', text)

    def watch_process(self, **arguments):
        said = self.tool('watch_process', workspace=self.name, command='cat env; cat env >&2',
                         **arguments)
        shell = re.search(r'exec-[0-9a-f]+', json.dumps(said))[0]

        def ended():
            said = self.tool('watch_process_events', workspace=self.name, shell_id=shell)
            return said if 'exit=' in json.dumps(said) else None
        return until(ended, what='the end of the program')

    def job(self):
        job = self.hub.exec(self.name, 'cat /workspace/env', background=True)['exec_id']
        self.hub.call('POST', f'/v1/sandboxes/{self.name}/execs/{job}/wait', {})
        return job

    def sandbox_exec_output(self, **arguments):
        return self.tool('sandbox_exec_output', sandbox=self.name, exec=self.job(),
                         wait_seconds=20, **arguments)

    def exec_wait(self, **arguments):
        at = f'/v1/sandboxes/{self.name}/execs/{self.job()}/wait'
        return self.hub.call('POST', at, arguments)

    def module_info(self, query):
        return self.tool('mcp_server_info', name=self.name, query=query)

    # Of both at once: an answer is the same if each is in it, or neither.

    def module_search(self, query):
        said = json.dumps(self.tool('search_modules', query=query))
        east, west = (said.count(f'mcp-{name}') for name in SECRETS)
        assert east == west, (query, said)
        return east

    def sandbox_list(self, label):
        found = self.hub.call('GET', f'/v1/sandboxes?label={label}')
        east, west = (name in json.dumps(found) for name in SECRETS)
        assert east == west, (label, found)
        return east


VARIES = re.compile(r'exec-[0-9a-f]+|\b20\d\d-\d\d-\d\dT[0-9:.]+Z|:[a-z2-7]{10}\]'
                    r'|\b(east|west)\b|"[a-z_]+_(us|ms|bytes)": ?[0-9.]+')


@pytest.fixture(scope='module')
def worlds(me, tmp_path_factory):
    before = host.Residue(me.trees)
    projects = {name: Project(me) for name in SECRETS}
    flags = [word for name, p in projects.items() for word in ('--workspace', f'{name}={p.path}')]
    servers = {name: modules.server(f'TOOLS[:] = [tool("echo", "Gives text. {s["token"]}"), '
                                    f'tool("other", "password={s["password"]}")]\nmain()')
               for name, s in SECRETS.items()}
    home = modules.home(me, str(tmp_path_factory.mktemp('oracles')), **servers)
    with Rest(me, home, '--listen', '127.0.0.1:0', '--pool', '0', *flags) as hub:
        for name in SECRETS:
            modules.approve(hub, name)
            hub.post(f'/v1/modules/{name}/test')
        yield [World(name, projects[name], hub) for name in SECRETS]
    for project in projects.values():
        shutil.rmtree(project.path)
    before.check()


@pytest.mark.parametrize('door', DOORS)
def test_answers_depend_on_nothing_that_is_not_shown(worlds, door):
    east, west = worlds
    if door == 'Edit':
        for world in worlds:
            world.tool('Read', workspace=world.name, file_path='env')
    seen = set()
    for guess in GUESSES:
        for arguments in DOORS[door](guess):
            answers = [world.asked(door, **arguments) for world in (east, west)]
            assert answers[0] == answers[1], (door, arguments)
            seen.add(answers[0])
    assert len(seen) > 1  # it finds what is shown


# Arguments that are looked for in what a door shows, and the doors that have them. Where another
# test asks, or nothing that is shown is searched, it says so.
LOOKED_FOR = {
    'pattern': {'Grep', 'Glob', 'exec.wait', '/v1/approvals: of what is asked from here on'},
    'glob': {'Grep'}, 'old_string': {'Edit'}, 'error_patterns': {'watch_process'},
    'text': {'exec.wait', 'ui_textbox, ask, /api/prompts: an initial text'},
    'wait_for': {'sandbox_exec_output'}, 'wait_pattern': {'sandbox_exec_output'},
    'query': {'search_code', 'module.search', 'module.info'}, 'label': {'sandbox.list'},
    'text_contains': {'test_conversations.py::test_a_filter_of_history_tells_nothing_of_a_secret'},
    'filter': {'Connect: must be empty'}}
# The others: names, ids, addresses and paths, which are known whole or lead to nothing, what is
# stored or run, times, numbers and choices.
OTHERS = set('''
    Idempotency-Key X-Sandbox-Id acp_server action after after_seq all allow_free_text approval_id
    archived args arguments audit_id background before_seq case_insensitive check children close
    code cold cols command content context conversation_id count cpu_ms cpus cursor cwd data
    data_base64 debug decision delay_seconds delete description digest discard disk_mb encoding env
    event_types exec exec_id file_id file_path files follow fork free_text from guest_port
    head_limit heap_mb host_port id idle_seconds idle_timeout_seconds ids image init_wait_seconds
    initial_prompt keep_bytes key kill kind labels language limit limits literal live login
    make_parents
    max_bytes max_calls max_output_bytes memory_mb message message_id mode module modules multiline
    name named network new_string no_label offset option_id options outcome output_kb output_mode
    pageSize pageToken parent path pause_source pid pids pool port profiles prompt question
    raw reads recursive renames replace_all replicas request_id resources result retention revision
    rows run_in_background sandbox schema scope scopes seconds secrets session_id settings shell_id
    signal since since_event_id snapshot source stack_kb state stdin stdin_base64 stdin_open stream
    style target template timeout timeout_seconds title to tool tools topics tty ttl_seconds until
    usage user value values volumes wait wait_seconds wall_ms what who working_dir workload
    workspace workspace_mode yes_label'''.split())


def test_each_argument_is_known(worlds):
    """A new one says whether it is looked for, and then in which door of this test."""
    world, _ = worlds
    with world.hub.wire() as wire:
        wire.send(post(world.hub, {'jsonrpc': '2.0', 'id': 7, 'method': 'tools/list', 'params': {}},
                       world.mcp.path, fields=world.mcp.fields))
        tools = world.mcp.answer(wire)['result']['tools']
    found = {(tool['name'], name) for tool in tools for name in tool['inputSchema']['properties']}
    api = world.hub.call('GET', '/v1/openapi.json')
    for path, methods in api['paths'].items():
        for one in methods.values():
            body = one.get('requestBody', {}).get('content', {}).get('application/json', {})
            schema = body.get('schema', {})
            if '$ref' in schema:
                schema = api['components']['schemas'][schema['$ref'].rsplit('/', 1)[1]]
            found |= {(path, p['name']) for p in one.get('parameters', []) if 'name' in p}
            found |= {(path, name) for name in schema.get('properties', {})}
    assert not {f for f in found if f[1] not in OTHERS and f[1] not in LOOKED_FOR}
    assert {name for _, name in found} >= set(LOOKED_FOR) | OTHERS
    known = {door for doors in LOOKED_FOR.values() for door in doors if ':' not in door}
    assert known == set(DOORS)
