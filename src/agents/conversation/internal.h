#pragma once
#include "agents/conversation/conversation.h"
#include "base/blake2b.h"

/* The driver of the conversations of one agent. */
struct talk_drive {
	struct talk_drive *next;
	const struct talk_driver *driver; /* NULL: nothing does any more */
	void *data;
	char agent[]; /* its name */
};

struct talks {
	uv_timer_t timer; /* until a prompt may be sent, or the trash is looked at */
	struct talks_options o;
	char *path;
	struct conversations *store;
	struct talk **p; /* by id */
	size_t n, cap;
	struct talk_drive *drives;
	int64_t sweep_ms; /* when the trash, and what is idle, are looked at next */
	bool draining; /* talks_drain() */
	bool closing;
};

struct talk {
	struct talks *all;
	struct conversation *of;
	struct queue *queue; /* NULL: not open */
	struct talk_watch *watches;
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
	void *driver_state;
	bool has_token;
	uint8_t token[BLAKE2B_BYTES]; /* its hash */
	void *token_state;
};

/* ---- talks.c --------------------------------------------------------------------------------- */

/* Looks for prompts to send on the loop's next turn, or in so many ms at the latest. */
void talks_kick(struct talks *all, uint64_t in_ms);

/* ---- watch.c --------------------------------------------------------------------------------- */

/* Tells those who watch: something of it changed, or it is gone. kind: for the feed. */
void talk_tell(struct talk *t, const char *kind);
void talk_tell_gone(struct talk *t);
/* Appends {"NAME":"VALUE"}; a failure is logged, since nobody could be told. */
void talk_note(struct talk *t, const char *type, const char *name, const char *value);

/* ---- turn.c ---------------------------------------------------------------------------------- */

const struct talk_drive *talk_drive_of(const struct talk *t); /* NULL: nothing drives it */
/* Sends the next prompt if it can be sent. Gives in how many ms the next one may be; UINT64_MAX:
 * none waits for a time. */
uint64_t talk_pump(struct talk *t, int64_t now_ms);
/* Ends what the driver has of it, and a turn under way; why: its stop_reason. */
void talk_stop_driver(struct talk *t, const char *why);
/* Its queue, opened. */
struct queue *talk_open_queue(struct talk *t, struct err *e) MUST_USE;

/* ---- token.c --------------------------------------------------------------------------------- */

void talk_end_token(struct talk *t);
