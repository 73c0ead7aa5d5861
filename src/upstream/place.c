/*
 * Where a program runs: a sandbox of the engine that the hub's lists do not have, so that no
 * operation reaches it and no agent sees its environment. The warden ends it as soon as no hub is
 * connected, by a time to live that is always over.
 */
#include <stdlib.h>

#include "base/log.h"
#include "hub/net/net.h"
#include "hub/sandbox/volumes.h"
#include "upstream/internal.h"

enum {
	TTL_MS = 1000, /* only while no hub is connected */
	QUEUE_MAX = 64 << 20, /* for a program that does not read */
	PIECE = 256 << 10,
	ENV_PIECES = 256,
};

/* ---- the sandbox --------------------------------------------------------------------------- */

static void place_on_granted(void *arg, const struct err *err)
{
	struct upstream_conn *k = arg;

	k->making = false;
	place_made(k, err);
}

/* Rules and presets of the operator's file. */
static int place_grant(struct upstream_conn *k, struct err *e)
{
	const struct field_strs *network = &k->server->sandbox.network;
	autogrant struct net_grant g = { .n = 0 };

	if (net_grant_init(&g, e) < 0)
		return -1;
	for (size_t i = 0; i < network->n; i++) {
		if (k->all->rules(config_file(k->config), network->p[i], &g, e) < 0)
			return err_wrap(e, "network");
	}
	k->net = net_new(hub_nets(k->all->hub), k->sandbox, NULL, e);
	if (!k->net)
		return -1;
	k->making = true;
	net_grant_start(k->net, &g, place_on_granted, k);
	return 0;
}

static void place_on_made(void *arg, struct sandbox *sb, const struct err *err)
{
	struct upstream_conn *k = arg;
	struct err e;

	k->making = false;
	if (err) {
		place_made(k, err);
		return;
	}
	k->sandbox = sandbox_ref(sb);
	if (k->ending || k->server->sandbox.network.n == 0)
		place_made(k, NULL);
	else if (place_grant(k, &e) < 0)
		place_made(k, &e);
}

static size_t place_ask(const char **paths, enum volume_mode mode, struct volume *to, size_t n)
{
	for (; paths && *paths && n < VOLUMES_MAX; paths++)
		to[n++] = (struct volume){ str_of(*paths), str_of(*paths), mode, false };
	return n;
}

static int place_make(struct upstream_conn *k, struct err *e)
{
	AUTO(volumes_unref) struct volumes *found = NULL;
	struct volume asked[VOLUMES_MAX];
	struct sandbox_mount mounts[VOLUMES_MAX];
	size_t n = place_ask(k->target.read, VOLUME_RO, asked, 0);
	struct sandbox_spec spec = {
		.template = k->server->sandbox.template,
		.ttl_ms = TTL_MS,
		.mounts = mounts,
	};

	n = place_ask(k->target.write, VOLUME_RW, asked, n);
	if (n > 0) {
		found = volumes_find(NULL, asked, n, true, e);
		if (!found)
			return -1;
	}
	spec.n_mounts = volumes_mounts(found, mounts);
	k->making = true;
	sandbox_create_start(hub_box(k->all->hub), &spec, place_on_made, k);
	return 0;
}

void place_start(struct upstream_conn *k)
{
	struct err e = ERR_INIT;

	if (place_make(k, &e) < 0)
		place_made(k, err_wrap(&e, "its sandbox") ? &e : NULL);
}

static void place_on_ended(void *arg, struct sandbox *sb, const struct err *err)
{
	if (err)
		log_debug("module: the end of a sandbox: %s", err->msg);
	place_gone(arg);
}

void place_end(struct upstream_conn *k)
{
	net_free(take_ptr(k->net));
	if (!k->sandbox) {
		place_gone(k);
		return;
	}
	sandbox_destroy_start(k->sandbox, place_on_ended, k);
	sandbox_unref(take_ptr(k->sandbox));
}

/* ---- the program --------------------------------------------------------------------------- */

struct run {
	struct upstream_conn *conn;
	struct mcp_program *program;
	struct exec *exec; /* NULL: it has ended */
	struct buf queue;
	bool closing;
	uv_timer_t timer;
};

static void run_on_freed(uv_handle_t *h)
{
	free(h->data);
}

static void run_gone(struct run *r)
{
	mcp_program_gone(r->program);
	buf_fini(&r->queue);
	uv_close((uv_handle_t *)&r->timer, run_on_freed);
}

static void run_pump(struct run *r)
{
	struct err e;

	while (r->exec && r->queue.n > 0 && exec_waiting(r->exec) < PIECE) {
		size_t n = r->queue.n < PIECE ? r->queue.n : PIECE;

		if (exec_write(r->exec, r->queue.p, n, &e) < 0)
			return;
		buf_drop(&r->queue, n);
	}
	if (r->exec && r->closing && r->queue.n == 0)
		exec_close_stdin(r->exec);
}

static void run_on_drain(void *arg)
{
	run_pump(arg);
}

static void run_on_output(void *arg, enum exec_stream stream, const char *p, size_t n)
{
	struct run *r = arg;

	if (stream == EXEC_STDOUT)
		mcp_program_said(r->program, (struct str){ p, n });
	else if (r->conn->of)
		upstream_heard(r->conn->of, (struct str){ p, n });
}

static void run_describe(const struct exec_result *x, const struct err *err, struct err *e)
{
	if (err)
		*e = *err;
	else if (x->hit_memory)
		err_set(e, ERR_TRANSPORT, "the server's program was killed at its memory limit");
	else if (x->end == EXEC_SIGNALED)
		err_set(e, ERR_TRANSPORT, "the server's program was ended by signal %d", x->signal);
	else
		err_set(e, ERR_TRANSPORT, "the server's program ended with status %d",
			x->exit_code);
}

static void run_on_exit(void *arg, const struct exec_result *result, const struct err *err)
{
	struct run *r = arg;
	struct err e = ERR_INIT;

	r->exec = NULL;
	if (r->closing) {
		run_gone(r);
		return;
	}
	run_describe(result, err, &e);
	mcp_program_ended(r->program, &e);
}

static const struct exec_events run_events = { run_on_output, run_on_exit };

static int run_exec(struct run *r, struct err *e)
{
	const struct config_target *t = &r->conn->target;
	struct str argv[CONFIG_LIST_MAX + 1];
	struct exec_secret env[ENV_PIECES];
	struct exec_spec spec = {
		.argv = argv, .secrets = env, .cwd = str_of(t->cwd), .stdin_open = true
	};

	for (; t->argv[spec.n_argv]; spec.n_argv++)
		argv[spec.n_argv] = str_of(t->argv[spec.n_argv]);
	for (; t->env && t->env[spec.n_secrets]; spec.n_secrets++) {
		const char *at = t->env[spec.n_secrets], *equals = strchr(at, '=');

		if (spec.n_secrets == ENV_PIECES)
			return err_set(e, ERR_LIMIT, "more than %d variables", ENV_PIECES);
		env[spec.n_secrets] = (struct exec_secret){ .name = { at, (size_t)(equals - at) },
							    .value = str_of(equals + 1) };
	}
	r->exec = exec_start(r->conn->sandbox, &spec, &run_events, r, e);
	return r->exec ? 0 : -1;
}

static void *run_start(void *owner, struct mcp_program *p, struct err *e)
{
	struct upstream_conn *k = owner;
	struct run *r = calloc(1, sizeof(*r));

	if (!r) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	*r = (struct run){ .conn = k, .program = p, .queue = BUF_INIT(QUEUE_MAX) };
	if (run_exec(r, e) < 0) {
		free(r);
		return NULL;
	}
	exec_on_drain(r->exec, run_on_drain, r);
	uv_timer_init(k->all->loop, &r->timer);
	r->timer.data = r;
	return r;
}

static void run_write(void *run, struct str bytes)
{
	struct run *r = run;
	struct err e;

	if (!r->exec || r->closing)
		return;
	if (buf_add(&r->queue, bytes.p, bytes.n, &e) < 0) {
		log_warn("module: a program does not read its input, and is ended");
		exec_kill(r->exec);
		return;
	}
	run_pump(r);
}

static void run_on_late(uv_timer_t *t)
{
	struct run *r = t->data;

	if (r->exec)
		exec_kill(r->exec);
	else
		run_gone(r);
}

static void run_close(void *run, unsigned stop_ms)
{
	struct run *r = run;

	r->closing = true;
	run_pump(r);
	uv_timer_start(&r->timer, run_on_late, r->exec ? stop_ms : 0, 0);
}

static void run_kill(void *run)
{
	struct run *r = run;

	if (r->exec)
		exec_kill(r->exec);
}

const struct mcp_runner place_runner = { run_start, run_write, run_close, run_kill };
