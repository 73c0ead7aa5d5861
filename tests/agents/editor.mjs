// An editor by the protocol's own SDK, which a test drives by lines of JSON. It starts its arguments as
// its agent. [n, method, params] calls a method of the connection and prints [n, result, error];
// ["answer", outcome] is for the oldest question. Updates and what the agent asks are printed, too.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { Readable, Writable } from 'node:stream';
import { ClientSideConnection, ndJsonStream } from '@agentclientprotocol/sdk';

const tell = (...what) => console.log(JSON.stringify(what));
const [program, ...args] = process.argv.slice(2);
const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
child.on('exit', (code, signal) => tell('exit', code ?? signal));
const questions = [];
const asked = (name) => (params) => (tell(name, params), Promise.reject(new Error('an editor that is asked')));
const connection = new ClientSideConnection(() => ({
	sessionUpdate: async ({ sessionId, update }) => tell('update', update, sessionId),
	requestPermission: (params) => new Promise((resolve) => {
		questions.push(resolve);
		tell('ask', params);
	}),
	readTextFile: asked('read'),
	writeTextFile: asked('write'),
	createTerminal: asked('terminal'),
}), ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));

createInterface({ input: process.stdin }).on('line', async (line) => {
	const [n, method, params] = JSON.parse(line);
	if (n === 'answer')
		questions.shift()({ outcome: method });
	else if (n === 'kill')
		child.kill('SIGKILL');
	else
		await connection[method](params).then((result) => tell(n, result ?? {}, null),
			(error) => tell(n, null, { code: error.code, message: error.message }));
}).on('close', () => child.stdin.end());
