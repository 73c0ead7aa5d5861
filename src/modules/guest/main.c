/*
 * For each run a worker is forked before its frame comes, so that a run begins in a process that
 * has run no code yet, and nothing that it leaves behind reaches another. The parent has loaded the
 * library (library.c), and reads and writes nothing. It ends with the first worker that can't be
 * followed by another.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/version.h"
#include "modules/guest/internal.h"

static int wait_for(pid_t worker)
{
	int status;

	while (waitpid(worker, &status, 0) < 0) {
		if (errno != EINTR)
			return CODE_EXIT_START;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	if (VERSION_TOLD("holt-js", argc, argv))
		return 0;
	/* A hub that has gone is seen where the frame is written. */
	signal(SIGPIPE, SIG_IGN);
	guest_begin();
	for (;;) {
		pid_t parent = getpid(), worker = fork();
		int how;

		if (worker < 0)
			return CODE_EXIT_START;
		if (worker == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				return CODE_EXIT_WIRE;
			guest_run();
		}
		how = wait_for(worker);
		if (how != 0)
			return how == CODE_EXIT_OVER ? 0 : how;
	}
}
