/*
 * Who asks with an API key or with the token of a conversation, and what for. A principal is made
 * at the first use of either and lives as long as the gate, since calls, sessions and shares of
 * room point to it. When the key or token ends, it is marked at once, so that nothing new is let
 * in. What it has under way ends on the loop's next turn, since the call that revokes the key may
 * be on the stack, and may be its own.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "guard/gate/internal.h"
#include "agents/conversation/conversation.h"
#include "hub/core/hub.h"

/* Clocks are set: look again after so long at the latest. */
enum { LOOK_MS = 60 * 1000 };

struct key_holder {
	struct key_holder *next;
	struct principal who;
	bool told; /* that it has ended */
	char name[OWNER_MAX + 1], owner[OWNER_MAX + 1];
	/* The owner of a conversation, and the owner's name. */
	char works_for[OWNER_MAX + 1], of[OWNER_MAX + 1];
};

struct gate_identity {
	struct gate *gate;
	struct keys *keys;
	struct key_holder *holders;
	uv_timer_t timer; /* until the next key expires */
};

static void identity_on_timer(uv_timer_t *t)
{
	struct gate_identity *id = t->data;
	const struct gate *g = id->gate;
	int64_t now = clock_unix_ms(), next = keys_expire(id->keys, now);

	if (next)
		uv_timer_start(t, identity_on_timer,
			       next - now < LOOK_MS ? (uint64_t)(next - now) : LOOK_MS, 0);
	/* Things that end with a key, such as tokens of conversations, are due at once. */
	for (struct key_holder *h = id->holders; h; h = h->next) {
		if (!h->who.ended || h->told)
			continue;
		h->told = true;
		log_info("%s is good for nothing any more", h->name);
		if (g->on_ended)
			g->on_ended(g->owner, &h->who);
	}
}

static void identity_on_new(void *owner, const struct key *k)
{
	struct gate *g = owner;

	if (k->expires_ms)
		uv_timer_start(&g->identity->timer, identity_on_timer, 0, 0);
}

static void key_owner(const struct key *k, char ret[OWNER_MAX + 1])
{
	snprintf(ret, OWNER_MAX + 1, "key:%s@%s", k->name, k->id);
}

/* NULL: it has ended. */
static struct key *key_of(const struct gate_identity *id, struct str owner)
{
	int64_t now = clock_unix_ms();
	char text[OWNER_MAX + 1];

	for (struct key *k = keys_first(id->keys); k; k = k->next) {
		key_owner(k, text);
		if (str_is(owner, text))
			return k->expired || (k->expires_ms && now >= k->expires_ms) ? NULL : k;
	}
	return NULL;
}

static bool is_conversation(struct str owner)
{
	return str_starts(owner, CONVERSATION_PRINCIPAL);
}

static struct str conversation_id_of(struct str owner)
{
	size_t n = sizeof(CONVERSATION_PRINCIPAL) - 1;

	return (struct str){ owner.p + n, owner.n - n };
}

/* NULL: it is none, or there is none, or it is in the trash. */
static struct conversation *conversation_of(const struct gate *g, struct str owner)
{
	return g->conversations && is_conversation(owner)
		     ? conversations_find(g->conversations, conversation_id_of(owner))
		     : NULL;
}

/* A conversation has the end of its owner. One in the trash may come back. */
static bool identity_knows(void *data, struct str owner)
{
	const struct gate *g = data;
	const struct conversation *t = conversation_of(g, owner);

	if (t)
		owner = conversation_record(t)->owner;
	return !str_starts(owner, "key:") || key_of(g->identity, owner);
}

/* Not its token, which is another whenever its agent starts. */
static bool identity_acts(void *data, struct str owner)
{
	const struct conversation *t = conversation_of(data, owner);

	return (t ? !conversation_record(t)->archived : !is_conversation(owner)) &&
	       identity_knows(data, owner);
}

/* NULL without memory: then nobody is known. */
static struct key_holder *holder_new(struct gate_identity *id, unsigned scopes)
{
	struct key_holder *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->who = (struct principal){
		.name = h->name, .owner = h->owner, .scopes = scopes, .sees_all = scopes == KEY_ALL
	};
	h->next = id->holders;
	id->holders = h;
	return h;
}

static unsigned scopes_of_key(const struct key *k)
{
	return k->scopes & KEY_ADMIN ? KEY_ALL : k->scopes;
}

/* Who asks without a key and a token of a conversation, seen by others: a program in its sandbox
 * is not the operator, nor the holder of the token; and what its agents use, it does not lack. */
static const struct principal unkeyed[] = {
	{ .name = "local", .scopes = KEY_READ | KEY_EXECUTE },
	{ .name = "token", .scopes = KEY_READ | KEY_EXECUTE },
};

static const struct principal *unkeyed_find(struct str owner)
{
	for (size_t i = 0; i < ARRAY_LEN(unkeyed); i++) {
		if (str_is(owner, unkeyed[i].name))
			return &unkeyed[i];
	}
	return NULL;
}

/* The principal whose room a key of a line uses: the first key of the line, which may have ended.
 * NULL: its own. */
static const struct principal *holder_payer(struct gate_identity *id, const struct key_holder *h,
					    struct str line)
{
	const struct principal *p = unkeyed_find(line);
	struct key_holder *first = id->holders;

	if (p || str_is(line, h->owner))
		return p;
	while (first && !str_is(line, first->owner))
		first = first->next;
	first = first ?: holder_new(id, 0);
	if (!first)
		return NULL;
	if (!first->name[0]) {
		snprintf(first->owner, sizeof(first->owner), "%.*s", STR_CUT(line, OWNER_MAX));
		snprintf(first->name, sizeof(first->name), "%.*s",
			 STR_ARG(gate_name_of(str_of(first->owner))));
	}
	return &first->who;
}

/* One that pays for others may be there before its own first request. */
static struct key_holder *holder_of_key(struct gate_identity *id, struct key *k)
{
	struct key_holder *h = k->data;
	char owner[OWNER_MAX + 1];

	if (h)
		return h;
	key_owner(k, owner);
	for (h = id->holders; h && strcmp(h->owner, owner) != 0;)
		h = h->next;
	h = k->data = h ?: holder_new(id, 0);
	if (!h)
		return NULL;
	h->who.scopes = scopes_of_key(k);
	h->who.sees_all = h->who.scopes == KEY_ALL;
	snprintf(h->name, sizeof(h->name), "key:%s", k->name);
	memcpy(h->owner, owner, sizeof(owner));
	h->who.payer = holder_payer(id, h, guard_line(&id->gate->guard, str_of(h->owner)));
	return h;
}

struct str gate_name_of(struct str owner)
{
	return str_before(owner, '@');
}

unsigned gate_owner_scopes(const struct gate *g, struct str owner)
{
	const struct key *k = g->identity ? key_of(g->identity, owner) : NULL;

	return k ? scopes_of_key(k) : str_starts(owner, "key:") ? 0 : KEY_ALL;
}

/* An agent never administers, and does no more than the one it works for. */
static unsigned scopes_of_conversation(const struct gate_identity *id, const struct conversation *t)
{
	return gate_owner_scopes(id->gate, conversation_record(t)->owner) & ~(unsigned)KEY_ADMIN;
}

/* It has its name, which is its owner, too. */
static void holder_works_for(struct key_holder *h, struct str owner)
{
	memcpy(h->owner, h->name, sizeof(h->owner));
	snprintf(h->works_for, sizeof(h->works_for), "%.*s", STR_CUT(owner, OWNER_MAX));
	snprintf(h->of, sizeof(h->of), "%.*s", STR_ARG(gate_name_of(str_of(h->works_for))));
	h->who.of = h->of;
}

static struct key_holder *holder_of_conversation(struct gate_identity *id, struct conversation *t)
{
	void **state = conversation_token_state(t);
	struct key_holder *h = *state;

	if (h)
		return h;
	h = *state = holder_new(id, scopes_of_conversation(id, t));
	if (h) {
		snprintf(h->name, sizeof(h->name), CONVERSATION_PRINCIPAL "%s", conversation_id(t));
		holder_works_for(h, conversation_record(t)->owner);
		h->who.payer = holder_payer(
			id, h, guard_line(&id->gate->guard, conversation_record(t)->owner));
	}
	return h;
}

const struct principal *gate_identify(struct gate *g, struct str token)
{
	struct gate_identity *id = g->identity;
	struct conversation *t = id && g->conversations
				       ? conversations_by_token(g->conversations, token)
				       : NULL;
	struct key *k = id && !t ? keys_find(id->keys, token, clock_unix_ms()) : NULL;
	struct key_holder *h = t ? holder_of_conversation(id, t) : k ? holder_of_key(id, k) : NULL;

	return h ? &h->who : NULL;
}

/* Sandboxes of a conversation outlive it. The holder of its token tells whom it worked for, and is
 * made where only an earlier hub had one. */
static const struct key_holder *holder_of_trashed(const struct gate *g, struct str owner)
{
	struct key_holder *h = g->identity ? g->identity->holders : NULL;
	autofree char *works_for = NULL;

	if (!g->identity || !g->conversations || !is_conversation(owner))
		return NULL;
	while (h && !(h->who.of && str_is(owner, h->owner)))
		h = h->next;
	works_for = h ? NULL
		      : conversations_trashed_owner(g->conversations, conversation_id_of(owner));
	if (!works_for)
		return h;
	h = holder_new(g->identity, 0);
	if (!h)
		return NULL;
	snprintf(h->name, sizeof(h->name), "%.*s", STR_CUT(owner, OWNER_MAX));
	holder_works_for(h, str_of(works_for));
	h->who.ended = h->told = true;
	return h;
}

static struct str identity_works_for(void *data, struct str owner)
{
	const struct gate *g = data;
	const struct conversation *t = conversation_of(g, owner);
	const struct key_holder *h = t ? NULL : holder_of_trashed(g, owner);

	return t ? conversation_record(t)->owner : h ? str_of(h->works_for) : owner;
}

static struct str identity_makers(void *data, struct str owner)
{
	const struct gate *g = data;

	return g->identity ? keys_makers(g->identity->keys, identity_works_for(data, owner))
			   : STR_NONE;
}

void gate_names_of(struct gate *g, struct str owner, struct gate_names *ret)
{
	*ret = (struct gate_names){ gate_name_of(identity_works_for(g, owner)),
				    is_conversation(owner) ? owner : STR_NONE,
				    identity_makers(g, owner) };
}

static void identity_end(struct gate_identity *id, struct key_holder *h)
{
	if (!h)
		return;
	h->who.ended = true;
	uv_timer_start(&id->timer, identity_on_timer, 0, 0);
}

void gate_token_ended(struct gate *g, struct conversation *t)
{
	if (g && g->identity)
		identity_end(g->identity, take_ptr(*conversation_token_state(t)));
}

struct str gate_payer(void *data, struct str owner)
{
	const struct gate *g = data;

	return unkeyed_find(owner) ? STR_NONE : guard_line(&g->guard, owner);
}

/* That of a conversation is there as long as its token. */
static const struct key_holder *holder_of_owner(const struct gate *g, struct str owner)
{
	struct key *k = key_of(g->identity, owner);
	struct conversation *t = conversation_of(g, owner);

	return k ? holder_of_key(g->identity, k) : t ? *conversation_token_state(t) : NULL;
}

static const struct principal *identity_owner(void *data, struct str owner)
{
	const struct principal *p = unkeyed_find(owner);
	const struct key_holder *h = p ? NULL : holder_of_owner(data, owner);

	return h ? &h->who : p;
}

/* Effects on the contents of a sandbox need the scope execute, destructive ones too. */
static unsigned scopes_of(const struct op *op)
{
	if (op->effect == OP_READ)
		return KEY_READ;
	if (op->effect == OP_ADMINISTER)
		return KEY_ADMIN;
	if (!(op->flags & OP_LIFECYCLE))
		return KEY_EXECUTE;
	return op->effect == OP_EXECUTE ? KEY_LIFECYCLE | KEY_EXECUTE : KEY_LIFECYCLE;
}

int gate_check_scopes(const struct principal *who, const struct op *op, struct err *e)
{
	unsigned missing = scopes_of(op) & ~who->scopes;

	for (size_t i = 0; i < KEY_SCOPES; i++) {
		if (missing >> i & 1)
			return err_set(e, ERR_DENIED, "%s needs a key with the scope %s",
				       op->action, key_scope_names[i]);
	}
	return 0;
}

static void identity_on_end(void *owner, struct key *k)
{
	struct gate *g = owner;
	/* One that was not used yet may have conversations, of an earlier hub. */
	struct key_holder *h = holder_of_key(g->identity, k);

	k->data = NULL;
	identity_end(g->identity, h);
}

static void identity_closed(uv_handle_t *timer)
{
	free(timer->data);
}

int gate_identity_open(struct gate *g, struct err *e)
{
	const struct keys_options o = { .on_end = identity_on_end,
					.on_new = identity_on_new,
					.owner = g };
	struct store *store = g->hub ? hub_store(g->hub) : NULL;
	struct gate_identity *id;

	gate_start_open(g);
	if (!store)
		return 0;
	id = calloc(1, sizeof(*id));
	if (!id)
		return err_set(e, ERR_LIMIT, "out of memory");
	id->keys = keys_open(store, &o, e);
	if (!id->keys) {
		free(id);
		return -1;
	}
	id->gate = g;
	uv_timer_init(g->loop, &id->timer);
	id->timer.data = id;
	g->identity = id;
	g->guard.keys = id->keys;
	g->guard.knows = identity_knows;
	g->guard.acts = identity_acts;
	g->guard.works_for = identity_works_for;
	g->guard.makers = identity_makers;
	g->guard.owner = identity_owner;
	uv_timer_start(&id->timer, identity_on_timer, 0, 0);
	return 0;
}

void gate_identity_close(struct gate *g)
{
	struct gate_identity *id = take_ptr(g->identity);

	if (!id)
		return;
	keys_free(id->keys);
	while (id->holders) {
		struct key_holder *h = id->holders;

		id->holders = h->next;
		free(h);
	}
	uv_close((uv_handle_t *)&id->timer, identity_closed);
}
