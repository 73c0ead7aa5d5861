#pragma once
/*
 * Verbs that are one request to the hub, as rows: what is asked, and what is printed of the answer.
 * Operands and options go into the body, or for a GET or DELETE into the query, under the names of
 * docs/rest.md. With -o json the answer is printed as it is.
 */
#include "cli/common/table.h"
#include "cli/common/verb.h"
#include "cli/link/link.h"

/* The kind of thing that paths below this one name. */
struct ask_noun {
	const char *path; /* "/v1/snapshots" */
	const char *noun;
	enum err_code missing; /* none can be called so */
	const char *letters, *not_first; /* of a name; the second may be NULL */
	size_t max;
	bool alone; /* what a request about it can't find is always this */
};
extern const struct ask_noun ask_sandbox;
#define ASK_LOWER "abcdefghijklmnopqrstuvwxyz0123456789-"
#define ASK_LETTERS ASK_LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"

/* The options of verbs that ask. */
struct ask_options {
	struct verb_options common;
	uint32_t output;
	bool flags[3];
	const char *texts[4];
	uint32_t counts[1];
	uint64_t times[1];
	struct option_list lists[2];
};
/* A row: ASK_OPTION(texts[0], OPTION_TEXT, "name", .member = "name", ...) */
#define ASK_OPTION(at, kind, name, ...) OPTION(struct ask_options, at, kind, name, __VA_ARGS__)
#define ASK_END OUTPUT_ROW(struct ask_options), HELP_ROW(struct ask_options)
/* A column of a table shows a member of each row: a text, cut at `cut` bytes (told unless `id`), or
 * a number divided by `unit`; or what `cell` adds. */
struct ask_column {
	const char *heading, *member;
	size_t cut;
	bool id;
	double unit;
	int digits;
	void (*cell)(struct table *t, const struct json_val *row);
};

enum { ASK_OPERANDS = 3, ASK_NAMES_MAX = 1024 };

struct ask {
	const struct ask_noun *of;
	const char *method; /* NULL: GET */
	const char *more; /* of the path, after the name; '%' stands for the second operand */
	const struct ask_noun *part; /* what the second operand names */
	/* Members; NULL of the first: the name in the path. "path=." has "." where there is no
	 * operand; "query..." has this operand and all that follow, as one text. */
	const char *operands[ASK_OPERANDS];
	int (*write)(const struct verb_input *in, struct json_writer *w, struct err *e); /* more */
	int (*query)(const struct verb_input *in, char *path, size_t size, struct err *e);
	bool each; /* asks for each operand, all the same; goes on after failures */
	bool all; /* of sandboxes: flags[0] is "all of them" in place of operands */
	/* Asks for the next page, with the member `next` as parameter `after`, until there is none,
	 * or a page has no rows. */
	const char *next, *after;
	bool endless; /* also after a page without rows */
	/* In place of `more` where flags[0] is set, or alone: the answer is lines, a row each, as
	 * they come. */
	const char *follow;
	bool first; /* counts[0]: only so many rows */
	/* Printed: rows, which are this member, or "" for the answer itself, as a table or by show;
	 * or this member alone, of each row where there are any; or JSON. Where rows have a table
	 * and a member to print, flags[0] chooses the member. */
	const char *list, *prints;
	const struct ask_column *columns;
	size_t n_columns;
	bool json;
	bool whole; /* -o json is not the rows alone */
	bool lines; /* -o json is a line for each row */
	/* name: the operand, unless v is a row */
	int (*show)(const struct json_val *v, const char *name, struct err *e);
	const char *said; /* on standard error, after it */
	/* The exit status. NULL: 0. */
	int (*status)(const struct verb_input *in, const struct json_val *v);
};
#define ASK_COLUMNS(...)                                                                           \
	.columns = (const struct ask_column[]){ __VA_ARGS__ },                                     \
	.n_columns = ARRAY_LEN(((const struct ask_column[]){ __VA_ARGS__ }))

/* Members of a struct verb that asks: its table of options, and the members of its struct ask. */
#define ASK(options_, ...)                                                                         \
	.options = &(options_), .size = sizeof(struct ask_options), .run = hub_ask_run,            \
	.fail = hub_link_fail, .ask = &(const struct ask)                                          \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

int hub_ask_run(const struct verb_input *in, struct err *e);

/* Writes the members that the options of any verb become. */
int hub_ask_members(const struct verb_input *in, struct json_writer *w, struct err *e) MUST_USE;

/* Writes the path of NAME and `more`. The noun's error where nothing can be called so. */
int hub_ask_path(const struct ask_noun *of, char *ret, size_t size, const char *name,
		 const char *more, struct err *e) MUST_USE;
