/* /proc, /sys and /dev: what can be written, what tells of the host, what PID 1 gives away. */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- writing: N1 ----------------------------------------------------------------------------- */

/* Tried by name too, in case the directory can't be listed. */
static const char *const settings[] = {
	"/proc/sys/kernel/core_pattern",
	"/proc/sys/kernel/modprobe",
	"/proc/sys/kernel/hotplug",
	"/proc/sys/kernel/poweroff_cmd",
	"/proc/sys/kernel/hostname",
	"/proc/sys/kernel/domainname",
	"/proc/sys/kernel/randomize_va_space",
	"/proc/sys/kernel/sysrq",
	"/proc/sys/kernel/panic",
	"/proc/sys/kernel/pid_max",
	"/proc/sys/kernel/threads-max",
	"/proc/sys/kernel/ns_last_pid",
	"/proc/sys/kernel/cap_last_cap",
	"/proc/sys/kernel/shmmax",
	"/proc/sys/kernel/random/boot_id",
	"/proc/sys/vm/drop_caches",
	"/proc/sys/vm/overcommit_memory",
	"/proc/sys/vm/swappiness",
	"/proc/sys/fs/file-max",
	"/proc/sys/fs/suid_dumpable",
	"/proc/sys/fs/protected_symlinks",
	"/proc/sys/fs/binfmt_misc/register",
	"/proc/sys/net/ipv4/ip_forward",
	"/proc/sys/net/core/somaxconn",
	"/proc/sys/user/max_user_namespaces",
};

static enum result sweep_settings(bool (*can_write)(const char *path), struct found *f)
{
	int n = sweep("/proc/sys", 12, can_write, f);

	for (size_t i = 0; i < PROBE_LEN(settings); i++) {
		if (can_write(settings[i])) {
			tell(f, "%s", settings[i]);
			n++;
		}
	}
	return n ? OPEN : DENIED;
}

static enum result try_settings(struct found *f)
{
	return sweep_settings(opens_for_write, f);
}

static enum result look_settings(struct found *f)
{
	return sweep_settings(looks_writable, f);
}

static enum result try_core_pattern(struct found *f)
{
	return tried_open(f, open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC));
}

static enum result try_sysrq(struct found *f)
{
	return tried_open(f, open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC));
}

static enum result try_irq(struct found *f)
{
	return sweep("/proc/irq", 4, opens_for_write, f) ? OPEN : DENIED;
}

static enum result look_irq(struct found *f)
{
	return sweep("/proc/irq", 4, looks_writable, f) ? OPEN : DENIED;
}

static enum result try_sys(struct found *f)
{
	return sweep("/sys", 12, opens_for_write, f) ? OPEN : DENIED;
}

static enum result look_sys(struct found *f)
{
	return sweep("/sys", 4, looks_writable, f) ? OPEN : DENIED;
}

/* All of /proc but /proc/sys, which has its own row: also what belongs to this process, and what
 * belongs to PID 1. */
static enum result try_proc_writes(struct found *f)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	char path[300];
	struct stat st;
	int n = 0;

	while (d && (e = readdir(d))) {
		bool is_pid = e->d_name[0] >= '0' && e->d_name[0] <= '9';

		snprintf(path, sizeof(path), "/proc/%s", e->d_name);
		if (strcmp(e->d_name, "..") == 0 || strcmp(e->d_name, ".") == 0 ||
		    strcmp(e->d_name, "sys") == 0 || lstat(path, &st) < 0 ||
		    (is_pid && atoi(e->d_name) != getpid() && strcmp(e->d_name, "1") != 0))
			continue;
		n += S_ISDIR(st.st_mode) ? sweep(path, 3, opens_for_write, f)
		   : S_ISREG(st.st_mode) ? opens_for_write(path)
					 : 0;
	}
	if (d)
		closedir(d);
	return n ? OPEN : DENIED;
}

/* A descriptor for reading, opened again for writing by its name in /proc/self/fd. */
static enum result try_reopen(struct found *f)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d",
		 open("/proc/self/comm", O_RDONLY | O_CLOEXEC));
	return tried_open(f, open(path, O_RDWR | O_CLOEXEC));
}

/* ---- reading what tells of the host ---------------------------------------------------------- */

/* An empty file in its place is as good as none. */
static enum result reads(struct found *f, const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char byte[64];

	if (fd < 0)
		return tried_open(f, fd);
	if (read(fd, byte, sizeof(byte)) == 0) {
		tell(f, "empty");
		return ABSENT;
	}
	return OPEN;
}

static enum result looks_readable(struct found *f, const char *path)
{
	return tried(f, faccessat(AT_FDCWD, path, R_OK, AT_EACCESS));
}

#define READS(name, path)                                                                          \
	static enum result try_##name(struct found *f)                                             \
	{                                                                                          \
		return reads(f, path);                                                             \
	}                                                                                          \
	static enum result look_##name(struct found *f)                                            \
	{                                                                                          \
		return looks_readable(f, path);                                                    \
	}

READS(kcore, "/proc/kcore")
READS(kmsg, "/proc/kmsg")
READS(kallsyms, "/proc/kallsyms")
READS(timer_list, "/proc/timer_list")
READS(keys, "/proc/keys")
READS(cmdline, "/proc/cmdline")
READS(boot_id, "/proc/sys/kernel/random/boot_id")
READS(sysctl, "/proc/sys/kernel/osrelease")

static enum result try_facts(struct found *f)
{
	static const char *const facts[] = { "/proc/uptime",	"/proc/cpuinfo", "/proc/diskstats",
					     "/proc/meminfo",	"/proc/stat",	 "/proc/version",
					     "/proc/interrupts" };
	int n = 0;

	for (size_t i = 0; i < PROBE_LEN(facts); i++)
		n += reads(f, facts[i]) == OPEN;
	f->errnum = 0;
	tell(f, "%d of %zu", n, PROBE_LEN(facts));
	return n ? OPEN : DENIED;
}

/* Processes other than those that had to be: PID 1, and from here to there. */
static enum result try_processes(struct found *f)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int others = 0;

	while (d && (e = readdir(d))) {
		int pid = atoi(e->d_name);

		if (pid > 1 && pid != getpid() && pid != getppid())
			others++;
	}
	if (d)
		closedir(d);
	tell(f, "%d others", others);
	return others > 3 ? OPEN : DENIED;
}

/* ---- PID 1 ----------------------------------------------------------------------------------- */

static enum result pid1_file(struct found *f, const char *name, int flags)
{
	char path[64], byte;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", target_pid(), name);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0 || flags & (O_WRONLY | O_DIRECTORY))
		return tried_open(f, fd);
	/* some of these files open for everybody and refuse to be read */
	return tried(f, read(fd, &byte, 1) < 0 && errno != EIO ? -1 : 0);
}

#define PID1_FILE(name, file, flags)                                                               \
	static enum result try_pid1_##name(struct found *f)                                        \
	{                                                                                          \
		return pid1_file(f, file, flags);                                                  \
	}

PID1_FILE(environ, "environ", O_RDONLY)
PID1_FILE(auxv, "auxv", O_RDONLY)
PID1_FILE(maps, "maps", O_RDONLY)
PID1_FILE(mem, "mem", O_RDONLY)
PID1_FILE(mem_write, "mem", O_WRONLY)
PID1_FILE(syscall, "syscall", O_RDONLY)
PID1_FILE(root, "root/", O_RDONLY | O_DIRECTORY)
PID1_FILE(cwd, "cwd/", O_RDONLY | O_DIRECTORY)
PID1_FILE(fd, "fd", O_RDONLY | O_DIRECTORY)
PID1_FILE(map_files, "map_files", O_RDONLY | O_DIRECTORY)
PID1_FILE(exe, "exe", O_RDONLY)
PID1_FILE(oom, "oom_score_adj", O_WRONLY)

static enum result try_pid1_ns(struct found *f)
{
	char path[64], link[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", target_pid());
	return tried(f, readlink(path, link, sizeof(link)));
}

/* ---- devices --------------------------------------------------------------------------------- */

static bool opens_device(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool usual_device(const char *path)
{
	static const char *const usual[] = { "/dev/null",     "/dev/zero",   "/dev/full",
					     "/dev/tty",      "/dev/random", "/dev/ptmx",
					     "/dev/pts/ptmx", "/dev/urandom" };

	for (size_t i = 0; i < PROBE_LEN(usual); i++) {
		if (strcmp(path, usual[i]) == 0)
			return true;
	}
	return false;
}

/* Only what is a device; other files there are the sandbox's own. */
static bool unusual(const char *path)
{
	struct stat st;

	return !usual_device(path) && stat(path, &st) == 0 &&
	       (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode));
}

static bool opens_unusual(const char *path)
{
	return unusual(path) && opens_device(path);
}

static const char *const devices[] = {
	"/dev/vda",	     "/dev/sda",       "/dev/nvme0n1",	     "/dev/loop0",
	"/dev/loop-control", "/dev/fuse",      "/dev/net/tun",	     "/dev/pts/0",
	"/dev/console",	     "/dev/tty0",      "/dev/vhost-net",     "/dev/vhost-vsock",
	"/dev/vsock",	     "/dev/kmsg",      "/dev/port",	     "/dev/kmem",
	"/dev/uinput",	     "/dev/dri/card0", "/dev/input/event0",  "/dev/mapper/control",
	"/dev/userfaultfd",  "/dev/udmabuf",   "/dev/rtc0",	     "/dev/watchdog",
	"/dev/hwrng",	     "/dev/snapshot",  "/dev/btrfs-control", "/dev/cpu_dma_latency",
};

static enum result try_devices(struct found *f)
{
	int n = sweep("/dev", 4, opens_unusual, f);

	for (size_t i = 0; i < PROBE_LEN(devices); i++) {
		if (opens_device(devices[i])) {
			tell(f, "%s", devices[i]);
			n++;
		}
	}
	return n ? OPEN : ABSENT;
}

static enum result look_devices(struct found *f)
{
	return sweep("/dev", 2, unusual, f) ? OPEN : ABSENT;
}

static enum result try_kvm(struct found *f)
{
	return tried_open(f, open("/dev/kvm", O_RDWR | O_CLOEXEC));
}

static enum result try_mem(struct found *f)
{
	return tried_open(f, open("/dev/mem", O_RDONLY | O_CLOEXEC));
}

static const struct attempt rows[] = {
	{ "proc_core_pattern", "write /proc/sys/kernel/core_pattern", "hidden, read-only /proc",
	  try_core_pattern, LOOK, true, .path = "/proc/sys/kernel/core_pattern" },
	{ "proc_sys", "write any file of /proc/sys", "hidden, read-only /proc", try_settings, LOOK,
	  true, .look = look_settings },
	{ "proc_sysrq", "write /proc/sysrq-trigger", "hidden, read-only /proc", try_sysrq, LOOK,
	  true, .path = "/proc/sysrq-trigger" },
	{ "proc_irq", "write any file of /proc/irq", "hidden, read-only /proc", try_irq, LOOK, true,
	  .look = look_irq },
	{ "sys", "write any file of /sys", "not the kernel's, read-only", try_sys, LOOK, true,
	  .look = look_sys },
	{ "proc_writes", "write any other file of /proc, its own and PID 1's too",
	  "read-only /proc", try_proc_writes, JAIL, true },
	{ "proc_reopen", "open a file of /proc again for writing by /proc/self/fd",
	  "read-only /proc", try_reopen, PLAIN },
	{ "proc_kcore", "read /proc/kcore", "hidden", try_kcore, LOOK, .look = look_kcore },
	{ "proc_kmsg", "read /proc/kmsg", "no capability", try_kmsg, LOOK, .look = look_kmsg },
	{ "proc_kallsyms", "read /proc/kallsyms", "hidden", try_kallsyms, LOOK,
	  .look = look_kallsyms },
	{ "proc_timer_list", "read /proc/timer_list", "hidden", try_timer_list, LOOK,
	  .look = look_timer_list },
	{ "proc_keys", "read /proc/keys", "hidden", try_keys, LOOK, .look = look_keys },
	{ "proc_cmdline", "read the kernel's command line", "hidden", try_cmdline, LOOK,
	  .look = look_cmdline },
	{ "proc_boot_id", "read the machine's boot id", "hidden", try_boot_id, LOOK,
	  .look = look_boot_id },
	{ "proc_sysctl", "read a setting of /proc/sys", "hidden", try_sysctl, LOOK,
	  .look = look_sysctl },
	{ "proc_facts", "read facts of the machine: /proc/cpuinfo, meminfo, stat …",
	  "programs need them; they name nothing of the host's users", try_facts, PLAIN,
	  .policy = true },
	{ "processes", "see processes of the host", "pid namespace", try_processes, PLAIN },
	{ "pid1_environ", "/proc/1/environ", "PID 1 not dumpable", try_pid1_environ, JAIL, true },
	{ "pid1_auxv", "/proc/1/auxv", "PID 1 not dumpable", try_pid1_auxv, JAIL, true },
	{ "pid1_maps", "/proc/1/maps", "PID 1 not dumpable", try_pid1_maps, JAIL, true },
	{ "pid1_mem", "read /proc/1/mem", "PID 1 not dumpable", try_pid1_mem, JAIL, true },
	{ "pid1_mem_write", "write /proc/1/mem", "PID 1 not dumpable, read-only /proc",
	  try_pid1_mem_write, JAIL, true },
	{ "pid1_syscall", "/proc/1/syscall", "PID 1 not dumpable", try_pid1_syscall, JAIL, true },
	{ "pid1_root", "/proc/1/root", "PID 1 not dumpable", try_pid1_root, JAIL, true },
	{ "pid1_cwd", "/proc/1/cwd", "PID 1 not dumpable", try_pid1_cwd, JAIL, true },
	{ "pid1_fd", "/proc/1/fd", "PID 1 not dumpable", try_pid1_fd, JAIL, true },
	{ "pid1_map_files", "/proc/1/map_files", "PID 1 not dumpable", try_pid1_map_files, JAIL,
	  true },
	{ "pid1_exe", "/proc/1/exe", "PID 1 not dumpable", try_pid1_exe, JAIL, true },
	{ "pid1_ns", "/proc/1/ns", "PID 1 not dumpable", try_pid1_ns, JAIL, true },
	{ "pid1_oom_score_adj", "write /proc/1/oom_score_adj",
	  "read-only /proc, PID 1 not dumpable", try_pid1_oom, JAIL, true },
	{ "dev", "open any other device than null, zero, full, tty, random and ptmx",
	  "minimal /dev", try_devices, LOOK, .look = look_devices },
	{ "dev_kvm", "open /dev/kvm", "minimal /dev", try_kvm, LOOK, .path = "/dev/kvm" },
	{ "dev_mem", "open /dev/mem", "minimal /dev", try_mem, LOOK, .path = "/dev/mem" },
};

const struct attempts proc_attempts = { "/proc, /sys and /dev", rows, PROBE_LEN(rows) };
