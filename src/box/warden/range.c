/*
 * Ranges of ids, one for each family of forks with a uid 0. As root they lie beside the ids of
 * other sandboxes, and are locked like those. Without privileges there is one range, which the
 * machine's administrator gives a user in /etc/subuid and /etc/subgid: all sandboxes with root
 * share it, as they share the user.
 *
 * As root each family of forks has a host uid of its own (1900000000 and up; in a container with
 * fewer ids, 20000 to 65533), so that the kernel's per-user counts are not shared. Each warden
 * locks 8192 ids in /run/holt-ids (host.c), or as many as it needs where so many are not free, from
 * a random start, so that containers with common ids but no common /run rarely collide. Host uid 0
 * is never given out: root without CAP_SYS_ADMIN is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "box/warden/internal.h"

static bool overlaps(uint64_t first, uint64_t from, uint64_t n)
{
	return first < from + n && from < first + ROOT_IDS;
}

/* Whether we use these ids ourselves: our own lock would not tell. */
static bool is_ours(uint64_t first)
{
	if (overlaps(first, warden.host.uid_base, warden.host.n_uids))
		return true;
	for (uint32_t i = 0; i < warden.n_sandboxes; i++) {
		const struct sandbox *b = &warden.sandboxes[i];

		if (b->has_range && overlaps(first, b->uid, ROOT_IDS))
			return true;
	}
	return false;
}

static int no_range(struct err *e)
{
	if (warden.host.rootless)
		return err_set(e, ERR_UNSUPPORTED,
			       "root inside takes %d ids of /etc/subuid and of /etc/subgid, and "
			       "newuidmap and newgidmap (Debian: uidmap)",
			       ROOT_IDS - 1);
	return err_set(e, ERR_UNSUPPORTED,
		       "root inside takes %d ids from %u on that are free in this user namespace",
		       ROOT_IDS, IDS_FIRST);
}

int range_take(struct sandbox *b, struct err *e)
{
	uint32_t n = warden.host.n_ranges, from = 0;

	if (warden.store.plain)
		return err_set(e, ERR_UNSUPPORTED,
			       "root inside takes overlays, which users without privileges have "
			       "since Linux 6.6");
	if (warden.host.has_range) {
		b->uid = 0;
		return 0;
	}
	if (warden.host.one_uid)
		return no_range(e);
	if (getrandom(&from, sizeof(from), GRND_NONBLOCK) < 0)
		from = (uint32_t)getpid();
	for (uint32_t k = 0; k < n; k++) {
		uint64_t at = IDS_FIRST + (uint64_t)((from + k) % n) * ROOT_IDS;

		if (is_ours(at) || !ids_lock(warden.host.id_locks, at, ROOT_IDS, true))
			continue;
		b->uid = (uint32_t)at;
		b->has_range = true;
		return 0;
	}
	return no_range(e);
}

void range_drop(struct sandbox *b)
{
	if (!b->has_range)
		return;
	b->has_range = false;
	for (uint32_t i = 0; i < warden.n_sandboxes; i++) {
		const struct sandbox *o = &warden.sandboxes[i];

		if (o->has_range && o->uid == b->uid)
			return; /* of the same family */
	}
	ids_lock(warden.host.id_locks, b->uid, ROOT_IDS, false);
}

/* ---- the one range of a user without privileges ---------------------------------------------- */

static pid_t mapper;

/* Lines of "NAME:FIRST:COUNT", NAME may be a number. 0: none is long enough. */
static uint32_t find_subids(const char *path, const char *name, const char *number)
{
	FILE *f = fopen(path, "re");
	char line[512];
	uint32_t found = 0;

	while (f && !found && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':'), *end = NULL;
		unsigned long first = colon ? strtoul(colon + 1, &end, 10) : 0;

		if (!colon || !end || *end != ':' || strtoul(end + 1, NULL, 10) < ROOT_IDS - 1)
			continue;
		*colon = '\0';
		if (first <= UINT32_MAX && (strcmp(line, name) == 0 || strcmp(line, number) == 0))
			found = (uint32_t)first;
	}
	if (f)
		fclose(f);
	return found;
}

/* Runs newuidmap or newgidmap for the process `of`. */
static pid_t run_map(const char *program, pid_t of, uint32_t own, uint32_t first)
{
	char pid[16], self[16], rest[16], n[16];
	pid_t child = fork();
	int null;

	if (child != 0)
		return child;
	snprintf(pid, sizeof(pid), "%d", (int)of);
	snprintf(self, sizeof(self), "%u", own);
	snprintf(rest, sizeof(rest), "%u", first);
	snprintf(n, sizeof(n), "%d", ROOT_IDS - 1);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	execlp(program, program, pid, "0", self, "1", "1", rest, n, (char *)NULL);
	_exit(127);
}

static bool ended_well(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return false;
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static _Noreturn void map_parent(int go, uint32_t uids, uint32_t gids)
{
	pid_t parent = getppid(), users, groups;
	bool done;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(go, &c, 1) != 1)
		_exit(1);
	users = run_map("newuidmap", parent, getuid(), uids);
	groups = run_map("newgidmap", parent, getgid(), gids);
	done = ended_well(users);
	done &= ended_well(groups);
	_exit(done ? 0 : 1);
}

int range_map_start(void)
{
	const struct passwd *p = getpwuid(getuid());
	uint32_t uids, gids;
	char number[16];
	int go[2];

	snprintf(number, sizeof(number), "%u", (unsigned)getuid());
	uids = p ? find_subids("/etc/subuid", p->pw_name, number) : 0;
	gids = uids ? find_subids("/etc/subgid", p->pw_name, number) : 0;
	if (!gids || pipe2(go, O_CLOEXEC) < 0)
		return -1;
	mapper = fork();
	if (mapper == 0) {
		close(go[1]);
		map_parent(go[0], uids, gids);
	}
	close(go[0]);
	if (mapper > 0)
		return go[1];
	close(go[1]);
	return -1;
}

/* A map that only one of the two programs has written is whole, so that nothing is to be undone. */
bool range_map(int go)
{
	bool told = go >= 0 && write(go, "y", 1) == 1;

	if (go >= 0)
		close(go);
	return mapper > 0 && ended_well(mapper) && told;
}
