#pragma once
/* Secrets that a command line names for a program: --secret and --secret-file, NAME[=VARIABLE]. */
#include "base/str.h"
#include "cli/common/option.h"

struct secret_options {
	struct option_list words, files;
	struct option_list logins; /* which may begin in a new sandbox */
};

/* The rows of a struct S with a member m, a struct secret_options. */
#define SECRET_OPTION_ROWS(S, m)                                                                   \
	OPTION(S, m.words, OPTION_LIST, "secret", .arg = "NAME[=VARIABLE]",                        \
	       .doc = "Pass a secret (holt secret) in a variable; by default NAME in capitals. "   \
		      "May be repeated."),                                                         \
		OPTION(S, m.files, OPTION_LIST, "secret-file", .arg = "NAME[=VARIABLE]",           \
		       .doc = "Pass a secret in a file, whose path is in the variable; by "        \
			      "default NAME_FILE in capitals. May be repeated.")

/* The row of a struct S with a member m, a struct option_list: of a verb that makes a sandbox. */
#define BOUND_SECRET_ROW(S, m)                                                                     \
	OPTION(S, m, OPTION_LIST, "secret", .arg = "NAME[=VARIABLE]",                              \
	       .doc = "Pass a placeholder of a secret that is bound to hosts, in a variable; by "  \
		      "default NAME in capitals. May be repeated.")

/* The same for log-ins. */
#define BEGIN_LOGIN_ROW(S, m)                                                                      \
	OPTION(S, m, OPTION_LIST, "login", .arg = "NAME[=VARIABLE]",                               \
	       .doc = "As --secret, and this log-in may begin there: the tokens that a program "   \
		      "gets are stored. May be repeated.")

enum { SECRET_WORDS_MAX = 32, SECRET_WORD_MAX = 128 };

struct secret_words {
	struct secret_word {
		char variable[SECRET_WORD_MAX + 1];
		struct str ref; /* borrowed from the command line */
		bool file, begin;
	} all[SECRET_WORDS_MAX];
	size_t n;
};

/* ERR_INVALID names the option that is wrong. */
int secret_words_read(struct secret_words *w, const struct secret_options *o,
		      struct err *e) MUST_USE;
