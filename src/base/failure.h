#pragma once
/* The classes of failures on the wire: member "failure" of every error document. A header of its
 * own, since libmcp exports functions only. */
#include "base/err.h"

extern const char *const err_failure_names[ERR_FAILURES]; /* "timeout" */
