/*
 * What the operator approved: a digest of all that a module is started or asked with, keyed by the
 * registry, so that nothing can be learned from it. Values of the environment are in it, secrets by
 * their names, so that a new value of one needs no approval.
 */
#include "base/hash.h"
#include "config/variables.h"
#include "upstream/internal.h"

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

static void digest_target(struct digest *d, const struct config_server *s,
			  const struct config_target *t)
{
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
		       char ret[HASH_HEX + 1], struct err *e)
{
	AUTO(hash_free) struct hash *h = hash_new(e);
	struct digest d = { .hash = h };

	if (!h)
		return -1;
	memcpy(d.key, u->all->key, sizeof(d.key));
	digest_pad(&d, 0x36);
	digest_target(&d, u->server, t);
	hash_end(h, ret);
	digest_pad(&d, 0x5c);
	hash_add(h, ret, HASH_HEX);
	hash_end(h, ret);
	return 0;
}

void grant_digest(struct upstream *u)
{
	const struct config_values values = { NULL, digest_value };
	struct config_target t = { .argv = NULL };

	u->unfit = (struct err)ERR_INIT;
	u->digest[0] = '\0';
	if (config_target_init(&t, u->config, u->server, &values, &u->unfit) < 0)
		return;
	if (digest_make(u, &t, u->digest, &u->unfit) < 0)
		u->digest[0] = '\0';
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
				},
				e);
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
	return r->pins.n && !u->pins ? err_set(e, ERR_LIMIT, "out of memory") : 0;
}

int grant_read(struct upstream *u, struct err *e)
{
	return store_modules(hub_store(u->all->hub), grant_take, u, e);
}
