// One server of another library with the tool `echo`: node peer.mjs KIND [PORT]
// KIND: sdk1 (TypeScript SDK v1's McpServer, sessions, JSON replies), sdk1-low (its Server), sdk2 (v2, both eras), bare (node:http alone);
// sdk1-stdio, sdk2-stdio. Says `ready` on standard error when it listens.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

const [kind, port] = process.argv.slice(2);
const info = { name: 'peer', version: '1' };
const tool = { name: 'echo', description: 'Gives its argument back.',
	inputSchema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] } };
const answer = (request) => ({ content: [{ type: 'text', text: request.params.arguments.message }] });

function serve(onRequest) {
	const http = createServer(onRequest);
	http.keepAliveTimeout = 60000;
	http.listen(Number(port), '127.0.0.1', () => console.error('ready'));
}

async function body(req) {
	const pieces = [];
	for await (const piece of req) pieces.push(piece);
	return JSON.parse(Buffer.concat(pieces));
}

// What both SDKs' documentation has servers made with: arguments are validated against the tool's schema.
async function makers(module) {
	const [{ McpServer }, z] = await Promise.all([import(module), import('zod/v4')]);
	return () => {
		const server = new McpServer(info);
		server.registerTool('echo', { description: tool.description, inputSchema: z.object({ message: z.string() }) },
			({ message }) => ({ content: [{ type: 'text', text: message }] }));
		return server;
	};
}

const sdk1 = () => makers('@modelcontextprotocol/sdk/server/mcp.js');
const sdk2 = () => makers('@modelcontextprotocol/server');

// What McpServer of v1 stands on, deprecated: requests are dispatched, arguments taken as they come.
async function sdk1Low() {
	const { Server } = await import('@modelcontextprotocol/sdk/server/index.js');
	const { ListToolsRequestSchema, CallToolRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
	return () => {
		const server = new Server(info, { capabilities: { tools: {} } });
		server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [tool] }));
		server.setRequestHandler(CallToolRequestSchema, answer);
		return server;
	};
}

async function sdk1Http(make) {
	const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js');
	const sessions = new Map();
	serve(async (req, res) => {
		let transport = sessions.get(req.headers['mcp-session-id']);
		if (!transport) {
			transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, enableJsonResponse: true,
				onsessioninitialized: (id) => sessions.set(id, transport) });
			await make().connect(transport);
		}
		await transport.handleRequest(req, res, req.method === 'POST' ? await body(req) : undefined);
	});
}

const kinds = {
	sdk1: async () => sdk1Http(await sdk1()),
	'sdk1-low': async () => sdk1Http(await sdk1Low()),
	sdk2: async () => {
		const { createMcpHandler } = await import('@modelcontextprotocol/server');
		const { toNodeHandler } = await import('@modelcontextprotocol/node');
		serve(toNodeHandler(createMcpHandler(await sdk2())));
	},
	bare: () => serve(async (req, res) => {
		const text = JSON.stringify({ jsonrpc: '2.0', id: (await body(req)).id, result: { content: [{ type: 'text', text: 'hello' }] } });
		res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }).end(text);
	}),
	'sdk1-stdio': async () => {
		const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
		await (await sdk1())().connect(new StdioServerTransport());
	},
	'sdk2-stdio': async () => {
		const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
		serveStdio(await sdk2());
	},
};
await kinds[kind]();
