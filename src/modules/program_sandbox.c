#include "modules/program_sandbox.h"

#include <stdlib.h>

#include "base/log.h"
#include "hub/core/hub.h"
#include "hub/net/net.h"
#include "hub/sandbox/bound.h"

enum {
	TTL_MS = 1000, /* only while no hub is connected */
	QUEUE_MAX = 64 << 20, /* for a program that does not read */
	PIECE = 256 << 10,
	ENV_PIECES = 256,
	NETWORK_MAX = 1 << 20, /* characters of all its rules */
};

/* ---- the sandbox --------------------------------------------------------------------------- */

static void program_sandbox_made(struct program_sandbox *p, const struct err *e)
{
	p->making = false;
	net_grant_fini(&p->grant);
	p->grant = (struct net_grant){ .n = 0 };
	p->on_made(p->owner, e);
}

static void program_sandbox_on_granted(void *arg, const struct err *err)
{
	struct program_sandbox *p = arg;
	bool needed = p->grant.n || p->texts->bound;

	if (err && !needed)
		log_warn("what a program asks for in vain is not heard: %s", err->msg);
	program_sandbox_made(p, needed ? err : NULL);
}

/* Rules and presets of the operator's file, read as those of any sandbox: so names of services are
 * those of the hub. */
static int program_sandbox_rules(const struct texts *t, struct net_grant *to, struct err *e)
{
	const struct field_strs *network = &t->server->sandbox.network;
	autogrant struct net_grant g = { .n = 0 };
	autobuf struct buf text = BUF_INIT(NETWORK_MAX);

	if (net_grant_init(&g, e) < 0)
		return -1;
	for (size_t i = 0; i < network->n; i++) {
		if (t->of->rules(config_file(t->config), network->p[i], &g, e) < 0)
			return -1;
	}
	return net_grant_print(&g, &text, e) < 0
		     ? -1
		     : net_grant_parse(hub_nets(t->of->hub), buf_str(&text), to, e);
}

/* Its network, with an authority of its own where TLS has to end in the proxy. */
static int program_sandbox_network(struct program_sandbox *p, struct err *e)
{
	struct texts *t = p->texts;
	const struct bound_spec none = { .n = 0 };
	const struct net_rule *tls;

	if (t->server->sandbox.network.n == 0 && !p->service && !t->bound && !p->on_refused)
		return 0;
	if (net_grant_init(&p->grant, e) < 0)
		return -1;
	if (program_sandbox_rules(t, &p->grant, e) < 0)
		return err_wrap(e, "network");
	if (p->service && net_grant_add(&p->grant, p->service, NULL, 0, e) < 0)
		return -1;
	if (!t->bound && p->grant.n &&
	    (net_grant_ends_tls(&p->grant, NET_TLS_MAYBE, &tls) || nets_ca(hub_nets(t->of->hub)).n))
		t->bound = hub_sandboxes_bind(hub_sandboxes(t->of->hub), &none, e);
	return !e->code ? 0 : -1;
}

static void program_sandbox_on_flow(void *arg, const struct nw_flow *f)
{
	struct program_sandbox *p = arg;

	if ((f->what == NW_FLOW_DENIED || f->what == NW_FLOW_FAILED) && *f->host)
		p->on_refused(p->owner, f);
}

/* What is watched is served: only once its secrets are told. */
static void program_sandbox_open(struct program_sandbox *p)
{
	if (p->on_refused)
		net_watch(p->net, program_sandbox_on_flow, p);
	net_grant_start(p->net, &p->grant, program_sandbox_on_granted, p);
}

static void program_sandbox_on_bound(void *arg, const struct err *err)
{
	struct program_sandbox *p = arg;

	if (err)
		program_sandbox_made(p, err);
	else
		program_sandbox_open(p);
}

static int program_sandbox_grant(struct program_sandbox *p, struct err *e)
{
	const struct texts *t = p->texts;

	p->net = net_new(hub_nets(t->of->hub), p->sandbox, NULL, e);
	if (!p->net)
		return -1;
	if (t->bound)
		return hub_sandboxes_bind_values(hub_sandboxes(t->of->hub), t->bound, p->net,
						 &p->grant, program_sandbox_on_bound, p, e);
	program_sandbox_open(p);
	return 0;
}

static void program_sandbox_on_made(void *arg, struct sandbox *sb, const struct err *err)
{
	struct program_sandbox *p = arg;
	struct err e;

	if (err) {
		program_sandbox_made(p, err);
		return;
	}
	p->sandbox = sandbox_ref(sb);
	if (!p->grant.rules)
		program_sandbox_made(p, NULL);
	else if (program_sandbox_grant(p, &e) < 0)
		program_sandbox_made(p, &e);
}

/* Whether a folder is the program's home alone: HOME says so, and it is not that of the hub's user,
 * whose programs act on what is in it. */
static bool program_sandbox_is_home(const struct config_target *t, const char *path)
{
	static const char name[] = "HOME=";
	const char *users = getenv("HOME");

	for (const char **v = t->env; v && *v; v++) {
		if (strncmp(*v, name, strlen(name)) == 0 && strcmp(*v + strlen(name), path) == 0)
			return !users || strcmp(users, path) != 0;
	}
	return false;
}

/* The folders that are asked for; full: there were more. */
struct program_folders {
	struct volume p[VOLUMES_MAX];
	size_t n;
	bool full;
};

static void program_sandbox_ask(struct program_folders *to, struct volume v)
{
	if (to->n < VOLUMES_MAX)
		to->p[to->n++] = v;
	else
		to->full = true;
}

static void program_sandbox_ask_all(struct program_folders *to, const char **paths,
				    enum volume_mode mode)
{
	for (; paths && *paths; paths++)
		program_sandbox_ask(to,
				    (struct volume){ str_of(*paths), str_of(*paths), mode, false });
}

static int program_sandbox_make(struct program_sandbox *p, struct err *e)
{
	AUTO(volumes_unref) struct volumes *found = NULL;
	const struct texts *t = p->texts;
	struct program_folders asked = { .n = 0 };
	struct sandbox_mount mounts[VOLUMES_MAX + BOUND_MOUNTS];
	struct env_var env[BOUND_VARIABLES];
	size_t first;
	struct sandbox_spec spec = {
		.template = p->template.p ? p->template : t->server->sandbox.template,
		.ttl_ms = TTL_MS,
		.mounts = mounts,
		.env = env,
	};

	if (program_sandbox_network(p, e) < 0)
		return -1;
	program_sandbox_ask_all(&asked, t->target.read, VOLUME_RO);
	first = asked.n;
	program_sandbox_ask_all(&asked, t->target.write, VOLUME_RW);
	for (; first < asked.n; first++) {
		if (program_sandbox_is_home(&t->target, asked.p[first].host.p))
			asked.p[first].mode = VOLUME_RW_ALL;
	}
	program_sandbox_ask_all(&asked, t->target.state, VOLUME_RW_ALL);
	for (size_t i = 0; i < t->target.mounts_n; i++) {
		const struct config_mount *m = &t->target.mounts[i];

		program_sandbox_ask(&asked,
				    (struct volume){ str_of(m->host), str_of(m->inside),
						     m->read_only ? VOLUME_RO : VOLUME_RW, false });
	}
	for (size_t i = 0; i < p->n_more; i++)
		program_sandbox_ask(&asked, p->more[i]);
	if (asked.full)
		return err_set(e, ERR_LIMIT,
			       "a sandbox has at most %d folders of the host, with those of its "
			       "program and toolchains",
			       VOLUMES_MAX);
	if (asked.n > 0) {
		found = volumes_find(NULL, asked.p, asked.n, true, e);
		if (!found)
			return -1;
	}
	spec.n_mounts = volumes_mounts(found, 0, mounts);
	bound_mounts(t->bound, mounts, &spec.n_mounts);
	bound_env(t->bound, env, &spec.n_env);
	sandbox_create_start(hub_box(t->of->hub), &spec, program_sandbox_on_made, p);
	return 0;
}

void program_sandbox_start(struct program_sandbox *p)
{
	struct err e = ERR_INIT;

	p->making = true;
	if (program_sandbox_make(p, &e) < 0)
		program_sandbox_made(p, err_wrap(&e, "its sandbox") ? &e : NULL);
}

static void program_sandbox_on_ended(void *arg, struct sandbox *sb, const struct err *err)
{
	struct program_sandbox *p = arg;

	if (err)
		log_debug("the end of a program's sandbox: %s", err->msg);
	p->on_gone(p->owner);
}

void program_sandbox_end(struct program_sandbox *p)
{
	net_free(take_ptr(p->net));
	if (!p->sandbox) {
		p->on_gone(p->owner);
		return;
	}
	sandbox_destroy_start(p->sandbox, program_sandbox_on_ended, p);
	sandbox_unref(take_ptr(p->sandbox));
}

/* ---- the program --------------------------------------------------------------------------- */

struct run {
	struct program_sandbox *place;
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
	else
		r->place->on_stderr(r->place->owner, (struct str){ p, n });
}

static void run_on_exit(void *arg, const struct exec_result *x, const struct err *err)
{
	struct run *r = arg;
	struct err e = ERR_INIT;

	r->exec = NULL;
	if (r->closing) {
		run_gone(r);
		return;
	}
	if (err)
		e = *err;
	else if (x->hit_memory)
		err_set(&e, ERR_TRANSPORT, "the program was killed at its memory limit");
	else if (x->end == EXEC_SIGNALED)
		err_set(&e, ERR_TRANSPORT, "the program was ended by signal %d", x->signal);
	else
		err_set(&e, ERR_TRANSPORT, "the program ended with status %d", x->exit_code);
	mcp_program_ended(r->program, &e);
}

static const struct exec_events run_events = { run_on_output, run_on_exit };

static int run_exec(struct run *r, struct err *e)
{
	const struct config_target *t = &r->place->texts->target;
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
	r->exec = exec_start(r->place->sandbox, &spec, &run_events, r, e);
	return r->exec ? 0 : -1;
}

static void *run_start(void *owner, struct mcp_program *p, struct err *e)
{
	struct program_sandbox *at = owner;
	struct run *r = calloc(1, sizeof(*r));

	if (!r)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	*r = (struct run){ .place = at, .program = p, .queue = BUF_INIT(QUEUE_MAX) };
	if (run_exec(r, e) < 0) {
		free(r);
		return NULL;
	}
	exec_on_drain(r->exec, run_on_drain, r);
	uv_timer_init(at->texts->of->loop, &r->timer);
	r->timer.data = r;
	return r;
}

static void run_write(void *run, struct str line)
{
	struct run *r = run;
	struct err e;

	if (!r->exec || r->closing)
		return;
	if (buf_add(&r->queue, line.p, line.n, &e) < 0 || buf_add(&r->queue, "\n", 1, &e) < 0) {
		log_warn("a program does not read its input, and is ended");
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

const struct mcp_runner program_sandbox_runner = { run_start, run_write, run_close, run_kill };
