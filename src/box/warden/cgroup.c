/*
 * Limits by control groups, of both versions and of hybrids of the two: each controller is used in
 * the version that this host has it in. The warden has one directory below its own place in each
 * hierarchy, with one group for each sandbox slot in it. The warden and its janitor hold a lock
 * (flock(2)) on the directory while either lives: every container that sees the directory sees the
 * lock, too.
 *
 *	v1	memory, pids, cpu each in a hierarchy of their own; freezing by v2 where mounted. A
 *		new sandbox enters them by itself, by its thread: the kernel then moves it without
 *		the lock over all groups of the machine, which costs up to 20 ms when it is cold.
 *		To make and remove groups is a tenth of a sandbox's cost, so all but that of memory
 *		stay in the first slots for the next sandbox. Its use is the difference of their
 *		counters, and a quota is written anew, which forgives an overdraft. A group that
 *		was ever frozen does not stay: it might freeze its next sandbox. The memory group
 *		is always new, and its successful removal shows that no process is left in the
 *		others either
 *	v2	one tree; our directory needs the controllers enabled in its parent, and that
 *		parent must hold no process: where it holds only us, we move into a leaf beside our
 *		directory meanwhile. Memory and pids must be there, the CPU need not. A new sandbox
 *		is cloned into its group
 *
 * Files are memory, so `disk` is part of `memory`. Init writes what comes from outside, so its
 * memory counts in the sandbox; the copy of a busy sandbox's files for a fork counts in its first
 * child. Unprivileged users get rlimits: memory for each process, an exact process count, and no
 * CPU share, which is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/warden/internal.h"

enum {
	/* The warden, and all who wait for it, wait meanwhile. Freezing takes well below 1 ms, but
	 * each process has to run for a moment, which others may delay on a busy machine. */
	FREEZE_MS = 1000,
	FREEZE_POLL_US = 200,
	LOCK_TRIES = 100,
	LOCK_PAUSE_US = 1000,
};

static const char *const controllers[CG_CONTROLLERS] = {
	[CG_MEMORY] = "memory",
	[CG_PIDS] = "pids",
	[CG_CPU] = "cpu",
	[CG_FREEZER] = "freezer",
};

/* Followed by the warden's pid in its own namespace, for people, and a random number that makes the
 * name unique. */
static const char name_start[] = "holt-w";

static const char yield_file[] = "cpu.idle"; /* since Linux 5.15 */

/* Where a hierarchy is mounted, and the place of this process in it. */
struct hierarchy {
	char mount[512], root[512], self[512];
	bool v2;
};

static bool list_has(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += n) {
		if ((at == list || strchr(", ", at[-1])) && (!at[n] || strchr(", \n", at[n])))
			return true;
	}
	return false;
}

/* Files of /proc/self, read once and searched for each controller. NULL: it can't be read. */
static struct {
	char *mounts, *groups;
} self_says;

static char *self_read(const char *path)
{
	enum { MAX = 1 << 20, STEP = 32 << 10 };
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = NULL;
	size_t n = 0;
	ssize_t got = fd < 0 ? -1 : 1;

	while (got > 0 && n < MAX) {
		char *more = realloc(text, n + STEP + 1);

		if (!more)
			break;
		text = more;
		got = read(fd, text + n, STEP);
		n += got > 0 ? (size_t)got : 0;
	}
	if (text)
		text[n] = '\0';
	return text;
}

/* Takes the next line, without its end, as far as it fits. */
static bool next_line(const char **at, char *line, size_t max)
{
	size_t n = *at ? strcspn(*at, "\n") : 0;

	if (!*at || !**at)
		return false;
	snprintf(line, max, "%.*s", (int)n, *at);
	*at += n + ((*at)[n] == '\n');
	return true;
}

/* Finds the mount of a controller ("" for the v2 tree). */
static bool find_mount(const char *controller, struct hierarchy *ret_h)
{
	const char *at = self_says.mounts;
	char line[4096], type[32], options[1024];
	bool found = false;

	while (!found && next_line(&at, line, sizeof(line))) {
		char *dash = strstr(line, " - ");

		if (!dash || strncmp(dash, " - cgroup", strlen(" - cgroup")) != 0 ||
		    sscanf(line, "%*d %*d %*s %511s %511s", ret_h->root, ret_h->mount) != 2 ||
		    sscanf(dash, " - %31s %*s %1023s", type, options) != 2)
			continue;
		ret_h->v2 = strcmp(type, "cgroup2") == 0;
		found = *controller ? strcmp(type, "cgroup") == 0 && list_has(options, controller)
				    : ret_h->v2;
	}
	return found;
}

/* Finds the place of this process in it, from lines like "4:memory:/a/b" and "0::/a/b". */
static bool find_self(const char *controller, struct hierarchy *h)
{
	const char *at = self_says.groups;
	char line[1024];
	bool found = false;

	while (!found && next_line(&at, line, sizeof(line))) {
		char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		found = *controller ? list_has(list + 1, controller) : !list[1];
		snprintf(h->self, sizeof(h->self), "%.511s", path);
	}
	return found;
}

/* The directory of this process in a hierarchy, open. */
static int open_self(const struct hierarchy *h)
{
	size_t root = strlen(h->root);
	const char *below = h->self;
	char path[1100];

	if (root > 1 && strncmp(below, h->root, root) == 0)
		below += root;
	snprintf(path, sizeof(path), "%s%s", h->mount, below);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool text_read(int dir, const char *file, char text[KERNEL_TEXT_MAX])
{
	autoclose int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, KERNEL_TEXT_MAX - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return true;
}

int text_write(int dir, const char *file, const char *text)
{
	autoclose int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	do { /* the kernel interrupts writes of limits when the writer is to be frozen or traced */
		n = write(fd, text, strlen(text));
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -1 : 0;
}

static int write_number(int dir, const char *file, long long n)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", n);
	return text_write(dir, file, text);
}

/* Thaws processes that were frozen when the warden was killed: in v1 they die only then. */
static void remove_slot(int dir, const char *name)
{
	char state[300];

	if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno != EBUSY)
		return;
	snprintf(state, sizeof(state), "%s/freezer.state", name);
	text_write(dir, state, "THAWED");
}

/* Removes an empty group of ours and the slots in it. */
static void remove_below(int parent, const char *name)
{
	autoclose int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct folder f = folder_at(fd, ".");

	/* A group that still has some is not removed. */
	while (folder_next(&f) > 0) {
		if (f.entry->d_name[0] >= '0' && f.entry->d_name[0] <= '9')
			remove_slot(fd, f.entry->d_name);
	}
	folder_end(&f);
	unlinkat(parent, name, AT_REMOVEDIR);
}

/* Removes the directories of wardens that were killed together with their janitor. A process id
 * would not tell that one is dead, as other containers have other ids; the lock tells. Only
 * directories whose name says that they are locked are removed. */
static void sweep(int parent)
{
	struct folder f = folder_at(parent, ".");

	while (folder_next(&f) > 0) {
		const char *name = f.entry->d_name;
		autoclose int fd = -1;

		if (strncmp(name, name_start, sizeof(name_start) - 1) != 0)
			continue;
		fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			remove_below(parent, name);
	}
	folder_end(&f);
}

/* Makes and locks our directory; -1 with EAGAIN if another warden takes it for a dead warden's and
 * removes it. Controllers may share a hierarchy, hence a shared lock, and EEXIST is no error. */
static int make_locked(int parent, const char *name)
{
	autoclose int fd = -1;

	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return -1;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0 ||
	    faccessat(fd, "cgroup.procs", F_OK, 0) < 0) {
		if (errno == ENOENT)
			errno = EAGAIN;
		return -1;
	}
	return take_fd(&fd);
}

static int make_ours(struct cgroups *c, int controller, int parent)
{
	int fd;

	sweep(parent);
	for (int i = 0; (fd = make_locked(parent, c->name)) < 0; i++) {
		if (errno != EAGAIN || i == LOCK_TRIES)
			return -1;
		usleep(LOCK_PAUSE_US);
	}
	c->dirs[controller] = fd;
	c->parents[controller] = fcntl(parent, F_DUPFD_CLOEXEC, 0);
	return 0;
}

static void use_v1(struct cgroups *c, int controller)
{
	struct hierarchy h = { 0 };
	autoclose int self = -1;

	if (!find_mount(controllers[controller], &h) || !find_self(controllers[controller], &h))
		return;
	self = open_self(&h);
	if (self >= 0 && make_ours(c, controller, self) < 0)
		log_info("cgroup v1 %s can't be used: %s", controllers[controller],
			 strerror(errno));
}

/* The name of the leaf for hub and warden. */
static const char hub_leaf[] = "holt-hub";

/* True when the group holds no process but this one and its parent, the hub. */
static bool only_us(int dir)
{
	autoclose int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	char text[4096], *at = text, *end;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n < 0 || n == sizeof(text) - 1)
		return false;
	text[n] = '\0';
	for (long pid; (pid = strtol(at, &end, 10)), end != at; at = end) {
		if (pid != getpid() && pid != getppid())
			return false;
	}
	return true;
}

static int open_leaf(int dir)
{
	return openat(dir, hub_leaf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Undoes step_aside() when no controller is needed any more; others may still use the leaf. */
static void step_back(int dir)
{
	autoclose int leaf = open_leaf(dir);
	autoclose int procs = leaf < 0 ? -1 : openat(leaf, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	char text[4096], *at = text, *end;
	ssize_t n;

	if (procs < 0 || text_write(dir, "cgroup.subtree_control", "-memory -pids -cpu") < 0)
		return;
	n = read(procs, text, sizeof(text) - 1);
	text[n < 0 ? 0 : n] = '\0';
	for (long pid; (pid = strtol(at, &end, 10)), end != at; at = end)
		write_number(dir, "cgroup.procs", pid);
	unlinkat(dir, hub_leaf, AT_REMOVEDIR);
}

/* A group with processes can't enable controllers for others: moves hub and warden into a leaf
 * beside the sandboxes. */
static int step_aside(int dir)
{
	autoclose int leaf = -1;

	if (mkdirat(dir, hub_leaf, 0755) < 0 && errno != EEXIST)
		return -1;
	leaf = open_leaf(dir);
	if (leaf < 0 || write_number(leaf, "cgroup.procs", getppid()) < 0)
		return -1;
	return write_number(leaf, "cgroup.procs", getpid());
}

static int hand_on(int dir)
{
	if (text_write(dir, "cgroup.subtree_control", "+memory +pids") < 0)
		return -1;
	text_write(dir, "cgroup.subtree_control",
		   "+cpu"); /* not available everywhere: then CG_CPU is left out */
	return 0;
}

/* Uses our own group if it can enable controllers for the groups in it. */
static bool take_own(struct cgroups *c, int dir)
{
	if (hand_on(dir) == 0)
		return true;
	if (errno != EBUSY || !only_us(dir))
		return false;
	c->aside = true;
	if (step_aside(dir) == 0 && hand_on(dir) == 0)
		return true;
	step_back(dir);
	c->aside = false;
	return false;
}

/* Our own group if it can enable controllers, else, as root, the top of the tree. When a hub starts
 * a warden again, the new one is in the leaf of the last one. */
static int delegated_parent(struct cgroups *c, struct hierarchy *h)
{
	size_t n = strlen(h->self), leaf = sizeof(hub_leaf) - 1;
	int dir;

	if (n > leaf && h->self[n - leaf - 1] == '/' && strcmp(h->self + n - leaf, hub_leaf) == 0) {
		h->self[n - leaf - 1] = '\0';
		c->aside = true;
	}
	dir = open_self(h);
	if (dir >= 0 && take_own(c, dir))
		return dir;
	c->aside = false;
	if (dir >= 0)
		close(dir);
	dir = open(h->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0 && hand_on(dir) == 0)
		return dir;
	if (dir >= 0)
		close(dir);
	return -1;
}

static int make_v2(struct cgroups *c, int parent)
{
	char text[KERNEL_TEXT_MAX];
	bool cpu;

	if (make_ours(c, CG_MEMORY, parent) < 0)
		return -1;
	if (hand_on(c->dirs[CG_MEMORY]) < 0) {
		close_fd(&c->dirs[CG_MEMORY]);
		close_fd(&c->parents[CG_MEMORY]);
		unlinkat(parent, c->name, AT_REMOVEDIR);
		return -1;
	}
	c->v2[CG_MEMORY] = true;
	cpu = text_read(c->dirs[CG_MEMORY], "cgroup.subtree_control", text) &&
	      list_has(text, controllers[CG_CPU]);
	for (int i = CG_MEMORY + 1; i < CG_CONTROLLERS; i++) {
		if (i == CG_CPU && !cpu)
			continue;
		c->dirs[i] = fcntl(c->dirs[CG_MEMORY], F_DUPFD_CLOEXEC, 0);
		c->parents[i] = fcntl(parent, F_DUPFD_CLOEXEC, 0);
		c->v2[i] = true;
	}
	return 0;
}

static void use_v2(struct cgroups *c, struct hierarchy *h)
{
	autoclose int parent = delegated_parent(c, h);

	if (parent >= 0 && make_v2(c, parent) < 0 && c->aside) {
		step_back(parent);
		c->aside = false;
	}
}

/* Freezing needs no controller in v2, so a hybrid's v2 tree serves. */
static void use_v2_freezer(struct cgroups *c, const struct hierarchy *h)
{
	autoclose int self = open_self(h);

	if (self >= 0 && make_ours(c, CG_FREEZER, self) == 0)
		c->v2[CG_FREEZER] = true;
}

static bool same_dir(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* Adds the sandboxes' directory in the hierarchy of self, which is where we are ourselves. */
static int see(struct cgroups *c, const char *at, int self)
{
	struct cgroup_seen *seen = &c->seen[c->n_seen];
	int fd = self;
	char link[64];
	ssize_t n;

	*seen = (struct cgroup_seen){ .at = at };
	for (int i = 0; i < CG_CONTROLLERS && !seen->slots; i++) {
		seen->slots = same_dir(c->parents[i], self);
		fd = seen->slots ? c->dirs[i] : self;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = fd < 0 ? -1 : readlink(link, seen->path, sizeof(seen->path) - 1);
	if (n < 0)
		return -1;
	seen->path[n] = '\0';
	c->n_seen++;
	return 0;
}

/* Java takes control groups for those of v1 only where it finds all of these. */
static const char *const seen_v1[CG_SEEN] = { "memory", "cpu", "cpuacct", "cpuset" };

static int see_v1(struct cgroups *c)
{
	for (size_t i = 0; i < ARRAY_LEN(seen_v1); i++) {
		struct hierarchy h = { 0 };
		autoclose int self = -1;

		if (!find_mount(seen_v1[i], &h) || !find_self(seen_v1[i], &h))
			return -1;
		self = open_self(&h);
		if (see(c, seen_v1[i], self) < 0)
			return -1;
	}
	return 0;
}

/* Where a delegated tree of v2 is used, our directory is in its parent, not in self. */
static void find_seen(struct cgroups *c, const struct hierarchy *v2)
{
	autoclose int self = -1;

	if (!c->v2[CG_MEMORY] && see_v1(c) == 0)
		return;
	c->n_seen = 0;
	self = v2->v2 ? open_self(v2) : -1;
	for (int i = 0; i < CG_CONTROLLERS; i++) {
		if (c->v2[i]) {
			see(c, "", c->parents[i]);
			return;
		}
	}
	see(c, "", self);
}

int cgroups_init(struct cgroups *c, struct err *e)
{
	struct hierarchy h = { 0 };
	uint64_t random;

	*c = (struct cgroups){ .driver = LIMIT_DRIVER_RLIMIT };
	for (int i = 0; i < CG_CONTROLLERS; i++) {
		c->dirs[i] = -1;
		c->parents[i] = -1;
	}
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return err_sys(e, errno, "random name of the control group");
	snprintf(c->name, sizeof(c->name), "%s%d-%016" PRIx64, name_start, (int)getpid(), random);
	self_says.mounts = self_read("/proc/self/mountinfo");
	self_says.groups = self_read("/proc/self/cgroup");
	if (find_mount("", &h) && find_self("", &h)) {
		use_v2(c, &h);
		if (c->dirs[CG_MEMORY] < 0)
			use_v2_freezer(c, &h);
	} else {
		h.v2 = false;
	}
	for (int i = 0; i < CG_CONTROLLERS; i++) {
		if (c->dirs[i] < 0)
			use_v1(c, i);
	}
	find_seen(c, &h);
	free(take_ptr(self_says.mounts));
	free(take_ptr(self_says.groups));
	c->can_yield = c->dirs[CG_CPU] >= 0 && faccessat(c->dirs[CG_CPU], yield_file, W_OK, 0) == 0;
	c->shared = same_dir(c->dirs[CG_MEMORY], c->dirs[CG_PIDS]) ||
		    same_dir(c->dirs[CG_MEMORY], c->dirs[CG_CPU]);
	if (c->dirs[CG_MEMORY] >= 0 && c->dirs[CG_PIDS] >= 0)
		c->driver = c->v2[CG_MEMORY] ? LIMIT_DRIVER_CGROUP2 : LIMIT_DRIVER_CGROUP1;
	return 0;
}

/* v2 has all controllers in one directory: it is handled once, as CG_MEMORY's. */
static bool same_as_before(const struct cgroups *c, int controller)
{
	return c->v2[controller] && controller != CG_MEMORY && c->v2[CG_MEMORY];
}

bool cgroups_remove(const struct cgroups *c)
{
	bool gone = true;

	for (int i = 0; i < CG_CONTROLLERS; i++) {
		if (c->dirs[i] < 0)
			continue;
		remove_below(c->parents[i], c->name);
		gone = gone && faccessat(c->parents[i], c->name, F_OK, 0) < 0;
	}
	return gone;
}

void cgroups_step_back(const struct cgroups *c)
{
	if (c->aside)
		step_back(c->parents[CG_MEMORY]);
}

void cgroups_fini(struct cgroups *c)
{
	for (int i = 0; i < CG_CONTROLLERS; i++) {
		if (c->dirs[i] < 0)
			continue;
		if (!same_as_before(c, i))
			remove_below(c->parents[i], c->name);
		close_fd(&c->dirs[i]);
		close_fd(&c->parents[i]);
	}
}

/* ---- one sandbox ----------------------------------------------------------------------------- */

int cgroup_open(const struct cgroups *c, int controller, uint32_t slot)
{
	char name[16] = ".";

	if (slot != CGROUP_ALL)
		snprintf(name, sizeof(name), "%u", slot);
	return c->dirs[controller] < 0
		     ? -1
		     : openat(c->dirs[controller], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int open_file(const struct cgroups *c, int controller, uint32_t slot, const char *file,
		     int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "%u/%s", slot, file);
	return c->dirs[controller] < 0 ? -1 : openat(c->dirs[controller], path, flags | O_CLOEXEC);
}

static int set_memory(int dir, bool v2, uint64_t bytes)
{
	int failed;

	if (v2) {
		write_number(dir, "memory.swap.max", 0); /* absent without swap */
		return write_number(dir, "memory.max", (long long)bytes);
	}
	/* data in sockets is counted separately here */
	write_number(dir, "memory.kmem.tcp.limit_in_bytes", (long long)bytes / 4);
	/* memory with swap must never be below memory alone, so the order differs between growing
	 * and shrinking: try one, then the other */
	failed = write_number(dir, "memory.limit_in_bytes", (long long)bytes);
	if (faccessat(dir, "memory.memsw.limit_in_bytes", W_OK, 0) == 0) {
		if (write_number(dir, "memory.memsw.limit_in_bytes", (long long)bytes) < 0)
			return -1;
		if (failed)
			failed = write_number(dir, "memory.limit_in_bytes", (long long)bytes);
	}
	return failed;
}

/* Files can't take what init needs to free them again. It comes on top where memory and disk are
 * as large as each other. */
static uint64_t memory_of(const struct limits *l)
{
	return l->disk && l->disk + LIMIT_MEMORY_INIT > l->memory ? l->disk + LIMIT_MEMORY_INIT
								  : l->memory;
}

static int set_cpu(int dir, bool v2, uint32_t milli)
{
	long long quota = (long long)milli * CPU_PERIOD_US / 1000;
	char text[64];

	if (!v2)
		return write_number(dir, "cpu.cfs_quota_us", milli ? quota : -1);
	if (!milli)
		return text_write(dir, "cpu.max", "max");
	snprintf(text, sizeof(text), "%lld %d", quota, CPU_PERIOD_US);
	return text_write(dir, "cpu.max", text);
}

static int set_one(struct cgroups *c, int controller, uint32_t slot, const struct limits *l)
{
	autoclose int dir = cgroup_open(c, controller, slot);

	if (dir < 0)
		return c->dirs[controller] < 0 ? 0 : -1;
	switch (controller) {
	case CG_MEMORY:
		return set_memory(dir, c->v2[CG_MEMORY], memory_of(l));
	case CG_PIDS:
		return write_number(dir, "pids.max", l->pids);
	default:
		return set_cpu(dir, c->v2[CG_CPU], l->cpu_milli);
	}
}

static int set_all(struct cgroups *c, uint32_t slot, const struct limits *l,
		   const struct limits *was, struct err *e)
{
	const bool differs[CG_CONTROLLERS] = {
		[CG_MEMORY] = memory_of(l) != memory_of(was),
		[CG_PIDS] = l->pids != was->pids,
		[CG_CPU] = l->cpu_milli != was->cpu_milli,
	};

	for (int i = 0; i < CG_CONTROLLERS; i++) {
		if (differs[i] && set_one(c, i, slot, l) < 0)
			return err_sys(e, errno, "set the %s limit", controllers[i]);
	}
	return 0;
}

int cgroup_check(const struct cgroups *c, const struct limits *l, struct err *e)
{
	if (l->cpu_milli && c->dirs[CG_CPU] < 0)
		return err_set(e, ERR_UNSUPPORTED,
			       "a share of the CPU can't be enforced on this host");
	return 0;
}

/* 1: it is new, 0: it existed */
static int make_slot(const struct cgroups *c, int controller, uint32_t slot)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", slot);
	if (mkdirat(c->dirs[controller], name, 0755) == 0)
		return 1;
	return errno == EEXIST ? 0 : -1;
}

/* Whether groups other than that of memory may stay after their sandbox. */
static bool may_stay(const struct cgroups *c)
{
	return c->driver == LIMIT_DRIVER_CGROUP1 && !c->shared;
}

int cgroup_birthplace(struct cgroups *c, uint32_t slot)
{
	int controller = c->v2[CG_MEMORY] ? CG_MEMORY : CG_FREEZER;

	if (!c->v2[controller] || make_slot(c, controller, slot) < 0)
		return -1;
	return cgroup_open(c, controller, slot);
}

int cgroup_lend(struct cgroups *c, uint32_t slot, const struct limits *l, int *ret_fd,
		struct err *e)
{
	const struct limits none = { 0 }, memory = { .memory = memory_of(l) };

	*ret_fd = -1;
	if (c->dirs[CG_MEMORY] < 0)
		return 0;
	if (make_slot(c, CG_MEMORY, slot) < 0)
		return err_sys(e, errno, "make a memory control group");
	if (set_all(c, slot, &memory, &none, e) < 0)
		return -1;
	*ret_fd = open_file(c, CG_MEMORY, slot, c->v2[CG_MEMORY] ? "cgroup.procs" : "tasks",
			    O_WRONLY);
	return *ret_fd < 0 ? err_sys(e, errno, "open a memory control group") : 0;
}

/* Makes the groups of v1. Sets *was to the limits that they have already. */
static int make_slots(struct cgroups *c, uint32_t slot, struct limits *was, struct err *e)
{
	was->memory = was->disk = 0;
	for (int i = 0; i < CG_CONTROLLERS; i++) {
		int made = c->dirs[i] < 0 || c->v2[i] ? 0 : make_slot(c, i, slot);

		if (made < 0)
			return err_sys(e, errno, "make a %s control group", controllers[i]);
		/* another group may be old: then all limits are written */
		if (made && i != CG_MEMORY && may_stay(c))
			*was = (struct limits){ .cpu_milli = UINT32_MAX };
	}
	return 0;
}

int cgroup_new(struct cgroups *c, uint32_t slot, const struct limits *l, struct err *e)
{
	struct limits was = { 0 };
	bool old;

	if (slot < CG_KEPT) {
		was = c->kept[slot];
		if (was.pids && l->cpu_milli)
			was.cpu_milli = UINT32_MAX;
		c->kept[slot] = (struct limits){ 0 }; /* until all limits are set */
	}
	old = was.pids != 0;
	if (make_slots(c, slot, &was, e) < 0 || set_all(c, slot, l, &was, e) < 0)
		return -1;
	if (slot < CG_KEPT && may_stay(c))
		c->kept[slot] = *l;
	return old;
}

int cgroup_set(struct cgroups *c, uint32_t slot, const struct limits *l, const struct limits *was,
	       struct err *e)
{
	bool kept = slot < CG_KEPT && c->kept[slot].pids;

	if (set_all(c, slot, l, was, e) < 0) {
		if (kept)
			c->kept[slot] = (struct limits){ 0 }; /* it is unknown now what is set */
		return -1;
	}
	if (kept)
		c->kept[slot] = *l;
	return 0;
}

int cgroup_tasks(struct cgroups *c, uint32_t slot, int ret_fds[CG_CONTROLLERS], struct err *e)
{
	int n = 0;

	for (int i = 0; i < CG_CONTROLLERS; i++) {
		if (c->dirs[i] < 0 || c->v2[i])
			continue;
		ret_fds[n] = open_file(c, i, slot, "tasks", O_WRONLY);
		if (ret_fds[n] < 0) {
			err_sys(e, errno, "open a %s control group", controllers[i]);
			while (n)
				close(ret_fds[--n]);
			return -1;
		}
		n++;
	}
	return n;
}

/* v1 checks each process once for each write, and misses those that then wait in a vfork, so we
 * write until all are frozen. */
int cgroup_freeze(struct cgroups *c, uint32_t slot, bool frozen, struct err *e)
{
	autoclose int dir = cgroup_open(c, CG_FREEZER, slot);
	bool v2 = c->v2[CG_FREEZER];
	const char *file = v2 ? "cgroup.freeze" : "freezer.state";
	const char *state = v2 ? (frozen ? "1" : "0") : (frozen ? "FROZEN" : "THAWED");
	uint64_t deadline = clock_ms() + FREEZE_MS;
	char text[KERNEL_TEXT_MAX];

	if (dir < 0)
		return err_set(e, ERR_UNSUPPORTED, "no control group to freeze processes with");
	if (slot < CG_KEPT)
		c->kept[slot] = (struct limits){ 0 };
	if (text_write(dir, file, state) < 0)
		return err_sys(e, errno, "freeze");
	while (frozen && !(text_read(dir, v2 ? "cgroup.events" : "freezer.state", text) &&
			   strstr(text, v2 ? "frozen 1" : "FROZEN"))) {
		if (clock_ms() > deadline || (!v2 && text_write(dir, file, state) < 0)) {
			text_write(dir, file, v2 ? "0" : "THAWED");
			return err_set(e, ERR_TIMEOUT, "the processes could not be frozen");
		}
		usleep(FREEZE_POLL_US);
	}
	return 0;
}

int cgroup_yield(struct cgroups *c, uint32_t slot, bool yields, struct err *e)
{
	autoclose int dir = cgroup_open(c, CG_CPU, slot);

	if (!c->can_yield)
		return err_set(e, ERR_UNSUPPORTED, "no control group to give way with");
	if (dir >= 0 && write_number(dir, yield_file, yields) == 0)
		return 0;
	if (slot < CG_KEPT) /* the next sandbox might find it frozen */
		c->kept[slot] = (struct limits){ 0 };
	return err_sys(e, errno, "give way");
}

void cgroup_events(struct cgroups *c, uint32_t slot, int *ret_oom, int *ret_pids)
{
	*ret_oom = open_file(c, CG_MEMORY, slot,
			     c->v2[CG_MEMORY] ? "memory.events" : "memory.oom_control", O_RDONLY);
	*ret_pids = open_file(c, CG_PIDS, slot, "pids.events", O_RDONLY);
}

bool cgroup_remove(struct cgroups *c, uint32_t slot)
{
	bool stay = slot < CG_KEPT && c->kept[slot].pids, gone = true;
	char name[16];

	snprintf(name, sizeof(name), "%u", slot);
	for (int i = 0; i < CG_CONTROLLERS; i++) {
		if (c->dirs[i] >= 0 && !same_as_before(c, i) && !(stay && i != CG_MEMORY) &&
		    unlinkat(c->dirs[i], name, AT_REMOVEDIR) < 0 && errno != ENOENT)
			gone = false;
	}
	return gone;
}
