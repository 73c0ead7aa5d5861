/*
 * Lists, over all their pages. Pages are kept until the last one has come, so the owner gets one
 * list. Number and size are limited. A server that repeats a cursor is refused, since it would go
 * on for ever. MCP 2026-07-28, server/utilities/pagination.
 */
#include "mcp/client/internal.h"

#include <stdlib.h>

enum { PAGES_MAX = 1000 };

static const struct row {
	const char *what, *method;
	const char *named; /* a member that each entry must have; entries without it are left out */
} rows[] = {
	{ "tools", "tools/list", "name" },
	{ "resources", "resources/list", "uri" },
	{ "resourceTemplates", "resources/templates/list", "uriTemplate" },
	{ "prompts", "prompts/list", "name" },
	{ "tasks", "tasks/list", "taskId" },
};

struct mcp_listing {
	const struct row *row;
	void (*on_done)(void *owner, const struct mcp_listed *l);
	void *owner;
	struct mcp_in *pages[PAGES_MAX];
	uint64_t cursors[PAGES_MAX]; /* hashes of the cursors so far */
	size_t pages_n;
	struct str cursor; /* of the next page; borrowed from the last kept page */
	const struct json_val **items;
	size_t n, room;
	size_t dropped;
};

struct str mcp_listing_cursor(const struct mcp_listing *l)
{
	return l->cursor;
}

void mcp_listing_free(struct mcp_listing *l)
{
	for (size_t i = 0; l && i < l->pages_n; i++)
		mcp_in_unref(l->pages[i]);
	if (l)
		free(l->items);
	free(l);
}

/* --- pages --- */

/* FNV-1a, 64 bits: an accidental collision of two cursors is not to be expected. */
static uint64_t list_hash(struct str s)
{
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * 1099511628211u;
	return h;
}

static int add_item(struct mcp_listing *l, const struct json_val *v, struct err *e)
{
	if (l->n == l->room) {
		size_t room = l->room > 0 ? 2 * l->room : 64;
		const struct json_val **more = realloc(l->items, room * sizeof(*more));

		if (!more)
			return err_set(e, ERR_LIMIT, "out of memory");
		l->items = more;
		l->room = room;
	}
	l->items[l->n++] = v;
	return 0;
}

static int add_page(struct mcp_pending *p, struct mcp_in *in, const struct json_val *items,
		    struct err *e)
{
	struct mcp_listing *l = p->listing;
	struct json_iter it = json_iter(items);

	if (l->pages_n == PAGES_MAX)
		return err_set(e, ERR_LIMIT, "the list has more than %d pages", PAGES_MAX);
	if (json_len(items) > p->client->o.list_max - l->n)
		return err_set(e, ERR_LIMIT, "the list has more than %u entries",
			       p->client->o.list_max);
	if (mcp_in_keep(in, e) < 0)
		return -1;
	l->pages[l->pages_n++] = in;
	while (json_next(&it)) {
		if (json_type(json_get(it.val, l->row->named)) != JSON_STR)
			l->dropped++;
		else if (add_item(l, it.val, e) < 0)
			return -1;
	}
	return 0;
}

/* 1 if there is a next page. */
static int read_cursor(struct mcp_listing *l, const struct json_val *v, struct err *e)
{
	struct str cursor = json_str(v);
	uint64_t h = list_hash(cursor);

	if (!v || json_type(v) == JSON_NULL)
		return 0;
	if (!cursor.p)
		return err_set(e, ERR_INVALID, "nextCursor takes a string, not %s",
			       json_type_name(json_type(v)));
	/* some servers send this for "no next page" */
	if (cursor.n == 0)
		return 0;
	for (size_t i = 1; i < l->pages_n; i++) {
		if (l->cursors[i] == h)
			return err_set(e, ERR_INVALID,
				       "the list has no end: a cursor came for the second time");
	}
	if (l->pages_n < PAGES_MAX)
		l->cursors[l->pages_n] = h;
	l->cursor = cursor;
	return 1;
}

/* --- the whole --- */

static int list_learn(struct mcp_pending *p, struct err *e)
{
	struct mcp_listing *l = p->listing;
	size_t n = 0;
	int dropped;

	if (strcmp(l->row->what, "tools") != 0)
		return 0;
	dropped = mcp_tools_learn(p->client, l->items, l->n, true, e);
	if (dropped < 0)
		return -1;
	l->dropped += (size_t)dropped;
	for (size_t i = 0; i < l->n; i++) {
		if (l->items[i])
			l->items[n++] = l->items[i];
	}
	l->n = n;
	return 0;
}

/* 0 if the list is complete, 1 if there is more. */
static int take_page(struct mcp_pending *p, struct mcp_in *in, const struct mcp_answer *a,
		     struct err *e)
{
	int rc = mcp_result_type(p, a->result, e);

	if (rc < 0 || mcp_result_check(p, a->result, e) < 0 ||
	    add_page(p, in, json_get(a->result, p->listing->row->what), e) < 0)
		return -1;
	rc = read_cursor(p->listing, json_get(a->result, "nextCursor"), e);
	return rc == 0 ? list_learn(p, e) : rc;
}

static void list_answered(struct mcp_pending *p, struct mcp_in *in, const struct mcp_answer *a)
{
	struct err e;
	int rc;

	if (a->fault) {
		if (!mcp_answer_retries(p, a))
			mcp_pending_end(p, a);
		return;
	}
	rc = take_page(p, in, a, &e);
	if (rc < 0)
		mcp_pending_fail(p, &e);
	else if (rc > 0)
		mcp_pending_go_on(p);
	else
		mcp_pending_end(p, a);
}

static void done(struct mcp_pending *p, const struct mcp_answer *a)
{
	const struct mcp_listing *l = p->listing;
	struct mcp_listed list = { .dropped = l->dropped };

	if (a->result) {
		list.items = l->items;
		list.n = l->n;
	} else {
		list.failed = a;
	}
	if (l->on_done)
		l->on_done(l->owner, &list);
}

/* --- its start --- */

static struct mcp_pending *list_start(struct mcp_client *c, const struct row *row, bool inner,
				      void (*on_done)(void *owner, const struct mcp_listed *l),
				      void *owner, struct err *e)
{
	AUTO(mcp_pending_free)
	struct mcp_pending *p = mcp_pending_new(c, row->method, STR_NONE, e);

	if (!p)
		return NULL;
	p->listing = calloc(1, sizeof(*p->listing));
	if (!p->listing)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	p->inner = inner;
	p->answered = list_answered;
	p->done = done;
	p->listing->row = row;
	p->listing->on_done = on_done;
	p->listing->owner = owner;
	return mcp_pending_start(p, e) < 0 ? NULL : take_ptr(p);
}

struct mcp_pending *mcp_list_tools(struct mcp_client *c,
				   void (*on_done)(void *owner, const struct mcp_listed *l),
				   struct err *e)
{
	return list_start(c, &rows[0], true, on_done, c, e);
}

struct mcp_pending *mcp_client_list(struct mcp_client *c, const char *what,
				    void (*on_done)(void *owner, const struct mcp_listed *l),
				    void *owner, struct err *e)
{
	AUTO(mcp_client_leave) struct mcp_client *inside = mcp_client_enter(c);
	const struct row *row = NULL;

	for (size_t i = 0; i < ARRAY_LEN(rows) && !row; i++)
		row = strcmp(what, rows[i].what) == 0 ? &rows[i] : NULL;
	if (!row)
		return err_set(e, ERR_INVALID, "there is no list of %s", what), NULL;
	if (mcp_client_may_ask(inside, row->method, e) < 0)
		return NULL;
	return list_start(c, row, false, on_done, owner, e);
}
