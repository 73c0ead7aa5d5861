/*
 * The process keeps what it works with: sockets, pipes, its loop. It is nobody if it was root, its
 * system calls are a short list, and it can read a few files of /etc and nothing else.
 */
#include "net/egress/internal.h"

#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/calls.h"
#include "base/log.h"

/* Sanitizers look at the process from another one when it ends, and read /proc. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { NOBODY = 65534, FILES = 1 << 18 };

static const int allowed[] = {
	__NR_accept4,	    __NR_brk,
	__NR_clock_gettime, __NR_close,
	__NR_connect,	    __NR_dup,
	__NR_epoll_ctl,	    __NR_epoll_pwait,
	__NR_exit,	    __NR_exit_group,
	__NR_fcntl,	    __NR_fstat,
	__NR_futex,	    __NR_getpeername,
	__NR_getpid,	    __NR_getrandom,
	__NR_getsockname,   __NR_getsockopt,
	__NR_gettid,	    __NR_gettimeofday,
	__NR_ioctl,	    __NR_lseek,
	__NR_madvise,	    __NR_mlock,
	__NR_mmap,	    __NR_mprotect,
	__NR_mremap,	    __NR_munlock,
	__NR_munmap,	    __NR_newfstatat,
	__NR_openat,	    __NR_pipe2,
	__NR_read,	    __NR_recvfrom,
	__NR_recvmsg,	    __NR_restart_syscall,
	__NR_rt_sigaction,  __NR_rt_sigprocmask,
	__NR_rt_sigreturn,  __NR_sendmsg,
	__NR_sendto,	    __NR_setsockopt,
	__NR_shutdown,	    __NR_splice,
	__NR_uname,	    __NR_write,
	__NR_writev,
#ifdef __x86_64__
	__NR_epoll_wait,
#endif
};

/* Sockets only of the internet and local ones, and of the kernel's routes. */
static const struct calls_if also = { __NR_socket, 0, { AF_INET, AF_INET6, AF_UNIX, AF_NETLINK } };

/* Rights of Landlock's first version, and the two of the second and third. Kernels without it are
 * left with the filter and the rights of nobody. */
static int limit_files(void)
{
	enum { FIRST_RIGHTS = 13, REFER = 1 << 13, TRUNCATE = 1 << 14 };
	int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* VERSION */);
	struct landlock_ruleset_attr all = { .handled_access_fs = (1u << FIRST_RIGHTS) - 1 };
	struct landlock_path_beneath_attr etc = { .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE };
	autoclose int rules = -1, dir = -1;

	if (abi < 1)
		return 0;
	all.handled_access_fs |= (abi >= 2 ? REFER : 0) | (abi >= 3 ? TRUNCATE : 0);
	rules = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(all.handled_access_fs), 0);
	dir = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	etc.parent_fd = dir;
	if (rules < 0 || (dir >= 0 && syscall(SYS_landlock_add_rule, rules,
					      LANDLOCK_RULE_PATH_BENEATH, &etc, 0) < 0))
		return -1;
	return (int)syscall(SYS_landlock_restrict_self, rules, 0);
}

/* As many descriptors as can be had: each flow has two, each granted port of a sandbox one. */
static void raise_files(void)
{
	struct rlimit most = { .rlim_cur = FILES, .rlim_max = FILES }, now;

	if (getrlimit(RLIMIT_NOFILE, &now) < 0)
		return;
	if (now.rlim_max >= FILES)
		most.rlim_max = now.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &most) == 0)
		return;
	now.rlim_cur = now.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &now);
}

static int drop_privileges(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	/* in a user namespace of a user without rights there may be nobody else to be */
	if (geteuid() == 0 &&
	    (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	     setresuid(NOBODY, NOBODY, NOBODY) < 0) &&
	    errno != EINVAL && errno != EPERM)
		return -1;
	if (syscall(SYS_capset, &h, none) < 0)
		return -1;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* Newer versions of libuv make an io_uring for each loop, whatever UV_USE_IO_URING says, and abort
 * when the filter forbids its use. Without the call they do without it. */
static int forbid_rings(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = ARRAY_LEN(code), .filter = code };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int confine_start(struct err *e)
{
	const struct rlimit no_core = { 0, 0 };
	pid_t parent = getppid();

	signal(SIGPIPE, SIG_IGN); /* splice() has no other way */
	raise_files();
	if (setrlimit(RLIMIT_CORE, &no_core) < 0 || drop_privileges() < 0)
		return err_sys(e, errno, "give up privileges");
	/* after the user id has changed, which undoes both */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, SANITIZED) < 0 ||
	    forbid_rings() < 0)
		return err_sys(e, errno, "confine the egress proxy");
	if (getppid() != parent)
		_exit(1); /* too late to be told */
	return 0;
}

int confine_end(struct err *e)
{
	if (!SANITIZED &&
	    (limit_files() < 0 || calls_allow(allowed, ARRAY_LEN(allowed), &also) < 0))
		return err_sys(e, errno, "confine the egress proxy");
	return 0;
}
