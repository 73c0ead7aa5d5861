/* Namespaces, mounts, roots, names of the machine. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ATTEMPT(name, call)                                                                        \
	static enum result name(struct found *f)                                                   \
	{                                                                                          \
		return tried(f, (call));                                                           \
	}

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* A directory of our own to mount on, or "." */
static const char *place(void)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/dir-%d", told("HOLT_PROBE_PLACE", "/tmp"), (int)getpid());
	return mkdir(path, 0755) == 0 || errno == EEXIST ? path : ".";
}

ATTEMPT(try_user, unshare(CLONE_NEWUSER))
ATTEMPT(try_mnt, unshare(CLONE_NEWNS))
ATTEMPT(try_uts, unshare(CLONE_NEWUTS))
ATTEMPT(try_ipc, unshare(CLONE_NEWIPC))
ATTEMPT(try_net, unshare(CLONE_NEWNET))
ATTEMPT(try_pid, unshare(CLONE_NEWPID))
ATTEMPT(try_cgroup, unshare(CLONE_NEWCGROUP))
ATTEMPT(try_time, unshare(CLONE_NEWTIME))

static enum result try_user_mount(struct found *f)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return tried(f, -1);
	return tried(f, mount("tmpfs", "/tmp", "tmpfs", 0, NULL));
}

ATTEMPT(try_mount_tmpfs, mount("tmpfs", place(), "tmpfs", 0, NULL))
ATTEMPT(try_mount_proc, mount("proc", place(), "proc", 0, NULL))
ATTEMPT(try_bind_proc, mount("/proc", place(), NULL, MS_BIND | MS_REC, NULL))
ATTEMPT(try_bind_over, mount("/tmp", "/proc/sys", NULL, MS_BIND, NULL))
ATTEMPT(try_remount,
	mount(NULL, "/proc", NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
ATTEMPT(try_propagation, mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL))
ATTEMPT(try_umount, umount2("/proc", MNT_DETACH))
ATTEMPT(try_fsopen, syscall(SYS_fsopen, "tmpfs", 0))
ATTEMPT(try_fspick, syscall(SYS_fspick, AT_FDCWD, "/proc", 0))
ATTEMPT(try_open_tree, syscall(SYS_open_tree, AT_FDCWD, "/tmp", 1 /* clone */))
ATTEMPT(try_setattr, syscall(SYS_mount_setattr, AT_FDCWD, "/proc", 0, &(uint64_t[4]){ 2 }, 32ul))
ATTEMPT(try_chroot, chroot("/tmp"))
ATTEMPT(try_sethostname, sethostname("holt-probe", 10))
ATTEMPT(try_setdomainname, setdomainname("holt-probe", 10))

static enum result try_move_mount(struct found *f)
{
	int tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/tmp", 1 /* clone */);

	return tried(f, syscall(SYS_move_mount, tree, "", AT_FDCWD, place(), 4 /* from empty */));
}

static enum result try_pivot_root(struct found *f)
{
	const char *at = place();

	mount("tmpfs", at, "tmpfs", 0, NULL);
	if (chdir(at) < 0)
		return tried(f, -1);
	return tried(f, syscall(SYS_pivot_root, ".", "."));
}

/* Any one that can be entered will do. */
static enum result try_setns(struct found *f)
{
	static const char *const kinds[] = { "cgroup", "ipc",  "mnt",  "net",
					     "pid",    "time", "user", "uts" };
	enum result r = DENIED;
	char path[64];

	for (size_t i = 0; i < PROBE_LEN(kinds) && r != OPEN; i++) {
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", target_pid(), kinds[i]);
		r = tried(f, setns(open(path, O_RDONLY | O_CLOEXEC), 0));
		if (r == OPEN)
			tell(f, "%s", kinds[i]);
	}
	return r;
}

static enum result try_setns_pidfd(struct found *f)
{
	int pidfd = (int)syscall(SYS_pidfd_open, target_pid(), 0);

	return tried(f, setns(pidfd, CLONE_NEWNS | CLONE_NEWUTS));
}

static enum result try_hostname(struct found *f)
{
	char name[256] = "";

	gethostname(name, sizeof(name) - 1);
	tell(f, "%s", name);
	return strcmp(name, told("HOLT_PROBE_HOSTNAME", "")) == 0 ? OPEN : DENIED;
}

static enum result try_cgroup_path(struct found *f)
{
	char text[4096];

	slurp("/proc/self/cgroup", text, sizeof(text));
	/* lines like "4:memory:/path" */
	for (const char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		const char *path = strchr(line, '/');

		if (path && path[1]) {
			tell(f, "%.100s", line);
			return OPEN;
		}
	}
	return DENIED;
}

/* Mount points of the host's own kernel interfaces, or more than a sandbox has. A devpts it has,
 * of its own, and of control groups its own and nothing above. */
static enum result try_mountinfo(struct found *f)
{
	static const char *const foreign[] = { " - sysfs ",	 " - cgroup ",	" - cgroup2 ",
					       " - securityfs ", " - debugfs ", " - bpf " };
#define OWN(at, kind) " / /sys/fs/cgroup" at " ro,nosuid,nodev,noexec,relatime - " kind " "
	static const char *const own[] = { OWN("", "cgroup2"), OWN("/memory", "cgroup"),
					   OWN("/cpu", "cgroup"), OWN("/cpuacct", "cgroup"),
					   OWN("/cpuset", "cgroup") };
#undef OWN
	static char text[65536];
	int n = 0;

	slurp("/proc/self/mountinfo", text, sizeof(text));
	for (size_t i = 0; i < PROBE_LEN(own); i++) {
		char *ours = strstr(text, own[i]);

		if (ours)
			memset(ours, '.', strlen(own[i]));
	}
	for (size_t i = 0; i < PROBE_LEN(foreign); i++) {
		if (strstr(text, foreign[i])) {
			tell(f, "sees%s", foreign[i]);
			return OPEN;
		}
	}
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		n++;
	tell(f, "%d mounts", n);
	return n > 40 ? OPEN : DENIED;
}

static const struct attempt rows[] = {
	{ "unshare_user", "a user namespace of its own", "seccomp", try_user, PLAIN },
	{ "unshare_user_mount", "a user namespace, and a mount in it", "seccomp", try_user_mount,
	  PLAIN },
	{ "unshare_mnt", "a mount namespace of its own", "seccomp, no capability", try_mnt, JAIL },
	{ "unshare_uts", "a uts namespace of its own", "seccomp, no capability", try_uts, JAIL },
	{ "unshare_ipc", "an ipc namespace of its own", "seccomp, no capability", try_ipc, JAIL },
	{ "unshare_net", "a network namespace of its own", "seccomp, no capability", try_net,
	  JAIL },
	{ "unshare_pid", "a pid namespace of its own", "seccomp, no capability", try_pid, JAIL },
	{ "unshare_cgroup", "a cgroup namespace of its own", "seccomp, no capability", try_cgroup,
	  JAIL },
	{ "unshare_time", "a time namespace of its own", "seccomp, no capability", try_time, JAIL },
	{ "setns_pid1", "enter a namespace of PID 1 by /proc/1/ns", "seccomp, PID 1 not dumpable",
	  try_setns, JAIL, true },
	{ "setns_pidfd", "enter the namespaces of PID 1 by its pidfd",
	  "seccomp, PID 1 not dumpable", try_setns_pidfd, JAIL, true },
	{ "mount_tmpfs", "mount a tmpfs", "seccomp, no capability", try_mount_tmpfs, JAIL, true },
	{ "mount_proc", "mount a second /proc", "seccomp, no capability", try_mount_proc, JAIL,
	  true },
	{ "mount_bind_proc", "bind /proc to another place", "seccomp, no capability", try_bind_proc,
	  JAIL, true },
	{ "mount_bind_over", "bind a directory over /proc/sys", "seccomp, no capability",
	  try_bind_over, JAIL, true },
	{ "mount_remount", "remount /proc writable", "seccomp, no capability", try_remount, JAIL,
	  true },
	{ "mount_shared", "make mounts propagate", "seccomp, no capability", try_propagation, JAIL,
	  true },
	{ "umount", "unmount what hides something", "seccomp, no capability", try_umount, JAIL,
	  true },
	{ "fsopen", "fsopen", "seccomp, no capability", try_fsopen, JAIL, true },
	{ "fspick", "fspick", "seccomp, no capability", try_fspick, JAIL, true },
	{ "open_tree", "open_tree: a copy of a mount", "seccomp, no capability", try_open_tree,
	  JAIL, true },
	{ "move_mount", "move_mount", "seccomp, no capability", try_move_mount, JAIL, true },
	{ "mount_setattr", "mount_setattr", "seccomp, no capability", try_setattr, JAIL, true },
	{ "chroot", "chroot", "seccomp, no capability", try_chroot, JAIL, true },
	{ "pivot_root", "pivot_root", "seccomp, no capability", try_pivot_root, JAIL, true },
	{ "sethostname", "sethostname", "seccomp, no capability", try_sethostname, JAIL, true },
	{ "setdomainname", "setdomainname", "seccomp, no capability", try_setdomainname, JAIL,
	  true },
	{ "hostname", "learn the host's name", "uts namespace", try_hostname, PLAIN },
	{ "cgroup_path", "learn its place in the host's control groups", "cgroup namespace",
	  try_cgroup_path, ROOT },
	{ "mountinfo", "see the host's mounts", "mount namespace", try_mountinfo, PLAIN },
};

const struct attempts space_attempts = { "Namespaces, mounts, names", rows, PROBE_LEN(rows) };
