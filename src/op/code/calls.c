/*
 * What code asks of modules. Each import and each call is a call of the same principal, which takes
 * all stages itself: with its policy, approval, redaction and audit. A failure of one is a result
 * for the code. holt-js names a module and a function by their indexes; which tool that is, is
 * known here.
 */
#include <stdio.h>
#include <stdlib.h>

#include "call/profile.h"
#include "op/code/internal.h"
#include "op/module/module.h"
#include "op/ops.h"

#define MODULE_PREFIX "host:mcp-"

enum {
	IMPORTS_MAX = 64, /* of a run */
	IMPORT_MEMORY = 8 << 20,
	CALL_MEMORY = 3 * UPSTREAM_MESSAGE_MAX,
	TEXT_MAX = 600,
};

struct code_import {
	struct str module;
	struct str *tools;
	size_t n;
};

struct code_inner {
	struct code_inner *next;
	struct code_run *run;
	struct call *call;
	struct arena *arena;
	uint32_t id; /* of a call */
	bool connected; /* of an import: the module was connected for it */
	struct module_call_request q; /* of a result: its request is the arguments */
};

/* ---- calls of the run ---------------------------------------------------------------------- */

static void inner_over(struct code_inner *in)
{
	struct code_calls *k = &in->run->calls;
	struct code_inner **at = &k->first;

	while (*at != in)
		at = &(*at)->next;
	*at = in->next;
	in->call = NULL;
	in->next = k->over;
	k->over = in;
	k->n--;
}

void calls_sweep(struct code_calls *k)
{
	while (k->over) {
		struct code_inner *in = k->over;

		k->over = in->next;
		arena_free(in->arena);
		free(in);
	}
}

bool calls_ask_person(const struct code_calls *k)
{
	const struct code_inner *in = k->first;

	while (in && !(in->call && call_is_waiting(in->call)))
		in = in->next;
	return in;
}

void calls_cancel(struct code_calls *k)
{
	struct code_inner *in = k->first;

	/* A cancelled call may end at once, and stays a member of the list of what is over. */
	while (in) {
		struct code_inner *next = in->next;

		if (in->call)
			call_cancel(in->call);
		in = next;
	}
}

static void inner_start(struct code_run *r, const struct code_inner *from, const struct op *op,
			const struct op_sink *sink, size_t memory);

static int inner_decode_call(void *client, void *request, struct err *e)
{
	const struct code_inner *in = client;

	*(struct module_call_request *)request = in->q;
	return 0;
}

static int inner_decode_result(void *client, void *request, struct err *e)
{
	const struct code_inner *in = client;
	struct json_doc *doc = json_parse(in->q.arguments.text, NULL, e);
	const struct field_table *t = &module_result_request_table;
	int rc = doc ? field_decode(t, json_root(doc), in->arena, request, e) : -1;
	struct module_result_request *q = request;

	if (rc == 0) {
		q->result.p = arena_dup(in->arena, q->result, e);
		rc = q->result.p ? 0 : -1;
	}
	json_free(doc);
	q->sandbox = STR_NONE;
	return rc;
}

static int inner_decode_info(void *client, void *request, struct err *e)
{
	const struct code_inner *in = client;

	*(struct module_info_request *)request =
		(struct module_info_request){ .module = in->q.module };
	return 0;
}

static int inner_decode_test(void *client, void *request, struct err *e)
{
	const struct code_inner *in = client;

	*(struct module_manage_request *)request =
		(struct module_manage_request){ .module = in->q.module, .imports = true };
	return 0;
}

/* ---- import -------------------------------------------------------------------------------- */

static void import_say(struct code_run *r, const struct code_module *m)
{
	struct err e = ERR_INIT;

	if (!r->worker)
		return;
	if (code_say_module(worker_out(r->worker), m, &e) < 0)
		run_failed(r, &e);
	else
		worker_flush(r->worker);
}

static void import_refused(struct code_run *r, const char *why)
{
	import_say(r, &(struct code_module){ .error = str_of(why) });
}

/* Its functions, and for the run the tools behind them: those that can be called. */
static int import_names(struct code_run *r, struct str module, const struct module_info *i,
			struct code_module *ret, struct err *e)
{
	struct arena *a = call_arena(r->call);
	size_t n = i->tools.n;
	struct str *tools = arena_array(a, n + 1, sizeof(*tools), e);
	struct str *functions = arena_array(a, n + 1, sizeof(*functions), e);
	struct code_import *to = &r->calls.imports[r->calls.n_imports];
	char *name = arena_dup(a, module, e);

	if (!tools || !functions || !name)
		return -1;
	n = 0;
	for (size_t k = 0; k < i->tools.n; k++) {
		const struct module_tool_view *t = &i->tools.p[k];

		if (!t->function.n)
			continue;
		tools[n] = (struct str){ arena_dup(a, t->name, e), t->name.n };
		if (!tools[n].p)
			return -1;
		functions[n++] = t->function;
	}
	*to = (struct code_import){ { name, module.n }, tools, n };
	*ret = (struct code_module){
		.index = (uint32_t)r->calls.n_imports++,
		.functions = functions,
		.n_functions = n,
	};
	return 0;
}

static const struct op_sink import_sink, connect_sink;

static void import_on_answer(void *client, const struct field_table *t, const void *result)
{
	struct code_inner *in = client;
	struct code_run *r = in->run;
	const struct module_info *i = result;
	struct code_inner again = { .q = in->q };
	struct code_module m;
	struct err e = ERR_INIT;

	inner_over(in);
	if (!r->worker)
		run_end(r);
	else if (!i->view.has_tools && !in->connected)
		inner_start(r, &again, &module_test_op, &connect_sink, IMPORT_MEMORY);
	else if (import_names(r, in->q.module, i, &m, &e) < 0)
		import_refused(r, e.msg);
	else
		import_say(r, &m);
}

static void import_on_fail(void *client, const struct err *err)
{
	struct code_inner *in = client;
	struct code_run *r = in->run;

	inner_over(in);
	if (r->worker)
		import_refused(r, err->msg);
	else
		run_end(r);
}

/* It is connected: its tools are known now. */
static void connect_on_answer(void *client, const struct field_table *t, const void *result)
{
	struct code_inner *in = client;
	struct code_run *r = in->run;
	struct code_inner again = { .q = in->q, .connected = true };

	inner_over(in);
	if (r->worker)
		inner_start(r, &again, &module_info_op, &import_sink, IMPORT_MEMORY);
	else
		run_end(r);
}

static const struct op_sink import_sink = { .answer = import_on_answer, .fail = import_on_fail };
static const struct op_sink connect_sink = { .answer = connect_on_answer, .fail = import_on_fail };

/* Code of the same principal, which needs no leave. */
static void import_registered(struct code_run *r, struct str name)
{
	struct registered own;
	struct code_module m = { .index = UINT32_MAX /* it has no functions of the hub */ };
	struct err e = ERR_INIT;

	if (registered_one(r->call, name, &own, &e) < 0) {
		import_refused(r, e.msg);
		return;
	}
	m.source = own.source;
	import_say(r, &m);
}

static void import_own(struct code_run *r)
{
	static const struct str function = STR_LIT(MODULE_OWN_RESULT);
	struct code_calls *k = &r->calls;

	k->imports[k->n_imports] = (struct code_import){ STR_LIT(MODULE_OWN), NULL, 1 };
	import_say(r, &(struct code_module){ .index = (uint32_t)k->n_imports++,
					     .functions = &function,
					     .n_functions = 1 });
}

static int import_check(struct code_run *r, struct str server, struct err *e)
{
	struct config_profile p;
	bool any;

	if (profile_of(r->call, &r->q->profiles, &p, &any, e) < 0)
		return -1;
	return any ? profile_check_server(&p, server, e) : 0;
}

int calls_import(struct code_run *r, const struct code_frame *f, struct err *e)
{
	struct code_calls *k = &r->calls;
	struct code_inner in = { .q = { .module = f->name } };
	struct err why;
	char text[TEXT_MAX];

	if (!k->imports)
		k->imports = arena_array(call_arena(r->call), IMPORTS_MAX, sizeof(*k->imports), e);
	if (!k->imports)
		return -1;
	if (k->n > CODE_TOGETHER_MAX)
		return err_set(e, ERR_GUEST, "the JavaScript process asks for too much at once");
	if (k->asked == IMPORTS_MAX) {
		import_refused(r, "too many modules are imported");
		return 0;
	}
	k->asked++;
	if (module_is_registered(f->name)) {
		import_registered(r, f->name);
		return 0;
	}
	if (!str_starts(f->name, MODULE_PREFIX)) {
		snprintf(text, sizeof(text),
			 "there is no module \"%.*s\"; modules are called host:holt, " MODULE_PREFIX
			 "NAME and " MODULE_REGISTERED
			 "NAME, list_modules shows which there are, and "
			 "nothing of Node.js is here",
			 STR_CUT(f->name, CODE_NAME_MAX));
		import_refused(r, text);
		return 0;
	}
	if (str_is(f->name, MODULE_PREFIX MODULE_OWN)) {
		import_own(r);
		return 0;
	}
	in.q.module.p += strlen(MODULE_PREFIX);
	in.q.module.n -= strlen(MODULE_PREFIX);
	if (import_check(r, in.q.module, &why) < 0)
		import_refused(r, why.msg);
	else
		inner_start(r, &in, &module_info_op, &import_sink, IMPORT_MEMORY);
	return 0;
}

/* ---- calls --------------------------------------------------------------------------------- */

static void call_say(struct code_run *r, uint32_t id, struct str result, const char *why)
{
	struct buf *to;
	struct err e = ERR_INIT, failed = ERR_INIT;

	if (!r->worker)
		return;
	to = worker_out(r->worker);
	if (code_say_result(to, id, result, why ? str_of(why) : STR_NONE, &e) < 0 &&
	    code_say_result(to, id, STR_NONE, str_of(e.msg), &failed) < 0)
		run_failed(r, &failed);
	else
		worker_flush(r->worker);
}

static void call_on_answer(void *client, const struct field_table *t, const void *result)
{
	struct code_inner *in = client;
	struct code_run *r = in->run;
	const struct module_result *m = result;

	inner_over(in);
	if (r->worker)
		call_say(r, in->id, m->result.text, NULL);
	else
		run_end(r);
}

static void result_on_answer(void *client, const struct field_table *t, const void *result)
{
	struct code_inner *in = client;
	struct code_run *r = in->run;
	autobuf struct buf b = BUF_INIT(CALL_MEMORY);
	struct err e = ERR_INIT;

	inner_over(in);
	if (!r->worker)
		run_end(r);
	else if (module_result_write(&b, result, &e) < 0)
		call_say(r, in->id, STR_NONE, e.msg);
	else
		call_say(r, in->id, buf_str(&b), NULL);
}

static void call_on_fail(void *client, const struct err *err)
{
	struct code_inner *in = client;
	struct code_run *r = in->run;
	char why[TEXT_MAX];

	inner_over(in);
	if (!r->worker) {
		run_end(r);
		return;
	}
	snprintf(why, sizeof(why), "%s: %s", err_info(err->code)->name, err->msg);
	call_say(r, in->id, STR_NONE, why);
}

/* A module asks the client of the run, whose wall clock stands still meanwhile. */
static int call_on_question(void *client, struct call_question *q, struct err *e)
{
	const struct code_inner *in = client;

	return call_ask_for(in->run->call, q, e);
}

static const struct op_sink call_sink = { .answer = call_on_answer,
					  .fail = call_on_fail,
					  .question = call_on_question };
static const struct op_sink result_sink = { .answer = result_on_answer, .fail = call_on_fail };

int calls_call(struct code_run *r, const struct code_frame *f, struct err *e)
{
	struct code_calls *k = &r->calls;
	const struct code_import *m = f->module < k->n_imports ? &k->imports[f->module] : NULL;
	struct code_inner in = { .id = f->id, .q = { .arguments = { f->json } } };

	if (!m || f->function >= m->n)
		return err_set(e, ERR_GUEST, "the JavaScript process calls what it did not import");
	if (k->n >= CODE_TOGETHER_MAX || k->made >= r->q->max_calls)
		return err_set(e, ERR_GUEST, "the JavaScript process calls more than it may");
	k->made++;
	in.q.module = m->module;
	in.q.profiles = r->q->profiles;
	if (m->tools)
		in.q.tool = m->tools[f->function];
	inner_start(r, &in, m->tools ? &module_call_op : &module_result_op,
		    m->tools ? &call_sink : &result_sink, CALL_MEMORY);
	return 0;
}

static int inner_keep(struct code_inner *in, struct err *e)
{
	struct str *texts[] = { &in->q.module, &in->q.tool, &in->q.arguments.text };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (!texts[i]->p)
			continue;
		texts[i]->p = arena_dup(in->arena, *texts[i], e);
		if (!texts[i]->p)
			return -1;
	}
	return 0;
}

/* A call that can't begin fails like one that had begun. */
static void inner_start(struct code_run *r, const struct code_inner *from, const struct op *op,
			const struct op_sink *sink, size_t memory)
{
	struct code_inner *in = malloc(sizeof(*in));
	struct op_start start = {
		.op = op,
		.decode = op == &module_call_op	  ? inner_decode_call
			: op == &module_result_op ? inner_decode_result
			: op == &module_test_op	  ? inner_decode_test
						  : inner_decode_info,
		.sink = sink,
		.client = in,
		.profiles = r->q->profiles,
	};
	struct err e = ERR_INIT;

	if (!in) {
		err_set(&e, ERR_LIMIT, "out of memory");
		run_failed(r, &e);
		return;
	}
	*in = *from;
	in->run = r;
	in->call = NULL;
	in->next = r->calls.first;
	r->calls.first = in;
	r->calls.n++;
	in->arena = start.arena = arena_new(memory);
	if (!in->arena)
		err_set(&e, ERR_LIMIT, "out of memory");
	else if (inner_keep(in, &e) == 0)
		in->call = call_inner(r->call, &start, &e);
	if (in->call && r->q->wall_ms > r->wall_ms)
		call_set_timeout(in->call, r->q->wall_ms - r->wall_ms);
	if (in->call)
		op_start(in->call);
	else
		sink->fail(in, &e);
}
