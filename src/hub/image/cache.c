#include "hub/image/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"
#include "box/archive/tar.h"
#include "hub/image/internal.h"

/* Increase it when the same steps would give another result. */
#define STEPS "holt build steps 1"
#define STEPS_NETWORK "holt build steps with network 1"

/* LISTED: most entries read of a folder, which others may have filled. */
enum { BLOCK = 128 * 1024, LISTED = 4 * BUILD_CACHE_MAX };

/* ---- keys ------------------------------------------------------------------------------------ */

int build_cache_init(struct build_cache *c, const char *begin, struct err *e)
{
	AUTO(hash_free) struct hash *h = hash_new(e);
	const char *before = begin;

	c->keys = calloc(c->lines->n, sizeof(*c->keys));
	if (!h || !c->keys)
		return h ? err_set(e, ERR_LIMIT, "out of memory") : -1;
	for (size_t i = 0; i < c->lines->n; i++) {
		if (c->network.n) {
			hash_add(h, STEPS_NETWORK, sizeof(STEPS_NETWORK));
			hash_add(h, c->network.p, c->network.n);
			hash_add(h, "", 1);
		} else {
			hash_add(h, STEPS, sizeof(STEPS));
		}
		hash_add(h, before, HASH_HEX);
		hash_add(h, c->lines->p[i].p, c->lines->p[i].n);
		hash_end(h, c->keys[i]);
		before = c->keys[i];
	}
	return 0;
}

void build_cache_fini(struct build_cache *c)
{
	free(c->keys);
}

static int open_folder(const struct images *s)
{
	return openat(s->dir, "step", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* ---- finding --------------------------------------------------------------------------------- */

/* The digest of the next n bytes. */
static int digest_next(int fd, uint64_t n, char ret[HASH_HEX + 1])
{
	struct err ignored = ERR_INIT;
	AUTO(hash_free) struct hash *h = hash_new(&ignored);
	autofree char *block = malloc(BLOCK);

	if (!h || !block)
		return -1;
	while (n > 0) {
		ssize_t got = read(fd, block, n < BLOCK ? (size_t)n : BLOCK);

		if (got <= 0)
			return -1;
		hash_add(h, block, (size_t)got);
		n -= (uint64_t)got;
	}
	hash_end(h, ret);
	return 0;
}

/* Whether the file is intact: a crash of the machine or a bad disk may have damaged it. */
static int check_whole(int fd, uint64_t *ret_size)
{
	char told[HASH_HEX + 1] = "", is[HASH_HEX + 1];
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < HASH_HEX)
		return -1;
	*ret_size = (uint64_t)st.st_size - HASH_HEX;
	if (digest_next(fd, *ret_size, is) < 0 || fd_read(fd, told, HASH_HEX) < 0 ||
	    strcmp(told, is) != 0)
		return -1;
	return lseek(fd, 0, SEEK_SET) < 0 ? -1 : 0;
}

int build_cache_find(const struct build_cache *c, size_t *ret_done, uint64_t *ret_size)
{
	autoclose int folder = c->forget ? -1 : open_folder(c->s);

	for (size_t i = folder < 0 ? 0 : c->lines->n; i > 0; i--) {
		autoclose int fd = openat(folder, c->keys[i - 1],
					  O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

		if (fd < 0)
			continue;
		if (check_whole(fd, ret_size) < 0) {
			unlinkat(folder, c->keys[i - 1], 0);
			continue;
		}
		utimensat(folder, c->keys[i - 1], NULL, AT_SYMLINK_NOFOLLOW);
		*ret_done = i;
		return take_fd(&fd);
	}
	return -1;
}

void build_cache_forget(const struct build_cache *c, size_t done)
{
	autoclose int folder = open_folder(c->s);

	if (folder >= 0)
		unlinkat(folder, c->keys[done - 1], 0);
}

/* ---- all of them ----------------------------------------------------------------------------- */

struct row {
	char key[HASH_HEX + 1];
	struct timespec used;
	uint64_t bytes;
};

static int by_use(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? 1 : -1;
	return (x->used.tv_nsec < y->used.tv_nsec) - (x->used.tv_nsec > y->used.tv_nsec);
}

/* Owned by the caller; the last used first. */
static struct row *cache_list(int folder, size_t *ret_n)
{
	autofree struct row *rows = calloc(LISTED, sizeof(*rows));
	autofolder struct folder f = folder_at(folder, ".");
	struct stat st;
	size_t n = 0;
	int more = 0;

	while (rows && n < LISTED && (more = folder_next(&f)) > 0) {
		if (!hash_is_hex(str_of(f.entry->d_name)) ||
		    fstatat(folder, f.entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		memcpy(rows[n].key, f.entry->d_name, sizeof(rows[n].key));
		rows[n].used = st.st_mtim;
		rows[n++].bytes = (uint64_t)st.st_size;
	}
	if (!rows || more < 0) {
		errno = rows ? f.errnum : ENOMEM;
		return NULL;
	}
	qsort(rows, n, sizeof(*rows), by_use);
	*ret_n = n;
	return take_ptr(rows);
}

static void evict(int folder)
{
	size_t n = 0;
	autofree struct row *rows = cache_list(folder, &n);
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++) {
		bytes += rows[i].bytes;
		if (i >= BUILD_CACHE_MAX || bytes > BUILD_CACHE_BYTES)
			unlinkat(folder, rows[i].key, 0);
	}
}

int build_cache_prune(const struct images *s, bool all, uint32_t *ret_n, struct err *e)
{
	autoclose int folder = open_folder(s);
	size_t n = 0;
	autofree struct row *rows = folder < 0 ? NULL : cache_list(folder, &n);
	time_t old = time(NULL) - BUILD_CACHE_DAYS * 86400;

	if (folder < 0 && errno == ENOENT)
		return 0; /* no build has kept anything yet */
	if (!rows)
		return err_sys(e, errno, "look for what builds have kept");
	for (size_t i = 0; i < n; i++) {
		if (!all && rows[i].used.tv_sec >= old)
			continue;
		if (unlinkat(folder, rows[i].key, 0) < 0 && errno != ENOENT)
			return err_sys(e, errno, "remove what builds have kept");
		++*ret_n;
	}
	unlinkat(s->dir, "step", AT_REMOVEDIR); /* if it is empty; a writer holds the lock */
	return 0;
}

/* ---- keeping --------------------------------------------------------------------------------- */

#define ASIDE "step"

struct build_kept {
	const struct build_cache *c;
	int fd;
	struct hash *hash;
	uint64_t n;
	bool failed;
};

struct build_kept *build_kept_new(const struct build_cache *c)
{
	struct err ignored = ERR_INIT;
	struct build_kept *k = c->no_keep ? NULL : calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->c = c;
	k->hash = hash_new(&ignored);
	k->fd = openat(c->aside, ASIDE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		       0600);
	if (k->hash && k->fd >= 0)
		return k;
	build_kept_drop(k);
	return NULL;
}

void build_kept_drop(struct build_kept *k)
{
	if (!k)
		return;
	if (k->fd >= 0)
		unlinkat(k->c->aside, ASIDE, 0);
	close_fd(&k->fd);
	hash_free(k->hash);
	free(k);
}

/* One result may use at most half of the space, so that it does not displace all others. */
bool build_kept_add(struct build_kept *k, const char *p, size_t n)
{
	k->n += n;
	if (k->failed || k->n > BUILD_CACHE_BYTES / 2 ||
	    fd_disk_is_short(k->fd, BUILD_CACHE_SPARE) || fd_write(k->fd, p, n) < 0) {
		k->failed = true;
		return false;
	}
	hash_add(k->hash, p, n);
	return true;
}

static bool finish_file(struct build_kept *k)
{
	static const char end[TAR_END_BYTES];
	char digest[HASH_HEX + 1];

	if (!build_kept_add(k, end, sizeof(end)))
		return false;
	hash_end(k->hash, digest);
	return fd_write(k->fd, digest, HASH_HEX) == 0 && fdatasync(k->fd) == 0;
}

void build_kept_publish(struct build_kept *k, size_t line)
{
	struct err ignored = ERR_INIT;
	autoclose int lock = finish_file(k) ? images_lock(k->c->s, &ignored) : -1;
	autoclose int folder = -1;

	if (lock >= 0) {
		mkdirat(k->c->s->dir, "step", 0700);
		folder = open_folder(k->c->s);
	}
	if (folder >= 0 && renameat(k->c->aside, ASIDE, folder, k->c->keys[line]) == 0) {
		close_fd(&k->fd); /* it is no more aside */
		evict(folder);
	}
	build_kept_drop(k);
}
