/* `holt ws apply`: the verb. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/ws/apply.h"

enum { EXIT_DECLINED = 1, EXIT_CONFLICTS = 3 };

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

/* ---- the plan -------------------------------------------------------------------------------- */

static int find_revision(struct hub_link *l, const char *name, const char *digits,
			 struct apply_revision *ret, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	const struct json_val *row = NULL;

	if (ws_find_revision(l, name, digits, &doc, &row, e) < 0)
		return -1;
	snprintf(ret->workspace, sizeof(ret->workspace), "%.*s", APPLY_NAME, name);
	snprintf(ret->id, sizeof(ret->id), "%.*s",
		 STR_CUT(json_str(json_get(row, "revision")), APPLY_REVISION));
	return 0;
}

static int plan_revision(struct apply *a, struct hub_link *l, struct err *e)
{
	struct apply_list new = { 0 }, base = { 0 };
	int result = 0;

	if (a->plan.base.id[0])
		result = apply_fetch(a, l, &a->plan.base, false, &base, e);
	if (result < 0 && e->code == ERR_SANDBOX_NOT_FOUND) { /* as all that the hub has not */
		fputs("holt: the revision that was applied here last is gone; nothing is removed\n",
		      stderr);
		apply_list_fini(&base);
		result = 0;
	}
	if (result == 0)
		result = apply_fetch(a, l, &a->plan.to, true, &new, e);
	if (result == 0)
		result = apply_plan(a, &new, &base, e);
	apply_list_fini(&new);
	apply_list_fini(&base);
	return result;
}

static int plan_undo(struct apply *a, const char *name, struct err *e)
{
	const char *which = apply_journal_has(a, "interrupted") ? "interrupted" : "last";
	struct apply_plan last = { 0 };
	int found = apply_journal_read(a, which, false, &last, e), result = -1;

	a->plan.undo = true;
	a->plan.to = last.base;
	a->plan.base = (struct apply_revision){ 0 };
	if (found == 0 || (found > 0 && (last.undo || !last.n)))
		err_set(e, ERR_INVALID, "there is no apply to this folder that can be undone");
	else if (found > 0 && strcmp(last.to.workspace, name) != 0)
		err_set(e, ERR_INVALID, "the last apply to this folder was of the workspace %s",
			last.to.workspace);
	else if (found > 0)
		result = apply_plan_undo(a, &last, e);
	apply_plan_fini(&last);
	return result;
}

/* ---- the question ---------------------------------------------------------------------------- */

static void on_signal(int number)
{
	(void)number; /* the question ends, and what was made is removed */
}

/* 1: yes; 0: no. */
static int apply_ask(const struct apply *a, struct err *e)
{
	const struct sigaction act = { .sa_handler = on_signal };
	char answer[16] = "";
	ssize_t n;

	if (!isatty(STDIN_FILENO))
		return err_set(e, ERR_INVALID,
			       "there is no terminal to ask at; --yes goes ahead without");
	for (size_t i = 0; i < 3; i++)
		sigaction((const int[]){ SIGINT, SIGTERM, SIGHUP }[i], &act, NULL);
	fprintf(stderr, "%s %zu changes? [y/N] ", a->plan.undo ? "undo" : "apply", a->plan.n);
	n = read(STDIN_FILENO, answer, sizeof(answer) - 1);
	if (n <= 0)
		fputc('\n', stderr);
	answer[n > 0 ? n : 0] = '\0';
	answer[strcspn(answer, "\r\n")] = '\0';
	return strcmp(answer, "y") == 0 || strcmp(answer, "yes") == 0;
}

/* ---- the verb -------------------------------------------------------------------------------- */

/* The base is the revision, also where the folder has all of it already. */
static int apply_nothing(struct apply *a, const struct apply_revision *base, struct err *e)
{
	fputs("holt: there is nothing to change\n", stderr);
	if (!a->plan.undo && strcmp(base->id, a->plan.to.id) == 0 &&
	    strcmp(base->workspace, a->plan.to.workspace) == 0)
		return 0;
	return apply_journal_write(a, "last", e) < 0 ? -1 : apply_journal_end(a, e);
}

static int apply_go(struct apply *a, const struct apply_options *o, struct err *e)
{
	int sure, status;

	if (a->left_out)
		fprintf(stderr, "holt: left out: %zu\n", a->left_out);
	if (a->conflicts) {
		fprintf(stderr, "holt: conflicts: %zu; nothing was changed (--force replaces)\n",
			a->conflicts);
		return EXIT_CONFLICTS;
	}
	if (!a->plan.n)
		return apply_nothing(a, &a->plan.base, e);
	apply_show(a);
	status = cli_flush(e);
	if (status)
		return e->code ? -1 : status;
	sure = o->yes ? 1 : apply_ask(a, e);
	if (sure == 0)
		fputs("holt: nothing was changed\n", stderr);
	if (sure <= 0)
		return sure < 0 ? -1 : EXIT_DECLINED;
	if (apply_run(a, e) < 0)
		return -1;
	fprintf(stderr, "holt: %s: %zu\n", a->plan.undo ? "changes undone" : "changes applied",
		a->plan.n);
	return 0;
}

static int apply_do(struct apply *a, const struct verb_input *in, struct err *e)
{
	const struct apply_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = NULL;
	struct apply_plan last = { 0 };
	struct apply_revision to = { 0 };

	if (!o->undo) {
		l = hub_link_open(e);
		if (!l || find_revision(l, in->operands[0], o->revision, &to, e) < 0)
			return -1;
	}
	if (apply_open(a, o->to ? o->to : ".", e) < 0 || apply_recover(a, o->undo, e) < 0 ||
	    apply_journal_read(a, "last", true, &last, e) < 0 || apply_stage(a, e) < 0 ||
	    apply_plan_id(&a->plan, e) < 0)
		return -1;
	a->force = o->force;
	a->guarded = o->guarded;
	a->plan.to = to;
	a->plan.base = last.to;
	if ((o->undo ? plan_undo(a, in->operands[0], e) : plan_revision(a, l, e)) < 0)
		return -1;
	return apply_go(a, o, e);
}

static int apply_verb_run(const struct verb_input *in, struct err *e)
{
	struct apply a = { .dir = -1, .data = -1, .stage = -1 };
	int status = apply_do(&a, in, e);

	if (status < 0) /* said before a signal ends this */
		status = hub_link_fail(e);
	/* a journal that could not be ended needs the stage */
	if (a.stage >= 0 && faccessat(a.data, "journal", F_OK, 0) < 0)
		apply_unstage(&a);
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
	if (apply_find(&a, folder, &ignored) == 0 &&
	    (apply_journal_has(&a, "journal") || apply_journal_has(&a, "interrupted") ||
	     faccessat(a.dir, a.stage_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)) {
		result = apply_lock(&a, e) < 0 ? -1 : apply_recover(&a, false, e);
		if (result == 0)
			apply_unstage(&a);
	}
	apply_close(&a);
	return result;
}

int ws_applied(const char *folder, const char *name, struct str revision, struct err *e)
{
	struct apply a;
	int result = apply_open(&a, folder, e);

	if (result == 0 &&
	    (apply_journal_has(&a, "journal") || apply_journal_has(&a, "interrupted")))
		result = err_set(e, ERR_CONFLICT, "an apply was interrupted meanwhile");
	if (result == 0) {
		snprintf(a.plan.to.workspace, sizeof(a.plan.to.workspace), "%.*s", APPLY_NAME,
			 name);
		snprintf(a.plan.to.id, sizeof(a.plan.to.id), "%.*s",
			 STR_CUT(revision, APPLY_REVISION));
		result = apply_journal_write(&a, "last", e);
	}
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
