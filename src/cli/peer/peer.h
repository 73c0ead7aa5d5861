#pragma once
/*
 * A connection of the command line to one MCP server: shared by the subcommands of `holt mcp`.
 * Options name the server. It is connected to, asked, and closed in order: its program and all
 * descendants are gone when peer_run() returns.
 *
 *	peer.c		start, end, signals
 *	request.c	requests and their progress
 *	fail.c		failures
 *	target.c	which server: options, a configuration file
 *	login.c		authentication
 *	cache.c		what is remembered about servers
 *	ask.c		requests from the server
 *	form.c		forms, field by field on a terminal
 *	show.c		content, for people
 *	end.h		table of outcomes
 *
 * A subcommand is a verb whose options begin with struct verb_options and have a struct
 * peer_options `peer`. It makes one request at a time; then() handles the result. A failure is
 * reported and ends it.
 */
#include "cli/common/verb.h"
#include "json/document/write.h"
#include "mcp/client/client.h"

struct args;
struct peer;

struct peer_options {
	const char *stdio, *url, *config, *server; /* which */
	struct option_list env, headers;
	const char *cwd, *token_file;
	uint32_t login; /* enum peer_login */
	const char *client_id, *client_secret, *scope;
	bool private_ok;
	uint32_t transport, era; /* enum mcp_wire in another order; enum mcp_era */
	const char *revision;
	uint64_t timeout_ms;
	struct option_list answers, roots;
	uint32_t log; /* enum mcp_level + 1; 0: none */
	bool progress, verbose, json;
	const char *out; /* folder for what is no text */
	bool quiet; /* a failure is not told; no row has it */
};

enum peer_login { PEER_LOGIN_AUTO, PEER_LOGIN_BROWSER, PEER_LOGIN_DEVICE, PEER_LOGIN_NEVER };

/* The option rows of a struct S with a peer_options `peer`, except --out. */
#define PEER_ROWS(S)                                                                               \
	OPTION(S, peer.stdio, OPTION_TEXT, "stdio", .arg = "COMMAND",                              \
	       .doc = "Command line of a server, quoted as in a shell. It may also follow --."),   \
		OPTION(S, peer.url, OPTION_TEXT, "url", .arg = "URL",                              \
		       .doc = "Address of a server: http:, https:, or unix:PATH."),                \
		OPTION(S, peer.config, OPTION_TEXT, "config", .arg = "FILE",                       \
		       .doc = "JSON file with mcpServers; --server selects one."),                 \
		OPTION(S, peer.server, OPTION_TEXT, "server", .arg = "NAME",                       \
		       .doc = "Name of the server in the configuration, or of a module."),         \
		OPTION(S, peer.env, OPTION_LIST, "env", .letter = 'e', .arg = "NAME[=VALUE]",      \
		       .doc = "Set a variable of the server's program; without a value, copy it "  \
			      "from here. May be repeated."),                                      \
		OPTION(S, peer.cwd, OPTION_TEXT, "cwd", .arg = "DIR",                              \
		       .doc = "Working directory of the server's program."),                       \
		OPTION(S, peer.headers, OPTION_LIST, "header", .letter = 'H',                      \
		       .arg = "'NAME: VALUE'", .doc = "Send this header too. May be repeated."),   \
		OPTION(S, peer.token_file, OPTION_TEXT, "token-file", .arg = "FILE",               \
		       .doc = "Send the token in this file as a bearer token."),                   \
		OPTION(S, peer.login, OPTION_CHOICE, "login", .arg = "browser|device|never",       \
		       .doc = "How to log in if the server requires it: by a link, the default "   \
			      "at a terminal; by a code typed in elsewhere; or not at all."),      \
		OPTION(S, peer.client_id, OPTION_TEXT, "client-id", .arg = "ID",                   \
		       .doc = "Client id for servers where clients can't register."),              \
		OPTION(S, peer.client_secret, OPTION_TEXT, "client-secret-file", .arg = "FILE",    \
		       .doc = "File with the client secret."),                                     \
		OPTION(S, peer.scope, OPTION_TEXT, "scope", .arg = "SCOPE",                        \
		       .doc = "Scope to request at log-in; by default the server's."),             \
		OPTION(S, peer.private_ok, OPTION_FLAG, "allow-private",                           \
		       .doc = "Allow log-in servers at private addresses."),                       \
		OPTION(S, peer.transport, OPTION_CHOICE, "transport", .arg = "stdio|http|sse",     \
		       .doc = "Use only this transport; by default it is detected."),              \
		OPTION(S, peer.era, OPTION_CHOICE, "era", .arg = "legacy|modern",                  \
		       .doc = "Use only revisions up to 2025-11-25, or from 2026-07-28."),         \
		OPTION(S, peer.revision, OPTION_TEXT, "revision", .arg = "DATE",                   \
		       .doc = "Use only this revision of MCP."),                                   \
		OPTION(S, peer.timeout_ms, OPTION_SECONDS, "timeout", .letter = 't',               \
		       .arg = "TIME", .min = 1, .max = 86400000,                                   \
		       .doc = "Time limit, without the time that users need. By default 30 "       \
			      "seconds for the start and 60 for each answer."),                    \
		OPTION(S, peer.answers, OPTION_LIST, "answer", .arg = "NAME=VALUE|JSON",           \
		       .doc = "An answer for the server's forms. May be repeated."),               \
		OPTION(S, peer.roots, OPTION_LIST, "root", .arg = "DIR",                           \
		       .doc = "Folder to report as a root if the server asks. May be repeated."),  \
		OPTION(S, peer.log, OPTION_CHOICE, "log",                                          \
		       .arg = "debug|info|notice|warning|error|critical|alert|emergency",          \
		       .doc = "Show the server's log messages of at least this level."),           \
		OPTION(S, peer.progress, OPTION_FLAG, "progress",                                  \
		       .doc = "Show progress even if standard error is not a terminal."),          \
		OPTION(S, peer.verbose, OPTION_FLAG, "verbose", .letter = 'v',                     \
		       .doc = "Show what the server's program writes to its standard error."),     \
		OPTION(S, peer.json, OPTION_FLAG, "json", .letter = 'j',                           \
		       .doc = "Print the result as one line of JSON, errors on standard error.")

/* Options of subcommands that have no other. */
struct peer_verb {
	struct verb_options common;
	struct peer_options peer;
};
/* The table of those that print content: also --out. */
extern const struct option_table peer_content;

/* Follows the usage of every subcommand. */
#define PEER_MORE                                                                                  \
	"The server: --stdio 'COMMAND', --url URL, --config FILE --server NAME, or its\n"          \
	"program and arguments after --; --server NAME alone is a module of the hub.\n"            \
	"Exit status: 0 success, 2 wrong usage, 3 not authorized, 4 unreachable,\n"                \
	"5 tool error, 6 protocol error, 124 timeout, 125 failure of holt itself."

enum peer_end {
#define PEER_END(name_, ...) PEER_##name_,
#include "cli/peer/end.h"
#undef PEER_END
};

/* Runs it all: calls ready() once the server can be asked. state: the subcommand's own. Returns
 * the exit status. */
int peer_run(const struct verb_input *in, const struct peer_options *o,
	     void (*ready)(struct peer *p), void *state);

/* The same for a subcommand whose operands from `first` on are arguments. They are read before
 * the server is started, since that may wait. */
int peer_run_with(const struct verb_input *in, const struct peer_options *o, int first,
		  void (*ready)(struct peer *p));

/* Deletes the log-in to the server of the options. */
int peer_logout(const struct verb_input *in, const struct peer_options *o);

/* Where no option names a server, the first operand is a module of the hub: fills *o and *ret with
 * what is left. */
void peer_name_module(const struct verb_input *in, struct peer_verb *o, struct verb_input *ret);

/* Inside of it. */
const struct verb_input *peer_input(const struct peer *p);
const struct peer_options *peer_options(const struct peer *p);
void *peer_state(const struct peer *p);
const struct args *peer_arguments(const struct peer *p); /* of peer_run_with() */
/* The name of a tool as its module has it; STR_NONE: the module has it not. */
struct str peer_own_name(const struct peer *p, const struct json_val *tool);
struct mcp_client *peer_client(const struct peer *p);
const struct json_val *peer_info(const struct peer *p); /* serverInfo; NULL where it is not said */
const char *peer_wire(const struct peer *p); /* "stdio", "http", "sse" */

/* Ends it. */
void peer_end(struct peer *p, enum peer_end how);
/* The same; says why on standard error. */
void peer_fail(struct peer *p, enum peer_end how, const struct err *e);

/* Sends a request. then() gets the result, borrowed. A failure is reported and ends it. */
typedef void peer_then(struct peer *p, const struct json_val *result);
void peer_request(struct peer *p, const char *method, struct str params, peer_then *then);
/* task: as a task, for servers of 2025-11-25 that require one. */
void peer_call(struct peer *p, const char *tool, struct str arguments, bool task, peer_then *then);
/* Fetches the whole list of tools. It is empty if the server has none. */
void peer_tools(struct peer *p, void (*then)(struct peer *p, const struct mcp_listed *l));
/* Prints a result as --json does, and ends it. */
void peer_print_json(struct peer *p, const struct json_val *result, enum peer_end how);

/* --- content (show.c) --- */

/* Prints a block of a result or message; --out saves what is no text. ERR_IO for files. */
int peer_show_content(struct peer *p, const struct json_val *block, struct err *e) MUST_USE;
/* One of the contents of a resource. */
int peer_show_resource(struct peer *p, const struct json_val *contents, struct err *e) MUST_USE;
/* Prints the name of a listed item, its title, and its description below. notes: after the name,
 * may be "". */
void peer_show_head(struct str name, const struct json_val *thing, const char *notes);
/* Prints an argument: " name (integer, required) description". choices: an array, or NULL. */
void peer_show_argument(struct str name, const char *type, bool required, struct str doc,
			const struct json_val *choices);
/* ERR_INVALID, with the nearest name, if no tool has this one. */
/* Of a module of the hub also by the module's own name of the tool. */
const struct json_val *peer_find(const struct peer *p, const struct mcp_listed *l, const char *name,
				 struct err *e) MUST_USE;
/* Prints the JSON that was written, and ends it. */
void peer_print_written(struct peer *p, struct json_writer *w);
