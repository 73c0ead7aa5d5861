/* sandbox_pause and sandbox_resume: what they answer is the state that came of it. */
#include "door/mcp/tools.h"

#include "door/mcp/common.h"

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
	call_answer(c, &r);
}

static void start(struct call *c, const void *params,
		  void (*f)(struct life *l, life_cb on_done, void *arg))
{
	const struct sandbox_params *p = params;
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->sandbox, &e);

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
	.op =
		&(const struct op){
			.action = "sandbox.pause",
			.effect = OP_WRITE,
			.flags = OP_IDEMPOTENT,
			.request = &sandbox_params_table,
			.target = OP_TARGET(struct sandbox_params, sandbox),
			.result = &state_result_table,
			.run = run_pause,
		},
	.name = "sandbox_pause",
	.title = "Pause a sandbox",
	.doc = "Stops all that runs in a sandbox until sandbox_resume. Its time to live goes on.",
	.says = "Sandbox {sandbox} is {state}",
};

const struct tool sandbox_resume_tool = {
	.op =
		&(const struct op){
			.action = "sandbox.resume",
			.effect = OP_WRITE,
			.flags = OP_IDEMPOTENT,
			.request = &sandbox_params_table,
			.target = OP_TARGET(struct sandbox_params, sandbox),
			.result = &state_result_table,
			.run = run_resume,
		},
	.name = "sandbox_resume",
	.title = "Resume a sandbox",
	.doc = "Lets a paused sandbox continue where it was stopped.",
	.says = "Sandbox {sandbox} is {state}",
};
