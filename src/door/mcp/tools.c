#include "door/mcp/tools.h"

const struct tool *const tools[] = {
	&sandbox_create_tool,	  &sandbox_exec_tool,	     &sandbox_read_file_tool,
	&sandbox_write_file_tool, &sandbox_fork_tool,	     &sandbox_terminate_tool,
	&sandbox_list_tool,	  &sandbox_get_tool,	     &sandbox_list_files_tool,
	&sandbox_move_file_tool,  &sandbox_remove_file_tool, &sandbox_pause_tool,
	&sandbox_resume_tool,	  &sandbox_set_timeout_tool, &sandbox_processes_tool,
	&sandbox_signal_tool,	  &sandbox_exec_output_tool, &sandbox_snapshot_tool,
	&sandbox_restore_tool,	  &sandbox_diff_tool,
};
const size_t tools_n = ARRAY_LEN(tools);
static_assert(ARRAY_LEN(tools) < 64, "a bit for each of them");

/* From first on, n of them. */
static const struct tool_set {
	const char *name;
	size_t first, n;
} sets[] = {
	{ "sandbox", 0, ARRAY_LEN(tools) },
};

static uint64_t tools_named(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		if (str_is(name, sets[i].name))
			return ((1ull << sets[i].n) - 1) << sets[i].first;
	}
	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		if (str_is(name, tools[i]->name))
			return 1ull << i;
	}
	return 0;
}

int tools_choose(struct str list, uint64_t *ret, struct err *e)
{
	uint64_t all = 0;

	for (size_t i = 0; i <= list.n; i++) {
		size_t n = 0;
		uint64_t named;

		while (i + n < list.n && list.p[i + n] != ',')
			n++;
		named = tools_named((struct str){ list.p + i, n });
		if (!named)
			return err_set(e, ERR_INVALID,
				       "tools: there is no tool and no set of them called \"%.*s\"",
				       n > 64 ? 64 : (int)n, list.p + i);
		all |= named;
		i += n;
	}
	*ret = all;
	return 0;
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

	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		if (tools[i]->op != op && tools[i]->other != op)
			continue;
		n = tools_add(names, n, max, tools[i]->name);
		for (size_t k = 0; k < ARRAY_LEN(sets); k++) {
			if (i - sets[k].first < sets[k].n)
				n = tools_add(names, n, max, sets[k].name);
		}
	}
	return n;
}
