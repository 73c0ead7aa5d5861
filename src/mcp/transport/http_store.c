/*
 * The events of a session in the order of sending, and within it those of each flow. Above a limit
 * the session's oldest event is dropped; above that of all sessions, the oldest of the largest
 * session of the principal that has most. If a connected flow loses an event that was not sent yet,
 * its reader is too slow and is disconnected.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "mcp/transport/internal.h"

/* Removes the flow's first event. */
static void drop_first(struct mcp_flow *f)
{
	struct mcp_http_session *s = f->session;
	struct mcp_stored *x = f->first;

	f->first = x->next;
	if (!f->first)
		f->last = NULL;
	*(x->older ? &x->older->newer : &s->oldest) = x->newer;
	*(x->newer ? &x->newer->older : &s->newest) = x->older;
	s->stored_n--;
	s->stored_bytes -= x->n;
	s->entry.owner->stored -= x->n;
	s->http->stored_bytes -= x->n;
	free(x);
}

/* Makes room: the session's oldest event is the first of its flow. */
static void drop_oldest(struct mcp_http_session *s)
{
	struct mcp_flow *f = s->oldest->flow;
	bool unsent = f->unsent == f->first;

	if (unsent) {
		log_info("mcp http: %s reads too slowly", mcp_session_client(s->core));
		f->unsent = NULL;
		mcp_flow_disconnect(f);
	}
	drop_first(f);
	mcp_flow_settle(f);
}

static bool is_full(const struct mcp_http_session *s, size_t more)
{
	const struct mcp_http_options *o = &s->http->o;

	return s->stored_n >= o->events || s->stored_bytes + more > o->store_max;
}

/* Of the principal that stores most, so that many sessions take nothing from those of others. NULL:
 * nothing is stored. */
static struct mcp_http_session *largest(const struct mcp_http *h)
{
	const struct mcp_id_owner *by = h->ids.owners;
	struct mcp_http_session *most = NULL;

	for (const struct mcp_id_owner *o = by; o; o = o->next)
		by = o->stored > by->stored ? o : by;
	for (struct mcp_http_session *s = h->oldest; s; s = s->newer) {
		if (s->entry.owner == by && s->oldest &&
		    (!most || s->stored_bytes > most->stored_bytes))
			most = s;
	}
	return most;
}

/* False: there is none for so much. */
static bool make_room(struct mcp_http_session *s, size_t n)
{
	struct mcp_http *h = s->http;
	struct mcp_http_session *most;

	while (s->oldest && is_full(s, n))
		drop_oldest(s);
	if (is_full(s, n) || n > h->o.store_all)
		return false;
	while (h->stored_bytes + n > h->o.store_all && (most = largest(h)))
		drop_oldest(most);
	return h->stored_bytes + n <= h->o.store_all;
}

static void http_store_append(struct mcp_flow *f, struct mcp_stored *x)
{
	struct mcp_http_session *s = f->session;

	x->older = s->newest;
	*(s->newest ? &s->newest->newer : &s->oldest) = x;
	s->newest = x;
	*(f->last ? &f->last->next : &f->first) = x;
	f->last = x;
	s->stored_n++;
	s->stored_bytes += x->n;
	s->entry.owner->stored += x->n;
	s->http->stored_bytes += x->n;
}

struct mcp_stored *mcp_store_add(struct mcp_flow *f, struct str text)
{
	struct mcp_http_session *s = f->session;
	struct mcp_stored *x = NULL;

	if (make_room(s, text.n))
		x = malloc(sizeof(*x) + text.n);
	if (!x) {
		log_info("mcp http: an event of %zu bytes is not stored", text.n);
		return NULL;
	}
	*x = (struct mcp_stored){ .flow = f, .number = f->events, .n = text.n };
	memcpy(x->text, text.p, text.n);
	http_store_append(f, x);
	return x;
}

void mcp_store_drop(struct mcp_flow *f, uint64_t n)
{
	while (f->first && f->first->number <= n) {
		if (f->unsent == f->first)
			f->unsent = f->first->next;
		drop_first(f);
	}
}
