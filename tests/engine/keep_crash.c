/*
 * Hubs that are killed at any moment of their work. A process of its own is the hub: it makes,
 * forks, fills and ends sandboxes, and writes a line on a pipe before it begins something and after
 * it was acknowledged. It is killed; then this process is the hub, and holds what is there to those
 * lines; then the next one is started.
 *
 */
#include "engine.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "host.h"

enum { KNOWN_MAX = 4096, LIVE_MAX = 6, LINES_FD = 3, KILL_WITHIN_MS = 60, LINGER_MS = 60000 };

static char dir[64], kept_dir[80];
static unsigned seed;

static unsigned any(unsigned below)
{
	return (unsigned)rand_r(&seed) % below;
}

/* ---- the hub that is killed ------------------------------------------------------------------ */

static struct sandbox *mine[64];
static size_t n_mine;

static void tell(const char *what, const char *id, unsigned n)
{
	dprintf(LINES_FD, "%s %s %u\n", what, id, n);
}

static void take(void *arg, struct sandbox *sb)
{
	mine[n_mine++] = sandbox_ref(sb);
}

static void fill(struct sandbox *sb, unsigned n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	tell("fill", sandbox_id(sb), n);
	put(sb, "n", text);
	tell("filled", sandbox_id(sb), n);
}

static void create_one(void)
{
	struct sandbox *sb = sandbox_ref(make(NULL));

	tell("made", sandbox_id(sb), 0);
	mine[n_mine++] = sb;
	fill(sb, 1);
	sh(sb, SLEEPS);
	tell("sleeps", sandbox_id(sb), 0);
}

static void fork_one(struct sandbox *sb)
{
	struct forked *f = fork_of(sb, 2);

	for (size_t i = 0; i < f->n; i++)
		mine[n_mine++] = sandbox_ref(f->children[i]);
	/* in one line, since it is acknowledged as a whole */
	dprintf(LINES_FD, "forked %s %s %s\n", sandbox_id(sb), sandbox_id(f->children[0]),
		sandbox_id(f->children[1]));
}

static void end_one(size_t i)
{
	tell("end", sandbox_id(mine[i]), 0);
	destroy(mine[i]);
	tell("ended", sandbox_id(mine[i]), 0);
	sandbox_unref(mine[i]);
	mine[i] = mine[--n_mine];
}

static void be_hub(void **state)
{
	seed = (unsigned)clock_ns();
	engine_start(&(struct box_config){
		.pool = any(3),
		.warden_dir = getenv("KEPT_DIR"),
		.linger_ms = LINGER_MS,
		.sleep_after_ms = any(2) * 5,
	});
	box_each(box, take, NULL);
	dprintf(LINES_FD, "begun - 0\n");
	for (unsigned n = 2;; n++) {
		struct sandbox *sb = n_mine ? mine[any((unsigned)n_mine)] : NULL;
		unsigned what = any(10);

		if (!sb || what < 2)
			create_one();
		else if (what < 5)
			fill(sb, n * 100 + any(100));
		else if (what < 7)
			ran_shell(sb, "tail -f /dev/null | cat; :"); /* which nobody waits for */
		else if (what < 8)
			fork_one(sb);
		else
			put_start(sb, "large", pattern(MIB), NULL);
		while (n_mine > LIVE_MAX)
			end_one(any((unsigned)n_mine));
	}
}

/* ---- what it has said ------------------------------------------------------------------------ */

struct known {
	char id[80];
	bool ending, ended, sleeps;
	unsigned begun, done; /* of the file */
};

static struct known known[KNOWN_MAX];
static size_t n_known;

static struct known *know(const char *id)
{
	for (size_t i = 0; i < n_known; i++) {
		if (strcmp(known[i].id, id) == 0)
			return &known[i];
	}
	return NULL;
}

static struct known *know_new(const char *id, unsigned begun, unsigned done)
{
	struct known *k = &known[n_known++];

	assert_true(n_known < KNOWN_MAX);
	*k = (struct known){ .begun = begun, .done = done };
	snprintf(k->id, sizeof(k->id), "%s", id);
	return k;
}

static void hear(const char *line)
{
	char what[16], id[80], one[80], two[80];
	struct known *k;
	unsigned n;

	if (sscanf(line, "forked %79s %79s %79s", id, one, two) == 3) {
		k = know(
			/* whose file they have, also if the hub that wrote it was killed
			 * meanwhile */
			id);
		know_new(one, k ? k->begun : 0, k ? k->done : 0);
		know_new(two, k ? k->begun : 0, k ? k->done : 0);
		return;
	}
	if (sscanf(line, "%15s %79s %u", what, id, &n) != 3)
		return; /* cut off by the kill */
	k = strcmp(what, "made") == 0 ? know_new(id, 0, 0) : know(id);
	if (!k)
		return;
	if (strcmp(what, "fill") == 0)
		k->begun = n;
	else if (strcmp(what, "filled") == 0)
		k->done = n;
	else if (strcmp(what, "sleeps") == 0)
		k->sleeps = true;
	else if (strcmp(what, "end") == 0)
		k->ending = true;
	else if (strcmp(what, "ended") == 0)
		k->ended = true;
}

/* One hub from its start to its being killed. */
static void run_hub(void)
{
	char line[256];
	int lines[2];
	FILE *f;
	pid_t pid;
	bool begun = false;

	assert_int_equal(pipe2(lines, O_CLOEXEC), 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* it would never end */
		if (dup2(lines[1], LINES_FD) != LINES_FD)
			_exit(1);
		close(lines[0]);
		setenv("KEPT_DIR", kept_dir, 1);
		execl("/proc/self/exe", "test", libexec_dir(), "--hub", NULL);
		_exit(1);
	}
	close(lines[1]);
	f = fdopen(lines[0], "r");
	while (!begun && fgets(line, sizeof(line), f))
		begun = strncmp(line, "begun", 5) == 0;
	assert_true(begun);
	usleep(any(KILL_WITHIN_MS * 1000));
	kill(pid, SIGKILL);
	while (fgets(line, sizeof(line), f)) {
		if (strchr(line, '\n'))
			hear(line);
	}
	fclose(f);
	waitpid(pid, NULL, 0);
}

/* ---- and what is there ----------------------------------------------------------------------- */

static void check_one(struct known *k)
{
	struct sandbox *sb = box_find(box, str_of(k->id));
	struct filed *f;
	unsigned n;

	if (k->ended && sb)
		fail_msg("%s is there again", k->id);
	if (!k->ending && !sb)
		fail_msg("%s is not there", k->id);
	if (!sb)
		return;
	assert_true(sandbox_adopted(sb));
	if (k->done) {
		f = filed(get_start(sb, "n", 0, 100));
		assert_int_equal(f->err.code, 0);
		n = (unsigned)atoi(buf_str(&f->bytes).p);
		if (n != k->done && n != k->begun)
			fail_msg("%s: %u, not %u or %u", k->id, n, k->done, k->begun);
		k->begun = k->done = n;
	}
	if (k->sleeps)
		assert_int_equal(sh_code(sb, "grep -qsx sleep /proc/[0-9]*/comm"), 0);
	/* It is killed, which on a busy machine may be some time before it is dead; and a zombie
	 * may wait for a leader that is not yet quite dead. */
	for (int i = 0; sh_code(sb, "grep -qs '(tail) [^ZX]' /proc/[0-9]*/stat") == 0; i++) {
		if (i == 100)
			fail_msg("%s: what the hub before ran goes on", k->id);
		wait_ms(50);
	}
}

static size_t unknown_ones;

/* Confirmed, but killed before it could say so: nobody knows of it, so the hub would end it. */
static void end_unknown(void *arg, struct sandbox *sb)
{
	if (know(sandbox_id(sb)))
		return;
	unknown_ones++;
	sandbox_destroy_start(sb, NULL, NULL);
}

static void test_killed_hubs(void **state)
{
	const struct box_config config = { .warden_dir = kept_dir, .linger_ms = LINGER_MS };

	strcpy(dir, "/tmp/holt-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(kept_dir, sizeof(kept_dir), "%s/warden", dir);
	seed = (unsigned)clock_ns();
	for (unsigned i = 0; i < soak(50); i++) {
		run_hub();
		if (i % 3 == 2) /* now and then the next one is killed, too, before anybody looks */
			run_hub();
		engine_start(&config);
		for (size_t k = 0; k < n_known; k++)
			check_one(&known[k]);
		unknown_ones = 0;
		box_each(box, end_unknown, NULL);
		assert_in_range(unknown_ones, 0, 4);
		engine_leave();
	}
	engine_start(&config);
	engine_stop();
	host_remove(dir);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest hub[] = { cmocka_unit_test(be_hub) };
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_killed_hubs) };

	if (argc == 3)
		return ENGINE_MAIN(2, argv, "hub", hub);
	return ENGINE_MAIN(argc, argv, "keep_crash", tests);
}
