/* guard/secret: providers, the sealed store, refusals, and that no value is left anywhere. */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "guard/secret/secrets.h"

#define CANARY "canary-5f1e-value"

static char dir[64];
static struct secrets *secrets;
static uv_loop_t loop;

static void put_file(const char *name, const char *text, mode_t mode)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(path, mode), 0);
}

static int setup(void **state)
{
	struct err e;

	snprintf(dir, sizeof(dir), "/tmp/unit-secrets-XXXXXX");
	assert_non_null(mkdtemp(dir));
	secrets = secrets_open(dir, &e);
	assert_non_null(secrets);
	uv_loop_init(&loop);
	return 0;
}

static int teardown(void **state)
{
	secrets_free(secrets);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	return test_remove_folder(dir);
}

/* ---- reading ------------------------------------------------------------------------------- */

static struct {
	bool done;
	char values[4][128];
	struct err err;
} got;

static void on_read(void *data, struct secret *const *values, const struct err *err)
{
	const size_t *n = data;

	assert_false(got.done);
	got.done = true;
	got.err = err ? *err : ERR_INIT;
	for (size_t i = 0; !err && i < *n; i++) {
		struct str s = secret_expose(values[i], "a test");

		snprintf(got.values[i], sizeof(got.values[i]), "%.*s", STR_ARG(s));
	}
}

static enum err_code read_all(const char *const *names, size_t n)
{
	struct str strs[4];
	struct err e;

	got.done = false;
	for (size_t i = 0; i < n; i++)
		strs[i] = str_of(names[i]);
	if (!secrets_read_start(secrets, &loop, strs, n, on_read, &n, &e)) {
		got.err = e;
		return e.code;
	}
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_true(got.done);
	return got.err.code;
}

static enum err_code read_one(const char *name)
{
	return read_all(&name, 1);
}

static void configure(const struct secrets_source *src)
{
	struct err e;

	if (secrets_configure(secrets, src, 1, &e) < 0)
		fail_msg("%s", e.msg);
}

static void configure_command(const char *line)
{
	const struct str argv[] = { STR_LIT("sh"), STR_LIT("-c"), str_of(line) };

	configure(&(struct secrets_source){
		.name = STR_LIT("c"), .provider = SECRETS_COMMAND, .argv = argv, .n_argv = 3 });
}

static void configure_file(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	configure(&(struct secrets_source){
		.name = STR_LIT("f"), .provider = SECRETS_FILE, .from = str_of(path) });
}

static void reads_every_provider(void **state)
{
	static const char *const names[] = { "e", "f", "c", "stored" };
	const struct str argv[] = { STR_LIT("printf"), STR_LIT("by command\\n") };
	char path[256];
	struct err e;

	snprintf(path, sizeof(path), "%s/file", dir);
	put_file("file", "from a file\n", 0600);
	setenv("HOLT_TEST_SECRET", "in the environment", 1);
	const struct secrets_source sources[] = {
		{ .name = STR_LIT("f"), .provider = SECRETS_FILE, .from = str_of(path) },
		{ .name = STR_LIT("e"),
		  .provider = SECRETS_ENV,
		  .from = STR_LIT("HOLT_TEST_SECRET") },
		{ .name = STR_LIT("c"), .provider = SECRETS_COMMAND, .argv = argv, .n_argv = 2 },
	};
	assert_int_equal(secrets_configure(secrets, sources, 3, &e), 0);
	assert_int_equal(secrets_set(secrets, STR_LIT("stored"), STR_LIT(CANARY), &e), 0);
	assert_int_equal(read_all(names, 4), ERR_NONE);
	assert_string_equal(got.values[0], "in the environment");
	assert_string_equal(got.values[1], "from a file\n");
	assert_string_equal(got.values[2], "by command\n");
	assert_string_equal(got.values[3], CANARY);
	unsetenv("HOLT_TEST_SECRET");
	assert_int_equal(read_one("e"), ERR_IO);
}

static void reads_only_private_files(void **state)
{
	static const struct {
		const char *what;
		enum err_code code;
	} cases[] = {
		{ "fine", ERR_NONE },	  { "open", ERR_DENIED },   { "link", ERR_DENIED },
		{ "fifo", ERR_DENIED },	  { "folder", ERR_DENIED }, { "short", ERR_INVALID },
		{ "large", ERR_INVALID }, { "other", ERR_DENIED },  { "none", ERR_PATH_NOT_FOUND },
	};
	static char large[SECRETS_MAX + 2];
	char from[256], to[256];

	memset(large, 'x', SECRETS_MAX + 1);
	put_file("fine", CANARY, 0600);
	put_file("open", CANARY, 0640);
	put_file("short", "1234567\n\n\n", 0600);
	put_file("large", large, 0400);
	put_file("other", CANARY, 0600);
	snprintf(from, sizeof(from), "%s/fine", dir);
	snprintf(to, sizeof(to), "%s/link", dir);
	assert_int_equal(symlink(from, to), 0);
	snprintf(to, sizeof(to), "%s/fifo", dir);
	assert_int_equal(mkfifo(to, 0600), 0);
	snprintf(to, sizeof(to), "%s/folder", dir);
	assert_int_equal(mkdir(to, 0700), 0);
	snprintf(to, sizeof(to), "%s/other", dir);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		if (strcmp(cases[i].what, "other") == 0 && chown(to, 4242, 4242) < 0)
			continue; /* only root can make one */
		configure_file(cases[i].what);
		if (read_one("f") != cases[i].code)
			fail_msg("%s: %s", cases[i].what, got.err.msg);
		assert_null(strstr(got.err.msg, dir));
		assert_null(strstr(got.err.msg, CANARY));
	}
}

static void runs_commands_within_bounds(void **state)
{
	setenv("HOLT_TEST_SECRET", "not for it", 1);
	configure_command("env; cat; echo " CANARY " >&2; exec 2>&-; ls -l /proc/self/fd");
	assert_int_equal(read_one("c"), ERR_NONE);
	assert_null(strstr(got.values[0], "HOLT_TEST_SECRET"));
	unsetenv("HOLT_TEST_SECRET");
	configure_command("exit 3");
	assert_int_equal(read_one("c"), ERR_IO);
	assert_non_null(strstr(got.err.msg, "status 3"));
	configure_command("while :; do echo " CANARY "; done");
	assert_int_equal(read_one("c"), ERR_INVALID);
	assert_null(strstr(got.err.msg, CANARY));
	configure_command("printf 'a\\0bcdefghijkl'");
	assert_int_equal(read_one("c"), ERR_INVALID);
	configure_command("kill -9 $$");
	assert_int_equal(read_one("c"), ERR_IO);
	configure(&(struct secrets_source){ .name = STR_LIT("c"),
					    .provider = SECRETS_COMMAND,
					    .argv = &STR_LIT("/nonexistent/program"),
					    .n_argv = 1 });
	assert_int_equal(read_one("c"), ERR_IO);
}

/* Waits until the process whose id the file has is gone, or a zombie for its new parent. */
static void await_end(const char *path)
{
	FILE *f = fopen(path, "r");
	char stat_path[64], letter = 0;
	int pid = 0;

	assert_int_equal(fscanf(f, "%d", &pid), 1);
	fclose(f);
	snprintf(stat_path, sizeof(stat_path), "/proc/%d/stat", pid);
	while (letter != 'Z' && (f = fopen(stat_path, "r"))) {
		assert_int_equal(fscanf(f, "%*d %*s %c", &letter), 1);
		fclose(f);
		usleep(1000);
	}
}

/* A cancelled read ends its command, with what that has started, and never calls back. */
static void cancels_a_command(void **state)
{
	const struct str name = STR_LIT("c");
	struct secrets_read *r;
	struct err e;
	size_t n = 1;
	char path[256];

	snprintf(path, sizeof(path), "exec >/dev/null; sleep 600 & echo $! > %s/pid; wait", dir);
	configure_command(path);
	got.done = false;
	r = secrets_read_start(secrets, &loop, &name, 1, on_read, &n, &e);
	assert_non_null(r);
	snprintf(path, sizeof(path), "%s/pid", dir);
	for (struct stat st = { 0 }; stat(path, &st) < 0 || st.st_size == 0;) {
		uv_run(&loop, UV_RUN_NOWAIT);
		usleep(1000);
	}
	secrets_read_cancel(r);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_false(got.done);
	await_end(path);
}

/* ---- the store ----------------------------------------------------------------------------- */

static void keeps_sealed_values(void **state)
{
	static const char *const both[] = { "a", "b" };
	struct secrets_entry *list;
	struct err e;
	struct stat st;
	size_t n;
	char from[256], to[256];

	assert_int_equal(read_one("a"), ERR_SECRET_NOT_FOUND);
	assert_int_equal(secrets_remove(secrets, STR_LIT("a"), &e), -1);
	assert_int_equal(e.code, ERR_SECRET_NOT_FOUND);
	assert_int_equal(secrets_set(secrets, STR_LIT("b"), STR_LIT("another value"), &e), 0);
	assert_int_equal(secrets_set(secrets, STR_LIT("a"), STR_LIT("first value"), &e), 0);
	assert_int_equal(secrets_set(secrets, STR_LIT("a"), STR_LIT(CANARY), &e), 0);
	secrets_free(secrets);
	secrets = secrets_open(dir, &e);
	assert_int_equal(read_all(both, 2), ERR_NONE);
	assert_string_equal(got.values[0], CANARY);
	assert_string_equal(got.values[1], "another value");
	assert_int_equal(secrets_list(secrets, &list, &n, &e), 0);
	assert_int_equal(n, 2);
	assert_true(str_is(list[0].name, "a") && str_is(list[1].name, "b"));
	assert_true(list[0].changed_ms > 0);
	free(list);
	/* only this user has the key and the values, and no file has a value as it is */
	snprintf(from, sizeof(from), "%s/secret.key", dir);
	assert_int_equal(stat(from, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_size, 32);
	snprintf(from, sizeof(from), "! grep -r " CANARY " %s", dir);
	assert_int_equal(system(from), 0);
	/* one that is exchanged for another, or changed, does not open */
	snprintf(from, sizeof(from), "%s/secrets/a", dir);
	snprintf(to, sizeof(to), "%s/secrets/b", dir);
	assert_int_equal(stat(from, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(read_one("b"), ERR_INVALID);
	assert_int_equal(read_one("a"), ERR_SECRET_NOT_FOUND);
	assert_int_equal(secrets_set(secrets, STR_LIT("b"), STR_LIT("good again"), &e), 0);
	assert_int_equal(truncate(to, 20), 0);
	assert_int_equal(read_one("b"), ERR_INVALID);
	assert_int_equal(secrets_remove(secrets, STR_LIT("b"), &e), 0);
	assert_int_equal(read_one("b"), ERR_SECRET_NOT_FOUND);
}

static void needs_a_private_key(void **state)
{
	struct err e;
	char path[256];

	assert_int_equal(secrets_set(secrets, STR_LIT("a"), STR_LIT(CANARY), &e), 0);
	snprintf(path, sizeof(path), "%s/secret.key", dir);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(read_one("a"), ERR_DENIED);
	assert_int_equal(secrets_set(secrets, STR_LIT("b"), STR_LIT(CANARY), &e), -1);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(truncate(path, 31), 0);
	assert_int_equal(read_one("a"), ERR_INVALID);
}

/* Many processes that find no key agree on one. */
static void makes_one_key(void **state)
{
	enum { MAKERS = 8 };
	pid_t pids[MAKERS];
	int status;
	char name[16];

	for (int i = 0; i < MAKERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct err e;

			snprintf(name, sizeof(name), "n%d", i);
			_exit(secrets_set(secrets, str_of(name), STR_LIT(CANARY), &e) < 0);
		}
	}
	for (int i = 0; i < MAKERS; i++) {
		waitpid(pids[i], &status, 0);
		assert_int_equal(status, 0);
		snprintf(name, sizeof(name), "n%d", i);
		assert_int_equal(read_one(name), ERR_NONE);
	}
}

/* ---- what is refused ----------------------------------------------------------------------- */

static void refuses_unfit_names_and_values(void **state)
{
	static const struct str names[] = { STR_LIT(""),  STR_LIT("."),	   STR_LIT("../a"),
					    STR_LIT("-"), STR_LIT("a/b"),  STR_LIT("a b"),
					    STR_LIT("ä"), STR_LIT("a\0b"), STR_LIT(".secret-1") };
	const struct secrets_source wrong[] = {
		{ .name = STR_LIT("/"), .provider = SECRETS_ENV, .from = STR_LIT("A") },
		{ .name = STR_LIT("a"), .provider = SECRETS_ENV, .from = STR_LIT("A=B") },
		{ .name = STR_LIT("a"), .provider = SECRETS_ENV },
		{ .name = STR_LIT("a"), .provider = SECRETS_FILE, .from = STR_LIT("etc/pw") },
		{ .name = STR_LIT("a"), .provider = SECRETS_FILE },
		{ .name = STR_LIT("a"), .provider = SECRETS_COMMAND },
		{ .name = STR_LIT("a"),
		  .provider = SECRETS_COMMAND,
		  .argv = &STR_LIT(""),
		  .n_argv = 1 },
	};
	const struct secrets_source here = { .name = STR_LIT("e"),
					     .provider = SECRETS_ENV,
					     .from = STR_LIT("HOME") };
	const struct secrets_source twice[] = { here, here };
	static char large[SECRETS_MAX + 1];
	struct str name = { large, SECRETS_NAME_MAX + 1 };
	struct err e;

	memset(large, 'x', sizeof(large));
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		assert_int_equal(secrets_set(secrets, names[i], STR_LIT(CANARY), &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
		assert_null(secrets_read_start(secrets, &loop, &names[i], 1, on_read, NULL, &e));
	}
	assert_int_equal(secrets_set(secrets, name, STR_LIT(CANARY), &e), -1);
	name.n--;
	assert_int_equal(secrets_set(secrets, name, (struct str){ large, SECRETS_MAX }, &e), 0);
	assert_int_equal(read_all(&(const char *){ "no" }, 1), ERR_SECRET_NOT_FOUND);
	assert_int_equal(secrets_set(secrets, name, (struct str){ large, SECRETS_MAX + 1 }, &e),
			 -1);
	assert_int_equal(secrets_set(secrets, name, STR_LIT("1234567\n"), &e), -1);
	assert_null(strstr(e.msg, "1234567"));
	assert_int_equal(secrets_set(secrets, name, STR_LIT("1234\0006789"), &e), -1);
	assert_int_equal(secrets_configure(secrets, &here, 1, &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_int_equal(secrets_configure(secrets, &wrong[i], 1, &e), -1);
	assert_int_equal(secrets_configure(secrets, twice, 2, &e), -1);
	/* the entries from before stand, and what they name can't be stored */
	assert_int_equal(secrets_set(secrets, STR_LIT("e"), STR_LIT(CANARY), &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
}

static void count_known(void *data, struct str name, struct str value)
{
	size_t *n = data;

	++*n;
	assert_true(value.n >= SECRETS_LEAST);
}

static void tells_what_is_to_be_redacted(void **state)
{
	struct secrets_source sources[] = {
		{ .name = STR_LIT("e"), .provider = SECRETS_ENV, .from = STR_LIT("HOLT_TEST_1") },
		{ .name = STR_LIT("f"), .provider = SECRETS_FILE },
		{ .name = STR_LIT("none"), .provider = SECRETS_ENV, .from = STR_LIT("HOLT_NO") },
	};
	struct err e;
	size_t n = 0;
	char path[256];

	snprintf(path, sizeof(path), "%s/file", dir);
	put_file("file", CANARY, 0600);
	sources[1].from = str_of(path);
	setenv("HOLT_TEST_1", CANARY, 1);
	assert_int_equal(secrets_set(secrets, STR_LIT("s"), STR_LIT(CANARY), &e), 0);
	assert_int_equal(secrets_configure(secrets, sources, 3, &e), 0);
	secrets_known(secrets, count_known, &n);
	assert_int_equal(n, 3);
	unsetenv("HOLT_TEST_1");
	assert_true(str_is(secrets_text(STR_LIT("a\nb\r\n\n")), "a\nb"));
	assert_true(str_is(secrets_text(STR_LIT("\n")), ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reads_every_provider, setup, teardown),
		cmocka_unit_test_setup_teardown(reads_only_private_files, setup, teardown),
		cmocka_unit_test_setup_teardown(runs_commands_within_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(cancels_a_command, setup, teardown),
		cmocka_unit_test_setup_teardown(keeps_sealed_values, setup, teardown),
		cmocka_unit_test_setup_teardown(needs_a_private_key, setup, teardown),
		cmocka_unit_test_setup_teardown(makes_one_key, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_unfit_names_and_values, setup, teardown),
		cmocka_unit_test_setup_teardown(tells_what_is_to_be_redacted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
