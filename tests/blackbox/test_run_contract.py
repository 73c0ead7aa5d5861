"""The contract for agents: one command from nothing to a bounded result, over REST, MCP and
`holt run --request`. docs/contract.md has what is documented; its examples are run here."""

import json
import os
import re
import shutil

import jsonschema
import pytest

from client import until
from rest import Failed
from test_hub_cli import Hub
from test_serve import Session

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(TOP, 'docs/contract.md')
# As the contract's own text has it.
SEED = {'language': 'python',
        'files': [{'path': '/work/main.py', 'content': "print('hello')"}],
        'command': ['python', '/work/main.py'], 'timeout_seconds': 20,
        'network': {'mode': 'none'}, 'state': {'retention': 'destroy'}}
VALUE = 'correct-horse-battery-staple-9'


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    home = tmp_path_factory.mktemp('run')
    os.chown(home, me.uid, me.uid)
    config = {'limits': {'sandboxes': 3}, 'principals': {'token': {'secrets': ['token', 'gone']}},
              'secrets': {'token': {'env': 'RUN_TOKEN'}, 'gone': {'env': 'RUN_GONE'}},
              'images': ['host'],
              'policy': {'rules': [{'name': 'no rm', 'actions': ['contract.run'],
                                    'when': {'/command/0': 'rm'}, 'then': 'deny'}]}}
    (home / 'config.json').write_text(json.dumps(config))
    os.chown(home / 'config.json', me.uid, me.uid)
    with Hub(me, home, '--listen', '127.0.0.1:0', '--pool', '1', '--allow', 'granted.example:443',
             env={'RUN_TOKEN': VALUE}) as shared:
        yield shared


@pytest.fixture(scope='module')
def schema(hub):
    return json.loads(hub.ok('run', '--schema'))


def ids(hub):
    return {one['id'] for one in hub.call('GET', '/v1/sandboxes')}


def ask(hub, *command, **more):
    return hub.post('/v1/run', **{**SEED, 'files': [], 'command': list(command), **more})


def refuse(hub, **more):
    """The failure; nothing was started."""
    before = ids(hub)
    with pytest.raises(Failed) as caught:
        hub.post('/v1/run', **{**SEED, **more})
    assert ids(hub) == before
    return caught.value.error


# ---- what is documented

def test_the_contract_as_it_is_written(hub, schema):
    answer = hub.post('/v1/run', **SEED)
    assert (answer['exit_code'], answer['stdout'], answer['stderr']) == (0, 'hello\n', '')
    assert not answer['timed_out'] and answer['retention'] == 'destroy'
    assert re.fullmatch('run_[0-9a-f]+', answer['audit_id']) and 'failure' not in answer
    assert answer['isolation'] == 'namespace' and answer['sandbox_id'] not in ids(hub)
    answered = {'$ref': '#/$defs/response', '$defs': schema['$defs']}
    jsonschema.Draft202012Validator(answered).validate(answer)


def test_the_receipt_is_of_the_record(hub, me):
    answer = hub.post('/v1/run', **SEED)
    receipt = json.loads(answer['receipt'])
    assert receipt['id'] == answer['audit_id'] and receipt['action'] == 'contract.run'
    file = os.path.join(me.work, 'receipt.json')
    for text, status in ((answer['receipt'], 0),
                         (answer['receipt'].replace('"outcome":"ok"', '"outcome":"no"'), 1)):
        with open(file, 'w', encoding='utf-8') as f:
            f.write(text)
        done = hub.run('audit', 'verify', file)
        assert done.returncode == status, done
    os.unlink(file)


def test_every_example_of_the_page(hub, schema):
    with open(PAGE, encoding='utf-8') as f:
        blocks = re.findall(r'```json\n(.*?)```', f.read(), re.S)
    checks = {kind: jsonschema.Draft202012Validator(
        {'$ref': f'#/$defs/{kind}', '$defs': schema['$defs']}) for kind in ('request', 'response')}
    seen = set()
    for block in blocks:
        example = json.loads(block)
        kind = 'request' if 'command' in example else 'response' if 'stdout' in example else None
        if kind:
            checks[kind].validate(example)
            seen.add(kind)
    assert seen == {'request', 'response'}
    for bad in ({}, {**SEED, 'surprise': 1}, {**SEED, 'state': {}}, {**SEED, 'command': []},
                {**SEED, 'secrets': {'A': 'literal'}}, {**SEED, 'timeout_seconds': 0}):
        with pytest.raises(jsonschema.ValidationError):
            checks['request'].validate(bad)
        refuse(hub, **{'state': {}, **bad} if bad else {'command': []})


def test_the_installed_schema_is_this(schema):
    with open(os.path.join(TOP, 'docs/run.schema.json'), encoding='utf-8') as f:
        assert json.load(f) == schema, 'holt run --schema > docs/run.schema.json'


# ---- its parts

def test_its_environment(hub):
    answer = ask(hub, 'sh', '-c', 'cat; pwd; echo "$A"; cat sub/f', env={'A': 'b c'}, stdin='in\n',
                 working_dir='/tmp', files=[{'path': '/tmp/sub/f', 'content': 'of it\n'}])
    assert answer['stdout'] == 'in\n/tmp\nb c\nof it\n'


def test_output_is_bounded(hub):
    answer = ask(hub, 'sh', '-c', 'head -c 100000 /dev/zero | tr "\\0" a; echo end >&2',
                 max_output_bytes=1024)
    assert len(answer['stdout']) < 1500 and answer['stderr'] == 'end\n'
    assert answer['stdout_truncated_bytes'] == 100000 - 1024
    assert answer['stderr_truncated_bytes'] == 0
    assert '\ufffd' in ask(hub, 'printf', '\\377')['stdout']


def test_a_granted_secret(hub):
    answer = ask(hub, 'sh', '-c', 'echo "$TOKEN" ${#TOKEN}; echo "$TOKEN" | base64',
                 secrets={'TOKEN': {'ref': 'token'}})
    assert answer['exit_code'] == 0 and VALUE not in json.dumps(answer)
    assert f' {len(VALUE)}\n' in answer['stdout'] and answer['stdout'].count('[REDACTED:') == 2


@pytest.mark.parametrize('retention, state', [('stop', 'stopped'), ('cold', 'cold')])
def test_what_is_kept(hub, retention, state):
    answer = ask(hub, 'touch', 'made', state={'retention': retention}, ttl_seconds=3600)
    assert 'cleanup' not in answer and answer['retention'] == retention
    kept = answer['sandbox_id']
    assert hub.call('GET', f'/v1/sandboxes/{kept}')['state'] == state
    hub.ok('resume', kept)
    assert hub.exec(kept, 'ls')['stdout'] == 'made\n'
    hub.delete(kept)


def test_a_snapshot_is_kept(hub):
    answer = ask(hub, 'touch', 'made', state={'retention': 'snapshot'}, ttl_seconds=3600)
    assert answer['sandbox_id'] not in ids(hub)
    snapshot = hub.call('GET', f'/v1/snapshots/{answer["snapshot_id"]}')
    assert snapshot['expires_at']
    hub.call('DELETE', f'/v1/snapshots/{answer["snapshot_id"]}')


# ---- the six failures

def test_timeout(hub):
    answer = ask(hub, 'sh', '-c', 'echo before; sleep 60', timeout_seconds=3)
    assert answer['timed_out'] and answer['exit_code'] == 124 and answer['failure'] == 'timeout'
    assert answer['stdout'] == 'before\n'


def test_guest_failed(hub):
    answer = ask(hub, 'sh', '-c', 'exit 3')
    assert answer['exit_code'] == 3 and answer['failure'] == 'guest_failed'
    error = refuse(hub, command=['no-such-program'])
    assert error['failure'] == 'guest_failed' and error['remediation']


@pytest.mark.parametrize('more', [
    {'command': ['rm', '-rf', '/']},
    {'image': 'other'},
    {'network': {'mode': 'bridge', 'allow': [{'host': 'other.example', 'port': 443}]}},
])
def test_policy_denied(hub, more):
    error = refuse(hub, **more)
    assert error['failure'] == 'policy_denied' and not error['retryable'] and error['cause']


def test_a_granted_network(hub):
    answer = ask(hub, 'getent', 'hosts', 'granted.example', 'other.example',
                 network={'mode': 'bridge', 'allow': [{'host': 'granted.example', 'port': 443}]})
    assert '127.1.' in answer['stdout'] and 'other' not in answer['stdout']
    assert ask(hub, 'getent', 'hosts', 'granted.example')['stdout'] == ''


@pytest.mark.parametrize('pointer, more', [
    ('/files/0/path', {'files': [{'path': '/etc/passwd', 'content': ''}]}),
    ('/files/0/path', {'files': [{'path': '/workspace', 'content': ''}]}),
    ('/files/0/path', {'files': [{'path': '/work/../etc/x', 'content': ''}]}),
    ('/files/0/path', {'files': [{'path': 'a/../../b', 'content': ''}]}),
    ('/files/0/path', {'files': [{'path': '..', 'content': ''}]}),
    ('/files/0/path', {'files': [{'path': 'a\0b', 'content': ''}]}),
    ('/files/0/path', {'files': [{'path': '', 'content': ''}]}),
    ('/files/0/content', {'files': [{'path': 'a', 'content': 'x' * (1 << 20) + 'x'}]}),
    ('/files/4/content', {'files': [{'path': str(i), 'content': 'x' * (1 << 20)}
                                    for i in range(5)]}),
    ('/files', {'files': [{'path': str(i), 'content': ''} for i in range(65)]}),
    ('/command', {'command': []}),
    ('/command/0', {'command': ['']}),
    ('/state', {'state': None}),
    ('/state/retention', {'state': {}}),
    ('/state/retention', {'state': {'retention': 'keep'}}),
    ('/secrets/TOKEN', {'secrets': {'TOKEN': 'literal'}}),
    ('/secrets/TOKEN/value', {'secrets': {'TOKEN': {'ref': 'token', 'value': 'literal'}}}),
    ('/network/mode', {'network': {'mode': 'host'}}),
    ('/network', {'network': {'mode': 'none', 'allow': [{'host': 'a.example', 'port': 1}]}}),
    ('/surprise', {'surprise': 1}),
    ('/env', {'env': {'A=B': 'c'}}),
    ('/timeout_seconds', {'timeout_seconds': 0}),
    ('/ttl_seconds', {'ttl_seconds': 31 * 86400}),
])
def test_validation_failed(hub, pointer, more):
    error = refuse(hub, **more)
    assert (error['failure'], error['pointer']) == ('validation_failed', pointer), error


def test_secrets_that_are_not_there(hub):
    """One that the caller may have is looked for when the sandbox is there, which is ended."""
    for name, failure in (('nothing-of-it', 'policy_denied'), ('gone', 'transport_failed')):
        error = refuse(hub, secrets={'TOKEN': {'ref': name}})
        assert error['failure'] == failure and name in error['cause'], error


def test_a_client_that_goes_leaves_nothing(hub):
    before = ids(hub)
    with hub.wire() as wire:
        wire.send(hub.request('POST', '/v1/run', body=json.dumps(
            {**SEED, 'files': [], 'command': ['sleep', '1000'], 'timeout_seconds': 600})))
        until(lambda: ids(hub) - before)
    until(lambda: ids(hub) == before)


def test_transport_failed(hub):
    """There is no room for one more sandbox."""
    made = [hub.create() for _ in range(3)]
    error = refuse(hub)
    assert error['failure'] == 'transport_failed' and error['retryable'] and error['cause']
    for one in made:
        hub.delete(one)
    assert hub.post('/v1/run', **SEED)['exit_code'] == 0


def test_cleanup_failed(me, tmp_path_factory):
    """What it printed is not lost, and the sandbox neither."""
    with Hub(me, tmp_path_factory.mktemp('full'), '--listen', '127.0.0.1:0', '--pool', '0') as hub:
        shutil.rmtree(os.path.join(hub.home, 'snapshots'))
        for status, failure in ((0, 'cleanup_failed'), (5, 'guest_failed')):
            answer = ask(hub, 'sh', '-c', f'echo done > f; echo done; exit {status}',
                         state={'retention': 'stop'})
            assert (answer['stdout'], answer['exit_code']) == ('done\n', status)
            assert answer['failure'] == failure and answer['cleanup']['cause'], answer
            assert hub.exec(answer['sandbox_id'], 'cat f')['stdout'] == 'done\n'
            hub.delete(answer['sandbox_id'])


# ---- the other doors

def test_by_the_command_line(hub, tmp_path):
    file = tmp_path / 'request.json'
    file.write_text(json.dumps({**SEED, 'command': ['sh', '-c', 'cat /work/main.py; exit 7']}))
    done = hub.run('run', '--request', str(file))
    assert done.returncode == 7, done.stderr
    assert json.loads(done.stdout)['stdout'] == "print('hello')"
    done = hub.run('run', '--request', '-', input=json.dumps({**SEED, 'state': {}}).encode())
    error = json.loads(done.stdout)['error']
    assert done.returncode == 120 and not done.stderr
    assert (error['failure'], error['pointer']) == ('validation_failed', '/state/retention')


@pytest.mark.parametrize('status, failure, more', [
    (120, 'validation_failed', {'timeout_seconds': 0}),
    (120, 'validation_failed', {'surprise': 1}),
    (121, 'policy_denied', {'command': ['rm', 'x']}),
    (121, 'policy_denied', {'image': 'other'}),
    (121, 'policy_denied', {'env': {'LD_PRELOAD': '/tmp/x'}}),
    (122, 'guest_failed', {'command': ['/not/there']}),
], ids=str)
def test_failures_by_the_command_line(hub, status, failure, more):
    """An error is JSON on standard output, with an exit status for its kind."""
    done = hub.run('run', '--request', '-', input=json.dumps({**SEED, **more}).encode())
    error = json.loads(done.stdout)['error']
    assert (done.returncode, error['failure'], done.stderr) == (status, failure, b''), done
    if failure != 'validation_failed':
        assert error['audit_id'].startswith('run_'), error


def test_a_request_is_not_its_callers(hub):
    """What the operator could grant is not granted to what a model wrote, but what the command line
    or the file allows."""
    wants = {**SEED, 'files': [], 'command': ['true'],
             'network': {'mode': 'bridge', 'allow': [{'host': 'a.example', 'port': 443}]}}

    def run(*options, **more):
        return hub.run('run', *options, '--request', '-',
                       input=json.dumps({**wants, **more}).encode())

    for options in ((), ('--allow', 'b.example:443'), ('--allow', 'a.example:80')):
        done = run(*options)
        error = json.loads(done.stdout)['error']
        assert (done.returncode, error['failure']) == (121, 'policy_denied'), done
        assert error['pointer'].startswith('/network/allow') and 'a.example:443' in error['cause']
    assert run('--allow', 'a.example:443').returncode == 0
    assert run(network={'mode': 'none'}).returncode == 0

    secret = {'network': {'mode': 'none'}, 'secrets': {'T': {'ref': 'token'}}}
    for options in ((), ('--secret', 'gone=T')):
        done = run(*options, **secret)
        error = json.loads(done.stdout)['error']
        assert (done.returncode, error['failure']) == (121, 'policy_denied'), done
        assert error['pointer'] == '/secrets/T/ref' and 'token' in error['cause'], error
    assert run('--secret', 'token=X', **secret).returncode == 0


LOADING = ['LD_PRELOAD', 'LD_LIBRARY_PATH', 'LD_AUDIT', 'PATH', 'IFS', 'ENV', 'BASH_ENV',
           'BASH_FUNC_ls%%', 'PYTHONPATH', 'PYTHONSTARTUP', 'PERL5OPT', 'PERL5LIB', 'RUBYOPT',
           'NODE_OPTIONS', 'GIT_SSH_COMMAND', 'JAVA_TOOL_OPTIONS', 'GCONV_PATH', 'GLIBC_TUNABLES',
           'AWKPATH', 'AWKLIBPATH', 'PSModulePath', 'SSL_CERT_FILE', 'SSL_CERT_DIR',
           'CURL_CA_BUNDLE', 'REQUESTS_CA_BUNDLE', 'NODE_EXTRA_CA_CERTS', 'TERMINFO',
           'TERMINFO_DIRS', 'TERMCAP', 'HOME', 'CC', 'CXX', 'LD', 'http_proxy', 'https_proxy',
           'all_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'ASAN_OPTIONS', 'TAR_OPTIONS',
           'GNUMAKEFLAGS', 'CFLAGS', 'MAVEN_OPTS', 'PYTEST_ADDOPTS', 'PYTEST_PLUGINS', 'VIMINIT',
           'MPLBACKEND', 'RSYNC_RSH', 'UV_INDEX_URL', 'KUBECONFIG', 'AWS_CONFIG_FILE',
           'CCACHE_PREFIX', 'PSQL_PAGER', 'SVN_EDITOR', 'HELM_PLUGINS', 'HDF5_PLUGIN_PATH',
           'XDG_CONFIG_HOME', 'OPENSSL_CONF', 'TF_CLI_ARGS', 'GIO_MODULE_DIR']


def test_variables_that_decide_what_is_loaded(hub, me):
    for name in LOADING:
        error = refuse(hub, env={'A': 'b', name: 'x'})
        assert error['failure'] == 'policy_denied' and name in error['cause'], error
        assert error['pointer'] == '/env/' + name
    for name in ('A', 'PATHS', 'MY_PATH', 'NODE_ENV', 'GOOGLE_KEY', 'RUST_LOG', 'LDX',
                 'TMPDIR', 'APP_CONFIG', 'PGHOST', 'AWS_REGION', 'OPTIONS', 'TOPTS'):
        assert ask(hub, 'printenv', name, env={name: 'x'})['stdout'] == 'x\n'


def test_by_mcp(hub):
    session = Session(hub, '/mcp?tools=run')
    with hub.wire() as wire:
        session.call(wire, 'run', **SEED)
        result = session.result(wire)
        assert json.loads(result['content'][0]['text']) == result['structuredContent']
        assert result['structuredContent']['stdout'] == 'hello\n'
        assert result['_meta']['holt/receipt']['action'] == 'contract.run'
        assert json.dumps(result).count('"seq"') == 1, 'the receipt is there once'
        session.call(wire, 'run', **{**SEED, 'state': {}})
        error = json.loads(session.result(wire)['content'][0]['text'])
        assert error['failure'] == 'validation_failed' and error['pointer'] == '/state/retention'
