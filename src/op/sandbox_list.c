/* sandbox.get and sandbox.list: which sandboxes there are. */
#include "op/label.h"
#include "op/page.h"
#include "op/sandbox_view.h"

/* ---- sandbox.get --------------------------------------------------------------------------- */

struct get_request {
	struct str sandbox;
	bool usage;
};
static const struct field get_fields[] = {
	OP_SANDBOX_ROW(struct get_request),
	FIELD(struct get_request, usage, .doc = "Also measure what it uses."),
};
static const struct field_table get_table = FIELD_TABLE(struct get_request, get_fields);

static void get_answer(struct call *c, struct hub_sandbox *l, const struct usage_view *usage)
{
	struct sandbox_view view;
	struct err e = ERR_INIT;

	if (sandbox_view(c, l, &view, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (usage) {
		view.has_usage = true;
		view.usage = *usage;
	}
	call_answer(c, &view);
}

/* It may have been forgotten meanwhile. */
static void get_on_usage(void *arg, const struct usage_view *v, size_t n, const struct err *err)
{
	struct call *c = arg;
	struct err e = ERR_INIT;
	struct hub_sandbox *l =
		call_hub_sandbox(c, ((const struct get_request *)call_request(c))->sandbox, &e);

	if (l)
		get_answer(c, l, v);
	else
		call_fail(c, &e);
}

static void sandbox_get_run(struct call *c, const void *request)
{
	const struct get_request *q = request;
	struct err e = ERR_INIT;
	struct hub_sandbox *l = call_hub_sandbox(c, q->sandbox, &e);

	if (!l)
		call_fail(c, &e);
	else if (q->usage && hub_sandbox_machine(l, &e))
		hub_sandbox_usage_start(call_box(c), &l, 1, get_on_usage, c);
	else
		get_answer(c, l, NULL);
}

const struct op sandbox_get_op = {
	.action = "sandbox.get",
	.doc = "Returns one sandbox.",
	.effect = OP_READ,
	.flags = OP_NO_WAKE,
	.request = &get_table,
	.target = OP_TARGET(struct get_request, sandbox),
	.result = &sandbox_view_table,
	.run = sandbox_get_run,
};

/* ---- sandbox.list -------------------------------------------------------------------------- */

enum { LIST_STEP = 256 };

static const struct field list_fields[] = {
	FIELD_ENUM(struct list_request, state, hub_sandbox_state_names,
		   .has = FIELD_HAS(struct list_request, has_state),
		   .doc = "Only sandboxes in this state; absent: all that are not terminated."),
	FIELD_NAMED(struct list_request, labels, "label", .max = LABELS_MAX, .item_min = 1,
		    .item_max = LABEL_KEY_MAX + 1 + LABEL_VALUE_MAX,
		    .doc = "Only sandboxes with this label: KEY or KEY=VALUE. Several: with all of "
			   "them."),
	FIELD(struct list_request, limit, .max = PAGE_MAX, .doc = "Page size."),
	FIELD(struct list_request, after, .max = INT64_MAX,
	      .doc = "next_after of the previous page; absent: the first page."),
	CURSOR_ROW(struct list_request),
};
static const struct field_table list_table = FIELD_TABLE(struct list_request, list_fields);

static const struct field views_fields[] = {
	VIEWS_ROW(sandbox_view_table, "In order of creation."),
	FIELD(struct sandboxes_view, next_after, .has = FIELD_HAS(struct sandboxes_view, has_next),
	      .doc = "Value of after for the next page; absent on the last."),
	NEXT_CURSOR_ROW(struct sandboxes_view),
};
static const struct field_table views_table = FIELD_TABLE(struct sandboxes_view, views_fields);

static int list_normalize(void *request, struct arena *a, struct err *e)
{
	struct list_request *q = request;

	if (!q->cursor.p)
		return 0;
	if (q->limit == 0)
		q->limit = PAGE_DEFAULT;
	if (cursor_read(q->cursor, &q->after, e) < 0)
		return -1;
	q->cursor = STR_NONE;
	return 0;
}

struct listing {
	struct call *call;
	const struct list_request *request;
	struct sandbox_view *views;
	size_t n, room;
	uint64_t after; /* of the last one looked at */
	uint64_t before; /* of the one before the last one that was taken */
};

/* A value that is not shown is not found, either. */
static bool listing_wants(const struct listing *l, const struct hub_sandbox_info *i)
{
	const struct list_request *q = l->request;

	for (size_t k = 0; k < q->labels.n; k++) {
		struct str wanted = q->labels.p[k];
		const char *sign = memchr(wanted.p, '=', wanted.n), *end = wanted.p + wanted.n;
		struct str value = sign ? (struct str){ sign + 1, (size_t)(end - sign - 1) }
					: STR_LIT("");

		if (!labels_have(i->labels, wanted) || call_redact(l->call, value).p != value.p)
			return false;
	}
	return q->has_state ? i->state == q->state : i->state != SANDBOX_TERMINATED;
}

static int listing_take(struct listing *l, struct hub_sandbox *hs, struct err *e)
{
	uint64_t before = l->after;
	struct hub_sandbox_info i;

	hub_sandbox_info(hs, &i);
	l->after = i.seq;
	if (!call_sees(l->call, hs) || !listing_wants(l, &i))
		return 0;
	l->before = before;
	return sandbox_view(l->call, hs, &l->views[l->n++], e);
}

/* As many as there is room for. */
static int listing_collect(struct listing *l, struct err *e)
{
	struct hub_sandbox *step[LIST_STEP];
	size_t got = LIST_STEP, want;

	while (l->n < l->room && got > 0) {
		want = l->room - l->n < LIST_STEP ? l->room - l->n : LIST_STEP;
		got = hub_sandboxes_list(call_sandboxes(l->call), l->after, step, want);
		for (size_t i = 0; i < got; i++) {
			if (listing_take(l, step[i], e) < 0)
				return -1;
		}
	}
	return 0;
}

static size_t count_all(struct call *c)
{
	struct hub_sandboxes_stats stats;
	size_t n = 0;

	hub_sandboxes_stats(call_sandboxes(c), &stats);
	for (size_t i = 0; i < SANDBOX_STATES; i++)
		n += stats.by_state[i];
	return n;
}

/* One more than a page has tells whether there is another. */
static void sandbox_list_run(struct call *c, const void *request)
{
	const struct list_request *q = request;
	struct listing l = { .call = c, .request = q, .after = q->after };
	struct sandboxes_view r = { .next_cursor = STR_NONE };
	char cursor[CURSOR_MAX];
	struct err e = ERR_INIT;

	l.room = q->limit > 0 ? q->limit + 1u : count_all(c);
	l.views = arena_array(call_arena(c), l.room, sizeof(*l.views), &e);
	if (!l.views || listing_collect(&l, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	r.sandboxes.p = l.views;
	r.sandboxes.n = l.n;
	if (q->limit > 0 && l.n > q->limit) {
		r.sandboxes.n--;
		r.has_next = true;
		r.next_after = l.before;
		cursor_text(cursor, l.before);
		r.next_cursor = str_of(cursor);
	}
	call_answer(c, &r);
}

const struct op sandbox_list_op = {
	.action = "sandbox.list",
	.doc = "Lists sandboxes.",
	.effect = OP_READ,
	.request = &list_table,
	.result = &views_table,
	.normalize = list_normalize,
	.run = sandbox_list_run,
};
