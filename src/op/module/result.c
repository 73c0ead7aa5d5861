/* module.result: a result that was larger than a call gives at once, in parts; and what the call
 * gives in its place. */
#include "op/module/module.h"

#include <stdio.h>

#include "hub/sandbox/sandbox.h"
#include "json/document/put.h"
#include "json/document/utf8.h"
#include "op/ops.h"

enum {
	PART_DEFAULT = 256 << 10,
	PART_MAX = 1 << 20,
	SHOWN = 1000, /* bytes of a result that are shown of it at once */
	STAND_IN_MAX = 16 << 10,
};

#define Q struct module_result_request
static const struct field request_fields[] = {
	FIELD(Q, result, .flags = FIELD_REQUIRED, .min = 1, .max = 64,
	      .doc = "Id of the result, from the call."),
	FIELD(Q, offset, .doc = "Offset of the first byte to read."),
	FIELD(Q, limit, .min = 4, .max = PART_MAX, .def = DEFAULT_INT(PART_DEFAULT),
	      .doc = "Maximum number of bytes to read."),
	FIELD(Q, sandbox, .max = SANDBOX_ID_MAX,
	      .doc = "Sandbox whose program made the call; absent: a client did."),
};
#undef Q
const struct field_table module_result_request_table = FIELD_TABLE(struct module_result_request,
								   request_fields);

#define R struct module_result_part
static const struct field part_fields[] = {
	FIELD(R, text, .flags = FIELD_REQUIRED,
	      .doc = "A part of the result as JSON: content, structuredContent, isError."),
	FIELD(R, offset, .flags = FIELD_REQUIRED, .doc = "Offset of the part."),
	FIELD(R, bytes, .flags = FIELD_REQUIRED, .doc = "Size of the whole result in bytes."),
	FIELD(R, next, .has = FIELD_HAS(R, has_next), .doc = "Offset of the next part."),
};
#undef R
static const struct field_table part_table = FIELD_TABLE(struct module_result_part, part_fields);

static bool result_is_inside(struct str s, size_t at)
{
	return at < s.n && (s.p[at] & 0xc0) == 0x80;
}

/* What a program has called is there for its sandbox alone. */
static struct str result_owner(struct call *c, struct str sandbox, struct err *e)
{
	struct str owner = call_owner(c);

	return sandbox.n ? str_of(arena_printf(call_arena(c), e, "%.*s %.*s", STR_ARG(owner),
					       STR_ARG(sandbox)))
			 : owner;
}

static void result_run(struct call *c, const void *request)
{
	const struct module_result_request *q = request;
	struct module_result_part r = { .offset = q->offset };
	struct upstream_result kept;
	struct err e = ERR_INIT;
	struct upstreams *all = module_all(c, &e);
	struct str owner = result_owner(c, q->sandbox, &e);

	if (!all || !owner.p || upstreams_kept(all, owner, q->result, &kept, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	r.bytes = kept.text.n;
	r.offset = r.offset < r.bytes ? r.offset : r.bytes;
	while (result_is_inside(kept.text, r.offset))
		r.offset++;
	r.text = utf8_cut((struct str){ kept.text.p + r.offset, kept.text.n - r.offset }, q->limit);
	r.next = r.offset + r.text.n;
	r.has_next = r.next < r.bytes;
	call_answer(c, &r);
}

const struct op module_result_op = {
	.action = "module.result",
	.doc = "Reads a part of a module's result that was too large for the call.",
	.effect = OP_READ,
	.request = &module_result_request_table,
	.target = OP_TARGET(struct module_result_request, sandbox),
	.result = &part_table,
	.run = result_run,
};

int module_result_write(struct buf *to, const struct module_result_part *p, struct err *e)
{
	struct json_writer w = json_writer(to);

	json_write_object(&w);
	json_put_array(&w, "content");
	json_write_object(&w);
	json_put_text(&w, "type", "text");
	json_put_str(&w, "text", p->text);
	json_write_object_end(&w);
	json_write_array_end(&w);
	json_put_object(&w, "structuredContent");
	json_put_uint(&w, "bytes", p->bytes);
	if (p->has_next)
		json_put_uint(&w, "next", p->next);
	json_write_object_end(&w);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

/* ---- in its place -------------------------------------------------------------------------- */

/* inside: a program of a sandbox is told. */
static int result_write(struct buf *to, const struct upstream_result *kept, bool inside,
			bool is_error, struct err *e)
{
	struct json_writer w = json_writer(to);
	char told[320];

	snprintf(told, sizeof(told),
		 "The result has %zu bytes, more than a call gives at once. It is kept for %d "
		 "minutes as %.*s: %s. It begins:",
		 kept->text.n, UPSTREAM_KEPT_S / 60, STR_ARG(kept->id),
		 inside ? "holt.result() of Python reads it in parts, and so does holt-call holt "
			  "result in shells"
			: "module_result reads it in parts, and so does result() of "
			  "\"host:mcp-holt\" in code");
	json_write_object(&w);
	json_put_array(&w, "content");
	for (int i = 0; i < 2; i++) {
		json_write_object(&w);
		json_put_text(&w, "type", "text");
		json_put_str(&w, "text", i ? utf8_cut(kept->text, SHOWN) : str_of(told));
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_put_object(&w, "structuredContent");
	json_put_str(&w, "result", kept->id);
	json_put_uint(&w, "bytes", kept->text.n);
	json_write_object_end(&w);
	if (is_error)
		json_put_bool(&w, "isError", true);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static struct str result_redact(void *call, const struct field *row, struct str text)
{
	return call_redact(call, text);
}

/* It is kept as it may leave, so that a secret is not cut by a part: each string by itself, however
 * the server has escaped it, and then all of it, since a name may tell what stands behind it. */
int module_result_keep(struct call *c, const struct mcp_answer *a, struct module_result *ret,
		       struct err *e)
{
	const struct module_call_request *q = call_request(c);
	struct str owner = result_owner(c, q->sandbox, e);
	autobuf struct buf all = BUF_INIT(2 * UPSTREAM_MESSAGE_MAX), b = BUF_INIT(STAND_IN_MAX);
	struct json_writer w = json_writer(&all);
	struct upstream_result kept;
	char *copy;

	field_copy_val(a->result, result_redact, c, &w);
	if (!owner.p || json_write_done(&w, e) < 0 ||
	    upstreams_keep(call_upstreams(c), owner, call_redact(c, buf_str(&all)), &kept, e) < 0 ||
	    result_write(&b, &kept, q->sandbox.n > 0, json_bool(json_get(a->result, "isError")),
			 e) < 0)
		return -1;
	copy = arena_dup(call_arena(c), buf_str(&b), e);
	*ret = (struct module_result){ .result = { { copy, b.n } }, .kept = true };
	return copy ? 0 : -1;
}
