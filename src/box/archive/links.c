#include "box/archive/links.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 * 1024 };

struct links_chunk {
	struct links_chunk *next;
	size_t used;
	char bytes[CHUNK_BYTES] __attribute__((aligned(8)));
};

struct link_dir {
	struct link_dir *up; /* NULL: the top */
	size_t end; /* bytes of its path */
	char name[]; /* the last name of that, without a NUL */
};

struct link {
	struct link *next;
	dev_t device;
	ino_t inode;
	const struct link_dir *dir; /* NULL: the top */
	size_t n;
	char name[]; /* n bytes */
};

static size_t inside(const struct link_dir *d)
{
	return d ? d->end + 1 : 0;
}

/* NULL when there is to be no more. n is far below CHUNK_BYTES. */
static void *links_alloc(struct links *l, size_t n)
{
	struct links_chunk *c = l->chunks;

	n = (n + 7) & ~(size_t)7;
	if (!c || c->used + n > CHUNK_BYTES) {
		if (l->bytes + sizeof(*c) > l->bytes_max || !(c = malloc(sizeof(*c))))
			return NULL;
		c->next = l->chunks;
		c->used = 0;
		l->chunks = c;
		l->bytes += sizeof(*c);
	}
	c->used += n;
	return c->bytes + c->used - n;
}

/* Makes l->dir the directory whose path is the first n bytes of path. It, or one above it, is most
 * likely on the way from the last one to the top. */
static bool links_enter(struct links *l, const char *path, size_t n)
{
	size_t same = 0;

	while (same < n && same < l->path_n && l->path[same] == path[same])
		same++;
	while (l->dir && (l->dir->end > same || (l->dir->end < n && path[l->dir->end] != '/')))
		l->dir = l->dir->up;
	memcpy(l->path, path, n);
	l->path_n = n;
	while (inside(l->dir) < n) {
		size_t from = inside(l->dir);
		const char *slash = memchr(path + from, '/', n - from);
		size_t end = slash ? (size_t)(slash - path) : n;
		struct link_dir *d = links_alloc(l, sizeof(*d) + end - from);

		if (!d)
			return false;
		d->up = l->dir;
		d->end = end;
		memcpy(d->name, path + from, end - from);
		l->dir = d;
	}
	return true;
}

static void links_remember(struct links *l, const struct stat *st, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t n = strlen(name), dir_n = slash ? (size_t)(slash - path) : 0;
	struct link **bucket = &l->buckets[st->st_ino % LINKS_BUCKETS], *k;

	if (dir_n + 1 + n >= TAR_PATH_MAX || !links_enter(l, path, dir_n))
		return;
	k = links_alloc(l, sizeof(*k) + n);
	if (!k)
		return;
	*k = (struct link){ *bucket, st->st_dev, st->st_ino, l->dir, n };
	memcpy(k->name, name, n);
	*bucket = k;
}

static const char *links_path(struct links *l, const struct link *k)
{
	size_t at = inside(k->dir);

	memcpy(l->first + at, k->name, k->n);
	l->first[at + k->n] = '\0';
	for (const struct link_dir *d = k->dir; d; d = d->up) {
		l->first[d->end] = '/';
		memcpy(l->first + inside(d->up), d->name, d->end - inside(d->up));
	}
	return l->first;
}

const char *links_first(struct links *l, const struct stat *st, const char *path)
{
	for (const struct link *k = l->buckets[st->st_ino % LINKS_BUCKETS]; k; k = k->next) {
		if (k->inode == st->st_ino && k->device == st->st_dev)
			return links_path(l, k);
	}
	links_remember(l, st, path);
	return NULL;
}

void links_fini(struct links *l)
{
	while (l->chunks) {
		struct links_chunk *c = l->chunks;

		l->chunks = c->next;
		free(c);
	}
}
