#pragma once
/*
 * A server that offers something of every kind, built on the installed libmcp alone: an example of
 * all that a handler can do. The official conformance suite is run against it, and the benchmark
 * measures it. Names, texts and schemas are those that the suite expects.
 *
 *	everything.c	what is offered, and main()
 *	tools.c		the table of tools
 *	content.c	tools that answer at once, with all kinds of content
 *	flow.c		tools that take their time: logging, progress, cancelling, reconnecting
 *	ask.c		tools, and a prompt, that ask the client
 *	task.c		tools that become tasks
 *	resources.c	resources, and a template
 *	prompts.c	prompts, and the completion of their arguments
 */
#include <mcp/server/server.h>

struct everything {
	bool more_tools, more_prompts; /* the lists have one more: they change, to be told of */
};

/* What mcp_call_owner() gives. */
static inline struct everything *everything_of(const struct mcp_call *c)
{
	return mcp_call_owner(c);
}

/* Runs then(c) ms from now. A call that is cancelled meanwhile is ended, and then() is not run. */
void later(struct mcp_call *c, uint64_t ms, void (*then)(struct mcp_call *c));

/* A text member of an object from the client; "" if it is absent or not a string. NUL-terminated,
 * in the call's arena. */
const char *text_of(struct mcp_call *c, const struct mcp_json_val *object, const char *member);

/* Asks all of them; where the client can't be asked that, ends the call with it. */
void ask(struct mcp_call *c, const struct mcp_ask *asks, size_t n, const char *state);

/* Ends a tool's call with a text, as printf. */
void say(struct mcp_call *c, const char *fmt, ...) MCP_PRINTF_LIKE(2, 3);

/* Any value as JSON, of the call's arena; "{}" for NULL. */
const char *json_of(struct mcp_call *c, const struct mcp_json_val *v);

/* Bytes that are an image/png and an audio/wav. */
extern const struct mcp_str picture, sound;

/* --- tables --- */

extern struct mcp_tool tools[];
extern const size_t tools_n; /* the last is listed while more_tools */
extern const struct mcp_resource resources[];
extern const size_t resources_n;
extern const struct mcp_template templates[];
extern const size_t templates_n;
extern const struct mcp_prompt prompts[];
extern const size_t prompts_n; /* the last is listed while more_prompts */

void complete(void *owner, struct mcp_call *c);

/* --- what tools run --- */

/* content.c */
void run_echo(struct mcp_call *c);
void run_add(struct mcp_call *c);
void run_text(struct mcp_call *c);
void run_image(struct mcp_call *c);
void run_audio(struct mcp_call *c);
void run_resource(struct mcp_call *c);
void run_link(struct mcp_call *c);
void run_mixed(struct mcp_call *c);
void run_weather(struct mcp_call *c);
void run_error(struct mcp_call *c);
void run_schema(struct mcp_call *c);
void run_header(struct mcp_call *c);

/* flow.c */
void run_logging(struct mcp_call *c);
void run_log_once(struct mcp_call *c);
void run_progress(struct mcp_call *c);
void run_reconnection(struct mcp_call *c);
void run_tool_change(struct mcp_call *c);
void run_prompt_change(struct mcp_call *c);
void run_resource_change(struct mcp_call *c);

/* ask.c */
void run_sampling(struct mcp_call *c);
void run_elicitation(struct mcp_call *c);
void run_elicitation_url(struct mcp_call *c);
void run_defaults(struct mcp_call *c);
void run_enums(struct mcp_call *c);
void run_missing(struct mcp_call *c);
void run_streaming(struct mcp_call *c);
void run_ask_name(struct mcp_call *c);
void run_ask_capital(struct mcp_call *c);
void run_ask_roots(struct mcp_call *c);
void run_ask_state(struct mcp_call *c);
void run_ask_many(struct mcp_call *c);
void run_ask_rounds(struct mcp_call *c);
void run_ask_what_it_can(struct mcp_call *c);
void run_ask_prompt(struct mcp_call *c);

/* task.c */
void run_greet(struct mcp_call *c);
void run_slow(struct mcp_call *c);
void run_failing(struct mcp_call *c);
void run_protocol_error(struct mcp_call *c);
void run_confirm(struct mcp_call *c);
void run_multi_input(struct mcp_call *c);
void run_ask_then_task(struct mcp_call *c);
