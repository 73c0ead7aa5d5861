#pragma once
/* Sandboxes as /v1 shows them: struct sandbox_view, and several of them. */
#include "door/http/common.h"
#include "op/page.h"
#include "op/sandbox_view.h"

extern const struct field_table api_sandbox_table;
