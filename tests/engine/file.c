/* Files of a sandbox, as an honest client uses them. What is there to fool us is in file_trap.c. */
#include "engine.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "box/wire/wire.h"

enum { LARGE = 100000 }; /* of which init hands out a descriptor */

static void assert_bytes(struct filed *f, struct str want)
{
	filed(f);
	if (f->err.code)
		fail_msg("%s", f->err.msg);
	assert_int_equal(f->bytes.n, want.n);
	assert_memory_equal(buf_str(&f->bytes).p, want.p, want.n);
}

static void test_read_ranges(void **state)
{
	const struct {
		uint64_t offset;
		size_t max, from, n;
	} rows[] = {
		{ 0, 100, 0, 100 },
		{ 0, 1, 0, 1 },
		{ 5, 10, 5, 10 },
		{ 299990, 100, 299990, 10 },
		{ 300000, 1, 300000, 0 },
		{ 0, WIRE_PIECE_MAX, 0, WIRE_PIECE_MAX }, /* the most that init reads itself */
		{ 1, WIRE_PIECE_MAX + 1, 1, WIRE_PIECE_MAX + 1 },
		{ 299990 - WIRE_PIECE_MAX, FILE_READ_MAX, 299990 - WIRE_PIECE_MAX,
		  WIRE_PIECE_MAX + 10 },
		{ 900000, 1, 0, 0 },
		{ 0, FILE_READ_MAX, 0, 300000 },
		{ UINT64_MAX, 10, 0, 0 },
		{ (uint64_t)INT64_MAX, 10, 0, 0 },
	};
	struct sandbox *sb = make(NULL);
	struct str bytes = pattern(300000);

	assert_int_equal(filed_code(put_start(sb, "f", bytes, NULL)), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct filed *f = get_start(sb, "f", rows[i].offset, rows[i].max);

		assert_bytes(f, (struct str){ bytes.p + rows[i].from, rows[i].n });
		assert_int_equal(f->st.size, 300000);
		assert_int_equal(f->st.type, FILE_REGULAR);
	}
}

static void test_read_max(void **state)
{
	struct sandbox *sb = make(NULL);
	struct filed *f;

	sh(sb, "head -c 9000000 /dev/zero > f");
	f = filed(get_start(sb, "f", 0, 9000000));
	assert_true(f->err.code || f->bytes.n == FILE_READ_MAX);
	f = filed(get_start(sb, "f", FILE_READ_MAX, FILE_READ_MAX));
	assert_int_equal(f->bytes.n, 9000000 - FILE_READ_MAX);
}

static void test_write_new(void **state)
{
	const struct file_write_opts exact = { .mode = 0755 }, shut = { .mode = 0600 };
	struct sandbox *sb = make(NULL);

	assert_int_equal(filed_code(put_start(sb, "plain", STR_LIT("a"), NULL)), 0);
	assert_int_equal(
		filed_code(put_start(sb, "tool", STR_LIT("#!/bin/sh\necho ran\n"), &exact)), 0);
	assert_int_equal(filed_code(put_start(sb, "/tmp/shut", STR_LIT(""), &shut)), 0);
	assert_string_equal(sh(sb, "stat -c '%a %U %s' plain tool /tmp/shut"),
			    "644 agent 1\n755 agent 19\n600 agent 0");
	assert_string_equal(sh(sb, "./tool"), "ran");
	assert_string_equal(get(sb, "/workspace/plain"), "a");
	assert_string_equal(sh(sb, "ls -A | tr '\\n' ' '"), "plain tool ");
}

static void test_overwrite(void **state)
{
	const struct file_write_opts other = { .mode = 0600 };
	struct sandbox *sb = make(NULL);

	sh(sb, "echo old > f; chmod 750 f");
	assert_int_equal(filed_code(put_start(sb, "f", STR_LIT("new"), &other)), 0);
	assert_string_equal(sh(sb, "stat -c %a f; cat f"), "750\nnew");

	put(sb, "f", "newer");

	sh(sb, "chmod 444 f");
	assert_int_equal(filed_code(put_start(sb, "f", STR_LIT("x"), NULL)), ERR_PATH_DENIED);
	assert_string_equal(get(sb, "f"), "newer");
}

static void test_make_parents(void **state)
{
	const struct file_write_opts parents = { .make_parents = true };
	struct sandbox *sb = make(NULL);

	assert_int_equal(filed_code(put_start(sb, "a/b/c", STR_LIT("x"), NULL)),
			 ERR_PATH_NOT_FOUND);
	assert_int_equal(filed_code(put_start(sb, "a/b/c", STR_LIT("x"), &parents)), 0);
	assert_int_equal(filed_code(put_start(sb, "a/b/d", STR_LIT("y"), &parents)), 0);
	assert_int_equal(filed_code(put_start(sb, "/tmp//e///f", STR_LIT("z"), &parents)), 0);
	assert_string_equal(sh(sb, "stat -c %a a a/b a/b/c; cat a/b/c a/b/d /tmp/e/f"),
			    "755\n755\n644\nxyz");
	put(sb, "file", "");
	assert_int_not_equal(filed_code(put_start(sb, "file/x", STR_LIT("x"), &parents)), 0);
	assert_int_equal(filed_code(put_start(sb, "/usr/x/y", STR_LIT("x"), &parents)),
			 ERR_PATH_DENIED);
}

/* Who reads meanwhile sees the old or the new, never a part or nothing. It goes on until both
 * were seen. */
static void test_atomic(void **state)
{
	static const char both[] = "1 2 200000 300000 ";
	const char *seen = "";
	struct sandbox *sb = make(NULL);
	struct str one = pattern(200000), two = pattern(300000);
	struct ran *r;

	memset((char *)one.p, '1', one.n);
	memset((char *)two.p, '2', two.n);
	assert_int_equal(filed_code(put_start(sb, "f", one, NULL)), 0);
	r = ran_shell(sb, "while ! test -e stop; do tr -s 12 < f; echo; wc -c < f; done > seen");
	for (int i = 0; i < 4000 && strcmp(seen, both) != 0; i++) {
		assert_int_equal(filed_code(put_start(sb, "f", i & 1 ? one : two, NULL)), 0);
		wait_ms(5);
		if (i % 40 == 39)
			seen = sh(sb, "sort -u seen | tr '\\n' ' '");
	}
	put(sb, "stop", "");
	ran_wait(r);
	assert_int_equal(r->result.exit_code, 0);
	assert_string_equal(sh(sb, "sort -u seen | tr '\\n' ' '"), both);
	assert_string_equal(sh(sb, "ls -A | tr '\\n' ' '"), "f seen stop ");
}

static void test_no_place(void **state)
{
	struct sandbox *sb = make(NULL);

	assert_int_equal(filed_code(get_start(sb, "nothing", 0, 1)), ERR_PATH_NOT_FOUND);
	assert_int_equal(filed_code(stat_start(sb, "nothing")), ERR_PATH_NOT_FOUND);
	assert_int_equal(filed_code(list_start(sb, "nothing")), ERR_PATH_NOT_FOUND);
	assert_int_equal(filed_code(remove_start(sb, "nothing", false)), ERR_PATH_NOT_FOUND);
	assert_int_equal(filed_code(remove_start(sb, "nothing", true)), ERR_PATH_NOT_FOUND);
	assert_int_equal(filed_code(move_start(sb, "nothing", "x")), ERR_PATH_NOT_FOUND);
	assert_int_equal(filed_code(get_start(sb, "/etc/passwd/x", 0, 1)), ERR_PATH_NOT_FOUND);
}

/* The template is read-only, and what is not the user's is not written. */
static void test_denied(void **state)
{
	struct sandbox *sb = make(NULL);
	const char *const rows[] = { /* without privileges the root directory is the user's own */
				     "/usr/bin/env", "/usr/new", "/bin/sh", "/etc/passwd",
				     "/new",	     "/dev/new", "/root/x"
	};

	for (size_t i = 0; i < (rootless() ? 3 : ARRAY_LEN(rows)); i++)
		ROW_CHECK(filed_code(put_start(sb, rows[i], STR_LIT("x"), NULL)) == ERR_PATH_DENIED,
			  rows[i]);
	assert_int_equal(filed_code(remove_start(sb, "/usr/bin/env", false)), ERR_PATH_DENIED);
	assert_int_equal(filed_code(mkdir_start(sb, "/usr/d", false)), ERR_PATH_DENIED);
	assert_int_equal(filed_code(move_start(sb, "/usr/bin/env", "/usr/bin/x")), ERR_PATH_DENIED);

	sh(sb, "echo secret > f; chmod 0 f");
	assert_int_equal(filed_code(get_start(sb, "f", 0, 1)), ERR_PATH_DENIED);
}

static void test_stat(void **state)
{
	struct sandbox *sb = make(NULL);
	struct filed *f;

	sh(sb, "printf 12345 > f; chmod 640 f; touch -d @1000000000.5 f; mkdir -m 700 d; ln -s d l;"
	       "mkfifo p");
	f = filed(stat_start(sb, "f"));
	assert_int_equal(f->err.code, 0);
	assert_int_equal(f->st.type, FILE_REGULAR);
	assert_int_equal(f->st.mode, 0640);
	assert_int_equal(f->st.size, 5);
	assert_int_equal(f->st.mtime_ms, 1000000000500);
	f = filed(stat_start(sb, "d"));
	assert_int_equal(f->st.type, FILE_DIRECTORY);
	assert_int_equal(f->st.mode, 0700);
	assert_int_equal(filed(stat_start(sb, "l"))->st.type, FILE_DIRECTORY); /* followed */
	assert_int_equal(filed(stat_start(sb, "p"))->st.type, FILE_OTHER);
	assert_int_equal(filed(stat_start(sb, "/dev/null"))->st.type, FILE_OTHER);
}

static void test_list(void **state)
{
	static const char *const names[] = { " space", ".hidden", "10", "9", "Z",
					     "a",      "b\nc",	  "d",	"l", "\xc3\xa9" };
	struct sandbox *sb = make(NULL);
	struct filed *f;

	sh(sb, "mkdir in; cd in; touch Z a 10 9 .hidden ' space' $'b\\nc' \xc3\xa9; mkdir d;"
	       "ln -s nowhere l; printf 123 > a");
	f = filed(list_start(sb, "in"));
	assert_int_equal(f->err.code, 0);
	assert_int_equal(f->n, ARRAY_LEN(names));
	assert_false(f->truncated);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_string_equal(f->names[i], names[i]);
	assert_int_equal(f->stats[5].size, 3);
	assert_int_equal(f->stats[7].type, FILE_DIRECTORY);
	assert_int_equal(f->stats[8].type, FILE_SYMLINK);
	sh(sb, "mkdir empty");
	f = filed(list_start(sb, "empty"));
	assert_int_equal(f->n, 0);
	assert_int_equal(f->err.code, 0);
	assert_true(filed(list_start(sb, "/"))->n > 10);
}

static void test_list_truncated(void **state)
{
	struct sandbox *sb = make(NULL);
	struct filed *f;

	sh(sb, "mkdir a b c; (cd a; seq 1024 | xargs touch); (cd b; seq 1025 | xargs touch)");
	f = filed(list_start(sb, "a"));
	assert_int_equal(f->n, FILE_LIST_MAX);
	assert_false(f->truncated);
	f = filed(list_start(sb, "b"));
	assert_int_equal(f->n, FILE_LIST_MAX);
	assert_true(f->truncated);
	for (size_t i = 1; i < f->n; i++)
		assert_true(strcmp(f->names[i - 1], f->names[i]) < 0);
	/* names as long as they get: more than one message holds */
	sh(sb, "cd c; p=$(printf %0250d 0); for i in $(seq 1000 1999); do echo $p$i; done | "
	       "xargs touch");
	f = filed(list_start(sb, "c"));
	assert_int_equal(f->err.code, 0);
	assert_true(f->n == 1000 || (f->truncated && f->n > 400));
}

static void test_mkdir(void **state)
{
	struct sandbox *sb = make(NULL);

	assert_int_equal(filed_code(mkdir_start(sb, "a", false)), 0);
	assert_int_equal(filed_code(mkdir_start(sb, "a", false)), ERR_CONFLICT);
	assert_int_equal(filed_code(mkdir_start(sb, "b/c/d", false)), ERR_PATH_NOT_FOUND);
	assert_int_equal(filed_code(mkdir_start(sb, "b/c/d", true)), 0);
	/* as mkdir -p: what is wanted is there */
	assert_int_equal(filed_code(mkdir_start(sb, "b/c/d", true)), 0);
	assert_int_equal(filed_code(mkdir_start(sb, "b/c/d/", true)), 0);
	assert_string_equal(sh(sb, "stat -c %a a b b/c b/c/d | uniq"), "755");
	put(sb, "f", "");
	assert_int_equal(filed_code(mkdir_start(sb, "f", true)), ERR_CONFLICT);
	assert_int_equal(filed_code(mkdir_start(sb, "f/x", true)), ERR_PATH_NOT_FOUND);
}

static void test_remove(void **state)
{
	struct sandbox *sb = make(NULL);

	sh(sb, "touch f; mkdir -p d/e empty; touch d/e/f; ln -s d l; ln -s nowhere m; mkfifo p");
	assert_int_equal(filed_code(remove_start(sb, "f", false)), 0);
	assert_int_equal(filed_code(remove_start(sb, "empty", false)), 0);
	assert_int_equal(filed_code(remove_start(sb, "d", false)), ERR_CONFLICT); /* not empty */
	assert_int_equal(filed_code(remove_start(sb, "l", true)),
			 0); /* the link, not what is there */
	assert_int_equal(filed_code(remove_start(sb, "m", false)), 0);
	assert_int_equal(filed_code(remove_start(sb, "p", true)), 0);
	assert_string_equal(sh(sb, "find d | sort | tr '\\n' ' '"), "d d/e d/e/f ");
	assert_int_equal(filed_code(remove_start(sb, "d", true)), 0);
	assert_string_equal(sh(sb, "ls -A"), "");
	sh(sb, "mkdir -p d/e; touch d/e/f; ln -s /tmp d/out; touch /tmp/kept; mkdir -m 0 d/shut");
	assert_int_equal(filed_code(remove_start(sb, "d/", true)), 0);
	assert_string_equal(sh(sb, "ls -A; ls /tmp"), "kept");
}

/* What can't be removed is said, and the rest of the sandbox goes on. */
static void test_remove_denied(void **state)
{
	struct sandbox *sb = make(NULL);

	sh(sb, "mkdir -p d/e/f; chmod 555 d/e");
	assert_int_equal(filed_code(remove_start(sb, "d", true)), ERR_PATH_DENIED);
	sh(sb, "chmod 755 d/e");
	assert_int_equal(filed_code(remove_start(sb, "d", true)), 0);
	assert_int_equal(filed_code(remove_start(sb, "/usr/share", true)), ERR_PATH_DENIED);
	assert_int_equal(filed_code(remove_start(sb, "/dev", true)), ERR_PATH_DENIED);
	assert_int_equal(filed_code(remove_start(sb, "/", true)), ERR_INVALID);
	assert_string_equal(sh(sb, "echo well"), "well");
}

static struct filed *remove_large_start(struct sandbox *sb)
{
	sh(sb,
	   "mkdir d; cd d; for i in $(seq 50); do mkdir $i; (cd $i; seq 400 | xargs touch); done");
	return remove_start(sb, "d", true);
}

/* A large tree goes while other calls are answered. */
static void test_remove_large(void **state)
{
	struct sandbox *sb = make(NULL);
	struct filed *gone;
	int meanwhile = 0;
	struct ran *r;

	for (int i = 0; i < 20 && meanwhile <= 3; i++) { /* this process may have had to wait */
		gone = remove_large_start(sb);
		for (meanwhile = 0; !gone->done; meanwhile++)
			assert_int_equal(filed_code(stat_start(sb, "/workspace")), 0);
		assert_int_equal(gone->err.code, 0);
	}
	assert_true(meanwhile > 3);
	assert_string_equal(sh(sb, "ls -A"), "");
	gone = remove_large_start(sb);
	r = ran_shell(sb, "echo meanwhile");
	ran_wait(r);
	filed(gone);
	assert_int_equal(gone->err.code, 0);
}

static void test_move(void **state)
{
	struct sandbox *sb = make(NULL);

	sh(sb, "echo a > a; echo b > b; mkdir -p d/e; echo c > d/e/c");
	assert_int_equal(filed_code(move_start(sb, "a", "b")), 0);
	assert_string_equal(get(sb, "b"), "a\n");
	assert_int_equal(filed_code(move_start(sb, "d", "/workspace/g")), 0);
	assert_string_equal(get(sb, "g/e/c"), "c\n");
	assert_int_equal(filed_code(move_start(sb, "b", "g")), ERR_NOT_A_FILE);
	assert_int_equal(filed_code(move_start(sb, "g", "g/e/inside")), ERR_INVALID);
	assert_int_equal(filed_code(move_start(sb, "b", "/tmp/b")), 0);
	assert_string_equal(sh(sb, "ls /tmp"), "b");
	assert_int_equal(filed_code(move_start(sb, "/tmp/b", "no/where")), ERR_PATH_NOT_FOUND);
}

/* ---- limits and crowds ----------------------------------------------------------------------- */

static void test_disk_full(void **state)
{
	const struct sandbox_spec spec = { .limits = { .disk = 8 * MIB } };
	struct sandbox *sb = make(&spec);
	struct str large = pattern(12 * MIB);

	put(sb, "f", "old");
	assert_int_equal(filed_code(put_start(sb, "f", large, NULL)), ERR_DISK_FULL);
	assert_string_equal(get(sb, "f"), "old");
	assert_string_equal(sh(sb, "ls -A"), "f");
	sh_code(sb, "head -c 20000000 /dev/zero > fill 2>/dev/null");
	assert_string_equal(sh(sb, "test $(stat -c %s fill) -le 8388608 && echo bounded"),
			    "bounded");
	assert_int_equal(filed_code(put_start(sb, "g", (struct str){ large.p, 100000 }, NULL)),
			 ERR_DISK_FULL);
	assert_string_equal(sh(sb, "ls -A | tr '\\n' ' '"), "f fill ");
	assert_int_equal(filed_code(remove_start(sb, "fill", false)), 0);
	put(sb, "f", "new");
	assert_string_equal(get(sb, "f"), "new");
}

static void test_write_max(void **state)
{
	const struct sandbox_spec spec = { .limits = { .disk = 200 * MIB } };
	struct sandbox *sb = make(&spec);
	struct str most = pattern(FILE_WRITE_MAX + 1);

	assert_int_equal(filed_code(put_start(sb, "f", most, NULL)), ERR_TOO_LARGE);
	most.n--;
	assert_int_equal(filed_code(put_start(sb, "f", most, NULL)), 0);
	assert_bytes(get_start(sb, "f", most.n - 10, 100),
		     (struct str){ most.p + most.n - 10, 10 });
}

/* 64 writes at once all succeed; what is too much is refused as such, and nothing is left of it. */
static void test_many_writes(void **state)
{
	struct sandbox *sb = make(NULL);
	struct str bytes = pattern(100000);
	struct filed *f[200];
	size_t good = 0;
	char path[32];

	for (size_t i = 0; i < ARRAY_LEN(f); i++) {
		snprintf(path, sizeof(path), "f%zu", i);
		f[i] = put_start(sb, path, bytes, NULL);
	}
	for (size_t i = 0; i < ARRAY_LEN(f); i++) {
		enum err_code code = filed_code(f[i]);

		assert_true(code == 0 || code == ERR_LIMIT);
		good += code == 0;
	}
	assert_true(good >= 64);
	snprintf(path, sizeof(path), "%zu", good);
	assert_string_equal(sh(sb, "ls -A | wc -l"), path);
	assert_string_equal(sh(sb, "stat -c %s * | sort -u"), "100000");
}

static void test_many_writes_of_one(void **state)
{
	struct sandbox *sb = make(NULL);
	struct filed *f[64];
	char text[16];

	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		f[i] = put_start(sb, "f", pattern(1000 + i), NULL);
	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		assert_int_equal(filed_code(f[i]), 0);
	snprintf(text, sizeof(text), "%s", sh(sb, "stat -c %s f"));
	assert_in_range(atoi(text), 1000, 1063);
	assert_string_equal(sh(sb, "ls -A"), "f");
}

static void test_many_reads(void **state)
{
	struct sandbox *sb = make(NULL);
	struct str bytes = pattern(200000);
	struct filed *f[100];

	assert_int_equal(filed_code(put_start(sb, "f", bytes, NULL)), 0);
	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		f[i] = get_start(sb, "f", i, FILE_READ_MAX);
	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		assert_bytes(f[i], (struct str){ bytes.p + i, bytes.n - i });
}

/* Operations under way when their sandbox ends are told so. */
static void test_destroyed_meanwhile(void **state)
{
	struct sandbox *sb = make(NULL);
	struct str bytes = pattern(8 * MIB);
	struct filed *f[40];

	sh(sb, "mkdir d; cd d; seq 5000 | xargs touch");
	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		f[i] = i % 4 == 0 ? put_start(sb, "f", bytes, NULL)
		     : i % 4 == 1 ? get_start(sb, "/etc/passwd", 0, 100)
		     : i % 4 == 2 ? list_start(sb, "d")
				  : remove_start(sb, "d", true);
	wait_ms(3);
	destroy(sb);
	for (size_t i = 0; i < ARRAY_LEN(f); i++) {
		enum err_code code = filed_code(f[i]);

		/* a removal may have been first, so that the others find nothing */
		assert_true(code == 0 || code == ERR_CANCELLED || code == ERR_PATH_NOT_FOUND ||
			    code == ERR_SANDBOX_NOT_FOUND || code == ERR_CONFLICT);
	}
	assert_int_equal(filed_code(get_start(sb, "x", 0, 1)), ERR_SANDBOX_NOT_FOUND);
	assert_int_equal(filed_code(put_start(sb, "x", bytes, NULL)), ERR_SANDBOX_NOT_FOUND);
}

/* Init answers before it closes what it answered with; the next answer comes after that. */
static size_t fds_of_settled(struct sandbox *sb, pid_t init)
{
	filed(remove_start(sb, "nothing", true));
	return fds_of(init);
}

static void test_no_leak(void **state)
{
	struct sandbox *sb = make(NULL);
	size_t ours, inits;
	pid_t init;

	assert_int_equal(init_pids(&init, 1), 1);
	put(sb, "f", "x");
	get(sb, "f");
	ours = fds_of(getpid());
	inits = fds_of_settled(sb, init);
	for (int i = 0; i < 300; i++) {
		put(sb, "f", "x");
		get(sb, "f");
		filed(get_start(sb, "nothing", 0, 1));
		filed(put_start(sb, "/usr/x", STR_LIT("x"), NULL));
		filed(put_start(sb, "/tmp", STR_LIT("x"), NULL));
		filed(get_start(sb, "/dev/null", 0, 1));
		filed(get_start(sb, "/proc/self/maps", 0, 1));
		filed(list_start(sb, "/usr"));
		filed(list_start(sb, "f"));
		filed(list_start(sb, "/proc"));
		filed(remove_start(sb, "nothing", true));
	}
	assert_fds(getpid(), ours);
	assert_int_equal(fds_of_settled(sb, init), inits);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

/* The host's id of a sandbox's user. */
static uid_t uid_of(pid_t pid)
{
	char path[64], line[256];
	unsigned uid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && sscanf(line, "Uid: %u", &uid) != 1)
		;
	fclose(f);
	return uid;
}

static bool send_many(int socket, int what)
{
	enum { AT_ONCE = 253 };
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(AT_ONCE * sizeof(int))] = { 0 };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = (void *)control;

	*c = (struct cmsghdr){ CMSG_LEN(AT_ONCE * sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	for (int i = 0; i < AT_ONCE; i++)
		memcpy(CMSG_DATA(c) + (size_t)i * sizeof(int), &what, sizeof(int));
	return sendmsg(socket, &m, MSG_DONTWAIT) == 1;
}

/* Has as many descriptors of a user in flight as the kernel lets it, until it is killed: more
 * than the limit of this process, which is at least that of a sandbox's init. */
static pid_t put_in_flight(uid_t uid)
{
	struct rlimit own;
	int ready[2], pair[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &own), 0);
	own.rlim_cur = own.rlim_max;
	pid = fork();
	if (pid == 0) {
		if (setrlimit(RLIMIT_NOFILE, &own) < 0 || setresuid(uid, uid, uid) < 0 ||
		    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
			_exit(1);
		errno = 0;
		while (errno != ETOOMANYREFS && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0) {
			for (int i = 0; i < 100 && send_many(pair[0], ready[1]); i++)
				;
		}
		if (errno == ETOOMANYREFS && write(ready[1], "x", 1) == 1)
			pause();
		_exit(2);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

/* Whatever others of its user have in flight, the first process of a sandbox goes on. */
static void test_others_in_flight(void **state)
{
	struct sandbox *sb = make(NULL);
	pid_t init, other;

	if (rootless()) /* whose programs outside have no larger limit than init */
		return;
	put(sb, "f", "x");
	assert_int_equal(filed_code(put_start(sb, "large", pattern(LARGE), NULL)), 0);
	assert_int_equal(init_pids(&init, 1), 1);
	other = put_in_flight(uid_of(init));
	assert_int_equal(filed_code(get_start(sb, "large", 0, LARGE)), ERR_LIMIT);
	put(sb, "g", "x"); /* which takes none */
	assert_string_equal(get(sb, "f"), "x"); /* neither does this */
	assert_true(sandbox_live(sb));
	assert_string_equal(sh(sb, "echo on"), "on");
	kill(other, SIGKILL);
	assert_int_equal(waitpid(other, NULL, 0), other);
	wait_ms(200); /* what was in flight is collected a little later */
	put(sb, "g", "y");
	assert_string_equal(get(sb, "f"), "x");
	assert_string_equal(sh(sb, "ls -A"), "f\ng\nlarge");
}

/* The hub has room for so many descriptors more. */
static struct rlimit leave_room(rlim_t more)
{
	struct rlimit was, now;
	int next = dup(STDIN_FILENO); /* the lowest that is free */

	assert_true(next >= 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	now = (struct rlimit){ (rlim_t)next + more, was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	return was;
}

/* A hub that has no more descriptors refuses what takes one, and nothing is lost or held for it. */
static void test_no_descriptors(void **state)
{
	enum { MORE_THAN_INIT_HOLDS = 520 };
	struct str large = pattern(LARGE);
	const char *dir = host_dir();
	const struct sandbox_mount m = { .host = str_of(dir),
					 .guest = STR_LIT("/workspace/host"),
					 .writable = true,
					 .all = true };
	struct sandbox *sb;
	struct rlimit was;

	if (!rootless())
		assert_int_equal(chown(dir, 1234, 1234), 0);
	sb = make(&(struct sandbox_spec){ .mounts = &m, .n_mounts = 1 });
	put(sb, "f", "before");
	put(sb, "host/f", "before");
	assert_int_equal(filed_code(put_start(sb, "large", large, NULL)), 0);
	was = leave_room(0);
	for (int i = 0; i < MORE_THAN_INIT_HOLDS; i++) {
		ROW_CHECK(filed_code(put_start(sb, "host/f", large, NULL)) == ERR_LIMIT, "write");
		ROW_CHECK(filed_code(get_start(sb, "large", 0, LARGE)) == ERR_LIMIT, "read");
	}
	put(sb, "f", "after");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_string_equal(get(sb, "host/f"), "before");
	assert_string_equal(get(sb, "f"), "after");
	was = leave_room(1);
	put(sb, "host/f", "after");
	assert_string_equal(get(sb, "host/f"), "after");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_string_equal(sh(sb, "cat host/f; ls -A . host"),
			    "after.:\nf\nhost\nlarge\n\nhost:\nf");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		engine_test(test_read_ranges),	  engine_test(test_read_max),
		engine_test(test_write_new),	  engine_test(test_overwrite),
		engine_test(test_make_parents),	  engine_test(test_atomic),
		engine_test(test_no_place),	  engine_test(test_denied),
		engine_test(test_stat),		  engine_test(test_list),
		engine_test(test_list_truncated), engine_test(test_mkdir),
		engine_test(test_remove),	  engine_test(test_remove_denied),
		engine_test(test_remove_large),	  engine_test(test_move),
		engine_test(test_disk_full),	  engine_test(test_write_max),
		engine_test(test_many_writes),	  engine_test(test_many_writes_of_one),
		engine_test(test_many_reads),	  engine_test(test_destroyed_meanwhile),
		engine_test(test_no_leak),	  engine_test(test_others_in_flight),
		engine_test(test_no_descriptors),
	};

	return ENGINE_MAIN(argc, argv, "file", tests);
}
