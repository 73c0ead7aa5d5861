#pragma once
/* Verbs that make several new sandboxes of one source, and print their names. */
#include "cli/link/ask.h"

#define ASK_COPIES(...)                                                                            \
	.check = copies_check, ASK(copies_options, .method = "POST", .write = copies_write,        \
				   .list = "sandboxes", .prints = "id", __VA_ARGS__)

extern const struct option_table copies_options;
int copies_check(const struct verb_input *in, struct err *e);
int copies_write(const struct verb_input *in, struct json_writer *w, struct err *e);
