/* sandbox_pause and sandbox_resume: what they answer is the state that came of it. */
#include "tools/tools.h"

#include "tools/common.h"

static void on_done(void *arg, struct life *l, const struct err *err)
{
	struct call *c = arg;
	struct state_result r;
	struct life_info i;

	if (err) {
		call_fail(c, err);
		return;
	}
	life_info(l, &i);
	r = (struct state_result){ i.id, i.state };
	tool_answerf(c, &r, "Sandbox %.*s is %s", STR_ARG(i.id), life_state_names[i.state]);
}

static void start(struct call *c, const void *params,
		  void (*f)(struct life *l, life_cb on_done, void *arg))
{
	const struct sandbox_params *p = params;
	struct err e = ERR_INIT;
	struct life *l = lives_find(call_lives(c), p->sandbox, &e);

	if (l)
		f(l, on_done, c);
	else
		call_fail(c, &e);
}

static void run_pause(struct call *c, const void *params)
{
	start(c, params, life_pause_start);
}

static void run_resume(struct call *c, const void *params)
{
	start(c, params, life_resume_start);
}

const struct tool sandbox_pause_tool = {
	.name = "sandbox_pause",
	.title = "Pause a sandbox",
	.doc = "Stops all that runs in a sandbox until sandbox_resume. Its time to live goes on.",
	.input = &sandbox_params_table,
	.output = &state_result_table,
	.read_only = MCP_NO,
	.destructive = MCP_NO,
	.idempotent = MCP_YES,
	.open_world = MCP_NO,
	.run = run_pause,
};

const struct tool sandbox_resume_tool = {
	.name = "sandbox_resume",
	.title = "Resume a sandbox",
	.doc = "Lets a paused sandbox continue where it was stopped.",
	.input = &sandbox_params_table,
	.output = &state_result_table,
	.read_only = MCP_NO,
	.destructive = MCP_NO,
	.idempotent = MCP_YES,
	.open_world = MCP_NO,
	.run = run_resume,
};
