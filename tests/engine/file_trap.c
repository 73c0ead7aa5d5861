/* Paths that a hostile sandbox has prepared: links, special files, the kernel's own file
 * systems. What they lead to is told by an error; nothing hangs, and nothing outside is met. */
#include "engine.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

static enum err_code read_code(struct sandbox *sb, const char *path)
{
	return filed_code(get_start(sb, path, 0, 4096));
}

static enum err_code write_code(struct sandbox *sb, const char *path)
{
	return filed_code(put_start(sb, path, STR_LIT("written"), NULL));
}

/* ---- links ----------------------------------------------------------------------------------- */

static void test_links(void **state)
{
	struct sandbox *sb = make(NULL);

	sh(sb,
	   "mkdir d; echo real > d/f; ln -s d/f to_file; ln -s d to_dir; ln -s /workspace/d/f abs;"
	   "ln -s d/new dangling; ln -s loop loop; ln -s a b; ln -s b a; ln -s to_file chain");
	assert_string_equal(get(sb, "to_file"), "real\n");
	assert_string_equal(get(sb, "to_dir/f"), "real\n");
	assert_string_equal(get(sb, "chain"), "real\n");
	assert_int_equal(read_code(sb, "dangling"), ERR_PATH_NOT_FOUND);
	assert_int_equal(read_code(sb, "loop"), ERR_INVALID);
	assert_int_equal(read_code(sb, "a"), ERR_INVALID);
	assert_int_equal(read_code(sb, "to_dir"), ERR_NOT_A_FILE);

	/* a write goes to what the link leads to, and leaves the link */
	put(sb, "chain", "1");
	assert_string_equal(sh(sb, "readlink to_file; cat d/f"), "d/f\n1");
	put(sb, "abs", "2");
	assert_string_equal(sh(sb, "readlink abs; cat d/f"), "/workspace/d/f\n2");
	put(sb, "dangling", "3");
	assert_string_equal(sh(sb, "readlink dangling; cat d/new"), "d/new\n3");
	put(sb, "to_dir/g", "4");
	assert_string_equal(sh(sb, "cat d/g"), "4");
	assert_int_equal(write_code(sb, "loop"), ERR_INVALID);
	assert_int_equal(write_code(sb, "a"), ERR_INVALID);
	assert_int_equal(write_code(sb, "to_dir"), ERR_NOT_A_FILE);
	assert_string_equal(sh(sb, "readlink to_dir"), "d");
	assert_int_equal(filed_code(list_start(sb, "loop")), ERR_INVALID);
	assert_int_equal(filed(list_start(sb, "to_dir"))->n, 3);
}

/* A link out of the sandbox is a link within it: there is no host to lead to. */
static void test_links_out(void **state)
{
	const char *dir = host_dir();
	struct sandbox *sb = make(NULL);
	char path[100], line[1000];

	snprintf(path, sizeof(path), "%s/secret", dir);
	host_file(path, "secret", 0666);
	snprintf(line, sizeof(line),
		 "ln -s %s s; ln -s ../../../../../../../../..%s r; ln -s /proc/1/root%s p;"
		 "ln -s /proc/self/cwd/../..%s c",
		 path, path, path, path);
	sh(sb, line);
	assert_int_equal(read_code(sb, "s"), ERR_PATH_NOT_FOUND);
	assert_int_equal(read_code(sb, "r"), ERR_PATH_NOT_FOUND);
	assert_int_not_equal(read_code(sb, "p"), 0);
	assert_int_not_equal(read_code(sb, "c"), 0);
	assert_int_not_equal(write_code(sb, "s"), 0);
	assert_int_not_equal(write_code(sb, "r"), 0);
	assert_int_not_equal(write_code(sb, "p"), 0);
	snprintf(line, sizeof(line), "cat %s", path);
	assert_int_equal(sh_code(sb, line), 1);
}

static void test_dots(void **state)
{
	struct sandbox *sb = make(NULL);

	sh(sb, "mkdir d; echo f > f");
	assert_string_equal(get(sb, "d/../f"), "f\n");
	assert_string_equal(get(sb, "./././f"), "f\n");
	assert_string_equal(get(sb, "/workspace/../../../../workspace/f"), "f\n");
	put(sb, "d/../g", "g");
	assert_string_equal(sh(sb, "cat g"), "g");
	assert_int_equal(write_code(sb, "d/.."), ERR_NOT_A_FILE);
	assert_int_equal(write_code(sb, "."), ERR_NOT_A_FILE);
	assert_int_equal(write_code(sb, ".."), ERR_NOT_A_FILE);
	assert_int_equal(write_code(sb, "d/"), ERR_NOT_A_FILE);
	assert_int_equal(write_code(sb, "new/"), ERR_NOT_A_FILE);
	assert_int_equal(write_code(sb, "/"), ERR_NOT_A_FILE);
	assert_int_equal(read_code(sb, "/"), ERR_NOT_A_FILE);
	assert_int_not_equal(read_code(sb, "f/"), 0);
	assert_int_not_equal(read_code(sb, "f/."), 0);
	assert_int_equal(filed_code(remove_start(sb, "d/.", false)), ERR_INVALID);
	assert_int_equal(filed_code(remove_start(sb, "d/./", true)), ERR_INVALID);
	assert_int_equal(filed_code(remove_start(sb, "d/..", true)), ERR_INVALID);
	assert_int_equal(filed_code(remove_start(sb, "..", true)), ERR_INVALID);
	assert_int_equal(filed_code(remove_start(sb, "//", true)), ERR_INVALID);
	assert_string_equal(sh(sb, "cat f"), "f");
}

/* A link that turns between two targets while it is used: each answer fits one of the two. */
static void test_turning_link(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r;

	sh(sb, "mkdir in; echo good > in/f; echo good > f");
	r = ran_shell(sb, "while ! test -e stop; do ln -sfn in d; ln -sfn /proc/self d; "
			  "ln -sfn /usr/lib d; mv -T d e; ln -sfn in d; done");
	for (int i = 0; i < 300; i++) {
		struct filed *f = filed(get_start(sb, "d/f", 0, 100));

		if (!f->err.code)
			assert_string_equal(f->bytes.p, "good\n");
		f = filed(put_start(sb, "d/f", STR_LIT("good\n"), NULL));
		f = filed(get_start(sb, "d/environ", 0, 100));
		assert_int_not_equal(f->err.code, 0);
	}
	put(sb, "stop", "");
	ran_wait(r);
	assert_string_equal(sh(sb, "cat in/f f"), "good\ngood");
}

/* ---- special files --------------------------------------------------------------------------- */

static void test_special(void **state)
{
	const char *const rows[] = { "fifo",	   "socket",	"link",	    "dir",
				     "/dev/null",  "/dev/zero", "/dev/tty", "/dev/full",
				     "/dev/stdin", "/dev/fd/0" };
	struct sandbox *sb = make(NULL);

	sh(sb, "mkfifo fifo; ln -s fifo link; mkdir dir");
	if (has_python(sb))
		sh(sb,
		   "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'");
	else
		sh(sb, "mkfifo socket");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ROW_CHECK(read_code(sb, rows[i]) == ERR_NOT_A_FILE, rows[i]);
		ROW_CHECK(write_code(sb, rows[i]) == ERR_NOT_A_FILE, rows[i]);
	}
	assert_int_equal(filed_code(list_start(sb, "fifo")), ERR_NOT_A_FILE);
	assert_int_equal(filed_code(list_start(sb, "/dev/null")), ERR_NOT_A_FILE);
	assert_string_equal(sh(sb, "test -p fifo -a -S socket -o -p socket && echo same"), "same");
}

/* Of the kernel's file systems nothing is read through PID 1, whose view is wider. */
static void test_kernel_files(void **state)
{
	const char *const rows[] = {
		"/proc/self/mem",
		"/proc/self/environ",
		"/proc/self/maps",
		"/proc/1/environ",
		"/proc/1/mem",
		"/proc/1/maps",
		"/proc/self/fd/3",
		"/proc/self/fd/4",
		"/proc/self/fd/0",
		"/proc/thread-self/mem",
		"/proc/version",
		"/proc/cmdline",
		"/proc/self/cmdline",
		"/proc/self/task/1/environ",
		"/proc/sys/kernel/hostname",
		"/proc/self/attr/current",
		"/proc/self/oom_score_adj",
		"mem",
		"fd3",
	};
	struct sandbox *sb = make(NULL);

	sh(sb, "ln -s /proc/self/mem mem; ln -s /proc/self/fd/3 fd3");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ROW_CHECK(read_code(sb, rows[i]) != 0, rows[i]);
		ROW_CHECK(write_code(sb, rows[i]) != 0, rows[i]);
	}
	assert_int_equal(read_code(sb, "/proc/self/mem"), ERR_NOT_A_FILE);
	assert_int_equal(read_code(sb, "/proc/version"), ERR_NOT_A_FILE);
	assert_int_equal(filed_code(list_start(sb, "/proc")), ERR_NOT_A_FILE);
	assert_int_equal(filed_code(list_start(sb, "/proc/self/fd")), ERR_NOT_A_FILE);
	assert_int_equal(filed_code(list_start(sb, "/proc/1")), ERR_NOT_A_FILE);
	assert_int_not_equal(filed_code(remove_start(sb, "/proc/self", true)), 0);
	assert_int_not_equal(filed_code(mkdir_start(sb, "/proc/x", true)), 0);
	assert_int_not_equal(filed_code(move_start(sb, "/proc/version", "v")), 0);
	assert_string_equal(sh(sb, "echo well"), "well");
}

/* The root of PID 1, by its own name, is the sandbox's root and nothing above. */
static void test_roots_by_proc(void **state)
{
	struct sandbox *sb = make(NULL);

	put(sb, "f", "mine");
	assert_string_equal(get(sb, "/proc/self/root/workspace/f"), "mine");
	assert_string_equal(get(sb, "/proc/self/cwd/workspace/f"), "mine");
	assert_string_equal(get(sb, "/proc/1/root/../../workspace/f"), "mine");
	assert_int_equal(read_code(sb, "/proc/self/root/../r/workspace/f"), ERR_PATH_NOT_FOUND);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void test_names(void **state)
{
	static const char *const odd[] = { " ", "\n",	"-rf",	    "a'b\"c",	   "\\",
					   "*", "\x01", "\xff\xfe", ".holt-1.tmp", "%s%n" };
	struct sandbox *sb = make(NULL);

	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		put(sb, odd[i], odd[i]);
		ROW_CHECK(strcmp(get(sb, odd[i]), odd[i]) == 0, odd[i]);
	}
	assert_int_equal(filed(list_start(sb, "."))->n, ARRAY_LEN(odd));
}

static void test_bad_paths(void **state)
{
	static char name255[256], name256[257], long4095[4096], long4096[4097];
	struct sandbox *sb = make(NULL);

	memset(name255, 'n', 255);
	memset(name256, 'n', 256);
	for (size_t i = 0; i < 4095; i++)
		long4095[i] = i % 100 ? 'd' : '/';
	long4095[4094] = 'd';
	memset(long4096, '/', 4096);

	put(sb, name255, "longest");
	assert_string_equal(get(sb, name255), "longest");
	assert_int_equal(write_code(sb, name256), ERR_INVALID);
	assert_int_equal(read_code(sb, name256), ERR_INVALID);
	assert_int_equal(read_code(sb, long4095), ERR_PATH_NOT_FOUND);
	assert_int_equal(read_code(sb, long4096), ERR_INVALID);
	assert_int_equal(write_code(sb, long4096), ERR_INVALID);
	assert_int_equal(read_code(sb, long4095 + 1), ERR_INVALID); /* too long with the cwd */
	assert_int_equal(read_code(sb, ""), ERR_INVALID);
	assert_int_equal(write_code(sb, ""), ERR_INVALID);
	assert_int_equal(filed_code(move_start(sb, "", "a")), ERR_INVALID);
	assert_int_equal(filed_code(move_start(sb, name255, "")), ERR_INVALID);
	assert_int_equal(filed_code(mkdir_start(sb, "", true)), ERR_INVALID);
	assert_int_equal(filed_code(remove_start(sb, "", true)), ERR_INVALID);
	assert_int_equal(filed_code(list_start(sb, "")), ERR_INVALID);
}

static void on_read_end(void *arg, struct str bytes, const struct file_stat *st,
			const struct err *err)
{
	struct filed *f = arg;

	f->err = err ? *err : ERR_INIT;
	f->done = true;
}

static void test_nul(void **state)
{
	struct sandbox *sb = make(NULL);
	struct filed *f = get_start(sb, "x", 0, 1);

	filed(f);
	f->done = false;
	put(sb, "f", "x");
	file_read_start(sb, (struct str){ "f\0g", 3 }, 0, 1, on_read_end, f);
	assert_int_equal(filed_code(f), ERR_INVALID);
}

/* The longest path that can be: made inside by steps, reached from outside by steps only. */
static void test_deep(void **state)
{
	struct sandbox *sb = make(NULL);

	if (!has_python(sb))
		return;
	sh(sb, "python3 -c '\nimport os\nfor i in range(1500):\n os.mkdir(\"d\"*20)\n"
	       " os.chdir(\"d\"*20)\n'");
	assert_int_equal(filed_code(stat_start(sb, "dddddddddddddddddddd")), 0);
	assert_int_equal(filed_code(remove_start(sb, "dddddddddddddddddddd", true)), 0);
	assert_string_equal(sh(sb, "ls -A"), "");
}

/* ---- what a program does to our temporary files ---------------------------------------------- */

static void test_taken_names(void **state)
{
	struct sandbox *sb = make(NULL);

	sh(sb, "for i in $(seq 60); do ln -s stolen .holt-$i.tmp; ln -s stolen .holt-$i.new; done");
	put(sb, "f", "well");
	assert_string_equal(get(sb, "f"), "well");
	assert_string_equal(sh(sb, "test -e stolen || echo not"), "not");
}

/* A program that removes or replaces the temporary file spoils its own file only. */
static void test_raced_temporary(void **state)
{
	struct sandbox *sb = make(NULL);
	struct str bytes = pattern(300000);
	struct ran *r;

	r = ran_shell(sb, "while ! test -e stop; do for t in .holt-*; do ln -sf /etc/passwd $t; "
			  "rm -f $t; done; done 2>/dev/null");
	for (int i = 0; i < 100; i++)
		filed(put_start(sb, "f", bytes, NULL));
	sh(sb, "touch stop");
	ran_wait(r);
	sh(sb, "rm -f f"); /* which may be its link by now */
	put(sb, "f", "well");
	assert_string_equal(get(sb, "f"), "well");
	assert_string_equal(sh(sb, "ls -A | tr '\\n' ' '"), "f stop ");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		engine_test(test_links),
		engine_test(test_links_out),
		engine_test(test_dots),
		engine_test(test_turning_link),
		engine_test(test_special),
		engine_test(test_kernel_files),
		engine_test(test_roots_by_proc),
		engine_test(test_names),
		engine_test(test_bad_paths),
		engine_test(test_nul),
		engine_test(test_deep),
		engine_test(test_taken_names),
		engine_test(test_raced_temporary),
	};

	return ENGINE_MAIN(argc, argv, "file_trap", tests);
}
