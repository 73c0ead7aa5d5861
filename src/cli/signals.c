#include "cli/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/mem.h"

static const int caught[] = { SIGINT, SIGTERM, SIGHUP };

static int write_end = -1;

static void on_signal(int number)
{
	int saved = errno;
	unsigned char byte = (unsigned char)number;

	/* A full pipe has enough of them. */
	if (write(write_end, &byte, 1) < 0)
		errno = saved;
	errno = saved;
}

int signals_open(struct err *e)
{
	/* Without SA_RESTART, so that a blocked write returns. */
	struct sigaction act = { .sa_handler = on_signal };
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(e, errno, "pipe for signals");
	write_end = fds[1];
	sigemptyset(&act.sa_mask);
	for (size_t i = 0; i < ARRAY_LEN(caught); i++)
		sigaction(caught[i], &act, NULL);
	signal(SIGPIPE, SIG_IGN);
	return fds[0];
}

int signals_take(int fd)
{
	unsigned char byte;

	return read(fd, &byte, 1) == 1 ? byte : 0;
}
