"""What Holt shows: a row for each route and procedure, each tool that is listed by default, and
each verb. A new one is a row here: then the walks of these files ask it in all their ways.

	test_keys      without a token, with keys that may not, by another, at once, once more
	test_stages      policy denies it, and each hook hears of it once
	test_canary    nothing that it shows has a secret
	test_tools     wrong arguments, names of nothing, at once, once more
	test_verbs     wrong usage, names of nothing, without a hub, once more

What is wrong with a request is in test_openapi.py, which takes it from the document of the hub.
"""

from rest import b64, frame

GONE, TAKEN = (404, 'not_found'), (409, 'conflict')
ANSWERED = (409, 'already_answered')
USAGE, FAILED, VERDICT = 2, 125, 1
SCOPES = ('read', 'execute', 'lifecycle', 'admin')


class Row:
    """scope: what a key must have; None: nobody is asked for one. right: a right request, or what
    makes one of a stage (stage.py), which has what the row needs. again: what the same one is
    answered then, if it is not well. races: what else may be answered while others are under way.
    free: it names nothing of anybody. endless: it does not end by itself. shows: how many values of
    a program that writes secrets everywhere it shows at least, if it may show any."""

    def __init__(self, scope, right=None, again=None, *, needs='', races=(), free=False,
                 endless=False, shows=None):
        self.scope, self.again, self.needs, self.races = scope, again, needs, {*races}
        self.made, self.free, self.endless, self.shows = right, free, endless, shows

    def right(self, stage):
        return self.made(stage) if callable(self.made) else self.made


class Route(Row):
    """right: the body of JSON; raw: another body; query: in the address."""

    def __init__(self, *right, query='', raw=None, **more):
        super().__init__(*right, **more)
        self.query, self.raw = query, raw if callable(raw) else lambda s: raw


class Verb(Row):
    """scope: None, where it asks no hub. right: its words, with what is of the stage in braces, and
    @ before one that is a name; None, where nothing can always be right. status: how it ends then;
    usage: with wrong usage."""

    def __init__(self, scope, right='', again=0, *, status=0, usage=USAGE, **more):
        super().__init__(scope, right, again, **more)
        self.status, self.usage = status, usage

    def right(self, stage, name=None):
        """The words, with another name in the place of its own."""
        return [name if word[0] == '@' and name is not None
                else word.removeprefix('@').format_map(vars(stage))
                for word in self.made.split()]

    @property
    def named(self):
        return '@' in (self.made or '')


def about(**more):
    return lambda s: {'sandbox': s.id, **more}


ROUTES = {
    'health': Route(None),
    'openapi': Route('read', free=True),
    'approvals.list': Route('admin'),
    'approvals.get': Route('admin', needs='approval'),
    'approvals.answer': Route('admin', {'decision': 'deny'}, ANSWERED, needs='approval'),
    'prompts.list': Route('read', query='?state=all', free=True),
    'prompts.ask': Route('execute', {'kind': 'yes_no', 'question': 'Go on?', 'wait': False},
                       free=True),
    'prompts.get': Route('read', needs='question'),
    'prompts.result': Route('read', needs='question'),
    'prompts.answer': Route('admin', {'option_id': 'yes'}, ANSWERED, needs='question'),
    'prompts.cancel': Route('execute', again=ANSWERED, needs='question'),
    'sessions.prompts.list': Route('read', query='?state=all', needs='talk question'),
    'sessions.prompts.answer': Route('admin', {'option_id': 'yes'}, ANSWERED,
                                     needs='talk question'),
    'audit.list': Route('read', query='?limit=3', free=True),
    'audit.get': Route('read', free=True),
    'templates.list': Route('read', free=True),
    'templates.create': Route('admin', {'id': 'host'}),
    'fork': Route('lifecycle', {'template': 'host', 'id': 'twin'}, TAKEN, free=True),
    'sandboxes.create': Route('lifecycle', {'id': 'made'}, TAKEN, free=True),
    'sandboxes.list': Route('read', query='?limit=3', free=True),
    'sandboxes.get': Route('read'),
    'sandboxes.delete': Route('lifecycle', again=GONE),
    'sandboxes.fork': Route('lifecycle', {'ids': ['kid-1', 'kid-2']}, TAKEN),
    'sandboxes.processes': Route('read', shows=4),
    'sandboxes.signal': Route('execute', lambda s: {'pid': s.pid, 'signal': 18}, needs='process'),
    'sandboxes.usage': Route('read'),
    'sandboxes.snapshot': Route('lifecycle', {'name': 'one'}, races=[TAKEN]),
    'sandboxes.diff': Route('read', races=[TAKEN], shows=1),
    'sandboxes.stop': Route('lifecycle', {}, races=[TAKEN]),
    'sandboxes.exec': Route('execute'),
    'sandboxes.forward': Route('execute', {'guest_port': 8000}),
    'network.get': Route('read'),
    'network.set': Route('admin', {'network': {'mode': 'none'}}, races=[TAKEN]),
    'preview': Route('execute', about(port=8000)),
    'forwards.list': Route('read'),
    'forwards.delete': Route('execute'),
    'vitals': Route('read', about()),
    'pty': Route('execute'),
    'usage': Route('read', query='?limit=2', free=True),
    'events': Route('read', query='?limit=2', free=True),
    'set_timeout': Route('lifecycle', about(timeout_seconds=600)),
    'pause': Route('lifecycle', about(), races=[TAKEN]),
    'resume': Route('lifecycle', about(), races=[TAKEN]),
    'snapshots.list': Route('read', needs='snapshot', free=True),
    'snapshots.get': Route('read', needs='snapshot'),
    'snapshots.delete': Route('lifecycle', again=GONE, needs='snapshot'),
    'snapshots.export': Route('read', needs='snapshot'),
    'snapshots.import': Route('lifecycle', raw=lambda s: s.packed, needs='snapshot', free=True),
    'snapshots.restore': Route('lifecycle', {'ids': ['back-1', 'back-2']}, TAKEN, needs='snapshot'),
    'workspaces.create': Route('lifecycle', {'name': 'made'}, TAKEN, races=[TAKEN], free=True),
    'workspaces.list': Route('read', query='?limit=3', needs='workspace', free=True),
    'workspaces.get': Route('read', needs='workspace'),
    'workspaces.attach': Route('lifecycle', lambda s: {'sandbox': s.fresh}, TAKEN,
                             needs='workspace', races=[TAKEN]),
    'workspaces.commit': Route('lifecycle', {'message': 'one'}, needs='workspace attached',
                             races=[TAKEN]),
    'workspaces.log': Route('read', query='?limit=3', needs='workspace'),
    'workspaces.diff': Route('read', query='?content=true', needs='workspace'),
    'workspaces.verify': Route('read', needs='workspace'),
    'workspaces.gc': Route('admin'),
    'workspaces.export': Route('read', needs='workspace'),
    'workspaces.import': Route('lifecycle', raw=bytes(1024), needs='workspace', races=[TAKEN]),
    'workspaces.revert': Route('lifecycle', lambda s: {'revision': s.revision}, needs='workspace',
                             races=[TAKEN]),
    'workspaces.fork': Route('lifecycle', {'fork': 'made-by-fork'}, TAKEN, needs='workspace',
                           races=[TAKEN]),
    'workspaces.delete': Route('lifecycle', again=GONE, needs='workspace'),
    'modules.list': Route('read', free=True),
    'modules.info': Route('read', needs='module', free=True),
    'modules.logs': Route('read', needs='module', free=True),
    'modules.approve': Route('admin', lambda s: {'digest': s.module}, needs='module'),
    'modules.update': Route('admin', needs='module'),
    'modules.revoke': Route('admin', needs='module'),
    'modules.enable': Route('admin', needs='module'),
    'modules.disable': Route('admin', needs='module'),
    'modules.test': Route('execute', needs='module', free=True),
    'modules.disconnect': Route('execute', needs='module', free=True),
    'modules.search': Route('read', query='?query=echo', free=True),
    'modules.call': Route('execute', {'arguments': {'text': 'hello'}}, needs='module', free=True),
    'modules.result': Route('read', query='?offset=1&limit=10', needs='module result'),
    'sessions.list': Route('read', query='?limit=3', free=True),
    'sessions.create': Route('execute', {'title': 'made'}, free=True),
    'sessions.get': Route('read', needs='talk'),
    'sessions.update': Route('execute', {'title': 'other', 'archived': True}, needs='talk'),
    'sessions.delete': Route('execute', again=GONE, needs='talk'),
    'sessions.restore': Route('execute', {}, again=GONE, needs='talk trash'),
    'sessions.events': Route('read', query='?limit=2', needs='talk'),
    'sessions.queue': Route('read', needs='talk message'),
    'sessions.send': Route('execute', {'prompt': 'x', 'key': 'one'}, needs='talk'),
    'sessions.unqueue': Route('execute', again=GONE, needs='talk message'),
    'sessions.move': Route('execute', {'to': 0}, needs='talk message'),
    'sessions.retry': Route('execute', {}, needs='talk message'),
    'sessions.files': Route('read', needs='talk file'),
    'sessions.add_file': Route('execute', {'name': 'b.txt', 'content': 'aGVsbG8='}, needs='talk'),
    'sessions.file': Route('read', needs='talk file'),
    'sessions.remove_file': Route('execute', again=GONE, needs='talk file'),
    'sessions.cancel': Route('execute', {}, needs='talk'),
    'sessions.wait': Route('read', query='?timeout_seconds=1', needs='talk'),
    'sessions.settings': Route('read', needs='talk'),
    'sessions.set_flags': Route('execute', {'settings': {'can_send_prompt': True}}, needs='talk'),
    'sessions.set_user_data': Route('execute', {'value': 'T-1'}, needs='talk'),
    'flags.list': Route('read', free=True),
    'conversation.workspaces': Route('read', free=True),
    'conversation.config': Route('read', free=True),
    'conversation.runtime': Route('read', free=True),
    'feed.follow': Route('read', endless=True, free=True),
    'secrets.list': Route('admin'),
    'secrets.set': Route('admin', {'name': 'set', 'value': 'a value of the surface'}),
    'secrets.remove': Route('admin', again=GONE, needs='secret'),
    'run': Route('execute', {'command': ['true'], 'state': {'retention': 'destroy'}}, free=True),
    'javascript': Route('execute', {'code': '1 + 1'}, free=True),
    'javascript.register': Route('execute', {'source': 'export const a = 1'}, needs='code',
                               free=True),
    'javascript.unregister': Route('execute', again=GONE, needs='code'),
    'exec': Route('execute', about(command='cat f'), shows=5),
    'exec.stream': Route('execute', about(command='cat f'), shows=5),
    'run_code.stream': Route('execute', about(code='cat f', language='bash'), shows=5),
    'keys.list': Route('admin'),
    'keys.create': Route('admin', {'name': 'made', 'scopes': ['read']}, TAKEN),
    'keys.revoke': Route('admin', again=GONE, needs='key'),
    'execs.list': Route('read', needs='program'),
    'execs.get': Route('read', needs='program'),
    'execs.output': Route('read', needs='program', shows=5),
    'execs.attach': Route('execute', needs='program'),
    'execs.wait': Route('read', {'text': 'hello'}, needs='program', shows=0),
    'execs.stdin': Route('execute', {'data': 'x', 'close': True}, TAKEN, needs='program'),
    'execs.signal': Route('execute', {'signal': 18}, needs='program'),
    'execs.resize': Route('execute', {'cols': 100, 'rows': 20}, needs='terminal'),
    'execs.delete': Route('execute', again=GONE, needs='program'),
    'files.read': Route('read', about(path='f'), shows=5),
    'files.write': Route('execute', about(path='f', content='new')),
    'files.list': Route('read', about(path='.'), shows=1),
    'files.stat': Route('read', about(path='f')),
    'files.mkdir': Route('execute', about(path='a/b')),
    'files.move': Route('execute', about(path='f', to='d/f'), GONE),
    'files.remove': Route('execute', about(path='f'), GONE),
    'archive.download': Route('read'),
    'archive.upload': Route('execute', raw=bytes(1024)),
    'watch': Route('read', query='?path=d', endless=True),
    'Exec': Route('execute', {'open': {'command': 'cat f'}}, shows=5),
    'ExecStream': Route('execute', {'command': 'cat f'}, shows=5),
    'ExecSocket': Route('execute'),
    'ReadFile': Route('read', {'path': 'f'}, shows=5),
    'WriteFile': Route('execute',
                       raw=frame({'open': {'path': 'f'}}) + frame({'data': b64(b'new')})),
    'List': Route('read', {'parent': '.'}, shows=1),
    'Stat': Route('read', {'path': 'f'}),
    'Mkdir': Route('execute', {'path': 'a/b'}),
    'Remove': Route('execute', {'path': 'f'}, GONE),
    'Processes': Route('read', shows=4),
    'Signal': Route('execute', lambda s: {'pid': s.pid, 'signal': 18}, needs='process'),
    'Vitals': Route('read', {}, endless=True),
    'Archive': Route('read', {}),
    'Upload': Route('execute', raw=frame({'open': {}}) + frame({'chunk': b64(bytes(1024))})),
    'Watch': Route('read', {'path': 'd'}, endless=True),
}

TOOLS = {
    'sandbox_create': Row('lifecycle', lambda s: {'pool': 'host'}, free=True),
    'sandbox_exec': Row('execute', about(command='cat f'), shows=5),
    'sandbox_read_file': Row('read', about(path='f'), shows=5),
    'sandbox_write_file': Row('execute', about(path='f', content='new')),
    'sandbox_fork': Row('lifecycle', about(replicas=2), races=['conflict']),
    'sandbox_terminate': Row('lifecycle', about(), 'sandbox_not_found'),
    'sandbox_list': Row('read', lambda s: {}, free=True, shows=0),
    'sandbox_get': Row('read', about(), shows=0),
    'sandbox_list_files': Row('read', about(path='.'), shows=1),
    'sandbox_move_file': Row('execute', about(path='f', to='d/f'), 'path_not_found'),
    'sandbox_remove_file': Row('execute', about(path='f'), 'path_not_found'),
    'sandbox_pause': Row('lifecycle', about(), races=['conflict']),
    'sandbox_resume': Row('lifecycle', about(), races=['conflict']),
    'sandbox_set_timeout': Row('lifecycle', about(seconds=600)),
    'sandbox_processes': Row('read', about(), shows=4),
    'sandbox_signal': Row('execute', lambda s: {'sandbox': s.id, 'pid': s.pid, 'signal': 18},
                          needs='process'),
    'sandbox_exec_output': Row('read',
                               lambda s: {'sandbox': s.id, 'exec': s.exec, 'wait_for': 'hello'},
                               needs='program', shows=5),
    'sandbox_snapshot': Row('lifecycle', about(name='one'), races=['conflict']),
    'sandbox_restore': Row('lifecycle', lambda s: {'snapshot': s.snapshot}, needs='snapshot'),
    'sandbox_diff': Row('read', about(), races=['conflict'], shows=1),
}

VERBS = {
    'run': Verb(None, '-- cat /etc/hostname', usage=FAILED),
    'up': Verb('lifecycle', '-n made', FAILED, free=True),
    'inspect': Verb('read', '@{box}', shows=0),
    'ls': Verb('read', free=True, shows=0),
    'ps': Verb('read', '@{box}', shows=4),
    'top': Verb('read', '-1', free=True, shows=0),
    'events': Verb('read', free=True, shows=0),
    'exec': Verb('execute', '@{box} -- cat f', usage=FAILED, shows=5),
    'execs': Verb('read', '@{box}', needs='program', shows=0),
    'logs': Verb('read', '@{box} {ended}', needs='ended', shows=5),
    'attach': Verb('execute', '--no-stdin @{box} {ended}', needs='ended', usage=FAILED, shows=0),
    'wait': Verb('read', '@{box} {ended}', needs='ended', usage=FAILED, shows=0),
    'kill': Verb('execute', '-s 18 @{box} {runs}', needs='program'),
    'fs': Verb(None, '', USAGE, status=USAGE),
    'fs ls': Verb('read', '@{box}', shows=1),
    'fs stat': Verb('read', '@{box} f', shows=0),
    'fs read': Verb('read', '@{box} f', shows=5),
    'fs write': Verb('execute', '@{box} g'),
    'fs mkdir': Verb('execute', '@{box} a/b'),
    'fs rm': Verb('execute', '@{box} f', FAILED),
    'fs mv': Verb('execute', '@{box} f d/f', FAILED),
    'fs watch': Verb('read', '@{box} d', endless=True),
    'cp': Verb('read', '{box}:f -'),
    'net': Verb(None, '', USAGE, status=USAGE),
    'net show': Verb('read', '@{box}', shows=0),
    'net allow': Verb('admin', '@{box} example.org'),
    'net revoke': Verb('admin', '@{box}'),
    'forward': Verb('execute', '@{box} 8000'),
    'preview': Verb('execute', '@{box} 8000'),
    'fork': Verb('lifecycle', '-n kid @{box}', FAILED),
    'pause': Verb('lifecycle', '@{box}'),
    'resume': Verb('lifecycle', '@{box}'),
    'stop': Verb('lifecycle', '@{box}'),
    'down': Verb('lifecycle', '@{box}', FAILED),
    'diff': Verb('read', '@{box}', shows=1),
    'snapshot': Verb('read', free=True),
    'snapshot ls': Verb('read', free=True, shows=0),
    'snapshot create': Verb('lifecycle', '@{box}'),
    'snapshot restore': Verb('lifecycle', '-n back @{snapshot}', FAILED, needs='snapshot'),
    'snapshot rm': Verb('lifecycle', '@{snapshot}', FAILED, needs='snapshot'),
    'snapshot export': Verb('read', '@{snapshot} -', needs='snapshot'),
    'snapshot import': Verb('lifecycle', '@{archive}', needs='archive'),
    'inbox': Verb('read', free=True),
    'inbox ls': Verb('read', free=True),
    'inbox show': Verb('read', '@{question}', needs='question'),
    'inbox answer': Verb('admin', '@{question} yes', FAILED, needs='question'),
    'inbox cancel': Verb('execute', '@{question}', FAILED, needs='question'),
    'inbox watch': Verb('read', needs='question', endless=True),
    'inbox approve': Verb('admin', '@{asked}', FAILED, needs='approval'),
    'inbox deny': Verb('admin', '@{asked}', FAILED, needs='approval'),
    'inbox approvals': Verb('admin', shows=0),
    'inbox revoke': Verb('admin', '@{asked}', FAILED, needs='approval approved'),
    'conversations': Verb('read', free=True),
    'conversations ls': Verb('read', free=True),
    'conversations new': Verb('execute', '--title made prompt', free=True),
    'conversations show': Verb('read', '@{talk}', needs='talk'),
    'conversations send': Verb('execute', '--key one @{talk} x', needs='talk'),
    'conversations queue': Verb('read', '@{talk}', needs='talk'),
    'conversations unqueue': Verb('execute', '{talk} @{message}', FAILED, needs='talk message'),
    'conversations retry': Verb('execute', '{talk} @{message}', needs='talk message'),
    'conversations history': Verb('read', '@{talk}', needs='talk'),
    'conversations cancel': Verb('execute', '@{talk}', needs='talk'),
    'conversations flags': Verb('read', '@{talk}', needs='talk'),
    'conversations set': Verb('read', '@{talk}', needs='talk'),
    'conversations login': Verb('execute', '@{talk} none', FAILED, status=FAILED, needs='talk'),
    'conversations archive': Verb('execute', '@{talk}', needs='talk'),
    'conversations rm': Verb('execute', '@{talk}', FAILED, needs='talk'),
    'conversations restore': Verb('execute', '@{talk}', FAILED, needs='talk trash'),
    'agent': Verb(None, '', 2, status=2),
    'agent acp': Verb('read', 'nobody', FAILED, status=FAILED, free=True),
    'js': Verb('execute', '{peers}/sum.js', free=True),
    'ws': Verb('read', free=True),
    'ws ls': Verb('read', free=True),
    'ws create': Verb('lifecycle', 'made', FAILED, free=True),
    'ws attach': Verb('lifecycle', '@of-stage {fresh}', FAILED, needs='workspace'),
    'ws commit': Verb('lifecycle', '@of-stage', needs='workspace attached'),
    'ws log': Verb('read', '@of-stage', needs='workspace'),
    'ws diff': Verb('read', '@of-stage', needs='workspace'),
    'ws revert': Verb('lifecycle', '@of-stage {revision}', needs='workspace'),
    'ws fork': Verb('lifecycle', '@of-stage made', FAILED, needs='workspace'),
    'ws gc': Verb('admin'),
    'ws import': Verb('lifecycle', '@of-stage /etc/skel', needs='workspace'),
    'ws export': Verb('read', '@of-stage -', needs='workspace'),
    'ws apply': Verb('read', '@of-stage --yes --to {folder}', needs='workspace'),
    'ws verify': Verb('read', '@of-stage', needs='workspace'),
    'ws rm': Verb('lifecycle', '@of-stage', FAILED, needs='workspace'),
    'web': Verb('any'),
    'audit': Verb(None, usage=FAILED),
    'audit tail': Verb(None, '-n 1', usage=FAILED, shows=0),
    'audit show': Verb(None, 'of-verbs', 3, status=3, usage=FAILED),
    'audit verify': Verb(None, '/nowhere', 3, status=3, usage=FAILED),
    'secret': Verb('admin'),
    'secret ls': Verb('admin', shows=0),
    'secret set': Verb('admin', 'of-verbs', FAILED, status=FAILED),  # reads nothing
    'secret rm': Verb('admin', '@of-verbs', FAILED, status=FAILED),
    'build': Verb(None, '{folder}/Tool'),
    'images': Verb(None),
    'images ls': Verb(None),
    'images import': Verb(None, '{folder} of-verbs'),
    'images pull': Verb(None, None),
    'images inspect': Verb(None, '@of-verbs', needs='image'),
    'images rm': Verb(None, '@of-verbs', FAILED, needs='image'),
    'images prune': Verb(None),
    'mcp': Verb(None),
    'serve': Verb(None, '--listen none', FAILED, status=FAILED),  # there is one
    'hub': Verb(None),
    'hub status': Verb(None),
    'hub stop': Verb(None, None),  # test_hub_verbs.py ends one
    'hub logs': Verb(None, '', FAILED, status=FAILED),  # none has started by itself
    'auth': Verb(None, '', USAGE, status=USAGE),
    'auth token': Verb(None),
    'auth keys': Verb('admin'),
    'auth login': Verb(None, '', USAGE, status=USAGE),
    'auth whoami': Verb('any'),
    'auth keys ls': Verb('admin'),
    'auth keys create': Verb('admin', '-n made -s read', FAILED),
    'auth keys revoke': Verb('admin', '@of-stage', FAILED, needs='key'),
    'agent presets': Verb(None),
    'agent run': Verb(None, 'of-nothing -d', FAILED, status=FAILED, usage=FAILED),
    'agent add': Verb(None, 'of-nothing', FAILED, status=FAILED),
    'agent ls': Verb(None),
    'agent diff': Verb(None, 'of-nothing', FAILED, status=FAILED),
    'agent apply': Verb(None, 'of-nothing', FAILED, status=FAILED),
    'agent rm': Verb(None, 'of-nothing', FAILED, status=FAILED),
    'agent doctor': Verb(None, 'gemini', VERDICT, status=VERDICT),
    'agent login': Verb(None, 'of-nothing', FAILED, status=FAILED),
    'agent logout': Verb(None, 'of-nothing', FAILED, status=FAILED),
    'agent update': Verb(None, 'of-nothing', FAILED, status=FAILED),
    'config': Verb(None),
    'config check': Verb(None),
    'config show': Verb(None),
    'config schema': Verb(None),
    'why': Verb(None, 'sandbox.exec'),
    'policy': Verb(None),
    'policy actions': Verb(None, 'files.*'),
    'init': Verb(None, 'of-nothing', USAGE, status=USAGE),
    'shell': Verb(None),  # with nothing on standard input
    'doctor': Verb(None),
    'self-check': Verb(None),
    'version': Verb(None),
    'help': Verb(None),
    'completion': Verb(None, 'zsh'),
}
