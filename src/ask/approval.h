#pragma once
/*
 * Approvals: a call that policy wants a person to see becomes a request, in memory and in the
 * registry. It is bound to exactly one call: principal, digest of the request (op_digest()) and the
 * very sandbox that it names. The first answer wins. A request without an answer is denied at its
 * deadline.
 *
 * An approval is good for one call, or as a grant for all calls that it fits: of the same
 * principal, action, sandbox and arguments, but for those that its pattern frees, in the same
 * conversation or for ever. It is marked as used in the registry before the call goes on, so after
 * a crash a call may be lost but never goes twice. Requests outlive the hub: whoever asks for the
 * same again takes its request up, or uses the approval that it got meanwhile.
 *
 * One thread, the loop's. Callbacks come from inside the functions named below, and from the loop.
 */
#include "ask/asks.h"

enum {
	APPROVAL_ARGUMENTS_MAX = 64 << 10, /* bytes that are kept to be shown */
	APPROVAL_PATTERN_MAX = 4 << 10,
	APPROVAL_GRANTS_MAX = 256,
	APPROVAL_CLOSED_MAX = 256, /* that are kept after their end */
};

enum approval_state {
	APPROVAL_PENDING,
	APPROVAL_APPROVED,
	APPROVAL_DENIED,
	APPROVAL_EXPIRED,
	/* its caller wants it no more, its sandbox has ended, or a person took the approval back */
	APPROVAL_VOID,
	APPROVAL_SUPERSEDED, /* a grant that came later let it go */
	APPROVAL_STATES
};
extern const char *const approval_state_names[APPROVAL_STATES];

enum approval_scope { APPROVAL_ONCE, APPROVAL_CONVERSATION, APPROVAL_ALWAYS, APPROVAL_SCOPES };
extern const char *const approval_scope_names[APPROVAL_SCOPES];

struct approvals;
struct approval_wait;

/* Valid until the next call that changes any. */
struct approval {
	struct ask ask; /* open: pending, or approved and still good for a call */
	struct store_approval row; /* but for what `ask` has, state and scope */
	enum approval_state state;
	enum approval_scope scope;
	/* Not all of the arguments are kept, or redaction hides a part: it can't be approved. */
	bool cut, hides;
	/* private: */
	struct approval_wait *waiter;
	struct arena *arena;
};

/* The key alone, where a principal is a key and its id ("key:ci@…"). */
struct str approval_name(struct str principal);

struct approvals_options {
	int64_t expire_ms; /* [0: an hour] from a request to its deadline; likewise for an
			      approval that nobody has used */
	struct asks_options asks; /* max_open [0: 256], max_each [0: 32] */
};

/* Reads the registry. store: borrowed until approvals_free(); NULL: nothing outlives this process.
 * Requests whose deadline has passed are expired, and conversations have ended. */
struct approvals *approvals_new(uv_loop_t *loop, struct store *store,
				const struct approvals_options *o, struct err *e) MUST_USE;
/* Nobody waits. NULL-safe. The loop runs once more. */
void approvals_free(struct approvals *all);
/* For requests to come. */
void approvals_set_expire(struct approvals *all, int64_t expire_ms);

/* ---- who asks ------------------------------------------------------------------------------ */

/* Borrowed for the call. */
struct approval_ask {
	struct str principal, action, target, digest;
	uint64_t sandbox; /* seq of the target's row; 0: there is none */
	struct str arguments; /* JSON object with every member; of any length */
	bool hides; /* a part of the arguments is hidden that nobody knows */
	struct str conversation; /* STR_NONE: there is none that has a name */
	struct str rule; /* why a person is asked, for that person; may be STR_NONE */
};

/* Who waits; the caller's. */
struct approval_wait {
	/* NULL: it is approved and marked as used. Else ERR_DENIED. The waiter is free before. */
	void (*on_end)(void *data, const struct err *e);
	void *data;
	/* private: */
	struct approvals *of;
	struct approval *on;
};

/* 1: an approval or grant lets it go, and is used up if it is good for one call only. 0: it waits;
 * w->on_end follows unless approval_leave() is called. -1: ERR_LIMIT: too many are open; or the
 * registry failed. In every case but -1 *ret is what decides. */
int approval_ask(struct approvals *all, const struct approval_ask *q, struct approval_wait *w,
		 const struct approval **ret, struct err *e) MUST_USE;

/* Waits no more; no callback follows. keep: the request stays, for who asks for the same again;
 * else it is void. */
void approval_leave(struct approval_wait *w, bool keep);

/* Nothing was done of the call that used it up: one that is good for one call is so again. */
void approval_give_back(struct approvals *all, struct str id);

/* The sandbox of this seq has ended: what is open about it and has nobody waiting is void. */
void approvals_end_of(struct approvals *all, uint64_t sandbox);

/* ---- who answers --------------------------------------------------------------------------- */

struct approval_answer {
	struct str id;
	enum approval_state to; /* approved, denied; or void, which takes an approval back */
	enum approval_scope scope; /* when approved */
	/* JSON object: values of arguments that may differ, {"/pointer": "text with *"}. STR_NONE:
	 * none may. A star stands for any text without control characters and without those by
	 * which a shell begins another command; "*" alone for any value. */
	struct str pattern;
	struct str who, surface; /* who answers, through which door */
};

/* ERR_APPROVAL_NOT_FOUND. ERR_ANSWERED: it was answered before; the message says by whom and when.
 * ERR_INVALID: the scope or pattern can't be. Who waits for it, or for what a grant lets go with
 * it, is called back from here, at the end. */
int approval_answer(struct approvals *all, const struct approval_answer *q, struct err *e) MUST_USE;

/* ERR_APPROVAL_NOT_FOUND. */
const struct approval *approval_find(struct approvals *all, struct str id, struct err *e) MUST_USE;

/* As ask/asks.h has them; what it lists is a struct approval. */
static inline struct asks *approvals_asks(struct approvals *all)
{
	return (struct asks *)all; /* its first member */
}

/* The first with a seq above this; NULL: none. */
static inline const struct approval *approval_after(const struct approvals *all, uint64_t seq)
{
	return (const struct approval *)asks_after((const struct asks *)all, seq);
}
