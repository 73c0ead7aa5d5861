/*
 * What a sandbox leaves in a project folder that nothing could keep it from making: repositories
 * below the top, which git of the host obeys where they are, and at the top if they were added as
 * submodules; repositories of other programs; files of the fixed list that are not made for so long
 * (held_is_needed()); and those of told_names. They are told in the log when the sandbox ends.
 *
 * The folder may be large, so a process of its own looks, for at most LOOK_S seconds, and
 * END_MS more where the warden ends.
 *
 * A sandbox may leave any number of these, so each class has lines of its own: none hides what is
 * of another class, and what is most likely to run something comes first.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/warden/held_find.h"
#include "box/warden/internal.h"
#include "box/wire/project.h"

enum {
	LOOKERS_MAX = 16,
	LOOK_S = 10,
	TOLD_MAX = 20,
	DEPTH_MAX = 64,
	LOOK_AGAIN_MS = 200,
	LOOK_FD = 3,
	WHY_MAX = 256,
	CONFIG_MAX = 16384, /* of one that says nothing unusual */
	END_MS = 2000,
	END_LAST_MS = 500,
	END_PAUSE_US = 5000
};

/* Others that tools act on, which a sandbox may write: what reads them asks first, or is installed
 * by files of the fixed list, or is run by few people where a sandbox has worked. */
static const char *const told_names[] = {
	".RData",
	".Renviron",
	".Rprofile",
	".aider.conf.yml",
	".amp",
	".arcconfig",
	".autoenv",
	".autoenv.zsh",
	".byebugrc",
	".cline",
	".config/lefthook.json",
	".config/lefthook.toml",
	".config/lefthook.yaml",
	".config/lefthook.yml",
	".config/mise",
	".config/mise.toml",
	".continue",
	".crush.json",
	".dir-locals.el",
	".direnv",
	".emacs.desktop",
	".erlang",
	".exrc",
	".factory",
	".gdbinit",
	".gh-dash.yml",
	".ghci",
	".ghcid",
	".git/lazygit.yml",
	".git/sl/config",
	".github/copilot",
	".github/hooks",
	".github/mcp.json",
	".gnuplot",
	".goose",
	".grok",
	".helix",
	".iex.exs",
	".iflow",
	".irbrc",
	".jdbrc",
	".junie",
	".junie/mcp",
	".kilocode",
	".kimi",
	".lazy.lua",
	".lazygit.yml",
	".lefthook.json",
	".lefthook.toml",
	".lefthook.yaml",
	".lldbinit",
	".lvimrc",
	".mise",
	".mise.local.toml",
	".neoconf.json",
	".nvimrc",
	".ocamlinit",
	".octaverc",
	".openhands",
	".overcommit.yml",
	".pdbrc",
	".pdbrc.py",
	".perldb",
	".pi",
	".pi/extensions",
	".prototools",
	".pryrc",
	".psysh.php",
	".qoder",
	".rdebugrc",
	".repo/repo",
	".rootrc",
	".rovodev",
	".rvmrc",
	".serena",
	".shadowenv.d",
	".singularrc",
	".tabnine",
	".tool-versions",
	".trae",
	".valgrindrc",
	".vibe",
	".vim",
	".vimrc",
	".vs",
	".ycm_extra_conf.py",
	"_irbrc",
	"autoexec.sas",
	"crush.json",
	"gptme.toml",
	"irbrc",
	"jdb.ini",
	"jupyter_config.json",
	"jupyter_config.py",
	"jupyter_console_config.py",
	"jupyter_lab_config.py",
	"jupyter_notebook_config.json",
	"jupyter_notebook_config.py",
	"jupyter_server_config.json",
	"jupyter_server_config.py",
	"lefthook-local.json",
	"lefthook-local.toml",
	"lefthook-local.yaml",
	"lefthook.json",
	"lefthook.toml",
	"lefthook.yaml",
	"mise.local.toml",
	"profile.do",
	"rootlogon.C",
	"startup.m",
};

/* Repositories of other programs than git, which run what these files say, or what the repository
 * says that they name. What such a program writes each day is not among them. */
static const struct {
	const char *dir, *program;
	const char *files[6];
} repositories[] = {
	{ ".bzr", "bzr", { ".bzr/branch/branch.conf", ".bzr/branch/location" } },
	{ ".hg", "hg", { ".hg/hgrc", ".hg/hgrc-not-shared", ".hg/requires", ".hg/sharedpath" } },
	{ ".jj",
	  "jj",
	  { ".jj", ".jj/repo", ".jj/repo/config.toml", ".jj/repo/config-id",
	    ".jj/repo/store/git_target", ".jj/workspace-config.toml" } },
	{ ".pijul", "pijul", { ".pijul/config" } },
	{ ".sl", "sl", { ".sl/config", ".sl/requires", ".sl/sharedpath" } },
	{ "_darcs", "darcs", { "_darcs/prefs/defaults", "_darcs/prefs/prefs" } },
};

static pid_t lookers[LOOKERS_MAX]; /* 0: free */

enum left_class {
	LEFT_LISTED, /* never cut, as there are few: what the lists of the fixed names have */
	LEFT_RUNS, /* a repository that makes a program run something */
	LEFT_UNSEEN, /* a folder that could not be looked through */
	LEFT_PLAIN, /* a repository as `git init` and `git clone` make it */
	LEFT_NAMED, /* told_names */
	LEFT_CLASSES
};

enum { LEFT_PATH_MAX = 320 };

struct left {
	const struct project *project;
	unsigned n[LEFT_CLASSES];
	char plain[TOLD_MAX][LEFT_PATH_MAX];
};

static volatile sig_atomic_t late; /* no more is looked for */

static bool is_new(const struct left *l, int dir, const char *path)
{
	const struct timespec *since = &l->project->since;
	struct stat st;

	if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	return st.st_ctim.tv_sec > since->tv_sec ||
	       (st.st_ctim.tv_sec == since->tv_sec && st.st_ctim.tv_nsec >= since->tv_nsec);
}

static void PRINTF_LIKE(4, 5)
	left_tell(struct left *l, enum left_class class, const char *path, const char *fmt, ...)
{
	char why[WHY_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (l->n[class]++ < TOLD_MAX || class == LEFT_LISTED)
		log_warn("%.300s/%.300s %s", l->project->of.host, path, why);
}

#define SAMPLE ".sample" /* of a hook that git does not run */
#define LEFT_NEW "is new, or was changed while a sandbox could write the folder: "

static bool has(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Whether git takes a directory for a repository without a .git. */
static bool is_bare(int dir)
{
	return has(dir, "HEAD") &&
	       (has(dir, "commondir") || (has(dir, "objects") && has(dir, "refs")));
}

/* Also of one that was written in place, as its directory does not tell that. */
static bool has_new(const struct left *l, int dir, const char *path)
{
	autofolder struct folder f = folder_at(dir, path);
	bool new = is_new(l, dir, path);
	int more = 0;

	if (!f.d)
		return new;
	while (!new && (more = folder_next(&f)) > 0)
		new = is_new(l, folder_fd(&f), f.entry->d_name);
	return new || more < 0;
}

/* The files that git obeys are new; its index and objects change with each commit. */
static bool has_new_git(const struct left *l, int git)
{
	return is_new(l, git, "config") || is_new(l, git, "config.worktree") ||
	       is_new(l, git, "commondir") || has_new(l, git, "hooks");
}

static bool has_hooks(int git)
{
	autofolder struct folder f = folder_at(git, "hooks");
	int more = 0;

	if (!f.d)
		return has(git, "hooks"); /* a link */
	while ((more = folder_next(&f)) > 0) {
		size_t n = strlen(f.entry->d_name);

		if (n < strlen(SAMPLE) || strcmp(f.entry->d_name + n - strlen(SAMPLE), SAMPLE) != 0)
			return true;
	}
	return more < 0;
}

/* Whether git does more there than in what `git init` or `git clone` has made. */
static bool runs_something(int git)
{
	char text[CONFIG_MAX];
	autoclose int fd = openat(git, "config", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	return n < 0 || n == sizeof(text) || has(git, "config.worktree") || has(git, "commondir") ||
	       has_hooks(git) || held_config_runs((struct str){ text, (size_t)n });
}

#define LEFT_GIT                                                                                   \
	LEFT_NEW "git runs what this repository's configuration says where you work in it, and "   \
		 "at the top if it was added as a submodule"

static void left_look_at_git(struct left *l, int dir, const char *path)
{
	autoclose int git = openat(dir, ".git", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool below = git >= 0 ? has_new_git(l, git) : is_new(l, dir, ".git");
	bool bare = is_bare(dir) && has_new_git(l, dir);

	if (!below && !bare)
		return;
	/* a .git that is a file is told as one that does */
	if ((below && runs_something(git)) || (bare && runs_something(dir)))
		left_tell(l, LEFT_RUNS, path, "%s", LEFT_GIT);
	else if (l->n[LEFT_PLAIN]++ < TOLD_MAX)
		snprintf(l->plain[l->n[LEFT_PLAIN] - 1], LEFT_PATH_MAX, "%s", path);
}

/* At the top what one of Mercurial had at the start is read-only. What it lacked may be an empty
 * file still (held_list.c), which says nothing. */
static void left_look_at_other(struct left *l, int dir, const char *path, size_t at)
{
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(repositories[at].files); i++) {
		const char *file = repositories[at].files[i];

		if (!file || fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    (S_ISREG(st.st_mode) && st.st_size == 0) || !is_new(l, dir, file))
			continue;
		left_tell(l, LEFT_RUNS, *path ? path : repositories[at].dir,
			  LEFT_NEW "%s runs what this repository's configuration says where you "
				   "work in it",
			  repositories[at].program);
		return;
	}
}

unsigned left_repositories(int dir)
{
	unsigned all = 0;

	for (size_t i = 0; i < ARRAY_LEN(repositories); i++)
		all |= (unsigned)has(dir, repositories[i].dir) << i;
	return all;
}

/* Whether what a directory has by that name is to be looked through; below: its path. */
static bool left_goes_on(const struct dirent *one, const char *path, char below[WIRE_PATH_MAX])
{
	if (strcmp(one->d_name, ".git") == 0 ||
	    (one->d_type != DT_DIR && one->d_type != DT_UNKNOWN))
		return false;
	return snprintf(below, WIRE_PATH_MAX, "%s%s%s", path, *path ? "/" : "", one->d_name) <
	       WIRE_PATH_MAX;
}

/* Takes over fd. */
static void left_walk(struct left *l, int fd, const char *path, unsigned depth)
{
	autofolder struct folder f = folder_take(fd);
	char below[WIRE_PATH_MAX];
	bool has_git = false;
	unsigned others = 0;
	int more = 0;

	if (depth == DEPTH_MAX) {
		left_tell(l, LEFT_UNSEEN, path, "is nested too deeply to be looked through");
		return;
	}
	while (!late && (more = folder_next(&f)) > 0) {
		int next;

		has_git = has_git || strcasecmp(f.entry->d_name, ".git") == 0 ||
			  strcasecmp(f.entry->d_name, "HEAD") == 0;
		for (size_t i = 0; i < ARRAY_LEN(repositories); i++)
			others |= (unsigned)!strcasecmp(f.entry->d_name, repositories[i].dir) << i;
		if (!left_goes_on(f.entry, path, below))
			continue;
		next = openat(fd, f.entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next >= 0)
			left_walk(l, next, below, depth + 1);
	}
	if (more < 0)
		left_tell(l, LEFT_UNSEEN, path, "could not be looked through to its end");
	if (has_git && depth > 0)
		left_look_at_git(l, fd, path);
	for (size_t i = 0; i < ARRAY_LEN(repositories); i++) {
		if (others >> i & 1)
			left_look_at_other(l, fd, path, i);
	}
}

/* The second time a file system hangs. */
static void left_late(int signal)
{
	(void)signal;
	if (late)
		_exit(1);
	late = true;
	alarm(1);
}

#define LEFT_TOOLS LEFT_NEW "tools of this machine may run what it says"

static void left_look_for_listed(struct left *l)
{
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		const struct project_entry *n = &project_entries[i];

		if (!strchr(n->path, '/') && !n->of_home && !n->implicit &&
		    !(l->project->kept >> i & 1) && is_new(l, LOOK_FD, n->path))
			left_tell(l, LEFT_LISTED, n->path, "%s", LEFT_TOOLS);
	}
	for (size_t i = 0; i < ARRAY_LEN(repositories); i++) {
		if (l->project->repositories >> i & 1 && !has(LOOK_FD, repositories[i].dir))
			left_tell(l, LEFT_LISTED, repositories[i].dir,
				  "is gone: it was there when a sandbox was given the folder");
	}
	if (is_new(l, LOOK_FD, ".git/rebase-merge/git-rebase-todo"))
		left_tell(l, LEFT_LISTED, ".git/rebase-merge",
			  LEFT_NEW "git rebase --continue and --skip run its exec lines");
}

/* What is least likely to be meant to harm. */
static void left_tell_rest(struct left *l)
{
	unsigned hidden = 0, runs = 0;

	for (unsigned i = 0; i < l->n[LEFT_PLAIN] && i < TOLD_MAX; i++)
		log_warn("%.300s/%s %s", l->project->of.host, l->plain[i], LEFT_GIT);
	for (size_t i = 0; i < ARRAY_LEN(told_names); i++) {
		if (has_new(l, LOOK_FD, told_names[i]))
			left_tell(l, LEFT_NAMED, told_names[i], "%s", LEFT_TOOLS);
	}
	for (size_t i = LEFT_RUNS; i < LEFT_CLASSES; i++) {
		hidden += l->n[i] > TOLD_MAX ? l->n[i] - TOLD_MAX : 0;
		runs = i == LEFT_RUNS ? hidden : runs;
	}
	if (hidden)
		log_warn("%s: %u more are not shown: %u repositories with commands, %u others",
			 l->project->of.host, hidden, runs, hidden - runs);
}

static _Noreturn void left_look(const struct project *p)
{
	struct left l = { .project = p };
	/* not the warden's own descriptor, which has the lock of the folder */
	int top = held_open(p->lock, ".", O_RDONLY | O_DIRECTORY, 0), again;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (top < 0 || dup2(top, LOOK_FD) < 0)
		_exit(1);
	/* mounts, locks and pipes that others wait for the end of */
	syscall(SYS_close_range, LOOK_FD + 1, ~0u, 0);
	signal(SIGALRM, left_late);
	alarm(LOOK_S);
	left_look_for_listed(&l);
	again = dup(LOOK_FD); /* left_walk() takes it */
	if (again >= 0)
		left_walk(&l, again, "", 0);
	if (late)
		log_warn("a folder that a sandbox could write is too large to look for new "
			 "repositories in");
	left_tell_rest(&l);
	_exit(0);
}

void left_start(const struct project *p)
{
	for (size_t i = 0; i < LOOKERS_MAX; i++) {
		if (lookers[i])
			continue;
		lookers[i] = fork();
		if (lookers[i] == 0)
			left_look(p);
		if (lookers[i] < 0)
			lookers[i] = 0;
		return;
	}
	log_warn("too many sandboxes end at once: it is not looked for what one left in %s",
		 p->of.host);
}

void left_end(void)
{
	uint64_t deadline = clock_ms() + END_MS;

	while (left_chores() >= 0 && clock_ms() < deadline)
		usleep(END_PAUSE_US);
	for (size_t i = 0; i < LOOKERS_MAX; i++) {
		if (lookers[i])
			kill(lookers[i], SIGALRM); /* left_late() */
	}
	while (left_chores() >= 0 && clock_ms() < deadline + END_LAST_MS)
		usleep(END_PAUSE_US);
}

int left_chores(void)
{
	bool any = false;

	for (size_t i = 0; i < LOOKERS_MAX; i++) {
		if (lookers[i] && waitpid(lookers[i], NULL, WNOHANG) != 0)
			lookers[i] = 0;
		any = any || lookers[i];
	}
	return any ? LOOK_AGAIN_MS : -1;
}
