#include "door/mcp/tools.h"

#include "base/clock.h"
#include "hub/sandbox/usage.h"
#include "hub/core/when.h"
#include "door/mcp/common.h"

struct get_result {
	struct str sandbox, template, source, created_at, cause;
	enum life_state state;
	bool has_ttl, has_usage;
	uint64_t ttl_left_seconds;
	uint32_t generation;
	struct usage_view usage;
};
static const struct field get_fields[] = {
	FIELD(struct get_result, sandbox, .flags = FIELD_REQUIRED, .doc = "Its id."),
	FIELD_ENUM(struct get_result, state, life_state_names, .flags = FIELD_REQUIRED,
		   .doc = "Only a running one takes commands and gives files."),
	FIELD(struct get_result, cause,
	      .doc = "Why it is lost, failed or terminated, where nobody asked for that."),
	FIELD(struct get_result, template, .flags = FIELD_REQUIRED,
	      .doc = "What it was made from."),
	FIELD(struct get_result, source, .doc = "The sandbox that it was forked from."),
	FIELD(struct get_result, created_at, .flags = FIELD_REQUIRED, .doc = "RFC 3339."),
	FIELD(struct get_result, generation, .flags = FIELD_REQUIRED,
	      .doc = "Counts up each time that what is behind the id was replaced."),
	FIELD(struct get_result, ttl_left_seconds, .has = FIELD_HAS(struct get_result, has_ttl),
	      .doc = "Until it ends by itself; absent: never."),
	FIELD_OBJECT(struct get_result, usage, usage_view_table,
		     .has = FIELD_HAS(struct get_result, has_usage),
		     .doc = "What it uses of its limits, while there is something of it."),
};
static const struct field_table get_output = FIELD_TABLE(struct get_result, get_fields);

static uint64_t left_seconds(int64_t deadline_ms)
{
	int64_t left = deadline_ms - clock_unix_ms();

	return left > 0 ? (uint64_t)(left + 999) / 1000 : 0;
}

static void answer(struct call *c, const struct life *l, const struct usage_view *usage)
{
	struct life_info i;
	char created[WHEN_MAX];
	struct get_result r;

	life_info(l, &i);
	when_text(created, i.created_ms);
	r = (struct get_result){
		.sandbox = i.id,
		.state = i.state,
		.cause = i.why ? str_of(i.why->msg) : STR_NONE,
		.template = i.template,
		.source = i.source,
		.created_at = str_of(created),
		.generation = i.generation,
		.has_ttl = i.deadline_ms > 0 && usage,
		.ttl_left_seconds = left_seconds(i.deadline_ms),
		.has_usage = usage != NULL,
	};
	if (usage)
		r.usage = *usage;
	call_answer(c, &r);
}

/* It may have been forgotten meanwhile. */
static void on_usage(void *arg, const struct usage_view *v, size_t n, const struct err *err)
{
	const struct tool_wait *w = arg;
	const struct sandbox_params *p = w->params;
	struct err e = ERR_INIT;
	struct life *l = call_life(w->call, p->sandbox, &e);

	if (l)
		answer(w->call, l, v);
	else
		call_fail(w->call, &e);
}

static void run(struct call *c, const void *params)
{
	const struct sandbox_params *p = params;
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->sandbox, &e);
	struct tool_wait *w;

	if (!l)
		call_fail(c, &e);
	else if (!life_machine(l, &e))
		answer(c, l, NULL);
	else if ((w = tool_wait(c, params)))
		life_usage_start(call_box(c), &l, 1, on_usage, w);
}

const struct tool sandbox_get_tool = {
	.op =
		&(const struct op){
			.action = "sandbox.get",
			.effect = OP_READ,
			.request = &sandbox_params_table,
			.target = OP_TARGET(struct sandbox_params, sandbox),
			.result = &get_output,
			.run = run,
		},
	.name = "sandbox_get",
	.title = "Look at a sandbox",
	.doc = "Tells the state of a sandbox, how long it lasts, and what it uses of its memory, "
	       "processor, processes and disk.",
};
