// A server built on an SDK that is not ours, with something of every kind: node server.mjs SDK KIND [PORT]
// SDK: v1, v2. KIND: stdio; stateful, stateless, sse (v1); dual, modern (v2). Over HTTP it says `ready`.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

const [sdk, kind, port] = process.argv.slice(2);
const info = { name: `peer-${sdk}`, version: '1.2.3', title: 'A peer' };
const capabilities = { tools: {}, resources: {}, prompts: {}, completions: {}, logging: {} };
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const form = { message: 'Who are you?', requestedSchema: { type: 'object', required: ['name'], properties: {
	name: { type: 'string', title: 'Name', minLength: 2 }, age: { type: 'integer', default: 7, minimum: 0 },
	vip: { type: 'boolean', default: true }, color: { type: 'string', enum: ['red', 'green'] } } } };

const object = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required });
const tools = [
	{ name: 'echo', description: 'Says it.', inputSchema: object({ message: { type: 'string' } }) },
	{ name: 'sum', description: 'Adds.', inputSchema: object({ a: { type: 'integer' }, b: { type: 'number' } }),
		outputSchema: object({ sum: { type: 'number' } }) },
	{ name: 'types', description: 'Says what came.', inputSchema: { ...object({ s: { type: 'string' }, i: { type: 'integer' },
		b: { type: 'boolean' }, l: { type: 'array', items: { type: 'number' } }, o: { type: 'object' },
		n: { type: ['number', 'null'] }, e: { enum: [1, 2] } }, []), additionalProperties: false } },
	{ name: 'media', description: 'Shows all kinds of content.', inputSchema: object({}) },
	{ name: 'fail', description: 'Fails.', inputSchema: object({}) },
	{ name: 'refuse', description: 'Is an error of the protocol.', inputSchema: object({}) },
	{ name: 'ask', description: 'Asks who you are.', inputSchema: object({}) },
	{ name: 'hold', description: 'Never ends.', inputSchema: object({}) },
	{ name: 'evil', description: 'Says \x1b]0;owned\x07what terminals obey.\u202e', inputSchema: object({}) },
];
const text = (value) => ({ content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }] });

// What ask needs of the SDK is the caller's: it gives the form's answer, or what to return in its place.
async function call(name, args, ask, signal) {
	switch (name) {
	case 'echo': return text(args.message);
	case 'sum': return { ...text({ sum: args.a + args.b }), structuredContent: { sum: args.a + args.b } };
	case 'types': return text(args ?? {});
	case 'media': return { content: [
		{ type: 'image', data: png, mimeType: 'image/png' }, { type: 'audio', data: 'UklGRg==', mimeType: 'audio/wav' },
		{ type: 'resource', resource: { uri: 'peer://embedded', mimeType: 'text/plain', text: 'embedded\n' } },
		{ type: 'resource_link', uri: 'peer://text', name: 'text', description: 'Linked.' }] };
	case 'fail': return { ...text('it failed'), isError: true };
	case 'ask': return ask();
	case 'hold':
		console.error('held');
		await new Promise((_, reject) => signal.addEventListener('abort', () => { console.error('cancelled'); reject(new Error('cancelled')); }));
		break;
	case 'evil': return { content: [{ type: 'text', text: 'a\x1b[31mred\x07\x9b1m\u202eb\r\nnext\tcolumn' }], _meta: { '\x9bkey': '\x7f\u2028' } };
	}
	throw Object.assign(new Error(`no such thing: ${name}`), { code: -32602, data: { name } });
}

const handlers = {
	'tools/list': () => ({ tools }),
	'resources/list': () => ({ resources: [
		{ uri: 'peer://text', name: 'text', title: 'Text', mimeType: 'text/plain', size: 5 },
		{ uri: 'peer://blob', name: 'blob', mimeType: 'image/png' }] }),
	'resources/templates/list': () => ({ resourceTemplates: [{ uriTemplate: 'peer://item/{id}', name: 'item' }] }),
	'resources/read': ({ params: { uri } }) => {
		if (uri === 'peer://blob') return { contents: [{ uri, mimeType: 'image/png', blob: png }] };
		if (uri !== 'peer://text' && !uri.startsWith('peer://item/')) throw Object.assign(new Error('not there'), { code: -32602 });
		return { contents: [{ uri, mimeType: 'text/plain', text: `this is ${uri}` }] };
	},
	'prompts/list': () => ({ prompts: [{ name: 'greet', description: 'Greets.', arguments: [
		{ name: 'whom', description: 'A name.', required: true }, { name: 'how' }] }] }),
	'prompts/get': ({ params }) => ({ description: 'A greeting.', messages: [
		{ role: 'user', content: { type: 'text', text: `Greet ${params.arguments?.whom} ${params.arguments?.how ?? 'well'}.` } }] }),
	'completion/complete': ({ params }) => ({ completion: {
		values: ['ada', 'adam', 'bob'].filter((v) => v.startsWith(params.argument.value)), hasMore: false } }),
};

async function v1() {
	const { Server } = await import('@modelcontextprotocol/sdk/server/index.js');
	const types = await import('@modelcontextprotocol/sdk/types.js');
	const schemas = { 'tools/list': types.ListToolsRequestSchema, 'resources/list': types.ListResourcesRequestSchema,
		'resources/templates/list': types.ListResourceTemplatesRequestSchema, 'resources/read': types.ReadResourceRequestSchema,
		'prompts/list': types.ListPromptsRequestSchema, 'prompts/get': types.GetPromptRequestSchema,
		'completion/complete': types.CompleteRequestSchema };
	return () => {
		const server = new Server(info, { capabilities });
		for (const [method, schema] of Object.entries(schemas)) server.setRequestHandler(schema, handlers[method]);
		server.setRequestHandler(types.CallToolRequestSchema, ({ params }, extra) =>
			call(params.name, params.arguments, async () => text(await extra.sendRequest(
				{ method: 'elicitation/create', params: form }, types.ElicitResultSchema)), extra.signal));
		return server;
	};
}

async function v2() {
	const { Server, inputRequired } = await import('@modelcontextprotocol/server');
	return (context) => {
		const server = new Server(info, { capabilities });
		for (const [method, handler] of Object.entries(handlers)) server.setRequestHandler(method, handler);
		server.setRequestHandler('tools/call', ({ params }, ctx) => {
			const ask = async () => {
				const answer = ctx.mcpReq.inputResponses?.who;
				if (answer) return text(answer);
				if (context?.era === 'legacy') return text(await ctx.mcpReq.elicitInput(form));
				return inputRequired({ inputRequests: { who: inputRequired.elicit(form) } });
			};
			return call(params.name, params.arguments, ask, ctx.mcpReq.signal);
		});
		return server;
	};
}

async function body(req) {
	const pieces = [];
	for await (const piece of req) pieces.push(piece);
	return pieces.length ? JSON.parse(Buffer.concat(pieces)) : undefined;
}

function serve(onRequest) {
	createServer(onRequest).listen(Number(port), '127.0.0.1', () => console.log('ready'));
}

const kinds = {
	v1: {
		stdio: async () => {
			const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
			await (await v1())().connect(new StdioServerTransport());
		},
		stateful: async () => {
			const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js');
			const make = await v1(), sessions = new Map();
			serve(async (req, res) => {
				let transport = sessions.get(req.headers['mcp-session-id']);
				if (!transport) {
					transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID,
						onsessioninitialized: (id) => sessions.set(id, transport) });
					await make().connect(transport);
				}
				await transport.handleRequest(req, res, await body(req));
			});
		},
		stateless: async () => {
			const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js');
			const make = await v1();
			serve(async (req, res) => {
				const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
				await make().connect(transport);
				await transport.handleRequest(req, res, await body(req));
			});
		},
		sse: async () => {
			const { SSEServerTransport } = await import('@modelcontextprotocol/sdk/server/sse.js');
			const make = await v1(), sessions = new Map();
			serve(async (req, res) => {
				const url = new URL(req.url, 'http://localhost');
				if (req.method === 'GET' && url.pathname === '/sse') {
					const transport = new SSEServerTransport('/message', res);
					sessions.set(transport.sessionId, transport);
					res.on('close', () => sessions.delete(transport.sessionId));
					await make().connect(transport);
				} else if (sessions.has(url.searchParams.get('sessionId'))) {
					await sessions.get(url.searchParams.get('sessionId')).handlePostMessage(req, res);
				} else {
					res.writeHead(404).end();
				}
			});
		},
	},
	v2: {
		stdio: async () => {
			const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
			serveStdio(await v2());
		},
		dual: () => http({}),
		modern: () => http({ legacy: 'reject' }),
	},
};

async function http(options) {
	const { createMcpHandler } = await import('@modelcontextprotocol/server');
	const { toNodeHandler } = await import('@modelcontextprotocol/node');
	serve(toNodeHandler(createMcpHandler(await v2(), options)));
}
await kinds[sdk][kind]();
