#pragma once
/* Lists of what waits for a person, whose members have ids: a table for each of them, and the words
 * that such verbs share. */
#include "cli/common/verb.h"
#include "cli/link/link.h"

struct inbox {
	const char *path, *all; /* of the list; query for those that have ended, too */
	const char *list, *cursor; /* members of the answer; cursor: what "after" is */
	const char *noun;
	enum err_code missing; /* no such id */
	/* Members that a table shows, the id first, and that a line shows; each ends with NULL. A
	 * text follows in both. headings: of the table, with that of the text. */
	const char *const *headings, *const *members, *const *line;
	struct str (*text)(const struct json_val *one);
};

/* more: of the path, behind the id. ret may be NULL. */
int inbox_ask(const struct inbox *x, struct hub_link *l, const char *method, const char *id,
	      const char *more, struct str body, struct json_doc **ret, struct err *e) MUST_USE;

/* ---- words; each gives the exit status ------------------------------------------------------- */

struct inbox_bare {
	struct verb_options common;
};
extern const struct option_table inbox_bare_table;

struct inbox_ls {
	struct verb_options common;
	bool all;
	uint32_t output;
};
extern const struct option_table inbox_ls_table;
int inbox_ls(const struct inbox *x, const struct verb_input *in);

int inbox_show(const struct inbox *x, const struct verb_input *in);

/* A POST for each operand. Continues after a failure; the status is that of the first one. */
enum { INBOX_NAMES_MAX = 1024 };
int inbox_each(const struct inbox *x, const struct verb_input *in, const char *more,
	       struct str body);

struct inbox_watch {
	struct verb_options common;
	uint32_t output;
};
extern const struct option_table inbox_watch_table;
int inbox_watch(const struct inbox *x, const struct verb_input *in);

#define INBOX_OPTIONS(name)                                                                        \
	.options = &inbox_##name##_table, .size = sizeof(struct inbox_##name), .usage_exit = 2
