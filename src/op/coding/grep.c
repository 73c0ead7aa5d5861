/*
 * coding.grep: no answer of it depends on a secret that is not shown.
 *
 * ripgrep searches the files as they are. Each file of which it prints something is read and looked
 * through for secrets. If there is none, what was printed of it is the result. Otherwise, and of a
 * large file, that is dropped, and ripgrep searches the file once more, by its standard input, with
 * a hole in the place of each secret (op/coding/marks.h): what it finds there is the result.
 *
 *	ripgrep ──records──> grep_file ──read──> none: grep_accept()
 *	                                 └─────> ripgrep, with holes ──JSON──> grep_accept()
 *
 * The first search is no oracle either: what is found beside holes is also found in the file.
 * A match that reaches a hole, or may look at its first byte, does not count.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "call/guard.h"
#include "coding/path.h"
#include "coding/text.h"
#include "hub/sandbox/job.h"
#include "json/document/json.h"
#include "op/coding/coding.h"
#include "op/coding/search.h"

enum {
	HIT_BYTES = 24, /* of an answer, beside path and text */
	COLUMNS_MAX = 1000, /* bytes of a line; longer ones are cut */
	GREP_LIMIT = 250,
	GREP_LIMIT_MAX = 10000,
	CONTEXT_MAX = 20,
	PATTERN_MAX = 4096,
	READS_MAX = 4, /* files that are read at once */
	WHOLE_MAX = 1 << 20, /* bytes of a file that is looked through whole */
	PIECE = 256 << 10, /* of one that is searched again */
	PENDING_MAX = 512 << 10, /* bytes of records that wait */
	GREP_MEMORY = SEARCH_BYTES_MAX + 2 * READS_MAX * WHOLE_MAX + 2 * PENDING_MAX,
	EVENT_MAX = 8 << 20, /* of JSON: a line, and where the matches in it are, */
	EVENT_MATCHES = 1 << 20, /* of which this is looked at, some ten thousand matches */
	EVENT_VALUES = 1 << 20,
};

enum grep_mode { GREP_CONTENT, GREP_FILES, GREP_COUNT };
static const char *const grep_mode_names[] = {
	[GREP_CONTENT] = "content", [GREP_FILES] = "files_with_matches", [GREP_COUNT] = "count"
};

struct grep_request {
	struct str workspace, pattern, path, glob;
	bool case_insensitive, multiline;
	enum grep_mode output_mode;
	uint32_t context, head_limit;
	uint64_t offset;
};
#define Q struct grep_request
static const struct field grep_fields[] = {
	FIELD(Q, pattern, .flags = FIELD_REQUIRED, .min = 1, .max = PATTERN_MAX,
	      .doc = "Regular expression, in Rust's syntax."),
	FIELD(Q, path, .flags = FIELD_PATH, .min = 1, .max = CODING_PATH_ARG_MAX,
	      .doc = "File or folder to search. Default: the workspace."),
	FIELD(Q, glob, .min = 1, .max = GLOB_PATTERN_MAX,
	      .doc = "Only files that match this glob, such as *.c."),
	FIELD(Q, case_insensitive, .doc = "Ignore case."),
	FIELD(Q, multiline, .doc = "A match may span lines, and . matches line ends."),
	FIELD_ENUM(Q, output_mode, grep_mode_names, .def = DEFAULT_ENUM(GREP_CONTENT),
		   .doc = "Show matching lines, only file names, or the number of matches in each "
			  "file."),
	FIELD(Q, context, .max = CONTEXT_MAX, .doc = "Lines to show before and after each match."),
	FIELD(Q, head_limit, .min = 1, .max = GREP_LIMIT_MAX, .def = DEFAULT_INT(GREP_LIMIT),
	      .doc = "Maximum number of lines or files to show."),
	FIELD(Q, offset, .max = INT64_MAX, .doc = "Number of results to skip."),
	CODING_WORKSPACE_ROW(Q),
};
#undef Q
static const struct field_table grep_table = FIELD_TABLE(struct grep_request, grep_fields);

/* ---- what waits ---------------------------------------------------------------------------- */

enum grep_state {
	GREP_NEW,
	GREP_READING,
	GREP_CLEAN,
	GREP_AGAIN, /* it has secrets, or is large: to be searched again */
	GREP_LOST, /* it is left out */
};

/* A file is looked through for secrets. */
struct grep_look {
	struct aside_work aside; /* first: the two are cast */
	struct grep *grep;
	struct grep_file *file; /* NULL: the one that was asked for by itself */
	struct buf bytes;
	int has;
};

/* A file of which ripgrep has printed something. */
struct grep_file {
	struct grep *grep;
	struct grep_look look;
	struct grep_file *next;
	enum grep_state state;
	bool whole; /* nothing more is printed of it */
	bool over; /* not all that was printed is kept */
	bool again; /* it was searched again */
	struct buf records; /* each behind its length */
	struct str path; /* as ripgrep prints it */
	size_t n;
	char name[]; /* absolute */
};

struct grep {
	struct search s; /* first: the two are cast */
	struct grep_look look;
	struct grep_file *files, *last, *unread; /* the first that is not read */
	size_t pending; /* bytes of them */
	unsigned reads;
	bool ended; /* of s: nothing more is printed */
	bool one; /* s searches one file, which has no secrets */
	bool pumping;
	int exit_code;
	struct err err; /* it has failed */
	/* The search of a file with holes. */
	struct search view;
	struct grep_file *of; /* NULL: there is none */
	bool feeding;
	bool binary; /* as ripgrep does, nothing is shown from there on, but told */
	bool looks; /* the pattern may look at what stands beside a match */
	uint64_t fed; /* bytes of the file */
	struct holes holes;
	uint64_t count; /* of matches */
	uint64_t beside; /* lines up to this one are context of a match */
	struct buf before; /* lines that may be: records, as of a file */
	unsigned n_before;
};

static const struct grep_request *grep_request(const struct grep *g)
{
	return call_request(g->s.w.call);
}

static int record_put(struct buf *to, struct str record)
{
	struct err e;

	return buf_add(to, (const char *)&record.n, sizeof(record.n), &e) < 0 ||
			       buf_add(to, record.p, record.n, &e) < 0
		     ? -1
		     : 0;
}

static bool record_next(struct str *rest, struct str *ret)
{
	if (rest->n < sizeof(ret->n))
		return false;
	memcpy(&ret->n, rest->p, sizeof(ret->n));
	ret->p = rest->p + sizeof(ret->n);
	rest->n -= sizeof(ret->n) + ret->n;
	rest->p = ret->p + ret->n;
	return true;
}

static struct grep_file *grep_file_new(struct grep *g, struct str path, enum grep_state state)
{
	static const char top[] = CODING_ROOT "/";
	size_t before = str_starts(path, "/") ? 0 : sizeof(top) - 1;
	struct grep_file *f = calloc(1, sizeof(*f) + before + path.n + 1);

	if (!f)
		return err_set(&g->err, ERR_LIMIT, "out of memory"), NULL;
	memcpy(f->name, top, before);
	memcpy(f->name + before, path.p, path.n);
	f->grep = g;
	f->state = state;
	f->path = (struct str){ f->name + before, path.n };
	f->n = before + path.n;
	f->records = BUF_INIT(2 * PENDING_MAX);
	if (g->last)
		g->last->next = f;
	else
		g->files = f;
	g->last = f;
	if (state == GREP_NEW && !g->unread)
		g->unread = f;
	g->pending += sizeof(*f) + f->n;
	return f;
}

static void grep_file_empty(struct grep_file *f)
{
	f->grep->pending -= f->records.n;
	buf_fini(&f->records);
	f->records = BUF_INIT(0);
}

/* The first of them. */
static void grep_file_drop(struct grep *g)
{
	struct grep_file *f = g->files;

	grep_file_empty(f);
	g->pending -= sizeof(*f) + f->n;
	g->files = f->next;
	if (!g->files)
		g->last = NULL;
	free(f);
}

static void grep_drop(struct search *s)
{
	struct grep *g = (struct grep *)s;

	while (g->files)
		grep_file_drop(g);
	buf_fini(&g->before);
	buf_fini(&g->view.record);
	buf_fini(&g->view.complaint);
}

/* ---- what is found ------------------------------------------------------------------------- */

static void grep_accept(struct grep *g, struct search_hit hit)
{
	const struct grep_request *q = grep_request(g);
	struct search *s = &g->s;

	if (s->enough || (!hit.beside && s->found++ < q->offset))
		return;
	if (hit.beside && q->offset && s->found <= q->offset)
		return; /* beside one that is passed over */
	s->bytes += hit.path.n + hit.text.n + HIT_BYTES;
	if (s->found > q->offset + q->head_limit || s->n == s->max || s->bytes > SEARCH_BYTES_MAX ||
	    !search_own(&hit)) {
		s->more = true;
		search_stop(s);
		return;
	}
	s->matches += !hit.beside;
	hit.nth = s->n;
	s->hits[s->n++] = hit;
}

/* "LINE:TEXT", of context "LINE-TEXT"; nothing, or "COUNT" */
static struct search_hit grep_parse(const struct grep *g, struct str path, struct str record)
{
	struct search_hit hit = { .path = path };
	const char *p = record.p, *end = record.p + record.n;

	for (; p < end && *p >= '0' && *p <= '9' && hit.line < INT64_MAX / 20; p++)
		hit.line = hit.line * 10 + (unsigned)(*p - '0');
	hit.beside = grep_request(g)->output_mode == GREP_CONTENT && p < end && *p == '-';
	p += p < end;
	hit.text = (struct str){ p, (size_t)(end - p) };
	return hit;
}

/* All that was printed of a file. What is not kept is more than an answer has, if none of it is
 * passed over. */
static void grep_accept_file(struct grep *g, struct grep_file *f)
{
	struct str rest = buf_str(&f->records), record;

	while (record_next(&rest, &record))
		grep_accept(g, grep_parse(g, f->path, record));
	if (f->over && !g->s.enough) {
		g->s.more = true;
		search_stop(&g->s);
	}
}

static void grep_pump(struct grep *g);

/* A name with a secret matches no glob, whatever the secret is. */
static enum grep_state grep_state_of(const struct grep *g, struct str path)
{
	if (grep_request(g)->glob.n && call_redact(g->s.w.call, path).p != path.p)
		return GREP_LOST;
	return g->one ? GREP_CLEAN : GREP_NEW;
}

/* "PATH NUL RECORD", or a path alone */
static void grep_take(struct search *s, struct str record)
{
	struct grep *g = (struct grep *)s;
	const char *nul = memchr(record.p, '\0', record.n);
	struct str path = nul ? search_path((struct str){ record.p, (size_t)(nul - record.p) })
			      : search_tidy(record);
	struct grep_file *f = g->last;

	record = nul ? (struct str){ nul + 1, record.n - (size_t)(nul + 1 - record.p) } : STR_NONE;
	if (!f || f->whole || !str_eq(f->path, path)) {
		if (f)
			f->whole = true;
		f = grep_file_new(g, path, grep_state_of(g, path));
	}
	if (f && f->state < GREP_AGAIN) {
		size_t n = f->records.n;

		f->over |= n >= PENDING_MAX || record_put(&f->records, record) < 0;
		g->pending += f->records.n - n;
	}
	grep_pump(g);
}

/* ---- the search of a file with holes ------------------------------------------------------- */

static struct grep *view_of(struct search *s)
{
	return (struct grep *)((char *)s - offsetof(struct grep, view));
}

static void view_accept(struct grep *g, uint64_t line, bool beside, struct str text)
{
	autobuf struct buf to = BUF_INIT(4 * COLUMNS_MAX);
	struct search_hit hit = { .path = g->of->path, .line = line, .beside = beside };
	struct err e;
	int all = holes_show(&g->holes, text, COLUMNS_MAX, &to, &e);

	if (all < 0 || (!all && buf_addf(&to, &e, " [... omitted end of long line]") < 0))
		g->err = e;
	hit.text = buf_str(&to);
	grep_accept(g, hit);
}

/* Lines in their order, of which some match, as ripgrep prints them with their context. */
static void view_line(struct grep *g, uint64_t line, struct str text, bool matches)
{
	unsigned context = grep_request(g)->context;
	struct str rest = buf_str(&g->before), was;

	if (matches) {
		for (uint64_t at = line - g->n_before; record_next(&rest, &was); at++)
			view_accept(g, at, true, was);
		view_accept(g, line, false, text);
		g->beside = line + context;
	} else if (line <= g->beside) {
		view_accept(g, line, true, text);
	} else if (context > 0) {
		if (g->n_before == context && record_next(&rest, &was)) {
			buf_drop(&g->before, g->before.n - rest.n);
			g->n_before--;
		}
		g->n_before += record_put(&g->before, text) == 0;
		return;
	}
	g->before.n = g->n_before = 0;
}

/* Whether a match in text counts: no byte of it is of a hole, nor does it look at one. */
static bool view_counts(const struct grep *g, struct str text, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		if (holes_at(&g->holes, (struct str){ text.p + i, text.n - i }))
			return false;
	}
	if (!g->looks)
		return true;
	return !(from >= HOLE_BYTES &&
		 holes_at(&g->holes, (struct str){ text.p + from - HOLE_BYTES, HOLE_BYTES })) &&
	       !holes_at(&g->holes, (struct str){ text.p + to, text.n - to });
}

/* The lines of an event: those that a match touches which counts, and the others. */
static void view_lines(struct grep *g, uint64_t line, struct str text,
		       const struct json_val *submatches)
{
	struct json_iter it = json_iter(submatches);
	bool more = json_next(&it);
	size_t at = 0;

	for (; at < text.n && !g->s.enough; line++) {
		const char *end = memchr(text.p + at, '\n', text.n - at);
		size_t stop = end ? (size_t)(end - text.p) : text.n;
		bool matches = false;
		uint64_t from, to;

		for (; more; more = json_next(&it)) {
			if (!json_uint64(json_get(it.val, "start"), &from) ||
			    !json_uint64(json_get(it.val, "end"), &to) || from > to || to > text.n)
				continue;
			if (from > stop)
				break;
			if (view_counts(g, text, from, to)) {
				matches = true;
				g->count += from >= at;
			}
			if (to > stop + 1)
				break; /* it goes on in the next line */
		}
		if (grep_request(g)->output_mode == GREP_CONTENT && !g->binary)
			view_line(g, line, (struct str){ text.p + at, stop - at }, matches);
		at = stop + 1;
	}
}

/* An event with too many matches, or whose end is lost, keeps those that are whole. The
 * matches stand at its end, and quotes in the line are escaped. */
static struct str view_cut(struct grep *g, struct str record)
{
	static const char first[] = ",\"submatches\":[", next[] = ",{\"match\":", end[] = "]}}";
	const char *matches = memmem(record.p, record.n, first, sizeof(first) - 1);
	size_t from = matches ? (size_t)(matches - record.p) : record.n;
	size_t at = from + EVENT_MATCHES;

	if (!g->view.overlong && record.n <= at)
		return record;
	at = record.n < at ? record.n : at;
	while (at > from && !str_starts((struct str){ record.p + at, record.n - at }, next))
		at--;
	if (at == from && !g->view.overlong)
		return record; /* a match of many lines */
	search_complain(&g->s, g->of->path);
	if (at == from) {
		search_complain(&g->s, STR_LIT(": a line is too long to be searched\n"));
		return STR_NONE;
	}
	search_complain(&g->s, STR_LIT(": a line has too many matches to count them all\n"));
	memcpy(g->view.record.p + at, end, sizeof(end) - 1);
	return (struct str){ record.p, at + sizeof(end) - 1 };
}

/* An event of ripgrep's JSON. */
static void view_take(struct search *s, struct str record)
{
	const struct json_options options = { .bytes = EVENT_MAX, .values = EVENT_VALUES };
	struct grep *g = view_of(s);
	struct err e = ERR_INIT;
	AUTO(json_free) struct json_doc *doc = json_parse(view_cut(g, record), &options, &e);
	const struct json_val *data = json_get(json_root(doc), "data");
	const struct json_val *lines = json_get(data, "lines");
	struct str text = json_str(json_get(lines, "text"));
	autobuf struct buf bytes = BUF_INIT(EVENT_MAX);
	uint64_t line = 0;

	if (!text.p && base64_decode(&bytes, json_str(json_get(lines, "bytes")), &e) == 0)
		text = buf_str(&bytes);
	if (lines && json_uint64(json_get(data, "line_number"), &line))
		view_lines(g, line, text, json_get(data, "submatches"));
	if (g->s.enough || g->err.code ||
	    (g->count > 0 && (g->binary || grep_request(g)->output_mode == GREP_FILES)))
		search_stop(s);
}

static void view_end(struct search *v, int exit_code)
{
	struct grep *g = view_of(v);
	enum grep_mode mode = grep_request(g)->output_mode;

	g->exit_code = exit_code == 2 ? 2 : g->exit_code;
	g->s.timed_out |= v->timed_out;
	search_complain(&g->s, buf_str(&v->complaint));
	if (mode != GREP_CONTENT && g->count > 0) {
		grep_accept(g, (struct search_hit){ .path = g->of->path, .line = g->count });
	} else if (g->binary && g->count > 0) {
		search_complain(&g->s, g->of->path);
		search_complain(&g->s, STR_LIT(": binary file matches\n"));
	}
	g->of->again = true;
	g->of = NULL;
	grep_pump(g);
}

static void view_failed(struct search *v, const struct err *e)
{
	struct grep *g = view_of(v);

	g->err = *e;
	g->of = NULL;
	grep_pump(g);
}

static void view_feed(void *arg);

/* With what redaction looks at before and behind, a piece is seen as it is in the whole file. */
static void view_on_piece(void *arg, struct str bytes, const struct file_stat *st,
			  const struct err *err)
{
	struct grep *g = arg;
	struct exec *x = g->view.exec;
	size_t around = redactor_around(call_guard(g->s.w.call)->redactor);
	size_t before = g->fed < around ? (size_t)g->fed : around;
	struct redact_part part = { .before = { bytes.p, before } };
	autobuf struct buf to = BUF_INIT(8 * PIECE);
	struct err e = ERR_INIT;

	g->feeding = false;
	if (x && !err && bytes.n > before) {
		size_t rest = bytes.n - before, n = rest < PIECE ? rest : PIECE;

		part.text = (struct str){ bytes.p + before, n };
		part.after = (struct str){ part.text.p + n, rest - n };
		g->fed += n;
		g->binary |= memchr(part.text.p, '\0', n) != NULL;
		if (holes_make(&g->holes, call_guard(g->s.w.call)->redactor, &part, &to, &e) < 0 ||
		    exec_write(x, to.p, to.n, &e) < 0) {
			g->err = e;
			search_stop(&g->view);
		} else if (exec_waiting(x) == 0) {
			view_feed(g);
		} /* else when it has taken that */
	} else if (x) {
		exec_close_stdin(x);
	}
	grep_pump(g);
}

static void view_feed(void *arg)
{
	struct grep *g = arg;
	size_t around = redactor_around(call_guard(g->s.w.call)->redactor);
	uint64_t from = g->fed < around ? 0 : g->fed - around;

	if (g->feeding || !g->of || !g->view.exec)
		return;
	g->feeding = true;
	file_read_start(g->s.w.sandbox, (struct str){ g->of->name, g->of->n }, from,
			PIECE + 2 * around, view_on_piece, g);
}

static void grep_run(struct grep *g, struct search *s, struct str path);

/* Starts at the first file. */
static void view_start(struct grep *g)
{
	buf_fini(&g->view.record);
	buf_fini(&g->view.complaint);
	g->view = (struct search){ .w = g->s.w,
				   .until_ns = g->s.until_ns,
				   .record = BUF_INIT(EVENT_MAX),
				   .complaint = BUF_INIT(SEARCH_COMPLAINT_MAX),
				   .take = view_take,
				   .cuts = true,
				   .end = view_end,
				   .failed = view_failed,
				   .form = SEARCH_LINES,
				   .reads = true };
	g->of = g->files;
	g->binary = false;
	g->fed = g->count = g->beside = 0;
	g->before.n = g->n_before = 0;
	g->holes.n = 0;
	grep_file_empty(g->of);
	grep_run(g, &g->view, STR_LIT("-"));
	if (g->view.exec)
		exec_on_drain(g->view.exec, view_feed, g);
	view_feed(g);
}

/* ---- one file after the other -------------------------------------------------------------- */

static void grep_root_looked(struct grep *g, enum grep_state state);

static void look_run(struct aside_work *w)
{
	struct grep_look *k = (struct grep_look *)w;
	struct err e;

	k->has = marks_any(k->aside.redactor, buf_str(&k->bytes), &e);
}

static void grep_looked(struct grep_look *k, enum grep_state state)
{
	struct grep *g = k->grep;
	struct grep_file *f = k->file;

	buf_fini(&k->bytes);
	g->reads--;
	if (f) {
		f->state = state;
		grep_pump(g);
	} else {
		grep_root_looked(g, state);
	}
}

static void look_then(struct aside_work *w)
{
	struct grep_look *k = (struct grep_look *)w;

	if (k->has < 0)
		err_set(&k->grep->err, ERR_LIMIT, "no memory to look for secrets in a file");
	grep_looked(k, k->has ? GREP_AGAIN : GREP_CLEAN);
}

/* The content of a file that was read, up to one byte more than WHOLE_MAX. */
static void grep_on_read(void *arg, struct str bytes, const struct file_stat *st,
			 const struct err *err)
{
	struct grep_look *k = arg;
	struct grep *g = k->grep;
	struct err e;

	if (err && !k->file) {
		grep_looked(k, GREP_NEW);
	} else if (err || str_starts(bytes, "\xff\xfe") || str_starts(bytes, "\xfe\xff")) {
		/* Without a content: what can be told of it. */
		search_complain(&k->grep->s, k->file ? k->file->path : g->s.said);
		search_complain(&k->grep->s, STR_LIT(": "));
		search_complain(&k->grep->s,
				str_of(err ? err->msg : "not searched, since it is UTF-16"));
		search_complain(&k->grep->s, STR_LIT("\n"));
		grep_looked(k, GREP_LOST);
	} else if (bytes.n > WHOLE_MAX) {
		grep_looked(k, GREP_AGAIN);
	} else if (buf_add(&k->bytes, bytes.p, bytes.n, &e) < 0 ||
		   aside_work_start(&k->aside, call_loop(g->s.w.call),
				    call_guard(g->s.w.call)->redactor, bytes.n, &e) < 0) {
		g->err = e;
		grep_looked(k, GREP_LOST);
	}
}

static void grep_look_start(struct grep_look *k, struct grep *g, struct grep_file *f,
			    struct str path)
{
	k->aside.run = look_run;
	k->aside.then = look_then;
	k->grep = g;
	k->file = f;
	k->bytes = BUF_INIT(WHOLE_MAX);
	g->reads++;
	file_read_start(g->s.w.sandbox, path, 0, WHOLE_MAX + 1, grep_on_read, k);
}

/* Whether the first file is done with. Its results stand before those of the others. */
static bool grep_step(struct grep *g, struct grep_file *f)
{
	switch (f->state) {
	case GREP_NEW:
	case GREP_READING:
		return false;
	case GREP_LOST:
		return f->whole;
	case GREP_CLEAN:
		if (f->over && grep_request(g)->offset > 0) {
			f->state = GREP_AGAIN; /* what is passed over may be all that is kept */
			return grep_step(g, f);
		}
		if (f->whole || f->over)
			grep_accept_file(g, f);
		return f->whole;
	case GREP_AGAIN:
		if (!f->again && !g->of)
			view_start(g);
		return f->whole && f->again;
	}
	return false;
}

static void grep_finish(struct grep *g);

static bool grep_is_over(const struct grep *g)
{
	return g->err.code || g->s.enough || g->s.timed_out;
}

static void grep_pump(struct grep *g)
{
	if (g->pumping)
		return;
	g->pumping = true;
	while (!grep_is_over(g) && g->files && grep_step(g, g->files))
		grep_file_drop(g);
	if (grep_is_over(g)) {
		search_hold(&g->s, false);
		if (g->s.exec)
			search_stop(&g->s);
		search_stop(&g->view);
	} else {
		while (g->unread && g->reads < READS_MAX) {
			struct grep_file *f = g->unread;

			g->unread = f->next;
			f->state = GREP_READING;
			grep_look_start(&f->look, g, f, (struct str){ f->name, f->n });
		}
		search_hold(&g->s, g->pending > PENDING_MAX);
	}
	g->pumping = false;
	if (g->ended && !g->of && !g->feeding && g->reads == 0 && (!g->files || grep_is_over(g)))
		grep_finish(g);
}

/* ---- its beginning and end ----------------------------------------------------------------- */

/* The program searches files beside each other; of each the lines come together. */
static int grep_order(const void *a, const void *b)
{
	const struct search_hit *x = a, *y = b;
	int order = str_cmp(x->path, y->path);

	return order ? order : (x->nth > y->nth) - (x->nth < y->nth);
}

static int grep_show(const struct search *s, const struct search_hit *hit, struct buf *to,
		     struct err *e)
{
	const struct grep_request *q = call_request(s->w.call);
	char mark = hit->beside ? '-' : ':';

	if (search_say(hit->path, to, e) < 0)
		return -1;
	if (q->output_mode == GREP_FILES)
		return buf_add(to, "\n", 1, e);
	if (buf_addf(to, e, "%c%" PRIu64, mark, hit->line) < 0)
		return -1;
	if (q->output_mode == GREP_COUNT)
		return buf_add(to, "\n", 1, e);
	return buf_add(to, &mark, 1, e) < 0 || text_clean(hit->text, to, e) < 0 ||
			       buf_add(to, "\n", 1, e) < 0
		     ? -1
		     : 0;
}

static int grep_show_all(struct search *s, struct buf *to, struct err *e)
{
	qsort(s->hits, s->n, sizeof(*s->hits), grep_order);
	for (size_t i = 0; i < s->n; i++) {
		if (grep_show(s, &s->hits[i], to, e) < 0)
			return -1;
	}
	return 0;
}

static void grep_finish(struct grep *g)
{
	struct search *s = &g->s;
	autobuf struct buf text = BUF_INIT(4 * SEARCH_BYTES_MAX);
	struct coding_found r = { .shown = s->matches,
				  .total = s->found,
				  .has_total = !s->enough && !s->timed_out,
				  .more = s->more };
	struct err *e = &g->err;

	s->failed = NULL;
	/* A line without a path is a notice of a binary file. */
	if (g->one && !s->enough && !s->named)
		search_complain(s, buf_str(&s->record));
	/* 2: it did not search, or not all. */
	if (!e->code && g->exit_code == 2 && s->found == 0 && !s->enough)
		err_set(e, ERR_INVALID, "rg: %.*s", STR_CUT(buf_str(&s->complaint), 220));
	if (e->code || grep_show_all(s, &text, e) < 0) {
		const struct err why = *e;

		search_fail(s, &why);
	} else {
		search_answer(s, &text, &r);
	}
}

static void grep_end(struct search *s, int exit_code)
{
	struct grep *g = (struct grep *)s;

	g->exit_code = exit_code == 2 ? 2 : g->exit_code;
	g->ended = true;
	if (g->last)
		g->last->whole = true;
	grep_pump(g);
}

static void grep_failed(struct search *s, const struct err *e)
{
	struct grep *g = (struct grep *)s;

	g->err = *e;
	g->ended = true;
	grep_pump(g);
}

static void grep_on_cancel(void *data)
{
	struct grep *g = data;

	err_set(&g->err, ERR_CANCELLED, "the search was cancelled");
	search_stop(&g->s);
	search_stop(&g->view);
}

/* Arguments for what is printed. Returns how many. */
static size_t grep_print_arguments(struct grep *g, const struct search *s, struct str *argv)
{
	const struct grep_request *q = grep_request(g);
	size_t n = 0;

	if (s == &g->view) {
		argv[n++] = STR_LIT("--json");
	} else if (q->output_mode == GREP_FILES) {
		argv[n++] = STR_LIT("--files-with-matches");
	} else if (q->output_mode == GREP_COUNT) {
		argv[n++] = STR_LIT("--count-matches");
	} else {
		argv[n++] = STR_LIT("--line-number");
		argv[n++] = STR_LIT("--no-context-separator");
		argv[n++] = STR_LIT("--max-columns-preview");
		argv[n++] = STR_LIT("--max-columns=1000");
	}
	return n;
}

/* Starts ripgrep, which searches path; "-": its standard input. */
static void grep_run(struct grep *g, struct search *s, struct str path)
{
	const struct grep_request *q = grep_request(g);
	struct arena *a = call_arena(s->w.call);
	char context[32];
	char *glob = NULL;
	struct err e = ERR_INIT;
	struct str argv[32] = {
		STR_LIT("rg"),	     STR_LIT("--no-config"),	  STR_LIT("--color=never"),
		STR_LIT("--null"),   STR_LIT("--with-filename"),  STR_LIT("--no-heading"),
		STR_LIT("--hidden"), STR_LIT("--no-require-git"), STR_LIT("--glob=!.git")
	};
	size_t n = 9;

	if (q->glob.n && !(glob = arena_printf(a, &e, "--glob=%.*s", STR_ARG(q->glob)))) {
		search_fail(s, &e);
		return;
	}
	n += grep_print_arguments(g, s, argv + n);
	snprintf(context, sizeof(context), "--context=%u", q->context);
	if (q->output_mode == GREP_CONTENT)
		argv[n++] = str_of(context);
	if (q->case_insensitive)
		argv[n++] = STR_LIT("--ignore-case");
	if (q->multiline) {
		argv[n++] = STR_LIT("--multiline");
		argv[n++] = STR_LIT("--multiline-dotall");
	}
	if (q->offset) /* else its order changes from call to call */
		argv[n++] = STR_LIT("--sort=path");
	if (glob)
		argv[n++] = str_of(glob);
	argv[n++] = STR_LIT("--regexp");
	argv[n++] = q->pattern;
	argv[n++] = STR_LIT("--");
	argv[n++] = path;
	search_start(s, STR_LIT("rg"), argv, n);
	call_on_cancel(s->w.call, grep_on_cancel, g);
}

/* A file that was asked for by itself is looked at first. */
static void grep_root_looked(struct grep *g, enum grep_state state)
{
	g->one = state == GREP_CLEAN;
	if (state == GREP_AGAIN || state == GREP_LOST || g->err.code) {
		struct grep_file *f = grep_file_new(g, g->s.said, state);

		g->ended = true;
		if (f)
			f->whole = true;
		grep_pump(g);
	} else {
		grep_run(g, &g->s, g->s.said);
	}
}

static void grep_entered(struct coding_work *w)
{
	struct grep *g = (struct grep *)w;
	const struct grep_request *q = grep_request(g);
	struct search *s = &g->s;
	struct err e = ERR_INIT;

	s->form = q->output_mode == GREP_FILES ? SEARCH_NULS : SEARCH_PATHS;
	s->take = grep_take;
	s->end = grep_end;
	s->drop = grep_drop;
	g->before = BUF_INIT(EVENT_MAX);
	/* As \b does. Of what is escaped itself it only seems so. */
	for (size_t i = 1; i < q->pattern.n; i++)
		g->looks |= q->pattern.p[i - 1] == '\\' && memchr("bB<>", q->pattern.p[i], 4);
	if (search_ready(s, &e) < 0 || call_reserve(w->call, GREP_MEMORY, &e) < 0) {
		search_fail(s, &e);
		return;
	}
	s->failed = grep_failed;
	call_on_cancel(w->call, grep_on_cancel, g);
	grep_look_start(&g->look, g, NULL, s->root);
}

static void coding_grep_run(struct call *c, const void *request)
{
	const struct grep_request *q = request;
	struct err e = ERR_INIT;
	struct grep *g = arena_alloc(call_arena(c), sizeof(*g), &e);

	if (!g)
		call_fail(c, &e);
	else if (search_begin(&g->s, c, q->path, SEARCH_BYTES_MAX / HIT_BYTES))
		coding_enter(&g->s.w, c, q->workspace, grep_entered);
}

const struct op coding_grep_op = {
	.action = "coding.grep",
	.doc = "Searches files of the workspace by a regular expression.",
	.effect = OP_READ,
	.request = &grep_table,
	.expand = coding_expand,
	.path = coding_spell_path,
	.result = &coding_found_table,
	.run = coding_grep_run,
};
