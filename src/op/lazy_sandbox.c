#include "op/lazy_sandbox.h"

#include <stdio.h>

void lazy_sandbox_init(struct lazy_sandbox *s, const struct call *c)
{
	*s = (struct lazy_sandbox){ .making = NULL };
	snprintf(s->owner, sizeof(s->owner), "%.*s", STR_ARG(call_owner(c)));
	profile_text(c, s->profiles);
}

void lazy_sandbox_fini(struct lazy_sandbox *s)
{
	arena_free(s->arena);
}

bool lazy_sandbox_same(const struct lazy_sandbox *a, const struct lazy_sandbox *b)
{
	return strcmp(a->owner, b->owner) == 0 && strcmp(a->profiles, b->profiles) == 0;
}

bool lazy_sandbox_is_there(const struct lazy_sandbox *s, struct call *c)
{
	struct hub_sandbox_info i;
	struct hub_sandbox *hs;
	struct err none;

	hs = s->id[0] ? hub_sandboxes_find(call_sandboxes(c), str_of(s->id), &none) : NULL;
	if (!hs)
		return false;
	hub_sandbox_info(hs, &i);
	return i.state != SANDBOX_LOST && i.state != SANDBOX_TERMINATED &&
	       i.state != SANDBOX_FAILED;
}

void lazy_sandbox_go(struct lazy_sandbox *s, const struct err *err)
{
	struct lazy_wait *w = take_ptr(s->waiting), *next;
	char id[ID_MAX];

	memcpy(id, s->id, sizeof(id));
	if (s->on_go)
		s->on_go(s);
	for (; w; w = next) {
		struct err e;

		next = w->next;
		memcpy(w->id, id, sizeof(w->id));
		call_on_cancel(w->call, NULL, NULL);
		if (call_cancelled(w->call)) {
			err_set(&e, ERR_CANCELLED, "the call was cancelled");
			w->then(w->data, &e);
		} else {
			w->then(w->data, err);
		}
	}
}

static int lazy_decode(void *client, void *request, struct err *e)
{
	struct lazy_sandbox *s = client;

	s->needed.id = str_of(s->id);
	sandbox_need(&s->needed, request);
	return 0;
}

static void lazy_on_answer(void *client, const struct field_table *t, const void *result)
{
	struct lazy_sandbox *s = client;

	s->making = NULL;
	if (s->on_made)
		s->on_made(s);
	else
		lazy_sandbox_go(s, NULL);
}

static void lazy_on_fail(void *client, const struct err *err)
{
	struct lazy_sandbox *s = client;
	struct err e = *err;

	s->making = NULL;
	s->id[0] = '\0';
	err_wrap(&e, "make the sandbox %s", s->needed.what);
	lazy_sandbox_go(s, &e);
}

static const struct op_sink lazy_sink = { .answer = lazy_on_answer, .fail = lazy_on_fail };

/* The sandbox is not made any more once nobody waits for it. They all wait for its end, so that the
 * hub does not end before. */
static void lazy_on_cancel(void *data)
{
	struct lazy_sandbox *s = data;

	for (const struct lazy_wait *w = s->waiting; w; w = w->next) {
		if (!call_cancelled(w->call))
			return;
	}
	if (s->making)
		call_cancel(s->making);
}

void lazy_sandbox_wait(struct lazy_sandbox *s, struct lazy_wait *w)
{
	w->next = s->waiting;
	s->waiting = w;
	call_on_cancel(w->call, lazy_on_cancel, s);
}

int lazy_sandbox_make(struct lazy_sandbox *s, struct lazy_wait *w, struct err *e)
{
	enum { ARENA_MAX = 1 << 20 };
	struct op_start start = {
		.op = &sandbox_create_op, .decode = lazy_decode, .sink = &lazy_sink, .client = s
	};

	if (s->making) {
		lazy_sandbox_wait(s, w);
		return 0;
	}
	arena_free(s->arena);
	s->arena = start.arena = arena_new(ARENA_MAX);
	if (!s->arena)
		return err_set(e, ERR_LIMIT, "out of memory");
	id_make(s->id, "sbx");
	if (profile_from_text(s->profiles, s->arena, &start.profiles, e) == 0)
		s->making = call_inner(w->call, &start, e);
	if (!s->making) {
		s->id[0] = '\0';
		return -1;
	}
	lazy_sandbox_wait(s, w);
	op_start(s->making);
	return 0;
}
