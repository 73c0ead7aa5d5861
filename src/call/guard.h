#pragma once
/* What operations use of the gate: its parts, each NULL where there is none. They live as long as
 * the hooks. */
#include "base/err.h"
#include "base/words.h"

struct call;
struct approvals;
struct audit;
struct keys;
struct policy;
struct principal;
struct questions;
struct redactor;
struct secrets;

/* A conversation as the operator's file decides of it. */
struct guard_start {
	struct str owner;
	struct str conversation; /* whose agent starts it, "conversation:ID"; STR_NONE: a person */
	struct str agent, workspace; /* may be STR_NONE */
};

struct guard {
	struct keys *keys; /* guard/key */
	struct policy *policy; /* guard/policy */
	struct approvals *approvals; /* guard/approval */
	struct questions *questions; /* ask/question.h */
	bool (*elicits)(void *data, const struct call *c); /* with questions: the person at its
							      client may be asked */
	struct secrets *secrets; /* guard/secret */
	struct audit *audit; /* guard/audit */
	struct redactor *redactor; /* guard/redact */
	/* Where there are secrets: whether who asks may give this one to a program, or to requests
	 * to its hosts, else ERR_DENIED; and that a value is given or stored, to be redacted from
	 * here on. */
	int (*check_secret)(void *data, const struct call *c, struct str name, bool to_hosts,
			    struct err *e);
	int (*gave_secret)(void *data, struct str name, struct str value, struct err *e);
	/* Whether what belongs to this owner still has one: a key may have ended. NULL: always. */
	bool (*knows)(void *data, struct str owner);
	/* Whether this owner may still act, as by a link that it made: an archived conversation is
	 * known, and does not. NULL: always. */
	bool (*acts)(void *data, struct str owner);
	/* The owner of the conversation whose agent this owner is, or itself. NULL: always itself.
	 * Borrowed from owner, or until the loop's next turn. */
	struct str (*works_for)(void *data, struct str owner);
	/* The owners of the keys that made the key of this owner or of whom it works for, one by
	 * the other, the first first, with blanks between (base/words.h). Empty: no key did. NULL:
	 * always. Borrowed until the loop's next turn. */
	struct str (*makers)(void *data, struct str owner);
	/* For whom programs ask of what this owner made: who reads and executes, and is not the
	 * operator. NULL: nobody any more. */
	const struct principal *(*owner)(void *data, struct str owner);
	/* Whether this owner's conversations may have this agent and workspace of the operator's
	 * file, else ERR_DENIED. NULL: all may. */
	int (*check_start)(void *data, const struct guard_start *s, struct err *e);
	void *data; /* of these functions */
};

static inline struct str guard_makers(const struct guard *g, struct str owner)
{
	return g->makers ? g->makers(g->data, owner) : STR_NONE;
}

/* As works_for(), and of a key that a key made the first key of that line: one person, and one
 * share of what is bounded. */
static inline struct str guard_line(const struct guard *g, struct str owner)
{
	struct str makers = guard_makers(g, owner), first;

	if (str_word(&makers, &first))
		return first;
	return g->works_for ? g->works_for(g->data, owner) : owner;
}
