#include "box/warden/seccomp.h"

#include "base/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
/* after the C library's headers, which may know fewer calls than the kernel's own list */
#include <asm/unistd.h>

/* newer than the oldest headers that we build with; the same number on every machine */
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif

#define ALLOW SECCOMP_RET_ALLOW
#define FAIL(errnum) (SECCOMP_RET_ERRNO | (errnum))

/* Calls that are allowed without a check. A call that is neither here nor in the rules below fails
 * as if the kernel did not know it, so calls of later kernels stay blocked until somebody has
 * reviewed them. */
static const int allowed[] = {
	__NR_accept,
	__NR_accept4,
	__NR_bind,
	__NR_brk,
	__NR_capget,
	__NR_capset,
	__NR_chdir,
	__NR_clock_getres,
	__NR_clock_gettime,
	__NR_clock_nanosleep,
	__NR_close,
	__NR_close_range,
	__NR_connect,
	__NR_copy_file_range,
	__NR_dup,
	__NR_dup3,
	__NR_epoll_create1,
	__NR_epoll_ctl,
	__NR_epoll_pwait,
	__NR_epoll_pwait2,
	__NR_eventfd2,
	__NR_execve,
	__NR_execveat,
	__NR_exit,
	__NR_exit_group,
	__NR_faccessat,
	__NR_faccessat2,
	__NR_fadvise64,
	__NR_fallocate,
	__NR_fchdir,
	__NR_fchown,
	__NR_fchownat,
	__NR_fdatasync,
	__NR_fgetxattr,
	__NR_flistxattr,
	__NR_flock,
	__NR_fremovexattr,
	__NR_fsetxattr,
	__NR_fstat,
	__NR_fstatfs,
	__NR_fsync,
	__NR_ftruncate,
	__NR_futex,
	__NR_futex_waitv,
	__NR_get_mempolicy,
	__NR_get_robust_list,
	__NR_getcpu,
	__NR_getcwd,
	__NR_getdents64,
	__NR_getegid,
	__NR_geteuid,
	__NR_getgid,
	__NR_getgroups,
	__NR_getitimer,
	__NR_getpeername,
	__NR_getpgid,
	__NR_getpid,
	__NR_getppid,
	__NR_getpriority,
	__NR_getrandom,
	__NR_getresgid,
	__NR_getresuid,
	__NR_getrlimit,
	__NR_getrusage,
	__NR_getsid,
	__NR_getsockname,
	__NR_getsockopt,
	__NR_gettid,
	__NR_gettimeofday,
	__NR_getuid,
	__NR_getxattr,
	__NR_inotify_add_watch,
	__NR_inotify_init1,
	__NR_inotify_rm_watch,
	__NR_io_cancel,
	__NR_io_destroy,
	__NR_io_getevents,
	__NR_io_pgetevents,
	__NR_io_setup,
	__NR_io_submit,
	__NR_ioprio_get,
	__NR_kill,
	__NR_landlock_add_rule,
	__NR_landlock_create_ruleset,
	__NR_landlock_restrict_self,
	__NR_lgetxattr,
	__NR_linkat,
	__NR_listen,
	__NR_listxattr,
	__NR_llistxattr,
	__NR_lremovexattr,
	__NR_lseek,
	__NR_lsetxattr,
	__NR_madvise,
	__NR_mbind,
	__NR_membarrier,
	__NR_mincore,
	__NR_mkdirat,
	__NR_mlock,
	__NR_mlock2,
	__NR_mlockall,
	__NR_mprotect,
	__NR_mq_getsetattr,
	__NR_mq_notify,
	__NR_mq_open,
	__NR_mq_timedreceive,
	__NR_mq_timedsend,
	__NR_mq_unlink,
	__NR_mremap,
	__NR_msgctl,
	__NR_msgget,
	__NR_msgrcv,
	__NR_msgsnd,
	__NR_msync,
	__NR_munlock,
	__NR_munlockall,
	__NR_munmap,
	__NR_nanosleep,
	__NR_newfstatat,
	__NR_pidfd_open,
	__NR_pidfd_send_signal,
	__NR_pipe2,
	__NR_pkey_alloc,
	__NR_pkey_free,
	__NR_pkey_mprotect,
	__NR_ppoll,
	__NR_pread64,
	__NR_preadv,
	__NR_preadv2,
	__NR_pselect6,
	__NR_pwrite64,
	__NR_pwritev,
	__NR_pwritev2,
	__NR_read,
	__NR_readahead,
	__NR_readlinkat,
	__NR_readv,
	__NR_recvfrom,
	__NR_recvmmsg,
	__NR_recvmsg,
	__NR_removexattr,
	__NR_renameat,
	__NR_renameat2,
	__NR_restart_syscall,
	__NR_rseq,
	__NR_rt_sigaction,
	__NR_rt_sigpending,
	__NR_rt_sigprocmask,
	__NR_rt_sigqueueinfo,
	__NR_rt_sigreturn,
	__NR_rt_sigsuspend,
	__NR_rt_sigtimedwait,
	__NR_rt_tgsigqueueinfo,
	__NR_sched_get_priority_max,
	__NR_sched_get_priority_min,
	__NR_sched_getaffinity,
	__NR_sched_getattr,
	__NR_sched_getparam,
	__NR_sched_getscheduler,
	__NR_sched_rr_get_interval,
	__NR_sched_yield,
	__NR_seccomp,
	__NR_semctl,
	__NR_semget,
	__NR_semop,
	__NR_semtimedop,
	__NR_sendfile,
	__NR_sendmmsg,
	__NR_sendmsg,
	__NR_sendto,
	__NR_set_mempolicy,
	__NR_set_mempolicy_home_node,
	__NR_set_robust_list,
	__NR_set_tid_address,
	__NR_setfsgid,
	__NR_setfsuid,
	__NR_setgid,
	__NR_setgroups,
	__NR_setitimer,
	__NR_setpgid,
	__NR_setregid,
	__NR_setresgid,
	__NR_setresuid,
	__NR_setreuid,
	__NR_setrlimit,
	__NR_setsid,
	__NR_setsockopt,
	__NR_setuid,
	__NR_setxattr,
	__NR_shmat,
	__NR_shmctl,
	__NR_shmdt,
	__NR_shutdown,
	__NR_sigaltstack,
	__NR_signalfd4,
	__NR_splice,
	__NR_statfs,
	__NR_statx,
	__NR_symlinkat,
	__NR_sync,
	__NR_sync_file_range,
	__NR_syncfs,
	__NR_sysinfo,
	__NR_tee,
	__NR_tgkill,
	__NR_timer_create,
	__NR_timer_delete,
	__NR_timer_getoverrun,
	__NR_timer_gettime,
	__NR_timer_settime,
	__NR_timerfd_create,
	__NR_timerfd_gettime,
	__NR_timerfd_settime,
	__NR_times,
	__NR_tkill,
	__NR_truncate,
	__NR_umask,
	__NR_uname,
	__NR_unlinkat,
	__NR_utimensat,
	__NR_vmsplice,
	__NR_wait4,
	__NR_waitid,
	__NR_write,
	__NR_writev,
#ifdef __x86_64__
	__NR_access,
	__NR_alarm,
	__NR_arch_prctl,
	__NR_chown,
	__NR_dup2,
	__NR_epoll_create,
	__NR_epoll_wait,
	__NR_eventfd,
	__NR_fork,
	__NR_futimesat,
	__NR_get_thread_area,
	__NR_getdents,
	__NR_getpgrp,
	__NR_inotify_init,
	__NR_lchown,
	__NR_link,
	__NR_lstat,
	__NR_mkdir,
	__NR_pause,
	__NR_pipe,
	__NR_poll,
	__NR_readlink,
	__NR_rename,
	__NR_rmdir,
	__NR_select,
	__NR_set_thread_area,
	__NR_signalfd,
	__NR_stat,
	__NR_symlink,
	__NR_time,
	__NR_unlink,
	__NR_utime,
	__NR_utimes,
	__NR_vfork,
#endif
};

/* Checks of arguments, each a few instructions at the end of the walk. */
enum check {
	NO_CHECK,
	CHECK_CLONE, /* no new namespaces */
	/* unix; inet with the common protocols, since for others the kernel would load modules; and
	 * netlink for routes only */
	CHECK_SOCKET,
	CHECK_SOCKETPAIR, /* unix */
	/* Programs may not push characters into a terminal, take a console, or choose another line
	 * discipline, for which the kernel would load drivers. */
	CHECK_IOCTL,
	CHECK_MODE_1, /* no set-user-id or set-group-id bits in argument 1, 2 … */
	CHECK_MODE_2,
	CHECK_OPEN, /* the same where the flags in argument 1 create a file */
	CHECK_OPENAT, /* flags in argument 2 */
	CHECK_PERSONALITY, /* only read, or set to its present value */
	CHECK_FCNTL, /* no leases: those who open the file would wait, and PID 1 opens files */
	CHECK_NOT_INIT, /* not on PID 1, which has the same user: argument 0 */
	CHECK_PTRACE, /* the same in argument 1 */
	CHECK_PRIORITY, /* the same for a process, a group, and not for all of a user */
	CHECK_IOPRIO,
	/* No huge pages: few hosts can count them for a sandbox, so it could take all. Programs use
	 * others where there are none. */
	CHECK_MMAP,
	CHECK_MEMFD,
	CHECK_SHMGET,
	CHECK_PRCTL, /* a program stays a subreaper: see init.c */
};

struct rule {
	int nr;
	unsigned action;
	enum check check;
};

static const struct rule rules[] = {
	/* depends on arguments */
	{ __NR_clone, 0, CHECK_CLONE },
	{ __NR_socket, 0, CHECK_SOCKET },
	{ __NR_socketpair, 0, CHECK_SOCKETPAIR },
	{ __NR_ioctl, 0, CHECK_IOCTL },
	{ __NR_fchmod, 0, CHECK_MODE_1 },
	{ __NR_fchmodat, 0, CHECK_MODE_2 },
	{ __NR_fchmodat2, 0, CHECK_MODE_2 },
	{ __NR_mknodat, 0, CHECK_MODE_2 },
	{ __NR_openat, 0, CHECK_OPENAT },
	{ __NR_personality, 0, CHECK_PERSONALITY },
	{ __NR_prctl, 0, CHECK_PRCTL },
	{ __NR_fcntl, 0, CHECK_FCNTL },
	{ __NR_mmap, 0, CHECK_MMAP },
	{ __NR_memfd_create, 0, CHECK_MEMFD },
	{ __NR_shmget, 0, CHECK_SHMGET },
	{ __NR_prlimit64, 0, CHECK_NOT_INIT },
	{ __NR_sched_setaffinity, 0, CHECK_NOT_INIT },
	{ __NR_sched_setattr, 0, CHECK_NOT_INIT },
	{ __NR_sched_setparam, 0, CHECK_NOT_INIT },
	{ __NR_sched_setscheduler, 0, CHECK_NOT_INIT },
	{ __NR_setpriority, 0, CHECK_PRIORITY },
	{ __NR_ioprio_set, 0, CHECK_IOPRIO },
#ifdef __x86_64__
	{ __NR_chmod, 0, CHECK_MODE_1 },
	{ __NR_creat, 0, CHECK_MODE_1 },
	{ __NR_mknod, 0, CHECK_MODE_1 },
	{ __NR_open, 0, CHECK_OPEN },
	/* on this machine only */
	{ __NR_uselib, FAIL(EPERM), NO_CHECK },
	{ __NR_ustat, FAIL(ENOSYS), NO_CHECK },
	{ __NR_sysfs, FAIL(ENOSYS), NO_CHECK },
	{ __NR_modify_ldt, FAIL(EPERM), NO_CHECK },
	{ __NR__sysctl, FAIL(ENOSYS), NO_CHECK },
	{ __NR_iopl, FAIL(EPERM), NO_CHECK },
	{ __NR_ioperm, FAIL(EPERM), NO_CHECK },
	{ __NR_create_module, FAIL(ENOSYS), NO_CHECK },
	{ __NR_get_kernel_syms, FAIL(ENOSYS), NO_CHECK },
	{ __NR_query_module, FAIL(ENOSYS), NO_CHECK },
	{ __NR_getpmsg, FAIL(ENOSYS), NO_CHECK },
	{ __NR_putpmsg, FAIL(ENOSYS), NO_CHECK },
	{ __NR_afs_syscall, FAIL(ENOSYS), NO_CHECK },
	{ __NR_tuxcall, FAIL(ENOSYS), NO_CHECK },
	{ __NR_security, FAIL(ENOSYS), NO_CHECK },
	{ __NR_epoll_ctl_old, FAIL(ENOSYS), NO_CHECK },
	{ __NR_epoll_wait_old, FAIL(ENOSYS), NO_CHECK },
	{ __NR_vserver, FAIL(ENOSYS), NO_CHECK },
#endif
	/* a filter can't see into their structures; libraries fall back to the older call */
	{ __NR_clone3, FAIL(ENOSYS), NO_CHECK },
	{ __NR_openat2, FAIL(ENOSYS), NO_CHECK },
	/* namespaces, mounts, roots */
	{ __NR_unshare, FAIL(EPERM), NO_CHECK },
	{ __NR_setns, FAIL(EPERM), NO_CHECK },
	{ __NR_mount, FAIL(EPERM), NO_CHECK },
	{ __NR_umount2, FAIL(EPERM), NO_CHECK },
	{ __NR_pivot_root, FAIL(EPERM), NO_CHECK },
	{ __NR_chroot, FAIL(EPERM), NO_CHECK },
	{ __NR_open_tree, FAIL(EPERM), NO_CHECK },
	{ __NR_move_mount, FAIL(EPERM), NO_CHECK },
	{ __NR_fsopen, FAIL(EPERM), NO_CHECK },
	{ __NR_fsconfig, FAIL(EPERM), NO_CHECK },
	{ __NR_fsmount, FAIL(EPERM), NO_CHECK },
	{ __NR_fspick, FAIL(EPERM), NO_CHECK },
	{ __NR_mount_setattr, FAIL(EPERM), NO_CHECK },
	{ __NR_quotactl, FAIL(EPERM), NO_CHECK },
	{ __NR_quotactl_fd, FAIL(EPERM), NO_CHECK },
	{ __NR_swapon, FAIL(EPERM), NO_CHECK },
	{ __NR_swapoff, FAIL(EPERM), NO_CHECK },
	{ __NR_name_to_handle_at, FAIL(EPERM), NO_CHECK },
	{ __NR_open_by_handle_at, FAIL(EPERM), NO_CHECK },
	{ __NR_fanotify_init, FAIL(EPERM), NO_CHECK },
	{ __NR_fanotify_mark, FAIL(EPERM), NO_CHECK },
	/* other processes */
	{ __NR_ptrace, FAIL(EPERM), NO_CHECK },
	{ __NR_process_vm_readv, FAIL(EPERM), NO_CHECK },
	{ __NR_process_vm_writev, FAIL(EPERM), NO_CHECK },
	{ __NR_process_madvise, FAIL(EPERM), NO_CHECK },
	{ __NR_process_mrelease, FAIL(EPERM), NO_CHECK },
	{ __NR_pidfd_getfd, FAIL(EPERM), NO_CHECK },
	{ __NR_kcmp, FAIL(EPERM), NO_CHECK },
	{ __NR_migrate_pages, FAIL(EPERM), NO_CHECK },
	{ __NR_move_pages, FAIL(EPERM), NO_CHECK },
	/* large attack surfaces of the kernel */
	{ __NR_io_uring_setup, FAIL(ENOSYS), NO_CHECK },
	{ __NR_io_uring_enter, FAIL(ENOSYS), NO_CHECK },
	{ __NR_io_uring_register, FAIL(ENOSYS), NO_CHECK },
	{ __NR_bpf, FAIL(EPERM), NO_CHECK },
	{ __NR_perf_event_open, FAIL(EPERM), NO_CHECK },
	{ __NR_userfaultfd, FAIL(EPERM), NO_CHECK },
	{ __NR_add_key, FAIL(EPERM), NO_CHECK },
	{ __NR_request_key, FAIL(EPERM), NO_CHECK },
	{ __NR_keyctl, FAIL(EPERM), NO_CHECK },
	{ __NR_memfd_secret, FAIL(ENOSYS), NO_CHECK },
	{ __NR_lookup_dcookie, FAIL(EPERM), NO_CHECK },
	{ __NR_nfsservctl, FAIL(ENOSYS), NO_CHECK },
	{ __NR_vhangup, FAIL(EPERM), NO_CHECK },
	{ __NR_remap_file_pages, FAIL(ENOSYS), NO_CHECK },
	/* the machine */
	{ __NR_reboot, FAIL(EPERM), NO_CHECK },
	{ __NR_kexec_load, FAIL(EPERM), NO_CHECK },
	{ __NR_kexec_file_load, FAIL(EPERM), NO_CHECK },
	{ __NR_init_module, FAIL(EPERM), NO_CHECK },
	{ __NR_finit_module, FAIL(EPERM), NO_CHECK },
	{ __NR_delete_module, FAIL(EPERM), NO_CHECK },
	{ __NR_acct, FAIL(EPERM), NO_CHECK },
	{ __NR_syslog, FAIL(EPERM), NO_CHECK },
	{ __NR_settimeofday, FAIL(EPERM), NO_CHECK },
	{ __NR_clock_settime, FAIL(EPERM), NO_CHECK },
	{ __NR_clock_adjtime, FAIL(EPERM), NO_CHECK },
	{ __NR_adjtimex, FAIL(EPERM), NO_CHECK },
	{ __NR_sethostname, FAIL(EPERM), NO_CHECK },
	{ __NR_setdomainname, FAIL(EPERM), NO_CHECK },
};

/* Used instead of those above where programs may trace each other. A tracer gains nothing by that:
 * the kernel applies the filter to the final call, after the tracer could change it, and neither
 * PID 1 nor its forks are dumpable. */
static const struct rule debug_rules[] = {
	{ __NR_ptrace, 0, CHECK_PTRACE },
	{ __NR_process_vm_readv, 0, CHECK_NOT_INIT },
	{ __NR_process_vm_writev, 0, CHECK_NOT_INIT },
};

/* Flags of memfd_create() that no kernel knows, with which programs ask whether it is there. */
#define MEMFD_UNKNOWN 0x03ffffe0

enum {
	N_RULES = sizeof(rules) / sizeof(rules[0]),
	RANGES_MAX = 2 * N_RULES + 32,
	NR_MAX = 1023, /* no higher number is in use on any machine; higher ones fail like 1023 */
	LEAVES_MAX = 32,
	JUMP_MAX = 255, /* longest jump of a condition; a longer one takes an intermediate jump */
};

/* The numbers from `first` up to the first of the next range are treated alike. */
struct range {
	unsigned first, action;
	enum check check;
};

/* The verdict on a call, emitted once for all ranges with it. */
struct leaf {
	unsigned action, place;
	enum check check;
};

/*
 * The program is built from its end to its beginning, since jumps only go forward: the target of a
 * jump exists already. Places are counted from the end. At last the whole program is reversed.
 */
struct build {
	struct seccomp_filter *f;
	struct range ranges[RANGES_MAX];
	unsigned n_ranges;
	struct leaf leaves[LEAVES_MAX];
	unsigned n_leaves;
	int overflow;
};

#define LOAD(what)                                                                                 \
	((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,                                    \
				      (unsigned)offsetof(struct seccomp_data, what)))
#define RET(action) ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action))
#define IF_EQ(k, yes, no) ((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, yes, no))
#define IF_SET(k, yes, no) ((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, k, yes, no))
#define IF_GE(k, yes, no) ((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, k, yes, no))

#define NEW_NAMESPACES                                                                             \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET | CLONE_PARENT)
#define SET_ID_BITS (S_ISUID | S_ISGID)

/* Arguments are 64 bits wide, low word first on these machines. The kernel itself looks at the
 * low 32 bits of each argument checked here, so high bits can't smuggle anything. */
static const struct {
	struct sock_filter insns[16];
	unsigned n;
} checks[] = {
	[CHECK_CLONE] = { { LOAD(args[0]), IF_SET(NEW_NAMESPACES, 0, 1), RET(FAIL(EPERM)),
			    RET(ALLOW) },
			  4 },
	[CHECK_SOCKET] = { { LOAD(args[0]), IF_EQ(AF_UNIX, 12, 0), IF_EQ(AF_INET, 4, 0),
			     IF_EQ(AF_INET6, 3, 0), IF_EQ(AF_NETLINK, 0, 10), LOAD(args[2]),
			     IF_EQ(NETLINK_ROUTE, 7, 8), LOAD(args[2]), IF_EQ(0, 5, 0),
			     IF_EQ(IPPROTO_TCP, 4, 0), IF_EQ(IPPROTO_UDP, 3, 0),
			     IF_EQ(IPPROTO_ICMP, 2, 0), IF_EQ(IPPROTO_ICMPV6, 1, 0),
			     RET(FAIL(EPROTONOSUPPORT)), RET(ALLOW), RET(FAIL(EAFNOSUPPORT)) },
			   16 },
	[CHECK_SOCKETPAIR] = { { LOAD(args[0]), IF_EQ(AF_UNIX, 0, 1), RET(ALLOW),
				 RET(FAIL(EAFNOSUPPORT)) },
			       4 },
	[CHECK_IOCTL] = { { LOAD(args[1]), IF_EQ(TIOCSTI, 3, 0), IF_EQ(TIOCLINUX, 2, 0),
			    IF_EQ(TIOCSETD, 1, 0), IF_EQ(TIOCCONS, 0, 1), RET(FAIL(EPERM)),
			    RET(ALLOW) },
			  7 },
	[CHECK_MODE_1] = { { LOAD(args[1]), IF_SET(SET_ID_BITS, 0, 1), RET(FAIL(EPERM)),
			     RET(ALLOW) },
			   4 },
	[CHECK_MODE_2] = { { LOAD(args[2]), IF_SET(SET_ID_BITS, 0, 1), RET(FAIL(EPERM)),
			     RET(ALLOW) },
			   4 },
	[CHECK_OPEN] = { { LOAD(args[1]), IF_SET(O_CREAT | (O_TMPFILE & ~O_DIRECTORY), 0, 3),
			   LOAD(args[2]), IF_SET(SET_ID_BITS, 0, 1), RET(FAIL(EPERM)), RET(ALLOW) },
			 6 },
	[CHECK_OPENAT] = { { LOAD(args[2]), IF_SET(O_CREAT | (O_TMPFILE & ~O_DIRECTORY), 0, 3),
			     LOAD(args[3]), IF_SET(SET_ID_BITS, 0, 1), RET(FAIL(EPERM)),
			     RET(ALLOW) },
			   6 },
	[CHECK_PERSONALITY] = { { LOAD(args[0]), IF_EQ(0, 1, 0), IF_EQ(0xffffffff, 0, 1),
				  RET(ALLOW), RET(FAIL(EPERM)) },
				5 },
	[CHECK_FCNTL] = { { LOAD(args[1]), IF_EQ(F_SETLEASE, 0, 1), RET(FAIL(EINVAL)), RET(ALLOW) },
			  4 },
	[CHECK_NOT_INIT] = { { LOAD(args[0]), IF_EQ(1, 0, 1), RET(FAIL(EPERM)), RET(ALLOW) }, 4 },
	[CHECK_PTRACE] = { { LOAD(args[1]), IF_EQ(1, 0, 1), RET(FAIL(EPERM)), RET(ALLOW) }, 4 },
	[CHECK_PRIORITY] = { { LOAD(args[0]), IF_EQ(2 /* PRIO_USER */, 2, 0), LOAD(args[1]),
			       IF_EQ(1, 0, 1), RET(FAIL(EPERM)), RET(ALLOW) },
			     6 },
	[CHECK_IOPRIO] = { { LOAD(args[0]), IF_EQ(3 /* IOPRIO_WHO_USER */, 2, 0), LOAD(args[1]),
			     IF_EQ(1, 0, 1), RET(FAIL(EPERM)), RET(ALLOW) },
			   6 },
	[CHECK_MMAP] = { { LOAD(args[3]), IF_SET(MAP_HUGETLB, 0, 1), RET(FAIL(ENOMEM)),
			   RET(ALLOW) },
			 4 },
	[CHECK_MEMFD] = { { LOAD(args[1]), IF_SET(MFD_HUGETLB, 0, 3), IF_SET(MEMFD_UNKNOWN, 0, 1),
			    RET(FAIL(EINVAL)), RET(FAIL(ENOMEM)), RET(ALLOW) },
			  6 },
	[CHECK_SHMGET] = { { LOAD(args[2]), IF_SET(SHM_HUGETLB, 0, 1), RET(FAIL(ENOMEM)),
			     RET(ALLOW) },
			   4 },
	[CHECK_PRCTL] = { { LOAD(args[0]), IF_EQ(PR_SET_CHILD_SUBREAPER, 0, 2), LOAD(args[1]),
			    IF_EQ(0, 1, 0), RET(ALLOW), RET(FAIL(EPERM)) },
			  6 },
};

/* Returns the place of the new instruction. */
static unsigned emit(struct build *b, struct sock_filter insn)
{
	if (b->f->n == SECCOMP_INSNS_MAX) {
		b->overflow = 1;
		return 0;
	}
	b->f->insns[b->f->n] = insn;
	return b->f->n++;
}

static void add_range(struct build *b, unsigned first, unsigned action, enum check check)
{
	struct range *last = b->n_ranges ? &b->ranges[b->n_ranges - 1] : NULL;

	if (last && last->action == action && last->check == check)
		return;
	if (b->n_ranges == RANGES_MAX)
		b->overflow = 1;
	else
		b->ranges[b->n_ranges++] = (struct range){ first, action, check };
}

static bool is_of_mode(enum check check)
{
	return check == CHECK_MODE_1 || check == CHECK_MODE_2 || check == CHECK_OPEN ||
	       check == CHECK_OPENAT;
}

static void set_verdicts(struct range *verdicts, const struct rule *r, size_t n, unsigned kind)
{
	for (size_t i = 0; i < n; i++) {
		bool free = (kind & SECCOMP_SET_ID) && is_of_mode(r[i].check);

		if (r[i].nr >= 0 && r[i].nr <= NR_MAX)
			verdicts[r[i].nr] = (struct range){ .action = free ? ALLOW : r[i].action,
							    .check = free ? NO_CHECK : r[i].check };
	}
}

static void find_ranges(struct build *b, unsigned kind)
{
	struct range verdicts[NR_MAX + 1]; /* by number */

	for (unsigned nr = 0; nr <= NR_MAX; nr++)
		verdicts[nr] = (struct range){ .action = FAIL(ENOSYS), .check = NO_CHECK };
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		if (allowed[i] >= 0 && allowed[i] <= NR_MAX)
			verdicts[allowed[i]].action = ALLOW;
	}
	set_verdicts(verdicts, rules, N_RULES, kind);
	if (kind & SECCOMP_DEBUG)
		set_verdicts(verdicts, debug_rules, sizeof(debug_rules) / sizeof(debug_rules[0]),
			     kind);
	for (unsigned nr = 0; nr <= NR_MAX; nr++)
		add_range(b, nr, verdicts[nr].action, verdicts[nr].check);
}

static unsigned emit_leaf(struct build *b, const struct range *r)
{
	unsigned i = 0, place = 0;

	while (i < b->n_leaves &&
	       (b->leaves[i].action != r->action || b->leaves[i].check != r->check))
		i++;
	if (i < b->n_leaves)
		return b->leaves[i].place;
	if (r->check) {
		for (unsigned k = checks[r->check].n; k > 0; k--)
			place = emit(b, checks[r->check].insns[k - 1]);
	} else {
		place = emit(b, RET(r->action));
	}
	if (i == LEAVES_MAX)
		b->overflow = 1;
	else
		b->leaves[b->n_leaves++] = (struct leaf){ r->action, place, r->check };
	return place;
}

/* The distance to a place from the instruction that is emitted next. */
static unsigned way_to(const struct build *b, unsigned place)
{
	return b->f->n - place - 1;
}

/* Returns a place that the next two instructions can reach and that leads to the given one. */
static unsigned emit_stone(struct build *b, unsigned place)
{
	if (way_to(b, place) + 2 <= JUMP_MAX)
		return place;
	return emit(b, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, way_to(b, place)));
}

/* Emits the decision among ranges lo to hi; gives the place where it begins. */
static unsigned emit_tree(struct build *b, unsigned lo, unsigned hi)
{
	unsigned mid = (lo + hi + 1) / 2, high, low;

	if (lo == hi)
		return emit_leaf(b, &b->ranges[lo]);
	high = emit_tree(b, mid, hi);
	low = emit_tree(b, lo, mid - 1);
	high = emit_stone(b, high);
	low = emit_stone(b, low);
	return emit(b, IF_GE(b->ranges[mid].first, (unsigned char)way_to(b, high),
			     (unsigned char)way_to(b, low)));
}

int seccomp_build(struct seccomp_filter *ret_filter, unsigned kind)
{
	struct build b = { .f = ret_filter };

	ret_filter->n = 0;
	find_ranges(&b, kind);
	emit_tree(&b, 0, b.n_ranges - 1);
	emit(&b, LOAD(nr));
	emit(&b, RET(SECCOMP_RET_KILL_PROCESS)); /* calls of another architecture: int 0x80 */
	emit(&b, IF_EQ(CALLS_ARCH, 1, 0));
	emit(&b, LOAD(arch));
	/* it was built from its end */
	for (unsigned i = 0; i < ret_filter->n / 2u; i++) {
		struct sock_filter insn = ret_filter->insns[i];

		ret_filter->insns[i] = ret_filter->insns[ret_filter->n - 1u - i];
		ret_filter->insns[ret_filter->n - 1u - i] = insn;
	}
	return b.overflow ? -1 : 0;
}

int seccomp_load(const struct seccomp_filter *filter)
{
	struct sock_fprog prog = {
		.len = filter->n,
		.filter = (struct sock_filter *)filter->insns,
	};

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}
