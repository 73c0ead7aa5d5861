#include "host.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
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
	const struct host_state *was;
	char found[512];
} groups;

static int on_group(const char *path, const struct stat *st, int type, struct FTW *at)
{
	int pid;

	if (type != FTW_D || sscanf(path + at->base, "holt-%d", &pid) != 1)
		return 0;
	for (size_t i = 0; i < groups.was->n_wardens; i++) {
		if (groups.was->wardens[i] != pid)
			continue;
		snprintf(groups.found, sizeof(groups.found), "%s", path);
		return 1;
	}
	return 0;
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
	static char mounts[HOST_MOUNTS_MAX];
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
	groups.was = was;
	groups.found[0] = '\0';
	nftw("/sys/fs/cgroup", on_group, 64, FTW_PHYS);
	return groups.found[0] ? groups.found : NULL;
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
