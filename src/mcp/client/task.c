/*
 * Follows a request that became a task: polls it until it has ended, and answers its questions. The
 * extension io.modelcontextprotocol/tasks reports everything in tasks/get. In 2025-11-25, the
 * result and the questions come by tasks/result, which is sent when there are any.
 *
 *	GET -> (later) GET …	working
 *	GET -> UPDATE -> GET	the extension: questions were answered
 *	GET -> RESULT		2025-11-25: there are questions, or it has ended
 */
#include "mcp/client/internal.h"

#include <stdlib.h>

#include "base/log.h"
#include "json/document/raw.h"

enum {
	ID_BYTES_MAX = 1024,
	POLL_MS = 1000, /* if the server gives no interval */
	POLL_MAX_MS = 30 * 1000,
	FAILURES_MAX = 5, /* in a row */
	CANCEL_ROOM = 16 << 10,
};

struct mcp_follow {
	char *id;
	size_t id_n;
	uint64_t begun_ms, due_ms;
	uint64_t stood_ms; /* stood_ms of the request when it became a task */
	unsigned poll_ms;
	unsigned failures;
	bool has_result; /* 2025-11-25: tasks/result is next */
};

struct str mcp_follow_id(const struct mcp_follow *f)
{
	return (struct str){ f->id, f->id_n };
}

void mcp_follow_free(struct mcp_follow *f)
{
	if (f)
		free(f->id);
	free(f);
}

/* --- the server's reports --- */

static bool is_modern(const struct mcp_pending *p)
{
	return p->client->profile->modern;
}

static unsigned clamp(uint64_t ms, unsigned min, unsigned max)
{
	return ms < min ? min : ms > max ? max : (unsigned)ms;
}

static void read_times(struct mcp_pending *p, const struct json_val *task)
{
	struct mcp_follow *f = p->task;
	const char *poll = is_modern(p) ? "pollIntervalMs" : "pollInterval";
	const char *ttl = is_modern(p) ? "ttlMs" : "ttl";
	unsigned min = p->client->o.task_poll_min_ms;
	uint64_t ms = POLL_MS, life = p->client->o.task_max_ms;

	json_uint64(json_get(task, poll), &ms);
	f->poll_ms = clamp(ms, min, min > POLL_MAX_MS ? min : POLL_MAX_MS);
	json_uint64(json_get(task, ttl), &life);
	/* a result that is ready at the very end must still be fetched */
	p->end_ms = f->begun_ms + clamp(life, 0, p->client->o.task_max_ms) + p->timeout_ms +
		    (p->stood_ms - f->stood_ms);
}

static void poll_in(struct mcp_pending *p, unsigned ms)
{
	p->step = MCP_STEP_GET;
	p->task->due_ms = mcp_client_now(p->client) + ms;
}

/* The server's report is invalid, so the task is cancelled too. */
static void give_up(struct mcp_pending *p, const struct err *e)
{
	mcp_follow_cancel(p);
	mcp_pending_fail(p, e);
}

static void task_ask(struct mcp_pending *p, struct mcp_in *in, const struct json_val *task)
{
	const struct json_val *map = json_get(task, "inputRequests");
	struct err e;
	int n;

	mcp_ask_drop_missing(p, map);
	if (p->ended)
		return;
	n = mcp_ask_take_map(p, in, map, &e);
	if (n > 0 && p->rounds++ >= p->client->o.rounds_max) {
		err_set(&e, ERR_LIMIT, "the task asks for more than %u rounds of input",
			p->client->o.rounds_max);
		n = -1;
	}
	if (n < 0) {
		give_up(p, &e);
		return;
	}
	poll_in(p, p->task->poll_ms);
	mcp_ask_hand_out(p);
}

static void task_finish(struct mcp_pending *p, const struct mcp_in *in, const struct mcp_answer *a)
{
	const struct json_val *result = json_get(a->result, "result");
	const struct err none = { ERR_INVALID, "the task has ended without a result" };

	if (json_type(result) != JSON_OBJECT) {
		mcp_pending_fail(p, &none);
		return;
	}
	mcp_answer_finish(p, &(struct mcp_answer){
				     .result = result,
				     .text = json_raw_member(a->text, a->result, "result"),
			     });
}

static void task_fail(struct mcp_pending *p, const struct json_val *error)
{
	const struct err none = { ERR_INVALID, "the task has failed without an error" };
	int64_t code = RPC_INTERNAL_ERROR;

	if (json_type(error) != JSON_OBJECT) {
		mcp_pending_fail(p, &none);
		return;
	}
	json_int64(json_get(error, "code"), &code);
	if (code < INT32_MIN || code > INT32_MAX)
		code = RPC_INTERNAL_ERROR;
	mcp_pending_end(p, &(struct mcp_answer){ .fault = error, .code = (int)code });
}

static void take_state(struct mcp_pending *p, struct mcp_in *in, const struct mcp_answer *a)
{
	const struct err cancelled = { ERR_CANCELLED, "the server has cancelled the task" };
	struct str status = json_str(json_get(a->result, "status"));
	bool modern = is_modern(p);
	char room[MCP_SAID_MAX];
	struct err e;

	read_times(p, a->result);
	if (str_is(status, "working")) {
		p->task->has_result = false;
		mcp_ask_drop_missing(p, NULL);
		if (!p->ended)
			poll_in(p, p->task->poll_ms);
	} else if (str_is(status, "cancelled")) {
		mcp_pending_fail(p, &cancelled);
	} else if (str_is(status, "input_required") && modern) {
		task_ask(p, in, a->result);
	} else if (str_is(status, "completed") && modern) {
		task_finish(p, in, a);
	} else if (str_is(status, "failed") && modern) {
		task_fail(p, json_get(a->result, "error"));
	} else if (str_is(status, "input_required") || str_is(status, "completed") ||
		   str_is(status, "failed")) {
		/* 2025-11-25: questions, result and error all come by tasks/result */
		p->task->has_result = true;
		poll_in(p, 0);
		mcp_follow_go_on(p);
	} else {
		err_set(&e, ERR_INVALID, "the status of the task is \"%.*s\"",
			STR_ARG(mcp_said(status, room)));
		give_up(p, &e);
	}
}

void mcp_follow_take(struct mcp_pending *p, struct mcp_in *in, const struct mcp_answer *a)
{
	const struct err unknown = { ERR_INVALID, "the server's word of the task is of an unknown "
						  "resultType" };
	const struct json_val *type = json_get(a->result, "resultType");

	p->task->failures = 0;
	if (a->fault) {
		if (!mcp_answer_retries(p, a))
			mcp_pending_end(p, a);
		return;
	}
	if (is_modern(p) && type && !str_is(json_str(type), "complete") &&
	    !str_is(json_str(type), "task")) {
		give_up(p, &unknown);
		return;
	}
	switch (p->step) {
	case MCP_STEP_GET:
		take_state(p, in, a);
		break;
	case MCP_STEP_UPDATE:
		mcp_ask_sent(p);
		poll_in(p, p->client->o.task_poll_min_ms);
		break;
	case MCP_STEP_RESULT:
		mcp_answer_finish(p, a);
		break;
	case MCP_STEP_REQUEST:
		break;
	}
	if (!p->ended)
		mcp_follow_go_on(p);
}

/* --- requests --- */

static int follow_new(struct mcp_pending *p, struct str id, struct err *e)
{
	if (id.n == 0 || id.n > ID_BYTES_MAX)
		return err_set(e, ERR_INVALID, "the server's task has no id that could be used");
	p->task = calloc(1, sizeof(*p->task));
	if (p->task)
		p->task->id = mem_dup(id.p, id.n);
	if (!p->task || !p->task->id)
		return err_set(e, ERR_LIMIT, "out of memory");
	p->task->id_n = id.n;
	p->task->begun_ms = mcp_client_now(p->client);
	p->task->stood_ms = p->stood_ms;
	return 0;
}

void mcp_follow_begin(struct mcp_pending *p, struct mcp_in *in, const struct json_val *result)
{
	const struct json_val *task = is_modern(p) ? result : json_get(result, "task");
	struct str status = json_str(json_get(task, "status"));
	struct str id = json_str(json_get(task, "taskId"));
	struct err e;

	if (follow_new(p, id, &e) < 0) {
		mcp_follow_free(take_ptr(p->task));
		mcp_pending_fail(p, &e);
		return;
	}
	/* the questions from before the task were answered; their keys belong to another request */
	mcp_ask_forget(p);
	read_times(p, task);
	poll_in(p, str_is(status, "working") ? p->task->poll_ms : 0);
	if (p->on_task)
		p->on_task(p->owner, mcp_follow_id(p->task));
	if (!p->ended)
		mcp_follow_go_on(p);
}

static bool waits(const struct mcp_pending *p)
{
	return p->ended || p->entry.listed || p->queued || p->refreshing;
}

uint64_t mcp_follow_due(const struct mcp_pending *p)
{
	return p->task && !waits(p) ? p->task->due_ms : UINT64_MAX;
}

void mcp_follow_go_on(struct mcp_pending *p)
{
	bool due = p->task->due_ms <= mcp_client_now(p->client);
	bool answers = p->open == 0 && mcp_ask_has_answers(p);

	if (waits(p) || (!due && (!answers || p->task->failures > 0)))
		return;
	p->step = answers ? MCP_STEP_UPDATE : p->task->has_result ? MCP_STEP_RESULT : MCP_STEP_GET;
	mcp_pending_go_on(p);
}

bool mcp_follow_survives(struct mcp_pending *p, const struct err *e)
{
	if ((e->code != ERR_TRANSPORT && e->code != ERR_IO && e->code != ERR_TIMEOUT) ||
	    p->task->failures >= FAILURES_MAX)
		return false;
	log_info("%s: a task is asked for again: %s", p->client->o.label, e->msg);
	poll_in(p, (unsigned)POLL_MS << p->task->failures);
	p->task->failures++;
	return true;
}

struct mcp_pending *mcp_follow_find(const struct mcp_client *c, struct str id)
{
	struct mcp_pending *p = id.p ? c->pendings : NULL;

	while (p && !(p->task && str_eq(mcp_follow_id(p->task), id)))
		p = p->next;
	return p;
}

void mcp_follow_hint(struct mcp_client *c, const struct json_val *params)
{
	struct mcp_pending *p = mcp_follow_find(c, json_str(json_get(params, "taskId")));
	uint64_t soon = mcp_client_now(c) + c->o.task_poll_min_ms;

	if (p && p->task->due_ms > soon)
		p->task->due_ms = soon;
}

void mcp_follow_cancel(struct mcp_pending *p)
{
	struct mcp_client *c = p->client;
	autobuf struct buf b = BUF_INIT(CANCEL_ROOM);
	struct json_writer w = json_writer(&b);
	struct err e;

	if (!mcp_client_lives(c) ||
	    (!c->profile->modern &&
	     !json_get(json_get(json_get(c->about, "capabilities"), "tasks"), "cancel")))
		return;
	json_write_object(&w);
	json_put_str(&w, "taskId", mcp_follow_id(p->task));
	json_write_object_end(&w);
	if (json_write_done(&w, &e) == 0)
		mcp_pending_inner(c, "tasks/cancel", buf_str(&b), NULL);
}
