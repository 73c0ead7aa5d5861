/*
 * Plays the files of a folder in the form of the official JSON-Schema-Test-Suite: groups of a
 * schema and its tests. Our own files may also have:
 *
 *	in a group	"refused": part of the message of a schema that can't be compiled
 *			"formats": true: formats are asserted
 *			"options": {"steps": n, "depth": n, "subschemas": n}
 *	in a test	"says": part of the message
 *			"over": true: it exceeds a limit, neither valid nor invalid
 *			"faults": ["/pointer /keyword", …]: all of them
 *
 * With SCHEMA_SUITE set to draft7, draft2020-12 or formats it counts instead, for the official
 * files:
 *
 *	SCHEMA_SUITE=draft7 test_json_schema_cases JSON-Schema-Test-Suite/tests/draft7
 */
#include <dirent.h>
#include <stdlib.h>

#include "json/schema/schema.h"
#include "test.h"

enum { FILE_MAX = 1 << 20, FAULTS = 8 };

static const char *folder, *suite;
static unsigned passed, failed, refused;

/* A test of a group, and how it went. */
struct play {
	const char *file;
	const struct json_val *group, *test;
};

static void wrong(const struct play *p, const char *what)
{
	struct str group = json_str(json_get(p->group, "description"));
	struct str test = json_str(json_get(p->test, "description"));

	failed++;
	print_error("%s: %.*s: %.*s: %s\n", p->file, STR_ARG(group), STR_ARG(test), what);
	if (!suite)
		fail();
}

static bool has(const char *text, const struct json_val *part)
{
	autofree char *z = part ? strndup(json_str(part).p, json_str(part).n) : NULL;

	return !z || strstr(text, z);
}

static void compare_faults(const struct play *p, const struct schema_faults *faults)
{
	const struct json_val *all = json_get(p->test, "faults");
	struct json_iter it = json_iter(all);
	char line[512];

	if (all && json_len(all) != faults->n)
		wrong(p, "another number of faults");
	while (json_next(&it) && it.index < faults->n) {
		const struct schema_fault *f = &faults->p[it.index];

		snprintf(line, sizeof(line), "%s %s", f->instance, f->keyword);
		if (!str_is(json_str(it.val), line))
			wrong(p, line);
	}
}

static void play_test(const struct play *p, const struct schema *s)
{
	bool valid = json_bool(json_get(p->test, "valid")),
	     over = json_bool(json_get(p->test, "over"));
	struct schema_fault space[FAULTS];
	struct schema_faults faults = { .p = space, .max = FAULTS };
	const struct json_val *data = json_get(p->test, "data");
	struct err e = ERR_INIT, one = ERR_INIT;
	int is = schema_check(s, data, &faults, &e);

	if (e.code == ERR_TOO_LARGE && !over)
		wrong(p, e.msg);
	else if (over ? e.code != ERR_TOO_LARGE : (is == 0) != valid)
		wrong(p, is == 0 ? "it was valid" : e.msg);
	else if (!over && (schema_check(s, data, NULL, &one) != is || strcmp(one.msg, e.msg) != 0))
		wrong(p, "its first fault is another when all are asked for");
	else if (is < 0 && !has(e.msg, json_get(p->test, "says")))
		wrong(p, e.msg);
	else
		passed++;
	if (!over)
		compare_faults(p, &faults);
}

static struct schema_options options_of(const struct json_val *group)
{
	const struct json_val *o = json_get(group, "options");
	struct schema_options ret = { .formats = json_bool(json_get(group, "formats")) };
	uint64_t n;

	if (suite) {
		ret.formats = strcmp(suite, "formats") == 0;
		ret.dialect = strcmp(suite, "draft7") == 0 ? SCHEMA_DRAFT_07 : SCHEMA_2020_12;
	}
	if (json_uint64(json_get(o, "steps"), &n))
		ret.steps = n;
	if (json_uint64(json_get(o, "depth"), &n))
		ret.depth = (unsigned)n;
	if (json_uint64(json_get(o, "subschemas"), &n))
		ret.subschemas = (unsigned)n;
	return ret;
}

static void play_group(struct play *p)
{
	const struct json_val *why = json_get(p->group, "refused");
	struct schema_options o = options_of(p->group);
	struct json_iter it = json_iter(json_get(p->group, "tests"));
	struct err e = ERR_INIT;
	AUTO(schema_free) struct schema *s = schema_new(json_get(p->group, "schema"), &o, &e);

	p->test = NULL;
	if (!s && suite) {
		refused += (unsigned)it.left;
		print_error("%s: %.*s: %s\n", p->file,
			    STR_ARG(json_str(json_get(p->group, "description"))), e.msg);
		return;
	}
	if (why && !s && has(e.msg, why)) {
		passed++;
		return;
	}
	if (why || !s) {
		wrong(p, s ? "it was compiled" : e.msg);
		return;
	}
	while (json_next(&it)) {
		p->test = it.val;
		play_test(p, s);
	}
}

static void play_file(const char *name)
{
	autofree char *text = malloc(FILE_MAX);
	struct play p = { .file = name };
	struct json_iter it;
	struct err e = ERR_INIT;
	char path[512];
	FILE *in;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	in = fopen(path, "re");
	assert_true(text && in);
	n = fread(text, 1, FILE_MAX, in);
	fclose(in);
	AUTO(json_free) struct json_doc *d = json_parse((struct str){ text, n }, NULL, &e);
	if (!d) {
		wrong(&p, e.msg);
		return;
	}
	it = json_iter(json_root(d));
	while (json_next(&it)) {
		p.group = it.val;
		play_group(&p);
	}
}

static void plays_all(void **state)
{
	struct dirent **all;
	int n = scandir(folder, &all, NULL, alphasort);

	assert_true(n > 0);
	for (int i = 0; i < n; i++) {
		const char *dot = strrchr(all[i]->d_name, '.');

		if (dot && strcmp(dot, ".json") == 0)
			play_file(all[i]->d_name);
		free(all[i]);
	}
	free(all);
	assert_true(passed > 0);
	if (suite)
		print_message("%u passed, %u failed, %u of schemas that are refused\n", passed,
			      failed, refused);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(plays_all) };

	if (argc != 2)
		return 2;
	folder = argv[1];
	suite = getenv("SCHEMA_SUITE");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
