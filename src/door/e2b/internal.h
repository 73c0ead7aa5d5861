#pragma once
/*
 * Between the files of the door. A request is a `struct ask`, from its row's run() to its one end:
 * ask_reply(), ask_fail() or ask_end_stream(). In between it starts operations, one after the
 * other or beside each other, by ask_call(); each ends in its `then`.
 */
#include "door/e2b/e2b.h"
#include "json/document/put.h"

struct ask;
struct hub_sandbox;

/* How answers and failures look. */
enum e2b_form {
	E2B_CONTROL, /* {"code":404,"message":"…"} */
	E2B_HTTP, /* the same, of envd */
	E2B_UNARY, /* Connect */
	E2B_STREAM, /* Connect, frames */
	E2B_CODE, /* of the code interpreter: a plain text, or lines of JSON */
	E2B_MITOS, /* the same for clients of mitos: Connect, frames */
};
static inline bool e2b_is_frames(enum e2b_form form)
{
	return form == E2B_STREAM || form == E2B_MITOS;
}

/* A member of the body that is understood. Absent or null it has its default; of another type, or
 * above max, the request is refused. Others are ignored, as newer clients have more of them. */
struct e2b_member {
	const char *path; /* NAME.NAME… */
	enum json_type type;
	uint64_t max; /* of a JSON_INT, which is at least 0 */
};

struct e2b_row {
	enum http_method method;
	const char *path;
	enum e2b_form form;
	size_t body_max; /* 0: BODY_MAX */
	void (*run)(struct ask *a);
	const char *doc;
	const struct e2b_member *members; /* up to one without a path; NULL: none */
	bool is_raw; /* the body is no JSON */
};

struct e2b_rows {
	const struct e2b_row *p;
	size_t n;
};
extern const struct e2b_rows e2b_sandboxes, e2b_process, e2b_filesystem, e2b_files, e2b_watch,
	e2b_code, e2b_mitos;

enum {
	E2B_ENVD_PORT = 49983,
	E2B_CODE_PORT = 49999,
	E2B_TOKEN = 65, /* with its NUL */
	E2B_SIGNED = 64,
	E2B_PATH_MAX = 4000, /* bytes of a path */
};
#define E2B_HOME "/home/user"
#define E2B_VERSION "0.6.1" /* of envd: what clients may expect of it */
/* A label of sandboxes that were made here: the template's name, as it was asked for. */
#define E2B_LABEL_TEMPLATE "e2b/template"
/* Another: its ports are shown to holders of the token alone. */
#define E2B_LABEL_PRIVATE "e2b/private"

struct e2b_process_record;
struct e2b_watcher;
struct e2b_context;

/* Sandboxes that were looked at for strangers, and are not yet paid off by time. */
struct e2b_looks {
	uint64_t n, at_ms;
};

struct e2b {
	struct e2b_options o;
	char secret[65];
	struct http_route *rows;
	const struct e2b_row **of; /* of each; the first is that of ports */
	size_t n;
	struct ask *asks; /* all */
	void (*on_closed)(void *arg);
	void *on_closed_arg;
	struct e2b_process_record *processes;
	size_t n_processes;
	uint32_t last_pid;
	struct e2b_watcher *watchers;
	size_t n_watchers;
	struct e2b_context *contexts;
	size_t n_contexts;
	/* Ids of sandboxes by the hash of a signature: where to look first, and no proof. */
	char signed_by[E2B_SIGNED][SANDBOX_ID_MAX + 1];
	struct e2b_looks looks, looks_of[E2B_SIGNED]; /* in all; by the hash of who asks */
	unsigned unpacking; /* bodies that are unpacked in memory */
};

typedef void (*ask_then)(struct ask *a, const void *result, const struct err *err);
typedef void (*ask_event)(struct ask *a, const void *event);

struct ask_step;
struct ask {
	struct e2b *x;
	const struct e2b_row *row;
	struct http_request *q; /* until it is answered; NULL: nobody asks from outside */
	struct http_stream *stream;
	const struct principal *who;
	struct arena *arena;
	struct json_doc *doc;
	const struct json_val *body; /* NULL: none */
	struct str sandbox; /* STR_NONE: none */
	bool as_root; /* the client names the user root */
	uint64_t timeout_ms; /* Connect-Timeout-Ms; 0: none */
	void *state; /* the row's own, in the arena */
	/* The client has gone, or the server goes down. False: the steps are cancelled next; true:
	 * they go on until ask_cancel() comes again. */
	bool (*on_leave)(struct ask *a);
	/* The last thing, before the memory goes; others may begin in it. */
	void (*on_free)(struct ask *a);

	/* Private. */
	struct ask *next, *prev;
	struct ask_step *steps;
	unsigned depth;
	bool done, left, lingers; /* lingers: on_leave was true */
	uv_timer_t timer;
	bool timing, closing;
	void (*on_timer)(struct ask *a);
	char label[64];
};

/* ---- ask.c --------------------------------------------------------------------------------- */

void ask_run(struct e2b *x, const struct e2b_row *row, struct http_request *q);
/* One that nobody asks from outside; NULL without memory. Between ask_enter() and ask_leave() it
 * stays, also where it ends. */
struct ask *ask_new(struct e2b *x, const struct principal *who, struct str sandbox,
		    struct err *e) MUST_USE;
void ask_enter(struct ask *a);
void ask_leave(struct ask *a);
/* As if its client had gone: cancels its steps, unless on_leave has them linger. */
void ask_cancel(struct ask *a);
/* The same a moment later, of an ask that has failed while an event is told: its call may go on
 * with what it tells from. */
void ask_cancel_later(struct ask *a);

/* The request of an operation, written as JSON of its table. */
struct ask_args {
	struct buf b;
	struct json_writer w;
};
/* Begins it; with the sandbox's id, where has_sandbox. */
struct json_writer *ask_args(struct ask *a, struct ask_args *args, bool has_sandbox);
void ask_arg_str(struct json_writer *w, const char *name, struct str value);
void ask_arg_uint(struct json_writer *w, const char *name, uint64_t value);
void ask_arg_bool(struct json_writer *w, const char *name, bool value);

/* Starts an operation, and takes args. then comes once, perhaps before this returns. */
void ask_call(struct ask *a, const struct op *op, struct ask_args *args, ask_then then);
/* The same of a struct, which is copied; what it borrows stays until then. */
void ask_call_with(struct ask *a, const struct op *op, const void *request, ask_then then);
/* The same, and each of its events. */
void ask_follow(struct ask *a, const struct op *op, struct ask_args *args, ask_event event,
		ask_then then);
/* The call of the event or end that is being told, for redaction. */
struct call *ask_now(struct ask *a);

/* Takes the bytes of w's buffer. */
void ask_reply(struct ask *a, int status, struct json_writer *w);
void ask_reply_with(struct ask *a, int status, struct json_writer *w, struct http_header header);
void ask_reply_empty(struct ask *a, int status);
void ask_fail(struct ask *a, const struct err *e);
void ask_fail_with(struct ask *a, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* A failure of Connect by this code. */
void ask_fail_as(struct ask *a, const char *connect, const char *message);

int ask_open(struct ask *a, struct err *e) MUST_USE;
void ask_write(struct ask *a, struct str bytes);
/* A message of a stream: a frame or a line, by the row's form. Takes the bytes of w's buffer. */
void ask_send(struct ask *a, struct json_writer *w);
void ask_end_stream(struct ask *a);
/* Whether much waits for a slow reader of the stream. */
bool ask_is_full(const struct ask *a);

/* Calls on_timer every so many ms; where it has ended before, cancels what still runs. */
void ask_every(struct ask *a, uint64_t ms, void (*on_timer)(struct ask *a));

/* A text in the arena; STR_NONE where it fails. */
struct str ask_printf(struct ask *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
struct str ask_dup(struct ask *a, struct str s);
/* A path as the client means it: from the user's home on. STR_NONE: the ask has failed. */
struct str ask_path(struct ask *a, struct str path);
/* The last part of a path, and what is before it. */
struct str e2b_base_name(struct str path);
struct str e2b_parent(struct str path);

/* Members of the body; of a wrong type they are absent. */
struct str ask_str(const struct json_val *v, const char *name);
bool ask_uint(const struct json_val *v, const char *name, uint64_t *ret);

/* Whether a data-plane failure says that the sandbox is gone or stands still. */
bool e2b_is_gone(enum err_code code);

/* ---- e2b.c --------------------------------------------------------------------------------- */

/* The tokens of a sandbox: for envd, and for its ports. */
void e2b_token(const struct e2b *x, struct str id, uint32_t generation, bool of_ports,
	       char ret[E2B_TOKEN]);
/* The principals of requests for a sandbox that is none, and of those that have to come again. */
extern const struct principal e2b_gone, e2b_later;
/* Closes it, where it is to be closed and nothing is asked any more. */
void e2b_settle(struct e2b *x);
/* The id of the sandbox by whose token the address is signed; STR_NONE. */
struct str e2b_signed(struct e2b *x, struct http_request *q);
struct hub_sandbox *e2b_find(const struct e2b *x, struct str id);
bool e2b_label(struct hub_sandbox *l, const char *name, struct str *ret_value);
/* The template that an alias means. */
struct str e2b_template(const struct e2b *x, struct str name);
int e2b_explain(const struct http_problem *problem, struct buf *to, struct err *e);
/* Whether the client names a user that there is; *ret_root: root. */
bool e2b_user(struct http_request *q, bool *ret_root);

/* ---- code.c -------------------------------------------------------------------------------- */

/* The value, with each text in it redacted for the call of ask_now(). */
void e2b_write_redacted(struct ask *a, struct json_writer *w, const struct json_val *v);

/* ---- process.c ----------------------------------------------------------------------------- */

/* Frees what is known of processes. */
void e2b_processes_free(struct e2b *x);
void e2b_watchers_free(struct e2b *x);
void e2b_contexts_free(struct e2b *x);
uint32_t e2b_new_pid(struct e2b *x);
