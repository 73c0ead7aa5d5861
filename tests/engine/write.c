/* What a sandbox has changed, as the warden writes it: names, and an archive that is read by
 * box/archive/tar.h. */
#include "engine.h"
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "box/archive/tar.h"

struct wrote {
	bool done;
	struct err err;
};

static void on_written(void *arg, struct sandbox *sb, const struct err *err)
{
	struct wrote *w = arg;

	w->done = true;
	if (err)
		w->err = *err;
}

/* Into a file, which nobody has to read meanwhile. */
static struct err write_to(struct sandbox *sb, enum sandbox_write what, int file)
{
	struct wrote w = { .err = ERR_INIT };

	sandbox_write_start(sb, what, fcntl(file, F_DUPFD_CLOEXEC, 0), on_written, &w);
	assert_false(w.done);
	wait_for(&w.done, "what was changed");
	return w.err;
}

static struct buf written(struct sandbox *sb, enum sandbox_write what)
{
	autoclose int file = memfd_create("written", MFD_CLOEXEC);
	struct buf b = BUF_INIT(256 << 20);
	struct err e = write_to(sb, what, file);
	off_t n = lseek(file, 0, SEEK_END);
	char *at;

	assert_int_equal(e.code, ERR_NONE);
	at = buf_reserve(&b, (size_t)n + 1, &e);
	assert_non_null(at);
	assert_int_equal(pread(file, at, (size_t)n, 0), n);
	buf_advance(&b, (size_t)n);
	return b;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "A f /path" in lines, sorted. */
static void assert_names(struct sandbox *sb, const char *expected)
{
	autobuf struct buf b = written(sb, SANDBOX_WRITE_NAMES), text = BUF_INIT(1 << 20);
	static char lines[256][4200], *sorted[256];
	struct err e = ERR_INIT;
	size_t n = 0;

	for (size_t at = 0; at < b.n; at += 2 + strlen(b.p + at + 2) + 1) {
		assert_true(n < 256);
		snprintf(lines[n], sizeof(lines[n]), "%c %c %s", "ACD"[(int)b.p[at]],
			 "fdlo"[(int)b.p[at + 1]], b.p + at + 2);
		sorted[n] = lines[n];
		n++;
	}
	qsort(sorted, n, sizeof(sorted[0]), by_text);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_addf(&text, &e, "%s\n", sorted[i]), 0);
	assert_string_equal(buf_str(&text).p, expected);
}

static void test_names(void **state)
{
	struct sandbox *sb = make(NULL);

	assert_names(sb, "");
	sh(sb, "mkdir d; echo x > d/f; ln -s f d/l; mkfifo d/p; echo x > /tmp/t; mkdir gone; "
	       "rmdir gone");
	assert_names(sb, "A d /workspace/d\nA f /tmp/t\nA f /workspace/d/f\nA l /workspace/d/l\n"
			 "A o /workspace/d/p\n");
	sh(fork_of(sb, 1)->children[0], "rm -r d");
	sh(sb, "rm -r d /tmp/t; echo y > y");
	assert_names(sb, "A f /workspace/y\n");
}

/* The entries as lines: type, mode, size, path, target. */
static struct buf listing(struct sandbox *sb)
{
	autobuf struct buf b = written(sb, SANDBOX_WRITE_TAR);
	static const char zeros[TAR_END_BYTES];
	struct buf text = BUF_INIT(16 << 20);
	struct tar_reader r;
	struct err e = ERR_INIT;
	const char *at;
	size_t n;

	assert_int_equal(buf_add(&b, zeros, sizeof(zeros), &e), 0);
	at = b.p;
	n = b.n;
	tar_reader_init(&r);
	for (;;) {
		enum tar_event ev = tar_read(&r, &at, &n);

		assert_int_not_equal(ev, TAR_BAD);
		assert_int_not_equal(ev, TAR_PASSED);
		if (ev == TAR_MORE)
			break;
		if (ev == TAR_ENTRY)
			assert_int_equal(buf_addf(&text, &e, "%c %o %llu %s%s%s\n",
						  "fdlh"[r.entry.type], r.entry.mode,
						  (unsigned long long)r.entry.size, r.entry.path,
						  *r.entry.link ? " -> " : "", r.entry.link),
					 0);
	}
	assert_int_equal(tar_reader_end(&r), TAR_FINE);
	return text;
}

static void assert_has(const struct buf *text, const char *line)
{
	if (!strstr(buf_str(text).p, line))
		fail_msg("no \"%s\" in:\n%s", line, buf_str(text).p);
}

static void test_archive(void **state)
{
	struct sandbox *sb = make(NULL);
	autobuf struct buf text = { .p = NULL };

	sh(sb, "umask 022; mkdir d; printf x > d/f; ln -s f d/l; ln d/f hard; mkfifo d/p; mkdir c; "
	       "printf in > c/in; chmod 500 c; printf no > .wh.d; truncate -s 3M holes");
	text = listing(sb);
	assert_has(&text, "d 755 0 workspace/d/\n");
	assert_has(&text, "l 777 0 workspace/d/l -> f\n");
	assert_has(&text, "f 644 3145728 workspace/holes\n");
	assert_has(&text, "d 700 0 workspace/c/\n"); /* what is in it can be made, */
	assert_has(&text, "d 500 0 workspace/c/\n"); /* then it is as it was */
	assert_true((strstr(text.p, "f 644 1 workspace/hard\n") != NULL) !=
		    (strstr(text.p, "f 644 1 workspace/d/f\n") != NULL));
	assert_true(strstr(text.p, "h 644 0 workspace/") != NULL);
	assert_null(strstr(text.p, "workspace/d/p"));
	assert_null(strstr(text.p, ".wh."));
	if (!rootless()) /* nothing of root's is in it */
		assert_null(strstr(text.p, "etc/"));
}

static void test_hostile(void **state)
{
	struct sandbox *sb = make(&(struct sandbox_spec){ .limits = { .disk = 64 * MIB } });
	autoclose int file = memfd_create("written", MFD_CLOEXEC);

	sh(sb, "truncate -s 1024G huge");
	assert_int_equal(write_to(sb, SANDBOX_WRITE_TAR, file).code, ERR_TOO_LARGE);
	sh(sb, "rm huge; n=$(head -c 250 /dev/zero | tr '\\0' n); i=0; while [ $i -lt 20 ]; do "
	       "mkdir $n && cd $n; i=$((i+1)); done; true");
	assert_int_equal(write_to(sb, SANDBOX_WRITE_TAR, file).code, ERR_TREE_DEEP);
	/* not by `rm -r`: busybox's wants paths that are short enough */
	sh(sb,
	   "n=$(echo nnn*); while [ -d $n/$n ]; do mv $n/$n m; rmdir $n; mv m $n; done; rmdir $n");
	assert_int_equal(write_to(sb, SANDBOX_WRITE_TAR, file).code, ERR_NONE);
}

/* What runs stands still and goes on; what is asked meanwhile waits. */
static void test_busy(void **state)
{
	struct sandbox *sb = make(NULL);
	autobuf struct buf text = { .p = NULL };

	sh(sb,
	   "head -c 20000000 /dev/zero > big; (while :; do echo x > f; done) > /dev/null 2>&1 &");
	text = listing(sb);
	assert_has(&text, "f 644 20000000 workspace/big\n");
	assert_string_equal(sh(sb, "rm f; while ! test -e f; do :; done; echo runs"), "runs");
}

static void test_ends_meanwhile(void **state)
{
	struct sandbox *sb = make(NULL);
	struct wrote w = { .err = ERR_INIT };
	int ends[2];

	sh(sb, "head -c 20000000 /dev/zero > big");
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	sandbox_write_start(sb, SANDBOX_WRITE_TAR, ends[1], on_written, &w);
	destroy(sb); /* nobody reads, so it can't be done */
	wait_for(&w.done, "the end of the writing");
	assert_int_not_equal(w.err.code, ERR_NONE);
	close(ends[0]);
}

static void test_nobody_reads(void **state)
{
	struct sandbox *sb = make(NULL);
	struct wrote w = { .err = ERR_INIT };
	int ends[2];

	sh(sb, "head -c 20000000 /dev/zero > big");
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	close(ends[0]);
	sandbox_write_start(sb, SANDBOX_WRITE_TAR, ends[1], on_written, &w);
	wait_for(&w.done, "the end of the writing");
	assert_int_equal(w.err.code, ERR_CANCELLED);
	assert_string_equal(sh(sb, "echo lives"), "lives");
}

/* The process that writes: the warden's child of the same name; 0: there is none. */
static pid_t writer_pid(void)
{
	pid_t pid;

	return children_of(warden_pid(), "holt-warden", &pid, 1) ? pid : 0;
}

/* The most memory that a process has had, in KiB; 0: it has ended. */
static long peak_of(pid_t pid)
{
	char path[64], line[256];
	long kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && kib == 0 && fgets(line, sizeof(line), f))
		sscanf(line, "VmHWM: %ld", &kib);
	if (f)
		fclose(f);
	return kib;
}

/* Files with two names, deep down: what is remembered of each is not its whole path. */
static void test_many_links(void **state)
{
	struct sandbox *sb = make(NULL);
	struct wrote w = { .err = ERR_INIT };
	static char bytes[65536];
	long peak = 0, now;
	pid_t writer = 0;
	ssize_t n = 1;
	int ends[2];

	if (!has_python(sb))
		return;
	put(sb, "deep.py",
	    "import os\n"
	    "for i in range(15): os.mkdir('d' * 250); os.chdir('d' * 250)\n"
	    "for i in range(4000): open(f'f{i}', 'w').close(); os.link(f'f{i}', f'g{i}')\n");
	sh(sb, "python3 deep.py");
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	sandbox_write_start(sb, SANDBOX_WRITE_TAR, ends[1], on_written, &w);
	while (n != 0) {
		/* to look through all processes each time would take longer than the writing */
		writer = writer ? writer : writer_pid();
		now = writer ? peak_of(writer) : 0;
		peak = now > peak ? now : peak;
		n = read(ends[0], bytes, sizeof(bytes));
		assert_true(n >= 0 || errno == EAGAIN);
		if (n < 0)
			wait_ms(1);
	}
	close(ends[0]);
	wait_for(&w.done, "the end of the writing");
	assert_int_equal(w.err.code, ERR_NONE);
	assert_in_range(peak, 1, 6 << 10); /* all of their paths would be 15 MiB */
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		engine_test(test_names),	  engine_test(test_archive),
		engine_test(test_hostile),	  engine_test(test_busy),
		engine_test(test_ends_meanwhile), engine_test(test_nobody_reads),
		engine_test(test_many_links),
	};

	return ENGINE_MAIN(argc, argv, "write", tests);
}
