#pragma once
/*
 * API keys: tokens that the operator gives to programs and people, each with a name, scopes and an
 * end. A token is "holt_key_" and 256 random bits in hex. It is shown once, to whoever creates the
 * key; afterwards only its SHA-256 exists, in the registry and here. A hash without salt is enough,
 * since nobody can guess 256 bits.
 *
 * Times are in milliseconds since 1970.
 */
#include <stdint.h>

#include "base/secret.h"

struct store;
struct keys; /* all keys of a hub */

/* The scopes of a key. The admin scope includes the others. */
enum key_scope {
	KEY_READ = 1 << 0, /* look */
	KEY_EXECUTE = 1 << 1, /* run programs in sandboxes, change their files and ports */
	KEY_LIFECYCLE = 1 << 2, /* create, fork, pause, snapshot and end sandboxes */
	KEY_ADMIN = 1 << 3, /* administer the hub; see what belongs to others */
	KEY_ALL = (1 << 4) - 1,
};
enum {
	KEY_SCOPES = 4,
	KEY_NAME_MAX = 48,
	KEY_HASH = 32,
	KEY_ID_MAX = 16,
	KEY_OWNER_MAX = 4 + KEY_NAME_MAX + 1 + KEY_ID_MAX,
	KEYS_MAX = 1000, /* of a hub */
	KEY_MAKERS_MAX = 8, /* of a key: a key that has so many makes none */
	KEY_MAKERS_TEXT = KEY_MAKERS_MAX * (KEY_OWNER_MAX + 1),
};
#define KEY_TTL_MAX_MS (10ull * 365 * 86400 * 1000)

extern const char *const key_scope_names[KEY_SCOPES]; /* by the number of the bit */

struct key {
	char name[KEY_NAME_MAX + 1]; /* ^[a-zA-Z0-9][a-zA-Z0-9._-]*$; no other key has it */
	char id[KEY_ID_MAX + 1]; /* hex; tells it from earlier and later keys of its name */
	unsigned scopes;
	int64_t created_ms;
	int64_t expires_ms; /* 0: never */
	int64_t used_ms; /* 0: never */
	/* Of a key that a key has made: the owners ("key:NAME@ID") of those that made it, one by
	 * the other, the first first, with blanks between (base/words.h). Any may be gone. "": no
	 * key made it. */
	char makers[KEY_MAKERS_TEXT];
	bool expired; /* on_end has been called for that */
	void *data; /* for whoever finds it; NULL at first */

	/* Internal. */
	struct key *next; /* in order of creation */
	char hash[KEY_HASH];
	int64_t stored_ms; /* used_ms in the registry */
};

struct keys_options {
	/* k is good for nothing any more, since it has expired or is about to be freed. Called once
	 * for a key. May be NULL. */
	void (*on_end)(void *owner, struct key *k);
	/* There is a key that may expire before all others. May be NULL. */
	void (*on_new)(void *owner, const struct key *k);
	void *owner;
};

/* Reads the keys of the registry, which is borrowed until keys_free(). */
struct keys *keys_open(struct store *store, const struct keys_options *o, struct err *e) MUST_USE;
void keys_free(struct keys *ks); /* NULL-safe; on_end is not called */
AUTO_DEFINE(keys_free, struct keys)

struct key_spec {
	struct str name;
	unsigned scopes;
	uint64_t ttl_ms; /* 0: it never expires */
	struct str maker; /* the owner of the key that makes it; STR_NONE: none does */
};
/* A new key; *ret_token is owned by the caller, the key borrowed until it ends. An expired key of
 * this name is replaced. ERR_NAME_TAKEN; ERR_LIMIT: there are KEYS_MAX, or the maker has
 * KEY_MAKERS_MAX. */
struct key *keys_create(struct keys *ks, const struct key_spec *spec, int64_t now_ms,
			struct secret **ret_token, struct err *e) MUST_USE;

/* The key of this token, which is noted as used; NULL: there is none, or it has expired. Takes as
 * long for a wrong token as for any right one. */
struct key *keys_find(struct keys *ks, struct str token, int64_t now_ms);

/* Removes the key from the registry and frees it. ERR_KEY_NOT_FOUND. */
int keys_revoke(struct keys *ks, struct str name, struct err *e) MUST_USE;

/* Ends the keys whose time is over. Returns when the next one will be; 0: none will. */
int64_t keys_expire(struct keys *ks, int64_t now_ms);

/* Those that made the key of this owner, which may have ended, as key.makers. Empty: no key did,
 * or it is no key's, or nothing is left of it. Borrowed. */
struct str keys_makers(const struct keys *ks, struct str owner);

/* In order of creation. */
struct key *keys_first(const struct keys *ks);
