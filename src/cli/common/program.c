#include "cli/common/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum { VERSION_MS = 5000 };

/* The first line that it says, or what it had said when its time was over. */
static void program_read(int fd, char line[PROGRAM_VERSION_MAX])
{
	uint64_t until = clock_ns() + VERSION_MS * 1000000ull, now;
	size_t n = 0;

	while (n < PROGRAM_VERSION_MAX - 1 && (now = clock_ns()) < until) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t got;

		if (poll(&p, 1, (int)((until - now) / 1000000) + 1) <= 0)
			continue;
		got = read(fd, line + n, PROGRAM_VERSION_MAX - 1 - n);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
}

int program_version(const char *path, char line[PROGRAM_VERSION_MAX], struct err *e)
{
	char *argv[] = { (char *)(uintptr_t)path, (char *)(uintptr_t) "--version", NULL };
	posix_spawn_file_actions_t actions;
	int ends[2], failed;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	failed = posix_spawn(&pid, path, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (!failed) {
		program_read(ends[0], line);
		kill(pid, SIGKILL); /* it has said all that it will */
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	return failed ? err_sys(e, failed, "run it") : 0;
}
