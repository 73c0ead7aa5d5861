#include "mcp/connect/group.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

enum { TO_GROUP = 1 << 2 }; /* PIDFD_SIGNAL_PROCESS_GROUP, since Linux 6.9 */

/* 0: it is our child; info has more if it has ended and `how` asks for that. -1: it is not our
 * child. */
static int wait_for(const struct mcp_group *g, siginfo_t *info, int how)
{
	int rc;

	info->si_pid = 0;
	do
		rc = g->pidfd >= 0 ? waitid(P_PIDFD, (id_t)g->pidfd, info, WEXITED | how)
				   : waitid(P_PID, (id_t)g->pid, info, WEXITED | how);
	while (rc < 0 && errno == EINTR);
	return rc;
}

void mcp_group_kill(const struct mcp_group *g, int number)
{
	if (syscall(SYS_pidfd_send_signal, g->pidfd, number, NULL, TO_GROUP) == 0 || errno == ESRCH)
		return;
	/* An older kernel. The pid is not reused if the program was not waited for. A pid of no
	 * process can only be that of a process group whose leader has ended; it is not reused
	 * while the group has members. */
	if (syscall(SYS_pidfd_send_signal, g->pidfd, 0, NULL, 0) == 0 ||
	    (kill(g->pid, 0) < 0 && errno == ESRCH))
		kill(-g->pid, number);
}

int mcp_group_wait(const struct mcp_group *g)
{
	siginfo_t info;

	if (wait_for(g, &info, 0) < 0)
		return -1;
	if (info.si_code == CLD_EXITED)
		return W_EXITCODE(info.si_status, 0);
	return info.si_status | (info.si_code == CLD_DUMPED ? WCOREFLAG : 0);
}

int mcp_group_open(struct mcp_group *g, struct err *e)
{
	siginfo_t info;

	g->pidfd = (int)syscall(SYS_pidfd_open, g->pid, 0);
	if (g->pidfd < 0)
		return err_sys(e, errno, "watch the program");
	return wait_for(g, &info, WNOHANG | WNOWAIT) == 0
		     ? 0
		     : err_set(e, ERR_TRANSPORT,
			       "the program has ended, and was waited for by somebody else");
}
