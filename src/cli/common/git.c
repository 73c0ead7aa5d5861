#include "cli/common/git.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

enum { ENV_MAX = 10 };

static const char *const quiet[] = {
	"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0",
	"-c", "maintenance.auto=false",	  "-c", "core.pager=cat",
};

/* Its environment. HOME: that of the user's own configuration. */
static void git_env(bool alone, char path[4096], char home[4096], char *to[ENV_MAX])
{
	const char *said = getenv("PATH"), *own = getenv("HOME");

	snprintf(path, 4096, "PATH=%s", said ? said : "/usr/bin:/bin");
	snprintf(home, 4096, "HOME=%s", alone || !own ? "/nonexistent" : own);
	*to++ = path;
	*to++ = home;
	*to++ = (char *)"GIT_TERMINAL_PROMPT=0";
	*to++ = (char *)"GIT_OPTIONAL_LOCKS=0";
	*to++ = (char *)"LC_ALL=C";
	/* objects that are missing come from nowhere: a remote names programs, too */
	*to++ = (char *)"GIT_ALLOW_PROTOCOL=none";
	*to++ = (char *)"GIT_NO_LAZY_FETCH=1";
	if (alone) {
		*to++ = (char *)"GIT_CONFIG_NOSYSTEM=1";
		*to++ = (char *)"GIT_CONFIG_GLOBAL=/dev/null";
	}
	*to = NULL;
}

pid_t git_start(const char *dir, bool alone, const char *const *words, int in, int out,
		struct err *e)
{
	char *argv[ARRAY_LEN(quiet) + GIT_WORDS_MAX + 4] = { (char *)"git", (char *)"-C",
							     (char *)dir };
	char path[4096], home[4096], *env[ENV_MAX];
	posix_spawn_file_actions_t actions;
	size_t n = 3;
	pid_t pid;
	int errnum;

	git_env(alone, path, home, env);
	for (size_t i = 0; i < ARRAY_LEN(quiet); i++)
		argv[n++] = (char *)quiet[i];
	for (; *words; words++)
		argv[n++] = (char *)*words;
	errnum = posix_spawn_file_actions_init(&actions);
	if (errnum)
		return err_sys(e, errnum, "start git");
	posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	errnum = posix_spawnp(&pid, "git", &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	return errnum ? err_sys(e, errnum, "start git") : pid;
}

int git_wait(pid_t pid, int most, struct err *e)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return err_sys(e, errno, "wait for git");
	}
	return WIFEXITED(status) && WEXITSTATUS(status) <= most
		     ? WEXITSTATUS(status)
		     : err_set(e, ERR_INVALID, "git failed; what it printed says why");
}

/* To its end. */
static int git_take_all(int fd, struct buf *ret, struct err *e)
{
	char piece[4096];
	ssize_t got;

	while ((got = read(fd, piece, sizeof(piece))) != 0) {
		if (got < 0 && errno != EINTR)
			return err_sys(e, errno, "read what git prints");
		if (got > 0 && buf_add(ret, piece, (size_t)got, e) < 0)
			return -1;
	}
	return 0;
}

pid_t git_open(const char *dir, bool alone, const char *const *words, struct str input, int *ret,
	       struct err *e)
{
	autoclose int in = memfd_create("git", MFD_CLOEXEC);
	int ends[2];
	pid_t pid;

	if (in < 0 || fd_write(in, input.p, input.n) < 0 || lseek(in, 0, SEEK_SET) < 0)
		return err_sys(e, errno, "write what git reads");
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	pid = git_start(dir, alone, words, in, ends[1], e);
	close(ends[1]);
	if (pid < 0)
		close(ends[0]);
	else
		*ret = ends[0];
	return pid;
}

int git_run(const char *dir, bool alone, const char *const *words, struct str input, int most,
	    struct buf *ret, struct err *e)
{
	struct err ignored = ERR_INIT;
	int from, result, status;
	pid_t pid = git_open(dir, alone, words, input, &from, e);

	if (pid < 0)
		return -1;
	result = git_take_all(from, ret, e);
	close(from);
	status = git_wait(pid, most, result < 0 ? &ignored : e);
	return result < 0 ? -1 : status;
}

int git_ask(const char *dir, bool alone, const char *const *words, struct buf *ret, struct err *e)
{
	return git_run(dir, alone, words, STR_NONE, 0, ret, e);
}

bool git_setting(const char *key, char ret[GIT_SETTING_MAX])
{
	const char *const words[] = { "config", "--get", key, NULL };
	autobuf struct buf said = BUF_INIT(GIT_SETTING_MAX);
	struct err ignored;

	if (git_ask(".", false, words, &said, &ignored) < 0 || said.n == 0)
		return false;
	snprintf(ret, GIT_SETTING_MAX, "%.*s", (int)strcspn(buf_str(&said).p, "\n"), said.p);
	return *ret != '\0';
}
