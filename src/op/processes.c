#include "op/processes.h"

static void on_list(void *arg, const struct process *p, size_t n, bool truncated,
		    const struct err *err)
{
	struct call *c = arg;
	struct processes_view list = { .truncated = truncated };
	struct err e = ERR_INIT;
	struct process_view *views = err ? NULL : arena_array(call_arena(c), n, sizeof(*views), &e);

	if (!views) {
		call_fail(c, err ? err : &e);
		return;
	}
	for (size_t i = 0; i < n; i++)
		views[i] = (struct process_view){ p[i].pid,    p[i].parent, { &p[i].state, 1 },
						  p[i].cpu_ms, p[i].bytes,  p[i].age_ms,
						  p[i].command };
	list.processes.p = views;
	list.processes.n = n;
	call_answer(c, &list);
}

void processes_answer(struct call *c, struct sandbox *sb)
{
	process_list_start(sb, on_list, c);
}
