#include "door/http/once.h"

#include "door/http/ask_impl.h"

static const struct field header_fields[] = {
	FIELD_NAMED(struct once_header, key, "Idempotency-Key", .min = 1, .max = IDEMPOTENT_KEY_MAX,
		    .doc = "Of the client's choice, visible ASCII. The same request with it is "
			   "answered as it was for 24 hours; another one is refused."),
};
const struct field_table once_header_table = FIELD_TABLE(struct once_header, header_fields);

/* Its texts live as long as the call. The digest is of path and body: so is the scope of the key. */
static int key_of(struct call *c, const struct once_header *h, struct idempotent_key *ret,
		  struct err *e)
{
	struct ask *a = ask_of(c);
	struct str path = http_request_path(a->q), body = http_request_body(a->q);
	char *request = arena_alloc(a->arena, path.n + 1 + body.n, e);
	const struct principal *who = http_request_principal(a->q);
	char *scope = arena_printf(a->arena, e, "%.64s %s", who ? who->name : "", a->route->id);

	if (!request || !scope)
		return -1;
	memcpy(request, path.p, path.n);
	request[path.n] = '\n';
	if (body.n > 0)
		memcpy(request + path.n + 1, body.p, body.n);
	*ret = (struct idempotent_key){ .scope = str_of(scope),
					.key = h->key,
					.request = { request, path.n + 1 + body.n } };
	return 0;
}

/* What was answered then. */
static void repeat(struct call *c, struct str body)
{
	char *text = mem_dup(body.p, body.n);
	struct err e;

	if (text) {
		ask_answer_document(c, text);
		return;
	}
	err_set(&e, ERR_LIMIT, "out of memory");
	call_fail(c, &e);
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

enum once once_begin(struct call *c, const struct once_header *h, struct str *plan)
{
	struct ask *a = ask_of(c);
	struct idempotent_answer answer;
	struct err e = ERR_INIT;

	if (!h->key.p)
		return ONCE_NEW;
	if (key_of(c, h, &a->key, &e) < 0) {
		call_fail(c, &e);
		return ONCE_OVER;
	}
	switch (idempotent_begin(call_lives(c), &a->key, *plan, &answer, &e)) {
	case IDEMPOTENT_NEW:
		a->keyed = true;
		return ONCE_NEW;
	case IDEMPOTENT_RESUMED:
		a->keyed = true;
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
	return ask_of(c)->keyed;
}
