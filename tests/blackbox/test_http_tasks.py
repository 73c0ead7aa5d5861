"""Tasks and questions over HTTP: whose they are, and what survives a client that goes away."""

import pytest

from http_client import META, Modern

TASKS = {'extensions': {'io.modelcontextprotocol/tasks': {}}}
ALL = {'elicitation': {}, **TASKS}
NAME = {'action': 'accept', 'content': {'name': 'Eve'}}


@pytest.fixture
def alice(peer):
    return Modern(peer.door, capabilities=ALL)


@pytest.fixture
def bob(peer):
    return Modern(peer.door.as_other('bob'), capabilities=ALL)


def begin(client, **arguments):
    got = client.tool('job', **arguments).json()['result']
    assert got['resultType'] == 'task' and got['status'] == 'working'
    return got['taskId']


def get(client, task):
    return client.request('tasks/get', {'taskId': task}).json()['result']


def refused(reply, code=-32602, status=200):
    assert (reply.status, reply.json()['error']['code']) == (status, code)


def test_a_task_outlives_its_request(peer, alice):
    task = begin(alice, key='k')
    assert get(alice, task)['status'] == 'working'
    peer.release('k')
    done = get(alice, task)
    assert done['status'] == 'completed' and done['result']['content'][0]['text'] == 'k'


def test_a_task_is_its_owners(peer, alice, bob):
    task = begin(alice, key='k')
    for method, more in (('tasks/get', {}), ('tasks/cancel', {}),
                         ('tasks/update', {'inputResponses': {}})):
        refused(bob.request(method, {'taskId': task, **more}))
        refused(bob.request(method, {'taskId': 'task-' + '0' * 32, **more}))
    stream = bob.request('subscriptions/listen', {'notifications': {'taskIds': [task]}})
    assert stream.real_event().message()['params']['notifications'].get('taskIds', []) == []
    stream.close()
    assert get(alice, task)['status'] == 'working'
    peer.release('k')


def test_headers_name_the_task(peer, alice):
    task = begin(alice, key='k')
    refused(alice.request('tasks/get', {'taskId': task}, headers={'Mcp-Name': 'other'}), -32020,
            400)
    refused(alice.request('tasks/get', {'taskId': task}, headers={'Mcp-Name': None}), -32020, 400)
    refused(Modern(peer.door).request('tasks/get', {'taskId': task}), -32021, 400)
    refused(alice.request('tasks/list'), -32601, 404)
    peer.release('k')


def test_status_comes_where_a_client_listens(peer, alice):
    task = begin(alice, ask=1)
    stream = alice.request('subscriptions/listen', {'notifications': {'taskIds': [task]}},
                           number='ear')
    assert stream.real_event().message()['params']['notifications']['taskIds'] == [task]
    done = alice.request('tasks/update',
                         {'taskId': task, 'inputResponses': {'who': NAME}}).json()['result']
    assert 'status' not in done and done['resultType'] == 'complete'
    seen = [stream.real_event().message()['params'] for _ in range(2)]
    assert [m['status'] for m in seen] == ['working', 'completed']
    assert all(m['_meta'][META + 'subscriptionId'] == 'ear' and m['taskId'] == task for m in seen)
    assert seen[1]['result']['content'][0]['text'] == 'Eve'
    stream.close()


def test_a_cancelled_task_cancels_its_call(peer, alice):
    task = begin(alice, key='k')
    assert 'status' not in alice.request('tasks/cancel', {'taskId': task}).json()['result']
    assert get(alice, task)['status'] == 'cancelled'
    assert peer.until(held=0)['cancelled'] == 1


def test_a_state_is_its_owners(alice, bob):
    state = alice.tool('ask').json()['result']['requestState']

    def back(client, text, **more):
        return client.request('tools/call', {'name': 'ask', 'arguments': {}, 'requestState': text,
                                             'inputResponses': {'who': NAME}, **more}, 2)
    for text in (state + '-TAMPERED', state[:-1], state[::-1], '', 'x' * 100_000, state.swapcase()):
        refused(back(alice, text))
    refused(back(bob, state))
    refused(back(alice, state, arguments={'other': 1}))
    assert back(alice, state).json()['result']['content'][0]['text'] == 'Eve'


def test_a_legacy_task_outlives_its_session(peer):
    session, other = peer.session(), peer.session()
    made = session.request('tools/call', {'name': 'job', 'arguments': {'key': 'k'},
                                          'task': {'ttl': 60000}}).json()
    task = made['result']['task']['taskId']
    session.end()
    assert other.request('tasks/get', {'taskId': task}).answer()['result']['status'] == 'working'
    waiting = other.request('tasks/result', {'taskId': task})
    peer.release('k')
    got = waiting.answer()['result']
    assert got['content'][0]['text'] == 'k'
    assert got['_meta']['io.modelcontextprotocol/related-task'] == {'taskId': task}
    listed = other.request('tasks/list').answer()['result']['tasks']
    assert [(t['taskId'], t['status'], t['ttl']) for t in listed] == [(task, 'completed', 60000)]


def test_a_legacy_task_asks_who_waits_for_it(peer):
    session = peer.session(capabilities={'elicitation': {}})
    made = session.request('tools/call',
                           {'name': 'job', 'arguments': {'ask': 1}, 'task': {}}).json()
    task = made['result']['task']['taskId']
    assert session.request('tasks/get',
                           {'taskId': task}).answer()['result']['status'] == 'input_required'
    waiting = session.request('tasks/result', {'taskId': task})
    question = waiting.real_event().message()
    assert question['params']['_meta']['io.modelcontextprotocol/related-task'] == {'taskId': task}
    session.post({'jsonrpc': '2.0', 'id': question['id'], 'result': NAME})
    assert waiting.real_event().message()['result']['content'][0]['text'] == 'Eve'


def test_made_up_answers_are_dropped(peer):
    session, other = peer.session(capabilities={'elicitation': {}}), peer.session()
    reply = session.tool('ask')
    question = reply.real_event().message()
    for guess in (question['id'] + 1, -1, str(question['id']), 2 ** 63):
        session.post({'jsonrpc': '2.0', 'id': guess, 'result': NAME}).close()
    other.post({'jsonrpc': '2.0', 'id': question['id'], 'result': NAME}).close()
    session.post({'jsonrpc': '2.0', 'id': question['id'], 'result': {'action': 'decline'}}).close()
    session.post({'jsonrpc': '2.0', 'id': question['id'], 'result': NAME}).close()
    assert reply.real_event().message()['result']['content'][0]['text'] == ''


def test_a_cancelled_call_takes_its_question_back(peer):
    session = peer.session(capabilities={'elicitation': {}})
    reply = session.tool('ask')
    question = reply.real_event().message()
    session.cancel(session.last_id)
    told = reply.real_event().message()
    assert (told['method'], told['params']['requestId']) == ('notifications/cancelled',
                                                             question['id'])
    assert reply.real_event() is None


def test_who_waits_no_more_is_asked_no_more(peer):
    session = peer.session(capabilities={'elicitation': {}})
    made = session.request('tools/call',
                           {'name': 'job', 'arguments': {'ask': 1}, 'task': {}}).json()
    task = made['result']['task']['taskId']
    waiting = session.request('tasks/result', {'taskId': task})
    question = waiting.real_event().message()
    session.cancel(session.last_id)
    told = waiting.real_event().message()
    assert (told['method'], told['params']['requestId']) == ('notifications/cancelled',
                                                             question['id'])
    assert told['params']['_meta']['io.modelcontextprotocol/related-task'] == {'taskId': task}
    assert waiting.real_event() is None
    # the task goes on, and asks who comes next
    again = session.request('tasks/result', {'taskId': task})
    question = again.real_event().message()
    session.post({'jsonrpc': '2.0', 'id': question['id'], 'result': NAME})
    assert again.real_event().message()['result']['content'][0]['text'] == 'Eve'
