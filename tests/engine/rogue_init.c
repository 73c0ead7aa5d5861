/* In the place of holt-init for rogue.c: a first process that was taken over, and answers the
 * hub with whatever might hurt it. Which lie it tells stands in the path or argv of what it is
 * asked. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sock.h"
#include "box/wire/file_types.h"
#include "box/wire/wire.h"

enum { FDS_MAX = 8 };

static char in[WIRE_MAX + 1], out[WIRE_MAX];

static void say(const void *msg, size_t n, const int *fds, size_t n_fds)
{
	if (sock_send(INIT_FD, msg, n, fds, n_fds, MSG_NOSIGNAL) < 0 && errno == EPIPE)
		_exit(0);
}

static int file_of(const char *text)
{
	int fd = memfd_create("rogue", MFD_CLOEXEC);

	return write(fd, text, strlen(text)) < 0 ? -1 : fd;
}

/* Answers one file operation as the last name of its path says. */
static void lie_of_file(const struct im_file *m, const char *name)
{
	struct im_file_done d = { .h = { IM_FILE_DONE, m->h.id }, .token = 1 };
	int fds[FDS_MAX] = { 0 };
	int ends[2];

	if (strcmp(name, "silence") == 0)
		return;
	if (strcmp(name, "no-fd") == 0) {
		say(&d, sizeof(d), NULL, 0);
	} else if (strcmp(name, "many-fds") == 0) {
		for (int i = 0; i < FDS_MAX; i++)
			fds[i] = file_of("many");
		say(&d, sizeof(d), fds, FDS_MAX);
		for (int i = 0; i < FDS_MAX; i++)
			close(fds[i]);
	} else if (strcmp(name, "pipe") == 0 || strcmp(name, "device") == 0 ||
		   strcmp(name, "directory") == 0 || strcmp(name, "path-only") == 0) {
		fds[0] = name[0] == 'd' && name[1] == 'e' ? open("/dev/zero", O_RDWR)
		       : name[0] == 'd'			  ? open("/", O_RDONLY)
		       : name[1] == 'a'			  ? open("/etc/passwd", O_PATH)
		       : pipe(ends) < 0			  ? -1
							  : ends[0];
		say(&d, sizeof(d), fds, 1);
		close(fds[0]);
	} else if (strcmp(name, "some-bytes") == 0 || strcmp(name, "more-bytes") == 0 ||
		   strcmp(name, "most-bytes") == 0 || strncmp(name, "bytes-and", 9) == 0) {
		d.has_bytes = 1;
		d.st.size = UINT64_MAX;
		memcpy(out, &d, sizeof(d));
		fds[0] = strcmp(name, "bytes-and-pipe") != 0 ? file_of("of the file")
		       : pipe(ends) < 0			     ? -1
							     : ends[0];
		say(out,
		    strncmp(name, "most", 4) == 0 ? WIRE_MAX
						  : sizeof(d) + (name[0] == 'm' ? 101 : 100),
		    fds, name[0] == 'b');
		close(fds[0]);
	} else if (strcmp(name, "short") == 0) {
		say(&d, sizeof(d) - 1, NULL, 0);
		d.errnum = 5;
		say(&d, sizeof(d), NULL, 0);
	} else if (strcmp(name, "huge-size") == 0) {
		fds[0] = file_of("x");
		if (ftruncate(fds[0], INT64_MAX / 2) < 0)
			_exit(1);
		d.st.size = UINT64_MAX;
		say(&d, sizeof(d), fds, 1);
		close(fds[0]);
	} else if (strcmp(name, "twice") == 0) {
		d.errnum = 2;
		for (int i = 0; i < 3; i++)
			say(&d, sizeof(d), NULL, 0);
	} else if (strcmp(name, "odd-errno") == 0) {
		d.errnum = INT32_MIN;
		say(&d, sizeof(d), NULL, 0);
	} else if (strcmp(name, "odd-stat") == 0) {
		d.st = (struct im_stat){ UINT32_MAX, UINT32_MAX, UINT64_MAX, INT64_MIN };
		say(&d, sizeof(d), NULL, 0);
	} else {
		d.errnum = 2;
		say(&d, sizeof(d), NULL, 0);
	}
}

/* A list whose counts and lengths do not fit what follows. */
static void lie_of_list(const struct im_file *m, const char *name)
{
	struct im_file_done d = { .h = { IM_FILE_DONE, m->h.id }, .entries = UINT32_MAX };
	struct im_entry e = { .name_len = UINT32_MAX };
	size_t n = sizeof(d) + sizeof(e);

	if (strcmp(name, "count") == 0) {
		e.name_len = 1;
		n++;
	} else if (strcmp(name, "full") == 0) {
		e.name_len = 0;
		n = WIRE_MAX;
		for (size_t at = sizeof(d); at + sizeof(e) <= n; at += sizeof(e))
			memcpy(out + at, &e, sizeof(e));
	} else if (strcmp(name, "cut") == 0) {
		n--;
	}
	memcpy(out, &d, sizeof(d));
	if (strcmp(name, "full") != 0)
		memcpy(out + sizeof(d), &e, sizeof(e));
	say(out, n, NULL, 0);
}

/* A list of processes whose counts and lengths do not fit what follows: another with every
 * question. */
static void lie_of_processes(const struct im_process *m)
{
	static unsigned turn;
	struct im_process_done d = { .h = { IM_PROCESS_DONE, m->h.id }, .entries = UINT32_MAX };
	struct im_process_entry e = { .pid = 1, .state = UINT32_MAX, .command_len = UINT32_MAX };
	size_t n = sizeof(d) + sizeof(e);

	switch (turn++) {
	case 0:
		break;
	case 1:
		e.command_len = 1;
		break;
	case 2:
		n--;
		break;
	case 3:
		d.errnum = INT32_MIN;
		break;
	case 4:
		e.command_len = 0;
		n = WIRE_MAX;
		break;
	default:
		d.h.type = IM_FILE_DONE;
	}
	for (size_t at = sizeof(d); at + sizeof(e) <= n; at += sizeof(e))
		memcpy(out + at, &e, sizeof(e));
	memcpy(out, &d, sizeof(d));
	say(out, n, NULL, 0);
}

/* Answers an exec as its first word says; nothing is ever run. */
static void lie_of_exec(const struct im_exec *m, const char *word)
{
	struct im_exit x = { .h = { IM_EXIT, m->h.id }, .stage = IM_STAGE_RAN };
	const uint32_t unknown[2] = { 12345, m->h.id };
	const struct im_quiet quiet = { .h = { IM_QUIET, 0 } };

	if (strcmp(word, "silence") == 0)
		return;
	if (strcmp(word, "odd") == 0) {
		x.stage = UINT32_MAX;
		x.errnum = INT32_MIN;
	} else if (strcmp(word, "status") == 0) {
		x.status = -1;
		x.cpu_us = x.peak_bytes = UINT64_MAX;
	} else if (strcmp(word, "unknown") == 0) {
		say(unknown, sizeof(unknown), NULL, 0);
		return;
	} else if (strcmp(word, "byte") == 0) {
		say("", 1, NULL, 0);
		return;
	} else if (strcmp(word, "quiet") == 0) { /* which nobody asked for */
		for (int i = 0; i < 3; i++)
			say(&quiet, sizeof(quiet), NULL, 0);
	} else if (strcmp(word, "stranger") == 0) {
		x.h.id += 77;
		say(&x, sizeof(x), NULL, 0);
		x.h.id -= 77;
	}
	say(&x, sizeof(x), NULL, 0);
	if (strcmp(word, "flood") == 0) {
		for (;;)
			say(&x, sizeof(x), NULL, 0);
	}
}

/* Something else in the place of the directory of terminals: another with every question. */
static void lie_of_terminals(const struct im_head *h)
{
	static const char *const places[] = { "/", "/dev/zero", "/dev/pts/ptmx", "/nowhere",
					      "/dev" };
	static unsigned turn;
	const struct im_terminal_done d = { .h = { IM_TERMINAL_DONE, h->id } };
	int fd = open(places[turn % 5], O_PATH | O_CLOEXEC);

	say(&d, turn == 4 ? sizeof(d) - 1 : sizeof(d), &fd, fd >= 0);
	if (fd >= 0)
		close(fd);
	turn++;
}

static void answer(size_t n)
{
	const struct im_head *h = (const void *)in;
	const struct im_file *f = (const void *)in;
	const struct im_quiet quiet = { .h = { IM_QUIET, h->id }, .processes = UINT32_MAX };
	const char *path = (const char *)(f + 1);

	if (h->type == IM_FILE && f->op == FILE_OP_LIST && n > sizeof(*f))
		lie_of_list(f, strrchr(path, '/') + 1);
	else if (h->type == IM_FILE)
		lie_of_file(f, n > sizeof(*f) ? strrchr(path, '/') + 1 : "");
	else if (h->type == IM_EXEC)
		lie_of_exec((const void *)in,
			    in + sizeof(struct im_exec) + strlen(in + sizeof(struct im_exec)) + 1);
	else if (h->type == IM_PROCESS)
		lie_of_processes((const void *)in);
	else if (h->type == IM_TERMINAL)
		lie_of_terminals(h);
	else if (h->type == IM_QUIESCE) { /* once was asked for */
		for (int i = 0; i < 20; i++)
			say(&quiet, sizeof(quiet), NULL, 0);
	}
}

int main(void)
{
	const struct im_head ready = { IM_READY, 0 };
	ssize_t n;

	say(&ready, sizeof(ready), NULL, 0);
	for (;;) {
		n = recv(INIT_FD, in, WIRE_MAX, 0);
		if (n <= 0)
			return 0;
		in[n] = '\0';
		answer((size_t)n);
	}
}
