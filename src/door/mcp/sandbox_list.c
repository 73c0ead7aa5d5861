#include "door/mcp/tools.h"

#include "hub/core/when.h"
#include "door/mcp/common.h"

enum { LIST_MAX = 200 };

struct list_params {
	bool has_state;
	enum life_state state;
	uint64_t after;
};
static const struct field list_fields[] = {
	FIELD_ENUM(struct list_params, state, life_state_names,
		   .has = FIELD_HAS(struct list_params, has_state),
		   .doc = "Only those in this state; all that are not terminated if absent."),
	FIELD(struct list_params, after, .max = INT64_MAX,
	      .doc = "next_after of the page before; the first page if absent."),
};
static const struct field_table list_input = FIELD_TABLE(struct list_params, list_fields);

struct entry {
	struct str sandbox, template, source, created_at;
	enum life_state state;
};
static const struct field entry_fields[] = {
	FIELD(struct entry, sandbox, .flags = FIELD_REQUIRED, .doc = "Its id."),
	FIELD_ENUM(struct entry, state, life_state_names, .flags = FIELD_REQUIRED,
		   .doc = "Only a running one takes commands and gives files."),
	FIELD(struct entry, template, .flags = FIELD_REQUIRED, .doc = "What it was made from."),
	FIELD(struct entry, source, .doc = "The sandbox that it was forked from."),
	FIELD(struct entry, created_at, .flags = FIELD_REQUIRED, .doc = "RFC 3339."),
};
static const struct field_table entry_table = FIELD_TABLE(struct entry, entry_fields);

struct list_result {
	struct {
		const struct entry *p;
		size_t n;
	} sandboxes;
	bool has_next;
	uint64_t next_after;
};
static const struct field result_fields[] = {
	FIELD_OBJECTS(struct list_result, sandboxes, entry_table, .flags = FIELD_REQUIRED,
		      .doc = "In order of creation."),
	FIELD(struct list_result, next_after, .has = FIELD_HAS(struct list_result, has_next),
	      .doc = "Where the next page begins; absent on the last."),
};
static const struct field_table list_output = FIELD_TABLE(struct list_result, result_fields);

static bool is_wanted(const struct list_params *p, const struct life_info *i)
{
	return p->has_state ? i->state == p->state : i->state != LIFE_TERMINATED;
}

static int fill(struct call *c, const struct life_info *i, struct entry *ret, struct err *e)
{
	char *created = arena_alloc(call_arena(c), WHEN_MAX, e);

	if (!created)
		return -1;
	when_text(created, i->created_ms);
	*ret = (struct entry){ i->id, i->template, i->source, str_of(created), i->state };
	return 0;
}

/* Takes l, unless the page is full: 1 then. */
static int take(struct call *c, const struct list_params *p, struct life *l, struct list_result *r,
		struct entry *entries, struct err *e)
{
	struct life_info i;

	life_info(l, &i);
	if (!is_wanted(p, &i) || !call_sees(c, l)) {
		r->next_after = i.seq;
		return 0;
	}
	if (r->sandboxes.n == LIST_MAX) {
		r->has_next = true;
		return 1;
	}
	r->next_after = i.seq;
	return fill(c, &i, &entries[r->sandboxes.n++], e);
}

static void run(struct call *c, const void *params)
{
	enum { STEP = 256 };
	const struct list_params *p = params;
	struct err e = ERR_INIT;
	struct entry *entries = arena_array(call_arena(c), LIST_MAX, sizeof(*entries), &e);
	struct list_result r = { .sandboxes = { entries, 0 }, .next_after = p->after };
	struct life *step[STEP];
	size_t got = STEP;
	int rc = entries ? 0 : -1;

	while (rc == 0 && got == STEP) {
		got = lives_list(call_lives(c), r.next_after, step, STEP);
		for (size_t i = 0; i < got && rc == 0; i++)
			rc = take(c, p, step[i], &r, entries, &e);
	}
	if (rc < 0)
		call_fail(c, &e);
	else
		call_answer(c, &r);
}

const struct tool sandbox_list_tool = {
	.op =
		&(const struct op){
			.action = "sandbox.list",
			.effect = OP_READ,
			.request = &list_input,
			.result = &list_output,
			.run = run,
		},
	.name = "sandbox_list",
	.title = "List sandboxes",
	.doc = "Lists the sandboxes of this server, 200 at once.",
};
