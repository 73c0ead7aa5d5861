/*
 * Results that are larger than a call gives at once. They are kept in memory, for the owner that
 * called, until UPSTREAM_KEPT_S are over or the owner has newer ones in their place. What others
 * keep is never given up for one.
 */
#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "modules/internal.h"

enum {
	RESULTS_OF_MAX = 16, /* of an owner */
	RESULTS_OF_BYTES = 32 << 20,
	RESULTS_BYTES = 128 << 20, /* of all */
	RESULTS_SWEEP_MS = 10 * 1000,
};

struct upstream_kept {
	struct upstream_kept *next; /* the older ones */
	char id[ID_MAX];
	char *owner, *text; /* owned */
	size_t n;
	uint64_t due_ms;
};

struct upstream_results {
	struct upstreams *all;
	struct upstream_kept *newest;
	uv_timer_t timer;
};

static void kept_free(struct upstream_kept *k)
{
	if (!k)
		return;
	free(k->owner);
	free(k->text);
	free(k);
}
AUTO_DEFINE(kept_free, struct upstream_kept)

static void results_drop(struct upstream_kept **at)
{
	struct upstream_kept *k = *at;

	*at = k->next;
	kept_free(k);
}

static void results_on_sweep(uv_timer_t *t)
{
	struct upstream_results *r = t->data;
	uint64_t now = clock_ms();

	for (struct upstream_kept **at = &r->newest; *at;) {
		if ((*at)->due_ms <= now)
			results_drop(at);
		else
			at = &(*at)->next;
	}
	if (!r->newest)
		uv_timer_stop(t);
}

static void results_on_closed(uv_handle_t *h)
{
	struct upstream_results *r = h->data;
	struct upstreams *all = r->all;

	while (r->newest)
		results_drop(&r->newest);
	free(r);
	all->open--;
	upstreams_try_close(all);
}

void results_close(struct upstreams *all)
{
	struct upstream_results *r = take_ptr(all->results);

	if (r)
		uv_close((uv_handle_t *)&r->timer, results_on_closed);
}

static struct upstream_results *results_of(struct upstreams *all, struct err *e)
{
	struct upstream_results *r = all->results;

	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r || uv_timer_init(all->loop, &r->timer) < 0) {
		free(r);
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	}
	r->all = all;
	r->timer.data = r;
	all->results = r;
	all->open++;
	return r;
}

/* Gives up the owner's oldest, until n more bytes have room. */
static int results_make_room(struct upstream_results *r, struct str owner, size_t n, struct err *e)
{
	struct upstream_kept **last = NULL;
	size_t bytes = n, of = n, count = 1;

	for (struct upstream_kept **at = &r->newest; *at; at = &(*at)->next) {
		bytes += (*at)->n;
		if (!str_is(owner, (*at)->owner))
			continue;
		of += (*at)->n;
		count++;
		last = at;
	}
	if (of <= RESULTS_OF_BYTES && count <= RESULTS_OF_MAX && bytes <= RESULTS_BYTES)
		return 0;
	if (!last)
		return err_set(e, ERR_TOO_LARGE,
			       "the result has %zu bytes, and others keep %zu already", n,
			       bytes - n);
	results_drop(last);
	return results_make_room(r, owner, n, e);
}

int upstreams_keep(struct upstreams *all, struct str owner, struct str text,
		   struct upstream_result *ret, struct err *e)
{
	struct upstream_results *r = results_of(all, e);
	AUTO(kept_free) struct upstream_kept *k = NULL;

	if (!r || results_make_room(r, owner, text.n, e) < 0)
		return -1;
	k = calloc(1, sizeof(*k));
	if (k) {
		k->owner = mem_dup(owner.p, owner.n);
		k->text = mem_dup(text.p, text.n);
	}
	if (!k || !k->owner || !k->text)
		return err_set(e, ERR_LIMIT, "out of memory");
	id_make(k->id, "result");
	k->n = text.n;
	k->due_ms = clock_ms() + UPSTREAM_KEPT_S * 1000ull;
	k->next = r->newest;
	r->newest = k;
	if (!uv_is_active((uv_handle_t *)&r->timer))
		uv_timer_start(&r->timer, results_on_sweep, RESULTS_SWEEP_MS, RESULTS_SWEEP_MS);
	*ret = (struct upstream_result){ str_of(k->id), { k->text, k->n } };
	k = NULL;
	return 0;
}

int upstreams_kept(const struct upstreams *all, struct str owner, struct str id,
		   struct upstream_result *ret, struct err *e)
{
	const struct upstream_kept *k = all->results ? all->results->newest : NULL;

	while (k && !(str_is(id, k->id) && str_is(owner, k->owner)))
		k = k->next;
	if (!k || k->due_ms <= clock_ms())
		return err_set(e, ERR_MODULE_RESULT, "there is no such result, or no longer");
	*ret = (struct upstream_result){ str_of(k->id), { k->text, k->n } };
	return 0;
}
