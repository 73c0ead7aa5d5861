// What of the page's script needs no browser: node script.mjs UI-FOLDER
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import test from 'node:test';
import { pathToFileURL } from 'node:url';

const ui = process.argv[2];
const { build } = createRequire(pathToFileURL(join(ui, 'package.json')))('esbuild');

// As much of a browser as the modules touch when they are loaded.
const storage = () => ({ kept: new Map(), getItem(k) { return this.kept.get(k) ?? null; }, setItem(k, v) { this.kept.set(k, v); } });
Object.assign(globalThis, { localStorage: storage(), sessionStorage: storage(), BroadcastChannel: undefined,
	location: { pathname: '/inbox', search: '', href: 'http://localhost/' }, addEventListener: () => {} });

const FROM = ['api.js', 'events.js', 'inbox.jsx', 'json.js', 'questions.jsx', 'markdown.jsx', 'modules.jsx', 'router.jsx', 'text.jsx', 'ui.jsx'];
const bundle = await build({
	stdin: { contents: FROM.map((f) => `export * from './src/${f}';`).join('\n'), resolveDir: ui },
	bundle: true, format: 'esm', jsx: 'automatic', jsxImportSource: 'preact', write: false, logLevel: 'error',
});
const page = await import('data:text/javascript;base64,' + Buffer.from(bundle.outputFiles[0].contents).toString('base64'));

// ---- the window of a conversation's events ----------------------------------------------------

// A log that answers as GET /api/sessions/ID/events does; asked: what was read of it.
function logOf(n) {
	const log = { events: [], asked: [] };
	log.add = (type = 'agent_message', data = { text: `t${log.events.length + 1}` }) =>
		log.events.push({ seq: log.events.length + 1, type, timestamp: '', data });
	for (let i = 0; i < n; i++)
		log.add();
	log.read = async (query) => {
		log.asked.push(query);
		const q = new URLSearchParams(query);
		const limit = Number(q.get('limit'));
		const after = q.get('after_seq');
		const range = log.events.filter((e) => e.seq > Number(after ?? 0) && e.seq < Number(q.get('before_seq') ?? Infinity));
		return { events: after === null ? range.slice(-limit) : range.slice(0, limit), has_more: range.length > limit };
	};
	return log;
}

const seqs = (s) => s.events.map((e) => e.seq);
const count = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const piece = (type, text) => ({ kind: 'live', seq: 0, type, data: { text } });
const event = (e) => ({ kind: 'event', ...e });

test('the newest page comes first, older ones when they are asked for', async () => {
	const log = logOf(20000);
	const s = page.eventsOf(log.read, () => {});
	await s.hear();
	assert.deepEqual(seqs(s), count(19801, 20000));
	assert.equal(s.more, true);
	assert.equal(log.asked.length, 1);
	for (let i = 0; i < 9; i++)
		await s.older();
	assert.equal(s.events.length, page.ROWS_MAX);
	assert.equal(s.events[0].seq, 20000 - 200 - 9 * 500 + 1);
	assert.equal(s.cut, true);
	assert.equal(log.asked.length, 10);
	// what comes meanwhile is not put behind a hole
	log.add();
	await s.hear(event(log.events.at(-1)));
	await s.hear();
	assert.equal(s.events.at(-1).seq, s.events[0].seq + page.ROWS_MAX - 1);
	await s.newest();
	assert.deepEqual(seqs(s), count(19802, 20001));
	assert.equal(s.cut, false);
});

test('nothing is lost or there twice', async () => {
	const log = logOf(450);
	const s = page.eventsOf(log.read, () => {});
	await s.hear();
	log.add();
	s.hear(event(log.events.at(-1)));
	s.hear(event(log.events.at(-1))); // by two tabs
	assert.deepEqual(seqs(s), count(251, 451));
	assert.equal(log.asked.length, 1);
	for (let i = 0; i < 300; i++)
		log.add();
	await s.hear(event(log.events.at(-1))); // those before it were not heard
	assert.deepEqual(seqs(s), count(251, 751));
	await s.hear(); // after a reconnect
	assert.deepEqual(seqs(s), count(251, 751));
});

test('what comes while it reads is read, too', async () => {
	const log = logOf(3);
	let go;
	const held = page.eventsOf(async (query) => {
		const answer = await log.read(query);
		await new Promise((resolve) => (go = resolve));
		return answer;
	}, () => {});
	const reading = held.hear();
	await new Promise(setImmediate);
	log.add();
	log.add();
	held.hear(event(log.events.at(-1)));
	go();
	await new Promise(setImmediate);
	go();
	await reading;
	assert.deepEqual(seqs(held), count(1, 5));
});

test('what comes both ways is there once', async () => {
	const log = logOf(3);
	const s = page.eventsOf(log.read, () => {});
	await s.hear();
	log.add();
	log.add();
	const reading = s.hear(); // has both
	s.hear(event(log.events[3]));
	await reading;
	assert.deepEqual(seqs(s), count(1, 5));
});

test('a page that is read for a window that is gone is left out', async () => {
	const log = logOf(300);
	let wait = null;
	const s = page.eventsOf(async (query) => {
		const answer = await log.read(query);
		await wait;
		return answer;
	}, () => {});
	await s.hear();
	let go;
	wait = new Promise((resolve) => (go = resolve));
	log.add();
	const reading = s.hear();
	const anew = s.newest();
	wait = null;
	go();
	await Promise.all([reading, anew]);
	assert.deepEqual(seqs(s), count(102, 301));
});

test('a failure is told, and the window stays', async () => {
	let fails = false;
	const log = logOf(3);
	const s = page.eventsOf(async (q) => {
		if (fails)
			throw new Error('gone');
		return log.read(q);
	}, () => {});
	await s.hear();
	fails = true;
	await s.hear();
	assert.equal(s.problem.message, 'gone');
	fails = false;
	await s.hear();
	assert.equal(s.problem, null);
	assert.deepEqual(seqs(s), [1, 2, 3]);
});

test('pieces are a text until the whole is there', async () => {
	const log = logOf(1);
	const s = page.eventsOf(log.read, () => {});
	await s.hear();
	for (const news of [piece('agent_message_chunk', 'Hel'), piece('agent_message_chunk', 'lo'), piece('agent_update', 'x'), piece(undefined, 'x'),
		{ kind: 'live', type: 'agent_thought_chunk' }, {}])
		s.hear(news);
	assert.deepEqual([...s.live], [['agent_message', 'Hello'], ['agent_thought', '']]);
	log.add('agent_message', { text: 'Hello' });
	s.hear(event(log.events.at(-1)));
	assert.deepEqual([...s.live.keys()], ['agent_thought']);
	s.hear(piece('agent_thought_chunk', 'x'.repeat(1 << 20)));
	assert.ok(s.live.get('agent_thought').length <= 1 << 16);
});

test('a tool call is one row, the same one as long as nothing of it changes', () => {
	const call = (seq, type, data) => ({ seq, type, data: { toolCallId: 'c', ...data } });
	const events = [call(1, 'tool_call', { title: 'a', status: 'pending' }), { seq: 2, type: 'plan', data: {} }, { seq: 3, type: 'stop', data: null },
		call(4, 'tool_call_update', { status: 'completed' }), { seq: 5, type: 'tool_call_update', data: { toolCallId: 'other' } }];
	const rows = page.fold(events);
	assert.deepEqual(rows.map((r) => r.seq), [1, 3, 5]);
	assert.deepEqual(rows[0].data, { toolCallId: 'c', title: 'a', status: 'completed' });
	assert.equal(events[0].data.status, 'pending');
	assert.equal(page.fold(events)[0], rows[0]);
	events.push(call(6, 'tool_call_update', { status: 'failed' }));
	assert.equal(page.fold(events)[0].data.status, 'failed');
});

// ---- what waits ---------------------------------------------------------------------------------

test('equal calls of one conversation are one card, with exactly their ids', () => {
	const one = (id, more) => ({ id, state: 'pending', principal: 'p', digest: 'd', conversation: 'c', ...more });
	const all = [one('1', { expires_at: '3' }), one('2'), one('3', { conversation: 'e' }), one('4', { digest: 'x', expires_at: '1' }),
		one('5', { state: 'denied' }), one('6', { principal: 'q' }), one('7', { target: 't' })];
	assert.deepEqual(page.cardsOf(all).map((c) => c.map((a) => a.id)), [['4'], ['1', '2'], ['3'], ['6'], ['7']]);
	const question = { request_id: 'q', state: 'pending', expires_at: '2' };
	assert.deepEqual(page.waitingOf([...all.map((approval) => ({ approval })), question, { request_id: 'r', state: 'answered' }])
		.map((w) => w.request_id ?? w[0].id).slice(0, 3), ['4', 'q', '1']);
});

test('each long text of a call counts once', () => {
	const long = 'x'.repeat(1201);
	assert.equal(page.foldsOf({ a: long, b: [long, 'short', { c: 'x\n'.repeat(12) }], d: null, e: 1 }), 3);
});

test('numbers are shown as they were sent', () => {
	const { n, list, f } = page.parse('{"n": 9007199254740993, "list": [1.0, 2, 1e400], "f": 0.5}');
	assert.equal(JSON.stringify(n), '9007199254740993');
	assert.equal(JSON.stringify(list), '[1.0,2,1e400]');
	assert.equal(f, 0.5);
	assert.equal(page.parse('{'), '{');
});

test('large numbers of an answer are shown as they were sent, the others are numbers', async (t) => {
	const text = '{"n": 9007199254740993, "list": [-18446744073709551615, 1e400], "id": 9007199254740991, "of": 1.0}';
	t.mock.method(globalThis, 'fetch', async () => new Response(text));
	const { n, list, id, of } = await page.get('/x');
	assert.equal(JSON.stringify({ n, list }), '{"n":9007199254740993,"list":[-18446744073709551615,1e400]}');
	assert.deepEqual([id, of], [9007199254740991, 1]);
	assert.equal(page.Text({ of: n }).props.children[0], '9007199254740993');
	t.mock.method(globalThis, 'fetch', async () => new Response('no JSON'));
	await assert.rejects(page.get('/x'), SyntaxError);
});

test('the values of a form have the types of its schema', () => {
	const data = new FormData();
	for (const [k, v] of [['s', 'x'], ['n', '3'], ['list', 'a'], ['list', 'b'], ['empty', '']])
		data.append(k, v);
	const types = { s: 'string', n: 'integer', list: 'array', empty: 'string', on: 'boolean', missing: 'number' };
	const properties = Object.fromEntries(Object.entries(types).map(([k, type]) => [k, { type }]));
	assert.deepEqual(page.valuesOf({ properties }, data), { s: 'x', n: 3, list: ['a', 'b'], on: false });
});

test('held tools are those that were not opened as they are now', () => {
	const m = { digest: 'd2', tools: [{ name: 'a', state: 'changed' }, { name: 'b', state: 'new' }, { name: 'c', state: 'approved' }] };
	assert.deepEqual(page.unseenOf(m, new Set(['d1a', 'd2b'])).map((t) => t.name), ['a']);
});

// ---- texts and addresses ------------------------------------------------------------------------

test('nothing of a text is invisible', () => {
	const shown = (text, how) => page.pieces(text, how).map((p) => p.chip ?? p).join('');
	assert.equal(shown('a\u202eb\u200b\u{e0041}'), 'a‹U+202E›b‹U+200B›‹U+E0041›');
	assert.equal(shown('a\nb\tc'), 'a↵b→c');
	assert.equal(shown('a\r\nb', { block: true }), 'a‹U+000D›\nb');
	assert.equal(shown('e' + '\u0301'.repeat(9)), 'e‹9 marks›');
	assert.equal(shown('👩\u200d💻', { prose: true }), '👩\u200d💻');
	assert.equal(shown('👩\u200d💻'), '👩‹U+200D›💻');
	assert.ok(page.pieces('p\u0430ypal').some((p) => p.kind === 'mixed'));
	assert.equal(shown('a' + '\u200b'.repeat(200) + '\u200b\u200c\u00a0\u00a0b'), 'a‹201 × U+200B›‹U+200C›‹2 × U+00A0›b');
	assert.equal(page.Text({ of: 'a\u200b'.repeat(30000) }).props.children.length, 1);
	assert.equal(page.plain('a\u202eb\n' + 'x'.repeat(500), 20), 'a‹U+202E›b↵xxxxxxxx…');
});

test('only complete sequences of terminals are left out of an output', () => {
	for (const whole of ['\x1b[1;31m', '\x1b[?25l', '\x1b]0;title\x07', '\x1b]8;;http://a/\x1b\\', '\x1b]133\x07', '\x1bM', '\x1b\\'])
		assert.equal(page.printed(`a${whole}b`), 'ab');
	// whatever begins one, all that follows is there
	for (const begun of [']', ']0;', ']8;;', 'P', 'X', '^', '_', '[', '[1;', '[1;\n', '(', ']0;a\n', ']x\x07', ']0;\x1b', ''])
		assert.ok(page.printed(`\x1b${begun}\nrm -rf everything\n`).endsWith('\nrm -rf everything\n'), begun);
	assert.equal(page.printed('\x1b]all of this\r\nrm'), '\x1b]all of this\nrm');
});

test('a filter is words, some with a key, some turned round', () => {
	const terms = page.parseFilter('state:running -owner:ci Word');
	assert.equal(page.passes(terms, { state: 'running', owner: 'me', x: 'a word' }), true);
	assert.equal(page.passes(terms, { state: 'running', owner: 'ci', x: 'word' }), false);
	assert.equal(page.passes(terms, { state: 'running', x: 'other' }), false);
});

test('an address names a view, or none', () => {
	assert.deepEqual(page.match('/s/:id/:tab', '/s/a%2Fb/term'), { id: 'a/b', tab: 'term' });
	assert.equal(page.match('/s/:id', '/s/a/b'), null);
	assert.equal(page.match('/s/:id', '/s/%'), null);
});

test('long Markdown is cut at empty lines outside of fenced code', () => {
	assert.deepEqual(page.cut('a\n\n```\nb\n\nc\n```\n\nd'), ['a\n\n', '```\nb\n\nc\n```\n\n', 'd\n']);
});
