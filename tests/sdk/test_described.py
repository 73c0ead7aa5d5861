"""What the SDKs ask and read is what /v1/openapi.json says, and all that it says of sandboxes can
be asked by them but what is listed here."""

import dataclasses
import inspect
import json
import os
import re
import subprocess

import pytest

import holt
from conftest import HERE, TOP, node
from face import Face
from holt import Limits, NetworkPolicy, SecretRef, Terminal, Volume
from paper import Paper, known

# Routes that no SDK asks, by how they begin, and why.
NOT_COVERED = {
    '/api/': 'conversations and questions: the page and the command line have them',
    '/sandbox.v1.Sandbox/': 'the same operations for clients of Connect',
    '/v1/openapi.json': 'for generators of clients',
    '/v1/fork': 'the form of mitos: create() and fork() have both',
    '/v1/templates post': 'an operator makes images',
    '/v1/sandboxes/{id}/processes': 'commands.list() has those that were started, `ps` the others',
    '/v1/sandboxes/{id}/signal': 'signal() of a command, `kill` for others',
    '/v1/sandboxes/{id}/usage': 'info(usage=True)',
    '/v1/vitals': 'info(usage=True)', '/v1/usage': 'list() and info(usage=True)',
    '/v1/events': 'an operator watches the hub',
    '/v1/snapshots post': 'an operator moves snapshots between hubs',
    '/v1/snapshots/{id}/export': 'the same',
    '/v1/audit get': 'an operator reads the log; audit_record() has one record',
    '/v1/approvals': 'a person answers', '/v1/keys': 'an operator makes keys',
    '/v1/secrets': 'an operator stores secrets: programs have references',
    '/v1/workspaces': 'holt ws; create(workspace=…) uses one',
    '/v1/javascript': 'code for modules, by MCP and holt js',
    '/v1/modules': 'an operator approves modules; create(modules=…) lets programs call them',
    '/v1/module-results': 'the same', '/v1/tools': 'the same',
}
# Members of covered routes, and why.
OTHER_FORMS = {f'network.{name}' for name in (  # of mode and allow
    'block', 'egress', 'inbound', 'allow_domains', 'allow_cidrs', 'inbound_cidrs')}
NOT_SAID = {
    'sandboxes.create': OTHER_FORMS, 'network.set': OTHER_FORMS,
    'sandboxes.fork': {'id', 'template', 'pause_source'},  # ids; the source's; without a meaning
    'snapshots.restore': {'id'},  # ids
    'sandboxes.exec': {'stdin'},  # it always comes
    'pty': {'stdin'},
    'execs.wait': {'stream'},  # both
    # for the operator's own copies, by the command line
    'archive.download': {'raw'}, 'files.read': {'raw'}, 'workspaces.export': {'raw'},
    'archive.upload': {'literal'}, 'workspaces.import': {'literal'},
}
READ = {  # where the document describes what these classes have
    'SandboxInfo': ('sandboxes.get', None), 'SnapshotInfo': ('snapshots.get', None),
    'FileInfo': ('files.list', 'entries'), 'WatchEvent': ('watch', None),
    'ProcessInfo': ('execs.get', None), 'Forward': ('forwards.list', 'forwards'),
    'Preview': ('preview', None), 'Change': ('sandboxes.diff', 'changes'),
    'RunResult': ('run', None), 'NetworkInfo': ('network.get', None)}
NOT_READ = {'NetworkInfo': {'sandbox', 'mode', 'allow'},
            'ProcessInfo': {'sandbox'}}


@pytest.fixture(scope='module')
def document(hub):
    return hub.document


@pytest.fixture
def paper(document):
    one = Paper(document)
    yield one
    one.close()
    assert one.wrong == []


async def everything(face):
    """Every call with all that can be said."""
    client, policy = face.client, NetworkPolicy.deny_by_default().allow('a', 1, [holt.HttpRule()])
    secrets = {'KEY': SecretRef('name', file=True)}
    box = await face.Sandbox.create(
        'host', network=policy, ttl_seconds=1, idle_seconds=1, id='x', env={'A': 'b'}, cwd='/',
        user='root', limits=Limits(64, 16, 16, 0.5, 64), labels={'a': 'b'}, secrets=secrets,
        volumes=[Volume('/a', '/b', 'rw')], workspace='w', workspace_mode='copy', profiles=['p'],
        modules=['m'], retention='stop', debug=True, client=client)
    assert box.id == 'text'
    await face.Sandbox.connect('x', client=client)
    listed, _ = await face.Sandbox.list(state='running', labels=['a'], client=client)
    assert listed.usage and listed.volumes and listed.modules and listed.source
    await face.Sandbox.restore('x', 2, labels={'a': 'b'}, client=client)
    await face.Sandbox.restore('x', ids=['y'], client=client)
    await box.info(usage=True)
    assert [one.id for one in await box.fork(2, labels={'a': 'b'})] == ['text']
    await box.fork(ids=['y'])
    await box.snapshot('n', ttl_seconds=1)
    for call in (box.pause, box.resume, box.diff, box.close, client.health, client.templates):
        await call()
    await box.stop(cold=True)
    await box.set_timeout(1)
    await box.diff(limit=1)
    await box.kill(discard=True)
    await client.snapshots()
    await client.snapshot('x')
    await client.delete_snapshot('x')
    await client.audit_record('x')
    answer = await client.run({
        'command': ['a'], 'state': {'retention': 'stop'}, 'language': 'l', 'image': 'i',
        'files': [{'path': 'p', 'content': 'c'}], 'env': {'A': 'b'}, 'secrets': secrets,
        'network': {'mode': 'bridge', 'allow': [{'host': 'a', 'port': 1}]}, 'working_dir': '/',
        'stdin': 'x', 'timeout_seconds': 1, 'max_output_bytes': 1024, 'ttl_seconds': 1})
    assert answer.cleanup and answer.receipt and answer.snapshot_id

    files = box.files
    assert await files.read('p') == 'bytes' and await files.read_bytes('p') == b'bytes'
    await files.write('p', 'text', mode=0o600)
    await files.write('p', b'bytes')
    await files.list('p', limit=1)
    for name in ('list', 'stat', 'exists', 'mkdir', 'remove'):
        await getattr(files, name)('p')
    await files.remove('p', recursive=True)
    await files.rename('p', 'q')
    assert len([event async for event in await files.watch('p', recursive=True)]) > 5
    assert await (await files.download('p', named=True)).read() == b'tar'
    await files.upload('p', [b'1', b'2'])

    more = {'env': {'A': 'b'}, 'cwd': '/', 'user': 'root', 'secrets': secrets, 'timeout_seconds': 1}
    commands = box.commands
    done = await commands.run(['a', 'b'], stdin='x', max_output_bytes=1024, **more)
    assert done.stdout == 'bytes' and done.audit_id == 'run_paper' and done.limit == 'memory'
    await commands.run('a', stdin=b'x', on_stdout=lambda data: None, **more)
    done = await (await commands.stream(['a'], stdin='x', **more)).wait()
    assert done.stdout == 'bytes'
    await commands.stream('a', stdin=b'x')
    await (await commands.code('a', 'bash', timeout_seconds=1)).wait()
    process = await commands.start(['a'], stdin=b'x', stdin_open=True, terminal=Terminal(1, 1, 't'),
                                   id='x', keep_bytes=1 << 20, **more)
    await commands.start('a', stdin='x')
    await commands.list()
    await process.info()
    await process.output(1, limit=1, stream='stdout')
    assert (await (await process.follow(1, stream='stderr')).wait()).exit_code == 1
    await process.wait(1)
    await process.wait_for('a', pattern='b', timeout_seconds=1)
    await process.write('x', close=True)
    await process.write(b'x')
    await process.resize(1, 1)
    await process.signal(1)
    await process.kill()
    for opening in (commands.open(['a'], terminal=Terminal(1, 1, 't'), **more), process.attach(1),
                    box.pty(['a'], terminal=Terminal(1, 1, 't'), **more)):
        async with await opening as channel:
            await channel.write('x')
            await channel.resize(1, 1)
            await channel.signal(1)
            await channel.close_stdin()
            assert (await channel.wait(60)).stdout == 'out'

    ports = box.ports
    await ports.forward(1, 2)
    await ports.list()
    await ports.close(1)
    await ports.preview(1, 1)
    assert (await ports.expose(1, '/a')).text == 'served'
    assert (await box.network.get()).policy.hosts[0].http
    await box.network.set(policy)
    await box.network.allow('a')
    await box.network.revoke('a')


def covers(paper):
    """Both ways: see NOT_COVERED and NOT_SAID."""
    missing, unused = {}, set(NOT_COVERED)
    for path, item in paper.document['paths'].items():
        for method, operation in item.items():
            name = operation['operationId']
            why = [key for key in NOT_COVERED if f'{path} {method}'.startswith(key)]
            unused -= set(why)
            if name in paper.used:
                assert not why or name == 'snapshots.list' or name == 'templates.list', (name, why)
                left = known(operation) - paper.used[name]
                if left != NOT_SAID.get(name, set()):
                    missing[name] = left ^ NOT_SAID.get(name, set())
            elif not why:
                missing[name] = 'never asked'
    assert missing == {} and unused == set()


@pytest.mark.parametrize('kind', ['blocking', 'asyncio'])
def test_python_asks_what_is_described(paper, kind):
    with Face(kind, {'base_url': paper.url, 'api_key': 'x'}) as face:
        face.wait(everything(face))
    assert paper.wrong == []
    covers(paper)


def test_typescript_asks_what_is_described(compiled, paper):
    node(os.path.join(HERE, 'described.mjs'), env={'HOLT_BASE_URL': paper.url,
                                                   'HOLT_API_KEY': 'x'})
    assert paper.wrong == []
    covers(paper)


def described(document, operation, below):
    """Members of what an operation answers."""
    one, = [o for item in document['paths'].values() for o in item.values()
            if o['operationId'] == operation]
    schema = next(iter(one['responses']['200']['content'].values()))['schema']
    while below or 'oneOf' in schema:
        schema = schema['oneOf'][-1] if 'oneOf' in schema else schema['properties'][below]['items']
        below = below if 'oneOf' in schema else None
    return set(schema['properties'])


@pytest.mark.parametrize('name', READ)
def test_what_is_read_is_described(document, name):
    told = described(document, *READ[name]) - NOT_READ.get(name, set())
    ours = {'FileInfo': {'path'}, 'NetworkInfo': {'policy'}}.get(name, set())
    members = {f.metadata.get('wire', f.name) for f in dataclasses.fields(getattr(holt, name))}
    assert members - ours == told
    with open(os.path.join(TOP, 'sdk/typescript/src/types.ts'), encoding='utf-8') as f:
        text = re.search(rf'export (?:interface|class) {name} \{{(.*?)\n\}}', f.read(), re.S)[1]
    names = {'template_id': 'image', 'exec_id': 'id', 'exec_time_ms': 'duration_ms',
             'fork_time_ms': 'made_ms', 'timeout_seconds': 'ttl_seconds'}
    camel = {re.sub('_([a-z0-9])', lambda m: m[1].upper(), names.get(one, one)) for one in told}
    found = set(re.findall(r'^\t(?:readonly )?(\w+)[?!]?: ', text, re.M))
    assert found - {'path' if name == 'FileInfo' else '', 'policy', 'port'} == camel


# ---- one SDK, three faces

PAIRS = [(getattr(holt, name), getattr(holt, 'Async' + name)) for name in (
    'Sandbox', 'Files', 'Commands', 'Process', 'Ports', 'Network', 'Client', 'Channel', 'Events',
    'CommandStream', 'Bytes')]


def public(cls):
    return {name: inspect.signature(one) for name, one in inspect.getmembers(cls, callable)
            if not name.startswith('_')}


@pytest.mark.parametrize('blocking, other', PAIRS)
def test_both_faces_are_one(blocking, other):
    """The same methods with the same parameters, all of them described."""
    plain = public(blocking)
    assert list(plain) == list(public(other))
    for name, signature in public(other).items():
        assert list(signature.parameters) == list(plain[name].parameters), name
        assert ([p.default for p in signature.parameters.values()]
                == [p.default for p in plain[name].parameters.values()]), name
        assert getattr(other, name).__doc__ and getattr(blocking, name).__doc__, name


def test_both_languages_are_one():
    """The same methods in both, in camel case."""
    with open(os.path.join(TOP, 'sdk/typescript/src/sandbox.ts'), encoding='utf-8') as f:
        text = f.read()
    own = {'Sandbox': {'toJSON'}, 'Files': set(), 'Commands': set(), 'Process': set(),
           'Ports': set(), 'Network': set()}
    for name, more in own.items():
        body = re.search(rf'\nexport class {name} (.*?)\n\}}', text, re.S)[1]
        found = [m for m in re.findall(r'^\t(?:static )?(?:async )?(\w+)\(', body, re.M)
                 if m != 'constructor']
        camel = {re.sub('_([a-z])', lambda m: m[1].upper(), one)
                 for one in public(getattr(holt, name))}
        assert set(found) - more == camel, name


def test_types():
    """mypy --strict, as for Python 3.9; of the examples, too."""
    done = subprocess.run(['mypy', '--config-file', 'pyproject.toml', '--cache-dir', '/dev/null'],
                          cwd=os.path.join(TOP, 'sdk/python'), capture_output=True, text=True,
                          timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_but_the_standard_library():
    import sys
    for name in os.listdir(os.path.join(TOP, 'sdk/python/holt')):
        if name.endswith('.py'):
            with open(os.path.join(TOP, 'sdk/python/holt', name), encoding='utf-8') as f:
                for module in re.findall(r'^(?:from|import) (\w+)', f.read(), re.M):
                    assert module in sys.stdlib_module_names, (name, module)
    with open(os.path.join(TOP, 'sdk/typescript/package.json'), encoding='utf-8') as f:
        assert 'dependencies' not in json.load(f)
