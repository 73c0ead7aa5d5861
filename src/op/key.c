/* key.create, key.list and key.revoke: the API keys of the hub. No door for agents shows them. */
#include "base/clock.h"
#include "guard/key/key.h"
#include "base/when.h"
#include "call/call.h"
#include "call/guard.h"
#include "op/ops.h"

struct key_view {
	struct str name, id;
	struct field_strs scopes;
	struct str created_at, expires_at, used_at;
	bool expired;
	struct str token;
};
#define KEY_ROWS                                                                                   \
	FIELD(struct key_view, name, .flags = FIELD_REQUIRED,                                      \
	      .doc = "Name of the key; policies know its bearer as "                               \
		     "key:NAME."),                                                                 \
		FIELD(struct key_view, id, .flags = FIELD_REQUIRED,                                \
		      .doc = "Id of the key; what its bearer makes, and its records, belong to "   \
			     "key:NAME@ID."),                                                      \
		FIELD(struct key_view, scopes, .flags = FIELD_REQUIRED,                            \
		      .doc = "What the key allows."),                                              \
		FIELD(struct key_view, created_at, .flags = FIELD_REQUIRED,                        \
		      .doc = "When it was made, RFC 3339."),                                       \
		FIELD(struct key_view, expires_at,                                                 \
		      .doc = "When it expires, RFC 3339; absent: "                                 \
			     "never."),                                                            \
		FIELD(struct key_view, used_at,                                                    \
		      .doc = "When it was last used, to the minute, RFC 3339; absent: "            \
			     "never."),                                                            \
		FIELD(struct key_view, expired, .flags = FIELD_REQUIRED,                           \
		      .doc = "It has expired and allows nothing.")
static const struct field view_fields[] = { KEY_ROWS };
static const struct field_table view_table = FIELD_TABLE(struct key_view, view_fields);

/* NULL with *e: this hub keeps no keys. */
static struct keys *key_keys(const struct call *c, struct err *e)
{
	struct keys *ks = call_guard(c)->keys;

	if (!ks)
		err_set(e, ERR_UNSUPPORTED, "only a hub with a data folder keeps keys");
	return ks;
}

static int key_describe(struct call *c, const struct key *k, struct key_view *ret, struct err *e)
{
	struct arena *a = call_arena(c);
	struct str *scopes = arena_array(a, KEY_SCOPES, sizeof(*scopes), e);

	if (!scopes)
		return -1;
	*ret = (struct key_view){ .name = str_of(k->name),
				  .id = str_of(k->id),
				  .expired = k->expired };
	for (size_t i = 0; i < KEY_SCOPES; i++) {
		if (k->scopes >> i & 1)
			scopes[ret->scopes.n++] = str_of(key_scope_names[i]);
	}
	ret->scopes.p = scopes;
	return when_dup(a, k->created_ms, &ret->created_at, e) < 0 ||
			       when_dup(a, k->expires_ms, &ret->expires_at, e) < 0 ||
			       when_dup(a, k->used_ms, &ret->used_at, e) < 0
		     ? -1
		     : 0;
}

/* ---- key.create ---------------------------------------------------------------------------- */

struct key_create_request {
	struct str name;
	struct field_strs scopes;
	uint64_t ttl_seconds;
};
static const struct field create_fields[] = {
	FIELD(struct key_create_request, name, .flags = FIELD_REQUIRED, .min = 1,
	      .max = KEY_NAME_MAX,
	      .doc = "Name of the key, not in use yet: letters, digits, '.', '_' and '-'."),
	FIELD(struct key_create_request, scopes, .flags = FIELD_REQUIRED, .min = 1,
	      .max = KEY_SCOPES, .doc = "One or more of read, execute, lifecycle and admin."),
	FIELD(struct key_create_request, ttl_seconds, .max = KEY_TTL_MAX_MS / 1000,
	      .doc = "Seconds until it expires; absent or 0: never."),
};
static const struct field_table create_table = FIELD_TABLE(struct key_create_request,
							   create_fields);

static const struct field created_fields[] = {
	KEY_ROWS,
	FIELD(struct key_view, token, .flags = FIELD_REQUIRED | FIELD_PLAIN,
	      .doc = "The token that its bearer sends. It is returned only once and not stored."),
};
static const struct field_table created_table = FIELD_TABLE(struct key_view, created_fields);

static int key_scopes(const struct field_strs *names, unsigned *ret, struct err *e)
{
	*ret = 0;
	for (size_t i = 0; i < names->n; i++) {
		size_t k = 0;

		while (k < KEY_SCOPES && !str_is(names->p[i], key_scope_names[k]))
			k++;
		if (k == KEY_SCOPES)
			return err_set(e, ERR_INVALID, "scopes: no such scope as '%.*s'",
				       STR_CUT(names->p[i], 40));
		*ret |= 1u << k;
	}
	return 0;
}

static void key_create_run(struct call *c, const void *request)
{
	const struct key_create_request *q = request;
	AUTO(secret_free) struct secret *token = NULL;
	struct key_spec spec = { .name = q->name, .ttl_ms = q->ttl_seconds * 1000 };
	struct err e = ERR_INIT;
	struct keys *ks = key_keys(c, &e);
	const struct key *k = NULL;
	struct key_view view;

	if (str_starts(call_owner(c), "key:"))
		spec.maker = call_owner(c);
	if (ks && key_scopes(&q->scopes, &spec.scopes, &e) == 0)
		k = keys_create(ks, &spec, clock_unix_ms(), &token, &e);
	if (!k || key_describe(c, k, &view, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	view.token = secret_expose(token, "shown to the maker of the key");
	call_answer(c, &view);
}

const struct op key_create_op = {
	.action = "key.create",
	.doc = "Makes an API key and returns its token, which is not shown again.",
	.effect = OP_ADMINISTER,
	.request = &create_table,
	.result = &created_table,
	.run = key_create_run,
};

/* ---- key.list ------------------------------------------------------------------------------ */

struct keys_view {
	struct {
		const struct key_view *p;
		size_t n;
	} keys;
};
static const struct field list_fields[] = {
	FIELD_OBJECTS(struct keys_view, keys, view_table, .flags = FIELD_REQUIRED, .max = KEYS_MAX,
		      .doc = "In order of creation, without their tokens."),
};
static const struct field_table list_table = FIELD_TABLE(struct keys_view, list_fields);

static void key_list_run(struct call *c, const void *request)
{
	struct err e = ERR_INIT;
	struct keys *ks = key_keys(c, &e);
	struct key_view *views = ks ? arena_array(call_arena(c), KEYS_MAX, sizeof(*views), &e)
				    : NULL;
	size_t n = 0;
	int failed = !views;

	for (const struct key *k = failed ? NULL : keys_first(ks); k && !failed; k = k->next)
		failed = key_describe(c, k, &views[n++], &e) < 0;
	if (failed)
		call_fail(c, &e);
	else
		call_answer(c, &(struct keys_view){ { views, n } });
}

const struct op key_list_op = {
	.action = "key.list",
	.doc = "Lists the API keys, without their tokens.",
	.effect = OP_ADMINISTER,
	.request = &op_nothing_table,
	.result = &list_table,
	.run = key_list_run,
};

/* ---- key.revoke ---------------------------------------------------------------------------- */

struct key_revoke_request {
	struct str name;
};
static const struct field revoke_fields[] = {
	FIELD(struct key_revoke_request, name, .flags = FIELD_REQUIRED, .min = 1,
	      .max = KEY_NAME_MAX, .doc = "Name of the key."),
};
static const struct field_table revoke_table = FIELD_TABLE(struct key_revoke_request,
							   revoke_fields);

struct key_revoked {
	struct str status, name;
};
static const struct field revoked_fields[] = {
	FIELD(struct key_revoked, status, .flags = FIELD_REQUIRED, .doc = "Always revoked."),
	FIELD(struct key_revoked, name, .flags = FIELD_REQUIRED, .doc = "Name of the key."),
};
static const struct field_table revoked_table = FIELD_TABLE(struct key_revoked, revoked_fields);

static void key_revoke_run(struct call *c, const void *request)
{
	const struct key_revoke_request *q = request;
	struct err e = ERR_INIT;
	struct keys *ks = key_keys(c, &e);

	if (!ks || keys_revoke(ks, q->name, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &(struct key_revoked){ STR_LIT("revoked"), q->name });
}

const struct op key_revoke_op = {
	.action = "key.revoke",
	.doc = "Revokes an API key. Its bearer's calls end at once, and links and "
	       "forwarded ports that it made are closed. Its sandboxes and snapshots "
	       "stay, for principals who see everything.",
	.effect = OP_ADMINISTER,
	.request = &revoke_table,
	.result = &revoked_table,
	.run = key_revoke_run,
};
