/*
 * everything: an MCP server that offers something of every kind, on standard input and output, or
 * over HTTP if an address is given. Then it prints the URL when it is ready.
 */
#include "everything.h"

#include <mcp/transport/http.h>
#include <mcp/transport/stdio.h>
#include <stdio.h>

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

static int prepare_lists(struct mcp_err *e)
{
	for (size_t i = 0; i < tools_n; i++) {
		if (mcp_tool_prepare(&tools[i], e) < 0)
			return -1;
		tool_list[i] = &tools[i];
	}
	for (size_t i = 0; i < prompts_n; i++)
		prompt_list[i] = &prompts[i];
	return 0;
}

static void print_url(const char *url)
{
	printf("%s\n", url);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct everything ev = { .more_tools = false };
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
		.owner = &ev,
		.changes = MCP_TOOLS | MCP_PROMPTS,
		.subscribe = true,
		.logging = true,
		.tasks = true,
		.progress_ms = 1, /* a client sees each, however fast they come */
		.ttl_ms = 60000,
		.cache_public = true,
	};
	struct mcp_err e = MCP_ERR_INIT;
	int rc;

	if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
		fprintf(stderr, "usage: %s [ADDRESS:PORT]\n", argv[0]);
		return 2;
	}
	rc = prepare_lists(&e);
	if (rc == 0 && argc == 2)
		rc = mcp_serve_http(&o, argv[1], print_url, &e);
	else if (rc == 0)
		rc = mcp_serve_stdio(&o, &e);
	if (rc < 0)
		fprintf(stderr, "everything: %s\n", e.msg);
	for (size_t i = 0; i < tools_n; i++)
		mcp_tool_release(&tools[i]);
	return rc < 0;
}
