#pragma once
#include "agents/conversation/conversation.h"
#include "base/blake2b.h"

/* The driver of the conversations of one agent. */
struct conversation_drive {
	struct conversation_drive *next;
	const struct conversation_driver *driver; /* NULL: nothing does any more */
	void *data;
	char agent[]; /* its name */
};

struct conversations {
	uv_timer_t timer; /* until a prompt may be sent, or the trash is looked at */
	struct conversations_options o;
	char *path;
	struct conversation_store *store;
	struct conversation **p; /* by id */
	size_t n, cap;
	struct conversation_drive *drives;
	int64_t sweep_ms; /* when the trash, and what is idle, are looked at next */
	bool draining; /* conversations_drain() */
	bool closing;
};

struct conversation {
	struct conversations *all;
	struct conversation_folder *of;
	struct queue *queue; /* NULL: not open */
	struct conversation_watch *watches;
	int64_t updated_ms;
	/* The prompt of the newest user_prompt, so that none is in the log twice. */
	char last_prompt[QUEUE_ID + 1];
	bool looked; /* at how the last turn ended */
	bool ended; /* its owner's key, though that may not stand in the record */
	bool missing; /* an event could not be written, and the log does not tell yet */
	bool counted; /* so that a list opens no log twice */
	uint64_t count, last;
	/* A turn, and whether the agent has its prompt. */
	bool turning, begun, stalled, cancelled;
	char prompt[QUEUE_ID + 1];
	unsigned waits;
	struct agent_offer offer;
	struct err trouble; /* of the last turn, or of the one under way; code 0: none */
	void *driver_state;
	bool has_token;
	uint8_t token[BLAKE2B_BYTES]; /* its hash */
	void *token_state;
};

/* ---- talks.c --------------------------------------------------------------------------------- */

/* Looks for prompts to send on the loop's next turn, or in so many ms at the latest. */
void conversations_kick(struct conversations *all, uint64_t in_ms);

/* ---- watch.c --------------------------------------------------------------------------------- */

/* Tells those who watch: something of it changed, or it is gone. kind: for the feed. */
void conversation_tell(struct conversation *t, const char *kind);
void conversation_tell_gone(struct conversation *t);
/* Appends {"NAME":"VALUE"}; a failure is logged, since nobody could be told. */
void conversation_note(struct conversation *t, const char *type, const char *name,
		       const char *value);

/* ---- turn.c ---------------------------------------------------------------------------------- */

const struct conversation_drive *conversation_drive_of(
	const struct conversation *t); /* NULL: nothing drives it */
/* Sends the next prompt if it can be sent. Gives in how many ms the next one may be; UINT64_MAX:
 * none waits for a time. */
uint64_t conversation_pump(struct conversation *t, int64_t now_ms);
/* Ends what the driver has of it, and a turn under way; why: its stop_reason. */
void conversation_stop_driver(struct conversation *t, const char *why);
/* Its queue, opened. */
struct queue *conversation_open_queue(struct conversation *t, struct err *e) MUST_USE;

/* ---- token.c --------------------------------------------------------------------------------- */

void conversation_end_token(struct conversation *t);
