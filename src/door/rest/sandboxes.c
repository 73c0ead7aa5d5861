/* Sandboxes that are there: list, look at, end. */
#include "door/rest/view.h"
#include "op/sandbox.h"

/* ---- list ---------------------------------------------------------------------------------- */

enum { LIST_STEP = 256, PAGE_MAX = 1000, PAGE_DEFAULT = 100 };

struct list_query {
	bool has_limit;
	uint32_t limit;
	struct str cursor;
	bool has_state;
	enum life_state state;
};
static const struct field query_fields[] = {
	FIELD(struct list_query, limit, .min = 1, .max = PAGE_MAX,
	      .has = FIELD_HAS(struct list_query, has_limit),
	      .doc = "How many at once; with it or cursor, the answer is a page."),
	API_CURSOR_ROW(struct list_query),
	FIELD_ENUM(struct list_query, state, life_state_names,
		   .has = FIELD_HAS(struct list_query, has_state),
		   .doc = "Only those in this state; absent: all that are not terminated."),
};
static const struct field_table query_table = FIELD_TABLE(struct list_query, query_fields);

struct list_params {
	struct list_query query;
};
static const struct field list_parts[] = {
	FIELD_OBJECT(struct list_params, query, query_table, .doc = "Which of them."),
};
static const struct field_table list_input = FIELD_TABLE(struct list_params, list_parts);

struct page {
	struct {
		const struct sandbox_view *p;
		size_t n;
	} sandboxes;
	struct str next_cursor;
};
static const struct field page_fields[] = {
	FIELD_OBJECTS(struct page, sandboxes, sandbox_view_table, .flags = FIELD_REQUIRED,
		      .doc = "In order of creation."),
	API_NEXT_ROW(struct page),
};
static const struct field_table page_table = FIELD_TABLE(struct page, page_fields);

struct listing {
	struct call *call;
	const struct list_query *query;
	struct sandbox_view *views;
	size_t n, room;
	uint64_t after; /* of the last one looked at */
	uint64_t before; /* of the one before the last one that was taken */
};

static int take(struct listing *l, struct life *life, struct err *e)
{
	uint64_t before = l->after;
	struct life_info i;

	life_info(life, &i);
	l->after = i.seq;
	if (!call_sees(l->call, life) ||
	    (l->query->has_state ? i.state != l->query->state : i.state == LIFE_TERMINATED))
		return 0;
	if (sandbox_view(l->call, life, &l->views[l->n], e) < 0)
		return -1;
	l->n++;
	l->before = before;
	return 0;
}

/* As many as there is room for. */
static int collect(struct listing *l, struct err *e)
{
	struct life *step[LIST_STEP];
	size_t got = LIST_STEP, want;

	while (l->n < l->room && got > 0) {
		want = l->room - l->n < LIST_STEP ? l->room - l->n : LIST_STEP;
		got = lives_list(call_lives(l->call), l->after, step, want);
		for (size_t i = 0; i < got; i++) {
			if (take(l, step[i], e) < 0)
				return -1;
		}
	}
	return 0;
}

static size_t count_all(struct call *c)
{
	struct lives_stats stats;
	size_t n = 0;

	lives_stats(call_lives(c), &stats);
	for (size_t i = 0; i < LIFE_STATES; i++)
		n += stats.by_state[i];
	return n;
}

static void answer(struct listing *l, bool paged)
{
	char cursor[API_CURSOR_MAX];
	struct page page = { .sandboxes = { l->views, l->n } };

	if (!paged) {
		ask_answer_array(l->call, l->views, l->n);
		return;
	}
	/* One more than the page has tells whether there is another. */
	if (l->n == l->room) {
		page.sandboxes.n--;
		api_cursor_text(cursor, l->before);
		page.next_cursor = str_of(cursor);
	}
	ask_answer_by(l->call, &page_table, &page);
}

static void run_list(struct call *c, const void *params)
{
	const struct list_query *q = &((const struct list_params *)params)->query;
	bool paged = q->has_limit || q->cursor.p;
	struct listing l = { .call = c, .query = q };
	struct err e = ERR_INIT;

	l.room = paged ? (q->has_limit ? q->limit : PAGE_DEFAULT) + 1u : count_all(c);
	l.views = arena_array(call_arena(c), l.room, sizeof(*l.views), &e);
	if (!l.views || (q->cursor.p && api_cursor_read(q->cursor, &l.after, &e) < 0) ||
	    collect(&l, &e) < 0)
		call_fail(c, &e);
	else
		answer(&l, paged);
}

/* ---- one ----------------------------------------------------------------------------------- */

struct one_params {
	struct id_path path;
};
static const struct field one_parts[] = { API_ID_PATH(struct one_params) };
static const struct field_table one_input = FIELD_TABLE(struct one_params, one_parts);

static void run_get(struct call *c, const void *params)
{
	const struct one_params *p = params;
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->path.id, &e);
	struct sandbox_view view;

	if (!l || sandbox_view(c, l, &view, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &view);
}

static const struct field terminated_fields[] = {
	FIELD(struct sandbox_ended, status, .flags = FIELD_REQUIRED, .doc = "terminated"),
	FIELD_NAMED(struct sandbox_ended, sandbox, "id", .flags = FIELD_REQUIRED,
		    .doc = "The sandbox."),
};
static const struct field_table terminated_table = FIELD_TABLE(struct sandbox_ended,
							       terminated_fields);

static const struct op_member by_path[] = { API_BY_PATH };

static const struct api_route rows[] = {
	{ .id = "sandboxes.list",
	  .op = &(const struct
		  op){ .action = "sandbox.list",
		       .doc = "The sandboxes: all of them as an array, or a page where limit or cursor is "
			      "given.",
		       .effect = OP_READ,
		       .request = &list_input,
		       .result = &sandbox_view_table,
		       .run = run_list },
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes",
	  .shape = API_ARRAY,
	  .page = &page_table },
	{ .id = "sandboxes.get",
	  .op = &(const struct op){ .action = "sandbox.get",
				    .doc = "One sandbox.",
				    .effect = OP_READ,
				    .request = &one_input,
				    .target = OP_TARGET(struct one_params, path.id),
				    .result = &sandbox_view_table,
				    .run = run_get },
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes/{id}",
	  .errors = API_MAY(NOT_FOUND) },
	{ .id = "sandboxes.delete",
	  .op = &sandbox_terminate_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .answer = &terminated_table,
	  .method = HTTP_DELETE,
	  .path = "/v1/sandboxes/{id}",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(CONFLICT) },
};
const struct api_resource api_sandboxes = API_RESOURCE(rows);
