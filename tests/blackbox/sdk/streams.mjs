// What the SDKs' HTTP clients do with streams, sessions and questions, against the server of tests/http.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { end } from './transport.mjs';

const { url, token, sdk, mode, sse } = JSON.parse(readFileSync(0, 'utf8'));
const v1 = sdk === 1;
const { Client } = await import(v1 ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client');
const http = await import(v1 ? '@modelcontextprotocol/sdk/client/streamableHttp.js' : '@modelcontextprotocol/client');
const old = await import(v1 ? '@modelcontextprotocol/sdk/client/sse.js' : '@modelcontextprotocol/client');
const types = v1 ? await import('@modelcontextprotocol/sdk/types.js') : undefined;

const client = new Client({ name: 'streams', version: '1.0.0' },
	{ capabilities: { elicitation: { form: {} } }, ...(v1 ? {} : { versionNegotiation: { mode } }) });
const Transport = sse ? old.SSEClientTransport : http.StreamableHTTPClientTransport;
const transport = new Transport(new URL(url), {
	requestInit: { headers: { Authorization: `Bearer ${token}` } },
	reconnectionOptions: { initialReconnectionDelay: 10, maxReconnectionDelay: 100, reconnectionDelayGrowFactor: 1, maxRetries: 10 },
});

const seen = { logs: [], changed: 0 };
const on = (name, method, run) =>
	v1 ? client.setNotificationHandler(types[name], run) : client.setNotificationHandler(method, run);
on('LoggingMessageNotificationSchema', 'notifications/message', (n) => void seen.logs.push(n.params.data));
on('ToolListChangedNotificationSchema', 'notifications/tools/list_changed', () => void seen.changed++);
const answer = () => ({ action: 'accept', content: { name: 'Ada' } });
if (v1)
	client.setRequestHandler(types.ElicitRequestSchema, answer);
else
	client.setRequestHandler('elicitation/create', answer);

await client.connect(transport);
const modern = !v1 && client.getNegotiatedProtocolVersion() >= '2026';
seen.version = modern ? 'modern' : 'legacy';

const call = async (name, args, options) => {
	const params = { name, arguments: args };
	if (modern)
		params._meta = { 'io.modelcontextprotocol/logLevel': 'debug' };
	const result = await (v1 ? client.callTool(params, undefined, options) : client.callTool(params, options));
	assert.ok(!result.isError, JSON.stringify(result));
	return result.content[0].text;
};

async function until(condition) {
	const end = Date.now() + 60_000;
	while (!(await condition())) {
		assert.ok(Date.now() < end, 'it did not come about');
		await new Promise((done) => setTimeout(done, 10));
	}
}

// many at once, which are answered in the wrong order
const many = Array.from({ length: 40 }, (_, i) => call('hold', { key: `${i}` }));
for (let i = 39; i >= 0; i--)
	await until(async () => (await call('release', { key: `${i}` })) === 'released');
assert.deepEqual(await Promise.all(many), Array.from({ length: 40 }, (_, i) => `${i}`));

// what is said before the answer
assert.equal(await call('say', { n: 5, bytes: 20 }), 'said');
await until(() => seen.logs.length === 5);

// a question in the middle of a call
assert.equal(await call('ask', {}), 'Ada');

// a large answer behind something else
assert.equal((await call('large', { bytes: 5 << 20, say: 1 })).length, 5 << 20);

// what belongs to no request
if (modern) {
	const listening = await client.listen({ toolsListChanged: true });
	await until(async () => (await call('change', {})) && seen.changed > 0);
	await listening.close();
} else {
	await until(async () => (await call('change', {})) && seen.changed > 0);
}

// the server sends it away, and it comes back for the answer
if (!modern && !sse) {
	const away = call('disconnect', { key: 'away' });
	await until(async () => (await call('release', { key: 'away' })) === 'released');
	assert.equal(await away, 'away');
	assert.ok(seen.logs.includes('away'));
}

// cancelled in the middle
const before = JSON.parse(await call('stats', {})).cancelled;
const abort = new AbortController();
const held = call('hold', { key: 'cancelled' }, { signal: abort.signal });
await until(async () => JSON.parse(await call('stats', {})).held === 1);
abort.abort('enough');
await assert.rejects(held);
await until(async () => JSON.parse(await call('stats', {})).cancelled === before + 1);

// the session ends, and is no more
if (!modern && !sse) {
	await transport.terminateSession();
	await assert.rejects(call('echo', { text: 'x' }));
}
await client.close();
end(seen);
