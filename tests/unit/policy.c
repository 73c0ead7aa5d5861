/* What rules decide: patterns, the first in a list, the strictest of lists. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/glob.h"
#include "guard/policy/policy.h"

static void test_glob(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool is;
	} cases[] = {
		{ "", "", true },
		{ "", "a", false },
		{ "*", "", true },
		{ "a*", "a", true },
		{ "a*c", "abbc", true },
		{ "a*c", "abcb", false },
		{ "*ab*", "xxabyy", true },
		{ "**", "x", true },
		{ "a", "A", false },
		{ "key:*", "key:ci", true },
		{ "key:*", "local", false },
		{ "*.*", "a.b", true },
		{ "git push *", "git push", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(glob_matches(str_of(cases[i].pattern), str_of(cases[i].text)),
				 cases[i].is);
}

/* What a pattern means, tried in every way. */
static bool may_match(const char *g, const char *s, bool any)
{
	if (*g == '*')
		return may_match(g + 1, s, any) ||
		       (*s && (any || *s != ';') && may_match(g, s + 1, any));
	return *g == *s && (!*g || may_match(g + 1, s + 1, any));
}

static void test_glob_at_random(void **state)
{
	for (int i = 0; i < 200000; i++) {
		char g[8] = "", s[10] = "";

		for (long k = random() % 7; k > 0; k--)
			strcat(g, &"a\0b\0;\0*\0*"[2 * (random() % 5)]);
		for (long k = random() % 9; k > 0; k--)
			strcat(s, &"a\0b\0;"[2 * (random() % 3)]);
		if (glob_matches(str_of(g), str_of(s)) != may_match(g, s, true) ||
		    glob_allows(str_of(g), str_of(s)) != may_match(g, s, strcmp(g, "*") == 0))
			fail_msg("'%s' and '%s'", g, s);
	}
}

/* A thousand patterns, each with a piece that nearly stands at every place of a long text. */
static void test_globs_of_a_long_text(void **state)
{
	static char text[100000], pattern[104] = "*";

	memset(text, 'a', sizeof(text));
	memset(pattern + 1, 'a', 100);
	memcpy(pattern + 101, "b*", 3);
	for (int i = 0; i < 1000; i++)
		assert_false(glob_matches(str_of(pattern), (struct str){ text, sizeof(text) }));
}

static const char file_text[] =
	"{ \"policy\": { \"default\": \"allow\", \"rules\": [\n"
	"  { \"name\": \"hosts\", \"actions\": [\"network.set\"], \"when\": "
	"{ \"/network/allow\": \"pypi.org\" }, \"then\": \"allow\" },\n"
	"  { \"name\": \"no-net\", \"actions\": [\"network.*\"], \"then\": \"deny\" },\n"
	"  { \"name\": \"tool\", \"tools\": [\"sandbox_exec\"], \"then\": \"ask\" },\n"
	"  { \"name\": \"ends\", \"who\": [\"key:*\"], \"effects\": [\"destroy\"],\n"
	"    \"then\": \"ask\" },\n"
	"  { \"name\": \"push\", \"when\": { \"/command\": \"git push*\" },\"then\":\"deny\"}]},\n"
	"  \"images\": [\"host\", \"py*\"],\n"
	"  \"principals\": {\n"
	"    \"key:*\": { \"images\": [\"python-3\"], \"limits\": { \"forks\": 5 },\n"
	"      \"policy\": { \"rules\": [\n"
	"      { \"name\": \"mine\", \"actions\": [\"sandbox.terminate\"],\"then\":\"allow\"}]}},\n"
	"    \"key:ci\": { \"secrets\": [\"npm-*\"], \"limits\":{\"forks\":2,\"sandboxes\":9},\n"
	"      \"policy\": { \"default\": \"deny\", \"rules\": [\n"
	"      { \"name\": \"may\", \"actions\": [\"sandbox.*\"], \"then\": \"allow\" } ] } },\n"
	"    \"conversation:7\": { \"policy\": { \"default\": \"ask\" } } } }\n";

struct given {
	const char *pointer, *text[3];
};

static void show(const void *request, const char *pointer, bool whole, field_see_fn see, void *data)
{
	const struct given *g = request;

	for (size_t i = 0; g && strcmp(g->pointer, pointer) == 0 && i < 3 && g->text[i]; i++)
		see(data, str_of(g->text[i]));
}

static const struct {
	const char *who, *conversation, *action, *effect, *tool;
	struct given given;
	enum config_then then;
	const char *rule;
	unsigned line;
} cases[] = {
	{ "local", NULL, "sandbox.list", "read", NULL, { "" }, CONFIG_ALLOW, "default", 1 },
	{ "local", NULL, "network.get", "read", NULL, { "" }, CONFIG_DENY, "no-net", 3 },
	{ "local",
	  NULL,
	  "network.set",
	  "administer",
	  NULL,
	  { "/network/allow", { "pypi.org" } },
	  CONFIG_ALLOW,
	  "hosts",
	  2 },
	{ "local",
	  NULL,
	  "network.set",
	  "administer",
	  NULL,
	  { "/network/allow", { "pypi.org", "evil.example" } },
	  CONFIG_DENY,
	  "no-net",
	  3 },
	{ "local", NULL, "sandbox.exec", "execute", "sandbox_exec", { "" }, CONFIG_ASK, "tool", 4 },
	{ "local",
	  NULL,
	  "sandbox.exec",
	  "execute",
	  NULL,
	  { "/command", { "git push -f" } },
	  CONFIG_DENY,
	  "push",
	  7 },
	{ "local",
	  NULL,
	  "sandbox.exec",
	  "execute",
	  NULL,
	  { "/command", { "git pull" } },
	  CONFIG_ALLOW,
	  "default",
	  1 },
	{ "local", NULL, "sandbox.terminate", "destroy", NULL, { "" }, CONFIG_ALLOW, "default", 1 },
	{ "key:a", NULL, "sandbox.terminate", "destroy", NULL, { "" }, CONFIG_ASK, "ends", 5 },
	{ "key:ci", NULL, "sandbox.terminate", "destroy", NULL, { "" }, CONFIG_ASK, "ends", 5 },
	{ "key:ci", NULL, "files.read", "read", NULL, { "" }, CONFIG_DENY, "default", 14 },
	{ "local",
	  "conversation:7",
	  "files.read",
	  "read",
	  NULL,
	  { "" },
	  CONFIG_ASK,
	  "default",
	  16 },
};

static void test_rules(void **state)
{
	struct err e = ERR_INIT;
	AUTO(config_unref) struct config *c = config_parse(str_of(file_text), "c", &e);

	assert_string_equal(e.msg, "");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct policy_call call = { .who = str_of(cases[i].who),
					    .conversation = str_of(cases[i].conversation),
					    .action = cases[i].action,
					    .effect = cases[i].effect,
					    .tools = &cases[i].tool,
					    .n_tools = cases[i].tool != NULL,
					    .show = show,
					    .request = &cases[i].given };
		struct policy_verdict v = policy_decide(config_file(c), NULL, &call);

		if (v.then != cases[i].then || !str_is(v.rule, cases[i].rule) ||
		    v.line != cases[i].line)
			fail_msg("%zu: %d %.*s:%u", i, v.then, STR_ARG(v.rule), v.line);
	}
}

static const char denied_text[] =
	"{ \"policy\": { \"rules\": [\n"
	"  { \"name\": \"ends\", \"actions\": [\"sandbox.terminate\"], \"then\": \"deny\" },\n"
	"  { \"name\": \"rm\", \"actions\": [\"sandbox.exec\"],\n"
	"    \"when\": { \"/command\": \"rm*\" }, \"then\": \"deny\" },\n"
	"  { \"name\": \"a\", \"actions\": [\"files.read\"], \"when\": { \"/path\": \"/a*\" },\n"
	"    \"then\": \"ask\" },\n"
	"  { \"name\": \"x\", \"actions\": [\"files.write\"], \"when\": { \"/path\": \"x\" },\n"
	"    \"then\": \"deny\" },\n"
	"  { \"name\": \"files\", \"actions\": [\"files.*\"], \"then\": \"deny\" },\n"
	"  { \"name\": \"too late\", \"actions\": [\"files.*\"], \"then\": \"allow\" } ] },\n"
	"  \"principals\": { \"key:ci\": { \"policy\": { \"default\": \"deny\", \"rules\": [\n"
	"    { \"name\": \"main\", \"actions\": [\"sandbox.exec\"],\n"
	"      \"when\": { \"/sandbox\": \"main\" }, \"then\": \"allow\" } ] } } } }\n";

/* Without a request, a denial is certain for every one. */
static void test_any_request(void **state)
{
	static const struct {
		const char *who, *action;
		enum config_then then;
		const char *rule;
	} any[] = {
		{ "local", "sandbox.terminate", CONFIG_DENY, "ends" },
		{ "local", "sandbox.exec", CONFIG_ALLOW, "default" },
		{ "local", "files.read", CONFIG_ASK, "a" },
		{ "local", "files.write", CONFIG_DENY, "x" },
		{ "local", "files.list", CONFIG_DENY, "files" },
		{ "key:ci", "sandbox.exec", CONFIG_ALLOW, "default" },
		{ "key:ci", "sandbox.list", CONFIG_DENY, "default" },
	};
	struct err e = ERR_INIT;
	AUTO(config_unref) struct config *c = config_parse(str_of(denied_text), "c", &e);

	assert_string_equal(e.msg, "");
	for (size_t i = 0; i < ARRAY_LEN(any); i++) {
		struct policy_call call = { .who = str_of(any[i].who),
					    .action = any[i].action,
					    .effect = "write",
					    .show = show,
					    .any_request = true };
		struct policy_verdict v = policy_decide(config_file(c), NULL, &call);

		if (v.then != any[i].then || !str_is(v.rule, any[i].rule))
			fail_msg("%zu: %d %.*s", i, v.then, STR_ARG(v.rule));
	}
}

static void test_narrowed(void **state)
{
	const struct config_policy none = { .def = CONFIG_DENY };
	const struct policy_call call = { .who = STR_LIT("local"),
					  .action = "sandbox.list",
					  .effect = "read" };
	struct err e = ERR_INIT;
	AUTO(config_unref) struct config *c = config_parse(str_of(file_text), "c", &e);
	const struct config_file *f = config_file(c);
	struct config_limits l = policy_limits(f, STR_NONE, STR_LIT("key:ci"), STR_NONE);
	unsigned line;

	assert_int_equal(policy_decide(f, &none, &call).then, CONFIG_DENY);
	assert_true(policy_allows_image(f, STR_LIT("local"), STR_NONE, STR_LIT("host"), &line));
	assert_false(policy_allows_image(f, STR_LIT("local"), STR_NONE, STR_LIT("ubuntu"), &line));
	assert_int_equal(line, 8);
	assert_false(policy_allows_image(f, STR_LIT("key:a"), STR_NONE, STR_LIT("host"), &line));
	assert_int_equal(line, 10);
	assert_true(policy_allows_image(f, STR_LIT("key:a"), STR_NONE, STR_LIT("python-3"), &line));
	assert_true(policy_allows(f, STR_LIT("key:a"), STR_NONE, POLICY_SECRETS, STR_LIT("db")));
	assert_false(policy_allows(f, STR_LIT("key:ci"), STR_NONE, POLICY_SECRETS, STR_LIT("db")));
	assert_true(l.has_forks && l.forks == 2 && l.has_sandboxes && !l.has_wall_seconds);
}

static const char two_text[] =
	"{ \"policy\": { \"rules\": [\n"
	"  { \"name\": \"mine\", \"who\": [\"local\"], \"then\": \"allow\" },\n"
	"  { \"name\": \"agents\", \"who\": [\"conversation:*\"],\n"
	"    \"actions\": [\"sandbox.exec\"], \"then\": \"ask\" },\n"
	"  { \"name\": \"ci\", \"who\": [\"key:ci\"], \"then\": \"deny\" } ] },\n"
	"  \"principals\": {\n"
	"    \"key:a\": { \"images\": [\"py*\"], \"secrets\": [\"x\"], \"profiles\": [\"p\"],\n"
	"      \"limits\": { \"forks\": 2 } },\n"
	"    \"conversation:*\": { \"images\": [\"*3\"], \"limits\": { \"forks\": 1 },\n"
	"      \"policy\": { \"rules\": [ { \"name\": \"own\", \"who\": [\"conversation:*\"],\n"
	"        \"actions\": [\"files.*\"], \"then\": \"allow\" },\n"
	"      { \"name\": \"reads\", \"who\": [\"key:a\"], \"actions\": [\"files.read\"],\n"
	"        \"then\": \"ask\" } ] } } } }\n";

/* An agent has the stricter of what each of its names has, in each list. */
static void test_two_names(void **state)
{
	static const struct {
		const char *who, *conversation, *action;
		enum config_then then;
		const char *rule;
	} two[] = {
		{ "local", NULL, "sandbox.exec", CONFIG_ALLOW, "mine" },
		{ "local", "conversation:7", "sandbox.exec", CONFIG_ASK, "agents" },
		{ "local", "conversation:7", "sandbox.list", CONFIG_ALLOW, "mine" },
		{ "key:ci", "conversation:7", "sandbox.exec", CONFIG_DENY, "ci" },
		{ "key:ci", "conversation:7", "sandbox.list", CONFIG_DENY, "ci" },
		{ "key:a", NULL, "sandbox.exec", CONFIG_ALLOW, "default" },
		{ "key:a", NULL, "files.read", CONFIG_ALLOW, "default" },
		{ "key:a", "conversation:7", "sandbox.exec", CONFIG_ASK, "agents" },
		{ "key:a", "conversation:7", "files.read", CONFIG_ASK, "reads" },
	};
	const struct str a = STR_LIT("key:a"), agent = STR_LIT("conversation:7");
	struct err e = ERR_INIT;
	AUTO(config_unref) struct config *c = config_parse(str_of(two_text), "c", &e);
	const struct config_file *f = config_file(c);
	unsigned line;

	assert_string_equal(e.msg, "");
	for (size_t i = 0; i < ARRAY_LEN(two); i++) {
		struct policy_call call = { .who = str_of(two[i].who),
					    .conversation = str_of(two[i].conversation),
					    .action = two[i].action,
					    .effect = "write" };
		struct policy_verdict v = policy_decide(f, NULL, &call);

		if (v.then != two[i].then || !str_is(v.rule, two[i].rule))
			fail_msg("%zu: %d %.*s", i, v.then, STR_ARG(v.rule));
	}
	assert_true(policy_allows_image(f, a, agent, STR_LIT("py3"), &line));
	assert_false(policy_allows_image(f, a, agent, STR_LIT("py2"), &line));
	assert_false(policy_allows_image(f, a, agent, STR_LIT("ruby3"), &line));
	assert_false(policy_allows(f, a, agent, POLICY_SECRETS, STR_LIT("y")));
	assert_false(policy_allows(f, a, agent, POLICY_PROFILES, STR_LIT("q")));
	assert_int_equal(policy_limits(f, STR_NONE, a, agent).forks, 1);
	assert_int_equal(policy_limits(f, STR_NONE, a, STR_NONE).forks, 2);
}

/* Each list narrows, for whichever name; what is granted is granted to the principal's own name. */
static void test_lists(void **state)
{
	static const char text[] =
		"{ \"principals\": { \"key:*\": { \"agents\": [\"a*\"], \"workspaces\": [\"w\"] },"
		"  \"key:b\": { \"agents\": [\"*b\", \"abc\"], \"secrets\": [\"s\"] },"
		"  \"conversation:*\": { \"agents\": [\"ab\"], \"profiles\": [] } } }";
	static const struct {
		enum policy_list list;
		const char *who, *conversation, *name;
		bool allows, grants, spells;
	} lists[] = {
		{ POLICY_AGENTS, "key:a", NULL, "ax", true, true, false },
		{ POLICY_AGENTS, "key:a", NULL, "a*", true, true, true },
		{ POLICY_AGENTS, "key:a", NULL, "b", false, true, false },
		{ POLICY_AGENTS, "key:b", NULL, "b", false, true, false },
		{ POLICY_AGENTS, "key:b", NULL, "axb", true, true, false },
		{ POLICY_AGENTS, "key:b", NULL, "abc", true, true, true },
		{ POLICY_AGENTS, "key:b", "conversation:1", "aab", false, true, false },
		{ POLICY_AGENTS, "key:b", "conversation:1", "ab", true, true, false },
		{ POLICY_AGENTS, "local", "conversation:1", "ab", true, false, false },
		{ POLICY_AGENTS, "local", NULL, "b", true, false, false },
		{ POLICY_WORKSPACES, "key:a", NULL, "w", true, true, true },
		{ POLICY_WORKSPACES, "key:a", NULL, "v", false, true, false },
		{ POLICY_SECRETS, "key:a", NULL, "s", true, false, false },
		{ POLICY_SECRETS, "key:b", NULL, "t", false, true, false },
		{ POLICY_PROFILES, "key:b", "conversation:1", "p", false, false, false },
	};
	struct err e = ERR_INIT;
	AUTO(config_unref) struct config *c = config_parse(str_of(text), "c", &e);
	const struct config_file *f = config_file(c);

	assert_string_equal(e.msg, "");
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct str who = str_of(lists[i].who), name = str_of(lists[i].name);

		if (policy_allows(f, who, str_of(lists[i].conversation), lists[i].list, name) !=
			    lists[i].allows ||
		    policy_grants(f, who, lists[i].list) != lists[i].grants ||
		    policy_spells(f, who, lists[i].list, name) != lists[i].spells)
			fail_msg("%zu: %s", i, lists[i].name);
	}
}

/* A struct by its rows. */
struct inner {
	struct str host;
	uint32_t port;
};
static const struct field inner_fields[] = {
	FIELD(struct inner, host, .doc = "d"),
	FIELD(struct inner, port, .doc = "d"),
};
static const struct field_table inner_table = FIELD_TABLE(struct inner, inner_fields);
struct outer {
	struct str name;
	bool has_list, on;
	struct field_strs list;
	struct field_map env;
	struct inner one;
	struct {
		const struct inner *p;
		size_t n;
	} many;
};
static const struct field outer_fields[] = {
	FIELD_NAMED(struct outer, name, "a/b", .doc = "d"),
	FIELD(struct outer, on, .doc = "d"),
	FIELD(struct outer, list, .has = FIELD_HAS(struct outer, has_list), .doc = "d"),
	FIELD(struct outer, env, .doc = "d"),
	FIELD_OBJECT(struct outer, one, inner_table, .doc = "d"),
	FIELD_OBJECTS(struct outer, many, inner_table, .doc = "d"),
};
static const struct field_table outer_table = FIELD_TABLE(struct outer, outer_fields);

static void collect(void *data, struct str text)
{
	char *to = data;

	sprintf(to + strlen(to), "%.*s;", STR_ARG(text));
}

static void test_visit(void **state)
{
	static const struct {
		const char *pointer, *shows;
	} visits[] = {
		{ "/a~1b", "n;" },
		{ "/on", "true;" },
		{ "/list", "x;y;" },
		{ "/list/1", "x;y;" },
		{ "/list/*", "x;y;" },
		{ "/list/1/0", "" },
		{ "/env", "1;2;" },
		{ "/env/B", "2;" },
		{ "/env/C", "" },
		{ "/one", "h;80;" },
		{ "/one/port", "80;" },
		{ "/many", "a;1;b;2;" },
		{ "/many/1/host", "a;b;" },
		{ "/many/*/host", "a;b;" },
		{ "/none", "" },
		{ "/a~1b/x", "" },
		{ "", "n;true;x;y;1;2;h;80;a;1;b;2;" },
	};
	const struct str list[] = { STR_LIT("x"), STR_LIT("y") };
	const struct field_pair env[] = { { STR_LIT("A"), STR_LIT("1") },
					  { STR_LIT("B"), STR_LIT("2") } };
	const struct inner many[] = { { STR_LIT("a"), 1 }, { STR_LIT("b"), 2 } };
	const struct outer o = { STR_LIT("n"),	       true,	   true, { list, 2 }, { env, 2 },
				 { STR_LIT("h"), 80 }, { many, 2 } };

	for (size_t i = 0; i < ARRAY_LEN(visits); i++) {
		char got[200] = "";

		field_visit(&outer_table, &o, visits[i].pointer, collect, got);
		assert_string_equal(got, visits[i].shows);
	}
}

struct whole {
	struct field_json any;
};
static const struct field whole_fields[] = { FIELD(struct whole, any, .doc = "d") };
static const struct field_table whole_table = FIELD_TABLE(struct whole, whole_fields);

/* Who asks is told where there is more than was shown. */
static void test_visit_json(void **state)
{
	static const struct {
		const char *text, *pointer, *shows;
		bool all;
	} visits[] = {
		{ "{\"a\":[1,\"x\"]}", "/any", "1;x;", true },
		{ "{\"a\":[1,\"x\"]}", "/any/a/1", "1;x;", true },
		{ "{\"a\":[1,\"x\"]}", "/any/b", "", true },
		{ "", "/any/a", "", true },
		{ "{\"a\":", "/any/a", "", false },
		{ "{\"a\":", "/other", "", true },
	};
	char deep[400] = "{\"a\":1,\"b\":", got[200] = "";

	for (size_t i = 0; i < ARRAY_LEN(visits); i++) {
		const struct whole w = { { str_of(visits[i].text) } };

		got[0] = '\0';
		assert_int_equal(field_visit(&whole_table, &w, visits[i].pointer, collect, got),
				 visits[i].all);
		assert_string_equal(got, visits[i].shows);
	}
	memset(deep + strlen(deep), '[', JSON_DEPTH_MAX);
	memset(deep + strlen(deep), ']', JSON_DEPTH_MAX);
	strcat(deep, "}");
	assert_false(field_visit(&whole_table, &(struct whole){ { str_of(deep) } }, "/any/a",
				 collect, got));
}

/* A rule that allows does not cover what a shell would run behind what it names; any other matches
 * wherever the pattern fits. */
static void test_stars_that_allow(void **state)
{
	static const char *const behind[] = { "; rm -rf x", "\nrm x", " | sh",	  " && rm x",
					      " & rm x",    " > f",   " $(rm x)", " `rm x`",
					      " < f",	    " {a,b}", "\\\nrm",	  "\rrm" };

	for (unsigned allows = 0; allows < 2; allows++) {
		autofree char *text = NULL;
		struct err e = ERR_INIT;

		assert_true(asprintf(&text,
				     "{\"policy\":{\"default\":\"%s\",\"rules\":[{\"name\":\"r\","
				     "\"when\":{\"/command\":\"git log *\"},\"then\":\"%s\"}]}}",
				     allows ? "deny" : "allow", allows ? "allow" : "deny") > 0);
		AUTO(config_unref) struct config *c = config_parse(str_of(text), "c", &e);

		assert_non_null(c);
		for (size_t i = 0; i <= ARRAY_LEN(behind); i++) {
			char line[64];
			struct given given = { "/command", { line } };
			struct policy_call call = { .who = STR_LIT("local"),
						    .action = "sandbox.exec",
						    .effect = "execute",
						    .show = show,
						    .request = &given };
			enum config_then then;

			snprintf(line, sizeof(line), "git log -3%s",
				 i < ARRAY_LEN(behind) ? behind[i] : "");
			then = policy_decide(config_file(c), NULL, &call).then;
			assert_int_equal(then, allows && i == ARRAY_LEN(behind) ? CONFIG_ALLOW
										: CONFIG_DENY);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_glob),
		cmocka_unit_test(test_glob_at_random),
		cmocka_unit_test(test_globs_of_a_long_text),
		cmocka_unit_test(test_stars_that_allow),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_any_request),
		cmocka_unit_test(test_narrowed),
		cmocka_unit_test(test_two_names),
		cmocka_unit_test(test_visit),
		cmocka_unit_test(test_visit_json),
		cmocka_unit_test(test_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
