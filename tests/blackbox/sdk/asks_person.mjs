// The TypeScript SDK calls a tool that waits for a person for longer than the client's timeout; progress begins that anew.
import { readFileSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';

const { url, token, timeout } = JSON.parse(readFileSync(0, 'utf8'));
const client = new Client({ name: 'asks', version: '1.0.0' }, { capabilities: {} });
await client.connect(new StreamableHTTPClientTransport(new URL(url),
	{ requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
const told = [];
const result = await client.callTool(
	{ name: 'ui_ask_yes_no', arguments: { question: 'Still there?' } }, CallToolResultSchema,
	{ timeout, resetTimeoutOnProgress: true, onprogress: (p) => told.push(p.message) });
console.log(JSON.stringify({ result, told }));
await client.close();
// Node.js 18 forgets to end a fetch once its signal was collected as garbage: the stream that the
// client had closed would hold the process.
process.exit();
