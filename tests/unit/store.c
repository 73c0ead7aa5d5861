/* The registry: what it gives back, within which bounds, and what it says where its file is not
 * as it should be. What was committed outlives a process that is killed at any point. */
#include "test.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store.h"

static char dir[64], path[128];

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/unit-store-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/registry.db", dir);
	return 0;
}

static int teardown(void **state)
{
	return test_remove_folder(dir);
}

static struct store *opened(void)
{
	struct err e = ERR_INIT;
	struct store *s = store_open(path, &e);

	if (!s)
		fail_msg("open: %s", e.msg);
	return s;
}

static enum err_code refused(void)
{
	struct err e = ERR_INIT;

	assert_null(store_open(path, &e));
	assert_null(strstr(e.msg, dir));
	return e.code;
}

static struct store_sandbox plain(uint64_t seq, const char *id)
{
	return (struct store_sandbox){
		.seq = seq,
		.id = str_of(id),
		.template = STR_LIT("host"),
		.spec = STR_LIT("{\"env\":{}}"),
		.state = STR_LIT("running"),
		.retention = STR_LIT("destroy"),
		.generation = 1,
		.created_ms = 1000,
		.changed_ms = 2000,
		.memory = 1 << 30,
		.pids = 7,
	};
}

/* ---- sandboxes ----------------------------------------------------------------------------- */

struct seen {
	size_t n;
	uint64_t seqs[64];
	struct store_sandbox last;
	char state[32], why[64], spec[64], id[80];
};

static int see(void *arg, const struct store_sandbox *r, struct err *e)
{
	struct seen *s = arg;

	s->seqs[s->n++ % 64] = r->seq;
	s->last = *r;
	snprintf(s->state, sizeof(s->state), "%.*s", STR_ARG(r->state));
	snprintf(s->why, sizeof(s->why), "%.*s", STR_ARG(r->why));
	snprintf(s->spec, sizeof(s->spec), "%.*s", STR_ARG(r->spec));
	snprintf(s->id, sizeof(s->id), "%.*s", STR_ARG(r->id));
	return 0;
}

static struct seen all_of(struct store *s)
{
	struct seen seen = { 0 };
	struct err e;

	assert_int_equal(store_sandboxes(s, see, &seen, &e), 0);
	return seen;
}

static void test_sandboxes(void **state)
{
	struct store *s = opened();
	struct store_sandbox r = plain(1, "a");
	struct seen seen;
	struct err e = ERR_INIT;
	uint64_t last;
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(store_sandbox_add(s, &r, 0, &e), 0);
	r = plain(2, "b");
	r.spec = STR_NONE;
	assert_int_equal(store_sandbox_add(s, &r, 1, &e), 0);
	r.state = STR_LIT("lost");
	r.code = STR_LIT("sandbox_lost");
	r.why = STR_LIT("it was so");
	r.deadline_ms = 77;
	r.spent_cpu_ms = 5;
	r.spent_out = 1ull << 40;
	assert_int_equal(store_sandbox_change(s, &r, &e), 0);
	store_close(s);

	s = opened();
	seen = all_of(s);
	assert_int_equal(seen.n, 2);
	assert_string_equal(seen.state, "lost");
	assert_string_equal(seen.why, "it was so");
	assert_string_equal(seen.spec, "{\"env\":{}}");
	assert_int_equal(seen.last.deadline_ms, 77);
	assert_int_equal(seen.last.memory, 1 << 30);
	assert_int_equal(seen.last.pids, 7);
	assert_int_equal(seen.last.spent_cpu_ms, 5);
	assert_int_equal(seen.last.spent_out, 1ull << 40);
	/* an id again: the old row goes, and no number is used twice */
	r = plain(3, "b");
	assert_int_equal(store_sandbox_add(s, &r, 0, &e), 0);
	seen = all_of(s);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.seqs[1], 3);
	assert_int_equal(store_sandbox_drop(s, 3, &e), 0);
	assert_int_equal(store_sandbox_last(s, &last, &e), 0);
	assert_int_equal(last, 3);
	/* a spec of nobody's is a defect, and changes nothing */
	r.seq = 4;
	r.spec = STR_NONE;
	assert_int_equal(store_sandbox_add(s, &r, 99, &e), -1);
	assert_int_equal(all_of(s).n, 1);
	store_close(s);
}

/* ---- programs ------------------------------------------------------------------------------ */

struct jobs_seen {
	size_t n;
	struct store_job last;
	char ids[64], state[32], why[32];
};

static int see_job(void *arg, const struct store_job *j, struct err *e)
{
	struct jobs_seen *s = arg;
	size_t at = strlen(s->ids);

	s->n++;
	s->last = *j;
	snprintf(s->ids + at, sizeof(s->ids) - at, "%.*s/%.*s ", STR_ARG(j->sandbox_id),
		 STR_ARG(j->id));
	snprintf(s->state, sizeof(s->state), "%.*s", STR_ARG(j->state));
	snprintf(s->why, sizeof(s->why), "%.*s", STR_ARG(j->why));
	return 0;
}

static struct jobs_seen jobs_of(struct store *s)
{
	struct jobs_seen seen = { 0 };
	struct err e;

	assert_int_equal(store_jobs(s, see_job, &seen, &e), 0);
	return seen;
}

static void test_jobs(void **state)
{
	struct store *s = opened();
	struct store_sandbox r = plain(1, "a"), gone = plain(2, "b");
	struct store_job j = {
		.sandbox = 1,
		.id = STR_LIT("x"),
		.command = STR_LIT("sleep 9"),
		.state = STR_LIT("running"),
		.started_ms = 5,
	};
	struct jobs_seen seen;
	struct err e = ERR_INIT;

	gone.state = STR_LIT("terminated");
	assert_int_equal(store_sandbox_add(s, &r, 0, &e), 0);
	assert_int_equal(store_sandbox_add(s, &gone, 0, &e), 0);
	assert_int_equal(store_job_put(s, &j, &e), 0);
	j.state = STR_LIT("signaled");
	j.exit_code = 137;
	j.signal = 9;
	j.hit_memory = true;
	j.bytes[0] = 1ull << 40;
	j.bytes[1] = 3;
	j.wall_us = 1000001;
	j.why = STR_LIT("it was so");
	assert_int_equal(store_job_put(s, &j, &e), 0);
	j.id = STR_LIT("w");
	j.started_ms = 4;
	assert_int_equal(store_job_put(s, &j, &e), 0);
	j.sandbox = 2;
	assert_int_equal(store_job_put(s, &j, &e), 0);
	store_close(s);

	s = opened();
	seen = jobs_of(s); /* in order of their starts, without those of what has ended */
	assert_string_equal(seen.ids, "a/w a/x ");
	assert_string_equal(seen.state, "signaled");
	assert_string_equal(seen.why, "it was so");
	assert_int_equal(seen.last.exit_code, 137);
	assert_int_equal(seen.last.signal, 9);
	assert_true(seen.last.hit_memory && !seen.last.hit_pids);
	assert_int_equal(seen.last.bytes[0], 1ull << 40);
	assert_int_equal(seen.last.wall_us, 1000001);
	assert_int_equal(store_job_drop(s, 1, STR_LIT("w"), &e), 0);
	assert_int_equal(jobs_of(s).n, 1);
	assert_int_equal(store_jobs_clear(s, &e), 0);
	gone.state = STR_LIT("lost");
	assert_int_equal(store_sandbox_change(s, &gone, &e), 0);
	assert_int_equal(jobs_of(s).n, 1);
	store_close(s);
}

static void test_transactions(void **state)
{
	struct store *s = opened();
	struct store_sandbox r = plain(1, "a");
	struct err e = ERR_INIT;

	assert_int_equal(store_begin(s, &e), 0);
	assert_int_equal(store_sandbox_add(s, &r, 0, &e), 0);
	store_rollback(s);
	assert_int_equal(all_of(s).n, 0);
	assert_int_equal(store_begin(s, &e), 0);
	assert_int_equal(store_sandbox_add(s, &r, 0, &e), 0);
	assert_int_equal(store_commit(s, &e), 0);
	assert_int_equal(all_of(s).n, 1);
	assert_int_equal(store_commit(s, &e), -1);
	store_close(s);
}

/* ---- events -------------------------------------------------------------------------------- */

struct told {
	uint64_t n, first, last;
};

static int tell(void *arg, const struct store_event *v, struct err *e)
{
	struct told *t = arg;

	assert_true(v->seq > t->last);
	if (t->n++ == 0)
		t->first = v->seq;
	t->last = v->seq;
	return 0;
}

static struct told told(struct store *s, uint64_t after, const char *id, unsigned max)
{
	struct told t = { 0 };
	struct err e;

	assert_int_equal(
		store_events(s, &(struct store_events_of){ after, str_of(id) }, max, tell, &t, &e),
		0);
	return t;
}

static void test_events_are_bounded(void **state)
{
	struct store *s = opened();
	struct store_event v = { .at_ms = 1, .sandbox = STR_LIT("a"), .kind = STR_LIT("created") };
	struct err e = ERR_INIT;

	assert_int_equal(store_begin(s, &e), 0);
	for (int i = 0; i < STORE_EVENTS_MAX + 1000; i++) {
		v.sandbox = i % 2 ? STR_LIT("a") : STR_LIT("b");
		assert_int_equal(store_event_add(s, &v, &e), 0);
	}
	assert_int_equal(store_commit(s, &e), 0);
	assert_in_range(told(s, 0, NULL, 100000).n, STORE_EVENTS_MAX, STORE_EVENTS_MAX + 300);
	assert_int_equal(told(s, 0, NULL, 10).n, 10);
	assert_int_equal(told(s, 10990, NULL, 100).first, 10991);
	assert_int_equal(told(s, 10990, "a", 100).n, 5);
	assert_int_equal(told(s, 0, "c", 100).n, 0);
	store_close(s);
}

/* ---- keys ---------------------------------------------------------------------------------- */

static struct store_key key_of(const char *key, const char *digest)
{
	return (struct store_key){
		.scope = STR_LIT("fork"),
		.key = str_of(key),
		.digest = { digest, STORE_DIGEST_BYTES },
		.run = STR_LIT("run-1"),
		.at_ms = 1000,
		.plan = STR_LIT("sbx-1"),
		.body = STR_LIT(""),
	};
}

static void test_keys(void **state)
{
	struct store *s = opened();
	char digest[STORE_DIGEST_BYTES], other[STORE_DIGEST_BYTES];
	struct store_key k, found;
	struct err e = ERR_INIT;

	store_digest(STR_LIT("POST /v1/fork {}"), digest);
	store_digest(STR_LIT("POST /v1/fork {} "), other);
	assert_memory_not_equal(digest, other, sizeof(digest));
	k = key_of("k", digest);
	assert_int_equal(store_key_find(s, k.scope, k.key, &found, &e), 0);
	assert_int_equal(store_key_put(s, &k, &e), 0);
	store_close(s);
	s = opened();
	assert_int_equal(store_key_find(s, k.scope, k.key, &found, &e), 1);
	assert_false(found.done);
	assert_true(str_is(found.plan, "sbx-1") && str_is(found.run, "run-1"));
	assert_memory_equal(found.digest.p, digest, sizeof(digest));
	assert_int_equal(store_key_find(s, STR_LIT("template"), k.key, &found, &e), 0);
	k.done = true;
	k.status = 200;
	k.body = (struct str){ "{\0}", 3 };
	assert_int_equal(store_key_put(s, &k, &e), 0);
	assert_int_equal(store_key_find(s, k.scope, k.key, &found, &e), 1);
	assert_true(found.done && found.status == 200 && found.body.n == 3);
	assert_int_equal(store_keys_expire(s, 1000, &e), 0);
	assert_int_equal(store_key_find(s, k.scope, k.key, &found, &e), 1);
	assert_int_equal(store_keys_expire(s, 1001, &e), 0);
	assert_int_equal(store_key_find(s, k.scope, k.key, &found, &e), 0);
	store_close(s);
}

/* The oldest answers make room; what is under way never does. */
static void test_keys_are_bounded(void **state)
{
	enum { MIB_ = 1 << 20, N = STORE_KEYS_BYTES_MAX / MIB_ };
	struct store *s = opened();
	char digest[STORE_DIGEST_BYTES] = { 0 }, name[16];
	char *body = calloc(1, MIB_);
	struct store_key k, found;
	struct err e = ERR_INIT;

	assert_non_null(body);
	for (int i = 0; i < N + 3; i++) {
		snprintf(name, sizeof(name), "k%d", i);
		k = key_of(name, digest);
		k.at_ms = i;
		k.done = i != 0;
		k.body = (struct str){ body, MIB_ };
		assert_int_equal(store_key_put(s, &k, &e), 0);
	}
	assert_int_equal(store_key_find(s, k.scope, STR_LIT("k0"), &found, &e), 1);
	assert_int_equal(store_key_find(s, k.scope, STR_LIT("k1"), &found, &e), 0);
	assert_int_equal(store_key_find(s, k.scope, k.key, &found, &e), 1);
	for (int i = 0; i < N + 3; i++) { /* all are under way: the rest has to wait */
		snprintf(name, sizeof(name), "w%d", i);
		k = key_of(name, digest);
		k.body = (struct str){ body, MIB_ };
		if (store_key_put(s, &k, &e) < 0)
			break;
	}
	assert_int_equal(e.code, ERR_LIMIT);
	free(body);
	store_close(s);
}

static void write_one(struct store *s, uint64_t seq)
{
	struct store_sandbox r = plain(seq, "a");
	struct err e = ERR_INIT;

	assert_int_equal(store_sandbox_add(s, &r, 0, &e), 0);
}

/* What was found is the caller's to look at as long as nothing else is asked: the log begins
 * anew all the same. */
static void test_a_found_key_holds_nothing(void **state)
{
	struct store *s = opened();
	char digest[STORE_DIGEST_BYTES] = { 0 };
	struct store_key k = key_of("k", digest), found;
	struct err e = ERR_INIT;
	uint64_t seq = 0;

	k.done = true;
	k.body = STR_LIT("{}");
	assert_int_equal(store_key_put(s, &k, &e), 0);
	assert_int_equal(store_key_find(s, k.scope, k.key, &found, &e), 1);
	for (int round = 0; round < 4; round++) {
		do
			write_one(s, ++seq);
		while (!store_wants_checkpoint(s));
		assert_int_equal(store_checkpoint(s, &e), 0);
		write_one(s, ++seq);
		assert_false(store_wants_checkpoint(s));
	}
	assert_true(str_is(found.body, "{}") && str_is(found.plan, "sbx-1") && found.done);
	assert_memory_equal(found.digest.p, digest, sizeof(digest));
	store_close(s);
}

/* ---- what is wrong with a file ------------------------------------------------------------- */

static void test_two_openers(void **state)
{
	struct store *s = opened();

	assert_int_equal(refused(), ERR_STORE_LOCKED);
	store_close(s);
	store_close(opened());
}

static void patch(off_t at, const void *p, size_t n)
{
	autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0 && pwrite(fd, p, n, at) == (ssize_t)n);
}

/* user_version is at byte 60 of the header, application_id at 68 (SQLite's file format, 1.3). */
static void test_newer(void **state)
{
	static const unsigned char version[] = { 0, 0, 0, 99 };

	store_close(opened());
	patch(60, version, sizeof(version));
	assert_int_equal(refused(), ERR_STORE_NEWER);
}

static void test_stranger(void **state)
{
	static const unsigned char id[] = { 1, 2, 3, 4 };

	store_close(opened());
	patch(68, id, sizeof(id));
	assert_int_equal(refused(), ERR_STORE_CORRUPT);
}

static void fill_some(struct store *s, int n)
{
	struct err e = ERR_INIT;
	char id[32];

	assert_int_equal(store_begin(s, &e), 0);
	for (int i = 1; i <= n; i++) {
		struct store_sandbox r;

		snprintf(id, sizeof(id), "sbx-%d", i);
		r = plain((uint64_t)i, id);
		assert_int_equal(store_sandbox_add(s, &r, 0, &e), 0);
	}
	assert_int_equal(store_commit(s, &e), 0);
}

static void test_damaged(void **state)
{
	static char garbage[4096];
	struct store *s = opened();
	struct stat st;

	fill_some(s, 500);
	store_close(s);
	memset(garbage, 0xa5, sizeof(garbage));
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 10 * 4096);
	for (off_t at = 4096; at < st.st_size; at += 2 * 4096)
		patch(at, garbage, sizeof(garbage));
	assert_int_equal(refused(), ERR_STORE_CORRUPT);
	patch(0, garbage, sizeof(garbage));
	assert_int_equal(refused(), ERR_STORE_CORRUPT);
	assert_int_equal(truncate(path, 1000), 0);
	assert_int_equal(refused(), ERR_STORE_CORRUPT);
}

static void test_whose_file(void **state)
{
	store_close(opened());
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(refused(), ERR_DENIED);
	assert_int_equal(chmod(path, 0600), 0);
	store_close(opened());
	unlink(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(refused(), ERR_DENIED);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_not_equal(refused(), ERR_NONE);
	rmdir(path);
}

/* Where there are rights that go over modes, as root, nothing is read-only by its mode. */
static void test_read_only(void **state)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct err e = ERR_INIT;

		if (chown(dir, 0, 0) == 0 &&
		    (chmod(dir, 0755) < 0 || setgid(65534) < 0 || setuid(65534) < 0))
			_exit(1);
		if (getuid() != 65534 && chmod(dir, 0500) < 0)
			_exit(2);
		_exit(!store_open(path, &e) && e.code == ERR_STORE_READONLY ? 0 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(chmod(dir, 0700), 0);
}

/* A file that may not grow is a disk that is full: said so, nothing half done, and over when it is
 * over. */
static void test_full(void **state)
{
	struct rlimit all, few;
	struct store *s = opened();
	struct err e = ERR_INIT;
	char id[32];
	uint64_t n = 0;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
	few = (struct rlimit){ 256 << 10, all.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	for (;;) {
		struct store_sandbox r;

		snprintf(id, sizeof(id), "sbx-%d", (int)n);
		r = plain(n + 1, id);
		if (store_sandbox_add(s, &r, 0, &e) < 0)
			break;
		assert_true(++n < 10000);
	}
	setrlimit(RLIMIT_FSIZE, &all);
	if (e.code != ERR_STORE_FULL)
		fail_msg("%s", e.msg);
	assert_int_equal(all_of(s).n, n);
	fill_some(s, (int)n + 1);
	assert_int_equal(all_of(s).n, n + 1);
	store_close(s);
	s = opened();
	assert_int_equal(all_of(s).n, n + 1);
	store_close(s);
}

/* ---- killed -------------------------------------------------------------------------------- */

/* Writes one row after the other and says each number when it is committed. */
static void write_for_ever(int out, uint64_t from)
{
	struct err e = ERR_INIT;
	struct store *s = store_open(path, &e);
	char id[32];

	for (uint64_t seq = from; s; seq++) {
		struct store_sandbox r;

		snprintf(id, sizeof(id), "sbx-%d", (int)seq);
		r = plain(seq, id);
		if (store_begin(s, &e) < 0 || store_sandbox_add(s, &r, 0, &e) < 0 ||
		    store_commit(s, &e) < 0 || write(out, &seq, sizeof(seq)) != sizeof(seq))
			break;
		if (seq % 16 == 0 && store_checkpoint(s, &e) < 0)
			break;
	}
	_exit(1);
}

static uint64_t killed_after(uint64_t from, unsigned n)
{
	uint64_t last = from - 1;
	int out[2], status;
	pid_t pid;

	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (pid == 0)
		write_for_ever(out[1], from);
	close(out[1]);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(read(out[0], &last, sizeof(last)), sizeof(last));
	kill(pid, SIGKILL);
	while (read(out[0], &last, sizeof(last)) == sizeof(last))
		continue;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(out[0]);
	return last;
}

static void test_killed(void **state)
{
	uint64_t next = 1;

	for (unsigned round = 0; round < 100; round++) {
		uint64_t said = killed_after(next, 1 + round % 37);
		struct store *s = opened();
		struct seen seen = all_of(s);

		/* all that it said, and perhaps one that it had no time to say */
		assert_in_range(seen.n, said, said + 1);
		assert_int_equal(seen.last.seq, seen.n);
		next = seen.n + 1;
		store_close(s);
	}
}

/* ---- what db.h promises for later versions ------------------------------------------------- */

static void test_migrations(void **state)
{
	static const char *const steps[] = {
		"CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (1)",
		"ALTER TABLE a ADD COLUMN y INTEGER; UPDATE a SET y = x + 1",
		"CREATE TABLE b (x); no such statement"
	};
	static const char *const statements[] = { "SELECT x + y FROM a" };
	struct db_schema schema = { steps, 1, statements, 1 };
	struct err e = ERR_INIT;
	struct db *db = db_open(path, &schema, &e);
	struct db_rows rows;

	assert_non_null(db);
	db_close(db);
	schema.n_migrations = 3; /* the last one fails: as far as it came, it stays */
	assert_null(db_open(path, &schema, &e));
	schema.n_migrations = 2;
	db = db_open(path, &schema, &e);
	assert_non_null(db);
	assert_int_equal(db_rows_values(db, 0, NULL, 0, &rows, &e), 0);
	assert_int_equal(db_next(&rows, &e), 1);
	assert_int_equal(db_int(&rows, 0), 3);
	db_rows_end(&rows);
	db_close(db);
	schema.n_migrations = 1;
	assert_null(db_open(path, &schema, &e));
	assert_int_equal(e.code, ERR_STORE_NEWER);
}

#define store_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		store_test(test_sandboxes),
		store_test(test_jobs),
		store_test(test_transactions),
		store_test(test_events_are_bounded),
		store_test(test_keys),
		store_test(test_keys_are_bounded),
		store_test(test_a_found_key_holds_nothing),
		store_test(test_two_openers),
		store_test(test_newer),
		store_test(test_stranger),
		store_test(test_damaged),
		store_test(test_whose_file),
		store_test(test_read_only),
		store_test(test_full),
		store_test(test_killed),
		store_test(test_migrations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
