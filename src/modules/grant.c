/*
 * What the operator approved: a digest of all that a module is started or asked with, keyed by the
 * registry, so that nothing can be learned from it. Values of the environment are in it, secrets by
 * their names, so that a new value of one needs no approval. The texts of the file are in it, too:
 * without them, one that only looks like a secret would be the same as the secret.
 */
#include "base/hash.h"
#include "config/variables.h"
#include "modules/internal.h"
#include "net/wire/grant.h"

enum { REACH_MAX = 1 << 20 }; /* bytes */

/* HMAC-SHA-256 (RFC 2104) of fields that begin with their length. */
struct digest {
	struct hash *hash;
	char key[HASH_HEX];
};

static void digest_pad(struct digest *d, char with)
{
	char block[64];

	static_assert(sizeof(block) == HASH_HEX, "a key as long as a block");
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (char)(d->key[i] ^ with);
	hash_add(d->hash, block, sizeof(block));
}

static void digest_str(struct digest *d, struct str s)
{
	uint64_t n = s.p ? s.n : UINT64_MAX;

	hash_add(d->hash, &n, sizeof(n));
	if (s.n)
		hash_add(d->hash, s.p, s.n);
}

static void digest_list(struct digest *d, const char *const *list)
{
	uint64_t n = 0;

	while (list && list[n])
		n++;
	hash_add(d->hash, &n, sizeof(n));
	for (size_t i = 0; i < n; i++)
		digest_str(d, str_of(list[i]));
}

static void digest_strs(struct digest *d, const struct field_strs *list)
{
	uint64_t n = list->n;

	hash_add(d->hash, &n, sizeof(n));
	for (size_t i = 0; i < n; i++)
		digest_str(d, list->p[i]);
}

static int digest_text(void *data, enum config_text what, struct str text, struct err *e)
{
	struct digest *d = data;
	uint64_t kind = what;

	hash_add(d->hash, &kind, sizeof(kind));
	digest_str(d, text);
	return 0;
}

static void digest_target(struct digest *d, const struct upstream *u, const struct config_target *t,
			  const struct package *package)
{
	const struct config_server *s = u->server;
	uint64_t n = t->headers_n;

	digest_str(d, s->name);
	digest_str(d, str_of(config_wire_names[s->type]));
	digest_list(d, t->argv);
	digest_list(d, t->env);
	digest_str(d, str_of(t->cwd));
	digest_str(d, str_of(t->url));
	hash_add(d->hash, &n, sizeof(n));
	for (size_t i = 0; i < n; i++) {
		digest_str(d, t->headers[i].key);
		digest_str(d, t->headers[i].value);
	}
	digest_str(d, s->sandbox.off ? STR_LIT("host") : STR_LIT("sandbox"));
	digest_str(d, s->sandbox.template);
	digest_list(d, t->read);
	digest_list(d, t->write);
	digest_strs(d, &s->sandbox.network);
	digest_strs(d, &u->reach);
	if (package)
		digest_str(d, str_of(package->image)); /* all of its bytes */
	if (s->sandbox.state.n) { /* grants of servers without it stay good */
		digest_str(d, STR_LIT("state"));
		digest_list(d, t->state);
	}
}

static int digest_value(void *data, enum config_part_kind kind, struct str name, struct buf *to,
			struct err *e)
{
	struct str value = STR_NONE;

	if (kind == CONFIG_PART_SECRET)
		return buf_addf(to, e, "${secret:%.*s}", STR_ARG(name)) < 0 ? -1 : 1;
	if (kind == CONFIG_PART_ENV)
		value = texts_variable(name);
	return !value.p ? 0 : buf_add(to, value.p, value.n, e) < 0 ? -1 : 1;
}

static int digest_make(const struct upstream *u, const struct config_target *t,
		       const struct package *package, char ret[HASH_HEX + 1], struct err *e)
{
	AUTO(hash_free) struct hash *h = hash_new(e);
	struct digest d = { .hash = h };

	if (!h)
		return -1;
	memcpy(d.key, u->all->key, sizeof(d.key));
	digest_pad(&d, 0x36);
	digest_target(&d, u, t, package);
	if (config_server_texts(u->config, u->server, digest_text, &d, e) < 0)
		return -1;
	hash_end(h, ret);
	digest_pad(&d, 0x5c);
	hash_add(h, ret, HASH_HEX);
	hash_end(h, ret);
	return 0;
}

/* ---- what it may reach --------------------------------------------------------------------- */

/* Appends a rule as the file would have it. */
static int reach_rule(const struct net_grant *g, size_t i, struct buf *to, struct err *e)
{
	char text[NET_RULE_TEXT], http[NET_HTTP_TEXT];
	size_t n;
	const struct net_http_rule *of = net_grant_http(g, i, &n);

	net_rule_print(&g->rules[i], text);
	if (buf_addf(to, e, "%s", text) < 0)
		return -1;
	for (size_t k = 0; k < n; k++) {
		net_http_print(&of[k], http);
		if (buf_addf(to, e, "%s %s", k ? "," : "", http) < 0)
			return -1;
	}
	return 0;
}

/* A text of the file, and behind it what it means where that is not the same. */
static int reach_text(struct upstream *u, struct str text, struct str *ret, struct err *e)
{
	autogrant struct net_grant g = { .n = 0 };
	autobuf struct buf means = BUF_INIT(REACH_MAX), all = BUF_INIT(REACH_MAX);

	if (net_grant_init(&g, e) < 0 ||
	    u->all->place.rules(config_file(u->config), text, &g, e) < 0)
		return -1;
	for (size_t i = 0; i < g.n; i++) {
		if ((i && buf_add(&means, "; ", 2, e) < 0) || reach_rule(&g, i, &means, e) < 0)
			return -1;
	}
	if (buf_add(&all, text.p, text.n, e) < 0 ||
	    (!str_eq(text, buf_str(&means)) &&
	     buf_addf(&all, e, ": %.*s", STR_ARG(buf_str(&means))) < 0))
		return -1;
	*ret = (struct str){ arena_dup(u->reach_arena, buf_str(&all), e), all.n };
	return ret->p ? 0 : -1;
}

void grant_forget_reach(struct upstream *u)
{
	arena_free(take_ptr(u->reach_arena));
	u->reach = (struct field_strs){ .n = 0 };
}

/* Presets are others of the file's own, and change without the server's entry. */
static int grant_reach(struct upstream *u, struct err *e)
{
	const struct field_strs *network = &u->server->sandbox.network;
	struct str *p;

	grant_forget_reach(u);
	if (network->n == 0)
		return 0;
	u->reach_arena = arena_new(2 * REACH_MAX);
	if (!u->reach_arena)
		return err_set(e, ERR_LIMIT, "out of memory");
	p = arena_array(u->reach_arena, network->n, sizeof(*p), e);
	for (size_t i = 0; p && i < network->n; i++) {
		if (reach_text(u, network->p[i], &p[i], e) < 0)
			return err_wrap(e, "network");
	}
	u->reach = (struct field_strs){ p, p ? network->n : 0 };
	return p ? 0 : -1;
}

void grant_digest(struct upstream *u)
{
	const struct config_values values = { NULL, digest_value };
	struct config_target t = { .argv = NULL };
	int is_package;

	u->unfit = (struct err)ERR_INIT;
	u->digest[0] = u->update_digest[0] = '\0';
	is_package = packages_wanted(u, &u->unfit);
	if (is_package < 0 || grant_reach(u, &u->unfit) < 0 ||
	    config_target_init(&t, u->config, u->server, &values, &u->unfit) < 0) {
		u->unfit.code = ERR_MODULE_START; /* not what a client asks for is wrong */
		return;
	}
	if (is_package && !u->package)
		err_set(&u->unfit, ERR_MODULE_UNAPPROVED,
			"the package of module %s is not %s yet: holt mcp approve %s", u->name,
			u->update ? "approved" : "fetched", u->name);
	else if (digest_make(u, &t, u->package, u->digest, &u->unfit) < 0)
		u->digest[0] = '\0';
	if (u->update && digest_make(u, &t, u->update, u->update_digest, &u->unfit) < 0)
		u->update_digest[0] = '\0';
	config_target_fini(&t);
}

bool grant_holds(const struct upstream *u)
{
	return u->digest[0] && strcmp(u->digest, u->approved) == 0;
}

int grant_write(const struct upstream *u, struct err *e)
{
	return store_module_put(hub_store(u->all->hub),
				&(struct store_module){
					.name = str_of(u->name),
					.digest = str_of(u->approved),
					.who = str_of(u->approved_by),
					.approved_ms = u->approved_ms,
					.disabled = u->disabled,
					.pins = str_of(u->pins ?: ""),
					.package = str_of(u->package_image.digest),
					.update = str_of(u->update_image.digest),
					.package_for = str_of(u->package_image.for_entry),
					.update_for = str_of(u->update_image.for_entry),
				},
				e);
}

static void grant_take_image(struct upstream_image *to, struct str digest, struct str for_entry)
{
	snprintf(to->digest, sizeof(to->digest), "%.*s", STR_ARG(digest));
	snprintf(to->for_entry, sizeof(to->for_entry), "%.*s", STR_ARG(for_entry));
}

static int grant_take(void *arg, const struct store_module *r, struct err *e)
{
	struct upstream *u = arg;

	if (!str_is(r->name, u->name))
		return 0;
	snprintf(u->approved, sizeof(u->approved), "%.*s", STR_ARG(r->digest));
	snprintf(u->approved_by, sizeof(u->approved_by), "%.*s", STR_ARG(r->who));
	u->approved_ms = r->approved_ms;
	u->disabled = r->disabled;
	free(pins_swap(u, r->pins.n ? mem_dup(r->pins.p, r->pins.n) : NULL));
	grant_take_image(&u->package_image, r->package, r->package_for);
	grant_take_image(&u->update_image, r->update, r->update_for);
	packages_fit(u);
	return r->pins.n && !u->pins ? err_set(e, ERR_LIMIT, "out of memory") : 0;
}

int grant_read(struct upstream *u, struct err *e)
{
	return store_modules(hub_store(u->all->hub), grant_take, u, e);
}
