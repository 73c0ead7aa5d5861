/* What a walk remembers of files that have several names. */
#include "test.h"

#include "box/archive/links.h"

enum { BYTES_MAX = 16 << 20 };

static struct stat numbered(dev_t device, ino_t inode)
{
	return (struct stat){ .st_dev = device, .st_ino = inode };
}

/* As a walk goes: into a directory, out of it, and on in the one above. */
static void test_paths(void **state)
{
	const char *const paths[] = { "f",     "a/f",	"a/b/f",   "a/b/c/f", "a/g", "a/bc/f",
				      "a/b2/", "./x/y", "./x/y/z", "abc/f",   "ab/f" };
	static struct links all = { .bytes_max = BYTES_MAX };
	struct links *l = &all;
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		st = numbered(1, i);
		ROW_CHECK(links_first(l, &st, paths[i]) == NULL, paths[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		st = numbered(1, i);
		assert_string_equal(links_first(l, &st, "other"), paths[i]);
	}
	/* the number alone does not make it the same file */
	st = numbered(2, 1);
	assert_null(links_first(l, &st, "second"));
	assert_string_equal(links_first(l, &st, "third"), "second");
	links_fini(l);
}

/* Long names in a long path, until there is no more room: what was remembered stays. */
static void test_bound(void **state)
{
	static char path[TAR_PATH_MAX + 300];
	static struct links all = { .bytes_max = BYTES_MAX };
	struct links *l = &all;
	struct stat st = numbered(1, 0);
	size_t deep = 3800, n;

	memset(path, 'd', deep);
	for (size_t i = 250; i < deep; i += 251)
		path[i] = '/';
	path[deep] = '/';
	for (n = 0; n < 400000; n++) {
		st.st_ino = n;
		snprintf(path + deep + 1, 255, "%0200zu", n);
		assert_null(links_first(l, &st, path));
	}
	assert_true(l->bytes <= BYTES_MAX);
	for (n = 0; n < 32000; n++) {
		st.st_ino = n;
		snprintf(path + deep + 1, 255, "%0200zu", n);
		assert_string_equal(links_first(l, &st, "other"), path);
	}
	st.st_ino = 399999;
	assert_null(links_first(l, &st, "other"));
	/* nor what no archive can name */
	memset(path, 'x', TAR_PATH_MAX);
	st.st_dev = 2;
	assert_null(links_first(l, &st, path));
	assert_null(links_first(l, &st, path));
	links_fini(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
