#include "coding/test_id.h"

bool test_id_eq(struct test_id a, struct test_id b)
{
	return str_eq(a.scope, b.scope) && str_eq(a.name, b.name);
}

static const char *test_id_colons(struct str s)
{
	return s.n ? memmem(s.p, s.n, "::", 2) : NULL;
}

int test_id_text(struct test_id id, struct buf *to, struct err *e)
{
	bool colons = id.scope.n || test_id_colons(id.name);

	if (buf_add(to, id.scope.p, id.scope.n, e) < 0 || (colons && buf_add(to, "::", 2, e) < 0))
		return -1;
	return buf_add(to, id.name.p, id.name.n, e);
}

struct test_id test_id_parse(struct str text)
{
	const char *at = test_id_colons(text);
	size_t n = at ? (size_t)(at - text.p) : 0;

	if (!at)
		return (struct test_id){ STR_LIT(""), text };
	return (struct test_id){ { text.p, n }, { at + 2, text.n - n - 2 } };
}
