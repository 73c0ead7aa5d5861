/*
 * Legacy sessions, in a table by id and in a list by last use. A session is busy while a request is
 * unanswered or being answered; it is in use while it is busy or a client has a GET stream. A
 * session that is not in use ends after a time. If a principal has too many, the one that was
 * unused longest ends, even with GET streams, but never a busy one.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "mcp/transport/internal.h"

static void link_newest(struct mcp_http_session *s)
{
	struct mcp_http *h = s->http;

	s->newer = NULL;
	s->older = h->newest;
	*(h->newest ? &h->newest->newer : &h->oldest) = s;
	h->newest = s;
}

static void unlink_session(struct mcp_http_session *s)
{
	struct mcp_http *h = s->http;

	*(s->older ? &s->older->newer : &h->oldest) = s->newer;
	*(s->newer ? &s->newer->older : &h->newest) = s->older;
}

void mcp_http_session_use(struct mcp_http_session *s)
{
	s->used_ms = clock_coarse_ms();
	unlink_session(s);
	link_newest(s);
}

static bool is_busy(const struct mcp_http_session *s)
{
	if (mcp_session_open(s->core) > 0)
		return true;
	for (const struct mcp_flow *f = s->flows; f; f = f->next) {
		if (f->state != MCP_FLOW_AWAY && !f->listens)
			return true;
	}
	return false;
}

static bool is_used(const struct mcp_http_session *s)
{
	for (const struct mcp_flow *f = s->flows; f; f = f->next) {
		if (f->state == MCP_FLOW_OPEN)
			return true;
	}
	return is_busy(s);
}

static struct mcp_http_session *find_idle(struct mcp_http *h, const void *who,
					  bool (*is_kept)(const struct mcp_http_session *s))
{
	struct mcp_http_session *s = h->oldest;

	while (s && (s->entry.who != who || is_kept(s)))
		s = s->newer;
	return s;
}

static void make_room(struct mcp_http *h, const void *who)
{
	struct mcp_http_session *s = find_idle(h, who, is_used) ?: find_idle(h, who, is_busy);

	if (!s)
		return;
	log_info("mcp http: an unused session ends, its principal has too many");
	mcp_http_session_end(s);
}

static struct mcp_http_session *http_session_make(struct mcp_http *h, const void *who,
						  struct err *e)
{
	struct mcp_http_session *s = calloc(1, sizeof(*s));

	if (s)
		s->core = mcp_session_new(h->server, &mcp_http_transport, s, MCP_ROAD_HTTP,
					  (void *)who);
	if (!s || !s->core) {
		free(s);
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	}
	if (mcp_ids_add(&h->ids, &s->entry, "mcp", who, e) < 0) {
		mcp_session_close(s->core);
		free(s);
		return NULL;
	}
	s->http = h;
	s->used_ms = clock_coarse_ms();
	link_newest(s);
	return s;
}

struct mcp_http_session *mcp_http_session_new(struct mcp_http *h, struct http_request *q)
{
	const void *who = http_request_principal(q);
	struct mcp_http_session *s;
	struct err e;

	if (h->ids.n >= h->o.sessions || mcp_ids_count(&h->ids, who) >= h->o.sessions_each)
		make_room(h, who);
	s = http_session_make(h, who, &e);
	if (!s) {
		http_reply_error(q, &e);
	} else if (mcp_wire_narrow(s->core, q) < 0) {
		mcp_http_session_end(s);
		return NULL;
	}
	return s;
}

struct mcp_http_session *mcp_http_session_find(struct mcp_http *h, struct str id, const void *who)
{
	return (struct mcp_http_session *)mcp_ids_find(&h->ids, id, who);
}

void mcp_http_session_end(struct mcp_http_session *s)
{
	unlink_session(s);
	mcp_session_close(take_ptr(s->core));
	while (s->flows)
		mcp_flow_free(s->flows);
	mcp_ids_remove(&s->http->ids, &s->entry); /* no event is stored for its principal now */
	free(s);
}

void mcp_http_end_of(struct mcp_http *h, const void *who)
{
	struct mcp_http_session *s = h->oldest, *next;

	for (; s; s = next) {
		next = s->newer;
		if (s->entry.who == who)
			mcp_http_session_end(s);
	}
}

bool mcp_http_session_polls(const struct mcp_http_session *s)
{
	const char *version = mcp_session_version(s->core);

	return version && strcmp(version, "2025-11-25") >= 0; /* the names are dates */
}

static void tick_flows(struct mcp_http_session *s, uint64_t now)
{
	struct mcp_flow *f = s->flows, *next;

	while (f) {
		if (mcp_flow_tick(f)) {
			f = s->flows;
			continue;
		}
		next = f->next;
		if (f->done && now - f->done_ms >= s->http->o.keep_ms) {
			mcp_store_drop(f, UINT64_MAX);
			mcp_flow_settle(f);
		}
		f = next;
	}
}

void mcp_http_sessions_tick(struct mcp_http *h)
{
	struct mcp_http_session *s = h->oldest, *next;
	uint64_t now = clock_coarse_ms();

	for (; s; s = next) {
		next = s->newer;
		tick_flows(s, now);
		if (is_used(s))
			s->used_ms = now;
		else if (now - s->used_ms >= h->o.idle_ms)
			mcp_http_session_end(s);
	}
}
