#pragma once
/*
 * The token for a server that is not the hub of this user: --token or --token-file, else
 * MITOS_API_KEY or HOLT_API_KEY, else credentials.json, which `holt auth login` writes. That is in
 * MITOS_CONFIG_DIR, else in Holt's configuration folder: {"token": …}, and with "server" a token
 * for that server alone.
 */
#include <limits.h>

#include "base/secret.h"
#include "cli/common/option.h"

struct token_options {
	const char *token, *file;
};

#define TOKEN_ROWS(S, m)                                                                           \
	OPTION(S, m.token, OPTION_TEXT, "token", .arg = "TOKEN",                                   \
	       .doc = "With --server: its token. A file or MITOS_API_KEY is safer."),              \
		OPTION(S, m.file, OPTION_TEXT, "token-file", .arg = "FILE",                        \
		       .doc = "With --server: file with its token.")

/* *ret NULL: there is none. *ret_from: where it is from, for people; static. A token of the command
 * line is overwritten there, so that ps shows it only for a moment. ERR_DENIED: other users may
 * read credentials.json. */
int token_find(const struct token_options *o, const char *server, struct secret **ret,
	       const char **ret_from, struct err *e) MUST_USE;

/* From a file, or where that is NULL from standard input, and a terminal without an echo. A line of
 * visible ASCII. */
struct secret *token_read(const char *file, struct err *e) MUST_USE;

/* Writes credentials.json (0600) in one step, and says where that is. */
int credentials_write(const char *server, const struct secret *token, char ret_path[PATH_MAX],
		      struct err *e) MUST_USE;

/* The server of credentials.json; the caller frees it. NULL: it names none. */
char *credentials_server(void);
