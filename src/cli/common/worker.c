#include "cli/common/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

static const int passed[] = { SIGINT, SIGTERM, SIGHUP };

/* The one child. A child has its own. */
static volatile sig_atomic_t child, caught;

struct waiting {
	struct sigaction old[ARRAY_LEN(passed)];
	sigset_t mask;
};

/* A terminal signals both of us. A second signal does no harm. */
static void on_signal(int number)
{
	caught = number;
	if (child > 0)
		kill(child, SIGTERM);
}

static void hold_signals(struct waiting *w)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(passed); i++)
		sigaddset(&set, passed[i]);
	sigprocmask(SIG_BLOCK, &set, &w->mask);
}

static void restore_signals(const struct waiting *w)
{
	for (size_t i = 0; i < ARRAY_LEN(passed); i++)
		sigaction(passed[i], &w->old[i], NULL);
	sigprocmask(SIG_SETMASK, &w->mask, NULL);
}

/* fork(2). The parent forwards signals. The child has the old handlers and ends with the parent.
 * Ignored signals stay ignored. */
static pid_t worker_start(struct waiting *w)
{
	struct sigaction pass = { .sa_handler = on_signal };
	const pid_t parent = getpid();
	pid_t pid;

	hold_signals(w);
	caught = 0;
	for (size_t i = 0; i < ARRAY_LEN(passed); i++) {
		sigaction(passed[i], &pass, &w->old[i]);
		if (w->old[i].sa_handler == SIG_IGN)
			signal(passed[i], SIG_IGN);
	}
	pid = fork();
	child = pid;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(1);
		restore_signals(w);
	} else {
		sigprocmask(SIG_SETMASK, &w->mask, NULL);
	}
	return pid;
}

/* Its status as of waitpid(2). */
static int await(struct waiting *w, pid_t pid)
{
	int status = -1;

	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	child = 0;
	restore_signals(w);
	return status;
}

/* With the default action they end us; a handler knows better. */
static void end_by_signal(void)
{
	if (caught)
		raise(caught);
}

int worker_run(const struct worker *w, int (*f)(void *arg, void *out, struct err *e), void *arg,
	       void *out, size_t size, struct err *e)
{
	struct waiting waiting;
	struct err said = ERR_INIT;
	int ends[2], heard, status;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "start the work");
	pid = worker_start(&waiting);
	if (pid == 0) {
		close(ends[0]);
		signal(SIGPIPE, SIG_IGN);
		if (f(arg, out, &said) == 0)
			said = ERR_INIT;
		_exit(fd_write(ends[1], &said, sizeof(said)) < 0 ||
		      fd_write(ends[1], out, size) < 0);
	}
	close(ends[1]);
	heard = pid > 0 && fd_read(ends[0], &said, sizeof(said)) == 0 &&
		fd_read(ends[0], out, size) == 0;
	close(ends[0]);
	status = await(&waiting, pid);
	if ((!heard || said.code) && w->clean)
		w->clean(w->arg);
	end_by_signal();
	if (!heard)
		return err_ended(e, status, ERR_BUG, "the process that did the work");
	*e = said;
	return said.code ? -1 : 0;
}

/* In the child. Tells why it could not. */
static void run_program(const struct worker_program *p, int tell)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), failed;

	signal(SIGPIPE, SIG_DFL);
	if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
	    dup2(p->quiet ? null : STDERR_FILENO, STDOUT_FILENO) >= 0 && fchdir(p->dir) == 0)
		execvp(p->argv[0], (char *const *)p->argv);
	failed = errno;
	_exit(fd_write(tell, &failed, sizeof(failed)) < 0 ? 1 : 127);
}

int worker_exec(const struct worker_program *p, struct err *e)
{
	struct waiting waiting;
	int ends[2], failed = 0, status;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "start %s", p->argv[0]);
	pid = worker_start(&waiting);
	if (pid == 0)
		run_program(p, ends[1]);
	close(ends[1]);
	if (pid < 0)
		failed = EAGAIN;
	else if (fd_read(ends[0], &failed, sizeof(failed)) < 0)
		failed = 0; /* closed by its start */
	close(ends[0]);
	status = await(&waiting, pid);
	end_by_signal();
	if (failed == ENOENT)
		return err_set(e, ERR_PROGRAM, "%s is not installed: %s", p->argv[0], p->without);
	if (failed)
		return err_sys(e, failed, "start %s", p->argv[0]);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
