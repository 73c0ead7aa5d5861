/*
 * tools/call as a call of the hub. One that takes long, of a tool that says it may, becomes a task where its client
 * can have that: the client has its request answered, and comes back for the result. 2025-11-25's clients say
 * themselves what is to be a task.
 */
#include <stdlib.h>

#include "base/log.h"
#include "hub/road/internal.h"

enum { TASK_AFTER_MS = 3000 };

struct mcp_run {
	struct mcp_call *mc;
	struct call *call;
	bool timing;
	uv_timer_t timer; /* until it is a task */
};

static void timer_closed(uv_handle_t *h)
{
	free(h->data);
}

static void run_end(struct mcp_run *r)
{
	if (r->timing)
		uv_close((uv_handle_t *)&r->timer, timer_closed);
	else
		free(r);
}

static void on_answer(void *asker, const struct tool *tool, const struct call_answer *answer)
{
	struct mcp_run *r = asker;
	struct mcp_content text = { .type = MCP_TEXT, .text = answer->text };

	mcp_call_done(r->mc, &(struct mcp_result){
				     .content = &text,
				     .content_n = answer->text.p ? 1 : 0,
				     .table = tool->output,
				     .from = answer->structured,
			     });
	run_end(r);
}

static void on_fail(void *asker, const struct err *e)
{
	struct mcp_run *r = asker;

	mcp_call_fail(r->mc, e);
	run_end(r);
}

static void on_progress(void *asker, double progress, double total, const char *message)
{
	struct mcp_run *r = asker;

	mcp_call_progress(r->mc, progress, total, message);
	mcp_call_task_status(r->mc, message);
}

static const struct call_origin quiet = { .answer = on_answer, .fail = on_fail };
static const struct call_origin watching = { .answer = on_answer,
					     .fail = on_fail,
					     .progress = on_progress };

static void on_cancel(struct mcp_call *mc, void *data)
{
	struct mcp_run *r = data;

	call_cancel(r->call);
}

/* Where it can't be one, it stays a call. */
static void on_timer(uv_timer_t *t)
{
	struct mcp_run *r = t->data;
	struct err e;

	if (mcp_call_to_task(r->mc, NULL, &e) < 0)
		log_debug("mcp: no task: %s", e.msg);
}

static void start_timer(struct hub *hub, struct mcp_run *r)
{
	if (!mcp_call_can_task(r->mc) || mcp_call_is_task(r->mc) ||
	    uv_timer_init(hub->loop, &r->timer) < 0)
		return;
	r->timing = true;
	r->timer.data = r;
	uv_timer_start(&r->timer, on_timer, TASK_AFTER_MS, 0);
}

void hub_mcp_call(void *owner, struct mcp_call *mc)
{
	struct hub *hub = owner;
	struct mcp_run *r = calloc(1, sizeof(*r));
	bool watched = mcp_call_wants_progress(mc) || mcp_call_can_task(mc);
	struct call_ask ask = {
		.who = mcp_call_principal(mc),
		.tool = mcp_call_tool(mc)->row,
		.args = mcp_call_args(mc),
		.arena = mcp_call_arena(mc),
		.label = mcp_call_label(mc),
		.origin = watched ? &watching : &quiet,
		.asker = r,
	};
	struct err e = ERR_INIT;

	if (!r) {
		err_set(&e, ERR_LIMIT, "out of memory");
		mcp_call_fail(mc, &e);
		return;
	}
	r->mc = mc;
	r->call = call_new(hub, &ask, &e);
	if (!r->call) {
		free(r);
		mcp_call_fail(mc, &e);
		return;
	}
	start_timer(hub, r);
	mcp_call_on_cancel(mc, on_cancel, r);
	call_run(r->call);
}
