/* The ends of what ask.c, task.c and listen.c have, until each is there and takes its lines away:
 * nothing is asked, nothing is a task, nobody listens. */
#include "mcp/core.h"

/* ask.c */

int mcp_ask_resume(struct mcp_call *c, struct rpc_fault *f)
{
	return 0;
}

bool mcp_ask_waits(const struct mcp_call *c)
{
	return false;
}

void mcp_ask_end(struct mcp_call *c)
{
}

void mcp_seal_free(struct mcp_seal *seal)
{
}

/* task.c */

int mcp_task_before(struct mcp_call *c, struct rpc_fault *f)
{
	return 0;
}

void mcp_task_result(struct mcp_call *c, struct str result)
{
}

void mcp_task_fault(struct mcp_call *c, const struct rpc_fault *f)
{
}

const struct mcp_method *mcp_task_method(struct str name)
{
	return NULL;
}

const struct mcp_method *mcp_task_method_at(size_t i)
{
	return NULL;
}

void mcp_tasks_free(struct mcp_tasks *tasks)
{
}

/* listen.c */

void mcp_listens_end(struct mcp_session *s)
{
}
