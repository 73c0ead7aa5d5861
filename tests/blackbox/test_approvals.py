"""Approvals: a call for which the policy asks waits for a person, and goes, or is denied."""

import base64
import concurrent.futures
import hashlib
import json
import os
import re
import socket
import subprocess

import pytest

import host
from approval import Asker, pending
from client import data_of, until
from http_client import Door, Modern
from rest import Failed, b64
from test_keys import as_bearer, key
from test_policy import Hub
from test_serve import INITIALIZE, Session, post

RULE = {'name': 'ask me', 'actions': ['sandbox.exec'], 'then': 'ask'}


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    home = tmp_path_factory.mktemp('approvals')
    os.chown(home, me.uid, me.uid)
    with Hub(me, home, policy={'rules': [RULE]}) as shared:
        shared.box = shared.create()
        yield shared
        shared.delete(shared.box)
    before.check()


@pytest.fixture
def pool():
    made = concurrent.futures.ThreadPoolExecutor(4)
    yield made
    made.shutdown(wait=False)  # what waits after a failure ends with the hub


def answer(hub, one, decision, **more):
    return hub.post(f'/v1/approvals/{one["id"]}', decision=decision, **more)


def test_allow_is_used_up(hub, pool):
    for _ in range(2):
        run = pool.submit(hub.exec, hub.box, 'echo gone')
        one, = pending(hub)
        assert one['action'] == 'sandbox.exec' and one['rule'] == 'ask me'
        assert 'echo gone' in one['arguments']
        assert answer(hub, one, 'approve')['state'] == 'approved'
        assert run.result(30)['stdout'] == 'gone\n'


@pytest.mark.parametrize('made, code', [
    ({'command': '/workspace/late', 'args': []}, 'exec_failed'),
    ({'command': 'true', 'working_dir': '/workspace/late'}, 'exec_failed'),
])
def test_what_never_ran_is_not_used_up(hub, pool, me, made, code):
    """An approval that is good for one call is still good where nothing of the call ran."""
    def run():
        return hub.post('/v1/exec', sandbox=hub.box, **made)

    first = pool.submit(run)
    answer(hub, pending(hub)[0], 'approve')
    with pytest.raises(Failed) as failed:
        first.result(30)
    assert code in (None, failed.value.code), failed.value
    with pytest.raises(Failed):
        run()  # nobody is asked
    if code:
        late = pool.submit(hub.exec, hub.box, 'mkdir /workspace/late' if 'working_dir' in made else
                           'cp /bin/true /workspace/late')
        answer(hub, pending(hub)[0], 'approve')
        late.result(30)
        assert run()['exit_code'] == 0
        again = pool.submit(run)
        answer(hub, pending(hub)[0], 'deny')
        with pytest.raises(Failed):
            again.result(30)
        clean = pool.submit(hub.exec, hub.box, 'rm -r /workspace/late')
        answer(hub, pending(hub)[0], 'approve')
        clean.result(30)
    for one in hub.call('GET', '/v1/approvals')['approvals']:
        assert not code and me.run('inbox', 'revoke', one['id'],
                                   env=hub.env).returncode == 0


def test_deny(hub, pool):
    run = pool.submit(hub.exec, hub.box, 'touch denied')
    one, = pending(hub)
    answer(hub, one, 'deny')
    with pytest.raises(Failed) as failed:
        run.result(30)
    assert one['id'] in str(failed.value)


def test_of_two_answers_the_first_counts(hub, pool):
    run = pool.submit(hub.exec, hub.box, 'true')
    one, = pending(hub)
    answer(hub, one, 'approve')
    run.result(30)
    with pytest.raises(Failed) as failed:
        answer(hub, one, 'deny')
    assert (failed.value.status, failed.value.code) == (409, 'already_answered')
    error = failed.value.error
    assert not error['retryable'] and error['failure'] == 'validation_failed'
    assert re.search(r'was approved by token over rest at \d{4}-.*Z', error['cause']), error


def test_the_asking_key_cannot_answer(hub, pool):
    own = as_bearer(hub, key(hub, 'asker', ['admin']))
    run = pool.submit(own.exec, hub.box, 'true')
    one, = pending(hub)
    for who in (own, as_bearer(hub, key(hub, 'plain'))):
        with pytest.raises(Failed):
            answer(who, one, 'approve')
    assert json.dumps(pending(hub))
    answer(hub, one, 'deny')
    with pytest.raises(Failed):
        run.result(30)


def test_keys_of_one_line_are_one_person(hub, pool):
    """A key answers neither for the one that made it, nor for one that it made, nor for one that
    both have from a third, also when that is gone; a key of the operator's does."""
    first = as_bearer(hub, key(hub, 'line-1', ['admin']))
    second = as_bearer(hub, key(first, 'line-2', ['admin']))
    third = as_bearer(hub, key(second, 'line-3', ['admin']))
    sibling = as_bearer(hub, key(first, 'line-4', ['admin']))
    other = as_bearer(hub, key(hub, 'line-other', ['admin']))
    line = [first, second, third, sibling]

    def tries(asker, answerers):
        box = asker.create()
        asked = pool.submit(asker.exec, box, 'true')
        waits = pending(hub, box=box)[0]['id']
        for one in answerers:
            with pytest.raises(Failed) as e:
                one.post(f'/v1/approvals/{waits}', decision='approve')
            assert (e.value.status, e.value.code) == (403, 'forbidden'), e.value
        assert other.post(f'/v1/approvals/{waits}', decision='approve')['state'] == 'approved'
        assert asked.result(60)['exit_code'] == 0
        asker.delete(box)

    for asker in line:
        tries(asker, line)
    hub.call('DELETE', '/v1/keys/line-2')
    tries(third, [first, third, sibling])
    for name in ('line-1', 'line-3', 'line-4', 'line-other'):
        hub.call('DELETE', f'/v1/keys/{name}')


def test_what_a_key_may_always_ends_with_it(hub, pool):
    """A later key of the same name is another."""
    first = as_bearer(hub, key(hub, 'heir', ['admin']))
    run = pool.submit(first.exec, hub.box, 'echo mine')
    one, = pending(hub)
    answer(hub, one, 'approve', scope='always')
    assert run.result(30)['stdout'] == first.exec(hub.box, 'echo mine')['stdout'] == 'mine\n'
    hub.call('DELETE', '/v1/keys/heir')
    second = as_bearer(hub, key(hub, 'heir', ['admin']))
    run = pool.submit(second.exec, hub.box, 'echo mine')
    answer(hub, pending(hub)[0], 'deny')
    assert run.exception(30).status == 403
    answer(hub, one, 'revoke')
    hub.call('DELETE', '/v1/keys/heir')


def test_other_arguments_need_another_request(hub, pool):
    first, other = (pool.submit(hub.exec, hub.box, f'echo {i}') for i in 'ab')
    for one in pending(hub, 2):
        answer(hub, one, 'approve' if 'echo a' in one['arguments'] else 'deny')
    assert first.result(30)['stdout'] == 'a\n'
    with pytest.raises(Failed):
        other.result(30)


def test_nobody_is_asked_about_nothing(hub, pool):
    """About a sandbox that is not there, or that is another's."""
    failed = refused(hub.exec, 'later', 'true')
    assert (failed.status, failed.code) == (404, 'not_found')
    stranger = as_bearer(hub, key(hub, 'stranger'))
    assert refused(stranger.exec, hub.box, 'true').status == 404
    assert not [a for a in hub.call('GET', '/v1/approvals')['approvals'] if a['state'] == 'pending']
    hub.call('DELETE', '/v1/keys/stranger')


def test_what_cannot_be_shown_whole_cannot_be_approved(hub, pool):
    """The end of a command that is longer than what is shown."""
    for n, whole in ((60 << 10, True), (70 << 10, False)):
        run = pool.submit(hub.exec, hub.box, 'true ' + ' ' * n + '; echo evil')
        one, = pending(hub)
        assert one['arguments_cut'] is not whole
        assert whole == ('echo evil' in one['arguments'])
        if whole:
            answer(hub, one, 'approve')
            assert run.result(30)['stdout'] == 'evil\n'
            continue
        for more in ({}, {'scope': 'always'}):
            failed = refused(answer, hub, one, 'approve', **more)
            assert failed.status == 403 and 'shown whole' in failed.error['cause'], failed
        answer(hub, one, 'deny')
        assert run.exception(30).status == 403


VALUE = 'Stored-Zk4pX9qLw2tY'
# Commands whose code, or data that becomes code, looks like a password.
HIDDEN = (
    'DB_PASSWORD="Zk4p$(touch /workspace/pwned)X9qLw2" true',
    'export TOKEN="Zk4p`touch /workspace/pwned`X9qLw2"',
    'P=password=dG91Y2ggL3dvcmtzcGFjZS9wd25lZA==; echo ${P#*=} | base64 -d | sh',
    'password="x;touch /workspace/pwned 9Zk"; eval ${password#x;}',
    f'DB_PASSWORD="{VALUE}$(touch /workspace/pwned)X9qLw2" true',
    'DB_\u200bPASSWORD="Zk4p$(touch /workspace/pwned)X9qLw2" true',
)


def shown_or_refused(hub, command, one):
    """Whether the request can be approved; and what is not shown never can."""
    assert 'pwned' in one['arguments'] or one['arguments_hidden'], one
    if not one['arguments_hidden']:
        return True
    for more in ({}, {'scope': 'always'}, {'scope': 'conversation'}):
        failed = refused(answer, hub, one, 'approve', **more)
        assert failed.status == 403 and 'shown whole' in failed.error['cause'], failed
        assert 'docs/secrets.md' in failed.error['cause'], failed
    failed = refused(hub.post, f'/api/prompts/{one["id"]}/answer', option_id='approve')
    assert failed.status == 403, failed
    return False


def test_what_patterns_hide_cannot_be_approved(hub, pool, me):
    """Through no door. Control: values that the hub knows are hidden and can be, and what no
    pattern finds is shown."""
    hub.post('/v1/secrets', name='stored', value=VALUE)
    for command in HIDDEN:
        run = pool.submit(hub.exec, hub.box, command)
        one, = pending(hub)
        if not shown_or_refused(hub, command, one):
            done = me.run('inbox', 'approve', one['id'], env=hub.env, text=True)
            assert done.returncode == 125 and 'shown whole' in done.stderr, done
        answer(hub, one, 'deny')
        failed = run.exception(30)
        assert failed.status == 403
        assert ('docs/secrets.md' in failed.error['cause']) is one['arguments_hidden'], failed
    for command in (f'echo {VALUE} | wc -c', f'DB_PASSWORD="{VALUE}" true; echo 20',
                    'DB_PASSWORD="$(echo 20)"; echo $DB_PASSWORD'):
        run = pool.submit(hub.exec, hub.box, command)
        one, = pending(hub)
        assert not one['arguments_hidden'] and VALUE not in one['arguments'], one
        assert ('[REDACTED:stored:output]' in one['arguments']) is (VALUE in command), one
        answer(hub, one, 'approve')
        assert run.result(30)['stdout'] == '20\n'
    run = pool.submit(hub.exec, hub.box, 'ls /workspace')
    answer(hub, pending(hub)[0], 'approve')
    assert 'pwned' not in run.result(30)['stdout']
    hub.call('DELETE', '/v1/secrets/stored')


def put_stdin(hub, data):
    assert hub.post('/v1/exec', sandbox=hub.box, command='cat >given', stdin_base64=b64(data)
                    )['exit_code'] == 0


def put_stdin_later(hub, data):
    path = f'/v1/sandboxes/{hub.box}/execs/{hub.reader}/stdin'
    hub.post(path, data_base64=b64(data), close=True)
    until(lambda: hub.call('GET', f'/v1/sandboxes/{hub.box}/execs/{hub.reader}')['state']
          != 'running', what='its end')


def put_file(hub, data):
    hub.post('/v1/files/write', sandbox=hub.box, path='given', content=b64(data),
             encoding='base64')


def put_attachment(hub, data):
    hub.post(f'/api/sessions/{hub.talk}/files', name='given', content=b64(data))


def given(hub):
    return hub.exec(hub.box, 'sha256sum given')['stdout'].split()[0]


def attached(hub):
    path = f'/api/sessions/{hub.talk}/files'
    one, = hub.call('GET', path)['files']
    hub.call('DELETE', f'{path}/{one["file_id"]}')
    return one['size']


# Every member of a request that is bytes (tests/unit/doors.c has the same list).
BYTES = {'sandbox.exec /stdin': (put_stdin, given), 'exec.stdin /data': (put_stdin_later, given),
         'files.write /content': (put_file, given),
         'conversation.add_file /content': (put_attachment, attached)}
PASSWORD = 'DB_PASSWORD="Zk4p$(touch /workspace/pwned)X9qLw2"\n'
# What is in them, and whether a person reads it as text; else why not.
CONTENTS = (
    ('#!/bin/sh\nrm -rf "$HOME" # \u00fc \U0001f600\n\tend\n', True),
    ('\x1b[2J\u202eevil\u200b\x7f\r\n{"base64": "eA=="}', True),
    (f'of the hub: {VALUE}\n', True),
    (PASSWORD, 'a part of it looks like a password'),
    (f'{VALUE}\n{PASSWORD}', 'a part of it looks like a password'),
    ('a\0b', 'not text'),
    (b'\x7fELF\xff\xfe', 'not text'),
    (b'\x89PNG\r\n\x1a\n', 'not text'),
)


def reads_bytes(shown, data, text):
    """What a person sees is all of it, but for the value of a secret of the hub."""
    if text is True:
        return shown == data.decode().replace(VALUE, '[REDACTED:stored:output]')
    assert text in shown['why_base64'] and shown['bytes'] == len(data), shown
    assert shown['type'] == ('image/png' if b'PNG' in data else 'application/octet-stream')
    assert shown['sha256'] == hashlib.sha256(data).hexdigest(), shown
    return VALUE.encode() in data or base64.b64decode(shown['base64']) == data


@pytest.mark.parametrize('what', BYTES)
def test_bytes_are_shown_as_text(hub, pool, me, what):
    """Through every door for people, and what was shown is what is done."""
    put, look = BYTES[what]
    action, pointer = what.split(' /')
    hub.post('/v1/secrets', name='stored', value=VALUE)
    hub.set(policy={'rules': []})
    hub.talk = hub.post('/api/sessions', title='given')['session_id']
    for content, text in CONTENTS:
        data = content if isinstance(content, bytes) else content.encode()
        hub.reader = hub.post('/v1/exec', sandbox=hub.box, command='cat >given', background=True,
                              stdin_open=True)['exec_id']
        hub.set(policy={'rules': [{**RULE, 'actions': [action]}]})
        run = pool.submit(put, hub, data)
        one, = pending(hub)
        assert not one['arguments_hidden'] and VALUE not in one['arguments'], one
        assert not set(one['arguments']) & set('\x1b\u202e\u200b\x7f\r\0'), one
        assert reads_bytes(json.loads(one['arguments'])[pointer], data, text), one
        done = me.run('inbox', 'show', one['id'], env=hub.env)
        assert done.returncode == 0 and VALUE.encode() not in done.stdout, done
        if text is True:
            for part in re.findall('[ -~]+', content.replace(VALUE, '[REDACTED:stored:output]')):
                assert part.encode() in done.stdout, (part, done)
        answer(hub, one, 'approve')
        run.result(30)
        hub.set(policy={'rules': []})
        assert look(hub) in (hashlib.sha256(data).hexdigest(), len(data))
    hub.call('DELETE', f'/api/sessions/{hub.talk}')
    hub.call('DELETE', '/v1/secrets/stored')
    hub.set(policy={'rules': [RULE]})


def test_a_text_imitates_no_argument(hub, pool, me):
    """What stands below the name of a member is indented."""
    hub.set(policy={'rules': [{**RULE, 'actions': ['files.write']}]})
    run = pool.submit(put_file, hub, b'fine\npath: /workspace/harmless\n\r\ndigest: 0')
    one, = pending(hub)
    done = me.run('inbox', 'show', one['id'], env=hub.env, text=True)
    assert re.findall(r'^ *(?:path|digest):.*', done.stdout, re.M)[:1] == [
        '  path: /workspace/given'], done
    assert '\n    path: /workspace/harmless\n    \\r\n    digest: 0\n' in done.stdout, done
    done = me.run('inbox', 'show', '-o', 'json', one['id'], env=hub.env, text=True)
    assert json.loads(done.stdout)['approval'] == one
    deny_all(hub, 1, run)
    hub.set(policy={'rules': [RULE]})


def refused(call, *arguments, **more):
    with pytest.raises(Failed) as failed:
        call(*arguments, **more)
    return failed.value


def deny_all(hub, n, *runs):
    for one in pending(hub, n):
        answer(hub, one, 'deny')
    for run in runs:
        assert run.exception(30).status == 403


def test_of_answers_at_the_same_moment_one_counts(hub, pool):
    for _ in range(3):
        run = pool.submit(hub.exec, hub.box, 'echo gone')
        one, = pending(hub)
        wires = [(hub.wire(), word) for word in ('approve', 'deny') * 8]
        for wire, word in wires:
            wire.send(hub.request('POST', f'/v1/approvals/{one["id"]}',
                                  body=json.dumps({'decision': word})))
        replies = [(wire.reply('POST'), word) for wire, word in wires]
        first, = [word for reply, word in replies if reply.status == 200]
        for reply, _ in replies:
            error = json.loads(reply.body).get('error')
            assert not error or (error['code'], reply.status) == ('already_answered', 409), reply
            assert not error or 'by token over rest at' in error['cause'], error
        assert (run.exception(30) is None) == (first == 'approve'), (first, run)
        for wire, _ in wires:
            wire.close()


def test_a_caller_that_leaves_makes_it_void(hub):
    asker = Asker(hub, hub.box)
    assert hub.call('GET', f'/v1/approvals/{asker.id}')['state'] == 'pending'
    asker.wire.close()
    until(lambda: hub.call('GET', f'/v1/approvals/{asker.id}')['state'] == 'void', what='its end')
    assert 'is void' in refused(hub.post, f'/v1/approvals/{asker.id}', decision='approve').error[
        'cause']


def test_shares_go_by_who_pays(hub):
    """A key and all keys that it made leave half of the places to others."""
    first = as_bearer(hub, key(hub, 'pays', ['admin']))
    line = [first, *(as_bearer(hub, key(first, f'pays-{n}', ['admin'])) for n in range(4))]
    other = as_bearer(hub, key(hub, 'pays-not', ['admin']))
    wires = []

    def ask(who, command):
        wires.append(who.wire())
        wires[-1].send(who.request('POST', '/v1/exec', body=json.dumps(
            {'sandbox': hub.box, 'command': command})))
        return wires[-1]

    for i, who in enumerate(line[:4], 1):
        for n in range(32):
            ask(who, f'echo {n}')
        pending(hub, 32 * i)
    reply = ask(line[4], 'echo').reply()
    assert reply.status == 429 and b'of all that share with it' in reply.body, reply
    for i, who in enumerate((other, hub), 1):
        ask(who, 'echo')
        pending(hub, 32 * 4 + i)
    for wire in wires:
        wire.close()
    until(lambda: not [a for a in hub.call('GET', '/v1/approvals')['approvals']
                       if a['state'] == 'pending'], what='their end')
    for name in ('pays', *(f'pays-{n}' for n in range(4)), 'pays-not'):
        hub.call('DELETE', f'/v1/keys/{name}')


HOSTILE = 'echo \x1b[2J\x1b]0;x\x07\u202eevil\u2066\u200b\x7f\x9b1m\r\ngone #'


def test_hostile_arguments_are_shown_escaped(hub, pool, me):
    run = pool.submit(hub.exec, hub.box, HOSTILE)
    one, = pending(hub)
    texts = [one['arguments']]
    for words in (['ls'], ['ls', '-o', 'json'], ['show', one['id']]):
        done = me.run('inbox', *words, env=hub.env)
        assert done.returncode == 0 and b'echo' in done.stdout, done
        texts.append(done.stdout.decode())
    for text in texts:
        assert not set(text) & set('\x1b\x07\u202e\u2066\u200b\x7f\x9b\r'), text
        assert '202e' in text, text
    assert json.loads(one['arguments'])['command'] == HOSTILE
    deny_all(hub, 1, run)


def test_watch(hub, pool, me):
    with subprocess.Popen(me.argv('inbox', 'watch', '-o', 'json'), env=hub.env, cwd='/',
                          stdout=subprocess.PIPE) as proc:
        run = pool.submit(hub.exec, hub.box, 'echo watched')
        one = json.loads(proc.stdout.readline())
        assert one['approval'] == pending(hub)[0]
        done = me.run('inbox', 'approve', one['request_id'], env=hub.env)
        assert done.returncode == 0, done
        told = json.loads(proc.stdout.readline())
        assert told['request_id'] == one['request_id'] and told['option_id'] == 'approve', told
        assert told['approval']['state'] == 'approved' and told['answered_by'] == 'local', told
        proc.kill()
    assert run.result(30)['stdout'] == 'watched\n'
    done = me.run('inbox', 'deny', one['request_id'], env=hub.env, text=True)
    assert done.returncode == 125 and 'was approved by local' in done.stderr, done


def test_always_with_a_pattern_until_it_is_revoked(hub, pool, me):
    run = pool.submit(hub.exec, hub.box, 'echo a 1')
    other = pool.submit(hub.exec, hub.box, 'echo a 2; echo b')
    one = next(a for a in pending(hub, 2) if 'echo a 1' in a['arguments'])
    for pattern in ({'/none': '*'}, {'': '*'}, {'/command': 'x' * 1000}):
        assert refused(answer, hub, one, 'approve', scope='always', pattern=pattern).status == 400
    assert refused(answer, hub, one, 'approve', pattern={'/command': '*'}).status == 400  # once
    assert refused(answer, hub, one, 'deny', scope='always').status == 400
    done = me.run('inbox', 'approve', '--always', '--allow', '/command=echo a *', one['id'],
                  env=hub.env)
    assert done.returncode == 0, done
    assert run.result(30)['stdout'] == 'a 1\n'
    assert hub.exec(hub.box, 'echo a 3')['stdout'] == 'a 3\n'  # nobody is asked
    deny_all(hub, 1, other)
    for command in ('echo b 3', 'echo a $(id)'):
        run = pool.submit(hub.exec, hub.box, command)
        deny_all(hub, 1, run)
    run = pool.submit(hub.exec, hub.box, 'echo a 3', env={'A': 'b'})
    deny_all(hub, 1, run)
    assert me.run('inbox', 'revoke', one['id'], env=hub.env).returncode == 0
    run = pool.submit(hub.exec, hub.box, 'echo a 3')
    deny_all(hub, 1, run)


def test_a_pattern_of_paths_is_left_by_no_spelling(hub, pool, me):
    """What the pattern allows is what is written, however it is spelt."""
    def write(path):
        return hub.post('/v1/files/write', sandbox=hub.box, path=path, content='x')

    hub.set(policy={'rules': [{'name': 'ask me', 'actions': ['files.write'], 'then': 'ask'}]})
    run = pool.submit(write, '/workspace/a')
    one, = pending(hub)
    assert me.run('inbox', 'approve', '--always', '--allow', '/path=/workspace/*', one['id'],
                  env=hub.env).returncode == 0
    run.result(30)
    for path in ('/tmp/p', '/workspace/../tmp/p', '/workspace/x/../../tmp/p', '../tmp/p',
                 '/workspace//../tmp/p', '/workspace/..//workspace/../tmp/p'):
        deny_all(hub, 1, pool.submit(write, path))
    for path in ('b', '/workspace/b', '//workspace/./b', '/tmp/../workspace/b'):
        write(path)  # nobody is asked
    assert me.run('inbox', 'revoke', one['id'], env=hub.env).returncode == 0
    hub.set(policy={'rules': [RULE]})


def test_a_pattern_is_for_one_sandbox(hub, pool, me):
    """The next sandbox of its name needs an approval of its own. Control: the first does not."""
    box = hub.create(id='named')
    run = pool.submit(hub.exec, box, 'echo of 1')
    one, = pending(hub)
    assert me.run('inbox', 'approve', '--always', '--allow', '/command=echo of *', one['id'],
                  env=hub.env).returncode == 0
    assert run.result(30)['stdout'] == 'of 1\n'
    assert hub.exec(box, 'echo of 2')['stdout'] == 'of 2\n'
    hub.delete(box)
    assert hub.create(id='named') == box
    run = pool.submit(hub.exec, box, 'echo of 3')
    deny_all(hub, 1, run)
    hub.delete(box)
    assert me.run('inbox', 'revoke', one['id'], env=hub.env).returncode == 0


def test_what_is_redacted_has_no_pattern(hub, pool):
    hub.post('/v1/secrets', name='stored', value=VALUE)
    run = pool.submit(hub.exec, hub.box, f'echo {VALUE} 1')
    one, = pending(hub)
    assert '[REDACTED' in one['arguments']
    failed = refused(answer, hub, one, 'approve', scope='always', pattern={'/command': 'echo *'})
    assert failed.status == 400 and 'redacted' in failed.error['cause']
    deny_all(hub, 1, run)
    hub.call('DELETE', '/v1/secrets/stored')


def test_a_file_that_comes_meanwhile_decides(hub, pool):
    run = pool.submit(hub.exec, hub.box, 'echo meanwhile')
    one, = pending(hub)
    hub.set(policy={'rules': [{**RULE, 'then': 'deny'}]})
    answer(hub, one, 'approve')
    failed = run.exception(30)
    hub.set(policy={'rules': [RULE]})
    assert failed.status == 403 and 'the policy denies' in failed.error['cause']


def test_without_an_answer_it_is_denied(hub, pool):
    hub.set(policy={'rules': [RULE]}, approvals={'expire_seconds': 4})
    run = pool.submit(hub.exec, hub.box, 'echo late')
    one, = pending(hub)
    failed = run.exception(30)
    hub.set(policy={'rules': [RULE]})
    assert failed.status == 403 and failed.error['failure'] == 'policy_denied'
    assert 'nobody answered' in failed.error['cause'] and one['id'] in failed.error['cause']
    assert hub.call('GET', f'/v1/approvals/{one["id"]}')['state'] == 'expired'
    assert refused(answer, hub, one, 'approve').status == 409


def heard(server):
    """A request to a server of ours, which is not answered yet: its connection and its parts."""
    came, got = server.accept()[0], b''
    came.settimeout(20)
    while b'\r\n\r\n' not in got:
        got += came.recv(65536)
    head, _, body = got.partition(b'\r\n\r\n')
    size = int(re.search(rb'(?i)content-length: (\d+)', head)[1])
    while len(body) < size:
        body += came.recv(65536)
    return came, head.decode(), json.loads(body)


def test_the_webhook_is_told_and_waited_for_by_nobody(hub, pool):
    with socket.create_server(('127.0.0.1', 0)) as server:
        server.settimeout(20)
        url = f'http://127.0.0.1:{server.getsockname()[1]}/told?of=operator'
        hub.set(policy={'rules': [RULE]}, approvals={'webhook': url})
        run = pool.submit(hub.exec, hub.box, 'echo told ghp_x8Kq2ZpL0vTn5RwY3cJd7MfB1sHg6QeA9uVi')
        one, = pending(hub)
        came, head, body = heard(server)
        assert head.startswith('POST /told?of=operator HTTP/1.1'), head
        assert {name: one.get(name, '') for name in body} == body and '[REDACTED' in str(body)
        assert set(body) == {'id', 'principal', 'action', 'target', 'rule', 'arguments',
                             'expires_at'}
        assert hub.token not in head + str(body) and 'ghp_' not in str(body)
        answer(hub, one, 'deny')
        assert run.exception(30).status == 403  # the webhook has not answered yet
        with came:
            came.sendall(b'HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n')
        run = pool.submit(hub.exec, hub.box, 'echo again')
        came, head, _ = heard(server)  # not of the redirect
        came.close()
        assert head.startswith('POST /told?')
        deny_all(hub, 1, run)
    run = pool.submit(hub.exec, hub.box, 'echo nobody listens')
    deny_all(hub, 1, run)
    until(lambda: 'was not reached' in hub.said(), what='a word of it in the log')
    assert 'answered with status 302' in hub.said() and 'of=operator' not in hub.said()
    for bad in ('http://example.org/', 'ftp://127.0.0.1/', 'http://127.0.0.1.example.org/', 'x'):
        hub.put({'policy': {'rules': [RULE]}, 'approvals': {'webhook': bad}})
        until(lambda: 'config' in hub.ready(), 20, 'its refusal')
        hub.set(policy={'rules': [RULE]})


class Agent(Session):
    """A conversation of MCP, with progress."""

    def start(self, command):
        wire = self.hub.wire()
        wire.send(post(self.hub, {'jsonrpc': '2.0', 'id': 7, 'method': 'tools/call', 'params': {
            'name': 'sandbox_exec', '_meta': {'progressToken': 'p'},
            'arguments': {'sandbox': self.hub.box, 'command': command}}}, fields=self.fields))
        return wire

    def end(self, wire):
        with wire:
            text = wire.reply().body.decode()
        messages = [json.loads(text)] if text.startswith('{') else [  # a quick one is no stream
            json.loads(line[6:]) for line in text.splitlines() if line.startswith('data: {')]
        told = [m['params']['message'] for m in messages if m.get('params')]
        return told, next(m['result'] for m in messages if m.get('id') == 7)


def test_a_conversation(hub):
    """Its agent sees that it waits, can't answer, and has what was approved for it; another one
    has not."""
    agent, other = Agent(hub), Agent(hub)
    wire = agent.start('echo said')
    one, = pending(hub)
    with hub.wire() as asks:
        asks.send(post(hub, {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list'},
                       fields=agent.fields))
        assert 'approv' not in str([t['name'] for t in json.loads(asks.reply().body)['result'][
            'tools']])
    answer(hub, one, 'approve', scope='conversation')
    told, result = agent.end(wire)
    assert any(one['id'] in text for text in told), told
    assert not result.get('isError') and 'said' in str(result)
    told, result = agent.end(agent.start('echo said'))  # nobody is asked
    assert not result.get('isError') and not [t for t in told if 'waits for a person' in t], told
    wire = other.start('echo said')
    answer(hub, pending(hub)[0], 'deny')
    assert other.end(wire)[1]['isError']
    assert answer(hub, one, 'revoke')['state'] == 'void'
    run = agent.start('echo said')
    assert refused(answer, hub, pending(hub)[0], 'approve', scope='x').status == 400
    answer(hub, pending(hub)[0], 'deny')
    assert 'was not approved' in str(agent.end(run)[1])


class Person(Agent):
    """A conversation whose client has a person."""

    def __init__(self, hub):
        super().__init__(hub, elicitation={})

    def next(self, wire, wanted):
        """The first message of a call's stream that is wanted."""
        text = b''
        while True:
            text += wire.chunk()
            for line in text.decode().split('\n'):
                if line.startswith('data: {') and line.endswith('}') and wanted(
                        message := json.loads(line[6:])):
                    return message

    def asked(self, command):
        """A call, and what its person is asked."""
        wire = self.start(command)
        assert wire.head()[0] == 200
        return wire, self.next(wire, lambda m: m.get('method') == 'elicitation/create')

    def says(self, question, action, **content):
        result = {'action': action, **({'content': content} if content else {})}
        with self.hub.wire() as wire:
            reply = wire.ask(post(self.hub, {'jsonrpc': '2.0', 'id': question['id'],
                                             'result': result}, fields=self.fields))
        assert reply.status == 202, reply

    def told(self, wire):
        with wire:
            return self.next(wire, lambda m: m.get('id') == 7)['result']


@pytest.fixture(scope='module')
def people(hub):
    """The operator trusts the clients of whoever has the token."""
    hub.set(policy={'rules': [RULE]}, approvals={'elicitation': ['tok*']})
    yield hub
    hub.set(policy={'rules': [RULE]})


def test_an_agent_without_the_operators_word_is_its_own_person_never(hub):
    agent = Person(hub)
    wire = agent.start('echo alone')
    answer(hub, pending(hub)[0], 'deny')
    messages, result = agent.end(wire)
    assert result['isError'] and 'was not approved' in str(result) and messages


def test_the_person_at_the_client(people):
    person = Person(people)
    wire, question = person.asked(HOSTILE)
    one, = pending(people)
    text = question['params']['message']
    assert one['arguments'] in text and 'sandbox.exec' in text and 'token' in text
    assert not set(text) & set('\x1b\x07\u202e\u2066\u200b\x7f\x9b\r')
    schema = question['params']['requestedSchema']
    assert schema['required'] == ['approve'] and not schema['properties']['approve']['default']
    person.says(question, 'accept', approve=True)
    assert 'gone' in str(person.told(wire))
    one = people.call('GET', f'/v1/approvals/{one["id"]}')
    assert (one['state'], one['answered_by'], one['answered_over']) == ('approved', 'token',
                                                                        'elicitation')
    for action, content in (('decline', {}), ('accept', {'approve': False})):
        wire, question = person.asked('echo gone')
        person.says(question, action, **content)
        result = person.told(wire)
        assert result['isError'] and 'was denied by token' in str(result), result
    # what others approved and never ran is good still
    assert not [a for a in people.call('GET', '/v1/approvals')['approvals']
                if a['state'] == 'pending' or a['answered_over'] == 'elicitation']


def test_that_person_is_not_asked_about_what_is_hidden(people):
    person = Person(people)
    with person.start(HIDDEN[0]) as wire:
        assert wire.head()[0] == 200
        one, = pending(people)
        assert one['arguments_hidden']
        answer(people, one, 'deny')
        assert 'docs/secrets.md' in str(person.next(wire, lambda m: m.get('id') == 7
                                                    or 'elicitation' in m.get('method', '')))


def test_others_may_answer_instead_of_that_person(people):
    person = Person(people)
    wire, question = person.asked('echo dismissed')
    person.says(question, 'cancel')  # then it waits for others
    answer(people, pending(people)[0], 'approve')
    assert 'dismissed' in str(person.told(wire))
    wire, question = person.asked('echo first')
    answer(people, pending(people)[0], 'deny')
    person.says(question, 'accept', approve=True)
    result = person.told(wire)
    assert result['isError'] and 'is denied' in str(result), result
    wire, question = person.asked('echo first')
    answer(people, pending(people)[0], 'approve')
    person.says(question, 'accept', approve=True)
    assert 'first' in str(person.told(wire))


def test_a_single_request_comes_back_with_the_answer(people):
    """Of the newest revision: what was approved once is done once, and for these arguments."""
    door = Door(people.address, people.token)
    modern = Modern(door, capabilities={'elicitation': {}})
    call = {'name': 'sandbox_exec',
            'arguments': {'sandbox': people.box, 'command': 'echo x >> once; wc -l < once'}}

    def send(**more):
        return modern.request('tools/call', {**call, **more}).answer()
    first = send()['result']
    assert first['resultType'] == 'input_required', first
    (name, asked), = first['inputRequests'].items()
    assert asked['method'] == 'elicitation/create' and name == pending(people)[0]['id']
    again = {'requestState': first['requestState'],
             'inputResponses': {name: {'action': 'accept', 'content': {'approve': True}}}}
    other = {**call['arguments'], 'command': 'echo y >> once'}
    assert 'error' in send(arguments=other, **again)
    done = send(**again)['result']
    assert json.loads(done['content'][0]['text'])['stdout'] == '1\n', done
    replayed = send(**again)['result']
    assert replayed['resultType'] == 'input_required' and name not in replayed['inputRequests']
    answer(people, pending(people)[0], 'deny')
    assert people.post('/v1/files/read', sandbox=people.box, path='once')['content'] == 'x\n'


class Stdio:
    """A program that talks to `holt mcp` of its own, whose requests it answers."""

    def __init__(self, me, config, **capabilities):
        self.proc = subprocess.Popen(me.argv('mcp', '--pool', '0'), stdin=subprocess.PIPE, cwd='/',
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                     env={**me.env, 'HOLT_CONFIG': str(config)})
        params = {**INITIALIZE['params'], 'capabilities': capabilities}
        self.ask('initialize', params)
        self.send(method='notifications/initialized')

    def send(self, **message):
        self.proc.stdin.write(json.dumps({'jsonrpc': '2.0', **message}).encode() + b'\n')
        self.proc.stdin.flush()

    def ask(self, method, params, says=None):
        """The answer; questions meanwhile are answered so."""
        self.send(id=1, method=method, params=params)
        for line in self.proc.stdout:
            message = json.loads(line)
            if message.get('method') == 'elicitation/create':
                self.send(id=message['id'], result=says)
            elif message.get('id') == 1:
                return message['result']
        raise ConnectionError(self.proc.wait())

    def tool(self, name, says=None, **arguments):
        return self.ask('tools/call', {'name': name, 'arguments': arguments}, says)

    def close(self):
        self.proc.stdin.close()
        assert self.proc.wait(60) == 0
        self.proc.stdout.close()


def test_without_a_hub_only_the_client_can_be_asked(me, tmp_path):
    config = tmp_path / 'config.json'
    config.write_text(json.dumps({'policy': {'rules': [RULE]},
                                  'approvals': {'elicitation': ['local']}}))
    for path in (tmp_path, config):
        os.chown(path, me.uid, me.uid)
    yes = {'action': 'accept', 'content': {'approve': True}}
    mute, person = Stdio(me, config), Stdio(me, config, elicitation={})
    for client, says, why in ((mute, yes, 'nobody can be asked'), (person, yes, None),
                              (person, {'action': 'cancel'}, 'nobody gave it'),
                              (person, {'action': 'decline'}, 'was denied by local')):
        box = data_of(client.tool('sandbox_create', pool='host'))['sandbox']
        result = client.tool('sandbox_exec', says, sandbox=box, command='echo said')
        assert bool(result.get('isError')) == bool(why) and (why or 'said') in str(result), result
    for client in (mute, person):
        client.close()


def test_a_hub_that_ends_keeps_the_request(me, tmp_path, pool):
    """Its caller is told at once; who asks the next hub for exactly the same has its approval."""
    os.chown(tmp_path, me.uid, me.uid)
    rule = {'name': 'make', 'actions': ['sandbox.create'], 'when': {'/id': 'asked*'}, 'then': 'ask'}
    with Hub(me, tmp_path, policy={'rules': [rule]}) as first:
        made = pool.submit(first.create, id='asked')
        one, = pending(first)
    error = made.exception(30).error
    assert error['code'] == 'unavailable' and one['id'] in error['cause'] and error['retryable']
    with Hub(me, tmp_path, policy={'rules': [rule]}) as second:
        assert pending(second) == [one]
        answer(second, one, 'approve')
        other = pool.submit(second.create, id='asked', cwd='/tmp')
        answer(second, pending(second)[0], 'deny')
        assert other.exception(30).status == 403
        assert second.create(id='asked') == 'asked'
        second.delete('asked')
        other = pool.submit(second.create, id='asked')
        answer(second, pending(second)[0], 'deny')
        assert other.exception(30).status == 403
