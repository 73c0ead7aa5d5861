#include "mcp/connect/internal.h"

#include <signal.h>
#include <stdlib.h>

#include "http/client/url.h"
#include "mcp/message/profile.h"

enum {
	ARENA_MAX = 16 << 20,
	CONNECTIONS = 1024, /* to one server: streams hold theirs */
	MESSAGE_MAX = 64 << 20,
	PROBE_MS = 3000,
	PROBE_HTTP_MS = 10000, /* an old server refuses at once; one that is silent is slow */
	START_MS = 30000,
	STOP_MS = 2000,
	TICK_MS = 100,
};

/* --- time --- */

static void on_tick(uv_timer_t *timer)
{
	struct mcp_link *l = timer->data;
	uint64_t ms = mcp_client_tick(l->client);
	struct mcp_client_counts n;

	if (l->state >= OVER || ms == UINT64_MAX)
		return;
	mcp_client_counts(l->client, &n);
	if (n.pending > 0 && ms > TICK_MS)
		ms = TICK_MS;
	uv_timer_start(timer, on_tick, ms ?: 1, 0);
}

static bool ticks_soon(const struct mcp_link *l)
{
	return uv_is_active((const uv_handle_t *)&l->tick) &&
	       uv_timer_get_due_in(&l->tick) <= TICK_MS;
}

/* The owner talks to the client without us. */
static void on_watch(uv_prepare_t *watch)
{
	struct mcp_link *l = watch->data;
	struct mcp_client_counts n;

	mcp_link_is_ready(l);
	if (l->state >= OVER || ticks_soon(l))
		return;
	mcp_client_counts(l->client, &n);
	if (n.pending > 0 || l->stirred)
		uv_timer_start(&l->tick, on_tick, TICK_MS, 0);
	l->stirred = false;
}

bool mcp_link_is_ready(struct mcp_link *l)
{
	if (l->state == STARTING && mcp_client_version(l->client)) {
		l->state = READY;
		uv_timer_stop(&l->start);
		uv_timer_stop(&l->probe);
	}
	return l->state == READY;
}

void mcp_link_lose(struct mcp_link *l, const struct err *e)
{
	if (l->state >= OVER)
		return;
	l->state = OVER;
	mcp_client_lost(l->client, e);
}

static void on_start_late(uv_timer_t *timer)
{
	struct mcp_link *l = timer->data;
	struct err e;

	if (mcp_link_is_ready(l) || l->state >= OVER)
		return;
	if (l->base.asking > 0) { /* a person is asked; that takes its time */
		uv_timer_start(timer, on_start_late, l->t.start_ms, 0);
		return;
	}
	err_set(&e, ERR_TIMEOUT, "the server was not ready in %u ms", l->t.start_ms);
	mcp_link_lose(l, &e);
}

/* --- the end --- */

static void on_handle_closed(uv_handle_t *handle)
{
	struct mcp_link *l = handle->data;

	if (--l->handles > 0)
		return;
	if (l->on_closed)
		l->on_closed(l->closed_owner);
	arena_free(l->arena);
	free(l);
}

static void close_handles(void *owner)
{
	struct mcp_link *l = owner;
	uv_handle_t *all[] = { (uv_handle_t *)&l->watch, (uv_handle_t *)&l->tick,
			       (uv_handle_t *)&l->turn,	 (uv_handle_t *)&l->start,
			       (uv_handle_t *)&l->probe, (uv_handle_t *)&l->base.soon };

	l->base.soon.data = l;
	l->handles = ARRAY_LEN(all);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		uv_close(all[i], on_handle_closed);
}

void mcp_link_go_on_closing(struct mcp_link *l)
{
	if (l->wires > 0)
		return;
	if (l->http)
		http_client_close(take_ptr(l->http), close_handles, l);
	else
		close_handles(l);
}

void mcp_link_close(struct mcp_link *l, void (*on_closed)(void *owner), void *owner)
{
	l->state = CLOSING;
	l->on_closed = on_closed;
	l->closed_owner = owner;
	uv_timer_stop(&l->tick);
	uv_timer_stop(&l->turn);
	uv_timer_stop(&l->start);
	uv_timer_stop(&l->probe);
	mcp_link_close_wire(l, l->t.stop_ms);
	/* also where it is on the stack: nobody hears of it again */
	mcp_client_free(take_ptr(l->client));
	mcp_link_go_on_closing(l);
}

/* --- the beginning --- */

static const char *connect_copy(struct mcp_link *l, const char *z, struct err *e)
{
	return z ? arena_dup(l->arena, str_of(z), e) : NULL;
}

static const char *const *copy_list(struct mcp_link *l, const char *const *list, struct err *e)
{
	const char **to;
	size_t n = 0;

	while (list && list[n])
		n++;
	to = list ? arena_array(l->arena, n + 1, sizeof(*to), e) : NULL;
	for (size_t i = 0; to && i < n; i++) {
		to[i] = connect_copy(l, list[i], e);
		if (!to[i])
			return NULL;
	}
	return to;
}

static const struct http_header *copy_headers(struct mcp_link *l, const struct mcp_target *t,
					      struct err *e)
{
	struct http_header *to = arena_array(l->arena, t->headers_n + 1, sizeof(*to), e);

	for (size_t i = 0; to && i < t->headers_n; i++) {
		to[i].name = connect_copy(l, t->headers[i].name, e);
		to[i].value.p = arena_dup(l->arena, t->headers[i].value, e);
		to[i].value.n = t->headers[i].value.n;
		if (!to[i].name || !to[i].value.p)
			return NULL;
	}
	return to;
}

static int copy_target(struct mcp_link *l, const struct mcp_target *t, struct err *e)
{
	l->t = *t;
	l->t.argv = copy_list(l, t->argv, e);
	l->t.env = copy_list(l, t->env, e);
	l->t.env_more = copy_list(l, t->env_more, e);
	l->t.cwd = connect_copy(l, t->cwd, e);
	l->t.url = connect_copy(l, t->url, e);
	l->t.unix_socket = connect_copy(l, t->unix_socket, e);
	l->t.version = connect_copy(l, t->version, e);
	l->t.headers = copy_headers(l, t, e);
	l->t.probe_ms = t->probe_ms ? t->probe_ms : t->url ? PROBE_HTTP_MS : PROBE_MS;
	l->t.start_ms = t->start_ms ? t->start_ms : START_MS;
	l->t.stop_ms = t->stop_ms ? t->stop_ms : STOP_MS;
	return !l->t.argv != !t->argv || !l->t.env != !t->env || !l->t.env_more != !t->env_more ||
			       !l->t.cwd != !t->cwd || !l->t.url != !t->url ||
			       !l->t.unix_socket != !t->unix_socket ||
			       !l->t.version != !t->version || !l->t.headers
		     ? -1
		     : 0;
}

static int open_http(struct mcp_link *l, struct err *e)
{
	const struct http_client_options o = { .unix_socket = l->t.unix_socket,
					       .connections = CONNECTIONS,
					       .public_only = l->t.public_only };

	l->http = http_client_new(l->loop, &o, e);
	l->base.http = l->http;
	l->base.headers = l->t.headers;
	l->base.headers_n = l->t.headers_n;
	l->base.auth = l->t.auth;
	return l->http ? 0 : -1;
}

static int open_link(struct mcp_link *l, const struct mcp_client_options *o, struct err *e)
{
	struct mcp_client_options ours = *o;

	if (l->steps_n == 0)
		return err_set(e, ERR_INVALID,
			       "nothing is left to try: this transport, era and revision do not go "
			       "together");
	/* the client and the wires keep by one measure */
	l->base.text_max = o->message_max ? o->message_max : MESSAGE_MAX;
	l->memory.max = o->memory_max ? o->memory_max : 2 * l->base.text_max;
	l->base.memory = ours.memory = o->memory ? o->memory : &l->memory;
	l->client = mcp_client_new(&ours, e);
	if (!l->client || (l->t.url && open_http(l, e) < 0) || mcp_link_open(l, e) < 0)
		return -1;
	uv_prepare_start(&l->watch, on_watch);
	uv_timer_start(&l->start, on_start_late, l->t.start_ms, 0);
	mcp_link_turn(l);
	return 0;
}

struct mcp_link *mcp_connect(uv_loop_t *loop, const struct mcp_target *t,
			     const struct mcp_client_options *o, struct err *e)
{
	struct mcp_link *l;

	if (!!t->argv + !!t->runner + !!t->url != 1 || (t->argv && !t->argv[0]))
		return err_set(e, ERR_INVALID, "a server is either a program or an address"), NULL;
	if (t->version && !mcp_profile_find(str_of(t->version)))
		return err_set(e, ERR_INVALID, "%.40s is no revision of MCP", t->version), NULL;
	if (t->url && http_url_check(t->url, e) < 0)
		return NULL;
	signal(SIGPIPE, SIG_IGN);
	l = calloc(1, sizeof(*l));
	if (l)
		l->arena = arena_new(ARENA_MAX);
	if (!l || !l->arena || copy_target(l, t, e) < 0) {
		if (l)
			arena_free(l->arena);
		free(l);
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	}
	l->loop = loop;
	l->child_status = -1;
	mcp_link_plan(l);
	uv_prepare_init(l->loop, &l->watch);
	uv_timer_init(l->loop, &l->tick);
	uv_timer_init(l->loop, &l->turn);
	uv_timer_init(l->loop, &l->start);
	uv_timer_init(l->loop, &l->probe);
	mcp_exchange_base_init(&l->base, l->loop);
	l->watch.data = l->tick.data = l->turn.data = l->start.data = l->probe.data = l;
	if (open_link(l, o, e) < 0) {
		mcp_link_close(l, NULL, NULL);
		return NULL;
	}
	return l;
}

void mcp_link_kill(struct mcp_link *l)
{
	if (l->child)
		mcp_child_kill(l->child);
	if (l->ending)
		mcp_child_kill(l->ending);
	if (l->program)
		mcp_program_kill(l->program);
}

struct mcp_client *mcp_link_client(struct mcp_link *l)
{
	return l->client;
}

struct mcp_found mcp_link_found(const struct mcp_link *l)
{
	return (struct mcp_found){ l->steps[l->at].wire, mcp_client_era(l->client) };
}

int mcp_link_status(const struct mcp_link *l)
{
	return l->child ? mcp_child_status(l->child) : l->child_status;
}
