/* Pause and resume: processes are frozen, and nothing is lost. The time to live goes on, the
 * idle time does not. */
#include "base/clock.h"
#include "hub/sandbox/internal.h"

/* It may have ended meanwhile; that is final. */
static void pause_settle(struct hub_sandbox_op *op, enum hub_sandbox_state from,
			 enum hub_sandbox_state to, const struct err *err)
{
	struct err e = ERR_INIT;
	struct hub_sandbox *l = op->hs;

	if (!err && l->state == from && !l->ending)
		hub_sandbox_set_state(l, to, NULL, &e);
	else if (!err)
		err = hub_sandbox_check_runs(l, &op->err) < 0 ? &op->err : NULL;
	l->used_ms = clock_ms(); /* it could not be used meanwhile */
	hub_sandbox_arm(l);
	hub_sandbox_op_end(op, err);
}

static void on_paused(void *arg, struct sandbox *sb, const struct err *err)
{
	pause_settle(arg, SANDBOX_RUNNING, SANDBOX_PAUSED, err);
}

static void on_resumed(void *arg, struct sandbox *sb, const struct err *err)
{
	pause_settle(arg, SANDBOX_PAUSED, SANDBOX_RUNNING, err);
}

void hub_sandbox_pause_start(struct hub_sandbox *l, hub_sandbox_cb on_done, void *arg)
{
	struct err e = ERR_INIT;

	if (l->state == SANDBOX_PAUSED && !l->ending && !l->stopping)
		hub_sandbox_later(l->all, l, on_done, arg, NULL);
	else if (hub_sandbox_check_runs(l, &e) < 0)
		hub_sandbox_later(l->all, l, on_done, arg, &e);
	else
		sandbox_pause_start(l->box, on_paused, hub_sandbox_op_new(l->all, l, on_done, arg));
}

void hub_sandbox_resume_start(struct hub_sandbox *l, hub_sandbox_cb on_done, void *arg)
{
	struct err e = ERR_INIT;

	if (l->state == SANDBOX_STOPPED || l->state == SANDBOX_COLD)
		hub_sandbox_start_again(l, on_done, arg);
	else if (l->state == SANDBOX_PAUSED && !l->ending && !l->stopping)
		sandbox_resume_start(l->box, on_resumed,
				     hub_sandbox_op_new(l->all, l, on_done, arg));
	else if (hub_sandbox_check_runs(l, &e) < 0)
		hub_sandbox_later(l->all, l, on_done, arg, &e);
	else
		hub_sandbox_later(l->all, l, on_done, arg, NULL);
}
