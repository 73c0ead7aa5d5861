// What a client of another library costs, as bench/mcp/client.c: node client.mjs KIND ERA CALLS WINDOW CONNECTIONS URL | PROGRAM [ARG...]
// KIND: sdk1 (TypeScript SDK v1, legacy only), sdk2 (v2, both eras).
import { readFileSync } from 'node:fs';

const [kind, era, calls, window, connections, ...target] = process.argv.slice(2);
const info = { name: 'bench', version: '1' };
const isUrl = target[0].startsWith('http');
const kib = () => Number(readFileSync('/proc/self/statm', 'utf8').split(' ')[1]) * 4;

const open = {
	sdk1: async () => {
		const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
		const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
		const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
		const client = new Client(info);
		await client.connect(isUrl ? new StreamableHTTPClientTransport(new URL(target[0]))
			: new StdioClientTransport({ command: target[0], args: target.slice(1) }));
		return client;
	},
	sdk2: async () => {
		const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
		const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
		const mode = era === 'modern' ? { pin: '2026-07-28' } : 'legacy';
		const client = new Client(info, { versionNegotiation: { mode } });
		await client.connect(isUrl ? new StreamableHTTPClientTransport(new URL(target[0]))
			: new StdioClientTransport({ command: target[0], args: target.slice(1) }));
		return client;
	},
}[kind];

const begun = process.hrtime.bigint();
const clients = [await open()];
const first = Number(process.hrtime.bigint() - begun) / 1e6;
const before = kib();
while (clients.length < Number(connections)) clients.push(await open());
const each = clients.length > 1 ? (kib() - before) / (clients.length - 1) : 0;

let left = Number(calls);
const took = [];
async function worker() {
	while (left-- > 0) {
		const at = process.hrtime.bigint();
		await clients[0].callTool({ name: 'echo', arguments: { message: 'hello' } });
		took.push(Number(process.hrtime.bigint() - at) / 1e3);
	}
}
const cpu = process.cpuUsage();
const start = process.hrtime.bigint();
await Promise.all(Array.from({ length: Number(window) }, worker));
const seconds = Number(process.hrtime.bigint() - start) / 1e9;
const used = process.cpuUsage(cpu);
took.sort((a, b) => a - b);
console.log([(took.length / seconds).toFixed(0), ...[0.5, 0.99].map((q) => took[Math.floor(took.length * q)].toFixed(1)),
	((used.user + used.system) / took.length).toFixed(1), first.toFixed(1), each.toFixed(1)].join(' '));
await Promise.all(clients.map((client) => client.close()));
process.exit(0);
