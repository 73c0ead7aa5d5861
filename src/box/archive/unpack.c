/*
 * Two readers of libarchive, one on top of the other:
 *
 * 	file ── digest ──→ raw: decompress ── digest, bounds ──→ tar: entries ──→ tree
 *
 * so that the digests are of the very bytes that were unpacked, and the bounds hold for every byte
 * that the tar reader is given, headers and padding too. Both are read to their ends behind the
 * last entry.
 */
#include "box/archive/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <sys/stat.h>

#include "base/library.h"
#include "box/archive/confine.h"
#include "box/archive/internal.h"

enum {
	BLOCK = 128 * 1024,
	RECORD = 512, /* of tar */
	RATIO_MAX = 250, /* real layers have less than 20 */
};
#define RATIO_FROM (64ull << 20) /* smaller streams may be as they like */

/* libarchive's destructor gives a status that is of no use here. */
static void reader_free(struct archive *a)
{
	archive_read_free(a);
}
AUTO_DEFINE(reader_free, struct archive)

struct unpacking {
	const struct unpack *u;
	struct archive *raw, *tar;
	struct hash *file, *stream; /* digests */
	uint64_t file_n, stream_n;
	struct tree *tree;
	bool padded;
	struct err *e; /* set by the callbacks below, when they fail */
	char in[BLOCK], out[BLOCK];
};

/* ---- the two readers ------------------------------------------------------------------------- */

static la_ssize_t read_file(struct archive *a, void *arg, const void **ret)
{
	struct unpacking *x = arg;
	ssize_t n;

	do {
		n = read(x->u->from, x->in, sizeof(x->in));
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		archive_set_error(a, errno, "read");
		return err_sys(x->e, errno, "read the archive");
	}
	hash_add(x->file, x->in, (size_t)n);
	x->file_n += (uint64_t)n;
	*ret = x->in;
	return n;
}

static int check_bounds(struct unpacking *x)
{
	if (x->stream_n > x->u->limits.bytes)
		return err_set(x->e, ERR_TOO_LARGE, "it unpacks to more than %llu bytes",
			       (unsigned long long)x->u->limits.bytes);
	if (x->stream_n > RATIO_FROM && x->stream_n / RATIO_MAX > x->file_n)
		return err_set(x->e, ERR_TOO_LARGE, "it unpacks to over %d times its size",
			       RATIO_MAX);
	return 0;
}

static la_ssize_t read_stream(struct archive *a, void *arg, const void **ret)
{
	struct unpacking *x = arg;
	la_ssize_t n = archive_read_data(x->raw, x->out, sizeof(x->out));

	if (n < 0) {
		if (!x->e->code)
			err_set(x->e, ERR_IMAGE, "unpack: %.120s", archive_error_string(x->raw));
		archive_set_error(a, EINVAL, "unpack");
		return -1;
	}
	*ret = x->out;
	if (n == 0) {
		/* Some programs omit the padding of the last file. The digests detect anything else
		 * that is missing. */
		size_t missing = x->padded ? 0 : (RECORD - x->stream_n % RECORD) % RECORD;

		x->padded = true;
		memset(x->out, 0, missing);
		return (la_ssize_t)missing;
	}
	x->stream_n += (uint64_t)n;
	hash_add(x->stream, x->out, (size_t)n);
	if (check_bounds(x) == 0)
		return n;
	archive_set_error(a, EFBIG, "bounds");
	return -1;
}

/* libarchive's message, unless a callback has set a better one. */
static int reader_failed(struct unpacking *x, struct archive *a)
{
	const char *why = archive_error_string(a);

	if (x->e->code)
		return -1;
	return err_set(x->e, archive_errno(a) == ENOMEM ? ERR_LIMIT : ERR_IMAGE, "%.160s",
		       why ? why : "no archive that is known");
}

static int open_readers(struct unpacking *x)
{
	struct archive_entry *entry;
	int rc;

	if (!x->raw || !x->tar || archive_read_support_format_raw(x->raw) != ARCHIVE_OK ||
	    archive_read_support_filter_gzip(x->raw) != ARCHIVE_OK ||
	    archive_read_support_filter_zstd(x->raw) != ARCHIVE_OK ||
	    archive_read_support_format_tar(x->tar) != ARCHIVE_OK)
		return err_set(x->e, ERR_UNSUPPORTED, "libarchive is without tar, gzip or zstd");
	if (archive_read_open(x->raw, x, NULL, read_file, NULL) != ARCHIVE_OK)
		return reader_failed(x, x->raw);
	rc = archive_read_next_header(x->raw, &entry);
	if (rc != ARCHIVE_OK)
		return rc == ARCHIVE_EOF ? err_set(x->e, ERR_IMAGE, "it is empty")
					 : reader_failed(x, x->raw);
	if (archive_filter_count(x->raw) > 2) /* the file itself is one */
		return err_set(x->e, ERR_IMAGE, "it is compressed more than once");
	if (archive_read_open(x->tar, x, NULL, read_stream, NULL) != ARCHIVE_OK)
		return reader_failed(x, x->tar);
	return 0;
}

/* Reads the data after the archive's end, for the digests. A pipe may never end. */
static int unpack_drain(struct unpacking *x)
{
	const void *at;
	la_ssize_t n;

	do {
		n = read_stream(x->tar, x, &at);
	} while (n > 0);
	if (n < 0)
		return -1;
	do {
		n = read_file(x->raw, x, &at);
	} while (n > 0 && x->file_n <= x->u->limits.bytes);
	if (n > 0)
		return err_set(x->e, ERR_TOO_LARGE, "it has more than %llu bytes",
			       (unsigned long long)x->u->limits.bytes);
	return (int)n;
}

/* ---- entries --------------------------------------------------------------------------------- */

static int copy_data(struct unpacking *x, int fd, uint64_t size)
{
	const char *p;
	const void *block;
	la_int64_t at;
	size_t n;
	int rc;

	while ((rc = archive_read_data_block(x->tar, &block, &n, &at)) == ARCHIVE_OK) {
		if (at < 0 || (uint64_t)at > size || n > size - (uint64_t)at)
			return err_set(x->e, ERR_IMAGE, "a file is longer than its header says");
		for (p = block; n > 0;) {
			ssize_t done = pwrite(fd, p, n, at);

			if (done < 0)
				return err_sys(x->e, errno, "write a file of the image");
			p += done;
			at += done;
			n -= (size_t)done;
		}
	}
	return rc == ARCHIVE_EOF ? 0 : reader_failed(x, x->tar);
}

int unpack_set_time(int fd, int64_t seconds)
{
	const struct timespec times[2] = { { .tv_sec = seconds }, { .tv_sec = seconds } };

	return futimens(fd, times);
}

static int add_file(struct unpacking *x, struct archive_entry *entry, struct str path)
{
	la_int64_t size = archive_entry_size(entry);
	autoclose int fd = -1;

	if (size < 0)
		return err_set(x->e, ERR_IMAGE, "%.100s: its size is negative", path.p);
	fd = tree_file(x->tree, path, archive_entry_perm(entry), (uint64_t)size, x->e);
	if (fd < 0 || copy_data(x, fd, (uint64_t)size) < 0)
		return -1;
	if (unpack_set_time(fd, archive_entry_mtime(entry)) < 0)
		return err_sys(x->e, errno, "set the time of %.100s", path.p);
	return 0;
}

/* Names that begin with it are about other names. */
#define WHITEOUT ".wh."
#define OPAQUE WHITEOUT WHITEOUT ".opq"

/* 1: it was none. */
static int add_whiteout(struct unpacking *x, const char *entry)
{
	char path[4096], other[sizeof(path)];
	const char *slash, *name;
	size_t n = strlen(entry), dir;

	while (n > 1 && (entry[n - 1] == '/' || (entry[n - 1] == '.' && entry[n - 2] == '/')))
		n--;
	if (n >= sizeof(path))
		return 1; /* and too long for a file */
	memcpy(path, entry, n);
	path[n] = '\0';
	slash = strrchr(path, '/');
	name = slash ? slash + 1 : path;
	dir = (size_t)(name - path);
	if (strncmp(name, WHITEOUT, strlen(WHITEOUT)) != 0)
		return 1;
	if (strcmp(name, OPAQUE) == 0)
		return tree_opaque(x->tree, dir ? (struct str){ path, dir } : STR_LIT("."), x->e);
	name += strlen(WHITEOUT);
	if (strncmp(name, WHITEOUT, strlen(WHITEOUT)) == 0)
		return 0; /* of a file system that nobody has any more */
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_set(x->e, ERR_IMAGE, "%.100s: a whiteout of no name", path);
	memcpy(other, path, dir);
	memcpy(other + dir, name, strlen(name) + 1);
	return tree_whiteout(x->tree, str_of(other), x->e);
}

/* Below /dev every sandbox has its own. */
static bool in_dev(const char *path)
{
	while (strncmp(path, "./", 2) == 0)
		path += 2;
	return strncmp(path, "dev/", 4) == 0;
}

static int add_entry(struct unpacking *x, struct archive_entry *entry)
{
	const char *name = archive_entry_pathname(entry), *hard = archive_entry_hardlink(entry);
	const char *soft = archive_entry_symlink(entry);
	struct str path = str_of(name);
	int rc;

	if (!name)
		return err_set(x->e, ERR_IMAGE, "an entry without a name that can be read");
	rc = x->u->layer ? add_whiteout(x, name) : 1;
	if (rc <= 0)
		return rc;
	if (hard)
		return tree_link(x->tree, path, str_of(hard), x->e);
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		return add_file(x, entry, path);
	case AE_IFDIR:
		return tree_dir(x->tree, path, archive_entry_perm(entry), x->e);
	case AE_IFLNK:
		return tree_symlink(x->tree, path, str_of(soft), x->e);
	default:
		if (in_dev(name))
			return 0;
		return err_set(x->e, ERR_IMAGE, "%.100s: neither a file nor a directory nor a link",
			       name);
	}
}

static int read_entries(struct unpacking *x)
{
	struct archive_entry *entry;
	int rc;

	while ((rc = archive_read_next_header(x->tar, &entry)) == ARCHIVE_OK) {
		if (add_entry(x, entry) < 0)
			return -1;
	}
	/* a good archive causes no warnings of the reader */
	return rc == ARCHIVE_EOF ? unpack_drain(x) : reader_failed(x, x->tar);
}

/* ---- in the confined process ----------------------------------------------------------------- */

int unpack_archive_here(const struct unpack *u, const struct tree_count *count,
			struct unpacked *ret, struct err *e)
{
	AUTO(reader_free) struct archive *raw = archive_read_new();
	AUTO(reader_free) struct archive *tar = archive_read_new();
	AUTO(tree_free)
	struct tree *tree = tree_new(u->to, &u->limits, count, e);
	AUTO(hash_free) struct hash *file = hash_new(e);
	AUTO(hash_free) struct hash *stream = hash_new(e);
	autofree struct unpacking *x = calloc(1, sizeof(*x));

	if (!tree || !file || !stream)
		return -1;
	if (!x)
		return err_set(e, ERR_LIMIT, "out of memory");
	x->u = u;
	x->raw = raw;
	x->tar = tar;
	x->file = file;
	x->stream = stream;
	x->tree = tree;
	x->e = e;
	if (open_readers(x) < 0 || read_entries(x) < 0)
		return -1;
	ret->count = *tree_count(tree);
	ret->size = x->file_n;
	hash_end(file, ret->digest);
	hash_end(stream, ret->stream);
	return 0;
}

struct job {
	const struct unpack *u;
	struct tree_count count;
};

static int unpack_here(void *arg, void *out, struct err *e)
{
	const struct job *j = arg;

	return unpack_archive_here(j->u, &j->count, out, e);
}

/* The confined process's answer may be anything, not only text. */
static int check_result(struct unpacked *ret, const struct unpack *u, struct err *e)
{
	ret->digest[HASH_HEX] = '\0';
	ret->stream[HASH_HEX] = '\0';
	if (!hash_is_hex(str_of(ret->digest)) || !hash_is_hex(str_of(ret->stream)) ||
	    ret->count.bytes > u->limits.bytes || ret->count.entries > u->limits.entries)
		return err_set(e, ERR_BUG, "an answer of the unpacking process");
	return 0;
}

int unpack_archive(const struct unpack *u, const struct tree_count *count, struct unpacked *ret,
		   struct err *e)
{
	const struct confine c = {
		.write = u->to, .read = -1, .from = u->from, .to = -1, .what = "unpack the archive"
	};
	struct job j = { u, *count };
	struct unpacked got = { 0 };

	/* the confined process may open no files */
	if (library_load("archive", e) < 0 || hash_load(e) < 0 ||
	    confine_run(&c, unpack_here, &j, &got, sizeof(got), e) < 0 ||
	    check_result(&got, u, e) < 0)
		return -1;
	*ret = got;
	return 0;
}

static int copy_here(void *arg, void *out, struct err *e)
{
	const struct job *j = arg;
	struct unpacked *ret = out;
	AUTO(tree_free)
	struct tree *tree = tree_new(j->u->to, &j->u->limits, &j->count, e);
	AUTO(hash_free) struct hash *digest = hash_new(e);

	if (!tree || !digest || unpack_copy(j->u, tree, digest, e) < 0)
		return -1;
	ret->count = *tree_count(tree);
	hash_end(digest, ret->digest);
	memcpy(ret->stream, ret->digest, sizeof(ret->stream));
	return 0;
}

int unpack_copied(const struct unpack *u, const struct tree_count *count, struct unpacked *ret,
		  struct err *e)
{
	struct confine c = {
		.write = u->to, .read = -1, .from = -1, .to = -1, .what = "copy the files"
	};
	struct job j = { u, *count };
	struct unpacked got = { 0 };
	struct stat st;

	if (fstat(u->from, &st) < 0)
		return err_sys(e, errno, "look at what is copied");
	*(S_ISDIR(st.st_mode) ? &c.read : &c.from) = u->from;
	if (hash_load(e) < 0 || confine_run(&c, copy_here, &j, &got, sizeof(got), e) < 0 ||
	    check_result(&got, u, e) < 0)
		return -1;
	*ret = got;
	return 0;
}
