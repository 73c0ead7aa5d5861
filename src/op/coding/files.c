/*
 * coding.read, coding.write and coding.edit. A file is read whole up to CODING_FILE_MAX, and then
 * its digest is known; of a larger one pieces are read until the wanted lines were found. What is
 * made of its content is made beside the loop where that is long (call/aside.h).
 *
 *	write, edit: turn → read → compare with what is known → write beside it → rename
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/hash.h"
#include "call/aside.h"
#include "call/guard.h"
#include "coding/path.h"
#include "coding/text.h"
#include "op/coding/coding.h"

enum {
	CODING_FILE_MAX = 4 << 20, /* bytes of a file that is edited or replaced */
	FILE_SMALL = 256 << 10, /* that are read at first, as most files have fewer */
	PIECE = 1 << 20, /* of a larger one */
	FRESH_LINES = 80, /* that a failure shows of the file as it is now */
	FRESH_MAX = 16 << 10, /* bytes */
	FRESH_BEFORE = 20, /* lines before the place */
	MODE_NEW = 0644,
	SHOWN_MAX = 64 << 20, /* bytes of a file with marks in the place of its secrets */
};

/* A call of read, write or edit; in its arena. */
struct file_work {
	struct coding_work w; /* first: the two are cast */
	struct str path, said; /* absolute; for people */
	size_t want; /* bytes of the file to read whole */
	/* Takes the content; err where there is none. */
	void (*with)(struct file_work *f, struct str bytes, const struct file_stat *st,
		     const struct err *err);
	/* Work beside the loop, and how it ended. */
	struct aside_work aside;
	int (*work)(struct file_work *f, struct err *e);
	struct err failed;
	/* The file as it is, up to CODING_FILE_MAX, and as the conversation knew it. */
	struct buf old;
	char known[HASH_HEX + 1];
	struct marks known_marks;
	/* The file as the conversation sees it. */
	struct marks marks;
	struct buf shown;
	struct text_span *spans; /* of the marks in it */
	struct buf text; /* lines of it, numbered */
	uint64_t bad; /* bytes of them that are no UTF-8 */
	uint64_t size;
	/* The content to write, and its digest. */
	struct buf bytes;
	char digest[HASH_HEX + 1];
	uint64_t replaced;
	bool is_new, stale;
	/* For coding.read alone. */
	struct text_window window;
	uint64_t offset;
	bool large, whole; /* not to be kept; it was read to its end */
};

static struct file_work *file_of(struct coding_work *w)
{
	return (struct file_work *)w;
}

static void file_free(struct file_work *f)
{
	buf_fini(&f->bytes);
	buf_fini(&f->old);
	buf_fini(&f->shown);
	buf_fini(&f->text);
	free(f->spans);
	f->spans = NULL;
	marks_fini(&f->marks);
	marks_fini(&f->known_marks);
	text_window_fini(&f->window);
}

static void file_fail(struct file_work *f, const struct err *e)
{
	file_free(f);
	coding_fail(&f->w, e);
}

/* Begins a call about a file; then() follows in its place. */
static void file_enter(struct call *c, struct str workspace, struct str path,
		       void (*then)(struct coding_work *w))
{
	autobuf struct buf whole = BUF_INIT(0), said = BUF_INIT(CODING_PATH_ARG_MAX + 1);
	struct err e = ERR_INIT;
	struct file_work *f = arena_alloc(call_arena(c), sizeof(*f), &e);
	char *copy;

	call_about(c)->path = path;
	if (!f || path_read(STR_LIT(CODING_ROOT), path, CODING_PATH_MAX, &whole, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	copy = arena_dup(call_arena(c), buf_str(&whole), &e);
	f->path = (struct str){ copy, whole.n };
	if (!copy || path_say(STR_LIT(CODING_ROOT), f->path, &said, &e) < 0 ||
	    !(copy = arena_dup(call_arena(c), buf_str(&said), &e))) {
		call_fail(c, &e);
		return;
	}
	f->said = (struct str){ copy, said.n };
	coding_enter(&f->w, c, workspace, then);
}

/* ---- what is there ------------------------------------------------------------------------- */

static void file_load(struct file_work *f);

static void file_on_read(void *arg, struct str bytes, const struct file_stat *st,
			 const struct err *err)
{
	struct file_work *f = arg;

	if (!err && bytes.n > f->want && f->want < CODING_FILE_MAX) {
		f->want = CODING_FILE_MAX;
		file_load(f);
	} else {
		f->with(f, bytes, st, err);
	}
}

/* Reads the file, and one byte more than f->want of a larger one, for f->with(). Memory for it and
 * for what is made of it is what all calls together may have. */
static void file_load(struct file_work *f)
{
	struct err e = ERR_INIT;

	if (call_reserve(f->w.call, 5 * f->want, &e) < 0)
		file_fail(f, &e);
	else
		file_read_start(f->w.sandbox, f->path, 0, f->want + 1, file_on_read, f);
}

/* Keeps the content, and what the conversation knows of it. */
static int file_keep(struct file_work *f, struct str bytes, struct err *e)
{
	const char *known = coding_known(&f->w, f->path);
	struct marks *marks = known ? coding_marks(&f->w, f->path) : NULL;

	f->old = BUF_INIT(CODING_FILE_MAX);
	if (buf_add(&f->old, bytes.p, bytes.n, e) < 0)
		return -1;
	snprintf(f->known, sizeof(f->known), "%s", known ? known : "");
	return marks ? marks_share(marks, &f->known_marks, e) : 0;
}

static struct file_work *file_of_aside(struct aside_work *w)
{
	return (struct file_work *)(void *)((char *)w - offsetof(struct file_work, aside));
}

static void file_run(struct aside_work *w)
{
	struct file_work *f = file_of_aside(w);

	if (f->work(f, &f->failed) == 0)
		f->failed = ERR_INIT;
}

/* Calls work(), then then(), else the call has failed. */
static void file_aside(struct file_work *f, size_t bytes,
		       int (*work)(struct file_work *f, struct err *e),
		       void (*then)(struct aside_work *w))
{
	struct err e = ERR_INIT;

	f->work = work;
	f->aside.run = file_run;
	f->aside.then = then;
	if (aside_work_start(&f->aside, call_loop(f->w.call), call_guard(f->w.call)->redactor,
			     bytes, &e) < 0)
		file_fail(f, &e);
}

/* ---- what is shown ------------------------------------------------------------------------- */

/* Makes the digest of what was read, f->marks, f->shown and f->spans. */
static int file_mark(struct file_work *f, struct err *e)
{
	struct str bytes = buf_str(&f->old);
	bool same;

	if (hash_of(bytes, f->digest, e) < 0)
		return -1;
	same = strcmp(f->known, f->digest) == 0;
	f->shown = BUF_INIT(SHOWN_MAX);
	if (marks_find(&f->marks, f->aside.redactor, bytes, same ? &f->known_marks : NULL, e) < 0)
		return -1;
	f->spans = calloc(f->marks.n + 1, sizeof(*f->spans));
	if (!f->spans)
		return err_set(e, ERR_LIMIT, "out of memory");
	return marks_show(&f->marks, bytes, &f->shown, f->spans, e);
}

/* Makes f->text: the lines of the window, numbered. raw: secrets are still in them. */
static int file_number(struct file_work *f, bool raw, struct err *e)
{
	const struct redact_part part = { .before = buf_str(&f->window.before),
					  .text = buf_str(&f->window.text),
					  .after = buf_str(&f->window.after) };
	autobuf struct buf said = BUF_INIT(SHOWN_MAX);

	f->text = BUF_INIT(SHOWN_MAX);
	if (raw && marks_say(f->aside.redactor, &part, &said, e) < 0)
		return -1;
	return text_number(raw ? buf_str(&said) : part.text, f->window.first, f->window.cut,
			   &f->text, &f->bad, e);
}

/* f->text in the call's arena. */
static int file_show(struct file_work *f, struct str *ret, struct err *e)
{
	char *copy = arena_dup(call_arena(f->w.call), buf_str(&f->text), e);

	*ret = (struct str){ copy, f->text.n };
	return copy ? 0 : -1;
}

/* ---- coding.read --------------------------------------------------------------------------- */

struct read_request {
	struct str workspace, path;
	uint64_t offset;
	uint32_t limit;
};
#define Q struct read_request
static const struct field read_fields[] = {
	FIELD(Q, path, .flags = FIELD_REQUIRED | FIELD_PATH, .min = 1, .max = CODING_PATH_ARG_MAX,
	      .doc = "Relative to the workspace, absolute in the sandbox, or a file URI."),
	FIELD(Q, offset, .min = 1, .max = INT64_MAX, .def = DEFAULT_INT(1),
	      .doc = "Line to start at, from 1."),
	FIELD(Q, limit, .min = 1, .max = TEXT_LINES_MAX, .def = DEFAULT_INT(TEXT_LINES_MAX),
	      .doc = "Maximum number of lines to show."),
	CODING_WORKSPACE_ROW(Q),
};
#undef Q
static const struct field_table read_table = FIELD_TABLE(struct read_request, read_fields);

#define T struct coding_text
static const struct field text_fields[] = {
	FIELD(T, text, .flags = FIELD_REQUIRED | FIELD_NUL_OK, .doc = "Numbered lines."),
	FIELD(T, path, .flags = FIELD_REQUIRED, .doc = "Path of the file."),
	FIELD(T, size, .flags = FIELD_REQUIRED, .doc = "Size of the file in bytes."),
	FIELD(T, first, .flags = FIELD_REQUIRED, .doc = "The first line shown."),
	FIELD(T, lines, .flags = FIELD_REQUIRED, .doc = "Number of lines shown."),
	FIELD_NAMED(T, total, "total_lines", .has = FIELD_HAS(T, has_total),
		    .doc = "Number of lines of the file; absent if it was not read to its end."),
	FIELD_NAMED(T, next, "next_offset", .has = FIELD_HAS(T, has_next),
		    .doc = "Line to continue from."),
	FIELD(T, binary, .flags = FIELD_REQUIRED, .doc = "Not a text file; it is not shown."),
	FIELD_NAMED(T, bad, "invalid_bytes", .flags = FIELD_REQUIRED,
		    .doc = "Bytes shown as U+FFFD, since they are not UTF-8."),
};
#undef T
static const struct field_table text_table = FIELD_TABLE(struct coding_text, text_fields);

static void read_remember(struct file_work *f, uint64_t total)
{
	const char *was = coding_known(&f->w, f->path);
	const struct coding_sight sight = { .anew = !was || strcmp(was, f->digest) != 0,
					    .first = f->window.first,
					    .lines = f->window.lines,
					    .total = total,
					    .lossy = f->bad || text_window_is_cut(&f->window) };

	coding_know(&f->w, f->path, f->digest, &f->marks);
	coding_saw(&f->w, f->path, &sight);
}

/* All that is needed was read, and is shown. whole: to the file's end. */
static void read_answer(struct file_work *f, bool whole)
{
	const struct text_window *w = &f->window;
	uint64_t count = text_window_count(w), next = text_window_next(w);
	struct coding_text r = { .path = f->said,
				 .size = f->size,
				 .bad = f->bad,
				 .first = w->first,
				 .lines = w->lines,
				 .total = count,
				 .has_total = whole,
				 .next = next,
				 .has_next = next != 0 };
	struct err e = f->failed;

	if (!e.code && w->lines == 0 && w->first > 1)
		err_set(&e, ERR_INVALID, "offset: %" PRIu64 " is behind the last line, %" PRIu64,
			w->first, count);
	if (e.code || file_show(f, &r.text, &e) < 0) {
		file_fail(f, &e);
		return;
	}
	if (!f->large)
		read_remember(f, count);
	file_free(f);
	coding_answer(&f->w, &r);
}

static int read_work(struct file_work *f, struct err *e)
{
	if (!f->large &&
	    (file_mark(f, e) < 0 || text_window_feed(&f->window, buf_str(&f->shown), e) < 0))
		return -1;
	return file_number(f, f->large, e);
}

static void read_then(struct aside_work *w)
{
	struct file_work *f = file_of_aside(w);

	read_answer(f, !f->large || f->whole);
}

static void read_binary(struct file_work *f)
{
	file_free(f);
	coding_answer(&f->w, &(struct coding_text){ .path = f->said,
						    .size = f->size,
						    .text = STR_LIT(""),
						    .first = 1,
						    .binary = true });
}

static void read_on(struct file_work *f);

/* Too large to be known: no digest, and only as far as needed. */
static void read_on_piece(void *arg, struct str bytes, const struct file_stat *st,
			  const struct err *err)
{
	struct file_work *f = arg;
	struct err e = ERR_INIT;
	int done = 0;

	if (!err && call_cancelled(f->w.call)) {
		err_set(&e, ERR_CANCELLED, "the call was cancelled");
		err = &e;
	}
	if (!err && f->offset == 0 && text_is_binary(bytes)) {
		read_binary(f);
		return;
	}
	if (!err) {
		f->offset += bytes.n;
		done = text_window_feed(&f->window, bytes, &e);
	}
	if (err || done < 0) {
		file_fail(f, err ? err : &e);
	} else if (done || bytes.n < PIECE) {
		f->size = st->size;
		f->whole = bytes.n < PIECE;
		file_aside(f, f->window.text.n, read_work, read_then);
	} else {
		read_on(f);
	}
}

static void read_on(struct file_work *f)
{
	file_read_start(f->w.sandbox, f->path, f->offset, PIECE, read_on_piece, f);
}

static void read_with(struct file_work *f, struct str bytes, const struct file_stat *st,
		      const struct err *err)
{
	struct err e = ERR_INIT;

	if (err) {
		file_fail(f, err);
		return;
	}
	f->size = st->size;
	f->large = bytes.n > CODING_FILE_MAX;
	f->window.count = !f->large;
	if (text_is_binary(bytes))
		read_binary(f);
	else if (f->large)
		read_on(f);
	else if (file_keep(f, bytes, &e) < 0)
		file_fail(f, &e);
	else
		file_aside(f, bytes.n, read_work, read_then);
}

static void read_entered(struct coding_work *w)
{
	const struct read_request *q = call_request(w->call);
	struct file_work *f = file_of(w);

	f->window = (struct text_window){ .first = q->offset,
					  .limit = q->limit,
					  .max = TEXT_SHOWN_MAX };
	f->want = FILE_SMALL;
	f->with = read_with;
	file_load(f);
}

static void coding_read_run(struct call *c, const void *request)
{
	const struct read_request *q = request;

	file_enter(c, q->workspace, q->path, read_entered);
}

const struct op coding_read_op = {
	.action = "coding.read",
	.doc = "Shows lines of a file of the workspace, numbered.",
	.effect = OP_READ,
	.request = &read_table,
	.expand = coding_expand,
	.path = coding_spell_path,
	.result = &text_table,
	.run = coding_read_run,
};

/* ---- writing ------------------------------------------------------------------------------- */

static const struct field written_fields[] = {
	FIELD(struct coding_written, path, .flags = FIELD_REQUIRED, .doc = "Path of the file."),
	FIELD(struct coding_written, bytes, .flags = FIELD_REQUIRED,
	      .doc = "New size of the file in bytes."),
	FIELD(struct coding_written, is_new, .flags = FIELD_REQUIRED, .doc = "The file is new."),
	FIELD(struct coding_written, replaced, .flags = FIELD_REQUIRED,
	      .doc = "How many times old_string was replaced."),
};
static const struct field_table written_table = FIELD_TABLE(struct coding_written, written_fields);

static void write_on_done(void *arg, const struct err *err)
{
	struct file_work *f = arg;
	struct coding_written r = {
		.path = f->said, .bytes = f->bytes.n, .replaced = f->replaced, .is_new = f->is_new
	};

	if (err) {
		file_fail(f, err);
		return;
	}
	coding_know(&f->w, f->path, f->digest, &f->marks);
	if (f->replaced == 0) /* by Write */
		coding_saw(&f->w, f->path, &(struct coding_sight){ .anew = true, .first = 1 });
	file_free(f);
	coding_answer(&f->w, &r);
}

/* f->bytes become the new content: text, with what its marks stand for. */
static int write_compose(struct file_work *f, struct str text, const char *argument, struct err *e)
{
	const struct marks_text t = {
		.marks = &f->marks, .bytes = buf_str(&f->old), .text = text, .argument = argument
	};
	struct marks now;

	f->bytes = BUF_INIT(CODING_FILE_MAX);
	if (marks_put_back(&t, f->aside.redactor, &f->bytes, &now, e) < 0)
		return -1;
	marks_fini(&f->marks);
	f->marks = now;
	return hash_of(buf_str(&f->bytes), f->digest, e);
}

/* f->bytes are the new content. */
static void write_begin(struct file_work *f)
{
	static const struct file_write_opts opts = { .mode = MODE_NEW,
						     .make_parents = true,
						     .durable = true };
	struct err e = ERR_INIT;

	if (call_cancelled(f->w.call)) {
		err_set(&e, ERR_CANCELLED, "the call was cancelled before it wrote anything");
		file_fail(f, &e);
	} else {
		file_write_start(f->w.sandbox, f->path, buf_str(&f->bytes), &opts, write_on_done,
				 f);
	}
}

/* The lines of the file around what was to be replaced. */
static int write_look(struct file_work *f, struct str old, struct err *e)
{
	uint64_t at = text_place(buf_str(&f->shown), old);

	f->stale = true;
	f->window = (struct text_window){ .first = at > FRESH_BEFORE ? at - FRESH_BEFORE : 1,
					  .limit = FRESH_LINES,
					  .max = FRESH_MAX };
	return text_window_feed(&f->window, buf_str(&f->shown), e) < 0 ? -1
								       : file_number(f, false, e);
}

/* Fails with them, which the conversation knows then. */
static void write_stale(struct file_work *f)
{
	struct str *detail = &call_about(f->w.call)->detail;
	struct err e = ERR_INIT, none;

	coding_know(&f->w, f->path, f->digest, &f->marks);
	if (f->failed.code || file_show(f, detail, &none) < 0)
		*detail = STR_NONE;
	err_set(&e, ERR_STALE,
		"%.*s has changed since it was read, and nothing was written; lines %" PRIu64
		" to %" PRIu64 " as they are now follow",
		STR_CUT(f->said, 120), f->window.first, f->window.first + f->window.lines - 1);
	file_fail(f, &e);
}

/* Whether this content may be replaced, if the conversation knows it. */
static int write_may(struct file_work *f, struct str bytes, struct err *e)
{
	if (bytes.n > CODING_FILE_MAX)
		return err_set(
			e, ERR_TOO_LARGE,
			"%.*s is larger than %d bytes, and not replaced; change it by a program, "
			"or remove it first",
			STR_CUT(f->said, 100), CODING_FILE_MAX);
	if (text_is_binary(bytes))
		return err_set(e, ERR_INVALID,
			       "file_path: %.*s is not a text file, and Read does not show it; "
			       "change it by a program, or remove it first",
			       STR_CUT(f->said, 100));
	if (!coding_known(&f->w, f->path))
		return err_set(e, ERR_UNREAD,
			       "%.*s is there, and this conversation has not read it",
			       STR_CUT(f->said, 120));
	return file_keep(f, bytes, e);
}

static void write_then(struct aside_work *w)
{
	struct file_work *f = file_of_aside(w);

	if (f->stale)
		write_stale(f);
	else if (f->failed.code)
		file_fail(f, &f->failed);
	else
		write_begin(f);
}

static void write_with(struct file_work *f, struct str bytes, const struct err *err);
static void edit_with(struct file_work *f, struct str bytes, const struct err *err);

static void write_on_file(struct file_work *f, struct str bytes, const struct file_stat *st,
			  const struct err *err)
{
	if (!err && !coding_has_file(&f->w, st))
		return;
	if (call_op(f->w.call) == &coding_edit_op)
		edit_with(f, bytes, err);
	else
		write_with(f, bytes, err);
}

/* Its turn has come, or comes again since a writer by another path had the same file. */
static void write_turn(struct coding_work *w)
{
	struct file_work *f = file_of(w);

	f->want = FILE_SMALL;
	f->with = write_on_file;
	file_load(f);
}

static void write_entered(struct coding_work *w)
{
	coding_wait_turn(w, file_of(w)->path, write_turn);
}

/* ---- coding.write -------------------------------------------------------------------------- */

struct write_request {
	struct str workspace, path, content;
};
#define Q struct write_request
static const struct field write_fields[] = {
	FIELD(Q, path, .flags = FIELD_REQUIRED | FIELD_PATH, .min = 1, .max = CODING_PATH_ARG_MAX,
	      .doc = "Path of the file; missing parent directories are made."),
	FIELD(Q, content, .flags = FIELD_REQUIRED | FIELD_NUL_OK, .max = CODING_FILE_MAX,
	      .doc = "The new content of the whole file."),
	CODING_WORKSPACE_ROW(Q),
};
#undef Q
static const struct field_table write_table = FIELD_TABLE(struct write_request, write_fields);

static int write_work(struct file_work *f, struct err *e)
{
	const struct write_request *q = call_request(f->w.call);

	if (!f->is_new && file_mark(f, e) < 0)
		return -1;
	return !f->is_new && strcmp(f->known, f->digest) != 0
		     ? write_look(f, STR_NONE, e)
		     : write_compose(f, q->content, "content", e);
}

static void write_with(struct file_work *f, struct str bytes, const struct err *err)
{
	const struct write_request *q = call_request(f->w.call);
	struct err e = ERR_INIT;

	f->is_new = err && err->code == ERR_PATH_NOT_FOUND;
	if (err && !f->is_new)
		file_fail(f, err);
	else if (!f->is_new && write_may(f, bytes, &e) < 0)
		file_fail(f, &e);
	else if (!f->is_new && coding_saw_whole(&f->w, f->path, &e) < 0)
		file_fail(f, &e);
	else
		file_aside(f, f->old.n + q->content.n, write_work, write_then);
}

static void coding_write_run(struct call *c, const void *request)
{
	const struct write_request *q = request;

	file_enter(c, q->workspace, q->path, write_entered);
}

const struct op coding_write_op = {
	.action = "coding.write",
	.doc = "Writes a whole file of the workspace: a new file, or one that was read before.",
	.effect = OP_WRITE,
	.flags = OP_REPLACES | OP_IDEMPOTENT,
	.request = &write_table,
	.expand = coding_expand,
	.path = coding_spell_path,
	.result = &written_table,
	.run = coding_write_run,
};

/* ---- coding.edit --------------------------------------------------------------------------- */

struct edit_request {
	struct str workspace, path, old_string, new_string;
	bool replace_all;
};
#define Q struct edit_request
static const struct field edit_fields[] = {
	FIELD(Q, path, .flags = FIELD_REQUIRED | FIELD_PATH, .min = 1, .max = CODING_PATH_ARG_MAX,
	      .doc = "Path of a file that was read before."),
	FIELD(Q, old_string, .flags = FIELD_REQUIRED | FIELD_NUL_OK, .min = 1,
	      .max = CODING_FILE_MAX,
	      .doc = "Text to replace, exactly as in the file and without line numbers. It "
		     "must occur only once, unless replace_all is set."),
	FIELD(Q, new_string, .flags = FIELD_REQUIRED | FIELD_NUL_OK, .max = CODING_FILE_MAX,
	      .doc = "Text to put in its place."),
	FIELD(Q, replace_all, .def = DEFAULT_BOOL(false), .doc = "Replace every occurrence."),
	CODING_WORKSPACE_ROW(Q),
};
#undef Q
static const struct field_table edit_table = FIELD_TABLE(struct edit_request, edit_fields);

/* The file as it is shown is searched, so that no secret is found by guessing. A mark is one thing
 * there: no part of it is found. */
static int edit_shown(struct file_work *f, struct buf *to, struct err *e)
{
	const struct edit_request *q = call_request(f->w.call);
	const struct text_edit edit = { q->old_string, q->new_string, q->replace_all, f->spans,
					f->marks.n };
	const struct marks_text old = {
		.marks = &f->marks,
		.bytes = buf_str(&f->old),
		.text = q->old_string,
		.argument = "old_string",
	};
	struct err why;
	int64_t n;

	if (marks_check(&old, e) < 0)
		return -1;
	n = text_replace(buf_str(&f->shown), &edit, to, e);
	why = *e;
	if (n < 0 && why.code == ERR_INVALID && f->marks.n > 0)
		return err_set(e, ERR_INVALID,
			       "%.300s. The file has secrets, in whose place old_string has the "
			       "marks that Read shows",
			       why.msg);
	f->replaced = n < 0 ? 0 : (uint64_t)n;
	return n < 0 ? -1 : 0;
}

static int edit_work(struct file_work *f, struct err *e)
{
	const struct edit_request *q = call_request(f->w.call);
	autobuf struct buf edited = BUF_INIT(SHOWN_MAX);

	if (file_mark(f, e) < 0)
		return -1;
	if (strcmp(f->known, f->digest) != 0)
		return write_look(f, q->old_string, e);
	return edit_shown(f, &edited, e) < 0 ? -1
					     : write_compose(f, buf_str(&edited), "new_string", e);
}

static void edit_with(struct file_work *f, struct str bytes, const struct err *err)
{
	const struct edit_request *q = call_request(f->w.call);
	struct err e = ERR_INIT;

	if (err || write_may(f, bytes, &e) < 0)
		file_fail(f, err ? err : &e);
	else
		file_aside(f, f->old.n + q->new_string.n, edit_work, write_then);
}

static void coding_edit_run(struct call *c, const void *request)
{
	const struct edit_request *q = request;

	file_enter(c, q->workspace, q->path, write_entered);
}

const struct op coding_edit_op = {
	.action = "coding.edit",
	.doc = "Replaces text in a file of the workspace that was read before.",
	.effect = OP_WRITE,
	.flags = OP_REPLACES,
	.request = &edit_table,
	.expand = coding_expand,
	.path = coding_spell_path,
	.result = &written_table,
	.run = coding_edit_run,
};
