/* door/mcp/tools.h: every row is fit to be served. Arguments: tests/blackbox/test_schema.py. */
#include "door/mcp/tools.h"
#include "alloc_fail.h"
#include "test.h"

/* Each {name} of the text is a member of the request or the result. */
static void check_says(const struct tool *t)
{
	for (const char *at = t->says; at && (at = strchr(at, '{')); at++) {
		struct str name = { at + 1, strcspn(at + 1, "}") };
		bool known = false;

		for (size_t i = 0; i < t->op->request->n; i++)
			known |= str_is(name, t->op->request->rows[i].name);
		for (size_t i = 0; i < t->op->result->n; i++)
			known |= str_is(name, t->op->result->rows[i].name);
		ROW_CHECK(known, t->name);
	}
}

static void test_tables(void **state)
{
	for (size_t i = 0; i < tools_n; i++) {
		struct err e = ERR_INIT;

		const struct field_table *output = tools[i]->output ? tools[i]->output
								    : tools[i]->op->result;
		struct op_shape shape;

		ROW_CHECK(op_shape_init(&shape, tools[i]->op, tools[i]->members, &e) == 0,
			  tools[i]->name);
		ROW_CHECK(field_check(&shape.places[OP_BODY], &e) == 0, tools[i]->name);
		ROW_CHECK(field_check(tools[i]->op->request, &e) == 0, tools[i]->name);
		ROW_CHECK(field_check(output, &e) == 0, tools[i]->name);
		ROW_CHECK(tools[i]->op->run && tools[i]->title && tools[i]->doc, tools[i]->name);
		check_says(tools[i]);
		op_shape_fini(&shape);
		for (size_t k = 0; k < i; k++)
			ROW_CHECK(strcmp(tools[k]->name, tools[i]->name) != 0, tools[i]->name);
	}
}

/* Each listed tool costs the context of every client. */
static void test_usual(void **state)
{
	const struct mcp_choice few = tools_usual(false), more = tools_usual(true);
	struct mcp_choice all;
	struct err e;
	size_t n = 0;

	assert_int_equal(tools_choose(STR_LIT("all"), &all, &e), 0);
	for (size_t i = 0; i < tools_n; i++) {
		n += mcp_choice_has(&few, i);
		assert_true(mcp_choice_has(&all, i));
		assert_true(mcp_choice_has(&more, i) || !mcp_choice_has(&few, i));
	}
	assert_true(n <= 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_usual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
