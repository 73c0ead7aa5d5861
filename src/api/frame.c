#include "api/frame.h"

int frame_next(struct frames *f, struct str *ret, struct err *e)
{
	const unsigned char *p = (const unsigned char *)f->left.p;
	size_t n;

	if (f->left.n == 0)
		return 0;
	if (f->left.n < FRAME_HEAD)
		return err_set(e, ERR_INVALID, "the last message has no whole head of %d bytes",
			       FRAME_HEAD);
	n = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
	if (p[0] & FRAME_COMPRESSED)
		return err_set(e, ERR_INVALID, "a message is compressed; send identity");
	if (p[0] != 0)
		return err_set(e, ERR_INVALID, "a message has flags that no client sends: 0x%02x",
			       p[0]);
	if (n > f->left.n - FRAME_HEAD)
		return err_set(e, ERR_INVALID, "a message of %zu bytes has only %zu", n,
			       f->left.n - FRAME_HEAD);
	*ret = (struct str){ f->left.p + FRAME_HEAD, n };
	f->left = (struct str){ ret->p + n, f->left.n - FRAME_HEAD - n };
	return 1;
}

void frame_head(char to[FRAME_HEAD], unsigned flags, size_t n)
{
	to[0] = (char)flags;
	for (int i = 1; i < FRAME_HEAD; i++)
		to[i] = (char)(n >> (8 * (FRAME_HEAD - 1 - i)));
}
