/*
 * Requests. The message that waits for an answer is the entry in the table of ids. Two times limit
 * a request: the deadline, which restarts with each sign of life, and the end, which does not. Both
 * stand still while the server waits for an answer of ours that belongs to this request. If the
 * server waits for an answer and its request is unknown (ask_legacy.c), the times of all requests
 * stand still, but for each request only up to a total; otherwise a server could prevent that
 * anything ever ends.
 */
#include "mcp/client/internal.h"

#include <stdlib.h>

#include "base/log.h"

enum { CANCEL_ROOM = 256 };

/* --- one request --- */

void mcp_pending_free(struct mcp_pending *p)
{
	if (!p)
		return;
	for (struct mcp_question *q = p->asked, *next; q; q = next) {
		next = q->sibling;
		mcp_question_free(q);
	}
	mcp_in_unref(p->state_in);
	mcp_follow_free(p->task);
	mcp_listing_free(p->listing);
	json_free(p->params);
	free(p->text);
	free(p->method);
	free(p);
}

static int set_params(struct mcp_pending *p, struct str params, struct err *e)
{
	const struct json_options o = { .bytes = MCP_PARAMS_BYTES_MAX,
					.values = MCP_PARAMS_BYTES_MAX,
					.depth = MCP_PARAMS_DEPTH };

	if (!params.p)
		return 0;
	p->params = json_parse(params, &o, e);
	if (!p->params)
		return err_wrap(e, "params");
	if (json_type(json_root(p->params)) != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "params take an object, not %s",
			       json_type_name(json_type(json_root(p->params))));
	p->text = strndup(params.p, params.n);
	p->text_n = params.n;
	return p->text ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

struct mcp_pending *mcp_pending_new(struct mcp_client *c, const char *method, struct str params,
				    struct err *e)
{
	AUTO(mcp_pending_free) struct mcp_pending *p = calloc(1, sizeof(*p));

	if (p)
		p->method = strdup(method);
	if (!p || !p->method)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	p->client = c;
	p->level = MCP_LEVEL_NONE;
	p->answered = mcp_answer_take;
	p->timeout_ms = c->o.timeout_ms;
	p->token = ++c->ids;
	if (set_params(p, params, e) < 0)
		return NULL;
	return take_ptr(p);
}

/* --- time --- */

void mcp_pending_alive(struct mcp_pending *p)
{
	p->deadline_ms = mcp_client_now(p->client) + p->timeout_ms;
}

static uint64_t since(const struct mcp_pending *p, uint64_t ms)
{
	return mcp_client_now(p->client) - (ms > p->begun_ms ? ms : p->begun_ms);
}

static void stood(struct mcp_pending *p, uint64_t ms)
{
	p->end_ms += ms;
	p->stood_ms += ms;
}

void mcp_pending_hold(struct mcp_pending *p)
{
	if (p->holds++ == 0)
		p->held_ms = mcp_client_now(p->client);
}

void mcp_pending_unhold(struct mcp_pending *p)
{
	if (--p->holds > 0)
		return;
	stood(p, since(p, p->held_ms));
	mcp_pending_alive(p);
}

/* How long it may still be stopped for questions of unknown requests. */
static uint64_t may_waive(const struct mcp_pending *p)
{
	uint64_t max = p->client->o.hold_max_ms;

	return p->waived_ms < max ? max - p->waived_ms : 0;
}

void mcp_clocks_hold(struct mcp_client *c)
{
	if (c->loose++ == 0)
		c->loose_ms = mcp_client_now(c);
}

void mcp_clocks_unhold(struct mcp_client *c)
{
	if (--c->loose > 0)
		return;
	for (struct mcp_pending *p = c->pendings; p; p = p->next) {
		uint64_t ms = since(p, c->loose_ms), left = may_waive(p);

		if (ms < left)
			mcp_pending_alive(p);
		else
			p->deadline_ms += left;
		ms = ms < left ? ms : left;
		p->waived_ms += ms;
		stood(p, ms);
	}
}

/* When its time is over; UINT64_MAX: not now. */
static uint64_t time_of(const struct mcp_pending *p)
{
	bool waits = p->entry.listed || p->queued || p->refreshing;
	uint64_t time = waits && p->deadline_ms < p->end_ms ? p->deadline_ms : p->end_ms;

	if (p->timeless || p->holds > 0)
		return UINT64_MAX;
	return p->client->loose > 0 ? time + may_waive(p) : time;
}

/* --- from its start to its end --- */

static void link_in(struct mcp_pending *p)
{
	struct mcp_client *c = p->client;

	p->next = c->pendings;
	p->at = &c->pendings;
	if (p->next)
		p->next->at = &p->next;
	c->pendings = p;
	c->pendings_n += !p->inner;
}

static void link_out(struct mcp_pending *p)
{
	*p->at = p->next;
	if (p->next)
		p->next->at = p->at;
	p->client->pendings_n -= !p->inner;
}

int mcp_pending_start(struct mcp_pending *p, struct err *e)
{
	struct mcp_client *c = p->client;

	p->begun_ms = mcp_client_now(c);
	p->deadline_ms = p->begun_ms + p->timeout_ms;
	p->end_ms = p->begun_ms +
		    (p->timeout_ms > c->o.timeout_max_ms ? p->timeout_ms : c->o.timeout_max_ms);
	link_in(p);
	if (c->state == MCP_CLIENT_REOPENS && p != c->first) {
		p->queued = true;
		return 0;
	}
	if (mcp_send_request(p, e) == 0)
		return 0;
	link_out(p);
	return -1;
}

struct mcp_pending *mcp_pending_inner(struct mcp_client *c, const char *method, struct str params,
				      void (*done)(struct mcp_pending *p,
						   const struct mcp_answer *a))
{
	struct err e;
	AUTO(mcp_pending_free) struct mcp_pending *p = mcp_pending_new(c, method, params, &e);

	if (p) {
		p->inner = true;
		p->done = done;
		if (mcp_pending_start(p, &e) == 0)
			return take_ptr(p);
	}
	log_warn("%s: %s: %s", c->o.label, method, e.msg);
	return NULL;
}

bool mcp_pending_awaits(const struct mcp_pending *p)
{
	return p->entry.listed;
}

void mcp_pending_unlist(struct mcp_pending *p)
{
	if (p->entry.listed)
		inflight_remove(p->client->inflight, &p->entry);
}

void mcp_pending_end(struct mcp_pending *p, const struct mcp_answer *a)
{
	struct mcp_client *c = p->client;

	if (p->ended)
		return;
	p->ended = true;
	mcp_pending_unlist(p);
	link_out(p);
	p->next = c->ended;
	c->ended = p;
	mcp_ask_drop(p);
	mcp_ask_outlives(p);
	if (!c->freed && c->t->let_go)
		c->t->let_go(c->transport, p);
	if (c->freed || !a)
		return;
	if (p->done)
		p->done(p, a);
	else if (p->on_done)
		p->on_done(p->owner, a);
}

void mcp_pending_fail(struct mcp_pending *p, const struct err *e)
{
	mcp_pending_end(p, &(struct mcp_answer){ .e = e, .sent = p->sent });
}

void mcp_pending_go_on(struct mcp_pending *p)
{
	struct err e;

	mcp_pending_alive(p);
	if (p->client->state == MCP_CLIENT_REOPENS)
		p->queued = true;
	else if (mcp_send_request(p, &e) < 0)
		mcp_pending_fail(p, &e);
}

/* A modern request over HTTP is cancelled by closing its stream. The first message of all must not
 * be cancelled. */
void mcp_pending_take_back(struct mcp_pending *p, const char *reason)
{
	struct mcp_client *c = p->client;
	autobuf struct buf b = BUF_INIT(CANCEL_ROOM);
	struct json_writer w = json_writer(&b);
	struct err e;

	if (!p->entry.listed || p == c->first || !mcp_client_lives(c) ||
	    (c->era == MCP_MODERN && c->t->streams))
		return;
	json_write_object(&w);
	json_put_raw(&w, "requestId", rpc_id_str(&p->entry.id));
	json_put_text(&w, "reason", reason);
	json_write_object_end(&w);
	if (json_write_done(&w, &e) < 0 ||
	    mcp_send_notification(c, "notifications/cancelled", buf_str(&b), &e) < 0)
		log_warn("%s: cancel: %s", c->o.label, e.msg);
}

/* Gives up a request whose answer is no longer wanted. */
static void pending_abandon(struct mcp_pending *p, const char *reason)
{
	mcp_pending_take_back(p, reason);
	mcp_pending_unlist(p);
	if (p->task)
		mcp_follow_cancel(p);
}

void mcp_pending_cancel(struct mcp_pending *p)
{
	AUTO(mcp_client_leave) struct mcp_client *c = mcp_client_enter(p->client);

	if (p->ended || c->freed)
		return;
	pending_abandon(p, "the caller wants it no more");
	mcp_pending_end(p, NULL);
}

struct mcp_pending *mcp_pending_of_token(const struct mcp_client *c, const struct json_val *token)
{
	struct str text = json_str(token);
	char digits[RPC_DIGITS];
	uint64_t t;
	bool number = json_uint64(token, &t);

	for (struct mcp_pending *p = c->pendings; p; p = p->next) {
		struct str own = { digits, rpc_put_uint(digits, p->token) };

		if (p->on_progress && (number ? p->token == t : str_eq(text, own)))
			return p;
	}
	return NULL;
}

/* --- ticks, and lost requests --- */

void mcp_client_failed(struct mcp_client *c, struct mcp_pending *p, bool sent, const struct err *e)
{
	AUTO(mcp_client_leave) struct mcp_client *inside = mcp_client_enter(c);

	if (!mcp_client_lives(inside) || p->ended || !p->entry.listed)
		return;
	mcp_pending_unlist(p);
	p->sent &= sent;
	if (!p->task || !mcp_follow_survives(p, e))
		mcp_pending_fail(p, e);
}

static void time_out(struct mcp_pending *p, uint64_t now)
{
	struct err e;

	/* a slow result may mean that the server is gone; tasks/get will tell */
	if (p->step == MCP_STEP_RESULT && p->entry.listed && now < p->end_ms) {
		mcp_pending_take_back(p, "its state is asked for");
		mcp_pending_unlist(p);
		p->step = MCP_STEP_GET;
		mcp_pending_go_on(p);
		return;
	}
	err_set(&e, ERR_TIMEOUT, "the server gave no answer to %s within %llu s", p->method,
		(unsigned long long)((now - p->begun_ms) / 1000));
	pending_abandon(p, "it took too long");
	mcp_pending_fail(p, &e);
}

static struct mcp_pending *find_due(const struct mcp_client *c, uint64_t now, bool *ret_overdue)
{
	for (struct mcp_pending *p = c->pendings; p; p = p->next) {
		*ret_overdue = time_of(p) <= now;
		if (*ret_overdue || mcp_follow_due(p) <= now)
			return p;
	}
	return NULL;
}

static uint64_t next_due(const struct mcp_client *c, uint64_t now)
{
	uint64_t next = mcp_watch_due(c);

	for (const struct mcp_pending *p = c->pendings; p; p = p->next) {
		uint64_t time = time_of(p), due = mcp_follow_due(p);

		next = time < next ? time : next;
		next = due < next ? due : next;
	}
	return next == UINT64_MAX ? UINT64_MAX : next > now ? next - now : 0;
}

uint64_t mcp_client_tick(struct mcp_client *c)
{
	AUTO(mcp_client_leave) struct mcp_client *inside = mcp_client_enter(c);
	uint64_t now = mcp_client_now(inside);
	struct mcp_pending *p;
	bool overdue;

	while (mcp_client_lives(c) && (p = find_due(c, now, &overdue))) {
		if (overdue)
			time_out(p, now);
		else
			mcp_follow_go_on(p);
	}
	if (mcp_client_lives(c))
		mcp_watch_tick(c, now);
	return mcp_client_lives(c) ? next_due(c, mcp_client_now(c)) : UINT64_MAX;
}
