#include "cli/peer_impl.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/safe.h"
#include "json/write.h"

enum {
	ARENA_MAX = 8 << 20,
	STOP_MS = 1000,
	TASK_MS = 600000,
	SETTLE_MS = 500,
	SETTLED_MS = 100,
};

static const int signals[PEER_SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

/* ---- ends ---------------------------------------------------------------------------------- */

static const struct end {
	int exit;
	const char *name, *remedy;
} ends[] = {
#define PEER_END(name_, exit_, word_, remedy_) [PEER_##name_] = { exit_, word_, remedy_ },
#include "cli/peer_end.h"
#undef PEER_END
};

/* What an error is to who asked, before the server could be asked and after. */
static const struct meaning {
	enum err_code code;
	enum peer_end early, late;
} meanings[] = {
	{ ERR_UNAUTHORIZED, PEER_AUTHORIZATION, PEER_AUTHORIZATION },
	{ ERR_DENIED, PEER_AUTHORIZATION, PEER_AUTHORIZATION },
	{ ERR_CANCELLED, PEER_AUTHORIZATION, PEER_PROTOCOL },
	{ ERR_TRANSPORT, PEER_UNREACHABLE, PEER_UNREACHABLE },
	{ ERR_COMMAND_NOT_FOUND, PEER_UNREACHABLE, PEER_UNREACHABLE },
	{ ERR_COMMAND_NOT_RUN, PEER_UNREACHABLE, PEER_UNREACHABLE },
	{ ERR_TIMEOUT, PEER_UNREACHABLE, PEER_TIMEOUT },
	{ ERR_UNSUPPORTED, PEER_PROTOCOL, PEER_PROTOCOL },
	{ ERR_TOO_LARGE, PEER_PROTOCOL, PEER_PROTOCOL },
	{ ERR_INVALID, PEER_PROTOCOL, PEER_PROTOCOL },
};

static enum peer_end meaning_of(const struct peer *p, const struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
		if (meanings[i].code == e->code)
			return p->spoke ? meanings[i].late : meanings[i].early;
	}
	return PEER_OWN;
}

static void on_oauth_closed(void *owner)
{
	struct peer *p = owner;

	for (size_t i = 0; i < PEER_SIGNALS; i++)
		uv_close((uv_handle_t *)&p->signals[i], NULL);
	uv_close((uv_handle_t *)&p->settling, NULL);
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

static void finish(struct peer *p, int status)
{
	if (p->ending)
		return;
	p->ending = true;
	p->status = status;
	peer_err(p);
	fflush(stdout);
	peer_ask_stop(p);
	if (p->pending)
		mcp_pending_cancel(take_ptr(p->pending));
	if (p->link)
		mcp_link_close(p->link, on_link_closed, p);
	else
		on_link_closed(p);
}

void peer_end(struct peer *p, enum peer_end how)
{
	finish(p, ends[how].exit);
}

/* {"error":{"kind","message","code","data"}}: what --json says on standard error. */
static void print_json_failure(enum peer_end how, struct str message, const struct json_val *fault)
{
	autobuf struct buf b = BUF_INIT(1 << 20);
	AUTO(json_free) struct json_doc *doc = NULL;
	struct json_writer w = json_writer(&b);
	struct err e = ERR_INIT;

	json_write_object(&w);
	json_write_key(&w, "error");
	json_write_object(&w);
	json_write_key(&w, "kind");
	json_write_text(&w, ends[how].name);
	json_write_key(&w, "message");
	json_write_str(&w, message);
	if (fault) {
		json_write_key(&w, "code");
		json_write_val(&w, json_get(fault, "code"));
	}
	if (json_get(fault, "data")) {
		json_write_key(&w, "data");
		json_write_val(&w, json_get(fault, "data"));
	}
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (json_write_done(&w, &e) == 0)
		doc = json_parse(buf_str(&b), NULL, &e);
	if (doc && safe_json(stderr, json_root(doc), &e) == 0)
		fputc('\n', stderr);
}

static void print_failure(const struct peer *p, enum peer_end how, struct str message,
			  const struct json_val *fault)
{
	struct err e = ERR_INIT;

	fprintf(stderr, "holt %s: ", p->in->verb->name);
	safe_line(stderr, message);
	fputc('\n', stderr);
	if (json_get(fault, "data")) {
		fputs("  ", stderr);
		if (safe_json_lines(stderr, json_get(fault, "data"), 2, &e) == 0)
			fputc('\n', stderr);
	}
	if (how == PEER_USAGE)
		fprintf(stderr, "Try 'holt help %s'.\n", p->in->verb->name);
	else if (ends[how].remedy)
		fprintf(stderr, "  %s\n", ends[how].remedy);
}

/* Its program may have said why. */
static void print_tail(struct peer *p)
{
	if (p->o->verbose || p->tail_n == 0)
		return;
	fputs("  The server's program wrote:\n", stderr);
	safe_text(stderr, (struct str){ p->tail, p->tail_n }, 4);
}

static void tell_failure(struct peer *p, enum peer_end how, struct str message,
			 const struct json_val *fault)
{
	if (p->ending)
		return;
	peer_err(p);
	fflush(stdout);
	if (p->o->quiet) {
		/* that is all there is to know */
	} else if (p->o->json) {
		print_json_failure(how, message, fault);
	} else {
		print_failure(p, how, message, fault);
		if (how == PEER_UNREACHABLE)
			print_tail(p);
	}
	peer_end(p, how);
}

void peer_fail(struct peer *p, enum peer_end how, const struct err *e)
{
	tell_failure(p, how, str_of(e->msg), NULL);
}

/* ---- requests ------------------------------------------------------------------------------ */

/* A capability that is missing is named in the error's data. */
static const char *lack_of(const struct json_val *fault)
{
	const struct json_val *needs = json_get(json_get(fault, "data"), "requiredCapabilities");

	if (json_get(needs, "sampling"))
		return "; it wants to use a model of ours (sampling), and there is none here";
	if (json_get(needs, "roots"))
		return "; it wants to know folders: name them with --root";
	return "";
}

static void tell_fault(struct peer *p, const struct json_val *fault)
{
	autobuf struct buf b = BUF_INIT(1 << 20);
	struct str says = json_str(json_get(fault, "message"));
	struct err e = ERR_INIT;
	int64_t code = 0;

	json_int64(json_get(fault, "code"), &code);
	if (buf_addf(&b, &e, "the server refused: %.*s (%lld)%s",
		     says.n > 4096 ? 4096 : (int)says.n, says.p ? says.p : "", (long long)code,
		     lack_of(fault)) < 0)
		peer_fail(p, PEER_OWN, &e);
	else
		tell_failure(p, PEER_PROTOCOL, buf_str(&b), fault);
}

static void tell_answer(struct peer *p, const struct mcp_answer *a)
{
	if (a->fault)
		tell_fault(p, a->fault);
	else
		peer_fail(p, meaning_of(p, a->e), a->e);
}

static void on_done(void *owner, const struct mcp_answer *a)
{
	struct peer *p = owner;

	p->pending = NULL;
	if (p->ending)
		return;
	peer_err(p);
	if (a->result)
		p->then(p, a->result);
	else
		tell_answer(p, a);
}

static void on_listed(void *owner, const struct mcp_listed *l)
{
	struct peer *p = owner;

	p->pending = NULL;
	if (p->ending)
		return;
	if (l->dropped > 0)
		fprintf(peer_err(p),
			"holt mcp: %zu tools are left out: their x-mcp-header is not as it must be\n",
			l->dropped);
	if (l->failed)
		tell_answer(p, l->failed);
	else
		p->then_list(p, l);
}

static void on_progress(void *owner, const struct mcp_progress *g)
{
	struct peer *p = owner;
	bool terminal = isatty(STDERR_FILENO);

	if (p->ending || (!terminal && !p->o->progress))
		return;
	fprintf(stderr, terminal ? "\r\033[K" : "");
	if (g->total > 0)
		fprintf(stderr, "%g of %g", g->progress, g->total);
	else
		fprintf(stderr, "%g", g->progress);
	fputs(g->message.n ? ": " : "", stderr);
	safe_short(stderr, g->message, 200);
	p->line_open = terminal;
	if (!terminal)
		fputc('\n', stderr);
}

static void on_task(void *owner, struct str id)
{
	struct peer *p = owner;

	if (p->ending || (!isatty(STDERR_FILENO) && !p->o->progress))
		return;
	fputs("It has become the task ", peer_err(p));
	safe_short(stderr, id, 200);
	fputc('\n', stderr);
}

static struct mcp_request_spec spec_of(struct peer *p)
{
	return (struct mcp_request_spec){
		.on_progress = isatty(STDERR_FILENO) || p->o->progress ? on_progress : NULL,
		.log_level = (int)p->o->log,
		.on_task = on_task,
		.on_done = on_done,
		.owner = p,
	};
}

static void started(struct peer *p, struct mcp_pending *pending, const struct err *e)
{
	p->pending = pending;
	if (!pending)
		peer_fail(p, meaning_of(p, e), e);
}

void peer_request(struct peer *p, const char *method, struct str params, peer_then *then)
{
	struct mcp_request_spec s = spec_of(p);
	struct err e = ERR_INIT;

	s.method = method;
	s.params = params;
	p->then = then;
	started(p, mcp_client_request(peer_client(p), &s, &e), &e);
}

void peer_call(struct peer *p, const char *tool, struct str arguments, bool task, peer_then *then)
{
	struct mcp_request_spec s = spec_of(p);
	struct err e = ERR_INIT;

	s.task_ttl_ms = task ? TASK_MS : 0;
	p->then = then;
	started(p, mcp_client_call(peer_client(p), tool, arguments, &s, &e), &e);
}

static const struct {
	const char *what, *capability;
} lists[] = {
	{ "tools", "tools" },
	{ "resources", "resources" },
	{ "resourceTemplates", "resources" },
	{ "prompts", "prompts" },
};

/* A server that does not say that it has a list is not asked for it. */
static bool has_list(const struct peer *p, const char *what)
{
	const struct json_val *can = json_get(mcp_client_about(peer_client(p)), "capabilities");

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		if (strcmp(lists[i].what, what) == 0)
			return json_get(can, lists[i].capability) != NULL;
	}
	return true;
}

void peer_list(struct peer *p, const char *what,
	       void (*then)(struct peer *p, const struct mcp_listed *l))
{
	struct err e = ERR_INIT;

	p->then_list = then;
	if (has_list(p, what))
		started(p, mcp_client_list(peer_client(p), what, on_listed, p, &e), &e);
	else
		then(p, &(struct mcp_listed){ .n = 0 });
}

void peer_print_json(struct peer *p, const struct json_val *result, enum peer_end how)
{
	struct err e = ERR_INIT;

	if (safe_json(stdout, result, &e) < 0) {
		peer_fail(p, PEER_OWN, &e);
		return;
	}
	putchar('\n');
	peer_end(p, how);
}

/* ---- what the server says beside it -------------------------------------------------------- */

FILE *peer_err(struct peer *p)
{
	if (p->line_open)
		fputs("\r\033[K", stderr);
	p->line_open = false;
	return stderr;
}

/* What is found under restrictions is not what the server would be spoken to in. */
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

/* Servers of the old era ask for folders when the conversation has begun, and know them a moment later: what
 * is asked of them waits for that, but not long, since they may never ask. */
static void settle(struct peer *p)
{
	if (p->o->roots.n > 0 && mcp_client_era(peer_client(p)) == MCP_LEGACY)
		uv_timer_start(&p->settling, on_settled, SETTLE_MS, 0);
	else
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

	if (p->ending || p->spoke)
		return;
	p->spoke = true;
	if (!is_narrowed(&p->target))
		peer_cache_keep(p->key, mcp_link_found(p->link));
	/* modern servers are told in each request */
	if (p->o->log && mcp_client_era(peer_client(p)) == MCP_LEGACY &&
	    json_get(json_get(mcp_client_about(peer_client(p)), "capabilities"), "logging") &&
	    mcp_client_set_level(peer_client(p), (enum mcp_level)(p->o->log - 1), &e) < 0)
		peer_fail(p, PEER_OWN, &e);
	else
		settle(p);
}

static void on_over(void *owner, const struct err *e)
{
	struct peer *p = owner;

	p->pending = NULL;
	peer_fail(p, meaning_of(p, e), e);
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

/* ---- the beginning and the end ------------------------------------------------------------- */

/* The first takes back what was asked and ends it in order; the second ends it now. */
static void on_signal(uv_signal_t *h, int number)
{
	struct peer *p = h->data;

	if (p->ending) {
		if (p->link)
			mcp_link_kill(p->link);
		_exit(128 + number);
	}
	finish(p, 128 + number);
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

static void start(struct peer *p)
{
	struct err e = ERR_INIT;

	uv_timer_init(&p->loop, &p->settling);
	p->settling.data = p;
	for (size_t i = 0; i < PEER_SIGNALS; i++) {
		uv_signal_init(&p->loop, &p->signals[i]);
		p->signals[i].data = p;
		uv_signal_start(&p->signals[i], on_signal, signals[i]);
	}
	if (!p->arena)
		err_set(&e, ERR_LIMIT, "out of memory");
	else if (peer_target(p, &e) == 0 && peer_login(p, &e) == 0 && connect_to(p, &e) == 0)
		return;
	peer_fail(p, e.code == ERR_INVALID ? PEER_USAGE : meaning_of(p, &e), &e);
}

int peer_run(const struct verb_input *in, const struct peer_options *o,
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
	p->arena = arena;
	start(p);
	uv_run(&p->loop, UV_RUN_DEFAULT);
	uv_loop_close(&p->loop);
	mcp_oauth_store_free(p->store);
	secret_free(p->token);
	return p->status;
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
