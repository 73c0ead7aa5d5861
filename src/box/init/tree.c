/*
 * Archives of the sandbox's files, archives into them, and watches of them: each is a stream of
 * bytes over a descriptor from the hub. A helper process has the other end until one of both ends
 * it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box/wire/file_types.h"
#include "box/init/internal.h"

enum { LEAVE_OUT_MAX = 64, IN_BYTES = 64 * 1024 };

static void tree_answer(uint32_t id, int errnum, const struct tree_failure *f)
{
	struct im_tree_done m = { .d = { .h = { IM_FILE_DONE, id }, .errnum = errnum } };

	if (f)
		m.failure = *f;
	init_send(&m, sizeof(m), -1);
}

static void on_death(uint32_t id)
{
	tree_answer(id, 0, &(struct tree_failure){ .what = TREE_KILLED });
}

/* ---- in the helper --------------------------------------------------------------------------- */

/* The file's own name; for a directory nothing, unless its contents are archived with it as their
 * prefix. */
static const char *name_of(const char *path, const struct im_stat *st, bool named)
{
	const char *slash = strrchr(path, '/');

	return (st->type == FILE_DIRECTORY && !named) || !slash[1] ? "." : slash + 1;
}

static void archive(const char *self, const char *name, bool exact, const char *names,
		    const char *end, int out, struct tree_failure *f)
{
	const char *leave_out[LEAVE_OUT_MAX];
	struct tar_pack_opts o = { .name = name, .leave_out = leave_out, .own = !exact };

	for (; names < end && o.n_leave_out < LEAVE_OUT_MAX; names += strlen(names) + 1)
		leave_out[o.n_leave_out++] = names;
	tar_pack(AT_FDCWD, self, &o, out, f);
}

static void tree_unpack(int dir, uint32_t flags, int in, struct tree_failure *f)
{
	const bool changes = flags & FILE_FLAG_CHANGES, exact = flags & FILE_FLAG_EXACT;
	/* Archives of changes come from a sandbox like this one; others from anybody. */
	const struct tar_unpack_opts o = { .changes = changes,
					   .exact = exact,
					   .pass_mounts = flags & FILE_FLAG_PASS_MOUNTS,
					   .keep_top = !changes || exact,
					   .owners = changes && !exact && getuid() == 0 };
	static struct tar_unpack u INIT_LARGE;
	static char bytes[IN_BYTES] INIT_LARGE;
	ssize_t n = 0;
	int rc = tar_unpack_init(&u, dir, &o);

	while (rc == 0 && ((n = read(in, bytes, sizeof(bytes))) > 0 || (n < 0 && errno == EINTR)))
		rc = n > 0 ? tar_unpack_take(&u, bytes, (size_t)n) : 0;
	if (rc == 0 && n < 0)
		u.failure = (struct tree_failure){ .what = TREE_SYSTEM, .errnum = errno };
	tar_unpack_end(&u, rc == 0 && n == 0);
	*f = u.failure;
}

static _Noreturn void help(const struct im_file *m, const char *path, const char *names,
			   const char *end, int fd)
{
	struct im_file_done d = { .errnum = 0 };
	struct tree_failure f = { .what = TREE_FINE };
	bool archives = m->op == FILE_OP_ARCHIVE;
	int known = init_open_known(path, INIT_DIRECTORY | (archives ? INIT_FILE : 0), &d), dir;
	char self[64];

	if (known < 0) {
		d.h = (struct im_head){ IM_FILE_DONE, m->h.id };
		init_send(&(struct im_tree_done){ .d = d }, sizeof(struct im_tree_done), -1);
		_exit(0);
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", known);
	dir = archives ? -1 : init_reopen(known, O_RDONLY | O_DIRECTORY);
	if (archives)
		archive(self, name_of(path, &d.st, m->flags & FILE_FLAG_NAMED),
			m->flags & FILE_FLAG_EXACT, names, end, fd, &f);
	else if (dir < 0)
		f = (struct tree_failure){ .what = TREE_SYSTEM, .errnum = errno };
	else if (m->op == FILE_OP_UPLOAD)
		tree_unpack(dir, m->flags, fd, &f);
	else
		init_watch(dir, m->flags & FILE_FLAG_RECURSIVE, fd, &f);
	tree_answer(m->h.id, 0, &f);
	_exit(0);
}

/* ---- in PID 1 -------------------------------------------------------------------------------- */

void init_tree(const struct im_file *m, const char *path, const char *names, const char *end,
	       int fd)
{
	pid_t pid = fd < 0 ? -1 : init_helper_start(m->h.id, on_death);

	if (pid == 0)
		help(m, path, names, end, fd);
	if (pid < 0)
		tree_answer(m->h.id, fd < 0 ? EMFILE : EAGAIN, NULL);
}
