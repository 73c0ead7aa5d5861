#include "box/probe/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

/*
 * A controller is tried in its own hierarchy: a group is made below this process's group or at the
 * top, the limit is written, a process enters, and everything is removed again.
 */

static const struct controller {
	const char *name;
	const char *file1, *value1; /* version 1 */
	const char *file2, *value2; /* version 2 */
} memory = { "memory", "memory.limit_in_bytes", "67108864", "memory.max", "67108864" },
  pids = { "pids", "pids.max", "64", "pids.max", "64" },
  cpu = { "cpu", "cpu.cfs_quota_us", "50000", "cpu.max", "50000 100000" },
  freezer = { "freezer", "freezer.state", "THAWED", "cgroup.freeze", "0" };

struct tree {
	int version; /* 0: no hierarchy has the controller */
	bool hybrid; /* both versions are mounted */
	char mount[1024]; /* where it is mounted */
	char root[1024]; /* which group is visible there */
	char own[2048]; /* this process's own group */
};

static bool has_word(const char *list, const char *word, const char *separators)
{
	size_t n = strlen(word);

	for (const char *p = list; *p; p += strcspn(p, separators)) {
		p += strspn(p, separators);
		if (strncmp(p, word, n) == 0 && (p[n] == '\0' || strchr(separators, p[n])))
			return true;
	}
	return false;
}

/* "36 25 0:31 /root /mount opts … - type source superopts" */
static void find_mount(struct tree *t, const struct controller *c)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096], root[1024], at[1024], type[32], super[512];
	bool two = false;

	while (f && fgets(line, sizeof(line), f)) {
		const char *dash = strstr(line, " - ");

		if (!dash || sscanf(line, "%*d %*d %*s %1023s %1023s", root, at) != 2 ||
		    sscanf(dash, " - %31s %*s %511s", type, super) != 2)
			continue;
		two = two || strcmp(type, "cgroup2") == 0;
		if (strcmp(type, "cgroup") == 0 ? !has_word(super, c->name, ",")
						: strcmp(type, "cgroup2") != 0 || t->version == 1)
			continue;
		t->version = strcmp(type, "cgroup") == 0 ? 1 : 2;
		snprintf(t->mount, sizeof(t->mount), "%s", at);
		snprintf(t->root, sizeof(t->root), "%s", strcmp(root, "/") == 0 ? "" : root);
	}
	t->hybrid = two && t->version == 1;
	if (f)
		fclose(f);
}

/* "4:memory:/path", and "0::/path" for version 2. */
static void find_own(struct tree *t, const struct controller *c)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[2048];

	while (f && fgets(line, sizeof(line), f)) {
		char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
		size_t skip = strlen(t->root);

		if (!path)
			continue;
		*path++ = '\0';
		if (t->version == 2 ? list[1] != '\0' : !has_word(list + 1, c->name, ","))
			continue;
		path[strcspn(path, "\n")] = '\0';
		if (strncmp(path, t->root, skip) == 0)
			path += skip;
		snprintf(t->own, sizeof(t->own), "%.1000s%.1000s", t->mount, path);
	}
	if (f)
		fclose(f);
}

static int cgroup_put(const char *group, const char *file, const char *value)
{
	char path[4096];
	autoclose int fd = -1;
	ssize_t n = (ssize_t)strlen(value);

	snprintf(path, sizeof(path), "%.3000s/%.900s", group, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, value, (size_t)n) == n ? 0 : errno;
}

/* A process enters the group and exits. */
static int cgroup_enter(const char *group)
{
	int status = 0;
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(cgroup_put(group, "cgroup.procs", "0"));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : ENODATA;
}

/* In version 2 the parent group must enable the controller. *ret_on: we enabled it. */
static int hand_on(const char *above, const char *group, const struct controller *c, bool *ret_on)
{
	char path[4096], word[32];
	int r;

	*ret_on = false;
	snprintf(path, sizeof(path), "%.3000s/%s", group, c->file2);
	if (access(path, F_OK) == 0)
		return 0;
	snprintf(word, sizeof(word), "+%s", c->name);
	r = cgroup_put(above, "cgroup.subtree_control", word);
	*ret_on = r == 0;
	return r;
}

static int try_below(const struct tree *t, const char *above, const struct controller *c)
{
	char group[4096], word[32];
	bool on = false;
	int r = 0;

	snprintf(group, sizeof(group), "%.3000s/holt-probe-%d", above, (int)getpid());
	if (mkdir(group, 0755) < 0)
		return errno;
	if (t->version == 2)
		r = hand_on(above, group, c, &on);
	if (r == 0)
		r = t->version == 2 ? cgroup_put(group, c->file2, c->value2)
				    : cgroup_put(group, c->file1, c->value1);
	if (r == 0)
		r = cgroup_enter(group);
	/* groups with processes can also enable pids and cpu, but only for threads */
	if (t->version == 2 && r == EOPNOTSUPP)
		r = EBUSY;
	rmdir(group);
	if (on) {
		snprintf(word, sizeof(word), "-%s", c->name);
		cgroup_put(above, "cgroup.subtree_control", word);
	}
	return r;
}

/* True if the group has no processes but this one and the one that probes. Then Holt can move into
 * a group beside the sandboxes, which version 2 requires before a group may enable controllers. */
static bool only_us(const char *group)
{
	char path[4096];
	FILE *f;
	int pid;
	bool only = true;

	snprintf(path, sizeof(path), "%.3000s/cgroup.procs", group);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (only && fscanf(f, "%d", &pid) == 1)
		only = pid == getpid() || pid == getppid();
	fclose(f);
	return only;
}

static int try_controller(const struct probe_try *t, const struct controller *c)
{
	struct tree tree = { .version = 0 };
	const char *kind;
	int r;

	find_mount(&tree, c);
	if (tree.version == 0)
		return probe_say(t, ENODATA, "no control group hierarchy has it");
	find_own(&tree, c);
	kind = tree.version == 2 ? "v2" : tree.hybrid ? "v1 (hybrid)" : "v1";
	r = tree.own[0] ? try_below(&tree, tree.own, c) : ENOENT;
	if (r != 0 && try_below(&tree, tree.mount, c) == 0)
		r = 0;
	if (r == 0)
		return probe_say(t, 0, "%s, writable", kind);
	if (r == EBUSY && only_us(tree.own))
		return probe_say(t, 0, "%s, delegated", kind);
	if (r == EBUSY)
		return probe_say(t, r, "%s, but other processes stand in this one's group", kind);
	if (tree.version == 2 && r == EINVAL)
		return probe_say(t, r, "v2, but the kernel was booted without the controller");
	if (tree.version == 2 && r == ENOENT)
		return probe_say(t, r, "v2, but the controller is not handed down to here");
	return probe_say(t, r, "%s, but %s on making a group", kind,
			 strerrorname_np(r) ? strerrorname_np(r) : "an error");
}

int probe_try_cgroup_memory(const struct probe_try *t)
{
	return try_controller(t, &memory);
}

int probe_try_cgroup_pids(const struct probe_try *t)
{
	return try_controller(t, &pids);
}

int probe_try_cgroup_cpu(const struct probe_try *t)
{
	return try_controller(t, &cpu);
}

int probe_try_cgroup_freezer(const struct probe_try *t)
{
	return try_controller(t, &freezer);
}
