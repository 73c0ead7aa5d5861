/* `holt ws import` and `export`: files as a tar archive, from a folder, or as a branch of git. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/common/safe.h"
#include "cli/files/packer.h"
#include "cli/link/files.h"
#include "cli/ws/git.h"

/* ---- import ---------------------------------------------------------------------------------- */

static const struct option_row import_rows[] = {
	ASK_OPTION(texts[0], OPTION_TEXT, "message", .letter = 'm', .arg = "TEXT",
		   .doc = "Description of the revision."),
	ASK_END,
};
static const struct option_table import_options = OPTION_TABLE(import_rows, .mixed = true);

static int import_send(struct hub_link *l, const char *path, const char *from,
		       struct json_doc **ret, struct err *e)
{
	autoclose int fd = strcmp(from, "-") == 0 ? dup(STDIN_FILENO)
						  : open(from, O_RDONLY | O_CLOEXEC);
	struct packer p;
	struct stat st;
	int result;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "%.160s", from);
	if (!S_ISDIR(st.st_mode))
		return hub_link_send_file(l, path, fd, ret, e);
	if (ws_apply_recover(from, e) < 0 || packer_start(&p, from, ".", e) < 0)
		return -1;
	result = hub_link_send(l, path, packer_give, &p, ret, e);
	packer_stop(&p);
	return result;
}

/* Notes the revision, so that holt ws apply later brings only newer changes into the folder. */
static void import_note(const char *from, const char *name, const struct json_val *v)
{
	struct err e = ERR_INIT;
	struct stat st;

	if (stat(from, &st) == 0 && S_ISDIR(st.st_mode) &&
	    ws_applied(from, name, json_str(json_get(v, "revision")), &e) < 0)
		fprintf(stderr, "holt: ws apply will not know of this import: %s\n", e.msg);
}

static int import_run(const struct verb_input *in, struct err *e)
{
	const struct ask_options *o = in->options;
	char **operands = in->operands;
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[WS_PATH_MAX];

	if (hub_ask_path(&workspaces, path, sizeof(path), operands[0], "/import", e) < 0 ||
	    (o->texts[0] && hub_link_query(path, sizeof(path), "message", o->texts[0], e) < 0) ||
	    hub_link_literal(path, sizeof(path), e) < 0)
		return -1;
	l = hub_link_open(e);
	if (!l || import_send(l, path, operands[1], &doc, e) < 0)
		return -1;
	import_note(operands[1], operands[0], json_root(doc));
	if (o->output == OUTPUT_JSON)
		return hub_link_print(json_root(doc), e);
	safe_puts(stdout, json_str(json_get(json_root(doc), "revision")));
	hub_link_tell_left_out(json_root(doc));
	return 0;
}

const struct verb ws_import_verb = {
	.name = "ws import",
	.usage = "[OPTION...] NAME FILE|DIR|-",
	.doc = "Make a revision from a tar archive or folder; print its id.",
	.more = "The workspace has then these files and no others. \"-\" is an archive on\n"
		"standard input. Files that hold credentials are left out.",
	.options = &import_options,
	.size = sizeof(struct ask_options),
	.min_operands = 2,
	.run = import_run,
	.fail = hub_link_fail,
};

/* ---- export ---------------------------------------------------------------------------------- */

static const struct option_row export_rows[] = {
	ASK_OPTION(texts[0], OPTION_TEXT, "revision", .letter = 'r', .arg = "REVISION",
		   .doc = "Revision to export; by default the newest."),
	ASK_OPTION(flags[0], OPTION_FLAG, "git",
		   .doc = "The second operand is a git repository: make a commit on its branch "
			  "holt/NAME."),
	ASK_OPTION(
		flags[1], OPTION_FLAG, "history",
		.doc = "With --git: make a commit for each revision that the branch does not have "
		       "yet."),
	HELP_ROW(struct ask_options),
};
static const struct option_table export_options = OPTION_TABLE(export_rows, .mixed = true);

int ws_export_path(char ret[WS_PATH_MAX], const char *name, const char *revision, bool to_stdout,
		   struct err *e)
{
	if (hub_ask_path(&workspaces, ret, WS_PATH_MAX, name, "/export", e) < 0 ||
	    (revision && hub_link_query(ret, WS_PATH_MAX, "revision", revision, e) < 0))
		return -1;
	return hub_link_raw(ret, WS_PATH_MAX, to_stdout, e);
}

static int export_run(const struct verb_input *in, struct err *e)
{
	const struct ask_options *o = in->options;
	const char *name = in->operands[0], *to = in->operands[1];
	const struct ws_git git = { name, to, o->texts[0], o->flags[1] };
	AUTO(hub_link_close) struct hub_link *l = NULL;
	char path[WS_PATH_MAX];

	if (o->flags[1] && !o->flags[0])
		return err_set(e, ERR_INVALID, "--history is of --git");
	if (o->flags[0])
		return ws_export_git(&git, e);
	if (ws_export_path(path, name, o->texts[0], strcmp(to, "-") == 0, e) < 0 ||
	    !(l = hub_link_open(e)))
		return -1;
	return hub_link_save(l, path, to, STR_NONE, e);
}

const struct verb ws_export_verb = {
	.name = "ws export",
	.usage = "[OPTION...] NAME FILE|-",
	.doc = "Write a revision as a tar archive, or as a git commit.",
	.more = "\"-\" is standard output. With --git it prints the commit. Hooks and\n"
		"configuration of the repository don't run; .git folders are left out.",
	.options = &export_options,
	.size = sizeof(struct ask_options),
	.min_operands = 2,
	.run = export_run,
	.fail = hub_link_fail,
};
