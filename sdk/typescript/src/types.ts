/** What is asked for and what is answered: plain data. */
import { CommandError, TimedOutError, cleanupError } from './errors.js';

/** A command line for the shell, or a program with its arguments, which no shell reads. */
export type Command = string | readonly string[];
/** Text is sent as UTF-8. */
export type Data = string | Uint8Array;

/** Of every call: what aborts it ends what the hub does for it, too. */
export interface CallOptions {
	signal?: AbortSignal;
}

// ---- what is asked for ------------------------------------------------------------------------

/** A secret of the operator's by its name; its value never passes through here. */
export class SecretRef {
	/** file: the variable has the path of a file with the value instead; for commands only. */
	constructor(
		readonly ref: string,
		readonly file = false,
	) {}

	toJSON(): { ref: string; file?: true } {
		return this.file ? { ref: this.ref, file: true } : { ref: this.ref };
	}
}

export type Secrets = Record<string, SecretRef>;

/** Which requests a host may get. Absent: any; a * at the end of a path: any rest. */
export interface HttpRule {
	method?: string;
	path?: string;
	then?: 'allow' | 'deny' | 'ask';
}

/** A name, *.NAME, an address range, or a preset of the operator's. port absent: 80 and 443. */
export interface Host {
	host: string;
	port?: number;
	http?: HttpRule[];
}

/** What a sandbox may reach: nothing but `hosts`. The operator decides what may be granted. */
export class NetworkPolicy {
	constructor(
		readonly hosts: readonly Host[] = [],
		readonly ofTemplate = false,
	) {}

	/** Nothing; allow() adds to it. */
	static denyByDefault(): NetworkPolicy {
		return new NetworkPolicy();
	}

	/** What the image and the profiles want, where the operator lets it. */
	static fromTemplate(): NetworkPolicy {
		return new NetworkPolicy([], true);
	}

	/** A policy that allows this host, too; what it said of the same host and port is replaced. */
	allow(host: string, port?: number, http?: HttpRule[]): NetworkPolicy {
		const kept = this.hosts.filter((h) => h.host !== host || h.port !== port);
		return new NetworkPolicy([...kept, { host, port, http }], this.ofTemplate);
	}

	/** A policy without this host. port absent: at no port. */
	revoke(host: string, port?: number): NetworkPolicy {
		const kept = this.hosts.filter(
			(h) => h.host !== host || (port !== undefined && h.port !== port),
		);
		return new NetworkPolicy(kept, this.ofTemplate);
	}

	toJSON(): unknown {
		if (this.hosts.length) return { mode: 'bridge', allow: this.hosts };
		return this.ofTemplate ? undefined : { mode: 'none' };
	}
}

/**
 * What a sandbox may use; absent: the hub's default. Memory counts processes and files together.
 */
export interface Limits {
	memoryMb?: number;
	diskMb?: number;
	pids?: number;
	cpus?: number;
	openFiles?: number;
}

/** A folder or file of the hub's host, where its operator allows that. */
export interface Volume {
	host: string;
	inside: string;
	mode?: 'ro' | 'rw' | 'rw-all';
}

/** Size of a terminal (80 by 24), and the variable TERM (xterm-256color). */
export interface Terminal {
	cols?: number;
	rows?: number;
	term?: string;
}

/** The contract of docs/contract.md, as a model may send it: the hub checks all of it. */
export interface RunRequest {
	command: string[];
	state: { retention: 'destroy' | 'stop' | 'cold' | 'snapshot' };
	language?: string;
	image?: string;
	files?: { path: string; content: string }[];
	env?: Record<string, string>;
	secrets?: Record<string, SecretRef | { ref: string; file?: boolean }>;
	network?: { mode?: 'none' | 'bridge'; allow?: Host[] };
	working_dir?: string;
	stdin?: string;
	timeout_seconds?: number;
	max_output_bytes?: number;
	ttl_seconds?: number;
}

// ---- what is answered -------------------------------------------------------------------------

type Document = Record<string, any>;

/**
 * An answer with its members in camel case, some under other names. What the hub has more is
 * there, too; what is in members of members stays as the hub has it.
 */
export function build<T>(d: Document, names: Record<string, string> = {}): T {
	const camel = (name: string) => name.replace(/_([a-z0-9])/g, (_, c: string) => c.toUpperCase());
	return Object.fromEntries(Object.entries(d).map(([k, v]) => [names[k] ?? camel(k), v])) as T;
}

/** A sandbox as the hub sees it (docs/rest.md). Times ending in Unix are seconds since 1970. */
export interface SandboxInfo {
	id: string;
	/** running, paused, stopped, cold, terminated, lost, failed, … */
	state: string;
	generation: number;
	/** RFC 3339. */
	createdAt: string;
	image: string;
	/** The sandbox that it was forked from. */
	source?: string;
	/** Why it ended, where nobody asked for that. */
	cause?: string;
	deadlineUnix?: number;
	ttlSeconds?: number;
	idleSeconds?: number;
	retention: string;
	user: string;
	debug?: boolean;
	/** What isolates it. */
	tier: string;
	fromPool: boolean;
	madeMs?: number;
	endpoint: string;
	labels?: Record<string, string>;
	limits: Document;
	network: Document;
	volumes?: Document[];
	modules?: string[];
	usage?: Document;
}
export const sandboxNames = {
	template_id: 'image',
	fork_time_ms: 'madeMs',
	timeout_seconds: 'ttlSeconds',
};

/** Files of a sandbox that were kept. */
export interface SnapshotInfo {
	id: string;
	createdAt: string;
	/** Of its archive. */
	bytes: number;
	unpackedBytes: number;
	/** SHA-256 of the archive, hex. */
	digest: string;
	name?: string;
	source?: string;
	image: string;
	/** Absent: never. */
	expiresAt?: string;
	diskMb: number;
}

/** An entry of a directory, or what a path is. A link is not followed in a list. */
export interface FileInfo {
	isDir: boolean;
	/** file, directory, symlink, other */
	type: string;
	/** Bytes. */
	size: number;
	/** Permission bits. */
	mode: number;
	/** Seconds since 1970. */
	modifiedAt: number;
	name: string;
	path: string;
}

/**
 * created, modified, attributes, removed, moved_from, moved_to; overflow: changes were lost;
 * ended.
 */
export interface WatchEvent {
	kind: string;
	isDir: boolean;
	/** Below the directory that is watched. */
	path?: string;
	/** Where its bytes are not UTF-8. */
	pathBase64?: string;
	/** The same for both ends of one move. */
	cookie?: number;
}

/** A piece of what a command printed. */
export class Output {
	/** offset: of its first byte; of a background command only. */
	constructor(
		readonly stream: 'stdout' | 'stderr',
		readonly data: Uint8Array,
		readonly offset?: number,
	) {}

	/** A character may be cut at either end; what is no UTF-8 is replaced. */
	get text(): string {
		return Buffer.from(this.data).toString();
	}
}

export interface CommandEnd {
	exitCode: number;
	stdoutBytes: Uint8Array;
	stderrBytes: Uint8Array;
	timedOut: boolean;
	auditId?: string;
	durationMs: number;
	execId?: string;
	signal?: number;
	stdoutElidedBytes: number;
	stderrElidedBytes: number;
	limit?: string;
}

/** How a command ended. Output beyond maxOutputBytes of a stream has a mark in place of its middle. */
export class CommandResult {
	/** 128 and the number of a signal that ended it; 124: its timeout. */
	readonly exitCode: number;
	readonly stdoutBytes: Uint8Array;
	readonly stderrBytes: Uint8Array;
	readonly timedOut: boolean;
	/** Names the record in the audit log of the call that started it. */
	readonly auditId?: string;
	readonly durationMs: number;
	readonly execId?: string;
	readonly signal?: number;
	readonly stdoutElidedBytes: number;
	readonly stderrElidedBytes: number;
	/** The limit of the sandbox that it met: memory, pids or disk. */
	readonly limit?: string;

	constructor(end: CommandEnd) {
		this.exitCode = end.exitCode;
		this.stdoutBytes = end.stdoutBytes;
		this.stderrBytes = end.stderrBytes;
		this.timedOut = end.timedOut;
		this.auditId = end.auditId;
		this.durationMs = end.durationMs;
		this.execId = end.execId;
		this.signal = end.signal;
		this.stdoutElidedBytes = end.stdoutElidedBytes;
		this.stderrElidedBytes = end.stderrElidedBytes;
		this.limit = end.limit;
	}

	get stdout(): string {
		return Buffer.from(this.stdoutBytes).toString();
	}

	get stderr(): string {
		return Buffer.from(this.stderrBytes).toString();
	}

	get ok(): boolean {
		return this.exitCode === 0 && !this.timedOut;
	}

	/** Itself, where it ended with 0. Else throws TimedOutError or CommandError. */
	check(): this {
		return checked(this, this.ok, this.timedOut, {
			exit_code: this.exitCode,
			dimension: this.limit,
		});
	}
}

function checked<T extends { exitCode: number; auditId?: string }>(
	result: T,
	ok: boolean,
	timedOut: boolean,
	context: Record<string, unknown>,
): T {
	const { auditId } = result;
	if (ok) return result;
	if (timedOut) {
		throw new TimedOutError('the command was killed at its timeout', {
			code: 'exec_timeout',
			retryable: true,
			auditId,
			context,
			result,
		});
	}
	throw new CommandError(`the command ended with ${result.exitCode}`, {
		code: 'command_failed',
		auditId,
		context,
		result,
	});
}

/** A command by its id, running or ended. */
export interface ProcessInfo {
	id: string;
	/** At most 512 bytes of it. */
	command: string;
	/** running, exited, signaled, timed_out, failed, lost */
	state: string;
	background: boolean;
	tty: boolean;
	stdinOpen: boolean;
	startedAt: string;
	endedAt?: string;
	exitCode?: number;
	signal?: number;
	durationMs?: number;
	hitMemory?: boolean;
	hitPids?: boolean;
	/** Of the oldest byte of output that is kept. */
	firstOffset: number;
	/** Behind the newest one. */
	nextOffset: number;
	stdoutBytes: number;
	stderrBytes: number;
	error?: string;
	outputError?: string;
}
export const processNames = { exec_id: 'id', exec_time_ms: 'durationMs' };

/** What a sandbox may reach, and how much it did. */
export interface NetworkInfo {
	policy: NetworkPolicy;
	/** Another after each change. */
	revision: number;
	/** Connections. */
	opened: number;
	denied: number;
	failed: number;
	bytesSent: number;
	bytesReceived: number;
}

/** A port of a sandbox at a port of 127.0.0.1 on the hub's machine. */
export interface Forward {
	guestPort: number;
	/** 127.0.0.1:PORT */
	host: string;
	port: number;
	connections?: number;
	connectionsTotal?: number;
}

/** A link for people; whoever has it sees what the server shows. */
export interface Preview {
	url: string;
	expiresUnix: number;
}

/** What a server in a sandbox answered. */
export interface PortResponse {
	status: number;
	/** By their names in lower case. */
	headers: Record<string, string>;
	body: Uint8Array;
	readonly text: string;
}

/** A path that differs from the image: added, changed or removed. */
export interface Change {
	change: string;
	type: string;
	path: string;
}

/** The answer of run(): docs/contract.md. */
export class RunResult {
	readonly sandboxId!: string;
	readonly exitCode!: number;
	readonly stdout!: string;
	readonly stderr!: string;
	readonly timedOut!: boolean;
	readonly auditId!: string;
	readonly retention!: string;
	readonly durationMs!: number;
	readonly stdoutTruncatedBytes!: number;
	readonly stderrTruncatedBytes!: number;
	readonly isolation!: string;
	/** timeout, guest_failed or cleanup_failed; absent: all is as asked for. */
	readonly failure?: string;
	readonly snapshotId?: string;
	/** Why the sandbox is not as asked for. */
	readonly cleanup?: { code: string; cause: string; remediation: string; retryable: boolean };
	/** The record of the call as a line of JSON, which `holt audit verify` reads. */
	readonly receipt?: string;

	constructor(d: Document) {
		Object.assign(this, build<Document>(d));
	}

	get ok(): boolean {
		return this.failure === undefined;
	}

	/**
	 * Itself, where all is as asked for. Else throws TimedOutError, CommandError or CleanupError.
	 */
	check(): this {
		if (this.failure === 'cleanup_failed')
			throw cleanupError(this.sandboxId, this.cleanup ?? {}, this.auditId, this);
		return checked(this, this.ok, this.failure === 'timeout', { exit_code: this.exitCode });
	}
}
