/* mcp/transport/stdio.h over real descriptors: pipes, sockets, files; ends, bounds, slow
 * clients. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "mcp/transport/stdio.h"
#include "mcp_fixture.h"
#include "test.h"

#define INITIALIZE                                                                                 \
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"                     \
	"\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"                                  \
	"\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n"
#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"
#define PONG "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"
#define HOLD                                                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"hold\"}}\n"
#define HELD                                                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[{\"type\":\"text\","               \
	"\"text\":\"done\"}]}}\n"

struct wire {
	uv_loop_t loop;
	struct fixture f; /* its own session is not used; calls of hold show there */
	struct mcp_stdio *t;
	int in, out; /* the client's ends; -1 once closed */
	struct buf got; /* what the server said */
	unsigned closed;
};

static void on_closed(void *owner)
{
	struct wire *w = owner;

	w->closed++;
	mcp_stdio_free(take_ptr(w->t));
}

static void start(struct wire *w, int server_in, int server_out, struct mcp_stdio_options o)
{
	struct err e;

	uv_loop_init(&w->loop);
	assert_true(fixture_init(&w->f, NULL));
	w->got = BUF_INIT(64 << 20);
	w->closed = 0;
	o.in_fd = server_in;
	o.out_fd = server_out;
	o.on_closed = on_closed;
	o.owner = w;
	w->t = mcp_stdio_start(&w->loop, w->f.server, &o, &e);
	assert_non_null(w->t);
	if (w->in >= 0)
		assert_int_equal(fcntl(w->in, F_SETFL, O_NONBLOCK), 0);
	if (w->out >= 0)
		assert_int_equal(fcntl(w->out, F_SETFL, O_NONBLOCK), 0);
}

static void start_pipes(struct wire *w, struct mcp_stdio_options o)
{
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	w->in = in[1];
	w->out = out[0];
	start(w, in[0], out[1], o);
}

static void finish(struct wire *w)
{
	assert_int_equal(w->closed, 1);
	assert_int_equal(uv_run(&w->loop, UV_RUN_DEFAULT), 0); /* nothing is left open */
	assert_int_equal(uv_loop_close(&w->loop), 0);
	close_fd(&w->in);
	close_fd(&w->out);
	buf_fini(&w->got);
	fixture_fini(&w->f);
}

static void receive(struct wire *w)
{
	struct err e;
	char *at;
	ssize_t n;

	while (w->out >= 0) {
		at = buf_reserve(&w->got, 65536, &e);
		assert_non_null(at);
		n = read(w->out, at, 65536);
		if (n <= 0)
			break;
		buf_advance(&w->got, (size_t)n);
	}
}

/* Runs the server, and reads what it says if the client reads, until `done` is true. */
#define RUN_UNTIL(w, reads, done)                                                                  \
	do {                                                                                       \
		uint64_t until_ = clock_ms() + 20000;                                              \
		while (!(done)) {                                                                  \
			assert_true(clock_ms() < until_);                                          \
			uv_run(&(w)->loop, UV_RUN_NOWAIT);                                         \
			if (reads)                                                                 \
				receive(w);                                                        \
		}                                                                                  \
	} while (0)

static void say_all(struct wire *w, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t did = write(w->in, p, n);

		if (did > 0) {
			p += did;
			n -= (size_t)did;
		} else {
			assert_int_equal(errno, EAGAIN);
			uv_run(&w->loop, UV_RUN_NOWAIT);
		}
		receive(w);
	}
}

static void say(struct wire *w, const char *text)
{
	say_all(w, text, strlen(text));
}

static bool has(const struct wire *w, const char *text)
{
	return strstr(buf_str(&w->got).p, text) != NULL;
}

static size_t lines(const struct wire *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->got.n; i++)
		n += w->got.p[i] == '\n';
	return n;
}

static void serves_pipes(void **state)
{
	struct wire w;

	start_pipes(&w, (struct mcp_stdio_options){ .drain_ms = 5000 });
	say(&w, INITIALIZE "\n\r\n" PING);
	RUN_UNTIL(&w, true, lines(&w) == 2);
	assert_true(has(&w, "2025-11-25"));
	assert_true(has(&w, PONG));
	close_fd(&w.in);
	RUN_UNTIL(&w, true, w.closed);
	finish(&w);
}

static void serves_a_socket(void **state)
{
	struct wire w;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	w.in = ends[0];
	w.out = dup(ends[0]);
	start(&w, ends[1], dup(ends[1]), (struct mcp_stdio_options){ .drain_ms = 5000 });
	say(&w, INITIALIZE PING);
	RUN_UNTIL(&w, true, has(&w, PONG));
	shutdown(w.in, SHUT_WR);
	RUN_UNTIL(&w, true, w.closed);
	finish(&w);
}

static void serves_files(void **state)
{
	char in[] = "/tmp/mcp_stdio_in_XXXXXX", out[] = "/tmp/mcp_stdio_out_XXXXXX";
	int in_fd = mkostemp(in, O_CLOEXEC), out_fd = mkostemp(out, O_CLOEXEC);
	static const char text[] = INITIALIZE
		"not json\n" PING; /* and PING again, without an end */
	struct wire w = { .in = -1, .out = -1 };

	unlink(in);
	assert_int_equal(write(in_fd, text, sizeof(text) - 1), sizeof(text) - 1);
	assert_int_equal(write(in_fd, PING, sizeof(PING) - 2), sizeof(PING) - 2);
	assert_int_equal(lseek(in_fd, 0, SEEK_SET), 0);
	start(&w, in_fd, out_fd, (struct mcp_stdio_options){ .drain_ms = 5000 });
	RUN_UNTIL(&w, false, w.closed);
	w.out = open(out, O_RDONLY | O_CLOEXEC);
	unlink(out);
	receive(&w);
	assert_int_equal(lines(&w), 4);
	assert_true(has(&w, "-32700"));
	assert_true(has(&w, PONG PONG));
	finish(&w);
}

static void serves_dev_null(void **state)
{
	struct wire w = { .in = -1, .out = -1 };

	start(&w, open("/dev/null", O_RDONLY | O_CLOEXEC), open("/dev/null", O_WRONLY | O_CLOEXEC),
	      (struct mcp_stdio_options){ .drain_ms = 5000 });
	RUN_UNTIL(&w, false, w.closed);
	finish(&w);
}

static void waits_for_calls_at_the_end(void **state)
{
	struct wire w;

	start_pipes(&w, (struct mcp_stdio_options){ .drain_ms = 10000 });
	say(&w, INITIALIZE HOLD);
	close_fd(&w.in);
	RUN_UNTIL(&w, true, w.f.held_n == 1);
	for (int i = 0; i < 20; i++)
		uv_run(&w.loop, UV_RUN_NOWAIT);
	assert_int_equal(w.closed, 0);
	fixture_end(&w.f, 0);
	RUN_UNTIL(&w, true, w.closed);
	assert_true(has(&w, HELD));
	finish(&w);
}

static void cancels_calls_when_their_time_is_over(void **state)
{
	struct wire w;

	start_pipes(&w, (struct mcp_stdio_options){ .drain_ms = 20 });
	say(&w, INITIALIZE HOLD);
	RUN_UNTIL(&w, true, w.f.held_n == 1);
	mcp_stdio_stop(w.t);
	RUN_UNTIL(&w, true, w.closed);
	assert_int_equal(w.f.cancels, 1);
	assert_int_equal(lines(&w), 2); /* it is answered with an error before the end */
	assert_true(has(&w, "\"error\""));
	fixture_end_all(&w.f); /* late: its session is gone */
	finish(&w);
}

/* A call that was cancelled has no answer to wait for. */
static void waits_for_no_cancelled_calls(void **state)
{
	struct wire w;

	start_pipes(&w, (struct mcp_stdio_options){ .drain_ms = 60000 });
	say(&w, INITIALIZE HOLD "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
				"\"params\":{\"requestId\":2}}\n");
	close_fd(&w.in);
	RUN_UNTIL(&w, true, w.closed);
	assert_int_equal(w.f.cancels, 1);
	fixture_end_all(&w.f);
	finish(&w);
}

static void stops_while_serving(void **state)
{
	struct wire w;

	start_pipes(&w, (struct mcp_stdio_options){ .drain_ms = 10000 });
	say(&w, INITIALIZE);
	RUN_UNTIL(&w, true, lines(&w) == 1);
	mcp_stdio_stop(w.t);
	mcp_stdio_stop(w.t);
	RUN_UNTIL(&w, true, w.closed);
	finish(&w);
}

static void ends_when_nobody_reads_any_more(void **state)
{
	struct wire w;

	start_pipes(&w, (struct mcp_stdio_options){ .drain_ms = 10000 });
	say(&w, INITIALIZE HOLD);
	RUN_UNTIL(&w, true, w.f.held_n == 1);
	close_fd(&w.out);
	say(&w, PING);
	RUN_UNTIL(&w, false, w.closed);
	assert_int_equal(w.f.cancels, 1);
	fixture_end_all(&w.f);
	finish(&w);
}

/* A client that asks for much and reads nothing: its input is left where it is, memory is bounded,
 * and once it reads, all answers are there. */
static void waits_for_a_slow_client(void **state)
{
	enum { CALLS = 400, TEXT_N = 4096 };
	autofree char *text = malloc(TEXT_N + 1);
	struct wire w;
	char line[TEXT_N + 256];
	size_t said = 0, n = 0;
	unsigned stuck = 0;
	int next = 0;

	memset(text, 'x', TEXT_N);
	text[TEXT_N] = '\0';
	start_pipes(&w, (struct mcp_stdio_options){ .queue_max = 64 << 10, .drain_ms = 10000 });
	say(&w, INITIALIZE);
	RUN_UNTIL(&w, true, lines(&w) == 1);
	while (next < CALLS && stuck < 100) {
		ssize_t did;

		n = (size_t)snprintf(
			line, sizeof(line),
			"{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":"
			"{\"name\":\"echo\",\"arguments\":{\"text\":\"%s\"}}}\n",
			next, text);
		did = write(w.in, line + said, n - said);
		said += did > 0 ? (size_t)did : 0;
		stuck = did > 0 ? 0 : stuck + 1;
		if (said == n) {
			next++;
			said = 0;
		}
		uv_run(&w.loop, UV_RUN_NOWAIT);
	}
	/* two pipes of 64 KiB, the queue, and a piece of input */
	assert_true(next * TEXT_N < (400 << 10));
	assert_true(next > 10);
	say_all(&w, line + said, n - said);
	next++;
	close_fd(&w.in);
	RUN_UNTIL(&w, true, w.closed);
	assert_int_equal(lines(&w), (size_t)next + 1);
	for (int i = 0; i < next; i++) {
		snprintf(line, sizeof(line), "\"id\":%d,\"result\"", i);
		assert_true(has(&w, line));
	}
	finish(&w);
}

static void gives_up_on_a_client_that_never_reads(void **state)
{
	struct wire w;
	char line[128];

	start_pipes(&w, (struct mcp_stdio_options){ .queue_max = 1000, .drain_ms = 1 });
	say(&w, INITIALIZE);
	RUN_UNTIL(&w, true, lines(&w) == 1);
	for (int i = 0; i < 2000; i++) {
		size_t n = (size_t)snprintf(
			line, sizeof(line),
			"{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/list\"}\n", i);

		if (write(w.in, line, n) != (ssize_t)n)
			break;
		uv_run(&w.loop, UV_RUN_NOWAIT);
	}
	close_fd(&w.in);
	mcp_stdio_stop(w.t);
	RUN_UNTIL(&w, false, w.closed);
	finish(&w);
}

/* 17 MiB on one line: an error with its id, and the next message is served. */
static void survives_a_line_that_is_too_long(void **state)
{
	enum { N = 17 << 20 };
	autofree char *text = malloc(N);
	struct wire w;

	start_pipes(&w, (struct mcp_stdio_options){ .drain_ms = 10000 });
	say(&w, INITIALIZE);
	memset(text, 'x', N);
	say(&w,
	    "{\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"");
	say_all(&w, text, N);
	say(&w, "\"}},\"jsonrpc\":\"2.0\",\"id\":\"big\"}\n" PING);
	RUN_UNTIL(&w, true, has(&w, PONG));
	assert_int_equal(lines(&w), 3);
	assert_true(has(&w, "{\"jsonrpc\":\"2.0\",\"id\":\"big\",\"error\":{\"code\":-32600,"
			    "\"message\":\"a message of more than 16777216 bytes\","
			    "\"data\":{\"code\":\"too_large\","));
	close_fd(&w.in);
	RUN_UNTIL(&w, true, w.closed);
	finish(&w);
}

/* 15 MiB in one argument come back whole. */
static void carries_large_messages(void **state)
{
	enum { N = 15 << 20 };
	autofree char *text = malloc(N);
	struct wire w;

	start_pipes(&w, (struct mcp_stdio_options){ .drain_ms = 10000 });
	say(&w, INITIALIZE);
	memset(text, 'x', N);
	say(&w,
	    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\","
	    "\"arguments\":{\"text\":\"");
	say_all(&w, text, N);
	say(&w, "\"}}}\n" PING);
	RUN_UNTIL(&w, true, has(&w, PONG));
	assert_int_equal(lines(&w), 3);
	assert_true(w.got.n > N);
	close_fd(&w.in);
	RUN_UNTIL(&w, true, w.closed);
	finish(&w);
}

static void needs_open_descriptors(void **state)
{
	struct wire w = { .in = -1, .out = -1 };
	struct mcp_stdio_options o = {
		.in_fd = -1, .out_fd = -1, .on_closed = on_closed, .owner = &w
	};
	struct err e = ERR_INIT;
	int end[2];

	uv_loop_init(&w.loop);
	assert_true(fixture_init(&w.f, NULL));
	assert_null(mcp_stdio_start(&w.loop, w.f.server, &o, &e));
	assert_true(e.code != ERR_NONE);
	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	o.in_fd = end[0];
	assert_null(mcp_stdio_start(&w.loop, w.f.server, &o, &e));
	uv_run(&w.loop, UV_RUN_DEFAULT);
	assert_int_equal(write(end[1], "x", 1), -1); /* the other end was closed */
	assert_int_equal(w.closed, 0);
	close(end[1]);
	assert_int_equal(uv_loop_close(&w.loop), 0);
	fixture_fini(&w.f);
}

/* After the claim nothing that a program prints can reach the client. */
static void claims_standard_descriptors(void **state)
{
	int saved_in = dup(0), saved_out = dup(1), wire_in[2], wire_out[2], in = -1, out = -1;
	struct err e;
	char got[8] = "";
	int rc;

	assert_int_equal(pipe2(wire_in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(wire_out, O_CLOEXEC), 0);
	dup2(wire_in[0], 0);
	dup2(wire_out[1], 1);
	rc = mcp_stdio_claim(&in, &out, &e);
	dprintf(1, "%s", "");
	assert_int_equal(write(out, "wire", 4), 4);
	assert_int_equal(write(wire_in[1], "x", 1), 1);
	assert_int_equal(read(0, got, 1), 0);
	dup2(saved_in, 0);
	dup2(saved_out, 1);
	assert_int_equal(rc, 0);
	assert_int_equal(read(in, got, 1), 1);
	assert_int_equal(read(wire_out[0], got, sizeof(got)), 4);
	assert_true(fcntl(in, F_GETFD) & FD_CLOEXEC && fcntl(out, F_GETFD) & FD_CLOEXEC);
	assert_true(in > 2 && out > 2);
	for (size_t i = 0; i < 2; i++) {
		close(wire_in[i]);
		close(wire_out[i]);
	}
	close(in);
	close(out);
	close(saved_in);
	close(saved_out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(serves_pipes),
		cmocka_unit_test(serves_a_socket),
		cmocka_unit_test(serves_files),
		cmocka_unit_test(serves_dev_null),
		cmocka_unit_test(waits_for_calls_at_the_end),
		cmocka_unit_test(cancels_calls_when_their_time_is_over),
		cmocka_unit_test(waits_for_no_cancelled_calls),
		cmocka_unit_test(stops_while_serving),
		cmocka_unit_test(ends_when_nobody_reads_any_more),
		cmocka_unit_test(waits_for_a_slow_client),
		cmocka_unit_test(gives_up_on_a_client_that_never_reads),
		cmocka_unit_test(survives_a_line_that_is_too_long),
		cmocka_unit_test(carries_large_messages),
		cmocka_unit_test(needs_open_descriptors),
		cmocka_unit_test(claims_standard_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
