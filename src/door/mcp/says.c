#include "door/mcp/internal.h"

static const struct field *row_of(const struct field_table *t, struct str name)
{
	for (size_t i = 0; t && i < t->n; i++) {
		if (str_is(name, t->rows[i].name))
			return &t->rows[i];
	}
	return NULL;
}

static int put_member(const struct field *f, const void *from, struct buf *to, struct err *e)
{
	const void *at = (const char *)from + f->at;

	switch (f->kind) {
	case FIELD_IS_STR:
		return buf_add(to, ((const struct str *)at)->p, ((const struct str *)at)->n, e);
	case FIELD_IS_UINT32:
		return buf_addf(to, e, "%u", *(const uint32_t *)at);
	case FIELD_IS_UINT64:
		return buf_addf(to, e, "%llu", (unsigned long long)*(const uint64_t *)at);
	case FIELD_IS_ENUM:
		return buf_addf(to, e, "%s", f->names[*(const int *)at]);
	default:
		return err_set(e, ERR_BUG, "%s can't be said", f->name);
	}
}

static int put_named(const struct tool *t, struct str name, const void *request, const void *result,
		     struct buf *to, struct err *e)
{
	const struct field *asked = row_of(t->op->request, name);
	const struct field *f = asked ?: row_of(t->op->result, name);

	return f ? put_member(f, asked ? request : result, to, e)
		 : err_set(e, ERR_BUG, "%s says {%.*s}, which is no member", t->name,
			   STR_ARG(name));
}

int tool_text(const struct tool *t, const void *request, const void *result, struct buf *to,
	      struct err *e)
{
	const char *p = t->says, *open;

	if (t->text)
		return t->text(result, to, e);
	while ((open = strchr(p, '{'))) {
		const char *close = strchr(open, '}');

		if (buf_add(to, p, (size_t)(open - p), e) < 0 ||
		    put_named(t, (struct str){ open + 1, (size_t)(close - open - 1) }, request,
			      result, to, e) < 0)
			return -1;
		p = close + 1;
	}
	return buf_add(to, p, strlen(p), e);
}
