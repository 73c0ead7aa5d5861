/* API keys: what opens, for how long, what the registry has of them, and who is told of an end. */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "guard/key/key.h"
#include "store/store.h"

static char dir[64], path[128];
static struct store *store;
static struct keys *keys;
static char ended[256]; /* names, each with a space */

static void on_end(void *owner, struct key *k)
{
	assert_ptr_equal(owner, &store);
	snprintf(ended + strlen(ended), sizeof(ended) - strlen(ended), "%s ", k->name);
}

static const struct keys_options options = { .on_end = on_end, .owner = &store };

static void keys_again(void)
{
	struct err e;

	keys_free(keys);
	store_close(store);
	store = store_open(path, &e);
	assert_non_null(store);
	keys = keys_open(store, &options, &e);
	assert_non_null(keys);
}

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/unit-keys-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/registry.db", dir);
	*ended = '\0';
	keys_again();
	return 0;
}

static int teardown(void **state)
{
	keys_free(take_ptr(keys));
	store_close(take_ptr(store));
	return test_remove_folder(dir);
}

/* The token of a new key, as a text. */
static void created(const char *name, unsigned scopes, uint64_t ttl_ms, int64_t now, char to[128])
{
	AUTO(secret_free) struct secret *token = NULL;
	struct err e = ERR_INIT;
	const struct key *k = keys_create(keys, &(struct key_spec){ str_of(name), scopes, ttl_ms },
					  now, &token, &e);

	if (!k)
		fail_msg("%s: %s", name, e.msg);
	assert_string_equal(k->name, name);
	snprintf(to, 128, "%.*s", STR_ARG(secret_expose(token, "a test")));
}

static enum err_code refused(const char *name, unsigned scopes, uint64_t ttl_ms)
{
	struct secret *token = NULL;
	struct err e = ERR_INIT;

	assert_null(keys_create(keys, &(struct key_spec){ str_of(name), scopes, ttl_ms }, 1000,
				&token, &e));
	assert_null(token);
	return e.code;
}

static const char *found(const char *token, int64_t now)
{
	const struct key *k = keys_find(keys, str_of(token), now);

	return k ? k->name : "";
}

static void test_opens(void **state)
{
	char one[128], two[128], wrong[128];

	created("ci", KEY_READ | KEY_EXECUTE, 0, 1000, one);
	created("ops", KEY_ADMIN, 0, 1001, two);
	assert_int_equal(strlen(one), 9 + 64);
	assert_string_not_equal(one, two);
	assert_string_equal(found(one, 2000), "ci");
	assert_string_equal(found(two, 2000), "ops");
	assert_int_equal(keys_find(keys, str_of(one), 2000)->scopes, KEY_READ | KEY_EXECUTE);
	for (size_t i = 0; i < strlen(one); i++) {
		memcpy(wrong, one, sizeof(wrong));
		wrong[i] = wrong[i] == '0' ? '1' : '0';
		assert_string_equal(found(wrong, 2000), "");
	}
	wrong[0] = '\0';
	assert_string_equal(found(wrong, 2000), "");
	assert_string_equal(found("holt_key_", 2000), "");
	assert_null(keys_find(keys, (struct str){ one, strlen(one) - 1 }, 2000));
}

static void test_names(void **state)
{
	char token[128], longest[KEY_NAME_MAX + 2];

	memset(longest, 'n', sizeof(longest));
	longest[KEY_NAME_MAX + 1] = '\0';
	assert_int_equal(refused("", KEY_READ, 0), ERR_INVALID);
	assert_int_equal(refused(".", KEY_READ, 0), ERR_INVALID);
	assert_int_equal(refused("a b", KEY_READ, 0), ERR_INVALID);
	assert_int_equal(refused("a/b", KEY_READ, 0), ERR_INVALID);
	assert_int_equal(refused("\xc3\xa9", KEY_READ, 0), ERR_INVALID);
	assert_int_equal(refused(longest, KEY_READ, 0), ERR_INVALID);
	assert_int_equal(refused("ci", 0, 0), ERR_INVALID);
	assert_int_equal(refused("ci", 1 << KEY_SCOPES, 0), ERR_INVALID);
	assert_int_equal(refused("ci", KEY_READ, KEY_TTL_MAX_MS + 1), ERR_INVALID);
	created(longest + 1, KEY_READ, 0, 1000, token);
	created("ci", KEY_READ, 0, 1000, token);
	assert_int_equal(refused("ci", KEY_READ, 0), ERR_NAME_TAKEN);
	assert_string_equal(ended, "");
}

static void test_expires(void **state)
{
	char one[128], two[128], again[128];

	created("one", KEY_READ, 500, 1000, one);
	created("two", KEY_READ, 2000, 1000, two);
	assert_int_equal(keys_expire(keys, 1000), 1500);
	assert_string_equal(found(one, 1499), "one");
	assert_string_equal(found(one, 1500), "");
	assert_string_equal(ended, "");
	assert_int_equal(keys_expire(keys, 1500), 3000);
	assert_string_equal(ended, "one ");
	/* A clock that is set back opens nothing again. */
	assert_string_equal(found(one, 1000), "");
	created("one", KEY_READ, 0, 2000, again);
	assert_string_equal(found(again, 2000), "one");
	assert_string_equal(found(one, 2000), "");
	assert_int_equal(keys_expire(keys, 3000), 0);
	assert_string_equal(ended, "one two ");
	keys_again();
	assert_string_equal(found(again, 3000), "one");
	assert_string_equal(found(two, 3000), "");
}

static void test_revoked(void **state)
{
	char one[128], two[128];
	struct err e = ERR_INIT;

	created("one", KEY_READ, 0, 1000, one);
	created("two", KEY_READ, 0, 1000, two);
	assert_int_equal(keys_revoke(keys, STR_LIT("one"), &e), 0);
	assert_string_equal(ended, "one ");
	assert_string_equal(found(one, 1000), "");
	assert_string_equal(found(two, 1000), "two");
	assert_int_equal(keys_revoke(keys, STR_LIT("one"), &e), -1);
	assert_int_equal(e.code, ERR_KEY_NOT_FOUND);
	assert_int_equal(keys_revoke(keys, STR_NONE, &e), -1);
	keys_again();
	assert_string_equal(found(one, 1000), "");
	assert_string_equal(found(two, 1000), "two");
	assert_string_equal(keys_first(keys)->name, "two");
	assert_null(keys_first(keys)->next);
}

static void test_used(void **state)
{
	char token[128];

	created("one", KEY_READ, 0, 1000, token);
	assert_int_equal(keys_first(keys)->used_ms, 0);
	found(token, 200000);
	found(token, 200001);
	assert_int_equal(keys_first(keys)->used_ms, 200001);
	keys_again();
	assert_int_equal(keys_first(keys)->used_ms, 200000);
	assert_int_equal(keys_first(keys)->created_ms, 1000);
}

/* Neither the token nor its random part is anywhere in the registry's files. */
static void test_at_rest(void **state)
{
	static const char *const names[] = { "", "-wal" };
	char token[128], name[160];
	static char all[1 << 20];

	created("one", KEY_READ, 0, 1000, token);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		FILE *f;
		size_t n;

		snprintf(name, sizeof(name), "%s%s", path, names[i]);
		f = fopen(name, "r");
		assert_non_null(f);
		n = fread(all, 1, sizeof(all), f);
		fclose(f);
		assert_null(memmem(all, n, token + 9, 16));
		if (i == 1)
			assert_non_null(memmem(all, n, keys_first(keys)->hash, KEY_HASH));
	}
}

static void test_bounded(void **state)
{
	char token[128], name[16];
	struct err e = ERR_INIT;

	assert_int_equal(store_begin(store, &e), 0);
	for (int i = 0; i < KEYS_MAX; i++) {
		snprintf(name, sizeof(name), "k%d", i);
		created(name, KEY_READ, 0, 1000, token);
	}
	assert_int_equal(refused("more", KEY_READ, 0), ERR_LIMIT);
	assert_int_equal(store_commit(store, &e), 0);
	assert_string_equal(found(token, 1000), name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_opens), TEST(test_names),   TEST(test_expires), TEST(test_revoked),
		TEST(test_used),  TEST(test_at_rest), TEST(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
