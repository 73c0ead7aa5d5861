#include "box/wire/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

enum {
	STATUS_MAX = 64 * 1024,
	SO_PEERPIDFD_ = 77, /* newer than the headers of Debian 12 */
};

int peer_open(int socket, pid_t pid)
{
	int pidfd = -1;
	socklen_t n = sizeof(pidfd);

	if (pid <= 0)
		return -1;
	if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD_, &pidfd, &n) == 0)
		return pidfd;
	return errno == ENOPROTOOPT ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

bool peer_has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

/* The text after a word at the beginning of a line; NULL: there is no such line. */
static const char *value_of(const char *text, const char *word)
{
	size_t n = strlen(word);

	while (text && strncmp(text, word, n) != 0) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return text ? text + n : NULL;
}

int peer_read(int proc, pid_t pid, struct peer *ret)
{
	static char text[STATUS_MAX];
	char path[32];
	const char *name, *at;
	autoclose int fd = -1;
	ssize_t n;

	if (pid)
		snprintf(path, sizeof(path), "%d/status", (int)pid);
	fd = openat(proc, pid ? path : "self/status", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	name = value_of(text, "Name:\t");
	at = value_of(text, "NSpid:");
	if (!name || !at)
		return -1;
	*ret = (struct peer){ .depth = 0 };
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)strcspn(name, "\n"), name);
	for (; *at == '\t'; at += strcspn(at, "\t\n"), ret->depth++)
		at++;
	return 0;
}

bool peer_is_beside_us(int proc, const struct peer *peer)
{
	struct peer self;

	return peer_read(proc, 0, &self) == 0 && self.depth > 0 && peer->depth == self.depth;
}
