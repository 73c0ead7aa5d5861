/* Pause and resume: processes are frozen, and nothing is lost. The time to live goes on, the
 * idle time does not. */
#include "base/clock.h"
#include "hub/sandbox/internal.h"

/* It may have ended meanwhile; that is final. */
static void settle(struct life_op *op, enum life_state from, enum life_state to,
		   const struct err *err)
{
	struct err e = ERR_INIT;
	struct life *l = op->life;

	if (!err && l->state == from && !l->ending)
		life_set_state(l, to, NULL, &e);
	else if (!err)
		err = life_check_runs(l, &op->err) < 0 ? &op->err : NULL;
	l->used_ms = clock_ms(); /* it could not be used meanwhile */
	life_arm(l);
	life_op_end(op, err);
}

static void on_paused(void *arg, struct sandbox *sb, const struct err *err)
{
	settle(arg, LIFE_RUNNING, LIFE_PAUSED, err);
}

static void on_resumed(void *arg, struct sandbox *sb, const struct err *err)
{
	settle(arg, LIFE_PAUSED, LIFE_RUNNING, err);
}

void life_pause_start(struct life *l, life_cb on_done, void *arg)
{
	struct err e = ERR_INIT;

	if (l->state == LIFE_PAUSED && !l->ending && !l->stopping)
		life_later(l->all, l, on_done, arg, NULL);
	else if (life_check_runs(l, &e) < 0)
		life_later(l->all, l, on_done, arg, &e);
	else
		sandbox_pause_start(l->box, on_paused, life_op_new(l->all, l, on_done, arg));
}

void life_resume_start(struct life *l, life_cb on_done, void *arg)
{
	struct err e = ERR_INIT;

	if (l->state == LIFE_STOPPED || l->state == LIFE_COLD)
		life_start_again(l, on_done, arg);
	else if (l->state == LIFE_PAUSED && !l->ending && !l->stopping)
		sandbox_resume_start(l->box, on_resumed, life_op_new(l->all, l, on_done, arg));
	else if (life_check_runs(l, &e) < 0)
		life_later(l->all, l, on_done, arg, &e);
	else
		life_later(l->all, l, on_done, arg, NULL);
}
