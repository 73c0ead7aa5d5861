// A real session: the MCP client of the TypeScript SDK drives `holt mcp`.
// demo.py tells the same story without Node; change both.
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const here = dirname(fileURLToPath(import.meta.url));
const holt = process.argv[2] ?? join(here, '../build/src/bin/holt');
const secret = join(here, '../README.md');
const program = readFileSync(join(here, 'diary.py'), 'utf8');
const rounds = 20;

const tty = process.stdout.isTTY;
const bold = (s) => (tty ? `\x1b[1m${s}\x1b[0m` : s);
const dim = (s) => (tty ? `\x1b[2m${s}\x1b[0m` : s);
const say = (s = '') => console.log(s && `   ${s}`);
let chapter = 0;
const title = (s) => console.log(`\n${bold(`${++chapter}  ${s}`)}`);

const client = new Client({ name: 'holt-demo', version: '1.0.0' });

/** Calls a tool; its result with the milliseconds that it took. Throws what a tool reports as failed. */
async function call(name, args) {
    const from = performance.now();
    const result = await client.callTool({ name, arguments: args });
    const ms = performance.now() - from;
    const text = result.content[0].text;
    if (result.isError) {
        throw new Error(`${name}: ${text}`);
    }
    return { text, structured: result.structuredContent, ms };
}

const tell = (what, ms) => say(`${what}  ${dim(`${ms.toFixed(1)} ms`)}`);
const short = (id) => `${id.slice(0, 12)}…`;

async function run(sandbox, command, ...args) {
    const { text, ms } = await call('sandbox_exec', { sandbox, command, args });
    return { ...JSON.parse(text), ms };
}

function must(condition, what) {
    if (!condition) {
        throw new Error(`the demonstration expected: ${what}`);
    }
}

async function median(times, f) {
    const all = [];
    for (let i = 0; i < times; i++) {
        all.push(await f());
    }
    return all.sort((a, b) => a - b)[times >> 1].toFixed(1);
}

async function create() {
    title('Create a sandbox');
    const { structured: s, ms } = await call('sandbox_create', { pool: 'host' });
    tell(s.sandbox, ms);
    const l = s.limits;
    say(`tier ${s.tier}; ${l.memory_mb} MiB of memory, ${l.disk_mb} MiB of disk, ` +
        `${l.pids} processes, held by ${l.enforced_by}`);
    return s.sandbox;
}

async function write(sandbox) {
    title('Write a Python program into it, and run it');
    const { text, ms } = await call('sandbox_write_file', { sandbox, path: 'diary.py', content: program });
    tell(text.replace(sandbox, short(sandbox)), ms);
    const ran = await run(sandbox, 'python3', 'diary.py', 'I was made');
    must(ran.exit_code === 0, `exit code 0, not ${JSON.stringify(ran)}`);
    tell(`$ python3 diary.py "I was made"  →  ${ran.stdout.trim()}`, ran.ms);
}

async function fork(sandbox) {
    title('Fork it into three, and let each go its own way');
    const { text, ms } = await call('sandbox_fork', { sandbox, replicas: 3 });
    const forks = JSON.parse(text);
    tell(`three copies: ${forks.map(short).join(' ')}`, ms);
    const ways = ['I went left', 'I went right', 'I stayed'];
    const told = await Promise.all(forks.map((f, i) => run(f, 'python3', 'diary.py', ways[i])));
    told.forEach((t, i) => say(`${short(forks[i])}  ${t.stdout.trim()}`));
    const { text: diary } = await call('sandbox_read_file', { sandbox, path: 'diary.txt' });
    say(`${short(sandbox)}  (the first, untouched) ${diary.trim()}`);
    must(told.every((t, i) => t.stdout.includes(`I was made, ${ways[i]}`)), 'three different diaries');
    must(diary === 'I was made\n', 'an untouched source');
    return forks;
}

/** Something outside that answers, so that being refused means something. */
async function listen() {
    const server = createServer((socket) => socket.end('hello'));
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address();
    const answer = await new Promise((resolve) => connect(port, '127.0.0.1').once('data', resolve));
    must(answer.toString() === 'hello', 'an answer outside');
    return { server, port };
}

async function escape(sandbox) {
    title('Try to get out');
    const { server, port } = await listen();
    const attempts = [
        [`a file of this host (${readFileSync(secret).length} bytes, readable outside)`, ['cat', secret]],
        [`a port of this host (127.0.0.1:${port}, answers outside)`,
            ['bash', '-c', `exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3`]],
        ['an address of the net (192.0.2.1:443)', ['bash', '-c', 'exec 3<>/dev/tcp/192.0.2.1/443']],
    ];
    for (const [what, argv] of attempts) {
        const { exit_code, stdout, stderr } = await run(sandbox, ...argv);
        must(exit_code !== 0 && stdout === '', `to be refused ${what}`);
        say(what);
        say(`    refused: ${stderr.trim().split('\n').pop().split(': ').pop()}`);
    }
    server.close();
}

async function end(ids) {
    title('End them');
    for (const sandbox of ids) {
        const { text, ms } = await call('sandbox_terminate', { sandbox });
        tell(text, ms);
    }
}

async function times() {
    title(`Times, as this client sees them: medians of ${rounds}`);
    const made = [];
    const created = await median(rounds, async () => {
        const { structured, ms } = await call('sandbox_create', { pool: 'host' });
        made.push(structured.sandbox);
        return ms;
    });
    const executed = await median(rounds, async () => (await run(made[0], 'true')).ms);
    const forked = await median(rounds, async () => {
        const { text, ms } = await call('sandbox_fork', { sandbox: made[0], replicas: 3 });
        made.push(...JSON.parse(text));
        return ms;
    });
    say(`create ${created} ms · exec of true ${executed} ms · fork into three ${forked} ms`);
    for (const sandbox of made) {
        await call('sandbox_terminate', { sandbox });
    }
}

async function main() {
    const from = performance.now();
    await client.connect(new StdioClientTransport({ command: holt, args: ['mcp'], stderr: 'inherit' }));
    const ready = performance.now() - from;
    const { tools } = await client.listTools();
    console.log(bold(`holt ${client.getServerVersion().version} answers over MCP`), dim(`${ready.toFixed(1)} ms`));
    say(tools.map((t) => t.name).join(' '));
    const sandbox = await create();
    await write(sandbox);
    const forks = await fork(sandbox);
    await escape(sandbox);
    await end([sandbox, ...forks]);
    await times();
}

try {
    await main();
    console.log('\nAll of it happened as it should.');
} catch (error) {
    console.error(`\ndemo: ${error.message}`);
    console.error(`demo: '${holt} doctor' says what this host lacks, if it does`);
    process.exitCode = 1;
} finally {
    await client.close();
}
