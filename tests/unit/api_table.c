/* door/http/routes.h: every row is fit to be served, and its path and its input name the same
 * segments. */
#include "door/http/routes.h"
#include "test.h"

static void test_tables(void **state)
{
	const struct api_route *r;

	for (size_t i = 0; (r = api_route_at(i)); i++) {
		struct err e = ERR_INIT;
		struct api_parts parts;

		ROW_CHECK(api_parts_init(&parts, r, &e) == 0, r->id);
		for (int k = 0; k < OP_PLACES; k++)
			ROW_CHECK(field_check(&parts.places[k], &e) == 0, r->id);
		api_parts_fini(&parts);
		ROW_CHECK(field_check(r->op->request, &e) == 0, r->id);
		ROW_CHECK(!r->op->result || field_check(r->op->result, &e) == 0, r->id);
		ROW_CHECK(!r->answer || field_check(r->answer, &e) == 0, r->id);
		ROW_CHECK(!r->page || field_check(r->page, &e) == 0, r->id);
		ROW_CHECK(!r->heard == !(r->socket || (r->streams && r->shape == API_FRAMES)),
			  r->id);
		ROW_CHECK(!r->heard || field_check(r->heard, &e) == 0, r->id);
		ROW_CHECK(!r->socket || r->method == HTTP_GET, r->id);
		ROW_CHECK(r->op->run && r->op->doc && r->method, r->id);
		ROW_CHECK(!r->open || strcmp(r->path, "/v1/health") == 0, r->id);
		for (size_t k = 0; k < i; k++) {
			const struct api_route *other = api_route_at(k);

			ROW_CHECK(strcmp(other->id, r->id) != 0, r->id);
			ROW_CHECK(strcmp(other->path, r->path) != 0 || other->method != r->method,
				  r->id);
		}
	}
}

/* Each member of "path" is a segment, and each segment a member. */
static void test_segments(void **state)
{
	const struct api_route *r;

	for (size_t i = 0; (r = api_route_at(i)); i++) {
		const struct field_table *path;
		struct api_parts parts;
		size_t braces = 0;
		struct err e;

		ROW_CHECK(api_parts_init(&parts, r, &e) == 0, r->id);
		path = &parts.places[OP_PATH];
		for (const char *p = r->path; *p; p++)
			braces += *p == '{';
		ROW_CHECK(braces == path->n, r->path);
		for (size_t k = 0; k < path->n; k++) {
			char segment[64];

			snprintf(segment, sizeof(segment), "{%s}", path->rows[k].name);
			ROW_CHECK(strstr(r->path, segment), r->path);
		}
		ROW_CHECK(r->method & (HTTP_POST | HTTP_PUT | HTTP_PATCH) || !parts.body_doc,
			  r->path);
		ROW_CHECK(r->kind != API_CONNECT || parts.places[OP_HEADER].n, r->path);
		api_parts_fini(&parts);
	}
}

static void test_codes(void **state)
{
	for (int code = ERR_NONE + 1; code < ERR_CODES; code++) {
		enum api_code api = api_code_of((enum err_code)code);

		/* what was sent is at fault: an argument, an archive, or all of it */
		ROW_CHECK(api != API_INVALID_INPUT || code == ERR_INVALID || code == ERR_SNAPSHOT ||
				  code == ERR_MESSAGE,
			  err_info((enum err_code)code)->name);
	}
	for (int i = 0; i < API_CODES; i++) {
		int status = api_connect_status(api_codes[i].connect);

		ROW_CHECK(api_codes[i].http >= 400 && api_codes[i].http < 600, api_codes[i].name);
		ROW_CHECK(status != 500 || strcmp(api_codes[i].connect, "internal") == 0 ||
				  strcmp(api_codes[i].connect, "unknown") == 0,
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
