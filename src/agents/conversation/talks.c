#include <stdlib.h>
#include <sys/stat.h>

#include "agents/conversation/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/when.h"

enum { TRASH_SECONDS = 30 * 86400, SWEEP_EVERY_MS = 3600 * 1000 };

const char *const talk_state_names[] = {
	[TALK_NO_AGENT] = "no_agent", [TALK_IDLE] = "idle",
	[TALK_RUNNING] = "running",   [TALK_REQUIRES_ACTION] = "requires_action",
	[TALK_STALLED] = "stalled",
};

/* ---- the list -------------------------------------------------------------------------------- */

/* Where the id is, or would be. */
static size_t talks_place(const struct talks *all, struct str id)
{
	size_t low = 0, high = all->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (str_cmp(str_of(talk_id(all->p[middle])), id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const char *talks_path(const struct talks *all)
{
	return all->path;
}

size_t talks_count(const struct talks *all)
{
	return all->n;
}

struct talk *talks_at(const struct talks *all, size_t i)
{
	return i < all->n ? all->p[i] : NULL;
}

struct talk *talks_find(const struct talks *all, struct str id)
{
	size_t at = talks_place(all, id);

	return at < all->n && str_is(id, talk_id(all->p[at])) ? all->p[at] : NULL;
}

static void talk_free(struct talk *t)
{
	queue_close(t->queue);
	free(t);
}

static int talks_reserve(struct talks *all, struct err *e)
{
	struct talk **more;

	if (all->n < all->cap)
		return 0;
	more = reallocarray(all->p, all->cap + 64, sizeof(struct talk *));
	if (!more)
		return err_set(e, ERR_LIMIT, "out of memory");
	all->p = more;
	all->cap += 64;
	return 0;
}

/* NULL: the conversation stays where it is, for the next start. */
static struct talk *talks_add(struct talks *all, struct conversation *of, struct err *e)
{
	struct talk *t = talks_reserve(all, e) < 0 ? NULL : calloc(1, sizeof(*t));
	size_t at;

	if (!t)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	t->all = all;
	t->of = of;
	at = talks_place(all, str_of(conversation_id(of)));
	memmove(all->p + at + 1, all->p + at, (all->n - at) * sizeof(struct talk *));
	all->p[at] = t;
	all->n++;
	return t;
}

/* ---- the timer ------------------------------------------------------------------------------- */

static void talks_empty_trash(struct talks *all)
{
	int64_t seconds = all->o.trash_seconds ? all->o.trash_seconds : TRASH_SECONDS;
	struct err e;
	int n;

	n = conversations_empty_trash(all->store, seconds, &e);
	if (n < 0)
		log_warn("%s", e.msg);
	else if (n > 0)
		log_info("%d conversations were removed from the trash", n);
}

/* When something of it was written last, also by an earlier hub. */
static int64_t talk_written_s(const struct talk *t)
{
	static const char *const names[] = { "events.jsonl", "metadata.json", "queue.json" };
	int64_t last = 0;
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (fstatat(talk_folder(t), names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    st.st_mtim.tv_sec > last)
			last = st.st_mtim.tv_sec;
	}
	return last;
}

/* Those that nothing goes on in, and nothing waits for. */
static void talks_archive_idle(struct talks *all, int64_t now)
{
	int64_t until = now / 1000 - all->o.archive_seconds;
	struct err e;

	for (size_t i = 0; i < all->n && all->o.archive_seconds; i++) {
		struct talk *t = all->p[i];

		if (talk_record(t)->archived || talk_is_prompting(t) || talk_queue_length(t) ||
		    talk_written_s(t) > until)
			continue;
		if (talk_archive(t, true, CONVERSATION_BY_AGE, &e) < 0)
			log_warn("conversation %s is not archived: %s", talk_id(t), e.msg);
	}
}

static void talks_on_timer(uv_timer_t *timer)
{
	struct talks *all = timer->data;
	int64_t now = clock_unix_ms();
	uint64_t next = SWEEP_EVERY_MS;

	if (now >= all->sweep_ms) {
		all->sweep_ms = now + SWEEP_EVERY_MS;
		talks_empty_trash(all);
		talks_archive_idle(all, now);
	}
	for (size_t i = 0; i < all->n; i++) {
		uint64_t in_ms = all->p[i]->queue ? talk_pump(all->p[i], now) : UINT64_MAX;

		next = in_ms < next ? in_ms : next;
	}
	talks_kick(all, next);
}

void talks_kick(struct talks *all, uint64_t in_ms)
{
	if (all->closing ||
	    (uv_is_active((uv_handle_t *)&all->timer) && uv_timer_get_due_in(&all->timer) <= in_ms))
		return;
	uv_timer_start(&all->timer, talks_on_timer, in_ms, 0);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void talks_on_lost(void *data, const char *id, const struct err *why)
{
	log_warn("conversation %s can't be read and is left as it is: %s", id, why->msg);
}

/* A queue that can't be read is told when it is asked for. */
static int talks_load(struct talks *all, struct err *e)
{
	for (size_t i = 0; i < conversations_count(all->store); i++) {
		struct talk *t = talks_add(all, conversations_at(all->store, i), e);
		struct err why;

		if (!t)
			return -1;
		if (!talk_open_queue(t, &why))
			log_warn("conversation %s: %s", talk_id(t), why.msg);
		else if (queue_count(t->queue) == 0)
			queue_close(take_ptr(t->queue));
	}
	return 0;
}

static void talks_free(uv_handle_t *timer)
{
	struct talks *all = timer->data;

	for (size_t i = 0; i < all->n; i++)
		talk_free(all->p[i]);
	while (all->drives) {
		struct talk_drive *d = all->drives;

		all->drives = d->next;
		free(d);
	}
	conversations_close(all->store);
	free(all->path);
	free(all->p);
	free(all);
}

struct talks *talks_open(uv_loop_t *loop, const char *path, const struct talks_options *o,
			 struct err *e)
{
	struct talks *all = calloc(1, sizeof(*all));

	if (!all)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	all->o = *o;
	uv_timer_init(loop, &all->timer);
	all->timer.data = all;
	all->path = strdup(path);
	if (!all->path)
		err_set(e, ERR_LIMIT, "out of memory");
	else
		all->store = conversations_open(path, talks_on_lost, NULL, e);
	if (!all->store || talks_load(all, e) < 0) {
		talks_close(all);
		return NULL;
	}
	talks_kick(all, 0);
	return all;
}

void talks_drain(struct talks *all)
{
	all->draining = true;
}

void talks_close(struct talks *all)
{
	if (!all)
		return;
	all->closing = true;
	for (size_t i = 0; i < all->n; i++) {
		talk_stop_driver(all->p[i], "interrupted");
		talk_end_token(all->p[i]);
	}
	uv_close((uv_handle_t *)&all->timer, talks_free);
}

/* ---- one conversation ------------------------------------------------------------------------ */

const char *talk_id(const struct talk *t)
{
	return conversation_id(t->of);
}

const struct conversation_record *talk_record(const struct talk *t)
{
	return conversation_record(t->of);
}

bool talk_permits(const struct talk *t, enum conversation_flag flag)
{
	return conversation_flag(&talk_record(t)->advanced_settings, flag);
}

bool talk_is_prompting(const struct talk *t)
{
	return t->turning;
}

bool talk_is_running(const struct talk *t)
{
	return t->turning || t->driver_state;
}

size_t talk_queue_length(const struct talk *t)
{
	return t->queue ? queue_count(t->queue) : 0;
}

int64_t talk_updated_ms(const struct talk *t)
{
	return t->updated_ms;
}

int talk_folder(const struct talk *t)
{
	return conversation_folder(t->of);
}

enum talk_state talk_state(const struct talk *t)
{
	if (t->waits)
		return TALK_REQUIRES_ACTION;
	if (t->turning)
		return t->stalled ? TALK_STALLED : TALK_RUNNING;
	return talk_drive_of(t) ? TALK_IDLE : TALK_NO_AGENT;
}

struct talk *talk_new(struct talks *all, const struct conversation_record *r, struct err *e)
{
	struct conversation *of;
	struct talk *t;

	if (talks_reserve(all, e) < 0)
		return NULL;
	of = conversation_new(all->store, r, e);
	t = of ? talks_add(all, of, e) : NULL;
	if (!t)
		return NULL;
	t->looked = true;
	talk_note(t, "session_start", "session_id", talk_id(t));
	talk_tell(t, "created");
	return t;
}

int talk_change(struct talk *t, const struct conversation_record *r, struct err *e)
{
	if (conversation_change(t->of, r, e) < 0)
		return -1;
	t->updated_ms = clock_unix_ms();
	talk_tell(t, "changed");
	return 0;
}

static void talk_rest(struct talk *t)
{
	talk_stop_driver(t, "cancelled");
	talk_end_token(t);
}

int talk_archive(struct talk *t, bool archived, enum conversation_why why, struct err *e)
{
	struct conversation_record r;
	char now[WHEN_MAX];

	if (talk_record(t)->archived == archived)
		return 0;
	t->ended = archived && why == CONVERSATION_BY_KEY;
	if (t->ended) /* also where the disk is full */
		talk_rest(t);
	/* Not before: an agent that ends may change the record, of which this borrows. */
	r = *talk_record(t);
	when_text(now, clock_unix_ms());
	r.archived = archived;
	r.archived_reason = archived ? why : CONVERSATION_NOT_ARCHIVED;
	r.archived_at = archived ? str_of(now) : STR_NONE;
	if (conversation_change(t->of, &r, e) < 0)
		return -1;
	if (archived)
		talk_rest(t);
	talk_note(t, archived ? "session_end" : "session_start", "reason",
		  archived ? "archived" : "unarchived");
	talk_tell(t, "changed");
	talks_kick(t->all, 0);
	return 0;
}

struct talk *talk_child(const struct talk *t, size_t *from)
{
	for (size_t i = *from; i < t->all->n; i++) {
		struct talk *child = t->all->p[i];

		if (str_is(talk_record(child)->parent_session_id, talk_id(t))) {
			*from = i + 1;
			return child;
		}
	}
	return NULL;
}

int talk_delete(struct talk *t, struct err *e)
{
	struct talks *all = t->all;
	size_t at = talks_place(all, str_of(talk_id(t))), from = 0;
	const struct talk *child = talk_child(t, &from);
	int rc;

	if (child)
		return err_set(e, ERR_CONFLICT, "conversation %s is the child of this one",
			       talk_id(child));
	talk_rest(t);
	talk_tell(t, "deleted");
	rc = conversation_delete(t->of, e);
	if (rc < 0)
		return -1;
	all->n--;
	memmove(all->p + at, all->p + at + 1, (all->n - at) * sizeof(struct talk *));
	talk_tell_gone(t);
	talk_free(t);
	return rc > 0 ? -1 : 0;
}

char *talks_trashed_owner(const struct talks *all, struct str id)
{
	return conversation_trashed_owner(all->store, id);
}

struct talk *talk_take_back(struct talks *all, struct str id, struct str owner, struct err *e)
{
	struct conversation *of;
	struct talk *t;

	if (talks_reserve(all, e) < 0)
		return NULL;
	of = conversation_take_back(all->store, id, owner, e);
	t = of ? talks_add(all, of, e) : NULL;
	if (!t)
		return NULL;
	if (!talk_open_queue(t, e))
		log_warn("conversation %s: %s", talk_id(t), e->msg);
	talk_tell(t, "created");
	return t;
}
