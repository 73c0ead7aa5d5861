/** Sandbox and its parts: files, commands, ports, network. */
import { randomUUID } from 'node:crypto';
import {
	ANSWER_MAX,
	type Answer,
	type Call,
	Client,
	GRACE,
	WAIT,
	secretsJson,
	snapshotInfo,
} from './client.js';
import { ConflictError, HoltError, TimedOutError, ValidationError, cleanupError } from './errors.js';
import * as shapes from './shapes.js';
import { Channel, Collected, CommandStream, Events, OUTPUT_MAX, waitOver } from './streams.js';
import {
	type CallOptions,
	type Change,
	type Command,
	CommandResult,
	type Data,
	type FileInfo,
	type Forward,
	type Host,
	type HttpRule,
	type Limits,
	type NetworkInfo,
	NetworkPolicy,
	Output,
	type PortResponse,
	type Preview,
	type ProcessInfo,
	type SandboxInfo,
	type Secrets,
	type SnapshotInfo,
	type Terminal,
	type Volume,
	type WatchEvent,
	build,
	processNames,
	sandboxNames,
} from './types.js';

type Document = Record<string, any>;

const PIECE = 2 << 20; // bytes of a file at once
const FILE_MAX = 256 << 20;
const CHANGES_MAX = 100; // of grants, one after another

/** Members that were given, in the names of the REST interface. */
function snake(given: object): Document {
	const name = (text: string) => text.replace(/[A-Z]/g, (c) => '_' + c.toLowerCase());
	return Object.fromEntries(
		Object.entries(given)
			.filter(([, v]) => v !== undefined)
			.map(([k, v]) => [name(k), v]),
	);
}

/** Bytes as members of a body: as text, or in base64. */
function dataMembers(data: Data | undefined, name: string): Document {
	if (data === undefined) return {};
	return typeof data === 'string'
		? { [name]: data }
		: { [name + '_base64']: Buffer.from(data).toString('base64') };
}

const sandboxInfo = (d: Document): SandboxInfo => build(d, sandboxNames);

/** What a sandbox has. */
class Part {
	/** @internal */
	constructor(
		protected readonly client: Client,
		protected readonly sandbox: string,
	) {}

	/** Of this sandbox. */
	protected on(method: string, more: string, call: Partial<Call> = {}): Call {
		return {
			method,
			route: '/v1/sandboxes/{id}' + more,
			...call,
			params: { id: this.sandbox, ...call.params },
		};
	}

	protected post(route: string, body: Document, call: Partial<Call> = {}): Call {
		return { method: 'POST', route, body: { sandbox: this.sandbox, ...body }, ...call };
	}

	protected ask(call: Call): Promise<Answer> {
		return this.client.ask(call);
	}
}

/** Files of a sandbox. A path is absolute, or counts from its working directory, /workspace. */
export class Files extends Part {
	#call(name: string, path: string, more: Document, options?: Partial<Call>): Call {
		return this.post(
			'/v1/files/' + name,
			{ path, ...snake(more) },
			{ idempotent: true, ...options },
		);
	}

	/**
	 * The text of a file, which has to be UTF-8. Rejects with NotFoundError, and ValidationError
	 * if it is no text or has more than maxBytes (256 MiB).
	 */
	async read(path: string, options: CallOptions & { maxBytes?: number } = {}): Promise<string> {
		const data = await this.readBytes(path, options);
		try {
			return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data);
		} catch {
			throw new ValidationError(`${path} is no UTF-8 text`, {
				code: 'not_text',
				remediation: 'Use readBytes().',
			});
		}
	}

	/** The bytes of a file. Secrets in it are redacted, as in all that the hub answers. */
	async readBytes(
		path: string,
		options: CallOptions & { maxBytes?: number } = {},
	): Promise<Uint8Array> {
		const { maxBytes = FILE_MAX, signal } = options;
		const pieces: Buffer[] = [];
		let size = 0;
		for (let offset: number | undefined = 0; offset !== undefined;) {
			const call = this.#call(
				'read',
				path,
				{ offset, limit: PIECE, encoding: 'base64' },
				{ signal, answer: shapes.piece },
			);
			const { document: d }: Answer = await this.ask(call);
			pieces.push(Buffer.from(d.content, 'base64'));
			size += pieces.at(-1)!.length;
			if (size > maxBytes) {
				throw new ValidationError(
					`${path} has ${d.size} bytes, more than the ${maxBytes} that were asked for`,
					{
						code: 'too_large',
						remediation: 'Give a larger maxBytes, or use download().',
					},
				);
			}
			offset = d.next_offset;
		}
		return Buffer.concat(pieces);
	}

	/**
	 * Replaces a file, or makes it with the permission bits `mode` (0o644) and the directories
	 * above it. At most 32 MiB as JSON: about 24 MiB of bytes. upload() takes more.
	 */
	async write(
		path: string,
		data: Data,
		options: CallOptions & { mode?: number } = {},
	): Promise<void> {
		const { mode, signal } = options;
		const what =
			typeof data === 'string'
				? { content: data }
				: { content: Buffer.from(data).toString('base64'), encoding: 'base64' };
		await this.ask(this.#call('write', path, { ...what, mode }, { signal }));
	}

	/** A directory by name, at most 1024 entries. */
	async list(path = '.', options: CallOptions & { limit?: number } = {}): Promise<FileInfo[]> {
		const { limit, signal } = options;
		const answer = { entries: [{ ...shapes.file, name: 'string' }] };
		const call = this.#call('list', path, { limit }, { signal, answer });
		const { document } = await this.ask(call);
		const below = path === '.' ? '' : path.replace(/\/+$/, '') + '/';
		return document.entries.map((d: Document) => ({
			...build<FileInfo>(d),
			path: below + d.name,
		}));
	}

	/** What a path is. Rejects with NotFoundError. */
	async stat(path: string, options?: CallOptions): Promise<FileInfo> {
		const call = this.#call('stat', path, {}, { ...options, answer: shapes.file });
		const { document } = await this.ask(call);
		return { ...build<FileInfo>(document), name: path.replace(/\/+$/, '').split('/').at(-1)! };
	}

	/** Whether there is something at a path. */
	exists(path: string, options?: CallOptions): Promise<boolean> {
		return this.client.ended(this.#call('stat', path, {}, options));
	}

	/** Makes a directory and those above it. One that is there is no error. */
	async mkdir(path: string, options?: CallOptions): Promise<void> {
		await this.ask(this.#call('mkdir', path, {}, options));
	}

	/** Removes a file or an empty directory; recursive: with all that is in it. */
	async remove(path: string, options: CallOptions & { recursive?: boolean } = {}): Promise<void> {
		const { recursive, signal } = options;
		await this.ask({
			...this.#call('remove', path, { recursive }, { signal }),
			idempotent: false,
		});
	}

	/** Moves a file or a directory; a file that is at `to` is replaced. */
	async rename(path: string, to: string, options?: CallOptions): Promise<void> {
		await this.ask({ ...this.#call('move', path, { to }, options), idempotent: false });
	}

	/**
	 * What happens in a directory from now on (absent: the working directory), until it is closed.
	 * It keeps the sandbox busy. get(timeout) gives one event.
	 */
	async watch(
		path?: string,
		options: CallOptions & { recursive?: boolean } = {},
	): Promise<Events<WatchEvent>> {
		const { recursive, signal } = options;
		const answer = await this.client.stream(
			this.on('GET', '/watch', { query: { path, recursive }, signal }),
		);
		const events = new Events<WatchEvent>(answer, { kind: 'string' }, (d) => build(d));
		await events.get(); // ready: nothing is missed from here on
		return events;
	}

	/**
	 * A directory with all that is in it, or a file, as a tar archive that comes in pieces. named:
	 * with the directory's name in front of all others.
	 */
	async download(
		path?: string,
		{ named, ...options }: CallOptions & { named?: boolean } = {},
	): Promise<AsyncIterable<Uint8Array>> {
		const query = { path, named: named || undefined };
		return (
			await this.client.stream(this.on('GET', '/archive', { query, ...options }))
		).pieces();
	}

	/** Unpacks a tar archive in the directory `path`, within `timeout` seconds (600). */
	async upload(
		path: string,
		tar: Uint8Array | AsyncIterable<Uint8Array>,
		options: CallOptions & { timeout?: number } = {},
	): Promise<void> {
		const { timeout = 600, signal } = options;
		await this.ask(
			this.on('PUT', '/archive', { query: { path }, content: tar, timeout, signal }),
		);
	}
}

/** A member of a request: its name there, and its type. */
class Member<T> {
	declare readonly type: T;
	constructor(readonly name: string) {}
}

const COMMAND_MEMBERS = {
	env: new Member<Record<string, string>>('env'),
	cwd: new Member<string>('working_dir'),
	/** "user" or "root", where the sandbox was made with root; absent: as the sandbox was made. */
	user: new Member<'user' | 'root'>('user'),
	/** SecretRef by environment variable, for this command alone. */
	secrets: new Member<Secrets>('secrets'),
	/** Then it is killed with all its descendants; at most 86400. */
	timeoutSeconds: new Member<number>('timeout'),
};
type CommandMembers = {
	[K in keyof typeof COMMAND_MEMBERS]?: (typeof COMMAND_MEMBERS)[K]['type'];
};

/** What can be said of every command. */
export interface CommandOptions extends CallOptions, CommandMembers {}

export interface RunOptions extends CommandOptions {
	/** Of stdout and of stderr each (1 MiB); of more the middle is left out. 1 KiB to 8 MiB. */
	maxOutputBytes?: number;
	stdin?: Data;
	/** Are called with the bytes as they come. */
	onStdout?: (data: Uint8Array) => void;
	onStderr?: (data: Uint8Array) => void;
	/**
	 * Reject with CommandError if it does not end with 0, and with TimedOutError at its timeout.
	 */
	check?: boolean;
}

export interface StartOptions extends CommandOptions {
	stdin?: Data;
	/** write() sends more input. */
	stdinOpen?: boolean;
	/** It runs on one, whose output is all stdout. */
	terminal?: Terminal;
	/** Its name; absent: the hub makes one. */
	id?: string;
	/** How much of its output the hub keeps; 64 MiB if absent, of more the newest. */
	keepBytes?: number;
}

/** Of all methods that take a command. */
const COMMAND_OPTIONS = new Set<string>([
	...Object.keys(COMMAND_MEMBERS),
	...['stdin', 'signal', 'maxOutputBytes', 'onStdout', 'onStderr', 'check', 'stdinOpen'],
	...['terminal', 'id', 'keepBytes', 'command'],
]);

function commandBody(
	command: Command | undefined,
	options: CommandOptions & { stdin?: Data },
): Document {
	for (const name of Object.keys(options)) {
		if (COMMAND_OPTIONS.has(name)) continue;
		const meant = name.startsWith('timeout') ? '; timeoutSeconds is the time limit' : '';
		throw new ValidationError(`there is no option ${name}${meant}`, {
			code: 'invalid_option',
		});
	}
	if (command !== undefined && typeof command !== 'string' && !command.length) {
		throw new ValidationError('command: it is empty', { code: 'invalid_command' });
	}
	const body: Document =
		command === undefined
			? {}
			: typeof command === 'string'
				? { command }
				: { command: command[0], args: command.slice(1) };
	const said: Document = { ...options, secrets: secretsJson(options.secrets) };
	for (const [name, member] of Object.entries(COMMAND_MEMBERS)) {
		if (said[name] !== undefined) body[member.name] = said[name];
	}
	return { ...body, ...dataMembers(options.stdin, 'stdin') };
}

function execResult(d: Document, auditId: string | undefined, timedOut: boolean): CommandResult {
	const bytes = (name: string) => {
		const [text, base64] = [d[name], d[name + '_base64']];
		if (base64 !== undefined) return Buffer.from(base64, 'base64');
		if (text === undefined) throw shapes.badAnswer(`there is no ${name}`, auditId);
		return Buffer.from(text);
	};
	return new CommandResult({
		exitCode: d.exit_code,
		stdoutBytes: bytes('stdout'),
		stderrBytes: bytes('stderr'),
		timedOut,
		auditId,
		durationMs: d.exec_time_ms,
		execId: d.exec_id,
		signal: d.signal,
		stdoutElidedBytes: d.stdout_elided_bytes ?? 0,
		stderrElidedBytes: d.stderr_elided_bytes ?? 0,
		limit: ['memory', 'pids', 'disk'].find((name) => d['hit_' + name]),
	});
}

/** A command in the background, by its id. It outlives this object and the connection. */
export class Process extends Part {
	/**
	 * @internal auditId: names the record of the call that started it; absent if it was found by
	 * its id.
	 */
	constructor(
		client: Client,
		sandbox: string,
		readonly id: string,
		readonly auditId?: string,
	) {
		super(client, sandbox);
	}

	#on(method: string, more: string, call: Partial<Call> = {}): Call {
		return this.on(method, '/execs/{exec}' + more, { ...call, params: { exec: this.id } });
	}

	/** Its state, how it ended, how much it has printed. */
	async info(options?: CallOptions): Promise<ProcessInfo> {
		return build(await this.#state(options), processNames);
	}

	/**
	 * What there is of its output from `offset` on: pieces, where to go on, and whether it was
	 * all. limit: bytes at once, at most 4 MiB, 1 MiB if absent. stream: stdout or stderr alone.
	 */
	async output(
		offset = 0,
		options: CallOptions & { limit?: number; stream?: 'stdout' | 'stderr' } = {},
	): Promise<{ chunks: Output[]; nextOffset: number; eof: boolean }> {
		const { limit, stream, signal } = options;
		const call = this.#on('GET', '/output', {
			query: { offset, limit, stream },
			idempotent: true,
			signal,
			answer: shapes.output,
		});
		const { document: d } = await this.ask(call);
		const chunks = d.chunks.map(
			(c: Document) => new Output(c.stream, Buffer.from(c.data, 'base64'), c.offset),
		);
		return { chunks, nextOffset: d.next_offset, eof: d.eof };
	}

	/** Its output from `offset` on as it comes, to its end. Closing leaves it running. */
	async follow(
		offset = 0,
		options: CallOptions & { stream?: 'stdout' | 'stderr' } = {},
	): Promise<CommandStream> {
		const { stream, signal } = options;
		const answer = await this.client.stream(
			this.#on('GET', '/output', { query: { offset, follow: true, stream }, signal }),
		);
		return new CommandStream(answer, new Collected(OUTPUT_MAX, this.auditId, this.id));
	}

	async *[Symbol.asyncIterator](): AsyncGenerator<Output, void> {
		yield* await this.follow();
	}

	/**
	 * Waits for its end (timeoutSeconds absent: as long as it takes), then reads its output.
	 * Rejects with TimedOutError (code wait_timeout) if it goes on; GuestError if it never ran or
	 * its sandbox ended.
	 */
	async wait(
		options: CallOptions & {
			timeoutSeconds?: number;
			maxOutputBytes?: number;
			check?: boolean;
		} = {},
	): Promise<CommandResult> {
		const { timeoutSeconds, maxOutputBytes = OUTPUT_MAX, check, signal } = options;
		await this.#wait({}, timeoutSeconds, signal);
		const collected = new Collected(maxOutputBytes, this.auditId, this.id);
		for (let offset = 0, eof = false; !eof;) {
			const page = await this.output(offset, { limit: PIECE, signal });
			for (const piece of page.chunks) collected.add(piece);
			({ nextOffset: offset, eof } = page);
		}
		const d = await this.#state({ signal });
		const result = collected.end({ ...d, dimension: d.hit_memory ? 'memory' : undefined });
		return check ? result.check() : result;
	}

	/**
	 * Waits until it has printed a text, or a line that a regular expression (`pattern`) matches,
	 * for timeoutSeconds (30). False: it ended before. Rejects with TimedOutError (code
	 * wait_timeout).
	 */
	waitFor(
		text?: string,
		options: CallOptions & { pattern?: string; timeoutSeconds?: number } = {},
	): Promise<boolean> {
		return this.#wait(
			snake({ text, pattern: options.pattern }),
			options.timeoutSeconds ?? 30,
			options.signal,
		);
	}

	async #state(options?: CallOptions): Promise<Document> {
		const call = { idempotent: true, answer: shapes.process, ...options };
		return (await this.ask(this.#on('GET', '', call))).document;
	}

	async #wait(
		what: Document,
		seconds: number | undefined,
		signal?: AbortSignal,
	): Promise<boolean> {
		let offset = 0;
		for (let left = seconds ?? Infinity; ;) {
			const now = Math.max(Math.min(left, WAIT), 1);
			const body = {
				...what,
				...(Object.keys(what).length ? { offset } : {}),
				timeout_seconds: now,
			};
			const call = this.#on('POST', '/wait', {
				body,
				timeout: now + GRACE,
				idempotent: true,
				signal,
				answer: shapes.waited,
			});
			const { document: d } = await this.ask(call);
			if (d.result !== 'timeout') return d.result === 'matched';
			left -= now;
			offset = d.offset;
			if (left <= 0) throw waitOver(seconds);
		}
	}

	/**
	 * Standard input, at most 1 MiB that it has not read yet; beyond that LimitError. close: it
	 * ends there.
	 */
	async write(data: Data, options: CallOptions & { close?: boolean } = {}): Promise<void> {
		const { close, signal } = options;
		await this.ask(
			this.#on('POST', '/stdin', {
				body: { ...dataMembers(data, 'data'), ...snake({ close }) },
				signal,
			}),
		);
	}

	/** Another size of its terminal. */
	async resize(cols: number, rows: number, options?: CallOptions): Promise<void> {
		await this.ask(
			this.#on('POST', '/resize', { body: { cols, rows }, idempotent: true, ...options }),
		);
	}

	/** A signal for its process group. */
	async signal(number = 15, options?: CallOptions): Promise<void> {
		await this.ask(this.#on('POST', '/signal', { body: { signal: number }, ...options }));
	}

	/** Kills it with all its descendants, and forgets it and its output. False: there was none. */
	kill(options?: CallOptions): Promise<boolean> {
		return this.client.ended(this.#on('DELETE', '', { idempotent: true, ...options }));
	}

	/** Its output from `offset` on (absent: new output), its input and its terminal. */
	attach(offset?: number, options?: CallOptions): Promise<Channel> {
		return Channel.open(
			this.client,
			this.#on('GET', '/attach', { query: { offset }, ...options }),
			'holt.attach.v1',
		);
	}
}

/** Commands in a sandbox: a line for the shell, or a list of a program and its arguments. */
export class Commands extends Part {
	/**
	 * Runs a command to its end, for at most timeoutSeconds (30); then it is killed with all its
	 * descendants, and the result has timedOut. Rejects with GuestError if the program is not
	 * there. What rejects ends the command, too.
	 */
	async run(command: Command, options: RunOptions = {}): Promise<CommandResult> {
		const {
			maxOutputBytes = OUTPUT_MAX,
			onStdout,
			onStderr,
			check,
			signal,
			timeoutSeconds = 30,
		} = options;
		let result: CommandResult;
		if (onStdout || onStderr) {
			const output = await this.stream(command, options);
			for await (const { stream, data } of output)
				(stream === 'stdout' ? onStdout : onStderr)?.(data);
			result = output.result;
		} else {
			const body = {
				...commandBody(command, { ...options, timeoutSeconds }),
				max_output_bytes: maxOutputBytes,
			};
			result = await this.#exec(
				this.post('/v1/exec', body, {
					timeout: timeoutSeconds + GRACE,
					signal,
					answer: shapes.result,
				}),
			);
		}
		return check ? result.check() : result;
	}

	async #exec(call: Call): Promise<CommandResult> {
		try {
			const { document, auditId } = await this.ask(call);
			return execResult(document, auditId, false);
		} catch (e) {
			if (!(e instanceof TimedOutError) || !e.result) throw e;
			shapes.check(e.result, shapes.result, e.auditId);
			return execResult(e.result, e.auditId, true);
		}
	}

	/**
	 * The same, to be iterated over with `for await`; `result` behind its end, of which
	 * maxOutputBytes are kept. A slow reader stops the command.
	 */
	stream(
		command: Command,
		options: Omit<RunOptions, 'onStdout' | 'onStderr' | 'check'> = {},
	): Promise<CommandStream> {
		const { maxOutputBytes = OUTPUT_MAX, timeoutSeconds = 30, signal } = options;
		const body = commandBody(command, { ...options, timeoutSeconds });
		const call = this.post('/v1/exec/stream', body, {
			timeout: timeoutSeconds + GRACE,
			signal,
		});
		return this.#stream(call, maxOutputBytes);
	}

	/**
	 * Runs a program's text in python, bash or javascript, whose interpreter the image has to
	 * have, for 60 s.
	 */
	code(
		code: string,
		language: 'python' | 'bash' | 'javascript' = 'python',
		options: CallOptions & { timeoutSeconds?: number } = {},
	): Promise<CommandStream> {
		const { timeoutSeconds = 60, signal } = options;
		const body = { code, language, timeout: timeoutSeconds };
		return this.#stream(
			this.post('/v1/run_code/stream', body, { timeout: timeoutSeconds + GRACE, signal }),
			OUTPUT_MAX,
		);
	}

	async #stream(call: Call, most: number): Promise<CommandStream> {
		const answer = await this.client.stream(call);
		return new CommandStream(answer, new Collected(most, answer.auditId));
	}

	/**
	 * Starts a command in the background. timeoutSeconds absent: it runs until it ends, or its
	 * sandbox does.
	 */
	async start(command: Command, options: StartOptions = {}): Promise<Process> {
		const { stdinOpen, terminal, id, keepBytes, signal } = options;
		const body = {
			background: true,
			...commandBody(command, options),
			...snake({ stdinOpen, tty: terminal, execId: id, keepBytes }),
		};
		const { document, auditId } = await this.ask(
			this.post('/v1/exec', body, {
				key: randomUUID(),
				signal,
				answer: { exec_id: 'string' },
			}),
		);
		return new Process(this.client, this.sandbox, document.exec_id, auditId);
	}

	/** A command that was started, by its id. Asks nothing. */
	connect(id: string): Process {
		return new Process(this.client, this.sandbox, id);
	}

	/** Those that run, and those that have ended lately, the newest first. */
	async list(options?: CallOptions): Promise<ProcessInfo[]> {
		const { document } = await this.ask(
			this.on('GET', '/execs', {
				idempotent: true,
				answer: [shapes.process],
				...options,
			}),
		);
		return document.map((d: Document) => build(d, processNames));
	}

	/**
	 * Runs a command whose input is sent as it comes, until the channel is closed, for a day at
	 * most.
	 */
	open(
		command: Command,
		options: CommandOptions & { terminal?: Terminal } = {},
	): Promise<Channel> {
		const first = { ...commandBody(command, options), ...snake({ tty: options.terminal }) };
		return Channel.open(
			this.client,
			this.on('GET', '/exec', { signal: options.signal }),
			'holt.exec.v1',
			first,
		);
	}
}

/** Servers in a sandbox, which listen at its 127.0.0.1 or ::1. */
export class Ports extends Part {
	/**
	 * Connects a port of 127.0.0.1 on the hub's machine to one of the sandbox. hostPort absent:
	 * one that is free. Everybody on that machine can connect. At most 16 of a sandbox.
	 */
	async forward(guestPort: number, hostPort?: number, options?: CallOptions): Promise<Forward> {
		const call = this.on('POST', '/forward', {
			body: snake({ guestPort, hostPort }),
			idempotent: true,
			answer: shapes.forward,
			...options,
		});
		return forward((await this.ask(call)).document);
	}

	/** Those that are forwarded, and the connections to them. */
	async list(options?: CallOptions): Promise<Forward[]> {
		const { document } = await this.ask(
			this.on('GET', '/forward', {
				idempotent: true,
				answer: { forwards: [shapes.forward] },
				...options,
			}),
		);
		return document.forwards.map(forward);
	}

	/** Ends the forward of a port; absent: all. */
	async close(guestPort?: number, options?: CallOptions): Promise<void> {
		await this.ask(
			this.on('DELETE', '/forward', {
				query: { guest_port: guestPort },
				idempotent: true,
				...options,
			}),
		);
	}

	/**
	 * A link for people to what a server shows, good for ttlSeconds (an hour). Rejects with
	 * ValidationError (code unsupported) unless the hub was started with --preview.
	 */
	async preview(port: number, ttlSeconds?: number, options?: CallOptions): Promise<Preview> {
		const call = this.post('/v1/preview', snake({ port, ttlSeconds }), {
			idempotent: true,
			answer: { url: 'string' },
			...options,
		});
		return build((await this.ask(call)).document);
	}

	/**
	 * One HTTP request to a server, by the hub. Status 502 with the code port_failed: nobody
	 * listens. It needs no port of the hub's machine, and no network of the sandbox. At most
	 * maxBytes (64 MiB) come back.
	 */
	async expose(
		port: number,
		path = '/',
		options: CallOptions & {
			method?: string;
			headers?: Record<string, string>;
			body?: Uint8Array;
			maxBytes?: number;
		} = {},
	): Promise<PortResponse> {
		const { method = 'GET', headers, body: content, maxBytes = ANSWER_MAX, signal } = options;
		const below = encodeURI(path.replace(/^\/+/, '')).replace(/#/g, '%23');
		const params = { port: String(port) };
		const answer = await this.client.open(
			this.on(method, '/expose/{port}/' + below, { params, headers, content, signal }),
		);
		const body = await answer.bytes(maxBytes);
		return {
			status: answer.status,
			headers: Object.fromEntries(
				Object.entries(answer.headers).map(([k, v]) => [k, `${v}`]),
			),
			body,
			text: body.toString(),
		};
	}
}

const forward = (d: Document): Forward => ({
	...build<Forward>(d),
	port: Number(d.host.split(':').at(-1)),
});

/** What a sandbox may reach, while it runs. The operator bounds what can be granted. */
export class Network extends Part {
	/** Its policy, and how many connections and bytes there were. */
	async get(options?: CallOptions): Promise<NetworkInfo> {
		return this.#info('GET', options);
	}

	/**
	 * Replaces it. Connections that stay allowed go on, the others end. revision: what get()
	 * told; rejects with ConflictError if it was changed since, and with PolicyDeniedError if the
	 * operator does not let it.
	 */
	async set(
		policy: NetworkPolicy,
		{ revision, ...options }: CallOptions & { revision?: number } = {},
	): Promise<NetworkInfo> {
		const body = snake({ network: policy.toJSON() ?? { mode: 'none' }, revision });
		return this.#info('POST', { body, ...options });
	}

	async #info(method: string, more?: Partial<Call>): Promise<NetworkInfo> {
		const call = { idempotent: true, answer: shapes.network, ...more };
		return networkInfo((await this.ask(this.on(method, '/network', call))).document);
	}

	/** Of those that change it at once, each round has one that gets through. */
	async #change(
		change: (policy: NetworkPolicy) => NetworkPolicy,
		options?: CallOptions,
	): Promise<NetworkInfo> {
		for (let left = CHANGES_MAX; ; ) {
			const { policy, revision } = await this.get(options);
			try {
				return await this.set(change(policy), { ...options, revision });
			} catch (e) {
				if (!(e instanceof ConflictError) || !--left) throw e;
			}
		}
	}

	/** Grants a host, too; what others change at once stays. port absent: 80 and 443. */
	async allow(
		host: string,
		port?: number,
		http?: HttpRule[],
		options?: CallOptions,
	): Promise<NetworkInfo> {
		return this.#change((policy) => policy.allow(host, port, http), options);
	}

	/** Takes a host back; port absent: at all ports. */
	async revoke(host: string, port?: number, options?: CallOptions): Promise<NetworkInfo> {
		return this.#change((policy) => policy.revoke(host, port), options);
	}
}

function networkInfo(d: Document): NetworkInfo {
	const { revision, opened, denied, failed } = d as NetworkInfo;
	const policy = new NetworkPolicy(d.allow as Host[]);
	return {
		policy,
		revision,
		opened,
		denied,
		failed,
		bytesSent: d.bytes_sent,
		bytesReceived: d.bytes_received,
	};
}

export interface CreateOptions extends CallOptions {
	/** "host" (if absent), the programs of the hub's machine, or an image that the operator has. */
	image?: string;
	/** Absent: NetworkPolicy.denyByDefault(). */
	network?: NetworkPolicy;
	/** Its time to live, an hour if absent; 0: no end; at most 2592000. */
	ttlSeconds?: number;
	/** How long it may be unused. */
	idleSeconds?: number;
	/** Its name; absent: the hub makes one. */
	id?: string;
	env?: Record<string, string>;
	/** Where commands start; /workspace. */
	cwd?: string;
	/** "user" (uid 1000) or "root" within the sandbox. */
	user?: 'user' | 'root';
	limits?: Limits;
	labels?: Record<string, string>;
	/** SecretRef by environment variable, for hosts: programs get placeholders. */
	secrets?: Secrets;
	volumes?: Volume[];
	/** The name of one to show at /workspace. */
	workspace?: string;
	workspaceMode?: 'write' | 'copy';
	profiles?: string[];
	modules?: string[];
	/** What becomes of it when its time is over. */
	retention?: 'destroy' | 'stop' | 'cold' | 'snapshot';
	debug?: boolean;
	/** Absent: a new one, from the environment. */
	client?: Client;
}

export interface CopyOptions extends CallOptions {
	/** The names of all. */
	ids?: string[];
	labels?: Record<string, string>;
}

const copiesBody = (n: number, { ids, labels }: CopyOptions) =>
	snake({ ...(ids ? { ids } : { count: n }), labels });

/**
 * A sandbox. `await using` ends it with the block, if create(), fork() or restore() made it:
 *
 *     await using sandbox = await Sandbox.create({ image: 'host', ttlSeconds: 600 });
 *     await sandbox.files.write('main.py', "print('hello')");
 *     console.log((await sandbox.commands.run(['python3', 'main.py'])).stdout);
 */
export class Sandbox extends Part {
	readonly files: Files;
	readonly commands: Commands;
	readonly ports: Ports;
	readonly network: Network;

	private constructor(
		client: Client,
		readonly id: string,
		private owned = false,
	) {
		super(client, id);
		this.files = new Files(client, id);
		this.commands = new Commands(client, id);
		this.ports = new Ports(client, id);
		this.network = new Network(client, id);
	}

	/**
	 * Makes a sandbox. Rejects with PolicyDeniedError, NotFoundError (image), ConflictError (id),
	 * LimitError. It is sent again, with an idempotency key, where the way to the hub fails.
	 */
	static async create(options: CreateOptions = {}): Promise<Sandbox> {
		const {
			image = 'host',
			network = NetworkPolicy.denyByDefault(),
			ttlSeconds = 3600,
			limits,
			secrets,
			client = new Client(),
			signal,
			...plain
		} = options;
		const body = snake({
			template: image,
			network: network.toJSON(),
			timeoutSeconds: ttlSeconds,
			limits: limits && snake(limits),
			secrets: secretsJson(secrets),
			...plain,
		});
		const { document } = await client.ask({
			method: 'POST',
			route: '/v1/sandboxes',
			body,
			key: randomUUID(),
			signal,
			answer: { id: 'string' },
		});
		return new Sandbox(client, document.id, true);
	}

	/** One that is there, by its id. Rejects with NotFoundError. */
	static async connect(
		id: string,
		options: CallOptions & { client?: Client } = {},
	): Promise<Sandbox> {
		const sandbox = new Sandbox(options.client ?? new Client(), id);
		await sandbox.info({ signal: options.signal });
		return sandbox;
	}

	/**
	 * All that are not terminated, in order of creation. labels: KEY or KEY=VALUE, all must match.
	 */
	static async list(
		options: CallOptions & { state?: string; labels?: string[]; client?: Client } = {},
	): Promise<SandboxInfo[]> {
		const { state, labels, client = new Client(), signal } = options;
		const call = {
			method: 'GET',
			route: '/v1/sandboxes',
			query: { state, label: labels },
			idempotent: true,
			signal,
		};
		return (await client.pages(call, 'sandboxes', shapes.sandbox)).map(sandboxInfo);
	}

	/** n new sandboxes with the files of a snapshot, all or none. */
	static async restore(
		snapshot: string,
		n = 1,
		options: CopyOptions & { client?: Client } = {},
	): Promise<Sandbox[]> {
		const { client = new Client(), signal } = options;
		const { document } = await client.ask({
			method: 'POST',
			route: '/v1/snapshots/{id}/restore',
			params: { id: snapshot },
			body: copiesBody(n, options),
			key: randomUUID(),
			signal,
			answer: shapes.copies,
		});
		return document.sandboxes.map((d: Document) => new Sandbox(client, d.id, true));
	}

	/** What it is now, also for a while after its end; usage: with what it uses. */
	async info(options: CallOptions & { usage?: boolean } = {}): Promise<SandboxInfo> {
		const { usage, signal } = options;
		const call = this.on('GET', '', {
			query: { usage },
			idempotent: true,
			signal,
			answer: shapes.sandbox,
		});
		return sandboxInfo((await this.ask(call)).document);
	}

	/** n copies of its files at one instant, all or none; it runs on. At most 64. */
	async fork(n = 1, options: CopyOptions = {}): Promise<Sandbox[]> {
		const call = this.on('POST', '/fork', {
			body: copiesBody(n, options),
			key: randomUUID(),
			signal: options.signal,
			answer: shapes.copies,
		});
		const { document } = await this.ask(call);
		return document.sandboxes.map((d: Document) => new Sandbox(this.client, d.id, true));
	}

	/** Keeps the files that it has changed beyond its end; ttlSeconds absent: for ever. */
	async snapshot(
		name?: string,
		options: CallOptions & { ttlSeconds?: number } = {},
	): Promise<SnapshotInfo> {
		const { ttlSeconds, signal } = options;
		const call = this.on('POST', '/snapshots', {
			body: snake({ name, ttlSeconds }),
			key: randomUUID(),
			signal,
			answer: shapes.snapshot,
		});
		return snapshotInfo((await this.ask(call)).document);
	}

	/** Stops all that runs in it; its state. */
	pause(options?: CallOptions): Promise<string> {
		return this.#switch('/v1/pause', options);
	}

	/** Continues; one that was stopped starts again with its files. */
	resume(options?: CallOptions): Promise<string> {
		return this.#switch('/v1/resume', options);
	}

	async #switch(route: string, options?: CallOptions): Promise<string> {
		const call = { idempotent: true, answer: { status: 'string' }, ...options };
		return (await this.ask(this.post(route, {}, call))).document.status;
	}

	/** Ends its programs and keeps its files for 30 days; cold: for 7. */
	async stop(options: CallOptions & { cold?: boolean } = {}): Promise<SandboxInfo> {
		const { cold, signal } = options;
		const call = this.on('POST', '/stop', {
			body: snake({ cold }),
			signal,
			answer: shapes.sandbox,
		});
		return sandboxInfo((await this.ask(call)).document);
	}

	/** Its time to live begins anew; when it is over, in seconds since 1970. */
	async setTimeout(seconds: number, options?: CallOptions): Promise<number> {
		const call = this.post(
			'/v1/set_timeout',
			{ timeout_seconds: seconds },
			{ idempotent: true, answer: { deadline_unix: 'number' }, ...options },
		);
		return (await this.ask(call)).document.deadline_unix;
	}

	/** What it has changed against its image; at most 50000 paths. */
	async diff(options: CallOptions & { limit?: number } = {}): Promise<Change[]> {
		const { limit, signal } = options;
		const call = this.on('GET', '/diff', {
			query: { limit },
			idempotent: true,
			signal,
			answer: { changes: [shapes.change] },
		});
		return (await this.ask(call)).document.changes;
	}

	/** A terminal with a shell, or a command, until the channel is closed. */
	pty(
		options: CommandOptions & { command?: Command; terminal?: Terminal } = {},
	): Promise<Channel> {
		const { command, terminal = {}, signal } = options;
		const call = { method: 'GET', route: '/v1/pty', query: { sandbox: this.id }, signal };
		return Channel.open(this.client, call, 'holt.exec.v1', {
			...commandBody(command, options),
			tty: terminal,
		});
	}

	/**
	 * Ends it with all that runs in it; false: there was none any more. Files of a workspace that
	 * it writes to become a revision, unless `discard`.
	 */
	async kill(options: CallOptions & { discard?: boolean } = {}): Promise<boolean> {
		const { discard, signal } = options;
		const call = this.on('DELETE', '', { query: { discard }, idempotent: true, signal });
		const ended = await this.client.ended(call);
		this.owned = false;
		return ended;
	}

	/**
	 * Ends the sandbox if this object made it. Rejects with CleanupError if it may still be there.
	 */
	async close(): Promise<void> {
		if (!this.owned) return;
		try {
			await this.kill();
		} catch (e) {
			if (!(e instanceof HoltError)) throw e;
			throw cleanupError(this.id, e.toJSON(), e.auditId);
		}
	}

	async [Symbol.asyncDispose](): Promise<void> {
		await this.close();
	}

	toJSON(): unknown {
		return { id: this.id };
	}
}
