#pragma once
/* `holt run --request` and `holt run --schema`: the contract for agents (docs/contract.md). */
#include "cli/grants/grants.h"

/* Asks the hub for what the file says, "-" for standard input, and prints answer or error as
 * JSON. The request is a model's: it gets no network but what the options and the operator's file
 * (config: what --config says, or NULL) allow. Returns the command's exit status, or that of the
 * error's kind. */
int request_run(const char *path, const struct network_options *network, const char *config);

/* Prints the JSON Schema of requests and answers. */
int request_print_schema(void);
