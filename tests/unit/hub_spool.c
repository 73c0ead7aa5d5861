/* hub/spool/spool.h: any output, read from any offset on, is what was put in; what is over a
 * bound is told; nobody waits but for the disk, and nothing is left. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hub/spool/spool.h"
#include "test.h"

enum { BLOCKS_BIG = 64, BIG = BLOCKS_BIG * SPOOL_BLOCK };

struct world {
	uv_loop_t loop;
	struct spool_set spools;
	char dir[64];
	unsigned rooms; /* calls of on_room */
	unsigned quiet, asked;
};

static void on_quiet(void *arg)
{
	((struct world *)arg)->quiet++;
}

static void make_room(void *arg)
{
	((struct world *)arg)->asked++;
}

static void on_room(void *arg)
{
	((struct world *)arg)->rooms++;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	assert_int_equal(uv_loop_init(&w->loop), 0);
	snprintf(w->dir, sizeof(w->dir), "/tmp/unit-spool-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	w->spools = (struct spool_set){
		.loop = &w->loop,
		.folder = w->dir,
		.disk = { .max = (size_t)1 << 30 },
		.make_room = make_room,
		.on_quiet = on_quiet,
		.arg = w,
	};
	*state = w;
	return 0;
}

/* Nothing runs, nothing is kept, and no file has a name. */
static int teardown(void **state)
{
	struct world *w = *state;

	uv_run(&w->loop, UV_RUN_DEFAULT);
	assert_int_equal(w->spools.works, 0);
	assert_int_equal(w->spools.disk.used, 0);
	assert_int_equal(uv_loop_close(&w->loop), 0);
	assert_int_equal(rmdir(w->dir), 0);
	free(w);
	return 0;
}

static struct spool *spool(struct world *w, uint64_t keep, unsigned memory)
{
	const struct spool_options o = {
		.keep = keep, .memory = memory, .on_room = on_room, .arg = w
	};
	struct err e = ERR_INIT;
	struct spool *s = spool_new(&w->spools, &o, &e);

	assert_non_null(s);
	return s;
}

/* ---- what goes in -------------------------------------------------------------------------- */

/* All that came, a byte each: the stream in the top bit. */
struct came {
	unsigned char *p;
	size_t n, room;
	uint32_t seed;
};

static uint32_t chance(struct came *c, uint32_t n)
{
	c->seed = c->seed * 1664525u + 1013904223u;
	return (c->seed >> 8) % n;
}

/* Pieces of all sizes, of either stream: `mix` of 0 has one byte of each in turn. */
static void put(struct world *w, struct spool *s, struct came *c, size_t n, uint32_t mix)
{
	char piece[70000];

	while (n > 0) {
		size_t part = mix ? 1 + chance(c, chance(c, 8) ? mix : sizeof(piece) - 1) : 1;
		unsigned stream = mix ? chance(c, 3) == 0 : (unsigned)(c->n % 2);

		part = part < n ? part : n;
		assert_true(c->n + part <= c->room);
		for (size_t i = 0; i < part; i++) {
			piece[i] = (char)(chance(c, 128));
			c->p[c->n++] = (unsigned char)(piece[i] | (int)(stream << 7));
		}
		if (spool_add(s, stream, (struct str){ piece, part })) {
			unsigned before = w->rooms;

			while (w->rooms == before)
				uv_run(&w->loop, UV_RUN_ONCE);
		}
		n -= part;
	}
}

static struct came came(size_t room)
{
	struct came c = { .p = malloc(room), .room = room, .seed = 7 };

	assert_non_null(c.p);
	return c;
}

/* ---- what comes out ------------------------------------------------------------------------ */

struct reader {
	struct spool_cursor *cursor;
	bool more;
	uint64_t lost;
};

static void on_more(void *arg)
{
	((struct reader *)arg)->more = true;
}

static void reader_begin(struct reader *r, struct spool *s, uint64_t offset)
{
	struct err e = ERR_INIT;

	*r = (struct reader){ .cursor = spool_cursor_new(s, offset, on_more, r, &e) };
	assert_non_null(r->cursor);
}

/* To the end, or until nothing is there: each byte is that which came at its offset. */
static void reader_all(struct world *w, struct reader *r, const struct came *c, unsigned streams,
		       size_t max, bool ended)
{
	struct spool_piece piece;
	uint64_t at = spool_cursor_at(r->cursor);

	for (;;) {
		r->more = false;
		switch (spool_cursor_next(r->cursor, streams, max, &piece)) {
		case SPOOL_PIECE:
			assert_true(piece.offset >= at && piece.bytes.n > 0 &&
				    piece.bytes.n <= max);
			for (; at < piece.offset;
			     at++) /* what was passed over is of the other one */
				assert_false(streams >> (c->p[at] >> 7) & 1);
			for (size_t i = 0; i < piece.bytes.n; i++, at++)
				assert_int_equal(c->p[at], (unsigned char)piece.bytes.p[i] |
								   (piece.stream << 7));
			break;
		case SPOOL_LOST:
			assert_true(piece.lost > 0 && piece.offset >= at);
			r->lost += piece.lost;
			at = piece.offset + piece.lost;
			break;
		case SPOOL_LATER:
			if (!ended && spool_cursor_at(r->cursor) >= c->n)
				return;
			while (!r->more)
				assert_true(uv_run(&w->loop, UV_RUN_ONCE) || r->more);
			break;
		case SPOOL_END:
			assert_true(ended && spool_cursor_at(r->cursor) == c->n);
			return;
		}
	}
}

static uint64_t check(struct world *w, struct spool *s, const struct came *c, uint64_t offset,
		      unsigned streams, size_t max)
{
	struct reader r;

	reader_begin(&r, s, offset);
	reader_all(w, &r, c, streams, max, true);
	spool_cursor_close(r.cursor);
	return r.lost;
}

/* ---- tests --------------------------------------------------------------------------------- */

static void test_any_offset(void **state)
{
	struct world *w = *state;
	static const uint32_t mixes[] = { 0, 3, 200, 5000, 69999 };

	for (size_t i = 0; i < ARRAY_LEN(mixes); i++) {
		size_t size = mixes[i] ? BIG : 4 * SPOOL_BLOCK;
		struct came c = came(size);
		struct spool *s = spool(w, 2 * BIG, 3);
		struct spool_stats stats;

		put(w, s, &c, size, mixes[i]);
		spool_stats(s, &stats);
		assert_in_range(stats.memory, 1, 8 * SPOOL_BLOCK);
		spool_end(s);
		uv_run(&w->loop, UV_RUN_DEFAULT);
		spool_stats(s, &stats);
		assert_int_equal(stats.first, 0);
		assert_int_equal(stats.end, size);
		assert_int_equal(stats.came[0] + stats.came[1], size);
		assert_int_equal(stats.memory, 0);
		assert_null(stats.trouble);
		for (unsigned streams = 0; streams < 4; streams++) {
			uint64_t offset = streams ? chance(&c, (uint32_t)size) : 0;

			assert_int_equal(check(w, s, &c, offset, streams, SPOOL_BLOCK), 0);
		}
		assert_int_equal(check(w, s, &c, size - 5000, 3, 1), 0);
		assert_int_equal(check(w, s, &c, size, 3, 1), 0);
		assert_int_equal(check(w, s, &c, 0, 3, 1000), 0);
		spool_unref(s);
		free(c.p);
	}
}

static void test_followers(void **state)
{
	enum { READERS = 10, STEPS = 200 };
	struct world *w = *state;
	struct came c = came(BIG);
	struct spool *s = spool(w, 2 * BIG, 2);
	struct reader r[READERS];

	for (size_t i = 0; i < READERS; i++)
		reader_begin(&r[i], s, 0);
	for (size_t step = 1; step <= STEPS; step++) {
		put(w, s, &c, BIG / STEPS, 9000);
		for (size_t i = 1; i < READERS;
		     i++) { /* each is slower than the one before; one never reads */
			if (step % (i * i) == 0)
				reader_all(w, &r[i], &c, 1 + (unsigned)(i % 3), 100 * i * i, false);
		}
	}
	spool_end(s);
	for (size_t i = 0; i < READERS; i++) {
		reader_all(w, &r[i], &c, 1 + (unsigned)(i % 3), SPOOL_BLOCK, true);
		assert_int_equal(r[i].lost, 0);
		spool_cursor_close(r[i].cursor);
	}
	spool_unref(s);
	free(c.p);
}

static void test_is_told_of_more(void **state)
{
	struct world *w = *state;
	struct spool *s = spool(w, 0, 1);
	struct spool_piece piece;
	struct reader r;

	reader_begin(&r, s, 2);
	assert_int_equal(spool_cursor_next(r.cursor, 3, 10, &piece), SPOOL_LATER);
	assert_false(spool_add(s, 0, STR_LIT("ab")));
	assert_true(r.more);
	r.more = false;
	assert_int_equal(spool_cursor_next(r.cursor, 3, 10, &piece), SPOOL_LATER);
	spool_add(s, 0, STR_LIT("cd"));
	assert_true(r.more);
	assert_int_equal(spool_cursor_next(r.cursor, 3, 1, &piece), SPOOL_PIECE);
	assert_memory_equal(piece.bytes.p, "c", 1);
	spool_add(s, 0, STR_LIT("e")); /* makes the record longer in which the reader stands */
	assert_int_equal(spool_cursor_next(r.cursor, 3, 10, &piece), SPOOL_PIECE);
	assert_int_equal(piece.bytes.n, 2);
	assert_memory_equal(piece.bytes.p, "de", 2);
	r.more = false;
	assert_int_equal(spool_cursor_next(r.cursor, 3, 10, &piece), SPOOL_LATER);
	spool_end(s);
	assert_true(r.more);
	assert_int_equal(spool_cursor_next(r.cursor, 3, 10, &piece), SPOOL_END);
	spool_cursor_close(r.cursor);
	spool_unref(s);
}

static void test_the_oldest_goes(void **state)
{
	struct world *w = *state;
	struct came c = came(BIG);
	struct spool *s = spool(w, 4 * SPOOL_BLOCK, 2);
	struct spool_stats stats;
	struct reader slow;

	reader_begin(&slow, s, 10);
	put(w, s, &c, BIG, 3000);
	spool_end(s);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	spool_stats(s, &stats);
	assert_in_range(stats.first, BIG - 5 * SPOOL_BLOCK, BIG - 2 * SPOOL_BLOCK);
	assert_int_equal(stats.disk, 4 * SPOOL_BLOCK);
	assert_int_equal(w->spools.disk.used, 4 * SPOOL_BLOCK);
	assert_null(stats.trouble);
	assert_int_equal(check(w, s, &c, 0, 3, SPOOL_BLOCK), stats.first);
	assert_int_equal(check(w, s, &c, stats.first, 3, 777), 0);
	reader_all(w, &slow, &c, 2, SPOOL_BLOCK, true);
	assert_int_equal(slow.lost, stats.first - 10);
	spool_cursor_close(slow.cursor);
	spool_unref(s);
	free(c.p);
}

/* A block is read from a slot that is given to another one meanwhile: it is lost, and not
 * another's bytes. */
static void test_overtaken(void **state)
{
	struct world *w = *state;
	struct came c = came(BIG);
	struct spool *s = spool(w, 4 * SPOOL_BLOCK, 1);
	struct spool_piece piece;
	struct spool_stats stats;
	struct reader r;

	while (c.n < BIG) {
		bool later;

		put(w, s, &c, 3 * SPOOL_BLOCK, 9000);
		spool_stats(s, &stats);
		reader_begin(&r, s, stats.first);
		later = spool_cursor_next(r.cursor, 3, SPOOL_BLOCK, &piece) == SPOOL_LATER;
		if (c.n + 6 * SPOOL_BLOCK > BIG) {
			spool_cursor_close(r.cursor); /* while it reads */
			break;
		}
		put(w, s, &c, 3 * SPOOL_BLOCK, 9000);
		while (later && !r.more)
			uv_run(&w->loop, UV_RUN_ONCE);
		reader_all(w, &r, &c, 3, SPOOL_BLOCK, false);
		spool_cursor_close(r.cursor);
	}
	spool_unref(s);
	free(c.p);
}

static void test_without_a_file(void **state)
{
	static const char *const folders[] = { NULL, "/nowhere/at/all", "/proc" };
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		struct came c = came(BIG);
		struct spool_stats stats;
		struct spool *s;

		w->spools.folder = folders[i];
		s = spool(w, BIG, 2);
		put(w, s, &c, BIG, 3000);
		uv_run(&w->loop, UV_RUN_DEFAULT);
		spool_stats(s, &stats);
		assert_in_range(stats.first, BIG - 3 * SPOOL_BLOCK, BIG - SPOOL_BLOCK);
		assert_in_range(stats.memory, SPOOL_BLOCK, 6 * SPOOL_BLOCK);
		assert_int_equal(stats.trouble != NULL, folders[i] != NULL);
		assert_int_equal(stats.disk, 0);
		spool_end(s);
		spool_stats(s, &stats);
		assert_int_equal(check(w, s, &c, 0, 3, SPOOL_BLOCK), stats.first);
		spool_unref(s);
		free(c.p);
	}
}

/* The disk is full: in a process of its own, whose files can't be large. */
static void full(struct world *w)
{
	const struct rlimit limit = { 5 * SPOOL_BLOCK + 100, 5 * SPOOL_BLOCK + 100 };
	struct came c = came(BIG);
	struct spool *s = spool(w, BIG, 2);
	struct spool_stats stats;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	put(w, s, &c, BIG, 3000);
	spool_end(s);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	spool_stats(s, &stats);
	assert_non_null(stats.trouble);
	assert_int_equal(stats.disk, 5 * SPOOL_BLOCK);
	assert_in_range(stats.first, BIG - 6 * SPOOL_BLOCK, BIG - 3 * SPOOL_BLOCK);
	assert_int_equal(check(w, s, &c, 0, 3, SPOOL_BLOCK), stats.first);
	spool_unref(s);
	free(c.p);
}

static void test_a_full_disk(void **state)
{
	int status;
	pid_t pid;

	NEEDS_A_KERNEL("threads behind fork()");
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct world *w = *state;

		assert_int_equal(uv_loop_init(&w->loop), 0); /* the other one is our parent's */
		full(w);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Several have less together than each may have. */
static void test_the_house_is_full(void **state)
{
	struct world *w = *state;
	struct came a = came(BIG), b = came(BIG);
	struct spool *first, *second;
	struct spool_stats stats;

	w->spools.disk.max = 6 * SPOOL_BLOCK;
	first = spool(w, BIG, 1);
	second = spool(w, BIG, 1);
	put(w, first, &a, 5 * SPOOL_BLOCK, 3000);
	put(w, second, &b, BIG, 3000);
	put(w, first, &a, BIG - 5 * SPOOL_BLOCK, 3000);
	assert_true(w->asked > 0);
	assert_true(w->spools.disk.used <= w->spools.disk.max);
	spool_end(first);
	spool_end(second);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	spool_stats(first, &stats);
	assert_int_equal(check(w, first, &a, 0, 3, SPOOL_BLOCK), stats.first);
	spool_stats(second, &stats);
	assert_int_equal(check(w, second, &b, 0, 3, SPOOL_BLOCK), stats.first);
	spool_unref(first);
	spool_unref(second);
	free(a.p);
	free(b.p);
}

static void test_who_fills_it_waits_for_the_disk(void **state)
{
	static const char bytes[SPOOL_BLOCK];
	struct world *w = *state;
	struct spool *s = spool(w, BIG, 2);
	unsigned n = 0;

	while (!spool_add(s, 0, (struct str){ bytes, sizeof(bytes) }))
		assert_true(++n < 10);
	assert_int_equal(w->rooms, 0);
	while (w->rooms == 0)
		uv_run(&w->loop, UV_RUN_ONCE);
	spool_unref(s); /* while it may be writing */
}

static void test_what_nobody_kept(void **state)
{
	struct world *w = *state;
	struct spool *s = spool(w, 0, 1);
	struct spool_piece piece;
	struct spool_stats stats;
	struct reader r;

	spool_skip(s, 0, 5);
	spool_skip(s, 1, 7);
	spool_end(s);
	spool_stats(s, &stats);
	assert_int_equal(stats.first, 12);
	assert_int_equal(stats.end, 12);
	reader_begin(&r, s, 3);
	assert_int_equal(spool_cursor_next(r.cursor, 3, 10, &piece), SPOOL_LOST);
	assert_int_equal(piece.lost, 9);
	assert_int_equal(spool_cursor_next(r.cursor, 3, 10, &piece), SPOOL_END);
	spool_cursor_close(r.cursor);
	spool_unref(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_any_offset),
		TEST(test_followers),
		TEST(test_is_told_of_more),
		TEST(test_the_oldest_goes),
		TEST(test_overtaken),
		TEST(test_without_a_file),
		TEST(test_a_full_disk),
		TEST(test_the_house_is_full),
		TEST(test_who_fills_it_waits_for_the_disk),
		TEST(test_what_nobody_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
