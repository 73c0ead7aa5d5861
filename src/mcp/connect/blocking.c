#include "mcp/connect/blocking.h"

#include <stdlib.h>

#include "base/log.h"
#include "json/document/write.h"
#include "loop/await.h"

enum { ANSWER_MAX = 64 << 20 };

struct mcp_sync {
	uv_loop_t loop;
	uv_timer_t timer;
	struct loop_await await;
	unsigned handles; /* of these two, while they are being closed */
	struct mcp_client_handler handler;
	struct mcp_link *link;
	bool ready, over, closed;
	bool waited; /* mcp_sync_wait() must return */
	struct err why; /* the reason of the end */
};

/* The state of a call that waits. */
struct wait {
	bool done;
	struct mcp_sync_answer *ret;
	const struct mcp_request_spec *spec;
	struct err e; /* why there is no answer */
	bool failed;
};

/* The connection whose loop runs in blocking_run(); callbacks come only then. */
static _Thread_local struct mcp_sync *running;

static void blocking_run(struct mcp_sync *s, const bool *done)
{
	struct mcp_sync *outer = running;

	running = s;
	loop_await(&s->await, done);
	running = outer;
}

/* --- the beginning and the end --- */

static void on_ready(void *owner)
{
	running->ready = true;
}

static void on_over(void *owner, const struct err *e)
{
	running->ready = true; /* it will not get any more ready */
	running->over = running->waited = true;
	running->why = *e;
}

static void on_closed(void *owner)
{
	struct mcp_sync *s = owner;

	s->closed = true;
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct mcp_sync *s = handle->data;

	s->handles--;
}

void mcp_sync_close(struct mcp_sync *s)
{
	if (!s)
		return;
	if (s->link) {
		mcp_link_close(take_ptr(s->link), on_closed, s);
		blocking_run(s, &s->closed);
	}
	s->handles = 2;
	s->await.prepare.data = s;
	uv_close((uv_handle_t *)&s->timer, on_handle_closed);
	uv_close((uv_handle_t *)&s->await.prepare, on_handle_closed);
	while (s->handles > 0)
		uv_run(&s->loop, UV_RUN_ONCE);
	if (uv_loop_close(&s->loop) == 0)
		free(s);
	else /* freed, it would be used once more */
		log_error("mcp sync: a handle of the loop is still open, which is left as it is");
}

static int connect_to(struct mcp_sync *s, const struct mcp_target *t,
		      const struct mcp_client_options *o, struct err *e)
{
	struct mcp_client_options ours = *o;

	if (o->handler)
		s->handler = *o->handler;
	s->handler.ready = on_ready;
	s->handler.over = on_over;
	ours.handler = &s->handler;
	s->link = mcp_connect(&s->loop, t, &ours, e);
	if (!s->link)
		return -1;
	blocking_run(s, &s->ready);
	if (s->over)
		*e = s->why;
	return s->over ? -1 : 0;
}

struct mcp_sync *mcp_sync_connect(const struct mcp_target *t, const struct mcp_client_options *o,
				  struct err *e)
{
	struct mcp_sync *s = calloc(1, sizeof(*s));

	if (!s || uv_loop_init(&s->loop) < 0) {
		free(s);
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	}
	uv_timer_init(&s->loop, &s->timer);
	loop_await_init(&s->await, &s->loop);
	s->timer.data = s;
	if (connect_to(s, t, o, e) == 0)
		return s;
	mcp_sync_close(s);
	return NULL;
}

struct mcp_client *mcp_sync_client(struct mcp_sync *s)
{
	return mcp_link_client(s->link);
}

struct mcp_found mcp_sync_found(const struct mcp_sync *s)
{
	return mcp_link_found(s->link);
}

/* --- requests --- */

void mcp_sync_answer_fini(struct mcp_sync_answer *a)
{
	json_free(take_ptr(a->doc));
}

static void blocking_fail(struct wait *w, const struct err *e)
{
	w->e = *e;
	w->failed = true;
}

/* Copies a borrowed answer for the caller. */
static void blocking_keep(struct wait *w, struct str text, bool is_fault)
{
	const struct json_options any = { .bytes = ANSWER_MAX, .values = 1 << 24, .depth = 1024 };
	struct err e;

	w->ret->is_fault = is_fault;
	w->ret->doc = json_parse(text, &any, &e);
	if (!w->ret->doc)
		blocking_fail(w, &e);
}

static void keep_val(struct wait *w, const struct json_val *v)
{
	autobuf struct buf text = BUF_INIT(ANSWER_MAX);
	struct json_writer out = json_writer(&text);
	struct err e;

	json_write_val(&out, v);
	if (json_write_done(&out, &e) < 0)
		blocking_fail(w, &e);
	else
		blocking_keep(w, buf_str(&text), true);
}

static void blocking_take(struct wait *w, const struct mcp_answer *a)
{
	w->done = true;
	if (a->e)
		blocking_fail(w, a->e);
	else if (a->fault)
		keep_val(w, a->fault);
	else
		blocking_keep(w, a->text, false);
}

static void on_done(void *owner, const struct mcp_answer *a)
{
	blocking_take(owner, a);
}

static void on_progress(void *owner, const struct mcp_progress *p)
{
	const struct wait *w = owner;

	w->spec->on_progress(w->spec->owner, p);
}

static void on_task(void *owner, struct str id)
{
	const struct wait *w = owner;

	w->spec->on_task(w->spec->owner, id);
}

static int wait_for(struct mcp_sync *s, struct wait *w, struct err *e)
{
	blocking_run(s, &w->done);
	if (w->failed)
		*e = w->e;
	return w->failed ? -1 : 0;
}

/* tool: NULL for other methods. */
static int blocking_request(struct mcp_sync *s, const char *tool, struct str arguments,
			    const struct mcp_request_spec *spec, struct mcp_sync_answer *ret,
			    struct err *e)
{
	struct wait w = { .ret = ret, .spec = spec };
	struct mcp_request_spec ours = *spec;
	struct mcp_pending *p;

	*ret = (struct mcp_sync_answer){ NULL };
	ours.on_done = on_done;
	ours.on_progress = spec->on_progress ? on_progress : NULL;
	ours.on_task = spec->on_task ? on_task : NULL;
	ours.owner = &w;
	p = tool ? mcp_client_call(mcp_sync_client(s), tool, arguments, &ours, e)
		 : mcp_client_request(mcp_sync_client(s), &ours, e);
	return p ? wait_for(s, &w, e) : -1;
}

int mcp_sync_request(struct mcp_sync *s, const struct mcp_request_spec *spec,
		     struct mcp_sync_answer *ret, struct err *e)
{
	return blocking_request(s, NULL, STR_NONE, spec, ret, e);
}

int mcp_sync_call(struct mcp_sync *s, const char *tool, struct str arguments,
		  struct mcp_sync_answer *ret, struct err *e)
{
	const struct mcp_request_spec plain = { .method = "tools/call" };

	return blocking_request(s, tool, arguments, &plain, ret, e);
}

static void on_listed(void *owner, const struct mcp_listed *l)
{
	autobuf struct buf text = BUF_INIT(ANSWER_MAX);
	struct json_writer out = json_writer(&text);
	struct wait *w = owner;
	struct err e;

	if (l->failed) {
		blocking_take(w, l->failed);
		return;
	}
	w->done = true;
	json_write_array(&out);
	for (size_t i = 0; i < l->n; i++)
		json_write_val(&out, l->items[i]);
	json_write_array_end(&out);
	if (json_write_done(&out, &e) < 0)
		blocking_fail(w, &e);
	else
		blocking_keep(w, buf_str(&text), false);
}

int mcp_sync_list(struct mcp_sync *s, const char *what, struct mcp_sync_answer *ret, struct err *e)
{
	struct wait w = { .ret = ret };

	*ret = (struct mcp_sync_answer){ NULL };
	return mcp_client_list(mcp_sync_client(s), what, on_listed, &w, e) ? wait_for(s, &w, e)
									   : -1;
}

/* --- waiting --- */

static void on_late(uv_timer_t *timer)
{
	struct mcp_sync *s = timer->data;

	s->waited = true;
}

int mcp_sync_wait(struct mcp_sync *s, unsigned ms, struct err *e)
{
	s->waited = s->over;
	uv_timer_start(&s->timer, on_late, ms, 0);
	blocking_run(s, &s->waited);
	uv_timer_stop(&s->timer);
	if (s->over)
		*e = s->why;
	return s->over ? -1 : 0;
}
