/* The operator's file: comments, strictness, places, who may write it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "config/config.h"

static const char whole[] =
	"// the operator's\n"
	"{\n"
	"  \"policy\": { /* first match\n"
	"    decides */ \"default\": \"ask\",\n"
	"    \"rules\": [\n"
	"      { \"name\": \"no-deletes\", \"who\": [\"key:ci\"], \"actions\": [\"sandbox.*\"],\n"
	"        \"when\": { \"/command\": \"git push // *\" }, \"then\": \"deny\" },\n"
	"      { \"name\": \"rest\", \"then\": \"allow\" } ] },\n"
	"  \"images\": [\"host\"],\n"
	"  \"network\": { \"presets\": { \"pypi\": [\"pypi.org:443\"], \"none\": [\"a:1\"] } },\n"
	"  \"limits\": { \"sandboxes\": 0 },\n"
	"  \"principals\": {\n"
	"    \"key:ci\": { \"policy\": { \"rules\": [ { \"name\": \"x\", \"then\": \"ask\" } ] },\n"
	"       \"network\": [], \"limits\": { \"forks\": 2 } } },\n"
	"  \"secrets\": { \"npm\": { \"env\": \"NPM_TOKEN\" }, \"s\": { \"store\": true } }\n"
	"}\n";

static void test_whole(void **state)
{
	struct err e = ERR_INIT;
	AUTO(config_unref) struct config *c = config_parse(str_of(whole), "config.json", &e);
	const struct config_file *f = c ? config_file(c) : NULL;
	char place[CONFIG_PLACE_MAX];

	assert_string_equal(e.msg, "");
	assert_non_null(f);
	assert_int_equal(f->policy.def, CONFIG_ASK);
	assert_int_equal(f->policy.rules.n, 2);
	assert_string_equal(config_place(c, f->policy.rules.p[0].line, place), "config.json:6");
	assert_int_equal(f->policy.rules.p[1].line, 8);
	assert_true(str_is(f->policy.rules.p[0].when.p[0].value, "git push // *"));
	assert_true(f->has_images);
	assert_int_equal(f->network.presets.n, 2);
	assert_true(str_is(f->network.presets.p[0].name, "pypi"));
	assert_true(str_is(f->network.presets.p[0].rules.p[0], "pypi.org:443"));
	assert_true(f->limits.has_sandboxes && f->limits.sandboxes == 0);
	assert_false(f->limits.has_forks);
	assert_true(str_is(f->principals.p[0].name, "key:ci"));
	assert_true(f->principals.p[0].has_network && f->principals.p[0].network.n == 0);
	assert_false(f->principals.p[0].has_images);
	assert_int_equal(f->principals.p[0].policy.def, CONFIG_ALLOW);
	assert_int_equal(f->principals.p[0].policy.rules.p[0].line, 13);
	assert_int_equal(f->principals.p[0].limits.forks, 2);
	assert_int_equal(f->approvals.expire_seconds, 3600);
	assert_true(str_is(f->secrets.p[1].name, "s") && f->secrets.p[1].store);
}

static void test_empty(void **state)
{
	struct err e;
	AUTO(config_unref) struct config *c = config_parse(STR_LIT(" {} // no more"), "c", &e);

	assert_non_null(c);
	assert_int_equal(config_file(c)->policy.def, CONFIG_ALLOW);
	assert_false(config_file(c)->has_images);
}

static const struct {
	const char *text, *says;
} refused[] = {
	{ "", "c:1: not JSON: empty" },
	{ "[]", "c:1: it takes an object, not an array" },
	{ "{\n\n\"a\": 1,\n}", "c:3: not JSON at byte" },
	{ "{ /* never", "c:1: the comment has no end" },
	{ "{\"polcy\": {}}", "c:1: /polcy: unknown field \"polcy\"; did you mean \"policy\"?" },
	{ "{\"policy\": {\"rules\": [\n{\"name\":\"a\",\"then\":\"deny\"},\n"
	  "{\"name\":\"b\",\"then\":\"maybe\"}]}}",
	  "c:3: /policy/rules/1/then: then takes one of \"allow\", \"ask\", \"deny\", not "
	  "\"maybe\"" },
	{ "{\"policy\": {\"rules\": [\n{\"name\":\"a\"}]}}",
	  "c:2: /policy/rules/0: [0]: \"then\" is missing; it takes one of" },
	{ "{\"policy\":{\"rules\":[{\"name\":\"a\",\"then\":\"deny\",\n\"when\":{\"x\":\"y\"}}]}}",
	  "c:2: /policy/rules/0/when: \"x\" is no JSON pointer: write \"/x\"" },
	{ "{\"principals\":{\"a/b\":\n{\"limits\":{\"forks\":-1}}}}",
	  "c:2: /principals/a~1b/limits/forks: forks takes an integer" },
	{ "{\"secrets\":{\"a\":{\"env\":\"A\",\"file\":\"/b\"}}}",
	  "c:1: /secrets/a: a secret has one of" },
	{ "{\"secrets\":{\"a\":{\"env\":\"A\"},\n\"a\":{\"env\":\"A\"}}}", "/secrets/a" },
	{ "{\"network\":{\"presets\":{\"p\":\n[1]}}}", "c:2: /network/presets/p/0: " },
	{ "{\"network\":{\"presets\":{\"\":[\"a:1\"]}}}", "c:1: /network/presets/: " },
};

static void test_refused(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct err e = ERR_INIT;

		assert_null(config_parse(str_of(refused[i].text), "c", &e));
		assert_int_equal(e.code, ERR_INVALID);
		if (!strstr(e.msg, refused[i].says))
			fail_msg("%s: %s", refused[i].text, e.msg);
	}
}

static void test_bounds(void **state)
{
	struct buf text = BUF_INIT(2 * CONFIG_BYTES_MAX);
	struct err e = ERR_INIT;

	for (int i = 0; i < 100; i++)
		assert_int_equal(buf_add(&text, "{\"policy\":", 10, &e), 0);
	assert_null(config_parse(buf_str(&text), "c", &e));
	assert_int_equal(e.code, ERR_TOO_LARGE);
	while (text.n <= CONFIG_BYTES_MAX)
		assert_int_equal(buf_add(&text, "          ", 10, &e), 0);
	assert_null(config_parse(buf_str(&text), "c", &e));
	assert_int_equal(e.code, ERR_TOO_LARGE);
	buf_fini(&text);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void test_file(void **state)
{
	char folder[] = "/tmp/unit-config-XXXXXX", path[64];
	struct err e = ERR_INIT;
	struct config *c;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/config.json", folder);
	c = config_open(path, false, &e);
	assert_true(c && !config_exists(c) && config_file(c)->policy.rules.n == 0);
	config_unref(c);
	assert_null(config_open(path, true, &e));
	assert_int_equal(e.code, ERR_INVALID);
	write_file(path, whole, 0644);
	c = config_open(path, false, &e);
	assert_true(c && config_exists(c) && config_file(c)->policy.rules.n == 2);
	config_unref(c);
	write_file(path, whole, 0664);
	assert_null(config_open(path, false, &e));
	assert_int_equal(e.code, ERR_DENIED);
	write_file(path, whole, 0646);
	assert_null(config_open(path, false, &e));
	assert_string_equal(e.msg, "others may write config.json: chmod go-w it");
	assert_null(config_open(folder, true, &e));
	assert_int_equal(e.code, ERR_INVALID);
	unlink(path);
	rmdir(folder);
}

static void test_schema(void **state)
{
	struct buf text = BUF_INIT(1 << 20);
	struct json_writer w = json_writer(&text);
	struct err e = ERR_INIT;
	struct json_doc *d;

	assert_int_equal(field_check(&config_table, &e), 0);
	config_schema(&w);
	assert_int_equal(json_write_done(&w, &e), 0);
	d = json_parse(buf_str(&text), NULL, &e);
	assert_non_null(d);
	json_free(d);
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),	cmocka_unit_test(test_empty),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_file),	cmocka_unit_test(test_schema),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
