// The TypeScript SDK, version 2: it answers questions in both eras by itself, and knows no tasks.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { answers, capabilities, main } from './asking.mjs';

await main(async ({ server, mode }, asked) => {
	const client = new Client({ name: 'asked-v2', version: '1.0.0' }, { versionNegotiation: { mode }, capabilities });
	for (const [method, handler] of Object.entries(answers(asked)))
		client.setRequestHandler(method, handler);
	await client.connect(server.url ? new StreamableHTTPClientTransport(new URL(server.url)) : new StdioClientTransport(server));
	return { client, version: client.getNegotiatedProtocolVersion() };
});
