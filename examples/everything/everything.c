/*
 * everything: an MCP server of everything, on standard input and output, or over HTTP where an address
 * is given. It then prints the URL when it can be used.
 */
#include "everything.h"

#include <mcp/transport/stdio.h>
#include <signal.h>
#include <stdio.h>

enum { DRAIN_MS = 5000 };

/* Each list is offered but for its last entry, which comes and goes. */
static const struct mcp_tool *tool_list[128];
static const struct mcp_prompt *prompt_list[32];

static const struct mcp_tool *const *list_tools(void *owner, struct mcp_session *s, size_t *ret_n)
{
	const struct everything *ev = owner;

	*ret_n = tools_n - !ev->more_tools;
	return tool_list;
}

static const struct mcp_prompt *const *list_prompts(void *owner, struct mcp_session *s,
						    size_t *ret_n)
{
	const struct everything *ev = owner;

	*ret_n = prompts_n - !ev->more_prompts;
	return prompt_list;
}

static const struct mcp_handler handler = {
	.tools = list_tools,
	.prompts = list_prompts,
	.complete = complete,
};

static struct mcp_server *new_server(struct everything *ev, struct mcp_err *e)
{
	struct mcp_server_options o = {
		.name = "everything",
		.title = "Everything",
		.version = "1.0.0",
		.description = "Something of every kind that the Model Context Protocol has.",
		.instructions = "Every tool is for testing a client.",
		.offer = { .resources = resources,
			   .resources_n = resources_n,
			   .templates = templates,
			   .templates_n = templates_n },
		.handler = &handler,
		.owner = ev,
		.changes = MCP_TOOLS | MCP_PROMPTS,
		.subscribe = true,
		.logging = true,
		.tasks = true,
		.progress_ms = 1, /* a client sees each, however fast they come */
		.ttl_ms = 60000,
		.cache_public = true,
	};

	for (size_t i = 0; i < tools_n; i++) {
		if (mcp_tool_prepare(&tools[i], e) < 0)
			return NULL;
		tool_list[i] = &tools[i];
	}
	for (size_t i = 0; i < prompts_n; i++)
		prompt_list[i] = &prompts[i];
	return mcp_server_new(&o, e);
}

/* Nobody can ask for what tasks come to any more. */
static void on_stdio_closed(void *owner)
{
	mcp_server_end_tasks(((struct everything *)owner)->server);
}

static int serve_stdio(struct everything *ev, struct mcp_err *e)
{
	struct mcp_stdio_options o = { .drain_ms = DRAIN_MS,
				       .on_closed = on_stdio_closed,
				       .owner = ev };
	struct mcp_stdio *t;

	if (mcp_stdio_claim(&o.in_fd, &o.out_fd, e) < 0)
		return -1;
	t = mcp_stdio_start(&ev->loop, ev->server, &o, e);
	if (!t)
		return -1;
	uv_run(&ev->loop, UV_RUN_DEFAULT);
	mcp_stdio_free(t);
	return 0;
}

int main(int argc, char **argv)
{
	struct everything ev = { .server = NULL };
	struct mcp_err e = MCP_ERR_INIT;
	int status = 1;

	if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
		fprintf(stderr, "usage: %s [ADDRESS:PORT]\n", argv[0]);
		return 2;
	}
	uv_loop_init(&ev.loop);
	ev.server = new_server(&ev, &e);
	if (ev.server && (argc == 2 ? serve_http(&ev, argv[1], &e) : serve_stdio(&ev, &e)) == 0)
		status = 0;
	if (status)
		fprintf(stderr, "everything: %s\n", e.msg);
	mcp_server_free(ev.server);
	for (size_t i = 0; i < tools_n; i++)
		mcp_tool_release(&tools[i]);
	uv_loop_close(&ev.loop);
	return status;
}
