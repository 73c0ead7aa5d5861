"""Each verb of the command line (surface.py): with wrong options and operands, with names of
nothing, without a hub, with another token, for programs (-o json), again, and at once."""

import concurrent.futures
import json
import re
import subprocess

import pytest

import host
import stage
from approval import asks
from client import until
from stage import Nothing, Stage, walk
from surface import FAILED, USAGE, VERBS, VERDICT
from test_hub_cli import Hub

NAMES = ('nobody', '../x', '', 'x' * 10000, '\xfc%2e', '-x')


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    with Hub(me, asks(me, tmp_path_factory.mktemp('verbs')), '--listen', '127.0.0.1:0',
             '--preview', '127.0.0.1:0', '--pool', '2') as shared:
        shared.helps = {}
        shared.folder = tmp_path_factory.mktemp('verbs-files')
        (shared.folder / 'f').write_text('of the image')
        (shared.folder / 'Tool').mkdir()
        (shared.folder / 'Tool/holt.json').write_text('{}')
        yield shared
    before.check()


def each(hub, cases, **options):
    """The ends of many, some at a time, with what each was for."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(zip(cases, pool.map(lambda words: hub.run(*words, timeout=100, **options),
                                        cases)))


def clear(hub):
    stage.clear(hub)
    if images := hub.json('images'):
        hub.ok('images', 'rm', *[name for image in images for name in image['names']])


def help_of(hub, name):
    if name not in hub.helps:
        hub.helps[name] = hub.ok('help', *name.split()).decode()
    return hub.helps[name]


def test_each_has_its_row(hub):
    """The words of `holt mcp` have rows of their own in test_mcp_cli.py."""
    verbs = re.findall(r'^  ([\w-]+) ', hub.ok('help').decode(), re.M)
    words, names = [], list(verbs)
    while names:
        name = names.pop()
        below = re.findall(rf'^  ({name} \w+) ', help_of(hub, name), re.M)
        words += below
        names += below
    assert {*verbs, *(word for word in words if not word.startswith('mcp '))} == set(VERBS)


def test_wrong_usage(hub):
    """Says what is wrong and where it stands how it is right, and has done nothing."""
    def check(name):
        about = help_of(hub, name)
        usage = about.splitlines()[0]
        cases = [[*name.split(), '--no-such-option']]
        if '--output' in about:
            cases.append([*name.split(), '-o', 'xml'])
        if '...' not in usage and '--' not in usage:
            cases.append([*name.split(), *['x'] * 8])
        if re.search(r' [A-Z]+(?![^\[]*\])', usage):  # an operand that must be there
            cases.append(name.split())
        for words, done in each(hub, cases):
            first = done.stderr.decode().splitlines()[:1]
            assert done.returncode == VERBS[name].usage and done.stdout == b'', (words, done)
            assert first and first[0].startswith(('holt ' + name.split()[0], 'Usage: ')), (
                words, done)
    walk(VERBS, check)


NUMBERS = ('TIME', 'SIZE', 'N', 'NUMBER', 'OCTAL', 'ADDR:PORT')


def test_wrong_values(hub):
    """Of each option that takes a number, a time or a size: what is none, and what is too much."""
    cases = []
    for name in set(VERBS) - {'images pull'}:
        for option in re.findall(rf'^ .*(--[\w-]+) (?:{"|".join(NUMBERS)})(?: |$)',
                                 help_of(hub, name), re.M):
            cases += [[*name.split(), option, value, *VERBS[name].right(Nothing())]
                      for value in ('x', '9' * 30)]
    assert len(cases) > 50
    for words, done in each(hub, cases, input=b''):
        verb = next(name for name in sorted(VERBS, key=len, reverse=True)
                    if words[:len(name.split())] == name.split())
        assert (done.returncode in (VERBS[verb].usage, FAILED) and done.stdout == b''
                and done.stderr.startswith(b'holt')), (words, done)
    hub.fails(USAGE, 'takes at least 1, not 0', 'up', '--ttl', '0')
    hub.fails(FAILED, 'holt snapshot', 'snapshot', 'restore', 'nobody')
    assert hub.call('GET', '/v1/health')['sandboxes'] == 0


def test_names_of_nothing(hub):
    def check(name):
        row = VERBS[name]
        cases = [[*name.split(), *row.right(Nothing(), wrong)] for wrong in NAMES]
        for words, done in each(hub, cases, input=b''):
            assert done.returncode == (row.usage if '-x' in words else FAILED), (words, done)
            assert done.stdout == b'' and done.stderr.startswith(b'holt'), (words, done)
    walk([name for name, row in VERBS.items() if row.named], check)
    assert hub.call('GET', '/v1/health')['sandboxes'] == 0


@pytest.mark.parametrize('kind', ['no hub', 'another token'])
def test_without(hub, tmp_path, kind):
    env = ({'HOLT_SOCKET': str(tmp_path / 'none')} if kind == 'no hub'
           else {'HOLT_HOME': str(tmp_path), 'HOLT_SOCKET': hub.paths[0]})
    cases = [[*name.split(), *row.right(Nothing())] for name, row in VERBS.items() if row.scope]
    for words, done in each(hub, cases, env=env, input=b''):
        said = done.stderr.decode()
        assert done.returncode == FAILED and done.stdout == b'', (words, done)
        assert ('holt serve' in said) if kind == 'no hub' else ('token' in said), (words, done)
    done = hub.fails(FAILED, '/none', 'snapshot', 'import', '/none')
    assert b'of this machine' in done.stderr
    assert hub.call('GET', '/v1/health')['sandboxes'] == 0


def test_right_and_again(hub):
    """-o json is one JSON value (a line each of what is a stream);
    the second time may be refused, by name, or end with the same verdict."""
    def check(name):
        row = VERBS[name]
        about = Stage(hub, row.needs)  # a caller of it must not leave
        words = [*name.split(), *row.right(about)]
        if row.endless:
            with hub.popen(*words, '-o', 'json') as proc:
                try:
                    assert json.loads(proc.stdout.readline())
                finally:
                    proc.kill()
            return
        as_json = '--output' in help_of(hub, name)
        first = hub.run(*words, *(['-o', 'json'] if as_json else []), input=b'', timeout=280)
        assert first.returncode == row.status, first
        if as_json:
            values = [json.loads(line) for line in first.stdout.splitlines()]
            assert len(values) == 1 or name == 'events', first
        again = hub.run(*words, input=b'', timeout=280)
        assert again.returncode == row.again, again
        assert again.returncode in (0, VERDICT) or again.stdout == b'' and again.stderr, again
    walk([name for name, row in VERBS.items() if row.made is not None], check, lambda: clear(hub))


def test_at_once(hub):
    """Sixteen programs of all kinds on one sandbox: each does it,
    or says that something is in the way."""
    s = Stage(hub)
    one = [['up', '-n', 'same'] for _ in range(8)]
    ends = [done.returncode for _, done in each(hub, one)]
    assert sorted(ends) == [0] + [FAILED] * 7
    kinds = [['pause', s.box], ['resume', s.box], ['exec', s.box, '--', 'cat', 'f'],
             ['fs', 'write', s.box, 'f'], ['fs', 'read', s.box, 'f'], ['fork', s.box],
             ['snapshot', 'create', s.box], ['diff', s.box], ['ps', s.box], ['top', '-1'], ['ls'],
             ['execs', s.box], ['cp', s.box + ':.', '-'], ['fs', 'ls', s.box],
             ['fs', 'mkdir', s.box, 'x'], ['pause', s.box]]
    procs = [(words, hub.popen(*words)) for words in kinds]
    while any(proc.poll() is None for _, proc in procs):  # a command that stands still does not end
        until(lambda: hub.asked('POST', '/v1/resume', {'sandbox': s.box})[0] == 200,
              what='its going on')
        try:
            next(proc for _, proc in procs if proc.poll() is None).wait(0.1)
        except (StopIteration, subprocess.TimeoutExpired):
            pass
    for words, proc in procs:
        _, said = proc.communicate()
        assert proc.returncode == 0 or proc.returncode == FAILED and said.startswith(b'holt: '), (
            words, proc.returncode, said)
    hub.ok('resume', s.box)
    assert hub.ok('exec', s.box, '--', 'echo', 'on') == b'on\n'
    assert [done.returncode for _, done in each(hub, [['down', s.box]] * 8)].count(0) == 1
    clear(hub)


def test_images_at_once(hub):
    cases = [['images', 'import', str(hub.folder), 'same'], ['images', 'prune'], ['images', 'ls'],
             ['images', 'import', str(hub.folder), 'other']] * 3
    assert {done.returncode for _, done in each(hub, cases)} == {0}
    assert (sorted(name for image in hub.json('images') for name in image['names'])
            == ['other:latest', 'same:latest'])
    clear(hub)
