/* api/routes.h: every row is fit to be served, and its path and its input name the same segments. */
#include "api/routes.h"
#include "test.h"

static const struct field_table *part_of(const struct api_route *r, const char *name)
{
	for (size_t i = 0; i < r->tool.input->n; i++) {
		if (strcmp(r->tool.input->rows[i].name, name) == 0)
			return r->tool.input->rows[i].table;
	}
	return NULL;
}

static void test_tables(void **state)
{
	const struct api_route *r;

	for (size_t i = 0; (r = api_route_at(i)); i++) {
		struct err e = ERR_INIT;

		ROW_CHECK(field_check(r->tool.input, &e) == 0, r->tool.name);
		ROW_CHECK(field_check(r->tool.output, &e) == 0, r->tool.name);
		ROW_CHECK(!r->page || field_check(r->page, &e) == 0, r->tool.name);
		ROW_CHECK(!r->heard == !(r->socket || (r->streams && r->shape == API_FRAMES)),
			  r->tool.name);
		ROW_CHECK(!r->heard || field_check(r->heard, &e) == 0, r->tool.name);
		ROW_CHECK(!r->socket || r->method == HTTP_GET, r->tool.name);
		ROW_CHECK(r->tool.run && r->tool.doc && r->method, r->tool.name);
		ROW_CHECK(!r->open || strcmp(r->path, "/v1/health") == 0, r->tool.name);
		for (size_t k = 0; k < i; k++) {
			const struct api_route *other = api_route_at(k);

			ROW_CHECK(strcmp(other->tool.name, r->tool.name) != 0, r->tool.name);
			ROW_CHECK(strcmp(other->path, r->path) != 0 || other->method != r->method,
				  r->tool.name);
		}
	}
}

/* Each member of "path" is a segment, and each segment a member. */
static void test_segments(void **state)
{
	const struct api_route *r;

	for (size_t i = 0; (r = api_route_at(i)); i++) {
		const struct field_table *path = part_of(r, "path");
		size_t braces = 0;

		for (const char *p = r->path; *p; p++)
			braces += *p == '{';
		ROW_CHECK(braces == (path ? path->n : 0), r->path);
		for (size_t k = 0; path && k < path->n; k++) {
			char segment[64];

			snprintf(segment, sizeof(segment), "{%s}", path->rows[k].name);
			ROW_CHECK(strstr(r->path, segment), r->path);
		}
		ROW_CHECK(r->method == HTTP_POST || !part_of(r, "body"), r->path);
		ROW_CHECK(r->kind != API_CONNECT || part_of(r, "header"), r->path);
	}
}

static void test_codes(void **state)
{
	for (int code = ERR_NONE + 1; code < ERR_CODES; code++) {
		enum api_code api = api_code_of((enum err_code)code);

		/* what was sent is at fault: an argument, or an archive */
		ROW_CHECK(api != API_INVALID_INPUT || code == ERR_INVALID || code == ERR_SNAPSHOT,
			  err_info((enum err_code)code)->name);
	}
	for (int i = 0; i < API_CODES; i++) {
		int status = api_connect_status(api_codes[i].connect);

		ROW_CHECK(api_codes[i].http >= 400 && api_codes[i].http < 600, api_codes[i].name);
		ROW_CHECK(status != 500 || strcmp(api_codes[i].connect, "internal") == 0,
			  api_codes[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
