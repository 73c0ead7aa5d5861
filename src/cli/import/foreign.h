#pragma once
/*
 * The MCP servers in the files of other clients, as the operator's file has them (config/config.h).
 * What has no counterpart is told, not dropped in silence; what looks like a secret becomes
 * ${secret:SERVER.NAME}, and its value goes nowhere.
 */
#include "base/buf.h"
#include "json/document/json.h"

enum { FOREIGN_BYTES_MAX = 16 << 20, FOREIGN_SERVERS_MAX = 256 };

/* How a client writes variables. */
enum foreign_variables {
	FOREIGN_BRACES, /* ${X}, ${env:X}, ${input:id}, ${workspaceFolder}, … */
	FOREIGN_SHELL, /* $X, too */
	FOREIGN_NONE,
};

/* A client, and where it keeps its servers. */
struct foreign_client {
	const char *name;
	const char *const
		*files; /* ends with NULL; the first that is there counts; ~/: of the user */
	const char *root; /* the member that has the servers */
	bool foreign; /* a form of its own: entries are written, its servers are not read */
	enum foreign_variables variables;
	bool toml;
	bool url_is_sse; /* a server with `url` alone speaks HTTP+SSE */
	/* What it is given (recipe.h): the type of a program and of a URL, NULL: none is said; the
	 * member with the URL, NULL: it only starts programs; how a variable stands for the token,
	 * NULL: it can't; whether a command and its arguments are one list. */
	const char *stdio, *http, *url, *token;
	bool vector;
};
/* The clients whose files are read, for help. Entries are written for FOREIGN_WRITTEN, too. */
#define FOREIGN_NAMES                                                                              \
	"vscode, claude-code, claude-desktop, cursor, windsurf, gemini, augment,\n"                \
	"generic"
#define FOREIGN_WRITTEN ", codex, zed, opencode"
/* "vscode". NULL with ERR_INVALID. */
const char *foreign_client_name(size_t i); /* NULL: there are no more */
const struct foreign_client *foreign_client_find(const char *name, struct err *e) MUST_USE;
/* The same; ERR_INVALID too where its file is not read. */
const struct foreign_client *foreign_client_read(const char *name, struct err *e) MUST_USE;
/* By the end of a file's path; NULL: it is that of no client. */
const struct foreign_client *foreign_client_by_path(const char *path);
/* By what is in the file; NULL: it has no servers. */
const struct foreign_client *foreign_client_of(const struct json_val *root);

/* A document that a client would read: JSON with comments and with commas before brackets. *text is
 * changed. */
struct json_doc *foreign_parse(struct buf *text, struct err *e) MUST_USE;
/* Its first step: overwrites a byte order mark, and what is not JSON, with blanks. */
int foreign_strip(struct buf *text, struct err *e) MUST_USE;

/* What somebody pasted becomes the text of such a document: also an entry alone, members without
 * the braces around them, and Markdown with one block of code. name: of an entry alone; STR_NONE:
 * it names itself. ERR_INVALID says what is wrong. */
int foreign_paste(struct buf *text, struct str name, struct err *e) MUST_USE;

struct config_file;
struct redactor;

struct foreign_options {
	const struct foreign_client *client;
	struct str folder; /* absolute: ${workspaceFolder} */
	struct redactor *redactor;
	const struct config_file *have; /* what is there already, and is left as it is */
	bool advise; /* looks at this host for what can't work, and notes that */
	/* One line about what is other than it was; text of strangers in it. server: STR_NONE for
	 * what is about the file. */
	void (*note)(void *data, struct str server, struct str text);
	void *data;
};

struct foreign_found {
	struct buf servers, inputs; /* mcpServers and inputs, as JSON */
	size_t n, left; /* servers in it; those that the operator's file would not take */
};

/* Fills buffers that have a maximum. */
int foreign_read(const struct json_val *root, const struct foreign_options *o,
		 struct foreign_found *to, struct err *e) MUST_USE;
