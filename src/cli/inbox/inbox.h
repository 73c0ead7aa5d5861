#pragma once
/* Lists of what waits for a person, whose members have ids: what their verbs share. */
#include "cli/link/ask.h"

struct inbox {
	const struct ask_noun *of;
	const char *list, *cursor; /* members of the answer; cursor: what "after" is */
	const char *const *line; /* members that a line shows, the id first; NULL-terminated */
	struct str (*text)(const struct json_val *one); /* which follows in it */
};

/* First what waits, then each change, until the hub ends; gives the exit status. */
int inbox_watch(const struct inbox *x, const struct verb_input *in);
