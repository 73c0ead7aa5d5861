#include "call/once.h"

#include <stdlib.h>

#include "base/base64.h"
#include "base/log.h"

static int key_of(struct call *c, struct idempotent_key *ret, struct err *e)
{
	struct arena *a = call_arena(c);
	char digest[OP_DIGEST];
	char *request, *scope;

	if (op_digest(call_op(c), call_request(c), digest, e) < 0)
		return -1;
	request = arena_dup(a, str_of(digest), e);
	scope = arena_printf(a, e, "%.*s %s", STR_ARG(call_owner(c)), call_op(c)->action);
	if (!request || !scope)
		return -1;
	*ret = (struct idempotent_key){ .scope = str_of(scope),
					.key = call_once(c)->text,
					.request = str_of(request) };
	return 0;
}

/* Bytes were stored as base64. */
static int restore_bytes(const struct field_table *t, void *of, struct arena *a, struct err *e)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct field *f = &t->rows[i];
		struct str *s = (void *)((char *)of + f->at);
		autobuf struct buf b = BUF_INIT(IDEMPOTENT_BODY_MAX);
		char *copy;

		if (f->kind == FIELD_IS_OBJECT && restore_bytes(f->table, s, a, e) < 0)
			return -1;
		if (f->kind != FIELD_IS_STR || !(f->flags & FIELD_BYTES) || !s->p)
			continue;
		if (base64_decode(&b, *s, e) < 0)
			return -1;
		copy = arena_dup(a, buf_str(&b), e);
		if (!copy)
			return -1;
		*s = (struct str){ copy, b.n };
	}
	return 0;
}

/* Repeats the stored answer. It has left when call_answer() returns, unless something keeps it. */
static void repeat(struct call *c, struct str stored)
{
	const struct json_options bounds = { .bytes = IDEMPOTENT_BODY_MAX };
	const struct field_table *t = call_op(c)->result;
	struct err e = ERR_INIT;
	struct json_doc *doc = json_parse(stored, &bounds, &e);
	void *result = doc ? arena_alloc(call_arena(c), t->size, &e) : NULL;

	if (!result || field_decode(t, json_root(doc), call_arena(c), result, &e) < 0 ||
	    restore_bytes(t, result, call_arena(c), &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, result);
	json_free(doc);
}

static enum once resume(struct call *c, struct str *plan, struct str stored)
{
	struct err e;
	char *copy = arena_dup(call_arena(c), stored, &e);

	if (copy) {
		*plan = (struct str){ copy, stored.n };
		return ONCE_AGAIN;
	}
	call_fail(c, &e);
	return ONCE_OVER;
}

enum once once_begin(struct call *c, struct str *plan)
{
	struct once_key *k = call_once(c);
	struct idempotent_answer answer;
	struct err e = ERR_INIT;

	if (!k->text.p)
		return ONCE_NEW;
	if (key_of(c, &k->key, &e) < 0) {
		call_fail(c, &e);
		return ONCE_OVER;
	}
	switch (idempotent_begin(call_sandboxes(c), &k->key, *plan, &answer, &e)) {
	case IDEMPOTENT_NEW:
		k->begun = true;
		return ONCE_NEW;
	case IDEMPOTENT_RESUMED:
		k->begun = true;
		return resume(c, plan, answer.plan);
	case IDEMPOTENT_DONE:
		repeat(c, answer.body);
		return ONCE_OVER;
	case IDEMPOTENT_REFUSED:
		call_fail(c, &e);
	}
	return ONCE_OVER;
}

bool once_kept(struct call *c)
{
	return call_once(c)->begun;
}

/* Before it leaves. Where that fails, the answer holds all the same. */
void once_store(struct call *c, const void *result)
{
	struct once_key *k = call_once(c);
	struct err e;
	char *text;

	if (!k->begun)
		return;
	k->begun = false;
	text = field_encode_text(call_op(c)->result, result, IDEMPOTENT_BODY_MAX, &e);
	if (!text)
		idempotent_drop(call_sandboxes(c), &k->key);
	if (!text || idempotent_end(call_sandboxes(c), &k->key, 200, str_of(text), &e) < 0)
		log_warn("an answer could not be stored: %s", e.msg);
	free(text);
}

void once_drop(struct call *c)
{
	struct once_key *k = call_once(c);

	if (k->begun)
		idempotent_drop(call_sandboxes(c), &k->key);
	k->begun = false;
}
