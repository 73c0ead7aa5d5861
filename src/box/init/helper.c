/*
 * Helper processes for long tasks, so that PID 1 stays available: they have its rights, which are
 * those of the sandbox's user, and answer the hub themselves. Programs of the sandbox can kill
 * them, and so can a lack of memory; PID 1 then answers instead.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box/init/internal.h"

enum { HELPERS_MAX = 64 };

static struct helper {
	pid_t pid; /* 0: free */
	uint32_t id;
	void (*on_death)(uint32_t id);
} helpers[HELPERS_MAX];

static struct helper *helper_find(pid_t pid)
{
	for (int i = 0; i < HELPERS_MAX; i++) {
		if (helpers[i].pid == pid)
			return &helpers[i];
	}
	return NULL;
}

pid_t init_helper_start(uint32_t id, void (*on_death)(uint32_t id))
{
	struct helper *h = helper_find(0);
	pid_t pid = h ? init_fork() : -1;

	if (pid > 0)
		*h = (struct helper){ pid, id, on_death };
	return pid;
}

void init_helper_stop(uint32_t id)
{
	for (int i = 0; i < HELPERS_MAX; i++) {
		if (helpers[i].pid && helpers[i].id == id)
			kill(helpers[i].pid, SIGKILL);
	}
}

bool init_helps(pid_t pid)
{
	return helper_find(pid) != NULL;
}

void init_helper_reaped(pid_t pid, int status)
{
	struct helper *h = helper_find(pid), ended;

	if (!h)
		return;
	ended = *h;
	h->pid = 0;
	if (ended.on_death && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
		ended.on_death(ended.id);
}

void init_helper_reset(void)
{
	for (int i = 0; i < HELPERS_MAX; i++) {
		if (!helpers[i].pid)
			continue;
		kill(helpers[i].pid, SIGKILL);
		waitpid(helpers[i].pid, NULL, 0);
		helpers[i].pid = 0;
	}
}
