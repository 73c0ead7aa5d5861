/* `holt ws import` and `export`: files as a tar archive, from a folder, or as a branch of git. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/common/file.h"
#include "cli/common/safe.h"
#include "cli/files/packer.h"
#include "cli/ws/ws.h"

/* ---- import ---------------------------------------------------------------------------------- */

struct import_options {
	struct verb_options common;
	const char *message;
	uint32_t output;
};

static const struct option_row import_rows[] = {
	OPTION(struct import_options, message, OPTION_TEXT, "message", .letter = 'm', .arg = "TEXT",
	       .doc = "Description of the revision."),
	OUTPUT_ROW(struct import_options),
	HELP_ROW(struct import_options),
};
static const struct option_table import_options = OPTION_TABLE(import_rows, .mixed = true);

static size_t give_file(void *arg, char *to, size_t n, struct err *e)
{
	const int *fd = arg;
	ssize_t got;

	do {
		got = read(*fd, to, n);
	} while (got < 0 && errno == EINTR);
	if (got >= 0)
		return (size_t)got;
	err_sys(e, errno, "read the archive");
	return SIZE_MAX;
}

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
		return hub_link_send(l, path, give_file, &fd, ret, e);
	if (ws_apply_recover(from, e) < 0 || packer_start(&p, from, ".", e) < 0)
		return -1;
	result = hub_link_send(l, path, packer_give, &p, ret, e);
	packer_stop(&p);
	return result;
}

/* What `holt ws apply` brings into the folder later is what has changed since. */
static void import_note(const char *from, const char *name, const struct json_val *v)
{
	struct err e = ERR_INIT;
	struct stat st;

	if (stat(from, &st) == 0 && S_ISDIR(st.st_mode) &&
	    ws_applied(from, name, json_str(json_get(v, "revision")), &e) < 0)
		fprintf(stderr, "holt: ws apply will not know of this import: %s\n", e.msg);
}

static void import_print(const struct json_val *v)
{
	safe_line(stdout, json_str(json_get(v, "revision")));
	putchar('\n');
	hub_link_tell_left_out(v);
}

static int import_do(char **operands, const struct import_options *o, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[WS_PATH_MAX];

	if (hub_ask_path(&workspaces, path, sizeof(path), operands[0], "/import", e) < 0 ||
	    (o->message && hub_link_query(path, sizeof(path), "message", o->message, e) < 0))
		return -1;
	l = hub_link_open(e);
	if (!l || import_send(l, path, operands[1], &doc, e) < 0)
		return -1;
	import_note(operands[1], operands[0], json_root(doc));
	if (o->output == OUTPUT_JSON)
		return hub_link_print(json_root(doc), e);
	import_print(json_root(doc));
	return 0;
}

static int import_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return import_do(in->operands, in->options, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb ws_import_verb = {
	.name = "ws import",
	.usage = "[OPTION...] NAME FILE|DIR|-",
	.doc = "Make a revision from a tar archive or folder; print its id.",
	.more = "The workspace has then these files and no others. \"-\" is an archive on\n"
		"standard input. Files that hold credentials are left out.",
	.page = "holt-ws",
	.options = &import_options,
	.size = sizeof(struct import_options),
	.min_operands = 2,
	.max_operands = 2,
	.run = import_run,
};

/* ---- export ---------------------------------------------------------------------------------- */

struct export_options {
	struct verb_options common;
	const char *revision;
	bool git, history;
};

static const struct option_row export_rows[] = {
	OPTION(struct export_options, revision, OPTION_TEXT, "revision", .letter = 'r',
	       .arg = "REVISION", .doc = "Revision to export; by default the newest."),
	OPTION(struct export_options, git, OPTION_FLAG, "git",
	       .doc = "The second operand is a git repository: make a commit on its branch "
		      "holt/NAME."),
	OPTION(struct export_options, history, OPTION_FLAG, "history",
	       .doc = "With --git: make a commit for each revision that the branch does not have "
		      "yet."),
	HELP_ROW(struct export_options),
};
static const struct option_table export_options = OPTION_TABLE(export_rows, .mixed = true);

struct export
{
	int fd;
	const char *name;
};

int ws_export_path(char ret[WS_PATH_MAX], const char *name, const char *revision, struct err *e)
{
	if (hub_ask_path(&workspaces, ret, WS_PATH_MAX, name, "/export", e) < 0)
		return -1;
	return revision ? hub_link_query(ret, WS_PATH_MAX, "revision", revision, e) : 0;
}

static int export_take(void *arg, struct str bytes, struct err *e)
{
	const struct export *x = arg;

	return file_write_fd(x->fd, x->name, bytes, e);
}

static int export_fetch(const char *name, const char *revision, struct export *x, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	char path[WS_PATH_MAX];

	if (ws_export_path(path, name, revision, e) < 0)
		return -1;
	l = hub_link_open(e);
	return l ? hub_link_download(l, path, export_take, x, e) : -1;
}

/* Written under another name first, so a file with the final name is complete. */
static int export_file(const char *name, const char *revision, const char *to, struct err *e)
{
	struct export x = { STDOUT_FILENO, to };
	autoclose int fd = -1;
	char beside[4096];

	if (strcmp(to, "-") == 0)
		return export_fetch(name, revision, &x, e);
	if (snprintf(beside, sizeof(beside), "%s.new", to) >= (int)sizeof(beside))
		return err_set(e, ERR_INVALID, "the name of the file is too long");
	fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, errno, "%.160s", beside);
	x.fd = fd;
	if (export_fetch(name, revision, &x, e) < 0) {
		unlink(beside);
		return -1;
	}
	if (fsync(fd) == 0 && rename(beside, to) == 0)
		return 0;
	err_sys(e, errno, "%.160s", to);
	unlink(beside);
	return -1;
}

static int export_run(const struct verb_input *in)
{
	const struct export_options *o = in->options;
	struct err e = ERR_INIT;
	const struct ws_git git = { in->operands[0], in->operands[1], o->revision, o->history };
	int result;

	if (o->history && !o->git)
		result = err_set(&e, ERR_INVALID, "--history is of --git");
	else
		result = o->git ? ws_export_git(&git, &e)
				: export_file(in->operands[0], o->revision, in->operands[1], &e);
	return result < 0 ? hub_link_fail(&e) : 0;
}

const struct verb ws_export_verb = {
	.name = "ws export",
	.usage = "[OPTION...] NAME FILE|-",
	.doc = "Write a revision as a tar archive, or as a git commit.",
	.more = "\"-\" is standard output. With --git it prints the commit. Hooks and\n"
		"configuration of the repository don't run; .git folders are left out.",
	.page = "holt-ws",
	.options = &export_options,
	.size = sizeof(struct export_options),
	.min_operands = 2,
	.max_operands = 2,
	.run = export_run,
};
