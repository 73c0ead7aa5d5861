#include "mcp/oauth/scope.h"

/* The next word; n is 0 at the end. */
static struct str next(struct str *left)
{
	struct str word;

	while (left->n > 0 && left->p[0] == ' ') {
		left->p++;
		left->n--;
	}
	word = (struct str){ left->p, 0 };
	while (word.n < left->n && left->p[word.n] != ' ')
		word.n++;
	left->p += word.n;
	left->n -= word.n;
	return word;
}

bool oauth_scope_ok(struct str scope)
{
	for (size_t i = 0; i < scope.n; i++) {
		char c = scope.p[i];

		if (c < ' ' || c >= 0x7f || c == '"' || c == '\\')
			return false;
	}
	return scope.n <= OAUTH_SCOPE_MAX;
}

bool oauth_scope_has(struct str scope, struct str word)
{
	for (struct str w = next(&scope); w.n > 0; w = next(&scope)) {
		if (str_eq(w, word))
			return true;
	}
	return false;
}

bool oauth_scope_covers(struct str a, struct str b)
{
	for (struct str w = next(&b); w.n > 0; w = next(&b)) {
		if (!oauth_scope_has(a, w))
			return false;
	}
	return true;
}

int oauth_scope_add(struct buf *to, struct str more, struct err *e)
{
	for (struct str w = next(&more); w.n > 0; w = next(&more)) {
		if (oauth_scope_has(buf_str(to), w))
			continue;
		if (buf_addf(to, e, "%s%.*s", to->n ? " " : "", STR_ARG(w)) < 0)
			return -1;
	}
	return 0;
}
