#pragma once
/* The parts of `holt serve`: only main() may know both the command line and REST. */
#include "cli/serve.h"

extern const struct serve_part *const serve_parts[];
extern const size_t serve_parts_n;
