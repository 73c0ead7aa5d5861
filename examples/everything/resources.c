/* Resources, and a template. */
#include "everything.h"

static void text(struct mcp_call *c, const char *mime, struct mcp_str contents)
{
	mcp_call_cache(c, 60000, true);
	mcp_call_contents(c, &(struct mcp_contents){ .mime = mime, .text = contents }, 1);
}

static void read_text(struct mcp_call *c)
{
	text(c, "text/plain", MCP_STR_LIT("This is the content of the static text resource."));
}

static void read_binary(struct mcp_call *c)
{
	mcp_call_cache(c, 60000, true);
	mcp_call_contents(c, &(struct mcp_contents){ .mime = "image/png", .data = picture }, 1);
}

static void read_watched(struct mcp_call *c)
{
	text(c, "text/plain", MCP_STR_LIT("Watched resource content"));
}

/* What {id} stands for is a part of a URI, so nothing in it needs an escape in JSON. */
static void read_template(struct mcp_call *c)
{
	struct mcp_str id = mcp_call_uri_value(c, 0);
	struct mcp_err e;
	char *json = mcp_arena_printf(
		mcp_call_arena(c), &e,
		"{\"id\":\"%.*s\",\"templateTest\":true,\"data\":\"Data for ID: %.*s\"}",
		MCP_STR_ARG(id), MCP_STR_ARG(id));

	if (json)
		text(c, "application/json", mcp_str_of(json));
	else
		mcp_call_fail(c, &e);
}

const struct mcp_resource resources[] = {
	{ .uri = "test://static-text",
	  .name = "static-text",
	  .title = "Static text",
	  .description = "A text that never changes.",
	  .mime = "text/plain",
	  .size = 48,
	  .annotations = { .audience = MCP_FOR_USER | MCP_FOR_ASSISTANT,
			   .has_priority = true,
			   .priority = 0.8,
			   .last_modified = "2026-01-12T15:00:58Z" },
	  .run = read_text },
	{ .uri = "test://static-binary",
	  .name = "static-binary",
	  .title = "Static image",
	  .description = "An image that never changes.",
	  .mime = "image/png",
	  .run = read_binary },
	{ .uri = "test://watched-resource",
	  .name = "watched-resource",
	  .title = "Watched",
	  .description = "A text of which changes are told: see test_trigger_resource_change.",
	  .mime = "text/plain",
	  .run = read_watched },
};
const size_t resources_n = MCP_ARRAY_LEN(resources);

const struct mcp_template templates[] = {
	{ .uri_template = "test://template/{id}/data",
	  .name = "template",
	  .title = "Data by id",
	  .description = "Data for any id.",
	  .mime = "application/json",
	  .run = read_template },
};
const size_t templates_n = MCP_ARRAY_LEN(templates);
