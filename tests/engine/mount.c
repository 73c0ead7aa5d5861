/* Directories and files of the host that an operator gives to a sandbox. */
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { PATH_BYTES = 200, OWNER = 1234, GROUP = 2345 };

static const char *in(const char *dir, const char *name)
{
	static char paths[8][PATH_BYTES];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, PATH_BYTES, "%s/%s", dir, name);
	return path;
}

static struct sandbox *make_with(const struct sandbox_mount *mounts, size_t n)
{
	const struct sandbox_spec spec = { .mounts = mounts, .n_mounts = n };

	return make(&spec);
}

static struct err error_with(const char *host, const char *guest)
{
	const struct sandbox_mount m = { str_of(host), str_of(guest), true };
	const struct sandbox_spec spec = { .mounts = &m, .n_mounts = 1 };

	return make_error(&spec);
}

static struct sandbox *make_one(const char *host, const char *guest, bool writable)
{
	const struct sandbox_mount m = { str_of(host), str_of(guest), writable };

	return make_with(&m, 1);
}

/* A directory whose owner is nobody's default: the sandbox is to appear as him. */
static const char *owned_dir(void)
{
	const char *dir = host_dir();

	host_file(in(dir, "f"), "from the host\n", 0644);
	if (!rootless()) {
		assert_int_equal(chown(in(dir, "f"), OWNER, GROUP), 0);
		assert_int_equal(chown(dir, OWNER, GROUP), 0);
	}
	return dir;
}

static void assert_owner(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_uid, rootless() ? geteuid() : OWNER);
	assert_int_equal(st.st_gid, rootless() ? getegid() : GROUP);
}

static void test_readonly(void **state)
{
	const char *dir = owned_dir();
	struct sandbox *sb = make_one(dir, "/workspace/in", false);
	struct stat st;

	assert_string_equal(sh(sb, "cat in/f; stat -c '%U %a' in/f in"),
			    "from the host\nagent 644\nagent 755");
	assert_string_equal(get(sb, "in/f"), "from the host\n");
	assert_int_not_equal(sh_code(sb,
				     "echo x > in/f || rm in/f || touch in/g || mv in/f in/g ||"
				     "mkdir in/d || chmod 777 in/f || ln in/f in/h || ln in/f h"),
			     0);
	assert_int_equal(filed_code(put_start(sb, "in/f", STR_LIT("x"), NULL)), ERR_PATH_DENIED);
	assert_int_equal(filed_code(put_start(sb, "in/g", STR_LIT("x"), NULL)), ERR_PATH_DENIED);
	assert_int_equal(filed_code(remove_start(sb, "in/f", false)), ERR_PATH_DENIED);
	assert_int_equal(lstat(in(dir, "f"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	/* what changes on the host is seen */
	host_file(in(dir, "later"), "later\n", 0644);
	assert_string_equal(sh(sb, "cat in/later"), "later");
}

static void test_writable(void **state)
{
	const char *dir = owned_dir();
	struct sandbox *sb = make_one(dir, "/workspace/out", true);

	sh(sb, "cd out; echo changed > f; echo new > g; mkdir d; echo x > d/x; ln -s f l; mkfifo p;"
	       "chmod 750 g; touch -d @5 d");
	put(sb, "out/put", "put");
	put(sb, "out/f", "put over");
	assert_owner(in(dir, "f"));
	assert_owner(in(dir, "g"));
	assert_owner(in(dir, "d"));
	assert_owner(in(dir, "d/x"));
	assert_owner(in(dir, "l"));
	assert_owner(in(dir, "p"));
	assert_owner(in(dir, "put"));
	assert_string_equal(sh(sb, "cat out/f; stat -c '%U:%G %a' out/g out/put"),
			    "put overagent:agent 750\nagent:agent 644");
	destroy(sb);
	assert_int_equal(access(in(dir, "d/x"), F_OK), 0); /* they stay */
	assert_int_equal(access(in(dir, "put"), F_OK), 0);
}

/* Files of other users of the host are as other users' files are. */
static void test_others_files(void **state)
{
	const char *dir = owned_dir();
	struct sandbox *sb;

	if (rootless())
		return;
	host_file(in(dir, "secret"), "root's", 0600);
	host_file(in(dir, "public"), "root's\n", 0644);
	sb = make_one(dir, "/workspace/out", true);
	assert_int_not_equal(sh_code(sb, "cat out/secret"), 0);
	assert_int_equal(filed_code(get_start(sb, "out/secret", 0, 1)), ERR_PATH_DENIED);
	assert_string_equal(sh(sb, "cat out/public; stat -c %U out/public"), "root's\nnobody");
	assert_int_not_equal(sh_code(sb, "echo x > out/public || chmod 777 out/public"), 0);
	assert_int_not_equal(sh_code(sb, "chown root out/f"), 0);
	assert_int_not_equal(sh_code(sb, "chmod u+s out/f"), 0);
}

/* A set-user-id program of the host is a plain one inside, and devices open nothing. */
static void test_no_privileges(void **state)
{
	const char *dir = host_dir();
	struct sandbox *sb;

	if (rootless())
		return;
	assert_int_equal(system(NULL) != 0, 1);
	host_file(in(dir, "id"), "#!/bin/sh\nid -u\n", 04755);
	assert_int_equal(mknod(in(dir, "null"), S_IFCHR | 0666, (1 << 8) | 3), 0);
	assert_int_equal(chmod(in(dir, "null"), 0666), 0);
	sb = make_one(dir, "/mnt", true);
	assert_string_equal(sh(sb, "/mnt/id"), "1000");
	assert_int_not_equal(sh_code(sb, "cat /mnt/null"), 0);
	assert_int_equal(filed_code(get_start(sb, "/mnt/null", 0, 1)), ERR_NOT_A_FILE);
}

static void test_file(void **state)
{
	const char *dir = owned_dir();
	const struct sandbox_mount m[] = {
		{ str_of(in(dir, "f")), STR_LIT("/workspace/ro.conf"), false },
		{ str_of(in(dir, "f")), STR_LIT("/workspace/deep/er/rw.conf"), true },
		{ str_of(in(dir, "f")), STR_LIT("/etc/hostname"), false },
	};
	struct sandbox *sb = make_with(m, 3);

	assert_string_equal(
		sh(sb, "cat ro.conf deep/er/rw.conf /etc/hostname | uniq -c | tr -s ' '"),
		" 3 from the host");
	assert_int_not_equal(sh_code(sb, "echo x > ro.conf"), 0);
	sh(sb, "echo written > deep/er/rw.conf");
	assert_string_equal(sh(sb, "cat ro.conf"), "written");
	assert_owner(in(dir, "f"));
	assert_int_not_equal(sh_code(sb, "rm -f ro.conf || mv deep/er/rw.conf x"), 0);
	assert_int_equal(filed_code(put_start(sb, "ro.conf", STR_LIT("x"), NULL)), ERR_PATH_DENIED);
	/* a mounted file can't be replaced as one; that is said, and it is whole */
	assert_int_not_equal(filed_code(put_start(sb, "deep/er/rw.conf", STR_LIT("x"), NULL)), 0);
	assert_string_equal(get(sb, "deep/er/rw.conf"), "written\n");
	assert_string_equal(sh(sb, "ls -A deep/er"), "rw.conf");
}

static void test_nested(void **state)
{
	const char *one = owned_dir(), *two = owned_dir();
	const struct sandbox_mount m[] = {
		{ str_of(one), STR_LIT("/data"), true },
		{ str_of(two), STR_LIT("/data/sub/two"), false },

	};
	struct sandbox *sb;

	assert_int_equal(mkdir(in(one, "sub"), 0755), 0);
	assert_int_equal(mkdir(in(one, "sub/two"), 0755), 0);
	if (!rootless())
		assert_int_equal(chown(in(one, "sub"), OWNER, GROUP), 0);
	sb = make_with(m, 2);
	assert_string_equal(sh(sb, "echo x > /data/new; ls /data /data/sub/two | tr '\\n' ' '"),
			    "/data: commondir f new opencode.json opencode.jsonc refs sub  "
			    "/data/sub/two: f ");
	assert_int_not_equal(sh_code(sb, "touch /data/sub/two/x"), 0);
	assert_int_equal(access(in(two, "x"), F_OK), -1);
}

/* The place of a mount is made where it is missing, below what the sandbox may have. */
static void test_places(void **state)
{
	const char *dir = owned_dir();
	const char *const places[] = { "/workspace", "/home/agent", "/tmp/a/b/c",
				       "/new/place", "/opt",	    "/usr/local/share",
				       "/mnt/",	     "/srv//x",	    "/run/shm" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		char line[100];
		struct sandbox *sb = make_one(dir, places[i], false);

		snprintf(line, sizeof(line), "cat %s/f", places[i]);
		assert_string_equal(sh(sb, line), "from the host");
		destroy(sb);
	}
}

/* Links in the template lead within the sandbox only. */
static void test_link_on_the_way(void **state)
{
	const char *dir = owned_dir();
	struct sandbox *sb = make_one(dir, "/dev/shm/x", false); /* a link to /run/shm */

	assert_string_equal(sh(sb, "cat /run/shm/x/f"), "from the host");
}

/* Callers resolve them. */
static void test_host_links(void **state)
{
	const char *dir = owned_dir();
	struct sandbox *sb;

	assert_int_equal(symlink(dir, in(dir, "self")), 0);
	assert_int_equal(symlink("/etc", in(dir, "etc")), 0);
	assert_int_not_equal(error_with(in(dir, "self"), "/mnt").code, ERR_NONE);
	assert_int_not_equal(error_with(in(dir, "self/f"), "/mnt").code, ERR_NONE);
	sb = make_one(dir, "/mnt", false);
	assert_string_equal(sh(sb, "cat /mnt/f"), "from the host");
	/* inside, its links mean the sandbox's own tree */
	assert_string_equal(sh(sb, "grep -c agent /mnt/etc/passwd"), "1");
}

static void test_refused(void **state)
{
	const char *dir = owned_dir();
	char long_path[5000];

	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[0] = '/';
	long_path[sizeof(long_path) - 1] = '\0';
	assert_int_equal(mkfifo(in(dir, "fifo"), 0666), 0);
	assert_int_equal(error_with(in(dir, "nothing"), "/mnt").code, ERR_INVALID);
	assert_int_equal(error_with("/nowhere", "/mnt").code, ERR_INVALID);
	assert_int_equal(error_with("relative", "/mnt").code, ERR_INVALID);
	assert_int_equal(error_with(dir, "relative").code, ERR_INVALID);
	assert_int_equal(error_with(dir, "/").code, ERR_INVALID);
	assert_int_equal(error_with(dir, "").code, ERR_INVALID);
	assert_int_equal(error_with(dir, long_path).code, ERR_INVALID);
	assert_int_equal(error_with(in(dir, "fifo"), "/mnt").code, ERR_NOT_A_FILE);
	assert_int_equal(error_with("/dev/null", "/mnt/x").code, ERR_NOT_A_FILE);
	assert_int_equal(error_with(dir, "/etc/passwd/below").code, ERR_INVALID);
	assert_int_equal(error_with(dir, "/usr/made/here").code, ERR_INVALID); /* read-only */
	assert_int_equal(error_with(dir, "/proc").code, ERR_INVALID);
	assert_int_equal(error_with(dir, "//proc/x").code, ERR_INVALID);
	assert_int_equal(error_with(dir, "/.").code, ERR_INVALID);
	assert_int_equal(error_with(dir, "/mnt/..").code, ERR_INVALID);
	assert_int_equal(error_with(in(dir, "f"), "/workspace").code, ERR_INVALID);
	assert_int_equal(error_with(dir, "/etc/passwd").code, ERR_INVALID);
}

/* Without a folder of the host there is an empty one, in which nothing can be put. */
static void test_nothing_of_the_host(void **state)
{
	const struct sandbox_mount m[] = { { STR_LIT(""), STR_LIT("/mnt/gone"), true } };
	struct sandbox *sb = make_with(m, 1);

	assert_string_equal(sh(sb, "ls -A /mnt/gone"), "");
	assert_int_not_equal(sh_code(sb, "touch /mnt/gone/x"), 0);
}

/* Messages go to a model: they name the place inside, not the host's path. */
static void test_messages(void **state)
{
	const char *dir = owned_dir();
	struct err e = error_with(in(dir, "nothing"), "/mnt/in");

	assert_null(strstr(e.msg, dir));
	assert_non_null(strstr(e.msg, "/mnt/in"));
}

static void test_forked(void **state)
{
	const char *rw = owned_dir(), *ro = owned_dir();
	const struct sandbox_mount m[] = {
		{ str_of(rw), STR_LIT("/workspace/rw"), true },
		{ str_of(ro), STR_LIT("/ro/dir"), false },
		{ str_of(in(ro, "f")), STR_LIT("/workspace/file"), false },
	};
	struct sandbox *sb = make_with(m, 3), *child;
	struct ran *r;

	put(sb, "own", "x");
	child = fork_of(sb, 2)->children[1]; /* idle */
	sh(child, "echo child > rw/c; cat /ro/dir/f file own");
	assert_string_equal(sh(sb, "cat rw/c"), "child"); /* one directory for both */
	assert_int_not_equal(sh_code(child, "touch /ro/dir/x"), 0);
	assert_owner(in(rw, "c"));
	r = ran_shell(sb, "sleep 1000");
	wait_ms(30);
	child = fork_of(sb, 1)->children[0]; /* busy */
	assert_string_equal(sh(child, "cat rw/c /ro/dir/f file"),
			    "child\nfrom the host\nfrom the host");
	child = fork_of(child, 1)->children[0];
	assert_string_equal(sh(child, "cat rw/c /ro/dir/f file"),
			    "child\nfrom the host\nfrom the host");
	exec_kill(r->x);
	ran_wait(r);
}

/* A mount never comes from the pool, whose sandboxes have none. */
static void test_not_from_pool(void **state)
{
	struct sandbox *sb;

	engine_stop();
	engine_start(&(struct box_config){ .pool = 2 });
	wait_ms(200);
	sb = make_one(owned_dir(), "/mnt", false);
	assert_false(sandbox_from_pool(sb));
	assert_string_equal(sh(sb, "cat /mnt/f"), "from the host");
}

static void test_thirty_two(void **state)
{
	static char places[32][32];
	struct sandbox_mount m[32];
	const char *dir = owned_dir();

	for (int i = 0; i < 32; i++) {
		snprintf(places[i], sizeof(places[i]), "/m/%d", i);
		m[i] = (struct sandbox_mount){ str_of(dir), str_of(places[i]), i & 1 };
	}
	assert_string_equal(sh(make_with(m, 32), "cat /m/*/f | wc -l"), "32");
}

/* ---- folders of Holt's own ------------------------------------------------------------------- */

/* A project that a sandbox may write, and a folder of Holt's own beside it, under an engine that
 * knows of that. */
struct beside {
	const char *project, *own;
};

static struct beside start_beside(void)
{
	struct beside b;
	const char *closed[1];

	engine_stop();
	b = (struct beside){ owned_dir(), host_dir() };
	closed[0] = b.own;
	host_file(in(b.own, "token"), "secret\n", 0644);
	assert_int_equal(mkdir(in(b.project, "race"), 0755), 0);
	host_file(in(b.project, "race/plain"), "plain\n", 0644);
	engine_start(&(struct box_config){ .closed = closed, .n_closed = 1 });
	return b;
}

static void test_own_folders(void **state)
{
	const struct beside b = start_beside();

	assert_int_equal(mkdir(in(b.own, "deep"), 0755), 0);
	assert_int_equal(symlink(b.own, in(b.project, "link")), 0);
	assert_int_equal(error_with(b.own, "/mnt").code, ERR_DENIED);
	assert_int_equal(error_with(in(b.own, "deep"), "/mnt").code, ERR_DENIED);
	assert_int_equal(error_with(in(b.own, "token"), "/mnt/token").code, ERR_DENIED);
	assert_int_not_equal(error_with(in(b.project, "link"), "/mnt").code, ERR_NONE);
	assert_int_not_equal(error_with(in(b.project, "link/token"), "/mnt/token").code, ERR_NONE);
	assert_int_equal(error_with("/", "/mnt").code, ERR_DENIED);
	assert_int_equal(error_with("/tmp", "/mnt").code, ERR_DENIED);
	assert_string_equal(sh(make_one(in(b.project, "race"), "/mnt", false), "ls /mnt"), "plain");
	assert_string_equal(
		sh(make_one(in(b.project, "race/plain"), "/mnt/f", false), "cat /mnt/f"), "plain");
}

/* One that is not there yet is closed where it will be. */
static void test_own_folder_to_come(void **state)
{
	const char *project, *closed[1];

	engine_stop();
	project = owned_dir();
	closed[0] = in(project, "holt/data");
	engine_start(&(struct box_config){ .closed = closed, .n_closed = 1 });
	assert_int_equal(error_with(project, "/mnt").code, ERR_DENIED);
	assert_int_equal(mkdir(in(project, "holt"), 0755), 0);
	assert_int_equal(mkdir(in(project, "holt/data"), 0755), 0);
	assert_int_equal(error_with(in(project, "holt/data"), "/mnt").code, ERR_DENIED);
}

/* What stands at a name when a sandbox is forked is no longer what was asked for. */
static void test_fork_after_swap(void **state)
{
	const struct beside b = start_beside();
	struct sandbox *sb = make_one(in(b.project, "race"), "/mnt", false);
	struct forked *f;

	assert_int_equal(rename(in(b.project, "race"), in(b.project, "away")), 0);
	assert_int_equal(symlink(b.own, in(b.project, "race")), 0);
	f = fork_start(sb, 1);
	wait_for(&f->done, "the fork");
	assert_int_not_equal(f->err.code, ERR_NONE);
	assert_string_equal(sh(sb, "ls /mnt"), "plain");
}

static struct {
	const char *link, *dir;
	_Atomic bool stop;
	unsigned long fooled; /* who looks first and opens then */
} swapping;

static void *swap_names(void *arg)
{
	for (unsigned i = 0; !swapping.stop;
	     i++) { /* neither so fast nor so slow that it is all one */
		renameat2(AT_FDCWD, swapping.link, AT_FDCWD, swapping.dir, RENAME_EXCHANGE);
		usleep(i * 37 % 400);
	}
	return NULL;
}

/* The control: looks by a path and opens by it, as one may not. */
static void look_then_open(const char *path)
{
	struct stat st;
	int fd;

	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return;
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd >= 0 && faccessat(fd, "token", F_OK, 0) == 0)
		swapping.fooled++;
	if (fd >= 0)
		close(fd);
}

/* A sandbox that may write the project swaps a folder in it with a link while others are given
 * that folder. */
static void test_swapped_while_mounted(void **state)
{
	const struct beside b = start_beside();
	const char *race = in(b.project, "race");
	int given = 0, refused = 0;
	pthread_t swapper;

	swapping.link = in(b.project, "link");
	swapping.dir = race;
	swapping.stop = false;
	swapping.fooled = 0;
	assert_int_equal(symlink(b.own, swapping.link), 0);
	assert_int_equal(pthread_create(&swapper, NULL, swap_names, NULL), 0);
	for (unsigned i = 0; i < soak(300) || (i < 300 && !(given && refused && swapping.fooled));
	     i++) {
		const struct sandbox_mount m = { str_of(race), STR_LIT("/mnt"), false };
		const struct sandbox_spec spec = { .mounts = &m, .n_mounts = 1 };
		struct made *made = make_start(&spec);

		for (int k = 0; k < 200; k++)
			look_then_open(race);
		wait_for(&made->done, "the sandbox");
		given += made->sb != NULL;
		refused += made->sb == NULL;
		if (made->sb) {
			assert_string_equal(sh(made->sb, "ls /mnt"), "plain");
			destroy(made->sb);
		}
	}
	swapping.stop = true;
	pthread_join(swapper, NULL);
	assert_true(given > 0);
	assert_true(refused > 0);
	assert_true(swapping.fooled > 0);
}

/* ---- forks of what was moved about ----------------------------------------------------------- */

/* Programs may rename what a mount stands in, and put a link there. */
static void test_forked_after_rename(void **state)
{
	struct sandbox *sb = make_one(owned_dir(), "/workspace/x/sys", true), *child;
	const char *masked;

	masked = sh(sb, "ls -A /proc/sys; mv x y && ln -s /proc x && cat y/sys/f");
	assert_string_equal(masked, "from the host");
	child = fork_of(sb, 1)->children[0];
	assert_string_equal(sh(sb, "ls -A /proc/sys; cat y/sys/f"), "from the host");
	assert_string_equal(sh(child, "ls -A /proc/sys; ls -d /proc/self /usr/bin"),
			    "/proc/self\n/usr/bin");
	child = fork_of(sb, 1)->children[0];
	assert_string_equal(sh(sb, "ls -A /proc/sys; cat y/sys/f"), "from the host");
}

/* A fork that can't be leaves its source as it was. */
static void test_forked_in_vain(void **state)
{
	struct sandbox *sb = make_one(owned_dir(), "/workspace/x/m", true);
	struct forked *f;

	if (!has_python(sb))
		return;
	/* its place comes to have a name that no call takes */
	sh(sb, "python3 -c '\n"
	       "import os\n"
	       "for i in range(20):\n"
	       "    os.mkdir(\"t\")\n"
	       "    os.rename(\"x\", \"t/\" + \"d\" * 250)\n"
	       "    os.rename(\"t\", \"x\")'");
	f = fork_start(sb, 1);
	wait_for(&f->done, "the fork");
	assert_string_equal(sh(sb, "ls -d /usr/bin /proc/self; ls -A /proc/sys; echo x > /dev/null;"
				   "find . -name f -execdir cat {} +"),
			    "/proc/self\n/usr/bin\nfrom the host");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		engine_test(test_readonly),
		engine_test(test_writable),
		engine_test(test_others_files),
		engine_test(test_no_privileges),
		engine_test(test_file),
		engine_test(test_nested),
		engine_test(test_places),
		engine_test(test_link_on_the_way),
		engine_test(test_host_links),
		engine_test(test_refused),
		engine_test(test_nothing_of_the_host),
		engine_test(test_messages),
		engine_test(test_forked),
		engine_test(test_not_from_pool),
		engine_test(test_thirty_two),
		engine_test(test_own_folders),
		engine_test(test_own_folder_to_come),
		engine_test(test_fork_after_swap),
		engine_test(test_swapped_while_mounted),
		engine_test(test_forked_after_rename),
		engine_test(test_forked_in_vain),
	};

	return ENGINE_MAIN(argc, argv, "mount", tests);
}
