/* `holt snapshot export`, `import`: the archive of a snapshot as a file. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/common/safe.h"
#include "cli/link/files.h"
#include "cli/snapshot/snapshot.h"

/* Checked against the digest that the hub gives. */
static int run_export(const struct verb_input *in, struct err *e)
{
	const char *id = in->operands[0];
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	struct str digest;
	char path[256];

	if (hub_ask_path(&snapshots, path, sizeof(path), id, "", e) < 0 ||
	    !(l = hub_link_open(e)) || hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0 ||
	    hub_ask_path(&snapshots, path, sizeof(path), id, "/export", e) < 0)
		return -1;
	digest = json_str(json_get(json_root(doc), "digest"));
	return hub_link_save(l, path, in->operands[1], digest.p ? digest : STR_LIT(""), e);
}

const struct verb snapshot_export_verb = {
	.name = "snapshot export",
	.usage = "ID FILE",
	.doc = "Write a snapshot's archive (tar with zstd) to a file.",
	.more = "\"-\" is standard output.",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.min_operands = 2,
	.run = run_export,
	.fail = hub_link_fail,
};

static int run_import(const struct verb_input *in, struct err *e)
{
	const char *from = in->operands[0];
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	autoclose int fd = strcmp(from, "-") == 0 ? dup(STDIN_FILENO)
						  : open(from, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, errno, "%.160s", from);
	l = hub_link_open(e);
	if (!l || hub_link_send_file(l, "/v1/snapshots", fd, &doc, e) < 0)
		return -1;
	if (((const struct ask_options *)in->options)->output == OUTPUT_JSON)
		return hub_link_print(json_root(doc), e);
	safe_puts(stdout, json_str(json_get(json_root(doc), "id")));
	return 0;
}

const struct verb snapshot_import_verb = {
	.name = "snapshot import",
	.usage = "[OPTION...] FILE",
	.doc = "Import an exported archive, and print the snapshot's id.",
	.more = "\"-\" is standard input.",
	.options = &verb_output,
	.size = sizeof(struct ask_options),
	.min_operands = 1,
	.run = run_import,
	.fail = hub_link_fail,
};
