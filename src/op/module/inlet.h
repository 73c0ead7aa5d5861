#pragma once
/*
 * Answers programs of sandboxes that were made with modules (modules/code/inlet.h). What they may
 * ask for is module.list, module.info with the module.test that it needs, and module.call, of the
 * modules that their sandbox has. Each is a call of the sandbox's owner, but never of the operator:
 * with policy, approval, redaction and audit.
 */
#include "call/call.h"

struct inlets; /* of a hub */

/* Borrows ops until it is closed. */
struct inlets *inlets_new(struct ops *ops, struct err *e) MUST_USE;
/* Ends what is under way; on_closed is called later, from the loop. */
void inlets_close(struct inlets *all, void (*on_closed)(void *arg), void *arg);
