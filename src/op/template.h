#pragma once
/* What the door and other operations know of templates. */
#include "op/call.h"
#include "op/ops.h"

/* How many template.list has. */
size_t templates_count(struct call *c);
/* Whether sandboxes can be made of one that is called so. */
bool template_exists(struct ops *ops, struct str name);
