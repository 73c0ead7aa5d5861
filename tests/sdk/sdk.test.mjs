// The TypeScript SDK against a real hub, over both of its sockets. $HOLT_TEST has where they are.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { inspect } from 'node:util';
import test from 'node:test';
import * as holt from '../../sdk/typescript/dist/src/index.js';

const given = JSON.parse(readFileSync(process.env.HOLT_TEST, 'utf8'));
const { Sandbox, Client, NetworkPolicy, SecretRef } = holt;
const text = (data) => Buffer.from(data).toString();
const every = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
const fails = (promise, type, check = () => true) =>
	assert.rejects(promise, (e) => {
		assert.ok(e instanceof type, inspect(e));
		return check(e) !== false;
	});
async function using(made, block) {
	const resource = await made;
	try {
		return await block(resource);
	} finally {
		await resource[Symbol.asyncDispose]();
	}
}
async function gone(box, pid) {
	for (const deadline = Date.now() + 60000; Date.now() < deadline;) {
		if (!(await box.commands.run(`kill -0 ${pid} 2>/dev/null`)).ok) return;
	}
	assert.fail('it goes on');
}

for (const door of ['unix', 'http']) {
	const client = new Client({ baseUrl: given[door], apiKey: given.token });
	const box = (options) => Sandbox.create({ ttlSeconds: 600, client, ...options });
	const over = (doors, name, run) => doors.includes(door) && test(`${door}: ${name}`, run);

	over('unix http', 'a life', async () => {
		let left;
		await using(
			box({
				image: 'host', network: NetworkPolicy.denyByDefault(), idleSeconds: 300, env: { A: 'grüße' }, cwd: '/tmp',
				user: 'user', limits: { memoryMb: 256, diskMb: 64, pids: 64 }, labels: { of: 'ts' }, retention: 'destroy',
			}),
			async (sandbox) => {
				left = sandbox;
				const info = await sandbox.info({ usage: true });
				assert.equal(info.state, 'running');
				assert.deepEqual([info.image, info.ttlSeconds, info.idleSeconds], ['host', 600, 300]);
				assert.deepEqual([info.limits.memory_mb, info.labels], [256, { of: 'ts' }]);
				assert.ok(info.usage && info.deadlineUnix > 0);
				assert.equal((await sandbox.commands.run('pwd; echo $A')).stdout, '/tmp\ngrüße\n');
				const listed = await Sandbox.list({ labels: ['of=ts'], client });
				assert.deepEqual(listed.map((one) => one.id), [sandbox.id]);
				const again = await Sandbox.connect(sandbox.id, { client });
				await using(again, async () => undefined);
				assert.equal((await again.info()).state, 'running');
				assert.equal(await sandbox.pause(), 'paused');
				await fails(sandbox.commands.run('true'), holt.ConflictError);
				assert.equal(await sandbox.resume(), 'running');
				assert.ok((await sandbox.setTimeout(1000)) > 0);
				assert.equal((await sandbox.stop()).state, 'stopped');
				await sandbox.resume();
			},
		);
		assert.equal((await left.info()).state, 'terminated');
		assert.equal(await left.kill(), false);
	});

	over('unix', 'fork, snapshot, restore, diff', () => using(box(), async (sandbox) => {
		await sandbox.files.write('a', 'before');
		const copies = await sandbox.fork(2, { labels: { copy: '' } });
		const [named] = await sandbox.fork(1, { ids: [`ts-${door}`] });
		assert.equal(named.id, `ts-${door}`);
		await sandbox.files.write('a', 'after');
		assert.equal(await copies[1].files.read('a'), 'before');
		const kept = await sandbox.snapshot('later', { ttlSeconds: 600 });
		assert.ok((await client.snapshots()).some((one) => one.id === kept.id));
		assert.deepEqual([(await client.snapshot(kept.id)).digest, kept.image], [kept.digest, 'host']);
		const restored = await Sandbox.restore(kept.id, 2, { client });
		assert.equal(await restored[0].files.read('a'), 'after');
		assert.ok((await sandbox.diff()).some((one) => one.path === '/workspace/a' && one.change === 'added'));
		assert.equal((await sandbox.diff({ limit: 1 })).length, 1);
		for (const one of [...copies, named, ...restored]) await one.close();
		assert.equal(await client.deleteSnapshot(kept.id), true);
		assert.equal(await client.deleteSnapshot(kept.id), false);
	}));

	over('http', 'files', () => using(box(), async ({ files }) => {
		await files.write('deep/er', 'grüße\r\n');
		assert.equal(await files.read('deep/er'), 'grüße\r\n');
		await files.write('bytes', every, { mode: 0o600 });
		assert.deepEqual(Buffer.from(await files.readBytes('bytes')), every);
		await fails(files.read('bytes'), holt.ValidationError, (e) => e.code === 'not_text');
		const large = Buffer.alloc((2 << 20) + 5, every);
		await files.write('large', large);
		assert.ok(large.equals(await files.readBytes('large')));
		await fails(files.readBytes('large', { maxBytes: 1000 }), holt.ValidationError, (e) => e.code === 'too_large');
		const odd = ['two words', '"\'`', '日本', 'a\tb\nc', '-rf', '%2F', 'a?b=c&d#e'];
		for (const name of odd) await files.write('odd/' + name, name);
		const listed = await files.list('odd');
		assert.deepEqual(listed.map((one) => one.name).sort(), [...odd].sort());
		for (const one of listed) assert.equal(await files.read(one.path), one.name);
		assert.equal((await files.list('odd', { limit: 2 })).length, 2);
		await files.mkdir('tree/below');
		assert.deepEqual([(await files.stat('tree/below')).name, (await files.stat('bytes')).mode], ['below', 0o600]);
		await fails(files.remove('tree'), holt.ValidationError);
		await files.rename('tree/below', 'tree/other');
		assert.deepEqual([await files.exists('tree/below'), await files.exists('tree/other')], [false, true]);
		await files.remove('tree', { recursive: true });
		await fails(files.stat('tree'), holt.NotFoundError, (e) => e.context.path && e.auditId);
		const pieces = [];
		for await (const piece of await files.download('odd')) pieces.push(piece);
		await files.mkdir('copy');
		await files.upload('copy', Buffer.concat(pieces));
		await files.mkdir('copy2');
		await files.upload('copy2', (async function* () {
			yield* pieces;
		})());
		assert.deepEqual((await files.list('copy2')).map((one) => one.name).sort(), [...odd].sort());
		await using(files.watch('.', { recursive: true }), async (events) => {
			assert.equal(await events.get(0.05), undefined);
			await files.write('new', 'x');
			const { kind, path, isDir } = await events.get(20);
			assert.deepEqual([kind, path, isDir], ['created', 'new', false]);
			await files.remove('new');
			for await (const event of events) if (event.kind === 'removed') break;
		});
	}));

	over('unix', 'commands', () => using(box(), async ({ commands, id }) => {
		let done = await commands.run(['sh', '-c', 'echo "$1"; echo err >&2; exit 3', 'sh', 'a b']);
		assert.deepEqual([done.exitCode, done.stdout, done.stderr, done.ok], [3, 'a b\n', 'err\n', false]);
		const { record } = await client.auditRecord(done.auditId);
		assert.deepEqual([record.action, record.target], ['sandbox.exec', id]);
		done = await commands.run('cat; pwd; echo $A', { stdin: every, cwd: '/tmp', env: { A: 'b' }, check: true });
		assert.deepEqual(Buffer.from(done.stdoutBytes), Buffer.concat([every, Buffer.from('/tmp\nb\n')]));
		done = await commands.run('echo ${#KEY}; echo $KEY', { secrets: { KEY: new SecretRef('of-store') } });
		assert.ok(done.stdout.startsWith(`${given.secret.length}\n`) && !done.stdout.includes(given.secret));
		await fails(commands.run('true', { secrets: { KEY: given.secret } }), holt.ValidationError,
			(e) => !JSON.stringify(e).includes(given.secret));
		done = await commands.run('echo before; sleep 60', { timeoutSeconds: 5 });
		assert.deepEqual([done.timedOut, done.exitCode, done.stdout], [true, 124, 'before\n']);
		await fails(commands.run('exit 3', { check: true }), holt.CommandError, (e) => e.result.exitCode === 3);
		await fails(commands.run('sleep 60', { check: true, timeoutSeconds: 1 }), holt.TimedOutError);
		await fails(commands.run(['nope']), holt.GuestError);
		const out = [];
		const long = 'echo first; head -c 3000000 /dev/zero | tr "\\0" x; echo last; echo e >&2';
		for (const more of [{}, { onStderr: (data) => out.push(data) }]) {
			done = await commands.run(long, more);
			const mark = `\n[... ${done.stdoutElidedBytes} bytes elided ...]\n`;
			const kept = done.stdoutBytes.length - mark.length;
			assert.ok(done.stdout.includes(mark) && kept <= 1 << 20, `${kept}`);
			assert.ok(done.stdout.startsWith('first\n') && done.stdout.endsWith('last\n'));
			assert.deepEqual([kept + done.stdoutElidedBytes, done.stderr], [3000011, 'e\n']);
		}
		assert.equal(text(Buffer.concat(out)), 'e\n');
		assert.equal((await (await commands.code('print(6 * 7)')).wait()).stdout, '42\n');
		await fails(commands.run('true', { timeout: 1 }), holt.ValidationError,
			(e) => e.code === 'invalid_option' && e.message.includes('timeoutSeconds'));
		let pid;
		for await (const piece of await commands.stream('echo $$; sleep 300')) {
			pid = Number(piece.text);
			break; // ends the command
		}
		await gone({ commands }, pid);

		const process = await commands.start('echo ready; read x; echo got $x; exit 6', { stdinOpen: true, id: 'mine' });
		assert.equal(await process.waitFor('ready'), true);
		assert.equal(await process.waitFor(undefined, { pattern: '^rea.y$' }), true);
		await fails(process.wait({ timeoutSeconds: 1 }), holt.TimedOutError, (e) => e.code === 'wait_timeout');
		await commands.connect('mine').write('grüße\n', { close: true });
		done = await process.wait({ timeoutSeconds: 20 });
		assert.deepEqual([done.exitCode, done.stdout, done.auditId], [6, 'ready\ngot grüße\n', process.auditId]);
		const page = await process.output(6, { limit: 4, stream: 'stdout' });
		assert.deepEqual([text(page.chunks[0].data), page.nextOffset, page.eof], ['got ', 10, false]);
		let followed = '';
		for await (const piece of process) followed += piece.text;
		assert.equal(followed, done.stdout);
		assert.equal((await (await process.follow(6)).wait()).exitCode, 6);
		const [listed] = await commands.list();
		assert.deepEqual([listed.id, listed.state, (await process.info()).exitCode], ['mine', 'exited', 6]);
		assert.deepEqual([await process.kill(), await process.kill()], [true, false]);
		const asleep = await commands.start(['sleep', '300']);
		await asleep.signal();
		assert.equal((await asleep.wait()).signal, 15);
	}));

	over('unix http', 'terminals and channels', () => using(box(), async (sandbox) => {
		await using(sandbox.pty({ terminal: { cols: 100, rows: 30 } }), async (terminal) => {
			await terminal.write('stty size\n');
			let seen = '';
			while (!seen.includes('30 100')) seen += (await terminal.read(20)).text;
			await terminal.resize(90, 25);
			await terminal.write('stty size; exit 5\n');
			const done = await terminal.wait(20);
			assert.ok(done.stdout.includes('25 90') && done.exitCode === 5);
		});
		const data = Buffer.alloc(1 << 20, every);
		await using(sandbox.commands.open(['cat']), async (channel) => {
			const writing = channel.write(data).then(() => channel.closeStdin());
			const got = [];
			for await (const piece of channel) got.push(piece.data);
			await writing;
			assert.ok(Buffer.concat(got).equals(data));
			assert.equal((await channel.wait()).exitCode, 0);
		});
		await using(sandbox.commands.open('echo $$; sleep 300'), async (channel) => {
			await channel.read(20);
			await fails(channel.wait(0.05), holt.TimedOutError);
			await channel.signal(9);
			assert.equal((await channel.wait(20)).exitCode, 137);
		});
		await using(sandbox.commands.open(['nope']), (channel) => fails(channel.wait(20), holt.GuestError));
		const process = await sandbox.commands.start('cat', { terminal: {} });
		await process.resize(70, 20);
		await using(process.attach(0), async (channel) => {
			await channel.write('typed\n');
			let seen = '';
			while (seen.split('typed').length < 3) seen += (await channel.read(20)).text;
			await channel.write('\x04');
			assert.equal((await channel.wait(20)).exitCode, 0);
		});
		await fails(sandbox.commands.connect('nope').attach(), holt.NotFoundError);
	}));

	over('http', 'ports and network', () => using(box(), async ({ files, commands, ports, network }) => {
		await files.write('hello.txt', 'grüße');
		const server = await commands.start('python3 -u -m http.server --bind 127.0.0.1 8000');
		await server.waitFor('Serving');
		const answer = await ports.expose(8000, '/hello.txt');
		assert.deepEqual([answer.status, answer.text], [200, 'grüße']);
		assert.equal((await ports.expose(8000, '/', { method: 'POST', body: every })).status, 501);
		assert.equal((await ports.expose(8001)).status, 502);
		const one = await ports.forward(8000);
		const wire = net.connect(one.port, '127.0.0.1');
		wire.end('GET / HTTP/1.0\r\n\r\n');
		assert.ok(text((await wire.take(1).toArray())[0]).includes('200 OK'));
		assert.deepEqual((await ports.list()).map((f) => [f.guestPort, f.port]), [[8000, one.port]]);
		await ports.close(8000);
		await ports.close();
		assert.ok((await ports.preview(8000, 60)).url.startsWith('http://'));
		let now = await network.allow('a.example', 443);
		assert.deepEqual(now.policy.hosts, [{ host: 'a.example', port: 443 }]);
		now = await network.allow('b.example', 8443);
		now = await network.revoke('a.example');
		assert.deepEqual([now.policy.hosts.length, (await network.get()).opened], [1, 0]);
		now = await network.set(NetworkPolicy.denyByDefault());
		assert.deepEqual(now.policy.toJSON(), { mode: 'none' });
	}));

	over('http', 'a change of grants keeps what others changed meanwhile', () => using(box(), async ({ network }) => {
		const none = NetworkPolicy.denyByDefault();
		const others = [none.allow('a.example', 443)];
		const get = network.get.bind(network);
		network.get = async (options) => {
			const now = await get(options);
			if (others.length) await network.set(others.pop());
			return now;
		};
		let now = await network.allow('b.example', 8443);
		assert.deepEqual(now.policy.hosts.map((h) => h.host), ['a.example', 'b.example']);
		others.push(none.allow('b.example', 8443));
		now = await network.revoke('b.example');
		assert.deepEqual(now.policy.toJSON(), { mode: 'none' });
		await fails(network.set(now.policy, { revision: now.revision - 1 }), holt.ConflictError);
	}));

	over('unix', 'run', async () => {
		assert.deepEqual([(await client.health()).status, await client.templates()], ['ok', ['host']]);
		const answer = await client.run({
			language: 'python', files: [{ path: '/work/main.py', content: "print('hello')" }],
			command: ['python3', '/work/main.py'], network: { mode: 'none' }, state: { retention: 'destroy' },
		});
		assert.deepEqual([answer.exitCode, answer.stdout, answer.check() === answer], [0, 'hello\n', true]);
		const failed = await client.run({ command: ['false'], state: { retention: 'destroy' } });
		assert.throws(() => failed.check(), holt.CommandError);
		await fails(client.run({ command: ['true'], state: {} }), holt.ValidationError,
			(e) => e.pointer === '/state/retention');
	});

	over('unix http', 'failures', () => using(box(), async (sandbox) => {
		await fails(sandbox.files.write('forbidden', 'x'), holt.PolicyDeniedError, (e) => {
			assert.ok(e.cause.includes('no forbidden files') && e.remediation && e.auditId && !e.retryable);
			assert.deepEqual([e.code, e.status, e.failure, e.name], ['forbidden', 403, 'policy_denied', 'PolicyDeniedError']);
		});
		await fails(box({ id: sandbox.id }), holt.ConflictError);
		await fails(box({ image: 'nope' }), holt.NotFoundError);
		await fails(box({ ttlSeconds: -1 }), holt.ValidationError, (e) => e.status === 400);
		const process = await sandbox.commands.start('sleep 300', { stdinOpen: true });
		await process.write(Buffer.alloc(700 << 10));
		await fails(process.write(Buffer.alloc(3 << 20)), holt.ValidationError, (e) => e.code === 'body_too_large');
		await fails(process.write(Buffer.alloc(700 << 10)), holt.LimitError, (e) => e instanceof holt.TransportError);
		const wrong = new Client({ baseUrl: given[door], apiKey: 'holt_wrong-token-0123456789' });
		await fails(wrong.templates(), holt.PolicyDeniedError, (e) => e.code === 'unauthorized');
		for (const shown of [inspect(client, { depth: 9, showHidden: true }), JSON.stringify(client)]) {
			assert.ok(!shown.includes(given.token), shown);
		}
		const kept = await box({ id: `kept-ts-${door}` });
		await fails(kept.close(), holt.CleanupError, (e) => {
			assert.deepEqual([e.context.sandbox, e.code, e.failure], [kept.id, 'forbidden', 'cleanup_failed']);
		});
		await kept.setTimeout(1);
		while ((await kept.info()).state !== 'terminated');
	}));

	over('unix http', 'cancelling', () => using(box(), async (sandbox) => {
		const stop = new AbortController();
		const reason = new Error('enough');
		const running = sandbox.commands.run('echo $$ > pid; sleep 300', { signal: stop.signal, timeoutSeconds: 600 });
		while (!(await sandbox.files.exists('pid')) || !(await sandbox.files.read('pid')));
		const stream = await sandbox.commands.stream('sleep 300', { signal: stop.signal });
		const channel = await sandbox.commands.open('sleep 300', { signal: stop.signal });
		stop.abort(reason);
		await assert.rejects(running, reason);
		await assert.rejects(stream.wait(), reason);
		await assert.rejects(channel.read(), reason);
		await assert.rejects(sandbox.files.list('.', { signal: stop.signal }), reason);
		await gone(sandbox, Number(await sandbox.files.read('pid')));
	}));

	over('http', 'fifty at once', async () => {
		const limits = { memoryMb: 32, diskMb: 8, pids: 16 };
		const life = (i) => using(box({ limits }), async (sandbox) => {
			await sandbox.files.write('mine', `${i}`);
			return Number((await sandbox.commands.run(['cat', 'mine'], { check: true })).stdout);
		});
		const all = Array.from({ length: 50 }, (_, i) => i);
		assert.deepEqual(await Promise.all(all.map(life)), all);
	});
	over('unix http', 'its end', () => client.close());
}

test('found as the program finds it', async () => {
	process.env.HOLT_HOME = given.home;
	await using(Sandbox.create(), (sandbox) => sandbox.commands.run('true', { check: true }));
	process.env.HOLT_BASE_URL = given.http;
	await fails(Sandbox.list(), holt.PolicyDeniedError); // the token file is not for HTTP
	process.env.MITOS_API_KEY = given.token;
	assert.deepEqual(await Sandbox.list(), []);
	assert.throws(() => new Client({ baseUrl: 'ftp://x' }), holt.ValidationError);
	assert.throws(() => new Client({ apiKey: 'no token\n' }), holt.ValidationError);
});

test('a hub that lies, is silent, or is not there', async () => {
	const token = 'holt_token-of-this-test-0123456789';
	let heard = 0;
	const said = [];
	const liar = net.createServer((wire) => {
		wire.on('error', () => undefined);
		wire.once('data', () => {
			heard++;
			const one = said.length > 1 ? said.shift() : said[0];
			if (one !== null) wire.end(one);
		});
	});
	await new Promise((resolve) => liar.listen(0, '127.0.0.1', resolve));
	const baseUrl = `http://127.0.0.1:${liar.address().port}`;
	const ask = (options) => new Client({ baseUrl, apiKey: token, retries: 0, ...options }).health();
	const answer = (body, status = '200 OK') => `HTTP/1.1 ${status}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
	for (const [one, code] of [
		['', 'connection_lost'], ['SSH\r\n\r\n', 'connection_lost'],
		['HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}', 'connection_lost'],
		[answer('no JSON'), 'bad_answer'], [answer('<html>', '502 X'), 'bad_answer'],
	]) {
		said.splice(0, 9, one);
		await fails(ask(), holt.TransportError, (e) => assert.equal(e.code, code));
	}
	const error = { code: 'unavailable', cause: token, failure: 'transport_failed', retryable: true };
	said.splice(0, 9, answer(JSON.stringify({ error }), '503 X'));
	heard = 0;
	await fails(ask({ retries: 2 }), holt.TransportError, (e) => {
		assert.ok(!inspect(e, { depth: 9 }).includes(token) && e.cause === '[token]');
	});
	assert.equal(heard, 3);
	said.splice(0, 9, answer('', '503 X'), answer('{"a":1}'));
	said.splice(0, 9, '', answer('{"a":1}'));
	assert.deepEqual(await ask({ retries: 1 }), { a: 1 });
	said.splice(0, 9, null);
	await fails(ask({ requestTimeout: 0.2 }), holt.TimedOutError, (e) => e.code === 'request_timeout');
	liar.close();
	await fails(new Client({ baseUrl: 'unix:/nonexistent', retries: 0 }).health(), holt.TransportError,
		(e) => assert.deepEqual([e.code, e.retryable], ['unreachable', true]));
});

test('answers that are none of a hub', async () => {
	let said, status = 200;
	const liar = http.createServer((_, answer) => answer.writeHead(status).end(said));
	liar.on('upgrade', (request, socket) => {
		const key = request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
		const accept = createHash('sha1').update(key).digest('base64');
		socket.write(`HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
		socket.end(Buffer.concat([Buffer.of(0x81, said.length), Buffer.from(said)]));
	});
	await new Promise((resolve) => liar.listen(0, '127.0.0.1', resolve));
	const client = new Client({ baseUrl: `http://127.0.0.1:${liar.address().port}`, retries: 0 });
	said = '{"id": "x", "exec_id": "x"}';
	const sandbox = await Sandbox.create({ client });
	const { files, commands, ports, network } = sandbox;
	const process = await commands.start('x');

	const values = [null, true, 1, 'x', [], {}, [null], [{}]];
	const names = ['id', 'exec_id', 'result', 'sandboxes', 'snapshots', 'entries', 'content', 'chunks', 'changes', 'forwards',
		'allow', 'host', 'status', 'url', 'deadline_unix', 'exit_code', 'stdout', 'stdout_base64', 'next_offset', 'next_cursor',
		'eof', 'kind', 'stream', 'data', 'is_dir', 'state', 'failure', 'cleanup'];
	const all = (value) => Object.fromEntries(names.map((name) => [name, value]));
	const documents = [...values, ...values.map(all), ...values.map((v) => all([all(v)]))];
	const command = { command: ['x'], state: { retention: 'destroy' } };
	const calls = [
		() => client.health(), () => client.templates(), () => client.snapshots(), () => client.snapshot('x'),
		() => client.auditRecord('x'), () => client.run(command), () => Sandbox.create({ client }),
		() => Sandbox.connect('x', { client }), () => Sandbox.list({ client }), () => Sandbox.restore('x', 1, { client }),
		() => sandbox.info(), () => sandbox.fork(), () => sandbox.snapshot(), () => sandbox.pause(), () => sandbox.resume(),
		() => sandbox.stop(), () => sandbox.setTimeout(1), () => sandbox.diff(), () => files.read('x'), () => files.list(),
		() => files.stat('x'), () => commands.run('x'), () => commands.start('x'), () => commands.list(),
		() => process.info(), () => process.output(), () => process.wait(), () => process.waitFor('x'),
		() => ports.forward(1), () => ports.list(), () => ports.preview(1), () => network.get(),
		() => network.set(NetworkPolicy.denyByDefault()), () => network.allow('x'),
	];
	const streams = [() => commands.stream('x'), () => process.follow(), () => commands.run('x', { onStdout() {} }), () => files.watch()];
	for (const document of documents) {
		said = JSON.stringify(document) + '\n';
		await Promise.all(calls.map((call) => call().then(
			() => assert.ok(document !== null && document !== 1, `${call} takes ${said}`),
			(e) => assert.ok(e instanceof holt.TransportError && e.code === 'bad_answer', `${call}, ${said}: ${e.stack}`),
		)));
		await Promise.all(streams.map((stream) => stream().then((events) => events.get?.())
			.catch((e) => assert.ok(e instanceof holt.HoltError, `${stream}, ${said}: ${e.stack}`))));
	}
	for (const kind of ['chunk', 'dropped', 'exit']) {
		for (const value of values) {
			said = JSON.stringify({ ...all(value), kind, stream: value === 'x' ? 'toString' : 'stdout' });
			await fails(commands.stream('x').then((stream) => stream.wait()), holt.HoltError);
		}
	}
	for (const document of [...values, { exit: 1 }, { exit: { exit_code: 'x' } }, { error: true }, { error: {} }]) {
		said = JSON.stringify(document);
		await fails(commands.open('x').then((channel) => channel.wait(20)), holt.TransportError);
	}
	status = 504;
	for (const result of values) {
		said = JSON.stringify({ error: { failure: 'timeout', code: 'exec_timeout', cause: 'x', context: result }, result });
		await fails(commands.run('x'), holt.HoltError);
	}
	liar.close();
	client.close();
});

test('a hub that is killed', async () => {
	const client = new Client({ baseUrl: given.victim.url, apiKey: given.victim.token });
	const sandbox = await Sandbox.create({ client });
	const stream = await sandbox.commands.stream('echo a; sleep 300');
	assert.equal((await stream.get(20)).text, 'a\n');
	const watch = await sandbox.files.watch();
	const channel = await sandbox.commands.open(['cat']);
	const lost = fails(sandbox.commands.run('touch /tmp/began; sleep 300'), holt.TransportError,
		(e) => e.code === 'connection_lost');
	while (!(await sandbox.files.exists('/tmp/began')));
	process.kill(given.victim.pid, 'SIGKILL');
	await lost;
	for (const one of [stream, watch]) await fails(one.get(20), holt.TransportError);
	await fails(channel.read(20), holt.TransportError);
	await fails(sandbox.close(), holt.CleanupError, (e) => e.code === 'unreachable' && e.retryable);
});
