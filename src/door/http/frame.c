#include "door/http/frame.h"

/* The length that a head says. */
static int read_head(const unsigned char *p, size_t *ret_n, struct err *e)
{
	if (p[0] & FRAME_COMPRESSED)
		return err_set(e, ERR_INVALID, "a message is compressed; send identity");
	if (p[0] != 0)
		return err_set(e, ERR_INVALID, "a message has flags that no client sends: 0x%02x",
			       p[0]);
	*ret_n = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
	return 0;
}

int frame_next(struct frames *f, struct str *ret, struct err *e)
{
	size_t n = 0;

	if (f->left.n == 0)
		return 0;
	if (f->left.n < FRAME_HEAD)
		return err_set(e, ERR_INVALID, "the last message has no whole head of %d bytes",
			       FRAME_HEAD);
	if (read_head((const unsigned char *)f->left.p, &n, e) < 0)
		return -1;
	if (n > f->left.n - FRAME_HEAD)
		return err_set(e, ERR_INVALID, "a message of %zu bytes has only %zu", n,
			       f->left.n - FRAME_HEAD);
	*ret = (struct str){ f->left.p + FRAME_HEAD, n };
	f->left = (struct str){ ret->p + n, f->left.n - FRAME_HEAD - n };
	return 1;
}

/* ---- piece by piece -------------------------------------------------------------------------- */

void frame_in_fini(struct frame_in *f)
{
	buf_fini(&f->text);
}

bool frame_in_whole(const struct frame_in *f)
{
	return f->head_n == 0;
}

/* At most n bytes off the front. */
static struct str frame_take(struct str *bytes, size_t n)
{
	struct str front = { bytes->p, bytes->n < n ? bytes->n : n };

	*bytes = (struct str){ bytes->p + front.n, bytes->n - front.n };
	return front;
}

int frame_in_next(struct frame_in *f, struct str *bytes, struct str *ret, struct err *e)
{
	struct str part;

	if (f->head_n < FRAME_HEAD) {
		part = frame_take(bytes, FRAME_HEAD - f->head_n);
		memcpy(f->head + f->head_n, part.p, part.n);
		f->head_n += part.n;
		if (f->head_n < FRAME_HEAD)
			return 0;
		/* The length is judged before anything is kept. */
		f->text.n = 0;
		if (read_head(f->head, &f->n, e) < 0)
			return -1;
		if (f->n > f->text.max)
			return err_set(e, ERR_TOO_LARGE,
				       "a message has %zu bytes; send several of at most %zu", f->n,
				       f->text.max);
	}
	part = frame_take(bytes, f->n - f->text.n);
	if (buf_add(&f->text, part.p, part.n, e) < 0)
		return -1;
	if (f->text.n < f->n)
		return 0;
	f->head_n = 0;
	*ret = buf_str(&f->text);
	return 1;
}

/* ---- out ------------------------------------------------------------------------------------- */

void frame_head(char to[FRAME_HEAD], unsigned flags, size_t n)
{
	to[0] = (char)flags;
	for (int i = 1; i < FRAME_HEAD; i++)
		to[i] = (char)(n >> (8 * (FRAME_HEAD - 1 - i)));
}
