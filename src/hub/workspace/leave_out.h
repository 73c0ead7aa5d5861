#pragma once
/* What never becomes part of a workspace: files that hold credentials, by their names. */
#include "base/str.h"

/* Whether something of this name, in a folder of this name ("" at the top), is left out with all in
 * it. Case does not matter. */
bool leave_out(struct str folder, struct str name);
