/*
 * Turns calls into tasks, because the handler or a client of 2025-11-25 wants it. The request is
 * answered with the task, which is in the store by then.
 */
#include "mcp/message/question.h"
#include "mcp/server/internal.h"

static void answer_created(const struct mcp_task *t)
{
	struct mcp_call *c = t->call;
	struct json_writer *w = mcp_call_result_begin(c);

	json_write_object(w);
	if (c->profile->modern) {
		json_put_text(w, "resultType", "task");
		mcp_task_write(w, t, false);
	} else {
		json_put_object(w, "task");
		mcp_task_write(w, t, false);
		json_write_object_end(w);
	}
	mcp_result_close(w, c->server, c->profile, STR_NONE);
	rpc_write_end(w);
}

static void task_call_apply(struct mcp_task *t, const struct mcp_task_options *o)
{
	if (o && o->poll_ms)
		t->poll_ms = o->poll_ms;
	if (o && o->message)
		mcp_task_set_message(t, o->message);
}

/* The task is in the store before its client hears of it. ttl_ms: what the client asks for, or
 * 0. */
static int make_task(struct mcp_call *c, const struct mcp_task_options *o, unsigned ttl_ms,
		     struct err *e)
{
	unsigned own = o && o->ttl_ms ? o->ttl_ms : c->server->o.task_ttl_ms;
	struct mcp_task *t = mcp_task_add(c, e);

	if (!t)
		return -1;
	mcp_task_set_ttl(t, ttl_ms ? ttl_ms : own);
	task_call_apply(t, o);
	answer_created(t);
	c->task = t;
	mcp_call_detach(c);
	return 0;
}

bool mcp_call_can_task(const struct mcp_call *c)
{
	if (c->task)
		return true;
	return c->kind == MCP_CALL_TOOL && c->tool->task != MCP_TASK_NEVER && c->server->o.tasks &&
	       c->profile->modern && (c->can & MCP_CAN_TASKS);
}

int mcp_call_to_task(struct mcp_call *c, const struct mcp_task_options *o, struct err *e)
{
	if (c->task) {
		/* the client of 2025-11-25 has chosen the time to live */
		task_call_apply(c->task, o);
		return 0;
	}
	if (!mcp_call_can_task(c))
		return err_set(e, ERR_CLIENT_CANT, "the client can't have this call as a task");
	if (!mcp_call_is_wanted(c))
		return err_set(e, ERR_CANCELLED, "the call was cancelled");
	return make_task(c, o, 0, e);
}

bool mcp_call_is_task(const struct mcp_call *c)
{
	return c->task != NULL;
}

void mcp_call_task_status(struct mcp_call *c, const char *message)
{
	if (!c->task || mcp_task_has_ended(c->task))
		return;
	mcp_task_set_message(c->task, message);
	c->task->changed_ms = c->server->o.wall_ms();
}

/* --- before the first run --- */

static int task_call_refuse(struct rpc_fault *f, const struct mcp_call *c, const char *why)
{
	return rpc_fault_set(f, RPC_METHOD_NOT_FOUND, "tool %s %s", c->tool->name, why);
}

static int begin_old(struct mcp_call *c, const struct json_val *task, struct rpc_fault *f)
{
	uint64_t ttl_ms = 0;
	struct err e;

	if (json_type(task) != JSON_OBJECT)
		return mcp_takes("task", "an object", task, f);
	if (json_get(task, "ttl") && !json_uint64(json_get(task, "ttl"), &ttl_ms))
		return rpc_fault_set(f, RPC_INVALID_PARAMS, "task.ttl takes milliseconds");
	if (c->tool->task == MCP_TASK_NEVER)
		return task_call_refuse(f, c, "can't be called as a task; leave params.task out");
	if (make_task(c, NULL, ttl_ms < MCP_TASK_TTL_MAX ? (unsigned)ttl_ms : MCP_TASK_TTL_MAX,
		      &e) < 0)
		return mcp_fault_of(f, &e);
	return 0;
}

int mcp_task_before(struct mcp_call *c, struct rpc_fault *f)
{
	const struct json_val *task;
	bool required = c->tool->task == MCP_TASK_REQUIRED;
	struct err e;

	if (!c->server->o.tasks)
		return 0;
	if (c->profile->modern)
		return required && !(c->can & MCP_CAN_TASKS) ? mcp_fault_missing(f, MCP_CAN_TASKS)
							     : 0;
	task = c->profile->old_tasks ? json_get(c->params, "task") : NULL;
	if (task)
		return begin_old(c, task, f);
	if (c->profile->old_tasks && required)
		return task_call_refuse(f, c, "is only called as a task; send params.task");
	if (!required)
		return 0;
	err_set(&e, ERR_CLIENT_CANT, "tool %s runs as a task, which revision %s has not",
		c->tool->name, c->profile->version);
	mcp_call_fail(c, &e);
	return 1;
}
