#include "cli/link/start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/common/claim.h"
#include "cli/common/home.h"

enum { START_MS = 30000, PAUSE_US = 10000 };

bool hub_serves(const char *path)
{
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t n = strlen(path);

	if (fd < 0 || n >= sizeof(at.sun_path))
		return false;
	memcpy(at.sun_path, path, n + 1);
	return connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0;
}

/* It has a session of its own, so that no terminal's signal reaches it, and nothing that is open
 * here: a pipe would not end and a lock not be free before the hub is gone. */
static int spawn_hub(const char *log, int said, struct err *e)
{
	static char *const argv[] = { "holt",	     "serve", "--listen", "none",
				      "--exit-idle", "10m",   "--yield",  NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	pid_t pid;
	int failed;

	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&how);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID);
	failed = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	failed = failed ? failed : posix_spawn_file_actions_adddup2(&files, said, STDOUT_FILENO);
	failed = failed ? failed
			: posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log,
							   O_WRONLY | O_CREAT | O_APPEND, 0600);
	failed = failed ? failed : posix_spawn_file_actions_addchdir_np(&files, "/");
	failed = failed ? failed
			: posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
	failed = failed ? failed : posix_spawn(&pid, "/proc/self/exe", &files, &how, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&how);
	return failed ? err_sys(e, failed, "start a hub") : 0;
}

/* Until it has said all that it says at its start, or has failed, or takes too long. */
static void await_words(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char text[4096];
	size_t n = 0;

	while (n < sizeof(text) && poll(&p, 1, START_MS) > 0) {
		ssize_t got = read(fd, text + n, sizeof(text) - n);

		if (got <= 0)
			return;
		n += (size_t)got;
		if (memmem(text, n, "auth token", 10))
			return;
	}
}

static int start_one(const char *log, struct err *e)
{
	autoclose int in = -1, out = -1;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	in = ends[0];
	out = ends[1];
	if (spawn_hub(log, out, e) < 0)
		return -1;
	close_fd(&out);
	await_words(in);
	return 0;
}

/* Why it serves nobody at this socket yet: it may be at its beginning or end, or serve
 * elsewhere. */
static int check_other(const struct claim *c, const char *socket, uint64_t until, struct err *e)
{
	char text[CLAIM_TEXT_MAX];

	if ((!*c->socket || strcmp(c->socket, socket) == 0) && clock_ms() < until)
		return 0;
	claim_text(c, text);
	return err_set(e, ERR_STORE_LOCKED,
		       "a hub has the data folder and does not serve %.60s: %s", socket, text);
}

/* Fails with the last words of a hub that ended at its start; the log is its stderr. */
static int fail_start(int log, off_t from, const char *path, struct err *e)
{
	static const char name[] = "\nholt: ";
	char text[4096] = "\n", *said = NULL;
	ssize_t n = pread(log, text + 1, sizeof(text) - 2, from);

	text[n > 0 ? n + 1 : 0] = '\0';
	for (char *at = text; (at = strstr(at, name)); at += sizeof(name) - 1)
		said = at + sizeof(name) - 1;
	if (!said)
		return err_set(e, ERR_TRANSPORT, "no hub could be started: see %.160s", path);
	return err_set(e, ERR_TRANSPORT, "no hub could be started: %.*s", (int)strcspn(said, "\n"),
		       said);
}

int hub_start(const char *socket, struct err *e)
{
	const uint64_t until = clock_ms() + START_MS;
	autoclose int lock = -1;
	char log[PATH_MAX];
	struct stat st;

	if (hub_serves(socket))
		return 0;
	if (home_file("hub.log", log, e) < 0)
		return -1;
	lock = open(log, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (lock < 0 || flock(lock, LOCK_EX) < 0 || fstat(lock, &st) < 0)
		return err_sys(e, errno, "open %.120s", log);
	for (bool started = false; !hub_serves(socket);) {
		struct claim other;
		int held = claim_look(&other, e);

		if (held < 0 || (held && check_other(&other, socket, until, e) < 0))
			return -1;
		if (held) {
			usleep(PAUSE_US);
			continue;
		}
		if (started)
			return fail_start(lock, st.st_size, log, e);
		if (start_one(log, e) < 0)
			return -1;
		started = true;
	}
	return 0;
}
