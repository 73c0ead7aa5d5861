#include "op/local.h"

#include <stdlib.h>

#include "base/secret.h"
#include "op/secret.h"

enum { ARENA_MAX = 64 << 20 };

struct local {
	uv_loop_t loop;
	struct ops *ops;
	struct arena arena;
	const void *request;
	struct call *call;
	bool runs, ended, granted;
	struct exec_secret secrets[SECRET_REFS_MAX]; /* their values are in `values` */
	struct secret *values[SECRET_REFS_MAX];
	size_t n_secrets;
	struct err err;
};

static void local_on_answer(void *client, const struct field_table *t, const void *result)
{
	struct local *l = client;

	l->ended = true;
}

static void local_on_fail(void *client, const struct err *e)
{
	struct local *l = client;

	l->ended = true;
	l->err = *e;
}

static int local_decode(void *client, void *request, struct err *e)
{
	struct local *l = client;

	memcpy(request, l->request, call_op(l->call)->request->size);
	return 0;
}

static const struct op_sink local_sink = { .answer = local_on_answer, .fail = local_on_fail };

void local_run(struct call *c, const void *request)
{
	struct local *l = call_client(c);

	l->runs = true;
}

/* Turns the loop until a hook has said its word. */
static void local_wait(struct local *l, const bool *done)
{
	while (!*done && !l->ended && uv_run(&l->loop, UV_RUN_ONCE))
		;
}

static void local_free(struct local *l)
{
	for (size_t i = 0; i < l->n_secrets; i++)
		secret_free(l->values[i]);
	ops_free(l->ops);
	arena_fini(&l->arena);
	uv_run(&l->loop, UV_RUN_DEFAULT);
	uv_loop_close(&l->loop);
	free(l);
}

struct local *local_begin(const struct op_hooks *hooks, const struct op *op, const void *request,
			  struct err *e)
{
	struct local *l = calloc(1, sizeof(*l));
	struct op_start start = { .who = &principal_local,
				  .op = op,
				  .decode = local_decode,
				  .sink = &local_sink,
				  .client = l,
				  .label = op->action };

	if (!l || uv_loop_init(&l->loop) < 0) {
		err_set(e, ERR_LIMIT, "out of memory");
		free(l);
		return NULL;
	}
	arena_init(&l->arena, ARENA_MAX);
	l->request = request;
	start.arena = &l->arena;
	l->ops = ops_new(NULL, &(struct ops_options){ .hooks = hooks, .loop = &l->loop }, e);
	l->call = l->ops ? op_new(l->ops, &start, e) : NULL;
	if (l->call) {
		op_start(l->call);
		local_wait(l, &l->runs);
		if (l->runs)
			return l;
		*e = l->err;
	}
	local_free(l);
	return NULL;
}

struct str local_redact(struct local *l, struct str bytes)
{
	return call_redact(l->call, bytes);
}

static void local_on_granted(void *data, const struct exec_secret *secrets, size_t n,
			     const struct err *err)
{
	struct local *l = data;

	l->granted = true;
	if (err)
		l->err = *err;
	for (size_t i = 0; i < n && l->err.code == ERR_NONE; i++) {
		l->values[i] = secret_new(secrets[i].value, &l->err);
		if (!l->values[i])
			return;
		l->secrets[i] = secrets[i];
		l->secrets[i].value = secret_expose(l->values[i], "given to a program");
		l->n_secrets++;
	}
}

int local_grant(struct local *l, const struct secret_refs *refs, const struct exec_secret **ret,
		size_t *ret_n, struct err *e)
{
	secret_grant(l->call, refs, local_on_granted, l);
	local_wait(l, &l->granted);
	*e = l->err;
	*ret = l->secrets;
	*ret_n = l->n_secrets;
	return e->code == ERR_NONE ? 0 : -1;
}

void local_end(struct local *l, const struct err *err)
{
	if (!l)
		return;
	if (err)
		call_fail(l->call, err);
	else
		call_answer(l->call, NULL);
	local_wait(l, &l->ended);
	local_free(l);
}
