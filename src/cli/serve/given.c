#include "cli/serve/given.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A number without anything before or behind it; -1: it is none. */
static long number_of(const char *text)
{
	size_t n = strlen(text);

	return n && n < 10 && strspn(text, "0123456789") == n ? atol(text) : -1;
}

int given_sockets(struct err *e)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	long n = count ? number_of(count) : -1;
	bool ours = pid && count && number_of(pid) == getpid();

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (!ours)
		return 0;
	if (n < 0 || n > GIVEN_MAX)
		return err_set(e, ERR_INVALID, "LISTEN_FDS is not a number up to %d", GIVEN_MAX);
	for (int fd = GIVEN_FIRST; fd < GIVEN_FIRST + n; fd++) {
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			return err_sys(e, errno, "LISTEN_FDS: descriptor %d", fd);
	}
	return (int)n;
}
