/**
 * What can go wrong, by what helps (docs/rest.md, "Errors"). Each error has a code, a message, a
 * cause, a remediation, and whether the same call may succeed later. Six classes say what kind of
 * reaction helps; four narrower ones are below them:
 *
 *     PolicyDeniedError     the operator's rules forbid it: ask a person, or do without
 *     ValidationError       the request is wrong, or does not fit what is there: change it
 *       NotFoundError         there is no such sandbox, file, template, snapshot
 *       ConflictError         something else is using it, or the name is taken
 *     TimedOutError         its time was over: give it more, or do less
 *     GuestError            what ran in the sandbox failed, or met one of its limits
 *       CommandError          a command that was to be checked did not end with 0
 *     TransportError        the hub, its host or the way to it failed; the request may be right
 *       LimitError            the hub has no room, or takes no more requests now
 *     CleanupError          it is done, but the sandbox is not as asked for
 *
 * What an AbortSignal ends is rejected with the reason of the signal instead.
 */

export type Failure =
	| 'policy_denied'
	| 'validation_failed'
	| 'timeout'
	| 'guest_failed'
	| 'transport_failed'
	| 'cleanup_failed';

export interface ErrorDetails {
	code?: string;
	/** What kind of failure it is. */
	message?: string;
	remediation?: string;
	retryable?: boolean;
	status?: number;
	auditId?: string;
	pointer?: string;
	context?: Record<string, unknown>;
	result?: unknown;
}

/** The base of all errors of this package. */
export class HoltError extends Error {
	static failure: Failure = 'transport_failed';
	static remedy =
		'Try again; if it fails again, tell the operator of the hub what the cause says.';
	/** The class of the failure. */
	readonly failure: Failure;
	/** For programs; never changes its meaning. */
	readonly code: string;
	/** What happened this time. */
	override readonly cause: string;
	/** What kind of failure it is. */
	readonly kind: string;
	/** What can be done. */
	readonly remediation: string;
	/** The same call may succeed later, unchanged. */
	readonly retryable: boolean;
	/** Status of the hub's answer; undefined where there was none. */
	readonly status?: number;
	/** Names the record of the call in the hub's audit log. */
	readonly auditId?: string;
	/** JSON pointer to the value of the request that is at fault, if it is one. */
	readonly pointer?: string;
	/** What it is about: sandbox, path, dimension, … */
	readonly context: Record<string, unknown>;
	/** What there is of a result all the same: of a command that timed out, say. */
	readonly result?: unknown;

	constructor(cause: string, more: ErrorDetails = {}) {
		const own = new.target;
		super(`${more.code ?? own.failure}: ${cause}`);
		this.name = own.name;
		this.failure = own.failure;
		this.code = more.code ?? own.failure;
		this.cause = cause;
		this.kind = more.message ?? cause;
		this.remediation = more.remediation || own.remedy;
		this.retryable = more.retryable ?? false;
		this.status = more.status;
		this.auditId = more.auditId;
		this.pointer = more.pointer;
		this.context = more.context ?? {};
		this.result = more.result;
	}

	/** What to tell a model: JSON without any secret. */
	toJSON(): Record<string, unknown> {
		const { failure, code, cause, remediation, retryable } = this;
		return { failure, code, cause, remediation, retryable, audit_id: this.auditId ?? null };
	}
}

/** The operator's rules forbid it, or the token is not good. */
export class PolicyDeniedError extends HoltError {
	static override failure: Failure = 'policy_denied';
	static override remedy = 'Ask a person to change the policy, or do without.';
}

/** The request is wrong, or does not fit what is there. */
export class ValidationError extends HoltError {
	static override failure: Failure = 'validation_failed';
	static override remedy = 'Correct what the cause names.';
}

/** There is no such sandbox, file, template, snapshot or exec. */
export class NotFoundError extends ValidationError {}

/** Something else is using it, it is paused, or the name is taken. */
export class ConflictError extends ValidationError {}

/** Its time was over. Of a checked command `result` has what it printed. */
export class TimedOutError extends HoltError {
	static override failure: Failure = 'timeout';
	static override remedy = 'Give it more time, or do less in one call.';
}

/** What ran in the sandbox failed, or met one of its limits (`context.dimension`). */
export class GuestError extends HoltError {
	static override failure: Failure = 'guest_failed';
	static override remedy = 'Look at what the command printed and at the limits of the sandbox.';
}

/** A command that was to be checked did not end with 0; `result` has all of it. */
export class CommandError extends GuestError {}

/** The hub can't be reached, went away, or answered what it should not. */
export class TransportError extends HoltError {}

/** The hub has no room for it, or takes no more requests now. */
export class LimitError extends TransportError {}

/** It is done, but the sandbox is not as asked for; `context.sandbox` names it. */
export class CleanupError extends HoltError {
	static override failure: Failure = 'cleanup_failed';
	static override remedy = 'End the sandbox by its id.';
}

const classes = [
	PolicyDeniedError,
	ValidationError,
	TimedOutError,
	GuestError,
	TransportError,
	CleanupError,
];
const limits = ['quota_exceeded', 'rate_limited', 'too_many_streams'];
const conflicts = ['conflict', 'already_answered'];

/** An error of the right class, of a failure that the hub tells. */
export function errorOf(
	failure: string,
	code: string,
	cause: string,
	more: ErrorDetails = {},
): HoltError {
	let found: typeof HoltError = classes.find((c) => c.failure === failure) ?? TransportError;
	if (found === ValidationError && code === 'not_found') found = NotFoundError;
	else if (found === ValidationError && conflicts.includes(code)) found = ConflictError;
	else if (found === TransportError && limits.includes(code)) found = LimitError;
	return new found(cause, { ...more, code });
}

/** The error that an answer with another status than 200 is. */
export function errorOfAnswer(status: number, body: string, auditId?: string): HoltError {
	try {
		const { error: e, result } = JSON.parse(body);
		if ([e.failure, e.code, e.cause].every((text) => typeof text === 'string')) {
			return errorOf(e.failure, e.code, e.cause, {
				message: e.message,
				remediation: e.remediation,
				retryable: e.retryable === true,
				pointer: e.pointer,
				context: e.context,
				status,
				auditId,
				result,
			});
		}
	} catch {
		// no JSON, or another one
	}
	return new TransportError(`the answer has status ${status} and is none of a Holt hub`, {
		code: 'bad_answer',
		status,
		auditId,
		remediation: 'Look whether the base URL is that of a Holt hub.',
	});
}

/** A sandbox that is not as asked for. */
export function cleanupError(
	sandbox: string,
	told: Record<string, unknown>,
	auditId?: string,
	result?: unknown,
) {
	return new CleanupError(String(told.cause ?? 'the sandbox could not be ended'), {
		code: String(told.code ?? 'cleanup_failed'),
		remediation: String(told.remediation ?? ''),
		retryable: told.retryable === true,
		auditId,
		context: { sandbox },
		result,
	});
}
