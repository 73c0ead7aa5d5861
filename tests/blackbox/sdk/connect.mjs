// A client of sandbox.v1.Sandbox made of its descriptors: what the answers are is up to Connect's own library.
import { readFileSync } from 'node:fs';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { createFileRegistry, fromJson } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';

const asked = JSON.parse(readFileSync(0, 'utf8'));

const TYPES = { string: 'TYPE_STRING', bytes: 'TYPE_BYTES', bool: 'TYPE_BOOL', int32: 'TYPE_INT32', uint32: 'TYPE_UINT32',
	int64: 'TYPE_INT64', double: 'TYPE_DOUBLE' };
const camel = (name) => name.replace(/_(.)/g, (_, c) => c.toUpperCase());

// 'name:type' with * for repeated; members after | are of one oneof.
function message(name, ...fields) {
	const oneof = fields[0] === '|';
	return {
		name,
		field: fields.filter((f) => f !== '|').map((text, i) => {
			const [field, type] = text.replace('*', '').split(':');
			return { name: field, jsonName: camel(field), number: i + 1,
				label: text.endsWith('*') ? 'LABEL_REPEATED' : 'LABEL_OPTIONAL',
				...(TYPES[type] ? { type: TYPES[type] } : { type: 'TYPE_MESSAGE', typeName: `.sandbox.v1.${type}` }),
				...(oneof ? { oneofIndex: 0 } : {}) };
		}),
		...(oneof ? { oneofDecl: [{ name: 'msg' }] } : {}),
	};
}

const method = (name, input, output, from, to) => ({ name, inputType: `.sandbox.v1.${input}`, outputType: `.sandbox.v1.${output}`,
	clientStreaming: from === 'stream', serverStreaming: to === 'stream' });

const file = {
	name: 'sandbox.proto', package: 'sandbox.v1', syntax: 'proto3',
	messageType: [
		message('EnvVar', 'key:string', 'value:string'),
		message('ExecStreamRequest', 'command:string', 'args:string*', 'env:EnvVar*', 'cwd:string', 'timeout_seconds:int32'),
		message('ExecExit', 'exit_code:int32', 'exec_time_ms:double', 'error:string'),
		message('ExecResponse', '|', 'stdout:bytes', 'stderr:bytes', 'exit:ExecExit'),
		message('ReadFileRequest', 'path:string'),
		message('Chunk', 'data:bytes', 'eof:bool'),
		message('WriteFileOpen', 'path:string', 'mode:uint32'),
		message('WriteFileRequest', '|', 'open:WriteFileOpen', 'data:bytes'),
		message('WriteFileResult', 'bytes_written:int64'),
		message('ListRequest', 'parent:string', 'page_size:int32', 'page_token:string', 'filter:string'),
		message('FileInfo', 'name:string', 'path:string', 'is_dir:bool', 'size:int64', 'mode:uint32', 'modified_at_unix:int64'),
		message('ListResponse', 'entries:FileInfo*', 'next_page_token:string'),
		message('StatRequest', 'path:string'),
		message('VitalsRequest', 'interval_seconds:int32'),
		message('GuestVitals', 'sampled_at_unix:int64', 'cpu_percent:double', 'cpu_steal_percent:double', 'mem_used_bytes:int64',
			'mem_total_bytes:int64', 'mem_balloon_bytes:int64', 'process_count:int32'),
	],
	service: [{ name: 'Sandbox', method: [
		method('ExecStream', 'ExecStreamRequest', 'ExecResponse', 'one', 'stream'),
		method('ReadFile', 'ReadFileRequest', 'Chunk', 'one', 'stream'),
		method('WriteFile', 'WriteFileRequest', 'WriteFileResult', 'stream', 'one'),
		method('List', 'ListRequest', 'ListResponse', 'one', 'one'),
		method('Stat', 'StatRequest', 'FileInfo', 'one', 'one'),
		method('Vitals', 'VitalsRequest', 'GuestVitals', 'one', 'stream'),
	] }],
};
const registry = createFileRegistry(fromJson(FileDescriptorSetSchema, { file: [file] }));
const service = registry.getService('sandbox.v1.Sandbox');

function client(token, useBinaryFormat = false) {
	const identify = (next) => (req) => {
		req.header.set('Authorization', `Bearer ${token}`);
		req.header.set('X-Sandbox-Id', asked.sandbox);
		return next(req);
	};
	return createClient(service, createConnectTransport({ baseUrl: asked.url, httpVersion: '1.1', useBinaryFormat,
		interceptors: [identify] }));
}

async function failure(call) {
	try {
		await call();
	} catch (e) {
		return ConnectError.from(e);
	}
	throw new Error('it did not fail');
}

const sandbox = client(asked.token);
const text = new TextDecoder();

async function* parts() {
	yield { msg: { case: 'open', value: { path: 'd/f', mode: 0o600 } } };
	yield { msg: { case: 'data', value: new TextEncoder().encode('one ') } };
	yield { msg: { case: 'data', value: new TextEncoder().encode('two') } };
}
const got = { stdout: '', stderr: '', read: '' };
got.written = String((await sandbox.writeFile(parts())).bytesWritten);
for await (const chunk of sandbox.readFile({ path: 'd/f' }))
	got.read += text.decode(chunk.data);
got.entries = (await sandbox.list({ parent: 'd' })).entries.map((e) => e.name);
for await (const said of sandbox.execStream({ command: 'echo out; echo err >&2; exit 3' })) {
	if (said.msg.case === 'exit')
		got.exit = said.msg.value.exitCode;
	else
		got[said.msg.case] += text.decode(said.msg.value);
}
// The same as protocol buffers.
const binary = client(asked.token, true);
got.binary = { written: String((await binary.writeFile(parts())).bytesWritten), read: '', stdout: '', stderr: '' };
for await (const chunk of binary.readFile({ path: 'd/f' }))
	got.binary.read += text.decode(chunk.data);
for await (const said of binary.execStream({ command: 'sh', args: ['-c', 'echo out; echo $A >&2; exit 3'],
	env: [{ key: 'A', value: 'err' }], timeoutSeconds: 30 })) {
	if (said.msg.case === 'exit')
		got.binary.exit = said.msg.value.exitCode;
	else
		got.binary[said.msg.case] += text.decode(said.msg.value);
}
const unread = await failure(async () => {
	for await (const chunk of binary.readFile({ path: 'none' }))
		void chunk;
});
got.binary.missing = { code: Code[unread.code], reason: unread.details[0].debug.code };
const vitals = [];
for await (const sample of sandbox.vitals({ intervalSeconds: 1 })) {
	vitals.push(sample);
	if (vitals.length === 2)
		break;
}
got.vitals = vitals.every((s) => s.memTotalBytes > 0n && s.sampledAtUnix > 1_700_000_000n);
const missing = await failure(() => sandbox.stat({ path: 'none' }));
got.missing = { code: Code[missing.code], reason: missing.details[0].debug.code };
const late = await failure(async () => {
	for await (const said of sandbox.execStream({ command: 'sleep 100' }, { timeoutMs: 500 }))
		void said;
});
got.late = Code[late.code];
got.unknown = Code[(await failure(() => client('wrong').stat({ path: '/' }))).code];
console.log(JSON.stringify(got));
process.exit(0);
