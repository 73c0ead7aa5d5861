/*
 * Bombs: each uses one thing up until it is refused, and then says on one line what it got and the
 * error: "COUNT ERRNO". Those that nothing refuses go on until they are stopped from outside, or
 * have reached the cap that the argument gives (in MiB), so that a hole in the limits harms no
 * machine.
 *
 */
#include "probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1024 * 1024 };

static char block[MIB];

static int said(long count, int errnum)
{
	const char *name = errnum ? strerrorname_np(errnum) : "none";

	printf("%ld %s\n", count, name ? name : "?");
	fflush(stdout);
	return 0;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Every child does the same; only the first one speaks. */
static int bomb_fork(long cap)
{
	pid_t first = getpid();
	long started = 0;

	for (bool told_it = false; !cap || started < cap;) {
		pid_t pid = fork();

		if (pid > 0)
			started++;
		else if (pid < 0 && !told_it && getpid() == first)
			told_it = said(started, errno) == 0;
	}
	return 0;
}

static void *sleeper(void *arg)
{
	pause();
	return arg;
}

static int bomb_threads(long cap)
{
	pthread_attr_t small;
	pthread_t t;
	long n = 0;
	int failed;

	(void)cap;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 * 1024);
	while (!(failed = pthread_create(&t, &small, sleeper, NULL)))
		n++;
	return said(n, failed);
}

static void *spinner(void *arg)
{
	for (volatile unsigned i = 0;; i++)
		;
	return arg;
}

static int bomb_spin(long threads)
{
	pthread_t t;

	for (long i = 1; i < threads; i++)
		pthread_create(&t, NULL, spinner, NULL);
	spinner(NULL);
	return 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int bomb_memory(long cap)
{
	long n;

	for (n = 0; n < cap; n++) {
		char *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		if (p == MAP_FAILED)
			return said(n, errno);
		memset(p, 1, MIB);
	}
	return said(n, 0);
}

static int fill_fd(int fd, long cap)
{
	long n;

	for (n = 0; n < cap; n++) {
		if (write(fd, block, MIB) < 0)
			return said(n, errno);
	}
	return said(n, 0);
}

static int bomb_memfd(long cap)
{
	return fill_fd(memfd_create("bomb", MFD_CLOEXEC), cap);
}

static int fill_segments(long cap, bool leave)
{
	long n;

	for (n = 0; n < cap; n++) {
		int id = shmget(IPC_PRIVATE, MIB, IPC_CREAT | 0600);
		char *p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

		if (p == (void *)-1)
			return said(n, errno);
		memset(p, 1, MIB);
		if (leave)
			shmdt(p);
	}
	return said(n, 0);
}

static int bomb_segments(long cap)
{
	return fill_segments(cap, false);
}

/* These outlive the program, unless the kernel is told to forget them. */
static int bomb_segments_left(long cap)
{
	return fill_segments(cap, true);
}

/* Clean pages of files can be taken away again, so this is refused nothing and kills nobody. */
static int bomb_pagecache(long cap)
{
	FILE *names = popen("find /usr -type f -size +64k 2>/dev/null", "r");
	char path[4096];
	long bytes = 0;

	while (names && bytes / MIB < cap && fgets(path, sizeof(path), names)) {
		int fd;
		ssize_t n;

		path[strcspn(path, "\n")] = '\0';
		fd = open(path, O_RDONLY | O_CLOEXEC);
		while (fd >= 0 && (n = read(fd, block, sizeof(block))) > 0)
			bytes += n;
		if (fd >= 0)
			close(fd);
	}
	return said(bytes / MIB, 0);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int bomb_disk(long cap)
{
	return fill_fd(open("/workspace/fill", O_CREAT | O_WRONLY | O_CLOEXEC, 0644), cap);
}

/* The same through another door of the same disk. */
static int bomb_dev_shm(long cap)
{
	return fill_fd(open("/dev/shm/fill", O_CREAT | O_WRONLY | O_CLOEXEC, 0644), cap);
}

static int bomb_inodes(long cap)
{
	char name[32];
	long n;

	(void)cap;
	if (mkdir("/workspace/inodes", 0755) < 0 || chdir("/workspace/inodes") < 0)
		return 1;
	for (n = 0;; n++) {
		snprintf(name, sizeof(name), "%ld", n);
		if (mknod(name, S_IFREG | 0644, 0) < 0)
			return said(n, errno);
	}
}

static int bomb_deep(long cap)
{
	long n;

	if (chdir("/workspace") < 0)
		return 1;
	for (n = 0; n < cap; n++) {
		if (mkdir("d", 0755) < 0 || chdir("d") < 0)
			return said(n, errno);
	}
	return said(n, 0);
}

/* ---- descriptors and what is queued in the kernel -------------------------------------------- */

/* As many processes as it takes, each with as many descriptors as it gets. The argument is how
 * many in all. */
static int bomb_descriptors(long want)
{
	long got = 0, *shared;
	int errnum = 0;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	while (got < want) {
		pid_t pid = fork();
		long before = got;

		if (pid < 0) {
			errnum = errno;
			break;
		}
		if (pid == 0) {
			long n = 0;

			prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
			while (open("/dev/null", O_RDONLY) >= 0)
				n++;
			shared[1] = errno;
			shared[0] += n;
			kill(getpid(), SIGSTOP);
		}
		waitpid(pid, NULL, WUNTRACED);
		got = shared[0];
		if (got == before)
			break;
	}
	return said(got, errnum ? errnum : (int)shared[1]);
}

/* Writes to fd until it would block; MiB in *bytes / MIB. */
static int stuff(int fd, long *bytes)
{
	ssize_t n;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while ((n = write(fd, block, 65536)) > 0 || (n < 0 && errno == EMSGSIZE)) {
		if (n < 0)
			return -1;
		*bytes += n;
	}
	while ((n = write(fd, block, 1024)) > 0)
		*bytes += n;
	return 0;
}

static int pair_pipe(int fds[2])
{
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	fcntl(fds[1], F_SETPIPE_SZ, MIB);
	return 0;
}

static void widen(int fd)
{
	int most = 16 * MIB;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &most, sizeof(most));
}

static int pair_unix(int fds[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -1;
	widen(fds[0]);
	widen(fds[1]);
	return 0;
}

/* Both ends on the sandbox's own loopback. fds[1] sends. */
static int pair_inet(int fds[2], int type)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001) };
	socklen_t n = sizeof(a);
	int listener = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	fds[1] = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	if (listener < 0 || fds[1] < 0)
		return -1;
	widen(listener);
	widen(fds[1]);
	if (bind(listener, (void *)&a, sizeof(a)) < 0 ||
	    (type == SOCK_STREAM && listen(listener, 1) < 0) ||
	    getsockname(listener, (void *)&a, &n) < 0 || connect(fds[1], (void *)&a, n) < 0)
		return -1;
	fds[0] = type == SOCK_STREAM ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : listener;
	if (type == SOCK_STREAM)
		close(listener);
	return fds[0] < 0 ? -1 : 0;
}

static int pair_tcp(int fds[2])
{
	return pair_inet(fds, SOCK_STREAM);
}

static int pair_udp(int fds[2])
{
	return pair_inet(fds, SOCK_DGRAM);
}

static int fill_pairs(int (*pair)(int fds[2]), long cap)
{
	long bytes = 0;
	int fds[2];

	while (bytes / MIB < cap) {
		long before = bytes;

		if (pair(fds) < 0)
			return said(bytes / MIB, errno);
		stuff(fds[1], &bytes);
		if (bytes == before)
			return said(bytes / MIB, errno);
	}
	return said(bytes / MIB, 0);
}

static int bomb_pipes(long cap)
{
	return fill_pairs(pair_pipe, cap);
}

static int bomb_unix(long cap)
{
	return fill_pairs(pair_unix, cap);
}

static int bomb_tcp(long cap)
{
	return fill_pairs(pair_tcp, cap);
}

/* UDP never blocks but drops, so what counts is what can be received in the end. */
static int bomb_udp(long cap)
{
	static int receivers[65536];
	long sent = 0, bytes = 0;
	int fds[2], n = 0, errnum = 0;

	while (sent / MIB < cap && n < (int)PROBE_LEN(receivers)) {
		if (pair_udp(fds) < 0) {
			errnum = errno;
			break;
		}
		receivers[n++] = fds[0];
		for (int i = 0; i < 2; i++)
			sent += send(fds[1], block, 60000, MSG_DONTWAIT) > 0 ? 60000 : 0;
	}
	for (int i = 0; i < n; i++) {
		ssize_t got;

		while ((got = recv(receivers[i], block, sizeof(block), MSG_DONTWAIT)) > 0)
			bytes += got;
	}
	return said(bytes / MIB, errnum ? errnum : ENOBUFS);
}

/* Programs that stand still, each with nearly 1 MiB of arguments and as much of environment. */
static int bomb_arguments(long cap)
{
	enum { EACH = 8, STRING = 120 * 1024 };
	char *argv[3 + EACH + 1] = { "/bin/sh", "-c", "kill -STOP $$" }, *envp[EACH + 1] = { NULL };
	long n;

	memset(block, 'x', STRING);
	for (int i = 0; i < EACH; i++)
		argv[3 + i] = envp[i] = block;
	for (n = 0; n < cap; n += 2) {
		pid_t pid;
		int failed = posix_spawn(&pid, argv[0], NULL, NULL, argv, envp);

		if (failed)
			return said(n, failed);
	}
	return said(n, 0);
}

/* ---- output ---------------------------------------------------------------------------------- */

static int flood(long cap, const char *end)
{
	memset(block, 'x', sizeof(block));
	for (size_t i = 79; *end && i < sizeof(block); i += 80)
		block[i] = *end;
	for (long n = 0; n < cap; n++) {
		for (size_t at = 0; at < sizeof(block);) {
			ssize_t done = write(STDOUT_FILENO, block + at, sizeof(block) - at);

			if (done <= 0)
				return 1;
			at += (size_t)done;
		}
	}
	return 0;
}

static int bomb_lines(long cap)
{
	return flood(cap, "\n");
}

static int bomb_line(long cap)
{
	return flood(cap, "");
}

static const struct {
	const char *name;
	int (*run)(long argument);
} bombs[] = {
	{ "fork", bomb_fork },
	{ "threads", bomb_threads },
	{ "spin", bomb_spin },
	{ "memory", bomb_memory },
	{ "memfd", bomb_memfd },
	{ "segments", bomb_segments },
	{ "segments_left", bomb_segments_left },
	{ "pagecache", bomb_pagecache },
	{ "disk", bomb_disk },
	{ "dev_shm", bomb_dev_shm },
	{ "inodes", bomb_inodes },
	{ "deep", bomb_deep },
	{ "descriptors", bomb_descriptors },
	{ "pipes", bomb_pipes },
	{ "unix", bomb_unix },
	{ "tcp", bomb_tcp },
	{ "udp", bomb_udp },
	{ "arguments", bomb_arguments },
	{ "lines", bomb_lines },
	{ "line", bomb_line },
};

int bomb(const char *name, const char *argument)
{
	for (size_t i = 0; i < PROBE_LEN(bombs); i++) {
		if (strcmp(bombs[i].name, name) == 0)
			return bombs[i].run(atol(argument));
	}
	return 2;
}
