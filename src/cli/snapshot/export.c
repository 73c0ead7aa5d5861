/* `holt snapshot export`, `import`: the archive of a snapshot as a file. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "cli/common/file.h"
#include "cli/common/safe.h"
#include "cli/snapshot/snapshot.h"

/* ---- export -------------------------------------------------------------------------------- */

struct export
{
	int fd;
	const char *name;
	struct hash *hash;
};

static int export_take(void *arg, struct str bytes, struct err *e)
{
	const struct export *x = arg;

	hash_add(x->hash, bytes.p, bytes.n);
	return file_write_fd(x->fd, x->name, bytes, e);
}

/* Checked against the digest that the hub gives. */
static int fetch(const char *id, struct export *x, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[256], digest[HASH_HEX + 1];

	if (hub_ask_path(&snapshots, path, sizeof(path), id, "", e) < 0)
		return -1;
	l = hub_link_open(e);
	if (!l || hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0 ||
	    hub_ask_path(&snapshots, path, sizeof(path), id, "/export", e) < 0 ||
	    hub_link_download(l, path, export_take, x, e) < 0)
		return -1;
	hash_end(x->hash, digest);
	if (!str_is(json_str(json_get(json_root(doc), "digest")), digest))
		return err_set(e, ERR_SNAPSHOT,
			       "the received archive does not match the hub's digest");
	return 0;
}

/* Written under another name first, so a file with the final name is complete. */
static int export(const char *id, const char *to, struct err *e)
{
	AUTO(hash_free) struct hash *hash = hash_new(e);
	struct export x = { STDOUT_FILENO, to, hash };
	autoclose int fd = -1;
	char beside[4096];

	if (!hash)
		return -1;
	if (strcmp(to, "-") == 0)
		return fetch(id, &x, e);
	if (snprintf(beside, sizeof(beside), "%s.new", to) >= (int)sizeof(beside))
		return err_set(e, ERR_INVALID, "the name of the file is too long");
	fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, errno, "%.160s", beside);
	x.fd = fd;
	if (fetch(id, &x, e) < 0) {
		unlink(beside);
		return -1;
	}
	if (fsync(fd) == 0 && rename(beside, to) == 0)
		return 0;
	err_sys(e, errno, "%.160s", to);
	unlink(beside);
	return -1;
}

static int run_export(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return export(in->operands[0], in->operands[1], &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb snapshot_export_verb = {
	.name = "snapshot export",
	.usage = "ID FILE",
	.doc = "Write a snapshot's archive (tar with zstd) to a file.",
	.more = "\"-\" is standard output.",
	.page = "holt-snapshot",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.min_operands = 2,
	.max_operands = 2,
	.run = run_export,
};

/* ---- import -------------------------------------------------------------------------------- */

struct import_options {
	struct verb_options common;
	uint32_t output;
};

static const struct option_row import_rows[] = {
	OUTPUT_ROW(struct import_options),
	HELP_ROW(struct import_options),
};
static const struct option_table import_options = OPTION_TABLE(import_rows, .mixed = true);

static size_t give(void *arg, char *to, size_t n, struct err *e)
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

static int import(const char *from, bool json, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	autoclose int fd = strcmp(from, "-") == 0 ? dup(STDIN_FILENO)
						  : open(from, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, errno, "%.160s", from);
	l = hub_link_open(e);
	if (!l || hub_link_send(l, "/v1/snapshots", give, &fd, &doc, e) < 0)
		return -1;
	if (json)
		return hub_link_print(json_root(doc), e);
	safe_line(stdout, json_str(json_get(json_root(doc), "id")));
	putchar('\n');
	return 0;
}

static int run_import(const struct verb_input *in)
{
	const struct import_options *o = in->options;
	struct err e = ERR_INIT;

	return import(in->operands[0], o->output == OUTPUT_JSON, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb snapshot_import_verb = {
	.name = "snapshot import",
	.usage = "[OPTION...] FILE",
	.doc = "Import an exported archive, and print the snapshot's id.",
	.more = "\"-\" is standard input.",
	.page = "holt-snapshot",
	.options = &import_options,
	.size = sizeof(struct import_options),
	.min_operands = 1,
	.max_operands = 1,
	.run = run_import,
};
