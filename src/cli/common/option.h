#pragma once
/*
 * Options of a verb, as a table: the same rows parse the command line into a struct and print the
 * help. Accepted forms are --name VALUE, --name=VALUE, -n VALUE, -nVALUE and joined flags (-ab).
 * Options end at the first operand or at "--"; in a `mixed` table they end only at "--".
 */
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"

enum option_kind {
	OPTION_FLAG, /* bool */
	OPTION_TEXT, /* const char * */
	OPTION_LIST, /* struct option_list: may be repeated */
	/* uint32_t: number of the word in `arg`, counted from 1; '|' separates words */
	OPTION_CHOICE,
	OPTION_COUNT, /* uint32_t */
	OPTION_SIZE, /* uint64_t, bytes: "512M", "2G", or a plain number of MiB */
	OPTION_SECONDS, /* uint64_t, milliseconds: "90", "1.5", "5m", "2h" */
	OPTION_MILLI, /* uint32_t, thousandths: "0.5", "2" */
	/* Other programs have it and this verb has not. It is refused, and `doc` says what does the
	 * same. */
	OPTION_ELSEWHERE,
};

/* At most this many of one repeated option. */
enum { OPTION_LIST_MAX = 256 };

struct option_list {
	const char *p[OPTION_LIST_MAX];
	size_t n;
};

struct option_row {
	const char *name; /* long, without dashes */
	char letter; /* 0: none */
	enum option_kind kind;
	const char *arg; /* what the value is called in help; NULL for a flag */
	const char *same; /* of a choice: other words for its words, in their order; NULL: none */
	const char *doc; /* one line */
	const char *env; /* an environment variable that is the default, or NULL */
	uint64_t min, max; /* of the stored number; both 0: any */
	size_t at; /* offset of the member */
	/* For completion: names that a value may have; NULL behind the last. NULL: unknown. */
	const char *(*value)(size_t i);
	/* Of verbs that are one request (cli/link/ask.h): the member of the request, "limits.pids"
	 * for one of an object; of a flag its value where it is set and where not, NULL for true
	 * and no member; of a number what 1 of the member is, 0 for a second, a MiB or 1. */
	const char *member, *on, *off;
	uint64_t unit;
};

/* A row, with the kind that the member's type must have. */
#define OPTION(S, m, kind_, name_, ...)                                                            \
	{                                                                                          \
		.name = (name_), .kind = (kind_), .at = offsetof(S, m), __VA_ARGS__                \
	}

struct option_table {
	const struct option_row *rows;
	size_t n;
	bool mixed; /* options may stand behind operands */
	/* A mixed table: a program begins after this many operands, with or without "--". 0:
	 * only after "--". */
	int program_at;
};

#define OPTION_TABLE(rows_, ...)                                                                   \
	{                                                                                          \
		.rows = (rows_), .n = ARRAY_LEN(rows_), __VA_ARGS__                                \
	}

/* Parses argv[1] and on into *ret, which holds the defaults. Variables of the environment are
 * read first. Texts are borrowed from argv and the environment. Returns the index of the first
 * operand, or -1 with ERR_INVALID, which names the nearest option if one is unknown. If the
 * table is mixed, argv is sorted: options, operands, then "--" and what follows it. */
int option_parse(const struct option_table *t, int argc, char **argv, void *ret,
		 struct err *e) MUST_USE;

/* The k-th word that says this value again, "--name=VALUE", on the arena. NULL with e->code 0:
 * there are no more of a list, or the value is zero. */
char *option_word(const struct option_row *o, const void *options, size_t k, struct arena *a,
		  struct err *e) MUST_USE;

/* The word of a choice, by its number from 1. */
struct str option_choice(const struct option_row *o, uint32_t number);

/* Prints the rows, aligned and wrapped. */
void option_help(const struct option_table *t, FILE *out);

/* A size as of OPTION_SIZE, in bytes. */
bool option_size(const char *text, uint64_t *ret);

/* The most similar of n names, or NULL. */
const char *option_nearest(const char *word, const char *(*name_at)(const void *of, size_t i),
			   const void *of, size_t n);
