"""HTTP rules of network grants from a user's side: through each door, with programs inside and
servers outside. How requests are matched byte by byte is in test_egress.py.
"""

import hashlib
import json
import os
import signal
import subprocess

import pytest

import modules
from client import until
from egress import DNS_IP
from host import program
from test_network import SECONDS, SURE, Hub, web  # noqa: F401: web is a fixture
from who import HOLT

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason='makes network namespaces as root')

RULES = 'deny * /secret*, GET /*'
SHOWN = [{'path': '/secret*', 'then': 'deny'}, {'method': 'GET', 'path': '/*', 'then': 'allow'}]
FILE = {'network': {'presets': {'reading': ['web.example:80 GET /hello']}},
        'principals': {'local': {'network': ['reading', 'other.example', '*.wild.example:80 GET /*',
                                             'web.example:443']}}}


@pytest.fixture(scope='module')
def hub(web, who):  # noqa: F811
    hub = Hub(web, who, '--allow', 'web.example:80 ' + RULES, '--allow', 'other.example')
    yield hub
    hub.end()


def get(hub, box, path, more='', host='web.example'):
    """Status, 0 without an answer, and text."""
    _, text = hub.sh(box, SURE + f'{more} -w "\\n%{{http_code}}" --path-as-is '
                     f'"http://{host}{path}" 2>/dev/null')
    page, _, status = text.rpartition('\n')
    return int(status) if status.isdigit() else 0, page


def test_they_hold(hub):
    """Of each request; the page, the event and the record of audit name the rule."""
    box = hub.up('web.example:80 ' + RULES)
    assert get(hub, box, '/hello') == (200, 'hello from the world\n')
    for path in ('/secret', '/%73ecret', '/x/../secret', '//secret', '/secret;x?y'):
        status, page = get(hub, box, path)
        assert status == 403, (path, page)
    assert 'GET /%73ecret: by the rule deny * /secret*' in get(hub, box, '/%73ecret')[1]
    status, page = get(hub, box, '/hello', '-X DELETE')
    assert status == 403 and 'DELETE /hello: no rule of the grant matches' in page

    def told():
        denied = [json.loads(e['detail']) for e in hub.events(box, 'network.denied')]
        return any(d['method'] == 'DELETE' for d in denied) and denied
    denied = until(told, what='the last one')
    assert {(d['reason'], d.get('rule')) for d in denied} == {
        ('http_rule', 'deny * /secret*'), ('http_rule', None)}
    assert ('DELETE', '/hello') in {(d['method'], d['path']) for d in denied}
    kept = [json.loads(line) for line in hub.ok('audit', 'tail', '-n', '1000', '--target', box,
                                                '--action', 'network.', '-o', 'json').splitlines()]
    assert 'denied' in {r['outcome'] for r in kept if r['action'] == 'network.denied'}
    hub.ok('down', box)


def test_a_change(hub):
    """Without them all is allowed again, with others those hold; a connection that is kept, too."""
    box = hub.up('web.example:80')
    assert get(hub, box, '/hello', '-X DELETE')[0] == 501  # the server's
    hub.ok('net', 'allow', box, 'web.example:80 GET /hello')
    assert get(hub, box, '/hello')[0] == 200 and get(hub, box, '/other')[0] == 403
    shown = json.loads(hub.ok('net', 'show', '-o', 'json', box))['allow']
    assert shown == [{'host': 'web.example', 'port': 80, 'http': [
        {'method': 'GET', 'path': '/hello', 'then': 'allow'}]}]
    assert 'allow GET /hello' in hub.ok('net', 'show', box)
    hub.ok('net', 'allow', box, 'other.example:80')  # leaves the rules of others alone
    assert get(hub, box, '/other')[0] == 403
    assert get(hub, box, '/hello', host='other.example')[0] == 200
    child = hub.ok('fork', box).strip()
    assert get(hub, child, '/hello')[0] == 200 and get(hub, child, '/other')[0] == 403
    hub.proc.kill()
    hub.proc.wait()
    hub.start()
    until(lambda: get(hub, box, '/hello')[0] == 200, SECONDS)
    assert get(hub, box, '/other')[0] == 403
    hub.ok('net', 'revoke', box, 'web.example:80')
    assert get(hub, box, '/hello') == (0, '')
    hub.ok('down', box, child)


HTTPS = {
    'curl': 'curl -fsS "https://web.example$1"',
    'wget': 'wget -qO- "https://web.example$1"',
    'git': '[ $1 != /hello ] || set /repo.git; rm -rf r; git clone -q https://web.example$1 r',
    'urllib': 'python3 -c "import sys, urllib.request as u; '
              'print(u.urlopen(\'https://web.example\' + sys.argv[1]).read())" "$1"',
    'requests': '/usr/bin/python3 -c "import sys, requests; '
                'requests.get(\'https://web.example\' + sys.argv[1]).raise_for_status()" "$1"',
    'fetch': 'node -e "fetch(\'https://web.example\' + process.argv[1]).then('
             'r => process.exit(r.ok ? 0 : 1), e => process.exit(1))" -- "$1"',
}


@pytest.fixture(scope='module')
def trusting(web, me):  # noqa: F811
    """A hub whose proxy trusts the servers of the test."""
    hub = Hub(web, me, trust=web.world.ca)
    web.world.zone['untrusted.example'] = web.world.zone['web.example']
    yield hub
    hub.end()


@pytest.fixture(scope='module')
def reader(trusting):
    return trusting.up('web.example:443 GET /hello, GET /repo.git/*, GET /big')


@pytest.mark.parametrize('program', HTTPS)
def test_within_tls(trusting, reader, program):
    """Ordinary programs, without a setting; the sandbox trusts the proxy, which looks inside."""
    for path, right in (('/hello', True), ('/secret', False)):
        status, text = trusting.sh(reader, f'set -- {path}; {HTTPS[program]}')
        assert (status == 0) == right, text
    status, text = trusting.sh(reader, SURE + 'https://web.example/%73ecret')
    assert 'GET /%73ecret: no rule of the grant matches' in text, text


def test_what_passes_within_tls(trusting, reader):
    """Lengths, ranges, compression and many requests of one connection stay as they are."""
    with open(trusting.web.folder / 'big', 'wb') as f:
        f.write(os.urandom(3_000_000))
    _, text = trusting.sh(reader, SURE + '-o big -w "%{size_download} %{num_connects} %{http_code} '
                          '" --compressed https://web.example/big https://web.example/hello '
                          '-o hello; sha256sum < big; cat hello')
    with open(trusting.web.folder / 'big', 'rb') as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    assert text.startswith('3000000 1 200 ') and digest in text and 'hello from' in text, text
    assert '0 200' in text, text  # the second had no connection of its own
    _, text = trusting.sh(reader, SURE + '-I https://web.example/hello')
    assert '403' in text, text  # HEAD is no GET
    _, text = trusting.sh(reader, SURE + '-D - -o /dev/null https://web.example/big')
    assert 'Content-Length: 3000000' in text and 'chunked' not in text, text


def test_tls_is_looked_at_as_before(trusting, reader):
    """Other names, no names and other protocols; and the server has to be the real one."""
    for line in ('curl -sk -m 5 --connect-to web.example:443:web.example:443 '
                 '--resolve other.example:443:$(getent hosts web.example | cut -d" " -f1) '
                 'https://other.example/hello',
                 'printf "GET /hello HTTP/1.1\\r\\nHost: web.example\\r\\n\\r\\n" | '
                 'openssl s_client -quiet -noservername -connect web.example:443 2>&1',
                 'curl -sk -m 5 -H "Host: other.example" https://web.example/hello',
                 'curl -sk -m 5 --http2-prior-knowledge https://web.example/secret'):
        _, text = trusting.sh(reader, line)
        assert 'hello from' not in text, (line, text)
    other = trusting.up('untrusted.example:443 GET /*')
    _, text = trusting.sh(other, SURE + 'https://untrusted.example/hello')
    assert 'certificate' in text and 'hello from' not in text, text
    trusting.ok('down', other)


def test_an_authority_is_made_once(trusting, reader):
    """A sandbox that was made without can't be held to rules of a TLS host, and is told so; one
    that was made with them keeps it over a restart, in its forks and through changes."""
    plain = trusting.up('web.example:443')
    done = trusting.run('net', 'allow', plain, 'web.example:443 GET /hello')
    assert done.returncode != 0 and b'make a new one, or grant port 80' in done.stderr, done
    assert json.loads(trusting.ok('net', 'show', '-o', 'json', plain))['allow'] == [
        {'host': 'web.example', 'port': 443}]
    trusting.ok('down', plain)
    child = trusting.ok('fork', reader).strip()
    for restart in (False, True):
        if restart:
            trusting.proc.kill()
            trusting.proc.wait()
            trusting.start()
        for box in (reader, child):
            until(lambda: 'hello from' in trusting.sh(box, SURE + 'https://web.example/hello')[1],
                  SECONDS)
            assert '403' in trusting.sh(box, SURE + '-w "%{http_code}" https://web.example/x')[1]
    trusting.ok('net', 'allow', child, 'web.example:443 GET /x')
    assert '404' in trusting.sh(child, SURE + '-w "%{http_code}" https://web.example/x')[1]
    assert '403' in trusting.sh(child, SURE + '-w "%{http_code}" https://web.example/hello')[1]
    trusting.ok('down', child)


def test_the_form_of_a_request(hub):
    """By REST, where nobody is the operator: what the hub was started with, and no more."""
    def make(*allow):
        return hub.rest('POST', '/v1/sandboxes', {
            'template': 'host', 'network': {'mode': 'bridge', 'allow': list(allow)}})

    one = {'host': 'web.example', 'port': 80, 'http': [
        {'path': '/secret*', 'then': 'deny'}, {'method': 'GET', 'path': '/*'}]}
    status, made = make(one)
    assert status == 200, made
    assert made['network']['allow'] == [{'host': 'web.example', 'port': 80, 'http': SHOWN}]
    assert get(hub, made['id'], '/secret')[0] == 403 and get(hub, made['id'], '/hello')[0] == 200
    status, said = hub.rest('POST', f'/v1/sandboxes/{made["id"]}/network',
                            {'network': {'allow': [{'host': 'web.example', 'port': 80}]}})
    assert status == 403 and 'only with the HTTP rules of web.example:80' in said['error']['cause']
    assert get(hub, made['id'], '/secret')[0] == 403
    hub.ok('down', made['id'])
    for http, what in (([{'method': 'GET', 'path': '/*'}], 403),
                       ([{'path': '/secret*', 'then': 'ask'}, one['http'][1]], 403),
                       ([{'path': 'hello'}], 400), ([{'path': '/a*b'}], 400),
                       ([{'path': '/%41'}], 400), ([{'method': 'GE T'}], 400),
                       ([{'then': 'maybe'}], 400), ([{'path': '/a/../b'}], 400),
                       ([{'path': '/a b'}], 400), ([{}] * 33, 400)):
        status, said = make({**one, 'http': http})
        assert status == what, (http, said)
    # what is granted whole may be narrowed
    status, made = make({'host': 'other.example', 'port': 80, 'http': [{'path': '/hello'}]})
    assert status == 200, made
    assert get(hub, made['id'], '/other', host='other.example')[0] == 403
    hub.ok('down', made['id'])
    status, said = make(one, {'host': 'web.example', 'port': 80})
    assert status == 400 and 'twice' in said['error']['cause'], said


def test_the_operators_file(web, who):  # noqa: F811
    """A preset brings its rules; a principal's list is not left by leaving them out."""
    hub = Hub(web, who)
    path = hub.home + '/config.json'
    with open(path, 'w', encoding='utf-8') as f:
        json.dump(FILE, f)
    os.chmod(path, 0o600)
    os.chown(path, who.uid, who.uid)
    hub.proc.terminate()
    hub.proc.wait()
    hub.start()
    box = hub.up('reading')
    assert get(hub, box, '/hello')[0] == 200 and get(hub, box, '/x')[0] == 403
    hub.ok('down', box)
    for allow in ('web.example:80', 'web.example:80 GET /*', '*.wild.example:80',
                  'a.wild.example:80 POST /'):
        done = hub.run('up', '--allow', allow)
        assert done.returncode != 0 and b'only with the HTTP rules' in done.stderr, (allow, done)
    for allow in ('web.example:80 GET /hello', 'a.wild.example:80 GET /*',
                  'other.example:80 GET /'):
        hub.ok('down', hub.up(allow))
    done = hub.run('up', '--allow', 'reading GET /*')
    assert done.returncode != 0, done
    hub.end()


# ---- a person is asked ---------------------------------------------------------------------------

def curl_in(hub, box, *words):
    """A program that goes on while the test does something else."""
    return subprocess.Popen([*hub.prefix, HOLT, 'exec', box, '--', 'curl', '-sS', '-w',
                             '%{http_code}', *words], env=hub.env, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def pending(hub, box):
    def look():
        return [a for a in json.loads(hub.ok('inbox', 'approvals', '-o', 'json'))
                if a['target'] == box and a['state'] == 'pending']
    return until(lambda: (found := look()) and found[0])


def given_up(hub, box, path):
    """What a program that is there no more has left to be answered."""
    proc = curl_in(hub, box, f'http://web.example{path}')
    request = pending(hub, box)
    assert hub.sh(box, 'pkill curl')[0] == 0
    proc.communicate(timeout=SECONDS)
    return request['id']


@pytest.mark.parametrize('url', ['http://web.example/hello?to=me', 'https://web.example/hello'])
def test_a_person_is_asked(trusting, url):
    """They see what is asked for; the request goes on, or ends with a page that says who denied."""
    box = trusting.up('web.example ask GET /hello')
    proc = curl_in(trusting, box, url)
    request = pending(trusting, box)
    assert request['action'] == 'network.request' and request['rule'] == 'ask GET /hello'
    arguments = json.loads(request['arguments'])
    assert arguments == {'sandbox': box, 'method': 'GET', 'host': 'web.example',
                         'port': 80 if url[4] == ':' else 443, 'path': '/hello',
                         **({'query': 'to=me'} if '?' in url else {})}
    trusting.ok('inbox', 'approve', request['id'])
    assert proc.communicate(timeout=SECONDS)[0] == b'hello from the world\n200'
    proc = curl_in(trusting, box, url)
    request = pending(trusting, box)  # the approval was for one request
    trusting.ok('inbox', 'deny', request['id'])
    text = proc.communicate(timeout=SECONDS)[0]
    assert text.endswith(b'403') and b'was denied' in text and request['id'].encode() in text, text
    until(lambda: trusting.events(box, 'network.denied'))
    assert json.loads(trusting.events(box, 'network.denied')[0]['detail'])['rule'] == (
        'ask GET /hello')
    trusting.ok('down', box)


def test_a_program_that_gives_up(trusting):
    """Its request stays for whoever asks for the same again."""
    box = trusting.up('web.example:80 ask GET /hello')
    proc = curl_in(trusting, box, '-m', '15', 'http://web.example/hello')
    request = pending(trusting, box)
    assert b'timed out' in proc.communicate(timeout=SECONDS)[0]
    trusting.ok('inbox', 'approve', request['id'])
    assert get(trusting, box, '/hello') == (200, 'hello from the world\n')
    trusting.ok('down', box)


def test_a_sandbox_ends_with_its_requests(trusting):
    """Those of a program that gave up, and an approval that came too late; over a restart, too."""
    box, other = trusting.up('web.example:80 ask GET /*'), trusting.up('web.example:80 ask GET /*')

    def states():
        return {a['id']: a['state'] for a in json.loads(
            trusting.ok('inbox', 'approvals', '-a', '-o', 'json'))}

    approved = given_up(trusting, box, '/hello')
    trusting.ok('inbox', 'approve', approved)
    left, kept = given_up(trusting, box, '/other'), given_up(trusting, other, '/hello')
    trusting.proc.kill()
    trusting.proc.wait()
    trusting.start()
    assert [states()[id] for id in (approved, left, kept)] == ['approved', 'pending', 'pending']
    trusting.ok('down', box)
    until(lambda: [states()[id] for id in (approved, left)] == ['void', 'void'])
    assert states()[kept] == 'pending'
    done = trusting.run('inbox', 'approve', left)
    assert done.returncode != 0 and b'is void' in done.stderr, done
    trusting.ok('inbox', 'approve', kept)
    assert get(trusting, other, '/hello')[0] == 200
    trusting.ok('down', other)


def test_a_sandbox_that_ends_without_a_hub(web, me):  # noqa: F811
    """Its requests are void once another hub runs."""
    hub = Hub(web, me)
    box = hub.up('web.example:80 ask GET /*')
    left = []
    for path in ('/hello', '/other'):
        left.append(given_up(hub, box, path))
        if path == '/hello':
            hub.ok('inbox', 'approve', left[0])
    warden = program(hub.proc.pid, 'holt-warden')
    hub.proc.kill()
    hub.proc.wait()
    os.kill(warden, signal.SIGKILL)
    hub.start()
    assert 'the hub that ran it ended' in hub.ok('inspect', box)
    kept = json.loads(hub.ok('inbox', 'approvals', '-a', '-o', 'json'))
    assert sorted((a['id'], a['state']) for a in kept) == sorted((id, 'void') for id in left)
    hub.end()


def test_nobody_answers(web, me):  # noqa: F811
    """At its deadline it is denied. An answer for always holds for the same, and what it frees."""
    hub = Hub(web, me)
    with open(hub.home + '/config.json', 'w', encoding='utf-8') as f:
        json.dump({'approvals': {'expire_seconds': 1}}, f)
    os.chmod(hub.home + '/config.json', 0o600)
    hub.proc.terminate()
    hub.proc.wait()
    hub.start()
    box = hub.up('web.example:80 ask GET /*')
    status, page = get(hub, box, '/hello')
    assert status == 403 and 'GET /hello' in page and 'in time' in page, page
    with open(hub.home + '/config.json', 'w', encoding='utf-8') as f:
        f.write('{}')
    hub.proc.terminate()
    hub.proc.wait()
    hub.start()
    box = hub.up('web.example:80 ask GET /*')
    proc = curl_in(hub, box, 'http://web.example/hello')
    request = pending(hub, box)
    hub.ok('inbox', 'approve', '--always', '--allow', '/path=/h*', request['id'])
    assert proc.communicate(timeout=SECONDS)[0].endswith(b'200')
    assert get(hub, box, '/hello')[0] == 200 and get(hub, box, '/hx')[0] == 404
    proc = curl_in(hub, box, 'http://web.example/other')
    pending(hub, box)
    proc.kill()
    proc.communicate()
    hub.end()


ASKING = r"""
import urllib.error, urllib.request
def call(id, name, arguments):
    try:
        text = urllib.request.urlopen('http://web.example' + arguments['text']).read().decode()
    except urllib.error.HTTPError as e:
        text = f'{e.code} {e.read().decode()}'
    say({'id': id, 'result': {'content': [{'type': 'text', 'text': text}]}})
main()
"""


def test_nobody_is_asked_for_a_module(web, me):  # noqa: F811
    """Its own HTTP rules hold; what a person would have to allow is denied."""
    hub = Hub(web, me)
    rules = 'web.example:80 ask GET /hello, GET /*'
    modules.home(me, hub.home, reads=modules.server(ASKING, sandbox={'network': [rules]}))
    hub.proc.terminate()
    hub.proc.wait()
    hub.start()
    status, shown = hub.rest('GET', '/v1/modules/reads')
    status, said = hub.rest('POST', '/v1/modules/reads/approve', {'digest': shown['digest']})
    assert status == 200, said
    for path, wanted in (('/hello', '403'), ('/other', '404'), ('/hello', 'of a module')):
        status, said = hub.rest('POST', '/v1/modules/reads/tools/echo',
                                {'arguments': {'text': path}})
        assert status == 200 and wanted in said['result']['content'][0]['text'], said
    hub.end()


@pytest.mark.parametrize('text', ['web.example:80 /hello', 'web.example:80 GET', 'web.example:80 ',
                                  'web.example:80 GET hello', 'web.example:80 maybe GET /hello',
                                  'web.example:80 GET /a*b', 'web.example:80 GET /, '])
def test_what_is_no_rule(hub, text):
    done = hub.run('up', '--allow', text)
    assert done.returncode != 0 and b'network.allow_domains[0]' in done.stderr, done


def test_run(hub):
    """Without a hub."""
    done = hub.run('run', '--resolver', DNS_IP, '--allow', 'web.example:80 GET', '--', 'true')
    assert done.returncode != 0 and b'no HTTP rule' in done.stderr
    done = hub.run('run', '--resolver', DNS_IP, '--allow', 'web.example GET /hello', '--', 'true')
    assert done.returncode != 0 and b'need a hub' in done.stderr
    done = hub.run('run', '--resolver', DNS_IP, '--allow', 'web.example:80 GET /hello', '--', 'sh',
                   '-c', SURE + 'http://web.example/hello; ' + SURE + 'http://web.example/x')
    assert b'hello from' in done.stdout and b'no rule of the grant' in done.stdout, done
