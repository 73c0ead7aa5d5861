/* The events of a conversation: what was acknowledged is kept, and no number is used twice. */
#include "test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agents/store/events.h"
#include "base/clock.h"
#include "json/document/json.h"

static char dir[64], path[96], index_path[96];
static int folder;

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/unit-events-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/events.jsonl", dir);
	snprintf(index_path, sizeof(index_path), "%s/events.idx", dir);
	folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return folder < 0;
}

static int teardown(void **state)
{
	close(folder);
	unlink(path);
	unlink(index_path);
	return rmdir(dir);
}

static struct events *opened(struct events_report *ret)
{
	struct err e;
	struct events *v = events_open(folder, ret, &e);

	if (!v)
		fail_msg("%s", e.msg);
	return v;
}

static void append(struct events *v, uint64_t n)
{
	char data[64];
	struct err e;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t last = events_last(v), seq;

		snprintf(data, sizeof(data), "{\"message\":\"number %" PRIu64 "\"}", last + 1);
		assert_int_equal(events_append(v, "user_prompt", str_of(data), &seq, &e), 0);
		assert_true(seq > last);
	}
}

static void put(const char *text, size_t n, int flags)
{
	autoclose int fd = open(path, O_WRONLY | O_CLOEXEC | O_CREAT | flags, 0600);

	assert_int_equal(write(fd, text, n), (ssize_t)n);
}

static void put_text(const char *text)
{
	put(text, strlen(text), O_APPEND);
}

/* ---- pages ---------------------------------------------------------------------------------- */

struct got {
	uint64_t seqs[EVENTS_PAGE_MAX];
	size_t n;
};

static void on_event(void *owner, uint64_t seq, struct str line)
{
	struct got *g = owner;
	struct err e;
	uint64_t said;
	AUTO(json_free) struct json_doc *doc = json_parse(line, NULL, &e);

	assert_true(json_uint64(json_get(json_root(doc), "seq"), &said) && said == seq);
	assert_true(g->n == 0 || g->seqs[g->n - 1] < seq);
	g->seqs[g->n++] = seq;
}

static struct events_page read_page(struct events *v, struct events_range r, struct got *g)
{
	struct events_page page;
	struct err e;

	g->n = 0;
	if (events_read(v, &r, on_event, g, &page, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(page.n, g->n);
	if (g->n > 0)
		assert_true(page.first == g->seqs[0] && page.last == g->seqs[g->n - 1]);
	return page;
}

/* Every range of a log that is longer than some entries of the index, beside what it must be. */
static void test_pages(void **state)
{
	enum { N = 700 };
	static const size_t limits[] = { 1, 2, 127, 128, 129, 500 };
	static const uint64_t edges[] = { 0,   1,   2,	 127, 128, 129, 130, 256,
					  257, 384, 512, 699, 700, 701, 9999 };
	AUTO(events_close) struct events *v = opened(NULL);
	struct got g;

	append(v, N);
	for (size_t a = 0; a < ARRAY_LEN(edges); a++) {
		for (size_t b = 0; b < ARRAY_LEN(edges); b++) {
			for (size_t l = 0; l < 2 * ARRAY_LEN(limits); l++) {
				struct events_range r = { edges[a], edges[b], limits[l / 2],
							  l % 2 };
				uint64_t low = r.after + 1,
					 high = r.before && r.before <= N ? r.before - 1 : N;
				uint64_t have = high >= low ? high - low + 1 : 0;
				uint64_t n = have < r.limit ? have : r.limit;
				struct events_page page = read_page(v, r, &g);

				assert_int_equal(g.n, n);
				assert_int_equal(page.more, have > n);
				if (n > 0)
					assert_int_equal(g.seqs[0], r.newest ? high - n + 1 : low);
			}
		}
	}
}

static void test_pages_are_bounded_by_bytes(void **state)
{
	AUTO(events_close) struct events *v = opened(NULL);
	autofree char *data = malloc(EVENTS_DATA_MAX + 2);
	struct events_page page;
	struct got g;
	struct err e;
	uint64_t seq;

	memset(data, 'x', EVENTS_DATA_MAX + 1);
	memcpy(data, "{\"a\":\"", 6);
	memcpy(data + EVENTS_DATA_MAX - 2, "\"}", 2);
	for (int i = 0; i < 12; i++)
		assert_int_equal(events_append(v, "agent_message",
					       (struct str){ data, EVENTS_DATA_MAX }, &seq, &e),
				 0);
	assert_int_equal(events_append(v, "agent_message",
				       (struct str){ data, EVENTS_DATA_MAX + 1 }, &seq, &e),
			 -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	page = read_page(v, (struct events_range){ 0 }, &g);
	assert_true(g.n == 4 && page.more && page.last == 4);
	page = read_page(v, (struct events_range){ .after = 4, .limit = 2 }, &g);
	assert_true(g.n == 2 && page.more && page.first == 5);
	page = read_page(v, (struct events_range){ .newest = true }, &g);
	assert_true(g.n == 4 && page.more && page.last == 12);
	page = read_page(v, (struct events_range){ .before = 4, .newest = true }, &g);
	assert_true(g.n == 3 && !page.more);
}

/* ---- what others or a power cut have done --------------------------------------------------- */

static void test_a_torn_line_is_cut_and_its_number_not_used_again(void **state)
{
	struct events_report r;
	struct events *v = opened(NULL);
	struct got g;

	append(v, 5);
	events_close(v);
	put_text("{\"seq\":6,\"type\":\"user_pro");
	v = opened(&r);
	assert_true(r.torn == 25 && r.spoilt == 0 && events_last(v) == 5 && events_count(v) == 5);
	append(v, 1);
	assert_int_equal(events_last(v), 7);
	read_page(v, (struct events_range){ .after = 4 }, &g);
	assert_true(g.n == 2 && g.seqs[0] == 5 && g.seqs[1] == 7);
	events_close(v);
	v = opened(&r);
	assert_true(r.torn == 0 && events_last(v) == 7 && events_count(v) == 6);
	events_close(v);
}

static void test_spoilt_lines_are_skipped_and_told(void **state)
{
	static const char *const lines[] = {
		"",
		"\n",
		"garbage\n",
		"{\"seq\":3}\n",
		"{\"seq\":2,\"type\":\"old\"}\n",
		"{\"seq\":-1}\n",
		"{\"seq\":99999999999999999999999,\"type\":1}\n",
		"[\"seq\",5]\n",
		"{\"seq\":9223372036854775808,}\n",
	};
	struct events_page page;
	struct events_report r;
	struct events *v = opened(NULL);
	struct got g;

	append(v, 3);
	events_close(v);
	for (size_t i = 1; i < ARRAY_LEN(lines); i++)
		put_text(lines[i]);
	put("\0\0\0\0\n", 5, O_APPEND);
	/* Looks like an event, and is none; its number is used. */
	put_text("{\"seq\":4,\"type\":\"a\",\"data\":{oops}}\n");
	v = opened(&r);
	assert_int_equal(r.spoilt, ARRAY_LEN(lines));
	append(v, 2);
	page = read_page(v, (struct events_range){ 0 }, &g);
	assert_int_equal(page.spoilt, ARRAY_LEN(lines) + 1);
	assert_true(g.n == 5 && g.seqs[2] == 3 && g.seqs[3] == 5 && g.seqs[4] == 6);
	events_close(v);
}

static void test_a_line_without_an_end_takes_no_memory(void **state)
{
	struct events_report r;
	struct events *v = opened(NULL);
	autofree char *text = malloc(8 << 20);
	struct rusage before, after;

	append(v, 1);
	events_close(v);
	memset(text, 'x', 8 << 20);
	for (int i = 0; i < 8; i++)
		put(text, 8 << 20, O_APPEND);
	put_text("\n{\"seq\":2,\"type\":\"a\",\"timestamp\":\"\",\"data\":{}}\n");
	getrusage(RUSAGE_SELF, &before);
	v = opened(&r);
	getrusage(RUSAGE_SELF, &after);
	assert_true(r.spoilt == 1 && events_last(v) == 2);
	assert_true(after.ru_maxrss - before.ru_maxrss < 8 << 10);
	events_close(v);
}

static void test_a_wrong_index_is_made_again(void **state)
{
	static const char *const wrongs[] = {
		"", "HOLTIDX1", "HOLTIDX1 and what is no entry of it at all, for long",
		"something else that is no index of ours"
	};
	struct events_report r;
	struct events *v = opened(NULL);
	struct got g;

	append(v, 1000);
	events_close(v);
	for (size_t i = 0; i <= ARRAY_LEN(wrongs); i++) {
		unlink(index_path);
		if (i < ARRAY_LEN(wrongs)) {
			autoclose int fd = open(index_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

			assert_true(write(fd, wrongs[i], strlen(wrongs[i])) >= 0);
		}
		v = opened(&r);
		assert_true(r.indexed_anew && events_count(v) == 1000 && events_last(v) == 1000);
		read_page(v, (struct events_range){ .before = 600, .limit = 3, .newest = true },
			  &g);
		assert_true(g.n == 3 && g.seqs[0] == 597);
		events_close(v);
		v = opened(&r);
		assert_false(r.indexed_anew);
		events_close(v);
	}
	/* Of a longer log than the one that is there. */
	assert_int_equal(truncate(path, 8000), 0);
	v = opened(&r);
	assert_true(events_count(v) > 50 && events_count(v) < 100 && r.torn > 0);
	append(v, 300);
	read_page(v, (struct events_range){ .newest = true, .limit = 100 }, &g);
	assert_int_equal(g.n, 100);
	events_close(v);
}

static void test_what_is_not_ours_is_refused(void **state)
{
	struct err e;

	put_text("");
	assert_int_equal(chmod(path, 0644), 0);
	assert_null(events_open(folder, NULL, &e));
	assert_int_equal(e.code, ERR_DENIED);
	unlink(path);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_null(events_open(folder, NULL, &e));
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(events_open(folder, NULL, &e));
	assert_int_equal(e.code, ERR_DENIED);
}

/* ---- writers that end ----------------------------------------------------------------------- */

static void test_what_was_acknowledged_outlives_its_writer(void **state)
{
	for (int round = 0; round < 20; round++) {
		int pipes[2], status;
		uint64_t acknowledged = 0, seq;
		struct events_report r;
		struct events *v;
		pid_t pid;

		assert_int_equal(pipe(pipes), 0);
		pid = fork();
		if (pid == 0) {
			struct err e;

			v = events_open(folder, NULL, &e);
			while (v &&
			       events_append(v, "user_prompt", STR_LIT("{\"a\":1}"), &seq, &e) ==
				       0 &&
			       write(pipes[1], &seq, sizeof(seq)) == sizeof(seq))
				;
			_exit(1);
		}
		close(pipes[1]);
		for (int i = 0; i < 50 + 13 * round; i++)
			assert_int_equal(read(pipes[0], &acknowledged, sizeof(acknowledged)),
					 sizeof(acknowledged));
		kill(pid, SIGKILL);
		while (read(pipes[0], &seq, sizeof(seq)) == sizeof(seq))
			acknowledged = seq;
		close(pipes[0]);
		waitpid(pid, &status, 0);
		v = opened(&r);
		assert_true(events_last(v) >= acknowledged && r.spoilt == 0);
		assert_true(events_count(v) <= events_last(v) &&
			    events_last(v) <= acknowledged + 2);
		events_close(v);
	}
}

static void test_a_full_disk_leaves_nothing_of_an_event(void **state)
{
	struct events *v = opened(NULL);
	struct rlimit was, small = { 0 };
	struct events_report r;
	struct err e;
	uint64_t seq, size;
	int failed;

	append(v, 10);
	size = events_bytes(v);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &was);
	small = (struct rlimit){ size + 20, was.rlim_max };
	setrlimit(RLIMIT_FSIZE, &small);
	failed = events_append(v, "user_prompt", STR_LIT("{\"a\":1}"), &seq, &e);
	setrlimit(RLIMIT_FSIZE, &was);
	assert_true(failed == -1 && e.code == ERR_STORE_FULL && events_bytes(v) == size);
	append(v, 1);
	assert_int_equal(events_last(v), 11);
	events_close(v);
	v = opened(&r);
	assert_true(r.torn == 0 && r.spoilt == 0 && events_count(v) == 11);
	events_close(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_pages),
		TEST(test_pages_are_bounded_by_bytes),
		TEST(test_a_torn_line_is_cut_and_its_number_not_used_again),
		TEST(test_spoilt_lines_are_skipped_and_told),
		TEST(test_a_line_without_an_end_takes_no_memory),
		TEST(test_a_wrong_index_is_made_again),
		TEST(test_what_is_not_ours_is_refused),
		TEST(test_what_was_acknowledged_outlives_its_writer),
		TEST(test_a_full_disk_leaves_nothing_of_an_event),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
