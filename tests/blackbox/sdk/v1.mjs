// The TypeScript SDK, version 1.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { main } from './life.mjs';
import { transportTo } from './transport.mjs';

await main(async (server) => {
	const client = new Client({ name: 'blackbox-v1', version: '1.0.0' });
	const transport = transportTo(server, StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport);
	let changed = 0;
	client.setNotificationHandler(ResourceListChangedNotificationSchema, () => void changed++);
	await client.connect(transport);
	return {
		client,
		transport,
		changed: () => changed,
		call: (params, options) => client.callTool(params, undefined, options),
	};
});
