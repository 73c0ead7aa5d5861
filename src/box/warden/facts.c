/*
 * The machine as a sandbox sees it: its own limits, in the files that programs read to size
 * themselves. The files are written once for each memory and CPU limit, into the tmpfs that is the
 * base namespace's root. Each sandbox binds them, read-only, over the kernel's files:
 *
 *	/proc/meminfo	The memory limit as all of the memory. Its use is not shown.
 *	/proc/cpuinfo	As many processors as the CPU limit takes, where the machine has more.
 *	/proc/stat	The same; their times are not shown.
 *	/sys		The processors, and the limits as control groups of both versions show
 *			them: a program looks for one or the other, depending on the host. Some
 *			look for mounted trees first, so these are hidden behind the files.
 *	/proc/cgroups	The trees that it tells of are those that are mounted: of version 1, or
 *			of version 2 where one of version 1 is missing.
 *
 * Where the machine has more processors, a sandbox is bound to some of them (sched_setaffinity),
 * since nproc and most runtimes count these. A program may undo that; the quota holds.
 *
 * These files limit nothing: they only keep programs from sizing themselves for the machine and
 * then hitting their limits.
 *
 * Files of each sandbox's own, kept fresh by init, would cost each idle one 5 KB, and still be
 * stale while a program runs. The kernel's own tree of control groups would cost locks of the whole
 * machine when it is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/mem.h"
#include "box/archive/mount.h"
#include "box/warden/internal.h"

enum { FACTS_UNUSED_MAX = 16, FACTS_PATH_MAX = 96 };

struct facts {
	struct facts *next;
	uint32_t id; /* the number in its directory's path */
	uint32_t refs;
	uint64_t memory;
	uint32_t cpu_milli;
	uint32_t cpus; /* fewer than the machine has; 0: all of them */
	bool written;
};

static struct {
	struct facts *all;
	uint32_t last_id, n_unused;
	unsigned next_cpu; /* the processor that is chosen first for the next sandbox; 0: any */
} facts;

/* ---- what stands in the files ---------------------------------------------------------------- */

static FILE *open_host(const char *name)
{
	int fd = openat(warden.host.proc, name, O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (!f && fd >= 0)
		close(fd);
	return f;
}

static void write_meminfo(FILE *to, const struct facts *f)
{
	static const char *const none[] = {
		"Buffers",	"Cached", "SwapCached",	  "Active",	"Inactive",   "SwapTotal",
		"SwapFree",	"Dirty",  "Writeback",	  "AnonPages",	"Mapped",     "Shmem",
		"KReclaimable", "Slab",	  "SReclaimable", "SUnreclaim", "PageTables", "Committed_AS"
	};
	uint64_t kib = f->memory / 1024;
	struct sysinfo machine;

	if (sysinfo(&machine) == 0 && (uint64_t)machine.totalram * machine.mem_unit / 1024 < kib)
		kib = (uint64_t)machine.totalram * machine.mem_unit / 1024;
	fprintf(to, "%-15s %8llu kB\n", "MemTotal:", (unsigned long long)kib);
	fprintf(to, "%-15s %8llu kB\n", "MemFree:", (unsigned long long)kib);
	fprintf(to, "%-15s %8llu kB\n", "MemAvailable:", (unsigned long long)kib);
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		fprintf(to, "%s:%*d kB\n", none[i], 23 - (int)strlen(none[i]), 0);
	fprintf(to, "%-15s %8llu kB\n", "CommitLimit:", (unsigned long long)kib);
}

/* Shows the machine's first processors. */
static void write_cpuinfo(FILE *to, const struct facts *f)
{
	FILE *from = open_host("cpuinfo");
	char *line = NULL;
	size_t room = 0;
	uint32_t n = 0;

	while (from && getline(&line, &room, from) > 0) {
		n += strncmp(line, "processor", 9) == 0;
		if (n > f->cpus)
			break;
		fputs(line, to);
	}
	free(line);
	if (from)
		fclose(from);
}

/* Shows all of their time as idle: without any time programs would compute nonsense averages. */
static void write_stat(FILE *to, const struct facts *f)
{
	FILE *from = open_host("stat");
	struct sysinfo machine = { 0 };
	unsigned long long idle;
	char *line = NULL;
	size_t room = 0;

	sysinfo(&machine);
	idle = (unsigned long long)machine.uptime * (unsigned long long)sysconf(_SC_CLK_TCK);
	fprintf(to, "cpu  0 0 0 %llu 0 0 0 0 0 0\n", idle * f->cpus);
	for (uint32_t i = 0; i < f->cpus; i++)
		fprintf(to, "cpu%u 0 0 0 %llu 0 0 0 0 0 0\n", i, idle);
	fputs("intr 0\nctxt 0\n", to);
	while (from && getline(&line, &room, from) > 0) {
		if (strncmp(line, "btime ", 6) == 0)
			fputs(line, to);
	}
	fputs("processes 0\nprocs_running 1\nprocs_blocked 0\nsoftirq 0\n", to);
	free(line);
	if (from)
		fclose(from);
}

/* Copies the machine's list of processors; nothing where there is none. */
static void copy_list(FILE *to, const char *name)
{
	char path[64], line[256];
	FILE *from;

	snprintf(path, sizeof(path), "/h/sys/devices/system/cpu/%s", name);
	from = fopen(path, "re");
	if (from && fgets(line, sizeof(line), from))
		fputs(line, to);
	if (from)
		fclose(from);
}

static void write_online(FILE *to, const struct facts *f)
{
	if (f->cpus)
		fprintf(to, f->cpus > 1 ? "0-%u\n" : "0\n", f->cpus - 1);
	else
		copy_list(to, "online");
}

/* Always the machine's list: programs have tables for all numbers that a processor may have. */
static void write_possible(FILE *to, const struct facts *f)
{
	(void)f;
	copy_list(to, "possible");
}

static void write_memory(FILE *to, const struct facts *f)
{
	fprintf(to, "%llu\n", (unsigned long long)f->memory);
}

static long long quota_us(const struct facts *f)
{
	return (long long)f->cpu_milli * CPU_PERIOD_US / 1000;
}

static void write_cpu_max(FILE *to, const struct facts *f)
{
	if (f->cpu_milli)
		fprintf(to, "%lld %d\n", quota_us(f), CPU_PERIOD_US);
	else
		fprintf(to, "max %d\n", CPU_PERIOD_US);
}

static void write_quota(FILE *to, const struct facts *f)
{
	fprintf(to, "%lld\n", f->cpu_milli ? quota_us(f) : -1);
}

static void write_period(FILE *to, const struct facts *f)
{
	(void)f;
	fprintf(to, "%d\n", CPU_PERIOD_US);
}

/* All controllers with one group: those of version 1 in their hierarchies, if sandboxes are shown
 * these, else as if they were of version 2. */
static void write_subsystems(FILE *to, const struct facts *f)
{
	bool v1 = warden.cgroups.n_seen > 0 && *warden.cgroups.seen[0].at;
	FILE *from = open_host("cgroups");
	char name[64], line[256];
	unsigned hierarchy, enabled;

	(void)f; /* the same for all limits */
	fputs("#subsys_name\thierarchy\tnum_cgroups\tenabled\n", to);
	while (from && fgets(line, sizeof(line), from)) {
		if (sscanf(line, "%63s %u %*u %u", name, &hierarchy, &enabled) == 3)
			fprintf(to, "%s\t%u\t1\t%u\n", name, v1 ? hierarchy : 0, enabled);
	}
	if (from)
		fclose(from);
}

#define SYS_CPU "sys/devices/system/cpu"
#define SYS_CGROUP "sys/fs/cgroup"

/* In the order in which they are made. */
static const char *const dirs[] = {
	"sys",
	"sys/devices",
	"sys/devices/system",
	SYS_CPU,
	"sys/fs",
	SYS_CGROUP,
	SYS_CGROUP "/memory",
	SYS_CGROUP "/cpu",
	SYS_CGROUP "/cpuacct",
	SYS_CGROUP "/cpuset",
};

static const struct {
	const char *path;
	void (*write)(FILE *to, const struct facts *f);
	const char *text; /* the content, instead of write() */
	bool limited; /* only where there are fewer processors than the machine has */
} files[] = {
	{ "meminfo", .write = write_meminfo },
	{ "cpuinfo", .write = write_cpuinfo, .limited = true },
	{ "stat", .write = write_stat, .limited = true },
	{ "cgroups", .write = write_subsystems },
	{ SYS_CPU "/online", .write = write_online },
	{ SYS_CPU "/present", .write = write_online },
	{ SYS_CPU "/possible", .write = write_possible },
	{ SYS_CGROUP "/cgroup.controllers", .text = "cpu memory\n" },
	{ SYS_CGROUP "/memory.max", .write = write_memory },
	{ SYS_CGROUP "/memory.high", .text = "max\n" },
	{ SYS_CGROUP "/cpu.max", .write = write_cpu_max },
	{ SYS_CGROUP "/memory/memory.limit_in_bytes", .write = write_memory },
	{ SYS_CGROUP "/memory/memory.soft_limit_in_bytes", .text = "9223372036854771712\n" },
	{ SYS_CGROUP "/cpu/cpu.cfs_quota_us", .write = write_quota },
	{ SYS_CGROUP "/cpu/cpu.cfs_period_us", .write = write_period },
};

/* ---- the directory of one -------------------------------------------------------------------- */

/* The path of a file below the base namespace's root. */
static void facts_path(char path[FACTS_PATH_MAX], const struct facts *f, const char *below)
{
	snprintf(path, FACTS_PATH_MAX, "t/facts/%u/%s", f->id, below);
}

static void remove_files(const struct facts *f)
{
	int root = warden.store.facts;
	char path[FACTS_PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		facts_path(path, f, files[i].path);
		unlinkat(root, path, 0);
	}
	for (size_t i = ARRAY_LEN(dirs); i > 0; i--) {
		facts_path(path, f, dirs[i - 1]);
		unlinkat(root, path, AT_REMOVEDIR);
	}
	facts_path(path, f, "");
	unlinkat(root, path, AT_REMOVEDIR);
}

static int make_dir(const struct facts *f, const char *below)
{
	char path[FACTS_PATH_MAX];

	facts_path(path, f, below);
	return mkdirat(warden.store.facts, path, 0755);
}

static int write_all(const struct facts *f)
{
	char path[FACTS_PATH_MAX];

	if (make_dir(f, "") < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		if (make_dir(f, dirs[i]) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		FILE *to;
		int fd;

		if (files[i].limited && !f->cpus)
			continue;
		facts_path(path, f, files[i].path);
		fd = openat(warden.store.facts, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			    0444);
		to = fd < 0 ? NULL : fdopen(fd, "w");
		if (!to) {
			close_fd(&fd);
			return -1;
		}
		if (files[i].text)
			fputs(files[i].text, to);
		else
			files[i].write(to, f);
		if (fclose(to) != 0)
			return -1;
	}
	return 0;
}

int facts_write(struct facts *f, struct err *e)
{
	if (f->written)
		return 0;
	if (write_all(f) < 0) {
		err_sys(e, errno, "write what the sandbox sees of its limits");
		remove_files(f);
		return -1;
	}
	f->written = true;
	return 0;
}

/* ---- those in use ---------------------------------------------------------------------------- */

uint32_t facts_cpus(const struct limits *l)
{
	uint32_t n = (l->cpu_milli + 999) / 1000;
	cpu_set_t machine;

	if (!n || sched_getaffinity(0, sizeof(machine), &machine) < 0)
		return 0;
	return n < (uint32_t)CPU_COUNT(&machine) ? n : 0;
}

/* Removes the oldest of the unused facts, when there are too many. */
static void forget_unused(void)
{
	struct facts **at = &facts.all, **oldest = NULL, *f;

	for (; *at; at = &(*at)->next) {
		if (!(*at)->refs)
			oldest = at;
	}
	f = *oldest;
	*oldest = f->next;
	facts.n_unused--;
	remove_files(f);
	free(f);
}

void facts_drop(struct facts *f)
{
	if (f && --f->refs == 0 && ++facts.n_unused > FACTS_UNUSED_MAX)
		forget_unused();
}

struct facts *facts_take(const struct limits *l, struct err *e)
{
	struct facts *f = facts.all;

	while (f && (f->memory != l->memory || f->cpu_milli != l->cpu_milli))
		f = f->next;
	if (f) {
		facts.n_unused -= f->refs == 0;
		f->refs++;
		return f;
	}
	f = calloc(1, sizeof(*f));
	if (!f) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	*f = (struct facts){ .next = facts.all,
			     .id = ++facts.last_id,
			     .refs = 1,
			     .memory = l->memory,
			     .cpu_milli = l->cpu_milli,
			     .cpus = facts_cpus(l) };
	return facts.all = f;
}

bool facts_limit_cpus(const struct facts *f)
{
	return f->cpus > 0;
}

/* Chooses processors in turn, from a random one on, so that the sandboxes of all hubs are spread
 * over the machine. */
void facts_place(const struct facts *f, cpu_set_t *ret)
{
	cpu_set_t machine;
	unsigned n, first, rank = 0;

	CPU_ZERO(ret);
	if (!f->cpus || sched_getaffinity(0, sizeof(machine), &machine) < 0)
		return;
	if (!facts.next_cpu &&
	    getrandom(&facts.next_cpu, sizeof(facts.next_cpu), GRND_NONBLOCK) < 0)
		facts.next_cpu = (unsigned)getpid();
	n = (unsigned)CPU_COUNT(&machine);
	first = facts.next_cpu % n;
	facts.next_cpu += f->cpus;
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &machine) && (rank++ + n - first) % n < f->cpus)
			CPU_SET(cpu, ret);
	}
}

/* ---- in a sandbox ---------------------------------------------------------------------------- */

static int bind_at(const struct facts *f, const char *name, int dir, const char *to)
{
	autoclose int tree = -1;
	char path[FACTS_PATH_MAX + 1] = "/";

	facts_path(path + 1, f, name);
	tree = mount_copy(AT_FDCWD, path, false);
	return tree < 0 ? -1 : mount_attach(tree, dir, to);
}

static int show_proc(const struct facts *f)
{
	if (bind_at(f, "meminfo", AT_FDCWD, "/r/proc/meminfo") < 0)
		return -1;
	if (!f->cpus)
		return 0;
	return bind_at(f, "cpuinfo", AT_FDCWD, "/r/proc/cpuinfo") < 0
		     ? -1
		     : bind_at(f, "stat", AT_FDCWD, "/r/proc/stat");
}

static int show_hierarchy(const struct cgroup_seen *seen, unsigned n, uint32_t slot)
{
	autoclose int tree = -1;
	char from[48], to[48];

	snprintf(from, sizeof(from), "/t/cgroup/%u", n);
	if (seen->slots)
		snprintf(from, sizeof(from), "/t/cgroup/%u/%u", n, slot);
	snprintf(to, sizeof(to), "/r/" SYS_CGROUP "/%s", seen->at);
	tree = mount_copy(AT_FDCWD, from, false);
	if (tree < 0)
		return errno == ENOENT ? 0 : -1; /* the sandbox has no group there */
	return mount_attach(tree, AT_FDCWD, to);
}

int facts_show(const struct facts *f, uint32_t slot)
{
	autoclose int sys = open("/r/sys", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const struct cgroups *c = &warden.cgroups;

	if (show_proc(f) < 0)
		return -1;
	if (sys < 0)
		return 0; /* an image may have no /sys */
	if (bind_at(f, "sys", sys, "") < 0)
		return -1;
	if (!warden.store.n_cgroups)
		return 0;
	/* Java, Go and others look for mounted trees of control groups, and then for files below
	 * them. So they are mounted there, and our files are mounted over them: no file of the
	 * kernel can be opened. */
	for (unsigned i = 0; i < warden.store.n_cgroups; i++) {
		if (show_hierarchy(&c->seen[i], i, slot) < 0)
			return -1;
	}
	if (bind_at(f, SYS_CGROUP, AT_FDCWD, "/r/" SYS_CGROUP) < 0)
		return -1;
	return c->v2[CG_MEMORY] || access("/r/proc/cgroups", F_OK) < 0
		     ? 0
		     : bind_at(f, "cgroups", AT_FDCWD, "/r/proc/cgroups");
}

/* Mounts below /sys, not over it: a fork keeps mounts that are on a mount of its root, but not one
 * that hides another. */
static int show_over(const struct facts *f)
{
	if (show_proc(f) < 0 || bind_at(f, SYS_CGROUP, AT_FDCWD, "/r/" SYS_CGROUP) < 0)
		return -1;
	return f->cpus ? bind_at(f, SYS_CPU, AT_FDCWD, "/r/" SYS_CPU) : 0;
}

int facts_show_over(const struct facts *f, int pidfd, struct err *e)
{
	int errnum = setns(pidfd, CLONE_NEWNS) < 0 || show_over(f) < 0 ? errno : 0;

	store_return(&warden.store);
	return errnum ? err_sys(e, errnum, "show the sandbox its limits") : 0;
}
