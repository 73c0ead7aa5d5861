#include "net/egress/swap.h"

static bool is_of_token(char c)
{
	return c == '-' || c == '_' || c == '.' || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static unsigned pair_of(const char *p)
{
	return (unsigned)(unsigned char)p[0] << 8 | (unsigned char)p[1];
}

void swaps_init(struct swaps *s, struct swap *of, size_t n)
{
	s->of = of;
	s->n = n;
	memset(s->pairs, 0, sizeof(s->pairs));
	for (size_t i = 0; i < n; i++) {
		unsigned pair = pair_of(of[i].from.p);

		s->pairs[pair / 8] |= (uint8_t)(1u << pair % 8);
	}
}

/* The longest text at the beginning of the bytes. *ret_more: a longer one may follow. */
static struct swap *swap_find(const struct swaps *s, struct str bytes, bool *ret_more)
{
	struct swap *best = NULL;

	*ret_more = false;
	for (size_t i = 0; i < s->n; i++) {
		struct swap *one = &s->of[i];
		size_t n = one->from.n < bytes.n ? one->from.n : bytes.n;

		if (memcmp(one->from.p, bytes.p, n) != 0)
			continue;
		if (n < one->from.n)
			*ret_more = true;
		else if (!best || n > best->from.n)
			best = one;
	}
	return best;
}

/* Where the claims begin that end at the end of the text; its length where there are none. */
static size_t claims_begin(struct str text)
{
	size_t at = text.n;

	if (!at || text.p[at - 1] != '.')
		return text.n;
	while (at > 0 && (is_of_token(text.p[at - 1])))
		at--;
	return text.n - at > 3 && memcmp(text.p + at, "eyJ", 3) == 0 ? at : text.n;
}

ssize_t swaps_run(const struct swaps *s, struct str bytes, bool end, struct buf *out, struct err *e)
{
	size_t at = 0, copied = 0, up_to;

	while (at < bytes.n) {
		struct swap *found;
		bool more;

		if (at + 1 < bytes.n) {
			unsigned pair = pair_of(bytes.p + at);

			if (!(s->pairs[pair / 8] & 1u << pair % 8)) {
				at++;
				continue;
			}
		}
		found = swap_find(s, (struct str){ bytes.p + at, bytes.n - at }, &more);
		if (more && !end)
			break;
		if (!found) {
			at++;
			continue;
		}
		up_to = at - copied;
		if (found->claims)
			up_to = claims_begin((struct str){ bytes.p + copied, up_to });
		if (buf_add(out, bytes.p + copied, up_to, e) < 0 ||
		    buf_add(out, found->to.p, found->to.n, e) < 0)
			return -1;
		found->hits++;
		at += found->from.n;
		copied = at;
	}
	return buf_add(out, bytes.p + copied, at - copied, e) < 0 ? -1 : (ssize_t)at;
}

struct swap *swaps_whole(const struct swaps *s, struct str text)
{
	for (size_t i = 0; i < s->n; i++) {
		struct swap *one = &s->of[i];
		struct str before = { text.p, text.n - one->from.n };

		if (text.n < one->from.n ||
		    memcmp(text.p + before.n, one->from.p, one->from.n) != 0)
			continue;
		if (before.n == 0 || (one->claims && claims_begin(before) == 0))
			return one;
	}
	return NULL;
}
