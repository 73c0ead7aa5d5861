/* Messages during a call: progress and log messages. */
#include <math.h>
#include <stdlib.h>

#include "json/document/utf8.h"
#include "mcp/server/internal.h"

enum { PROGRESS_TEXT_MAX = 1024 };

/* The session that gets the call's notifications; NULL: none. Those of a task of 2025-11-25 belong
 * to no request. */
static struct mcp_session *session_of(const struct mcp_call *c)
{
	return c->session ? c->session : mcp_task_session(c);
}

static void notify(const struct mcp_call *c)
{
	mcp_out_notify(session_of(c), c->session ? c->in->stream : NULL);
}

/* --- progress --- */

static void send_progress(struct mcp_call *c, const char *message)
{
	struct json_writer *w = mcp_out_begin(c->server);
	struct str text = utf8_cut(str_of(message), PROGRESS_TEXT_MAX);

	rpc_write_notification(w, "notifications/progress");
	json_write_object(w);
	mcp_task_write_related(w, c);
	json_put_raw(w, "progressToken", rpc_id_str(&c->token));
	json_write_key(w, "progress");
	json_write_real(w, c->progress.value);
	if (c->progress.total > 0) {
		json_write_key(w, "total");
		json_write_real(w, c->progress.total);
	}
	if (text.p && c->profile->progress_message)
		json_put_str(w, "message", text);
	json_write_object_end(w);
	rpc_write_end(w);
	notify(c);
}

void mcp_progress_flush(struct mcp_call *c)
{
	if (!c->progress.held || !session_of(c) || !mcp_call_is_wanted(c))
		return;
	c->progress.held = false;
	send_progress(c, c->progress.message);
}

static bool may_send(const struct mcp_call *c)
{
	const struct mcp_session *s = session_of(c);
	void *stream = c->session ? c->in->stream : NULL;

	if (s->t->congested && s->t->congested(s->transport, stream))
		return false;
	return c->progress.sent_ms == 0 ||
	       s->server->o.now_ms() - c->progress.sent_ms >= s->server->o.progress_ms;
}

bool mcp_call_wants_progress(const struct mcp_call *c)
{
	return c->token.n > 0 && session_of(c);
}

void mcp_call_progress(struct mcp_call *c, double progress, double total, const char *message)
{
	if (message)
		mcp_call_task_status(c, message);
	if (!mcp_call_wants_progress(c) || !mcp_call_is_wanted(c) || !isfinite(progress) ||
	    !isfinite(total) || (c->progress.any && progress <= c->progress.value))
		return;
	c->progress.any = true;
	c->progress.value = progress;
	c->progress.total = total;
	free(take_ptr(c->progress.message));
	c->progress.held = !may_send(c);
	if (c->progress.held) {
		/* without memory it is sent without its text */
		c->progress.message = message ? strndup(message, PROGRESS_TEXT_MAX + 4) : NULL;
		return;
	}
	send_progress(c, message);
	c->progress.sent_ms = c->server->o.now_ms();
}

/* --- log messages --- */

int mcp_call_log_level(const struct mcp_call *c)
{
	const struct mcp_session *s = session_of(c);
	unsigned level = !s ? MCP_LEVEL_NONE : c->profile->modern ? c->level : s->level;

	return level >= MCP_LEVELS || !mcp_call_is_wanted(c) || !mcp_offers(s, MCP_NEEDS_LOGGING)
		     ? -1
		     : (int)level;
}

void mcp_call_log(struct mcp_call *c, enum mcp_level level, const char *logger, struct str data)
{
	int least = mcp_call_log_level(c);
	struct json_writer *w;

	if (least < 0 || (int)level < least)
		return;
	w = mcp_out_begin(c->server);
	rpc_write_notification(w, "notifications/message");
	json_write_object(w);
	mcp_task_write_related(w, c);
	json_put_text(w, "level", mcp_level_name(level));
	if (logger)
		json_put_text(w, "logger", logger);
	json_put_raw(w, "data", data);
	json_write_object_end(w);
	rpc_write_end(w);
	notify(c);
}
