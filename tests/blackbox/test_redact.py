"""Redaction of what leaves, through doors: output whole, in pieces and pages, files and errors.
What is found at all is tested by tests/unit/redact.c."""

import base64
import io
import json
import os
import secrets as random
import tarfile
import urllib.parse

import pytest

import host
from test_hub_cli import Hub
from test_jobs import Jobs
from test_serve import check_step

VALUE = 'V' + random.token_hex(12)  # a value that the operator's file has
TOKEN = 'gh' + 'p_' + random.token_hex(18)
GONE = '[REDACTED:mine:output]'


class Both(Jobs, Hub):
    """A hub with its verbs and its routes."""


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    home = tmp_path_factory.mktemp('redact')
    config = home / 'config.json'
    config.write_text(json.dumps({'secrets': {'mine': {'env': 'MINE'}}, 'redaction': {
        'without': ['jwt'], 'patterns': {'badge': 'BADGE-[0-9]{6}'}}}))
    config.chmod(0o600)
    for path in (home, config):
        os.chown(path, me.uid, me.uid)
    with Both(me, home, '--listen', '127.0.0.1:0', '--pool', '0', env={'MINE': VALUE}) as shared:
        yield shared
    before.check()


@pytest.fixture(scope='module')
def box(hub):
    name = hub.create()
    hub.post('/v1/files/write', sandbox=name, path='f', content=f'{TEXT}\n')
    yield name
    hub.delete(name)


TEXT = f'one {VALUE} two {TOKEN} three'
SHOWN = f'one {GONE} two [REDACTED:github-token:output] three'


def halves(text):
    """What may not be seen of either: the six letters in its middle."""
    return [w for w in (VALUE[8:14], VALUE[-6:], TOKEN[12:18], TOKEN[-6:]) if w in text]


def test_exec(hub, box):
    assert hub.exec(box, 'cat f')['stdout'] == SHOWN + '\n'
    assert hub.exec(box, f'printf "%s" {VALUE[:12]}; sleep 0.05; echo {VALUE[12:]}')['stdout'] \
        == f'{GONE}\n'
    assert hub.ok('exec', box, '--', 'cat', 'f').decode() == SHOWN + '\n'
    assert hub.exec(box, 'base64 -w0 f >&2')['stderr'].count('[REDACTED:mine:output]') == 1
    assert hub.exec(box, 'echo BADGE-123456 BADGE-12')['stdout'] \
        == '[REDACTED:badge:output] BADGE-12\n'
    fine = 'commit ' + random.token_hex(20) + ' password: required\n'
    assert hub.exec(box, 'cat', stdin=fine)['stdout'] == fine


def test_what_is_cut_off_shows_no_half(hub, box):
    """The head of much output ends inside of a value, wherever that is."""
    for n in range(8):
        at = 512 - 4 - 3 * n
        got = hub.exec(box, f'head -c {at} /dev/zero | tr "\\0" " "; cat f; head -c 4000 /dev/zero '
                            '| tr "\\0" " "', max_output_bytes=1024)
        assert len(got['stdout']) < 1200 and not halves(got['stdout'])


def test_pages_show_no_half(hub, box):
    job = hub.start(box, 'cat f; echo err >&2; cat f')
    hub.wait(box, job)
    everything = hub.output(box, job)
    assert everything.decode().count(GONE) == 2 and not halves(everything.decode())
    for offset in range(0, len(TEXT), 3):
        for more in (5, 17):
            page = hub.piece(box, job, offset, limit=more)
            said = page['stdout'] if isinstance(page.get('stdout'), str) else ''
            said += ''.join(base64.b64decode(c['data']).decode() for c in page['chunks'])
            assert not halves(said), (offset, more)
            assert page['next_offset'] == offset + more
        assert not halves(hub.output(box, job, offset).decode())
        follow = b''.join(base64.b64decode(line['data']) for line in hub.followed(box, job, offset)
                          if line.get('data'))
        assert not halves(follow.decode()), offset


def test_files_show_no_half(hub, box):
    whole = hub.post('/v1/files/read', sandbox=box, path='f')
    assert whole['content'] == SHOWN + '\n' and whole['size'] == len(TEXT) + 1, whole
    for offset in range(0, len(TEXT), 3):
        for limit in (4, 30):
            for encoding in ('utf-8', 'base64'):
                got = hub.post('/v1/files/read', sandbox=box, path='f', offset=offset, limit=limit,
                               encoding=encoding)
                said = got['content']
                if encoding == 'base64':
                    said = base64.b64decode(said).decode()
                assert not halves(said), (offset, limit, said)


def lines_of(text):
    return '\n'.join(text[at:at + 76] for at in range(0, len(text), 76))


# As long as a stored secret may be, and with signs that URLs write as three.
KEPT = ''.join(random.choice('/&=+#XYZ789') for _ in range(32_000))
ARMOUR = base64.b64encode(os.urandom(12_000)).decode()
LONGS = {
    'value': KEPT,
    'hex': KEPT.encode().hex(),
    'base64': lines_of(base64.b64encode(KEPT.encode()).decode()),
    'percent': urllib.parse.quote(KEPT, safe=''),
    'key': f'-----BEGIN PRIVATE KEY-----\n{lines_of(ARMOUR)}\n-----END PRIVATE KEY-----',
}


@pytest.mark.parametrize('form', LONGS)
def test_pages_show_nothing_of_long_secrets(hub, box, form):
    """However far a page is behind the beginning of one, through files and output."""
    hub.post('/v1/secrets', name='long', value=KEPT)
    text = LONGS[form]
    hub.post('/v1/files/write', sandbox=box, path='long', content=f'{text}\n')
    job = hub.start(box, 'cat long')
    hub.wait(box, job)
    for offset in (60, 4000, 4200, 9000, len(text) // 2, len(text) - 5000, len(text) - 300):
        part = text[offset:offset + 200]
        got = hub.post('/v1/files/read', sandbox=box, path='long', offset=offset, limit=200)
        page = hub.piece(box, job, offset, limit=200)
        said = got['content'] + ''.join(base64.b64decode(c['data']).decode()
                                        for c in page['chunks'])
        shown = [n for n in range(0, 192) if part[n:n + 8] in said]
        assert not shown, (offset, said)


def test_binary_keeps_its_length(hub, box):
    data = b'\0\x01' + VALUE.encode() + b'\xff' + bytes(range(256)) * 20
    hub.post('/v1/files/write', sandbox=box, path='b', encoding='base64',
             content=base64.b64encode(data).decode())
    got = base64.b64decode(hub.post('/v1/files/read', sandbox=box, path='b',
                                    encoding='base64')['content'])
    assert len(got) == len(data) and VALUE.encode() not in got and got[2 + len(VALUE):] \
        == data[2 + len(VALUE):]


def test_an_archive_stays_whole(hub, box):
    hub.exec(box, 'mkdir -p d && cp f d/')
    reply = hub.ask('GET', f'/v1/sandboxes/{box}/archive?path=/workspace/d')
    assert VALUE.encode() not in reply.body and TOKEN.encode() not in reply.body
    assert reply.body.count(b'[REDACTED:mine:output]') == 1 and len(reply.body) % 512 == 0


@pytest.mark.parametrize('kind', ['archive', 'workspace'])
def test_every_archive_can_be_unpacked(hub, kind):
    """Secrets far from binary data keep their length, too: behind text of about a block."""
    name = f'kept-{kind}'
    hub.post('/v1/workspaces', name=name)
    box = hub.create()
    hub.post(f'/v1/workspaces/{name}/attach', sandbox=box)
    sizes = {f'f{n}': n + len(f'A={TOKEN}\n') for n in (0, 100, 460, 511, 512, 700, 5000)}
    for path, size in sizes.items():
        text = ('x' * 99 + '\n') * 60
        text = text[:size - len(f'A={TOKEN}\n')] + f'A={TOKEN}\n'
        hub.post('/v1/files/write', sandbox=box, path=path, content=text)
    hub.post('/v1/files/write', sandbox=box, path='many', content=f'A={TOKEN}\n' * 40_000)
    if kind == 'workspace':
        hub.post(f'/v1/workspaces/{name}/commit')
        body = hub.raw('GET', f'/v1/workspaces/{name}/export').body
    else:
        body = hub.raw('GET', f'/v1/sandboxes/{box}/archive?path=/workspace').body
    found = {}
    assert b'ghp_' not in body and TOKEN[-8:].encode() not in body, 'nor a half of one in any piece'
    with tarfile.open(fileobj=io.BytesIO(body)) as tar:
        for member in tar:
            base = os.path.basename(member.name)
            if base in sizes:
                found[base] = member.size
                data = tar.extractfile(member).read()
                assert len(data) == member.size and data.endswith(b'\n')
                assert TOKEN.encode() not in data
    assert found == sizes
    hub.delete(box)


def test_errors(hub, box):
    done = hub.run('fs', 'read', box, f'/nothing/{TOKEN}')
    assert done.returncode != 0 and not halves(done.stderr.decode()), done


def test_run_prints_for_its_user(hub):
    assert hub.ok('run', '--', 'echo', TOKEN).decode() == f'{TOKEN}\n'


# What begins a secret, over and over: each is followed up, and none ends.
BEGUN = ['password=', 'TOKEN=$', 'ghp_', 'sk-ant-', 'eyJhbGciOi', 'Bearer ', 'https://a:b@',
         '"key": "', '-----BEGIN RSA PRIVATE KEY-----', VALUE[:-1], 'x', '\n', 'a=', '\\"', '{"a":',
         'sshpass -p ', 'curl -u joe:', 'password=\\\n', 'pwd:', 'psk=',
         '{"password":"hunter2hunter2"},']


def test_no_text_holds_the_loop(hub, box):
    """Every text by several doors, while the hub measures how long it keeps others waiting: by the
    processor's time, of which nobody else on a busy machine takes."""
    for start in BEGUN:
        text = (start * (64 * 1024 // len(start) + 1))[:64 * 1024]
        hub.post('/v1/files/write', sandbox=box, path='begun', content=text)
        hub.exec(box, 'cat begun; cat begun >&2')
        hub.post('/v1/files/read', sandbox=box, path='begun')
        assert check_step(hub, 0.05, start)
    assert 'Longest step of its loop: ' in hub.ok('hub').decode()


# The same for the most that is read at once.
LONG = ['sshpass -p ', 'curl -u joe:', 'password=\\\n', 'password=', 'pwd:', 'psk=',
        '{"password":"hunter2hunter2"},']


def test_no_long_answer_holds_the_loop(me, tmp_path):
    """Pages of 4 MiB: what is long is redacted beside the loop."""
    before = host.Residue(me.trees)
    with Both(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0') as hub:
        box = hub.create()
        for start in LONG:
            size = 4 << 20
            whole = (start * (size // len(start) + 1))[:size]
            hub.post('/v1/files/write', sandbox=box, path='long', content=whole)
            got = hub.post('/v1/files/read', sandbox=box, path='long', limit=size)
            assert got['eof'] and len(got['content']) > 1000
            assert got['content'] == whole or '[REDACTED:' in got['content'], start
            job = hub.start(box, 'cat long')
            hub.wait(box, job)
            page = hub.piece(box, job, 0, limit=4_000_000)
            assert page['next_offset'] == 4_000_000
            assert check_step(hub, 0.05, start)
        hub.delete(box)
    before.check()


def test_many_long_secrets_hold_no_loop(me, tmp_path):
    """Each is spelled once, and not anew for each that comes."""
    with Both(me, tmp_path, '--listen', '127.0.0.1:0', '--pool', '0') as hub:
        values = [random.token_hex(16_000) for _ in range(12)]
        for n, value in enumerate(values):
            hub.post('/v1/secrets', name=f'S{n}', value=value)
            # one takes 30 ms, and without that the last one 300
            assert check_step(hub, 0.15, n)
        box = hub.create()
        for value in values:
            hub.post('/v1/files/write', sandbox=box, path='f', content=value)
            assert hub.exec(box, 'cat f')['stdout'].startswith('[REDACTED:S')
        hub.delete(box)
