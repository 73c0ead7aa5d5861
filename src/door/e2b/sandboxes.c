/* The control plane: sandboxes, their snapshots, names of templates. */
#include "door/e2b/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/when.h"
#include "door/http/routes.h"
#include "http/message/head.h"
#include "hub/core/hub.h"
#include "hub/sandbox/snapshots.h"
#include "op/label.h"
#include "op/page.h"
#include "op/sandbox.h"
#include "op/sandbox_view.h"
#include "op/snapshot.h"

enum {
	TIMEOUT_DEFAULT = 300, /* seconds */
	FORK_TIMEOUT_DEFAULT = 15,
	FORKS_MAX = 64,
	ANSWER_MAX = 16 << 20,
	DOMAIN_MAX = 300,
};

/* ---- what a sandbox looks like ------------------------------------------------------------- */

static const struct field_pair *label_of(const struct field_map *m, const char *key)
{
	for (size_t i = 0; i < m->n; i++) {
		if (str_is(m->p[i].key, key))
			return &m->p[i];
	}
	return NULL;
}

static struct str template_of(const struct sandbox_view *v)
{
	const struct field_pair *as = label_of(&v->labels, E2B_LABEL_TEMPLATE);

	return as ? as->value : v->template;
}

/* Below which its ports have names: as the client reaches this door, or localhost. */
static void domain_of(struct ask *a, char ret[DOMAIN_MAX])
{
	struct str host = a->q ? http_request_header(a->q, STR_LIT("Host")) : STR_NONE;
	struct http_authority h;
	bool own;

	if (!http_authority_parse(host, &h))
		h = (struct http_authority){ STR_LIT("localhost"), -1, false };
	own = h.host.p[0] == '[' || (h.host.p[0] >= '0' && h.host.p[0] <= '9');
	if (own)
		h.host = STR_LIT("localhost");
	if (h.port > 0)
		snprintf(ret, DOMAIN_MAX, "%.*s:%d", STR_CUT(h.host, 255), h.port);
	else
		snprintf(ret, DOMAIN_MAX, "%.*s", STR_CUT(h.host, 255));
}

static void write_sandbox(struct ask *a, struct json_writer *w, const struct sandbox_view *v)
{
	char envd[E2B_TOKEN], port[E2B_TOKEN], domain[DOMAIN_MAX];

	e2b_token(a->x, v->sandbox, v->generation, false, envd);
	e2b_token(a->x, v->sandbox, v->generation, true, port);
	domain_of(a, domain);
	json_write_object(w);
	ask_arg_str(w, "sandboxID", v->sandbox);
	ask_arg_str(w, "templateID", template_of(v));
	ask_arg_str(w, "alias", template_of(v));
	ask_arg_str(w, "clientID", STR_LIT("holt"));
	ask_arg_str(w, "envdVersion", STR_LIT(E2B_VERSION));
	ask_arg_str(w, "envdAccessToken", str_of(envd));
	ask_arg_str(w, "trafficAccessToken", str_of(port));
	ask_arg_str(w, "domain", str_of(domain));
	json_write_object_end(w);
	explicit_bzero(envd, sizeof(envd));
	explicit_bzero(port, sizeof(port));
}

/* One of the states that clients know; NULL for all others. */
static const char *state_of(const struct sandbox_view *v)
{
	switch (v->state) {
	case SANDBOX_PAUSED:
	case SANDBOX_COLD:
	case SANDBOX_STOPPED:
		return "paused";
	case SANDBOX_LOST:
	case SANDBOX_TERMINATED:
	case SANDBOX_FAILED:
		return NULL;
	default:
		return "running";
	}
}

/* One that has no end is told to have a late one. */
enum { NO_END_YEARS = 10 };

static void write_listed(struct json_writer *w, const struct sandbox_view *v)
{
	int64_t end = v->has_deadline_unix ? v->deadline_unix * 1000
					   : clock_unix_ms() + NO_END_YEARS * 365ll * 86400 * 1000;
	char ends[WHEN_MAX];

	when_text(ends, end);
	ask_arg_str(w, "sandboxID", v->sandbox);
	ask_arg_str(w, "templateID", template_of(v));
	ask_arg_str(w, "alias", template_of(v));
	ask_arg_str(w, "clientID", STR_LIT("holt"));
	ask_arg_uint(w, "cpuCount", v->limits.has_cpus ? (uint64_t)(v->limits.cpus + 0.999) : 1);
	ask_arg_uint(w, "memoryMB", v->limits.memory_mb);
	ask_arg_uint(w, "diskSizeMB", v->limits.disk_mb);
	ask_arg_str(w, "startedAt", v->created_at);
	ask_arg_str(w, "endAt", str_of(ends));
	ask_arg_str(w, "state", str_of(state_of(v)));
	ask_arg_str(w, "envdVersion", STR_LIT(E2B_VERSION));
	json_put_object(w, "metadata");
	for (size_t i = 0; i < v->labels.n; i++) {
		if (str_starts(v->labels.p[i].key, "e2b/"))
			continue;
		json_write_key_str(w, v->labels.p[i].key);
		json_write_str(w, v->labels.p[i].value);
	}
	json_write_object_end(w);
}

static void reply_sandbox(struct ask *a, int status, const struct sandbox_view *v)
{
	struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&b);

	write_sandbox(a, &w, v);
	ask_reply(a, status, &w);
}

/* ---- create -------------------------------------------------------------------------------- */

struct creating {
	struct str template; /* as it was asked for */
	uint64_t seconds;
	struct sandbox_view made;
	bool is_image;
	bool is_private; /* its ports are shown to holders of its token alone */
};

/* Requests that can't be met, and that must not be ignored. */
static const struct {
	const char *member, *why;
} cannot[] = {
	{ "mcp", "mcp: give agents Holt's own MCP door instead" },
	{ "iam", "iam: there are no workload identities here" },
	{ "volumeMounts", "volumeMounts: there are no volumes of E2B's here" },
};

static bool is_said(const struct json_val *v)
{
	enum json_type t = json_type(v);

	return t == JSON_OBJECT || t == JSON_ARRAY ? json_len(v) > 0
	     : t == JSON_BOOL			   ? json_bool(v)
						   : t != JSON_ABSENT && t != JSON_NULL;
}

static int check_create(const struct ask *a, struct creating *c, struct err *e)
{
	const struct json_val *network = json_get(a->body, "network");
	const struct json_val *open = json_get(network, "allowPublicTraffic");

	for (size_t i = 0; i < ARRAY_LEN(cannot); i++) {
		if (is_said(json_get(a->body, cannot[i].member)))
			return err_set(e, ERR_UNSUPPORTED, "%s", cannot[i].why);
	}
	if (is_said(json_get(json_get(a->body, "autoResume"), "enabled")))
		return err_set(e, ERR_UNSUPPORTED, "autoResume: connect to the sandbox instead");
	if (json_bool(json_get(a->body, "autoPause")) &&
	    (json_type(json_get(a->body, "autoPauseMemory")) != JSON_BOOL ||
	     json_bool(json_get(a->body, "autoPauseMemory"))))
		return err_set(e, ERR_UNSUPPORTED,
			       "autoPause: a pause at the timeout keeps files, not memory: ask "
			       "for onTimeout {action: 'pause', keepMemory: false}");
	if (is_said(json_get(network, "rules")) || is_said(json_get(network, "egressProxy")) ||
	    is_said(json_get(network, "maskRequestHost")))
		return err_set(e, ERR_UNSUPPORTED,
			       "network: of egress there is allowOut here; the operator's file "
			       "binds secrets to hosts");
	c->is_private = json_type(open) == JSON_BOOL && !json_bool(open);
	return 0;
}

/* Hosts are granted one by one: to deny all others needs no rule. */
static int write_network(struct json_writer *w, const struct json_val *network, struct err *e)
{
	static const struct str all[] = { STR_LIT("0.0.0.0/0"), STR_LIT("::/0") };
	struct json_iter it = json_iter(json_get(network, "denyOut"));

	while (json_next(&it)) {
		struct str rule = json_str(it.val);

		if (!str_eq(rule, all[0]) && !str_eq(rule, all[1]))
			return err_set(e, ERR_UNSUPPORTED,
				       "network.denyOut: all is denied that allowOut has not");
	}
	json_write_array(w);
	it = json_iter(json_get(network, "allowOut"));
	while (json_next(&it)) {
		if (str_eq(json_str(it.val), all[0]) || str_eq(json_str(it.val), all[1]))
			return err_set(e, ERR_UNSUPPORTED,
				       "network.allowOut: hosts are granted by name, not all");
		json_write_object(w);
		ask_arg_str(w, "host", json_str(it.val));
		json_write_object_end(w);
	}
	json_write_array_end(w);
	return 0;
}

static int write_labels(struct ask *a, const struct creating *c, struct json_writer *w,
			struct err *e)
{
	struct json_iter it = json_iter(json_get(a->body, "metadata"));

	json_put_object(w, "labels");
	while (json_next(&it)) {
		if (str_starts(it.key, "e2b/"))
			return err_set(e, ERR_INVALID, "metadata: keys with e2b/ are taken");
		json_write_key_str(w, it.key);
		json_write_val(w, it.val);
	}
	ask_arg_str(w, E2B_LABEL_TEMPLATE, c->template);
	if (c->is_private)
		ask_arg_str(w, E2B_LABEL_PRIVATE, STR_LIT("1"));
	json_write_object_end(w);
	return 0;
}

static uint64_t seconds_of(const struct ask *a, uint64_t otherwise)
{
	uint64_t seconds = otherwise;

	ask_uint(a->body, "timeout", &seconds);
	return seconds ? seconds : 1; /* 0 would be no end at all */
}

static void drop_on_done(struct ask *a, const void *result, const struct err *err)
{
}

/* Ends what was made for a request that fails or whose client left: nobody would know of it. */
static void sandboxes_drop(const struct ask *a, struct str sandbox)
{
	struct err e;
	struct ask *own = ask_new(a->x, a->who, sandbox, &e);
	struct ask_args args;

	if (!own)
		return;
	ask_enter(own);
	ask_args(own, &args, true);
	ask_call(own, &sandbox_terminate_op, &args, drop_on_done);
	ask_end_stream(own);
	ask_leave(own);
}

/* The last step: it is as it was asked for. */
static void create_on_last(struct ask *a, const void *result, const struct err *err)
{
	struct creating *c = a->state;

	if (err) {
		sandboxes_drop(a, c->made.sandbox);
		ask_fail(a, err);
	} else {
		reply_sandbox(a, 201, &c->made);
	}
}

/* Images have no such home. */
static void create_on_made(struct ask *a, const void *result, const struct err *err)
{
	struct creating *c = a->state;
	struct ask_args args;
	struct json_writer *w;

	if (err) {
		ask_fail(a, err);
		return;
	}
	c->made = *(const struct sandbox_view *)result;
	if (!c->is_image) {
		reply_sandbox(a, 201, &c->made);
		return;
	}
	a->sandbox = c->made.sandbox;
	w = ask_args(a, &args, true);
	ask_arg_str(w, "path", STR_LIT(E2B_HOME));
	ask_call(a, &files_mkdir_op, &args, create_on_last);
}

static void restore_on_made(struct ask *a, const void *result, const struct err *err)
{
	struct creating *c = a->state;
	struct ask_args args;
	struct json_writer *w;

	if (err) {
		ask_fail(a, err);
		return;
	}
	c->made = ((const struct sandboxes_view *)result)->sandboxes.p[0];
	a->sandbox = c->made.sandbox;
	w = ask_args(a, &args, true);
	ask_arg_uint(w, "seconds", c->seconds);
	ask_call(a, &sandbox_set_timeout_op, &args, create_on_last);
}

/* The sandbox that a snapshot was taken of; NULL: it is forgotten, or another principal's. */
static struct hub_sandbox *source_of(const struct ask *a, struct str snapshot)
{
	struct hub_sandboxes *all = hub_sandboxes(ops_hub(a->x->o.ops));
	struct err e;
	struct snapshot *s = snapshots_find(all, snapshot, &e);
	struct snapshot_info i = { .source = STR_NONE };
	struct hub_sandbox *l;

	if (s)
		snapshot_info(s, &i);
	l = i.source.n ? hub_sandboxes_find(all, i.source, &e) : NULL;
	return l && op_sees(a->x->o.ops, a->who, l) ? l : NULL;
}

/* A copy shows its ports to everybody where its source does, or where it is asked to; but never
 * those of a private one. */
static int check_public(struct ask *a, struct creating *c, struct str snapshot, struct err *e)
{
	const struct json_val *network = json_get(a->body, "network");
	bool asked = json_bool(json_get(network, "allowPublicTraffic"));
	struct hub_sandbox *source = source_of(a, snapshot);
	struct str ignored;
	bool is_private = source && e2b_label(source, E2B_LABEL_PRIVATE, &ignored);

	if (asked && is_private)
		return err_set(
			e, ERR_DENIED,
			"network.allowPublicTraffic: the snapshot's source does not allow it");
	if (!asked && (is_private || !source || !e2b_label(source, E2B_LABEL_TEMPLATE, &ignored)))
		c->is_private = true;
	return 0;
}

static void restore(struct ask *a, struct creating *c, struct str snapshot)
{
	const struct json_val *network = json_get(a->body, "network");
	bool has_public = json_get(network, "allowPublicTraffic") != NULL;
	struct ask_args args;
	struct json_writer *w;
	struct err e;

	if (is_said(json_get(a->body, "envVars")) || json_len(network) > has_public) {
		ask_fail_with(a, ERR_UNSUPPORTED,
			      "a sandbox of a snapshot has the environment and the network of its "
			      "source: give envs to commands");
		return;
	}
	if (check_public(a, c, snapshot, &e) < 0) {
		ask_fail(a, &e);
		return;
	}
	w = ask_args(a, &args, false);
	ask_arg_str(w, "snapshot", snapshot);
	if (write_labels(a, c, w, &e) < 0) {
		buf_fini(&args.b);
		ask_fail(a, &e);
		return;
	}
	ask_call(a, &snapshot_restore_op, &args, restore_on_made);
}

static int write_create(struct ask *a, const struct creating *c, struct str template,
			struct json_writer *w, struct err *e)
{
	const struct json_val *network = json_get(a->body, "network");
	const struct json_val *internet = json_get(a->body, "allow_internet_access");

	ask_arg_str(w, "template", template);
	ask_arg_str(w, "cwd", STR_LIT(E2B_HOME));
	ask_arg_uint(w, "ttl_seconds", c->seconds);
	if (json_type(json_get(a->body, "envVars")) == JSON_OBJECT)
		json_put_val(w, "env", json_get(a->body, "envVars"));
	if (json_bool(json_get(a->body, "autoPause")))
		ask_arg_str(w, "retention", STR_LIT("stop"));
	if (is_said(json_get(network, "allowOut")) || is_said(json_get(network, "denyOut"))) {
		json_put_object(w, "network");
		json_write_key(w, "allow");
		if (write_network(w, network, e) < 0)
			return -1;
		json_write_object_end(w);
	} else if (json_type(internet) == JSON_BOOL && !json_bool(internet)) {
		json_put_object(w, "network");
		ask_arg_str(w, "mode", STR_LIT("none"));
		json_write_object_end(w);
	}
	return write_labels(a, c, w, e);
}

static void run_create(struct ask *a)
{
	struct err e = ERR_INIT;
	struct creating *c = a->state = arena_alloc(a->arena, sizeof(*c), &e);
	struct ask_args args;
	struct json_writer *w;
	struct str template;

	if (!c || check_create(a, c, &e) < 0) {
		ask_fail(a, &e);
		return;
	}
	c->template = ask_str(a->body, "templateID");
	c->template = c->template.n ? c->template : STR_LIT("base");
	c->seconds = seconds_of(a, TIMEOUT_DEFAULT);
	template = e2b_template(a->x, c->template);
	if (str_starts(template, "snap-")) {
		restore(a, c, template);
		return;
	}
	c->is_image = !str_is(template, "host");
	w = ask_args(a, &args, false);
	if (write_create(a, c, template, w, &e) < 0) {
		buf_fini(&args.b);
		ask_fail(a, &e);
		return;
	}
	ask_call(a, &sandbox_create_op, &args, create_on_made);
}

/* ---- one sandbox --------------------------------------------------------------------------- */

static void write_info(struct ask *a, const struct sandbox_view *v)
{
	struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&b);
	char domain[DOMAIN_MAX];

	domain_of(a, domain);
	json_write_object(&w);
	write_listed(&w, v);
	ask_arg_str(&w, "domain", str_of(domain));
	ask_arg_bool(&w, "allowInternetAccess", v->network.allow.n > 0);
	json_put_object(&w, "lifecycle");
	ask_arg_str(&w, "onTimeout", str_of(v->retention == RETAIN_STOP ? "pause" : "kill"));
	ask_arg_bool(&w, "autoResume", false);
	json_write_object_end(&w);
	json_put_object(&w, "network");
	json_put_array(&w, "allowOut");
	for (size_t i = 0; i < v->network.allow.n; i++)
		json_write_str(&w, v->network.allow.p[i].host);
	json_write_array_end(&w);
	ask_arg_bool(&w, "allowPublicTraffic", !label_of(&v->labels, E2B_LABEL_PRIVATE));
	json_write_object_end(&w);
	json_write_object_end(&w);
	ask_reply(a, 200, &w);
}

/* The answer of sandbox.get. NULL: there is none, and the ask has failed. */
static const struct sandbox_view *seen(struct ask *a, const void *result, const struct err *err)
{
	if (err)
		ask_fail(a, err);
	else if (!state_of(result))
		ask_fail_with(a, ERR_SANDBOX_NOT_FOUND, "sandbox %.*s was not found",
			      STR_ARG(a->sandbox));
	return a->done ? NULL : result;
}

static void get_then(struct ask *a, bool usage, ask_then then)
{
	struct ask_args args;
	struct json_writer *w = ask_args(a, &args, true);

	ask_arg_bool(w, "usage", usage);
	ask_call(a, &sandbox_get_op, &args, then);
}

static void info_on_seen(struct ask *a, const void *result, const struct err *err)
{
	const struct sandbox_view *v = seen(a, result, err);

	if (v)
		write_info(a, v);
}

static void run_info(struct ask *a)
{
	get_then(a, false, info_on_seen);
}

/* The answer of an operation that only says that it is done. */
static void done_204(struct ask *a, const void *result, const struct err *err)
{
	if (err)
		ask_fail(a, err);
	else
		ask_reply_empty(a, 204);
}

static void run_kill(struct ask *a)
{
	struct ask_args args;

	ask_args(a, &args, true);
	ask_call(a, &sandbox_terminate_op, &args, done_204);
}

static void set_timeout(struct ask *a, uint64_t seconds, ask_then then)
{
	struct ask_args args;
	struct json_writer *w = ask_args(a, &args, true);

	ask_arg_uint(w, "seconds", seconds);
	ask_call(a, &sandbox_set_timeout_op, &args, then);
}

static void run_timeout(struct ask *a)
{
	uint64_t seconds;

	if (!ask_uint(a->body, "timeout", &seconds))
		ask_fail_with(a, ERR_INVALID, "timeout: a number of seconds");
	else
		set_timeout(a, seconds ? seconds : 1, done_204);
}

/* ---- pause and connect --------------------------------------------------------------------- */

/* A paused one waits as long as its owner may let it. */
static void pause_on_free(struct ask *a, const void *result, const struct err *err)
{
	ask_reply_empty(a, 204);
}

static void pause_on_done(struct ask *a, const void *result, const struct err *err)
{
	if (err)
		ask_fail(a, err);
	else
		set_timeout(a, 0, pause_on_free);
}

static void pause_on_seen(struct ask *a, const void *result, const struct err *err)
{
	const struct sandbox_view *v = seen(a, result, err);
	const struct json_val *memory = json_get(a->body, "memory");
	bool drops = json_type(memory) == JSON_BOOL && !json_bool(memory);
	struct ask_args args;

	if (!v)
		return;
	if (strcmp(state_of(v), "paused") == 0) {
		ask_fail_with(a, ERR_CONFLICT, "the sandbox is paused already");
		return;
	}
	ask_args(a, &args, true);
	if (drops) /* its files alone */
		ask_call(a, &sandbox_stop_op, &args, done_204);
	else
		ask_call(a, &sandbox_pause_op, &args, pause_on_done);
}

static void run_pause(struct ask *a)
{
	get_then(a, false, pause_on_seen);
}

struct connecting {
	int status;
	struct sandbox_view view;
};

static void connect_on_timeout(struct ask *a, const void *result, const struct err *err)
{
	struct connecting *c = a->state;

	if (err)
		ask_fail(a, err);
	else
		reply_sandbox(a, c->status, &c->view);
}

/* Its time to live is only extended. */
static void connect_extend(struct ask *a)
{
	struct connecting *c = a->state;
	uint64_t seconds = seconds_of(a, TIMEOUT_DEFAULT);
	int64_t until = clock_unix_ms() / 1000 + (int64_t)seconds;

	if (c->status == 200 && (!c->view.has_deadline_unix || c->view.deadline_unix >= until))
		reply_sandbox(a, c->status, &c->view);
	else
		set_timeout(a, seconds, connect_on_timeout);
}

static void connect_on_again(struct ask *a, const void *result, const struct err *err)
{
	struct connecting *c = a->state;
	const struct sandbox_view *v = seen(a, result, err);

	if (!v)
		return;
	c->view = *v;
	connect_extend(a);
}

/* One that was started again has another generation, and so other tokens. */
static void connect_on_resumed(struct ask *a, const void *result, const struct err *err)
{
	if (err)
		ask_fail(a, err);
	else
		get_then(a, false, connect_on_again);
}

static void connect_on_seen(struct ask *a, const void *result, const struct err *err)
{
	const struct sandbox_view *v = seen(a, result, err);
	struct connecting *c = v ? arena_alloc(a->arena, sizeof(*c), &(struct err){ 0 }) : NULL;
	struct ask_args args;

	if (!v)
		return;
	if (!c) {
		ask_fail_with(a, ERR_LIMIT, "out of memory");
		return;
	}
	a->state = c;
	*c = (struct connecting){ 200, *v };
	if (strcmp(state_of(v), "running") == 0) {
		connect_extend(a);
		return;
	}
	c->status = 201;
	ask_args(a, &args, true);
	ask_call(a, &sandbox_resume_op, &args, connect_on_resumed);
}

static void run_connect(struct ask *a)
{
	get_then(a, false, connect_on_seen);
}

/* ---- lists --------------------------------------------------------------------------------- */

struct listing {
	bool running, paused;
	struct str template;
};

/* A form that was decoded once: each name and value is escaped a second time. */
static bool write_filter(struct ask *a, struct json_writer *w, struct str form)
{
	json_put_array(w, "label");
	while (form.n) {
		const char *end = memchr(form.p, '&', form.n);
		struct str one = { form.p, end ? (size_t)(end - form.p) : form.n };
		const char *sign = one.n ? memchr(one.p, '=', one.n) : NULL;
		struct str key, value;

		form = (struct str){ one.p + one.n, form.n - one.n };
		if (form.n)
			form = (struct str){ form.p + 1, form.n - 1 };
		if (!sign)
			return false;
		key = http_query_decode((struct str){ one.p, (size_t)(sign - one.p) }, a->arena);
		value = http_query_decode(
			(struct str){ sign + 1, one.n - (size_t)(sign + 1 - one.p) }, a->arena);
		key = key.p ? http_query_decode(key, a->arena) : STR_NONE;
		value = value.p ? http_query_decode(value, a->arena) : STR_NONE;
		if (!key.p || !value.p || (key.n && memchr(key.p, '\0', key.n)) ||
		    (value.n && memchr(value.p, '\0', value.n)))
			return false;
		json_write_str(w, ask_printf(a, "%.*s=%.*s", STR_ARG(key), STR_ARG(value)));
	}
	json_write_array_end(w);
	return true;
}

static bool listing_wants(const struct listing *l, const struct sandbox_view *v)
{
	const char *state = state_of(v);

	return state && (*state == 'r' ? l->running : l->paused) &&
	       (!l->template.n || str_eq(l->template, template_of(v)));
}

static void reply_page(struct ask *a, struct json_writer *w, struct str cursor)
{
	if (cursor.n)
		ask_reply_with(a, 200, w, (struct http_header){ "X-Next-Token", cursor });
	else
		ask_reply(a, 200, w);
}

static void list_on_done(struct ask *a, const void *result, const struct err *err)
{
	const struct sandboxes_view *r = result;
	const struct listing *l = a->state;
	struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&b);

	if (err) {
		ask_fail(a, err);
		return;
	}
	json_write_array(&w);
	for (size_t i = 0; i < r->sandboxes.n; i++) {
		if (!listing_wants(l, &r->sandboxes.p[i]))
			continue;
		json_write_object(&w);
		write_listed(&w, &r->sandboxes.p[i]);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	reply_page(a, &w, r->next_cursor);
}

/* False: the ask has failed. */
static bool write_page(struct ask *a, struct ask_args *args)
{
	struct str limit = http_request_query(a->q, STR_LIT("limit"));
	struct str cursor = http_request_query(a->q, STR_LIT("nextToken"));
	unsigned long long n = PAGE_DEFAULT;

	if (limit.p && (!http_length_parse(limit, &n) || n < 1)) {
		buf_fini(&args->b);
		ask_fail_with(a, ERR_INVALID, "limit: a number from 1");
		return false;
	}
	ask_arg_uint(&args->w, "limit", n < PAGE_MAX ? n : PAGE_MAX);
	if (cursor.n)
		ask_arg_str(&args->w, "cursor", cursor);
	return true;
}

static void list_look(void *data, struct str name, struct str value)
{
	struct listing *l = data;

	if (!str_is(name, "state"))
		return;
	l->running |= memmem(value.p, value.n, "running", 7) != NULL;
	l->paused |= memmem(value.p, value.n, "paused", 6) != NULL;
}

static void run_list(struct ask *a)
{
	struct str metadata = http_request_query(a->q, STR_LIT("metadata"));
	struct str order = http_request_query(a->q, STR_LIT("order"));
	struct listing *l = a->state = arena_alloc(a->arena, sizeof(*l), &(struct err){ 0 });
	struct ask_args args;
	struct json_writer *w;

	if (!l || !http_request_each_query(a->q, list_look, l)) {
		ask_fail_with(a, ERR_INVALID, "a parameter of the query is not UTF-8 text");
		return;
	}
	if (order.n && !str_is(order, "asc")) {
		ask_fail_with(a, ERR_UNSUPPORTED, "order: the oldest come first here");
		return;
	}
	if (!l->running && !l->paused)
		l->running = l->paused = true;
	l->template = http_request_query(a->q, STR_LIT("template"));
	w = ask_args(a, &args, false);
	if (!write_page(a, &args))
		return;
	if (metadata.n && !write_filter(a, w, metadata)) {
		buf_fini(&args.b);
		ask_fail_with(a, ERR_INVALID, "metadata: KEY=VALUE pairs of a form");
		return;
	}
	ask_call(a, &sandbox_list_op, &args, list_on_done);
}

/* ---- numbers ------------------------------------------------------------------------------- */

static void metrics_on_seen(struct ask *a, const void *result, const struct err *err)
{
	const struct sandbox_view *v = seen(a, result, err);
	const struct usage_view *u = v ? &v->usage : NULL;
	struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&b);
	int64_t now = clock_unix_ms();
	char when[WHEN_MAX];

	if (!v)
		return;
	when_text(when, now);
	json_write_array(&w);
	if (v->has_usage) {
		json_write_object(&w);
		ask_arg_str(&w, "timestamp", str_of(when));
		ask_arg_uint(&w, "timestampUnix", (uint64_t)now / 1000);
		ask_arg_uint(&w, "cpuCount",
			     v->limits.has_cpus ? (uint64_t)(v->limits.cpus + 0.999) : 1);
		json_write_key(&w, "cpuUsedPct"); /* since it was made */
		json_write_real(&w,
				u->has_cpu && u->age_ms ? u->cpu_ms * 100 / (double)u->age_ms : 0);
		ask_arg_uint(&w, "memUsed", u->memory_bytes);
		ask_arg_uint(&w, "memTotal", u->memory_limit_bytes);
		ask_arg_uint(&w, "memCache", 0);
		ask_arg_uint(&w, "diskUsed", u->disk_bytes);
		ask_arg_uint(&w, "diskTotal", u->disk_limit_bytes);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	ask_reply(a, 200, &w);
}

static void run_metrics(struct ask *a)
{
	get_then(a, true, metrics_on_seen);
}

/* ---- snapshots and forks ------------------------------------------------------------------- */

static void write_snapshot(struct json_writer *w, const struct snapshot_view *s)
{
	json_write_object(w);
	ask_arg_str(w, "snapshotID", s->snapshot);
	json_put_array(w, "names");
	if (s->name.n)
		json_write_str(w, s->name);
	json_write_array_end(w);
	json_write_object_end(w);
}

static void snapshot_on_taken(struct ask *a, const void *result, const struct err *err)
{
	struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&b);

	if (err) {
		ask_fail(a, err);
		return;
	}
	write_snapshot(&w, result);
	ask_reply(a, 201, &w);
}

static void run_snapshot(struct ask *a)
{
	struct str name = ask_str(a->body, "name");
	struct ask_args args;
	struct json_writer *w = ask_args(a, &args, true);

	if (name.n)
		ask_arg_str(w, "name", name);
	ask_call(a, &snapshot_take_op, &args, snapshot_on_taken);
}

static void snapshots_on_listed(struct ask *a, const void *result, const struct err *err)
{
	const struct snapshots_view *r = result;
	struct str of = http_request_query(a->q, STR_LIT("sandboxID"));
	struct str name = http_request_query(a->q, STR_LIT("name"));
	struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&b);

	if (err) {
		ask_fail(a, err);
		return;
	}
	json_write_array(&w);
	for (size_t i = 0; i < r->snapshots.n; i++) {
		const struct snapshot_view *s = &r->snapshots.p[i];

		if ((!of.n || str_eq(of, s->source)) && (!name.n || str_eq(name, s->name)))
			write_snapshot(&w, s);
	}
	json_write_array_end(&w);
	reply_page(a, &w, r->next_cursor);
}

static void run_snapshots(struct ask *a)
{
	struct ask_args args;

	ask_args(a, &args, false);
	if (write_page(a, &args))
		ask_call(a, &snapshot_list_op, &args, snapshots_on_listed);
}

static void run_delete_snapshot(struct ask *a)
{
	struct str id = http_request_segment(a->q, "template");
	struct ask_args args;
	struct json_writer *w;

	if (!str_starts(id, "snap-")) {
		ask_fail_with(a, ERR_SNAPSHOT_NOT_FOUND, "there is no snapshot %.*s",
			      STR_CUT(id, 64));
		return;
	}
	w = ask_args(a, &args, false);
	ask_arg_str(w, "snapshot", id);
	ask_call(a, &snapshot_delete_op, &args, done_204);
}

struct forking {
	struct sandbox_view *p;
	size_t n, timed;
	uint64_t seconds;
};

static void fork_reply(struct ask *a)
{
	const struct forking *f = a->state;
	struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&b);

	json_write_array(&w);
	for (size_t i = 0; i < f->n; i++) {
		json_write_object(&w);
		json_write_key(&w, "sandbox");
		write_sandbox(a, &w, &f->p[i]);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	ask_reply(a, 201, &w);
}

/* One after the other. */
static void fork_on_timed(struct ask *a, const void *result, const struct err *err)
{
	struct forking *f = a->state;

	if (err) {
		for (size_t i = 0; i < f->n; i++)
			sandboxes_drop(a, f->p[i].sandbox);
		ask_fail(a, err);
	} else if (f->timed == f->n) {
		fork_reply(a);
	} else {
		a->sandbox = f->p[f->timed++].sandbox;
		set_timeout(a, f->seconds, fork_on_timed);
	}
}

static void fork_on_made(struct ask *a, const void *result, const struct err *err)
{
	const struct sandboxes_view *r = result;
	struct forking *f = a->state;
	struct err e = ERR_INIT;

	if (!err) {
		f->n = r->sandboxes.n;
		f->p = arena_array(a->arena, f->n, sizeof(*f->p), &e);
		err = f->p ? NULL : &e;
	}
	if (!err)
		memcpy(f->p, r->sandboxes.p, f->n * sizeof(*f->p));
	fork_on_timed(a, NULL, err);
}

static void run_fork(struct ask *a)
{
	struct forking *f = a->state = arena_alloc(a->arena, sizeof(*f), &(struct err){ 0 });
	uint64_t count = 1;
	struct ask_args args;
	struct json_writer *w;

	ask_uint(a->body, "count", &count);
	if (!f || count < 1) {
		ask_fail_with(a, ERR_INVALID, "count: from 1 to %d", FORKS_MAX);
		return;
	}
	f->seconds = seconds_of(a, FORK_TIMEOUT_DEFAULT);
	w = ask_args(a, &args, true);
	ask_arg_uint(w, "replicas", count);
	ask_call(a, &sandbox_fork_op, &args, fork_on_made);
}

/* ---- network ------------------------------------------------------------------------------- */

static void run_network(struct ask *a)
{
	const struct json_val *rules = json_get(a->body, "rules");
	struct ask_args args;
	struct json_writer *w;
	struct err e;

	if (is_said(rules) || is_said(json_get(a->body, "egressProxy"))) {
		ask_fail_with(a, ERR_UNSUPPORTED, "network: of egress there is allowOut here");
		return;
	}
	w = ask_args(a, &args, true);
	json_put_object(w, "network");
	json_write_key(w, "allow");
	if (write_network(w, a->body, &e) < 0) {
		buf_fini(&args.b);
		ask_fail(a, &e);
		return;
	}
	json_write_object_end(w);
	ask_call(a, &network_set_op, &args, done_204);
}

/* ---- templates ----------------------------------------------------------------------------- */

static void run_alias(struct ask *a)
{
	struct str name = http_request_segment(a->q, "alias");
	struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&b);

	if (!str_is(name, "host") && str_eq(e2b_template(a->x, name), name)) {
		ask_fail_with(a, ERR_TEMPLATE_NOT_FOUND, "there is no template %.*s",
			      STR_CUT(name, 100));
		return;
	}
	json_write_object(&w);
	ask_arg_str(&w, "templateID", name);
	ask_arg_bool(&w, "public", false);
	json_write_object_end(&w);
	ask_reply(a, 200, &w);
}

static void run_unsupported(struct ask *a)
{
	ask_fail_with(a, ERR_UNSUPPORTED, "%s", a->row->doc); /* it says what to do instead */
}

#define BUILDS "Templates are built by the operator: holt build, then a name in compat.templates."
#define VOLUMES "There are no volumes of E2B's here: Holt's workspaces keep files."
#define LOGS "The operator's audit log has what was done: holt audit."

static const struct e2b_member making[] = {
	{ "templateID", JSON_STR },
	{ "timeout", JSON_INT, SANDBOX_TIMEOUT_MAX },
	{ "metadata", JSON_OBJECT },
	{ "envVars", JSON_OBJECT },
	{ "network", JSON_OBJECT },
	{ "network.allowPublicTraffic", JSON_BOOL },
	{ "network.allowOut", JSON_ARRAY },
	{ "network.denyOut", JSON_ARRAY },
	{ "allow_internet_access", JSON_BOOL },
	{ "autoPause", JSON_BOOL },
	{ "autoPauseMemory", JSON_BOOL },
	{ "autoResume", JSON_OBJECT },
	{ "autoResume.enabled", JSON_BOOL },
	{ 0 },
};
static const struct e2b_member timing[] = {
	{ "timeout", JSON_INT, SANDBOX_TIMEOUT_MAX },
	{ "count", JSON_INT, FORKS_MAX }, /* of a fork */
	{ "memory", JSON_BOOL }, /* of a pause */
	{ 0 },
};
static const struct e2b_member naming[] = { { "name", JSON_STR }, { 0 } };
static const struct e2b_member reaching[] = {
	{ "allowOut", JSON_ARRAY },
	{ "denyOut", JSON_ARRAY },
	{ 0 },
};

static const struct e2b_row rows[] = {
	{ HTTP_POST, "/sandboxes", E2B_CONTROL, 0, run_create, "Makes a sandbox.", making },
	{ HTTP_POST, "/v2/sandboxes", E2B_CONTROL, 0, run_create, "Makes a sandbox.", making },
	{ HTTP_GET, "/sandboxes", E2B_CONTROL, 0, run_list, "The sandboxes." },
	{ HTTP_GET, "/v2/sandboxes", E2B_CONTROL, 0, run_list, "The sandboxes, by pages." },
	{ HTTP_GET, "/sandboxes/{id}", E2B_CONTROL, 0, run_info, "One sandbox." },
	{ HTTP_DELETE, "/sandboxes/{id}", E2B_CONTROL, 0, run_kill, "Ends a sandbox." },
	{ HTTP_POST, "/sandboxes/{id}/connect", E2B_CONTROL, 0, run_connect,
	  "Resumes a paused sandbox, and extends its time to live.", timing },
	{ HTTP_POST, "/v2/sandboxes/{id}/connect", E2B_CONTROL, 0, run_connect, "The same.",
	  timing },
	{ HTTP_POST, "/sandboxes/{id}/resume", E2B_CONTROL, 0, run_connect, "The same.", timing },
	{ HTTP_POST, "/sandboxes/{id}/timeout", E2B_CONTROL, 0, run_timeout,
	  "Gives a sandbox its time to live anew.", timing },
	{ HTTP_POST, "/sandboxes/{id}/pause", E2B_CONTROL, 0, run_pause, "Pauses a sandbox.",
	  timing },
	{ HTTP_GET, "/sandboxes/{id}/metrics", E2B_CONTROL, 0, run_metrics, "What it uses." },
	{ HTTP_POST, "/sandboxes/{id}/snapshots", E2B_CONTROL, 0, run_snapshot,
	  "Takes a snapshot of its files.", naming },
	{ HTTP_POST, "/sandboxes/{id}/fork", E2B_CONTROL, 0, run_fork, "Forks a sandbox.", timing },
	{ HTTP_PUT, "/sandboxes/{id}/network", E2B_CONTROL, 0, run_network, "What it may reach.",
	  reaching },
	{ HTTP_GET, "/sandboxes/{id}/logs", E2B_CONTROL, 0, run_unsupported, LOGS },
	{ HTTP_GET, "/v2/sandboxes/{id}/logs", E2B_CONTROL, 0, run_unsupported, LOGS },
	{ HTTP_GET, "/snapshots", E2B_CONTROL, 0, run_snapshots, "The snapshots." },
	{ HTTP_DELETE, "/templates/{template}", E2B_CONTROL, 0, run_delete_snapshot,
	  "Deletes a snapshot." },
	{ HTTP_GET, "/templates/aliases/{alias}", E2B_CONTROL, 0, run_alias,
	  "Whether there is a template of this name." },
	{ HTTP_POST, "/templates", E2B_CONTROL, 0, run_unsupported, BUILDS },
	{ HTTP_POST, "/v2/templates", E2B_CONTROL, 0, run_unsupported, BUILDS },
	{ HTTP_POST, "/v3/templates", E2B_CONTROL, 0, run_unsupported, BUILDS },
	{ HTTP_POST, "/volumes", E2B_CONTROL, 0, run_unsupported, VOLUMES },
	{ HTTP_GET, "/volumes", E2B_CONTROL, 0, run_unsupported, VOLUMES },
};
const struct e2b_rows e2b_sandboxes = { rows, ARRAY_LEN(rows) };
