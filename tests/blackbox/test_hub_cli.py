"""The verbs that ask a running hub: holt up, ls, ps, exec, fs, fork, pause, resume, down."""

import json
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import threading

import pytest

from client import until
from rest import Failed, Rest
from test_serve import Session

FAILED = 125


class Hub(Rest):
    """A hub, and `holt VERB...` for it."""

    def run(self, *arguments, **options):
        options['env'] = {**self.env, **options.get('env', {})}
        return self.who.run(*arguments, **options)

    def ok(self, *arguments, **options):
        done = self.run(*arguments, **options)
        assert done.returncode == 0, done
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.ok(*arguments, '-o', 'json'))

    def fails(self, status, why, *arguments, **options):
        done = self.run(*arguments, **options)
        assert done.returncode == status and why.encode() in done.stderr, done
        return done

    def popen(self, *arguments, **options):
        return subprocess.Popen(self.who.argv(*arguments), env=self.env, cwd='/',
                                stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def names(self):
        return {sandbox['id'] for sandbox in self.json('ls')}


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    with Hub(me, tmp_path_factory.mktemp('hub'), '--listen', '127.0.0.1:0',
             '--pool', '2') as shared:
        yield shared


@pytest.fixture
def box(hub):
    name = hub.ok('up').decode().strip()
    yield name
    hub.run('down', name)


def test_who_ends_a_sandbox_is_told_what_its_revision_lacks(hub):
    """By every door that ends one or makes a revision, and by an event where nobody asked."""
    names = ['.env', 'certs/test.pem']

    def full(name):
        hub.post('/v1/workspaces', name=name)
        box = hub.create(workspace=name)
        hub.exec(box, 'echo s > .env; mkdir certs; echo k > certs/test.pem; echo x > kept')
        return box

    def named(text):
        assert sorted(text.split(', ')) == names, text

    def told(text):
        named(text.strip().split(' (2): ')[1])

    ended = hub.call('DELETE', f'/v1/sandboxes/{full("lacks-rest")}')
    assert ended['left_out'] == 2
    named(ended['left_out_names'])
    agent = Session(hub)
    with hub.wire() as wire:
        agent.call(wire, 'sandbox_terminate', sandbox=full('lacks-mcp'))
        told(agent.result(wire)['content'][-1]['text'])
    told(hub.run('down', full('lacks-cli')).stderr.decode())
    box = full('lacks-commit')
    told(hub.run('ws', 'commit', 'lacks-commit').stderr.decode())
    assert hub.json('ws', 'log', 'lacks-commit')[0]['left_out'] == 2
    newest, first = hub.ok('ws', 'log', 'lacks-commit').decode().splitlines()[1:]
    assert newest.split()[5] == '2' and first.split()[5] == '-'
    hub.post('/v1/set_timeout', sandbox=box, timeout_seconds=1)
    events = f'/v1/events?sandbox={box}'
    detail = until(lambda: [e['detail'] for e in hub.call('GET', events)['events']
                            if e['kind'] == 'left_out'], what='an event')
    named(detail[0])
    hub.post('/v1/workspaces', name='lacks-nothing')
    plain = hub.create(workspace='lacks-nothing')
    assert 'left_out' not in hub.call('DELETE', f'/v1/sandboxes/{plain}'), 'nothing was'


def test_a_sandbox_whose_last_revision_fails_is_ended_only_on_purpose(hub):
    """The failure names what loses the changes, and that verb loses no others."""
    hub.post('/v1/workspaces', name='fails')
    box = hub.create(workspace='fails')
    hub.exec(box, 'echo 1 > f')
    hub.ok('ws', 'commit', 'fails')
    hub.exec(box, 'echo 2 > f; p=$(printf "d/%.0s" $(seq 70)); mkdir -p $p')
    for _ in range(2):
        done = hub.fails(FAILED, 'holt down --discard', 'down', box)
        assert b'not ended' in done.stderr, done
        assert hub.exec(box, 'cat f')['stdout'] == '2\n'
    hub.ok('down', '--discard', box)
    assert box not in hub.names()
    again = hub.create(workspace='fails')
    assert hub.exec(again, 'cat f')['stdout'] == '1\n'
    hub.ok('down', again)


def test_a_tools_life(hub):
    """Make, write, run, look, remove: as the manual page has it."""
    assert hub.ok('up', 'host', '--name', 'agent-tool-call', '--ttl', '10m') == b'agent-tool-call\n'
    hub.ok('fs', 'write', 'agent-tool-call', '/workspace/work/main.sh',
           input=b'echo "hello $1"; pwd\n')
    done = hub.ok('exec', 'agent-tool-call', '--timeout', '20', '--', 'sh',
                  '/workspace/work/main.sh', 'you')
    assert done == b'hello you\n/workspace\n'
    table = hub.ok('ls').decode().splitlines()
    assert table[0].split() == ['NAME', 'TEMPLATE', 'STATE', 'CREATED', 'LABELS']
    assert ([line.split()[:3] for line in table if 'agent-tool' in line]
            == [['agent-tool-call', 'host', 'running']])
    made = hub.ok('up').decode().strip()
    table = hub.ok('ls').decode().splitlines()
    assert len(made) > 24 and any(made in line for line in table)
    column = table[0].index('TEMPLATE')
    assert all(line[column - 2:column] == '  ' and line[column] != ' ' for line in table)
    hub.ok('down', made, 'agent-tool-call')
    assert 'agent-tool-call' not in hub.names()
    hub.fails(FAILED, 'holt ls', 'down', 'agent-tool-call')
    hub.fails(FAILED, 'holt ls', 'exec', 'agent-tool-call', '--', 'true')


def test_as_docker_takes_it(hub, box):
    """What hands have learnt: a program without dashes, its own options,
    and Docker's names of verbs."""
    assert hub.ok('exec', box, 'printf', '%s|', '-la', '--', '-e', '--cwd') == b'-la|--|-e|--cwd|'
    assert (hub.ok('exec', '-w', '/tmp', box, 'pwd') == hub.ok('exec', box, '-w', '/tmp', 'pwd')
            == b'/tmp\n')
    assert hub.ok('exec', box, '-w', '/tmp', '--', 'pwd') == b'/tmp\n'
    hub.fails(FAILED, 'no-such-option', 'exec', box, '--no-such-option', 'pwd')
    hub.fails(FAILED, 'a program', 'exec', box)
    assert json.loads(hub.ok('inspect', box))['id'] == box
    made = hub.ok('create', '-n', 'habit').decode().strip()
    hub.ok('stop', made)
    hub.ok('start', made)
    assert hub.ok('exec', made, 'echo', 'on') == b'on\n'
    hub.ok('rm', made)
    assert made not in hub.names()
    assert b'holt rm is the same' in hub.ok('help', 'down')


def test_all_of_a_hub(hub):
    made = {hub.ok('up').decode().strip() for _ in range(3)}
    hub.ok('pause', '--all')
    assert {s['state'] for s in hub.json('ls') if s['id'] in made} == {'paused'}
    hub.fails(2, 'names, or --all', 'down', '--all', *made)
    hub.fails(2, 'names, or --all', 'down')
    assert made <= hub.names()
    hub.ok('down', '-a')
    assert hub.names() == set()
    hub.ok('down', '-a')


@pytest.mark.parametrize('said, number', [('TERM', 15), ('SIGUSR1', 10), ('usr2', 12), ('9', 9)])
def test_signals_by_name(hub, box, said, number):
    ran = hub.ok('exec', '-d', box, 'sleep', '1000').decode().strip()
    hub.ok('kill', '-s', said, box, ran)
    assert hub.run('wait', box, ran).returncode == 128 + number
    for wrong in ('NOPE', '0', '65', '-1', '', '1x', 'SIGSIGTERM'):
        hub.fails(2, 'name or number', 'kill', '-s', wrong, box, ran)


def test_what_it_is_made_of(hub):
    limits = {'memory_mb': 64, 'disk_mb': 8, 'pids': 32, 'open_files': 50}
    cpus = [] if os.geteuid() else ['--cpus', '0.5']  # which nobody else can have held
    made = hub.json('up', '-n', 'limited', '-e', 'A=1', '-e', 'B', '-e', 'A=2', '-w', '/tmp', '-m',
                    '64M', '--disk', '8M', '--pids', '32', '--open-files', '50', *cpus, '--idle',
                    '1h', '--retention', 'stop')
    assert made['limits'].pop('enforced_by') in ('cgroup2', 'cgroup1', 'rlimit')
    assert (made['limits'] == ({**limits, 'cpus': 0.5} if cpus else limits)
            and (made['idle_seconds'], made['retention']) == (3600, 'stop'))
    assert (hub.ok('exec', 'limited', '-e', 'C=3', '--', 'sh', '-c', 'echo "$A$B$C"; pwd')
            == b'23\n/tmp\n')
    assert hub.ok('exec', 'limited', '--', 'sh', '-c', 'ulimit -Sn; ulimit -Hn') == b'50\n50\n'
    hub.fails(FAILED, 'limited', 'up', '--name', 'limited')
    hub.ok('down', 'limited')
    for arguments, why in ((['--name', '../x'], 'id'), (['no-such-template'], 'no-such-template'),
                           (['-e', '=1'], '-e takes')):
        hub.fails(FAILED, why, 'up', *arguments)
    hub.fails(2, '-m takes', 'up', '-m', '1')
    hub.fails(2, '--retention takes', 'up', '--idle', '1h', '--retention', 'keep')


@pytest.mark.parametrize('status, argv', [
    (0, ['true']), (7, ['sh', '-c', 'exit 7']), (128 + 9, ['sh', '-c', 'kill -9 $$']),
    (127, ['no-such-program']), (126, ['/etc/passwd'])])
def test_exit_statuses(hub, box, status, argv):
    assert hub.run('exec', box, '--', *argv).returncode == status


def test_how_a_command_ends(hub, box):
    hub.fails(124, 'killed', 'exec', box, '--timeout', '1', '--', 'sleep', '1000')
    hub.fails(FAILED, 'a program to run', 'exec', box)
    hub.fails(FAILED, 'a program to run', 'exec', box, '--')
    assert hub.ok('exec', box, '--', 'cat') == b''


def test_streams_are_whole_and_apart(hub, box):
    script = 'head -c 5000000 /dev/urandom | tee /workspace/random; echo said >&2'
    done = hub.run('exec', box, '--', 'sh', '-c', script)
    assert done.returncode == 0 and done.stderr == b'said\n' and len(done.stdout) == 5000000
    assert hub.ok('fs', 'read', box, 'random') == done.stdout


def gone(hub, box):
    return hub.run('exec', box, '--', 'sh', '-c', 'kill -0 $(cat /workspace/pid)').returncode != 0


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_who_goes_away_ends_it(hub, box, number):
    with hub.popen('exec', box, '--', 'sh', '-c', 'echo $$ >/workspace/pid; echo on; '
                   'exec sleep 1000') as proc:
        assert proc.stdout.readline() == b'on\n'
        assert not gone(hub, box)
        proc.send_signal(number)
        assert proc.wait(60) == -number
    until(lambda: gone(hub, box), what='the end of the command')


def test_nobody_reads(hub, box):
    with hub.popen('exec', box, '--', 'sh', '-c', 'echo $$ >/workspace/pid; exec yes') as proc:
        assert proc.stdout.read(1000) == b'y\n' * 500
        proc.stdout.close()
        assert proc.wait(60) == -signal.SIGPIPE
    until(lambda: gone(hub, box), what='the end of the command')


def test_files(hub, box):
    data = os.urandom(3 << 20)
    hub.ok('fs', 'write', '--mode', '755', box, '/workspace/d/blob', input=data)
    assert hub.ok('fs', 'read', box, 'd/blob') == data
    assert (hub.ok('fs', 'write', box, 'd/empty', input=b'') == b''
            and hub.ok('fs', 'read', box, 'd/empty') == b'')
    about = hub.json('fs', 'stat', box, 'd/blob')
    assert (about['size'], about['mode'] & 0o7777, about['type']) == (len(data), 0o755, 'file')
    assert hub.ok('fs', 'stat', box, 'd').split()[0] == b'd'
    hub.ok('fs', 'mkdir', box, 'e/f')
    hub.ok('fs', 'mv', box, 'd/empty', 'e/f/g')
    assert {entry['name'] for entry in hub.json('fs', 'ls', box)} >= {'d', 'e'}
    assert [line.split()[-1] for line in hub.ok('fs', 'ls', box, 'e/f').splitlines()] == [b'g']
    hub.fails(FAILED, 'e', 'fs', 'rm', box, 'e')
    hub.ok('fs', 'rm', '-r', box, 'e')
    hub.fails(FAILED, 'holt fs ls', 'fs', 'read', box, 'e/f/g')
    hub.fails(FAILED, 'fs stat', 'fs', 'read', box, '/workspace')
    hub.fails(FAILED, 'too large', 'fs', 'write', box, 'big', input=bytes(24 << 20))
    hub.fails(FAILED, 'octal', 'fs', 'write', '--mode', '9', box, 'x', input=b'')
    hub.fails(2, 'Usage', 'fs')
    hub.fails(2, 'no \'fs lst\'', 'fs', 'lst', box)


def test_names_are_no_commands_to_a_terminal(hub, box):
    hub.ok('exec', box, '--', 'sh', '-c', 'touch "$(printf "evil\\033]0;title\\007\\nline")"')
    shown = hub.ok('fs', 'ls', box)
    assert (b'evil\\x1b' in shown and not {0x1b, 0x07} & set(shown) and shown.count(b'\n')
            == len(shown.splitlines()))
    assert any('\x1b' in entry['name'] for entry in hub.json('fs', 'ls', box))
    done = hub.fails(FAILED, 'evil', 'fs', 'read', box, 'evil\x1b]0;title\x07')
    assert 0x1b not in done.stderr


def test_images_are_templates(hub):
    """Under all of their names, which may be long, from the moment that they are there."""
    name = 'registry.example:5000/' + 'long/' * 12 + 'name:1'
    os.mkdir(source := os.path.join(hub.who.work, 'an-image'))
    shutil.copy('/etc/hostname', source)
    assert ([t['id'] for t in hub.call('GET', '/v1/templates')] == ['host']
            and hub.call('GET', '/v1/health')['templates'] == 1)
    hub.ok('images', 'import', source, name)
    shutil.rmtree(source)
    [host, image] = hub.call('GET', '/v1/templates')
    assert ((host['id'], image['id'], image['ready']) == ('host', name, True)
            and image['created_at'] > '2026')
    assert hub.call('GET', '/v1/health')['templates'] == 2
    assert hub.post('/v1/templates', id=name) == image
    with pytest.raises(Failed) as failed:
        hub.post('/v1/templates', id=name + '2')
    assert failed.value.code == 'unsupported'
    made = hub.json('up', name)
    assert made['template_id'] == name
    hub.ok('down', made['id'])
    hub.ok('images', 'rm', name)
    assert [t['id'] for t in hub.call('GET', '/v1/templates')] == ['host']
    hub.fails(FAILED, 'registry.example', 'up', name)


def test_processes(hub, box):
    """Also of one whose name would be a command to the terminal."""
    assert hub.json('ps', box) == []
    runs = hub.popen('exec', box, '--', 'bash', '-c', 'exec -a "$(printf "a\\033[2Jb")" sleep 1000')
    until(lambda: [p for p in hub.json('ps', box) if p['command'].endswith('b 1000')],
          what='the program')
    table = hub.ok('ps', box)
    assert (b'\033' not in table and table.split()[:2] == [b'PID', b'PARENT']
            and table.rstrip().endswith(b'b 1000'))
    pid = hub.json('ps', box)[0]['pid']
    assert int(table.splitlines()[1].split()[0]) == pid
    hub.post(f'/v1/sandboxes/{box}/signal', pid=pid)
    assert runs.wait(60) == 128 + signal.SIGTERM
    runs.communicate()
    hub.fails(FAILED, 'nobody-here', 'ps', 'nobody-here')
    hub.fails(2, 'NAME', 'ps')


def test_forks(hub, box):
    hub.ok('fs', 'write', box, 'f', input=b'one')
    assert hub.ok('fork', box, '-n', 'left', '-n', 'right') == b'left\nright\n'
    hub.ok('fs', 'write', 'left', 'f', input=b'two')
    assert ([hub.ok('fs', 'read', name, 'f') for name in (box, 'left', 'right')]
            == [b'one', b'two', b'one'])
    three = [sandbox['id'] for sandbox in hub.json('fork', box, '-c', '3')]
    assert len(set(three)) == 3
    before = hub.names()
    hub.fails(FAILED, 'right', 'fork', box, '-n', 'new', '-n', 'right')
    hub.fails(2, 'another number', 'fork', box, '-n', 'new', '-c', '2')
    assert hub.names() == before
    hub.fails(FAILED, 'can be called', 'fork', '../health')
    done = hub.fails(FAILED, 'no-such', 'down', 'left', 'no-such', 'right', *three)
    assert done.returncode == FAILED and not {'left', 'right', *three} & hub.names()


def test_pause(hub, box):
    hub.ok('pause', box)
    assert [s['state'] for s in hub.json('ls') if s['id'] == box] == ['paused']
    hub.fails(FAILED, 'holt resume', 'exec', box, '--', 'true')
    hub.ok('resume', box)
    hub.ok('exec', box, '--', 'true')


# ---- a hub on demand

def served(home):
    """The process at the other end of the hub's socket."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(home / 'holt.sock'))
        return struct.unpack('3i', s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def runs(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as f:
            return f.read().rpartition(')')[2].split()[0] != 'Z'
    except FileNotFoundError:
        return False


def test_on_demand(me, tmp_path):
    """Many at once start one; it is where its callers' terminal has no say,
    and a signal ends it."""
    env = {**me.env, 'HOLT_HOME': str(tmp_path)}
    procs = [subprocess.Popen(me.argv('up', '-n', f'box{i}'), env=env, cwd='/',
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) for i in range(6)]
    said = [proc.communicate(timeout=60) for proc in procs]
    hub = served(tmp_path)
    try:
        assert [proc.returncode for proc in procs] == [0] * 6, said
        done = me.run('ls', '-o', 'json', env=env)
        assert {sandbox['id'] for sandbox in json.loads(done.stdout)} == {f'box{i}'
                                                                          for i in range(6)}
        assert os.getsid(hub) == hub and os.readlink(f'/proc/{hub}/cwd') == '/'
        assert os.readlink(f'/proc/{hub}/fd/0') == '/dev/null'
        assert stat.S_IMODE(os.stat(tmp_path / 'hub.log').st_mode) == 0o600
    finally:
        os.kill(hub, signal.SIGTERM)
        until(lambda: not runs(hub), what='the end of the hub')


def test_it_ends_when_nobody_uses_it(me, tmp_path):
    hub = Hub(me, tmp_path, '--listen', 'none', '--pool', '1', '--exit-idle', '3')
    try:
        with hub.wire():  # a connection that says nothing is one
            box = hub.ok('up').decode().strip()
        assert hub.ok('exec', box, '--', 'sh', '-c', 'sleep 4; echo on') == b'on\n'
        assert hub.names() == {box}
        hub.ok('down', box)
        assert hub.proc.wait(60) == 0
    finally:
        hub.kill()


def test_a_hub_that_can_not_start(hub, tmp_path):
    registry = tmp_path / 'registry.db'
    registry.write_text('no database at all, ' * 100)
    registry.chmod(0o600)
    hub.fails(FAILED, 'started: the registry', 'ls', env={'HOLT_HOME': str(tmp_path)})
    assert b'registry' in (tmp_path / 'hub.log').read_bytes()


# ---- no hub, another one, and what is none

def test_no_hub(hub, tmp_path):
    hub.fails(FAILED, 'holt serve', 'ls', env={'HOLT_SOCKET': str(tmp_path / 'none')})
    with socket.socket(socket.AF_UNIX) as closed:  # bound, and nobody listens
        closed.bind(str(tmp_path / 'closed'))
    hub.fails(FAILED, 'holt serve', 'ls', env={'HOLT_SOCKET': str(tmp_path / 'closed')})


def test_another_hub_does_not_take_our_token(hub, tmp_path):
    """The control is every other test."""
    hub.fails(FAILED, 'another token', 'ls',
              env={'HOLT_HOME': str(tmp_path), 'HOLT_SOCKET': hub.paths[0]})


@pytest.mark.parametrize('said', [
    b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
    b'HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n{}',
    b'SSH-2.0-OpenSSH_9.2\r\n', b''])
def test_what_is_no_hub(hub, tmp_path, said):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / 'socket'))
        listener.listen()

        def serve():
            with listener.accept()[0] as connection:
                connection.recv(65536)
                connection.sendall(said)

        thread = threading.Thread(target=serve)
        thread.start()
        done = hub.run('ls', env={'HOLT_SOCKET': str(tmp_path / 'socket')})
        thread.join()
    assert done.returncode == FAILED and done.stderr.startswith(b'holt: ') and not done.stdout, done


def test_a_hub_that_ends_fails_the_command(me, tmp_path):
    hub = Hub(me, tmp_path, '--listen', 'none', '--pool', '0')
    try:
        box = hub.ok('up').decode().strip()
        with hub.popen('exec', box, '--', 'sh', '-c', 'echo on; exec sleep 1000') as proc:
            assert proc.stdout.readline() == b'on\n'
            hub.proc.send_signal(signal.SIGTERM)
            assert proc.wait(60) == FAILED
            assert proc.stderr.read().startswith(b'holt: ')
        assert hub.proc.wait(60) == 0
    finally:
        hub.kill()


def test_json_of_names_is_no_command_to_the_terminal(hub):
    name = hub.ok('up').decode().strip()
    made = hub.ok('snapshot', 'create', '--name', 'a\u202eb', name).decode().strip()
    told = hub.ok('snapshot', 'ls', '-o', 'json').decode()
    assert '\u202e' not in told and [s['name'] for s in json.loads(told)] == ['a\u202eb']
    hub.ok('snapshot', 'rm', made)
    hub.ok('rm', name)


def test_snapshots(hub, tmp_path):
    """Take, look, write to a file, read it again, restore, stop, start again."""
    name = hub.ok('up').decode().strip()
    hub.ok('exec', name, '--', 'sh', '-c', 'echo x > f; mkdir d')
    assert hub.ok('diff', name) == b'A /workspace/d\nA /workspace/f\n'
    assert [c['path'] for c in hub.json('diff', name)] == ['/workspace/d', '/workspace/f']
    first = hub.ok('snapshot', 'create', '--name', 'first', '--ttl', '1h', name).decode().strip()
    assert ([(s['id'], s['name'], s['source']) for s in hub.json('snapshot', 'ls')]
            == [(first, 'first', name)])
    assert hub.ok('snapshot').decode().splitlines()[1].split()[0] == first
    packed = hub.ok('snapshot', 'export', first, '-')
    path = str(tmp_path / 'packed')
    hub.ok('snapshot', 'export', first, path)
    with open(path, 'rb') as f:
        assert f.read() == packed
    second = hub.ok('snapshot', 'import', path).decode().strip()
    hub.fails(FAILED, 'damaged', 'snapshot', 'import', '-', input=packed[:-9])
    made = hub.ok('snapshot', 'restore', '-n', 'r-1', '-n', 'r-2', second).decode().split()
    assert made == ['r-1', 'r-2'] and hub.ok('exec', 'r-2', '--', 'cat', 'f') == b'x\n'
    hub.ok('snapshot', 'rm', first, second)
    hub.fails(FAILED, first, 'snapshot', 'rm', first)
    hub.fails(FAILED, 'no snapshot can be called', 'snapshot', 'restore', '../x')
    hub.ok('stop', 'r-1')
    assert {s['id']: s['state'] for s in hub.json('ls')}['r-1'] == 'stopped'
    hub.ok('resume', 'r-1')
    assert hub.ok('exec', 'r-1', '--', 'cat', 'f') == b'x\n'
    hub.ok('down', name, *made)


def test_a_diff_of_fifty_thousand(hub, box):
    """As many as REST shows reach the command line, too."""
    hub.ok('exec', box, '--', 'sh', '-c', 'mkdir d; cd d; seq 49999 | xargs touch')
    got = hub.call('GET', f'/v1/sandboxes/{box}/diff')
    assert len(got['changes']) == 50000 and not got['truncated']
    assert hub.ok('diff', box).decode().splitlines() == [f'A {c["path"]}' for c in got['changes']]
    assert hub.json('diff', box) == got['changes']
    hub.ok('exec', box, '--', 'touch', 'd/more')
    assert hub.call('GET', f'/v1/sandboxes/{box}/diff')['truncated']
    done = hub.run('diff', box)
    assert done.returncode == 0 and b'more changes' in done.stderr, done
