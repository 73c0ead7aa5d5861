#pragma once
/* Verbs that make several new sandboxes of one source, and print their names. */
#include "cli/link/ask.h"

struct copies_options {
	struct verb_options common;
	struct option_list names, labels;
	uint32_t count, output;
};
extern const struct option_table copies_options;

/* A verb's run(). of: what the operand names; more: of the path at which its copies are made. */
int copies_run(const struct verb_input *in, const struct ask_noun *of, const char *more);
