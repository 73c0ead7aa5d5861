/* Prompts, and the completion of their arguments. */
#include "everything.h"

static struct mcp_prompt_message user(struct mcp_str text)
{
	return (struct mcp_prompt_message){ .content = { MCP_TEXT, .text = text } };
}

static void get_simple(struct mcp_call *c)
{
	struct mcp_prompt_message m = user(MCP_STR_LIT("This is a simple prompt for testing."));

	mcp_call_messages(c, "A simple prompt", &m, 1);
}

static void get_with_arguments(struct mcp_call *c)
{
	const struct mcp_json_val *args = mcp_call_args(c);
	struct mcp_err e;
	char *text = mcp_arena_printf(mcp_call_arena(c), &e,
				      "Prompt with arguments: arg1='%s', arg2='%s'",
				      text_of(c, args, "arg1"), text_of(c, args, "arg2"));
	struct mcp_prompt_message m = user(mcp_str_of(text));

	if (text)
		mcp_call_messages(c, NULL, &m, 1);
	else
		mcp_call_fail(c, &e);
}

static void get_with_resource(struct mcp_call *c)
{
	const struct mcp_prompt_message m[] = {
		{ .content = { MCP_RESOURCE, .uri = text_of(c, mcp_call_args(c), "resourceUri"),
			       .mime = "text/plain",
			       .text = MCP_STR_LIT("Embedded resource content for testing.") } },
		user(MCP_STR_LIT("Please process the embedded resource above.")),
	};

	mcp_call_messages(c, NULL, m, MCP_ARRAY_LEN(m));
}

static void get_with_image(struct mcp_call *c)
{
	const struct mcp_prompt_message m[] = {
		{ .content = { MCP_IMAGE, .data = picture, .mime = "image/png" } },
		user(MCP_STR_LIT("Please analyze the image above.")),
	};

	mcp_call_messages(c, NULL, m, MCP_ARRAY_LEN(m));
}

static const struct mcp_argument two[] = {
	{ .name = "arg1", .description = "One argument.", .required = true },
	{ .name = "arg2", .description = "Another argument.", .required = true },
};
static const struct mcp_argument uri[] = {
	{ .name = "resourceUri", .description = "URI of the resource to embed.", .required = true },
};

const struct mcp_prompt prompts[] = {
	{ .name = "test_simple_prompt",
	  .title = "Simple",
	  .description = "A prompt without arguments.",
	  .run = get_simple },
	{ .name = "test_prompt_with_arguments",
	  .title = "With arguments",
	  .description = "A prompt of two arguments.",
	  .args = two,
	  .args_n = MCP_ARRAY_LEN(two),
	  .run = get_with_arguments },
	{ .name = "test_prompt_with_embedded_resource",
	  .title = "With a resource",
	  .description = "A prompt with a resource in it.",
	  .args = uri,
	  .args_n = MCP_ARRAY_LEN(uri),
	  .run = get_with_resource },
	{ .name = "test_prompt_with_image",
	  .title = "With an image",
	  .description = "A prompt with an image in it.",
	  .run = get_with_image },
	{ .name = "test_input_required_result_prompt",
	  .title = "With a question",
	  .description = "A prompt that asks the user first.",
	  .run = run_ask_prompt },
	{ .name = "test_dynamic_prompt", .description = "Comes and goes.", .run = get_simple },
};
const size_t prompts_n = MCP_ARRAY_LEN(prompts);

/* Of any argument: those of the words that begin with what is typed. */
void complete(void *owner, struct mcp_call *c)
{
	static const struct mcp_str words[] = { MCP_STR_LIT("paris"), MCP_STR_LIT("park"),
						MCP_STR_LIT("party"), MCP_STR_LIT("testing") };
	struct mcp_str typed = mcp_call_completion(c).value, found[MCP_ARRAY_LEN(words)];
	size_t n = 0;

	for (size_t i = 0; i < MCP_ARRAY_LEN(words); i++) {
		if (words[i].n >= typed.n && memcmp(words[i].p, typed.p, typed.n) == 0)
			found[n++] = words[i];
	}
	mcp_call_values(c, found, n, n, false);
}
