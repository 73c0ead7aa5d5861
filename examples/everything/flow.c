/* Tools that take their time. A handler that has to wait returns; a timer goes on with the call. */
#include "everything.h"

#include <uv.h>

struct timer {
	uv_timer_t handle;
	struct mcp_call *call;
	void (*then)(struct mcp_call *c);
};

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void on_cancel(struct mcp_call *c, void *data)
{
	struct timer *t = data;
	struct mcp_err e;

	uv_close((uv_handle_t *)&t->handle, on_closed);
	mcp_err_set(&e, MCP_ERR_CANCELLED, "cancelled");
	mcp_call_fail(c, &e);
}

static void on_timer(uv_timer_t *handle)
{
	struct timer *t = handle->data;

	uv_close((uv_handle_t *)handle, on_closed);
	mcp_call_on_cancel(t->call, NULL, NULL);
	t->then(t->call);
}

void later(struct mcp_call *c, uint64_t ms, void (*then)(struct mcp_call *c))
{
	struct timer *t = calloc(1, sizeof(*t));
	struct mcp_err e;

	if (!t) {
		mcp_err_set(&e, MCP_ERR_LIMIT, "out of memory");
		mcp_call_fail(c, &e);
		return;
	}
	t->call = c;
	t->then = then;
	t->handle.data = t;
	uv_timer_init(uv_default_loop(), &t->handle);
	uv_timer_start(&t->handle, on_timer, ms, 0);
	mcp_call_on_cancel(c, on_cancel, t);
}

/* The steps of a call: which one it is stands in its data. */
static size_t next_step(struct mcp_call *c)
{
	size_t step = (size_t)(uintptr_t)mcp_call_data(c);

	mcp_call_set_data(c, (void *)(uintptr_t)(step + 1));
	return step;
}

void run_logging(struct mcp_call *c)
{
	static const struct mcp_str says[] = {
		MCP_STR_LIT("\"Tool execution started\""),
		MCP_STR_LIT("\"Tool processing data\""),
		MCP_STR_LIT("\"Tool execution completed\""),
	};
	size_t step = next_step(c);

	mcp_call_log(c, MCP_INFO, NULL, says[step]);
	if (step + 1 < MCP_ARRAY_LEN(says))
		later(c, 50, run_logging);
	else
		say(c, "Tool with logging executed successfully");
}

void run_log_once(struct mcp_call *c)
{
	mcp_call_log(c, MCP_INFO, "everything", MCP_STR_LIT("{\"checked\":true}"));
	say(c, "Logging evaluated");
}

void run_progress(struct mcp_call *c)
{
	size_t step = next_step(c);
	struct mcp_err e;
	const char *text = mcp_arena_printf(mcp_call_arena(c), &e, "Completed step %zu of 100",
					    step * 50);

	mcp_call_progress(c, (double)step * 50, 100, text);
	if (step < 2)
		later(c, 50, run_progress);
	else
		say(c, "Progress told");
}

static void after_reconnection(struct mcp_call *c)
{
	say(c, "Reconnection test completed: what is sent while nobody is there comes later.");
}

void run_reconnection(struct mcp_call *c)
{
	mcp_call_disconnect(c);
	later(c, 100, after_reconnection);
}

void run_tool_change(struct mcp_call *c)
{
	struct everything *ev = everything_of(c);

	ev->more_tools = !ev->more_tools;
	mcp_server_changed(mcp_call_server(c), MCP_TOOLS);
	say(c, "The list of tools has changed");
}

void run_prompt_change(struct mcp_call *c)
{
	struct everything *ev = everything_of(c);

	ev->more_prompts = !ev->more_prompts;
	mcp_server_changed(mcp_call_server(c), MCP_PROMPTS);
	say(c, "The list of prompts has changed");
}

void run_resource_change(struct mcp_call *c)
{
	mcp_server_updated(mcp_call_server(c), MCP_STR_LIT("test://watched-resource"));
	say(c, "The resource has changed");
}
