#pragma once
/* Variables of the contract's `env` that decide what code programs load. The operator's file
 * grants them (docs/contract.md). */
#include "call/call.h"

/* ERR_DENIED with the pointer of the first that is not granted. */
int run_env_check(struct call *c, const struct field_map *env, struct err *e) MUST_USE;
