/*
 * Repositories of git that a sandbox leaves (left.c).
 *
 * A sandbox may make one under a harmless name, and the next may rename it, which changes nothing
 * that is in it. So its files are judged wherever they are made, by what they say.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/gitconf.h"
#include "base/mem.h"
#include "box/warden/held_find.h"
#include "box/warden/left.h"

#define SAMPLE ".sample" /* of a hook that git does not run */

static const char *const config_names[] = { "config", "config.worktree" };

static const char *const hook_names[] = {
	"applypatch-msg",     "commit-msg",
	"fsmonitor-watchman", "post-applypatch",
	"post-checkout",      "post-commit",
	"post-index-change",  "post-merge",
	"post-receive",	      "post-rewrite",
	"post-update",	      "pre-applypatch",
	"pre-auto-gc",	      "pre-commit",
	"pre-merge-commit",   "pre-push",
	"pre-rebase",	      "pre-receive",
	"prepare-commit-msg", "proc-receive",
	"push-to-checkout",   "reference-transaction",
	"sendemail-validate", "update",
};

bool left_is_bare(int dir)
{
	return left_has(dir, "HEAD") &&
	       (left_has(dir, "commondir") || (left_has(dir, "objects") && left_has(dir, "refs")));
}

/* The text is valid until the next. 0: there is none; -1: it can't be read as a whole. */
static int left_read(int git, const char *name, struct str *ret)
{
	static char text[GITCONF_BYTES_MAX];
	autoclose int fd = openat(git, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	size_t n = 0;
	ssize_t got = 0;

	if (fd < 0)
		return left_has(git, name) ? -1 : 0;
	while (n < sizeof(text) && (got = read(fd, text + n, sizeof(text) - n)) > 0)
		n += (size_t)got;
	*ret = (struct str){ text, n };
	return got < 0 || n == sizeof(text) ? -1 : 1;
}

static bool left_has_hooks(int git, bool any_name)
{
	autofolder struct folder f = folder_at(git, "hooks");
	int more = 0;

	if (!f.d)
		return any_name && left_has(git, "hooks"); /* a link */
	while ((more = folder_next(&f)) > 0) {
		const char *name = f.entry->d_name;
		size_t n = strlen(name);

		if (any_name &&
		    (n < strlen(SAMPLE) || strcmp(name + n - strlen(SAMPLE), SAMPLE) != 0))
			return true;
		for (size_t i = 0; i < ARRAY_LEN(hook_names); i++) {
			if (strcmp(name, hook_names[i]) == 0)
				return true;
		}
	}
	return any_name && more < 0;
}

/* Whether git does more there than in what `git init` or `git clone` has made. */
static bool left_runs(int git)
{
	struct str text;
	int said = left_read(git, "config", &text);

	return said <= 0 || held_config_runs(text) != 0 || left_has(git, "config.worktree") ||
	       left_has(git, "commondir") || left_has_hooks(git, true);
}

/* Git looks for other names than this directory's. Whether something new in it would run a program
 * if the directory were renamed. */
static bool left_may_run(const struct left *l, int dir)
{
	struct str text;

	for (size_t i = 0; i < ARRAY_LEN(config_names); i++) {
		int said = left_is_new_text(l, dir, config_names[i])
				 ? left_read(dir, config_names[i], &text)
				 : 0;

		if (said < 0 || (said > 0 && held_config_runs(text) > 0))
			return true;
	}
	return left_has_new(l, dir, "hooks") && left_has_hooks(dir, false);
}

/* The files that git obeys are new; its index and objects change with each commit. */
static bool left_is_new_git(const struct left *l, int git)
{
	return left_is_new_text(l, git, "config") || left_is_new_text(l, git, "config.worktree") ||
	       left_is_new_text(l, git, "commondir") || left_has_new(l, git, "hooks");
}

/* ---- what the configuration of one that is not new names ------------------------------------- */

struct named {
	struct left *l;
	const char *git, *top; /* paths below the folder: the git directory, and its files */
	bool found;
};

static bool left_is_new_below(const struct left *l, const char *path, bool directory)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	autoclose int fd = (int)syscall(SYS_openat2, LOOK_FD, path, &how, sizeof(how));
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	return S_ISDIR(st.st_mode) ? directory && left_has_new(l, fd, ".")
				   : project_is_new(l->project, &st);
}

static int left_on_word(void *data, const char *word, bool whole)
{
	struct named *n = data;
	const char *host = n->l->project->of.host, *bases[] = { n->top, n->git };
	bool directory = (whole || strchr(word, '/')) && word[strspn(word, "./")];
	size_t len = strlen(host), end = strlen(word);
	bool absolute = *word == '/';
	char path[2 * WIRE_PATH_MAX];

	if (absolute && (strncmp(word, host, len) != 0 || word[len] != '/'))
		return 0;
	for (size_t i = 0; i < (absolute ? 1 : ARRAY_LEN(bases)) && !n->found; i++) {
		snprintf(path, sizeof(path), absolute ? "%.0s%s" : "./%s/%s", bases[i],
			 absolute ? word + len + 1 : word);
		n->found = left_is_new_below(n->l, path, directory);
		/* the hooks of husky, in .husky/_, run the scripts beside that */
		if (!n->found && whole && end > 2 && strcmp(word + end - 2, "/_") == 0) {
			path[strlen(path) - 2] = '\0';
			n->found = left_is_new_below(n->l, path, true);
		}
	}
	if (n->found)
		left_tell(n->l, LEFT_RUNS, n->top,
			  "is a repository whose configuration names %.100s: that " LEFT_NEW
			  "git may run it",
			  word);
	return n->found;
}

/* ---- a repository ---------------------------------------------------------------------------- */

void left_look_at_git(struct left *l, int git, const char *path, bool named)
{
	bool is_git = named || left_is_bare(git);
	size_t n = strlen(path), suffix = named ? strlen("/.git") : 0;
	char top[WIRE_PATH_MAX];
	struct named what = { .l = l, .git = path, .top = top };
	struct str text;

	snprintf(top, sizeof(top), "%.*s", (int)(n > suffix ? n - suffix : 0), path);
	if (!is_git) {
		if (left_may_run(l, git))
			left_tell(l, LEFT_RUNS, path,
				  LEFT_NEW "it has what git runs if it is renamed to .git");
	} else if (!left_is_new_git(l, git)) {
		if (left_read(git, "config", &text) > 0)
			(void)held_config_words(text, left_on_word, &what);
	} else if (left_runs(git)) {
		left_tell(l, LEFT_RUNS, top, "%s", LEFT_GIT);
	} else if (l->n[LEFT_PLAIN]++ < LEFT_TOLD_MAX) {
		snprintf(l->plain[l->n[LEFT_PLAIN] - 1], WIRE_PATH_MAX, "%s", top);
	}
}

/* ---- what git is told not to show ------------------------------------------------------------ */

#define LEFT_HIDES LEFT_NEW "git shows less than there is, or something else"

/* In the git directory. */
static const char *const hiding[] = {
	"info/attributes",
	"info/exclude",
	"info/grafts",
	"info/sparse-checkout",
	"objects/info/alternates",
	"objects/info/http-alternates",
	"shallow",
};

/* The nth of the git directories that the sandbox could work in, below the folder; NULL: none. */
static const char *left_git_dir(const struct project *p, size_t n)
{
	if (n == 0)
		return p->is_git ? "." : ".git";
	for (uint32_t i = 0; i < p->held.n; i++) {
		if (p->held.v[i].how == HELD_OPEN &&
		    (p->is_git || strncmp(p->held.v[i].path, ".git/", 5) == 0) && --n == 0)
			return p->held.v[i].path;
	}
	return NULL;
}

/* As a whole, to be freed; NULL: there is none, or too much. */
static char *left_load(int dir, const char *path, size_t most, size_t *ret_n)
{
	autoclose int fd = held_open(dir, path, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;
	ssize_t got = 0;
	char *text;

	*ret_n = 0;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > most)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	while (text && *ret_n < (size_t)st.st_size &&
	       (got = read(fd, text + *ret_n, (size_t)st.st_size - *ret_n)) > 0)
		*ret_n += (size_t)got;
	return text;
}

static int left_on_entry(void *data, const char *path, enum gitindex_kind kind)
{
	uint64_t *sum = data;

	/* FNV-1a */
	for (const char *at = path; kind == GITINDEX_HIDDEN; at++) {
		*sum = ((*sum ? *sum : 0xcbf29ce484222325) ^ (unsigned char)*at) * 0x100000001b3;
		if (!*at)
			break;
	}
	return 0;
}

static uint64_t left_hidden_by(int dir, const char *git, size_t hash)
{
	char path[WIRE_PATH_MAX];
	autofree char *text = NULL;
	struct str shared = STR_NONE;
	uint64_t sum = 0;
	size_t n;

	if (snprintf(path, sizeof(path), "%s/index", git) >= (int)sizeof(path))
		return 0;
	text = left_load(dir, path, GITINDEX_BYTES_MAX, &n);
	if (!text)
		return 0;
	/* what the shared one hides is not looked at: git splits no index unless it is told to */
	if (gitindex_read((struct str){ text, n }, hash, left_on_entry, &sum, &shared) < 0)
		return 1;
	for (size_t i = 0; i < shared.n; i++)
		sum = (sum ^ (unsigned char)shared.p[i]) * 0x100000001b3 + 1;
	return sum;
}

uint64_t left_hidden(const struct project *p, int dir)
{
	enum { SHA1_BYTES = 20, SHA256_BYTES = 32 };
	autofree char *config = NULL;
	const char *git;
	uint64_t all = 0;
	size_t n;

	config = left_load(dir, p->is_git ? "config" : ".git/config", GITCONF_BYTES_MAX, &n);
	for (size_t i = 0; (git = left_git_dir(p, i)); i++)
		all += left_hidden_by(dir, git,
				      config && memmem(config, n, "sha256", 6) ? SHA256_BYTES
									       : SHA1_BYTES);
	return all;
}

void left_look_for_hidden(struct left *l)
{
	static const char replaced[] = "refs/replace/";
	const struct project *p = l->project;
	char path[WIRE_PATH_MAX];
	autofree char *refs = NULL;
	const char *git;
	size_t n;

	for (size_t k = 0; (git = left_git_dir(p, k)); k++) {
		for (size_t i = 0; i < ARRAY_LEN(hiding); i++) {
			if (snprintf(path, sizeof(path), "%s/%s", git, hiding[i]) <
				    (int)sizeof(path) &&
			    left_is_new_text(l, LOOK_FD, path))
				left_tell(l, LEFT_LISTED, path, LEFT_HIDES);
		}
	}
	snprintf(path, sizeof(path), "%s/refs/replace", left_git_dir(p, 0));
	if (left_has_new(l, LOOK_FD, path))
		left_tell(l, LEFT_LISTED, path, LEFT_HIDES);
	snprintf(path, sizeof(path), "%s/packed-refs", p->is_git ? "." : ".git");
	refs = left_is_new_text(l, LOOK_FD, path) ? left_load(LOOK_FD, path, GITINDEX_BYTES_MAX, &n)
						  : NULL;
	if (refs && memmem(refs, n, replaced, strlen(replaced)))
		left_tell(l, LEFT_LISTED, path, LEFT_HIDES);
	if (left_hidden(p, LOOK_FD) != p->hidden)
		left_tell(l, LEFT_LISTED, p->is_git ? "index" : ".git/index",
			  "hides other files from git status and git diff than before: git "
			  "ls-files -v | grep -v ^H shows them");
}
