/* resources/subscribe and resources/unsubscribe: what a legacy session watches. */
#include <stdlib.h>

#include "mcp/server/internal.h"

enum { URI_MAX = 8192 };

/* Owned URIs; one of many is found by looking at all, which is what an update does anyway. */
struct mcp_uris {
	size_t n, room;
	char *p[];
};

static size_t find(const struct mcp_uris *u, struct str uri)
{
	size_t i = 0;

	while (u && i < u->n && !str_is(uri, u->p[i]))
		i++;
	return i;
}

static bool has(const struct mcp_uris *u, struct str uri)
{
	return u && find(u, uri) < u->n;
}

bool mcp_watches(const struct mcp_session *s, struct str uri)
{
	return has(s->watched, uri);
}

void mcp_uris_free(struct mcp_uris *u)
{
	for (size_t i = 0; u && i < u->n; i++)
		free(u->p[i]);
	free(u);
}

static int add(struct mcp_session *s, struct str uri)
{
	struct mcp_uris *u = s->watched;

	if (!u || u->n == u->room) {
		size_t n = u ? u->n : 0, room = n > 0 ? n * 2 : 4;

		u = realloc(u, sizeof(*u) + room * sizeof(u->p[0]));
		if (!u)
			return -1;
		u->n = n;
		u->room = room;
		s->watched = u;
	}
	u->p[u->n] = strndup(uri.p, uri.n);
	if (!u->p[u->n])
		return -1;
	u->n++;
	return 0;
}

static int read_uri(const struct mcp_request *q, struct str *ret, struct rpc_fault *f)
{
	const struct json_val *uri = json_get(q->m->params, "uri");

	*ret = json_str(uri);
	if (json_type(uri) != JSON_STR)
		return mcp_takes("uri", "a string", uri, f);
	if (ret->n > URI_MAX || memchr(ret->p, '\0', ret->n))
		return rpc_fault_set(f, RPC_INVALID_PARAMS,
				     "uri takes at most %d bytes, and no NUL", URI_MAX);
	return 0;
}

int mcp_subscribe(const struct mcp_request *q, struct rpc_fault *f)
{
	struct mcp_session *s = q->s;
	struct str uri;

	if (read_uri(q, &uri, f) < 0)
		return -1;
	if (!has(s->watched, uri)) {
		if (s->watched && s->watched->n >= s->server->o.subscriptions_max)
			return mcp_over_limit(f, "one subscription too many",
					      s->server->o.subscriptions_max);
		if (add(s, uri) < 0)
			return mcp_over_limit(f, "out of memory", 0);
	}
	return mcp_answer_empty(q);
}

int mcp_unsubscribe(const struct mcp_request *q, struct rpc_fault *f)
{
	struct mcp_uris *u = q->s->watched;
	struct str uri;

	if (read_uri(q, &uri, f) < 0)
		return -1;
	if (has(u, uri)) {
		size_t i = find(u, uri);

		free(u->p[i]);
		u->p[i] = u->p[--u->n];
	}
	return mcp_answer_empty(q);
}
