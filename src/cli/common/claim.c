/*
 * One hub for each data folder. The hub holds a POSIX lock on the file `hub` of the folder. The
 * kernel tells who holds it, by the number that the process has in the asker's PID namespace. A hub
 * with `--yield`, as every hub that a verb starts, gets SIGUSR1 from the next one and leaves the
 * sandboxes to it.
 */
#include "cli/common/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/common/home.h"

enum {
	YIELD_MS = 20000, /* what is in flight in the other hub has half of that to finish */
	PAUSE_US = 5000,
	LEFT_MAX = 512, /* bytes of a line about a sandbox */
};

/* How lines about sandboxes begin that the hub has left to the next one. */
#define LEFT "left "

static int open_file(int flags, struct err *e)
{
	char path[PATH_MAX];
	int fd;

	if (home_file("hub", path, e) < 0)
		return -1;
	fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 && !(errno == ENOENT && !(flags & O_CREAT))
		     ? err_sys(e, errno, "open %.120s", path)
		     : fd;
}

/* Reads what the hub wrote into the file. */
static void read_file(int fd, struct claim *ret)
{
	char text[PATH_MAX + 64], *end;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	int yields, at = 0;

	text[n < 0 ? 0 : n] = '\0';
	end = strchr(text, '\n');
	if (!end ||
	    sscanf(text, "yields %d since %" SCNd64 " socket %n", &yields, &ret->since, &at) != 2 ||
	    !at)
		return;
	*end = '\0';
	ret->yields = yields != 0;
	snprintf(ret->socket, sizeof(ret->socket), "%.*s", PATH_MAX - 1, text + at);
}

/* Bytes of the file: the first is locked by who has the folder, the second once it has written who
 * that is, so that nobody takes the words of the one before for its. */
enum { BYTE_HELD, BYTE_SAID };

static struct flock lock_of(int byte)
{
	return (struct flock){ .l_type = F_WRLCK, .l_start = byte, .l_len = 1 };
}

static int look(int fd, struct claim *ret, struct err *e)
{
	struct flock said = lock_of(BYTE_SAID), held = lock_of(BYTE_HELD);

	*ret = (struct claim){ .pid = 0 };
	if (fcntl(fd, F_GETLK, &said) < 0 || fcntl(fd, F_GETLK, &held) < 0)
		return err_sys(e, errno, "ask who has the data folder");
	if (held.l_type == F_UNLCK)
		return 0;
	ret->pid = held.l_pid > 0 ? held.l_pid : 0;
	if (said.l_type != F_UNLCK && said.l_pid == held.l_pid)
		read_file(fd, ret);
	return 1;
}

int claim_look(struct claim *ret, struct err *e)
{
	autoclose int fd = -1;

	*e = ERR_INIT;
	fd = open_file(O_RDWR, e);
	if (fd < 0)
		return e->code == ERR_NONE ? 0 : -1;
	return look(fd, ret, e);
}

void claim_time(const struct claim *c, char ret[CLAIM_TIME_MAX])
{
	time_t since = (time_t)c->since;
	struct tm tm;

	if (!c->since || !gmtime_r(&since, &tm) ||
	    !strftime(ret, CLAIM_TIME_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm))
		snprintf(ret, CLAIM_TIME_MAX, "just now");
}

void claim_text(const struct claim *c, char ret[CLAIM_TEXT_MAX])
{
	char pid[40] = "of another PID namespace", since[CLAIM_TIME_MAX];

	if (c->pid)
		snprintf(pid, sizeof(pid), "pid %d", (int)c->pid);
	claim_time(c, since);
	snprintf(ret, CLAIM_TEXT_MAX, "%s, socket %.120s, since %s", pid,
		 *c->socket ? c->socket : "not yet there", since);
}

static int conflict(const struct claim *c, struct err *e)
{
	char text[CLAIM_TEXT_MAX];

	claim_text(c, text);
	return err_set(e, ERR_STORE_LOCKED, "another hub has this data folder: %s", text);
}

int claim_check(bool yields, struct claim *ret, struct err *e)
{
	int held = claim_look(ret, e);

	if (held > 0 && *ret->socket && (yields || !ret->yields))
		return conflict(ret, e);
	return held;
}

static bool has_socket(pid_t pid, uint64_t inode)
{
	char path[64], name[64], link[64];
	autofolder struct folder d = FOLDER_NONE;
	bool has = false;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	snprintf(name, sizeof(name), "socket:[%" PRIu64 "]", inode);
	d = folder_of(path);
	while (!has && folder_next(&d) > 0) {
		ssize_t n = readlinkat(folder_fd(&d), d.entry->d_name, link, sizeof(link) - 1);

		link[n < 0 ? 0 : n] = '\0';
		has = strcmp(link, name) == 0;
	}
	return has;
}

bool claim_listens(const struct claim *c, const char *address)
{
	static const char *const tables[] = { "tcp", "tcp6" };
	const char *colon = strrchr(address, ':');
	char path[64], line[512];
	bool found = false;

	for (size_t i = 0; c->pid && colon && i < ARRAY_LEN(tables); i++) {
		FILE *f;
		uint64_t inode;
		unsigned port, state;

		snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)c->pid, tables[i]);
		f = fopen(path, "re");
		while (f && !found && fgets(line, sizeof(line), f))
			found = sscanf(line,
				       " %*d: %*[0-9A-F]:%x %*[0-9A-F:] %x %*s %*s %*s %*d %*d "
				       "%" SCNu64,
				       &port, &state, &inode) == 3 &&
				state == TCP_LISTEN && port == (unsigned)atoi(colon + 1) &&
				has_socket(c->pid, inode);
		if (f)
			fclose(f);
	}
	return found;
}

/* Its process may have ended, and its number may be another's, between the two. */
static int send_signal(int fd, const struct claim *c, int number, struct err *e)
{
	autoclose int pidfd = c->pid ? (int)syscall(SYS_pidfd_open, c->pid, 0) : -1;
	struct claim now;
	int held;

	if (!c->pid)
		return err_set(e, ERR_UNSUPPORTED,
			       "the hub has another PID namespace: it can be ended there only");
	held = look(fd, &now, e);
	if (held <= 0 || now.pid != c->pid)
		return held < 0 ? -1 : 0;
	if (pidfd < 0 || syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0) < 0)
		return errno == ESRCH ? 0 : err_sys(e, errno, "signal the hub");
	return 1;
}

int claim_signal(int number, struct err *e)
{
	autoclose int fd = -1;
	struct claim c;
	int held;

	*e = ERR_INIT;
	fd = open_file(O_RDWR, e);
	if (fd < 0)
		return e->code == ERR_NONE ? 0 : -1;
	held = look(fd, &c, e);
	return held <= 0 ? held : send_signal(fd, &c, number, e);
}

/* Until the lock is ours. */
static int await_lock(int fd, bool yields, struct err *e)
{
	struct flock lock = lock_of(BYTE_HELD);
	const uint64_t until = clock_ms() + YIELD_MS;
	pid_t told = 0;

	while (fcntl(fd, F_SETLK, &lock) < 0) {
		struct claim other;
		int held;

		if (errno != EAGAIN && errno != EACCES)
			return err_sys(e, errno, "lock the data folder");
		held = look(fd, &other, e);
		if (held < 0)
			return -1;
		if (held && *other.socket) {
			if (yields || !other.yields || clock_ms() > until)
				return conflict(&other, e);
			if (other.pid != told && send_signal(fd, &other, SIGUSR1, e) < 0)
				return conflict(&other, e);
			told = other.pid;
		} else if (clock_ms() > until) {
			return conflict(&other, e);
		}
		usleep(PAUSE_US);
	}
	return 0;
}

static int claimed = -1; /* the file, which this process has locked */

int claim_take(const struct claim *mine, struct err *e)
{
	autoclose int fd = open_file(O_RDWR | O_CREAT, e);
	struct flock said = lock_of(BYTE_SAID);
	char text[PATH_MAX + 64];
	int n;

	if (fd < 0 || await_lock(fd, mine->yields, e) < 0)
		return -1;
	n = snprintf(text, sizeof(text), "yields %d since %" PRId64 " socket %s\n", mine->yields,
		     clock_unix_ms() / 1000, mine->socket);
	if (ftruncate(fd, 0) < 0 || fd_write(fd, text, (size_t)n) < 0 ||
	    fcntl(fd, F_SETLK, &said) < 0)
		return err_sys(e, errno, "write who has the data folder");
	claimed = take_fd(&fd); /* closing it would give the lock back */
	return 0;
}

void claim_leave(struct str sandbox, const char *why)
{
	char line[LEFT_MAX];
	int n = snprintf(line, sizeof(line), LEFT "%.*s: %s\n", STR_ARG(sandbox), why);

	if (claimed >= 0 && fd_write(claimed, line, (size_t)n) < 0)
		log_error("hub stop can't tell of sandbox %.*s: %s", STR_ARG(sandbox),
			  strerror(errno));
}

int claim_left(void (*on_left)(const char *text), struct err *e)
{
	char line[PATH_MAX + 64];
	int fd, n = 0;
	FILE *f;

	*e = ERR_INIT;
	fd = open_file(O_RDONLY, e);
	if (fd < 0)
		return e->code == ERR_NONE ? 0 : -1;
	f = fdopen(fd, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, LEFT, strlen(LEFT)) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		on_left(line + strlen(LEFT));
		n++;
	}
	if (f)
		fclose(f);
	else
		close(fd);
	return n;
}
