"""What the hands of people who use Docker, Podman and kubectl expect of a command line."""

import json
import os
import pathlib
import re
import shutil
import socket

import pytest

from test_exec_cli import Keyboard
from test_hub_cli import FAILED, Hub

NOT_FOUND, NOT_RUN = 127, 126


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    with Hub(me, tmp_path_factory.mktemp('habits'), '--listen', '127.0.0.1:0',
             '--preview', '127.0.0.1:0', '--pool', '1') as shared:
        yield shared


@pytest.fixture
def box(hub):
    name = hub.ok('up').decode().strip()
    yield name
    hub.run('down', name)


# ---- exit statuses and remedies -----------------------------------------------------------------

@pytest.mark.parametrize('how', ['run', 'exec', 'exec -it'])
def test_exit_statuses(hub, box, how):
    """127: there is no such program; 126: it can't be run; 125: Holt failed; else the program's."""
    words = [*how.split(), *([box] if how != 'run' else [])]
    for status, program in ((NOT_FOUND, ['no-such-program']), (NOT_RUN, ['/etc/passwd']),
                            (7, ['sh', '-c', 'exit 7'])):
        if how == 'exec -it':
            with Keyboard(hub, *words, *program) as k:
                assert k.end() == status
        else:
            assert hub.run(*words, *program).returncode == status
    assert hub.run('exec', 'nobody', 'true').returncode == FAILED
    assert hub.run('run', '--image', 'no-such-image', 'true').returncode == FAILED


@pytest.mark.parametrize('how', ['run', 'exec'])
def test_a_program_that_is_not_there(hub, box, how):
    words = [how, *([box] if how == 'exec' else [])]
    hub.fails(NOT_FOUND, "Check the program's name", *words, 'no-such-program')
    hub.fails(NOT_RUN, 'chmod +x', *words, '/etc/passwd')
    at = ['-w', '/no/such/place', *words[1:]]
    hub.fails(NOT_RUN, '/no/such/place: No such file', how, *at, 'true')


def test_a_template_that_is_not_there(hub):
    for words in (['up', 'no-such-image'], ['run', '--image', 'no-such-image', 'true']):
        done = hub.fails(FAILED, 'there is no template "no-such-image"', *words)
        assert b'holt images pull' in done.stderr and b'holt ls' not in done.stderr, done


def test_a_port_that_is_taken(hub, box):
    with socket.create_server(('127.0.0.1', 0)) as taken:
        done = hub.fails(FAILED, 'is taken', 'forward', box, f'{taken.getsockname()[1]}:8000')
        assert b'another name or port' in done.stderr, done


# ---- words of Docker ----------------------------------------------------------------------------

def test_words_that_change_nothing(hub, box):
    assert hub.ok('run', '--rm', '-u', '0', '--', 'id', '-u') == b'0\n'
    assert hub.ok('run', '--rm', '-u', '1000', '--', 'id', '-u') == b'1000\n'
    hub.fails(FAILED, 'made without root', 'exec', '-u', '0', box, 'id', '-u')
    hub.ok('rm', '-f', box)


@pytest.mark.parametrize('says, words', [
    ('holt up makes a sandbox that stays', ['run', '--name', 'x', 'true']),
    ('holt up makes a sandbox that stays', ['run', '-d', 'true']),
    ('holt up makes a sandbox that stays', ['run', '-itd', 'true']),
    ('holt up makes a sandbox that stays', ['run', '-p', '80:80', 'true']),
    ('holt ls lists sandboxes', ['ps']), ('holt ls lists sandboxes', ['exec']),
    ("did you mean 'images pull'", ['pull', 'debian'])], ids=str)
def test_words_that_are_elsewhere(hub, says, words):
    done = hub.run(*words)
    assert done.returncode in (2, FAILED) and says in done.stderr.decode(), done
    assert b'--detach' not in hub.ok('help', 'run')


# What `docker --help` and Podman's list, and options of theirs that people type.
VERBS = """attach build builder buildx checkpoint commit compose container context cp create diff
    events exec export history image images import info inspect kill load login logout logs
    manifest network node pause plugin port ps pull push rename restart rm rmi run save search
    secret service stack start stats stop swarm system tag top trust unpause update version volume
    wait""".split()
MADE = """--add-host --cap-add --cap-drop --cpus -d --device --dns --entrypoint -e --env-file
    --expose --gpus --hostname --init -i -t --ip -l --label --link -m --memory --memory-swap --mount
    --name --network --network-alias --pids-limit --platform --privileged -p -P --publish-all --pull
    --read-only --restart --rm --security-opt --shm-size --tmpfs --ulimit -u --userns -v
    --volumes-from -w --workdir"""
OPTIONS = {
    'run': MADE, 'create': MADE, 'up': MADE + ' --image',
    'exec': '-d -e --env-file -i --privileged -t -u -w',
    'ls': '-a --all -f --filter --format -n --last -l --latest --no-trunc -q -s --size',
    'ps': '-a --all -f --filter --format -n --last -l --latest --no-trunc -q -s --size',
    'rm': '-f --force -v --volumes', 'stop': '-t --time --timeout -s --signal',
    'start': '-i --interactive --attach', 'kill': '-s --signal',
    'logs': '-f --follow --since -n --tail -t --timestamps --until',
    'attach': '--detach-keys --sig-proxy', 'inspect': '-f --format',
    'cp': '-a --archive -L --follow-link -q -r -R',
    'events': '-f --filter --format --since --until',
    'top': '--no-stream --format --no-trunc', 'version': '--format',
    'images': '-a --all --digests -f --filter --format --no-trunc -q --quiet',
    'images ls': '-a -f --format -q', 'images prune': '-a --all -f --force --filter',
    'images rm': '-f --force', 'images pull': '-a --all-tags --platform -q --quiet',
    'build': '--build-arg -f --file --load --no-cache --platform --progress --pull --push -q '
             '--quiet -t --tag --target'}


def test_each_word_of_docker_works_or_leads_on(hub):
    """A verb or option is there, or its refusal says what does the same, in verbs that are."""
    wrong = []
    known = {verb: hub.run('help', verb).returncode == 0 for verb in VERBS}

    def leads(words, refusal):
        said = hub.run(*words).stderr.decode()
        named = re.findall(r"(?:did you mean '|\bholt )([a-z]+)", said.split('\nTry ')[0])
        for verb in named:
            if verb not in known:
                known[verb] = hub.run('help', verb).returncode == 0
        hint = said.partition(refusal)[2].partition('\n')[0]
        if not hint or (not named and refusal[-1] == '\'') or not all(known[v] for v in named):
            wrong.append((words, said))

    for verb in VERBS:
        if not known[verb]:
            leads(['help', verb], f"there is no verb '{verb}'")
    for verb, options in OPTIONS.items():
        for option in options.split():
            done = hub.run(*verb.split(), option, '--help')
            if done.returncode and b'wants a value' not in done.stderr:
                leads([*verb.split(), option, '--help'], f'there is no option {option}: ')
    assert not wrong


def test_the_beginning_of_an_id(hub, box):
    """Of one sandbox alone; what is recorded is the whole id."""
    short = box[:10]
    assert hub.ok('exec', short, 'echo', 'here') == b'here\n'
    assert hub.ok('exec', '-i', short, 'cat', input=b'typed') == b'typed'
    assert json.loads(hub.ok('inspect', short))['id'] == box
    hub.ok('cp', '/etc/hostname', f'{short}:h')
    hub.fails(FAILED, 'there is no sandbox', 'exec', box[:9], 'true')
    hub.ok('up', '-n', short + 'x')
    hub.fails(FAILED, 'write more of it', 'exec', short, 'true')
    hub.ok('down', short + 'x')
    hub.ok('down', short)


def test_more_processors_than_there_are(hub):
    done = hub.run('run', '--cpus', '999', 'true')
    assert done.returncode == 0 and b'--cpus 999: this machine has' in done.stderr, done


def test_help_shows_what_is_of_every_day_first(hub):
    groups = hub.ok('help').decode().split('\n\n')
    assert [line.split()[0] for line in groups[2].splitlines()[1:]] == [
        'run', 'up', 'exec', 'ls', 'down']
    assert len(groups) > 6
    hub.fails(FAILED, "'holt help' lists them", 'nope')  # nothing is near


# ---- for programs -------------------------------------------------------------------------------

@pytest.mark.parametrize('status, code, words', [
    (NOT_FOUND, 'command_not_found', ['no-such-program']),
    (NOT_RUN, 'command_not_executable', ['/etc/passwd']),
    (FAILED, 'template_not_found', ['--image', 'no-such-image', 'true']),
    (FAILED, 'invalid_arguments', []), (FAILED, 'invalid_arguments', ['-m', '1', 'true']),
    (FAILED, 'invalid_arguments', ['-v', '/no/such/folder:/x', 'true'])], ids=str)
def test_json_of_a_failure(hub, status, code, words):
    """One JSON value, too, where nothing has run; and the same words for people beside it."""
    done = hub.run('run', '--json', *words)
    said = json.loads(done.stdout)
    assert done.returncode == status and set(said) == {'error'}, done
    assert set(said['error']) == {'code', 'cause', 'remediation', 'failure', 'retryable'}, said
    assert said['error']['code'] == code, said
    assert said['error']['cause'] in done.stderr.decode()


def test_names_alone(hub, box):
    assert hub.ok('ls', '-q').decode().split() == [s['id'] for s in hub.json('ls')] == [box]
    hub.fails(2, '-q', 'ls', '-q', '-o', 'json')
    hub.ok('down', *hub.ok('ls', '-q').decode().split())
    assert hub.ok('ls', '-q') == b''


# ---- variables of a file -------------------------------------------------------------------------

FILE = '''\
# a comment, and an empty line

PLAIN=1
  INDENTED=2
SPACES= a  b\t
QUOTES="as 'they' stand" # too
EQUALS=a=b=c
EMPTY=
FROM_HERE
NOT_HERE
TWICE=first
TWICE=second
OVER=file
#COMMENTED=x
DOS=line\r
LAST=no line end'''
MEANT = {'PLAIN': '1', 'INDENTED': '2', 'SPACES': ' a  b\t', 'QUOTES': '"as \'they\' stand" # too',
         'EQUALS': 'a=b=c', 'EMPTY': '', 'FROM_HERE': 'here', 'TWICE': 'second', 'OVER': 'option',
         'DOS': 'line', 'LAST': 'no line end', 'OTHER': 'file'}


def give(hub, path, text):
    path.write_text(text, newline='')
    os.chown(path, hub.who.uid, hub.who.uid)
    return str(path)


@pytest.fixture
def place(hub):
    """A folder that whoever runs Holt may read."""
    made = pathlib.Path(hub.who.work) / 'env'
    made.mkdir()
    os.chown(made, hub.who.uid, hub.who.uid)
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize('how', ['run', 'exec', 'up'])
def test_env_file(hub, box, place, how):
    """As Docker reads it; -e goes over it, wherever it stands, a later file over an earlier one."""
    given = ['-e', 'OVER=option', '--env-file', give(hub, place / 'a', FILE),
             '--env-file', give(hub, place / 'b', 'OTHER=file\nPLAIN=1\n')]
    env = {'FROM_HERE': 'here'}
    if how == 'up':
        name = hub.ok('up', *given, env=env).decode().strip()
        text = hub.ok('exec', name, 'env', '-0')
        hub.ok('down', name)
    else:
        text = hub.ok(how, *given, *([box] if how == 'exec' else []), 'env', '-0', env=env)
    got = dict(line.split('=', 1) for line in text.decode().split('\0') if line)
    assert {k: got.get(k) for k in MEANT} == MEANT
    assert 'NOT_HERE' not in got and 'COMMENTED' not in got


@pytest.mark.parametrize('text, why', [
    (b'=x\n', 'line 1: a line without a name'), (b'A=1\nA B=2\n', 'line 2: a name with a space'),
    (b'A=\xff\n', 'UTF-8'), (b'A=1\0B=2\n', 'UTF-8'),
    (b'\n'.join(b'A%d=1' % i for i in range(300)), 'at most 256'), (b'x' * (2 << 20), 'too large'),
    (None, 'No such file')], ids=lambda v: str(v)[:20])
def test_a_wrong_env_file(hub, place, text, why):
    path = place / 'wrong'
    if text is not None:
        path.write_bytes(text)
        os.chown(path, hub.who.uid, hub.who.uid)
    for words in (['run', '--env-file', str(path), 'true'], ['up', '--env-file', str(path)]):
        done = hub.fails(FAILED, why, *words)
        assert done.stdout == b'' and b'--env-file' in done.stderr, done
    assert hub.names() == set()


# ---- more -------------------------------------------------------------------------------------

def test_a_preview(hub, box):
    link = hub.ok('preview', box, '8000').decode()
    assert link.startswith('http://') and '.localhost:' in link and link.count('\n') == 1
    made = hub.json('preview', '--ttl', '5m', box, '8000')
    assert set(made) == {'url', 'expires_unix'}
    for words in ([box], [box, '0'], [box, '80:80'], [box, 'x'], [box, '65536'],
                  ['--ttl', '8d', box, '80'], ['--ttl', '0', box, '80']):
        assert hub.run('preview', *words).returncode in (2, FAILED), words
    hub.fails(FAILED, 'holt ls', 'preview', 'nobody', '8000')


@pytest.mark.parametrize('shell', ['sh', 'bash'])
def test_the_prompt_names_the_sandbox(hub, shell):
    """By its name, or by the beginning of an id that nobody chose; and not for programs."""
    for words, name in ((['-n', 'of-my-own'], 'of-my-own'), ([], None)):
        made = hub.ok('up', *words).decode().strip()
        with Keyboard(hub, 'exec', '-it', made, shell) as k:
            k.until((name or made[:12]).encode())
            k.until(b'/workspace')
            k.until(b'$ ')
            k.type(b'cd /tmp\r')
            k.until(b'/tmp')
            k.until(b'$ ')
            k.type(b'exit 5\r')
            assert k.end() == 5
        assert b'PS1' not in hub.ok('exec', made, 'env')
        mine = hub.ok('exec', '-t', '-e', 'PS1=mine', made, 'sh', '-c', 'echo "$PS1"')
        assert mine == b'mine\r\n'
        hub.ok('down', made)


# ---- the first hour ----------------------------------------------------------------------------

def first_words(hub):
    """The commands that `holt` alone names, each as words without holt."""
    said = hub.run().stderr.decode()
    lines = [line for line in said.splitlines() if line.startswith('  holt ')]
    return [line.split('  ')[1].split()[1:] for line in lines]


def test_holt_alone_leads_to_a_running_sandbox(hub):
    """By one command, which is the first that it names."""
    with Keyboard(hub, *first_words(hub)[0]) as k:
        k.until(b'/workspace')
        k.until(b'$ ')
        k.type(b'id -u; pwd; exit 3\r')
        k.until(b'1000\r\n/workspace\r\n')
        assert k.end() == 3


def test_what_else_it_names(hub):
    for words in first_words(hub)[1:]:
        hub.ok(*words)
    assert hub.names() == {'box'}
    assert 'holt exec -it box bash' in hub.run().stderr.decode()
    with Keyboard(hub, 'exec', '-it', 'box', 'bash') as k:
        k.until(b'box')
        k.type(b'exit 4\r')
        assert k.end() == 4
    hub.ok('down', 'box')
