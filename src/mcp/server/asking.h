#pragma once
/*
 * The questions that one call has asked its client, and the answers so far: plain data, without
 * anybody asking. mcp/server/ask.c asks. Sealed as text, it is the requestState that a modern client keeps
 * for us between two of its requests (MCP 2026-07-28, basic/patterns/mrtr).
 */
#include "base/seal.h"
#include "json/document/json.h"
#include "mcp/server/internal.h"

enum {
	MCP_ASK_KEY_MAX = 64,
	MCP_ASK_BYTES_MAX = 4 << 20, /* of all questions and answers of one call, as JSON */
	MCP_ASK_ROUNDS_MAX = 64,
};

struct mcp_asked {
	struct mcp_reach
		reach; /* first: found by it. Listed while a legacy client has the question */
	uint64_t sent_ms; /* since when */
	void *stream; /* where it was sent */
	struct mcp_asked *next; /* of the same call, as they were asked */
	struct mcp_call *call;
	char key[MCP_ASK_KEY_MAX + 1];
	enum mcp_ask_kind kind;
	enum { MCP_ASKED_OPEN, MCP_ASKED_ANSWERED, MCP_ASKED_FAILED } state;
	struct json_doc *params; /* NULL: none */
	struct json_doc *answer; /* once answered */
	char *error; /* why there is no answer, once it failed; NULL without memory */
};

struct mcp_asking {
	struct mcp_asked *first, *last;
	unsigned n, open; /* questions; those without an answer or failure */
	unsigned rounds;
	size_t bytes;
	char *state; /* the handler's; NULL: none */
	size_t state_n;
	bool waits; /* the handler has returned and runs again when `open` is 0 */
};

/* Frees what it holds, not itself. No question is sent. */
void mcp_asking_fini(struct mcp_asking *a);

struct mcp_asked *mcp_asking_find(const struct mcp_asking *a, struct str key);

/* The handler's state is this from now on; copied. */
int mcp_asking_set_state(struct mcp_asking *a, struct str state, struct err *e) MUST_USE;

/* A further open question. ERR_BUG where the key or the parameters are not fit for one, ERR_TOO_LARGE
 * over MCP_ASK_BYTES_MAX, ERR_LIMIT. */
struct mcp_asked *mcp_asking_add(struct mcp_asking *a, struct str key, enum mcp_ask_kind kind,
				 struct str params, struct err *e) MUST_USE;

/* Moves the questions of `from` behind those of a; from is empty then. ERR_TOO_LARGE, and nothing is
 * moved, over MCP_ASK_BYTES_MAX. */
int mcp_asking_append(struct mcp_asking *a, struct mcp_asking *from, struct err *e) MUST_USE;

/* Gives an open question its answer, a copy of v. ERR_INVALID where v is no answer to it, with the
 * key; it stays open then. */
int mcp_asked_answer(struct mcp_asking *a, struct mcp_asked *q, const struct json_val *v,
		     struct err *e) MUST_USE;

/* An open question will have no answer. The text is copied. */
void mcp_asked_fail(struct mcp_asking *a, struct mcp_asked *q, struct str why);

/* Appends all of it, sealed for `context`. */
int mcp_asking_seal(const struct mcp_asking *a, const struct seal_ring *ring, struct str context,
		    uint64_t expires, struct buf *to, struct err *e) MUST_USE;

/* Fills an empty one. Errors as those of seal_open(). */
int mcp_asking_open(struct mcp_asking *a, const struct seal_ring *ring, struct str context,
		    uint64_t now, struct str text, struct err *e) MUST_USE;

/* --- ask.c: who asks --- */

bool mcp_ask_can(const struct mcp_call *c, unsigned needs); /* MCP_CAN_… */
/* That of c, made at the first use; NULL without memory. */
struct mcp_asking *mcp_asking_of(struct mcp_call *c, struct err *e);
/* Runs the handler, at once or when it has returned; c may be gone then. */
void mcp_ask_run_again(struct mcp_call *c);
/* The same, and a task goes on, if no question is open. */
void mcp_ask_settled(struct mcp_call *c);
/* The open questions as InputRequests. */
void mcp_ask_write(struct json_writer *w, const struct mcp_call *c);
/* Takes what answers has for the open questions of c; keys that are none are ignored. */
int mcp_ask_take(struct mcp_call *c, const struct json_val *answers, struct rpc_fault *f) MUST_USE;

/* --- ask_modern.c --- */

/* Answers the call with its questions, unless answers came with it. asked: there are new ones. c may
 * be gone then. */
int mcp_ask_modern(struct mcp_call *c, bool asked, struct err *e) MUST_USE;

/* --- ask_legacy.c --- */

/* Sends the open questions that no legacy client has to this one. */
int mcp_ask_send(struct mcp_call *c, struct mcp_session *s, void *stream, struct err *e) MUST_USE;
/* Takes back those that clients have. */
void mcp_ask_withdraw(struct mcp_call *c, const char *reason);

/* --- task.c: of a task's questions --- */

void mcp_task_asks(struct mcp_call *c); /* some are open */
/* Who had some is gone. Without effect on calls that are no tasks. */
void mcp_task_asks_others(struct mcp_call *c);
void mcp_task_goes_on(struct mcp_call *c); /* none is any more */
