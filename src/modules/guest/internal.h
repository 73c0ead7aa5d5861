#pragma once
/*
 * holt-js, the program that runs JavaScript in a sandbox. main.c forks a worker for each run; the
 * other files are the worker's. A plain blocking program with one runtime and one context, in which
 * all code is hostile: what the program itself needs of an object is an own property that it has
 * defined or parsed, never one that a prototype could supply, and host functions are known by
 * index.
 */
#include <stdbool.h>
#include <stdint.h>
#include <quickjs/quickjs.h>

#include "base/buf.h"
#include "modules/code/wire.h"

enum guest_limit { GUEST_NO_LIMIT, GUEST_CPU, GUEST_HEAP, GUEST_STACK, GUEST_OUTPUT, GUEST_CALLS };

struct guest_pending; /* a call that the hub has not answered */

struct guest {
	JSRuntime *rt;
	JSContext *ctx;
	struct buf in; /* the last frame */
	uint64_t output_left; /* bytes */
	uint64_t calls_left;
	enum guest_limit hit; /* the run is over */
	/* modules.c */
	struct guest_module *modules;
	/* call.c */
	struct guest_pending *pending; /* by id */
	uint32_t n_pending, room_pending, next; /* next: the first that was not sent */
	uint32_t sent; /* and not answered */
	unsigned parallel; /* how deep in parallel() */
	JSValue result_proto; /* of what a call gives there */
	/* value.c */
	JSClassID bytes_first, bytes_last; /* of typed arrays */
	/* run.c */
	JSValue *rejected; /* promises whose rejection nothing has handled */
	size_t n_rejected;
};

static inline struct guest *guest_of(JSContext *ctx)
{
	return JS_GetContextOpaque(ctx);
}

/* ---- frame.c ------------------------------------------------------------------------------- */

/* Reads the next frame; the process ends where there is none. A parsed object, or an exception
 * where there is no memory for it. */
JSValue guest_read(struct guest *g);
/* Sends what follows, a JSON object. */
void guest_send(struct buf *frame);
struct buf guest_frame(const char *kind);
/* Appends ,"key":"text" with what JSON has to escape; halves of surrogate pairs become U+FFFD. */
void guest_put(struct buf *to, const char *key, struct str text);
void guest_put_int(struct buf *to, const char *key, uint64_t value);
/* Appends JSON as guest_json() gives it. */
void guest_put_json(struct buf *to, const char *key, struct str json);
void guest_exit(enum code_exit how) __attribute__((noreturn));

/* ---- value.c ------------------------------------------------------------------------------- */

void value_init(struct guest *g);
/* An own data property; JS_UNDEFINED where there is none. */
JSValue guest_own(JSContext *ctx, JSValueConst of, const char *name);
/* A number of a frame; 0 where there is none. */
uint64_t guest_own_int(JSContext *ctx, JSValueConst of, const char *name);
/* JSON of a value: BigInts as strings of digits, bytes (Uint8Array and the like) as base64.
 * JS_UNDEFINED where it has none, such as a function; an exception where it can't be written. */
JSValue guest_json(JSContext *ctx, JSValueConst value);
/* A text for people; never an exception. To be freed by JS_FreeCString(), or NULL. */
const char *guest_text(JSContext *ctx, JSValueConst value, size_t *ret_n);
/* Ends the run: an exception that no code catches. */
JSValue guest_over(JSContext *ctx, enum guest_limit hit);

/* ---- modules.c, call.c, console.c ---------------------------------------------------------- */

int modules_init(struct guest *g);
JSValue modules_require(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv);
/* The names that a module exports, an array. */
JSValue modules_exports(JSContext *ctx, struct str code);
/* From now on each import finds a module without exports, and the hub is not asked. */
void modules_pretend(struct guest *g);
int console_init(struct guest *g);
int call_init(struct guest *g);
/* A host function: this one of a module. */
JSValue call_function(JSContext *ctx, uint32_t module, uint32_t function, const char *name);
JSValue call_parallel(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv);
/* The answer of MCP's tools/call, as code sees it: result.c. */
JSValue result_of(JSContext *ctx, JSValueConst answer);
JSValue result_failed(JSContext *ctx, JSValue text);
/* The next frame of this kind; answers of calls before it are taken. */
JSValue call_read(struct guest *g, const char *kind);
/* Waits for the answers of all that was called. False where a limit is reached meanwhile. */
bool call_finish(struct guest *g);
/* Runs jobs until a promise is settled, reading answers of calls that are under way. False: nothing
 * can settle it any more, or a job has thrown what no code catches. */
bool call_settle(struct guest *g, JSValueConst promise);

/* ---- run.c --------------------------------------------------------------------------------- */

/* Somebody looks at the rejection of this promise. */
void run_handled(struct guest *g, JSValueConst promise);
void guest_run(void) __attribute__((noreturn));
