/* How handlers end calls. Each function writes the answer, if anybody still wants it, and frees the
 * call. */
#include <assert.h>

#include "base/log.h"
#include "mcp/server/internal.h"

enum { VALUES_MAX = 100 }; /* values of one completion: the protocol's limit */

/* True if an answer is to be written; open questions are withdrawn and progress is sent first. Else
 * the call is freed. */
static bool done_begins(struct mcp_call *c)
{
	if (mcp_call_is_wanted(c)) {
		mcp_ask_withdraw(c, "the call has ended");
		mcp_progress_flush(c);
		return true;
	}
	mcp_call_drop(c);
	return false;
}

/* --- tools --- */

static void send_result(struct mcp_call *c, const struct mcp_result *r, struct str structured)
{
	struct json_writer *w;

	c->is_error = r->is_error;
	w = mcp_call_result_begin(c);
	mcp_write_result(w, c->profile, c->server, r, structured);
	mcp_call_result_end(c);
}

static int check_output(const struct mcp_call *c, const struct mcp_result *r, struct str structured,
			struct err *e)
{
	if (!c->tool->output_schema || r->is_error)
		return 0;
	if (!structured.p)
		return err_set(e, ERR_BUG, "%s has an output schema and gave nothing for it",
			       c->tool->name);
	return mcp_tool_check_output(c->tool, structured, e);
}

/* The structured content as the handler gave it, or encoded by its table. */
static int write_structured(const struct mcp_result *r, struct buf *room, struct str *ret,
			    struct err *e)
{
	struct json_writer w;

	*ret = r->structured.n > 0 ? r->structured : STR_NONE;
	if (!r->table)
		return 0;
	w = json_writer(room);
	field_encode(r->table, r->from, &w);
	*ret = buf_str(room);
	return json_write_done(&w, e);
}

void mcp_call_done(struct mcp_call *c, const struct mcp_result *r)
{
	autobuf struct buf text = BUF_INIT(c->server->o.reply_max);
	struct str structured;
	struct err e;

	assert(c->kind == MCP_CALL_TOOL);
	if (!done_begins(c))
		return;
	if (write_structured(r, &text, &structured, &e) < 0 ||
	    check_output(c, r, structured, &e) < 0) {
		log_error("mcp: %s", e.msg);
		mcp_call_fail(c, &e);
		return;
	}
	send_result(c, r, structured);
}

void mcp_call_text(struct mcp_call *c, struct str text)
{
	const struct mcp_content content = { .type = MCP_TEXT, .text = text };

	mcp_call_done(c, &(struct mcp_result){ .content = &content, .content_n = 1 });
}

static void fail_tool(struct mcp_call *c, const struct err *e)
{
	static const char no_memory[] = "{\"code\":\"limit_exceeded\",\"cause\":\"out of memory\","
					"\"remediation\":\"Try again later.\","
					"\"failure\":\"transport_failed\",\"retryable\":true}";
	autofree char *text = mcp_error_text(e);
	const struct mcp_content content = { .type = MCP_TEXT,
					     .text = str_of(text ? text : no_memory) };

	if (done_begins(c))
		send_result(c,
			    &(struct mcp_result){
				    .content = &content, .content_n = 1, .is_error = true },
			    STR_NONE);
}

void mcp_call_fail(struct mcp_call *c, const struct err *e)
{
	struct rpc_fault f;

	if (c->kind == MCP_CALL_TOOL) {
		fail_tool(c, e);
		return;
	}
	rpc_fault_set(&f, err_info(e->code)->jsonrpc, "%s", e->msg);
	f.reason = err_info(e->code);
	mcp_progress_flush(c);
	mcp_call_fault(c, &f);
}

/* --- errors of the protocol --- */

static void done_refuse(struct mcp_call *c, struct rpc_fault *f, struct str data)
{
	/* other refusals of a handler are only in the message */
	f->status = f->code == MCP_MISSING_CAPABILITY ? 400 : 0;
	if (data.n > 0 && data.n < sizeof(f->data)) {
		memcpy(f->data, data.p, data.n);
		f->data[data.n] = '\0';
	}
	mcp_progress_flush(c);
	mcp_call_fault(c, f);
}

void mcp_call_refuse(struct mcp_call *c, int code, const char *message, struct str data)
{
	struct rpc_fault f;

	rpc_fault_set(&f, code, "%s", message);
	if (data.n >= sizeof(f.data))
		log_warn("mcp: %zu bytes of data are too many for an error", data.n);
	else if (data.n > 0)
		f.reason = NULL;
	done_refuse(c, &f, data);
}

/* --- resources --- */

void mcp_call_contents(struct mcp_call *c, const struct mcp_contents *contents, size_t n)
{
	struct json_writer *w;

	assert(c->kind == MCP_CALL_READ);
	if (!done_begins(c))
		return;
	w = mcp_call_result_begin(c);
	mcp_result_open(w, c->profile);
	json_write_name(w, "contents");
	json_write_array(w);
	for (size_t i = 0; i < n; i++)
		mcp_write_contents(w, c->profile, &contents[i], mcp_call_uri(c));
	json_write_array_end(w);
	mcp_write_cache(w, c->profile, c->ttl_ms, c->cache_public);
	mcp_result_close(w, c->server, c->profile, STR_NONE);
	mcp_call_result_end(c);
}

void mcp_call_not_found(struct mcp_call *c)
{
	autobuf struct buf data = BUF_INIT(RPC_DATA_MAX - 1);
	struct json_writer w = json_writer(&data);
	struct rpc_fault f;
	struct err e;

	json_write_object(&w);
	json_put_str(&w, "uri", mcp_call_uri(c));
	json_write_object_end(&w);
	rpc_fault_set(&f, c->profile->modern ? RPC_INVALID_PARAMS : MCP_RESOURCE_NOT_FOUND,
		      "there is no such resource");
	f.reason = err_info(ERR_NOT_OFFERED);
	/* a URI that does not fit is left out; the client knows it */
	done_refuse(c, &f, json_write_done(&w, &e) < 0 ? STR_NONE : buf_str(&data));
}

/* --- prompts --- */

void mcp_call_messages(struct mcp_call *c, const char *description,
		       const struct mcp_prompt_message *messages, size_t n)
{
	struct json_writer *w;

	assert(c->kind == MCP_CALL_GET);
	if (!done_begins(c))
		return;
	w = mcp_call_result_begin(c);
	mcp_result_open(w, c->profile);
	mcp_put_text(w, "description", description);
	json_write_name(w, "messages");
	json_write_array(w);
	for (size_t i = 0; i < n; i++) {
		json_write_object(w);
		mcp_put_text(w, "role", messages[i].is_assistant ? "assistant" : "user");
		json_write_name(w, "content");
		mcp_write_content(w, c->profile, &messages[i].content);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	mcp_result_close(w, c->server, c->profile, STR_NONE);
	mcp_call_result_end(c);
}

/* --- completions --- */

void mcp_call_values(struct mcp_call *c, const struct str *values, size_t n, uint64_t total,
		     bool has_more)
{
	struct json_writer *w;

	assert(c->kind == MCP_CALL_COMPLETE);
	if (!done_begins(c))
		return;
	w = mcp_call_result_begin(c);
	mcp_result_open(w, c->profile);
	json_write_name(w, "completion");
	json_write_object(w);
	json_write_name(w, "values");
	json_write_array(w);
	for (size_t i = 0; i < n && i < VALUES_MAX; i++)
		json_write_str(w, values[i]);
	json_write_array_end(w);
	if (total > 0) {
		json_write_name(w, "total");
		json_write_uint(w, total);
	}
	json_write_name(w, "hasMore");
	json_write_bool(w, has_more || n > VALUES_MAX);
	json_write_object_end(w);
	mcp_result_close(w, c->server, c->profile, STR_NONE);
	mcp_call_result_end(c);
}

/* --- of another server --- */

void mcp_call_members(struct mcp_call *c, struct str object)
{
	struct json_writer *w;

	assert(c->kind == MCP_CALL_READ || c->kind == MCP_CALL_GET || c->kind == MCP_CALL_COMPLETE);
	if (!done_begins(c))
		return;
	w = mcp_call_result_begin(c);
	mcp_result_open(w, c->profile);
	mcp_write_members(w, object);
	if (c->kind == MCP_CALL_READ)
		mcp_write_cache(w, c->profile, c->ttl_ms, c->cache_public);
	mcp_result_close(w, c->server, c->profile, STR_NONE);
	mcp_call_result_end(c);
}
