/* How handlers end calls. Each function writes its answer, if anybody still wants it, and the call is
 * gone. */
#include "base/log.h"
#include "mcp/core.h"

static bool has_structured(const struct mcp_result *r)
{
	return r->structured.n > 0 || r->table;
}

void mcp_call_done(struct mcp_call *c, const struct mcp_result *r)
{
	struct json_writer *w;

	if (c->tool->output_schema && !r->is_error && !has_structured(r))
		log_error("mcp: %s has an output schema and gave no structured content",
			  c->tool->name);
	if (!mcp_call_is_wanted(c)) {
		mcp_call_drop(c);
		return;
	}
	mcp_progress_flush(c);
	w = mcp_call_result_begin(c);
	mcp_write_result(w, c->profile, c->server, r, c->server->o.reply_max);
	mcp_call_result_end(c);
}

void mcp_call_text(struct mcp_call *c, struct str text)
{
	const struct mcp_content content = { .type = MCP_TEXT, .text = text };

	mcp_call_done(c, &(struct mcp_result){ .content = &content, .content_n = 1 });
}

static void fail_tool(struct mcp_call *c, const struct err *e)
{
	static const char no_memory[] = "{\"code\":\"limit_exceeded\",\"cause\":\"out of memory\","
					"\"remediation\":\"Try again later.\",\"retryable\":true}";
	autofree char *text = mcp_error_text(e);
	const struct mcp_content content = { .type = MCP_TEXT,
					     .text = str_of(text ? text : no_memory) };

	mcp_call_done(
		c, &(struct mcp_result){ .content = &content, .content_n = 1, .is_error = true });
}

void mcp_call_fail(struct mcp_call *c, const struct err *e)
{
	struct rpc_fault f;

	if (c->kind == MCP_CALL_TOOL) {
		fail_tool(c, e);
		return;
	}
	rpc_fault_set(&f, err_info(e->code)->jsonrpc, "%s", e->msg);
	f.reason = err_info(e->code)->name;
	mcp_progress_flush(c);
	mcp_call_fault(c, &f);
}
