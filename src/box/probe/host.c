#include "box/probe/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <linux/magic.h>
#include <unistd.h>

#include "base/mem.h"

/* A number from a file below /proc/sys; -1 if it does not exist. */
static long read_switch(const char *path)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return -1;
	text[n] = '\0';
	return strtol(text, NULL, 10);
}

static bool has_admin(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };

	return syscall(SYS_capget, &head, caps) == 0 &&
	       (caps[0].effective & (1u << CAP_SYS_ADMIN)) != 0;
}

/* Root of a user namespace that is not the first has no more privileges than any user. */
static bool in_first_userns(void)
{
	FILE *f = fopen("/proc/self/uid_map", "re");
	unsigned from = 0, to = 0, n = 0;
	bool all = !f ||
		   (fscanf(f, "%u %u %u", &from, &to, &n) == 3 && from == 0 && n == 4294967295u);

	if (f)
		fclose(f);
	return all;
}

static bool stat_root(struct statx *ret)
{
	return statx(AT_FDCWD, "/", 0, STATX_INO | STATX_MNT_ID, ret) == 0;
}

/* Entering its own mount namespace again takes a process to the namespace's root: in a chroot that
 * is another directory. Runs in a child, which stays there. */
static bool leads_elsewhere(void)
{
	autoclose int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct statx before, after;

	return self >= 0 && stat_root(&before) && setns(self, CLONE_NEWNS) == 0 &&
	       stat_root(&after) &&
	       (before.stx_dev_major != after.stx_dev_major ||
		before.stx_dev_minor != after.stx_dev_minor || before.stx_ino != after.stx_ino ||
		before.stx_mnt_id != after.stx_mnt_id);
}

/* With a chroot below a mount point, no mount on "/" is visible. This does not detect a chroot to a
 * mount point, nor one without /proc. */
static bool root_is_no_mount(void)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096], at[2048];
	bool any = false, found = false;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*d %*d %*s %*s %2047s", at) != 1)
			continue;
		any = true;
		found = found || strcmp(at, "/") == 0;
	}
	if (f)
		fclose(f);
	return any && !found;
}

static bool is_chrooted(bool root)
{
	int status = 0;
	pid_t pid;

	if (!root)
		return root_is_no_mount();
	pid = fork();
	if (pid == 0)
		_exit(leads_elsewhere() ? 1 : 0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 1;
}

void probe_host_fill(struct probe_host *ret_host)
{
	struct utsname u;
	struct statfs fs;

	*ret_host = (struct probe_host){ .admin = geteuid() == 0 && has_admin() };
	ret_host->root = ret_host->admin && in_first_userns();
	uname(&u);
	snprintf(ret_host->kernel, sizeof(ret_host->kernel), "%.60s %.16s", u.release, u.machine);
	sscanf(u.release, "%u.%u", &ret_host->kernel_major, &ret_host->kernel_minor);
	ret_host->proc = statfs("/proc/self", &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
	ret_host->chrooted = is_chrooted(ret_host->root);
	ret_host->filtered = prctl(PR_GET_SECCOMP) == 2;
	ret_host->container = access("/.dockerenv", F_OK) == 0 ||
			      access("/run/.containerenv", F_OK) == 0 || getenv("container");
	ret_host->userns_switch = read_switch("/proc/sys/kernel/unprivileged_userns_clone");
	ret_host->userns_max = read_switch("/proc/sys/user/max_user_namespaces");
	ret_host->userns_apparmor =
		read_switch("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
}

/* ---- remedies ------------------------------------------------------------------------------ */

static const char out_of_chroot[] =
	"Run outside the chroot, or enter its tree with pivot_root in a mount namespace of its own "
	"(unshare -m; bind-mount the tree on itself; pivot_root; umount -l the old root).";
static const char mount_proc[] = "Mount it: mount -t proc proc /proc";
static const char open_container[] =
	"Start the container with --security-opt seccomp=unconfined --security-opt "
	"systempaths=unconfined (Podman: unmask=ALL instead of systempaths), or with --privileged.";

/* Why a user namespace was refused, certain causes first. Without privileges, an otherwise
 * unexplained refusal is attributed to a chroot that can't be detected. */
static const char *userns_remedy(const struct probe_host *host, int errnum)
{
	if (host->chrooted)
		return out_of_chroot;
	if (!host->proc)
		return mount_proc;
	if (host->userns_max == 0 || errnum == ENOSPC)
		return "sysctl -w user.max_user_namespaces=15000";
	if (!host->root && host->userns_switch == 0)
		return "As root: sysctl -w kernel.unprivileged_userns_clone=1 (keep it in "
		       "/etc/sysctl.d/), or run Holt as root.";
	if (!host->root && host->userns_apparmor > 0)
		return "As root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give "
		       "holt-warden an AppArmor profile that has \"userns,\", or run Holt as root.";
	if (host->filtered)
		return open_container;
	if (errnum == EPERM)
		return "Nothing else forbids it, so this is most likely a chroot: run outside it, "
		       "or enter its tree with pivot_root in a mount namespace of its own.";
	return NULL;
}

static const char *cgroup_remedy(const struct probe_host *host, int errnum)
{
	if (errnum == EINVAL)
		return "Boot without cgroup_disable= for it (a Raspberry Pi: with "
		       "cgroup_enable=memory in cmdline.txt); else resource limits hold what they "
		       "can.";
	if (!host->root)
		return "Start Holt as root, or where systemd runs in a cgroup of your own: "
		       "systemd-run --user --scope -p Delegate=yes holt ...; else resource limits "
		       "hold what they can.";
	if (host->container)
		return "Give the container a writable cgroup tree: --privileged, or "
		       "--cgroupns=private with /sys/fs/cgroup mounted read-write; else resource "
		       "limits hold what they can.";
	return "Mount the control group file system read-write with this controller enabled: mount "
	       "-t cgroup2 none /sys/fs/cgroup; else resource limits hold what they can.";
}

static const char *named_remedy(const struct probe_host *host, const char *feature, int errnum)
{
	if (strcmp(feature, "userns") == 0)
		return userns_remedy(host, errnum);
	if (host->chrooted)
		return "Leave the chroot first: see userns.";
	if (strncmp(feature, "cgroup-", 7) == 0)
		return cgroup_remedy(host, errnum);
	if (strcmp(feature, "kernel") == 0)
		return "Use Linux 5.13 or newer (Debian 12 has 6.1).";
	if (strcmp(feature, "landlock") == 0 && errnum == EOPNOTSUPP)
		return "Boot with landlock among the kernel parameter lsm= (see "
		       "/sys/kernel/security/lsm for the others).";
	if (errnum == EHOSTDOWN)
		return "Make user namespaces work first: see userns.";
	if ((errnum == EPERM || errnum == EACCES) && (host->filtered || host->container))
		return open_container;
	if (!host->proc)
		return mount_proc;
	return NULL;
}

void probe_remedy(const struct probe_host *host, const char *feature, const char *config,
		  int errnum, char *ret, size_t size)
{
	const char *text = named_remedy(host, feature, errnum);

	if (text)
		snprintf(ret, size, "%s", text);
	else if (config)
		snprintf(ret, size,
			 "Use a kernel built with CONFIG_%s (check: zgrep %s /proc/config.gz "
			 "/boot/config-*).",
			 config, config);
	else
		snprintf(ret, size, "Use Linux 5.13 or newer (Debian 12 has 6.1).");
}
