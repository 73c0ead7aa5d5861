#pragma once
/* What a program says of itself. */
#include "base/err.h"

enum { PROGRAM_VERSION_MAX = 128 };

/* The first line that PATH --version prints within a few seconds, with nothing on its standard
 * input; then it is ended. "": it prints none. -1: it does not start. */
int program_version(const char *path, char line[PROGRAM_VERSION_MAX], struct err *e) MUST_USE;
