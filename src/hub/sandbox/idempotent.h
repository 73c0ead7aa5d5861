#pragma once
/*
 * Requests that carry an Idempotency-Key: asked twice, done once. What was answered is in the
 * registry for 24 hours and given again; the number and the bytes of all answers are bounded, the
 * oldest go first.
 *
 *	switch (idempotent_begin(all, &key, plan, &answer, e)) {
 *	case IDEMPOTENT_NEW: do it, then idempotent_end() or idempotent_drop()
 *	case IDEMPOTENT_RESUMED: the same, but see first whether what answer.plan names is there
 *	case IDEMPOTENT_DONE: answer.status and answer.body are the answer
 *	case IDEMPOTENT_REFUSED: *e
 */
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct hub_sandboxes;

enum { IDEMPOTENT_KEY_MAX = 255, IDEMPOTENT_PLAN_MAX = 8192, IDEMPOTENT_BODY_MAX = 1 << 20 };

/* Borrowed for the call. */
struct idempotent_key {
	/* Keys of different scopes are unrelated: the principal and the kind of request; at most
	 * 255 bytes. */
	struct str scope;
	struct str key; /* 1 to 255 printable ASCII characters, else ERR_INVALID */
	struct str request; /* method, path and body, of which a digest is kept */
};

enum idempotent {
	IDEMPOTENT_REFUSED =
		-1, /* ERR_CONFLICT: the key is in flight, or belongs to another request */
	IDEMPOTENT_NEW,
	/* in flight when an earlier hub ended: its progress is unknown */
	IDEMPOTENT_RESUMED,
	IDEMPOTENT_DONE,
};

struct idempotent_answer { /* borrowed until the next call of any of these */
	int status;
	struct str body;
	struct str plan; /* RESUMED: that of the first time */
};

/* plan: what the request will create, such as ids of sandboxes, decided before it begins. A
 * RESUMED request must use the stored plan. */
enum idempotent idempotent_begin(struct hub_sandboxes *all, const struct idempotent_key *key,
				 struct str plan, struct idempotent_answer *ret,
				 struct err *e) MUST_USE;

/* Stores the answer before it is sent. On failure the answer is sent all the same, and the key
 * counts as dropped. */
int idempotent_end(struct hub_sandboxes *all, const struct idempotent_key *key, int status,
		   struct str body, struct err *e) MUST_USE;

/* The request failed and left nothing behind: the key may be tried again. */
void idempotent_drop(struct hub_sandboxes *all, const struct idempotent_key *key);
