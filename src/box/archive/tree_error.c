#include "box/archive/tree_error.h"

/* A name from anywhere, fit for a message. */
static void put_name(char *to, size_t size, const char *from, size_t n)
{
	size_t i = 0;

	for (; i < n && i + 1 < size && from[i]; i++)
		to[i] = from[i] >= ' ' && from[i] < 0x7f ? from[i] : '?';
	to[i] = '\0';
}

int tree_error(const struct tree_failure *f, const char *path, struct err *e)
{
	char name[161];

	put_name(name, sizeof(name), f->path, sizeof(f->path));
	if (!name[0])
		put_name(name, sizeof(name), path, sizeof(name));
	switch ((enum tree_what)f->what) {
	case TREE_SYSTEM:
		return err_sys(e, f->errnum, "%s", name);
	case TREE_ARCHIVE:
		return err_set(e, ERR_INVALID, "the archive can't be read: %s",
			       tar_why_text((enum tar_why)f->why));
	case TREE_KIND:
		return err_set(e, ERR_INVALID, "%s in the archive is no file, directory or link",
			       name);
	case TREE_OUTSIDE:
		return err_set(e, ERR_PATH_DENIED,
			       "%s is behind a link, on another file system or outside", name);
	case TREE_OCCUPIED:
		return err_set(
			e, ERR_NOT_A_FILE,
			"%s: a directory would take the place of something else, or the reverse",
			name);
	case TREE_OWNER:
		return err_set(e, ERR_OWNER, "%s: it belongs to another user of the host", name);
	case TREE_MANY:
		return err_set(e, ERR_TOO_LARGE, "an archive has at most %d entries",
			       TREE_ENTRIES_MAX);
	case TREE_LARGE:
		return err_set(e, ERR_TOO_LARGE, "%s: an archive has at most %llu GiB", name,
			       TREE_BYTES_MAX >> 30);
	case TREE_DEEP:
		return err_set(e, ERR_TREE_DEEP,
			       "%s: over %d directories inside each other, or a path of over %d "
			       "bytes",
			       name, TREE_DEPTH_MAX, TAR_PATH_MAX - 1);
	case TREE_GONE:
		return err_set(e, ERR_CANCELLED, "nobody takes the archive any more");
	case TREE_KILLED:
		return err_set(e, ERR_LIMIT,
			       "the process that did it was killed, as where memory is used up");
	default:
		return err_set(e, ERR_GUEST, "the sandbox's first process said something unknown");
	}
}
