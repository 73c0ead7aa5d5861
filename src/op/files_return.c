/*
 * An archive that comes back from a client that has downloaded it with marks in the place of
 * secrets. Where a file of it has marks, the old content of that file is read first, and what they
 * stand for is put back (files_marks.c). The marks of an archive have the lengths of their secrets,
 * so nothing else of it changes. What is kept of it is one file, if it may have marks, and the
 * bytes behind it that came meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>

#include "box/archive/tar.h"
#include "op/call.h"
#include "op/files.h"

struct files_return {
	struct files_return_spec to; /* owner NULL: it was freed while it waits */
	struct tar_reader reader;
	struct buf file; /* what came of a file that is kept */
	struct buf rest; /* what came behind it while it waits */
	bool keeps; /* the reader is in a file that may have to be kept */
	bool waits; /* for the old content of the file */
	bool reserved; /* memory for that */
	bool passes; /* no archive that can be read: the sandbox says why */
};

struct files_return *files_return_new(const struct files_return_spec *spec, struct err *e)
{
	struct files_return *r = calloc(1, sizeof(*r));

	if (!r) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	*r = (struct files_return){ .to = *spec,
				    .file = { .max = FILES_READ_MAX, .of = spec->of },
				    .rest = { .max = 2 * FILES_READ_MAX, .of = spec->of } };
	tar_reader_init(&r->reader);
	return r;
}

void files_return_free(struct files_return *r)
{
	if (!r)
		return;
	buf_wipe(&r->file);
	buf_wipe(&r->rest);
	r->to.owner = NULL;
	if (!r->waits)
		free(r);
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

/* The file is whole. */
static int return_file(struct files_return *r, struct err *e)
{
	char name[TAR_PATH_MAX], path[FILES_PATH_MAX + 1 + TAR_PATH_MAX];

	snprintf(name, sizeof(name), "%s", r->reader.entry.path);
	/* what leads upwards is refused by the sandbox */
	if (!files_has_marks(buf_str(&r->file)) || !tar_path_clean(name)) {
		struct str all = buf_str(&r->file);
		int rc = return_put(r, all.p, all.p + all.n, e);

		r->file.n = 0;
		return rc;
	}
	if (!r->reserved && call_reserve(r->to.call, 4 * FILES_READ_MAX, e) < 0)
		return -1;
	r->reserved = true;
	snprintf(path, sizeof(path), "%.*s/%s", STR_CUT(r->to.dest, FILES_PATH_MAX), name);
	r->waits = true;
	file_read_start(r->to.sb, str_of(path), 0, FILES_READ_MAX, return_on_old, r);
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
	return r->file.n == t->entry.size ? return_file(r, e) : 0;
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
		if (ev == TAR_ENTRY)
			r->keeps = entry->type == TAR_FILE && entry->size <= FILES_READ_MAX;
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

/* A file that is not there, or is none, has no secrets. */
static int return_put_back(struct files_return *r, struct str old, const struct err *err,
			   struct err *e)
{
	const struct files_marked t = { .old = err ? STR_LIT("") : old,
					.text = buf_str(&r->file),
					.archive = true };
	autowipe struct buf to = BUF_INIT(FILE_WRITE_MAX);

	if (err && err->code != ERR_PATH_NOT_FOUND && err->code != ERR_PATH_DENIED &&
	    err->code != ERR_NOT_A_FILE) {
		*e = *err;
		return -1;
	}
	if (files_put_back(r->to.call, &t, &to, e) < 0)
		return err_wrap(e, "%.100s", r->reader.entry.path);
	if (to.n != r->file.n)
		return err_set(e, ERR_BUG, "a file of the archive would have another length");
	r->file.n = 0;
	return return_put(r, to.p, to.p + to.n, e);
}

static void return_on_old(void *arg, struct str bytes, const struct file_stat *st,
			  const struct err *err)
{
	struct files_return *r = arg;
	struct str left = buf_str(&r->rest);
	struct err e = ERR_INIT;

	r->waits = false;
	if (!r->to.owner) {
		free(r);
		return;
	}
	if (return_put_back(r, bytes, err, &e) < 0 || return_go_on(r, &left, &e) < 0) {
		r->to.on_ready(r->to.owner, &e);
		return;
	}
	buf_drop(&r->rest, r->rest.n - left.n);
	if (!r->waits)
		r->to.on_ready(r->to.owner, NULL);
}
