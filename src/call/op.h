#pragma once
/*
 * An operation: one thing that can be asked of Holt, as a const row. Every door (an MCP tool, a
 * REST route, a procedure of Connect, a socket's first message, a verb) is a projection of one:
 * names, encodings and texts of its own, and nothing else (call/project.h). op_new() and op_start()
 * in call/call.h are the only way to start one.
 */
#include "json/field/field.h"

struct call;

/* What an operation does to its target. Policy judges by it, and hints to clients are made from
 * it. */
enum op_effect { OP_READ, OP_WRITE, OP_EXECUTE, OP_DESTROY, OP_ADMINISTER, OP_EFFECTS };
extern const char *const op_effect_names[OP_EFFECTS]; /* "read" and so on */

enum op_flag {
	/* It may last as long as its client likes: it waits for news, or reports them as they
	 * come. */
	OP_WAITS = 1 << 0,
	/* Asked twice, it is done once. */
	OP_IDEMPOTENT = 1 << 1,
	/* What was there before may be gone. */
	OP_REPLACES = 1 << 2,
	/* Done once for each key that its client gives (call/once.h). */
	OP_KEYED = 1 << 3,
	/* It makes, keeps or ends sandboxes or snapshots as a whole. */
	OP_LIFECYCLE = 1 << 4,
	/* It runs programs or code of the caller's choice: to rules OP_COMMANDS_ACTION, too. */
	OP_COMMANDS = 1 << 5,
	/* A target that the end of a hub has stopped stays so: what it does needs nothing to run.
	 * Every other operation starts it again first. */
	OP_NO_WAKE = 1 << 6,
	/* Its events are bytes of an archive, which breaks where the length of a part changes. */
	OP_ARCHIVE = 1 << 7,
};

struct op {
	/* Noun and verb, such as "sandbox.exec": what policy, audit and errors name. */
	const char *action;
	const char *doc;
	enum op_effect effect;
	unsigned flags;
	/* The canonical request: a struct, its table, and with OP_TARGET() the member that names
	 * the sandbox. */
	const struct field_table *request;
	size_t target;
	/* A member of the request, by OP_RAW(), which has content leave as it is: the copy of a
	 * file of the operator's own, so that it is refused to everybody else. 0: none. */
	size_t raw;
	/* What it answers; NULL: only that it is done. */
	const struct field_table *result;
	/* A member of the result for the receipt, by OP_RECEIPT(); 0: none. Filled in when the call
	 * has been audited. */
	size_t receipt;
	/* What it tells before its end, where the door takes a stream (call_send()); NULL:
	 * nothing. */
	const struct field_table *event;
	/* Whether a person's word is wanted where the policy allows it; NULL: it is not. */
	bool (*asks)(struct call *c, const void *request);
	/* The name of the tool of a module that it calls, as it is listed; NULL: it calls none. */
	const char *(*tool)(struct call *c, const void *request);
	/* What it makes sandboxes from, as a request for a sandbox would name it; STR_NONE: it
	 * makes none. Lives as long as the call. NULL: a member of the request says it, if any. */
	struct str (*image)(struct call *c, const void *request);
	/* Fills in what the operator's file has for the caller, before the request is brought into
	 * its one form and policy sees it. May be NULL. */
	int (*expand)(struct call *c, void *request, struct err *e);
	/* Brings a decoded request into its one form: what two doors say differently becomes
	 * equal. May be NULL. */
	int (*normalize)(void *request, struct arena *a, struct err *e);
	/* Brings a path of the request, a row with FIELD_PATH, into its one spelling. NULL:
	 * path_spell() (base/path.h). */
	int (*path)(struct str base, struct str said, struct arena *a, struct str *ret,
		    struct err *e);
	/* Where relative paths begin, of an operation that names no sandbox. Lives as long as the
	 * call. NULL: they stay relative. */
	struct str (*base)(struct call *c, const void *request);
	/* What rules see at OP_COMMAND_POINTER: the command as one line. NULL: what the row has. */
	int (*command)(const void *request, struct arena *a, struct str *ret, struct err *e);
	/* The JSON pointer to what its client tells only after the call was judged; NULL: nothing.
	 * A rule about that can't allow it, and nobody is asked about it. */
	const char *later;
	/* Puts what the hub knows into a normalized request: policy, approval and audit see it as
	 * what was asked for. May be NULL; reads a few small files at most. */
	int (*complete)(struct call *c, void *request, struct err *e);
	/* The request lives until the call ends. Leads to exactly one call_answer() or
	 * call_fail(), now or later. */
	void (*run)(struct call *c, const void *request);
};

/* Of a struct str m of the request S. 0: the operation names no sandbox. */
#define OP_TARGET(S, m)                                                                            \
	(1 + offsetof(S, m) +                                                                      \
	 FIELD_MUST(_Generic(FIELD_MEMBER(S, m), struct str : 1, default : 0), "a string"))

/* Of a bool m of the request S, and its row. */
#define OP_RAW(S, m)                                                                               \
	(1 + offsetof(S, m) +                                                                      \
	 FIELD_MUST(_Generic(FIELD_MEMBER(S, m), bool : 1, default : 0), "a bool"))
#define OP_RAW_ROW(S)                                                                              \
	FIELD(S, raw,                                                                              \
	      .doc = "Content as it is, with its secrets. Only for the operator at this machine.")

/* Of a struct str m of the result A. */
#define OP_RECEIPT(A, m) OP_TARGET(A, m)

/* The id of the sandbox that a request names; STR_NONE where it names none. */
static inline struct str op_target(const struct op *op, const void *request)
{
	return op->target ? *(const struct str *)((const char *)request + op->target - 1)
			  : STR_NONE;
}

static inline bool op_is_raw(const struct op *op, const void *request)
{
	return op->raw && *(const bool *)((const char *)request + op->raw - 1);
}

/* Where paths begin in a sandbox that names no other working directory. */
#define OP_PATH_BASE "/workspace"

/* Brings all paths of a normalized request into one spelling. *ret_relative: one of them began
 * at base. */
int op_spell_paths(const struct op *op, void *request, struct str base, struct arena *a,
		   bool *ret_relative, struct err *e) MUST_USE;

#define OP_COMMANDS_ACTION "command.run"
#define OP_COMMAND_POINTER "/command"

/* A program and its arguments as one line: words of letters, digits and -_./:=@%+, as they are, any
 * other in single quotes, as a shell reads it. */
int op_join_command(struct str program, const struct field_strs *args, struct arena *a,
		    struct str *ret, struct err *e) MUST_USE;

/* What a request leaves to its target. */
struct op_defaults {
	struct str
		path; /* where paths begin, and what one that is absent means; STR_NONE: nothing */
	struct str user; /* "user" or "root"; STR_NONE: there is no target */
	bool path_counts; /* somebody decides by the path: that of the target must not be another */
};

/* Shows the texts that rules compare at a JSON pointer of a normalized request, and what holds for
 * those that are absent. whole: a command as one line alone; else its words, too. False: something
 * can't be read, so not all was shown. */
bool op_show(const struct op *op, const void *request, struct op_defaults *d, const char *pointer,
	     bool whole, field_see_fn see, void *data) MUST_USE;

/* The canonical form of a request, {"action":…,"request":{…}} with every member that its table
 * has, and the SHA-256 of it in hex: equal through every door, so that an approval can be bound
 * to exactly one call. bytes: how these are written, for a form that is shown; NULL: in base64. */
struct json_writer;
typedef void (*op_bytes_fn)(struct json_writer *w, struct str bytes);
int op_canonical(const struct op *op, const void *request, op_bytes_fn bytes, struct buf *to,
		 struct err *e) MUST_USE;
enum { OP_DIGEST = 65 };
int op_digest(const struct op *op, const void *request, char ret[OP_DIGEST],
	      struct err *e) MUST_USE;
