#pragma once
/* What verbs about the operator's file share. */
#include "cli/common/verb.h"

struct config;
struct op;

/* said: what --config says, or NULL. */
struct config *config_of_verb(const char *said, struct err *e) MUST_USE;

/* All that a rule can be about. */
struct config_action {
	const char *action, *effect;
	const struct op *op; /* NULL: no hub does it */
};
enum { CONFIG_ACTIONS_MAX = 256, CONFIG_TOOLS_MAX = 32 };
size_t config_actions(struct config_action *ret, size_t max);
