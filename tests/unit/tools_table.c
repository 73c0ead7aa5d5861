/* door/mcp/tools.h: every row is fit to be served, and keeps to the contract of the tools. */
#include "door/mcp/tools.h"
#include "alloc_fail.h"
#include "json/document/json.h"
#include "test.h"

/* Each {name} of the text is a member of the request or the result. */
static void check_says(const struct tool *t)
{
	for (const char *at = t->says; at && (at = strchr(at, '{')); at++) {
		struct str name = { at + 1, strcspn(at + 1, "}") };
		bool known = false;

		for (size_t i = 0; i < t->op->request->n; i++)
			known |= str_is(name, t->op->request->rows[i].name);
		for (size_t i = 0; i < t->op->result->n; i++)
			known |= str_is(name, t->op->result->rows[i].name);
		ROW_CHECK(known, t->name);
	}
}

static void test_tables(void **state)
{
	for (size_t i = 0; i < tools_n; i++) {
		struct err e = ERR_INIT;

		const struct field_table *output = tools[i]->output ? tools[i]->output
								    : tools[i]->op->result;
		struct op_shape shape;

		ROW_CHECK(op_shape_init(&shape, tools[i]->op, tools[i]->members, &e) == 0,
			  tools[i]->name);
		ROW_CHECK(field_check(&shape.places[OP_BODY], &e) == 0, tools[i]->name);
		ROW_CHECK(field_check(tools[i]->op->request, &e) == 0, tools[i]->name);
		ROW_CHECK(field_check(output, &e) == 0, tools[i]->name);
		ROW_CHECK(tools[i]->op->run && tools[i]->title && tools[i]->doc, tools[i]->name);
		check_says(tools[i]);
		op_shape_fini(&shape);
		for (size_t k = 0; k < i; k++)
			ROW_CHECK(strcmp(tools[k]->name, tools[i]->name) != 0, tools[i]->name);
	}
}

/* Names and required arguments. */
static const struct {
	const char *name, *required, *also;
} contract[] = {
	{ "sandbox_create", "[\"pool\"]", "pool" },
	{ "sandbox_exec", "[\"sandbox\",\"command\"]", "timeout_seconds" },
	{ "sandbox_read_file", "[\"sandbox\",\"path\"]", "path" },
	{ "sandbox_write_file", "[\"sandbox\",\"path\",\"content\"]", "content" },
	{ "sandbox_fork", "[\"sandbox\"]", "replicas" },
	{ "sandbox_terminate", "[\"sandbox\"]", "sandbox" },
	{ "sandbox_list", "null", "state" },
	{ "sandbox_get", "[\"sandbox\"]", "sandbox" },
	{ "sandbox_list_files", "[\"sandbox\"]", "path" },
	{ "sandbox_move_file", "[\"sandbox\",\"path\",\"to\"]", "to" },
	{ "sandbox_remove_file", "[\"sandbox\",\"path\"]", "recursive" },
	{ "sandbox_pause", "[\"sandbox\"]", "sandbox" },
	{ "sandbox_resume", "[\"sandbox\"]", "sandbox" },
	{ "sandbox_set_timeout", "[\"sandbox\",\"seconds\"]", "seconds" },
	{ "sandbox_processes", "[\"sandbox\"]", "sandbox" },
	{ "sandbox_signal", "[\"sandbox\",\"pid\"]", "signal" },
	{ "sandbox_exec_output", "[\"sandbox\",\"exec\"]", "wait_for" },
	{ "sandbox_snapshot", "[\"sandbox\"]", "ttl_seconds" },
	{ "sandbox_restore", "[\"snapshot\"]", "snapshot" },
	{ "sandbox_diff", "[\"sandbox\"]", "limit" },
	{ "run", "[\"command\",\"state\"]", "files" },
	{ "Read", "[\"file_path\"]", "offset" },
	{ "Write", "[\"file_path\",\"content\"]", "workspace" },
	{ "Edit", "[\"file_path\",\"old_string\",\"new_string\"]", "replace_all" },
	{ "Glob", "[\"pattern\"]", "limit" },
	{ "Grep", "[\"pattern\"]", "output_mode" },
	{ "search_code", "[\"query\"]", "limit" },
	{ "Bash", "[\"command\"]", "run_in_background" },
	{ "BashOutput", "[\"shell_id\"]", "offset" },
	{ "KillShell", "[\"shell_id\"]", "workspace" },
	{ "watch_process", "[\"command\"]", "error_patterns" },
	{ "watch_process_events", "[\"shell_id\"]", "since_event_id" },
	{ "run_tests", "null", "timeout" },
	{ "run_lint", "null", "language" },
	{ "run_typecheck", "null", "language" },
	{ "run_script", "[\"name\"]", "timeout" },
	{ "run_failing_tests", "null", "limit" },
	{ "last_test_failures", "null", "limit" },
	{ "secrets_available", "null", "workspace" },
	{ "snapshot_create", "[\"name\"]", "description" },
	{ "snapshot_list", "null", "workspace" },
	{ "snapshot_diff", "[\"name\"]", "path" },
	{ "snapshot_restore", "[\"name\"]", "workspace" },
	{ "workspace_create", "[\"name\"]", "name" },
	{ "workspace_list", "null", "cursor" },
	{ "workspace_attach", "[\"sandbox\",\"workspace\"]", "mode" },
	{ "workspace_delete", "[\"name\"]", "name" },
	{ "workspace_log", "[\"workspace\"]", "cursor" },
	{ "workspace_diff", "[\"workspace\"]", "content" },
	{ "workspace_revert", "[\"workspace\",\"revision\"]", "message" },
	{ "workspace_fork", "[\"workspace\",\"name\"]", "revision" },
	{ "execute_javascript", "[\"code\"]", "cpu_ms" },
	{ "register_module", "[\"name\"]", "source" },
	{ "list_modules", "null", NULL },
	{ "module_info", "[\"module\"]", "module" },
	{ "search_modules", "[\"query\"]", "limit" },
	{ "list_mcp_servers", "null", NULL },
	{ "mcp_server_info", "[\"name\"]", "tools" },
	{ "manage_mcp", "[\"name\",\"action\"]", "action" },
	{ "conversation_list", "null", "archived" },
	{ "get_config", "null", "session_id" },
	{ "get_runtime_info", "null", "session_id" },
	{ "conversation_get_current", "null", "session_id" },
	{ "conversation_get", "[\"conversation_id\"]", "session_id" },
	{ "conversation_history", "null", "conversation_id" },
	{ "conversation_wait", "[\"conversation_id\"]", "timeout_seconds" },
	{ "conversation_send_prompt", "[\"conversation_id\",\"prompt\"]", "session_id" },
	{ "conversation_start", "null", "initial_prompt" },
	{ "conversation_userdata_set", "[\"key\",\"value\"]", "session_id" },
	{ "ui_ask_yes_no", "[\"question\"]", "session_id" },
	{ "ui_options_buttons", "[\"options\"]", "timeout_seconds" },
	{ "ui_options_combo", "[\"options\"]", "question" },
	{ "ui_textbox", "[\"title\"]", "text" },
	{ "ui_form", "[\"title\",\"schema\"]", "question" },
	{ "ui_notify", "[\"message\",\"title\"]", "style" },
	{ "ask", "[\"kind\"]", "options" },
	{ "ask_result", "[\"request_id\"]", "wait_seconds" },
	{ "module_result", "[\"result\"]", "limit" },
};

static void test_contract(void **state)
{
	assert_int_equal(tools_n, ARRAY_LEN(contract));
	for (size_t i = 0; i < tools_n; i++) {
		struct err e = ERR_INIT;
		struct op_shape shape;
		int rc = op_shape_init(&shape, tools[i]->op, tools[i]->members, &e);
		autofree char *schema = field_schema_text(&shape.places[OP_BODY], &e);
		AUTO(json_free) struct json_doc *doc = json_parse(str_of(schema), NULL, &e);
		autobuf struct buf required = BUF_INIT(1024);
		struct json_writer w = json_writer(&required);

		assert_int_equal(rc, 0);
		assert_string_equal(tools[i]->name, contract[i].name);
		json_write_val(&w, json_get(json_root(doc), "required"));
		assert_int_equal(json_write_done(&w, &e), 0);
		assert_string_equal(required.p, contract[i].required);
		if (contract[i].also)
			assert_non_null(
				json_get(json_get(json_root(doc), "properties"), contract[i].also));
		op_shape_fini(&shape);
	}
}

/* Each listed tool costs the context of every client. */
static void test_usual(void **state)
{
	const struct mcp_choice few = tools_usual(false), more = tools_usual(true);
	struct mcp_choice all;
	struct err e;
	size_t n = 0;

	assert_int_equal(tools_choose(STR_LIT("all"), &all, &e), 0);
	for (size_t i = 0; i < tools_n; i++) {
		n += mcp_choice_has(&few, i);
		assert_true(mcp_choice_has(&all, i));
		assert_true(mcp_choice_has(&more, i) || !mcp_choice_has(&few, i));
	}
	assert_true(n <= 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_contract),
		cmocka_unit_test(test_usual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
