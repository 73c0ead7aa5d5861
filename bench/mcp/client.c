/*
 * What a client of libmcp costs: client ERA CALLS WINDOW CONNECTIONS URL
 *	client ERA CALLS WINDOW CONNECTIONS PROGRAM [ARG...]
 * Opens CONNECTIONS, then makes CALLS calls of the tool `echo` on the first, WINDOW of them at a
 * time. Prints one line: calls a second, p50 and p99 in microseconds, microseconds of this
 * process's CPU a call, milliseconds to the first connection, KiB for each further connection.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "mcp/connect/connect.h"

enum { CALLS_MAX = 1 << 20, CONNECTIONS_MAX = 1000 };

static struct {
	struct mcp_link *links[CONNECTIONS_MAX];
	unsigned ready;
	long calls, begun, done;
	uint64_t sent[CALLS_MAX];
	double took[CALLS_MAX];
} b;

static void die(const char *what)
{
	fprintf(stderr, "client: %s\n", what);
	exit(1);
}

static void begin_call(void);

static void on_done(void *owner, const struct mcp_answer *a)
{
	long i = (long)(intptr_t)owner;

	if (!a->result)
		die(a->e ? a->e->msg : "the server refused a call");
	b.took[i] = (double)(clock_ns() - b.sent[i]) / 1e3;
	b.done++;
	if (b.begun < b.calls)
		begin_call();
}

static void begin_call(void)
{
	long i = b.begun++;
	const struct mcp_request_spec spec = { .on_done = on_done, .owner = (void *)(intptr_t)i };
	struct err e;

	b.sent[i] = clock_ns();
	if (!mcp_client_call(mcp_link_client(b.links[0]), "echo",
			     STR_LIT("{\"message\":\"hello\"}"), &spec, &e))
		die(e.msg);
}

static void on_ready(void *owner)
{
	b.ready++;
}

static void on_over(void *owner, const struct err *e)
{
	die(e->msg);
}

static long resident_kib(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		die("no /proc/self/statm");
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static double cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void open_links(const struct mcp_target *target, unsigned from, unsigned to)
{
	static const struct mcp_client_handler handler = { .ready = on_ready, .over = on_over };
	const struct mcp_client_options o = { .name = "bench",
					      .version = "1",
					      .handler = &handler };
	struct err e;

	for (unsigned i = from; i < to; i++) {
		b.links[i] = mcp_connect(uv_default_loop(), target, &o, &e);
		if (!b.links[i])
			die(e.msg);
		while (b.ready <= i)
			uv_run(uv_default_loop(), UV_RUN_ONCE);
	}
}

static void on_closed(void *owner)
{
	b.ready--;
}

static int ascending(const void *a, const void *z)
{
	double x = *(const double *)a, y = *(const double *)z;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	bool is_url = argc > 5 && strncmp(argv[5], "http", 4) == 0;
	bool is_modern = argc > 5 && strcmp(argv[1], "modern") == 0;
	const struct mcp_target target = {
		.url = is_url ? argv[5] : NULL,
		.argv = is_url ? NULL : (const char *const *)&argv[5],
		.known = { is_url ? MCP_WIRE_HTTP : MCP_WIRE_STDIO,
			   is_modern ? MCP_MODERN : MCP_LEGACY },
	};
	long window = argc > 5 ? atol(argv[3]) : 0, n = argc > 5 ? atol(argv[4]) : 0, kib;
	uint64_t begun = clock_ns();
	double first, cpu, seconds;

	b.calls = argc > 5 ? atol(argv[2]) : 0;
	if (b.calls < 1 || b.calls > CALLS_MAX || window < 1 || n < 1 || n > CONNECTIONS_MAX)
		die("usage: client legacy|modern CALLS WINDOW CONNECTIONS URL | PROGRAM [ARG...]");
	open_links(&target, 0, 1);
	first = (double)(clock_ns() - begun) / 1e6;
	kib = resident_kib();
	open_links(&target, 1, (unsigned)n);
	kib = resident_kib() - kib;
	cpu = cpu_us();
	begun = clock_ns();
	while (b.begun < window && b.begun < b.calls)
		begin_call();
	while (b.done < b.calls)
		uv_run(uv_default_loop(), UV_RUN_ONCE);
	seconds = (double)(clock_ns() - begun) / 1e9;
	cpu = cpu_us() - cpu;
	for (long i = 0; i < n; i++)
		mcp_link_close(b.links[i], on_closed, NULL);
	while (b.ready > 0)
		uv_run(uv_default_loop(), UV_RUN_ONCE);
	qsort(b.took, (size_t)b.calls, sizeof(b.took[0]), ascending);
	printf("%.0f %.1f %.1f %.1f %.1f %.1f\n", (double)b.calls / seconds, b.took[b.calls / 2],
	       b.took[b.calls * 99 / 100], cpu / (double)b.calls, first,
	       n > 1 ? (double)kib / (double)(n - 1) : 0);
	return 0;
}
