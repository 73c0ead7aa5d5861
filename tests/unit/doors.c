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
	ROW_CHECK(one == op || (!one && is_of_one_door(op->action)), row);
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

/* ---- paths --------------------------------------------------------------------------------- */

/* Rows that look like paths, and are none in a sandbox or of the host. */
static bool is_no_path(const char *action, const char *pointer)
{
	static const struct {
		const char *action, *pointer;
	} all[] = {
		{ "conversation.add_file", "/name" }, /* has no slash */
		{ "coding.glob", "/pattern" },
		{ "conversation.set_user_data", "/*" },
	};

	/* of URLs */
	if (strstr(pointer, "/http/") || strstr(pointer, "/ready/"))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (strcmp(all[i].action, action) == 0 &&
		    (all[i].pointer[1] == '*' || strcmp(all[i].pointer, pointer) == 0))
			return true;
	}
	return false;
}

static bool looks_like_path(const struct field *f)
{
	static const char *const names[] = { "path", "file_path", "cwd", "working_dir", "inside",
					     "dest", "folder",	  "dir", "directory" };
	static const char *const words[] = { "Path ", "path ", "irectory", "older" };

	if (f->kind != FIELD_IS_STR && f->kind != FIELD_IS_STRS)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(f->name, names[i]) == 0)
			return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strstr(f->doc, words[i]))
			return true;
	}
	return false;
}

struct rows_seen {
	const struct op *op;
	size_t paths, unmarked;
	void (*try)(const struct op *op, const char *pointer);
};

static void see_row(void *data, const struct field *f, const char *pointer)
{
	struct rows_seen *s = data;
	char row[256];

	snprintf(row, sizeof(row), "%s %s", s->op->action, pointer);
	if (!(f->flags & FIELD_PATH)) {
		if (looks_like_path(f) && !is_no_path(s->op->action, pointer)) {
			print_error("%s looks like a path, and is not marked as one\n", row);
			s->unmarked++;
		}
		return;
	}
	s->paths++;
	s->try(s->op, pointer);
}

static unsigned next_random(void)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (unsigned)(x >> 33);
}

/* Writes a path of these names as somebody might who does not want it to be known. */
static void spell_at_random(struct buf *to, const char *const *names, size_t n, bool uri)
{
	static const char *const noise[] = { "/",      "//",	      "/./",	  "/././",
					     "/x/../", "/x/y/../../", "/./x//../" };
	struct err e;

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(buf_addf(to, &e, "%s", noise[next_random() % ARRAY_LEN(noise)]),
				 0);
		for (const char *c = names[i]; *c; c++)
			assert_int_equal(uri && next_random() % 3 == 0
						 ? buf_addf(to, &e, "%%%02x", *c)
						 : buf_addf(to, &e, "%c", *c),
					 0);
	}
	if (next_random() % 2)
		assert_int_equal(buf_addf(to, &e, "%s", next_random() % 2 ? "/" : "/x/.."), 0);
}

static void keep_text(void *data, struct str text)
{
	*(struct str *)data = text;
}

/* What is left of a path at a pointer of a request that has nothing else; in the arena. */
static struct str spelt(const struct op *op, const char *pointer, struct str said, struct arena *a)
{
	autobuf struct buf text = BUF_INIT(64 << 10);
	struct json_writer w = json_writer(&text);
	struct op_defaults none = { .path = STR_NONE };
	struct str step, rest = str_of(pointer), got = STR_NONE;
	void *request;
	struct json_doc *doc;
	bool relative, lists[8];
	size_t depth = 0;
	struct err e;

	while (rest.n) {
		const char *end = memchr(rest.p + 1, '/', rest.n - 1);

		step = (struct str){ rest.p + 1, end ? (size_t)(end - rest.p) - 1 : rest.n - 1 };
		rest = (struct str){ rest.p + 1 + step.n, rest.n - 1 - step.n };
		lists[depth] = str_is(step, "*");
		if (lists[depth++]) {
			json_write_array(&w);
		} else {
			json_write_object(&w);
			json_write_key_str(&w, step);
		}
	}
	json_write_str(&w, said);
	while (depth > 0) {
		if (lists[--depth])
			json_write_array_end(&w);
		else
			json_write_object_end(&w);
	}
	assert_int_equal(json_write_done(&w, &e), 0);
	request = arena_alloc(a, op->request->size, &e);
	doc = json_parse(buf_str(&text), NULL, &e);
	assert_non_null(request);
	assert_non_null(doc);
	ROW_CHECK(field_decode_part(op->request, json_root(doc), a, request, &e) == 0, pointer);
	ROW_CHECK(op_spell_paths(op, request, STR_LIT("/workspace"), a, &relative, &e) == 0,
		  pointer);
	assert_true(op_show(op, request, &none, pointer, true, keep_text, &got));
	got.p = arena_dup(a, got, &e); /* it may be borrowed from the document */
	json_free(doc);
	return got;
}

static void try_spellings(const struct op *op, const char *pointer)
{
	static const char *const names[] = { "workspace", "etc", "a b", "..c",
					     ".d",	  "e.",	 "...", "tmp" };
	char row[256];

	snprintf(row, sizeof(row), "%s %s", op->action, pointer);
	for (unsigned turn = 0; turn < 200; turn++) {
		AUTO(arena_free) struct arena *a = arena_new(1 << 20);
		autobuf struct buf plain = BUF_INIT(4096), said = BUF_INIT(4096);
		const char *picked[4];
		size_t n = next_random() % 5;
		struct str one, other;
		struct err e;

		for (size_t i = 0; i < n; i++) {
			picked[i] = names[next_random() % ARRAY_LEN(names)];
			assert_int_equal(buf_addf(&plain, &e, "/%s", picked[i]), 0);
		}
		if (n == 0)
			assert_int_equal(buf_add(&plain, "/", 1, &e), 0);
		if (op->path && turn % 4 == 0)
			assert_int_equal(buf_addf(&said, &e, "file://"), 0);
		else if ((op->target || op->base || op->path) && turn % 4 == 1)
			assert_int_equal(buf_addf(&said, &e, "x/../../../.."), 0);
		spell_at_random(&said, picked, n, op->path && turn % 4 == 0);
		if (!said.n || str_ends(buf_str(&said), "://"))
			assert_int_equal(buf_add(&said, "/", 1, &e), 0);
		one = spelt(op, pointer, buf_str(&plain), a);
		other = spelt(op, pointer, buf_str(&said), a);
		if (!str_eq(one, buf_str(&plain)) || !str_eq(one, other))
			print_error("%s: \"%s\" is \"%.*s\"\n", row, said.p, STR_ARG(other));
		ROW_CHECK(str_eq(one, buf_str(&plain)) && str_eq(one, other), row);
	}
}

/* Every path of every request has one spelling before a rule sees it. */
static void test_paths(void **state)
{
	struct rows_seen s = { .try = try_spellings };
	const struct api_route *r;

	for (size_t i = 0; i < all_ops_n; i++) {
		s.op = all_ops[i];
		field_pointers(s.op->request, see_row, &s);
	}
	for (size_t i = 0; (r = api_route_at(i)); i++) {
		s.op = r->op;
		if (!by_action(s.op->action) && !s.op->later)
			field_pointers(s.op->request, see_row, &s);
	}
	assert_true(s.paths > 20);
	assert_int_equal(s.unmarked, 0);
}

struct bytes_seen {
	const struct op *op;
	size_t n;
};

static void see_bytes(void *data, const struct field *row, const char *pointer)
{
	static const char *const all[] = { "conversation.add_file /content", "exec.stdin /data",
					   "files.write /content", "sandbox.exec /stdin" };
	struct bytes_seen *s = data;
	char name[160];

	if (!(row->flags & FIELD_BYTES))
		return;
	snprintf(name, sizeof(name), "%s %s", s->op->action, pointer);
	assert_true(s->n < ARRAY_LEN(all));
	assert_string_equal(name, all[s->n++]);
}

/* A person who approves sees them as text: test_bytes_are_shown_as_text of
 * tests/blackbox/test_approvals.py tries each. */
static void test_bytes(void **state)
{
	struct bytes_seen s = { 0 };

	for (size_t i = 0; i < all_ops_n; i++) {
		s.op = all_ops[i];
		field_pointers(s.op->request, see_bytes, &s);
	}
	assert_int_equal(s.n, 4);
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
		cmocka_unit_test(test_operations), cmocka_unit_test(test_tools),
		cmocka_unit_test(test_routes),	   cmocka_unit_test(test_each_has_a_door),
		cmocka_unit_test(test_paths),	   cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
