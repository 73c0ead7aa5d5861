/* Tools that become tasks: from mcp_call_to_task() on they are asked for, and answer whom asks. */
#include "everything.h"

static const struct mcp_task_options quick = { .poll_ms = 200, .message = "working" };

void run_greet(struct mcp_call *c)
{
	say(c, "Hello, %s!", text_of(c, mcp_call_args(c), "name"));
}

/* As a task if the client has tasks, and it is none yet. False, and the call is ended, where that
 * failed. */
static bool as_task(struct mcp_call *c)
{
	struct mcp_err e;

	if (mcp_call_is_task(c) || !mcp_call_can_task(c) || mcp_call_to_task(c, &quick, &e) == 0)
		return true;
	mcp_call_fail(c, &e);
	return false;
}

static void after_slow(struct mcp_call *c)
{
	const struct mcp_json_val *args = mcp_call_args(c);

	say(c, "%s: computed for %.17g s", text_of(c, args, "label"),
	    mcp_json_real(mcp_json_get(args, "seconds")));
}

void run_slow(struct mcp_call *c)
{
	double seconds = mcp_json_real(mcp_json_get(mcp_call_args(c), "seconds"));

	if (as_task(c))
		later(c, (uint64_t)(seconds * 1000), after_slow);
}

static void after_failing(struct mcp_call *c)
{
	const struct mcp_content text = { MCP_TEXT, .text = MCP_STR_LIT("The job has failed") };

	mcp_call_done(c,
		      &(struct mcp_result){ .content = &text, .content_n = 1, .is_error = true });
}

void run_failing(struct mcp_call *c)
{
	if (as_task(c))
		later(c, 500, after_failing);
}

static void after_protocol_error(struct mcp_call *c)
{
	mcp_call_refuse(c, -32603, "The job could not be done", MCP_STR_NONE);
}

void run_protocol_error(struct mcp_call *c)
{
	if (as_task(c))
		later(c, 100, after_protocol_error);
}

static struct mcp_ask question(struct mcp_call *c, const char *key, const char *message)
{
	struct mcp_err e;
	char *params =
		mcp_arena_printf(mcp_call_arena(c), &e,
				 "{\"message\":\"%s\",\"requestedSchema\":{\"type\":\"object\","
				 "\"properties\":{\"confirm\":{\"type\":\"boolean\"}},"
				 "\"required\":[\"confirm\"]}}",
				 message);

	return (struct mcp_ask){ key, MCP_ASK_FORM, mcp_str_of(params) };
}

static bool confirmed(struct mcp_call *c, const char *key)
{
	const struct mcp_json_val *answer = mcp_call_answer(c, key);

	return mcp_str_is(mcp_json_str(mcp_json_get(answer, "action")), "accept") &&
	       mcp_json_bool(mcp_json_get(mcp_json_get(answer, "content"), "confirm"));
}

void run_confirm(struct mcp_call *c)
{
	const struct mcp_ask really = question(c, "confirm", "Really delete this file?");

	if (!as_task(c))
		return;
	if (!mcp_call_answer(c, really.key))
		ask(c, &really, 1, NULL);
	else
		say(c, "%s: %s", text_of(c, mcp_call_args(c), "filename"),
		    confirmed(c, really.key) ? "deleted" : "kept");
}

/* It runs again for each answer, and asks again for what is missing. */
void run_multi_input(struct mcp_call *c)
{
	const struct mcp_ask both[] = { question(c, "first", "The first?"),
					question(c, "second", "The second?") };
	struct mcp_ask missing[2];
	size_t n = 0;

	if (!as_task(c))
		return;
	for (size_t i = 0; i < MCP_ARRAY_LEN(both); i++) {
		if (!mcp_call_answer(c, both[i].key))
			missing[n++] = both[i];
	}
	if (n > 0)
		ask(c, missing, n, NULL);
	else
		say(c, "first: %s, second: %s", confirmed(c, "first") ? "yes" : "no",
		    confirmed(c, "second") ? "yes" : "no");
}

static void after_name(struct mcp_call *c)
{
	struct mcp_str name = mcp_json_str(
		mcp_json_get(mcp_json_get(mcp_call_answer(c, "user_name"), "content"), "name"));

	say(c, "Done for %.*s", MCP_STR_ARG(name));
}

void run_ask_then_task(struct mcp_call *c)
{
	static const struct mcp_ask name = {
		"user_name", MCP_ASK_FORM,
		MCP_STR_LIT(
			"{\"message\":\"Whom is it for?\",\"requestedSchema\":{\"type\":\"object\","
			"\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]}}")
	};

	if (!mcp_call_answer(c, name.key))
		ask(c, &name, 1, NULL);
	else if (as_task(c))
		later(c, 100, after_name);
}
