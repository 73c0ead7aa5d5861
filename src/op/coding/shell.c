/* coding.bash, coding.output, coding.kill and coding.secrets. */
#include "op/coding/shell.h"

#include "call/guard.h"
#include "guard/secret/secrets.h"

enum {
	TIMEOUT_DEFAULT = 120,
	TIMEOUT_MAX = 600,
	OUTPUT_DEFAULT = 30 << 10, /* bytes of each stream */
	OUTPUT_MAX = 1 << 20,
	DESCRIPTION_MAX = 1024,
	SHELL_ID_MAX = 64,
	WAIT_MAX = 60,
	KILL_WAIT = 10, /* seconds for the end of one that was killed */
};

/* The id of a session's sandbox, in the call's arena; STR_NONE without memory. */
static struct str shell_sandbox(struct coding_work *w, struct err *e)
{
	struct hub_sandbox_info i;
	char *copy;

	hub_sandbox_info(w->hs, &i);
	copy = arena_dup(call_arena(w->call), i.id, e);
	return copy ? (struct str){ copy, i.id.n } : STR_NONE;
}

static void shell_note_free(struct coding_note *n)
{
	struct shell_note *s = (struct shell_note *)n;

	watches_free(s->watches);
	test_parser_free(s->last);
	free(s);
}

struct shell_note *shell_note(struct coding_work *w, struct err *e)
{
	struct coding_note **at = coding_note(w);
	struct shell_note *s;

	if (*at)
		return (struct shell_note *)*at;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	s->note.free = shell_note_free;
	*at = &s->note;
	return s;
}

/* ---- coding.bash --------------------------------------------------------------------------- */

struct bash_request {
	struct str command, description, workspace;
	uint32_t timeout;
	bool run_in_background;
	struct secret_refs secrets;
};
#define Q struct bash_request
static const struct field bash_fields[] = {
	FIELD(Q, command, .flags = FIELD_REQUIRED, .min = 1, .max = EXEC_BYTES_MAX,
	      .doc = "Shell command line, which starts in the workspace."),
	FIELD(Q, description, .max = DESCRIPTION_MAX, .doc = "What it is for, in a few words."),
	FIELD(Q, timeout, .min = 1, .max = TIMEOUT_MAX, .def = DEFAULT_INT(TIMEOUT_DEFAULT),
	      .doc = "Seconds until it is killed with all that it started."),
	FIELD(Q, run_in_background, .def = DEFAULT_BOOL(false),
	      .doc = "Return at once with a shell_id for BashOutput; it has no timeout."),
	SECRETS_ROW(Q),
	CODING_WORKSPACE_ROW(Q),
};
#undef Q
static const struct field_table bash_table = FIELD_TABLE(struct bash_request, bash_fields);

struct bash_work {
	struct coding_work w; /* first */
	const struct bash_request *q;
	struct exec_request exec;
};

static void bash_then(struct coding_work *w)
{
	struct bash_work *b = (struct bash_work *)w;
	const struct bash_request *q = b->q;
	struct err e = ERR_INIT;
	struct str sandbox = shell_sandbox(w, &e);

	if (!sandbox.p) {
		coding_fail(w, &e);
		return;
	}
	b->exec = (struct exec_request){
		.sandbox = sandbox,
		.command = q->command,
		.cwd = STR_LIT(CODING_ROOT),
		.secrets = q->secrets,
		.timeout_seconds = q->run_in_background ? 0 : q->timeout,
		.background = q->run_in_background,
		.max_output_bytes = OUTPUT_DEFAULT,
		.keep_bytes = JOB_OUTPUT_DEFAULT,
	};
	sandbox_exec_op.run(coding_leave(w), &b->exec);
}

static int bash_normalize(void *request, struct arena *a, struct err *e)
{
	struct bash_request *q = request;

	return secret_refs_normalize(&q->secrets, &(struct field_map){ 0 }, a, e);
}

static void bash_run(struct call *c, const void *request)
{
	struct err e = ERR_INIT;
	struct bash_work *b = arena_alloc(call_arena(c), sizeof(*b), &e);

	if (!b) {
		call_fail(c, &e);
		return;
	}
	b->q = request;
	coding_enter(&b->w, c, b->q->workspace, bash_then);
}

const struct op coding_bash_op = {
	.action = "coding.bash",
	.doc = "Runs a shell command in a coding session.",
	.effect = OP_EXECUTE,
	.flags = OP_COMMANDS,
	.request = &bash_table,
	.result = &exec_answer_table,
	.normalize = bash_normalize,
	.run = bash_run,
};

/* ---- coding.output and coding.kill --------------------------------------------------------- */

struct output_request {
	struct str shell_id, workspace;
	uint64_t offset;
	uint32_t wait, max_bytes;
};
#define Q struct output_request
#define SHELL_ID_ROW                                                                               \
	FIELD(Q, shell_id, .flags = FIELD_REQUIRED, .min = 1, .max = SHELL_ID_MAX,                 \
	      .doc = "Id that Bash returned.")
static const struct field output_fields[] = {
	SHELL_ID_ROW,
	FIELD(Q, offset, .doc = "Where to start: 0 or an offset that was returned."),
	FIELD(Q, wait, .max = WAIT_MAX, .doc = "Seconds to wait for its end; 0: do not wait."),
	FIELD(Q, max_bytes, .min = 1, .max = OUTPUT_MAX, .def = DEFAULT_INT(OUTPUT_DEFAULT),
	      .doc = "Maximum number of bytes to read."),
	CODING_WORKSPACE_ROW(Q),
};
static const struct field kill_fields[] = { SHELL_ID_ROW, CODING_WORKSPACE_ROW(Q) };
#undef Q
static const struct field_table output_table = FIELD_TABLE(struct output_request, output_fields);
static const struct field_table kill_table = FIELD_TABLE(struct output_request, kill_fields);

struct output_work {
	struct coding_work w; /* first */
	const struct output_request *q;
	const struct op *op;
	struct exec_output_request of;
};

static void output_then(struct coding_work *w)
{
	struct output_work *o = (struct output_work *)w;
	bool kill = o->op == &exec_kill_op;
	struct err e = ERR_INIT;
	struct str sandbox = shell_sandbox(w, &e);

	if (!sandbox.p) {
		coding_fail(w, &e);
		return;
	}
	o->of = (struct exec_output_request){
		.sandbox = sandbox,
		.exec = o->q->shell_id,
		.offset = o->q->offset,
		.max_bytes = kill ? OUTPUT_DEFAULT : o->q->max_bytes,
		.stream = EXEC_STREAMS_BOTH,
		.wait_seconds = kill ? KILL_WAIT : o->q->wait,
	};
	o->op->run(coding_leave(w), &o->of);
}

static void output_start(struct call *c, const struct output_request *q, const struct op *op)
{
	struct err e = ERR_INIT;
	struct output_work *o = arena_alloc(call_arena(c), sizeof(*o), &e);

	if (!o) {
		call_fail(c, &e);
		return;
	}
	o->q = q;
	o->op = op;
	coding_enter(&o->w, c, q->workspace, output_then);
}

static void output_run(struct call *c, const void *request)
{
	output_start(c, request, &exec_output_op);
}

const struct op coding_output_op = {
	.action = "coding.output",
	.doc = "Returns what a shell of a coding session has printed, from an offset.",
	.effect = OP_READ,
	.flags = OP_WAITS,
	.request = &output_table,
	.result = &exec_output_table,
	.run = output_run,
};

static void kill_run(struct call *c, const void *request)
{
	output_start(c, request, &exec_kill_op);
}

const struct op coding_kill_op = {
	.action = "coding.kill",
	.doc = "Kills a shell of a coding session with all that it started.",
	.effect = OP_WRITE,
	.flags = OP_WAITS,
	.request = &kill_table,
	.result = &exec_output_table,
	.run = kill_run,
};

/* ---- coding.secrets ------------------------------------------------------------------------ */

struct secrets_request {
	struct str workspace;
};
static const struct field secrets_fields[] = { CODING_WORKSPACE_ROW(struct secrets_request) };
static const struct field_table secrets_table = FIELD_TABLE(struct secrets_request, secrets_fields);

static const struct field names_fields[] = {
	FIELD(struct secret_names, secrets, .flags = FIELD_REQUIRED,
	      .doc = "Names of the secrets that Bash may give to a program."),
};
static const struct field_table names_table = FIELD_TABLE(struct secret_names, names_fields);

/* Those that this principal may give to a program, as they are written. */
static void secrets_run(struct call *c, const void *request)
{
	const struct guard *g = call_guard(c);
	autofree struct secrets_entry *p = NULL;
	struct secret_names answer = { .secrets = { NULL, 0 } };
	struct err e = ERR_INIT, denied;
	struct str *names;
	size_t n = 0;

	if (g && g->secrets && secrets_list(g->secrets, &p, &n, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	names = arena_array(call_arena(c), n + 1, sizeof(*names), &e);
	if (!names) {
		call_fail(c, &e);
		return;
	}
	answer.secrets.p = names;
	for (size_t i = 0; i < n; i++) {
		if (g->check_secret(g->data, c, p[i].name, false, &denied) == 0)
			names[answer.secrets.n++] = p[i].name;
	}
	call_answer(c, &answer);
}

const struct op coding_secrets_op = {
	.action = "coding.secrets",
	.doc = "Lists the names of secrets that programs of a coding session may be given.",
	.effect = OP_READ,
	.request = &secrets_table,
	.result = &names_table,
	.run = secrets_run,
};
