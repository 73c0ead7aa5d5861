/* Trees of a sandbox's files as archives, in and out: what an honest client does, what a hostile
 * archive and a hostile tree try, and what is left when somebody goes away in the middle. */
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "box/archive/tar.h"

/* ---- transfers that are waited for ----------------------------------------------------------- */

struct moved {
	bool done;
	struct err err;
};

static void on_moved(void *arg, const struct err *err)
{
	struct moved *m = arg;

	m->done = true;
	m->err = err ? *err : ERR_INIT;
}

/* A file in memory; both ends of a transfer take a copy of the descriptor. */
static int new_file(void)
{
	int fd = memfd_create("archive", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static struct err archive_to(struct sandbox *sb, const char *path,
			     const struct file_archive_opts *o, int fd)
{
	struct moved m = { .done = false };

	file_archive_start(sb, str_of(path), o, fcntl(fd, F_DUPFD_CLOEXEC, 0), on_moved, &m);
	wait_for(&m.done, "the archive");
	return m.err;
}

static struct err upload_from(struct sandbox *sb, const char *path, bool changes, int fd)
{
	const struct file_upload_opts o = { .changes = changes };
	struct moved m = { .done = false };

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	file_upload_start(sb, str_of(path), &o, fcntl(fd, F_DUPFD_CLOEXEC, 0), on_moved, &m);
	wait_for(&m.done, "the upload");
	return m.err;
}

static const struct file_archive_opts all = { .n_leave_out = 0 };

static void must(struct err e)
{
	if (e.code)
		fail_msg("%s", e.msg);
}

static void add(int fd, struct tar_entry e, const char *content)
{
	static const char zeros[TAR_BLOCK];
	char head[TAR_HEAD_MAX];
	size_t n;

	e.link = e.link ? e.link : "";
	e.size = strlen(content);
	n = tar_head(&e, head);
	assert_true(n > 0);
	assert_int_equal(write(fd, head, n), n);
	assert_int_equal(write(fd, content, e.size), e.size);
	n = tar_padding(e.size);
	assert_int_equal(write(fd, zeros, n), n);
}

static void add_end(int fd)
{
	static const char zeros[TAR_END_BYTES];

	assert_int_equal(write(fd, zeros, sizeof(zeros)), sizeof(zeros));
}

/* All that is in t: kinds, modes, sizes, times, links, content. Sizes of directories are the
 * file system's own. */
#define LISTING                                                                                    \
	"cd t; find . -type d -printf '%P %y %m %T@\\n' | sort; find . ! -type d -printf '%P %y "  \
	"%m %s %n %l %T@\\n' | sort;"                                                              \
	"find . -type f -exec cksum {} + | sort -k3"

/* ---- honest ones ----------------------------------------------------------------------------- */

static void test_trip(void **state)
{
	autoclose int fd = new_file();
	struct sandbox *a = make(NULL), *b = make(NULL);

	sh(a, "mkdir -p t/d/e t/empty; cd t; echo hello > d/f; "
	      "head -c 300000 /dev/urandom > d/e/large; : > none;"
	      "ln -s ../nowhere l; ln -s d dir; ln d/f hard; chmod 750 d; chmod 444 d/f; "
	      "chmod 1777 empty;"
	      "n=$(printf %0200d 0); mkdir -p $n/$n; echo deep > $n/$n/f; ln -s $n/$n/$n/f long;"
	      "printf x > \"$(printf 'a\\nb\\377c')\"; touch -d @1000000000.5 d/f; chmod 555 d/e; "
	      "touch -d @5 d/e d");
	must(archive_to(a, "t", &all, fd));
	sh(b, "mkdir t; touch -d @0 t");
	must(upload_from(b, "t", false, fd));
	sh(a, "touch -d @7 t");
	sh(b, "touch -d @7 t");
	assert_string_equal(sh(b, LISTING), sh(a, LISTING));
	/* and once more over what is there */
	must(upload_from(b, "t", false, fd));
	sh(b, "touch -d @7 t");
	assert_string_equal(sh(b, LISTING), sh(a, LISTING));
}

static void test_one_file(void **state)
{
	autoclose int fd = new_file();
	struct sandbox *sb = make(NULL);

	sh(sb, "mkdir d; echo one > d/f; ln -s d/f l");
	must(archive_to(sb, "l", &all, fd)); /* what it leads to, by the name that was asked for */
	sh(sb, "mkdir u");
	must(upload_from(sb, "u", false, fd));
	assert_string_equal(sh(sb, "cd u; find . -type f; cat l"), "./l\none");
}

static void test_leave_out(void **state)
{
	const struct str names[] = { STR_LIT("usr"), STR_LIT("proc"), STR_LIT("dev"),
				     STR_LIT("sys"), STR_LIT("run"),  STR_LIT("tmp") };
	const struct file_archive_opts o = { names, ARRAY_LEN(names) };
	autoclose int fd = new_file();
	struct sandbox *sb = make(NULL);

	sh(sb, "echo here > f; mkdir -p d/usr; echo kept > d/usr/f; mkdir x");
	must(archive_to(sb, "/", &o, fd));
	must(upload_from(sb, "x", false, fd));
	assert_string_equal(
		sh(sb,
		   "cd x; ls -d usr proc dev tmp 2>/dev/null; cat workspace/f workspace/d/usr/f;"
		   "ls -d etc"),
		"here\nkept\netc");
}

/* What stands for a removed file in the difference to a layer below. */
static void test_changes(void **state)
{
	autoclose int fd = new_file();
	struct sandbox *sb = make(NULL);

	add(fd, (struct tar_entry){ TAR_FILE, .mode = 0644, .path = ".wh..wh.note" },
	    "for somebody else");
	add(fd, (struct tar_entry){ TAR_FILE, .path = "d/.wh.gone" }, "");
	add(fd, (struct tar_entry){ TAR_FILE, .path = "d/.wh.never" }, "");
	add(fd, (struct tar_entry){ TAR_FILE, .path = ".wh.tree" }, "");
	add(fd, (struct tar_entry){ TAR_FILE, .path = "o/.wh..wh..opq" }, "");
	add(fd, (struct tar_entry){ TAR_FILE, .mode = 0644, .path = "o/new" }, "new");
	add(fd, (struct tar_entry){ TAR_DIRECTORY, 0755, .path = "was_file" }, "");
	add(fd, (struct tar_entry){ TAR_FILE, .mode = 0644, .path = "was_dir" }, "file");
	add(fd, (struct tar_entry){ TAR_DIRECTORY, 0755, .path = "twice" }, "");
	add(fd, (struct tar_entry){ TAR_FILE, .mode = 0644, .path = "twice/f" }, "f");
	add(fd, (struct tar_entry){ TAR_DIRECTORY, 0500, .mtime = 9, .path = "twice" }, "");
	add(fd, (struct tar_entry){ TAR_DIRECTORY, 0700, .mtime = 11, .path = "." }, "");
	add_end(fd);
	sh(sb, "mkdir -p t; cd t; mkdir -p d tree/a/b o/old/er was_dir/sub twice; "
	       "touch d/gone d/kept tree/f tree/a/b/c "
	       "o/old/er/f was_file was_dir/sub/f; ln -s /etc/hostname o/link");
	must(upload_from(sb, "t", true, fd));
	assert_string_equal(sh(sb, "cd t; find . | sort | tr '\\n' ' '; stat -c '%a %Y' twice ."),
			    ". ./d ./d/kept ./o ./o/new ./twice ./twice/f ./was_dir ./was_file "
			    "500 9\n700 11");
	/* without the flag they are names */
	sh(sb, "chmod -R u+w t; rm -rf t; mkdir t; mkdir t/was_file");
	must(upload_from(sb, "t", false, fd));
	assert_string_equal(sh(sb, "cd t; ls -A d; cat .wh..wh.note; stat -c %a ."),
			    ".wh.gone\n.wh.never\nfor somebody else755");
}

/* ---- hostile archives ------------------------------------------------------------------------ */

static const struct {
	const char *name;
	struct tar_entry first, second; /* no path: there is none */
	enum err_code code;
	const char *after; /* prints nothing if all is well */
} hostile[] = {
	{ "up", { TAR_FILE, .path = "../out/x" }, { 0 }, ERR_PATH_DENIED, "ls out/x" },
	{ "up below", { TAR_FILE, .path = "a/../../out/x" }, { 0 }, ERR_PATH_DENIED, "ls out/x" },
	{ "absolute is below",
	  { TAR_FILE, .path = "/out/x" },
	  { 0 },
	  0,
	  "test -f t/out/x || echo no" },
	{ "through a link of its own",
	  { TAR_SYMLINK, .path = "l", .link = "../out" },
	  { TAR_FILE, .path = "l/x" },
	  ERR_PATH_DENIED,
	  "ls out/x" },
	{ "through a link that is there",
	  { TAR_FILE, .path = "there/x" },
	  { 0 },
	  ERR_PATH_DENIED,
	  "ls out/x" },
	{ "a directory over a link",
	  { TAR_DIRECTORY, .path = "there" },
	  { 0 },
	  ERR_NOT_A_FILE,
	  "readlink -e t/there > /dev/null || echo no" },
	{ "a file over a link",
	  { TAR_FILE, .path = "file" },
	  { 0 },
	  0,
	  "cat out/kept; test -L t/file && echo no" },
	{ "a hard link out",
	  { TAR_HARDLINK, .path = "h", .link = "../out/kept" },
	  { 0 },
	  ERR_PATH_DENIED,
	  "ls t/h" },
	{ "a hard link through a link",
	  { TAR_HARDLINK, .path = "h", .link = "there/kept" },
	  { 0 },
	  ERR_PATH_DENIED,
	  "ls t/h" },
	{ "a hard link to a link",
	  { TAR_HARDLINK, .path = "h", .link = "file" },
	  { 0 },
	  ERR_PATH_DENIED,
	  "ls t/h" },
	{ "a hard link to itself",
	  { TAR_FILE, .path = "s" },
	  { TAR_HARDLINK, .path = "s", .link = "./s" },
	  0,
	  "test -f t/s || echo no" },
	{ "a hard link to nothing",
	  { TAR_HARDLINK, .path = "h", .link = "none" },
	  { 0 },
	  ERR_PATH_NOT_FOUND,
	  "" },
	{ "a file over a directory",
	  { TAR_FILE, .path = "dir" },
	  { 0 },
	  ERR_NOT_A_FILE,
	  "test -d t/dir || echo no" },
	{ "the top as a file",
	  { TAR_FILE, .path = "./"
			      "." },
	  { 0 },
	  ERR_NOT_A_FILE,
	  "" },
	{ "the top as a link",
	  { TAR_SYMLINK, .path = ".", .link = "out" },
	  { 0 },
	  ERR_NOT_A_FILE,
	  "" },
	{ "set-id",
	  { TAR_FILE, .mode = 06755, .path = "s" },
	  { TAR_DIRECTORY, .mode = 02755, .path = "sd" },
	  0,
	  "find t -perm /7000" },
};

static void test_hostile_archives(void **state)
{
	struct sandbox *sb = make(NULL);

	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		autoclose int fd = new_file();
		char line[200];
		struct err e;

		sh(sb, "chmod -R u+w t out 2>/dev/null; rm -rf t out; mkdir -p t/dir out; "
		       ": > out/kept; ln -s ../out t/there;"
		       "ln -s ../out/kept t/file");
		add(fd, hostile[i].first, "");
		if (hostile[i].second.path)
			add(fd, hostile[i].second, "");
		add_end(fd);
		e = upload_from(sb, "t", false, fd);
		if (e.code != hostile[i].code)
			fail_msg("%s: %s", hostile[i].name, e.msg);
		snprintf(line, sizeof(line), "{ %s; } 2>/dev/null; true",
			 *hostile[i].after ? hostile[i].after : ":");
		if (*sh(sb, line))
			fail_msg("%s: %s", hostile[i].name, sh(sb, line));
	}
}

static void test_no_archives(void **state)
{
	static const char text[2048] = "no archive";
	autoclose int none = new_file(), cut = new_file(), empty = new_file();
	struct sandbox *sb = make(NULL);

	assert_int_equal(write(none, text, sizeof(text)), sizeof(text));
	assert_int_equal(upload_from(sb, ".", false, none).code, ERR_INVALID);
	add(cut, (struct tar_entry){ TAR_FILE, .mode = 0600, .path = "f" }, "content");
	assert_int_equal(upload_from(sb, ".", false, cut).code, ERR_INVALID);
	assert_int_equal(upload_from(sb, ".", false, empty).code, ERR_INVALID);
	add_end(cut);
	must(upload_from(sb, ".", false, cut));
	assert_string_equal(get(sb, "f"), "content");
	/* nor places for one */
	assert_int_equal(upload_from(sb, "f", false, cut).code, ERR_NOT_A_FILE);
	assert_int_equal(upload_from(sb, "none", false, cut).code, ERR_PATH_NOT_FOUND);
	assert_int_equal(upload_from(sb, "/proc", false, cut).code, ERR_NOT_A_FILE);
	assert_int_equal(upload_from(sb, "/proc/self/fd", false, cut).code, ERR_NOT_A_FILE);
	assert_int_not_equal(upload_from(sb, "/usr", false, cut).code, 0);
	assert_int_equal(archive_to(sb, "none", &all, none).code, ERR_PATH_NOT_FOUND);
	assert_int_equal(archive_to(sb, "/dev/null", &all, none).code, ERR_NOT_A_FILE);
	assert_int_equal(archive_to(sb, "/proc/self", &all, none).code, ERR_NOT_A_FILE);
}

/* A directory is swapped for a link again and again, while an archive is unpacked in it. */
static void test_swapped_while_unpacked(void **state)
{
	autoclose int fd = new_file();
	struct sandbox *sb = make(NULL);
	struct ran *swaps;

	for (int i = 0; i < 200; i++) {
		char path[64];

		snprintf(path, sizeof(path), "a/b/f%d", i);
		add(fd, (struct tar_entry){ TAR_FILE, .mode = 0644, .path = path }, "x");
		snprintf(path, sizeof(path), "a/g%d", i);
		add(fd, (struct tar_entry){ TAR_FILE, .mode = 0644, .path = path }, "x");
	}
	add_end(fd);
	sh(sb, "mkdir -p t/a/b out");
	swaps = ran_argv_start(
		sb,
		(const char *const[]){
			"sh", "-c",
			"echo on; while :; do mv t/a/b t/aside; ln -s ../../out t/a/b; rm t/a/b;"
			"mv t/aside t/a/b; done",
			NULL });
	while (buf_str(&swaps->out).n == 0)
		wait_ms(1);
	for (int i = 0; i < 20; i++)
		(void)upload_from(sb, "t", false, fd); /* some fail */
	exec_kill(swaps->x);
	ran_wait(swaps);
	assert_string_equal(sh(sb, "ls -A out"), "");
}

/* ---- hostile trees --------------------------------------------------------------------------- */

static void test_hostile_trees(void **state)
{
	static const struct {
		const char *make;
		enum err_code code;
	} rows[] = {
		{ "mkfifo t/pipe; python3 -c 'import socket; "
		  "socket.socket(socket.AF_UNIX).bind(\"t/socket\")'",
		  0 },
		{ "ln -s / t/root; ln -s /etc/passwd t/passwd; ln -s loop t/loop", 0 },
		{ "cd t; for i in $(seq 300); do mkdir d; cd d; done", ERR_TREE_DEEP },
		{ "truncate -s 400G t/giant", ERR_TOO_LARGE },
		{ "echo x > t/f; chmod 0 t/f", ERR_PATH_DENIED },
		{ "mkdir t/shut; chmod 0 t/shut", ERR_PATH_DENIED },
	};
	struct sandbox *sb = make(NULL);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		autoclose int nobody = open("/dev/null", O_WRONLY | O_CLOEXEC);

		sh(sb, "chmod -R u+rwx t 2>/dev/null; rm -rf t; mkdir t");
		sh(sb, rows[i].make);
		assert_int_equal(archive_to(sb, "t", &all, nobody).code, rows[i].code);
	}
}

/* Whatever changes meanwhile, what comes is an archive. */
static void test_changes_while_packed(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *changes;

	sh(sb, "mkdir t u");
	changes = ran_argv_start(
		sb,
		(const char *const[]){
			"sh", "-c",
			"echo on; while :; do for i in 1 2 3 4 5 6 7 8; do echo xxxxxxxxx > t/f$i; "
			"mkdir -p t/d$i; "
			"ln -s / t/l$i; : > t/f$i; mv t/d$i t/e$i; done; rm -rf t/*; done",
			NULL });
	while (buf_str(&changes->out).n == 0)
		wait_ms(1);
	for (int i = 0; i < 30; i++) {
		autoclose int fd = new_file();

		must(archive_to(sb, "t", &all, fd));
		must(upload_from(sb, "u", false, fd));
		sh(sb, "rm -rf u; mkdir u");
	}
	exec_kill(changes->x);
	ran_wait(changes);
}

/* ---- ends in the middle ---------------------------------------------------------------------- */

/* The helpers of the first process: those of its name. */
#define HELPERS "grep -lx holt-init /proc/[0-9]*/comm 2>/dev/null | grep -vc /proc/1/comm"

static void until_no_helper(struct sandbox *sb)
{
	while (strcmp(sh(sb, HELPERS "; true"), "0") != 0)
		wait_ms(5);
}

static void test_stopped(void **state)
{
	struct sandbox *sb = make(NULL);
	struct moved m = { .done = false };
	struct file_transfer *t;
	int down[2], up[2];

	sh(sb, "head -c 3000000 /dev/zero > f");
	assert_int_equal(pipe2(down, O_CLOEXEC), 0);
	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	t = file_archive_start(sb, STR_LIT("."), &all, down[1], on_moved, &m);
	while (strcmp(sh(sb, HELPERS "; true"), "1") != 0)
		wait_ms(5);
	assert_string_equal(sh(sb, "echo still here"), "still here");
	file_transfer_stop(t);
	until_no_helper(sb);
	t = file_upload_start(sb, STR_LIT("."), &(struct file_upload_opts){ false }, up[0],
			      on_moved, &m);
	file_transfer_stop(t); /* at once */
	until_no_helper(sb);
	assert_false(m.done);
	close(down[0]);
	close(up[1]);
}

/* One whose other end is closed ends by itself. */
static void test_closed(void **state)
{
	struct sandbox *sb = make(NULL);
	struct moved down = { .done = false }, up = { .done = false };
	int pipes[2];

	sh(sb, "head -c 3000000 /dev/zero > f");
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	file_archive_start(sb, STR_LIT("."), &all, pipes[1], on_moved, &down);
	close(pipes[0]);
	wait_for(&down.done, "the end of an archive that nobody takes");
	assert_int_equal(down.err.code, ERR_CANCELLED);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	file_upload_start(sb, STR_LIT("."), &(struct file_upload_opts){ false }, pipes[0], on_moved,
			  &up);
	close(pipes[1]);
	wait_for(&up.done, "the end of an archive that nobody gives");
	assert_int_equal(up.err.code, ERR_INVALID);
	until_no_helper(sb);
}

static void test_killed(void **state)
{
	struct sandbox *sb = make(NULL);
	struct moved m = { .done = false };
	int pipes[2];

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	file_upload_start(sb, STR_LIT("."), &(struct file_upload_opts){ false }, pipes[0], on_moved,
			  &m);
	while (strcmp(sh(sb, HELPERS "; true"), "1") != 0)
		wait_ms(5);
	sh(sb, "for p in $(grep -lx holt-init /proc/[0-9]*/comm); do p=${p%/comm}; p=${p#/proc/};"
	       "[ $p = 1 ] || kill -9 $p; done");
	wait_for(&m.done, "the end of a transfer that was killed");
	assert_int_equal(m.err.code, ERR_LIMIT);
	close(pipes[1]);
}

static void test_sandbox_ends(void **state)
{
	struct sandbox *sb = make(NULL);
	struct moved m = { .done = false };
	int pipes[2];

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	file_upload_start(sb, STR_LIT("."), &(struct file_upload_opts){ false }, pipes[0], on_moved,
			  &m);
	destroy(sb);
	wait_for(&m.done, "the end of a transfer whose sandbox ended");
	assert_int_not_equal(m.err.code, 0);
	close(pipes[1]);
}

static void test_disk_full(void **state)
{
	const struct sandbox_spec spec = { .limits = { .disk = 4 << 20 } };
	autoclose int fd = new_file();
	struct sandbox *sb = make(&spec), *from = make(NULL);

	sh(from, "head -c 9000000 /dev/zero > f");
	must(archive_to(from, ".", &all, fd));
	assert_int_equal(upload_from(sb, ".", false, fd).code, ERR_DISK_FULL);
	assert_string_equal(sh(sb, "echo still here"), "still here");
}

/* ---- watches --------------------------------------------------------------------------------- */

struct watched {
	bool done;
	struct err err;
	struct file_transfer *t;
	bool overflow;
	char log[8192]; /* a line each: the kind's number, and the path */
	size_t n;
};

static void on_change(void *arg, const struct file_change *c)
{
	struct watched *w = arg;

	w->overflow |= c->kind == CHANGE_OVERFLOW;
	if (w->n < sizeof(w->log) - 200)
		w->n += (size_t)snprintf(w->log + w->n, sizeof(w->log) - w->n, "%d %.*s%s\n",
					 c->kind, STR_CUT(c->path, 150),
					 c->is_directory && c->path.n ? "/" : "");
}

static void on_unwatched(void *arg, const struct err *err)
{
	struct watched *w = arg;

	w->done = true;
	w->err = err ? *err : ERR_INIT;
}

static void see(struct watched *w, enum change_kind kind, const char *path)
{
	char line[200];

	snprintf(line, sizeof(line), "%d %s\n", kind, path);
	for (int i = 0; i < 20000 && !strstr(w->log, line); i++) {
		if (w->done)
			fail_msg("it ended: %s", w->err.msg);
		wait_ms(1);
	}
	if (!strstr(w->log, line))
		fail_msg("no %s in\n%s", line, w->log);
}

static void watch(struct sandbox *sb, const char *path, bool recursive, struct watched *w)
{
	*w = (struct watched){ .done = false };
	w->t = file_watch_start(sb, str_of(path), recursive, on_change, on_unwatched, w);
	see(w, CHANGE_READY, "");
}

static void test_watch(void **state)
{
	static struct watched w;
	struct sandbox *sb = make(NULL);

	sh(sb, "mkdir -p d/sub; echo > d/old; echo > d/sub/f");
	watch(sb, "d", true, &w);
	sh(sb, "echo > d/new");
	see(&w, CHANGE_CREATED, "new");
	see(&w, CHANGE_MODIFIED, "new");
	sh(sb, "chmod 600 d/old; rm d/sub/f; mv d/old d/sub/moved");
	see(&w, CHANGE_ATTRIBUTES, "old");
	see(&w, CHANGE_REMOVED, "sub/f");
	see(&w, CHANGE_MOVED_FROM, "old");
	see(&w, CHANGE_MOVED_TO, "sub/moved");
	/* what comes later is watched, too */
	sh(sb, "mkdir -p d/a/b/c; echo > d/a/b/c/f");
	see(&w, CHANGE_CREATED, "a/");
	see(&w, CHANGE_CREATED, "a/b/c/f");
	sh(sb, "mv d/a d/z; echo > d/z/b/late");
	see(&w, CHANGE_CREATED, "z/b/late");
	/* links are not followed */
	sh(sb, "mkdir out; ln -s ../out d/link; echo > out/secret; echo > d/end");
	see(&w, CHANGE_CREATED, "end");
	assert_null(strstr(w.log, "secret"));
	sh(sb, "rm -r d");
	see(&w, CHANGE_ENDED, "");
	wait_for(&w.done, "the end of the watch");
	assert_int_equal(w.err.code, 0);
}

static int kernel_bound(const char *path)
{
	char text[32] = "";
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	return atoi(text);
}

static void test_watch_is_bounded(void **state)
{
	static struct watched w;
	struct sandbox *sb = make(NULL);

	sh(sb, "mkdir d");
	watch(sb, "d", false, &w);
	if (kernel_bound("/proc/sys/fs/inotify/max_queued_events") > 16384)
		skip();
	file_watch_hold(w.t, true);
	sh(sb, "cd d; for i in $(seq 30000); do : > a; : > b; done");
	file_watch_hold(w.t, false);
	wait_for(&w.overflow, "word that there was more");
	file_transfer_stop(w.t);
	until_no_helper(sb);
	assert_false(w.done);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		engine_test(test_trip),
		engine_test(test_one_file),
		engine_test(test_leave_out),
		engine_test(test_changes),
		engine_test(test_hostile_archives),
		engine_test(test_no_archives),
		engine_test(test_swapped_while_unpacked),
		engine_test(test_hostile_trees),
		engine_test(test_changes_while_packed),
		engine_test(test_stopped),
		engine_test(test_closed),
		engine_test(test_killed),
		engine_test(test_sandbox_ends),
		engine_test(test_disk_full),
		engine_test(test_watch),
		engine_test(test_watch_is_bounded),
	};

	return ENGINE_MAIN(argc, argv, "transfer", tests);
}
