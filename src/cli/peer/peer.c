#include "cli/peer/internal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/common/args.h"
#include "cli/common/safe.h"
#include "cli/peer/orphans.h"
#include "json/document/utf8.h"

enum { ARENA_MAX = 8 << 20, STOP_MS = 1000, SETTLE_MS = 500, SETTLED_MS = 100, LOOK_MS = 50 };

static const int signals[PEER_SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

/* ---- the end ------------------------------------------------------------------------------- */

static void on_oauth_closed(void *owner)
{
	struct peer *p = owner;

	for (size_t i = 0; i < PEER_SIGNALS; i++)
		uv_close((uv_handle_t *)&p->signals[i], NULL);
	uv_close((uv_handle_t *)&p->settling, NULL);
	uv_close((uv_handle_t *)&p->whole, NULL);
}

static void on_link_closed(void *owner)
{
	struct peer *p = owner;

	p->link = NULL;
	if (p->oauth)
		mcp_oauth_close(take_ptr(p->oauth), on_oauth_closed, p);
	else
		on_oauth_closed(p);
}

void peer_finish(struct peer *p, int status)
{
	struct err e = ERR_INIT;
	int lost;

	if (p->ending)
		return;
	p->ending = true;
	p->status = status;
	peer_err(p);
	lost = cli_flush(&e);
	if (lost && status < 128) {
		p->status = lost;
		if (e.code)
			peer_tell(p, PEER_OWN, &e);
	}
	peer_ask_stop(p);
	if (p->pending)
		mcp_pending_cancel(take_ptr(p->pending));
	if (p->link)
		mcp_link_close(p->link, on_link_closed, p);
	else
		on_link_closed(p);
}

/* ---- what the server says beside it -------------------------------------------------------- */

FILE *peer_err(struct peer *p)
{
	if (p->line_open)
		fputs("\r\033[K", stderr);
	p->line_open = false;
	return stderr;
}

/* A result found under restrictions is not remembered. */
static bool is_narrowed(const struct mcp_target *t)
{
	return t->only.wire != MCP_WIRE_FIND || t->only.era != MCP_BROKEN || t->version;
}

static void on_settled(uv_timer_t *timer)
{
	struct peer *p = timer->data;

	if (!p->ending)
		p->ready(p);
}

void peer_settle(struct peer *p)
{
	if (uv_is_active((uv_handle_t *)&p->settling))
		uv_timer_start(&p->settling, on_settled, SETTLED_MS, 0);
}

static void on_ready(void *owner)
{
	struct peer *p = owner;
	struct err e = ERR_INIT;
	bool legacy;

	if (p->ending || p->spoke)
		return;
	p->spoke = true;
	legacy = mcp_client_era(peer_client(p)) == MCP_LEGACY;
	if (!is_narrowed(&p->target))
		peer_cache_keep(p->key, mcp_link_found(p->link));
	/* Modern servers are told the level in each request. Legacy ones ask for folders after the
	 * start: requests wait for that, but not long, since the server may never ask. */
	if (p->o->log && legacy &&
	    json_get(json_get(mcp_client_about(peer_client(p)), "capabilities"), "logging") &&
	    mcp_client_set_level(peer_client(p), (enum mcp_level)(p->o->log - 1), &e) < 0)
		peer_fail(p, PEER_OWN, &e);
	else if (p->o->roots.n > 0 && legacy)
		uv_timer_start(&p->settling, on_settled, SETTLE_MS, 0);
	else
		p->ready(p);
}

static void on_over(void *owner, const struct err *e)
{
	struct peer *p = owner;

	p->pending = NULL;
	peer_fail(p, peer_meaning(p, e), e);
}

static void on_asked(void *owner, struct mcp_question *q)
{
	peer_asked(owner, q);
}

static void on_withdrawn(void *owner, struct mcp_question *q)
{
	peer_withdrawn(owner, q);
}

static void on_log(void *owner, const struct mcp_log_message *m)
{
	static const char *const names[] = { "debug", "info",	  "notice", "warning",
					     "error", "critical", "alert",  "emergency" };
	struct peer *p = owner;
	struct err e = ERR_INIT;

	if (p->ending || p->o->log == 0 || m->level < p->o->log - 1)
		return;
	fprintf(peer_err(p), "[%s] ", names[m->level]);
	safe_short(stderr, m->logger, 100);
	fputs(m->logger.n ? ": " : "", stderr);
	if (json_type(m->data) == JSON_STR)
		safe_short(stderr, json_str(m->data), 4096);
	else if (safe_json(stderr, m->data, &e) < 0)
		fputs(e.msg, stderr);
	fputc('\n', stderr);
}

static const struct mcp_client_handler handler = {
	.ready = on_ready,
	.over = on_over,
	.asked = on_asked,
	.withdrawn = on_withdrawn,
	.log = on_log,
};

static void on_stderr(void *owner, struct str s)
{
	struct peer *p = owner;
	size_t keep;

	if (p->o->verbose && !p->ending)
		safe_text(peer_err(p), s, 0);
	if (s.n > PEER_TAIL)
		s = (struct str){ s.p + s.n - PEER_TAIL, PEER_TAIL };
	keep = p->tail_n + s.n > PEER_TAIL ? PEER_TAIL - s.n : p->tail_n;
	memmove(p->tail, p->tail + p->tail_n - keep, keep);
	memcpy(p->tail + keep, s.p, s.n);
	p->tail_n = keep + s.n;
}

/* ---- the beginning ------------------------------------------------------------------------- */

/* The first signal cancels the request and ends in order; the second ends now. */
static void on_signal(uv_signal_t *h, int number)
{
	struct peer *p = h->data;

	if (p->ending) {
		if (p->link)
			mcp_link_kill(p->link);
		orphans_kill();
		_exit(128 + number);
	}
	peer_finish(p, 128 + number);
}

/* The clock stands while a person is asked. */
static void on_look(uv_timer_t *timer)
{
	struct peer *p = timer->data;
	uint64_t now = uv_now(&p->loop);
	struct err e;

	if (!p->form && !p->logging_in)
		p->taken_ms += now - p->looked_ms;
	p->looked_ms = now;
	if (p->ending || p->taken_ms < p->o->timeout_ms)
		return;
	err_set(&e, ERR_TIMEOUT, "it took longer than %.10g s", (double)p->o->timeout_ms / 1e3);
	peer_fail(p, peer_meaning(p, &e), &e);
}

static void start_clock(struct peer *p)
{
	if (p->o->timeout_ms == 0)
		return;
	uv_update_time(&p->loop); /* arguments may come from a slow standard input */
	p->looked_ms = uv_now(&p->loop);
	uv_timer_start(&p->whole, on_look, LOOK_MS, LOOK_MS);
}

static int connect_to(struct peer *p, struct err *e)
{
	const struct mcp_client_options o = {
		.name = "holt",
		.title = "Holt",
		.version = HOLT_VERSION,
		.can = peer_can(p),
		.handler = &handler,
		.owner = p,
		.timeout_ms = (unsigned)p->o->timeout_ms,
		.timeout_max_ms = p->o->timeout_ms > 600000 ? (unsigned)p->o->timeout_ms : 0,
	};

	p->target.on_stderr = on_stderr;
	p->target.owner = p;
	p->target.stop_ms = STOP_MS;
	p->target.start_ms = (unsigned)p->o->timeout_ms;
	p->key = peer_cache_key(&p->target);
	p->target.known = peer_cache_find(p->key);
	p->link = mcp_connect(&p->loop, &p->target, &o, e);
	return p->link ? 0 : -1;
}

/* Everything that may wait for a file or a user. Signals still end the program, and nothing is
 * running that would be left behind. */
static int peer_prepare(struct peer *p, struct err *e)
{
	const char *const *operands = (const char *const *)p->in->operands;

	if (!p->arena)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (int i = 0; i < p->first; i++) {
		if (!utf8_valid(str_of(operands[i])))
			return err_set(e, ERR_INVALID, "'%.60s' is not UTF-8", operands[i]);
	}
	p->arguments = args_read(operands + p->first, (size_t)(p->in->n_operands - p->first), e);
	if (!p->arguments || peer_ask_prepare(p, e) < 0) {
		e->code = ERR_INVALID; /* also if a file is missing: the argument is wrong */
		return -1;
	}
	return peer_target(p, e) < 0 ? -1 : peer_login(p, e);
}

static void peer_start(struct peer *p)
{
	struct err e = ERR_INIT;

	uv_timer_init(&p->loop, &p->settling);
	uv_timer_init(&p->loop, &p->whole);
	p->settling.data = p->whole.data = p;
	for (size_t i = 0; i < PEER_SIGNALS; i++) {
		uv_signal_init(&p->loop, &p->signals[i]);
		p->signals[i].data = p;
	}
	if (peer_prepare(p, &e) == 0) {
		for (size_t i = 0; i < PEER_SIGNALS; i++)
			uv_signal_start(&p->signals[i], on_signal, signals[i]);
		start_clock(p);
		if (connect_to(p, &e) == 0)
			return;
	}
	peer_fail(p, e.code == ERR_INVALID ? PEER_USAGE : peer_meaning(p, &e), &e);
}

static int converse(const struct verb_input *in, const struct peer_options *o, int first,
		    void (*ready)(struct peer *p), void *state)
{
	AUTO(arena_free) struct arena *arena = arena_new(ARENA_MAX);
	autofree struct peer *p = calloc(1, sizeof(*p));
	struct err e = ERR_INIT;

	if (!p || uv_loop_init(&p->loop) < 0) {
		err_set(&e, ERR_LIMIT, "no event loop");
		return cli_fail(&e);
	}
	p->in = in;
	p->o = o;
	p->ready = ready;
	p->state = state;
	p->first = first;
	p->arena = arena;
	orphans_adopt();
	peer_start(p);
	uv_run(&p->loop, UV_RUN_DEFAULT);
	orphans_kill();
	uv_loop_close(&p->loop);
	mcp_oauth_store_free(p->store);
	secret_free(p->token);
	args_free(p->arguments);
	args_free(p->answers);
	return p->status;
}

int peer_run(const struct verb_input *in, const struct peer_options *o,
	     void (*ready)(struct peer *p), void *state)
{
	return converse(in, o, in->n_operands, ready, state);
}

int peer_run_with(const struct verb_input *in, const struct peer_options *o, int first,
		  void (*ready)(struct peer *p))
{
	return converse(in, o, first, ready, NULL);
}

/* ---- what words see ------------------------------------------------------------------------ */

const struct verb_input *peer_input(const struct peer *p)
{
	return p->in;
}

const struct peer_options *peer_options(const struct peer *p)
{
	return p->o;
}

void *peer_state(const struct peer *p)
{
	return p->state;
}

const struct args *peer_arguments(const struct peer *p)
{
	return p->arguments;
}

struct mcp_client *peer_client(const struct peer *p)
{
	return mcp_link_client(p->link);
}

const struct json_val *peer_info(const struct peer *p)
{
	const struct json_val *about = mcp_client_about(peer_client(p));
	const struct json_val *info = json_get(about, "serverInfo");

	return info ? info
		    : json_get(json_get(about, "_meta"), "io.modelcontextprotocol/serverInfo");
}

const char *peer_wire(const struct peer *p)
{
	static const char *const names[] = {
		[MCP_WIRE_STDIO] = "stdio", [MCP_WIRE_HTTP] = "http", [MCP_WIRE_SSE] = "sse"
	};

	return names[mcp_link_found(p->link).wire];
}
