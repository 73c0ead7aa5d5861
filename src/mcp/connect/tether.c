#include "mcp/connect/tether.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

enum { END_FD, GROUP_FD, FIRST_OTHER_FD };

/* Nothing of the other process's memory may be touched but this stack. Signals stay blocked. */
static _Noreturn void tether_wait(const struct mcp_group *g, int end)
{
	struct mcp_group group = { g->pid, GROUP_FD };
	int pidfd = fcntl(g->pidfd, F_DUPFD, FIRST_OTHER_FD);
	ssize_t n;
	char c;

	setsid();
	if (pidfd < 0 || dup2(end, END_FD) < 0 || dup2(pidfd, GROUP_FD) < 0)
		_exit(1);
	syscall(SYS_close_range, FIRST_OTHER_FD, ~0u, 0);
	do
		n = read(END_FD, &c, 1);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		mcp_group_kill(&group, SIGKILL);
	_exit(0);
}

/* Its parent ends at once, so that this process need not wait for it later. */
static int tether_fork(const struct mcp_group *g, int end)
{
	pid_t pid = _Fork();

	if (pid == 0) {
		if (_Fork() == 0)
			tether_wait(g, end);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return pid < 0 ? -1 : 0;
}

int mcp_tether_new(const struct mcp_group *g, struct err *e)
{
	autoclose int theirs = -1, ours = -1;
	sigset_t all, was;
	int ends[2], rc;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	theirs = ends[0];
	ours = ends[1];
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	rc = tether_fork(g, theirs);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	return rc < 0 ? err_sys(e, errno, "make a process") : take_fd(&ours);
}

void mcp_tether_end(int *end)
{
	/* it may have ended already */
	ssize_t n = *end >= 0 ? write(*end, "", 1) : 0;

	(void)n;
	close_fd(end);
}
