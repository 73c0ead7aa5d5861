#include "hub/sandbox/idempotent.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "hub/sandbox/internal.h"

enum { SCOPE_MAX = 255 };

static int idempotent_check(const struct idempotent_key *k, struct str plan, struct err *e)
{
	bool printable = k->key.n > 0 && k->key.n <= IDEMPOTENT_KEY_MAX;

	for (size_t i = 0; printable && i < k->key.n; i++)
		printable = k->key.p[i] > ' ' && k->key.p[i] <= '~';
	if (!printable)
		return err_set(e, ERR_INVALID,
			       "Idempotency-Key: 1 to %d printable ASCII characters",
			       IDEMPOTENT_KEY_MAX);
	if (k->scope.n > SCOPE_MAX || plan.n > IDEMPOTENT_PLAN_MAX)
		return err_set(e, ERR_BUG, "a scope or a plan is too long");
	return 0;
}

static enum idempotent idempotent_judge(const struct hub_sandboxes *all,
					const struct store_key *found, struct str digest,
					struct err *e)
{
	if (!str_eq(found->digest, digest)) {
		err_set(e, ERR_CONFLICT, "the Idempotency-Key belongs to another request");
		return IDEMPOTENT_REFUSED;
	}
	if (found->done)
		return IDEMPOTENT_DONE;
	if (str_is(found->run, all->run)) {
		err_set(e, ERR_CONFLICT, "a request with this Idempotency-Key is under way");
		return IDEMPOTENT_REFUSED;
	}
	return IDEMPOTENT_RESUMED;
}

static enum idempotent begin(struct hub_sandboxes *all, const struct store_key *k,
			     struct idempotent_answer *ret, struct err *e)
{
	struct store_key found, mine = *k;
	enum idempotent judged = IDEMPOTENT_NEW;
	int there = store_key_find(all->store, k->scope, k->key, &found, e);

	if (there > 0 && found.at_ms >= k->at_ms - KEYS_LIVE_MS)
		judged = idempotent_judge(all, &found, k->digest, e);
	if (there < 0 || judged == IDEMPOTENT_REFUSED)
		return IDEMPOTENT_REFUSED;
	if (judged == IDEMPOTENT_DONE) {
		*ret = (struct idempotent_answer){ found.status, found.body, STR_NONE };
		return judged;
	}
	if (judged == IDEMPOTENT_RESUMED) {
		snprintf(all->plan, sizeof(all->plan), "%.*s", STR_ARG(found.plan));
		mine.plan = str_of(all->plan);
		mine.at_ms = found.at_ms;
	}
	ret->plan = mine.plan;
	return store_key_put(all->store, &mine, e) < 0 ? IDEMPOTENT_REFUSED : judged;
}

static struct store_key key_of(const struct hub_sandboxes *all, const struct idempotent_key *k,
			       char digest[STORE_DIGEST_BYTES])
{
	store_digest(k->request, digest);
	return (struct store_key){
		.scope = k->scope,
		.key = k->key,
		.digest = { digest, STORE_DIGEST_BYTES },
		.run = str_of(all->run),
		.at_ms = clock_unix_ms(),
		.plan = STR_LIT(""),
		.body = STR_LIT(""),
	};
}

enum idempotent idempotent_begin(struct hub_sandboxes *all, const struct idempotent_key *key,
				 struct str plan, struct idempotent_answer *ret, struct err *e)
{
	char digest[STORE_DIGEST_BYTES];
	struct store_key k;
	enum idempotent judged;

	if (idempotent_check(key, plan, e) < 0)
		return IDEMPOTENT_REFUSED;
	if (!all->store) {
		err_set(e, ERR_INVALID, "Idempotency-Key: this hub keeps none");
		return IDEMPOTENT_REFUSED;
	}
	k = key_of(all, key, digest);
	k.plan = plan.p ? plan : STR_LIT("");
	judged = begin(all, &k, ret, e);
	hub_sandboxes_written(all);
	return judged;
}

int idempotent_end(struct hub_sandboxes *all, const struct idempotent_key *key, int status,
		   struct str body, struct err *e)
{
	char digest[STORE_DIGEST_BYTES];
	struct store_key k = key_of(all, key, digest);
	int result;

	k.done = true;
	k.status = status;
	k.body = body.p ? body : STR_LIT("");
	result = body.n > IDEMPOTENT_BODY_MAX
		       ? err_set(e, ERR_TOO_LARGE, "the answer is too large to be kept")
		       : store_key_put(all->store, &k, e);
	if (result < 0)
		idempotent_drop(all, key);
	hub_sandboxes_written(all);
	return result;
}

void idempotent_drop(struct hub_sandboxes *all, const struct idempotent_key *key)
{
	struct err e = ERR_INIT;

	if (store_key_drop(all->store, key->scope, key->key, &e) < 0)
		log_warn("an Idempotency-Key stays in flight: %s", e.msg);
}
