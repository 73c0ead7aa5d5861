#pragma once
/* What the words of `holt snapshot` share. */
#include "cli/link/ask.h"

extern const struct ask_noun snapshots;
