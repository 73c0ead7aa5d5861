/*
 * Resources, templates and prompts of modules, for sessions that have the set "gateway", as far as
 * modules have listed them. A resource is module://SERVER/URI, a prompt SERVER__NAME, so those of
 * two servers are never the same. What is said of them is cleaned; each use is a module.call.
 */
#include <stdlib.h>

#include "base/log.h"
#include "door/mcp/internal.h"
#include "json/document/put.h"
#include "modules/code/clean.h"
#include "modules/code/names.h"
#include "op/module/module.h"
#include "op/ops.h"

#define SCHEME "module://"

enum {
	OFFERS_MAX = 2000, /* of a kind, of all modules */
	OFFERS_BYTES_MAX = 24 << 20, /* of a module: its lists, and their texts once more */
	ITEM_MAX = 256 << 10,
	RESULT_MAX = 4 << 20,
	ARGUMENTS_MAX = 64, /* of a prompt */
	URI_MAX = 4096, /* of a server's own */
	WATCHED_OF_SESSION = UPSTREAM_WATCHED_MAX / 8, /* resources of a module */
	WATCHED_MS = 100, /* from a change of what is watched until modules hear of it */
};

/* One thing that a module has. */
struct offer {
	struct offers *of;
	struct str module, json; /* json: as its server gave it */
	const char *name; /* of a prompt, by its server */
	union {
		struct mcp_resource resource;
		struct mcp_template template;
		struct mcp_prompt prompt;
	};
};

/* As a module listed them at one time. Calls of prompts hold it. */
struct offers {
	unsigned refs;
	struct arena *arena;
	struct offer *p[UPSTREAM_LISTS];
	size_t n[UPSTREAM_LISTS];
};

void offers_unref(struct offers *o)
{
	if (!o || --o->refs > 0)
		return;
	arena_free(o->arena);
	free(o);
}
/* ---- making them --------------------------------------------------------------------------- */

/* NULL: it has none, or there is no memory. */
static const char *offer_text(struct offers *o, const struct json_val *v, const char *key)
{
	struct str s = json_str(json_get(v, key));
	struct err e;

	return s.n ? arena_dup(o->arena, s, &e) : NULL;
}

/* An address with hidden or misleading characters is none. */
static const char *offer_uri(struct offers *o, struct str module, const struct json_val *v,
			     const char *key)
{
	struct str uri = json_str(json_get(v, key));
	struct err e;

	if (!uri.n || uri.n > URI_MAX || clean_changes(uri))
		return NULL;
	return arena_printf(o->arena, &e, SCHEME "%.*s/%.*s", STR_ARG(module), STR_ARG(uri));
}

static bool offer_resource(struct offers *o, struct offer *to, const struct json_val *v,
			   const struct json_val *clean)
{
	int64_t size = 0;

	to->resource = (struct mcp_resource){
		.uri = offer_uri(o, to->module, v, "uri"),
		.name = offer_text(o, clean, "name"),
		.title = offer_text(o, clean, "title"),
		.description = offer_text(o, clean, "description"),
		.mime = offer_text(o, clean, "mimeType"),
	};
	if (json_int64(json_get(v, "size"), &size) && size > 0)
		to->resource.size = size;
	to->resource.name = to->resource.name ?: to->resource.uri;
	return to->resource.uri;
}

static bool offer_template(struct offers *o, struct offer *to, const struct json_val *v,
			   const struct json_val *clean)
{
	to->template = (struct mcp_template){
		.uri_template = offer_uri(o, to->module, v, "uriTemplate"),
		.name = offer_text(o, clean, "name"),
		.title = offer_text(o, clean, "title"),
		.description = offer_text(o, clean, "description"),
		.mime = offer_text(o, clean, "mimeType"),
	};
	to->template.name = to->template.name ?: to->template.uri_template;
	return to->template.uri_template;
}

/* The names of arguments are sent back as they are, so they have to be what they look like. */
static bool offer_arguments(struct offers *o, const struct json_val *v,
			    const struct json_val *clean, struct mcp_prompt *to)
{
	const struct json_val *raw = json_get(v, "arguments"), *args = json_get(clean, "arguments");
	struct err e;
	size_t n = json_len(args);
	struct mcp_argument *p = n <= ARGUMENTS_MAX ? arena_array(o->arena, n, sizeof(*p), &e)
						    : NULL;
	struct json_iter it = json_iter(raw), in = json_iter(args);

	if (!p)
		return false;
	for (size_t i = 0; json_next(&it) && json_next(&in); i++) {
		p[i] = (struct mcp_argument){
			.name = offer_text(o, it.val, "name"),
			.title = offer_text(o, in.val, "title"),
			.description = offer_text(o, in.val, "description"),
			.required = json_bool(json_get(it.val, "required")),
		};
		if (!p[i].name || clean_changes(str_of(p[i].name)))
			return false;
	}
	to->args = p;
	to->args_n = n;
	return true;
}

/* Its name in the list is made for all of the server's together (offers_names()). */
static bool offer_prompt(struct offers *o, struct offer *to, const struct json_val *v,
			 const struct json_val *clean)
{
	to->name = offer_text(o, v, "name");
	to->prompt = (struct mcp_prompt){
		.title = offer_text(o, clean, "title"),
		.description = offer_text(o, clean, "description"),
	};
	return to->name && offer_arguments(o, v, clean, &to->prompt);
}

static bool (*const offer_readers[UPSTREAM_LISTS])(struct offers *o, struct offer *to,
						   const struct json_val *v,
						   const struct json_val *clean) = {
	[UPSTREAM_RESOURCES] = offer_resource,
	[UPSTREAM_TEMPLATES] = offer_template,
	[UPSTREAM_PROMPTS] = offer_prompt,
};

/* An offer that can't be shown is left out. */
static void offers_add(struct offers *o, enum upstream_list which, struct str module,
		       struct str json)
{
	struct offer *to = &o->p[which][o->n[which]];
	autobuf struct buf b = BUF_INIT(ITEM_MAX);
	AUTO(json_free) struct json_doc *doc = NULL, *clean = NULL;
	struct err e;

	doc = json_parse(json, NULL, &e);
	if (!doc || clean_json(&b, json_root(doc), CLEAN_TEXT, &e) < 0)
		return;
	clean = json_parse(buf_str(&b), NULL, &e);
	*to = (struct offer){ .of = o,
			      .module = { arena_dup(o->arena, module, &e), module.n },
			      .json = { arena_dup(o->arena, json, &e), json.n } };
	if (clean && to->module.p && to->json.p &&
	    offer_readers[which](o, to, json_root(doc), json_root(clean)))
		o->n[which]++;
}

static void offers_names(struct offers *o, struct str module, struct buf *said)
{
	size_t n = o->n[UPSTREAM_PROMPTS];
	struct offer *p = o->p[UPSTREAM_PROMPTS];
	struct err e;
	struct str *own = arena_array(o->arena, n, sizeof(*own), &e);
	struct tool_name *names = arena_array(o->arena, n, sizeof(*names), &e);

	for (size_t i = 0; own && i < n; i++)
		own[i] = str_of(p[i].name);
	if (n && (!own || !names || names_make(module, own, n, o->arena, names, &e) < 0)) {
		gateway_says(said, "its prompts are not listed: %s", e.msg);
		o->n[UPSTREAM_PROMPTS] = 0;
		return;
	}
	for (size_t i = 0; i < n; i++)
		p[i].prompt.name = names[i].gateway.p;
}

struct offers *offers_new(struct str module, const struct field_strs lists[UPSTREAM_LISTS],
			  struct buf *said)
{
	AUTO(offers_unref) struct offers *o = calloc(1, sizeof(*o));
	struct err e;

	if (!o)
		return NULL;
	o->refs = 1;
	o->arena = arena_new(OFFERS_BYTES_MAX);
	for (int k = 0; o->arena && k < UPSTREAM_LISTS; k++) {
		o->p[k] = arena_array(o->arena, lists[k].n + 1, sizeof(*o->p[k]), &e);
		for (size_t i = 0; o->p[k] && i < lists[k].n; i++)
			offers_add(o, (enum upstream_list)k, module, lists[k].p[i]);
	}
	if (o->arena)
		offers_names(o, module, said);
	return o->arena ? take_ptr(o) : NULL;
}

/* ---- showing them -------------------------------------------------------------------------- */

static const enum upstream_kind offer_kinds[UPSTREAM_LISTS] = {
	[UPSTREAM_RESOURCES] = UPSTREAM_READ,
	[UPSTREAM_TEMPLATES] = UPSTREAM_READ,
	[UPSTREAM_PROMPTS] = UPSTREAM_GET,
};

static const unsigned offer_changes[UPSTREAM_LISTS] = {
	[UPSTREAM_RESOURCES] = MCP_RESOURCES,
	[UPSTREAM_TEMPLATES] = MCP_RESOURCES,
	[UPSTREAM_PROMPTS] = MCP_PROMPTS,
};

static bool offers_same(const struct offers_shown *a, const struct offers_shown *b)
{
	for (size_t i = 0; i < a->n && a->n == b->n; i++) {
		if (a->p[i] != b->p[i] && (!str_eq(a->p[i]->module, b->p[i]->module) ||
					   !str_eq(a->p[i]->json, b->p[i]->json)))
			return false;
	}
	return a->n == b->n;
}

static void offers_shown_free(struct offers_shown *s)
{
	for (size_t i = 0; i < s->n; i++)
		offers_unref(s->p[i]->of);
	free(s->p);
	*s = (struct offers_shown){ .n = 0 };
}

/* Without memory there are none. */
void offers_show(struct offers_shown to[UPSTREAM_LISTS], const struct upstream *u, struct offers *o)
{
	struct err e;

	for (int k = 0; o && k < UPSTREAM_LISTS; k++) {
		if (!to[k].p)
			to[k].p = calloc(OFFERS_MAX, sizeof(struct offer *));
		if (!to[k].p || upstream_check_kind(u, offer_kinds[k], &e) < 0)
			continue;
		for (size_t i = 0; i < o->n[k] && to[k].n < OFFERS_MAX; i++) {
			to[k].p[to[k].n++] = &o->p[k][i];
			o->refs++;
		}
	}
}

unsigned offers_take(struct mcp_door *d, const struct offers_shown shown[UPSTREAM_LISTS])
{
	unsigned changed = 0;

	for (int k = 0; k < UPSTREAM_LISTS; k++) {
		struct offers_shown was = d->offers[k];

		d->offers[k] = shown[k];
		changed |= offers_same(&was, &shown[k]) ? 0 : offer_changes[k];
		offers_shown_free(&was);
	}
	return changed;
}

void offers_free(struct mcp_door *d)
{
	for (int k = 0; k < UPSTREAM_LISTS; k++) {
		offers_shown_free(&d->offers[k]);
		free(d->offered[k]);
	}
}

/* ---- lists --------------------------------------------------------------------------------- */

/* Whether modules are there for the session at all; and, by its profile, this one. */
struct offers_for {
	struct door_profile profile;
	bool ok;
};

static struct offers_for offers_for(struct mcp_door *d, struct mcp_session *s)
{
	struct offers_for f;
	struct err e;

	f.ok = profile_init(&f.profile, d, s, &e) == 0 && door_has_gateway(d, s);
	return f;
}

static bool offers_for_has(const struct offers_for *f, struct str module)
{
	return f->ok && profile_has(&f->profile, module);
}

/* Behind the first n_own of the door's. The list is valid until the next. */
static const void **offers_list(struct mcp_door *d, struct mcp_session *s, enum upstream_list which,
				const void *const *own, size_t n_own, size_t *ret_n)
{
	const struct offers_shown *o = &d->offers[which];
	size_t max = n_own + o->n, n = n_own;
	struct offers_for f = offers_for(d, s);
	const void **to = realloc(d->offered[which], (max + 1) * sizeof(*to));

	*ret_n = 0;
	if (to) {
		d->offered[which] = to;
		for (size_t i = 0; i < n_own; i++)
			to[i] = own[i];
		for (size_t i = 0; i < o->n; i++) {
			if (offers_for_has(&f, o->p[i]->module))
				to[n++] = &o->p[i]->resource;
		}
		*ret_n = n;
	}
	profile_fini(&f.profile);
	return to;
}

const struct mcp_resource *const *offers_resources(void *owner, struct mcp_session *s,
						   size_t *ret_n)
{
	size_t n;
	const struct mcp_resource *const *own = files_roots(owner, s, &n);

	return (const struct mcp_resource *const *)offers_list(owner, s, UPSTREAM_RESOURCES,
							       (const void *const *)own, n, ret_n);
}

const struct mcp_template *const *offers_templates(void *owner, struct mcp_session *s,
						   size_t *ret_n)
{
	size_t n;
	const struct mcp_template *const *own = files_templates(owner, s, &n);

	return (const struct mcp_template *const *)offers_list(owner, s, UPSTREAM_TEMPLATES,
							       (const void *const *)own, n, ret_n);
}

const struct mcp_prompt *const *offers_prompts(void *owner, struct mcp_session *s, size_t *ret_n)
{
	return (const struct mcp_prompt *const *)offers_list(owner, s, UPSTREAM_PROMPTS, NULL, 0,
							     ret_n);
}

static const struct offer *offers_prompt(const struct mcp_door *d, struct str name)
{
	const struct offers_shown *o = &d->offers[UPSTREAM_PROMPTS];

	for (size_t i = 0; i < o->n; i++) {
		if (str_is(name, o->p[i]->prompt.name))
			return o->p[i];
	}
	return NULL;
}

/* ---- addresses ----------------------------------------------------------------------------- */

bool offers_parse(struct str uri, struct str *ret_module, struct str *ret_own)
{
	const char *at = uri.p + sizeof(SCHEME) - 1, *slash;

	if (!str_starts(uri, SCHEME))
		return false;
	slash = memchr(at, '/', uri.n - (sizeof(SCHEME) - 1));
	if (!slash || slash == at || slash + 1 == uri.p + uri.n)
		return false;
	*ret_module = (struct str){ at, (size_t)(slash - at) };
	*ret_own = (struct str){ slash + 1, (size_t)(uri.p + uri.n - slash - 1) };
	return true;
}

static void offer_write_uri(struct json_writer *w, struct str module, struct str uri)
{
	autobuf struct buf b = BUF_INIT(RESULT_MAX);
	struct err e;

	if (buf_addf(&b, &e, SCHEME "%.*s/", STR_ARG(module)) < 0 ||
	    buf_add(&b, uri.p, uri.n, &e) < 0)
		json_write_fail(w, &e);
	json_write_str(w, buf_str(&b));
}

/* An object with an address: its "uri" becomes one of ours. */
static void offer_write_contents(struct json_writer *w, struct str module, const struct json_val *v)
{
	json_write_object(w);
	for (struct json_iter it = json_iter(v); json_next(&it);) {
		json_write_key_str(w, it.key);
		if (str_is(it.key, "uri") && json_type(it.val) == JSON_STR)
			offer_write_uri(w, module, json_str(it.val));
		else
			json_write_val(w, it.val);
	}
	json_write_object_end(w);
}

static void offer_write_content(struct json_writer *w, struct str module, const struct json_val *v)
{
	if (str_is(json_str(json_get(v, "type")), "resource_link")) {
		offer_write_contents(w, module, v);
		return;
	}
	if (json_type(json_get(v, "resource")) != JSON_OBJECT) {
		json_write_val(w, v);
		return;
	}
	json_write_object(w);
	for (struct json_iter it = json_iter(v); json_next(&it);) {
		json_write_key_str(w, it.key);
		if (str_is(it.key, "resource"))
			offer_write_contents(w, module, it.val);
		else
			json_write_val(w, it.val);
	}
	json_write_object_end(w);
}

void offers_write_content(struct json_writer *w, struct str module, const struct json_val *content)
{
	json_write_array(w);
	for (struct json_iter it = json_iter(content); json_next(&it);)
		offer_write_content(w, module, it.val);
	json_write_array_end(w);
}

/* ---- use ----------------------------------------------------------------------------------- */

/* A resources/read, prompts/get or completion/complete as a call, in its arena. */
struct offer_use {
	struct mcp_door *door;
	struct mcp_call *mc;
	struct call *call;
	struct offers *held; /* its prompt is in there; NULL: it has none */
	struct str module;
	enum upstream_kind kind;
	struct str params;
};

static void use_write_resource(struct json_writer *w, const struct offer_use *u,
			       const struct json_val *result)
{
	json_put_array(w, "contents");
	for (struct json_iter it = json_iter(json_get(result, "contents")); json_next(&it);)
		offer_write_contents(w, u->module, it.val);
	json_write_array_end(w);
}

static void use_write_prompt(struct json_writer *w, const struct offer_use *u,
			     const struct json_val *result)
{
	struct str about = json_str(json_get(result, "description"));
	autobuf struct buf b = BUF_INIT(4 * CLEAN_CHARS + 64);
	struct err e;

	if (about.n && clean_text(&b, about, CLEAN_TEXT, CLEAN_CHARS, &e) == 0)
		json_put_str(w, "description", buf_str(&b));
	json_put_array(w, "messages");
	for (struct json_iter it = json_iter(json_get(result, "messages")); json_next(&it);) {
		bool model = str_is(json_str(json_get(it.val, "role")), "assistant");

		json_write_object(w);
		json_put_text(w, "role", model ? "assistant" : "user");
		json_write_key(w, "content");
		offer_write_content(w, u->module, json_get(it.val, "content"));
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

/* At most a hundred values, as MCP has it. */
static void use_write_completion(struct json_writer *w, const struct json_val *v)
{
	struct json_iter it = json_iter(json_get(v, "values"));
	int64_t total;

	json_put_object(w, "completion");
	json_put_array(w, "values");
	while (json_next(&it) && it.index < 100) {
		if (json_type(it.val) == JSON_STR && !clean_changes(json_str(it.val)))
			json_write_val(w, it.val);
	}
	json_write_array_end(w);
	if (json_int64(json_get(v, "total"), &total) && total >= 0)
		json_put_uint(w, "total", (uint64_t)total);
	if (json_bool(json_get(v, "hasMore")))
		json_put_bool(w, "hasMore", true);
	json_write_object_end(w);
}

/* Whether the answer has the members that the protocol wants. */
static bool use_is_answer(const struct offer_use *u, const struct json_val *result)
{
	const struct json_val *list = json_get(result,
					       u->kind == UPSTREAM_READ ? "contents" : "messages");
	struct json_iter it = json_iter(list);

	if (u->kind == UPSTREAM_COMPLETE)
		return json_type(json_get(json_get(result, "completion"), "values")) == JSON_ARRAY;
	if (json_type(list) != JSON_ARRAY)
		return false;
	while (json_next(&it)) {
		if (json_type(it.val) != JSON_OBJECT ||
		    (u->kind == UPSTREAM_GET &&
		     json_type(json_get(it.val, "content")) != JSON_OBJECT))
			return false;
	}
	return true;
}

static int use_write(struct buf *to, const struct offer_use *u, const struct json_val *result,
		     struct err *e)
{
	struct json_writer w = json_writer(to);

	if (!use_is_answer(u, result))
		return err_set(e, ERR_MODULE_FAILED, "the module's answer is not what %s wants",
			       upstream_kind_methods[u->kind]);
	json_write_object(&w);
	if (u->kind == UPSTREAM_READ)
		use_write_resource(&w, u, result);
	else if (u->kind == UPSTREAM_GET)
		use_write_prompt(&w, u, result);
	else
		use_write_completion(&w, json_get(result, "completion"));
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

/* The call is gone when this returns. */
static void use_end(struct offer_use *u, struct str members, const struct err *e)
{
	struct offers *held = u->held;

	if (!e)
		mcp_call_members(u->mc, members);
	else if (u->kind == UPSTREAM_READ && e->code == ERR_MODULE_NOT_FOUND)
		mcp_call_not_found(u->mc);
	else if (u->kind == UPSTREAM_COMPLETE && e->code == ERR_DENIED)
		mcp_call_values(u->mc, NULL, 0, 0, false);
	else
		mcp_call_fail(u->mc, e);
	offers_unref(held);
}

static void use_on_answer(void *client, const struct field_table *t, const void *result)
{
	struct offer_use *u = client;
	const struct module_result *r = result;
	autobuf struct buf b = BUF_INIT(RESULT_MAX);
	struct err e = ERR_INIT;
	AUTO(json_free) struct json_doc *doc = json_parse(r->result.text, NULL, &e);
	bool ok = doc && use_write(&b, u, json_root(doc), &e) == 0;

	use_end(u, buf_str(&b), ok ? NULL : &e);
}

static void use_on_fail(void *client, const struct err *e)
{
	use_end(client, STR_NONE, e);
}

static void use_on_progress(void *client, double progress, double total, const char *message)
{
	const struct offer_use *u = client;

	mcp_call_progress(u->mc, progress, total, message);
}

static void use_on_log(void *client, unsigned level, const char *logger, struct str data)
{
	const struct offer_use *u = client;

	mcp_call_log(u->mc, (enum mcp_level)level, logger, data);
}

static const struct op_sink use_sink = {
	.answer = use_on_answer, .fail = use_on_fail, .progress = use_on_progress, .log = use_on_log
};

static int use_decode(void *client, void *request, struct err *e)
{
	const struct offer_use *u = client;

	*(struct module_call_request *)request =
		(struct module_call_request){ .kind = u->kind,
					      .module = u->module,
					      .tool = str_of(upstream_kind_methods[u->kind]),
					      .arguments = { u->params } };
	return 0;
}

static void use_on_cancel(struct mcp_call *mc, void *data)
{
	struct offer_use *u = data;

	call_cancel(u->call);
}

/* params: of the method, as the module is asked. */
static void use_start(struct mcp_door *d, struct mcp_call *mc, const struct offer_use *of,
		      const struct buf *params, struct err *e)
{
	struct arena *a = mcp_call_arena(mc);
	struct op_start start = { .who = mcp_call_principal(mc),
				  .agent = true,
				  .session = door_session(d, mc),
				  .op = &module_call_op,
				  .decode = use_decode,
				  .sink = &use_sink,
				  .arena = a,
				  .log_level = door_log_level(mc),
				  .label = mcp_call_label(mc) };
	struct offer_use *u = arena_alloc(a, sizeof(*u), e);

	if (u) {
		*u = *of;
		u->door = d;
		u->mc = mc;
		u->module.p = arena_dup(a, of->module, e);
		u->params = (struct str){ arena_dup(a, buf_str(params), e), params->n };
		start.client = u;
	}
	if (!u || !u->module.p || !u->params.p ||
	    profile_of_call(d, mc, a, &start.profiles, e) < 0 ||
	    !(u->call = op_new(d->ops, &start, e))) {
		mcp_call_fail(mc, e);
		return;
	}
	if (u->held)
		u->held->refs++;
	mcp_call_on_cancel(mc, use_on_cancel, u);
	op_start(u->call);
}

static bool use_may(struct mcp_door *d, struct mcp_call *mc)
{
	const struct mcp_session *s = mcp_call_session(mc);

	return s && door_has_gateway(d, s);
}

void offers_read(void *owner, struct mcp_call *mc)
{
	struct offer_use u = { .kind = UPSTREAM_READ };
	autobuf struct buf params = BUF_INIT(ITEM_MAX);
	struct json_writer w = json_writer(&params);
	struct str own;
	struct err e = ERR_INIT;

	if (!offers_parse(mcp_call_uri(mc), &u.module, &own)) {
		files_read(owner, mc);
		return;
	}
	if (!use_may(owner, mc)) {
		mcp_call_not_found(mc);
		return;
	}
	json_write_object(&w);
	json_put_str(&w, "uri", own);
	json_write_object_end(&w);
	if (own.n > URI_MAX)
		err_set(&e, ERR_INVALID, "uri: at most %d bytes of a module's own", URI_MAX);
	if (e.code || json_write_done(&w, &e) < 0)
		mcp_call_fail(mc, &e);
	else
		use_start(owner, mc, &u, &params, &e);
}

void offers_get(void *owner, struct mcp_call *mc)
{
	struct mcp_door *d = owner;
	const struct offer *o = offers_prompt(d, str_of(mcp_call_prompt(mc)->name));
	struct offer_use u = { .kind = UPSTREAM_GET };
	autobuf struct buf params = BUF_INIT(RESULT_MAX);
	struct json_writer w = json_writer(&params);
	struct err e = ERR_INIT;

	json_write_object(&w);
	json_put_text(&w, "name", o ? o->name : "");
	if (mcp_call_args(mc))
		json_put_val(&w, "arguments", mcp_call_args(mc));
	json_write_object_end(&w);
	if (!o)
		err_set(&e, ERR_MODULE_NOT_FOUND, "this prompt is not there any more");
	if (!o || json_write_done(&w, &e) < 0) {
		mcp_call_fail(mc, &e);
		return;
	}
	u.module = o->module;
	u.held = o->of;
	use_start(d, mc, &u, &params, &e);
}

static void completion_write(struct json_writer *w, const struct mcp_completion *m, struct str ref)
{
	json_write_object(w);
	json_put_object(w, "ref");
	json_put_text(w, "type", m->is_prompt ? "ref/prompt" : "ref/resource");
	json_put_str(w, m->is_prompt ? "name" : "uri", ref);
	json_write_object_end(w);
	json_put_object(w, "argument");
	json_put_str(w, "name", m->argument);
	json_put_str(w, "value", m->value);
	json_write_object_end(w);
	if (m->context) {
		json_put_object(w, "context");
		json_put_val(w, "arguments", m->context);
		json_write_object_end(w);
	}
	json_write_object_end(w);
}

void offers_complete(void *owner, struct mcp_call *mc)
{
	struct mcp_door *d = owner;
	const struct mcp_completion m = mcp_call_completion(mc);
	const struct offer *o = m.is_prompt ? offers_prompt(d, m.ref) : NULL;
	struct offer_use u = { .kind = UPSTREAM_COMPLETE };
	autobuf struct buf params = BUF_INIT(ITEM_MAX);
	struct json_writer w = json_writer(&params);
	struct str ref = STR_NONE;
	struct err e = ERR_INIT;

	if (o) {
		u.module = o->module;
		ref = str_of(o->name);
	} else if (m.is_prompt || !offers_parse(m.ref, &u.module, &ref)) {
		files_complete(owner, mc);
		return;
	}
	completion_write(&w, &m, ref);
	if (!use_may(d, mc))
		mcp_call_values(mc, NULL, 0, 0, false);
	else if (json_write_done(&w, &e) < 0)
		mcp_call_fail(mc, &e);
	else
		use_start(d, mc, &u, &params, &e);
}

/* ---- what is watched ----------------------------------------------------------------------- */

bool offers_hears(void *owner, struct mcp_session *s, struct str uri)
{
	struct str module, own;
	struct offers_for f;
	bool hears;

	if (!offers_parse(uri, &module, &own))
		return true;
	f = offers_for(owner, s);
	hears = offers_for_has(&f, module);
	profile_fini(&f.profile);
	return hears;
}

/* The watched resources of a module. One session can't take all places. */
struct watched {
	struct mcp_door *door;
	struct str module;
	struct str uris[UPSTREAM_WATCHED_MAX];
	size_t n;
	/* The session that is looked at, how many places it has, and whether it may hear of the
	 * module at all. */
	struct mcp_session *session;
	size_t of_session;
	bool asked, hears;
};

static bool watched_has(const struct watched *w, struct str own)
{
	for (size_t i = 0; i < w->n; i++) {
		if (str_eq(w->uris[i], own))
			return true;
	}
	return false;
}

/* The profile comes last: it costs most. */
static void watched_add(void *data, struct mcp_session *s, struct str uri)
{
	struct watched *w = data;
	struct str module, own;

	if (s != w->session) {
		w->session = s;
		w->of_session = 0;
		w->asked = false;
	}
	if (w->n == UPSTREAM_WATCHED_MAX || w->of_session == WATCHED_OF_SESSION ||
	    (w->asked && !w->hears) || !offers_parse(uri, &module, &own) ||
	    !str_eq(module, w->module) || own.n > URI_MAX || watched_has(w, own))
		return;
	if (!w->asked)
		w->hears = offers_hears(w->door, s, uri);
	w->asked = true;
	if (!w->hears)
		return;
	w->uris[w->n++] = own;
	w->of_session++;
}

static void watched_tell(struct mcp_door *d)
{
	struct upstreams *all = ops_upstreams(d->ops);
	struct err e;

	if (!all || upstreams_check(all, &e) < 0)
		return;
	for (struct upstream *u = upstreams_next(all, NULL); u; u = upstreams_next(all, u)) {
		struct upstream_info i;
		struct watched w = { .door = d };

		upstream_info(u, &i);
		w.module = i.name;
		if (upstream_check_kind(u, UPSTREAM_READ, &e) == 0)
			mcp_server_each_watched(d->server, watched_add, &w);
		if (upstream_watch(u, w.uris, w.n, &e) < 0)
			log_warn("module %.*s: %s", STR_ARG(i.name), e.msg);
	}
}

static void watched_on_timer(uv_timer_t *t)
{
	watched_tell(t->data);
}

static void watched_on_closed(uv_handle_t *h)
{
	free(h);
}

/* Later, once for many. */
void offers_watched(void *owner)
{
	struct mcp_door *d = owner;

	if (d->ended)
		return;
	if (!d->watching) {
		d->watching = malloc(sizeof(*d->watching));
		if (!d->watching) {
			watched_tell(d);
			return;
		}
		uv_timer_init(hub_loop(ops_hub(d->ops)), d->watching);
		d->watching->data = d;
	}
	if (!uv_is_active((uv_handle_t *)d->watching))
		uv_timer_start(d->watching, watched_on_timer, WATCHED_MS, 0);
}

void offers_end(struct mcp_door *d)
{
	d->ended = true;
	if (d->watching)
		uv_close((uv_handle_t *)take_ptr(d->watching), watched_on_closed);
}

void offers_updated(struct mcp_door *d, struct str module, struct str uri)
{
	autobuf struct buf b = BUF_INIT(URI_MAX + 128);
	struct err e;

	if (uri.n <= URI_MAX && buf_addf(&b, &e, SCHEME "%.*s/", STR_ARG(module)) == 0 &&
	    buf_add(&b, uri.p, uri.n, &e) == 0)
		mcp_server_updated(d->server, buf_str(&b));
}
