#pragma once
/*
 * One sandbox, made only to see whether that works: it is made, runs a program, and is removed. It
 * is a call like any other and passes all stages (op/local.h), so that a rule can deny it.
 */
#include "box/host/box.h"
#include "cli/common/verb.h"

enum trial_step { TRIAL_CREATE, TRIAL_EXEC, TRIAL_DESTROY, TRIAL_STEPS };

struct trial {
	unsigned done; /* steps that worked, in their order; TRIAL_STEPS: all */
	double milliseconds[TRIAL_STEPS];
	struct err err; /* why not all did */
	struct box_stats stats;
};

/* allow: features that may be missing, a list; NULL: none. */
void trial_run(struct trial *ret, const struct cli *cli, const char *allow);

static inline bool trial_ok(const struct trial *t)
{
	return t->done == TRIAL_STEPS;
}
