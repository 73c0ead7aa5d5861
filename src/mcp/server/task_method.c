/* The methods of tasks: tasks/get, update and cancel of the extension; get, result, list and cancel
 * of 2025-11-25. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/base64.h"
#include "mcp/server/internal.h"
#include "mcp/message/question.h"

enum { CURSOR_MAX = 32, MS = 1000 };

/* --- the members of tasks, and notifications of changes --- */

static const char *status_of(const struct mcp_task *t)
{
	switch (t->state) {
	case MCP_TASK_WORKING:
		return "working";
	case MCP_TASK_ASKS:
		return "input_required";
	case MCP_TASK_DONE:
		/* a tool's own failure is a result; 2025-11-25 counts it as failed */
		return t->is_error && !t->profile->modern ? "failed" : "completed";
	case MCP_TASK_FAULT:
		return "failed";
	case MCP_TASK_CANCELLED:
		return "cancelled";
	}
	return "failed";
}

static void put_time(struct json_writer *w, const char *key, uint64_t ms)
{
	time_t seconds = (time_t)(ms / MS);
	char text[48], day[32];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%03uZ", day, (unsigned)(ms % MS));
	json_put_text(w, key, text);
}

void mcp_task_write(struct json_writer *w, const struct mcp_task *t, bool details)
{
	bool modern = t->profile->modern;
	const char *message = t->message		 ? t->message
			    : t->state == MCP_TASK_FAULT ? t->fault->message
							 : NULL;

	json_put_text(w, "taskId", t->id);
	json_put_text(w, "status", status_of(t));
	if (message)
		json_put_text(w, "statusMessage", message);
	put_time(w, "createdAt", t->made_ms);
	put_time(w, "lastUpdatedAt", t->changed_ms);
	json_put_uint(w, modern ? "ttlMs" : "ttl", t->ttl_ms);
	json_put_uint(w, modern ? "pollIntervalMs" : "pollInterval", t->poll_ms);
	if (!details || !modern)
		return;
	if (t->state == MCP_TASK_DONE) {
		json_put_raw(w, "result", (struct str){ t->result, t->result_n });
	} else if (t->state == MCP_TASK_FAULT) {
		json_write_key(w, "error");
		rpc_write_error(w, t->fault);
	} else if (t->state == MCP_TASK_ASKS) {
		json_write_key(w, "inputRequests");
		mcp_ask_write(w, t->call);
	}
}

static struct mcp_session *session_of(const struct mcp_task *t)
{
	struct mcp_session *s = t->server->sessions;

	while (s && s->number != t->session)
		s = s->next;
	return s;
}

struct mcp_session *mcp_task_session(const struct mcp_call *c)
{
	return c->task && !c->profile->modern ? session_of(c->task) : NULL;
}

static void notify_session(const struct mcp_task *t)
{
	struct mcp_session *s = session_of(t);
	struct json_writer *w;

	if (!s)
		return;
	w = mcp_out_begin(t->server);
	rpc_write_notification(w, "notifications/tasks/status");
	json_write_object(w);
	mcp_task_write(w, t, false);
	json_write_object_end(w);
	rpc_write_end(w);
	mcp_out_notify(s, NULL);
}

static void task_write_members(struct json_writer *w, void *task)
{
	mcp_task_write(w, task, true);
}

void mcp_task_changed(struct mcp_task *t)
{
	t->changed_ms = t->server->o.wall_ms();
	if (t->profile->modern)
		mcp_listen_task(t->server, str_of(t->id), "notifications/tasks", task_write_members,
				t);
	else
		notify_session(t);
}

void mcp_task_write_related(struct json_writer *w, const struct mcp_call *c)
{
	if (!c->task || c->profile->modern)
		return;
	json_put_object(w, "_meta");
	json_put_object(w, MCP_META_TASK);
	json_put_text(w, "taskId", c->task->id);
	json_write_object_end(w);
	json_write_object_end(w);
}

/* A modern client must declare the extension in each request. */
static struct mcp_task *task_method_find(const struct mcp_request *q, struct rpc_fault *f)
{
	if (q->profile->modern && !(q->can & MCP_CAN_TASKS)) {
		mcp_fault_missing(f, MCP_CAN_TASKS);
		return NULL;
	}
	return mcp_task_find(q, f);
}

/* --- both eras --- */

int mcp_tasks_get(const struct mcp_request *q, struct rpc_fault *f)
{
	const struct mcp_task *t = task_method_find(q, f);
	struct json_writer *w;

	if (!t)
		return -1;
	w = mcp_answer_begin(q);
	mcp_task_write(w, t, true);
	return mcp_answer_end(q, w);
}

/* The extension acknowledges a cancel in any state; 2025-11-25 returns the task, and refuses if it
 * has ended. */
int mcp_tasks_cancel(const struct mcp_request *q, struct rpc_fault *f)
{
	struct mcp_task *t = task_method_find(q, f);
	struct json_writer *w;

	if (!t)
		return -1;
	if (!q->profile->modern && mcp_task_has_ended(t))
		return rpc_fault_set(f, RPC_INVALID_PARAMS, "the task has ended already");
	mcp_task_cancel(t);
	w = mcp_answer_begin(q);
	if (!q->profile->modern)
		mcp_task_write(w, t, false);
	return mcp_answer_end(q, w);
}

/* --- the extension --- */

int mcp_tasks_update(const struct mcp_request *q, struct rpc_fault *f)
{
	const struct json_val *answers = json_get(q->m->params, "inputResponses");
	struct mcp_task *t = task_method_find(q, f);
	struct mcp_call *c;

	if (!t)
		return -1;
	if (json_type(answers) != JSON_OBJECT)
		return mcp_takes("inputResponses", "an object", answers, f);
	c = t->state == MCP_TASK_ASKS ? t->call : NULL;
	if (c && mcp_ask_take(c, answers, f) < 0)
		return -1;
	if (c && c->asking->open > 0)
		mcp_task_changed(t);
	mcp_answer_empty(q);
	if (c)
		mcp_ask_settled(c);
	return 0;
}

/* --- 2025-11-25 --- */

/* _meta of the result, and the task that it belongs to. */
static void put_related(struct json_writer *w, const struct mcp_task *t,
			const struct json_val *meta)
{
	struct json_iter it = json_iter(meta);

	json_put_object(w, "_meta");
	while (json_next(&it)) {
		json_write_key_str(w, it.key);
		json_write_val(w, it.val);
	}
	json_put_object(w, MCP_META_TASK);
	json_put_text(w, "taskId", t->id);
	json_write_object_end(w);
	json_write_object_end(w);
}

static int deliver_result(const struct mcp_task *t, struct mcp_call *waiter, struct err *e)
{
	/* it was our own: as large and deep as our messages may be */
	const struct json_options all = { .bytes = t->result_n,
					  .values = t->result_n,
					  .depth = 1024 };
	AUTO(json_free)
	struct json_doc *d = json_parse((struct str){ t->result, t->result_n }, &all, e);
	struct json_iter it;
	struct json_writer *w;

	if (!d)
		return -1;
	it = json_iter(json_root(d));
	w = mcp_call_result_begin(waiter);
	json_write_object(w);
	while (json_next(&it)) {
		if (str_is(it.key, "_meta"))
			continue;
		json_write_key_str(w, it.key);
		json_write_val(w, it.val);
	}
	put_related(w, t, json_get(json_root(d), "_meta"));
	json_write_object_end(w);
	mcp_call_result_end(waiter);
	return 0;
}

void mcp_task_deliver(struct mcp_task *t, struct mcp_call *waiter)
{
	struct rpc_fault f;
	struct err e;

	if (t->state == MCP_TASK_DONE) {
		if (deliver_result(t, waiter, &e) == 0)
			return;
		mcp_fault_of(&f, &e);
	} else if (t->state == MCP_TASK_FAULT) {
		f = *t->fault;
	} else {
		rpc_fault_set(&f, RPC_INTERNAL_ERROR, "the task was cancelled");
		f.reason = err_info(ERR_CANCELLED);
	}
	mcp_call_fault(waiter, &f);
}

static void stop_waiting(struct mcp_call *waiter)
{
	struct mcp_task *t = waiter->inner;

	for (size_t i = 0; i < MCP_TASK_WAITERS; i++) {
		if (t->waiters[i] == waiter)
			t->waiters[i] = NULL;
	}
	mcp_call_drop(waiter);
	mcp_task_send_questions(t);
}

/* Answered when the task has ended. Until then its questions are asked on this request's stream. */
int mcp_tasks_result(const struct mcp_request *q, struct rpc_fault *f)
{
	struct mcp_task *t = task_method_find(q, f);
	struct mcp_call *waiter;
	size_t i = 0;

	if (!t)
		return -1;
	waiter = mcp_call_begin(q, MCP_CALL_INNER, f);
	if (!waiter)
		return -1;
	waiter->inner = t;
	waiter->inner_cancel = stop_waiting;
	if (mcp_task_has_ended(t)) {
		mcp_task_deliver(t, waiter);
		return 0;
	}
	while (i < MCP_TASK_WAITERS && t->waiters[i])
		i++;
	if (i == MCP_TASK_WAITERS) {
		rpc_fault_set(f, RPC_INTERNAL_ERROR, "%d requests wait for this task already",
			      MCP_TASK_WAITERS);
		f->reason = err_info(ERR_LIMIT);
		mcp_call_fault(waiter, f);
		return 0;
	}
	t->waiters[i] = waiter;
	mcp_task_send_questions(t);
	return 0;
}

/* A cursor is the number of the last task sent, so it stays valid when that task has expired. */
static int read_cursor(const struct json_val *cursor, uint64_t *ret, struct rpc_fault *f)
{
	autobuf struct buf text = BUF_INIT(CURSOR_MAX);
	char *rest = NULL;
	struct err e;

	*ret = 0;
	if (!cursor)
		return 0;
	if (base64_decode(&text, json_str(cursor), &e) == 0 && text.n > 0 && text.p[0] >= '1' &&
	    text.p[0] <= '9')
		*ret = strtoull(text.p, &rest, 10);
	if (!rest || *rest || *ret == 0)
		return rpc_fault_set(f, RPC_INVALID_PARAMS,
				     "cursor takes the nextCursor of an answer to tasks/list");
	return 0;
}

static void put_cursor(struct json_writer *w, uint64_t serial)
{
	autobuf struct buf text = BUF_INIT(CURSOR_MAX);
	struct err e;

	if (buf_addf(&text, &e, "%llu", (unsigned long long)serial) < 0) {
		json_write_fail(w, &e);
		return;
	}
	json_put_base64(w, "nextCursor", buf_str(&text));
}

bool mcp_tasks_are_listed(const struct mcp_session *s)
{
	return s->road != MCP_ROAD_HTTP || s->server->o.principal;
}

static const struct mcp_task *next_for(const struct mcp_request *q, const struct inflight_entry *x,
				       uint64_t after)
{
	struct str owner = mcp_principal(q->s->server, q->s->data);

	for (; x; x = x->newer) {
		const struct mcp_task *t = (const struct mcp_task *)x;

		if (t->serial > after && mcp_task_is_for(t, q->profile, owner))
			return t;
	}
	return NULL;
}

int mcp_tasks_list(const struct mcp_request *q, struct rpc_fault *f)
{
	struct mcp_server *srv = q->s->server;
	size_t page = srv->o.page;
	const struct mcp_task *t;
	struct json_writer *w;
	uint64_t last;

	if (!mcp_tasks_are_listed(q->s))
		return rpc_fault_set(f, RPC_METHOD_NOT_FOUND,
				     "tasks are not listed for clients without a name");
	if (read_cursor(json_get(q->m->params, "cursor"), &last, f) < 0)
		return -1;
	mcp_tasks_purge(srv);
	t = next_for(q, srv->tasks ? inflight_first(srv->tasks->table) : NULL, last);
	w = mcp_answer_begin(q);
	json_put_array(w, "tasks");
	for (; t && page > 0; page--) {
		json_write_object(w);
		mcp_task_write(w, t, false);
		json_write_object_end(w);
		last = t->serial;
		t = next_for(q, &t->entry, last);
	}
	json_write_array_end(w);
	if (t)
		put_cursor(w, last);
	return mcp_answer_end(q, w);
}
