#pragma once
/*
 * code.execute: JavaScript in a sandbox (docs/code.md). Code of a principal runs in a sandbox that
 * nobody else's code runs in. It is made by the first call that needs it, as a sandbox.create of
 * the same principal, with its policy, approval, limits and audit, and ends when it was idle for
 * CODE_IDLE_S. In it stand processes of holt-js (code/guest), each of which serves one run at a
 * time and is kept for the next. What a run calls of the host is a call of the same principal.
 *
 * Code that fails, and one that reaches a limit, is an answer like any other.
 */
#include "json/field/field.h"
#include "modules/code/frame.h"

enum {
	CODE_IDLE_S = 600, /* a sandbox without a run */
	CODE_WARM_MS = 60 * 1000, /* a process without a run */
	CODE_WARM_MAX = 2, /* such processes of a sandbox */
	CODE_RUNS_MAX = 16, /* of a principal at once */
};

struct code_line {
	enum code_level level;
	struct str text;
};

struct code_error {
	struct str name, message, stack;
	uint32_t line, column;
	bool has_place, has_limit;
	enum code_limit limit;
};

struct code_answer {
	bool ok;
	struct str value; /* JSON; STR_NONE: there is none */
	struct {
		const struct code_line *p;
		size_t n;
	} console;
	bool has_error;
	struct code_error error;
	uint32_t calls;
	uint64_t duration_ms;
};
extern const struct field_table code_answer_table;

/* A module that was registered or deleted. */
struct code_registered {
	struct str module; /* "ha:NAME" */
	struct field_strs exports;
	bool deleted;
};

/* ---- of a hub ------------------------------------------------------------------------------ */

struct code;
struct code *code_new(struct err *e) MUST_USE;
/* No call is under way. NULL-safe. */
void code_free(struct code *k);
AUTO_DEFINE(code_free, struct code)
