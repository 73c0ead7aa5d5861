/* `holt ws apply`: the verb. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/archive/tree.h"
#include "cli/common/file.h"
#include "cli/common/safe.h"
#include "cli/ws/apply.h"

struct apply_options {
	struct verb_options common;
	const char *to, *revision;
	bool yes, force, guarded, undo;
};

static const struct option_row apply_rows[] = {
	OPTION(struct apply_options, to, OPTION_TEXT, "to", .arg = "DIR",
	       .doc = "Folder to change; by default the current one."),
	OPTION(struct apply_options, revision, OPTION_TEXT, "revision", .letter = 'r',
	       .arg = "REVISION", .doc = "Revision to apply; by default the newest."),
	OPTION(struct apply_options, yes, OPTION_FLAG, "yes", .letter = 'y',
	       .doc = "Do not ask. The changes are still printed."),
	OPTION(struct apply_options, force, OPTION_FLAG, "force",
	       .doc = "Also replace files that were changed in the folder."),
	OPTION(struct apply_options, guarded, OPTION_FLAG, "protected",
	       .doc = "Also write files that programs of this machine act on, such as .vscode."),
	OPTION(struct apply_options, undo, OPTION_FLAG, "undo",
	       .doc = "Restore the state of the folder before the last apply."),
	HELP_ROW(struct apply_options),
};
static const struct option_table apply_options = OPTION_TABLE(apply_rows, .mixed = true);

/* ---- the branches ---------------------------------------------------------------------------- */

int apply_refs(const struct apply *a, const char *rows, struct err *e)
{
	static const char *const words[] = { "update-ref", "--stdin", NULL };
	struct apply_id none;

	return apply_git(a, words, str_of(rows), &none, e);
}

/* Where a name means nothing, the tree that has no files. */
static int tree_or_empty(const struct apply *a, const char *name, struct apply_id *ret,
			 struct err *e)
{
	static const char *const words[] = { "mktree", NULL };

	if (apply_object(a, name, ret, e) < 0)
		return -1;
	return ret->hex[0] ? 0 : apply_git(a, words, STR_NONE, ret, e);
}

/* ---- other files of the data folder ---------------------------------------------------------- */

/* 0: there is none. */
static int data_read(const struct apply *a, const char *name, struct buf *ret, struct err *e)
{
	autoclose int fd = openat(a->data, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "read Holt's data folder");
	return file_read_fd(fd, name, ret, e) < 0 ? -1 : 1;
}

static int data_write(const struct apply *a, const char *name, struct str text, struct err *e)
{
	autoclose int fd = openat(a->data, "new",
				  O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 || fd_write(fd, text.p, text.n) < 0 || fsync(fd) < 0 ||
			       renameat(a->data, "new", a->data, name) < 0 || fsync(a->data) < 0
		     ? err_sys(e, errno, "write into Holt's data folder")
		     : 0;
}

/* What git does not keep of the files that this apply removes. */
static int modes_write(const struct apply *a, struct err *e)
{
	autobuf struct buf modes = BUF_INIT(APPLY_MODES_MAX);

	for (size_t i = 0; i < a->n; i++) {
		const struct apply_op *op = &a->ops[i];

		if (op->seen && S_ISREG(op->seen->st.st_mode) &&
		    (!op->new || op->new == APPLY_LINK) &&
		    (buf_addf(&modes, e, "%o %s", op->seen->st.st_mode & 0777, op->path) < 0 ||
		     buf_add(&modes, "", 1, e) < 0))
			return -1;
	}
	return data_write(a, "modes", buf_str(&modes), e);
}

/* ---- what was interrupted -------------------------------------------------------------------- */

/* Puts the stage into the repository if it has a file that is not there yet, such as one that
 * somebody changed in the moment before it was replaced. Otherwise *ret is "". */
static int kept_stage(struct apply *a, struct apply_id *ret, struct err *e)
{
	static const char *const clear[] = { "read-tree", "--empty", NULL };
	static const char *const write[] = { "write-tree", NULL };
	const char *const list[] = { "rev-list", "--objects", ret->hex, "--not", "begun", NULL };
	autobuf struct buf said = BUF_INIT(64 << 20);
	char path[PATH_MAX];
	const char *const add[] = { "--work-tree", path, "add", "-A", "-f", ".", NULL };
	struct apply_id none;
	struct stat st;

	ret->hex[0] = '\0';
	if (fstatat(a->dir, a->stage_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	if (snprintf(path, sizeof(path), "%s/%s", a->folder, a->stage_name) >= PATH_MAX)
		return err_set(e, ERR_INVALID, "the path of the folder is too long");
	if (apply_git(a, clear, STR_NONE, &none, e) < 0 ||
	    apply_git(a, add, STR_NONE, &none, e) < 0 ||
	    apply_git(a, write, STR_NONE, ret, e) < 0 ||
	    git_ask(a->repository, true, list, &said, e) < 0)
		return -1;
	if (said.n <= strlen(ret->hex) + 2) /* the tree alone */
		ret->hex[0] = '\0';
	return 0;
}

/* Old files that do not get back stay in the repository; their names are told. */
static int kept_write(struct apply *a, const struct apply_id *was, const struct apply_id *stage,
		      struct err *e)
{
	const char *const words[] = { "diff-tree",    "-r",	"-z",	       "--name-only",
				      "--no-renames", was->hex, a->result.hex, NULL };
	autobuf struct buf said = BUF_INIT(64 << 20);
	struct apply_id set_aside, kept;
	char rows[256];

	if (git_ask(a->repository, true, words, &said, e) < 0)
		return -1;
	if (!said.n && !stage->hex[0])
		return 0;
	if (apply_commit(a, stage->hex[0] ? stage : was, "set aside", NULL, NULL, &set_aside, e) <
		    0 ||
	    apply_commit(a, was, "as it was", &set_aside, NULL, &kept, e) < 0)
		return -1;
	snprintf(rows, sizeof(rows), "update refs/heads/kept/%.12s %s\n", kept.hex, kept.hex);
	if (apply_refs(a, rows, e) < 0)
		return -1;
	for (size_t at = 0; at < said.n; at += strlen(said.p + at) + 1)
		apply_tell(said.p + at, "was changed since, and stays");
	fprintf(stderr, "holt: what was there before is kept: git --git-dir ");
	safe_line(stderr, str_of(a->repository));
	fprintf(stderr, " show kept/%.12s:PATH\n", kept.hex);
	return 0;
}

/* The folder becomes what it was before the branch `begun`, but for what others have changed. */
static int take_back(struct apply *a, struct err *e)
{
	struct apply_id base, was, stage;

	a->takes_back = true;
	buf_fini(&a->modes);
	a->modes = BUF_INIT(APPLY_MODES_MAX);
	if (data_read(a, "modes", &a->modes, e) < 0 ||
	    apply_object(a, "begun^{tree}", &base, e) < 0 ||
	    apply_object(a, "begun^1^{tree}", &was, e) < 0 || kept_stage(a, &stage, e) < 0 ||
	    apply_plan(a, &base, &was, APPLY_OURS, e) < 0 || kept_write(a, &was, &stage, e) < 0)
		return -1;
	if (tree_remove(a->dir, a->stage_name) < 0)
		return err_sys(e, errno, "remove the stage");
	if (apply_write(a, e) < 0 || apply_refs(a, "delete refs/heads/begun\n", e) < 0)
		return -1;
	a->takes_back = false;
	return 0;
}

/* Whether another branch has this commit, too: it is the record of an apply that ended. */
static int has_ended(const struct apply *a, const struct apply_id *begun, struct err *e)
{
	const char *const words[] = { "for-each-ref", "--format=x", "--points-at", begun->hex,
				      NULL };
	autobuf struct buf said = BUF_INIT(16 << 10);

	return git_ask(a->repository, true, words, &said, e) < 0 ? -1 : said.n > strlen("x\n");
}

/* Takes back what was interrupted, if anything was, and tells so. */
static int apply_recover(struct apply *a, struct err *e)
{
	struct apply_id begun;
	int ended;

	if (apply_object(a, "begun", &begun, e) < 0)
		return -1;
	if (!begun.hex[0]) /* a stage is of one that did nothing */
		return tree_remove(a->dir, a->stage_name) < 0
			     ? err_sys(e, errno, "remove the stage")
			     : 0;
	ended = has_ended(a, &begun, e);
	if (ended < 0)
		return -1;
	if (ended)
		return apply_refs(a, "delete refs/heads/begun\n", e);
	if (take_back(a, e) < 0)
		return -1;
	fputs("holt: an apply to this folder was interrupted; what it had done was taken back\n",
	      stderr);
	return 0;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* The tree of a revision that the hub has. */
static int fetch_tree(struct apply *a, struct hub_link *l, const char *name, const char *digits,
		      struct apply_id *ret, struct err *e)
{
	const struct ws_git o = { .name = name, .repository = a->repository, .revision = digits };
	char commit[COMMIT_HEX_MAX + 1], text[COMMIT_HEX_MAX + 16], rows[512];

	if (ws_git_take(l, &o, commit, e) < 0)
		return -1;
	snprintf(text, sizeof(text), "%s^{tree}", commit);
	snprintf(rows, sizeof(rows), "delete refs/heads/holt/%s\n", name);
	return apply_object(a, text, ret, e) < 0 ? -1 : apply_refs(a, rows, e);
}

/* The last import, unless there was none since the last apply; else what that has left. */
static int plan_base(struct apply *a, struct hub_link *l, struct apply_id *ret, struct err *e)
{
	autobuf struct buf imported = BUF_INIT(16 << 10);
	int found = data_read(a, "imported", &imported, e);
	char *revision = found > 0 ? strchr(imported.p, ' ') : NULL;

	if (found < 0)
		return -1;
	if (!revision)
		return tree_or_empty(a, "last^2^{tree}", ret, e);
	*revision++ = '\0';
	if (fetch_tree(a, l, imported.p, revision, ret, e) == 0)
		return 0;
	if (e->code != ERR_SANDBOX_NOT_FOUND && e->code != ERR_WORKSPACE_NOT_FOUND)
		return -1;
	fputs("holt: the revision that was imported here last is gone; nothing is removed\n",
	      stderr);
	return tree_or_empty(a, "nothing", ret, e);
}

/* next: the base after it. */
static int plan_revision(struct apply *a, struct hub_link *l, const char *name, const char *digits,
			 struct apply_id *base, struct apply_id *next, struct err *e)
{
	struct apply_id all;

	if (plan_base(a, l, base, e) < 0 || fetch_tree(a, l, name, digits, &all, e) < 0 ||
	    apply_overlay(a, base, base, &all, true, next, e) < 0)
		return -1;
	return apply_plan(a, base, next, a->force ? APPLY_THEIRS : APPLY_ASK, e);
}

static int plan_undo(struct apply *a, const char *name, struct apply_id *base,
		     struct apply_id *next, struct err *e)
{
	static const char *const words[] = { "show", "-s", "--format=%s", "last", NULL };
	autobuf struct buf said = BUF_INIT(16 << 10);
	struct apply_id last, was;
	char wanted[256];

	snprintf(wanted, sizeof(wanted), "apply %s\n", name);
	if (apply_object(a, "last^{tree}", &last, e) < 0 ||
	    (last.hex[0] && git_ask(a->repository, true, words, &said, e) < 0))
		return -1;
	if (!last.hex[0] || !str_starts(buf_str(&said), "apply ") ||
	    faccessat(a->data, "imported", F_OK, 0) == 0)
		return err_set(e, ERR_INVALID,
			       "there is no apply to this folder that can be undone");
	if (!str_is(buf_str(&said), wanted))
		return err_set(e, ERR_INVALID,
			       "the last apply to this folder was of the workspace %s",
			       said.p + strlen("apply "));
	if (data_read(a, "modes", &a->modes, e) < 0 ||
	    apply_object(a, "last^1^{tree}", &was, e) < 0 ||
	    apply_object(a, "last^1^1^{tree}", next, e) < 0)
		return -1;
	*base = *next;
	return apply_plan(a, &last, &was, a->force ? APPLY_THEIRS : APPLY_ASK, e);
}

/* ---- the question ---------------------------------------------------------------------------- */

/* 1: yes; 0: no. */
static int apply_ask(const struct apply *a, bool undo, struct err *e)
{
	char answer[16] = "";
	ssize_t n;

	if (!isatty(STDIN_FILENO))
		return err_set(e, ERR_INVALID,
			       "there is no terminal to ask at; --yes goes ahead without");
	fprintf(stderr, "%s %zu changes? [y/N] ", undo ? "undo" : "apply", a->n);
	n = read(STDIN_FILENO, answer, sizeof(answer) - 1);
	if (n <= 0)
		fputc('\n', stderr);
	answer[n > 0 ? n : 0] = '\0';
	answer[strcspn(answer, "\r\n")] = '\0';
	return strcmp(answer, "y") == 0 || strcmp(answer, "yes") == 0;
}

/* ---- the verb -------------------------------------------------------------------------------- */

int apply_record(struct apply *a, const char *message, const struct apply_id *base,
		 const struct apply_id *next, struct apply_id *ret, struct err *e)
{
	struct apply_id old, here, after;

	return apply_commit(a, base, "base", NULL, NULL, &old, e) < 0 ||
			       apply_commit(a, &a->here, "before", &old, NULL, &here, e) < 0 ||
			       apply_commit(a, next, "base", NULL, NULL, &after, e) < 0
		     ? -1
		     : apply_commit(a, &a->result, message, &here, &after, ret, e);
}

static int apply_end(struct apply *a, const struct apply_id *commit, struct err *e)
{
	static const char *const words[] = { "gc", "--quiet", "--prune=now", NULL };
	struct apply_id none;
	char rows[PATH_MAX];

	snprintf(rows, sizeof(rows), "update refs/heads/%s %s\ndelete refs/heads/begun\n",
		 a->record, commit->hex);
	if (apply_refs(a, rows, e) < 0)
		return -1;
	if (strcmp(a->record, "last") == 0 && unlinkat(a->data, "imported", 0) < 0 &&
	    errno != ENOENT)
		return err_sys(e, errno, "write into Holt's data folder");
	return apply_git(a, words, STR_NONE, &none, e);
}

/* All or nothing: what fails in between is taken back. */
static int apply_change(struct apply *a, const struct apply_id *commit, struct err *e)
{
	char rows[256];
	struct err why;

	snprintf(rows, sizeof(rows), "update refs/heads/begun %s\n", commit->hex);
	apply_hold(a);
	if (modes_write(a, e) < 0 || apply_refs(a, rows, e) < 0)
		return -1;
	if (apply_write(a, e) == 0)
		return apply_end(a, commit, e);
	why = *e;
	if (take_back(a, e) < 0)
		return err_wrap(e, "not all was taken back; the next apply tries it again");
	*e = why;
	return err_wrap(e, "nothing was changed");
}

int apply_go(struct apply *a, const char *name, bool yes, const struct apply_id *base,
	     const struct apply_id *next, struct err *e)
{
	struct apply_id commit;
	char message[256];
	int sure, status;

	if (a->left_out)
		fprintf(stderr, "holt: left out: %zu\n", a->left_out);
	if (a->conflicts) {
		fprintf(stderr, "holt: conflicts: %zu; nothing was changed (--force replaces)\n",
			a->conflicts);
		return APPLY_CONFLICTS;
	}
	snprintf(message, sizeof(message), "%s %s", a->undo ? "undo" : "apply", name);
	if (apply_record(a, message, base, next, &commit, e) < 0)
		return -1;
	if (!a->n) {
		fputs("holt: there is nothing to change\n", stderr);
		return strcmp(base->hex, next->hex) == 0 ? 0 : apply_end(a, &commit, e);
	}
	if (apply_show(a, e) < 0)
		return -1;
	status = cli_flush(e);
	if (status)
		return e->code ? -1 : status;
	sure = yes ? 1 : apply_ask(a, a->undo, e);
	if (sure == 0)
		fputs("holt: nothing was changed\n", stderr);
	if (sure <= 0)
		return sure < 0 ? -1 : APPLY_DECLINED;
	if (apply_change(a, &commit, e) < 0)
		return -1;
	fprintf(stderr, "holt: %s: %zu\n", a->undo ? "changes undone" : "changes applied", a->n);
	return 0;
}

int apply_open(struct apply *a, const char *folder, struct err *e)
{
	return apply_find(a, folder, e) < 0 || apply_lock(a, e) < 0 || apply_repository(a, e) < 0
		     ? -1
		     : apply_recover(a, e);
}

static int apply_do(struct apply *a, const struct verb_input *in, struct err *e)
{
	const struct apply_options *o = in->options;
	const char *name = in->operands[0];
	AUTO(hub_link_close) struct hub_link *l = o->undo ? NULL : hub_link_open(e);
	struct apply_id base, next;
	char revision[HASH_HEX + 1] = "";

	if (!o->undo && (!l || ws_find_revision(l, name, o->revision, revision, e) < 0))
		return -1;
	if (apply_open(a, o->to ? o->to : ".", e) < 0)
		return -1;
	a->force = o->force;
	a->guarded = o->guarded;
	a->undo = o->undo;
	if ((o->undo ? plan_undo(a, name, &base, &next, e)
		     : plan_revision(a, l, name, revision, &base, &next, e)) < 0)
		return -1;
	return apply_go(a, name, o->yes, &base, &next, e);
}

static int apply_verb_run(const struct verb_input *in, struct err *e)
{
	struct apply a = { .dir = -1, .data = -1, .stage = -1 };
	int status;

	signal(SIGPIPE, SIG_IGN);
	status = apply_do(&a, in, e);
	if (status < 0) /* said before a signal ends this */
		status = hub_link_fail(e);
	apply_close(&a);
	apply_release(&a);
	return status;
}

int ws_apply_recover(const char *folder, struct err *e)
{
	struct apply a;
	struct err ignored = ERR_INIT;
	int result = 0;

	/* where Holt can keep no data there was no apply */
	if (apply_find(&a, folder, &ignored) == 0 && faccessat(a.data, "git", F_OK, 0) == 0)
		result = apply_lock(&a, e) < 0 || apply_repository(&a, e) < 0
			       ? -1
			       : apply_recover(&a, e);
	apply_close(&a);
	return result;
}

int ws_applied(const char *folder, const char *name, struct str revision, struct err *e)
{
	struct apply a;
	autobuf struct buf text = BUF_INIT(16 << 10);
	int result = apply_find(&a, folder, e) < 0 || apply_lock(&a, e) < 0 ? -1 : 0;

	if (result == 0)
		result = buf_addf(&text, e, "%s %.*s", name, STR_ARG(revision));
	if (result == 0)
		result = data_write(&a, "imported", buf_str(&text), e);
	apply_close(&a);
	return result;
}

const struct verb ws_apply_verb = {
	.name = "ws apply",
	.usage = "[OPTION...] NAME",
	.doc = "Show what a revision changes in a folder, ask, and change it.",
	.more = "What was changed in the folder since the revision that was applied to it or\n"
		"imported from it last is a conflict. It exits with 1 if you say no, and with\n"
		"3 if there are conflicts. Nothing is changed then.",
	.options = &apply_options,
	.size = sizeof(struct apply_options),
	.min_operands = 1,
	.run = apply_verb_run,
	.fail = hub_link_fail,
};
