"""Requests for approval and questions: a hub that asks a person, and what waits for one."""

import json
import os

from client import until
from modules import configured, server

ASKED = 'ask a person'


def asks(me, home, **servers):
    """A home whose hub asks a person before a command that says so, with more modules."""
    rule = {'name': 'asked', 'actions': ['sandbox.exec'], 'when': {'/command': f'*{ASKED}*'},
            'then': 'ask'}
    config = os.path.join(home, 'config.json')
    with open(config, 'w', encoding='utf-8') as f:
        json.dump({'policy': {'rules': [rule]},
                   'principals': {'key:*': {'workspaces': ['of-stage']}},
                   **configured(**{'of-stage': server()}, **servers)}, f)
    for path in (home, config):
        os.chown(path, me.uid, me.uid)
    return home


def pending(hub, n=1, box=None):
    """So many requests, about a sandbox if it is named, once they wait."""
    def look():
        return [a for a in hub.call('GET', '/v1/approvals')['approvals']
                if a['state'] == 'pending' and box in (None, a.get('target'))]
    return until(lambda: len(found := look()) == n and found, what=f'{n} requests for approval')


def question(hub, **more):
    """The id of a question that waits for a person, and for which nobody waits."""
    return hub.post('/api/prompts', **{'kind': 'yes_no', 'question': 'Go on?', 'wait': False,
                                       **more})['request_id']


def asks_people(hub):
    config = os.path.join(hub.home, 'config.json')
    if not os.path.exists(config):
        return False
    with open(config, encoding='utf-8') as f:
        rules = json.load(f).get('policy', {}).get('rules', [])
    return any(rule['then'] == 'ask' for rule in rules)


class Asker:
    """A call that waits for a person, on a connection of its own. Where the hub asks nobody it has
    the id of no request."""

    def __init__(self, hub, box):
        self.id, self.wire = 'apr-' + '0' * 32, None
        if asks_people(hub):
            self.wire = hub.wire()
            body = json.dumps({'sandbox': box, 'command': f'true # {ASKED}'})
            self.wire.send(hub.request('POST', '/v1/exec', body=body))
            self.id = pending(hub, box=box)[0]['id']
