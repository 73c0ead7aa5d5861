#pragma once
/*
 * Variables that a command line sets: what our terminal and our git say, where that is wanted,
 * those of each --env-file, then those of -e. The last of a name counts. A file is as Docker takes
 * it:
 *
 *	# comment	skipped, as empty lines are
 *	NAME=VALUE	VALUE is taken as it stands, quotes and spaces too, up to the line's end
 *	NAME		copied from our environment, if it is there
 */
#include "base/arena.h"
#include "cli/common/option.h"

struct env_options {
	struct option_list words, files;
	bool git; /* who commits here */
};

/* The rows of a struct S with a member m, a struct env_options. */
#define ENV_ROWS(S, m)                                                                             \
	OPTION(S, m.words, OPTION_LIST, "env", .letter = 'e', .arg = "NAME[=VALUE]",               \
	       .doc = "Set a variable; without a value, copy it from here. May be repeated."),     \
		OPTION(S, m.files, OPTION_LIST, "env-file", .arg = "FILE",                         \
		       .doc = "Set the variables of a file, one NAME=VALUE per line; -e "          \
			      "overrides it. May be repeated."),                                   \
		OPTION(S, m.git, OPTION_FLAG, "git-identity",                                      \
		       .doc = "Set GIT_AUTHOR_NAME, GIT_COMMITTER_EMAIL and so on to the name "    \
			      "and address with which git commits here.")

enum { ENV_VARS_MAX = 256 };

struct env_word {
	struct str name, value, text; /* text: NAME=VALUE */
};

struct env_words {
	struct arena *arena;
	struct env_word all[ENV_VARS_MAX];
	size_t n;
};

/* tty: the program has our terminal, so it gets the COLORTERM of that. ERR_INVALID names the option
 * or line that is wrong; or the error of reading a file. The words are borrowed from the command
 * line, the environment and l->arena. The caller calls env_fini() in any case. */
int env_read(struct env_words *l, const struct env_options *o, bool tty, struct err *e) MUST_USE;
void env_fini(struct env_words *l);
