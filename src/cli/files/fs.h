#pragma once
/* Shared by the subcommands of `holt fs`: files of a sandbox of the hub, by paths inside it. */
#include "cli/link/link.h"
#include "cli/common/verb.h"

/* Of the words without options of their own. */
struct fs_options {
	struct verb_options common;
};
extern const struct option_table fs_options;

/* Begins the body of a request to /v1/files/. */
void fs_begin(struct json_writer *w, char **operands);

/* Ends it and asks. ret may be NULL. */
int fs_ask(struct hub_link *l, const char *word, struct json_writer *w, struct json_doc **ret,
	   struct err *e) MUST_USE;
