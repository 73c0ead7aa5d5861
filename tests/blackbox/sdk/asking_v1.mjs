// The TypeScript SDK, version 1: questions are requests of the server; tasks are those of 2025-11-25.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
	CallToolResultSchema, CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { answers, capabilities, main } from './asking.mjs';

const schemas = [ElicitRequestSchema, CreateMessageRequestSchema, ListRootsRequestSchema];
const jobs = {
	slow_compute: { seconds: 0.2, label: 'job' },
	confirm_delete: { filename: 'f' },
	multi_input: {},
	test_tool_with_task: {},
	failing_job: {},
	protocol_error_job: {},
};

async function run(client, name) {
	const stream = client.experimental.tasks.callToolStream(
		{ name, arguments: jobs[name] }, CallToolResultSchema, { task: { ttl: 60_000 } });
	const types = new Set();
	for await (const m of stream) {
		types.add(m.type === 'taskStatus' ? m.task.status : m.type);
		if (m.type === 'result')
			types.add(m.result.content[0].text);
	}
	return [...types].filter((t) => t !== 'working');
}

await main(async ({ server }, asked) => {
	const client = new Client({ name: 'asked-v1', version: '1.0.0' }, { capabilities });
	const handlers = answers(asked);
	for (const schema of schemas)
		client.setRequestHandler(schema, handlers[schema.shape.method.value]);
	await client.connect(server.url ? new StreamableHTTPClientTransport(new URL(server.url)) : new StdioClientTransport(server));
	return {
		client,
		more: async () => {
			const said = {};
			await client.listTools(); // from here on the SDK knows which are tasks
			for (const name of Object.keys(jobs))
				said[name] = await run(client, name);
			return said;
		},
	};
});
