/* Tools, and a prompt, that ask the client. A handler asks and returns. It runs again from its
 * start when the answers are there, so each handler first looks whether they are. */
#include "everything.h"

#define FORM(message, properties, required)                                                        \
	MCP_STR_LIT("{\"message\":\"" message "\",\"requestedSchema\":{\"type\":\"object\","       \
		    "\"properties\":{" properties "},\"required\":[" required "]}}")
#define MODEL(text, tokens)                                                                        \
	MCP_STR_LIT("{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","            \
		    "\"text\":\"" text "\"}}],\"maxTokens\":" tokens "}")

static const struct mcp_ask ask_name = { "user_name", MCP_ASK_FORM,
					 FORM("What is your name?",
					      "\"name\":{\"type\":\"string\"}", "\"name\"") };
static const struct mcp_ask ask_roots = { "client_roots", MCP_ASK_ROOTS, { NULL, 0 } };

void ask(struct mcp_call *c, const struct mcp_ask *asks, size_t n, const char *state)
{
	struct mcp_err e;

	/* an answer that the handler could not use: no is an answer too */
	if (mcp_call_answer(c, asks[n - 1].key))
		mcp_err_set(&e, MCP_ERR_CLIENT_FAILED, "%s was not accepted", asks[n - 1].key);
	else if (mcp_call_ask(c, asks, n, mcp_str_of(state), &e) == 0)
		return;
	if (e.code == MCP_ERR_CLIENT_CANT)
		mcp_call_cant_ask(c, asks[0].kind);
	else
		mcp_call_fail(c, &e);
}

/* What the user filled in; "" where that is no text or was not accepted. */
static const char *filled(struct mcp_call *c, const char *key, const char *member)
{
	const struct mcp_json_val *answer = mcp_call_answer(c, key);

	if (!mcp_str_is(mcp_json_str(mcp_json_get(answer, "action")), "accept"))
		return "";
	return text_of(c, mcp_json_get(answer, "content"), member);
}

/* The text of a model's answer, whose content is one block, or several. */
static const char *model_says(struct mcp_call *c, const char *key)
{
	const struct mcp_json_val *content = mcp_json_get(mcp_call_answer(c, key), "content");
	struct mcp_json_iter it = mcp_json_iter(content);

	if (mcp_json_type(content) == MCP_JSON_ARRAY && mcp_json_next(&it))
		content = it.val;
	return text_of(c, content, "text");
}

/* True, and the call is ended, where a legacy client answered with an error. */
static bool refused(struct mcp_call *c, const char *key)
{
	struct mcp_str why = mcp_call_ask_error(c, key);

	if (why.p)
		say(c, "The client did not answer: %.*s", MCP_STR_ARG(why));
	return why.p;
}

static void end_form(struct mcp_call *c, const char *key, const char *prefix)
{
	const struct mcp_json_val *answer = mcp_call_answer(c, key);

	say(c, "%s: action=%s, content=%s", prefix, text_of(c, answer, "action"),
	    json_of(c, mcp_json_get(answer, "content")));
}

/* {"messages":[{…prompt…}]}, or {"message":…}, with a text that the call was given. */
static struct mcp_str with_argument(struct mcp_call *c, const char *before, const char *argument,
				    const char *behind)
{
	struct mcp_err e;
	const char *value = json_of(c, mcp_json_get(mcp_call_args(c), argument));

	return mcp_str_of(mcp_arena_printf(mcp_call_arena(c), &e, "%s%s%s", before, value, behind));
}

void run_sampling(struct mcp_call *c)
{
	const struct mcp_ask model = {
		"model", MCP_ASK_SAMPLING,
		with_argument(c,
			      "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","
			      "\"text\":",
			      "prompt", "}}],\"maxTokens\":100}")
	};

	if (refused(c, model.key))
		return;
	if (mcp_call_answer(c, model.key))
		say(c, "LLM response: %s", model_says(c, model.key));
	else
		ask(c, &model, 1, NULL);
}

void run_elicitation(struct mcp_call *c)
{
	const struct mcp_ask form = {
		"form", MCP_ASK_FORM,
		with_argument(
			c, "{\"message\":", "message",
			",\"requestedSchema\":{\"type\":\"object\",\"properties\":{"
			"\"username\":{\"type\":\"string\",\"description\":\"User's response\"},"
			"\"email\":{\"type\":\"string\",\"format\":\"email\","
			"\"description\":\"User's email address\"}},"
			"\"required\":[\"username\",\"email\"]}}")
	};

	if (refused(c, form.key))
		return;
	if (mcp_call_answer(c, form.key))
		end_form(c, form.key, "User response");
	else
		ask(c, &form, 1, NULL);
}

void run_elicitation_url(struct mcp_call *c)
{
	static const struct mcp_ask page = {
		"page", MCP_ASK_URL,
		MCP_STR_LIT("{\"mode\":\"url\",\"message\":\"Please confirm on this page.\","
			    "\"url\":\"https://example.com/confirm\","
			    "\"elicitationId\":\"everything-1\"}")
	};

	if (refused(c, page.key))
		return;
	if (mcp_call_answer(c, page.key))
		say(c, "Page: action=%s", text_of(c, mcp_call_answer(c, page.key), "action"));
	else
		ask(c, &page, 1, NULL);
}

static void complete_form(struct mcp_call *c, const struct mcp_ask *form)
{
	if (refused(c, form->key))
		return;
	if (mcp_call_answer(c, form->key))
		end_form(c, form->key, "Elicitation completed");
	else
		ask(c, form, 1, NULL);
}

void run_defaults(struct mcp_call *c)
{
	static const struct mcp_ask form = {
		"form", MCP_ASK_FORM,
		FORM("Please review the fields and their defaults",
		     "\"name\":{\"type\":\"string\",\"description\":\"User name\","
		     "\"default\":\"John Doe\"},"
		     "\"age\":{\"type\":\"integer\",\"description\":\"User age\",\"default\":30},"
		     "\"score\":{\"type\":\"number\",\"description\":\"User score\","
		     "\"default\":95.5},"
		     "\"status\":{\"type\":\"string\",\"description\":\"User status\","
		     "\"enum\":[\"active\",\"inactive\",\"pending\"],\"default\":\"active\"},"
		     "\"verified\":{\"type\":\"boolean\",\"description\":\"Verification status\","
		     "\"default\":true}",
		     "")
	};

	complete_form(c, &form);
}

#define TITLED(n, what) "{\"const\":\"value" n "\",\"title\":\"" what "\"}"

void run_enums(struct mcp_call *c)
{
	/* clang-format off */
	static const struct mcp_ask form = {
		"form", MCP_ASK_FORM,
		FORM("Please choose",
		     "\"untitledSingle\":{\"type\":\"string\","
		     "\"enum\":[\"option1\",\"option2\",\"option3\"]},"
		     "\"titledSingle\":{\"type\":\"string\",\"oneOf\":["
		     TITLED("1", "First Option") ","
		     TITLED("2", "Second Option") ","
		     TITLED("3", "Third Option") "]},"
		     "\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],"
		     "\"enumNames\":[\"Option One\",\"Option Two\",\"Option Three\"]},"
		     "\"untitledMulti\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":3,"
		     "\"items\":{\"type\":\"string\","
		     "\"enum\":[\"option1\",\"option2\",\"option3\"]}},"
		     "\"titledMulti\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":3,"
		     "\"items\":{\"anyOf\":["
		     TITLED("1", "First Choice") ","
		     TITLED("2", "Second Choice") ","
		     TITLED("3", "Third Choice") "]}}",
		     "")
	};
	/* clang-format on */

	complete_form(c, &form);
}

void run_missing(struct mcp_call *c)
{
	if (mcp_call_can_ask(c, MCP_ASK_SAMPLING))
		say(c, "The client has sampling");
	else
		mcp_call_cant_ask(c, MCP_ASK_SAMPLING);
}

void run_streaming(struct mcp_call *c)
{
	if (*filled(c, ask_name.key, "name")) {
		say(c, "Streaming complete");
		return;
	}
	mcp_call_progress(c, 50, 100, "about to ask");
	ask(c, &ask_name, 1, NULL);
}

void run_ask_name(struct mcp_call *c)
{
	const char *name = filled(c, ask_name.key, "name");

	if (*name)
		say(c, "Hello, %s!", name);
	else
		ask(c, &ask_name, 1, NULL);
}

void run_ask_capital(struct mcp_call *c)
{
	static const struct mcp_ask capital = { "capital_question", MCP_ASK_SAMPLING,
						MODEL("What is the capital of France?", "100") };
	const char *text = model_says(c, capital.key);

	if (*text)
		say(c, "The model says: %s", text);
	else
		ask(c, &capital, 1, NULL);
}

void run_ask_roots(struct mcp_call *c)
{
	const struct mcp_json_val *roots = mcp_json_get(mcp_call_answer(c, ask_roots.key), "roots");

	if (mcp_json_type(roots) == MCP_JSON_ARRAY)
		say(c, "The roots are %s", json_of(c, roots));
	else
		ask(c, &ask_roots, 1, NULL);
}

void run_ask_state(struct mcp_call *c)
{
	static const struct mcp_ask confirm = { "confirm", MCP_ASK_FORM,
						FORM("Please confirm",
						     "\"ok\":{\"type\":\"boolean\"}", "\"ok\"") };

	if (mcp_call_answer(c, confirm.key) && mcp_str_is(mcp_call_state(c), "asked"))
		say(c, "state-ok");
	else
		ask(c, &confirm, 1, "asked");
}

void run_ask_many(struct mcp_call *c)
{
	const struct mcp_ask asks[] = {
		ask_name,
		{ "greeting", MCP_ASK_SAMPLING, MODEL("Generate a greeting", "50") },
		ask_roots,
	};

	if (mcp_call_answer(c, "user_name") && mcp_call_answer(c, "greeting") &&
	    mcp_call_answer(c, "client_roots"))
		say(c, "%s, %s, %zu roots", model_says(c, "greeting"),
		    filled(c, "user_name", "name"),
		    mcp_json_len(mcp_json_get(mcp_call_answer(c, "client_roots"), "roots")));
	else
		ask(c, asks, MCP_ARRAY_LEN(asks), "many");
}

void run_ask_rounds(struct mcp_call *c)
{
	static const struct mcp_ask first = { "step1", MCP_ASK_FORM,
					      FORM("Step 1: What is your name?",
						   "\"name\":{\"type\":\"string\"}", "\"name\"") };
	static const struct mcp_ask second = { "step2", MCP_ASK_FORM,
					       FORM("Step 2: What is your favorite color?",
						    "\"color\":{\"type\":\"string\"}",
						    "\"color\"") };
	struct mcp_str state = mcp_call_state(c);
	const char *name = filled(c, first.key, "name"), *color = filled(c, second.key, "color");
	struct mcp_err e;

	/* "1" asks for the name, "2" and the name for the color */
	if (mcp_str_starts(state, "2") && *color)
		say(c, "%.*s likes %s", (int)state.n - 1, state.p + 1, color);
	else if (mcp_str_starts(state, "2"))
		ask(c, &second, 1, mcp_arena_dup(mcp_call_arena(c), state, &e));
	else if (mcp_str_is(state, "1") && *name)
		ask(c, &second, 1, mcp_arena_printf(mcp_call_arena(c), &e, "2%s", name));
	else
		ask(c, &first, 1, "1");
}

void run_ask_what_it_can(struct mcp_call *c)
{
	static const struct mcp_ask all[] = {
		{ "elicit_input", MCP_ASK_FORM,
		  FORM("Elicitation input", "\"value\":{\"type\":\"string\"}", "\"value\"") },
		{ "sample_input", MCP_ASK_SAMPLING, MODEL("Sample request", "50") },
	};
	struct mcp_ask asks[MCP_ARRAY_LEN(all)];
	size_t n = 0, answers = 0;

	for (size_t i = 0; i < MCP_ARRAY_LEN(all); i++) {
		answers += mcp_call_answer(c, all[i].key) != NULL;
		if (mcp_call_can_ask(c, all[i].kind))
			asks[n++] = all[i];
	}
	if (answers > 0 || n == 0)
		say(c, "%zu answers", answers);
	else
		ask(c, asks, n, NULL);
}

void run_ask_prompt(struct mcp_call *c)
{
	static const struct mcp_ask context = { "user_context", MCP_ASK_FORM,
						FORM("What context should the prompt use?",
						     "\"context\":{\"type\":\"string\"}",
						     "\"context\"") };
	const char *text = filled(c, context.key, "context");
	struct mcp_prompt_message m = { .content = { MCP_TEXT, .text = mcp_str_of(text) } };

	if (*text)
		mcp_call_messages(c, NULL, &m, 1);
	else
		ask(c, &context, 1, NULL);
}
