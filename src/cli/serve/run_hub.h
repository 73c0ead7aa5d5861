#pragma once
/* `holt run --module`: modules are a hub's, so the sandbox is one, too. It is made, used and
 * removed by holt up, exec and down. */
#include "cli/common/verb.h"

/* Hands each option that was said to the verb that has one of its name. image: of --template, or
 * NULL. Gives the exit status of holt run. */
int run_in_hub(const struct verb_input *in, const char *image);
