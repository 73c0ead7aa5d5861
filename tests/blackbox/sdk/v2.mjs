// The TypeScript SDK, version 2, in one of its ways to find the era.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { main } from './life.mjs';
import { transportTo } from './transport.mjs';

await main(async (server, mode) => {
	const client = new Client({ name: 'blackbox-v2', version: '1.0.0' }, { versionNegotiation: { mode } });
	const transport = transportTo(server, StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport);
	let changed = 0;
	client.setNotificationHandler('notifications/resources/list_changed', () => void changed++);
	await client.connect(transport);
	const version = client.getNegotiatedProtocolVersion();
	return {
		client,
		transport,
		changed: () => changed,
		listen: version >= '2026' ? (what) => client.listen(what) : undefined,
		call: (params, options) => client.callTool(params, options),
		alive: version >= '2026' ? () => client.discover() : undefined, // it has no ping
		version,
	};
});
