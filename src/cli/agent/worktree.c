#include "cli/agent/worktree.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/agent/agent.h"
#include "cli/common/safe.h"
#include "cli/ws/apply.h"

enum { BRANCH_MAX = 200, SAID_MAX = 64 << 10 };
#define RECORD "agent/" /* how the record of a branch is called */

/* ---- asking the user's repository ------------------------------------------------------------ */

/* The first line that git prints there. Returns its exit status, at most `most`. */
static int worktree_git(const char *dir, const char *const *words, int most, char ret[PATH_MAX],
			struct err *e)
{
	autobuf struct buf said = BUF_INIT(SAID_MAX);
	int status = git_run(dir, true, words, STR_NONE, most, &said, e);

	snprintf(ret, PATH_MAX, "%.*s", STR_CUT(buf_str(&said), PATH_MAX - 1));
	ret[strcspn(ret, "\n")] = '\0';
	return status;
}

static int worktree_commit(const char *dir, const char *name, char ret[PATH_MAX], struct err *e)
{
	const char *const words[] = { "rev-parse", "--verify", "--quiet", name, NULL };

	return worktree_git(dir, words, 1, ret, e) < 0 ? -1 : 0;
}

static int worktree_check_branch(const char *folder, const char *branch, struct err *e)
{
	char ref[PATH_MAX], none[PATH_MAX];
	const char *const words[] = { "check-ref-format", ref, NULL };
	int status;

	snprintf(ref, sizeof(ref), "refs/heads/%s", branch);
	if (!*branch || *branch == '-' || strlen(branch) > BRANCH_MAX)
		status = 1;
	else
		status = worktree_git(folder, words, 1, none, e);
	return status <= 0 ? status
			   : err_set(e, ERR_INVALID, "'%.80s' is no name of a branch", branch);
}

/* Beside the folder: no sandbox may have what is in Holt's own folders. */
static int worktree_path(const char *folder, const char *branch, char ret[PATH_MAX], struct err *e)
{
	int n = snprintf(ret, PATH_MAX, "%s-%s", folder, branch);

	if (n >= PATH_MAX)
		return err_set(e, ERR_INVALID, "the path of the worktree is too long");
	for (char *c = ret + strlen(folder); *c; c++)
		*c = *c == '/' ? '-' : *c;
	return 0;
}

static int worktree_find_record(const struct apply *a, const char *branch, const char *more,
				struct apply_id *ret, struct err *e)
{
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "refs/heads/" RECORD "%s%s", branch, more);
	return apply_object(a, name, ret, e);
}

/* ---- a new one ------------------------------------------------------------------------------- */

/* Files come by Holt's repository: filters of the user's repository may be a sandbox's. */
static int worktree_fill(struct apply *a, const char *branch, const char *commit, const char *path,
			 struct err *e)
{
	static const char *const where[] = { "rev-parse", "--path-format=absolute", "--git-path",
					     "objects", NULL };
	static const char *const index[] = { "read-tree", "HEAD", NULL };
	char objects[PATH_MAX], none[PATH_MAX], rows[PATH_MAX];
	struct apply_id base, record;

	if (worktree_git(path, where, 0, objects, e) < 0 ||
	    worktree_git(path, index, 0, none, e) < 0 ||
	    apply_checkout(a, objects, commit, path, e) < 0 ||
	    apply_snapshot(a, path, NULL, &base, e) < 0)
		return -1;
	a->here = a->result = base;
	if (apply_record(a, "start", &base, &base, &record, e) < 0)
		return -1;
	snprintf(rows, sizeof(rows), "update refs/heads/" RECORD "%s %s\n", branch, record.hex);
	return apply_refs(a, rows, e);
}

static int worktree_add(struct apply *a, const char *branch, const char *path, struct err *e)
{
	char ref[PATH_MAX], commit[PATH_MAX], none[PATH_MAX];
	const char *const add[] = { "worktree", "add", "-q", "--no-checkout", path, branch, NULL };
	const char *const add_new[] = { "worktree", "add",  "-q", "--no-checkout", "-b", branch,
					path,	    commit, NULL };
	const char *const undo[] = { "worktree", "remove", "--force", path, NULL };
	struct err ignored = ERR_INIT;
	bool has;

	snprintf(ref, sizeof(ref), "refs/heads/%s^{commit}", branch);
	if (worktree_commit(a->folder, ref, commit, e) < 0)
		return -1;
	has = *commit;
	if (!has && worktree_commit(a->folder, "HEAD^{commit}", commit, e) < 0)
		return -1;
	if (!*commit)
		return err_set(e, ERR_INVALID, "the repository has no commit to begin from");
	if (worktree_git(a->folder, has ? add : add_new, 0, none, e) < 0)
		return -1;
	if (worktree_fill(a, branch, commit, path, e) == 0)
		return 0;
	if (worktree_git(a->folder, undo, 0, none, &ignored) < 0)
		fprintf(stderr, "holt: %s is left: %s\n", path, ignored.msg);
	return -1;
}

static int worktree_make(struct apply *a, const char *folder, const char *branch,
			 char ret[PATH_MAX], struct err *e)
{
	static const char *const top[] = { "rev-parse", "--show-prefix", NULL };
	char prefix[PATH_MAX];
	struct apply_id record;
	struct stat st;

	if (worktree_git(folder, top, 0, prefix, e) < 0)
		return err_wrap(e, "--worktree needs a git repository");
	if (*prefix)
		return err_set(e, ERR_INVALID,
			       "--worktree: this is a part of a repository; change to its top");
	if (worktree_check_branch(folder, branch, e) < 0 ||
	    worktree_path(folder, branch, ret, e) < 0 || apply_open(a, folder, e) < 0 ||
	    worktree_find_record(a, branch, "", &record, e) < 0)
		return -1;
	if (lstat(ret, &st) < 0)
		return worktree_add(a, branch, ret, e);
	return record.hex[0] ? 0
			     : err_set(e, ERR_CONFLICT,
				       "%.200s is there, and was not made by --worktree", ret);
}

int agent_worktree_make(const char *folder, const char *branch, char ret[PATH_MAX], struct err *e)
{
	struct apply a = { .dir = -1, .data = -1, .stage = -1 };
	int result = worktree_make(&a, folder, branch, ret, e);

	apply_close(&a);
	return result;
}

/* ---- what it changed ------------------------------------------------------------------------- */

struct worktree_options {
	struct verb_options common;
	const char *folder;
	bool yes, force, guarded;
};

#define FOLDER_ROW                                                                                 \
	OPTION(struct worktree_options, folder, OPTION_TEXT, "folder", .letter = 'w',              \
	       .arg = "DIR", .doc = "The folder that the agent was run in; by default this one.")

struct worktree {
	struct apply apply;
	char branch[PATH_MAX], record[PATH_MAX], path[PATH_MAX];
	struct apply_id base, all;
};

/* The one that the folder has. One that was removed has left its record. */
static int worktree_only(struct worktree *w, struct err *e)
{
	static const char *const words[] = { "for-each-ref", "--format=%(refname:lstrip=3)",
					     "refs/heads/" RECORD, NULL };
	autobuf struct buf said = BUF_INIT(SAID_MAX), names = BUF_INIT(SAID_MAX);
	char *rest = NULL, *line;
	struct stat st;
	size_t n = 0;

	if (git_ask(w->apply.repository, true, words, &said, e) < 0 || buf_add(&said, "", 1, e) < 0)
		return -1;
	for (line = strtok_r(said.p, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (worktree_path(w->apply.folder, line, w->path, e) < 0)
			return -1;
		if (lstat(w->path, &st) < 0)
			continue;
		snprintf(w->branch, sizeof(w->branch), "%s", line);
		n++;
		if (buf_addf(&names, e, "%s%.80s", n > 1 ? ", " : "", line) < 0)
			return -1;
	}
	if (!n)
		return err_set(e, ERR_INVALID,
			       "no agent has a worktree of this folder: holt agent run --worktree "
			       "BRANCH NAME");
	return n == 1 ? 0
		      : err_set(e, ERR_INVALID, "name one of the branches with a worktree: %.*s",
				STR_CUT(buf_str(&names), 300));
}

static int worktree_read(struct worktree *w, const struct verb_input *in, struct err *e)
{
	const struct worktree_options *o = in->options;

	if (apply_open(&w->apply, o->folder ? o->folder : ".", e) < 0)
		return -1;
	if (!in->operands[0] && worktree_only(w, e) < 0)
		return -1;
	if (in->operands[0])
		snprintf(w->branch, sizeof(w->branch), "%.*s", BRANCH_MAX, in->operands[0]);
	snprintf(w->record, sizeof(w->record), RECORD "%.*s", BRANCH_MAX, w->branch);
	if (worktree_find_record(&w->apply, w->branch, "^2^{tree}", &w->base, e) < 0)
		return -1;
	if (!w->base.hex[0])
		return err_set(e, ERR_INVALID, "no agent has a worktree of the branch %.80s here",
			       w->branch);
	return worktree_path(w->apply.folder, w->branch, w->path, e) < 0
		     ? -1
		     : apply_snapshot(&w->apply, w->path, &w->base, &w->all, e);
}

static int diff_run(const struct verb_input *in, struct err *e)
{
	static struct worktree w = { .apply = { .dir = -1, .data = -1, .stage = -1 } }; /* large */
	int result = worktree_read(&w, in, e);

	if (result == 0) {
		w.apply.here = w.base;
		w.apply.result = w.all;
		result = apply_show(&w.apply, e);
	}
	apply_close(&w.apply);
	return result;
}

static int worktree_apply(struct worktree *w, const struct verb_input *in, struct err *e)
{
	const struct worktree_options *o = in->options;
	struct apply *a = &w->apply;
	struct apply_id next;

	if (worktree_read(w, in, e) < 0)
		return -1;
	a->record = w->record;
	a->force = o->force;
	a->guarded = o->guarded;
	return apply_overlay(a, &w->base, &w->base, &w->all, true, &next, e) < 0 ||
			       apply_plan(a, &w->base, &next, o->force ? APPLY_THEIRS : APPLY_ASK,
					  e) < 0
		     ? -1
		     : apply_go(a, w->branch, o->yes, &w->base, &next, e);
}

static int apply_run(const struct verb_input *in, struct err *e)
{
	static struct worktree w = { .apply = { .dir = -1, .data = -1, .stage = -1 } }; /* large */
	int status;

	signal(SIGPIPE, SIG_IGN);
	status = worktree_apply(&w, in, e);
	if (status < 0) /* said before a signal ends this */
		status = cli_fail(e);
	apply_close(&w.apply);
	apply_release(&w.apply);
	return status;
}

static const struct option_row diff_rows[] = { FOLDER_ROW, HELP_ROW(struct worktree_options) };
static const struct option_table diff_options = OPTION_TABLE(diff_rows, .mixed = true);

static const struct option_row apply_rows[] = {
	FOLDER_ROW,
	OPTION(struct worktree_options, yes, OPTION_FLAG, "yes", .letter = 'y',
	       .doc = "Do not ask. The changes are still printed."),
	OPTION(struct worktree_options, force, OPTION_FLAG, "force",
	       .doc = "Also replace files that were changed in the folder."),
	OPTION(struct worktree_options, guarded, OPTION_FLAG, "protected",
	       .doc = "Also write files that programs of this machine act on, such as .vscode."),
	HELP_ROW(struct worktree_options),
};
static const struct option_table apply_options = OPTION_TABLE(apply_rows, .mixed = true);

const struct verb agent_diff_verb = {
	.name = "agent diff",
	.usage = "[OPTION...] [BRANCH]",
	.doc = "Show what an agent changed in the worktree of a branch.",
	.more = "That is since it began, or since the last holt agent apply. BRANCH may be left\n"
		"out where the folder has one worktree. Files that git ignores are left out.",
	.page = "holt-agent",
	.options = &diff_options,
	.size = sizeof(struct worktree_options),
	.max_operands = 1,
	.run = diff_run,
};

const struct verb agent_apply_verb = {
	.name = "agent apply",
	.usage = "[OPTION...] [BRANCH]",
	.doc = "Show what an agent changed, ask, and bring it into the folder.",
	.more = "It is merged with what the folder has, file by file, without commits. It exits\n"
		"with 1 if you say no, and with 3 if there are conflicts. Nothing is changed\n"
		"then.",
	.page = "holt-agent",
	.options = &apply_options,
	.size = sizeof(struct worktree_options),
	.max_operands = 1,
	.run = apply_run,
};
