#include "agents/store/events.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "agents/store/internal.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/when.h"

struct events {
	int fd;
	struct events_index index;
	uint64_t size, count;
	uint64_t last; /* seq that was used last, of a torn line too */
	uint64_t told; /* seq of the last event that is there */
	uint64_t entry_at; /* of the last entry of the index */
	bool torn; /* behind `size` stands a part of a line */
	struct buf line;
};

/* ---- opening -------------------------------------------------------------------------------- */

static int events_open_file(struct events *v, int folder, struct err *e)
{
	struct stat st;

	v->fd = openat(folder, "events.jsonl",
		       O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (v->fd < 0 || fstat(v->fd, &st) < 0)
		return err_sys(e, errno, "open the events");
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return err_set(e, ERR_DENIED, "the events are not a file of this user alone");
	v->size = (uint64_t)st.st_size;
	return 0;
}

/* Whether the entry is that of an event which stands there. */
static bool entry_holds(const struct events *v, const struct events_entry *entry)
{
	char text[48];
	ssize_t got;

	if (entry->at >= v->size)
		return false;
	if (entry->at > 0 && (pread(v->fd, text, 1, (off_t)entry->at - 1) != 1 || text[0] != '\n'))
		return false;
	got = pread(v->fd, text, sizeof(text), (off_t)entry->at);
	return got > 0 && events_seq_of((struct str){ text, (size_t)got }) == entry->seq &&
	       entry->before < entry->seq;
}

/* The last entry that holds; those behind it are dropped. A power cut may have kept the entries
 * and lost the events. */
static struct events_entry events_entry_last(struct events *v)
{
	struct events_entry entry;

	for (; v->index.n > 0; v->index.n--) {
		if (events_index_get(&v->index, v->index.n - 1, &entry) && entry_holds(v, &entry))
			return entry;
	}
	return (struct events_entry){ 0 };
}

/* Adds an entry for the next event, at `at`, where its seq is not that of the last entry. */
static void events_index_next(struct events *v, uint64_t seq, uint64_t at)
{
	if (v->count % EVENTS_EVERY != 0 && at - v->entry_at < EVENTS_EVERY_BYTES)
		return;
	events_index_add(&v->index, &(struct events_entry){ seq, at, v->count });
	v->entry_at = at;
}

/* Counts the events from the last entry on, and cuts what has no end. */
static int events_look(struct events *v, struct events_report *r, struct err *e)
{
	struct events_entry from = events_entry_last(v);
	struct events_scan s;
	struct events_line line;
	int got;

	r->indexed_anew = v->index.n == 0 && v->size > 0;
	if (v->index.n == 0)
		events_index_empty(&v->index);
	if (events_scan_init(&s, v->fd, from.at, v->size, from.seq ? from.seq - 1 : 0, e) < 0)
		return -1;
	v->count = from.before;
	v->entry_at = from.at;
	while ((got = events_scan_next(&s, &line, e)) > 0) {
		if (line.seq > from.seq)
			events_index_next(v, line.seq, line.at);
		v->count++;
	}
	if (got == 0 && s.at < v->size) {
		uint64_t torn = events_seq_of((struct str){ s.room + s.from, s.n });

		r->torn = v->size - s.at;
		v->last = torn;
		if (ftruncate(v->fd, (off_t)s.at) < 0)
			got = err_sys(e, errno, "cut the last line of the events");
		v->size = s.at;
	}
	v->told = s.last;
	if (v->last < s.last)
		v->last = s.last;
	r->spoilt = s.spoilt;
	events_scan_fini(&s);
	return got;
}

struct events *events_open(int folder, struct events_report *ret, struct err *e)
{
	struct events_report report = { 0 };
	AUTO(events_close) struct events *v = calloc(1, sizeof(*v));

	if (!v)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	v->fd = v->index.fd = -1;
	v->line = BUF_INIT(EVENTS_LINE_MAX);
	if (events_open_file(v, folder, e) < 0 || events_index_open(&v->index, folder, e) < 0 ||
	    events_look(v, &report, e) < 0)
		return NULL;
	if (ret)
		*ret = report;
	return take_ptr(v);
}

struct events *events_view(const struct events *v, struct err *e)
{
	AUTO(events_close) struct events *view = calloc(1, sizeof(*view));

	if (!view)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	*view = *v;
	view->line = BUF_INIT(0);
	view->fd = fcntl(v->fd, F_DUPFD_CLOEXEC, 0);
	view->index.fd = fcntl(v->index.fd, F_DUPFD_CLOEXEC, 0);
	if (view->fd < 0 || view->index.fd < 0)
		return err_sys(e, errno, "open the events once more"), NULL;
	return take_ptr(view);
}

void events_close(struct events *v)
{
	if (!v)
		return;
	events_index_close(&v->index);
	if (v->fd >= 0)
		close(v->fd);
	buf_fini(&v->line);
	free(v);
}

/* ---- appending ------------------------------------------------------------------------------ */

static int events_build(struct events *v, uint64_t seq, const char *type, struct str data,
			struct err *e)
{
	char when[WHEN_MAX];

	if (data.n > EVENTS_DATA_MAX)
		return err_set(e, ERR_TOO_LARGE,
			       "an event has %zu bytes of data, at most %d are possible", data.n,
			       EVENTS_DATA_MAX);
	if (strlen(type) > EVENTS_TYPE_MAX || data.n < 2 || memchr(data.p, '\n', data.n))
		return err_set(e, ERR_BUG, "an event that is no line");
	when_text(when, clock_unix_ms());
	v->line.n = 0;
	if (buf_addf(&v->line, e,
		     "{\"seq\":%" PRIu64 ",\"type\":\"%s\",\"timestamp\":\"%s\",\"data\":", seq,
		     type, when) < 0)
		return -1;
	return buf_add(&v->line, data.p, data.n, e) < 0 ? -1 : buf_add(&v->line, "}\n", 2, e);
}

/* Before anything follows a part of a line. */
static int events_cut(struct events *v, struct err *e)
{
	if (ftruncate(v->fd, (off_t)v->size) < 0)
		return err_sys(e, errno, "cut a part of an event");
	v->torn = false;
	return 0;
}

static int events_write(struct events *v, struct err *e)
{
	ssize_t done;

	if (v->torn && events_cut(v, e) < 0)
		return -1;
	do
		done = write(v->fd, v->line.p, v->line.n);
	while (done < 0 && errno == EINTR);
	if (done == (ssize_t)v->line.n)
		return 0;
	if (done >= 0 || errno == ENOSPC || errno == EDQUOT)
		err_set(e, ERR_STORE_FULL, "there is no room on the disk for another event");
	else
		err_sys(e, errno, "write an event");
	v->torn = done > 0 && ftruncate(v->fd, (off_t)v->size) < 0;
	return -1;
}

int events_append(struct events *v, const char *type, struct str data, uint64_t *ret_seq,
		  struct err *e)
{
	uint64_t seq = v->last + 1;

	if (seq > INT64_MAX)
		return err_set(e, ERR_LIMIT, "the numbers of events are used up");
	if (events_build(v, seq, type, data, e) < 0 || events_write(v, e) < 0)
		return -1;
	events_index_next(v, seq, v->size);
	v->size += v->line.n;
	v->count++;
	v->last = v->told = seq;
	*ret_seq = seq;
	return 0;
}

int events_sync(struct events *v, struct err *e)
{
	return fdatasync(v->fd) < 0 ? err_sys(e, errno, "write the events to the disk") : 0;
}

uint64_t events_last(const struct events *v)
{
	return v->told;
}

uint64_t events_count(const struct events *v)
{
	return v->count;
}

uint64_t events_bytes(const struct events *v)
{
	return v->size;
}

int events_fd(const struct events *v)
{
	return v->fd;
}

const struct events_index *events_index_of(const struct events *v)
{
	return &v->index;
}
