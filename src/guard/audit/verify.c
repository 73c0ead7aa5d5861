#include "guard/audit/verify.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "guard/audit/log.h"
#include "guard/audit/read.h"

enum {
	SESSION = 25,
	SESSIONS_MAX = 4096, /* open at once in one log */
	TRIES = 3,
};

struct verify {
	struct audit_report *report;
	const struct audit_public *public;
	uint64_t seq; /* of the last line; 0: there was none */
	char hash[AUDIT_HASH];
	bool signed_, whole; /* the last line is signed; the log is read from its first file on */
	/* The beginning that is gone, until a line says that it was removed. */
	bool headless;
	uint64_t gone;
	char gone_hash[AUDIT_HASH];
	char (*open)[SESSION];
	size_t n, room;
	unsigned file;
};

static void report_why(struct audit_report *r, enum audit_verdict verdict, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
static void report_why(struct audit_report *r, enum audit_verdict verdict, const char *fmt, ...)
{
	va_list args;

	if (r->verdict == AUDIT_MISMATCH ||
	    (r->verdict != AUDIT_VERIFIED && verdict != AUDIT_MISMATCH))
		return; /* the first and worst is told */
	r->verdict = verdict;
	va_start(args, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, args);
	va_end(args);
}

/* ---- sessions ------------------------------------------------------------------------------ */

static size_t verify_session(const struct verify *v, struct str id)
{
	for (size_t i = v->n; i > 0; i--) {
		if (str_is(id, v->open[i - 1]))
			return i;
	}
	return 0;
}

static bool verify_open(struct verify *v, struct str id)
{
	if (v->n == v->room) {
		size_t room = v->room ? 2 * v->room : 16;
		void *more = room > SESSIONS_MAX ? NULL
						 : reallocarray(v->open, room, sizeof(*v->open));

		if (!more)
			return false;
		v->open = more;
		v->room = room;
	}
	snprintf(v->open[v->n++], SESSION, "%.*s", STR_ARG(id));
	return true;
}

/* A session that began in a file that is not here is known by its first record. */
static const char *verify_of_session(struct verify *v, const struct audit_record *r)
{
	bool begins = str_is(r->event, "begin"), seals = str_is(r->event, "seal");
	size_t at = r->session.n ? verify_session(v, r->session) : 0;

	if (!r->session.n)
		return begins || seals ? "an event lacks its session" : NULL;
	if (begins && at)
		return "a session begins twice";
	if (!at && !begins && v->whole)
		return "a record is of a session that never began, or has ended";
	if (!at && !verify_open(v, r->session))
		return "too many sessions are open";
	v->report->sessions += !at;
	if (seals) {
		at = verify_session(v, r->session) - 1;
		memmove(v->open[at], v->open[at + 1], (--v->n - at) * sizeof(*v->open));
	}
	return NULL;
}

/* ---- lines --------------------------------------------------------------------------------- */

static const char *verify_first(struct verify *v, const struct audit_record *r)
{
	static const char zeros[] =
		"0000000000000000000000000000000000000000000000000000000000000000";

	if (r->seq == 1)
		return str_is(r->prev, zeros) ? NULL : "the first record has one before it";
	v->headless = true;
	v->gone = r->seq - 1;
	snprintf(v->gone_hash, sizeof(v->gone_hash), "%.*s", STR_ARG(r->prev));
	v->whole = false;
	return NULL;
}

static const char *verify_event(struct verify *v, const struct audit_record *r)
{
	bool must = !r->event.n ? !r->session.n
				: str_is(r->event, "begin") || str_is(r->event, "seal") ||
					  str_is(r->event, "next") || str_is(r->event, "dropped");

	if (must && !r->sig.n)
		return "a record that must be signed is not";
	if (str_is(r->event, "dropped") && v->headless && r->upto == v->gone &&
	    str_is(r->hash, v->gone_hash))
		v->headless = false;
	return str_is(r->event, "lost") ? "the log says that records before this one are lost"
					: NULL;
}

static const char *verify_line(struct verify *v, struct str line, const struct audit_record *r,
			       struct err *e)
{
	const char *why = NULL;

	if (!v->seq)
		why = verify_first(v, r);
	else if (r->seq != v->seq + 1)
		why = "records are missing or out of order";
	else if (!str_is(r->prev, v->hash))
		why = "the record before was changed";
	if (!why && r->sig.n && audit_check_sig(v->public, r, e) < 0)
		why = e->msg;
	if (!why)
		why = verify_event(v, r);
	if (!why)
		why = verify_of_session(v, r);
	v->seq = r->seq;
	sha256_hex(line, v->hash);
	v->signed_ = r->sig.n > 0;
	v->report->records++;
	v->report->calls += !r->event.n;
	return why;
}

/* Up to an offset. False: a mismatch. */
static bool verify_lines(struct verify *v, int fd, uint64_t end, uint64_t *ret_at)
{
	struct err e;
	AUTO(audit_reader_free) struct audit_reader *r = audit_reader_new(fd, 0, &e);
	struct audit_record rec;
	struct str line;
	const char *why = NULL;
	uint64_t at = 0;
	int rc = r ? 0 : -1;

	while (r && !why && at < end && (rc = audit_reader_next(r, &line, &rec, &e)) > 0) {
		why = verify_line(v, line, &rec, &e);
		at = audit_reader_at(r);
	}
	if (why)
		report_why(v->report, AUDIT_MISMATCH, "record %llu: %s", (unsigned long long)v->seq,
			   why);
	else if (rc < 0)
		report_why(v->report, AUDIT_MISMATCH, "after record %llu: %s",
			   (unsigned long long)v->seq, e.msg);
	*ret_at = at;
	return !why && rc >= 0;
}

static void verify_init(struct verify *v, const struct audit_public *p, struct audit_report *ret)
{
	*ret = (struct audit_report){ .verdict = AUDIT_VERIFIED };
	*v = (struct verify){ .report = ret, .public = p, .whole = true };
}

void audit_verify_file(int fd, const struct audit_public *p, struct audit_report *ret)
{
	struct verify v;
	uint64_t at;
	struct stat s;

	verify_init(&v, p, ret);
	if (fstat(fd, &s) == 0 && verify_lines(&v, fd, UINT64_MAX, &at)) {
		if ((uint64_t)s.st_size > at)
			report_why(ret, AUDIT_UNSEALED, "the last line is torn");
		else if (v.seq == 0)
			report_why(ret, AUDIT_NOT_FOUND, "there is no record");
		else if (!v.signed_)
			report_why(ret, AUDIT_UNSEALED,
				   "nothing signed follows record %llu, the last one",
				   (unsigned long long)v.seq);
	}
	ret->open = (unsigned)v.n;
	free(v.open);
}

/* ---- the whole log ------------------------------------------------------------------------- */

/* Nobody appends while the descriptor is open, which the caller closes soon. -1: there is none, or
 * it is damaged. */
static int log_head(int folder, struct audit_head *ret)
{
	autoclose int fd = openat(folder, "head", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 || flock(fd, LOCK_SH) < 0 || audit_head_load(folder, fd, ret) < 0)
		return -1;
	return ret->file ? take_fd(&fd) : -1;
}

/* A hub holds a lock on the file of its session as long as it lives. */
static bool session_runs(int folder, const char *id)
{
	char name[SESSION + 16];
	autoclose int fd = -1;

	snprintf(name, sizeof(name), "session-%s", id);
	fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
}

static void verify_end(struct verify *v, int folder, const struct audit_head *h)
{
	struct audit_report *r = v->report;

	if (v->seq != h->seq || strcmp(v->hash, h->hash) != 0)
		report_why(r, AUDIT_MISMATCH,
			   "the log ends with record %llu, but %llu was written last",
			   (unsigned long long)v->seq, (unsigned long long)h->seq);
	if (v->headless)
		report_why(r, AUDIT_MISMATCH,
			   "records before %llu are gone, and no retention removed them",
			   (unsigned long long)v->gone + 1);
	r->open = (unsigned)v->n;
	for (size_t i = 0; i < v->n; i++)
		r->running += session_runs(folder, v->open[i]);
	if (v->n > r->running)
		report_why(r, AUDIT_UNSEALED,
			   "%u sessions ended without a seal: their hub was killed",
			   r->open - r->running);
	else if (v->n)
		report_why(r, AUDIT_UNSEALED, "%u sessions are still running", r->running);
	else if (!v->signed_)
		report_why(r, AUDIT_UNSEALED, "nothing signed follows record %llu, the last one",
			   (unsigned long long)v->seq);
}

static bool verify_files(struct verify *v, int folder, const struct audit_head *h,
			 const unsigned *files, size_t n)
{
	bool good = true;

	for (size_t i = 0; good && i < n && files[i] <= h->file; i++) {
		bool last = files[i] == h->file;
		char name[AUDIT_FILE_NAME];
		autoclose int fd = -1;
		uint64_t at = 0;
		struct stat s;

		audit_file_name(files[i], name);
		fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0 || fstat(fd, &s) < 0) {
			report_why(v->report, AUDIT_MISMATCH, "%s can't be read", name);
			return false;
		}
		good = verify_lines(v, fd, last ? h->size : UINT64_MAX, &at);
		if (good && !last && at != (uint64_t)s.st_size)
			report_why(v->report, AUDIT_MISMATCH, "%s does not end in a whole line",
				   name);
	}
	return good;
}

/* A writer that died between a record and the head leaves more than the head knows; what is no
 * record of the chain is then seen by whoever appends next. */
static void verify_behind(struct verify *v, int folder)
{
	struct audit_head h;
	char name[AUDIT_FILE_NAME];
	autoclose int lock = log_head(folder, &h), fd = -1;
	struct stat s;

	if (lock < 0)
		return;
	audit_file_name(h.file, name);
	fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && fstat(fd, &s) == 0 && (uint64_t)s.st_size > h.size)
		report_why(v->report, AUDIT_UNSEALED,
			   "%llu bytes stand behind the last record: its writer was killed",
			   (unsigned long long)((uint64_t)s.st_size - h.size));
}

void audit_verify_log(int folder, const struct audit_public *p, struct audit_report *ret)
{
	for (unsigned i = 0; i < TRIES; i++) {
		autofree unsigned *files = NULL;
		struct audit_head h = { .file = 0 };
		int lock = log_head(folder, &h);
		struct err e;
		ssize_t all = audit_files(folder, &files, &e);
		size_t n = all < 0 ? 0 : (size_t)all;
		struct verify v;

		verify_init(&v, p, ret);
		close_fd(&lock);
		if (all < 0) {
			report_why(ret, AUDIT_MISMATCH, "%s", e.msg);
			return;
		}
		if (!h.file) {
			report_why(ret, n ? AUDIT_MISMATCH : AUDIT_NOT_FOUND,
				   n ? "the log's head is gone or damaged"
				     : "there is no audit log");
			return;
		}
		if (verify_files(&v, folder, &h, files, n)) {
			verify_end(&v, folder, &h);
			verify_behind(&v, folder);
		}
		free(v.open);
		/* A log that rotated meanwhile may have lost its first file. */
		if (ret->verdict != AUDIT_MISMATCH)
			return;
	}
}

/* ---- one call ------------------------------------------------------------------------------ */

static int find_in(int fd, struct str id, struct audit_line *ret, struct err *e)
{
	AUTO(audit_reader_free) struct audit_reader *r = audit_reader_new(fd, 0, e);
	struct audit_record rec;
	struct str line;
	int rc = r ? 0 : -1;

	while (r && (rc = audit_reader_next(r, &line, &rec, e)) > 0) {
		if (!str_eq(rec.id, id))
			continue;
		memcpy(ret->text, line.p, line.n);
		ret->text[line.n] = '\0';
		ret->n = line.n;
		return 1;
	}
	return rc;
}

int audit_find(int folder, struct str id, struct audit_line *ret, struct err *e)
{
	autofree unsigned *files = NULL;
	ssize_t n = audit_files(folder, &files, e);
	int found = n < 0 ? -1 : 0;

	while (n > 0 && found == 0) {
		char name[AUDIT_FILE_NAME];
		autoclose int fd = -1;

		audit_file_name(files[--n], name);
		fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd >= 0)
			found = find_in(fd, id, ret, e);
	}
	return found;
}

bool audit_is_receipt(struct str text)
{
	const struct json_options o = { .bytes = 4 * AUDIT_LINE_MAX };
	struct err e;
	AUTO(json_free) struct json_doc *d = json_parse(text, &o, &e);

	return json_type(json_root(d)) == JSON_OBJECT;
}

/* The log has the receipt, with its signature or without. */
static void receipt_compare(int folder, const struct audit_record *r, struct audit_report *ret)
{
	struct audit_record bare = *r;
	struct audit_line mine, logs;
	struct err e;
	int found = audit_find(folder, r->id, &logs, &e);

	if (found < 0) {
		report_why(ret, AUDIT_MISMATCH, "the log can't be read: %s", e.msg);
		return;
	}
	if (!found) {
		unsigned *files = NULL;
		AUTO(arena_free) struct arena *a = arena_new(1 << 16);
		struct audit_record first = { .seq = 0 };
		ssize_t n = audit_files(folder, &files, &e);
		AUTO(json_free)
		struct json_doc *d = n > 0 && a ? audit_first(folder, files[0], a, &first, &e)
						: NULL;

		free(files);
		if (n < 0)
			report_why(ret, AUDIT_MISMATCH, "the log can't be read: %s", e.msg);
		else if (!d || r->seq >= first.seq)
			report_why(ret, AUDIT_MISMATCH, "the log has no such record");
		return;
	}
	if (audit_encode(&bare, &mine, &e) == 0 && strcmp(mine.text, logs.text) == 0)
		return;
	bare.key = bare.sig = STR_NONE;
	if (audit_encode(&bare, &mine, &e) < 0 || strcmp(mine.text, logs.text) != 0)
		report_why(ret, AUDIT_MISMATCH, "the log's record is another");
}

void audit_verify_receipt(struct str text, int folder, const struct audit_public *p,
			  struct audit_report *ret)
{
	AUTO(arena_free) struct arena *a = arena_new(1 << 16);
	struct audit_record r;
	struct err e;
	AUTO(json_free) struct json_doc *d = a ? audit_decode(text, a, &r, &e) : NULL;

	*ret = (struct audit_report){ .verdict = AUDIT_VERIFIED };
	if (!d) {
		report_why(ret, AUDIT_MISMATCH, "this is no receipt: %s", a ? e.msg : "no memory");
		return;
	}
	ret->records = 1;
	ret->calls = !r.event.n;
	if (audit_check_sig(p, &r, &e) < 0)
		report_why(ret, AUDIT_MISMATCH, "%s", e.msg);
	else if (folder >= 0)
		receipt_compare(folder, &r, ret);
}
