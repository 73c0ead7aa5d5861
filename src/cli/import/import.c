/* `holt mcp import`: the MCP servers of other clients, for the operator's file. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/common/file.h"
#include "cli/common/home.h"
#include "cli/common/safe.h"
#include "cli/common/verb.h"
#include "cli/import/file.h"
#include "cli/import/own.h"
#include "guard/redact/redact.h"

enum { FOUND_MAX = 1 << 20, PRETTY_MAX = 4 << 20, EXIT_LEFT = 1 };

struct import_options {
	struct verb_options common;
	const char *from, *config;
	bool write;
};

static const struct option_row rows[] = {
	OPTION(struct import_options, from, OPTION_TEXT, "from", .arg = "CLIENT",
	       .doc = "Client whose file it is; without FILE, the file that this client reads "
		      "here."),
	OPTION(struct import_options, write, OPTION_FLAG, "write",
	       .doc = "Write them to the operator's file."),
	CONFIG_ROW(struct import_options, config),
	HELP_ROW(struct import_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

/* A file of a client. */
struct source {
	const struct foreign_client *client; /* NULL: by what is in it */
	char path[PATH_MAX];
	char folder[PATH_MAX]; /* of the project */
	struct buf text;
	struct json_doc *doc;
};

/* ---- reading ------------------------------------------------------------------------------- */

/* The first of a client's files that is there. */
static int source_find(struct source *s, struct err *e)
{
	for (const char *const *file = s->client->files; *file; file++) {
		if (import_path(*file, s->path, e) < 0)
			return -1;
		if (access(s->path, F_OK) == 0)
			return 0;
	}
	return err_set(e, ERR_PATH_NOT_FOUND, "%s has no file here: give its path",
		       s->client->name);
}

/* The folder of the file, or the one above a folder such as .vscode. */
static int source_folder(struct source *s, const char *file, struct err *e)
{
	char path[PATH_MAX], *slash;

	if (!realpath(file ? file : ".", path))
		return err_sys(e, errno, "%.120s", file ? file : "the current folder");
	slash = file ? strrchr(path, '/') : NULL;
	if (slash)
		*slash = '\0';
	slash = slash ? strrchr(path, '/') : NULL;
	if (slash && slash[1] == '.')
		*slash = '\0';
	snprintf(s->folder, sizeof(s->folder), "%s", *path ? path : "/");
	return 0;
}

static int source_read(struct source *s, const char *file, struct err *e)
{
	const char *first = s->client ? s->client->files[0] : NULL;
	bool project = file || (first && *first != '~');
	const struct foreign_client *of, *by_path;

	if (file ? import_path(file, s->path, e) < 0 : source_find(s, e) < 0)
		return -1;
	project = project && (file || str_is(str_of(s->path), first));
	if (source_folder(s, project ? s->path : NULL, e) < 0 ||
	    file_read(s->path, &s->text, e) < 0)
		return -1;
	s->doc = foreign_parse(&s->text, e);
	if (!s->doc)
		return err_wrap(e, "%.120s", s->path);
	of = foreign_client_of(json_root(s->doc));
	by_path = foreign_client_by_path(s->path);
	if (!s->client)
		s->client = of && by_path && json_get(json_root(s->doc), by_path->root) ? by_path
											: of;
	if (!s->client)
		return err_set(e, ERR_INVALID, "%.120s has no MCP servers that are known", s->path);
	return 0;
}

/* ---- printing ------------------------------------------------------------------------------ */

static int print(const struct foreign_found *found, struct err *e)
{
	autobuf struct buf servers = BUF_INIT(PRETTY_MAX), inputs = BUF_INIT(PRETTY_MAX);

	if (import_lines(buf_str(&found->servers), &servers, e) < 0 ||
	    import_lines(buf_str(&found->inputs), &inputs, e) < 0)
		return -1;
	puts("{");
	if (inputs.n)
		printf("  \"inputs\": [%.*s\n  ],\n", STR_ARG(buf_str(&inputs)));
	printf("  \"mcpServers\": {%.*s\n  }\n}\n", STR_ARG(buf_str(&servers)));
	return 0;
}

/* ---- the verb ------------------------------------------------------------------------------ */

static int import_run(const struct verb_input *in, struct err *e)
{
	const struct import_options *o = in->options;
	const char *file = in->n_operands ? in->operands[0] : NULL;
	struct source s = { .text = BUF_INIT(FOREIGN_BYTES_MAX) };
	struct foreign_found found = { BUF_INIT(FOUND_MAX), BUF_INIT(FOUND_MAX), 0, 0 };
	AUTO(redactor_free) struct redactor *redactor = redactor_new(NULL, e);
	AUTO(config_unref) struct config *c = NULL;
	char path[PATH_MAX];
	int status = 0, rc;
	bool must;

	if (!file && !o->from)
		err_set(e, ERR_INVALID, "which file: give its path, or --from CLIENT");
	s.client = o->from ? foreign_client_read(o->from, e) : NULL;
	if (e->code != ERR_NONE)
		return cli_wrong_usage(in->verb, e);
	c = home_config(o->config, path, &must, e) < 0 ? NULL : config_open(path, false, e);
	rc = redactor && c && source_read(&s, file, e) == 0 ? 0 : -1;
	if (rc == 0) {
		const struct foreign_options read = { .client = s.client,
						      .folder = str_of(s.folder),
						      .redactor = redactor,
						      .advise = true,
						      .have = o->write ? config_file(c) : NULL,
						      .note = own_note };

		rc = foreign_read(json_root(s.doc), &read, &found, e);
	}
	if (rc == 0 && !o->write)
		rc = print(&found, e);
	else if (rc == 0 && found.n)
		rc = own_add(c, &found, e);
	if (rc < 0)
		status = cli_fail(e);
	else if (found.left)
		status = EXIT_LEFT;
	if (rc == 0 && o->write) {
		safe_line(stdout, str_of(path));
		printf(": %zu added from ", found.n);
		safe_puts(stdout, str_of(s.path));
	}
	json_free(s.doc);
	buf_wipe(&s.text);
	buf_fini(&found.servers);
	buf_fini(&found.inputs);
	return status;
}

const struct verb mcp_import_verb = {
	.name = "mcp import",
	.usage = "[OPTION...] [FILE]",
	.doc = "Import the MCP servers of another client.",
	.more = "Prints what the operator's file would have, and on standard error what is other\n"
		"there. No secret is copied: holt secret set stores it. The exit status is 1\n"
		"where a server was left out.\n"
		"CLIENT is one of\n" FOREIGN_NAMES ".",
	.page = "holt-mcp-client",
	.options = &options,
	.size = sizeof(struct import_options),
	.max_operands = 1,
	.run = import_run,
};
