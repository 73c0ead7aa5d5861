/* store/tools.h: tools by words. */
#include <stdio.h>

#include "store/tools.h"
#include "test.h"

struct found {
	char text[4096];
};

static int found_add(void *data, const struct tools_entry *x, struct err *e)
{
	struct found *f = data;
	size_t n = strlen(f->text);

	snprintf(f->text + n, sizeof(f->text) - n, "%.*s/%.*s ", STR_ARG(x->module),
		 STR_ARG(x->tool));
	return 0;
}

static const char *find(struct tools *t, struct str query, struct found *f)
{
	struct err e = ERR_INIT;
	uint64_t total;

	*f = (struct found){ "" };
	assert_int_equal(tools_find(t, query, 3, found_add, f, &total, &e), 0);
	return f->text;
}

static void add(struct tools *t, const char *module, const char *name, const char *description)
{
	struct err e = ERR_INIT;
	const struct tools_entry x = { .name = str_of(name),
				       .description = str_of(description),
				       .module = str_of(module),
				       .tool = str_of(name),
				       .function = str_of(name) };

	assert_int_equal(tools_add(t, &x, &e), 0);
}

static struct tools *some(void)
{
	struct err e;
	struct tools *t = tools_new(&e);

	assert_non_null(t);
	add(t, "tracker", "createIssue", "Files a report.");
	add(t, "tracker", "list_issues", "Shows reports, to what there is.");
	add(t, "files", "read", "Reads a file as text.");
	add(t, "files", "read_many", "Reads files as text; read each.");
	add(t, "files", "mv", "Renames a file. Files are in folders.");
	return t;
}

static void test_find(void **state)
{
	static const struct {
		const char *query, *first;
	} rows[] = {
		{ "an issue", "tracker/createIssue " },
		{ "list of issues", "tracker/list_issues " },
		{ "CREATEISSUE", "tracker/createIssue " },
		{ "renaming", "files/mv " },
		{ "read", "files/read " },
		{ "READ", "files/read " },
		{ "open an issue", "tracker/createIssue " }, /* opening is creating */
		{ "fold", "files/mv " }, /* no word, but the beginning of one */
		{ "to", "tracker/list_issues " }, /* only words that say nothing */
		{ "zebra", "" },
		{ "to what the zebra is",
		  "" }, /* words that say nothing find nothing beside others */
		{ "...", "" },
		{ "", "" },
	};
	AUTO(tools_free) struct tools *t = some();
	struct found f;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *got = find(t, str_of(rows[i].query), &f);

		if (strncmp(got, rows[i].first, strlen(rows[i].first)) != 0 ||
		    (!rows[i].first[0] && got[0]))
			fail_msg("\"%s\" finds \"%s\"", rows[i].query, got);
	}
}

/* What is syntax of FTS5 or no text is words, or nothing. */
static void test_hostile(void **state)
{
	static const char *const queries[] = {
		"\"",
		"\"read",
		"read\"",
		"name:read",
		"read*",
		"^read",
		"NEAR(a b)",
		"read AND",
		"OR",
		"NOT read",
		"(read",
		"read)",
		"{name}:x",
		"- read",
		"read + file",
		"' OR 1=1--",
		"rank",
		"words",
		"\xff\xfe",
		("re\xff"
		 "ad"),
		"\xc3",
		"%s%n",
		"\xf0\x9f\x98\x80",
	};
	AUTO(tools_free) struct tools *t = some();
	struct found f;
	char longest[20000];

	for (size_t i = 0; i < ARRAY_LEN(queries); i++)
		find(t, str_of(queries[i]), &f);
	assert_string_equal(find(t, str_of("\"re\" AND name:mv"), &f), "files/mv ");
	find(t, (struct str){ "read\0file", 9 }, &f);
	memset(longest, 'x', sizeof(longest));
	find(t, (struct str){ longest, sizeof(longest) }, &f);
	for (size_t i = 0; i < sizeof(longest); i += 2)
		longest[i] = ' ';
	find(t, (struct str){ longest, sizeof(longest) }, &f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
