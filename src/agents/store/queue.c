#include "agents/store/queue.h"

#include <stdio.h>

#include "agents/store/document.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/when.h"

enum { ARENA_MAX = 16 << 10, QUEUE_KEY_MAX = 128, SOURCE_MAX = 256, WHY_MAX = 500 };

static const char queue_name[] = "queue.json";

const char *const queue_state_names[] = {
	[QUEUE_QUEUED] = "queued",
	[QUEUE_SENDING] = "sending",
	[QUEUE_FAILED] = "failed",
};

struct queue_sent {
	struct str key, id, source;
};

struct queue_file {
	struct {
		struct queue_item *p;
		size_t n;
	} messages;
	struct {
		struct queue_sent *p;
		size_t n;
	} sent;
};

#define I struct queue_item
static const struct field item_rows[] = {
	FIELD(I, id, .flags = FIELD_REQUIRED, .min = 1, .max = QUEUE_ID, .doc = "Of the prompt."),
	FIELD(I, key, .max = QUEUE_KEY_MAX, .doc = "The sender's own id, to send it once."),
	FIELD(I, message, .flags = FIELD_REQUIRED, .min = 1, .max = QUEUE_MESSAGE_MAX,
	      .doc = "The prompt."),
	FIELD(I, files, .max = QUEUE_FILES, .doc = "Ids of the files that go with it."),
	FIELD(I, source, .flags = FIELD_REQUIRED, .max = SOURCE_MAX, .doc = "Who sent it."),
	FIELD_ENUM(I, state, queue_state_names, .doc = "What becomes of it."),
	FIELD(I, attempts, .doc = "How often it was begun to be sent."),
	FIELD(I, not_before_ms, .doc = "When it may be sent, in ms since 1970. 0: at once."),
	FIELD(I, queued_at, .flags = FIELD_REQUIRED, .max = WHEN_MAX, .doc = "When it came."),
	FIELD(I, error, .max = WHY_MAX, .doc = "Why the last attempt failed."),
};
#undef I
const struct field_table queue_item_table = FIELD_TABLE(struct queue_item, item_rows);

static const struct field sent_rows[] = {
	FIELD(struct queue_sent, key, .flags = FIELD_REQUIRED, .max = QUEUE_KEY_MAX,
	      .doc = "Of a prompt that was sent."),
	FIELD(struct queue_sent, id, .flags = FIELD_REQUIRED, .max = QUEUE_ID, .doc = "Its id."),
	FIELD(struct queue_sent, source, .max = SOURCE_MAX, .doc = "Who sent it."),
};
static const struct field_table sent_table = FIELD_TABLE(struct queue_sent, sent_rows);

static const struct field file_rows[] = {
	FIELD_OBJECTS(struct queue_file, messages, queue_item_table, .max = QUEUE_ALL,
		      .doc = "Prompts that wait."),
	FIELD_OBJECTS(struct queue_file, sent, sent_table, .max = QUEUE_KEYS,
		      .doc = "Keys of the last prompts that were sent."),
};
static const struct field_table file_table = FIELD_TABLE(struct queue_file, file_rows);

struct queue {
	int folder;
	struct json_doc *doc; /* queue.json as it is now */
	struct arena *arena;
	struct queue_file file; /* of both */
	/* The prompt that left last, until the next does, and what it borrows. */
	struct queue_item left;
	struct json_doc *left_doc;
	struct arena *left_arena;
};

/* Decodes a document into memory of its own. */
static struct arena *queue_decode(const struct json_doc *doc, struct queue_file *ret, struct err *e)
{
	AUTO(arena_free) struct arena *a = arena_new(ARENA_MAX);

	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	return field_decode(&file_table, json_root(doc), a, ret, e) < 0 ? NULL : take_ptr(a);
}

static void queue_take(struct queue *q, struct json_doc *doc, struct arena *a,
		       const struct queue_file *file)
{
	json_free(q->doc);
	arena_free(q->arena);
	q->doc = doc;
	q->arena = a;
	q->file = *file;
}

/* file may borrow from what the queue has. */
static int queue_write(struct queue *q, const struct queue_file *file, struct err *e)
{
	autofree char *text = field_encode_text(&file_table, file, DOCUMENT_MAX, e);
	AUTO(json_free) struct json_doc *doc = text ? json_parse(str_of(text), NULL, e) : NULL;
	struct queue_file written;
	AUTO(arena_free) struct arena *a = doc ? queue_decode(doc, &written, e) : NULL;

	if (!a || document_write(q->folder, queue_name, str_of(text), e) < 0)
		return -1;
	queue_take(q, take_ptr(doc), take_ptr(a), &written);
	return 0;
}

struct queue *queue_open(int folder, struct err *e)
{
	AUTO(queue_close) struct queue *q = calloc(1, sizeof(*q));
	AUTO(json_free) struct json_doc *doc = document_read(folder, queue_name, e);
	struct queue_file file;
	struct arena *a;

	if (!doc && e->code == ERR_PATH_NOT_FOUND)
		doc = json_parse(STR_LIT("{}"), NULL, e);
	if (!doc)
		return NULL;
	a = queue_decode(doc, &file, e);
	if (!a || !q) {
		e->code = e->code == ERR_INVALID ? ERR_STORE_CORRUPT : ERR_LIMIT;
		err_wrap(e, "%s", queue_name);
		arena_free(a);
		return NULL;
	}
	q->folder = folder;
	queue_take(q, take_ptr(doc), a, &file);
	/* Whoever was sending has ended. */
	for (size_t i = 0; i < q->file.messages.n; i++) {
		struct queue_item *item = &q->file.messages.p[i];

		item->state = item->state == QUEUE_SENDING ? QUEUE_QUEUED : item->state;
	}
	return take_ptr(q);
}

void queue_close(struct queue *q)
{
	if (!q)
		return;
	json_free(q->doc);
	arena_free(q->arena);
	json_free(q->left_doc);
	arena_free(q->left_arena);
	free(q);
}

size_t queue_count(const struct queue *q)
{
	return q->file.messages.n;
}

const struct queue_item *queue_at(const struct queue *q, size_t i)
{
	return i < q->file.messages.n ? &q->file.messages.p[i] : NULL;
}

const struct queue_item *queue_next(const struct queue *q, int64_t now_ms)
{
	const struct queue_item *best = NULL;

	for (size_t i = 0; i < q->file.messages.n; i++) {
		const struct queue_item *item = &q->file.messages.p[i];

		if (item->state == QUEUE_SENDING)
			return NULL;
		if (item->state == QUEUE_FAILED || item->not_before_ms > (uint64_t)now_ms)
			continue;
		if (!best || (best->not_before_ms && item->not_before_ms < best->not_before_ms))
			best = item;
	}
	return best;
}

/* ---- changes: of a copy of the list, which then becomes the file and the list ---- */

struct edit {
	struct queue_item items[QUEUE_ALL];
	struct queue_sent sent[QUEUE_KEYS];
	struct queue_file file; /* of the two */
};

static void edit_begin(const struct queue *q, struct edit *d)
{
	d->file.messages.p = d->items;
	d->file.messages.n = q->file.messages.n;
	d->file.sent.p = d->sent;
	d->file.sent.n = q->file.sent.n;
	if (q->file.messages.n)
		memcpy(d->items, q->file.messages.p, q->file.messages.n * sizeof(d->items[0]));
	if (q->file.sent.n)
		memcpy(d->sent, q->file.sent.p, q->file.sent.n * sizeof(d->sent[0]));
}

static void edit_drop(struct edit *d, size_t i)
{
	memmove(d->items + i, d->items + i + 1, (--d->file.messages.n - i) * sizeof(d->items[0]));
}

/* The one with the id; NULL with *e. */
static struct queue_item *edit_find(const struct queue *q, struct edit *d, struct str id,
				    struct err *e)
{
	edit_begin(q, d);
	for (size_t i = 0; i < d->file.messages.n; i++) {
		if (str_eq(d->items[i].id, id))
			return &d->items[i];
	}
	return err_set(e, ERR_PATH_NOT_FOUND, "no prompt %.*s waits", STR_CUT(id, 40)), NULL;
}

/* The same; one that is being sent is left alone. */
static struct queue_item *edit_find_idle(const struct queue *q, struct edit *d, struct str id,
					 struct err *e)
{
	struct queue_item *item = edit_find(q, d, id, e);

	if (!item || item->state != QUEUE_SENDING)
		return item;
	return err_set(e, ERR_CONFLICT, "the prompt is being sent"), NULL;
}

/* Whether a prompt of this sender with this key is there (1) or was (2); then its id and position:
 * each sender has keys of its own. */
static int queue_knows(const struct queue *q, const struct queue_item *like,
		       char ret_id[QUEUE_ID + 1], size_t *ret_position)
{
	struct str id = STR_NONE;
	int knows = 0;

	for (size_t i = 0; i < q->file.sent.n; i++) {
		const struct queue_sent *sent = &q->file.sent.p[i];

		if (!str_eq(sent->key, like->key) ||
		    (sent->source.n && !str_eq(sent->source, like->source)))
			continue;
		id = sent->id;
		knows = 2;
	}
	*ret_position = 0;
	for (size_t i = 0; i < q->file.messages.n; i++) {
		const struct queue_item *item = &q->file.messages.p[i];

		if (!str_eq(item->key, like->key) || !str_eq(item->source, like->source))
			continue;
		id = item->id;
		*ret_position = i;
		knows = 1;
	}
	if (knows)
		snprintf(ret_id, QUEUE_ID + 1, "%.*s", STR_ARG(id));
	return knows;
}

int queue_add(struct queue *q, const struct queue_item *item, char ret_id[QUEUE_ID + 1],
	      size_t *ret_position, struct err *e)
{
	struct queue_item *added;
	char now[WHEN_MAX], id[ID_MAX];
	struct edit d;
	size_t n = q->file.messages.n;
	int knows = item->key.n ? queue_knows(q, item, ret_id, ret_position) : 0;

	if (knows == 1 && !str_eq(q->file.messages.p[*ret_position].message, item->message))
		return err_set(e, ERR_CONFLICT, "the key is that of another prompt, which waits");
	if (knows)
		return 0;
	if (n >= QUEUE_MAX)
		return err_set(e, ERR_QUEUE_FULL, "%d prompts wait already", QUEUE_MAX);
	edit_begin(q, &d);
	when_text(now, clock_unix_ms());
	id_make(id, "q");
	added = &d.items[d.file.messages.n++];
	*added = (struct queue_item){
		.id = str_of(id),
		.key = item->key,
		.message = item->message,
		.files = item->files,
		.source = item->source,
		.not_before_ms = item->not_before_ms,
		.queued_at = str_of(now),
	};
	if (queue_write(q, &d.file, e) < 0)
		return -1;
	memcpy(ret_id, id, QUEUE_ID + 1);
	*ret_position = n;
	return 0;
}

int queue_send(struct queue *q, struct str id, struct err *e)
{
	struct edit d;
	struct queue_item *item = edit_find_idle(q, &d, id, e);

	if (!item)
		return -1;
	item->state = QUEUE_SENDING;
	item->attempts++;
	return queue_write(q, &d.file, e);
}

int queue_sent(struct queue *q, struct str id, struct err *e)
{
	struct edit d;
	struct queue_item *item = edit_find(q, &d, id, e), left;
	struct json_doc *doc = q->doc;
	struct arena *arena = q->arena;

	if (!item)
		return -1;
	left = *item;
	if (item->key.n) {
		if (d.file.sent.n == QUEUE_KEYS)
			memmove(d.sent, d.sent + 1, --d.file.sent.n * sizeof(d.sent[0]));
		d.sent[d.file.sent.n++] = (struct queue_sent){ item->key, item->id, item->source };
	}
	edit_drop(&d, (size_t)(item - d.items));
	q->doc = NULL;
	q->arena = NULL;
	if (queue_write(q, &d.file, e) < 0) {
		q->doc = doc;
		q->arena = arena;
		return -1;
	}
	json_free(q->left_doc);
	arena_free(q->left_arena);
	q->left = left;
	q->left_doc = doc;
	q->left_arena = arena;
	return 0;
}

static void item_fail(struct queue_item *item, struct str why)
{
	item->state = QUEUE_FAILED;
	item->error = (struct str){ why.p, why.n < WHY_MAX ? why.n : WHY_MAX };
}

/* Before those that were queued behind it. */
int queue_refused(struct queue *q, struct str id, struct str why, struct err *e)
{
	struct edit d;
	size_t at = 0;

	if (!str_eq(q->left.id, id) || q->file.messages.n >= QUEUE_ALL)
		return err_set(e, ERR_PATH_NOT_FOUND, "no prompt %.*s was sent", STR_CUT(id, 40));
	edit_begin(q, &d);
	while (at < d.file.messages.n && d.items[at].state == QUEUE_FAILED)
		at++;
	memmove(d.items + at + 1, d.items + at, (d.file.messages.n++ - at) * sizeof(d.items[0]));
	d.items[at] = q->left;
	item_fail(&d.items[at], why);
	return queue_write(q, &d.file, e);
}

int queue_failed(struct queue *q, struct str id, struct str why, struct err *e)
{
	struct edit d;
	struct queue_item *item = edit_find(q, &d, id, e);

	if (!item)
		return -1;
	item_fail(item, why);
	return queue_write(q, &d.file, e);
}

int queue_again(struct queue *q, struct str id, struct err *e)
{
	struct edit d;
	struct queue_item *item = edit_find_idle(q, &d, id, e);

	if (!item)
		return -1;
	item->state = QUEUE_QUEUED;
	item->error = STR_NONE;
	return queue_write(q, &d.file, e);
}

int queue_remove(struct queue *q, struct str id, struct err *e)
{
	struct edit d;
	struct queue_item *item = edit_find_idle(q, &d, id, e);

	if (!item)
		return -1;
	edit_drop(&d, (size_t)(item - d.items));
	return queue_write(q, &d.file, e);
}

int queue_move(struct queue *q, struct str id, size_t to, struct err *e)
{
	struct edit d;
	struct queue_item *item = edit_find_idle(q, &d, id, e), moved;

	if (!item)
		return -1;
	moved = *item;
	edit_drop(&d, (size_t)(item - d.items));
	to = to < d.file.messages.n ? to : d.file.messages.n;
	memmove(d.items + to + 1, d.items + to, (d.file.messages.n++ - to) * sizeof(d.items[0]));
	d.items[to] = moved;
	return queue_write(q, &d.file, e);
}
