#include "hub/spool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"
#include "hub/spool/internal.h"

enum {
	SMALL = 16 << 10, /* an output of this size needs no file */
	SPARE = 16 << 20, /* part of a disk left free for others, such as the registry */
};

/* ---- blocks -------------------------------------------------------------------------------- */

static uint64_t next_no(const struct spool *s)
{
	return s->first_no + s->n;
}

static void drop_oldest(struct spool *s)
{
	buf_fini(&spool_block(s, s->first_no)->bytes);
	s->head = (s->head + 1) % s->room;
	s->first_no++;
	s->n--;
	if (s->write_no < s->first_no)
		s->write_no = s->first_no;
}

static bool grow(struct spool *s)
{
	size_t room = s->room ? 2 * s->room : 8;
	struct block *more = reallocarray(NULL, room, sizeof(*more));

	if (!more)
		return false;
	for (size_t i = 0; i < s->n; i++)
		more[i] = s->blocks[(s->head + i) % s->room];
	free(s->blocks);
	s->blocks = more;
	s->room = room;
	s->head = 0;
	return true;
}

/* NULL without memory. */
static struct block *new_block(struct spool *s)
{
	struct block *b;

	if (s->n == s->room && !grow(s))
		return NULL;
	s->n++;
	b = spool_block(s, next_no(s) - 1);
	*b = (struct block){ .offset = s->end, .bytes = BUF_INIT(SPOOL_BLOCK) };
	return b;
}

static struct block *last_block(const struct spool *s)
{
	struct block *b = s->n ? spool_block(s, next_no(s) - 1) : NULL;

	return b && !b->sealed ? b : NULL;
}

static uint32_t head_of(const struct block *b, uint32_t at)
{
	uint32_t head;

	memcpy(&head, b->bytes.p + at, sizeof(head));
	return head;
}

/* A new record, or more of the last one. */
static int spool_put(struct block *b, unsigned stream, const char *p, uint32_t n, struct err *e)
{
	bool same = b->used > 0 && record_stream(head_of(b, b->last)) == stream;
	uint32_t length = same ? record_length(head_of(b, b->last)) : 0;
	uint32_t head = (length + n) | (stream ? RECORD_STREAM : 0);
	uint32_t at = same ? b->last : b->used;

	if (!buf_reserve(&b->bytes, n + (same ? 0 : RECORD_HEAD), e))
		return -1;
	if (!same)
		buf_advance(&b->bytes, RECORD_HEAD);
	memcpy(b->bytes.p + at, &head, sizeof(head));
	memcpy(b->bytes.p + b->bytes.n, p, n);
	buf_advance(&b->bytes, n);
	b->last = at;
	b->used = (uint32_t)b->bytes.n;
	b->n += n;
	b->streams |= (uint8_t)(1u << stream);
	return 0;
}

static void spool_count(struct spool *s, unsigned stream, uint64_t n)
{
	s->came[stream] += n;
	s->end += n;
}

/* As much as fits in the last block, or one byte: then the next block takes it. */
static size_t spool_fill(struct spool *s, unsigned stream, struct str bytes)
{
	struct block *b = last_block(s);
	uint32_t left, n;
	struct err e;

	if (!b)
		b = new_block(s);
	left = b ? SPOOL_BLOCK - b->used : 0;
	if (left <= RECORD_HEAD && b) {
		b->sealed = true;
		return 0;
	}
	n = bytes.n < left - RECORD_HEAD ? (uint32_t)bytes.n : left - RECORD_HEAD;
	if (!b || spool_put(b, stream, bytes.p, n, &e) < 0) {
		/* Without memory the bytes are lost; the next block begins after them. */
		if (b && b->used == 0)
			s->n--;
		else if (b)
			b->sealed = true;
		n = bytes.n < SPOOL_BLOCK ? (uint32_t)bytes.n : SPOOL_BLOCK;
	}
	spool_count(s, stream, n);
	return n;
}

/* ---- the file ------------------------------------------------------------------------------ */

/* A file without a name, also on file systems without O_TMPFILE. */
static int make_file(const char *folder)
{
	char path[4096], id[ID_MAX];
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	id_make(id, "spool");
	if (snprintf(path, sizeof(path), "%s/%s", folder, id) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		unlink(path);
	return fd;
}

static off_t spool_place(uint32_t slot)
{
	return (off_t)slot * SPOOL_BLOCK;
}

/* Runs in the work pool. The bytes stay in place: their block is sealed and not dropped
 * meanwhile. */
static void write_block(uv_work_t *w)
{
	struct spool *s = w->data;
	size_t done = 0;

	s->errnum = 0;
	if (s->fd < 0 && (s->fd = make_file(s->spools->folder)) < 0)
		s->errnum = errno;
	else if (s->grown && fd_disk_is_short(s->fd, SPARE))
		s->errnum = ENOSPC;
	while (!s->errnum && done < s->write.n) {
		ssize_t n = pwrite(s->fd, s->write.p + done, s->write.n - done,
				   spool_place(s->slot) + (off_t)done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			s->errnum = n == 0 ? EIO : errno;
	}
}

static bool take_disk(struct spool *s)
{
	struct err e;

	if (s->slots >= s->slots_max)
		return false;
	if (budget_take(&s->spools->disk, SPOOL_BLOCK, &e) == 0)
		return true;
	if (s->spools->make_room)
		s->spools->make_room(s->spools->arg);
	return budget_take(&s->spools->disk, SPOOL_BLOCK, &e) == 0;
}

/* A slot for one more block: a free one, a new one, or that of the oldest block, which is
 * dropped. False if there is none. */
static bool take_slot(struct spool *s)
{
	if (s->n_spare > 0) {
		s->grown = false;
		s->slot = s->spare[--s->n_spare];
		return true;
	}
	s->grown = take_disk(s);
	if (s->grown) {
		s->slot = s->slots++;
		return true;
	}
	if (s->n == 0 || !spool_block(s, s->first_no)->written)
		return false;
	s->slot = spool_block(s, s->first_no)->slot;
	drop_oldest(s);
	return true;
}

static void on_written(uv_work_t *w, int status);

static void start_write(struct spool *s)
{
	if (s->writing || s->write_no >= next_no(s) || !spool_block(s, s->write_no)->sealed ||
	    !take_slot(s))
		return;
	s->work.data = s;
	s->write = buf_str(&spool_block(s, s->write_no)->bytes);
	if (uv_queue_work(s->spools->loop, &s->work, write_block, on_written) < 0)
		abort(); /* libuv fails only if a function is missing */
	s->writing = true;
	s->spools->works++;
	spool_ref(s);
}

/* Called before the blocks outnumber the slots. */
static void thin_out(struct spool *s)
{
	const struct block *first = s->n ? spool_block(s, s->first_no) : NULL;

	if (s->n <= s->slots_max || s->n <= s->o.memory + 1u || !first->written ||
	    s->n_spare == ARRAY_LEN(s->spare))
		return;
	s->spare[s->n_spare++] = first->slot;
	drop_oldest(s);
}

/* Frees the memory of written blocks, except the newest while more output comes. Blocks that
 * can't be written are dropped. */
static void spool_trim(struct spool *s)
{
	size_t most = s->ended && s->o.keep ? 1 : s->o.memory + 1u;

	for (uint64_t no = s->write_no; no > s->first_no && spool_has(s, no - 1); no--) {
		struct block *b = spool_block(s, no - 1);

		if (!b->bytes.p)
			break;
		if (s->ended || next_no(s) - (no - 1) > most)
			buf_fini(&b->bytes);
	}
	while (!s->writing && s->n > most && !spool_block(s, s->first_no)->written)
		drop_oldest(s);
}

static bool is_full(const struct spool *s)
{
	return s->writing && next_no(s) - s->write_no > s->o.memory;
}

static void on_written(uv_work_t *w, int status)
{
	struct spool *s = w->data;

	s->writing = false;
	if (s->errnum) {
		/* The file stops growing. The slots below the failed one are good. */
		if (s->trouble.code == ERR_NONE)
			err_sys(&s->trouble, s->errnum, "the file for its output");
		if (s->grown) {
			s->slots--;
			budget_give(&s->spools->disk, SPOOL_BLOCK);
		}
		s->slots_max = s->grown ? s->slots : 0;
	} else {
		spool_block(s, s->write_no)->slot = s->slot;
		spool_block(s, s->write_no)->written = true;
		s->write_no++;
	}
	start_write(s);
	spool_trim(s);
	if (s->held && !is_full(s)) {
		s->held = false;
		if (s->o.on_room && !s->ended)
			s->o.on_room(s->o.arg);
	}
	spool_work_done(s);
}

void spool_work_done(struct spool *s)
{
	struct spool_set *spools = s->spools;

	spool_unref(s);
	if (--spools->works == 0 && spools->on_quiet)
		spools->on_quiet(spools->arg);
}

/* ---- public -------------------------------------------------------------------------------- */

static void spool_tell(struct spool *s)
{
	struct spool_cursor *next;

	spool_ref(s);
	for (struct spool_cursor *c = s->cursors; c; c = next) {
		next = c->next;
		if (!c->waiting || c->reading)
			continue;
		c->waiting = false;
		c->on_more(c->arg);
	}
	spool_unref(s);
}

struct spool *spool_new(struct spool_set *spools, const struct spool_options *o, struct err *e)
{
	struct spool *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	s->refs = 1;
	s->spools = spools;
	s->o = *o;
	s->fd = -1;
	s->slots_max = spools->folder ? (uint32_t)((o->keep + SPOOL_BLOCK - 1) / SPOOL_BLOCK) : 0;
	return s;
}

struct spool *spool_ref(struct spool *s)
{
	s->refs++;
	return s;
}

void spool_unref(struct spool *s)
{
	if (!s || --s->refs)
		return;
	while (s->n)
		drop_oldest(s);
	budget_give(&s->spools->disk, (size_t)s->slots * SPOOL_BLOCK);
	close_fd(&s->fd);
	free(s->blocks);
	free(s);
}

bool spool_add(struct spool *s, unsigned stream, struct str bytes)
{
	while (bytes.n > 0) {
		size_t n = spool_fill(s, stream, bytes);

		bytes.p += n;
		bytes.n -= n;
		thin_out(s);
		start_write(s);
		spool_trim(s);
	}
	s->held = is_full(s);
	spool_tell(s);
	return s->held;
}

void spool_skip(struct spool *s, unsigned stream, uint64_t n)
{
	struct block *b = last_block(s);

	if (b)
		b->sealed = true;
	spool_count(s, stream, n);
	spool_tell(s);
}

void spool_end(struct spool *s)
{
	struct block *b = last_block(s);

	s->ended = true;
	if (b && (s->n > 1 || b->used > SMALL))
		b->sealed = true;
	start_write(s);
	spool_trim(s);
	spool_tell(s);
}

void spool_stats(const struct spool *s, struct spool_stats *ret)
{
	*ret = (struct spool_stats){
		.first = s->n ? spool_block(s, s->first_no)->offset : s->end,
		.end = s->end,
		.disk = (uint64_t)s->slots * SPOOL_BLOCK,
		.trouble = s->trouble.code ? &s->trouble : NULL,
	};
	memcpy(ret->came, s->came, sizeof(ret->came));
	for (uint64_t no = s->first_no; spool_has(s, no); no++)
		ret->memory += spool_block(s, no)->bytes.cap;
}
