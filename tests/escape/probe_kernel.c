/* Wide doors into the kernel, and ways around a system-call filter. */
#include "probe.h"

#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Rows that are one call. */
#define ATTEMPT(name, call)                                                                        \
	static enum result name(struct found *f)                                                   \
	{                                                                                          \
		return tried(f, (call));                                                           \
	}

enum {
	PROCESS_KEYRING = -2, /* KEY_SPEC_PROCESS_KEYRING */
	USER_MODE_ONLY = 1, /* of userfaultfd */
	FAN_REPORT_FID_ = 0x200,
};

static uint64_t zero[64];

ATTEMPT(try_io_uring, syscall(SYS_io_uring_setup, 4, zero))
ATTEMPT(try_userfaultfd, syscall(SYS_userfaultfd, USER_MODE_ONLY | O_CLOEXEC))
ATTEMPT(try_add_key, syscall(SYS_add_key, "user", "holt-probe", "x", 1ul, PROCESS_KEYRING))
ATTEMPT(try_keyctl, syscall(SYS_keyctl, 0 /* its id */, PROCESS_KEYRING, 1))
ATTEMPT(try_fanotify, syscall(SYS_fanotify_init, FAN_REPORT_FID_, O_RDONLY))
ATTEMPT(try_memfd_secret, syscall(447 /* memfd_secret */, 0))
/* Without reservation they work where no page is in the pool. */
ATTEMPT(try_huge_memfd, memfd_create("probe", MFD_CLOEXEC | MFD_HUGETLB))
ATTEMPT(try_personality, personality(ADDR_NO_RANDOMIZE))
ATTEMPT(try_quotactl, syscall(SYS_quotactl, 0x800001 << 8 /* sync */, NULL, 0, NULL))

static enum result try_huge_segment(struct found *f)
{
	int id = shmget(IPC_PRIVATE, 2 << 20, 0600 | SHM_HUGETLB | SHM_NORESERVE);
	enum result r = tried(f, id);

	if (id >= 0)
		shmctl(id, IPC_RMID, NULL);
	return r;
}

static enum result try_huge_pages(struct found *f)
{
	void *at = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_HUGETLB, -1, 0);

	return tried(f, at == MAP_FAILED ? -1 : 0);
}

static enum result try_request_key(struct found *f)
{
	enum result r = tried(f, syscall(SYS_request_key, "user", "holt-none", NULL, 0));

	return f->errnum == ENOKEY ? OPEN : r; /* it was searched for */
}

static enum result try_bpf(struct found *f)
{
	struct {
		uint32_t type, key, value, max, flags;
		uint32_t rest[24];
	} array = { .type = 2, .key = 4, .value = 4, .max = 1 };

	return tried(f, syscall(SYS_bpf, 0 /* make a map */, &array, sizeof(array)));
}

static enum result try_perf(struct found *f)
{
	struct {
		uint32_t type, size;
		uint64_t config, period, sample, read, flags;
		uint64_t rest[9];
	} clock = { .type = 1, .size = sizeof(clock), .flags = 1u << 5 | 1u << 6 };

	return tried(f, syscall(SYS_perf_event_open, &clock, 0, -1, -1, 0));
}

/* A file by its number instead of its name: where nobody gives the handle, the usual one of a root
 * directory is guessed. */
static struct {
	unsigned bytes;
	int type;
	unsigned char handle[128];
} file_handle = { .bytes = 128 };

static int handle_of_usr(void)
{
	int mount_id;

	return (int)syscall(SYS_name_to_handle_at, AT_FDCWD, "/usr", &file_handle, &mount_id, 0);
}

ATTEMPT(try_name_to_handle, handle_of_usr())

static enum result try_open_by_handle(struct found *f)
{
	int root = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (handle_of_usr() < 0) {
		file_handle.bytes = 8;
		file_handle.type = 1;
		file_handle.handle[0] = 2;
	}
	return tried_open(f, (int)syscall(SYS_open_by_handle_at, root, &file_handle, O_RDONLY));
}

/* ---- namespaces by clone --------------------------------------------------------------------- */

static enum result try_clone_user(struct found *f)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, 0ul);

	if (pid == 0)
		_exit(0);
	return tried(f, pid);
}

static enum result try_clone3_user(struct found *f)
{
	uint64_t args[8] = { CLONE_NEWUSER, [4] = SIGCHLD };
	long pid = syscall(SYS_clone3, args, sizeof(args));

	if (pid == 0)
		_exit(0);
	return tried(f, pid);
}

/* The filter looks at a word of 32 bits; does the kernel look at more? */
static enum result try_clone_high(struct found *f)
{
	unsigned long flags = 1ul << 32 | CLONE_NEWUSER | SIGCHLD;
	long pid = syscall(SYS_clone, flags, NULL, NULL, NULL, 0ul);

	if (pid == 0)
		_exit(0);
	return tried(f, pid);
}

/* ---- other ways to call ---------------------------------------------------------------------- */

#ifdef __x86_64__
static sigjmp_buf before_int80;

static void on_fault(int signal)
{
	siglongjmp(before_int80, 1);
}

static enum result try_int80(struct found *f)
{
	long ret;

	if (sigsetjmp(before_int80, 1)) { /* not in this kernel, or not on this machine */
		f->errnum = ENOSYS;
		return ABSENT;
	}
	signal(SIGSEGV, on_fault);
	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(20L /* getpid of i386 */) : "memory");
	errno = (int)-ret;
	return tried(f, ret < 0 ? -1 : 0);
}

ATTEMPT(try_x32, syscall(0x40000000L | __NR_getpid))
ATTEMPT(try_modify_ldt, syscall(SYS_modify_ldt, 0 /* read */, zero, sizeof(zero)))
#endif

ATTEMPT(try_process_madvise,
	syscall(SYS_process_madvise, syscall(SYS_pidfd_open, getpid(), 0),
		&(uint64_t[2]){ (uint64_t)(uintptr_t)zero, 0 }, 1ul, 20 /* MADV_COLD */, 0))
ATTEMPT(try_kcmp, syscall(SYS_kcmp, getpid(), getpid(), 0 /* file */, 0, 0))
ATTEMPT(try_pidfd_getfd, syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, getpid(), 0), 0, 0))

/* ---- filters upon the filter ----------------------------------------------------------------- */

static int add_filter(unsigned flags, unsigned short n, struct sock_filter *insns)
{
	struct sock_fprog prog = { .len = n, .filter = insns };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

/* A filter of one's own that allows everything does not loosen the one below it. */
static enum result try_stack(struct found *f)
{
	struct sock_filter allow[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };

	if (add_filter(0, 1, allow) < 0)
		return tried(f, -1);
	return tried(f, unshare(CLONE_NEWUSER));
}

/* One that asks a supervisor, who says "go on". */
static enum result try_notify(struct found *f)
{
	struct sock_filter ask[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_unshare, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	int listener = add_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER, 4, ask), status;
	struct seccomp_notif_resp resp = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	struct seccomp_notif req = { 0 };
	pid_t child;

	if (listener < 0)
		return tried(f, -1);
	child = fork();
	if (child == 0)
		_exit(unshare(CLONE_NEWUSER) < 0 ? errno : 0);
	while (waitpid(child, &status, WNOHANG) == 0) {
		struct pollfd p = { .fd = listener, .events = POLLIN };

		if (poll(&p, 1, 1) == 1 && ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &req) == 0) {
			resp.id = req.id;
			ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
		}
	}
	errno = WEXITSTATUS(status);
	return tried(f, errno ? -1 : 0);
}

/* ---- characters pushed into a terminal ------------------------------------------------------- */

/* A terminal of our own where there can be one, as the controlling one; else what is there. */
static int terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;

	if (master < 0)
		return STDIN_FILENO;
	grantpt(master);
	unlockpt(master);
	setsid();
	slave = open(ptsname(master), O_RDWR | O_CLOEXEC);
	return slave < 0 ? STDIN_FILENO : slave;
}

/* setsid() does nothing for the leader of a group, so this takes another process. */
static enum result push(struct found *f, unsigned long request)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(syscall(SYS_ioctl, terminal(), request, "x") < 0 ? errno : 0);
	waitpid(pid, &status, 0);
	errno = WEXITSTATUS(status);
	return tried(f, errno ? -1 : 0);
}

static enum result try_tiocsti(struct found *f)
{
	return push(f, TIOCSTI);
}

static enum result try_tiocsti_high(struct found *f)
{
	return push(f, 1ul << 32 | TIOCSTI);
}

/* With the discipline that it has, so that outside nothing changes. */
static enum result try_tiocsetd(struct found *f)
{
	pid_t pid = fork();
	int status, usual = 0;

	if (pid == 0)
		_exit(ioctl(terminal(), TIOCSETD, &usual) < 0 ? errno : 0);
	waitpid(pid, &status, 0);
	errno = WEXITSTATUS(status);
	return tried(f, errno ? -1 : 0);
}

static enum result try_tioclinux(struct found *f)
{
	return push(f, TIOCLINUX);
}

static enum result try_tioccons(struct found *f)
{
	return push(f, TIOCCONS);
}

/* ---- harmless, and allowed ------------------------------------------------------------------- */

static enum result try_memfd_exec(struct found *f)
{
	char *const argv[] = { (char *)"probe", (char *)"--list", NULL }, *const envp[] = { NULL };
	int fd = memfd_create("probe", MFD_CLOEXEC), self = open("/proc/self/exe", O_RDONLY);
	char buf[65536];
	pid_t pid;
	ssize_t n;
	int status;

	while (self >= 0 && (n = read(self, buf, sizeof(buf))) > 0) {
		if (write(fd, buf, (size_t)n) != n)
			return tried(f, -1);
	}
	pid = fork();
	if (pid == 0) {
		dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
		execveat(fd, "", argv, envp, AT_EMPTY_PATH);
		_exit(errno);
	}
	waitpid(pid, &status, 0);
	errno = WEXITSTATUS(status);
	return tried(f, status ? -1 : 0);
}

static const struct attempt rows[] = {
	{ "io_uring", "io_uring_setup", "seccomp", try_io_uring, PLAIN },
	{ "bpf", "bpf: make a map", "seccomp", try_bpf, ROOT },
	{ "perf_event_open", "perf_event_open on itself", "seccomp", try_perf, PLAIN },
	{ "userfaultfd", "userfaultfd for user mode", "seccomp", try_userfaultfd, PLAIN },
	{ "add_key", "add_key to a keyring", "seccomp", try_add_key, PLAIN },
	{ "request_key", "request_key", "seccomp", try_request_key, PLAIN },
	{ "keyctl", "keyctl", "seccomp", try_keyctl, PLAIN },
	{ "fanotify", "fanotify_init", "seccomp", try_fanotify, PLAIN },
	{ "memfd_secret", "memfd_secret", "seccomp", try_memfd_secret, PLAIN },
	{ "huge_pages", "mmap of huge pages, which no limit of memory counts", "seccomp",
	  try_huge_pages, PLAIN },
	{ "huge_memfd", "a memory file of huge pages", "seccomp", try_huge_memfd, PLAIN },
	{ "huge_segment", "a segment of System V of huge pages", "seccomp", try_huge_segment,
	  ROOT },
	{ "name_to_handle_at", "name_to_handle_at", "seccomp", try_name_to_handle, PLAIN },
	{ "open_by_handle_at", "open_by_handle_at: a file by its number", "seccomp, no capability",
	  try_open_by_handle, ROOT },
	{ "process_madvise", "process_madvise", "seccomp", try_process_madvise, PLAIN },
	{ "kcmp", "kcmp", "seccomp", try_kcmp, PLAIN },
	{ "pidfd_getfd", "pidfd_getfd: a descriptor out of a process", "seccomp", try_pidfd_getfd,
	  PLAIN },
	{ "quotactl", "quotactl", "seccomp", try_quotactl, PLAIN },
	{ "personality", "personality: no address randomization", "seccomp", try_personality,
	  PLAIN },
	{ "clone_user", "clone into a new user namespace", "seccomp", try_clone_user, PLAIN },
	{ "clone_user_high", "the same with a bit set above the 32nd", "seccomp", try_clone_high,
	  PLAIN },
	{ "clone3_user", "clone3 into a new user namespace", "seccomp", try_clone3_user, PLAIN },
#ifdef __x86_64__
	{ "int80", "int 0x80: the calls of i386", "seccomp", try_int80, PLAIN },
	{ "x32", "the calls of x32", "seccomp", try_x32, PLAIN },
	{ "modify_ldt", "modify_ldt", "seccomp", try_modify_ldt, PLAIN },
#endif
	{ "seccomp_stack", "a filter of its own that allows unshare", "seccomp", try_stack, PLAIN },
	{ "seccomp_notify", "a filter of its own whose supervisor lets unshare go on", "seccomp",
	  try_notify, PLAIN },
	{ "tiocsti", "TIOCSTI: type into the terminal", "seccomp", try_tiocsti, ROOT },
	{ "tiocsti_high", "TIOCSTI with a bit set above the 32nd", "seccomp", try_tiocsti_high,
	  ROOT },
	{ "tiocsetd", "TIOCSETD: a line discipline, whose driver would be loaded", "seccomp",
	  try_tiocsetd, PLAIN },
	{ "tioclinux", "TIOCLINUX: paste into the console", "seccomp, no console", try_tioclinux,
	  LOOK, true, .capability = CAPABILITY(CAP_SYS_ADMIN) },
	{ "tioccons", "TIOCCONS: what the machine says on its console", "seccomp, no capability",
	  try_tioccons, LOOK, true, .capability = CAPABILITY(CAP_SYS_ADMIN) },
	{ "memfd_exec", "execute a program from memory",
	  "what it executes is in the same sandbox; a list of paths would be no boundary",
	  try_memfd_exec, PLAIN, .policy = true },
};

const struct attempts kernel_attempts = { "Doors into the kernel, and ways around the filter", rows,
					  PROBE_LEN(rows) };
