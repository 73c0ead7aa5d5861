// What agents that write code do, through clients of the TypeScript SDK, each over the way that it is told.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { end, transportTo } from './transport.mjs';

const { servers, edits } = JSON.parse(readFileSync(0, 'utf8'));

async function connect(server) {
	const client = new Client({ name: 'coding', version: '1.0.0' });
	await client.connect(transportTo(server, StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport));
	await client.listTools(); // from here on the SDK holds results to their schemas
	const call = async (name, args) => {
		const said = await client.callTool({ name, arguments: args });
		const texts = said.content.map((part) => part.text);
		return { failed: said.isError ? JSON.parse(texts[0]).code : null, texts };
	};
	const ok = async (name, args) => {
		const said = await call(name, args);
		assert.equal(said.failed, null, said.texts.join());
		return said.texts[0];
	};
	return { client, call, ok };
}

// One agent mends a program that it has found, as it would in a project.
async function mend({ call, ok }, name) {
	await ok('Write', { file_path: `${name}/lib/sum.js`, content: 'export const sum = (a, b) => a - b;\n' });
	await ok('Write', { file_path: `${name}/test.js`, content: "import { sum } from './lib/sum.js';\n" });
	assert.equal(await ok('Glob', { pattern: '**/sum.*', path: name }), `${name}/lib/sum.js\n`);
	assert.equal(await ok('Grep', { pattern: 'a - b', path: name }),
		`${name}/lib/sum.js:1:export const sum = (a, b) => a - b;\n`);
	assert.equal(await ok('Read', { file_path: `${name}/lib/sum.js` }), '1\texport const sum = (a, b) => a - b;\n');
	await ok('Edit', { file_path: `${name}/lib/sum.js`, old_string: 'a - b', new_string: 'a + b' });
	assert.equal((await call('Edit', { file_path: `${name}/lib/sum.js`, old_string: 'a - b', new_string: '' })).failed,
		'invalid_arguments');
	assert.equal((await call('Read', { file_path: '../nowhere' })).failed, 'path_not_found');
}

// All edit one file at once. What is stale is tried again: the failure has made it known.
async function compete(agents, file) {
	let stale = 0;
	await Promise.all(agents.map(async ({ call, ok }, who) => {
		await ok('Read', { file_path: file });
		let next = 0;
		await Promise.all(Array.from({ length: 8 }, async () => {
			while (next < edits) {
				const mark = `${who}-${next++};`;
				for (;;) {
					const said = await call('Edit', { file_path: file, old_string: mark, new_string: `done ${mark}` });
					if (!said.failed)
						break;
					assert.equal(said.failed, 'file_changed', said.texts.join());
					stale++;
				}
			}
		}));
	}));
	return stale;
}

const agents = await Promise.all(servers.map(connect));
await Promise.all(agents.map((agent, i) => mend(agent, `p${i}`)));
// A session knows nothing of what another has read.
assert.equal((await agents[0].call('Edit', { file_path: 'p1/lib/sum.js', old_string: 'a', new_string: 'b' })).failed,
	agents.length > 1 && !servers[0].command ? 'file_not_read' : 'path_not_found');
const lines = agents.map((_, who) => Array.from({ length: edits }, (_, n) => `${who}-${n};\n`).join('')).join('');
await agents[0].ok('Write', { file_path: 'shared', content: lines });
const stale = await compete(agents, 'shared');
await Promise.all(agents.map(({ client }) => client.close()));
end({ stale });
