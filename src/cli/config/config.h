#pragma once
/* What verbs about the operator's file share. */
#include "base/str.h"
#include "cli/common/verb.h"

struct config;
struct op;

/* said: what --config says, or NULL. */
struct config *config_of_verb(const char *said, struct err *e) MUST_USE;

/* All that a rule can be about: operations of the hub, of one door alone, and of verbs. */
struct config_action {
	const char *action, *effect;
	const struct op *op; /* NULL: a verb does it, and no table has its request */
};
enum { CONFIG_ACTIONS_MAX = 256, CONFIG_TOOLS_MAX = 32 };
size_t config_actions(struct config_action *ret, size_t max);
/* Whether a pattern of a rule's "actions" is of it. */
bool config_is_action(const struct config_action *a, struct str pattern);

enum { CONFIG_POINTER_MAX = 256 };
/* Suggests a pointer in place of one that no request of the operation has: the one that a door
 * calls so, or one that is spelled alike. "": there is none. */
void config_near_pointer(const struct op *op, const char *pointer, char ret[CONFIG_POINTER_MAX]);

/* Says what rules name that is not there, one line each, and with notes also what may be a
 * misunderstanding. How many are none. */
typedef void (*config_say_fn)(const char *line);
unsigned config_doubts(const struct config *c, bool notes, config_say_fn say);
/* The same into the log, by programs for which the file holds from here on. */
void config_warn(const struct config *c);
