"""The revisions of workspaces: log, diff, revert and fork, over REST, MCP and the command line."""

import copy
import difflib
import json
import os
import subprocess

import pytest

from rest import Failed, fails
from test_hub_cli import Hub as Cli
from test_serve import Session
from test_workspaces import hub  # noqa: F401, a fixture

LINES = [f'line {i}\n' for i in range(1, 41)]


def log(hub, name, query=''):
    return hub.call('GET', f'/v1/workspaces/{name}/log{query}')


def diff(hub, name, query=''):
    return hub.call('GET', f'/v1/workspaces/{name}/diff{query}')


def stored(hub):
    """How many objects there are."""
    return sum(len(files) for _, _, files in os.walk(hub.folder + '/objects'))


def made(hub, name, *scripts):
    """A workspace with a revision by each script; the ids of all, the first one's before."""
    ids = [hub.new(name)['revision']]
    sandbox = hub.open(name)
    for i, script in enumerate(scripts):
        hub.sh(sandbox, script)
        ids.append(hub.commit(name, message=f'change {i + 1}')['revision'])
    hub.finish(sandbox)
    return ids


def test_the_log_has_pages(hub):
    ids = made(hub, 'logged', *[f'echo {i} > f{i}' for i in range(5)])
    whole = log(hub, 'logged')['revisions']
    assert [r['revision'] for r in whole] == ids[::-1]
    assert [r['number'] for r in whole] == [6, 5, 4, 3, 2, 1]
    assert [r.get('message') for r in whole] == [f'change {i}' for i in (5, 4, 3, 2, 1)] + [None]
    assert [r.get('parent') for r in whole] == ids[-2::-1] + [None]
    assert (whole[0]['files'], whole[0]['bytes'], 'sandbox' in whole[0]) == (5, 10, True)
    assert 'sandbox' not in whole[-1] and whole[-1]['files'] == 0
    first = log(hub, 'logged', '?limit=4')
    hub.post('/v1/workspaces/logged/revert', revision=ids[1])  # shifts nothing of the next page
    rest = log(hub, 'logged', f'?limit=4&cursor={first["next_cursor"]}')
    assert [r['number'] for r in first['revisions'] + rest['revisions']] == [6, 5, 4, 3, 2, 1]
    assert 'next_cursor' not in rest
    fails(400, 'invalid_input', log, hub, 'logged', '?cursor=x')


def test_diff_tells_every_kind_of_change(hub):
    made(hub, 'kinds', r'''
echo 1 > same; echo 1 > changed; echo 1 > gone; echo 1 > mode; ln -s a link; mkdir -p d/e
echo 1 > d/e/deep; echo 1 > to-dir; printf 'a\0b' > binary; echo 1 > "$(printf 'n\377')"
''', r'''
touch same; echo 2 > changed; rm gone; chmod 755 mode; ln -sfn b link; echo 2 > d/e/deep
rm to-dir; mkdir to-dir; echo > to-dir/f; printf 'a\0c' > binary; echo 2 > "$(printf 'n\377')"
mkdir empty; printf 2 > new
''')
    told = diff(hub, 'kinds', '?content=true')
    assert not told['truncated']
    assert [(c['change'], c['type'], c['path']) for c in told['changes']] == [
        ('changed', 'file', 'binary'), ('changed', 'file', 'changed'),
        ('changed', 'file', 'd/e/deep'), ('added', 'directory', 'empty'),
        ('removed', 'file', 'gone'), ('changed', 'symlink', 'link'), ('changed', 'file', 'mode'),
        ('added', 'file', 'new'), ('changed', 'file', 'n\ufffd'), ('removed', 'file', 'to-dir'),
        ('added', 'directory', 'to-dir'), ('added', 'file', 'to-dir/f')]
    of = {c['path']: c for c in told['changes']}
    assert of['changed']['text'] == '@@ -1,1 +1,1 @@\n-1\n+2\n'
    assert of['binary']['binary'] and 'text' not in of['binary']
    assert (of['mode']['mode_before'], of['mode']['mode']) == (0o644, 0o755)
    assert 'text' not in of['mode']
    assert of['n\ufffd']['path_bytes'] == 'bv8=' and 'path_bytes' not in of['mode']
    assert of['new']['text'] == '@@ -0,0 +1,1 @@\n+2\n\\ No newline at end of file\n'
    assert '+b' in of['link']['text']
    assert len(diff(hub, 'kinds', '?limit=3')['changes']) == 3
    assert diff(hub, 'kinds', '?limit=3')['truncated']
    assert not any('text' in c for c in diff(hub, 'kinds')['changes'])


def test_renames(hub):
    """By content: not of empty files, links or what was edited, too; names that stay go first."""
    made(hub, 'moved', r'''
seq 9 > old; chmod 755 old; echo twin > a1; echo twin > keep; echo twin > z9; : > empty
ln -s x link
seq 1000 > edited; seq 200000 > large; echo stays > copied; mkdir dir; echo in > dir/f
echo odd > "$(printf 'o\377')"; echo twice > twice
''', r'''
mv old new; chmod 644 new; mkdir there; mv keep there/keep; mv a1 b1; mv empty void; mv link other
mv edited more; echo 1 >> more; mv large there/big; cp copied copy; mv dir folder
mv "$(printf 'o\377')" even; cp twice one; mv twice two; rm z9
''')
    told = diff(hub, 'moved', '?content=true')['changes']
    moved = {c['path']: c['path_before'] for c in told if c['change'] == 'renamed'}
    assert moved == {'new': 'old', 'there/keep': 'keep', 'b1': 'a1', 'there/big': 'large',
                     'folder/f': 'dir/f', 'even': 'o\ufffd', 'one': 'twice'}
    of = {c['path']: c for c in told}
    assert (of['new']['mode_before'], of['new']['mode']) == (0o755, 0o644)
    assert of['even']['path_before_bytes'] == 'b/8=' and 'path_before_bytes' not in of['new']
    assert not any('text' in of[path] for path in moved)
    rest = [(c['change'], c['path']) for c in told if c['change'] != 'renamed']
    assert rest == [('added', 'copy'), ('removed', 'dir'), ('removed', 'edited'),
                    ('removed', 'empty'), ('added', 'folder'), ('removed', 'link'),
                    ('added', 'more'), ('added', 'other'), ('added', 'there'), ('added', 'two'),
                    ('added', 'void'), ('removed', 'z9')]
    plain = diff(hub, 'moved', '?renames=false')['changes']
    assert len(plain) == len(told) + len(moved)
    assert not any(c['change'] == 'renamed' or 'path_before' in c for c in plain)
    assert ({(c['change'], c['path']) for c in plain} >=
            {('added', new) for new in moved} | {('removed', old) for old in moved.values()})


def test_against_the_sandbox(hub):
    """What no revision has yet, as the next one will tell it; nothing of it is kept."""
    made(hub, 'live', 'echo 1 > f; echo secret > .env; seq 1000 > moves; mkdir d; echo 1 > d/g')
    fails(409, 'conflict', diff, hub, 'live', '?live=true')  # no sandbox writes to it
    sandbox = hub.open('live')
    assert diff(hub, 'live', '?live=true')['changes'] == []
    hub.sh(sandbox, 'echo 2 > f; rm -r d; mv moves to; echo now > .env; printf "%3000000d" > big')
    told = diff(hub, 'live', '?live=true&content=true')
    tip = log(hub, 'live')['revisions'][0]['revision']
    assert (told['from'], told['to']) == (tip, 'live')
    assert [(c['change'], c['path']) for c in told['changes']] == [
        ('added', 'big'), ('removed', 'd'), ('removed', 'd/g'), ('changed', 'f'), ('renamed', 'to')]
    assert told['changes'][3]['text'] == '@@ -1,1 +1,1 @@\n-1\n+2\n'
    fails(400, 'invalid_input', diff, hub, 'live', f'?live=true&to={tip}')
    since = diff(hub, 'live', f'?live=true&from={log(hub, "live")["revisions"][-1]["revision"]}')
    assert [c['path'] for c in since['changes']] == ['big', 'f', 'to']
    assert log(hub, 'live')['revisions'][0]['revision'] == tip
    hub.sh(sandbox, 'echo 3 >> f')  # it goes on
    hub.finish(sandbox)
    last = diff(hub, 'live', '?content=true')
    assert [(c['change'], c['path']) for c in last['changes']] == [
        (c['change'], c['path']) for c in told['changes']]
    assert hub.call('GET', '/v1/workspaces/live/verify')['damaged'] == 0


def test_hunks_are_what_patch_reads(hub, tmp_path):
    new = LINES[:4] + ['inserted\n'] + LINES[4:20] + LINES[23:38] + ['last\n']
    made(hub, 'patched', f'cat > f << END\n{"".join(LINES)}END',
         f'cat > f << END\n{"".join(new)}END')
    text = diff(hub, 'patched', '?content=true')['changes'][0]['text']
    ours = [line for line in text.split('\n') if not line.startswith('@@')]
    theirs = [line for line in ''.join(difflib.unified_diff(LINES, new)).split('\n')
              if not line.startswith(('@@', '---', '+++'))]
    assert ours == theirs
    (tmp_path / 'f').write_text(''.join(LINES))
    subprocess.run(['patch', '-s', '-p0'], cwd=tmp_path, input=f'--- f\n+++ f\n{text}'.encode(),
                   check=True)
    assert (tmp_path / 'f').read_text() == ''.join(new)


def test_large_diffs_are_bounded(hub):
    made(hub, 'large', 'for i in $(seq 40); do seq 10000 > s$i; done; seq 200000 > huge',
         'for i in $(seq 40); do seq 2 9000 > s$i; done; seq 200001 > huge')
    told = diff(hub, 'large', '?content=true')['changes']
    assert len(told) == 41 and told[0]['path'] == 'huge' and told[0]['cut']
    assert sum(len(c.get('text', '')) for c in told) <= 1 << 20
    assert not told[1]['cut'] and told[-1]['cut']


def test_revisions_are_named_by_their_first_digits(hub):
    ids = made(hub, 'digits', 'echo 1 > f', 'echo 2 > f', 'echo 3 > f')
    told = diff(hub, 'digits', f'?from={ids[1][:10]}&to={ids[3]}&content=true')
    assert (told['from'], told['to']) == (ids[1], ids[3])
    assert told['changes'][0]['text'].endswith('-1\n+3\n')
    back = diff(hub, 'digits', f'?from={ids[3]}&to={ids[1]}&content=true')
    assert back['changes'][0]['text'].endswith('-3\n+1\n')
    assert diff(hub, 'digits', f'?to={ids[0]}')['changes'] == []
    other = made(hub, 'other-digits', 'echo not yours > f')
    for unknown in (other[1], 'f' * 64, 'zzzz', ids[1] + '0'):
        with pytest.raises(Failed) as told:
            diff(hub, 'digits', f'?to={unknown}')
        assert told.value.status in (400, 404)


def test_revert_adds_to_the_history(hub):
    ids = made(hub, 'reverted', 'echo old > f; mkdir d; echo 1 > d/g', 'rm -r d; echo new > f')
    back = hub.post('/v1/workspaces/reverted/revert', revision=ids[1], message='the old one')
    assert back['files'] == 3
    whole = log(hub, 'reverted')['revisions']
    assert [r['revision'] for r in whole] == [back['revision']] + ids[::-1]
    assert whole[0]['message'] == 'the old one'
    assert diff(hub, 'reverted', f'?from={ids[1]}')['changes'] == []
    again = hub.post('/v1/workspaces/reverted/revert', revision=ids[1])
    assert again['revision'] == back['revision']  # its files are these already
    sandbox = hub.open('reverted')
    assert hub.sh(sandbox, 'cat f d/g') == 'old\n1\n'
    fails(409, 'conflict', hub.post, '/v1/workspaces/reverted/revert', revision=ids[2])
    hub.finish(sandbox)
    fails(404, 'not_found', hub.post, '/v1/workspaces/reverted/revert', revision='0' * 64)


def test_forks_share_what_is_stored(hub):
    ids = made(hub, 'source', 'head -c 3000000 /dev/urandom > big; echo 1 > f', 'echo 2 > f')
    before = stored(hub)
    fork = hub.post('/v1/workspaces/source/fork', fork='fork-tip')
    older = hub.post('/v1/workspaces/source/fork', fork='fork-old', revision=ids[1])
    assert stored(hub) == before
    assert fork['revision'] == ids[2] and older['revision'] == ids[1]
    assert [r['revision'] for r in log(hub, 'fork-old')['revisions']] == ids[1::-1]
    sandbox, other = hub.open('fork-old'), hub.open('fork-tip')
    assert hub.sh(sandbox, 'cat f; stat -c %s big; echo fork > f') == '1\n3000000\n'
    hub.finish(sandbox)
    assert hub.sh(other, 'cat f') == '2\n'
    hub.finish(other, '?discard=true')
    assert hub.of('source')['revision'] == ids[2]
    assert log(hub, 'fork-old')['revisions'][0]['number'] == 3
    fails(409, 'conflict', hub.post, '/v1/workspaces/source/fork', fork='fork-old')
    hub.call('DELETE', '/v1/workspaces/source')
    sandbox = hub.open('fork-old')
    assert hub.sh(sandbox, 'cat f; stat -c %s big') == 'fork\n3000000\n'
    hub.finish(sandbox)
    assert diff(hub, 'fork-old', f'?from={ids[0]}')['changes'][0]['path'] == 'big'
    fails(404, 'not_found', diff, hub, 'fork-old', f'?from={ids[2]}')


def test_workspaces_of_another_owner(hub):
    """Who sees everything may have anybody's files, but hands nobody's to somebody else."""
    alice = copy.copy(hub)
    alice.cached = hub.post('/v1/keys', name='alice', scopes=['read', 'execute', 'lifecycle'])[
        'token']
    made(alice, 'hers', 'echo hers > f')
    hub.post('/v1/workspaces/hers/fork', fork='mine')
    her_sandbox = alice.create()
    for mode in ('write', 'copy'):
        told = fails(403, 'forbidden', hub.post, '/v1/workspaces/mine/attach',
                     sandbox=her_sandbox, mode=mode)
        assert 'different owners' in told['cause']
    alice.post('/v1/workspaces/hers/attach', sandbox=her_sandbox)
    alice.finish(her_sandbox)
    for name in ('hers', 'mine'):
        sandbox = hub.open(name)
        assert hub.sh(sandbox, 'cat f') == 'hers\n'
        hub.finish(sandbox)
    fails(404, 'not_found', log, alice, 'mine')
    hub.call('DELETE', '/v1/keys/alice')


@pytest.fixture(scope='module')
def cli(me, tmp_path_factory):
    with Cli(me, tmp_path_factory.mktemp('ws'), '--listen', 'none', '--pool', '1') as shared:
        yield shared


def test_the_command_line(cli):
    cli.ok('ws', 'create', 'cli')
    box = cli.ok('up', '--workspace', 'cli').decode().strip()
    cli.ok('exec', box, '--', 'sh', '-c', r'echo 1 > f; echo > "$(printf "a\033[31m")"')
    one = cli.ok('ws', 'commit', 'cli', '-m', 'the \033[31mfirst').decode().strip()
    cli.ok('exec', box, '--', 'sh', '-c', 'echo 2 > f; rm a*')
    cli.ok('down', box)
    assert [r['number'] for r in cli.json('ws', 'log', 'cli')] == [3, 2, 1]
    assert len(cli.json('ws', 'log', '-n', '2', 'cli')) == 2
    shown = cli.ok('ws', 'log', 'cli') + cli.ok('ws', 'diff', '-p', 'cli')
    assert b'\x1b' not in shown and one[:12].encode() in shown
    assert b'\nC f\n@@ -1,1 +1,1 @@\n-1\n+2\n' in shown
    assert cli.ok('ws', 'diff', 'cli', one[:8], one[:8]) == b''
    assert cli.ok('ws', 'fork', 'cli', 'kid', '-r', one[:8]) == b'kid\n'
    assert cli.json('ws', 'log', 'kid')[0]['revision'] == one
    back = cli.ok('ws', 'revert', 'cli', one[:8]).decode().strip()
    assert cli.ok('ws', 'diff', 'cli', one, back) == b''
    assert cli.json('ws', 'log', 'cli')[0]['message'] == f'Revert to {one[:12]}'
    cli.fails(125, 'has no revision', 'ws', 'revert', 'cli', 'beef')
    cli.fails(2, '', 'ws', 'diff', 'cli', 'a', 'b', 'c')


def tool(hub, session, tool_name, /, **arguments):
    with hub.wire() as wire:
        session.call(wire, tool_name, **arguments)
        return session.result(wire)


def test_the_tools(hub):
    ids = made(hub, 'tools', 'echo 1 > f', 'echo 2 > f')
    session = Session(hub, '/mcp?tools=workspace')
    log_text = tool(hub, session, 'workspace_log', workspace='tools', limit=2)
    page = json.loads(log_text['content'][0]['text'])
    assert [r['revision'] for r in page['revisions']] == ids[:0:-1] and page['next_cursor']
    diff_text = tool(hub, session, 'workspace_diff', workspace='tools', content=True)
    changes = json.loads(diff_text['content'][0]['text'])['changes']
    assert changes[0]['text'] == '@@ -1,1 +1,1 @@\n-1\n+2\n'
    back = tool(hub, session, 'workspace_revert', workspace='tools', revision=ids[1])
    assert back['structuredContent'] == {'name': 'tools', 'revision': hub.of('tools')['revision']}
    fork = tool(hub, session, 'workspace_fork', workspace='tools', name='tools-2', revision=ids[2])
    assert fork['content'][0]['text'] == 'Created workspace tools-2'
    assert fork['structuredContent'] == {'name': 'tools-2', 'revision': ids[2]}
    taken = json.loads(tool(hub, session, 'workspace_create', name='tools')['content'][0]['text'])
    assert taken['code'] == 'name_taken' and not taken['retryable'], taken
    assert 'take another name' in taken['remediation'] and 'wait' not in taken['remediation']
    wrong = tool(hub, session, 'workspace_revert', workspace='tools', revision='f' * 64)
    assert wrong['isError'] and 'has no revision' in wrong['content'][0]['text']
