// Calls tools of a gateway with the TypeScript SDK: version 1, or version 2 in an era. Reads {server, sdk, mode, calls} from standard
// input, prints what was asked, what the results and the progress were, and the output schemas that were listed.
import { readFileSync } from 'node:fs';
import { end, transportTo } from './transport.mjs';

const { server, sdk, mode, calls, can } = JSON.parse(readFileSync(0, 'utf8'));
const asked = [], progress = [];
const filled = { name: 'Alice', check: true, username: 'alice', email: 'a@b.example', confirm: true, color: 'blue', interpretation: 'snake' };
const handlers = {
	'elicitation/create': async ({ params }) => {
		asked.push(params);
		return params.mode === 'url' ? { action: 'accept' } : { action: 'accept', content: filled };
	},
	'sampling/createMessage': async ({ params }) => {
		asked.push(params);
		return { role: 'assistant', model: 'm', content: { type: 'text', text: 'Paris' } };
	},
};
const capabilities = can ?? { elicitation: { form: {}, url: {} }, sampling: {} };

async function connect() {
	if (sdk === 'v1') {
		const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
		const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
		const { CreateMessageRequestSchema, ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
		const client = new Client({ name: 'v1', version: '1' }, { capabilities });
		if (capabilities.elicitation)
			client.setRequestHandler(ElicitRequestSchema, handlers['elicitation/create']);
		if (capabilities.sampling)
			client.setRequestHandler(CreateMessageRequestSchema, handlers['sampling/createMessage']);
		await client.connect(transportTo(server, null, StreamableHTTPClientTransport));
		return client;
	}
	const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
	const client = new Client({ name: 'v2', version: '1' }, { versionNegotiation: { mode }, capabilities });
	for (const [method, handler] of Object.entries(handlers)) {
		if (capabilities[method.split('/')[0]])
			client.setRequestHandler(method, handler);
	}
	await client.connect(transportTo(server, null, StreamableHTTPClientTransport));
	return client;
}

const client = await connect(), said = [];
const { tools } = await client.listTools();
const call = (params, options) => (sdk === 'v1' ? client.callTool(params, undefined, options) : client.callTool(params, options));
for (const [name, args] of calls) {
	try {
		said.push(await call({ name, arguments: args }, { onprogress: (p) => progress.push(p.progress) }));
	} catch (e) {
		said.push({ error: String(e) });
	}
}
await client.close();
end({ asked, said, progress, outputs: tools.filter((t) => t.outputSchema).map((t) => t.name) });
