#pragma once
/* What a failure is about, beside its cause: doors show of it what their clients understand.
 * Strings are borrowed, and absent where STR_NONE. */
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct call_about {
	struct str sandbox, snapshot, path, op, dimension;
	struct str exec_id; /* of a program that was started */
	bool has_timeout_s, has_requested_s, has_max_timeout_s, has_retry_after_ms, has_exit_code;
	uint64_t timeout_s, requested_s, max_timeout_s, retry_after_ms;
	int32_t exit_code;
	/* What a model reads behind the failure, however long; shown by doors that have room. */
	struct str detail;
};
