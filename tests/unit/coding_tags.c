/* What ctags prints: coding/tags.h. */
#include "coding/tags.h"
#include "test.h"

static const struct {
	const char *line;
	const char *path, *name, *kind, *about, *text; /* path NULL: it is no tag */
	unsigned at;
} rows[] = {
	{ "add\t./a.c\t/^int add(int a, int b)$/;\"\tfunction\tline:1\tsignature:(int a,int b)",
	  "./a.c", "add", "function", "(int a,int b)", "int add(int a, int b)", 1 },
	{ "bar\t./a.c\t/^\tstruct foo\t{ int bar; };$/;\"\tmember\tline:5\tstruct:foo", "./a.c",
	  "bar", "member", "foo", "struct foo\t{ int bar; };", 5 },
	{ "M\t./a\\x5c\\t\xff.c\t/^#define M \\/\\\\$/;\"\tmacro\tline:6", "./a\\\t\xff.c", "M",
	  "macro", NULL, "#define M /\\", 6 },
	{ "cut\t./a\t/^a long line/;\"\tmacro\tline:7", "./a", "cut", "macro", NULL, "a long line",
	  7 },
	{ "dollar\t./a\t/^a\\$/;\"\tmacro\tline:7", "./a", "dollar", "macro", NULL, "a$", 7 },
	{ "n\t./a\t12;\"\tmacro\tline:12", "./a", "n", "macro", NULL, NULL, 12 },
	{ "!_TAG_FILE_FORMAT\t2\t/extended/", NULL, NULL, NULL, NULL, NULL, 0 },
	{ "noline\t./a\t/^x$/;\"\tmacro", NULL, NULL, NULL, NULL, NULL, 0 },
	{ "half\t./a", NULL, NULL, NULL, NULL, NULL, 0 },
	{ "\t\t\t", NULL, NULL, NULL, NULL, NULL, 0 },
	{ "", NULL, NULL, NULL, NULL, NULL, 0 },
	{ "x\t./a\t/;\"\t/\tline:1", "./a", "x", "/", NULL, NULL, 1 },
	{ "x\t./a\t/\\;\"\tk\tline:1\tsignature:\\x4\\", "./a", "x", "k", "x4\\", NULL, 1 },
};

static bool same(struct str s, const char *z)
{
	return z ? str_is(s, z) : s.n == 0;
}

static void reads_tags(void **state)
{
	struct buf room = BUF_INIT(4096);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct tag t;
		bool is = tag_read(str_of(rows[i].line), &room, &t);

		ROW_CHECK(is == (rows[i].path != NULL), rows[i].line);
		if (!is)
			continue;
		ROW_CHECK(same(t.path, rows[i].path) && same(t.name, rows[i].name), rows[i].line);
		ROW_CHECK(same(t.kind, rows[i].kind) && t.line == rows[i].at, rows[i].line);
		ROW_CHECK(same(t.text, rows[i].text), rows[i].line);
		ROW_CHECK(same(t.scope.n ? t.scope : t.signature, rows[i].about), rows[i].line);
	}
	buf_fini(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(reads_tags) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
