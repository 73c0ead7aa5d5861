#include "json/document/pointer.h"

#include <stdio.h>

#include "json/document/utf8.h"

bool json_pointer_is(struct str step, struct str key)
{
	size_t k = 0;

	for (size_t i = 0; i < step.n; i++, k++) {
		char c = step.p[i];

		if (c == '~' && i + 1 < step.n)
			c = step.p[++i] == '1' ? '/' : '~';
		if (k >= key.n || key.p[k] != c)
			return false;
	}
	return k == key.n;
}

static void pointer_put(struct json_pointer *p, struct str s)
{
	struct str fits = utf8_cut(s, JSON_POINTER_MAX - p->n);

	if (p->full)
		return;
	if (fits.n > 0)
		memcpy(p->text + p->n, fits.p, fits.n);
	p->n += fits.n;
	p->full = fits.n < s.n;
	strcpy(p->text + p->n, p->full ? "…" : "");
}

void json_pointer_key(struct json_pointer *p, struct str key)
{
	size_t from = 0;

	pointer_put(p, STR_LIT("/"));
	for (size_t i = 0; i < key.n; i++) {
		if (key.p[i] != '~' && key.p[i] != '/')
			continue;
		pointer_put(p, (struct str){ key.p + from, i - from });
		pointer_put(p, key.p[i] == '~' ? STR_LIT("~0") : STR_LIT("~1"));
		from = i + 1;
	}
	pointer_put(p, (struct str){ key.p + from, key.n - from });
}

void json_pointer_index(struct json_pointer *p, size_t index)
{
	char text[24];

	snprintf(text, sizeof(text), "/%zu", index);
	pointer_put(p, str_of(text));
}

void json_pointer_place(struct json_pointer *p, const struct json_place *at)
{
	if (!at->up)
		return;
	json_pointer_place(p, at->up);
	if (at->key.p)
		json_pointer_key(p, at->key);
	else
		json_pointer_index(p, at->index);
}
