/* mcp/oauth/store.h: what is kept comes back; what is damaged, foreign or open to others is
 * refused and stays. */
#include "mcp/oauth/store.h"
#include "alloc_fail.h"
#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

static char folder[64], inside[96];

static const char *file(const char *name)
{
	snprintf(inside, sizeof(inside), "%s/%s", folder, name);
	return inside;
}

static int set_up(void **state)
{
	strcpy(folder, "/tmp/unit-oauth-store.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	strcat(folder, "/store");
	return 0;
}

static int tear_down(void **state)
{
	*strrchr(folder, '/') = '\0';
	return test_remove_folder(folder);
}

static struct mcp_oauth_store *open_ok(void)
{
	struct err e = ERR_INIT;
	struct mcp_oauth_store *s = mcp_oauth_store_open(folder, &e);

	if (!s)
		print_error("%s\n", e.msg);
	assert_non_null(s);
	return s;
}

/* text NULL: it is removed. */
static int change(struct mcp_oauth_store *s, const char *name, const char *text, struct err *e)
{
	struct oauth_store_change c = { .name = str_of(name), .text = str_of(text) };

	return oauth_store_change(s, &c, e);
}

static void put(struct mcp_oauth_store *s, const char *name, const char *text)
{
	struct err e;

	assert_int_equal(change(s, name, text, &e), 1);
}

/* text NULL: it is not there. */
static void check(struct mcp_oauth_store *s, const char *name, const char *text)
{
	autowipe struct buf to = BUF_INIT(OAUTH_STORE_TEXT_MAX);
	struct err e;

	assert_int_equal(oauth_store_get(s, str_of(name), &to, &e), text != NULL);
	if (text)
		assert_true(str_is(buf_str(&to), text));
}

static void use(struct mcp_oauth_store *s)
{
	struct err e;

	check(s, "a", NULL);
	put(s, "a", "one");
	put(s, "b", "two");
	put(s, "", "");
	put(s, "a", "another one, which is longer");
	check(s, "a", "another one, which is longer");
	check(s, "b", "two");
	check(s, "", "");
	assert_int_equal(change(s, "a", NULL, &e), 1);
	assert_int_equal(change(s, "a", NULL, &e), 0);
	check(s, "a", NULL);
	check(s, "b", "two");
}

/* What is there is compared and changed in one step. */
static void use_compared(struct mcp_oauth_store *s)
{
	struct oauth_store_change c = { .name = STR_LIT("a"),
					.text = STR_LIT("mine"),
					.was = STR_LIT("one") };
	struct err e;

	assert_int_equal(oauth_store_change(s, &c, &e), 0);
	check(s, "a", NULL);
	put(s, "a", "another's");
	assert_int_equal(oauth_store_change(s, &c, &e), 0);
	check(s, "a", "another's");
	put(s, "a", "one");
	assert_int_equal(oauth_store_change(s, &c, &e), 1);
	check(s, "a", "mine");
	c.text = STR_NONE;
	assert_int_equal(oauth_store_change(s, &c, &e), 0);
	c.was = STR_LIT("mine");
	assert_int_equal(oauth_store_change(s, &c, &e), 1);
	check(s, "a", NULL);
}

static void use_ends(struct mcp_oauth_store *s)
{
	struct oauth_store_change c = { .name = STR_LIT("x\n"), .end = STR_LIT("\nold") };
	struct err e;

	put(s, "x\none\nold", "1");
	put(s, "x\none\nnew", "2");
	put(s, "x\ntwo\nold", "3");
	put(s, "y\ntwo\nold", "4");
	put(s, "x\nold", "5"); /* the end would have to begin before the name does */
	assert_int_equal(oauth_store_change(s, &c, &e), 1);
	assert_int_equal(oauth_store_change(s, &c, &e), 0);
	check(s, "x\none\nold", NULL);
	check(s, "x\none\nnew", "2");
	check(s, "x\ntwo\nold", NULL);
	check(s, "y\ntwo\nold", "4");
	check(s, "x\nold", "5");
}

static void test_memory(void **state)
{
	struct err e;
	AUTO(mcp_oauth_store_free) struct mcp_oauth_store *s = mcp_oauth_store_new(&e);

	use(s);
	use_compared(s);
	use_ends(s);
}

static void test_files(void **state)
{
	AUTO(mcp_oauth_store_free) struct mcp_oauth_store *s = open_ok(), *other = open_ok();
	struct stat st;

	use(s);
	use_compared(s);
	use_ends(s);
	check(other, "b", "two");
	put(other, "b", "three");
	check(s, "b", "three");
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(file("tokens"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(file("key"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, 32);
}

static void test_again(void **state)
{
	mcp_oauth_store_free(({
		struct mcp_oauth_store *s = open_ok();
		put(s, "a", "kept");
		s;
	}));
	AUTO(mcp_oauth_store_free) struct mcp_oauth_store *s = open_ok();

	check(s, "a", "kept");
}

static char *slurp(const char *path, size_t *n)
{
	char *all = calloc(1, 100000);
	FILE *in = fopen(path, "re");

	assert_non_null(in);
	*n = fread(all, 1, 99999, in);
	fclose(in);
	return all;
}

static void spill(const char *path, const char *bytes, size_t n)
{
	FILE *out = fopen(path, "we");

	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, n, out), n);
	fclose(out);
}

static void test_nothing_readable(void **state)
{
	AUTO(mcp_oauth_store_free) struct mcp_oauth_store *s = open_ok();
	autofree char *all = NULL;
	size_t n;

	put(s, "the name", "the secret token");
	all = slurp(file("tokens"), &n);
	assert_null(memmem(all, n, "the name", 8));
	assert_null(memmem(all, n, "secret", 6));
}

/* A store that can't be read is refused, and what is in its file stays to the last byte. */
static void check_refused(struct mcp_oauth_store *s, enum err_code code)
{
	autobuf struct buf to = BUF_INIT(1000);
	struct err e = ERR_INIT;
	autofree char *before = NULL, *after = NULL;
	size_t n, m;

	before = slurp(file("tokens"), &n);
	assert_null(mcp_oauth_store_open(folder, &e));
	assert_int_equal(e.code, code);
	assert_null(strstr(e.msg, "/tmp"));
	assert_int_equal(oauth_store_get(s, str_of("a"), &to, &e), -1);
	assert_int_equal(change(s, "a", "new", &e), -1);
	assert_int_equal(change(s, "a", NULL, &e), -1);
	after = slurp(file("tokens"), &m);
	assert_true(str_eq((struct str){ before, n }, (struct str){ after, m }));
}

static void test_damaged(void **state)
{
	AUTO(mcp_oauth_store_free) struct mcp_oauth_store *s = open_ok();
	autofree char *all = NULL;
	size_t n;

	put(s, "a", "x");
	all = slurp(file("tokens"), &n);
	spill(file("tokens"), all, n - 1);
	check_refused(s, ERR_INVALID);
	spill(file("tokens"), "", 0);
	check_refused(s, ERR_INVALID);
	spill(file("tokens"), "{\"access_token\":\"plain\"}", 24);
	check_refused(s, ERR_INVALID);
	all[n / 2] ^= 1;
	spill(file("tokens"), all, n);
	check_refused(s, ERR_INVALID);
	all[n / 2] ^= 1;
	spill(file("tokens"), all, n);
	check(s, "a", "x");
}

static void test_other_key(void **state)
{
	AUTO(mcp_oauth_store_free) struct mcp_oauth_store *s = open_ok();

	put(s, "a", "x");
	spill(file("key"), "0123456789abcdef0123456789abcdef", 32);
	check_refused(s, ERR_INVALID);
	spill(file("key"), "short", 5);
	check_refused(s, ERR_INVALID);
	assert_int_equal(unlink(file("key")), 0);
	check_refused(s, ERR_INVALID);
}

static void test_open_to_others(void **state)
{
	AUTO(mcp_oauth_store_free) struct mcp_oauth_store *s = open_ok();
	struct err e = ERR_INIT;

	put(s, "a", "x");
	assert_int_equal(chmod(file("tokens"), 0644), 0);
	check_refused(s, ERR_DENIED);
	assert_int_equal(chmod(file("tokens"), 0600), 0);
	assert_int_equal(chmod(file("key"), 0640), 0);
	check_refused(s, ERR_DENIED);
	assert_int_equal(chmod(file("key"), 0600), 0);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_null(mcp_oauth_store_open(folder, &e));
	assert_int_equal(e.code, ERR_DENIED);
}

static void test_links(void **state)
{
	struct err e = ERR_INIT;
	char target[96];

	mcp_oauth_store_free(open_ok());
	snprintf(target, sizeof(target), "%s/elsewhere", folder);
	spill(target, "x", 1);
	assert_int_equal(chmod(target, 0600), 0);
	assert_int_equal(symlink(target, file("tokens")), 0);
	assert_null(mcp_oauth_store_open(folder, &e));
	assert_null(mcp_oauth_store_open("relative", &e));
	assert_int_equal(e.code, ERR_INVALID);
}

static void test_bounds(void **state)
{
	struct err e;
	AUTO(mcp_oauth_store_free) struct mcp_oauth_store *s = mcp_oauth_store_new(&e);
	autofree char *big = calloc(1, OAUTH_STORE_TEXT_MAX + 2);
	char name[32];

	memset(big, 'x', OAUTH_STORE_TEXT_MAX + 1);
	assert_int_equal(change(s, "a", big, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	for (unsigned i = 0; i < OAUTH_STORE_ENTRIES; i++) {
		snprintf(name, sizeof(name), "%u", i);
		put(s, name, "x");
	}
	assert_int_equal(change(s, "one more", "x", &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	put(s, "7", "in place of the old one");
}

/* What a login can bring again goes for what it has brought now, the oldest first; nothing else
 * goes. */
static void test_makes_room(void **state)
{
	struct err e;
	AUTO(mcp_oauth_store_free) struct mcp_oauth_store *s = mcp_oauth_store_new(&e);
	autofree char *big = calloc(1, OAUTH_STORE_TEXT_MAX + 1);
	char name[32];

	put(s, "server\na", "x");
	put(s, "token\na", "x");
	put(s, "client\nb", "x");
	put(s, "token\na", "written again");
	for (unsigned i = 3; i < OAUTH_STORE_ENTRIES; i++) {
		snprintf(name, sizeof(name), "token\n%u", i);
		put(s, name, "x");
	}
	put(s, "token\none more", "x");
	check(s, "server\na", "x");
	check(s, "token\na", "written again");
	check(s, "client\nb", NULL);
	put(s, "server\nb", "x");
	check(s, "token\na", NULL);
	memset(big, 'x', OAUTH_STORE_TEXT_MAX);
	for (unsigned i = 0; i < OAUTH_STORE_BYTES_MAX / OAUTH_STORE_TEXT_MAX; i++) {
		snprintf(name, sizeof(name), "token\nbig %u", i);
		put(s, name, big);
	}
	check(s, "token\n3", NULL);
	check(s, "token\nbig 0", NULL);
	check(s, name, big);
	check(s, "server\na", "x");
}

/* Whoever holds the lock and does not go on is told of, and keeps nobody from reading. */
static void test_held(void **state)
{
	AUTO(mcp_oauth_store_free) struct mcp_oauth_store *s = open_ok();
	autoclose int key = open(file("key"), O_RDONLY | O_CLOEXEC);
	struct err e = ERR_INIT;

	put(s, "a", "x");
	assert_int_equal(flock(key, LOCK_EX), 0);
	check(s, "a", "x");
	mcp_oauth_store_free(open_ok());
	assert_int_equal(change(s, "a", "y", &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	check(s, "a", "x");
	assert_int_equal(flock(key, LOCK_UN), 0);
	put(s, "a", "y");
}

/* What was there is still there. */
static void test_without_memory(void **state)
{
	AUTO(mcp_oauth_store_free) struct mcp_oauth_store *s = open_ok();
	struct err e = ERR_INIT;

	put(s, "a", "before");
	for (unsigned n = 0; alloc_fail_next(&n);) {
		if (change(s, "a", "after", &e) < 0)
			assert_int_equal(e.code, ERR_LIMIT);
	}
	check(s, "a", "after");
}

#define FILES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_makes_room),
		FILES(test_files),
		FILES(test_again),
		FILES(test_nothing_readable),
		FILES(test_damaged),
		FILES(test_other_key),
		FILES(test_open_to_others),
		FILES(test_links),
		FILES(test_held),
		FILES(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
