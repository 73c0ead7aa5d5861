/* `holt net`: shows and changes what a sandbox may reach. */
#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "cli/link/ask.h"
#include "cli/sandbox/net.h"

enum { HOSTS_MAX = 256, TEXT_MAX = 8192, TEXTS_MAX = 8 << 20, TRIES_MAX = 100 };

static struct str text_or(const struct json_val *v, const char *none)
{
	struct str s = json_str(v);

	return s.n ? s : str_of(none);
}

/* The HTTP rules of a host, as --allow has them. */
static int net_http(const struct json_val *host, struct buf *to, struct err *e)
{
	struct json_iter it = json_iter(json_get(host, "http"));

	while (json_next(&it)) {
		struct str then = json_str(json_get(it.val, "then"));
		struct str method = text_or(json_get(it.val, "method"), "*");
		struct str path = text_or(json_get(it.val, "path"), "*");

		if (buf_addf(to, e, "%s%.*s %.*s %.*s", to->n ? ", " : "", STR_ARG(then),
			     STR_ARG(method), STR_ARG(path)) < 0)
			return -1;
	}
	return 0;
}

static int net_show(const struct json_val *state, const char *name, struct err *e)
{
	static const char *const counts[] = { "opened", "denied", "failed", "bytes_sent",
					      "bytes_received" };
	AUTO(table_free) struct table *t = TABLE(e, "HOST", ">PORT", "HTTP");
	struct json_iter it = json_iter(json_get(state, "allow"));

	if (!t)
		return -1;
	while (json_next(&it)) {
		autobuf struct buf http = BUF_INIT(TEXT_MAX);

		if (net_http(it.val, &http, e) < 0)
			return -1;
		table_str(t, json_str(json_get(it.val, "host")));
		table_number(t, json_get(it.val, "port"), 1, 0);
		table_str(t, buf_str(&http));
	}
	table_print(t);
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		uint64_t n = 0;

		json_uint64(json_get(state, counts[i]), &n);
		fputs(i ? ", " : "", stdout);
		fputs(counts[i], stdout);
		printf(" %" PRIu64, n);
	}
	putchar('\n');
	return 0;
}

/* The grants of a sandbox, each as HOST:PORT and its HTTP rules. */
struct granted {
	const char *p[HOSTS_MAX];
	size_t n;
};

/* The text names it: with its port, or at all its ports. */
static bool same_grant(const char *granted, const char *text)
{
	size_t n = strcspn(text, " ");

	return strncmp(granted, text, n) == 0 &&
	       (!granted[n] || granted[n] == ' ' || granted[n] == ':');
}

/* The texts are on the arena. */
static int granted_read(struct granted *g, const struct json_val *state, struct arena *a,
			struct err *e)
{
	struct json_iter it = json_iter(json_get(state, "allow"));

	while (json_next(&it)) {
		autobuf struct buf http = BUF_INIT(TEXT_MAX);
		struct str name = json_str(json_get(it.val, "host"));
		char of_port[24] = "";
		uint64_t port;

		if (g->n == HOSTS_MAX)
			return err_set(e, ERR_LIMIT, "at most %d grants", HOSTS_MAX);
		if (net_http(it.val, &http, e) < 0)
			return -1;
		if (json_uint64(json_get(it.val, "port"), &port) && port)
			snprintf(of_port, sizeof(of_port), ":%" PRIu64, port);
		g->p[g->n] = arena_printf(a, e, "%.*s%s%s%.*s", STR_ARG(name), of_port,
					  http.n ? " " : "", STR_ARG(buf_str(&http)));
		if (!g->p[g->n++])
			return -1;
	}
	return 0;
}

static size_t granted_drop(struct granted *g, const char *text)
{
	size_t kept = 0, had = g->n;

	for (size_t k = 0; k < g->n; k++) {
		if (!same_grant(g->p[k], text))
			g->p[kept++] = g->p[k];
	}
	g->n = kept;
	return had - kept;
}

/* What is to change. */
struct net_words {
	const char *name;
	const char *const *hosts;
	size_t n;
};

/* One that is there gets the HTTP rules that are named now. */
static int granted_add(struct granted *g, const struct net_words *w, struct err *e)
{
	for (size_t i = 0; i < w->n; i++)
		granted_drop(g, w->hosts[i]);
	for (size_t i = 0; i < w->n; i++) {
		if (g->n == HOSTS_MAX)
			return err_set(e, ERR_LIMIT, "at most %d grants", HOSTS_MAX);
		g->p[g->n++] = w->hosts[i];
	}
	return 0;
}

/* Without a host, all. */
static int granted_remove(struct granted *g, const struct net_words *w, struct err *e)
{
	size_t gone = 0;

	if (w->n == 0)
		g->n = 0;
	for (size_t i = 0; i < w->n; i++)
		gone += granted_drop(g, w->hosts[i]);
	if (!gone && w->n)
		return err_set(e, ERR_INVALID, "%s is not granted %s", w->name, w->hosts[0]);
	return 0;
}

/* ERR_CONFLICT: it was changed since it was read as was. */
static int net_post(struct hub_link *l, const char *path, const struct granted *g,
		    const struct json_val *was, struct json_doc **ret, struct err *e)
{
	uint64_t revision = 0;
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);

	json_write_object(&w);
	hub_link_network(&w, g->p, g->n);
	if (json_uint64(json_get(was, "revision"), &revision)) {
		json_write_key(&w, "revision");
		json_write_uint(&w, revision);
	}
	json_write_object_end(&w);
	return json_write_done(&w, e) < 0 ? -1
					  : hub_link_ask(l, "POST", path, buf_str(&text), ret, e);
}

typedef int net_change_fn(struct granted *g, const struct net_words *w, struct err *e);

static int net_try(struct hub_link *l, const char *path, const struct net_words *w,
		   net_change_fn *change, struct json_doc **ret, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	AUTO(arena_free) struct arena *a = arena_new(TEXTS_MAX);
	struct granted g = { .n = 0 };

	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	return granted_read(&g, json_root(doc), a, e) < 0 || change(&g, w, e) < 0
		     ? -1
		     : net_post(l, path, &g, json_root(doc), ret, e);
}

/* Each round of those who change it at once has one that gets through. */
static int net_change(struct hub_link *l, const struct net_words *w, net_change_fn *change,
		      struct json_doc **ret, struct err *e)
{
	char path[256];
	int result = -1;

	if (hub_link_path(path, sizeof(path), w->name, "/network", e) < 0)
		return -1;
	for (int i = 0; result < 0 && i < TRIES_MAX; i++) {
		result = net_try(l, path, w, change, ret, e);
		if (e->code != ERR_CONFLICT)
			break;
	}
	return result;
}

int net_allow(struct hub_link *l, const char *name, const char *const *hosts, size_t n,
	      struct err *e)
{
	const struct net_words w = { name, hosts, n };
	AUTO(json_free) struct json_doc *changed = NULL;

	return net_change(l, &w, granted_add, &changed, e);
}

static int net_act(const struct verb_input *in, net_change_fn *change, struct err *e)
{
	const struct net_words w = { in->operands[0], (const char *const *)in->operands + 1,
				     (size_t)in->n_operands - 1 };
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *changed = NULL;
	char path[256];

	if (hub_link_path(path, sizeof(path), w.name, "/network", e) < 0 ||
	    !(l = hub_link_open(e)) || net_change(l, &w, change, &changed, e) < 0)
		return -1;
	return ((const struct ask_options *)in->options)->output == OUTPUT_JSON
		     ? hub_link_print(json_root(changed), e)
		     : net_show(json_root(changed), NULL, e);
}

static int net_allow_run(const struct verb_input *in, struct err *e)
{
	return net_act(in, granted_add, e);
}

static int net_revoke_run(const struct verb_input *in, struct err *e)
{
	return net_act(in, granted_remove, e);
}

static const struct verb net_show_verb = {
	.name = "net show",
	.usage = "NAME",
	.doc = "Show the hosts that a sandbox may reach, and its traffic.",
	.page = "holt-sandbox",
	ASK(verb_output, .of = &ask_sandbox, .more = "/network", .show = net_show),
	.min_operands = 1,
};

#define NET_WORD(name_, usage_, doc_, min_, run_)                                                  \
	{                                                                                          \
		.name = (name_), .usage = (usage_), .doc = (doc_), .page = "holt-sandbox",         \
		.options = &verb_output, .size = sizeof(struct ask_options),                       \
		.min_operands = (min_), .max_operands = HOSTS_MAX, .run = (run_),                  \
		.fail = hub_link_fail                                                              \
	}

static const struct verb net_allow_verb =
	NET_WORD("net allow", "NAME HOST[:PORT]...",
		 "Allow a sandbox to reach more hosts, at 80 and 443 or PORT.", 2, net_allow_run);
static const struct verb net_revoke_verb =
	NET_WORD("net revoke", "NAME [HOST[:PORT]...]",
		 "Revoke hosts, or all of them; connections to them end.", 1, net_revoke_run);
static const struct verb *const words[] = { &net_show_verb, &net_allow_verb, &net_revoke_verb,
					    NULL };

const struct verb net_verb = {
	.name = "net",
	.usage = "WORD NAME [HOST[:PORT]...]",
	.doc = "Show and change what a sandbox of the hub may reach.",
	.page = "holt-sandbox",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.words = words,
};
