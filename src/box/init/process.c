/*
 * The processes of a sandbox, listed by its PID 1.
 *
 * A command line is read from the memory of its process, which that process can slow down. So a
 * helper process reads command lines, for a limited time, and answers the hub itself. If there
 * can't be one, for example because a fork bomb has used up all processes, or if it does not
 * finish, PID 1 answers with what the kernel alone knows: names.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/folder.h"
#include "box/wire/file_types.h"
#include "box/init/internal.h"
#include "box/init/message.h"

enum { PATIENCE_S = 2 };

static size_t read_proc_file(const char *pid, const char *name, char *to, size_t size)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%.20s/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, to, size);
		close(fd);
	}
	return n > 0 ? (size_t)n : 0;
}

bool init_proc_stat(const char *pid, struct stat_line *ret)
{
	static char text[512];
	size_t n = read_proc_file(pid, "stat", text, sizeof(text) - 1);

	text[n] = '\0';
	return stat_line_read(text, ret);
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Its words with spaces between them, or if it has none its name in brackets, like ps(1). */
static size_t read_command(const char *pid, const struct stat_line *line, bool words, char *to)
{
	size_t n = words ? read_proc_file(pid, "cmdline", to, PROCESS_COMMAND_MAX) : 0;

	while (n > 0 && to[n - 1] == '\0')
		n--;
	for (size_t i = 0; i < n; i++)
		to[i] = to[i] ? to[i] : ' ';
	if (n == 0)
		n = (size_t)snprintf(to, PROCESS_COMMAND_MAX, "[%.*s]", (int)line->name_n,
				     line->name);
	return n < PROCESS_COMMAND_MAX ? n : PROCESS_COMMAND_MAX - 1;
}

static bool read_entry(const char *pid, bool words, struct im_process_entry *ret, char *command)
{
	unsigned long tick = (unsigned long)sysconf(_SC_CLK_TCK);
	uint64_t now, start;
	struct stat_line line;
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	now = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
	if (!init_proc_stat(pid, &line))
		return false;
	start = line.start * 1000 / tick;
	*ret = (struct im_process_entry){
		.pid = (uint32_t)atol(pid),
		.parent = (uint32_t)line.parent,
		.state = (unsigned char)line.state,
		.command_len = (uint32_t)read_command(pid, &line, words, command),
		.cpu_ms = (line.user + line.system) * 1000 / tick,
		.bytes = line.pages > 0 ? (uint64_t)line.pages * (uint64_t)sysconf(_SC_PAGESIZE)
					: 0,
		.age_ms = now > start ? now - start : 0,
	};
	return true;
}

/* PID 1 and its helpers: the sandbox did not start them. */
static bool is_ours(pid_t pid)
{
	return pid == 1 || pid == getpid() || init_file_helps(pid) || init_helps(pid);
}

static void send_list(uint32_t id, bool words)
{
	static char out[WIRE_MAX] INIT_LARGE;
	struct im_process_done d = { .h = { IM_PROCESS_DONE, id } };
	struct folder f = folder_of("/proc");
	size_t n = sizeof(d);
	int more;

	while ((more = folder_next(&f)) > 0) {
		const char *name = f.entry->d_name;
		struct im_process_entry entry;
		char command[PROCESS_COMMAND_MAX];

		if (name[0] < '1' || name[0] > '9' || is_ours((pid_t)atol(name)))
			continue;
		if (d.entries == PROCESS_LIST_MAX) {
			d.truncated = 1;
			break;
		}
		if (!read_entry(name, words, &entry, command))
			continue; /* ended meanwhile */
		memcpy(out + n, &entry, sizeof(entry));
		memcpy(out + n + sizeof(entry), command, entry.command_len);
		n += sizeof(entry) + entry.command_len;
		d.entries++;
	}
	folder_end(&f);
	d.errnum = more < 0 ? f.errnum : 0;
	memcpy(out, &d, sizeof(d));
	init_send(out, n, -1);
}
_Static_assert(sizeof(struct im_process_done) +
			       PROCESS_LIST_MAX *
				       (sizeof(struct im_process_entry) + PROCESS_COMMAND_MAX) <=
		       WIRE_MAX,
	       "the longest list is one message");

static void list_died(uint32_t id)
{
	send_list(id, false);
}

static void process_list(uint32_t id)
{
	pid_t pid = init_helper_start(id, list_died);

	if (pid == 0) {
		alarm(PATIENCE_S);
		send_list(id, true);
		_exit(0);
	}
	if (pid < 0)
		send_list(id, false);
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static int send_signal(pid_t pid, int signal)
{
	if (pid <= 1 || signal < 1 || signal >= _NSIG)
		return EINVAL;
	return kill(pid, signal) < 0 ? errno : 0;
}

void init_process(const struct im_process *m)
{
	struct im_process_done d = { .h = { IM_PROCESS_DONE, m->h.id }, .errnum = EINVAL };

	switch ((enum process_op)m->op) {
	case PROCESS_OP_LIST:
		process_list(m->h.id);
		return;
	case PROCESS_OP_SIGNAL:
		d.errnum = send_signal(m->pid, m->signal);
		break;
	case PROCESS_OP_SIGNAL_EXEC:
		d.errnum = init_signal_exec((uint32_t)m->pid, m->signal);
		break;
	}
	init_send(&d, sizeof(d), -1);
}
