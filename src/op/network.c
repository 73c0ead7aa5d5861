#include "op/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/guard.h"
#include "config/config.h"
#include "guard/policy/policy.h"
#include "hub/net/net.h"
#include "hub/sandbox/sandbox.h"
#include "net/wire/wire.h"
#include "op/ops.h"

#define NETWORK_REVISION_MAX ((UINT64_C(1) << 53) - 1) /* each number of JSON is exact so far */

enum {
	HOST_CHARS_MAX = 8192, /* with HTTP rules */
	TEXT_MAX = NW_RULES_MAX * NET_RULE_TEXT + NW_HTTP_MAX * NET_HTTP_TEXT,
};

const char *const egress_names[EGRESSES] = { "deny", "allow" };

/* ---- the request --------------------------------------------------------------------------- */

/* Rows for the door with the least room. */
static const struct field short_host_fields[] = { NETWORK_HOST_ROWS };
static const struct field_table short_host_table = FIELD_TABLE(struct network_host,
							       short_host_fields);
static const struct field grant_fields[] = {
	FIELD_OBJECTS(struct network_request, allow, short_host_table, .max = NETWORK_HOSTS_MAX,
		      .doc = "Hosts it may reach."),
};
const struct field_table network_grant_table = FIELD_TABLE(struct network_request, grant_fields);

static const struct field contract_fields[] = { NETWORK_MODE_ROW(struct network_request),
						NETWORK_ALLOW_ROW(struct network_request) };
const struct field_table network_contract_table = FIELD_TABLE(struct network_request,
							      contract_fields);

static const struct field request_fields[] = {
	NETWORK_MODE_ROW(struct network_request),
	NETWORK_ALLOW_ROW(struct network_request),
	FIELD(struct network_request, block, .def = DEFAULT_BOOL(true),
	      .doc = "Block all network access but what is allowed."),
	FIELD_ENUM(
		struct network_request, egress, egress_names, .def = DEFAULT_ENUM(EGRESS_DENY),
		.doc = "What happens to all that is not granted: always deny; allow is refused."),
	FIELD(struct network_request, allow_domains, .max = NETWORK_HOSTS_MAX, .item_min = 1,
	      .item_max = HOST_CHARS_MAX,
	      .doc = "Hosts that may be reached, as HOST or HOST:PORT; another form of allow."),
	FIELD(struct network_request, allow_cidrs, .max = NETWORK_HOSTS_MAX, .item_min = 1,
	      .item_max = HOST_CHARS_MAX,
	      .doc = "Address ranges that may be reached, only through the proxy at "
		     "127.0.0.1:3128."),
	FIELD_ENUM(struct network_request, inbound, egress_names, .def = DEFAULT_ENUM(EGRESS_DENY),
		   .doc = "Always deny; ports are exposed by another operation."),
	FIELD(struct network_request, inbound_cidrs, .max = NETWORK_HOSTS_MAX,
	      .doc = "Must be empty."),
};
const struct field_table network_request_table = FIELD_TABLE(struct network_request,
							     request_fields);

int network_normalize(struct network_request *q, struct arena *a, struct err *e)
{
	struct network_list to;
	size_t asked = q->allow.n + q->allow_domains.n + q->allow_cidrs.n;

	if (q->egress != EGRESS_DENY)
		return err_set(e, ERR_INVALID,
			       "network.egress: hosts are granted by name: use allow");
	if (q->inbound != EGRESS_DENY || q->inbound_cidrs.n)
		return err_set(e, ERR_INVALID, "network.%s: expose a port instead",
			       q->inbound_cidrs.n ? "inbound_cidrs" : "inbound");
	if (network_mode_check(q->has_mode, q->mode, asked, e) < 0 ||
	    network_list_init(&to, a, e) < 0 || network_list_add(&to, &q->allow, e) < 0 ||
	    network_list_add_texts(&to, "allow_domains", &q->allow_domains, e) < 0 ||
	    network_list_add_texts(&to, "allow_cidrs", &q->allow_cidrs, e) < 0)
		return -1;
	*q = (struct network_request){
		.has_mode = true,
		.mode = to.n ? NETWORK_BRIDGE : NETWORK_NONE,
		.block = true,
		.allow = { to.p, to.n },
	};
	return 0;
}

/* ---- who may grant what -------------------------------------------------------------------- */

static const struct config_preset *network_preset(const struct config_file *f, struct str name)
{
	for (size_t i = 0; f && i < f->network.presets.n; i++) {
		if (str_eq(f->network.presets.p[i].name, name))
			return &f->network.presets.p[i];
	}
	return NULL;
}

static int network_preset_rules(const struct config_preset *p, struct net_grant *to, struct err *e)
{
	for (size_t i = 0; i < p->rules.n; i++) {
		if (network_rules(NULL, p->rules.p[i], to, e) < 0)
			return err_wrap(e, "preset %.*s", STR_CUT(p->name, CONFIG_NAME_MAX));
	}
	return 0;
}

static int network_add(struct net_rule *r, const struct net_http_rule *http, size_t n,
		       struct net_grant *to, struct err *e)
{
	static const uint16_t web[] = { 80, 443 };

	if (r->port || r->kind == NET_RULE_CIDR)
		return net_grant_add(to, r, http, n, e);
	for (size_t i = 0; i < ARRAY_LEN(web); i++) {
		r->port = web[i];
		if (net_grant_add(to, r, http, n, e) < 0)
			return -1;
	}
	return 0;
}

int network_rules(const struct config_file *f, struct str text, struct net_grant *to, struct err *e)
{
	const struct config_preset *preset = network_preset(f, text);
	struct net_http_rule http[NET_HTTP_EACH];
	struct net_rule r;
	struct str host;
	size_t n;

	if (preset)
		return network_preset_rules(preset, to, e);
	return net_http_split(text, &host, http, NET_HTTP_EACH, &n, e) < 0 ||
			       network_host_rule(host, &r, e) < 0
		     ? -1
		     : network_add(&r, http, n, to, e);
}

static int network_rules_all(const struct config_file *f, const struct field_strs *texts,
			     struct net_grant *to, struct err *e)
{
	for (size_t i = 0; i < texts->n; i++) {
		if (network_rules(f, texts->p[i], to, e) < 0)
			return -1;
	}
	return 0;
}

int network_secret_hosts(const struct config_secret *s, struct net_rule ret[NW_SECRET_HOSTS_MAX],
			 size_t *ret_n, struct err *e)
{
	if (s->hosts.n > NW_SECRET_HOSTS_MAX)
		return err_set(e, ERR_INVALID, "a secret has at most %d hosts",
			       NW_SECRET_HOSTS_MAX);
	for (size_t i = 0; i < s->hosts.n; i++) {
		if (net_is_service(s->hosts.p[i]))
			return err_set(e, ERR_INVALID, "%.*s is no host for a secret",
				       STR_CUT(s->hosts.p[i], 100));
		if (net_rule_parse(s->hosts.p[i], false, &ret[i], e) < 0)
			return -1;
		if (!ret[i].port)
			ret[i].port = 443;
	}
	*ret_n = s->hosts.n;
	return 0;
}

/* "https://HOST[:PORT]/PATH" */
static int network_login_url(struct str url, struct nw_exchange *ret, struct err *e)
{
	static const char https[] = "https://";
	struct str rest = url, host;
	struct net_rule r;

	if (!str_starts(url, https))
		return err_set(e, ERR_INVALID, "%.*s is no https URL", STR_CUT(url, 100));
	rest.p += strlen(https);
	rest.n -= strlen(https);
	host = str_before(rest, '/');
	rest.p += host.n;
	rest.n -= host.n;
	if (net_is_service(host) || net_rule_parse(host, false, &r, e) < 0 ||
	    r.kind != NET_RULE_NAME)
		return err_set(e, ERR_INVALID, "%.*s names no host", STR_CUT(url, 100));
	if (rest.n == 0 || rest.n >= sizeof(ret->path) || memchr(rest.p, '?', rest.n) ||
	    memchr(rest.p, '#', rest.n) || memchr(rest.p, '%', rest.n))
		return err_set(e, ERR_INVALID,
			       "%.*s has no path of up to %zu bytes without query and escapes",
			       STR_CUT(url, 100), sizeof(ret->path) - 1);
	*ret = (struct nw_exchange){ .port = r.port ? r.port : 443 };
	memcpy(ret->host, r.host, sizeof(ret->host));
	memcpy(ret->path, rest.p, rest.n);
	return 0;
}

int network_login_urls(const struct config_secret *s, struct nw_exchange ret[NW_EXCHANGES_MAX],
		       size_t *ret_n, struct err *e)
{
	*ret_n = 0;
	for (size_t i = 0; i < s->login.urls.n && i < NW_EXCHANGES_MAX; i++) {
		struct nw_exchange *x = &ret[*ret_n];

		if (network_login_url(s->login.urls.p[i], x, e) < 0)
			return -1;
		snprintf(x->name, sizeof(x->name), "%.*s", STR_ARG(s->name));
		++*ret_n;
	}
	return 0;
}

bool network_reaches(struct str text, const struct net_rule *hosts, size_t n)
{
	struct net_rule r;
	struct err e;

	while (text.n) {
		const char *space = memchr(text.p, ' ', text.n);
		const struct str one = { text.p, space ? (size_t)(space - text.p) : text.n };

		for (size_t i = 0; network_host_rule(one, &r, &e) == 0 && i < n; i++) {
			if (net_rule_meets(&r, &hosts[i]))
				return true;
		}
		text.p += one.n + (space != NULL);
		text.n -= one.n + (space != NULL);
	}
	return false;
}

int network_check_file(const struct config_file *f, struct err *e)
{
	struct net_rule hosts[NW_SECRET_HOSTS_MAX];
	struct nw_exchange urls[NW_EXCHANGES_MAX];
	autogrant struct net_grant room = { .n = 0 };
	size_t n;

	if (net_grant_init(&room, e) < 0)
		return -1;
	for (size_t i = 0; i < f->network.presets.n; i++) {
		room.n = room.n_http = 0;
		if (network_preset_rules(&f->network.presets.p[i], &room, e) < 0)
			return err_wrap(e, "/network/presets");
	}
	for (size_t i = 0; i < f->secrets.n; i++) {
		if (network_secret_hosts(&f->secrets.p[i], hosts, &n, e) < 0)
			return err_wrap(e, "/secrets/%.*s/hosts",
					STR_CUT(f->secrets.p[i].name, 40));
		if (network_login_urls(&f->secrets.p[i], urls, &n, e) < 0)
			return err_wrap(e, "/secrets/%.*s/login/urls",
					STR_CUT(f->secrets.p[i].name, 40));
	}
	for (size_t i = 0; i < f->principals.n; i++) {
		const struct config_principal *p = &f->principals.p[i];

		room.n = room.n_http = 0;
		if (network_rules_all(f, &p->network, &room, e) < 0)
			return err_wrap(e, "/principals/%.*s/network", STR_CUT(p->name, 40));
	}
	for (size_t i = 0; i < f->profiles.n; i++) {
		const struct config_profile *p = &f->profiles.p[i];

		room.n = room.n_http = 0;
		if (network_rules_all(f, &p->network, &room, e) < 0)
			return err_wrap(e, "/profiles/%.*s/network", STR_CUT(p->name, 40));
	}
	for (size_t i = 0; i < f->mcp_servers.n + f->agents.n; i++) {
		const struct config_server *s = i < f->mcp_servers.n
						      ? &f->mcp_servers.p[i]
						      : &f->agents.p[i - f->mcp_servers.n].program;

		room.n = room.n_http = 0;
		if (network_rules_all(f, &s->sandbox.network, &room, e) < 0)
			return err_wrap(e, "/%s/%.*s/sandbox/network", s->section,
					STR_ARG(s->name));
	}
	return 0;
}

/* who_says: of the list "most", for the message. */
int network_check_within(const struct net_grant *g, const struct net_grant *most,
			 const char *who_says, struct err *e)
{
	char text[NET_RULE_TEXT], rule[NET_RULE_TEXT], first[NET_HTTP_TEXT];
	size_t n;
	int of;

	for (size_t i = 0; i < g->n; i++) {
		if (net_grant_is_within(g, i, most, &of))
			continue;
		net_rule_print(&g->rules[i], text);
		if (of < 0)
			return err_set(e, ERR_DENIED, "network: %s grant %.100s to no sandbox",
				       who_says, text);
		net_rule_print(&most->rules[of], rule);
		net_http_print(net_grant_http(most, (size_t)of, &n), first);
		return err_set(e, ERR_DENIED,
			       "network: %s grant %.100s only with the HTTP rules of %.100s: "
			       "%.100s%s",
			       who_says, text, rule, first, n > 1 ? ", ..." : "");
	}
	return 0;
}

static const struct config_file *network_file(const struct call *c)
{
	const struct policy *p = call_guard(c)->policy;

	return p ? config_file(p->config) : NULL;
}

/* Every list of the operator's file that is about who asks has to allow it. */
int network_check(struct call *c, const struct net_grant *g, struct err *e)
{
	const struct config_file *f = network_file(c);
	autogrant struct net_grant list = { .n = 0 };
	const struct principal *who = call_principal(c);
	const struct config_principal *p;
	char who_says[128];
	size_t at = 0;

	if (!g->n || !f)
		return 0;
	if (net_grant_init(&list, e) < 0)
		return -1;
	snprintf(who_says, sizeof(who_says),
		 "the policy (principals of the operator's configuration) lets %.60s", who->name);
	while ((p = policy_next(f, principal_who(who), principal_conversation(who), &at))) {
		list.n = list.n_http = 0;
		if (p->has_network && (network_rules_all(f, &p->network, &list, e) < 0 ||
				       network_check_within(g, &list, who_says, e) < 0))
			return -1;
	}
	return 0;
}

int network_listed(const struct config_file *f, struct str who, struct net_grant *to, struct err *e)
{
	const struct config_principal *p;
	size_t at = 0;

	while (f && (p = policy_next(f, who, STR_NONE, &at))) {
		if (p->has_network && network_rules_all(f, &p->network, to, e) < 0)
			return -1;
	}
	return 0;
}

static int network_print(struct call *c, const struct net_grant *g, struct str *ret, struct err *e)
{
	autobuf struct buf b = BUF_INIT(TEXT_MAX);
	char *copy;

	if (net_grant_print(g, &b, e) < 0)
		return -1;
	copy = arena_dup(call_arena(c), buf_str(&b), e);
	*ret = copy ? str_of(copy) : STR_NONE;
	return copy ? 0 : -1;
}

/* The rules of one host. Normalized, one without a port is two; a preset is the same both times. */
static int network_host_rules(const struct config_file *f, const struct network_host *h,
			      struct net_grant *to, struct err *e)
{
	const struct config_preset *preset = network_preset(f, h->host);
	struct net_http_rule http[NET_HTTP_EACH];
	char text[NET_RULE_TEXT];
	struct net_rule r;

	if (preset && h->http.n)
		return err_set(e, ERR_INVALID, "network: the preset %.*s has HTTP rules of its own",
			       STR_CUT(h->host, CONFIG_NAME_MAX));
	if (preset)
		return network_preset_rules(preset, to, e);
	snprintf(text, sizeof(text), h->port ? "%.*s:%u" : "%.*s", STR_ARG(h->host), h->port);
	return network_host_rule(str_of(text), &r, e) < 0 || network_host_http(h, http, e) < 0
		     ? -1
		     : network_add(&r, http, h->http.n, to, e);
}

int network_text(struct call *c, const struct network_request *q, struct str *ret, struct err *e)
{
	const struct config_file *f = network_file(c);
	autogrant struct net_grant g = { .n = 0 };

	if (q->allow.n && net_grant_init(&g, e) < 0)
		return -1;
	for (size_t i = 0; i < q->allow.n; i++) {
		if (network_host_rules(f, &q->allow.p[i], &g, e) < 0)
			return -1;
	}
	if (!call_is_operator(c) &&
	    network_check_within(&g, call_network(c), "the operator (holt serve --allow) lets you",
				 e) < 0)
		return -1;
	if (network_check(c, &g, e) < 0)
		return -1;
	return network_print(c, &g, ret, e);
}

/* ---- views --------------------------------------------------------------------------------- */

static const struct field view_fields[] = {
	FIELD(struct network_view, block, .flags = FIELD_REQUIRED,
	      .doc = "It has no network access but what is allowed."),
	FIELD_ENUM(struct network_view, egress, egress_names, .flags = FIELD_REQUIRED,
		   .doc = "What happens to all that is not granted."),
	FIELD_ENUM(struct network_view, mode, network_mode_names, .flags = FIELD_REQUIRED,
		   .doc = "none: nothing is granted."),
	NETWORK_ALLOW_ROW(struct network_view),
};
const struct field_table network_view_table = FIELD_TABLE(struct network_view, view_fields);

static void view_host(struct str word, struct network_host *ret)
{
	const char *colon = memrchr(word.p, ':', word.n);
	bool port = colon && word.p[word.n - 1] != ']';

	*ret = (struct network_host){
		.host = { word.p, port ? (size_t)(colon - word.p) : word.n },
		.port = port ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0,
	};
}

/* "=deny,POST,/x*" */
static int view_http(struct str word, struct network_http *ret, struct err *e)
{
	struct net_http_rule r;
	const char *method = memchr(word.p, ',', word.n);
	const char *path = method ? memchr(method + 1, ',', word.n - (size_t)(method + 1 - word.p))
				  : NULL;

	if (!path || net_http_parse_word(word, &r, e) < 0)
		return -1;
	*ret = (struct network_http){
		.method = { method + 1, r.method[0] ? (size_t)(path - method - 1) : 0 },
		.path = { path + 1, word.n - (size_t)(path + 1 - word.p) },
		.then = (enum net_http_then)r.then,
	};
	if (!ret->method.n)
		ret->method = STR_NONE;
	return 0;
}

int network_view(struct call *c, struct str text, struct network_view *ret, struct err *e)
{
	struct arena *a = call_arena(c);
	struct network_host *hosts = arena_array(a, NW_RULES_MAX, sizeof(*hosts), e);
	struct network_http *http = arena_array(a, NW_HTTP_MAX, sizeof(*http), e);
	size_t n = 0, n_http = 0;

	if (!hosts || !http)
		return -1;
	while (text.n) {
		const char *space = memchr(text.p, ' ', text.n);
		const struct str word = { text.p, space ? (size_t)(space - text.p) : text.n };

		if (!str_starts(word, "=") && n < NW_RULES_MAX) {
			view_host(word, &hosts[n++]);
		} else if (n > 0 && n_http < NW_HTTP_MAX) {
			if (view_http(word, &http[n_http], e) < 0)
				return -1;
			hosts[n - 1].http.p = &http[n_http++] - hosts[n - 1].http.n;
			hosts[n - 1].http.n++;
			hosts[n - 1].has_http = true;
		}
		text.p += word.n + (space != NULL);
		text.n -= word.n + (space != NULL);
	}
	*ret = NETWORK_VIEW_NONE;
	ret->mode = n ? NETWORK_BRIDGE : NETWORK_NONE;
	ret->allow = (struct network_hosts){ hosts, n };
	return 0;
}

/* ---- network.get and network.set ----------------------------------------------------------- */

static const struct field state_fields[] = {
	FIELD(struct network_state, sandbox, .flags = FIELD_REQUIRED, .doc = "Id of the sandbox."),
	FIELD_ENUM(struct network_state, mode, network_mode_names, .flags = FIELD_REQUIRED,
		   .doc = "none: nothing is granted."),
	FIELD_OBJECTS(struct network_state, allow, network_host_table, .flags = FIELD_REQUIRED,
		      .max = NW_RULES_MAX, .doc = "All hosts that can be reached."),
	FIELD(struct network_state, revision, .flags = FIELD_REQUIRED,
	      .doc = "Another after each change of what it may reach."),
	FIELD(struct network_state, opened, .flags = FIELD_REQUIRED,
	      .doc = "Connections that were allowed since the hub started."),
	FIELD(struct network_state, denied, .flags = FIELD_REQUIRED,
	      .doc = "Connections and requests that were denied."),
	FIELD(struct network_state, failed, .flags = FIELD_REQUIRED,
	      .doc = "Allowed connections that did not reach their host."),
	FIELD(struct network_state, bytes_sent, .flags = FIELD_REQUIRED,
	      .doc = "Bytes sent; up to half a second behind."),
	FIELD(struct network_state, bytes_received, .flags = FIELD_REQUIRED,
	      .doc = "Bytes received; up to half a second behind."),
};
static const struct field_table state_table = FIELD_TABLE(struct network_state, state_fields);

static void network_answer(struct call *c, struct hub_sandbox *l)
{
	struct hub_sandbox_info i;
	struct network_view v;
	struct err e = ERR_INIT;

	hub_sandbox_info(l, &i);
	if (network_view(c, i.network, &v, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_answer(c, &(struct network_state){ .sandbox = i.id,
						.mode = v.mode,
						.allow = v.allow,
						.revision = i.network_revision,
						.opened = i.network_counts->opened,
						.denied = i.network_counts->denied,
						.failed = i.network_counts->failed,
						.bytes_sent = i.network_counts->sent,
						.bytes_received = i.network_counts->received });
}

static void network_get_run(struct call *c, const void *request)
{
	const struct op_sandbox *q = request;
	struct err e = ERR_INIT;
	struct hub_sandbox *l = call_hub_sandbox(c, q->sandbox, &e);

	if (l)
		network_answer(c, l);
	else
		call_fail(c, &e);
}

const struct op network_get_op = {
	.action = "network.get",
	.doc = "Returns what a sandbox may reach, and its traffic so far.",
	.effect = OP_READ,
	.flags = OP_NO_WAKE,
	.request = &op_sandbox_table,
	.target = OP_TARGET(struct op_sandbox, sandbox),
	.result = &state_table,
	.run = network_get_run,
};

struct set_request {
	struct str sandbox;
	struct network_request network;
	uint64_t revision;
};
static const struct field set_fields[] = {
	OP_SANDBOX_ROW(struct set_request),
	FIELD_OBJECT(struct set_request, network, network_request_table, .flags = FIELD_REQUIRED,
		     .doc = "All that the sandbox may reach from now on."),
	FIELD(struct set_request, revision, .max = NETWORK_REVISION_MAX,
	      .doc = "Refuse it if the revision is another by now."),
};
static const struct field_table set_table = FIELD_TABLE(struct set_request, set_fields);

static int set_normalize(void *request, struct arena *a, struct err *e)
{
	return network_normalize(&((struct set_request *)request)->network, a, e);
}

static void network_on_set(void *arg, struct hub_sandbox *l, const struct err *err)
{
	if (err)
		call_fail(arg, err);
	else
		network_answer(arg, l);
}

static void network_set_run(struct call *c, const void *request)
{
	const struct set_request *q = request;
	struct err e = ERR_INIT;
	struct hub_sandbox *l = call_hub_sandbox(c, q->sandbox, &e);
	struct str text;

	if (l && network_text(c, &q->network, &text, &e) == 0)
		hub_sandbox_set_network_start(l, text, q->revision, network_on_set, c);
	else
		call_fail(c, &e);
}

const struct op network_set_op = {
	.action = "network.set",
	.doc = "Replaces what a sandbox may reach. Connections that stay allowed go on; "
	       "others are closed.",
	.effect = OP_ADMINISTER,
	.flags = OP_IDEMPOTENT | OP_NO_WAKE,
	.request = &set_table,
	.target = OP_TARGET(struct set_request, sandbox),
	.result = &state_table,
	.normalize = set_normalize,
	.run = network_set_run,
};
