// A client that is generated from /v1/openapi.json, used as its users do: it compiles, strictly, and runs.
// Arguments: the hub's URL and its token.
import createClient from 'openapi-fetch';
import type { components, paths } from './described.js';

const [url, token] = process.argv.slice(2);
const hub = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });

// What a call has told, or throws its failure, whose code is typed.
function told<T>({ data, error }: { data?: T; error?: components['schemas']['Error'] }): T {
	if (error)
		throw new Error(`${error.error.code}: ${error.error.cause}`);
	return data as T;
}

const made = told(await hub.POST('/v1/sandboxes', { body: { id: 'generated', limits: { pids: 64 } } }));
const id: string = made.id;

const done = await hub.POST('/v1/exec', { body: { sandbox: id, command: 'echo out; echo err >&2; exit 3' } });
const exit: number | undefined = told(done).exit_code;
const stdout: string | undefined = done.data?.stdout;

const late = await hub.POST('/v1/exec', { body: { sandbox: id, command: 'echo early; exec sleep 100', timeout: 1 } });
const code: string | undefined = late.error?.error.code;
const early = late.error && 'result' in late.error ? late.error.result?.stdout : undefined;

const job = told(await hub.POST('/v1/exec', { body: { sandbox: id, command: 'echo later', background: true } }));
const one = { params: { path: { id, exec: job.exec_id } } };
const waited = told(await hub.POST('/v1/sandboxes/{id}/execs/{exec}/wait', { ...one, body: {} }));
const output = told(await hub.GET('/v1/sandboxes/{id}/execs/{exec}/output', one));
const later = 'chunks' in output ? Buffer.from(output.chunks[0]?.data ?? '', 'base64').toString() : '';

told(await hub.POST('/v1/files/write', { body: { sandbox: id, path: 'f', content: 'x' } }));
const missing = await hub.POST('/v1/files/read', { body: { sandbox: id, path: 'none' } });
const listed = told(await hub.GET('/v1/sandboxes'));
const names = Array.isArray(listed) ? listed.map((sandbox) => sandbox.id) : [];
told(await hub.DELETE('/v1/sandboxes/{id}', { params: { path: { id } } }));

console.log(JSON.stringify({
	exit, stdout, code, early, later, state: waited.state, missing: missing.error?.error.code, names,
}));
