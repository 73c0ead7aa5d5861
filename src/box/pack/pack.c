#include "box/pack/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/version.h"
#include "box/archive/confine.h"
#include "box/archive/tar.h"

enum { BLOCK = 128 * 1024, IN = 0, OUT = 1 };

struct pack {
	uint64_t max; /* limit for the tar */
	const char *expect; /* the digest that the file must have; NULL: any */
	const char *meta; /* description of a new archive */
	bool check; /* the input is copied to the output */
	struct err *e;
	struct hash *hash;
	struct pack_answer *ret;
	/* for check */
	struct tar_reader tar;
	size_t entries, meta_n;
	bool in_meta;
	char block[BLOCK];
};

/* libarchive's destructors return a status that is of no use here. */
static void reader_free(struct archive *a)
{
	archive_read_free(a);
}
AUTO_DEFINE(reader_free, struct archive)

static void writer_free(struct archive *a)
{
	archive_write_free(a);
}
AUTO_DEFINE(writer_free, struct archive)

static int fail_write(struct err *e, int errnum)
{
	if (errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG)
		return err_set(e, ERR_STORE_FULL, "there is no room for the snapshot on the disk");
	if (errnum == EPIPE)
		return err_set(e, ERR_CANCELLED, "nobody takes the snapshot's files any more");
	return err_sys(e, errnum, "write the snapshot");
}

static int pack_count(struct pack *p, size_t n)
{
	p->ret->unpacked += n;
	return p->ret->unpacked <= p->max
		     ? 0
		     : err_set(p->e, ERR_TOO_LARGE, "the snapshot has more than %" PRIu64 " bytes",
			       p->max);
}

/* ---- packing --------------------------------------------------------------------------------- */

static la_ssize_t pack_put(struct archive *a, void *arg, const void *bytes, size_t n)
{
	struct pack *p = arg;

	if (fd_write(OUT, bytes, n) < 0) {
		fail_write(p->e, errno);
		archive_set_error(a, EIO, "write");
		return -1;
	}
	hash_add(p->hash, bytes, n);
	p->ret->bytes += n;
	return (la_ssize_t)n;
}

/* The n bytes in the block. */
static int put_data(struct pack *p, struct archive *a, size_t n)
{
	if (pack_count(p, n) < 0)
		return -1;
	if (archive_write_data(a, p->block, n) == (la_ssize_t)n)
		return 0;
	return p->e->code ? -1 : err_set(p->e, ERR_IO, "compress the snapshot");
}

static int put_meta(struct pack *p, struct archive *a)
{
	size_t size = strlen(p->meta), n;
	const struct tar_entry e = {
		.type = TAR_FILE, .mode = 0600, .size = size, .path = PACK_META, .link = ""
	};

	static_assert(PACK_META_MAX + TAR_HEAD_MAX + TAR_BLOCK < BLOCK, "all of it in one block");
	n = tar_head(&e, p->block);
	memcpy(p->block + n, p->meta, size);
	memset(p->block + n + size, 0, tar_padding(size));
	return put_data(p, a, n + size + tar_padding(size));
}

static int pack_all(struct pack *p, struct archive *a)
{
	ssize_t n;

	if (put_meta(p, a) < 0)
		return -1;
	while ((n = read(IN, p->block, BLOCK)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(p->e, errno, "read what the sandbox has changed");
		if (put_data(p, a, (size_t)n) < 0)
			return -1;
	}
	memset(p->block, 0, TAR_END_BYTES);
	if (put_data(p, a, TAR_END_BYTES) < 0)
		return -1;
	if (archive_write_close(a) == ARCHIVE_OK)
		return 0;
	return p->e->code ? -1 : err_set(p->e, ERR_IO, "compress the snapshot");
}

static int pack(struct pack *p)
{
	AUTO(writer_free) struct archive *a = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	bool ready = false;

	if (a && entry) {
		archive_entry_set_pathname(entry, "snapshot");
		archive_entry_set_filetype(entry, AE_IFREG);
		ready = archive_write_set_format_raw(a) == ARCHIVE_OK &&
			archive_write_add_filter_zstd(a) == ARCHIVE_OK &&
			archive_write_set_filter_option(a, "zstd", "compression-level", "1") ==
				ARCHIVE_OK &&
			archive_write_set_bytes_in_last_block(a, 1) == ARCHIVE_OK &&
			archive_write_open(a, p, NULL, pack_put, NULL) == ARCHIVE_OK &&
			archive_write_header(a, entry) == ARCHIVE_OK;
	}
	archive_entry_free(entry);
	if (ready)
		return pack_all(p, a);
	return p->e->code ? -1 : err_set(p->e, ERR_UNSUPPORTED, "libarchive is without zstd");
}

/* ---- unpacking ------------------------------------------------------------------------------- */

struct input {
	struct pack *p;
	char block[BLOCK];
};

/* Reads the next bytes of the file. */
static ssize_t read_block(struct input *in)
{
	struct pack *p = in->p;
	ssize_t n;

	do {
		n = read(IN, in->block, sizeof(in->block));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(p->e, errno, "read the snapshot");
	hash_add(p->hash, in->block, (size_t)n);
	p->ret->bytes += (uint64_t)n;
	if (p->ret->bytes > p->max)
		return err_set(p->e, ERR_TOO_LARGE, "the snapshot is larger than can be");
	if (p->check && fd_write(OUT, in->block, (size_t)n) < 0)
		return fail_write(p->e, errno);
	return n;
}

static la_ssize_t pack_get(struct archive *a, void *arg, const void **ret)
{
	struct input *in = arg;
	ssize_t n = read_block(in);

	if (n < 0)
		archive_set_error(a, EIO, "read");
	*ret = in->block;
	return n;
}

static int damaged(struct pack *p, const char *how)
{
	return p->e->code ? -1
			  : err_set(p->e, ERR_SNAPSHOT, "the snapshot is damaged: %.120s", how);
}

/* Stops early at an archive that could never be restored. The hub reads the description properly
 * and decides. An archive that another writer laid out differently is only refused later. */
static void bound(struct pack *p)
{
	static const char key[] = "\"disk\":";
	const char *at = strstr(p->ret->meta, key);
	uint64_t disk = at ? strtoull(at + strlen(key), NULL, 10) : 0;

	if (disk > 0 && disk < p->max && pack_max(disk) < p->max)
		p->max = pack_max(disk);
}

static int look_at(struct pack *p, size_t n)
{
	const struct tar_entry *e = &p->tar.entry;
	const char *at = p->block;

	for (;;) {
		size_t room = PACK_META_MAX - p->meta_n, some;

		switch (tar_read(&p->tar, &at, &n)) {
		case TAR_MORE:
			return 0;
		case TAR_ENTRY:
			/* a longer description is ignored */
			p->in_meta = p->entries++ == 0 && e->type == TAR_FILE &&
				     strcmp(e->path, PACK_META) == 0 && e->size <= PACK_META_MAX;
			break;
		case TAR_CONTENT:
			some = p->tar.content_n < room ? p->tar.content_n : room;
			if (!p->in_meta)
				break;
			memcpy(p->ret->meta + p->meta_n, p->tar.content, some);
			p->meta_n += some;
			break;
		case TAR_PASSED:
			return err_set(
				p->e, ERR_SNAPSHOT,
				"the snapshot has what no sandbox can have, such as a device");
		case TAR_BAD:
			return damaged(p, tar_why_text(p->tar.why));
		case TAR_ENTRY_END:
			if (p->in_meta)
				bound(p);
			break;
		case TAR_END:
			break;
		}
	}
}

static int use(struct pack *p, size_t n)
{
	if (pack_count(p, n) < 0)
		return -1;
	if (p->check)
		return look_at(p, n);
	return fd_write(OUT, p->block, n) < 0 ? fail_write(p->e, errno) : 0;
}

static int open_reader(struct archive *a, struct input *in)
{
	struct archive_entry *entry;

	if (!a || archive_read_support_format_raw(a) != ARCHIVE_OK ||
	    archive_read_support_filter_zstd(a) != ARCHIVE_OK)
		return err_set(in->p->e, ERR_UNSUPPORTED, "libarchive is without zstd");
	if (archive_read_open(a, in, NULL, pack_get, NULL) != ARCHIVE_OK ||
	    archive_read_next_header(a, &entry) != ARCHIVE_OK)
		return damaged(in->p, "it is no tar.zst");
	if (archive_filter_count(a) != 2) /* the file itself counts as one */
		return damaged(in->p, "it is not compressed by zstd, once");
	return 0;
}

static int pack_unpack(struct pack *p)
{
	AUTO(reader_free) struct archive *a = archive_read_new();
	autofree struct input *in = calloc(1, sizeof(*in));
	la_ssize_t n;

	if (!in)
		return err_set(p->e, ERR_LIMIT, "out of memory");
	in->p = p;
	if (open_reader(a, in) < 0)
		return -1;
	while ((n = archive_read_data(a, p->block, BLOCK)) > 0) {
		if (use(p, (size_t)n) < 0)
			return -1;
	}
	if (n < 0)
		return damaged(p, archive_error_string(a) ? archive_error_string(a) : "");
	while ((n = read_block(in)) > 0)
		continue; /* what follows the compressed stream belongs to the file, too */
	if (n < 0)
		return -1;
	if (p->check && tar_reader_end(&p->tar) != TAR_FINE)
		return damaged(p, tar_why_text(tar_reader_end(&p->tar)));
	return 0;
}

/* ---- the program ----------------------------------------------------------------------------- */

struct task {
	int (*run)(struct pack *p);
	uint64_t max;
	const char *expect, *meta;
	bool check;
};

static int run_task(void *arg, void *out, struct err *e)
{
	const struct task *t = arg;
	autofree struct pack *p = calloc(1, sizeof(*p));
	AUTO(hash_free) struct hash *hash = hash_new(e);

	if (!p || !hash)
		return err_set(e, ERR_LIMIT, "out of memory");
	p->max = t->max;
	p->expect = t->expect;
	p->meta = t->meta;
	p->check = t->check;
	p->e = e;
	p->hash = hash;
	p->ret = out;
	tar_reader_init(&p->tar);
	if (t->run(p) < 0)
		return -1;
	hash_end(hash, p->ret->digest);
	if (p->expect && strcmp(p->expect, p->ret->digest) != 0)
		return damaged(p, "its digest is another one");
	return 0;
}

/* The confined process may have been taken over by its input, so its answer is checked. */
static int check_answer(struct pack_answer *a, struct err *e)
{
	a->digest[HASH_HEX] = '\0';
	a->meta[PACK_META_MAX] = '\0';
	return hash_is_hex(str_of(a->digest)) ? 0 : err_set(e, ERR_BUG, "an answer of holt-pack");
}

static int read_task(int argc, char **argv, struct task *ret)
{
	char *end = NULL;

	*ret = (struct task){ .max = argc > 2 ? strtoull(argv[2], &end, 10) : 0 };
	if (!end || *end || end == argv[2])
		return -1;
	if (strcmp(argv[1], "pack") == 0 && argc == 4 && strlen(argv[3]) <= PACK_META_MAX) {
		ret->run = pack;
		ret->meta = argv[3];
	} else if (strcmp(argv[1], "check") == 0 && argc == 3) {
		ret->run = pack_unpack;
		ret->check = true;
	} else if (strcmp(argv[1], "unpack") == 0 && argc == 4) {
		ret->run = pack_unpack;
		ret->expect = argv[3];
	}
	return ret->run ? 0 : -1;
}

int main(int argc, char **argv)
{
	static struct pack_answer answer;
	const struct confine c = { .write = -1,
				   .read = -1,
				   .from = IN,
				   .to = OUT,
				   .what = "pack the snapshot",
				   .crash = ERR_SNAPSHOT };
	struct err e = ERR_INIT;
	struct task task;
	int rc;

	if (VERSION_TOLD("holt-pack", argc, argv))
		return 0;
	if (read_task(argc, argv, &task) < 0) {
		fprintf(stderr, "holt-pack: started by holt only\n");
		return 125;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	rc = confine_run(&c, run_task, &task, &answer, sizeof(answer), &e);
	if (rc == 0)
		rc = check_answer(&answer, &e);
	if (rc == 0 && (task.run == pack || task.check) && fsync(OUT) < 0)
		rc = fail_write(&e, errno);
	if (rc < 0)
		answer = (struct pack_answer){ .err = e };
	return fd_write(PACK_ANSWER_FD, &answer, sizeof(answer)) < 0 ? 1 : 0;
}
