#pragma once
/*
 * The conversations of a running hub, over their folders (store/conversation): events with those
 * who watch, the turn of each, the delivery of queued prompts to the agent, and tokens. What drives
 * an agent is a driver, registered by the agent's name in the operator's file; a conversation whose
 * agent has no driver keeps its queue.
 *
 * A prompt is delivered at least once. It is queued on the disk before talk_send() returns; it is
 * given to the driver; it leaves the queue when the driver says that the agent has it
 * (talk_turn_begin()), after its event user_prompt is on the disk. A hub that is killed before
 * sends it again, one that is killed later tells "interrupted" in a stop event.
 *
 * One thread, the loop's. What changes a record or a queue writes to the disk and may take some
 * milliseconds. Drivers are called from the loop, never from inside a function of this header but
 * talk_cancel(), talk_archive(), talk_delete(), talks_drive() and talks_close().
 */
#include <uv.h>

#include "agents/store/conversations.h"
#include "agents/store/queue.h"
#include "base/secret.h"

struct feed;
struct talks;
struct talk;

enum talk_state {
	TALK_NO_AGENT, /* nothing drives its agent */
	TALK_IDLE,
	TALK_RUNNING,
	TALK_REQUIRES_ACTION, /* a person is asked */
	TALK_STALLED, /* a turn of which nothing was heard for long */
	TALK_STATES
};
extern const char *const talk_state_names[TALK_STATES];

struct talks_options {
	struct feed *feed; /* borrowed until talks_close(); NULL: none */
	int64_t trash_seconds; /* [0: 30 days] how long what was deleted can be taken back */
	int64_t archive_seconds; /* after which idle ones are archived; 0: they are not */
	/* The token of a conversation is good for nothing any more. May be NULL. */
	void (*on_token_end)(void *owner, struct talk *t);
	void *owner;
};

/* Opens the folder, or makes it. ERR_STORE_LOCKED: another hub has it. */
struct talks *talks_open(uv_loop_t *loop, const char *path, const struct talks_options *o,
			 struct err *e) MUST_USE;
/* The hub is about to end: no prompt is given to a driver any more. Turns under way go on; one that
 * fails before the agent has its prompt puts that back, for the next hub. */
void talks_drain(struct talks *all);
/* Closes each conversation's driver. NULL-safe; the loop runs once more. */
void talks_close(struct talks *all);

const char *talks_path(const struct talks *all); /* as given */
size_t talks_count(const struct talks *all);
struct talk *talks_at(const struct talks *all, size_t i); /* by age, the oldest first */
struct talk *talks_find(const struct talks *all, struct str id); /* NULL: there is none */

/* ---- one conversation ------------------------------------------------------------------------ */

/* As conversation_new(); the event session_start is in its log. */
struct talk *talk_new(struct talks *all, const struct conversation_record *r,
		      struct err *e) MUST_USE;

const char *talk_id(const struct talk *t);
const struct conversation_record *talk_record(const struct talk *t); /* until the next change */
bool talk_permits(const struct talk *t, enum conversation_flag flag);
enum talk_state talk_state(const struct talk *t);
bool talk_is_prompting(const struct talk *t); /* a turn is under way */
bool talk_is_running(const struct talk *t); /* its driver has something of it */
size_t talk_queue_length(const struct talk *t);
/* How many events there are, and the number of the last one. */
int talk_counts(struct talk *t, uint64_t *ret_count, uint64_t *ret_last, struct err *e) MUST_USE;
int64_t talk_updated_ms(const struct talk *t); /* of the last event or change; 0: not known */
int talk_folder(const struct talk *t); /* for documents of others; borrowed */

/* As conversation_change(). */
int talk_change(struct talk *t, const struct conversation_record *r, struct err *e) MUST_USE;

/* Puts it away: its agent and its token end, and it takes no prompts; or takes it out again. */
int talk_archive(struct talk *t, bool archived, enum conversation_why why, struct err *e) MUST_USE;

/* Its first child in the list from *from on, which is moved behind that. NULL: there is none. */
struct talk *talk_child(const struct talk *t, size_t *from);

/* Moves it to the trash; t is gone. ERR_CONFLICT: it has children. */
int talk_delete(struct talk *t, struct err *e) MUST_USE;
/* owner: whose alone; STR_NONE: anyone's. */
struct talk *talk_take_back(struct talks *all, struct str id, struct str owner,
			    struct err *e) MUST_USE;
/* The owner of one in the trash; the caller frees it. NULL: none is there, or it can't be read. */
char *talks_trashed_owner(const struct talks *all, struct str id);

/* ---- events ---------------------------------------------------------------------------------- */

struct talk_event {
	uint64_t seq; /* 0: it is only live, and not in the log */
	const char *type;
	struct str data; /* JSON object */
};

/* Each may be NULL. They may remove their own watch, and change nothing else. */
struct talk_watch {
	void (*on_event)(void *data, const struct talk_event *ev);
	void (*on_change)(void *data); /* its state, record or queue */
	void (*on_gone)(void *data); /* it is deleted; nobody watches any more */
	void *data;
	/* private: */
	struct talk_watch *next;
};
void talk_watch_add(struct talk *t, struct talk_watch *w);
void talk_watch_remove(struct talk *t, struct talk_watch *w);

/* data: a JSON object on one line, at most EVENTS_DATA_MAX. In the log when it returns. ret_seq may
 * be NULL. */
int talk_append(struct talk *t, const char *type, struct str data, uint64_t *ret_seq,
		struct err *e) MUST_USE;
/* Only for those who watch now, such as a piece of a message whose whole is appended later. */
void talk_live(struct talk *t, const char *type, struct str data);

/* For events_read(). Borrowed until the loop's next turn. */
struct events *talk_events(struct talk *t, struct err *e) MUST_USE;

/* ---- prompts --------------------------------------------------------------------------------- */

/* As queue_add(). ERR_CONFLICT: it is archived. */
int talk_send(struct talk *t, const struct queue_item *item, char ret_id[QUEUE_ID + 1],
	      size_t *ret_position, struct err *e) MUST_USE;
/* Borrowed until the loop's next turn. */
const struct queue *talk_queue(struct talk *t, struct err *e) MUST_USE;
/* As queue_remove(), queue_move() and queue_again(). */
int talk_queue_remove(struct talk *t, struct str id, struct err *e) MUST_USE;
int talk_queue_move(struct talk *t, struct str id, size_t to, struct err *e) MUST_USE;
int talk_queue_again(struct talk *t, struct str id, struct err *e) MUST_USE;

/* Asks the driver to end the turn. False: there is none. */
bool talk_cancel(struct talk *t);

/* ---- drivers --------------------------------------------------------------------------------- */

/* Borrowed for the call. */
struct talk_prompt {
	struct str id, message, source;
	struct field_strs files; /* ids of attachments, which may be gone by now */
	uint32_t attempt; /* above 1: the agent may have had it before */
};

struct talk_driver {
	/* Begins a turn. 0: talk_turn_begin() and talk_turn_end(), or talk_failed() or
	 * talk_refused(), follow. */
	int (*start)(void *data, struct talk *t, const struct talk_prompt *p, struct err *e);
	/* The turn is to end: talk_turn_end() or talk_failed() follows, now or later. */
	void (*cancel)(void *data, struct talk *t);
	/* The conversation is put away, or the hub ends: t is good for nothing in this driver any
	 * more, and a turn under way is over. Also where it never started one. */
	void (*close)(void *data, struct talk *t);
};

/* From here on conversations with this agent are driven so. driver: borrowed until it is replaced;
 * NULL: nothing does any more. */
int talks_drive(struct talks *all, struct str agent, const struct talk_driver *driver, void *data,
		struct err *e) MUST_USE;
/* Names of the agents that are driven; NULL: there are no more. */
const char *talks_agent(const struct talks *all, size_t i);
/* The driver's own state of a conversation; NULL at first and after close(). */
void **talk_driver_state(struct talk *t);

/* The agent has the prompt: it is in the log, and no more in the queue. */
int talk_turn_begin(struct talk *t, struct err *e) MUST_USE;
void talk_turn_end(struct talk *t, const char *stop_reason);
/* The turn failed; a prompt that the agent does not have stays in the queue, as failed; after
 * talks_drain(), as one that waits. */
void talk_failed(struct talk *t, const struct err *why);
/* The same, but the agent has answered the prompt with an error, so it goes back into the queue, as
 * failed, unless the turn was cancelled. */
void talk_refused(struct talk *t, const struct err *why);
/* A person is asked, once for each question; or is no more. */
void talk_waits(struct talk *t, bool on);
void talk_stalled(struct talk *t, bool on);

/* ---- tokens ---------------------------------------------------------------------------------- */

/* A new token, "holt_conv_" and 64 hex digits, owned by the caller; an earlier one ends. It lives
 * until the conversation is put away, or the hub ends. */
struct secret *talk_token(struct talk *t, struct err *e) MUST_USE;
/* NULL: it is none. */
struct talk *talks_by_token(struct talks *all, struct str token);
/* For whoever identifies by it; NULL at first. Nothing frees it. */
void **talk_token_state(struct talk *t);
