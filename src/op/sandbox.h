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
	bool has_left_out;
	uint32_t left_out;
	struct str left_out_names;
};

/* Rows of what the workspace's revision lacks, for each table that has the answer. */
#define SANDBOX_LEFT_OUT_ROWS                                                                      \
	FIELD(struct sandbox_ended, left_out,                                                      \
	      .has = FIELD_HAS(struct sandbox_ended, has_left_out),                                \
	      .doc = "Number of files that the workspace's revision does not have, because "       \
		     "they hold credentials. They are deleted."),                                  \
		FIELD(struct sandbox_ended, left_out_names, .doc = "Names of the first of them.")
struct sandbox_state {
	struct str sandbox;
	enum hub_sandbox_state state;
	bool has_volumes_gone;
	struct field_strs volumes_gone;
	struct str cause; /* of a running one: it was lost */
};
/* Rows of what one that was resumed lacks, for each table that has the answer. */
#define SANDBOX_LACKS_ROWS                                                                         \
	FIELD(struct sandbox_state, volumes_gone,                                                  \
	      .has = FIELD_HAS(struct sandbox_state, has_volumes_gone),                            \
	      .doc = "Where volumes are missing, which the host no longer has."),                  \
		FIELD(struct sandbox_state, cause,                                                 \
		      .doc = "Why it was lost, so that its files are older.")

enum { SANDBOX_TIMEOUT_MAX = 30 * 86400 };

struct sandbox_timeout {
	struct str sandbox, status;
	uint32_t seconds;
	/* In seconds since 1970; 0: it never ends by itself. */
	int64_t deadline_unix;
};
