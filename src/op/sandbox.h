#pragma once
/* The lifecycle of an existing sandbox: sandbox.terminate, sandbox.pause, sandbox.resume,
 * sandbox.set_timeout. */
#include "hub/sandbox/sandbox.h"
#include "op/ops.h"

/* What became of it. */
struct sandbox_ended {
	struct str sandbox;
	bool terminated;
	struct str status;
};

struct sandbox_state {
	struct str sandbox;
	enum hub_sandbox_state state;
};

enum { SANDBOX_TIMEOUT_MAX = 30 * 86400 };

struct sandbox_timeout {
	struct str sandbox, status;
	uint32_t seconds;
	/* In seconds since 1970; 0: it never ends by itself. */
	int64_t deadline_unix;
};
