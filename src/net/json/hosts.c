#include "net/json/hosts.h"

#include <stdio.h>

#include "base/buf.h"

enum { TEXT_MAX = NET_RULE_TEXT + 8 + NET_HTTP_EACH * (NET_HTTP_TEXT + 2) };

const char *const network_mode_names[NETWORK_MODES] = { "none", "bridge" };

static const struct field http_fields[] = {
	FIELD(struct network_http, method, .min = 1, .max = NET_METHOD_MAX - 1,
	      .doc = "Such as GET; any if absent."),
	FIELD(struct network_http, path, .min = 1, .max = NET_PATTERN_MAX - 1,
	      .doc = "Decoded and without the query; a * at its end is any rest. Any if absent."),
	FIELD_ENUM(struct network_http, then, net_http_then_names,
		   .def = DEFAULT_ENUM(NET_HTTP_ALLOW), .doc = "ask: a person is asked."),
};
static const struct field_table http_table = FIELD_TABLE(struct network_http, http_fields);

static const struct field host_fields[] = {
	NETWORK_HOST_ROWS,
	FIELD_OBJECTS(struct network_host, http, http_table, .max = NET_HTTP_EACH,
		      .has = FIELD_HAS(struct network_host, has_http),
		      .doc = "HTTP requests that may be made: the first that matches decides, and "
			     "what none matches is denied. All may if absent."),
};
const struct field_table network_host_table = FIELD_TABLE(struct network_host, host_fields);

static const struct field wish_fields[] = { NETWORK_MODE_ROW(struct network_wish),
					    NETWORK_ALLOW_ROW(struct network_wish) };
const struct field_table network_wish_table = FIELD_TABLE(struct network_wish, wish_fields);

int network_host_rule(struct str text, struct net_rule *ret, struct err *e)
{
	return net_is_service(text) ? net_rule_parse_service(text, STR_LIT("1"), ret, e)
				    : net_rule_parse(text, true, ret, e);
}

int network_host_http(const struct network_host *h, struct net_http_rule ret[NET_HTTP_EACH],
		      struct err *e)
{
	for (size_t i = 0; i < h->http.n; i++) {
		const struct network_http *q = &h->http.p[i];

		if (net_http_make(q->then, q->method, q->path, &ret[i], e) < 0)
			return err_wrap(e, "http[%zu]", i);
	}
	return 0;
}

char *network_host_text(const struct network_host *h, struct arena *a, struct err *e)
{
	autobuf struct buf b = BUF_INIT(TEXT_MAX);
	struct net_http_rule http[NET_HTTP_EACH];
	char text[NET_HTTP_TEXT];

	if (network_host_http(h, http, e) < 0 ||
	    buf_addf(&b, e, h->port ? "%.*s:%u" : "%.*s", STR_ARG(h->host), h->port) < 0)
		return NULL;
	for (size_t i = 0; i < h->http.n; i++) {
		net_http_print(&http[i], text);
		if (buf_addf(&b, e, "%s%s", i ? ", " : " ", text) < 0)
			return NULL;
	}
	return arena_dup(a, buf_str(&b), e);
}

/* ---- lists --------------------------------------------------------------------------------- */

/* The rules' own texts, so that equal grants have one digest. */
static int http_write(const struct net_http_rule *http, size_t n, struct arena *a,
		      struct network_host *ret, struct err *e)
{
	struct network_http *p = arena_array(a, n, sizeof(*p), e);

	for (size_t i = 0; p && i < n; i++) {
		const char *method = arena_dup(a, str_of(http[i].method), e);
		const char *path = arena_dup(a, str_of(http[i].pattern), e);

		if (!method || !path)
			return -1;
		p[i] = (struct network_http){ http[i].method[0] ? str_of(method) : STR_NONE,
					      str_of(path), (enum net_http_then)http[i].then };
	}
	ret->http.p = p;
	ret->http.n = p ? n : 0;
	ret->has_http = ret->http.n > 0;
	return p ? 0 : -1;
}

/* One of no port is two. */
static int list_add(struct network_list *to, struct str host, uint32_t port,
		    const struct net_http_rule *http, size_t n_http, struct err *e)
{
	static const uint16_t web[] = { 80, 443 };
	char text[NET_RULE_TEXT + 8], *copy;
	struct net_rule r = { .port = (uint16_t)port };
	struct network_host one = { .host = STR_NONE };

	snprintf(text, sizeof(text), port ? "%.*s:%u" : "%.*s", STR_CUT(host, NET_RULE_TEXT - 8),
		 port);
	if (network_host_rule(str_of(text), &r, e) < 0 ||
	    http_write(http, n_http, to->arena, &one, e) < 0)
		return -1;
	for (size_t k = 0; k < (r.port || r.kind == NET_RULE_CIDR ? 1 : ARRAY_LEN(web)); k++) {
		struct net_rule bare = r;

		if (to->n == NETWORK_HOSTS_MAX * 2)
			return err_set(e, ERR_LIMIT, "network: at most %d grants",
				       NETWORK_HOSTS_MAX * 2);
		bare.port = 0;
		net_rule_print(&bare, text);
		copy = arena_dup(to->arena, str_of(text), e);
		if (!copy)
			return -1;
		one.host = str_of(copy);
		one.port = r.port || r.kind == NET_RULE_CIDR ? r.port : web[k];
		to->p[to->n++] = one;
	}
	return 0;
}

int network_list_init(struct network_list *l, struct arena *a, struct err *e)
{
	*l = (struct network_list){ .p = arena_array(a, NETWORK_HOSTS_MAX * 2, sizeof(*l->p), e),
				    .arena = a };
	return l->p ? 0 : -1;
}

int network_list_add_texts(struct network_list *l, const char *member, const struct field_strs *of,
			   struct err *e)
{
	struct net_http_rule http[NET_HTTP_EACH];

	for (size_t i = 0; i < of->n; i++) {
		struct str host;
		size_t n;

		if (net_http_split(of->p[i], &host, http, NET_HTTP_EACH, &n, e) < 0 ||
		    list_add(l, host, 0, http, n, e) < 0)
			return err_wrap(e, "network.%s[%zu]", member, i);
	}
	return 0;
}

int network_list_add(struct network_list *l, const struct network_hosts *of, struct err *e)
{
	struct net_http_rule http[NET_HTTP_EACH];

	for (size_t i = 0; i < of->n; i++) {
		const struct network_host *h = &of->p[i];

		if (network_host_http(h, http, e) < 0 ||
		    list_add(l, h->host, h->port, http, h->http.n, e) < 0)
			return err_wrap(e, "network.allow[%zu]", i);
	}
	return 0;
}

int network_mode_check(bool has_mode, enum network_mode mode, size_t n, struct err *e)
{
	if (has_mode && mode == NETWORK_NONE && n)
		return err_set(e, ERR_INVALID,
			       "network.mode: none allows nothing, and hosts are "
			       "listed: use bridge");
	return 0;
}

int network_wish_normalize(struct network_wish *w, struct arena *a, struct err *e)
{
	struct network_list l;

	if (network_mode_check(w->has_mode, w->mode, w->allow.n, e) < 0 ||
	    network_list_init(&l, a, e) < 0 || network_list_add(&l, &w->allow, e) < 0)
		return -1;
	*w = (struct network_wish){ .has_mode = true,
				    .mode = l.n ? NETWORK_BRIDGE : NETWORK_NONE,
				    .allow = { l.p, l.n } };
	return 0;
}
