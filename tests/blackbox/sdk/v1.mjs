// The TypeScript SDK, version 1.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { main } from './life.mjs';

await main(async (server) => {
	const client = new Client({ name: 'blackbox-v1', version: '1.0.0' });
	const transport = new StdioClientTransport(server);
	await client.connect(transport);
	return {
		client,
		transport,
		call: (params, options) => client.callTool(params, undefined, options),
	};
});
