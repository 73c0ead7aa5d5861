// Every call of the TypeScript SDK with all that can be said, to a hub of paper.
import assert from 'node:assert/strict';
import { Client, NetworkPolicy, Sandbox, SecretRef } from '../../sdk/typescript/dist/src/index.js';

const client = new Client();
const policy = NetworkPolicy.denyByDefault().allow('a', 1, [{ method: 'GET', path: '/', then: 'ask' }]);
const secrets = { KEY: new SecretRef('name', true) };
const bytes = Buffer.from('x');

const box = await Sandbox.create({
	image: 'host', network: policy, ttlSeconds: 1, idleSeconds: 1, id: 'x', env: { A: 'b' }, cwd: '/', user: 'root',
	limits: { memoryMb: 64, diskMb: 16, pids: 16, cpus: 0.5, openFiles: 64 }, labels: { a: 'b' }, secrets,
	volumes: [{ host: '/a', inside: '/b', mode: 'rw' }], workspace: 'w', workspaceMode: 'copy', profiles: ['p'],
	modules: ['m'], retention: 'stop', debug: true, client,
});
assert.equal(box.id, 'text');
await Sandbox.connect('x', { client });
const [listed] = await Sandbox.list({ state: 'running', labels: ['a'], client });
assert.ok(listed.usage && listed.volumes && listed.ttlSeconds && listed.image && listed.madeMs);
await Sandbox.restore('x', 2, { labels: { a: 'b' }, client });
await Sandbox.restore('x', 1, { ids: ['y'], client });
await box.info({ usage: true });
await box.fork(2, { labels: { a: 'b' } });
await box.fork(1, { ids: ['y'] });
await box.snapshot('n', { ttlSeconds: 1 });
for (const name of ['pause', 'resume', 'diff', 'close']) await box[name]();
await box.stop({ cold: true });
await box.setTimeout(1);
await box.diff({ limit: 1 });
await box.kill({ discard: true });
for (const name of ['health', 'templates', 'snapshots']) await client[name]();
for (const name of ['snapshot', 'deleteSnapshot', 'auditRecord']) await client[name]('x');
const answer = await client.run({
	command: ['a'], state: { retention: 'stop' }, language: 'l', image: 'i', files: [{ path: 'p', content: 'c' }],
	env: { A: 'b' }, secrets, network: { mode: 'bridge', allow: [{ host: 'a', port: 1 }] }, working_dir: '/', stdin: 'x',
	timeout_seconds: 1, max_output_bytes: 1024, ttl_seconds: 1,
});
assert.ok(answer.cleanup && answer.receipt && answer.snapshotId);

const { files, commands, ports, network } = box;
assert.equal(await files.read('p'), 'bytes');
await files.write('p', 'text', { mode: 0o600 });
await files.write('p', bytes);
await files.list('p', { limit: 1 });
for (const name of ['list', 'stat', 'exists', 'mkdir', 'remove']) await files[name]('p');
await files.remove('p', { recursive: true });
await files.rename('p', 'q');
for await (const event of await files.watch('p', { recursive: true })) assert.ok(event.kind);
for await (const piece of await files.download('p', { named: true })) assert.equal(`${piece}`, 'tar');
await files.upload('p', (async function* () {
	yield bytes;
})());

const more = { env: { A: 'b' }, cwd: '/', user: 'root', secrets, timeoutSeconds: 1 };
let done = await commands.run(['a', 'b'], { stdin: 'x', maxOutputBytes: 1024, ...more });
assert.deepEqual([done.stdout, done.auditId, done.limit], ['bytes', 'run_paper', 'memory']);
await commands.run('a', { stdin: bytes, onStdout: () => undefined, ...more });
done = await (await commands.stream(['a'], { stdin: 'x', ...more })).wait();
assert.equal(done.stdout, 'bytes');
(await commands.stream('a', { stdin: bytes })).close();
await (await commands.code('a', 'bash', { timeoutSeconds: 1 })).wait();
const terminal = { cols: 1, rows: 1, term: 't' };
const process = await commands.start(['a'], {
	stdin: bytes, stdinOpen: true, terminal, id: 'x', keepBytes: 1 << 20, ...more,
});
await commands.start('a', { stdin: 'x' });
await commands.list();
await process.info();
await process.output(1, { limit: 1, stream: 'stdout' });
assert.equal((await (await process.follow(1, { stream: 'stderr' })).wait()).exitCode, 1);
await process.wait({ timeoutSeconds: 1 });
await process.waitFor('a', { pattern: 'b', timeoutSeconds: 1 });
await process.write('x', { close: true });
await process.write(bytes);
await process.resize(1, 1);
await process.signal(1);
await process.kill();
for (const opening of [commands.open(['a'], { terminal, ...more }), process.attach(1),
	box.pty({ command: ['a'], terminal, ...more })]) {
	const channel = await opening;
	await channel.write('x');
	await channel.resize(1, 1);
	await channel.signal(1);
	await channel.closeStdin();
	assert.equal((await channel.wait(20)).stdout, 'out');
}
await ports.forward(1, 2);
await ports.list();
await ports.close(1);
await ports.preview(1, 1);
assert.equal((await ports.expose(1, '/a')).text, 'served');
assert.ok((await network.get()).policy.hosts[0].http);
await network.set(policy);
await network.allow('a');
await network.revoke('a');
