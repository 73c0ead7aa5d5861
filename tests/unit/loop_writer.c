/* loop/writer.h and loop/reader.h beyond what stdio shows: bounds, order, failures. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "loop/reader.h"
#include "loop/writer.h"
#include "test.h"

struct log {
	unsigned written, broken, closed, ended, pieces;
	enum err_code code;
	size_t bytes;
	struct loop_reader *reader;
};

static void on_written(void *owner)
{
	((struct log *)owner)->written++;
}

static void on_broken(void *owner, const struct err *e)
{
	struct log *l = owner;

	l->broken++;
	l->code = e->code;
}

static void on_closed(void *owner)
{
	((struct log *)owner)->closed++;
}

static const struct loop_writer_events writer_events = { on_written, on_broken };

static struct loop_writer *open_writer(uv_loop_t *loop, int fd, size_t max, struct log *l)
{
	struct err e;
	struct loop_writer *w;

	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(loop);
	w = loop_writer_new(loop, fd, max, &writer_events, l, &e);
	assert_non_null(w);
	return w;
}

static void close_writer(uv_loop_t *loop, struct loop_writer *w, struct log *l)
{
	loop_writer_close(w, on_closed);
	assert_int_equal(uv_run(loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(l->closed, 1);
	assert_int_equal(uv_loop_close(loop), 0);
}

static void writes_once_a_turn(void **state)
{
	struct log l = { 0 };
	struct loop_writer *w;
	uv_loop_t loop;
	int wire[2];
	char got[8] = "";

	assert_int_equal(pipe2(wire, O_CLOEXEC), 0);
	w = open_writer(&loop, wire[1], 100, &l);
	loop_writer_put(w, STR_LIT("ab"));
	loop_writer_put(w, STR_LIT(""));
	loop_writer_put(w, STR_LIT("cd"));
	assert_int_equal(loop_writer_queued(w), 4);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(l.written, 1);
	assert_int_equal(loop_writer_queued(w), 0);
	assert_int_equal(read(wire[0], got, sizeof(got)), 4);
	assert_string_equal(got, "abcd");
	assert_int_equal(uv_run(&loop, UV_RUN_NOWAIT), 0); /* nothing to wait for */
	close_writer(&loop, w, &l);
	close(wire[0]);
}

static void breaks_over_its_maximum(void **state)
{
	struct log l = { 0 };
	struct loop_writer *w;
	uv_loop_t loop;
	int wire[2];

	assert_int_equal(pipe2(wire, O_CLOEXEC), 0);
	w = open_writer(&loop, wire[1], 10, &l);
	loop_writer_put(w, STR_LIT("0123456789"));
	loop_writer_put(w, STR_LIT("x"));
	assert_int_equal(l.broken, 0); /* never from inside put */
	assert_int_equal(loop_writer_queued(w), 0);
	loop_writer_put(w, STR_LIT("y"));
	uv_run(&loop, UV_RUN_NOWAIT);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(l.broken, 1);
	assert_int_equal(l.code, ERR_TOO_LARGE);
	close_writer(&loop, w, &l);
	close(wire[0]);
}

static void breaks_without_a_reader(void **state)
{
	struct log l = { 0 };
	struct loop_writer *w;
	uv_loop_t loop;
	int wire[2];

	assert_int_equal(pipe2(wire, O_CLOEXEC), 0);
	w = open_writer(&loop, wire[1], 1 << 20, &l);
	for (int i = 0; i < 20000; i++)
		loop_writer_put(w, STR_LIT("0123456789"));
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_true(loop_writer_queued(w) > 0);
	close(wire[0]);
	while (l.broken == 0)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(l.code, ERR_TRANSPORT);
	close_writer(&loop, w, &l);
}

static void tells_of_a_full_disk(void **state)
{
	struct log l = { 0 };
	struct loop_writer *w;
	uv_loop_t loop;
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	if (full < 0)
		skip();
	w = open_writer(&loop, full, 100, &l);
	loop_writer_put(w, STR_LIT("x"));
	while (l.broken == 0)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(l.code, ERR_DISK_FULL);
	close_writer(&loop, w, &l);
}

static void on_bytes(void *owner, struct str bytes)
{
	struct log *l = owner;

	l->pieces++;
	l->bytes += bytes.n;
}

static void on_end(void *owner, const struct err *e)
{
	struct log *l = owner;

	l->ended++;
	l->code = e ? e->code : ERR_NONE;
}

static const struct loop_reader_events reader_events = { on_bytes, on_end };

static void reads_only_when_asked(void **state)
{
	struct log l = { 0 };
	struct loop_reader *r;
	struct err e;
	uv_loop_t loop;
	int wire[2];

	uv_loop_init(&loop);
	assert_int_equal(pipe2(wire, O_CLOEXEC), 0);
	r = loop_reader_new(&loop, wire[0], &reader_events, &l, &e);
	assert_non_null(r);
	assert_int_equal(write(wire[1], "abc", 3), 3);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(l.pieces, 0);
	loop_reader_next(r);
	loop_reader_next(r);
	uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(l.pieces, 1);
	assert_int_equal(write(wire[1], "de", 2), 2);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(l.pieces, 1);
	loop_reader_next(r);
	uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(l.bytes, 5);
	close(wire[1]);
	loop_reader_next(r);
	uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(l.ended, 1);
	assert_int_equal(l.code, ERR_NONE);
	loop_reader_close(r, on_closed);
	assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(l.closed, 1);
	assert_int_equal(uv_loop_close(&loop), 0);
}

static void tells_why_it_can_not_read(void **state)
{
	struct log l = { 0 };
	struct loop_reader *r;
	struct err e;
	uv_loop_t loop;

	uv_loop_init(&loop);
	r = loop_reader_new(&loop, open("/", O_RDONLY | O_CLOEXEC), &reader_events, &l, &e);
	assert_non_null(r);
	loop_reader_next(r);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(l.ended, 1);
	assert_int_equal(l.code, ERR_NOT_A_FILE);
	loop_reader_close(r, NULL);
	assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&loop), 0);
}

/* Who shares a pipe with us keeps it blocking. */
static void leaves_shared_flags_alone(void **state)
{
	struct log l = { 0 };
	struct loop_reader *r;
	struct err e;
	uv_loop_t loop;
	int wire[2], shared;

	uv_loop_init(&loop);
	assert_int_equal(pipe2(wire, O_CLOEXEC), 0);
	shared = dup(wire[0]);
	r = loop_reader_new(&loop, wire[0], &reader_events, &l, &e);
	assert_int_equal(fcntl(shared, F_GETFL) & O_NONBLOCK, 0);
	loop_reader_close(r, NULL);
	assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&loop), 0);
	close(shared);
	close(wire[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_once_a_turn),
		cmocka_unit_test(breaks_over_its_maximum),
		cmocka_unit_test(breaks_without_a_reader),
		cmocka_unit_test(tells_of_a_full_disk),
		cmocka_unit_test(reads_only_when_asked),
		cmocka_unit_test(tells_why_it_can_not_read),
		cmocka_unit_test(leaves_shared_flags_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
