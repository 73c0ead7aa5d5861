#include "mcp/client/internal.h"

#include <stdlib.h>

#include "base/clock.h"
#include "json/document/utf8.h"

enum {
	QUESTIONS_MAX = 32,
	TIMEOUT_MS = 60 * 1000,
	TIMEOUT_MAX_MS = 10 * 60 * 1000,
	HOLD_MAX_MS = 10 * 60 * 1000,
	ROUNDS_MAX = 16,
	LIST_MAX = 10000,
	TASK_POLL_MIN_MS = 100,
	TASK_MAX_MS = 24 * 3600 * 1000,
	MESSAGE_MAX = 64 << 20,
	VALUES_MAX = 1 << 20, /* for one message: results are larger than a client's messages */
	DEPTH_MAX = 128,
	KEPT = 2, /* as a multiple of the largest message */
};

/* --- start and lifetime --- */

static void fill_options(struct mcp_client_options *o)
{
	static const struct mcp_client_handler none = { .ready = NULL };
	const struct {
		unsigned *at, value;
	} defaults[] = {
		{ &o->pending_max, INFLIGHT_MAX_DEFAULT },
		{ &o->questions_max, QUESTIONS_MAX },
		{ &o->timeout_ms, TIMEOUT_MS },
		{ &o->timeout_max_ms, TIMEOUT_MAX_MS },
		{ &o->hold_max_ms, HOLD_MAX_MS },
		{ &o->rounds_max, ROUNDS_MAX },
		{ &o->list_max, LIST_MAX },
		{ &o->task_poll_min_ms, TASK_POLL_MIN_MS },
		{ &o->task_max_ms, TASK_MAX_MS },
	};

	for (size_t i = 0; i < ARRAY_LEN(defaults); i++) {
		if (*defaults[i].at == 0)
			*defaults[i].at = defaults[i].value;
	}
	o->label = o->label ?: "mcp client";
	o->message_max = o->message_max ? o->message_max : MESSAGE_MAX;
	o->memory_max = o->memory_max ? o->memory_max : KEPT * o->message_max;
	o->json.bytes = o->message_max;
	o->json.values = o->json.values ? o->json.values : VALUES_MAX;
	o->json.depth = o->json.depth ? o->json.depth : DEPTH_MAX;
	o->handler = o->handler ? o->handler : &none;
	o->now_ms = o->now_ms ? o->now_ms : clock_ms;
}

struct mcp_client *mcp_client_new(const struct mcp_client_options *o, struct err *e)
{
	autofree struct mcp_client *c = calloc(1, sizeof(*c));

	if (!o->name || !o->version)
		return err_set(e, ERR_BUG, "an MCP client needs a name and a version"), NULL;
	if (c) {
		c->o = *o;
		fill_options(&c->o);
		c->own.max = c->o.memory_max;
		c->o.memory = c->o.memory ? c->o.memory : &c->own;
		c->inflight = inflight_new(c->o.pending_max + MCP_CLIENT_INNER);
	}
	if (!c || !c->inflight)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	c->level = -1;
	return take_ptr(c);
}

static void sweep(struct mcp_client *c)
{
	while (c->ended) {
		struct mcp_pending *p = c->ended;

		c->ended = p->next;
		mcp_pending_free(p);
	}
	while (c->gone) {
		struct mcp_question *q = c->gone;

		c->gone = q->next;
		mcp_question_free(q);
	}
}

struct mcp_client *mcp_client_enter(struct mcp_client *c)
{
	c->entered++;
	return c;
}

void mcp_client_leave(struct mcp_client *c)
{
	if (!c || --c->entered > 0)
		return;
	sweep(c);
	if (!c->freed)
		return;
	mcp_watch_fini(c);
	mcp_tools_forget(c, &c->tools);
	mcp_urls_free(c->urls);
	mcp_in_unref(take_ptr(c->about_in));
	inflight_free(c->inflight);
	free(c);
}

void mcp_client_free(struct mcp_client *c)
{
	if (!c || c->freed)
		return;
	mcp_client_enter(c);
	c->freed = true;
	c->state = MCP_CLIENT_OVER;
	while (c->pendings) {
		c->pendings->done = NULL;
		mcp_pending_end(c->pendings, NULL);
	}
	mcp_ask_drop_legacy(c);
	mcp_client_leave(c);
}

bool mcp_client_lives(const struct mcp_client *c)
{
	return !c->freed && c->state != MCP_CLIENT_OVER;
}

uint64_t mcp_client_now(const struct mcp_client *c)
{
	return c->o.now_ms();
}

/* --- the end --- */

void mcp_client_end(struct mcp_client *c, const struct err *e)
{
	const struct err why = *e; /* e may belong to something that ends here */

	if (!mcp_client_lives(c))
		return;
	c->state = MCP_CLIENT_OVER;
	while (!c->freed && c->pendings)
		mcp_pending_fail(c->pendings, &why);
	if (!c->freed)
		mcp_ask_drop_legacy(c);
	if (!c->freed && c->o.handler->over)
		c->o.handler->over(c->o.owner, &why);
}

void mcp_client_lost(struct mcp_client *c, const struct err *e)
{
	AUTO(mcp_client_leave) struct mcp_client *in = mcp_client_enter(c);

	mcp_client_end(in, e);
}

struct str mcp_said(struct str text, char room[MCP_SAID_MAX])
{
	return utf8_line(text, room, MCP_SAID_MAX);
}

/* --- the server --- */

const char *mcp_client_version(const struct mcp_client *c)
{
	return c->state == MCP_CLIENT_READY || c->state == MCP_CLIENT_REOPENS ? c->profile->version
									      : NULL;
}

enum mcp_era mcp_client_era(const struct mcp_client *c)
{
	return c->era;
}

const struct json_val *mcp_client_about(const struct mcp_client *c)
{
	return c->about;
}

void mcp_client_counts(const struct mcp_client *c, struct mcp_client_counts *ret)
{
	*ret = (struct mcp_client_counts){
		.pending = c->pendings_n,
		.questions = c->questions_n,
		.strays = c->strays,
		.garbage = c->garbage,
	};
}
