#include "guard/key/key.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>

#include "base/log.h"
#include "base/words.h"
#include "store/store.h"

/* A key's last use is written at most this often, since a write costs more than most requests. */
enum { USED_EVERY_MS = 60 * 1000 };

static const char prefix[] = "holt_key_";
enum { TOKEN_LENGTH = sizeof(prefix) - 1 + 64 };

const char *const key_scope_names[KEY_SCOPES] = { "read", "execute", "lifecycle", "admin" };

/* A key that a key made, and that is gone. */
struct key_ended {
	struct key_ended *next;
	char owner[KEY_OWNER_MAX + 1], makers[KEY_MAKERS_TEXT];
};

struct keys {
	struct store *store;
	struct keys_options o;
	struct key *first;
	struct key_ended *ended;
	size_t n;
};

static_assert(KEY_HASH == crypto_hash_sha256_BYTES, "a SHA-256");

static void key_hash(struct str token, char ret[KEY_HASH])
{
	crypto_hash_sha256((unsigned char *)ret, (const unsigned char *)token.p, token.n);
}

/* The id is the beginning of the hash, which two keys never share. */
static void key_set_hash(struct key *k, const char hash[KEY_HASH])
{
	memcpy(k->hash, hash, KEY_HASH);
	sodium_bin2hex(k->id, sizeof(k->id), (const unsigned char *)hash, KEY_ID_MAX / 2);
}

static int key_name_check(struct str name, struct err *e)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	size_t n = 0;

	while (n < name.n && name.p[n] && strchr(letters, name.p[n]))
		n++;
	if (name.n == 0 || n < name.n || name.n > KEY_NAME_MAX || strchr("._-", *name.p))
		return err_set(e, ERR_INVALID,
			       "name: 1 to %d letters, digits, '.', '_' and '-', beginning with a "
			       "letter or digit",
			       KEY_NAME_MAX);
	return 0;
}

/* Where the key of this name hangs; at the end, there is none. */
static struct key **keys_at(struct keys *ks, struct str name)
{
	struct key **at = &ks->first;

	while (*at && !str_is(name, (*at)->name))
		at = &(*at)->next;
	return at;
}

static void key_free(struct key *k)
{
	sodium_memzero(k, sizeof(*k));
	free(k);
}

static void key_end(struct keys *ks, struct key *k)
{
	if (!k->expired && ks->o.on_end)
		ks->o.on_end(ks->o.owner, k);
}

static void key_owner(const struct key *k, char ret[KEY_OWNER_MAX + 1])
{
	snprintf(ret, KEY_OWNER_MAX + 1, "key:%s@%s", k->name, k->id);
}

static int keys_note_ended(void *arg, struct str owner, struct str makers, struct err *e)
{
	struct keys *ks = arg;
	struct key_ended *d = calloc(1, sizeof(*d));

	if (!d)
		return err_set(e, ERR_LIMIT, "out of memory");
	snprintf(d->owner, sizeof(d->owner), "%.*s", STR_CUT(owner, KEY_OWNER_MAX));
	snprintf(d->makers, sizeof(d->makers), "%.*s", STR_CUT(makers, KEY_MAKERS_TEXT - 1));
	d->next = ks->ended;
	ks->ended = d;
	return 0;
}

/* From the registry, too, which notes what made it, as this does. */
static int keys_remove(struct keys *ks, struct key **at, struct err *e)
{
	struct key *k = *at;
	char owner[KEY_OWNER_MAX + 1];

	key_owner(k, owner);
	if ((k->makers[0] && keys_note_ended(ks, str_of(owner), str_of(k->makers), e) < 0) ||
	    store_api_key_drop(ks->store, str_of(k->name), e) < 0)
		return -1;
	*at = k->next;
	ks->n--;
	key_end(ks, k);
	key_free(k);
	return 0;
}

static int load_one(void *arg, const struct store_api_key *r, struct err *e)
{
	struct keys *ks = arg;
	struct key **at = keys_at(ks, STR_NONE); /* nobody has that name */
	struct key *k = calloc(1, sizeof(*k));

	if (!k)
		return err_set(e, ERR_LIMIT, "out of memory");
	*at = k;
	ks->n++;
	if (key_name_check(r->name, e) < 0 || r->hash.n != KEY_HASH)
		return err_set(e, ERR_STORE_CORRUPT, "the registry has a key that can't be");
	memcpy(k->name, r->name.p, r->name.n);
	key_set_hash(k, r->hash.p);
	k->scopes = r->scopes;
	k->created_ms = r->created_ms;
	k->expires_ms = r->expires_ms;
	k->used_ms = k->stored_ms = r->used_ms;
	snprintf(k->makers, sizeof(k->makers), "%.*s", STR_CUT(r->makers, KEY_MAKERS_TEXT - 1));
	return 0;
}

struct keys *keys_open(struct store *store, const struct keys_options *o, struct err *e)
{
	AUTO(keys_free) struct keys *ks = sodium_init() < 0 ? NULL : calloc(1, sizeof(*ks));

	if (!ks)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	ks->store = store;
	ks->o = *o;
	return store_api_keys(store, load_one, ks, e) < 0 ||
			       store_api_keys_ended(store, keys_note_ended, ks, e) < 0
		     ? NULL
		     : take_ptr(ks);
}

void keys_free(struct keys *ks)
{
	if (!ks)
		return;
	while (ks->first) {
		struct key *k = ks->first;

		ks->first = k->next;
		key_free(k);
	}
	while (ks->ended) {
		struct key_ended *d = ks->ended;

		ks->ended = d->next;
		free(d);
	}
	free(ks);
}

static int keys_check(struct keys *ks, const struct key_spec *spec, struct err *e)
{
	struct key *same = *keys_at(ks, spec->name);

	if (key_name_check(spec->name, e) < 0)
		return -1;
	if (spec->scopes == 0 || spec->scopes >= 1u << KEY_SCOPES)
		return err_set(e, ERR_INVALID,
			       "scopes: one or more of read, execute, lifecycle and admin");
	if (spec->ttl_ms > KEY_TTL_MAX_MS)
		return err_set(e, ERR_INVALID, "ttl: at most ten years");
	if (same && !same->expired)
		return err_set(e, ERR_NAME_TAKEN, "there is a key %s; revoke it first", same->name);
	if (!same && ks->n >= KEYS_MAX)
		return err_set(e, ERR_LIMIT, "there are %d keys", KEYS_MAX);
	return 0;
}

static int key_store(struct keys *ks, const struct key *k, struct err *e)
{
	return store_api_key_put(ks->store,
				 &(struct store_api_key){ .name = str_of(k->name),
							  .hash = { k->hash, KEY_HASH },
							  .scopes = k->scopes,
							  .created_ms = k->created_ms,
							  .expires_ms = k->expires_ms,
							  .used_ms = k->used_ms,
							  .makers = str_of(k->makers) },
				 e);
}

/* Those of its maker, and that. */
static int key_set_makers(const struct keys *ks, struct key *k, struct str maker, struct err *e)
{
	struct str above = keys_makers(ks, maker), rest = above, one;
	unsigned n = 0;

	while (str_word(&rest, &one))
		n++;
	if (n >= KEY_MAKERS_MAX)
		return err_set(e, ERR_LIMIT,
			       "%d keys made this one, one by the other, so it makes none",
			       KEY_MAKERS_MAX);
	snprintf(k->makers, sizeof(k->makers), "%.*s%s%.*s", STR_ARG(above), n ? " " : "",
		 STR_ARG(maker));
	return 0;
}

struct key *keys_create(struct keys *ks, const struct key_spec *spec, int64_t now_ms,
			struct secret **ret_token, struct err *e)
{
	AUTO(secret_free) struct secret *token = NULL;
	autofree struct key *k = NULL;
	char hash[KEY_HASH];
	struct key **at;

	keys_expire(ks, now_ms);
	if (keys_check(ks, spec, e) < 0)
		return NULL;
	token = secret_random(prefix, e);
	k = token ? calloc(1, sizeof(*k)) : NULL;
	if (!k)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	memcpy(k->name, spec->name.p, spec->name.n);
	if (key_set_makers(ks, k, spec->maker, e) < 0)
		return NULL;
	k->scopes = spec->scopes;
	k->created_ms = now_ms;
	k->expires_ms = spec->ttl_ms ? now_ms + (int64_t)spec->ttl_ms : 0;
	key_hash(secret_expose(token, "hashed for the registry"), hash);
	key_set_hash(k, hash);
	at = keys_at(ks, spec->name);
	if ((*at && keys_remove(ks, at, e) < 0) || key_store(ks, k, e) < 0)
		return NULL;
	at = keys_at(ks, STR_NONE);
	*at = k;
	ks->n++;
	*ret_token = take_ptr(token);
	if (ks->o.on_new)
		ks->o.on_new(ks->o.owner, k);
	return take_ptr(k);
}

static void key_used(struct keys *ks, struct key *k, int64_t now_ms)
{
	struct err e = ERR_INIT;

	k->used_ms = now_ms;
	if (now_ms - k->stored_ms < USED_EVERY_MS && now_ms >= k->stored_ms)
		return;
	k->stored_ms = now_ms;
	if (store_api_key_used(ks->store, str_of(k->name), now_ms, &e) < 0)
		log_warn("the last use of key %s is not in the registry: %s", k->name, e.msg);
}

struct key *keys_find(struct keys *ks, struct str token, int64_t now_ms)
{
	struct key *found = NULL;
	char hash[KEY_HASH];

	if (token.n != TOKEN_LENGTH)
		return NULL;
	key_hash(token, hash);
	for (struct key *k = ks->first; k; k = k->next)
		found = sodium_memcmp(k->hash, hash, KEY_HASH) == 0 ? k : found;
	if (!found || found->expired || (found->expires_ms && found->expires_ms <= now_ms))
		return NULL;
	key_used(ks, found, now_ms);
	return found;
}

int keys_revoke(struct keys *ks, struct str name, struct err *e)
{
	struct key **at = keys_at(ks, name);

	if (!name.n || !*at)
		return err_set(e, ERR_KEY_NOT_FOUND, "there is no key %.*s",
			       STR_CUT(name, KEY_NAME_MAX));
	return keys_remove(ks, at, e);
}

int64_t keys_expire(struct keys *ks, int64_t now_ms)
{
	int64_t next = 0;

	for (struct key *k = ks->first; k; k = k->next) {
		if (k->expired || !k->expires_ms)
			continue;
		if (k->expires_ms > now_ms) {
			next = !next || k->expires_ms < next ? k->expires_ms : next;
			continue;
		}
		key_end(ks, k);
		k->expired = true;
	}
	return next;
}

struct str keys_makers(const struct keys *ks, struct str owner)
{
	char its[KEY_OWNER_MAX + 1];
	const struct key_ended *d = ks->ended;

	if (!str_starts(owner, "key:"))
		return STR_NONE;
	for (const struct key *k = ks->first; k; k = k->next) {
		if (!str_ends(owner, k->id))
			continue;
		key_owner(k, its);
		if (str_is(owner, its))
			return str_of(k->makers);
	}
	while (d && !str_is(owner, d->owner))
		d = d->next;
	return d ? str_of(d->makers) : STR_NONE;
}

struct key *keys_first(const struct keys *ks)
{
	return ks->first;
}
