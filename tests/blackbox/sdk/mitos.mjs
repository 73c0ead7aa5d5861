// The calls of mitos' SDK in TypeScript: REST by fetch, and Connect's frames of JSON. What it asks is in standard input.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';

const asked = JSON.parse(readFileSync(0, 'utf8'));
const auth = { Authorization: `Bearer ${asked.token}` };

async function rest(method, path, body, headers = {}) {
	const reply = await fetch(asked.url + path, { method, body: body && JSON.stringify(body),
		headers: { ...auth, 'Content-Type': 'application/json', ...headers } });
	if (!reply.ok)
		throw new Error(`${method} ${path}: ${reply.status} ${await reply.text()}`);
	return reply.json();
}

function frame(message) {
	const text = Buffer.from(JSON.stringify(message));
	const head = Buffer.alloc(5);
	head.writeUInt32BE(text.length, 1);
	return Buffer.concat([head, text]);
}

async function stream(rpc, ...messages) {
	const reply = await fetch(`${asked.url}/sandbox.v1.Sandbox/${rpc}`, { method: 'POST', body: Buffer.concat(messages.map(frame)),
		headers: { ...auth, 'Content-Type': 'application/connect+json', 'Connect-Protocol-Version': '1',
			'X-Sandbox-Id': asked.sandbox } });
	const body = Buffer.from(await reply.arrayBuffer());
	const said = [];
	for (let at = 0; at < body.length;) {
		const n = body.readUInt32BE(at + 1);
		const message = JSON.parse(body.subarray(at + 5, at + 5 + n));
		if (body[at] !== 2)
			said.push(message);
		else if (message.error)
			throw new Error(JSON.stringify(message));
		at += 5 + n;
	}
	return said;
}

const joined = (said, name) => Buffer.concat(said.filter((m) => m[name]).map((m) => Buffer.from(m[name], 'base64'))).toString();

async function exec(command, timeoutSeconds = 30) {
	const said = await stream('ExecStream', { command, timeoutSeconds });
	return { exitCode: said.at(-1).exit.exitCode, stdout: joined(said, 'stdout'), stderr: joined(said, 'stderr') };
}

const named = (list, id, ...keys) => {
	const found = list.find((one) => one.id === id);
	return found && Object.fromEntries(keys.map((key) => [key, found[key]]));
};

const got = {};
const key = () => ({ 'Idempotency-Key': randomUUID().replaceAll('-', '') });
const made = await rest('POST', '/v1/templates', { id: asked.template, init_wait_seconds: 1 }, key());
got.create_template = { id: made.id, ready: made.ready };
got.list_templates_contains = named(await rest('GET', '/v1/templates'), asked.template, 'id', 'ready');
const fork = await rest('POST', '/v1/fork', { template: asked.template, id: asked.sandbox }, key());
got.fork = { id: fork.id, endpoint_present: fork.endpoint.length > 0 };
const listed = await rest('GET', '/v1/sandboxes');
got.list_sandboxes_contains = named(listed, asked.sandbox, 'id', 'template_id');
got.timed = listed.every((s) => typeof s.fork_time_ms === 'number') && !made.created_at.startsWith('1970');
got.exec = await exec('echo out; echo err >&2; exit 3');
got.late = (await exec('sleep 9', 1)).exitCode;
await stream('WriteFile', { open: { path: 'd/f', mode: 0o644 } }, { data: Buffer.from('grüße').toString('base64') });
got.file = joined(await stream('ReadFile', { path: 'd/f' }), 'data');
await rest('POST', '/sandbox.v1.Sandbox/Remove', { path: 'd' }, { 'X-Sandbox-Id': asked.sandbox });
got.gone = (await stream('ReadFile', { path: 'd/f' }).catch(() => [])).length === 0;
await rest('DELETE', `/v1/sandboxes/${asked.sandbox}`);
got.terminate = !(await rest('GET', '/v1/sandboxes')).some((s) => s.id === asked.sandbox && s.state === 'running');
console.log(JSON.stringify(got));
process.exit(0);
