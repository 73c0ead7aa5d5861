/*
 * The store of tasks. A task is in the table from before its client hears of it until its time to
 * live has passed, whatever happens to its session. Its call is detached from session and request.
 * When the call ends, its result is kept here, and what was only needed to run it is freed.
 *
 *	WORKING <-> ASKS	the handler has asked its client and waits (ask.c)
 *	   |          |
 *	   v          v
 *	DONE, FAULT, CANCELLED	final
 *
 * A cancelled or expired task whose handler still runs is kept, off the table, until the handler
 * ends.
 */
#include "mcp/server/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "json/document/utf8.h"

enum {
	BYTES_MAX = 256 << 20, /* bytes of all results, and of the requests of running tasks */
	SHARE = 10, /* a principal may have this fraction of all tasks */
	TASKS_MAX = 65536, /* limit of the table */
	TTL_MIN = 1000,
	MESSAGE_MAX = 1024,
};

/* --- one task --- */

static void task_free(struct mcp_task *t)
{
	if (!t)
		return;
	free(t->owner);
	free(t->message);
	free(t->result);
	free(t->fault);
	free(t);
}
AUTO_DEFINE(task_free, struct mcp_task)

bool mcp_task_has_ended(const struct mcp_task *t)
{
	return t->state != MCP_TASK_WORKING && t->state != MCP_TASK_ASKS;
}

static void set_state(struct mcp_task *t, enum mcp_task_state state)
{
	static const char *const names[] = { "working", "asks", "done", "fault", "cancelled" };

	log_debug("mcp: task %s: %s -> %s", t->id, names[t->state], names[state]);
	t->state = state;
	/* a status message from before the end does not describe the end */
	if (mcp_task_has_ended(t))
		mcp_task_set_message(t, NULL);
	mcp_task_changed(t);
}

static bool set_bytes(struct mcp_task *t, size_t n)
{
	struct mcp_tasks *all = t->server->tasks;

	if (n > t->bytes && n - t->bytes > BYTES_MAX - all->bytes)
		return false;
	all->bytes = all->bytes - t->bytes + n;
	t->bytes = n;
	return true;
}

void mcp_task_set_message(struct mcp_task *t, const char *message)
{
	struct str cut = utf8_cut(str_of(message), MESSAGE_MAX);

	free(take_ptr(t->message));
	if (message)
		t->message = strndup(cut.p, cut.n);
}

void mcp_task_set_ttl(struct mcp_task *t, unsigned ttl_ms)
{
	struct mcp_tasks *all = t->server->tasks;

	t->ttl_ms = ttl_ms < TTL_MIN	      ? TTL_MIN
		  : ttl_ms > MCP_TASK_TTL_MAX ? MCP_TASK_TTL_MAX
					      : ttl_ms;
	t->expires_ms = t->server->o.now_ms() + t->ttl_ms;
	if (t->expires_ms < all->expires_ms)
		all->expires_ms = t->expires_ms;
}

/* --- all of them --- */

static struct mcp_task *first_of(const struct mcp_server *srv)
{
	return srv->tasks ? (struct mcp_task *)inflight_first(srv->tasks->table) : NULL;
}

static struct mcp_task *next_of(const struct mcp_task *t)
{
	return (struct mcp_task *)t->entry.newer;
}

static struct mcp_tasks *tasks_of(struct mcp_server *srv)
{
	struct mcp_tasks *all = srv->tasks;

	if (all)
		return all;
	all = calloc(1, sizeof(*all));
	if (!all)
		return NULL;
	all->table = inflight_new(srv->o.tasks_max < TASKS_MAX ? srv->o.tasks_max : TASKS_MAX);
	all->expires_ms = UINT64_MAX;
	if (!all->table)
		free(take_ptr(all));
	srv->tasks = all;
	return all;
}

/* A call that still runs keeps t. */
static void expire(struct mcp_task *t)
{
	log_debug("mcp: task %s has had its time", t->id);
	mcp_task_cancel(t);
	set_bytes(t, 0);
	inflight_remove(t->server->tasks->table, &t->entry);
	if (!t->call)
		task_free(t);
}

static struct mcp_task *find_expired(struct mcp_server *srv, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (struct mcp_task *t = first_of(srv); t; t = next_of(t)) {
		if (t->expires_ms <= now)
			return t;
		next = t->expires_ms < next ? t->expires_ms : next;
	}
	srv->tasks->expires_ms = next;
	return NULL;
}

void mcp_tasks_purge(struct mcp_server *srv)
{
	uint64_t now = srv->o.now_ms();
	struct mcp_task *t;

	if (!srv->tasks || now < srv->tasks->expires_ms)
		return;
	while ((t = find_expired(srv, now)))
		expire(t);
}

void mcp_tasks_free(struct mcp_tasks *tasks)
{
	struct mcp_task *t;

	if (!tasks)
		return;
	while ((t = (struct mcp_task *)inflight_first(tasks->table)))
		expire(t);
	inflight_free(tasks->table);
	free(tasks);
}

void mcp_server_end_tasks(struct mcp_server *srv)
{
	struct mcp_task *t = first_of(srv);

	while (t) {
		if (mcp_task_has_ended(t)) {
			t = next_of(t);
			continue;
		}
		mcp_task_cancel(t);
		t = first_of(srv);
	}
}

void mcp_tasks_count(const struct mcp_server *srv, struct mcp_counts *ret)
{
	if (!srv->tasks)
		return;
	ret->tasks = inflight_count(srv->tasks->table);
	ret->task_bytes = srv->tasks->bytes;
}

bool mcp_task_is_for(const struct mcp_task *t, const struct mcp_profile *p, struct str owner)
{
	return t->profile->modern == p->modern && str_is(owner, t->owner);
}

static struct mcp_task *task_find(const struct mcp_server *srv, const struct rpc_id *id)
{
	return srv->tasks ? (struct mcp_task *)inflight_find(srv->tasks->table, id) : NULL;
}

struct mcp_task *mcp_task_find(const struct mcp_request *q, struct rpc_fault *f)
{
	const struct json_val *v = json_get(q->m->params, "taskId");
	struct mcp_task *t = NULL;
	struct rpc_id id;

	if (json_type(v) != JSON_STR) {
		mcp_takes("taskId", "a string", v, f);
		return NULL;
	}
	mcp_tasks_purge(q->s->server);
	if (rpc_id_read(v, &id))
		t = task_find(q->s->server, &id);
	if (t && mcp_task_is_for(t, q->profile, mcp_principal(q->s->server, q->s->data)))
		return t;
	rpc_fault_set(f, RPC_INVALID_PARAMS, "there is no task of this id; it may have expired");
	return NULL;
}

/* Does not purge, since it is called while an ending task is reported. */
bool mcp_task_is_seen(struct mcp_session *s, struct str id)
{
	autobuf struct buf text = BUF_INIT(RPC_ID_MAX);
	struct json_writer w = json_writer(&text);
	const struct mcp_task *t;
	struct rpc_id key;
	struct err e;

	json_write_str(&w, id);
	if (json_write_done(&w, &e) < 0)
		return false;
	memcpy(key.json, text.p, text.n);
	key.n = (unsigned short)text.n;
	t = task_find(s->server, &key);
	return t && t->profile->modern && str_is(mcp_principal(s->server, s->data), t->owner);
}

/* --- into the store --- */

static int check_room(struct mcp_server *srv, struct str owner, struct err *e)
{
	const struct mcp_tasks *all = tasks_of(srv);
	unsigned share = srv->o.tasks_max / SHARE + (srv->o.tasks_max % SHARE != 0), n = 0;

	if (!all)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (const struct mcp_task *t = first_of(srv); t; t = next_of(t))
		n += str_is(owner, t->owner);
	if (n >= share)
		return err_set(e, ERR_LIMIT, "%u tasks are kept for this client", n);
	return 0;
}

static struct mcp_task *task_new(struct mcp_call *c, struct err *e)
{
	struct str owner = mcp_principal(c->server, c->data);
	AUTO(task_free) struct mcp_task *t = calloc(1, sizeof(*t));

	if (t)
		t->owner = strndup(owner.p ? owner.p : "", owner.n);
	if (!t || !t->owner)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	t->server = c->server;
	t->call = c;
	t->profile = c->profile;
	t->session = c->session->number;
	t->serial = ++c->server->tasks->made;
	t->made_ms = t->changed_ms = c->server->o.wall_ms();
	t->poll_ms = c->server->o.task_poll_ms;
	id_make(t->id, "task");
	return take_ptr(t);
}

static int list(struct mcp_task *t, struct err *e)
{
	struct rpc_fault f;
	struct rpc_id id;

	id.n = (unsigned short)snprintf(id.json, sizeof(id.json), "\"%s\"", t->id);
	if (!set_bytes(t, json_footprint(t->call->in->doc)))
		return err_set(e, ERR_LIMIT, "the tasks that are kept take %d bytes", BYTES_MAX);
	if (inflight_add(t->server->tasks->table, &t->entry, &id, &f) == 0)
		return 0;
	set_bytes(t, 0);
	return err_set(e, ERR_LIMIT, "%u tasks are kept", t->server->o.tasks_max);
}

struct mcp_task *mcp_task_add(struct mcp_call *c, struct err *e)
{
	AUTO(task_free) struct mcp_task *t = NULL;

	mcp_tasks_purge(c->server);
	if (check_room(c->server, mcp_principal(c->server, c->data), e) < 0)
		return NULL;
	t = task_new(c, e);
	if (!t || list(t, e) < 0)
		return NULL;
	return take_ptr(t);
}

/* --- while it runs --- */

void mcp_task_asks(struct mcp_call *c)
{
	set_state(c->task, MCP_TASK_ASKS);
	mcp_task_send_questions(c->task);
}

void mcp_task_asks_others(struct mcp_call *c)
{
	if (c->task)
		mcp_task_send_questions(c->task);
}

void mcp_task_goes_on(struct mcp_call *c)
{
	set_state(c->task, MCP_TASK_WORKING);
}

void mcp_task_send_questions(struct mcp_task *t)
{
	struct err e;

	if (t->profile->modern || t->state != MCP_TASK_ASKS)
		return;
	for (size_t i = 0; i < MCP_TASK_WAITERS; i++) {
		const struct mcp_call *w = t->waiters[i];

		if (!w)
			continue;
		if (mcp_ask_send(t->call, w->session, w->in->stream, &e) < 0)
			log_error("mcp: task %s: %s", t->id, e.msg);
		return;
	}
}

/* --- its end --- */

static void deliver_all(struct mcp_task *t)
{
	for (size_t i = 0; i < MCP_TASK_WAITERS; i++) {
		if (t->waiters[i])
			mcp_task_deliver(t, take_ptr(t->waiters[i]));
	}
}

void mcp_task_cancel(struct mcp_task *t)
{
	if (mcp_task_has_ended(t))
		return;
	set_state(t, MCP_TASK_CANCELLED);
	deliver_all(t);
	mcp_call_cancel(t->call);
}

void mcp_task_fault(struct mcp_call *c, const struct rpc_fault *f)
{
	struct mcp_task *t = c->task;

	if (mcp_task_has_ended(t))
		return;
	t->fault = malloc(sizeof(*t->fault));
	if (t->fault) {
		*t->fault = *f;
		mcp_fault_redact(c->server, t->fault);
	}
	/* without memory for the fault, it ends as cancelled */
	set_state(t, t->fault ? MCP_TASK_FAULT : MCP_TASK_CANCELLED);
	deliver_all(t);
}

void mcp_task_result(struct mcp_call *c, struct str result)
{
	struct mcp_task *t = c->task;
	struct rpc_fault f;

	if (mcp_task_has_ended(t))
		return;
	if (set_bytes(t, result.n))
		t->result = malloc(result.n + 1);
	if (!t->result) {
		rpc_fault_set(&f, RPC_INTERNAL_ERROR, "a result of %zu bytes can't be kept",
			      result.n);
		f.reason = err_info(ERR_LIMIT);
		mcp_task_fault(c, &f);
		return;
	}
	/* the result is in the buffer of the next message */
	memcpy(t->result, result.p, result.n);
	t->result_n = result.n;
	t->is_error = c->is_error;
	set_state(t, MCP_TASK_DONE);
	deliver_all(t);
}

void mcp_task_forget(struct mcp_call *c)
{
	struct mcp_task *t = c->task;

	if (!t)
		return;
	t->call = NULL;
	if (t->entry.listed)
		set_bytes(t, t->result_n);
	else
		task_free(t);
}
