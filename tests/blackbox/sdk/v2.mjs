// The TypeScript SDK, version 2: asks for the modern protocol first, and falls back to initialize.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { main } from './life.mjs';

await main(async (server, mode) => {
	const client = new Client({ name: 'blackbox-v2', version: '1.0.0' }, { versionNegotiation: { mode } });
	const transport = new StdioClientTransport(server);
	await client.connect(transport);
	return {
		client,
		transport,
		call: (params, options) => client.callTool(params, options),
		version: client.getNegotiatedProtocolVersion(),
	};
});
