// What an agent does with sandboxes, through an SDK's client. Reads what to start from standard input,
// prints what it saw as JSON. A step that goes wrong throws.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { end } from './transport.mjs';

const steps = {
	async tools({ client }) {
		const { tools } = await client.listTools(); // from here on the SDK holds results to their schemas
		assert.ok(tools.length >= 6 && tools.length <= 20);
		for (const tool of tools)
			assert.ok(tool.inputSchema && tool.annotations && tool.title, tool.name);
		assert.ok(tools[0].outputSchema);
		return tools.map((tool) => tool.name);
	},

	async server({ client, alive }) {
		await alive();
		assert.deepEqual(client.getServerCapabilities().completions, {});
		for (const name of ['tools', 'resources'])
			assert.deepEqual(client.getServerCapabilities()[name], { listChanged: true }, name);
		assert.ok(client.getInstructions().length > 50);
		return client.getServerVersion();
	},

	async life(box) {
		const { sandbox } = await box.ok('sandbox_create', { pool: 'host', env: { WHO: 'agent' } });
		const wrote = await box.text('sandbox_write_file', { sandbox, path: 'hello.py', content: 'print("grüße", 6 * 7)\n' });
		assert.equal(wrote, `Wrote 24 bytes to /workspace/hello.py in sandbox ${sandbox}`);
		const ran = await box.ok('sandbox_exec', { sandbox, command: 'python3 hello.py; echo $WHO >&2; exit 3' });
		assert.deepEqual([ran.exit_code, ran.stdout, ran.stderr], [3, 'grüße 42\n', 'agent\n']);
		const text = JSON.parse(await box.text('sandbox_exec', { sandbox, command: 'echo x' }));
		assert.deepEqual(text, { exit_code: 0, stdout: 'x\n', stderr: '' });
		assert.equal(await box.text('sandbox_read_file', { sandbox, path: 'hello.py' }), 'print("grüße", 6 * 7)\n');

		const { sandboxes } = await box.ok('sandbox_fork', { sandbox, replicas: 3 });
		await Promise.all(sandboxes.map((id, i) => box.ok('sandbox_write_file', { sandbox: id, path: 'mine', content: `${i}` })));
		const seen = await Promise.all(
			sandboxes.map((id) => box.ok('sandbox_exec', { sandbox: id, command: 'cat mine; ls | wc -l' })));
		assert.deepEqual(seen.map((s) => s.stdout.trim().split(/\s*\n|(?<=^\d)/)), [['0', '2'], ['1', '2'], ['2', '2']]);
		assert.equal((await box.ok('sandbox_exec', { sandbox, command: 'ls' })).stdout, 'hello.py\n');

		for (const id of [sandbox, ...sandboxes])
			assert.equal(await box.text('sandbox_terminate', { sandbox: id }), `Terminated sandbox ${id}`);
	},

	async rest(box) {
		const { sandbox } = await box.ok('sandbox_create', { pool: 'host' });
		assert.ok((await box.ok('sandbox_list', {})).sandboxes.some((s) => s.sandbox === sandbox));
		assert.equal((await box.ok('sandbox_pause', { sandbox })).state, 'paused');
		assert.equal((await box.ok('sandbox_get', { sandbox })).usage.state, 'paused');
		assert.equal((await box.ok('sandbox_resume', { sandbox })).state, 'running');
		await box.ok('sandbox_set_timeout', { sandbox, seconds: 600 });
		assert.deepEqual((await box.ok('sandbox_processes', { sandbox })).processes, []);
		await box.ok('sandbox_write_file', { sandbox, path: 'd/a', content: 'x' });
		await box.ok('sandbox_move_file', { sandbox, path: 'd/a', to: 'd/b' });
		assert.deepEqual((await box.ok('sandbox_list_files', { sandbox, path: 'd' })).entries.map((e) => e.name), ['b']);
		await box.ok('sandbox_remove_file', { sandbox, path: 'd', recursive: true });
		await box.ok('sandbox_terminate', { sandbox });
	},

	async resources(box) {
		const { client } = box;
		const { sandbox } = await box.ok('sandbox_create', { pool: 'host' });
		await box.ok('sandbox_write_file', { sandbox, path: 'grüße', content: 'hello\n' });
		await box.ok('sandbox_write_file', { sandbox, path: 'bytes', content: '/wD/', encoding: 'base64' });
		const uri = `sandbox://${sandbox}/`;
		assert.ok((await client.listResources()).resources.some((r) => r.uri === uri));
		const { resourceTemplates } = await client.listResourceTemplates();
		assert.deepEqual(resourceTemplates.map((t) => t.uriTemplate), ['sandbox://{sandbox}/{+path}']);
		const text = await client.readResource({ uri: `${uri}workspace/${encodeURIComponent('grüße')}` });
		assert.equal(text.contents[0].text, 'hello\n');
		const bytes = await client.readResource({ uri: `${uri}workspace/bytes` });
		assert.equal(bytes.contents[0].blob, '/wD/');
		await assert.rejects(client.readResource({ uri: `${uri}workspace/none` }));
		const { completion } = await client.complete({
			ref: { type: 'ref/resource', uri: resourceTemplates[0].uriTemplate },
			argument: { name: 'sandbox', value: sandbox.slice(0, 12) } });
		assert.deepEqual(completion.values, [sandbox]);
		await box.ok('sandbox_terminate', { sandbox });
		await assert.rejects(client.readResource({ uri }));
	},

	// The list of resources does, with the sandboxes.
	async changes(box) {
		const listening = await box.listen?.({ resourcesListChanged: true });
		const before = box.changed();
		const { sandbox } = await box.ok('sandbox_create', { pool: 'host' });
		await until(() => box.changed() > before);
		const made = box.changed();
		await box.ok('sandbox_terminate', { sandbox });
		await until(() => box.changed() > made);
		await listening?.close();
	},

	// As the SDK of version 1 has them, of 2025-11-25.
	async tasks(box) {
		const tasks = box.client.experimental?.tasks;
		if (!tasks?.callToolStream || !box.client.getServerCapabilities().tasks)
			return 'none';
		const { sandbox } = await box.ok('sandbox_create', { pool: 'host' });
		const seen = [];
		const call = { name: 'sandbox_exec', arguments: { sandbox, command: 'sleep 1; echo done' } };
		for await (const message of tasks.callToolStream(call, undefined, { task: { ttl: 60_000 } })) {
			assert.notEqual(message.type, 'error', message.error);
			if (message.type === 'result')
				assert.equal(dataOf(message.result).stdout, 'done\n');
			seen.push(message.type);
		}
		assert.equal(seen[0], 'taskCreated');
		assert.equal(seen.at(-1), 'result');
		await box.ok('sandbox_terminate', { sandbox });
		return seen;
	},

	async bytes(box) {
		const { sandbox } = await box.ok('sandbox_create', { pool: 'host' });
		const data = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 7) & 255));
		await box.ok('sandbox_write_file', { sandbox, path: 'bin', content: data.toString('base64'), encoding: 'base64' });
		const read = await box.ok('sandbox_read_file', { sandbox, path: 'bin', encoding: 'base64', limit: 1 << 20 });
		assert.ok(Buffer.from(read.content, 'base64').equals(data));
		const piped = await box.ok('sandbox_exec', { sandbox, command: 'cat', args: [], stdin_base64: data.toString('base64'), max_output_bytes: 1 << 20 });
		assert.ok(Buffer.from(piped.stdout_base64, 'base64').equals(data));
		await box.ok('sandbox_terminate', { sandbox });
	},

	async failures(box) {
		const { sandbox } = await box.ok('sandbox_create', { pool: 'host' });
		const codes = [];
		for (const [name, args] of [
			['sandbox_exec', { sandbox: 'sbx-none', command: 'true' }],
			['sandbox_exec', { sandbox, comand: 'true' }],
			['sandbox_exec', { sandbox, command: 'true', timeout_seconds: '9' }],
			['sandbox_read_file', { sandbox, path: 'missing' }],
			['sandbox_create', { pool: 'none' }],
		]) {
			const result = await box.call({ name, arguments: args });
			assert.equal(result.isError, true);
			const error = JSON.parse(result.content[0].text);
			assert.deepEqual(Object.keys(error).filter((key) => key !== 'pointer'),
				['code', 'cause', 'remediation', 'failure', 'retryable']);
			codes.push(error.code);
		}
		await assert.rejects(box.call({ name: 'sandbox_none', arguments: {} }), /-32602|not found|unknown/i);
		await box.ok('sandbox_terminate', { sandbox });
		return codes;
	},

	async concurrent(box) {
		const { sandbox } = await box.ok('sandbox_create', { pool: 'host' });
		const runs = Array.from({ length: 16 }, (_, i) =>
			box.ok('sandbox_exec', { sandbox, command: `echo >>here; until [ -e go ]; do sleep 0.05; done; echo ${i}` }));
		await until(async () => (await box.ok('sandbox_exec', { sandbox, command: 'cat here | wc -l' })).stdout === '16\n');
		const pings = [];
		for (let i = 0; i < 20; i++) {
			const at = performance.now();
			await box.alive();
			pings.push(performance.now() - at);
		}
		await box.ok('sandbox_write_file', { sandbox, path: 'go', content: '' });
		assert.deepEqual((await Promise.all(runs)).map((r) => r.stdout), Array.from({ length: 16 }, (_, i) => `${i}\n`));
		await box.ok('sandbox_terminate', { sandbox });
		return { pings_ms: Math.max(...pings) };
	},

	async cancel(box) {
		const { sandbox } = await box.ok('sandbox_create', { pool: 'host' });
		const abort = new AbortController();
		const run = box.call(
			{ name: 'sandbox_exec', arguments: { sandbox, command: 'sleep 1000 & sleep 1000', timeout_seconds: 1000 } },
			{ signal: abort.signal });
		const sleeping = async () => {
			const r = await box.ok('sandbox_exec', { sandbox, command: 'cat /proc/[0-9]*/comm | grep -cx sleep' });
			return Number(r.stdout);
		};
		await until(async () => (await sleeping()) === 2);
		abort.abort('enough');
		await assert.rejects(run, /enough|abort/i);
		await until(async () => (await sleeping()) === 0);
		await box.ok('sandbox_terminate', { sandbox });
	},

	// It is told of every second: where the server is a process, until the call has outlasted the client's timeout.
	async progress(box) {
		const { sandbox } = await box.ok('sandbox_create', { pool: 'host' });
		const told = [];
		const run = box.call(
			{ name: 'sandbox_exec', arguments: { sandbox, command: 'until [ -e told ]; do sleep 0.05; done', timeout_seconds: 60 } },
			{ onprogress: (p) => told.push(p), timeout: 6000, resetTimeoutOnProgress: true, maxTotalTimeout: 60000 });
		await Promise.race([run, until(() => told.length >= (box.transport.pid ? 7 : 2))]);
		await box.ok('sandbox_write_file', { sandbox, path: 'told', content: '' });
		assert.equal(dataOf(await run).exit_code, 0);
		assert.ok(told.every((p) => p.total === 60 && p.message), JSON.stringify(told));
		await box.ok('sandbox_terminate', { sandbox });
		return told;
	},

	async large(box) {
		const { sandbox } = await box.ok('sandbox_create', { pool: 'host' });
		const content = 'ü'.repeat(3 << 20);
		await box.ok('sandbox_write_file', { sandbox, path: 'big', content });
		const read = await box.ok('sandbox_read_file', { sandbox, path: 'big', limit: 2 << 20 });
		assert.equal(read.content, 'ü'.repeat(1 << 20));
		await box.ok('sandbox_terminate', { sandbox });
	},
};

// What a tool has told: as structured content, or in its text and, of what that does not tell, in _meta.
function dataOf(result) {
	if (result.structuredContent)
		return result.structuredContent;
	const facts = result._meta?.['holt/facts'] ?? {};
	const text = result.content[0].text;
	return facts.encoding ? { content: text, ...facts } : { ...facts, ...JSON.parse(text) };
}

async function until(condition) {
	const end = Date.now() + 60_000;
	while (!(await condition())) {
		assert.ok(Date.now() < end, 'it did not come about');
		await new Promise((done) => setTimeout(done, 20));
	}
}

export async function main(connect) {
	const { server, mode, without = [] } = JSON.parse(readFileSync(0, 'utf8'));
	const box = await connect({ ...server, stderr: 'inherit', maxBufferSize: 64 << 20 }, mode);
	box.alive ??= () => box.client.ping();
	const call = async (name, args) => {
		const result = await box.call({ name, arguments: args });
		assert.ok(!result.isError, result.content?.[0]?.text);
		return result;
	};
	box.ok = async (name, args) => dataOf(await call(name, args));
	box.text = async (name, args) => (await call(name, args)).content[0].text;

	const seen = { version: box.version };
	for (const [name, step] of Object.entries(steps))
		if (!without.includes(name))
			seen[name] = (await step(box)) ?? true;
	seen.pid = box.transport.pid;
	await box.client.close();
	end(seen);
}
