#pragma once
/* `holt run --request` and `holt run --schema`: the contract for agents (docs/contract.md). */

/* Asks the hub for what the file says, "-" for standard input, and prints the answer. Returns the
 * exit status of the command, or of the failure. */
int request_run(const char *path);

/* Prints the JSON Schema of requests and answers. */
int request_print_schema(void);
