/* What clients see of tasks: their members in both protocols, and that they changed. */
#include <stdio.h>
#include <time.h>

#include "mcp/server/internal.h"

enum { MS = 1000 };

static const char *status_of(const struct mcp_task *t)
{
	switch (t->state) {
	case MCP_TASK_WORKING:
		return "working";
	case MCP_TASK_ASKS:
		return "input_required";
	case MCP_TASK_DONE:
		/* a tool's own failure is a result; 2025-11-25 saw that otherwise */
		return t->is_error && !t->profile->modern ? "failed" : "completed";
	case MCP_TASK_FAULT:
		return "failed";
	case MCP_TASK_CANCELLED:
		return "cancelled";
	}
	return "failed";
}

static void put_text(struct json_writer *w, const char *key, const char *text)
{
	json_write_key(w, key);
	json_write_text(w, text);
}

static void put_uint(struct json_writer *w, const char *key, uint64_t u)
{
	json_write_key(w, key);
	json_write_uint(w, u);
}

static void put_time(struct json_writer *w, const char *key, uint64_t ms)
{
	time_t seconds = (time_t)(ms / MS);
	char text[48], day[32];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%03uZ", day, (unsigned)(ms % MS));
	put_text(w, key, text);
}

static void put_details(struct json_writer *w, const struct mcp_task *t)
{
	if (t->state == MCP_TASK_DONE) {
		json_write_key(w, "result");
		json_write_raw(w, (struct str){ t->result, t->result_n });
	} else if (t->state == MCP_TASK_FAULT) {
		json_write_key(w, "error");
		rpc_write_error(w, t->fault);
	} else if (t->state == MCP_TASK_ASKS) {
		json_write_key(w, "inputRequests");
		mcp_ask_write(w, t->call);
	}
}

void mcp_task_write(struct json_writer *w, const struct mcp_task *t, bool details)
{
	bool modern = t->profile->modern;
	const char *message = t->message		 ? t->message
			    : t->state == MCP_TASK_FAULT ? t->fault->message
							 : NULL;

	put_text(w, "taskId", t->id);
	put_text(w, "status", status_of(t));
	if (message)
		put_text(w, "statusMessage", message);
	put_time(w, "createdAt", t->made_ms);
	put_time(w, "lastUpdatedAt", t->changed_ms);
	put_uint(w, modern ? "ttlMs" : "ttl", t->ttl_ms);
	put_uint(w, modern ? "pollIntervalMs" : "pollInterval", t->poll_ms);
	if (details && modern)
		put_details(w, t);
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

static void write_members(struct json_writer *w, void *task)
{
	mcp_task_write(w, task, true);
}

void mcp_task_changed(struct mcp_task *t)
{
	t->changed_ms = t->server->o.wall_ms();
	if (t->profile->modern)
		mcp_listen_task(t->server, str_of(t->id), "notifications/tasks", write_members, t);
	else
		notify_session(t);
}

void mcp_task_write_related(struct json_writer *w, const struct mcp_call *c)
{
	if (!c->task || c->profile->modern)
		return;
	json_write_key(w, "_meta");
	json_write_object(w);
	json_write_key(w, MCP_META_TASK);
	json_write_object(w);
	put_text(w, "taskId", c->task->id);
	json_write_object_end(w);
	json_write_object_end(w);
}
