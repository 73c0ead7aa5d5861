// Finds failing tests of projects, runs them again, edits the cause and runs all, by the TypeScript SDK: what an agent does.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { text } from 'node:stream/consumers';
import { end, transportTo } from './transport.mjs';

const { server, projects } = JSON.parse(await text(process.stdin));
const client = new Client({ name: 'blackbox-coding', version: '1.0.0' });
await client.connect(transportTo(server, StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport));

async function call(name, args = {}) {
	const { content, isError, _meta } = await client.callTool({ name, arguments: args });
	return { text: content.map((part) => part.text).join('\n'), isError, facts: _meta?.['holt/facts'] };
}

const seen = { tools: (await client.listTools()).tools.map((tool) => tool.name) };
for (const { path, file, old, fixed } of projects) {
	const steps = (seen[path] = {});
	steps.tests = await call('run_tests', { path });
	steps.failures = await call('last_test_failures');
	steps.again = await call('run_failing_tests');
	steps.read = await call('Read', { file_path: file });
	steps.edit = await call('Edit', { file_path: file, old_string: old, new_string: fixed });
	steps.mended = await call('run_failing_tests');
	steps.all = await call('run_tests', { path });
	steps.none = await call('run_failing_tests');
}
await client.close();
end(seen);
