#include "op/label.h"

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_key(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!is_alphanumeric(s.p[i]) && !memchr("._-/", s.p[i], 4))
			return false;
	}
	return s.n > 0 && s.n <= LABEL_KEY_MAX && is_alphanumeric(s.p[0]) &&
	       is_alphanumeric(s.p[s.n - 1]);
}

static bool has_controls(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
			return true;
	}
	return false;
}

static int label_by_key(const void *a, const void *b)
{
	return str_cmp(((const struct field_pair *)a)->key, ((const struct field_pair *)b)->key);
}

int labels_normalize(struct field_map *m, struct arena *a, struct err *e)
{
	struct field_pair *sorted = arena_array(a, m->n, sizeof(*sorted), e);
	size_t bytes = 0;

	if (!sorted)
		return -1;
	for (size_t i = 0; i < m->n; i++) {
		const struct field_pair *l = &m->p[i];

		if (!is_key(l->key))
			return err_set(e, ERR_INVALID,
				       "labels: \"%.*s\" is no key: 1 to %d letters, digits and "
				       "._-/, the first and the last a letter or digit",
				       STR_CUT(l->key, 60), LABEL_KEY_MAX);
		if (has_controls(l->value))
			return err_set(e, ERR_INVALID,
				       "labels: the value of \"%.*s\" has control characters",
				       STR_CUT(l->key, 60));
		sorted[i] = *l;
		bytes += l->key.n + l->value.n + 2;
	}
	if (bytes > LABELS_BYTES_MAX)
		return err_set(e, ERR_INVALID, "labels: at most %d bytes together",
			       LABELS_BYTES_MAX);
	qsort(sorted, m->n, sizeof(*sorted), label_by_key);
	m->p = sorted;
	return 0;
}

int labels_text(const struct field_map *m, struct arena *a, struct str *ret, struct err *e)
{
	autobuf struct buf b = BUF_INIT(LABELS_BYTES_MAX);
	char *copy;

	*ret = STR_NONE;
	if (m->n == 0)
		return 0;
	for (size_t i = 0; i < m->n; i++) {
		if (buf_addf(&b, e, "%.*s=%.*s\n", STR_ARG(m->p[i].key), STR_ARG(m->p[i].value)) <
		    0)
			return -1;
	}
	copy = arena_dup(a, buf_str(&b), e);
	*ret = (struct str){ copy, b.n };
	return copy ? 0 : -1;
}

/* Takes the first line off the text. */
static bool label_next(struct str *text, struct str *ret)
{
	const char *end = text->n ? memchr(text->p, '\n', text->n) : NULL;

	if (!end)
		return false;
	*ret = (struct str){ text->p, (size_t)(end - text->p) };
	text->n -= ret->n + 1;
	text->p = end + 1;
	return true;
}

int labels_of(struct str text, struct arena *a, struct field_map *ret, struct err *e)
{
	struct field_pair *all;
	struct str rest = text, line;
	size_t n = 0;

	while (label_next(&rest, &line))
		n++;
	all = arena_array(a, n, sizeof(*all), e);
	if (!all)
		return -1;
	for (n = 0; label_next(&text, &line); n++) {
		const char *sign = memchr(line.p, '=', line.n);
		size_t key = sign ? (size_t)(sign - line.p) : line.n;

		all[n] = (struct field_pair){ { line.p, key },
					      sign ? (struct str){ sign + 1, line.n - key - 1 }
						   : STR_LIT("") };
	}
	*ret = (struct field_map){ all, n };
	return 0;
}

bool labels_have(struct str text, struct str wanted)
{
	struct str line;

	while (label_next(&text, &line)) {
		bool begins = line.n >= wanted.n && memcmp(line.p, wanted.p, wanted.n) == 0;

		if (begins && (line.n == wanted.n ||
			       (line.p[wanted.n] == '=' && !memchr(wanted.p, '=', wanted.n))))
			return true;
	}
	return false;
}
