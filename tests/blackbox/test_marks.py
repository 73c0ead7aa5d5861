"""Marks in the place of secrets, and what becomes of them when a model writes them back."""

import base64
import hashlib
import io
import itertools
import json
import os
import random
import re
import tarfile

import pytest

import test_e2b
import test_hub_cli
from client import data_of
from rest import Failed, b64, joined
from test_coding import (  # noqa: F401
    Project, answer, call, edit, fails, mcp, project, read, texts)
from test_keys import key
from test_serve import Session, check_step
from test_trees import download, upload

OUTPUT_MARK = re.compile(r'\[REDACTED:[A-Za-z0-9_.-]+:output\]')
MARK = re.compile(r'\[REDACTED:[A-Za-z0-9_.-]+:[a-z2-7]{10}\]')
RANDOM = random.Random(32)


def word(n):
    return ''.join(RANDOM.choice('abcdefghkmnpqrstuvwxyzABCDEFGHKMNP') + RANDOM.choice('23456789')
                   for _ in range((n + 1) // 2))[:n]


def pem():
    body = ''.join(RANDOM.choice('ABCDEFGHIJKLMNOPabcdefghijklmnop0123456789+/')
                   for _ in range(64 * 12))
    lines = [body[i:i + 64] for i in range(0, len(body), 64)]
    return '\n'.join(['-----BEGIN RSA PRIVATE KEY-----', 'MII' + lines[0][3:], *lines[1:],
                      '-----END RSA PRIVATE KEY-----'])


# Each makes a line, or several, with a secret of n bytes.
FORMS = [
    lambda n: f'      POSTGRES_PASSWORD: {word(n)}',
    lambda n: f'{{"user": "joe", "password": "{word(n)}"}}',
    lambda n: f'DB_PASSWORD={word(n)}',
    lambda n: f"password = '{word(n)}'",
    lambda n: f'url: postgres://joe:{word(n)}@db.internal/app',
    lambda n: f'TOKEN=ghp_{"A1b2C3d4" * 4}{word(4)}',
    lambda n: f'a={"TOKEN=ghp_" + "A1b2C3d4" * 4 + word(4)} b={"TOKEN=ghp_" + "A1b2C3d4" * 5}',
    lambda n: pem(),
]
PLAIN = ['services:', '  db:', '', '# password: see the vault', 'x = 1', 'a\tb', 'ä €']


def lines_of(shown):
    return [line.split('\t', 1)[1] for line in shown.split('\n')[:-1]]


def made(end):
    """A file of secrets and of none, and how many lines with a secret it has at least."""
    lines = [RANDOM.choice(PLAIN) for _ in range(RANDOM.randrange(4))]
    for form in RANDOM.sample(FORMS, 4):
        lines += form(RANDOM.randrange(8, 40)).split('\n')
        lines += [RANDOM.choice(PLAIN) for _ in range(RANDOM.randrange(3))]
    return end.join(lines) + RANDOM.choice([end, ''])


def shown_whole(mcp, path, text):
    """As the model sees it: every mark is whole, lines are lines, and nothing is cut."""
    shown = lines_of(read(mcp, path)[0])
    assert len(shown) == len(text.split('\n')) - text.endswith('\n')
    assert sum(line.count('[REDACTED') for line in shown) \
        == sum(len(MARK.findall(line)) for line in shown) > 0, shown
    return '\n'.join(shown) + ('\n' if text.endswith('\n') else '')


@pytest.mark.parametrize('end', ['\n', '\r\n'])
def test_what_is_written_back_is_what_was_there(mcp, project, end):
    for _ in range(6):
        text = made(end)
        project.put('made', text)
        shown = shown_whole(mcp, 'made', text)
        call(mcp, 'Write', file_path='made', content=shown)
        assert project.get('made').decode() == text
        # Each line is changed once, by Edit beside the secret and by Write: the others stay.
        lines = shown.split('\n')
        at = RANDOM.choice([k for k, line in enumerate(lines)
                            if MARK.search(line) and 'private-key' not in line])
        mark = MARK.search(lines[at])[0]
        edit(mcp, 'made', mark, mark)
        assert project.get('made').decode() == text
        lines.insert(at, 'new: line' + end[:-1])
        call(mcp, 'Write', file_path='made', content='\n'.join(lines))
        was = text.split('\n')
        was.insert(at, 'new: line' + end[:-1])
        assert project.get('made').decode() == '\n'.join(was)
        # What the model saw first is still good: the file was changed by itself alone.
        call(mcp, 'Write', file_path='made', content=shown)
        assert project.get('made').decode() == text


def test_an_edit_finds_marks_moves_and_doubles_them(mcp, project):
    project.put('env', 'A=1\nDB_PASSWORD=kx9Lq2vTzz\nB_PASSWORD=Wn4tRb8yQx\n')
    one, two = MARK.findall(read(mcp, 'env')[0])
    edit(mcp, 'env', f'A=1\nDB_PASSWORD={one}', f'A=2\nMY_PASSWORD={one}')
    assert project.get('env') == b'A=2\nMY_PASSWORD=kx9Lq2vTzz\nB_PASSWORD=Wn4tRb8yQx\n'
    edit(mcp, 'env', 'A=2', f'C_PASSWORD={two}\nA=2')
    assert project.get('env').startswith(b'C_PASSWORD=Wn4tRb8yQx\nA=2\n')
    edit(mcp, 'env', f'MY_PASSWORD={one}\n', '')
    assert b'kx9' not in project.get('env')
    # That of a secret which is gone from the file stands for nothing.
    before = project.get('env')
    failure, _ = fails(mcp, 'invalid_arguments', 'Edit', file_path='env', old_string='A=2',
                       new_string=f'D_PASSWORD={one}')
    assert 'Read the file again' in failure['cause']
    assert project.get('env') == before


def parts_of(n, longest):
    """All parts of n characters that are so long at most, and some longer ones."""
    short = [slice(i, i + k) for k in range(1, longest + 1) for i in range(n - k + 1)]
    return short + [slice(*sorted(RANDOM.sample(range(n + 1), 2))) for _ in range(60)]


def test_an_edit_replaces_no_part_of_a_mark(mcp, project):
    """Whatever is replaced, a secret is gone only with its whole mark."""
    text = 'x = [1]: RED\npassword = Zk4pX9qLw2tY\nB_TOKEN: "Wn4tRb8yQx"\n'
    done = cut = 0
    project.put('part', text)
    shown = '\n'.join(lines_of(read(mcp, 'part')[0])) + '\n'
    marks = MARK.findall(shown)
    assert len(marks) == 2
    for at, everywhere in itertools.product(parts_of(len(shown), 3), (False, True)):
        part = shown[at]
        said = answer(mcp, 'Edit', file_path='part', old_string=part, replace_all=everywhere,
                      new_string=part.swapcase() if part.swapcase() != part else '(')
        now = project.get('part').decode()
        if said.get('isError'):
            assert now == text
            why = json.loads(texts(said)[0])['cause']
            apart = MARK.split(shown)
            if len(part) < 10 and not any(part in piece for piece in apart):
                assert 'part of a mark' in why or 'stands for a secret' in why, (part, why)
                cut += 1
            elif sum(piece.count(part) for piece in apart) == 1 and '[RED' not in part:
                assert 'would be' in why or 'is gone' in why or len(part) > 10, (part, why)
            continue
        for mark, secret in zip(marks, ('Zk4pX9qLw2tY', 'Wn4tRb8yQx')):
            assert secret in now or mark in part, (part, now)
        done += 1
        project.put('part', text)
        shown = '\n'.join(lines_of(read(mcp, 'part')[0])) + '\n'
        marks = MARK.findall(shown)
    assert done > 100 and cut > 100, (done, cut)
    # What is in the text and in marks, too, is replaced in the text alone, and is once there.
    edit(mcp, 'part', '[', '(', replace_all=True)
    edit(mcp, 'part', 'RED', 'BLUE')
    assert project.get('part').decode() == text.replace('[', '(').replace('RED', 'BLUE')


def test_equal_secrets_have_different_marks(mcp, project):
    """A guess that is written into the file is not told from a wrong one."""
    project.put('same', 'password: kx9Lq2vTzz\npassword: kx9Lq2vTzz\n')
    one, two = MARK.findall(read(mcp, 'same')[0])
    assert one != two
    call(mcp, 'Write', file_path='same', content=f'password: {one}\npassword: kx9Lq2vTzz\n')
    again = MARK.findall(read(mcp, 'same')[0])
    assert again[0] == one and again[1] not in (one, two)


def test_no_mark_moves_a_secret_into_the_open(mcp, project):
    text = b'password: kx9Lq2vTzz\nx\n'
    project.put('open', text)
    (mark,) = MARK.findall(read(mcp, 'open')[0])
    for content in (f'{mark}\n', f'colour: {mark}\n', f'{mark}\npassword: {mark}\n'):
        failure, _ = fails(mcp, 'invalid_arguments', 'Write', file_path='open', content=content)
        assert 'would be shown' in failure['cause'], failure
    assert project.get('open') == text


def test_marks_of_elsewhere_are_refused(mcp, project, me):
    secret = b'password: kx9Lq2vTzz\n'
    for name in ('here', 'there'):
        project.put(name, secret)
    (mark,) = MARK.findall(read(mcp, 'here')[0])
    read(mcp, 'there')
    outputs = [call(mcp, 'Bash', command='cat here')[0], call(mcp, 'Grep', pattern='pass')[0]]
    others = [re.search(r'\[REDACTED:[^]]*\]', said)[0] for said in outputs if 'REDACTED' in said]
    assert others
    for name in ('there', 'new'):
        for text in (mark, *others, '[REDACTED:password:aaaaaaaaaa]'):
            failure, _ = fails(mcp, 'invalid_arguments', 'Write', file_path=name,
                               content=f'password: {text}\n')
            assert 'stands for a secret' in failure['cause'], failure
            assert 'Read the file' in failure['cause']
    # One that was changed, where the file has secrets.
    for text in (mark[:-1], mark[:-3] + ']', '[REDACTED:password]'):
        fails(mcp, 'invalid_arguments', 'Write', file_path='here', content=f'password: {text}\n')
    fails(mcp, 'invalid_arguments', 'Edit', file_path='here',
          old_string='[REDACTED:password:aaaaaaaaaa]', new_string='x')
    assert project.get('here') == project.get('there') == secret
    # After a change by another, and in another conversation, which is as after a restart.
    project.put('here', 'a: 1\n' + secret.decode())
    _, more = fails(mcp, 'file_changed', 'Edit', file_path='here', old_string=mark, new_string='x')
    (now,) = MARK.findall(more[0])
    fails(mcp, 'invalid_arguments', 'Write', file_path='here', content=f'password: {mark}\n')
    call(mcp, 'Write', file_path='here', content=f'b: 1\npassword: {now}\n')
    assert project.get('here') == b'b: 1\n' + secret
    other = me.mcp('--pool', '0', '--workspace', project.path)
    other.initialize()
    read(other, 'here')
    fails(other, 'invalid_arguments', 'Write', file_path='here', content=f'password: {now}\n')
    assert other.close() == 0 and project.get('here') == b'b: 1\n' + secret


def test_text_about_marks_is_text(mcp, project):
    text = ('Replaces it by `[REDACTED:kind]`, such as [REDACTED:password] or\n'
            '[REDACTED:jwt:TAG], [REDACTED:jwt:abcdefghij] and [REDACTED:jwt:output]. [REDACTED\n')
    project.put('doc.md', text)
    assert lines_of(read(mcp, 'doc.md')[0]) == text.splitlines()
    edit(mcp, 'doc.md', 'such as [REDACTED:password]', 'as [REDACTED:password]')
    edit(mcp, 'doc.md', '[REDACTED:jwt:abcdefghij]', '[REDACTED:url-password]')
    assert project.get('doc.md').decode() == text.replace('such as', 'as').replace(
        'jwt:abcdefghij', 'url-password')
    read(mcp, 'doc.md')
    call(mcp, 'Write', file_path='doc.md', content='[REDACTED:new] and [REDACTED:jwt:output]\n')
    call(mcp, 'Write', file_path='new.md', content='[REDACTED:password] and [REDACTED:a:TAG]\n')


def test_what_is_not_shown_is_not_known(mcp, project):
    """UTF-16 with and without a NUL, and other bytes: neither Edit nor Write changes them."""
    for i, data in enumerate(('hi'.encode('utf-16'), b'\xfe\xff' + 'é\n'.encode('utf-16-be'),
                              '書物'.encode('utf-16'), b'hi\0there')):
        project.put('bytes', data)
        assert 'binary' in read(mcp, 'bytes')[0]
        for tool, arguments in (('Edit', {'old_string': 'h', 'new_string': 'HEL'}),
                                ('Write', {'content': 'text'})):
            failure, _ = fails(mcp, 'invalid_arguments', tool, file_path='bytes', **arguments)
            assert 'not a text file' in failure['cause']
        assert project.get('bytes') == data


@pytest.mark.parametrize('text', ['gh{}', '{}x', 'a{}', 'AKIA{}', 'x{}@h'])
def test_text_beside_a_mark_asks_nothing(mcp, project, text):
    """Whether a secret and what was put beside it look like another secret is not told: the rest
    of a token is refused as any other word is."""
    token = 'p_' + 'R7fK2mQz9TbX4wLc8NvH1sYd6GpJ3aEu5oZi'
    told = set()
    for secret in (token, word(len(token))):
        project.put('beside', f'password: {secret}\n')
        (mark,) = MARK.findall(read(mcp, 'beside')[0])
        failure, _ = fails(mcp, 'invalid_arguments', 'Write', file_path='beside',
                           content=text.format(mark) + '\n')
        told.add(failure['cause'].replace(mark, 'MARK'))
        assert project.get('beside').decode() == f'password: {secret}\n'
    assert len(told) == 1


# ---- doors without a conversation ----------------------------------------------------------------


class Door:
    """A door that reads and writes files of a sandbox, and knows nothing of what was read."""

    def __init__(self, hub, box):
        self.hub, self.box = hub, box

    def has(self, path):
        """Its bytes, by a door that hides nothing: in hex of each half byte."""
        said = self.hub.exec(self.box, f"xxd -p {path} | tr -d '\\n' | sed 's/./&g/g'")['stdout']
        return bytes.fromhex(said.replace('g', ''))

    def put(self, path, data):
        self.hub.exec(self.box, f'cat >{path}', stdin_base64=b64(data))


class ByRest(Door):
    agents = False

    def read(self, path):
        said = self.hub.post('/v1/files/read', sandbox=self.box, path=path, encoding='base64')
        return base64.b64decode(said['content'])

    def write(self, path, data):
        """None, or why it is refused."""
        try:
            self.hub.post('/v1/files/write', sandbox=self.box, path=path, encoding='base64',
                          content=base64.b64encode(data).decode())
        except Failed as e:
            assert e.code == 'invalid_input', e
            return e.error['cause']


class ByMcp(Door):
    agents = True

    def tool(self, name, **arguments):
        with self.hub.wire() as wire:
            session = self.hub.session = getattr(self.hub, 'session', None) or Session(self.hub)
            session.call(wire, name, sandbox=self.box, **arguments)
            return session.result(wire)

    def read(self, path):
        said = self.tool('sandbox_read_file', path=path, encoding='base64')
        return base64.b64decode(data_of(said)['content'])

    def write(self, path, data):
        said = self.tool('sandbox_write_file', path=path, encoding='base64',
                         content=base64.b64encode(data).decode())
        return json.loads(said['content'][0]['text'])['cause'] if said.get('isError') else None


class ByVerb(Door):
    agents = False

    def read(self, path):
        return self.hub.ok('fs', 'read', self.box, f'/workspace/{path}')

    def write(self, path, data):
        done = self.hub.run('fs', 'write', self.box, f'/workspace/{path}', input=data)
        return done.stderr.decode() if done.returncode else None


class ByConnect(Door):
    agents = False

    def read(self, path):
        return joined(self.hub.stream('ReadFile', self.box, {'path': path}), 'data')

    def write(self, path, data):
        try:
            self.hub.stream('WriteFile', self.box, {'open': {'path': path}}, {'data': b64(data)})
        except Failed as e:
            return e.error['message']


class ByE2b(Door):
    agents = False

    def __init__(self, hub, box):
        hub.delete(box)
        self.e2b = test_e2b.Box(hub)
        super().__init__(hub, self.e2b.id)

    def read(self, path):
        status, _, body = self.e2b.ask('GET', f'/files?path={path}')
        assert status == 200, body
        return body

    def write(self, path, data):
        status, _, body = self.e2b.ask('POST', f'/files?path={path}', data,
                                       {'Content-Type': 'application/octet-stream'})
        return None if status == 200 else body.decode()


class ByArchive(Door):
    """What is downloaded as an archive and uploaded again."""

    def read(self, path):
        with tarfile.open(fileobj=io.BytesIO(download(self.hub, self.box))) as tar:
            return next(tar.extractfile(m).read() for m in tar if m.name.lstrip('./') == path)

    def write(self, path, data):
        try:
            out = io.BytesIO()
            with tarfile.open(fileobj=out, mode='w') as tar:
                member = tarfile.TarInfo(path)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
            self.send(out.getvalue())
        except Failed as e:
            return e.error.get('cause', e.error['message'])

    def send(self, data):
        upload(self.hub, self.box, data)


class ByUpload(ByArchive):
    def send(self, data):
        self.hub.stream('Upload', self.box, {'open': {'dest': '/workspace'}},
                        *({'chunk': b64(data[i:i + 1000])} for i in range(0, len(data), 1000)))


class ByCp(ByArchive):
    """With a key's token: the operator's own copies have no marks."""

    def __init__(self, hub, box):
        super().__init__(hub, box)
        home = os.path.join(hub.home, 'of a key')
        self.copy = os.path.join(hub.home, 'copy')
        self.env = {'HOLT_HOME': home, 'HOLT_SOCKET': hub.paths[0]}
        if not os.path.exists(home):
            os.mkdir(home, 0o700)
            with open(f'{home}/token', 'w', encoding='utf-8') as f:
                f.write(key(hub, 'copies', ['read', 'execute', 'lifecycle', 'admin']))
            os.chmod(f'{home}/token', 0o600)
            for path in (home, f'{home}/token'):
                os.chown(path, hub.who.uid, hub.who.uid)

    def write(self, path, data):
        with open(self.copy, 'wb') as f:
            f.write(data)
        done = self.hub.run('cp', self.copy, f'{self.box}:/workspace/{path}', env=self.env)
        return done.stderr.decode() if done.returncode else None


class Doors(test_e2b.Hub, test_hub_cli.Hub):
    """A hub with all of them."""


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    home = tmp_path_factory.mktemp('marks')
    (home / 'config.json').write_text(json.dumps({'compat': {'apis': ['e2b']}}))
    for path in (home, home / 'config.json'):
        os.chown(path, me.uid, me.uid)
    with Doors(me, home, '--listen', '127.0.0.1:0', '--pool', '0') as shared:
        yield shared


def opened(hub, request):
    made = request.param(hub, hub.create())
    yield made
    hub.sweep(made.box)


door = pytest.fixture(opened, name='door', params=[ByRest, ByMcp, ByVerb, ByConnect, ByE2b])
archive = pytest.fixture(opened, name='archive', params=[ByArchive, ByUpload, ByCp])
every = pytest.fixture(opened, name='every', params=[
    ByRest, ByMcp, ByVerb, ByConnect, ByE2b, ByArchive, ByUpload, ByCp])


def test_each_door_writes_back_what_was_there(every):
    """Unchanged, with lines added and removed, and in binary data."""
    for text in (*[made(end).encode() for end in ('\n', '\r\n', '\n')],
                 f'\0\1{FORMS[2](9)}\n\0{FORMS[5](1)}\n'.encode(),
                 f'caf\xe9 {FORMS[2](12)}\n'.encode('latin-1')):
        every.put('f', text)
        shown = every.read('f')
        assert b'REDACTED' in shown or b'****' in shown
        assert every.write('f', shown) is None and every.has('f') == text
        assert every.write('f', b'new\n' + shown + b'\nmore\n') is None
        assert every.has('f') == b'new\n' + text + b'\nmore\n'


def test_each_door_refuses_what_would_destroy_a_secret(door):
    text = b'a:\n  password: kx9Lq2vTzz\nb:\n  password: Wn4tRb8yQx\nc: 1\n'
    door.put('f', text)
    shown = door.read('f')
    mark = b'[REDACTED:password:output]'
    assert shown.count(mark) == 2
    for wrong in (shown.replace(b'  password: ', b'  colour: '), shown.replace(b'a:\n', b'd:\n'),
                  shown + b'password: ' + mark, b'password: ' + mark,
                  shown.replace(mark, b'[REDACTED:password:abcdefghij]'),
                  shown.replace(mark, mark + b'more')):
        assert door.write('f', wrong), wrong
        assert door.has('f') == text
    # One is removed with its line; the file is written anew; what it has literally stays.
    assert door.write('f', shown.split(b'b:')[0]) is None
    assert door.has('f') == text.split(b'b:')[0]
    assert door.write('f', b'password: Zq3Wd8Yn5V\n') is None
    door.put('log', mark + b'\n')
    assert door.write('log', b'it said ' + mark) is None
    # Elsewhere it is text to a person's program. A model would take it for a copy.
    assert bool(door.write('new', b'it said ' + mark)) == door.agents


def altered(mark):
    """A mark with one character less, more, or in the other case, and some with more changes."""
    for i in range(len(mark) + 1):
        yield mark[:i] + mark[i + 1:]
        yield mark[:i] + RANDOM.choice('x:]-7') + mark[i:]
        yield mark[:i] + mark[i:i + 1].swapcase() + mark[i + 1:]
    yield from (mark.lower(), mark.upper(), '[REDACTED]', '&#91;' + mark[1:], '[REDACTED:password]',
                mark[:-3], '<redacted>', mark.replace(':', ' '))


def test_each_door_takes_no_altered_mark_for_a_secret(door):
    """The secret is there afterwards, or nothing is."""
    mark = '[REDACTED:password:output]'
    text = '# redacted\nDB_PASSWORD={}\na: 1\n'
    secret = text.format('Zk4pX9qLw2tY').encode()
    door.put('f', secret)
    assert door.read('f').decode() == text.format(mark)
    for wrong in altered(mark):
        if door.write('f', text.format(wrong).encode()) is None:
            assert b'Zk4pX9qLw2tY' in door.has('f'), wrong
            door.put('f', secret)
    assert door.has('f') == secret
    # Text that was there may stay where the secret goes, and where it stays there may be more.
    assert door.write('f', text.format(mark).replace('a:', 'redacted:').encode()) is None
    assert door.has('f') == secret.replace(b'a:', b'redacted:')
    assert door.write('f', b'# redacted\na: 1\n') is None
    # Without a secret it is text.
    for wrong in altered(mark):
        if not door.agents or not OUTPUT_MARK.search(wrong):
            door.put('f', b'# nothing\n')
            assert door.write('f', text.format(wrong).encode()) is None, wrong
    assert door.write('f', b'DB_PASSWORD=Zk4pX9qLw2tY\n') is None


def remnants(mark):
    """What holds the tag alone, which nobody chose."""
    tag = mark[-11:-1]
    for before in ('', '[', '"', ':', 'password ', '# was [', '<'):
        yield from (before + tag, before + tag + ']', before + tag.upper() + '...')


def test_write_takes_no_altered_mark_for_a_secret(mcp, project):
    secret = 'DB_PASSWORD=Zk4pX9qLw2tY\n'
    project.put('alt', secret)
    (mark,) = MARK.findall(read(mcp, 'alt')[0])
    kinds = [len(list(altered(mark))), len(list(remnants(mark)))]
    for i in range(sum(kinds)):
        # Made of the mark as it is now: it is a new one where the file was restored.
        wrong = [*altered(mark), *remnants(mark)][i]
        for tool, arguments in (('Write', {'content': f'DB_PASSWORD={wrong}\n'}),
                                ('Edit', {'old_string': mark, 'new_string': wrong})):
            said = answer(mcp, tool, file_path='alt', **arguments)
            assert 'Zk4pX9qLw2tY' in project.get('alt').decode(), (tool, wrong)
            if not said.get('isError'):
                project.put('alt', secret)
                (mark,) = MARK.findall(read(mcp, 'alt')[0])
    # What is put in its place on purpose is taken.
    for meant in ('${DB_PASSWORD}', 'your-password-here', '***', 'abcdefghij]'):
        edit(mcp, 'alt', mark, meant)
        assert project.get('alt').decode() == f'DB_PASSWORD={meant}\n'
        project.put('alt', secret)
        (mark,) = MARK.findall(read(mcp, 'alt')[0])
    edit(mcp, 'alt', mark, 'none')
    edit(mcp, 'alt', 'none', '[REDACTED]')
    assert project.get('alt') == b'DB_PASSWORD=[REDACTED]\n'


# Blocks of which each has a secret in the same surroundings.
BLOCKS = {
    'far names': ('# key\n{}_production_database_connection_string_password={}\n', ''),
    'minified': ('{{"name":"{}","cfg":{{"host":"db","port":5432,"password":"{}"}}}}', ','),
    'sections': ('{}:\n  user: joe\n  password: {}\n', ''),
    'names below': ('- password: {1}\n  name: {0}\n', ''),
    'names far below': ('- password: {1}\n  user: joe\n  port: 1\n  name: {0}\n', ''),
}


@pytest.mark.parametrize('form', BLOCKS)
def test_secrets_are_put_back_where_their_marks_were(hub, form):
    """Blocks are permuted, left out, and lines with them: each has its own secret afterwards."""
    block, by = BLOCKS[form]
    door = ByRest(hub, hub.create())
    put = 0
    for n in (2, 3, 4):
        secrets = {name: word(12) for name in ('prod', 'stag', 'test', 'devl')[:n]}
        text = by.join(block.format(*item) for item in secrets.items())
        door.put('f', text.encode())
        shown = door.read('f').decode()
        marked = {name: block.format(name, OUTPUT) for name in secrets}
        assert shown == by.join(marked.values())
        for names in itertools.chain(*(itertools.permutations(secrets, k)
                                       for k in range(1, n + 1))):
            if door.write('f', by.join(marked[name] for name in names).encode()) is None:
                assert door.has('f').decode() == by.join(
                    block.format(name, secrets[name]) for name in names), names
                put += 1
                door.put('f', text.encode())
        for _ in range(60):
            lines = shown.splitlines(True)
            RANDOM.shuffle(lines)
            if door.write('f', ''.join(lines).encode()) is None:
                now = door.has('f').decode()
                # Each secret at most once, and a block that is whole has its own.
                assert all(now.count(secret) <= 1 for secret in secrets.values())
                for name, other in itertools.permutations(secrets, 2):
                    assert block.format(name, secrets[other]) not in now, now
                door.put('f', text.encode())
        assert door.write('f', (shown + '\ny: 2\n').encode()) is None
    assert put >= 3
    hub.sweep(door.box)


def test_an_archive_destroys_no_secret(archive):
    """What it can't put back is refused by name, and the old file stays."""
    text = b'a:\n  password: kx9Lq2vTzz\nb:\n  password: Wn4tRb8yQx\nc: 1\n'
    archive.put('f', text)
    shown = archive.read('f')
    mark = b'*' * 10
    assert shown == text.replace(b'kx9Lq2vTzz', mark).replace(b'Wn4tRb8yQx', mark)
    for wrong in (shown.replace(b'  password: ', b'  colour: '), shown.replace(b'a:\n', b'd:\n'),
                  b'password: ' + mark, shown.replace(mark, b'[REDACTED:password:output]'),
                  shown.replace(mark, b'[REDACTED:password:abcdefghij]')):
        said = archive.write('f', wrong)
        assert said and 'f: ' in said and 'stands for a secret' in said, (wrong, said)
        assert archive.has('f') == text
    # One is removed with its line; others are text: in a new file, and where there is no secret.
    assert archive.write('f', shown.split(b'b:')[0]) is None
    assert archive.has('f') == text.split(b'b:')[0]
    said = b'it said [REDACTED:password:output], [REDACTED:jwt:abcdefghij] and ' + mark
    for _ in range(2):
        assert archive.write('log', said) is None and archive.has('log') == said
    assert archive.write('f', b'/' + b'*' * 30 + b'/\npassword: ' + mark + b'\n') is not None
    assert archive.write('f', b'/' + b'*' * 30 + b'/\n') is None


def test_no_secret_of_a_large_file_is_destroyed(archive):
    """In each part of it, and where lines have moved: they are put back or refused by name."""
    line = 'a line of text that says nothing at all, and says it again'
    secrets = [word(10) for _ in range(4)]
    text = ''.join(f'part{i}:\n  password: {secret}\n' + f'{line}\n' * 40000
                   for i, secret in enumerate(secrets)).encode()

    def make():
        parts = ' '.join(f"printf 'part{i}:\n  password: {secret}\n'; yes '{line}' | head -40000;"
                         for i, secret in enumerate(secrets))
        archive.hub.exec(archive.box, f'{{ {parts} }} >f')

    def is_now(data, name='f'):
        said = archive.hub.exec(archive.box, f'sha256sum <{name}')['stdout']
        return said.split()[0] == hashlib.sha256(data).hexdigest()
    make()
    assert is_now(text) and len(text) > 8 << 20
    shown = archive.read('f')
    assert len(shown) == len(text) and not [s for s in secrets if s.encode() in shown]
    assert archive.write('f', shown) is None and is_now(text)
    for wrong in (b'x' * 100 + b'\n' + shown, f'{line}\n'.encode() * 90000 + shown,
                  shown.replace(b'part0', b'part4'),
                  shown + b'password: [REDACTED:password:output]\n'):
        said = archive.write('f', wrong)
        assert said is None or 'f: ' in said and 'stands for a secret' in said, said
        for secret in secrets:
            assert archive.hub.exec(archive.box, f'grep -c {secret} f')['stdout'] == '1\n', said
        make()
    log = f'{line}\n'.encode() * 80000 + b'it said [REDACTED:password:output]\n'
    assert archive.write('new', log) is None and is_now(log, 'new')


def test_an_import_destroys_no_secret(hub):
    """As in an archive for a sandbox: the newest revision has the secrets."""
    hub.post('/v1/workspaces', name='marks')

    def send(**files):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode='w') as tar:
            for name, data in files.items():
                member = tarfile.TarInfo(f'./d/{name}')
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        data = out.getvalue()
        with hub.wire() as wire:
            wire.send(hub.request('POST', '/v1/workspaces/marks/import', fields=[
                'Content-Type: application/x-tar', f'Content-Length: {len(data)}']).encode() + data)
            reply = wire.reply()
        return None if reply.status == 200 else json.loads(reply.body)['error']['cause']

    def is_now(name, data):
        box = hub.post('/v1/sandboxes', workspace='marks')['id']
        said = hub.exec(box, f'sha256sum d/{name}')['stdout']
        hub.delete(box)
        return said.split()[0] == hashlib.sha256(data).hexdigest()
    text = b'a:\n  password: kx9Lq2vTzz\nb:\n  password: Wn4tRb8yQx\nc: 1\n'
    log = b'it said [REDACTED:password:output] and ' + b'*' * 10 + b'\n'
    large = (b'a line of text\n' * 300_000 + text) * 2
    assert send(f=text, log=log, large=large) is None
    with hub.wire() as wire:
        wire.send(hub.request('GET', '/v1/workspaces/marks/export').encode())
        with tarfile.open(fileobj=io.BytesIO(wire.reply().body)) as tar:
            shown = {m.name.split('/')[-1]: tar.extractfile(m).read() for m in tar if m.isfile()}
    assert shown['f'] == text.replace(b'kx9Lq2vTzz', b'*' * 10).replace(b'Wn4tRb8yQx', b'*' * 10)
    assert send(**shown) is None
    assert is_now('f', text) and is_now('log', log) and is_now('large', large)
    was = hub.call('GET', '/v1/workspaces/marks')['revision']
    said = send(**{**shown, 'f': shown['f'].replace(b'  password: ', b'  colour: ')})
    assert said and 'd/f: ' in said and 'stands for a secret' in said, said
    assert hub.call('GET', '/v1/workspaces/marks')['revision'] == was
    assert send(f=text, other=shown['f']) is None and is_now('other', shown['f'])


def test_clients_and_sandboxes_that_leave_in_the_middle(hub):
    """While the old content of a file is read, or just before or behind that."""
    for n in range(24):
        box = hub.create()
        hub.exec(box, 'for i in 1 2 3 4 5 6 7 8; do echo password: kx9Lq2vTzz > f$i; done')
        data = download(hub, box)
        with hub.wire() as wire:
            wire.send(hub.request('PUT', f'/v1/sandboxes/{box}/archive', fields=[
                'Content-Type: application/x-tar', f'Content-Length: {len(data)}']).encode()
                + data[:n * len(data) // 24])
            if n % 2:
                hub.delete(box)
        if n % 2 == 0:
            upload(hub, box, data)
            assert hub.exec(box, 'cat f? | grep -c "kx9Lq2vTzz$"')['stdout'] == '8\n'
            hub.delete(box)


def test_a_project_goes_out_and_comes_back(me, hub, tmp_path):
    """Many files, some with secrets, of all sizes around a piece of what is sent: as they were."""
    box = hub.create()
    made = ('import os\n'
            'for i in range(300):\n'
            '    os.makedirs(f"p/d{i % 7}", exist_ok=True)\n'
            '    with open(f"p/d{i % 7}/f{i}", "w") as f:\n'
            '        f.write(f"line {i}\\n" * (i * i // 16))\n'
            '        if i % 3:\n'
            '            f.write(f"DB_PASSWORD=kx9Lq2vTzz{i}\\n/*************/\\n")\n'
            '        f.write("end\\n" * i)\n'
            'large = "a line of text\\n" * 3000 + "password=kx9Lq2vTzz\\n"\n'
            'open("p/large", "w").write(large * 300)\n'
            'open("p/empty", "w")\n')
    hub.post('/v1/files/write', sandbox=box, path='make.py', content=made)
    hub.exec(box, 'python3 make.py')

    def sums():
        return hub.exec(box, 'find p -type f | sort | xargs sha256sum')['stdout']
    before = sums()
    assert len(before.splitlines()) == 302
    body = download(hub, box, 'p')
    assert b'kx9' not in body and b'*' * 11 in body
    for chunked in (False, True):
        upload(hub, box, body, 'p', chunked)
        assert sums() == before
    os.chown(tmp_path, me.uid, me.uid)
    hub.ok('cp', f'{box}:/workspace/p', str(tmp_path / 'p'))
    hub.ok('cp', str(tmp_path / 'p') + '/.', f'{box}:/workspace/p')  # its bytes, both ways
    assert sums() == before
    hub.sweep(box)


OUTPUT = '[REDACTED:password:output]'
BIG = 3600 * 1024
# What a file has, and what is written over it, as long as a request may be.
OLD = {
    'plain': 'word of a line\n' * (BIG // 15),
    'a mark at its end': 'word of a line\n' * (BIG // 15) + OUTPUT,
    'one line': 'word ' * (BIG // 5),
    'secrets': ''.join(f'password: kx9Lq2vTzz{i}\n' for i in range(400)),
    'binary': ''.join(f'\0password=kx9Lq2vT{i}\0\n' for i in range(400)),
}
NEW = {
    'marks': OUTPUT + '\n', 'marks in a line': OUTPUT, 'heads': '[REDACTED:',
    'tags': '[REDACTED:password:abcdefghij]\n', 'stars': '*' * 9 + '\n',
    'one star': 'a*', 'a long star': '*',
}


def test_no_marks_hold_the_loop(hub):
    """Whatever is written over whatever: of the processor's time, a step takes milliseconds. The
    bound is far from what a quadratic search takes."""
    door = ByRest(hub, hub.create())
    for (old, was), (new, piece) in itertools.product(OLD.items(), NEW.items()):
        door.put('f', was.encode())
        door.write('f', (piece * (900 * 1024 // len(piece))).encode())
        check_step(hub, 0.5, (old, new))
    hub.sweep(door.box)
