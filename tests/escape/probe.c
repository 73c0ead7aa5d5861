/*
 * The program of the escape tests: see probe.h.
 *
 *	probe --list		all rows, a JSON object each
 *	probe NAME...		tries these rows, prints a JSON object each
 *	probe --all		tries every row
 *	probe --stand-in NAME	the same with a child in the place of PID 1 (a control)
 *	probe --look NAME...	only looks at rights (the control of dangerous rows)
 *	probe --bomb NAME [N]	uses up something: probe_bomb.c
 *
 * The guard: rows that do harm, and bombs, never run as root of the machine. They run only if the
 * harness names its own user and pid namespaces in HOLT_PROBE_CONFINED, and both are others here.
 * Otherwise the exit status is 3 and nothing has been tried.
 */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_REFUSED = 3, ATTEMPT_MS = 10000 };

static const struct attempts *const all[] = {
	&kernel_attempts,  &machine_attempts,	&space_attempts, &proc_attempts,
	&process_attempts, &privilege_attempts, &file_attempts,	 &net_attempts,
};

static const char *const result_names[] = {
	[OPEN] = "open",
	[DENIED] = "denied",
	[ABSENT] = "absent",
};

static const char *const control_names[] = {
	[PLAIN] = "plain",
	[JAIL] = "jail",
	[ROOT] = "root",
	[LOOK] = "look",
};

/* ---- what attempts share --------------------------------------------------------------------- */

enum result tried(struct found *f, long ret)
{
	if (ret >= 0)
		return OPEN;
	f->errnum = errno;
	return DENIED;
}

enum result tried_open(struct found *f, int ret)
{
	enum result r = tried(f, ret);

	if (ret >= 0)
		close(ret);
	else if (f->errnum == ENOENT || f->errnum == ENXIO || f->errnum == ENODEV)
		r = ABSENT;
	return r;
}

void tell(struct found *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->detail, sizeof(f->detail), fmt, ap);
	va_end(ap);
}

const char *told(const char *name, const char *fallback)
{
	const char *value = getenv(name);

	return value && *value ? value : fallback;
}

int target_pid(void)
{
	return atoi(told("HOLT_PROBE_TARGET", "1"));
}

const char *slurp(const char *path, char *buf, size_t n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t at = 0;
	ssize_t got;

	while (fd >= 0 && at < n - 1 && (got = read(fd, buf + at, n - 1 - at)) > 0)
		at += (size_t)got;
	if (fd >= 0)
		close(fd);
	buf[at] = '\0';
	return buf;
}

bool opens_for_write(const char *path)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool looks_writable(const char *path)
{
	return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

int sweep(const char *dir, int depth, bool (*can_write)(const char *path), struct found *f)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	struct stat st;
	char path[4096];
	int found = 0;

	while (d && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >= (int)sizeof(path) ||
		    lstat(path, &st) < 0 || S_ISLNK(st.st_mode))
			continue;
		if (S_ISDIR(st.st_mode)) {
			found += depth > 0 ? sweep(path, depth - 1, can_write, f) : 0;
		} else if (can_write(path)) {
			found++;
			tell(f, "%d, such as %.100s", found, path);
		}
	}
	if (d)
		closedir(d);
	return found;
}

/* ---- the guard ------------------------------------------------------------------------------- */

/* "user:[N] pid:[N]" of this process, "" when it can't be known. */
static const char *own_namespaces(char *buf, size_t n)
{
	char user[64], pid[64];
	ssize_t a = readlink("/proc/self/ns/user", user, sizeof(user) - 1);
	ssize_t b = readlink("/proc/self/ns/pid", pid, sizeof(pid) - 1);

	buf[0] = '\0';
	if (a > 0 && b > 0)
		snprintf(buf, n, "%.*s %.*s", (int)a, user, (int)b, pid);
	return buf;
}

static bool machine_root(void)
{
	char map[256];
	unsigned first, outside, count;

	return sscanf(slurp("/proc/self/uid_map", map, sizeof(map)), "%u %u %u", &first, &outside,
		      &count) != 3 ||
	       (first == 0 && outside == 0 && count == 4294967295u);
}

/* HOLT_PROBE_CONFINED has the harness's namespaces in the form of own_namespaces(). */
static bool confined(void)
{
	char own[160], theirs[160];
	char *own_pid, *their_pid;

	own_namespaces(own, sizeof(own));
	snprintf(theirs, sizeof(theirs), "%s", told("HOLT_PROBE_CONFINED", ""));
	own_pid = strchr(own, ' ');
	their_pid = strchr(theirs, ' ');
	if (!own_pid || !their_pid || machine_root())
		return false;
	*own_pid = *their_pid = '\0';
	return strcmp(own, theirs) != 0 && strcmp(own_pid + 1, their_pid + 1) != 0;
}

/* ---- running a row --------------------------------------------------------------------------- */

struct outcome {
	enum result result;
	struct found found;
};

static void print_text(const char *key, const char *text)
{
	printf(", \"%s\": \"", key);
	for (; *text; text++)
		putchar(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? '?' : *text);
	putchar('"');
}

static void print_outcome(const char *name, const char *result, const struct found *f)
{
	const char *errname = f->errnum ? strerrorname_np(f->errnum) : "";

	printf("{\"name\": \"%s\", \"result\": \"%s\"", name, result);
	print_text("errno", errname ? errname : "?");
	print_text("detail", f->detail);
	puts("}");
	fflush(stdout);
}

static enum result look(const struct attempt *a, struct found *f)
{
	unsigned long long held = 0;
	char status[4096];
	const char *at;

	if (a->look)
		return a->look(f);
	if (a->path)
		return tried(f, faccessat(AT_FDCWD, a->path, W_OK, AT_EACCESS));
	at = strstr(slurp("/proc/self/status", status, sizeof(status)), "CapEff:");
	if (at)
		held = strtoull(at + 7, NULL, 16);
	return a->capability && held >> (a->capability - 1) & 1 ? OPEN : DENIED;
}

static void child(const struct attempt *a, bool only_look, int to)
{
	struct outcome o = { .result = DENIED };

	setpgid(0, 0);
	o.result = only_look ? look(a, &o.found) : a->run(&o.found);
	if (write(to, &o, sizeof(o)) != (ssize_t)sizeof(o))
		_exit(1);
	_exit(0);
}

/* Waits for the outcome; what has not come after ATTEMPT_MS never will. */
static bool receive(int from, struct outcome *o)
{
	struct pollfd p = { .fd = from, .events = POLLIN };

	return poll(&p, 1, ATTEMPT_MS) == 1 && read(from, o, sizeof(*o)) == (ssize_t)sizeof(*o);
}

static int run(const struct attempt *a, bool only_look)
{
	struct outcome o = { .result = DENIED };
	int ends[2], status = 0;
	bool came;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
		perror("probe");
		return 1;
	}
	if (pid == 0)
		child(a, only_look, ends[1]);
	close(ends[1]);
	came = receive(ends[0], &o);
	close(ends[0]);
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (!came && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) {
		tell(&o.found, "killed by SIGSYS");
		came = true;
	}
	if (!came)
		tell(&o.found, "no outcome; the attempt ended with status %#x", (unsigned)status);
	print_outcome(a->name, came ? result_names[o.result] : "error", &o.found);
	return came ? 0 : 1;
}

static void print_row(const char *title, const struct attempt *a)
{
	printf("{\"name\": \"%s\", \"control\": \"%s\", \"harm\": %s, \"policy\": %s, "
	       "\"capability\": %d",
	       a->name, control_names[a->control], a->harm ? "true" : "false",
	       a->policy ? "true" : "false", a->capability - 1);
	print_text("title", title);
	print_text("what", a->what);
	print_text("by", a->by);
	puts("}");
}

static const struct attempt *find(const char *name)
{
	for (size_t i = 0; i < PROBE_LEN(all); i++) {
		for (size_t k = 0; k < all[i]->n; k++) {
			if (strcmp(all[i]->rows[k].name, name) == 0)
				return &all[i]->rows[k];
		}
	}
	return NULL;
}

static int list(void)
{
	for (size_t i = 0; i < PROBE_LEN(all); i++) {
		for (size_t k = 0; k < all[i]->n; k++)
			print_row(all[i]->title, &all[i]->rows[k]);
	}
	return 0;
}

static int try_one(const struct attempt *a)
{
	if (a->harm && !confined()) {
		fprintf(stderr, "probe: %s is for the inside of a jail\n", a->name);
		return EXIT_REFUSED;
	}
	return run(a, false);
}

static int try_all(void)
{
	int failed = 0;

	for (size_t i = 0; i < PROBE_LEN(all); i++) {
		for (size_t k = 0; k < all[i]->n; k++)
			failed |= try_one(&all[i]->rows[k]);
	}
	return failed;
}

static int look_at_one(const struct attempt *a)
{
	return run(a, true);
}

/* A process of the same user that protects itself from nothing, leader of a group of its own. */
static pid_t start_stand_in(void)
{
	int ends[2];
	char number[16], byte;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		return -1;
	if (pid == 0) {
		setsid();
		close(ends[1]);
		close(ends[0]);
		for (;;)
			pause();
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 0)
		return -1;
	close(ends[0]);
	snprintf(number, sizeof(number), "%d", (int)pid);
	setenv("HOLT_PROBE_TARGET", number, 1);
	return pid;
}

static int try_with_stand_in(const char *name)
{
	const struct attempt *a = find(name);
	pid_t pid = a ? start_stand_in() : -1;
	int failed;

	if (pid < 0)
		return 2;
	failed = try_one(a);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return failed;
}

int main(int argc, char **argv)
{
	bool looking = argc > 1 && strcmp(argv[1], "--look") == 0;
	const struct attempt *a;
	int failed = 0;

	signal(SIGPIPE, SIG_IGN);
	if (argc == 2 && strcmp(argv[1], "--list") == 0)
		return list();
	if (argc == 2 && strcmp(argv[1], "--all") == 0)
		return try_all();
	if (argc == 3 && strcmp(argv[1], "--stand-in") == 0)
		return try_with_stand_in(argv[2]);
	if (argc > 2 && strcmp(argv[1], "--bomb") == 0) {
		if (confined())
			return bomb(argv[2], argc > 3 ? argv[3] : "0");
		fprintf(stderr, "probe: bombs are for the inside of a jail\n");
		return EXIT_REFUSED;
	}
	for (int i = looking ? 2 : 1; i < argc; i++) {
		a = find(argv[i]);
		if (!a) {
			fprintf(stderr, "probe: no row %s\n", argv[i]);
			return 2;
		}
		failed |= looking ? look_at_one(a) : try_one(a);
	}
	return failed;
}
