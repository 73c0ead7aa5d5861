#pragma once
/* What several tools share: rows of their tables, and small conversions. */
#include "box/host/box.h"
#include "hub/sandbox/life.h"
#include "json/field/field.h"
#include "op/call.h"

/* The first argument of all but sandbox_create. */
#define SANDBOX_ROW(S)                                                                             \
	FIELD(S, sandbox, .flags = FIELD_REQUIRED, .min = 1, .max = 64,                            \
	      .doc = "Id of the sandbox, as sandbox_create or sandbox_fork returned it.")

/* The same of a projected tool. */
#define TOOL_SANDBOX                                                                               \
	{                                                                                          \
		"sandbox",                                                                         \
			.doc = "Id of the sandbox, as sandbox_create or sandbox_fork returned it." \
	}

enum { TOOL_PATH_MAX = 4095, TOOL_ENV_MAX = 256 };

enum encoding { ENCODING_UTF8, ENCODING_BASE64, ENCODINGS };
extern const char *const encoding_names[ENCODINGS];

/* Checks the names and hands the variables on, in the call's arena. */
int tool_env(struct call *c, const struct field_map *map, const struct env_var **ret,
	     struct err *e) MUST_USE;

/* The bytes that an argument stands for: itself, or what it is in base64, in the call's arena.
 * name is the argument's, for the error. */
int tool_bytes(struct call *c, const char *name, struct str text, enum encoding encoding,
	       struct str *ret, struct err *e) MUST_USE;

/* Of tools that take nothing but a sandbox. */
struct sandbox_params {
	struct str sandbox;
};
extern const struct field_table sandbox_params_table;

/* Of those that answer with the state that it has now. */
struct state_result {
	struct str sandbox;
	enum life_state state;
};
extern const struct field_table state_result_table;

/* What is needed of a call while it waits, in its arena; NULL: the call has failed. */
struct tool_wait {
	struct call *call;
	const void *params;
};
struct tool_wait *tool_wait(struct call *c, const void *params) MUST_USE;

/* Ends a sandbox that nobody will learn of. */
void tool_discard(struct life *l);
