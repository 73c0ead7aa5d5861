#include "cli/serve/run_hub.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/id.h"

enum { WORDS_MAX = 1 << 14, TEXTS_MAX = 8 << 20, EXIT_HOLT = 125 };

struct words {
	const char *p[WORDS_MAX];
	size_t n;
};

static volatile sig_atomic_t child; /* that has our signals */

static void on_signal(int number)
{
	if (child > 0)
		kill((pid_t)child, number);
}

static void words_add(struct words *w, const char *word)
{
	if (w->n < WORDS_MAX - 1)
		w->p[w->n++] = word;
}

/* Its exit status; -1: it could not be started. What it prints is dropped if it is quiet. */
static int words_run(const struct words *w, bool quiet, struct err *e)
{
	posix_spawn_file_actions_t files;
	int status, failed;
	pid_t pid;

	posix_spawn_file_actions_init(&files);
	failed = quiet ? posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null",
							  O_WRONLY, 0)
		       : 0;
	failed = failed
		       ?: posix_spawn(&pid, "/proc/self/exe", &files, NULL,
				      (char *const *)(uintptr_t)w->p, environ);
	posix_spawn_file_actions_destroy(&files);
	if (failed)
		return err_sys(e, failed, "start holt %s", w->p[1]);
	child = pid;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return err_sys(e, errno, "wait for holt %s", w->p[1]);
	}
	child = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void on_nothing(int number)
{
}

/* A terminal's signals reach what runs by themselves. */
static void run_watch(void)
{
	const struct sigaction passed = { .sa_handler = on_signal };
	const struct sigaction of_tty = { .sa_handler = on_nothing };

	sigaction(SIGTERM, &passed, NULL);
	sigaction(SIGHUP, &passed, NULL);
	sigaction(SIGINT, &of_tty, NULL);
	sigaction(SIGQUIT, &of_tty, NULL);
}

/* ---- the options --------------------------------------------------------------------------- */

static bool verb_has(const struct verb *v, const char *option)
{
	for (size_t i = 0; i < v->options->n; i++) {
		if (strcmp(v->options->rows[i].name, option) == 0)
			return true;
	}
	return false;
}

/* An option that both verbs have goes to exec. --user goes to up, as root must be so from the
 * beginning. --allow-missing goes to neither, as the hub has its own. */
static struct words *words_for(const char *option, struct words *up, struct words *exec,
			       struct err *e)
{
	const struct verb *of_up = cli_find("up", e), *of_exec = cli_find("exec", e);

	if (of_exec && strcmp(option, "user") != 0 && verb_has(of_exec, option))
		return exec;
	if (of_up && strcmp(option, "allow-missing") != 0 && verb_has(of_up, option))
		return up;
	err_set(e, ERR_INVALID,
		"--module: the hub runs it, which has options of its own in place of --%s", option);
	return NULL;
}

/* All but the template, which is an operand of holt up. */
static int words_add_options(struct words *up, struct words *exec, const struct verb_input *in,
			     struct arena *a, struct err *e)
{
	for (size_t i = 0; i < in->verb->options->n; i++) {
		const struct option_row *o = &in->verb->options->rows[i];
		const char *word;

		if (strcmp(o->name, "template") == 0 || strcmp(o->name, "image") == 0 ||
		    strcmp(o->name, "rm") == 0)
			continue;
		for (size_t k = 0; (word = option_word(o, in->options, k, a, e)); k++) {
			struct words *to = words_for(o->name, up, exec, e);

			if (!to)
				return -1;
			words_add(to, word);
		}
		if (e->code)
			return -1;
	}
	return 0;
}

/* ---- the verbs ----------------------------------------------------------------------------- */

int run_in_hub(const struct verb_input *in, const char *image)
{
	static struct words up = { { "holt", "up", "--name" }, 3 };
	static struct words exec = { { "holt", "exec" }, 2 }, down = { { "holt", "down" }, 2 };
	AUTO(arena_free) struct arena *a = arena_new(TEXTS_MAX);
	char name[ID_MAX];
	struct err e = ERR_INIT;
	int status;

	if (in->n_operands == 0)
		err_set(&e, ERR_INVALID, "something is missing: a program to run");
	else if (!a)
		err_set(&e, ERR_LIMIT, "out of memory");
	if (e.code)
		return cli_fail(&e);
	id_make(name, "run");
	words_add(&up, name);
	/* where this is killed before it can remove it */
	words_add(&up, "--idle=10m");
	if (words_add_options(&up, &exec, in, a, &e) < 0)
		return cli_fail(&e);
	if (image)
		words_add(&up, image);
	words_add(&exec, name);
	words_add(&exec, "--");
	for (int i = 0; i < in->n_operands; i++)
		words_add(&exec, in->operands[i]);
	words_add(&down, name);
	status = words_run(&up, true, &e);
	if (status != 0)
		return status < 0 ? cli_fail(&e) : EXIT_HOLT;
	run_watch();
	status = words_run(&exec, false, &e);
	if (status < 0)
		status = cli_fail(&e);
	if (words_run(&down, true, &e) < 0)
		cli_fail(&e);
	return status;
}
