#include "door/mcp/tools.h"

#include "op/ops.h"

const struct tool *const tools[] = {
	&sandbox_create_tool,
	&sandbox_exec_tool,
	&sandbox_read_file_tool,
	&sandbox_write_file_tool,
	&sandbox_fork_tool,
	&sandbox_terminate_tool,
	&sandbox_list_tool,
	&sandbox_get_tool,
	&sandbox_list_files_tool,
	&sandbox_move_file_tool,
	&sandbox_remove_file_tool,
	&sandbox_pause_tool,
	&sandbox_resume_tool,
	&sandbox_set_timeout_tool,
	&sandbox_processes_tool,
	&sandbox_signal_tool,
	&sandbox_exec_output_tool,
	&sandbox_snapshot_tool,
	&sandbox_restore_tool,
	&sandbox_diff_tool,
	&run_tool,
	&coding_read_tool,
	&coding_write_tool,
	&coding_edit_tool,
	&coding_glob_tool,
	&coding_grep_tool,
	&coding_symbols_tool,
	&coding_bash_tool,
	&coding_output_tool,
	&coding_kill_tool,
	&coding_watch_tool,
	&coding_events_tool,
	&coding_test_tool,
	&coding_lint_tool,
	&coding_typecheck_tool,
	&coding_script_tool,
	&coding_retest_tool,
	&coding_failures_tool,
	&coding_secrets_tool,
	&coding_snapshot_create_tool,
	&coding_snapshot_list_tool,
	&coding_snapshot_diff_tool,
	&coding_snapshot_restore_tool,
	&workspace_create_tool,
	&workspace_list_tool,
	&workspace_attach_tool,
	&workspace_delete_tool,
	&workspace_log_tool,
	&workspace_diff_tool,
	&workspace_revert_tool,
	&workspace_fork_tool,
	&execute_javascript_tool,
	&register_module_tool,
	&list_modules_tool,
	&module_info_tool,
	&search_modules_tool,
	&list_mcp_servers_tool,
	&mcp_server_info_tool,
	&manage_mcp_tool,
	&conversation_list_tool,
	&conversation_config_tool,
	&conversation_runtime_tool,
	&conversation_current_tool,
	&conversation_get_tool,
	&conversation_history_tool,
	&conversation_wait_tool,
	&conversation_send_tool,
	&conversation_start_tool,
	&conversation_userdata_tool,
	&ui_ask_yes_no_tool,
	&ui_options_buttons_tool,
	&ui_options_combo_tool,
	&ui_textbox_tool,
	&ui_form_tool,
	&ui_notify_tool,
	&ask_tool,
	&ask_result_tool,
	&module_result_tool,
};
const size_t tools_n = ARRAY_LEN(tools);
static_assert(ARRAY_LEN(tools) + 2 <= MCP_CHOICE_MAX, "each has a place in a choice");

/* Each listed tool costs the context of every client, so few are listed unless they are asked
 * for. */
enum {
	SANDBOX_TOOLS = 20,
	RUN_TOOLS = 1,
	CODING_TOOLS = 22,
	WORKSPACE_TOOLS = 8,
	CODE_TOOLS = 8,
	CONVERSATION_TOOLS = 10,
	UI_TOOLS = 8,
	OWN_TOOLS = 1,
	/* Where those begin that came behind the sets for coding. */
	WORKSPACE_AT = SANDBOX_TOOLS + RUN_TOOLS + CODING_TOOLS,
	CODE_AT = WORKSPACE_AT + WORKSPACE_TOOLS,
	CONVERSATION_AT = CODE_AT + CODE_TOOLS,
	UI_AT = CONVERSATION_AT + CONVERSATION_TOOLS,
};
static_assert(ARRAY_LEN(tools) == UI_AT + UI_TOOLS + OWN_TOOLS, "each is in one set, and in all");

/* From first on, n of them. */
static const struct tool_set {
	const char *name;
	size_t first, n;
	const struct tool *with; /* another one; NULL: none */
} sets[] = {
	{ "sandbox", 0, SANDBOX_TOOLS },
	{ "run", SANDBOX_TOOLS, RUN_TOOLS },
	{ "coding", SANDBOX_TOOLS + RUN_TOOLS, CODING_TOOLS },
	{ "workspace", WORKSPACE_AT, WORKSPACE_TOOLS },
	{ "code", CODE_AT, CODE_TOOLS },
	{ "conversation", CONVERSATION_AT, CONVERSATION_TOOLS },
	{ "ui", UI_AT, UI_TOOLS },
	{ MITTO_SET, CONVERSATION_AT, CONVERSATION_TOOLS + UI_TOOLS },
	{ "all", 0, ARRAY_LEN(tools) },
	/* Tools of modules, which are no rows here: one place behind the others stands for them. */
	{ "gateway", ARRAY_LEN(tools) - OWN_TOOLS, OWN_TOOLS + 1, &mcp_server_info_tool },
};

const char *tools_set_name(size_t i)
{
	return i < ARRAY_LEN(sets) ? sets[i].name : NULL;
}

/* Adds the tools of that name or set; false: there are none. */
static bool tools_add_named(struct str name, struct mcp_choice *to)
{
	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		if (!str_is(name, sets[i].name))
			continue;
		for (size_t k = 0; k < sets[i].n; k++)
			mcp_choice_add(to, sets[i].first + k);
		for (size_t k = 0; sets[i].with && k < ARRAY_LEN(tools); k++) {
			if (tools[k] == sets[i].with)
				mcp_choice_add(to, k);
		}
		if (str_is(name, MITTO_SET))
			mcp_choice_add(to, TOOLS_MITTO);
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		bool mitto = tools[i]->conversations && str_starts(name, MITTO_PREFIX) &&
			     str_is((struct str){ name.p + sizeof(MITTO_PREFIX) - 1,
						  name.n - sizeof(MITTO_PREFIX) + 1 },
				    tools[i]->name);

		if (!mitto && !str_is(name, tools[i]->name))
			continue;
		mcp_choice_add(to, i);
		if (mitto)
			mcp_choice_add(to, TOOLS_MITTO);
		return true;
	}
	return false;
}

struct mcp_choice tools_usual(bool workspaces)
{
	struct mcp_choice usual = { { 0 } };

	tools_add_named(STR_LIT("sandbox"), &usual);
	if (workspaces)
		tools_add_named(STR_LIT("coding"), &usual);
	return usual;
}

struct mcp_choice tools_talking(void)
{
	struct mcp_choice talking = { { 0 } };

	tools_add_named(STR_LIT("conversation"), &talking);
	tools_add_named(STR_LIT("ui"), &talking);
	tools_add_named(STR_LIT("code"), &talking);
	return talking;
}

int tools_choose(struct str list, struct mcp_choice *ret, struct err *e)
{
	struct mcp_choice all = { { 0 } };

	for (size_t i = 0; i <= list.n; i++) {
		size_t n = 0;

		while (i + n < list.n && list.p[i + n] != ',')
			n++;
		if (!tools_add_named((struct str){ list.p + i, n }, &all))
			return err_set(e, ERR_INVALID,
				       "tools: there is no tool and no set of them called \"%.*s\"",
				       n > 64 ? 64 : (int)n, list.p + i);
		i += n;
	}
	*ret = all;
	return 0;
}

int tools_texts(struct str word, bool *ret_full, struct err *e)
{
	*ret_full = str_is(word, "full");
	if (*ret_full || str_is(word, "short"))
		return 0;
	return err_set(e, ERR_INVALID, "texts: full or short");
}

static size_t tools_add(const char **names, size_t n, size_t max, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(names[i], name) == 0)
			return n;
	}
	if (n < max)
		names[n++] = name;
	return n;
}

size_t tools_of(const struct op *op, const char **names, size_t max)
{
	size_t n = 0;

	if (op == &module_call_op)
		n = tools_add(names, n, max, "gateway");
	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		if (tools[i]->op != op && tools[i]->other != op)
			continue;
		n = tools_add(names, n, max, tools[i]->name);
		for (size_t k = 0; k < ARRAY_LEN(sets); k++) {
			if (i - sets[k].first < sets[k].n || tools[i] == sets[k].with)
				n = tools_add(names, n, max, sets[k].name);
		}
	}
	return n;
}
