#include "op/sandbox.h"

#include "op/budget.h"

#include "call/call.h"

/* ---- sandbox.terminate --------------------------------------------------------------------- */

static const struct field ended_fields[] = {
	FIELD(struct sandbox_ended, sandbox, .flags = FIELD_REQUIRED, .doc = "Id of the sandbox."),
	FIELD(struct sandbox_ended, terminated, .flags = FIELD_REQUIRED,
	      .doc = "True: nothing of it is left."),
	SANDBOX_LEFT_OUT_ROWS,
};
static const struct field_table ended_table = FIELD_TABLE(struct sandbox_ended, ended_fields);

struct terminate_request {
	struct str sandbox;
	bool discard;
};
static const struct field terminate_fields[] = {
	OP_SANDBOX_ROW(struct terminate_request),
	FIELD(struct terminate_request, discard,
	      .doc = "For a sandbox that writes to a workspace: do not keep its changes."),
};
static const struct field_table terminate_table = FIELD_TABLE(struct terminate_request,
							      terminate_fields);

static void sandbox_on_ended(void *arg, struct hub_sandbox *l, const struct err *err)
{
	struct call *c = arg;
	const struct terminate_request *q = call_request(c);

	struct hub_sandbox_info i;

	if (err) {
		call_fail(c, err);
		return;
	}
	hub_sandbox_info(l, &i);
	call_answer(c, &(struct sandbox_ended){ .sandbox = q->sandbox,
						.terminated = true,
						.status = STR_LIT("terminated"),
						.has_left_out = i.left_out > 0,
						.left_out = i.left_out,
						.left_out_names = i.left_out_names });
}

static void sandbox_terminate_run(struct call *c, const void *request)
{
	const struct terminate_request *q = request;
	struct err e = ERR_INIT;
	struct hub_sandbox *l = call_hub_sandbox(c, q->sandbox, &e);

	if (!l)
		call_fail(c, &e);
	else if (q->discard)
		hub_sandbox_discard_start(l, sandbox_on_ended, c);
	else
		hub_sandbox_terminate_start(l, sandbox_on_ended, c);
}

const struct op sandbox_terminate_op = {
	.action = "sandbox.terminate",
	.doc = "Ends a sandbox and all its processes. Its files are deleted, but "
	       "changes in a workspace that it writes to become a revision.",
	.effect = OP_DESTROY,
	.flags = OP_LIFECYCLE | OP_NO_WAKE,
	.request = &terminate_table,
	.target = OP_TARGET(struct terminate_request, sandbox),
	.result = &ended_table,
	.run = sandbox_terminate_run,
};

/* ---- sandbox.pause and sandbox.resume ------------------------------------------------------ */

#define STATE_ROWS                                                                                 \
	FIELD(struct sandbox_state, sandbox, .flags = FIELD_REQUIRED,                              \
	      .doc = "Id of the sandbox."),                                                        \
		FIELD_ENUM(struct sandbox_state, state, hub_sandbox_state_names,                   \
			   .flags = FIELD_REQUIRED, .doc = "State of the sandbox.")
static const struct field paused_fields[] = { STATE_ROWS };
static const struct field_table paused_table = FIELD_TABLE(struct sandbox_state, paused_fields);
static const struct field resumed_fields[] = { STATE_ROWS, SANDBOX_LACKS_ROWS };
static const struct field_table resumed_table = FIELD_TABLE(struct sandbox_state, resumed_fields);

static int tell_gone(struct call *c, const struct hub_sandbox_info *i, struct sandbox_state *ret,
		     struct err *e)
{
	struct str *p;

	if (!i->volumes_gone)
		return 0;
	p = arena_array(call_arena(c), i->volumes->n, sizeof(*p), e);
	if (!p)
		return -1;
	ret->has_volumes_gone = true;
	ret->volumes_gone.p = p;
	for (size_t k = 0; k < i->volumes->n; k++) {
		if (i->volumes_gone >> k & 1)
			p[ret->volumes_gone.n++] = i->volumes->v[k].inside;
	}
	return 0;
}

static void sandbox_on_state(void *arg, struct hub_sandbox *l, const struct err *err)
{
	struct call *c = arg;
	struct sandbox_state state = { 0 };
	struct hub_sandbox_info i;
	struct err e = ERR_INIT;

	if (err) {
		call_fail(c, err);
		return;
	}
	hub_sandbox_info(l, &i);
	state.sandbox = i.id;
	state.state = i.state;
	if (i.state == SANDBOX_RUNNING && i.why)
		state.cause = str_of(i.why->msg);
	if (i.state != SANDBOX_RUNNING || tell_gone(c, &i, &state, &e) == 0)
		call_answer(c, &state);
	else
		call_fail(c, &e);
}

static void sandbox_change(struct call *c, const struct op_sandbox *q,
			   void (*start)(struct hub_sandbox *l, hub_sandbox_cb on_done, void *arg))
{
	struct err e = ERR_INIT;
	struct hub_sandbox *l = call_hub_sandbox(c, q->sandbox, &e);

	if (l)
		start(l, sandbox_on_state, c);
	else
		call_fail(c, &e);
}

static void sandbox_pause_run(struct call *c, const void *request)
{
	sandbox_change(c, request, hub_sandbox_pause_start);
}

static void sandbox_resume_run(struct call *c, const void *request)
{
	sandbox_change(c, request, hub_sandbox_resume_start);
}

const struct op sandbox_pause_op = {
	.action = "sandbox.pause",
	.doc = "Pauses all processes of a sandbox; they use no processor time until it is resumed.",
	.effect = OP_WRITE,
	.flags = OP_IDEMPOTENT | OP_LIFECYCLE,
	.request = &op_sandbox_table,
	.target = OP_TARGET(struct op_sandbox, sandbox),
	.result = &paused_table,
	.run = sandbox_pause_run,
};

const struct op sandbox_resume_op = {
	.action = "sandbox.resume",
	.doc = "Resumes the processes of a paused sandbox.",
	.effect = OP_WRITE,
	.flags = OP_IDEMPOTENT | OP_LIFECYCLE,
	.request = &op_sandbox_table,
	.target = OP_TARGET(struct op_sandbox, sandbox),
	.result = &resumed_table,
	.run = sandbox_resume_run,
};

/* ---- sandbox.set_timeout ------------------------------------------------------------------- */

struct timeout_request {
	struct str sandbox;
	uint32_t seconds;
};
static const struct field timeout_fields[] = {
	OP_SANDBOX_ROW(struct timeout_request),
	FIELD(struct timeout_request, seconds, .flags = FIELD_REQUIRED,
	      .doc = "Time to live in seconds from now, at most 2592000. 0: no end."),
};
static const struct field_table timeout_table = FIELD_TABLE(struct timeout_request, timeout_fields);

static const struct field set_fields[] = {
	FIELD(struct sandbox_timeout, sandbox, .flags = FIELD_REQUIRED,
	      .doc = "Id of the sandbox."),
	FIELD(struct sandbox_timeout, seconds, .flags = FIELD_REQUIRED,
	      .doc = "The time to live that was set."),
};
static const struct field_table set_table = FIELD_TABLE(struct sandbox_timeout, set_fields);

static int sandbox_check_timeout(struct call *c, uint32_t seconds, struct err *e)
{
	struct call_about *about = call_about(c);

	if (seconds <= SANDBOX_TIMEOUT_MAX)
		return 0;
	about->has_requested_s = about->has_max_timeout_s = true;
	about->requested_s = seconds;
	about->max_timeout_s = SANDBOX_TIMEOUT_MAX;
	return err_set(e, ERR_INVALID, "a sandbox can be given %d seconds, not %u",
		       SANDBOX_TIMEOUT_MAX, seconds);
}

static void sandbox_set_timeout_run(struct call *c, const void *request)
{
	const struct timeout_request *q = request;
	struct sandbox_timeout r = { .sandbox = q->sandbox,
				     .status = STR_LIT("ok"),
				     .seconds = q->seconds };
	struct err e = ERR_INIT;
	struct hub_sandbox *l = call_hub_sandbox(c, q->sandbox, &e);
	struct hub_sandbox_info i;

	if (!l || sandbox_check_timeout(c, q->seconds, &e) < 0 ||
	    budget_check_timeout(c, l, q->seconds, &e) < 0 ||
	    hub_sandbox_set_timeout(l, q->seconds * 1000ull, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	hub_sandbox_info(l, &i);
	r.deadline_unix = (i.deadline_ms + 999) / 1000;
	call_answer(c, &r);
}

const struct op sandbox_set_timeout_op = {
	.action = "sandbox.set_timeout",
	.doc = "Sets the time to live of a sandbox, counted from now.",
	.effect = OP_WRITE,
	.flags = OP_IDEMPOTENT | OP_LIFECYCLE,
	.request = &timeout_table,
	.target = OP_TARGET(struct timeout_request, sandbox),
	.result = &set_table,
	.run = sandbox_set_timeout_run,
};
