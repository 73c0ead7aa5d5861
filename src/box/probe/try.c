#include "box/probe/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/mem.h"

/* ---- user namespaces, and what stands in one ----------------------------------------------- */

static int write_file(const char *path, const char *text)
{
	autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = (ssize_t)strlen(text);

	return fd >= 0 && write(fd, text, (size_t)n) == n ? 0 : errno;
}

int probe_enter_userns(const char **ret_what)
{
	char uids[48], gids[48];
	int r;

	snprintf(uids, sizeof(uids), "1000 %u 1", geteuid());
	snprintf(gids, sizeof(gids), "1000 %u 1", getegid());
	*ret_what = "unshare(CLONE_NEWUSER)";
	if (unshare(CLONE_NEWUSER) < 0)
		return errno;
	*ret_what = "its uid map";
	if ((r = write_file("/proc/self/setgroups", "deny")) != 0 ||
	    (r = write_file("/proc/self/uid_map", uids)) != 0)
		return r;
	*ret_what = "its gid map";
	return write_file("/proc/self/gid_map", gids);
}

/* Makes namespaces: here with privileges, else inside a user namespace. EHOSTDOWN means that the
 * user namespace itself failed, which has a remedy of its own. */
static int stand(const struct probe_try *t)
{
	const char *what;

	if (t->host->admin || probe_enter_userns(&what) == 0)
		return 0;
	return probe_say(t, EHOSTDOWN, "not tried: there is no user namespace to try it in");
}

/* A mount namespace that propagates no mounts. */
static int own_mounts(const struct probe_try *t)
{
	if (unshare(CLONE_NEWNS) < 0)
		return probe_failed(t, errno, "unshare(CLONE_NEWNS)");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return probe_failed(t, errno, "mount --make-rprivate /");
	return 0;
}

int probe_try_userns(const struct probe_try *t)
{
	const char *what;
	int r = probe_enter_userns(&what);

	if (r != 0 && t->host->chrooted)
		return probe_say(t, r, "you are in a chroot, where none can be made");
	if (r != 0)
		return probe_failed(t, r, what);
	/* AppArmor allows the namespace, but takes away its privileges. */
	r = own_mounts(t);
	if (r != 0)
		return probe_say(t, r, "made, but without any power in it");
	return probe_say(t, 0, t->host->root ? "made with privileges" : "made without privileges");
}

static int try_unshare(const struct probe_try *t, int flag, const char *what)
{
	int r = stand(t);

	if (r != 0)
		return r;
	return unshare(flag) < 0 ? probe_failed(t, errno, what) : 0;
}

int probe_try_mountns(const struct probe_try *t)
{
	int r = stand(t);

	return r != 0 ? r : own_mounts(t);
}

int probe_try_ipcns(const struct probe_try *t)
{
	return try_unshare(t, CLONE_NEWIPC, "unshare(CLONE_NEWIPC)");
}

int probe_try_cgroupns(const struct probe_try *t)
{
	return try_unshare(t, CLONE_NEWCGROUP, "unshare(CLONE_NEWCGROUP)");
}

int probe_try_utsns(const struct probe_try *t)
{
	int r = try_unshare(t, CLONE_NEWUTS, "unshare(CLONE_NEWUTS)");

	if (r == 0 && sethostname("holt", 4) < 0)
		return probe_failed(t, errno, "sethostname");
	return r;
}

/* The loopback interface must be the only one, and go up. */
int probe_try_netns(const struct probe_try *t)
{
	int r = try_unshare(t, CLONE_NEWNET, "unshare(CLONE_NEWNET)");
	autoclose int s = r != 0 ? -1 : socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq q = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	if (r != 0)
		return r;
	if (s < 0 || ioctl(s, SIOCSIFFLAGS, &q) < 0)
		return probe_failed(t, errno, "the loopback interface");
	return 0;
}

/* Runs f as the first process of a new pid namespace; its exit status is an errno. */
static int in_pidns(const struct probe_try *t, int (*f)(void))
{
	int r = try_unshare(t, CLONE_NEWPID, "unshare(CLONE_NEWPID)"), status = 0;
	pid_t pid;

	if (r != 0)
		return r;
	pid = fork();
	if (pid < 0)
		return probe_failed(t, errno, "fork into the pid namespace");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(f());
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return probe_say(t, ENODATA, "its first process was killed");
	return WEXITSTATUS(status);
}

static int is_first(void)
{
	return getpid() == 1 ? 0 : ESRCH;
}

int probe_try_pidns(const struct probe_try *t)
{
	int r = in_pidns(t, is_first);

	return r == ESRCH ? probe_say(t, r, "the first process was not process 1") : r;
}

/* ---- file systems -------------------------------------------------------------------------- */

static int mount_proc_here(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return errno;
	return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ? errno
											  : 0;
}

/* In a user namespace the kernel refuses a new /proc if the one outside is partly covered, as
 * container engines do. */
int probe_try_procfs(const struct probe_try *t)
{
	int r = in_pidns(t, mount_proc_here);

	return r == 0 || t->detail[0] ? r : probe_failed(t, r, "mount -t proc in a pid namespace");
}

/* /tmp is only the mount point, in a namespace of our own. */
static int scratch(const struct probe_try *t)
{
	int r = own_mounts(t);

	if (r == 0 && mount("holt", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0700") < 0)
		r = probe_failed(t, errno, "mount -t tmpfs");
	return r;
}

int probe_try_tmpfs(const struct probe_try *t)
{
	struct statfs fs;
	int r = stand(t);

	if (r == 0)
		r = scratch(t);
	if (r != 0)
		return r;
	if (statfs("/tmp", &fs) < 0 || fs.f_blocks * (uint64_t)fs.f_bsize != 1024 * 1024)
		return probe_say(t, ENODATA, "its size limit does not hold");
	return 0;
}

static int try_overlay(const struct probe_try *t, const char *options)
{
	int r = scratch(t);

	if (r != 0)
		return r;
	if (mkdir("/tmp/l", 0700) < 0 || mkdir("/tmp/u", 0700) < 0 || mkdir("/tmp/w", 0700) < 0 ||
	    mkdir("/tmp/m", 0700) < 0 || mkdir("/tmp/l/d", 0700) < 0)
		return probe_failed(t, errno, "mkdir in a tmpfs");
	if (mount("holt", "/tmp/m", "overlay", 0, options) < 0)
		return probe_failed(t, errno, "mount -t overlay");
	/* A lower directory that was removed and made again needs the marks in the upper layer. */
	if (rmdir("/tmp/m/d") < 0 || mkdir("/tmp/m/d", 0700) < 0)
		return probe_failed(t, errno, "rmdir, then mkdir in an overlay");
	return 0;
}

#define OVERLAY_DIRS "lowerdir=/tmp/l,upperdir=/tmp/u,workdir=/tmp/w"

/* Without its marks an overlay is not used, and files are copied (see box/warden/store.c). */
static int try_overlay_unprivileged(const struct probe_try *t)
{
	int r = scratch(t);

	if (r == 0 && setxattr("/tmp", "user.overlay.try", "y", 1, 0) < 0 && errno == EOPNOTSUPP)
		return probe_say(t, 0, "not used: tmpfs keeps no user attributes before Linux 6.6");
	return r != 0 ? r : try_overlay(t, OVERLAY_DIRS ",userxattr");
}

static int overlay_in_userns(const struct probe_try *t)
{
	const char *what;
	int r = probe_enter_userns(&what);

	return r != 0 ? probe_failed(t, r, what) : try_overlay(t, OVERLAY_DIRS ",userxattr");
}

/* Root's overlays are made outside, so a failure inside a user namespace is only reported. */
int probe_try_overlay(const struct probe_try *t)
{
	int status = 0, r;
	pid_t pid;

	if (!t->host->root) {
		r = stand(t);
		return r != 0 ? r : try_overlay_unprivileged(t);
	}
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(overlay_in_userns(t) == 0 ? 0 : 1);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	r = try_overlay(t, OVERLAY_DIRS);
	if (r == 0)
		probe_say(t, 0,
			  pid > 0 && status == 0 ? "in a user namespace too"
						 : "with privileges only");
	return r;
}

/* ---- processes ----------------------------------------------------------------------------- */

int probe_try_kernel(const struct probe_try *t)
{
	unsigned v = t->host->kernel_major * 1000 + t->host->kernel_minor;

	return probe_say(t, v >= 5013 ? 0 : ENOSYS, "%s", t->host->kernel);
}

int probe_try_container(const struct probe_try *t)
{
	if (t->host->chrooted)
		return probe_say(t, 0, "in a chroot");
	return probe_say(t, 0, "%s%s", t->host->container ? "in a container" : "none seen",
			 t->host->filtered ? ", under a seccomp filter" : "");
}

/* clone3 with a pidfd, a signal through it, and a wait on it. */
int probe_try_pidfd(const struct probe_try *t)
{
	int fd = -1;
	struct clone_args args = {
		.flags = CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&fd,
		.exit_signal = SIGCHLD,
	};
	siginfo_t info;
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid < 0)
		return probe_failed(t, errno, "clone3(CLONE_PIDFD)");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	if (syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) < 0) {
		int saved = errno;

		kill((pid_t)pid, SIGKILL);
		return probe_failed(t, saved, "pidfd_send_signal");
	}
	if (waitid(P_PIDFD, (id_t)fd, &info, WEXITED) < 0)
		return probe_failed(t, errno, "waitid(P_PIDFD)");
	return 0;
}

/* A filter that fails one harmless call with an errno of ours, which must then be seen. */
int probe_try_seccomp(const struct probe_try *t)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { .len = ARRAY_LEN(rules), .filter = rules };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return probe_failed(t, errno, "no_new_privs");
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0)
		return probe_failed(t, errno, "seccomp(SECCOMP_SET_MODE_FILTER)");
	errno = 0;
	if (syscall(SYS_getppid) != -1 || errno != EXDEV)
		return probe_say(t, ENODATA, "a filter was taken but does not hold");
	return 0;
}

/* A ruleset without rules denies every directory, including /. */
int probe_try_landlock(const struct probe_try *t)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_READ_DIR };
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	autoclose int rules = -1;

	if (abi < 0)
		return probe_failed(t, errno, "landlock_create_ruleset");
	rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (rules < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		return probe_failed(t, errno, "landlock_restrict_self");
	if (open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0)
		return probe_say(t, ENODATA, "a ruleset was taken but does not hold");
	return probe_say(t, 0, "ABI %ld", abi);
}
