/*
 * All entries are one run of bytes: for each entry the lengths of name and text (four bytes each,
 * little-endian), then both; the last written entry is last. In memory the run is used directly. A
 * file has it sealed (base/seal.h), and every operation reads it, so that several processes see
 * each other's entries. A writer holds a lock on the key's file; a reader needs none, since files
 * are only replaced.
 *
 *	FOLDER/key	32 random bytes
 *	FOLDER/tokens	the sealed text; a new one is renamed over the old one
 */
#include "mcp/oauth/store.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/seal.h"

enum {
	HEAD = 8,
	SEALED_MAX = 6 << 20,
	RUN_MAX = SEALED_MAX + (1 << 20), /* limit before old entries are removed */
};

static const char context[] = "libmcp oauth store 1";

struct mcp_oauth_store {
	struct buf all; /* used in memory only */
	int folder; /* -1: in memory */
};

/* --- entries --- */

struct entry {
	struct str name, text;
	size_t at, size; /* in the run */
};

static size_t get32(const char *p)
{
	const unsigned char *u = (const unsigned char *)p;

	return (size_t)u[0] | (size_t)u[1] << 8 | (size_t)u[2] << 16 | (size_t)u[3] << 24;
}

/* The entry at that position; false if the run is damaged. */
static bool entry_at(struct str all, size_t at, struct entry *ret)
{
	size_t name, text;

	if (all.n - at < HEAD)
		return false;
	name = get32(all.p + at);
	text = get32(all.p + at + 4);
	if (name > OAUTH_STORE_NAME_MAX || text > OAUTH_STORE_TEXT_MAX ||
	    name + text > all.n - at - HEAD)
		return false;
	*ret = (struct entry){ .name = { all.p + at + HEAD, name },
			       .text = { all.p + at + HEAD + name, text },
			       .at = at,
			       .size = HEAD + name + text };
	return true;
}

static int damaged(struct err *e)
{
	return err_set(
		e, ERR_INVALID,
		"the token store is damaged, or sealed with another key; nothing was changed: "
		"remove its folder to log in anew");
}

/* 1 and the entry, or 0. The whole run is checked. */
static int store_find(struct str all, struct str name, struct entry *ret, struct err *e)
{
	struct entry x = { .size = 0 };
	int found = 0;

	for (size_t at = 0; at < all.n; at += x.size) {
		if (!entry_at(all, at, &x))
			return damaged(e);
		if (str_eq(x.name, name)) {
			*ret = x;
			found = 1;
		}
	}
	return found;
}

static void store_cut(struct buf *all, const struct entry *x)
{
	size_t n = x->size, end = all->n - n;

	memmove(all->p + x->at, all->p + x->at + n, all->n - x->at - n);
	explicit_bzero(all->p + end, n);
	all->n = end;
}

static bool store_begins(struct str s, struct str with)
{
	return s.n >= with.n && memcmp(s.p, with.p, with.n) == 0;
}

/* The oldest entry that may be removed. */
static bool oldest(struct str all, struct entry *x)
{
	for (size_t at = 0; at < all.n && entry_at(all, at, x); at += x->size) {
		if (store_begins(x->name, STR_LIT("token\n")) ||
		    store_begins(x->name, STR_LIT("client\n")))
			return true;
	}
	return false;
}

static bool has_room(const struct buf *all, size_t more)
{
	struct entry x = { .size = 0 };
	size_t n = 0;

	for (size_t at = 0; at < all->n && entry_at(buf_str(all), at, &x); at += x.size)
		n++;
	return all->n + more <= OAUTH_STORE_BYTES_MAX && n < OAUTH_STORE_ENTRIES;
}

static int store_append(struct buf *all, struct str name, struct str text, struct err *e)
{
	size_t more = HEAD + name.n + text.n;
	unsigned char head[HEAD];
	struct entry x;

	if (name.n > OAUTH_STORE_NAME_MAX || text.n > OAUTH_STORE_TEXT_MAX)
		return err_set(e, ERR_LIMIT, "this is too large for the token store");
	while (!has_room(all, more)) {
		if (!oldest(buf_str(all), &x))
			return err_set(e, ERR_LIMIT, "the token store is full");
		store_cut(all, &x);
	}
	for (unsigned i = 0; i < 4; i++) {
		head[i] = (unsigned char)(name.n >> 8 * i);
		head[4 + i] = (unsigned char)(text.n >> 8 * i);
	}
	if (buf_add(all, head, HEAD, e) < 0 || buf_add(all, name.p, name.n, e) < 0)
		return -1;
	return buf_add(all, text.p, text.n, e);
}

/* --- files --- */

/* Opens a file of ours that nobody else may read. If it does not exist: -1 with *absent, and e
 * unchanged. */
static int open_own(int folder, const char *name, bool *absent, struct err *e)
{
	autoclose int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	*absent = fd < 0 && errno == ENOENT;
	if (*absent)
		return -1;
	if (fd < 0)
		return err_sys(e, errno, "open the token store");
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "look at the token store");
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return err_set(
			e, ERR_DENIED,
			"the token store must be files of yours that nobody else may read or "
			"write (chmod 600)");
	return take_fd(&fd);
}

/* Writes a new file in the folder, synced to disk; `as` is its final name. */
static int write_new(int folder, const char *as, struct str bytes, bool replace, struct err *e)
{
	char id[ID_MAX], name[ID_MAX + 16];
	autoclose int fd = -1;
	int failed = 0;

	id_make(id, "new");
	snprintf(name, sizeof(name), "%s.%s", as, id);
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(e, errno, "write the token store");
	if (fd_write(fd, bytes.p, bytes.n) < 0 || fsync(fd) < 0)
		failed = errno;
	if (!failed && replace && renameat(folder, name, folder, as) < 0)
		failed = errno;
	if (!failed && !replace && linkat(folder, name, folder, as, 0) < 0 && errno != EEXIST)
		failed = errno;
	if (failed || !replace)
		unlinkat(folder, name, 0);
	if (!failed && fsync(folder) < 0)
		failed = errno;
	return failed ? err_set(e, ERR_IO, "write the token store: %s", strerror(failed)) : 0;
}

static int read_all(int fd, struct buf *to, struct err *e)
{
	ssize_t n;
	char *at;

	do {
		at = buf_reserve(to, 4096, e);
		if (!at)
			return -1;
		n = read(fd, at, 4096);
		if (n < 0 && errno != EINTR)
			return err_sys(e, errno, "read the token store");
		buf_advance(to, n > 0 ? (size_t)n : 0);
	} while (n != 0);
	return 0;
}

static struct seal_ring *read_key(int fd, struct err *e)
{
	AUTO(seal_ring_free) struct seal_ring *ring = NULL;
	char key[SEAL_KEY_BYTES + 1];
	ssize_t n = pread(fd, key, sizeof(key), 0);

	if (n < 0)
		err_sys(e, errno, "read the key of the token store");
	else if (n != SEAL_KEY_BYTES)
		damaged(e);
	else
		ring = seal_ring_new(e);
	if (ring && seal_ring_add(ring, (struct str){ key, SEAL_KEY_BYTES }, e) < 0)
		seal_ring_free(take_ptr(ring));
	explicit_bzero(key, sizeof(key));
	if (ring)
		seal_ring_trim(ring);
	return take_ptr(ring);
}

/* Reads the entries of the file. */
static int store_load(int folder, const struct seal_ring *ring, struct buf *all, struct err *e)
{
	autobuf struct buf text = BUF_INIT(SEALED_MAX);
	struct entry unused;
	bool absent;
	autoclose int fd = open_own(folder, "tokens", &absent, e);

	if (absent)
		return 0;
	if (fd < 0 || read_all(fd, &text, e) < 0 ||
	    !buf_reserve(all, text.n + OAUTH_STORE_TEXT_MAX + OAUTH_STORE_NAME_MAX, e))
		return -1;
	if (seal_open(ring, all, buf_str(&text), str_of(context), 0, e) < 0)
		return e->code == ERR_LIMIT ? -1 : damaged(e);
	return store_find(buf_str(all), STR_NONE, &unused, e) < 0 ? -1 : 0;
}

/* Opens the folder, its key (locked for writing), and its entries. */
struct held {
	int key;
	struct seal_ring *ring;
	struct buf all;
};

static void let_go(struct held *h)
{
	close_fd(&h->key); /* this also releases the lock */
	seal_ring_free(h->ring);
	buf_wipe(&h->all);
}
#define autoheld __attribute__((cleanup(let_go)))

/* A process that was stopped may hold it for ever. */
static int lock(int key, struct err *e)
{
	static const struct timespec pause = { .tv_nsec = 10000000 };

	for (unsigned ms = 0; flock(key, LOCK_EX | LOCK_NB) < 0; ms += 10) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_sys(e, errno, "lock the token store");
		if (ms >= OAUTH_STORE_LOCK_MS)
			return err_set(e, ERR_CONFLICT,
				       "another process holds the token store for too long");
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int store_hold(int folder, struct held *h, bool writes, struct err *e)
{
	bool absent;

	h->key = open_own(folder, "key", &absent, e);
	if (absent)
		return err_set(
			e, ERR_INVALID,
			"the key of the token store is gone; remove its folder to log in anew");
	if (h->key < 0)
		return -1;
	if (writes && lock(h->key, e) < 0)
		return -1;
	h->ring = read_key(h->key, e);
	return h->ring ? store_load(folder, h->ring, &h->all, e) : -1;
}

#define HELD_INIT                                                                                  \
	{                                                                                          \
		.key = -1, .all = BUF_INIT(RUN_MAX)                                                \
	}

/* --- the folder --- */

static int open_folder(const char *path, struct err *e)
{
	autoclose int fd = -1;
	struct stat st;

	if (path[0] != '/')
		return err_set(e, ERR_INVALID, "the folder of the token store is no absolute path");
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make the folder of the token store");
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_sys(e, errno, "open the folder of the token store");
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "look at the folder of the token store");
	if (st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return err_set(e, ERR_DENIED,
			       "the folder of the token store must be yours, and nobody else's to "
			       "read or write (chmod 700)");
	return take_fd(&fd);
}

/* Makes a key if there is none. Tokens without a key are somebody's mistake, and stay. */
static int make_key(int folder, struct err *e)
{
	char bytes[SEAL_KEY_BYTES];
	bool no_key, no_tokens;
	int rc;
	autoclose int key = open_own(folder, "key", &no_key, e), tokens = -1;

	if (!no_key)
		return key < 0 ? -1 : 0;
	tokens = open_own(folder, "tokens", &no_tokens, e);
	if (!no_tokens)
		return tokens < 0 ? -1
				  : err_set(e, ERR_INVALID,
					    "the key of the token store is gone; remove its folder "
					    "to log in anew");
	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return err_sys(e, errno, "make the key of the token store");
	rc = write_new(folder, "key", (struct str){ bytes, sizeof(bytes) }, false, e);
	explicit_bzero(bytes, sizeof(bytes));
	return rc;
}

struct mcp_oauth_store *mcp_oauth_store_new(struct err *e)
{
	struct mcp_oauth_store *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	s->folder = -1;
	s->all.max = RUN_MAX;
	return s;
}

struct mcp_oauth_store *mcp_oauth_store_open(const char *folder, struct err *e)
{
	autoheld struct held h = HELD_INIT;
	AUTO(mcp_oauth_store_free) struct mcp_oauth_store *s = mcp_oauth_store_new(e);

	if (!s)
		return NULL;
	s->folder = open_folder(folder, e);
	if (s->folder < 0 || make_key(s->folder, e) < 0 || store_hold(s->folder, &h, false, e) < 0)
		return NULL;
	return take_ptr(s);
}

void mcp_oauth_store_free(struct mcp_oauth_store *s)
{
	if (!s)
		return;
	close_fd(&s->folder);
	buf_wipe(&s->all);
	free(s);
}

/* --- operations --- */

int oauth_store_get(struct mcp_oauth_store *s, struct str name, struct buf *to, struct err *e)
{
	autoheld struct held h = HELD_INIT;
	struct entry x;
	int found;

	if (s->folder >= 0 && store_hold(s->folder, &h, false, e) < 0)
		return -1;
	found = store_find(buf_str(s->folder >= 0 ? &h.all : &s->all), name, &x, e);
	if (found <= 0)
		return found;
	return buf_add(to, x.text.p, x.text.n, e) < 0 ? -1 : 1;
}

bool oauth_store_is_on_disk(const struct mcp_oauth_store *s)
{
	return s->folder >= 0;
}

bool oauth_store_is_of(const struct oauth_store_change *c, struct str name)
{
	if (!c->end.p)
		return str_eq(c->name, name);
	return store_begins(name, c->name) && name.n >= c->name.n + c->end.n &&
	       memcmp(name.p + name.n - c->end.n, c->end.p, c->end.n) == 0;
}

/* Removes all affected entries: 1 if there were any. */
static int cut_all(struct buf *all, const struct oauth_store_change *c)
{
	struct entry x;
	int found = 0;

	for (size_t at = 0; at < all->n && entry_at(buf_str(all), at, &x);) {
		if (oauth_store_is_of(c, x.name)) {
			store_cut(all, &x);
			found = 1;
		} else {
			at += x.size;
		}
	}
	return found;
}

/* 1 if anything changed. A run that grows in memory leaves copies behind unless it is moved by
 * hand. */
static int change(struct buf *all, const struct oauth_store_change *c, struct err *e)
{
	autowipe struct buf made = BUF_INIT(RUN_MAX);
	struct entry x;
	int found = store_find(buf_str(all), c->name, &x, e);

	if (found < 0)
		return -1;
	if (c->was.p && !(found && str_eq(x.text, c->was)))
		return 0;
	if (!c->text.p)
		return cut_all(all, c);
	if (!buf_reserve(&made, all->n + HEAD + c->name.n + c->text.n, e) ||
	    buf_add(&made, all->p, all->n, e) < 0)
		return -1;
	if (found)
		store_cut(&made, &x);
	if (store_append(&made, c->name, c->text, e) < 0)
		return -1;
	buf_wipe(all);
	*all = made;
	made = BUF_INIT(RUN_MAX);
	return 1;
}

int oauth_store_change(struct mcp_oauth_store *s, const struct oauth_store_change *c, struct err *e)
{
	autoheld struct held h = HELD_INIT;
	autobuf struct buf text = BUF_INIT(SEALED_MAX);
	int rc;

	if (s->folder < 0)
		return change(&s->all, c, e);
	if (store_hold(s->folder, &h, true, e) < 0)
		return -1;
	rc = change(&h.all, c, e);
	if (rc > 0 && (seal(h.ring, &text, buf_str(&h.all), str_of(context), UINT64_MAX, e) < 0 ||
		       write_new(s->folder, "tokens", buf_str(&text), true, e) < 0))
		return -1;
	return rc;
}
