"""Placeholder secrets from a user's side: real programs in real sandboxes, which have a placeholder
only, and a TLS server beside them, which gets the value. The proxy alone is in test_placeholder.py.
"""

import base64
import contextlib
import json
import os
import re
import types

import pytest

import host
from client import until
from egress import OTHER_IP, WEB_IP, World
from test_network import Hub, run
from test_placeholder import Server

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason='makes network namespaces as root')

VALUE, NEW, OTHER = 'canary-S3cr3t/of+the="web"', 'canary-rotated-v4lue', 'canary-of-another-host'
MARK = re.compile(r'holt-secret-[0-9a-f]{32}')
CURL = 'curl -sS -m 20 '
GO = '''package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
	q, _ := http.NewRequest("GET", os.Args[1], nil)
	q.Header.Set("Authorization", "Bearer " + os.Getenv("WEB"))
	r, err := http.DefaultClient.Do(q)
	if err != nil { fmt.Println(err); os.Exit(1) }
	io.Copy(os.Stdout, r.Body)
}
'''
JAVA = '''import java.net.URI; import java.net.http.*;
public class Fetch { public static void main(String[] a) throws Exception {
	var request = HttpRequest.newBuilder(URI.create(a[0]))
		.header("Authorization", "Bearer " + System.getenv("WEB")).build();
	System.out.print(HttpClient.newHttpClient().send(request,
		HttpResponse.BodyHandlers.ofString()).body()); } }
'''
PROGRAMS = {
    'curl': CURL + '-H "Authorization: Bearer $WEB" https://web.example/x',
    'curl basic': CURL + '-u "user:$WEB" https://web.example/x',
    'wget': 'wget -qO- --header "Authorization: Bearer $WEB" https://web.example/x',
    'urllib': '/usr/bin/python3 -c "import os, urllib.request as u; print(u.urlopen(u.Request('
              "'https://web.example/x', headers={'Authorization': 'Bearer ' + os.environ['WEB']}"
              ')).read().decode())"',
    'requests': '/usr/bin/python3 -c "import os, requests; print(requests.get('
                "'https://web.example/x', headers={'Authorization': 'Bearer ' + "
                'os.environ[\'WEB\']}).text)"',
    'fetch': 'node -e "fetch(\'https://web.example/x\', {headers: {Authorization: '
             '\'Bearer \' + process.env.WEB}}).then(r => r.text()).then(console.log)"',
    'https': 'node -e "require(\'https\').get(\'https://web.example/x\', {headers: {Authorization: '
             '\'Bearer \' + process.env.WEB}}, r => r.pipe(process.stdout))"',
    'go': './fetch https://web.example/x',
    'java': 'java -XX:TieredStopAtLevel=1 -cp . Fetch https://web.example/x 2>/dev/null',
}


class Site:
    def __init__(self, top):
        self.world = World(str(top))
        self.world.zone.update({'web.example': [WEB_IP], 'other.example': [OTHER_IP],
                                'a.wild.example': [OTHER_IP]})
        self.web, self.other = Server(), Server()
        self.world.serve(self.web, WEB_IP, 443, tls=True)
        self.world.serve(self.web, WEB_IP, 80)
        self.world.serve(self.other, OTHER_IP, 443, tls=True)

    def saw(self):
        """What the servers got since the last time."""
        got = b'\n'.join(self.web.heads + self.other.heads).decode()
        self.web.heads.clear()
        self.other.heads.clear()
        return got


@pytest.fixture(scope='module')
def site(tmp_path_factory):
    site = Site(tmp_path_factory.mktemp('site'))
    yield site
    site.world.close()


class BoundHub(Hub):
    def configure(self, **more):
        def secret(path, *hosts, ca=self.web.world.ca):
            return {'file': path, 'hosts': hosts, **({'ca': ca} if ca else {})}

        files = {}
        for name, value in (('web', VALUE), ('other', OTHER)):
            files[name] = os.path.join(self.home, name)
            self.write(files[name], value + '\n')
        self.write(os.path.join(self.home, 'config.json'), json.dumps({
            'principals': {'token': {'secrets': ['web']}}, **more,
            'secrets': {'web': secret(files['web'], 'web.example'),
                        'other': secret(files['other'], '*.wild.example'),
                        'untrusted': secret(files['other'], 'other.example', ca=None),
                        'stored': {'store': True, 'hosts': ['web.example'],
                                   'ca': self.web.world.ca},
                        'plain': {'file': files['web']}, **more.get('secrets', {})}}))

    def write(self, path, text):
        with open(path + '~', 'w') as f:
            f.write(text)
        os.chmod(path + '~', 0o600)
        os.chown(path + '~', self.who.uid, self.who.uid)
        os.replace(path + '~', path)

    def start(self):
        self.configure()
        super().start()

    def make(self, *words, allow=('web.example:443', 'other.example:443', 'a.wild.example:443',
                                  'web.example:80')):
        return self.up(*allow, more=[w for s in words for w in ('--secret', s)])


@pytest.fixture(scope='module')
def hub(site, me):
    before = host.Residue(me.trees)
    hub = BoundHub(types.SimpleNamespace(world=site.world), me, '--allow', 'web.example',
                   '--pool', '0')
    yield hub
    hub.end()
    before.check()


@pytest.fixture(scope='module')
def box(hub, tmp_path_factory):
    box = hub.make('web', 'other', 'untrusted')
    top = tmp_path_factory.mktemp('built')
    (top / 'fetch.go').write_text(GO)
    (top / 'Fetch.java').write_text(JAVA)
    env = {**os.environ, 'GOCACHE': str(top / 'cache'), 'GO111MODULE': 'off', 'HOME': str(top)}
    # since 1.20 its standard library is compiled here, too
    run('go', 'build', '-o', 'fetch', 'fetch.go', cwd=top, env=env, timeout=600)
    run('javac', 'Fetch.java', cwd=top)
    for name in ('fetch', 'Fetch.class'):
        hub.put(box, str(top / name))
    return box


@pytest.mark.parametrize('program', PROGRAMS)
def test_programs(hub, site, box, program):
    """They need no setting. The server gets the value, and what it echoes is the placeholder."""
    site.saw()
    status, text = hub.sh(box, f'({PROGRAMS[program]}) > out; grep -c canary out; '
                          f'grep -o "GET /x" out; grep -o holt-secret out')
    saw = site.saw()
    if 'basic' in program:
        token = base64.b64encode(f'user:{VALUE}'.encode()).decode()
        assert text.startswith('0\nGET /x') and f'Basic {token}' in saw, (text, saw)
    else:
        assert text == '0\nGET /x\nholt-secret\n' and f'Bearer {VALUE}' in saw, (text, saw)
    assert not MARK.search(saw), saw


def test_nothing_of_the_value_is_inside(hub, box):
    """In no variable, file or process; nor in what the hub writes and says."""
    line = ('echo $WEB; env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; '
            'echo; echo keys: $(grep -c PRIVATE $SSL_CERT_FILE); '
            'grep -rl can[a]ry / --include="*" -s --exclude-dir=proc --exclude-dir=sys '
            '--exclude-dir=usr; mount | grep -i trust')
    text = hub.sh(box, line)[1]
    assert 'canary' not in text and MARK.search(text) and '\nkeys: 0\n' in text, text
    text = hub.sh(box, 'touch /etc/ssl/certs/ca-certificates.crt; rm /etc/ssl/certs/java/cacerts;'
                  ' : > /etc/ssl/certs/java/cacerts')[1]
    assert text.count('sh:') + text.count('touch:') + text.count('rm:') == 3, text
    for top, _, names in os.walk(hub.home):
        for name in names:
            path = os.path.join(top, name)
            if name not in ('web', 'other') and os.path.isfile(path):
                with open(path, 'rb') as f:
                    assert b'canary' not in f.read(), path
    with open(hub.log, 'rb') as f:
        assert b'canary' not in f.read()
    key = [os.path.join(top, name) for top, _, names in os.walk(hub.home) for name in names
           if name == 'key']
    assert key and all(os.stat(k).st_mode & 0o777 == 0o600 for k in key)


KEPT = {
    'another host': CURL + '-k -H "Authorization: Bearer $WEB" https://a.wild.example/x',
    'the URL': CURL + '"https://web.example/$WEB?q=$WEB"',
    'the body': CURL + '-d "$WEB" https://web.example/x',
    'the name of a field': CURL + '-H "$WEB: x" https://web.example/x',
    'without TLS': CURL + '-H "Authorization: Bearer $WEB" http://web.example/x',
}


@pytest.mark.parametrize('how', KEPT)
def test_stays_a_placeholder(hub, site, box, how):
    site.saw()
    status, text = hub.sh(box, KEPT[how])
    saw = site.saw()
    assert 'canary' not in saw + text, (saw, text)
    assert status == 0 and MARK.search(saw + text), (saw, text)
    assert hub.sh(box, PROGRAMS['curl'])[0] == 0 and VALUE in site.saw()


def test_of_another_sandbox(hub, site, box):
    theirs = hub.sh(box, 'echo $WEB')[1].strip()
    mine = hub.make('web')
    site.saw()
    line = CURL + f'-H "Authorization: Bearer {theirs}" https://web.example/x'
    assert hub.sh(mine, line)[0] == 0 and theirs in site.saw()
    assert hub.sh(mine, PROGRAMS['curl'])[0] == 0 and VALUE in site.saw()
    hub.ok('rm', mine)


def test_server_is_verified(hub, site, box):
    """That host has no `ca`, and the test's certificate is in no trust store of the machine."""
    site.saw()
    line = CURL + '-kw "%{http_code}" -H "Authorization: Bearer $UNTRUSTED" https://other.example/'
    text = hub.sh(box, line)[1]
    assert text.endswith('502') and not site.saw(), text
    # trusted inside only where TLS ends in the proxy
    status, text = hub.sh(box, 'curl -sS https://web.example/x; echo; unset SSL_CERT_FILE '
                          'CURL_CA_BUNDLE; curl -sS https://web.example/x')
    assert status == 0 and text.count('GET /x') == 2, text


def test_fork_and_snapshot(hub, site, box):
    """A fork has its source's memory, so also its secrets; what is restored has none of it."""
    fork = hub.ok('fork', box).strip()
    site.saw()
    assert hub.sh(fork, PROGRAMS['curl'])[0] == 0 and VALUE in site.saw()
    snapshot = hub.ok('snapshot', 'create', fork).split()[0]
    hub.ok('rm', fork)
    back = hub.ok('snapshot', 'restore', snapshot).split()[0]
    text = hub.sh(back, 'echo "<$WEB>"; env; cat /etc/ssl/certs/ca-certificates.crt')[1]
    assert '<>' in text and 'JAVA_TOOL_OPTIONS' not in text and not MARK.search(text)
    hub.ok('rm', back)


def test_refused(hub):
    allow = ['--allow', 'web.example:443']
    for words, wrong in ((['--secret', 'plain', *allow], 'has no hosts'),
                         (['--secret', 'nothing', *allow], 'has no hosts'),
                         (['--secret', 'other', *allow], 'add it to network'),
                         (['--secret', 'web'], 'add it to network')):
        done = hub.run('up', *words)
        assert done.returncode != 0 and wrong in done.stderr.decode(), done
    body = {'network': {'allow': [{'host': 'web.example', 'port': 443}]}}
    for ref, status in (('web', 200), ('other', 403), ('stored', 403)):
        got, answer = hub.rest('POST', '/v1/sandboxes', {**body, 'secrets': {'T': {'ref': ref}}})
        assert got == status, answer
        if got == 200:
            hub.ok('rm', answer['id'])


def test_rotated_and_revoked(hub, site):
    hub.ok('secret', 'set', 'stored', input=VALUE.encode(), stdin=None)
    box = hub.make('stored')
    line = CURL + '-H "Authorization: Bearer $STORED" https://web.example/x'
    site.saw()
    assert hub.sh(box, line)[0] == 0 and VALUE in site.saw()
    hub.ok('secret', 'set', 'stored', input=NEW.encode(), stdin=None)

    def sends(what):
        hub.sh(box, line)
        return what in site.saw()
    until(lambda: sends(NEW), what='the new value is used')
    hub.ok('secret', 'rm', 'stored')
    until(lambda: not sends('canary'), what='no value is used')
    hub.ok('rm', box)


def test_restarts(hub, site):
    """The proxy, and then the hub, are killed: the sandbox has the same authority and value."""
    box = hub.make('web')
    with contextlib.suppress(ProcessLookupError):
        os.kill(hub.proxy(), 9)

    def sends():
        site.saw()
        hub.sh(box, PROGRAMS['curl'])
        return VALUE in site.saw()
    until(sends, what='a new proxy has the secret')
    hub.proc.kill()
    hub.proc.wait()
    Hub.start(hub)
    until(sends, what='a new hub has the secret')
    trust = os.path.join(hub.home, 'trust')
    before = len(os.listdir(trust))
    hub.ok('rm', box)
    assert len(os.listdir(trust)) == before - 1
