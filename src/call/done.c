/* The failure for an operation that was done, where its answer can't be given. */
#include <stdio.h>
#include <string.h>

#include "call/call.h"

enum { ID_LIKE = 64, LIST_MAX = 8, SAID_MAX = 160 };

/* A text that can't be an id, such as a page of output, is not told. */
static bool done_is_id(const struct field *f, struct str s)
{
	if (f->flags & (FIELD_BYTES | FIELD_SECRET | FIELD_PLAIN) || !s.n || s.n > ID_LIKE)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (c && strchr("-_./:@", c))))
			return false;
	}
	return true;
}

/* The buffer's bound says how many are told. */
static void done_add(struct buf *to, const struct field *f, struct str s)
{
	struct err none;
	size_t n = to->n;

	if (done_is_id(f, s) &&
	    buf_addf(to, &none, "%s%s %.*s", n ? ", " : "", f->name, STR_ARG(s)) < 0)
		to->n = n;
}

static void done_tell(struct buf *to, const struct field_table *t, const void *from);

static void done_tell_row(struct buf *to, const struct field *f, const void *from)
{
	const void *at = (const char *)from + f->at;
	const struct field_strs *strs = at;
	const char *const *objects = at;
	size_t n = f->kind == FIELD_IS_OBJECTS ? *(const size_t *)((const char *)from + f->count_at)
					       : 0;
	char number[12];

	if (f->kind == FIELD_IS_STR)
		done_add(to, f, *(const struct str *)at);
	else if (f->kind == FIELD_IS_INT32)
		done_add(to, f,
			 (struct str){ number, (size_t)snprintf(number, sizeof(number), "%d",
								*(const int32_t *)at) });
	else if (f->kind == FIELD_IS_OBJECT)
		done_tell(to, f->table, at);
	for (size_t i = 0; f->kind == FIELD_IS_STRS && i < strs->n && i < LIST_MAX; i++)
		done_add(to, f, strs->p[i]);
	for (size_t i = 0; i < n && i < LIST_MAX; i++)
		done_tell(to, f->table, *objects + i * f->elem);
}

static void done_tell(struct buf *to, const struct field_table *t, const void *from)
{
	for (size_t i = 0; t && from && i < t->n; i++) {
		const struct field *f = &t->rows[i];

		if (!f->has || *(const bool *)((const char *)from + f->has - 1))
			done_tell_row(to, f, from);
	}
}

void call_say_done(const struct call *c, const struct field_table *t, const void *result,
		   struct err *e)
{
	autobuf struct buf ids = BUF_INIT(SAID_MAX);
	struct err why = *e;

	if (call_op(c)->effect == OP_READ)
		return;
	done_tell(&ids, t, result);
	err_set(e, ERR_UNSURE, "%s was done%s%.*s%s, but its answer can't be given: %s",
		call_op(c)->action, ids.n ? " (" : "", STR_ARG(buf_str(&ids)), ids.n ? ")" : "",
		why.msg);
}
