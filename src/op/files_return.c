/*
 * An archive that comes back from a client that has downloaded it with marks in the place of
 * secrets. Where a file of it has marks, the old content of that file is read first, and what they
 * stand for is put back (files_marks.c). The marks of an archive have the lengths of their secrets,
 * so nothing else of it changes. What is kept of it is one file, or a part of a large one, and the
 * bytes behind it that came meanwhile. A part ends with a line, since no mark of an archive has a
 * newline, and is compared with what is at its place in the old file: in the work pool, on copies,
 * since the upload may end meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>

#include "box/archive/tar.h"
#include "call/aside.h"
#include "call/call.h"
#include "call/guard.h"
#include "op/files.h"

/* The first piece may be all of the rest. */
enum { REST_MAX = 2 * FILES_READ_MAX, FILE_KEPT_MAX = FILES_READ_MAX + REST_MAX };

struct files_return {
	struct files_return_spec to; /* owner NULL: it was freed while it waits */
	struct tar_reader reader;
	struct buf file; /* what came of a file, and has not gone on */
	uint64_t at; /* where that begins in the file */
	size_t part; /* of it: what is looked at together */
	bool torn; /* that does not end with a line */
	struct buf rest; /* what came behind it while it waits */
	bool keeps; /* the reader is in a file */
	bool waits; /* for the old content of the file, and until the marks are put back */
	struct {
		struct aside_work work;
		struct buf old, text, made;
		struct files_marked marked;
		struct err err;
	} back;
	bool reserved; /* memory for that */
	bool passes; /* no archive that can be read: the sandbox says why */
};

static struct files_return *return_of(struct aside_work *w)
{
	return (struct files_return *)(void *)((char *)w -
					       offsetof(struct files_return, back.work));
}

struct files_return *files_return_new(const struct files_return_spec *spec, struct err *e)
{
	struct files_return *r = calloc(1, sizeof(*r));

	if (!r)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	*r = (struct files_return){ .to = *spec,
				    .passes = spec->literal && call_is_operator(spec->call),
				    .file = { .max = FILE_KEPT_MAX, .of = spec->of },
				    .rest = { .max = REST_MAX, .of = spec->of },
				    .back = { .old = BUF_INIT(FILES_READ_MAX),
					      .text = BUF_INIT(FILES_READ_MAX),
					      .made = BUF_INIT(FILE_WRITE_MAX) } };
	tar_reader_init(&r->reader);
	return r;
}

/* The copies are none of the budget's, which may be gone by now. */
static void return_end(struct files_return *r)
{
	buf_wipe(&r->back.old);
	buf_wipe(&r->back.text);
	buf_wipe(&r->back.made);
	free(r);
}

void files_return_free(struct files_return *r)
{
	if (!r)
		return;
	buf_wipe(&r->file);
	buf_wipe(&r->rest);
	r->to.owner = NULL;
	if (!r->waits)
		return_end(r);
}

bool files_return_waits(const struct files_return *r)
{
	return r->waits;
}

static int return_put(struct files_return *r, const char *from, const char *to, struct err *e)
{
	return from == to ? 0
			  : r->to.put(r->to.owner, (struct str){ from, (size_t)(to - from) }, e);
}

static void return_on_old(void *arg, struct str bytes, const struct file_stat *st,
			  const struct err *err);

static bool is_large(const struct files_return *r)
{
	return r->reader.entry.size > FILES_READ_MAX;
}

/* Sends the part as it is after redaction. */
static int part_put(struct files_return *r, const char *bytes, struct err *e)
{
	if (return_put(r, bytes, bytes + r->part, e) < 0)
		return -1;
	buf_drop(&r->file, r->part);
	r->at += r->part;
	return 0;
}

static int part_start(struct files_return *r, struct err *e)
{
	char name[TAR_PATH_MAX];

	snprintf(name, sizeof(name), "%s", r->reader.entry.path);
	/* what leads upwards is refused by the sandbox */
	if (!files_has_marks((struct str){ r->file.p, r->part }) || !tar_path_clean(name))
		return part_put(r, r->file.p, e);
	if (!r->reserved && call_reserve(r->to.call, 4 * FILES_READ_MAX, e) < 0)
		return -1;
	r->reserved = true;
	r->waits = true;
	r->to.read(r->to.owner, name, r->at, is_large(r) ? r->part : FILES_READ_MAX, return_on_old,
		   r);
	return 0;
}

/* Up to where the rest of the file must come, or it must wait. */
static int return_parts(struct files_return *r, struct err *e)
{
	while (!r->waits && r->file.n > 0) {
		const bool whole = r->file.n == r->reader.entry.size - r->at;
		const char *line;

		if (!whole && r->file.n < FILES_READ_MAX)
			break;
		r->part = r->file.n;
		r->torn = false;
		if (!whole || r->part > FILES_READ_MAX) {
			line = memrchr(r->file.p, '\n', FILES_READ_MAX);
			r->torn = !line;
			r->part = line ? (size_t)(line + 1 - r->file.p) : FILES_READ_MAX;
		}
		if (part_start(r, e) < 0)
			return -1;
	}
	return 0;
}

/* Content of a file that is kept. One that came whole and has no marks stays where it is. */
static int return_keep(struct files_return *r, const char **from, struct err *e)
{
	const struct tar_reader *t = &r->reader;
	const struct str piece = { t->content, t->content_n };

	if (r->file.n == 0 && piece.n == t->entry.size && !files_has_marks(piece))
		return 0;
	if (return_put(r, *from, piece.p, e) < 0 || buf_add(&r->file, piece.p, piece.n, e) < 0)
		return -1;
	*from = piece.p + piece.n;
	return return_parts(r, e);
}

/* Up to the end, or to where it must wait, which *bytes then begins with. */
static int return_go_on(struct files_return *r, struct str *bytes, struct err *e)
{
	const char *p = bytes->p, *from = p, *end = p + bytes->n;
	enum tar_event ev = TAR_MORE;
	size_t n = bytes->n;

	while (!r->waits && !r->passes && (ev = tar_read(&r->reader, &p, &n)) != TAR_MORE) {
		const struct tar_entry *entry = &r->reader.entry;

		r->passes = ev == TAR_BAD;
		if (ev == TAR_ENTRY) {
			r->keeps = entry->type == TAR_FILE;
			r->at = 0;
		}
		if (ev == TAR_CONTENT && r->keeps && return_keep(r, &from, e) < 0)
			return -1;
	}
	if (!r->waits && return_put(r, from, end, e) < 0)
		return -1;
	*bytes = r->waits ? (struct str){ from, (size_t)(end - from) } : STR_NONE;
	return 0;
}

int files_return_take(struct files_return *r, struct str bytes, struct err *e)
{
	if (!r->waits && return_go_on(r, &bytes, e) < 0)
		return -1;
	return bytes.n ? buf_add(&r->rest, bytes.p, bytes.n, e) : 0;
}

static void return_put_back(struct aside_work *w)
{
	struct files_return *r = return_of(w);

	if (files_put_back(w->redactor, &r->back.marked, &r->back.made, &r->back.err) == 0)
		r->back.err.code = ERR_NONE;
}

/* Passes on what was put back, and all behind it up to where it must wait again. */
static int return_go_behind(struct files_return *r, struct err *e)
{
	struct str left = buf_str(&r->rest);

	*e = r->back.err;
	if (e->code != ERR_NONE)
		return err_wrap(e, "%.100s", r->reader.entry.path);
	if (r->back.made.n != r->part)
		return err_set(e, ERR_BUG, "a file of the archive would have another length");
	if (part_put(r, r->back.made.p, e) < 0 || return_parts(r, e) < 0 ||
	    (!r->waits && return_go_on(r, &left, e) < 0))
		return -1;
	buf_drop(&r->rest, r->rest.n - left.n);
	return 0;
}

static void return_on_back(struct aside_work *w)
{
	struct files_return *r = return_of(w);
	struct err e;

	r->waits = false;
	if (!r->to.owner)
		return_end(r);
	else if (return_go_behind(r, &e) < 0)
		r->to.on_ready(r->to.owner, &e);
	else if (!r->waits)
		r->to.on_ready(r->to.owner, NULL);
}

/* A file that is not there, or is none, has no secrets. */
static int return_put_back_start(struct files_return *r, struct str old, const struct err *err,
				 struct err *e)
{
	struct call *c = r->to.call;

	if (err && err->code != ERR_PATH_NOT_FOUND && err->code != ERR_PATH_DENIED &&
	    err->code != ERR_NOT_A_FILE) {
		*e = *err;
		return -1;
	}
	if (!err && r->torn)
		return err_set(e, ERR_INVALID,
			       "%.100s: it has marks, or text that looks like one, in a line that "
			       "is too long to tell which secrets they stand for; leave it out",
			       r->reader.entry.path);
	r->back.old.n = r->back.text.n = r->back.made.n = 0;
	if ((!err && buf_add(&r->back.old, old.p, old.n, e) < 0) ||
	    buf_add(&r->back.text, r->file.p, r->part, e) < 0)
		return -1;
	r->back.marked = (struct files_marked){ .old = buf_str(&r->back.old),
						.text = buf_str(&r->back.text),
						.archive = true,
						.part = !err && is_large(r),
						.by_agent = call_by_agent(c) };
	r->back.work.run = return_put_back;
	r->back.work.then = return_on_back;
	return aside_work_start(&r->back.work, call_loop(c), call_guard(c)->redactor,
				old.n + r->part, e);
}

static void return_on_old(void *arg, struct str bytes, const struct file_stat *st,
			  const struct err *err)
{
	struct files_return *r = arg;
	struct err e = ERR_INIT;

	if (!r->to.owner) {
		return_end(r);
	} else if (return_put_back_start(r, err ? STR_LIT("") : bytes, err, &e) < 0) {
		r->waits = false;
		r->to.on_ready(r->to.owner, &e);
	}
}
