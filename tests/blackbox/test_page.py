"""The web page in Debian's Chromium, against a real hub and real sandboxes. What a page must never
do is looked for behind every test: violations of its policy, errors, requests elsewhere.
Screenshots are in build/page."""

import json
import os
import shutil
import subprocess
import threading
import unicodedata

import pytest

import host
from approval import ASKED, asks, pending
from client import until
from rest import Failed, Rest
from who import BUILD, HERE, NEW_NODE

PAGE = os.path.join(os.path.dirname(HERE), 'page')
SHOTS = os.path.join(BUILD, 'page')
SIZES = {'tablet': (820, 1180), 'phone': (390, 844)}
VIEWS = ['/inbox', '/c', '/s', '/m', '/audit', '/policy', '/health', '/settings']


class Chrome:
    """One browser; each page of another name is another person's, "name/2" a tab beside "name"."""

    def __init__(self, hub):
        program = shutil.which('chromium-headless-shell') or shutil.which('chromium')
        packages = os.path.join(PAGE, 'node_modules')
        if not program or not os.path.isdir(packages) or not os.path.exists(NEW_NODE):
            pytest.skip('Chromium, Node.js or packages are missing: scripts/deps test')
        os.makedirs(SHOTS, exist_ok=True)
        self.hub, self.n, self.answers = hub, 0, {}
        self.proc = subprocess.Popen([NEW_NODE, 'driver.mjs', program, SHOTS], cwd=PAGE, text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     env={**hub.who.env, 'HOME': hub.who.env['TMPDIR'],
                                          'PATH': os.environ['PATH'],
                                          'HOLT_TEST_RUN': os.environ.get('HOLT_TEST_RUN', '')})
        assert self.proc.stdout.readline() == 'ready\n'
        self.arrived = threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.proc.stdout:
            message = json.loads(line)
            with self.arrived:
                self.answers[message['id']] = message
                self.arrived.notify_all()
        with self.arrived:
            self.answers[None] = True
            self.arrived.notify_all()

    def send(self, page, code, arg=None):
        self.n += 1
        self.proc.stdin.write(json.dumps({'id': self.n, 'page': page, 'code': code, 'arg': arg})
                              + '\n')
        self.proc.stdin.flush()
        return self.n

    def wait(self, number):
        with self.arrived:
            assert self.arrived.wait_for(lambda: number in self.answers or None in self.answers,
                                         60), 'the browser does not answer'
            message = self.answers.pop(number)
        assert 'error' not in message, message['error']
        return message['value']

    def run(self, page, code, arg=None):
        return self.wait(self.send(page, code, arg))

    def enter(self, page):
        done = self.hub.who.run('web', env=self.hub.env, text=True)
        assert done.returncode == 0, done
        self.run(page, '''
            await page.goto(arg);
            await page.waitForSelector('nav.rail');
            if (page.url().includes('#'))
                throw new Error('the code stays in the address');''', done.stdout.strip())
        return page

    def goto(self, page, path):
        self.run(page, 'await page.goto(arg); await page.waitForSelector("main h1");',
                 self.url(path))

    def url(self, path):
        return f'http://127.0.0.1:{self.hub.address[1]}{path}'

    def text(self, page, selector='main'):
        return self.run(page, 'return page.locator(arg).first().innerText();', selector)

    def shows(self, page, text, selector='main'):
        return until(lambda: text in (now := self.text(page, selector)) and now,
                     what=f'{text!r} on the page')

    def sins(self, page):
        return self.run(page, 'return tools.sins();')

    def close(self):
        self.proc.stdin.close()
        try:
            self.proc.wait(20)
        finally:
            self.proc.kill()
            self.proc.wait()
            self.proc.stdout.close()


@pytest.fixture(scope='module')
def hub(me, tmp_path_factory):
    before = host.Residue(me.trees)
    with Rest(me, asks(me, tmp_path_factory.mktemp('page')), '--listen', '127.0.0.1:0',
              '--preview', '127.0.0.1:0', '--pool', '1') as shared:
        shared.call('POST', '/v1/modules/of-stage/approve',
                    {'digest': shared.call('GET', '/v1/modules/of-stage')['digest']})
        yield shared
    before.check()


@pytest.fixture(scope='module')
def chrome(hub):
    if hub.raw('GET', '/', token=None).status == 501:
        pytest.skip('this holt was built without the page')
    running = Chrome(hub)
    running.enter('ann')
    yield running
    running.close()


@pytest.fixture
def page(chrome):
    """The page of one who is logged in; it must have done nothing wrong at the end."""
    chrome.run('ann', 'await page.setViewportSize({ width: 1440, height: 900 });')
    yield 'ann'
    assert chrome.sins('ann') == []


@pytest.fixture(scope='module')
def box(hub):
    made = hub.create(id='shown', labels={'for': 'people'})
    yield made
    hub.sweep(made)


class Asked:
    """Calls that wait for a person."""

    def __init__(self, hub, box, command='true', n=1):
        self.hub, self.wires = hub, []
        before = len([a for a in hub.call('GET', '/v1/approvals')['approvals']
                      if a['state'] == 'pending'])
        for _ in range(n):
            self.wires.append(hub.wire())
            body = json.dumps({'sandbox': box, 'command': f'{command} # {ASKED}'})
            self.wires[-1].send(hub.request('POST', '/v1/exec', body=body))
        self.all = pending(hub, before + n)

    def statuses(self):
        return [wire.reply().status for wire in self.wires]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for wire in self.wires:
            wire.close()
        until(lambda: not [a for a in self.hub.call('GET', '/v1/approvals')['approvals']
                           if a['state'] == 'pending'], what='the end of what waits')


# ---- the frame ------------------------------------------------------------------------------

def test_it_says_how_to_log_in(chrome):
    chrome.run('stranger', 'await page.goto(arg);', chrome.url('/s'))
    assert 'holt web' in chrome.text('stranger')
    assert chrome.run('stranger', 'return tools.axe();') == []
    # a link that is none
    chrome.run('stranger', 'await page.goto(arg);', chrome.url('/login#' + '0' * 64))
    chrome.shows('stranger', 'holt web prints another')
    assert [s for s in chrome.sins('stranger') if '401' not in s] == []


@pytest.mark.parametrize('view', VIEWS)
def test_every_view(chrome, hub, box, page, view):
    chrome.goto(page, view)
    chrome.run(page, 'await page.waitForSelector(arg);',
               'main :is(.row, .empty, .plot, fieldset, .list)')
    name = view.strip('/')
    for theme in ('dark', 'light'):
        chrome.run(page, 'await page.emulateMedia({ colorScheme: arg });', theme)
        assert chrome.run(page, 'return tools.axe();') == []
        chrome.run(page, 'await tools.shot(arg);', f'{name}-{theme}')
    for size, (width, height) in SIZES.items():
        chrome.run(page, '''
            await page.setViewportSize(arg[0]);
            await tools.shot(arg[1]);
            if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth))
                throw new Error('it is wider than the screen');''',
                   [{'width': width, 'height': height}, f'{name}-{size}'])


def test_keys_go_places(chrome, page):
    chrome.goto(page, '/s')
    for key, path in (('i', '/inbox'), ('m', '/m'), ('a', '/audit'), ('h', '/health'), ('s', '/s')):
        chrome.run(page, '''
            await page.evaluate(() => document.activeElement.blur());
            await page.keyboard.press('g');
            await page.keyboard.press(arg[0]);
            await page.waitForURL((url) => url.pathname === arg[1]);''', [key, path])
    # not while somebody types
    chrome.run(page, "await page.locator('[data-filter]').pressSequentially('gi');")
    assert chrome.run(page, 'return page.url();').endswith('/s?q=gi')
    chrome.run(page, "await page.fill('[data-filter]', '');")


def test_budgets():
    folder = os.path.join(BUILD, 'ui', 'page')
    if not os.path.isdir(folder):
        pytest.skip('this holt was built without the page')
    sizes = {name: os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)}
    (terminal,) = [name for name in sizes if name.startswith('terminal')]
    first = sum(size for name, size in sizes.items() if name != terminal)
    print(f'all but the terminal {first}, terminal {sizes[terminal]}')
    assert first <= 110_000 and sizes[terminal] <= 105_000


# ---- the inbox ------------------------------------------------------------------------------

def press(button):
    """A person's press of a button of the first card, once it stands still."""
    return f'''
        const button = page.locator('.card .{button}:not(:disabled)').first();
        await button.scrollIntoViewIfNeeded();
        await page.waitForTimeout(700);
        await button.click();'''


def test_an_approval_is_answered(chrome, hub, box, page):
    chrome.goto(page, '/inbox')
    chrome.shows(page, 'Nothing waits for you')
    with Asked(hub, box, 'echo one') as asked:
        text = chrome.shows(page, 'Allow once')
        assert 'sandbox.exec' in text and f'echo one # {ASKED}' in text and box in text
        assert asked.all[0]['digest'] in text
        assert chrome.run(page, 'return page.title();') == '(1) Holt'
        assert chrome.run(page, 'return tools.axe();') == []
        chrome.run(page, "await tools.shot('inbox-card');")
        chrome.run(page, press('allow'))
        assert asked.statuses() == [200]
    chrome.shows(page, 'Nothing waits for you')
    chrome.shows(page, 'approved')
    assert chrome.run(page, 'return page.title();') == 'Holt'


def test_two_race_and_one_wins(chrome, hub, box, page):
    bob = chrome.enter('bob')
    for who in (page, bob):
        chrome.goto(who, '/inbox')
    # neither answer goes to the hub before both have been given
    seen = '''
        const seen = [];
        await page.route('**/v1/approvals/*', async (route) => {
            globalThis.given = (globalThis.given ?? 0) + 1;
            while (globalThis.given < 2)
                await page.waitForTimeout(5);
            await route.continue();
        });
        page.on('response', (r) => r.request().method() === 'POST' && seen.push(r.status()));
        await page.waitForSelector('.card .deny:not(:disabled)');
        await page.waitForTimeout(700);
        await page.click(arg);
        await page.waitForFunction(() => !document.querySelector('.card'));
        page.removeAllListeners('response');
        await page.unrouteAll();
        return seen;'''
    with Asked(hub, box, 'echo race') as asked:
        for who in (page, bob):
            chrome.shows(who, 'Allow once')
        numbers = [chrome.send(page, seen, '.allow'), chrome.send(bob, seen, '.deny')]
        answers = [chrome.wait(n) for n in numbers]
        assert sorted(sum(answers, [])) == [200, 409], answers
        won = answers.index([200])
        assert asked.statuses() == [[200], [403]][won]
    for who in (page, bob):
        chrome.shows(who, ['approved', 'denied'][won], 'main .rows')
    chrome.run(bob, 'await page.context().close();')
    assert all('409' in s for s in chrome.sins(page))


def test_nothing_is_answered_by_accident(chrome, hub, box, page):
    chrome.goto(page, '/inbox')
    with Asked(hub, box, 'echo accident') as asked:
        # as soon as it appears, by Enter, by keys where the focus is elsewhere
        chrome.run(page, '''
            await page.waitForSelector('.card .allow');
            await page.click('.card .allow', { timeout: 300 }).catch(() => {});
            await page.waitForTimeout(700);
            await page.focus('.card .allow');
            await page.keyboard.press('Enter');
            await page.focus('main');
            await page.keyboard.press('Shift+A');
            await page.keyboard.press('Shift+D');''')
        # it moves under the pointer
        chrome.run(page, '''
            await page.evaluate(() => {
                const push = document.createElement('p');
                push.textContent = 'moves it';
                document.querySelector('main').prepend(push);
                document.querySelector('.card .allow').click();
                push.remove();
            });
            await page.waitForTimeout(300);''')
        assert [a['state'] for a in pending(hub)] == ['pending'] and len(asked.all) == 1
        # the control: its own key, with the focus on it
        chrome.run(page, '''
            await page.waitForTimeout(700);
            await page.focus('.card');
            await page.keyboard.press('Shift+D');''')
        assert asked.statuses() == [403]


def test_what_is_long_is_opened_first(chrome, hub, box, page):
    chrome.goto(page, '/inbox')
    with Asked(hub, box, 'echo ' + 'x\n' * 40) as asked:
        chrome.shows(page, '41 lines')
        assert chrome.run(page, "return page.isDisabled('.card .allow');")
        chrome.run(page, "await page.click('.card .fold summary');")
        chrome.run(page, press('allow'))
        assert asked.statuses() == [200]


def test_folds_and_numbers(chrome, page):
    """Each fold counts once; a number is shown as the digest has it."""
    call = '{"n": 9007199254740993, "list": [1.0, 2], "a": "%s", "b": "%s"}' % (('x' * 2000,) * 2)
    one = {'id': 'a1', 'state': 'pending', 'principal': 'p', 'action': 'sandbox.exec',
           'arguments': call, 'digest': '0' * 64, 'created_at': '2026-01-01T00:00:00Z'}
    chrome.run(page, '''await page.route('**/api/prompts*', (route) =>
        route.fulfill({ json: { prompts: [arg] } }));''',
               {'request_id': 'a1', 'state': 'pending', 'approval': one})
    chrome.goto(page, '/inbox')
    text = chrome.shows(page, 'Open all 2 folded values')
    assert '9007199254740993' in text and '1.0' in text
    first = "await page.locator('.card .fold summary').first().click();"
    chrome.run(page, first * 3)
    chrome.shows(page, 'Open all 1 folded values')
    assert chrome.run(page, "return page.isDisabled('.card .allow');")
    chrome.run(page, "await page.locator('.card .fold summary').last().click();")
    chrome.run(page, "await page.waitForSelector('.card .allow:not(:disabled)');")
    chrome.run(page, "await page.unrouteAll();")
    chrome.goto(page, '/s')


def test_equal_calls_are_one_card(chrome, hub, box, page):
    chrome.goto(page, '/inbox')
    with Asked(hub, box, 'echo same', n=3) as asked:
        chrome.shows(page, '×3')
        chrome.run(page, press('deny'))
        assert asked.statuses() == [403] * 3


ASKS = [
    ({'kind': 'yes_no', 'question': 'Deploy **it**?'}, 'Yes', {'option_id': 'yes'}),
    ({'kind': 'options_buttons', 'question': 'Which?', 'options': ['left', '<b>right</b>']},
     '<b>right</b>', {'label': '<b>right</b>'}),
    ({'kind': 'textbox', 'question': 'Say', 'text': 'hello'}, 'Send', {'free_text': 'hello'}),
    ({'kind': 'form', 'question': 'Fill', 'schema': {
        'type': 'object', 'required': ['name'], 'properties': {
            'name': {'type': 'string', 'title': '<i>Name</i>', 'default': 'x'},
            'n': {'type': 'integer', 'minimum': 1, 'default': 3},
            'on': {'type': 'boolean', 'default': True},
            'kind': {'type': 'string', 'enum': ['a', 'b'], 'default': 'b'}}}}, 'Send',
     {'values': {'name': 'x', 'n': 3, 'on': True, 'kind': 'b'}}),
    ({'kind': 'notify', 'title': 'Done', 'question': '<img src=x>'}, 'Seen', {}),
]


@pytest.mark.parametrize('asked, button, answer', ASKS, ids=[a['kind'] for a, _, _ in ASKS])
def test_a_question_is_answered(chrome, hub, page, asked, button, answer):
    chrome.goto(page, '/inbox')
    made = hub.post('/api/prompts', wait=False, **asked)['request_id']
    chrome.shows(page, asked['question'].replace('**', ''))
    only_text(chrome, page)
    assert chrome.run(page, 'return tools.axe();') == []
    chrome.run(page, '''
        const button = page.locator('.card button', { hasText: arg }).first();
        await button.scrollIntoViewIfNeeded();
        await page.waitForTimeout(700);
        await button.click();''', button)

    def ended():
        found = hub.call('GET', f'/api/prompts/{made}')
        return found['state'] == 'answered' and found
    found = until(ended, what='the answer')
    assert {k: found.get(k) for k in answer} == answer
    chrome.shows(page, 'answered', 'main .rows')


def test_a_question_that_nobody_answers(chrome, hub, page):
    chrome.goto(page, '/inbox')
    hub.post('/api/prompts', wait=False, kind='yes_no', question='Too late?', timeout_seconds=1)
    until(lambda: 'expired' in chrome.text(page), what='its end')
    assert chrome.run(page, "return page.locator('.card').count();") == 0


# ---- hostile text ---------------------------------------------------------------------------

HOSTILE = ['<img src=x onerror=alert(1)>', '<script>alert(1)</script>', '"><svg onload=alert(1)>',
           'javascript:alert(1)', '{{constructor.constructor("alert(1)")()}}', '\u202egnp.exe',
           'a\u200bb', 'p\u0430ypal', 'e' + '\u0301' * 9, '&lt;b&gt;', 'a' + ' ' * 20 + 'b',
           '\u2028x', '\u2800', '\U000e0041', '\x1b[31mred', 'a\u00a0b', '[x](javascript:alert(1))']


def escaped(text):
    """What the page shows of a text in one line."""
    out, i = '', 0
    while i < len(text):
        c = text[i]
        run = len(text[i:]) - len(text[i:].lstrip(' '))
        marks = 0
        while i + marks < len(text) and unicodedata.category(text[i + marks])[0] == 'M':
            marks += 1
        if run > 8:
            out, i = out + f'‹{run} spaces›', i + run
        elif marks > 4:
            out, i = out + f'‹{marks} marks›', i + marks
        elif c == '\n':
            out, i = out + '↵', i + 1
        elif (unicodedata.category(c) in ('Cc', 'Cf', 'Cs', 'Co', 'Cn', 'Zl', 'Zp') or c == '\u2800'
              or (unicodedata.category(c) == 'Zs' and c != ' ')):
            out, i = out + f'‹U+{ord(c):04X}›', i + 1
        else:
            out, i = out + c, i + 1
    return out


def only_text(chrome, page):
    assert chrome.run(page, 'return page.locator(arg).count();',
                      'main :is(img, script, iframe, object, embed)') == 0


def test_hostile_files(chrome, hub, box, page):
    for i, text in enumerate(HOSTILE):
        hub.post('/v1/files/write', sandbox=box, path='/tmp/bad/' + text.replace('/', '∕'),
                 content=str(i))
    chrome.goto(page, f'/s/{box}/files')
    chrome.run(page, '''
        for (const name of ['tmp', 'bad'])
            await page.locator('main table button.link', {
                hasText: new RegExp('^' + name + '/$') }).click();''')
    want = sorted(escaped(t.replace('/', '∕')) for t in HOSTILE)
    found = until(lambda: (got := chrome.run(page, '''return page.$$eval('main table bdi', (all) =>
        all.map((e) => e.textContent));''')) and len(got) >= len(want) and got, what='the list')
    assert sorted(found) == want
    only_text(chrome, page)
    chrome.run(page, "await tools.shot('files-hostile');")


def test_hostile_calls(chrome, hub, box, page):
    chrome.goto(page, '/inbox')
    with Asked(hub, box, ' '.join(HOSTILE)) as asked:
        chrome.shows(page, 'Allow once')
        chrome.shows(page, '<img src=x onerror=alert(1)>')
        only_text(chrome, page)
        chrome.run(page, press('deny'))
        assert asked.statuses() == [403]


# ---- sandboxes ------------------------------------------------------------------------------

def test_a_sandbox_comes_and_goes(chrome, hub, page):
    chrome.goto(page, '/s')
    chrome.run(page, '''
        await page.click('text=New sandbox');
        await page.fill('dialog [name=id]', 'of-page');
        await page.click('dialog .main');
        await page.waitForURL('**/s/of-page');''')
    chrome.shows(page, 'running')
    assert chrome.run(page, 'return tools.axe();') == []
    hub.exec('of-page', 'echo hello > /root/new 2>/dev/null || echo hello > /tmp/new')
    for tab, text in (('diff', 'added'), ('logs', 'echo hello'), ('ports', 'No port of it')):
        chrome.goto(page, f'/s/of-page/{tab}')
        chrome.shows(page, text)
        assert chrome.run(page, 'return tools.axe();') == []
    chrome.goto(page, '/s')
    chrome.shows(page, 'of-page')
    hub.delete('of-page')  # by another client; the page hears of it
    until(lambda: 'of-page' not in chrome.text(page), what='its end on the page')


def test_a_terminal(chrome, hub, page):
    box = hub.create()
    chrome.goto(page, f'/s/{box}/term')
    chrome.run(page, '''
        await page.click('text=New terminal');
        await page.waitForSelector('.screen .xterm-helper-textarea');
        await page.locator('.screen').click();
        await page.waitForTimeout(500);
        await page.keyboard.type(arg);''',
               r'printf "\033[6n"; read -rs -dR -t5 x; printf "\033[c"; read -rs -dc -t5 x; '
               'echo; echo sum-$((20+3))\n')

    def screen():
        return chrome.run(page, "return page.locator('.xterm-rows').innerText();")
    until(lambda: 'sum-23' in screen(), what='the output')
    chrome.run(page, "await tools.shot('terminal');")
    # it is there again after a reload, and what it once asked of the terminal is not typed again
    chrome.run(page, '''
        await page.reload();
        await page.click('main .rows button.link');
        await page.waitForSelector('.screen .xterm-rows');''')
    until(lambda: 'sum-23' in screen(), what='the output again')
    chrome.run(page, '''
        await page.locator('.screen').click();
        await page.keyboard.type('echo size-$(stty size | tr " " x); echo end-$((1+1))\\n');''')
    text = until(lambda: 'end-2' in (now := screen()) and now, what='the answer')
    assert 'R' not in text.split('sum-23')[1].split('end-2')[0].replace('\n', ''), text
    # another size
    chrome.run(page, '''
        await page.setViewportSize({ width: 900, height: 600 });
        await page.waitForTimeout(300);
        await page.locator('.screen').click();
        await page.keyboard.type('exit 7\\n');''')
    chrome.shows(page, 'It has ended with 7.')
    hub.sweep(box)


# ---- modules, audit -------------------------------------------------------------------------

def test_a_module(chrome, hub, page):
    chrome.goto(page, '/m/of-stage')
    chrome.run(page, "await page.click('text=Connect and list tools');")
    chrome.shows(page, 'connected')
    text = chrome.shows(page, 'echo')
    assert 'Be kind.' in text and 'in a sandbox of its own' in text
    chrome.run(page, "await page.click('.tool summary'); await tools.shot('module');")
    chrome.shows(page, '"type": "object"')
    assert chrome.run(page, 'return tools.axe();') == []


def test_the_audit_log_is_verified(chrome, hub, box, page):
    chrome.goto(page, '/audit')
    chrome.run(page, "await page.click('text=Verify');")
    chrome.shows(page, 'records follow each other')
    chrome.goto(page, '/audit?q=action:files.write+-outcome:ok')
    hub.post('/v1/files/write', sandbox=box, path='/tmp/audited', content='x')
    with pytest.raises(Failed):
        hub.post('/v1/files/write', sandbox=box, path='/proc/x', content='x')
    until(lambda: chrome.run(page, "return page.locator('tbody tr').count();") >= 1,
          what='a record')
    rows = chrome.run(page, "return page.locator('tbody tr').allInnerTexts();")
    assert all('files.write' in r for r in rows)


# ---- conversations --------------------------------------------------------------------------

def test_a_conversation(chrome, hub, page):
    chrome.goto(page, '/c')
    chrome.run(page, '''
        await page.click('text=New conversation');
        await page.fill('dialog [name=title]', arg);
        await page.fill('dialog [name=initial_prompt]', 'first');
        await page.click('dialog .main');
        await page.waitForSelector('#prompt');''', HOSTILE[0])
    assert HOSTILE[0] in chrome.text(page)
    only_text(chrome, page)
    chrome.shows(page, '1 queued')
    chrome.run(page, '''
        await page.fill('#prompt', arg);
        await page.press('#prompt', 'Control+Enter');''', 'second ' + HOSTILE[1])
    chrome.shows(page, '2 queued')
    assert chrome.run(page, "return page.inputValue('#prompt');") == ''
    assert chrome.run(page, 'return tools.axe();') == []
    chrome.run(page, "await tools.shot('conversation');")
    session = chrome.run(page, 'return page.url();').rpartition('/')[2]
    # by another client, and by hand
    queued = hub.call('GET', f'/api/sessions/{session}/queue')['messages']
    assert [m['message'] for m in queued] == ['first', 'second ' + HOSTILE[1]]
    hub.call('DELETE', f'/api/sessions/{session}/queue/{queued[0]["id"]}')
    chrome.shows(page, '1 queued')
    # a draft outlives a reload
    chrome.run(page, "await page.fill('#prompt', 'a draft'); await page.reload();")
    chrome.shows(page, '1 queued')
    assert chrome.run(page, "return page.inputValue('#prompt');") == 'a draft'
    chrome.run(page, '''
        await page.click('text=What its agent may do');
        await page.locator('.flag input').first().click();
        await page.click('text=Archive');''')
    chrome.shows(page, 'Take out of the archive')
    view = hub.call('GET', f'/api/sessions/{session}')
    first = hub.call('GET', '/api/advanced-flags')[0]
    assert view['flags'][first['name']] is not first['default'] and view['archived'] is True
    assert chrome.run(page, "return page.isDisabled('#prompt');")
    chrome.goto(page, '/c')
    hub.call('DELETE', f'/api/sessions/{session}')


MARKDOWN = """# Head <img src=x>

**bold** `code <b>` [a link](https://example.com/?q=1) [bad](javascript:alert(1))
![seen](https://evil.example/x.png)

<script>alert(1)</script>

| a | b |
|---|---|
| <i>1</i> | 2 |

```
<img src=x onerror=alert(1)>
```
"""


def test_a_hostile_transcript(chrome, hub, page):
    """The events of a log that an agent has filled."""
    told = [
        ('user_prompt', {'message': 'go', 'prompt_id': 'p'}),
        ('agent_message', {'text': MARKDOWN}),
        ('agent_thought', {'text': 'hm'}),
        ('tool_call', {'toolCallId': 'c', 'title': HOSTILE[0], 'status': 'pending', 'kind': 'edit',
                       'rawInput': {HOSTILE[1]: HOSTILE[2]}}),
        ('tool_call_update', {'toolCallId': 'c', 'status': 'completed', 'content': [
            {'type': 'diff', 'path': '/a', 'oldText': 'old\n', 'newText': HOSTILE[0]}]}),
        ('plan', {'entries': [{'content': HOSTILE[0], 'status': 'completed'},
                              {'content': 'two', 'status': 'pending'}]}),
        ('error', {'code': HOSTILE[0], 'message': HOSTILE[1]}),
        ('unheard_of', {HOSTILE[0]: [HOSTILE[1]]}),
        ('tool_call', {'toolCallId': 'd', 'title': 'odd', 'content': 'no list'}),
        ('tool_call', {'toolCallId': 'e', 'title': 'none', 'content': [None, {'content': 3}]}),
        ('tool_call', {'toolCallId': 'f', 'title': {'toString': 1}}),
        ('agent_message', {'text': '>' * 32768}), ('agent_message', {'text': 'a**b' * 8192}),
        ('stop', {'stop_reason': 'end_turn'})]
    events = [{'seq': n, 'type': kind, 'timestamp': '2026-01-01T00:00:00.000Z', 'data': data}
              for n, (kind, data) in enumerate(told, 2)]
    session = hub.post('/api/sessions', title='told')['session_id']
    chrome.run(page, """await page.route('**/api/sessions/*/events?*', (route) =>
        route.fulfill({ json: { events: arg, has_more: false } }));""", events)
    chrome.goto(page, f'/c/{session}')
    text = chrome.shows(page, 'The turn has ended: end_turn.')
    chrome.run(page, """
        for (const summary of await page.locator('.transcript summary, .plan summary').all())
            await summary.click();""")
    text = chrome.text(page)
    for part in (HOSTILE[0], HOSTILE[1], 'no list', 'not shown', 'Plan: 1 of 2', 'code <b>',
                 '<script>alert(1)</script>', 'image “seen” of evil.example', '(example.com)',
                 '‹javascript:alert(1)›'):
        assert part in text, part
    assert chrome.run(page, "return page.locator('.transcript a').count();") == 0
    only_text(chrome, page)
    assert chrome.run(page, 'return tools.axe();') == []
    chrome.run(page, "await tools.shot('transcript'); await page.unrouteAll();")
    chrome.goto(page, '/c')
    hub.call('DELETE', f'/api/sessions/{session}')


def test_a_message_as_it_is_written(chrome, hub, page):
    session = hub.post('/api/sessions', title='live')['session_id']
    chrome.goto(page, f'/c/{session}')
    first = hub.call('GET', f'/api/sessions/{session}/events')['events'][-1]['seq']

    def news(**data):
        chrome.run(page, '''await page.evaluate((detail) => {
            const tab = new BroadcastChannel('holt-live');
            tab.postMessage({ up: true, topics: ['conversation'], detail });
            tab.close();
        }, arg);''', {'id': session, 'data': data})
    chrome.run(page, "await page.waitForSelector('.transcript .event');")
    for piece in ('Hel', 'lo'):
        news(kind='live', seq=0, type='agent_message_chunk', data={'text': piece})
    news(kind='live', seq=0, type='agent_update', data={'x': 'unheard'})
    chrome.shows(page, 'Hello', '.transcript')
    news(kind='event', seq=first + 1, type='agent_message',
         timestamp='2026-01-01T10:00:00.000Z', data={'text': 'Hello, all'})
    text = chrome.shows(page, 'Hello, all', '.transcript')
    assert text.count('Hello') == 1 and 'unheard' not in text and 'agent_update' not in text
    chrome.goto(page, '/c')
    hub.call('DELETE', f'/api/sessions/{session}')


# ---- several tabs, a hub that is gone -------------------------------------------------------

def test_many_tabs_share_a_stream(chrome, hub, box, page):
    tabs = [page, *(f'{page}/{i}' for i in range(2, 11))]
    for tab in tabs:
        chrome.goto(tab, '/inbox')
    with Asked(hub, box, 'echo tabs') as asked:
        for tab in tabs:
            chrome.shows(tab, 'echo tabs')
        # the one that follows the hub is closed
        chrome.run(tabs[-1], 'await page.close();')
        tabs.pop()
        with Asked(hub, box, 'echo after'):
            for tab in tabs:
                chrome.shows(tab, 'echo after')
            chrome.run(page, '''
                for (let i = 0; i < 2; i++) {
                    await page.waitForTimeout(800);
                    await page.locator('.card .deny:not(:disabled)').nth(0).click();
                    await page.waitForTimeout(1700);
                }''')
        assert asked.statuses() == [403]
    for tab in tabs[1:]:
        assert chrome.sins(tab) == []
        chrome.run(tab, 'await page.close();')
