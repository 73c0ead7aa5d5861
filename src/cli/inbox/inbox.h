#pragma once
/* Lists of what waits for a person: what their verbs share. */
#include "cli/link/ask.h"

/* First what waits, then each change, until the hub ends. */
#define INBOX_WATCH(...)                                                                           \
	ASK(verb_output, .after = "wait_seconds=60&after", .endless = true, .lines = true,         \
	    __VA_ARGS__)

/* Prints a line: those members, NULL-terminated, and the text. Returns 0. */
int inbox_show(const struct json_val *v, const char *const *members, struct str text);
