#include "mcp/connect/internal.h"

#include <stdlib.h>

#include "base/log.h"

enum {
	ARENA_MAX = 1 << 20,
	POSTS_MAX = 512, /* in flight; beyond that, messages that are no requests are dropped */
};

/* --- the end --- */

static void on_timer_closed(uv_handle_t *handle)
{
	struct mcp_fetch *f = handle->data;

	if (f->on_closed)
		f->on_closed(f->closed_owner);
	free(f->session);
	free(f->version);
	free(f);
}

void mcp_fetch_shut(struct mcp_fetch *f)
{
	while (f->posts)
		mcp_post_free(f->posts);
	if (!uv_is_closing((uv_handle_t *)&f->timer))
		uv_close((uv_handle_t *)&f->timer, on_timer_closed);
}

static void on_late(uv_timer_t *timer)
{
	mcp_fetch_shut(timer->data);
}

/* Ends the session at the server too. */
void mcp_fetch_close(struct mcp_fetch *f, void (*on_closed)(void *owner), void *owner)
{
	struct post *p;

	f->closing = true;
	f->on_closed = on_closed;
	f->closed_owner = owner;
	while (f->posts)
		mcp_post_free(f->posts);
	p = f->session ? mcp_post_new(f, POST_DELETE) : NULL;
	if (!p) {
		mcp_fetch_shut(f);
		return;
	}
	uv_timer_start(&f->timer, on_late, f->o.stop_ms, 0);
	mcp_post_start(p);
}

/* --- sessions --- */

static struct post *find_stream(struct mcp_fetch *f)
{
	struct post *p = f->posts;

	while (p && p->kind != POST_STREAM)
		p = p->next;
	return p;
}

/* Messages of the old session may still be answered in it. */
static void forget_session(struct mcp_fetch *f)
{
	struct post *stream = find_stream(f);

	free(take_ptr(f->session));
	free(take_ptr(f->version));
	f->initialized = NULL;
	f->holding |= !f->o.relays;
	if (stream)
		mcp_post_free(stream);
}

void mcp_fetch_initialized(struct mcp_fetch *f, bool taken)
{
	struct post *next, *p;

	f->initialized = NULL;
	f->holding = false;
	p = taken && !f->closing && !find_stream(f) ? mcp_post_new(f, POST_STREAM) : NULL;
	if (p)
		mcp_post_start(p);
	for (p = f->posts; p; p = next) {
		next = p->next;
		if (p->state == HELD)
			mcp_post_start(p);
	}
}

/* --- to the server --- */

static struct str fetch_copy(struct post *p, const char *z, bool *ok)
{
	struct err e;
	char *text = z ? arena_dup(p->arena, str_of(z), &e) : NULL;

	*ok = *ok && (text || !z);
	return text ? str_of(text) : STR_NONE;
}

static bool copy_params(struct post *p, const struct mcp_client_out *m)
{
	struct err e;
	struct http_header *all = arena_array(p->arena, m->params_n + 1, sizeof(*all), &e);
	bool ok = all;

	for (size_t i = 0; ok && i < m->params_n; i++) {
		all[i].name = arena_printf(p->arena, &e, "Mcp-Param-%s", m->params[i].name);
		all[i].value = fetch_copy(p, m->params[i].value, &ok);
		ok = ok && all[i].name;
	}
	p->params = all;
	p->params_n = m->params_n;
	return ok;
}

/* False without memory. */
static bool read_message(struct post *p, const struct mcp_client_out *m, void *request)
{
	bool ok = true;

	p->arena = arena_new(ARENA_MAX);
	p->text = p->arena ? malloc(m->text.n + 1) : NULL;
	if (!p->text)
		return false;
	memcpy(p->text, m->text.p, m->text.n);
	p->n = m->text.n;
	p->request = m->kind == MCP_OUT_REQUEST;
	p->f->n_posts -= p->request;
	p->pending = request;
	p->modern = m->modern;
	p->is_initialize = m->is_initialize;
	p->opens_stream = m->opens_stream;
	p->version = fetch_copy(p, m->version, &ok);
	if (!p->modern)
		return ok;
	p->method.p = arena_dup(p->arena, m->method, &p->why);
	p->method.n = m->method.n;
	p->name = fetch_copy(p, m->name, &ok);
	return ok && p->method.p && copy_params(p, m);
}

bool mcp_fetch_send(struct mcp_fetch *f, const struct mcp_client_out *m, void *request)
{
	struct post *p;
	bool fits;

	if (f->closing)
		return false;
	if (m->is_initialize) {
		forget_session(f);
	} else if (!m->modern && m->version &&
		   (!f->version || strcmp(f->version, m->version) != 0)) {
		free(f->version);
		f->version = strdup(m->version);
	}
	fits = m->kind == MCP_OUT_REQUEST || m->opens_stream || f->n_posts < POSTS_MAX;
	p = fits ? mcp_post_new(f, POST_MESSAGE) : NULL;
	if (!p || !read_message(p, m, request)) {
		log_warn("mcp fetch: a message is dropped: too many, or no memory");
		if (p)
			mcp_post_free(p);
		return false;
	}
	if (f->holding && !m->modern && !m->is_initialize && !m->opens_stream)
		return true; /* it stays HELD */
	if (m->opens_stream) {
		f->initialized = p;
		f->holding = true;
	}
	if (m->kind == MCP_OUT_REQUEST)
		f->status = 0;
	mcp_post_start(p);
	return true;
}

/* An answer that is being received is received to its end. */
void mcp_fetch_let_go(struct mcp_fetch *f, void *pending)
{
	struct post *next;

	for (struct post *p = f->posts; p; p = next) {
		next = p->next;
		if (p->pending != pending)
			continue;
		p->pending = NULL;
		if (!p->busy)
			mcp_post_free(p);
	}
}

unsigned mcp_fetch_under_way(const struct mcp_fetch *f)
{
	unsigned n = 0;

	for (const struct post *p = f->posts; p; p = p->next)
		n += p->kind == POST_MESSAGE && p->state != DONE;
	return n;
}

void mcp_fetch_fail_held(struct mcp_fetch *f, const struct err *e)
{
	for (struct post *p = f->posts; p; p = p->next) {
		if (p->state == HELD && p->kind == POST_MESSAGE && !p->exchange)
			mcp_post_fail(p, e);
	}
}

int mcp_fetch_status(const struct mcp_fetch *f)
{
	return f->status;
}

struct mcp_fetch *mcp_fetch_new(uv_loop_t *loop, const struct mcp_fetch_options *o, struct err *e)
{
	struct mcp_fetch *f = calloc(1, sizeof(*f));

	if (!f)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	*f = (struct mcp_fetch){ .o = *o, .loop = loop };
	uv_timer_init(loop, &f->timer);
	f->timer.data = f;
	return f;
}
