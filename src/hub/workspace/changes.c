#include "hub/workspace/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "box/archive/tar.h"
#include "box/host/box.h"
#include "hub/workspace/differ.h"

enum { OUT_BYTES = 64 << 10, POLL_MS = 200 };

struct writing {
	struct changes_spec spec;
	struct str path; /* of the file at hand */
	char name[TAR_PATH_MAX], link[TAR_PATH_MAX];
	size_t n; /* in buffer */
	char buffer[OUT_BYTES];
};

/* ---- out ----------------------------------------------------------------------------------- */

static int changes_flush(struct writing *w, struct err *e)
{
	struct pollfd p = { .fd = w->spec.to, .events = POLLOUT };

	for (size_t at = 0; at < w->n;) {
		ssize_t n;

		if (atomic_load(w->spec.stop))
			return err_set(e, ERR_CANCELLED, "it was given up");
		if (poll(&p, 1, POLL_MS) <= 0)
			continue;
		n = write(w->spec.to, w->buffer + at, w->n - at);
		if (n < 0 && errno == EPIPE)
			return err_set(e, ERR_CANCELLED, "the sandbox does not read");
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return err_sys(e, errno, "write to the sandbox");
		at += n > 0 ? (size_t)n : 0;
	}
	w->n = 0;
	return 0;
}

/* p NULL: zeros. */
static int changes_put(struct writing *w, const char *p, size_t n, struct err *e)
{
	while (n > 0) {
		size_t some = sizeof(w->buffer) - w->n;

		some = n < some ? n : some;
		if (p)
			memcpy(w->buffer + w->n, p, some);
		else
			memset(w->buffer + w->n, 0, some);
		p = p ? p + some : NULL;
		w->n += some;
		n -= some;
		if (w->n == sizeof(w->buffer) && changes_flush(w, e) < 0)
			return -1;
	}
	return 0;
}

static int changes_head(struct writing *w, const struct tar_entry *entry, struct err *e)
{
	char head[TAR_HEAD_MAX];
	size_t n = tar_head(entry, head);

	return n ? changes_put(w, head, n, e)
		 : err_set(e, ERR_WORKSPACE_LARGE, "a path is too long for an archive");
}

/* ---- changes ------------------------------------------------------------------------------- */

static int changes_content(void *arg, struct str bytes, struct err *e)
{
	struct writing *w = arg;

	if (w->spec.on_content && bytes.n)
		w->spec.on_content(w->spec.arg, w->path, bytes, false);
	return changes_put(w, bytes.p, bytes.n, e);
}

static int changes_file(struct writing *w, const struct tree_entry *t, struct err *e)
{
	if (tree_content(w->spec.objects, t, changes_content, w, e) < 0)
		return -1;
	if (w->spec.on_content)
		w->spec.on_content(w->spec.arg, w->path, STR_NONE, true);
	return changes_put(w, NULL, tar_padding(t->bytes), e);
}

static int changes_one(void *arg, struct str path, const struct tree_entry *was,
		       const struct tree_entry *t, struct err *e)
{
	static const enum tar_type types[] = { [TREE_PIECE] = TAR_FILE,
					       [TREE_PIECES] = TAR_FILE,
					       [TREE_LINK] = TAR_SYMLINK,
					       [TREE_DIR] = TAR_DIRECTORY };
	const struct str link = t && t->type == TREE_LINK ? t->link : STR_LIT("");
	struct writing *w = arg;
	struct tar_entry entry;
	bool is_file;

	if (!t) {
		const char *slash = memrchr(path.p, '/', path.n);
		size_t dir = slash ? (size_t)(slash - path.p) + 1 : 0;
		int n = snprintf(w->name, sizeof(w->name), "%.*s" DIFF_GONE "%.*s", (int)dir,
				 path.p, (int)(path.n - dir), path.p + dir);
		const struct tar_entry gone = { .type = TAR_FILE, .path = w->name, .link = "" };

		if (n >= (int)sizeof(w->name))
			return err_set(e, ERR_WORKSPACE_LARGE, "a path is too long for an archive");
		return changes_head(w, &gone, e);
	}
	is_file = types[t->type] == TAR_FILE;
	snprintf(w->name, sizeof(w->name), "%.*s", STR_ARG(path));
	snprintf(w->link, sizeof(w->link), "%.*s", STR_ARG(link));
	entry = (struct tar_entry){ .type = types[t->type],
				    .mode = t->mode,
				    .size = is_file ? t->bytes : 0,
				    .mtime = t->mtime,
				    .mtime_ns = t->mtime_ns,
				    .path = w->name,
				    .link = w->link };
	w->path = path;
	if (changes_head(w, &entry, e) < 0)
		return -1;
	return is_file ? changes_file(w, t, e) : 0;
}

int changes_write(const struct changes_spec *spec, const struct object_id *from,
		  const struct object_id *to, struct err *e)
{
	autofree struct writing *w = calloc(1, sizeof(*w));

	if (!w)
		return err_set(e, ERR_LIMIT, "out of memory");
	w->spec = *spec;
	if (fcntl(spec->to, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, errno, "write to the sandbox");
	if (tree_diff_exact(spec->objects, from, to, changes_one, w, e) < 0 ||
	    changes_put(w, NULL, TAR_END_BYTES, e) < 0)
		return -1;
	return changes_flush(w, e);
}
