// One server of another library: node peer.mjs KIND, with KIND sdk1 (stateful, sessions), sdk1-stateless, sdk2 (both eras),
// sdk1-stdio or sdk2-stdio. It prints its URL when it listens. What it has is the same in all of them.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

const info = { name: 'peer', version: '1' };
const capabilities = { tools: { listChanged: true }, resources: {}, prompts: {}, completions: {}, logging: {} };
const answers = {
	'tools/list': () => ({ tools: [
		{ name: 'echo', description: 'Gives its argument back.', inputSchema: { type: 'object', properties: { text: { type: 'string' } } } },
		{ name: 'tell', description: 'Progress and a log message.', inputSchema: { type: 'object' } },
		{ name: 'fail', description: 'Fails.', inputSchema: { type: 'object' } },
	] }),
	'tools/call': async ({ name, arguments: given, _meta }, tell) => {
		if (name === 'fail') return { content: [{ type: 'text', text: 'no' }], isError: true };
		for (const progress of name === 'tell' ? [1, 2, 3] : [])
			await tell({ method: 'notifications/progress', params: { progressToken: _meta.progressToken, progress, total: 3 } });
		return { content: [{ type: 'text', text: given?.text ?? name }] };
	},
	'resources/list': () => ({ resources: [{ uri: 'peer://a', name: 'a' }] }),
	'resources/read': ({ uri }) => ({ contents: [{ uri, text: 'contents' }] }),
	'prompts/list': () => ({ prompts: [{ name: 'p', arguments: [{ name: 'x' }] }] }),
	'prompts/get': () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'prompt' } }] }),
	'completion/complete': () => ({ completion: { values: ['one', 'two'] } }),
};

async function sdk1() {
	const { Server } = await import('@modelcontextprotocol/sdk/server/index.js');
	const types = await import('@modelcontextprotocol/sdk/types.js');
	const schemas = { 'tools/list': 'ListTools', 'tools/call': 'CallTool', 'resources/list': 'ListResources',
		'resources/read': 'ReadResource', 'prompts/list': 'ListPrompts', 'prompts/get': 'GetPrompt', 'completion/complete': 'Complete' };
	const server = new Server(info, { capabilities });
	for (const [method, name] of Object.entries(schemas))
		server.setRequestHandler(types[`${name}RequestSchema`],
			(request, extra) => answers[method](request.params ?? {}, extra.sendNotification));
	return server;
}

async function sdk2() {
	const { Server } = await import('@modelcontextprotocol/server');
	return () => {
		const server = new Server(info, { capabilities });
		for (const method of Object.keys(answers))
			server.setRequestHandler(method, (request, context) => answers[method](request.params ?? {}, context.mcpReq.notify));
		return server;
	};
}

function serve(onRequest) {
	const http = createServer((req, res) => onRequest(req, res).catch((e) => { console.error(e); res.destroy(); }));
	http.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
}

async function body(req) {
	const pieces = [];
	for await (const piece of req) pieces.push(piece);
	return pieces.length ? JSON.parse(Buffer.concat(pieces)) : undefined;
}

async function sdk1Http(sessionIdGenerator) {
	const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js');
	const sessions = new Map();
	serve(async (req, res) => {
		let transport = sessions.get(req.headers['mcp-session-id']);
		if (!transport) {
			transport = new StreamableHTTPServerTransport({ sessionIdGenerator,
				onsessioninitialized: (id) => sessions.set(id, transport) });
			await (await sdk1()).connect(transport);
		}
		await transport.handleRequest(req, res, await body(req));
	});
}

const kinds = {
	sdk1: () => sdk1Http(randomUUID),
	'sdk1-stateless': () => sdk1Http(undefined),
	sdk2: async () => {
		const { createMcpHandler } = await import('@modelcontextprotocol/server');
		const { toNodeHandler } = await import('@modelcontextprotocol/node');
		const handler = toNodeHandler(createMcpHandler(await sdk2()));
		serve(async (req, res) => handler(req, res));
	},
	'sdk1-stdio': async () => {
		const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
		await (await sdk1()).connect(new StdioServerTransport());
	},
	'sdk2-stdio': async () => {
		const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
		serveStdio(await sdk2());
	},
};
await kinds[process.argv[2]]();
