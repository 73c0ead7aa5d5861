#pragma once
/* What operations on requests for approval and on questions to people share. */
#include "ask/approval.h"
#include "call/op.h"

struct approval_view {
	struct str id, state, principal, action, target, rule, arguments;
	bool arguments_cut, arguments_hidden;
	uint64_t arguments_bytes;
	struct str digest, created_at, expires_at, scope, pattern, conversation, answered_by,
		answered_over, answered_at, used_at;
};
extern const struct field_table approval_view_table;

/* Copies into the call's arena, since the next change of any may free it. */
int approval_describe(struct call *c, const struct approval *q, struct approval_view *ret,
		      struct err *e) MUST_USE;

/* The caller may not answer its own request: neither an agent, nor the bearer of the key. */
int approval_check_answers(const struct call *c, struct str principal, struct err *e) MUST_USE;
/* Nor one for which that key answers: another of its line, or an agent that works for it. What
 * allows an action needs that. */
int approval_check_person(const struct call *c, struct str principal, struct err *e) MUST_USE;
/* The request, where the caller may answer it. */
const struct approval *approval_answerable(struct call *c, struct str id, struct err *e) MUST_USE;
