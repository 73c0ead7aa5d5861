#pragma once
/* Verbs that make several new sandboxes of one source, and print their names. */
#include "cli/link/link.h"
#include "cli/common/verb.h"

struct copies_options {
	struct verb_options common;
	struct option_list names, labels;
	uint32_t count, output;
};
extern const struct option_table copies_options;

/* A verb's run(). path_of: where the hub is asked for copies of what an operand names. */
int copies_run(const struct verb_input *in,
	       int (*path_of)(char *ret, size_t size, const char *name, const char *more,
			      struct err *e),
	       const char *more);
