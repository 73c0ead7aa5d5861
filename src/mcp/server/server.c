#include "mcp/server/server.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "mcp/server/internal.h"

enum {
	PAGE = 100,
	HELD_MAX = 64 << 20,
	REPLY_MAX = 64 << 20,
	SUBSCRIPTIONS_MAX = 1000,
	LISTENS_MAX = 32,
	ASKS_MAX = 16,
	PROGRESS_MS = 100,
	ASK_MS = 10 * 60 * 1000,
	STATE_MS = 30 * 60 * 1000,
	TASKS_MAX = 1000,
	TASK_TTL_MS = 60 * 60 * 1000,
	TASK_POLL_MS = 1000,
	INFO_MAX = 64 << 10,
};

static uint64_t wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void fill_options(struct mcp_server_options *o)
{
	static const struct mcp_handler none = { .tools = NULL };
	const struct {
		unsigned *at, value;
	} defaults[] = {
		{ &o->inflight_max, INFLIGHT_MAX_DEFAULT },
		{ &o->subscriptions_max, SUBSCRIPTIONS_MAX },
		{ &o->listens_max, LISTENS_MAX },
		{ &o->asks_max, ASKS_MAX },
		{ &o->progress_ms, PROGRESS_MS },
		{ &o->ask_ms, ASK_MS },
		{ &o->state_ms, STATE_MS },
		{ &o->tasks_max, TASKS_MAX },
		{ &o->task_ttl_ms, TASK_TTL_MS },
		{ &o->task_poll_ms, TASK_POLL_MS },
	};

	for (size_t i = 0; i < ARRAY_LEN(defaults); i++) {
		if (*defaults[i].at == 0)
			*defaults[i].at = defaults[i].value;
	}
	o->page = o->page ? o->page : PAGE;
	o->held_max = o->held_max ? o->held_max : HELD_MAX;
	o->reply_max = o->reply_max ? o->reply_max : REPLY_MAX;
	o->handler = o->handler ? o->handler : &none;
	o->now_ms = o->now_ms ? o->now_ms : clock_ms;
	o->wall_ms = o->wall_ms ? o->wall_ms : wall_ms;
}

/* serverInfo for the _meta of every modern result: only what identifies the server. The rest of it
 * is in the answer to server/discover. */
static int write_info(struct mcp_server *srv, struct err *e)
{
	autobuf struct buf b = BUF_INIT(INFO_MAX);
	struct json_writer w = json_writer(&b);

	json_put_object(&w, MCP_META_SERVER);
	mcp_put_text(&w, "name", srv->o.name);
	mcp_put_text(&w, "title", srv->o.title);
	mcp_put_text(&w, "version", srv->o.version);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	srv->info = buf_take(&b);
	return 0;
}

static int check_rows(const struct mcp_offer *offer, struct err *e)
{
	for (size_t i = 0; i < offer->tools_n; i++) {
		if (mcp_tool_prepare(&offer->tools[i], e) < 0)
			return -1;
	}
	for (size_t i = 0; i < offer->resources_n; i++) {
		const struct mcp_resource *r = &offer->resources[i];

		if (!r->name)
			return err_set(e, ERR_BUG, "a resource needs a name");
		if (mcp_uri_check(r->name, r->uri, e) < 0 || mcp_icons_check(&r->icons, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < offer->templates_n; i++) {
		if (!offer->templates[i].uri_template || !offer->templates[i].name)
			return err_set(e, ERR_BUG, "a template needs a uri_template and a name");
		if (mcp_icons_check(&offer->templates[i].icons, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < offer->prompts_n; i++) {
		if (!offer->prompts[i].name)
			return err_set(e, ERR_BUG, "a prompt needs a name");
		if (mcp_icons_check(&offer->prompts[i].icons, e) < 0)
			return -1;
	}
	return 0;
}

/* An offer is an array of structures; lists are arrays of pointers to them. */
#define POINT_TO(srv, what)                                                                        \
	({                                                                                         \
		const struct mcp_offer *offer_ = &(srv)->o.offer;                                  \
                                                                                                   \
		(srv)->what = calloc(offer_->what##_n + 1, sizeof(*(srv)->what));                  \
		for (size_t i = 0; (srv)->what && i < offer_->what##_n; i++)                       \
			(srv)->what[i] = &offer_->what[i];                                         \
		(srv)->what != NULL;                                                               \
	})

struct mcp_server *mcp_server_new(const struct mcp_server_options *o, struct err *e)
{
	AUTO(mcp_server_free) struct mcp_server *srv = NULL;

	if (!o->name || !o->version)
		return err_set(e, ERR_BUG, "an MCP server needs a name and a version"), NULL;
	if ((o->website && mcp_uri_check("the website", o->website, e) < 0) ||
	    mcp_icons_check(&o->icons, e) < 0)
		return NULL;
	srv = calloc(1, sizeof(*srv));
	if (!srv)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	srv->o = *o;
	fill_options(&srv->o);
	srv->out = BUF_INIT(srv->o.reply_max);
	srv->spare = BUF_INIT(MCP_FAULT_ROOM);
	if (!buf_reserve(&srv->spare, MCP_FAULT_ROOM, e) || write_info(srv, e) < 0)
		return NULL;
	if (!POINT_TO(srv, tools) || !POINT_TO(srv, resources) || !POINT_TO(srv, templates) ||
	    !POINT_TO(srv, prompts))
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	return check_rows(&srv->o.offer, e) < 0 ? NULL : take_ptr(srv);
}

void mcp_server_tick(struct mcp_server *srv)
{
	mcp_ask_tick(srv);
	mcp_tasks_purge(srv);
}

void mcp_server_counts(const struct mcp_server *srv, struct mcp_counts *ret)
{
	*ret = (struct mcp_counts){ .strays = srv->strays };
	for (const struct mcp_session *s = srv->sessions; s; s = s->next)
		ret->sessions++;
	mcp_tasks_count(srv, ret);
}

void mcp_server_free(struct mcp_server *srv)
{
	if (!srv)
		return;
	mcp_tasks_free(srv->tasks);
	mcp_seal_free(srv->seal);
	spare_fini(&srv->spare_call);
	spare_fini(&srv->spare_inbound);
	spare_fini(&srv->spare_session);
	free(srv->room);
	for (size_t i = 0; i < srv->o.offer.tools_n; i++)
		mcp_tool_release(&srv->o.offer.tools[i]);
	buf_fini(&srv->out);
	buf_fini(&srv->spare);
	free(srv->tools);
	free(srv->resources);
	free(srv->templates);
	free(srv->prompts);
	free(srv->info);
	free(srv);
}
