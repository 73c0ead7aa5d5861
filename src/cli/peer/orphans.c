#include "cli/peer/orphans.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/folder.h"

enum { ROUNDS_MAX = 1000 }; /* of a tree that grows while it is killed */

void orphans_adopt(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* A child keeps its process id until it is waited for. */
static unsigned kill_of(const char *task)
{
	char path[64];
	unsigned n = 0;
	FILE *f;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/children", task);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fscanf(f, "%d", &pid) == 1) {
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			continue;
		n++;
	}
	fclose(f);
	return n;
}

void orphans_kill(void)
{
	for (unsigned i = 0, killed = 1; i < ROUNDS_MAX && killed > 0; i++) {
		autofolder struct folder tasks = folder_of("/proc/self/task");

		killed = 0;
		while (folder_next(&tasks) > 0)
			killed += kill_of(tasks.entry->d_name);
	}
}
