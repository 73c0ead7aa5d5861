/*
 * Calls of the tool `echo` over stdio: stdio ERA CALLS WINDOW PROGRAM [ARG...] Starts PROGRAM,
 * keeps WINDOW calls under way, and prints one line: calls a second, p50 and p99 in microseconds,
 * milliseconds from the start to the first reply, resident KiB.
 *
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CALLS_MAX = 1 << 20, LINE = 1 << 16 };

static double sent[CALLS_MAX], took[CALLS_MAX];
static int to = -1, from = -1;
static char in[LINE];
static size_t have;

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void die(const char *what)
{
	fprintf(stderr, "stdio: %s\n", what);
	exit(1);
}

static pid_t start(char **argv)
{
	int down[2], up[2];
	pid_t pid;

	if (pipe(down) < 0 || pipe(up) < 0 || (pid = fork()) < 0)
		die("no pipe or process");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(down[0], 0);
		dup2(up[1], 1);
		close(down[1]);
		close(up[0]);
		execv(argv[0], argv);
		_exit(127);
	}
	close(down[0]);
	close(up[1]);
	to = down[1];
	from = up[0];
	return pid;
}

static void put(const char *p, size_t n)
{
	while (n > 0) {
		ssize_t w = write(to, p, n);

		if (w < 0)
			die("the server takes no more");
		p += w;
		n -= (size_t)w;
	}
}

/* The id of the next line that has one; the line goes. */
static long next_id(void)
{
	for (;;) {
		char *end = memchr(in, '\n', have), *id;
		ssize_t r;
		long n = -1;

		if (!end) {
			r = read(from, in + have, sizeof(in) - have);
			if (r <= 0)
				die("the server has ended");
			have += (size_t)r;
			continue;
		}
		*end = '\0';
		id = strstr(in, "\"id\":");
		if (id)
			n = strtol(id + 5, NULL, 10);
		have -= (size_t)(end + 1 - in);
		memmove(in, end + 1, have);
		if (n >= 0)
			return n;
	}
}

static void call(const char *claim, long id)
{
	char line[512];
	int n = snprintf(
		line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":\"tools/call\",\"params\":{\"name\":"
		"\"echo\",\"arguments\":{\"message\":\"hello\"}%s}}\n",
		id, claim);

	sent[id] = now_us();
	put(line, (size_t)n);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static long resident_kib(pid_t pid)
{
	char path[64], line[256];
	long kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmRSS: %ld", &kib);
	if (f)
		fclose(f);
	return kib;
}

int main(int argc, char **argv)
{
	static const char hello[] =
		"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\","
		"\"params\":{\"protocolVersion\":"
		"\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"bench\","
		"\"version\":\"1\"}}}\n";
	static const char ready[] =
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
	static const char modern[] =
		",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
		"\"io.modelcontextprotocol/clientCapabilities\":{}}";
	bool is_modern = argc > 4 && strcmp(argv[1], "modern") == 0;
	const char *claim = is_modern ? modern : "";
	long calls = argc > 4 ? atol(argv[2]) : 0, window = argc > 4 ? atol(argv[3]) : 0;
	long begun_n, done = 0, kib;
	double begun = now_us(), first;
	pid_t pid;

	if (calls < 1 || calls >= CALLS_MAX || window < 1)
		die("usage: stdio legacy|modern CALLS WINDOW PROGRAM [ARG...]");
	pid = start(argv + 4);
	if (is_modern)
		call(claim, 0);
	else
		put(hello, sizeof(hello) - 1);
	next_id();
	first = now_us() - begun;
	if (!is_modern)
		put(ready, sizeof(ready) - 1);
	kib = resident_kib(pid);
	begun = now_us();
	for (begun_n = 1; begun_n <= window && begun_n <= calls; begun_n++)
		call(claim, begun_n);
	while (done < calls) {
		long id = next_id();

		if (id < 1 || id > calls)
			die("an answer to no call");
		took[done++] = now_us() - sent[id];
		if (begun_n <= calls)
			call(claim, begun_n++);
	}
	begun = now_us() - begun;
	close(to);
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	qsort(took, (size_t)calls, sizeof(took[0]), ascending);
	printf("%.0f %.1f %.1f %.1f %ld\n", (double)calls / begun * 1e6, took[calls / 2],
	       took[calls * 99 / 100], first / 1000, kib);
	return 0;
}
