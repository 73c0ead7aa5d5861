/** What hangs on an open answer or WebSocket: events, output as it comes, terminals. */
import type { Socket } from 'node:net';
import {
	ANSWER_MAX,
	type Call,
	type Client,
	type OpenAnswer,
	WAIT,
	lost,
	parse,
} from './client.js';
import { HoltError, TimedOutError, TransportError, errorOf } from './errors.js';
import * as shapes from './shapes.js';
import { CommandResult, type Data, Output } from './types.js';
import { BINARY, CLOSE, Messages, PING, PONG, TEXT, encodeFrame } from './wire.js';

type Document = Record<string, any>;

/** Of stdout and of stderr, in bytes. */
export const OUTPUT_MAX = 1 << 20;
const INPUT_PIECE = 128 << 10; // of a message with standard input, in bytes
const WAITING_MAX = 32; // messages of a channel that nobody has taken

export function waitOver(seconds: number | undefined): TimedOutError {
	return new TimedOutError(`it did not come within ${seconds} s; the command goes on`, {
		code: 'wait_timeout',
	});
}

/** The head and the tail of a stream. */
class Kept {
	#head: Buffer[] = [];
	#tail: Buffer[] = [];
	#headRoom: number;
	#tailMax: number;
	#tailSize = 0;
	elided = 0;

	constructor(most: number) {
		this.#headRoom = Math.floor(most / 2);
		this.#tailMax = most - this.#headRoom;
	}

	add(data: Uint8Array): void {
		const piece = Buffer.from(data);
		const head = piece.subarray(0, this.#headRoom);
		this.#headRoom -= head.length;
		this.#head.push(head);
		this.#tail.push(piece.subarray(head.length));
		this.#tailSize += piece.length - head.length;
		while (this.#tailSize > this.#tailMax) {
			const first = this.#tail[0]!;
			const n = Math.min(first.length, this.#tailSize - this.#tailMax);
			if (n === first.length) this.#tail.shift();
			else this.#tail[0] = first.subarray(n);
			this.#tailSize -= n;
			this.elided += n;
		}
	}

	all(): Buffer {
		const mark = this.elided ? `\n[... ${this.elided} bytes elided ...]\n` : ''; // as the hub's
		return Buffer.concat([...this.#head, Buffer.from(mark), ...this.#tail]);
	}
}

/** What a command printed, and how it ended, from the events of a stream or WebSocket. */
export class Collected {
	readonly #kept: { stdout: Kept; stderr: Kept };
	#result: CommandResult | undefined;

	constructor(
		maxOutputBytes: number,
		private readonly auditId?: string,
		private readonly execId?: string,
	) {
		this.#kept = { stdout: new Kept(maxOutputBytes), stderr: new Kept(maxOutputBytes) };
	}

	add(piece: Output): Output {
		if (!Object.hasOwn(this.#kept, piece.stream))
			throw shapes.badAnswer(`there is no stream ${piece.stream}`, this.auditId);
		this.#kept[piece.stream].add(piece.data);
		return piece;
	}

	/** A line of a stream; undefined: the end, or that something was dropped. */
	line(d: Document): Output | undefined {
		if (d.kind === 'chunk') {
			shapes.check(d, shapes.chunk, this.auditId);
			return this.add(new Output(d.stream, Buffer.from(d.data, 'base64'), d.offset));
		}
		if (d.kind === 'dropped') {
			shapes.check(d, shapes.dropped, this.auditId);
			this.#kept.stdout.elided += d.bytes;
		} else if (d.kind === 'exit') {
			this.end(d);
		}
		return undefined;
	}

	/** Throws where it was no end of the command: it never ran, or its sandbox ended. */
	end(d: Document): CommandResult {
		shapes.check(d, shapes.end, this.auditId);
		const timedOut = d.failure === 'timeout' || d.state === 'timed_out';
		const { auditId, execId } = this;
		if (d.failure && !timedOut)
			throw errorOf(d.failure, d.code ?? '', d.error ?? '', { auditId });
		if (d.exit_code === undefined) {
			throw errorOf(
				'guest_failed',
				'exec_failed',
				d.error ?? `the command is ${d.state ?? 'lost'}`,
				{ auditId },
			);
		}
		const { stdout, stderr } = this.#kept;
		this.#result = new CommandResult({
			exitCode: d.exit_code,
			stdoutBytes: stdout.all(),
			stderrBytes: stderr.all(),
			timedOut,
			auditId,
			execId,
			durationMs: d.exec_time_ms ?? 0,
			signal: d.signal,
			stdoutElidedBytes: stdout.elided,
			stderrElidedBytes: stderr.elided,
			limit: timedOut ? undefined : d.dimension,
		});
		return this.#result;
	}

	get hasEnded(): boolean {
		return this.#result !== undefined;
	}

	ended(): CommandResult {
		if (!this.#result)
			throw new TransportError('the end of the command did not come', {
				code: 'connection_lost',
			});
		return this.#result;
	}
}

/** Within a time; undefined where it did not come. What is waited for goes on. */
async function within<T>(promise: Promise<T>, seconds: number | undefined): Promise<T | undefined> {
	if (seconds === undefined) return promise;
	let timer: NodeJS.Timeout | undefined;
	const over = new Promise<undefined>((resolve) => {
		timer = setTimeout(() => resolve(undefined), seconds * 1000);
	});
	try {
		return await Promise.race([promise, over]);
	} finally {
		clearTimeout(timer);
	}
}

/**
 * Iterates over what an answer tells line by line, with `for await`. `await using` ends it with
 * the block.
 */
export class Events<T> implements AsyncIterable<T> {
	readonly #answer: OpenAnswer;
	readonly #shape: shapes.Shape;
	readonly #make: (d: Document) => T | undefined;
	readonly #events: AsyncGenerator<T, undefined>;
	#next: Promise<IteratorResult<T, undefined>> | undefined;
	#closed = false;

	constructor(
		answer: OpenAnswer,
		shape: shapes.Shape,
		make: (d: Document) => T | undefined,
	) {
		this.#answer = answer;
		this.#shape = shape;
		this.#make = make;
		this.#events = this.#read();
	}

	async *#read(): AsyncGenerator<T, undefined> {
		let got: Buffer = Buffer.alloc(0);
		try {
			for await (const piece of this.#answer.pieces()) {
				got = Buffer.concat([got, piece]);
				for (let at = got.indexOf(10); at >= 0; at = got.indexOf(10)) {
					const line = got.toString('utf8', 0, at);
					got = got.subarray(at + 1);
					const event = line.trim() ? this.#event(parse(line)) : undefined;
					if (event !== undefined) yield event;
				}
				if (got.length > ANSWER_MAX)
					throw new TransportError('a line of the answer is too long', {
						code: 'bad_answer',
					});
			}
		} catch (e) {
			if (!this.#closed) throw e;
		}
		return undefined;
	}

	#event(d: Document): T | undefined {
		shapes.check(d, this.#shape, this.#answer.auditId);
		return this.#make(d);
	}

	/**
	 * The next one; undefined at the end, or if none came within `timeout` seconds. After that it
	 * goes on.
	 */
	async get(timeout?: number): Promise<T | undefined> {
		this.#next ??= this.#events.next();
		const next = await within(this.#next, timeout);
		if (!next) return undefined;
		this.#next = undefined;
		return next.value;
	}

	async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
		try {
			for (let event = await this.get(); event !== undefined; event = await this.get())
				yield event;
		} finally {
			this.close();
		}
	}

	close(): void {
		this.#closed = true;
		this.#answer.close();
	}

	async [Symbol.asyncDispose](): Promise<void> {
		this.close();
	}
}

/** A command whose output comes as it prints. It ends when this is closed. */
export class CommandStream extends Events<Output> {
	readonly #collected: Collected;

	constructor(answer: OpenAnswer, collected: Collected) {
		super(answer, { kind: 'string' }, (d) => collected.line(d));
		this.#collected = collected;
	}

	/** Reads to the end; how it ended. */
	async wait(): Promise<CommandResult> {
		for await (const _ of this);
		return this.result;
	}

	/**
	 * How it ended, once all of its output was read. Throws TransportError before, or if the
	 * stream was cut.
	 */
	get result(): CommandResult {
		return this.#collected.ended();
	}
}

/**
 * A command over a WebSocket: output as it comes, input as it is sent, a terminal if it has one.
 *
 * What is not taken stays with the hub beyond 32 messages, and stops the command. Closing ends a
 * command that was opened, and leaves one that was attached to.
 */
export class Channel implements AsyncIterable<Output> {
	readonly #socket: Socket;
	readonly #call: Call;
	readonly #collected: Collected;
	readonly #messages = new Messages();
	readonly #got: Output[] = [];
	#end: HoltError | undefined;
	#over = false;
	#wake: (() => void)[] = [];
	readonly #abort = () => this.#stop(this.#call.signal?.reason);

	private constructor(call: Call, socket: Socket, auditId: string | undefined) {
		this.#call = call;
		this.#socket = socket;
		this.#collected = new Collected(OUTPUT_MAX, auditId);
		socket.setTimeout(0);
		socket.on('data', (data) => this.#feed(data));
		socket.on('error', (e) => this.#stop(lost(call, e)));
		socket.on('close', () => this.#stop(lost(call, new Error('the connection ended'))));
		call.signal?.addEventListener('abort', this.#abort);
	}

	/** @internal */
	static async open(
		client: Client,
		call: Call,
		protocol: string,
		first?: Document,
	): Promise<Channel> {
		const { socket, head, auditId } = await client.socket(call, protocol);
		const channel = new Channel(call, socket, auditId);
		if (first) socket.write(encodeFrame(TEXT, Buffer.from(JSON.stringify({ open: first }))));
		channel.#feed(head);
		return channel;
	}

	#feed(data: Uint8Array): void {
		if (this.#over) return;
		try {
			for (const { opcode, payload } of this.#messages.feed(data))
				this.#message(opcode, payload);
		} catch (e) {
			this.#stop(e instanceof HoltError ? e : lost(this.#call, e as Error));
		}
		if (this.#got.length >= WAITING_MAX) this.#socket.pause();
	}

	#message(opcode: number, payload: Buffer): void {
		if (opcode === PING) {
			this.#socket.write(encodeFrame(PONG, payload));
		} else if (opcode === CLOSE) {
			this.#socket.end(encodeFrame(CLOSE, payload.subarray(0, 2)));
			this.#stop(undefined);
		} else if (opcode === BINARY && (payload[0] === 1 || payload[0] === 2)) {
			const stream = payload[0] === 1 ? 'stdout' : 'stderr';
			this.#got.push(this.#collected.add(new Output(stream, payload.subarray(1))));
			this.#tell();
		} else if (opcode === TEXT) {
			const d = parse(payload.toString());
			shapes.check(d, shapes.word);
			if (d.exit) {
				this.#collected.end(d.exit);
			} else if (d.error) {
				shapes.check(d.error, shapes.failure);
				throw errorOf(d.error.failure, d.error.code, d.error.cause, d.error);
			}
		}
	}

	#stop(why: HoltError | undefined): void {
		if (this.#over) return;
		this.#over = true;
		this.#end = this.#collected.hasEnded ? undefined : why;
		this.#call.signal?.removeEventListener('abort', this.#abort);
		if (why) this.#socket.destroy();
		this.#tell();
	}

	#tell(): void {
		for (const wake of this.#wake.splice(0)) wake();
	}

	/** The next output; undefined at the end, or if none came within `timeout` seconds. */
	async read(timeout?: number): Promise<Output | undefined> {
		if (!this.#got.length && !this.#over) {
			await within(new Promise<void>((resolve) => this.#wake.push(resolve)), timeout);
		}
		const piece = this.#got.shift();
		if (this.#got.length < WAITING_MAX) this.#socket.resume();
		if (!piece && this.#end) throw this.#end;
		return piece;
	}

	async *[Symbol.asyncIterator](): AsyncGenerator<Output, void> {
		for (let piece = await this.read(); piece; piece = await this.read()) yield piece;
	}

	/**
	 * Standard input; of a terminal, what is typed. Resolves when it has left; a command that does
	 * not read lets that wait, up to 60 s.
	 */
	async write(data: Data): Promise<void> {
		const bytes = Buffer.from(data as Uint8Array);
		for (let at = 0; at < bytes.length; at += INPUT_PIECE) {
			await this.#frame(
				BINARY,
				Buffer.concat([Buffer.of(0), bytes.subarray(at, at + INPUT_PIECE)]),
			);
		}
	}

	/** The end of standard input; a terminal gets its end-of-file character. */
	async closeStdin(): Promise<void> {
		await this.#say({ stdin_close: true });
	}

	/** Another size of the terminal. */
	async resize(cols: number, rows: number): Promise<void> {
		await this.#say({ resize: { cols, rows } });
	}

	/** A signal for the process group of the command. */
	async signal(number: number): Promise<void> {
		await this.#say({ signal: number });
	}

	async #say(word: Document): Promise<void> {
		await this.#frame(TEXT, Buffer.from(JSON.stringify(word)));
	}

	async #frame(opcode: number, data: Uint8Array): Promise<void> {
		if (this.#over) throw this.#end ?? lost(this.#call, new Error('the command has ended'));
		const sent = new Promise<true>((resolve, reject) => {
			this.#socket.write(encodeFrame(opcode, data), (e) =>
				e ? reject(lost(this.#call, e)) : resolve(true),
			);
		});
		sent.catch(() => undefined); // also where nobody waits any more
		if (!(await within(sent, WAIT))) throw lost(this.#call, new Error('nobody reads it'));
	}

	/**
	 * Reads to the end; how the command ended, with at most 1 MiB of each stream.
	 *
	 * Rejects with TimedOutError after `timeout` seconds, and the command goes on; GuestError
	 * where it never ran or its sandbox ended; TransportError if the hub went away.
	 */
	async wait(timeout?: number): Promise<CommandResult> {
		const until = timeout === undefined ? Infinity : Date.now() + timeout * 1000;
		while (!this.#over || this.#got.length) {
			const left = (until - Date.now()) / 1000;
			if (left <= 0) throw waitOver(timeout);
			await this.read(timeout === undefined ? undefined : left);
		}
		if (this.#end) throw this.#end;
		return this.#collected.ended();
	}

	/** Ends the connection. */
	close(): void {
		this.#stop(undefined);
		this.#socket.destroy();
	}

	async [Symbol.asyncDispose](): Promise<void> {
		this.close();
	}
}
