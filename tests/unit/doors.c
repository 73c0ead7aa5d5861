/* Operations by doors: every row that shows an operation of op/ops.h is a projection of it, and
 * nothing else. */
#include "door/http/routes.h"
#include "door/mcp/tools.h"
#include "op/ops.h"
#include "test.h"

static const struct op *by_action(const char *action)
{
	for (size_t i = 0; i < all_ops_n; i++) {
		if (strcmp(all_ops[i]->action, action) == 0)
			return all_ops[i];
	}
	return NULL;
}

static void test_operations(void **state)
{
	for (size_t i = 0; i < all_ops_n; i++) {
		const struct op *op = all_ops[i];
		struct err e;

		ROW_CHECK(op->action && op->doc && op->request && op->run, op->action);
		ROW_CHECK(strchr(op->action, '.'), op->action);
		ROW_CHECK(field_check(op->request, &e) == 0, op->action);
		ROW_CHECK(!op->result || field_check(op->result, &e) == 0, op->action);
		ROW_CHECK(!op->event || field_check(op->event, &e) == 0, op->action);
		ROW_CHECK(i == 0 || strcmp(all_ops[i - 1]->action, op->action) < 0, op->action);
		ROW_CHECK(op->effect != OP_READ || !(op->flags & OP_REPLACES), op->action);
	}
}

/* A member that clients of the door don't give, since it is always the same. */
static bool is_given(const struct op_shape *shape, const struct field *f)
{
	for (size_t i = 0; i < shape->hidden.n; i++) {
		if (shape->hidden.rows[i].at == f->at)
			return shape->hidden.rows[i].def.is != FIELD_NO_DEFAULT;
	}
	return false;
}

/* Each member of the request is in one place of the door at most, and those that must be there
 * are in one, or given. */
static void check_shape(const struct op *op, const struct op_shape *shape, const char *row)
{
	for (size_t i = 0; i < op->request->n; i++) {
		const struct field *f = &op->request->rows[i];
		size_t times = 0;

		for (int place = 0; place < OP_PLACES; place++) {
			for (size_t k = 0; k < shape->places[place].n; k++)
				times += shape->places[place].rows[k].at == f->at;
		}
		ROW_CHECK(times <= 1, row);
		ROW_CHECK(times == 1 || !(f->flags & FIELD_REQUIRED) || is_given(shape, f), row);
	}
}

/* Those that still stand beside their routes. */
static bool is_of_one_door(const char *action)
{
	static const char *const all[] = { "files.upload", "hub.openapi", "snapshot.import",
					   "workspace.import" };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (strcmp(all[i], action) == 0)
			return true;
	}
	return false;
}

static void check_row(const struct op *op, struct op_members members, bool projected,
		      const char *row)
{
	const struct op *one = by_action(op->action);
	struct op_shape shape;
	struct err e;

	if (!projected) {
		ROW_CHECK(!one && is_of_one_door(op->action), row);
		return;
	}
	ROW_CHECK(one == op, row);
	ROW_CHECK(op_shape_init(&shape, op, members, &e) == 0, row);
	check_shape(op, &shape, row);
	op_shape_fini(&shape);
}

static void test_tools(void **state)
{
	for (size_t i = 0; i < tools_n; i++)
		check_row(tools[i]->op, tools[i]->members, by_action(tools[i]->op->action),
			  tools[i]->name);
}

static void test_routes(void **state)
{
	const struct api_route *r;

	for (size_t i = 0; (r = api_route_at(i)); i++) {
		check_row(r->op, r->members, r->projected, r->id);
		if (r->other)
			check_row(r->other->op, r->other->members, r->other->projected, r->id);
	}
}

static void test_each_has_a_door(void **state)
{
	const struct api_route *r;

	for (size_t k = 0; k < all_ops_n; k++) {
		size_t doors = 0;

		for (size_t i = 0; i < tools_n; i++)
			doors += tools[i]->op == all_ops[k] || tools[i]->other == all_ops[k];
		for (size_t i = 0; (r = api_route_at(i)); i++)
			doors += r->op == all_ops[k];
		ROW_CHECK(doors >= 1, all_ops[k]->action);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_tools),
		cmocka_unit_test(test_routes),
		cmocka_unit_test(test_each_has_a_door),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
