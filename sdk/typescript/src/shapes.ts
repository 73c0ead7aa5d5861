/**
 * What of an answer is read. One that lacks it is none of a hub, and the call rejects with
 * TransportError instead of giving values of other types.
 */
import { TransportError } from './errors.js';

/** A type, with a question mark where it may be absent; a list; or members. */
export type Shape = string | readonly Shape[] | { readonly [member: string]: Shape };

const isObject = (d: unknown): d is Record<string, unknown> =>
	typeof d === 'object' && d !== null && !Array.isArray(d);

function misfit(d: any, shape: Shape, at: string): string | undefined {
	if (typeof shape === 'string') {
		const kind = shape.replace('?', '');
		const fits = kind === 'object' ? isObject(d) : typeof d === kind;
		return fits || (d === undefined && kind !== shape) ? undefined : `${at} is no ${kind}`;
	}
	const isList = Array.isArray(shape);
	if (isList !== Array.isArray(d) || (!isList && !isObject(d)))
		return `${at} is no ${isList ? 'list' : 'object'}`;
	const members: [string, Shape][] = isList
		? d.map((_: unknown, i: number) => [`${i}`, shape[0]!])
		: Object.entries(shape);
	for (const [name, one] of members) {
		const found = misfit(d[name], one, `${at}/${name}`);
		if (found) return found;
	}
	return undefined;
}

export function badAnswer(why: string, auditId?: string): TransportError {
	return new TransportError(`the answer is none of a Holt hub: ${why}`, {
		code: 'bad_answer',
		auditId,
	});
}

export function check(document: unknown, shape: Shape, auditId?: string): void {
	const found = misfit(document, shape, '');
	if (found) throw badAnswer(found, auditId);
}

export const sandbox = { id: 'string', state: 'string', generation: 'number', created_at: 'string' };
export const copies = { sandboxes: [{ id: 'string' }] };
export const snapshot = {
	id: 'string',
	created_at: 'string',
	bytes: 'number',
	unpacked_bytes: 'number',
	digest: 'string',
};
export const file = {
	is_dir: 'boolean',
	type: 'string',
	size: 'number',
	mode: 'number',
	modified_at: 'number',
};
export const piece = { content: 'string', size: 'number', next_offset: 'number?' };
/** The end of a command, as a stream or WebSocket tells it. */
export const end = {
	failure: 'string?',
	code: 'string?',
	error: 'string?',
	state: 'string?',
	exit_code: 'number?',
	exec_time_ms: 'number?',
	signal: 'number?',
};
export const result = {
	exit_code: 'number',
	exec_time_ms: 'number',
	exec_id: 'string',
	stdout: 'string?',
	stdout_base64: 'string?',
	stderr: 'string?',
	stderr_base64: 'string?',
};
export const process = { exec_id: 'string', ...end, state: 'string' };
export const chunk = { stream: 'string', data: 'string', offset: 'number?' };
export const dropped = { bytes: 'number' };
export const output = { chunks: [chunk], next_offset: 'number', eof: 'boolean' };
export const word = { exit: 'object?', error: 'object?' };
export const failure = { failure: 'string', code: 'string', cause: 'string' };
export const waited = { result: 'string', offset: 'number?' };
export const forward = { guest_port: 'number', host: 'string' };
export const network = {
	allow: [{ host: 'string', port: 'number?' }],
	revision: 'number',
	opened: 'number',
	denied: 'number',
	failed: 'number',
	bytes_sent: 'number',
	bytes_received: 'number',
};
export const change = { change: 'string', type: 'string', path: 'string' };
export const run = {
	sandbox_id: 'string',
	exit_code: 'number',
	stdout: 'string',
	stderr: 'string',
	timed_out: 'boolean',
	audit_id: 'string',
	retention: 'string',
	failure: 'string?',
	cleanup: 'object?',
};
