/* The lists, in pages. A cursor is the name (or URI) of the last entry sent, so it stays valid when
 * the list changes between two pages. It is base64, so that clients do not rely on that. */
#include "base/base64.h"
#include "mcp/server/internal.h"

enum { CURSOR_MAX = 4096 };

/* --- pages --- */

struct page {
	size_t from, to, n;
};

/* Writes a page of a list of n entries; key(list, i) is what a cursor to entry i holds. */
static int list_cut(const struct mcp_request *q, const void *list, size_t n,
		    const char *(*key)(const void *list, size_t i), struct page *ret,
		    struct rpc_fault *f)
{
	const struct json_val *cursor = json_get(q->m->params, "cursor");
	autobuf struct buf last = BUF_INIT(CURSOR_MAX);
	size_t page = q->s->server->o.page;
	struct err e;

	*ret = (struct page){ .n = n };
	if (cursor && json_type(cursor) != JSON_STR)
		return mcp_takes("cursor", "a string", cursor, f);
	if (cursor) {
		if (base64_decode(&last, json_str(cursor), &e) == 0) {
			for (; ret->from < n; ret->from++) {
				if (str_is(buf_str(&last), key(list, ret->from)))
					break;
			}
		} else {
			ret->from = n;
		}
		if (ret->from++ >= n)
			return rpc_fault_set(f, RPC_INVALID_PARAMS,
					     "cursor takes the nextCursor of an answer to %.*s",
					     STR_ARG(q->m->method));
	}
	ret->to = n - ret->from > page ? ret->from + page : n;
	return 0;
}

static int close_list(const struct mcp_request *q, struct json_writer *w, const char *next)
{
	const struct mcp_server_options *o = &q->s->server->o;

	json_write_array_end(w);
	if (next)
		json_put_base64(w, "nextCursor", str_of(next));
	mcp_write_cache(w, q->profile, o->ttl_ms, o->cache_public);
	return mcp_answer_end(q, w);
}

/* --- the four lists --- */

/* The entries: from the handler's list function, else from the offer. Then the method. */
#define OF(what, row)                                                                              \
	const struct mcp_##row *const *mcp_##what##_of(struct mcp_session *s, size_t *ret_n)       \
	{                                                                                          \
		const struct mcp_server *srv = s->server;                                          \
                                                                                                   \
		*ret_n = 0;                                                                        \
		if (srv->o.handler->what)                                                          \
			return srv->o.handler->what(srv->o.owner, s, ret_n);                       \
		*ret_n = srv->o.offer.what##_n;                                                    \
		return srv->what;                                                                  \
	}
#define LIST(what, member, row, key, all_of)                                                       \
	static const char *row##_key(const void *list, size_t i)                                   \
	{                                                                                          \
		return ((const struct mcp_##row *const *)list)[i]->key;                            \
	}                                                                                          \
                                                                                                   \
	int mcp_##what##_list(const struct mcp_request *q, struct rpc_fault *f)                    \
	{                                                                                          \
		size_t n = 0;                                                                      \
		const struct mcp_##row *const *all = all_of(q->s, &n);                             \
		struct json_writer *w;                                                             \
		struct page page;                                                                  \
                                                                                                   \
		if (list_cut(q, all, n, row##_key, &page, f) < 0)                                  \
			return -1;                                                                 \
		w = mcp_answer_begin(q);                                                           \
		json_put_array(w, member);                                                         \
		for (size_t i = page.from; i < page.to; i++)                                       \
			mcp_write_##row(w, q->profile, all[i]);                                    \
		return close_list(q, w, page.to < n ? all[page.to - 1]->key : NULL);               \
	}

OF(tools, tool)
OF(resources, resource)
OF(templates, template)
OF(prompts, prompt)

static const struct mcp_tool *const *tools_shown(struct mcp_session *s, size_t *ret_n)
{
	const struct mcp_server_options *o = &s->server->o;

	return o->handler->shown ? o->handler->shown(o->owner, s, ret_n) : mcp_tools_of(s, ret_n);
}

LIST(tools, "tools", tool, name, tools_shown)
LIST(resources, "resources", resource, uri, mcp_resources_of)
LIST(templates, "resourceTemplates", template, uri_template, mcp_templates_of)
LIST(prompts, "prompts", prompt, name, mcp_prompts_of)
