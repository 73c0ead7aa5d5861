#pragma once
/* Programs of this host that no sandbox has by itself, such as those below a home. */
#include "config/config.h"

/* After `holt run` did not find the program `name` (ERR_COMMAND_NOT_FOUND): *e has the words that
 * run it, if it is here. config: what --config said, or NULL. */
void elsewhere_tell(const char *config, struct str name, struct err *e);
