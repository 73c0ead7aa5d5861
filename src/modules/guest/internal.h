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
#include <time.h>
#include <quickjs/quickjs.h>

#include "base/buf.h"
#include "modules/code/wire.h"

enum guest_limit { GUEST_NO_LIMIT, GUEST_CPU, GUEST_HEAP, GUEST_STACK, GUEST_OUTPUT, GUEST_CALLS };

enum { GUEST_CLASSES = 256 };

/* A form of a source that parses (js/forms.js). */
struct form {
	const char *name; /* of the script or module */
	JSValue compiled;
	bool is_module;
};

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
	JSValue failed; /* a text: the last call that failed, and why */
	/* value.c */
	JSClassID bytes_first, bytes_last; /* of typed arrays */
	/* library.c */
	JSValue host; /* what js/ gets and puts there */
	JSValue typescript; /* a function; JS_UNDEFINED until it is needed */
	const char *kinds[GUEST_CLASSES]; /* by class */
	struct timespec began;
	uint64_t random; /* of Math.random() */
	/* run.c */
	JSValue source; /* the code, as it came */
	JSValue place; /* a function: where a place of the compiled text is in the source */
	struct form *form; /* that is looked for */
	bool parsed;
	bool waits; /* the code awaits calls */
	bool telling; /* the value is written: promises in it are awaited */
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
/* JSON of a value: bytes (Uint8Array and the like) as base64, BigInts as integers, or where
 * `quoted` as strings of digits. JS_UNDEFINED where it has none, such as a function; an exception
 * where it can't be written. */
JSValue guest_json(JSContext *ctx, JSValueConst value, bool quoted);
/* For js/json.js: how a BigInt is marked in a text of JSON.stringify(), and the text without. */
JSValue value_integer(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv);
JSValue value_integers(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv);
/* A text for people; never an exception. To be freed by JS_FreeCString(), or NULL. */
const char *guest_text(JSContext *ctx, JSValueConst value, size_t *ret_n);
/* Ends the run: an exception that no code catches. */
JSValue guest_over(JSContext *ctx, enum guest_limit hit);

/* ---- parse.c, bytes.c, digest.c ------------------------------------------------------------ */

/* JSON whose integers beyond 2^53 become BigInts. p[n] is NUL. */
JSValue guest_parse(JSContext *ctx, const char *p, size_t n);
/* The bytes of a typed array or an ArrayBuffer; none where it has shrunk. -1: an exception. */
int guest_bytes(JSContext *ctx, JSValueConst v, uint8_t **ret, size_t *ret_n);
/* From the kernel. */
void guest_random(void *to, size_t n);
/* algorithm: 1, 256, 384 or 512. How many bytes the digest has. */
size_t guest_digest(unsigned algorithm, const uint8_t *p, size_t n, uint8_t out[64]);
JSValue bytes_encode(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv);
JSValue bytes_decode(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv);
JSValue bytes_random(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv);
JSValue bytes_digest(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv);

/* ---- library.c ----------------------------------------------------------------------------- */

/* A script of js/, as compile.c of this folder makes it. The last of guest_scripts has n = 0. */
struct guest_script {
	const uint8_t *code;
	size_t n;
};
extern const struct guest_script guest_scripts[], guest_typescript; /* n = 0: the build has none */

int library_init(struct guest *g);
/* The run begins. */
void library_begin(struct guest *g);
/* Calls what a script has put into `host`. */
JSValue library_call(struct guest *g, const char *name, int argc, JSValueConst *argv);
double guest_now_ms(const struct guest *g);
/* Of an object, whatever its prototype: "Map"; NULL: it is none. */
const char *guest_kind(JSContext *ctx, JSValueConst v);

/* ---- modules.c, call.c, console.c ---------------------------------------------------------- */

int modules_init(struct guest *g);
JSValue modules_require(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv);
JSValue modules_known(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv);
const char *modules_function(struct guest *g, uint32_t module, uint32_t function);
/* Whether code awaits anything, and so wants its calls at once. */
bool source_waits(struct str code);
bool modules_caller_waits(JSContext *ctx);
/* From now on each import finds a module without exports, and the hub is not asked. */
void modules_pretend(struct guest *g);
JSValue console_write(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv);
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
/* Does the next thing: a job, the answer of a call, a timer that is due until then. 0: there is
 * none; -1: it threw. all: also timers that nobody waits for. */
int call_step(struct guest *g, bool all, double until_ms);
/* Goes on until a promise is settled. False: nothing can settle it any more, or a job has thrown
 * what no code catches. */
bool call_settle(struct guest *g, JSValueConst promise);
/* The result of what a call has returned, for which it waits; all else as it is. */
JSValue call_settled(JSContext *ctx, JSValueConst v);

/* ---- run.c --------------------------------------------------------------------------------- */

/* Somebody looks at the rejection of this promise. */
void run_handled(struct guest *g, JSValueConst promise);
/* Waits for a promise, which it takes, and returns its result. */
JSValue run_awaited(struct guest *g, JSValue v);
/* Whether the CPU limit is reached. */
bool run_is_over(struct guest *g);
/* The text of an ES module as JavaScript, and the module; an exception where it does not parse. */
JSValue source_module(JSContext *ctx, const char *name, JSValueConst source, JSModuleDef **ret);
void guest_begin(void);
void guest_run(void) __attribute__((noreturn));
