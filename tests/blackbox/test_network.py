"""Network grants from a user's side: real programs in real sandboxes, and real servers beside them.

The hub stands in a network namespace of the test's own (egress.World), where names resolve by the
test's DNS server to addresses that look public. What the proxy does byte by byte is in
test_egress.py.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import socket
import tarfile
import tempfile
import threading
import time
import zipfile

import pytest

import host
from client import until
from egress import (DNS_IP, FORBIDDEN, OTHER_IP, PROXY_AT, WEB_IP, WEB_IP6, World,
                    company_proxy)
from soak import FULL, soak
from who import HERE, HOLT, Who

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason='makes network namespaces as root')
SECONDS = 60


# ---- the world -----------------------------------------------------------------------------------

class Web:
    """The world with a web server of one folder, as web.example and other.example."""

    def __init__(self, top):
        self.world = World(str(top))
        self.folder = top / 'web'
        self.folder.mkdir()
        (self.folder / 'hello').write_text('hello from the world\n')
        self.servers = []
        for ip in (WEB_IP, OTHER_IP, WEB_IP6, FORBIDDEN['metadata']):
            self.serve(ip, 80)
            self.serve(ip, 443, self.world.ca, self.world.key)
        self.world.zone.update({
            'web.example': [WEB_IP], 'other.example': [OTHER_IP], 'a.wild.example': [WEB_IP],
            'inside.example': [FORBIDDEN['private']], 'meta.example': [FORBIDDEN['metadata']]})
        self.fill()

    def serve(self, *arguments):
        proc = subprocess.Popen(self.world.world.command(
            'python3', os.path.join(HERE, 'web.py'), arguments[0], str(arguments[1]),
            str(self.folder), *arguments[2:]), stdout=subprocess.PIPE, text=True)
        assert proc.stdout.readline() == 'ready\n'
        self.servers.append(proc)

    def fill(self):
        """What git, pip, npm and apt fetch."""
        git = ['git', '-c', 'user.name=x', '-c', 'user.email=x@y', '-c', 'init.defaultBranch=main']
        work = self.folder / 'work'
        run(*git, 'init', '-q', str(work))
        (work / 'file').write_text('in git\n')
        run(*git, '-C', str(work), 'add', 'file')
        run(*git, '-C', str(work), 'commit', '-qm', 'first')
        run(*git, 'clone', '-q', '--bare', str(work), str(self.folder / 'repo.git'))
        run('git', '-C', str(self.folder / 'repo.git'), 'update-server-info')
        simple = self.folder / 'simple' / 'tiny'
        simple.mkdir(parents=True)
        wheel = 'tiny-1.0-py3-none-any.whl'
        with zipfile.ZipFile(simple / wheel, 'w') as z:
            z.writestr('tiny.py', 'x = 1\n')
            info = 'tiny-1.0.dist-info/'
            z.writestr(info + 'METADATA', 'Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n')
            z.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\nGenerator: t\n'
                       'Root-Is-Purelib: true\nTag: py3-none-any\n')
            z.writestr(info + 'RECORD', '')
        (simple / 'index.html').write_text(f'<a href="{wheel}">{wheel}</a>')
        package = self.folder / 'package.json'
        package.write_text('{"name": "tiny", "version": "1.0.0"}')
        with tarfile.open(self.folder / 'tiny.tgz', 'w:gz') as t:
            t.add(package, 'package/package.json')
        (self.folder / 'tiny').write_text(json.dumps({
            'name': 'tiny', 'dist-tags': {'latest': '1.0.0'},
            'versions': {'1.0.0': {'name': 'tiny', 'version': '1.0.0', 'dist': {
                'tarball': 'https://web.example/tiny.tgz'}}}}))
        deb = self.folder / 'deb'
        deb.mkdir()
        (deb / 'Packages').write_text('Package: tiny\nVersion: 1.0\nArchitecture: all\n'
                                      'Filename: ./tiny.deb\nSize: 1\nDescription: x\n')

    def close(self):
        for server in self.servers:
            server.kill()
            server.wait()
        self.world.close()


def run(*argv, timeout=SECONDS, **options):
    done = subprocess.run(argv, capture_output=True, timeout=timeout, check=False, **options)
    assert done.returncode == 0, done
    return done.stdout.decode()


class Hub:
    """`holt serve` in the host's network namespace, and `holt VERB...` for it. trust: all that its
    host trusts."""

    def __init__(self, web, who, *arguments, trust=None, config=None, env=None):
        self.web, self.home = web, tempfile.mkdtemp(dir=who.work)
        if config:
            with open(self.home + '/config.json', 'w', encoding='utf-8') as f:
                json.dump(config, f)
            os.chown(self.home + '/config.json', who.uid, who.uid)
        os.chown(self.home, who.uid, who.uid)
        self.who = who
        self.prefix = ['nsenter', f'--net=/proc/{web.world.host.holder.pid}/ns/net', '--',
                       *who.prefix]
        if trust:
            self.prefix += ['unshare', '-m', 'sh', '-c', 'mount --bind "$0" /etc/ssl/certs/'
                            'ca-certificates.crt && exec "$@"', trust]
        self.env = {**who.env, **(env or {}), 'HOLT_HOME': self.home,
                    'HOLT_SOCKET': self.home + '/socket'}
        self.arguments = arguments
        self.start()

    def start(self):
        self.log = self.who.log()
        with open(self.log, 'wb') as stderr:
            self.proc = subprocess.Popen(
                [*self.prefix, HOLT, 'serve', '--listen', '127.0.0.1:0', '--resolver', DNS_IP,
                 *self.arguments],
                env=self.env, cwd='/', stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=stderr, text=True, start_new_session=True)
        lines = []
        for line in self.proc.stdout:
            lines.append(line)
            if 'auth token' in line:
                break
        self.port = next(re.search(r':(\d+)$', line)[1] for line in lines if '127.0.0.1' in line)

    def run(self, *words, timeout=SECONDS, **options):
        return subprocess.run([*self.prefix, HOLT, *words], env=self.env, cwd='/',
                              stdin=options.pop('stdin', subprocess.DEVNULL), capture_output=True,
                              timeout=timeout, check=False, **options)

    def ok(self, *words, **options):
        done = self.run(*words, **options)
        assert done.returncode == 0, done
        return done.stdout.decode()

    def up(self, *allow, more=()):
        words = [word for rule in allow for word in ('--allow', rule)]
        return self.ok('up', *words, *more).strip()

    def sh(self, box, line, **options):
        done = self.run('exec', box, '--', 'sh', '-c', line, **options)
        return done.returncode, done.stdout.decode() + done.stderr.decode()

    def put(self, box, path):
        with open(path, 'rb') as f:
            self.ok('fs', 'write', box, os.path.basename(path), stdin=f)
        self.sh(box, f'chmod 755 {os.path.basename(path)}')

    def rest(self, method, path, body=None):
        """Over TCP, where nobody is the operator."""
        token = self.ok('auth', 'token').strip()
        done = run(*self.prefix, 'curl', '-sS', '-X', method,
                   '-H', f'Authorization: Bearer {token}',
                   '-H', 'Content-Type: application/json', '-w', '\n%{http_code}',
                   *(['-d', json.dumps(body)] if body is not None else []),
                   f'http://127.0.0.1:{self.port}{path}')
        text, status = done.rsplit('\n', 1)
        return int(status), json.loads(text)

    def events(self, box, kind):
        events = self.rest('GET', f'/v1/events?sandbox={box}&limit=1000')[1]['events']
        return [e for e in events if e['kind'] == kind]

    def proxy(self):
        return host.program(self.proc.pid, 'holt-egress')

    def end(self):
        self.proc.terminate()
        assert self.proc.wait(SECONDS) == 0
        shutil.rmtree(self.home)


@pytest.fixture(scope='module')
def web(tmp_path_factory):
    top = tmp_path_factory.mktemp('world')
    web = Web(top)
    yield web
    web.close()


@pytest.fixture(scope='module')
def hub(web, who):
    hub = Hub(web, who, '--sleep-after', '1', '--allow', 'web.example',
              '--allow', '*.wild.example:443')
    yield hub
    hub.end()


@pytest.fixture(scope='module')
def box(hub):
    """One that may reach web.example at 80 and 443, and names below wild.example at 443."""
    name = hub.up('web.example', '*.wild.example:443')
    hub.put(name, hub.web.world.ca)
    hub.sh(name, 'mv cert.pem ca.pem')
    return name


# ---- programs ------------------------------------------------------------------------------------

# Only what makes them trust the test's certificate: no proxy, no resolver, no address.
TRUST = ('export SSL_CERT_FILE=/workspace/ca.pem CURL_CA_BUNDLE=/workspace/ca.pem '
         'GIT_SSL_CAINFO=/workspace/ca.pem PIP_CERT=/workspace/ca.pem '
         'REQUESTS_CA_BUNDLE=/workspace/ca.pem NODE_EXTRA_CA_CERTS=/workspace/ca.pem '
         'npm_config_cache=/tmp/npm npm_config_update_notifier=false '
         'npm_config_fetch_retries=0 npm_config_cafile=/workspace/ca.pem; ')
GO = '''package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
	r, err := http.Get(os.Args[1])
	if err != nil { fmt.Println(err); os.Exit(1) }
	io.Copy(os.Stdout, r.Body)
}
'''
JAVA = '''import java.net.URI; import java.net.http.*;
public class Fetch { public static void main(String[] a) throws Exception {
	var request = HttpRequest.newBuilder(URI.create(a[0])).build();
	System.out.print(HttpClient.newHttpClient().send(request,
		HttpResponse.BodyHandlers.ofString()).body()); } }
'''
PROGRAMS = {
    'curl': ('curl -fsS https://HOST/hello', 'hello from', 'resolve'),
    'wget': ('wget --ca-certificate=ca.pem -qO- https://HOST/hello', 'hello from', ''),
    'git': ('rm -rf r; git clone -q https://HOST/repo.git r && cat r/file', 'in git', 'resolve'),
    'pip': ('python3 -m pip download -q --no-deps -d d --index-url https://HOST/simple tiny '
            '--retries 0 && ls d', 'tiny-1.0', ''),
    'npm': ('npm view tiny version --registry https://HOST/', '1.0.0', 'ENOTFOUND'),
    'apt': ('mkdir -p a/lists/partial a/cache/archives/partial && '
            'echo "deb [trusted=yes] http://HOST/deb ./" > a/list && apt-get -o Dir::State=$PWD/a '
            '-o Dir::State::status=/dev/null -o Dir::Cache=$PWD/a/cache '
            '-o Dir::Etc::sourcelist=$PWD/a/list '
            '-o Dir::Etc::sourceparts=/nowhere -o APT::Sandbox::User= -o Acquire::Retries=0 '
            '-o Dir::Log::Terminal= --error-on=any update && ls a/lists', 'Packages', 'resolv'),
    'urllib': ('python3 -c "import urllib.request as u; '
               'print(u.urlopen(\'https://HOST/hello\').read())"', 'hello from', 'not known'),
    'requests': ('/usr/bin/python3 -c "import requests; '
                 'print(requests.get(\'https://HOST/hello\').text)"',
                 'hello from', 'not known'),
    'fetch': ('node -e "fetch(\'https://HOST/hello\').then(r => r.text()).then(console.log, '
              'e => { console.log(e.cause); process.exit(1) })"', 'hello from', 'ENOTFOUND'),
    'go': ('GODEBUG=netdns=go ./fetch https://HOST/hello', 'hello from', 'no such host'),
    'java': ('java -Djavax.net.ssl.trustStore=trust -Djavax.net.ssl.trustStorePassword=changeit '
             '-XX:TieredStopAtLevel=1 -cp . Fetch https://HOST/hello', 'hello from', ''),
    # it has authorities of its own
    'chromium': ('chromium-headless-shell --headless --no-sandbox --disable-gpu '
                 '--ignore-certificate-errors --dump-dom https://HOST/ 2>/tmp/said '
                 '| grep href=.hello || { tail -3 /tmp/said; false; }', 'hello', 'ERR_'),
}


@pytest.fixture(scope='module')
def built(web, tmp_path_factory):
    """The programs of Go and Java."""
    top = tmp_path_factory.mktemp('built')
    (top / 'fetch.go').write_text(GO)
    (top / 'Fetch.java').write_text(JAVA)
    env = {**os.environ, 'GOCACHE': str(top / 'cache'), 'GO111MODULE': 'off', 'HOME': str(top)}
    # since 1.20 its standard library is compiled here, too
    run('go', 'build', '-o', 'fetch', 'fetch.go', cwd=top, env=env, timeout=600)
    run('javac', 'Fetch.java', cwd=top)
    run('keytool', '-importcert', '-noprompt', '-file', web.world.ca, '-keystore', 'trust',
        '-storepass', 'changeit', cwd=top)
    return [str(top / name) for name in ('fetch', 'Fetch.class', 'trust')]


@pytest.fixture(scope='module')
def workshop(hub, box, built):
    for path in built:
        hub.put(box, path)
    return box


@pytest.mark.parametrize('program', PROGRAMS)
def test_programs(hub, workshop, program):
    """Each reaches the granted server without a setting, and fails readably at another."""
    line, right, wrong = PROGRAMS[program]
    status, text = hub.sh(workshop, TRUST + line.replace('HOST', 'web.example'))
    assert status == 0 and right in text, text
    status, text = hub.sh(workshop, TRUST + line.replace('HOST', 'other.example'))
    assert status != 0 and 'hello from' not in text and wrong in text, text


# ---- ways around ---------------------------------------------------------------------------------

def number(ip):
    a, b, c, d = map(int, ip.split('.'))
    return a << 24 | b << 16 | c << 8 | d


QUERY = ("python3 - <<'END'\nimport socket, struct\n"
         "s = socket.socket(socket.AF_INET, socket.SOCK_{kind}); s.settimeout(20)\n"
         "s.connect(('{to}', 53))\n"
         "q = b'\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0' + b''.join(bytes([len(l)]) + l for l in "
         "b'{name}'.split(b'.')) + b'\\0\\0\\1\\0\\1'\n"
         "s.sendall(struct.pack('>H', len(q)) + q if '{kind}' == 'STREAM' else q)\n"
         "r = s.recv(1500); r = r[2:] if '{kind}' == 'STREAM' else r\n"
         "print('answered', r[3] & 15, struct.unpack('>H', r[6:8])[0])\nEND")
RAW = ("python3 - <<'END'\nimport socket, ssl\n"
       "s = socket.create_connection(('{host}', {port}), {within})\n"
       "s.settimeout({within})\n"
       "if {port} == 443:\n c = ssl._create_unverified_context(); "
       "s = c.wrap_socket(s, server_hostname={sni!r})\n"
       "s.sendall({data!r})\nd = b''\n"
       "while True:\n b = s.recv(9999)\n if not b: break\n d += b\nprint(d.decode())\nEND")


def get(host, path='/hello', more=''):
    return f'GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n'.encode()


def raw(host, data, port=80, sni=None, within=3):
    return RAW.format(host=host, port=port, data=data, sni=sni, within=within)


def sure(*what):
    """For what must succeed, on a busy machine, too."""
    return raw(*what, within=20)


CURL = 'curl -sS -m 3 -k '
SURE = CURL + '-m 20 '  # as sure()
AROUND = {
    'an address': CURL + f'http://{OTHER_IP}/hello',
    'an address that is granted by name': CURL + f'http://{WEB_IP}/hello',
    'in decimal': CURL + f'http://{number(OTHER_IP)}/hello',
    'in octal': CURL + 'http://' + '.'.join(f'0{int(p):o}' for p in OTHER_IP.split('.')) + '/hello',
    'in hex': CURL + f'http://{number(OTHER_IP):#x}/hello',
    'IPv6': CURL + f'http://[{WEB_IP6}]/hello',
    'IPv4 in IPv6': CURL + f'http://[::ffff:{OTHER_IP}]/hello',
    'an address by the proxy': CURL + f'-x http://127.0.0.1:3128 http://{OTHER_IP}/hello',
    'an address by CONNECT': CURL + f'-p -x http://127.0.0.1:3128 http://{WEB_IP}/hello',
    'decimal by SOCKS': CURL + f'-x socks5h://127.0.0.1:3128 http://{number(OTHER_IP)}/hello',
    'another name by the proxy': CURL + '-x http://127.0.0.1:3128 http://other.example/hello',
    'another name by CONNECT': CURL + '-x http://127.0.0.1:3128 https://other.example/hello',
    'another name by SOCKS': CURL + '-x socks5h://127.0.0.1:3128 https://other.example/hello',
    'another port': CURL + 'http://web.example:8080/hello',
    'no proxy for all': 'NO_PROXY="*" ' + CURL + '--noproxy "*" http://other.example/hello',
    'a name with a dot at its end': CURL + 'http://other.example./hello',
    'a name in capitals': CURL + 'http://OTHER.EXAMPLE/hello',
    'the parent of a wildcard': CURL + 'https://wild.example/hello',
    'another Host': raw('web.example', get('other.example', more='Connection: close\r\n')),
    'a second request to another Host':
        raw('web.example', get('web.example', '/tiny')
            + get('other.example', more='Connection: close\r\n')),
    'an absolute URL of another host':
        raw('web.example', b'GET http://other.example/hello HTTP/1.1\r\nHost: web.example\r\n'
            b'Connection: close\r\n\r\n'),
    'another server name': raw('web.example', get('web.example', more='Connection: close\r\n'), 443,
                               'other.example'),
    'no server name': raw('web.example', get('web.example', more='Connection: close\r\n'), 443),
    'no TLS at its port': raw('web.example', get('web.example')[:0] + b'hello\r\n', 443).replace(
        'if 443 == 443', 'if False'),
    'CONNECT in a connection': raw('web.example', b'CONNECT other.example:80 HTTP/1.1\r\n'
                                   b'Host: other.example:80\r\n\r\n' + get('other.example')),
    'CONNECT in CONNECT': raw('127.0.0.1', b'CONNECT web.example:80 HTTP/1.1\r\n'
                              b'Host: web.example:80\r\n\r\n'
                              b'CONNECT other.example:80 HTTP/1.1\r\nHost: other.example:80'
                              b'\r\n\r\n' + get('other.example')).replace(', 80)', ', 3128)'),
    'a redirect to the metadata service': CURL + '-L http://web.example/moved',
    'a name server by UDP': QUERY.format(kind='DGRAM', to=DNS_IP, name='web.example'),
    'a name server by TCP': QUERY.format(kind='STREAM', to=DNS_IP, name='web.example'),
    'ICMP': f'ping -c 1 -W 2 {WEB_IP}',
    'UDP': f'echo x | timeout 3 bash -c "cat > /dev/udp/{WEB_IP}/53"',
}


@pytest.mark.parametrize('what', AROUND)
def test_no_way_around(hub, box, what):
    status, text = hub.sh(box, AROUND[what])
    assert 'hello from' not in text and 'answered' not in text, text
    assert status != 0 or '403' in text or '400' in text or 'not granted' in text, text


CONTROLS = [
    SURE + f'http://{OTHER_IP}/hello', SURE + f'http://[{WEB_IP6}]/hello',
    SURE + f'http://{number(OTHER_IP)}/hello',
    sure(WEB_IP, get('other.example', more='Connection: close\r\n')),
    sure(WEB_IP, get('web.example', '/tiny') + get('other.example', more='Connection: close\r\n')),
    sure(WEB_IP, get('web.example', more='Connection: close\r\n'), 443, 'other.example'),
    sure(WEB_IP, get('web.example', more='Connection: close\r\n'), 443),
    SURE + f'-L --resolve web.example:80:{WEB_IP} http://web.example/moved | grep -q Error && '
           f'echo hello from',
]


@pytest.mark.parametrize('line', CONTROLS)
def test_the_way_is_open_outside(web, line):
    """The same attempts from the host's network namespace."""
    assert 'hello from' in run(*web.world.host.command('sh', '-c', line))


def test_controls_inside(hub, box):
    """The same tools reach what is granted, so that it is the grant that stops them."""
    for line in (SURE + 'http://web.example/hello', SURE + 'http://WEB.example./hello',
                 SURE + '-x http://127.0.0.1:3128 https://web.example/hello',
                 SURE + '-p -x http://127.0.0.1:3128 http://web.example/hello',
                 SURE + '-x socks5h://127.0.0.1:3128 https://web.example/hello',
                 SURE + 'https://a.wild.example/hello',
                 sure('web.example', get('web.example', '/tiny')
                      + get('web.example', more='Connection: close\r\n')),
                 sure('web.example', get('web.example', more='Connection: close\r\n'), 443,
                      'web.example')):
        status, text = hub.sh(box, line)
        assert status == 0 and 'hello from' in text, (line, text)
    status, text = hub.sh(box, QUERY.format(kind='DGRAM', to='127.0.0.1', name='web.example'))
    assert 'answered 0 1' in text, text


def test_names_carry_nothing_out(hub, box):
    """Queries of labels that say something are answered here; nobody outside hears of them."""
    for kind in ('DGRAM', 'STREAM'):
        for name in ('c2VjcmV0.t.example', 'c2VjcmV0.web.example', 'x.other.example'):
            _, text = hub.sh(box, QUERY.format(kind=kind, to='127.0.0.1', name=name))
            assert 'answered 3 0' in text, text
    assert not [name for name, _ in hub.web.world.asked if name.startswith(('c2', 'x.'))]


def test_forbidden_addresses(hub):
    """A granted name that resolves to an address of the host's own nets is not dialled."""
    box = hub.up('inside.example', 'meta.example')
    for name in ('inside.example', 'meta.example'):
        status, text = hub.sh(box, SURE + f'http://{name}/hello')
        assert 'hello from' not in text and 'forbidden' in text, text
    until(lambda: hub.events(box, 'network.denied'))
    assert {json.loads(e['detail'])['reason'] for e in hub.events(box, 'network.denied')} \
        == {'forbidden_address'}
    hub.ok('down', box)


def test_rebinding(hub):
    """The address that was checked is the one that is dialled."""
    turns = iter([[WEB_IP], [FORBIDDEN['metadata']], [FORBIDDEN['metadata']]])
    hub.web.world.zone['rebind.example'] = lambda kind: next(turns, [FORBIDDEN['metadata']]) \
        if kind == 1 else []
    box = hub.up('rebind.example:80')
    assert 'hello from' in hub.sh(box, SURE + 'http://rebind.example/hello')[1]
    for _ in range(3):
        assert 'hello from' not in hub.sh(box, CURL + 'http://rebind.example/hello')[1]
    hub.ok('down', box)


# ---- lives ---------------------------------------------------------------------------------------

def fetches(hub, box, name='web.example'):
    return 'hello from' in hub.sh(box, SURE + f'http://{name}/hello')[1]


def test_sleep_fork_and_snapshot(hub, box):
    """A sandbox that wakes or is started again has its grants, a fork those of its source, a
    snapshot none."""
    before = hub.sh(box, 'getent hosts web.example')[1]
    until(lambda: hub.rest('GET', f'/v1/sandboxes/{box}')[1]['state'] == 'running')
    time_asleep(hub, box)
    assert fetches(hub, box) and hub.sh(box, 'getent hosts web.example')[1] == before
    child = hub.ok('fork', box).strip()
    assert fetches(hub, child)
    assert '*.wild.example' in hub.ok('net', 'show', child)
    snapshot = hub.ok('snapshot', 'create', box).split()[0]
    restored = hub.ok('snapshot', 'restore', snapshot).strip()
    assert not fetches(hub, restored)
    assert json.loads(hub.ok('net', 'show', '-o', 'json', restored))['mode'] == 'none'
    hub.ok('stop', child)
    hub.ok('resume', child)
    until(lambda: fetches(hub, child), SECONDS)
    hub.ok('down', child, restored)


def time_asleep(hub, box):
    """Until no process of it is left but the warden's."""
    def asleep():
        done = run(*hub.prefix, 'curl', '-sS', f'http://127.0.0.1:{hub.port}/metrics', '-H',
                   f'Authorization: Bearer {hub.ok("auth", "token").strip()}')
        return re.search(r'^holt_sandboxes_asleep (\d+)', done, re.M)
    if asleep():
        until(lambda: int(asleep()[1]) > 0, SECONDS)


def test_a_change_leaves_what_stays(hub):
    """A connection to a host that stays granted goes on, one to a host that does not ends."""
    box = hub.up('web.example:80', 'other.example:80')
    slow = {name: subprocess.Popen(
        [*hub.prefix, HOLT, 'exec', box, '--', 'curl', '-sSN', f'http://{name}/slow'], env=hub.env,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for name in ('web.example', 'other.example')}
    for proc in slow.values():
        assert proc.stdout.readline() == b'line\n'
    hub.ok('net', 'revoke', box, 'other.example')
    slow['other.example'].stdout.read()
    assert slow['other.example'].wait(SECONDS) != 0
    for _ in range(5):
        assert slow['web.example'].stdout.readline() == b'line\n'
    assert not fetches(hub, box, 'other.example')
    hub.ok('net', 'allow', box, 'other.example:80')
    assert fetches(hub, box, 'other.example')
    for _ in range(5):
        assert slow['web.example'].stdout.readline() == b'line\n'
    hub.ok('net', 'revoke', box)
    slow['web.example'].stdout.read()
    assert slow['web.example'].wait(SECONDS) != 0 and not fetches(hub, box)
    hub.ok('down', box)


def test_the_proxy_is_killed(hub, box):
    """Connections end, nothing gets out meanwhile, and then all is as before."""
    for _ in range(3):
        old = hub.proxy()
        os.kill(old, signal.SIGKILL)
        status, text = hub.sh(box, CURL + f'http://{OTHER_IP}/hello')
        assert status != 0 and 'hello from' not in text
        until(lambda: fetches(hub, box), SECONDS)
        assert hub.proxy() != old


def test_the_hub_is_killed(web, me):
    """The next hub serves what the registry has."""
    hub = Hub(web, me)
    box = hub.up('web.example:80', '*.wild.example:443')
    address = hub.sh(box, 'getent hosts web.example')[1]
    hub.proc.kill()
    hub.proc.wait()
    hub.start()
    until(lambda: fetches(hub, box), SECONDS)
    assert hub.sh(box, 'getent hosts web.example')[1] == address
    assert 'hello from' in hub.sh(box, SURE + 'https://a.wild.example/hello')[1]
    hub.end()


# ---- who may grant what --------------------------------------------------------------------------

GRANTS = {
    'web.example': (200, [{'host': 'web.example', 'port': 443}]),
    'below': (200, [{'host': 'x.wild.example', 'port': 443},
                    {'host': '*.y.wild.example', 'port': 443}]),
    'port': (403, [{'host': 'web.example', 'port': 22}]),
    'name': (403, [{'host': 'other.example', 'port': 443}]),
    'parent': (400, [{'host': '*.example', 'port': 443}]),
    'range': (403, [{'host': '10.0.0.0/8', 'port': 443}]),
    'address': (403, [{'host': WEB_IP, 'port': 80}]),
    'number': (400, [{'host': '3641214978', 'port': 80}]),
    'service': (403, [{'host': 'db.holt', 'port': 5432}]),
    'scheme': (400, [{'host': 'http://web.example', 'port': 80}]),
    'star': (400, [{'host': '*', 'port': 443}]),
    'everything': (400, [{'host': '*.com', 'port': 443}]),
    'unicode': (400, [{'host': 'bücher.example', 'port': 443}]),
    'NUL': (400, [{'host': 'web.example\0.other.example', 'port': 443}]),
}


@pytest.mark.parametrize('what', GRANTS)
def test_who_is_not_the_operator(hub, what):
    """Over TCP no more can be granted than the hub was started with; over MCP neither."""
    status, allow = GRANTS[what]
    network = {'mode': 'bridge', 'allow': allow}
    got, answer = hub.rest('POST', '/v1/sandboxes', {'template': 'host', 'network': network})
    if what == 'everything':
        status = got if got in (400, 403) else 400
    assert got == status, answer
    if got == 200:
        assert answer['network']['allow'] == allow
        hub.ok('down', answer['id'])
    else:
        assert 'network' in answer['error']['cause'], answer


def test_mcp(web, me):
    """An agent may grant what `holt mcp --allow` says, and nothing else."""
    prefix = ['nsenter', f'--net=/proc/{web.world.host.holder.pid}/ns/net', '--', *me.prefix]
    agent = Who.__new__(Who)
    agent.__dict__.update(me.__dict__)
    agent.prefix = prefix
    mcp = agent.mcp('--allow', 'web.example:80', '--resolver', DNS_IP)
    try:
        mcp.initialize()
        grant = [{'host': 'web.example', 'port': 80}]
        sandbox = mcp.call('sandbox_create', pool='host',
                           network={'allow': grant})['sandbox']
        got = mcp.call('sandbox_exec', sandbox=sandbox, command=SURE + 'http://web.example/hello')
        assert 'hello from' in got['stdout'], got
        grant[0]['host'] = 'other.example'
        denied = mcp.fails('sandbox_create', pool='host',
                           network={'allow': grant})
        assert 'other.example' in denied['cause'], denied
    finally:
        mcp.close()


def local_ports(hub, box):
    """A port of the host's localhost is there at the same address while it is granted."""
    at = f'127.0.0.1:{hub.port}'
    look = f'timeout 30 curl -sS http://{at}/healthz'
    for granted in (False, True, False, True):
        if granted:
            hub.ok('net', 'allow', box, at)
        elif hub.sh(box, look)[0] == 0:
            hub.ok('net', 'revoke', box, at)
        status, text = hub.sh(box, look)
        assert (status == 0) == granted, text
    hub.ok('net', 'revoke', box, at)
    assert hub.sh(box, f'python3 -m http.server {hub.port} --bind 127.0.0.1 >/dev/null 2>&1 & '
                  f'for i in $(seq 300); do curl -s http://{at}/ && exit 0; sleep 0.1; done; '
                  'exit 1')[0] == 0, 'the port is free again'


def test_services(web, me):
    """Of the host, by name, where the operator has named them."""
    folder = tempfile.mkdtemp(prefix='blackbox.')  # which the proxy may reach: it has no rights
    os.chmod(folder, 0o755)
    path = folder + '/service.sock'
    server = web.world.host.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(path)
    os.chmod(path, 0o777)
    server.listen(8)

    def answer():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection:
                    connection.sendall(b'hello from a service\n')

    threading.Thread(target=answer, daemon=True).start()
    hub = Hub(web, me, '--service', f'db.holt:5432=unix:{path}')
    with_it, without = hub.up('db.holt:5432'), hub.up('web.example')
    line = 'exec 3<>/dev/tcp/db.holt/5432; cat <&3'
    for box, right in ((with_it, True), (without, False)):
        _, text = hub.sh(box, f'timeout 30 bash -c "{line}"')
        assert ('hello from' in text) == right, text
    done = hub.run('up', '--allow', 'other.holt:1')
    assert done.returncode != 0 and b'no service' in done.stderr
    local_ports(hub, with_it)
    server.close()
    hub.end()
    shutil.rmtree(folder)


# ---- in a company --------------------------------------------------------------------------------

def test_in_a_company(web, me, tmp_path):
    """Its proxy with a password, its certificates, its name servers, and names within it: by the
    operator's file. The sandbox needs no setting."""
    at = f'http://{PROXY_AT[0]}:{PROXY_AT[1]}'
    own = str(tmp_path / 'ca.pem')
    shutil.copy(web.world.ca, own)
    os.chmod(own, 0o644)
    network = {'ca': own, 'private': ['inside.example'], 'resolvers': {'inside.example': [DNS_IP]}}
    look = 'timeout 30 curl -sS %s https://%s/hello'
    with company_proxy(web.world, str(tmp_path)) as said:
        hub = Hub(web, me, env={'CORP': 'holt:password1'}, config={
            'secrets': {'corp': {'env': 'CORP'}},
            'network': {**network, 'proxy': at, 'proxy_secret': 'corp',
                        'no_proxy': ['inside.example', 'web.example']}})
        box = hub.up('far.example:443', 'web.example:443', 'inside.example:80')
        # without -k: the certificate is of the company's authority
        assert 'hello from' in hub.sh(box, look % ('', 'far.example'))[1]
        assert 'CONNECT far.example:443' in said()
        python = ('import urllib.request; '
                  'print(urllib.request.urlopen("https://web.example/hello").read())')
        assert 'hello from' in hub.sh(box, f"timeout 30 python3 -c '{python}'")[1]
        assert 'web.example' not in said()
        _, text = hub.sh(box, 'timeout 30 curl -sS -i http://inside.example/hello')
        assert 'forbidden_address' not in text, text
        told = hub.run('doctor').stdout.decode()
        assert f'{PROXY_AT[0]}:{PROXY_AT[1]}' in told and own in told and 'password1' not in told
        hub.end()
        # as curl on the host, by the environment; nothing else is trusted or private then
        hub = Hub(web, me, env={'HTTPS_PROXY': at.replace('//', '//holt:passw%6Frd1@'),
                                'NO_PROXY': '.inside.example,10.0.0.0/8'})
        box = hub.up('far.example:443', 'inside.example:80')
        _, text = hub.sh(box, 'timeout 30 curl -sS -i http://inside.example/hello')
        assert 'forbidden_address' in text, text
        assert 'hello from' in hub.sh(box, look % ('-k', 'far.example'))[1]
        assert hub.sh(box, look % ('', 'far.example'))[0] != 0
        assert 'CONNECT inside.example' not in said()
        hub.end()
    for wrong, cause in (({'proxy': 'socks5://x:1'}, 'network.proxy'), ({'ca': 'x'}, '/network/ca'),
                         ({'ca': '/none'}, 'network.ca'), ({'private': ['a b']}, 'network.private'),
                         ({'resolvers': {'a.example': ['b']}}, 'network.resolvers'),
                         ({'proxy': at, 'proxy_secret': 'none'}, 'holt secret set none')):
        os.makedirs(hub.home, exist_ok=True)
        with open(hub.home + '/config.json', 'w', encoding='utf-8') as f:
            json.dump({'network': wrong}, f)
        for path in (hub.home, hub.home + '/config.json'):
            os.chown(path, me.uid, me.uid)
        done = hub.run('serve', '--listen', 'none', '--socket', 'none')
        assert done.returncode != 0 and cause in done.stderr.decode(), (wrong, done)
    shutil.rmtree(hub.home)


# ---- the rest ------------------------------------------------------------------------------------

def test_run(hub):
    done = hub.run('run', '--resolver', DNS_IP, '--allow', 'web.example:80', '--', 'sh', '-c',
                   SURE + 'http://web.example/hello; ' + SURE + 'http://other.example/hello')
    assert b'hello from' in done.stdout and done.returncode == 6, done
    done = hub.run('run', '--', 'sh', '-c', SURE + 'http://web.example/hello')
    assert done.returncode == 6 and b'hello from' not in done.stdout


def test_build(hub):
    """The lines of holt.json reach what is granted to the build, which its image does not keep."""
    folder = hub.home + '/fetched'
    os.mkdir(folder)

    def give(name, **members):
        with open(f'{folder}/{name}', 'w', encoding='utf-8') as f:
            json.dump(members, f)
        os.chmod(f'{folder}/{name}', 0o600)
        run('chown', '-R', f'{hub.who.uid}:{hub.who.uid}', folder)
        return f'{folder}/{name}'

    def build(*words):
        return hub.run('build', folder, '--no-cache', '--resolver', DNS_IP, *words)

    give('holt.json', run=[f'! {CURL} http://other.example/hello',
                           SURE + 'http://web.example/hello >/opt/fetched'])
    done = build()
    assert done.returncode == 125 and b'Could not resolve host: web.example' in done.stderr, done
    done = build('--allow', 'web.example:80')
    if hub.who.uid and b'overlay' in done.stderr:
        pytest.skip('users without privileges have no whole overlays on this kernel')
    assert done.returncode == 0, done
    line = f'cat /opt/fetched; ! {CURL} http://web.example/hello'
    text = hub.ok('run', '--template', 'fetched', '--', 'sh', '-c', line)
    assert text == 'hello from the world\n'
    policy = give('config.json', principals={'local': {'network': ['other.example']}})
    done = build('--config', policy, '--allow', 'web.example:80')
    assert done.returncode == 125 and b'lets local grant web.example:80' in done.stderr, done
    rule = {'name': 'no web', 'actions': ['image.build'], 'when': {'/network': 'web.*'}}
    policy = give('config.json', policy={'rules': [{**rule, 'then': 'deny'}]})
    done = build('--config', policy, '--allow', 'web.example:80')
    assert done.returncode == 125 and b'"no web"' in done.stderr, done
    os.rename(f'{folder}/holt.json', f'{folder}/Containerfile')
    done = build('--allow', 'web.example:80')
    assert done.returncode == 125 and b'--allow is for the lines of holt.json' in done.stderr, done


def test_it_is_seen(hub):
    """Counts, events, and a page that says what is granted."""
    box = hub.up('web.example:80')
    assert fetches(hub, box)
    status, text = hub.sh(box, SURE + '-w "%{http_code}" -H "Host: other.example" '
                          'http://web.example/hello')
    assert text.endswith('403') and 'web.example' in text, text
    for kind in ('network.flow', 'network.denied'):
        until(lambda kind=kind: hub.events(box, kind), what=kind)
    flow = json.loads(hub.events(box, 'network.flow')[0]['detail'])
    assert flow['host'] == 'web.example' and flow['port'] == 80 and flow['address'] == WEB_IP
    denied = json.loads(hub.events(box, 'network.denied')[0]['detail'])
    assert denied['reason'] == 'host_mismatch'
    kept = [json.loads(line) for line in hub.ok('audit', 'tail', '-n', '1000', '--target', box,
                                                '--action', 'network.', '-o', 'json').splitlines()]
    found = {(r['action'], r['outcome']) for r in kept}
    assert {('network.flow', 'ok'), ('network.denied', 'denied')} <= found
    shown = json.loads(hub.ok('net', 'show', '-o', 'json', box))
    assert shown['opened'] >= 1 and shown['denied'] == 1 and shown['bytes_received'] > 0
    assert shown['allow'] == [{'host': 'web.example', 'port': 80}]
    hub.ok('down', box)


def test_denials_do_not_flood(hub):
    """A program that is denied again and again fills neither the registry nor the hub: fifty a
    second are told, and how many were not."""
    began = time.monotonic()
    box = hub.up('web.example:80')
    told = []

    def left_out():
        hub.sh(box, 'curl -s -m 20 -o /dev/null -H "Host: x.example" -H "Connection: close" '
               '"http://web.example/[1-300]"')
        denied = json.loads(hub.ok('net', 'show', '-o', 'json', box))['denied']
        told[:] = hub.events(box, 'network.denied')
        return denied > len(told) and any('events_left_out' in json.loads(e['detail'])
                                          for e in told)
    until(left_out)
    assert len(told) <= 50 * (int(time.monotonic() - began) + 2)
    assert fetches(hub, box)
    hub.ok('down', box)


def test_a_connection_that_goes_on_is_counted(web, me):
    """What it has sent counts while it sends: a budget does not wait for its end."""
    def sink(connection):
        while connection.recv(1 << 16):
            pass

    web.world.serve(sink, WEB_IP, 9000)
    hub = Hub(web, me)
    box = hub.up('web.example:9000')
    proc = subprocess.Popen([*hub.prefix, HOLT, 'exec', box, '--', 'bash', '-c',
                             '(head -c 1000000 /dev/zero; exec sleep 1000) '
                             '> /dev/tcp/web.example/9000'], env=hub.env, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: json.loads(hub.ok('net', 'show', '-o', 'json', box))['bytes_sent'] >= 900_000)
    path = hub.home + '/config.json'
    with open(path + '.new', 'w', encoding='utf-8') as f:
        json.dump({'limits': {'bytes_out': 500_000}}, f)
    os.chmod(path + '.new', 0o600)
    os.rename(path + '.new', path)
    until(lambda: 'bytes_out' in json.dumps(hub.rest('GET', f'/v1/events?sandbox={box}')[1]))
    assert proc.wait(SECONDS) != 0
    hub.end()


def test_many(hub):
    """A thousand where everything is repeated: each reaches what it may and nothing else, also
    after the proxy was killed; what the proxy takes for that is bounded, and given back."""
    n = soak(1000) // (5 if hub.who.uid or not FULL else 1)

    def use():
        return host.memory(hub.proxy()), host.descriptors(hub.proxy())

    hub.ok('down', hub.up('web.example:80'))  # it runs by now
    memory, descriptors = use()
    boxes = [hub.up(*(('web.example:80',), ('other.example:80', 'web.example:81'))[i % 2],
                    more=('--memory', '64M')) for i in range(n)]
    for killed in (False, True):
        if killed:
            os.kill(hub.proxy(), signal.SIGKILL)
        for i, box in enumerate(boxes):
            right, wrong = ('web.example', 'other.example')[::-1 if i % 2 else 1]
            if killed:
                until(lambda: fetches(hub, box, right), SECONDS)
            got = hub.sh(box, SURE + f'http://{right}/hello; ' + CURL + f'http://{wrong}/hello')[1]
            assert got.count('hello from') == 1, (i, got)
        until(lambda: use()[1] - descriptors <= 6 * n + 64)  # 4 or 5 sockets each
        assert use()[0] - memory <= n * 64 * 1024 + (16 << 20), use()
    hub.ok('down', *boxes)
    until(lambda: use()[1] <= descriptors + 16)
