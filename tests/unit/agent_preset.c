/* Presets of agents: Holt's own are right, the operator's stand before them, and what is wrong is
 * refused by name. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/agent_preset.h"
#include "config/config.h"
#include "net/wire/rule.h"

static struct agent_presets *all;

static int open_own(void **state)
{
	struct err e = ERR_INIT;

	all = agent_presets_read(NULL, &e);
	assert_string_equal(e.msg, "");
	return all ? 0 : -1;
}

static int close_own(void **state)
{
	agent_presets_free(all);
	return 0;
}

static void check_rules(const struct field_strs *rules)
{
	struct err e = ERR_INIT;
	struct net_rule r;

	for (size_t i = 0; i < rules->n; i++)
		assert_true(net_rule_parse(rules->p[i], false, &r, &e) == 0 && r.port);
}

/* A key goes only where the agent may go. */
static void check_secrets(const struct agent_preset *p)
{
	for (size_t i = 0; i < p->secrets.n; i++) {
		const struct field_strs *hosts = &p->secrets.p[i].hosts;

		for (size_t k = 0; k < hosts->n; k++) {
			bool granted = false;

			for (size_t h = 0; h < p->hosts.n; h++)
				granted |= p->hosts.p[h].n == hosts->p[k].n + 4 &&
					   str_starts(p->hosts.p[h], hosts->p[k].p);
			assert_true(granted);
		}
	}
}

static void test_own(void **state)
{
	struct err e = ERR_INIT;

	assert_int_equal(field_check(&agent_preset_table, &e), 0);
	assert_true(agent_presets_n(all) >= 6);
	for (size_t i = 0; i < agent_presets_n(all); i++) {
		const struct agent_preset *p = agent_presets_at(all, i);

		assert_ptr_equal(agent_presets_find(all, p->name, &e), p);
		assert_false(agent_preset_is_own(all, p));
		assert_true(p->run.n && p->acp.n && p->npm.n && p->about.n && p->state.n);
		check_rules(&p->hosts);
		check_rules(&p->optional_hosts);
		check_rules(&p->login_hosts);
		check_secrets(p);
	}
}

static void test_unknown(void **state)
{
	struct err e = ERR_INIT;

	assert_null(agent_presets_find(all, STR_LIT("claud"), &e));
	assert_string_equal(e.msg, "there is no preset claud: did you mean claude?");
	assert_null(agent_presets_find(all, STR_LIT("zzzzzzzz"), &e));
	assert_string_equal(e.msg, "there is no preset zzzzzzzz: holt agent presets lists them");
	assert_int_equal(e.code, ERR_INVALID);
}

/* ---- what is wrong ------------------------------------------------------------------------- */

static const struct {
	const char *text, *part;
} wrong[] = {
	{ "[]", "object" },
	{ "{}", "title" },
	{ "{\"title\":\"x\"}", "neither run nor acp" },
	{ "{\"title\":\"x\",\"run\":[]}", "neither run nor acp" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"hots\":[]}", "hosts" },
	{ "{\"title\":\"x\",\"run\":[\"./a\"]}", "a name or an absolute path" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"login\":[\"b/c\"]}", "a name or an absolute path" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"tokens\":{\"urls\":[\"https://h/t\"],"
	  "\"hosts\":[\"h\"]}}",
	  "no program that logs in" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"login\":[\"a\"],"
	  "\"tokens\":{\"urls\":[\"http://h/t\"],\"hosts\":[\"h\"]}}",
	  "no https URL" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"npm\":{\"b\":\"c\"}}", "npm: b" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"env\":{\"\":\"c\"}}", "env" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"env\":{\"A=B\":\"c\"}}", "env" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"state\":[\"/etc\"]}", "no path below ~/" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"state\":[\"~/\"]}", "no path below ~/" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"state\":[\"~/..\"]}", "no path below ~/" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"state\":[\"~/a/\"]}", "no path below ~/" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"state\":[\"~/a/./b\"]}", "no path below ~/" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"state\":[\"~/a//b\"]}", "no path below ~/" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"state\":[\"~/a\"],\"credentials\":[\"~/ab\"]}",
	  "in no folder of state" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"state\":[\"~/a\"],"
	  "\"settings\":{\"~/a/../b\":{\"text\":\"c\"}}}",
	  "in no folder of state" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"state\":[\"~/a\"],\"settings\":{\"~/a/b\":{}}}",
	  "one of json and text" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"state\":[\"~/a\"],"
	  "\"settings\":{\"~/a/b\":{\"text\":\"c\",\"json\":{\"d\":1}}}}",
	  "one of json and text" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"secrets\":{\"K\":{}}}", "hosts" },
	{ "{\"title\":\"x\",\"run\":[\"a\"],\"secrets\":{\"K\":{\"hosts\":[]}}}", "hosts" },
};

static int decode(const char *text, struct str name, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = json_parse(str_of(text), NULL, e);
	AUTO(arena_free) struct arena *a = arena_new(1 << 20);
	struct agent_preset p;

	assert_true(doc && a);
	return agent_preset_decode(json_root(doc), name, a, &p, e);
}

static void test_wrong(void **state)
{
	static const char right[] = "{\"title\":\"x\",\"run\":[\"a\"]}";
	static const struct str names[] = { STR_LIT(""), STR_LIT("A"), STR_LIT("1"), STR_LIT("a/b"),
					    STR_LIT("a.b") };
	struct err e = ERR_INIT;

	assert_int_equal(decode(right, STR_LIT("a-1"), &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_int_equal(decode(right, names[i], &e), -1);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		e = (struct err)ERR_INIT;
		assert_int_equal(decode(wrong[i].text, STR_LIT("a"), &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
		if (!strstr(e.msg, wrong[i].part))
			fail_msg("%s: %s", wrong[i].text, e.msg);
	}
}

/* ---- the operator's own ------------------------------------------------------------------- */

static void put(const char *folder, const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/agents/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_operator(void **state)
{
	char folder[] = "/tmp/holt-presets-XXXXXX", path[64], file[64];
	AUTO(agent_presets_free) struct agent_presets *p = NULL;
	struct err e = ERR_INIT;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/config.json", folder);
	p = agent_presets_read(path, &e); /* without the folder there are Holt's */
	assert_int_equal(agent_presets_n(p), agent_presets_n(all));
	agent_presets_free(p);
	snprintf(file, sizeof(file), "%s/agents", folder);
	assert_int_equal(mkdir(file, 0700), 0);
	put(folder, "claude.json", "{\"title\":\"Mine\",\"run\":[\"my-claude\"]}");
	put(folder, "aider.json", "{\"title\":\"aider\",\"run\":[\"aider\"]}");
	put(folder, "notes.txt", "no preset");
	p = agent_presets_read(path, &e);
	assert_string_equal(e.msg, "");
	assert_int_equal(agent_presets_n(p), agent_presets_n(all) + 1);
	assert_true(str_is(agent_presets_at(p, 0)->name, "aider"));
	assert_true(str_is(agent_presets_find(p, STR_LIT("claude"), &e)->title, "Mine"));
	assert_true(agent_preset_is_own(p, agent_presets_find(p, STR_LIT("claude"), &e)));
	agent_presets_free(p);
	put(folder, "aider.json", "{\"title\":\"aider\",\"runs\":[\"aider\"]}");
	assert_null(p = agent_presets_read(path, &e));
	assert_non_null(strstr(e.msg, "agents/aider.json: "));
	put(folder, "aider.json", "{\"title\":\"aider\",\"run\":[\"aider\"]}");
	snprintf(file, sizeof(file), "%s/agents/aider.json", folder);
	assert_int_equal(chmod(file, 0666), 0);
	assert_null(p = agent_presets_read(path, &e));
	assert_int_equal(e.code, ERR_DENIED);
	for (const char *const *n =
		     (const char *const[]){ "aider.json", "claude.json", "notes.txt", NULL };
	     *n; n++) {
		snprintf(file, sizeof(file), "%s/agents/%s", folder, *n);
		unlink(file);
	}
	snprintf(file, sizeof(file), "%s/agents", folder);
	rmdir(file);
	rmdir(folder);
}

static void test_path(void **state)
{
	struct err e = ERR_INIT;
	char path[16];

	assert_int_equal(agent_preset_path(STR_LIT("~/.a"), "/h", path, sizeof(path), &e), 0);
	assert_string_equal(path, "/h/.a");
	assert_int_equal(agent_preset_path(STR_LIT("/x"), "/h", path, sizeof(path), &e), 0);
	assert_string_equal(path, "/x");
	assert_int_equal(
		agent_preset_path(STR_LIT("~/23456789012345"), "/h", path, sizeof(path), &e), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),   cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_wrong), cmocka_unit_test(test_operator),
		cmocka_unit_test(test_path),
	};

	return cmocka_run_group_tests(tests, open_own, close_own);
}
