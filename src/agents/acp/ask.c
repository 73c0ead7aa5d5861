/* Requests of the agent. Each has one answer: the owner's, or an error from here. */
#include "agents/acp/internal.h"

enum {
	ARENA_MAX = 1 << 20,
	ARGS_MAX = 1024,
	OPTION_MAX = 4096,
	ASKS_BYTES_MAX = 2 * ACP_MESSAGE_MAX
};

#define OPTIONAL .flags = FIELD_NULLABLE
#define PATH .min = 1, .max = ACP_PATH_MAX

/* ---- what they take ------------------------------------------------------------------------- */

static const struct field option_fields[] = {
	FIELD_NAMED(struct acp_option, id, "optionId", .flags = FIELD_REQUIRED, .min = 1,
		    .max = ACP_ID_MAX, .doc = "Which it is."),
	FIELD(struct acp_option, name, .flags = FIELD_REQUIRED, .max = OPTION_MAX,
	      .doc = "What a person reads."),
	FIELD_NAMED(struct acp_option, kind_name, "kind", .flags = FIELD_REQUIRED, .max = 64,
		    .doc = "allow_once and so on."),
};
static const struct field_table option_table = FIELD_TABLE(struct acp_option, option_fields,
							   .open = true);

static const struct field pair_fields[] = {
	FIELD(struct acp_pair, name, .flags = FIELD_REQUIRED, .min = 1, .max = ACP_ID_MAX,
	      .doc = "Of a variable."),
	FIELD(struct acp_pair, value, .flags = FIELD_REQUIRED, .doc = "Its value."),
};
static const struct field_table pair_table = FIELD_TABLE(struct acp_pair, pair_fields,
							 .open = true);

static const struct field permission_fields[] = {
	FIELD_NAMED(struct acp_ask, permission.title, "title", OPTIONAL,
		    .doc = "What is asked; version 2."),
	FIELD_NAMED(struct acp_ask, permission.description, "description", OPTIONAL,
		    .doc = "More of it; version 2."),
	FIELD_NAMED_OBJECTS(struct acp_ask, permission.options, "options", option_table,
			    .flags = FIELD_REQUIRED, .min = 1, .max = ACP_OPTIONS_MAX,
			    .doc = "The possible answers."),
};
static const struct field read_fields[] = {
	FIELD_NAMED(struct acp_ask, read.path, "path", .flags = FIELD_REQUIRED, PATH,
		    .doc = "Of the file."),
	FIELD_NAMED(struct acp_ask, read.line, "line", OPTIONAL, .doc = "The first line."),
	FIELD_NAMED(struct acp_ask, read.limit, "limit", OPTIONAL, .doc = "How many lines."),
};
static const struct field write_fields[] = {
	FIELD_NAMED(struct acp_ask, write.path, "path", .flags = FIELD_REQUIRED, PATH,
		    .doc = "Of the file."),
	FIELD_NAMED(struct acp_ask, write.content, "content",
		    .flags = FIELD_REQUIRED | FIELD_NUL_OK, .doc = "All of it."),
};
static const struct field terminal_fields[] = {
	FIELD_NAMED(struct acp_ask, terminal.command, "command", .flags = FIELD_REQUIRED, .min = 1,
		    .doc = "A program, or a line for the shell."),
	FIELD_NAMED(struct acp_ask, terminal.args, "args", OPTIONAL, .max = ARGS_MAX,
		    .doc = "Its arguments."),
	FIELD_NAMED_OBJECTS(struct acp_ask, terminal.env, "env", pair_table, OPTIONAL,
			    .max = ARGS_MAX, .doc = "More variables."),
	FIELD_NAMED(struct acp_ask, terminal.cwd, "cwd", OPTIONAL, PATH, .doc = "Where it runs."),
	FIELD_NAMED(struct acp_ask, terminal.output_limit, "outputByteLimit", OPTIONAL,
		    .has = FIELD_HAS(struct acp_ask, terminal.has_output_limit),
		    .doc = "Bytes of output that are kept."),
};
static const struct field id_fields[] = {
	FIELD_NAMED(struct acp_ask, terminal_id, "terminalId", .flags = FIELD_REQUIRED, .min = 1,
		    .max = ACP_ID_MAX, .doc = "Which terminal."),
};

#define TABLE(rows) FIELD_TABLE(struct acp_ask, rows, .open = true)

static const struct ask_row {
	const char *method;
	struct field_table table;
	bool files, terminals; /* what the owner must have said */
} rows[ACP_ASKS] = {
	[ACP_ASK_PERMISSION] = { "session/request_permission", TABLE(permission_fields) },
	[ACP_ASK_READ] = { "fs/read_text_file", TABLE(read_fields), .files = true },
	[ACP_ASK_WRITE] = { "fs/write_text_file", TABLE(write_fields), .files = true },
	[ACP_ASK_TERMINAL] = { "terminal/create", TABLE(terminal_fields), .terminals = true },
	[ACP_ASK_OUTPUT] = { "terminal/output", TABLE(id_fields), .terminals = true },
	[ACP_ASK_EXIT] = { "terminal/wait_for_exit", TABLE(id_fields), .terminals = true },
	[ACP_ASK_KILL] = { "terminal/kill", TABLE(id_fields), .terminals = true },
	[ACP_ASK_RELEASE] = { "terminal/release", TABLE(id_fields), .terminals = true },
};

/* ---- one of them ---------------------------------------------------------------------------- */

static void ask_free(struct ask *q)
{
	*q->at = q->next;
	if (q->next)
		q->next->at = q->at;
	q->of->asks_n--;
	q->of->asks_bytes -= q->bytes;
	arena_fini(&q->arena);
	json_free(q->doc);
	free(q);
}

static struct ask *ask_new(struct acp *a, const struct rpc_id *id)
{
	struct ask *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->of = a;
	q->id = *id;
	q->next = a->asks;
	q->at = &a->asks;
	if (q->next)
		q->next->at = &q->next;
	a->asks = q;
	a->asks_n++;
	q->bytes = a->line_n;
	a->asks_bytes += q->bytes;
	arena_init(&q->arena, ARENA_MAX);
	return q;
}

static struct ask *ask_find(const struct acp *a, const struct rpc_id *id)
{
	struct ask *q = a->asks;

	while (q && !str_eq(rpc_id_str(&q->id), rpc_id_str(id)))
		q = q->next;
	return q;
}

/* Some agents offer first what lasts; people take the first. */
static void once_first(struct acp_option *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct acp_option once = p[i];

		if (once.kind != ACP_ALLOW_ONCE)
			continue;
		memmove(p + 1, p, i * sizeof(*p));
		p[0] = once;
		return;
	}
}

static void read_options(struct acp_ask *q)
{
	static const char *const names[] = { "allow_once", "allow_always", "reject_once",
					     "reject_always" };

	for (size_t i = 0; i < q->permission.options.n; i++) {
		struct acp_option *o = &q->permission.options.p[i];

		o->kind = ACP_OPTION_OTHER;
		for (size_t k = 0; k < ARRAY_LEN(names); k++) {
			if (str_is(o->kind_name, names[k]))
				o->kind = (enum acp_option_kind)k;
		}
	}
	once_first(q->permission.options.p, q->permission.options.n);
}

/* Version 1 has the tool call beside, version 2 as a subject. */
static void read_permission(struct acp_ask *q, const struct json_val *params)
{
	const struct json_val *subject = json_get(params, "subject");
	const struct json_val *call = json_get(subject ?: params, "toolCall");

	q->permission.tool_call = json_type(call) == JSON_OBJECT ? call : NULL;
	q->permission.tool_call_id = json_str(json_get(call ?: subject, "toolCallId"));
	if (q->permission.tool_call_id.n > ACP_ID_MAX)
		q->permission.tool_call_id = STR_NONE;
	if (!q->permission.title.n)
		q->permission.title = json_str(json_get(call, "title"));
	q->permission.command = json_str(json_get(subject, "command"));
	read_options(q);
}

static int ask_read(struct ask *q, enum acp_ask_kind kind, const struct json_val *params,
		    struct rpc_fault *f)
{
	struct err e;

	if (json_type(params) != JSON_OBJECT ||
	    !str_eq(json_str(json_get(params, "sessionId")), acp_session_id(q->of)))
		return rpc_fault_set(f, RPC_INVALID_PARAMS, "sessionId is not that of the session");
	if (field_decode(&rows[kind].table, params, &q->arena, &q->p, &e) < 0)
		return rpc_fault_set(f, RPC_INVALID_PARAMS, "%s", e.msg);
	q->p.kind = kind;
	if (kind == ACP_ASK_PERMISSION)
		read_permission(&q->p, params);
	if ((kind == ACP_ASK_READ && q->p.read.path.p[0] != '/') ||
	    (kind == ACP_ASK_WRITE && q->p.write.path.p[0] != '/') ||
	    (kind == ACP_ASK_TERMINAL && q->p.terminal.cwd.p && q->p.terminal.cwd.p[0] != '/'))
		return rpc_fault_set(f, RPC_INVALID_PARAMS, "a path is absolute");
	return 0;
}

static bool ask_kind(const struct acp *a, struct str method, enum acp_ask_kind *ret)
{
	for (size_t i = 0; i < ACP_ASKS; i++) {
		if (!str_is(method, rows[i].method))
			continue;
		*ret = (enum acp_ask_kind)i;
		return (a->o.files || !rows[i].files) && (a->o.terminals || !rows[i].terminals);
	}
	return false;
}

void acp_ask_take(struct acp *a, const struct rpc_msg *m, struct json_doc **doc)
{
	enum acp_ask_kind kind;
	struct ask *q = NULL;
	struct rpc_fault f;

	if (!ask_kind(a, m->method, &kind))
		rpc_fault_set(&f, RPC_METHOD_NOT_FOUND, "there is no such method here");
	else if (!acp_is_open(a))
		rpc_fault_set(&f, RPC_INVALID_REQUEST, "there is no session yet");
	else if (ask_find(a, &m->id))
		rpc_fault_set(&f, RPC_INVALID_REQUEST, "a request of this id is open");
	else if (a->asks_n == ACP_ASKS_MAX || a->asks_bytes + a->line_n > ASKS_BYTES_MAX ||
		 !(q = ask_new(a, &m->id)))
		rpc_fault_set(&f, RPC_INTERNAL_ERROR,
			      "more than %d requests, or %d MiB of them, are open", ACP_ASKS_MAX,
			      ASKS_BYTES_MAX >> 20);
	else if (ask_read(q, kind, m->params, &f) < 0)
		ask_free(q);
	else {
		q->doc = take_ptr(*doc);
		/* the turn ends: nobody is asked any more */
		if (kind == ACP_ASK_PERMISSION && a->state == ACP_CANCELLING)
			acp_deny(&q->p);
		else
			a->o.handler->asked(a->o.owner, &q->p);
		return;
	}
	a->strays++;
	acp_send_fault(a, &m->id, &f);
}

/* ---- answers -------------------------------------------------------------------------------- */

static struct ask *ask_of(struct acp_ask *q)
{
	return (struct ask *)q;
}

static void answer_begin(struct acp_out *m, struct acp_ask *q)
{
	acp_out_result(m, ask_of(q)->of, &ask_of(q)->id);
	json_write_object(&m->w);
}

/* An answer that is too large for a message becomes an error. */
static void answer_end(struct acp_out *m, struct acp_ask *q)
{
	struct ask *k = ask_of(q);
	struct rpc_fault f;
	struct err e;

	json_write_object_end(&m->w);
	if (acp_out_end(m, &e) < 0) {
		rpc_fault_set(&f, RPC_INTERNAL_ERROR, "%s", e.msg);
		acp_send_fault(k->of, &k->id, &f);
	}
	ask_free(k);
}

static void answer_outcome(struct acp_ask *q, struct str option_id)
{
	struct acp_out m;

	answer_begin(&m, q);
	json_put_object(&m.w, "outcome");
	json_put_text(&m.w, "outcome", option_id.p ? "selected" : "cancelled");
	if (option_id.p)
		json_put_str(&m.w, "optionId", option_id);
	json_write_object_end(&m.w);
	answer_end(&m, q);
}

int acp_permit(struct acp_ask *q, struct str option_id, struct err *e)
{
	for (size_t i = 0; i < q->permission.options.n; i++) {
		if (!str_eq(q->permission.options.p[i].id, option_id))
			continue;
		answer_outcome(q, q->permission.options.p[i].id);
		return 0;
	}
	return err_set(e, ERR_INVALID, "the agent does not offer this option");
}

void acp_deny(struct acp_ask *q)
{
	answer_outcome(q, STR_NONE);
}

void acp_answer_content(struct acp_ask *q, struct str text)
{
	struct acp_out m;

	answer_begin(&m, q);
	json_put_str(&m.w, "content", text);
	answer_end(&m, q);
}

void acp_answer_done(struct acp_ask *q)
{
	struct acp_out m;

	answer_begin(&m, q);
	answer_end(&m, q);
}

void acp_answer_terminal(struct acp_ask *q, struct str terminal_id)
{
	struct acp_out m;

	answer_begin(&m, q);
	json_put_str(&m.w, "terminalId", terminal_id);
	answer_end(&m, q);
}

static void write_exit(struct json_writer *w, const struct acp_exit *x)
{
	json_write_name(w, "exitCode");
	if (x->has_code)
		json_write_uint(w, x->code);
	else
		json_write_null(w);
	json_write_name(w, "signal");
	if (x->signal.p)
		json_write_str(w, x->signal);
	else
		json_write_null(w);
}

void acp_answer_output(struct acp_ask *q, struct str output, bool truncated,
		       const struct acp_exit *x)
{
	struct acp_out m;

	answer_begin(&m, q);
	json_put_str(&m.w, "output", output);
	json_put_bool(&m.w, "truncated", truncated);
	if (x->over) {
		json_put_object(&m.w, "exitStatus");
		write_exit(&m.w, x);
		json_write_object_end(&m.w);
	}
	answer_end(&m, q);
}

void acp_answer_exit(struct acp_ask *q, const struct acp_exit *x)
{
	struct acp_out m;

	answer_begin(&m, q);
	write_exit(&m.w, x);
	answer_end(&m, q);
}

void acp_refuse(struct acp_ask *q, const struct err *why)
{
	struct ask *k = ask_of(q);
	struct rpc_fault f;

	rpc_fault_set(&f,
		      why->code == ERR_PATH_NOT_FOUND ? ACP_NO_RESOURCE
						      : err_info(why->code)->jsonrpc,
		      "%s", why->msg);
	acp_send_fault(k->of, &k->id, &f);
	ask_free(k);
}

/* ---- the end of many ------------------------------------------------------------------------ */

/* The owner forgets it first: it may not answer any more. */
static void ask_withdraw(struct ask *q, const struct rpc_fault *f)
{
	struct acp *a = q->of;

	q->leaving = true;
	a->o.handler->withdrawn(a->o.owner, &q->p);
	if (a->freed)
		return;
	if (!f) {
		acp_deny(&q->p);
		return;
	}
	acp_send_fault(a, &q->id, f);
	ask_free(q);
}

void acp_ask_cancelled(struct acp *a, const struct rpc_id *id)
{
	enum { REQUEST_CANCELLED = -32800 };
	struct ask *q = ask_find(a, id);
	struct rpc_fault f;

	if (!q || q->leaving) {
		a->strays++;
		return;
	}
	rpc_fault_set(&f, REQUEST_CANCELLED, "the request was cancelled");
	ask_withdraw(q, &f);
}

void acp_ask_withdraw(struct acp *a, bool all)
{
	struct rpc_fault f;
	struct ask *q = a->asks;

	rpc_fault_set(&f, RPC_INTERNAL_ERROR, "the session is over");
	while (q && !a->freed) {
		if (q->leaving || (q->p.kind != ACP_ASK_PERMISSION && !all)) {
			q = q->next;
			continue;
		}
		ask_withdraw(q, q->p.kind == ACP_ASK_PERMISSION ? NULL : &f);
		q = a->asks;
	}
}

void acp_ask_drop(struct acp *a)
{
	while (a->asks)
		ask_free(a->asks);
}
