#include "host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

enum { TRIES = 500, PAUSE_US = 10000 };

size_t host_fds(int pid)
{
	char path[64];
	size_t n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void read_mounts(char *text, size_t size)
{
	autoclose int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	size_t at = 0;
	ssize_t n;

	while (fd >= 0 && at < size - 1 && (n = read(fd, text + at, size - 1 - at)) > 0)
		at += (size_t)n;
	text[at] = '\0';
}

/* Where on_group() looks and puts: nftw has no argument for it. */
static struct {
	const char *known; /* lines; a group that stands in it is passed over */
	char *out;
	size_t n, at;
	bool dead_only;
} groups;

static int on_group(const char *path, const struct stat *st, int type, struct FTW *at)
{
	char line[512];
	int pid;

	if (type != FTW_D || sscanf(path + at->base, "holt-%d", &pid) != 1)
		return 0;
	if (groups.dead_only && (kill(pid, 0) == 0 || errno != ESRCH))
		return 0; /* of somebody who runs */
	snprintf(line, sizeof(line), "%s\n", path);
	if (strstr(groups.known, line) || groups.at + strlen(line) >= groups.n)
		return 0;
	strcpy(groups.out + groups.at, line);
	groups.at += strlen(line);
	return 0;
}

static void list_groups(char *out, size_t n, const char *known, bool dead_only)
{
	out[0] = '\0';
	groups.known = known;
	groups.out = out;
	groups.n = n;
	groups.at = 0;
	groups.dead_only = dead_only;
	nftw("/sys/fs/cgroup", on_group, 64, FTW_PHYS);
}

void host_look(struct host_state *ret_state)
{
	ret_state->fds = host_fds(getpid());
	read_mounts(ret_state->mounts, sizeof(ret_state->mounts));
	list_groups(ret_state->groups, sizeof(ret_state->groups), "", false);
}

/* NULL when nothing is left. */
static const char *find_left(const struct host_state *was)
{
	static char mounts[HOST_MOUNTS_MAX], stale[HOST_GROUPS_MAX];
	pid_t pid;

	do {
		pid = waitpid(-1, NULL, WNOHANG | __WALL);
	} while (pid > 0);
	if (pid == 0)
		return "a process";
	if (host_fds(getpid()) != was->fds)
		return "a descriptor";
	read_mounts(mounts, sizeof(mounts));
	if (strcmp(mounts, was->mounts) != 0)
		return "a mount";
	list_groups(stale, sizeof(stale), was->groups, true);
	return stale[0] ? stale : NULL;
}

bool host_same(const struct host_state *was, char *ret_left, size_t n)
{
	const char *left = find_left(was);

	for (int i = 0; left && i < TRIES; i++) {
		usleep(PAUSE_US);
		left = find_left(was);
	}
	snprintf(ret_left, n, "%s", left ? left : "");
	return !left;
}

static int on_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

void host_remove(const char *dir)
{
	nftw(dir, on_entry, 64, FTW_DEPTH | FTW_PHYS);
}
