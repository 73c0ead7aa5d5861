#pragma once
/*
 * The stages of a call, for a program that does its user's bidding itself, without a hub (`holt
 * run`, builds, doctor): straight-line code between local_begin(), which returns once the call may
 * run, and local_end(), which returns once it is audited.
 */
#include "call/call.h"

struct local;

/* request: the operation's struct, borrowed until local_end(). NULL with what a stage refused
 * it for. */
struct local *local_begin(const struct op_hooks *hooks, const struct op *op, const void *request,
			  struct err *e) MUST_USE;

/* Reads secrets for it, which it has until local_end(). -1 with what they were refused for, and the
 * call has failed with that. */
struct exec_secret;
struct secret_refs;
int local_grant(struct local *l, const struct secret_refs *refs, const struct exec_secret **ret,
		size_t *ret_n, struct err *e) MUST_USE;

/* What is printed of it, as redaction lets it; borrowed until local_end(). */
struct str local_redact(struct local *l, struct str bytes);

/* err: NULL, or how it failed. l is gone. NULL-safe. */
void local_end(struct local *l, const struct err *err);

/* The run function of such operations. */
void local_run(struct call *c, const void *request);
