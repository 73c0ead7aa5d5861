/* The turns of conversations: which prompt is sent when, and what its driver says of it. */
#include <stdlib.h>

#include "agents/conversation/internal.h"
#include "agents/store/attachment.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/when.h"
#include "json/document/put.h"

enum {
	AGAIN_MS = 5000, /* after the disk failed */
	PROMPT_MAX = 8 * QUEUE_MESSAGE_MAX, /* bytes of its event */
};

/* ---- drivers --------------------------------------------------------------------------------- */

static struct conversation_drive *drive_find(const struct conversations *all, struct str agent)
{
	struct conversation_drive *d = all->drives;

	while (d && !str_is(agent, d->agent))
		d = d->next;
	return d;
}

const struct conversation_drive *conversation_drive_of(const struct conversation *t)
{
	const struct conversation_drive *d = drive_find(t->all, conversation_record(t)->agent);

	return d && d->driver ? d : NULL;
}

int conversations_drive(struct conversations *all, struct str agent,
			const struct conversation_driver *driver, void *data, struct err *e)
{
	struct conversation_drive *d = drive_find(all, agent);

	if (!d) {
		d = calloc(1, sizeof(*d) + agent.n + 1);
		if (!d)
			return err_set(e, ERR_LIMIT, "out of memory");
		memcpy(d->agent, agent.p, agent.n);
		d->next = all->drives;
		all->drives = d;
	}
	for (size_t i = 0; i < all->n; i++) {
		if (str_eq(conversation_record(all->p[i])->agent, agent))
			conversation_stop_driver(all->p[i], "interrupted");
	}
	d->driver = driver;
	d->data = data;
	conversations_kick(all, 0);
	return 0;
}

const char *conversations_agent(const struct conversations *all, size_t i)
{
	const struct conversation_drive *d = all->drives;

	for (; d; d = d->next) {
		if (d->driver && i-- == 0)
			break;
	}
	return d ? d->agent : NULL;
}

void **conversation_driver_state(struct conversation *t)
{
	return &t->driver_state;
}

/* ---- the end of a turn ----------------------------------------------------------------------- */

static const struct queue_item *turn_item(const struct conversation *t)
{
	for (size_t i = 0; t->queue && i < queue_count(t->queue); i++) {
		const struct queue_item *item = queue_at(t->queue, i);

		if (str_is(item->id, t->prompt))
			return item;
	}
	return NULL;
}

static void turn_over(struct conversation *t)
{
	const struct queue_item *item = turn_item(t);
	struct err e;

	/* Where its end could not be written, the queue is read again: the prompt waits again. */
	if (item && item->state == QUEUE_SENDING && !t->all->closing) {
		queue_close(take_ptr(t->queue));
		if (!conversation_open_queue(t, &e))
			log_warn("conversation %s: %s", conversation_id(t), e.msg);
	}
	t->turning = t->begun = t->stalled = t->cancelled = false;
	t->prompt[0] = '\0';
	conversation_tell(t, "changed");
	conversations_kick(t->all, 0);
}

/* The prompt that no agent took stays where a person sees it. */
static void turn_fail_prompt(struct conversation *t, const char *why)
{
	struct err e;

	if (queue_failed(t->queue, str_of(t->prompt), str_of(why), &e) < 0)
		log_warn("conversation %s: %s", conversation_id(t), e.msg);
}

static void turn_end(struct conversation *t, const char *stop_reason)
{
	struct err e;

	if (t->begun)
		conversation_note(t, "stop", "stop_reason", stop_reason);
	else
		turn_fail_prompt(t, stop_reason);
	/* Only where the disk failed when the agent had taken it. */
	if (t->begun && turn_item(t) && queue_sent(t->queue, str_of(t->prompt), &e) < 0)
		log_warn("conversation %s: a prompt may be sent again: %s", conversation_id(t),
			 e.msg);
	turn_over(t);
}

void conversation_turn_end(struct conversation *t, const char *stop_reason)
{
	if (!t->turning)
		return;
	t->trouble = ERR_INIT;
	turn_end(t, stop_reason);
}

static void turn_tell(struct conversation *t, const char *type, const struct err *why)
{
	autobuf struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer(&b);
	struct err e;

	json_write_object(&w);
	json_put_text(&w, "code", err_info(why->code)->name);
	json_put_text(&w, "message", why->msg);
	json_put_text(&w, "remediation", err_info(why->code)->remediation);
	json_write_object_end(&w);
	if (json_write_done(&w, &e) < 0 || conversation_append(t, type, buf_str(&b), NULL, &e) < 0)
		log_warn("conversation %s: no event %s: %s", conversation_id(t), type, e.msg);
}

static void turn_tell_error(struct conversation *t, const struct err *why)
{
	if (why->code != ERR_CANCELLED)
		t->trouble = *why;
	turn_tell(t, "error", why);
}

/* The hub of before left a prompt as failed, with its cause alone. */
bool conversation_trouble(const struct conversation *t, struct err *ret)
{
	size_t n = t->queue && !t->turning ? queue_count(t->queue) : 0;

	*ret = t->trouble;
	for (size_t i = 0; i < n && !ret->code; i++) {
		const struct queue_item *item = queue_at(t->queue, i);

		if (item->state == QUEUE_FAILED)
			err_set(ret, ERR_AGENT, "%.*s", STR_CUT(item->error, ERR_MSG_MAX));
	}
	return ret->code != ERR_NONE;
}

void conversation_hindered(struct conversation *t, const char *type, const struct err *why)
{
	if (!t->turning)
		return;
	t->trouble = *why;
	turn_tell(t, type, why);
	conversation_tell(t, "changed");
}

/* Opened anew, what was being sent waits again. */
static void turn_put_back(struct conversation *t)
{
	struct err e;

	queue_close(take_ptr(t->queue));
	if (!t->all->closing && !conversation_open_queue(t, &e))
		log_warn("conversation %s: %s", conversation_id(t), e.msg);
	turn_over(t);
}

void conversation_failed(struct conversation *t, const struct err *why)
{
	if (!t->turning)
		return;
	if (!t->begun && t->all->draining) {
		log_info("conversation %s: its prompt waits for the next hub: %s",
			 conversation_id(t), why->msg);
		turn_put_back(t);
		return;
	}
	turn_tell_error(t, why);
	if (t->begun) {
		turn_end(t, "error");
		return;
	}
	turn_fail_prompt(t, why->msg);
	turn_over(t);
}

void conversation_refused(struct conversation *t, const struct err *why)
{
	struct err told = *why, e;

	if (!t->turning || !t->begun || t->cancelled) {
		conversation_failed(t, why);
		return;
	}
	if (queue_refused(t->queue, str_of(t->prompt), str_of(why->msg), &e) < 0)
		log_warn("conversation %s: %s", conversation_id(t), e.msg);
	else
		err_wrap(&told, "the prompt stays in the queue, as failed");
	turn_tell_error(t, &told);
	conversation_note(t, "stop", "stop_reason", "error");
	turn_over(t);
}

void conversation_stop_driver(struct conversation *t, const char *why)
{
	const struct conversation_drive *d = conversation_drive_of(t);

	if (d && (t->turning || t->driver_state))
		d->driver->close(d->data, t);
	t->driver_state = NULL;
	if (t->begun)
		conversation_turn_end(t, why);
	else if (t->turning)
		turn_put_back(t);
}

/* ---- a turn ---------------------------------------------------------------------------------- */

static uint64_t turn_due_in(const struct conversation *t, int64_t now)
{
	uint64_t best = UINT64_MAX;

	for (size_t i = 0; i < queue_count(t->queue); i++) {
		const struct queue_item *item = queue_at(t->queue, i);

		if (item->state == QUEUE_QUEUED && item->not_before_ms > (uint64_t)now &&
		    item->not_before_ms - (uint64_t)now < best)
			best = item->not_before_ms - (uint64_t)now;
	}
	return best;
}

static void turn_start(struct conversation *t, const struct conversation_drive *d,
		       const struct queue_item *item)
{
	const struct conversation_prompt p = { .id = item->id,
					       .message = item->message,
					       .files = item->files,
					       .source = item->source,
					       .attempt = item->attempts };
	struct err e = ERR_INIT;

	t->turning = true;
	t->trouble = ERR_INIT;
	conversation_tell(t, "changed");
	if (d->driver->start(d->data, t, &p, &e) < 0)
		conversation_failed(t, &e);
}

uint64_t conversation_pump(struct conversation *t, int64_t now_ms)
{
	const struct conversation_drive *d = conversation_drive_of(t);
	const struct queue_item *item;
	struct err e;

	if (t->turning)
		return UINT64_MAX;
	if (queue_count(t->queue) == 0) {
		queue_close(take_ptr(t->queue));
		return UINT64_MAX;
	}
	if (!d || t->ended || t->all->draining || conversation_record(t)->archived)
		return UINT64_MAX;
	item = queue_next(t->queue, now_ms);
	if (!item)
		return turn_due_in(t, now_ms);
	memcpy(t->prompt, item->id.p, item->id.n);
	t->prompt[item->id.n] = '\0';
	if (queue_send(t->queue, str_of(t->prompt), &e) < 0) {
		log_warn("conversation %s: %s", conversation_id(t), e.msg);
		return AGAIN_MS;
	}
	turn_start(t, d, turn_item(t));
	return UINT64_MAX;
}

/* Those that are still there. */
static void turn_write_files(struct json_writer *w, const struct conversation *t,
			     const struct field_strs *files)
{
	struct attachment a;
	struct err e;

	json_put_array(w, "files");
	for (size_t i = 0; i < files->n; i++) {
		if (attachment_read(conversation_folder(t), files->p[i], &a, NULL, &e) < 0)
			continue;
		json_write_object(w);
		json_put_text(w, "file_id", a.id);
		json_put_text(w, "name", a.name);
		json_put_text(w, "type", a.type);
		json_put_uint(w, "size", a.size);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static int turn_append_prompt(struct conversation *t, const struct queue_item *item, struct err *e)
{
	autobuf struct buf b = BUF_INIT(PROMPT_MAX);
	struct json_writer w = json_writer(&b);

	json_write_object(&w);
	json_put_str(&w, "message", item->message);
	json_put_str(&w, "prompt_id", item->id);
	json_put_str(&w, "source", item->source);
	json_put_str(&w, "queued_at", item->queued_at);
	if (item->files.n)
		turn_write_files(&w, t, &item->files);
	json_write_object_end(&w);
	return json_write_done(&w, e) < 0
		     ? -1
		     : conversation_append(t, "user_prompt", buf_str(&b), NULL, e);
}

int conversation_turn_begin(struct conversation *t, struct err *e)
{
	const struct queue_item *item = turn_item(t);
	struct conversation_record r;
	struct events *events;
	char now[WHEN_MAX];

	if (!t->turning || t->begun || !item)
		return 0;
	/* The turn would be cut off in the middle: the prompt waits for the next hub. */
	if (t->all->draining)
		return err_set(e, ERR_CANCELLED, "Holt is ending");
	/* Opened, it may have the event of a hub that was killed at this place. */
	events = conversation_events(t, e);
	if (!events ||
	    (strcmp(t->last_prompt, t->prompt) != 0 && turn_append_prompt(t, item, e) < 0))
		return -1;
	memcpy(t->last_prompt, t->prompt, sizeof(t->prompt));
	/* Else a power cut could take the event, and the prompt with it. */
	if (events_sync(events, e) < 0)
		return -1;
	t->begun = true;
	if (queue_sent(t->queue, str_of(t->prompt), e) < 0)
		return -1;
	when_text(now, clock_unix_ms());
	r = *conversation_record(t);
	r.last_user_message_at = str_of(now);
	/* The agent must get it all the same: it is in no queue any more. */
	if (conversation_change(t, &r, e) < 0)
		log_warn("conversation %s: %s", conversation_id(t), e->msg);
	return 0;
}

void conversation_waits(struct conversation *t, bool on)
{
	if (!on && t->waits == 0)
		return;
	t->waits = on ? t->waits + 1 : t->waits - 1;
	conversation_tell(t, "changed");
}

void conversation_stalled(struct conversation *t, bool on)
{
	if (!t->turning || t->stalled == on)
		return;
	t->stalled = on;
	conversation_tell(t, "changed");
}

bool conversation_cancel(struct conversation *t)
{
	const struct conversation_drive *d = conversation_drive_of(t);

	if (!t->turning || !d)
		return false;
	t->cancelled = true;
	d->driver->cancel(d->data, t);
	return true;
}

/* ---- the queue ------------------------------------------------------------------------------- */

struct queue *conversation_open_queue(struct conversation *t, struct err *e)
{
	if (!t->queue)
		t->queue = queue_open(conversation_folder(t), e);
	if (t->queue)
		conversations_kick(t->all, 0);
	return t->queue;
}

const struct queue *conversation_queue(struct conversation *t, struct err *e)
{
	return conversation_open_queue(t, e);
}

/* Those who watch hear of it, and it may be sent. */
static int queue_changed(struct conversation *t, int result)
{
	if (result == 0)
		conversation_tell(t, "changed");
	return result;
}

int conversation_send(struct conversation *t, const struct queue_item *item,
		      char ret_id[QUEUE_ID + 1], size_t *ret_position, struct err *e)
{
	struct queue *q = conversation_open_queue(t, e);

	if (q && (t->ended || conversation_record(t)->archived))
		return err_set(e, ERR_CONFLICT, "conversation %s is archived", conversation_id(t));
	return q ? queue_changed(t, queue_add(q, item, ret_id, ret_position, e)) : -1;
}

int conversation_queue_remove(struct conversation *t, struct str id, struct err *e)
{
	struct queue *q = conversation_open_queue(t, e);

	if (!q || queue_remove(q, id, e) < 0)
		return -1;
	if (!t->turning)
		t->trouble = ERR_INIT; /* whoever removes the prompt knows of it */
	return queue_changed(t, 0);
}

int conversation_queue_move(struct conversation *t, struct str id, size_t to, struct err *e)
{
	struct queue *q = conversation_open_queue(t, e);

	return q ? queue_changed(t, queue_move(q, id, to, e)) : -1;
}

int conversation_queue_again(struct conversation *t, struct str id, struct err *e)
{
	struct queue *q = conversation_open_queue(t, e);

	return q ? queue_changed(t, queue_again(q, id, e)) : -1;
}
