"""Another user of the machine takes the place of a hub that is away: its port, or a path where its
socket should be. Who asks there gives no token of this machine's, and what an open page sends is
good for nothing when the hub is back."""

import contextlib
import json
import os
import signal
import subprocess

import pytest

from client import until
from door import trusting
from rest import Rest
from test_door import certificate  # noqa: F401 (a fixture)
from test_login import Browser, Secure, code_of, secured
from test_serve import INITIALIZE
from who import NOBODY

OTHER = NOBODY + 1
# Says where it listens; then what came, as bytes with a length before them, at the end of input.
LISTENER = '''
import select, socket, sys
family, where, port, accepts = sys.argv[1:]
s = socket.socket(getattr(socket, family))
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if family == 'AF_INET6':
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if where == '::' else 1)
s.bind(where if family == 'AF_UNIX' else (where, int(port)))
if family == 'AF_UNIX':
    import os
    os.chmod(where, 0o777)
s.listen(64)
print(0 if family == 'AF_UNIX' else s.getsockname()[1], flush=True)
got, open_, more = b'', [], True
while True:
    watched = [*open_, *([sys.stdin] if more else []), *([s] if accepts == '1' or not more else [])]
    ready = select.select(watched, [], [], None if more else 0)[0]
    if not ready:
        break
    for one in ready:
        if one is sys.stdin:
            more = bool(sys.stdin.readline())
        elif one is s:
            open_.append(s.accept()[0])
        else:
            piece = one.recv(65536)
            got += piece
            if not piece:
                open_.remove(one)
            elif b'\\r\\n\\r\\n' in piece and accepts == '1':
                one.sendall(b'HTTP/1.1 401 Unauthorized\\r\\nContent-Length: 0\\r\\n\\r\\n')
sys.stdout.buffer.write(got)
'''


class Taken:
    """Somebody who listens; accepts: or leaves connections in the queue until the end."""

    def __init__(self, uid, family, where, port=0, accepts=True):
        prefix = [] if uid == os.getuid() else ['setpriv', f'--reuid={uid}', f'--regid={uid}',
                                                '--clear-groups', '--inh-caps=-all']
        self.proc = subprocess.Popen(
            [*prefix, '/usr/bin/python3', '-c', LISTENER, family, where, str(port),
             '01'[accepts]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd='/')
        self.port = int(self.proc.stdout.readline())

    def heard(self):
        said, _ = self.proc.communicate(timeout=60)
        return said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.kill()
        self.proc.communicate()


TCP = [('AF_INET', '127.0.0.1', '127.0.0.1'), ('AF_INET', '0.0.0.0', 'localhost'),
       ('AF_INET6', '::1', '[::1]'), ('AF_INET6', '::', '127.0.0.1')]


def bridge(who, url, env):
    """`holt mcp --connect`, asked once, up to its answer. One that waits for it is killed."""
    proc = subprocess.Popen(who.argv('mcp', '--connect', url), env={**who.env, **env}, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    proc.stdin.write(json.dumps(INITIALIZE) + '\n')
    proc.stdin.flush()
    return proc


@pytest.fixture(scope='module')
def token(who):
    home = os.path.join(who.work, 'taken')
    os.mkdir(home, 0o700)
    os.chown(home, who.uid, who.uid)
    done = who.run('auth', 'token', env={**who.env, 'HOLT_HOME': str(home)}, text=True)
    return {'HOLT_HOME': home}, done.stdout.strip()


@pytest.mark.skipif(os.getuid() != 0, reason='listens as another user')
@pytest.mark.parametrize('accepts', [True, False], ids=['accepts', 'queues'])
@pytest.mark.parametrize('family, where, host', TCP, ids=[where for _, where, _ in TCP])
def test_the_hubs_token_is_for_programs_of_this_user(who, token, family, where, host, accepts):
    """Not for others, whether they have accepted the connection yet or not. Root reads it anyway,
    and a token that was named is for whom it was named for."""
    env, text = token
    for uid, more, given in ((OTHER, {}, False), (who.uid, {}, True), (0, {}, True),
                             (OTHER, {'HOLT_TOKEN': 'said-for-this-server'}, True)):
        with Taken(uid, family, where, accepts=accepts) as taken:
            asks = bridge(who, f'http://{host}:{taken.port}', {**env, **more})
            try:
                if not given:
                    answer = json.loads(asks.stdout.readline())
                    assert f'another user (uid {OTHER})' in answer['error']['message'], answer
                    heard = taken.heard()
                elif accepts:
                    asks.stdout.readline()
                    heard = taken.heard()
                else:
                    until(lambda: sent_to(taken.port), what='the request')
                    heard = taken.heard()
            finally:
                asks.kill()
                asks.communicate()
        wanted = more.get('HOLT_TOKEN', text).encode()
        assert (wanted in heard) == given, (uid, heard)
        assert given or not heard, heard


def sent_to(port):
    """Whether bytes wait in the queue of whoever has not accepted the connection."""
    with open('/proc/net/tcp', encoding='ascii') as v4, open('/proc/net/tcp6',
                                                             encoding='ascii') as v6:
        rows = [line.split() for line in [*v4, *v6]]
    return any(row[1].endswith(f':{port:04X}') and row[3] == '01' and
               int(row[4].partition(':')[2], 16) > 0 for row in rows)


@pytest.mark.skipif(os.getuid() != 0, reason='listens as another user')
@pytest.mark.parametrize('words', [['mcp', '--connect'], ['ls'], ['auth', 'keys']])
def test_a_false_socket(who, token, words):
    env, text = token
    folder = os.path.join(who.top, f'of-all-{words[0]}')
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    path = os.path.join(folder, 'holt.sock')
    with Taken(OTHER, 'AF_UNIX', path) as taken:
        if words[0] == 'mcp':
            asks = bridge(who, f'unix:{path}', env)
            said = asks.stdout.readline()
            asks.kill()
            asks.communicate()
        else:
            done = who.run(*words, env={**who.env, **env, 'HOLT_SOCKET': path}, text=True)
            said = done.stderr
            assert done.returncode != 0
        assert f'another user (uid {OTHER})' in said, said
        assert text.encode() not in taken.heard()


class Proxied(Browser):
    """What a proxy passes on that speaks TLS for the hub."""

    def __init__(self, hub):
        super().__init__(hub, code_of(hub), host='holt.example',
                         named={'Origin': 'https://holt.example'})


def take_over(me, home, first, words):
    """Another hub, which takes the place of the first."""
    second = Rest(me, home, *words)
    first.proc.wait(60)
    return second


@pytest.mark.parametrize('how', ['plain', 'proxy', 'TLS'])
@pytest.mark.parametrize('ends', [signal.SIGTERM, signal.SIGKILL, None],
                         ids=['stopped', 'killed', 'taken-over'])
def test_what_a_page_sends_meanwhile(me, tmp_path, certificate, how, ends):  # noqa: F811
    """Over plain HTTP anybody can have had it, so it is good for nothing any more. Over TLS only
    the hub can."""
    trust = trusting(certificate[0])
    words = ['--pool', '0', *(secured(me, tmp_path, certificate) if how == 'TLS' else ()),
             *(['--public-url', 'https://holt.example'] if how == 'proxy' else ())]
    with contextlib.ExitStack() as stack:
        first = Rest(me, tmp_path, '--listen', '127.0.0.1:0', *words,
                     *([] if ends else ['--yield']))
        stack.callback(first.kill)
        named = {'plain': {}, 'TLS': {}, 'proxy': {'Origin': 'https://holt.example'}}[how]
        host = 'holt.example' if how == 'proxy' else None
        open_page = Secure(first, trust) if how == 'TLS' else Proxied(first) if host else \
            Browser(first)
        assert open_page.asks(named=named, host=host) == 200
        again = ['--listen', f'127.0.0.1:{first.address[1]}', *words]
        if ends:
            first.end(ends)
            second = Rest(me, tmp_path, *again)
        else:
            second = take_over(me, tmp_path, first, again)
        stack.callback(second.kill)
        assert second.address == first.address
        assert open_page.asks(named=named, host=host) == (200 if how == 'TLS' else 401)
        assert open_page.raw('POST', '/v1/keys', json.dumps({'name': 'k', 'scopes': ['admin']}),
                             named=named, host=host).status == (200 if how == 'TLS' else 401)
        kept = json.loads((tmp_path / 'logins.json').read_text())['logins']
        assert [k['tls'] for k in kept] == [True] * (how == 'TLS')

