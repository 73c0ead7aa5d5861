#include "door/rest/copies.h"

#include "base/clock.h"

struct list {
	struct {
		const struct sandbox_view *p;
		size_t n;
	} sandboxes;
};
static const struct field list_fields[] = {
	FIELD_OBJECTS(struct list, sandboxes, api_sandbox_table, .flags = FIELD_REQUIRED,
		      .doc = "The new ones."),
};
const struct field_table copies_table = FIELD_TABLE(struct list, list_fields);

static int check_wish(const struct copies_wish *w, struct err *e)
{
	if (w->has_ids && (w->id.p || (w->has_count && w->count != w->ids.n)))
		return err_set(e, ERR_INVALID,
			       "body: ids names all of them: no id, and count is their number");
	if (w->id.p && w->count != 1)
		return err_set(e, ERR_INVALID, "body: id names one; ids names %u", w->count);
	return 0;
}

static void answer(struct copies *k, struct life *const *made, size_t n)
{
	struct sandbox_view views[API_NAMES_MAX];
	struct list list = { { views, n } };
	struct err e = ERR_INIT;

	for (size_t i = 0; i < n; i++) {
		if (sandbox_view(k->call, made[i], &views[i], &e) < 0) {
			call_fail(k->call, &e);
			return;
		}
		views[i].has_made_ms = true;
		views[i].made_ms = (double)(clock_ns() - k->begun_ns) / 1e6;
	}
	if (k->list)
		ask_answer_by(k->call, &copies_table, &list);
	else
		call_answer(k->call, views);
}

static int name_them(struct copies *k, const struct copies_wish *w, struct err *e)
{
	return check_wish(w, e) < 0 ? -1
				    : api_names(k->call, w->id, w->has_ids ? &w->ids : NULL,
						w->count, &k->names, e);
}

struct copies *copies_begin(struct call *c, const struct copies_wish *w,
			    const struct once_header *h)
{
	struct life *made[API_NAMES_MAX];
	struct err e = ERR_INIT;
	struct copies *k = arena_alloc(call_arena(c), sizeof(*k), &e);

	if (k)
		*k = (struct copies){ .call = c,
				      .begun_ns = clock_ns(),
				      .list = w->has_count || w->has_ids };
	if (!k || name_them(k, w, &e) < 0) {
		call_fail(c, &e);
		return NULL;
	}
	switch (api_names_once(c, h, &k->names, made)) {
	case ONCE_NEW:
		return k;
	case ONCE_AGAIN:
		answer(k, made, k->names.n);
		return NULL;
	case ONCE_OVER:
		break;
	}
	return NULL;
}

void copies_end(void *arg, struct life *const *made, size_t n, const struct err *err)
{
	struct copies *k = arg;

	if (err) {
		call_fail(k->call, err);
	} else if (call_cancelled(k->call) && !once_kept(k->call)) {
		for (size_t i = 0; i < n; i++)
			api_discard(made[i]);
		ask_fail_gone(k->call);
	} else {
		answer(k, made, n);
	}
}
