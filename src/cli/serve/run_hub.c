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

#include "base/err.h"
#include "base/id.h"
#include "base/mem.h"
#include "cli/common/verb.h"

enum { WORDS_MAX = 1 << 14, EXIT_HOLT = 125 };

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

/* Until NULL; how many. */
static size_t words_add_all(struct words *w, const char *const *all)
{
	size_t n = 0;

	while (all[n])
		words_add(w, all[n++]);
	return n;
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

int run_in_hub(const struct run_in_hub *r)
{
	static struct words up, exec, down;
	char name[ID_MAX];
	struct err e = ERR_INIT;
	int status;
	size_t n;

	id_make(name, "run");
	words_add(&up, "holt");
	words_add(&up, "up");
	words_add(&up, "--name");
	words_add(&up, name);
	/* where this is killed before it can remove it */
	words_add(&up, "--idle");
	words_add(&up, "10m");
	words_add_all(&up, r->up);
	words_add(&exec, "holt");
	words_add(&exec, "exec");
	n = words_add_all(&exec, r->exec);
	words_add(&exec, name);
	words_add(&exec, "--");
	words_add_all(&exec, r->exec + n + 1);
	words_add(&down, "holt");
	words_add(&down, "down");
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
