/* The operator's file: MCP servers and variables in their texts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "config/config.h"
#include "config/variables.h"

static const char whole[] =
	"{ \"mcpServers\": {\n"
	"  \"weather\": { \"command\": \"node\", \"args\": [\"s.js\", \"${HOME}/x\", "
	"\"$${HOME}\"],\n"
	"    \"env\": { \"KEY\": \"Bearer ${secret:w.key}!\", \"MODE\": \"${MODE:-fast}\",\n"
	"             \"ODD\": \"${ODD}\" },\n"
	"    \"cwd\": \"${HOME}/srv\", \"allowTools\": [], \"approval\": \"allow\",\n"
	"    \"approvals\": { \"wipe\": \"deny\", \"put\": \"ask\" },\n"
	"    \"sandbox\": { \"read\": [\"${HOME}/docs\"], \"network\": [\"a.example:443\"] } },\n"
	"  \"far\": { \"url\": \"https://far.example/mcp\", "
	"\"headers\": { \"X-Who\": \"${input:who}\" },\n"
	"    \"denyTools\": [\"drop\"], \"readOnlyTools\": [\"get\"], \"timeoutSeconds\": 5 },\n"
	"  \"old\": { \"type\": \"sse\", \"url\": \"http://[::1]:1/s\", \"disabled\": true },\n"
	"  \"bare\": { \"command\": \"/bin/true\", \"sandbox\": false } },\n"
	"  \"modules\": { \"enabled\": true },\n"
	"  \"inputs\": [ { \"type\": \"promptString\", \"id\": \"who\", \"default\": \"me\" } ] }";

static int lookup(void *data, enum config_part_kind kind, struct str name, struct buf *to,
		  struct err *e)
{
	static const struct {
		enum config_part_kind kind;
		const char *name, *value;
	} rows[] = {
		{ CONFIG_PART_ENV, "HOME", "/home/me" },
		{ CONFIG_PART_ENV, "ODD", "${secret:w.key} $HOME $${HOME}" },
		{ CONFIG_PART_ENV, "EMPTY", "" },
		{ CONFIG_PART_ENV, "LINES", "a\r\nX-Admin: yes" },
		{ CONFIG_PART_SECRET, "w.key", "s3cret-value" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].kind != kind || !str_is(name, rows[i].name))
			continue;
		return buf_add(to, rows[i].value, strlen(rows[i].value), e) < 0 ? -1 : 1;
	}
	return 0;
}
static const struct config_values values = { .value = lookup };

static void test_whole(void **state)
{
	struct err e = ERR_INIT;
	AUTO(config_unref) struct config *c = config_parse(str_of(whole), "config.json", &e);
	const struct config_server *s;
	const struct config_file *f;

	assert_string_equal(e.msg, "");
	f = config_file(c);
	assert_true(f->modules.enabled && f->modules.has_enabled);
	assert_int_equal(f->modules.servers, 20);
	assert_int_equal(f->modules.connected, 5);
	assert_int_equal(f->mcp_servers.n, 4);
	s = config_server_find(f, STR_LIT("weather"));
	assert_int_equal(s->type, CONFIG_STDIO);
	assert_int_equal(s->line, 2);
	assert_false(s->sandbox.off);
	assert_true(str_is(s->sandbox.template, "host"));
	assert_int_equal(s->timeout_seconds, 30);
	assert_int_equal(s->connect_seconds, 30);
	assert_false(config_server_shows(s, STR_LIT("any")));
	assert_int_equal(config_server_approval(s, STR_LIT("wipe")), CONFIG_DENY);
	assert_int_equal(config_server_approval(s, STR_LIT("put")), CONFIG_ASK);
	assert_int_equal(config_server_approval(s, STR_LIT("other")), CONFIG_ALLOW);
	s = config_server_find(f, STR_LIT("far"));
	assert_int_equal(s->type, CONFIG_HTTP);
	assert_true(config_server_shows(s, STR_LIT("get")));
	assert_false(config_server_shows(s, STR_LIT("drop")));
	assert_int_equal(config_server_approval(s, STR_LIT("get")), CONFIG_ALLOW);
	assert_int_equal(config_server_approval(s, STR_LIT("Get")), CONFIG_ASK);
	s = config_server_find(f, STR_LIT("old"));
	assert_true(s->type == CONFIG_SSE && s->disabled);
	assert_true(config_server_find(f, STR_LIT("bare"))->sandbox.off);
	assert_null(config_server_find(f, STR_LIT("none")));
}

/* What replaces a variable is text. No value is in the file, nor in what is printed of it. */
static void test_target(void **state)
{
	struct err e = ERR_INIT;
	AUTO(config_unref) struct config *c = config_parse(str_of(whole), "config.json", &e);
	const struct config_file *f = config_file(c);
	autofree char *shown = field_encode_text(&config_table, f, 1 << 20, &e);
	struct config_target t;

	assert_null(strstr(shown, "s3cret"));
	assert_non_null(strstr(shown, "\"KEY\":\"[secret]\""));
	assert_non_null(strstr(shown, "\"sandbox\":false"));
	assert_int_equal(config_target_init(&t, c, &f->mcp_servers.p[0], &values, &e), 0);
	assert_string_equal(t.argv[0], "node");
	assert_string_equal(t.argv[2], "/home/me/x");
	assert_string_equal(t.argv[3], "${HOME}");
	assert_null(t.argv[4]);
	assert_string_equal(t.env[0], "KEY=Bearer s3cret-value!");
	assert_string_equal(t.env[1], "MODE=fast");
	assert_string_equal(t.env[2], "ODD=${secret:w.key} $HOME $${HOME}");
	assert_null(t.env[3]);
	assert_string_equal(t.cwd, "/home/me/srv");
	assert_string_equal(t.read[0], "/home/me/docs");
	assert_true(!t.read[1] && !t.write[0] && !t.url);
	config_target_fini(&t);
	assert_int_equal(config_target_init(&t, c, &f->mcp_servers.p[1], &values, &e), 0);
	assert_null(t.argv);
	assert_string_equal(t.url, "https://far.example/mcp");
	assert_int_equal(t.headers_n, 1);
	assert_true(str_is(t.headers[0].key, "X-Who") && str_is(t.headers[0].value, "me"));
	config_target_fini(&t);
}

#define SERVER(members) "{\"mcpServers\":{\"a\":\n{" members "}}}"

static const struct {
	const char *text, *says;
} unfit[] = {
	{ SERVER("\"command\":\"x\",\n\"args\":[\"a\",\n\"${NONE}\"]"),
	  "c:4: /mcpServers/a/args/1: the variable NONE is not set, and has no default" },
	{ SERVER("\"command\":\"x\",\"env\":{\"A/B\":\"${env:NONE}\"}"),
	  "c:2: /mcpServers/a/env/A~1B: the variable NONE is not set" },
	{ SERVER("\"command\":\"x\",\"env\":{\"A\":\"${secret:none}\"}"),
	  "c:2: /mcpServers/a/env/A: there is no secret none" },
	{ SERVER("\"url\":\"http://h/\",\"headers\":{\"A\":\"${LINES}\"}"),
	  "c:2: /mcpServers/a/headers/A: a header takes no control characters" },
	{ SERVER("\"url\":\"${HOME}\""), "c:2: /mcpServers/a/url: it takes a URL of http" },
	{ SERVER("\"command\":\"x\",\"cwd\":\"${EMPTY}\""),
	  "c:2: /mcpServers/a/cwd: it takes an absolute path" },
	{ "{\"inputs\":[{\"type\":\"promptString\",\"id\":\"i\"}],\"mcpServers\":{\"a\":{\n"
	  "\"command\":\"x\",\"args\":[\"${input:i}\"]}}}",
	  "c:2: /mcpServers/a/args/0: nobody can be asked for the input i" },
};

static void test_unfit(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(unfit); i++) {
		struct err e = ERR_INIT;
		AUTO(config_unref) struct config *c = config_parse(str_of(unfit[i].text), "c", &e);
		struct config_target t;

		assert_string_equal(e.msg, "");
		assert_int_equal(
			config_target_init(&t, c, &config_file(c)->mcp_servers.p[0], &values, &e),
			-1);
		assert_int_equal(e.code, ERR_INVALID);
		if (!strstr(e.msg, unfit[i].says))
			fail_msg("%s: %s", unfit[i].text, e.msg);
	}
}

#define AGENT(members) "{\"agents\":{\"a\":\n{" members "}}}"
#define NAMED(name) "{\"mcpServers\":{\n\"" name "\":{\"command\":\"x\"}}}"
#define ARG(text) SERVER("\"command\":\"x\",\"args\":[\"" text "\"]")

static const struct {
	const char *text, *says;
} refused[] = {
	{ SERVER(""), "c:2: /mcpServers/a: a server has a command or a url" },
	{ SERVER("\"command\":\"x\",\"url\":\"http://h\""), "not both" },
	{ SERVER("\"command\":\"x\",\"type\":\"http\""), "is of type stdio" },
	{ SERVER("\"type\":\"stdio\",\"url\":\"http://h\""), "is of type http or sse" },
	{ SERVER("\"url\":\"http://h\",\"env\":{\"A\":\"b\"}"), "are for a command" },
	{ SERVER("\"url\":\"http://h\",\"sandbox\":false"), "are for a command" },
	{ SERVER("\"command\":\"x\",\"headers\":{\"A\":\"b\"}"), "headers are for a url" },
	{ SERVER("\"command\":\"${X}\""), "c:2: /mcpServers/a/command: a command has no" },
	{ SERVER("\"command\":\"./x\""), "a name or an absolute path" },
	{ SERVER("\"command\":\"x\",\"sandbox\":1"), "takes an object, true or false" },
	{ SERVER("\"command\":\"x\",\"sandbox\":{\"off\":true}"), "unknown field \"off\"" },
	{ SERVER("\"command\":\"x\",\"env\":{\"A=B\":\"b\"}"), "has no =" },
	{ SERVER("\"url\":\"http://h\",\"headers\":{\"A:\":\"b\"}"), "no name of a header" },
	{ SERVER("\"command\":\"x\",\"approval\":\"auto\""), "takes one of \"allow\"" },
	{ SERVER("\"command\":\"x\",\"timeoutSeconds\":0"), "/mcpServers/a/timeoutSeconds: " },
	{ SERVER("\"command\":\"x\",\"alowTools\":[]"), "did you mean \"allowTools\"?" },
	{ SERVER("\"command\":\"x\\u0000y\""), "without U+0000" },
	{ NAMED("Weather"), "c:2: /mcpServers/Weather: a name here has" },
	{ NAMED("1a"), "a name here has" },
	{ NAMED("a_b"), "a name here has" },
	{ NAMED("host"), "the name is reserved" },
	{ NAMED("fs-read"), "the name is reserved" },
	{ NAMED("ha:x"), "names that begin with \"ha:\"" },
	{ NAMED("host:mcp-x"), "names that begin with \"host:\"" },
	{ NAMED("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), "of 1 to 32 characters" },
	{ "{\"mcpServers\":{\"a\":{\"command\":\"x\"},\"a\":{\"command\":\"y\"}}}",
	  "/mcpServers/a" },
	{ "{\"modules\":{\"servers\":1},\"mcpServers\":{\"a\":{\"command\":\"x\"},\"b\":{"
	  "\"command\":\"y\"}}}",
	  "c:1: /mcpServers: there are 2 servers, and modules.servers is 1" },
	{ AGENT(""), "c:2: /agents/a: an agent has a command" },
	{ AGENT("\"command\":\"./x\""), "c:2: /agents/a/command: a command is a name" },
	{ AGENT("\"command\":\"x\",\"url\":\"http://h\""), "unknown field \"url\"" },
	{ AGENT("\"command\":\"x\",\"cwd\":\"/\""), "unknown field \"cwd\"" },
	{ AGENT("\"command\":\"x\",\"args\":[\"${input:i}\"]"), "c:2: /agents/a/args/0: inputs" },
	{ AGENT("\"command\":\"x\",\"stallSeconds\":0"), "/agents/a/stallSeconds: " },
	{ ARG("${"), "c:2: /mcpServers/a/args/0: ${ has no end" },
	{ ARG("x${}"), "${} is no variable" },
	{ ARG("${a b}"), "is no variable" },
	{ ARG("${1}"), "is no variable" },
	{ ARG("${vault:x}"), "is no variable" },
	{ ARG("${secret:../x}"), "is no variable" },
	{ ARG("${secret:x:-d}"), "is no variable" },
	{ ARG("${A:-${B}}"), "the default of ${A} has a variable in it" },
	{ ARG("${input:i}"), "inputs has no i" },
	{ "{\"inputs\":[{\"type\":\"pickString\",\"id\":\"i\"}]}", "/inputs/0: options are for" },
	{ "{\"inputs\":[{\"type\":\"promptString\",\"id\":\"i\"},\n{\"type\":\"promptString\","
	  "\"id\":\"i\"}]}",
	  "c:2: /inputs/1: there are two" },
	{ "{\"inputs\":[{\"type\":\"command\",\"id\":\"i\"}]}", "takes one of \"promptString\"" },
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

static const struct {
	const char *text, *is; /* NULL: refused */
} expanded[] = {
	{ "", "" },
	{ "$", "$" },
	{ "$HOME {x} $(id) `id` }", "$HOME {x} $(id) `id` }" },
	{ "a${HOME}b${env:HOME}", "a/home/meb/home/me" },
	{ "$${HOME}", "${HOME}" },
	{ "x$${y} $$z", "x${y} $$z" },
	{ "$$${HOME}", "$${HOME}" },
	{ "${EMPTY:-d}${NONE:-}${NONE:-a:-b c}", "da:-b c" },
	{ "${EMPTY}", "" },
	{ "${ODD}", "${secret:w.key} $HOME $${HOME}" },
	{ "${NONE}", NULL },
	{ "${home}", NULL },
};

static void test_expanded(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(expanded); i++) {
		autobuf struct buf b = BUF_INIT(256);
		struct err e = ERR_INIT;
		int rc = config_expand(str_of(expanded[i].text), &values, &b, &e);

		assert_int_equal(rc, expanded[i].is ? 0 : -1);
		if (expanded[i].is && !str_is(buf_str(&b), expanded[i].is))
			fail_msg("%s: %.*s", expanded[i].text, STR_ARG(buf_str(&b)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),	 cmocka_unit_test(test_target),
		cmocka_unit_test(test_unfit),	 cmocka_unit_test(test_refused),
		cmocka_unit_test(test_expanded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
