#pragma once
/* A tree of files with everything that a copy could lose, and how to see that nothing is lost. */
#include "engine.h"

/* Makes it in /workspace/tree, in two steps with a fork between where `layered`, so that some of
 * it is a lower layer's, changed and removed later. */
void tree_make(struct sandbox *sb, bool layered);

/* A line for every file: type, mode, links, size, blocks, times, owner, xattrs, target, content. */
const char *tree_describe(struct sandbox *sb);
