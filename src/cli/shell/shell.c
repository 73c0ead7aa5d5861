/*
 * `holt shell`: verbs of holt, a line each. A line is words and nothing more (cli/common/split.h).
 * Each is run as the whole program would, in a process of its own: no system shell reads it.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/common/split.h"
#include "cli/common/verb.h"
#include "cli/shell/edit.h"

enum { LINE_MEMORY = 1 << 20 };

/* ---- what could stand there ---------------------------------------------------------------- */

static void complete(char **before, const struct edit_words *all)
{
	const struct verb *v = NULL;
	struct err none;

	if (!before[0]) {
		for (size_t i = 0; i < verbs_n; i++)
			all->tell(all->to, verbs[i]->name);
		all->tell(all->to, "exit");
	} else if (!before[1]) {
		v = cli_find(before[0] + (before[0][0] == '/'), &none);
	}
	for (const struct verb *const *w = v ? v->words : NULL; w && *w; w++)
		all->tell(all->to, strrchr((*w)->name, ' ') + 1); /* "mcp call": "call" */
}

/* ---- a line -------------------------------------------------------------------------------- */

/* Its exit status, as a shell would tell it. */
static int shell_run(const struct cli *cli, int argc, char **argv, struct err *e)
{
	pid_t pid;
	int status = 0;

	if (strcmp(argv[1], "shell") == 0)
		return err_set(e, ERR_INVALID, "this is holt shell");
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return err_sys(e, errno, "make a process");
	if (pid == 0) {
		signal(SIGINT, SIG_DFL);
		signal(SIGQUIT, SIG_DFL);
		_exit(cli_main(cli, argc, argv));
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct shell {
	const struct cli *cli;
	int status; /* of the last line */
	bool over;
};

/* The words of a line behind the name of the program; "/verb" is "verb". */
static int shell_words(const char *line, struct arena *a, char ***ret, struct err *e)
{
	char **words = split_command(line, a, e), **argv;
	size_t n = 0;

	while (words && words[n])
		n++;
	argv = words ? arena_array(a, n + 2, sizeof(char *), e) : NULL;
	if (!argv)
		return -1;
	argv[0] = (char *)(uintptr_t) "holt";
	for (size_t i = 0; i < n; i++)
		argv[i + 1] = words[i];
	argv[1] += argv[1][0] == '/';
	*ret = argv;
	return (int)n + 1;
}

static void shell_line(struct shell *s, const char *line)
{
	AUTO(arena_free) struct arena *a = arena_new(LINE_MEMORY);
	struct err e = ERR_INIT;
	char **argv;
	int argc;

	line += strspn(line, " \t");
	if (!a || !*line || *line == '#')
		return;
	argc = shell_words(line, a, &argv, &e);
	if (argc > 0 && (strcmp(argv[1], "exit") == 0 || strcmp(argv[1], "quit") == 0)) {
		s->over = true;
		return;
	}
	s->status = argc < 0 ? -1 : shell_run(s->cli, argc, argv, &e);
	if (s->status < 0)
		s->status = cli_fail(&e);
}

static int shell_edited(struct shell *s, struct err *e)
{
	struct edit *ed = edit_new("holt> ", complete, e);
	const char *line = "";

	if (!ed)
		return -1;
	while (!s->over && (line = edit_line(ed)))
		shell_line(s, line);
	if (!line)
		putchar('\n');
	edit_free(ed);
	return 0;
}

static void shell_read(struct shell *s)
{
	autofree char *line = NULL;
	size_t room = 0;
	ssize_t n;

	while (!s->over && (n = getline(&line, &room, stdin)) >= 0) {
		line[strcspn(line, "\r\n")] = '\0'; /* a byte 0 ends it, too */
		shell_line(s, line);
	}
}

static int shell_verb_run(const struct verb_input *in, struct err *e)
{
	static struct shell s;

	s.cli = in->cli;
	/* for the program that a line runs, and not for this one */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		shell_read(&s);
	else if (shell_edited(&s, e) < 0)
		return -1;
	return s.status;
}

const struct verb shell_verb = {
	.name = "shell",
	.usage = "[OPTION...]",
	.doc = "Read verbs of holt, one per line, with history and completion.",
	.more = "A line has a verb with its options and operands, such as \"mcp list\" or\n"
		"\"/mcp list\". Quotes and backslashes are as in other shells; nothing else is.",
	.page = "holt-shell",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.run = shell_verb_run,
};
