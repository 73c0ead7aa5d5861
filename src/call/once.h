#pragma once
/*
 * Calls of operations with OP_KEYED whose client gave a key (call_set_key()): asked twice, done
 * once. What will be made has its names before it is begun, so that nothing is made twice even
 * where the hub was killed in the middle of the first time. The key is good for one principal and
 * action, and one request.
 */
#include "call/call.h"
#include "hub/sandbox/idempotent.h"

enum once {
	/* The call has ended: answered with what was stored, or refused. */
	ONCE_OVER = -1,
	/* Make them. */
	ONCE_NEW,
	/* The first time was cut off: see first whether those of the plan are there. */
	ONCE_AGAIN,
};

/* plan: the names of what is going to be made, separated by spaces; where the answer is
 * ONCE_AGAIN it is that of the first time, in the call's arena. Without a key all calls are new.
 * The answer to the call is stored, its failure lets the key go. */
enum once once_begin(struct call *c, struct str *plan);

/* Of a call that has nobody any more: its client has said that it will ask again, so that what it
 * wants is made all the same. Else the call is to fail, and what was made for it to be removed. */
bool once_kept(struct call *c);

/* For call/call.c, which keeps it with the call. */
struct once_key {
	struct str text; /* as the client gave it; STR_NONE: it gave none */
	bool begun;
	struct idempotent_key key;
};
void once_store(struct call *c, const void *result);
void once_drop(struct call *c);
