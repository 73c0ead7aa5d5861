/* base/err.h and base/log.h: what is said when things fail, and where. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "json/document/json.h"
#include "test.h"

static void every_code_has_a_row(void **state)
{
	for (int i = ERR_NONE + 1; i < ERR_CODES; i++) {
		const struct err_info *info = err_info((enum err_code)i);

		assert_non_null(info->name);
		assert_true(strlen(info->remediation) > 10);
		assert_int_equal(strspn(info->name, "abcdefghijklmnopqrstuvwxyz_"),
				 strlen(info->name));
		assert_true(info->jsonrpc == -32602 || info->jsonrpc == -32603 ||
			    (i >= ERR_NOT_JSON && i <= ERR_NO_METHOD));
		assert_true(info->http >= 400 && info->http < 600);
		assert_true(info->exit >= 124 && info->exit <= 127);
		for (int j = ERR_NONE + 1; j < i; j++)
			assert_string_not_equal(info->name, err_info((enum err_code)j)->name);
	}
	assert_ptr_equal(err_info(ERR_NONE), err_info(ERR_BUG));
	assert_ptr_equal(err_info((enum err_code)999), err_info(ERR_BUG));
}

static void errno_picks_the_code(void **state)
{
	static const struct {
		int errnum;
		enum err_code code;
	} rows[] = {
		{ ENOENT, ERR_PATH_NOT_FOUND }, { EACCES, ERR_PATH_DENIED },
		{ ENOSPC, ERR_DISK_FULL },	{ EMFILE, ERR_LIMIT },
		{ EPIPE, ERR_TRANSPORT },	{ EBADF, ERR_IO },
	};
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(err_sys(&e, rows[i].errnum, "open %s", "x"), -1);
		assert_int_equal(e.code, rows[i].code);
		assert_memory_equal(e.msg, "open x: ", 8);
	}
}

static void context_is_put_in_front(void **state)
{
	struct err e;

	assert_int_equal(err_set(&e, ERR_DENIED, "no %s", "network"), -1);
	assert_int_equal(err_wrap(&e, "create %d", 7), -1);
	assert_string_equal(e.msg, "create 7: no network");
	assert_int_equal(e.code, ERR_DENIED);
	for (int i = 0; i < 100; i++)
		err_wrap(&e, "around");
	assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
}

/* What log_at() writes to standard error, with level and format. */
static void logged(const char *level, const char *format, char got[4096], void (*run)(void))
{
	int wire[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(pipe2(wire, O_CLOEXEC | O_NONBLOCK), 0);
	setenv("HOLT_LOG", level, 1);
	setenv("HOLT_LOG_FORMAT", format, 1);
	log_init("test");
	dup2(wire[1], STDERR_FILENO);
	run();
	dup2(saved, STDERR_FILENO);
	n = read(wire[0], got, 4095);
	got[n > 0 ? n : 0] = '\0';
	close(saved);
	close(wire[0]);
	close(wire[1]);
}

static void say_hostile(void)
{
	log_request("r-1");
	log_warn("a\nb\x1b[2J \"%s\"", "c\\d");
	log_request(NULL);
}

static void a_record_is_one_line(void **state)
{
	char got[4096];

	logged("info", "text", got, say_hostile);
	assert_non_null(strstr(got, " warn test["));
	assert_non_null(strstr(got, "request=r-1: a\\u000ab\\u001b[2J \"c\\d\"\n"));
	assert_ptr_equal(strchr(got, '\n'), got + strlen(got) - 1);
}

static void a_record_is_json_on_request(void **state)
{
	char got[4096];
	struct err e;
	struct str s = { NULL, 0 };

	logged("info", "json", got, say_hostile);
	AUTO(json_free) struct json_doc *d = json_parse(str_of(got), NULL, &e);
	assert_non_null(d);
	s = json_str(json_get(json_root(d), "msg"));
	assert_true(str_is(s, "a\nb\x1b[2J \"c\\d\""));
	assert_true(str_is(json_str(json_get(json_root(d), "level")), "warn"));
	assert_true(str_is(json_str(json_get(json_root(d), "request")), "r-1"));
}

static void hide_digits(void *data, char *text, size_t size)
{
	*(size_t *)data += size;
	log_error("dropped");
	for (; *text; text++)
		*text = *text >= '0' && *text <= '9' ? '#' : *text;
}

static void say_filtered(void)
{
	size_t sizes = 0;

	log_request("r-1");
	log_filter(hide_digits, &sizes);
	log_warn("pin %d", 4711);
	log_filter(NULL, NULL);
	log_warn("pin %d", 42);
	log_request(NULL);
	assert_int_equal(sizes, 1024 + 64);
}

static void a_filter_rewrites_records(void **state)
{
	char got[4096];

	logged("info", "text", got, say_filtered);
	assert_non_null(strstr(got, "request=r-#: pin ####\n"));
	assert_null(strstr(got, "dropped"));
	assert_non_null(strstr(got, "request=r-1: pin 42\n"));
}

static void say_long(void)
{
	char text[3000];

	memset(text, '\1', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	log_error("%s", text);
}

static void a_long_record_is_cut(void **state)
{
	char got[4096];
	struct err e;

	logged("error", "json", got, say_long);
	assert_true(strlen(got) < 2100);
	AUTO(json_free) struct json_doc *d = json_parse(str_of(got), NULL, &e);
	assert_non_null(d);
}

static void say_all_levels(void)
{
	log_error("e");
	log_warn("w");
	log_info("i");
	log_debug("d");
}

static void levels_are_kept(void **state)
{
	static const char *const names[] = { "error", "warn", "info", "debug" };
	char got[4096];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t lines = 0;

		logged(names[i], "text", got, say_all_levels);
		for (const char *p = got; *p; p++)
			lines += *p == '\n';
		assert_int_equal(lines, i + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_has_a_row),
		cmocka_unit_test(errno_picks_the_code),
		cmocka_unit_test(context_is_put_in_front),
		cmocka_unit_test(a_record_is_one_line),
		cmocka_unit_test(a_record_is_json_on_request),
		cmocka_unit_test(a_filter_rewrites_records),
		cmocka_unit_test(a_long_record_is_cut),
		cmocka_unit_test(levels_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
