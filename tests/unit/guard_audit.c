/* The audit log: what is written verifies, and whatever is done to it afterwards is told. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard/audit/audit.h"
#include "guard/audit/read.h"
#include "guard/audit/verify.h"

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char root[64], dir[96];
static uv_loop_t loop;

static int setup(void **state)
{
	snprintf(root, sizeof(root), "/tmp/unit-audit-XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(dir, sizeof(dir), "%s/audit", root);
	return uv_loop_init(&loop);
}

static int teardown(void **state)
{
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	return test_remove_folder(root);
}

static struct audit *opened(uint64_t file_bytes, unsigned files)
{
	const struct audit_options o = {
		.folder = dir, .version = "1.0", .loop = &loop, .limits = { file_bytes, files, 0 }
	};
	struct err e = ERR_INIT;
	struct audit *a = audit_open(&o, &e);

	if (!a)
		fail_msg("open: %s", e.msg);
	return a;
}

static void closed(struct audit *a)
{
	audit_close(a);
	uv_run(&loop, UV_RUN_DEFAULT);
}

static int done;
static void on_done(struct audit_wait *w)
{
	done++;
}

static struct audit_record call_of(unsigned i, char id[40])
{
	snprintf(id, 40, "run_%032u", i);
	return (struct audit_record){ .id = str_of(id),
				      .who = STR_LIT("local"),
				      .action = STR_LIT("sandbox.exec"),
				      .effect = STR_LIT("execute"),
				      .target = STR_LIT("sbx-1"),
				      .args = STR_LIT(DIGEST),
				      .output = STR_LIT(DIGEST),
				      .decision = STR_LIT("allow"),
				      .outcome = STR_LIT("ok"),
				      .timed = true,
				      .ms = 12,
				      .bytes = 345 };
}

static void add(struct audit *a, unsigned i, struct audit_wait *w)
{
	char id[40];
	struct audit_record r = call_of(i, id);

	w->done = on_done;
	audit_add(a, &r, w);
}

/* A session with calls from..to; not sealed where `killed`. */
static void session(unsigned from, unsigned to, bool killed)
{
	pid_t child = killed ? fork() : 0;
	struct audit_wait w = { .synced = false };
	int status;

	if (child > 0) {
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		return;
	}
	struct audit *a = opened(0, 0);
	for (unsigned i = from; i <= to; i++)
		add(a, i, &w);
	if (killed)
		raise(SIGKILL);
	closed(a);
}

static struct audit_report verified(void)
{
	struct audit_report r;
	struct audit_public p;
	struct err e;
	int folder = open(dir, O_RDONLY | O_DIRECTORY);

	assert_int_equal(audit_public_open(folder, "key.pub", &p, &e), 0);
	audit_verify_log(folder, &p, &r);
	close(folder);
	return r;
}

static void expect(enum audit_verdict verdict, const char *why)
{
	struct audit_report r = verified();

	if (r.verdict != verdict || !strstr(r.why, why))
		fail_msg("verdict %d, \"%s\", not %d, \"%s\"", r.verdict, r.why, verdict, why);
}

static char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static char *slurp(const char *name, size_t *n)
{
	FILE *f = fopen(path_of(name), "r");
	char *text = malloc(1 << 20);

	assert_non_null(f);
	assert_non_null(text);
	*n = fread(text, 1, (1 << 20) - 1, f);
	text[*n] = '\0';
	fclose(f);
	return text;
}

static void spill(const char *name, const char *text, size_t n)
{
	FILE *f = fopen(path_of(name), "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	fclose(f);
}

/* Offset of the n-th line, from 0. */
static size_t line_at(const char *text, unsigned n)
{
	const char *at = text;

	while (n--)
		at = strchr(at, '\n') + 1;
	return (size_t)(at - text);
}

static void test_what_is_written_verifies(void **state)
{
	struct audit_report r;
	struct stat s;

	session(1, 20, false);
	expect(AUDIT_VERIFIED, "");
	session(21, 22, false);
	r = verified();
	assert_int_equal(r.verdict, AUDIT_VERIFIED);
	assert_int_equal(r.calls, 22);
	assert_int_equal(r.sessions, 2);
	assert_int_equal(stat(path_of("000001.jsonl"), &s), 0);
	assert_int_equal(s.st_mode & 0777, 0600);
	assert_int_equal(stat(path_of("key"), &s), 0);
	assert_int_equal(s.st_mode & 0777, 0600);
	assert_int_equal(stat(path_of("key.pub"), &s), 0);
	assert_int_equal(s.st_mode & 0777, 0644);
	assert_int_equal(stat(dir, &s), 0);
	assert_int_equal(s.st_mode & 0777, 0700);
}

/* All members at their longest fit a line, with a signature; what is hostile is cut and cleaned. */
static void test_longest_line(void **state)
{
	char big[200], hostile[200];
	struct audit_record r = { .timed = true, .ms = UINT64_MAX, .bytes = UINT64_MAX };
	struct str *texts[] = { &r.session, &r.id,	 &r.who,     &r.action,
				&r.effect,  &r.target,	 &r.args,    &r.decision,
				&r.rule,    &r.approval, &r.outcome, &r.output };
	struct audit *a = opened(0, 0);
	struct audit_wait w = { .done = on_done, .synced = true, .receipt = true };
	AUTO(arena_free) struct arena *arena = arena_new(1 << 16);
	struct err e;
	size_t n;
	char *text;

	memset(big, 'x', sizeof(big));
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		*texts[i] = (struct str){ big, sizeof(big) };
	assert_int_equal(audit_clean(&r, arena, &e), 0);
	done = 0;
	audit_add(a, &r, &w);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(done, 1);
	assert_true(w.line.n > 700 && w.line.n <= 1000);

	for (size_t i = 0; i < sizeof(hostile); i++)
		hostile[i] = (char)(i + 1);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		*texts[i] = (struct str){ hostile, sizeof(hostile) };
	assert_int_equal(audit_clean(&r, arena, &e), 0);
	w.synced = false;
	audit_add(a, &r, &w);
	closed(a);
	expect(AUDIT_VERIFIED, "");
	text = slurp("000001.jsonl", &n);
	for (size_t i = 0; i < n; i++)
		assert_true(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
	free(text);
}

static void test_group(void **state)
{
	struct audit *a = opened(0, 0);
	struct audit_wait w[200] = { 0 };

	done = 0;
	for (unsigned i = 0; i < ARRAY_LEN(w); i++) {
		w[i].synced = true;
		add(a, i, &w[i]);
	}
	assert_int_equal(done, 0); /* none is answered before the disk has it */
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(done, ARRAY_LEN(w));
	closed(a);
	expect(AUDIT_VERIFIED, "");
}

static void test_killed(void **state)
{
	session(1, 3, true);
	expect(AUDIT_UNSEALED, "without a seal");
	session(4, 5, false);
	expect(AUDIT_UNSEALED, "1 sessions ended without a seal");

	struct audit *a = opened(0, 0);
	struct audit_report r = verified();
	assert_int_equal(r.open, 2);
	assert_int_equal(r.running, 1);
	closed(a);
}

static void test_torn(void **state)
{
	size_t n;
	char *text;
	FILE *f;

	session(1, 3, true);
	f = fopen(path_of("000001.jsonl"), "a");
	fputs("{\"seq\":5,\"prev\":\"torn", f);
	fclose(f);
	expect(AUDIT_UNSEALED, "");
	session(4, 4, false);
	expect(AUDIT_UNSEALED, "without a seal");
	text = slurp("000001.jsonl", &n);
	assert_non_null(strstr(text, "\"event\":\"cut\""));
	assert_non_null(strstr(text, "\"count\":21}"));
	free(text);
}

/* A writer that was killed between its line and the head. */
static void test_behind_the_head(void **state)
{
	size_t n, m;
	char *head, *text;

	session(1, 2, false);
	head = slurp("head", &n);
	session(3, 4, false);
	spill("head", head, n);
	free(head);
	session(5, 6, false);
	expect(AUDIT_VERIFIED, "");
	text = slurp("000001.jsonl", &m);
	assert_null(strstr(text, "\"event\":\"cut\""));
	assert_null(strstr(text, "\"event\":\"lost\""));
	free(text);
}

static void append(struct audit_log *l, unsigned i)
{
	struct audit_line line;
	struct err e = ERR_INIT;
	char id[40];
	struct audit_record r = call_of(i, id);

	if (audit_log_append(l, &r, true, &line, &e) < 0)
		fail_msg("%u: %s", i, e.msg);
}

static struct audit_log *log_opened(uint64_t file_bytes)
{
	const struct audit_limits limits = { file_bytes, 100, 0 };
	struct err e = ERR_INIT;
	struct audit_log *l = audit_log_open(dir, &limits, &e);

	if (!l)
		fail_msg("open: %s", e.msg);
	return l;
}

static size_t files_of(void)
{
	unsigned *files;
	int folder = open(dir, O_RDONLY | O_DIRECTORY);
	struct err e;
	ssize_t n = audit_files(folder, &files, &e);

	free(files);
	close(folder);
	return n < 0 ? 0 : (size_t)n; /* the folder is not there yet */
}

/* It would be in the log for ever. */
static void expect_no_loss(size_t k)
{
	size_t n;
	char *text = slurp("000001.jsonl", &n);

	if (strstr(text, "\"event\":\"lost\"") || strstr(text, "\"event\":\"cut\""))
		fail_msg("torn at %zu", k);
	free(text);
}

/* The head was written in part, up to each byte, behind a record. */
static void test_torn_head(void **state)
{
	for (size_t k = 0, bytes = 1; k <= bytes; k++) {
		struct audit_log *l = log_opened(0);
		char *before, *after;
		size_t m, n;

		append(l, 1);
		before = slurp("head", &m);
		append(l, 2);
		after = slurp("head", &n);
		assert_int_equal(m, n);
		audit_log_close(l);
		memcpy(after + k, before + k, n - k);
		spill("head", after, n);
		bytes = n;
		free(before);
		free(after);
		l = log_opened(0);
		append(l, 3);
		audit_log_close(l);
		expect_no_loss(k);
	}
	expect(AUDIT_VERIFIED, "");
}

/* Likewise when the first copy is put behind the line of an older Holt, which writes lines alone,
 * also later. */
static void test_head_of_an_older_one(void **state)
{
	for (size_t k = AUDIT_HEAD_BYTES, bytes = k; k <= bytes; k++) {
		struct audit_log *l = log_opened(0);
		char *before, *after;
		size_t n;

		append(l, 1);
		before = slurp("head", &bytes);
		append(l, 2);
		spill("head", before, k);
		append(l, 3);
		free(before);
		before = slurp("head", &n);
		append(l, 4);
		after = slurp("head", &n);
		memcpy(before, after, AUDIT_HEAD_BYTES);
		spill("head", before, n);
		append(l, 5);
		audit_log_close(l);
		free(before);
		free(after);
		expect_no_loss(k);
	}
	expect(AUDIT_VERIFIED, "");
}

/* A writer that ended with the first head, or between a next file and its head. */
static void test_torn_beginnings(void **state)
{
	struct audit_head first = { .file = 1 };
	char head[AUDIT_HEAD_BYTES + 1];
	struct audit_log *l;

	memset(first.hash, '0', sizeof(first.hash) - 1);
	audit_head_write(&first, head);
	for (size_t k = 0; k <= AUDIT_HEAD_BYTES; k++) {
		l = log_opened(0);
		spill("000001.jsonl", "", 0);
		spill("head", head, k);
		append(l, 1);
		audit_log_close(l);
		expect_no_loss(k);
		expect(AUDIT_VERIFIED, "");
		unlink(path_of("000001.jsonl"));
		unlink(path_of("head"));
	}
	l = log_opened(3000);
	append(l, 1);
	spill("000002.jsonl", "", 0);
	for (unsigned i = 2; files_of() < 3; i++)
		append(l, i);
	audit_log_close(l);
	expect(AUDIT_VERIFIED, "");
}

/* ---- tampering ----------------------------------------------------------------------------- */

enum { SEALED = 1 << 0, AFTER = 1 << 1 };

static void cut_at(const char *name, unsigned line, size_t more)
{
	size_t n;
	char *text = slurp(name, &n);

	spill(name, text, line_at(text, line) + more);
	free(text);
}

static void do_flip(void)
{
	size_t n;
	char *text = slurp("000001.jsonl", &n), *at = strstr(text, "\"bytes\":345");

	at[8] = '9';
	spill("000001.jsonl", text, n);
	free(text);
}

static void do_last(void)
{
	size_t n;
	char *text = slurp("000001.jsonl", &n), *at = memrchr(text, '2', n - 2);

	*at = '3';
	spill("000001.jsonl", text, n);
	free(text);
}

static void do_swap(void)
{
	size_t n, a, b, c;
	char *text = slurp("000001.jsonl", &n), *swapped = malloc(n);

	a = line_at(text, 2), b = line_at(text, 3), c = line_at(text, 4);
	memcpy(swapped, text, n);
	memcpy(swapped + a, text + b, c - b);
	memcpy(swapped + a + c - b, text + a, b - a);
	spill("000001.jsonl", swapped, n);
	free(swapped);
	free(text);
}

static void do_remove_line(void)
{
	size_t n, a, b;
	char *text = slurp("000001.jsonl", &n);

	a = line_at(text, 2), b = line_at(text, 3);
	memmove(text + a, text + b, n - b);
	spill("000001.jsonl", text, n - (b - a));
	free(text);
}

static void do_repeat(void)
{
	size_t n, a, b;
	char *text = slurp("000001.jsonl", &n), *more;

	a = line_at(text, 2), b = line_at(text, 3);
	more = malloc(n + b - a);
	memcpy(more, text, b);
	memcpy(more + b, text + a, n - a);
	spill("000001.jsonl", more, n + b - a);
	free(more);
	free(text);
}

static void do_cut_line(void)
{
	cut_at("000001.jsonl", 3, 0);
}

static void do_cut_in_line(void)
{
	cut_at("000001.jsonl", 3, 10);
}

static void do_cut_all(void)
{
	cut_at("000001.jsonl", 0, 0);
}

static void do_remove_file(void)
{
	unlink(path_of("000001.jsonl"));
}

static void do_remove_head(void)
{
	unlink(path_of("head"));
}

static void do_garbage(void)
{
	spill("000001.jsonl", "not a record\n", 13);
}

/* All again by who has another key, with the old public key in its place. */
static void do_resign(void)
{
	size_t n;
	char *public = slurp("key.pub", &n);

	test_remove_folder(dir);
	session(1, 3, false);
	spill("key.pub", public, n);
	free(public);
}

/* The beginning of a session as if nobody had signed it. */
static void do_unsign(void)
{
	size_t n;
	char *text = slurp("000001.jsonl", &n), *at = strstr(text, ",\"key\""),
	     *end = strchr(at, '}');

	memmove(at, end, n - (size_t)(end - text));
	spill("000001.jsonl", text, n - (size_t)(end - at));
	free(text);
}

static const struct tamper {
	const char *name;
	void (*act)(void);
	enum audit_verdict verdict;
} tampers[] = {
	{ "a changed record", do_flip, AUDIT_MISMATCH },
	{ "a changed last record", do_last, AUDIT_MISMATCH },
	{ "two records in each other's place", do_swap, AUDIT_MISMATCH },
	{ "a record removed", do_remove_line, AUDIT_MISMATCH },
	{ "a record twice", do_repeat, AUDIT_MISMATCH },
	{ "cut at a line's end", do_cut_line, AUDIT_MISMATCH },
	{ "cut in a line", do_cut_in_line, AUDIT_MISMATCH },
	{ "nothing left", do_cut_all, AUDIT_MISMATCH },
	{ "the file removed", do_remove_file, AUDIT_MISMATCH },
	{ "the head removed", do_remove_head, AUDIT_MISMATCH },
	{ "other content", do_garbage, AUDIT_MISMATCH },
	{ "signed with another key", do_resign, AUDIT_MISMATCH },
	{ "a signature removed", do_unsign, AUDIT_MISMATCH },
};

/* Each, of a sealed log and of one whose hub was killed; and it is still told once the next hub
 * has gone on with the log. */
static void test_tampering(void **state)
{
	for (unsigned i = 0; i < 4 * ARRAY_LEN(tampers); i++) {
		const struct tamper *t = &tampers[i / 4];
		struct audit_report r;

		session(1, 3, i & SEALED ? false : true);
		r = verified();
		ROW_CHECK(r.verdict == (i & SEALED ? AUDIT_VERIFIED : AUDIT_UNSEALED), t->name);
		t->act();
		r = verified();
		ROW_CHECK(r.verdict == t->verdict, t->name);
		if (i & AFTER && t->act != do_resign) {
			session(4, 5, false);
			r = verified();
			ROW_CHECK(r.verdict == t->verdict, t->name);
		}
		test_remove_folder(dir);
	}
}

/* ---- files --------------------------------------------------------------------------------- */

static void rotated(unsigned keep)
{
	struct audit *a = opened(2000, keep);
	struct audit_wait w = { .synced = false };

	for (unsigned i = 1; i <= 30; i++)
		add(a, i, &w);
	closed(a);
}

static void test_rotation(void **state)
{
	struct audit_report r;
	struct audit_public p;
	struct err e;
	size_t n;
	int fd;

	rotated(100);
	n = files_of();
	assert_true(n > 5);
	r = verified();
	assert_int_equal(r.verdict, AUDIT_VERIFIED);
	assert_int_equal(r.calls, 30);
	/* One file alone verifies, too. */
	assert_int_equal(audit_public_open(AT_FDCWD, path_of("key.pub"), &p, &e), 0);
	fd = open(path_of("000003.jsonl"), O_RDONLY);
	audit_verify_file(fd, &p, &r);
	close(fd);
	assert_int_equal(r.verdict, AUDIT_VERIFIED);
	/* A file from the middle, the first, the last. */
	assert_int_equal(rename(path_of("000003.jsonl"), root), -1);
	unlink(path_of("000003.jsonl"));
	expect(AUDIT_MISMATCH, "missing or out of order");
	test_remove_folder(dir);
	rotated(100);
	unlink(path_of("000001.jsonl"));
	expect(AUDIT_MISMATCH, "no retention removed them");
	test_remove_folder(dir);
	rotated(100);
	char last[AUDIT_FILE_NAME];
	audit_file_name((unsigned)files_of(), last);
	unlink(path_of(last));
	expect(AUDIT_MISMATCH, "was written last");
	session(31, 32, false);
	expect(AUDIT_MISMATCH, "");
}

static void test_retention(void **state)
{
	rotated(3);
	assert_int_equal(files_of(), 3);
	expect(AUDIT_VERIFIED, "");
	/* More than retention removed. */
	unsigned *files;
	int folder = open(dir, O_RDONLY | O_DIRECTORY);
	char name[AUDIT_FILE_NAME];
	struct err e;
	assert_true(audit_files(folder, &files, &e) > 0);
	audit_file_name(files[0], name);
	unlink(path_of(name));
	free(files);
	close(folder);
	expect(AUDIT_MISMATCH, "no retention removed them");
}

/* A power cut: the newest file is there and empty, the head is from before it. */
static void test_old_head(void **state)
{
	for (unsigned newest = 2; newest <= 4; newest++) {
		struct audit *a = opened(3000, 100);
		struct audit_wait w = { .synced = false };
		char name[AUDIT_FILE_NAME];
		char *head, *text;
		size_t n;

		add(a, 1, &w);
		head = slurp("head", &n);
		for (unsigned i = 2; files_of() < newest; i++)
			add(a, i, &w);
		closed(a);
		spill("head", head, n);
		free(head);
		audit_file_name(newest, name);
		spill(name, "", 0);
		session(101, 102, false);
		expect(AUDIT_UNSEALED, "1 sessions ended without a seal");
		text = slurp(name, &n);
		assert_null(strstr(text, "\"event\":\"lost\""));
		free(text);
		test_remove_folder(dir);
	}
}

/* A program without a hub keeps the files that the hub is to keep. */
static void test_retention_of_one(void **state)
{
	const struct audit_limits many = { 3000, 100, 0 }, few = { 3000, 3, 0 };
	char id[40];
	struct audit_record r = call_of(1, id);
	struct err e;

	for (unsigned i = 0; files_of() < 70 && i < 1000; i++)
		assert_int_equal(audit_add_one(dir, &many, &r, &e), 0);
	assert_int_equal(files_of(), 70);
	expect(AUDIT_VERIFIED, "");
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(audit_add_one(dir, &few, &r, &e), 0);
	assert_int_equal(files_of(), 3);
	expect(AUDIT_VERIFIED, "");
}

/* ---- receipts ------------------------------------------------------------------------------ */

static void test_receipts(void **state)
{
	struct audit *a = opened(0, 0);
	struct audit_wait w = { .synced = true, .receipt = true };
	struct audit_line line, receipt;
	struct audit_public p;
	struct audit_report r;
	struct err e;
	int folder;

	add(a, 7, &w);
	uv_run(&loop, UV_RUN_DEFAULT);
	closed(a);
	folder = open(dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(audit_public_open(folder, "key.pub", &p, &e), 0);
	receipt = w.line;
	assert_true(receipt.n < 1024 && strstr(receipt.text, "\"sig\":\""));
	audit_verify_receipt(str_of(receipt.text), -1, &p, &r);
	assert_int_equal(r.verdict, AUDIT_VERIFIED);
	audit_verify_receipt(str_of(receipt.text), folder, &p, &r);
	assert_int_equal(r.verdict, AUDIT_VERIFIED);
	assert_int_equal(
		audit_find(folder, STR_LIT("run_00000000000000000000000000000007"), &line, &e), 1);
	assert_int_equal(
		audit_find(folder, STR_LIT("run_00000000000000000000000000000008"), &line, &e), 0);
	/* Spaces do not matter, content does. */
	char spaced[1100];
	snprintf(spaced, sizeof(spaced), " {\n %s \n", receipt.text + 1);
	audit_verify_receipt(str_of(spaced), folder, &p, &r);
	assert_int_equal(r.verdict, AUDIT_VERIFIED);
	strstr(receipt.text, "\"ms\":12")[6] = '3';
	audit_verify_receipt(str_of(receipt.text), -1, &p, &r);
	assert_int_equal(r.verdict, AUDIT_MISMATCH);
	/* The log without this record is not the log. */
	cut_at("000001.jsonl", 1, 0);
	audit_verify_receipt(str_of(w.line.text), folder, &p, &r);
	assert_int_equal(r.verdict, AUDIT_MISMATCH);
	audit_verify_receipt(STR_LIT("{}"), -1, &p, &r);
	assert_int_equal(r.verdict, AUDIT_MISMATCH);
	close(folder);
}

/* Programs without a hub and several hubs write one chain. */
static void test_shared(void **state)
{
	char id[40];
	struct audit_record r = call_of(1, id);
	const struct audit_limits limits = { .files = 0 };
	struct audit *a = opened(3000, 0), *b = opened(3000, 0);
	struct audit_wait w = { .synced = false };
	struct err e;
	pid_t child[3];
	int status;

	for (unsigned i = 0; i < ARRAY_LEN(child); i++) {
		child[i] = fork();
		if (child[i] == 0) {
			for (unsigned k = 0; k < 50; k++) {
				if (audit_add_one(dir, &limits, &r, &e) < 0)
					_exit(1);
			}
			_exit(0);
		}
	}
	for (unsigned i = 0; i < 50; i++) {
		add(a, i, &w);
		add(b, i, &w);
	}
	for (unsigned i = 0; i < ARRAY_LEN(child); i++) {
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(audit_check_one(dir, &e), 0);
	closed(a);
	closed(b);
	struct audit_report got = verified();
	assert_string_equal(got.why, "");
	assert_int_equal(got.calls, 250);
}

static void on_awake(uv_timer_t *t)
{
}

/* While the file can't be written, what ran is kept in memory and the next are refused; both are
 * told once it can. */
static void test_no_room(void **state)
{
	struct audit *a = opened(0, 0);
	struct audit_wait w = { .synced = true, .receipt = true };
	struct audit_status s;
	struct rlimit was, none;
	uv_timer_t awake;
	struct err e;
	char *text;
	size_t n;

	assert_int_equal(audit_check(a, false, &e), 0);
	add(a, 1, &w);
	uv_run(&loop, UV_RUN_DEFAULT);
	free(slurp("000001.jsonl", &n));
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	none = was;
	none.rlim_cur = n + 10;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	done = 0;
	add(a, 2, &w);
	add(a, 3, &w);
	assert_int_equal(done, 2); /* nobody waits for what may take long */
	assert_int_equal(w.line.n, 0);
	audit_status(a, &s);
	assert_true(s.failing && s.kept == 2);
	assert_int_equal(audit_check(a, false, &e), -1);
	assert_int_equal(audit_check(a, true, &e), -1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	uv_timer_init(&loop, &awake); /* the log's own timer keeps no loop alive */
	uv_timer_start(&awake, on_awake, 10, 10);
	while (s.failing) {
		uv_run(&loop, UV_RUN_ONCE);
		audit_status(a, &s);
	}
	uv_close((uv_handle_t *)&awake, NULL);
	assert_int_equal(s.kept, 0);
	assert_int_equal(audit_check(a, false, &e), 0);
	closed(a);
	expect(AUDIT_VERIFIED, "");
	text = slurp("000001.jsonl", &n);
	assert_non_null(strstr(text, "\"event\":\"gap\""));
	assert_non_null(strstr(text, "\"count\":2"));
	assert_int_equal(verified().calls, 3);
	free(text);
}

/* Keys that others may read, or that are none, are not used. */
static void test_keys(void **state)
{
	struct err e;
	static const struct audit_limits none = { .files = 0 };

	session(1, 1, false);
	assert_int_equal(chmod(path_of("key"), 0640), 0);
	assert_null(audit_log_open(dir, &none, &e));
	assert_int_equal(e.code, ERR_DENIED);
	assert_null(strstr(e.msg, root));
	assert_int_equal(chmod(path_of("key"), 0600), 0);
	spill("key", "short\n", 6);
	assert_null(audit_log_open(dir, &none, &e));
	assert_int_equal(e.code, ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_is_written_verifies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_longest_line, setup, teardown),
		cmocka_unit_test_setup_teardown(test_group, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_torn, setup, teardown),
		cmocka_unit_test_setup_teardown(test_behind_the_head, setup, teardown),
		cmocka_unit_test_setup_teardown(test_torn_head, setup, teardown),
		cmocka_unit_test_setup_teardown(test_head_of_an_older_one, setup, teardown),
		cmocka_unit_test_setup_teardown(test_torn_beginnings, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tampering, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rotation, setup, teardown),
		cmocka_unit_test_setup_teardown(test_retention, setup, teardown),
		cmocka_unit_test_setup_teardown(test_retention_of_one, setup, teardown),
		cmocka_unit_test_setup_teardown(test_old_head, setup, teardown),
		cmocka_unit_test_setup_teardown(test_receipts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shared, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keys, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
