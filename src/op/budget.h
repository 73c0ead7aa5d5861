#pragma once
/* What the operator's file lets a principal, and all together, have of sandboxes ("limits"). */
#include "call/call.h"

/* Whether n more sandboxes may be made, as forks of source or, with STR_NONE, of none. *ret_until:
 * when they have to end, in Unix time; 0: never. ERR_LIMIT: as many are there already. */
int budget_admit(struct call *c, size_t n, struct str source, int64_t *ret_until,
		 struct err *e) MUST_USE;

/* Gives a new sandbox no more time than that. */
int budget_apply(struct hub_sandbox *l, int64_t until, struct err *e) MUST_USE;

/* Bytes of objects that all workspaces and snapshots of coding sessions may keep; 0: no bound. */
uint64_t budget_objects(const struct call *c);

/* Whether a sandbox may live for so many seconds from now; 0: for ever. ERR_DENIED else. */
int budget_check_timeout(struct call *c, const struct hub_sandbox *l, uint64_t seconds,
			 struct err *e) MUST_USE;
