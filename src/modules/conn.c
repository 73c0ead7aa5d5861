/*
 * One connection to a module:
 *
 *	secrets of its texts -> the texts -> its sandbox -> the link -> its tools -> calls
 *
 * Each step begins the next in a callback. What fails, or takes too long in all, ends it. The end
 * closes the link, then removes the sandbox, then frees it.
 */
#include <stdlib.h>

#include "base/log.h"
#include "modules/internal.h"
#include "net/wire/wire.h"

enum {
	STOP_MS = 500,
	DETAIL_MAX = 256 << 10, /* bytes of a tool's description, with its schemas */
	LIST_MAX = 1000,
	LIST_PAUSE_MS = 1000, /* from one list to the next: to judge a large one takes time */
	LIST_BYTES_MAX = 8 << 20,
	TEXT_MAX = 64 << 10,
	MESSAGE_MAX = 160,
};

/* ---- the end ------------------------------------------------------------------------------- */

static void conn_on_timer_closed(uv_handle_t *h)
{
	struct upstream_conn *k = h->data;
	struct upstreams *all = k->all;
	bool ran_package = k->package;

	texts_fini(&k->texts);
	config_unref(k->config);
	package_unref(k->package);
	free(k);
	if (ran_package)
		packages_sweep(all); /* its image was in use until now */
	all->open--;
	upstreams_try_close(all);
}

static void conn_on_offers_closed(uv_handle_t *h)
{
	struct upstream_conn *k = h->data;

	uv_close((uv_handle_t *)&k->limit, conn_on_timer_closed);
}

static void conn_on_gone(void *owner)
{
	struct upstream_conn *k = owner;

	uv_close((uv_handle_t *)&k->offers.timer, conn_on_offers_closed);
}

static void conn_try_end(struct upstream_conn *k)
{
	if (k->linked || k->place.making)
		return;
	uv_timer_stop(&k->limit); /* else its turn would end it again */
	program_sandbox_end(&k->place);
}

static void conn_on_link_closed(void *owner)
{
	struct upstream_conn *k = owner;

	k->linked = false;
	conn_try_end(k);
}

/* In a turn of its own: a link is not closed from inside one of its callbacks. */
static void conn_on_turn(uv_timer_t *t)
{
	struct upstream_conn *k = t->data;

	if (k->link)
		mcp_link_close(take_ptr(k->link), conn_on_link_closed, k);
	else
		conn_try_end(k);
}

void conn_end(struct upstream_conn *k, const struct err *e)
{
	const struct mcp_answer failed = { .e = e };

	if (k->ending)
		return;
	k->ending = true;
	pins_judge_leave(k);
	if (k->of)
		upstream_unlink(k->of, k);
	k->of = NULL;
	texts_cancel(&k->texts);
	uv_timer_start(&k->limit, conn_on_turn, 0, 0);
	while (k->calls) {
		struct upstream_call *c = k->calls;

		k->calls = c->next;
		mcp_pending_cancel(take_ptr(c->pending));
		ask_end(c);
		c->conn = NULL;
		upstream_released(c->of);
		c->on_done(c->owner, &failed);
	}
}

/* It has failed, or ended by itself. */
static void conn_fail(struct upstream_conn *k, const struct err *e)
{
	struct upstream *u = k->of;

	if (k->ending)
		return;
	if (u && !k->retired)
		upstream_lost(u, e);
	conn_end(k, e);
}

static void conn_on_late(uv_timer_t *t)
{
	struct upstream_conn *k = t->data;
	struct err e;

	err_set(&e, ERR_TIMEOUT, "it was not ready in %u s (connectSeconds)",
		k->server->connect_seconds);
	conn_fail(k, &e);
}

/* ---- calls --------------------------------------------------------------------------------- */

void conn_release(struct upstream_call *c)
{
	struct upstream_conn *k = take_ptr(c->conn);
	struct upstream_call **at = &k->calls;
	struct err e;

	ask_end(c);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->pending = NULL;
	if (k->retired && !k->calls) {
		err_set(&e, ERR_CANCELLED, "the module is another now");
		conn_end(k, &e);
	}
	upstream_released(c->of);
}

static void conn_on_answer(void *owner, const struct mcp_answer *a)
{
	struct upstream_call *c = owner;
	struct upstream *u = c->of;

	if (!a->e)
		u->failures = 0;
	conn_release(c);
	c->on_done(c->owner, a);
}

static void conn_on_progress(void *owner, const struct mcp_progress *p)
{
	struct upstream_call *c = owner;

	c->on_progress(c->owner, p);
}

static struct mcp_pending *conn_send(struct upstream_conn *k, const struct upstream_call *c,
				     const struct mcp_request_spec *spec, struct err *e)
{
	struct mcp_client *to = mcp_link_client(k->link);
	struct mcp_request_spec s = *spec;
	autofree char *tool = NULL;

	if (c->on_log && c->level < k->level && mcp_client_set_level(to, c->level, e) == 0)
		k->level = c->level;
	if (c->kind == UPSTREAM_CALL) {
		tool = mem_dup(c->tool.p, c->tool.n);
		if (tool)
			return mcp_client_call(to, tool, c->arguments, &s, e);
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	}
	s.method = upstream_kind_methods[c->kind];
	s.params = c->arguments;
	return mcp_client_request(to, &s, e);
}

int conn_call(struct upstream_conn *k, struct upstream_call *c, struct err *e)
{
	uint64_t most = k->server->timeout_seconds * 1000ull;
	const struct mcp_request_spec spec = {
		.timeout_ms = (unsigned)(c->timeout_ms && c->timeout_ms < most ? c->timeout_ms
									       : most),
		.on_progress = c->on_progress ? conn_on_progress : NULL,
		.on_done = conn_on_answer,
		.owner = c,
	};
	c->pending = conn_send(k, c, &spec, e);
	if (!c->pending)
		return -1;
	if (!k->who[0])
		snprintf(k->who, sizeof(k->who), "%.*s", STR_ARG(c->who));
	k->mixed = k->mixed || !str_is(c->who, k->who);
	c->conn = k;
	c->next = k->calls;
	k->calls = c;
	c->of->calls++;
	c->of->calls_total++;
	return 0;
}

/* ---- its tools ----------------------------------------------------------------------------- */

struct upstream_tools *upstream_tools_ref(const struct upstream *u)
{
	if (u->tools)
		u->tools->refs++;
	return u->tools;
}

void upstream_tools_unref(struct upstream_tools *t)
{
	if (!t || --t->refs > 0)
		return;
	arena_free(t->arena);
	free(t);
}

static int tools_text(struct upstream_tools *t, struct str from, size_t max, struct str *ret,
		      struct err *e)
{
	if (from.n > max)
		from.n = max;
	*ret = (struct str){ arena_dup(t->arena, from, e), from.n };
	return ret->p ? 0 : -1;
}

static bool tools_have(const struct upstream_tools *t, struct str name)
{
	for (size_t i = 0; i < t->n; i++) {
		if (str_eq(t->p[i].name, name))
			return true;
	}
	return false;
}

/* No call could say which of them it means. */
static void tools_leave_out(struct upstream *u, struct str name)
{
	char said[128];

	if (name.n)
		snprintf(said, sizeof(said), "Holt leaves out another tool called \"%.*s\".\n",
			 STR_CUT(name, 64));
	else
		snprintf(said, sizeof(said),
			 "Holt leaves out tools without a name, or with wrong headers.\n");
	log_warn("module %s: %.*s", u->name, (int)strcspn(said, "\n"), said);
	upstream_heard(u, str_of(said));
}

static int tools_add(struct upstream *u, struct upstream_tools *t, const struct json_val *v,
		     struct err *e)
{
	struct upstream_tool *to = &t->p[t->n];
	struct str name = json_str(json_get(v, "name"));
	autobuf struct buf b = BUF_INIT(DETAIL_MAX);
	struct json_writer w = json_writer(&b);

	if (!name.n || tools_have(t, name)) {
		tools_leave_out(u, name);
		return 0;
	}
	json_write_val(&w, v);
	if (json_write_done(&w, e) < 0)
		return err_wrap(e, "a tool's description");
	if (tools_text(t, name, DETAIL_MAX, &to->name, e) < 0 ||
	    tools_text(t, buf_str(&b), DETAIL_MAX, &to->json, e) < 0)
		return -1;
	t->n++;
	return 0;
}

struct upstream_tools *upstream_tools_new(struct upstream *u, const struct json_val *const *items,
					  size_t n, struct str instructions, struct err *e)
{
	struct upstream_tools *t = calloc(1, sizeof(*t));
	int rc;

	if (t)
		t->arena = arena_new(LIST_BYTES_MAX);
	if (!t || !t->arena) {
		free(t);
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	}
	t->refs = 1;
	t->p = arena_array(t->arena, n + 1, sizeof(*t->p), e);
	rc = t->p ? tools_text(t, instructions, TEXT_MAX, &t->instructions, e) : -1;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = tools_add(u, t, items[i], e);
	if (rc == 0)
		return t;
	upstream_tools_unref(t);
	return NULL;
}

static struct upstream_tools *tools_of_list(struct upstream_conn *k, const struct mcp_listed *l,
					    struct err *e)
{
	const struct mcp_client *c = mcp_link_client(k->link);
	const struct json_val *about = mcp_client_about(c);
	struct upstream_tools *t = upstream_tools_new(k->of, l->items, l->n,
						      json_str(json_get(about, "instructions")), e);

	if (!t)
		return NULL;
	t->version = str_of(mcp_client_version(c));
	if (tools_text(t, json_str(json_get(json_get(about, "serverInfo"), "name")), 128, &t->title,
		       e) == 0)
		return t;
	upstream_tools_unref(t);
	return NULL;
}

static void conn_list_again(struct upstream_conn *k);

static void conn_on_listed(void *owner, const struct mcp_listed *l)
{
	struct upstream_conn *k = owner;
	struct upstream_tools *t = NULL;
	struct err e = ERR_INIT;

	k->listing = NULL;
	if (k->ending || k->retired)
		return;
	if (l->failed && l->failed->e)
		e = *l->failed->e;
	else if (l->failed)
		err_set(&e, ERR_INVALID, "it refuses to list its tools: error %d: %.*s",
			l->failed->code,
			STR_CUT(json_str(json_get(l->failed->fault, "message")), MESSAGE_MAX));
	else
		t = tools_of_list(k, l, &e);
	if (t && l->dropped)
		tools_leave_out(k->of, STR_NONE);
	if (!t || pins_judge_start(k, t, &e) < 0)
		conn_fail(k, &e);
}

void conn_on_judged(struct upstream_conn *k, struct upstream_tools *t, const struct err *err)
{
	struct err e;

	if (k->retired)
		return;
	if (err) {
		conn_fail(k, err);
		return;
	}
	upstream_tools_unref(k->of->tools);
	k->of->tools = t;
	t->refs++;
	if (pins_take(k->of, &e) < 0) {
		upstream_tools_unref(take_ptr(k->of->tools));
		conn_fail(k, &e);
		return;
	}
	uv_timer_stop(&k->limit);
	if (k->relist) {
		conn_list_again(k);
		return;
	}
	k->ready = true;
	offers_begin(k);
	upstream_ready(k->of);
}

/* While they are listed anew no call is sent: what is called is what was listed last. */
static void conn_list(struct upstream_conn *k)
{
	struct err e = ERR_INIT;

	k->relist = k->ready = false;
	k->listed_ms = uv_now(k->all->loop);
	k->listing = mcp_client_list(mcp_link_client(k->link), "tools", conn_on_listed, k, &e);
	if (!k->listing)
		conn_fail(k, &e);
}

static void conn_on_pause(uv_timer_t *t)
{
	conn_list(t->data);
}

static void conn_list_again(struct upstream_conn *k)
{
	uint64_t since = uv_now(k->all->loop) - k->listed_ms;

	k->ready = false;
	uv_timer_start(&k->limit, conn_on_pause, since < LIST_PAUSE_MS ? LIST_PAUSE_MS - since : 0,
		       0);
}

/* ---- the link ------------------------------------------------------------------------------ */

static void conn_on_ready(void *owner)
{
	struct upstream_conn *k = owner;
	struct err e;

	if (k->ending)
		return;
	offers_watch(k);
	if (mcp_client_set_level(mcp_link_client(k->link), k->level, &e) < 0)
		log_debug("module %.*s: %s", STR_ARG(k->server->name), e.msg);
	conn_list(k);
}

static void conn_on_over(void *owner, const struct err *e)
{
	conn_fail(owner, e);
}

static void conn_on_changed(void *owner, unsigned lists)
{
	struct upstream_conn *k = owner;

	/* the first list is still to come; the tools of a retired one are not the module's */
	if (!k->listed_ms || k->ending || k->retired)
		return;
	if (k->offers.since_ms)
		offers_changed(k, lists);
	if (!(lists & MCP_TOOLS))
		return;
	if (k->listing || k->judging)
		k->relist = true;
	else
		conn_list_again(k);
}

static const struct mcp_client_handler conn_handler = { .ready = conn_on_ready,
							.over = conn_on_over,
							.asked = ask_on_asked,
							.withdrawn = ask_on_withdrawn,
							.changed = conn_on_changed,
							.updated = offers_on_updated,
							.log = offers_on_log };

static void conn_on_stderr(void *owner, struct str bytes)
{
	struct upstream_conn *k = owner;

	if (k->of)
		upstream_heard(k->of, bytes);
}

static void conn_on_refused(void *owner, const struct nw_flow *f)
{
	struct upstream_conn *k = owner;

	if (k->of && f->what == NW_FLOW_DENIED)
		why_denied(k->of, f->host, f->port);
}

/* Lines on standard output that are no messages, of a program in a sandbox. */
static void conn_on_output(void *owner, struct str bytes)
{
	const struct program_sandbox *p = owner;

	p->on_stderr(p->owner, bytes);
}

static const enum mcp_wire conn_wires[CONFIG_WIRES] = {
	[CONFIG_STDIO] = MCP_WIRE_STDIO, [CONFIG_HTTP] = MCP_WIRE_HTTP, [CONFIG_SSE] = MCP_WIRE_SSE
};

static int conn_headers(const struct config_target *from, struct arena *a, struct mcp_target *to,
			struct err *e)
{
	struct http_header *h = arena_array(a, from->headers_n + 1, sizeof(*h), e);

	for (size_t i = 0; h && i < from->headers_n; i++) {
		h[i].name = arena_dup(a, from->headers[i].key, e);
		h[i].value = from->headers[i].value;
		if (!h[i].name)
			return -1;
	}
	to->headers = h;
	to->headers_n = from->headers_n;
	return h ? 0 : -1;
}

static int conn_link(struct upstream_conn *k, struct err *e)
{
	const struct config_server *s = k->server;
	const struct mcp_client_options o = { .name = "holt",
					      .version = HOLT_VERSION,
					      .label = k->label,
					      .can = ASK_KINDS | MCP_CAN_TASKS,
					      .handler = &conn_handler,
					      .owner = k,
					      .list_max = LIST_MAX,
					      .message_max = UPSTREAM_MESSAGE_MAX,
					      .timeout_ms = s->timeout_seconds * 1000,
					      .timeout_max_ms = s->timeout_seconds * 1000,
					      .task_max_ms = s->timeout_seconds * 1000 };
	struct mcp_target t = { .known = k->of->found,
				.start_ms = s->connect_seconds * 1000,
				.stop_ms = STOP_MS,
				.on_stderr = conn_on_stderr,
				.owner = k };
	AUTO(arena_free) struct arena *a = arena_new(1 << 20);

	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (s->has_type)
		t.only.wire = conn_wires[s->type];
	if (!k->texts.target.argv) {
		t.url = k->texts.target.url;
		if (conn_headers(&k->texts.target, a, &t, e) < 0)
			return -1;
	} else if (k->place.sandbox) {
		t.runner = &program_sandbox_runner;
		t.on_stderr = conn_on_output;
		t.owner = &k->place;
	} else {
		t.argv = k->texts.target.argv;
		t.tethered = true;
		t.env_more = k->texts.target.env;
		t.cwd = k->texts.target.cwd;
	}
	k->link = mcp_connect(k->all->loop, &t, &o, e);
	k->linked = k->link != NULL;
	return k->link ? 0 : -1;
}

static void conn_on_made(void *owner, const struct err *err)
{
	struct upstream_conn *k = owner;
	struct err e = ERR_INIT;

	if (k->ending)
		conn_try_end(k);
	else if (err)
		conn_fail(k, err);
	else if (conn_link(k, &e) < 0)
		conn_fail(k, &e);
}

/* ---- the beginning ------------------------------------------------------------------------- */

static void conn_on_texts(void *owner, const struct err *e)
{
	struct upstream_conn *k = owner;
	struct err unfit = ERR_INIT;

	if (e)
		conn_fail(k, e);
	else if (k->package && packages_target(k->package, k->server, &k->texts.target, &unfit) < 0)
		conn_fail(k, &unfit);
	else if (k->texts.target.argv && !k->server->sandbox.off)
		program_sandbox_start(&k->place);
	else
		conn_on_made(k, NULL);
}

/* Not from inside who calls. */
static void conn_on_begin(uv_timer_t *t)
{
	struct upstream_conn *k = t->data;

	uv_timer_start(t, conn_on_late, k->server->connect_seconds * 1000ull, 0);
	texts_start(&k->texts);
}

struct upstream_conn *conn_new(struct upstream *u, struct err *e)
{
	struct upstream_conn *k = calloc(1, sizeof(*k));

	if (!k)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	*k = (struct upstream_conn){
		.of = u, .all = u->all, .config = config_ref(u->config), .server = u->server
	};
	k->texts = (struct texts){ .of = &u->all->place,
				   .config = k->config,
				   .server = k->server,
				   .on_texts = conn_on_texts,
				   .owner = k };
	k->place = (struct program_sandbox){ .texts = &k->texts,
					     .on_made = conn_on_made,
					     .on_gone = conn_on_gone,
					     .on_stderr = conn_on_stderr,
					     .on_refused = conn_on_refused,
					     .owner = k };
	if (u->package) {
		k->package = package_ref(u->package);
		snprintf(k->template, sizeof(k->template), "sha256:%s", k->package->image);
		k->place.template = str_of(k->template);
	}
	u->heard = u->n_denied = 0;
	snprintf(k->label, sizeof(k->label), "module %s", u->name);
	u->all->open++;
	k->level = MCP_INFO;
	uv_timer_init(u->all->loop, &k->limit);
	uv_timer_init(u->all->loop, &k->offers.timer);
	k->limit.data = k->offers.timer.data = k;
	uv_timer_start(&k->limit, conn_on_begin, 0, 0);
	return k;
}
