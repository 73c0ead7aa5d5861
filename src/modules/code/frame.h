#pragma once
/*
 * The hub's side of modules/code/wire.h, without I/O: bytes of a holt-js become frames, and what
 * the hub says becomes bytes. All that a holt-js says is bounded and checked here, but for what
 * only the run can know: whether there is such a module, function or call, and whether it is time
 * for it.
 */
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "json/document/json.h"
#include "modules/code/wire.h"

enum code_kind { CODE_IMPORT, CODE_CONSOLE, CODE_CALL, CODE_DONE, CODE_FAILED, CODE_KINDS };

enum code_level { CODE_LOG, CODE_INFO, CODE_WARN, CODE_ERROR, CODE_DEBUG, CODE_LEVELS };
extern const char *const code_level_names[CODE_LEVELS];

/* All but "wall", which the hub keeps, are told by holt-js. */
enum code_limit {
	CODE_LIMIT_CPU,
	CODE_LIMIT_HEAP,
	CODE_LIMIT_STACK,
	CODE_LIMIT_OUTPUT,
	CODE_LIMIT_CALLS,
	CODE_LIMIT_WALL,
	CODE_LIMITS
};
extern const char *const code_limit_names[CODE_LIMITS];

/* Which members mean something depends on the kind. */
struct code_frame {
	enum code_kind kind;
	struct str name; /* of a module, of an error */
	struct str text; /* on the console */
	enum code_level level;
	uint32_t id, module, function;
	struct str json; /* arguments of a call, an object; value of a run, STR_NONE: undefined */
	struct str message, stack;
	uint32_t line, column; /* 0: not known */
	bool has_limit, again;
	enum code_limit limit;
};

struct code_reader {
	struct buf in;
	size_t at; /* the frame's beginning */
};

void code_reader_init(struct code_reader *r);
void code_reader_fini(struct code_reader *r);
/* ERR_LIMIT: no memory. */
int code_reader_add(struct code_reader *r, struct str bytes, struct err *e) MUST_USE;
/* 1: a frame, whose texts are in a; 0: there is none yet; -1: what was said is none, or it is
 * larger than may be. */
int code_reader_next(struct code_reader *r, struct arena *a, struct code_frame *ret,
		     struct err *e) MUST_USE;

struct code_limits {
	uint32_t cpu_ms, calls;
	uint64_t heap, stack, output; /* bytes */
	bool check; /* not run: only compiled, as a module */
};

/* Each appends a frame. */
int code_say_run(struct buf *to, struct str code, const struct code_limits *l,
		 struct err *e) MUST_USE;
/* A module that the code imports: names of its functions; or a source; or why there is none. */
struct code_module {
	uint32_t index;
	const struct str *functions;
	size_t n_functions;
	struct str source, error; /* STR_NONE: neither */
};
int code_say_module(struct buf *to, const struct code_module *m, struct err *e) MUST_USE;
/* result: JSON as of MCP's tools/call; STR_NONE: the call has failed, and error says why. */
int code_say_result(struct buf *to, uint32_t id, struct str result, struct str error,
		    struct err *e) MUST_USE;
