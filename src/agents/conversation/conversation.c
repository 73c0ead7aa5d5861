#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "agents/conversation/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/when.h"

enum { TRASH_SECONDS = 30 * 86400, SWEEP_EVERY_MS = 3600 * 1000 };

const char *const conversation_state_names[] = {
	[CONVERSATION_NO_AGENT] = "no_agent", [CONVERSATION_IDLE] = "idle",
	[CONVERSATION_RUNNING] = "running",   [CONVERSATION_REQUIRES_ACTION] = "requires_action",
	[CONVERSATION_STALLED] = "stalled",   [CONVERSATION_NEEDS_LOGIN] = "needs_login",
	[CONVERSATION_FAILED] = "failed",
};

/* ---- the list -------------------------------------------------------------------------------- */

/* Where the id is, or would be. */
static size_t conversations_place(const struct conversations *all, struct str id)
{
	size_t low = 0, high = all->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (str_cmp(str_of(conversation_id(all->p[middle])), id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const char *conversations_path(const struct conversations *all)
{
	return all->path;
}

size_t conversations_count(const struct conversations *all)
{
	return all->n;
}

struct conversation *conversations_at(const struct conversations *all, size_t i)
{
	return i < all->n ? all->p[i] : NULL;
}

struct conversation *conversations_find(const struct conversations *all, struct str id)
{
	size_t at = conversations_place(all, id);

	return at < all->n && str_is(id, conversation_id(all->p[at])) ? all->p[at] : NULL;
}

static void conversation_free(struct conversation *t)
{
	queue_close(t->queue);
	offer_fini(&t->offer);
	free(t);
}

static int conversations_reserve(struct conversations *all, struct err *e)
{
	struct conversation **more;

	if (all->n < all->cap)
		return 0;
	more = reallocarray(all->p, all->cap + 64, sizeof(struct conversation *));
	if (!more)
		return err_set(e, ERR_LIMIT, "out of memory");
	all->p = more;
	all->cap += 64;
	return 0;
}

/* NULL: the conversation stays where it is, for the next start. */
static struct conversation *conversations_add(struct conversations *all,
					      struct conversation_folder *of, struct err *e)
{
	struct conversation *t = conversations_reserve(all, e) < 0 ? NULL : calloc(1, sizeof(*t));
	size_t at;

	if (!t)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	t->all = all;
	t->of = of;
	at = conversations_place(all, str_of(conversation_folder_id(of)));
	memmove(all->p + at + 1, all->p + at, (all->n - at) * sizeof(struct conversation *));
	all->p[at] = t;
	all->n++;
	return t;
}

/* ---- the timer ------------------------------------------------------------------------------- */

static void conversations_empty_trash(struct conversations *all)
{
	int64_t seconds = all->o.trash_seconds ? all->o.trash_seconds : TRASH_SECONDS;
	struct err e;
	int n;

	n = conversation_store_empty_trash(all->store, seconds, &e);
	if (n < 0)
		log_warn("%s", e.msg);
	else if (n > 0)
		log_info("%d conversations were removed from the trash", n);
}

/* When something of it was written last, also by an earlier hub. */
static int64_t conversation_written_s(const struct conversation *t)
{
	static const char *const names[] = { "events.jsonl", "metadata.json", "queue.json" };
	int64_t last = 0;
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (fstatat(conversation_folder(t), names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    st.st_mtim.tv_sec > last)
			last = st.st_mtim.tv_sec;
	}
	return last;
}

/* Those that nothing goes on in, and nothing waits for. */
static void conversations_archive_idle(struct conversations *all, int64_t now)
{
	int64_t until = now / 1000 - all->o.archive_seconds;
	struct err e;

	for (size_t i = 0; i < all->n && all->o.archive_seconds; i++) {
		struct conversation *t = all->p[i];

		if (conversation_record(t)->archived || conversation_is_prompting(t) ||
		    conversation_queue_length(t) || conversation_written_s(t) > until)
			continue;
		if (conversation_archive(t, true, CONVERSATION_BY_AGE, &e) < 0)
			log_warn("conversation %s is not archived: %s", conversation_id(t), e.msg);
	}
}

static void conversations_on_timer(uv_timer_t *timer)
{
	struct conversations *all = timer->data;
	int64_t now = clock_unix_ms();
	uint64_t next = SWEEP_EVERY_MS;

	if (now >= all->sweep_ms) {
		all->sweep_ms = now + SWEEP_EVERY_MS;
		conversations_empty_trash(all);
		conversations_archive_idle(all, now);
	}
	for (size_t i = 0; i < all->n; i++) {
		uint64_t in_ms = all->p[i]->queue ? conversation_pump(all->p[i], now) : UINT64_MAX;

		next = in_ms < next ? in_ms : next;
	}
	conversations_kick(all, next);
}

void conversations_kick(struct conversations *all, uint64_t in_ms)
{
	if (all->closing ||
	    (uv_is_active((uv_handle_t *)&all->timer) && uv_timer_get_due_in(&all->timer) <= in_ms))
		return;
	uv_timer_start(&all->timer, conversations_on_timer, in_ms, 0);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void conversations_on_lost(void *data, const char *id, const struct err *why)
{
	log_warn("conversation %s can't be read and is left as it is: %s", id, why->msg);
}

/* A queue that can't be read is told when it is asked for. */
static int conversations_load(struct conversations *all, struct err *e)
{
	for (size_t i = 0; i < conversation_store_count(all->store); i++) {
		struct conversation *t = conversations_add(all,
							   conversation_store_at(all->store, i), e);
		struct err why;

		if (!t)
			return -1;
		if (!conversation_open_queue(t, &why))
			log_warn("conversation %s: %s", conversation_id(t), why.msg);
		else if (queue_count(t->queue) == 0)
			queue_close(take_ptr(t->queue));
	}
	return 0;
}

static void conversations_free(uv_handle_t *timer)
{
	struct conversations *all = timer->data;

	for (size_t i = 0; i < all->n; i++)
		conversation_free(all->p[i]);
	while (all->drives) {
		struct conversation_drive *d = all->drives;

		all->drives = d->next;
		free(d);
	}
	conversation_store_close(all->store);
	free(all->path);
	free(all->p);
	free(all);
}

struct conversations *conversations_open(uv_loop_t *loop, const char *path,
					 const struct conversations_options *o, struct err *e)
{
	struct conversations *all = calloc(1, sizeof(*all));

	if (!all)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	all->o = *o;
	uv_timer_init(loop, &all->timer);
	all->timer.data = all;
	all->path = strdup(path);
	if (!all->path)
		err_set(e, ERR_LIMIT, "out of memory");
	else
		all->store = conversation_store_open(path, conversations_on_lost, NULL, e);
	if (!all->store || conversations_load(all, e) < 0) {
		conversations_close(all);
		return NULL;
	}
	conversations_kick(all, 0);
	return all;
}

void conversations_drain(struct conversations *all)
{
	all->draining = true;
}

void conversations_close(struct conversations *all)
{
	if (!all)
		return;
	all->closing = true;
	for (size_t i = 0; i < all->n; i++) {
		conversation_stop_driver(all->p[i], "interrupted");
		conversation_end_token(all->p[i]);
	}
	uv_close((uv_handle_t *)&all->timer, conversations_free);
}

/* ---- one conversation ------------------------------------------------------------------------ */

const char *conversation_id(const struct conversation *t)
{
	return conversation_folder_id(t->of);
}

const struct conversation_record *conversation_record(const struct conversation *t)
{
	return conversation_folder_record(t->of);
}

bool conversation_has_flag(const struct conversation *t, enum conversation_flag flag)
{
	return conversation_flag(&conversation_record(t)->advanced_settings, flag);
}

bool conversation_is_prompting(const struct conversation *t)
{
	return t->turning;
}

bool conversation_is_running(const struct conversation *t)
{
	return t->turning || t->driver_state;
}

size_t conversation_queue_length(const struct conversation *t)
{
	return t->queue ? queue_count(t->queue) : 0;
}

int64_t conversation_updated_ms(const struct conversation *t)
{
	return t->updated_ms;
}

int conversation_folder(const struct conversation *t)
{
	return conversation_folder_fd(t->of);
}

enum conversation_state conversation_state(const struct conversation *t)
{
	struct err why;

	if (t->waits)
		return CONVERSATION_REQUIRES_ACTION;
	if (t->turning)
		return t->stalled ? CONVERSATION_STALLED : CONVERSATION_RUNNING;
	if (!conversation_drive_of(t))
		return CONVERSATION_NO_AGENT;
	if (!conversation_trouble(t, &why))
		return CONVERSATION_IDLE;
	return why.code == ERR_AGENT_LOGIN ? CONVERSATION_NEEDS_LOGIN : CONVERSATION_FAILED;
}

struct conversation *conversation_new(struct conversations *all,
				      const struct conversation_record *r, struct err *e)
{
	struct conversation_folder *of;
	struct conversation *t;

	if (conversations_reserve(all, e) < 0)
		return NULL;
	of = conversation_store_add(all->store, r, e);
	t = of ? conversations_add(all, of, e) : NULL;
	if (!t)
		return NULL;
	t->looked = true;
	conversation_note(t, "session_start", "session_id", conversation_id(t));
	conversation_tell(t, "created");
	return t;
}

int conversation_change(struct conversation *t, const struct conversation_record *r, struct err *e)
{
	if (conversation_folder_change(t->of, r, e) < 0)
		return -1;
	t->updated_ms = clock_unix_ms();
	conversation_tell(t, "changed");
	return 0;
}

int conversation_set_options(struct conversation *t, const struct conversation_record *r,
			     struct err *e)
{
	const struct conversation_drive *d = conversation_drive_of(t);

	if (conversation_change(t, r, e) < 0)
		return -1;
	if (d && t->driver_state)
		d->driver->options(d->data, t);
	return 0;
}

bool conversation_part(struct conversation *t, struct conversation_part *ret)
{
	const struct conversation_drive *d = conversation_drive_of(t);

	return d && t->driver_state && d->driver->part(d->data, t, ret);
}

static const struct queue_item *conversation_failed_prompt(const struct conversation *t)
{
	for (size_t i = 0; t->queue && i < queue_count(t->queue); i++) {
		if (queue_at(t->queue, i)->state == QUEUE_FAILED)
			return queue_at(t->queue, i);
	}
	return NULL;
}

int conversation_log_in(struct conversation *t, struct str method, struct err *e)
{
	struct conversation_record r = *conversation_record(t);
	const struct queue_item *item;
	char id[QUEUE_ID + 1];

	if (t->turning)
		return err_set(e, ERR_CONFLICT, "a turn is under way");
	r.login = method;
	if (conversation_change(t, &r, e) < 0)
		return -1;
	conversation_stop_driver(t, "cancelled");
	while ((item = conversation_failed_prompt(t))) {
		snprintf(id, sizeof(id), "%.*s", STR_ARG(item->id));
		if (conversation_queue_again(t, str_of(id), e) < 0)
			return -1;
	}
	return 0;
}

struct agent_offer *conversation_offer(struct conversation *t)
{
	return &t->offer;
}

void conversation_offered(struct conversation *t)
{
	conversation_tell(t, "changed");
}

static void conversation_rest(struct conversation *t)
{
	conversation_stop_driver(t, "cancelled");
	conversation_end_token(t);
}

int conversation_archive(struct conversation *t, bool archived, enum conversation_why why,
			 struct err *e)
{
	struct conversation_record r;
	char now[WHEN_MAX];

	if (conversation_record(t)->archived == archived)
		return 0;
	t->ended = archived && why == CONVERSATION_BY_KEY;
	if (t->ended) /* also where the disk is full */
		conversation_rest(t);
	/* Not before: an agent that ends may change the record, of which this borrows. */
	r = *conversation_record(t);
	when_text(now, clock_unix_ms());
	r.archived = archived;
	r.archived_reason = archived ? why : CONVERSATION_NOT_ARCHIVED;
	r.archived_at = archived ? str_of(now) : STR_NONE;
	if (conversation_folder_change(t->of, &r, e) < 0)
		return -1;
	if (archived)
		conversation_rest(t);
	conversation_note(t, archived ? "session_end" : "session_start", "reason",
			  archived ? "archived" : "unarchived");
	conversation_tell(t, "changed");
	conversations_kick(t->all, 0);
	return 0;
}

struct conversation *conversation_child(const struct conversation *t, size_t *from)
{
	for (size_t i = *from; i < t->all->n; i++) {
		struct conversation *child = t->all->p[i];

		if (str_is(conversation_record(child)->parent_session_id, conversation_id(t))) {
			*from = i + 1;
			return child;
		}
	}
	return NULL;
}

int conversation_delete(struct conversation *t, struct err *e)
{
	struct conversations *all = t->all;
	size_t at = conversations_place(all, str_of(conversation_id(t))), from = 0;
	const struct conversation *child = conversation_child(t, &from);
	int rc;

	if (child)
		return err_set(e, ERR_CONFLICT, "conversation %s is the child of this one",
			       conversation_id(child));
	conversation_rest(t);
	conversation_tell(t, "deleted");
	rc = conversation_folder_delete(t->of, e);
	if (rc < 0)
		return -1;
	all->n--;
	memmove(all->p + at, all->p + at + 1, (all->n - at) * sizeof(struct conversation *));
	conversation_tell_gone(t);
	conversation_free(t);
	return rc > 0 ? -1 : 0;
}

char *conversations_trashed_owner(const struct conversations *all, struct str id)
{
	return conversation_store_trashed_owner(all->store, id);
}

struct conversation *conversation_take_back(struct conversations *all, struct str id,
					    struct str owner, struct err *e)
{
	struct conversation_folder *of;
	struct conversation *t;

	if (conversations_reserve(all, e) < 0)
		return NULL;
	of = conversation_store_take_back(all->store, id, owner, e);
	t = of ? conversations_add(all, of, e) : NULL;
	if (!t)
		return NULL;
	if (!conversation_open_queue(t, e))
		log_warn("conversation %s: %s", conversation_id(t), e->msg);
	conversation_tell(t, "created");
	return t;
}
