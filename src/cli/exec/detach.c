#include "cli/exec/detach.h"

#include <string.h>

static bool read_key(const char *p, size_t n, char *ret)
{
	static const char ctrl[] = "ctrl-";
	size_t front = strlen(ctrl);
	char c;

	if (n == 1) {
		*ret = *p;
		return true;
	}
	if (n != front + 1 || strncmp(p, ctrl, front) != 0)
		return false;
	c = p[front];
	if (c >= 'a' && c <= 'z')
		c = (char)(c - 'a' + 'A');
	*ret = (char)(c & 0x1f);
	return c >= '@' && c <= '_';
}

int detach_parse(const char *text, struct detach *ret, struct err *e)
{
	struct detach d = { .n = 0 };

	for (const char *p = text;; p++) {
		size_t n = strcspn(p, ",");

		if (d.n == DETACH_KEYS_MAX || !read_key(p, n, &d.keys[d.n++]))
			return err_set(
				e, ERR_INVALID,
				"--detach-keys takes up to %d keys such as ctrl-p,ctrl-q, not "
				"'%.40s'",
				DETACH_KEYS_MAX, text);
		p += n;
		if (!*p)
			break;
	}
	*ret = d;
	return 0;
}

/* The length of the longest suffix of the held keys and c that begins the sequence. */
static size_t still(const struct detach *d, char c)
{
	char held[DETACH_KEYS_MAX + 1];
	size_t n = d->came + 1;

	memcpy(held, d->keys, d->came);
	held[d->came] = c;
	for (size_t left = n; left > 0; left--) {
		if (memcmp(held + n - left, d->keys, left) == 0)
			return left;
	}
	return 0;
}

bool detach_scan(struct detach *d, const char *p, size_t n, char *to, size_t *ret_n)
{
	size_t out = 0;

	for (size_t i = 0; i < n; i++) {
		size_t left = still(d, p[i]), over = d->came + 1 - left;

		/* Passes on what no longer begins the sequence: held keys, then the new one. */
		memcpy(to + out, d->keys, over < d->came ? over : d->came);
		out += over < d->came ? over : d->came;
		if (over > d->came)
			to[out++] = p[i];
		d->came = left;
		if (left == d->n) {
			d->came = 0;
			*ret_n = out;
			return true;
		}
	}
	*ret_n = out;
	return false;
}
