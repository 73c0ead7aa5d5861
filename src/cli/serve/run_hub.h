#pragma once
/* `holt run --module`: modules are a hub's, so the sandbox is one, too. It is made, used and
 * removed by holt up, exec and down. */
#include "cli/common/option.h"

/* What these verbs are told: lists of words, which end with NULL. */
struct run_in_hub {
	const char *const *up,
		*const *exec; /* up: options; exec: options, NULL, the program, NULL */
};

/* The exit status of holt run. */
int run_in_hub(const struct run_in_hub *r);
