#include "box/archive/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <locale.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stdbool.h>
#include <asm/unistd.h>

#include "base/calls.h"
#include "base/fd.h"
#include "base/mem.h"
#include "box/archive/mount.h"

enum {
	MEMORY_MORE = 768
		   /* address space beyond the caller's; a zstd window has 128 MiB */
		   << 20,
	CPU_SECONDS = 3600,
	FILES = 512,
};

/* The system calls of unpacking, of the allocator, and of ending a process. Others fail with
 * EPERM, signals too: the process has its caller's user id, and could end the caller's other
 * processes. */
static const int allowed[] = {
	__NR_brk,	   __NR_clock_gettime, __NR_close,	  __NR_copy_file_range,
	__NR_exit,	   __NR_exit_group,    __NR_fchmod,	  __NR_fstat,
	__NR_fstatfs,	   __NR_ftruncate,     __NR_futex,	  __NR_getdents64,
	__NR_getpid,	   __NR_getrandom,     __NR_gettid,	  __NR_linkat,
	__NR_lseek,	   __NR_madvise,       __NR_mkdirat,	  __NR_mmap,
	__NR_mprotect,	   __NR_mremap,	       __NR_munmap,	  __NR_newfstatat,
	__NR_openat,	   __NR_openat2,       __NR_pread64,	  __NR_pwrite64,
	__NR_read,	   __NR_readlinkat,    __NR_rt_sigaction, __NR_rt_sigprocmask,
	__NR_rt_sigreturn, __NR_sched_yield,   __NR_sigaltstack,  __NR_statx,
	__NR_symlinkat,	   __NR_unlinkat,      __NR_utimensat,	  __NR_write,
	__NR_writev,
#ifdef __x86_64__
	__NR_readlink,
#endif
};

/* fcntl() could request signals to any process when a descriptor is ready. Only commands used
 * for reading directories are allowed. */
static const struct calls_if also = { __NR_fcntl,
				      1,
				      { F_GETFL, F_GETFD, F_SETFD, F_DUPFD_CLOEXEC } };

/* Rights of Landlock's first version, and the two of the second and third. */
#define MAY_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define MAY_MAKE                                                                                   \
	(MAY_READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                            \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SYM)
enum { FIRST_RIGHTS = 13, REFER = 1 << 13, TRUNCATE = 1 << 14 };

static int allow_below(int rules, int dir, uint64_t rights)
{
	const struct landlock_path_beneath_attr rule = { .allowed_access = rights,
							 .parent_fd = dir };

	return dir < 0 ? 0
		       : (int)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH,
				      &rule, 0);
}

static int landlock_version(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* VERSION */);
}

static int limit_files(const struct confine *c)
{
	struct {
		uint64_t fs, net;
	} all = { .fs = (1u << FIRST_RIGHTS) - 1, .net = 3 };
	int abi = landlock_version();
	autoclose int rules = -1;

	if (abi < 1)
		return 0; /* leave_the_host() has done it */
	all.fs |= (abi >= 2 ? REFER : 0) | (abi >= 3 ? TRUNCATE : 0);
	rules = (int)syscall(SYS_landlock_create_ruleset, &all,
			     abi >= 4 ? sizeof(all) : sizeof(all.fs), 0);
	if (rules < 0 || allow_below(rules, c->write, (MAY_MAKE | REFER | TRUNCATE) & all.fs) < 0 ||
	    allow_below(rules, c->read, MAY_READ) < 0)
		return -1;
	return (int)syscall(SYS_landlock_restrict_self, rules, 0);
}

/* Replaces a directory's descriptor by a detached copy of its mount that starts at the
 * directory, so that nothing is above it. */
static int cut_off(int dir, uint64_t attr)
{
	autoclose int tree = dir < 0 ? -1 : mount_copy(dir, "", true);
	autoclose int copy = -1;

	if (dir < 0)
		return 0;
	if (tree < 0 || mount_setattr_tree(tree, attr, -1) < 0)
		return -1;
	copy = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return copy < 0 || dup3(copy, dir, O_CLOEXEC) < 0 ? -1 : 0;
}

/* Replaces Landlock. Even without privileges, root would own most files of the host. It needs
 * privileges itself, so it is refused to other users, whose files are as exposed. */
static int leave_the_host(const struct confine *c)
{
	int root = c->write >= 0 ? c->write : c->read;

	if (landlock_version() >= 1)
		return 0;
	if (cut_off(c->write, MOUNT_ATTR_NODEV) < 0 || cut_off(c->read, MOUNT_ATTR_RDONLY) < 0)
		return -1;
	/* without both: an empty folder that nobody can change */
	return (root < 0 ? chdir("/proc/self/fdinfo") : fchdir(root)) < 0 || chroot(".") < 0 ? -1
											     : 0;
}

static int drop_privileges(const struct confine *c)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 }, has[2] = { 0 };
	const uint32_t reads = 1u << CAP_DAC_READ_SEARCH;

	if (c->read >= 0 && syscall(SYS_capget, &h, has) == 0 && has[0].permitted & reads)
		none[0] = (struct __user_cap_data_struct){ .effective = reads, .permitted = reads };
	if (syscall(SYS_capset, &h, none) < 0)
		return -1;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static int limit_resource(int resource, uint64_t value)
{
	struct rlimit now;

	if (getrlimit((__rlimit_resource_t)resource, &now) < 0)
		return -1;
	now.rlim_max = value < now.rlim_max ? value : now.rlim_max;
	now.rlim_cur = now.rlim_max;
	/* SIGXCPU comes first: SIGKILL does not tell that it was this */
	if (resource == RLIMIT_CPU && now.rlim_cur > 1)
		now.rlim_cur--;
	return setrlimit((__rlimit_resource_t)resource, &now);
}

static int limit_resources(void)
{
	unsigned long pages = 0; /* address space in use */
	FILE *f = fopen("/proc/self/statm", "re");
	uint64_t now;

	if (f && fscanf(f, "%lu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	now = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
	if (limit_resource(RLIMIT_AS, now + MEMORY_MORE) < 0 ||
	    limit_resource(RLIMIT_CPU, CPU_SECONDS) < 0 || limit_resource(RLIMIT_CORE, 0) < 0)
		return -1;
	return limit_resource(RLIMIT_NOFILE, FILES);
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Closes all descriptors but the caller's choice, the one for the answer, and standard error,
 * which sanitizers write to. */
static int close_others(const struct confine *c, int answer)
{
	int keep[] = { 2, c->write, c->read, c->from, c->to, answer };
	unsigned at = 0;

	qsort(keep, ARRAY_LEN(keep), sizeof(keep[0]), by_number);
	for (size_t i = 0; i < ARRAY_LEN(keep); i++) {
		unsigned fd = (unsigned)keep[i];

		if (keep[i] < 0)
			continue;
		if (fd > at && syscall(SYS_close_range, at, fd - 1, 0) < 0)
			return -1;
		at = fd + 1;
	}
	return (int)syscall(SYS_close_range, at, ~0u, 0);
}

static int end_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -1;
	if (getppid() != parent)
		_exit(1); /* too late to be told */
	return 0;
}

static int confine_self(const struct confine *c, pid_t parent, int answer, struct err *e)
{
	setlocale(LC_CTYPE, "C.UTF-8"); /* of names in archives */
	umask(0);
	if (end_with(parent) < 0 || close_others(c, answer) < 0 || limit_resources() < 0 ||
	    leave_the_host(c) < 0 || drop_privileges(c) < 0 || limit_files(c) < 0 ||
	    calls_allow(allowed, ARRAY_LEN(allowed), &also) < 0) {
		err_sys(e, errno, "confine the process that is to %s", c->what);
		e->code = ERR_UNSUPPORTED;
		return -1;
	}
	return 0;
}

/* The reader must not trust this: the process may have been taken over. 1: it ended before. */
static int take_answer(int from, void *out, size_t size, struct err *e)
{
	struct err said = ERR_INIT;

	if (fd_read(from, &said, sizeof(said)) < 0)
		return 1;
	said.msg[sizeof(said.msg) - 1] = '\0';
	if (said.code == ERR_NONE)
		return fd_read(from, out, size) < 0;
	*e = said;
	if (e->code < ERR_NONE || e->code >= ERR_CODES)
		e->code = ERR_BUG;
	return -1;
}

int confine_run(const struct confine *c, int (*f)(void *arg, void *out, struct err *e), void *arg,
		void *out, size_t size, struct err *e)
{
	const pid_t parent = getpid();
	struct err said = ERR_INIT;
	char process[128];
	int ends[2], rc, status = 0;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "start to %s", c->what);
	pid = fork();
	if (pid == 0) {
		if (confine_self(c, parent, ends[1], &said) == 0)
			f(arg, out, &said);
		if (fd_write(ends[1], &said, sizeof(said)) == 0 && said.code == ERR_NONE &&
		    fd_write(ends[1], out, size) < 0)
			_exit(1);
		_exit(0);
	}
	close(ends[1]);
	rc = pid < 0 ? err_sys(e, errno, "start to %s", c->what)
		     : take_answer(ends[0], out, size, e);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (rc <= 0)
		return rc;
	snprintf(process, sizeof(process), "the process that was to %s", c->what);
	return err_ended(e, status, c->crash ? c->crash : ERR_IMAGE, process);
}
