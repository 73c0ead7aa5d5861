/*
 * tools/call as an operation. A call that takes long becomes a task if its tool and its client
 * support that: the client gets the answer to its request, and comes back for the result. Clients
 * of 2025-11-25 choose themselves which calls become tasks.
 */
#include <stdlib.h>

#include "base/log.h"
#include "door/mcp/internal.h"
#include "op/module/module.h"

enum { TASK_AFTER_MS = 3000 };

/* Two copies of what an exec printed, with every byte escaped. */
enum { TEXT_MAX = 32 << 20, NOTE_MAX = 4096, META_MAX = 16 << 20, QUESTION_MAX = 64 << 10 };

static void timer_closed(uv_handle_t *h)
{
	free(h->data);
}

void run_free(struct mcp_run *r)
{
	run_asking_free(r);
	buf_fini(&r->said.content);
	buf_fini(&r->said.structured);
	buf_fini(&r->said.facts);
	if (r->timing)
		uv_close((uv_handle_t *)&r->timer, timer_closed);
	else
		free(r);
}

void run_finish(struct mcp_run *r, const struct mcp_result *result)
{
	if (!r->mc) {
		run_keep(r, result);
		return;
	}
	mcp_call_done(r->mc, result);
	run_free(r);
}

/* The result's _meta, for programs: which record of the audit is the call's, the receipt, and what
 * the tool's text does not tell. Without memory there is none. */
static void put_meta(struct mcp_run *r, struct buf *to)
{
	struct json_writer w = json_writer(to);
	struct str facts = buf_str(&r->said.facts);
	struct err e;

	if (!*call_audit_id(r->call) && !facts.n)
		return;
	json_write_object(&w);
	if (*call_audit_id(r->call)) {
		json_write_name(&w, TOOL_AUDIT_ID);
		json_write_text(&w, call_audit_id(r->call));
	}
	if (call_receipt(r->call).n) {
		json_write_name(&w, TOOL_RECEIPT);
		json_write_raw(&w, call_receipt(r->call));
	}
	if (facts.n) {
		json_write_name(&w, TOOL_FACTS);
		json_write_raw(&w, facts);
	}
	json_write_object_end(&w);
	if (json_write_done(&w, &e) < 0)
		to->n = 0;
}

/* Without memory nobody is asked. */
static void on_ask(void *client, struct str id, struct str text, struct str schema)
{
	struct mcp_run *r = client;
	struct arena *a = mcp_call_arena(r->mc);
	autobuf struct buf b = BUF_INIT(QUESTION_MAX);
	struct json_writer w = json_writer(&b);
	struct err e;

	json_write_object(&w);
	json_write_key(&w, "message");
	json_write_str(&w, text);
	json_write_key(&w, "requestedSchema");
	json_write_raw(&w, schema);
	json_write_object_end(&w);
	if (json_write_done(&w, &e) < 0)
		return;
	r->form = arena_dup(a, buf_str(&b), &e);
	r->question = r->form ? arena_dup(a, id, &e) : NULL;
}

/* Whether the client's person is asked now: then the call begins again with the answer. */
static bool run_asks(struct mcp_run *r)
{
	struct mcp_ask ask = { r->question, MCP_ASK_FORM, STR_NONE };
	struct err e;

	if (!r->question || !r->mc)
		return false;
	ask.params = str_of(r->form);
	mcp_call_on_cancel(r->mc, NULL, NULL);
	if (mcp_call_ask(r->mc, &ask, 1, str_of(r->question), &e) == 0)
		return true;
	log_debug("mcp: the client is not asked: %s", e.msg);
	return false;
}

/* The person's answer to the last question of this call. Dismissing it is no answer. */
static int read_said(struct mcp_call *mc, struct op_start *s, struct err *e)
{
	struct str id = mcp_call_state(mc);
	char *key = id.n ? arena_dup(s->arena, id, e) : NULL;
	const struct json_val *answer = key ? mcp_call_answer(mc, key) : NULL;
	struct str action = json_str(json_get(answer, "action"));

	s->can_ask = mcp_call_can_ask(mc, MCP_ASK_FORM);
	if (!id.n)
		return 0;
	if (!key)
		return -1;
	s->asked = str_of(key);
	s->said_values = json_get(answer, "content");
	if (str_is(action, "accept"))
		s->said = OP_SAID_YES;
	else if (str_is(action, "decline"))
		s->said = OP_SAID_NO;
	return 0;
}

static void on_fail(void *client, const struct err *e)
{
	struct mcp_run *r = client;
	autobuf struct buf meta = BUF_INIT(META_MAX);
	autofree char *text = NULL;
	struct str detail = call_about(r->call)->detail;
	struct mcp_content content[2] = { { .type = MCP_TEXT }, { .type = MCP_TEXT } };

	if (run_asks(r)) {
		run_free(r);
		return;
	}
	if (*call_audit_id(r->call) || detail.n || !r->mc)
		text = mcp_error_text(e);
	if (text) {
		content[0].text = str_of(text);
		content[1].text = detail;
		put_meta(r, &meta);
		run_finish(r, &(struct mcp_result){ .content = content,
						    .content_n = detail.n ? 2 : 1,
						    .is_error = true,
						    .meta = buf_str(&meta) });
		return;
	}
	if (r->mc)
		mcp_call_fail(r->mc, e);
	run_free(r);
}

static void put_content(struct json_writer *w, struct str text)
{
	json_write_object(w);
	json_write_key(w, "type");
	json_write_text(w, "text");
	json_write_key(w, "text");
	json_write_str(w, text);
	json_write_object_end(w);
}

static int put_json(struct buf *to, const struct field_table *t, const void *from, struct err *e)
{
	struct json_writer w = json_writer(to);

	field_encode(t, from, &w);
	return json_write_done(&w, e);
}

/* The text, and what goes beside it. */
static int put_said(struct mcp_run *r, const struct field_table *t, const void *result,
		    struct err *e)
{
	const struct tool *tool = r->tool;
	bool is_json = !tool->says && !tool->text, is_data = tool_is_data(tool);
	autobuf struct buf text = BUF_INIT(TEXT_MAX);

	if ((is_json ? put_json(&text, t, result, e)
		     : tool_text(tool, call_request(r->call), result, &text, e)) < 0)
		return -1;
	json_write_array(&r->said.w);
	/* The result is redacted already, and base64 of it may look like anything. */
	put_content(&r->said.w,
		    tool->says && text.n ? call_redact(r->call, buf_str(&text)) : buf_str(&text));
	if (is_json && !is_data) {
		r->said.structured = text;
		text = BUF_INIT(0);
	} else if (!is_data && put_json(&r->said.structured, t, result, e) < 0) {
		return -1;
	}
	return tool->facts ? put_json(&r->said.facts, tool->facts, result, e) : 0;
}

static void run_say(struct mcp_run *r, const struct field_table *t, const void *result)
{
	r->said.content = BUF_INIT(2 * TEXT_MAX);
	r->said.structured = r->said.facts = BUF_INIT(TEXT_MAX);
	r->said.w = json_writer(&r->said.content);
	r->said.done = true;
	r->said.failed.code = ERR_NONE;
	if (put_said(r, r->tool->output ? r->tool->output : t, result, &r->said.failed) == 0)
		r->said.failed.code = ERR_NONE;
}

/* Where it says more than its result does, that is redacted by the loop. */
static void on_write(void *client, const struct field_table *t, const void *result)
{
	struct mcp_run *r = client;

	if (r->tool != &gateway_tool && !r->tool->says)
		run_say(r, t, result);
}

/* For the tool of a module. */
static void run_answer_proxied(struct mcp_run *r, const void *result)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	autofree char *content = NULL, *structured = NULL;
	autobuf struct buf meta = BUF_INIT(META_MAX);
	struct mcp_result to = { .content_n = 0 };
	struct err e = ERR_INIT;
	const struct module_call_request *q = call_request(r->call);

	if (gateway_answer(q->module, r->mc ? mcp_call_tool(r->mc) : NULL, result, &doc, &content,
			   &structured, &to, &e) < 0) {
		call_say_done(r->call, NULL, NULL, &e);
		on_fail(r, &e);
		return;
	}
	put_meta(r, &meta);
	to.meta = buf_str(&meta);
	run_finish(r, &to);
}

/* The note, if there is one, behind the text. */
static int put_note(struct mcp_run *r, const void *result, struct err *e)
{
	autobuf struct buf note = BUF_INIT(NOTE_MAX);

	if (r->said.failed.code != ERR_NONE) {
		*e = r->said.failed;
		return -1;
	}
	if (r->tool->note && r->tool->note(result, &note, e) < 0)
		return -1;
	if (note.n)
		put_content(&r->said.w, call_redact(r->call, buf_str(&note)));
	json_write_array_end(&r->said.w);
	return json_write_done(&r->said.w, e);
}

static void on_answer(void *asker, const struct field_table *t, const void *result)
{
	struct mcp_run *r = asker;
	autobuf struct buf meta = BUF_INIT(META_MAX);
	struct err e;

	if (r->tool == &gateway_tool) {
		run_answer_proxied(r, result);
		return;
	}
	if (!r->said.done)
		run_say(r, t, result);
	if (put_note(r, result, &e) < 0) {
		call_say_done(r->call, r->tool->output ? r->tool->output : t, result, &e);
		on_fail(asker, &e);
		return;
	}
	put_meta(r, &meta);
	run_finish(r, &(struct mcp_result){ .content_json = buf_str(&r->said.content),
					    .structured = buf_str(&r->said.structured),
					    .is_error = r->tool->failed && r->tool->failed(result),
					    .meta = buf_str(&meta) });
}

static void on_progress(void *client, double progress, double total, const char *message)
{
	struct mcp_run *r = client;

	if (!r->mc)
		return;
	mcp_call_progress(r->mc, progress, total, message);
	mcp_call_task_status(r->mc, message);
}

static void on_log(void *client, unsigned level, const char *logger, struct str data)
{
	struct mcp_run *r = client;

	if (r->mc)
		mcp_call_log(r->mc, (enum mcp_level)level, logger, data);
}

struct own_texts {
	struct arena *arena;
	struct err err;
};

static struct str own_text(void *data, const struct field *row, struct str s)
{
	struct own_texts *o = data;

	if (s.p)
		s.p = arena_dup(o->arena, s, &o->err);
	return s;
}

/* A request that was decoded borrows from the message, which such a call outlives. */
static int own_request(struct mcp_run *r, void *request, struct err *e)
{
	const struct field_table *t = r->tool->op->request;
	struct own_texts o = { run_asking_arena(r), ERR_INIT };
	const void *copy = field_copy(t, request, o.arena, own_text, &o, e);

	if (copy && o.err.code)
		*e = o.err;
	if (!copy || o.err.code)
		return -1;
	memcpy(request, copy, t->size);
	return 0;
}

static int on_decode(void *client, void *request, struct err *e)
{
	struct mcp_run *r = client;
	const struct op_shape *shape;

	if (r->tool == &gateway_tool)
		return gateway_decode(r->mc, run_asking_arena(r), request, e);
	shape = door_shape(r->door, r->tool);
	op_shape_defaults(shape, r->tool->op, request);
	if (field_decode_members(&shape->places[OP_BODY], mcp_call_args(r->mc),
				 mcp_call_arena(r->mc), request, e) < 0) {
		op_members_meant(r->tool->members, &shape->places[OP_BODY], e);
		return -1;
	}
	return r->asking ? own_request(r, request, e) : 0;
}

static const struct op_sink quiet = {
	.answer = on_answer, .write = on_write, .fail = on_fail, .ask = on_ask
};
static const struct op_sink watching = { .answer = on_answer,
					 .write = on_write,
					 .fail = on_fail,
					 .progress = on_progress,
					 .ask = on_ask };
static const struct op_sink asking = { .answer = on_answer,
				       .write = on_write,
				       .fail = on_fail,
				       .progress = on_progress,
				       .log = on_log,
				       .ask = on_ask,
				       .question = run_on_question,
				       .unask = run_on_unask };

static void on_cancel(struct mcp_call *mc, void *data)
{
	struct mcp_run *r = data;

	call_cancel(r->call);
}

/* Where it can't be one, it stays a call. */
static void on_timer(uv_timer_t *t)
{
	struct mcp_run *r = t->data;
	struct err e;

	if (r->mc && mcp_call_to_task(r->mc, NULL, &e) < 0)
		log_debug("mcp: no task: %s", e.msg);
}

static void start_timer(struct mcp_run *r)
{
	if (!mcp_call_can_task(r->mc) || mcp_call_is_task(r->mc))
		return;
	if (!r->timing && uv_timer_init(hub_loop(ops_hub(r->door->ops)), &r->timer) < 0)
		return;
	r->timing = true;
	r->timer.data = r;
	uv_timer_start(&r->timer, on_timer, TASK_AFTER_MS, 0);
}

void run_attach(struct mcp_run *r, struct mcp_call *mc)
{
	r->mc = mc;
	start_timer(r);
	mcp_call_on_cancel(mc, on_cancel, r);
}

static const struct op *call_op_of(const struct tool *tool, const struct mcp_call *mc)
{
	const struct json_val *v = tool->other ? json_get(mcp_call_args(mc), tool->other_if) : NULL;
	bool other = tool->other_is ? str_is(json_str(v), tool->other_is) : json_bool(v);

	return other ? tool->other : tool->op;
}

const void *door_session(const struct mcp_door *d, const struct mcp_call *mc)
{
	const struct mcp_session *s = mcp_call_session(mc);

	return s && mcp_session_road(s) != MCP_ROAD_POST ? (const void *)s : d;
}

unsigned door_log_level(const struct mcp_call *mc)
{
	int least = mcp_call_log_level(mc);

	return least < 0 ? UINT_MAX : (unsigned)least;
}

/* A request of its own belongs to none. */
static unsigned door_conversation(const struct mcp_call *mc)
{
	const struct mcp_session *s = mcp_call_session(mc);

	return s && mcp_session_road(s) != MCP_ROAD_POST ? mcp_session_number(s) : 0;
}

static struct mcp_run *run_new(struct mcp_door *d, struct mcp_call *mc, struct err *e)
{
	const struct tool *tool = mcp_call_tool(mc)->row;
	struct mcp_run *r = calloc(1, sizeof(*r));

	if (!r) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	*r = (struct mcp_run){ .door = d, .tool = tool, .mc = mc };
	if (tool->asks && run_asking_init(r, e) < 0) {
		run_free(r);
		return NULL;
	}
	return r;
}

/* What the call needs longer than mc is there. */
static int start_own(struct mcp_run *r, struct op_start *s, struct err *e)
{
	if (!r->asking)
		return 0;
	s->arena = run_asking_arena(r);
	s->sink = &asking;
	s->label = arena_dup(s->arena, str_of(s->label), e);
	return s->label ? 0 : -1;
}

static int run_begin(struct mcp_run *r, struct mcp_call *mc, struct err *e)
{
	struct mcp_door *d = r->door;
	bool watched = mcp_call_wants_progress(mc) || mcp_call_can_task(mc);
	struct op_start start = {
		.who = mcp_call_principal(mc),
		.agent = true,
		.conversation = door_conversation(mc),
		.session = door_session(d, mc),
		.op = call_op_of(r->tool, mc),
		.decode = on_decode,
		.sink = watched ? &watching : &quiet,
		.client = r,
		.arena = mcp_call_arena(mc),
		.label = mcp_call_label(mc),
		.log_level = door_log_level(mc),
	};

	if (start_own(r, &start, e) < 0 || read_said(mc, &start, e) < 0 ||
	    profile_of_call(d, mc, start.arena, &start.profiles, e) < 0)
		return -1;
	r->call = op_new(d->ops, &start, e);
	return r->call ? 0 : -1;
}

void door_call(void *owner, struct mcp_call *mc)
{
	struct mcp_door *d = owner;
	struct mcp_run *r;
	struct err e = ERR_INIT;

	if (run_resumes(d, mc))
		return;
	r = run_new(d, mc, &e);
	if (r && run_begin(r, mc, &e) == 0) {
		run_attach(r, mc);
		op_start(r->call);
		return;
	}
	if (r)
		run_free(r);
	mcp_call_fail(mc, &e);
}
