/** The client: requests, and what hangs on an open answer. */
import * as http from 'node:http';
import * as https from 'node:https';
import type { Socket } from 'node:net';
import { type Endpoint, type Token, findEndpoint, findToken } from './config.js';
import {
	type ErrorDetails,
	HoltError,
	LimitError,
	NotFoundError,
	TimedOutError,
	TransportError,
	ValidationError,
	errorOfAnswer,
} from './errors.js';
import {
	type CallOptions,
	RunResult,
	type RunRequest,
	SecretRef,
	type SnapshotInfo,
	build,
} from './types.js';
import * as shapes from './shapes.js';
import { upgradeFields } from './wire.js';

type Document = Record<string, any>;

const IDLE_MS = 30_000; // that a connection is kept for the next call; the hub keeps it for 75 s
const ASKED = 1 << 20; // bytes of a body that the hub may refuse for its size
const ASK_MS = 2000; // for its word on that
const ERROR_MAX = 16 << 20; // of an answer that tells a failure: it may have a result
/** Bytes of an answer, or of one line of a stream. */
export const ANSWER_MAX = 64 << 20;
/** Seconds that an answer may come later than the timeout of what it waits for. */
export const GRACE = 30;
/** Seconds of one request that waits. */
export const WAIT = 60;

/** One request. route and body are as in the hub's OpenAPI document. */
export interface Call extends CallOptions {
	method: string;
	route: string;
	params?: Record<string, string>;
	query?: Record<string, string | number | boolean | readonly string[] | undefined>;
	body?: Document;
	/** Instead of body. */
	content?: Uint8Array | AsyncIterable<Uint8Array>;
	headers?: Record<string, string>;
	/** Seconds for all of it; absent: the client's. */
	timeout?: number;
	/** Can be sent again. */
	idempotent?: boolean;
	/** Makes it so. */
	key?: string;
	/** What is read of the answer; absent: nothing. */
	answer?: shapes.Shape;
}

export interface Answer {
	document: any;
	auditId?: string;
}

export function secretsJson(secrets: Record<string, unknown> | undefined): Document | undefined {
	for (const [name, ref] of Object.entries(secrets ?? {})) {
		const plain =
			typeof ref === 'object' &&
			ref !== null &&
			Object.keys(ref).every((k) => k === 'ref' || k === 'file');
		if (!(ref instanceof SecretRef) && !plain) {
			throw new ValidationError(`secrets: ${name} is no SecretRef`, {
				code: 'invalid_secret',
				remediation: "Give the name of a secret of the operator's: new SecretRef(NAME).",
			});
		}
	}
	return secrets;
}

export interface ClientOptions {
	/**
	 * http://HOST[:PORT], https://HOST[:PORT] or unix:/PATH. Absent: HOLT_BASE_URL,
	 * MITOS_BASE_URL, else the hub of this user by its Unix socket.
	 */
	baseUrl?: string;
	/**
	 * Absent: HOLT_API_KEY, MITOS_API_KEY, else the token file of this user's hub (Unix socket) or
	 * credentials.json (HTTP), unless that is for another server. It is never in a text, a log or
	 * an error.
	 */
	apiKey?: string;
	/** Seconds for a request that waits for nothing else; 60. */
	requestTimeout?: number;
	/**
	 * How often a request that can be sent again is, after a failure of the way to the hub or
	 * while it takes no more; 2. In between 0.1 s, 0.2 s, …, or what the hub says.
	 */
	retries?: number;
}

/**
 * A hub and the connections to it.
 *
 * Throws ValidationError if baseUrl or apiKey are none, PolicyDeniedError if the token file or
 * credentials.json is open to other users. Nothing is connected before the first call. Every call
 * may reject with any HoltError.
 */
export class Client {
	readonly #endpoint: Endpoint;
	readonly #token: Token | undefined;
	readonly #agent: http.Agent;
	readonly #requestTimeout: number;
	readonly #retries: number;

	constructor(options: ClientOptions = {}) {
		this.#endpoint = findEndpoint(options.baseUrl, process.env);
		this.#token = findToken(options.apiKey, this.#endpoint, process.env);
		this.#requestTimeout = options.requestTimeout ?? 60;
		this.#retries = options.retries ?? 2;
		const keep = {
			keepAlive: true,
			keepAliveMsecs: IDLE_MS,
			maxFreeSockets: 32,
			timeout: IDLE_MS,
		};
		this.#agent = this.#endpoint.tls ? new https.Agent(keep) : new http.Agent(keep);
	}

	/** Without the token. */
	toJSON(): Document {
		return { baseUrl: this.#endpoint.url, token: this.#token ? 'set' : 'unset' };
	}

	/** Closes connections that are idle. Another call opens new ones. */
	close(): void {
		this.#agent.destroy();
	}

	[Symbol.dispose](): void {
		this.close();
	}

	// ---- what one can ask a hub that is about no one sandbox

	/** Whether it works: status, templates, sandboxes, tier. Needs no token. */
	async health(options?: CallOptions): Promise<Document> {
		return (
			await this.ask({
				...options,
				method: 'GET',
				route: '/v1/health',
				idempotent: true,
				answer: 'object',
			})
		).document;
	}

	/** Names of images that sandboxes can be made from; "host" is always there. */
	async templates(options?: CallOptions): Promise<string[]> {
		const { document } = await this.ask({
			...options,
			method: 'GET',
			route: '/v1/templates',
			idempotent: true,
			answer: [{ id: 'string' }],
		});
		return document.map((t: Document) => t.id);
	}

	/**
	 * Makes a sandbox, writes files, runs a command, and ends or keeps the sandbox:
	 * docs/contract.md.
	 *
	 * The request may be a model's: the hub refuses what its schema does not have. A command that
	 * fails or times out is a result; check() of it throws. Not sent again by itself.
	 */
	async run(request: RunRequest, options?: CallOptions): Promise<RunResult> {
		const seconds = typeof request.timeout_seconds === 'number' ? request.timeout_seconds : 30;
		secretsJson(request.secrets);
		const call = {
			method: 'POST',
			route: '/v1/run',
			body: request,
			timeout: seconds + GRACE + WAIT,
			answer: shapes.run,
		};
		return new RunResult((await this.ask({ ...options, ...call })).document);
	}

	/** All that this token may see, in order of creation. */
	async snapshots(options?: CallOptions): Promise<SnapshotInfo[]> {
		const call = { ...options, method: 'GET', route: '/v1/snapshots', idempotent: true };
		return (await this.pages(call, 'snapshots', shapes.snapshot)).map(snapshotInfo);
	}

	/** One of them. Rejects with NotFoundError. */
	async snapshot(id: string, options?: CallOptions): Promise<SnapshotInfo> {
		const call = {
			method: 'GET',
			route: '/v1/snapshots/{id}',
			params: { id },
			idempotent: true,
			answer: shapes.snapshot,
		};
		return snapshotInfo((await this.ask({ ...options, ...call })).document);
	}

	/** Deletes one; false if there is none. */
	async deleteSnapshot(id: string, options?: CallOptions): Promise<boolean> {
		const call = {
			method: 'DELETE',
			route: '/v1/snapshots/{id}',
			params: { id },
			idempotent: true,
		};
		return this.ended({ ...options, ...call });
	}

	/** The record of a call in the audit log, and its signed receipt: docs/audit.md. */
	async auditRecord(auditId: string, options?: CallOptions): Promise<Document> {
		const call = {
			method: 'GET',
			route: '/v1/audit/{audit_id}',
			params: { audit_id: auditId },
			idempotent: true,
			answer: 'object',
		};
		return (await this.ask({ ...options, ...call })).document;
	}

	// ---- how

	/** @internal An answer of JSON; sent again where that may be. */
	async ask(call: Call): Promise<Answer> {
		for (let attempt = 0; ; attempt++) {
			try {
				const answer = await this.open(call);
				const body = await answer.text(answer.status === 200 ? ANSWER_MAX : ERROR_MAX);
				if (answer.status !== 200) throw this.#refusal(answer, body);
				const document = parse(body);
				if (call.answer) shapes.check(document, call.answer, answer.auditId);
				return { document, auditId: answer.auditId };
			} catch (e) {
				const pause = this.#pause(call, e, attempt);
				if (pause === undefined) throw e;
				await sleep(pause, call.signal);
			}
		}
	}

	/** @internal False: there was none. */
	async ended(call: Call): Promise<boolean> {
		try {
			await this.ask(call);
			return true;
		} catch (e) {
			if (e instanceof NotFoundError) return false;
			throw e;
		}
	}

	/** @internal All members of a list that comes in pages. */
	async pages(call: Call, name: string, one: shapes.Shape): Promise<Document[]> {
		const found: Document[] = [];
		let cursor: string | undefined;
		do {
			const { document } = await this.ask({
				...call,
				query: { limit: 100, ...call.query, cursor },
				answer: { [name]: [one], next_cursor: 'string?' },
			});
			found.push(...document[name]);
			cursor = document.next_cursor;
		} while (cursor);
		return found;
	}

	/** @internal An answer whose body comes as a stream without an end of its own. */
	async stream(call: Call): Promise<OpenAnswer> {
		const answer = await this.open(call, true);
		if (answer.status !== 200) throw this.#refusal(answer, await answer.text(ERROR_MAX));
		return answer;
	}

	/** @internal Sends a call, and waits for the head of the answer, whatever its status is. */
	open(call: Call, endless = false): Promise<OpenAnswer> {
		return new Promise((resolve, reject) => {
			const { request, over } = this.#send(call, {}, reject);
			request.on('response', (response) => {
				if (endless && call.timeout === undefined) over.clear();
				resolve(new OpenAnswer(request, response, call, over));
			});
		});
	}

	/** @internal A WebSocket: its socket, and what came behind the head. */
	socket(
		call: Call,
		protocol: string,
	): Promise<{ socket: Socket; head: Buffer; auditId?: string }> {
		return new Promise((resolve, reject) => {
			const [fields, accept] = upgradeFields(protocol);
			const { request, over } = this.#send(call, fields, reject);
			request.on('upgrade', (response, socket, head) => {
				over.clear();
				if (response.headers['sec-websocket-accept'] !== accept) {
					socket.destroy();
					reject(
						new TransportError('the answer is no WebSocket of a hub', {
							code: 'bad_answer',
						}),
					);
					return;
				}
				resolve({ socket: socket as Socket, head, auditId: auditIdOf(response) });
			});
			request.on('response', (response) => {
				const answer = new OpenAnswer(request, response, call, over);
				answer.text(ERROR_MAX).then((body) => reject(this.#refusal(answer, body)), reject);
			});
		});
	}

	#send(call: Call, more: Record<string, string>, reject: (e: unknown) => void) {
		const { unix, host, port, tls, prefix } = this.#endpoint;
		const headers: http.OutgoingHttpHeaders = {
			...call.headers,
			...more,
			'User-Agent': 'holt-typescript/0.1',
		};
		let body: Uint8Array | AsyncIterable<Uint8Array> | undefined = call.content;
		if (call.body) {
			body = Buffer.from(JSON.stringify(call.body));
			headers['Content-Type'] = 'application/json';
		} else if (body) {
			headers['Content-Type'] ??= 'application/x-tar';
		}
		if (body instanceof Uint8Array || /^P/.test(call.method)) {
			if (!body || body instanceof Uint8Array) headers['Content-Length'] = body?.length ?? 0;
		}
		if (body instanceof Uint8Array && body.length > ASKED) headers.Expect = '100-continue';
		if (call.key) headers['Idempotency-Key'] = call.key;
		if (this.#token) headers.Authorization = 'Bearer ' + this.#token.reveal();
		const over = new Deadline(call.timeout ?? this.#requestTimeout, () =>
			request.destroy(new OutOfTime()),
		);
		const request = (tls ? https : http).request({
			agent: more.Upgrade ? false : this.#agent,
			method: call.method,
			path: prefix + target(call),
			headers,
			signal: call.signal,
			...(unix ? { socketPath: unix } : { host, port }),
		});
		let connected = false;
		request.on('socket', (socket) => {
			connected = request.reusedSocket;
			if (connected) return;
			socket.once(tls ? 'secureConnect' : 'connect', () => (connected = true));
			socket.setKeepAlive(true, IDLE_MS);
		});
		request.on('error', (e) => {
			over.clear();
			reject(this.#lost(call, e, connected));
		});
		if (body && !(body instanceof Uint8Array)) {
			sendPieces(request, body).catch((e) => request.destroy(e));
		} else if (headers.Expect) {
			const wait = setTimeout(() => request.end(body), ASK_MS); // a proxy may say nothing
			request.on('continue', () => request.end(body));
			for (const end of ['continue', 'response', 'close'])
				request.on(end, () => clearTimeout(wait));
			request.flushHeaders();
		} else {
			request.end(body);
		}
		return { request, over };
	}

	#lost(call: Call, e: Error, connected: boolean): unknown {
		if (call.signal?.aborted) return call.signal.reason;
		if (connected || e instanceof OutOfTime) return lost(call, e);
		return new TransportError(`no hub answers at ${this.#endpoint.url}: ${reason(e)}`, {
			code: 'unreachable',
			retryable: true,
			remediation:
				'Start one with `holt serve`, or say where it is: baseUrl or HOLT_BASE_URL.',
		});
	}

	#refusal(answer: OpenAnswer, body: string): HoltError {
		return errorOfAnswer(
			answer.status,
			this.#token ? this.#token.hideIn(body) : body,
			answer.auditId,
		);
	}

	#pause(call: Call, e: unknown, attempt: number): number | undefined {
		const again = call.idempotent || call.key !== undefined;
		if (attempt >= this.#retries || !again || !(e instanceof TransportError) || !e.retryable)
			return undefined;
		const said = e instanceof LimitError ? Number(e.context.retry_after_ms) : NaN;
		return Math.min(said > 0 ? said : 100 * 2 ** attempt, 5000) * (0.8 + Math.random() * 0.4);
	}
}

/** An answer as it comes. */
export class OpenAnswer {
	readonly status: number;
	readonly headers: http.IncomingHttpHeaders;
	readonly auditId?: string;

	constructor(
		private readonly request: http.ClientRequest,
		private readonly response: http.IncomingMessage,
		private readonly call: Call,
		private readonly over: Deadline,
	) {
		this.status = response.statusCode ?? 0;
		this.headers = response.headers;
		this.auditId = auditIdOf(response);
	}

	async *pieces(): AsyncGenerator<Buffer, void> {
		try {
			for await (const piece of this.response) yield piece as Buffer;
		} catch (e) {
			if (this.call.signal?.aborted) throw this.call.signal.reason;
			throw lost(this.call, e as Error);
		} finally {
			this.close();
		}
	}

	async bytes(most: number): Promise<Buffer> {
		const pieces: Buffer[] = [];
		let size = 0;
		for await (const piece of this.pieces()) {
			pieces.push(piece);
			size += piece.length;
			if (size > most)
				throw new TransportError(`the answer has more than ${most} bytes`, {
					code: 'answer_too_large',
				});
		}
		return Buffer.concat(pieces);
	}

	async text(most: number): Promise<string> {
		return (await this.bytes(most)).toString();
	}

	/** What is left of the answer does not come any more; a command that it tells about ends. */
	close(): void {
		this.over.clear();
		if (!this.response.complete || !this.request.writableEnded) this.request.destroy();
	}
}

class OutOfTime extends Error {}

class Deadline {
	readonly #timer: NodeJS.Timeout;

	constructor(seconds: number, then: () => void) {
		this.#timer = setTimeout(then, Math.min(seconds * 1000, 2 ** 31 - 1));
	}

	clear(): void {
		clearTimeout(this.#timer);
	}
}

function target(call: Call): string {
	let path = call.route;
	for (const [name, value] of Object.entries(call.params ?? {}))
		path = path.replace(`{${name}}`, encodeURIComponent(value));
	const query = new URLSearchParams();
	for (const [name, value] of Object.entries(call.query ?? {})) {
		for (const one of Array.isArray(value) ? value : [value])
			if (one !== undefined) query.append(name, String(one));
	}
	return `${query}` ? `${path}?${query}` : path;
}

async function sendPieces(
	request: http.ClientRequest,
	pieces: AsyncIterable<Uint8Array>,
): Promise<void> {
	for await (const piece of pieces) {
		if (!request.write(piece))
			await new Promise((resolve) => request.once('drain', resolve).once('close', resolve));
		if (request.destroyed) return;
	}
	request.end();
}

function auditIdOf(response: http.IncomingMessage): string | undefined {
	const id = response.headers['audit-id'];
	return Array.isArray(id) ? id[0] : id;
}

function reason(e: Error): string {
	return (e as NodeJS.ErrnoException).code ?? (e.message || e.name);
}

export function lost(call: Call, e: Error): HoltError {
	const retryable = !!call.idempotent || call.key !== undefined;
	const more: ErrorDetails =
		e instanceof OutOfTime
			? {
					code: 'request_timeout',
					remediation:
						'Give a longer requestTimeout, or look whether the hub is overloaded.',
				}
			: {
					code: 'connection_lost',
					remediation:
						'Look what became of it before it is done again: the hub may have done it.',
				};
	return e instanceof OutOfTime
		? new TimedOutError(`the hub did not answer ${call.method} ${call.route} in time`, {
				...more,
				retryable,
			})
		: new TransportError(
				`the connection broke during ${call.method} ${call.route}: ${reason(e)}`,
				{ ...more, retryable },
			);
}

export function parse(text: string): any {
	try {
		return JSON.parse(text);
	} catch {
		throw new TransportError('the answer is no JSON', { code: 'bad_answer' });
	}
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
	return new Promise((resolve, reject) => {
		const done = () => {
			clearTimeout(timer);
			signal?.removeEventListener('abort', stop);
		};
		const stop = () => (done(), reject(signal?.reason));
		const timer = setTimeout(() => (done(), resolve()), ms);
		if (signal?.aborted) stop();
		else signal?.addEventListener('abort', stop);
	});
}

export function snapshotInfo(d: Document): SnapshotInfo {
	return build(d, { template_id: 'image' });
}
