#pragma once
/*
 * The conversations of a running hub, over their folders (store/conversation): events with those
 * who watch, the turn of each, the delivery of queued prompts to the agent, and tokens. What drives
 * an agent is a driver, registered by the agent's name in the operator's file; a conversation whose
 * agent has no driver keeps its queue.
 *
 * A prompt is delivered at least once. It is queued on the disk before conversation_send() returns;
 * it is given to the driver; it leaves the queue when the driver says that the agent has it
 * (conversation_turn_begin()), after its event user_prompt is on the disk. A hub that is killed
 * before sends it again, one that is killed later tells "interrupted" in a stop event.
 *
 * One thread, the loop's. What changes a record or a queue writes to the disk and may take some
 * milliseconds. Drivers are called from the loop, never from inside a function of this header but
 * conversation_cancel(), conversation_archive(), conversation_delete(), conversations_drive() and
 * conversations_close().
 */
#include <uv.h>

#include "agents/conversation/offer.h"
#include "agents/store/conversation_store.h"
#include "agents/store/queue.h"
#include "base/secret.h"

struct feed;
struct conversations;
struct conversation;

enum conversation_state {
	CONVERSATION_NO_AGENT, /* nothing drives its agent */
	CONVERSATION_IDLE,
	CONVERSATION_RUNNING,
	CONVERSATION_REQUIRES_ACTION, /* a person is asked */
	CONVERSATION_STALLED, /* a turn of which nothing was heard for long */
	CONVERSATION_NEEDS_LOGIN, /* its last turn failed: the agent wants a log-in */
	CONVERSATION_FAILED, /* its last turn failed otherwise */
	CONVERSATION_STATES
};
extern const char *const conversation_state_names[CONVERSATION_STATES];

struct conversations_options {
	struct feed *feed; /* borrowed until conversations_close(); NULL: none */
	int64_t trash_seconds; /* [0: 30 days] how long what was deleted can be taken back */
	int64_t archive_seconds; /* after which idle ones are archived; 0: they are not */
	/* The token of a conversation is good for nothing any more. May be NULL. */
	void (*on_token_end)(void *owner, struct conversation *t);
	void *owner;
};

/* Opens the folder, or makes it. ERR_STORE_LOCKED: another hub has it. */
struct conversations *conversations_open(uv_loop_t *loop, const char *path,
					 const struct conversations_options *o,
					 struct err *e) MUST_USE;
/* The hub is about to end: no prompt is given to a driver any more. Turns under way go on; one that
 * fails before the agent has its prompt puts that back, for the next hub. */
void conversations_drain(struct conversations *all);
/* Closes each conversation's driver. NULL-safe; the loop runs once more. */
void conversations_close(struct conversations *all);

const char *conversations_path(const struct conversations *all); /* as given */
size_t conversations_count(const struct conversations *all);
struct conversation *conversations_at(const struct conversations *all,
				      size_t i); /* by age, the oldest first */
struct conversation *conversations_find(const struct conversations *all,
					struct str id); /* NULL: there is none */

/* ---- one conversation ------------------------------------------------------------------------ */

/* As conversation_store_add(); the event session_start is in its log. */
struct conversation *conversation_new(struct conversations *all,
				      const struct conversation_record *r, struct err *e) MUST_USE;

const char *conversation_id(const struct conversation *t);
const struct conversation_record *conversation_record(
	const struct conversation *t); /* until the next change */
bool conversation_has_flag(const struct conversation *t, enum conversation_flag flag);
enum conversation_state conversation_state(const struct conversation *t);
/* Why it needs a log-in or has failed, or what hinders the turn under way. False: nothing does. */
bool conversation_trouble(const struct conversation *t, struct err *ret);
bool conversation_is_prompting(const struct conversation *t); /* a turn is under way */
bool conversation_is_running(const struct conversation *t); /* its driver has something of it */
size_t conversation_queue_length(const struct conversation *t);
/* How many events there are, and the number of the last one. */
int conversation_counts(struct conversation *t, uint64_t *ret_count, uint64_t *ret_last,
			struct err *e) MUST_USE;
int64_t conversation_updated_ms(
	const struct conversation *t); /* of the last event or change; 0: not known */
int conversation_folder(const struct conversation *t); /* for documents of others; borrowed */

/* As conversation_folder_change(). */
int conversation_change(struct conversation *t, const struct conversation_record *r,
			struct err *e) MUST_USE;

/* The same, and its driver hears that options of the record changed. */
int conversation_set_options(struct conversation *t, const struct conversation_record *r,
			     struct err *e) MUST_USE;
/* From here on its agent logs in by this method: one that runs ends, and failed prompts are sent
 * again. ERR_CONFLICT: a turn is under way. */
int conversation_log_in(struct conversation *t, struct str method, struct err *e) MUST_USE;
/* What its agent offers. Only its driver changes it, and calls conversation_offered() then. */
struct agent_offer *conversation_offer(struct conversation *t);
void conversation_offered(struct conversation *t);

/* Puts it away: its agent and its token end, and it takes no prompts; or takes it out again. */
int conversation_archive(struct conversation *t, bool archived, enum conversation_why why,
			 struct err *e) MUST_USE;

/* Its first child in the list from *from on, which is moved behind that. NULL: there is none. */
struct conversation *conversation_child(const struct conversation *t, size_t *from);

/* Moves it to the trash; t is gone. ERR_CONFLICT: it has children. */
int conversation_delete(struct conversation *t, struct err *e) MUST_USE;
/* owner: whose alone; STR_NONE: anyone's. */
struct conversation *conversation_take_back(struct conversations *all, struct str id,
					    struct str owner, struct err *e) MUST_USE;
/* The owner of one in the trash; the caller frees it. NULL: none is there, or it can't be read. */
char *conversations_trashed_owner(const struct conversations *all, struct str id);

/* ---- events ---------------------------------------------------------------------------------- */

struct conversation_event {
	uint64_t seq; /* 0: it is only live, and not in the log */
	const char *type;
	struct str data; /* JSON object */
};

/* Each may be NULL. They may remove their own watch, and change nothing else. */
struct conversation_watch {
	void (*on_event)(void *data, const struct conversation_event *ev);
	void (*on_change)(void *data); /* its state, record or queue */
	void (*on_gone)(void *data); /* it is deleted; nobody watches any more */
	void *data;
	/* private: */
	struct conversation_watch *next;
};
void conversation_watch_add(struct conversation *t, struct conversation_watch *w);
void conversation_watch_remove(struct conversation *t, struct conversation_watch *w);

/* data: a JSON object on one line, at most EVENTS_DATA_MAX. In the log when it returns. ret_seq may
 * be NULL. */
int conversation_append(struct conversation *t, const char *type, struct str data,
			uint64_t *ret_seq, struct err *e) MUST_USE;
/* Only for those who watch now, such as a piece of a message whose whole is appended later. */
void conversation_live(struct conversation *t, const char *type, struct str data);

/* The beginning of an event that is not in the log yet. */
struct conversation_part {
	const char *type; /* "agent_message" or "agent_thought" */
	struct str text; /* so far; borrowed until the loop's next turn */
	unsigned piece; /* the number of its last piece that was live */
};

/* What its agent is saying, for those who begin to watch now. False: nothing. */
bool conversation_part(struct conversation *t, struct conversation_part *ret);

/* For events_read(). Borrowed until the loop's next turn. */
struct events *conversation_events(struct conversation *t, struct err *e) MUST_USE;

/* ---- prompts --------------------------------------------------------------------------------- */

/* As queue_add(). ERR_CONFLICT: it is archived. */
int conversation_send(struct conversation *t, const struct queue_item *item,
		      char ret_id[QUEUE_ID + 1], size_t *ret_position, struct err *e) MUST_USE;
/* Borrowed until the loop's next turn. */
const struct queue *conversation_queue(struct conversation *t, struct err *e) MUST_USE;
/* As queue_remove(), queue_move() and queue_again(). */
int conversation_queue_remove(struct conversation *t, struct str id, struct err *e) MUST_USE;
int conversation_queue_move(struct conversation *t, struct str id, size_t to,
			    struct err *e) MUST_USE;
int conversation_queue_again(struct conversation *t, struct str id, struct err *e) MUST_USE;

/* Asks the driver to end the turn. False: there is none. */
bool conversation_cancel(struct conversation *t);

/* ---- drivers --------------------------------------------------------------------------------- */

/* Borrowed for the call. */
struct conversation_prompt {
	struct str id, message, source;
	struct field_strs files; /* ids of attachments, which may be gone by now */
	uint32_t attempt; /* above 1: the agent may have had it before */
};

struct conversation_driver {
	/* Begins a turn. 0: conversation_turn_begin() and conversation_turn_end(), or
	 * conversation_failed() or conversation_refused(), follow. */
	int (*start)(void *data, struct conversation *t, const struct conversation_prompt *p,
		     struct err *e);
	/* The turn is to end: conversation_turn_end() or conversation_failed() follows, now or
	 * later. */
	void (*cancel)(void *data, struct conversation *t);
	/* The conversation is put away, or the hub ends: t is good for nothing in this driver any
	 * more, and a turn under way is over. Also where it never started one. */
	void (*close)(void *data, struct conversation *t);
	/* The options that its record wants are others. */
	void (*options)(void *data, struct conversation *t);
	/* False: there is none. */
	bool (*part)(void *data, struct conversation *t, struct conversation_part *ret);
};

/* From here on conversations with this agent are driven so. driver: borrowed until it is replaced;
 * NULL: nothing does any more. */
int conversations_drive(struct conversations *all, struct str agent,
			const struct conversation_driver *driver, void *data,
			struct err *e) MUST_USE;
/* Names of the agents that are driven; NULL: there are no more. */
const char *conversations_agent(const struct conversations *all, size_t i);
/* The driver's own state of a conversation; NULL at first and after close(). */
void **conversation_driver_state(struct conversation *t);

/* The agent has the prompt: it is in the log, and no more in the queue. */
int conversation_turn_begin(struct conversation *t, struct err *e) MUST_USE;
void conversation_turn_end(struct conversation *t, const char *stop_reason);
/* The turn failed; a prompt that the agent does not have stays in the queue, as failed; after
 * conversations_drain(), as one that waits. */
void conversation_failed(struct conversation *t, const struct err *why);
/* The same, but the agent has answered the prompt with an error, so it goes back into the queue, as
 * failed, unless the turn was cancelled. */
void conversation_refused(struct conversation *t, const struct err *why);
/* A person is asked, once for each question; or is no more. */
void conversation_waits(struct conversation *t, bool on);
void conversation_stalled(struct conversation *t, bool on);
/* Something hinders its turn, which goes on: an event of this type says so, and its state has the
 * cause until the turn ends. */
void conversation_hindered(struct conversation *t, const char *type, const struct err *why);

/* ---- tokens ---------------------------------------------------------------------------------- */

/* A new token, "holt_conv_" and 64 hex digits, owned by the caller; an earlier one ends. It lives
 * until the conversation is put away, or the hub ends. */
struct secret *conversation_token(struct conversation *t, struct err *e) MUST_USE;
/* NULL: it is none. */
struct conversation *conversations_by_token(struct conversations *all, struct str token);
/* For whoever identifies by it; NULL at first. Nothing frees it. */
void **conversation_token_state(struct conversation *t);
