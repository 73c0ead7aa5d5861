#pragma once
/* `holt run --request` and `holt run --schema`: the contract for agents (docs/contract.md). */
#include "cli/common/secret.h"
#include "cli/grants/grants.h"

/* Asks the hub for what the file says, "-" for standard input, and prints answer or error as
 * JSON. The request is a model's: it gets no network and no secret but what the options and the
 * operator's file (config: what --config says, or NULL) allow. Returns the command's exit status,
 * or that of the error's kind. */
struct request_given {
	const struct network_options *network;
	const struct secret_options *secrets;
	const char *config;
};
int request_run(const char *path, const struct request_given *given);

/* Prints the JSON Schema of requests and answers. */
int request_print_schema(void);
