"""Labels: what the maker of a sandbox notes about it, and what lists can be narrowed by."""

import json
from urllib.parse import quote

import pytest

from rest import Failed
from test_hub_cli import FAILED, Hub
from test_readopt import begin, kill  # noqa: F401

LABELS = {'owner': 'Jane Doe', 'team/app': '', 'v.1-x_y': 'a=b,c=ä', 'X': '1'}


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    with Hub(me, tmp_path_factory.mktemp('labels'), '--listen', '127.0.0.1:0',
             '--pool', '0') as shared:
        yield shared


@pytest.fixture(autouse=True)
def ended(hub):
    yield
    for sandbox in hub.call('GET', '/v1/sandboxes'):
        hub.delete(sandbox['id'])
    for kept in hub.call('GET', '/v1/snapshots')['snapshots']:
        hub.call('DELETE', f'/v1/snapshots/{kept["id"]}')


def found(hub, *labels, **more):
    query = [*(f'label={quote(label, safe="")}' for label in labels),
             *(f'{k}={v}' for k, v in more.items())]
    answer = hub.call('GET', '/v1/sandboxes' + ('?' + '&'.join(query) if query else ''))
    return [s['id'] for s in (answer['sandboxes'] if more else answer)]


def test_they_are_shown(hub):
    made = hub.post('/v1/sandboxes', id='a', labels=LABELS)
    assert made['labels'] == LABELS and list(made['labels']) == sorted(LABELS)
    assert hub.call('GET', '/v1/sandboxes/a')['labels'] == LABELS
    assert [s['labels'] for s in hub.call('GET', '/v1/sandboxes')] == [LABELS]
    for none in ({}, {'labels': {}}):
        made = hub.post('/v1/sandboxes', **none)
        assert 'labels' not in made
        assert 'labels' not in hub.call('GET', f'/v1/sandboxes/{made["id"]}')


def test_lists_are_narrowed(hub):
    for name, labels in (('a', {'x': '1', 'y': '1'}), ('b', {'x': '2', 'xx': '1'}),
                         ('c', {'x': '', 'z': 'p=q'}), ('d', {})):
        hub.post('/v1/sandboxes', id=name, labels=labels)
    assert found(hub) == ['a', 'b', 'c', 'd']
    for labels, names in ((['x'], 'abc'), (['x=1'], 'a'), (['x='], 'c'), (['xx'], 'b'),
                          (['x=1', 'y'], 'a'), (['x', 'y=2'], ''), (['z=p'], ''),
                          (['z=p=q'], 'c'), (['no'], ''), (['X'], '')):
        assert ''.join(found(hub, *labels)) == names, labels
    assert found(hub, 'x', limit=2) == ['a', 'b']
    page = hub.call('GET', '/v1/sandboxes?label=x&limit=1')
    rest = hub.call('GET', f'/v1/sandboxes?label=x&limit=9&cursor={page["next_cursor"]}')
    assert [s['id'] for s in page['sandboxes'] + rest['sandboxes']] == ['a', 'b', 'c']
    hub.post('/v1/pause', sandbox='a')
    assert found(hub, 'x', state='paused', limit=9) == ['a']
    for wrong in ('label=', 'label=' + 'x' * 500, '&'.join(['label=x'] * 33), 'labels=x'):
        status, answer = hub.asked('GET', '/v1/sandboxes?' + wrong)
        assert (status, answer['error']['code']) == (400, 'invalid_input'), (wrong, answer)


WRONG = [
    {'': 'x'}, {'a b': 'x'}, {'-a': 'x'}, {'a-': 'x'}, {'a=b': 'x'}, {'ä': 'x'}, {'a,b': 'x'},
    {'k' * 129: 'x'}, {'a': 'x\ny'}, {'a': '\x00'}, {'a': '\x7f'}, {'a': 'x' * 257}, {'a': 1},
    {'a': None}, ['a'], 'a',
    {f'k{i}': '' for i in range(33)}, {f'k{i}': 'ä' * 250 for i in range(32)}]


@pytest.mark.parametrize('labels', WRONG, ids=lambda v: str(v)[:20])
def test_what_is_refused(hub, labels):
    source = hub.create()
    for path, body in (('/v1/sandboxes', {}), (f'/v1/sandboxes/{source}/fork', {})):
        with pytest.raises(Failed) as e:
            hub.post(path, labels=labels, **body)
        assert e.value.status == 400 and 'labels' in e.value.error['cause'], e.value.error
    assert found(hub) == [source]


def test_as_much_as_can_be(hub):
    """The control of what is refused."""
    most = {('k' * 126 + f'{i:02}'): 'v' * 125 for i in range(32)}
    assert hub.post('/v1/sandboxes', id='a', labels=most)['labels'] == most
    odd = {'a': 'x' * 256, '0': '"\\ '}
    assert hub.post('/v1/sandboxes', id='b', labels=odd)['labels'] == odd
    assert found(hub, next(iter(most))) == ['a']


def test_forks_and_restored_ones(hub):
    """A fork has those of its source, or its own; one that is restored only what it is given."""
    hub.post('/v1/sandboxes', id='a', labels={'x': '1', 'y': '2'})
    fork = '/v1/sandboxes/a/fork'
    assert hub.post(fork, id='same')['labels'] == {'x': '1', 'y': '2'}
    assert hub.post(fork, id='own', labels={'z': ''})['labels'] == {'z': ''}
    assert 'labels' not in hub.post(fork, id='none', labels={})
    two = hub.post(fork, count=2, labels={'n': '2'})['sandboxes']
    assert [s['labels'] for s in two] == [{'n': '2'}] * 2
    kept = hub.post('/v1/sandboxes/a/snapshots')['id']
    assert 'labels' not in hub.post(f'/v1/snapshots/{kept}/restore')
    assert hub.post(f'/v1/snapshots/{kept}/restore', labels={'r': ''})['labels'] == {'r': ''}


def test_stopped_and_started(hub):
    hub.post('/v1/sandboxes', id='a', labels={'x': '1'})
    hub.post('/v1/sandboxes/a/stop')
    assert found(hub, 'x=1') == ['a']
    hub.post('/v1/resume', sandbox='a')
    assert hub.call('GET', '/v1/sandboxes/a')['labels'] == {'x': '1'}


@pytest.mark.parametrize('how', ['end', 'kill'])
def test_they_outlive_a_hub(begin, how):  # noqa: F811
    hub = begin()
    hub.post('/v1/sandboxes', id='a', labels=LABELS)
    hub.post('/v1/sandboxes/a/fork', id='b')
    hub.post('/v1/sandboxes', id='c')
    hub.post('/v1/sandboxes/a/stop')
    if how == 'kill':
        kill(hub)
    else:
        assert hub.end() == 0
    hub = begin()
    assert hub.call('GET', '/v1/sandboxes/a')['labels'] == LABELS
    assert hub.call('GET', '/v1/sandboxes/b')['labels'] == LABELS
    assert 'labels' not in hub.call('GET', '/v1/sandboxes/c')
    assert 'a' in found(hub, 'owner=Jane Doe')
    hub.delete('a')


def test_over_mcp(me):
    client = me.mcp('--pool', '0')
    client.initialize()
    one = client.call('sandbox_create', pool='host', labels={'x': '1'})['sandbox']
    two = client.call('sandbox_create', pool='host')['sandbox']
    kid = client.call('sandbox_fork', sandbox=one)['sandboxes'][0]
    listed = {s['sandbox']: s.get('labels') for s in client.call('sandbox_list')['sandboxes']}
    assert listed == {one: {'x': '1'}, two: None, kid: {'x': '1'}}
    assert client.call('sandbox_get', sandbox=kid)['labels'] == {'x': '1'}
    assert client.close() == 0


def test_at_the_command_line(hub):
    hub.ok('up', '-n', 'a', '-l', 'x=1', '--label', 'x=2', '--label', 'flag', '-l', 'o=J D')
    hub.ok('up', '-n', 'b', '-l', 'x=3')
    hub.ok('fork', '-n', 'c', 'a')
    hub.ok('fork', '-n', 'd', '-l', 'own', 'a')
    assert json.loads(hub.ok('inspect', 'a'))['labels'] == {'flag': '', 'o': 'J D', 'x': '2'}
    rows = [line.split(maxsplit=4) for line in hub.ok('ls').decode().splitlines()]
    assert [row[-1] for row in rows] == ['LABELS', 'flag,o=J D,x=2', 'x=3', 'flag,o=J D,x=2', 'own']
    assert hub.ok('ls', '-q', '-f', 'label=x').split() == [b'a', b'b', b'c']
    assert hub.ok('ls', '-q', '--filter', 'label=x=2', '-f', 'label=flag').split() == [b'a', b'c']
    hub.ok('pause', 'c')
    assert hub.ok('ls', '-q', '-f', 'label=x', '-f', 'state=paused').split() == [b'c']
    assert [s['id'] for s in hub.json('ls', '-f', 'label=o=J D')] == ['a', 'c']
    hub.ok('down', *hub.ok('ls', '-q', '-f', 'label=x').decode().split())
    assert hub.names() == {'d'}
    kept = hub.ok('snapshot', 'create', 'd').decode().split()[0]
    hub.ok('snapshot', 'restore', '-n', 'back', '-l', 'again', kept)
    assert json.loads(hub.ok('inspect', 'back'))['labels'] == {'again': ''}
    for words in (['-f', 'x'], ['-f', 'name=a'], ['-f', 'state=none'], ['-f', 'label=']):
        assert hub.run('ls', *words).returncode == FAILED, words
    for label in ('=x', 'a b=c', ''):
        assert hub.run('up', '-l', label).returncode == FAILED, label
    assert hub.names() == {'d', 'back'}
