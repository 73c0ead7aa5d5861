/* Becoming somebody else, taking more than one's share. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ATTEMPT(name, call)                                                                        \
	static enum result name(struct found *f)                                                   \
	{                                                                                          \
		return tried(f, (call));                                                           \
	}

/* ---- identity -------------------------------------------------------------------------------- */

ATTEMPT(try_setuid, setresuid(0, 0, 0))
ATTEMPT(try_setgid, setresgid(0, 0, 0))
ATTEMPT(try_setgroups, setgroups(1, &(gid_t){ 0 }))

static enum result try_no_new_privs(struct found *f)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? DENIED : OPEN;
}

static enum result try_seccomp_mode(struct found *f)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2 ? DENIED : OPEN;
}

/* Any bit in any of the five sets. */
static enum result try_capabilities(struct found *f)
{
	static const char *const sets[] = { "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:" };
	char text[4096];
	const char *at;

	slurp("/proc/self/status", text, sizeof(text));
	for (size_t i = 0; i < PROBE_LEN(sets); i++) {
		at = strstr(text, sets[i]);
		if (!at || strtoull(at + strlen(sets[i]), NULL, 16)) {
			tell(f, "%.24s", at ? at : "unknown");
			return OPEN;
		}
	}
	return DENIED;
}

static enum result try_capset(struct found *f)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct all[2] = { { .effective = 1u << CAP_SYS_CHROOT,
						   .permitted = 1u << CAP_SYS_CHROOT } };

	return tried(f, syscall(SYS_capset, &h, all));
}

static enum result try_securebits(struct found *f)
{
	return tried(f, prctl(PR_SET_SECUREBITS, 0, 0, 0, 0));
}

/* ---- priority and limits --------------------------------------------------------------------- */

static enum result try_fifo(struct found *f)
{
	struct sched_param low = { .sched_priority = 1 };

	return tried(f, sched_setscheduler(0, SCHED_FIFO, &low));
}

static enum result try_deadline(struct found *f)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {
		.size = 48, .policy = 6, .runtime = 100000, .deadline = 10000000, .period = 10000000
	};

	return tried(f, syscall(SYS_sched_setattr, 0, &attr, 0));
}

ATTEMPT(try_nice, setpriority(PRIO_PROCESS, 0, -5))
ATTEMPT(try_ioprio, syscall(SYS_ioprio_set, 1, 0, 1 << 13 /* real time */))

static enum result try_raise(struct found *f)
{
	static const int resources[] = { RLIMIT_CORE,	  RLIMIT_NPROC,	    RLIMIT_NOFILE,
					 RLIMIT_NICE,	  RLIMIT_RTPRIO,    RLIMIT_MEMLOCK,
					 RLIMIT_MSGQUEUE, RLIMIT_SIGPENDING };

	for (size_t i = 0; i < PROBE_LEN(resources); i++) {
		struct rlimit r;

		if (getrlimit((__rlimit_resource_t)resources[i], &r) < 0 ||
		    r.rlim_max == RLIM_INFINITY)
			continue;
		r.rlim_max++;
		if (setrlimit((__rlimit_resource_t)resources[i], &r) == 0) {
			tell(f, "resource %d", resources[i]);
			return OPEN;
		}
		f->errnum = errno;
	}
	return DENIED;
}

/* Limits that a user's session may have and that a sandbox must not inherit. */
static enum result try_inherited_limits(struct found *f)
{
	static const int resources[] = { RLIMIT_NICE, RLIMIT_RTPRIO };

	for (size_t i = 0; i < PROBE_LEN(resources); i++) {
		struct rlimit r = { 0, 0 };

		getrlimit((__rlimit_resource_t)resources[i], &r);
		if (r.rlim_max) {
			tell(f, "resource %d is %lu", resources[i], (unsigned long)r.rlim_max);
			return OPEN;
		}
	}
	return DENIED;
}

/* A dump goes where the host's core_pattern says: into a program of the host. */
static enum result try_core(struct found *f)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &all);
		getrlimit(RLIMIT_CORE, &all);
		all.rlim_cur = all.rlim_max;
		setrlimit(RLIMIT_CORE, &all);
		abort();
	}
	waitpid(pid, &status, 0);
	return WCOREDUMP(status) ? OPEN : DENIED;
}

/* More processes than a sandbox has by default. */
static enum result try_processes(struct found *f)
{
	enum { MANY = 700 };
	enum result r = OPEN;
	int started;

	for (started = 0; started < MANY; started++) {
		pid_t pid = fork();

		if (pid == 0) {
			pause();
			_exit(0);
		}
		if (pid < 0) {
			r = tried(f, -1);
			break;
		}
	}
	tell(f, "%d started", started);
	return r; /* the whole process group is killed after this */
}

static const struct attempt rows[] = {
	{ "setuid", "become user 0", "user namespace with one user", try_setuid, JAIL },
	{ "setgid", "become group 0", "user namespace with one group", try_setgid, JAIL },
	{ "setgroups", "add groups", "no capability", try_setgroups, ROOT },
	{ "capabilities", "have any capability", "all sets empty", try_capabilities, JAIL },
	{ "capset", "take a capability", "no capability", try_capset, JAIL },
	{ "securebits", "change the secure bits", "locked, no capability", try_securebits, JAIL },
	{ "no_new_privs", "be without no_new_privs", "no_new_privs", try_no_new_privs, PLAIN },
	{ "seccomp_mode", "be without a system-call filter", "seccomp", try_seccomp_mode, PLAIN },
	{ "sched_fifo", "real-time scheduling", "no capability, rlimit", try_fifo, LOOK,
	  .capability = CAPABILITY(CAP_SYS_NICE) },
	{ "sched_deadline", "deadline scheduling", "no capability", try_deadline, ROOT },
	{ "nice", "a priority above normal", "no capability, rlimit", try_nice, ROOT },
	{ "ioprio", "real-time input and output", "no capability", try_ioprio, ROOT },
	{ "rlimit_raise", "raise a hard limit", "no capability", try_raise, ROOT,
	  .capability = CAPABILITY(CAP_SYS_RESOURCE) },
	{ "rlimit_inherited", "have the caller's right to priorities", "rlimit",
	  try_inherited_limits, ROOT, .capability = CAPABILITY(CAP_SYS_RESOURCE) },
	{ "core_dump", "dump core where the host says", "rlimit", try_core, PLAIN },
	{ "processes_many", "700 processes", "cgroup, rlimit", try_processes, PLAIN },
};

const struct attempts privilege_attempts = { "Identity and shares", rows, PROBE_LEN(rows) };
