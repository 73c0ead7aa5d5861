"""What a template wants of the network: of holt.json, or by POST /v1/templates. A request that says
nothing gets it, as if it had been asked for; the policy sees it, and every bound holds."""

import json
import os
import re

import pytest

from approval import pending
from client import until
from rest import Failed
from test_policy import Hub, cause, deny
from test_serve import Session, data_of

A = {'host': 'a.example', 'port': 443}
B = {'host': 'b.example', 'port': 443}
FAR = {'host': 'far.example', 'port': 443}  # no client of this hub may grant it


def build(hub, name, **spec):
    folder = os.path.join(hub.path, name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, 'holt.json'), 'w', encoding='utf-8') as f:
        json.dump(spec, f)
    return hub.me.run('build', folder, '-t', name, env=hub.env, text=True)


def wants(*allow, **more):
    return {'network': {'mode': 'bridge', 'allow': list(allow)}, **more}


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    home = tmp_path_factory.mktemp('wishes')
    os.chown(home, me.uid, me.uid)
    with Hub(me, home, '--allow', 'a.example:443', '--allow', 'b.example') as shared:
        for name, spec in (('wants', wants(A)), ('far', wants(FAR)), ('plain', {})):
            done = build(shared, name, **spec)
            assert done.returncode == 0, done
        try:
            shared.delete(shared.create(template='plain'))
        except Failed:
            pytest.skip('users without privileges have no whole overlays on this kernel')
        yield shared


def granted(hub, box):
    """And ends it."""
    allow = hub.call('GET', f'/v1/sandboxes/{box}/network')['allow']
    hub.delete(box)
    return allow


def up(hub, *words):
    """By the operator."""
    done = hub.me.run('up', *words, env=hub.env, text=True)
    assert done.returncode == 0, done
    return granted(hub, done.stdout.strip())


def holt(hub, *words, line='getent hosts a.example b.example'):
    done = hub.me.run('run', *words, '--', 'sh', '-c', line, env=hub.env, text=True)
    return done.returncode, re.findall(r'[ab]\.example', done.stdout), done.stderr


# ---- who gets it

def test_absent_is_the_template_s_and_none_is_none(hub):
    assert granted(hub, hub.create(template='wants')) == [A]
    assert granted(hub, hub.create(template='plain')) == granted(hub, hub.create()) == []
    for said in ({'mode': 'none'}, {}, {'allow': []}, {'mode': 'bridge'}, {'allow_domains': []}):
        assert granted(hub, hub.create(template='wants', network=said)) == [], said
    assert granted(hub, hub.create(template='wants', network={'allow': [B]})) == [B]
    shown = {t['id']: t['network'] for t in hub.call('GET', '/v1/templates')}
    assert shown['wants:latest']['allow'] == [A] and shown['wants:latest']['mode'] == 'bridge'
    assert shown['plain:latest']['mode'] == shown['host']['mode'] == 'none'


def test_by_command(hub):
    assert up(hub, 'wants') == [A] and up(hub, '--network', 'none', 'wants') == []
    assert up(hub, '--allow', 'b.example:443', 'wants') == [B] and up(hub, 'plain') == []
    done = hub.me.run('up', '--network', 'none', '--allow', 'b.example', env=hub.env, text=True)
    assert done.returncode != 0 and 'leave out --allow' in done.stderr, done
    assert holt(hub, '--template', 'wants')[1] == ['a.example']
    assert holt(hub, '--template', 'wants', '--network', 'none')[1] == []
    assert holt(hub, '--template', 'wants', '--allow', 'b.example:443')[1] == ['b.example']
    assert holt(hub, '--template', 'plain')[1] == []


def test_by_mcp(hub):
    session = Session(hub)

    def make(**more):
        with hub.wire() as wire:
            session.call(wire, 'sandbox_create', **more)
            return granted(hub, data_of(session.result(wire))['sandbox'])

    assert make(pool='wants') == [A]
    assert make(pool='wants', network={'allow': []}) == make(pool='wants', network={}) == []
    assert make(pool='wants', network={'allow': [B]}) == [B]


def test_forks_and_snapshots_are_as_ever(hub):
    box = hub.create(template='wants')
    assert granted(hub, hub.post(f'/v1/sandboxes/{box}/fork')['id']) == [A]
    hub.post(f'/v1/sandboxes/{box}/network', network={})
    assert granted(hub, hub.post(f'/v1/sandboxes/{box}/fork')['id']) == []
    hub.delete(box)


def test_a_run_of_the_contract_has_what_it_says(hub):
    """Whatever the template wants: with nothing said it is nothing."""
    def run(**more):
        return hub.post('/v1/run', image='wants', state={'retention': 'destroy'}, command=[
            'getent', 'hosts', 'a.example'], **more)

    assert run()['exit_code'] == run(network={'mode': 'none'})['exit_code'] == 2
    answer = run(network={'mode': 'bridge', 'allow': [A]})
    assert answer['exit_code'] == 0 and 'a.example' in answer['stdout']


# ---- what bounds it

def test_within_what_the_hub_was_started_with(hub):
    why = cause(hub.create, template='far')
    assert 'the template wants a network' in why and 'far.example' in why and '--allow' in why, why
    assert granted(hub, hub.create(template='far', network={'mode': 'none'})) == []
    assert up(hub, 'far') == [FAR]  # the operator may


def test_within_the_principal_s_list(hub):
    hub.set(principals={'token': {'network': ['b.example']}, 'local': {'network': ['b.example']}})
    assert 'principals' in cause(hub.create, template='wants')
    done = hub.me.run('up', 'wants', env=hub.env, text=True)
    assert done.returncode != 0 and 'principals' in done.stderr, done
    for said in (('--template', 'wants'), ('--allow', 'a.example:443'), ('--allow', '*.b.example')):
        code, reached, why = holt(hub, *said)
        assert code == 125 and not reached and 'lets local grant' in why, why
    assert holt(hub, '--allow', 'b.example:443')[1] == ['b.example']
    assert holt(hub, '--template', 'wants', '--network', 'none')[0] == 2
    for said in ({}, {'allow': [B]}):
        hub.delete(hub.create(template='wants', network=said))
    hub.set(principals={'token': {'network': ['a.example']}})
    assert granted(hub, hub.create(template='wants')) == [A]
    hub.set()


def test_the_policy_sees_it(hub):
    """A rule on what is granted holds for what nobody has said."""
    hub.set(policy=deny('sandbox.create', when={'/network/allow': 'a.example'}))
    for more in ({}, {'network': {'allow': [A]}}):
        assert 'no sandbox.create' in cause(hub.create, template='wants', **more)
    done = hub.me.run('up', 'wants', env=hub.env, text=True)
    assert done.returncode != 0 and 'no sandbox.create' in done.stderr, done
    assert granted(hub, hub.create(template='wants', network={})) == []
    assert granted(hub, hub.create(template='plain')) == []
    hub.set(policy=deny('sandbox.run', when={'/network': 'a.example*'}))
    code, _, why = holt(hub, '--template', 'wants')
    assert code == 125 and 'no sandbox.run' in why, why
    assert holt(hub, '--template', 'wants', '--network', 'none')[0] == 2
    hub.set()


def test_an_approval_is_for_what_was_shown(hub):
    """The person sees the hosts; when the template wants others meanwhile, they are asked anew."""
    hub.set(policy={'rules': [{'name': 'asked', 'actions': ['sandbox.create'], 'then': 'ask'}]})
    assert build(hub, 'moving', **wants(A)).returncode == 0

    def ask(decision, *told):
        with hub.wire() as wire:
            wire.send(hub.request('POST', '/v1/sandboxes', body='{"template": "moving"}'))
            one, = pending(hub)
            asked = json.loads(one['arguments'])['network']['allow']
            assert asked == list(told), asked
            if decision:
                hub.post(f'/v1/approvals/{one["id"]}', decision=decision)
                return json.loads(wire.reply().body)
        return until(lambda: not [a for a in hub.call('GET', '/v1/approvals')['approvals']
                                  if a['state'] == 'pending'])

    made = ask('approve', A)
    assert granted(hub, made['id']) == [A]
    assert build(hub, 'moving', **wants(B)).returncode == 0
    assert ask('deny', B)['error']['code'] == 'forbidden'
    with hub.wire() as wire:  # approved for A, while the name becomes another image's
        wire.send(hub.request('POST', '/v1/sandboxes', body='{"template": "moving"}'))
        one, = pending(hub)
        assert build(hub, 'moving', **wants(A)).returncode == 0
        hub.post(f'/v1/approvals/{one["id"]}', decision='approve')
        assert granted(hub, json.loads(wire.reply().body)['id']) == [B]
    hub.set()


# ---- how it is said

@pytest.mark.parametrize('network, says', [
    ({'mode': 'none', 'allow': [A]}, 'network.mode: none allows nothing'),
    ({'allow': [{'host': 'not a host'}]}, 'network.allow[0]'),
    ({'allow': [{'host': 'a.example', 'port': 0}]}, 'network.allow[0].port'),
    ({'allow': [{'host': 'a.example', 'http': [{'path': 'x'}]}]}, 'http[0]'),
    ({'mode': 'host'}, 'network.mode'), ({'deny': []}, 'deny'), (['a.example'], 'network'),
    ({'allow': [{'host': f'h{i}.example'} for i in range(65)]}, 'network.allow')])
def test_a_holt_json_that_is_none(hub, network, says):
    done = build(hub, 'bad', network=network)
    assert done.returncode == 125 and 'holt.json' in done.stderr and says in done.stderr, done


def test_an_image_says_it(hub):
    """Where another stands on it, that one has its own wish alone; the recipe has it, too."""
    rules = {**A, 'http': [{'method': 'GET', 'path': '/x*'}]}
    build(hub, 'ruled', **wants(rules, {'host': 'B.Example'}))
    told = hub.me.run('images', 'inspect', 'ruled', env=hub.env, text=True).stdout
    assert 'a.example:443 allow GET /x*' in told and 'b.example:80' in told, told
    assert up(hub, 'ruled')[1:] == [{**B, 'port': 80}, B]
    assert build(hub, 'child', base='ruled').returncode == 0
    assert up(hub, 'child') == []
    one, two = (build(hub, 'same', **wants(host)).stdout.split()[1] for host in (A, B))
    assert one != two and 'built before' in build(hub, 'same', **wants(A)).stdout


def test_a_template_is_given_another(hub):
    """Within what its caller may grant, until the name means another image."""
    assert hub.post('/v1/templates', id='plain')['network']['allow'] == []
    told = hub.post('/v1/templates', id='plain', network={'allow': [{'host': 'a.example',
                                                                      'port': 443}]})
    assert told['network']['allow'] == [A] and granted(hub, hub.create(template='plain')) == [A]
    digest = hub.me.run('images', 'inspect', 'plain', '-o', 'json', env=hub.env).stdout
    digest = json.loads(digest)['image']['digest']
    assert granted(hub, hub.create(template=digest)) == []  # the image never changes
    assert hub.post('/v1/templates', id='plain')['network']['allow'] == [A]
    assert 'far.example' in cause(hub.post, '/v1/templates', id='plain',
                                  network={'allow': [FAR]})
    assert granted(hub, hub.create(template='plain')) == [A]
    assert 'built before' in build(hub, 'plain').stdout  # the same image keeps it
    assert granted(hub, hub.create(template='plain')) == [A]
    hub.set(policy=deny('template.create', when={'/network/allow': 'b.example'}))
    assert cause(hub.post, '/v1/templates', id='plain', network={'allow_domains': ['b.example']})
    hub.set()
    assert hub.post('/v1/templates', id='plain', network={})['network']['mode'] == 'none'
    assert granted(hub, hub.create(template='plain')) == []
    hub.post('/v1/templates', id='plain', network={'allow': [A]})
    assert build(hub, 'plain', env={'OTHER': '1'}).returncode == 0
    assert granted(hub, hub.create(template='plain')) == []
    for name in ('host', 'none-such'):
        with pytest.raises(Failed) as caught:
            hub.post('/v1/templates', id=name, network={'allow': [A]})
        assert caught.value.code == 'unsupported'
    assert hub.post('/v1/templates', id='host', network={'mode': 'none'})['id'] == 'host'
