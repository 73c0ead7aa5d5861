/*
 * The janitor: a helper of the warden that outlives it, to remove what no process's end removes: its
 * control groups, and the socket and the lock of one that outlives its hub. It learns of the
 * warden's end by the closing of a pipe. The lock is held by both of them, so that nobody starts
 * another warden in that folder before the names in it are gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "box/warden/warden.h"

enum { TRIES = 500, PAUSE_US = 20000, FDS_MAX = 256 };

static bool is_kept_file(int fd)
{
	return fd == WARDEN_LOCK_FD || fd == WARDEN_DIR_FD;
}

/* Keeps nothing open that is not needed: the hub's standard error is a pipe that somebody may read to
 * its end. */
static void close_others(const struct cgroups *c, int pipe, bool kept)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, STDERR_FILENO);
	for (int fd = STDERR_FILENO + 1; fd < FDS_MAX; fd++) {
		bool keep = fd == pipe || (kept && is_kept_file(fd));

		for (int i = 0; i < CG_CONTROLLERS; i++)
			keep = keep || fd == c->dirs[i] || fd == c->parents[i];
		if (!keep)
			close(fd);
	}
}

/* Where somebody has removed the lock, the names in the folder may be another warden's. */
static void remove_names(void)
{
	struct stat st;

	if (fstat(WARDEN_LOCK_FD, &st) < 0 || !st.st_nlink)
		return;
	unlinkat(WARDEN_DIR_FD, WARDEN_SOCKET, 0);
	unlinkat(WARDEN_DIR_FD, WARDEN_LOCK, 0);
}

static _Noreturn void janitor_main(const struct cgroups *c, int warden_end, bool kept)
{
	char byte;

	prctl(PR_SET_NAME, "holt-janitor");
	setsid();
	close_others(c, warden_end, kept);
	while (read(warden_end, &byte, 1) < 0 && errno == EINTR)
		;
	if (kept) {
		remove_names();
		close(WARDEN_LOCK_FD);
	}
	/* the sandboxes die with the warden by themselves; their groups empty as they do */
	for (int i = 0; i < TRIES && !cgroups_remove(c); i++)
		usleep(PAUSE_US);
	cgroups_step_back(c);
	_exit(0);
}

int janitor_start(const struct cgroups *c, bool kept, struct err *e)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	pid = fork();
	if (pid == 0) {
		close(ends[1]);
		janitor_main(c, ends[0], kept);
	}
	close(ends[0]);
	if (pid < 0) {
		close(ends[1]);
		return err_sys(e, errno, "start the janitor");
	}
	return ends[1];
}
