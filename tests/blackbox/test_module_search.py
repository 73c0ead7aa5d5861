"""What search_modules finds among the tools of real servers: tools_of_others/tools.jsonl has what
they say of themselves, with their packages and licences.

The requests were written before the ranking. TUNED are those that one may look at while changing
it; UNSEEN were put aside, and are there to say whether it was made for the others."""

import json
import os

import pytest

import host
from modules import approve, home, server
from rest import Rest
from test_code_modules import Model
from test_hub_cli import Hub as Base

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'tools_of_others')
# Lists the tools of the server that its argument names.
SCRIPT = r'''
def schema(t):
    return {'type': 'object', 'properties': {
        k: {'description': v} for k, v in t.pop('arguments').items()}}

def mine():
    at = ''
    for line in open(sys.argv[1], encoding='utf-8'):
        t = json.loads(line)
        at = t.get('server', at)
        if at == sys.argv[2] and 'name' in t:
            yield {**t, 'inputSchema': schema(t)}

TOOLS[:] = list(mine())
main()
'''
TUNED = {
    'convert kilometers to miles': 'calc/convert',
    'kill a process': 'desktop/kill_process desktop/force_terminate',
    'click a button on a web page': 'browser/browser_click',
    'what changed in the working tree': 'git/git_status git/git_diff',
    'open a pull request': 'github/create_pull_request',
    'send a message to a channel': 'slack/slack_post_message',
    'find out the driving distance between two cities':
        'maps/maps_distance_matrix maps/maps_directions',
    'who last changed this line': 'git/git_blame',
    'take a picture of the page': 'browser/browser_take_screenshot',
    'decode a JWT': 'calc/jwt_decode',
    'rename a file': 'files/move_file desktop/move_file',
    'list the files in a folder': 'files/list_directory desktop/list_directory'
                                  ' files/list_directory_with_sizes files/directory_tree',
    'comment on an issue': 'github/add_issue_comment',
    'add a page to notion': 'notion/API-post-page',
    'look something up on the internet': 'tavily/tavily_search tavily/tavily_research',
    'compare two version numbers': 'calc/semver',
    'how many words are in this text': 'calc/count',
    'documentation of a library': 'context7/query-docs context7/resolve-library-id',
    'run a SQL query': 'postgres/query',
    'download images from figma': 'figma/download_figma_images',
    'undo the last commit': 'git/git_reset',
    'save uncommitted changes for later': 'git/git_stash',
    'when does this cron expression run next': 'calc/cron_parse',
    'make a new directory': 'files/create_directory desktop/create_directory',
    'fill in a form': 'browser/browser_fill_form',
    'add the numbers 2 and 3': 'everything/get-sum calc/math',
    'sha256 of a string': 'calc/hash',
    'check my JavaScript code for style errors': 'eslint/lint-files',
    'reply in a slack thread': 'slack/slack_reply_to_thread',
    'merge a pull request': 'github/merge_pull_request',
}
UNSEEN = {
    'generate a random password': 'calc/random',
    'what is the weekday of 2026-03-01': 'calc/date calc/datetime',
    'start a long-running shell command': 'desktop/start_process',
    'read a PDF': 'desktop/read_file',
    'search for text in files': 'desktop/start_search files/search_files',
    'clone a repository': 'git/git_clone',
    'list open issues of a repository': 'github/list_issues github/search_issues',
    'translate an address into coordinates': 'maps/maps_geocode',
    'emoji reaction to a message': 'slack/slack_add_reaction',
    'remember a fact about a person': 'memory/add_observations memory/create_entities',
    'create a merge request': 'gitlab/create_merge_request',
    'turn hex color into rgb': 'calc/color',
    'is this valid YAML': 'calc/format_validate',
    'encode text as base64': 'calc/base64 calc/encode',
    'switch to another branch': 'git/git_checkout',
    'copy a commit onto my branch': 'git/git_cherry_pick',
    'go back to the previous page': 'browser/browser_navigate_back',
    'see the network requests of the page':
        'browser/browser_network_requests browser/browser_network_request',
    'crawl a website': 'tavily/tavily_crawl',
    'size and modification date of a file': 'files/get_file_info desktop/get_file_info'
                                            ' files/list_directory_with_sizes',
    'replace a piece of text in a file': 'files/edit_file desktop/edit_block',
    'which people are in the workspace': 'slack/slack_get_users notion/API-get-users',
    'check whether an IP is in a subnet': 'calc/ip',
    'compress a file': 'everything/gzip-file-as-resource',
    'restaurants near me': 'maps/maps_search_places',
    'delete a block': 'notion/API-delete-a-block',
    'history of commits by an author': 'git/git_log github/list_commits',
    'select from a drop-down list': 'browser/browser_select_option',
    'match a regular expression': 'calc/regex',
    'upload a document to a web form': 'browser/browser_file_upload',
}


class Hub(Base, Rest):
    pass


def others():
    """Each server's tools."""
    found = {}
    with open(os.path.join(FOLDER, 'tools.jsonl'), encoding='utf-8') as f:
        for line in f:
            one = json.loads(line)
            if 'server' in one:
                tools = found[one['server']] = []
            else:
                tools.append(one['name'])
    return found


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    servers = {name: server(SCRIPT, os.path.join(FOLDER, 'tools.jsonl'), name,
                            sandbox={'read': [FOLDER]}) for name in others()}
    folder = home(me, tmp_path_factory.mktemp('search'), **servers)
    with Hub(me, folder, '--listen', '127.0.0.1:0') as shared:
        for name in servers:
            approve(shared, name)
            shared.post(f'/v1/modules/{name}/test')
            approve(shared, name)  # the quarantined, too
        yield shared
    before.check()


def ranks(hub, requests):
    """Of each request at which place a right tool was; None: not among ten."""
    got = {}
    for query, right in requests.items():
        found = hub.call('GET', f'/v1/tools?query={query.replace(" ", "%20")}')['tools']
        names = [f"{t['module']}/{t['name']}" for t in found]
        got[query] = next((i for i, n in enumerate(names, 1) if n in right.split()), None)
    return got


@pytest.mark.parametrize('which', ['TUNED', 'UNSEEN'])
def test_the_right_tool_is_among_the_first_three(hub, which):
    tools = others()
    requests = globals()[which]
    known = {f'{s}/{t}' for s in tools for t in tools[s]}
    assert len(known) >= 200 and len(requests) == 30
    assert not {r for right in requests.values() for r in right.split()} - known
    got = ranks(hub, requests)
    first, three = (sum(r is not None and r <= n for r in got.values()) for n in (1, 3))
    print(f'\n{which}: first {first}, in the first three {three}, of 30; '
          f'not: {[(q, r) for q, r in got.items() if not r or r > 3]}')
    assert three >= {'TUNED': 28, 'UNSEEN': 25}[which], got


def test_what_a_caller_may_not_see_decides_nothing(me, tmp_path):
    """The same answers, whether or not there are servers that its profile does not have."""
    def tools(*pairs):
        return f'TOOLS[:] = [tool(n, d) for n, d in {list(pairs)!r}]\nmain()'
    seen = server(tools(('one', 'Reads a report.'), ('two', 'Reads a file of a report, twice.'),
                        ('three', 'Writes a file.')))
    # makes "report" the commonest word of all
    hidden = server(tools(*[(f'report-{i}', 'report report report') for i in range(40)]))
    profiles = {'profiles': {'narrow': {'mcpServers': ['seen']}}}
    answers = []
    for i, more in enumerate(({}, {'hidden': hidden})):
        folder = tmp_path / str(i)
        folder.mkdir()
        os.chown(folder, me.uid, me.uid)
        with Hub(me, home(me, folder, profiles, seen=seen, **more),
                 '--listen', '127.0.0.1:0') as one:
            for name in 'seen', *more:
                approve(one, name)
            found = one.call('GET', '/v1/tools?query=report')['tools']
            assert {t['module'] for t in found} == {*more} or not more
            model = Model(one, '/mcp?tools=code&profile=narrow')
            answers.append([model.texts('search_modules', query=q)
                            for q in ('report file', 'report', 'reads')])
    assert answers[0] == answers[1] and 'host:mcp-seen' in answers[0][0][0]
