#include "ask/asks.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"

enum { FAR_MS = 24 * 3600 * 1000 };

/* ---- the list ------------------------------------------------------------------------------ */

static void asks_remove(struct asks *all, struct ask *a)
{
	struct ask **at = &all->first;

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	if (all->last == &a->next)
		all->last = at;
	all->kind->free(a);
}

static bool ask_may_go(const struct ask *a)
{
	return !a->open && !a->held;
}

/* The one that ended first, of the principal that has most of them, so that none of another goes
 * for its sake. NULL: there is none. */
static struct ask *asks_oldest(const struct asks *all)
{
	struct ask *first = NULL, *oldest = NULL;
	unsigned most = 0;

	for (struct ask *a = all->first; a; a = a->next) {
		unsigned n = 0;

		for (const struct ask *o = ask_may_go(a) ? a : NULL; o; o = o->next)
			n += ask_may_go(o) && str_eq(o->principal, a->principal);
		if (n > most) {
			most = n;
			first = a;
		}
	}
	for (struct ask *a = first; a; a = a->next) {
		if (ask_may_go(a) && str_eq(a->principal, first->principal) &&
		    (!oldest || a->rev < oldest->rev))
			oldest = a;
	}
	return oldest;
}

static void asks_trim(struct asks *all)
{
	struct ask *oldest;
	unsigned closed = 0;
	struct err e;

	for (const struct ask *a = all->first; a; a = a->next)
		closed += !a->open;
	for (; closed > all->kind->closed_max && (oldest = asks_oldest(all)); closed--) {
		if (all->store && all->kind->drop(all->store, oldest->seq, &e) < 0)
			log_warn("%s %.*s: %s", all->kind->noun, STR_ARG(oldest->id), e.msg);
		asks_remove(all, oldest);
	}
}

void asks_tell(struct asks *all, const struct ask *a)
{
	struct asks_watch *next;

	if (all->o.on_change)
		all->o.on_change(all->o.data, a);
	for (struct asks_watch *w = all->watches; w; w = next) {
		next = w->next;
		w->on_change(w->data);
	}
}

/* ---- deadlines ----------------------------------------------------------------------------- */

static void asks_on_timer(uv_timer_t *t)
{
	asks_expire(t->data);
}

/* Deadlines are of the wall clock, which may jump: so it looks once a day at least. */
static void asks_set_timer(struct asks *all)
{
	int64_t next = FAR_MS, now = clock_unix_ms();
	bool any = false;

	for (const struct ask *a = all->first; a; a = a->next) {
		int64_t left = a->deadline_ms - now;

		if (!a->open || !a->deadline_ms)
			continue;
		any = true;
		next = left < next ? left : next;
	}
	if (any)
		uv_timer_start(&all->timer, asks_on_timer, next > 0 ? (uint64_t)next + 1 : 1, 0);
	else
		uv_timer_stop(&all->timer);
}

void asks_add(struct asks *all, struct ask *a)
{
	*all->last = a;
	all->last = &a->next;
	all->rev = a->rev > all->rev ? a->rev : all->rev;
	asks_set_timer(all);
}

void asks_expire(struct asks *all)
{
	struct ask *a;

	/* An end may change any other: each round begins from the front. */
	do {
		int64_t now = clock_unix_ms();

		a = all->first;
		while (a && !(a->open && a->deadline_ms && a->deadline_ms <= now))
			a = a->next;
		if (a)
			all->kind->expire(all, a);
	} while (a);
	asks_trim(all);
	asks_set_timer(all);
}

/* ---- beginning and end --------------------------------------------------------------------- */

int asks_init(struct asks *all, uv_loop_t *loop, const struct asks_kind *kind, struct store *store,
	      const struct asks_options *o, struct err *e)
{
	*all = (struct asks){ .kind = kind, .store = store, .o = *o, .last = &all->first };
	if (uv_timer_init(loop, &all->timer) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	all->timer.data = all;
	return 0;
}

static void asks_closed(uv_handle_t *h)
{
	free(h->data);
}

void asks_fini(struct asks *all)
{
	while (all->first)
		asks_remove(all, all->first);
	uv_close((uv_handle_t *)&all->timer, asks_closed);
}

/* ---- room ---------------------------------------------------------------------------------- */

struct str asks_payer(const struct asks *all, struct str principal)
{
	return all->o.payer ? all->o.payer(all->o.data, principal) : principal;
}

/* A payer has at most as many as are free, so whoever comes next finds room. */
int asks_check_room(const struct asks *all, struct str principal, struct err *e)
{
	struct str payer = asks_payer(all, principal);
	unsigned open = 0, own = 0, paid = 0;

	for (const struct ask *a = all->first; a; a = a->next) {
		if (!a->takes_room)
			continue;
		open++;
		own += str_eq(a->principal, principal);
		paid += str_eq(asks_payer(all, a->principal), payer);
	}
	if (own < all->o.max_each && (!payer.p || paid + open < all->o.max_open))
		return 0;
	return err_set(e, ERR_LIMIT,
		       "%u %s wait for people already, %u of this client and %u of all that share "
		       "with it",
		       open, all->kind->many, own, paid);
}

/* ---- who looks ----------------------------------------------------------------------------- */

const struct ask *asks_find(const struct asks *all, struct str id, struct err *e)
{
	for (const struct ask *a = all->first; a; a = a->next) {
		if (str_eq(a->id, id))
			return a;
	}
	err_set(e, all->kind->missing, "there is no %s \"%.*s\"", all->kind->noun,
		STR_CUT(id, ID_MAX));
	return NULL;
}

const struct ask *asks_after(const struct asks *all, uint64_t seq)
{
	const struct ask *a = all->first;

	while (a && a->seq <= seq)
		a = a->next;
	return a;
}

void asks_watch_add(struct asks *all, struct asks_watch *w)
{
	w->next = all->watches;
	all->watches = w;
}

void asks_watch_remove(struct asks *all, struct asks_watch *w)
{
	struct asks_watch **at = &all->watches;

	while (*at && *at != w)
		at = &(*at)->next;
	if (*at)
		*at = w->next;
}

int asks_name(struct str text, const char *const names[], int n)
{
	while (--n >= 0 && !str_is(text, names[n]))
		;
	return n;
}
