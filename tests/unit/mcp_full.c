#include "mcp_full.h"

#include <stdio.h>

static const struct mcp_icon icon = { .src = "data:image/png;base64,iVBORw==",
				      .mime = "image/png",
				      .sizes = "16x16 32x32",
				      .theme = "dark" };

static const struct mcp_resource note;

/* --- tools --- */

static void run_query(struct mcp_call *c)
{
	mcp_call_text(c, json_str(json_get(mcp_call_args(c), "region")));
}

static void run_sum(struct mcp_call *c)
{
	mcp_call_done(c, &(struct mcp_result){ .structured = STR_LIT("{\"sum\":3}") });
}

static void run_wrong(struct mcp_call *c)
{
	mcp_call_done(c, &(struct mcp_result){ .structured = STR_LIT("{\"sum\":\"3\"}") });
}

static void run_silent(struct mcp_call *c)
{
	mcp_call_text(c, STR_LIT("nothing structured"));
}

static void run_list(struct mcp_call *c)
{
	mcp_call_done(c, &(struct mcp_result){ .structured = STR_LIT("[1,2]") });
}

static void run_say(struct mcp_call *c)
{
	static const char *const data[] = { "{\"n\":0}", "1", "\"two\"", "null",
					    "[4]",	 "5", "6",	 "true" };

	for (size_t i = 0; i < ARRAY_LEN(data); i++)
		mcp_call_log(c, (enum mcp_level)i, i % 2 ? "full" : NULL, str_of(data[i]));
	mcp_call_progress(c, 1, 2, "half");
	mcp_call_progress(c, 2, 2, "whole");
	mcp_call_text(c, STR_LIT("said"));
}

static void run_show(struct mcp_call *c)
{
	const struct mcp_content content[] = {
		{ .type = MCP_TEXT,
		  .text = STR_LIT("text"),
		  .annotations = { .audience = MCP_FOR_USER,
				   .has_priority = true,
				   .priority = 0.5,
				   .last_modified = "2026-07-28T00:00:00Z" },
		  .meta = STR_LIT("{\"x/y\":1}") },
		{ .type = MCP_IMAGE, .data = STR_LIT("\x89PNG"), .mime = "image/png" },
		{ .type = MCP_AUDIO, .data = STR_LIT("RIFF"), .mime = "audio/wav" },
		{ .type = MCP_RESOURCE,
		  .uri = "mem:///note",
		  .mime = "text/plain",
		  .text = STR_LIT("a note"),
		  .annotations = { .audience = MCP_FOR_USER | MCP_FOR_ASSISTANT } },
		{ .type = MCP_RESOURCE, .uri = "mem:///pixel", .data = STR_LIT("\0") },
		{ .type = MCP_LINK, .link = &note, .meta = STR_LIT("{\"x/y\":2}") },
	};

	mcp_call_done(c, &(struct mcp_result){ .content = content,
					       .content_n = ARRAY_LEN(content),
					       .meta = STR_LIT("{ \"x/y\":3}") });
}

static void run_refuse(struct mcp_call *c)
{
	mcp_call_refuse(c, -32603, "not today", STR_LIT("{\"why\":[1]}"));
}

#define SUM_SCHEMA                                                                                 \
	"{\"type\":\"object\",\"properties\":{\"sum\":{\"type\":\"integer\"}},\"required\":"       \
	"[\"sum\"]}"
#define ANY_SCHEMA "{\"type\":\"object\"}"

static struct mcp_tool tools[] = {
	{ .name = "query",
	  .title = "Query",
	  .description = "Asks a region.",
	  .input_schema =
		  "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\","
		  "\"x-mcp-header\":\"Region\"},\"limit\":{\"type\":\"integer\",\"x-mcp-header\":"
		  "\"Limit\"},\"deep\":{\"type\":\"object\",\"properties\":{\"dry\":{\"type\":"
		  "\"boolean\",\"x-mcp-header\":\"Dry-Run\"}}}}}",
	  .icons = { &icon, 1 },
	  .read_only = MCP_YES,
	  .meta = "{\"x/y\":0}",
	  .run = run_query },
	{ .name = "sum",
	  .description = "Adds.",
	  .input_schema = ANY_SCHEMA,
	  .output_schema = SUM_SCHEMA,
	  .run = run_sum },
	{ .name = "wrong",
	  .description = "Adds wrong.",
	  .input_schema = ANY_SCHEMA,
	  .output_schema = SUM_SCHEMA,
	  .run = run_wrong },
	{ .name = "silent",
	  .description = "Adds in silence.",
	  .input_schema = ANY_SCHEMA,
	  .output_schema = SUM_SCHEMA,
	  .run = run_silent },
	{ .name = "list",
	  .description = "Lists.",
	  .input_schema = ANY_SCHEMA,
	  .output_schema = "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}",
	  .run = run_list },
	{ .name = "say", .description = "Talks.", .input_schema = ANY_SCHEMA, .run = run_say },
	{ .name = "show", .description = "Shows.", .input_schema = ANY_SCHEMA, .run = run_show },
	{ .name = "refuse",
	  .description = "Refuses.",
	  .input_schema = ANY_SCHEMA,
	  .run = run_refuse },
};

/* --- resources --- */

static void read_note(struct mcp_call *c)
{
	const struct mcp_contents contents = { .mime = "text/plain",
					       .text = STR_LIT("a note"),
					       .meta = STR_LIT("{\"x/y\":4}") };

	mcp_call_cache(c, 60000, true);
	mcp_call_contents(c, &contents, 1);
}

static void read_pixel(struct mcp_call *c)
{
	const struct mcp_contents contents[] = {
		{ .mime = "image/png", .data = STR_LIT("\x89PNG") },
		{ .uri = STR_LIT("mem:///pixel/2"), .data = STR_LIT("") },
	};

	mcp_call_contents(c, contents, ARRAY_LEN(contents));
}

static void read_user(struct mcp_call *c)
{
	struct mcp_contents contents = { .text = mcp_call_uri_value(c, 0) };

	if (str_is(contents.text, "nobody"))
		mcp_call_not_found(c);
	else
		mcp_call_contents(c, &contents, 1);
}

static const struct mcp_resource note = {
	.uri = "mem:///note",
	.name = "note",
	.title = "A note",
	.description = "Text.",
	.mime = "text/plain",
	.size = 6,
	.annotations = { .audience = MCP_FOR_ASSISTANT, .last_modified = "2026-07-28T00:00:00Z" },
	.icons = { &icon, 1 },
	.meta = "{\"x/y\":5}",
	.run = read_note,
};

static const struct mcp_template templates[] = {
	{ .uri_template = "mem:///user/{id}",
	  .name = "user",
	  .title = "A user",
	  .description = "By id.",
	  .mime = "text/plain",
	  .run = read_user },
};

/* --- prompts --- */

static void get_plain(struct mcp_call *c)
{
	const struct mcp_prompt_message m = { .content = { .type = MCP_TEXT,
							   .text = STR_LIT("Do it.") } };

	mcp_call_messages(c, NULL, &m, 1);
}

static void get_greet(struct mcp_call *c)
{
	const struct mcp_prompt_message messages[] = {
		{ .content = { .type = MCP_TEXT,
			       .text = json_str(json_get(mcp_call_args(c), "name")) } },
		{ .is_assistant = true,
		  .content = { .type = MCP_RESOURCE,
			       .uri = "mem:///note",
			       .text = STR_LIT("a note") } },
	};

	mcp_call_messages(c, "A greeting.", messages, ARRAY_LEN(messages));
}

static const struct mcp_argument greet_args[] = {
	{ .name = "name", .title = "Name", .description = "Whom.", .required = true },
	{ .name = "tone" },
};

static const struct mcp_prompt prompts[] = {
	{ .name = "plain", .description = "Says it.", .run = get_plain },
	{ .name = "greet",
	  .title = "Greet",
	  .args = greet_args,
	  .args_n = ARRAY_LEN(greet_args),
	  .icons = { &icon, 1 },
	  .meta = "{\"x/y\":6}",
	  .run = get_greet },
};

/* Completes what is typed by what stands in the context, and by "kind" and "keen". */
static void complete(void *owner, struct mcp_call *c)
{
	const struct mcp_completion what = mcp_call_completion(c);
	const struct str values[] = { STR_LIT("kind"), STR_LIT("keen"),
				      json_str(json_get(what.context, "name")) };

	mcp_call_values(c, values, values[2].p ? 3 : 2, what.is_prompt ? 0 : 7, !what.is_prompt);
}

static const struct mcp_handler handler = { .complete = complete };

static struct mcp_resource resources[2];

void full_offer(struct mcp_server_options *o)
{
	resources[0] = note;
	resources[1] =
		(struct mcp_resource){ .uri = "mem:///pixel", .name = "pixel", .run = read_pixel };
	o->offer = (struct mcp_offer){ .tools = tools,
				       .tools_n = ARRAY_LEN(tools),
				       .resources = resources,
				       .resources_n = ARRAY_LEN(resources),
				       .templates = templates,
				       .templates_n = ARRAY_LEN(templates),
				       .prompts = prompts,
				       .prompts_n = ARRAY_LEN(prompts) };
	o->handler = &handler;
	o->description = "Has everything.";
	o->website = "https://example.com/full";
	o->icons = (struct mcp_icons){ &icon, 1 };
	o->changes = MCP_TOOLS | MCP_RESOURCES | MCP_PROMPTS;
	o->subscribe = true;
	o->logging = true;
	o->ttl_ms = 5000;
	o->cache_public = true;
}
