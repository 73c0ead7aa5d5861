#pragma once
/*
 * The prompts that wait for a conversation: queue.json. Each is delivered at least once: it leaves
 * the queue only when queue_sent() says that its event is in the log. What was being sent when the
 * process ended waits again; its id tells the receiver that it may have been there before.
 *
 * Each change is on the disk when the function returns; a failure changes nothing.
 */
#include "json/field/field.h"

enum {
	QUEUE_MAX = 10, /* prompts that wait, failed ones too */
	QUEUE_ALL, /* with one that came back to a full queue */
	QUEUE_MESSAGE_MAX = 64 << 10, /* characters of a prompt */
	QUEUE_FILES = 8, /* of a prompt */
	QUEUE_KEYS = 64, /* keys of prompts that were sent, which are known for that long */
	QUEUE_ID = 2 + 32,
};

enum queue_state { QUEUE_QUEUED, QUEUE_SENDING, QUEUE_FAILED, QUEUE_STATES };
extern const char *const queue_state_names[QUEUE_STATES];

struct queue_item {
	struct str id; /* "q-" and 32 hex digits */
	struct str key; /* the sender's, to send it once; may be NONE */
	struct str message;
	struct field_strs files; /* ids of attachments that go with it */
	struct str source; /* the principal or the conversation that sent it */
	enum queue_state state;
	uint32_t attempts; /* that were begun */
	uint64_t not_before_ms; /* of 1970; 0: at once */
	struct str queued_at; /* RFC 3339 */
	struct str error; /* of the last attempt */
};
extern const struct field_table queue_item_table;

struct queue;

/* Reads it, or begins an empty one. ERR_STORE_CORRUPT: it can't be read and is left as it is. The
 * folder is borrowed. */
struct queue *queue_open(int folder, struct err *e) MUST_USE;
void queue_close(struct queue *q); /* NULL-safe */
AUTO_DEFINE(queue_close, struct queue)

/* In the order in which they are sent, but for those with a time. Borrowed until the next
 * change. */
size_t queue_count(const struct queue *q);
const struct queue_item *queue_at(const struct queue *q, size_t i);

/* Adds a prompt at the end: message, files, source, key and not_before_ms are taken. ret_position:
 * how many are before it. A key that is known of this source changes nothing: *ret_id is that of
 * the first, and position is 0 where it was sent. ERR_CONFLICT: the first waits, and says something
 * else. ERR_QUEUE_FULL. */
int queue_add(struct queue *q, const struct queue_item *item, char ret_id[QUEUE_ID + 1],
	      size_t *ret_position, struct err *e) MUST_USE;

/* The one that is to be sent next: the first without a time, else that whose time has come first.
 * NULL: none, or one is being sent. */
const struct queue_item *queue_next(const struct queue *q, int64_t now_ms);

/* ERR_PATH_NOT_FOUND of these five: there is none with this id. */
int queue_send(struct queue *q, struct str id, struct err *e) MUST_USE; /* it is being sent */
int queue_sent(struct queue *q, struct str id, struct err *e) MUST_USE; /* its event is there */
int queue_failed(struct queue *q, struct str id, struct str why, struct err *e) MUST_USE;
/* The one that left last by queue_sent() comes back as failed: its receiver refused it. */
int queue_refused(struct queue *q, struct str id, struct str why, struct err *e) MUST_USE;
int queue_again(struct queue *q, struct str id, struct err *e) MUST_USE; /* one that failed */

/* One that is being sent can't be removed or moved: ERR_CONFLICT. */
int queue_remove(struct queue *q, struct str id, struct err *e) MUST_USE;
int queue_move(struct queue *q, struct str id, size_t to, struct err *e) MUST_USE;
