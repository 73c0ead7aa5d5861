#include "door/rest/mitos.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/when.h"
#include "door/connect/connect.h"
#include "hub/core/hub.h"
#include "json/document/put.h"
#include "op/sandbox_view.h"

/* A label of sandboxes: the template's name, as it was asked for. */
#define LABEL_TEMPLATE "mitos/template"

enum {
	KEPT_MAX = 1024,
	KEPT_EACH_MAX = 64, /* of one owner */
};

/* Settings for sandboxes of a template's name: JSON texts, "" where none were given. */
struct kept {
	struct kept *next;
	char *owner, *id, *network, *limits, *workload;
};

struct mitos {
	struct config *config;
	struct ops *tokenless;
	const int *agents_port;
	struct kept *kept;
	size_t n_kept;
	char began[WHEN_MAX];
};

AUTO_DEFINE(mitos_free, struct mitos)

struct mitos *mitos_new(struct config *c, struct ops *tokenless, const int *agents_port,
			struct err *e)
{
	AUTO(mitos_free) struct mitos *m = calloc(1, sizeof(*m));

	if (!m)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	config_ref(c);
	m->config = c;
	m->tokenless = tokenless;
	m->agents_port = agents_port;
	when_text(m->began, clock_unix_ms());
	return take_ptr(m);
}

void mitos_configure(struct mitos *m, struct config *c)
{
	config_ref(c);
	config_unref(m->config);
	m->config = c;
}

static void kept_free(struct kept *k)
{
	if (!k)
		return;
	free(k->owner);
	free(k->id);
	free(k->network);
	free(k->limits);
	free(k->workload);
	free(k);
}

void mitos_free(struct mitos *m)
{
	if (!m)
		return;
	while (m->kept) {
		struct kept *k = m->kept;

		m->kept = k->next;
		kept_free(k);
	}
	config_unref(m->config);
	free(m);
}

/* Whether a program of this machine asks; what agents ask from their sandboxes comes from here,
 * too, at a port of its own. */
static bool is_here(struct http_request *q, int agents_port)
{
	static const char *const proxied[] = { "Forwarded", "X-Forwarded-For", "Via" };
	struct str peer = http_request_peer(q);

	for (size_t i = 0; i < ARRAY_LEN(proxied); i++) {
		if (http_request_header(q, str_of(proxied[i])).p)
			return false;
	}
	if (agents_port && http_request_port(q) == agents_port)
		return false;
	return str_is(peer, "unix") || str_starts(peer, "127.") || str_starts(peer, "[::1]");
}

/* The SDK in TypeScript has no token for the procedures of a sandbox that it has forked. */
const void *mitos_identify(const struct mitos *m, struct http_request *q)
{
	struct str id = http_request_header(q, STR_LIT("X-Sandbox-Id"));
	struct hub_sandbox *l;
	struct hub_sandbox_info i;
	struct err e;

	if (!m->tokenless || !str_starts(http_request_path(q), CONNECT_PATH) ||
	    !is_here(q, *m->agents_port) || http_request_header(q, STR_LIT("Origin")).p)
		return NULL;
	if (!id.p)
		id = http_request_query(q, STR_LIT("sandbox")); /* of a WebSocket */
	l = id.n ? hub_sandboxes_find(hub_sandboxes(ops_hub(m->tokenless)), id, &e) : NULL;
	if (!l)
		return NULL;
	hub_sandbox_info(l, &i);
	return ops_owner(m->tokenless, i.owner);
}

/* ---- names of templates ---------------------------------------------------------------------- */

/* That which mitos.create() asks for by itself. */
const struct field_pair mitos_alias_default = { STR_LIT("python"), STR_LIT("host") };

const struct field_map *mitos_aliases(const struct mitos *m)
{
	return &config_file(m->config)->compat.templates;
}

struct str mitos_template(const struct mitos *m, struct str name)
{
	const struct field_map *all = mitos_aliases(m);

	for (size_t i = 0; i < all->n; i++) {
		if (str_eq(all->p[i].key, name))
			return all->p[i].value;
	}
	return str_eq(name, mitos_alias_default.key) ? mitos_alias_default.value : name;
}

bool mitos_is_template(struct str id, struct str name)
{
	static const struct str tag = STR_LIT(":latest");

	return str_eq(id, name) ||
	       (name.n && id.n == name.n + tag.n && memcmp(id.p, name.p, name.n) == 0 &&
		memcmp(id.p + name.n, tag.p, tag.n) == 0);
}

struct str mitos_began(const struct mitos *m)
{
	return str_of(m->began);
}

/* ---- what is kept of them -------------------------------------------------------------------- */

static struct kept **kept_at(struct mitos *m, struct str owner, struct str id)
{
	struct kept **at = &m->kept;

	while (*at && (!str_is(owner, (*at)->owner) || !str_is(id, (*at)->id)))
		at = &(*at)->next;
	return at;
}

void mitos_end_of(struct mitos *m, struct str owner)
{
	struct kept **at = &m->kept;

	while (*at) {
		struct kept *k = *at;

		if (!str_is(owner, k->owner)) {
			at = &k->next;
			continue;
		}
		*at = k->next;
		m->n_kept--;
		kept_free(k);
	}
}

static char *copy_of(const struct buf *b)
{
	return mem_dup(b->p, b->n);
}

int mitos_keep(struct mitos *m, struct str owner, struct str id, const struct mitos_said *said,
	       struct err *e)
{
	struct kept **at = kept_at(m, owner, id), *k = *at;
	size_t n = 0;

	if (k) {
		*at = k->next;
		m->n_kept--;
		kept_free(k);
	}
	if (!said->network.n && !said->limits.n && !said->workload.n)
		return 0;
	for (k = m->kept; k; k = k->next)
		n += str_is(owner, k->owner);
	if (n >= KEPT_EACH_MAX || m->n_kept >= KEPT_MAX)
		return err_set(e, ERR_LIMIT,
			       "there are too many templates of which more is said than their "
			       "name");
	k = calloc(1, sizeof(*k));
	if (!k || !(k->owner = mem_dup(owner.p, owner.n)) || !(k->id = mem_dup(id.p, id.n)) ||
	    !(k->network = copy_of(&said->network)) || !(k->limits = copy_of(&said->limits)) ||
	    !(k->workload = copy_of(&said->workload))) {
		kept_free(k);
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	k->next = m->kept;
	m->kept = k;
	m->n_kept++;
	return 0;
}

/* ---- requests for sandboxes ------------------------------------------------------------------ */

static void write_kept(struct json_writer *w, const struct json_val *body, const char *name,
		       const char *text)
{
	if (!*text || json_get(body, name))
		return;
	json_put_raw(w, name, str_of(text));
}

int mitos_mend_create(struct mitos *m, const struct principal *who, const struct json_val *body,
		      struct json_writer *w, struct err *e)
{
	/* The template by any of its names, and what means nothing on one machine. */
	static const char *const by[] = { "template", "pool", "image" };
	static const char *const own[] = { LABEL_TEMPLATE };
	const char *left_out[] = { NULL, "region", NULL };
	const struct json_val *labels = json_get(body, "labels");
	struct str name = STR_NONE, is;
	const struct kept *k;

	for (size_t i = 0; i < ARRAY_LEN(by) && !name.n; i++) {
		name = json_str(json_get(body, by[i]));
		left_out[0] = name.n ? by[i] : NULL;
	}
	is = mitos_template(m, name);
	if (name.n)
		json_put_str(w, "template", is);
	if (labels ? json_type(labels) == JSON_OBJECT : !str_eq(is, name)) {
		json_put_object(w, "labels");
		exchange_write_others(w, labels, own, ARRAY_LEN(own));
		if (name.p && !str_eq(is, name))
			json_put_str(w, LABEL_TEMPLATE, name);
		json_write_object_end(w);
		left_out[2] = "labels";
	}
	exchange_write_others(w, body, left_out, ARRAY_LEN(left_out));
	k = *kept_at(m, principal_owner(who), name);
	if (k) {
		write_kept(w, body, "network", k->network);
		write_kept(w, body, "limits", k->limits);
	}
	return 0;
}

int mitos_mend_fork(struct mitos *m, const struct principal *who, const struct json_val *body,
		    struct json_writer *w, struct err *e)
{
	static const char *const left_out[] = { "region", "secret_inheritance" };

	exchange_write_others(w, body, left_out, ARRAY_LEN(left_out));
	return 0;
}

static struct sandbox_view view_of(const struct sandbox_view *v)
{
	struct sandbox_view shown = *v;

	for (size_t i = 0; i < v->labels.n; i++) {
		if (str_is(v->labels.p[i].key, LABEL_TEMPLATE))
			shown.template = v->labels.p[i].value;
	}
	shown.has_made_ms = true;
	return shown;
}

const void *mitos_show_one(struct call *c, const void *result, const struct field_table **t,
			   struct err *e)
{
	struct sandbox_view *shown = arena_alloc(call_arena(c), sizeof(*shown), e);

	if (shown)
		*shown = view_of(result);
	return shown;
}

const void *mitos_show_made(struct call *c, const void *result, const struct field_table **t,
			    struct err *e)
{
	struct mitos *m = exchange_mitos(c);
	const struct sandbox_view *made = result, *shown = mitos_show_one(c, result, t, e);
	const struct kept *k;

	if (!shown || !mitos_is_template(made->template, mitos_template(m, shown->template)))
		return shown;
	k = *kept_at(m, principal_owner(call_principal(c)), shown->template);
	if (k && *k->workload)
		mitos_workload_start(c, k->workload, shown->sandbox);
	return shown;
}

const void *mitos_show_several(struct call *c, const void *result, const struct field_table **t,
			       struct err *e)
{
	struct sandboxes_view *shown = arena_alloc(call_arena(c), sizeof(*shown), e);
	const struct sandboxes_view *all = result;
	struct sandbox_view *views = arena_array(call_arena(c), all->sandboxes.n, sizeof(*views),
						 e);

	if (!shown || !views)
		return NULL;
	for (size_t i = 0; i < all->sandboxes.n; i++)
		views[i] = view_of(&all->sandboxes.p[i]);
	*shown = *all;
	shown->sandboxes.p = views;
	return shown;
}
