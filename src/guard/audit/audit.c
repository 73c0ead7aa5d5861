#include "guard/audit/audit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/id.h"
#include "base/log.h"

enum {
	RETRY_MS = 500,
	/* Records of calls that were under way when the disk got full. */
	KEPT_MAX = 8192,
	/* Room that only light calls still find. */
	LIGHT_BYTES = 1 << 20,
	ONE_BYTES = 64 << 10,
	SESSION_NAME = 40,
};

/* A record that could not be written yet. */
struct kept {
	struct kept *next;
	struct arena arena;
	struct audit_record record;
};

struct audit {
	struct audit_log *log;
	uv_loop_t *loop;
	char session[25];
	int session_fd;
	uint64_t records;

	/* Those whose record is written, for the next sync and for the one that runs. */
	struct audit_wait *waiting, **waiting_end, *syncing;
	uv_work_t work;
	int work_fd;
	struct err work_err;
	bool working, closing;

	struct kept *kept, **kept_end;
	size_t n_kept;
	uint64_t refused;
	bool failing;
	struct err why;
	uv_timer_t retry;
};

static void audit_kick(struct audit *a);

/* ---- sessions ------------------------------------------------------------------------------ */

/* Removes the files of sessions whose hub was killed: nobody holds their lock. */
static void session_sweep(int folder)
{
	autofolder struct folder f = folder_at(folder, ".");

	/* The next start removes what this one does not see. */
	while (folder_next(&f) > 0) {
		const char *name = f.entry->d_name;
		int old = strncmp(name, "session-", 8) == 0
				? openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
				: -1;

		if (old >= 0 && flock(old, LOCK_EX | LOCK_NB) == 0)
			unlinkat(folder, name, 0);
		close_fd(&old);
	}
}

static void session_name(const struct audit *a, char name[SESSION_NAME])
{
	snprintf(name, SESSION_NAME, "session-%s", a->session);
}

static int session_begin(struct audit *a, const char *version, struct err *e)
{
	struct audit_record r = { .event = STR_LIT("begin"), .version = str_of(version) };
	int folder = audit_log_folder(a->log);
	char id[ID_MAX], name[SESSION_NAME];
	struct audit_line line;

	session_sweep(folder);
	id_make(id, "s");
	snprintf(a->session, sizeof(a->session), "%.16s", id + 2);
	session_name(a, name);
	a->session_fd = openat(folder, name, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (a->session_fd < 0 || flock(a->session_fd, LOCK_EX | LOCK_NB) < 0)
		return err_sys(e, errno, "begin a session of the audit log");
	r.session = str_of(a->session);
	return audit_log_append(a->log, &r, true, &line, e);
}

static int session_sync(struct audit *a, struct err *e)
{
	autoclose int fd = audit_log_dup(a->log, e);

	return fd < 0 ? -1 : fdatasync(fd) < 0 ? err_sys(e, errno, "sync the audit log") : 0;
}

static void session_end(struct audit *a)
{
	struct audit_record r = { .event = STR_LIT("seal"),
				  .session = str_of(a->session),
				  .counted = true,
				  .count = a->records };
	struct audit_line line;
	char name[SESSION_NAME];
	struct err e;

	if (audit_log_append(a->log, &r, true, &line, &e) < 0 || session_sync(a, &e) < 0) {
		log_error("the audit log is not sealed: %s", e.msg);
		return;
	}
	session_name(a, name);
	unlinkat(audit_log_folder(a->log), name, 0);
}

/* ---- opening and closing ------------------------------------------------------------------- */

struct audit *audit_open(const struct audit_options *o, struct err *e)
{
	struct audit *a = calloc(1, sizeof(*a));

	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	a->loop = o->loop;
	a->session_fd = a->work_fd = -1;
	a->waiting_end = &a->waiting;
	a->kept_end = &a->kept;
	a->log = audit_log_open(o->folder, &o->limits, e);
	if (!a->log || session_begin(a, o->version, e) < 0 ||
	    uv_timer_init(a->loop, &a->retry) < 0) {
		close_fd(&a->session_fd);
		audit_log_close(a->log);
		free(a);
		return NULL;
	}
	a->retry.data = a;
	uv_unref((uv_handle_t *)&a->retry);
	audit_kick(a); /* what an answer promises is synced after this */
	return a;
}

static void audit_free(struct audit *a)
{
	close_fd(&a->session_fd);
	audit_log_close(a->log);
	while (a->kept) {
		struct kept *k = a->kept;

		a->kept = k->next;
		arena_fini(&k->arena);
		free(k);
	}
	free(a);
}

static void audit_closed(uv_handle_t *h)
{
	struct audit *a = h->data;

	a->closing = true;
	if (!a->working)
		audit_free(a);
}

static void audit_flush(struct audit *a);

void audit_close(struct audit *a)
{
	if (!a)
		return;
	if (a->n_kept)
		audit_flush(a);
	if (a->n_kept)
		log_error("%zu records of the audit log are lost: %s", a->n_kept, a->why.msg);
	session_end(a);
	uv_close((uv_handle_t *)&a->retry, audit_closed);
}

void audit_limit(struct audit *a, const struct audit_limits *l)
{
	audit_log_limit(a->log, l);
}

int audit_folder(const struct audit *a)
{
	return audit_log_folder(a->log);
}

/* ---- where it can't be written ------------------------------------------------------------- */

static void audit_try(uv_timer_t *t)
{
	struct audit *a = t->data;

	audit_flush(a);
	if (!a->failing)
		uv_timer_stop(t);
}

static void audit_fails(struct audit *a, const struct err *e)
{
	if (!a->failing)
		log_error("the audit log can't be written, so calls are refused: %s", e->msg);
	a->failing = true;
	a->why = *e;
	uv_timer_start(&a->retry, audit_try, RETRY_MS, RETRY_MS);
}

static struct str kept_text(void *data, const struct field *row, struct str text)
{
	struct kept *k = data;
	struct err e;
	char *copy = text.p ? arena_dup(&k->arena, text, &e) : NULL;

	return copy ? (struct str){ copy, text.n } : STR_NONE;
}

static void audit_keep(struct audit *a, const struct audit_record *r)
{
	struct kept *k = a->n_kept < KEPT_MAX ? calloc(1, sizeof(*k)) : NULL;
	const struct audit_record *copy;
	struct err e;

	if (!k) {
		a->refused++; /* told with those that were refused */
		return;
	}
	arena_init(&k->arena, 16 << 10);
	copy = field_copy(&audit_record_table, r, &k->arena, kept_text, k, &e);
	if (copy)
		k->record = *copy;
	*a->kept_end = k;
	a->kept_end = &k->next;
	a->n_kept++;
}

static int audit_append(struct audit *a, struct audit_record *r, struct audit_line *line,
			struct err *e)
{
	r->session = str_of(a->session);
	if (audit_log_append(a->log, r, false, line, e) < 0)
		return -1;
	a->records++;
	return 0;
}

/* Writes what was kept, and then that calls were refused. */
static void audit_flush(struct audit *a)
{
	struct audit_line line;
	struct err e;

	if (audit_log_reserve(a->log, &e) < 0) {
		a->why = e;
		return;
	}
	while (a->kept) {
		struct kept *k = a->kept;

		if (audit_append(a, &k->record, &line, &e) < 0) {
			a->why = e;
			return;
		}
		a->kept = k->next;
		if (!a->kept)
			a->kept_end = &a->kept;
		a->n_kept--;
		arena_fini(&k->arena);
		free(k);
	}
	if (a->refused) {
		struct audit_record r = { .event = STR_LIT("gap"),
					  .counted = true,
					  .count = a->refused };

		if (audit_append(a, &r, &line, &e) < 0) {
			a->why = e;
			return;
		}
		a->refused = 0;
	}
	if (session_sync(a, &e) < 0) {
		a->why = e;
		return;
	}
	if (a->failing)
		log_info("the audit log is written again");
	a->failing = false;
}

int audit_check(struct audit *a, bool light, struct err *e)
{
	if (!a->failing && audit_log_reserve(a->log, e) < 0)
		audit_fails(a, e);
	if (!a->failing || (light && !a->n_kept && audit_log_room(a->log) > LIGHT_BYTES))
		return 0;
	a->refused++;
	*e = a->why;
	return err_wrap(e, "a call whose record can't be kept is not run");
}

void audit_status(const struct audit *a, struct audit_status *ret)
{
	*ret = (struct audit_status){
		.failing = a->failing, .kept = a->n_kept, .records = a->records, .why = a->why
	};
}

/* ---- records ------------------------------------------------------------------------------- */

static void audit_give_receipt(struct audit *a, struct audit_wait *w)
{
	struct audit_line line;
	struct err e;

	if (w->receipt && audit_receipt(a, &w->line, &line, &e) == 0)
		w->line = line;
}

static void audit_work(uv_work_t *work)
{
	struct audit *a = work->data;

	a->work_err = ERR_INIT;
	if (fdatasync(a->work_fd) < 0)
		err_sys(&a->work_err, errno, "sync the audit log");
	for (struct audit_wait *w = a->syncing; w; w = w->next)
		audit_give_receipt(a, w);
}

static void audit_worked(uv_work_t *work, int status)
{
	struct audit *a = work->data;
	struct audit_wait *w = take_ptr(a->syncing);

	a->working = false;
	close_fd(&a->work_fd);
	if (a->work_err.code)
		audit_fails(a, &a->work_err);
	if (a->closing) {
		audit_free(a);
		return;
	}
	if (a->waiting)
		audit_kick(a); /* so that the disk works while the answers go out */
	while (w) {
		struct audit_wait *next = w->next;

		w->done(w);
		w = next;
	}
}

/* One sync at a time: those that come meanwhile share the next. */
static void audit_kick(struct audit *a)
{
	struct err e;

	if (a->working)
		return;
	a->syncing = take_ptr(a->waiting);
	a->waiting_end = &a->waiting;
	a->work.data = a;
	a->work_fd = audit_log_dup(a->log, &e);
	a->working = true;
	if (a->work_fd < 0 || uv_queue_work(a->loop, &a->work, audit_work, audit_worked) < 0) {
		if (a->work_fd >= 0)
			err_set(&e, ERR_LIMIT, "out of memory");
		a->work_err = e;
		audit_worked(&a->work, 0);
	}
}

void audit_add(struct audit *a, const struct audit_record *r, struct audit_wait *w)
{
	struct audit_record own = *r;
	char when[AUDIT_TIME];
	struct err e;

	if (!r->time.n)
		own.time = audit_time(clock_unix_ms(), when);
	w->next = NULL;
	w->line.n = 0;
	/* In order: those that were kept come first. */
	if (a->n_kept || audit_append(a, &own, &w->line, &e) < 0) {
		if (!a->n_kept)
			audit_fails(a, &e);
		w->line.n = 0;
		audit_keep(a, &own);
		w->done(w);
	} else if (!w->synced || a->failing) {
		audit_give_receipt(a, w);
		w->done(w);
	} else {
		*a->waiting_end = w;
		a->waiting_end = &w->next;
		audit_kick(a);
	}
}

int audit_receipt(struct audit *a, const struct audit_line *line, struct audit_line *ret,
		  struct err *e)
{
	*ret = *line;
	return audit_sign(audit_log_key(a->log), ret, e);
}

/* ---- without a hub ------------------------------------------------------------------------- */

int audit_check_one(const char *folder, struct err *e)
{
	static const struct audit_limits none = { .files = 0 };
	AUTO(audit_log_close) struct audit_log *l = audit_log_open(folder, &none, e);

	if (!l)
		return -1;
	return fd_disk_is_short(audit_log_folder(l), ONE_BYTES)
		     ? err_set(e, ERR_STORE_FULL, "the disk has no room for the audit log")
		     : 0;
}

int audit_add_one(const char *folder, const struct audit_limits *limits,
		  const struct audit_record *r, struct err *e)
{
	AUTO(audit_log_close) struct audit_log *l = audit_log_open(folder, limits, e);
	struct audit_record own = *r;
	struct audit_line line;

	return l ? audit_log_append(l, &own, true, &line, e) : -1;
}
