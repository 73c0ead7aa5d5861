#include "host.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

enum { PATIENCE_MS = 60000, PAUSE_US = 10000, GROUP_PATH_MAX = 512 };

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

static bool of_a_warden(const struct host_state *was, const char *name)
{
	int pid;

	if (sscanf(name, "holt-w%d-", &pid) != 1)
		return false;
	for (size_t i = 0; i < was->n_wardens; i++) {
		if (was->wardens[i] == pid)
			return true;
	}
	return false;
}

/* The path of a control group of a warden below dir. Only names are read: looking at every file
 * of some hundred groups takes so long, and so much from who is removing them, that they seem to
 * stay. */
static bool find_group(const struct host_state *was, const char *dir, char *ret_path, size_t n)
{
	char path[GROUP_PATH_MAX];
	bool found = false;
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && !found && (e = readdir(d))) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%.250s/%.250s", dir, e->d_name);
		found = of_a_warden(was, e->d_name);
		if (found)
			snprintf(ret_path, n, "%s", path);
		else
			found = find_group(was, path, ret_path, n);
	}
	if (d)
		closedir(d);
	return found;
}

void host_add_warden(struct host_state *state, int pid)
{
	for (size_t i = 0; i < state->n_wardens; i++) {
		if (state->wardens[i] == pid)
			return;
	}
	if (state->n_wardens < HOST_WARDENS_MAX)
		state->wardens[state->n_wardens++] = pid;
}

void host_look(struct host_state *ret_state)
{
	ret_state->fds = host_fds(getpid());
	read_mounts(ret_state->mounts, sizeof(ret_state->mounts));
	ret_state->n_wardens = 0;
}

/* NULL when nothing is left. */
static const char *find_left(const struct host_state *was)
{
	static char mounts[HOST_MOUNTS_MAX], group[GROUP_PATH_MAX];
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
	return find_group(was, "/sys/fs/cgroup", group, sizeof(group)) ? group : NULL;
}

bool host_same(const struct host_state *was, char *ret_left, size_t n)
{
	uint64_t until = clock_ms() + PATIENCE_MS;
	const char *left = find_left(was);

	while (left && clock_ms() < until) {
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
