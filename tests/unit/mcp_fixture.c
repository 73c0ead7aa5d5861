#include "mcp_fixture.h"

#include <assert.h>
#include <stdlib.h>

struct echo_params {
	struct str text;
};

static const struct field echo_fields[] = {
	FIELD(struct echo_params, text, .flags = FIELD_REQUIRED, .max = 1 << 24,
	      .doc = "What to give back."),
};
static const struct field_table echo_table = FIELD_TABLE(struct echo_params, echo_fields);

struct add_params {
	int64_t a, b;
};

static const struct field add_fields[] = {
	FIELD(struct add_params, a, .flags = FIELD_REQUIRED, .min = -1000, .max = 1000,
	      .doc = "A."),
	FIELD(struct add_params, b, .min = -1000, .max = 1000, .def = DEFAULT_INT(1), .doc = "B."),
};
static const struct field_table add_table = FIELD_TABLE(struct add_params, add_fields);

struct add_result {
	int64_t sum;
};

static const struct field sum_fields[] = {
	FIELD(struct add_result, sum, .flags = FIELD_REQUIRED, .doc = "Sum."),
};
static const struct field_table sum_table = FIELD_TABLE(struct add_result, sum_fields);

static const struct field_table none_table = { .size = 1 };

static void run_echo(struct fixture *f, struct mcp_call *c)
{
	struct echo_params p;
	struct err e;

	if (mcp_call_decode(c, &echo_table, &p, &e) < 0)
		mcp_call_fail(c, &e);
	else
		mcp_call_text(c, p.text);
}

static void run_add(struct fixture *f, struct mcp_call *c)
{
	struct add_params p;
	struct err e;

	if (mcp_call_decode(c, &add_table, &p, &e) < 0) {
		mcp_call_fail(c, &e);
		return;
	}
	mcp_call_done(c, &(struct mcp_result){ .table = &sum_table,
					       .from = &(struct add_result){ p.a + p.b } });
}

static void run_fail(struct fixture *f, struct mcp_call *c)
{
	struct err e;

	err_set(&e, ERR_SANDBOX_NOT_FOUND, "no sandbox \"x\"");
	mcp_call_fail(c, &e);
}

static void run_media(struct fixture *f, struct mcp_call *c)
{
	static const struct mcp_content content[] = {
		{ .type = MCP_TEXT, .text = { "caf\xe9\n", 5 } },
		{ .type = MCP_IMAGE, .data = { "\x89PNG", 4 }, .mime = "image/png" },
		{ .type = MCP_AUDIO, .data = { "RIFF", 4 }, .mime = "audio/wav" },
		{ .type = MCP_RESOURCE, .uri = "file:///a", .text = { "text", 4 } },
		{ .type = MCP_RESOURCE, .uri = "file:///b", .mime = "a/b", .data = { "\0", 1 } },
	};

	mcp_call_done(c, &(struct mcp_result){ .content = content,
					       .content_n = ARRAY_LEN(content),
					       .meta = STR_LIT("{\"x/y\":1}") });
}

static void held_cancelled(struct mcp_call *c, void *data)
{
	struct fixture *f = data;

	f->cancels++;
	for (unsigned i = 0; f->end_on_cancel && i < f->held_n; i++) {
		if (f->held[i] == c)
			fixture_end(f, i);
	}
}

static void run_hold(struct fixture *f, struct mcp_call *c)
{
	if (f->held_n == FIXTURE_HELD) {
		mcp_call_text(c, STR_LIT("full"));
		return;
	}
	f->held[f->held_n++] = c;
	mcp_call_on_cancel(c, held_cancelled, f);
}

typedef void run_fn(struct fixture *f, struct mcp_call *c);

static struct row {
	struct mcp_tool tool;
	const struct field_table *in, *out;
	run_fn *run;
} rows[] = {
	{ { .name = "echo",
	    .title = "Echo",
	    .description = "Gives text back.",
	    .meta = "{\"holt/schemaVersion\":\"1.0.0\"}",
	    .read_only = MCP_YES,
	    .idempotent = MCP_YES,
	    .open_world = MCP_NO },
	  &echo_table,
	  NULL,
	  run_echo },
	{ { .name = "add", .description = "Adds." }, &add_table, &sum_table, run_add },
	{ { .name = "fail", .description = "Fails.", .destructive = MCP_NO },
	  &none_table,
	  NULL,
	  run_fail },
	{ { .name = "media", .description = "Shows." }, &none_table, NULL, run_media },
	{ { .name = "hold", .description = "Waits." }, &none_table, NULL, run_hold },
};

static const struct mcp_tool *list[ARRAY_LEN(rows)];

/* Schemas are made once and kept for the life of the program. */
static bool make_tools(void)
{
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct row *r = &rows[i];

		if (!r->tool.input_schema)
			r->tool.input_schema = field_schema_text(r->in, &e);
		if (r->out && !r->tool.output_schema)
			r->tool.output_schema = field_schema_text(r->out, &e);
		if (!r->tool.input_schema || (r->out && !r->tool.output_schema))
			return false;
		r->tool.row = r;
		if (mcp_tool_prepare(&r->tool, &e) < 0)
			return false;
		list[i] = &r->tool;
	}
	return true;
}

const struct mcp_tool *const *fixture_tools(size_t *ret_n)
{
	*ret_n = ARRAY_LEN(rows);
	return make_tools() ? list : NULL;
}

static const struct mcp_tool *const *tools(void *owner, struct mcp_session *s, size_t *ret_n)
{
	*ret_n = ARRAY_LEN(rows);
	return list;
}

static void call(void *owner, struct mcp_call *c)
{
	const struct row *r = mcp_call_tool(c)->row;

	r->run(owner, c);
}

static const struct mcp_handler handler = { .tools = tools, .call = call };

/* --- the transport --- */

static void sent(void *transport, void *stream, const struct mcp_out *m)
{
	struct fixture *f = transport;

	if (f->sent_n == FIXTURE_SENT)
		fixture_clear(f);
	f->streams[f->sent_n] = stream;
	f->sent[f->sent_n] = strndup(m->text.p, m->text.n);
	f->sent_n += f->sent[f->sent_n] != NULL;
}

static bool congested(void *transport, void *stream)
{
	return ((struct fixture *)transport)->congested;
}

static void idle(void *transport)
{
	((struct fixture *)transport)->idles++;
}

static const struct mcp_transport transport = { .send = sent,
						.congested = congested,
						.idle = idle };

/* The clock of all fixtures: the server's has no argument. */
static struct fixture *newest;

static uint64_t now_ms(void)
{
	return newest->now_ms;
}

bool fixture_init(struct fixture *f, const struct mcp_server_options *overrides)
{
	struct mcp_server_options o = overrides ? *overrides : (struct mcp_server_options){ 0 };
	struct err e;

	*f = (struct fixture){ .now_ms = 1000 };
	newest = f;
	o.name = "fixture";
	o.title = "A fixture";
	o.version = "1.2.3";
	o.instructions = "Test.";
	o.meta = "{\"holt/schemaVersion\":\"1.0.0\"}";
	if (o.offer.tools_n == 0)
		o.handler = &handler;
	o.owner = f;
	o.now_ms = now_ms;
	if (!make_tools())
		return false;
	f->server = mcp_server_new(&o, &e);
	if (f->server)
		f->session = mcp_session_new(f->server, &transport, f, MCP_ROAD_LINES, f);
	if (f->session)
		return true;
	mcp_server_free(f->server);
	return false;
}

void fixture_fini(struct fixture *f)
{
	mcp_session_close(take_ptr(f->session));
	fixture_end_all(f);
	mcp_server_free(f->server);
	fixture_clear(f);
}

void fixture_say(struct fixture *f, const char *text)
{
	mcp_session_message(f->session, str_of(text));
}

void fixture_end(struct fixture *f, unsigned i)
{
	struct mcp_call *c = f->held[i];

	assert(i < f->held_n && c);
	f->held[i] = NULL;
	mcp_call_text(c, STR_LIT("done"));
}

void fixture_end_all(struct fixture *f)
{
	for (unsigned i = 0; i < f->held_n; i++) {
		if (f->held[i])
			fixture_end(f, i);
	}
}

void fixture_clear(struct fixture *f)
{
	for (unsigned i = 0; i < f->sent_n; i++)
		free(f->sent[i]);
	f->sent_n = 0;
}
