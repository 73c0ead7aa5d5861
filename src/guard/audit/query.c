#include "guard/audit/query.h"

#include <fcntl.h>

#include "guard/audit/log.h"
#include "guard/audit/read.h"

bool audit_is_of(struct str who, struct str wanted)
{
	if (str_eq(who, wanted))
		return true;
	return wanted.n && who.n > wanted.n && memcmp(who.p, wanted.p, wanted.n) == 0 &&
	       who.p[wanted.n] == '@';
}

bool audit_is_read(const struct audit_record *r)
{
	return str_is(r->effect, "read") && str_is(r->outcome, "ok");
}

static bool query_matches(const struct audit_query *q, const struct audit_record *r)
{
	return !r->event.n && (!q->has_after || r->seq > q->after) &&
	       (!q->who.p || audit_is_of(r->who, q->who)) &&
	       (!q->action.p || str_eq(q->action, r->action)) &&
	       (!q->target.p || str_eq(q->target, r->target)) &&
	       (!q->outcome.p || str_eq(q->outcome, r->outcome)) &&
	       !(q->no_reads && audit_is_read(r));
}

/* The lines of a file that match, in a ring: after is given, the first; else the last. */
struct ring {
	struct audit_line *lines;
	size_t max, n, first; /* first: the oldest, where it is full */
};

static void ring_add(struct ring *g, struct str line)
{
	size_t at = g->n < g->max ? g->n++ : g->first;

	if (g->n == g->max && at == g->first)
		g->first = (g->first + 1) % g->max;
	memcpy(g->lines[at].text, line.p, line.n);
	g->lines[at].text[line.n] = '\0';
	g->lines[at].n = line.n;
}

static int query_file(int folder, unsigned file, const struct audit_query *q, struct ring *g,
		      struct err *e)
{
	AUTO(audit_reader_free) struct audit_reader *r = NULL;
	char name[AUDIT_FILE_NAME];
	autoclose int fd = -1;
	struct audit_record rec;
	struct str line;
	int rc = 0;

	audit_file_name(file, name);
	fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) /* retention has just removed it */
		return errno == ENOENT ? 0 : err_sys(e, errno, "read the audit log");
	r = audit_reader_new(fd, 0, e);
	while (r && (!q->has_after || g->n < g->max) &&
	       (rc = audit_reader_next(r, &line, &rec, e)) > 0) {
		if (query_matches(q, &rec))
			ring_add(g, line);
	}
	return r && rc >= 0 ? 0 : -1;
}

/* Whether a file has nothing but what is before `after`: the next begins before it, too. */
static bool query_is_before(int folder, unsigned next, uint64_t after)
{
	AUTO(arena_free) struct arena *a = arena_new(1 << 16);
	struct audit_record first;
	struct err e;
	AUTO(json_free) struct json_doc *d = a ? audit_first(folder, next, a, &first, &e) : NULL;

	return d && first.seq <= after + 1;
}

static int query_after(int folder, const unsigned *files, size_t n, const struct audit_query *q,
		       struct ring *g, struct err *e)
{
	for (size_t i = 0; i < n && g->n < g->max; i++) {
		if (i + 1 < n && query_is_before(folder, files[i + 1], q->after))
			continue;
		if (query_file(folder, files[i], q, g, e) < 0)
			return -1;
	}
	return 0;
}

/* From the newest file back: what an older one adds stands before the rest. */
static int query_last(int folder, const unsigned *files, size_t n, const struct audit_query *q,
		      struct ring *g, struct err *e)
{
	size_t at = g->max; /* the last ones are put at the end */
	struct audit_line *all = calloc(g->max, sizeof(*all));
	int rc = all ? 0 : err_set(e, ERR_LIMIT, "out of memory");

	while (rc == 0 && n > 0 && at > 0) {
		struct ring one = { g->lines, at, 0, 0 };

		rc = query_file(folder, files[--n], q, &one, e);
		for (size_t i = 0; rc == 0 && i < one.n; i++)
			all[at - one.n + i] = one.lines[(one.first + i) % one.n];
		at -= rc == 0 ? one.n : 0;
	}
	if (rc == 0) {
		g->n = g->max - at;
		memcpy(g->lines, all + at, g->n * sizeof(*all));
	}
	free(all);
	return rc;
}

int audit_search(int folder, const struct audit_query *q, struct audit_found *ret, struct err *e)
{
	autofree unsigned *files = NULL;
	ssize_t all = audit_files(folder, &files, e);
	size_t n = all < 0 ? 0 : (size_t)all;
	struct ring g = { .lines = calloc(q->limit, sizeof(*g.lines)), .max = q->limit };
	int rc;

	if (all >= 0 && !g.lines)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (all < 0) {
		free(g.lines);
		return -1;
	}
	rc = q->has_after ? query_after(folder, files, n, q, &g, e)
			  : query_last(folder, files, n, q, &g, e);
	if (rc < 0) {
		free(g.lines);
		return -1;
	}
	*ret = (struct audit_found){ g.lines, g.n };
	return 0;
}
