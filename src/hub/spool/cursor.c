/*
 * Reads a spool from any offset: block by block, from memory or through the work pool, and record
 * by record in a block. The file's contents are not trusted: if a record does not fit its block,
 * the rest of that block counts as lost.
 */
#include <errno.h>
#include <unistd.h>

#include "hub/spool/internal.h"

struct spool_cursor *spool_cursor_new(struct spool *s, uint64_t offset, void (*on_more)(void *arg),
				      void *arg, struct err *e)
{
	struct spool_cursor *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	c->spool = spool_ref(s);
	c->next = s->cursors;
	s->cursors = c;
	c->on_more = on_more;
	c->arg = arg;
	c->at = offset;
	return c;
}

void spool_cursor_close(struct spool_cursor *c)
{
	struct spool_cursor **at;

	if (!c)
		return;
	for (at = &c->spool->cursors; *at != c; at = &(*at)->next)
		;
	*at = c->next;
	spool_unref(c->spool); /* a read under way holds it, too */
	c->closed = true;
	if (c->reading)
		return;
	free(c->copy);
	free(c);
}

uint64_t spool_cursor_at(const struct spool_cursor *c)
{
	return c->at;
}

/* ---- from the file ------------------------------------------------------------------------- */

static void read_block(uv_work_t *w)
{
	struct spool_cursor *c = w->data;
	size_t done = 0;
	ssize_t n;

	while (done < c->copy_n) {
		n = pread(c->spool->fd, c->copy + done, c->copy_n - done,
			  (off_t)c->slot * SPOOL_BLOCK + (off_t)done);
		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			break;
	}
	if (done < c->copy_n)
		c->copy_n = 0;
}

static void cursor_on_read(uv_work_t *w, int status)
{
	struct spool_cursor *c = w->data;
	struct spool *s = c->spool;

	c->reading = false;
	if (c->closed) {
		free(c->copy);
		free(c);
	} else {
		c->copied = spool_has(s,
				      c->copy_no); /* else its slot may hold another block by now */
		c->on_more(c->arg);
	}
	spool_work_done(s);
}

static bool start_read(struct spool_cursor *c, uint64_t no)
{
	const struct block *b = spool_block(c->spool, no);

	if (!c->copy && !(c->copy = malloc(SPOOL_BLOCK)))
		return false;
	c->copy_no = no;
	c->copy_n = b->used;
	c->slot = b->slot;
	c->copied = false;
	c->work.data = c;
	if (uv_queue_work(c->spool->spools->loop, &c->work, read_block, cursor_on_read) < 0)
		abort(); /* libuv fails only if a function is missing */
	c->reading = true;
	c->spool->spools->works++;
	spool_ref(c->spool);
	return true;
}

/* ---- in a block ---------------------------------------------------------------------------- */

/* The last block that begins at or before an offset; the first block if there is none. */
static uint64_t find_block(const struct spool *s, uint64_t offset)
{
	uint64_t low = s->first_no, high = s->first_no + s->n;

	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (spool_block(s, middle)->offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void place_in(struct spool_cursor *c, uint64_t no)
{
	if (c->placed && c->no == no)
		return;
	c->placed = true;
	c->no = no;
	c->record = 0;
	c->record_offset = spool_block(c->spool, no)->offset;
}

/* Finds the piece at the cursor. 1: found; 0: the block has no more; -1: the block is invalid. */
static int find_piece(struct spool_cursor *c, struct str bytes, unsigned streams, size_t max,
		      struct spool_piece *ret)
{
	while (c->record + RECORD_HEAD < bytes.n) {
		const char *p = bytes.p + c->record;
		size_t left = bytes.n - c->record - RECORD_HEAD, skip, n;
		uint32_t head, length;

		memcpy(&head, p, sizeof(head));
		length = record_length(head);
		if (length == 0 || length > left)
			return -1;
		if (c->at < c->record_offset + length) {
			skip = (size_t)(c->at - c->record_offset);
			n = length - skip < max ? length - skip : max;
			if (streams >> record_stream(head) & 1) {
				*ret = (struct spool_piece){
					.stream = record_stream(head),
					.offset = c->at,
					.bytes = { p + RECORD_HEAD + skip, n },
				};
				c->at += n;
				return 1;
			}
			c->at = c->record_offset + length;
		}
		/* The last record may still grow. */
		if (length == left)
			return 0;
		c->record += RECORD_HEAD + length;
		c->record_offset += length;
	}
	return 0;
}

static enum spool_step cursor_lose(struct spool_cursor *c, uint64_t to, struct spool_piece *ret)
{
	*ret = (struct spool_piece){ .offset = c->at, .lost = to - c->at };
	c->at = to;
	return SPOOL_LOST;
}

/* The block's bytes. False while they are being read; STR_NONE if they can't be. */
static bool bytes_of(struct spool_cursor *c, uint64_t no, struct str *ret)
{
	const struct block *b = spool_block(c->spool, no);

	*ret = STR_NONE;
	if (b->bytes.p)
		*ret = buf_str(&b->bytes);
	else if (c->copied && c->copy_no == no)
		*ret = c->copy_n ? (struct str){ c->copy, c->copy_n } : STR_NONE;
	else
		return !start_read(c, no);
	return true;
}

/* Reads from the cursor's block. SPOOL_END: it has no more. */
static enum spool_step step_in(struct spool_cursor *c, uint64_t no, unsigned streams, size_t max,
			       struct spool_piece *ret)
{
	const struct block *b = spool_block(c->spool, no);
	uint64_t end = b->offset + b->n;
	struct str bytes;

	if (!(b->streams & streams)) {
		c->at = end;
		return SPOOL_END;
	}
	if (!bytes_of(c, no, &bytes))
		return SPOOL_LATER;
	place_in(c, no);
	switch (bytes.p ? find_piece(c, bytes, streams, max, ret) : -1) {
	case 1:
		return SPOOL_PIECE;
	case 0:
		c->at = end;
		return SPOOL_END;
	default:
		return cursor_lose(c, end, ret);
	}
}

enum spool_step spool_cursor_next(struct spool_cursor *c, unsigned streams, size_t max,
				  struct spool_piece *ret)
{
	struct spool *s = c->spool;
	enum spool_step step = SPOOL_END;

	if (c->reading)
		return SPOOL_LATER;
	while (c->at < s->end && step == SPOOL_END) {
		uint64_t no = s->n ? find_block(s, c->at) : 0;
		const struct block *b = s->n ? spool_block(s, no) : NULL;

		if (!b)
			return cursor_lose(c, s->end, ret);
		if (c->at < b->offset)
			return cursor_lose(c, b->offset, ret);
		if (c->at >= b->offset + b->n)
			return cursor_lose(
				c, spool_has(s, no + 1) ? spool_block(s, no + 1)->offset : s->end,
				ret);
		step = step_in(c, no, streams, max, ret);
	}
	if (step == SPOOL_END && !s->ended) {
		c->waiting = true;
		step = SPOOL_LATER;
	}
	return step;
}
