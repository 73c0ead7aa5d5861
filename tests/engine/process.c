/* The processes of a sandbox as the hub sees them, and signals to them; also of one that fights
 * that. The fixture looks for leftovers after every test. */
#include "engine.h"

#include <signal.h>

struct seen {
	bool done, truncated;
	size_t n;
	struct process p[PROCESS_LIST_MAX];
	char text[PROCESS_LIST_MAX][PROCESS_COMMAND_MAX + 1];
	struct err err;
};
static struct seen seen;

static void on_list(void *arg, const struct process *p, size_t n, bool truncated,
		    const struct err *err)
{
	struct seen *s = arg;

	s->done = true;
	s->truncated = truncated;
	s->err = err ? *err : (struct err)ERR_INIT;
	s->n = n;
	for (size_t i = 0; i < n; i++) {
		s->p[i] = p[i];
		memcpy(s->text[i], p[i].command.p, p[i].command.n);
		s->text[i][p[i].command.n] = '\0';
	}
}

static struct seen *look(struct sandbox *sb)
{
	seen.done = false;
	process_list_start(sb, on_list, &seen);
	assert_false(seen.done);
	wait_for(&seen.done, "the list of processes");
	return &seen;
}

/* The process whose command is this; NULL. */
static const struct process *find(struct sandbox *sb, const char *command)
{
	struct seen *s = look(sb);

	assert_int_equal(s->err.code, ERR_NONE);
	for (size_t i = 0; i < s->n; i++) {
		assert_true(s->p[i].pid > 1 && (i == 0 || s->p[i].pid > s->p[i - 1].pid));
		if (strcmp(s->text[i], command) == 0)
			return &s->p[i];
	}
	return NULL;
}

static const struct process *await(struct sandbox *sb, const char *command)
{
	const struct process *p = NULL;

	for (int i = 0; i < 3000 && !p; i++) {
		p = find(sb, command);
		if (!p)
			wait_ms(10);
	}
	if (!p)
		fail_msg("%s does not run", command);
	return p;
}

static void on_signal(void *arg, const struct err *err)
{
	struct filed *f = arg;

	f->done = true;
	f->err = err ? *err : (struct err)ERR_INIT;
}

static enum err_code signalled(struct sandbox *sb, uint32_t pid, int signal)
{
	struct filed f = { .done = false };

	process_signal_start(sb, pid, signal, on_signal, &f);
	assert_false(f.done);
	wait_for(&f.done, "the answer to a signal");
	return f.err.code;
}

static void test_list(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r;
	const struct process *p;
	uint32_t shell;

	assert_int_equal(look(sb)->n, 0);
	r = ran_shell(sb, "sleep 1111 & sleep 2222 'a  b' 2>&1 || while :; do :; done");
	shell = await(sb, "sleep 1111")->parent;
	for (p = await(sb, "sleep 1111"); p->state != 'S'; p = await(sb, "sleep 1111"))
		wait_ms(10);
	assert_true(p->bytes > 0 && p->bytes < 64 << 20);
	for (int i = 0; i < 3000 && !(look(sb)->n == 2 && seen.p[0].cpu_ms >= 50); i++)
		wait_ms(10);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.p[0].pid, shell);
	assert_int_equal(seen.p[0].parent, 1);
	assert_true(seen.p[0].cpu_ms >= 50 && seen.p[0].age_ms >= 50);
	assert_true(seen.p[0].age_ms < 600 * 1000);
	assert_false(seen.truncated);
	exec_kill(r->x);
	ran_wait(r);
	for (int i = 0; i < 3000 && look(sb)->n > 0; i++)
		wait_ms(10);
	assert_int_equal(seen.err.code, ERR_NONE);
	assert_int_equal(seen.n, 0);
}

/* What it calls itself can't be taken for anything else. */
static void test_names(void **state)
{
	struct sandbox *sb = make(NULL);
	/* it ends once its parent is one that waits for nobody: the shell might have */
	struct ran *r = ran_shell(
		sb, "cp /bin/true './a) Z 1 (b'; { until grep -qx sleep /proc/$$/comm; do :; done; "
		    "exec './a) Z 1 (b'; } & exec sleep 1000");
	const struct process *p;

	for (p = await(sb, "[a) Z 1 (b]"); p->state != 'Z'; p = await(sb, "[a) Z 1 (b]"))
		wait_ms(10); /* it is on its way */
	assert_int_not_equal(p->parent, 1);
	exec_kill(r->x);
	ran_wait(r);
	r = ran_shell(sb, "exec tail -f /dev/null $(head -c 5000 /dev/zero | tr '\\0' x)");
	for (int i = 0;
	     i < 3000 && !(look(sb)->n == 1 && seen.p[0].command.n == PROCESS_COMMAND_MAX - 1); i++)
		wait_ms(10);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.p[0].command.n, PROCESS_COMMAND_MAX - 1);
	exec_kill(r->x);
	ran_wait(r);
}

static void test_signals(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r =
		ran_shell(sb, "trap 'echo told; exit 5' USR1; echo; while :; do sleep 0.01; done");
	struct ran *other = ran_shell(sb, "exec sleep 1000");
	uint32_t pid;

	while (r->out.n == 0)
		wait_ms(10);
	pid = await(sb, "sleep 1000")->pid;
	assert_int_equal(signalled(sb, seen.p[0].pid, SIGUSR1), ERR_NONE);
	ran_wait(r);
	assert_int_equal(r->result.exit_code, 5);
	assert_int_equal(signalled(sb, pid, SIGKILL), ERR_NONE);
	ran_wait(other);
	assert_int_equal(other->result.signal, SIGKILL);
	assert_int_equal(signalled(sb, pid, SIGKILL), ERR_PROCESS_NOT_FOUND);
	assert_int_equal(signalled(sb, 0, SIGKILL), ERR_INVALID);
	assert_int_equal(signalled(sb, 1, SIGKILL), ERR_INVALID);
	assert_int_equal(signalled(sb, UINT32_MAX, SIGKILL), ERR_INVALID);
	assert_int_equal(signalled(sb, pid, 0), ERR_INVALID);
	assert_int_equal(signalled(sb, pid, PROCESS_SIGNAL_MAX + 1), ERR_INVALID);
	assert_string_equal(sh(sb, "echo well"), "well");
}

static void test_too_many(void **state)
{
	struct sandbox *sb =
		make(&(struct sandbox_spec){ .limits = { .pids = 600, .memory = 512 << 20 } });
	struct ran *r = ran_shell(sb, "for i in $(seq 540); do sleep 1000 & done; echo; wait");

	while (r->out.n == 0)
		wait_ms(10);
	assert_int_equal(look(sb)->n, PROCESS_LIST_MAX);
	assert_true(seen.truncated);
	exec_kill(r->x);
	ran_wait(r);
}

/* Where no process can be made any more, their names are still told. */
static void test_no_room(void **state)
{
	struct sandbox *sb = make(&(struct sandbox_spec){ .limits = { .pids = 16 } });
	struct ran *r;

	if (limits_by("rlimit"))
		return; /* they count per user there, not per sandbox */
	r = ran_shell(sb, "for i in $(seq 40); do sleep 1000 & done 2>&1; echo; exec sleep 2000");
	for (int i = 0; i < 3000 && look(sb)->n < 14; i++)
		wait_ms(10);
	assert_int_equal(seen.err.code, ERR_NONE);
	assert_true(seen.n >= 14);
	exec_kill(r->x);
	ran_wait(r);
}

/* Who kills all that it can see gets no list wrong, and none kept back. */
static void test_killer(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r;

	if (!has_python(sb))
		skip();
	r = ran_shell(sb, "exec python3 -c 'import os, signal\nprint(flush=True)\nwhile True:\n"
			  " try: os.kill(-1, 9)\n except "
			  "OSError: pass'");
	while (r->out.n == 0 && !r->done)
		wait_ms(10);
	for (int i = 0; i < 200; i++) {
		look(sb);
		assert_int_equal(seen.err.code, ERR_NONE);
		assert_int_equal(seen.n, 1);
	}
	exec_kill(r->x);
	ran_wait(r);
	assert_string_equal(sh(sb, "echo well"), "well");
}

static void test_ended(void **state)
{
	struct sandbox *sb = make(NULL);
	struct made *m;

	seen.done = false;
	process_list_start(sb, on_list, &seen);
	m = destroy_start(sb);
	wait_for(&seen.done, "the list");
	wait_for(&m->done, "the end");
	assert_int_equal(look(sb)->err.code, ERR_SANDBOX_NOT_FOUND);
	assert_int_equal(signalled(sb, 2, SIGTERM), ERR_SANDBOX_NOT_FOUND);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		engine_test(test_list),	    engine_test(test_names),   engine_test(test_signals),
		engine_test(test_too_many), engine_test(test_no_room), engine_test(test_killer),
		engine_test(test_ended),
	};

	return ENGINE_MAIN(argc, argv, "process", tests);
}
