/* Other processes, above all PID 1 of the sandbox. In the control the target is a process of the
 * same user that is neither PID 1 nor protects itself. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define ATTEMPT(name, call)                                                                        \
	static enum result name(struct found *f)                                                   \
	{                                                                                          \
		return tried(f, (call));                                                           \
	}

/* ---- signals --------------------------------------------------------------------------------- */

/* The letter of /proc/N/stat; 'X' when it is gone. */
static char state_of(int pid)
{
	char path[64], text[512];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	at = strrchr(slurp(path, text, sizeof(text)), ')');
	return at && at[1] ? at[2] : 'X';
}

/* A signal did something when its target is gone, dying or stopped soon after. What stands in for
 * PID 1 has to be seen so. */
static enum result struck(struct found *f, long ret)
{
	enum result r = tried(f, ret);

	for (int i = 0; r == OPEN && i < (target_pid() == 1 ? 50 : 8000); i++) {
		char state = state_of(target_pid());

		if (strchr("XZTt", state)) {
			tell(f, "state %c", state);
			return OPEN;
		}
		usleep(1000);
	}
	if (r == OPEN)
		tell(f, "sent, and nothing happened");
	return DENIED;
}

static int target_pidfd(void)
{
	return (int)syscall(SYS_pidfd_open, target_pid(), 0);
}

static enum result try_kill(struct found *f)
{
	return struck(f, kill(target_pid(), SIGKILL));
}

static enum result try_stop(struct found *f)
{
	return struck(f, kill(target_pid(), SIGSTOP));
}

static enum result try_every_signal(struct found *f)
{
	int sent = 0;

	for (int number = 1; number < 65; number++)
		sent += kill(target_pid(), number) == 0;
	return struck(f, sent ? 0 : -1);
}

static enum result try_tgkill(struct found *f)
{
	int pid = target_pid();

	syscall(SYS_tkill, pid, SIGSEGV);
	return struck(f, syscall(SYS_tgkill, pid, pid, SIGKILL));
}

static enum result try_queue(struct found *f)
{
	siginfo_t info = { .si_signo = SIGSEGV, .si_code = SI_QUEUE };

	syscall(SYS_rt_sigqueueinfo, target_pid(), SIGSEGV, &info);
	info.si_signo = SIGKILL;
	return struck(f,
		      syscall(SYS_rt_tgsigqueueinfo, target_pid(), target_pid(), SIGKILL, &info));
}

static enum result try_pidfd_signal(struct found *f)
{
	return struck(f, syscall(SYS_pidfd_send_signal, target_pidfd(), SIGKILL, NULL, 0));
}

static enum result try_group(struct found *f)
{
	return struck(f, syscall(SYS_pidfd_send_signal, target_pidfd(), SIGKILL, NULL,
				 4 /* its process group */));
}

/* A process of the host, by its number there. */
static enum result try_host_process(struct found *f)
{
	return tried(f, kill(atoi(told("HOLT_PROBE_PID", "-7")), 0));
}

/* ---- tracing and memory ---------------------------------------------------------------------- */

ATTEMPT(try_attach, ptrace(PTRACE_ATTACH, target_pid(), NULL, NULL))
ATTEMPT(try_seize, ptrace(PTRACE_SEIZE, target_pid(), NULL, NULL))
ATTEMPT(try_traceme, ptrace(PTRACE_TRACEME, 0, NULL, NULL))

/* What hung bubblewrap: the tracer of PID 1 ends without a word. */
static enum result try_attach_exit(struct found *f)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(ptrace(PTRACE_ATTACH, target_pid(), NULL, NULL) < 0 ? errno : 0);
	waitpid(pid, &status, 0);
	errno = WEXITSTATUS(status);
	return tried(f, errno ? -1 : 0);
}

/* Some address that every process has mapped may fail with EFAULT: the right was there then. */
static enum result touched(struct found *f, long ret)
{
	enum result r = tried(f, ret);

	return f->errnum == EFAULT ? OPEN : r;
}

static enum result try_vm_read(struct found *f)
{
	char byte;
	struct iovec own = { &byte, 1 }, theirs = { (void *)0x400000, 1 };

	return touched(f, process_vm_readv(target_pid(), &own, 1, &theirs, 1, 0));
}

static enum result try_vm_write(struct found *f)
{
	char byte = 0;
	struct iovec own = { &byte, 1 }, theirs = { (void *)8, 1 };

	return touched(f, process_vm_writev(target_pid(), &own, 1, &theirs, 1, 0));
}

ATTEMPT(try_getfd, syscall(SYS_pidfd_getfd, target_pidfd(), 0, 0))
ATTEMPT(try_kcmp, syscall(SYS_kcmp, getpid(), target_pid(), 1 /* memory */, 0, 0))
ATTEMPT(try_migrate, syscall(SYS_migrate_pages, target_pid(), 8ul * sizeof(long),
			     &(unsigned long){ 1 }, &(unsigned long){ 1 }))
ATTEMPT(try_move, syscall(SYS_move_pages, target_pid(), 0ul, NULL, NULL, NULL, 0))

/* With the right to trace: does a tracer get its child more than the child has? Each child asks to
 * be traced, stops, makes a call and ends with its errno. */
static pid_t start_traced(int *ret_status)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(errno);
		raise(SIGSTOP);
		_exit(syscall(SYS_getppid) == 0 ? 0 : errno ? errno : EINTR);
	}
	waitpid(pid, ret_status, 0);
	return pid;
}

#ifdef __x86_64__
/* The child's getppid becomes unshare(CLONE_NEWUSER) when the filter has let it pass. */
static enum result try_rewrite(struct found *f)
{
	struct user_regs_struct r;
	int status;
	pid_t pid = start_traced(&status);

	while (WIFSTOPPED(status)) {
		ptrace(PTRACE_GETREGS, pid, NULL, &r);
		if (WSTOPSIG(status) == SIGTRAP && r.orig_rax == SYS_getppid) {
			r.orig_rax = SYS_unshare;
			r.rdi = CLONE_NEWUSER;
			ptrace(PTRACE_SETREGS, pid, NULL, &r);
			ptrace(PTRACE_DETACH, pid, NULL, NULL);
		} else {
			ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
		}
		waitpid(pid, &status, 0);
	}
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
	return tried(f, errno ? -1 : 0);
}
#else
static enum result try_rewrite(struct found *f)
{
	errno = ENOSYS;
	return tried(f, -1);
}
#endif

#ifndef PTRACE_O_SUSPEND_SECCOMP
#define PTRACE_O_SUSPEND_SECCOMP (1 << 21)
#endif

static enum result try_suspend_filter(struct found *f)
{
	int status, errnum;
	pid_t pid = start_traced(&status);

	if (!WIFSTOPPED(status)) {
		errno = WEXITSTATUS(status);
		return tried(f, -1);
	}
	errnum = ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_SUSPEND_SECCOMP) < 0 ? errno : 0;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	errno = errnum == EINVAL ? ENOSYS : errnum;
	return tried(f, errno ? -1 : 0);
}

static enum result try_vm_read_own(struct found *f)
{
	static char secret = 42;
	char byte = 0;
	struct iovec own = { &byte, 1 }, theirs = { &secret, 1 };
	pid_t pid = fork();
	long n;

	if (pid == 0) {
		pause();
		_exit(0);
	}
	n = process_vm_readv(pid, &own, 1, &theirs, 1, 0);
	kill(pid, SIGKILL);
	return tried(f, n == 1 && byte == 42 ? 0 : -1);
}

static enum result try_robust_list(struct found *f)
{
	void *head;
	size_t n;

	return tried(f, syscall(SYS_get_robust_list, target_pid(), &head, &n));
}

/* ---- its limits, priority and place ---------------------------------------------------------- */

/* With no descriptor left, or none of its own files to open, a PID 1 could no longer serve. */
static enum result try_limits(struct found *f)
{
	struct rlimit none = { 0, 0 };

	return tried(f, prlimit(target_pid(), RLIMIT_NOFILE, &none, NULL));
}

ATTEMPT(try_nice, setpriority(PRIO_PROCESS, (id_t)target_pid(), 19))
ATTEMPT(try_ioprio, syscall(SYS_ioprio_set, 1, target_pid(), 3 << 13 /* idle */))
ATTEMPT(try_affinity,
	sched_setaffinity(target_pid(), sizeof(cpu_set_t), &(cpu_set_t){ .__bits = { 1 } }))

static enum result try_idle(struct found *f)
{
	struct sched_param none = { 0 };

	return tried(f, sched_setscheduler(target_pid(), SCHED_IDLE, &none));
}

#define HOLDS "PID 1 not dumpable"

static const struct attempt rows[] = {
	{ "pid1_kill", "SIGKILL to PID 1", "pid namespace", try_kill, JAIL, true },
	{ "pid1_stop", "SIGSTOP to PID 1", "pid namespace", try_stop, JAIL, true },
	{ "pid1_signals", "every signal to PID 1, real-time ones too", "pid namespace",
	  try_every_signal, JAIL, true },
	{ "pid1_tgkill", "tkill and tgkill of PID 1", "pid namespace", try_tgkill, JAIL, true },
	{ "pid1_sigqueue", "rt_sigqueueinfo and rt_tgsigqueueinfo to PID 1", "pid namespace",
	  try_queue, JAIL, true },
	{ "pid1_pidfd", "pidfd_send_signal to PID 1", "pid namespace", try_pidfd_signal, JAIL,
	  true },
	{ "pid1_group", "kill the process group of PID 1", "pid namespace", try_group, JAIL, true },
	{ "pid1_ptrace", "ptrace: attach to PID 1", "seccomp, " HOLDS, try_attach, JAIL, true },
	{ "pid1_ptrace_exit", "attach to PID 1 and exit", "seccomp, " HOLDS, try_attach_exit, JAIL,
	  true },
	{ "pid1_ptrace_seize", "ptrace: seize PID 1", "seccomp, " HOLDS, try_seize, JAIL, true },
	{ "ptrace_self", "ptrace of its own processes", "seccomp", try_traceme, PLAIN },
	{ "ptrace_rewrite", "a tracer that turns a call of its child into unshare", "seccomp",
	  try_rewrite, PLAIN },
	{ "ptrace_suspend", "a tracer that suspends the filter of its child",
	  "seccomp, no capability", try_suspend_filter, ROOT, .capability = CAPABILITY(21) },
	{ "vm_readv_own", "process_vm_readv of its own processes", "seccomp", try_vm_read_own,
	  PLAIN },
	{ "pid1_vm_readv", "process_vm_readv of PID 1", "seccomp, " HOLDS, try_vm_read, JAIL,
	  true },
	{ "pid1_vm_writev", "process_vm_writev of PID 1", "seccomp, " HOLDS, try_vm_write, JAIL,
	  true },
	{ "pid1_pidfd_getfd", "pidfd_getfd of PID 1", "seccomp, " HOLDS, try_getfd, JAIL, true },
	{ "pid1_kcmp", "kcmp with PID 1", "seccomp, " HOLDS, try_kcmp, JAIL, true },
	{ "pid1_migrate_pages", "migrate_pages of PID 1", "seccomp, " HOLDS, try_migrate, JAIL,
	  true },
	{ "pid1_move_pages", "move_pages of PID 1", "seccomp, " HOLDS, try_move, JAIL, true },
	{ "pid1_robust_list", "get_robust_list of PID 1", HOLDS, try_robust_list, JAIL, true },
	{ "pid1_prlimit", "prlimit of PID 1: take its descriptors away", "seccomp", try_limits,
	  JAIL, true },
	{ "pid1_nice", "setpriority of PID 1", "seccomp", try_nice, JAIL, true },
	{ "pid1_sched", "sched_setscheduler of PID 1: only when idle", "seccomp", try_idle, JAIL,
	  true },
	{ "pid1_affinity", "sched_setaffinity of PID 1", "seccomp", try_affinity, JAIL, true },
	{ "pid1_ioprio", "ioprio_set of PID 1", "seccomp", try_ioprio, JAIL, true },
	{ "host_process", "reach a process of the host by its number", "pid namespace",
	  try_host_process, PLAIN },
};

const struct attempts process_attempts = { "Other processes, above all PID 1", rows,
					   PROBE_LEN(rows) };
