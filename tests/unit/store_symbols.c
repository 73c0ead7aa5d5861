/* store/symbols.h: an index of what is in files. */
#include <stdio.h>

#include "store/symbols.h"
#include "test.h"

struct found {
	char text[4096];
	size_t n;
};

static int found_add(void *data, const struct symbol *y, struct err *e)
{
	struct found *f = data;
	size_t n = strlen(f->text);

	f->n++;
	snprintf(f->text + n, sizeof(f->text) - n, "%.*s:%llu %.*s %.*s\n", STR_ARG(y->path),
		 (unsigned long long)y->line, STR_ARG(y->kind), STR_ARG(y->name));
	return 0;
}

static const char *find(struct symbols *s, const char *query, struct found *f)
{
	uint64_t total;
	struct err e = ERR_INIT;

	*f = (struct found){ .n = 0 };
	assert_int_equal(symbols_find(s, str_of(query), 100, found_add, f, &total, &e), 0);
	assert_true(total >= f->n);
	return f->text;
}

static void put(struct symbols *s, const char *path, const char *const *names)
{
	struct err e;

	assert_int_equal(symbols_read_begin(s, str_of(path), &e), 0);
	for (unsigned i = 0; names[i]; i++) {
		const struct symbol y = { .path = str_of(path),
					  .name = str_of(names[i]),
					  .kind = STR_LIT("function"),
					  .line = i + 1 };

		assert_int_equal(symbols_add(s, &y, false, &e), 0);
	}
	assert_int_equal(symbols_read_end(s, str_of(path), &e), 0);
}

static int count_one(void *data, struct str path, struct err *e)
{
	++*(unsigned *)data;
	return 0;
}

static unsigned unread(struct symbols *s)
{
	struct err e;
	unsigned n = 0;

	assert_int_equal(symbols_unread(s, 1000, count_one, &n, &e), 0);
	return n;
}

static void list(struct symbols *s, const char *const *paths, int64_t stamp)
{
	struct err e;

	assert_int_equal(symbols_list_begin(s, &e), 0);
	for (size_t i = 0; paths[i]; i++)
		assert_int_equal(symbols_list_file(s, str_of(paths[i]), stamp, 1, &e), 0);
	assert_int_equal(symbols_list_end(s, &e), 0);
}

#define LIST(...)                                                                                  \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static void finds_names_then_words(void **state)
{
	struct err e;
	AUTO(symbols_free) struct symbols *s = symbols_new(&e);
	struct found f;

	assert_non_null(s);
	list(s, LIST("a.c", "lib/b.c"), 1);
	put(s, "a.c", LIST("readAllOfIt", "read", "read_config_file", "HTTPServer2"));
	put(s, "lib/b.c", LIST("config_read", "Read", "unrelated"));
	find(s, "read", &f);
	assert_int_equal(strncmp(f.text, "a.c:2 function read\nlib/b.c:2 function Read\n", 44), 0);
	assert_int_equal(f.n, 5);
	assert_string_equal(find(s, "server http", &f), "a.c:4 function HTTPServer2\n");
	assert_int_equal(strncmp(find(s, "readConfigFile", &f), "a.c:3", 5), 0);
	assert_string_equal(find(s, "unrel", &f), "lib/b.c:3 function unrelated\n");
	find(s, "lib", &f);
	assert_int_equal(f.n, 3);
	assert_string_equal(find(s, "none", &f), "");
	assert_string_equal(find(s, "\" * ) OR -- \\ ' NEAR(", &f), "");
	assert_string_equal(find(s, "", &f), "");
}

static void keeps_up_with_files(void **state)
{
	struct err e;
	AUTO(symbols_free) struct symbols *s = symbols_new(&e);
	struct symbols_count n;
	struct found f;

	list(s, LIST("a", "b", "c"), 1);
	assert_int_equal(unread(s), 3);
	put(s, "a", LIST("one"));
	put(s, "b", LIST("two"));
	put(s, "c", LIST("three"));
	assert_int_equal(unread(s), 0);
	list(s, LIST("a", "c"), 1);
	assert_int_equal(unread(s), 0);
	assert_string_equal(find(s, "two", &f), "");
	list(s, LIST("a", "c", "d"), 2);
	assert_int_equal(unread(s), 3);
	assert_string_equal(find(s, "one", &f), "a:1 function one\n");
	put(s, "a", LIST("uno"));
	assert_string_equal(find(s, "one", &f), "");
	assert_string_equal(find(s, "uno", &f), "a:1 function uno\n");
	list(s, LIST("a"), 0);
	assert_int_equal(unread(s), 1);
	assert_int_equal(symbols_count(s, &n, &e), 0);
	assert_true(n.files == 1 && n.unread == 1 && !n.full && n.left_out == 0);
}

static void takes_any_bytes_and_no_more_than_fit(void **state)
{
	static const char path[] = "d\xff\n\"'.c", name[] = "n\xff\xc3\xa9\"'";
	struct err e;
	AUTO(symbols_free) struct symbols *s = symbols_new(&e);
	struct symbol y = { .path = str_of(path), .name = str_of(name), .kind = STR_LIT("word") };
	struct symbols_count n;
	struct found f;
	char many[16];

	list(s, LIST(path), 1);
	assert_int_equal(symbols_read_begin(s, y.path, &e), 0);
	assert_int_equal(symbols_add(s, &y, true, &e), 0);
	assert_int_equal(symbols_add(s, &y, true, &e), 0);
	for (int i = 0; i < SYMBOLS_OF_FILE_MAX + 10; i++) {
		snprintf(many, sizeof(many), "many%d", i);
		y.name = str_of(many);
		assert_int_equal(symbols_add(s, &y, false, &e), 0);
	}
	y.path = STR_LIT("of nobody");
	assert_int_equal(symbols_add(s, &y, false, &e), 0);
	find(s, "n", &f);
	assert_int_equal(f.n, 1);
	assert_non_null(strstr(f.text, path));
	assert_non_null(strstr(f.text, name));
	find(s, "many1998", &f);
	assert_int_equal(f.n, 1);
	assert_string_equal(find(s, "many2000", &f), "");
	assert_int_equal(symbols_list_begin(s, &e), 0);
	for (int i = 0; i < SYMBOLS_FILES_MAX + 5; i++) {
		snprintf(many, sizeof(many), "f%d", i);
		assert_int_equal(symbols_list_file(s, str_of(many), 1, 1, &e), 0);
	}
	assert_int_equal(symbols_list_end(s, &e), 0);
	assert_int_equal(symbols_count(s, &n, &e), 0);
	assert_true(n.files == SYMBOLS_FILES_MAX && n.left_out == 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_names_then_words),
		cmocka_unit_test(keeps_up_with_files),
		cmocka_unit_test(takes_any_bytes_and_no_more_than_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
